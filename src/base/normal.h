/* The logarithm and cosine that Box and Muller's method needs, in double. They give the same bits on every
 * machine: plain arithmetic in one order, which compilers vectorise in loops over arrays. The polynomials,
 * and the reduction of the logarithm, are those of fdlibm (Sun Microsystems 1993, e_log.c, k_sin.c, k_cos.c).
 * Must not know: where the bits come from. Read next: random.c, base/random_fill.c. */
#ifndef WEFT_BASE_NORMAL_H
#define WEFT_BASE_NORMAL_H

#include <stdint.h>
#include <string.h>

/* log(u) for 0 < u <= 1. u must not be subnormal. */
static inline double weft__log_unit(double u) {
    uint64_t bits;
    memcpy(&bits, &u, sizeof bits);
    bits += (UINT64_C(0x3ff00000) - 0x3fe6a09e) << 32; /* u = 2^k (1 + f), sqrt(1/2) <= 1 + f < sqrt(2) */
    uint64_t k_bits = bits >> 52 | UINT64_C(0x4330000000000000); /* 2^52 + k + 1023 */
    uint64_t m_bits = (bits & UINT64_C(0x000fffffffffffff)) + (UINT64_C(0x3fe6a09e) << 32);
    double k, f;
    memcpy(&k, &k_bits, sizeof k);
    memcpy(&f, &m_bits, sizeof f);
    k -= 0x1p52 + 1023.0;
    f -= 1.0;
    double s = f / (2.0 + f), z = s * s, w = z * z, half = 0.5 * f * f;
    double even =
        w * (3.999999999940941908e-01 + w * (2.222219843214978396e-01 + w * 1.531383769920937332e-01));
    double odd =
        z * (6.666666666666735130e-01 +
             w * (2.857142874366239149e-01 + w * (1.818357216161805012e-01 + w * 1.479819860511658591e-01)));
    return k * 6.93147180369123816490e-01 -
           ((half - (s * (half + (even + odd)) + k * 1.90821492927058770002e-10)) - f);
}

/* cos(2 pi v / 2^32). The nearest quarter turn is subtracted exactly. */
static inline double weft__cos_turn(uint32_t v) {
    uint32_t quarter = (v + (UINT32_C(1) << 29)) >> 30;
    double x = (double)(int32_t)(v - (quarter << 30)) * (6.283185307179586476925 * 0x1p-32), z = x * x;
    double sine =
        x + x * z *
                (-1.66666666666666324348e-01 +
                 z * (8.33333333332248946124e-03 +
                      z * (-1.98412698298579493134e-04 +
                           z * (2.75573137070700676789e-06 +
                                z * (-2.50507602534068634195e-08 + z * 1.58969099521155010221e-10)))));
    double cosine =
        1.0 - (0.5 * z -
               z * z *
                   (4.16666666666666019037e-02 +
                    z * (-1.38888888888741095749e-03 +
                         z * (2.48015872894767294178e-05 +
                              z * (-2.75573143513906633035e-07 +
                                   z * (2.08757232129817482790e-09 + z * -1.13596475577881948265e-11))))));
    double value = quarter & 1u ? sine : cosine;
    return (quarter + 1u) & 2u ? -value : value; /* cos x, -sin x, -cos x, sin x */
}

#endif
