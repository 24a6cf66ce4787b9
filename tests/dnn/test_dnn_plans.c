/* src/device/cuda/dnn*: compares what Weft declares of cuDNN with cuDNN's headers, if they are installed. If
 * the library is installed, makes plans for attention and convolutions, without a GPU, for two GPUs that are
 * described. Checks that cuDNN accepts the graphs, needs as much memory as Weft expects, and can save and
 * restore plans.
 *
 * Nothing is computed here (see tests/cuda/dnn.h). Skipped without the library. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#if __has_include(<cudnn_graph.h>) && __has_include(<cuda_runtime_api.h>)
#include <cudnn_graph.h>
#define HAS_HEADERS
#endif
#include <weft/weft.h>

#include "device/cuda/dnn/dnn_attention.h"
#include "device/cuda/dnn/dnn_convolution.h"

#ifdef HAS_HEADERS
#define DNN_FUNCTION(result, name, arguments)                                                                \
    _Static_assert(__builtin_types_compatible_p(__typeof__(weft__dnn.name), __typeof__(&name)),              \
                   #name " is declared otherwise");
#define DNN_CONSTANT(name, value) _Static_assert((name) == (value), #name " has another value");
#include "device/cuda/dnn/dnn.def"
#undef DNN_FUNCTION
#undef DNN_CONSTANT
#endif

#ifdef WEFT_SANITIZED
/* At exit, cuDNN still holds memory of libraries that it has closed, so no suppression can name them. */
const char *__asan_default_options(void);
const char *__asan_default_options(void) { return "detect_leaks=0"; }
#endif

enum { SKIPPED = 77 };
#define MEMORY ((int64_t)4 << 30) /* limit for a plan's memory */

/* An H200 and an A100, in cuDNN's description format. */
#define CARD(version, name, units, shared, clock, memory_clock, bus, l2, memory)                             \
    "{\"deviceVer\":" version ",\"driverVer\":13000,\"cudaDeviceId\":0,"                                     \
    "\"maxGridSize\":[2147483647,65535,65535],\"maxBlockSize\":[1024,1024,64],\"regsPerBlock\":65536,"       \
    "\"multiProcessorCount\":" units ",\"warpSize\":32,\"maxSharedMemoryPerBlock\":49152,"                   \
    "\"maxSharedMemoryPerBlockOptin\":" shared ",\"reservedSharedMemoryPerBlock\":1024,"                     \
    "\"maxRegistersPerSM\":65536,\"maxCtasPerSM\":32,\"maxThreadsPerBlock\":1024,"                           \
    "\"maxThreadsPerSM\":2048,\"pciDeviceId\":0,\"isTccDriver\":0,\"supportCoopLaunch\":1,"                  \
    "\"smClockRateKHz\":" clock ",\"memClockRateKHz\":" memory_clock ",\"memoryBusWidth\":" bus              \
    ",\"l2CacheSize\":" l2 ","                                                                               \
    "\"deviceName\":\"" name "\",\"totalGlobalMem\":" memory "}"

typedef struct card {
    int capability;
    const char *json;
    weft_dnn_graph descriptors;
    weft_dnn_card card;
} card;
static card cards[] = {
    {.capability = 90,
     .json = CARD("900", "NVIDIA H200", "132", "232448", "1980000", "3201000", "6144", "62914560",
                  "150754820096")},
    {.capability = 80,
     .json = CARD("800", "NVIDIA A100", "108", "166912", "1410000", "1593000", "5120", "41943040",
                  "85899345920")},
};
enum { CARDS = sizeof cards / sizeof *cards };

static weft_context *ctx;

static int open_cards(void **state) {
    (void)state;
    for (card *c = cards; c < cards + CARDS; c++) {
        c->card.properties = weft__dnn_properties(&c->descriptors, c->json);
        if (c->descriptors.error) return print_error("%s\n", c->descriptors.message), 1;
    }
    return weft_open(&(weft_open_options){.device = "cpu"}, &ctx) == WEFT_OK ? 0 : 1;
}

