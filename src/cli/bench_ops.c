/* Single operations: matrix products, and chains that are bound by memory. Each is a held program.
 * Must not know: clocks. Read next: cli/bench.c, which times them. */
#include <stdio.h>

#include "cli/bench.h"

static weft_status run_once(weft__bench *b) { return weft_run(b->program); }

/* Values between -1 and 1. */
static weft_tensor *some(weft_context *ctx, int rank, const int64_t *shape) {
    weft_tensor *t = weft_sub(weft_mul_scalar(weft_random_uniform(ctx, rank, shape), 2),
                              weft_full(ctx, WEFT_F32, 0, NULL, 1));
    weft_tensor *variable = weft_variable_new(ctx, "operand", WEFT_F32, rank, shape, NULL);
    weft_tensor *variables[] = {variable}, *values[] = {t};
    return weft_assign(variables, values, 1) == WEFT_OK ? variable : t;
}

weft_status weft__bench_gemm(weft__bench *b) {
    static const int64_t sizes[] = {128, 256, 512, 1024, 2048, 4096};
    if (b->variant >= (int)(sizeof sizes / sizeof *sizes)) return WEFT_ERR_STATE;
    int64_t n = sizes[b->variant], shape[] = {n, n};
    weft_tensor *out = weft_keep(weft_matmul(some(b->ctx, 2, shape), some(b->ctx, 2, shape)));
    WEFT_TRY(weft_compile(&out, 1, NULL, NULL, 0, &b->program));
    snprintf(b->line_name, sizeof b->line_name, "gemm_f32_n%lld", (long long)n);
    b->flops = 2.0 * (double)n * (double)n * (double)n;
    if (b->steps == 0) b->steps = n >= 4096 ? 3 : n >= 1024 ? 30 : n >= 512 ? 200 : 2000;
    b->items_per_step = b->flops;
    b->step = run_once;
    return WEFT_OK;
}

weft_status weft__bench_elementwise(weft__bench *b) {
    static const char *const names[] = {"add", "gelu", "softmax", "layernorm", "sumrow", "sumcol"};
    if (b->variant >= (int)(sizeof names / sizeof *names)) return WEFT_ERR_STATE;
    const int64_t n = 4096, square[] = {n, n};
    weft_tensor *x = some(b->ctx, 2, square), *w = some(b->ctx, 1, &n), *shift = some(b->ctx, 1, &n),
                *out = NULL;
    switch (b->variant) {
    case 0: out = weft_add(x, x); break;
    case 1: out = weft_gelu_tanh(weft_add(weft_mul(x, w), shift)); break;
    case 2: out = weft_softmax(x, 1); break;
    case 3: out = weft_layer_norm(x, w, shift, 1e-5); break;
    case 4: out = weft_sum(x, 1, false); break;
    default: out = weft_sum(x, 0, false); break;
    }
    weft_keep(out);
    WEFT_TRY(weft_compile(&out, 1, NULL, NULL, 0, &b->program));
    snprintf(b->line_name, sizeof b->line_name, "ew_%s_4096", names[b->variant]);
    b->bytes = (b->variant < 4 ? 2.0 : 1.0) * (double)(n * n) * 4;
    b->items_per_step = (double)(n * n);
    b->step = run_once;
    return WEFT_OK;
}
