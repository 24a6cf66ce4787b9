/* Texts that stay in their files: the tokens, the hash and the parts are those of the same texts in memory,
 * wherever the texts are cut and in whatever order tokens are read. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/data.h>
#include <weft/text.h>

#include "base/utf8.h"
#include "unit/io_scratch.h"

static uint32_t seed = 1;
static uint32_t draw(uint32_t below) {
    seed = seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)seed * below >> 32);
}

/* Writes a text of words, white space of all kinds, and characters of 1 to 4 bytes. */
static void write_text(const char *name, size_t words, const char *before, const char *after) {
    static const char *const parts[] = {"the",
                                        "weft",
                                        "goes",
                                        "over's",
                                        "12",
                                        "345",
                                        "don't",
                                        "x.",
                                        "\xc3\xa9",
                                        "\xe6\x97\xa5",
                                        "\xf0\x9f\x98\x80",
                                        "<|endoftext|>",
                                        ",",
                                        "--"};
    static const char *const spaces[] = {
        " ",   " ",    " ",  "\n",    "\n",           "\n\n",       "  ",
        " \n", "\r\n", "\t", "\n \n", "\xe3\x80\x80", "\xc2\xa0\n", " \xe2\x80\xa8 "};
    FILE *f = fopen(in_scratch(name), "wb");
    assert_non_null(f);
    fputs(before, f);
    for (size_t i = 0; i < words; i++)
        fprintf(f, "%s%s", parts[draw(sizeof parts / sizeof *parts)],
                spaces[draw(sizeof spaces / sizeof *spaces)]);
    fputs(after, f);
    assert_int_equal(fclose(f), 0);
}

/* Files of all lengths, which end and begin in all ways. */
static void write_folder(void) {
    char name[32];
    assert_int_equal(mkdir(in_scratch("texts"), 0755), 0);
    for (unsigned i = 0; i < 40; i++) {
        static const char *const begins[] = {"", "", "\n", " ", "\xef\xbb\xbf", "\n\n"}, *const ends[] = {
                                                                                             "",    "\n",
                                                                                             "end", "\n\n",
                                                                                             " ",   "end\n"};
        snprintf(name, sizeof name, "texts/%02u.txt", i);
        write_text(name, i % 9 == 4 ? 20000 : draw(i % 5 ? 40 : 4000), begins[draw(6)], ends[draw(6)]);
    }
    assert_true(spill(in_scratch("texts/99.txt"), "", 0));
}

