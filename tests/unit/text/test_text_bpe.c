/* The byte-pair tokenizer: GPT-2's ids as in tiktoken 0.14, merges compared with a plain loop that searches
 * for the best pair again and again, round trips of any bytes, its files and their errors. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/data.h>
#include <weft/text.h>

#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"
#include "base/utf8.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- a small vocabulary: the bytes in the order of their characters, then the given tokens ---- */

static bool is_printable(unsigned b) { return (b >= 33 && b <= 126) || (b >= 161 && b != 173); }

/* Writes encoder.json and vocab.bpe. A merge "a b" makes the token "ab". `extra` comes last. */
static void write_files(const char *const *merges, size_t count, const char *extra) {
    char *json = malloc(1 << 16), *lines = malloc(1 << 16);
    size_t at = 0, used = 0, id = 0;
    assert_true(json && lines);
    used += (size_t)sprintf(lines, "#version: 0.2\n");
    for (unsigned b = 0, others = 256; b < 256; b++) {
        char c[4];
        size_t n = weft__utf8_write(is_printable(b) ? b : others++, c);
        bool escaped = b == '"' || b == '\\';
        at += (size_t)sprintf(json + at, "%c\"%s%.*s\": %zu", id ? ',' : '{', escaped ? "\\" : "", (int)n, c,
                              id);
        id++;
    }
    for (size_t i = 0; i < count; i++, id++) {
        const char *space = strchr(merges[i], ' ');
        at += (size_t)sprintf(json + at, ",\"%.*s%s\": %zu", (int)(space - merges[i]), merges[i], space + 1,
                              id);
        used += (size_t)sprintf(lines + used, "%s\n", merges[i]);
    }
    if (extra) at += (size_t)sprintf(json + at, ",\"%s\": %zu", extra, id);
    at += (size_t)sprintf(json + at, "}");
    assert_true(spill(in_scratch("encoder.json"), json, at));
    assert_true(spill(in_scratch("vocab.bpe"), lines, used));
    free(json);
    free(lines);
}

static weft_tokenizer *load(void) {
    weft_tokenizer *t = NULL;
    if (weft_tokenizer_load_gpt2(NULL, scratch, &t) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    return t;
}

static void assert_ids(const weft_tokenizer *t, const char *text, size_t bytes, const int32_t *expected,
                       size_t count) {
    int32_t ids[256];
    char back[256];
    size_t n = 0, length = 0;
    assert_true(bytes <= COUNT(ids));
    assert_int_equal(weft_tokenizer_encode(t, text, bytes, NULL, 0, &n), WEFT_OK);
    assert_int_equal(n, count);
    assert_int_equal(weft_tokenizer_encode(t, text, bytes, ids, COUNT(ids), &n), WEFT_OK);
    assert_int_equal(n, count);
    for (size_t i = 0; i < count; i++)
        if (ids[i] != expected[i]) fail_msg("'%s': id %zu is %d, not %d", text, i, ids[i], expected[i]);
    assert_int_equal(weft_tokenizer_decode(t, ids, count, back, sizeof back, &length), WEFT_OK);
    assert_int_equal(length, bytes);
    assert_memory_equal(back, text, bytes);
}

#define ASSERT_IDS(t, text, ...)                                                                             \
    assert_ids(t, text, sizeof(text) - 1, (const int32_t[]){__VA_ARGS__},                                    \
               sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t))

