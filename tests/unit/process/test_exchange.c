/* Exchanges beside a program, on ranks that are threads: how much of them a slow network can hide, that no
 * bit depends on them, what divided gradients save, and what happens if a rank does not answer. With
 * WEFT_TEST_GPU=cuda or hip each rank has a card, and the cards are linked. Their simulation is slow, so the
 * model is smaller, and times do not count. */
#include "optim/optimizer.h"
#include "unit/io_scratch.h"
#include "unit/nn_help.h"

#include "gpu.h"
#include "unit/process/threads.h"

enum {
    RANKS = 2,
    BATCHES = 4,
    LAYERS_MOST = 24,
    WIDTH_MOST = 256,
    ROWS_MOST = 768,
    STEPS = 5,
    CARD_LAYERS = 3
};
static int layers = LAYERS_MOST, width = WIDTH_MOST, rows_most = ROWS_MOST, steps = STEPS;
static bool cards; /* else the ranks have the processor */

/* Counts the matmuls of the program that is printed, after its first exchange. The most of all programs
 * counts. */
typedef struct printed {
    int exchanges, matmuls, most;
} printed;

static void count_line(void *user, weft_log_level level, const char *line) {
    printed *p = user;
    (void)level;
    if (strstr(line, "program: ")) p->exchanges = p->matmuls = 0;
    if (strstr(line, " exchange ")) p->exchanges++;
    if (p->exchanges && strstr(line, " matmul ")) p->matmuls++;
    if (p->matmuls > p->most) p->most = p->matmuls;
}

static _Thread_local printed *listener; /* of a rank; NULL: it prints nothing */

/* Opens the device of a rank. */
static weft_context *open_device(int rank, int threads, uint64_t seed) {
    char device[32] = "cpu";
    weft_context *ctx = NULL;
    if (cards) snprintf(device, sizeof device, "%s:%d", test_gpu(), rank);
    EXPECT(weft_open(&(weft_open_options){.device = device,
                                          .threads = threads,
                                          .seed = seed,
                                          .log = listener ? count_line : NULL,
                                          .log_user = listener},
                     &ctx) == WEFT_OK);
    if (!ctx) abort();
    return ctx;
}

typedef struct model {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *opt;
    int rows; /* samples of a batch */
} model;

static model make_model(int rank, int threads, bool exact, int rows) {
    model m = {.rows = rows, .ctx = open_device(rank, threads, 5)};
    int64_t sizes[LAYERS_MOST + 1];
    for (int i = 0; i <= layers; i++) sizes[i] = width;
    m.net = weft_nn_mlp(m.ctx, sizes, layers + 1, NULL);
    m.opt = weft_sgd(m.net, &(weft_sgd_options){.lr = 0.5, .clip = 1e-3, .exact_sum = exact});
    return m;
}

/* One step on random numbers of micro-batch `batch`. */
static weft_status make_step(const model *m, int batch, int k, int of) {
    weft_scope *scope = weft_scope_open(m->ctx);
    static float numbers[BATCHES][ROWS_MOST * WIDTH_MOST];
    for (int i = 0; i < m->rows; i++)
        for (int j = 0; j < width; j++)
            numbers[batch][i * width + j] = (float)((i * 37 + j * 11 + batch * 5) % 17) / 9 - 0.8F;
    EXPECT(weft_optimizer_micro_batch(m->opt, batch) == WEFT_OK);
    weft_tensor *x = weft_from(m->ctx, WEFT_F32, 2, (int64_t[]){m->rows, width}, numbers[batch]);
    weft_tensor *y = weft_forward(m->net, x);
    weft_tensor *loss = weft_mean(weft_mul(y, y), WEFT_ALL_AXES, false);
    const weft_status status = weft_optimizer_accumulate(m->opt, loss, k, of);
    weft_scope_close(scope);
    return status;
}

static uint64_t hash_weights(const model *m) {
    static _Thread_local float values[WIDTH_MOST * WIDTH_MOST];
    weft_parameter_info p;
    weft_hash hash;
    weft__hash_init(&hash);
    for (size_t i = 0; weft_parameter_get(m->net, i, &p); i++) {
        const size_t bytes = (size_t)weft_numel(p.tensor) * sizeof *values;
        EXPECT(weft_read(p.tensor, values, bytes) == WEFT_OK);
        weft__hash_bytes(&hash, values, bytes);
    }
    return hash.a;
}

/* ---- a slow network ---- */

