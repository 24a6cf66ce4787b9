/* Own products of complex numbers, pairs of T, for one instruction set: included by gemm_float.h, whose names
 * it uses, once for float and once for double. No include guard, therefore.
 *
 * A row of a counts as two rows of floats, its real and its imaginary parts, and a row of b is a row of pairs
 * as it lies. So the loop of real products (FN(steps) in gemm_packed.h) sums re(a) (re b, im b) and im(a)
 * (re b, im b), as many multiplications as the definition has, of whole vectors, and nothing is packed twice
 * over; where the sums are stored, the second is turned by 90 degrees and added to the first. What is
 * conjugated changes signs of that addition alone. Strides and extents count numbers, of scratch parts. */

#if VL == 16
#define EXCHANGED  1, 0, 3, 2, 5, 4, 7, 6, 9, 8, 11, 10, 13, 12, 15, 14
#define PAIRS_LOW  0, 1, 16, 17, 2, 3, 18, 19, 4, 5, 20, 21, 6, 7, 22, 23
#define PAIRS_HIGH 8, 9, 24, 25, 10, 11, 26, 27, 12, 13, 28, 29, 14, 15, 30, 31
#elif VL == 8
#define EXCHANGED  1, 0, 3, 2, 5, 4, 7, 6
#define PAIRS_LOW  0, 1, 8, 9, 2, 3, 10, 11
#define PAIRS_HIGH 4, 5, 12, 13, 6, 7, 14, 15
#elif VL == 4
#define EXCHANGED  1, 0, 3, 2
#define PAIRS_LOW  0, 1, 4, 5
#define PAIRS_HIGH 2, 3, 6, 7
#else
#define EXCHANGED  1, 0
#define PAIRS_LOW  0, 1
#define PAIRS_HIGH 2, 3
#endif

#define PAIRS      (VL / 2)        /* numbers of a vector */
#define TILE_PAIRS (TILE_STEP / 2) /* from column to column of a packed tile of a */
#define PAIR_ROWS  (TILE_ROWS / 2)
#define PAIR_BLOCK (4 * PAIR_ROWS) /* rows of a packed at once: whole lines of the cache of its columns */

typedef T FN(pair) __attribute__((vector_size(2 * sizeof(T)), aligned(sizeof(T)), may_alias));

static ALWAYS void FN(copy_pair)(T *to, const T *from) { *(FN(pair) *)to = *(const FN(pair) *)from; }

/* A number (re, im) counts as (re, sign im). */
typedef struct FN(signs) {
    VEC straight, turned; /* the sums of the real parts times this, and those of the imaginary, exchanged */
} FN(signs);

static ALWAYS FN(signs) FN(signs_of)(int conj) {
    FN(signs) s;
    const T left = conj & 1 ? -1 : 1, right = conj & 2 ? -1 : 1;
    for (int i = 0; i < VL; i += 2) {
        s.straight[i] = 1, s.straight[i + 1] = right;
        s.turned[i] = -left * right, s.turned[i + 1] = left;
    }
    return s;
}

/* ---- the kernel ---- */

/* `rows` rows by nv vectors of c = or += packed a times packed b; of the last vector `last` parts exist. */
static ALWAYS void FN(pair_tile)(const int rows, const int nv, int64_t k, const T *a, const T *b, T *c,
                                 int64_t c_m, int64_t last, const FN(signs) * signs, bool add) {
    VEC acc[ROWS_MAX][VECS_MAX];
    UNROLL for (int i = 0; i < 2 * rows; i++) { UNROLL for (int j = 0; j < nv; j++) acc[i][j] = SET1((T)0); }
    int64_t part = k / rows < C_AHEAD ? k / rows : C_AHEAD, n = k - part * rows;
    FN(steps)(2 * rows, nv, n, acc, a, b);
    for (int i = 0; i < rows; i++, n += part) {
        UNROLL for (int j = 0; j < nv; j++) __builtin_prefetch(c + i * c_m + j * VL, 1);
        FN(steps)(2 * rows, nv, part, acc, a + n * TILE_STEP, b + n * nv * VL);
    }
    UNROLL for (int i = 0; i < rows; i++, c += c_m) {
        UNROLL for (int j = 0; j < nv; j++) {
            T *to = c + j * VL;
            const bool whole = j < nv - 1 || last == VL;
            VEC sum = acc[2 * i][j] * signs->straight;
            sum = FMA(__builtin_shufflevector(acc[2 * i + 1][j], acc[2 * i + 1][j], EXCHANGED), signs->turned,
                      sum);
            if (add) sum = (whole ? FN(load)(to) : LOAD_PART(to, last)) + sum;
            if (whole)
                FN(store)(to, sum);
            else
                STORE_PART(to, sum, last);
        }
    }
}

