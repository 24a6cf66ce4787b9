/* Heavy operations as calls of routines, which are C99 source in routines/. Must not know: programs. Read
 * next: routines/c99_matmul.c99, heavy/heavy.h. */
#include <gpu_sources.h>

#include "device/c99/c99.h"

/* ---- what can be written ---- */

static bool takes_attention(const weft_heavy_attention *a) {
    return a->dtype == WEFT_F32 && !a->masked && !(a->dropout > 0);
}

bool weft__c99_heavy_takes(const weft_heavy *heavy) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: {
        const weft_heavy_matmul *m = &heavy->as.matmul;
        return m->dtype == WEFT_F32 && m->out_dtype == WEFT_F32 && !m->epilogue && !m->sums;
    }
    case WEFT_HEAVY_CONV: return heavy->as.conv.dtype == WEFT_F32;
    case WEFT_HEAVY_ATTENTION: return takes_attention(&heavy->as.attention);
    case WEFT_HEAVY_UPDATE: return heavy->as.update.dtype == WEFT_F32;
    case WEFT_HEAVY_SCATTER:
        return heavy->as.scatter.dtype == WEFT_F32 && heavy->as.scatter.index_dtype == WEFT_I32;
    default: return false; /* a recurrent layer is expanded */
    }
}

weft_dtype weft__c99_heavy_dtype(const weft_heavy *heavy, int i) {
    const bool whole = (heavy->kind == WEFT_HEAVY_ATTENTION && i == WEFT_ATTENTION_KEY) ||
                       (heavy->kind == WEFT_HEAVY_UPDATE && i == WEFT_UPDATE_OFFSET) ||
                       (heavy->kind == WEFT_HEAVY_SCATTER && i == WEFT_SCATTER_INDEX);
    return whole ? WEFT_I32 : WEFT_F32;
}

bool weft__c99_heavy_has(const weft_heavy *heavy, int i) {
    return heavy->kind != WEFT_HEAVY_ATTENTION || i != WEFT_ATTENTION_KEY || heavy->as.attention.cached;
}

bool weft__c99_heavy_writes(const weft_heavy *heavy, int i) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return i == WEFT_MATMUL_C;
    case WEFT_HEAVY_CONV: return i == WEFT_CONV_OPERANDS - 1;
    case WEFT_HEAVY_ATTENTION:
        return heavy->as.attention.backward ? i >= WEFT_ATTENTION_DQ : i >= WEFT_ATTENTION_OUT;
    case WEFT_HEAVY_SCATTER: return i == weft__scatter_out(&heavy->as.scatter);
    default: return i == WEFT_UPDATE_OUT;
    }
}

/* ---- routines ---- */

void weft__c99_heavy_uses(const weft_heavy *heavy, bool used[WEFT_C99_ROUTINES]) {
    static const int of_conv[] = {[WEFT_CONV_FORWARD] = WEFT_C99_CONVOLVE,
                                  [WEFT_CONV_INPUT] = WEFT_C99_CONVOLVE_INPUT,
                                  [WEFT_CONV_WEIGHT] = WEFT_C99_CONVOLVE_WEIGHT};
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: used[WEFT_C99_MATMUL] = used[WEFT_C99_DOT] = true; return;
    case WEFT_HEAVY_CONV:
        used[WEFT_C99_CONVOLUTION] = used[of_conv[heavy->as.conv.pass]] = true;
        if (heavy->as.conv.pass != WEFT_CONV_INPUT) used[WEFT_C99_DOT] = true;
        return;
    case WEFT_HEAVY_ATTENTION:
        used[WEFT_C99_ATTENTION] = used[WEFT_C99_DOT] = true;
        used[heavy->as.attention.backward ? WEFT_C99_ATTEND_BACK : WEFT_C99_ATTEND] = true;
        return;
    case WEFT_HEAVY_SCATTER: used[WEFT_C99_SCATTER] = true; return;
    default: used[WEFT_C99_UPDATE] = true; return;
    }
}

void weft__c99_routines(const bool used[WEFT_C99_ROUTINES], weft_text *out) {
    static const char *const sources[WEFT_C99_ROUTINES] = {
        [WEFT_C99_DOT] = weft__source_c99_dot,
        [WEFT_C99_MATMUL] = weft__source_c99_matmul,
        [WEFT_C99_CONVOLUTION] = weft__source_c99_convolution,
        [WEFT_C99_CONVOLVE] = weft__source_c99_convolve,
        [WEFT_C99_CONVOLVE_INPUT] = weft__source_c99_convolve_input,
        [WEFT_C99_CONVOLVE_WEIGHT] = weft__source_c99_convolve_weight,
        [WEFT_C99_ATTENTION] = weft__source_c99_attention,
        [WEFT_C99_ATTEND] = weft__source_c99_attend,
        [WEFT_C99_ATTEND_BACK] = weft__source_c99_attend_back,
        [WEFT_C99_UPDATE] = weft__source_c99_update,
        [WEFT_C99_SCATTER] = weft__source_c99_scatter,
        [WEFT_C99_DRAW] = weft__source_c99_draw,
    };
    for (int i = 0; i < WEFT_C99_ROUTINES; i++)
        if (used[i]) weft__put(out, "%s", sources[i]);
}

/* ---- calls ---- */

/* Writes "{1, 2, 3}". */
static void put_list(weft_text *out, int n, const int64_t *values) {
    for (int i = 0; i < n; i++) weft__put(out, "%s%lld", i ? ", " : "{", (long long)values[i]);
    weft__put(out, "}");
}

/* Writes how operand o moves with the loops over the batch. */
static void put_moves(weft_text *out, const weft_heavy_matmul *m, const int64_t *strides) {
    for (int d = 0; d < m->batch_rank; d++)
        if (m->batch[d] > 1 && strides[d] != 0) weft__put(out, " + b%d * %lld", d, (long long)strides[d]);
}

