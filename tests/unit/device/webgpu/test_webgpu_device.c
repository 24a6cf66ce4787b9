/* src/device/webgpu: what differs from other GPUs. Parts of words, buffers that several arguments share,
 * launches with more work-groups than a dimension has, limits of buffers, times, names of devices. Without
 * the library or an adapter all tests are skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "base/threads.h"
#include "compiler/profile/profile.h"
#include "device.h"
#include "device/webgpu/devices.h"
#include "device/webgpu/hooks.h"
#include "gpu.h"

enum { BYTES = 40 };

static bool open_programs(test_programs *f) {
    setenv("WEFT_TEST_GPU", "webgpu", 1);
    return test_setup(f, "webgpu");
}

static bool open_context(weft_context **ctx) {
    setenv("WEFT_TEST_GPU", "webgpu", 1);
    if (test_without_gpu()) return false;
    assert_ok(weft_open(&(weft_open_options){.device = "webgpu", .seed = 1}, ctx));
    return true;
}

/* ---- transfers ---- */

/* Writes and zeros every range of a buffer, and compares the buffer with memory on the host. */
static void test_parts_of_words(void **state) {
    (void)state;
    test_programs f;
    unsigned char model[BYTES], got[BYTES], from[BYTES];
    if (!open_programs(&f)) return skip();
    weft_buffer *b = test_buffer(&f, BYTES);
    const weft_device_ops *ops = f.device->ops;
    memset(model, 0, sizeof model);
    assert_int_equal(ops->upload(f.device, b, 0, model, BYTES), WEFT_OK);
    for (size_t at = 0; at < 6; at++)
        for (size_t n = 1; n <= 11; n++) {
            for (size_t i = 0; i < n; i++) from[i] = (unsigned char)(1 + 17 * at + 31 * n + i);
            memcpy(model + at + n, from, n);
            assert_int_equal(ops->upload(f.device, b, at + n, from, n), WEFT_OK);
            assert_int_equal(ops->download(f.device, b, 0, got, BYTES), WEFT_OK);
            assert_memory_equal(got, model, BYTES);
            assert_int_equal(ops->download(f.device, b, at, got, n), WEFT_OK);
            assert_memory_equal(got, model + at, n);
            memset(model + at, 0, n);
            assert_int_equal(ops->zero(f.device, b, at, n), WEFT_OK);
        }
    assert_int_equal(ops->download(f.device, b, 0, got, BYTES), WEFT_OK);
    assert_memory_equal(got, model, BYTES);
    ops->buffer_free(f.device, b);
    test_teardown(&f);
}

/* Downloads pass through a small buffer of the host, in pieces. */
static void test_large_transfers(void **state) {
    (void)state;
    enum { LARGE = 9 << 20 };
    test_programs f;
    if (!open_programs(&f)) return skip();
    weft_buffer *b = test_buffer(&f, LARGE + 3);
    unsigned char *from = malloc(LARGE), *to = malloc(LARGE);
    assert_non_null(from);
    assert_non_null(to);
    for (size_t i = 0; i < LARGE; i++) from[i] = (unsigned char)(i * 2654435761U >> 13);
    assert_int_equal(f.device->ops->upload(f.device, b, 3, from, LARGE), WEFT_OK);
    assert_int_equal(f.device->ops->download(f.device, b, 3, to, LARGE), WEFT_OK);
    assert_memory_equal(from, to, LARGE);
    weft_piece pieces[3] = {
        {b, 4, to, 5}, {b, (LARGE / 2), to + 5, LARGE / 2}, {b, 3, to + 5 + LARGE / 2, 1}};
    memset(to, 0, LARGE);
    assert_int_equal(f.device->ops->extras->download_all(f.device, pieces, 3), WEFT_OK);
    assert_memory_equal(to, from + 1, 5);
    assert_memory_equal(to + 5, from + LARGE / 2 - 3, LARGE / 2);
    assert_int_equal(to[5 + LARGE / 2], from[0]);
    free(from);
    free(to);
    f.device->ops->buffer_free(f.device, b);
    test_teardown(&f);
}

/* ---- bindings ---- */

