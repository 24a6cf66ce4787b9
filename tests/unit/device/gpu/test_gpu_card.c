/* Descriptions of cards, the price of a launch by hand-computed cases, and the prices of whole plans. Needs
 * no card. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/weft.h>

#include "device/gpu/backend/program.h"
#include "device/gpu/card/card.h"
#include "device/null/null.h"
#include "graph/graph.h"

#define SHAPE(...)                                                                                           \
    (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), (const int64_t[]) { __VA_ARGS__ }

/* A card whose numbers are easy to compute with: 100 units, 1 GHz, 1 TB/s. */
static weft_card round_card(void) {
    weft_card card = {.units = 100,
                      .threads = 2048,
                      .blocks = 32,
                      .clock = 1e9,
                      .memory = 64e9,
                      .bandwidth = 1e12,
                      .l2 = 50e6,
                      .l2_bandwidth = 4e12,
                      .shared = 100 * 1024,
                      .node = 1e-6,
                      .alone = 2e-6};
    for (int u = 0; u < WEFT_UNITS; u++) card.rate[u] = 1e13;
    return card;
}

/* A launch of 256 work-items a block that keeps 64 bytes of each under way: enough for the bandwidth. */
static weft_launch launch_of(int64_t blocks) {
    return (weft_launch){.name = "test",
                         .groups = {blocks, 1, 1},
                         .items = {256, 1, 1},
                         .facts = {.width = 16, .allowed = 16, .at_once = 64, .registers = 32}};
}

#define NEAR(value, wanted) assert_true(fabs((value) / (wanted)-1) < 1e-9)

/* ---- prices ---- */

static void test_memory(void **state) {
    const weft_card card = round_card();
    weft_launch l = launch_of(100000);
    (void)state;
    l.facts.bytes = 9e9; /* at 0.9 of 1 TB/s: 10 ms */
    weft_card_price p = weft__card_price(&card, &l, false);
    NEAR(p.seconds, 10e-3 + 1e-6);
    assert_int_equal(p.reason, WEFT_CARD_MEMORY);
    assert_int_equal(p.resident, 800); /* 8 blocks of 256 in 2,048 */
    l.facts.bytes = 40e6;
    p = weft__card_price(&card, &l, true); /* in the cache at 4 TB/s */
    NEAR(p.seconds, 10e-6 + 1e-6);
    assert_int_equal(p.reason, WEFT_CARD_CACHE);
}

/* A second pass is free while the row stays with its multiprocessor. It comes from L2 while all rows fit
 * there, and else from memory. */
static void test_again(void **state) {
    const weft_card card = round_card();
    weft_launch l = launch_of(100000);
    (void)state;
    l.facts.bytes = 9e9, l.facts.again = 9e9;
    l.facts.row = 4096; /* 8 of them: 32 KiB */
    NEAR(weft__card_price(&card, &l, false).memory, 10e-3);
    NEAR(weft__card_price(&card, &l, false).seconds, 10e-3 + 1e-6);
    l.facts.row = 60000; /* 800 of them: 48 MB */
    NEAR(weft__card_price(&card, &l, false).memory, 10e-3);
    NEAR(weft__card_price(&card, &l, false).cache, 9e9 / 4e12);
    l.facts.row = 70000; /* 56 MB */
    NEAR(weft__card_price(&card, &l, false).memory, 20e-3);
}

/* Few bytes under way: 50 blocks of 256 work-items with 2 bytes each move 25,600 bytes in 0.7 us. */
static void test_latency(void **state) {
    const weft_card card = round_card();
    weft_launch l = launch_of(50);
    (void)state;
    l.facts.bytes = 25.6e6, l.facts.at_once = 2;
    weft_card_price p = weft__card_price(&card, &l, false);
    NEAR(p.waiting, 1000 * 0.7e-6);
    NEAR(p.seconds, 700e-6 + 1e-6);
    assert_int_equal(p.reason, WEFT_CARD_BLOCKS);
    l.groups[0] = 800;
    p = weft__card_price(&card, &l, false);
    NEAR(p.waiting, 1000 * 0.7e-6 / 16);
    assert_int_equal(p.reason, WEFT_CARD_LATENCY);
    l.facts.steps = 100; /* 100 rows, one after the other */
    NEAR(weft__card_price(&card, &l, false).waiting, 1000 * 0.7e-6 / 16 + 100 * 0.7e-6);
}