typedef void (*FN(pair_kernel))(int64_t k, const T *a, const T *b, T *c, int64_t c_m, int64_t last,
                                const FN(signs) * signs, bool add);

#define PAIR_TILE(rows, nv)                                                                                  \
    static void FN(pair_tile_##rows##_##nv)(int64_t k, const T *a, const T *b, T *c, int64_t c_m,            \
                                            int64_t last, const FN(signs) * signs, bool add) {               \
        FN(pair_tile)(rows, nv, k, a, b, c, c_m, last, signs, add);                                          \
    }
PAIR_LIST(PAIR_TILE)
#undef PAIR_TILE

static const FN(pair_kernel) FN(pair_table)[TILE_VECS + 1][PAIR_ROWS + 1] = {
#define PAIR_TILE(rows, nv) [nv][rows] = FN(pair_tile_##rows##_##nv),
    PAIR_LIST(PAIR_TILE)
#undef PAIR_TILE
};

/* ---- packing ---- */

/* FN(turn) of numbers: vectors read as one row x[count][PAIRS] become x[PAIRS][count]. */
static ALWAYS void FN(turn_pairs)(VEC *v, const int count) {
    VEC w[PAIRS > TILE_PAIRS ? PAIRS : TILE_PAIRS];
    UNROLL for (int round = 1; round < count && PAIRS > 1; round *= 2) {
        UNROLL for (int i = 0; i < count / 2; i++) {
            w[2 * i] = __builtin_shufflevector(v[i], v[i + count / 2], PAIRS_LOW);
            w[2 * i + 1] = __builtin_shufflevector(v[i], v[i + count / 2], PAIRS_HIGH);
        }
        UNROLL for (int i = 0; i < count; i++) v[i] = w[i];
    }
}

/* Numbers p.. of `count` rows, of which `rows` exist; those behind k are 0. */
static ALWAYS void FN(load_rows)(VEC *v, const int count, const T *from, int64_t stride, int64_t rows,
                                 int64_t left) {
    UNROLL for (int i = 0; i < count; i++) {
        const T *row = from + 2 * i * stride;
        v[i] = i >= rows ? SET1((T)0) : left >= PAIRS ? FN(load)(row) : LOAD_PART(row, 2 * left);
    }
}

/* A tile of `rows` rows of a; k need not be whole vectors, but `to` has room for them. */
static void FN(pack_pair_tile)(T *to, const T *from, int64_t s_i, int64_t s_k, int64_t rows, int64_t k) {
    for (int64_t p = 0; s_k == 1 && p < k; p += PAIRS, to += PAIRS * TILE_STEP) {
        VEC v[PAIRS > TILE_PAIRS ? PAIRS : TILE_PAIRS];
        FN(load_rows)(v, TILE_PAIRS, from + 2 * p, s_i, rows, k - p);
        FN(turn_pairs)(v, TILE_PAIRS);
        UNROLL for (int i = 0; i < TILE_PAIRS; i++) FN(store)(to + i * VL, v[i]);
    }
    for (int64_t p = 0; s_k != 1 && p < k; p++)
        for (int64_t i = 0; i < rows; i++)
            FN(copy_pair)(to + p * TILE_STEP + 2 * i, from + 2 * (i * s_i + p * s_k));
}

/* Tiles of a, one behind the other; what lies column by column is read so. */
static void FN(pack_pairs_a)(T *to, const weft_gemm *g, const T *a) {
    weft_split tiles = split_of(g->m, PAIR_ROWS);
    const int64_t size = g->k * TILE_STEP;
    if (g->a_m != 1 || g->a_k == 1) {
        for (int64_t r = 0; r < tiles.count; r++) FN(pack_pair_tile)
        (to + r * size, a + 2 * split_at(tiles, r) * g->a_m, g->a_m, g->a_k, split_size(tiles, r), g->k);
        return;
    }
    for (int64_t p = 0; p < g->k; p++, to += TILE_STEP, a += 2 * g->a_k) {
        const T *from = a;
        for (int64_t r = 0; r < tiles.count; r++) {
            int64_t rows = split_size(tiles, r);
            if (rows == PAIR_ROWS)
                memcpy(to + r * size, from, 2 * PAIR_ROWS * sizeof(T));
            else
                memcpy(to + r * size, from, (size_t)(2 * rows) * sizeof(T));
            from += 2 * rows;
        }
    }
}

