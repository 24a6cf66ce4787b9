/* Unpacks blocks of quantised numbers. The layouts are those of ggml (ggml-common.h and ggml-quants.c of
 * https://github.com/ggml-org/ggml). A block has a scale d and numbers q of a few bits; an element is d q, or
 * d q + m. In a K block of 256, each 16 or 32 elements have a small scale of their own besides.
 * Must not know: files. Read next: gguf.c. */
#include <string.h>

#include "base/text.h"
#include "published/blocks.h"

static float half_at(const uint8_t *at) { return weft_f16_to_f32((uint16_t)(at[0] | at[1] << 8)); }

static void unpack_f32(const uint8_t *block, float *out) { memcpy(out, block, sizeof *out); }
static void unpack_f16(const uint8_t *block, float *out) { *out = half_at(block); }
static void unpack_bf16(const uint8_t *block, float *out) {
    *out = weft_bf16_to_f32((uint16_t)(block[0] | block[1] << 8));
}

/* ---- blocks of 32 ---- */

/* The low four bits of byte i are element i, the high ones element i + 16. */
static void unpack_q4_0(const uint8_t *block, float *out) {
    const float d = half_at(block);
    for (int i = 0; i < 16; i++) {
        const int q = block[2 + i];
        out[i] = d * (float)((q & 15) - 8);
        out[i + 16] = d * (float)((q >> 4) - 8);
    }
}

static void unpack_q4_1(const uint8_t *block, float *out) {
    const float d = half_at(block), m = half_at(block + 2);
    for (int i = 0; i < 16; i++) {
        const int q = block[4 + i];
        out[i] = d * (float)(q & 15) + m;
        out[i + 16] = d * (float)(q >> 4) + m;
    }
}

/* Bit i of the word at `high` is the fifth bit of element i. */
static int fifth_bit(const uint8_t *high, int i) { return (high[i / 8] >> i % 8 & 1) << 4; }

static void unpack_q5_0(const uint8_t *block, float *out) {
    const float d = half_at(block);
    for (int i = 0; i < 16; i++) {
        const int q = block[6 + i];
        out[i] = d * (float)(((q & 15) | fifth_bit(block + 2, i)) - 16);
        out[i + 16] = d * (float)((q >> 4 | fifth_bit(block + 2, i + 16)) - 16);
    }
}

static void unpack_q5_1(const uint8_t *block, float *out) {
    const float d = half_at(block), m = half_at(block + 2);
    for (int i = 0; i < 16; i++) {
        const int q = block[8 + i];
        out[i] = d * (float)((q & 15) | fifth_bit(block + 4, i)) + m;
        out[i + 16] = d * (float)(q >> 4 | fifth_bit(block + 4, i + 16)) + m;
    }
}

static void unpack_q8_0(const uint8_t *block, float *out) {
    const float d = half_at(block);
    for (int i = 0; i < 32; i++) out[i] = d * (float)(int8_t)block[2 + i];
}

/* The sixteen values are denser near 0, where weights are. */
static void unpack_iq4_nl(const uint8_t *block, float *out) {
    static const int8_t values[16] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                      1,    13,   25,  38,  53,  69,  89,  113};
    const float d = half_at(block);
    for (int i = 0; i < 16; i++) {
        out[i] = d * values[block[2 + i] & 15];
        out[i + 16] = d * values[block[2 + i] >> 4];
    }
}

/* ---- K blocks of 256 ---- */

static void unpack_q2_k(const uint8_t *block, float *out) {
    const uint8_t *scales = block, *q = block + 16;
    const float d = half_at(block + 80), least = half_at(block + 82);
    for (int i = 0; i < 256; i++) {
        /* 128 elements use 32 bytes, two bits of each at a time */
        const int part = i / 128, shift = i % 128 / 32 * 2, scale = scales[i / 16];
        const int bits = q[part * 32 + i % 32] >> shift & 3;
        out[i] = d * (float)(scale & 15) * (float)bits - least * (float)(scale >> 4);
    }
}