static int close_cards(void **state) {
    (void)state;
    for (card *c = cards; c < cards + CARDS; c++) weft__dnn_graph_free(&c->descriptors);
    weft_close(ctx);
    return 0;
}

/* q, k and v packed as (batch, t, 3, heads, d), as one matmul makes them. */
static weft_heavy_attention packed(weft_dtype dtype, int64_t batch, int64_t heads, int64_t t, int64_t d) {
    const int64_t c = heads * d, in[3] = {3 * c * t, d, 3 * c}, out[3] = {c * t, d, c};
    weft_heavy_attention at = {.dtype = (uint8_t)dtype,
                               .causal = true,
                               .scale = 0.125,
                               .batch = batch,
                               .heads = heads,
                               .t_q = t,
                               .t_k = t,
                               .d = d};
    int64_t *const ins[] = {at.q, at.k, at.v, at.dq, at.dk, at.dv};
    for (int i = 0; i < 6; i++) memcpy(ins[i], in, sizeof in);
    memcpy(at.out, out, sizeof out);
    memcpy(at.dout, out, sizeof out);
    return at;
}

/* A plan that is saved and restored must need the same memory. */
static void check_kept(const card *c, weft_dnn_plan *plan) {
    size_t bytes = 0;
    weft_dnn_plan again;
    char *saved = weft__dnn_plan_save(ctx, plan, &bytes);
    assert_non_null(saved);
    assert_true(bytes > 500);
    assert_true(weft__dnn_plan_load(&c->card, saved, bytes, &again));
    assert_int_equal(again.workspace, plan->workspace);
    weft__dnn_plan_free(&again);
    saved[bytes / 2] = 0;
    assert_false(weft__dnn_plan_load(&c->card, saved, bytes / 2, &again));
    weft__free(ctx, saved);
    weft__dnn_plan_free(plan);
}

static weft_dnn_plan plan_attention(const card *c, const weft_dnn_attention *part, const char *what) {
    char message[WEFT_DNN_MESSAGE];
    weft_dnn_graph graph = {.error = 0};
    weft_dnn_plan plan;
    const weft_dnn_request request = {.workspace = MEMORY,
                                      .notes = part->fast ? 0 : 1u << CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC};
    weft__dnn_attention_graph(&graph, part);
    if (graph.error) fail_msg("%s: %s", what, graph.message);
    assert_int_equal(graph.n_operations, (part->at.backward ? 17 + part->fast : 10) + 4 * part->at.causal);
    if (!weft__dnn_plan(&c->card, &graph, &request, &plan, message)) fail_msg("%s: %s", what, message);
    weft__dnn_graph_free(&graph);
    print_message("%d, %s: %lld bytes of memory\n", c->capability, what, (long long)plan.workspace);
    return plan;
}

static weft_dnn_attention part_of(const card *c, const weft_heavy_attention *at, bool fast, int64_t memory) {
    char message[WEFT_DNN_MESSAGE];
    weft_dnn_attention part;
    if (!weft__dnn_attention_part(at, c->capability, weft__dnn_version(), fast, memory, &part, message))
        fail_msg("%s", message);
    return part;
}

static void test_forward(void **state) {
    (void)state;
    for (const card *c = cards; c < cards + CARDS; c++) {
        weft_heavy_attention at = packed(WEFT_BF16, 8, 12, 1024, 64);
        weft_dnn_attention part = part_of(c, &at, false, 0);
        weft_dnn_plan plan = plan_attention(c, &part, "forward, masked, bf16");
        assert_true(plan.workspace <= 4096);
        check_kept(c, &plan);
        at = packed(WEFT_F16, 1, 1, 64, 128); /* one of each, and no mask */
        at.causal = false;
        part = part_of(c, &at, false, 0);
        plan = plan_attention(c, &part, "forward, f16");
        check_kept(c, &plan);
    }
}

/* The backward pass with a fixed order keeps the gradient of the scores. weft__dnn_attention_part must count
 * this memory. */
