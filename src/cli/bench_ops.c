/* Benchmarks single operations: matmuls, and fused elementwise operations and reductions that are bound by
 * memory. Each is a held program. Must not know: clocks. Read next: cli/bench.c, which times them. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cli/bench.h"
#include "optim/optimizer.h"

static weft_status run_once(weft__bench *b) { return weft_program_run(b->program); }

/* Returns a variable of random values between -1 and 1. */
static weft_tensor *some_of(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *shape) {
    weft_tensor *t = weft_sub(weft_mul_scalar(weft_random_uniform(ctx, rank, shape), 2),
                              weft_full(ctx, WEFT_F32, 0, NULL, 1));
    if (dtype != WEFT_F32) t = weft_cast(t, dtype);
    weft_tensor *variable = weft_variable_new(ctx, "operand", dtype, rank, shape, NULL);
    weft_tensor *variables[] = {variable}, *values[] = {t};
    return weft_assign(variables, values, 1) == WEFT_OK ? variable : t;
}

static weft_tensor *some(weft_context *ctx, int rank, const int64_t *shape) {
    return some_of(ctx, WEFT_F32, rank, shape);
}

/* ---- matmuls ---- */

static const weft__bench_matmul matmuls[] = {
    {"n8", 8, 8, 8, false, false, 0},
    {"n16", 16, 16, 16, false, false, 0},
    {"n32", 32, 32, 32, false, false, 0},
    {"n48", 48, 48, 48, false, false, 0},
    {"n64", 64, 64, 64, false, false, 0},
    {"n128", 128, 128, 128, false, false, 0},
    {"n256", 256, 256, 256, false, false, 0},
    {"n512", 512, 512, 512, false, false, 0},
    {"n1024", 1024, 1024, 1024, false, false, 0},
    {"n2048", 2048, 2048, 2048, false, false, 0},
    {"n4096", 4096, 4096, 4096, false, false, 0},
    /* layers: y = x W^T, dx = dy W, dW = dy^T x; then a token in decoding */
    {"mlp_fwd_nt_128x512x784", 128, 512, 784, false, true, 0},
    {"mlp_dx_nn_128x512x512", 128, 512, 512, false, false, 0},
    {"mlp_dw_tn_512x784x128", 512, 784, 128, true, false, 0},
    {"gpt2_fwd_nt_256x3072x768", 256, 3072, 768, false, true, 0},
    {"gpt2_dx_nn_256x768x3072", 256, 768, 3072, false, false, 0},
    {"gpt2_dw_tn_3072x768x256", 3072, 768, 256, true, false, 0},
    {"gpt2_head_nt_256x50304x768", 256, 50304, 768, false, true, 0},
    {"gemv_nt_1x3072x768", 1, 3072, 768, false, true, 0},
    {"batch96_nt_64x64x64", 64, 64, 64, false, true, 96},
};

static int64_t items_of(const weft__bench_matmul *p) { return p->batch ? p->batch : 1; }

/* Returns matmul i, whose operand begins at row i of a. All matmuls of a program differ, so none is computed
 * only once. */
static weft_tensor *one_product(const weft__bench_matmul *p, weft_tensor *a, weft_tensor *b, int64_t i) {
    int64_t rows = items_of(p) * (p->a_t ? p->k : p->m), width = weft_dim(a, 1);
    weft_tensor *window = weft_slice(a, (int64_t[]){i, 0}, (int64_t[]){i + rows, width}, NULL);
    if (p->batch) window = weft_reshape(window, 3, (int64_t[]){p->batch, rows / p->batch, width});
    return weft_matmul(p->a_t ? weft_transpose(window, -2, -1) : window,
                       p->b_t ? weft_transpose(b, -2, -1) : b);
}