/* One buffer is bound to both slots of a copy, then another one, then the first one again. */
static void test_shared_buffer(void **state) {
    (void)state;
    test_programs f;
    weft_executable *e;
    int32_t got[8];
    if (!open_programs(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    weft_command *copy = test_command(&f, WEFT_COMMAND_COPY, false, 16);
    copy->operands[0] = (weft_operand){.slot = 1, .offset = 0};
    copy->operands[1] = (weft_operand){.slot = 0, .offset = 16};
    assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
    weft_buffer *two[2] = {test_buffer(&f, 32), test_buffer(&f, 32)};
    for (int turn = 0; turn < 4; turn++) {
        const int32_t first[8] = {1, 2, 3, 4, 5, 6, 7, 8}, second[8] = {11, 12, 13, 14, 15, 16, 17, 18};
        weft_buffer *slots[2] = {two[0], two[turn % 2]};
        assert_int_equal(ops->upload(f.device, two[0], 0, first, 32), WEFT_OK);
        assert_int_equal(ops->upload(f.device, two[1], 0, second, 32), WEFT_OK);
        assert_int_equal(ops->run(f.device, e, slots, 1), WEFT_OK);
        assert_int_equal(ops->download(f.device, two[0], 0, got, 32), WEFT_OK);
        const int32_t *from = turn % 2 ? second : first;
        for (int i = 0; i < 4; i++) {
            assert_int_equal(got[i], first[i]);
            assert_int_equal(got[4 + i], from[i]);
        }
    }
    ops->executable_free(f.device, e);
    for (int i = 0; i < 2; i++) ops->buffer_free(f.device, two[i]);
    test_teardown(&f);
}

/* ---- launches ---- */

/* Sums of rows of a matrix, and its double: few or many work-groups. */
static void check_launch(int64_t rows, int64_t columns) {
    const size_t n = (size_t)(rows * columns);
    float *sums = malloc((size_t)rows * sizeof *sums), *values = malloc(n * sizeof *values);
    weft_context *ctx;
    assert_non_null(sums);
    assert_non_null(values);
    assert_true(open_context(&ctx));
    for (size_t i = 0; i < n; i++) values[i] = (float)(i % 97);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){rows, columns}, values);
    assert_ok(weft_read(weft_sum(x, 1, false), sums, (size_t)rows * sizeof *sums));
    assert_ok(weft_read(weft_mul_scalar(x, 2), values, n * sizeof *values));
    weft_scope_close(scope);
    weft_close(ctx);
    for (int64_t r = 0; r < rows; r++) {
        int64_t sum = 0;
        for (int64_t c = 0; c < columns; c++) {
            const int64_t v = (r * columns + c) % 97;
            sum += v;
            assert_true(values[r * columns + c] == (float)(2 * v));
        }
        assert_true(sums[r] == (float)sum);
    }
    free(sums);
    free(values);
}

/* The device allows so few work-groups in a dimension that launches use two or three. */
static void test_folded_launches(void **state) {
    (void)state;
    weft_context *ctx;
    if (!open_context(&ctx)) return skip();
    weft_close(ctx);
    for (uint32_t most = 5; most <= 9; most += 4) {
        weft__webgpu_hook.groups = most;
        weft__webgpu_forget();
        check_launch(37, 200);
        check_launch(13, 1);
    }
    weft__webgpu_hook.groups = 0;
    weft__webgpu_forget();
}

/* More work-groups than WebGPU allows in a dimension. */
static void test_many_groups(void **state) {
    (void)state;
    weft_context *ctx;
    if (!open_context(&ctx)) return skip();
    weft_close(ctx);
    check_launch(65535, 3);
    check_launch(65537, 3);
    check_launch(140001, 2);
}

/* ---- kernels ---- */

/* Computes a (m, k) b (k, n), a b^T^T and gelu(a^T^T b + row) as one program each. */
static void matmuls(bool card, int m, int n, int k, float *to) {
    const size_t bytes = (size_t)m * (size_t)n * sizeof *to;
    weft_context *ctx;
    weft__webgpu_hook.card = card;
    assert_true(open_context(&ctx));
    weft__webgpu_hook.card = false;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *a = weft_random_normal(ctx, 2, (int64_t[]){m, k});
    weft_tensor *b = weft_random_normal(ctx, 2, (int64_t[]){k, n});
    weft_tensor *a_t = weft_random_normal(ctx, 2, (int64_t[]){k, m});
    weft_tensor *b_t = weft_random_normal(ctx, 2, (int64_t[]){n, k});
    weft_tensor *row = weft_random_normal(ctx, 1, (int64_t[]){n});
    weft_tensor *c[] = {weft_matmul(a, b), weft_matmul(a, weft_transpose(b_t, 0, 1)),
                        weft_gelu(weft_add(weft_matmul(weft_transpose(a_t, 0, 1), b), row))};
    for (size_t i = 0; i < sizeof c / sizeof *c; i++, to += bytes / sizeof *to)
        assert_ok(weft_read(c[i], to, bytes));
    weft_scope_close(scope);
    weft_close(ctx);
}

