/* Own products of packed operands, for one floating type and one instruction set: included by gemm_float.h,
 * whose names it uses. No include guard, therefore.
 *
 * The scheme is that of Goto and van de Geijn ("Anatomy of high-performance matrix multiplication", 2008) in
 * the form of Van Zee and van de Geijn ("BLIS", 2015), turned by 90 degrees since c lies row by row: a block
 * of b (DEPTH, COLUMNS) fills the second cache as panels of TILE_VECS vectors; rows of a are packed in tiles,
 * each of which passes all panels from the first cache, while the panels stream by, fetched ahead. Packing
 * makes every operand one stream of neighbours, whatever the layout, without misses of the TLB and without
 * rows that evict each other. An element's sum is cut along k as k alone says, so that neither the cut into
 * tasks nor the choice between these and direct products changes a bit. */

/* ---- the kernel ---- */

/* n products more of TILE_STEP packed rows, mr of them used, and packed nv vectors. */
static ALWAYS void FN(steps)(const int mr, const int nv, int64_t n, VEC acc[ROWS_MAX][VECS_MAX], const T *a,
                             const T *b) {
    for (int64_t p = 0; p < n; p++) {
        VEC bv[VECS_MAX];
        UNROLL for (int j = 0; j < nv; j++) {
            bv[j] = FN(load)(b + j * VL);
            if (j * VECTOR_BYTES % 64 == 0) __builtin_prefetch(b + (B_AHEAD * nv + j) * VL);
        }
        UNROLL for (int i = 0; i < mr; i++) {
            VEC av = SET1(a[i]);
            UNROLL for (int j = 0; j < nv; j++) acc[i][j] = FMA(av, bv[j], acc[i][j]);
        }
        a += TILE_STEP;
        b += nv * VL;
    }
}

/* mr rows by nv vectors of c = or += packed a times packed b; of the last vector `last` columns exist. The
 * rows of c are fetched one by one before the sum ends: all at once would hold up the panel's. */
static ALWAYS void FN(tile)(const int mr, const int nv, int64_t k, const T *a, const T *b, T *c, int64_t c_m,
                            int64_t last, bool add) {
    VEC acc[ROWS_MAX][VECS_MAX];
    UNROLL for (int i = 0; i < mr; i++) { UNROLL for (int j = 0; j < nv; j++) acc[i][j] = SET1((T)0); }
    int64_t part = k / mr < C_AHEAD ? k / mr : C_AHEAD, n = k - part * mr;
    FN(steps)(mr, nv, n, acc, a, b);
    for (int i = 0; i < mr; i++, n += part) {
        UNROLL for (int j = 0; j < nv; j++) __builtin_prefetch(c + i * c_m + j * VL, 1);
        FN(steps)(mr, nv, part, acc, a + n * TILE_STEP, b + n * nv * VL);
    }
    UNROLL for (int i = 0; i < mr; i++, c += c_m) {
        UNROLL for (int j = 0; j < nv; j++) {
            T *to = c + j * VL;
            if (j == nv - 1 && last < VL)
                STORE_PART(to, add ? LOAD_PART(to, last) + acc[i][j] : acc[i][j], last);
            else
                FN(store)(to, add ? FN(load)(to) + acc[i][j] : acc[i][j]);
        }
    }
}

typedef void (*FN(tile_kernel))(int64_t k, const T *a, const T *b, T *c, int64_t c_m, int64_t last, bool add);

#define TILE(mr, nv)                                                                                         \
    static void FN(tile_##mr##_##nv)(int64_t k, const T *a, const T *b, T *c, int64_t c_m, int64_t last,     \
                                     bool add) {                                                             \
        FN(tile)(mr, nv, k, a, b, c, c_m, last, add);                                                        \
    }
TILE_LIST(TILE)
#undef TILE

static const FN(tile_kernel) FN(tile_table)[TILE_VECS + 1][TILE_ROWS + 1] = {
#define TILE(mr, nv) [nv][mr] = FN(tile_##mr##_##nv),
    TILE_LIST(TILE)
#undef TILE
};

