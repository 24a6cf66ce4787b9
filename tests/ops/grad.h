/* Gradient checks. They compare the analytic gradient with finite differences of fourth order in f64, do the
 * same for second derivatives, and compare gradients in f32, f16 and bf16 with those in f64. On a device
 * without f64, they compare its gradients in narrower dtypes with those of the CPU in f64, and its second
 * derivatives in f32. Case files say what to check; grad.c checks it. */
#ifndef WEFT_TESTS_OPS_GRAD_H
#define WEFT_TESTS_OPS_GRAD_H

#include "ops/matrix.h"

/* Points where an op is not smooth. Samples stay away from them by more than ten steps of the finite
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
    int n; /* number of operands, all of them differentiated */
    shape s[GRAD_OPERANDS];
    double low, high; /* range of their values */
    avoid avoid;
    /* Records the op. The operands have dtype `dtype`, and so has the result. Other operands come from
     * `user`. */
    weft_tensor *(*build)(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user);
    const void *user;
    const char *blames; /* grad_none: op that the message names. NULL: op */
    bool f64;           /* needs f64: left out on a device without it */
    double within;      /* grad_expect: allowed error, relative for gradients above 1. 0: 1e-12 */
} grad_case;

/* These functions record a case. On a GPU backend it is checked later, together with others: main.c calls
 * grad_settle. */
/* Checks the gradients of all operands: against differences, second derivatives, in f32. */
void grad_check(matrix *m, const grad_case *c);
/* Checks that the gradient exists and is 0 everywhere. */
void grad_zero(matrix *m, const grad_case *c);
/* Checks that there is no gradient: weft_gradient fails, and its message says "not differentiable" and names
 * the op. */
void grad_none(matrix *m, const grad_case *c);
/* Checks that the gradient of the sum of the result at x is want, to twelve digits or `within`. For kinks,
 * ties, infinities and NaN. In f64, or in f32 to six digits on a device without f64. */
void grad_expect(matrix *m, const grad_case *c, const double *x, const double *want);

/* A tensor with these values, for build functions. */
weft_tensor *grad_constant(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *dims,
                           const double *v);

/* A build function. It builds another case (`user`), and returns the gradient of the sum of 1, 2, 3, ...
 * times the elements of its result, with respect to its first operand. A check of this function checks second
 * and third derivatives. */
weft_tensor *grad_slope(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user);

#endif
