/* Text written into a buffer of the caller's, cut where that is full and counted on: the whole length is
 * known in any case. Read next: strings.c. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include "base/base.h"

typedef struct weft_text {
    char *buffer; /* may be NULL where size is 0 */
    size_t size;
    size_t length; /* of the whole text, without its NUL */
} weft_text;

/* An empty text. */
weft_text weft__text(char *buffer, size_t size);
void weft__put(weft_text *text, const char *fmt, ...) WEFT_PRINTF(2, 3);

#endif
