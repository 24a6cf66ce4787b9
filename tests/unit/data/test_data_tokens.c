/* Files of tokens: all formats, several files, refusals. Batches of memory-mapped tokens must equal the
 * batches of the same ids in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/loader.h>
#include <weft/weft.h>

#include "unit/failing_alloc.h"
#include "data/tokens.h"
#include "unit/io_scratch.h"

enum { COUNT = 23, HEADER = 1024 };

static int32_t ids[COUNT];

static int setup(void **state) {
    for (int i = 0; i < COUNT; i++) ids[i] = i == 7 ? 65535 : 100 + i;
    return scratch_setup(state);
}

static weft_tokens *map(const char *path) {
    weft_tokens *t = NULL;
    if (weft_tokens_open(NULL, path, &t) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    return t;
}

static void assert_tokens(const weft_tokens *t, const int32_t *wanted, int64_t count) {
    assert_int_equal(weft_tokens_count(t), count);
    for (int64_t first = 0; first <= count; first++) {
        for (size_t n = 0; n < COUNT + 2; n++) {
            int32_t got[COUNT + 2] = {0};
            size_t left = (size_t)(count - first), read = weft_tokens_read(t, first, n, got);
            assert_int_equal(read, n < left ? n : left);
            assert_memory_equal(got, wanted + first, read * sizeof *got);
        }
    }
    assert_int_equal(weft_tokens_read(t, -1, 1, (int32_t[1]){0}), 0);
}

/* Writes each id as two bytes. */
static void write_raw(const char *name, const int32_t *from, size_t count) {
    uint8_t bytes[2 * COUNT];
    for (size_t i = 0; i < 2 * count; i++) bytes[i] = (uint8_t)(from[i / 2] >> i % 2 * 8);
    assert_true(spill(in_scratch(name), bytes, 2 * count));
}

static void test_forms(void **state) {
    (void)state;
    size_t bytes = 0;
    assert_int_equal(weft_tokens_write(NULL, in_scratch("one.bin"), ids, COUNT), WEFT_OK);
    char *file = slurp(in_scratch("one.bin"), &bytes);
    assert_int_equal(bytes, HEADER + 2 * COUNT);
    assert_memory_equal(file, "\x88\xd8\x34\x01\1\0\0\0\x17\0\0\0", 12); /* 20240520, 1, 23 */
    assert_memory_equal(file + HEADER, "\x64\0\x65\0", 4);
    free(file);
    weft_tokens *t = map(in_scratch("one.bin"));
    assert_tokens(t, ids, COUNT);
    assert_int_equal(weft_tokens_largest(t), 65535);
    uint64_t hash = weft_tokens_hash(t);
    weft_tokens_free(t);
    write_raw("raw.bin", ids, COUNT);
    t = map(in_scratch("raw.bin"));
    assert_tokens(t, ids, COUNT);
    assert_true(weft_tokens_hash(t) == hash);
    weft_tokens_free(t);
    write_raw("raw.bin", ids, COUNT - 1);
    t = map(in_scratch("raw.bin"));
    assert_true(weft_tokens_hash(t) != hash);
    weft_tokens_free(t);
    weft_tokens_free(NULL);
}

static void expect(const char *name, weft_status wanted, const char *message) {
    weft_tokens *t = NULL;
    weft_status status = weft_tokens_open(NULL, in_scratch(name), &t);
    if (status != wanted || !strstr(weft_last_error(NULL), message) || t)
        fail_msg("%s: %s, '%s', not '%s'", name, weft_status_name(status), weft_last_error(NULL), message);
}

