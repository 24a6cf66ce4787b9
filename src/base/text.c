/* Text into a buffer that may be too small. Must not know: what is written. */
#include <stdarg.h>
#include <stdio.h>

#include "base/text.h"

weft_text weft__text(char *buffer, size_t size) {
    if (size) buffer[0] = '\0';
    return (weft_text){buffer, size, 0};
}

void weft__put(weft_text *text, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    size_t room = text->length < text->size ? text->size - text->length : 0;
    int n = vsnprintf(room ? text->buffer + text->length : NULL, room, fmt, args);
    va_end(args);
    if (n > 0) text->length += (size_t)n;
}
