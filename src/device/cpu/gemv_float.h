/* Own products of a matrix and a vector for one type of the matrix and one instruction set: included by
 * gemm_own.c, which defines T (the type of vector and result) and its V, VL, SET1, FMA, LOAD, STORE_PART,
 * SUM, and of the matrix X, FN (names), WIDE (VL neighbours as T), WIDE_PART. No include guard,
 * therefore.
 *
 * Each element of the matrix is used once: what decides is how fast it comes. Long rows are read one by one,
 * as one stream, with lines asked for far ahead and no more than two at once: measured with two cores on 500
 * MB, 38 GB/s; 34 without asking, 30 where four rows ask side by side. Short rows (attention) go four at a
 * time. */

#define AHEAD 24576 /* bytes */

/* even, odd += what is left of the products of a row with v from p on: less than two vectors. */
static ALWAYS void FN(rest)(int64_t p, int64_t k, const X *x, const T *v, V *even, V *odd) {
    if (p + VL <= k) {
        *even = FMA(WIDE(x + p), LOAD(v + p), *even);
        p += VL;
    }
    if (p < k) *odd = FMA(WIDE_PART(x + p, k - p), LOAD_PART(v + p, k - p), *odd);
}

/* Four dot products of short rows, which lie x_i apart, with v; all of unit stride. */
static void FN(four_dots)(int64_t k, const X *x, int64_t x_i, const T *v, T *out, int64_t out_i, bool add) {
    V even[4], odd[4];
    UNROLL for (int i = 0; i < 4; i++) even[i] = odd[i] = SET1((T)0);
    int64_t p = 0;
    for (; p + 2 * VL <= k; p += 2 * VL) {
        V v0 = LOAD(v + p), v1 = LOAD(v + p + VL);
        UNROLL for (int i = 0; i < 4; i++) {
            even[i] = FMA(WIDE(x + i * x_i + p), v0, even[i]);
            odd[i] = FMA(WIDE(x + i * x_i + p + VL), v1, odd[i]);
        }
    }
    UNROLL for (int i = 0; i < 4; i++) {
        FN(rest)(p, k, x + i * x_i, v, &even[i], &odd[i]);
        T sum = SUM(even[i] + odd[i]);
        out[i * out_i] = add ? out[i * out_i] + sum : sum;
    }
}

/* Dot products of rows that are read as one stream. Within a turn, lines are asked for after those at hand
 * have been: the other way round they wait. */
static __attribute__((noinline)) void FN(dots)(int64_t rows, int64_t k, const X *x, int64_t x_i, const T *v,
                                               T *out, int64_t out_i, bool add) {
    const int64_t whole = k - k % (2 * VL);
    for (int64_t i = 0; i < rows; i++, x += x_i, out += out_i) {
        V even = SET1((T)0), odd = even;
        for (int64_t p = 0; p < whole; p += 2 * VL) {
            even = FMA(WIDE(x + p), LOAD(v + p), even);
            odd = FMA(WIDE(x + p + VL), LOAD(v + p + VL), odd);
            __asm__ volatile("" ::: "memory");
            for (int b = 0; b < 2 * VL * (int)sizeof(X); b += 64)
                __builtin_prefetch((const char *)(x + p) + AHEAD + b);
        }
        if (whole < k) FN(rest)(whole, k, x, v, &even, &odd);
        T sum = SUM(even + odd);
        *out = add ? *out + sum : sum;
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
        if (g->k <= DEPTH)
            for (; i + 4 <= g->rows; i += 4)
                FN(four_dots)(g->k, x + i * g->x_i, g->x_i, v, out + i * g->out_i, g->out_i, g->add);
        FN(dots)(g->rows - i, g->k, x + i * g->x_i, g->x_i, v, out + i * g->out_i, g->out_i, g->add);
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
