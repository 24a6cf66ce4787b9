/* src/device/gpu/backend/fused_launch.c. Steps of small nets give the same bits with and without fused
 * launches, also if one launch does many steps. After a fault, the rest of
 * the fused launch changes no variables. An entry can read memory that another entry wrote with another type.
 * Commands are timed one by one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>

#include "gpu.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { ROWS = 6, CLASSES = 5, VALUES = 4096, STEPS = 3, MANY = 70 };

/* Kinds of nets: with an embedding; with a norm and dropout; an f64 layer; a norm alone. The last two look up
 * rows. */
enum { WORDS, NORM, WIDE, ROWS_ONLY };

typedef struct net {
    weft_context *ctx;
    weft_module *module;
    weft_optimizer *optimizer;
    weft_tensor *x, *y;
    int kind;
} net;

/* On OpenCL: the kernels of cards, with small work-groups. */
static void aim(weft_device *device) {
    if (test_on_cores()) return;
    weft_target *target = &weft__gpu_of(device)->target;
    target->on_processor = false;
    target->lanes = 16;
}

static void make(net *n, int kind) {
    const int64_t width = 3 + kind * 5 % 7, in = 2 + kind;
    const weft_dtype dtype = kind == WIDE ? WEFT_F64 : WEFT_F32;
    double x[ROWS * 16];
    int32_t y[ROWS];
    *n = (net){.kind = kind};
    assert_int_equal(weft_open(&(weft_open_options){.device = test_gpu(), .seed = 11}, &n->ctx), WEFT_OK);
    aim(n->ctx->device);
    for (int i = 0; i < ROWS * in; i++) x[i] = i * 37 % 19 / 10.0 - 1;
    for (int i = 0; i < ROWS; i++) y[i] = i * 3 % CLASSES;
    weft_context *ctx = n->ctx;
    const weft_linear_options linear = {.dtype = dtype};
    weft_module *hidden = weft_nn_linear(ctx, kind == WORDS ? width : in, width, &linear);
    if (kind == WORDS)
        hidden = weft_nn_sequential(ctx, "words", weft_nn_embedding(ctx, CLASSES, width, NULL), hidden, NULL);
    if (kind == NORM)
        hidden = weft_nn_sequential(ctx, "norm", hidden, weft_nn_layer_norm(ctx, width, NULL), NULL);
    if (kind == ROWS_ONLY) hidden = weft_nn_layer_norm(ctx, in, NULL);
    n->module = kind >= WIDE
                    ? hidden
                    : weft_nn_sequential(ctx, "net", hidden,
                                         weft_nn_activation(ctx, kind == NORM ? WEFT_GELU : WEFT_TANH),
                                         weft_nn_dropout(ctx, kind == NORM ? 0.3 : 0),
                                         weft_nn_linear(ctx, width, CLASSES, &linear), NULL);
    n->optimizer = kind == NORM ? weft_adamw(n->module, &(weft_adam_options){.lr = 0.05})
                                : weft_sgd(n->module, &(weft_sgd_options){.lr = 0.05, .momentum = 0.9});
    n->x = weft_keep(weft_cast(weft_from(ctx, WEFT_F64, SHAPE(ROWS, in), x), dtype));
    n->y = weft_keep(weft_from(ctx, WEFT_I32, SHAPE(ROWS), y));
    assert_int_equal(weft_eval((weft_tensor *[]){n->x, n->y}, 2), WEFT_OK);
}

/* Targets: classes, tokens, or rows of x. */
static weft_tensor *loss_of(net *n) {
    if (n->kind >= WIDE) {
        weft_tensor *out = weft_forward(n->module, weft_gather(n->x, n->y, 0));
        return weft_mse(out, weft_mul(out, out), WEFT_MEAN);
    }
    return weft_cross_entropy(weft_forward(n->module, n->kind == WORDS ? n->y : n->x), n->y, NULL);
}

/* The values of all parameters after the loss. Returns their bytes. */
static size_t values_of(net *n, weft_tensor *loss, char values[VALUES]) {
    size_t used = weft_dtype_size(weft_dtype_of(loss));
    assert_int_equal(weft_read(loss, values, used), WEFT_OK);
    for (size_t i = 0; i < weft_parameter_count(n->module); i++) {
        weft_parameter_info info;
        assert_true(weft_parameter_get(n->module, i, &info));
        const size_t bytes = (size_t)weft_numel(info.tensor) * weft_dtype_size(weft_dtype_of(info.tensor));
        assert_true(used + bytes <= VALUES);
        assert_int_equal(weft_read(info.tensor, values + used, bytes), WEFT_OK);
        used += bytes;
    }
    return used;
}

