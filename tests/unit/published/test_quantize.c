/* The formats in which weights are written: blocks against the package gguf, K blocks against the error of
 * llama.cpp's quantisers (quantize.json, of make_models.py), and numbers at the edges. */
#include <jansson.h>

#include "published/quantize.h"
#include "unit/core_help.h"

enum { NUMBERS = 2048 };

/* As make_models.py makes them. */
static void weights_to_pack(float out[NUMBERS]) {
    uint32_t state = 1;
    for (int i = 0; i < NUMBERS; i++) {
        state = state * 1664525U + 1013904223U;
        const float uniform = ((float)(state >> 8) - 8388608.0F) / 8388608.0F;
        out[i] = uniform * (float)ldexp(1, i / 32 % 5 - 3) + (i / 256 == 3 ? 0.25F : 0.0F);
    }
    for (int i = 0; i < 32; i++) {
        out[i] = out[96 + i] = 0;
        out[32 + i] = 0.75F;
        out[64 + i] = -0.75F;
    }
    out[127] = -3.5F;
}

static json_t *read_reference(void) {
    json_error_t error;
    json_t *root = json_load_file("tests/unit/published/quantize.json", 0, &error);
    assert_non_null(root);
    return root;
}

static weft__format format_of(const char *word) {
    weft__format format;
    if (!weft__format_find(word, &format)) fail_msg("no format %s", word);
    assert_non_null(format.type);
    return format;
}

/* The bytes of f16, bf16, q8_0, q5_0 and q4_0 are those of gguf. */
static void test_bytes(void **state) {
    (void)state;
    static float x[NUMBERS];
    static uint8_t got[4 * NUMBERS];
    json_t *root = read_reference(), *one, *bytes;
    const char *word;
    int compared = 0;
    weights_to_pack(x);
    json_object_foreach(root, word, one) {
        bytes = json_object_get(one, "bytes");
        if (!bytes) continue;
        const weft__format format = format_of(word);
        const size_t size = (size_t)(NUMBERS / format.type->elements) * format.type->bytes;
        const char *hex = json_string_value(bytes);
        assert_int_equal(strlen(hex), 2 * size);
        weft__format_pack(&format, x, NUMBERS, got);
        for (size_t i = 0; i < size; i++) {
            unsigned want;
            assert_int_equal(sscanf(hex + 2 * i, "%2x", &want), 1);
            if (got[i] != want) fail_msg("%s: byte %zu is %02x, gguf has %02x", word, i, got[i], want);
        }
        compared++;
    }
    assert_int_equal(compared, 5);
    json_decref(root);
}

/* The squared error of K blocks is at most that of llama.cpp: in all, and nearly in each. */
static void test_k_blocks(void **state) {
    (void)state;
    static float x[NUMBERS], back[NUMBERS];
    static uint8_t packed[NUMBERS];
    static const char *const words[] = {"q4_k", "q6_k"};
    json_t *root = read_reference();
    weights_to_pack(x);
    for (size_t k = 0; k < COUNT(words); k++) {
        const weft__format format = format_of(words[k]);
        json_t *squares = json_object_get(json_object_get(root, words[k]), "squares");
        assert_int_equal(json_array_size(squares), NUMBERS / 256);
        weft__format_pack(&format, x, NUMBERS, packed);
        weft__block_unpack(format.type, packed, NUMBERS, back);
        double all = 0, all_theirs = 0;
        for (size_t b = 0; b < NUMBERS / 256; b++) {
            const double theirs = json_number_value(json_array_get(squares, b));
            double ours = 0;
            for (size_t i = 256 * b; i < 256 * b + 256; i++)
                ours += ((double)back[i] - (double)x[i]) * ((double)back[i] - (double)x[i]);
            if (!(ours <= 1.05 * theirs))
                fail_msg("%s: block %zu has %g, llama.cpp %g", words[k], b, ours, theirs);
            all += ours;
            all_theirs += theirs;
        }
        if (!(all < 0.99 * all_theirs)) fail_msg("%s: %g, llama.cpp %g", words[k], all, all_theirs);
    }
    json_decref(root);
}

