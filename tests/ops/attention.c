/* Attention: taken whole by a device or expanded, causal or not, with dropout, rows without keys, heads that
 * share keys, masks. */
#include "base/base.h"
#include "ops/grad.h"

typedef struct sample {
    const char *name;
    int64_t b, h, t, s, d;
    weft_attention_options options;
    int64_t sharing; /* heads that share keys; 0: one */
    enum { NO_MASK, PADDING, ADDED } mask;
} sample;

static int64_t key_heads(const sample *o) { return o->sharing ? o->h / o->sharing : o->h; }

/* What a mask does to key j of query i in a head: hides it, or adds a number. */
static real masked(const sample *o, int64_t head, int64_t i, int64_t j) {
    if (o->mask == PADDING) return j < o->s - head / o->h * 2 ? 0 : -HUGE_VALL;
    return o->mask == ADDED ? (real)((head % o->h * 3 + i * 2 + j) % 5) * 0.25L : 0;
}

static const sample samples[] = {
    {"plain", 2, 3, 5, 5, 8, .options = {0}},
    {"causal", 2, 3, 17, 17, 8, .options = {.causal = true}},
    {"more keys", 1, 2, 3, 33, 16, .options = {.causal = true}},
    {"fewer keys", 1, 2, 7, 4, 16, .options = {.causal = true}}, /* the first queries see nothing: 0 */
    {"one query", 2, 2, 1, 129, 32, .options = {.causal = true}},
    {"one of all", 1, 1, 1, 1, 1, .options = {0}},
    {"scaled", 1, 2, 16, 15, 7, .options = {.scale = 0.25}},
    {"long", 1, 1, 129, 127, 64, .options = {.causal = true}},
    {"dropped", 2, 2, 9, 9, 8, .options = {.causal = true, .dropout = 0.3}},
    {"no query", 1, 2, 0, 4, 8, .options = {0}},
    {"shared keys", 2, 6, 5, 5, 8, .options = {.causal = true}, .sharing = 3},
    {"one head of keys", 1, 4, 17, 33, 16, .options = {.causal = true}, .sharing = 4},
    {"one query of shared", 2, 4, 1, 70, 32, .options = {.causal = true}, .sharing = 2},
    {"padded", 3, 2, 5, 6, 8, .options = {0}, .mask = PADDING},
    {"added", 2, 2, 7, 7, 8, .options = {.causal = true}, .mask = ADDED},
    {"padded, shared", 2, 4, 5, 4, 8, .options = {0}, .sharing = 2, .mask = PADDING},
};

static bool sees(const sample *o, int64_t i, int64_t j) { return !o->options.causal || j <= i + o->s - o->t; }

/* Weights of one query in p, how far off they may be (relative) in off; false where it sees nothing. */
static bool weights(const sample *o, const real *q, const real *k, int64_t head, int64_t i, real scale,
                    weft_dtype dtype, real *p, real *off) {
    real largest = -HUGE_VALL, sum = 0, u = roundoff(dtype);
    for (int64_t j = 0; j < o->s; j++) {
        real dot = 0, size = 0;
        for (int64_t d = 0; d < o->d; d++) {
            dot += q[d] * k[j * o->d + d];
            size += fabsl(q[d] * k[j * o->d + d]);
        }
        p[j] = sees(o, i, j) ? dot * scale + masked(o, head, i, j) : -HUGE_VALL;
        off[j] = (2 * log2l((real)o->d) + 6) * size * scale;
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
            uint32_t bits = weft__random_u32(m->ctx->seed, stream, m->ctx->step, (uint64_t)(row * o->s + j));
            bool kept = (real)(bits >> 8) * 0x1p-24L >= (real)(float)o->options.dropout;
            p[j] = kept ? p[j] / (1 - (real)o->options.dropout) : 0;
        }
        for (int64_t d = 0; d < o->d && any; d++) {
            real sum = 0, magnitude = 0;
            for (int64_t j = 0; j < o->s; j++) {
                sum += p[j] * values[j * o->d + d];
                magnitude += fabsl(p[j] * values[j * o->d + d]);
            }
            y->f[row * o->d + d] = sum; /* the sum of weights is off as much as the worst of them */
            y->bound[row * o->d + d] = 2 * worst * magnitude + bound_sum(q->dtype, o->s, magnitude, sum);
        }
    }
    return y;
}