/* Operations of a unit, and the share of the units that works. */
static void test_compute(void **state) {
    const weft_card card = round_card();
    weft_launch l = launch_of(800);
    (void)state;
    l.facts.work[WEFT_UNIT_TENSOR] = 1e11;
    NEAR(weft__card_price(&card, &l, false).compute, 10e-3);
    assert_int_equal(weft__card_price(&card, &l, false).reason, WEFT_CARD_COMPUTE);
    l.groups[0] = 801; /* a second round for one block: 801 of 1,600 places */
    NEAR(weft__card_price(&card, &l, false).compute, 10e-3 * 1600 / 801);
    l.groups[0] = 25; /* a quarter of the units */
    NEAR(weft__card_price(&card, &l, false).compute, 40e-3);
    assert_int_equal(weft__card_price(&card, &l, false).reason, WEFT_CARD_BLOCKS);
    l.groups[0] = 800;
    l.facts.work[WEFT_UNIT_TENSOR] = 0, l.facts.work[WEFT_UNIT_ISSUE] = 7.5e10;
    NEAR(weft__card_price(&card, &l, false).instructions, 10e-3);
    l.facts.registers = 128; /* 2 blocks of 256 fit into 65,536 registers */
    assert_int_equal(weft__card_price(&card, &l, false).resident, 200);
    l.shared_bytes = 60 * 1024; /* one block */
    assert_int_equal(weft__card_price(&card, &l, false).resident, 100);
}

static void test_small(void **state) {
    const weft_card card = round_card();
    weft_launch l = launch_of(1);
    (void)state;
    l.facts.bytes = 64;
    assert_int_equal(weft__card_price(&card, &l, true).reason, WEFT_CARD_LAUNCH);
    assert_true(weft__card_price(&card, &l, true).seconds < 1.1e-6);
    weft_launch_facts fused = {.bytes = 0};
    for (int i = 0; i < 10; i++) weft__facts_join(&fused, &l.facts, false);
    assert_int_equal(fused.entries, 10);
    NEAR(fused.bytes, 640);
    l.facts = fused; /* each entry waits for the cache three times */
    assert_in_range(1e9 * weft__card_price(&card, &l, true).seconds, 1000 + 10 * 783, 1000 + 10 * 790);
    fused = (weft_launch_facts){.bytes = 0};
    for (int i = 0; i < 10; i++) weft__facts_join(&fused, &l.facts, true);
    assert_int_equal(fused.entries, 0);
}

/* cuBLASLt on an H200 against what is published for H100 and H200, in TFLOP/s. */
static void test_library(void **state) {
    static const struct { double n, low, high; } published[] = {{8192, 740, 800}, {4096, 690, 760}};
    weft_card card;
    (void)state;
    assert_int_equal(weft__card_find(NULL, "h200", &card), WEFT_OK);
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) {
        const double n = published[i].n, shape[] = {1, n, n, n};
        const double rate =
            1e-12 * card.rate[WEFT_UNIT_TENSOR] * weft__card_library_matmul(&card, WEFT_UNIT_TENSOR, shape);
        assert_true(rate > published[i].low && rate < published[i].high);
    }
    /* few tiles of a long sum: k is divided */
    const double gradient[] = {1, 768, 768, 65536};
    assert_true(weft__card_library_matmul(&card, WEFT_UNIT_TENSOR, gradient) > 0.5);
}

/* ---- descriptions ---- */

