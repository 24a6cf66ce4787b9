/* State that ranks have divided, on ranks that are threads, in checkpoints: any other number of ranks reads
 * it, divided or whole, and trains on to the bits of a run that was never interrupted. */
#include <weft/fit.h>
#include <weft/io.h>

#include "optim/optimizer.h"
#include "unit/io_scratch.h"
#include "unit/nn_help.h"
#include "unit/process/threads.h"

static void run_on(int size, rank_work work, void *user) {
    if (size > 1)
        run_threads(size, 0, work, user);
    else
        work(NULL, user);
    assert_nothing_wrong();
}

/* Writes a checkpoint of this process, or of all that have divided the state. */
static void save_all(weft_process_group *g, weft_module *net, weft_optimizer *opt, bool divided,
                     const char *run) {
    weft_entry *model = NULL, *states = NULL;
    size_t n_model = 0, n_states = 0;
    const weft_checkpoint_state about = {.step = weft_optimizer_steps(opt), .seed = 5};
    weft_context *ctx = weft_module_context(net);
    EXPECT(weft_module_entries(net, &model, &n_model) == WEFT_OK);
    EXPECT(weft_optimizer_entries(opt, &states, &n_states) == WEFT_OK);
    if (divided && g)
        EXPECT(weft_checkpoint_write_group(ctx, g, run, &about, model, n_model, states, n_states) == WEFT_OK);
    else if (weft_process_group_rank(g) == 0)
        EXPECT(weft_checkpoint_write(ctx, run, &about, model, n_model, states, n_states) == WEFT_OK);
    EXPECT(weft_process_group_barrier(g) == WEFT_OK);
    weft_entries_free(ctx, model, n_model);
    weft_entries_free(ctx, states, n_states);
}

/* ---- training on ---- */

enum { ROWS = 64, INPUTS = 3, PARTS = 8, STEPS = 9, KINDS = 4 };

typedef struct stage {
    char run[8192];
    int kind;
    weft_shard shard;
    bool resumes;
    uint64_t to;
} stage;

static weft_optimizer *make_optimizer(weft_module *net, int kind) {
    switch (kind) {
    case 0:
        return weft_adamw(net, &(weft_adam_options){.lr = 0.02,
                                                    .weight_decay = 0.3,
                                                    .decay_matrices_only = true,
                                                    .clip = 0.5,
                                                    .exact_sum = true});
    case 1: return weft_sgd(net, &(weft_sgd_options){.lr = 0.1, .momentum = 0.9, .exact_sum = true});
    case 2: return weft_rmsprop(net, &(weft_rmsprop_options){.lr = 0.01, .momentum = 0.5, .exact_sum = true});
    default: return weft_sgd(net, &(weft_sgd_options){.lr = 0.1, .exact_sum = true}); /* no state */
    }
}

static void train_stage(weft_process_group *g, void *user) {
    const stage *s = user;
    float numbers[ROWS][INPUTS];
    int32_t classes[ROWS];
    weft_context *ctx;
    weft_loader *loader;
    weft_checkpoint *from = NULL;
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < INPUTS; k++) numbers[i][k] = (float)((i * 37 + k * 11) % 17) / 5 - 1.6F;
        classes[i] = numbers[i][0] * numbers[i][1] > numbers[i][2];
    }
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, numbers, sizeof numbers},
                     y = {WEFT_I32, 1, {ROWS}, classes, sizeof classes};
    EXPECT(weft_open(&(weft_open_options){.device = "cpu", .threads = 1, .seed = 5}, &ctx) == WEFT_OK);
    weft_module *net = weft_nn_mlp(ctx, (int64_t[]){INPUTS, 13, 2}, 3, &(weft_mlp_options){.dropout = 0.2});
    weft_optimizer *opt = make_optimizer(net, s->kind);
    EXPECT(weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = 5, .classes = 2}, &loader) ==
           WEFT_OK);
    /* so large that some gradients are infinite, which all ranks must see */
    const weft_loss_scale_options scale = {.init = 3e38, .interval = 2};
    if (s->kind == 1) EXPECT(weft_optimizer_scale_loss(opt, &scale) == WEFT_OK);
    if (s->resumes) {
        EXPECT(weft_checkpoint_open_newest(ctx, s->run, true, &from) == WEFT_OK);
        EXPECT(weft_module_load_from(net, weft_checkpoint_model(from)) == WEFT_OK);
        weft_optimizer_set_steps(opt, weft_checkpoint_state_of(from)->step);
        weft_seed(ctx, 5, weft_checkpoint_state_of(from)->step);
    }
    EXPECT(weft_optimizer_join(opt, g) == WEFT_OK);
    if (g) EXPECT(weft_optimizer_shard(opt, s->shard) == WEFT_OK);
    if (from) EXPECT(weft_optimizer_load_from(opt, weft_checkpoint_optimizer(from)) == WEFT_OK);
    weft_checkpoint_close(from);
    const weft_fit_options options = {.steps = s->to, .accumulate = PARTS};
    if (weft_optimizer_steps(opt) < s->to) EXPECT(weft_fit(net, opt, loader, &options, NULL) == WEFT_OK);
    EXPECT(weft_optimizer_compare(opt) == WEFT_OK);
    save_all(g, net, opt, s->shard != WEFT_SHARD_NONE, s->run);
    weft_loader_free(loader);
    weft_close(ctx);
}