/* A panel of `width` numbers, whole vectors of which `have` exist, of b. */
static void FN(pack_pair_panel)(T *to, int64_t width, const T *from, int64_t s_n, int64_t s_k, int64_t have,
                                int64_t k) {
    if (s_n == 1) {
        for (int64_t p = 0; p < k; p++, from += 2 * s_k, to += 2 * width)
            for (int64_t j = 0; j < width; j += PAIRS) FN(store)
        (to + 2 * j, have - j < PAIRS ? LOAD_PART(from + 2 * j, 2 * (have - j)) : FN(load)(from + 2 * j));
    } else if (s_k == 1) {
        for (int64_t j = 0; j < width; j += PAIRS)
            for (int64_t p = 0; p < k; p += PAIRS) {
                VEC v[PAIRS > TILE_PAIRS ? PAIRS : TILE_PAIRS];
                FN(load_rows)(v, PAIRS, from + 2 * (j * s_n + p), s_n, have - j, k - p);
                FN(turn_pairs)(v, PAIRS);
                for (int i = 0; i < PAIRS && p + i < k; i++) FN(store)(to + 2 * ((p + i) * width + j), v[i]);
            }
    } else {
        memset(to, 0, (size_t)(2 * width * k) * sizeof(T));
        for (int64_t p = 0; p < k; p++)
            for (int64_t j = 0; j < have && j < width; j++)
                FN(copy_pair)(to + 2 * (p * width + j), from + 2 * (j * s_n + p * s_k));
    }
}

static void FN(pack_pairs_b)(T *to, const weft_gemm *g, const T *b) {
    weft_split panels = split_of(weft__ceil_div(g->n, PAIRS), TILE_VECS);
    for (int64_t t = 0; t < panels.count; t++) {
        int64_t j = split_at(panels, t) * PAIRS, width = split_size(panels, t) * PAIRS;
        FN(pack_pair_panel)(to + 2 * j * g->k, width, b + 2 * j * g->b_n, g->b_n, g->b_k, g->n - j, g->k);
    }
}

/* ---- the product ---- */

/* Packed tiles of a times packed panels of b. */
static void FN(pair_block)(const weft_gemm *g, const T *a, const T *b, T *c, const FN(signs) * signs) {
    weft_split tiles = split_of(g->m, PAIR_ROWS), panels = split_of(weft__ceil_div(g->n, PAIRS), TILE_VECS);
    for (int64_t r = 0; r < tiles.count; r++, a += g->k * TILE_STEP) {
        int64_t rows = split_size(tiles, r);
        for (int64_t t = 0, j = 0; t < panels.count; t++) {
            int64_t nv = split_size(panels, t), last = 2 * (g->n - j) - (nv - 1) * VL;
            FN(pair_table)
            [nv][rows](g->k, a, b + 2 * j * g->k, c + 2 * j, 2 * g->c_m, last < VL ? last : VL, signs,
                       g->add);
            j += nv * PAIRS;
        }
        c += 2 * rows * g->c_m;
    }
}

static int64_t FN(pair_span)(int64_t n) {
    return weft__ceil_div(weft__ceil_div(n, weft__ceil_div(n, COLUMNS / 2)), PAIRS) * PAIRS;
}

/* Bytes of scratch for g and whatever is no larger in any dimension. */
static size_t FN(pair_scratch)(const weft_gemm *g) {
    if (g->k <= 0 || g->n <= 0 || g->m <= 0) return 0;
    int64_t depth = g->k < DEPTH ? g->k : DEPTH, columns = g->n < COLUMNS / 2 ? g->n : COLUMNS / 2,
            rows = g->m < PAIR_BLOCK ? g->m : PAIR_BLOCK;
    return (size_t)(2 * depth * weft__ceil_div(columns, PAIRS) * PAIRS +
                    (depth * weft__ceil_div(rows, PAIR_ROWS) + VL) * TILE_STEP) *
           sizeof(T);
}

static void FN(pairs)(const weft_gemm *g, int conj, const T *a, const T *b, T *c, void *scratch) {
    if (g->m <= 0 || g->n <= 0 || g->k <= 0) return;
    const FN(signs) signs = FN(signs_of)(conj);
    const int64_t depth = depth_of(g->k), span = FN(pair_span)(g->n);
    T *panels = scratch, *tiles = panels + 2 * span * depth;
    for (int64_t j = 0; j < g->n; j += span)
        for (int64_t p = 0; p < g->k; p += depth) {
            weft_gemm h = *g;
            h.n = g->n - j < span ? g->n - j : span;
            h.k = g->k - p < depth ? g->k - p : depth;
            h.add = g->add || p > 0;
            FN(pack_pairs_b)(panels, &h, b + 2 * (j * g->b_n + p * g->b_k));
            for (int64_t i = 0; i < g->m; i += PAIR_BLOCK) {
                h.m = g->m - i < PAIR_BLOCK ? g->m - i : PAIR_BLOCK;
                FN(pack_pairs_a)(tiles, &h, a + 2 * (i * g->a_m + p * g->a_k));
                FN(pair_block)(&h, tiles, panels, c + 2 * (i * g->c_m + j), &signs);
            }
        }
}

#undef PAIR_BLOCK
#undef PAIR_ROWS
#undef TILE_PAIRS
#undef PAIRS
#undef PAIRS_HIGH
#undef PAIRS_LOW
#undef EXCHANGED
