/* A product on a device, from memory whose margins tell what was read or written outside of operands. Include
 * after matmul_cases.h. */
#ifndef WEFT_TESTS_MATMUL_DEVICE_H
#define WEFT_TESTS_MATMUL_DEVICE_H

#include "matmul_cases.h"

#define MARGIN 128 /* bytes of NaN around operands */

/* Content lies `shift` bytes behind the margin. */
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

/* Operands a and b lie at multiples of MARGIN and so many bytes. c, which the caller frees; bytes that the
 * product does not write are 0x55. Both runs of it must agree. */
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
        buffer_of(device, NULL, *bytes, 0, 0x55), buffer_of(device, NULL, *bytes, 0, 0x55)};
    weft_operand operands[2][3] = {{{0, MARGIN + shift}, {1, MARGIN + shift}, {2, MARGIN}},
                                   {{0, MARGIN + shift}, {1, MARGIN + shift}, {3, MARGIN}}};
    const weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL, .path = "test", .as.matmul = *mm};
    weft_command list[2];
    for (int i = 0; i < 2; i++)
        list[i] = (weft_command){.kind = WEFT_COMMAND_HEAVY,
                                 .sink = i == 1,
                                 .after = true,
                                 .heavy = heavy,
                                 .n_operands = 3,
                                 .operands = operands[i]};
    const weft_commands commands = {.count = 2, .n_slots = 4, .list = list};
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
    for (int i = 0; i < 4; i++) ops->buffer_free(device, buffers[i]);
    return c[0];
}

#endif