static void put_matmul(const weft_heavy_matmul *m, const char *const *args, weft_text *out) {
    for (int d = 0; d < m->batch_rank; d++)
        if (m->batch[d] > 1)
            weft__put(out, "for (int32_t b%d = 0; b%d < %lld; b%d++) ", d, d, (long long)m->batch[d], d);
    weft__put(out, "matmul(%lld, %lld, %lld, %s", (long long)m->m, (long long)m->n, (long long)m->k, args[0]);
    put_moves(out, m, m->a_batch);
    weft__put(out, ", %lld, %lld, %s", (long long)m->a_m, (long long)m->a_k, args[1]);
    put_moves(out, m, m->b_batch);
    weft__put(out, ", %lld, %lld, %s", (long long)m->b_k, (long long)m->b_n, args[2]);
    put_moves(out, m, m->c_batch);
    weft__put(out, ", %lld);\n", (long long)m->c_m);
}

static void put_convolve(const weft_heavy_conv *c, const char *const *args, weft_text *out) {
    const int64_t sizes[4] = {c->n, c->groups, c->in, c->out};
    const int64_t *pairs[6] = {c->x, c->size, c->y, c->stride, c->padding, c->dilation};
    static const char *const routines[] = {[WEFT_CONV_FORWARD] = "convolve",
                                           [WEFT_CONV_INPUT] = "convolve_input",
                                           [WEFT_CONV_WEIGHT] = "convolve_weight"};
    weft__put(out, "%s(&(const struct convolution){", routines[c->pass]);
    for (int i = 0; i < 4; i++) weft__put(out, "%lld, ", (long long)sizes[i]);
    for (int i = 0; i < 6; i++) {
        weft__put(out, i ? ", " : "");
        put_list(out, 2, pairs[i]);
    }
    weft__put(out, "}, %s, %s, %s);\n", args[0], args[1], args[2]);
}

static void put_strides(weft_text *out, int n, const int64_t *const *strides) {
    for (int i = 0; i < n; i++) {
        weft__put(out, i ? ", " : "");
        put_list(out, 3, strides[i]);
    }
}

static void put_attend(const weft_heavy_attention *a, const char *const *args, weft_text *out) {
    const int64_t sizes[6] = {a->batch, a->heads, weft__query_group(a), a->t_q, a->t_k, a->d};
    const int last = a->backward ? WEFT_ATTENTION_DV : WEFT_ATTENTION_LSE;
    weft__put(out, "%s(&(const struct attention){", a->backward ? "attend_back" : "attend");
    for (int i = 0; i < 6; i++) weft__put(out, "%lld, ", (long long)sizes[i]);
    put_strides(out, 4, (const int64_t *const[]){a->q, a->k, a->v, a->out});
    weft__put(out, ", ");
    weft__c99_f32(out, (float)a->scale);
    weft__put(out, "}, ");
    if (a->backward) {
        weft__put(out, "&(const struct attention_back){");
        put_strides(out, 4, (const int64_t *const[]){a->dout, a->dq, a->dk, a->dv});
        weft__put(out, "}, ");
    }
    if (a->cached)
        weft__put(out, "(%s)[0] + 1", args[WEFT_ATTENTION_KEY]);
    else
        weft__put(out, "%lld", a->causal ? (long long)(a->t_k - a->t_q + 1) : -1LL);
    for (int i = WEFT_ATTENTION_Q; i <= last; i++)
        if (i != WEFT_ATTENTION_KEY) weft__put(out, ", %s", args[i]);
    weft__put(out, ");\n");
}

static void put_scatter(const weft_heavy_scatter *s, const char *const *args, weft_text *out) {
    const char *to = args[weft__scatter_out(s)];
    const long long size = (long long)(s->outer * s->rows * s->inner);
    if (!s->based)
        weft__put(out, "memset(%s, 0, %lld * sizeof(float));\n    ", to, size);
    else if (!s->in_place)
        weft__put(out, "memcpy(%s, %s, %lld * sizeof(float));\n    ", to, args[WEFT_SCATTER_BASE], size);
    weft__put(out, "scatter(%lld, %lld, %lld, %lld, %s, %s, %s);\n", (long long)s->outer, (long long)s->count,
              (long long)s->rows, (long long)s->inner, args[WEFT_SCATTER_INDEX], args[WEFT_SCATTER_SOURCE],
              to);
}

static void put_update(const weft_heavy_update *u, const char *const *args, weft_text *out) {
    const long long size = (long long)(u->outer * u->total * u->inner);
    if (!u->in_place)
        weft__put(out, "memcpy(%s, %s, %lld * sizeof(float));\n    ", args[WEFT_UPDATE_OUT],
                  args[WEFT_UPDATE_INPUT], size);
    weft__put(out, "update(%lld, %lld, %lld, %lld, %s, (%s)[0], %s);\n", (long long)u->outer,
              (long long)u->total, (long long)u->extent, (long long)u->inner, args[WEFT_UPDATE_VALUE],
              args[WEFT_UPDATE_OFFSET], args[WEFT_UPDATE_OUT]);
}

void weft__c99_heavy(const weft_heavy *heavy, const char *const *args, weft_text *out) {
    weft__put(out, "    ");
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: put_matmul(&heavy->as.matmul, args, out); return;
    case WEFT_HEAVY_CONV: put_convolve(&heavy->as.conv, args, out); return;
    case WEFT_HEAVY_ATTENTION: put_attend(&heavy->as.attention, args, out); return;
    case WEFT_HEAVY_SCATTER: put_scatter(&heavy->as.scatter, args, out); return;
    default: put_update(&heavy->as.update, args, out); return;
    }
}
