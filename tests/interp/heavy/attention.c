/* Attention by its definition. It computes whole rows of weights. Its backward pass uses neither the saved
 * output nor the saved log-sum-exp.
 * Must not know: other devices. Read next: heavy/attention.h. */
#include <math.h>
#include <string.h>
#include "interp/heavy/heavy.h"

bool weft__interp_attention_takes(const weft_heavy_attention *heavy) {
    (void)heavy;
    return true;
}

typedef struct attention {
    const weft_heavy_attention *a;
    interp_operand at[WEFT_ATTENTION_OPERANDS];
    int32_t key[8];
    int64_t shift;   /* the first query sees keys 0..shift */
    int64_t b, h;    /* the current head */
    double *weights; /* (t_q, t_k) of this head: the softmax */
    double *kept;    /* (t_q, t_k): 0 if dropped, otherwise 1 / (1 - dropout) */
    double *dweights;
} attention;

static const int64_t *strides_of(const weft_heavy_attention *a, int which) {
    const int64_t *all[WEFT_ATTENTION_OPERANDS] = {a->q,    a->k,  a->v,  NULL,  a->out, NULL,
                                                   a->dout, a->dq, a->dk, a->dv, a->mask};
    return all[which];
}

/* Returns the offset of element (t, c) of the current head. */
static int64_t interp_attention_place(const attention *s, int which, int64_t t, int64_t c) {
    const int64_t *stride = strides_of(s->a, which);
    const int64_t head =
        which == WEFT_ATTENTION_K || which == WEFT_ATTENTION_V ? s->h / weft__query_group(s->a) : s->h;
    return s->b * stride[0] + head * stride[1] + t * stride[2] + c;
}
static double read_at(const attention *s, int which, int64_t t, int64_t c) {
    return interp_get(s->at[which], interp_attention_place(s, which, t, c)).f;
}
static void write_at(const attention *s, int which, int64_t t, int64_t c, double v) {
    interp_put(s->at[which], interp_attention_place(s, which, t, c), (weft_value){.f = v});
}

static bool sees(const attention *s, int64_t i, int64_t j) { return !s->a->causal || j <= i + s->shift; }

/* Returns a score with the mask added, or -inf if the mask hides it. */
static double masked(const attention *s, int64_t i, int64_t j, double score) {
    const weft_heavy_attention *a = s->a;
    if (!a->masked) return score;
    const int64_t element = s->b * a->mask[0] + s->h * a->mask[1] + i * a->mask[2] + j * a->mask[3];
    const weft_value value = interp_get(s->at[WEFT_ATTENTION_MASK], element);
    if (a->mask_dtype == WEFT_BOOL) return value.i ? score : -HUGE_VAL;
    return value.f == -HUGE_VAL ? value.f : score + value.f;
}

/* Computes row i of the softmax. parts[0] is the largest score, parts[1] the logarithm of the sum relative to
 * it. For a row that sees no key they are 0 and -inf. */
static void weigh(attention *s, int64_t i, double parts[2]) {
    const weft_heavy_attention *a = s->a;
    double *row = s->weights + i * a->t_k, most = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < a->t_k; j++) {
        double score = 0;
        for (int64_t c = 0; c < a->d; c++)
            score += read_at(s, WEFT_ATTENTION_Q, i, c) * read_at(s, WEFT_ATTENTION_K, j, c);
        row[j] = sees(s, i, j) ? masked(s, i, j, score * a->scale) : -HUGE_VAL;
        if (row[j] > most || isnan(row[j])) most = row[j];
    }
    parts[0] = 0, parts[1] = most;
    if (most == -HUGE_VAL) {
        memset(row, 0, (size_t)a->t_k * sizeof *row);
        return;
    }
    for (int64_t j = 0; j < a->t_k; j++) sum += row[j] = exp(row[j] - most);
    for (int64_t j = 0; j < a->t_k; j++) row[j] /= sum;
    parts[0] = most, parts[1] = log(sum);
}

