/* rotary and sinusoids, compared with their definitions: both pairings, given and default positions, one
 * position, odd widths. */
#include "ops/grad.h"

typedef struct turned {
    shape s;
    int positions; /* 0: none given, 1: a scalar, 2: one for each row */
    weft_rotary_options options;
} turned;

static const turned samples[] = {{{2, {5, 8}}, 0, {.base = 0}},
                                 {{4, {2, 3, 7, 16}}, 0, {.base = 0}},
                                 {{4, {2, 2, 6, 4}}, 1, {.interleaved = true}},
                                 {{3, {3, 9, 34}}, 2, {.base = 500}},
                                 {{3, {2, 0, 6}}, 0, {.base = 0}},
                                 {{4, {1, 2, 65, 2}}, 1, {.base = 1e6, .interleaved = true}},
                                 {{3, {2, 5, 10}}, 2, {.channels = 4}},
                                 {{3, {2, 9, 8}}, 1, {.scaling = {WEFT_ROTARY_LINEAR, .factor = 4}}},
                                 {{3, {2, 9, 16}}, 2, {.scaling = {WEFT_ROTARY_LLAMA3, 8, .context = 64}}},
                                 {{3, {2, 9, 32}}, 2, {.scaling = {WEFT_ROTARY_YARN, 4, .context = 64}}}};

static int64_t first_of(const turned *o, int64_t row) {
    return o->positions == 0 ? row : o->positions == 1 ? row + 11 : (row * 5 + 3) % 17;
}

/* Error bound of an angle, which is computed by an exponential and a product in f32 or f64. */
static real bound_angle(weft_dtype dtype, real angle, real exponent) {
    return fabsl(angle) * (8 + 2 * fabsl(exponent)) * roundoff_sum(dtype) + 8 * roundoff_sum(dtype);
}

/* The rate of pair i of n, given the rate without scaling. */
static real scaled(const weft_rotary_options *o, real rate, int64_t i, int64_t n) {
    const weft_rotary_scaling *s = &o->scaling;
    const real turn = 2 * acosl(-1), base = o->base > 0 ? (real)o->base : 10000, context = (real)s->context;
    real kept = 0;
    if (s->kind == WEFT_ROTARY_PLAIN) return rate;
    if (s->kind == WEFT_ROTARY_LLAMA3) kept = (rate * context / turn - 1) / (4 - 1);
    if (s->kind == WEFT_ROTARY_YARN) {
        const real per_log = (real)n / logl(base),
                   first = fmaxl(floorl(per_log * logl(context / (32 * turn))), 0),
                   last = fminl(ceill(per_log * logl(context / turn)), 2 * (real)n - 1);
        kept = 1 - ((real)i - first) / (last - first);
    }
    kept = fminl(fmaxl(kept, 0), 1);
    return rate * (kept + (1 - kept) / (real)s->factor);
}

static array *expect(matrix *m, const turned *o, const array *x) {
    array *y = array_like(m, x, x->dtype);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    const int64_t d = x->s.dim[x->s.rank - 1], time = x->s.dim[x->s.rank - 2];
    const int64_t channels = o->options.channels ? o->options.channels : d, half = channels / 2;
    const real base = o->options.base > 0 ? (real)o->options.base : 10000,
               grown = o->options.scaling.kind == WEFT_ROTARY_YARN
                           ? 0.1L * logl((real)o->options.scaling.factor) + 1
                           : 1;
    for (int64_t row = 0; d && row < x->n / d; row++) {
        for (int64_t i = 0; i < half; i++) {
            const int64_t a = row * d + (o->options.interleaved ? 2 * i : i),
                          b = row * d + (o->options.interleaved ? 2 * i + 1 : i + half);
            const real exponent = -2 * (real)i / (real)channels * logl(base),
                       angle = (real)first_of(o, row % time) * scaled(&o->options, expl(exponent), i, half);
            const real size = grown * (fabsl(x->f[a]) + fabsl(x->f[b])),
                       off = bound_angle(x->dtype, angle, exponent);
            y->f[a] = grown * (x->f[a] * cosl(angle) - x->f[b] * sinl(angle));
            y->f[b] = grown * (x->f[b] * cosl(angle) + x->f[a] * sinl(angle));
            y->bound[a] = size * off + bound_store(x->dtype, y->f[a]);
            y->bound[b] = size * off + bound_store(x->dtype, y->f[b]);
        }
        for (int64_t i = row * d + channels; i < (row + 1) * d; i++) y->f[i] = x->f[i];
    }
    return y;
}

