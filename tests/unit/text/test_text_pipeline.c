/* Tokenizers of published models: each normalizer, pre-tokenizer, model, decoder and post-processor, with the
 * results of the Python package tokenizers 0.23; files and their errors; short memory. tests/text/peer.py
 * compares whole tokenizers with that package. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/text.h>

#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"
#include "unit/text_ids.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
#define WORDS    8

/* ---- helpers ---- */

static weft_tokenizer *parse(const char *json) {
    weft_tokenizer *t = NULL;
    if (weft_tokenizer_parse(NULL, json, strlen(json), &t) != WEFT_OK)
        fail_msg("%s: %s", json, weft_last_error(NULL));
    assert_int_equal(weft_tokenizer_kind_of(t), WEFT_TOKENIZER_PIPELINE);
    return t;
}

/* Writes a string of JSON. */
static size_t put_string(char *to, const char *text) {
    size_t used = 0;
    to[used++] = '"';
    for (; *text; text++) {
        if (*text == '"' || *text == '\\') to[used++] = '\\';
        if ((unsigned char)*text < ' ')
            used += (size_t)sprintf(to + used, "\\u%04x", (unsigned)*text);
        else
            to[used++] = *text;
    }
    to[used++] = '"';
    to[used] = 0;
    return used;
}

/* Makes a tokenizer with the model WordLevel, whose words are "?" and those of the list, and with a part. */
static weft_tokenizer *with_words(const char *stage, const char *part, const char *const *words) {
    char json[4096];
    size_t used = (size_t)sprintf(
        json, "{\"version\": \"1.0\", \"%s\": %s, \"model\": {\"type\": \"WordLevel\", \"vocab\": {\"?\": 0",
        stage, part);
    for (int i = 0; i < WORDS && words[i]; i++) {
        used += (size_t)sprintf(json + used, ", ");
        used += put_string(json + used, words[i]);
        used += (size_t)sprintf(json + used, ": %d", i + 1);
    }
    sprintf(json + used, "}, \"unk_token\": \"?\"}}");
    return parse(json);
}

/* ---- normalizers: a text must become the only word ---- */

static const struct {
    const char *part, *text, *expected;
} normalizers[] = {
    {"{\"type\": \"NFC\"}", "xe\xcc\x81 a\xef\xac\x81", "x\xc3\xa9 a\xef\xac\x81"},
    {"{\"type\": \"NFD\"}", "x\xc3\xa9", "xe\xcc\x81"},
    {"{\"type\": \"NFKC\"}", "\xef\xac\x81 \xc2\xbd e\xcc\x81",
     "fi 1\xe2\x81\x84"
     "2 \xc3\xa9"},
    {"{\"type\": \"NFKD\"}", "\xef\xac\x81\xc3\xa9", "fie\xcc\x81"},
    {"{\"type\": \"Lowercase\"}", "AB \xc3\x89 \xc4\xb0 \xce\xa3", "ab \xc3\xa9 i\xcc\x87 \xcf\x83"},
    {"{\"type\": \"Strip\", \"strip_left\": true, \"strip_right\": true}", " \t\xc2\xa0 a b\xe3\x80\x80\n",
     "a b"},
    {"{\"type\": \"Strip\", \"strip_left\": false, \"strip_right\": true}", "  a ", "  a"},
    {"{\"type\": \"StripAccents\"}", "e\xcc\x81\xc3\xa9", "e\xc3\xa9"},
    {"{\"type\": \"Replace\", \"pattern\": {\"String\": \"a.\"}, \"content\": \"xyz\"}", "aba.a.b",
     "abxyzxyzb"},
    {"{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" {2,}|\\\\d+\"}, \"content\": \"_\"}", "a  b 12   c",
     "a_b __c"},
    {"{\"type\": \"Prepend\", \"prepend\": \"\\u2581\"}", "ab",
     "\xe2\x96\x81"
     "ab"},
    {"{\"type\": \"BertNormalizer\", \"clean_text\": true, \"handle_chinese_chars\": true, "
     "\"strip_accents\": null, \"lowercase\": true}",
     "\tA\xc3\x89\x01\xe4\xbd\xa0\xef\xbf\xbd.", " ae \xe4\xbd\xa0 ."},
    {"{\"type\": \"BertNormalizer\", \"clean_text\": false, \"handle_chinese_chars\": false, "
     "\"strip_accents\": null, \"lowercase\": false}",
     "\tA\xc3\x89\x01\xe4\xbd\xa0", "\tA\xc3\x89\x01\xe4\xbd\xa0"},
    {"{\"type\": \"Nmt\"}",
     "a\x07\xe2\x80\x8b"
     "b\nc",
     "a b c"},
    {"{\"type\": \"ByteLevel\"}", "a \xc3\xa9", "a\xc4\xa0\xc3\x83\xc2\xa9"},
    {"{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"Lowercase\"}, {\"type\": \"Prepend\", "
     "\"prepend\": \"A\"}]}",
     "AB", "Aab"},
    {"null", "a  b", "a  b"},
};