/* Draws the dropout of row i. A weight is dropped if its uniform number, 24 bits of the stream, is below the
 * probability. */
static void interp_attention_drop(attention *s, int64_t i) {
    const weft_heavy_attention *a = s->a;
    const int64_t head = s->b * a->heads + s->h;
    for (int64_t j = 0; j < a->t_k; j++) {
        double *kept = &s->kept[i * a->t_k + j];
        *kept = 1;
        if (!(a->dropout > 0)) continue;
        const uint32_t bits = (uint32_t)weft__interp_random(s->key, (head * a->t_q + i) * a->t_k + j);
        *kept = (double)(bits >> 8) * 0x1p-24 < (double)(float)a->dropout ? 0 : 1 / (1 - a->dropout);
    }
}

static void attend(attention *s) {
    const weft_heavy_attention *a = s->a;
    for (int64_t i = 0; i < a->t_q; i++) {
        const double *row = s->weights + i * a->t_k, *kept = s->kept + i * a->t_k;
        double parts[2];
        weigh(s, i, parts);
        interp_attention_drop(s, i);
        if (a->backward) continue;
        const int64_t at = (s->b * a->heads + s->h) * a->t_q + i, rows = a->batch * a->heads * a->t_q;
        interp_put(s->at[WEFT_ATTENTION_LSE], at,
                   (weft_value){.f = a->masked ? parts[0] : parts[0] + parts[1]});
        if (a->masked) interp_put(s->at[WEFT_ATTENTION_LSE], rows + at, (weft_value){.f = parts[1]});
        for (int64_t c = 0; c < a->d; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a->t_k; j++)
                if (row[j] != 0) sum += row[j] * kept[j] * read_at(s, WEFT_ATTENTION_V, j, c);
            write_at(s, WEFT_ATTENTION_OUT, i, c, sum);
        }
    }
}

/* The backward pass. With weights p and y = (p kept) v:
 *     dp = kept (dy v^T)
 *     ds = p (dp - sum_j p dp)
 *     dv = (p kept)^T dy
 *     dq = scale ds k
 *     dk = scale ds^T q */
static void attend_backward(attention *s) {
    const weft_heavy_attention *a = s->a;
    for (int64_t i = 0; i < a->t_q; i++) {
        double *row = s->weights + i * a->t_k, *ds = s->dweights + i * a->t_k, mean = 0;
        for (int64_t j = 0; j < a->t_k; j++) {
            ds[j] = 0;
            if (row[j] == 0) continue;
            for (int64_t c = 0; c < a->d; c++)
                ds[j] += read_at(s, WEFT_ATTENTION_DOUT, i, c) * read_at(s, WEFT_ATTENTION_V, j, c);
            ds[j] *= s->kept[i * a->t_k + j];
            mean += row[j] * ds[j];
        }
        for (int64_t j = 0; j < a->t_k; j++) ds[j] = row[j] == 0 ? 0 : row[j] * (ds[j] - mean);
        for (int64_t c = 0; c < a->d; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a->t_k; j++)
                if (row[j] != 0) sum += ds[j] * read_at(s, WEFT_ATTENTION_K, j, c);
            write_at(s, WEFT_ATTENTION_DQ, i, c, a->scale * sum);
        }
    }
    for (int64_t j = 0; j < a->t_k; j++)
        for (int64_t c = 0; c < a->d; c++) {
            double dk = 0, dv = 0;
            for (int64_t i = 0; i < a->t_q; i++) {
                const int64_t at = i * a->t_k + j;
                if (s->weights[at] == 0) continue;
                dk += s->dweights[at] * read_at(s, WEFT_ATTENTION_Q, i, c);
                dv += s->weights[at] * s->kept[at] * read_at(s, WEFT_ATTENTION_DOUT, i, c);
            }
            write_at(s, WEFT_ATTENTION_DK, j, c, a->scale * dk);
            write_at(s, WEFT_ATTENTION_DV, j, c, dv);
        }
}

