/* Device memory runs out. The error says how much was requested, which layers hold the rest, and what to try.
 * The context still works, and gives the same results as an undisturbed one. Runs on the CPU and, if there is
 * one, on a GPU device. */
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
#include "device.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { WIDTH = 32, FEW = 16, MANY = 4096, MOST = 256 << 10, STEPS = 3 };

/* ---- a device that can refuse allocations larger than MOST ---- */

typedef struct setting {
    const char *device;
    size_t most; /* 0: no limit */
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *adam;
} setting;

static void *limited(void *user, void *old, size_t bytes) {
    const setting *s = user;
    if (bytes == 0) {
        free(old);
        return NULL;
    }
    return s->most && bytes > s->most ? NULL : realloc(old, bytes);
}

static void limit(setting *s, size_t most) {
    s->most = most;
    weft__gpu_hook.most_bytes = most;
}

static void set_up(setting *s, const char *device) {
    *s = (setting){.device = device};
    const weft_open_options options = {
        .device = device, .seed = 3, .threads = 1, .alloc = limited, .alloc_user = s};
    assert_ok(weft_open(&options, &s->ctx));
    s->net = weft_nn_mlp(s->ctx, (int64_t[]){WIDTH, WIDTH, WIDTH}, 3, NULL);
    s->adam = weft_adam(s->net, &(weft_adam_options){.lr = 0.01});
    assert_non_null(s->adam);
}

static void tear_down(setting *s) {
    limit(s, 0);
    weft_close(s->ctx);
}

static weft_status step(const setting *s, int64_t rows, float *loss) {
    weft_scope *scope = weft_scope_open(s->ctx);
    weft_tensor *x = weft_full(s->ctx, WEFT_F32, SHAPE(rows, WIDTH), 0.5);
    weft_tensor *mean = weft_mean(weft_square(weft_forward(s->net, x)), WEFT_ALL_AXES, false);
    weft_status status = weft_optimizer_step(s->adam, mean);
    if (status == WEFT_OK) status = weft_read(mean, loss, sizeof *loss);
    weft_scope_close(scope);
    return status;
}

/* The losses of undisturbed steps. */
static void losses(const char *device, float loss[STEPS]) {
    setting s;
    set_up(&s, device);
    for (int i = 0; i < STEPS; i++) assert_ok(step(&s, FEW, &loss[i]));
    tear_down(&s);
}

static void said(const setting *s, const char *text) {
    if (strstr(weft_last_error(s->ctx), text)) return;
    fail_msg("%s: no '%s' in: %s", s->device, text, weft_last_error(s->ctx));
}

static void on_devices(void (*check)(const char *device)) {
    check("cpu");
    if (!test_without_gpu()) check(test_gpu());
}

/* ---- messages ---- */

/* A number of rows for which the activations exceed the memory of the device. 0 if no such number is
 * possible. A matmul has at most INT32_MAX / 2 rows. */
static int64_t rows_too_many(void) {
    const weft_device_description d = test_described();
    const int64_t most = (int64_t)(test_on_cuda() ? d.memory : d.buffer_limit);
    assert_true(most > 0);
    const int64_t rows = most / (WIDTH * 4) + 1;
    const int64_t matmul = INT32_MAX / 2;
    return rows <= matmul ? rows : 2 * matmul * WIDTH * 4 > most ? matmul : 0;
}

/* The activations of a large batch: after a small batch, in the first step, and more than the device really
 * has. */
static void check_arena(const char *device) {
    const bool real = strcmp(device, "cpu") != 0; /* the CPU may have any amount of memory */
    const int64_t rows[3] = {MANY, MANY, real ? rows_too_many() : 0};
    float loss, expected[STEPS];
    losses(device, expected);
    for (int k = 0; k < (rows[2] ? 3 : 2); k++) {
        setting s;
        int done = 0;
        set_up(&s, device);
        if (k != 1) assert_ok(step(&s, FEW, &loss));
        done += k != 1;
        if (k < 2) limit(&s, MOST);
        const weft_status status = step(&s, rows[k], &loss);
        if (status != WEFT_ERR_OOM) fail_msg("%s: %s", device, weft_last_error(s.ctx));
        said(&s, " on the device: ");
        said(&s, "8.2 KiB of parameters (4 tensors, the largest 0.weight of 4.0 KiB)");
        said(&s, "8.2 KiB of adam m (4 tensors, the largest m.0.weight of 4.0 KiB)");
        said(&s, "8.2 KiB of adam v (4 tensors");
        said(&s, "; the largest results of this program: ");
        said(&s, k < 2 ? "512.0 KiB of 2: matmul f32 " : " MiB of 2: matmul f32 ");
        said(&s, "; use a smaller batch or context, recompute activations or compute the logits in parts");
        for (; done < STEPS; done++) {
            assert_ok(step(&s, FEW, &loss));
            assert_memory_equal(&loss, &expected[done], sizeof loss);
        }
        limit(&s, 0);
        assert_ok(step(&s, MANY, &loss));
        tear_down(&s);
    }
}

