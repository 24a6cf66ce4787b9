/* Ranks whose cards are linked, by the simulated NCCL or RCCL: sums in the promised tree, parts of different
 * sizes, and what happens if a rank or NCCL fails. The ranks are threads, each with a card of its own. */
#include "unit/nn_help.h"

#include "compiler/program.h"
#include "gpu.h"
#include "unit/process/threads.h"

enum { CARDS = 4 };
enum { REST = 3 }; /* numbers behind those that are added up, which must stay */

/* Skips a test without four cards: those of the simulated driver, or real ones. */
static bool without_cards(void) {
    weft_device_description d;
    int cards = 0;
    if (test_without_gpu()) return true;
    for (int i = 0; weft_device_info(i, &d); i++)
        cards += d.present && strncmp(d.name, test_gpu(), strlen(test_gpu())) == 0;
    if (cards < CARDS) print_message("skipped, %d cards of %s, not %d\n", cards, test_gpu(), CARDS);
    return cards < CARDS;
}

static weft_context *open_card(int card) {
    char device[32];
    weft_context *ctx = NULL;
    snprintf(device, sizeof device, "%s:%d", test_gpu(), card);
    EXPECT(weft_open(&(weft_open_options){.device = device}, &ctx) == WEFT_OK);
    if (!ctx) abort();
    return ctx;
}

/* Opens the card of a rank, and links it. */
static weft_context *open_linked(weft_process_group *g) {
    weft_context *ctx = open_card(weft_process_group_rank(g));
    EXPECT(weft__link_devices(ctx, g) == WEFT_OK);
    return ctx;
}

static double read_number(const void *data, weft_dtype dtype, size_t i) {
    return dtype == WEFT_F64 ? ((const double *)data)[i] : (double)((const float *)data)[i];
}

/* ---- sums ---- */

/* Adds up numbers that begin behind others in their storage. */
static void add_linked(weft_process_group *g, void *user) {
    const sum_case *c = user;
    const int rank = weft_process_group_rank(g), size = weft_process_group_size(g);
    const size_t each = weft_dtype_size(c->dtype), first = 64 / each;
    weft_context *ctx = open_linked(g);
    int64_t whole = (int64_t)(first + c->count + REST), n = (int64_t)c->count;
    weft_tensor *all = weft_variable_new(ctx, "all", c->dtype, 1, &whole, NULL),
                *t = weft_variable_new(ctx, "numbers", c->dtype, 1, &n, NULL);
    char *own = make_numbers(c, rank), *data = calloc((size_t)whole, each);
    int other = 0;
    weft__variable_share(t, all, 64);
    memcpy(data + 64, own, c->count * each);
    EXPECT(ctx->link && weft_write(all, data, (size_t)whole * each) == WEFT_OK);
    EXPECT(weft__sum_shared(&t, 1, g, c->exact) == WEFT_OK);
    EXPECT(weft_read(all, data, (size_t)whole * each) == WEFT_OK);
    for (size_t i = 0; i < c->count; i++)
        other += read_number(data + 64, c->dtype, i) != tree_sum(0, size, i, c->dtype);
    /* NCCL has another order; the simulated one never has this one */
    EXPECT(c->exact ? other == 0 : size < 3 || other > 0 || !strstr(test_described().detail, "Test driver"));
    for (size_t i = 0; i < (size_t)whole; i++)
        EXPECT((i >= first && i < first + c->count) || read_number(data, c->dtype, i) == 0);
    free(own);
    free(data);
    weft_close(ctx);
}

static void test_linked_sums(void **state) {
    const sum_case cases[] = {
        {1, WEFT_F32, true}, {5003, WEFT_F64, true}, {20011, WEFT_F32, true}, {20011, WEFT_F32, false}};
    (void)state;
    if (without_cards()) return skip();
    for (int size = 2; size <= 4; size++)
        for (size_t i = 0; i < COUNT(cases); i++)
            run_threads(size, 60, add_linked, (void *)(uintptr_t)&cases[i]);
}

/* More numbers than are exchanged at once. */
static void test_pieces_of_sums(void **state) {
    const sum_case many = {(size_t)9 << 20, WEFT_F32, true};
    (void)state;
    if (without_cards()) return skip();
    run_threads(2, 60, add_linked, (void *)(uintptr_t)&many);
}

/* Two ranks with two cards each: the first card of a rank is linked. */
static void add_two_cards(weft_process_group *g, void *user) {
    const sum_case *c = user;
    const int rank = weft_process_group_rank(g);
    const int64_t n = (int64_t)c->count;
    weft_context *ctx[2];
    weft_tensor *list[2];
    float *data = NULL;
    int other = 0;
    for (int k = 0; k < 2; k++) {
        data = make_numbers(c, 2 * rank + k);
        ctx[k] = open_card(2 * rank + k);
        list[k] = weft_variable_new(ctx[k], "numbers", WEFT_F32, 1, &n, data);
        if (k == 0) free(data);
    }
    EXPECT(weft__link_devices(ctx[0], g) == WEFT_OK && ctx[0]->link);
    EXPECT(weft__sum_shared(list, 2, g, c->exact) == WEFT_OK);
    for (int k = 0; k < 2; k++) {
        EXPECT(weft_read(list[k], data, c->count * sizeof *data) == WEFT_OK);
        for (size_t i = 0; i < c->count; i++) other += (double)data[i] != tree_sum(0, 4, i, WEFT_F32);
        weft_close(ctx[k]);
    }
    EXPECT(other == 0);
    free(data);
}