typedef struct measured {
    double computing;          /* seconds of a step without other ranks */
    double waited, hidden;     /* seconds of rank 0 in all steps */
    uint64_t weights[BATCHES]; /* hashes */
    int threads, rows, of;     /* of: batches of a rank in a step */
    bool exact;
    weft_shard shard;
    size_t bytes; /* of rank 0's buffers at their peak */
} measured;

static void share_steps(weft_process_group *g, void *user) {
    measured *to = user;
    const int rank = weft_process_group_rank(g);
    model m = make_model(rank, to->threads, to->exact, to->rows);
    EXPECT(weft_optimizer_join(m.opt, g) == WEFT_OK);
    EXPECT(weft__optimizer_exchanges(m.opt));
    EXPECT(weft_optimizer_shard(m.opt, to->shard) == WEFT_OK);
    double waited = 0, hidden = 0;
    for (int i = 0; i <= steps; i++) {
        for (int k = 0; k < to->of; k++)
            EXPECT(make_step(&m, weft_optimizer_batch_number(m.opt, k, to->of), k, to->of) == WEFT_OK);
        if (i == 0) waited = g->waited, hidden = g->hidden; /* the first step compiles */
    }
    if (rank == 0) {
        to->bytes = m.ctx->device->bytes_peak;
        to->waited = g->waited - waited;
        to->hidden = g->hidden - hidden;
    }
    EXPECT(weft_optimizer_compare(m.opt) == WEFT_OK);
    to->weights[rank] = hash_weights(&m);
    weft_close(m.ctx);
}

/* Steps of one process with so many batches. */
static uint64_t steps_alone(measured *to, int batches) {
    model m = make_model(0, 1, true, to->rows);
    double from = 0;
    for (int i = 0; i <= steps; i++) {
        for (int k = 0; k < batches; k++) EXPECT(make_step(&m, k, k, batches) == WEFT_OK);
        if (i == 0) from = network_now();
    }
    to->computing = (network_now() - from) / (steps * batches);
    const uint64_t hash = hash_weights(&m);
    weft_close(m.ctx);
    return hash;
}

/* A network for which the exchange of all gradients takes this part of a step. */
static network slow_network(const measured *m, double part) {
    const double bytes = (double)layers * (width + 1) * width * 4;
    return (network){.latency = 1e-4, .bytes_per_second = bytes / (part * m->computing)};
}

/* A part of an exchange is hidden, and the bits stay. How large it is depends on the machine and on what else
 * runs there: over 80 % on an idle one, if the exchange takes 0.4 of a step. test_order checks when each part
 * is sent. */
static void test_overlap(void **state) {
    measured m = {.threads = 1, .rows = rows_most, .of = 1, .exact = true};
    (void)state;
    const uint64_t alone = steps_alone(&m, RANKS);
    network net = slow_network(&m, 0.4);
    run_ranks(&net, RANKS, 60, share_steps, &m);
    for (int i = 0; i < RANKS; i++) assert_true(m.weights[i] == alone);
    print_message("a step computes %.1f ms; exchange %.1f ms a step, %.0f %% hidden\n", 1e3 * m.computing,
                  1e3 * (m.hidden + m.waited) / steps, 100 * m.hidden / (m.hidden + m.waited));
    assert_true(m.hidden > 0);
}

/* ---- the order of a step ---- */

