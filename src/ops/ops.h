/* What the files of ops share: the dtype classes of the table, and functions that record nodes of an op.
 * Must not know: devices, layers. Read next: elementwise.c, movement.c, and build.h for the short names. */
#ifndef WEFT_OPS_OPS_H
#define WEFT_OPS_OPS_H

#include "graph/graph.h"
#include "heavy/heavy.h"
#include "ops/build.h"

typedef enum weft_dtype_class {
    WEFT_CLASS_FLOAT,
    WEFT_CLASS_NUMBER,
    WEFT_CLASS_INTEGER,
    WEFT_CLASS_ANY
} weft_dtype_class;

bool weft__dtype_in(weft_dtype dtype, weft_dtype_class class);

/* Whether the op's table entry accepts the dtype. */
bool weft__row_accepts(weft_op op, weft_dtype dtype);

/* Records elementwise op `op` of the table on n operands, which are broadcast against each other. */
weft_tensor *weft__elementwise(const char *where, weft_op op, int n, weft_tensor *const *in);

/* Records reduction `op` over the dimensions in mask. They remain as extents of 1. */
weft_tensor *weft__reduce(const char *where, weft_op op, weft_tensor *x, uint32_t mask);

/* x reshaped or expanded to a shape, or x itself if it has that shape. The caller knows that the shape
 * fits. */
weft_tensor *weft__reshape_to(const char *where, weft_tensor *x, int rank, const int64_t *shape);
weft_tensor *weft__expand_to(const char *where, weft_tensor *x, int rank, const int64_t *shape);
/* Whether x is recorded as the transpose of a matrix, or of a batch of matrices. */
bool weft__is_transpose(const weft_tensor *x);

/* A constant of a shape. f is its value in floats, i in integers. */
weft_tensor *weft__constant(weft_context *ctx, const char *where, weft_dtype dtype, int rank,
                            const int64_t *shape, double f, int64_t i);
/* Whether the dtype can hold the value. Integers and bools cannot hold all. */
bool weft__is_value_of(weft_dtype dtype, double value);
/* A constant of one value, given as a double. Poisoned if the dtype cannot hold it; op names the caller in
 * the message. */
weft_tensor *weft__number(weft_context *ctx, const char *where, const char *op, weft_dtype dtype, int rank,
                          const int64_t *shape, double value);

/* The key of a random node: a leaf of eight words, computed at each run from seed, stream and step. */
weft_tensor *weft__random_leaf(weft_context *ctx, const char *where, uint64_t stream);
/* 32 random bits for each element, drawn with that key. */
weft_tensor *weft__random_node(const char *where, weft_tensor *key, int rank, const int64_t *shape);
/* A key with the next stream: of the layer that is being recorded, or of the context outside layers. */
weft_tensor *weft__random_next(weft_context *ctx, const char *where);

/* Zeros (A, extent, B) with the slices of source (A, I, B) added at index (I) along axis. unique: no index
 * occurs twice, as with positions that sort something. */
weft_tensor *weft__scatter(const char *where, weft_tensor *index, weft_tensor *source, int axis,
                           int64_t extent, bool unique);
/* The reverse: reads the slices of x (A, n, B) at index (I). */
weft_tensor *weft__gather(const char *where, weft_tensor *x, weft_tensor *index, int axis, bool unique);
/* take_along_axis with an index that is known to be within 0..n-1. unique: no index occurs twice in a row. */
weft_tensor *weft__take_along(const char *where, weft_tensor *x, weft_tensor *index, int axis, bool unique);

/* Running sums or products along axis; reverse: from the end. Dtypes: floats, i32, i64, u64. */
weft_tensor *weft__scan(const char *where, weft_tensor *x, int axis, bool product, bool reverse);
/* Products of floats or complex numbers along a dimension. product_along: of all, the extent becomes 1.
 * products_along: running products. The order of multiplications depends on the extent alone. scan.c */
weft_tensor *weft__product_along(const char *where, weft_tensor *x, int dim);
weft_tensor *weft__products_along(const char *where, weft_tensor *x, int axis);

/* ---- complex.c ---- */
static inline bool is_complex(const weft_tensor *x) { return weft_dtype_is_complex((weft_dtype)x->dtype); }
static inline bool weft__has_gradient(const weft_tensor *x) {
    return weft_dtype_is_float((weft_dtype)x->dtype) || is_complex(x);
}
/* complex_takes: whether complex numbers have the op. The others record it: an elementwise op, an op with a
 * number (ADD or MUL), a reduction. */
