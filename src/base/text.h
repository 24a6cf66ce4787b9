/* Text in a buffer of the caller's. A text that does not fit is cut, and its whole length is still counted.
 * Must not know: what is written. Read next: text.c, strings.c. */
#ifndef WEFT_BASE_TEXT_H
#define WEFT_BASE_TEXT_H

#include "base/base.h"

typedef struct weft_text {
    char *buffer; /* NULL if size is 0 */
    size_t size;
    size_t length; /* length of the whole text, without its NUL */
} weft_text;

/* Starts an empty text. Without a buffer only the length is counted. */
weft_text weft__text(char *buffer, size_t size);
void weft__put(weft_text *text, const char *fmt, ...) WEFT_PRINTF(2, 3);

/* Writes the path DIR/NAME into a buffer. Returns false if it does not fit. */
bool weft__join(char *out, size_t bytes, const char *dir, const char *name);

/* Writes a text as a word of a shell command: in quotes, if it has spaces or other special characters. A
 * buffer of WEFT__SHELL_WORD(length of the text) bytes is enough; a smaller one cuts the word. Returns `out`.
 */
#define WEFT__SHELL_WORD(length) (4 * (length) + 3)
const char *weft__shell_word(const char *text, char *out, size_t bytes);

/* Tells whether a text matches a pattern: * stands for any bytes, ? for one. */
bool weft__matches(const char *pattern, const char *text);

/* ---- text for people: names and words from files may contain control characters of a terminal ---- */

enum { WEFT__ESCAPE = 8 };
/* Converts the next piece of a text of bytes > 0 bytes. A piece is one character that can be shown, or the
 * escape of one that cannot. Escaped are:
 *   - control characters (C0, DEL, C1) that are not in `kept`, as \n, \r, \t, \u001b;
 *   - characters that turn the direction of text (U+202A to U+202E, U+2066 to U+2069), as \u202a;
 *   - bytes that are no UTF-8, as \xff.
 *
 * Returns the length of the piece, and in *taken the number of bytes it stands for. */
size_t weft__printable_next(const char *text, size_t bytes, const char *kept, char out[WEFT__ESCAPE],
                            size_t *taken);
/* Converts a whole text: as many whole pieces as fit, and a NUL. Returns the length of the whole, as snprintf
 * does. */
size_t weft__printable(char *out, size_t size, const char *text, size_t bytes, const char *kept);

#endif
