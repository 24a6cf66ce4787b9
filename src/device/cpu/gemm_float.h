/* Own products of one floating type for one instruction set: included by gemm_own.c once for float and once
 * for double, which define T, VL (lanes), FN (names), SET1, FMA, LOAD_PART, STORE_PART and SHUFFLES before.
 * No include guard, therefore.
 *
 * The scheme is Goto and van de Geijn's ("Anatomy of high-performance matrix multiplication", 2008) with less
 * packing: a panel of b, packed, stays in the first cache while the innermost kernel passes all rows of a,
 * which it reads in place where they lie row by row. Small products pack nothing. */

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

/* c (m, columns of the panel) = or += a b for a panel of b: nv vectors, the last of `last` columns. At most
 * `rows` rows at a time, as even as can be. Where a_k is 0, a is packed tile by tile. */
static void FN(panel)(int64_t m, int64_t rows, int64_t k, const T *a, int64_t a_m, int64_t a_k, const T *b,
                      int64_t b_k, int64_t nv, int64_t last, T *c, int64_t c_m, bool add) {
    int64_t tiles = (m + rows - 1) / rows, i = 0;
    for (int64_t r = 0; r < tiles; r++) {
        int64_t mr = (m - i + (tiles - r) - 1) / (tiles - r);
        FN(direct_table)
        [nv][mr][last < VL](k, a + i * (a_k ? a_m : k), a_k ? a_m : 1, a_k ? a_k : mr, b, b_k, c + i * c_m,
                            c_m, last, add);
        i += mr;
    }
}

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

/* ---- packed ---- */

/* VL vectors, transposed in log2(VL) rounds of interleaving the first half with the second. */
static ALWAYS void FN(transpose)(VEC *v) {
    VEC w[VL];
    UNROLL for (int round = 1; round < VL; round *= 2) {
        UNROLL for (int i = 0; i < VL / 2; i++) {
            w[2 * i] = INTERLEAVE_LOW(v[i], v[i + VL / 2]);
            w[2 * i + 1] = INTERLEAVE_HIGH(v[i], v[i + VL / 2]);
        }
        UNROLL for (int i = 0; i < VL; i++) v[i] = w[i];
    }
}

/* to[p * width + i] = from[i * stride + p] for i < rows, p < k; i from rows to width, whole vectors, gets 0.
 */
static void FN(pack_turned)(T *to, int64_t width, const T *from, int64_t stride, int64_t rows, int64_t k) {
    for (int64_t i0 = 0; i0 < width; i0 += VL) {
        int64_t have = rows - i0 < VL ? rows - i0 : VL;
        for (int64_t p0 = 0; p0 < k; p0 += VL) {
            int64_t depth = k - p0 < VL ? k - p0 : VL;
            VEC v[VL];
            for (int i = 0; i < VL; i++) {
                const T *row = from + (i0 + i) * stride + p0;
                v[i] = i >= have ? SET1((T)0) : depth == VL ? FN(load)(row) : LOAD_PART(row, depth);
            }
            FN(transpose)(v);
            for (int p = 0; p < depth; p++) FN(store)(to + (p0 + p) * width + i0, v[p]);
        }
    }
}

/* to[p * width + i] = from[p * stride + i] for i < rows, 0 up to width. */
static void FN(pack_straight)(T *to, int64_t width, const T *from, int64_t stride, int64_t rows, int64_t k) {
    for (int64_t p = 0; p < k; p++) {
        const T *row = from + p * stride;
        T *at = to + p * width;
        int64_t i = 0;
        for (; i + VL <= rows; i += VL) FN(store)(at + i, FN(load)(row + i));
        for (; i < rows; i++) at[i] = row[i];
        for (; i < width; i++) at[i] = 0;
    }
}

/* Element (i, p) of the panel lies at from[i * s_i + p * s_k]. */
static void FN(pack)(T *to, int64_t width, const T *from, int64_t s_i, int64_t s_k, int64_t rows, int64_t k) {
    if (s_i == 1) {
        FN(pack_straight)(to, width, from, s_k, rows, k);
    } else if (s_k == 1) {
        FN(pack_turned)(to, width, from, s_i, rows, k);
    } else {
        for (int64_t p = 0; p < k; p++)
            for (int64_t i = 0; i < width; i++) to[p * width + i] = i < rows ? from[i * s_i + p * s_k] : 0;
    }
}

/* A block (m, k) of a with unit stride along m, tile by tile as the kernels read it; two full tiles at a
 * time, because they share the cache lines of a. */
static void FN(pack_a)(T *to, const T *a, int64_t a_k, int64_t m, int64_t k) {
    int64_t tiles = (m + TILE_ROWS - 1) / TILE_ROWS, i = 0;
    for (int64_t r = 0; r < tiles;) {
        int64_t mr = (m - i + (tiles - r) - 1) / (tiles - r);
        T *at = to + i * k;
        const T *from = a + i;
        if (m - i >= 2 * TILE_ROWS && (m - i) / (tiles - r) == TILE_ROWS) {
            T *next = at + TILE_ROWS * k;
            for (int64_t p = 0; p < k; p++, from += a_k) {
                memcpy(at + p * TILE_ROWS, from, TILE_ROWS * sizeof(T));
                memcpy(next + p * TILE_ROWS, from + TILE_ROWS, TILE_ROWS * sizeof(T));
            }
            i += 2 * TILE_ROWS;
            r += 2;
            continue;
        }
        for (int64_t p = 0; p < k; p++, from += a_k)
            for (int64_t x = 0; x < mr; x++) at[p * mr + x] = from[x];
        i += mr;
        r++;
    }
}

