/* Short names for code that records ops: composites, gradient rules, optimizers. A function that uses them
 * has a variable `where` (the user's place) in scope. */
#ifndef WEFT_OPS_BUILD_H
#define WEFT_OPS_BUILD_H

#include <weft/ops.h>
#include "graph/graph.h"

#define add(a, b)       weft_add_at(where, a, b)
#define sub(a, b)       weft_sub_at(where, a, b)
#define mul(a, b)       weft_mul_at(where, a, b)
#define divi(a, b)      weft_div_at(where, a, b)
#define neg(a)          weft_neg_at(where, a)
#define expo(a)         weft_exp_at(where, a)
#define logn(a)         weft_log_at(where, a)
#define sine(a)         weft_sin_at(where, a)
#define cosine(a)       weft_cos_at(where, a)
#define sgn(a)          weft_sign_at(where, a)
#define flo(a)          weft_floor_at(where, a)
#define power(a, b)     weft_pow_at(where, a, b)
#define select(c, a, b) weft_where_at(where, c, a, b)
#define eq(a, b)        weft_eq_at(where, a, b)
#define lt(a, b)        weft_lt_at(where, a, b)
#define le(a, b)        weft_le_at(where, a, b)
#define gt(a, b)        weft_gt_at(where, a, b)
#define ge(a, b)        weft_ge_at(where, a, b)
#define both(a, b)      weft_and_at(where, a, b)
#define either(a, b)    weft_or_at(where, a, b)
#define addc(a, v)      weft_add_scalar_at(where, a, v)
#define mulc(a, v)      weft_mul_scalar_at(where, a, v)
#define subc_r(v, a)    weft_add_scalar_at(where, weft_neg_at(where, a), v) /* v - a */
#define zero(a)         weft_zeros_like_at(where, a)

/* One dimension of n elements with parts[i] (any shapes) laid row-major at element offsets[i], zero
 * elsewhere. Parts do not overlap and are in the order of their offsets. */
weft_tensor *weft__pack(const char *where, weft_tensor *const *parts, const int64_t *offsets, int count,
                        int64_t n);

/* Causal attention over caches (B, H, S, D) whose queries are at position, position + 1, ...: key j is seen
 * by query i where j <= position + i (an i32 scalar). What lies beyond must be finite. No gradient. */
weft_tensor *weft__attention_over_cache(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v,
                                        weft_tensor *position);

/* x cast to dtype; of a variable whose rounded values are kept beside it, those: a CAST with two inputs. */
weft_tensor *weft__rounded_at(const char *where, weft_tensor *x, weft_dtype dtype);

/* Mean and variance (of all, biased) of each channel of x (N, C, ...), in f32 where x is stored in 16 bits;
 * NULL, or why there are none. */
weft_tensor *weft__batch_moments(const char *where, weft_tensor *x, weft_tensor **mean,
                                 weft_tensor **variance);

/* Dropout and attention draw from the stream of the layer being recorded: see ops/random.c. */
weft_tensor *weft__uniform_of_layer(const char *where, weft_context *ctx, int rank, const int64_t *shape);

#endif
