/* Short names for code that records ops: composites, gradient rules, optimizers. at_x(...) records
 * weft_x_at(where, ...): a function that uses it needs a variable `where`, the user's location, in scope.
 * Must not know: devices. Read next: composite.h. */
#ifndef WEFT_OPS_BUILD_H
#define WEFT_OPS_BUILD_H

#include <weft/ops.h>
#include "graph/graph.h"

#define at_add(a, b)        weft_add_at(where, a, b)
#define at_sub(a, b)        weft_sub_at(where, a, b)
#define at_mul(a, b)        weft_mul_at(where, a, b)
#define at_div(a, b)        weft_div_at(where, a, b)
#define at_neg(a)           weft_neg_at(where, a)
#define at_exp(a)           weft_exp_at(where, a)
#define at_log(a)           weft_log_at(where, a)
#define at_sin(a)           weft_sin_at(where, a)
#define at_cos(a)           weft_cos_at(where, a)
#define at_sign(a)          weft_sign_at(where, a)
#define at_floor(a)         weft_floor_at(where, a)
#define at_pow(a, b)        weft_pow_at(where, a, b)
#define at_where(c, a, b)   weft_where_at(where, c, a, b)
#define at_eq(a, b)         weft_eq_at(where, a, b)
#define at_lt(a, b)         weft_lt_at(where, a, b)
#define at_le(a, b)         weft_le_at(where, a, b)
#define at_gt(a, b)         weft_gt_at(where, a, b)
#define at_ge(a, b)         weft_ge_at(where, a, b)
#define at_and(a, b)        weft_and_at(where, a, b)
#define at_or(a, b)         weft_or_at(where, a, b)
#define at_add_scalar(a, v) weft_add_scalar_at(where, a, v)
#define at_mul_scalar(a, v) weft_mul_scalar_at(where, a, v)
#define at_sub_from(v, a)   weft_add_scalar_at(where, weft_neg_at(where, a), v) /* v - a */
#define at_zeros_like(a)    weft_zeros_like_at(where, a)

/* Places parts[i] (of any shapes, row-major) at element offsets[i] of a vector of n elements. Other elements
 * are 0. Parts do not overlap and are in the order of their offsets. */
weft_tensor *weft__pack(const char *where, weft_tensor *const *parts, const int64_t *offsets, int count,
                        int64_t n);

/* The sum of x over the processes that train together; see ops/exchange.c. With attr->part, the elements of
 * the sum that this process owns, which must be a vector. */
weft_tensor *weft__exchange(const char *where, weft_tensor *x, const weft_attr_exchange *attr);

/* Causal attention over caches (B, H, S, D), for queries at positions position, position + 1, ... Query i
 * sees key j if j <= position + i; position is an i32 scalar. Cached values beyond must be finite. Of the
 * options, scale, window and softcap count. No gradient. */
weft_tensor *weft__attention_over_cache(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v,
                                        weft_tensor *position, const weft_attention_options *options);

/* x cast to dtype. If a rounded copy of variable x is kept, this is a CAST with two inputs that reads the
 * copy. */
weft_tensor *weft__rounded_at(const char *where, weft_tensor *x, weft_dtype dtype);

/* Computes the mean and the biased variance of each channel of x (N, C, ...), in f32 if x is stored in 16
 * bits. Returns NULL, or a poisoned tensor that says why there are none. */
weft_tensor *weft__batch_moments(const char *where, weft_tensor *x, weft_tensor **mean,
                                 weft_tensor **variance);

/* The same over the rows of all processes. *count: the number of values a channel, in one element. The
 * processes may have different numbers of rows. */
weft_tensor *weft__shared_moments(const char *where, weft_tensor *x, weft_tensor **mean,
                                  weft_tensor **variance, weft_tensor **count);

/* Uniform numbers of the stream of the layer that is being recorded; used by dropout. See ops/source.c. */
weft_tensor *weft__uniform_of_layer(const char *where, weft_context *ctx, int rank, const int64_t *shape);

#endif