int64_t weft__bench_parts(const weft__bench_matmul *p) {
    const double results = (double)(items_of(p) * p->m * p->n), flops = 2.0 * results * (double)p->k;
    const double fit = fmin(0.02 * 300e9 / flops, 4194304.0 / (4.0 * results));
    return (int64_t)fmax(1.0, fmin(fit, WEFT__BENCH_MATMULS));
}

weft_status weft__bench_compile(weft_context *ctx, const weft__bench_matmul *p, weft_dtype dtype,
                                int64_t parts, weft_tensor *abc[3], weft_program **program) {
    weft_tensor *out[WEFT__BENCH_MATMULS];
    const int64_t a_shape[] = {items_of(p) * (p->a_t ? p->k : p->m) + parts - 1, p->a_t ? p->m : p->k};
    const int64_t b_shape[] = {p->batch, p->b_t ? p->n : p->k, p->b_t ? p->k : p->n};
    abc[0] = some_of(ctx, dtype, 2, a_shape);
    abc[1] = p->batch ? some_of(ctx, dtype, 3, b_shape) : some_of(ctx, dtype, 2, b_shape + 1);
    for (int64_t i = 0; i < parts; i++) out[i] = weft_keep(one_product(p, abc[0], abc[1], i));
    abc[2] = out[0];
    return weft_compile(out, (size_t)parts, NULL, NULL, 0, program);
}

/* Sets up a matmul. The reported time is that of one matmul. */
weft_status weft__bench_matmuls(weft__bench *b) {
    if (b->variant >= (int)(sizeof matmuls / sizeof *matmuls)) return WEFT_ERR_STATE;
    const weft__bench_matmul *p = &matmuls[b->variant];
    snprintf(b->line_name, sizeof b->line_name, "gemm_f32_%s", p->name);
    if (b->only && !strstr(b->line_name, b->only)) return WEFT_OK;
    b->flops = 2.0 * (double)items_of(p) * (double)p->m * (double)p->n * (double)p->k;
    b->parts = weft__bench_parts(p);
    double runs = 0.3 * 300e9 / b->flops / (double)b->parts;
    if (b->steps == 0) b->steps = (int64_t)fmax(5.0, fmin(runs, 1000.0));
    b->items_per_step = b->flops;
    b->step = run_once;
    weft_tensor *abc[3];
    return weft__bench_compile(b->ctx, p, WEFT_F32, b->parts, abc, &b->program);
}

/* ---- operations bound by memory, and the update ---- */

/* Sets up AdamW for one 4096 x 4096 parameter. The loss is linear in the parameter, so the gradient is a
 * constant. The loss itself is not computed. */
static weft_status adamw(weft__bench *b) {
    const int64_t n = 4096, square[] = {n, n};
    b->module = weft_nn_linear(b->ctx, n, n, &(weft_linear_options){.no_bias = true});
    b->optimizer = weft_adamw(b->module, &(weft_adam_options){.lr = 1e-3, .weight_decay = 0.1});
    weft_tensor *loss = weft_sum(weft_mul(weft_parameter(b->module, "weight"), some(b->ctx, 2, square)),
                                 WEFT_ALL_AXES, false);
    weft__sinks sinks;
    WEFT_TRY(weft__optimizer_layout(b->optimizer));
    WEFT_TRY(weft__optimizer_numbers(b->optimizer, 0));
    WEFT_TRY(weft__optimizer_record(b->optimizer, loss, &weft__whole_step, 1, &sinks));
    WEFT_TRY(weft_compile(NULL, 0, sinks.variable, sinks.value, sinks.count, &b->program));
    b->bytes =
        /* reads parameter, gradient and both moments; writes all but the gradient */
        7.0 * (double)(n * n) * 4;
    b->items_per_step = (double)(n * n);
    b->step = run_once;
    return WEFT_OK;
}

