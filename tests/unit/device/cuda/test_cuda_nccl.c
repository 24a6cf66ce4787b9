/* Several GPUs: sums by NCCL or RCCL, and a training step on two GPUs. Uses the simulated driver and NCCL
 * (tests/cuda/nccl.c) with two GPUs; with WEFT_TEST_GPU=hip those of HIP. Compares the declarations with
 * nccl.h if it is installed. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif
#include <weft/weft.h>

#include "cuda/fake.h"
#include "device/cuda/devices.h"
#include "device/cuda/hooks.h"
#include "device/gpu/driver/nccl/nccl.h"

#if __has_include(<nccl.h>)
#define NCCL_FUNCTION(result, name, arguments)                                                               \
    _Static_assert(                                                                                          \
        __builtin_types_compatible_p(__typeof__(((weft__nccl_functions *)0)->name), __typeof__(&name)),      \
        #name " is declared otherwise");
#define NCCL_CONSTANT(name, value) _Static_assert((name) == (value), #name " has another value");
#include "device/gpu/driver/nccl/nccl.def"
#undef NCCL_FUNCTION
#undef NCCL_CONSTANT
_Static_assert(sizeof(ncclUniqueId) == WEFT_LINK_ID, "an id has another size");
_Static_assert(offsetof(ncclConfig_t, size) == 0 && offsetof(ncclConfig_t, magic) == 8 &&
                   offsetof(ncclConfig_t, version) == 12 && offsetof(ncclConfig_t, blocking) == 16,
               "the options of a communicator begin otherwise");
#endif

/* of device/cuda/cuda.h and device/hip/hip.h, which may not be included with nccl.h: both define cuBLAS's
 * types */
extern weft_nccl weft__nccl, weft__rccl;
int weft__hip_devices(const weft__cuda_found **list, const char **why);
void weft__hip_forget(void);

static bool test_on_hip(void) {
    const char *named = getenv("WEFT_TEST_GPU");
    return named && strcmp(named, "hip") == 0;
}

static weft_nccl *library(void) { return test_on_hip() ? &weft__rccl : &weft__nccl; }

static void forget(void) {
    if (test_on_hip())
        weft__hip_forget();
    else
        weft__cuda_forget();
}

/* The name of a card, such as "cuda:1". It lives until the next call for this card. */
static const char *card(int i) {
    static char names[2][16];
    snprintf(names[i], sizeof names[i], "%s:%d", test_on_hip() ? "hip" : "cuda", i);
    return names[i];
}

/* The counters of the simulated NCCL. NULL for the real one, since the number of GPUs is then unknown. */
static fake_nccl_state *counts(void) {
    if (weft__nccl_open(library())) return NULL;
    void *file = dlopen(test_on_hip() ? "librccl.so.1" : "libnccl.so.2", RTLD_NOLOAD | RTLD_NOW);
    return file ? dlsym(file, "fake_nccl") : NULL;
}

/* Sums 1, 2, 3, ... of one device and 10, 20, 30, ... of another, and checks the result on both. Returns
 * whether the devices did it themselves. */