static weft_status attention_check(weft_interp *device, const weft_heavy *heavy, const int64_t *bytes) {
    const weft_heavy_attention *a = &heavy->as.attention;
    const weft_dtype dtype = (weft_dtype)a->dtype, lse_dtype = dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    const int64_t lse = (a->masked ? 2 : 1) * a->batch * a->heads * a->t_q, words = 8, flat[1] = {1};
    const int64_t scores[4] = {a->batch, a->heads, a->t_q, a->t_k};
    if (a->masked)
        WEFT_TRY(weft__interp_inside(device, heavy, WEFT_ATTENTION_KEY + 1, bytes[WEFT_ATTENTION_KEY + 1],
                                     (weft_dtype)a->mask_dtype, 4, scores, a->mask));
    for (int o = 0; o < (a->backward ? WEFT_ATTENTION_MASK : WEFT_ATTENTION_DOUT); o++) {
        const int at = weft__attention_operand(a, o);
        if (o == WEFT_ATTENTION_LSE) {
            WEFT_TRY(weft__interp_inside(device, heavy, at, bytes[at], lse_dtype, 1, &lse, flat));
        } else if (o == WEFT_ATTENTION_KEY) {
            if (a->cached || a->dropout > 0)
                WEFT_TRY(weft__interp_inside(device, heavy, o, bytes[o], WEFT_I32, 1,
                                             a->cached ? flat : &words, flat));
        } else {
            const bool of_keys = o == WEFT_ATTENTION_K || o == WEFT_ATTENTION_V || o == WEFT_ATTENTION_DK ||
                                 o == WEFT_ATTENTION_DV;
            const int64_t *s = strides_of(a, o),
                          heads = o == WEFT_ATTENTION_K || o == WEFT_ATTENTION_V
                                      ? a->heads / weft__query_group(a)
                                      : a->heads,
                          extent[4] = {a->batch, heads, of_keys ? a->t_k : a->t_q, a->d};
            const int64_t stride[4] = {s[0], s[1], s[2], 1};
            WEFT_TRY(weft__interp_inside(device, heavy, at, bytes[at], dtype, 4, extent, stride));
        }
    }
    return WEFT_OK;
}

weft_status weft__interp_attention(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                   const int64_t *bytes) {
    WEFT_TRY(attention_check(device, heavy, bytes));
    const weft_heavy_attention *a = &heavy->as.attention;
    const weft_dtype dtype = (weft_dtype)a->dtype;
    attention s = {.a = a, .shift = a->t_k - a->t_q};
    for (int o = 0; o < (a->backward ? WEFT_ATTENTION_MASK : WEFT_ATTENTION_DOUT); o++)
        s.at[o] = (interp_operand){o == WEFT_ATTENTION_LSE && dtype != WEFT_F64 ? WEFT_F32 : dtype,
                                   args[weft__attention_operand(a, o)]};
    if (a->masked)
        s.at[WEFT_ATTENTION_MASK] = (interp_operand){(weft_dtype)a->mask_dtype,
                                                     args[weft__attention_operand(a, WEFT_ATTENTION_MASK)]};
    if (a->dropout > 0) memcpy(s.key, args[WEFT_ATTENTION_KEY], sizeof s.key);
    if (a->cached) s.shift = *(const int32_t *)args[WEFT_ATTENTION_KEY];
    const size_t size = (size_t)(a->t_q * a->t_k);
    double *room = weft__array(device->base.ctx, size, 3 * sizeof *room);
    if (!room) return weft__fail_oom(device->base.ctx, 3 * size * sizeof *room, "interp: attention");
    s.weights = room, s.kept = room + size, s.dweights = room + 2 * size;
    for (s.b = 0; s.b < a->batch; s.b++)
        for (s.h = 0; s.h < a->heads; s.h++) {
            attend(&s);
            if (a->backward) attend_backward(&s);
        }
    weft__free(device->base.ctx, room);
    return WEFT_OK;
}