static void test_table(void **state) {
    weft_card card, found;
    int i = 0;
    (void)state;
    for (; weft__card_at(i, &card); i++) {
        assert_int_equal(weft__card_find(NULL, card.key, &found), WEFT_OK);
        assert_memory_equal(&card, &found, sizeof card);
        assert_true(card.capability >= 75 && card.units > 0 && card.l2 < card.memory);
        assert_true(card.rate[WEFT_UNIT_TENSOR] >= card.rate[WEFT_UNIT_F32]);
        /* a multiplication and an addition for each instruction; A100 has units for half of them */
        const double ratio = card.rate[WEFT_UNIT_F32] / (2 * card.rate[WEFT_UNIT_ISSUE]);
        assert_true(fabs(ratio * (card.capability == 80 ? 2 : 1) - 1) < 0.02);
        const weft_target target = weft__card_target(&card);
        assert_int_equal(target.capability, card.capability);
        assert_int_equal(target.units, card.units);
    }
    assert_int_equal(i, 6);
    assert_int_equal(weft__card_find(NULL, "RTX4090", &found), WEFT_OK);
    assert_int_equal(weft__card_find(NULL, "voodoo", &found), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(NULL), "h200, h100, a100, l4, rtx4090, rtx3060"));
}

static weft_status find_text(const char *text, weft_card *card) {
    char path[] = "/tmp/weft-card-XXXXXX";
    const int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), strlen(text));
    close(fd);
    const weft_status status = weft__card_find(NULL, path, card);
    unlink(path);
    return status;
}

static void test_file(void **state) {
    static const char *const whole = "{\"name\": \"mine\", \"capability\": 89, \"units\": 10, \"clock\": "
                                     "1000, \"memory\": 8, \"bandwidth\": 200,"
                                     " \"l2\": 4, \"f32\": 2.56, \"f64\": 0.04, \"tensor\": 5, \"tf32\": "
                                     "2.5, \"shared\": 99, \"threads\": 1536,"
                                     " \"blocks\": 24, \"libraries\": false}";
    static const struct {
        const char *text, *message;
    } bad[] = {{"{\"like\": \"h200\", \"unit\": 3}", "there is no key unit"},
               {"{\"like\": \"h300\"}", "\"like\" needs one of h200, h100"},
               {"{\"units\": 3}", "give \"like\", or the key capability"},
               {"{\"like\": \"l4\", \"units\": 0}", "give a positive number for units"},
               {"{\"like\": \"l4\", \"units\": \"3\"}", "give a positive number for units"},
               {"{\"like\": \"l4\", \"name\": 3}", "give a text for name"},
               {"{\"like\": \"l4\", \"libraries\": 1}", "give true or false for libraries"},
               {"[1]", "it is not a JSON object"},
               {"{\"like\": \n", "line 2: "}};
    weft_card card, l4;
    (void)state;
    assert_int_equal(find_text(whole, &card), WEFT_OK);
    assert_true(card.units == 10 && card.bandwidth == 200e9 && card.rate[WEFT_UNIT_TENSOR] == 5e12 &&
                !card.libraries);
    assert_string_equal(card.name, "mine");
    assert_int_equal(find_text("{\"like\": \"L4\", \"bandwidth\": 600}", &card), WEFT_OK);
    assert_int_equal(weft__card_find(NULL, "l4", &l4), WEFT_OK);
    assert_true(card.bandwidth == 2 * l4.bandwidth && card.units == l4.units && card.libraries);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(find_text(bad[i].text, &card), WEFT_ERR_FORMAT);
        if (!strstr(weft_last_error(NULL), bad[i].message))
            fail_msg("%s: %s", bad[i].text, weft_last_error(NULL));
    }
}

/* ---- plans ---- */

/* Prices y = x + 1 of n f32, and a matmul of bf16. */
static void test_plan(void **state) {
    const int64_t n = 1 << 26;
    weft_context *ctx;
    int count;
    (void)state;
    assert_int_equal(weft_open(&(weft_open_options){.device = "null:card:h200"}, &ctx), WEFT_OK);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *y = weft_add_scalar(weft_variable_new(ctx, "x", WEFT_F32, SHAPE(n), NULL), 1);
    assert_int_equal(weft_eval(&y, 1), WEFT_OK);
    const weft_null_price *p = weft__null_prices(ctx->device, &count);
    assert_int_equal(count, 1);
    assert_true(p[0].bytes == 8.0 * (double)n && !p[0].library);
    assert_string_equal(p[0].reason, "memory");
    NEAR(p[0].seconds, 8.0 * (double)n / (0.9 * 4.8e12) + 1.2e-6);
    weft_tensor *a = weft_variable_new(ctx, "a", WEFT_BF16, SHAPE(4096, 4096), NULL), *c = weft_matmul(a, a);
    assert_int_equal(weft_eval(&c, 1), WEFT_OK);
    p = weft__null_prices(ctx->device, &count);
    assert_int_equal(count, 1);
    assert_true(p[0].library);
    assert_string_equal(p[0].what, "matmul bf16 1x 4096x4096x4096 nn");
    assert_true(p[0].seconds > 2 * pow(4096, 3) / 989e12 && p[0].seconds < 2 * pow(4096, 3) / 600e12);
    weft_scope_close(scope);
    weft_close(ctx);
    assert_int_equal(weft_open(&(weft_open_options){.device = "null:card:none"}, &ctx), WEFT_ERR_ARGUMENT);
}

