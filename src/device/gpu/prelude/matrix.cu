/* Matrix cores of AMD's cards, for HIP kernels with WEFT_PRELUDE_MATRIX: the words of tensor.cu that matmul_tensor.cl
 * and attention_tensor.cl use, by builtins of clang. All lanes of a wavefront call them together. A warp is a wavefront
 * here.
 *
 * A fragment of a has 16 rows, one of b 16 columns, and both have 16 steps of k. Lane l has row or column l % 16. d is
 * 16 x 16. Lane l has column l % 16 of d.
 *
 *     cards                          lanes   elements of k     rows of d          instruction
 *     gfx908, gfx90a, gfx94*, gfx950 64      4 (l / 16) + 0..3 4 (l / 16) + 0..3  MFMA 16 x 16 x 16
 *     gfx110*, gfx115*               32      0..15             2 i + l / 16       WMMA
 *     gfx120*                        32      8 (l / 16) + 0..7 8 (l / 16) + 0..7  WMMA
 *
 * - A word holds two elements. The first one is in the low half.
 * - gfx110* and gfx115*: lanes l and l + 16 hold the same elements of a and b.
 * - gfx120* takes words 0 and 1 as k = 4 (l / 16) + 0..3, words 2 and 3 as 8 more. gfx908 multiplies bf16 by two
 *   instructions of 8 steps, which take a word of each lane. a and b agree about k, so only the order of additions
 *   differs.
 * - gfx90a takes subnormal numbers of f16 and bf16 as 0.
 *
 * Source: AMD Matrix Instruction Calculator (github.com/ROCm/amd_matrix_instruction_calculator, --detail-instruction)
 * for CDNA 1 to 3, RDNA 3 and 4; MIOpen's manual for subnormal numbers. Comes after common.cl. Read next:
 * matmul_tensor.cl, attention_tensor.cl. */

#ifndef W_WAVE_BARRIER
#define W_WAVE_BARRIER() __builtin_amdgcn_wave_barrier()
#endif
#define w_warp() w_ordered("wavefront", W_WAVE_BARRIER()) /* lanes see what the others wrote before it */

/* Returns the x of the lane whose number differs in bit `by`. All lanes of the wavefront call it. */
#ifndef W_WAVE_PERMUTE
#define W_WAVE_PERMUTE(at, x) __builtin_amdgcn_ds_bpermute(at, x)
#endif
template <class T> W_FN T w_core_near(T x, int by) {
    static_assert(sizeof(T) % sizeof(int) == 0, "whole words");
    union {
        T value;
        int words[sizeof(T) / sizeof(int)];
    } u;
    u.value = x;
    _Pragma("unroll") for (int i = 0; i < (int)(sizeof(T) / sizeof(int)); i++)
        u.words[i] = W_WAVE_PERMUTE(4 * (w_lane_number() ^ by), u.words[i]);
    return u.value;
}

/* Returns 2 to the power of x, within 2 ULP. Subnormal numbers may be 0. */
#if __has_builtin(__builtin_amdgcn_exp2f)
W_FN float w_exp2_normal(float x) { return __builtin_amdgcn_exp2f(x); }
#else
W_FN float w_exp2_normal(float x) { return __builtin_exp2f(x); }
#endif

/* The words are explained in tensor.cu. W_CORE_K: the first element of k of a lane. */
#define W_CORE_ACROSS 16
#if defined(__gfx908__) || defined(__gfx90a__) || defined(__gfx940__) || defined(__gfx941__) || defined(__gfx942__) || \
    defined(__gfx950__)
#define W_CORE_LANES     64
#define W_CORE_SUMS      4
#define W_CORE_WORDS     2
#define W_CORE_READ      2 /* words of a lane that are read at once */
#define W_CORE_K(lane)   ((lane) / 16 * 4)
#define W_CORE_ROW(l, i) ((l) / 16 * 4 + (i))
#elif defined(__gfx1200__) || defined(__gfx1201__)
#define W_CORE_LANES     32
#define W_CORE_SUMS      8
#define W_CORE_WORDS     4
#define W_CORE_READ      4
#define W_CORE_K(lane)   ((lane) / 16 * 8)
#define W_CORE_ROW(l, i) ((l) / 16 * 8 + (i))
#else
#define W_CORE_LANES     32
#define W_CORE_SUMS      8
#define W_CORE_WORDS     8
#define W_CORE_READ      4
#define W_CORE_K(lane)   0
#define W_CORE_ROW(l, i) ((i) * 2 + (l) / 16)
#endif
/* The compiler would read the fragments of all steps first, which needs too many registers. Older compilers cannot be
 * told. */
#if __has_builtin(__builtin_amdgcn_sched_barrier)
#define W_CORE_NEXT() __builtin_amdgcn_sched_barrier(0)
#else
#define W_CORE_NEXT() (void)0
#endif
/* Registers for two wavefronts of a SIMD unit: one multiplies while the other one waits. gfx908 has too few. */
#if W_CORE_LANES == 64 && !defined(__gfx908__)
#ifndef W_TWO_WAVES
#define W_TWO_WAVES __attribute__((amdgpu_waves_per_eu(2)))
#endif
#undef W_ENTRY_ITEMS
#define W_ENTRY_ITEMS(x, y, z) __launch_bounds__((x) * (y) * (z)) W_TWO_WAVES
#endif
/* Returns x. The compiler computes anew what follows from it. Otherwise it would keep the addresses of all fragments in
 * registers during a loop. */