static void test_merges(void **state) {
    (void)state;
    static const char *const merges[] = {"b c", "a b", "a bc", "\xc4\xa0 a", "a a", "aa aa"};
    write_files(merges, COUNT(merges), "<|end|>");
    weft_tokenizer *t = load();
    assert_int_equal(weft_tokenizer_kind_of(t), WEFT_TOKENIZER_BPE);
    assert_int_equal(weft_tokenizer_vocabulary(t), 263);
    assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_EOS), -1); /* GPT-2's is <|endoftext|> */
    assert_true(weft_tokenizer_is_special(t, 262));
    assert_false(weft_tokenizer_is_special(t, 261));
    ASSERT_IDS(t, "abc", 258);              /* "b c" ranks before "a b" */
    ASSERT_IDS(t, "abab", 257, 257);        /* both pairs have the same rank */
    ASSERT_IDS(t, "aaaaa", 261, 'a');       /* the leftmost of equal pairs first */
    ASSERT_IDS(t, "ab abc", 257, ' ', 258); /* "a bc" ranks before " a" */
    ASSERT_IDS(t, "ab ab", 257, ' ', 257);
    ASSERT_IDS(t, "ab a", 257, 259);
    ASSERT_IDS(t, "a<|end|>a", 'a', 262, 'a'); /* a special token */
    ASSERT_IDS(t, "<|end|><|end|>", 262, 262);
    ASSERT_IDS(t, "<|end", '<', '|', 'e', 'n', 'd');
    ASSERT_IDS(t, "a  a", 'a', ' ', 259); /* the last of several spaces belongs to the word */
    ASSERT_IDS(t,
               "ab\xff\xfe"
               "ab",
               257, 255, 254, 257);
    ASSERT_IDS(t, "ab\xe2\x82", 257, 0xe2, 0x82);
    ASSERT_IDS(t, "\xed\xa0\x80\xed\xbf\xbf", 0xed, 0xa0, 0x80, 0xed, 0xbf, 0xbf); /* surrogates */
    ASSERT_IDS(t, "a\0\0b", 'a', 0, 0, 'b');
    assert_ids(t, "", 0, NULL, 0);
    weft_tokenizer_free(t);
}

/* The reference: searches all pairs for the best merge, and merges its first occurrence. */
static size_t merge_plainly(const char *const *merges, size_t n, const char *word, char pieces[][64]) {
    size_t count = strlen(word);
    for (size_t i = 0; i < count; i++) sprintf(pieces[i], "%c", word[i]);
    for (;;) {
        size_t best = n, place = 0;
        for (size_t i = 0; i + 1 < count; i++) {
            char pair[130];
            sprintf(pair, "%s %s", pieces[i], pieces[i + 1]);
            for (size_t m = 0; m < best; m++)
                if (strcmp(merges[m], pair) == 0) {
                    best = m;
                    place = i;
                }
        }
        if (best == n) return count;
        char made[130];
        sprintf(made, "%s%s", pieces[place], pieces[place + 1]);
        strcpy(pieces[place], made);
        for (size_t i = place + 1; i + 1 < count; i++) strcpy(pieces[i], pieces[i + 1]);
        count--;
    }
}

static void test_random_words(void **state) {
    (void)state;
    static const char *const merges[] = {"a b", "c a",   "b b",    "ab c", "a a",  "ca b", "bb a",  "aa ab",
                                         "c c", "ab ab", "abc ca", "b c",  "bc a", "aa a", "cc bb", "cab a"};
    static char pieces[128][64];
    write_files(merges, COUNT(merges), NULL);
    weft_tokenizer *t = load();
    uint32_t seed = 1;
    for (int round = 0; round < 3000; round++) {
        char word[65] = "";
        int32_t ids[65];
        size_t length = 1 + (size_t)(seed >> 16) % (round % 3 ? 12 : 64), n = 0,
               at = 0; /* short words are cached, long ones are not */
        for (size_t i = 0; i < length; i++) {
            seed = seed * 1664525u + 1013904223u;
            word[i] = "abc"[(seed >> 16) % 3];
        }
        assert_int_equal(weft_tokenizer_encode(t, word, length, ids, COUNT(ids), &n), WEFT_OK);
        assert_int_equal(n, merge_plainly(merges, COUNT(merges), word, pieces));
        for (size_t i = 0; i < n; i++) {
            size_t bytes = 0;
            const char *token = weft_tokenizer_token(t, ids[i], &bytes);
            assert_int_equal(bytes, strlen(pieces[i]));
            assert_memory_equal(token, pieces[i], bytes);
            at += bytes;
        }
        assert_int_equal(at, length);
    }
    weft_tokenizer_free(t);
}

/* Every byte, alone and in a word of all bytes, is encoded and decoded unchanged. So it is with a tokenizer
 * read from a file, and in a stream. */
