/* The work of attention beside its products, for one floating type and one instruction set: included by
 * gemm_own.c after gemm_float.h, with the same macros, EXPV, EXP and LOG (T's functions, of vectors and of
 * one) and INT (an integer of T's size). A block of scores forward has keys down and LANES queries across;
 * row r is seen by the lanes from `first` + r on; what they do not see is 0 afterwards, whatever it was.
 * Backward it has queries down. All is written in vectors, because not every compiler makes them of such
 * loops. No include guard: once per type. */

#define LANES  WEFT_ATTENTION_LANES
#define ACROSS (LANES / VL) /* vectors */

typedef T FN(row_vec) __attribute__((vector_size(VL * sizeof(T))));
typedef INT FN(row_int) __attribute__((vector_size(VL * sizeof(T))));

static ALWAYS FN(row_int) FN(lane_numbers)(void) {
    FN(row_int) lane;
    UNROLL for (int i = 0; i < VL; i++) lane[i] = i;
    return lane;
}

/* v where the bits of mask are ones, else other. */
static ALWAYS FN(row_vec) FN(choose)(FN(row_int) mask, FN(row_vec) v, FN(row_vec) other) {
    return (FN(row_vec))((mask & (FN(row_int))v) | (~mask & (FN(row_int))other));
}

/* The first n lanes of v, those after them from other. */
static ALWAYS FN(row_vec) FN(first_lanes)(FN(row_vec) v, int64_t n, FN(row_vec) other) {
    const FN(row_int) count = (FN(row_int)){0} + (INT)n;
    return FN(choose)(FN(lane_numbers)() < count, v, other);
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

/* x[i] = exp(x[i] - minus) for i < n, 0 from there to the next whole vector; the sum. */
static T FN(row_exp)(int64_t n, T *x, T minus) {
    const FN(row_vec) zero = SET1((T)0), less = SET1(minus);
    FN(row_vec) sum = zero;
    for (int64_t i = 0; i < n; i += VL) {
        FN(row_vec) v = EXPV(FN(load)(x + i) - less);
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

/* to[i] = x[i] * by */
static void FN(row_scale)(int64_t n, const T *x, T by, T *to) {
    const FN(row_vec) factor = SET1(by);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) FN(store)(to + i, FN(load)(x + i) * factor);
    if (i < n) STORE_PART(to + i, LOAD_PART(x + i, n - i) * factor, n - i);
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

/* to[p * width + i] = from[i * stride + p] * scale for i < rows, p < k, and 0 from there to width. */
static void FN(attention_turn)(int64_t rows, int64_t k, const T *from, int64_t stride, T scale, int64_t width,
                               T *to) {
    FN(pack_turned)(to, width, from, stride, rows, k);
    if (scale != 1) FN(row_scale)(k * width, to, scale, to);
}

/* Which lanes of vector v see row r, as a mask. */
static ALWAYS FN(row_int) FN(seen)(int64_t first, int64_t r, int v) {
    const int64_t unseen = first + r > LANES ? LANES : first + r;
    return FN(lane_numbers)() >= (FN(row_int)){0} + (INT)(unseen - v * VL);
}

/* How many rows all lanes see. */
static ALWAYS int64_t FN(whole_rows)(int64_t first, int64_t keys) {
    return first > 0 ? 0 : 1 - first < keys ? 1 - first : keys;
}

/* best = max of it and each lane's scores; four rows at a time, because a maximum takes a while. */
static ALWAYS void FN(lanes_max)(int64_t keys, int64_t first, const T *s, FN(row_vec) * best) {
    const int64_t whole = FN(whole_rows)(first, keys);
    int64_t r = 0;
    for (; r + 4 <= whole; r += 4) {
        UNROLL for (int v = 0; v < ACROSS; v++) {
            const T *at = s + r * LANES + v * VL;
            FN(row_vec) a = VMAX(FN(load)(at), FN(load)(at + LANES));
            FN(row_vec) b = VMAX(FN(load)(at + 2 * LANES), FN(load)(at + 3 * LANES));
            best[v] = VMAX(VMAX(a, b), best[v]);
        }
    }
    for (; r < keys; r++) {
        UNROLL for (int v = 0; v < ACROSS; v++) {
            FN(row_vec) x = VMAX(FN(load)(s + r * LANES + v * VL), best[v]);
            best[v] = r < whole ? x : FN(choose)(FN(seen)(first, r, v), x, best[v]);
        }
    }
}

/* s = exp(s - base), 0 where unseen; part gets the sums of the lanes. */
static ALWAYS void FN(lanes_exp)(int64_t keys, int64_t first, T *s, const FN(row_vec) * base,
                                 FN(row_vec) * part) {
    const int64_t whole = FN(whole_rows)(first, keys);
    int64_t r = 0;
    UNROLL for (int v = 0; v < ACROSS; v++) part[v] = SET1((T)0);
    for (; r < whole; r++, s += LANES) {
        UNROLL for (int v = 0; v < ACROSS; v++) {
            FN(row_vec) e = EXPV(FN(load)(s + v * VL) - base[v]);
            FN(store)(s + v * VL, e);
            part[v] += e;
        }
    }
    for (; r < keys; r++, s += LANES) {
        UNROLL for (int v = 0; v < ACROSS; v++) {
            FN(row_vec) e = SET1((T)0);
            if (first + r < (v + 1) * VL)
                e = FN(choose)(FN(seen)(first, r, v), EXPV(FN(load)(s + v * VL) - base[v]), e);
            FN(store)(s + v * VL, e);
            part[v] += e;
        }
    }
}

/* One step of the online softmax: scores become weights relative to each lane's running maximum; keep is the
 * factor that brings what was summed before to it. */
static void FN(attention_weights)(int64_t keys, int64_t first, T *s, T *most, T *sum, T *keep) {
    const FN(row_vec) zero = SET1((T)0), nothing = SET1(-(T)INFINITY);
    FN(row_vec) best[ACROSS], base[ACROSS], part[ACROSS];
    UNROLL for (int v = 0; v < ACROSS; v++) best[v] = FN(load)(most + v * VL);
    FN(lanes_max)(keys, first, s, best);
    UNROLL for (int v = 0; v < ACROSS; v++) { /* all of them -inf: weights 0, not NaN */
        base[v] = FN(choose)(best[v] == nothing, zero, best[v]);
    }
    FN(lanes_exp)(keys, first, s, base, part);
    for (int v = 0; v < ACROSS; v++) {
        FN(row_vec) before = FN(load)(most + v * VL), factor = EXPV(before - base[v]);
        FN(store)(keep + v * VL, factor);
        FN(store)(sum + v * VL, FN(load)(sum + v * VL) * factor + part[v]);
        FN(store)(most + v * VL, best[v]);
    }
}

/* What a mask of bools adds: 0 where it is true, else -inf. */
static void FN(attention_open)(int64_t n, const uint8_t *seen, T *bias) {
    typedef uint8_t bytes __attribute__((vector_size(VL)));
    const FN(row_vec) zero = SET1((T)0), nothing = SET1(-(T)INFINITY);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) {
        bytes b;
        memcpy(&b, seen + i, sizeof b);
        FN(store)(bias + i, FN(choose)(__builtin_convertvector(b, FN(row_int)) != 0, zero, nothing));
    }
    for (; i < n; i++) bias[i] = seen[i] ? 0 : -(T)INFINITY;
}

/* A score with what a mask adds; -inf hides it, whatever it is. */
static ALWAYS FN(row_vec) FN(masked)(FN(row_vec) s, FN(row_vec) bias) {
    return FN(choose)(bias == SET1(-(T)INFINITY), bias, s + bias);
}

/* The scores of n neighbours with what a mask adds, less a number. */
static void FN(attention_mask)(int64_t n, T *s, const T *bias, T less) {
    const FN(row_vec) by = SET1(less);
    int64_t i = 0;
    for (; i + VL <= n; i += VL) FN(store)(s + i, FN(masked)(FN(load)(s + i), FN(load)(bias + i)) - by);
    if (i < n) STORE_PART(s + i, FN(masked)(LOAD_PART(s + i, n - i), LOAD_PART(bias + i, n - i)) - by, n - i);
}

/* Those of a block, where a mask adds the same to all lanes. */
static void FN(attention_mask_keys)(int64_t keys, T *s, const T *bias) {
    for (int64_t r = 0; r < keys; r++, s += LANES) {
        const FN(row_vec) b = SET1(bias[r]);
        UNROLL for (int v = 0; v < ACROSS; v++) FN(store)(s + v * VL, FN(masked)(FN(load)(s + v * VL), b));
    }
}

/* The log-sum-exp of n lanes and what their sums are divided by; of a lane that saw nothing, -inf and 0. */
static void FN(attention_finish)(int64_t n, const T *restrict most, const T *restrict sum, T *restrict lse,
                                 T *restrict factor) {
    for (int64_t i = 0; i < n; i++) {
        T l = most[i] + LOG(sum[i] == 0 ? 1 : sum[i]);
        lse[i] = sum[i] == 0 ? -(T)INFINITY : l;
        factor[i] = sum[i] == 0 ? 0 : 1 / sum[i];
    }
}

/* One query's n scores, of which it sees the first `seen`, become weights again, from their log-sum-exp, and
 * dp the gradient of the scores: p * (dp - delta) * scale. keep: the factors of dropout, or NULL; the weights
 * that are left in s are those that met the values. All up to the next whole vector. */
static void FN(attention_gradient)(int64_t n, int64_t seen, T *s, T *dp, T lse, T delta, T scale,
                                   const T *keep) {
    const FN(row_vec) zero = SET1((T)0), base = SET1(lse == -(T)INFINITY ? (T)INFINITY : lse),
                      less = SET1(delta), by = SET1(scale);
    for (int64_t i = 0; i < n; i += VL) {
        FN(row_vec) p = zero, g = zero;
        if (i < seen) {
            p = EXPV(FN(load)(s + i) - base);
            const FN(row_vec) d = FN(load)(dp + i);
            if (keep) {
                const FN(row_vec) kept = FN(load)(keep + i);
                g = p * (d * kept - less) * by;
                p = p * kept;
            } else {
                g = p * (d - less) * by;
            }
            if (i + VL > seen) {
                p = FN(first_lanes)(p, seen - i, zero);
                g = FN(first_lanes)(g, seen - i, zero);
            }
        }
        FN(store)(s + i, p);
        FN(store)(dp + i, g);
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

#undef LANES
#undef ACROSS
