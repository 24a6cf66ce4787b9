/* Own convolutions of one floating type for one instruction set: included by gemm_own.c after gemm_float.h,
 * whose names it uses. No include guard, therefore.
 *
 * Nothing is copied into columns: a tile of pixels by output channels stays in registers while all taps and
 * input channels pass by (Zhang et al. 2018, "High performance zero-memory overhead direct convolutions"; the
 * table of where pixels and taps begin is that of Dukhan 2019, "The indirect convolution algorithm"). */

#define VEC FN(vec)

/* ---- pixels by channels: the result, and the gradient by the input ---- */

/* n products more of mr pixels, whose channels follow each other, and packed nv vectors. */
static ALWAYS void FN(conv_steps)(const int mr, const int nv, int64_t n, VEC acc[CONV_ROWS][CONV_VECS],
                                  const T *const *x, const T *w) {
    for (int64_t c = 0; c < n; c++, w += nv * VL) {
        VEC wv[CONV_VECS];
        UNROLL for (int j = 0; j < nv; j++) wv[j] = FN(load)(w + j * VL);
        UNROLL for (int i = 0; i < mr; i++) {
            const VEC xv = SET1(x[i][c]);
            UNROLL for (int j = 0; j < nv; j++) acc[i][j] = FMA(xv, wv[j], acc[i][j]);
        }
    }
}

static ALWAYS void FN(conv_tile)(const int mr, const int nv, const weft_conv_gather *g,
                                 const weft_conv_place *places) {
    VEC acc[CONV_ROWS][CONV_VECS];
    const T *x[CONV_ROWS], *w = g->w;
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            acc[i][j] = SET1((T)0);
            __builtin_prefetch((const T *)g->y + places[i].y + j * VL, 1);
        }
    }
    for (const weft_conv_run *run = g->runs, *end = run + g->n_runs; run < end;
         w += run->n * nv * VL, run++) {
        UNROLL for (int i = 0; i < mr; i++) x[i] = (const T *)g->x + places[i].x + run->at;
        FN(conv_steps)(mr, nv, run->n, acc, x, w);
    }
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            T *to = (T *)g->y + places[i].y + j * VL;
            if (j == nv - 1 && g->last < VL)
                STORE_PART(to, g->add ? LOAD_PART(to, g->last) + acc[i][j] : acc[i][j], g->last);
            else
                FN(store)(to, g->add ? FN(load)(to) + acc[i][j] : acc[i][j]);
        }
    }
}

/* ---- taps and input channels by output channels: the gradient by the weight ---- */

/* joined: the rows lie side by side. */
static ALWAYS void FN(conv_weight_tile)(const int mr, const int nv, const bool joined,
                                        const weft_conv_weight *g, const int64_t *rows, T *to) {
    VEC acc[CONV_ROWS][CONV_VECS];
    const T *y = g->y;
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int j = 0; j < nv; j++) {
            acc[i][j] = SET1((T)0);
            __builtin_prefetch(to + i * g->to_row + j * VL, 1);
        }
    }
    for (const weft_conv_line *line = g->lines, *end = line + g->n_lines; line < end; line++) {
        const T *x[CONV_ROWS], *first = (const T *)g->x + line->x;
        UNROLL for (int i = 0; i < mr; i++) x[i] = first + (joined ? rows[0] : rows[i]);
        for (int64_t p = 0, at = 0; p < line->n; p++, at += g->step, y += g->wide) {
            VEC yv[CONV_VECS];
            UNROLL for (int j = 0; j < nv; j++) yv[j] = FN(load)(y + j * VL);
            UNROLL for (int i = 0; i < mr; i++) {
                const VEC xv = SET1(joined ? x[0][at + i] : x[i][at]);
                UNROLL for (int j = 0; j < nv; j++) acc[i][j] = FMA(xv, yv[j], acc[i][j]);
            }
        }
    }
    UNROLL for (int i = 0; i < mr; i++, to += g->to_row) {
        UNROLL for (int j = 0; j < nv; j++)
            FN(store)(to + j * VL, g->add ? FN(load)(to + j * VL) + acc[i][j] : acc[i][j]);
    }
}

#define TILE(mr, nv)                                                                                         \
    static void FN(conv_tile_##mr##_##nv)(const weft_conv_gather *g, const weft_conv_place *places) {        \
        FN(conv_tile)(mr, nv, g, places);                                                                    \
    }                                                                                                        \
    static void FN(conv_weight_##mr##_##nv)(const weft_conv_weight *g, const int64_t *rows, T *to) {         \
        FN(conv_weight_tile)(mr, nv, false, g, rows, to);                                                    \
    }                                                                                                        \
    static void FN(conv_joined_##mr##_##nv)(const weft_conv_weight *g, const int64_t *rows, T *to) {         \
        FN(conv_weight_tile)(mr, nv, true, g, rows, to);                                                     \
    }
CONV_LIST(TILE)
#undef TILE

static void FN(conv_gather)(const weft_conv_gather *g, int64_t nv, const weft_conv_place *places,
                            int64_t count) {
    static void (*const table[CONV_VECS + 1][CONV_ROWS + 1])(const weft_conv_gather *,
                                                             const weft_conv_place *) = {
#define TILE(mr, nv) [nv][mr] = FN(conv_tile_##mr##_##nv),
        CONV_LIST(TILE)
#undef TILE
    };
    const weft_split tiles = split_of(count, CONV_ROWS);
    for (int64_t t = 0; t < tiles.count; t++) {
        ask_ahead(g->ahead, g->ahead_bytes, t, tiles.count);
        table[nv][split_size(tiles, t)](g, places + split_at(tiles, t));
    }
}

