/* A matmul on a device, with margins around its operands that detect reads and writes outside of them.
 * Include this header after matmul_cases.h. */
#ifndef WEFT_TESTS_MATMUL_DEVICE_H
#define WEFT_TESTS_MATMUL_DEVICE_H

#include "unit/matmul_cases.h"

#define MARGIN 128 /* bytes of NaN around operands */

/* The content begins `shift` bytes after the margin. */
static inline weft_buffer *buffer_of(weft_device *device, const void *content, size_t bytes, int shift,
                                     int fill) {
    weft_buffer *b = NULL;
    const size_t size = bytes + 2 * (size_t)MARGIN;
    char *all = malloc(size);
    memset(all, fill, size);
    if (content) memcpy(all + MARGIN + shift, content, bytes);
    assert_int_equal(device->ops->buffer_new(device, size, &b), WEFT_OK);
    assert_int_equal(device->ops->upload(device, b, 0, all, size), WEFT_OK);
    free(all);
    return b;
}

/* Compares the sums of a over k with a reference, within class D. */
static inline void check_sums(const weft_heavy_matmul *mm, const void *a, const char *sums) {
    const weft_dtype dtype = weft__matmul_sums_dtype(mm);
    for (int64_t i = 0; i < mm->m; i++) {
        double sum = 0, size = 0;
        for (int64_t k = 0; k < mm->k; k++) {
            const double x = value((weft_dtype)mm->dtype, a, i * mm->a_m + k * mm->a_k);
            sum += x;
            size += fabs(x);
        }
        const double factor = (2 * log2(mm->k > 1 ? (double)mm->k : 1) + 4) * roundoff(dtype);
        assert_true(fabs(value(dtype, sums, i) - sum) <= 2 * factor * size);
    }
}

/* Runs the matmul twice. The operands a and b begin at a multiple of MARGIN plus `shift` bytes. Checks that
 * both runs agree, and that the row sums are right if there are any. Returns c, which the caller frees; bytes
 * that the matmul does not write are 0x55. */
static inline char *product(weft_device *device, const weft_heavy_matmul *mm, const void *a, const void *b,
                            int shift, size_t *bytes) {
    const weft_device_ops *ops = device->ops;
    const size_t size = weft_dtype_size((weft_dtype)mm->dtype);
    *bytes =
        (size_t)span(mm, mm->c_batch, mm->m, mm->c_m, mm->n, 1) * weft_dtype_size((weft_dtype)mm->out_dtype);
    weft_buffer *buffers[] = {
        buffer_of(device, a, (size_t)span(mm, mm->a_batch, mm->m, mm->a_m, mm->k, mm->a_k) * size, shift,
                  0xff),
        buffer_of(device, b, (size_t)span(mm, mm->b_batch, mm->k, mm->b_k, mm->n, mm->b_n) * size, shift,
                  0xff),
        buffer_of(device, NULL, *bytes, 0, 0x55), buffer_of(device, NULL, *bytes, 0, 0x55),
        buffer_of(device, NULL, (size_t)mm->m * 8, 0, 0x55)};
    weft_operand operands[2][4] = {{{0, MARGIN + shift}, {1, MARGIN + shift}, {2, MARGIN}, {4, MARGIN}},
                                   {{0, MARGIN + shift}, {1, MARGIN + shift}, {3, MARGIN}, {4, MARGIN}}};
    const weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL, .path = "test", .as.matmul = *mm};
    const bool sink =
        mm->dtype != WEFT_F32; /* sinks have other kernel source; it must give the same result */
    weft_command list[2];
    for (int i = 0; i < 2; i++)
        list[i] = (weft_command){.kind = WEFT_COMMAND_HEAVY,
                                 .sink = sink,
                                 .after = true,
                                 .heavy = heavy,
                                 .n_operands = 3 + mm->sums,
                                 .operands = operands[i]};
    const weft_commands commands = {.count = 2, .n_slots = 5, .list = list};
    weft_executable *executable = NULL;
    assert_true(ops->takes(device, &heavy));
    assert_int_equal(ops->build(device, &commands, &executable), WEFT_OK);
    assert_int_equal(ops->run(device, executable, buffers, 1), WEFT_OK);
    const size_t whole = *bytes + 2 * (size_t)MARGIN;
    char *c[2] = {malloc(whole), malloc(whole)};
    for (int i = 0; i < 2; i++)
        assert_int_equal(ops->download(device, buffers[2 + i], 0, c[i], whole), WEFT_OK);
    assert_memory_equal(c[0], c[1], whole);
    for (int i = 0; i < MARGIN; i++) assert_true(c[0][i] == 0x55 && c[0][MARGIN + (int)*bytes + i] == 0x55);
    memmove(c[0], c[0] + MARGIN, *bytes);
    free(c[1]);
    ops->executable_free(device, executable);
    if (mm->sums) {
        const size_t all = (size_t)mm->m * 8 + 2 * (size_t)MARGIN,
                     end = MARGIN + (size_t)mm->m * weft_dtype_size(weft__matmul_sums_dtype(mm));
        char *sums = malloc(all);
        assert_int_equal(ops->download(device, buffers[4], 0, sums, all), WEFT_OK);
        for (size_t i = 0; i < all; i++) assert_true((i >= MARGIN && i < end) || sums[i] == 0x55);
        check_sums(mm, a, sums + MARGIN);
        free(sums);
    }
    for (int i = 0; i < 5; i++) ops->buffer_free(device, buffers[i]);
    return c[0];
}

#endif
