/* Text, bytes and tokens for language models: text and bytes through a corpus, tokens from npy files or
 * mapped files. Must not know: conversations (chats.c), models. Read next: train/model/model.c. */
#include <stdio.h>
#include <string.h>

#include "data/tokens.h"
#include "text/corpus_files.h"
#include "text/documents.h"
#include "train/dataset/dataset_summary.h"

/* ---- files of tokens ---- */

/* Reads the ids of an npy file. */
static weft_status read_ids(weft_context *ctx, const char *path, int32_t **ids, size_t *count) {
    weft_array array;
    WEFT_TRY(weft_read_npy(ctx, path, &array));
    size_t size = weft_dtype_size(array.dtype);
    *count = size ? array.bytes / size : 0;
    *ids = weft__array(ctx, *count + 1, sizeof **ids);
    weft_status status = *ids ? WEFT_OK : weft__fail_oom(ctx, *count * sizeof **ids, "the tokens");
    for (size_t i = 0; status == WEFT_OK && i < *count; i++) {
        int64_t id = -1;
        switch (array.dtype) {
        case WEFT_U8: id = ((const uint8_t *)array.data)[i]; break;
        case WEFT_U16: id = ((const uint16_t *)array.data)[i]; break;
        case WEFT_I32: id = ((const int32_t *)array.data)[i]; break;
        case WEFT_I64: id = ((const int64_t *)array.data)[i]; break;
        default:
            status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: tokens are u8, u16, i32 or i64, not %s", path,
                                weft_dtype_name(array.dtype));
            continue;
        }
        if (id < 0 || id > 1 << 24)
            status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: token %zu is %lld, outside 0 to %d", path, i,
                                (long long)id, 1 << 24);
        (*ids)[i] = (int32_t)id;
    }
    weft_array_free(ctx, &array);
    return status;
}

static bool is_npy(const char *path) {
    const char *slash = strrchr(path, '/');
    return strstr(slash ? slash + 1 : path, ".npy") != NULL;
}

static weft_status read_split(weft_context *ctx, const char *path, int split, weft__dataset *d,
                              int32_t *largest, weft_hash *hash) {
    int32_t most = 0;
    const char *file = path; /* that has token `most` */
    if (is_npy(path)) {
        WEFT_TRY(read_ids(ctx, path, &d->tokens.ids[split], &d->tokens.id_count[split]));
        for (size_t j = 0; j < d->tokens.id_count[split]; j++)
            if (d->tokens.ids[split][j] > most) most = d->tokens.ids[split][j];
        weft__hash_bytes(hash, d->tokens.ids[split], d->tokens.id_count[split] * sizeof **d->tokens.ids);
    } else {
        WEFT_TRY(weft_tokens_open(ctx, path, &d->tokens.files[split]));
        d->tokens.mapped[split] = d->tokens.files[split];
        d->tokens.id_count[split] = (size_t)weft_tokens_count(d->tokens.files[split]);
        most = weft_tokens_largest(d->tokens.files[split]);
        file = weft__tokens_largest_file(d->tokens.files[split]);
        weft__hash_u64(hash, weft_tokens_hash(d->tokens.files[split]));
    }
    if (most > *largest) *largest = most;
    if (d->tokens.vocabulary == 0 || most < d->tokens.vocabulary) return WEFT_OK;
    return weft__fail(
        ctx, WEFT_ERR_FORMAT,
        "%s: the text has token %d, but the model knows only 0 to %lld: this file is of another "
        "tokenizer, or data.tokenizer_path names another one",
        file, most, (long long)d->tokens.vocabulary - 1);
}

/* Splits the validation tokens off the end of the training tokens, as for a text. */
static weft_status set_aside(weft_context *ctx, double fraction, weft__dataset *d) {
    size_t all = d->tokens.id_count[WEFT__TRAIN], kept = (size_t)((double)all * (1 - fraction));
    d->tokens.id_count[WEFT__VALIDATION] = all - kept;
    d->tokens.id_count[WEFT__TRAIN] = kept;
    d->tokens.mapped[WEFT__VALIDATION] = d->tokens.mapped[WEFT__TRAIN];
    d->tokens.mapped_first[WEFT__VALIDATION] = (int64_t)kept;
    if (d->tokens.mapped[WEFT__TRAIN]) return WEFT_OK;
    d->tokens.ids[WEFT__VALIDATION] = weft__array(ctx, all - kept + 1, sizeof **d->tokens.ids);
    if (!d->tokens.ids[WEFT__VALIDATION]) return weft__fail_oom(ctx, all - kept, "the tokens");
    memcpy(d->tokens.ids[WEFT__VALIDATION], d->tokens.ids[WEFT__TRAIN] + kept,
           (all - kept) * sizeof **d->tokens.ids);
    return WEFT_OK;
}

static weft_status tokens_read(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    weft_hash hash;
    weft__hash_init(&hash);
    d->in_files = config->data_in_files == WEFT__IN_FILES_TRUE;
    int32_t largest = 0;
    if (d->tokens.vocabulary == 0)
        d->tokens.vocabulary = config->model_vocab; /* until the data or a tokenizer tell */
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++)
        if (paths[i]) WEFT_TRY(read_split(ctx, paths[i], i, d, &largest, &hash));
    if (!d->tokens.tokenizer) d->tokens.vocabulary = (int64_t)largest + 1;
    d->hash = hash.a ^ weft__mix64(hash.b);
    return paths[WEFT__VALIDATION] ? WEFT_OK : set_aside(ctx, config->data_val_fraction, d);
}

