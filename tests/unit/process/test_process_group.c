/* Groups of processes, on ranks that are threads: copying memory, sums in the promised tree, steps that ranks
 * share, and what is said if ranks differ or do not answer. */
#include <weft/fit.h>

#include "learn/evaluate.h"
#include "optim/optimizer.h"
#include "unit/nn_help.h"
#include "unit/process/threads.h"

/* ---- copying ---- */

static void copy_memory(weft_process_group *g, void *user) {
    const int rank = weft_process_group_rank(g), size = weft_process_group_size(g);
    const size_t bytes = *(const size_t *)user;
    unsigned char *all = malloc((size_t)size * bytes);
    memset(all, 0xee, (size_t)size * bytes);
    memset(all + (size_t)rank * bytes, rank + 1, bytes);
    EXPECT(weft_process_group_all_gather(g, all, bytes) == WEFT_OK);
    for (int i = 0; i < size; i++)
        EXPECT(all[(size_t)i * bytes] == i + 1 && all[(size_t)(i + 1) * bytes - 1] == i + 1);
    memset(all, rank, bytes);
    EXPECT(weft_process_group_broadcast(g, all, bytes, size - 1) == WEFT_OK);
    EXPECT(all[0] == size - 1 && all[bytes - 1] == size - 1);
    EXPECT(weft_process_group_barrier(g) == WEFT_OK);
    EXPECT(weft_process_group_broadcast(g, all, bytes, size) == WEFT_ERR_ARGUMENT);
    EXPECT(weft_process_group_local_size(g) == size && weft_process_group_local_rank(g) == rank);
    EXPECT(weft_process_group_host(g, rank)[0] && !weft_process_group_host(g, size)[0]);
    EXPECT(strcmp(weft_process_group_engine(g), "threads") == 0);
    free(all);
}

static void test_copying(void **state) {
    (void)state;
    const size_t sizes[] = {1, 17, 100000, (size_t)160 << 20}; /* the last one in several transfers */
    for (int size = 2; size <= RANKS_MOST; size += 3)
        for (size_t i = 0; i < COUNT(sizes) - (size > 2); i++)
            run_threads(size, 0, copy_memory, (void *)(uintptr_t)&sizes[i]);
}

/* ---- sums ---- */

static void add_numbers(weft_process_group *g, void *user) {
    const sum_case *c = user;
    const int rank = weft_process_group_rank(g), size = weft_process_group_size(g);
    const bool wide = c->dtype == WEFT_F64;
    void *data = make_numbers(c, rank);
    int other = 0;
    EXPECT(weft_process_group_all_reduce(g, data, c->dtype, c->count, c->exact) == WEFT_OK);
    for (size_t i = 0; i < c->count; i++)
        other += (wide ? ((double *)data)[i] : (double)((float *)data)[i]) != tree_sum(0, size, i, c->dtype);
    EXPECT(c->exact ? other == 0 : size < 4 || other > 0); /* the engine has another order */
    free(data);
}

/* Each rank receives its part of the sums. Parts are larger than they must be, so the last ones have zeros.
 */
static void divide_sums(weft_process_group *g, void *user) {
    const sum_case *c = user;
    const size_t rank = (size_t)weft_process_group_rank(g), size = (size_t)weft_process_group_size(g),
                 part = c->count / size + 5;
    void *data = make_numbers(c, (int)rank), *own = malloc(part * 8);
    int other = 0;
    EXPECT(weft__process_group_scatter(g, data, own, c->dtype, c->count, part) == WEFT_OK);
    EXPECT(g->staging_bytes <= weft__process_group_scatter_bytes(g, c->dtype, part));
    for (size_t k = 0; k < part; k++) {
        const size_t i = rank * part + k;
        const double sum = c->dtype == WEFT_F64 ? ((double *)own)[k] : (double)((float *)own)[k];
        other += sum != (i < c->count ? tree_sum(0, (int)size, i, c->dtype) : 0);
    }
    for (size_t i = 0; i < c->count; i++)
        other += (c->dtype == WEFT_F64 ? ((double *)data)[i] : (double)((float *)data)[i]) !=
                 (c->dtype == WEFT_F64 ? number((int)rank, i) : (double)(float)number((int)rank, i));
    EXPECT(other == 0);
    free(data);
    free(own);
}