static void test_normalizers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(normalizers); i++) {
        const char *words[WORDS] = {normalizers[i].expected};
        weft_tokenizer *t = with_words("normalizer", normalizers[i].part, words);
        ASSERT_IDS(t, normalizers[i].text, 1);
        weft_tokenizer_free(t);
    }
}

/* ---- pre-tokenizers: a text must be cut into the words of the list, in this order ---- */

static const struct {
    const char *part, *text, *pieces[WORDS];
} pre_tokenizers[] = {
    {"{\"type\": \"ByteLevel\", \"add_prefix_space\": false}",
     "I'm  12 \xc3\xa9!",
     {"I", "'m", "\xc4\xa0",
      "\xc4\xa0"
      "12",
      "\xc4\xa0\xc3\x83\xc2\xa9", "!"}},
    {"{\"type\": \"ByteLevel\", \"add_prefix_space\": true, \"use_regex\": false}",
     "a b",
     {"\xc4\xa0"
      "a\xc4\xa0"
      "b"}},
    {"{\"type\": \"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"Removed\", \"invert\": false}",
     "a--b-",
     {"a", "b"}},
    {"{\"type\": \"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"Isolated\", \"invert\": false}",
     "a-b",
     {"a", "-", "b"}},
    {"{\"type\": \"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"MergedWithPrevious\", "
     "\"invert\": false}",
     "a--b-c",
     {"a-", "-", "b-", "c"}},
    {"{\"type\": \"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"MergedWithNext\", \"invert\": "
     "false}",
     "a--b-c",
     {"a", "-", "-b", "-c"}},
    {"{\"type\": \"Split\", \"pattern\": {\"String\": \"-\"}, \"behavior\": \"Contiguous\", \"invert\": "
     "false}",
     "a---b",
     {"a", "---", "b"}},
    {"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a-c[x-z]]{1,2}+|\\\\h\"}, \"behavior\": \"Removed\", "
     "\"invert\": true}",
     "axbcy.z",
     {"axbcy", "z"}},
    {"{\"type\": \"Split\", \"pattern\": {\"Regex\": \"(?i:'s|'t)|\\\\p{L}+|\\\\s+(?!\\\\S)|\\\\s+\"}, "
     "\"behavior\": \"Isolated\", \"invert\": false}",
     "it'S  ok",
     {"it", "'S", " ", " ", "ok"}},
    {"{\"type\": \"Whitespace\"}", "a_b1 ..?\tx\xcc\x81!", {"a_b1", "..?", "x\xcc\x81", "!"}},
    {"{\"type\": \"WhitespaceSplit\"}",
     " a.b \xe3\x80\x80"
     "c\n",
     {"a.b", "c"}},
    {"{\"type\": \"BertPreTokenizer\"}", "a,b  c\xe3\x80\x82$", {"a", ",", "b", "c", "\xe3\x80\x82", "$"}},
    {"{\"type\": \"Digits\", \"individual_digits\": true}", "a12\xd9\xa3", {"a", "1", "2", "\xd9\xa3"}},
    {"{\"type\": \"Digits\", \"individual_digits\": false}", "a12b", {"a", "12", "b"}},
    {"{\"type\": \"Punctuation\", \"behavior\": \"Contiguous\"}", "a.!b", {"a", ".!", "b"}},
    {"{\"type\": \"CharDelimiterSplit\", \"delimiter\": \"|\"}", "a|b c|", {"a", "b c"}},
    {"{\"type\": \"Metaspace\", \"replacement\": \"\\u2581\", \"prepend_scheme\": \"always\", \"split\": "
     "true}",
     "a  b",
     {"\xe2\x96\x81"
      "a",
      "\xe2\x96\x81",
      "\xe2\x96\x81"
      "b"}},
    {"{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"never\", \"split\": false}",
     "a b",
     {"a_b"}},
    {"{\"type\": \"Metaspace\", \"replacement\": \"_\", \"prepend_scheme\": \"first\"}",
     " a b",
     {"_a", "_b"}},
    {"{\"type\": \"Sequence\", \"pretokenizers\": [{\"type\": \"WhitespaceSplit\"}, {\"type\": \"Digits\", "
     "\"individual_digits\": false}]}",
     "ab1 2",
     {"ab", "1", "2"}},
    {"null", "a b", {"a b"}},
};

