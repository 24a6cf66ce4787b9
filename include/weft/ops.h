/* Tensor functions. Written by tools/gen_ops.py from src/ops/ops.def: do not edit.
 *
 * Each function takes and returns tensors of one context. A failure gives a poisoned tensor. The macro of
 * the same name passes the caller's file and line on. The plain function is for bindings and function
 * pointers.
 *
 * Brackets after a description name the dtypes that an op takes:
 * - [float]: all floats
 * - [number]: floats and integers
 * - [integer]: integers and bool
 * - [any]: every dtype that is not complex
 * - An arrow names the dtype of the result.
 *
 * Complex numbers are taken by the ops that are defined for them: by exp, mul and eq, not by lt.
 *
 * [broadcasts]: operands of unequal shapes are repeated as in NumPy. Shapes are aligned at their last
 * dimensions. Two extents must be equal, or one of them 1, which is repeated. Dimensions that an operand
 * lacks count as 1. Other shapes are WEFT_ERR_SHAPE.
 *
 * Dtypes are never converted. Operands of unequal dtypes are WEFT_ERR_DTYPE, also if one is a bool or a
 * scalar tensor. Convert one with weft_cast. A C number (weft_add_scalar) takes the dtype of x. A number
 * that this dtype does not have, such as 0.5 for i32, is WEFT_ERR_ARGUMENT. */
#ifndef WEFT_OPS_H
#define WEFT_OPS_H

#include <weft/op_options.h>