static void test_divided_sums(void **state) {
    const sum_case cases[] = {
        {1, WEFT_F32, true}, {1000, WEFT_F64, true}, {20011, WEFT_F32, true}, {3000017, WEFT_F32, true}};
    (void)state;
    for (int size = 2; size <= RANKS_MOST; size++)
        for (size_t i = 0; i < COUNT(cases); i++)
            if (size < 4 || cases[i].count < 1000000)
                run_threads(size, 0, divide_sums, (void *)(uintptr_t)&cases[i]);
}

static void test_sums(void **state) {
    (void)state;
    for (int size = 2; size <= RANKS_MOST; size++) {
        const sum_case cases[] = {{1, WEFT_F32, true},      {1000, WEFT_F64, true},
                                  {20011, WEFT_F32, true},  {3000017, WEFT_F32, true},
                                  {100003, WEFT_F64, true}, {20011, WEFT_F32, false}};
        for (size_t i = 0; i < COUNT(cases); i++)
            if (size < 4 || cases[i].count < 1000000)
                run_threads(size, 0, add_numbers, (void *)(uintptr_t)&cases[i]);
    }
}

static void test_alone(void **state) {
    (void)state;
    weft_process_group *group = (weft_process_group *)state;
    float one = 1.5F;
    assert_ok(weft_process_group_open(NULL, &group));
    assert_null(group);
    assert_ok(weft_process_group_all_reduce(NULL, &one, WEFT_F32, 1, true));
    assert_ok(weft_process_group_all_gather(NULL, &one, sizeof one));
    assert_ok(weft_process_group_broadcast(NULL, &one, sizeof one, 0));
    assert_ok(weft_process_group_barrier(NULL));
    assert_true(one == 1.5F);
    assert_int_equal(weft_process_group_size(NULL), 1);
    assert_int_equal(weft_process_group_all_reduce(NULL, &one, WEFT_F16, 1, true), WEFT_ERR_DTYPE);
    weft_process_group_close(NULL);
}

/* ---- failures ---- */

/* Rank 2 does not come. Rank 1 has more patience than the others, and still answers when they call. */
static void miss_one(weft_process_group *g, void *user) {
    float number = 1;
    (void)user;
    if (weft_process_group_rank(g) == 2) return;
    if (weft_process_group_rank(g) == 1) weft_process_group_set_timeout(g, 100);
    weft__process_group_purpose(g, 17, "the gradients");
    EXPECT(weft_process_group_all_reduce(g, &number, WEFT_F32, 1, true) == WEFT_ERR_TIMEOUT);
    EXPECT(strstr(weft_last_error(NULL), "step 17: waited 0.2 s for the gradients: no answer from rank 2 ("));
    EXPECT(!strstr(weft_last_error(NULL), ", "));
    /* the engine may still write what failed: it gets nothing more to do */
    EXPECT(weft_process_group_broadcast(g, &number, sizeof number, 0) == WEFT_ERR_DEVICE);
    EXPECT(strstr(weft_last_error(NULL), "an exchange before it failed"));
}

static void come_late(weft_process_group *g, void *user) {
    const struct timespec late = {1, 0};
    float number = 1;
    (void)user;
    if (weft_process_group_rank(g) == 1) nanosleep(&late, NULL);
    const weft_status status = weft_process_group_all_reduce(g, &number, WEFT_F32, 1, true);
    EXPECT(status == WEFT_OK || status == WEFT_ERR_TIMEOUT);
}

static void differ(weft_process_group *g, void *user) {
    char bytes[64] = {0};
    (void)user;
    if (weft_process_group_rank(g) != 1) return;
    EXPECT(weft_process_group_broadcast(g, bytes, 3, 0) == WEFT_ERR_TIMEOUT);
}

/* The ranks of a set fail. All return the failure of the first of them, with its message. */
static void agree(weft_process_group *g, void *user) {
    const int fails = *(const int *)user, rank = weft_process_group_rank(g);
    char message[64];
    bool agreed = false;
    int first = 0;
    while (first < 4 && !(fails >> first & 1)) first++;
    snprintf(message, sizeof message, "what rank %d says", rank);
    const weft_status status =
        fails >> rank & 1 ? weft__fail(NULL, (weft_status)(WEFT_ERR_IO + rank), "%s", message) : WEFT_OK;
    const weft_status all = weft__process_group_agree(g, status, &agreed);
    EXPECT(agreed && all == (fails ? (weft_status)(WEFT_ERR_IO + first) : WEFT_OK));
    snprintf(message, sizeof message, "what rank %d says", first);
    if (!fails) return;
    EXPECT(strstr(weft_last_error(NULL), message));
    snprintf(message, sizeof message, "rank %d (", first);
    EXPECT((strncmp(weft_last_error(NULL), message, strlen(message)) == 0) == (first > 0));
}

