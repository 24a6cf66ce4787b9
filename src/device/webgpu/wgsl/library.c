/* Functions in WGSL that printed kernels may need: integers of 64 bits as two words, the low one first;
 * conversions that are exact; functions of floats that WGSL leaves open for NaN. Must not know: the printer.
 */
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

static const struct {
    const char *name, *text;
} library[] = {
    /* ---- integers of 64 bits ---- */
    {"w64_of_i32", "fn w64_of_i32(x: i32) -> vec2<u32> {\n"
                   "    return vec2<u32>(u32(x), u32(x >> 31u));\n"
                   "}\n"},
    {"w64_add", "fn w64_add(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
                "    let low = a.x + b.x;\n"
                "    return vec2<u32>(low, a.y + b.y + select(0u, 1u, low < a.x));\n"
                "}\n"},
    {"w64_sub", "fn w64_sub(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
                "    return vec2<u32>(a.x - b.x, a.y - b.y - select(0u, 1u, a.x < b.x));\n"
                "}\n"},
    /* the high word of a product of words, from products of 16 bits */
    {"w64_mul_hi", "fn w64_mul_hi(a: u32, b: u32) -> u32 {\n"
                   "    let a0 = a & 65535u;\n"
                   "    let a1 = a >> 16u;\n"
                   "    let b0 = b & 65535u;\n"
                   "    let b1 = b >> 16u;\n"
                   "    let middle = a1 * b0 + ((a0 * b0) >> 16u);\n"
                   "    let other = a0 * b1 + (middle & 65535u);\n"
                   "    return a1 * b1 + (middle >> 16u) + (other >> 16u);\n"
                   "}\n"},
    {"w64_mul", "fn w64_mul(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
                "    return vec2<u32>(a.x * b.x, w64_mul_hi(a.x, b.x) + a.x * b.y + a.y * b.x);\n"
                "}\n"},
    {"w64_shl", "fn w64_shl(a: vec2<u32>, by: u32) -> vec2<u32> {\n"
                "    let n = by & 63u;\n"
                "    if (n == 0u) {\n"
                "        return a;\n"
                "    }\n"
                "    if (n >= 32u) {\n"
                "        return vec2<u32>(0u, a.x << (n - 32u));\n"
                "    }\n"
                "    return vec2<u32>(a.x << n, (a.y << n) | (a.x >> (32u - n)));\n"
                "}\n"},
    {"w64_shr_u64", "fn w64_shr_u64(a: vec2<u32>, by: u32) -> vec2<u32> {\n"
                    "    let n = by & 63u;\n"
                    "    if (n == 0u) {\n"
                    "        return a;\n"
                    "    }\n"
                    "    if (n >= 32u) {\n"
                    "        return vec2<u32>(a.y >> (n - 32u), 0u);\n"
                    "    }\n"
                    "    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), a.y >> n);\n"
                    "}\n"},
    {"w64_shr_i64", "fn w64_shr_i64(a: vec2<u32>, by: u32) -> vec2<u32> {\n"
                    "    let n = by & 63u;\n"
                    "    let high = i32(a.y);\n"
                    "    if (n == 0u) {\n"
                    "        return a;\n"
                    "    }\n"
                    "    if (n >= 32u) {\n"
                    "        return vec2<u32>(u32(high >> (n - 32u)), u32(high >> 31u));\n"
                    "    }\n"
                    "    return vec2<u32>((a.x >> n) | (a.y << (32u - n)), u32(high >> n));\n"
                    "}\n"},
    {"w64_less_u64", "fn w64_less_u64(a: vec2<u32>, b: vec2<u32>) -> bool {\n"
                     "    return select(a.y < b.y, a.x < b.x, a.y == b.y);\n"
                     "}\n"},
    {"w64_less_i64", "fn w64_less_i64(a: vec2<u32>, b: vec2<u32>) -> bool {\n"
                     "    return select(i32(a.y) < i32(b.y), a.x < b.x, a.y == b.y);\n"
                     "}\n"},
    {"w64_negative", "fn w64_negative(a: vec2<u32>) -> vec2<u32> {\n"
                     "    return vec2<u32>(0u - a.x, ~a.y + select(0u, 1u, a.x == 0u));\n"
                     "}\n"},
    {"w64_abs", "fn w64_abs(a: vec2<u32>) -> vec2<u32> {\n"
                "    return select(a, w64_negative(a), i32(a.y) < 0);\n"
                "}\n"},
    /* quotient and remainder, bit by bit unless words are enough */
    {"w64_divide", "fn w64_divide(a: vec2<u32>, b: vec2<u32>) -> vec4<u32> {\n"
                   "    if ((a.y | b.y) == 0u) {\n"
                   "        return vec4<u32>(a.x / b.x, 0u, a.x % b.x, 0u);\n"
                   "    }\n"
                   "    var quotient = vec2<u32>();\n"
                   "    var rest = vec2<u32>();\n"
                   "    for (var i = 63; i >= 0; i--) {\n"
                   "        let over = rest.y >> 31u;\n"
                   "        rest = w64_shl(rest, 1u);\n"
                   "        rest.x |= w64_shr_u64(a, u32(i)).x & 1u;\n"
                   "        quotient = w64_shl(quotient, 1u);\n"
                   "        if (over != 0u || !w64_less_u64(rest, b)) {\n"
                   "            rest = w64_sub(rest, b);\n"
                   "            quotient.x |= 1u;\n"
                   "        }\n"
                   "    }\n"
                   "    return vec4<u32>(quotient, rest);\n"
                   "}\n"},
    {"w64_div_u64", "fn w64_div_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
                    "    return w64_divide(a, b).xy;\n"
                    "}\n"},
    {"w64_mod_u64", "fn w64_mod_u64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
                    "    return w64_divide(a, b).zw;\n"
                    "}\n"},
    {"w64_div_i64", "fn w64_div_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
                    "    let q = w64_divide(w64_abs(a), w64_abs(b)).xy;\n"
                    "    return select(q, w64_negative(q), i32(a.y ^ b.y) < 0);\n"
                    "}\n"},
    {"w64_mod_i64", "fn w64_mod_i64(a: vec2<u32>, b: vec2<u32>) -> vec2<u32> {\n"
                    "    let r = w64_divide(w64_abs(a), w64_abs(b)).zw;\n"
                    "    return select(r, w64_negative(r), i32(a.y) < 0);\n"
                    "}\n"},
    /* ---- between integers and floats ---- */
    /* Words above 2^24 are cut to 24 bits. With `odd` the last of them is set if something was cut off, two
     * bits further down, so the conversion rounds once. */
    {"w64_f32_of_u64", "fn w64_f32_of_u64(a: vec2<u32>) -> f32 {\n"
                       "    if (a.y == 0u) {\n"
                       "        return wf_f32_of_u32(a.x);\n"
                       "    }\n"
                       "    let n = 32u - countLeadingZeros(a.y);\n"
                       "    let top = w64_shr_u64(a, n);\n"
                       "    let rest = select(0u, 1u, any(w64_shl(top, n) != a));\n"
                       "    return wf_f32_of_u32(top.x | rest) * bitcast<f32>((127u + n) << 23u);\n"
                       "}\n"},
    {"w64_f32_of_i64", "fn w64_f32_of_i64(a: vec2<u32>) -> f32 {\n"
                       "    let size = w64_f32_of_u64(w64_abs(a));\n"
                       "    return select(size, -size, i32(a.y) < 0);\n"
                       "}\n"},
    /* to the nearest, half to even, whatever the device does */
    {"wf_f32_of_u32", "fn wf_f32_of_u32(a: u32) -> f32 {\n"
                      "    let zeros = countLeadingZeros(a);\n"
                      "    if (zeros >= 8u) {\n"
                      "        return f32(a);\n"
                      "    }\n"
                      "    let shift = 8u - zeros;\n"
                      "    let kept = a >> shift;\n"
                      "    let rest = a & ((1u << shift) - 1u);\n"
                      "    let half = 1u << (shift - 1u);\n"
                      "    let up = rest > half || (rest == half && (kept & 1u) != 0u);\n"
                      "    return f32(kept + select(0u, 1u, up)) * f32(1u << shift);\n"
                      "}\n"},
    {"wf_f32_rtz_of_u32", "fn wf_f32_rtz_of_u32(a: u32) -> f32 {\n"
                          "    let zeros = countLeadingZeros(a);\n"
                          "    return f32(select(a, a & ~((1u << ((8u - zeros) & 31u)) - 1u), zeros < 8u));\n"
                          "}\n"},
    {"wf_f32_rtz_of_i32", "fn wf_f32_rtz_of_i32(a: i32) -> f32 {\n"
                          "    let size = wf_f32_rtz_of_u32(select(u32(a), 0u - u32(a), a < 0));\n"
                          "    return select(size, -size, a < 0);\n"
                          "}\n"},
    {"w64_f32_rtz_of_u64",
     "fn w64_f32_rtz_of_u64(a: vec2<u32>) -> f32 {\n"
     "    let n = 32u - countLeadingZeros(a.y);\n"
     "    return wf_f32_rtz_of_u32(w64_shr_u64(a, n).x) * bitcast<f32>((127u + n) << 23u);\n"
     "}\n"},
    {"w64_f32_rtz_of_i64", "fn w64_f32_rtz_of_i64(a: vec2<u32>) -> f32 {\n"
                           "    let size = w64_f32_rtz_of_u64(w64_abs(a));\n"
                           "    return select(size, -size, i32(a.y) < 0);\n"
                           "}\n"},
    /* saturated, and 0 for NaN */
    {"wf_i32_of_f32", "fn wf_i32_of_f32(x: f32) -> i32 {\n"
                      "    if (wf_is_nan(x)) {\n"
                      "        return 0;\n"
                      "    }\n"
                      "    if (x >= 2147483648.0f) {\n"
                      "        return 2147483647;\n"
                      "    }\n"
                      "    if (x < -2147483648.0f) {\n"
                      "        return i32(-2147483648);\n"
                      "    }\n"
                      "    return i32(x);\n"
                      "}\n"},
    {"wf_u32_of_f32", "fn wf_u32_of_f32(x: f32) -> u32 {\n"
                      "    if (wf_is_nan(x) || x <= 0.0f) {\n"
                      "        return 0u;\n"
                      "    }\n"
                      "    if (x >= 4294967296.0f) {\n"
                      "        return 4294967295u;\n"
                      "    }\n"
                      "    return u32(x);\n"
                      "}\n"},
    {"w64_u64_of_f32", "fn w64_u64_of_f32(x: f32) -> vec2<u32> {\n"
                       "    let bits = bitcast<u32>(x);\n"
                       "    let power = i32((bits >> 23u) & 255u) - 150;\n"
                       "    let digits = vec2<u32>((bits & 0x7fffffu) | 0x800000u, 0u);\n"
                       "    if (wf_is_nan(x) || x < 1.0f) {\n"
                       "        return vec2<u32>();\n"
                       "    }\n"
                       "    if (power > 40) {\n"
                       "        return vec2<u32>(4294967295u, 4294967295u);\n"
                       "    }\n"
                       "    if (power >= 0) {\n"
                       "        return w64_shl(digits, u32(power));\n"
                       "    }\n"
                       "    return w64_shr_u64(digits, u32(-power));\n"
                       "}\n"},
    {"w64_i64_of_f32",
     "fn w64_i64_of_f32(x: f32) -> vec2<u32> {\n"
     "    let size = w64_u64_of_f32(abs(x));\n"
     "    if (size.y >= 0x80000000u) {\n"
     "        return select(vec2<u32>(4294967295u, 0x7fffffffu), vec2<u32>(0u, 0x80000000u), x < 0.0f);\n"
     "    }\n"
     "    return select(size, w64_negative(size), x < 0.0f);\n"
     "}\n"},
    /* ---- floats ---- */
    {"wf_is_nan", "fn wf_is_nan(x: f32) -> bool {\n"
                  "    return (bitcast<u32>(x) & 0x7fffffffu) > 0x7f800000u;\n"
                  "}\n"},
    /* the other operand if one is NaN, as in C */
    {"wf_fmax", "fn wf_fmax(a: f32, b: f32) -> f32 {\n"
                "    return select(select(b, a, a > b), a, wf_is_nan(b));\n"
                "}\n"},
    {"wf_fmin", "fn wf_fmin(a: f32, b: f32) -> f32 {\n"
                "    return select(select(b, a, a < b), a, wf_is_nan(b));\n"
                "}\n"},
    /* exact: the significand of a, shifted by the difference of the exponents, modulo that of b */
    {"wf_fmod", "fn wf_fmod(a: f32, b: f32) -> f32 {\n"
                "    let sign = bitcast<u32>(a) & 0x80000000u;\n"
                "    let x = bitcast<u32>(a) & 0x7fffffffu;\n"
                "    let y = bitcast<u32>(b) & 0x7fffffffu;\n"
                "    if (y == 0u || x >= 0x7f800000u || y > 0x7f800000u) {\n"
                "        return bitcast<f32>(0x7fc00000u | w_words[0].w);\n"
                "    }\n"
                "    if (x < y) {\n"
                "        return a;\n"
                "    }\n"
                "    let top = x >> 23u;\n"
                "    let low = max(y >> 23u, 1u);\n"
                "    var rest = select(x & 0x7fffffu, (x & 0x7fffffu) | 0x800000u, top > 0u);\n"
                "    let by = select(y & 0x7fffffu, (y & 0x7fffffu) | 0x800000u, (y >> 23u) > 0u);\n"
                "    var left = max(top, 1u) - low;\n"
                "    rest %= by;\n"
                "    while (left > 0u) {\n"
                "        let step = min(left, 8u);\n"
                "        rest = (rest << step) % by;\n"
                "        left -= step;\n"
                "    }\n"
                "    if (rest == 0u) {\n"
                "        return bitcast<f32>(sign | w_words[0].w);\n"
                "    }\n"
                "    let zeros = countLeadingZeros(rest) - 8u;\n"
                "    if (zeros >= low) {\n"
                "        return bitcast<f32>(sign | (rest << (low - 1u)));\n"
                "    }\n"
                "    return bitcast<f32>(sign | ((rest << zeros) & 0x7fffffu) | ((low - zeros) << 23u));\n"
                "}\n"},
    {"wf_f32_of_f16",
     "fn wf_f32_of_f16(h: u32) -> f32 {\n"
     "    let sign = (h & 0x8000u) << 16u;\n"
     "    let size = h & 0x7fffu;\n"
     "    if (size >= 0x7c00u) {\n"
     "        return bitcast<f32>(sign | 0x7f800000u | ((size & 0x3ffu) << 13u) | w_words[0].w);\n"
     "    }\n"
     "    if (size >= 0x400u) {\n"
     "        return bitcast<f32>(sign | ((size << 13u) + 0x38000000u));\n"
     "    }\n"
     "    return bitcast<f32>(sign | bitcast<u32>(f32(size) * 0x1p-24f));\n"
     "}\n"},
    /* to the nearest, half to even. Adding 1/2 rounds what becomes subnormal. */
    {"wf_f16_of_f32", "fn wf_f16_of_f32(x: f32) -> u32 {\n"
                      "    let bits = bitcast<u32>(x);\n"
                      "    let size = bits & 0x7fffffffu;\n"
                      "    let sign = (bits >> 16u) & 0x8000u;\n"
                      "    if (size > 0x7f800000u) {\n"
                      "        return sign | 0x7e00u | ((size >> 13u) & 0x3ffu);\n"
                      "    }\n"
                      "    if (size >= 0x477ff000u) {\n"
                      "        return sign | 0x7c00u;\n"
                      "    }\n"
                      "    if (size < 0x38800000u) {\n"
                      "        return sign | (bitcast<u32>(bitcast<f32>(size) + 0.5f) - 0x3f000000u);\n"
                      "    }\n"
                      "    return sign | ((size + 0xfffu + ((size >> 13u) & 1u) - 0x38000000u) >> 13u);\n"
                      "}\n"},
    {"wf_round_f16", "fn wf_round_f16(x: f32) -> f32 {\n"
                     "    return wf_f32_of_f16(wf_f16_of_f32(x));\n"
                     "}\n"},
    /* ---- the struct of numbers: the word at a byte ---- */
    {"wf_word", "fn wf_word(byte: i32) -> u32 {\n"
                "    return w_words[byte >> 4u][(byte >> 2u) & 3];\n"
                "}\n"},
};

const char *weft__wgsl_library(const char *name) {
    for (size_t i = 0; i < sizeof library / sizeof *library; i++)
        if (!strcmp(library[i].name, name)) return library[i].text;
    return NULL;
}