static bool sum_over(const char *const specs[2], weft_dtype dtype, weft_status wanted) {
    enum { COUNT = 100000, SPARE = 3 };
    static double values[COUNT + SPARE], got[COUNT + SPARE];
    const size_t size = weft_dtype_size(dtype), bytes = (COUNT + SPARE) * size;
    weft_context ctx[2] = {0};
    weft_device *devices[2];
    weft_buffer *buffers[2];
    bool done = false;
    for (int d = 0; d < 2; d++) {
        for (int i = 0; i < COUNT + SPARE; i++)
            if (dtype == WEFT_F32)
                ((float *)values)[i] = (float)((i + 1) * (d ? 10 : 1));
            else
                values[i] = (i + 1) * (d ? 10 : 1);
        assert_int_equal(weft__device_open(&ctx[d], specs[d], NULL, &devices[d]), WEFT_OK);
        assert_int_equal(devices[d]->ops->buffer_new(devices[d], bytes, &buffers[d]), WEFT_OK);
        assert_int_equal(devices[d]->ops->upload(devices[d], buffers[d], 0, values, bytes), WEFT_OK);
    }
    assert_int_equal(weft__device_sum(devices, buffers, 2, dtype, COUNT, &done), wanted);
    for (int d = 0; d < 2; d++) {
        assert_int_equal(devices[d]->ops->download(devices[d], buffers[d], 0, got, bytes), WEFT_OK);
        for (int i = 0; i < COUNT + SPARE; i++) {
            const double is = dtype == WEFT_F32 ? (double)((float *)got)[i] : got[i];
            assert_true(is == (i + 1) * (done && i < COUNT ? 11.0 : d ? 10.0 : 1.0));
        }
        devices[d]->ops->buffer_free(devices[d], buffers[d]);
        devices[d]->ops->close(devices[d]);
    }
    if (wanted != WEFT_OK) {
        char said[64];
        snprintf(said, sizeof said, "%s and 1 more cards: %s", card(0), library()->name);
        assert_non_null(strstr(weft_last_error(&ctx[0]), said));
    }
    for (int d = 0; d < 2; d++) weft__strings_free(&ctx[d]);
    return done;
}

static void test_sums_over_cards(void **state) {
    (void)state;
    const char *const cards[2] = {card(0), card(1)}, *const same[2] = {card(0), card(0)};
    fake_nccl_state *c = counts();
    if (!c) return skip();
    assert_int_equal(weft__nccl_version(library()), 22801);
    assert_true(sum_over(cards, WEFT_F32, WEFT_OK));
    assert_true(sum_over(cards, WEFT_F64, WEFT_OK));
    assert_int_equal(c->cliques, 1);
    assert_false(sum_over(same, WEFT_F32, WEFT_OK)); /* the host adds them */
    c->fail = 1;
    assert_false(sum_over(cards, WEFT_F32, WEFT_ERR_DEVICE));
    assert_true(sum_over(cards, WEFT_F32, WEFT_OK)); /* with new communicators */
    assert_int_equal(c->cliques, 2);
    library()->file = "libabsent.so";
    forget();
    assert_false(sum_over(cards, WEFT_F32, WEFT_OK));
    library()->file = NULL;
    forget();
    assert_int_equal(c->sums, 3);
    assert_int_equal(c->refused, 0);
}

static int warnings;

static void count_warnings(void *user, weft_log_level level, const char *message) {
    (void)user;
    if (level == WEFT_LOG_WARNING && strstr(message, "the host adds up their gradients")) warnings++;
}

/* If NCCL refuses the cards, the host adds them up. NCCL is asked once. */
static void test_refused_cards(void **state) {
    (void)state;
    const char *const cards[2] = {card(0), card(1)};
    fake_nccl_state *c = counts();
    if (!c) return skip();
    forget();
    const long declined = c->declined;
    c->decline = 1;
    assert_false(sum_over(cards, WEFT_F32, WEFT_OK));
    c->decline = 0;
    assert_false(sum_over(cards, WEFT_F32, WEFT_OK));
    assert_int_equal(c->declined, declined + 1);
    forget();
    assert_true(sum_over(cards, WEFT_F32, WEFT_OK));
    assert_int_equal(c->refused, 0);
}

/* A card that was lost gets a new context, which may have the address of the old one. Its communicators do
 * not serve it. */
