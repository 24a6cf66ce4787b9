/* Checksums of files and arrays. A checksum has two parts: a CRC-32, which finds every burst of up to 32
 * wrong bits, and a hash of 64 bits. Its text is "crc:hash" in lower-case hexadecimal. Checksums detect
 * corruption, not tampering.
 *
 * The hash is computed in pieces of WEFT__SUM_PIECE bytes; only the last piece may be shorter. The pieces
 * are part of the definition, so callers must pass the data in exactly these pieces.
 *
 * Must not know: what the bytes mean. Read next: manifest.h. */
#ifndef WEFT_SRC_IO_SUM_H
#define WEFT_SRC_IO_SUM_H

#include "base/base.h"

#define WEFT__SUM_PIECE ((size_t)1 << 20)
#define WEFT__SUM_TEXT  26 /* "01234567:0123456789abcdef" with its NUL */

typedef struct weft__sum {
    uint32_t crc;
    weft_hash hash;
} weft__sum;

void weft__sum_init(weft__sum *sum);
/* Adds one piece of WEFT__SUM_PIECE bytes. Only the last piece may be shorter. */
void weft__sum_piece(weft__sum *sum, const void *data, size_t bytes);
/* Adds any amount of memory, in pieces. */
void weft__sum_all(weft__sum *sum, const void *data, size_t bytes);
void weft__sum_text(const weft__sum *sum, char out[WEFT__SUM_TEXT]);
/* Returns the CRC-32 of two sequences of bytes in a row, given the CRC-32 of each. */
uint32_t weft__crc_join(uint32_t first, uint32_t second, uint64_t second_bytes);

#endif