/* Trains from the state of the run, if it has one, to step `to`. */
static void train_to(const char *run, int kind, int size, weft_shard shard, bool resumes, uint64_t to) {
    stage s = {.kind = kind, .shard = shard, .resumes = resumes, .to = to};
    snprintf(s.run, sizeof s.run, "%s", run);
    run_on(size, train_stage, &s);
}

static void assert_same_file(const char *one, const char *two, const char *name) {
    char path[8400];
    size_t n_one = 0, n_two = 0;
    snprintf(path, sizeof path, "%s/checkpoints/step-%d/%s", one, STEPS, name);
    char *a = slurp(path, &n_one);
    snprintf(path, sizeof path, "%s/checkpoints/step-%d/%s", two, STEPS, name);
    char *b = slurp(path, &n_two);
    assert_true(a && b && n_one > 0);
    assert_int_equal(n_one, n_two);
    assert_memory_equal(a, b, n_one);
    free(a);
    free(b);
}

/* The numbers of ranks change from stage to stage, and so does who has the state. Three ranks cannot share
 * eight batches: they only read and write. */
static void test_train_on(void **state) {
    (void)state;
    enum {
        NONE = WEFT_SHARD_NONE,
        STATE = WEFT_SHARD_OPTIMIZER,
        ALL = WEFT_SHARD_GRADIENTS,
        FULL = WEFT_SHARD_PARAMETERS
    };
    static const struct {
        int size, shard;
        uint64_t to;
    } stages[] = {{4, STATE, 2}, {2, ALL, 3},  {1, NONE, 3}, {4, FULL, 4},  {3, STATE, 4}, {8, ALL, 5},
                  {8, FULL, 6},  {2, NONE, 6}, {3, FULL, 6}, {4, STATE, 7}, {2, FULL, 8},  {1, NONE, STEPS}};
    char one[8192], moved[8192];
    snprintf(one, sizeof one, "%s", in_scratch("one"));
    snprintf(moved, sizeof moved, "%s", in_scratch("moved"));
    for (int kind = 0; kind < KINDS; kind++) {
        remove_all(one);
        remove_all(moved);
        assert_ok(weft_make_folder(NULL, one));
        assert_ok(weft_make_folder(NULL, moved));
        train_to(one, kind, 1, WEFT_SHARD_NONE, false, STEPS);
        for (size_t i = 0; i < COUNT(stages); i++)
            train_to(moved, kind, stages[i].size, (weft_shard)stages[i].shard, i > 0, stages[i].to);
        assert_same_file(one, moved, "model.safetensors");
        assert_same_file(one, moved, "optimizer.safetensors");
    }
}

/* ---- all dtypes ---- */

static weft_tensor *nothing(weft_module *m, weft_tensor *x) {
    (void)m;
    return x;
}

