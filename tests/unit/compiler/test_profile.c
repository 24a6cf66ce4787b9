/* The profile. Its parts add up, its stages and operations are those of a small net, the trace is valid JSON,
 * and nothing is collected without a profile. */
#include "compiler/profile/profile.h"
#include "unit/core_help.h"

#include <jansson.h>

#include "opencl.h"

typedef struct net {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *optimizer;
} net;

enum { BATCH = 64, IN = 32, HIDDEN = 48, OUT = 16 };

static net open_net_logged(const char *device, weft_log_fn log, void *user) {
    net n = {0};
    const weft_open_options options = {
        .device = device, .threads = 1, .seed = 5, .log = log, .log_user = user};
    assert_ok(test_open(&options, &n.ctx));
    n.module = weft_nn_sequential(n.ctx, "net", weft_nn_linear(n.ctx, IN, HIDDEN, NULL),
                                  weft_nn_activation(n.ctx, WEFT_TANH),
                                  weft_nn_linear(n.ctx, HIDDEN, OUT, NULL), NULL);
    n.optimizer = weft_adam(n.module, &(weft_adam_options){.lr = 1e-3});
    return n;
}

static net open_net(const char *device) { return open_net_logged(device, NULL, NULL); }

static void step(const net *n, int salt) {
    weft_scope *scope = weft_scope_open(n->ctx);
    weft_tensor *x = numbers(n->ctx, false, salt, SHAPE(BATCH, IN));
    weft_tensor *y = numbers(n->ctx, false, salt + 1, SHAPE(BATCH, OUT));
    assert_ok(weft_optimizer_step(n->optimizer, weft_mse(weft_forward(n->module, x), y, WEFT_MEAN)));
    weft_scope_close(scope);
}

static weft_profile *start(const net *n, const weft_profile_options *options) {
    weft_profile *profile = NULL;
    assert_ok(weft_profile_start(n->ctx, options, &profile));
    return profile;
}

static void test_parts_add_up(void **state) {
    (void)state;
    net n = open_net("cpu");
    weft_profile *profile = start(&n, NULL);
    for (int i = 0; i < 5; i++) step(&n, i);
    weft_profile_stop(profile);
    step(&n, 9); /* not counted */
    weft_profile_times t;
    weft_profile_total(profile, &t);
    double device = t.work[WEFT_WORK_MATMUL] + t.work[WEFT_WORK_ATTENTION] + t.work[WEFT_WORK_OTHER],
           stages = 0;
    for (int s = 0; s < WEFT_STAGE_COUNT; s++) stages += t.stage[s];
    assert_true(t.total > 0 && t.compile > 0 && t.host > 0 && t.work[WEFT_WORK_MATMUL] > 0);
    assert_true(t.work[WEFT_WORK_ATTENTION] == 0);
    assert_true(fabs(stages - device) < 1e-9);
    assert_true(fabs(t.total - (device + t.data + t.transfer + t.waiting + t.compile + t.host)) < 1e-9);
    assert_int_equal(t.runs, 5);
    assert_int_equal(t.timed, 5);
    assert_int_equal(t.submissions, 5);
    assert_int_equal(t.downloads, 0);
    assert_int_equal(t.uploads, 2 * 5); /* x and y of each step */
    size_t count = 0;
    const weft_profile_entry *entries = weft_profile_entries(profile, &count);
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        sum += entries[i].seconds;
        assert_int_equal(entries[i].calls % 5, 0);
        assert_true(i == 0 || entries[i].seconds <= entries[i - 1].seconds);
        assert_true(entries[i].bound == 0);
    }
    assert_true(sum > 0 && sum <= device);
    weft_profile_free(profile);
    weft_close(n.ctx);
}

/* ---- the entries of a device ---- */

enum { ROWS = 1024, WIDE = 4096, ROUNDS = 6 };

