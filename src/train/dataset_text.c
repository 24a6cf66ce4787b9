/* Data of language models: text and bytes through a corpus, tokens from npy or raw 16-bit files.
 * Must not know: tables, models. Read next: build.c. */
#include <stdio.h>
#include <string.h>

#include "train/dataset.h"

/* The ids of a file: npy integers, or little-endian u16 without a header where the name ends in .bin. */
static weft_status read_ids(weft_context *ctx, const char *path, int32_t **ids, size_t *count) {
    size_t length = strlen(path);
    if (length > 4 && strcmp(path + length - 4, ".bin") == 0) {
        weft_bytes bytes;
        WEFT_TRY(weft_read_file(ctx, path, 0, &bytes));
        *count = bytes.size / 2;
        *ids = bytes.size % 2 ? NULL : weft__array(ctx, *count + 1, sizeof **ids);
        for (size_t i = 0; *ids && i < *count; i++)
            (*ids)[i] = bytes.data[2 * i] | bytes.data[2 * i + 1] << 8;
        bool odd = bytes.size % 2 != 0;
        weft_bytes_free(ctx, &bytes);
        if (odd)
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: an odd number of bytes cannot be 16-bit tokens",
                              path);
        return *ids ? WEFT_OK : weft__fail_oom(ctx, *count * sizeof **ids, "the tokens");
    }
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

static weft_status read_tokens(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    const char *paths[] = {config->data_path, config->data_val_path, config->data_test_path};
    weft_hash hash;
    weft__hash_init(&hash);
    int32_t largest = 0;
    for (int i = 0; i < WEFT__SPLIT_COUNT; i++) {
        if (!paths[i]) continue;
        WEFT_TRY(read_ids(ctx, paths[i], &d->ids[i], &d->id_count[i]));
        for (size_t j = 0; j < d->id_count[i]; j++)
            if (d->ids[i][j] > largest) largest = d->ids[i][j];
        weft__hash_bytes(&hash, d->ids[i], d->id_count[i] * sizeof **d->ids);
    }
    if (!paths[WEFT__VALIDATION]) { /* the end of the training part, as of a text */
        size_t all = d->id_count[WEFT__TRAIN], kept = (size_t)((double)all * (1 - config->data_val_fraction));
        d->ids[WEFT__VALIDATION] = weft__array(ctx, all - kept + 1, sizeof **d->ids);
        if (!d->ids[WEFT__VALIDATION]) return weft__fail_oom(ctx, all - kept, "the tokens");
        memcpy(d->ids[WEFT__VALIDATION], d->ids[WEFT__TRAIN] + kept, (all - kept) * sizeof **d->ids);
        d->id_count[WEFT__VALIDATION] = all - kept;
        d->id_count[WEFT__TRAIN] = kept;
    }
    if (d->vocabulary == 0) d->vocabulary = (int64_t)largest + 1;
    if (largest >= d->vocabulary)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: token %d, but the model knows 0 to %lld",
                          config->data_path, largest, (long long)d->vocabulary - 1);
    d->hash = hash.a ^ weft__mix64(hash.b);
    return WEFT_OK;
}

weft_status weft__dataset_read_text(weft_context *ctx, const weft__config *config, weft__dataset *d) {
    static const weft_tokenizer_kind kinds[] = {WEFT_TOKENIZER_CHARACTER, WEFT_TOKENIZER_BYTE,
                                                WEFT_TOKENIZER_WORD};
    if (config->data_source == WEFT__SOURCE_TOKENS) return read_tokens(ctx, config, d);
    bool bytes = config->data_source == WEFT__SOURCE_BYTES;
    const weft_corpus_options options = {.kind = bytes ? WEFT_TOKENIZER_BYTE : kinds[config->data_tokenizer],
                                         .max_vocabulary = (size_t)config->data_max_vocabulary,
                                         .tokenizer = d->tokenizer,
                                         .validation_path = config->data_val_path,
                                         .test_path = config->data_test_path,
                                         .validation_fraction = config->data_val_fraction};
    WEFT_TRY(weft_corpus_open(ctx, config->data_path, &options, &d->corpus));
    d->vocabulary = (int64_t)weft_tokenizer_vocabulary(weft_corpus_tokenizer(d->corpus));
    d->hash = weft_corpus_hash(d->corpus);
    return WEFT_OK;
}