/* Sets up a cross-entropy over the vocabulary of GPT-2, with its gradient. */
static weft_status classes(weft__bench *b, weft_tensor **out) {
    const int64_t n = 1024, shape[] = {n, 50257};
    weft_tensor *x = some(b->ctx, 2, shape), *target, *gradient;
    target = weft_cast(weft_mul_scalar(weft_random_uniform(b->ctx, 1, &n), 50257), WEFT_I32);
    weft_tensor *loss = weft_cross_entropy(x, weft_keep(target), NULL);
    WEFT_TRY(weft_eval(&target, 1));
    WEFT_TRY(weft_gradient(loss, &x, 1, &gradient));
    out[0] = weft_keep(loss);
    out[1] = weft_keep(gradient);
    b->items_per_step = (double)(n * shape[1]);
    b->bytes = 2 * 4 * b->items_per_step;
    return WEFT_OK;
}

typedef struct chain {
    const char *name;
    int passes; /* passes over the f32 elements */
} chain;

static const chain chains[] = {
    {"add_4096", 2},     {"gelu_4096", 2},  {"softmax_4096", 2}, {"layernorm_4096", 2},    {"sumrow_4096", 1},
    {"sumcol_4096", 1},  {"adamw_4096", 7}, {"sumall_4096", 1},  {"transpose_4096", 2},    {"random_4096", 1},
    {"dropout_4096", 2}, {"half_4096", 2},  {"gather_4096", 2},  {"classes_1024x50257", 2}};

static weft_tensor *chain_of(weft__bench *b, int which, weft_tensor *x, weft_tensor *w, weft_tensor *shift) {
    const int64_t n = 4096, square[] = {n, n};
    weft_tensor *t;
    switch (which) {
    case 0: return weft_add(x, x);
    case 1: return weft_gelu_tanh(weft_add(weft_mul(x, w), shift));
    case 2: return weft_softmax(x, 1);
    case 3: return weft_layer_norm(x, w, shift, 1e-5);
    case 4: return weft_sum(x, 1, false);
    case 5: return weft_sum(x, 0, false);
    case 7: return weft_sum(x, WEFT_ALL_AXES, false);
    case 8: return weft_add(weft_transpose(x, 0, 1), shift);
    case 9: return weft_random_uniform(b->ctx, 2, square);
    case 10: return weft_dropout(x, 0.1);
    case 11: /* written and read as bf16 */
        t = weft_keep(weft_cast(x, WEFT_BF16));
        return weft_eval(&t, 1) == WEFT_OK ? weft_cast(weft_add(t, t), WEFT_BF16) : t;
    default: /* gathers rows in random order */
        t = weft_keep(weft_cast(weft_mul_scalar(weft_random_uniform(b->ctx, 1, &n), 4096), WEFT_I32));
        return weft_eval(&t, 1) == WEFT_OK ? weft_gather(x, t, 0) : t;
    }
}

weft_status weft__bench_elementwise(weft__bench *b) {
    enum { ADAMW = 6, CLASSES = 13 };
    if (b->variant >= (int)(sizeof chains / sizeof *chains)) return WEFT_ERR_STATE;
    const chain *c = &chains[b->variant];
    snprintf(b->line_name, sizeof b->line_name, "ew_%s", c->name);
    if (b->only && !strstr(b->line_name, b->only)) return WEFT_OK;
    if (b->variant == ADAMW) return adamw(b);
    const int64_t n = 4096, square[] = {n, n};
    weft_tensor *out[2];
    b->step = run_once;
    b->items_per_step = (double)(n * n);
    b->bytes = (double)c->passes * b->items_per_step * 4;
    if (b->variant == CLASSES) {
        WEFT_TRY(classes(b, out));
    } else {
        weft_tensor *x = some(b->ctx, 2, square), *w = some(b->ctx, 1, &n), *shift = some(b->ctx, 1, &n);
        out[0] = weft_keep(chain_of(b, b->variant, x, w, shift));
    }
    return weft_compile(out, b->variant == CLASSES ? 2 : 1, NULL, NULL, 0, &b->program);
}
