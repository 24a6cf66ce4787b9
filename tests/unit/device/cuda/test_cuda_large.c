/* Tensors of more than 2^31 elements on the simulated GPU (tests/cuda/fake.h): its memory is sparse, and of a
 * large grid only blocks at both ends run. So elements at both ends are computed, and an index of 32 bits
 * that overflows gives a wrong value or an address where no memory is. Elements in between have no value.
 * Skipped on a GPU. */
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

#include <weft/weft.h>

#include "cuda/fake.h"
#include "gpu.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }
#define AT(...) ((const int64_t[]){__VA_ARGS__})
enum { COLUMNS = 1024, ROWS = (1 << 21) + 3, FEW = 64, BLOCKS = 64 };

static fake_cuda_state *card;
static weft_context *ctx;

static int set_up(void **state) {
    (void)state;
    void *library = test_on_cuda() ? dlopen("libcuda.so.1", RTLD_NOW) : NULL;
    card = library ? dlsym(library, "fake_cuda") : NULL;
    if (!card) return 0;
    card->memory = (long)64 << 30; /* before Weft asks for it */
    if (test_without_gpu()) return -1;
    setenv("WEFT_TUNE", "off", 1);
    setenv("WEFT_MATMUL", "own", 1);
    card->sample = BLOCKS;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda"}, &ctx), WEFT_OK);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    if (!card) return 0;
    weft_close(ctx);
    return card->reports ? -1 : 0;
}

/* ---- values ---- */

static int value(int64_t row, int64_t column) { return (int)((row * 3 + column * 7) % 251); }

/* The numbers of the rows or columns of a matrix, as a column or a row of i64. */
static weft_tensor *numbers(int64_t n, bool down) {
    weft_tensor *x = weft_iota(ctx, WEFT_I64, 1, &n);
    return weft_reshape(x, 2, down ? AT(n, 1) : AT(1, n));
}

