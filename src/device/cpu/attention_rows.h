/* The work of attention beside its products, for one floating type and one instruction set: included by
 * gemm_own.c after gemm_float.h, with the same macros, EXP and LOG (T's functions) and INT (an integer of T's
 * size). A block of scores has keys down and LANES queries across. Row r is seen by the lanes from `first` +
 * r on; what they do not see is 0 afterwards, whatever it was. Loops over LANES are what the compiler makes
 * vectors of. No include guard: once per type. */

#define LANES WEFT_ATTENTION_LANES

typedef T FN(row_vec) __attribute__((vector_size(VL * sizeof(T))));
typedef INT FN(row_int) __attribute__((vector_size(VL * sizeof(T))));

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

/* x[i] = exp(x[i] - minus) for i < n, 0 from there to the next whole vector; the sum. The lanes after
 * n are not made -inf before, because results that underflow cost a hundred cycles on some processors. */
static T FN(row_exp)(int64_t n, T *x, T minus) {
    const FN(row_vec) zero = SET1((T)0), less = SET1(minus);
    FN(row_vec) sum = zero;
    for (int64_t i = 0; i < n; i += VL) {
        T lanes[VL];
        FN(store)(lanes, FN(load)(x + i) - less);
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

/* One query's step of the online softmax over n neighbouring scores: they become weights relative to the
 * running maximum; returns the factor that brings what was summed before to it. */
static T FN(attention_one)(int64_t n, T *s, T scale, T *most, T *sum) {
    T best = FN(scale_max)(n, s, scale);
    best = best > *most ? best : *most;
    T base = best == -(T)INFINITY ? 0 : best; /* all of them -inf: weights 0, not NaN */
    T keep = *most == -(T)INFINITY ? 0 : *most == base ? 1 : EXP(*most - base);
    *sum = *sum * keep + FN(row_exp)(n, s, base);
    *most = best;
    return keep;
}

/* to[p * LANES + i] = from[i * stride + p] * scale for i < rows, p < k, and 0 for the lanes after them. */
static void FN(attention_turn)(int64_t rows, int64_t k, const T *from, int64_t stride, T scale, T *to) {
    FN(pack_turned)(to, LANES, from, stride, rows, k);
    for (int64_t i = 0; scale != 1 && i < k * LANES; i++) to[i] *= scale;
}

/* Lanes that do not see row r, and how many rows all lanes see. */
static ALWAYS int64_t FN(unseen)(int64_t first, int64_t r) { return first + r > LANES ? LANES : first + r; }
static ALWAYS int64_t FN(whole_rows)(int64_t first, int64_t keys) {
    return first > 0 ? 0 : 1 - first < keys ? 1 - first : keys;
}

/* s = exp(s - base), 0 where unseen; part gets the sums of the lanes. What is unseen is not made -inf before,
 * because results that underflow cost a hundred cycles on some processors. */
static void FN(lanes_exp)(int64_t keys, int64_t first, T *restrict s, const T *restrict base,
                          T *restrict part) {
    int64_t r = 0, whole = FN(whole_rows)(first, keys);
    for (int i = 0; i < LANES; i++) part[i] = 0;
    for (; r < whole; r++, s += LANES)
        for (int i = 0; i < LANES; i++) s[i] = EXP(s[i] - base[i]), part[i] += s[i];
    for (; r < keys; r++, s += LANES) {
        const INT unseen = (INT)FN(unseen)(first, r);
        for (int i = 0; i < LANES; i++) {
            T e = EXP(i < unseen ? 0 : s[i] - base[i]);
            s[i] = i < unseen ? 0 : e;
            part[i] += s[i];
        }
    }
}

/* One step of the online softmax: scores become weights relative to each lane's running maximum; keep is the
 * factor that brings what was summed before to it. */
static void FN(attention_weights)(int64_t keys, int64_t first, T *restrict s, T *restrict most,
                                  T *restrict sum, T *restrict keep) {
    T best[LANES], base[LANES], part[LANES];
    const int64_t whole = FN(whole_rows)(first, keys);
    for (int i = 0; i < LANES; i++) best[i] = most[i];
    for (int64_t r = 0; r < whole; r++)
        for (int i = 0; i < LANES; i++) best[i] = s[r * LANES + i] > best[i] ? s[r * LANES + i] : best[i];
    for (int64_t r = whole; r < keys; r++) {
        const T *row = s + r * LANES;
        const INT unseen = (INT)FN(unseen)(first, r);
        for (int i = 0; i < LANES; i++) best[i] = i >= unseen && row[i] > best[i] ? row[i] : best[i];
    }
    for (int i = 0; i < LANES; i++) {
        base[i] = best[i] == -(T)INFINITY ? 0 : best[i]; /* all of them -inf: weights 0, not NaN */
        T factor = EXP(most[i] == -(T)INFINITY ? 0 : most[i] - base[i]);
        keep[i] = most[i] == -(T)INFINITY ? 0 : factor;
        most[i] = best[i];
    }
    FN(lanes_exp)(keys, first, s, base, part);
    for (int i = 0; i < LANES; i++) sum[i] = sum[i] * keep[i] + part[i];
}

/* The log-sum-exp of each lane and what its sums are divided by; of a lane that saw nothing, -inf and 0. */
static void FN(attention_finish)(const T *restrict most, const T *restrict sum, T *restrict lse,
                                 T *restrict factor) {
    for (int i = 0; i < LANES; i++) {
        T l = most[i] + LOG(sum[i] == 0 ? 1 : sum[i]);
        lse[i] = sum[i] == 0 ? -(T)INFINITY : l;
        factor[i] = sum[i] == 0 ? 0 : 1 / sum[i];
    }
}

/* Scores become weights again, from the log-sum-exp of each lane. */
static void FN(attention_again)(int64_t keys, int64_t first, T *restrict s, const T *restrict lse) {
    T base[LANES], part[LANES];
    for (int i = 0; i < LANES; i++) base[i] = lse[i] == -(T)INFINITY ? (T)INFINITY : lse[i];
    FN(lanes_exp)(keys, first, s, base, part);
}

/* The gradient of the scores: dp = p * (dp - delta) * scale. */
static void FN(attention_scores)(int64_t keys, const T *restrict p, T *restrict dp, const T *restrict delta,
                                 T scale) {
    for (int64_t r = 0; r < keys; r++, p += LANES, dp += LANES)
        for (int i = 0; i < LANES; i++) dp[i] = p[i] * (dp[i] - delta[i]) * scale;
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

#undef LANES
