/* Random numbers in arrays: many Philox blocks side by side, then the numbers made from their words. It is
 * compiled once for each instruction set. All of them give the same bits.
 * Must not know: threads. Read next: random_fill.c. */
#include <math.h>

#include "base/normal.h"
#include "base/random_fill.h"

#define BLOCKS 128 /* blocks at a time, of four words each */

#define JOIN_(a, b) a##b
#define JOIN(a, b)  JOIN_(a, b)

typedef struct words {
    uint32_t word[4][BLOCKS];
} words;

/* Philox 4x32-10 as in base/random.c, for blocks first, first + 1, ... of step 0. */
static void draw_blocks(const uint32_t key[2], uint64_t first, words *out) {
    uint32_t *c0 = out->word[0], *c1 = out->word[1], *c2 = out->word[2], *c3 = out->word[3];
    for (int i = 0; i < BLOCKS; i++) {
        uint64_t block = first + (uint64_t)i;
        c0[i] = (uint32_t)block;
        c1[i] = (uint32_t)(block >> 32);
        c2[i] = c3[i] = 0;
    }
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            uint64_t p0 = (uint64_t)0xD2511F53u * c0[i], p1 = (uint64_t)0xCD9E8D57u * c2[i];
            c0[i] = (uint32_t)(p1 >> 32) ^ c1[i] ^ k0;
            c1[i] = (uint32_t)p1;
            c2[i] = (uint32_t)(p0 >> 32) ^ c3[i] ^ k1;
            c3[i] = (uint32_t)p0;
        }
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
}

static void normals(const words *w, double scale, float *out) {
    for (int half = 0; half < 2; half++) {
        const uint32_t *u = w->word[2 * half], *v = w->word[2 * half + 1];
        double radius[BLOCKS];
        for (int i = 0; i < BLOCKS; i++)
            radius[i] = sqrt(-2.0 * weft__log_unit(((double)u[i] + 1.0) * 0x1p-32));
        for (int i = 0; i < BLOCKS; i++)
            out[2 * i + half] = (float)(scale * (radius[i] * weft__cos_turn(v[i])));
    }
}

static void uniforms(const words *w, double scale, float *out) {
    for (int part = 0; part < 4; part++)
        for (int i = 0; i < BLOCKS; i++)
            out[4 * i + part] = (float)(scale * (2.0 * (double)weft__unit_float(w->word[part][i]) - 1.0));
}

void JOIN(weft__random_fill_, WEFT_ISA)(weft_random_kind kind, const uint32_t key[2], double scale,
                                        int64_t first, int64_t n, float *out) {
    const int64_t each = kind == WEFT_RANDOM_NORMAL ? 2 : 4; /* numbers that one block gives */
    for (int64_t at = 0; at < n; at += each * BLOCKS) {
        words w;
        float rest[4 * BLOCKS], *to = n - at < each * BLOCKS ? rest : out + at;
        draw_blocks(key, (uint64_t)((first + at) / each), &w);
        if (kind == WEFT_RANDOM_NORMAL)
            normals(&w, scale, to);
        else
            uniforms(&w, scale, to);
        for (int64_t i = at; to == rest && i < n; i++) out[i] = rest[i - at];
    }
}
