/* The row work of attention for one floating type and one instruction set: included by gemm_own.c after
 * gemm_float.h, with the same macros, EXP (T's exponential) and INT (an integer of T's size). Rows are blocks
 * of scores (rows, cols) with leading dimension ld. Row r sees the columns before `seen` + r where causal,
 * all otherwise: attention.c passes the count for row 0 and the step. No include guard: once per type. */

typedef T FN(row_vec) __attribute__((vector_size(VL * sizeof(T))));
typedef INT FN(row_int) __attribute__((vector_size(VL * sizeof(T))));

static ALWAYS int64_t FN(seen_of)(int64_t seen, int64_t step, int64_t r, int64_t cols) {
    int64_t n = seen + step * r;
    return n < 0 ? 0 : n > cols ? cols : n;
}

/* The first n lanes of v, those after them from other. */
static ALWAYS FN(row_vec) FN(first_lanes)(FN(row_vec) v, int64_t n, FN(row_vec) other) {
    FN(row_int) lane, count = (FN(row_int)){0} + (INT)n;
    for (int i = 0; i < VL; i++) lane[i] = i;
    FN(row_int) mask = lane < count;
    return (FN(row_vec))((mask & (FN(row_int))v) | (~mask & (FN(row_int))other));
}

/* x[i] *= scale for i < n, rounded up to whole vectors; the largest of the n, NaN aside. */
static T FN(scale_max)(int64_t n, T *x, T scale) {
    const FN(row_vec) least = SET1(-(T)INFINITY), by = SET1(scale);
    FN(row_vec) most = least;
    for (int64_t i = 0; i < n; i += VL) {
        FN(row_vec) v = FN(load)(x + i) * by;
        FN(store)(x + i, v);
        if (i + VL > n) v = FN(first_lanes)(v, n - i, least);
        most = VMAX(v, most);
    }
    T lanes[VL];
    FN(store)(lanes, most);
    UNROLL for (int half = VL / 2; half > 0; half /= 2) {
        UNROLL for (int i = 0; i < half; i++) lanes[i] =
            lanes[i] > lanes[i + half] ? lanes[i] : lanes[i + half];
    }
    return lanes[0];
}

/* x[i] = exp(x[i] * scale - minus) for i < n, 0 from there to the next whole vector; the sum. The lanes after
 * n are not made -inf before, because results that underflow cost a hundred cycles on some processors. */
static T FN(row_exp)(int64_t n, T *x, T scale, T minus) {
    const FN(row_vec) zero = SET1((T)0), by = SET1(scale), less = SET1(minus);
    FN(row_vec) sum = zero;
    for (int64_t i = 0; i < n; i += VL) {
        T lanes[VL];
        FN(store)(lanes, FN(load)(x + i) * by - less);
        for (int j = 0; j < VL; j++) lanes[j] = EXP(lanes[j]);
        FN(row_vec) v = FN(load)(lanes);
        if (i + VL > n) v = FN(first_lanes)(v, n - i, zero);
        FN(store)(x + i, v);
        sum = sum + v;
    }
    return FN(lanes_sum)(sum);
}

static T FN(row_dot)(int64_t n, const T *x, const T *y) {
    FN(row_vec) sum = SET1((T)0);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) sum = FMA(FN(load)(x + i), FN(load)(y + i), sum);
    T rest = 0;
    for (; i < n; i++) rest += x[i] * y[i];
    return FN(lanes_sum)(sum) + rest;
}

static void FN(row_scale)(int64_t n, T *x, T by) {
    for (int64_t i = 0; i < n; i++) x[i] *= by;
}

/* One step of the online softmax: scores become weights relative to the rows' running maximum, to which the
 * running sums and the rows of out so far (rows, d) are brought. */
static void FN(attention_weights)(int64_t rows, int64_t cols, T *s, int64_t ld, int64_t seen, int64_t step,
                                  T scale, T *most, T *sum, T *out, int64_t d) {
    for (int64_t r = 0; r < rows; r++) {
        int64_t n = FN(seen_of)(seen, step, r, cols);
        T *row = s + r * ld;
        if (n > 0) {
            T best = FN(scale_max)(n, row, scale);
            best = best > most[r] ? best : most[r];
            T base = best == -(T)INFINITY ? 0 : best; /* all of them -inf: weights 0, not NaN */
            T keep = most[r] == -(T)INFINITY ? 0 : most[r] == base ? 1 : EXP(most[r] - base);
            sum[r] = sum[r] * keep + FN(row_exp)(n, row, 1, base);
            if (keep != 1 && most[r] != -(T)INFINITY) FN(row_scale)(d, out + r * d, keep);
            most[r] = best;
        }
        memset(row + n, 0, (size_t)(cols - n) * sizeof(T));
    }
}

/* Scores become weights again, from the log-sum-exp of their rows. */
static void FN(attention_again)(int64_t rows, int64_t cols, T *s, int64_t ld, int64_t seen, int64_t step,
                                T scale, const T *lse) {
    for (int64_t r = 0; r < rows; r++) {
        int64_t n = lse[r] == -(T)INFINITY ? 0 : FN(seen_of)(seen, step, r, cols);
        T *row = s + r * ld;
        if (n > 0) FN(row_exp)(n, row, scale, lse[r]);
        memset(row + n, 0, (size_t)(cols - n) * sizeof(T));
    }
}

/* The gradient of the scores: dp = p * (dp - delta) * scale. */
static void FN(attention_scores)(int64_t rows, int64_t cols, const T *restrict p, T *restrict dp, int64_t ld,
                                 const T *delta, T scale) {
    for (int64_t r = 0; r < rows; r++) {
        const T *from = p + r * ld;
        T *to = dp + r * ld, minus = delta[r];
        for (int64_t i = 0; i < cols; i++) to[i] = from[i] * (to[i] - minus) * scale;
    }
}

static void FN(multiply)(int64_t n, const T *restrict x, const T *restrict y, T *restrict to) {
    for (int64_t i = 0; i < n; i++) to[i] = x[i] * y[i];
}

/* Dropout factors of n neighbouring elements of the random stream: `factor` where kept, else 0. */
static void FN(attention_keep)(int64_t n, T *to, uint64_t first, const uint32_t *key, T dropout, T factor) {
    uint32_t words[4 * PHILOX_LANES];
    for (int64_t i = 0; i < n;) {
        uint64_t block = (first + (uint64_t)i) / 4;
        int64_t skip = (int64_t)((first + (uint64_t)i) % 4), have = 4 * PHILOX_LANES - skip;
        philox_lanes(block, key, words);
        if (have > n - i) have = n - i;
        for (int64_t j = 0; j < have; j++)
            to[i + j] = (T)((float)(words[skip + j] >> 8) * 0x1p-24f) >= dropout ? factor : 0;
        i += have;
    }
}
