/* Fails every allocation of files and texts in turn. The error must be "out of memory", nothing may leak,
 * and files on disk must stay. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/data.h>
#include <weft/io.h>
#include <weft/text.h>

#include "unit/failing_alloc.h"
#include "unit/io_scratch.h"

static const float values[6] = {1, 2, 3, 4, 5, 6};

static weft_status read_values(void *user, size_t offset, void *out, size_t bytes) {
    (void)user;
    memcpy(out, (const char *)values + offset, bytes);
    return WEFT_OK;
}

static const int64_t shape[] = {2, 3};
static const weft_entry entries[] = {
    {.name = "a", .dtype = WEFT_F32, .rank = 2, .shape = shape, .data = values},
    {.name = "b", .dtype = WEFT_F32, .rank = 2, .shape = shape, .read = read_values},
};

static weft_status use_safetensors(weft_context *ctx) {
    const weft_metadata metadata = {"k", "v"};
    weft_safetensors *f;
    WEFT_TRY(weft_safetensors_write(ctx, in_scratch("file"), entries, 2, &metadata, 1));
    WEFT_TRY(weft_safetensors_open(ctx, in_scratch("file"), &f));
    weft_safetensors_close(f);
    return WEFT_OK;
}

static weft_status use_checkpoint(weft_context *ctx) {
    const weft_checkpoint_state state = {.step = 2};
    weft_checkpoint *c;
    WEFT_TRY(weft_checkpoint_write(ctx, scratch, &state, entries, 2, entries, 1));
    WEFT_TRY(weft_checkpoint_open_newest(ctx, scratch, true, &c));
    weft_checkpoint_close(c);
    return weft_checkpoint_prune(ctx, scratch, 1);
}

static weft_status use_lock(weft_context *ctx) {
    weft_run_lock *lock;
    WEFT_TRY(weft_run_lock_take(ctx, scratch, &lock));
    weft_run_lock_release(lock);
    return WEFT_OK;
}

static weft_status use_tokenizer(weft_context *ctx, weft_tokenizer_kind kind) {
    const char *text = "a few words and \xc3\xa9 a word\n";
    weft_tokenizer *t = NULL, *u = NULL;
    weft_decoder *d = NULL;
    const char *piece;
    size_t n;
    WEFT_TRY(weft_tokenizer_build(ctx, kind, text, strlen(text), NULL, &t));
    weft_status status = weft_tokenizer_save(t, in_scratch("t.json"));
    if (status == WEFT_OK) status = weft_tokenizer_load(ctx, in_scratch("t.json"), &u);
    if (status == WEFT_OK) status = weft_decoder_open(t, &d);
    if (status == WEFT_OK) status = weft_decoder_push(d, 3, &piece, &n);
    weft_decoder_free(d);
    weft_tokenizer_free(t);
    weft_tokenizer_free(u);
    return status;
}

static weft_status use_characters(weft_context *ctx) { return use_tokenizer(ctx, WEFT_TOKENIZER_CHARACTER); }
static weft_status use_words(weft_context *ctx) { return use_tokenizer(ctx, WEFT_TOKENIZER_WORD); }
static weft_status use_bytes(weft_context *ctx) { return use_tokenizer(ctx, WEFT_TOKENIZER_BYTE); }

static weft_status use_corpus(weft_context *ctx) {
    weft_corpus *c;
    WEFT_TRY(
        weft_corpus_open(ctx, in_scratch("text"), &(weft_corpus_options){.validation_fraction = 0.5}, &c));
    weft_corpus_free(c);
    return WEFT_OK;
}

/* A text that stays in its files. */
static weft_status use_files(weft_context *ctx) {
    weft_corpus *c;
    int32_t ids[4];
    const weft_corpus_options options = {.validation_fraction = 0.5, .in_files = true};
    WEFT_TRY(weft_corpus_open(ctx, in_scratch("text"), &options, &c));
    const size_t read = weft_tokens_read(weft_corpus_tokens(c, WEFT_CORPUS_TRAIN, NULL), 0, 4, ids);
    weft_corpus_free(c);
    return read == 4 ? WEFT_OK : WEFT_ERR_INTERNAL;
}

static void test_every_allocation(void **state) {
    (void)state;
    weft_status (*const scenarios[])(weft_context *) = {use_safetensors, use_checkpoint, use_lock,
                                                        use_characters,  use_words,      use_bytes,
                                                        use_corpus,      use_files};
    assert_true(spill(in_scratch("text"), "some text", 9));
    for (size_t i = 0; i < sizeof scenarios / sizeof *scenarios; i++) {
        int calls = fail_each_allocation(scenarios[i]);
        if (calls < 0) fail_msg("scenario %zu: allocation %d: %s", i, -1 - calls, weft_last_error(NULL));
        assert_true(calls >= 3);
    }
    assert_int_equal(count_hidden(scratch), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_allocation)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