/* A thread makes the batches, of 1 MiB each, which takes longer than the steps. Each loss is read. */
static void train_on(net *n, const float *data, const int32_t *classes) {
    const weft_array x = {WEFT_F32, 2, {ROWS, WIDE}, (void *)(uintptr_t)data, (size_t)ROWS * WIDE * 4},
                     y = {WEFT_I32, 1, {ROWS}, (void *)(uintptr_t)classes, ROWS * 4};
    weft_loader *loader = NULL;
    n->module = weft_nn_linear(n->ctx, WIDE, 2, NULL);
    n->optimizer = weft_adam(n->module, &(weft_adam_options){.lr = 1e-3});
    const weft_loader_options options = {.batch = BATCH, .device_bytes = 1};
    assert_ok(weft_loader_new(n->ctx, &x, &y, &options, &loader));
    for (uint64_t i = 0; i < ROUNDS; i++) {
        weft_batch batch;
        float loss;
        weft_scope *scope = weft_scope_open(n->ctx);
        assert_ok(weft_loader_get(loader, i, &batch));
        weft_tensor *t = weft_cross_entropy(weft_forward(n->module, batch.x), batch.y, NULL);
        assert_ok(weft_optimizer_step(n->optimizer, t));
        assert_ok(weft_read(t, &loss, sizeof loss));
        weft_scope_close(scope);
    }
    weft_loader_free(loader);
}

/* Transfers both ways, waiting, opening, compiling, busy time and memory: each entry exists and is
 * plausible. */
static void check_device_rows(const char *device, const float *data, const int32_t *classes) {
    net n = {.ctx = open_device(device, false)};
    const weft_device *d = n.ctx->device;
    const double from = weft__profile_now();
    weft_profile *profile = start(&n, NULL);
    train_on(&n, data, classes);
    weft_profile_stop(profile);
    const double passed = 1e-9 * (weft__profile_now() - from);
    weft_profile_times t;
    weft_profile_total(profile, &t);
    const double commands = t.work[WEFT_WORK_MATMUL] + t.work[WEFT_WORK_OTHER];
    const uint64_t parameters = (2 * WIDE + 16) * 4, batch = (WIDE + 1) * BATCH * 4;
    assert_true(t.upload > 0 && t.download > 0 && t.upload + t.download == t.transfer);
    assert_true(t.context > 0 && t.compile > 0 && t.host > 0 && t.waiting > 0 && t.waiting < t.total);
    assert_true(fabs(t.total - (commands + t.data + t.transfer + t.waiting + t.compile + t.host)) < 1e-9);
    assert_true(t.total <= passed && t.total > 0.5 * passed); /* without the time to open it */
    assert_true(t.busy > 0 && t.busy <= 1);
    assert_true(t.bytes_in_use == d->bytes_in_use && t.bytes_peak == d->bytes_peak);
    assert_true(t.bytes_in_use >= 3 * parameters + batch && t.bytes_in_use <= t.bytes_peak);
    assert_true(t.bytes_peak < 4 * (3 * parameters + batch) + (1 << 20));
    assert_int_equal(t.submissions, ROUNDS);
    assert_int_equal(t.downloads, ROUNDS);
    assert_true(t.uploads >= ROUNDS && t.uploads <= 3 * ROUNDS);
    if (d->asynchronous) /* the batch, the learning rate and the initial weights */
        assert_int_equal(t.uploads, 2 * ROUNDS + 1);
    weft_profile_free(profile);
    weft_close(n.ctx);
}

static void test_device_rows(void **state) {
    (void)state;
    float *data = calloc((size_t)ROWS * WIDE, sizeof *data);
    int32_t classes[ROWS];
    assert_non_null(data);
    for (int i = 0; i < ROWS; i++) data[(size_t)i * WIDE] = (float)(classes[i] = i % 2);
    check_device_rows("cpu", data, classes);
    if (!test_without_opencl()) check_device_rows("opencl", data, classes);
    free(data);
}

/* ---- WEFT_DEBUG=launch ---- */

/* The log of a context that was opened with WEFT_DEBUG=launch, as a file. */
static void keep_line(void *user, weft_log_level level, const char *message) {
    if (level == WEFT_LOG_DEBUG) fprintf(user, "%s\n", message);
}

