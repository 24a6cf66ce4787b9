/* Corpora: splits, fractions, separate files, gzip, given tokenizers, bad input, a real text. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#if defined(__linux__)
#include <sys/inotify.h>
#endif
#include <unistd.h>
#include <zlib.h>

#include <weft/text.h>

#include "unit/io_scratch.h"

static const char *put(const char *name, const char *text) {
    const char *path = in_scratch(name);
    assert_true(spill(path, text, strlen(text)));
    return path;
}

static weft_corpus *open_corpus(const char *path, const weft_corpus_options *options) {
    weft_corpus *c = NULL;
    if (weft_corpus_open(NULL, path, options, &c) != WEFT_OK) fail_msg("%s", weft_last_error(NULL));
    return c;
}

static void assert_part(const weft_corpus *c, weft_corpus_part part, const char *expected) {
    char out[256];
    size_t count = 0, n = 0;
    const int32_t *ids = weft_corpus_ids(c, part, &count);
    assert_int_equal(weft_tokenizer_decode(weft_corpus_tokenizer(c), ids, count, out, sizeof out, &n),
                     WEFT_OK);
    assert_int_equal(n, strlen(expected));
    assert_memory_equal(out, expected, n);
}

static void test_fraction(void **state) {
    (void)state;
    const char *path = put("digits", "0123456789");
    weft_corpus *c = open_corpus(path, &(weft_corpus_options){.validation_fraction = 0.25});
    assert_part(c, WEFT_CORPUS_TRAIN, "0123456"); /* floor(10 * 0.75) = 7 */
    assert_part(c, WEFT_CORPUS_VALIDATION, "789");
    assert_part(c, WEFT_CORPUS_TEST, "");
    assert_int_equal(weft_corpus_bytes(c), 10);
    assert_int_equal(weft_tokenizer_vocabulary(weft_corpus_tokenizer(c)), 10);
    weft_corpus_free(c);
    c = open_corpus(path, NULL);
    assert_part(c, WEFT_CORPUS_TRAIN, "0123456789");
    assert_part(c, WEFT_CORPUS_VALIDATION, "");
    weft_corpus_free(c);
    weft_corpus_free(NULL);
}

static void test_own_files(void **state) {
    (void)state;
    const char *train = put("train", "abc"), *validation = put("validation", "cab\xc3\xa9"),
               *test = put("test", "z");
    weft_corpus *c =
        open_corpus(train, &(weft_corpus_options){.validation_path = validation, .test_path = test});
    assert_part(c, WEFT_CORPUS_TRAIN, "abc");
    assert_part(c, WEFT_CORPUS_VALIDATION, "cab\xc3\xa9");
    assert_part(c, WEFT_CORPUS_TEST, "z");
    assert_int_equal(weft_tokenizer_vocabulary(weft_corpus_tokenizer(c)), 5);
    weft_corpus_free(c);
    c = open_corpus(put("w1", "a b a\n"), &(weft_corpus_options){.kind = WEFT_TOKENIZER_WORD,
                                                                 .validation_path = put("w2", "b c\n")});
    assert_part(c, WEFT_CORPUS_TRAIN, "a b a\n");
    assert_part(c, WEFT_CORPUS_VALIDATION, "b <unk>\n");
    weft_corpus_free(c);
    c = open_corpus(put("bytes", "\xff\xfe"), &(weft_corpus_options){.kind = WEFT_TOKENIZER_BYTE});
    assert_part(c, WEFT_CORPUS_TRAIN, "\xff\xfe");
    weft_corpus_free(c);
}

static void test_given_tokenizer(void **state) {
    (void)state;
    weft_tokenizer *t;
    assert_int_equal(weft_tokenizer_build(NULL, WEFT_TOKENIZER_CHARACTER, "abc", 3, NULL, &t), WEFT_OK);
    weft_corpus *c = open_corpus(put("given", "ccb"), &(weft_corpus_options){.tokenizer = t});
    size_t count = 0;
    const int32_t *ids = weft_corpus_ids(c, WEFT_CORPUS_TRAIN, &count);
    assert_int_equal(count, 3);
    assert_int_equal(ids[0], 2);
    assert_ptr_equal(weft_corpus_tokenizer(c), t);
    weft_corpus_free(c);
    assert_int_equal(weft_corpus_open(NULL, put("given", "ccd"), &(weft_corpus_options){.tokenizer = t}, &c),
                     WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(NULL), "given: character U+0064 at byte 2"));
    weft_tokenizer_free(t);
}

