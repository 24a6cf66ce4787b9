/* Uploads beside steps, on the simulated driver of tests/cuda. A loader that gathers on the host has two
 * buffers on the device: the upload of a batch does not wait for the step that reads the batch before it, and
 * each step reads its own batch, whatever the order of the two streams. Large uploads are chunks of pinned
 * memory, so that they do not wait either. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <dlfcn.h>
#include <cmocka.h>

#include <weft/weft.h>

#include "cuda/fake.h"
#include "data/loader.h"
#include "gpu.h"
#include "graph/graph.h"

enum { ROWS = 40, WIDTH = 4096, BATCH = 8, STEPS = 12, LARGE = 20 << 20, CHUNKS = 5 };

static fake_cuda_state *card; /* NULL: there is a real GPU, or none */
static weft_context *ctx;
static float *x;

static int set_up(void **state) {
    (void)state;
    if (!test_on_cuda() || test_without_gpu()) return 0;
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
    card = library ? dlsym(library, "fake_cuda") : NULL;
    if (weft_open(&(weft_open_options){.device = "cuda", .seed = 3}, &ctx) != WEFT_OK) return -1;
    x = malloc(ROWS * WIDTH * sizeof *x);
    for (int i = 0; i < ROWS * WIDTH; i++) x[i] = (float)(i % 8191);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    weft_close(ctx);
    free(x);
    return 0;
}

static weft_loader *new_loader(void) {
    const weft_array array = {WEFT_F32, 2, {ROWS, WIDTH}, x, ROWS * WIDTH * sizeof *x};
    const weft_loader_options options = {.batch = BATCH, .in_order = true, .device_bytes = -1};
    weft_loader *loader;
    assert_int_equal(weft_loader_new(ctx, &array, NULL, &options, &loader), WEFT_OK);
    assert_false(weft_loader_on_device(loader));
    return loader;
}

/* Waits for the upload of the last batch, and for nothing that it does not need. */
static void wait_for_upload(const weft_loader *loader) {
    const weft__cuda_buffer *b = (const weft__cuda_buffer *)loader->gathered->storage->buffer;
    weft__cuda *d = weft__cuda_of(ctx->device);
    assert_non_null(b->filled);
    assert_int_equal(weft__cuda_enter(d), 0);
    assert_int_equal(weft__cu.cuEventSynchronize(b->filled), 0);
    weft__cuda_leave(d);
}

static void test_batches(void **state) {
    (void)state;
    if (!ctx) return skip();
    weft_loader *loader = new_loader();
    weft_tensor *kept[STEPS];
    const long before = card ? card->kernels : 0;
    for (int i = 0; i < STEPS; i++) {
        weft_batch batch;
        weft_scope *scope = weft_scope_open(ctx);
        assert_int_equal(weft_loader_get(loader, (uint64_t)i, &batch), WEFT_OK);
        wait_for_upload(loader);
        /* The step before this one, a kernel, need not have run. (Memory that is new waits for all earlier
         * work, since it may have been in use.) */
        if (card && i > 1) assert_true(card->kernels - before < i);
        kept[i] = weft_keep(weft_add_scalar(weft_mul_scalar(batch.x, 2), 1));
        assert_int_equal(weft_eval(&kept[i], 1), WEFT_OK);
        weft_scope_close(scope);
    }
    float *y = malloc(BATCH * WIDTH * sizeof *y);
    for (int i = 0; i < STEPS; i++) {
        const float *from = x + i % (ROWS / BATCH) * BATCH * WIDTH;
        assert_int_equal(weft_read(kept[i], y, BATCH * WIDTH * sizeof *y), WEFT_OK);
        for (int k = 0; k < BATCH * WIDTH; k++) assert_true(y[k] == 2 * from[k] + 1);
        weft_free(kept[i]);
    }
    free(y);
    weft_loader_free(loader);
}

/* The same without waiting in between, so that uploads and steps may run in any order that the events
 * allow. */
static void test_any_order(void **state) {
    (void)state;
    if (!ctx) return skip();
    weft_loader *loader = new_loader();
    weft_tensor *kept[STEPS];
    for (int i = 0; i < STEPS; i++) {
        weft_batch batch;
        weft_scope *scope = weft_scope_open(ctx);
        assert_int_equal(weft_loader_get(loader, (uint64_t)i, &batch), WEFT_OK);
        kept[i] = weft_keep(weft_sum(batch.x, 1, false));
        assert_int_equal(weft_eval(&kept[i], 1), WEFT_OK);
        weft_scope_close(scope);
    }
    for (int i = STEPS - 1; i >= 0; i--) {
        float y[BATCH];
        const float *from = x + i % (ROWS / BATCH) * BATCH * WIDTH;
        assert_int_equal(weft_read(kept[i], y, sizeof y), WEFT_OK);
        for (int row = 0; row < BATCH; row++) {
            double sum = 0;
            for (int k = 0; k < WIDTH; k++) sum += (double)from[row * WIDTH + k];
            assert_true(y[row] > sum * (1 - 1e-5) && y[row] < sum * (1 + 1e-5));
        }
        weft_free(kept[i]);
    }
    weft_loader_free(loader);
}

static void test_chunks(void **state) {
    (void)state;
    if (!ctx) return skip();
    unsigned char *bytes = malloc(LARGE), *back = malloc(LARGE);
    for (int i = 0; i < LARGE; i++) bytes[i] = (unsigned char)(i % 251);
    weft_tensor *v = weft_variable_new(ctx, "large", WEFT_U8, 1, (int64_t[]){LARGE}, NULL);
    const fake_cuda_state before = card ? *card : (fake_cuda_state){0};
    assert_int_equal(weft_write(v, bytes, LARGE), WEFT_OK);
    if (card) assert_int_equal(card->uploads - before.uploads, CHUNKS);
    if (card) assert_int_equal(card->waits, before.waits);
    assert_int_equal(weft_read(v, back, LARGE), WEFT_OK);
    assert_memory_equal(bytes, back, LARGE);
    weft_free(v);
    free(bytes), free(back);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_any_order),
        cmocka_unit_test(test_chunks),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