static FILE *step_aloud(const char *device, bool profiled) {
    FILE *file = tmpfile();
    assert_non_null(file);
    setenv("WEFT_DEBUG", "launch", 1);
    net n = open_net_logged(device, keep_line, file);
    unsetenv("WEFT_DEBUG");
    weft_profile *profile = profiled ? start(&n, NULL) : NULL;
    step(&n, 1);
    weft_profile_free(profile);
    weft_close(n.ctx);
    rewind(file);
    return file;
}

/* Each command logs its op, shape, layer, work and time, in order. */
static void check_launches(const char *device, bool profiled) {
    FILE *file = step_aloud(device, profiled);
    char line[500], name[200], shape[100], layer[100];
    int number, lines = 0, layers[3] = {0}, products = 0;
    double flops, bytes, took, product_flops = 0;
    while (fgets(line, sizeof line, file)) {
        layer[0] = shape[0] = 0;
        const char *hash = strstr(line, "  # "), *bracket = strchr(line, '['), *work = strstr(line, ", ");
        assert_true(work && sscanf(line, "launch %d: %199[^[#,]", &number, name) == 2);
        assert_int_equal(number, lines++);
        if (hash) assert_true(sscanf(hash, "  # %99[^,]", layer) == 1);
        if (bracket) assert_true(sscanf(bracket, "[%99[0-9 |]]", shape) == 1);
        if (sscanf(work, ", %lf flops, %lf bytes, %lf us", &flops, &bytes, &took) != 3)
            fail_msg("%s: %s", device, line);
        assert_true(flops >= 0 && bytes > 0 && took >= 0 && took < 10e6);
        int m, columns, k;
        if (sscanf(name, "matmul f32 1x %dx%dx%d", &m, &columns, &k) == 3) {
            const double least = 2.0 * m * columns * k; /* an epilogue adds to this */
            assert_true(flops >= least && flops <= least + 4.0 * m * columns);
            assert_true(bytes >= 4.0 * (m * k + k * columns + m * columns) && took > 0 && layer[0]);
            product_flops += least, products++;
        } else if (strncmp(name, "map", 3) == 0 || strncmp(name, "row", 3) == 0) {
            assert_true(shape[0] && took > 0);
        }
        if (layer[0] >= '0' && layer[0] <= '2' && !layer[1]) layers[layer[0] - '0']++;
    }
    fclose(file);
    assert_int_equal(products, 5); /* two forward, three for the gradients */
    assert_true(product_flops == 2.0 * (BATCH * HIDDEN * (2 * IN + 3 * OUT)));
    assert_true(layers[0] && layers[2] && lines > products);
}

static void test_launches_are_logged(void **state) {
    (void)state;
    check_launches("cpu", false);
    check_launches("cpu", true);
    if (test_without_opencl()) return;
    check_launches("opencl", false);
    check_launches("opencl", true);
}

/* The matmuls of two layers: forward, the gradients of both weights, and the gradient of the hidden layer. On
 * the interpreter, the matmul of the hidden layer also adds the bias and takes tanh, its backward matmul
 * multiplies by the slope, and matmuls return the bias gradients. */
static void test_stages_and_operations(void **state) {
    (void)state;
    static const char *const devices[] = {"cpu", "interp", "null"};
    for (size_t d = 0; d < COUNT(devices); d++) {
        net n = open_net(devices[d]);
        weft_profile *profile = start(&n, NULL);
        step(&n, 1);
        size_t count = 0;
        const weft_profile_entry *entries = weft_profile_entries(profile, &count);
        double flops[WEFT_STAGE_COUNT] = {0}, bytes = 0;
        int others[WEFT_STAGE_COUNT] = {0};
        for (size_t i = 0; i < count; i++) {
            if (entries[i].work == WEFT_WORK_MATMUL) {
                flops[entries[i].stage] += entries[i].flops;
                bytes += entries[i].bytes;
                assert_true(strcmp(entries[i].path, "0") == 0 || strcmp(entries[i].path, "2") == 0);
            } else {
                others[entries[i].stage]++;
            }
        }
        const bool epilogue = strcmp(devices[d], "interp") == 0;
        double first = 2.0 * (BATCH * IN * HIDDEN), second = 2.0 * (BATCH * HIDDEN * OUT);
        assert_true(flops[WEFT_STAGE_FORWARD] == first + second + (epilogue ? 2.0 * (BATCH * HIDDEN) : 0));
        const double sums = BATCH * (HIDDEN + OUT), slope = 4.0 * (BATCH * HIDDEN);
        assert_true(flops[WEFT_STAGE_BACKWARD] == first + 2 * second + (epilogue ? sums + slope : 0));
        assert_true(flops[WEFT_STAGE_LOSS] == 0 && flops[WEFT_STAGE_OPTIMIZER] == 0);
        assert_true(bytes == 4.0 * ((epilogue ? BATCH * HIDDEN + 2 * HIDDEN + OUT : 0) +
                                    2 * (BATCH * IN + IN * HIDDEN + BATCH * HIDDEN) +
                                    3 * (BATCH * HIDDEN + HIDDEN * OUT + BATCH * OUT)));
        assert_true(others[WEFT_STAGE_OPTIMIZER] > 0 && (epilogue || others[WEFT_STAGE_BACKWARD] > 0));
        weft_profile_free(profile);
        weft_close(n.ctx);
    }
}