static void test_pre_tokenizers(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(pre_tokenizers); i++) {
        const char *const *pieces = pre_tokenizers[i].pieces, *unique[WORDS] = {0};
        int32_t expected[WORDS];
        int32_t count = 0, n = 0;
        for (; n < WORDS && pieces[n]; n++) {
            int32_t k = 0;
            while (k < count && strcmp(unique[k], pieces[n]) != 0) k++;
            if (k == count) unique[count++] = pieces[n];
            expected[n] = k + 1;
        }
        weft_tokenizer *t = with_words("pre_tokenizer", pre_tokenizers[i].part, unique);
        assert_ids(t, pre_tokenizers[i].text, expected, (size_t)n);
        weft_tokenizer_free(t);
    }
}

/* ---- decoders: ids 1, 2, ... must become the text ---- */

static const struct {
    const char *part, *tokens[WORDS], *expected;
} decoders[] = {
    {"{\"type\": \"ByteLevel\"}",
     {"\xc4\xa0"
      "a",
      "\xc3\x83", "\xc2\xa9", "\xe4\xbd\xa0"},
     " a\xc3\xa9\xe4\xbd\xa0"},
    {"{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": true}",
     {"##it", "'", "s", "go", "##ing", "."},
     "##it ' s going."},
    {"{\"type\": \"WordPiece\", \"prefix\": \"##\", \"cleanup\": false}", {"a", ".", "##b"}, "a .b"},
    {"{\"type\": \"Metaspace\", \"replacement\": \"\\u2581\", \"prepend_scheme\": \"always\"}",
     {"\xe2\x96\x81"
      "a",
      "b",
      "\xe2\x96\x81"
      "c"},
     "ab c"},
    {"{\"type\": \"Metaspace\", \"replacement\": \"\\u2581\", \"prepend_scheme\": \"never\"}",
     {"\xe2\x96\x81"
      "a"},
     " a"},
    {"{\"type\": \"BPEDecoder\", \"suffix\": \"</w>\"}", {"a", "b</w>", "c</w>"}, "ab c"},
    {"{\"type\": \"Strip\", \"content\": \" \", \"start\": 1, \"stop\": 1}", {"  a ", " b"}, " ab"},
    {"{\"type\": \"Sequence\", \"decoders\": [{\"type\": \"Replace\", \"pattern\": {\"String\": "
     "\"\\u2581\"}, \"content\": \" \"}, "
     "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", \"content\": \" \", "
     "\"start\": 1, \"stop\": 0}]}",
     {"\xe2\x96\x81",
      "\xe2\x96\x81"
      "a",
      "<0xC3>", "<0xA9>", "<0x4>"},
     " a\xc3\xa9<0x4>"},
    {"null", {"a", "b"}, "a b"},
};

static void test_decoders(void **state) {
    (void)state;
    static const int32_t ids[WORDS] = {1, 2, 3, 4, 5, 6, 7, 8};
    for (size_t i = 0; i < COUNT(decoders); i++) {
        size_t n = 0;
        while (n < WORDS && decoders[i].tokens[n]) n++;
        weft_tokenizer *t = with_words("decoder", decoders[i].part, decoders[i].tokens);
        assert_decoded(t, ids, n, decoders[i].expected);
        weft_tokenizer_free(t);
    }
}

/* ---- models ---- */

static void test_bpe(void **state) {
    (void)state;
    static const char *const forms[] = {"\"a b\", \"b c\", \"ab c\"",
                                        "[\"a\", \"b\"], [\"b\", \"c\"], [\"ab\", \"c\"]"};
    for (size_t i = 0; i < COUNT(forms); i++) {
        char json[1024];
        sprintf(json,
                "{\"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"fuse_unk\": true, \"vocab\": "
                "{\"?\": 0, \"a\": 1, "
                "\"b\": 2, \"c\": 3, \"ab\": 4, \"bc\": 5, \"abc\": 6, \"x y\": 7}, \"merges\": [%s]}}",
                forms[i]);
        weft_tokenizer *t = parse(json);
        ASSERT_IDS(t, "abcbc", 6, 5);
        ASSERT_IDS(t, "xxaxx", 0, 1, 0);
        ASSERT_IDS(t, "x y", 0);
        assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_UNK), 0);
        assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_EOS), -1);
        assert_int_equal(weft_tokenizer_id(t, "bc", 2), 5);
        assert_int_equal(weft_tokenizer_id(t, "cb", 2), -1);
        weft_tokenizer_free(t);
    }
}