static void agree_late(weft_process_group *g, void *user) {
    bool agreed = true;
    (void)user;
    if (weft_process_group_rank(g) == 1) return;
    EXPECT(weft__process_group_agree(g, WEFT_OK, &agreed) == WEFT_ERR_TIMEOUT && !agreed);
}

static void test_agreement(void **state) {
    (void)state;
    for (int fails = 0; fails < 16; fails++) run_threads(4, 0, agree, &fails);
    run_threads(2, 0.1, agree_late, NULL);
    assert_int_equal(weft__process_group_agree(NULL, WEFT_ERR_IO, NULL), WEFT_ERR_IO);
}

static void test_failures(void **state) {
    (void)state;
    run_threads(4, 0.2, miss_one, NULL);
    run_threads(2, 5, come_late, NULL);
    run_threads(2, 0.1, differ, NULL);
}

/* ---- steps that ranks share ---- */

enum {
    ROWS = 88,
    INPUTS = 3,
    WIDTH = 256,
    STEPS = 7,
    PARTS = 8,
    WEIGHTS = (INPUTS + 1) * WIDTH + WIDTH * 2 + 2
};

typedef struct copy {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *opt;
    weft_loader *loader;
} copy;

static void make_samples(float numbers[ROWS][INPUTS], int32_t classes[ROWS]) {
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < INPUTS; k++) numbers[i][k] = (float)((i * 37 + k * 11) % 17) / 5 - 1.6F;
        classes[i] = numbers[i][0] * numbers[i][1] > numbers[i][2];
    }
}

static copy make_copy(double lr, uint64_t seed) {
    float numbers[ROWS][INPUTS];
    int32_t classes[ROWS];
    copy c;
    make_samples(numbers, classes);
    EXPECT(weft_open(&(weft_open_options){.device = "cpu", .threads = 1, .seed = seed}, &c.ctx) == WEFT_OK);
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, numbers, sizeof numbers},
                     y = {WEFT_I32, 1, {ROWS}, classes, sizeof classes};
    c.net = weft_nn_mlp(c.ctx, (int64_t[]){INPUTS, WIDTH, 2}, 3, &(weft_mlp_options){.dropout = 0.2});
    c.opt = weft_adamw(
        c.net,
        &(weft_adam_options){
            .lr = lr, .weight_decay = 0.3, .decay_matrices_only = true, .clip = 0.5, .exact_sum = true});
    EXPECT(weft_loader_new(c.ctx, &x, &y, &(weft_loader_options){.batch = 5, .classes = 2}, &c.loader) ==
           WEFT_OK);
    return c;
}

static void free_copy(copy c) {
    weft_loader_free(c.loader);
    weft_close(c.ctx);
}

static void read_weights(const copy *c, float out[WEIGHTS]) {
    size_t at = 0;
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(c->net, i, &p); i++) {
        const size_t n = (size_t)weft_numel(p.tensor);
        EXPECT(weft_read(p.tensor, out + at, n * sizeof *out) == WEFT_OK);
        at += n;
    }
}

typedef struct trained {
    bool two_copies;  /* each rank has two copies of the model */
    bool look_always; /* reads the losses after each step */
    weft_shard shard; /* what ranks divide */
    float weights[RANKS_MOST][WEIGHTS];
    double losses[RANKS_MOST][STEPS], last[RANKS_MOST];
} trained;

typedef struct watcher {
    trained *t;
    int rank;
} watcher;

static weft_status watch(void *user, const weft_fit_state *state, bool *stop) {
    const watcher *w = user;
    *stop = false;
    if (w->t->look_always) return weft_fit_losses(state, &w->t->losses[w->rank][state->step - 1], NULL);
    return state->step == STEPS ? weft_fit_losses(state, &w->t->last[w->rank], NULL) : WEFT_OK;
}

