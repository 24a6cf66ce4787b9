/* Packed matrices: their numbers, and the matmul that reads the blocks, as composites that a device may
 * compute as a whole. heavy/packed.h has the layouts.
 *
 *     unpack:         w (..., bytes) -> (..., k)
 *     matmul_packed:  y (..., n) = x (..., k) unpack(w)^T, w (n, bytes). Gradient: dx = dy unpack(w).
 *
 * A device that declines a composite unpacks by elementwise ops on bytes: an integer op for each shift and
 * mask. Must not know: devices, files. Read next: matmul.c, heavy/packed.h. */
#include "ops/composite.h"
#include "ops/ops.h"

typedef struct packed_params {
    int64_t format;
} packed_params;

/* ---- the numbers, by ops on bytes: all tensors are (rows, blocks, ...) i32, or f32 ---- */

static weft_tensor *whole(const char *where, weft_tensor *like, int64_t value) {
    return weft__constant(like->ctx, where, WEFT_I32, 0, NULL, 0, value);
}

/* x & mask, and x shifted to the right. */
static weft_tensor *packed_bits(const char *where, weft_tensor *x, int64_t mask) {
    return at_and(x, whole(where, x, mask));
}
static weft_tensor *down(const char *where, weft_tensor *x, int64_t by) {
    return weft_shr_at(where, x, whole(where, x, by));
}

/* The number of an 8-bit two's complement. */
static weft_tensor *signed_of(const char *where, weft_tensor *x) {
    return at_sub(weft_xor_at(where, x, whole(where, x, 128)), whole(where, x, 128));
}

static weft_tensor *float_of(const char *where, weft_tensor *x) { return weft_cast_at(where, x, WEFT_F32); }

/* 0, step, 2 step, ... with a shape of rank 5 that is `extent` in dimension `dim` and 1 elsewhere. */
static weft_tensor *steps(const char *where, weft_tensor *like, int dim, int64_t extent, int64_t step) {
    int64_t shape[5] = {1, 1, 1, 1, 1};
    shape[dim] = extent;
    weft_tensor *i = weft_iota(like->ctx, WEFT_I32, 1, &extent);
    return weft_mul_at(where, weft_reshape_at(where, i, 5, shape), whole(where, like, step));
}

/* Bytes from..from+a*b*c-1 of each block, as (rows, blocks, a, b, c). */
static weft_tensor *part(const char *where, weft_tensor *blocks, int64_t from, int64_t a, int64_t b,
                         int64_t c) {
    const int64_t shape[5] = {blocks->shape[0], blocks->shape[1], a, b, c};
    weft_tensor *bytes = weft_narrow_at(where, blocks, 2, from, a * b * c);
    return weft_cast_at(where, weft_reshape_at(where, bytes, 5, shape), WEFT_I32);
}

/* The f16 at byte `from` of each block, (rows, blocks, 1, 1, 1). Infinity and NaN become infinities. */
static weft_tensor *half(const char *where, weft_tensor *blocks, int64_t from) {
    weft_tensor *low = part(where, blocks, from, 1, 1, 1), *high = part(where, blocks, from + 1, 1, 1, 1);
    if (weft__poisoned(low) || weft__poisoned(high)) return weft__poisoned(low) ? low : high;
    weft_tensor *exponent = packed_bits(where, down(where, high, 2), 31), *zero = whole(where, high, 0);
    weft_tensor *fraction =
        at_add(low, weft_mul_at(where, packed_bits(where, high, 3), whole(where, high, 256)));
    weft_tensor *normal = at_gt(exponent, zero);
    fraction = at_where(normal, at_add(fraction, whole(where, high, 1024)), fraction);
    exponent = at_where(normal, exponent, whole(where, high, 1));
    exponent = at_where(at_eq(exponent, whole(where, high, 31)), whole(where, high, 300), exponent);
    weft_tensor *power = weft_exp2_at(where, float_of(where, at_sub(exponent, whole(where, high, 25))));
    weft_tensor *size = at_mul(float_of(where, fraction), power);
    return at_where(at_ge(high, whole(where, high, 128)), at_neg(size), size);
}

