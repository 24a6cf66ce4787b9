/* Training a byte-level BPE: the ids that BpeTrainer of tokenizers 0.23 leads to, its errors, short memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/text.h>

#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"
#include "unit/text_ids.h"

/* ---- training: the ids that BpeTrainer leads to ---- */

static const char lesson[] =
    "low low low lower lowest newest newest newest widest widest aaaa aaaa\nwider 1234 1234 12 "
    "caf\xc3\xa9 caf\xc3\xa9\n";

static void test_train(void **state) {
    (void)state;
    const char *path = in_scratch("lesson.txt");
    weft_tokenizer *t = NULL;
    assert_true(spill(path, lesson, sizeof lesson - 1));
    weft_tokenizer_train_options options = {.vocabulary = 277, .pattern = WEFT_TOKENIZER_GPT2};
    assert_int_equal(weft_tokenizer_train(NULL, &path, 1, &options, &t), WEFT_OK);
    assert_int_equal(weft_tokenizer_vocabulary(t), 277);
    ASSERT_IDS(t, "lowest caf\xc3\xa9 1234aaaa<|endoftext|>", 261, 259, 221, 273, 275, 268, 271, 257, 257, 0);
    assert_int_equal(weft_tokenizer_special(t, WEFT_SPECIAL_EOS), 0);
    weft_tokenizer_free(t);
    options.pattern = WEFT_TOKENIZER_CL100K;
    assert_int_equal(weft_tokenizer_train(NULL, &path, 1, &options, &t), WEFT_OK);
    ASSERT_IDS(t, "lowest caf\xc3\xa9 1234aaaa<|endoftext|>", 261, 259, 276, 273, 221, 263, 19, 20, 257, 257,
               0);
    assert_decoded(t, (const int32_t[]){261, 259, 276, 273, 221, 263, 19, 20, 257, 257, 0}, 11,
                   "lowest caf\xc3\xa9 1234aaaa<|endoftext|>");
    weft_tokenizer_free(t);
    static const char *const specials[] = {"<a>", "<b>"};
    options = (weft_tokenizer_train_options){
        .vocabulary = 100000, .special = specials, .special_count = 2, .min_count = 3};
    assert_int_equal(weft_tokenizer_train(NULL, &path, 1, &options, &t), WEFT_OK);
    assert_in_range(weft_tokenizer_vocabulary(t), 259, 300); /* no pair is left */
    ASSERT_IDS(t, "<b>", 1);
    weft_tokenizer_free(t);
    options.vocabulary = 257;
    assert_int_equal(weft_tokenizer_train(NULL, &path, 1, &options, &t), WEFT_ERR_ARGUMENT);
    path = in_scratch("absent.txt");
    assert_int_equal(weft_tokenizer_train(NULL, &path, 1, NULL, &t), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "absent.txt"));
    path = in_scratch("empty.txt");
    assert_true(spill(path, "", 0));
    assert_int_equal(weft_tokenizer_train(NULL, &path, 1, NULL, &t), WEFT_ERR_FORMAT);
    assert_null(t);
    assert_int_equal(weft_tokenizer_train(NULL, &path, 0, NULL, &t), WEFT_ERR_ARGUMENT);
}

static weft_status learn(weft_context *ctx) {
    const char *path = in_scratch("lesson.txt");
    const weft_tokenizer_train_options options = {.vocabulary = 270};
    weft_tokenizer *t = NULL;
    weft_status status = weft_tokenizer_train(ctx, &path, 1, &options, &t);
    weft_tokenizer_free(t);
    return status;
}

static void test_train_short_memory(void **state) {
    (void)state;
    assert_true(spill(in_scratch("lesson.txt"), lesson, sizeof lesson - 1));
    int calls = fail_each_allocation(learn);
    if (calls < 0) fail_msg("allocation %d: %s", -1 - calls, weft_last_error(NULL));
    assert_true(calls > 20);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_train),
                                       cmocka_unit_test(test_train_short_memory)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
