/* Packs numbers into blocks: the inverse of blocks.c. The blocks of 32 elements get the bytes that ggml's
 * reference gives (quantize_row_q8_0_ref and its kin in ggml-quants.c of https://github.com/ggml-org/ggml).
 * The scale follows from the largest element, and all elements are rounded. Must not know: files. Read next:
 * quantize_k.c. */
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "published/quantize.h"

#define F16_MOST 65504.0F

static void put_u16(uint8_t *at, uint16_t value) {
    at[0] = (uint8_t)value;
    at[1] = (uint8_t)(value >> 8);
}

static void weft__pack_f32(const float *from, uint8_t *block) { memcpy(block, from, sizeof *from); }
static void weft__pack_f16(const float *from, uint8_t *block) { put_u16(block, weft_f32_to_f16(*from)); }
static void weft__pack_bf16(const float *from, uint8_t *block) { put_u16(block, weft_f32_to_bf16(*from)); }

/* ---- blocks of 32 ---- */

/* The element of the largest absolute value, the first of equal ones. */
static float largest(const float *from) {
    float most = from[0];
    for (int i = 1; i < 32; i++)
        if (fabsf(from[i]) > fabsf(most)) most = from[i];
    return most;
}

/* q = round(x / d), d = the largest |x| / 127; halves are rounded away from 0. */
static void weft__pack_q8_0(const float *from, uint8_t *block) {
    const float d = fabsf(largest(from)) / 127, inverse = d > 1e-30F ? 1 / d : 0;
    put_u16(block, weft_f32_to_f16(d));
    for (int i = 0; i < 32; i++) block[2 + i] = (uint8_t)(int8_t)roundf(from[i] * inverse);
}

/* q = round(x / d) + middle, where the largest element becomes 0: d = that element / -middle. */
static void small_numbers(const float *from, int middle, uint8_t *scale, uint8_t q[32]) {
    const float d = largest(from) / (float)-middle, inverse = fabsf(d) > 1e-30F ? 1 / d : 0;
    put_u16(scale, weft_f32_to_f16(d));
    for (int i = 0; i < 32; i++) {
        const int number = (int)(from[i] * inverse + ((float)middle + 0.5F));
        q[i] = (uint8_t)(number < 2 * middle - 1 ? number : 2 * middle - 1);
    }
}

static void weft__pack_q4_0(const float *from, uint8_t *block) {
    uint8_t q[32];
    small_numbers(from, 8, block, q);
    for (int i = 0; i < 16; i++) block[2 + i] = (uint8_t)(q[i] | q[i + 16] << 4);
}

static void weft__pack_q5_0(const float *from, uint8_t *block) {
    uint8_t q[32];
    small_numbers(from, 16, block, q);
    memset(block + 2, 0, 4);
    for (int i = 0; i < 32; i++) block[2 + i / 8] |= (uint8_t)(q[i] >> 4 << i % 8);
    for (int i = 0; i < 16; i++) block[6 + i] = (uint8_t)((q[i] & 15) | (q[i + 16] & 15) << 4);
}

/* ---- the table ---- */

static const weft__format formats[] = {
#define FORMAT(word, name, pack, instead, head, file_type, within)                                           \
    {#word, NULL, WEFT__BLOCK_##name, weft__pack_##pack, #instead, #head, file_type, within},
#include "published/formats.def"
};
enum { FORMATS = sizeof formats / sizeof *formats };

bool weft__format_find(const char *word, weft__format *out) {
    for (int i = 0; i < FORMATS; i++) {
        if (strcmp(formats[i].word, word) != 0) continue;
        *out = formats[i];
        out->type = weft__block_find(out->number);
        return true;
    }
    return false;
}

void weft__format_words(char *out, size_t bytes) {
    weft_text text = weft__text(out, bytes);
    for (int i = 0; i < FORMATS; i++) weft__put(&text, "%s%s", i ? ", " : "", formats[i].word);
}

void weft__format_fit(weft__format *format, int64_t columns) {
    while (columns % format->type->elements) weft__format_find(format->instead, format);
}

int64_t weft__format_check(const weft__format *format, const float *from, int64_t n) {
    const bool wide = format->number == WEFT__BLOCK_F32 || format->number == WEFT__BLOCK_BF16;
    const float most = wide ? INFINITY : F16_MOST;
    for (int64_t i = 0; i < n; i++)
        if (!(fabsf(from[i]) <= most) || isinf(from[i])) return i;
    return n;
}

void weft__format_pack(const weft__format *format, const float *from, int64_t n, uint8_t *out) {
    for (int64_t i = 0; i < n; i += format->type->elements, out += format->type->bytes)
        format->pack(from + i, out);
}
