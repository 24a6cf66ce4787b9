/* Own products of one floating type for one instruction set: included by gemm_own.c once for float and once
 * for double, which define T, VL (lanes), FN (names), SET1, FMA, LOAD_PART, STORE_PART and SHUFFLES before.
 * No include guard, therefore.
 *
 * Small products read a and b in place, in one kernel's reach at a time; gemm_packed.h has the others. */

typedef T FN(vec) __attribute__((vector_size(VL * sizeof(T))));
typedef T FN(vecu) __attribute__((vector_size(VL * sizeof(T)), aligned(sizeof(T)), may_alias));
#define VEC FN(vec)

static ALWAYS VEC FN(load)(const T *p) { return *(const FN(vecu) *)p; }
static ALWAYS void FN(store)(T *p, VEC v) { *(FN(vecu) *)p = v; }

/* mr rows by nv vectors of c in registers: c = or += a b over k products. `last` is the number of columns
 * of the last vector that exist; part says that it is not full. mr, nv and part are constants where called.
 */
static ALWAYS void FN(micro)(const int mr, const int nv, const bool part, int64_t k, const T *a, int64_t a_m,
                             int64_t a_k, const T *b, int64_t b_k, T *c, int64_t c_m, int64_t last,
                             bool add) {
    VEC acc[ROWS_MAX][VECS_MAX];
    UNROLL for (int i = 0; i < mr; i++) { UNROLL for (int j = 0; j < nv; j++) acc[i][j] = SET1((T)0); }
    for (int64_t p = 0; p < k; p++) {
        VEC bv[VECS_MAX];
        UNROLL for (int j = 0; j < nv; j++) bv[j] =
            part && j == nv - 1 ? LOAD_PART(b + j * VL, last) : FN(load)(b + j * VL);
        UNROLL for (int i = 0; i < mr; i++) {
            VEC av = SET1(a[i * a_m]);
            UNROLL for (int j = 0; j < nv; j++) acc[i][j] = FMA(av, bv[j], acc[i][j]);
        }
        a += a_k;
        b += b_k;
    }
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            T *to = c + i * c_m + j * VL;
            if (part && j == nv - 1) {
                STORE_PART(to, add ? LOAD_PART(to, last) + acc[i][j] : acc[i][j], last);
            } else {
                FN(store)(to, add ? FN(load)(to) + acc[i][j] : acc[i][j]);
            }
        }
    }
}

/* ---- direct: a and b in place ---- */

#define DIRECT(mr, nv)                                                                                       \
    static void FN(direct_##mr##_##nv)(int64_t k, const T *a, int64_t a_m, int64_t a_k, const T *b,          \
                                       int64_t b_k, T *c, int64_t c_m, int64_t last, bool add) {             \
        FN(micro)(mr, nv, false, k, a, a_m, a_k, b, b_k, c, c_m, last, add);                                 \
    }                                                                                                        \
    static void FN(direct_part_##mr##_##nv)(int64_t k, const T *a, int64_t a_m, int64_t a_k, const T *b,     \
                                            int64_t b_k, T *c, int64_t c_m, int64_t last, bool add) {        \
        FN(micro)(mr, nv, true, k, a, a_m, a_k, b, b_k, c, c_m, last, add);                                  \
    }
DIRECT_LIST(DIRECT)
#undef DIRECT

/* By vectors, rows and whether the last vector is partial. */
static const FN(weft_gemm_kernel) FN(direct_table)[DIRECT_VECS + 1][DIRECT_ROWS + 1][2] = {
#define DIRECT(mr, nv) [nv][mr] = {FN(direct_##mr##_##nv), FN(direct_part_##mr##_##nv)},
    DIRECT_LIST(DIRECT)
#undef DIRECT
};

/* The products of kernels that a direct one is made of: noted in `calls` or, where that is NULL, done. b has
 * unit stride along n, k is at most DEPTH. Returns how many they are, above `most` where they do not fit. */