static void test_bpe_options(void **state) {
    (void)state;
    weft_tokenizer *t =
        parse("{\"model\": {\"type\": \"BPE\", \"ignore_merges\": true, \"vocab\": {\"a\": 0, \"b\": 1, "
              "\"ab\": 2, \"aab\": 3}, \"merges\": [\"a b\"]}}");
    ASSERT_IDS(t, "aab", 3);
    ASSERT_IDS(t, "aaab", 0, 0, 2);
    assert_ids(t, "xyz", NULL, 0); /* without an unknown token, other characters are lost */
    weft_tokenizer_free(t);
    t = parse("{\"model\": {\"type\": \"BPE\", \"unk_token\": \"?\", \"fuse_unk\": false, "
              "\"end_of_word_suffix\": \"/w\", "
              "\"continuing_subword_prefix\": \"#\", \"vocab\": {\"?\": 0, \"a\": 1, \"#a\": 2, \"#a/w\": 3, "
              "\"aa\": 4, "
              "\"a/w\": 5}, \"merges\": [\"a #a\"]}}");
    ASSERT_IDS(t, "aaa", 4, 3);
    ASSERT_IDS(t, "a", 5);
    ASSERT_IDS(t, "xxa", 0, 0, 3);
    weft_tokenizer_free(t);
    t = parse("{\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"unk_token\": \"?\", \"vocab\": "
              "{\"?\": 0, \"a\": 1, "
              "\"<0xC3>\": 2, \"<0xA9>\": 3}, \"merges\": []}}");
    ASSERT_IDS(t,
               "a\xc3\xa9"
               "b",
               1, 2, 3, 0);
    weft_tokenizer_free(t);
}

static void test_word_models(void **state) {
    (void)state;
    weft_tokenizer *t =
        parse("{\"model\": {\"type\": \"WordPiece\", \"unk_token\": \"?\", \"max_input_chars_per_word\": 6, "
              "\"continuing_subword_prefix\": \"##\", \"vocab\": {\"?\": 0, \"un\": 1, \"##aff\": 2, "
              "\"##able\": 3, \"##a\": 4, \"##ffab\": 5, \"una\": 6}}, "
              "\"pre_tokenizer\": {\"type\": \"WhitespaceSplit\"}}");
    ASSERT_IDS(t, "unaff unable un unx unaffab", 0, 0, 1, 0, 0);
    ASSERT_IDS(t, "una unaa", 6, 6, 4);
    weft_tokenizer_free(t);
    t = parse("{\"model\": {\"type\": \"WordLevel\", \"vocab\": {\"a\": 0}}}");
    int32_t id;
    size_t n;
    ASSERT_IDS(t, "a", 0);
    assert_int_equal(weft_tokenizer_encode(t, "b", 1, &id, 1, &n), WEFT_ERR_INDEX);
    weft_tokenizer_free(t);
}

static void test_unigram(void **state) {
    (void)state;
    static const char vocabulary[] =
        "[\"<unk>\", 0], [\"a\", 0], [\"b\", 0], [\"c\", 0], [\"d\", 0], [\"cd\", 1.5], "
        "[\"ab\", 2], [\"abc\", 5.0], [\"abcd\", 10]";
    char json[1024];
    sprintf(json, "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"vocab\": [%s]}}", vocabulary);
    weft_tokenizer *t = parse(json);
    ASSERT_IDS(t, "abcdacdxx", 8, 1, 5, 0);
    ASSERT_IDS(t, "xaxx", 0, 1, 0);
    ASSERT_IDS(t, "abd", 6, 4);
    weft_tokenizer_free(t);
    sprintf(json,
            "{\"model\": {\"type\": \"Unigram\", \"unk_id\": 0, \"byte_fallback\": true, \"vocab\": [%s, "
            "[\"<0xC3>\", -1], "
            "[\"<0xA9>\", -1]]}}",
            vocabulary);
    t = parse(json);
    ASSERT_IDS(t,
               "a\xc3\xa9"
               "b",
               1, 9, 10, 2);
    ASSERT_IDS(t, "a\xc3\xa8", 1, 0);
    weft_tokenizer_free(t);
}

/* ---- added tokens, special tokens, malformed UTF-8 ---- */

#define ADDED(id, content, more) "{\"id\": " #id ", \"content\": \"" content "\"" more "}"
#define LETTERS                                                                                              \
    "{\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1, \" \": 2, \"x\": 3, \"\\ufffd\": 4}, \"merges\": "  \
    "[]}"