static void test_backward(void **state) {
    (void)state;
    for (const card *c = cards; c < cards + CARDS; c++) {
        weft_heavy_attention at = packed(WEFT_BF16, 8, 12, 1024, 64);
        const int64_t scores = 2 * at.batch * at.heads * at.t_q * at.t_k;
        at.backward = true;
        weft_dnn_attention part = part_of(c, &at, false, MEMORY);
        weft_dnn_plan plan = plan_attention(c, &part, "backward, masked, in one order");
        assert_in_range(plan.workspace, scores, scores + 4096);
        check_kept(c, &plan);
        part = part_of(c, &at, true, MEMORY);
        plan = plan_attention(c, &part, "backward, masked, fast");
        assert_true(plan.workspace <= 2 * part.gathered);
        check_kept(c, &plan);
    }
}

/* With less memory, the gradients are computed in parts: parts of the batch, then of the heads. With too
 * little, the plan is declined. */
static void test_parts(void **state) {
    (void)state;
    char message[WEFT_DNN_MESSAGE];
    weft_heavy_attention at = packed(WEFT_BF16, 12, 6, 256, 64);
    const int64_t pair = 2 * 256 * 256 + 4 * 256;
    weft_dnn_attention part;
    at.backward = true;
    part = part_of(&cards[0], &at, false, 5 * 6 * pair);
    assert_int_equal(part.at.batch, 4);
    assert_int_equal(part.batches, 3);
    assert_int_equal(part.heads, 1);
    assert_int_equal(part.dots, 4 * 6 * 256 * 4);
    part = part_of(&cards[0], &at, false, 4 * pair);
    assert_int_equal(part.at.batch, 1);
    assert_int_equal(part.batches, 12);
    assert_int_equal(part.at.heads, 3);
    assert_int_equal(part.heads, 2);
    weft_dnn_plan plan = plan_attention(&cards[0], &part, "backward of three heads");
    assert_in_range(plan.workspace, 3 * 2 * 256 * 256, 3 * 2 * 256 * 256 + 4096);
    weft__dnn_plan_free(&plan);
    assert_false(weft__dnn_attention_part(&at, 90, 91900, false, pair - 1, &part, message));
    assert_non_null(strstr(message, "bytes"));
}

static void test_refused(void **state) {
    (void)state;
    char message[WEFT_DNN_MESSAGE];
    weft_dnn_attention part;
    weft_heavy_attention cases[9];
    for (int i = 0; i < 9; i++) cases[i] = packed(WEFT_BF16, 2, 2, 128, 64);
    const char *const why[] = {"f16",     "cache", "dropout",  "multiple of 8", "too many",
                               "queries", "128",   "16 bytes", "empty"};
    cases[0].dtype = WEFT_F32;
    cases[1].cached = true;
    cases[2].dropout = 0.1;
    cases[3].d = 60;
    cases[4].d = 264;
    cases[5].t_k = 256;
    cases[6].t_q = cases[6].t_k = 100;
    cases[7].k[2] = 3 * 128 + 4;
    cases[8].batch = 0;
    for (int i = 0; i < 9; i++) {
        assert_false(weft__dnn_attention_part(&cases[i], 90, 91002, false, MEMORY, &part, message));
        if (!strstr(message, why[i])) fail_msg("%d: %s", i, message);
    }
    assert_true(weft__dnn_attention_part(&cases[6], 90, 91501, false, MEMORY, &part, message));
    weft_heavy_attention wide = packed(WEFT_BF16, 2, 2, 128, 256);
    assert_true(weft__dnn_attention_part(&wide, 90, 91900, false, MEMORY, &part, message));
    assert_false(weft__dnn_attention_part(&wide, 80, 91900, false, MEMORY, &part, message));
    wide.d = 64;
    assert_false(weft__dnn_attention_part(&wide, 75, 91900, false, MEMORY, &part, message));
}

static void test_versions(void **state) {
    (void)state;
    char why[240];
    weft__dnn_judge(91001, why);
    assert_non_null(strstr(why, "cuDNN 9.10.1 computes wrong gradients"));
    weft__dnn_judge(90701, why);
    assert_non_null(strstr(why, "cuDNN 9.7.1 is too old"));
    weft__dnn_judge(91002, why);
    assert_string_equal(why, "");
}