/* Parameters, a data set, and a kept result, each larger than the largest allowed allocation. */
static void check_storages(const char *device) {
    setting s;
    float loss, expected[STEPS];
    static float data[MOST / 4 + 1];
    losses(device, expected);
    set_up(&s, device);
    limit(&s, MOST);
    weft_tensor *small = weft_from(s.ctx, WEFT_F32, SHAPE(1000), data);
    assert_int_equal(weft_tensor_status(weft_from(s.ctx, WEFT_F32, SHAPE(MOST / 4 + 1), data)), WEFT_ERR_OOM);
    said(&s, "weft_from: ");
    said(&s, "3.9 KiB of data f32 [1000]; use a smaller model or batch");
    weft_module *large = weft_nn_mlp(s.ctx, (int64_t[]){300, 300, 1}, 3, NULL);
    weft_optimizer *adam = weft_adam(large, &(weft_adam_options){.lr = 0.1});
    assert_int_equal(weft_optimizer_status(adam), WEFT_OK); /* parameters get memory when they are needed */
    weft_tensor *y = weft_forward(large, weft_full(s.ctx, WEFT_F32, SHAPE(1, 300), 0));
    assert_int_equal(weft_eval(&y, 1), WEFT_ERR_OOM);
    said(&s, "0.weight f32 [300,300]: ");
    weft_tensor *wide = weft_add(weft_expand(small, SHAPE(100, 1000)), weft_scalar(s.ctx, 1));
    assert_int_equal(weft_eval(&wide, 1), WEFT_ERR_OOM);
    said(&s, " f32 [100,1000]: ");
    for (int i = 0; i < STEPS; i++) {
        assert_ok(step(&s, FEW, &loss));
        assert_memory_equal(&loss, &expected[i], sizeof loss);
    }
    tear_down(&s);
}

/* The error for a copy of a matrix that a matmul needs names the matmul. */
static void check_copy(const char *device) {
    setting s;
    set_up(&s, device);
    weft_tensor *x = weft_iota(s.ctx, WEFT_F32, SHAPE(1 << 10));
    x = weft_expand(x, SHAPE(1 << 10, 1 << 10));
    weft_tensor *y = weft_sum(weft_matmul(weft_flip(x, 1), weft_flip(x, 0)), WEFT_ALL_AXES, false);
    limit(&s, MOST);
    assert_int_equal(weft_eval(&y, 1), WEFT_ERR_OOM);
    said(&s, "4.0 MiB of copy for matmul f32 ");
    tear_down(&s);
}

static void test_activations(void **state) {
    (void)state;
    on_devices(check_arena);
}
static void test_storages(void **state) {
    (void)state;
    on_devices(check_storages);
}
static void test_copy_is_told_by_its_reader(void **state) {
    (void)state;
    on_devices(check_copy);
}

/* Each buffer of a second, larger step in turn cannot be allocated. A small step then continues where the
 * first one ended. */
static void test_each_buffer(void **state) {
    (void)state;
    float loss, expected[STEPS];
    if (test_without_gpu()) return skip();
    losses(test_gpu(), expected);
    for (int k = 1;; k++) {
        setting s;
        set_up(&s, test_gpu());
        assert_ok(step(&s, FEW, &loss));
        weft__gpu_hook.fail_allocation = k;
        const weft_status status = step(&s, MANY, &loss);
        const bool reached = weft__gpu_hook.fail_allocation == 0;
        weft__gpu_hook.fail_allocation = 0;
        assert_int_equal(status, reached ? WEFT_ERR_OOM : WEFT_OK);
        if (reached) {
            said(&s, "of parameters (4 tensors");
            assert_ok(step(&s, FEW, &loss));
            assert_memory_equal(&loss, &expected[1], sizeof loss);
        }
        tear_down(&s);
        if (!reached) {
            assert_true(k > 1);
            break;
        }
    }
}

