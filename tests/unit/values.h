/* Helpers for the tests of heavy operations: arrays of values of any dtype. */
#ifndef WEFT_TESTS_VALUES_H
#define WEFT_TESTS_VALUES_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <weft/tensor.h>
#include "base/base.h"

static inline double value(weft_dtype d, const void *p, int64_t i) {
    switch (d) {
    case WEFT_F32: return ((const float *)p)[i];
    case WEFT_F64: return ((const double *)p)[i];
    case WEFT_F16: return weft_f16_to_f32(((const uint16_t *)p)[i]);
    case WEFT_BF16: return weft_bf16_to_f32(((const uint16_t *)p)[i]);
    default: return 0;
    }
}

static inline uint64_t integer(weft_dtype d, const void *p, int64_t i) {
    if (d == WEFT_I32) return (uint64_t)(int64_t)((const int32_t *)p)[i];
    return d == WEFT_I64 ? (uint64_t)((const int64_t *)p)[i] : 0;
}

static inline void set_value(weft_dtype d, void *p, int64_t i, double v) {
    switch (d) {
    case WEFT_F32: ((float *)p)[i] = (float)v; break;
    case WEFT_F64: ((double *)p)[i] = v; break;
    case WEFT_F16: ((uint16_t *)p)[i] = weft_f32_to_f16((float)v); break;
    case WEFT_BF16: ((uint16_t *)p)[i] = weft_f32_to_bf16((float)v); break;
    case WEFT_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case WEFT_I64: ((int64_t *)p)[i] = (int64_t)v; break;
    default: break;
    }
}

static inline uint64_t next_random(uint64_t *s) {
    *s += 0x9e3779b97f4a7c15u;
    return weft__mix64(*s);
}

/* n values: floats uniform in [-1, 1), integers of any bits. The array has exactly n elements, so that tools
 * detect an access past its end. */
static inline void *random_values(weft_dtype d, int64_t n, uint64_t seed) {
    size_t size = weft_dtype_size(d);
    void *p = malloc((size_t)n * size + (n == 0));
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = next_random(&seed);
        if (weft_dtype_is_float(d))
            set_value(d, p, i, (double)(int64_t)r * 0x1p-63);
        else
            memcpy((char *)p + (size_t)i * size, &r, size);
    }
    return p;
}

#endif
