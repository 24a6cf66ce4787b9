/* Tensors without inputs: constants, iota and functions made of it, and random numbers. A random number is a
 * pure function of seed, stream, step and element.
 * Must not know: devices, layers. Read next: base/random.c. */
#include <math.h>
#include "ops/composite.h"
#include "ops/ops.h"

weft_tensor *weft__constant(weft_context *ctx, const char *where, weft_dtype dtype, int rank,
                            const int64_t *shape, double f, int64_t i) {
    weft_attr_const attr = {f, i};
    if (weft_dtype_is_complex(dtype)) {
        const weft_dtype part = weft__part_dtype(dtype);
        weft_tensor *re = weft__constant(ctx, where, part, rank, shape, f, i);
        weft_tensor *im = weft__constant(ctx, where, part, rank, shape, 0, 0);
        return re->error ? re : im->error ? im : weft_complex_at(where, re, im);
    }
    return weft__node(ctx, where, WEFT_OP_CONST, dtype, rank, shape, 0, NULL, sizeof attr, &attr);
}

bool weft__is_value_of(weft_dtype dtype, double value) {
    if (weft_dtype_is_float(dtype) || weft_dtype_is_complex(dtype)) return true;
    bool sign = dtype == WEFT_I8 || dtype == WEFT_I16 || dtype == WEFT_I32 || dtype == WEFT_I64;
    int bits = dtype == WEFT_BOOL ? 1 : (int)(8 * weft_dtype_size(dtype));
    double top = ldexp(1.0, sign ? bits - 1 : bits);
    return value == floor(value) && value < top && value >= (sign ? -top : 0.0);
}

weft_tensor *weft__number(weft_context *ctx, const char *where, const char *op, weft_dtype dtype, int rank,
                          const int64_t *shape, double value) {
    int64_t whole = value >= -0x1p63 && value < 0x1p63 ? (int64_t)value : 0;
    if (dtype == WEFT_U64 && value >= 0x1p63 && value < 0x1p64) whole = (int64_t)(uint64_t)value;
    if (!weft__is_value_of(dtype, value))
        return weft__poison(ctx, where, WEFT_ERR_ARGUMENT, "%s: %g is not a value of %s", op, value,
                            weft_dtype_name(dtype));
    return weft__constant(ctx, where, dtype, rank, shape, value, whole);
}

/* Checks rank, extents and dtype of a new tensor. Returns NULL or a poisoned tensor. */
static weft_tensor *source_check(weft_context *ctx, const char *op, weft_dtype dtype, int rank,
                                 const int64_t *shape) {
    if (!ctx || (rank && !shape)) return weft__poison_null(ctx, NULL, op, ctx ? "shape" : "ctx");
    if (rank < 0 || rank > WEFT_MAX_RANK)
        return weft__poison(ctx, NULL, WEFT_ERR_SHAPE, "%s: rank %d is not in 0..%d", op, rank,
                            WEFT_MAX_RANK);
    for (int i = 0; i < rank; i++)
        if (shape[i] < 0)
            return weft__poison(ctx, NULL, WEFT_ERR_SHAPE, "%s: dimension %d is %lld", op, i,
                                (long long)shape[i]);
    if (ctx->hooks.check_dtype(ctx, (int)dtype) != WEFT_OK)
        return weft__poison(ctx, NULL, weft_last_status(ctx), "%s: %s", op, weft_last_error(ctx));
    return NULL;
}

weft_tensor *weft_full(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape, double value) {
    weft_tensor *bad = source_check(ctx, "weft_full", dtype, rank, shape);
    if (bad) return bad;
    return weft__number(ctx, NULL, "weft_full", dtype, rank, shape, value);
}

weft_tensor *weft_full_i64(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape,
                           int64_t value) {
    weft_tensor *bad = source_check(ctx, "weft_full_i64", dtype, rank, shape);
    bool exact =
        dtype == WEFT_I64 || dtype == WEFT_U64 || weft_dtype_is_float(dtype) || weft_dtype_is_complex(dtype);
    if (!bad && !exact) return weft__number(ctx, NULL, "weft_full_i64", dtype, rank, shape, (double)value);
    return bad ? bad : weft__constant(ctx, NULL, dtype, rank, shape, (double)value, value);
}