/* Scale i of 16, six bits: the low four in the first eight bytes, the high two in the last four. */
static int q3_scale(const uint8_t *scales, int i) {
    const int low = i < 8 ? scales[i] & 15 : scales[i - 8] >> 4;
    return (low | (scales[8 + i % 4] >> i / 4 * 2 & 3) << 4) - 32;
}

static void unpack_q3_k(const uint8_t *block, float *out) {
    const uint8_t *high = block, *q = block + 32, *scales = block + 96;
    const float d = half_at(block + 108);
    for (int i = 0; i < 256; i++) {
        const int shift = i % 128 / 32 * 2, low = q[i / 128 * 32 + i % 32] >> shift & 3;
        const int bits = low - (high[i % 32] >> i / 32 & 1 ? 0 : 4);
        out[i] = d * (float)q3_scale(scales, i / 16) * (float)bits;
    }
}

/* Scale and minimum i of 8, six bits each, packed in twelve bytes. */
static void q4_scale(const uint8_t *scales, int i, int *scale, int *least) {
    if (i < 4) {
        *scale = scales[i] & 63;
        *least = scales[i + 4] & 63;
    } else {
        *scale = (scales[i + 4] & 15) | scales[i - 4] >> 6 << 4;
        *least = scales[i + 4] >> 4 | scales[i] >> 6 << 4;
    }
}

/* Q4_K, and Q5_K with the fifth bits at `high`. Of each 32 bytes, the low halves come first. */
static void unpack_k45(const uint8_t *block, const uint8_t *high, const uint8_t *q, float *out) {
    const float d = half_at(block), of_least = half_at(block + 2);
    for (int part = 0; part < 8; part++) {
        int scale, least;
        q4_scale(block + 4, part, &scale, &least);
        const float factor = d * (float)scale, below = of_least * (float)least;
        for (int i = 0; i < 32; i++) {
            const int byte = q[part / 2 * 32 + i], low = part % 2 ? byte >> 4 : byte & 15;
            const int fifth = high ? (high[i] >> part & 1) << 4 : 0;
            out[part * 32 + i] = factor * (float)(low | fifth) - below;
        }
    }
}

static void unpack_q4_k(const uint8_t *block, float *out) { unpack_k45(block, NULL, block + 16, out); }
static void unpack_q5_k(const uint8_t *block, float *out) { unpack_k45(block, block + 16, block + 48, out); }

static void unpack_q6_k(const uint8_t *block, float *out) {
    const uint8_t *low = block, *high = block + 128, *scales = block + 192;
    const float d = half_at(block + 208);
    for (int i = 0; i < 256; i++) {
        const int part = i / 128, quarter = i % 128 / 32, byte = low[part * 64 + i % 64];
        const int four = quarter < 2 ? byte & 15 : byte >> 4;
        const int two = high[part * 32 + i % 32] >> quarter * 2 & 3;
        out[i] = d * (float)(int8_t)scales[i / 16] * (float)((four | two << 4) - 32);
    }
}

/* ---- the table ---- */

static const weft__block_type types[] = {
#define BLOCK(number, name, elements, bytes, unpack) {number, #name, elements, bytes, unpack_##unpack},
#include "published/blocks.def"
};
enum { TYPES = sizeof types / sizeof *types };

const weft__block_type *weft__block_find(uint32_t number) {
    for (int i = 0; i < TYPES; i++)
        if (types[i].number == number) return &types[i];
    return NULL;
}

void weft__block_names(char *out, size_t bytes) {
    weft_text text = weft__text(out, bytes);
    for (int i = 0; i < TYPES; i++) weft__put(&text, "%s%s", i ? ", " : "", types[i].name);
}

void weft__block_unpack(const weft__block_type *type, const uint8_t *from, int64_t n, float *out) {
    if (type->elements == 1 && type->bytes == sizeof *out) {
        memcpy(out, from, (size_t)n * sizeof *out);
        return;
    }
    for (int64_t i = 0; i < n; i += type->elements, from += type->bytes) type->unpack(from, out + i);
}
