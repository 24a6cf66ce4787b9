/* Your own ops: a scalar expression that runs, fuses and is differentiated on every device, as Weft's ops
 * are. A computation on whole tensors needs no definition here: write a function that calls tensor
 * functions. */
#ifndef WEFT_OP_H
#define WEFT_OP_H

#include <weft/tensor.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { WEFT_OP_OPERANDS = 4 };

typedef struct weft_defined_op weft_defined_op;

typedef enum weft_dialect { WEFT_DIALECT_OPENCL, WEFT_DIALECT_CUDA, WEFT_DIALECT_WGSL } weft_dialect;

/* Records d(loss)/d(in[i]) into grads[i], with the shape and dtype of in[i]. y is the result of the op and
 * g its gradient. A gradient that stays NULL is 0. */
typedef void (*weft_op_gradient)(weft_tensor *const *in, weft_tensor *y, weft_tensor *g, weft_tensor **grads,
                                 void *user);

/* Expressions use the language of src/ops/ops.def: C on numbers of one type T.
 * - operands: a, b, c, d
 * - numbers, brackets, and the operators + - * /
 * - conditions: == != < <= > >= && || !. (T) before a condition makes it 0 or 1.
 * - for integers: & | ^ ~
 * - choice: w_sel(condition, x, y), w_min, w_max
 * - exponentials and powers: w_exp, w_exp2, w_expm1, w_log, w_log2, w_log1p, w_sqrt, w_rsqrt, w_recip,
 *   w_pow, w_hypot
 * - trigonometry: w_sin, w_cos, w_tanh, w_atan2
 * - rounding: w_floor, w_ceil, w_round, w_trunc, w_mod
 * - activations: w_sigmoid, w_gelu, w_gelu_tanh
 * - others: w_abs, w_sign, w_erf, w_isnan, w_isinf, w_not, w_shl, w_shr */
typedef struct weft_op_options {
    const char *name; /* for messages; with a source its function's name, at most 63 letters, digits, _ */
    const char *expression;                  /* "a * w_sigmoid(b * a)"; may be NULL if there is a source */
    int arity;                               /* number of operands, 1 to 4; they broadcast */
    uint32_t dtypes;                         /* 1u << WEFT_F32 | 1u << WEFT_I32 ...; 0: all floats */
    const char *gradients[WEFT_OP_OPERANDS]; /* derivatives by a, b, ...: expressions that may also use y and
                                                g; NULL: 0 */
    weft_op_gradient gradient; /* instead: a function. Without both, Weft differentiates the expression */
    void *user;                /* last argument of `gradient` */
    /* Kernel source in OpenCL C or CUDA C++. Devices of that dialect run it instead of the expression; `hip`
     * runs CUDA C++. If `expression` is NULL, other devices refuse the op.
     *
     * The source defines a function with the op's name. Its arguments are pointers to the operands, which all
     * have the same layout, a pointer to the result, and the number of elements of each. At least one
     * work-item per element calls the function:
     *     void name(__global const float *a, __global const float *b, __global float *out, long n)
     *     __device__ void name(const float *a, const float *b, float *out, long n)
     * With a source `dtypes` is exactly one dtype, neither f16 nor bf16. */
    const char *source;
    weft_dialect dialect;
    int items; /* work-items in a group; 0: 64 */
} weft_op_options;

/* Defines an op. An error names the column of the expression. 16-bit floats are computed in f32 and rounded
 * once. The op lives as long as the context. */
WEFT_API WEFT_CHECKED weft_status weft_op_define(weft_context *ctx, const weft_op_options *options,
                                                 weft_defined_op **op);

/* Records the op's result for operands in[0..arity). They have one dtype and broadcast against each other. */
WEFT_API weft_tensor *weft_op_apply(const weft_defined_op *op, weft_tensor *const *in);
WEFT_API weft_tensor *weft_op_apply_at(const char *where, const weft_defined_op *op, weft_tensor *const *in);
#define weft_op_apply(...) weft_op_apply_at(WEFT_HERE, __VA_ARGS__)

#ifdef __cplusplus
}
#endif
#endif