/* Tokens beyond 16 bits: the format of llm.c for Llama 3. */
static void test_wide(void **state) {
    (void)state;
    static const int32_t large[] = {5, 128255, 65535, 65536, 1 << 24, 0, 7, 151935};
    int32_t all[COUNT + 8];
    size_t bytes = 0;
    assert_int_equal(weft_tokens_write(NULL, in_scratch("wide-1.bin"), large, 8), WEFT_OK);
    char *file = slurp(in_scratch("wide-1.bin"), &bytes);
    assert_int_equal(bytes, HEADER + 4 * 8);
    assert_memory_equal(file, "\xa1\xd9\x34\x01\7\0\0\0\x08\0\0\0", 12); /* 20240801, 7, 8 */
    assert_memory_equal(file + HEADER, "\5\0\0\0\xff\xf4\1\0", 8);
    weft_tokens *t = map(in_scratch("wide-1.bin"));
    assert_tokens(t, large, 8);
    assert_int_equal(weft_tokens_largest(t), 1 << 24);
    weft_tokens_free(t);
    assert_int_equal(weft_tokens_write(NULL, in_scratch("wide-0.bin"), ids, COUNT), WEFT_OK); /* of 16 bits */
    memcpy(all, ids, sizeof ids);
    memcpy(all + COUNT, large, sizeof large);
    t = map(in_scratch("wide-?.bin"));
    assert_int_equal(weft_tokens_count(t), COUNT + 8);
    for (int i = 0; i < COUNT + 8; i++) {
        int32_t one = -1;
        assert_int_equal(weft_tokens_read(t, i, 1, &one), 1);
        assert_int_equal(one, all[i]);
    }
    weft_tokens_free(t);
    file[HEADER + 7] = 1; /* 16,905,471 */
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_FORMAT, "its largest token is 16905471; expected at most 16777216");
    file[HEADER + 7] = (char)0x80;
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_FORMAT, "its largest token is 2147611903");
    assert_true(spill(in_scratch("bad.bin"), file, bytes - 2));
    expect("bad.bin", WEFT_ERR_FORMAT, "promises 8 tokens, but 30 bytes follow it: it was cut");
    file[8] = 7;
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_FORMAT, "promises 7 tokens, but 32 bytes follow it: expected four");
    file[4] = 1;
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_UNSUPPORTED, "version 1 of the format, but this Weft reads 7");
    free(file);
}

/* Files of either format, which are read in the order of their names. */
static void write_parts(void) {
    assert_int_equal(weft_tokens_write(NULL, in_scratch("part-00.bin"), ids, 5), WEFT_OK);
    write_raw("part-01.bin", ids + 5, 1);
    assert_int_equal(weft_tokens_write(NULL, in_scratch("part-02.bin"), ids + 6, 1), WEFT_OK);
    assert_int_equal(weft_tokens_write(NULL, in_scratch("part-10.bin"), ids + 7, COUNT - 7), WEFT_OK);
}

static void test_patterns(void **state) {
    (void)state;
    write_parts();
    weft_tokens *t = map(in_scratch("part-*.bin"));
    assert_tokens(t, ids, COUNT);
    weft_tokens_free(t);
    t = map(in_scratch("part-0[01].bin"));
    assert_tokens(t, ids, 6);
    weft_tokens_free(t);
    write_raw("odd[name].bin", ids, 3); /* a file name is not taken for a pattern */
    t = map(in_scratch("odd[name].bin"));
    assert_tokens(t, ids, 3);
    weft_tokens_free(t);
}

/* 32-bit tokens without a header would be read as 16-bit ones. */
static void test_seems_wide(void **state) {
    (void)state;
    static uint16_t halves[4000];
    for (uint32_t i = 0; i < 2000; i++) {
        halves[2 * i] = (uint16_t)(i * 7919);
        halves[2 * i + 1] = (uint16_t)(i % 2);
    }
    assert_true(spill(in_scratch("bad.bin"), halves, sizeof halves));
    expect("bad.bin", WEFT_ERR_FORMAT, "bad.bin: every second number is below 256");
    halves[1] = 300;
    assert_true(spill(in_scratch("bad.bin"), halves, sizeof halves));
    weft_tokens_free(map(in_scratch("bad.bin")));
}

static void test_gap(void **state) {
    (void)state;
    static const struct {
        const char *paths[4], *missing;
    } cases[] = {{{"a/t_00.bin", "a/t_01.bin", "a/t_02.bin"}, NULL},
                 {{"a/t_00.bin", "a/t_01.bin", "a/t_03.bin", "a/t_09.bin"}, "a/t_02.bin"},
                 {{"a/t_0098.tar", "a/t_0100.tar"}, "a/t_0099.tar"},
                 {{"a/t_1.bin", "a/t_2.bin", "a/u_4.bin"}, NULL},
                 {{"a1/x.bin", "a3/y.bin"}, NULL},
                 {{"9.bin", "12.bin"}, NULL},
                 {{"t_00000000000000000001.bin", "t_00000000000000000003.bin"}, NULL},
                 {{"a/t_7.bin"}, NULL}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char *paths[4] = {0};
        size_t count = 0;
        for (; count < 4 && cases[i].paths[count]; count++) paths[count] = strdup(cases[i].paths[count]);
        char *gap = weft__numbered_gap(NULL, paths, count);
        if (!gap != !cases[i].missing || (gap && strcmp(gap, cases[i].missing) != 0))
            fail_msg("case %zu: '%s'", i, gap ? gap : "none");
        weft__free(NULL, gap);
        for (size_t k = 0; k < count; k++) free(paths[k]);
    }
}