static weft_tensor *position_of(matrix *m, const turned *o, int64_t time) {
    if (!o->positions) return NULL;
    const shape s = o->positions == 1 ? SCALAR_SHAPE : SHAPE(time);
    array *h = array_new(m, o->options.interleaved ? WEFT_I64 : WEFT_I32, s);
    for (int64_t i = 0; i < h->n; i++) h->i[i] = first_of(o, i);
    return operand_of(m, h).t;
}

static void check(matrix *m, const turned *o, weft_dtype dtype, view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, o->s, view, GEN_NORMAL);
    weft_tensor *position = position_of(m, o, o->s.dim[o->s.rank - 2]);
    ops_check(m, "rotary", dtype, ops_text(m, "%s %s", view_name(view), shape_text(m, o->s)),
              weft_rotary(x.t, position, &o->options), expect(m, o, x.h), TOLERANCE_GIVEN);
}

void ops_case_rotary(matrix *m);
void ops_case_rotary(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "rotary", dtype)) continue;
        weft_tensor *x = operand_new(m, dtype, SHAPE(3, 4), VIEW_PLAIN, GEN_NORMAL).t;
        if (!is_float(dtype)) {
            ops_refused(m, "rotary", dtype, "dtype", weft_rotary(x, NULL, NULL), WEFT_ERR_DTYPE);
            continue;
        }
        weft_tensor *odd = operand_new(m, dtype, SHAPE(3, 5), VIEW_PLAIN, GEN_NORMAL).t,
                    *line = operand_new(m, dtype, SHAPE(4), VIEW_PLAIN, GEN_NORMAL).t,
                    *two = operand_new(m, WEFT_I32, SHAPE(2), VIEW_PLAIN, GEN_NORMAL).t;
        ops_refused(m, "rotary", dtype, "odd", weft_rotary(odd, NULL, NULL), WEFT_ERR_SHAPE);
        ops_refused(m, "rotary", dtype, "rank", weft_rotary(line, NULL, NULL), WEFT_ERR_SHAPE);
        ops_refused(m, "rotary", dtype, "positions", weft_rotary(x, two, NULL), WEFT_ERR_SHAPE);
        ops_refused(m, "rotary", dtype, "position's dtype", weft_rotary(x, line, NULL), WEFT_ERR_DTYPE);
        ops_refused(m, "rotary", dtype, "base", weft_rotary(x, NULL, &(weft_rotary_options){.base = -1}),
                    WEFT_ERR_ARGUMENT);
        ops_refused(m, "rotary", dtype, "channels",
                    weft_rotary(x, NULL, &(weft_rotary_options){.channels = 3}), WEFT_ERR_ARGUMENT);
        ops_refused(m, "rotary", dtype, "factor",
                    weft_rotary(x, NULL, &(weft_rotary_options){.scaling = {WEFT_ROTARY_LINEAR}}),
                    WEFT_ERR_ARGUMENT);
        ops_refused(m, "rotary", dtype, "context",
                    weft_rotary(x, NULL, &(weft_rotary_options){.scaling = {WEFT_ROTARY_YARN, 2}}),
                    WEFT_ERR_ARGUMENT);
        ops_refused(m, "rotary", dtype, "no divisors",
                    weft_rotary(x, NULL, &(weft_rotary_options){.scaling = {WEFT_ROTARY_LONG}}),
                    WEFT_ERR_ARGUMENT);
        ops_refused(
            m, "rotary", dtype, "divisors",
            weft_rotary(x, NULL, &(weft_rotary_options){.scaling = {WEFT_ROTARY_LONG, .divisors = two}}),
            WEFT_ERR_ARGUMENT);
        for (int i = 0; i < COUNT(samples); i++) {
            if (samples[i].options.interleaved && d == 0) ops_another_way(m);
            if (!m->gpu || i < 4) check(m, &samples[i], dtype, VIEW_PLAIN);
        }
        for (int v = 1; v < VIEW_COUNT && !m->gpu; v++) check(m, &samples[v % 2 + 1], dtype, (view_kind)v);
    }
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)dtype;
    const turned *o = user;
    return weft_rotary(in[0], o->positions ? weft_scalar_of(ctx, WEFT_I32, 11) : NULL, &o->options);
}