static void test_gzip(void **state) {
    (void)state;
    gzFile gz = gzopen(in_scratch("text.gz"), "wb");
    assert_non_null(gz);
    assert_int_equal(gzputs(gz, "packed text"), 11);
    assert_int_equal(gzclose(gz), Z_OK);
    weft_corpus *c = open_corpus(in_scratch("text.gz"), NULL);
    assert_part(c, WEFT_CORPUS_TRAIN, "packed text");
    assert_int_equal(weft_corpus_bytes(c), 11);
    weft_corpus_free(c);
    size_t n = 0;
    char *data = slurp(in_scratch("text.gz"), &n);
    assert_true(spill(in_scratch("text.gz"), data, n - 3));
    free(data);
    assert_int_equal(weft_corpus_open(NULL, in_scratch("text.gz"), NULL, &c), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "text.gz"));
}

static void test_hash(void **state) {
    (void)state;
    uint64_t hashes[4];
    const char *const texts[] = {"abcabc", "abcabd", "abcabcabc", "bcdbcd"};
    for (int i = 0; i < 4; i++) {
        weft_corpus *c = open_corpus(put("hashed", texts[i]), NULL);
        hashes[i] = weft_corpus_hash(c);
        weft_corpus_free(c);
        for (int k = 0; k < i; k++) assert_true(hashes[i] != hashes[k]);
    }
    weft_corpus *c = open_corpus(put("moved", texts[0]), NULL);
    assert_true(weft_corpus_hash(c) == hashes[0]);
    weft_corpus_free(c);
}

static void test_bad_input(void **state) {
    (void)state;
    weft_corpus *c;
    const char *path = put("good", "abc");
    assert_int_equal(weft_corpus_open(NULL, in_scratch("absent"), NULL, &c), WEFT_ERR_IO);
    assert_int_equal(weft_corpus_open(NULL, put("empty", ""), NULL, &c), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "empty"));
    assert_int_equal(weft_corpus_open(NULL, put("latin1", "caf\xe9!"), NULL, &c), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "latin1: byte 3 (0xe9)"));
    const weft_corpus_options bad[] = {{.validation_fraction = 1},
                                       {.validation_fraction = -0.1},
                                       {.validation_fraction = __builtin_nan("")},
                                       {.validation_fraction = 0.1, .validation_path = path},
                                       {.kind = (weft_tokenizer_kind)17}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_int_equal(weft_corpus_open(NULL, path, &bad[i], &c), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_corpus_open(NULL, path, &(weft_corpus_options){.max_bytes = 2}, &c),
                     WEFT_ERR_FORMAT);
    assert_null(c);
}

/* The sizes that nanoGPT's character model has. */
static void test_tinyshakespeare(void **state) {
    (void)state;
    const char *folder = getenv("WEFT_TEST_DATA");
    char path[4096];
    snprintf(path, sizeof path, "%s/tinyshakespeare.txt", folder ? folder : "");
    if (!folder || access(path, R_OK) != 0) {
        print_message("test_tinyshakespeare skipped: no tinyshakespeare.txt in WEFT_TEST_DATA\n");
        skip();
    }
    size_t train = 0, validation = 0;
    weft_corpus *c = open_corpus(path, &(weft_corpus_options){.validation_fraction = 0.1});
    const int32_t *ids = weft_corpus_ids(c, WEFT_CORPUS_TRAIN, &train);
    (void)weft_corpus_ids(c, WEFT_CORPUS_VALIDATION, &validation);
    assert_int_equal(weft_tokenizer_vocabulary(weft_corpus_tokenizer(c)), 65);
    assert_int_equal(train, 1003854);
    assert_int_equal(validation, 111540);
    const int32_t first[] = {18, 47, 56, 57, 58, 1}; /* "First " */
    assert_memory_equal(ids, first, sizeof first);
    weft_corpus_free(c);
}

/* The byte order mark at the start of a file is no text. */
static void test_byte_order_mark(void **state) {
    (void)state;
    weft_corpus *marked = open_corpus(put("marked", "\xef\xbb\xbf"
                                                    "abba"),
                                      NULL);
    size_t count;
    assert_non_null(weft_corpus_ids(marked, WEFT_CORPUS_TRAIN, &count));
    assert_int_equal(count, 4);
    assert_int_equal(weft_tokenizer_vocabulary(weft_corpus_tokenizer(marked)), 2);
    weft_corpus_free(marked);
}

/* A folder and a pattern: files in the order of their names, with a newline at their end; no hidden files, no
 * subfolders. */
