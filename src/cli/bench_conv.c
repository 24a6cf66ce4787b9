/* Benchmarks convolutions of single layers, each pass separately. Each is a held program of one heavy
 * operation. Images have their channels last. Must not know: clocks. Read next: bench_ops.c. */
#include <stdio.h>
#include <string.h>

#include "cli/bench.h"

/* A layer with square images and kernels, padded by half a kernel. */
typedef struct layer {
    const char *name;
    int64_t n, in, extent, out, size, stride, groups;
} layer;

static const layer layers[] = {{"1x1_64_256_28", 32, 64, 28, 256, 1, 1, 1},
                               {"1x1_256_64_28", 32, 256, 28, 64, 1, 1, 1},
                               {"1x1_512_512_14", 16, 512, 14, 512, 1, 1, 1},
                               {"3x3_16_16_32", 128, 16, 32, 16, 3, 1, 1},
                               {"3x3_32_64_14", 64, 32, 14, 64, 3, 1, 1},
                               {"3x3_256_256_14", 16, 256, 14, 256, 3, 1, 1},
                               {"3x3_512_512_7", 16, 512, 7, 512, 3, 1, 1},
                               {"depthwise_64_56", 32, 64, 56, 64, 3, 1, 64},
                               {"depthwise_128_28_by2", 32, 128, 28, 128, 3, 2, 128},
                               {"depthwise_512_7", 32, 512, 7, 512, 3, 1, 512}};

static weft_status run_once(weft__bench *b) { return weft_program_run(b->program); }

static weft_tensor *channels_first(weft_tensor *x) { return weft_permute(x, (int[]){0, 3, 1, 2}); }

weft_status weft__bench_convolutions(weft__bench *b) {
    static const char *const passes[] = {"forward", "input", "weight"};
    if (b->variant >= 3 * (int)(sizeof layers / sizeof *layers)) return WEFT_ERR_STATE;
    const layer *l = &layers[b->variant / 3];
    const int pass = b->variant % 3;
    snprintf(b->line_name, sizeof b->line_name, "conv_%s_%s", l->name, passes[pass]);
    if (b->only && !strstr(b->line_name, b->only)) return WEFT_OK;
    const int64_t x_shape[] = {l->n, l->extent, l->extent, l->in}, half = l->size / 2;
    const int64_t w_shape[] = {l->out, l->size, l->size, l->in / l->groups},
                  to = (l->extent - 1) / l->stride + 1;
    weft_tensor *x = weft__bench_some(b->ctx, 4, x_shape), *w = weft__bench_some(b->ctx, 4, w_shape);
    weft_tensor *g = weft__bench_some(b->ctx, 4, (int64_t[]){l->n, to, to, l->out}), *out;
    const weft_conv_options options = {
        .stride = {l->stride, l->stride}, .padding = {half, half}, .groups = l->groups};
    weft_tensor *y = weft_conv2d(channels_first(x), channels_first(w), NULL, &options);
    if (pass == 0)
        out = weft_permute(y, (int[]){0, 2, 3, 1});
    else
        WEFT_TRY(weft_gradient(weft_sum(weft_mul(y, channels_first(g)), WEFT_ALL_AXES, false),
                               pass == 1 ? &x : &w, 1, &out));
    weft_keep(out);
    b->flops = 2.0 * (double)(l->n * to * to * l->out) * (double)(l->size * l->size * l->in / l->groups);
    b->items_per_step = b->flops;
    b->step = run_once;
    return weft_compile(&out, 1, NULL, NULL, 0, &b->program);
}
