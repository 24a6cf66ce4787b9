/* Tokenizers of published models: a tokenizer.json up to the first NUL, and then a text. Or the letter M and
 * a .model of SentencePiece. Texts are encoded, with special tokens too, and decoded at once and id by id,
 * which must give the same bytes. What is saved must be read again. */
#include <stdlib.h>
#include <string.h>

#include "text/pipeline/pipeline.h"
#include "text/tokenizer.h"

static void stream(const weft_tokenizer *t, const int32_t *ids, size_t count) {
    weft_decoder *d;
    const char *text;
    size_t n;
    if (weft_decoder_open(t, &d) != WEFT_OK) abort();
    for (size_t i = 0; i < count; i++)
        if (weft_decoder_push(d, ids[i], &text, &n) != WEFT_OK || text[n] != 0) abort();
    if (weft_decoder_finish(d, &text, &n) != WEFT_OK) abort();
    weft_decoder_free(d);
}

static void use(const weft_tokenizer *t, const char *text, size_t bytes) {
    size_t count = 0, again = 0, size = 0;
    if (weft_tokenizer_encode_special(t, text, bytes, NULL, 0, &count) != WEFT_OK) return;
    int32_t *ids = malloc((count + 1) * sizeof *ids);
    if (!ids) abort();
    if (weft_tokenizer_encode_special(t, text, bytes, ids, count, &again) != WEFT_OK || again != count)
        abort();
    for (size_t i = 0; i < count; i++)
        if (ids[i] < 0 || (size_t)ids[i] >= weft_tokenizer_vocabulary(t)) abort();
    if (weft_tokenizer_decode(t, ids, count, NULL, 0, &size) != WEFT_OK) return; /* a pattern may fail */
    char *out = malloc(size + 1);
    if (!out || weft_tokenizer_decode(t, ids, count, out, size, &size) != WEFT_OK) abort();
    stream(t, ids, count);
    free(out);
    free(ids);
}

static void save(const weft_tokenizer *t) {
    char *json;
    size_t bytes;
    weft_tokenizer *u;
    if (weft__pipeline_text(t, &json, &bytes) != WEFT_OK) abort();
    if (weft_tokenizer_parse(NULL, json, bytes, &u) != WEFT_OK) abort();
    weft_tokenizer_free(u);
    weft__free(NULL, json);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char sample[] = " Hello  w\xc3\xb6rld, 123\n<s>\xff\xe4\xbd\xa0";
    const char *at = (const char *)data, *text = sample;
    size_t bytes = sizeof sample - 1;
    weft_tokenizer *t = NULL;
    if (size && data[0] == 'M') {
        char *json;
        size_t length;
        if (weft__sentencepiece_text(NULL, "input", at + 1, size - 1, &json, &length) != WEFT_OK) return 0;
        weft_status status = weft_tokenizer_parse(NULL, json, length, &t);
        weft__free(NULL, json);
        if (status != WEFT_OK) return 0;
    } else {
        const char *nul = size ? memchr(at, 0, size) : NULL;
        size_t length = nul ? (size_t)(nul - at) : size;
        if (weft_tokenizer_parse(NULL, at, length, &t) != WEFT_OK) return 0;
        if (nul) text = nul + 1;
        if (nul) bytes = size - length - 1;
    }
    if (weft_tokenizer_kind_of(t) == WEFT_TOKENIZER_PIPELINE) {
        use(t, text, bytes);
        save(t);
    }
    weft_tokenizer_free(t);
    return 0;
}
