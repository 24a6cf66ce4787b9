/* The first byte selects: the rest is a tokenizer file to parse and use, or a text from which a tokenizer
 * of each kind is built. The tokenizer must then encode and decode the text. */
#include <stdlib.h>
#include <string.h>

#include <weft/text.h>

/* Decodes all ids one by one. Every piece of text must end in NUL. */
static void stream(const weft_tokenizer *t, const int32_t *ids, size_t count) {
    weft_decoder *d;
    const char *text;
    size_t n;
    if (weft_decoder_open(t, &d) != WEFT_OK) abort();
    for (size_t i = 0; i < count; i++) {
        if (weft_decoder_push(d, ids[i], &text, &n) != WEFT_OK || text[n] != 0) abort();
    }
    if (weft_decoder_finish(d, &text, &n) != WEFT_OK) abort();
    weft_decoder_free(d);
}

static void use(const weft_tokenizer *t, const char *text, size_t bytes, bool must) {
    size_t count = 0, back = 0;
    int32_t *ids = malloc((bytes + 1) * sizeof *ids);
    if (!ids) abort();
    if (weft_tokenizer_encode(t, text, bytes, ids, bytes, &count) == WEFT_OK) {
        if (count > bytes || weft_tokenizer_decode(t, ids, count, NULL, 0, &back) != WEFT_OK) abort();
        char *out = malloc(back + 1);
        if (!out || weft_tokenizer_decode(t, ids, count, out, back, &back) != WEFT_OK) abort();
        bool exact = weft_tokenizer_kind_of(t) != WEFT_TOKENIZER_WORD;
        if (exact && (back != bytes || (bytes && memcmp(out, text, bytes) != 0))) abort();
        stream(t, ids, count);
        free(out);
    } else if (must) {
        abort();
    }
    free(ids);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft_tokenizer *t;
    if (size == 0) return 0;
    const char *text = (const char *)data + 1;
    size_t bytes = size - 1;
    if (data[0] == '{' || data[0] % 2 == 0) {
        const char *json = data[0] == '{' ? text - 1 : text;
        if (weft_tokenizer_parse(NULL, json, bytes + (json < text), &t) != WEFT_OK) return 0;
        if (weft_tokenizer_kind_of(t) != WEFT_TOKENIZER_PIPELINE) /* fuzz_pipeline.c uses these */
            use(t, text, bytes, false);
        weft_tokenizer_free(t);
        return 0;
    }
    for (int k = 0; k < WEFT_TOKENIZER_KIND_COUNT; k++) {
        const weft_tokenizer_options options = {.max_vocabulary = data[0] / 16};
        if (weft_tokenizer_build(NULL, (weft_tokenizer_kind)k, text, bytes, &options, &t) != WEFT_OK)
            continue;
        use(t, text, bytes, true);
        weft_tokenizer_free(t);
    }
    return 0;
}
