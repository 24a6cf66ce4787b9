/* Hashing of graphs, paths and texts: two lanes that mix every word differently, so that one colliding
 * does not make the other collide. The same on every machine (words are read as little endian), since
 * random streams are named by it. Not meant against an adversary. Read next: strings.c. */
#include <string.h>

#include "base/base.h"

/* The finaliser of splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators",
 * OOPSLA 2014, in Stafford's variant 13). */
uint64_t weft__mix64(uint64_t x) {
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 over the golden ratio */

void weft__hash_init(weft_hash *h) { *h = (weft_hash){GOLDEN, UINT64_C(0x2545f4914f6cdd1d)}; }

void weft__hash_u64(weft_hash *h, uint64_t v) {
    h->a = weft__mix64((h->a ^ v) + GOLDEN);
    h->b = weft__mix64(((h->b << 29) | (h->b >> 35)) + v * UINT64_C(0xff51afd7ed558ccd) + 1);
}

static uint64_t load(const unsigned char *p, size_t bytes) {
    uint64_t v = 0;
    for (size_t i = 0; i < bytes; i++) v |= (uint64_t)p[i] << (8 * i);
    return v;
}

void weft__hash_bytes(weft_hash *h, const void *data, size_t bytes) {
    const unsigned char *p = data;
    size_t left = bytes;
    for (; left >= 8; left -= 8, p += 8) weft__hash_u64(h, load(p, 8));
    if (left) weft__hash_u64(h, load(p, left));
    weft__hash_u64(h, bytes); /* tells apart what ends in zeros */
}

void weft__hash_str(weft_hash *h, const char *s) { weft__hash_bytes(h, s, strlen(s)); }
