/* Kernels that change variables return if another kernel has recorded a fault. All threads of a block must
 * decide in the same way, although the fault may be recorded while they begin. The simulated GPU records one
 * in the midst of each launch (fake_cuda.raise), and reports threads that wait at a barrier for others that
 * have returned. Results mean nothing here. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>

#include "cuda/fake.h"
#include "device/cuda/cuda.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
enum { ROWS = 48, COLUMNS = 96, TIMES = 12 };

/* The operands of all operations. */
typedef struct operands {
    weft_tensor *x, *wide, *heads, *index; /* (48, 96); (96, 48); (2, 3, 16, 8); 48 indices */
} operands;

static weft_tensor *of_matmul(const operands *o) { return weft_matmul(o->x, o->wide); }
static weft_tensor *of_half_matmul(const operands *o) {
    return weft_matmul(weft_cast(o->x, WEFT_BF16), weft_cast(o->wide, WEFT_BF16));
}
static weft_tensor *of_rows(const operands *o) { return weft_sum(o->x, 1, false); }
static weft_tensor *of_columns(const operands *o) { return weft_sum(o->x, 0, false); }
static weft_tensor *of_softmax(const operands *o) { return weft_softmax(o->x, 1); }
static weft_tensor *of_attention(const operands *o) {
    return weft_attention(o->heads, o->heads, o->heads, NULL);
}
static weft_tensor *of_scan(const operands *o) { return weft_cumsum(o->x, 1); }
static weft_tensor *of_sort(const operands *o) { return weft_sort(o->x, 1, false, NULL); }
static weft_tensor *of_scatter(const operands *o) { return weft_scatter_add(o->x, o->index, o->x, 0); }
static weft_tensor *of_update(const operands *o) {
    weft_tensor *zero = weft_slice(o->index, (int64_t[]){0}, (int64_t[]){1}, NULL);
    return weft_update(o->x, weft_slice(o->x, (int64_t[]){0, 0}, (int64_t[]){4, COLUMNS}, NULL),
                       weft_reshape(zero, 0, NULL), 0);
}
static weft_tensor *of_gather(const operands *o) { return weft_gather(o->x, o->index, 0); }

static const struct {
    const char *name;
    weft_tensor *(*make)(const operands *o);
} cases[] = {
    {"matmul", of_matmul},   {"bf16 matmul", of_half_matmul}, {"rows", of_rows},     {"columns", of_columns},
    {"softmax", of_softmax}, {"attention", of_attention},     {"scan", of_scan},     {"sort", of_sort},
    {"scatter", of_scatter}, {"update", of_update},           {"gather", of_gather},
};

static void make_operands(weft_context *ctx, operands *o) {
    static float x[ROWS * COLUMNS];
    int32_t index[ROWS] = {0};
    for (int i = 0; i < ROWS * COLUMNS; i++) x[i] = (float)(i * 37 % 19) / 10 - 1;
    for (int i = 1; i < ROWS; i++) index[i] = i * 5 % ROWS;
    o->x = weft_keep(weft_from(ctx, WEFT_F32, SHAPE(ROWS, COLUMNS), x));
    o->wide = weft_keep(weft_from(ctx, WEFT_F32, SHAPE(COLUMNS, ROWS), x));
    o->heads = weft_keep(weft_from(ctx, WEFT_F32, SHAPE(2, 3, 16, 8), x));
    o->index = weft_keep(weft_from(ctx, WEFT_I32, SHAPE(ROWS), index));
}

/* Assigns an operation to a variable, in a program that has a gather, which may record a fault. */
static void assign(weft_context *ctx, const operands *o, int i) {
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *value = cases[i].make(o), *rows = weft_gather(o->wide, o->index, 0);
    weft_tensor *to = weft_variable_new(ctx, cases[i].name, weft_dtype_of(value), weft_rank(value),
                                        weft_shape(value), NULL);
    weft_tensor *more = weft_variable_new(ctx, "rows", WEFT_F32, SHAPE(ROWS, ROWS), NULL);
    if (weft_tensor_status(value) != WEFT_OK) fail_msg("%s: %s", cases[i].name, weft_last_error(ctx));
    for (int time = 0; time < TIMES; time++) {
        const weft_status status =
            weft_assign((weft_tensor *[]){to, more}, (weft_tensor *[]){value, rows}, 2);
        if (status == WEFT_OK) (void)!weft_synchronize(ctx); /* which may read a fault */
        value = cases[i].make(o), rows = weft_gather(o->wide, o->index, 0);
    }
    weft_scope_close(scope);
    weft_free(to);
    weft_free(more);
}

static void test_blocks_decide_once(void **state) {
    const weft__cuda_found *list;
    const char *why;
    weft_context *ctx;
    operands o;
    long raised = 0;
    (void)state;
    if (!weft__cuda_devices(&list, &why) || list[0].gpu.reason[0]) return skip();
    void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
    fake_cuda_state *card = library ? dlsym(library, "fake_cuda") : NULL;
    if (!card) return skip();
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda", .seed = 3}, &ctx), WEFT_OK);
    make_operands(ctx, &o);
    card->raise = 1;
    for (int i = 0; i < (int)(sizeof cases / sizeof *cases); i++) {
        card->raised = 0;
        assign(ctx, &o, i);
        print_message("%s: raised in %ld launches, %ld reports\n", cases[i].name, card->raised,
                      card->reports);
        raised += card->raised;
    }
    card->raise = 0;
    assert_int_equal(card->reports, 0);
    assert_true(raised > 0);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_decide_once)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
