/* A text that grows, see buffer.h. Must not know: what texts are for. Read next: utf8.c. */
#include <string.h>

#include "base/buffer.h"
#include "base/utf8.h"

void weft__buffer_put(weft__buffer *b, const char *text, size_t bytes) {
    if (b->most && bytes > b->most - b->bytes) {
        b->failed = b->full = true;
        return;
    }
    if (bytes > b->capacity - b->bytes) {
        size_t wanted = b->bytes + bytes;
        wanted += wanted / 2 + 64;
        char *grown = weft__realloc(b->ctx, b->text, wanted);
        if (!grown) {
            b->failed = true;
            return;
        }
        b->text = grown;
        b->capacity = wanted;
    }
    if (bytes) memcpy(b->text + b->bytes, text, bytes);
    b->bytes += bytes;
}

void weft__buffer_put_point(weft__buffer *b, uint32_t point) {
    char text[4];
    weft__buffer_put(b, text, weft__utf8_write(point, text));
}

void weft__buffer_set(weft__buffer *b, const char *text, size_t bytes) {
    b->bytes = 0;
    b->most = 0;
    b->failed = b->full = false;
    weft__buffer_put(b, text, bytes);
}

weft_status weft__buffer_check(const weft__buffer *b) {
    return b->failed ? weft__fail_oom(b->ctx, b->bytes, "a text") : WEFT_OK;
}

void weft__buffer_free(weft__buffer *b) {
    weft__free(b->ctx, b->text);
    *b = (weft__buffer){.ctx = b->ctx};
}