/* ---- packing ---- */

/* Vectors read as one row of elements x[count][VL] become x[VL][count]: each of log2(count) rounds
 * interleaves the first half with the second. */
static ALWAYS void FN(turn)(VEC *v, const int count) {
    VEC w[VL > TILE_STEP ? VL : TILE_STEP];
    UNROLL for (int round = 1; round < count; round *= 2) {
        UNROLL for (int i = 0; i < count / 2; i++) {
            w[2 * i] = INTERLEAVE_LOW(v[i], v[i + count / 2]);
            w[2 * i + 1] = INTERLEAVE_HIGH(v[i], v[i + count / 2]);
        }
        UNROLL for (int i = 0; i < count; i++) v[i] = w[i];
    }
}

/* to[p * width + i] = from[i * stride + p] for i < rows, p < k; i from rows to width, whole vectors, gets 0.
 */
static void FN(pack_turned)(T *to, int64_t width, const T *from, int64_t stride, int64_t rows, int64_t k) {
    for (int64_t i0 = 0; i0 < width; i0 += VL) {
        for (int64_t p0 = 0; p0 < k; p0 += VL) {
            int64_t depth = k - p0 < VL ? k - p0 : VL;
            VEC v[VL];
            for (int i = 0; i < VL; i++) {
                const T *row = from + (i0 + i) * stride + p0;
                v[i] = i0 + i >= rows ? SET1((T)0) : depth == VL ? FN(load)(row) : LOAD_PART(row, depth);
            }
            FN(turn)(v, VL);
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

/* A tile of `rows` rows of a; k need not be whole vectors, but `to` has room for them. */
static void FN(pack_tile)(T *to, const T *from, int64_t stride, int64_t rows, int64_t k) {
    for (int64_t p = 0; p < k; p += VL, to += VL * TILE_STEP) {
        VEC v[VL > TILE_STEP ? VL : TILE_STEP];
        UNROLL for (int i = 0; i < TILE_STEP; i++) {
            const T *row = from + i * stride + p;
            v[i] = i >= rows ? SET1((T)0) : k - p >= VL ? FN(load)(row) : LOAD_PART(row, k - p);
        }
        FN(turn)(v, TILE_STEP);
        UNROLL for (int i = 0; i < TILE_STEP; i++) FN(store)(to + i * VL, v[i]);
    }
}

/* Panels of b of g->n columns, one behind the other; what lies row by row is read so. */
static void FN(pack_b)(T *to, const weft_gemm *g, const T *b) {
    weft_split panels = split_of(weft__ceil_div(g->n, VL), TILE_VECS);
    if (g->b_n != 1) {
        for (int64_t t = 0; t < panels.count; t++) {
            int64_t j = split_at(panels, t) * VL, width = split_size(panels, t) * VL, have = g->n - j;
            FN(pack)(to + j * g->k, width, b + j * g->b_n, g->b_n, g->b_k, have < width ? have : width, g->k);
        }
        return;
    }
    for (int64_t p = 0; p < g->k; p++, b += g->b_k)
        for (int64_t t = 0, j = 0; t < panels.count; t++) {
            int64_t nv = split_size(panels, t);
            T *at = to + j * g->k + p * nv * VL;
            for (int64_t v = 0; v < nv; v++, j += VL, at += VL) {
                __builtin_prefetch(b + j + PACK_AHEAD * g->b_k);
                FN(store)(at, g->n - j < VL ? LOAD_PART(b + j, g->n - j) : FN(load)(b + j));
            }
        }
}

/* Tiles of a, one behind the other, TILE_STEP elements for each of g->k columns. */
static void FN(pack_a)(T *to, const weft_gemm *g, const T *a) {
    weft_split tiles = split_of(g->m, TILE_ROWS);
    if (g->a_k == 1 || g->a_m != 1) {
        for (int64_t r = 0; r < tiles.count; r++, to += g->k * TILE_STEP) {
            int64_t rows = split_size(tiles, r);
            if (g->a_k == 1)
                FN(pack_tile)(to, a, g->a_m, rows, g->k);
            else
                for (int64_t p = 0; p < g->k; p++)
                    for (int64_t i = 0; i < rows; i++) to[p * TILE_STEP + i] = a[i * g->a_m + p * g->a_k];
            a += rows * g->a_m;
        }
        return;
    }
    for (int64_t p = 0; p < g->k; p++, a += g->a_k) {
        const T *from = a;
        for (int64_t r = 0; r < tiles.count; r++) {
            int64_t rows = split_size(tiles, r);
            T *at = to + (r * g->k + p) * TILE_STEP;
            __builtin_prefetch(from + PACK_AHEAD * g->a_k);
            if (rows == TILE_ROWS)
                memcpy(at, from, TILE_ROWS * sizeof(T));
            else
                for (int64_t i = 0; i < rows; i++) at[i] = from[i];
            from += rows;
        }
    }
}

/* ---- the product ---- */

/* A packed block of a times packed panels of b. */
static void FN(block)(const weft_gemm *g, const T *a, const T *b, T *c) {
    weft_split tiles = split_of(g->m, TILE_ROWS), panels = split_of(weft__ceil_div(g->n, VL), TILE_VECS);
    for (int64_t r = 0; r < tiles.count; r++, a += g->k * TILE_STEP) {
        int64_t mr = split_size(tiles, r);
        for (int64_t t = 0, j = 0; t < panels.count; t++) {
            int64_t nv = split_size(panels, t), last = g->n - j - (nv - 1) * VL;
            FN(tile_table)[nv][mr](g->k, a, b + j * g->k, c + j, g->c_m, last < VL ? last : VL, g->add);
            j += nv * VL;
        }
        c += mr * g->c_m;
    }
}

/* Rows of a in place times packed panels of b. */
static void FN(rows_by_panels)(const weft_gemm *g, const T *a, const T *b, T *c) {
    weft_split tiles = split_of(g->m, TILE_ROWS), panels = split_of(weft__ceil_div(g->n, VL), TILE_VECS);
    for (int64_t t = 0, j = 0; t < panels.count; t++) {
        int64_t nv = split_size(panels, t), last = g->n - j - (nv - 1) * VL;
        for (int64_t r = 0, i = 0; r < tiles.count; r++) {
            int64_t mr = split_size(tiles, r);
            FN(direct_table)
            [nv][mr][last < VL](g->k, a + i * g->a_m, g->a_m, 1, b + j * g->k, nv * VL, c + i * g->c_m + j,
                                g->c_m, last < VL ? last : VL, g->add);
            i += mr;
        }
        j += nv * VL;
    }
}

/* The same with rows of a in place, which is faster where few columns use them. Panels of b are packed with
 * the first rows, unless few rows use them or they lie close enough not to evict each other. */
static void FN(block_in_place)(const weft_gemm *g, bool first, const T *a, const T *b, T *packed_b, T *c) {
    weft_split tiles = split_of(g->m, TILE_ROWS), panels = split_of(weft__ceil_div(g->n, VL), TILE_VECS);
    bool packs_b = g->b_n != 1 || (g->m >= 128 && g->b_k >= 256);
    for (int64_t t = 0, j = 0; t < panels.count; t++) {
        int64_t nv = split_size(panels, t), have = g->n - j, last = have - (nv - 1) * VL, b_k = g->b_k;
        const T *panel = b + j * g->b_n;
        if (packs_b) {
            T *to = packed_b + j * g->k;
            b_k = nv * VL;
            if (first) FN(pack)(to, b_k, panel, g->b_n, g->b_k, have < b_k ? have : b_k, g->k);
            panel = to;
        }
        for (int64_t r = 0, i = 0; r < tiles.count; r++) {
            int64_t mr = split_size(tiles, r);
            FN(direct_table)
            [nv][mr][last < VL](g->k, a + i * g->a_m, g->a_m, 1, panel, b_k, c + i * g->c_m + j, g->c_m, last,
                                g->add);
            i += mr;
        }
        j += nv * VL;
    }
}

static int64_t FN(span)(int64_t n) {
    return weft__ceil_div(weft__ceil_div(n, weft__ceil_div(n, COLUMNS)), VL) * VL;
}

/* How many rows of a turned matrix a, which is stored column by column, are packed at once. Columns are read
 * in runs of that length, so it is as many rows as the second cache has room for, in even blocks. */
static int64_t FN(turned_rows)(int64_t m, int64_t span) {
    const int64_t most = BLOCK_ROWS + COLUMNS - span;
    return weft__ceil_div(weft__ceil_div(m, weft__ceil_div(m, most)), TILE_ROWS) * TILE_ROWS;
}

static void FN(packed)(const weft_gemm *g, const T *a, const T *b, T *c, T *scratch) {
    int64_t depth = depth_of(g->k), span = FN(span)(g->n);
    T *packed_b = scratch, *packed_a = scratch + span * depth;
    bool in_place = g->a_k == 1 && g->n <= IN_PLACE_COLUMNS;
    const int64_t block = in_place ? IN_PLACE_ROWS : g->a_k == 1 ? BLOCK_ROWS : FN(turned_rows)(g->m, span);
    for (int64_t j = 0; j < g->n; j += span)
        for (int64_t p = 0; p < g->k; p += depth) {
            weft_gemm h = *g;
            h.n = g->n - j < span ? g->n - j : span;
            h.k = g->k - p < depth ? g->k - p : depth;
            h.add = g->add || p > 0;
            const T *rows = a + p * g->a_k, *columns = b + j * g->b_n + p * g->b_k;
            if (!in_place) FN(pack_b)(packed_b, &h, columns);
            for (int64_t i = 0; i < g->m; i += block, rows += block * g->a_m) {
                T *to = c + i * g->c_m + j;
                h.m = g->m - i < block ? g->m - i : block;
                if (in_place) {
                    FN(block_in_place)(&h, i == 0, rows, columns, packed_b, to);
                } else {
                    FN(pack_a)(packed_a, &h, rows);
                    FN(block)(&h, packed_a, packed_b, to);
                }
            }
        }
}

/* Elements of scratch for g and whatever is no larger in any dimension. The last tile's last vectors are
 * stored whole. */
static int64_t FN(packed_scratch)(const weft_gemm *g) {
    const int64_t most = BLOCK_ROWS + COLUMNS, rows = g->m < most ? g->m : most;
    const int64_t cols = g->n < COLUMNS ? g->n : COLUMNS;
    return (g->k < DEPTH ? g->k : DEPTH) *
               (weft__ceil_div(cols, VL) * VL + (weft__ceil_div(rows, TILE_ROWS) + 1) * TILE_STEP) +
           TILE_STEP * VL;
}

/* ---- panels that are packed once for many products ---- */

/* Elements that panels of b (k, n) take. */
static int64_t FN(panel_elements)(int64_t k, int64_t n) { return k * weft__ceil_div(n, VL) * VL; }

static void FN(panels_pack)(const weft_gemm *g, const T *b, T *panels) {
    weft_gemm h = *g;
    for (int64_t p = 0, depth = depth_of(g->k > 0 ? g->k : 1); p < g->k; p += depth) {
        h.k = g->k - p < depth ? g->k - p : depth;
        FN(pack_b)(panels + FN(panel_elements)(p, g->n), &h, b + p * g->b_k);
    }
}

/* c = or += rows of a, in place (a_k is 1), times those panels. */
static void FN(panels_product)(const weft_gemm *g, const T *a, const T *panels, T *c) {
    weft_gemm h = *g;
    for (int64_t p = 0, depth = depth_of(g->k > 0 ? g->k : 1); p < g->k; p += depth, h.add = true) {
        h.k = g->k - p < depth ? g->k - p : depth;
        FN(rows_by_panels)(&h, a + p, panels + FN(panel_elements)(p, g->n), c);
    }
}