/* Halves of bytes (rows, blocks, a, 1, c) as (rows, blocks, a, 2, c): the lower ones first. */
static weft_tensor *nibbles(const char *where, weft_tensor *bytes) {
    if (weft__poisoned(bytes)) return bytes;
    return packed_bits(where, weft_shr_at(where, bytes, steps(where, bytes, 3, 2, 4)), 15);
}

static weft_tensor *numbers_q4_0(const char *where, weft_tensor *blocks) {
    weft_tensor *q = nibbles(where, part(where, blocks, 2, 1, 1, 16));
    return at_mul(half(where, blocks, 0), float_of(where, at_sub(q, whole(where, blocks, 8))));
}

static weft_tensor *numbers_q4_1(const char *where, weft_tensor *blocks) {
    weft_tensor *q = nibbles(where, part(where, blocks, 4, 1, 1, 16));
    return at_add(at_mul(half(where, blocks, 0), float_of(where, q)), half(where, blocks, 2));
}

static weft_tensor *numbers_q8_0(const char *where, weft_tensor *blocks) {
    weft_tensor *q = signed_of(where, part(where, blocks, 2, 1, 1, 32));
    return at_mul(half(where, blocks, 0), float_of(where, q));
}

/* Scales of Q4_K, of six bits: the first four are in bytes `from` to `from` + 3. The other four have their
 * low bits in the last four of the twelve bytes, shifted by `shift`, and their high bits in the same bytes as
 * the first four. Returns (rows, blocks, 4, 2, 1) floats. */
static weft_tensor *six_bits(const char *where, weft_tensor *blocks, int64_t from, int64_t shift) {
    weft_tensor *first = part(where, blocks, from, 1, 1, 4), *last = part(where, blocks, 12, 1, 1, 4);
    if (weft__poisoned(first) || weft__poisoned(last)) return weft__poisoned(first) ? first : last;
    weft_tensor *high = weft_mul_at(where, down(where, first, 6), whole(where, first, 16));
    weft_tensor *other = at_add(packed_bits(where, down(where, last, shift), 15), high);
    weft_tensor *all = at_where(at_eq(steps(where, first, 3, 2, 1), whole(where, first, 0)),
                                packed_bits(where, first, 63), other);
    const int64_t shape[5] = {blocks->shape[0], blocks->shape[1], 4, 2, 1};
    return float_of(where, weft_reshape_at(where, all, 5, shape));
}

static weft_tensor *numbers_q4_k(const char *where, weft_tensor *blocks) {
    weft_tensor *q = nibbles(where, part(where, blocks, 16, 4, 1, 32));
    weft_tensor *scale = at_mul(half(where, blocks, 0), six_bits(where, blocks, 4, 0));
    weft_tensor *less = at_mul(half(where, blocks, 2), six_bits(where, blocks, 8, 4));
    return at_sub(at_mul(scale, float_of(where, q)), less);
}

static weft_tensor *numbers_q6_k(const char *where, weft_tensor *blocks) {
    const int64_t n = blocks->shape[0], count = blocks->shape[1];
    weft_tensor *low = nibbles(where, part(where, blocks, 0, 2, 1, 64)),
                *high = part(where, blocks, 128, 2, 1, 32);
    if (weft__poisoned(low) || weft__poisoned(high)) return weft__poisoned(low) ? low : high;
    low = weft_reshape_at(where, low, 5, (int64_t[]){n, count, 2, 4, 32});
    high = packed_bits(where, weft_shr_at(where, high, steps(where, high, 3, 4, 2)), 3);
    weft_tensor *q = at_add(low, weft_mul_at(where, high, whole(where, high, 16)));
    q = float_of(where, at_sub(q, whole(where, high, 32)));
    q = weft_reshape_at(where, q, 5, (int64_t[]){n, count, 16, 1, 16});
    weft_tensor *s = float_of(where, signed_of(where, part(where, blocks, 192, 16, 1, 1)));
    return at_mul(at_mul(half(where, blocks, 208), s), q);
}