static void test_range(void **state) {
    (void)state;
    write_parts();
    weft_tokens *t = map(in_scratch("part-{00..02}.bin"));
    assert_tokens(t, ids, 7);
    weft_tokens_free(t);
    t = map(in_scratch("part-{10..10}.bin"));
    assert_int_equal(weft_tokens_count(t), COUNT - 7);
    weft_tokens_free(t);
    expect("part-{00..03}.bin", WEFT_ERR_IO, "part-03.bin: this file of ");
    expect("part-{0..2}.bin", WEFT_ERR_IO, "part-0.bin: this file of ");
    expect("part-{2..1}.bin", WEFT_ERR_ARGUMENT, "a range goes from the smaller number");
    expect("part-{0..65536}.bin", WEFT_ERR_ARGUMENT, "at most 65536 files");
    expect("part-{0,1}.bin", WEFT_ERR_IO, "part-{0,1}.bin");
    expect("part-{..1}.bin", WEFT_ERR_IO, "part-{..1}.bin");
    expect("part-{0..}.bin", WEFT_ERR_IO, "part-{0..}.bin");
    expect("part-{0..1.bin", WEFT_ERR_IO, "part-{0..1.bin");
    write_raw("odd{0..1}.bin", ids, 3); /* a file name is not taken for a range */
    t = map(in_scratch("odd{0..1}.bin"));
    assert_tokens(t, ids, 3);
    weft_tokens_free(t);
    write_raw("nine-9.bin", ids, 1);
    write_raw("nine-10.bin", ids + 1, 1);
    t = map(in_scratch("nine-{9..10}.bin"));
    assert_tokens(t, ids, 2);
    weft_tokens_free(t);
}

static void test_refused(void **state) {
    (void)state;
    size_t bytes = 0;
    assert_int_equal(weft_tokens_write(NULL, in_scratch("whole.bin"), ids, COUNT), WEFT_OK);
    char *file = slurp(in_scratch("whole.bin"), &bytes);
    assert_true(spill(in_scratch("bad.bin"), file, bytes - 2));
    expect("bad.bin", WEFT_ERR_FORMAT, "promises 23 tokens, but 44 bytes follow it: it was cut");
    assert_true(spill(in_scratch("bad.bin"), file, bytes - 1));
    expect("bad.bin", WEFT_ERR_FORMAT, "it was cut");
    assert_true(spill(in_scratch("bad.bin"), file, 1000));
    expect("bad.bin", WEFT_ERR_FORMAT, "its header alone has 1024");
    file[4] = 7;
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_UNSUPPORTED, "version 7 of the format");
    file[4] = 1, file[8] = 22;
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_FORMAT, "promises 22 tokens, but 46 bytes follow it: expected two");
    file[11] = (char)0x80;
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_FORMAT, "promises -2147483626 tokens");
    file[0]++; /* another of llm.c's formats */
    assert_true(spill(in_scratch("bad.bin"), file, bytes));
    expect("bad.bin", WEFT_ERR_FORMAT, "begins with the number 20240521");
    assert_true(spill(in_scratch("bad.bin"), "abc", 3));
    expect("bad.bin", WEFT_ERR_FORMAT, "3 bytes; a file of 16-bit tokens has an even number");
    assert_true(spill(in_scratch("bad.bin"), "", 0));
    expect("bad.bin", WEFT_ERR_FORMAT, "is empty");
    assert_int_equal(weft_tokens_write(NULL, in_scratch("bad.bin"), ids, 0), WEFT_OK);
    expect("bad.bin", WEFT_ERR_FORMAT, "its header promises no tokens: remove the file, or write it again");
    expect("none.bin", WEFT_ERR_IO, "none.bin");
    expect("none-*.bin", WEFT_ERR_IO, "there is no such file");
    expect(".", WEFT_ERR_IO, "give a pattern");
    free(file);
    assert_int_equal(weft_tokens_write(NULL, in_scratch("large.bin"), (int32_t[]){1, (1 << 24) + 1}, 2),
                     WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(NULL), "token 1 is 16777217, outside 0 to 16777216"));
    assert_int_equal(weft_tokens_write(NULL, in_scratch("large.bin"), (int32_t[]){-1}, 1), WEFT_ERR_INDEX);
    assert_int_not_equal(access(in_scratch("large.bin"), F_OK), 0);
}