/* A processor computes matmuls by a kernel of its own. It adds in the order of the kernels of cards. */
static void test_processor(void **state) {
    static const int cases[][3] = {{37, 70, 300}, {5, 9, 1}, {150, 65, 130}, {16, 8, 2100}};
    enum { MOST = 3 * 150 * 65 };
    static float own[MOST], cards[MOST];
    (void)state;
    weft_context *ctx;
    if (!open_context(&ctx)) return skip();
    weft_close(ctx);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const int m = cases[i][0], n = cases[i][1], k = cases[i][2];
        matmuls(false, m, n, k, own);
        matmuls(true, m, n, k, cards);
        assert_memory_equal(own, cards, 3 * (size_t)(m * n) * sizeof *own);
    }
}

/* ---- limits ---- */

static void test_limits(void **state) {
    (void)state;
    weft_context *ctx;
    weft_device_description d;
    if (!open_context(&ctx)) return skip();
    weft_device_describe(ctx, &d);
    assert_int_equal(strncmp(d.name, "webgpu:", 7), 0);
    assert_true(d.buffer_limit >= 128 << 20 && d.buffer_limit <= INT32_MAX && d.buffer_limit % 4 == 0);
    assert_false(d.f64);
    weft_scope *scope = weft_scope_open(ctx);
    const int64_t n = (int64_t)d.buffer_limit + 4;
    void *bytes = calloc((size_t)n, 1);
    assert_non_null(bytes);
    assert_int_equal(weft_tensor_status(weft_from(ctx, WEFT_U8, 1, &n, bytes)), WEFT_ERR_OOM);
    free(bytes);
    assert_non_null(strstr(weft_last_error(NULL), "this device allows at most"));
    assert_int_equal(weft_tensor_status(weft_full(ctx, WEFT_F64, 0, NULL, 1)), WEFT_ERR_DTYPE);
    assert_non_null(strstr(weft_last_error(NULL), "does not compute in f64: use f32"));
    assert_int_equal(weft_tensor_status(weft_full(ctx, WEFT_C128, 0, NULL, 1)), WEFT_ERR_DTYPE);
    assert_non_null(strstr(weft_last_error(NULL), "use c64"));
    weft_scope_close(scope);
    weft_close(ctx);
}

/* ---- times ---- */

static void test_times(void **state) {
    (void)state;
    test_programs f;
    weft_executable *e;
    if (!open_programs(&f)) return skip();
    const weft_device_ops *ops = f.device->ops;
    test_command(&f, WEFT_COMMAND_ZERO, false, 1 << 20)->operands[0].slot = 0;
    test_command(&f, WEFT_COMMAND_ZERO, false, 1 << 22)->operands[0].slot = 1;
    weft_buffer *slots[2] = {test_buffer(&f, 1 << 20), test_buffer(&f, 1 << 22)};
    assert_int_equal(ops->build(f.device, &f.commands, &e), WEFT_OK);
    assert_null(ops->extras->timings(f.device, e)); /* nothing was timed */
    ops->extras->set_timing(f.device, true);
    for (int turn = 0; turn < 2; turn++) {
        assert_int_equal(ops->run(f.device, e, slots, 1), WEFT_OK);
        const weft_timing *t = ops->extras->timings(f.device, e);
        if (!t) break; /* the adapter has no clock */
        assert_true(t[0].end_ns > t[0].start_ns && t[1].end_ns > t[1].start_ns);
        assert_true(t[1].start_ns >= t[0].start_ns);
    }
    ops->extras->set_timing(f.device, false);
    assert_int_equal(ops->run(f.device, e, slots, 1), WEFT_OK);
    ops->executable_free(f.device, e);
    for (int i = 0; i < 2; i++) ops->buffer_free(f.device, slots[i]);
    test_teardown(&f);
}