/* If fused launches cannot be built, for want of memory or since the compiler refuses them, the program
 * continues without them. */
static void test_no_fused_launches(void **state) {
    (void)state;
    enum { PLAIN, NO_MEMORY, REFUSED, KINDS, LATER = 6 };
    float loss[KINDS][LATER];
    const float x[8] = {0, 0, 0, 1, 1, 0, 1, 1}, y[4] = {0, 1, 1, 0};
    if (!test_on_cores() || test_without_gpu())
        return skip(); /* WebGPU, and OpenCL on processors, never fuse */
    weft__gpu_hook.fuse_after = 3;
    for (int k = 0; k < KINDS; k++) {
        weft_context *ctx;
        const int unfused = weft__gpu_hook.unfused;
        assert_ok(weft_open(&(weft_open_options){.device = test_gpu(), .seed = 3}, &ctx));
        weft_module *net = weft_nn_mlp(ctx, (int64_t[]){2, 8, 1}, 3, NULL);
        weft_optimizer *sgd = weft_sgd(net, &(weft_sgd_options){.lr = 0.1});
        weft_tensor *in = weft_keep(weft_from(ctx, WEFT_F32, SHAPE(4, 2), x));
        weft_tensor *out = weft_keep(weft_from(ctx, WEFT_F32, SHAPE(4, 1), y));
        for (int i = 0; i < LATER; i++) {
            if (i == 2)
                weft__gpu_hook.fail_allocation = k == NO_MEMORY, weft__gpu_hook.fail_compile = k == REFUSED;
            weft_scope *scope = weft_scope_open(ctx);
            weft_tensor *t = weft_mse(weft_forward(net, in), out, WEFT_MEAN);
            assert_ok(weft_optimizer_step(sgd, t));
            assert_ok(weft_read(t, &loss[k][i], sizeof loss[k][i]));
            weft_scope_close(scope);
        }
        weft_close(ctx);
        assert_int_equal(weft__gpu_hook.unfused - unfused, k != PLAIN);
        assert_memory_equal(loss[0], loss[k], sizeof loss[0]);
    }
    weft__gpu_hook.fuse_after = 0;
    assert_int_equal(weft__gpu_hook.fail_allocation, 0); /* the fused launch requested it */
    assert_int_equal(weft__gpu_hook.fail_compile, 0);
}

/* Initial weights are uploaded in chunks, so the host never holds the whole block. They equal those of the
 * CPU. */
static void test_weights_in_pieces(void **state) {
    (void)state;
    enum { SIDE = 2048, LARGE = SIDE * SIDE * 4 };
    weft_parameter_info info[2];
    weft_module *net[2];
    setting s[2];
    if (test_without_gpu()) return skip();
    char *values[2] = {malloc(LARGE), malloc(LARGE)};
    assert_true(values[0] && values[1]);
    for (int d = 0; d < 2; d++) {
        set_up(&s[d], d ? test_gpu() : "cpu");
        s[d].most = d ? LARGE + 4096 : 0; /* limit of the host's memory; three weights exceed it */
        net[d] = weft_nn_mlp(s[d].ctx, (int64_t[]){SIDE, SIDE, SIDE, SIDE, 1}, 5, NULL);
        weft_optimizer *adam = weft_adam(net[d], &(weft_adam_options){.lr = 0.01});
        assert_ok(weft_optimizer_status(adam));
    }
    for (size_t i = 0; weft_parameter_get(net[0], i, &info[0]); i++) {
        assert_true(weft_parameter_get(net[1], i, &info[1]));
        const size_t bytes = (size_t)weft_numel(info[0].tensor) * 4;
        assert_true(bytes <= LARGE);
        for (int d = 0; d < 2; d++) assert_ok(weft_read(info[d].tensor, values[d], bytes));
        assert_memory_equal(values[0], values[1], bytes);
    }
    for (int d = 0; d < 2; d++) {
        tear_down(&s[d]);
        free(values[d]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_activations),
        cmocka_unit_test(test_storages),
        cmocka_unit_test(test_copy_is_told_by_its_reader),
        cmocka_unit_test(test_each_buffer),
        cmocka_unit_test(test_no_fused_launches),
        cmocka_unit_test(test_weights_in_pieces),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