/* Strict f32 must not use tensor cores: engines that do are skipped, although cuDNN lists them first. */
static void test_convolution(void **state) {
    (void)state;
    for (const card *c = cards; c < cards + CARDS; c++)
        for (int pass = 0; pass < 3; pass++)
            for (int wide = 0; wide < 2; wide++) {
                const weft_dnn_convolution at = {.pass = (weft_conv_pass)pass,
                                                 .dtype = wide ? WEFT_F32 : WEFT_BF16,
                                                 .n = 16,
                                                 .height = 28,
                                                 .width = 28,
                                                 .c = 64,
                                                 .k = 128,
                                                 .r = 3,
                                                 .s = 3,
                                                 .groups = 1 + 3 * (pass == WEFT_CONV_FORWARD),
                                                 .stride = {2, 2},
                                                 .padding = {1, 1},
                                                 .dilation = {1, 1}};
                char message[WEFT_DNN_MESSAGE];
                weft_dnn_graph graph = {.error = 0};
                weft_dnn_plan plan;
                weft_dnn_request request = {.workspace = MEMORY, .notes = weft__dnn_convolution_notes(&at)};
                weft__dnn_convolution_graph(&graph, &at);
                if (graph.error) fail_msg("%s", graph.message);
                if (!weft__dnn_plan(&c->card, &graph, &request, &plan, message))
                    fail_msg("%d, pass %d, %s: %s", c->capability, pass, wide ? "f32" : "bf16", message);
                weft__dnn_graph_free(&graph);
                check_kept(c, &plan);
            }
}

/* Counts the plans, at most PLANS_MOST. */
enum { PLANS_MOST = 8 };
typedef struct tally {
    int plans;
    int64_t workspace; /* the largest */
} tally;

static bool count_plan(void *user, weft_dnn_plan *plan) {
    tally *all = user;
    if (!plan) return all->plans > 0;
    if (plan->workspace > all->workspace) all->workspace = plan->workspace;
    weft__dnn_plan_free(plan);
    return ++all->plans == PLANS_MOST;
}

/* cuDNN proposes several engines for a convolution, so there is a choice. All of them meet the request. */
static void test_engines(void **state) {
    (void)state;
    for (const card *c = cards; c < cards + CARDS; c++)
        for (int pass = 0; pass < 3; pass++) {
            const weft_dnn_convolution at = {.pass = (weft_conv_pass)pass,
                                             .dtype = WEFT_BF16,
                                             .n = 32,
                                             .height = 56,
                                             .width = 56,
                                             .c = 64,
                                             .k = 64,
                                             .r = 3,
                                             .s = 3,
                                             .groups = 1,
                                             .stride = {1, 1},
                                             .padding = {1, 1},
                                             .dilation = {1, 1}};
            char message[WEFT_DNN_MESSAGE];
            weft_dnn_graph graph = {.error = 0};
            tally all = {0};
            const weft_dnn_request request = {.workspace = MEMORY, .notes = weft__dnn_convolution_notes(&at)};
            weft__dnn_convolution_graph(&graph, &at);
            assert_true(weft__dnn_plans(&c->card, &graph, &request, count_plan, &all, message));
            weft__dnn_graph_free(&graph);
            print_message("%d, convolution, pass %d: %d engines, at most %lld bytes\n", c->capability, pass,
                          all.plans, (long long)all.workspace);
            assert_true(all.plans > 1 && all.workspace <= MEMORY);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_versions), cmocka_unit_test(test_refused), cmocka_unit_test(test_forward),
        cmocka_unit_test(test_backward), cmocka_unit_test(test_parts),   cmocka_unit_test(test_convolution),
        cmocka_unit_test(test_engines),
    };
    const char *reason = weft__dnn_open();
    if (reason) {
        printf("skipped: %s\n", reason);
        return SKIPPED;
    }
    printf("cuDNN %d\n", weft__dnn_version());
    return cmocka_run_group_tests(tests, open_cards, close_cards);
}
