/* Strict UTF-8: no surrogates, no overlong forms, nothing above U+10FFFF.
 * Must not know: what text is for. Read next: utf8.c. */
#ifndef WEFT_SRC_BASE_UTF8_H
#define WEFT_SRC_BASE_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Reads one code point from the n > 0 bytes at p. Returns:
 *   - above 0: its length; *point is set.
 *   - 0: the n bytes are the start of a sequence that needs more bytes.
 *   - below 0: malformed. Skip that many bytes (1 to 3; the "maximal subpart" of Unicode 3.9). */
int weft__utf8_read(const char *p, size_t n, uint32_t *point);

/* Tells whether a whole text is UTF-8. */
bool weft__is_utf8(const char *text);

/* Returns the most bytes of a text, at most `most`, that do not end within a character. */
size_t weft__utf8_cut(const char *text, size_t bytes, size_t most);

/* Writes a code point, 1 to 4 bytes, and returns its length. */
size_t weft__utf8_write(uint32_t point, char out[4]);

#endif