/* ---- names ---- */

static void refused(const char *device, const char *word) {
    weft_context *ctx;
    assert_int_equal(weft_open(&(weft_open_options){.device = device}, &ctx), WEFT_ERR_DEVICE);
    if (!strstr(weft_last_error(NULL), word)) fail_msg("%s lacks %s", weft_last_error(NULL), word);
}

static void test_names(void **state) {
    (void)state;
    weft_context *ctx;
    weft_device_description d;
    if (!open_context(&ctx)) return skip();
    weft_device_describe(ctx, &d);
    weft_close(ctx);
    const bool vulkan = strstr(d.detail, "Vulkan") != NULL;
    assert_ok(weft_open(&(weft_open_options){.device = "webgpu:0"}, &ctx));
    weft_close(ctx);
    if (vulkan) {
        assert_ok(weft_open(&(weft_open_options){.device = "vulkan"}, &ctx));
        weft_close(ctx);
        assert_ok(weft_open(&(weft_open_options){.device = "vulkan:0"}, &ctx));
        weft_close(ctx);
        refused("metal", "device \"webgpu:Metal\": there is none; there are webgpu:0 (");
        refused("dx12", "webgpu:Direct3D 12");
    }
    refused("vulkan:", "missing after the colon");
    refused("webgpu:99", "there is none");
    refused("vulkanx", "is unknown");
}

/* ---- several at once ---- */

static void *train(void *user) {
    weft_context *ctx;
    float *loss = user;
    const float x[8] = {0, 0, 0, 1, 1, 0, 1, 1}, y[4] = {0, 1, 1, 0};
    if (weft_open(&(weft_open_options){.device = "webgpu", .seed = 3}, &ctx) != WEFT_OK) return NULL;
    weft_module *net = weft_nn_mlp(ctx, (int64_t[]){2, 8, 1}, 3, NULL);
    weft_optimizer *adam = weft_adam(net, &(weft_adam_options){.lr = 0.1});
    weft_status status = WEFT_OK;
    for (int i = 0; i < 20 && status == WEFT_OK; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *in = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 2}, x),
                    *out = weft_from(ctx, WEFT_F32, 2, (int64_t[]){4, 1}, y);
        weft_tensor *l = weft_mse(weft_forward(net, in), out, WEFT_MEAN);
        status = weft_optimizer_step(adam, l);
        if (status == WEFT_OK) status = weft_read(l, loss, sizeof *loss);
        weft_scope_close(scope);
    }
    weft_close(ctx);
    return NULL;
}

/* Two threads train on devices of their own, with the same losses. */
static void test_threads(void **state) {
    (void)state;
    weft_context *ctx;
    float losses[2] = {-1, -2};
    pthread_t threads[2];
    if (!open_context(&ctx)) return skip();
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&threads[i], NULL, train, &losses[i]), 0);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    assert_true(losses[0] > 0 && losses[0] == losses[1]);
    weft_close(ctx);
}

/* A device that the library refuses is an error, and the next one opens. */
static void test_refused(void **state) {
    (void)state;
    weft_context *ctx, *other = NULL;
    if (!open_context(&ctx)) return skip();
    webgpu_limits *limits = &((weft__webgpu_found *)weft__webgpu_kind.list)->limits;
    const uint32_t bindings = limits->maxBindingsPerBindGroup;
    limits->maxBindingsPerBindGroup = UINT32_MAX - 1;
    const weft_open_options options = {.device = "webgpu"};
    assert_int_equal(weft_open(&options, &other), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(NULL), "opening the device"));
    limits->maxBindingsPerBindGroup = bindings;
    assert_ok(weft_open(&options, &other));
    weft_close(other);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts_of_words), cmocka_unit_test(test_large_transfers),
        cmocka_unit_test(test_shared_buffer),  cmocka_unit_test(test_folded_launches),
        cmocka_unit_test(test_many_groups),    cmocka_unit_test(test_processor),
        cmocka_unit_test(test_limits),         cmocka_unit_test(test_times),
        cmocka_unit_test(test_names),          cmocka_unit_test(test_threads),
        cmocka_unit_test(test_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