static void test_added_tokens(void **state) {
    (void)state;
    weft_tokenizer *t =
        parse("{\"normalizer\": {\"type\": \"Lowercase\"}, \"model\": " LETTERS
              ", \"added_tokens\": [" ADDED(5, "<s>", ", \"special\": true, \"normalized\": false") "," ADDED(
                  6, "<s>>",
                  ", \"special\": true, \"normalized\": "
                  "false, \"lstrip\": true, \"rstrip\": "
                  "true") "," ADDED(8, "Xab",
                                    ", \"normalized\": "
                                    "true") "," ADDED(9, "bb",
                                                      ", "
                                                      "\"si"
                                                      "ngle"
                                                      "_wor"
                                                      "d\":"
                                                      " tru"
                                                      "e, "
                                                      "\"no"
                                                      "rmal"
                                                      "ized"
                                                      "\": "
                                                      "fals"
                                                      "e") "]}");
    assert_int_equal(weft_tokenizer_vocabulary(t), 10);
    ASSERT_IDS(t, "a<s>b", 0, 5, 1);
    ASSERT_IDS(t, "a  <s>> b<S>", 0, 6, 1); /* the longest; <S> is not spelled so */
    ASSERT_IDS(t, "xAB xab", 8, 2, 8);      /* normalized */
    ASSERT_IDS(t, "bb abb bb", 9, 2, 0, 1, 1, 2, 9);
    ASSERT_IDS(t,
               "a\xff\xe2\x82"
               "b\xed\xa0\x80",
               0, 4, 4, 1, 4, 4, 4);
    assert_ids(t, "", NULL, 0);
    assert_true(weft_tokenizer_is_special(t, 5));
    assert_false(weft_tokenizer_is_special(t, 8));
    assert_false(weft_tokenizer_is_special(t, 0));
    assert_int_equal(weft_tokenizer_id(t, "<s>>", 4), 6);
    weft_tokenizer_free(t);
}

static void assert_special(const weft_tokenizer *t, const char *text, const int32_t *expected, size_t count) {
    int32_t ids[16];
    size_t n = 0;
    assert_int_equal(weft_tokenizer_encode_special(t, text, strlen(text), ids, COUNT(ids), &n), WEFT_OK);
    assert_int_equal(n, count);
    assert_memory_equal(ids, expected, count * sizeof *ids);
    assert_int_equal(weft_tokenizer_encode_special(t, text, strlen(text), ids, count - 1, &n),
                     WEFT_ERR_ARGUMENT);
    assert_int_equal(n, count);
}

static void assert_pair(const weft_tokenizer *t, const int32_t *expected, const int32_t *expected_types,
                        size_t count) {
    int32_t ids[16], types[16];
    size_t n = 0;
    assert_int_equal(weft_tokenizer_encode_pair(t, "aa", 2, "b", 1, ids, types, COUNT(ids), &n), WEFT_OK);
    assert_int_equal(n, count);
    assert_memory_equal(ids, expected, count * sizeof *ids);
    assert_memory_equal(types, expected_types, count * sizeof *types);
    assert_int_equal(weft_tokenizer_encode_pair(t, "aa", 2, "b", 1, ids, NULL, 2, &n), WEFT_ERR_ARGUMENT);
    assert_int_equal(n, count);
}

static void test_pairs(void **state) {
    (void)state;
    static const char *const names[] = {"Bert", "Roberta"};
    for (int i = 0; i < 2; i++) {
        char json[1024];
        sprintf(json,
                "{\"post_processor\": {\"type\": \"%sProcessing\", \"sep\": [\"x\", 3], \"cls\": [\" \", "
                "2]}, \"model\": " LETTERS "}",
                names[i]);
        weft_tokenizer *t = parse(json);
        if (i == 0)
            assert_pair(t, (const int32_t[]){2, 0, 0, 3, 1, 3}, (const int32_t[]){0, 0, 0, 0, 1, 1}, 6);
        if (i == 1)
            assert_pair(t, (const int32_t[]){2, 0, 0, 3, 3, 1, 3}, (const int32_t[]){0, 0, 0, 0, 0, 0, 0}, 7);
        weft_tokenizer_free(t);
    }
    weft_tokenizer *t = parse("{\"model\": " LETTERS "}");
    assert_pair(t, (const int32_t[]){0, 0, 1}, (const int32_t[]){0, 0, 1}, 3);
    weft_tokenizer_free(t);
}

/* A row of `a` times the letter a and, if b is not 0, as many letters b: how many of each are kept. */
typedef struct row_case {
    int a, b;
    int64_t most;
    int kept_a, kept_b;
} row_case;

