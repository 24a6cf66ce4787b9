/* The PTX instructions that prelude/tensor.cu uses, for the host's compiler. Each lane of a warp shows its
 * operands to the others, and takes the results that the PTX ISA assigns to it ("Matrix fragments for
 * mma.m16n8k16", "ldmatrix"). Asynchronous copies are done when somebody waits for them, and not before. Read
 * next: device.h, which includes this file. */
/* ---- shared memory by addresses ---- */

/* Static shared memory has addresses relative to a variable of the module; dynamic shared memory has its own
 * range. */
alignas(1024) static char fake_shared_base[1024] FAKE_DATA = {1};
static constexpr unsigned fake_asked_for = 1u << 30, fake_asked_most = FAKE_SHARED_MOST;
static inline unsigned long __cvta_generic_to_shared(const void *p) {
    const unsigned long asked = (unsigned long)((const char *)p - (const char *)fake_now->shared);
    return asked < fake_asked_most ? fake_asked_for + asked : (unsigned)((const char *)p - fake_shared_base);
}
static inline void *__cvta_shared_to_generic(unsigned long at) {
    const unsigned long asked = at - fake_asked_for;
    return asked < fake_asked_most ? (char *)fake_now->shared + asked : fake_shared_base + (int)(unsigned)at;
}

static inline char *fake_local(unsigned at, int multiple, const char *what) {
    char *p = (char *)__cvta_shared_to_generic(at);
    if ((unsigned long)p % (unsigned long)multiple) fake_wrong(what);
    return p;
}

/* ---- matrices from shared memory ---- */

static inline void fake_matrices(unsigned *to, int count, bool turned, unsigned row) {
    const char *const mine = fake_local(row, 16, "ldmatrix: a row that is not aligned");
    const fake_shown all(mine);
    const int lane = fake_lane();
    for (int j = 0; j < count; j++) {
        unsigned short pair[2];
        for (int i = 0; i < 2; i++) {
            const int r = turned ? lane % 4 * 2 + i : lane / 4, column = turned ? lane / 4 : lane % 4 * 2 + i;
            const char *const from = all.of<char>(8 * j + r) + 2 * column;
            fake_touch(from, 2, FAKE_READ);
            __builtin_memcpy(&pair[i], from, 2);
        }
        __builtin_memcpy(&to[j], pair, 4);
    }
}
static inline void fake_asm_ldmatrix_sync_aligned_m8n8_x4_shared_b16(unsigned &r0, unsigned &r1, unsigned &r2,
                                                                     unsigned &r3, unsigned row) {
    unsigned to[4];
    fake_matrices(to, 4, false, row);
    r0 = to[0], r1 = to[1], r2 = to[2], r3 = to[3];
}
static inline void fake_asm_ldmatrix_sync_aligned_m8n8_x4_trans_shared_b16(unsigned &r0, unsigned &r1,
                                                                           unsigned &r2, unsigned &r3,
                                                                           unsigned row) {
    unsigned to[4];
    fake_matrices(to, 4, true, row);
    r0 = to[0], r1 = to[1], r2 = to[2], r3 = to[3];
}

/* ---- matmuls ---- */

/* The numbers in a register. The first number is in the low half. */
struct fake_bf16 {
    static constexpr int count = 2;
    static void read(unsigned word, float *to) {
        for (int i = 0; i < 2; i++) {
            const unsigned bits = word >> 16 * i << 16;
            __builtin_memcpy(&to[i], &bits, 4);
        }
    }
};
struct fake_f16 {
    static constexpr int count = 2;
    static void read(unsigned word, float *to) {
        _Float16 x[2];
        __builtin_memcpy(x, &word, 4);
        to[0] = (float)x[0], to[1] = (float)x[1];
    }
};
/* TF32: the last 13 bits are ignored. */
struct fake_tf32 {
    static constexpr int count = 1;
    static void read(unsigned word, float *to) {
        word &= ~0x1fffu;
        __builtin_memcpy(to, &word, 4);
    }
};

struct fake_operands {
    float a[4][2], b[2][2];
};

/* m16n8kK. Words hold halves of K / 2 columns of a and rows of b. A word of a belongs to row lane / 4, a word
 * with an odd index to the row 8 further on. Element k of a half is number k % count of lane k / count of
 * four lanes. */
template <class F>
static inline void fake_mma(float *d, int halves, const unsigned (&a)[4], const unsigned (&b)[2]) {
    fake_operands mine;
    for (int i = 0; i < 4; i++) F::read(a[i], mine.a[i]);
    for (int i = 0; i < 2; i++) F::read(b[i], mine.b[i]);
    const fake_shown all(&mine);
    const int lane = fake_lane();
    for (int half = 0; half < halves; half++)
        for (int k = 0; k < 4; k++) { /* four lanes, each with `count` numbers */
            const fake_operands *const of_a = all.of<fake_operands>(lane / 4 * 4 + k);
            for (int i = 0; i < 4; i++) {
                const int column = lane % 4 * 2 + i % 2;
                const float *const x = of_a->a[2 * half + i / 2];
                const float *const y = all.of<fake_operands>(column * 4 + k)->b[half];
                for (int n = 0; n < F::count; n++) d[i] = fmaf(x[n], y[n], d[i]);
            }
        }
}

