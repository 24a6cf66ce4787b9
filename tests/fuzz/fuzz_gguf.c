/* Any bytes as a GGUF file. It must be refused, or every value and every row must be readable within the
 * file. */
#include <stdlib.h>

#include "published/gguf.h"
#include "published/published.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const uint8_t nothing[1];
    static const char *const keys[] = {"general.architecture", "tokenizer.ggml.tokens", "a"};
    float values[256];
    weft__gguf *g;
    weft__gguf_value value;
    const char *text;
    size_t bytes = 0;
    double number;
    if (weft__gguf_open_memory(NULL, "fuzz", size ? data : nothing, size, &g) != WEFT_OK) return 0;
    for (size_t i = 0; i < weft__gguf_count(g); i++) {
        const weft__gguf_tensor *t = weft__gguf_tensor_at(g, i);
        size_t rows = 1;
        for (int k = 0; k + 1 < t->rank; k++) rows *= (size_t)t->shape[k];
        weft__block_unpack(t->type, t->data + rows * t->row_bytes - t->type->bytes, t->type->elements,
                           values);
        if (t->data < data || t->data + rows * t->row_bytes > data + size) abort();
    }
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
        if (weft__gguf_find(g, keys[i], &value))
            while (weft__gguf_text(&value, &text, &bytes) || weft__gguf_number(&value, &number)) continue;
    char *config = NULL;
    unsigned names;
    if (weft__gguf_config(NULL, "fuzz", g, &names, &config, &bytes) == WEFT_OK) weft__free(NULL, config);
    weft__gguf_close(g);
    return 0;
}
