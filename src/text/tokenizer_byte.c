/* The byte tokenizer: 256 ids, for any input. Must not know: files. Read next: tokenizer_word.c. */
#include "text/tokenizer.h"

static weft_status tokenizer_byte_build(weft_tokenizer *t, const weft__span *spans, size_t count,
                                        size_t max_vocabulary) {
    (void)spans, (void)count, (void)max_vocabulary; /* nothing to learn */
    for (int i = 0; i < 256; i++) {
        char byte = (char)(unsigned char)i;
        WEFT_TRY(weft__tokenizer_add(t, &byte, 1));
    }
    return WEFT_OK;
}

static weft_status make_index(weft_tokenizer *t, const char *name) {
    (void)t, (void)name;
    return WEFT_OK;
}

static weft_status encode(const weft_tokenizer *t, const weft__span *span, weft__ids *out) {
    (void)t;
    for (size_t i = 0; i < span->bytes; i++) weft__put_id(out, (unsigned char)span->text[i]);
    return WEFT_OK;
}

const weft__tokenizer_type weft__tokenizer_byte = {
    .name = "byte", .build = tokenizer_byte_build, .index = make_index, .encode = encode};
