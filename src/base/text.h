/* Text written into a buffer of the caller's, cut where that is full and counted on: the whole length is
 * known in any case. Read next: strings.c. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include "base/base.h"

typedef struct weft_text {
    char *buffer; /* NULL where size is 0 */
    size_t size;
    size_t length; /* of the whole text, without its NUL */
} weft_text;

/* An empty text; of one without a buffer only the length is counted. */
weft_text weft__text(char *buffer, size_t size);
void weft__put(weft_text *text, const char *fmt, ...) WEFT_PRINTF(2, 3);

/* ---- text for people: names and words from files may hold what steers a terminal ---- */

enum { WEFT__ESCAPE = 8 };
/* The next piece of bytes > 0 bytes of text: one character that can be shown, an escape of one that cannot,
 * or of a byte that is no UTF-8. Escaped are control characters (C0, DEL, C1) other than those in `kept`, and
 * what turns the direction of text (U+202A to U+202E, U+2066 to U+2069): as \n, \r, \t, \u001b; bytes as
 * \xff. Returns the piece's length, *taken what it stands for. */
size_t weft__printable_next(const char *text, size_t bytes, const char *kept, char out[WEFT__ESCAPE],
                            size_t *taken);
/* All of it, as much as fits of whole pieces, and a NUL. Returns the length of the whole, as snprintf does.
 */
size_t weft__printable(char *out, size_t size, const char *text, size_t bytes, const char *kept);

#endif
