/* Attention, computed by the device as one operation or by its expansion. Causal or not, with dropout, rows
 * without keys, grouped-query attention, masks. */
#include "base/base.h"
#include "ops/grad.h"

typedef struct sample {
    const char *name;
    int64_t b, h, t, s, d;
    weft_attention_options options;
    int64_t query_group; /* query heads per key head; 0: one */
    enum { NO_MASK, PADDING, ADDED, TURNED, LENGTHS, SCATTERED, WINDOW, QUERIES } mask;
} sample;

static int64_t key_heads(const sample *o) { return o->query_group ? o->h / o->query_group : o->h; }

/* Applies the mask to key j of query i in a head: returns -inf for a hidden key, else the number to add. */
static real masked(const sample *o, int64_t head, int64_t i, int64_t j) {
    bool seen = true;
    switch (o->mask) {
    case PADDING: seen = j < o->s - head / o->h * 2; break;
    case LENGTHS: seen = j < head / o->h * 2; break; /* the first sequence has no keys */
    case SCATTERED: seen = (head * 3 + i * 5 + j * 7) % 3 != 0 && i % 4 != 1; break;
    case WINDOW: /* large negative numbers hide the other keys */
        if (i > j + 9 || j > i + 30) return -HUGE_VALL;
        return (real)((i + j) % 7) * -0.125L;
    case QUERIES: seen = i % 3 != 2; break;
    case ADDED:
    case TURNED: return (real)((head % o->h * 3 + i * 2 + j) % 5) * 0.25L;
    default: break;
    }
    return seen ? 0 : -HUGE_VALL;
}

static const sample samples[] = {
    {"plain", 2, 3, 5, 5, 8, .options = {0}},
    {"causal", 2, 3, 17, 17, 8, .options = {.causal = true}},
    {"more keys", 1, 2, 3, 33, 16, .options = {.causal = true}},
    {"fewer keys", 1, 2, 7, 4, 16, .options = {.causal = true}}, /* the first queries see no key: result 0 */
    {"one query", 2, 2, 1, 129, 32, .options = {.causal = true}},
    {"one of all", 1, 1, 1, 1, 1, .options = {0}},
    {"scaled", 1, 2, 16, 15, 7, .options = {.scale = 0.25}},
    {"long", 1, 1, 129, 127, 64, .options = {.causal = true}},
    {"dropped", 2, 2, 9, 9, 8, .options = {.causal = true, .dropout = 0.3}},
    {"no query", 1, 2, 0, 4, 8, .options = {0}},
    {"shared keys", 2, 6, 5, 5, 8, .options = {.causal = true}, .query_group = 3},
    {"one head of keys", 1, 4, 17, 33, 16, .options = {.causal = true}, .query_group = 4},
    {"one query of shared", 2, 4, 1, 70, 32, .options = {.causal = true}, .query_group = 2},
    {"padded", 3, 2, 5, 6, 8, .options = {0}, .mask = PADDING},
    {"added", 2, 2, 7, 7, 8, .options = {.causal = true}, .mask = ADDED},
    {"padded, shared", 2, 4, 5, 4, 8, .options = {0}, .query_group = 2, .mask = PADDING},
    {"of lengths", 3, 2, 5, 5, 7, .options = {.causal = true}, .mask = LENGTHS},
    {"some seen", 2, 2, 9, 70, 8, .options = {.dropout = 0.3}, .mask = SCATTERED},
    {"a window", 1, 2, 70, 300, 16, .options = {0}, .mask = WINDOW},
    {"turned", 1, 2, 40, 33, 16, .options = {0}, .mask = TURNED},
    {"of queries", 1, 2, 6, 7, 31, .options = {.scale = 0.5}, .mask = QUERIES},
    {"one query, padded", 2, 4, 1, 300, 16, .options = {0}, .query_group = 2, .mask = LENGTHS},
    {"the last keys", 1, 2, 9, 11, 8, .options = {.causal = true, .window = 4}},
    {"softly capped", 2, 2, 9, 9, 8, .options = {.causal = true, .softcap = 0.8}},
};

static bool sees(const sample *o, int64_t i, int64_t j) {
    const int64_t last = i + o->s - o->t;
    if (o->options.window && j <= last - o->options.window) return false;
    return !o->options.causal || j <= last;
}

/* The slope of the cap is at most 1, so it does not enlarge an error. Its own error is that of tanh. */
static real capped(const sample *o, real score) {
    const real cap = (real)o->options.softcap;
    return cap > 0 ? cap * tanhl(score / cap) : score;
}

