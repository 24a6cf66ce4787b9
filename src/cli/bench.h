/* Workloads of `weft bench`: the same names, sizes and JSON keys as those of other libraries' scripts.
 * Read next: bench.c, then bench_train.c. */
#ifndef WEFT_SRC_CLI_BENCH_H
#define WEFT_SRC_CLI_BENCH_H

#include <weft/fit.h>
#include <weft/weft.h>

#include "base/base.h"

typedef struct weft__bench weft__bench;

typedef struct weft__workload {
    const char *name;
    const char *about;
    int64_t steps, warmup; /* where the command line does not say */
    int block; /* steps that are timed together: more than 1 where one is too short for the clock */
    /* Makes model, data and whatever else; sets items and the step. */
    weft_status (*setup)(weft__bench *bench);
} weft__workload;

/* X(name, setup, about, steps, warmup, block) */
extern const weft__workload weft__workloads[];
extern const size_t weft__workload_count;

struct weft__bench {
    const weft__workload *workload;
    weft_context *ctx;
    const char *data; /* folder of real data, or NULL */
    const char *device;
    int threads;
    bool json;
    int64_t steps, warmup;
    /* set by setup */
    weft_status (*step)(weft__bench *bench); /* one whole step */
    weft_tensor *loss;                       /* kept, readable after a step; NULL: none */
    const char *items;                       /* "tokens", "rows", "images" */
    double items_per_step;
    const char *data_kind; /* "real", "synthetic", or NULL */
    weft_module *module;
    weft_optimizer *optimizer;
    weft_loader *loader;
    weft_program *program;
    weft_corpus *corpus;
    weft_gpt_cache *cache;
    weft_array x, y;
    int32_t *ids;
    uint64_t position; /* batches taken */
    double loss_value; /* of the last step that read it; NaN */
    /* of workloads with several lines: gemm, elementwise */
    char line_name[64];
    double flops, bytes; /* of a step; 0: not said */
    int variant;         /* which line; setup returns WEFT_ERR_STATE when there are no more */
};

/* ---- setups ---- */
weft_status weft__bench_xor(weft__bench *bench);
weft_status weft__bench_mlp(weft__bench *bench);
weft_status weft__bench_chargpt_small(weft__bench *bench);
weft_status weft__bench_chargpt_big(weft__bench *bench);
weft_status weft__bench_gpt2(weft__bench *bench);
weft_status weft__bench_linreg(weft__bench *bench);
weft_status weft__bench_logreg(weft__bench *bench);
weft_status weft__bench_gd_small(weft__bench *bench);
weft_status weft__bench_gemm(weft__bench *bench);
weft_status weft__bench_elementwise(weft__bench *bench);
weft_status weft__bench_generate(weft__bench *bench);
weft_status weft__bench_generate_gpt2(weft__bench *bench);

#endif
