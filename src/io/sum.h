/* Checksums of files and arrays: CRC-32 (finds every burst of up to 32 bits) and 64 bits of hash, written
 * "crc:hash" in lower-case hexadecimal. They detect corruption, not tampering.
 *
 * The hash is taken piece by piece, each WEFT__SUM_PIECE bytes but the last: the pieces are part of the
 * definition, so data must be fed in just such pieces. Read next: manifest.h. */
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
/* One piece: at most WEFT__SUM_PIECE bytes, and only the last may be shorter. */
void weft__sum_piece(weft__sum *sum, const void *data, size_t bytes);
/* Any amount of memory, cut into pieces. */
void weft__sum_all(weft__sum *sum, const void *data, size_t bytes);
void weft__sum_text(const weft__sum *sum, char out[WEFT__SUM_TEXT]);
/* CRC-32 of two runs of bytes, one after the other, from those of each. */
uint32_t weft__crc_join(uint32_t first, uint32_t second, uint64_t second_bytes);

#endif