/* `roberta`: two tokens between the texts, and all types 0. */
static void check_row(const weft_tokenizer *t, bool roberta, row_case c) {
    char first[16] = "", second[16] = "";
    int32_t ids[24], types[24], want[24], want_types[24];
    int64_t count = 0, n = 0;
    bool whole = false;
    memset(first, 'a', (size_t)c.a);
    memset(second, 'b', (size_t)c.b);
    assert_int_equal(
        weft_tokenizer_encode_row(t, first, c.b ? second : NULL, c.most, ids, types, &count, &whole),
        WEFT_OK);
    memset(want_types, 0, sizeof want_types);
    want[n++] = 2;
    for (int i = 0; i < c.kept_a; i++) want[n++] = 0;
    want[n++] = 3;
    if (c.b && roberta) want[n++] = 3;
    for (int i = 0; i < c.kept_b + (c.b > 0); i++) {
        want_types[n] = !roberta;
        want[n++] = i < c.kept_b ? 1 : 3;
    }
    assert_int_equal(count, n);
    assert_memory_equal(ids, want, (size_t)n * sizeof *ids);
    assert_memory_equal(types, want_types, (size_t)n * sizeof *types);
    assert_int_equal(whole, c.a == c.kept_a && c.b == c.kept_b);
}

/* Rows of an encoder. The package tokenizers keeps as many tokens, with the strategy "longest_first". */
static void test_rows(void **state) {
    (void)state;
    static const char *const names[] = {"Bert", "Roberta"};
    static const row_case cases[] = {{5, 0, 20, 5, 0}, {5, 0, 7, 5, 0},  {5, 0, 6, 4, 0},  {5, 0, 3, 1, 0},
                                     {3, 4, 20, 3, 4}, {2, 9, 10, 2, 5}, {9, 2, 10, 5, 2}, {9, 9, 10, 3, 4},
                                     {6, 9, 10, 3, 4}, {9, 6, 11, 4, 4}, {1, 1, 5, 1, 1},  {8, 8, 5, 1, 1}};
    for (int i = 0; i < 2; i++) {
        char json[1024];
        int32_t ids[8], types[8];
        int64_t count;
        bool whole;
        sprintf(json,
                "{\"post_processor\": {\"type\": \"%sProcessing\", \"sep\": [\"x\", 3], \"cls\": [\" \", "
                "2]}, \"model\": " LETTERS "}",
                names[i]);
        weft_tokenizer *t = parse(json);
        for (size_t k = 0; k < COUNT(cases); k++) {
            row_case c = cases[k];
            c.most += i && c.b; /* room for the second [SEP] */
            check_row(t, i, c);
        }
        assert_int_equal(weft_tokenizer_encode_row(t, "a", NULL, 2, ids, types, &count, &whole),
                         WEFT_ERR_ARGUMENT);
        assert_int_equal(weft_tokenizer_encode_row(t, "a", "b", 4 + i, ids, types, &count, &whole),
                         WEFT_ERR_ARGUMENT);
        weft_tokenizer_free(t);
    }
}

static void test_post_processors(void **state) {
    (void)state;
    static const char *const parts[] = {
        "{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": \"b\", \"type_id\": "
        "0}}, {\"Sequence\": "
        "{\"id\": \"A\", \"type_id\": 0}}, {\"SpecialToken\": {\"id\": \"x\", \"type_id\": 0}}], \"pair\": "
        "[], "
        "\"special_tokens\": {\"b\": {\"id\": \"b\", \"ids\": [1], \"tokens\": [\"b\"]}, "
        "\"x\": {\"id\": \"x\", \"ids\": [3], \"tokens\": [\"x\"]}}}",
        "{\"type\": \"BertProcessing\", \"sep\": [\"x\", 3], \"cls\": [\"b\", 1]}",
        "{\"type\": \"RobertaProcessing\", \"sep\": [\"x\", 3], \"cls\": [\"b\", 1], \"trim_offsets\": true}",
        "{\"type\": \"Sequence\", \"processors\": [{\"type\": \"ByteLevel\"}, {\"type\": \"BertProcessing\", "
        "\"sep\": [\"x\", 3], "
        "\"cls\": [\"b\", 1]}]}"};
    for (size_t i = 0; i < COUNT(parts); i++) {
        char json[2048];
        sprintf(json, "{\"post_processor\": %s, \"model\": " LETTERS "}", parts[i]);
        weft_tokenizer *t = parse(json);
        assert_special(t, "aa", (const int32_t[]){1, 0, 0, 3}, 4);
        ASSERT_IDS(t, "aa", 0, 0);
        weft_tokenizer_free(t);
    }
}

/* ---- files ---- */

static void save_text(const char *name, const char *text) {
    assert_true(spill(in_scratch(name), text, strlen(text)));
}