void ops_grad_rotary(matrix *m);
void ops_grad_rotary(matrix *m) {
    static const turned checked[] = {{{2, {3, 4}}, 0, {.base = 0}},
                                     {{3, {2, 3, 6}}, 1, {.interleaved = true}},
                                     {{2, {3, 6}}, 0, {.channels = 4, .scaling = {WEFT_ROTARY_LINEAR, 2}}}};
    for (int i = 0; i < COUNT(checked); i++) {
        ops_another_way(m); /* the other pairing */
        grad_check(m, &(grad_case){.op = "rotary",
                                   .sample = shape_text(m, checked[i].s),
                                   .n = 1,
                                   .s = {checked[i].s},
                                   .low = -2,
                                   .high = 2,
                                   .build = build,
                                   .user = &checked[i]});
    }
}

/* ---- sinusoids ---- */

static void check_waves(matrix *m, weft_dtype dtype, shape s, int64_t width, double base) {
    array *h = array_new(m, dtype, s);
    for (int64_t i = 0; i < h->n; i++) h->i[i] = i * 3 % 101;
    operand p = operand_of(m, h);
    shape with = s;
    with.dim[with.rank++] = width;
    array *y = array_new(m, WEFT_F32, with);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t at = 0; at < y->n; at++) {
        const int64_t c = at % width;
        const real exponent = -2 * (real)(c / 2) / (real)width * logl(base > 0 ? (real)base : 10000),
                   angle = (real)h->i[at / width] * expl(exponent);
        y->f[at] = c % 2 ? cosl(angle) : sinl(angle);
        y->bound[at] = bound_angle(WEFT_F32, angle, exponent);
    }
    ops_check(m, "sinusoids", dtype, ops_text(m, "%s x %d", shape_text(m, s), (int)width),
              weft_sinusoids(p.t, width, base), y, TOLERANCE_GIVEN);
}

void ops_case_sinusoids(matrix *m);
void ops_case_sinusoids(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "sinusoids", dtype)) continue;
        weft_tensor *x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL).t;
        if (dtype != WEFT_I32 && dtype != WEFT_I64) {
            ops_refused(m, "sinusoids", dtype, "dtype", weft_sinusoids(x, 4, 0), WEFT_ERR_DTYPE);
            continue;
        }
        ops_refused(m, "sinusoids", dtype, "width", weft_sinusoids(x, 0, 0), WEFT_ERR_ARGUMENT);
        ops_refused(m, "sinusoids", dtype, "base", weft_sinusoids(x, 4, -2), WEFT_ERR_ARGUMENT);
        check_waves(m, dtype, SHAPE(65), 16, 0);
        check_waves(m, dtype, SHAPE(2, 3), 7, 100);
        check_waves(m, dtype, SCALAR_SHAPE, 2, 0);
        check_waves(m, dtype, SHAPE(0), 4, 0);
    }
    ops_flush(m);
}

/* The operands are integers, so there is nothing to differentiate. */
static weft_tensor *build_waves(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                const void *user) {
    (void)ctx, (void)user;
    return weft_cast(weft_sinusoids(weft_cast(in[0], WEFT_I32), 4, 0), dtype);
}

void ops_grad_sinusoids(matrix *m);
void ops_grad_sinusoids(matrix *m) {
    grad_none(m, &(grad_case){.op = "sinusoids",
                              .sample = "of integers",
                              .n = 1,
                              .s = {SHAPE(3)},
                              .low = 1,
                              .high = 9,
                              .build = build_waves,
                              .blames = "cast"});
}