bool weft__complex_takes(weft_op op);
weft_tensor *weft__complex_row(const char *where, weft_op op, int n, weft_tensor *const *in);
weft_tensor *weft__complex_with_number(const char *where, weft_op op, weft_tensor *z, double value);
weft_tensor *weft__complex_reduce(const char *where, weft_op op, weft_tensor *z, uint32_t mask);
weft_tensor *weft__complex_scan(const char *where, weft_tensor *z, int axis, bool product);
weft_tensor *weft__complex_cast(const char *where, weft_tensor *x, weft_dtype dtype); /* to or from complex */

/* ---- complex_matmul.c ---- */
typedef struct weft_prod_params {
    int64_t conj; /* bit 0: the left operand is conjugated; bit 1: the right one */
} weft_prod_params;
/* The matmul of complex matrices with the same batch. Operands that are recorded as a conjugate are read from
 * the original, without a copy. */
weft_tensor *weft__complex_matmul(const char *where, weft_tensor *a, weft_tensor *b);

/* ---- composites that a device may compute as a whole: composite.c ---- */

typedef struct weft_composite weft_composite;
struct weft_composite {
    const char *name;
    weft_heavy_kind kind; /* which a device may take it as, or WEFT_HEAVY_NONE */
    int n_outputs;
    size_t params_bytes; /* at most WEFT_PARAMS_BYTES */
    /* Computes dtype and shape of an output. */
    void (*shape)(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                  int64_t *dims);
    /* Records the same outputs by other ops. NULL in a gradient: the compiler differentiates the expansion of
     * the forward composite. */
    void (*expand)(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out);
    /* The composite of the gradients, with the same params. Its inputs are the inputs and the outputs of the
     * forward composite, and the gradient of output 0. Its outputs are the gradients of inputs 0..n-1. NULL:
     * the gradients of the expansion. */
    const weft_composite *gradient;
    const weft_composite *forward; /* set in a gradient composite */
    /* Used instead of both, if set: records the gradients of all inputs from the gradient of output 0. */
    void (*backward)(const char *where, weft_tensor *whole, weft_tensor *g, weft_tensor **grads);
    int n_inputs;
};

#define WEFT_PARAMS_BYTES 256

typedef struct weft_attr_composite {
    const weft_composite *definition;
    /* params follow */
} weft_attr_composite;

static inline const weft_composite *weft__composite_of(const weft_tensor *t) {
    return ((const weft_attr_composite *)t->attr)->definition;
}
static inline const void *weft__params_of(const weft_tensor *t) {
    return (const char *)t->attr + sizeof(weft_attr_composite);
}

/* Records a composite and writes its outputs to out[]. */
void weft__composite(const char *where, const weft_composite *definition, const void *params,
                     weft_tensor *const *in, weft_tensor **out);

/* Output i of a recorded composite. */
weft_tensor *weft__composite_output(const char *where, weft_tensor *whole, int i);

/* ---- convolve.c ---- */

/* Shapes: x (n, groups in, x[0], x[1]), w (groups out, in, size[0], size[1]), y (n, groups out, y[0],
 * y[1]). */
typedef struct weft_conv_params {
    int64_t pass, n, groups, in, out;
    int64_t x[2], size[2], y[2], stride[2], padding[2], dilation[2];
} weft_conv_params;
/* Records a convolution or one of its gradients. Operands a, b -> result: x, w -> y; the gradient of y, w ->
 * the gradient of x; x, the gradient of y -> the gradient of w. */
weft_tensor *weft__convolve(const char *where, const weft_conv_params *params, weft_tensor *a,
                            weft_tensor *b);

/* ---- custom.c: ops that a program defines ---- */
typedef struct weft_source {
    const char *name, *text;
    int dialect, items; /* weft_dialect; work-items of a group */
} weft_source;

typedef struct weft_defined_params {
    const struct weft_defined_op *op;
    const weft_source *source; /* NULL: the op has no source */
} weft_defined_params;

/* ---- attention.c ---- */
typedef struct weft_attention_params {
    double scale, dropout;
    int64_t causal, window; /* window: 0: none */
    double softcap;         /* 0: none */
} weft_attention_params;

/* The form for decoding. Its fourth input is a position, an i32 scalar, instead of a random key. No
 * gradient. */
extern const weft_composite weft__attention_cached;
/* The form with a mask (1 or B, 1 or H, 1 or T, 1 or S) after the key. The mask is bool or of the dtype of
 * scores. */
extern const weft_composite weft__attention_masked;

/* ---- recurrent.c ---- */
typedef struct weft_recurrent_params {
    int64_t kind, reverse, masked,
        back; /* kind: weft_recurrent_kind; masked: has lengths; back: is the backward walk */
} weft_recurrent_params;

#endif
