/* Own products of a matrix and a vector for one type of the matrix and one instruction set: included by
 * gemm_own.c, which defines T (the type of vector and result) and its V, VL, SET1, FMA, LOAD, STORE_PART,
 * SUM, and of the matrix X, FN (names), WIDE (VL neighbours as T), WIDE_PART, ONE. No include guard,
 * therefore.
 *
 * Each element of the matrix is used once: what decides is how fast it comes. Two rows at a time, with lines
 * asked for far ahead, is what a core of AVX-512 needs to have enough of them under way (measured: 39 GB/s
 * with two cores on 500 MB, 34 without). */

#define AHEAD 8192 /* bytes */

/* `rows` dot products (a constant where called) of rows that lie x_i apart with v; both of unit stride. */
static ALWAYS void FN(dots)(const int rows, const bool ahead, int64_t k, const X *x, int64_t x_i, const T *v,
                            T *out, int64_t out_i, bool add) {
    V acc[4][2];
    T tail[4];
    UNROLL for (int i = 0; i < rows; i++) acc[i][0] = acc[i][1] = SET1((T)0), tail[i] = 0;
    int64_t p = 0;
    for (; p + 2 * VL <= k; p += 2 * VL) {
        V v0 = LOAD(v + p), v1 = LOAD(v + p + VL);
        UNROLL for (int i = 0; i < rows; i++) {
            const X *at = x + i * x_i + p;
            for (int b = 0; ahead && b < 2 * VL * (int)sizeof(X); b += 64)
                __builtin_prefetch((const char *)at + AHEAD + b);
            acc[i][0] = FMA(WIDE(at), v0, acc[i][0]);
            acc[i][1] = FMA(WIDE(at + VL), v1, acc[i][1]);
        }
    }
    for (; p < k; p++) {
        UNROLL for (int i = 0; i < rows; i++) tail[i] += ONE(x[i * x_i + p]) * v[p];
    }
    UNROLL for (int i = 0; i < rows; i++) {
        T sum = SUM(acc[i][0] + acc[i][1]) + tail[i];
        out[i * out_i] = add ? out[i * out_i] + sum : sum;
    }
}

/* nv vectors of neighbouring results: out[i] = sum_p x[i + p * x_k] * v[p]. */
static ALWAYS void FN(columns)(const int nv, const bool part, int64_t last, int64_t k, const X *x,
                               int64_t x_k, const T *v, T *to) {
    V sum[COLUMN_VECS];
    UNROLL for (int j = 0; j < nv; j++) sum[j] = SET1((T)0);
    for (int64_t p0 = 0; p0 < k; p0 += DEPTH) {
        int64_t end = k - p0 < DEPTH ? k : p0 + DEPTH;
        V acc[COLUMN_VECS];
        UNROLL for (int j = 0; j < nv; j++) acc[j] = SET1((T)0);
        for (int64_t p = p0; p < end; p++) {
            V s = SET1(v[p]);
            const X *row = x + p * x_k;
            UNROLL for (int j = 0; j < nv; j++) acc[j] =
                FMA(part ? WIDE_PART(row, last) : WIDE(row + j * VL), s, acc[j]);
        }
        UNROLL for (int j = 0; j < nv; j++) sum[j] = sum[j] + acc[j];
    }
    if (part) {
        STORE_PART(to, sum[0], last);
    } else {
        memcpy(to, sum, (size_t)nv * sizeof *sum);
    }
}

static void FN(gemv)(const weft_gemv *g, const X *x, const T *v, T *out) {
    int64_t i = 0;
    if (g->x_k == 1 || g->k == 1) {
        const bool far = g->k > DEPTH; /* else rows are too short to be waited for one by one */
        for (; !far && i + 4 <= g->rows; i += 4)
            FN(dots)(4, false, g->k, x + i * g->x_i, g->x_i, v, out + i * g->out_i, g->out_i, g->add);
        for (; i + 2 <= g->rows; i += 2)
            FN(dots)(2, true, g->k, x + i * g->x_i, g->x_i, v, out + i * g->out_i, g->out_i, g->add);
        for (; i < g->rows; i++)
            FN(dots)(1, true, g->k, x + i * g->x_i, g->x_i, v, out + i * g->out_i, g->out_i, g->add);
        return;
    }
    while (i < g->rows) {
        T tile[COLUMN_VECS * VL];
        int64_t left = g->rows - i, count;
        T *to = g->out_i == 1 && !g->add ? out + i : tile;
        if (left >= COLUMN_VECS * VL) {
            FN(columns)(COLUMN_VECS, false, VL, g->k, x + i, g->x_k, v, to);
            count = COLUMN_VECS * VL;
        } else if (left >= 4 * VL) {
            FN(columns)(4, false, VL, g->k, x + i, g->x_k, v, to);
            count = 4 * VL;
        } else if (left >= VL) {
            FN(columns)(1, false, VL, g->k, x + i, g->x_k, v, to);
            count = VL;
        } else {
            FN(columns)(1, true, left, g->k, x + i, g->x_k, v, to);
            count = left;
        }
        if (to == tile)
            for (int64_t j = 0; j < count; j++) {
                T *at = out + (i + j) * g->out_i;
                *at = g->add ? *at + tile[j] : tile[j];
            }
        i += count;
    }
}

#undef AHEAD
#undef FN
#undef X
#undef WIDE
#undef WIDE_PART
#undef ONE