#ifdef __cplusplus
extern "C" {
#endif

/* -x. [number] */
WEFT_API weft_tensor *weft_neg(weft_tensor *x);
WEFT_API weft_tensor *weft_neg_at(const char *where, weft_tensor *x);
#define weft_neg(...) weft_neg_at(WEFT_HERE, __VA_ARGS__)

/* e to the power x. [float] */
WEFT_API weft_tensor *weft_exp(weft_tensor *x);
WEFT_API weft_tensor *weft_exp_at(const char *where, weft_tensor *x);
#define weft_exp(...) weft_exp_at(WEFT_HERE, __VA_ARGS__)

/* 2 to the power x. [float] */
WEFT_API weft_tensor *weft_exp2(weft_tensor *x);
WEFT_API weft_tensor *weft_exp2_at(const char *where, weft_tensor *x);
#define weft_exp2(...) weft_exp2_at(WEFT_HERE, __VA_ARGS__)

/* natural logarithm. [float] */
WEFT_API weft_tensor *weft_log(weft_tensor *x);
WEFT_API weft_tensor *weft_log_at(const char *where, weft_tensor *x);
#define weft_log(...) weft_log_at(WEFT_HERE, __VA_ARGS__)

/* logarithm to base 2. [float] */
WEFT_API weft_tensor *weft_log2(weft_tensor *x);
WEFT_API weft_tensor *weft_log2_at(const char *where, weft_tensor *x);
#define weft_log2(...) weft_log2_at(WEFT_HERE, __VA_ARGS__)

/* log(1 + x), exact near 0. [float] */
WEFT_API weft_tensor *weft_log1p(weft_tensor *x);
WEFT_API weft_tensor *weft_log1p_at(const char *where, weft_tensor *x);
#define weft_log1p(...) weft_log1p_at(WEFT_HERE, __VA_ARGS__)

/* exp(x) - 1, exact near 0. [float] */
WEFT_API weft_tensor *weft_expm1(weft_tensor *x);
WEFT_API weft_tensor *weft_expm1_at(const char *where, weft_tensor *x);
#define weft_expm1(...) weft_expm1_at(WEFT_HERE, __VA_ARGS__)

/* sine of x in radians. [float] */
WEFT_API weft_tensor *weft_sin(weft_tensor *x);
WEFT_API weft_tensor *weft_sin_at(const char *where, weft_tensor *x);
#define weft_sin(...) weft_sin_at(WEFT_HERE, __VA_ARGS__)

/* cosine of x in radians. [float] */
WEFT_API weft_tensor *weft_cos(weft_tensor *x);
WEFT_API weft_tensor *weft_cos_at(const char *where, weft_tensor *x);
#define weft_cos(...) weft_cos_at(WEFT_HERE, __VA_ARGS__)

/* hyperbolic tangent. [float] */
WEFT_API weft_tensor *weft_tanh(weft_tensor *x);
WEFT_API weft_tensor *weft_tanh_at(const char *where, weft_tensor *x);
#define weft_tanh(...) weft_tanh_at(WEFT_HERE, __VA_ARGS__)

/* error function. [float] */
WEFT_API weft_tensor *weft_erf(weft_tensor *x);
WEFT_API weft_tensor *weft_erf_at(const char *where, weft_tensor *x);
#define weft_erf(...) weft_erf_at(WEFT_HERE, __VA_ARGS__)

/* square root. [float] */
WEFT_API weft_tensor *weft_sqrt(weft_tensor *x);
WEFT_API weft_tensor *weft_sqrt_at(const char *where, weft_tensor *x);
#define weft_sqrt(...) weft_sqrt_at(WEFT_HERE, __VA_ARGS__)

/* 1 / sqrt(x). [float] */
WEFT_API weft_tensor *weft_rsqrt(weft_tensor *x);
WEFT_API weft_tensor *weft_rsqrt_at(const char *where, weft_tensor *x);
#define weft_rsqrt(...) weft_rsqrt_at(WEFT_HERE, __VA_ARGS__)

/* 1 / x. [float] */
WEFT_API weft_tensor *weft_recip(weft_tensor *x);
WEFT_API weft_tensor *weft_recip_at(const char *where, weft_tensor *x);
#define weft_recip(...) weft_recip_at(WEFT_HERE, __VA_ARGS__)

/* absolute value; the gradient is 0 at 0 and at NaN. [number] */
WEFT_API weft_tensor *weft_abs(weft_tensor *x);
WEFT_API weft_tensor *weft_abs_at(const char *where, weft_tensor *x);
#define weft_abs(...) weft_abs_at(WEFT_HERE, __VA_ARGS__)

/* -1, 0 or 1; NaN stays. [number] */
WEFT_API weft_tensor *weft_sign(weft_tensor *x);
WEFT_API weft_tensor *weft_sign_at(const char *where, weft_tensor *x);
#define weft_sign(...) weft_sign_at(WEFT_HERE, __VA_ARGS__)

/* largest whole number not above x. [float] */
WEFT_API weft_tensor *weft_floor(weft_tensor *x);
WEFT_API weft_tensor *weft_floor_at(const char *where, weft_tensor *x);
#define weft_floor(...) weft_floor_at(WEFT_HERE, __VA_ARGS__)

/* smallest whole number not below x. [float] */
WEFT_API weft_tensor *weft_ceil(weft_tensor *x);
WEFT_API weft_tensor *weft_ceil_at(const char *where, weft_tensor *x);
#define weft_ceil(...) weft_ceil_at(WEFT_HERE, __VA_ARGS__)

/* nearest whole number, halves to even. [float] */
WEFT_API weft_tensor *weft_round(weft_tensor *x);
WEFT_API weft_tensor *weft_round_at(const char *where, weft_tensor *x);
#define weft_round(...) weft_round_at(WEFT_HERE, __VA_ARGS__)

/* whole number towards zero. [float] */
WEFT_API weft_tensor *weft_trunc(weft_tensor *x);
WEFT_API weft_tensor *weft_trunc_at(const char *where, weft_tensor *x);
#define weft_trunc(...) weft_trunc_at(WEFT_HERE, __VA_ARGS__)

/* true where x is NaN. [float -> bool] */
WEFT_API weft_tensor *weft_isnan(weft_tensor *x);
WEFT_API weft_tensor *weft_isnan_at(const char *where, weft_tensor *x);
#define weft_isnan(...) weft_isnan_at(WEFT_HERE, __VA_ARGS__)

/* true where x is infinite. [float -> bool] */
WEFT_API weft_tensor *weft_isinf(weft_tensor *x);
WEFT_API weft_tensor *weft_isinf_at(const char *where, weft_tensor *x);
#define weft_isinf(...) weft_isinf_at(WEFT_HERE, __VA_ARGS__)

/* max(x, 0); the gradient is 0 at 0 and 1 at NaN. [number] */
WEFT_API weft_tensor *weft_relu(weft_tensor *x);
WEFT_API weft_tensor *weft_relu_at(const char *where, weft_tensor *x);
#define weft_relu(...) weft_relu_at(WEFT_HERE, __VA_ARGS__)

/* 1 / (1 + exp(-x)). [float] */
WEFT_API weft_tensor *weft_sigmoid(weft_tensor *x);
WEFT_API weft_tensor *weft_sigmoid_at(const char *where, weft_tensor *x);
#define weft_sigmoid(...) weft_sigmoid_at(WEFT_HERE, __VA_ARGS__)

/* x * Phi(x) with erf (Hendrycks and Gimpel 2016). [float] */
WEFT_API weft_tensor *weft_gelu(weft_tensor *x);
WEFT_API weft_tensor *weft_gelu_at(const char *where, weft_tensor *x);
#define weft_gelu(...) weft_gelu_at(WEFT_HERE, __VA_ARGS__)

/* derivative of gelu. [float] */
WEFT_API weft_tensor *weft_gelu_slope(weft_tensor *x);
WEFT_API weft_tensor *weft_gelu_slope_at(const char *where, weft_tensor *x);
#define weft_gelu_slope(...) weft_gelu_slope_at(WEFT_HERE, __VA_ARGS__)

/* GELU by tanh: 0.5 x (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))), as in GPT-2. [float] */
WEFT_API weft_tensor *weft_gelu_tanh(weft_tensor *x);
WEFT_API weft_tensor *weft_gelu_tanh_at(const char *where, weft_tensor *x);
#define weft_gelu_tanh(...) weft_gelu_tanh_at(WEFT_HERE, __VA_ARGS__)

/* derivative of gelu_tanh. [float] */
WEFT_API weft_tensor *weft_gelu_tanh_slope(weft_tensor *x);
WEFT_API weft_tensor *weft_gelu_tanh_slope_at(const char *where, weft_tensor *x);
#define weft_gelu_tanh_slope(...) weft_gelu_tanh_slope_at(WEFT_HERE, __VA_ARGS__)

/* bitwise complement; logical not of a bool. [integer] */
WEFT_API weft_tensor *weft_not(weft_tensor *x);
WEFT_API weft_tensor *weft_not_at(const char *where, weft_tensor *x);
#define weft_not(...) weft_not_at(WEFT_HERE, __VA_ARGS__)

/* a + b. [number; broadcasts] */
WEFT_API weft_tensor *weft_add(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_add_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_add(...) weft_add_at(WEFT_HERE, __VA_ARGS__)

/* a - b. [number; broadcasts] */
WEFT_API weft_tensor *weft_sub(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_sub_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_sub(...) weft_sub_at(WEFT_HERE, __VA_ARGS__)

/* a * b. [number; broadcasts] */
WEFT_API weft_tensor *weft_mul(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_mul_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_mul(...) weft_mul_at(WEFT_HERE, __VA_ARGS__)

/* a / b; integers truncate; an integer divided by 0 gives 0 and a fault. [number; broadcasts] */
WEFT_API weft_tensor *weft_div(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_div_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_div(...) weft_div_at(WEFT_HERE, __VA_ARGS__)

/* remainder with the sign of b. [number; broadcasts] */
WEFT_API weft_tensor *weft_mod(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_mod_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_mod(...) weft_mod_at(WEFT_HERE, __VA_ARGS__)

/* the larger; NaN where either is NaN, with gradient 1 for both; equal elements get half of the gradient
 * each. [number; broadcasts] */
WEFT_API weft_tensor *weft_maximum(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_maximum_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_maximum(...) weft_maximum_at(WEFT_HERE, __VA_ARGS__)

/* the smaller; NaN where either is NaN, with gradient 1 for both; equal elements get half of the gradient
 * each. [number; broadcasts] */
WEFT_API weft_tensor *weft_minimum(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_minimum_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_minimum(...) weft_minimum_at(WEFT_HERE, __VA_ARGS__)

/* a to the power b. [float; broadcasts] */
WEFT_API weft_tensor *weft_pow(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_pow_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_pow(...) weft_pow_at(WEFT_HERE, __VA_ARGS__)

/* angle of the point (b, a), from -pi to pi; the gradient is 0 at the origin. [float; broadcasts] */
WEFT_API weft_tensor *weft_atan2(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_atan2_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_atan2(...) weft_atan2_at(WEFT_HERE, __VA_ARGS__)

/* sqrt(a^2 + b^2) without intermediate overflow; the gradient is 0 at the origin. [float; broadcasts] */
WEFT_API weft_tensor *weft_hypot(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_hypot_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_hypot(...) weft_hypot_at(WEFT_HERE, __VA_ARGS__)

/* a equal to b. [any -> bool; broadcasts] */
WEFT_API weft_tensor *weft_eq(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_eq_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_eq(...) weft_eq_at(WEFT_HERE, __VA_ARGS__)

/* a not equal to b. [any -> bool; broadcasts] */
WEFT_API weft_tensor *weft_ne(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_ne_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_ne(...) weft_ne_at(WEFT_HERE, __VA_ARGS__)

/* a less than b. [any -> bool; broadcasts] */
WEFT_API weft_tensor *weft_lt(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_lt_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_lt(...) weft_lt_at(WEFT_HERE, __VA_ARGS__)

/* a at most b. [any -> bool; broadcasts] */
WEFT_API weft_tensor *weft_le(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_le_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_le(...) weft_le_at(WEFT_HERE, __VA_ARGS__)

/* a greater than b. [any -> bool; broadcasts] */
WEFT_API weft_tensor *weft_gt(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_gt_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_gt(...) weft_gt_at(WEFT_HERE, __VA_ARGS__)

/* a at least b. [any -> bool; broadcasts] */
WEFT_API weft_tensor *weft_ge(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_ge_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_ge(...) weft_ge_at(WEFT_HERE, __VA_ARGS__)

/* bitwise and. [integer; broadcasts] */
WEFT_API weft_tensor *weft_and(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_and_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_and(...) weft_and_at(WEFT_HERE, __VA_ARGS__)

/* bitwise or. [integer; broadcasts] */
WEFT_API weft_tensor *weft_or(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_or_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_or(...) weft_or_at(WEFT_HERE, __VA_ARGS__)

/* bitwise exclusive or. [integer; broadcasts] */
WEFT_API weft_tensor *weft_xor(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_xor_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_xor(...) weft_xor_at(WEFT_HERE, __VA_ARGS__)

/* a shifted left by b modulo the width. [integer; broadcasts] */
WEFT_API weft_tensor *weft_shl(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_shl_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_shl(...) weft_shl_at(WEFT_HERE, __VA_ARGS__)

/* a shifted right by b modulo the width, arithmetic. [integer; broadcasts] */
WEFT_API weft_tensor *weft_shr(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_shr_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_shr(...) weft_shr_at(WEFT_HERE, __VA_ARGS__)

/* a where the condition, a bool, is true; else b. [any; broadcasts] */
WEFT_API weft_tensor *weft_where(weft_tensor *condition, weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_where_at(const char *where, weft_tensor *condition, weft_tensor *a, weft_tensor *b);
#define weft_where(...) weft_where_at(WEFT_HERE, __VA_ARGS__)

/* x with another shape of equal size. One extent may be -1; it is then computed from the others. A view. */
WEFT_API weft_tensor *weft_reshape(weft_tensor *x, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_reshape_at(const char *where, weft_tensor *x, int rank, const int64_t *shape);
#define weft_reshape(...) weft_reshape_at(WEFT_HERE, __VA_ARGS__)

/* Dimension i of the result is dimension order[i] of x. A view. */
WEFT_API weft_tensor *weft_permute(weft_tensor *x, const int *order);
WEFT_API weft_tensor *weft_permute_at(const char *where, weft_tensor *x, const int *order);
#define weft_permute(...) weft_permute_at(WEFT_HERE, __VA_ARGS__)

/* Swaps two dimensions. Negative ones count from the end. A view. */
WEFT_API weft_tensor *weft_transpose(weft_tensor *x, int dim0, int dim1);
WEFT_API weft_tensor *weft_transpose_at(const char *where, weft_tensor *x, int dim0, int dim1);
#define weft_transpose(...) weft_transpose_at(WEFT_HERE, __VA_ARGS__)

/* Repeats x along extents of 1 and along new leading dimensions, as NumPy's broadcasting does. A view. */
WEFT_API weft_tensor *weft_expand(weft_tensor *x, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_expand_at(const char *where, weft_tensor *x, int rank, const int64_t *shape);
#define weft_expand(...) weft_expand_at(WEFT_HERE, __VA_ARGS__)

/* Adds elements of `value` around x: before[i] at the start of dimension i, after[i] at its end. */
WEFT_API weft_tensor *weft_pad(weft_tensor *x, const int64_t *before, const int64_t *after, double value);
WEFT_API weft_tensor *weft_pad_at(const char *where, weft_tensor *x, const int64_t *before, const int64_t *after, double value);
#define weft_pad(...) weft_pad_at(WEFT_HERE, __VA_ARGS__)

/* Elements start, start + step, ... before stop of each dimension, as in Python: negative positions count
 * from the end, positions are clamped, negative steps flip. NULL takes all elements. A view. */
WEFT_API weft_tensor *weft_slice(weft_tensor *x, const int64_t *start, const int64_t *stop, const int64_t *step);
WEFT_API weft_tensor *weft_slice_at(const char *where, weft_tensor *x, const int64_t *start, const int64_t *stop, const int64_t *step);
#define weft_slice(...) weft_slice_at(WEFT_HERE, __VA_ARGS__)

/* Elements start..start+extent-1 of one dimension. A view. */
WEFT_API weft_tensor *weft_narrow(weft_tensor *x, int dim, int64_t start, int64_t extent);
WEFT_API weft_tensor *weft_narrow_at(const char *where, weft_tensor *x, int dim, int64_t start, int64_t extent);
#define weft_narrow(...) weft_narrow_at(WEFT_HERE, __VA_ARGS__)

/* x in reverse order along one dimension. A view. */
WEFT_API weft_tensor *weft_flip(weft_tensor *x, int dim);
WEFT_API weft_tensor *weft_flip_at(const char *where, weft_tensor *x, int dim);
#define weft_flip(...) weft_flip_at(WEFT_HERE, __VA_ARGS__)

/* x without dimension dim, whose extent is 1. A view. */
WEFT_API weft_tensor *weft_squeeze(weft_tensor *x, int dim);
WEFT_API weft_tensor *weft_squeeze_at(const char *where, weft_tensor *x, int dim);
#define weft_squeeze(...) weft_squeeze_at(WEFT_HERE, __VA_ARGS__)

/* x with a new dimension of extent 1 that becomes dimension dim. A view. */
WEFT_API weft_tensor *weft_unsqueeze(weft_tensor *x, int dim);
WEFT_API weft_tensor *weft_unsqueeze_at(const char *where, weft_tensor *x, int dim);
#define weft_unsqueeze(...) weft_unsqueeze_at(WEFT_HERE, __VA_ARGS__)

/* Joins 1 to 65,536 parts along axis. Their other extents and their dtypes must agree. */
WEFT_API weft_tensor *weft_concat(weft_tensor *const *parts, int count, int axis);
WEFT_API weft_tensor *weft_concat_at(const char *where, weft_tensor *const *parts, int count, int axis);
#define weft_concat(...) weft_concat_at(WEFT_HERE, __VA_ARGS__)

/* Joins 1 to 65,536 parts of one shape along a new dimension, which becomes dimension axis. */
WEFT_API weft_tensor *weft_stack(weft_tensor *const *parts, int count, int axis);
WEFT_API weft_tensor *weft_stack_at(const char *where, weft_tensor *const *parts, int count, int axis);
#define weft_stack(...) weft_stack_at(WEFT_HERE, __VA_ARGS__)

/* Moves x by `shift` places along a dimension. Elements that leave at one end enter at the other.
 * WEFT_ALL_AXES rolls x as if it were flat. */
WEFT_API weft_tensor *weft_roll(weft_tensor *x, int64_t shift, int dim);
WEFT_API weft_tensor *weft_roll_at(const char *where, weft_tensor *x, int64_t shift, int dim);
#define weft_roll(...) weft_roll_at(WEFT_HERE, __VA_ARGS__)

/* Repeats x as a whole, counts[i] times along dimension i (PyTorch: repeat). */
WEFT_API weft_tensor *weft_tile(weft_tensor *x, const int64_t *counts);
WEFT_API weft_tensor *weft_tile_at(const char *where, weft_tensor *x, const int64_t *counts);
#define weft_tile(...) weft_tile_at(WEFT_HERE, __VA_ARGS__)

/* Repeats each slice of x along a dimension `count` times in a row (NumPy: repeat). */
WEFT_API weft_tensor *weft_repeat_interleave(weft_tensor *x, int64_t count, int dim);
WEFT_API weft_tensor *weft_repeat_interleave_at(const char *where, weft_tensor *x, int64_t count, int dim);
#define weft_repeat_interleave(...) weft_repeat_interleave_at(WEFT_HERE, __VA_ARGS__)

/* Pads x with elements of its own. WEFT_PAD_REFLECT mirrors x without its edge, by less than the extent.
 * WEFT_PAD_REPLICATE repeats the edge. WEFT_PAD_CIRCULAR continues at the other end, by at most the
 * extent. To pad with a constant, use pad. */
WEFT_API weft_tensor *weft_pad_with(weft_tensor *x, const int64_t *before, const int64_t *after, weft_pad_mode mode);
WEFT_API weft_tensor *weft_pad_with_at(const char *where, weft_tensor *x, const int64_t *before, const int64_t *after, weft_pad_mode mode);
#define weft_pad_with(...) weft_pad_with_at(WEFT_HERE, __VA_ARGS__)

/* Elements (i, i + offset) of dimensions dim0 and dim1. The diagonal becomes the last dimension. A view. */
WEFT_API weft_tensor *weft_diagonal(weft_tensor *x, int64_t offset, int dim0, int dim1);
WEFT_API weft_tensor *weft_diagonal_at(const char *where, weft_tensor *x, int64_t offset, int dim0, int dim1);
#define weft_diagonal(...) weft_diagonal_at(WEFT_HERE, __VA_ARGS__)

/* Sum of the diagonal of the last two dimensions. */
WEFT_API weft_tensor *weft_trace(weft_tensor *x);
WEFT_API weft_tensor *weft_trace_at(const char *where, weft_tensor *x);
#define weft_trace(...) weft_trace_at(WEFT_HERE, __VA_ARGS__)

/* x where column - row <= k in the last two dimensions, else 0. */
WEFT_API weft_tensor *weft_tril(weft_tensor *x, int64_t k);
WEFT_API weft_tensor *weft_tril_at(const char *where, weft_tensor *x, int64_t k);
#define weft_tril(...) weft_tril_at(WEFT_HERE, __VA_ARGS__)

/* x where column - row >= k in the last two dimensions, else 0. */
WEFT_API weft_tensor *weft_triu(weft_tensor *x, int64_t k);
WEFT_API weft_tensor *weft_triu_at(const char *where, weft_tensor *x, int64_t k);
#define weft_triu(...) weft_triu_at(WEFT_HERE, __VA_ARGS__)

/* Multiplies every element of a by every element of b: (m) and (n) -> (m, n). Other shapes are treated as
 * flat. The dot product of two vectors is their matmul. */
WEFT_API weft_tensor *weft_outer(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_outer_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_outer(...) weft_outer_at(WEFT_HERE, __VA_ARGS__)

/* The constant `value` where mask is true, else x. Both are broadcast against each other. */
WEFT_API weft_tensor *weft_masked_fill(weft_tensor *x, weft_tensor *mask, double value);
WEFT_API weft_tensor *weft_masked_fill_at(const char *where, weft_tensor *x, weft_tensor *mask, double value);
#define weft_masked_fill(...) weft_masked_fill_at(WEFT_HERE, __VA_ARGS__)

/* Integers (...) -> (..., classes): 1 at the class, else 0. A class outside 0..classes-1 gives all 0. */
WEFT_API weft_tensor *weft_one_hot(weft_tensor *index, int64_t classes, weft_dtype dtype);
WEFT_API weft_tensor *weft_one_hot_at(const char *where, weft_tensor *index, int64_t classes, weft_dtype dtype);
#define weft_one_hot(...) weft_one_hot_at(WEFT_HERE, __VA_ARGS__)

/* Windows of `size` elements, `dilation` apart, that begin every `step` elements along dim. Dimension dim
 * then counts windows, and a new last dimension holds their elements. A view whose windows overlap. */
WEFT_API weft_tensor *weft_unfold(weft_tensor *x, int dim, int64_t size, int64_t step, int64_t dilation);
WEFT_API weft_tensor *weft_unfold_at(const char *where, weft_tensor *x, int dim, int64_t size, int64_t step, int64_t dilation);
#define weft_unfold(...) weft_unfold_at(WEFT_HERE, __VA_ARGS__)

/* Adds windows up to a dimension of `extent`: the gradient of unfold. x has the shape of unfold's result:
 * dim counts windows, the last dimension holds their elements. Each element is the sum over the windows
 * that contain it, in order. */
WEFT_API weft_tensor *weft_fold(weft_tensor *x, int dim, int64_t extent, int64_t step, int64_t dilation);
WEFT_API weft_tensor *weft_fold_at(const char *where, weft_tensor *x, int dim, int64_t extent, int64_t step, int64_t dilation);
#define weft_fold(...) weft_fold_at(WEFT_HERE, __VA_ARGS__)

/* Convolution (as a cross-correlation): x (N, C, L), weight (O, C / groups, K), bias (O) or NULL -> (N, O,
 * (L + 2 padding - dilation (K - 1) - 1) / stride + 1). */
WEFT_API weft_tensor *weft_conv1d(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
WEFT_API weft_tensor *weft_conv1d_at(const char *where, weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
#define weft_conv1d(...) weft_conv1d_at(WEFT_HERE, __VA_ARGS__)

/* Convolution (as a cross-correlation): x (N, C, H, W), weight (O, C / groups, KH, KW), bias (O) or NULL
 * -> (N, O, OH, OW). OH and OW are computed as in conv1d. */
WEFT_API weft_tensor *weft_conv2d(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
WEFT_API weft_tensor *weft_conv2d_at(const char *where, weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
#define weft_conv2d(...) weft_conv2d_at(WEFT_HERE, __VA_ARGS__)

/* Transposed convolution, the gradient of conv1d by its input: x (N, C, L), weight (C, O / groups, K),
 * bias (O) or NULL -> (N, O, (L - 1) stride - 2 padding + dilation (K - 1) + output_padding + 1). */
WEFT_API weft_tensor *weft_conv_transpose1d(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
WEFT_API weft_tensor *weft_conv_transpose1d_at(const char *where, weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
#define weft_conv_transpose1d(...) weft_conv_transpose1d_at(WEFT_HERE, __VA_ARGS__)

/* Transposed convolution, the gradient of conv2d by its input: x (N, C, H, W), weight (C, O / groups, KH,
 * KW), bias (O) or NULL -> (N, O, OH, OW). OH and OW are computed as in conv_transpose1d. */
WEFT_API weft_tensor *weft_conv_transpose2d(weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
WEFT_API weft_tensor *weft_conv_transpose2d_at(const char *where, weft_tensor *x, weft_tensor *weight, weft_tensor *bias, const weft_conv_options *options);
#define weft_conv_transpose2d(...) weft_conv_transpose2d_at(WEFT_HERE, __VA_ARGS__)

/* Largest element of each window of the last dimension. NaN counts as the largest. If elements are equal,
 * the first one gets the gradient. */
WEFT_API weft_tensor *weft_max_pool1d(weft_tensor *x, const weft_pool_options *options);
WEFT_API weft_tensor *weft_max_pool1d_at(const char *where, weft_tensor *x, const weft_pool_options *options);
#define weft_max_pool1d(...) weft_max_pool1d_at(WEFT_HERE, __VA_ARGS__)

/* Largest element of each window of the last two dimensions. NaN counts as the largest. If elements are
 * equal, the first one, row by row, gets the gradient. */
WEFT_API weft_tensor *weft_max_pool2d(weft_tensor *x, const weft_pool_options *options);
WEFT_API weft_tensor *weft_max_pool2d_at(const char *where, weft_tensor *x, const weft_pool_options *options);
#define weft_max_pool2d(...) weft_max_pool2d_at(WEFT_HERE, __VA_ARGS__)

/* Mean of each window of the last dimension. */
WEFT_API weft_tensor *weft_avg_pool1d(weft_tensor *x, const weft_pool_options *options);
WEFT_API weft_tensor *weft_avg_pool1d_at(const char *where, weft_tensor *x, const weft_pool_options *options);
#define weft_avg_pool1d(...) weft_avg_pool1d_at(WEFT_HERE, __VA_ARGS__)

/* Mean of each window of the last two dimensions. */
WEFT_API weft_tensor *weft_avg_pool2d(weft_tensor *x, const weft_pool_options *options);
WEFT_API weft_tensor *weft_avg_pool2d_at(const char *where, weft_tensor *x, const weft_pool_options *options);
#define weft_avg_pool2d(...) weft_avg_pool2d_at(WEFT_HERE, __VA_ARGS__)

/* Means of `size` windows that cover the last dimension, of L elements. Window i reaches from floor(i L /
 * size) to ceil((i + 1) L / size), exclusive. Size 1 gives the mean of all. */
WEFT_API weft_tensor *weft_adaptive_avg_pool1d(weft_tensor *x, int64_t size);
WEFT_API weft_tensor *weft_adaptive_avg_pool1d_at(const char *where, weft_tensor *x, int64_t size);
#define weft_adaptive_avg_pool1d(...) weft_adaptive_avg_pool1d_at(WEFT_HERE, __VA_ARGS__)

/* Means of rows x columns windows that cover the last two dimensions, placed as in adaptive_avg_pool1d. 1
 * x 1 is global average pooling. */
WEFT_API weft_tensor *weft_adaptive_avg_pool2d(weft_tensor *x, int64_t rows, int64_t columns);
WEFT_API weft_tensor *weft_adaptive_avg_pool2d_at(const char *where, weft_tensor *x, int64_t rows, int64_t columns);
#define weft_adaptive_avg_pool2d(...) weft_adaptive_avg_pool2d_at(WEFT_HERE, __VA_ARGS__)

/* Largest elements of `size` windows that cover the last dimension, placed as in adaptive_avg_pool1d. NaN
 * counts as the largest. If elements are equal, the first one gets the gradient. */
WEFT_API weft_tensor *weft_adaptive_max_pool1d(weft_tensor *x, int64_t size);
WEFT_API weft_tensor *weft_adaptive_max_pool1d_at(const char *where, weft_tensor *x, int64_t size);
#define weft_adaptive_max_pool1d(...) weft_adaptive_max_pool1d_at(WEFT_HERE, __VA_ARGS__)

/* Largest elements of rows x columns windows that cover the last two dimensions. NaN counts as the
 * largest. If elements are equal, the first one, row by row, gets the gradient. */
WEFT_API weft_tensor *weft_adaptive_max_pool2d(weft_tensor *x, int64_t rows, int64_t columns);
WEFT_API weft_tensor *weft_adaptive_max_pool2d_at(const char *where, weft_tensor *x, int64_t rows, int64_t columns);
#define weft_adaptive_max_pool2d(...) weft_adaptive_max_pool2d_at(WEFT_HERE, __VA_ARGS__)

/* Resamples the last dimension to another extent. WEFT_NEAREST takes the nearest element before.
 * WEFT_LINEAR interpolates between the centres of elements. Both are as in PyTorch with align_corners
 * false. */
WEFT_API weft_tensor *weft_interpolate1d(weft_tensor *x, const weft_interpolate_options *options);
WEFT_API weft_tensor *weft_interpolate1d_at(const char *where, weft_tensor *x, const weft_interpolate_options *options);
#define weft_interpolate1d(...) weft_interpolate1d_at(WEFT_HERE, __VA_ARGS__)

/* Resamples the last two dimensions to other extents (upsampling): nearest, or bilinear, as interpolate1d. */
WEFT_API weft_tensor *weft_interpolate2d(weft_tensor *x, const weft_interpolate_options *options);
WEFT_API weft_tensor *weft_interpolate2d_at(const char *where, weft_tensor *x, const weft_interpolate_options *options);
#define weft_interpolate2d(...) weft_interpolate2d_at(WEFT_HERE, __VA_ARGS__)

/* re + i im: c64 from f32, c128 from f64. Both are broadcast against each other. */
WEFT_API weft_tensor *weft_complex(weft_tensor *re, weft_tensor *im);
WEFT_API weft_tensor *weft_complex_at(const char *where, weft_tensor *re, weft_tensor *im);
#define weft_complex(...) weft_complex_at(WEFT_HERE, __VA_ARGS__)

/* The real part of complex numbers, a view. Other dtypes are returned unchanged. */
WEFT_API weft_tensor *weft_real(weft_tensor *x);
WEFT_API weft_tensor *weft_real_at(const char *where, weft_tensor *x);
#define weft_real(...) weft_real_at(WEFT_HERE, __VA_ARGS__)

/* The imaginary part of complex numbers. A view. */
WEFT_API weft_tensor *weft_imag(weft_tensor *x);
WEFT_API weft_tensor *weft_imag_at(const char *where, weft_tensor *x);
#define weft_imag(...) weft_imag_at(WEFT_HERE, __VA_ARGS__)

/* re - i im of complex numbers. Other dtypes are returned unchanged. */
WEFT_API weft_tensor *weft_conj(weft_tensor *x);
WEFT_API weft_tensor *weft_conj_at(const char *where, weft_tensor *x);
#define weft_conj(...) weft_conj_at(WEFT_HERE, __VA_ARGS__)

/* The angle of complex numbers, from -pi to pi. */
WEFT_API weft_tensor *weft_angle(weft_tensor *x);
WEFT_API weft_tensor *weft_angle_at(const char *where, weft_tensor *x);
#define weft_angle(...) weft_angle_at(WEFT_HERE, __VA_ARGS__)

/* Complex numbers as pairs of real and imaginary part, in a new last dimension of 2. A view. */
WEFT_API weft_tensor *weft_view_as_real(weft_tensor *x);
WEFT_API weft_tensor *weft_view_as_real_at(const char *where, weft_tensor *x);
#define weft_view_as_real(...) weft_view_as_real_at(WEFT_HERE, __VA_ARGS__)

/* Pairs of f32 or f64 in a last dimension of 2 as complex numbers. A view. */
WEFT_API weft_tensor *weft_view_as_complex(weft_tensor *x);
WEFT_API weft_tensor *weft_view_as_complex_at(const char *where, weft_tensor *x);
#define weft_view_as_complex(...) weft_view_as_complex_at(WEFT_HERE, __VA_ARGS__)

/* x converted to another dtype. Float to integer truncates and saturates; NaN gives 0. To bool: x != 0.
 * Complex to real drops the imaginary part. */
WEFT_API weft_tensor *weft_cast(weft_tensor *x, weft_dtype dtype);
WEFT_API weft_tensor *weft_cast_at(const char *where, weft_tensor *x, weft_dtype dtype);
#define weft_cast(...) weft_cast_at(WEFT_HERE, __VA_ARGS__)

/* x, but no gradient flows through the result. */
WEFT_API weft_tensor *weft_detach(weft_tensor *x);
WEFT_API weft_tensor *weft_detach_at(const char *where, weft_tensor *x);
#define weft_detach(...) weft_detach_at(WEFT_HERE, __VA_ARGS__)

/* Sum along axis; 0 over nothing. f16, bf16 and f32 accumulate in f32, in a fixed blocked order. Bools and
 * integers below 64 bits give i64. */
WEFT_API weft_tensor *weft_sum(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_sum_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_sum(...) weft_sum_at(WEFT_HERE, __VA_ARGS__)

/* Largest element along axis, which must not be empty. NaN counts as the largest. Equal elements share the
 * gradient, and so do NaNs. */
WEFT_API weft_tensor *weft_max(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_max_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_max(...) weft_max_at(WEFT_HERE, __VA_ARGS__)

/* Smallest element along axis, which must not be empty. NaN counts as the smallest. Equal elements share
 * the gradient, and so do NaNs. */
WEFT_API weft_tensor *weft_min(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_min_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_min(...) weft_min_at(WEFT_HERE, __VA_ARGS__)

/* Product along axis; 1 over nothing. Bools and integers below 64 bits give i64. */
WEFT_API weft_tensor *weft_prod(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_prod_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_prod(...) weft_prod_at(WEFT_HERE, __VA_ARGS__)

/* Arithmetic mean of floats along axis. */
WEFT_API weft_tensor *weft_mean(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_mean_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_mean(...) weft_mean_at(WEFT_HERE, __VA_ARGS__)

/* Variance along axis: squared distances from the mean, divided by n - correction. 0 gives the variance of
 * a population, 1 the estimate from a sample. Computed in two passes. */
WEFT_API weft_tensor *weft_var(weft_tensor *x, int axis, double correction, bool keep);
WEFT_API weft_tensor *weft_var_at(const char *where, weft_tensor *x, int axis, double correction, bool keep);
#define weft_var(...) weft_var_at(WEFT_HERE, __VA_ARGS__)

/* Standard deviation: the square root of var. Where it is 0, its gradient is 0, as in PyTorch. */
WEFT_API weft_tensor *weft_std(weft_tensor *x, int axis, double correction, bool keep);
WEFT_API weft_tensor *weft_std_at(const char *where, weft_tensor *x, int axis, double correction, bool keep);
#define weft_std(...) weft_std_at(WEFT_HERE, __VA_ARGS__)

/* p-norm along axis: (sum of |x|^p)^(1/p) for any other p, the largest |x| for p = inf, the smallest |x|
 * for p = -inf, the number of nonzero elements for p = 0. Where the norm is 0, its gradient is 0. */
WEFT_API weft_tensor *weft_norm(weft_tensor *x, double p, int axis, bool keep);
WEFT_API weft_tensor *weft_norm_at(const char *where, weft_tensor *x, double p, int axis, bool keep);
#define weft_norm(...) weft_norm_at(WEFT_HERE, __VA_ARGS__)

/* True if any element along axis is not 0. A bool; false over nothing. */
WEFT_API weft_tensor *weft_any(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_any_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_any(...) weft_any_at(WEFT_HERE, __VA_ARGS__)

/* True if all elements along axis are not 0. A bool; true over nothing. */
WEFT_API weft_tensor *weft_all(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_all_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_all(...) weft_all_at(WEFT_HERE, __VA_ARGS__)

/* Index (i32) of the first largest element along axis, or of the first NaN if there is one. */
WEFT_API weft_tensor *weft_argmax(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_argmax_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_argmax(...) weft_argmax_at(WEFT_HERE, __VA_ARGS__)

/* Index (i32) of the first smallest element along axis, or of the first NaN if there is one. */
WEFT_API weft_tensor *weft_argmin(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_argmin_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_argmin(...) weft_argmin_at(WEFT_HERE, __VA_ARGS__)

/* Sums x over the dimensions that broadcasting from `shape` to x's shape repeats: the gradient of expand. */
WEFT_API weft_tensor *weft_sum_to(weft_tensor *x, int rank, const int64_t *shape);
WEFT_API weft_tensor *weft_sum_to_at(const char *where, weft_tensor *x, int rank, const int64_t *shape);
#define weft_sum_to(...) weft_sum_to_at(WEFT_HERE, __VA_ARGS__)

/* Matrix product (..., m, k) x (..., k, n) -> (..., m, n). Leading dimensions broadcast. Vector operands
 * are treated as in NumPy. */
WEFT_API weft_tensor *weft_matmul(weft_tensor *a, weft_tensor *b);
WEFT_API weft_tensor *weft_matmul_at(const char *where, weft_tensor *a, weft_tensor *b);
#define weft_matmul(...) weft_matmul_at(WEFT_HERE, __VA_ARGS__)

/* The numbers of packed rows: u8 (..., bytes) -> f32 (..., k). It has no gradient. */
WEFT_API weft_tensor *weft_unpack(weft_tensor *packed, weft_packed_format format);
WEFT_API weft_tensor *weft_unpack_at(const char *where, weft_tensor *packed, weft_packed_format format);
#define weft_unpack(...) weft_unpack_at(WEFT_HERE, __VA_ARGS__)

/* x times the transpose of a packed matrix: x (..., k), packed u8 (n, bytes of k numbers) -> (..., n). The
 * CPU rounds x in f32 and below: each number by at most 1/254 of the largest magnitude among the 32
 * numbers (Q6_K: 16) that meet one scale. x has a gradient, which is computed without this rounding.
 * packed has none. */
WEFT_API weft_tensor *weft_matmul_packed(weft_tensor *x, weft_tensor *packed, weft_packed_format format);
WEFT_API weft_tensor *weft_matmul_packed_at(const char *where, weft_tensor *x, weft_tensor *packed, weft_packed_format format);
#define weft_matmul_packed(...) weft_matmul_packed_at(WEFT_HERE, __VA_ARGS__)

/* Einstein summation as in NumPy, for example `ij,jk->ik`. Each dimension of up to 32 operands has a
 * letter. Letters that the output lacks are summed. A letter repeated in one operand takes its diagonal.
 * `...` stands for dimensions that broadcast. Without `->` the output has the ellipsis, then the letters
 * that occur once, in alphabetical order (capitals first). Pairs of operands are contracted by matmul, the
 * cheapest pair first. */
WEFT_API weft_tensor *weft_einsum(const char *equation, weft_tensor *const *operands, int count);
WEFT_API weft_tensor *weft_einsum_at(const char *where, const char *equation, weft_tensor *const *operands, int count);
#define weft_einsum(...) weft_einsum_at(WEFT_HERE, __VA_ARGS__)

/* Slices of x along axis at the positions in index, as NumPy's take: x (A, n, B), index (I) of any shape
 * -> (A, I, B). The next status reports an index outside 0..n-1. */
WEFT_API weft_tensor *weft_gather(weft_tensor *x, weft_tensor *index, int axis);
WEFT_API weft_tensor *weft_gather_at(const char *where, weft_tensor *x, weft_tensor *index, int axis);
#define weft_gather(...) weft_gather_at(WEFT_HERE, __VA_ARGS__)

/* x plus slices of source, added at the positions in index along axis: x (A, n, B), index (I), source (A,
 * I, B) -> (A, n, B). Slices of equal index are added in order, so the result is deterministic. */
WEFT_API weft_tensor *weft_scatter_add(weft_tensor *x, weft_tensor *index, weft_tensor *source, int axis);
WEFT_API weft_tensor *weft_scatter_add_at(const char *where, weft_tensor *x, weft_tensor *index, weft_tensor *source, int axis);
#define weft_scatter_add(...) weft_scatter_add_at(WEFT_HERE, __VA_ARGS__)

/* x with value written over elements from offset on, along axis. offset is an i32 scalar tensor, an input
 * of the program. */
WEFT_API weft_tensor *weft_update(weft_tensor *x, weft_tensor *value, weft_tensor *offset, int axis);
WEFT_API weft_tensor *weft_update_at(const char *where, weft_tensor *x, weft_tensor *value, weft_tensor *offset, int axis);
#define weft_update(...) weft_update_at(WEFT_HERE, __VA_ARGS__)

/* Picks elements along axis in each row of x, as NumPy's take_along_axis (PyTorch: gather): x (A, n, B),
 * index (A, I, B) -> (A, I, B). The next status reports an index outside 0..n-1. */
WEFT_API weft_tensor *weft_take_along_axis(weft_tensor *x, weft_tensor *index, int axis);
WEFT_API weft_tensor *weft_take_along_axis_at(const char *where, weft_tensor *x, weft_tensor *index, int axis);
#define weft_take_along_axis(...) weft_take_along_axis_at(WEFT_HERE, __VA_ARGS__)

/* Sum of the elements up to each one along axis. Floats accumulate in f32 or wider. Bools and integers
 * below 64 bits give i64. */
WEFT_API weft_tensor *weft_cumsum(weft_tensor *x, int axis);
WEFT_API weft_tensor *weft_cumsum_at(const char *where, weft_tensor *x, int axis);
#define weft_cumsum(...) weft_cumsum_at(WEFT_HERE, __VA_ARGS__)

/* Product of the elements up to each one along axis, with the dtypes of cumsum. The gradient is right also
 * where elements are 0. */
WEFT_API weft_tensor *weft_cumprod(weft_tensor *x, int axis);
WEFT_API weft_tensor *weft_cumprod_at(const char *where, weft_tensor *x, int axis);
#define weft_cumprod(...) weft_cumprod_at(WEFT_HERE, __VA_ARGS__)

/* Sorts x along axis. *index, if index is not NULL, gets the position that each element had. */
WEFT_API weft_tensor *weft_sort(weft_tensor *x, int axis, bool descending, weft_tensor **index);
WEFT_API weft_tensor *weft_sort_at(const char *where, weft_tensor *x, int axis, bool descending, weft_tensor **index);
#define weft_sort(...) weft_sort_at(WEFT_HERE, __VA_ARGS__)

/* The positions along axis that sort x. */
WEFT_API weft_tensor *weft_argsort(weft_tensor *x, int axis, bool descending);
WEFT_API weft_tensor *weft_argsort_at(const char *where, weft_tensor *x, int axis, bool descending);
#define weft_argsort(...) weft_argsort_at(WEFT_HERE, __VA_ARGS__)

/* The k largest (or smallest) elements along axis, sorted. *index, if index is not NULL, gets the
 * positions that they had. */
WEFT_API weft_tensor *weft_topk(weft_tensor *x, int64_t k, int axis, bool largest, weft_tensor **index);
WEFT_API weft_tensor *weft_topk_at(const char *where, weft_tensor *x, int64_t k, int axis, bool largest, weft_tensor **index);
#define weft_topk(...) weft_topk_at(WEFT_HERE, __VA_ARGS__)

/* x + value. The value is a constant of the program. */
WEFT_API weft_tensor *weft_add_scalar(weft_tensor *x, double value);
WEFT_API weft_tensor *weft_add_scalar_at(const char *where, weft_tensor *x, double value);
#define weft_add_scalar(...) weft_add_scalar_at(WEFT_HERE, __VA_ARGS__)

/* x * value. The value is a constant of the program. */
WEFT_API weft_tensor *weft_mul_scalar(weft_tensor *x, double value);
WEFT_API weft_tensor *weft_mul_scalar_at(const char *where, weft_tensor *x, double value);
#define weft_mul_scalar(...) weft_mul_scalar_at(WEFT_HERE, __VA_ARGS__)

/* x * x */
WEFT_API weft_tensor *weft_square(weft_tensor *x);
WEFT_API weft_tensor *weft_square_at(const char *where, weft_tensor *x);
#define weft_square(...) weft_square_at(WEFT_HERE, __VA_ARGS__)

/* x limited to low..high; -HUGE_VAL and HUGE_VAL set no limit. The gradient is 0 at a limit (as relu's is
 * at 0) and at NaN. */
WEFT_API weft_tensor *weft_clamp(weft_tensor *x, double low, double high);
WEFT_API weft_tensor *weft_clamp_at(const char *where, weft_tensor *x, double low, double high);
#define weft_clamp(...) weft_clamp_at(WEFT_HERE, __VA_ARGS__)

/* Zeros of x's shape and dtype. */
WEFT_API weft_tensor *weft_zeros_like(weft_tensor *x);
WEFT_API weft_tensor *weft_zeros_like_at(const char *where, weft_tensor *x);
#define weft_zeros_like(...) weft_zeros_like_at(WEFT_HERE, __VA_ARGS__)

/* A constant of x's shape and dtype. */
WEFT_API weft_tensor *weft_full_like(weft_tensor *x, double value);
WEFT_API weft_tensor *weft_full_like_at(const char *where, weft_tensor *x, double value);
#define weft_full_like(...) weft_full_like_at(WEFT_HERE, __VA_ARGS__)

/* exp(x - max) divided by its sum along axis. A row of only -inf gives 0, with gradient 0. */
WEFT_API weft_tensor *weft_softmax(weft_tensor *x, int axis);
WEFT_API weft_tensor *weft_softmax_at(const char *where, weft_tensor *x, int axis);
#define weft_softmax(...) weft_softmax_at(WEFT_HERE, __VA_ARGS__)

/* x - logsumexp(x) along axis. */
WEFT_API weft_tensor *weft_log_softmax(weft_tensor *x, int axis);
WEFT_API weft_tensor *weft_log_softmax_at(const char *where, weft_tensor *x, int axis);
#define weft_log_softmax(...) weft_log_softmax_at(WEFT_HERE, __VA_ARGS__)

/* log of the sum of exp(x) along axis, without overflow. A row of only -inf gives -inf; a row with inf
 * gives inf. */
WEFT_API weft_tensor *weft_logsumexp(weft_tensor *x, int axis, bool keep);
WEFT_API weft_tensor *weft_logsumexp_at(const char *where, weft_tensor *x, int axis, bool keep);
#define weft_logsumexp(...) weft_logsumexp_at(WEFT_HERE, __VA_ARGS__)

/* x * sigmoid(x) */
WEFT_API weft_tensor *weft_silu(weft_tensor *x);
WEFT_API weft_tensor *weft_silu_at(const char *where, weft_tensor *x);
#define weft_silu(...) weft_silu_at(WEFT_HERE, __VA_ARGS__)

/* x where x > 0, else slope * x. At NaN the gradient is slope. */
WEFT_API weft_tensor *weft_leaky_relu(weft_tensor *x, double slope);
WEFT_API weft_tensor *weft_leaky_relu_at(const char *where, weft_tensor *x, double slope);
#define weft_leaky_relu(...) weft_leaky_relu_at(WEFT_HERE, __VA_ARGS__)

/* log(1 + exp(x)) without overflow. */
WEFT_API weft_tensor *weft_softplus(weft_tensor *x);
WEFT_API weft_tensor *weft_softplus_at(const char *where, weft_tensor *x);
#define weft_softplus(...) weft_softplus_at(WEFT_HERE, __VA_ARGS__)

/* x / (1 + |x|). At infinity it is NaN, as in PyTorch. */
WEFT_API weft_tensor *weft_softsign(weft_tensor *x);
WEFT_API weft_tensor *weft_softsign_at(const char *where, weft_tensor *x);
#define weft_softsign(...) weft_softsign_at(WEFT_HERE, __VA_ARGS__)

/* x where x > 0, else alpha * (exp(x) - 1). At NaN the gradient is 1. */
WEFT_API weft_tensor *weft_elu(weft_tensor *x, double alpha);
WEFT_API weft_tensor *weft_elu_at(const char *where, weft_tensor *x, double alpha);
#define weft_elu(...) weft_elu_at(WEFT_HERE, __VA_ARGS__)

/* (x - mean) / sqrt(var + eps) * gamma + beta over the last dimension (Ba et al. 2016). */
WEFT_API weft_tensor *weft_layer_norm(weft_tensor *x, weft_tensor *gamma, weft_tensor *beta, double eps);
WEFT_API weft_tensor *weft_layer_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, weft_tensor *beta, double eps);
#define weft_layer_norm(...) weft_layer_norm_at(WEFT_HERE, __VA_ARGS__)

/* x / sqrt(mean(x^2) + eps) * gamma over the last dimension (Zhang and Sennrich 2019). */
WEFT_API weft_tensor *weft_rms_norm(weft_tensor *x, weft_tensor *gamma, double eps);
WEFT_API weft_tensor *weft_rms_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, double eps);
#define weft_rms_norm(...) weft_rms_norm_at(WEFT_HERE, __VA_ARGS__)

/* (x - mean) / sqrt(var + eps) * gamma + beta of x (N, C, ...). Each of `groups` groups of channels has
 * its own mean and var (Wu and He 2018). gamma and beta are (C). */
WEFT_API weft_tensor *weft_group_norm(weft_tensor *x, int64_t groups, weft_tensor *gamma, weft_tensor *beta, double eps);
WEFT_API weft_tensor *weft_group_norm_at(const char *where, weft_tensor *x, int64_t groups, weft_tensor *gamma, weft_tensor *beta, double eps);
#define weft_group_norm(...) weft_group_norm_at(WEFT_HERE, __VA_ARGS__)

/* group_norm of x (N, C, ...) with one channel a group (Ulyanov et al. 2016). The rank must be at least 3. */
WEFT_API weft_tensor *weft_instance_norm(weft_tensor *x, weft_tensor *gamma, weft_tensor *beta, double eps);
WEFT_API weft_tensor *weft_instance_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, weft_tensor *beta, double eps);
#define weft_instance_norm(...) weft_instance_norm_at(WEFT_HERE, __VA_ARGS__)

/* (x - mean) / sqrt(var + eps) * gamma + beta of x (N, C, ...). Each channel has its own mean and biased
 * variance (Ioffe and Szegedy 2015). gamma and beta are (C). */
WEFT_API weft_tensor *weft_batch_norm(weft_tensor *x, weft_tensor *gamma, weft_tensor *beta, const weft_batch_norm_options *options);
WEFT_API weft_tensor *weft_batch_norm_at(const char *where, weft_tensor *x, weft_tensor *gamma, weft_tensor *beta, const weft_batch_norm_options *options);
#define weft_batch_norm(...) weft_batch_norm_at(WEFT_HERE, __VA_ARGS__)

/* Zeroes each element of x with probability p and divides the others by 1 - p. Each step draws new
 * numbers. */
WEFT_API weft_tensor *weft_dropout(weft_tensor *x, double p);
WEFT_API weft_tensor *weft_dropout_at(const char *where, weft_tensor *x, double p);
#define weft_dropout(...) weft_dropout_at(WEFT_HERE, __VA_ARGS__)

/* Zeroes each channel of each sample of x (N, C, ...) with probability p and divides the others by 1 - p.
 * Each step draws new numbers. */
WEFT_API weft_tensor *weft_dropout2d(weft_tensor *x, double p);
WEFT_API weft_tensor *weft_dropout2d_at(const char *where, weft_tensor *x, double p);
#define weft_dropout2d(...) weft_dropout2d_at(WEFT_HERE, __VA_ARGS__)

/* Scaled dot-product attention: q (B, H, T, D), k and v (B, G, S, D) -> (B, H, T, D). H must be a multiple
 * of G: each group of H / G consecutive query heads shares a KV head, without copies (grouped-query
 * attention). On devices with an attention kernel no (T, S) matrix is kept, except for the gradient of a
 * mask. */
WEFT_API weft_tensor *weft_attention(weft_tensor *q, weft_tensor *k, weft_tensor *v, const weft_attention_options *options);
WEFT_API weft_tensor *weft_attention_at(const char *where, weft_tensor *q, weft_tensor *k, weft_tensor *v, const weft_attention_options *options);
#define weft_attention(...) weft_attention_at(WEFT_HERE, __VA_ARGS__)

/* Rotary position embedding (Su et al. 2021) of x (..., T, D), D even. Pair i of channels at position p is
 * turned by the angle p / base^(2 i / D). position is a scalar (the position of the first row) or (T);
 * NULL: 0, 1, ... Angles are f32 (f64 for f64). */
WEFT_API weft_tensor *weft_rotary(weft_tensor *x, weft_tensor *position, const weft_rotary_options *options);
WEFT_API weft_tensor *weft_rotary_at(const char *where, weft_tensor *x, weft_tensor *position, const weft_rotary_options *options);
#define weft_rotary(...) weft_rotary_at(WEFT_HERE, __VA_ARGS__)

/* Sinusoidal position vectors (Vaswani et al. 2017): integers position (...) -> (..., width) f32. Channel
 * 2 i is sin(p / base^(2 i / width)), channel 2 i + 1 its cos. base 0 means 10000. */
WEFT_API weft_tensor *weft_sinusoids(weft_tensor *position, int64_t width, double base);
WEFT_API weft_tensor *weft_sinusoids_at(const char *where, weft_tensor *position, int64_t width, double base);
#define weft_sinusoids(...) weft_sinusoids_at(WEFT_HERE, __VA_ARGS__)

/* A layer of an RNN, LSTM (Hochreiter and Schmidhuber 1997) or GRU (Cho et al. 2014) over all time steps:
 * x (T, B, G), weight (G, H) -> h (T, B, H). x holds the inputs already multiplied by the input weights. G
 * is H for an RNN, 4 H for an LSTM (input, forget, cell, output gate), 3 H for a GRU (reset, update, new),
 * as in PyTorch. Past the end of a sequence, outputs are 0 and the state no longer changes. `last`, if not
 * NULL, gets the last h (B, H) and, of an LSTM, the last c. */
WEFT_API weft_tensor *weft_recurrent(weft_tensor *x, weft_tensor *weight, const weft_recurrent_options *options, weft_tensor **last);
WEFT_API weft_tensor *weft_recurrent_at(const char *where, weft_tensor *x, weft_tensor *weight, const weft_recurrent_options *options, weft_tensor **last);
#define weft_recurrent(...) weft_recurrent_at(WEFT_HERE, __VA_ARGS__)

/* -log softmax(logits)[target] of each row, reduced as the options say: logits (..., C), target (...)
 * integer classes. The next status reports a class outside 0..C-1. */
WEFT_API weft_tensor *weft_cross_entropy(weft_tensor *logits, weft_tensor *target, const weft_cross_entropy_options *options);
WEFT_API weft_tensor *weft_cross_entropy_at(const char *where, weft_tensor *logits, weft_tensor *target, const weft_cross_entropy_options *options);
#define weft_cross_entropy(...) weft_cross_entropy_at(WEFT_HERE, __VA_ARGS__)

/* Binary cross-entropy of sigmoid(logits) against target in 0..1, without overflow, reduced. Operands as
 * in mse. */
WEFT_API weft_tensor *weft_bce_with_logits(weft_tensor *logits, weft_tensor *target, weft_reduction reduction);
WEFT_API weft_tensor *weft_bce_with_logits_at(const char *where, weft_tensor *logits, weft_tensor *target, weft_reduction reduction);
#define weft_bce_with_logits(...) weft_bce_with_logits_at(WEFT_HERE, __VA_ARGS__)

/* (x - target)^2 of each element, reduced. Losses do not broadcast: x and target must be floats of one
 * shape and dtype, else the result is WEFT_ERR_SHAPE or WEFT_ERR_DTYPE. For f16 and bf16 the loss is f32. */
WEFT_API weft_tensor *weft_mse(weft_tensor *x, weft_tensor *target, weft_reduction reduction);
WEFT_API weft_tensor *weft_mse_at(const char *where, weft_tensor *x, weft_tensor *target, weft_reduction reduction);
#define weft_mse(...) weft_mse_at(WEFT_HERE, __VA_ARGS__)

/* |x - target| of each element, reduced. Operands as in mse. */
WEFT_API weft_tensor *weft_l1(weft_tensor *x, weft_tensor *target, weft_reduction reduction);
WEFT_API weft_tensor *weft_l1_at(const char *where, weft_tensor *x, weft_tensor *target, weft_reduction reduction);
#define weft_l1(...) weft_l1_at(WEFT_HERE, __VA_ARGS__)

/* 0.5 d^2 where |d| <= delta, else delta (|d| - delta / 2), with d = x - target (Huber 1964), reduced.
 * Operands as in mse. */
WEFT_API weft_tensor *weft_huber(weft_tensor *x, weft_tensor *target, double delta, weft_reduction reduction);
WEFT_API weft_tensor *weft_huber_at(const char *where, weft_tensor *x, weft_tensor *target, double delta, weft_reduction reduction);
#define weft_huber(...) weft_huber_at(WEFT_HERE, __VA_ARGS__)

/* The log-probability of each of K texts: logits (..., T, C), i32 or i64 target (..., K, T) -> (..., K),
 * for each text the sum over t of log softmax(logits[t])[target[t]]. A target below 0 does not count. If K
 * > 1 the texts share a row: at each t at most one of the K targets counts. For f16 and bf16 the result is
 * f32. */
WEFT_API weft_tensor *weft_sequence_log_probs(weft_tensor *logits, weft_tensor *target);
WEFT_API weft_tensor *weft_sequence_log_probs_at(const char *where, weft_tensor *logits, weft_tensor *target);
#define weft_sequence_log_probs(...) weft_sequence_log_probs_at(WEFT_HERE, __VA_ARGS__)

/* Direct preference optimization (Rafailov et al. 2023, equation 7) of pairs (..., 2), the log-
 * probabilities of the chosen and of the rejected answer by the policy and by the reference: -log
 * sigmoid(h) of each pair, h = beta ((chosen - rejected) of log_probs - (chosen - rejected) of reference),
 * reduced. With smoothing s: -(1 - s) log sigmoid(h) - s log sigmoid(-h). Shapes and dtypes as in mse. */
WEFT_API weft_tensor *weft_dpo_loss(weft_tensor *log_probs, weft_tensor *reference, const weft_dpo_options *options);
WEFT_API weft_tensor *weft_dpo_loss_at(const char *where, weft_tensor *log_probs, weft_tensor *reference, const weft_dpo_options *options);
#define weft_dpo_loss(...) weft_dpo_loss_at(WEFT_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
