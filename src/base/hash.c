/* Hashing of graphs, paths and texts. A hash has two lanes that mix every word differently, so that a
 * collision in one does not imply one in the other. Hashes are the same on every machine (words are read as
 * little endian), since they name random streams. They do not resist an adversary.
 * Must not know: what is hashed. Read next: strings.c. */
#include <string.h>

#include "base/base.h"

void weft__hash_init(weft_hash *h) { *h = (weft_hash){WEFT__GOLDEN, UINT64_C(0x2545f4914f6cdd1d)}; }

static uint64_t hash_load(const unsigned char *p, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

void weft__hash_bytes(weft_hash *h, const void *data, size_t bytes) {
    const unsigned char *p = data;
    size_t left = bytes;
    for (; left >= 8; left -= 8, p += 8) weft__hash_u64(h, hash_load(p, 8));
    if (left) weft__hash_u64(h, hash_load(p, left));
    weft__hash_u64(h, bytes); /* tells texts apart that differ in trailing zeros */
}

void weft__hash_piece(weft__hash_stream *s, const void *data, size_t bytes) {
    const unsigned char *p = data;
    size_t held = s->bytes % 8;
    s->bytes += bytes;
    if (held + bytes >= 8) {
        memcpy(s->rest + held, p, 8 - held);
        p += 8 - held, bytes -= 8 - held;
        weft__hash_u64(s->hash, hash_load(s->rest, 8));
        for (; bytes >= 8; bytes -= 8, p += 8) weft__hash_u64(s->hash, hash_load(p, 8));
        held = 0;
    }
    if (bytes) memcpy(s->rest + held, p, bytes);
}

void weft__hash_end(weft__hash_stream *s) {
    if (s->bytes % 8) weft__hash_u64(s->hash, hash_load(s->rest, s->bytes % 8));
    weft__hash_u64(s->hash, s->bytes);
}

void weft__hash_str(weft_hash *h, const char *s) { weft__hash_bytes(h, s, strlen(s)); }