static void unpack_expand(const char *where, const void *params, weft_tensor *const *in, weft_tensor **out) {
    const int format = (int)((const packed_params *)params)->format;
    const weft_packed_info *info = weft__packed_info(format);
    weft_tensor *packed = in[0], *y = packed;
    int64_t shape[WEFT_MAX_RANK], count = packed->shape[packed->rank - 1] / info->bytes;
    const int64_t rows = count ? packed->numel / (count * info->bytes) : 0;
    for (int i = 0; i < packed->rank; i++) shape[i] = packed->shape[i];
    shape[packed->rank - 1] = count * info->elements;
    if (!count || !rows) {
        *out = weft__constant(packed->ctx, where, WEFT_F32, packed->rank, shape, 0, 0);
        return;
    }
    weft_tensor *blocks = weft_reshape_at(where, packed, 3, (int64_t[]){rows, count, info->bytes});
    if (!weft__poisoned(blocks)) switch (format) {
        case WEFT_Q4_0: y = numbers_q4_0(where, blocks); break;
        case WEFT_Q4_1: y = numbers_q4_1(where, blocks); break;
        case WEFT_Q8_0: y = numbers_q8_0(where, blocks); break;
        case WEFT_Q4_K: y = numbers_q4_k(where, blocks); break;
        default: y = numbers_q6_k(where, blocks); break;
        }
    *out = weft__poisoned(blocks) ? blocks
           : weft__poisoned(y)    ? y
                                  : weft__reshape_to(where, y, packed->rank, shape);
}

/* ---- the composites ---- */

static int64_t numbers_of_row(const packed_params *params, const weft_tensor *packed) {
    const weft_packed_info *info = weft__packed_info((int)params->format);
    return packed->shape[packed->rank - 1] / info->bytes * info->elements;
}

static void unpack_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype, int *rank,
                         int64_t *dims) {
    (void)output;
    *dtype = WEFT_F32;
    *rank = in[0]->rank;
    for (int i = 0; i < *rank; i++) dims[i] = in[0]->shape[i];
    dims[*rank - 1] = numbers_of_row(params, in[0]);
}

static const weft_composite unpack = {.name = "unpack",
                                      .kind = WEFT_HEAVY_PACKED,
                                      .n_inputs = 1,
                                      .n_outputs = 1,
                                      .params_bytes = sizeof(packed_params),
                                      .shape = unpack_shape,
                                      .expand = unpack_expand};

static weft_tensor *unpacked(const char *where, const packed_params *params, weft_tensor *packed,
                             weft_dtype dtype) {
    weft_tensor *w;
    weft__composite(where, &unpack, params, &packed, &w);
    return as_dtype(where, w, dtype);
}

static void matmul_packed_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                                int *rank, int64_t *dims) {
    (void)params, (void)output;
    *dtype = (weft_dtype)in[0]->dtype;
    *rank = 2;
    dims[0] = in[0]->shape[0];
    dims[1] = in[1]->shape[0];
}

static void matmul_packed_expand(const char *where, const void *params, weft_tensor *const *in,
                                 weft_tensor **out) {
    weft_tensor *w = unpacked(where, params, in[1], (weft_dtype)in[0]->dtype);
    *out = weft_matmul_at(where, in[0], weft_transpose_at(where, w, 0, 1));
}

static void matmul_packed_backward(const char *where, weft_tensor *composite, weft_tensor *g,
                                   weft_tensor **grads) {
    weft_tensor *w =
        unpacked(where, weft__params_of(composite), composite->in[1], (weft_dtype)composite->in[0]->dtype);
    grads[0] = weft_matmul_at(where, g, w);
}