/* Makes steps one by one, then many in one call. Returns the number of kernels of the device. */
static int train(int kind, bool fused_launches, char values[VALUES], size_t *bytes) {
    net n;
    weft_program *program;
    make(&n, kind);
    weft__gpu_hook.fuse_after = fused_launches ? 1 : INT32_MAX;
    const int before = weft__gpu_hook.kernels;
    weft_scope *scope = weft_scope_open(n.ctx);
    for (int i = 0; i < STEPS; i++) {
        weft_tensor *loss = loss_of(&n);
        assert_int_equal(weft_optimizer_step(n.optimizer, loss), WEFT_OK);
    }
    const int kernels = weft__gpu_hook.kernels - before;
    weft_tensor *loss = loss_of(&n);
    assert_int_equal(weft_optimizer_hold(n.optimizer, loss, &program), WEFT_OK);
    assert_int_equal(weft_optimizer_run_many(n.optimizer, program, MANY), WEFT_OK);
    assert_int_equal(weft_optimizer_run_many(n.optimizer, program, 1), WEFT_OK);
    *bytes = values_of(&n, loss, values);
    weft_program_free(program);
    weft_scope_close(scope);
    weft_close(n.ctx);
    weft__gpu_hook.fuse_after = 0;
    return kernels;
}

static void test_same_bits(void **state) {
    (void)state;
    if (test_without_gpu()) return skip();
    for (int kind = test_on_cores() ? WORDS : ROWS_ONLY; kind <= ROWS_ONLY; kind++) {
        char apart[VALUES], fused[VALUES];
        size_t bytes[2];
        const int many = train(kind, false, apart, &bytes[0]);
        const int few = train(kind, true, fused, &bytes[1]);
        print_message("net %d: %d kernels, %d with fused launches\n", kind, many, few);
        assert_true(many < few && few < 2 * many); /* both forms */
        assert_int_equal(bytes[0], bytes[1]);
        assert_memory_equal(apart, fused, bytes[0]);
    }
}

static void test_fault(void **state) {
    (void)state;
    static const struct {
        int kind;
        const char *message, *layer;
    } faults[] = {{WORDS, "5 is not in 0..4", "0.0: gather"}, {ROWS_ONLY, "7 is not in 0..5", ""}};
    if (test_without_gpu()) return skip();
    for (size_t c = test_on_cores() ? 0 : 1; c < sizeof faults / sizeof *faults; c++) {
        net n;
        char before[VALUES], after[VALUES];
        int32_t bad[ROWS] = {0, c ? 7 : CLASSES}, good[ROWS] = {0};
        make(&n, faults[c].kind);
        weft__gpu_hook.fuse_after = 1;
        weft_scope *scope = weft_scope_open(n.ctx);
        weft_tensor *loss = loss_of(&n);
        assert_int_equal(weft_optimizer_step(n.optimizer, loss), WEFT_OK);
        const size_t bytes = values_of(&n, loss, before);
        assert_int_equal(weft_write(n.y, bad, sizeof bad), WEFT_OK);
        assert_int_equal(weft_optimizer_step(n.optimizer, loss_of(&n)), WEFT_OK);
        assert_int_equal(weft_synchronize(n.ctx), WEFT_ERR_INDEX);
        assert_non_null(strstr(weft_last_error(n.ctx), faults[c].message));
        if (!strstr(weft_last_error(n.ctx), faults[c].layer)) fail_msg("%s", weft_last_error(n.ctx));
        assert_int_equal(values_of(&n, loss, after), bytes);
        assert_memory_equal(before, after, bytes);
        assert_int_equal(weft_write(n.y, good, sizeof good), WEFT_OK);
        assert_int_equal(weft_optimizer_step(n.optimizer, loss_of(&n)), WEFT_OK);
        assert_int_equal(weft_synchronize(n.ctx), WEFT_OK);
        weft__gpu_hook.fuse_after = 0;
        weft_scope_close(scope);
        weft_close(n.ctx);
    }
}