static void test_files(void **state) {
    (void)state;
    weft_tokenizer *t = NULL, *u = NULL;
    save_text(
        "tokenizer.json",
        "{\"model\": " LETTERS ", \"added_tokens\": [" ADDED(5, "<s>", ", \"special\": true") "," ADDED(
            6, "</s>", ", \"special\": true") "], \"truncation\": {\"max_length\": 2}, \"padding\": {}}");
    save_text("tokenizer_config.json",
              "{\"add_bos_token\": true, \"bos_token\": \"<s>\", \"eos_token\": {\"content\": "
              "\"</s>\"}, \"pad_token\": \"</s>\", \"chat_template\": \"x\"}");
    save_text("special_tokens_map.json", "{\"bos_token\": \"a\", \"unk_token\": \"x\"}");
    assert_int_equal(weft_tokenizer_load(NULL, scratch, &t), WEFT_OK);
    assert_int_equal(weft_tokenizer_save(t, in_scratch("saved")), WEFT_OK);
    assert_int_equal(mkdir(in_scratch("alone"), 0777), 0);
    assert_int_equal(rename(in_scratch("saved"), in_scratch("alone/tokenizer.json")), 0);
    assert_int_equal(weft_tokenizer_load(NULL, in_scratch("alone/tokenizer.json"), &u), WEFT_OK);
    for (int i = 0; i < 2; i++) {
        const weft_tokenizer *v = i ? u : t;
        assert_int_equal(weft_tokenizer_special(v, WEFT_SPECIAL_BOS), 5);
        assert_int_equal(weft_tokenizer_special(v, WEFT_SPECIAL_EOS), 6);
        assert_int_equal(weft_tokenizer_special(v, WEFT_SPECIAL_PAD), 6);
        assert_special(v, "ab", (const int32_t[]){5, 0, 1}, 3);
        ASSERT_IDS(v, "a</s>", 0, 6);
    }
    assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_UNK), 3);
    assert_int_equal(weft_tokenizer_save(u, in_scratch("again")), WEFT_OK);
    size_t n = 0, m = 0;
    char *x = slurp(in_scratch("alone/tokenizer.json"), &n), *y = slurp(in_scratch("again"), &m);
    assert_int_equal(n, m);
    assert_memory_equal(x, y, n);
    free(x);
    free(y);
    weft_tokenizer_free(t);
    weft_tokenizer_free(u);
    static const char *const names[] = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json",
                                        "again", "alone/tokenizer.json"};
    for (size_t i = 0; i < COUNT(names); i++) (void)unlink(in_scratch(names[i]));
    (void)rmdir(in_scratch("alone"));
}

static const struct {
    const char *json;
    weft_status status;
    const char *message;
} bad[] = {
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {}}}", WEFT_ERR_FORMAT, "model, BPE: merges must be a list"},
    {"{\"model\": {\"type\": \"Foo\", \"vocab\": {}}}", WEFT_ERR_UNSUPPORTED,
     "the type 'Foo'. It knows BPE, WordPiece"},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a b\"]}}", WEFT_ERR_FORMAT,
     "merge 1: 'b' is not in the vocabulary"},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 1}, \"merges\": [\"a b\"]}}",
     WEFT_ERR_FORMAT, "merge 1: 'ab' is not in the vocabulary"},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0}, \"merges\": [\"a\"]}}", WEFT_ERR_FORMAT,
     "merge 1 must have two"},
    {"{\"model\": {\"type\": \"BPE\", \"dropout\": 0.1, \"vocab\": {\"a\": 0}, \"merges\": []}}",
     WEFT_ERR_UNSUPPORTED, "dropout"},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 0, \"b\": 0}, \"merges\": []}}", WEFT_ERR_FORMAT,
     "have one id, 0"},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": -1}, \"merges\": []}}", WEFT_ERR_FORMAT,
     "a number from 0 on"},
    {"{\"model\": {\"type\": \"BPE\", \"vocab\": {\"a\": 9999999}, \"merges\": []}}", WEFT_ERR_FORMAT,
     "too large"},
    {"{\"model\": {\"type\": \"Unigram\", \"unk_id\": 3, \"vocab\": [[\"a\", 1]]}}", WEFT_ERR_FORMAT,
     "unk_id"},
    {"{\"model\": {\"type\": \"Unigram\", \"vocab\": [[\"a\"]]}}", WEFT_ERR_FORMAT, "entry 0"},
    {"{\"version\": \"2.0\", \"model\": " LETTERS "}", WEFT_ERR_UNSUPPORTED, "this Weft reads \"1.0\""},
    {"{\"normalizer\": {\"type\": \"Foo\"}, \"model\": " LETTERS "}", WEFT_ERR_UNSUPPORTED,
     "normalizer: Weft does not know the type 'Foo'. It knows Sequence, NFC"},
    {"{\"normalizer\": {}, \"model\": " LETTERS "}", WEFT_ERR_FORMAT, "type must be a string"},
    {"{\"normalizer\": {\"type\": \"Lowercase\", \"x\": 1}, \"pre_tokenizer\": {\"type\": "
     "\"UnicodeScripts\"}, \"model\": " LETTERS "}",
     WEFT_ERR_UNSUPPORTED, "pre_tokenizer: Weft does not know the type 'UnicodeScripts'"},
    {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"[a&&b]\"}, \"behavior\": "
     "\"Isolated\"}, \"model\": " LETTERS "}",
     WEFT_ERR_UNSUPPORTED, "an intersection of classes at byte 2"},
    {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"Regex\": \"(a\"}, \"behavior\": "
     "\"Isolated\"}, \"model\": " LETTERS "}",
     WEFT_ERR_UNSUPPORTED, "PCRE2 does not accept the pattern '(a'"},
    {"{\"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": {\"String\": \"a\"}, \"behavior\": \"Foo\"}, "
     "\"model\": " LETTERS "}",
     WEFT_ERR_UNSUPPORTED, "behavior is 'Foo', but Weft knows Removed, Isolated"},
    {"{\"pre_tokenizer\": {\"type\": \"Digits\", \"individual_digits\": 1}, \"model\": " LETTERS "}",
     WEFT_ERR_FORMAT, "pre_tokenizer, Digits: individual_digits must be true or false"},
    {"{\"decoder\": {\"type\": \"CTC\"}, \"model\": " LETTERS "}", WEFT_ERR_UNSUPPORTED,
     "decoder: Weft does not know the type 'CTC'"},
    {"{\"post_processor\": {\"type\": \"Foo\"}, \"model\": " LETTERS "}", WEFT_ERR_UNSUPPORTED,
     "post_processor, Foo: unknown type"},
    {"{\"added_tokens\": [{\"id\": -1, \"content\": \"x\"}], \"model\": " LETTERS "}", WEFT_ERR_FORMAT,
     "added_tokens: id must be"},
    {"{\"added_tokens\": [{\"id\": 9999999, \"content\": \"y\"}], \"model\": " LETTERS "}", WEFT_ERR_FORMAT,
     "too large"},
    {"{\"normalizer\": {\"type\": \"Precompiled\", \"precompiled_charsmap\": \"AAAA\"}, \"model\": " LETTERS
     "}",
     WEFT_ERR_FORMAT, "precompiled_charsmap is damaged"},
};