/* Compares the batches of a loader over `mapped` tokens, from token `first` on, with those of a loader over
 * the ids. */
static void assert_same_batches(weft_context *ctx, const weft_tokens *mapped, int first, int count,
                                const weft_loader_options *options) {
    enum { CONTEXT = 4 };
    weft_loader *a = NULL, *b = NULL;
    assert_int_equal(weft_loader_tokens(ctx, ids + first, (size_t)count, CONTEXT, options, &a), WEFT_OK);
    assert_int_equal(weft_loader_mapped(ctx, mapped, first, count, CONTEXT, options, &b), WEFT_OK);
    assert_int_equal(weft_loader_batches(a), weft_loader_batches(b));
    assert_int_equal(weft_loader_on_device(a), weft_loader_on_device(b));
    for (uint64_t p = 0; p < 12; p++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_batch of[2];
        int32_t x[2][3 * CONTEXT], y[2][3 * CONTEXT];
        assert_int_equal(weft_loader_get(a, p, &of[0]), WEFT_OK);
        assert_int_equal(weft_loader_get(b, p, &of[1]), WEFT_OK);
        for (int i = 0; i < 2; i++) {
            assert_int_equal(weft_read(of[i].x, x[i], sizeof x[i]), WEFT_OK);
            assert_int_equal(weft_read(of[i].y, y[i], sizeof y[i]), WEFT_OK);
        }
        assert_memory_equal(x[0], x[1], sizeof x[0]);
        assert_memory_equal(y[0], y[1], sizeof y[0]);
        assert_int_equal(of[0].count, of[1].count);
        weft_scope_close(scope);
    }
    weft_loader_free(a);
    weft_loader_free(b);
}

static void test_batches(void **state) {
    (void)state;
    weft_context *ctx = NULL;
    weft_loader *loader = NULL;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu", .seed = 7}, &ctx), WEFT_OK);
    write_parts();
    weft_tokens *t = map(in_scratch("part-*.bin"));
    for (int i = 0; i < 8; i++) {
        const weft_loader_options options = {.batch = 3, .in_order = i & 1, .device_bytes = i & 2 ? -1 : 0};
        if (i & 4)
            assert_same_batches(ctx, t, 3, 17, &options);
        else
            assert_same_batches(ctx, t, 0, COUNT, &options);
    }
    const weft_loader_options one = {.batch = 1};
    assert_int_equal(weft_loader_mapped(ctx, t, 20, 4, 2, &one, &loader), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_loader_mapped(ctx, t, 0, 2, 4, &one, &loader), WEFT_ERR_ARGUMENT);
    weft_tokens_free(t);
    weft_close(ctx);
}

static weft_status use(weft_context *ctx) {
    weft_tokens *t = NULL;
    WEFT_TRY(weft_tokens_write(ctx, in_scratch("memory.bin"), ids, COUNT));
    WEFT_TRY(weft_tokens_open(ctx, in_scratch("memory.bin"), &t));
    weft_tokens_free(t);
    return WEFT_OK;
}

static void test_short_memory(void **state) {
    (void)state;
    int calls = fail_each_allocation(use);
    if (calls < 0) fail_msg("allocation %d: %s", -1 - calls, weft_last_error(NULL));
    assert_true(calls >= 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),        cmocka_unit_test(test_wide),
        cmocka_unit_test(test_patterns),     cmocka_unit_test(test_seems_wide),
        cmocka_unit_test(test_gap),          cmocka_unit_test(test_range),
        cmocka_unit_test(test_refused),      cmocka_unit_test(test_batches),
        cmocka_unit_test(test_short_memory),
    };
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