/* (B, 1, 1, S) of bool; (H, T, S) of f32. */
static weft_tensor *mask_of(weft_context *ctx, const sample *o) {
    bool seen[64] = {false};
    float more[256];
    if (!o->mask) return NULL;
    if (o->mask == PADDING) {
        for (int64_t at = 0; at < o->b * o->s; at++)
            seen[at] = masked(o, at / o->s * o->h, 0, at % o->s) == 0;
        return weft_from(ctx, WEFT_BOOL, 4, (int64_t[]){o->b, 1, 1, o->s}, seen);
    }
    for (int64_t at = 0; at < o->h * o->t * o->s; at++)
        more[at] = (float)masked(o, at / o->s / o->t, at / o->s % o->t, at % o->s);
    return weft_from(ctx, WEFT_F32, 3, (int64_t[]){o->h, o->t, o->s}, more);
}

static void check(matrix *m, const sample *o, weft_dtype dtype, view_kind view) {
    ops_breathe(m);
    shape queries = SHAPE(o->b, o->h, o->t, o->d), keys = SHAPE(o->b, key_heads(o), o->s, o->d);
    weft_attention_options options = o->options;
    options.mask = mask_of(m->ctx, o);
    operand q = operand_new(m, dtype, queries, view, GEN_NEAR_ONE),
            k = operand_new(m, dtype, keys, view, GEN_NORMAL);
    operand v = operand_new(m, dtype, keys, view, GEN_NORMAL);
    uint64_t stream = weft__mix64(UINT64_C(0x5eed) + m->ctx->random_ordinal);
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
        operand whole = operand_new(m, WEFT_I32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "attention", dtype, "mask's dtype",
                    weft_attention(x.t, x.t, x.t, &(weft_attention_options){.mask = whole.t}),
                    WEFT_ERR_DTYPE);
        for (int i = 0; i < COUNT(samples); i++)
            if (!samples[i].mask || !m->gpu || dtype == WEFT_F32) check(m, &samples[i], dtype, VIEW_PLAIN);
        for (int v = 1; v < VIEW_COUNT; v++) check(m, &samples[v % 3], dtype, (view_kind)v);
        check_packed(m, dtype);
    }
    ops_flush(m);
}

/* The nodes that carry a composite and its outputs are recorded by attention alone. */
void ops_case_composite(matrix *m);
void ops_case_composite(matrix *m) { (void)m; }
void ops_case_output(matrix *m);
void ops_case_output(matrix *m) { (void)m; }

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)dtype;
    ctx->random_ordinal = 3; /* the same draw each time */
    weft_attention_options options = ((const sample *)user)->options;
    options.mask = mask_of(ctx, user);
    return weft_attention(in[0], in[1], in[2], &options);
}

void ops_grad_attention(matrix *m);
void ops_grad_attention(matrix *m) {
    static const sample checked[] = {
        {"plain", 1, 2, 3, 3, 2, .options = {0}},
        {"causal", 1, 1, 4, 4, 3, .options = {.causal = true}},
        {"more keys", 2, 1, 2, 5, 3, .options = {.causal = true}},
        {"fewer keys", 1, 1, 4, 2, 3, .options = {.causal = true}},
        {"scaled", 1, 1, 3, 4, 2, .options = {.scale = 0.3}},
        {"dropped", 1, 1, 3, 4, 2, .options = {.dropout = 0.4}},
        {"large", 1, 2, 17, 17, 8, .options = {.causal = true}},
        {"shared keys", 2, 4, 3, 3, 2, .options = {.causal = true}, .sharing = 2},
        {"padded", 2, 2, 3, 4, 2, .options = {0}, .mask = PADDING},
        {"added, shared", 1, 2, 3, 3, 2, .options = {0}, .sharing = 2, .mask = ADDED}};
    for (int i = 0; i < COUNT(checked); i++) {
        const sample *o = &checked[i];
        if (m->gpu && o->mask) continue; /* many texts; test_transformers has such gradients */
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