static void test_files(void **state) {
    (void)state;
    static const char *const merges[] = {"a b", "\xc3\x83 \xc2\xa9",
                                         "\xc4\xa0 ab"}; /* the bytes of e-acute */
    write_files(merges, COUNT(merges), "<|end|>");
    weft_tokenizer *t = load(), *u = NULL;
    ASSERT_IDS(t, "\xc3\xa9 ab", 257, 258);
    assert_int_equal(weft_tokenizer_save(t, in_scratch("t.json")), WEFT_OK);
    assert_int_equal(weft_tokenizer_load(NULL, in_scratch("t.json"), &u), WEFT_OK);
    assert_int_equal(weft_tokenizer_save(u, in_scratch("u.json")), WEFT_OK);
    weft_tokenizer *gpt2 = NULL;
    write_files(merges, COUNT(merges), "<|endoftext|>");
    gpt2 = load();
    assert_int_equal(weft_tokenizer_special(gpt2, WEFT_SPECIAL_EOS), 259);
    assert_int_equal(weft_tokenizer_special(gpt2, WEFT_SPECIAL_PAD), -1);
    weft_tokenizer_free(gpt2);
    size_t n = 0, m = 0;
    char *x = slurp(in_scratch("t.json"), &n), *y = slurp(in_scratch("u.json"), &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
    char all[256];
    for (int i = 0; i < 256; i++) {
        all[i] = (char)(unsigned char)i;
        assert_ids(u, all + i, 1, &(int32_t){i}, 1);
    }
    int32_t ids[256];
    char back[256];
    assert_int_equal(weft_tokenizer_encode(u, all, 256, ids, 256, &n), WEFT_OK);
    assert_int_equal(weft_tokenizer_decode(u, ids, n, back, 256, &m), WEFT_OK);
    assert_int_equal(m, 256);
    assert_memory_equal(all, back, 256);
    weft_decoder *d = NULL;
    const char *text = NULL;
    assert_int_equal(weft_decoder_open(u, &d), WEFT_OK);
    assert_int_equal(weft_decoder_push(d, 0xc3, &text, &n), WEFT_OK);
    assert_int_equal(n, 0); /* half a character */
    assert_int_equal(weft_decoder_push(d, 0xa9, &text, &n), WEFT_OK);
    assert_string_equal(text, "\xc3\xa9");
    weft_decoder_free(d);
    weft_tokenizer_free(t);
    weft_tokenizer_free(u);
}

static void expect_bad(const char *file, const char *text, weft_status wanted, const char *message) {
    weft_tokenizer *t = NULL;
    assert_true(spill(in_scratch(file), text, strlen(text)));
    weft_status status = weft_tokenizer_load_gpt2(NULL, scratch, &t);
    if (status != wanted || !strstr(weft_last_error(NULL), message) || t)
        fail_msg("%s of '%s': %s, '%s'", file, text, weft_status_name(status), weft_last_error(NULL));
}

static void test_bad_files(void **state) {
    (void)state;
    static const char *const merges[] = {"a b"};
    weft_tokenizer *t = NULL;
    write_files(merges, 1, NULL);
    expect_bad("vocab.bpe", "#version: 0.2\n", WEFT_ERR_FORMAT, "vocab.bpe: there are no merges");
    expect_bad("vocab.bpe", "", WEFT_ERR_FORMAT, "vocab.bpe: there are no merges");
    expect_bad("vocab.bpe", "#version: 0.2\na b\na\n", WEFT_ERR_FORMAT, "line 3: expected two tokens");
    expect_bad("vocab.bpe", "a b\na b\n", WEFT_ERR_FORMAT, "merge 2 repeats merge 1");
    expect_bad("vocab.bpe", "a b\n\nb a\n", WEFT_ERR_FORMAT, "line 2: expected two tokens");
    expect_bad("vocab.bpe", "b a\n", WEFT_ERR_FORMAT, "line 1: the merged token is not in the vocabulary");
    expect_bad("vocab.bpe", "b \xff\n", WEFT_ERR_FORMAT,
               "line 1: one of the two tokens is not in the vocabulary");
    write_files(merges, 1, NULL);
    expect_bad("encoder.json", "[1, 2]", WEFT_ERR_FORMAT, "must be a JSON object");
    expect_bad("encoder.json", "{}", WEFT_ERR_FORMAT, "must be a JSON object");
    expect_bad("encoder.json", "{\"a\": 0,", WEFT_ERR_FORMAT, "encoder.json: line 1");
    expect_bad("encoder.json", "{\"a\": 0, \"b\": 0}", WEFT_ERR_FORMAT, "have one id, 0");
    expect_bad("encoder.json", "{\"a\": 0, \"b\": 2}", WEFT_ERR_FORMAT, "a number from 0 to 1");
    expect_bad("encoder.json", "{\"a\": 0, \"b\": \"1\"}", WEFT_ERR_FORMAT, "a number from 0 to 1");
    expect_bad("encoder.json", "{\"a\": 0, \"b c\": 1}", WEFT_ERR_FORMAT, "id 1, 'b c', is not written");
    expect_bad("encoder.json", "{\"a\": 0, \"b\": 1, \"ab\": 2}", WEFT_ERR_FORMAT, "byte 0x00 has no id");
    (void)unlink(in_scratch("vocab.bpe"));
    assert_int_equal(weft_tokenizer_load_gpt2(NULL, scratch, &t), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "neither vocab.bpe nor merges.txt"));
    (void)unlink(in_scratch("encoder.json"));
    assert_int_equal(weft_tokenizer_load_gpt2(NULL, scratch, &t), WEFT_ERR_IO);
    assert_int_equal(weft_tokenizer_build(NULL, WEFT_TOKENIZER_BPE, "a", 1, NULL, &t), WEFT_ERR_ARGUMENT);
}

