/* What the tests of exported C source share: data to learn from, commands, and the functions of a library. */
#ifndef WEFT_TESTS_TRAIN_EXPORT_HELP_H
#define WEFT_TESTS_TRAIN_EXPORT_HELP_H

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/io_scratch.h"

enum { IMAGES = 8, TEXT = 900 };
#define WARNINGS "-std=c99 -Wall -Wextra -Werror -pedantic"
#define TINY     " --set model.layers=2 --set model.width=16 --set model.context=12 --set train.steps=3"

/* ---- data ---- */

static unsigned char pixels[IMAGES][3072]; /* of CIFAR-10's format; the first 64 are an image of 8 x 8 */

/* The number in a row and one of three columns of a table. */
static float number_of(int row, int column) {
    return (float)((row * (13 + 7 * column) % 101) / 10.0 + (column == 2 ? 300 : 0));
}

static void write_images(void) {
    static const unsigned char head[] = {0, 0, 8, 3, 0, 0, 0, IMAGES, 0, 0, 0, 8, 0, 0, 0, 8},
                               labels[] = {0, 0, 8, 1, 0, 0, 0, IMAGES, 0, 1, 0, 1, 0, 1, 0, 1};
    FILE *idx = fopen(in_scratch("some-images-idx3-ubyte"), "wb"),
         *cifar = fopen(in_scratch("some.bin"), "wb");
    assert_true(idx && cifar);
    assert_int_equal(fwrite(head, 1, sizeof head, idx), sizeof head);
    for (int i = 0; i < IMAGES; i++) {
        for (int k = 0; k < 3072; k++) pixels[i][k] = (unsigned char)((i * 131 + k * k * 7 + k / 3) % 256);
        assert_int_equal(fwrite(pixels[i], 1, 64, idx), 64);
        fputc(i % 2, cifar);
        assert_int_equal(fwrite(pixels[i], 1, 3072, cifar), 3072);
    }
    fclose(idx);
    fclose(cifar);
    assert_true(spill(in_scratch("some-labels-idx1-ubyte"), labels, sizeof labels));
}

static bool write_text(void) {
    char text[TEXT];
    for (int i = 0; i < TEXT; i++) text[i] = "the weft \"goes\" over \\ and under?\n"[(i * i / 7 + i) % 33];
    return spill(in_scratch("text.txt"), text, sizeof text);
}

/* ---- commands ---- */

static int run_command(const char *fmt, ...) WEFT_PRINTF(1, 2);
static int run_command(const char *fmt, ...) {
    char command[8192];
    va_list args;
    va_start(args, fmt);
    vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    const int code = system(command);
    if (code != 0) printf("failed: %s\n", command);
    return code;
}

static bool at_hand(const char *program) {
    char command[200];
    snprintf(command, sizeof command, "command -v %s >/dev/null", program);
    return system(command) == 0;
}

/* A function pointer cannot be made from dlsym's result in ISO C. */
static void find(void *handle, const char *name, void *to) {
    void *symbol = dlsym(handle, name);
    assert_non_null(symbol);
    memcpy(to, &symbol, sizeof symbol);
}

#endif