/* How far a number may be off, as a share of the largest one of its block. */
static const struct {
    const char *word;
    double share;
} shares[] = {{"f32", 0},         {"f16", 0x1p-11},  {"bf16", 0x1p-8},   {"q8_0", 0.6 / 127},
              {"q5_0", 1.1 / 16}, {"q4_0", 1.1 / 8}, {"q6_k", 1.1 / 32}, {"q4_k", 1.5 / 15}};

/* What is packed and unpacked is near what it was, also for blocks with one sign, of one number, and tiny. */
static void test_edges(void **state) {
    (void)state;
    enum { KINDS = 7, N = 256 };
    static const char *const names[KINDS] = {"zeros",    "ones",        "positive", "negative",
                                             "one only", "tiny, mixed", "large"};
    for (size_t f = 0; f < COUNT(shares); f++)
        for (int kind = 0; kind < KINDS; kind++) {
            const weft__format format = format_of(shares[f].word);
            float x[N], back[N];
            uint8_t packed[4 * N];
            double most = 0;
            for (int i = 0; i < N; i++) {
                const float wave = (float)sin(0.37 * i + kind);
                const float values[KINDS] = {
                    0, 1, 1.5F + wave, -2 - wave, i == 200 ? -7.0F : 0.0F, 1e-3F * wave, 3e4F * wave};
                x[i] = values[kind];
                most = fmax(most, fabs((double)x[i]));
            }
            weft__format_pack(&format, x, N, packed);
            weft__block_unpack(format.type, packed, N, back);
            for (int i = 0; i < N; i++)
                if (!(fabs((double)back[i] - (double)x[i]) <= shares[f].share * most + 5e-6)) /* f16 scales */
                    fail_msg("%s, %s: element %d is %g, not %g", shares[f].word, names[kind], i,
                             (double)back[i], (double)x[i]);
        }
}

static void test_formats(void **state) {
    (void)state;
    char words[128];
    weft__format format;
    weft__format_words(words, sizeof words);
    assert_string_equal(words, "f32, f16, bf16, q8_0, q5_0, q4_0, q4_k, q6_k");
    assert_false(weft__format_find("q3", &format));
    assert_false(weft__format_find("", &format));
    static const struct {
        const char *word;
        int64_t columns;
        const char *fits;
    } cases[] = {{"q4_k", 512, "q4_k"}, {"q4_k", 576, "q5_0"}, {"q4_k", 40, "f16"},
                 {"q6_k", 96, "q8_0"},  {"q6_k", 7, "f16"},    {"q4_0", 32, "q4_0"},
                 {"q4_0", 33, "f16"},   {"f32", 1, "f32"},     {"bf16", 3, "bf16"}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        format = format_of(cases[i].word);
        weft__format_fit(&format, cases[i].columns);
        assert_string_equal(format.word, cases[i].fits);
    }
}

/* Numbers that no block can hold are found. */
static void test_check(void **state) {
    (void)state;
    const weft__format half = format_of("q4_k"), wide = format_of("bf16");
    const float fine[3] = {1, -65504, 0}, large[3] = {1, 2, 65505}, bad[3] = {1, NAN, 2},
                infinite[3] = {-INFINITY, 1, 2};
    assert_int_equal(weft__format_check(&half, fine, 3), 3);
    assert_int_equal(weft__format_check(&half, large, 3), 2);
    assert_int_equal(weft__format_check(&wide, large, 3), 3);
    assert_int_equal(weft__format_check(&half, bad, 3), 1);
    assert_int_equal(weft__format_check(&wide, bad, 3), 1);
    assert_int_equal(weft__format_check(&wide, infinite, 3), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),   cmocka_unit_test(test_k_blocks), cmocka_unit_test(test_edges),
        cmocka_unit_test(test_formats), cmocka_unit_test(test_check),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
