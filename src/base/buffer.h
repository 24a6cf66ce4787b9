/* A text that grows. If memory is short, the text notes it, so that callers may check once, at its end. Must
 * not know: what texts are for. Read next: buffer.c. */
#ifndef WEFT_SRC_BASE_BUFFER_H
#define WEFT_SRC_BASE_BUFFER_H

#include "base/base.h"

typedef struct weft__buffer {
    weft_context *ctx;
    char *text; /* NULL while it is empty */
    size_t bytes, capacity;
    size_t most; /* bytes that it may hold; 0: no limit */
    bool failed; /* memory was short, or the limit was reached, so text is missing */
    bool full;   /* the limit was reached */
} weft__buffer;

void weft__buffer_put(weft__buffer *b, const char *text, size_t bytes);
void weft__buffer_put_point(weft__buffer *b, uint32_t point);
/* Replaces the content, and removes the limit. */
void weft__buffer_set(weft__buffer *b, const char *text, size_t bytes);
/* WEFT_ERR_OOM if memory was short since the content was set. */
weft_status weft__buffer_check(const weft__buffer *b);
void weft__buffer_free(weft__buffer *b);

#endif