static weft_corpus *open_corpus(const char *path, weft_corpus_options options, bool in_files) {
    weft_corpus *c = NULL;
    options.in_files = in_files;
    if (weft_corpus_open(NULL, path, &options, &c) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    return c;
}

/* Compares all tokens of a part, and random ranges of them. */
static void compare_part(const weft_corpus *memory, const weft_corpus *files, weft_corpus_part part) {
    size_t count, other;
    int64_t first;
    const int32_t *ids = weft_corpus_ids(memory, part, &count);
    const weft_tokens *tokens = weft_corpus_tokens(files, part, &first);
    assert_null(weft_corpus_ids(files, part, &other));
    assert_int_equal(count, other);
    if (count == 0) return;
    int32_t *read = malloc(count * sizeof *read);
    assert_non_null(read);
    assert_int_equal(weft_tokens_read(tokens, first, count, read), count);
    assert_memory_equal(read, ids, count * sizeof *read);
    for (int i = 0; i < 300; i++) {
        const size_t from = draw((uint32_t)count), most = 1 + draw(3000),
                     some = most < count - from ? most : count - from;
        assert_int_equal(weft_tokens_read(tokens, first + (int64_t)from, some, read), some);
        assert_memory_equal(read, ids + from, some * sizeof *read);
    }
    free(read);
}

static void compare(const char *path, const weft_corpus_options *options) {
    weft_corpus *memory = open_corpus(path, *options, false), *files = open_corpus(path, *options, true);
    assert_null(weft_corpus_tokens(memory, WEFT_CORPUS_TRAIN, NULL));
    assert_int_equal(weft_tokenizer_vocabulary(weft_corpus_tokenizer(memory)),
                     weft_tokenizer_vocabulary(weft_corpus_tokenizer(files)));
    for (int part = 0; part < WEFT_CORPUS_PART_COUNT; part++)
        compare_part(memory, files, (weft_corpus_part)part);
    assert_true(weft_corpus_hash(memory) == weft_corpus_hash(files));
    weft_corpus_free(memory);
    weft_corpus_free(files);
}

/* A BPE as GPT-2's with a few merges, many of white space, in a folder of its own. */
static weft_tokenizer *small_bpe(void) {
    static const char *const merges[] = {"t h",
                                         "th e",
                                         "\xc4\xa0 the",
                                         "e n",
                                         "\xc4\x8a \xc4\x8a",
                                         "\xc4\x8a\xc4\x8a \xc4\x8a",
                                         "\xc4\xa0 \xc4\xa0",
                                         "\xc4\x8a \xc4\xa0",
                                         "\xc4\xa0 \xc4\x8a",
                                         "\xc4\x8d \xc4\x8a",
                                         "o v",
                                         "1 2",
                                         "3 4"};
    weft_tokenizer *t = NULL;
    assert_int_equal(mkdir(in_scratch("bpe"), 0755), 0);
    FILE *json = fopen(in_scratch("bpe/encoder.json"), "wb"),
         *lines = fopen(in_scratch("bpe/vocab.bpe"), "wb");
    assert_true(json && lines);
    unsigned others = 256, id = 0;
    for (unsigned b = 0; b < 256; b++, id++) {
        char c[8] = "";
        const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b != 173),
                   escaped = b == '"' || b == '\\';
        (void)weft__utf8_write(printable ? b : others++, c + escaped);
        if (escaped) c[0] = '\\';
        fprintf(json, "%c\"%s\": %u", b ? ',' : '{', c, id);
    }
    fprintf(lines, "#version: 0.2\n");
    for (size_t i = 0; i < sizeof merges / sizeof *merges; i++, id++) {
        const char *space = strchr(merges[i], ' ');
        fprintf(json, ",\"%.*s%s\": %u", (int)(space - merges[i]), merges[i], space + 1, id);
        fprintf(lines, "%s\n", merges[i]);
    }
    fprintf(json, ",\"<|endoftext|>\": %u}", id);
    assert_int_equal(fclose(json) | fclose(lines), 0);
    if (weft_tokenizer_load_gpt2(NULL, in_scratch("bpe"), &t) != WEFT_OK)
        fail_msg("%s", weft_last_error(NULL));
    return t;
}

static void test_same(void **state) {
    (void)state;
    weft_tokenizer *bpe = small_bpe();
    write_folder();
    write_text("validation.txt", 9000, "", "");
    write_text("one.txt", 30000, "", "no newline");
    const weft_corpus_options kinds[] = {
        {.kind = WEFT_TOKENIZER_CHARACTER}, {.kind = WEFT_TOKENIZER_BYTE}, {.tokenizer = bpe}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        weft_corpus_options split = kinds[k], own = kinds[k];
        split.validation_fraction = 0.13;
        own.validation_path = in_scratch("validation.txt");
        own.test_path = in_scratch("one.txt");
        compare(in_scratch("texts"), &kinds[k]);
        compare(in_scratch("texts"), &split);
        compare(in_scratch("texts/*.txt"), &own);
        compare(in_scratch("one.txt"), &split);
    }
    weft_tokenizer_free(bpe);
}

/* Lines of .jsonl files are the texts that they hold. */
static void test_lines(void **state) {
    (void)state;
    assert_int_equal(mkdir(in_scratch("lines"), 0755), 0);
    FILE *plain = fopen(in_scratch("plain"), "wb"), *lines[2];
    lines[0] = fopen(in_scratch("lines/a.jsonl"), "wb");
    lines[1] = fopen(in_scratch("lines/b.jsonl"), "wb");
    assert_true(plain && lines[0] && lines[1]);
    for (unsigned i = 0; i < 3000; i++) {
        const unsigned n = draw(1000);
        fprintf(plain, "weft %u\nover the warp\n", n);
        fprintf(lines[i >= 1700], "%s{\"id\": %u, \"text\": \"weft %u\\nover the warp%s\"}",
                i % 7 ? "" : "\n", i, n, i % 3 ? "" : "\\n");
        if (i != 2999) fputs("\r\n", lines[i >= 1700]);
    }
    assert_int_equal(fclose(plain) | fclose(lines[0]) | fclose(lines[1]), 0);
    const weft_corpus_options kinds[] = {{.validation_fraction = 0.2}, {.kind = WEFT_TOKENIZER_BYTE}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
        compare(in_scratch("lines"), &kinds[k]);
        weft_corpus *one = open_corpus(in_scratch("plain"), kinds[k], false),
                    *other = open_corpus(in_scratch("lines"), kinds[k], true);
        assert_true(weft_corpus_hash(one) == weft_corpus_hash(other));
        weft_corpus_free(one);
        weft_corpus_free(other);
    }
}

