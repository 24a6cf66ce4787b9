/* Strict UTF-8: no surrogates, no overlong forms, nothing past U+10FFFF. Must not know: what text is for. */
#ifndef WEFT_SRC_BASE_UTF8_H
#define WEFT_SRC_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* One code point from the n > 0 bytes at p.
 *   > 0: its length, *point set
 *   0:   the n bytes are the beginning of a sequence that needs more
 *   < 0: malformed; so many bytes (1 to 3) are to be skipped (the "maximal subpart" of Unicode 3.9) */
int weft__utf8_read(const char *p, size_t n, uint32_t *point);

/* Writes a code point, 1 to 4 bytes, and returns its length. */
size_t weft__utf8_write(uint32_t point, char out[4]);

#endif