static const struct {
    const char *name;
    weft_dtype dtype;
    int rank;
    int64_t shape[3];
} parameters[] = {{"a", WEFT_F32, 2, {5, 7}},    {"b", WEFT_C64, 2, {9, 3}}, {"c", WEFT_F64, 1, {41}},
                  {"d", WEFT_BF16, 1, {33}},     {"e", WEFT_C64, 0, {0}},    {"f", WEFT_F32, 1, {1}},
                  {"g", WEFT_F32, 3, {2, 3, 4}}, {"h", WEFT_BF16, 2, {3, 3}}};

/* Bytes of a state that say which array and element they belong to. */
static unsigned char byte_of(size_t array, size_t byte) {
    return (unsigned char)(array * 101 + byte * 7 + 1);
}

typedef struct reading {
    char run[8192];
    bool writes;
    weft_shard shard;
    int more; /* elements that this program's first array has more than the file's */
} reading;

/* Writes known states, or reads them back and compares. */
static void state_rank(weft_process_group *g, void *user) {
    const reading *r = user;
    weft_context *ctx;
    weft_checkpoint *from;
    weft_named_tensor state;
    EXPECT(weft_open(&(weft_open_options){.device = "cpu", .threads = 1}, &ctx) == WEFT_OK);
    weft_module *net = weft_module_new(ctx, "all", nothing, NULL);
    for (size_t i = 0; i < COUNT(parameters); i++) {
        int64_t shape[3];
        memcpy(shape, parameters[i].shape, sizeof shape);
        if (i == 0) shape[0] += r->more;
        EXPECT(weft_module_parameter(net, parameters[i].name, parameters[i].dtype, parameters[i].rank, shape,
                                     NULL) == WEFT_OK);
    }
    weft_optimizer *opt = weft_adam(net, &(weft_adam_options){.lr = 0.1});
    EXPECT(weft_optimizer_join(opt, g) == WEFT_OK);
    if (g) EXPECT(weft_optimizer_shard(opt, r->shard) == WEFT_OK);
    if (!r->writes) {
        EXPECT(weft_checkpoint_open_newest(ctx, r->run, true, &from) == WEFT_OK);
        const weft_status status = weft_optimizer_load_from(opt, weft_checkpoint_optimizer(from));
        EXPECT(status == (r->more ? WEFT_ERR_FORMAT : WEFT_OK));
        if (r->more)
            EXPECT(strstr(weft_last_error(ctx), "entry 'm.a' is f32 [5,7] in the file, and f32 [6,7] here"));
        weft_checkpoint_close(from);
    }
    for (size_t i = 0; !r->more && weft_optimizer_state_get(opt, i, &state); i++) {
        const size_t size = weft_dtype_size(weft_dtype_of(state.tensor)),
                     bytes = (size_t)weft_numel(state.tensor) * size,
                     first = state.part ? (size_t)state.part->from * size : 0;
        unsigned char wanted[1024], got[1024];
        for (size_t k = 0; k < bytes; k++) wanted[k] = byte_of(i, first + k);
        if (r->writes) EXPECT(weft_write(state.tensor, wanted, bytes) == WEFT_OK);
        EXPECT(weft_read(state.tensor, got, bytes) == WEFT_OK);
        EXPECT(memcmp(got, wanted, bytes) == 0);
    }
    if (r->writes) save_all(g, net, opt, r->shard != WEFT_SHARD_NONE, r->run);
    weft_close(ctx);
}

static void test_any_number_reads(void **state) {
    (void)state;
    reading r = {.writes = true};
    snprintf(r.run, sizeof r.run, "%s", in_scratch("all"));
    for (int writers = 1; writers <= RANKS_MOST; writers++) {
        remove_all(r.run);
        assert_ok(weft_make_folder(NULL, r.run));
        r.writes = true;
        r.shard = (weft_shard)(1 + writers % 3);
        run_on(writers, state_rank, &r);
        r.writes = false;
        for (int readers = 1; readers <= RANKS_MOST; readers++)
            for (int shard = 0; shard <= (int)WEFT_SHARD_PARAMETERS; shard++) {
                r.shard = (weft_shard)shard;
                run_on(readers, state_rank, &r);
            }
    }
    r.more = 1; /* another network */
    for (int shard = 0; shard <= (int)WEFT_SHARD_PARAMETERS; shard++) {
        r.shard = (weft_shard)shard;
        run_on(3, state_rank, &r);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_train_on),
                                       cmocka_unit_test(test_any_number_reads)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