#ifndef W_CORE_ANEW
#define W_CORE_ANEW(x) __asm__ volatile("" : "+v"(x))
#endif
W_FN int w_core_anew(int x) {
    W_CORE_ANEW(x);
    return x;
}
W_FN int w_core_row(int lane, int i) { return W_CORE_ROW(lane, i); }
W_FN int w_core_column(int lane, int i) { return lane % 16; }

/* ---- local memory ---- */

#define W_NEAR __attribute__((address_space(3)))
typedef W_NEAR char *w_address;
W_FN w_address w_local_at(const void *p) { return (w_address)p; }
template <class T> W_FN T *w_local(w_address at) { return (T *)(W_NEAR T *)at; }

/* Reads W_CORE_READ words. */
struct alignas(4 * W_CORE_READ) w_core_words {
    uint each[W_CORE_READ];
};
W_FN void w_core_read(uint *to, w_address at) {
    const w_core_words words = *w_local<const w_core_words>(at);
    _Pragma("unroll") for (int i = 0; i < W_CORE_READ; i++) to[i] = words.each[i];
}
/* Reads an element from each of two addresses, the first one to the low half. */
W_FN uint w_core_pair(w_address low, w_address high) {
    typedef ushort pair __attribute__((vector_size(4))); /* loads can fill its halves */
    return w_same_bits<uint>(pair{*w_local<const ushort>(low), *w_local<const ushort>(high)});
}

/* ---- d += a b, summed in f32 ---- */

typedef float w_core_sums __attribute__((vector_size(4 * W_CORE_SUMS)));
typedef _Float16 w_core_f16 __attribute__((vector_size(4 * W_CORE_WORDS)));
typedef short w_core_bf16 __attribute__((vector_size(4 * W_CORE_WORDS))); /* their bits */

template <class V> W_FN V w_core_of(const uint *words) {
    union {
        uint words[sizeof(V) / 4];
        V all;
    } u;
    _Pragma("unroll") for (int i = 0; i < (int)(sizeof(V) / 4); i++) u.words[i] = words[i];
    return u.all;
}

#if W_CORE_LANES == 64
#define W_CORE_F16(a, b, d)  __builtin_amdgcn_mfma_f32_16x16x16f16(a, b, d, 0, 0, 0)
#define W_CORE_BF16(a, b, d) __builtin_amdgcn_mfma_f32_16x16x16bf16_1k(a, b, d, 0, 0, 0) /* not gfx908 */
#elif W_CORE_WORDS == 4
#define W_CORE_F16(a, b, d)  __builtin_amdgcn_wmma_f32_16x16x16_f16_w32_gfx12(a, b, d)
#define W_CORE_BF16(a, b, d) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32_gfx12(a, b, d)
#else
#define W_CORE_F16(a, b, d)  __builtin_amdgcn_wmma_f32_16x16x16_f16_w32(a, b, d)
#define W_CORE_BF16(a, b, d) __builtin_amdgcn_wmma_f32_16x16x16_bf16_w32(a, b, d)
#endif

W_FN void w_core_put(float *d, w_core_sums sums) {
    _Pragma("unroll") for (int i = 0; i < W_CORE_SUMS; i++) d[i] = sums[i];
}
W_FN void w_mma_f16(float *d, const uint *a, const uint *b) {
    const w_core_sums sums = w_core_of<w_core_sums>((const uint *)d);
    w_core_put(d, W_CORE_F16(w_core_of<w_core_f16>(a), w_core_of<w_core_f16>(b), sums));
}
W_FN void w_mma_bf16(float *d, const uint *a, const uint *b) {
    w_core_sums sums = w_core_of<w_core_sums>((const uint *)d);
#if defined(__gfx908__)
    typedef short pair __attribute__((vector_size(4)));
    _Pragma("unroll") for (int i = 0; i < 2; i++)
        sums = __builtin_amdgcn_mfma_f32_16x16x8bf16(w_core_of<pair>(a + i), w_core_of<pair>(b + i), sums, 0, 0, 0);
#else
    sums = W_CORE_BF16(w_core_of<w_core_bf16>(a), w_core_of<w_core_bf16>(b), sums);
#endif
    w_core_put(d, sums);
}

/* ---- copies ---- */

/* Copies go to registers of the work-item, which stores them later: so a matmul need not wait for them. */
#define W_COPY_HELD
typedef char *w_copy_place;
W_FN void w_copy_put(w_copy_place to, uint4 x) { *(uint4 *)to = x; }
template <class T> W_FN void w_copy_now(w_copy_place to, const void *from, int count) {
    union {
        T all;
        ushort each[sizeof(T) / 2];
    } u = {};
    if (count >= (int)sizeof(T))
        u.all = *(const T *)from;
    else
        _Pragma("unroll") for (int i = 0; i < (int)sizeof(T) / 2; i++)
            if (2 * i < count) u.each[i] = ((const ushort *)from)[i];
    *(T *)to = u.all;
}
W_FN void w_copy16(w_copy_place to, const void *from, int count) { w_copy_now<uint4>(to, from, count); }
W_FN void w_copy8(w_copy_place to, const void *from, int count) { w_copy_now<ulong>(to, from, count); }
W_FN void w_copy4(w_copy_place to, const void *from, int count) { w_copy_now<uint>(to, from, count); }
W_FN void w_copy_group() {}
template <int open> W_FN void w_copy_wait() {}