static void train_share(weft_process_group *g, void *user) {
    trained *t = user;
    const int rank = weft_process_group_rank(g);
    copy c = make_copy(0.02, 3), second = make_copy(0.02, 3);
    const weft_replica other = {second.net, second.opt, second.loader};
    watcher w = {t, rank};
    const weft_fit_options options = {.steps = STEPS,
                                      .accumulate = PARTS,
                                      .on_step = watch,
                                      .user = &w,
                                      .replicas = &other,
                                      .n_replicas = t->two_copies};
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_processes(c.opt) == g);
    if (g) EXPECT(weft_optimizer_shard(c.opt, t->shard) == WEFT_OK);
    EXPECT(weft_fit(c.net, c.opt, c.loader, &options, NULL) == WEFT_OK);
    EXPECT(weft_optimizer_compare(c.opt) == WEFT_OK);
    read_weights(&c, t->weights[rank]);
    free_copy(c);
    free_copy(second);
}

static void test_same_bits(void **state) {
    (void)state;
    static trained one, shared;
    one = (trained){.look_always = true};
    train_share(NULL, &one);
    for (int size = 2; size <= RANKS_MOST; size *= 2)
        for (int variant = 0; variant < 4; variant++) {
            shared = (trained){.two_copies = variant & 1 && size < RANKS_MOST, .look_always = variant & 2};
            run_threads(size, 0, train_share, &shared);
            for (int i = 0; i < size; i++) {
                assert_memory_equal(one.weights[0], shared.weights[i], sizeof one.weights[0]);
                if (shared.look_always)
                    assert_memory_equal(one.losses[0], shared.losses[i], sizeof one.losses[0]);
                else
                    assert_true(shared.last[i] == one.losses[0][STEPS - 1]);
            }
        }
}

/* ---- divided state ---- */

typedef struct kept {
    weft_shard shard;
    uint64_t bytes[RANKS_MOST];
    size_t count[RANKS_MOST];
    float states[2 * WEIGHTS];
} kept;

/* Trains some steps, divides the state on the way, and reads the parts of all ranks. */
static void shard_late(weft_process_group *g, void *user) {
    kept *k = user;
    const int rank = weft_process_group_rank(g);
    copy c = make_copy(0.02, 3);
    weft_fit_options options = {.steps = STEPS - 3, .accumulate = PARTS};
    weft_named_tensor state;
    size_t at = 0;
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_OK);
    EXPECT(weft_fit(c.net, c.opt, c.loader, &options, NULL) == WEFT_OK);
    if (g) EXPECT(weft_optimizer_shard(c.opt, k->shard) == WEFT_OK);
    options.steps = STEPS;
    EXPECT(weft_fit(c.net, c.opt, c.loader, &options, NULL) == WEFT_OK);
    for (size_t b = 0; b < c.opt->n_blocks; b++)
        for (int s = 0; s < 2; s++)
            if (c.opt->blocks[b].state[s])
                k->bytes[rank] += (uint64_t)weft_numel(c.opt->blocks[b].state[s]) * sizeof(float);
    k->count[rank] = weft_optimizer_state_count(c.opt);
    for (size_t i = 0; weft_optimizer_state_get(c.opt, i, &state); i++) {
        const size_t n = (size_t)weft_numel(state.tensor), from = g ? (size_t)state.part->from : 0;
        EXPECT(!state.part == !g);
        EXPECT(weft_read(state.tensor, k->states + at + from, n * sizeof *k->states) == WEFT_OK);
        at += (size_t)weft_numel(c.opt->slots[i / 2].parameter);
    }
    free_copy(c);
}

