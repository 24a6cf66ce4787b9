/* The table of data sources: each row is whole, and formats are guessed from paths. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/stat.h>
#include <cmocka.h>

#include "unit/io_scratch.h"
#include "train/dataset/dataset.h"

static const weft__source_kind *const kinds[] = {
#define SOURCE(id, name) &weft__data_##name,
#include "train/source/sources.def"
};

/* Other code calls these without asking whether they are there. */
static void test_rows_are_whole(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const weft__source_kind *k = kinds[i];
        assert_non_null(k->unit);
        assert_int_equal(k->read != NULL, k->form == WEFT__FORM_CORPUS);
        assert_int_equal(k->file != NULL, k->form != WEFT__FORM_CORPUS);
        assert_int_equal(k->plural != NULL, k->form == WEFT__FORM_FOLDER);
        assert_int_equal(k->save != NULL, k->take != NULL);
        assert_true(k->form != WEFT__FORM_CORPUS || k->lines);
    }
}

static void test_guesses(void **state) {
    (void)state;
    static const struct {
        const char *path, *word;
        weft__model_type model;
    } cases[] = {{"a.csv.gz", "csv", WEFT__MODEL_MLP},    {"a.parquet", "csv", WEFT__MODEL_MLP},
                 {"a.json", "json", WEFT__MODEL_CNN},     {"a.bin", "cifar10", WEFT__MODEL_RESNET},
                 {"a.bin", "tokens", WEFT__MODEL_GPT},    {"a.tar", "images", WEFT__MODEL_CNN},
                 {"a.csv", "texts", WEFT__MODEL_ENCODER}, {"a.csv", NULL, WEFT__MODEL_GPT},
                 {"csv", NULL, WEFT__MODEL_MLP},          {"a.jsonl", "text", WEFT__MODEL_LSTM}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *word = weft__source_guess(cases[i].model, false, cases[i].path);
        if (cases[i].word)
            assert_string_equal(word, cases[i].word);
        else
            assert_null(word);
    }
    assert_int_equal(mkdir(in_scratch("pictures.csv"), 0700), 0);
    assert_string_equal(weft__source_guess(WEFT__MODEL_CNN, false, in_scratch("pictures.csv")), "images");
}

/* A key of other sources is not used, and one of no source is none of the table's business. */
static void test_keys_of_sources(void **state) {
    (void)state;
    weft__config config;
    weft__config_init(&config);
    config.data_source = WEFT__SOURCE_CSV;
    assert_false(weft__source_ignores(&config, WEFT__KEY_data_max_bytes));
    assert_true(weft__source_ignores(&config, WEFT__KEY_data_image_pixels));
    assert_false(weft__source_ignores(&config, WEFT__KEY_data_target));
    config.data_source = WEFT__SOURCE_TOKENS;
    assert_false(weft__source_ignores(&config, WEFT__KEY_data_in_files));
    assert_false(weft__source_has_tokenizer(&config));
    config.data_source = WEFT__SOURCE_BYTES;
    assert_true(weft__source_has_tokenizer(&config));
    weft__config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_are_whole), cmocka_unit_test(test_guesses),
                                       cmocka_unit_test(test_keys_of_sources)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
