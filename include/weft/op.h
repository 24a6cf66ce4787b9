/* Ops of one's own: a scalar expression that runs, fuses and is differentiated on every device like the ops
 * of the library. What is made of whole tensors needs no definition: a function of tensor functions is an op.
 */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEFT_OP_OPERANDS = 4 };

typedef struct weft_defined_op weft_defined_op;

typedef enum weft_dialect { WEFT_DIALECT_OPENCL, WEFT_DIALECT_CUDA } weft_dialect;

/* Records d(loss)/d(in[i]) into grads[i], of the shape and dtype of in[i], from the result y and its gradient
 * g; what stays NULL is 0. */
typedef void (*weft_op_gradient)(weft_tensor *const *in, weft_tensor *y, weft_tensor *g, weft_tensor **grads,
                                 void *user);

/* The language of expressions is that of src/ops/ops.def, C of numbers of one type T: the operands a, b, c,
 * d; numbers; + - * / and brackets; == != < <= > >= && || !, whose results are conditions; & | ^ ~ of
 * integers; (T) before a condition makes it 0 or 1; and functions: w_sel(condition, x, y), w_min, w_max,
 * w_abs, w_sign, w_exp, w_exp2, w_expm1, w_log, w_log2, w_log1p, w_sin, w_cos, w_tanh, w_erf, w_sqrt,
 * w_rsqrt, w_recip, w_pow, w_atan2, w_hypot, w_floor, w_ceil, w_round, w_trunc, w_mod, w_isnan, w_isinf,
 * w_sigmoid, w_gelu, w_gelu_tanh, w_not, w_shl, w_shr. */
typedef struct weft_op_options {
    const char *name; /* for messages; beside a source its function's, at most 63 letters, digits and _ */
    const char *expression; /* "a * w_sigmoid(b * a)"; may be NULL beside a source */
    int arity;              /* how many operands it has, 1 to 4; they broadcast */
    uint32_t dtypes;        /* 1u << WEFT_F32 | 1u << WEFT_I32 ...; 0: all floats */
    const char
        *gradients[WEFT_OP_OPERANDS]; /* by a, b, ...: expressions that have y and g besides; NULL: 0 */
    weft_op_gradient gradient;        /* or a function; with neither, the expression's derivative is taken */
    void *user;                       /* its last argument */
    /* Source in OpenCL C or CUDA C++, which devices of that dialect run in place of the expression; where
     * that is NULL other devices refuse the op. It defines a function of the op's name, of pointers to the
     * operands, which are laid out alike, to the result, and how many elements each has, called by work-items
     * enough for one each: void name(__global const float *a, __global const float *b, __global float *out,
     * long n)
     *     __device__ void name(const float *a, const float *b, float *out, long n)
     * `dtypes` is one of them, not f16 nor bf16. */
    const char *source;
    weft_dialect dialect;
    int items; /* of a group; 0: 64 */
} weft_op_options;

/* Reads the definition; an error names the column. 16-bit floats are computed in f32 and rounded once. The op
 * lives as long as the context. */
WEFT_API WEFT_CHECKED weft_status weft_op_define(weft_context *ctx, const weft_op_options *options,
                                                 weft_defined_op **op);

/* Its result for operands in[0..arity) of one dtype, broadcast against each other. */
WEFT_API weft_tensor *weft_op_apply(const weft_defined_op *op, weft_tensor *const *in);
WEFT_API weft_tensor *weft_op_apply_at(const char *where, const weft_defined_op *op, weft_tensor *const *in);
#define weft_op_apply(...) weft_op_apply_at(WEFT_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