/* Divided gradients are added up in each micro-batch, and only if the device can exchange meanwhile. */
static void refuse_gradients(weft_process_group *g, void *user) {
    copy c = make_copy(0.02, 3);
    weft_context *slow;
    (void)user;
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(c.opt, WEFT_SHARD_GRADIENTS) == WEFT_OK);
    EXPECT(weft_optimizer_shard(c.opt, WEFT_SHARD_OPTIMIZER) == WEFT_ERR_STATE);
    weft_scope *scope = weft_scope_open(c.ctx);
    weft_batch batch;
    EXPECT(weft_loader_get(c.loader, 0, &batch) == WEFT_OK);
    weft_tensor *loss = weft_batch_loss(WEFT_LOSS_CROSS_ENTROPY, weft_forward(c.net, batch.x), &batch);
    EXPECT(weft_optimizer_add_gradients(c.opt, loss) == WEFT_ERR_STATE);
    EXPECT(strstr(weft_last_error(c.ctx), "use weft_optimizer_accumulate"));
    EXPECT(weft_optimizer_accumulate(c.opt, loss, 0, 2) == WEFT_OK);
    EXPECT(weft_optimizer_all_reduce(&c.opt, 1) == WEFT_ERR_STATE);
    weft_scope_close(scope);
    free_copy(c);

    EXPECT(weft_open(&(weft_open_options){.device = "interp"}, &slow) == WEFT_OK);
    weft_module *net = weft_nn_linear(slow, 2, 2, NULL);
    weft_optimizer *opt = weft_sgd(net, &(weft_sgd_options){.lr = 0.1});
    EXPECT(weft_optimizer_join(opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(opt, WEFT_SHARD_GRADIENTS) == WEFT_ERR_UNSUPPORTED);
    EXPECT(strstr(weft_last_error(slow), "'interp' exchanges gradients only after the backward pass"));
    EXPECT(weft_optimizer_shard(opt, WEFT_SHARD_PARAMETERS) == WEFT_ERR_UNSUPPORTED);
    EXPECT(weft_optimizer_shard(opt, WEFT_SHARD_OPTIMIZER) == WEFT_OK);
    weft_close(slow);
}

static void refuse_shard(weft_process_group *g, void *user) {
    copy c = make_copy(0.02, 3);
    (void)user;
    EXPECT(weft_optimizer_shard(c.opt, WEFT_SHARD_OPTIMIZER) == WEFT_ERR_STATE);
    EXPECT(strstr(weft_last_error(c.ctx), "call weft_optimizer_join first"));
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_shard(c.opt, (weft_shard)7) == WEFT_ERR_ARGUMENT);
    EXPECT(weft_optimizer_shard(c.opt, WEFT_SHARD_OPTIMIZER) == WEFT_OK);
    EXPECT(weft_optimizer_shard(c.opt, WEFT_SHARD_OPTIMIZER) == WEFT_OK);
    EXPECT(weft_optimizer_shard(c.opt, WEFT_SHARD_NONE) == WEFT_ERR_STATE);
    EXPECT(weft_optimizer_join(c.opt, NULL) == WEFT_ERR_STATE && weft_optimizer_processes(c.opt) == g);
    free_copy(c);
}

/* Ranks that divide train to the weights, losses and states of one that does not. */
static void check_shard(int size, weft_shard shard, const trained *one, const kept *whole) {
    static trained shared;
    static kept divided;
    uint64_t bytes = 0;
    shared = (trained){.shard = shard, .look_always = true};
    divided = (kept){.shard = shard};
    run_threads(size, 0, train_share, &shared);
    for (int i = 0; i < size; i++) {
        assert_memory_equal(one->weights[0], shared.weights[i], sizeof one->weights[0]);
        assert_memory_equal(one->losses[0], shared.losses[i], sizeof one->losses[0]);
    }
    run_threads(size, 0, shard_late, &divided);
    assert_memory_equal(divided.states, whole->states, sizeof whole->states);
    for (int i = 0; i < size; i++) {
        bytes += divided.bytes[i];
        assert_int_equal(divided.count[i], whole->count[0]);
        assert_true(divided.bytes[i] < whole->bytes[0]);
    }
    assert_int_equal(bytes, whole->bytes[0]);
}

static void test_shards(void **state) {
    (void)state;
    static trained one;
    static kept whole;
    one = (trained){.look_always = true};
    whole = (kept){.count = {0}};
    train_share(NULL, &one);
    shard_late(NULL, &whole);
    assert_true(whole.count[0] > 0);
    for (int size = 2; size <= RANKS_MOST; size *= 2)
        for (int shard = 0; shard <= (int)WEFT_SHARD_PARAMETERS; shard++)
            if (shard != WEFT_SHARD_NONE) check_shard(size, (weft_shard)shard, &one, &whole);
    run_threads(2, 0, refuse_shard, NULL);
    run_threads(2, 0, refuse_gradients, NULL);
}

