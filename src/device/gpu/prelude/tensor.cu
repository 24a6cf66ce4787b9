/* Tensor cores, for texts of CUDA C++ that ask for WEFT_PRELUDE_TENSOR: matrices from local memory into the registers
 * of a warp, their products, and copies into local memory that wait for nobody. All 32 lanes of a warp call them
 * together. Who holds which element (PTX ISA, mma.m16n8k16; lane = 4 g + t):
 *     a, 16 x 16   a[0]: row g, columns 2t, 2t + 1; a[1]: row g + 8; a[2], a[3]: likewise, 8 columns on
 *     b, 16 x 8    b[0]: rows 2t, 2t + 1 of column g; b[1]: 8 rows on
 *     d, 16 x 8    d[0], d[1]: row g, columns 2t, 2t + 1; d[2], d[3]: row g + 8
 * the first of two in the low half of a word. Of TF32, a word an element: a[0]: (g, t), a[1]: (g + 8, t), a[2], a[3]:
 * 4 columns on; b[0]: (t, g), b[1]: 4 rows on; d as above. From compute capability 8.0 on; what 7.5 has of it, f16,
 * works there as well, with copies that wait. Behind common.cl. Read next: matmul_tensor.cl. */

#define w_warp() __syncwarp() /* what a lane wrote before, the others of its warp read behind it */

/* Where something lies in local memory. */
W_FN uint w_local_at(const void *p) { return (uint)__cvta_generic_to_shared(p); }

/* Four matrices of 8 x 8 elements of 16 bits: lane i brings the place of row i % 8 of matrix i / 8, 16 bytes that lie
 * as such. to[j] is elements 2t and 2t + 1 of row g of matrix j; turned: of column g. */
W_FN void w_ldmatrix4(uint *to, uint row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}
W_FN void w_ldmatrix4_turned(uint *to, uint row) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
                 : "r"(row)
                 : "memory");
}

/* d += a b, summed in f32. */
#if __CUDA_ARCH__ >= 800
W_FN void w_mma_bf16(float *d, const uint *a, const uint *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
W_FN void w_mma_f16(float *d, const uint *a, const uint *b) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
W_FN void w_mma_tf32(float *d, const uint *a, const uint *b) { /* m16n8k8 */
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
                 "{%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
#else
W_FN void w_mma_f16_half(float *d, uint a0, uint a1, uint b) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
                 "{%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a0), "r"(a1), "r"(b));
}
W_FN void w_mma_f16(float *d, const uint *a, const uint *b) {
    w_mma_f16_half(d, a[0], a[1], b[0]);
    w_mma_f16_half(d, a[2], a[3], b[1]);
}
#endif

/* Two numbers rounded to 16 bits, the first in the low half; one rounded to TF32. */
#if __CUDA_ARCH__ >= 800
W_FN uint w_pair_bf16(float low, float high) {
    uint pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
W_FN uint w_tf32(float x) {
    uint bits;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
    return bits;
}
#endif
W_FN uint w_pair_f16(float low, float high) {
    ushort bits[2];
    vstore_half_rte(low, 0, bits);
    vstore_half_rte(high, 1, bits);
    return bits[0] | (uint)bits[1] << 16;
}

/* 2 to the x, to 2 units in the last place; no subnormal numbers. */
W_FN float w_exp2_near(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

/* 16, 8 or 4 bytes from global into local memory, both places multiples of that, of which `count` are read and the
 * others 0. They are there, for the lane itself, after a wait that leaves fewer groups open than were made since. */
#if __CUDA_ARCH__ >= 800
W_FN void w_copy16(uint to, const void *from, int count) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(16), "r"(count) : "memory");
}
W_FN void w_copy8(uint to, const void *from, int count) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(8), "r"(count) : "memory");
}
W_FN void w_copy4(uint to, const void *from, int count) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(4), "r"(count) : "memory");
}
W_FN void w_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int open> W_FN void w_copy_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(open) : "memory"); }
#else
template <class T> W_FN void w_copy_now(uint to, const void *from, int count) {
    union {
        T all;
        ushort each[sizeof(T) / 2];
    } u = {};
    if (count >= (int)sizeof(T))
        u.all = *(const T *)from;
    else
        for (int i = 0; 2 * i < count; i++) u.each[i] = ((const ushort *)from)[i];
    *(T *)__cvta_shared_to_generic(to) = u.all;
}
W_FN void w_copy16(uint to, const void *from, int count) { w_copy_now<uint4>(to, from, count); }
W_FN void w_copy8(uint to, const void *from, int count) { w_copy_now<ulong>(to, from, count); }
W_FN void w_copy4(uint to, const void *from, int count) { w_copy_now<uint>(to, from, count); }
W_FN void w_copy_group() {}
template <int open> W_FN void w_copy_wait() {}
#endif