/* Computes the weights of one query in p, and their relative error bounds in off. Returns false if the query
 * sees no key. */
static bool weights(const sample *o, const real *q, const real *k, int64_t head, int64_t i, real scale,
                    weft_dtype dtype, real *p, real *off) {
    real largest = -HUGE_VALL, sum = 0, u = roundoff(dtype);
    for (int64_t j = 0; j < o->s; j++) {
        real dot = 0, size = 0;
        for (int64_t d = 0; d < o->d; d++) {
            dot += q[d] * k[j * o->d + d];
            size += fabsl(q[d] * k[j * o->d + d]);
        }
        p[j] = sees(o, i, j) ? capped(o, dot * scale) + masked(o, head, i, j) : -HUGE_VALL;
        off[j] = (2 * log2l((real)o->d) + 6) * size * scale + 8 * (real)o->options.softcap;
        largest = fmaxl(largest, p[j]);
    }
    if (largest == -HUGE_VALL) return false;
    for (int64_t j = 0; j < o->s; j++) {
        off[j] = (off[j] + (isinf(p[j]) ? 0 : largest - p[j]) + 2 * log2l((real)o->s) + 8) * u;
        sum += p[j] = expl(p[j] - largest);
    }
    for (int64_t j = 0; j < o->s; j++) p[j] /= sum;
    return true;
}

static array *expect(matrix *m, const sample *o, const array *q, const array *k, const array *v,
                     uint64_t stream) {
    array *y = array_like(m, q, q->dtype);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    real *p = ops_alloc(m, (size_t)(o->s + 1) * sizeof *p),
         *off = ops_alloc(m, (size_t)(o->s + 1) * sizeof *off);
    real scale = o->options.scale > 0 ? (real)o->options.scale : 1 / sqrtl((real)o->d), worst = 0;
    for (int64_t row = 0; row < o->b * o->h * o->t; row++) {
        int64_t head = row / o->t, i = row % o->t;
        const int64_t of_keys =
            (head / o->h * key_heads(o) + head % o->h * key_heads(o) / o->h) * o->s * o->d;
        const real *values = v->f + of_keys;
        bool any = weights(o, q->f + row * o->d, k->f + of_keys, head, i, scale, q->dtype, p, off);
        for (int64_t j = 0; j < o->s && any; j++) worst = fmaxl(j ? worst : 0, p[j] > 0 ? off[j] : 0);
        for (int64_t j = 0; j < o->s && any && o->options.dropout > 0; j++) {
            uint32_t bits = weft__random_u32(m->ctx->random.seed, stream, m->ctx->random.step,
                                             (uint64_t)(row * o->s + j));
            bool kept = (real)(bits >> 8) * 0x1p-24L >= (real)(float)o->options.dropout;
            p[j] = kept ? p[j] / (1 - (real)o->options.dropout) : 0;
        }
        for (int64_t d = 0; d < o->d && any; d++) {
            real sum = 0, magnitude = 0;
            for (int64_t j = 0; j < o->s; j++) {
                sum += p[j] * values[j * o->d + d];
                magnitude += fabsl(p[j] * values[j * o->d + d]);
            }
            y->f[row * o->d + d] = sum; /* the error of the sum is that of its worst weight */
            y->bound[row * o->d + d] = 2 * worst * magnitude + bound_sum(q->dtype, o->s, magnitude, sum);
        }
    }
    return y;
}

/* The mask. Bool: (B, 1, 1, S), (B, H, T, S) or (T, 1). f32: (H, T, S), also as a view of (H, S, T), or (T,
 * S). */
