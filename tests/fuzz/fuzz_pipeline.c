/* Tokenizers of published models: a tokenizer.json up to the first NUL, and then a text. Or the letter M and
 * a .model of SentencePiece. Texts are encoded, with special tokens too, and decoded at once and id by id,
 * which must give the same bytes. What is saved must be read again. A file takes a small multiple of its
 * size. */
#include "bounded.h"

#include "text/pipeline/pipeline.h"
#include "text/tokenizer.h"

enum { FREE_BYTES = 16 << 20, FILE_RATIO = 1024 }; /* bytes of memory, and those for each byte of an input */

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

static void save(weft_context *ctx, const weft_tokenizer *t) {
    char *json;
    size_t bytes;
    weft_tokenizer *u;
    if (weft__pipeline_text(t, &json, &bytes) != WEFT_OK) abort();
    if (weft_tokenizer_parse(ctx, json, bytes, &u) != WEFT_OK) abort();
    weft_tokenizer_free(u);
    weft__free(ctx, json);
}

static weft_status parse(weft_context *ctx, const char *at, size_t size, weft_tokenizer **t) {
    char *json;
    size_t length;
    if (!size || at[0] != 'M') return weft_tokenizer_parse(ctx, at, size, t);
    WEFT_TRY(weft__sentencepiece_text(ctx, "input", at + 1, size - 1, &json, &length));
    const weft_status status = weft_tokenizer_parse(ctx, json, length, t);
    weft__free(ctx, json);
    return status;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const char sample[] = " Hello  w\xc3\xb6rld, 123\n<s>\xff\xe4\xbd\xa0";
    const char *at = (const char *)data;
    const char *nul = size && data[0] != 'M' ? memchr(at, 0, size) : NULL;
    const size_t length = nul ? (size_t)(nul - at) : size;
    bounded b;
    weft_context ctx = bounded_context(&b, FREE_BYTES + FILE_RATIO * size);
    weft_tokenizer *t = NULL;
    if (parse(&ctx, at, length, &t) == WEFT_OK && weft_tokenizer_kind_of(t) == WEFT_TOKENIZER_PIPELINE) {
        use(t, nul ? nul + 1 : sample, nul ? size - length - 1 : sizeof sample - 1);
        save(&ctx, t);
    }
    weft_tokenizer_free(t);
    bounded_time(&b, size);
    if (b.live != 0) abort();
    return 0;
}