weft_tensor *weft_iota(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape) {
    weft_tensor *bad = source_check(ctx, "weft_iota", dtype, rank, shape);
    if (bad) return bad;
    if (rank == 0) return weft__constant(ctx, NULL, dtype, 0, NULL, 0, 0);
    weft_dtype index = dtype == WEFT_I32 ? WEFT_I32 : WEFT_I64;
    weft_tensor *t = weft__node(ctx, NULL, WEFT_OP_IOTA, index, 1, &shape[rank - 1], 0, NULL, 0, NULL);
    if (t->error) return t;
    if (index != dtype) t = weft_cast_at(NULL, t, dtype);
    return t->error ? t : weft__expand_to(NULL, t, rank, shape);
}

/* 0, 1, ... n-1 in a dtype that is wide enough to compute with. */
static weft_tensor *steps(weft_context *ctx, weft_dtype dtype, int64_t n) {
    return weft_iota(ctx, weft_dtype_is_float(dtype) ? is_half(dtype) ? WEFT_F32 : dtype : WEFT_I64, 1, &n);
}

weft_tensor *weft_arange(weft_context *ctx, weft_dtype dtype, double start, double stop, double step) {
    const char *where = NULL;
    const double count = ceil((stop - start) / step);
    const bool whole = start == floor(start) && step == floor(step);
    const int64_t n = count > 0 && count < 0x1p53 ? (int64_t)count : 0;
    weft_tensor *bad = source_check(ctx, "weft_arange", dtype, 1, &n);
    if (bad) return bad;
    const bool real = weft_dtype_is_float(weft__part_dtype(dtype));
    if (!(fabs(count) < 0x1p53) || (!real && (!whole || dtype == WEFT_BOOL)))
        return weft__poison(ctx, NULL, WEFT_ERR_ARGUMENT,
                            "weft_arange: cannot count in %s from %g to %g by %g", weft_dtype_name(dtype),
                            start, stop, step);
    if (weft_dtype_is_complex(dtype))
        return weft_cast_at(where, weft_arange(ctx, weft__part_dtype(dtype), start, stop, step), dtype);
    weft_tensor *y = steps(ctx, dtype, n);
    if (step != 1) y = at_mul_scalar(y, step);
    if (start != 0) y = at_add_scalar(y, start);
    return as_dtype(where, y, dtype);
}

weft_tensor *weft_linspace(weft_context *ctx, weft_dtype dtype, double start, double stop, int64_t n) {
    const char *where = NULL;
    weft_tensor *bad = source_check(ctx, "weft_linspace", dtype, 1, &n);
    if (bad) return bad;
    if (weft_dtype_is_complex(dtype))
        return weft_cast_at(where, weft_linspace(ctx, weft__part_dtype(dtype), start, stop, n), dtype);
    if (!weft_dtype_is_float(dtype))
        return weft__poison(ctx, NULL, WEFT_ERR_DTYPE, "weft_linspace: %s is not a float",
                            weft_dtype_name(dtype));
    const double step = n > 1 ? (stop - start) / (double)(n - 1) : 0;
    weft_tensor *i = steps(ctx, dtype, n); /* counts from the nearer end, so that both ends are exact */
    weft_tensor *up = at_add_scalar(at_mul_scalar(i, step), start),
                *down = at_add_scalar(at_mul_scalar(at_add_scalar(i, 1.0 - (double)n), step), stop);
    weft_tensor *first = at_lt(i, weft_full_like_at(where, i, (double)(n - n / 2)));
    return as_dtype(where, at_where(first, up, down), dtype);
}

weft_tensor *weft_eye(weft_context *ctx, weft_dtype dtype, int64_t rows, int64_t columns) {
    const char *where = NULL;
    weft_tensor *bad = source_check(ctx, "weft_eye", dtype, 2, (const int64_t[]){rows, columns});
    if (bad) return bad;
    weft_tensor *row = weft_iota(ctx, WEFT_I64, 1, &rows), *column = weft_iota(ctx, WEFT_I64, 1, &columns);
    if (!row->error) row = weft__reshape_to(where, row, 2, (const int64_t[]){rows, 1});
    return weft_cast_at(where, at_eq(row, column), dtype);
}

/* ---- random ---- */

/* Gives the stream of the next random node; false if memory runs out. The stream is a hash of the layer's
 * path and of the number of nodes that the layer recorded in this step. */