/* Rows of b stay in place where few rows of a use them, or where they lie close enough not to evict each
 * other. */
static bool FN(packs_b)(const weft_gemm *g) { return g->b_n != 1 || (g->m >= 128 && g->b_k >= 256); }

/* Columns of a far apart are gathered, rows are read where they lie. */
static bool FN(packs_a)(const weft_gemm *g) { return g->a_k != 1 && g->a_m == 1 && g->m > 1; }

/* One block (mc, kc) of a times `cols` columns of b, whose panels are packed with the first rows of a. */
static void FN(block)(const weft_gemm *g, bool first, int64_t cols, const T *a, int64_t a_m, int64_t a_k,
                      const T *b, T *pack_b, T *c) {
    int64_t vecs = (cols + VL - 1) / VL, tiles = (vecs + TILE_VECS - 1) / TILE_VECS, v0 = 0;
    bool copy = FN(packs_b)(g);
    for (int64_t t = 0; t < tiles; t++) {
        int64_t nv = (vecs - v0 + (tiles - t) - 1) / (tiles - t), j = v0 * VL, b_k = g->b_k;
        int64_t width = cols - j < nv * VL ? cols - j : nv * VL, last = width - (nv - 1) * VL;
        const T *panel = b + j * g->b_n;
        if (copy) {
            b_k = nv * VL;
            if (first) FN(pack)(pack_b + j * g->k, b_k, panel, g->b_n, g->b_k, width, g->k);
            panel = pack_b + j * g->k;
        }
        FN(panel)(g->m, TILE_ROWS, g->k, a, a_m, a_k, panel, b_k, nv, last, c + j, g->c_m, g->add);
        v0 += nv;
    }
}

static void FN(packed)(const weft_gemm *g, const T *a, const T *b, T *c, T *scratch) {
    int64_t depths = (g->k + DEPTH - 1) / DEPTH, depth = (g->k + depths - 1) / depths;
    int64_t spans = (g->n + COLUMNS - 1) / COLUMNS, span = ((g->n + spans - 1) / spans + VL - 1) / VL * VL;
    T *pack_b = scratch, *pack_a = scratch + span * depth;
    for (int64_t j = 0; j < g->n; j += span)
        for (int64_t p = 0; p < g->k; p += depth)
            for (int64_t i = 0; i < g->m; i += BLOCK_ROWS) {
                weft_gemm h = *g;
                h.m = g->m - i < BLOCK_ROWS ? g->m - i : BLOCK_ROWS;
                h.k = g->k - p < depth ? g->k - p : depth;
                h.add = g->add || p > 0;
                const T *from = a + i * g->a_m + p * g->a_k;
                bool copy = FN(packs_a)(&h);
                if (copy) FN(pack_a)(pack_a, from, g->a_k, h.m, h.k);
                FN(block)
                (&h, i == 0, g->n - j < span ? g->n - j : span, copy ? pack_a : from, g->a_m,
                 copy ? 0 : g->a_k, b + j * g->b_n + p * g->b_k, pack_b, c + i * g->c_m + j);
            }
}

/* Small enough that packing would cost more than it saves: b fits the first cache, and a long k does not jump
 * from column to column of a. */
static bool FN(is_direct)(const weft_gemm *g) {
    int64_t depth = g->k < DEPTH ? g->k : DEPTH;
    if (g->k > DEPTH / 2 && FN(packs_a)(g)) return false;
    return (g->k <= DEPTH ? g->n <= 256 : g->n <= 64) && depth * g->n * (int64_t)sizeof(T) <= DIRECT_BYTES;
}

static size_t FN(scratch)(const weft_gemm *g) {
    int64_t depth = g->k < DEPTH ? g->k : DEPTH, elements;
    if (FN(is_direct)(g)) {
        elements = g->b_n == 1 || g->n == 1 ? 0 : depth * ((g->n + VL - 1) / VL * VL);
    } else {
        int64_t cols = g->n < COLUMNS ? g->n : COLUMNS, rows = g->m < BLOCK_ROWS ? g->m : BLOCK_ROWS;
        elements = depth * ((cols + VL - 1) / VL * VL + rows);
    }
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
        int64_t depths = (g->k + DEPTH - 1) / DEPTH, depth = (g->k + depths - 1) / depths;
        for (int64_t p = 0; p < g->k; p += depth, h.add = true) {
            const T *part = b + p * g->b_k;
            h.k = g->k - p < depth ? g->k - p : depth;
            if (g->b_n != 1 && g->n != 1) {
                h.b_k = (g->n + VL - 1) / VL * VL;
                h.b_n = 1;
                FN(pack)(scratch, h.b_k, part, g->b_n, g->b_k, g->n, h.k);
                part = scratch;
            }
            FN(direct)(&h, a + p * g->a_k, part, c, NULL, 0);
        }
    }
}

/* How a product of one depth is done: see weft_gemm_own. */
static ALWAYS int64_t FN(calls)(weft_gemm *g, FN(weft_gemm_call) * calls, int64_t most) {
    if (g->m <= 0 || g->n <= 0 || g->k <= 0 || g->k > DEPTH || !FN(is_direct)(g)) return 0;
    if (g->b_n != 1 && g->n != 1) g->b_k = (g->n + VL - 1) / VL * VL;
    int64_t n = FN(direct)(g, NULL, NULL, NULL, calls, most);
    return n <= most ? n : 0;
}

#undef VEC