static const weft_composite matmul_packed = {.name = "matmul_packed",
                                             .kind = WEFT_HEAVY_PACKED,
                                             .n_inputs = 2,
                                             .n_outputs = 1,
                                             .params_bytes = sizeof(packed_params),
                                             .shape = matmul_packed_shape,
                                             .expand = matmul_packed_expand,
                                             .backward = matmul_packed_backward};

/* ---- the functions ---- */

/* NULL if the tensor holds packed rows of the format; else a poisoned tensor. */
static weft_tensor *reject_packed(const char *where, const char *op, weft_tensor *packed, int format) {
    const weft_packed_info *info = weft__packed_info(format);
    char text[WEFT_SHAPE_TEXT];
    if (!info)
        return weft__poison(packed->ctx, where, WEFT_ERR_ARGUMENT,
                            "%s: unknown format %d: give a weft_packed_format such as WEFT_Q8_0", op, format);
    if (packed->dtype != WEFT_U8)
        return weft__poison(packed->ctx, where, WEFT_ERR_DTYPE, "%s: the packed matrix %s must be u8", op,
                            weft__tensor_text(packed, text));
    if (packed->rank < 1 || packed->shape[packed->rank - 1] % info->bytes != 0)
        return weft__poison(packed->ctx, where, WEFT_ERR_SHAPE,
                            "%s: the last dimension of the packed matrix %s must be a multiple of %lld, the "
                            "bytes of a %s block of %lld numbers",
                            op, weft__tensor_text(packed, text), (long long)info->bytes, info->name,
                            (long long)info->elements);
    return NULL;
}

weft_tensor *weft_unpack_at(const char *where, weft_tensor *packed, weft_packed_format format) {
    weft_tensor *bad = weft__reject("unpack", where, &packed, 1);
    if (bad || !packed || (bad = reject_packed(where, "unpack", packed, (int)format))) return bad;
    return unpacked(where, &(packed_params){(int64_t)format}, packed, WEFT_F32);
}

weft_tensor *weft_matmul_packed_at(const char *where, weft_tensor *x, weft_tensor *packed,
                                   weft_packed_format format) {
    weft_tensor *in[2] = {x, packed}, *bad = weft__reject("matmul_packed", where, in, 2), *y;
    if (bad || !x || (bad = reject_packed(where, "matmul_packed", packed, (int)format))) return bad;
    const packed_params params = {(int64_t)format};
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    const int64_t k = numbers_of_row(&params, packed);
    if (packed->rank != 2 || x->rank < 1 || x->shape[x->rank - 1] != k)
        return weft__poison(
            x->ctx, where, WEFT_ERR_SHAPE,
            "matmul_packed: x %s and the packed matrix %s must be (..., k) and (n, bytes of k "
            "numbers); these bytes hold %lld numbers in %s",
            weft__tensor_text(x, a), weft__tensor_text(packed, b), (long long)k,
            weft__packed_info((int)format)->name);
    if (!weft_dtype_is_float((weft_dtype)x->dtype))
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "matmul_packed: x %s must be a float; cast it with weft_cast",
                            weft__tensor_text(x, a));
    int64_t shape[WEFT_MAX_RANK], rows = 1;
    for (int i = 0; i < x->rank; i++) shape[i] = i == x->rank - 1 ? packed->shape[0] : x->shape[i];
    for (int i = 0; i < x->rank - 1; i++) rows *= x->shape[i];
    in[0] = weft__reshape_to(where, widen(where, x), 2, (int64_t[]){rows, k});
    if (in[0]->error) return in[0];
    weft__composite(where, &matmul_packed, &params, in, &y);
    if (y->error) return y;
    return as_dtype(where, weft__reshape_to(where, y, x->rank, shape), (weft_dtype)x->dtype);
}