static void print_steps(weft_process_group *g, void *user) {
    const int rank = weft_process_group_rank(g);
    printed lines = {0};
    const weft_shard *shard = user;
    listener = &lines;
    model m = make_model(rank, 1, true, 4);
    EXPECT(weft_optimizer_join(m.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(m.opt, *shard) == WEFT_OK);
    for (int k = 0; k < 2; k++)
        EXPECT(make_step(&m, weft_optimizer_batch_number(m.opt, k, 2), k, 2) == WEFT_OK);
    EXPECT(lines.most >= layers); /* two for each layer but the last ones, of which gradients leave */
    weft_close(m.ctx);
    listener = NULL;
}

/* Exchanges begin beside the backward pass, also if the gradients of earlier batches are added first. */
static void test_order(void **state) {
    weft_shard shards[] = {WEFT_SHARD_NONE, WEFT_SHARD_OPTIMIZER, WEFT_SHARD_GRADIENTS,
                           WEFT_SHARD_PARAMETERS};
    (void)state;
    setenv("WEFT_DEBUG", "plan", 1);
    for (size_t i = 0; i < COUNT(shards); i++) {
        network net = {0};
        run_ranks(&net, RANKS, 60, print_steps, &shards[i]);
    }
    unsetenv("WEFT_DEBUG");
}

/* Several threads of the device, and the order of the engine. */
static void test_threads(void **state) {
    (void)state;
    for (int exact = 0; exact < 2; exact++) {
        measured m = {.threads = 2, .rows = rows_most, .of = 1, .exact = exact != 0};
        const uint64_t alone = steps_alone(&m, RANKS);
        network net = {0};
        run_ranks(&net, RANKS, 60, share_steps, &m);
        assert_true(m.weights[0] == m.weights[1]);
        if (exact) assert_true(m.weights[0] == alone);
    }
}

/* Divided gradients give the same bits, also of the norm, which clips. A rank needs less memory. */
static void test_divided(void **state) {
    const size_t gradients = (size_t)layers * (size_t)(width + 1) * (size_t)width * sizeof(float);
    measured m = {.rows = cards ? rows_most : 24,
                  .exact = true}; /* gradients are larger than activations, and share their memory */
    (void)state;
    const uint64_t alone = steps_alone(&m, BATCHES);
    for (int ranks = 2; ranks <= BATCHES; ranks *= 2) {
        size_t bytes[WEFT_SHARD_PARAMETERS + 1];
        m.of = m.threads = BATCHES / ranks;
        for (int shard = 0; shard <= (int)WEFT_SHARD_PARAMETERS; shard++) {
            network net = slow_network(&m, 3); /* gradients wait for the exchange before */
            m.shard = (weft_shard)shard;
            run_ranks(&net, ranks, 60, share_steps, &m);
            for (int i = 0; i < ranks; i++) assert_true(m.weights[i] == alone);
            bytes[shard] = m.bytes;
        }
        const size_t all = gradients, left = all * (size_t)(ranks - 1) / (size_t)ranks;
        print_message(
            "%d ranks, %d batches of each: %.1f MB at the peak, %.1f with a divided state, %.1f with divided "
            "gradients, %.1f with divided parameters\n",
            ranks, m.of, 1e-6 * (double)bytes[WEFT_SHARD_NONE], 1e-6 * (double)bytes[WEFT_SHARD_OPTIMIZER],
            1e-6 * (double)bytes[WEFT_SHARD_GRADIENTS], 1e-6 * (double)bytes[WEFT_SHARD_PARAMETERS]);
        if (m.of > 1) /* a sum of whole gradients stays between the batches */
            assert_true(bytes[WEFT_SHARD_OPTIMIZER] > bytes[WEFT_SHARD_GRADIENTS]);
        else
            assert_true(bytes[WEFT_SHARD_OPTIMIZER] >= bytes[WEFT_SHARD_GRADIENTS]);
        assert_true(bytes[WEFT_SHARD_GRADIENTS] > bytes[WEFT_SHARD_PARAMETERS]);
        if (cards) continue; /* the pieces of the small model are large parts of it */
        /* all but the own part and two pieces of 1/12 each; the biases are a small piece that stays */
        if (m.of > 1) assert_true(bytes[WEFT_SHARD_OPTIMIZER] + all / 5 > bytes[WEFT_SHARD_GRADIENTS] + left);
        assert_true(bytes[WEFT_SHARD_NONE] + all / 5 > bytes[WEFT_SHARD_OPTIMIZER] + (m.of > 1 ? 0 : left));
        assert_true(bytes[WEFT_SHARD_GRADIENTS] + all / 4 > bytes[WEFT_SHARD_PARAMETERS] + left);
    }
}

/* ---- a rank that does not answer ---- */

/* Skips tests in which exchanges fail, if the race detector is on: a fault is recorded while kernels run that
 * may see it or not. */
static bool under_race_detector(void) {
    const bool races = cards && getenv("FAKE_CUDA_RACES");
    if (races) print_message("skipped, since the race detector is on\n");
    return races;
}

static void miss_a_step(weft_process_group *g, void *user) {
    const int rank = weft_process_group_rank(g);
    const weft_shard *shard = user;
    model m = make_model(rank, 1, true, rows_most);
    EXPECT(weft_optimizer_join(m.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(m.opt, *shard) == WEFT_OK);
    EXPECT(make_step(&m, rank, 0, 1) == WEFT_OK);
    const uint64_t before = hash_weights(&m); /* all ranks read them */
    if (rank == 1) {
        weft_close(m.ctx);
        return;
    }
    EXPECT(make_step(&m, rank, 0, 1) == WEFT_ERR_TIMEOUT);
    EXPECT(
        strstr(weft_last_error(NULL), cards ? "step 2: waited 10 s for the gradients: no answer from rank 1"
                                            : "step 2: waited 3 s for the gradients: no answer from rank 1"));
    if (*shard != WEFT_SHARD_PARAMETERS) EXPECT(hash_weights(&m) == before);
    EXPECT(make_step(&m, rank, 0, 1) == WEFT_ERR_TIMEOUT); /* the same again, at once */
    weft_close(m.ctx);
}

static void test_missing(void **state) {
    weft_shard shards[] = {WEFT_SHARD_NONE, WEFT_SHARD_GRADIENTS, WEFT_SHARD_PARAMETERS};
    (void)state;
    if (under_race_detector()) return skip();
    for (size_t i = 0; i < COUNT(shards); i++) {
        network net = {0};
        run_ranks(&net, RANKS, cards ? 10 : 3, miss_a_step,
                  &shards[i]); /* longer than a rank's slowest step */
    }
}

/* ---- an exchange that fails ---- */

typedef struct failure {
    weft_shard shard;
    atomic_bool never;    /* no exchange of two steps failed */
    atomic_bool computes; /* one of the first step failed, before the new weights were collected */
} failure;

/* Makes two steps, of which one fails, and leaves the weights as they were before it. */
static void fail_in_a_step(weft_process_group *g, void *user) {
    failure *f = user;
    const int rank = weft_process_group_rank(g);
    model m = make_model(rank, 1, true, 4);
    weft_status status = WEFT_OK;
    uint64_t before = 0;
    int made = 0;
    EXPECT(weft_optimizer_join(m.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(m.opt, f->shard) == WEFT_OK);
    for (int i = 0; i < 2 && status == WEFT_OK; i++) {
        before = hash_weights(&m);
        status = make_step(&m, rank, 0, 1);
        made += status == WEFT_OK;
    }
    if (status == WEFT_OK) f->never = true;
    EXPECT(status == WEFT_OK || strstr(weft_last_error(NULL), "internal error, as the test wishes") ||
           strstr(weft_last_error(NULL), "no answer from rank"));
    /* the last exchanges of a step collect the new weights */
    const bool computes = status != WEFT_OK && !strstr(weft_last_error(NULL), "the updated parameters");
    if (computes && made == 0) f->computes = true;
    if (computes) EXPECT(hash_weights(&m) == before);
    weft_close(m.ctx);
}

/* Lets group n of NCCL fail in all ranks, or in rank 1 alone, for which rank 0 then waits in vain. */
static void fail_at(failure *f, int n, bool alone) {
    char number[16];
    snprintf(number, sizeof number, alone ? "%d@1" : "%d", n);
    setenv("FAKE_NCCL_FAIL", number, 1);
    f->computes = false;
    run_threads(RANKS, alone ? 2 : 10, fail_in_a_step, f);
}

/* The simulated NCCL fails in one of its groups after the other. */
static void test_failing(void **state) {
    const weft_shard shards[] = {WEFT_SHARD_NONE, WEFT_SHARD_GRADIENTS};
    (void)state;
    if (under_race_detector()) return skip();
    if (!cards || !strstr(test_described().detail, "Test driver")) {
        print_message("skipped, for the simulated cards alone\n");
        return skip();
    }
    layers = 1;
    for (size_t i = 0; i < COUNT(shards); i++) {
        failure f = {.shard = shards[i]};
        int last = 0; /* group of the first step that can still prevent the update */
        for (int n = 1; !f.never && n < 100; n++) {
            fail_at(&f, n, false);
            if (f.computes) last = n;
        }
        assert_true(f.never && last > 0);
        fail_at(&f, last, true);
    }
}

/* Other tests need the whole model, and no failures. */
static int end_failing(void **state) {
    (void)state;
    if (cards) layers = CARD_LAYERS;
    return unsetenv("FAKE_NCCL_FAIL");
}

/* ---- access to divided parameters ---- */

/* The weights of a layer. */
static weft_tensor *weights_of(const model *m, int layer) {
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(m->net, i, &p); i++)
        if (weft_rank(p.tensor) == 2 && layer-- == 0) return p.tensor;
    return NULL;
}

/* All ranks read and write parameters, by the host and by programs. What needs them whole is refused. */
static void access_parts(weft_process_group *g, void *user) {
    static _Thread_local float values[WIDTH_MOST * WIDTH_MOST], got[WIDTH_MOST * WIDTH_MOST];
    model m = make_model(weft_process_group_rank(g), 1, true, 4);
    (void)user;
    EXPECT(weft_optimizer_join(m.opt, g) == WEFT_OK);
    weft_tensor *w = weights_of(&m, 0);
    const size_t n = (size_t)weft_numel(w);
    EXPECT(weft_read(w, values, n * sizeof *values) == WEFT_OK);
    EXPECT(weft_optimizer_shard(m.opt, WEFT_SHARD_PARAMETERS) == WEFT_OK);
    EXPECT(weft_read(w, got, n * sizeof *got) == WEFT_OK && memcmp(got, values, n * sizeof *got) == 0);
    for (size_t i = 0; i < n; i++) values[i] = (float)i;
    EXPECT(weft_write(w, values, n * sizeof *values) == WEFT_OK);
    EXPECT(weft_read(w, got, n * sizeof *got) == WEFT_OK && memcmp(got, values, n * sizeof *got) == 0);

    weft_scope *scope = weft_scope_open(m.ctx);
    weft_tensor *twice = weft_mul_scalar(w, 2), *same = weft_reshape(w, 1, (int64_t[]){(int64_t)n});
    EXPECT(weft_read(twice, got, n * sizeof *got) == WEFT_OK && got[5] == 10.0F &&
           got[n - 1] == 2 * values[n - 1]);
    EXPECT(weft_read(same, got, n * sizeof *got) == WEFT_OK && memcmp(got, values, n * sizeof *got) == 0);
    EXPECT(weft_assign(&w, &twice, 1) == WEFT_ERR_STATE);
    EXPECT(strstr(weft_last_error(m.ctx), "are divided among processes"));
    weft_tensor *all = weft_neg(m.opt->blocks[0].values);
    EXPECT(weft_eval(&all, 1) == WEFT_ERR_STATE &&
           strstr(weft_last_error(m.ctx), "cannot be read as a whole"));
    weft_scope_close(scope);

    weft_optimizer *other = weft_sgd(m.net, &(weft_sgd_options){.lr = 0.5});
    EXPECT(weft_optimizer_status(other) == WEFT_ERR_STATE);
    weft_optimizer_free(other);
    weft_optimizer_free(m.opt);
    EXPECT(weft_read(w, got, n * sizeof *got) == WEFT_ERR_STATE);
    EXPECT(strstr(weft_last_error(NULL), "by an optimizer that was freed"));
    weft_close(m.ctx);
}

/* Ranks whose programs gather other pieces learn it, instead of waiting for each other. */
static void differ(weft_process_group *g, void *user) {
    static _Thread_local float got[WIDTH_MOST * WIDTH_MOST];
    const int rank = weft_process_group_rank(g);
    model m = make_model(rank, 1, true, 4);
    (void)user;
    EXPECT(weft_optimizer_join(m.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(m.opt, WEFT_SHARD_PARAMETERS) == WEFT_OK);
    weft_scope *scope = weft_scope_open(m.ctx);
    weft_tensor *twice = weft_mul_scalar(weights_of(&m, rank ? 0 : layers - 1), 2);
    EXPECT(weft_read(twice, got, (size_t)width * (size_t)width * sizeof *got) == WEFT_ERR_STATE);
    EXPECT(strstr(weft_last_error(NULL), "a program that exchanges other numbers than rank 0"));
    weft_scope_close(scope);
    weft_close(m.ctx);
}

/* No rank ever has the whole model, neither the parameters nor their rounded copies. */
static void divide_first_values(weft_process_group *g, void *user) {
    model m = make_model(weft_process_group_rank(g), 1, true, 4);
    (void)user;
    EXPECT(weft_module_compute(m.net, WEFT_BF16) == WEFT_OK);
    EXPECT(weft_optimizer_join(m.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(m.opt, WEFT_SHARD_PARAMETERS) == WEFT_OK);
    const size_t parts = (sizeof(float) + 2) / RANKS;
    EXPECT(m.ctx->device->bytes_peak < 1.1 * (double)(parts * (size_t)weft_parameter_elements(m.net, false)));
    EXPECT(m.opt->blocks[0].rounded);
    EXPECT(make_step(&m, weft_process_group_rank(g), 0, 1) == WEFT_OK);
    weft_close(m.ctx);
}

static void test_access(void **state) {
    (void)state;
    network net = {0};
    run_ranks(&net, 3, 60, access_parts, NULL);
    run_ranks(&net, RANKS, 60, differ, NULL);
    run_ranks(&net, RANKS, 60, divide_first_values, NULL);
}

/* ---- batch norm over all processes ---- */

enum { CHANNELS = 3, SAMPLES = 8, MOST_WEIGHTS = 64 };

typedef struct normed {
    float weights[RANKS][MOST_WEIGHTS]; /* with running statistics */
    size_t count;
    weft_shard shard;
} normed;

/* Trains on samples from..to - 1. The loss is a sum, whose mean over `ranks` processes gives the gradient. */
static void train_normed(weft_process_group *g, normed *to, int from, int end, int ranks) {
    const int rank = weft_process_group_rank(g);
    weft_context *ctx = open_device(rank, 1, 2);
    float numbers[SAMPLES][4];
    for (int i = 0; i < SAMPLES; i++)
        for (int k = 0; k < 4; k++) numbers[i][k] = (float)((i * 7 + k * 5) % 11) / 4 - 1.2F;
    weft_module *net = weft_nn_sequential(
        ctx, "net", weft_nn_linear(ctx, 4, CHANNELS, NULL), weft_nn_batch_norm(ctx, CHANNELS, NULL),
        weft_nn_activation(ctx, WEFT_GELU), weft_nn_linear(ctx, CHANNELS, 2, NULL), NULL);
    weft_optimizer *opt = weft_sgd(net, &(weft_sgd_options){.lr = 0.05, .exact_sum = true});
    EXPECT(weft_module_sync_batch_norm(net, true) == WEFT_OK);
    EXPECT(weft_optimizer_join(opt, g) == WEFT_OK);
    if (g) EXPECT(weft_optimizer_shard(opt, to->shard) == WEFT_OK);
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){end - from, 4}, numbers[from]);
        weft_tensor *y = weft_forward(net, x);
        weft_tensor *loss =
            weft_mul_scalar(weft_sum(weft_mul(y, y), WEFT_ALL_AXES, false), 1.0 / (3 - ranks));
        EXPECT(weft_optimizer_step(opt, loss) == WEFT_OK);
        weft_scope_close(scope);
    }
    weft_parameter_info p;
    size_t at = 0;
    for (size_t i = 0; weft_parameter_get(net, i, &p); i++) {
        const size_t n = (size_t)weft_numel(p.tensor);
        EXPECT(at + n <= MOST_WEIGHTS);
        EXPECT(weft_read(p.tensor, to->weights[rank] + at, n * sizeof(float)) == WEFT_OK);
        at += n;
    }
    if (rank == 0) to->count = at;
    weft_close(ctx);
}

static void train_part(weft_process_group *g, void *user) {
    const int rank = weft_process_group_rank(g);
    train_normed(g, user, rank ? 3 : 0, rank ? SAMPLES : 3, 2);
}

/* Two processes with 3 and 5 samples train as one does with 8. */
static void test_batch_norm(void **state) {
    static normed one, shared;
    (void)state;
    train_normed(NULL, &one, 0, SAMPLES, 1);
    for (int shard = 0; shard <= (int)WEFT_SHARD_PARAMETERS; shard++) {
        network net = {0};
        shared = (normed){.shard = (weft_shard)shard};
        run_ranks(&net, RANKS, 60, train_part, &shared);
        assert_memory_equal(shared.weights[0], shared.weights[1], sizeof shared.weights[0]);
        for (size_t i = 0; i < one.count; i++)
            assert_float_equal(one.weights[0][i], shared.weights[0][i], 2e-5F);
    }
}

/* Ranks, and tests, share the compiled kernels. */
static int share_kernels(void **state) {
    const int failed = scratch_setup(state);
    return failed || (cards && setenv("WEFT_KERNEL_CACHE", in_scratch("kernels"), 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads),
                                       cmocka_unit_test(test_order),
                                       cmocka_unit_test(test_missing),
                                       cmocka_unit_test_teardown(test_failing, end_failing),
                                       cmocka_unit_test(test_batch_norm),
                                       cmocka_unit_test(test_divided),
                                       cmocka_unit_test(test_access)},
                            timed[] = {cmocka_unit_test(test_overlap)};
    setenv("FAKE_CUDA_CARDS", "4", 0); /* BATCHES */
    cards = getenv("WEFT_TEST_GPU") != NULL;
    if (cards)
        layers = CARD_LAYERS, width = 128, rows_most = 4,
        steps = 3; /* the third run of a program is a graph */
    const int failed = cmocka_run_group_tests(tests, share_kernels, scratch_teardown);
    return failed || cards ? failed : cmocka_run_group_tests(timed, NULL, NULL);
}