enum { N = 8 };
static const weft_heavy product = {.kind = WEFT_HEAVY_MATMUL,
                                   .as.matmul = {.dtype = WEFT_F32,
                                                 .out_dtype = WEFT_F32,
                                                 .m = N,
                                                 .n = N,
                                                 .k = N,
                                                 .a_m = N,
                                                 .a_k = 1,
                                                 .b_k = N,
                                                 .b_n = 1,
                                                 .c_m = N}};

/* Zeros, a matmul and copies in turn, in the same memory, as words of 8 bytes and as floats. */
static void test_types_and_times(void **state) {
    enum { BYTES = N * N * 4, COMMANDS = 5 };
    weft_context ctx = {0};
    weft_device *device;
    weft_executable *e;
    float a[N * N], got[2][N * N], wanted[N * N] = {0};
    (void)state;
    if (test_without_gpu()) return skip();
    assert_int_equal(weft__device_open(&ctx, test_gpu(), NULL, &device), WEFT_OK);
    aim(device);
    const weft_device_ops *ops = device->ops;
    weft_buffer *slots[4];
    for (int i = 0; i < 4; i++) assert_int_equal(ops->buffer_new(device, BYTES, &slots[i]), WEFT_OK);
    for (int i = 0; i < N * N; i++) a[i] = (float)(i * 5 % 7 - 3);
    for (int i = 0; i < N * N; i++)
        for (int k = 0; k < N; k++) wanted[i] += a[i / N * N + k] * a[k * N + i % N];
    weft_operand of_product[3] = {{0, 0}, {0, 0}, {1, 0}};
    weft_operand to_2[2] = {{1, 0}, {2, 0}}, to_3[2] = {{1, 0}, {3, 0}};
    weft_command list[COMMANDS] = {
        {.kind = WEFT_COMMAND_ZERO, .bytes = BYTES, .n_operands = 1, .operands = to_2},
        {.kind = WEFT_COMMAND_HEAVY, .heavy = product, .n_operands = 3, .operands = of_product},
        {.kind = WEFT_COMMAND_COPY, .sink = true, .bytes = BYTES, .n_operands = 2, .operands = to_2},
        {.kind = WEFT_COMMAND_ZERO, .bytes = BYTES / 2, .n_operands = 1, .operands = to_2},
        {.kind = WEFT_COMMAND_COPY, .sink = true, .bytes = BYTES, .n_operands = 2, .operands = to_3}};
    const weft_commands commands = {.count = COMMANDS, .n_slots = 4, .list = list};
    for (int i = 0; i < COMMANDS; i++) list[i].after = true;
    const int before = weft__gpu_hook.kernels;
    assert_int_equal(ops->build(device, &commands, &e), WEFT_OK);
    assert_int_equal(weft__gpu_hook.kernels - before, COMMANDS);
    weft__gpu_hook.fuse_after = 2; /* the second run uses fused launches */
    assert_int_equal(ops->upload(device, slots[0], 0, a, BYTES), WEFT_OK);
    for (int timed = 0; timed < 4; timed++) {
        weft__device_set_timing(device, timed == 1);
        for (int i = 1; i < 4; i++) assert_int_equal(ops->zero(device, slots[i], 0, BYTES), WEFT_OK);
        assert_int_equal(ops->run(device, e, slots, 1 + 4 * timed), WEFT_OK);
        for (int i = 0; i < 2; i++)
            assert_int_equal(ops->download(device, slots[i + 2], 0, got[i], BYTES), WEFT_OK);
        const weft_timing *times = weft__device_timings(device, e);
        assert_true((times != NULL) == (timed == 1));
        for (int i = 0; times && i < COMMANDS; i++) assert_true(times[i].end_ns > times[i].start_ns);
        assert_memory_equal(got[0], wanted, BYTES);
        for (int i = 0; i < N * N; i++) assert_true(got[1][i] == (i < N * N / 2 ? 0 : wanted[i]));
    }
    assert_int_equal(weft__gpu_hook.kernels - before, COMMANDS + 1);
    weft__gpu_hook.fuse_after = 0;
    ops->executable_free(device, e);
    for (int i = 0; i < 4; i++) ops->buffer_free(device, slots[i]);
    ops->close(device);
    weft__strings_free(&ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types_and_times),
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