static int64_t FN(direct)(const weft_gemm *g, const T *a, const T *b, T *c, FN(weft_gemm_call) * calls,
                          int64_t most) {
    static const int8_t rows_of[DIRECT_VECS + 1] = DIRECT_ROWS_OF;
    int64_t vecs = (g->n + VL - 1) / VL, spans = (vecs + DIRECT_VECS - 1) / DIRECT_VECS, n = 0;
    for (int64_t v0 = 0; spans > 0; spans--) {
        int64_t nv = (vecs - v0 + spans - 1) / spans, j = v0 * VL, width = g->n - j;
        int64_t last = width < nv * VL ? width - (nv - 1) * VL : VL, rows = rows_of[nv];
        int64_t tiles = (g->m + rows - 1) / rows;
        for (int64_t i = 0; tiles > 0; tiles--, n++) {
            int64_t mr = (g->m - i + tiles - 1) / tiles;
            FN(weft_gemm_call)
            call = {FN(direct_table)[nv][mr][last < VL], i * g->a_m, j, i * g->c_m + j, last};
            i += mr;
            if (calls) {
                if (n < most) calls[n] = call;
                continue;
            }
            call.kernel(g->k, a + call.a, g->a_m, g->a_k, b + call.b, g->b_k, c + call.c, g->c_m, last,
                        g->add);
            if (g->ahead) weft__ask_ahead(g->ahead);
        }
        v0 += nv;
    }
    return n;
}

#include "device/cpu/gemm_packed.h"
#include "device/cpu/gemm_complex.h"

/* ---- the choice ---- */

/* Small enough that packing would cost more than it saves: b fits the first cache, and a long k does not jump
 * from column to column of a. */
static bool FN(is_direct)(const weft_gemm *g) {
    if (g->k > 128 && g->a_k != 1 && g->a_m == 1 && g->m > 1) return false;
    int64_t depth = g->k < DEPTH ? g->k : DEPTH;
    return (g->k <= 256 ? g->n <= 256 : g->n <= 64) && depth * g->n * (int64_t)sizeof(T) <= DIRECT_BYTES;
}

static size_t FN(scratch)(const weft_gemm *g) {
    int64_t elements;
    if (g->k <= 0)
        elements = 0;
    else if (!FN(is_direct)(g))
        elements = FN(packed_scratch)(g);
    else
        elements =
            g->b_n == 1 || g->n == 1 ? 0 : (g->k < DEPTH ? g->k : DEPTH) * weft__ceil_div(g->n, VL) * VL;
    return (size_t)elements * sizeof(T);
}

static void FN(gemm)(const weft_gemm *g, const T *a, const T *b, T *c, void *scratch) {
    if (g->m <= 0 || g->n <= 0) return;
    if (g->k <= 0) {
        if (g->add) return;
        for (int64_t i = 0; i < g->m; i++) memset(c + i * g->c_m, 0, (size_t)g->n * sizeof(T));
    } else if (!FN(is_direct)(g)) {
        FN(packed)(g, a, b, c, scratch);
    } else {
        weft_gemm h = *g;
        int64_t depth = depth_of(g->k);
        for (int64_t p = 0; p < g->k; p += depth, h.add = true) {
            const T *part = b + p * g->b_k;
            h.k = g->k - p < depth ? g->k - p : depth;
            if (g->b_n != 1 && g->n != 1) {
                h.b_k = weft__ceil_div(g->n, VL) * VL;
                h.b_n = 1;
                FN(pack)(scratch, h.b_k, part, g->b_n, g->b_k, g->n, h.k);
                part = scratch;
            }
            for (int64_t i = 0; i < g->m; i += IN_PLACE_ROWS) {
                h.m = g->m - i < IN_PLACE_ROWS ? g->m - i : IN_PLACE_ROWS;
                FN(direct)(&h, a + i * g->a_m + p * g->a_k, part, c + i * g->c_m, NULL, 0);
            }
        }
    }
}

/* How a product of one depth is done: see weft_gemm_own. */
static ALWAYS int64_t FN(calls)(weft_gemm *g, FN(weft_gemm_call) * calls, int64_t most) {
    if (g->m <= 0 || g->n <= 0 || g->k <= 0 || g->k > DEPTH || !FN(is_direct)(g)) return 0;
    if (g->b_n != 1 && g->n != 1) g->b_k = weft__ceil_div(g->n, VL) * VL;
    int64_t n = FN(direct)(g, NULL, NULL, NULL, calls, most);
    return n <= most ? n : 0;
}

#undef VEC
