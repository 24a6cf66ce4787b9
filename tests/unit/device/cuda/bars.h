/* What tests share that compare figures of the interpreter of PTX (tests/ptx) with a table of bars, one for
 * each row: `name<tab>bar`. The interpreter appends figures to a file that a variable names. With UPDATE=1
 * the test writes the table. Figures depend on NVRTC, so a table holds for one major version. Must not know
 * what is measured. Read next: test_cuda_banks.c, test_cuda_clocks.c. */
#ifndef WEFT_TESTS_UNIT_DEVICE_CUDA_BARS_H
#define WEFT_TESTS_UNIT_DEVICE_CUDA_BARS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

#include "device/cuda/nvrtc.h"
#include "gpu.h"

enum { BARS_NVRTC = 13 };

typedef struct bar_row {
    char name[120];
    double value;
} bar_row;

/* Makes the file, with a name that ends with XXXXXX, and opens a context on the device without libraries and
 * tuner. NULL: there is no such device, or no such NVRTC. */
static weft_context *bars_open(const char *variable, char *file) {
    weft_context *ctx;
    int major, minor;
    if (!test_on_cuda() || test_without_gpu() || weft__nvrtc_open()) return NULL;
    weft__nvrtc_version(&major, &minor);
    if (major != BARS_NVRTC) return NULL;
    const int made = mkstemp(file);
    assert_true(made >= 0);
    close(made);
    setenv(variable, file, 1);
    setenv("WEFT_MATMUL", "own", 1);
    setenv("WEFT_TUNE", "off", 1);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cuda", .seed = 7}, &ctx), WEFT_OK);
    return ctx;
}

/* Makes a matrix of random numbers. turned: its columns are contiguous, not its rows. */
static weft_tensor *bars_matrix(weft_context *ctx, weft_dtype dtype, int64_t rows, int64_t columns,
                                bool turned) {
    const int64_t shape[2] = {turned ? columns : rows, turned ? rows : columns};
    weft_tensor *x = weft_cast(weft_random_normal(ctx, 2, shape), dtype);
    assert_int_equal(weft_eval(&x, 1), WEFT_OK);
    return turned ? weft_transpose(x, 0, 1) : x;
}

/* Computes tensors. Then the file has the figures of these launches alone. */
static void bars_eval(weft_context *ctx, const char *file, weft_tensor **list, size_t n) {
    assert_int_equal(weft_synchronize(ctx), WEFT_OK);
    assert_int_equal(truncate(file, 0), 0);
    if (weft_eval(list, n) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    assert_int_equal(weft_synchronize(ctx), WEFT_OK);
}

static void bars_write(const char *table, const char *head, const bar_row *rows, int n) {
    FILE *to = fopen(table, "w");
    assert_non_null(to);
    fprintf(to, "# NVRTC %d: %s\n", BARS_NVRTC, head);
    for (int i = 0; i < n; i++) fprintf(to, "%s\t%.1f\n", rows[i].name, rows[i].value);
    assert_int_equal(fclose(to), 0);
}

/* Writes the table if UPDATE asks for it; `head` is its first line. Fails if a row does not fit its bar, or
 * is in one of both only. */
static void bars_check(const char *table, const char *head, const bar_row *rows, int n,
                       bool (*fits)(double value, double bar)) {
    char line[200], name[sizeof rows->name];
    double bar;
    int wrong = 0, known = 0, bars = 0;
    if (getenv("UPDATE")) bars_write(table, head, rows, n);
    FILE *from = fopen(table, "r");
    assert_non_null(from);
    while (fgets(line, sizeof line, from)) {
        if (line[0] == '#' || sscanf(line, "%119[^\t]\t%lf", name, &bar) != 2) continue;
        bars++;
        for (int i = 0; i < n; i++) {
            if (strcmp(rows[i].name, name) != 0) continue;
            known++;
            if (fits(rows[i].value, bar)) continue;
            printf("FAIL %s: %.1f, the bar is %.1f\n", name, rows[i].value, bar);
            wrong++;
        }
    }
    fclose(from);
    assert_int_equal(wrong, 0);
    assert_int_equal(known, n);
    assert_int_equal(bars, n);
}

#endif
