/* Convolutions whose groups have few channels, for the GPU backends, and most convolutions of OpenCL on a
 * processor. This file decides which convolutions these are. For the gradient of the weight it decides into
 * how many parts the windows are divided, by shape alone.
 * Must not know: how launches run. Read next: conv_direct.cl. */
#include <limits.h>
#include <stdio.h>

#include "device/conv_matmul.h"
#include "device/gpu/heavy/conv/conv_direct_params.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

#define FEW        4    /* channels of a group, at most */
#define PART       4096 /* windows that one work-group adds up */
#define PARTS_MOST 64

bool weft__gpu_conv_is_direct(const weft_target *target, const weft_heavy_conv *c) {
    int64_t all;
    if (!weft__mul(c->groups * weft__larger(c->in, c->out), c->size[0] * c->size[1], &all) ||
        !weft__mul(all, weft__smaller(c->in, c->out), &all) || all > INT_MAX / 2)
        return false;
    /* PoCL takes seconds to compile a tile of work-items that meet at barriers. */
    const bool slow = target->on_processor && target->dialect == WEFT_DIALECT_OPENCL;
    return (slow && !weft__conv_is_matmul(c)) || (c->groups > 1 && c->in <= FEW && c->out <= FEW);
}

static w_direct gpu_conv_direct_numbers_of(const weft_heavy_conv *c) {
    w_direct to = {.n = (int32_t)c->n,
                   .groups = (int32_t)c->groups,
                   .in = (int32_t)c->in,
                   .out = (int32_t)c->out,
                   .part = 1};
    for (int d = 0; d < 2; d++) {
        to.x[d] = (int32_t)c->x[d], to.size[d] = (int32_t)c->size[d], to.y[d] = (int32_t)c->y[d];
        to.stride[d] = (int32_t)c->stride[d], to.padding[d] = (int32_t)c->padding[d];
        to.dilation[d] = (int32_t)c->dilation[d];
    }
    return to;
}

static const char *gpu_conv_direct_source_of(weft_launches *launches, const weft_heavy_conv *c, bool sink,
                                             const char *source) {
    char head[96];
    snprintf(head, sizeof head, "#define BY_INPUT %d\n#define BY_WEIGHT %d\n#define SINK %d\n",
             c->pass == WEFT_CONV_INPUT, c->pass == WEFT_CONV_WEIGHT, sink);
    return weft__gpu_template_source(launches, (weft_dtype)c->dtype, head, source);
}

static weft_status launch_sum(weft_launches *launches, const weft_heavy_conv *c, int parts, bool sink) {
    const weft_dtype dtype = (weft_dtype)c->dtype, sum = weft__gpu_sum_dtype(dtype);
    const int64_t count = c->groups * c->out * c->size[0] * c->size[1] * c->in;
    const int items = launches->target->lanes;
    const w_direct_sum of = {.parts = parts, .count = (int32_t)count};
    weft_argument arguments[] = {SCRATCH(0, sum), WRITES(2, dtype), STRUCT(of), FAULT};
    arguments[0].written = false;
    const char *source = gpu_conv_direct_source_of(launches, c, sink, weft__source_conv_direct_sum);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a convolution");
    return weft__launch(launches,
                        &(weft_launch){.name = "conv_sum",
                                       .source = source,
                                       .prelude = weft__gpu_prelude(dtype),
                                       ARGUMENTS(arguments),
                                       .groups = {weft__smaller(weft__ceil_div(count, items), 1024), 1, 1},
                                       .items = {items, 1, 1}});
}

weft_status weft__gpu_conv_direct(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_conv *c = &heavy->as.conv;
    const weft_dtype dtype = (weft_dtype)c->dtype, sum = weft__gpu_sum_dtype(dtype);
    const bool weight = c->pass == WEFT_CONV_WEIGHT, input = c->pass == WEFT_CONV_INPUT;
    const int items = launches->target->lanes;
    const int64_t *to = input ? c->x : c->y, pixels = c->n * to[0] * to[1];
    const int64_t elements =
        c->groups * (input ? c->in : c->out) * (weight ? c->size[0] * c->size[1] * c->in : pixels);
    w_direct of = gpu_conv_direct_numbers_of(c);
    if (elements == 0) return WEFT_OK;
    int64_t parts = 1;
    if (weight) {
        parts = weft__larger(1, weft__smaller(PARTS_MOST, weft__ceil_div(pixels, PART)));
        of.part =
            (int32_t)weft__larger(1, weft__ceil_div(pixels, weft__smaller(parts, weft__larger(1, pixels))));
        parts = weft__larger(1, weft__ceil_div(pixels, of.part));
        launches->scratch_bytes = parts * elements * (int64_t)weft_dtype_size(sum);
    }
    weft_argument arguments[] = {READS(0, dtype), READS(1, dtype), WRITES(2, dtype), STRUCT(of), FAULT};
    if (weight) arguments[2] = (weft_argument)SCRATCH(0, sum);
    const char *source = gpu_conv_direct_source_of(launches, c, sink, weft__source_conv_direct);
    if (!source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a convolution");
    WEFT_TRY(weft__launch(launches, &(weft_launch){.name = "conv_direct",
                                                   .source = source,
                                                   .prelude = weft__gpu_prelude(dtype),
                                                   ARGUMENTS(arguments),
                                                   .groups = {weft__ceil_div(elements, items), parts, 1},
                                                   .items = {items, 1, 1}}));
    return weight ? launch_sum(launches, c, (int)parts, sink) : WEFT_OK;
}