static weft_tensor *mask_of(weft_context *ctx, const sample *o) {
    static const int turned[3] = {0, 2, 1};
    const bool numbers = o->mask == ADDED || o->mask == TURNED || o->mask == WINDOW;
    int64_t extent[4] = {o->b, o->h, o->t, o->s}, n = 0;
    if (o->mask == PADDING || o->mask == LENGTHS) extent[1] = extent[2] = 1;
    if (o->mask == ADDED || o->mask == TURNED) extent[0] = 1;
    if (o->mask == WINDOW || o->mask == QUERIES) extent[0] = extent[1] = 1;
    if (o->mask == QUERIES) extent[3] = 1;
    if (!o->mask) return NULL;
    const size_t count = (size_t)(extent[0] * extent[1] * extent[2] * extent[3]);
    bool *seen = calloc(count, sizeof *seen);
    float *more = calloc(count, sizeof *more);
    for (int64_t head = 0; head < extent[0] * extent[1]; head++)
        for (int64_t at = 0; at < extent[2] * extent[3]; at++, n++) {
            const int64_t i = o->mask == TURNED ? at % o->t : at / extent[3],
                          j = o->mask == TURNED ? at / o->t : at % extent[3];
            const real x = masked(o, extent[1] == 1 ? head * o->h : head, i, j);
            seen[n] = x == 0;
            more[n] = (float)x;
        }
    const int64_t swapped[3] = {extent[1], extent[3], extent[2]};
    const int rank = o->mask == QUERIES || o->mask == WINDOW ? 2 : o->mask == ADDED ? 3 : 4;
    weft_tensor *mask = o->mask == TURNED ? weft_permute(weft_from(ctx, WEFT_F32, 3, swapped, more), turned)
                        : numbers         ? weft_from(ctx, WEFT_F32, rank, extent + 4 - rank, more)
                                          : weft_from(ctx, WEFT_BOOL, rank, extent + 4 - rank, seen);
    free(seen);
    free(more);
    return mask;
}

static void check(matrix *m, const sample *o, weft_dtype dtype, view_kind view) {
    ops_breathe(m);
    shape queries = SHAPE(o->b, o->h, o->t, o->d), keys = SHAPE(o->b, key_heads(o), o->s, o->d);
    weft_attention_options options = o->options;
    options.mask = mask_of(m->ctx, o);
    operand q = operand_new(m, dtype, queries, view, GEN_NEAR_ONE),
            k = operand_new(m, dtype, keys, view, GEN_NORMAL);
    operand v = operand_new(m, dtype, keys, view, GEN_NORMAL);
    uint64_t stream = weft__mix64(UINT64_C(0x5eed) + m->ctx->random.ordinal);
    ops_check(m, "attention", dtype, ops_text(m, "%s %s", o->name, view_name(view)),
              weft_attention(q.t, k.t, v.t, &options), expect(m, o, q.h, k.h, v.h, stream), TOLERANCE_GIVEN);
}

/* q, k and v as narrow slices of one packed projection (B, T, 3 H D), as a model has them. */
static void check_packed(matrix *m, weft_dtype dtype) {
    enum { B = 2, T = 9, H = 3, D = 8 };
    const sample o = {"packed", B, H, T, T, D, .options = {.causal = true}};
    ops_breathe(m);
    operand all = operand_new(m, dtype, SHAPE(B, T, 3, H, D), VIEW_PLAIN, GEN_NORMAL), part[3];
    for (int i = 0; i < 3; i++) {
        const int order[4] = {0, 2, 1, 3};
        weft_tensor *t = weft_squeeze(weft_narrow(all.t, 2, i, 1), 2);
        array *h = array_slice(m, all.h, (int64_t[]){0, 0, i, 0, 0}, (int64_t[]){1, 1, 1, 1, 1},
                               SHAPE(B, T, 1, H, D));
        part[i] = (operand){weft_permute(t, order),
                            array_permute(m, array_reshape(m, h, SHAPE(B, T, H, D)), order)};
    }
    ops_check(m, "attention", dtype, "packed", weft_attention(part[0].t, part[1].t, part[2].t, &o.options),
              expect(m, &o, part[0].h, part[1].h, part[2].h, 0), TOLERANCE_GIVEN);
}

void ops_case_attention(matrix *m);
void ops_case_attention(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "attention", dtype)) continue;
        operand x = operand_new(m, dtype, SHAPE(1, 2, 3, 4), VIEW_PLAIN, GEN_NORMAL);
        if (!is_float(dtype)) {
            ops_refused(m, "attention", dtype, "dtype", weft_attention(x.t, x.t, x.t, NULL), WEFT_ERR_DTYPE);
            continue;
        }
        operand y = operand_new(m, dtype, SHAPE(1, 2, 3, 5), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "attention", dtype, "shapes", weft_attention(x.t, y.t, y.t, NULL), WEFT_ERR_SHAPE);
        operand three = operand_new(m, dtype, SHAPE(1, 3, 3, 4), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "attention", dtype, "heads", weft_attention(x.t, three.t, three.t, NULL),
                    WEFT_ERR_SHAPE);
        ops_refused(m, "attention", dtype, "mask",
                    weft_attention(x.t, x.t, x.t, &(weft_attention_options){.mask = y.t}), WEFT_ERR_SHAPE);
        ops_refused(m, "attention", dtype, "window",
                    weft_attention(x.t, x.t, x.t, &(weft_attention_options){.window = 2}), WEFT_ERR_ARGUMENT);
        ops_refused(m, "attention", dtype, "softcap",
                    weft_attention(x.t, x.t, x.t, &(weft_attention_options){.softcap = -2}),
                    WEFT_ERR_ARGUMENT);
        operand whole = operand_new(m, WEFT_I32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "attention", dtype, "mask's dtype",
                    weft_attention(x.t, x.t, x.t, &(weft_attention_options){.mask = whole.t}),
                    WEFT_ERR_DTYPE);
        for (int i = 0; i < COUNT(samples); i++)
            if (samples[i].mask <= PADDING || !m->gpu || dtype == WEFT_F32)
                check(m, &samples[i], dtype, VIEW_PLAIN);
        for (int v = 1; v < VIEW_COUNT; v++) check(m, &samples[v % 3], dtype, (view_kind)v);
        check_packed(m, dtype);
    }
    ops_flush(m);
}

