/* Shared by the tests of the core: contexts, checks that print the library's message, and the newest
 * program. */
#ifndef WEFT_TESTS_CORE_HELP_H
#define WEFT_TESTS_CORE_HELP_H

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/nn.h>
#include <weft/ops.h>
#include <weft/optim.h>
#include "compiler/program.h"
#include "device.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
/* rank and shape, as two arguments */
#define SHAPE(...)                                                                                           \
    (int)COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]) { __VA_ARGS__ }

static inline weft_context *open_device(const char *device, bool no_fusion) {
    weft_context *ctx = NULL;
    assert_ok(test_open(
        &(weft_open_options){.device = device, .threads = 1, .no_fusion = no_fusion, .seed = 5}, &ctx));
    return ctx;
}

/* An f32 variable or data tensor. Its values are between about -1 and 1, and never 0. */
static inline weft_tensor *numbers(weft_context *ctx, bool variable, int salt, int rank,
                                   const int64_t *shape) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= shape[i];
    float *data = calloc((size_t)n + 1, sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = (float)sin(0.7 * (double)i + 1.3 * (double)salt + 0.1) + 0.01F;
    weft_tensor *t = variable ? weft_variable_new(ctx, "w", WEFT_F32, rank, shape, data)
                              : weft_from(ctx, WEFT_F32, rank, shape, data);
    free(data);
    assert_ok(weft_tensor_status(t));
    return t;
}

/* The newest program of the cache, which ran last. */
static inline weft_program *newest(weft_context *ctx) {
    assert_non_null(ctx->compiler->newest);
    return ctx->compiler->newest;
}

static inline int heavies(const weft_program *program, weft_heavy_kind kind) {
    int n = 0;
    for (int i = 0; i < program->commands.count; i++)
        n += program->commands.list[i].kind == WEFT_COMMAND_HEAVY &&
             program->commands.list[i].heavy.kind == kind;
    return n;
}

/* The number of kernels that only move data. */
static inline int copies(const weft_program *program) {
    int n = (int)program->n_copies;
    for (int i = 0; i < program->commands.count; i++) {
        const weft_kernel *kernel = program->commands.list[i].kernel;
        n += kernel && strcmp(kernel->name, "copy") == 0;
    }
    return n;
}

/* If the program does not have that many kernels and matmuls, prints the plan and fails. */
static inline void assert_plan(const weft_program *program, int kernels, int matmuls) {
    if ((int)program->n_kernels == kernels && heavies(program, WEFT_HEAVY_MATMUL) == matmuls) return;
    static char text[65536];
    weft__program_print(program, DEBUG_PLAN | DEBUG_KERNELS, text, sizeof text);
    print_error("wanted %d kernels and %d products:\n%s", kernels, matmuls, text);
    assert_int_equal(program->n_kernels, kernels);
    assert_int_equal(heavies(program, WEFT_HEAVY_MATMUL), matmuls);
}

#endif