/* Rows follow each other `joined` at a time, of which a tile is one part where they fill one. */
static void FN(conv_weight)(const weft_conv_weight *g, int64_t nv, const int64_t *rows, int64_t count,
                            int64_t joined) {
    static void (*const table[CONV_VECS + 1][CONV_ROWS + 1][2])(const weft_conv_weight *, const int64_t *,
                                                                T *) = {
#define TILE(mr, nv) [nv][mr] = {FN(conv_weight_##mr##_##nv), FN(conv_joined_##mr##_##nv)},
        CONV_LIST(TILE)
#undef TILE
    };
    const bool is = joined >= CONV_ROWS || joined == count;
    const int64_t each = is ? joined : count, runs = count / each;
    const weft_split tiles = split_of(each, CONV_ROWS);
    for (int64_t r = 0; r < runs; r++)
        for (int64_t t = 0; t < tiles.count; t++) {
            const int64_t at = r * each + split_at(tiles, t);
            for (int k = 0; k < 2; k++)
                ask_ahead(g->ahead[k], g->ahead_bytes[k], r * tiles.count + t, runs * tiles.count);
            table[nv][split_size(tiles, t)][is](g, rows + at, (T *)g->to + at * g->to_row);
        }
}

/* ---- one channel a group: nothing is summed over channels ---- */

#define EACH_PIXELS 4
#define EACH_TAPS   8

static ALWAYS VEC FN(some)(const T *p, int64_t n) { return n < VL ? LOAD_PART(p, n) : FN(load)(p); }

static ALWAYS void FN(each_pixels)(const int mr, const weft_conv_gather *g, const weft_conv_place *places,
                                   int64_t c, int64_t n, int64_t wide) {
    VEC acc[EACH_PIXELS];
    UNROLL for (int i = 0; i < mr; i++) acc[i] = SET1((T)0);
    const T *w = (const T *)g->w + c;
    for (int64_t t = 0; t < g->n_runs; t++, w += wide) {
        const VEC wv = FN(load)(w);
        UNROLL for (int i = 0; i < mr; i++) acc[i] =
            FMA(FN(some)((const T *)g->x + places[i].x + g->runs[t].at + c, n), wv, acc[i]);
    }
    UNROLL for (int i = 0; i < mr; i++) {
        T *to = (T *)g->y + places[i].y + c;
        if (n < VL)
            STORE_PART(to, g->add ? LOAD_PART(to, n) + acc[i] : acc[i], n);
        else
            FN(store)(to, g->add ? FN(load)(to) + acc[i] : acc[i]);
    }
}

/* Rows of the packed weight are whole vectors of channels. */
static void FN(conv_each)(const weft_conv_gather *g, int64_t channels, const weft_conv_place *places,
                          int64_t count) {
    const int64_t wide = weft__ceil_div(channels, VL) * VL;
    for (int64_t p = 0; p < count;) {
        const bool all = p + EACH_PIXELS <= count;
        for (int64_t c = 0; c < channels; c += VL) {
            const int64_t n = channels - c < VL ? channels - c : VL;
            if (all)
                FN(each_pixels)(EACH_PIXELS, g, places + p, c, n, wide);
            else
                FN(each_pixels)(1, g, places + p, c, n, wide);
        }
        p += all ? EACH_PIXELS : 1;
    }
}

static ALWAYS void FN(each_taps)(const int taps, const weft_conv_weight *g, const int64_t *rows, int64_t c,
                                 int64_t n, T *to) {
    VEC acc[EACH_TAPS];
    const T *y = (const T *)g->y + c;
    UNROLL for (int t = 0; t < taps; t++) acc[t] = SET1((T)0);
    for (const weft_conv_line *line = g->lines, *end = line + g->n_lines; line < end; line++) {
        const T *x = (const T *)g->x + line->x + c;
        for (int64_t p = 0; p < line->n; p++, x += g->step, y += g->wide) {
            const VEC yv = FN(some)(y, n);
            UNROLL for (int t = 0; t < taps; t++) acc[t] = FMA(FN(some)(x + rows[t], n), yv, acc[t]);
        }
    }
    UNROLL for (int t = 0; t < taps; t++)
        FN(store)(to + t * g->to_row, g->add ? FN(load)(to + t * g->to_row) + acc[t] : acc[t]);
}

static void FN(conv_each_weight)(const weft_conv_weight *g, int64_t channels, const int64_t *rows,
                                 int64_t count) {
    for (int64_t c = 0; c < channels; c += VL) {
        const int64_t n = channels - c < VL ? channels - c : VL;
        T *to = (T *)g->to + c;
        int64_t t = 0;
        for (; t + EACH_TAPS <= count; t += EACH_TAPS)
            FN(each_taps)(EACH_TAPS, g, rows + t, c, n, to + t * g->to_row);
        for (; t < count; t++) FN(each_taps)(1, g, rows + t, c, n, to + t * g->to_row);
    }
}

#undef EACH_PIXELS
#undef EACH_TAPS

static void FN(conv_pack)(void *to, int64_t width, const void *from, int64_t s_i, int64_t s_k, int64_t rows,
                          int64_t k) {
    FN(pack)(to, width, from, s_i, s_k, rows, k);
}

#undef VEC