static void test_bad_files(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++) {
        weft_tokenizer *t = NULL;
        weft_status status = weft_tokenizer_parse(NULL, bad[i].json, strlen(bad[i].json), &t);
        if (status != bad[i].status || !strstr(weft_last_error(NULL), bad[i].message) || t)
            fail_msg("%s: %s, '%s'", bad[i].json, weft_status_name(status), weft_last_error(NULL));
    }
}

static weft_status use(weft_context *ctx) {
    static const char json[] =
        "{\"normalizer\": {\"type\": \"NFKD\"}, \"pre_tokenizer\": {\"type\": \"Split\", \"pattern\": "
        "{\"Regex\": \"[a[b]]+\"}, "
        "\"behavior\": \"Isolated\"}, \"decoder\": {\"type\": \"WordPiece\"}, \"model\": " LETTERS
        ", \"added_tokens\": [" ADDED(5, "<s>",
                                      ", \"special\": true") "], \"post_processor\": {\"type\": "
                                                             "\"BertProcessing\", \"sep\": [\"x\", 3], "
                                                             "\"cls\": [\"b\", 1]}}";
    weft_tokenizer *t = NULL;
    size_t n;
    int32_t ids[64];
    char out[64];
    WEFT_TRY(weft_tokenizer_parse(ctx, json, sizeof json - 1, &t));
    weft_status status = weft_tokenizer_encode_special(t, "ab\xff xx<s>\xef\xac\x81", 13, ids, 64, &n);
    if (status == WEFT_OK) status = weft_tokenizer_decode(t, ids, n, out, sizeof out, &n);
    if (status == WEFT_OK) status = weft_tokenizer_save(t, in_scratch("t.json"));
    weft_tokenizer_free(t);
    return status;
}

static void test_short_memory(void **state) {
    (void)state;
    int calls = fail_each_allocation(use);
    if (calls < 0) fail_msg("allocation %d: %s", -1 - calls, weft_last_error(NULL));
    assert_true(calls > 20);
    (void)unlink(in_scratch("t.json"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_normalizers),
        cmocka_unit_test(test_pre_tokenizers),
        cmocka_unit_test(test_decoders),
        cmocka_unit_test(test_bpe),
        cmocka_unit_test(test_bpe_options),
        cmocka_unit_test(test_word_models),
        cmocka_unit_test(test_unigram),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_post_processors),
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_bad_files),
        cmocka_unit_test(test_short_memory),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