/* A matrix of these values, on the GPU. */
static weft_tensor *large(int64_t rows, int64_t columns) {
    weft_tensor *sum =
        weft_add(weft_mul_scalar(numbers(rows, true), 3), weft_mul_scalar(numbers(columns, false), 7));
    weft_tensor *x = weft_cast(weft_mod(sum, weft_full(ctx, WEFT_I64, SHAPE(1, 1), 251)), WEFT_U8);
    if (weft_eval(&x, 1) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    return x;
}

/* Reads some of the first and of the last rows and columns of a matrix of u8, and compares them with what is
 * expected. */
static void check(weft_tensor *x, int64_t rows, int64_t columns,
                  int (*expected)(int64_t row, int64_t column)) {
    uint8_t got[2 * 16];
    if (weft_eval(&x, 1) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    for (int end = 0; end < 2; end++) {
        const int64_t row = end ? rows - 2 : 0, column = end ? columns - 16 : 0;
        weft_tensor *part = weft_slice(x, AT(row, column), AT(row + 2, column + 16), NULL);
        if (weft_read(part, got, sizeof got) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
        for (int i = 0; i < 32; i++) {
            const int is = expected(row + i / 16, column + i % 16);
            if (got[i] != is)
                fail_msg("row %lld, column %lld: %d instead of %d", (long long)row + i / 16,
                         (long long)column + i % 16, got[i], is);
        }
    }
}

/* ---- operations ---- */

static int twice(int64_t row, int64_t column) { return 2 * value(row, column) & 255; }
static int turned(int64_t row, int64_t column) { return value(ROWS - 1 - row, COLUMNS - 1 - column); }
static int again(int64_t row, int64_t column) { return value(row % ROWS, column); }

static void test_elements(void **state) {
    (void)state;
    if (!card) return skip();
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = large(ROWS, COLUMNS);
    check(x, ROWS, COLUMNS, value);
    check(weft_add(x, x), ROWS, COLUMNS, twice);
    check(weft_slice(x, AT(-1, -1), AT(-ROWS - 1, -COLUMNS - 1), AT(-1, -1)), ROWS, COLUMNS, turned);
    check(weft_concat((weft_tensor *[]){x, x}, 2, 0), 2 * ROWS, COLUMNS, again);
    weft_scope_close(scope);
}

/* A matrix and its transpose. A row is long, so more blocks run. */
enum { SIDE = 46400 };
static int both(int64_t row, int64_t column) { return (value(row, column) + value(column, row)) & 255; }

static void test_transpose(void **state) {
    (void)state;
    if (!card) return skip();
    weft_scope *scope = weft_scope_open(ctx);
    card->sample = 8 * BLOCKS;
    weft_tensor *x = large(SIDE, SIDE);
    check(weft_add(x, weft_transpose(x, 0, 1)), SIDE, SIDE, both);
    card->sample = BLOCKS;
    weft_scope_close(scope);
}

static int64_t sum_of_row(int64_t row) {
    int64_t sum = 0;
    for (int column = 0; column < COLUMNS; column++) sum += value(row, column);
    return sum;
}

/* Sums of rows, and rows by their numbers. */
static void test_rows(void **state) {
    static const int32_t rows[4] = {0, 1, ROWS - 2, ROWS - 1};
    uint8_t got[4][COLUMNS];
    int64_t sum;
    (void)state;
    if (!card) return skip();
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = large(ROWS, COLUMNS), *sums = weft_sum(weft_cast(x, WEFT_I64), 1, false);
    weft_tensor *taken = weft_gather(x, weft_from(ctx, WEFT_I32, SHAPE(4), rows), 0);
    assert_int_equal(weft_eval(&sums, 1), WEFT_OK);
    assert_int_equal(weft_read(taken, got, sizeof got), WEFT_OK);
    for (int i = 0; i < 4; i++) {
        weft_tensor *one = weft_slice(sums, AT(rows[i]), AT(rows[i] + 1), NULL);
        assert_int_equal(weft_read(one, &sum, sizeof sum), WEFT_OK);
        assert_int_equal(sum, sum_of_row(rows[i]));
        for (int column = 0; column < COLUMNS; column++)
            assert_int_equal(got[i][column], value(rows[i], column));
    }
    weft_scope_close(scope);
}

/* Sums so far, the largest of each row, and its normalisation. */
static void test_scans(void **state) {
    (void)state;
    if (!card) return skip();
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = large(ROWS, COLUMNS), *all[3] = {weft_cumsum(x, 1), weft_argmax(x, 1, true)};
    all[2] = weft_softmax(weft_cast(x, WEFT_F16), 1);
    if (weft_eval(all, 3) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    for (int64_t row = 0; row < ROWS; row += ROWS - 1) {
        const int64_t from = COLUMNS - 4;
        int64_t sums[4];
        int32_t most;
        uint16_t parts[COLUMNS];
        double total = 0;
        weft_tensor *part = weft_slice(all[0], AT(row, from), AT(row + 1, COLUMNS), NULL);
        assert_int_equal(weft_read(part, sums, sizeof sums), WEFT_OK);
        assert_int_equal(sums[3], sum_of_row(row));
        assert_int_equal(sums[3] - sums[2], value(row, COLUMNS - 1));
        part = weft_slice(all[1], AT(row, 0), AT(row + 1, 1), NULL);
        assert_int_equal(weft_read(part, &most, sizeof most), WEFT_OK);
        assert_int_equal(value(row, most), 250);
        part = weft_slice(all[2], AT(row, 0), AT(row + 1, COLUMNS), NULL);
        assert_int_equal(weft_read(part, parts, sizeof parts), WEFT_OK);
        for (int i = 0; i < COLUMNS; i++) total += (double)weft_f16_to_f32(parts[i]);
        assert_true(total > 0.99 && total < 1.01);
    }
    weft_scope_close(scope);
}

/* A product of 2^31 elements and more. */
enum { M = 65600, N = 32800, K = 16 };
static int a_at(int64_t row, int64_t k) { return (int)((row + k) % 3); }
static int b_at(int64_t k, int64_t column) { return (int)((column + 2 * k) % 3); }
static int product(int64_t row, int64_t column) {
    int sum = 0;
    for (int k = 0; k < K; k++) sum += a_at(row, k) * b_at(k, column);
    return sum;
}

static void test_matmul(void **state) {
    (void)state;
    if (!card) return skip();
    for (int t = 0; t < 2; t++) {
        const weft_dtype dtype = t ? WEFT_F32 : WEFT_BF16;
        static uint16_t a[2][M][K];
        weft_scope *scope = weft_scope_open(ctx);
        for (int i = 0; i < M; i++)
            for (int k = 0; k < K; k++) {
                a[0][i][k] = weft_f32_to_bf16((float)a_at(i, k));
                a[1][i][k] = weft_f32_to_bf16((float)b_at(k, i));
            }
        weft_tensor *x = weft_cast(weft_from(ctx, WEFT_BF16, SHAPE(M, K), a[0]), dtype);
        weft_tensor *y = weft_cast(weft_from(ctx, WEFT_BF16, SHAPE(N, K), a[1]), dtype);
        weft_tensor *c = weft_matmul(x, weft_transpose(y, 0, 1));
        if (weft_eval(&c, 1) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
        for (int end = 0; end < 2; end++) {
            const int64_t row = end ? M - 2 : 0, column = end ? N - 8 : 0;
            float got[2][8];
            weft_tensor *part = weft_slice(c, AT(row, column), AT(row + 2, column + 8), NULL);
            assert_int_equal(weft_read(weft_cast(part, WEFT_F32), got, sizeof got), WEFT_OK);
            for (int i = 0; i < 16; i++)
                assert_int_equal((int)got[i / 8][i % 8], product(row + i / 8, column + i % 8));
        }
        weft_scope_close(scope);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_elements), cmocka_unit_test(test_transpose),
                                       cmocka_unit_test(test_rows), cmocka_unit_test(test_scans),
                                       cmocka_unit_test(test_matmul)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