static bool next_stream(weft_context *ctx, uint64_t *stream) {
    if (!ctx->path || !*ctx->path) {
        *stream = weft__mix64(UINT64_C(0x5eed) + ctx->random.ordinal++);
        return true;
    }
    weft_graph *graph = ctx->graph;
    weft_layer_draws *draws = NULL;
    for (size_t i = 0; i < graph->n_draws && !draws; i++) { /* passes have one order of layers */
        size_t at = (graph->draws_at + i) % graph->n_draws;
        if (graph->draws[at].path != ctx->path) continue;
        draws = &graph->draws[at];
        graph->draws_at = at;
    }
    if (!draws) {
        if (!weft__grow(ctx, &graph->draws, &graph->draws_capacity, graph->n_draws, sizeof *graph->draws))
            return false;
        draws = &graph->draws[graph->n_draws++];
        *draws = (weft_layer_draws){
            .path = ctx->path, .step = ctx->random.step, .micro_batch = ctx->random.micro_batch};
    }
    if (draws->step != ctx->random.step || draws->micro_batch != ctx->random.micro_batch) draws->count = 0;
    draws->step = ctx->random.step;
    draws->micro_batch = ctx->random.micro_batch;
    weft_hash h;
    weft__hash_init(&h);
    weft__hash_str(&h, ctx->path);
    weft__hash_u64(&h, draws->count++);
    *stream = h.a;
    return true;
}

weft_tensor *weft__random_leaf(weft_context *ctx, const char *where, uint64_t stream) {
    int64_t words = 8;
    weft_tensor *t = weft__node(ctx, where, WEFT_OP_INPUT, WEFT_I32, 1, &words, 0, NULL, 0, NULL);
    if (t->error) return t;
    t->leaf = WEFT_LEAF_RANDOM;
    t->flags |= WEFT_NODE_DRAWN;
    t->value.random.stream = stream;
    return t;
}

weft_tensor *weft__random_next(weft_context *ctx, const char *where) {
    uint64_t stream;
    return next_stream(ctx, &stream) ? weft__random_leaf(ctx, where, stream) : &ctx->graph->oom;
}

weft_tensor *weft__random_node(const char *where, weft_tensor *key, int rank, const int64_t *shape) {
    if (key->error) return key;
    weft_tensor *t = weft__node(key->ctx, where, WEFT_OP_RANDOM, WEFT_I32, rank, shape, 1, &key, 0, NULL);
    if (!t->error) key->value.random.first = key->ctx->random.micro_batch * (uint64_t)t->numel;
    return t;
}

/* Uniform in [0, 1) with 24 bits, from 32 random bits an element. */
static weft_tensor *unit(const char *where, weft_tensor *bits) {
    if (bits->error) return bits;
    weft_tensor *eight = weft__constant(bits->ctx, where, WEFT_I32, 0, NULL, 8, 8);
    weft_tensor *mask = weft__constant(bits->ctx, where, WEFT_I32, 0, NULL, 0xffffff, 0xffffff);
    weft_tensor *high = weft_and_at(where, weft_shr_at(where, bits, eight), mask);
    return at_mul_scalar(weft_cast_at(where, high, WEFT_F32), 0x1p-24);
}

weft_tensor *weft__uniform_of_layer(const char *where, weft_context *ctx, int rank, const int64_t *shape) {
    return unit(where, weft__random_node(where, weft__random_next(ctx, where), rank, shape));
}

weft_tensor *weft_random_uniform(weft_context *ctx, int rank, const int64_t *shape) {
    weft_tensor *bad = source_check(ctx, "weft_random_uniform", WEFT_F32, rank, shape);
    return bad ? bad : weft__uniform_of_layer(NULL, ctx, rank, shape);
}

weft_tensor *weft_random_bits(weft_context *ctx, int rank, const int64_t *shape) {
    weft_tensor *bad = source_check(ctx, "weft_random_bits", WEFT_I32, rank, shape);
    if (bad) return bad;
    return weft__random_node(NULL, weft__random_next(ctx, NULL), rank, shape);
}

/* Box and Muller 1958: sqrt(-2 log(1 - u)) cos(2 pi v). */
weft_tensor *weft_random_normal(weft_context *ctx, int rank, const int64_t *shape) {
    weft_tensor *bad = source_check(ctx, "weft_random_normal", WEFT_F32, rank, shape);
    if (bad) return bad;
    const char *where = NULL;
    weft_tensor *u = weft_random_uniform(ctx, rank, shape), *v = weft_random_uniform(ctx, rank, shape);
    if (u->error || v->error) return u->error ? u : v;
    weft_tensor *radius = weft_sqrt_at(where, at_mul_scalar(at_log(at_sub_from(1.0, u)), -2.0));
    return at_mul(radius, at_cos(at_mul_scalar(v, 6.28318530717958647692)));
}
