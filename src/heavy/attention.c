/* What the compiler and the profile know of attention. Must not know: devices. Read next: attention.h. */
#include <math.h>
#include <stdio.h>
#include "heavy/heavy.h"

static int attention_operands(const weft_heavy *heavy) {
    const weft_heavy_attention *at = &heavy->as.attention;
    return (at->backward ? WEFT_ATTENTION_DV : WEFT_ATTENTION_LSE) + 1 + at->masked;
}

static int results(const weft_heavy *heavy) { return heavy->as.attention.backward ? 3 : 2; }
static weft_dtype dtype(const weft_heavy *heavy) { return (weft_dtype)heavy->as.attention.dtype; }

/* Counts two matmuls of each query with each key that it sees, and five in the backward pass. The host does
 * not know how full a cache is, so it assumes half. */
static void attention_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_attention *at = &heavy->as.attention;
    double heads = (double)at->batch * (double)at->heads, q = (double)at->t_q;
    double k = at->cached ? ceil((double)at->t_k / 2) : (double)at->t_k;
    double seen = !at->causal ? q * k : q <= k ? q * (k - q) + q * (q + 1) / 2 : k * (k + 1) / 2;
    double own = k / (double)weft__query_group(at); /* query heads share keys */
    double d = (double)at->d, rows = at->backward ? 4 * q + 2 * (k + own) : 2 * (q + own);
    *flops = heads * seen * d * 2 * (at->backward ? 5 : 2);
    *bytes = heads * rows * d * weft__heavy_size(at->dtype);
    if (!at->masked) return;
    const int64_t extent[4] = {at->batch, at->heads, at->t_q, at->t_k};
    double mask = weft__heavy_size(at->mask_dtype);
    for (int i = 0; i < 4; i++) mask *= at->mask[i] ? (double)extent[i] : 1;
    *bytes += mask;
}

static void attention_describe(const weft_heavy *heavy, char *text, size_t size) {
    const weft_heavy_attention *at = &heavy->as.attention;
    snprintf(text, size, "attention%s%s %lldx%lldx%lldx%lld", at->masked ? ".masked" : "",
             at->backward ? ".grad"
             : at->cached ? ".cached"
                          : "",
             (long long)at->batch, (long long)at->heads, (long long)at->t_q, (long long)at->d);
}

static const char *attention_check(const weft_heavy *heavy) {
    const weft_heavy_attention *at = &heavy->as.attention;
    if (!weft_dtype_is_float((weft_dtype)at->dtype)) return "the dtype is not a float";
    if (!weft__heavy_extents(6, (int64_t[]){at->batch, at->heads, at->t_q, at->t_k, at->d, at->query_group}))
        return "a negative extent";
    if (at->heads % weft__query_group(at) != 0)
        return "the number of query heads is not a multiple of the number of KV heads";
    return at->cached && at->backward ? "a gradient cannot go through a cache" : NULL;
}

const weft_heavy_class weft__heavy_attention = {.name = "attention",
                                                .work = WEFT_WORK_ATTENTION,
                                                .operands = attention_operands,
                                                .results = results,
                                                .dtype = dtype,
                                                .cost = attention_cost,
                                                .describe = attention_describe,
                                                .check = attention_check};