/* Only attention records the nodes of a composite and of its outputs, so this op has no cases of its own. */
void ops_case_composite(matrix *m);
void ops_case_composite(matrix *m) { (void)m; }
void ops_case_output(matrix *m);
void ops_case_output(matrix *m) { (void)m; }

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)dtype;
    ctx->random.ordinal = 3; /* the same random numbers each time */
    weft_attention_options options = ((const sample *)user)->options;
    options.mask = mask_of(ctx, user);
    return weft_attention(in[0], in[1], in[2], &options);
}

/* The mask is the fourth operand. */
static weft_tensor *build_learned(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                  const void *user) {
    (void)ctx, (void)dtype;
    weft_attention_options options = ((const sample *)user)->options;
    options.mask = in[3];
    return weft_attention(in[0], in[1], in[2], &options);
}

void ops_grad_attention(matrix *m);
void ops_grad_attention(matrix *m) {
    static const sample learned = {"a mask that learns", 2, 2, 3, 4, 2, .options = {.causal = true}};
    const shape values = SHAPE(2, 2, 4, 2);
    if (!m->gpu)
        grad_check(m, &(grad_case){.op = "attention",
                                   .sample = learned.name,
                                   .n = 4,
                                   .s = {SHAPE(2, 2, 3, 2), values, values, SHAPE(2, 1, 4)},
                                   .low = -1,
                                   .high = 1,
                                   .build = build_learned,
                                   .user = &learned});
    static const sample checked[] = {
        {"plain", 1, 2, 3, 3, 2, .options = {0}},
        {"causal", 1, 1, 4, 4, 3, .options = {.causal = true}},
        {"more keys", 2, 1, 2, 5, 3, .options = {.causal = true}},
        {"fewer keys", 1, 1, 4, 2, 3, .options = {.causal = true}},
        {"scaled", 1, 1, 3, 4, 2, .options = {.scale = 0.3}},
        {"dropped", 1, 1, 3, 4, 2, .options = {.dropout = 0.4}},
        {"large", 1, 2, 17, 17, 8, .options = {.causal = true}},
        {"shared keys", 2, 4, 3, 3, 2, .options = {.causal = true}, .query_group = 2},
        {"padded", 2, 2, 3, 4, 2, .options = {0}, .mask = PADDING},
        {"added, shared", 1, 2, 3, 3, 2, .options = {0}, .query_group = 2, .mask = ADDED},
        {"some seen", 1, 2, 6, 5, 2, .options = {.causal = true, .dropout = 0.3}, .mask = SCATTERED},
        {"of lengths", 2, 1, 3, 3, 2, .options = {0}, .mask = LENGTHS},
        {"a window", 1, 1, 7, 150, 2, .options = {0}, .mask = WINDOW},
        {"turned", 1, 2, 3, 4, 2, .options = {0}, .mask = TURNED},
        {"the last keys, capped", 2, 2, 5, 5, 2, .options = {.causal = true, .window = 2, .softcap = 0.7}}};
    for (int i = 0; i < COUNT(checked); i++) {
        const sample *o = &checked[i];
        if (m->gpu && o->mask && o->mask != PADDING && o->mask != WINDOW)
            continue; /* one for each kernel source */
        shape keys = SHAPE(o->b, key_heads(o), o->s, o->d);
        grad_check(m, &(grad_case){.op = "attention",
                                   .sample = o->name,
                                   .n = 3,
                                   .s = {SHAPE(o->b, o->h, o->t, o->d), keys, keys},
                                   .low = -1,
                                   .high = 1,
                                   .build = build,
                                   .user = o});
    }
}
