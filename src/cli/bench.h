/* Workloads of `weft bench`: the same names, sizes and JSON keys as those of other libraries' scripts.
 * Read next: bench.c, then bench_train.c. */
#ifndef WEFT_SRC_CLI_BENCH_H
#define WEFT_SRC_CLI_BENCH_H

#include <weft/fit.h>
#include <weft/weft.h>

#include "base/base.h"
#include "data/pending.h"

typedef struct weft__bench weft__bench;

typedef struct weft__workload {
    const char *name;
    const char *about;
    int64_t steps, warmup; /* where the command line does not say */
    int block;  /* steps that are timed together: more than 1 where one is too short for the clock */
    bool lines; /* several measurements: setup is called for variant 0, 1, ... until it returns WEFT_ERR_STATE
                 */
    bool halves; /* its network can compute in bf16 and f16 */
    /* Reads or makes up what it trains on; NULL: nothing. Its time is not part of start_seconds. */
    weft_status (*data)(weft__bench *bench);
    /* Makes the model and whatever else; sets items and the step. */
    weft_status (*setup)(weft__bench *bench);
} weft__workload;

extern const weft__workload weft__workloads[];
extern const size_t weft__workload_count;

struct weft__bench {
    const weft__workload *workload;
    weft_context *ctx;
    const char *folder; /* of real data, or NULL */
    const char *device;
    const char *only; /* lines whose name contains it; NULL: all. Others set no step. */
    bool json, profile, nondeterministic;
    const char *precision; /* what layers compute in; of a gpt that generates, its weights too */
    int64_t steps, warmup, threads;
    int64_t batch_size; /* in place of the workload's; 0: the workload's */
    /* set by data */
    const char *data_kind; /* "real", "synthetic", or NULL */
    size_t data_bytes;     /* that stay in host memory */
    weft_array x, y;
    weft_corpus *corpus;
    int32_t *own_ids;
    const int32_t *ids; /* of a text */
    size_t n_ids;
    int64_t vocabulary;
    /* set by setup */
    weft_status (*step)(weft__bench *bench); /* one whole step */
    const char *items;                       /* "tokens", "rows", "images" */
    double items_per_step;
    weft_module *module;
    weft_optimizer *optimizer;
    weft_loss_kind loss_kind;
    weft_loader *loader; /* of batches; NULL: batch stays as setup made it */
    weft_batch batch;
    weft_program *program;
    weft_tensor *loss; /* of a held program, readable after a step */
    weft_gpt_cache *cache;
    weft_states first, last; /* of a recurrent network, carried from step to step */
    uint64_t position;       /* batches taken */
    weft__pending loop_loss; /* of the last step of weft__bench_loop */
    /* of workloads with several lines */
    char line_name[64];
    double flops, bytes; /* of a step; 0: not said */
    int64_t parts;       /* equal parts of a step whose time is wanted, as products in a program; 0: 1 */
    int variant;         /* which line */
};

/* ---- bench_crossover.c ---- */

/* Training steps of many sizes on each device of the list, against their prices. Returns an exit code. */
int weft__bench_crossover(const char *devices, bool json);

/* ---- bench_gemm.c ---- */

/* Square products by each way that there is, with their errors; only: of one size. Returns an exit code. */
int weft__bench_gemm(const char *device, const char *precision, int threads, const char *only, bool json);

/* ---- matrix products: bench_ops.c ---- */

/* (m, k) x (k, n), or a batch of such; in memory a is (k, m) where a_t, b is (n, k) where b_t. */
typedef struct weft__product {
    const char *name;
    int64_t m, n, k;
    bool a_t, b_t;
    int64_t batch; /* 0: one, of matrices */
} weft__product;

enum { WEFT__BENCH_PRODUCTS = 1000 };
/* How many products a program has: as many as take 20 ms at 300 GFLOPS and whose results fit the caches (they
 * are all different ones), at most WEFT__BENCH_PRODUCTS. */
int64_t weft__bench_parts(const weft__product *product);
/* A program of so many; abc: the operands, of which a has further rows, and the first result. */
weft_status weft__bench_compile(weft_context *ctx, const weft__product *product, weft_dtype dtype,
                                int64_t parts, weft_tensor *abc[3], weft_program **program);

/* A variable of numbers between -1 and 1. */
weft_tensor *weft__bench_some(weft_context *ctx, int rank, const int64_t *shape);

/* ---- a training step ---- */

/* Records the loss of the batch at hand. */
weft_tensor *weft__bench_loss(weft__bench *bench);
/* An ordinary loop's step: takes a batch where there is a loader, records, runs, reads the loss. */
weft_status weft__bench_loop(weft__bench *bench);

/* ---- data and setups ---- */

weft_status weft__bench_regression(weft__bench *bench);
weft_status weft__bench_gd_small_data(weft__bench *bench);
weft_status weft__bench_images(weft__bench *bench);
weft_status weft__bench_color_images(weft__bench *bench);
weft_status weft__bench_characters(weft__bench *bench);
weft_status weft__bench_tokens(weft__bench *bench);
weft_status weft__bench_xor(weft__bench *bench);
weft_status weft__bench_mlp(weft__bench *bench);
weft_status weft__bench_cnn(weft__bench *bench);
weft_status weft__bench_resnet(weft__bench *bench);
weft_status weft__bench_resnet20(weft__bench *bench);
weft_status weft__bench_chargpt_small(weft__bench *bench);
weft_status weft__bench_chargpt_big(weft__bench *bench);
weft_status weft__bench_llama_small(weft__bench *bench);
weft_status weft__bench_llama(weft__bench *bench);
weft_status weft__bench_gpt2(weft__bench *bench);
weft_status weft__bench_lstm(weft__bench *bench);
weft_status weft__bench_linreg(weft__bench *bench);
weft_status weft__bench_logreg(weft__bench *bench);
weft_status weft__bench_products(weft__bench *bench);
weft_status weft__bench_elementwise(weft__bench *bench);
weft_status weft__bench_order(weft__bench *bench);
weft_status weft__bench_convolutions(weft__bench *bench);
weft_status weft__bench_generate(weft__bench *bench);
weft_status weft__bench_generate_gpt2(weft__bench *bench);

#endif