static void test_communicators_end_with_their_context(void **state) {
    (void)state;
    const char *const cards[2] = {card(0), card(1)};
    fake_nccl_state *c = counts();
    if (!c) return skip();
    assert_true(sum_over(cards, WEFT_F32, WEFT_OK));
    const long cliques = c->cliques;
    assert_true(sum_over(cards, WEFT_F32, WEFT_OK));
    assert_int_equal(c->cliques, cliques);
    const weft__cuda_found *list;
    const char *why;
    CUresult error;
    assert_int_equal((test_on_hip() ? weft__hip_devices : weft__cuda_devices)(&list, &why), 2);
    const CUcontext before = weft__cuda_context_take(&list[1], &error);
    weft__cuda_context_give(&list[1], true);
    assert_ptr_equal(weft__cuda_context_take(&list[1], &error), before);
    weft__cuda_context_give(&list[1], false);
    assert_true(sum_over(cards, WEFT_F32, WEFT_OK));
    assert_int_equal(c->cliques, cliques + 1);
    assert_int_equal(c->refused, 0);
}

/* ---- a step on two GPUs equals the step on one, bit for bit ---- */

enum { ROWS = 24, IN = 4, WIDTH = 8, CLASSES = 3, STEPS = 6 };

typedef struct copy {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *opt;
    weft_loader *loader;
} copy;

static void make(copy *c, const char *device) {
    static float x[ROWS][IN];
    static int32_t y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < IN; k++) x[i][k] = (float)((i * 37 + k * 11) % 19) / 10 - 1;
        y[i] = i * 5 % CLASSES;
    }
    const weft_array xs = {WEFT_F32, 2, {ROWS, IN}, x, sizeof x}, ys = {WEFT_I32, 1, {ROWS}, y, sizeof y};
    assert_int_equal(
        weft_open(&(weft_open_options){.device = device, .seed = 3, .log = count_warnings}, &c->ctx),
        WEFT_OK);
    c->net = weft_nn_mlp(c->ctx, (int64_t[]){IN, WIDTH, CLASSES}, 3, &(weft_mlp_options){.dropout = 0.2});
    c->opt = weft_adamw(c->net, &(weft_adam_options){.lr = 0.05, .clip = 1});
    assert_int_equal(
        weft_loader_new(c->ctx, &xs, &ys, &(weft_loader_options){.batch = 6, .classes = CLASSES}, &c->loader),
        WEFT_OK);
}

static void close_copy(copy *c) {
    weft_loader_free(c->loader);
    weft_close(c->ctx);
}

static void test_cards_share_a_step(void **state) {
    (void)state;
    float weights[4][IN * WIDTH];
    fake_nccl_state *c = counts();
    if (!c) return skip();
    const long sums = c->sums;
    warnings = 0;
    for (int way = 0; way < 4; way++) { /* one GPU; two; two without NCCL; two that it refuses */
        copy n[2];
        const int cards = way ? 2 : 1;
        weft_parameter_info info;
        library()->file = way == 2 ? "libabsent.so" : NULL;
        c->decline = way == 3;
        forget();
        for (int i = 0; i < cards; i++) make(&n[i], card(i));
        const weft_replica other = {n[cards - 1].net, n[cards - 1].opt, n[cards - 1].loader};
        const weft_fit_options options = {
            .steps = STEPS, .accumulate = 2, .replicas = &other, .n_replicas = (size_t)cards - 1};
        assert_int_equal(weft_fit(n[0].net, n[0].opt, n[0].loader, &options, NULL), WEFT_OK);
        assert_true(weft_parameter_get(n[cards - 1].net, 0, &info));
        assert_int_equal(weft_read(info.tensor, weights[way], sizeof *weights), WEFT_OK);
        for (int i = 0; i < cards; i++) close_copy(&n[i]);
    }
    library()->file = NULL;
    c->decline = 0;
    forget();
    for (int way = 1; way < 4; way++) assert_memory_equal(weights[0], weights[way], sizeof *weights);
    assert_int_equal(warnings, 1);
    assert_int_equal(c->sums - sums, STEPS);
    assert_int_equal(c->refused, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums_over_cards),
        cmocka_unit_test(test_refused_cards),
        cmocka_unit_test(test_communicators_end_with_their_context),
        cmocka_unit_test(test_cards_share_a_step),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