static void test_bytes_of_a_kernel(void **state) {
    (void)state;
    weft_context *ctx = open_device("cpu", false);
    weft_profile *profile = NULL;
    weft_tensor *x = numbers(ctx, true, 1, SHAPE(300, 70)), *row = numbers(ctx, true, 2, SHAPE(1, 70));
    assert_ok(weft_profile_start(ctx, NULL, &profile));
    weft_tensor *y = weft_add(weft_mul(x, row), row);
    assert_ok(weft_eval(&y, 1));
    weft_profile_stop(profile);
    size_t count = 0;
    const weft_profile_entry *entries = weft_profile_entries(profile, &count);
    assert_int_equal(count, 1);
    assert_true(entries[0].bytes == 4.0 * (2 * 300 * 70 + 70));
    assert_true(entries[0].flops == 2.0 * 300 * 70);
    assert_int_equal(entries[0].stage, WEFT_STAGE_FORWARD);
    weft_profile_free(profile);
    weft_close(ctx);
}

/* Operations counted by hand: two matmuls in the forward pass, five in the backward pass. Each query sees the
 * keys up to its own position. */
static void test_work_of_heavies(void **state) {
    (void)state;
    double flops = 0, bytes = 0, size = 4;
    weft_command command = {.kind = WEFT_COMMAND_HEAVY, .heavy = {.kind = WEFT_HEAVY_ATTENTION}};
    weft_heavy_attention *at = &command.heavy.as.attention;
    *at = (weft_heavy_attention){.dtype = WEFT_F32, .batch = 2, .heads = 3, .t_q = 4, .t_k = 4, .d = 8};
    weft__command_work(&command, &flops, &bytes);
    assert_true(flops == 2.0 * 3 * (4 * 4) * 8 * 2 * 2 && bytes == 2.0 * 3 * 16 * 8 * size);
    at->causal = true;
    weft__command_work(&command, &flops, &bytes);
    assert_true(flops == 2.0 * 3 * (1 + 2 + 3 + 4) * 8 * 2 * 2);
    at->t_k = 6; /* two keys before the first query's own */
    weft__command_work(&command, &flops, &bytes);
    assert_true(flops == 2.0 * 3 * (3 + 4 + 5 + 6) * 8 * 2 * 2);
    at->backward = true;
    weft__command_work(&command, &flops, &bytes);
    assert_true(flops == 2.0 * 3 * (3 + 4 + 5 + 6) * 8 * 2 * 5);

    command.heavy.kind = WEFT_HEAVY_MATMUL; /* the batch of five shares one b */
    command.heavy.as.matmul = (weft_heavy_matmul){
        .dtype = WEFT_F16, .out_dtype = WEFT_F32, .batch_rank = 1, .batch = {5}, .m = 2, .n = 3, .k = 7};
    command.heavy.as.matmul.a_batch[0] = 14;
    weft__command_work(&command, &flops, &bytes);
    assert_true(flops == 5 * 2.0 * 2 * 3 * 7);
    assert_true(bytes == 2.0 * (5 * 2 * 7 + 7 * 3) + 4.0 * 5 * 2 * 3);

    command.heavy.kind = WEFT_HEAVY_SCATTER;
    command.heavy.as.scatter = (weft_heavy_scatter){
        .dtype = WEFT_F32, .index_dtype = WEFT_I64, .outer = 2, .count = 3, .rows = 10, .inner = 4};
    weft__command_work(&command, &flops, &bytes);
    assert_true(flops == 2.0 * 3 * 4); /* writes zeros, then reads the terms, and reads and writes each row */
    assert_true(bytes == size * 2 * 4 * (10 + 3 * 3) + 8.0 * 3);
    command.heavy.as.scatter.based = true; /* copies the base; in place, not even that */
    weft__command_work(&command, &flops, &bytes);
    assert_true(bytes == size * 2 * 4 * (2 * 10 + 3 * 3) + 8.0 * 3);
    command.heavy.as.scatter.in_place = true;
    weft__command_work(&command, &flops, &bytes);
    assert_true(bytes == size * 2 * 4 * (3 * 3) + 8.0 * 3);

    command = (weft_command){.kind = WEFT_COMMAND_COPY, .bytes = 100};
    weft__command_work(&command, &flops, &bytes);
    assert_true(flops == 0 && bytes == 200);
}

