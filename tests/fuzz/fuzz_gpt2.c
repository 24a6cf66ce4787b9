/* GPT-2's two files: encoder.json up to the first NUL, then vocab.bpe up to the next NUL. After them comes
 * a text, which the tokenizer must encode and decode unchanged. */
#include <stdlib.h>
#include <string.h>

#include "text/tokenizer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    weft__span spans[3];
    const char *at = (const char *)data, *end = at + size;
    for (int i = 0; i < 3; i++) {
        const char *nul = i < 2 && at < end ? memchr(at, 0, (size_t)(end - at)) : NULL,
                   *stop = nul ? nul : end;
        spans[i] = (weft__span){"input", at, (size_t)(stop - at)};
        at = nul ? nul + 1 : end;
    }
    weft_tokenizer *t;
    if (weft__tokenizer_parse_gpt2(NULL, &spans[0], &spans[1], &t) != WEFT_OK) {
        if (!strstr(weft_last_error(NULL), "input")) abort();
        return 0;
    }
    const size_t bytes = spans[2].bytes;
    size_t count = 0, back = 0;
    int32_t *ids = malloc((bytes + 1) * sizeof *ids);
    char *out = malloc(bytes + 1);
    if (!ids || !out || weft_tokenizer_encode(t, spans[2].text, bytes, ids, bytes, &count) != WEFT_OK)
        abort();
    if (weft_tokenizer_decode(t, ids, count, out, bytes, &back) != WEFT_OK || back != bytes) abort();
    if (bytes && memcmp(out, spans[2].text, bytes) != 0) abort();
    free(ids);
    free(out);
    weft_tokenizer_free(t);
    return 0;
}
