/* Helpers for the tests of matmul: cases, and the reference in f64. Include this header after cmocka.h. */
#ifndef WEFT_TESTS_MATMUL_CASES_H
#define WEFT_TESTS_MATMUL_CASES_H

#include <math.h>

#include "device/device.h"
#include "values.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16, WEFT_I32, WEFT_I64};

typedef struct layout {
    int a_turned, b_turned;            /* 1: the unit stride is along m (b: k) */
    int64_t a_extra, b_extra, c_extra; /* added to the leading dimensions */
} layout;

static inline weft_heavy_matmul matmul(weft_dtype dtype, int64_t m, int64_t n, int64_t k, layout l) {
    weft_heavy_matmul mm = {.dtype = (uint8_t)dtype, .out_dtype = (uint8_t)dtype, .m = m, .n = n, .k = k};
    mm.a_m = l.a_turned ? 1 : k + l.a_extra;
    mm.a_k = l.a_turned ? m + l.a_extra : 1;
    mm.b_k = l.b_turned ? 1 : n + l.b_extra;
    mm.b_n = l.b_turned ? k + l.b_extra : 1;
    mm.c_m = n + l.c_extra;
    return mm;
}

static inline double roundoff(weft_dtype d) {
    switch (d) {
    case WEFT_F64: return 0x1p-53;
    case WEFT_F32: return 0x1p-24;
    case WEFT_F16: return 0x1p-11;
    case WEFT_BF16: return 0x1p-8;
    default: return 0;
    }
}

/* Index of element (batch item, row, column) by strides. */
static inline int64_t place(const weft_heavy_matmul *mm, const int64_t *batch_strides, int64_t item,
                            int64_t r, int64_t s_r, int64_t c, int64_t s_c) {
    int64_t at = r * s_r + c * s_c;
    for (int d = mm->batch_rank - 1; d >= 0; d--) {
        at += item % mm->batch[d] * batch_strides[d];
        item /= mm->batch[d];
    }
    return at;
}

static inline int64_t span(const weft_heavy_matmul *mm, const int64_t *batch_strides, int64_t rows,
                           int64_t s_r, int64_t cols, int64_t s_c) {
    int64_t at = (rows > 0 ? rows - 1 : 0) * s_r + (cols > 0 ? cols - 1 : 0) * s_c + 1;
    for (int d = 0; d < mm->batch_rank; d++)
        if (mm->batch[d] > 0) at += (mm->batch[d] - 1) * batch_strides[d];
    return at;
}

/* Returns the largest error of c divided by the bound of class D, which must be at most 1. The bytes between
 * the rows of c must be 0x55. */
static inline double matmul_error(const weft_heavy_matmul *mm, const void *a, const void *b, const char *c) {
    weft_dtype dt = (weft_dtype)mm->dtype, od = (weft_dtype)mm->out_dtype;
    int64_t nc = span(mm, mm->c_batch, mm->m, mm->c_m, mm->n, 1);
    double worst = 0, u_out = roundoff(od), u_acc = dt == WEFT_F64 ? 0x1p-53 : 0x1p-24;
    double factor = (2 * log2(mm->k > 1 ? (double)mm->k : 1) + 4) * u_acc;
    int64_t items = 1;
    for (int d = 0; d < mm->batch_rank; d++) items *= mm->batch[d];
    char *written = calloc((size_t)nc, 1);
    for (int64_t item = 0; item < items; item++)
        for (int64_t i = 0; i < mm->m; i++)
            for (int64_t j = 0; j < mm->n; j++) {
                double sum = 0, size = 0;
                uint64_t whole = 0;
                for (int64_t p = 0; p < mm->k; p++) {
                    int64_t ia = place(mm, mm->a_batch, item, i, mm->a_m, p, mm->a_k);
                    int64_t ib = place(mm, mm->b_batch, item, p, mm->b_k, j, mm->b_n);
                    double x = value(dt, a, ia), y = value(dt, b, ib);
                    sum += x * y;
                    size += fabs(x * y);
                    whole += integer(dt, a, ia) * integer(dt, b, ib);
                }
                int64_t ic = place(mm, mm->c_batch, item, i, mm->c_m, j, 1);
                written[ic] = 1;
                if (dt == WEFT_I32)
                    assert_int_equal((uint32_t)whole, (uint32_t)integer(od, c, ic));
                else if (dt == WEFT_I64)
                    assert_true(whole == integer(od, c, ic));
                else {
                    double error = fabs(value(od, c, ic) - sum), bound = factor * size + u_out * fabs(sum);
                    if (od == WEFT_F16) bound += 0x1p-25;
                    if (dt == WEFT_F64) bound += factor * size; /* the reference rounds too */
                    double ratio = error == 0 ? 0 : error / bound;
                    if (!(ratio <= worst)) worst = ratio;
                }
            }
    size_t os = weft_dtype_size(od);
    for (int64_t i = 0; i < nc; i++)
        if (!written[i])
            for (size_t y = 0; y < os; y++) assert_int_equal(c[(size_t)i * os + y], 0x55);
    free(written);
    return worst;
}

#endif
