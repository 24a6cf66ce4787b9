/* The random stream: Philox 4x32-10 and the distributions drawn from it. A number is a pure function of
 * (seed, stream, step, element). It is therefore the same in any order, on any thread and on any device.
 * Devices render weft__random_u32 themselves; only this file defines its counter and key. Source: Salmon,
 * Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011.
 * Must not know: devices, layers. Read next: normal.h. */
#include <math.h>

#include "base/base.h"
#include "base/normal.h"

#define PHILOX_M0     0xD2511F53u
#define PHILOX_M1     0xCD9E8D57u
#define PHILOX_W0     0x9E3779B9u /* golden ratio */
#define PHILOX_W1     0xBB67AE85u /* sqrt(3) - 1 */
#define PHILOX_ROUNDS 10

void weft__philox(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4]) {
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < PHILOX_ROUNDS; round++) {
        uint64_t p0 = (uint64_t)PHILOX_M0 * c0, p1 = (uint64_t)PHILOX_M1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += PHILOX_W0;
        k1 += PHILOX_W1;
    }
    out[0] = c0, out[1] = c1, out[2] = c2, out[3] = c3;
}

/* Mixes seed and stream into the 64 bits of a Philox key, so that neighbouring seeds or streams have
 * unrelated numbers. */
void weft__philox_key(uint64_t seed, uint64_t stream, uint32_t key[2]) {
    uint64_t k = weft__mix64(seed + UINT64_C(0x9e3779b97f4a7c15)) ^ stream;
    k = weft__mix64(k + UINT64_C(0xd1b54a32d192ed03));
    key[0] = (uint32_t)k;
    key[1] = (uint32_t)(k >> 32);
}

/* Draws a block of four elements. Counter: block (low, high word), step (low, high word). */
static void draw_four(uint64_t seed, uint64_t stream, uint64_t step, uint64_t block, uint32_t out[4]) {
    uint32_t key[2];
    weft__philox_key(seed, stream, key);
    const uint32_t counter[4] = {(uint32_t)block, (uint32_t)(block >> 32), (uint32_t)step,
                                 (uint32_t)(step >> 32)};
    weft__philox(counter, key, out);
}

uint32_t weft__random_u32(uint64_t seed, uint64_t stream, uint64_t step, uint64_t element) {
    uint32_t four[4];
    draw_four(seed, stream, step, element / 4, four);
    return four[element % 4];
}

/* The first uniform lies in (0, 1], so that its logarithm is finite: |result| <= 6.67. */
double weft__random_normal(uint64_t seed, uint64_t stream, uint64_t step, uint64_t i) {
    uint32_t four[4];
    draw_four(seed, stream, step, i / 2, four);
    double u = ((double)four[i % 2 * 2] + 1.0) * 0x1p-32;
    return sqrt(-2.0 * weft__log_unit(u)) * weft__cos_turn(four[i % 2 * 2 + 1]);
}

/* Bits of the largest number in 0..n-1. */
static int bits_for(uint64_t n) {
    int bits = 0;
    while (bits < 64 && (n - 1) >> bits) bits++;
    return bits;
}

#define PERMUTE_ROUNDS 8 /* with 6 rounds, permutations of four values are visibly uneven */

/* A Feistel network on `bits` bits: the halves change in turn. Each round can be undone, so it is a
 * bijection of 0..2^bits-1. A result of n or more is mapped again until it is below n (cycle walking:
 * Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002). That takes two turns at most,
 * on average. */
uint64_t weft__permute(uint64_t seed, uint64_t stream, uint64_t n, uint64_t i) {
    if (n < 2 || i >= n) return i;
    const int bits = bits_for(n), low_bits = bits - bits / 2;
    const uint64_t low_mask = (UINT64_C(1) << low_bits) - 1, high_mask = (UINT64_C(1) << (bits / 2)) - 1;
    uint64_t x = i;
    do {
        uint64_t low = x & low_mask, high = x >> low_bits;
        for (uint64_t round = 0; round < PERMUTE_ROUNDS; round++) {
            bool even = round % 2 == 0;
            uint32_t f = weft__random_u32(seed, stream, round, 4 * (even ? high : low));
            if (even)
                low ^= f & low_mask;
            else
                high ^= f & high_mask;
        }
        x = high << low_bits | low;
    } while (x >= n);
    return x;
}