static weft_status use(weft_context *ctx) {
    weft_tokenizer *t = NULL, *u = NULL;
    size_t n;
    int32_t ids[64];
    WEFT_TRY(weft_tokenizer_load_gpt2(ctx, scratch, &t));
    weft_status status = weft_tokenizer_encode(t, "an abab <|end|>", 15, ids, 64, &n);
    if (status == WEFT_OK) status = weft_tokenizer_save(t, in_scratch("t.json"));
    if (status == WEFT_OK) status = weft_tokenizer_load(ctx, in_scratch("t.json"), &u);
    weft_tokenizer_free(t);
    weft_tokenizer_free(u);
    return status;
}

static void test_short_memory(void **state) {
    (void)state;
    static const char *const merges[] = {"a b", "ab ab"};
    write_files(merges, COUNT(merges), "<|end|>");
    int calls = fail_each_allocation(use);
    if (calls < 0) fail_msg("allocation %d: %s", -1 - calls, weft_last_error(NULL));
    assert_true(calls > 10);
}

/* ---- GPT-2's own files, if they are there ---- */

static const char *data_folder(void) {
    static char path[4096];
    const char *folder = getenv("WEFT_TEST_DATA");
    snprintf(path, sizeof path, "%s/gpt2-bpe", folder ? folder : "");
    if (folder && access(path, R_OK) == 0) return path;
    print_message("test_text_bpe: GPT-2's ids skipped: no gpt2-bpe in WEFT_TEST_DATA\n");
    skip();
    return NULL;
}

typedef struct known {
    const char *text;
    size_t bytes;
    int32_t ids[20];
    size_t count;
} known;

/* encode(text, allowed_special="all") of tiktoken's gpt2 */
static const known knowns[] = {
    {"", 0, {0}, 0},
    {"Hello world", 11, {15496, 995}, 2},
    {"I'm you're we'll he'd it's they've 'tis don'T",
     45,
     {40, 1101, 345, 821, 356, 1183, 339, 1549, 340, 338, 484, 1053, 705, 48010, 836, 6, 51},
     17},
    {"  two   spaces    \t\ttabs ",
     25,
     {220, 734, 220, 220, 9029, 220, 220, 220, 220, 197, 197, 8658, 82, 220},
     14},
    {"trailing   ", 11, {9535, 4386, 220, 220, 220}, 5},
    {"line\n\n\nline\r\n  indented\n", 24, {1370, 628, 198, 1370, 201, 198, 220, 773, 4714, 198}, 10},
    {"x = 12345678901 + 3.14e-10;",
     27,
     {87, 796, 17031, 2231, 3134, 4531, 486, 1343, 513, 13, 1415, 68, 12, 940, 26},
     15},
    {"caf\xc3\xa9 \xce\x94\xce\xb5\xce\xbb\xcf\x84\xce\xb1 \xe4\xbd\xa0\xe5\xa5\xbd \xd0\x97\xd0\xb4\xd1\x80",
     30,
     {66, 1878, 2634, 37455, 30950, 39377, 32830, 17394, 220, 19526, 254, 25001, 121, 12466, 245, 43666,
      21169},
     17},
    {"\xf0\x9f\x98\x80\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7 ok",
     25,
     {47249, 222, 41840, 101, 447, 235, 41840, 102, 447, 235, 41840, 100, 12876},
     13},
    {"\xd9\xa1\xd9\xa2\xd9\xa3 \xe2\x85\xa3 \xc2\xbd",
     13,
     {149, 94, 149, 95, 149, 96, 2343, 227, 96, 25208},
     10},
    {"a\xc2\xa0"
     "b\xe3\x80\x80"
     "c\xe2\x80\xa8"
     "d\xe1\xa0\x8e"
     "e\xc2\x85"
     "f",
     19,
     {64, 1849, 65, 5099, 222, 66, 447, 101, 67, 157, 254, 236, 68, 126, 227, 69},
     16},
    {"a\x00"
     "b\x00\x00 \x00",
     7,
     {64, 188, 65, 188, 188, 220, 188},
     7},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
     38,
     {24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794, 24794, 7252},
     10},
    {" <|endoftext|> ", 15, {220, 50256, 220}, 3},
    {"antidisestablishmentarianism supercalifragilisticexpialidocious",
     63,
     {415, 29207, 44390, 3699, 1042, 2208, 9948, 361, 22562, 346, 396, 501, 42372, 498, 312, 32346},
     16},
};

