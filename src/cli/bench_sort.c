/* Benchmarks sorting and related operations: sort, top-k, cumulative sums and products, argmax, where. Each
 * is a held program. Must not know: clocks. Read next: bench_ops.c. */
#include <stdio.h>
#include <string.h>

#include "cli/bench.h"

enum { MILLION = 1000000 };

typedef struct line {
    const char *name;
    int64_t shape[2];
    int gradient; /* 1: the gradient is computed too */
    weft_tensor *(*of)(weft_tensor *x);
} line;

static weft_tensor *sort(weft_tensor *x) { return weft_sort(x, 1, false, NULL); }
static weft_tensor *top_50(weft_tensor *x) { return weft_topk(x, 50, 1, true, NULL); }
static weft_tensor *top_10(weft_tensor *x) { return weft_topk(x, 10, 1, true, NULL); }
static weft_tensor *sums(weft_tensor *x) { return weft_cumsum(x, 1); }
static weft_tensor *sums_down(weft_tensor *x) { return weft_cumsum(x, 0); }
static weft_tensor *products(weft_tensor *x) { return weft_cumprod(x, 1); }
static weft_tensor *largest(weft_tensor *x) { return weft_argmax(x, 1, false); }
static weft_tensor *chosen(weft_tensor *x) { return weft_where(weft_gt(x, weft_neg(x)), x, weft_exp(x)); }
static weft_tensor *filled(weft_tensor *x) { return weft_masked_fill(x, weft_gt(x, weft_neg(x)), -1); }
static weft_tensor *turned(weft_tensor *x) { return weft_take_along_axis(x, weft_argsort(x, 1, false), 1); }
static weft_tensor *hot(weft_tensor *x) {
    return weft_one_hot(weft_cast(weft_mul_scalar(weft_abs(x), 99), WEFT_I32), 100, WEFT_F32);
}

static const line lines[] = {{"sort_1x1m", {1, MILLION}, 0, sort},
                             {"sort_64x50257", {64, 50257}, 0, sort},
                             {"sort_10000x100", {10000, 100}, 0, sort},
                             {"sort_gradient_1x1m", {1, MILLION}, 1, sort},
                             {"top50_64x50257", {64, 50257}, 0, top_50},
                             {"top10_1x1m", {1, MILLION}, 0, top_10},
                             {"top50_gradient_64x50257", {64, 50257}, 1, top_50},
                             {"take_gradient_1000x1000", {1000, 1000}, 1, turned},
                             {"cumsum_1x10m", {1, 10 * MILLION}, 0, sums},
                             {"cumsum_1mx8", {MILLION, 8}, 0, sums},
                             {"cumsum_down_4096x4096", {4096, 4096}, 0, sums_down},
                             {"cumprod_1000x1000", {1000, 1000}, 0, products},
                             {"cumprod_gradient_1000x1000", {1000, 1000}, 1, products},
                             {"argmax_1000x1000", {1000, 1000}, 0, largest},
                             {"argmax_1x1m", {1, MILLION}, 0, largest},
                             {"where_1000x1000", {1000, 1000}, 0, chosen},
                             {"masked_fill_1000x1000", {1000, 1000}, 0, filled},
                             {"one_hot_10000x100", {1, 10000}, 0, hot}};

static weft_status run_once(weft__bench *b) { return weft_program_run(b->program); }

weft_status weft__bench_sort(weft__bench *b) {
    if (b->variant >= (int)(sizeof lines / sizeof *lines)) return WEFT_ERR_STATE;
    const line *l = &lines[b->variant];
    snprintf(b->line_name, sizeof b->line_name, "sort_%s", l->name);
    if (b->only && !strstr(b->line_name, b->only)) return WEFT_OK;
    weft_tensor *x = weft__bench_some(b->ctx, 2, l->shape), *like = l->of(x), *out[2];
    const int64_t shape[] = {weft_dim(like, 0), weft_dim(like, 1)};
    weft_tensor *weights = l->gradient ? weft__bench_some(b->ctx, 2, shape) : NULL; /* assigns a variable */
    out[0] = weft_keep(l->of(x));
    if (weights) {
        weft_tensor *loss = weft_sum(weft_mul(out[0], weights), WEFT_ALL_AXES, false);
        WEFT_TRY(weft_gradient(loss, &x, 1, &out[1]));
        weft_keep(out[1]);
    }
    b->items_per_step = (double)l->shape[0] * (double)l->shape[1];
    b->step = run_once;
    return weft_compile(out, l->gradient ? 2 : 1, NULL, NULL, 0, &b->program);
}
