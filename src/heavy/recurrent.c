/* What the compiler and the profile know of a recurrent layer. Must not know: devices. Read next:
 * recurrent.h. */
#include <stdio.h>
#include "heavy/heavy.h"

static int results(const weft_heavy *heavy) {
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    if (r->backward) return weft__recurrent_gated(r) ? 3 : 2;
    return r->kind == WEFT_LSTM ? 3 : r->kind == WEFT_GRU ? 2 : 1;
}

static int recurrent_operands(const weft_heavy *heavy) {
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    const bool lstm = r->kind == WEFT_LSTM;
    const int read = r->backward ? 3 + weft__recurrent_gated(r) + 2 * lstm : 5 + lstm;
    return read + r->masked + results(heavy);
}

static weft_dtype dtype(const weft_heavy *heavy) { return (weft_dtype)heavy->as.recurrent.dtype; }

/* Counts one matmul for each time step, and each tensor once. The weights stay in a cache. */
static void recurrent_cost(const weft_heavy *heavy, double *flops, double *bytes) {
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    const double gates = r->kind == WEFT_LSTM ? 4 : r->kind == WEFT_GRU ? 3 : 1, width = (double)r->width;
    const double rows = (double)r->t * (double)r->batch;
    const double others = r->kind == WEFT_LSTM ? 6 : r->kind == WEFT_GRU ? 5 : 1;
    *flops = rows * 2 * gates * width * width;
    *bytes = weft__heavy_size(r->dtype) * (rows * width * (gates + others) + gates * width * width);
}

static void recurrent_describe(const weft_heavy *heavy, char *text, size_t size) {
    static const char *const names[] = {
        [WEFT_RNN_TANH] = "rnn", [WEFT_RNN_RELU] = "rnn relu", [WEFT_LSTM] = "lstm", [WEFT_GRU] = "gru"};
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    snprintf(text, size, "%s%s%s%s %lldx%lldx%lld", names[r->kind], r->backward ? ".grad" : "",
             r->reverse ? " reverse" : "", r->masked ? " masked" : "", (long long)r->t, (long long)r->batch,
             (long long)r->width);
}

static const char *recurrent_check(const weft_heavy *heavy) {
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    if (!weft_dtype_is_float((weft_dtype)r->dtype)) return "the dtype is not a float";
    return weft__heavy_extents(3, (int64_t[]){r->t, r->batch, r->width}) ? NULL : "a negative extent";
}

const weft_heavy_class weft__heavy_recurrent = {.name = "recurrent layer",
                                                .work = WEFT_WORK_MATMUL,
                                                .operands = recurrent_operands,
                                                .results = results,
                                                .dtype = dtype,
                                                .cost = recurrent_cost,
                                                .describe = recurrent_describe,
                                                .check = recurrent_check};
