/* Element types. f16 and bf16 values are uint16_t in C; Weft computes with them in f32. */
#ifndef WEFT_DTYPE_H
#define WEFT_DTYPE_H

#include <weft/base.h>

#ifdef __cplusplus
extern "C" {
#endif

/* X(NAME, "name", size in bytes, kind). The kind is FLOAT, INT, UINT, BOOL or COMPLEX. Files store the
 * name. */
#define WEFT_DTYPE_LIST(X)                                                                                   \
    X(F32, "f32", 4, FLOAT)                                                                                  \
    X(F64, "f64", 8, FLOAT)                                                                                  \
    X(F16, "f16", 2, FLOAT)                                                                                  \
    X(BF16, "bf16", 2, FLOAT)                                                                                \
    X(I8, "i8", 1, INT)                                                                                      \
    X(I16, "i16", 2, INT)                                                                                    \
    X(I32, "i32", 4, INT)                                                                                    \
    X(I64, "i64", 8, INT)                                                                                    \
    X(U8, "u8", 1, UINT)                                                                                     \
    X(U16, "u16", 2, UINT)                                                                                   \
    X(U32, "u32", 4, UINT)                                                                                   \
    X(U64, "u64", 8, UINT)                                                                                   \
    X(BOOL, "bool", 1, BOOL)                                                                                 \
    X(C64, "c64", 8, COMPLEX)                                                                                \
    X(C128, "c128", 16, COMPLEX)

typedef enum weft_dtype {
#define WEFT_DTYPE_ENUM_(name, text, size, kind) WEFT_##name,
    WEFT_DTYPE_LIST(WEFT_DTYPE_ENUM_)
#undef WEFT_DTYPE_ENUM_
        WEFT_DTYPE_COUNT
} weft_dtype;

/* Bytes of one element; 0 for an unknown value. */
WEFT_API size_t weft_dtype_size(weft_dtype dtype);

/* "f32" and so on; "?" for an unknown value. Never NULL. */
WEFT_API const char *weft_dtype_name(weft_dtype dtype);

/* Looks up a dtype by name; false if there is none. */
WEFT_API bool weft_dtype_parse(const char *name, weft_dtype *dtype);

/* True for f32, f64, f16 and bf16. These dtypes have gradients. */
WEFT_API bool weft_dtype_is_float(weft_dtype dtype);

/* True for c64 and c128, which are pairs of f32 and f64 with the real part first. They have gradients too. */
WEFT_API bool weft_dtype_is_complex(weft_dtype dtype);

/* Convert 16-bit floats, rounding to nearest even. NaN stays NaN. */
WEFT_API float weft_f16_to_f32(uint16_t bits);
WEFT_API uint16_t weft_f32_to_f16(float value);
WEFT_API float weft_bf16_to_f32(uint16_t bits);
WEFT_API uint16_t weft_f32_to_bf16(float value);

/* Formats of packed matrices, whose rows are blocks of quantised numbers as in GGUF files.
 * X(NAME, "name", numbers of a block, bytes of a block, numbers that share a scale) */
#define WEFT_PACKED_LIST(X)                                                                                  \
    X(Q4_0, "Q4_0", 32, 18, 32)                                                                              \
    X(Q4_1, "Q4_1", 32, 20, 32)                                                                              \
    X(Q8_0, "Q8_0", 32, 34, 32)                                                                              \
    X(Q4_K, "Q4_K", 256, 144, 32)                                                                            \
    X(Q6_K, "Q6_K", 256, 210, 16)

typedef enum weft_packed_format {
    WEFT_UNPACKED,
#define WEFT_PACKED_ENUM_(name, text, elements, bytes, span) WEFT_##name,
    WEFT_PACKED_LIST(WEFT_PACKED_ENUM_)
#undef WEFT_PACKED_ENUM_
        WEFT_PACKED_COUNT
} weft_packed_format;

/* "Q8_0" and so on; "?" for an unknown format. Never NULL. */
WEFT_API const char *weft_packed_name(weft_packed_format format);

/* The bytes of a packed row of k numbers. 0: the format is unknown, or k is not a positive number of whole
 * blocks. */
WEFT_API int64_t weft_packed_bytes(weft_packed_format format, int64_t k);

#ifdef __cplusplus
}
#endif
#endif
