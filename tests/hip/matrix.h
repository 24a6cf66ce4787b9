/* The matrix instructions that prelude/matrix.cu uses, for the host's compiler: MFMA and WMMA. All lanes of
 * the wavefront show their operands to the others, and each lane takes its results. Which lane and which
 * element holds a number of a matrix is written here from the formulas of AMD's Matrix Instruction Calculator
 * (--detail-instruction, "Matrix element to register mapping"), and not from the kernels. An architecture has
 * only its own instructions. Read next: device_hip.h, which includes this file. */

/* Numbers by their 16 bits. */
struct fake_core_f16 {
    FAKE_SILENT static float read(unsigned short bits) {
        _Float16 x;
        __builtin_memcpy(&x, &bits, 2);
        return (float)x;
    }
};
struct fake_core_bf16 {
    FAKE_SILENT static float read(unsigned short bits) {
        const unsigned word = (unsigned)bits << 16;
        float x;
        __builtin_memcpy(&x, &word, 4);
        return x;
    }
};

struct fake_core_operands {
    unsigned short a[16], b[16];
};

/* Where the numbers are. A row of a and a column of b follow the same rule, with k: lane (from `copy` on
 * there are copies of it, `copies` times 16 lanes further on) and element. d: lane and element of row i and
 * column j. */
struct fake_core_mfma16 { /* v_mfma_f32_16x16x16_f16 and _bf16 */
    static constexpr int depth = 16, copies = 1;
    FAKE_SILENT static int lane(int line, int k) { return 16 * (k / 4) + line; }
    FAKE_SILENT static int element(int k) { return 2 * (k / 2 % 2) + k % 2; }
    FAKE_SILENT static int d_lane(int i, int j) { return 16 * (i / 4) + j; }
    FAKE_SILENT static int d_element(int i) { return i % 4; }
};
struct fake_core_mfma8 : fake_core_mfma16 { /* v_mfma_f32_16x16x8bf16 */
    static constexpr int depth = 8;
    FAKE_SILENT static int lane(int line, int k) { return 16 * (k / 2) + line; }
    FAKE_SILENT static int element(int k) { return k % 2; }
};
struct fake_core_rdna3 { /* v_wmma_f32_16x16x16_f16 and _bf16, wavefronts of 32 lanes */
    static constexpr int depth = 16, copies = 2;
    FAKE_SILENT static int lane(int line, int) { return line; }
    FAKE_SILENT static int element(int k) { return 2 * (k / 2) + k % 2; }
    FAKE_SILENT static int d_lane(int i, int j) { return 16 * i % 32 + j; }
    FAKE_SILENT static int d_element(int i) { return i / 2; }
};
struct fake_core_rdna4 { /* the same in RDNA 4 */
    static constexpr int depth = 16, copies = 1;
    FAKE_SILENT static int lane(int line, int k) { return 16 * (k / 4 % 2) + line; }
    FAKE_SILENT static int element(int k) { return 2 * (2 * (k / 8) + k / 2 % 2) + k % 2; }
    FAKE_SILENT static int d_lane(int i, int j) { return 16 * (i / 8) + j; }
    FAKE_SILENT static int d_element(int i) { return i % 8; }
};

template <class Place>
FAKE_SILENT static inline unsigned short fake_core_bits(const fake_shown &all, bool of_b, int line, int k) {
    unsigned short bits = 0;
    for (int copy = 0; copy < Place::copies; copy++) {
        const auto *from = all.of<fake_core_operands>(Place::lane(line, k) + 16 * copy);
        const unsigned short it = (of_b ? from->b : from->a)[Place::element(k)];
        if (copy && it != bits) fake_wrong("a matrix instruction: the copies of an operand differ");
        bits = it;
    }
    return bits;
}

/* Returns c + a b. */
template <class Place, class Format, class V, class C> FAKE_SILENT static inline C fake_core(V a, V b, C c) {
    static_assert(sizeof(C) / sizeof(float) * FAKE_WAVE == 256, "d is 16 x 16");
    static_assert(sizeof(V) / 2 * FAKE_WAVE == 16 * Place::depth * Place::copies,
                  "all elements have a place");
    fake_core_operands mine;
    __builtin_memcpy(mine.a, &a, sizeof a);
    __builtin_memcpy(mine.b, &b, sizeof b);
    const fake_shown all(&mine, ~0ul);
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 16; j++) {
            if (Place::d_lane(i, j) != (int)fake_wave_lane()) continue;
            float sum = c[Place::d_element(i)];
            for (int k = 0; k < Place::depth; k++)
                sum += Format::read(fake_core_bits<Place>(all, false, i, k)) *
                       Format::read(fake_core_bits<Place>(all, true, j, k));
            c[Place::d_element(i)] = sum;
        }
    return c;
}
#define FAKE_CORE(place, format, a, b, c)                                                                    \
    FAKE_HERE((fake_core<fake_core_##place, fake_core_##format>(a, b, c)))

#if FAKE_WAVE == 64 && !defined(__gfx900__) && !defined(__gfx906__)
#define __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, c, cbsz, abid, blgp) FAKE_CORE(mfma16, f16, a, b, c)
#define __builtin_amdgcn_mfma_f32_16x16x8bf16(a, b, c, cbsz, abid, blgp) FAKE_CORE(mfma8, bf16, a, b, c)
#ifndef __gfx908__
#define __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, c, cbsz, abid, blgp) FAKE_CORE(mfma16, bf16, a, b, c)
#endif
#endif
#ifdef __gfx1100__
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, c)  FAKE_CORE(rdna3, f16, a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, c) FAKE_CORE(rdna3, bf16, a, b, c)
#endif
#ifdef __gfx1201__
#define __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, c)  FAKE_CORE(rdna4, f16, a, b, c)
#define __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, c) FAKE_CORE(rdna4, bf16, a, b, c)
#endif