/* One's own loop: weft_optimizer_step in each rank is weft_optimizer_accumulate in one. */
static void step_share(weft_process_group *g, void *user) {
    float(*weights)[WEIGHTS] = user;
    const int rank = weft_process_group_rank(g), parts = 4 / weft_process_group_size(g);
    copy c = make_copy(0.02, 3);
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_OK);
    for (uint64_t step = 0; step < STEPS; step++)
        for (int k = 0; k < parts; k++) {
            weft_batch batch;
            weft_scope *scope = weft_scope_open(c.ctx);
            EXPECT(weft_optimizer_micro_batch(c.opt, rank * parts + k) == WEFT_OK);
            EXPECT(weft_loader_get(c.loader, 4 * step + (uint64_t)(rank * parts + k), &batch) == WEFT_OK);
            weft_tensor *loss =
                weft_batch_loss(WEFT_LOSS_CROSS_ENTROPY, weft_forward(c.net, batch.x), &batch);
            EXPECT((parts == 1 ? weft_optimizer_step(c.opt, loss)
                               : weft_optimizer_accumulate(c.opt, loss, k, parts)) == WEFT_OK);
            weft_scope_close(scope);
        }
    read_weights(&c, weights[rank]);
    free_copy(c);
}

static void test_own_loop(void **state) {
    (void)state;
    static float one[1][WEIGHTS], shared[4][WEIGHTS];
    step_share(NULL, one);
    for (int size = 2; size <= 4; size += 2) {
        run_threads(size, 0, step_share, shared);
        for (int i = 0; i < size; i++) assert_memory_equal(one[0], shared[i], sizeof one[0]);
    }
}

/* ---- evaluations that ranks share ---- */

typedef struct measured {
    int64_t batch;
    double loss[RANKS_MOST], accuracy[RANKS_MOST];
    float predictions[RANKS_MOST][ROWS * 2];
    int32_t targets[RANKS_MOST][ROWS];
} measured;

static void measure_share(weft_process_group *g, void *user) {
    measured *e = user;
    const int rank = weft_process_group_rank(g);
    copy c = make_copy(0.02, 3);
    const weft_loader_options how = {.batch = e->batch, .classes = 2, .in_order = true};
    weft_array predictions = {0}, targets = {0};
    weft_loader *loader;
    double loss;
    float numbers[ROWS][INPUTS];
    int32_t classes[ROWS];
    make_samples(numbers, classes);
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, numbers, sizeof numbers},
                     y = {WEFT_I32, 1, {ROWS}, classes, sizeof classes};
    EXPECT(weft_loader_new(c.ctx, &x, &y, &how, &loader) == WEFT_OK);
    const weft__evaluated here = {.module = c.net, .loader = loader};
    const weft__evaluators on = {&here, 1, g};
    EXPECT(weft__evaluate(&on, WEFT_LOSS_CROSS_ENTROPY, &e->loss[rank], &e->accuracy[rank]) == WEFT_OK);
    EXPECT(weft__evaluate_all(&on, WEFT_LOSS_CROSS_ENTROPY, &loss, &predictions, &targets) == WEFT_OK);
    EXPECT(loss == e->loss[rank] && predictions.bytes == sizeof e->predictions[0] &&
           targets.bytes == sizeof e->targets[0]);
    memcpy(e->predictions[rank], predictions.data, sizeof e->predictions[0]);
    memcpy(e->targets[rank], targets.data, sizeof e->targets[0]);
    weft_array_free(NULL, &predictions);
    weft_array_free(NULL, &targets);
    weft_loader_free(loader);
    free_copy(c);
}

/* Batches of all sizes: more than ranks, as many, fewer, and a last one that is shorter. */
static void test_evaluations(void **state) {
    (void)state;
    static measured one, shared;
    static const int64_t batches[] = {5, 11, 22, 30, 44, 88};
    for (size_t i = 0; i < COUNT(batches); i++) {
        one.batch = shared.batch = batches[i];
        measure_share(NULL, &one);
        for (int size = 2; size <= 5; size++) {
            run_threads(size, 0, measure_share, &shared);
            for (int r = 0; r < size; r++) {
                assert_true(shared.loss[r] == one.loss[0] && shared.accuracy[r] == one.accuracy[0]);
                assert_memory_equal(shared.predictions[r], one.predictions[0], sizeof one.predictions[0]);
                assert_memory_equal(shared.targets[r], one.targets[0], sizeof one.targets[0]);
            }
        }
    }
}