static void test_cards_of_ranks(void **state) {
    const sum_case cases[] = {{5003, WEFT_F32, true}, {20011, WEFT_F32, true}};
    (void)state;
    if (without_cards()) return skip();
    for (size_t i = 0; i < COUNT(cases); i++) run_threads(2, 60, add_two_cards, (void *)(uintptr_t)&cases[i]);
}

/* ---- parts ---- */

static void gather_parts(weft_process_group *g, void *user) {
    const int64_t n = *(const int64_t *)user, part = 32, first = 16, whole = first + n + REST;
    const int rank = weft_process_group_rank(g);
    weft_context *ctx = open_linked(g);
    float data[256];
    weft_tensor *t = weft_variable_new(ctx, "parts", WEFT_F32, 1, &whole, NULL);
    for (int64_t i = 0; i < whole; i++) data[i] = (float)(i < first || i >= first + n ? -1 : 1000 * rank + i);
    EXPECT(weft_write(t, data, (size_t)whole * sizeof *data) == WEFT_OK);
    EXPECT(weft__parts_shared(t, first, n, part, g) == WEFT_OK);
    EXPECT(weft_read(t, data, (size_t)whole * sizeof *data) == WEFT_OK);
    for (int64_t i = 0; i < whole; i++)
        EXPECT(data[i] == (float)(i < first || i >= first + n ? -1 : 1000 * ((i - first) / part) + i));
    weft_close(ctx);
}

static void test_gathered_parts(void **state) {
    static const int64_t sizes[] = {96, 90, 40, 32}; /* of three ranks: the last ones have less, or nothing */
    (void)state;
    if (without_cards()) return skip();
    for (size_t i = 0; i < COUNT(sizes); i++) run_threads(3, 60, gather_parts, (void *)(uintptr_t)&sizes[i]);
}

/* ---- ranks without a link ---- */

/* A rank on another device: all use the host. */
static void mix_devices(weft_process_group *g, void *user) {
    (void)user;
    const int rank = weft_process_group_rank(g);
    weft_context *ctx = NULL;
    const int64_t n = 1;
    float value = (float)(rank + 1);
    EXPECT(weft_open(&(weft_open_options){.device = rank ? "cpu" : test_gpu()}, &ctx) == WEFT_OK);
    EXPECT(weft__link_devices(ctx, g) == WEFT_OK && !ctx->link);
    weft_tensor *t = weft_variable_new(ctx, "number", WEFT_F32, 1, &n, &value);
    EXPECT(weft__sum_shared(&t, 1, g, true) == WEFT_OK);
    EXPECT(weft_item(t) == 3);
    weft_close(ctx);
}

static void test_other_devices(void **state) {
    (void)state;
    if (without_cards()) return skip();
    run_threads(2, 60, mix_devices, NULL);
}

/* The last rank does not take part. The others give up when their time is over, and can still close. */
static void leave_rank(weft_process_group *g, void *user) {
    (void)user;
    weft_context *ctx = open_linked(g);
    const int64_t n = 10;
    weft_tensor *t = weft_variable_new(ctx, "numbers", WEFT_F32, 1, &n, NULL);
    EXPECT(weft_process_group_barrier(g) == WEFT_OK);
    weft_process_group_set_timeout(g, 0.5);
    weft__process_group_purpose(g, 7, "the gradients");
    if (weft_process_group_rank(g) + 1 < weft_process_group_size(g)) {
        EXPECT(weft__sum_shared(&t, 1, g, true) == WEFT_ERR_TIMEOUT);
        EXPECT(strstr(weft_last_error(NULL), "step 7: waited 0")); /* the first of them calls the others */
        EXPECT(strstr(weft_last_error(NULL), " s for the gradients: no answer from rank 2 ("));
        EXPECT(weft__sum_shared(&t, 1, g, true) == WEFT_ERR_TIMEOUT); /* the same again, at once */
        weft_close(ctx);
    } else {
        const struct timespec long_enough = {6, 0};
        nanosleep(&long_enough, NULL);
        weft__process_link_close(ctx->link); /* it waits for the others in vain */
        ctx->link = NULL;
        weft_close(ctx);
    }
}

static void test_missing_rank(void **state) {
    (void)state;
    if (without_cards()) return skip();
    run_threads(3, 60, leave_rank, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linked_sums),    cmocka_unit_test(test_pieces_of_sums),
        cmocka_unit_test(test_cards_of_ranks), cmocka_unit_test(test_gathered_parts),
        cmocka_unit_test(test_other_devices),  cmocka_unit_test(test_missing_rank),
    };
    setenv("FAKE_CUDA_CARDS", "4", 0); /* CARDS */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