static void test_sampling(void **state) {
    (void)state;
    net n = open_net("cpu");
    weft_profile *profile = start(&n, &(weft_profile_options){.every = 10});
    for (int i = 0; i < 32; i++) step(&n, i);
    weft_profile_times t;
    weft_profile_total(profile, &t);
    assert_int_equal(t.runs, 32);
    assert_int_equal(t.timed, 4); /* runs 2, 12, 22 and 32 */
    double sum = t.data + t.transfer + t.waiting + t.compile + t.host;
    for (int w = 0; w < WEFT_WORK_COUNT; w++) sum += t.work[w];
    assert_true(fabs(t.total - sum) < 1e-9);
    size_t count = 0;
    const weft_profile_entry *entries = weft_profile_entries(profile, &count);
    for (size_t i = 0; i < count; i++) assert_int_equal(entries[i].calls % 4, 0);
    weft_profile_free(profile);
    weft_close(n.ctx);
}

static void test_peaks_and_table(void **state) {
    (void)state;
    net n = open_net("cpu");
    weft_profile *profile = start(&n, NULL);
    double flops = 0, bytes = 0;
    assert_ok(weft_profile_peaks(profile, &flops, &bytes));
    assert_true(flops > 1e8 && bytes > 1e8);
    for (int i = 0; i < 3; i++) step(&n, i);
    size_t count = 0;
    const weft_profile_entry *entries = weft_profile_entries(profile, &count);
    for (size_t i = 0; i < count; i++) {
        double least = entries[i].flops / flops;
        if (entries[i].bytes / bytes > least) least = entries[i].bytes / bytes;
        assert_true(fabs(entries[i].bound - least) < 1e-12);
    }
    int64_t length = weft_profile_text(profile, 3, NULL, 0);
    assert_true(length > 0);
    char *text = malloc((size_t)length + 1);
    assert_true(weft_profile_text(profile, 3, text, (size_t)length + 1) == length);
    assert_non_null(strstr(text, "optimizer"));
    assert_non_null(strstr(text, "matmul f32 1x 64x48x32"));
    assert_non_null(strstr(text, "100.0 in all; the bound is"));
    free(text);
    weft_profile_free(profile);
    weft_close(n.ctx);
}

/* Equal work of two layers of different names is one entry for both. */
static void test_alike_layers_are_one_row(void **state) {
    (void)state;
    weft_profile_entry entries[] = {{.name = "a", .path = "h.0.x", .calls = 1, .seconds = 1},
                                    {.name = "a", .path = "h.11.x", .calls = 1, .seconds = 2},
                                    {.name = "a", .path = "h.1.y", .calls = 1, .seconds = 4},
                                    {.name = "a", .path = "h.0.x", .stage = WEFT_STAGE_LOSS, .seconds = 5}};
    assert_int_equal(weft__profile_merge(entries, 4, false), 4);
    assert_int_equal(weft__profile_merge(entries, 4, true), 3);
    assert_true(entries[0].seconds == 5 && entries[1].seconds == 4 && entries[2].seconds == 3);
    assert_int_equal(entries[2].calls, 2);
}

