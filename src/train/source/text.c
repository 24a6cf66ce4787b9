/* Text and bytes for language models, through a corpus. Must not know: tables, models. Read next: tokens.c.
 */
#include <stdio.h>
#include <string.h>

#include "text/corpus_files.h"
#include "text/documents.h"
#include "train/source/tokens.h"

/* A text and its ids take this many bytes for each byte of text, at most. Texts stay in their files if they
 * would take more than this part of the free memory. */
enum { BYTES = 1 + sizeof(int32_t), PART = 4 };

#define LARGE UINT64_C(1000000000) /* bytes of text whose tokens take more than some seconds to count */

/* Adds up the bytes of all texts. 0: they are packed, or whoever reads them reports why they cannot be read.
 */
static weft_status measure_texts(weft_context *ctx, const weft__config *config, uint64_t *bytes) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    weft_status status = WEFT_OK;
    *bytes = 0;
    for (int i = 0; status == WEFT_OK && i < WEFT__SPLIT_COUNT; i++) {
        weft__documents documents = {0};
        weft__text_files files;
        if (!paths[i]) continue;
        status = weft__documents_files(ctx, paths[i], &files);
        if (status == WEFT_OK) status = weft__documents_list(ctx, paths[i], &files, false, &documents);
        *bytes += documents.bytes;
        weft__documents_free(&documents);
        weft__text_files_free(ctx, &files);
    }
    if (status != WEFT_OK) *bytes = 0;
    return status == WEFT_ERR_OOM ? status : WEFT_OK;
}

/* Tells why the start takes long. */
static void tell_large(uint64_t bytes) {
    char line[200];
    if (bytes < LARGE || !weft__dataset_tell) return;
    snprintf(line, sizeof line,
             "counting the tokens of %.3g GB of text; with files of tokens, which weft tokenize writes, each "
             "start is faster",
             1e-9 * (double)bytes);
    weft__dataset_tell(line);
}

/* Decides whether the text stays in its files. */
static weft_status choose_in_files(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const weft_tokenizer_kind kind =
        d->tokenizer ? weft_tokenizer_kind_of(d->tokenizer) : (weft_tokenizer_kind)config->data_tokenizer;
    const bool whole = weft__source_of(config)->tokens_of == WEFT__TOKENS_OF_TEXT &&
                       (kind == WEFT_TOKENIZER_PIPELINE || kind == WEFT_TOKENIZER_WORD);
    uint64_t bytes;
    if (config->data_in_files != WEFT__IN_FILES_TRUE &&
        (config->data_in_files != WEFT__IN_FILES_AUTO || whole))
        return WEFT_OK;
    WEFT_TRY(measure_texts(ctx, config, &bytes));
    if (config->data_in_files == WEFT__IN_FILES_AUTO) {
        const uint64_t left = weft__host_memory_free() / (uint64_t)weft__dataset_sharers;
        d->in_files = left > 0 && BYTES * bytes > left / PART;
    }
    if (d->in_files) tell_large(bytes);
    return WEFT_OK;
}

static weft_status text_read(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const bool bytes = weft__source_of(config)->tokens_of == WEFT__TOKENS_OF_BYTES;
    d->in_files = config->data_in_files == WEFT__IN_FILES_TRUE;
    WEFT_TRY(choose_in_files(ctx, config, d));
    const weft_corpus_options options = {
        .kind = bytes ? WEFT_TOKENIZER_BYTE : (weft_tokenizer_kind)config->data_tokenizer,
        .max_vocabulary = (size_t)config->data_max_vocabulary,
        .tokenizer = d->tokenizer,
        .validation_path = config->data_val_path,
        .test_path = config->data_test_path,
        .in_files = d->in_files,
        .validation_fraction = config->data_val_path ? 0 : config->data_val_fraction};
    WEFT_TRY(weft_corpus_open(ctx, config->data_path, &options, &d->corpus));
    d->vocabulary = (int64_t)weft_tokenizer_vocabulary(weft_corpus_tokenizer(d->corpus));
    d->hash = weft_corpus_hash(d->corpus);
    static const weft_corpus_part parts[] = {WEFT_CORPUS_TRAIN, WEFT_CORPUS_VALIDATION, WEFT_CORPUS_TEST};
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++)
        d->mapped[i] = weft_corpus_tokens(d->corpus, parts[i], &d->mapped_first[i]);
    return WEFT_OK;
}

/* ---- the sources ---- */

static bool text_guess(const weft__path_facts *path) {
    switch (path->use) {
    case WEFT__USE_EMPTY: /* the reader will say so */
    case WEFT__USE_TEXTS: return !path->published || path->parquet;
    case WEFT__USE_OTHER: return path->parquet;
    case WEFT__USE_NONE:
    case WEFT__USE_CHATS:
    case WEFT__USE_PREFERENCES: break;
    }
    return false;
}

static weft_status text_check(const weft__config *config) {
    const bool file =
        config->data_tokenizer == WEFT_TOKENIZER_BPE || config->data_tokenizer == WEFT_TOKENIZER_PIPELINE;
    if (!file || config->data_tokenizer_path) return WEFT_OK;
    return weft__config_blame(config, WEFT__KEY_data_tokenizer,
                              "bpe and pipeline are read from files: name the folder in data.tokenizer_path");
}

const weft__source_kind weft__data_text = {.form = WEFT__FORM_CORPUS,
                                           .unit = "token",
                                           .keys = {WEFT__KEY_data_in_files},
                                           .guess = text_guess,
                                           .check = text_check,
                                           .read = text_read,
                                           .loader = weft__tokens_loader,
                                           .lines = weft__tokens_lines};

static weft_status bytes_check(const weft__config *config) {
    if (!config->data_tokenizer_path) return WEFT_OK;
    return weft__config_blame(config, WEFT__KEY_data_tokenizer_path,
                              "data.source bytes needs no tokenizer: leave this key out");
}

const weft__source_kind weft__data_bytes = {.form = WEFT__FORM_CORPUS,
                                            .unit = "token",
                                            .keys = {WEFT__KEY_data_in_files},
                                            .tokens_of = WEFT__TOKENS_OF_BYTES,
                                            .check = bytes_check,
                                            .read = text_read,
                                            .loader = weft__tokens_loader,
                                            .lines = weft__tokens_lines};