/* ---- refusals ---- */

static void expect(const char *path, weft_corpus_options options, weft_status wanted, const char *message) {
    weft_corpus *c = NULL;
    options.in_files = true;
    const weft_status status = weft_corpus_open(NULL, path, &options, &c);
    if (status != wanted || !strstr(weft_last_error(NULL), message) || c)
        fail_msg("%s: %s, '%s', not '%s'", path, weft_status_name(status), weft_last_error(NULL), message);
}

static void test_refused(void **state) {
    (void)state;
    const weft_corpus_options plain = {0}, bytes = {.kind = WEFT_TOKENIZER_BYTE};
    static char text[40000];
    memset(text, 'a', sizeof text);
    text[30001] = (char)0xe9;
    assert_true(spill(in_scratch("latin1"), text, sizeof text));
    expect(in_scratch("latin1"), plain, WEFT_ERR_FORMAT, "latin1: byte 30001: (0xe9) is not UTF-8");
    weft_corpus *c = open_corpus(in_scratch("latin1"), bytes, true);
    weft_corpus_free(c);
    assert_true(spill(in_scratch("packed"), "\x1f\x8b\x08", 3));
    expect(in_scratch("packed"), plain, WEFT_ERR_FORMAT,
           "packed with gzip, so it cannot be read from its middle");
    assert_true(spill(in_scratch("nothing"), "", 0));
    expect(in_scratch("nothing"), plain, WEFT_ERR_FORMAT, "nothing: the file is empty");
    expect(in_scratch("absent"), plain, WEFT_ERR_IO, "absent");
    expect(in_scratch("latin1"), (weft_corpus_options){.kind = WEFT_TOKENIZER_WORD}, WEFT_ERR_ARGUMENT,
           "the words of a text are counted in memory");
    weft_tokenizer *t;
    assert_int_equal(weft_tokenizer_build(NULL, WEFT_TOKENIZER_CHARACTER, "abc", 3, NULL, &t), WEFT_OK);
    memset(text, 'b', sizeof text);
    text[20000] = 'x';
    assert_true(spill(in_scratch("other"), text, sizeof text));
    expect(in_scratch("other"), (weft_corpus_options){.tokenizer = t}, WEFT_ERR_INDEX,
           "other: from byte 16384 on: character U+0078 at byte 3616 is not one of the 3");
    weft_tokenizer_free(t);
}

/* A text that changes after it was opened. */
static void test_changed(void **state) {
    (void)state;
    static char text[200000];
    int32_t ids[10];
    memset(text, 'a', sizeof text);
    text[7] = 'b';
    assert_true(spill(in_scratch("moving"), text, sizeof text));
    weft_corpus *c = open_corpus(in_scratch("moving"), (weft_corpus_options){0}, true);
    const weft_tokens *tokens = weft_corpus_tokens(c, WEFT_CORPUS_TRAIN, NULL);
    assert_int_equal(weft_tokens_read(tokens, 0, 10, ids), 10);
    assert_int_equal(ids[7], 1);
    assert_true(spill(in_scratch("moving"), text, sizeof text - 1));
    assert_int_equal(weft_tokens_read(tokens, 150000, 10, ids), 0);
    assert_non_null(strstr(weft_last_error(NULL), "moving: the file has changed since it was opened"));
    weft_corpus_free(c);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_lines),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_changed)};
    return cmocka_run_group_tests_name("text_stream", tests, scratch_setup, scratch_teardown);
}
