/* Tensor cores, for CUDA kernels with WEFT_PRELUDE_TENSOR: loads of matrices from local memory to the registers of a
 * warp, their products, and asynchronous copies to local memory. All 32 lanes of a warp call them together.
 *
 * Fragments, the elements that lane 4 g + t holds (PTX ISA, mma.m16n8k16):
 *
 *     a (16 x 16)            b (16 x 8)        d (16 x 8)
 *     +------+------+        +------+          +-----------+
 *     | a[0] | a[2] | g      | b[0] | 2t       | d[0] d[1] | g
 *     +------+------+        +------+          +-----------+
 *     | a[1] | a[3] | g + 8  | b[1] | 2t + 8   | d[2] d[3] | g + 8
 *     +------+------+        +------+          +-----------+
 *       2t    2t + 8            g                2t  2t + 1
 *
 * - A word of a holds the elements of columns 2t and 2t + 1; a word of b those of rows 2t and 2t + 1. The first one is
 *   in the low half.
 * - TF32 (mma.m16n8k8): a word holds one element. a[0] is (g, t), a[1] is (g + 8, t); a[2] and a[3] are 4 columns
 *   further. b[0] is (t, g), b[1] is 4 rows further. d is the same.
 *
 * Compute capability 8.0 or higher. With 7.5, f16 works, and copies are synchronous. Comes after common.cl.
 * Read next: matmul_tensor.cl. */

#define w_warp() __syncwarp() /* lanes of the warp see what the others wrote before it */

/* Lanes of a warp. Of a fragment: the columns of d, the sums of a lane, and its words of 16 rows of a or columns of b.
 */
#define W_CORE_LANES  32
#define W_CORE_ACROSS 8
#define W_CORE_SUMS   4
#define W_CORE_WORDS  4
#define W_CORE_NEXT() (void)0 /* after each step of k */
/* Return the row and the column of sum i of a lane. */
W_FN int w_core_row(int lane, int i) { return lane / 4 + i / 2 * 8; }
W_FN int w_core_column(int lane, int i) { return lane % 4 * 2 + i % 2; }

/* Returns the x of the lane whose number differs in bit `by`. */
template <class T> W_FN T w_core_near(T x, int by) { return __shfl_xor_sync(~0u, x, by); }

/* Returns x. The compiler of another maker would otherwise keep too much in registers (matrix.cu). */
W_FN int w_core_anew(int x) { return x; }

/* Return an address in local memory, in bytes, and what is there. */
typedef uint w_address;
W_FN w_address w_local_at(const void *p) { return (uint)__cvta_generic_to_shared(p); }
template <class T> W_FN T *w_local(w_address at) { return (T *)__cvta_shared_to_generic(at); }

/* Loads four matrices of 8 x 8 elements of 16 bits. Lane i passes the address of row i % 8 of matrix i / 8, a multiple
 * of 16 bytes. to[j] gets elements 2t and 2t + 1 of row g of matrix j; `turned`: of column g. */
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

/* Rounds two numbers to 16 bits, the first one in the low half; w_tf32 rounds one number to TF32. */
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

typedef w_address w_copy_place; /* where copies go */
W_FN void w_copy_put(w_copy_place to, uint4 x) { *w_local<uint4>(to) = x; }

/* Copy 16, 8 or 4 bytes from global to local memory. Both addresses are multiples of the size. Only `count` bytes are
 * read, and the others become 0. w_copy_group ends a group of copies. After w_copy_wait<n> at most n groups are open,
 * and the lane sees the copies of its closed groups. */
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