static void test_several_files(void **state) {
    (void)state;
    char folder[512], pattern[600], hidden[600], inner[600];
    snprintf(folder, sizeof folder, "%s", in_scratch("texts [1]"));
    snprintf(pattern, sizeof pattern, "%s/*.txt", in_scratch("texts*"));
    snprintf(hidden, sizeof hidden, "%s/.notes", folder);
    snprintf(inner, sizeof inner, "%s/inner", folder);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(mkdir(inner, 0700), 0);
    weft_corpus *c;
    assert_int_equal(weft_corpus_open(NULL, folder, NULL, &c), WEFT_ERR_FORMAT);
    if (!strstr(weft_last_error(NULL), "this folder holds no text")) fail_msg("%s", weft_last_error(NULL));
    put("texts [1]/b.txt", "second");
    put("texts [1]/a.txt", "\xef\xbb\xbf"
                           "first\n");
    put("texts [1]/c.md", "third");
    assert_true(spill(hidden, "no", 2));
    c = open_corpus(folder, NULL);
    assert_part(c, WEFT_CORPUS_TRAIN, "first\nsecond\nthird\n");
    const weft_corpus_files files = weft_corpus_files_of(c);
    assert_int_equal(files.read, 3);
    assert_int_equal(files.hidden, 1);
    assert_int_equal(files.folders, 1);
    weft_corpus_free(c);
    c = open_corpus(pattern, NULL);
    assert_part(c, WEFT_CORPUS_TRAIN, "first\nsecond\n");
    assert_int_equal(weft_corpus_files_of(c).read, 2);
    assert_int_equal(weft_corpus_files_of(c).hidden, 0);
    weft_corpus_free(c);
    assert_int_equal(weft_corpus_open(NULL, folder, &(weft_corpus_options){.max_bytes = 10}, &c),
                     WEFT_ERR_FORMAT);
    put("texts [1]/d.txt", "caf\xe9");
    assert_int_equal(weft_corpus_open(NULL, pattern, NULL, &c), WEFT_ERR_FORMAT);
    if (!strstr(weft_last_error(NULL), "texts [1]/d.txt: byte 3 (0xe9)"))
        fail_msg("%s", weft_last_error(NULL));
    weft_corpus_free(open_corpus(pattern, &(weft_corpus_options){.kind = WEFT_TOKENIZER_BYTE}));
    snprintf(pattern, sizeof pattern, "%s/*.zip", in_scratch("texts*"));
    assert_int_equal(weft_corpus_open(NULL, pattern, NULL, &c), WEFT_ERR_IO);
}

#if defined(__linux__)
/* Counts how often files of a watched folder were opened. */
static int opened(int watch) {
    _Alignas(struct inotify_event) char events[16384];
    int count = 0;
    const ssize_t bytes = read(watch, events, sizeof events);
    for (ssize_t at = 0; at < bytes;) {
        const struct inotify_event *e = (const struct inotify_event *)(const void *)(events + at);
        count += (e->mask & IN_OPEN) && !(e->mask & IN_ISDIR);
        at += (ssize_t)(sizeof *e + e->len);
    }
    return count;
}

/* Opening a file takes long on the file systems of clusters. A plain file is opened once to find its form,
 * and once to read it. */
static void test_files_are_opened_twice(void **state) {
    (void)state;
    enum { FILES = 20 };
    char folder[512], name[64];
    snprintf(folder, sizeof folder, "%s", in_scratch("many"));
    assert_int_equal(mkdir(folder, 0700), 0);
    for (int i = 0; i < FILES; i++) {
        snprintf(name, sizeof name, "many/%02d.txt", i);
        put(name, "a text\n");
    }
    /* closes keep the kernel from joining equal events */
    const int watch = inotify_init1(IN_NONBLOCK);
    assert_true(watch >= 0);
    assert_true(inotify_add_watch(watch, folder, IN_OPEN | IN_CLOSE_NOWRITE) >= 0);
    for (int in_files = 0; in_files < 2; in_files++) {
        weft_corpus_free(open_corpus(folder, &(weft_corpus_options){.in_files = in_files}));
        assert_int_equal(opened(watch), 2 * FILES);
    }
    close(watch);
}
#endif

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_byte_order_mark),
        cmocka_unit_test(test_several_files),
#if defined(__linux__)
        cmocka_unit_test(test_files_are_opened_twice),
#endif
        cmocka_unit_test(test_fraction),
        cmocka_unit_test(test_own_files),
        cmocka_unit_test(test_given_tokenizer),
        cmocka_unit_test(test_gzip),
        cmocka_unit_test(test_hash),
        cmocka_unit_test(test_bad_input),
        cmocka_unit_test(test_tinyshakespeare),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