/* ---- texts ---- */

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
    const weft_tokenizer_kind kind = d->tokens.tokenizer ? weft_tokenizer_kind_of(d->tokens.tokenizer)
                                                         : (weft_tokenizer_kind)config->data_tokenizer;
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
        .tokenizer = d->tokens.tokenizer,
        .validation_path = config->data_val_path,
        .test_path = config->data_test_path,
        .in_files = d->in_files,
        .validation_fraction = config->data_val_path ? 0 : config->data_val_fraction};
    WEFT_TRY(weft_corpus_open(ctx, config->data_path, &options, &d->tokens.corpus));
    d->tokens.vocabulary = (int64_t)weft_tokenizer_vocabulary(weft_corpus_tokenizer(d->tokens.corpus));
    d->hash = weft_corpus_hash(d->tokens.corpus);
    static const weft_corpus_part parts[] = {WEFT_CORPUS_TRAIN, WEFT_CORPUS_VALIDATION, WEFT_CORPUS_TEST};
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++)
        d->tokens.mapped[i] = weft_corpus_tokens(d->tokens.corpus, parts[i], &d->tokens.mapped_first[i]);
    return WEFT_OK;
}

/* ---- loaders ---- */

static weft_status tokens_loader(weft_context *ctx, const weft__dataset *dataset, const weft__config *config,
                                 weft__split split, int64_t most, const weft_loader_options *options,
                                 weft_loader **out) {
    size_t whole = 0;
    const int32_t *ids = weft__dataset_ids(dataset, split, &whole);
    int64_t context = config->model_context, window = 0, count = (int64_t)whole;
    if (split != WEFT__TRAIN && count > 1 && count <= context) context = count - 1;
    /* Cuts an epoch of streams to whole steps, because states restart between epochs. */
    if (options->streams && options->batch > 0) {
        const int64_t all = weft__dataset_streams(config, count, options->batch),
                      whole_batches = weft__dataset_whole_steps(config, all);
        if (whole_batches < all) count = options->batch * (whole_batches * context + 1);
    }
    if (weft__mul(options->batch, context, &window) && count > 0)
        count = weft__dataset_limit(most, window, count - 1) + 1; /* the last token is only a target */
    if (dataset->tokens.mapped[split]) {
        weft_loader_options mapped = *options;
        if (dataset->in_files) mapped.device_bytes = -1; /* no copy in the device's memory */
        return weft_loader_mapped(ctx, dataset->tokens.mapped[split], dataset->tokens.mapped_first[split],
                                  count, context, &mapped, out);
    }
    return weft_loader_tokens(ctx, ids, (size_t)count, context, options, out);
}

/* ---- the summary ---- */

static void put_files(weft_corpus_files files, weft__lines *l) {
    if (files.hidden + files.folders + files.others == 0) return;
    weft__line(l, "skipped: ");
    if (files.hidden)
        weft__line_item(l, files.folders + files.others == 0, "%llu hidden name%s (with a dot in front)",
                        (unsigned long long)files.hidden, weft__plural((int64_t)files.hidden));
    if (files.others)
        weft__line_item(l, true, "%llu file%s of other kinds", (unsigned long long)files.others,
                        weft__plural((int64_t)files.others));
    if (files.folders)
        weft__line_item(l, true, "%llu folder%s inside the folder", (unsigned long long)files.folders,
                        weft__plural((int64_t)files.folders));
}

static void tokens_lines(const weft__dataset *d, const weft__config *config, weft__lines *l) {
    const weft_tokenizer *tokenizer = weft__dataset_tokenizer(d);
    const weft_corpus_files files = weft_corpus_files_of(d->tokens.corpus);
    const char *name = weft__line_file(config->data_path);
    char count[48] = "";
    int64_t tokens = 0;
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) tokens += weft__dataset_samples(d, (weft__split)i);
    if (files.read > 1) snprintf(count, sizeof count, "%llu files, ", (unsigned long long)files.read);
    if (d->tokens.corpus)
        weft__line(l, "data: %s%llu bytes, %lld tokens (%s), from %.300s", count,
                   (unsigned long long)weft_corpus_bytes(d->tokens.corpus), (long long)tokens,
                   weft_tokenizer_kind_name(weft_tokenizer_kind_of(tokenizer)), name);
    else
        weft__line(l, "data: %lld tokens, from %.300s", (long long)tokens, name);
    weft__line(l, "vocabulary: %lld tokens%s", (long long)d->tokens.vocabulary,
               tokenizer ? "" : ", up to the largest in the data");
    const char *missing = weft__corpus_missing(d->tokens.corpus);
    for (int i = 0; !missing && i < WEFT__SPLIT_COUNT; i++)
        missing = weft__tokens_missing(d->tokens.files[i]);
    if (missing) weft__line(l, "missing: %.300s, by the numbers of the other files", missing);
    if (d->in_files && d->tokens.corpus) weft__line(l, "the text stays in its files (data.in_files)");
    put_files(files, l);
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
                                           .loader = tokens_loader,
                                           .lines = tokens_lines};

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
                                            .loader = tokens_loader,
                                            .lines = tokens_lines};

static bool tokens_guess(const weft__path_facts *path) {
    return path->use == WEFT__USE_NONE && weft__path_ends(path, ".bin");
}

const weft__source_kind weft__data_tokens = {.form = WEFT__FORM_CORPUS,
                                             .unit = "token",
                                             .keys = {WEFT__KEY_data_in_files},
                                             .tokens_of = WEFT__TOKENS_OF_FILES,
                                             .guess = tokens_guess,
                                             .read = tokens_read,
                                             .loader = tokens_loader,
                                             .lines = tokens_lines};