/* ---- buffers ---- */

static void share_buffers(weft_process_group *g, void *user) {
    float(*means)[2] = user;
    const int rank = weft_process_group_rank(g);
    weft_context *ctx;
    weft_parameter_info info;
    EXPECT(weft_open(&(weft_open_options){.device = "cpu", .threads = 1, .seed = 1}, &ctx) == WEFT_OK);
    weft_module *net = weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, 2, 2, NULL),
                                          weft_nn_batch_norm(ctx, 2, NULL), NULL);
    weft_optimizer *opt = weft_sgd(net, &(weft_sgd_options){.lr = 0.1});
    EXPECT(weft_optimizer_join(opt, g) == WEFT_OK);
    for (size_t i = 0; weft_parameter_get(net, i, &info); i++)
        if (info.buffer)
            EXPECT(weft_write(info.tensor, (float[]){(float)rank + 1, (float)rank}, 8) == WEFT_OK);
    EXPECT(weft__optimizer_share_buffers(opt) == WEFT_OK);
    for (size_t i = 0; weft_parameter_get(net, i, &info); i++)
        if (info.buffer) EXPECT(weft_read(info.tensor, means[rank], 8) == WEFT_OK);
    weft_close(ctx);
}

static void test_buffers(void **state) {
    (void)state;
    float means[4][2] = {{0}};
    run_threads(4, 0, share_buffers, means);
    for (int i = 0; i < 4; i++) assert_true(means[i][0] == 1 && means[i][1] == 0);
}

/* ---- ranks that differ ---- */

static void join_differently(weft_process_group *g, void *user) {
    copy c = make_copy(weft_process_group_rank(g) == 1 ? 0.03 : 0.02, 3);
    (void)user;
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_ERR_STATE);
    EXPECT(strstr(weft_last_error(NULL), "rank 1 (") && strstr(weft_last_error(NULL), "another optimizer"));
    free_copy(c);
}

static void drift(weft_process_group *g, void *user) {
    copy c = make_copy(0.02, weft_process_group_rank(g) == 2 ? 4 : 3);
    (void)user;
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_OK);
    EXPECT(weft_optimizer_compare(c.opt) == WEFT_ERR_STATE);
    EXPECT(strstr(weft_last_error(NULL), "rank 2 (") && strstr(weft_last_error(NULL), "other parameters"));
    free_copy(c);
}

static void divide_unevenly(weft_process_group *g, void *user) {
    copy c = make_copy(0.02, 3);
    weft_program *program;
    (void)user;
    const weft_fit_options options = {.steps = 1, .accumulate = 4};
    EXPECT(weft_optimizer_join(c.opt, g) == WEFT_OK);
    EXPECT(weft_fit(c.net, c.opt, c.loader, &options, NULL) == WEFT_ERR_ARGUMENT);
    EXPECT(strstr(weft_last_error(c.ctx), "cannot be divided evenly among 3 copies"));
    weft_scope *scope = weft_scope_open(c.ctx);
    weft_batch batch;
    EXPECT(weft_loader_get(c.loader, 0, &batch) == WEFT_OK);
    weft_tensor *loss = weft_batch_loss(WEFT_LOSS_CROSS_ENTROPY, weft_forward(c.net, batch.x), &batch);
    EXPECT(weft_optimizer_hold(c.opt, loss, &program) == WEFT_ERR_STATE);
    weft_scope_close(scope);
    EXPECT(weft_optimizer_join(c.opt, NULL) == WEFT_OK);
    EXPECT(!weft_optimizer_processes(c.opt));
    free_copy(c);
}

static void test_differences(void **state) {
    (void)state;
    run_threads(3, 0, join_differently, NULL);
    run_threads(3, 0, drift, NULL);
    run_threads(3, 0, divide_unevenly, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copying),     cmocka_unit_test(test_sums),
        cmocka_unit_test(test_alone),       cmocka_unit_test(test_failures),
        cmocka_unit_test(test_same_bits),   cmocka_unit_test(test_own_loop),
        cmocka_unit_test(test_evaluations), cmocka_unit_test(test_buffers),
        cmocka_unit_test(test_shards),      cmocka_unit_test(test_differences),
        cmocka_unit_test(test_agreement),   cmocka_unit_test(test_divided_sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
