/* The dtype table, the conversions of 16-bit floats, and elements as numbers.
 * Must not know: tensors. Read next: include/weft/dtype.h. */
#include <math.h>
#include <string.h>

#include "base/base.h"

enum { KIND_FLOAT, KIND_INT, KIND_UINT, KIND_BOOL, KIND_COMPLEX };

typedef struct dtype_row {
    const char *name;
    size_t size;
    int kind;
} dtype_row;

static const dtype_row rows[WEFT_DTYPE_COUNT] = {
#define ROW(id, text, bytes, kind_) [WEFT_##id] = {text, bytes, KIND_##kind_},
    WEFT_DTYPE_LIST(ROW)
#undef ROW
};

static bool known(weft_dtype dtype) { return (unsigned)dtype < WEFT_DTYPE_COUNT; }

size_t weft_dtype_size(weft_dtype dtype) { return known(dtype) ? rows[dtype].size : 0; }

const char *weft_dtype_name(weft_dtype dtype) { return known(dtype) ? rows[dtype].name : "?"; }

bool weft_dtype_is_float(weft_dtype dtype) { return known(dtype) && rows[dtype].kind == KIND_FLOAT; }

bool weft_dtype_is_complex(weft_dtype dtype) { return known(dtype) && rows[dtype].kind == KIND_COMPLEX; }

weft_dtype weft__part_dtype(weft_dtype dtype) {
    return dtype == WEFT_C64 ? WEFT_F32 : dtype == WEFT_C128 ? WEFT_F64 : dtype;
}

bool weft_dtype_parse(const char *name, weft_dtype *dtype) {
    for (int i = 0; name && i < WEFT_DTYPE_COUNT; i++)
        if (strcmp(rows[i].name, name) == 0) {
            if (dtype) *dtype = (weft_dtype)i;
            return true;
        }
    return false;
}

static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

float weft_bf16_to_f32(uint16_t bits) { return float_of((uint32_t)bits << 16); }

/* Rounds to nearest, ties to even. A NaN keeps its upper bits and becomes quiet. */
uint16_t weft_f32_to_bf16(float value) {
    uint32_t u = bits_of(value);
    if ((u & 0x7fffffffu) > 0x7f800000u) return (uint16_t)((u >> 16) | 0x40u);
    return (uint16_t)((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

float weft_f16_to_f32(uint16_t bits) {
    uint32_t sign = (uint32_t)(bits & 0x8000u) << 16, rest = bits & 0x7fffu;
    if (rest >= 0x7c00u) /* infinity, NaN */
        return float_of(sign | 0x7f800000u | ((rest & 0x3ffu) << 13) | (rest > 0x7c00u ? 0x400000u : 0u));
    if (rest >= 0x400u) return float_of(sign | ((rest + 0x1c000u) << 13));
    float magnitude = (float)rest * 0x1p-24f; /* subnormal: exact */
    return sign ? -magnitude : magnitude;
}

/* Rounds to nearest, ties to even. Every NaN becomes the quiet NaN with the same sign. */
uint16_t weft_f32_to_f16(float value) {
    uint32_t u = bits_of(value), sign = (u >> 16) & 0x8000u, rest = u & 0x7fffffffu;
    if (rest > 0x7f800000u) return (uint16_t)(sign | 0x7e00u);
    if (rest >= 0x477ff000u) return (uint16_t)(sign | 0x7c00u); /* rounds to 65536 or more */
    if (rest < 0x38800000u) {                                   /* below 2^-14: adding 0.5 rounds at 2^-24 */
        float magnitude = float_of(rest) + 0.5f;
        return (uint16_t)(sign | (bits_of(magnitude) - 0x3f000000u));
    }
    rest += 0xfffu + ((rest >> 13) & 1u);
    return (uint16_t)(sign | ((rest - 0x38000000u) >> 13));
}

void weft__store_number(weft_dtype dtype, void *to, double f, int64_t i) {
    const uint64_t bits = (uint64_t)i;
    switch (dtype) {
    case WEFT_F32: memcpy(to, &(float){(float)f}, 4); return;
    case WEFT_F64: memcpy(to, &f, 8); return;
    case WEFT_F16: memcpy(to, &(uint16_t){weft_f32_to_f16((float)f)}, 2); return;
    case WEFT_BF16: memcpy(to, &(uint16_t){weft_f32_to_bf16((float)f)}, 2); return;
    case WEFT_BOOL: memcpy(to, &(uint8_t){f != 0}, 1); return;
    case WEFT_I8:
    case WEFT_U8: memcpy(to, &(uint8_t){(uint8_t)bits}, 1); return;
    case WEFT_I16:
    case WEFT_U16: memcpy(to, &(uint16_t){(uint16_t)bits}, 2); return;
    case WEFT_I32:
    case WEFT_U32: memcpy(to, &(uint32_t){(uint32_t)bits}, 4); return;
    default: memcpy(to, &bits, 8); return;
    }
}

double weft__element(weft_dtype dtype, const void *data, int64_t i) {
    switch (dtype) {
    case WEFT_F32: return (double)((const float *)data)[i];
    case WEFT_F64: return ((const double *)data)[i];
    case WEFT_F16: return (double)weft_f16_to_f32(((const uint16_t *)data)[i]);
    case WEFT_BF16: return (double)weft_bf16_to_f32(((const uint16_t *)data)[i]);
    case WEFT_I8: return ((const int8_t *)data)[i];
    case WEFT_I16: return ((const int16_t *)data)[i];
    case WEFT_I32: return ((const int32_t *)data)[i];
    case WEFT_I64: return (double)((const int64_t *)data)[i];
    case WEFT_U8: return ((const uint8_t *)data)[i];
    case WEFT_U16: return ((const uint16_t *)data)[i];
    case WEFT_U32: return ((const uint32_t *)data)[i];
    case WEFT_U64: return (double)((const uint64_t *)data)[i];
    case WEFT_BOOL: return ((const uint8_t *)data)[i] != 0;
    default: return (double)NAN;
    }
}
