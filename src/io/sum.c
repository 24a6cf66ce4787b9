/* Computes checksums, see sum.h. Must not know: what the bytes mean. Read next: manifest.c. */
#include <inttypes.h>
#include <stdio.h>
#include <zlib.h>

#include "io/sum.h"

void weft__sum_init(weft__sum *sum) {
    sum->crc = 0;
    weft__hash_init(&sum->hash);
}

void weft__sum_piece(weft__sum *sum, const void *data, size_t bytes) {
    if (bytes == 0) return;
    sum->crc = (uint32_t)crc32_z(sum->crc, data, bytes);
    weft__hash_bytes(&sum->hash, data, bytes);
}

void weft__sum_all(weft__sum *sum, const void *data, size_t bytes) {
    const char *p = data;
    for (; bytes > WEFT__SUM_PIECE; p += WEFT__SUM_PIECE, bytes -= WEFT__SUM_PIECE)
        weft__sum_piece(sum, p, WEFT__SUM_PIECE);
    weft__sum_piece(sum, p, bytes);
}

void weft__sum_text(const weft__sum *sum, char out[WEFT__SUM_TEXT]) {
    snprintf(out, WEFT__SUM_TEXT, "%08" PRIx32 ":%016" PRIx64, sum->crc, sum->hash.a);
}

uint32_t weft__crc_join(uint32_t first, uint32_t second, uint64_t second_bytes) {
    return (uint32_t)crc32_combine(first, second, (z_off_t)second_bytes);
}
