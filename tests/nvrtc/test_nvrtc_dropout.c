/* Attention with dropout, compiled with NVRTC for a GPU. A block of random numbers (Philox) has the words of
 * four weights. The machine code must not compute a block for each weight. Each block multiplies by one
 * constant ten times, so the constants in the cubin count the blocks. Without NVRTC the test is skipped. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/text.h"
#include "device/cuda/nvrtc.h"
#include "device/gpu/gpu.h"
#include "device/gpu/heavy/heavy.h"

enum { SKIPPED = 77, ROUNDS = 10 };

/* weights: those that a work-item holds at a time, in all kernels of the source. */
typedef struct sample {
    weft_dtype dtype;
    bool backward;
    int64_t d;
    int weights;
} sample;

static const sample samples[] = {{WEFT_BF16, false, 64, 32},   {WEFT_BF16, true, 64, 16 + 16},
                                 {WEFT_F16, false, 128, 16},   {WEFT_F16, true, 128, 16 + 16},
                                 {WEFT_F32, false, 64, 8 + 4}, {WEFT_F32, true, 64, 8 + 8}};

/* The whole source of the attention. The caller frees it. */
static char *source_of(weft_context *ctx, const sample *s) {
    const weft_target target = {.dialect = WEFT_DIALECT_CUDA,
                                .lanes = 256,
                                .units = 132,
                                .local_bytes = 48 << 10,
                                .most_local_bytes = 227 << 10,
                                .capability = 90};
    weft_heavy heavy = {.kind = WEFT_HEAVY_ATTENTION};
    heavy.as.attention = (weft_heavy_attention){.dtype = (uint8_t)s->dtype,
                                                .scale = 0.125,
                                                .batch = 8,
                                                .heads = 12,
                                                .t_q = 1024,
                                                .t_k = 1024,
                                                .d = s->d,
                                                .causal = true,
                                                .dropout = 0.1,
                                                .backward = s->backward};
    const char *parts[WEFT_GPU_PRELUDE_MOST];
    weft_arena arena;
    weft__arena_init(&arena, ctx);
    weft_launches launches = {.ctx = ctx, .arena = &arena, .target = &target};
    assert_int_equal(weft__gpu_attention(&launches, &heavy, false), WEFT_OK);
    const weft_launch *first = &launches.list[0];
    const int n = weft__gpu_prelude_parts(WEFT_DIALECT_CUDA, first->prelude, parts);
    size_t size = strlen(first->source) + 1;
    for (int i = 0; i < n; i++) size += strlen(parts[i]);
    char *whole = malloc(size);
    assert_non_null(whole);
    weft_text to = weft__text(whole, size);
    for (int i = 0; i < n; i++) weft__put(&to, "%s", parts[i]);
    weft__put(&to, "%s", first->source);
    weft__free(ctx, launches.list);
    weft__arena_free(&arena);
    return whole;
}

static void test_blocks_of_four(void **state) {
    static const unsigned char constant[4] = {0x53, 0x1f, 0x51, 0xd2}; /* 0xD2511F53 */
    (void)state;
    for (size_t i = 0; i < sizeof samples / sizeof *samples; i++) {
        const sample *s = &samples[i];
        weft_context ctx = {0};
        char *source = source_of(&ctx, s);
        weft_nvrtc_job job = {.compiler = &weft__nvrtc, .source = source, .arch = "sm_90a"};
        void *cubin;
        size_t bytes;
        int found = 0;
        weft__nvrtc_compile(&job);
        if (weft__nvrtc_take(&ctx, &job, "attention", &cubin, &bytes) != WEFT_OK)
            fail_msg("%s", weft_last_error(&ctx));
        for (size_t at = 0; at + sizeof constant <= bytes; at += sizeof constant)
            found += memcmp((const char *)cubin + at, constant, sizeof constant) == 0;
        print_message("%s %s d %d: %d multiplications, for %d weights\n", weft_dtype_name(s->dtype),
                      s->backward ? "backward" : "forward", (int)s->d, found, s->weights);
        assert_true(found >= ROUNDS && found <= ROUNDS * (s->weights / 4 + 1));
        weft__free(&ctx, cubin);
        free(source);
        weft__strings_free(&ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_blocks_of_four)};
    const char *why = weft__nvrtc_open();
    if (why) printf("nvrtc: skipped, %s\n", why);
    return why ? SKIPPED : cmocka_run_group_tests(tests, NULL, NULL);
}
