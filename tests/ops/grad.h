/* Gradient checks: the analytic gradient against finite differences of fourth order in f64, second
 * derivatives likewise, and gradients in f32 against those in f64. Case files declare what to check; grad.c
 * checks it. */
#ifndef WEFT_TESTS_OPS_GRAD_H
#define WEFT_TESTS_OPS_GRAD_H

#include "ops/matrix.h"

/* Points at which an op is not smooth, from which samples stay away by more than ten steps of the
 * differences. */
typedef enum avoid {
    AVOID_NOTHING,
    AVOID_ZERO,
    AVOID_HALVES /* multiples of 1/2 */,
    AVOID_TIES /* equal values */
} avoid;

enum { GRAD_OPERANDS = 5 };

typedef struct grad_case {
    const char *op, *sample;
    int n; /* operands, all differentiated */
    shape s[GRAD_OPERANDS];
    double low, high; /* their values */
    avoid avoid;
    /* Records the op; wide operands are in `dtype`, so is the result. Other operands come from `user`. */
    weft_tensor *(*build)(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user);
    const void *user;
    const char *blames; /* grad_none: what the message names; NULL: op */
    double within;      /* grad_expect: how far a gradient may be off, relative from 1 on; 0: 1e-12 */
} grad_case;

/* These record a case, which on a GPU's backend is checked later, with others: main.c calls grad_settle. */
/* The gradient by every operand: against differences, second derivatives, in f32. */
void grad_check(matrix *m, const grad_case *c);
/* The gradient exists and is 0 everywhere. */
void grad_zero(matrix *m, const grad_case *c);
/* There is no gradient: weft_gradient fails, and its message says "not differentiable" and names the op. */
void grad_none(matrix *m, const grad_case *c);
/* The gradient of the sum of the result at x (f64) is want, to twelve digits or `within`: at kinks, ties,
 * infinities and NaN. */
void grad_expect(matrix *m, const grad_case *c, const double *x, const double *want);

/* A build function: the gradient by the first operand of what another case (`user`) builds, as 1, 2, 3, ...
 * times its elements. So a check of it is one of second and third derivatives. */
weft_tensor *grad_slope(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user);

#endif