static weft_launch_facts met;

static void on_program(const weft_gpu_program *program, const weft_commands *commands) {
    (void)commands;
    assert_true(program->launches.count > 0);
    met = program->launches.list[0].facts;
}

static weft_launch_facts facts_of(weft_tensor *y) {
    met = (weft_launch_facts){.bytes = -1};
    assert_int_equal(weft_eval(&y, 1), WEFT_OK);
    return met;
}

/* What kernels move, by hand: their sources were read for the widths. */
static void test_facts(void **state) {
    enum { ROWS = 4096, WIDE = 50304 };
    const double n = (double)ROWS * WIDE;
    weft_context *ctx;
    (void)state;
    assert_int_equal(weft_open(&(weft_open_options){.device = "null:cuda"}, &ctx), WEFT_OK);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_variable_new(ctx, "x", WEFT_BF16, SHAPE(ROWS, WIDE), NULL);
    weft_tensor *y = weft_variable_new(ctx, "y", WEFT_F32, SHAPE(WIDE, ROWS), NULL);
    weft__null_watch = on_program;
    weft_launch_facts f = facts_of(weft_neg(x)); /* 8 elements of 2 bytes at once */
    assert_true(f.bytes == 4 * n && f.again == 0 && f.sums == 0);
    assert_true(f.width == 16 && f.allowed == 16 && f.at_once == 16);
    assert_true(f.work[WEFT_UNIT_ISSUE] > 2 * n && f.work[WEFT_UNIT_ISSUE] < 20 * n);
    f = facts_of(weft_softmax(x, -1)); /* the row stays in shared memory */
    assert_true(f.bytes == 4 * n && f.again == 0 && f.width == 16);
    f = facts_of(weft_cast(weft_transpose(y, 0, 1), WEFT_BF16)); /* elements of a column are not adjacent */
    assert_true(f.bytes == 6 * n && f.width < 16 && f.again == 0);
    f = facts_of(weft_sum(y, 0, false)); /* a work-item adds its own column */
    assert_true(f.width == 4 && f.allowed == 16);
    weft__null_watch = NULL;
    weft_scope_close(scope);
    weft_close(ctx);
}

/* What stands for a CUDA card if there is none has tensor cores and the shared memory of a card, too. */
static void test_stand_in(void **state) {
    weft_device_outline outline;
    weft_card h100;
    (void)state;
    assert_int_equal(weft__device_outline_of(NULL, "cuda", &outline), WEFT_OK);
    if (!outline.absent) return;
    assert_int_equal(weft__card_find(NULL, "h100", &h100), WEFT_OK);
    const weft_target wanted = weft__card_target(&h100);
    assert_int_equal(outline.target.capability, wanted.capability);
    assert_int_equal(outline.target.units, wanted.units);
    assert_int_equal(outline.target.local_bytes, wanted.local_bytes);
    assert_int_equal(outline.target.most_local_bytes, wanted.most_local_bytes);
    assert_int_equal(outline.target.groups_most, wanted.groups_most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),  cmocka_unit_test(test_again),   cmocka_unit_test(test_latency),
        cmocka_unit_test(test_compute), cmocka_unit_test(test_small),   cmocka_unit_test(test_library),
        cmocka_unit_test(test_table),   cmocka_unit_test(test_file),    cmocka_unit_test(test_plan),
        cmocka_unit_test(test_facts),   cmocka_unit_test(test_stand_in)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