#define FAKE_MMA(name, format)                                                                               \
    static inline void fake_asm_mma_sync_aligned_##name(float &d0, float &d1, float &d2, float &d3,          \
                                                        unsigned a0, unsigned a1, unsigned a2, unsigned a3,  \
                                                        unsigned b0, unsigned b1) {                          \
        float d[4] = {d0, d1, d2, d3};                                                                       \
        fake_mma<format>(d, 2, {a0, a1, a2, a3}, {b0, b1});                                                  \
        d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];                                                          \
    }
FAKE_MMA(m16n8k16_row_col_f32_bf16_bf16_f32, fake_bf16)
FAKE_MMA(m16n8k16_row_col_f32_f16_f16_f32, fake_f16)
FAKE_MMA(m16n8k8_row_col_f32_tf32_tf32_f32, fake_tf32)
static inline void fake_asm_mma_sync_aligned_m16n8k8_row_col_f32_f16_f16_f32(float &d0, float &d1, float &d2,
                                                                             float &d3, unsigned a0,
                                                                             unsigned a1, unsigned b0) {
    float d[4] = {d0, d1, d2, d3};
    fake_mma<fake_f16>(d, 1, {a0, a1, 0, 0}, {b0, 0});
    d0 = d[0], d1 = d[1], d2 = d[2], d3 = d[3];
}

/* ---- numbers ---- */

static inline unsigned fake_to_bf16(float x) {
    unsigned bits;
    __builtin_memcpy(&bits, &x, 4);
    return x != x ? 0x7fffu : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
static inline void fake_asm_max_NaN_f32(float &to, float x, float y) {
    to = x != x || y != y ? __builtin_nanf("") : x > y || (x == y && !__builtin_signbit(x)) ? x : y;
}
static inline void fake_asm_min_NaN_f32(float &to, float x, float y) {
    to = x != x || y != y ? __builtin_nanf("") : x < y || (x == y && __builtin_signbit(x)) ? x : y;
}
static inline void fake_asm_cvt_rn_bf16x2_f32(unsigned &to, float high, float low) {
    to = fake_to_bf16(low) | fake_to_bf16(high) << 16;
}
static inline void fake_asm_cvt_rna_tf32_f32(unsigned &to, float x) {
    __builtin_memcpy(&to, &x, 4);
    to = x != x ? 0x7fffffffu : (to & 0x7f800000u) == 0x7f800000u ? to : (to + 0x1000) & ~0x1fffu;
}

static inline void fake_asm_rcp_approx_ftz_f32(float &to, float x) { to = 1 / x; }
static inline void fake_asm_ex2_approx_f32(float &to, float x) { to = (float)__builtin_exp2((double)x); }
static inline void fake_asm_ex2_approx_ftz_f32(float &to, float x) {
    const float y = exp2f(x);
    to = y < 0x1p-126f ? 0 : y; /* NaN stays NaN */
}

/* ---- asynchronous copies ---- */

static inline void fake_copy(unsigned to, const void *from, int bytes, int count) {
    fake_copies *const c = fake_now->copies;
    char *const at = fake_local(to, bytes, "cp.async: a place in local memory that is not aligned");
    if ((unsigned long)from % (unsigned long)bytes)
        fake_wrong("cp.async: a place in memory that is not aligned");
    if (count < 0 || count > bytes) fake_wrong("cp.async: reads more than it copies");
    if (c->count == FAKE_COPIES)
        fake_wrong("cp.async: too many copies that nobody waits for");
    else
        c->list[c->count++] = {at, from, bytes, count, c->groups};
    fake_touch(at, (unsigned)bytes, FAKE_WRITE);
    __builtin_memset(at, 0xff, (unsigned long)bytes); /* garbage until the wait */
}
static inline void fake_asm_cp_async_cg_shared_global(unsigned to, const void *from, int bytes, int count) {
    if (bytes != 16) fake_wrong("cp.async.cg: of 16 bytes alone");
    fake_copy(to, from, bytes, count);
}
static inline void fake_asm_cp_async_ca_shared_global(unsigned to, const void *from, int bytes, int count) {
    fake_copy(to, from, bytes, count);
}
static inline void fake_asm_cp_async_commit_group() { fake_now->copies->groups++; }
static inline void fake_asm_cp_async_wait_group(int open) {
    fake_copies *const c = fake_now->copies;
    int kept = 0;
    for (int i = 0; i < c->count; i++) {
        const fake_later &l = c->list[i];
        if (l.group >= c->groups - open) {
            c->list[kept++] = l;
            continue;
        }
        if (l.count) fake_touch(l.from, (unsigned)l.count, FAKE_READ);
        fake_touch(l.to, (unsigned)l.bytes, FAKE_WRITE);
        __builtin_memset(l.to, 0, (unsigned long)l.bytes);
        __builtin_memcpy(l.to, l.from, (unsigned long)l.count);
    }
    c->count = kept;
}
