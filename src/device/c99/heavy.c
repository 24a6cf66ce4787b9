/* Heavy operations as calls of routines, which are C99 source in routines/. Must not know: programs. Read
 * next: routines/c99_matmul.c99, heavy/heavy.h. */
#include <gpu_sources.h>

#include "device/c99/c99.h"

enum { DOT, MATMUL, CONVOLVE, ATTEND, UPDATE, ROUTINES };
_Static_assert((int)ROUTINES <= (int)WEFT_C99_ROUTINES, "a flag for each routine");

/* ---- what can be written ---- */

static bool takes_attention(const weft_heavy_attention *a) {
    return a->dtype == WEFT_F32 && !a->backward && !a->masked && !(a->dropout > 0);
}

bool weft__c99_heavy_takes(const weft_heavy *heavy) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: {
        const weft_heavy_matmul *m = &heavy->as.matmul;
        return m->dtype == WEFT_F32 && m->out_dtype == WEFT_F32 && !m->epilogue && !m->sums;
    }
    case WEFT_HEAVY_CONV: return heavy->as.conv.dtype == WEFT_F32 && heavy->as.conv.pass == WEFT_CONV_FORWARD;
    case WEFT_HEAVY_ATTENTION: return takes_attention(&heavy->as.attention);
    case WEFT_HEAVY_UPDATE: return heavy->as.update.dtype == WEFT_F32;
    default: return false; /* a recurrent layer is expanded */
    }
}

weft_dtype weft__c99_heavy_dtype(const weft_heavy *heavy, int i) {
    const bool whole = (heavy->kind == WEFT_HEAVY_ATTENTION && i == WEFT_ATTENTION_KEY) ||
                       (heavy->kind == WEFT_HEAVY_UPDATE && i == WEFT_UPDATE_OFFSET);
    return whole ? WEFT_I32 : WEFT_F32;
}

bool weft__c99_heavy_has(const weft_heavy *heavy, int i) {
    if (heavy->kind != WEFT_HEAVY_ATTENTION) return true;
    return i != WEFT_ATTENTION_LSE && (i != WEFT_ATTENTION_KEY || heavy->as.attention.cached);
}

bool weft__c99_heavy_writes(const weft_heavy *heavy, int i) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return i == WEFT_MATMUL_C;
    case WEFT_HEAVY_CONV: return i == weft__conv_operand(&heavy->as.conv, WEFT_CONV_Y);
    case WEFT_HEAVY_ATTENTION: return i == WEFT_ATTENTION_OUT;
    default: return i == WEFT_UPDATE_OUT;
    }
}

/* ---- routines ---- */

void weft__c99_heavy_uses(const weft_heavy *heavy, bool used[WEFT_C99_ROUTINES]) {
    static const int routine[WEFT_HEAVY_KINDS] = {[WEFT_HEAVY_MATMUL] = MATMUL,
                                                  [WEFT_HEAVY_CONV] = CONVOLVE,
                                                  [WEFT_HEAVY_ATTENTION] = ATTEND,
                                                  [WEFT_HEAVY_UPDATE] = UPDATE};
    used[routine[heavy->kind]] = true;
    used[DOT] = used[DOT] || heavy->kind != WEFT_HEAVY_UPDATE;
}

void weft__c99_routines(const bool used[WEFT_C99_ROUTINES], weft_text *out) {
    static const char *const sources[ROUTINES] = {
        [DOT] = weft__source_c99_dot,           [MATMUL] = weft__source_c99_matmul,
        [CONVOLVE] = weft__source_c99_convolve, [ATTEND] = weft__source_c99_attend,
        [UPDATE] = weft__source_c99_update,
    };
    for (int i = 0; i < ROUTINES; i++)
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
    weft__put(out, "convolve(&(const struct convolution){");
    for (int i = 0; i < 4; i++) weft__put(out, "%lld, ", (long long)sizes[i]);
    for (int i = 0; i < 6; i++) {
        weft__put(out, i ? ", " : "");
        put_list(out, 2, pairs[i]);
    }
    weft__put(out, "}, %s, %s, %s);\n", args[0], args[1], args[2]);
}

static void put_attend(const weft_heavy_attention *a, const char *const *args, weft_text *out) {
    const int64_t sizes[6] = {a->batch, a->heads, weft__query_group(a), a->t_q, a->t_k, a->d};
    const int64_t *strides[4] = {a->q, a->k, a->v, a->out};
    weft__put(out, "attend(&(const struct attention){");
    for (int i = 0; i < 6; i++) weft__put(out, "%lld, ", (long long)sizes[i]);
    for (int i = 0; i < 4; i++) {
        put_list(out, 3, strides[i]);
        weft__put(out, ", ");
    }
    weft__c99_f32(out, (float)a->scale);
    weft__put(out, "}, ");
    if (a->cached)
        weft__put(out, "(%s)[0] + 1", args[WEFT_ATTENTION_KEY]);
    else
        weft__put(out, "%lld", a->causal ? (long long)(a->t_k - a->t_q + 1) : -1LL);
    weft__put(out, ", %s, %s, %s, %s);\n", args[WEFT_ATTENTION_Q], args[WEFT_ATTENTION_K],
              args[WEFT_ATTENTION_V], args[WEFT_ATTENTION_OUT]);
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
    default: put_update(&heavy->as.update, args, out); return;
    }
}