static void test_gpt2(void **state) {
    (void)state;
    weft_tokenizer *t = NULL;
    const char *folder = data_folder();
    assert_int_equal(weft_tokenizer_load_gpt2(NULL, folder, &t), WEFT_OK);
    assert_int_equal(weft_tokenizer_vocabulary(t), 50257);
    for (size_t i = 0; i < COUNT(knowns); i++)
        assert_ids(t, knowns[i].text, knowns[i].bytes, knowns[i].ids, knowns[i].count);
    /* the text of every token is encoded and decoded unchanged */
    for (int32_t id = 0; id < 50257; id++) {
        size_t bytes = 0, n = 0, m = 0;
        const char *token = weft_tokenizer_token(t, id, &bytes);
        int32_t ids[256];
        char back[256];
        assert_int_equal(weft_tokenizer_encode(t, token, bytes, ids, COUNT(ids), &n), WEFT_OK);
        assert_int_equal(weft_tokenizer_decode(t, ids, n, back, sizeof back, &m), WEFT_OK);
        assert_int_equal(m, bytes);
        assert_memory_equal(back, token, bytes);
    }
    weft_tokenizer_free(t);
}

/* encode_ordinary of tiktoken's gpt2: the number of ids, and the FNV-1a hash of the ids as little-endian
 * u16 */
static const struct {
    const char *file;
    size_t count;
    uint64_t hash;
} samples[] = {
    {"tinyshakespeare.txt", 338025, UINT64_C(0xaace74aee8a199f7)},
    {"wikitext-2/train.txt.gz", 2448382, UINT64_C(0xc6b8ccdfe5fd317e)},
    {"wikitext-2/valid.txt.gz", 258659, UINT64_C(0x9d9a07dbbfecc198)},
    {"wikitext-2/test.txt.gz", 295877, UINT64_C(0x1e6845ac1e4b1b8f)},
};

static uint64_t hash_of(const int32_t *ids, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < 2 * count; i++)
        hash = (hash ^ (uint64_t)(ids[i / 2] >> (i % 2 ? 8 : 0) & 255)) * UINT64_C(0x100000001b3);
    return hash;
}

static void test_samples(void **state) {
    (void)state;
    weft_tokenizer *t = NULL;
    assert_int_equal(weft_tokenizer_load_gpt2(NULL, data_folder(), &t), WEFT_OK);
    for (size_t i = 0; i < COUNT(samples); i++) {
        char path[4096];
        weft_bytes file;
        size_t count = 0;
        snprintf(path, sizeof path, "%s/%s", getenv("WEFT_TEST_DATA"), samples[i].file);
        if (access(path, R_OK) != 0) {
            print_message("test_samples: no %s\n", samples[i].file);
            continue;
        }
        assert_int_equal(weft_read_file(NULL, path, 0, &file), WEFT_OK);
        int32_t *ids = malloc(file.size * sizeof *ids);
        assert_non_null(ids);
        assert_int_equal(weft_tokenizer_encode(t, (const char *)file.data, file.size, ids, file.size, &count),
                         WEFT_OK);
        assert_int_equal(count, samples[i].count);
        if (hash_of(ids, count) != samples[i].hash)
            fail_msg("%s: other ids than tiktoken's", samples[i].file);
        free(ids);
        weft_bytes_free(NULL, &file);
    }
    weft_tokenizer_free(t);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merges),    cmocka_unit_test(test_random_words), cmocka_unit_test(test_files),
        cmocka_unit_test(test_bad_files), cmocka_unit_test(test_short_memory), cmocka_unit_test(test_gpt2),
        cmocka_unit_test(test_samples),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