static void test_trace(void **state) {
    (void)state;
    net n = open_net("cpu");
    weft_profile *profile = start(&n, &(weft_profile_options){.trace = true});
    for (int i = 0; i < 3; i++) step(&n, i);
    weft_profile_stop(profile);
    char path[] = "/tmp/weft-trace-XXXXXX";
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    assert_ok(weft_profile_trace(profile, path));
    json_error_t error;
    json_t *trace = json_load_file(path, 0, &error), *event;
    remove(path);
    assert_non_null(trace);
    size_t i, commands = 0, compiles = 0, runs = 0;
    int n_commands = newest(n.ctx)->commands.count;
    double run_end = 0;
    json_array_foreach(json_object_get(trace, "traceEvents"), i, event) {
        const char *name = json_string_value(json_object_get(event, "name"));
        assert_non_null(name);
        if (strcmp(json_string_value(json_object_get(event, "ph")), "X") != 0) continue;
        double from = json_number_value(json_object_get(event, "ts")),
               length = json_number_value(json_object_get(event, "dur"));
        assert_true(from >= 0 && length >= 0);
        commands += json_integer_value(json_object_get(event, "tid")) == 2;
        compiles += strcmp(name, "compile") == 0;
        if (strcmp(name, "run") == 0) {
            assert_true(from >= run_end);
            run_end = from + length;
            runs++;
        }
    }
    assert_int_equal(commands, 3 * n_commands);
    assert_int_equal(runs, 3);
    assert_true(compiles > 0);
    json_decref(trace);
    weft_profile_free(profile);

    profile = start(&n, NULL);
    assert_int_equal(weft_profile_trace(profile, path), WEFT_ERR_STATE);
    weft_profile_free(profile);
    weft_close(n.ctx);
}

/* Freed programs, profiles one after the other, and two profiles at once. */
static void test_lives(void **state) {
    (void)state;
    net n = open_net("cpu");
    weft_profile *profile = start(&n, NULL), *other = NULL;
    assert_int_equal(weft_profile_start(n.ctx, NULL, &other), WEFT_ERR_STATE);
    assert_null(other);
    weft_tensor *x = numbers(n.ctx, true, 1, SHAPE(9)), *y = weft_square(x);
    weft_program *program = NULL;
    assert_ok(weft_compile(&y, 1, NULL, NULL, 0, &program));
    assert_ok(weft_program_run(program));
    weft_program_free(program);
    step(&n, 1);
    weft_profile_free(profile);
    profile = start(&n, NULL);
    step(&n, 2);
    weft_profile_times t;
    weft_profile_total(profile, &t);
    assert_int_equal(t.runs, 1);
    assert_true(t.compile == 0);
    weft_profile_free(profile);
    weft_close(n.ctx);
}

/* A profile does not change any result. */
static void test_same_bits(void **state) {
    (void)state;
    float weights[2][HIDDEN * OUT];
    for (int profiled = 0; profiled < 2; profiled++) {
        net n = open_net("cpu");
        weft_profile *profile = profiled ? start(&n, NULL) : NULL;
        for (int i = 0; i < 4; i++) step(&n, i);
        weft_parameter_info info;
        assert_true(weft_parameter_find(n.module, "2.weight", &info));
        assert_ok(weft_read(info.tensor, weights[profiled], sizeof *weights));
        weft_profile_free(profile);
        weft_close(n.ctx);
    }
    assert_memory_equal(weights[0], weights[1], sizeof *weights);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_add_up),
        cmocka_unit_test(test_device_rows),
        cmocka_unit_test(test_launches_are_logged),
        cmocka_unit_test(test_stages_and_operations),
        cmocka_unit_test(test_bytes_of_a_kernel),
        cmocka_unit_test(test_work_of_heavies),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_peaks_and_table),
        cmocka_unit_test(test_alike_layers_are_one_row),
        cmocka_unit_test(test_trace),
        cmocka_unit_test(test_lives),
        cmocka_unit_test(test_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
