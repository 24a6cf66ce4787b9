/* Workloads of `weft bench`. Names, sizes and JSON keys are those of the benchmark scripts for other
 * libraries. Must not know: clocks (bench.c). Read next: bench.c, then bench_train.c. */
#ifndef WEFT_SRC_CLI_BENCH_H
#define WEFT_SRC_CLI_BENCH_H

#include <weft/fit.h>
#include <weft/weft.h>

#include "base/base.h"
#include "learn/pending.h"

typedef struct weft__bench weft__bench;

typedef struct weft__workload {
    const char *name;
    const char *about;
    int64_t steps, warmup; /* defaults for the command line */
    int block;             /* steps timed together; more than 1 if one step is too short for the clock */
    bool lines;            /* several measurements: setup runs for variant 0, 1, ... until WEFT_ERR_STATE */
    bool halves;           /* the network can compute in bf16 and f16 */
    /* Reads or generates the data of the workload. NULL: no data. Its time does not count in
     * start_seconds. */
    weft_status (*data)(weft__bench *bench);
    /* Makes the model and everything else. Sets items and the step. */
    weft_status (*setup)(weft__bench *bench);
} weft__workload;

struct weft__bench {
    const weft__workload *workload;
    weft_context *ctx;
    const char *folder; /* folder of real data, or NULL */
    const char *device;
    const char *only; /* only lines whose name contains this; NULL: all. Other lines set no step. */
    bool json, profile, nondeterministic;
    const char *precision; /* dtype in which layers compute; for generate also the dtype of the weights */
    weft_recompute recompute;
    int64_t steps, warmup, threads;
    int64_t batch_size; /* replaces the batch of the workload; 0: keeps it */
    /* set by data */
    const char *data_kind; /* "real", "synthetic", or NULL */
    size_t data_bytes;     /* bytes that stay in host memory */
    weft_array x, y;
    weft_corpus *corpus;
    int32_t *own_ids;
    const int32_t *ids; /* ids of a text */
    size_t n_ids;
    int64_t vocabulary;
    /* set by setup */
    weft_status (*step)(weft__bench *bench); /* runs one whole step */
    const char *items;                       /* "tokens", "rows", "images" */
    double items_per_step;
    weft_module *module;
    weft_optimizer *optimizer;
    weft_loss_kind loss_kind;
    weft_loader *loader; /* gives the batches; NULL: the batch stays as setup made it */
    weft_batch batch;
    weft_program *program;
    weft_tensor *loss; /* loss of a held program; it can be read after a step */
    weft_decode_state *cache;
    weft_states first, last; /* states of a recurrent network, carried from step to step */
    uint64_t position;       /* number of batches taken */
    weft__pending loop_loss; /* loss of the last step of weft__bench_loop */
    /* for workloads with several lines */
    char line_name[64];
    double flops, bytes; /* of a step; 0: unknown */
    /* equal parts of a step, such as the matmuls of a program; the time is that of one part; 0: 1 */
    int64_t parts;
    int variant; /* number of the line */
};

/* ---- bench_gemm.c ---- */

/* Times square matmuls in every available way, and measures their errors. `only` selects one size. Returns an
 * exit code. */
int weft__bench_gemm(const char *device, const char *precision, int threads, const char *only, bool json);

/* ---- matmuls: bench_ops.c ---- */

/* A matmul (m, k) x (k, n), or a batch of matmuls. With a_t, a is (k, m) in memory; with b_t, b is (n, k). */
typedef struct weft__bench_matmul {
    const char *name;
    int64_t m, n, k;
    bool a_t, b_t;
    int64_t batch; /* 0: a single matmul of matrices */
} weft__bench_matmul;

enum { WEFT__BENCH_MATMULS = 1000 };
/* Returns how many matmuls one program has. They take about 20 ms at 300 GFLOPS, and their results, which all
 * differ, fit into the caches. At most WEFT__BENCH_MATMULS. */
int64_t weft__bench_parts(const weft__bench_matmul *product);
/* Compiles a program of `parts` matmuls. abc becomes the two operands and the first result; a has additional
 * rows. */
weft_status weft__bench_compile(weft_context *ctx, const weft__bench_matmul *product, weft_dtype dtype,
                                int64_t parts, weft_tensor *abc[3], weft_program **program);

/* ---- a training step ---- */

/* Records the loss of the current batch. */
weft_tensor *weft__bench_loss(weft__bench *bench);
/* Runs a step as an ordinary loop does: takes a batch if there is a loader, records, runs, and keeps the
 * loss. */
weft_status weft__bench_loop(weft__bench *bench);

/* ---- data and setups ---- */

weft_status weft__bench_regression(weft__bench *bench);
weft_status weft__bench_gd_small_data(weft__bench *bench);
weft_status weft__bench_images(weft__bench *bench);
weft_status weft__bench_color_images(weft__bench *bench);
weft_status weft__bench_characters(weft__bench *bench);
weft_status weft__bench_tokens(weft__bench *bench);
weft_status weft__bench_long_tokens(weft__bench *bench);
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
weft_status weft__bench_gpt2_full(weft__bench *bench);
weft_status weft__bench_lstm(weft__bench *bench);
weft_status weft__bench_linreg(weft__bench *bench);
weft_status weft__bench_logreg(weft__bench *bench);
weft_status weft__bench_matmuls(weft__bench *bench);
weft_status weft__bench_elementwise(weft__bench *bench);
weft_status weft__bench_generate(weft__bench *bench);
weft_status weft__bench_generate_gpt2(weft__bench *bench);

#endif
