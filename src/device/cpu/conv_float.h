/* Own convolutions of one floating type for one instruction set: included by gemm_own.c after gemm_float.h,
 * whose names it uses. No include guard, therefore.
 *
 * Nothing is copied into columns: a tile of pixels by output channels stays in registers while all taps and
 * input channels pass by (Zhang et al. 2018, "High performance zero-memory overhead direct convolutions"; the
 * table of where pixels and taps begin is that of Dukhan 2019, "The indirect convolution algorithm"). */

#define VEC FN(vec)

/* ---- pixels by channels: the result, and the gradient by the input ---- */

/* n products more of mr pixels, whose channels follow each other, and packed nv vectors. even: pixels are
 * `step` apart, and three of them share a register, of which there are not enough for one pointer each. */
static ALWAYS void FN(conv_steps)(const int mr, const int nv, const bool even, int64_t n,
                                  VEC acc[CONV_ROWS][CONV_VECS], const T *const *x, int64_t step,
                                  const T *w) {
    const T *at[(CONV_ROWS + 2) / 3];
    UNROLL for (int i = 0; i < (mr + 2) / 3; i++) at[i] = x[0] + 3 * i * step;
    for (int64_t c = 0; c < n; c++, w += nv * VL) {
        VEC wv[CONV_VECS];
        UNROLL for (int j = 0; j < nv; j++) wv[j] = FN(load)(w + j * VL);
        UNROLL for (int i = 0; i < mr; i++) {
            const VEC xv = SET1(even ? at[i / 3][i % 3 * step] : x[i][c]);
            UNROLL for (int j = 0; j < nv; j++) acc[i][j] = FMA(xv, wv[j], acc[i][j]);
        }
        UNROLL for (int i = 0; i < (mr + 2) / 3; i++) at[i]++;
    }
}

static ALWAYS void FN(conv_tile)(const int mr, const int nv, const bool even, const weft_conv_gather *g,
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
        UNROLL for (int i = 0; i < mr; i++) x[i] = (const T *)g->x + places[even ? 0 : i].x + run->at;
        FN(conv_steps)(mr, nv, even, run->n, acc, x, g->step, w);
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
        FN(conv_tile)(mr, nv, false, g, places);                                                             \
    }                                                                                                        \
    static void FN(conv_even_##mr##_##nv)(const weft_conv_gather *g, const weft_conv_place *places) {        \
        FN(conv_tile)(mr, nv, true, g, places);                                                              \
    }                                                                                                        \
    static void FN(conv_weight_##mr##_##nv)(const weft_conv_weight *g, const int64_t *rows, T *to) {         \
        FN(conv_weight_tile)(mr, nv, false, g, rows, to);                                                    \
    }                                                                                                        \
    static void FN(conv_joined_##mr##_##nv)(const weft_conv_weight *g, const int64_t *rows, T *to) {         \
        FN(conv_weight_tile)(mr, nv, true, g, rows, to);                                                     \
    }
CONV_LIST(TILE)
#undef TILE

/* Of rows of g->row pixels, which are even, tiles are parts where they fill one. */
static void FN(conv_gather)(const weft_conv_gather *g, int64_t nv, const weft_conv_place *places,
                            int64_t count) {
    static void (*const table[CONV_VECS + 1][CONV_ROWS + 1][2])(const weft_conv_gather *,
                                                                const weft_conv_place *) = {
#define TILE(mr, nv) [nv][mr] = {FN(conv_tile_##mr##_##nv), FN(conv_even_##mr##_##nv)},
        CONV_LIST(TILE)
#undef TILE
    };
    const bool even = g->row >= CONV_ROWS;
    const int64_t each = even ? g->row : count, rows = count / each;
    const weft_split tiles = split_of(each, CONV_ROWS);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t t = 0; t < tiles.count; t++) {
            ask_ahead(g->ahead, g->ahead_bytes, r * tiles.count + t, rows * tiles.count);
            table[nv][split_size(tiles, t)][even](g, places + r * each + split_at(tiles, t));
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
#define EACH_VECS   2
#define EACH_SIDE   3

/* part: n channels of one vector. */
static ALWAYS VEC FN(some)(const bool part, const T *p, int64_t n) {
    return part ? LOAD_PART(p, n) : FN(load)(p);
}

static ALWAYS void FN(each_pixels)(const int mr, const int nv, const bool part, const weft_conv_each *g,
                                   int64_t c, int64_t pixel) {
    VEC acc[EACH_PIXELS][EACH_VECS];
    const int64_t n = g->channels - c;
    const T *x = (const T *)g->x + pixel * g->step + c, *w = (const T *)g->w + c;
    UNROLL for (int i = 0; i < mr; i++) { UNROLL for (int v = 0; v < nv; v++) acc[i][v] = SET1((T)0); }
    for (int64_t row = 0; row < g->rows; row++)
        for (int64_t column = 0; column < g->columns; column++) {
            const T *from = x + row * g->x_row + column * g->x_column,
                    *by = w + row * g->w_row + column * g->w_column;
            VEC wv[EACH_VECS];
            UNROLL for (int v = 0; v < nv; v++) wv[v] = FN(load)(by + v * VL);
            UNROLL for (int i = 0; i < mr; i++) {
                UNROLL for (int v = 0; v < nv; v++) acc[i][v] =
                    FMA(FN(some)(part, from + i * g->step + v * VL, n), wv[v], acc[i][v]);
            }
        }
    UNROLL for (int i = 0; i < mr; i++) {
        UNROLL for (int v = 0; v < nv; v++) {
            T *to = (T *)g->y + (pixel + i) * g->y_step + c + v * VL;
            if (g->add) acc[i][v] = FN(some)(part, to, n) + acc[i][v];
            if (part)
                STORE_PART(to, acc[i][v], n);
            else
                FN(store)(to, acc[i][v]);
        }
    }
}

/* Asks for pixels p..end-1 of the rows that are read next. */
static ALWAYS void FN(each_ahead)(const weft_conv_each *g, int64_t p, int64_t end) {
    const int64_t line = 64 / (int64_t)sizeof(T);
    const T *x = (const T *)g->x + g->x_ahead, *y = (const T *)g->y + g->y_ahead;
    for (int64_t at = p * g->step; g->x_ahead && at < end * g->step; at += line)
        __builtin_prefetch(x + at, 0, 2);
    for (int64_t at = p * g->y_step; g->y_ahead && at < end * g->y_step; at += line)
        __builtin_prefetch(y + at, 0, 2);
}

static ALWAYS void FN(each_channels)(const int mr, const weft_conv_each *g, int64_t pixel) {
    int64_t c = 0;
    for (; c + EACH_VECS * VL <= g->channels; c += EACH_VECS * VL)
        FN(each_pixels)(mr, EACH_VECS, false, g, c, pixel);
    for (; c + VL <= g->channels; c += VL) FN(each_pixels)(mr, 1, false, g, c, pixel);
    if (c < g->channels) FN(each_pixels)(mr, 1, true, g, c, pixel);
}

static void FN(conv_each)(const weft_conv_each *g) {
    const int64_t across = g->columns < DEPTH ? g->columns : DEPTH, down = DEPTH / (across + !across);
    weft_conv_each h = *g;
    int64_t row = 0;
    do {
        int64_t column = 0;
        h.rows = g->rows - row < down ? g->rows - row : down;
        do {
            int64_t p = 0;
            h.columns = g->columns - column < across ? g->columns - column : across;
            h.x = (const T *)g->x + row * g->x_row + column * g->x_column;
            h.w = (T *)g->w + row * g->w_row + column * g->w_column;
            for (; p + EACH_PIXELS <= g->pixels; p += EACH_PIXELS) {
                if (!h.add) FN(each_ahead)(g, p, p + EACH_PIXELS);
                FN(each_channels)(EACH_PIXELS, &h, p);
            }
            for (; p < g->pixels; p++) FN(each_channels)(1, &h, p);
            h.add = true;
            column += across;
        } while (column < g->columns);
        row += down;
    } while (row < g->rows);
}

/* Adds to rows x columns taps of the sums, which w is. */
static ALWAYS void FN(each_taps)(const int rows, const int columns, const bool part, const weft_conv_each *g,
                                 int64_t row, int64_t column, int64_t c) {
    VEC acc[EACH_SIDE][EACH_SIDE];
    const int64_t n = g->channels - c;
    const T *x[EACH_SIDE], *y = (const T *)g->y + c;
    UNROLL for (int i = 0; i < rows; i++) {
        x[i] = (const T *)g->x + (row + i) * g->x_row + column * g->x_column + c;
        UNROLL for (int j = 0; j < columns; j++) acc[i][j] = SET1((T)0);
    }
    for (int64_t p = 0, at = 0; p < g->pixels; p++, at += g->step, y += g->y_step) {
        const VEC yv = FN(some)(part, y, n);
        UNROLL for (int i = 0; i < rows; i++) {
            UNROLL for (int j = 0; j < columns; j++) acc[i][j] =
                FMA(FN(some)(part, x[i] + at + j * g->x_column, n), yv, acc[i][j]);
        }
    }
    T *to = (T *)g->w + row * g->w_row + column * g->w_column + c;
    UNROLL for (int i = 0; i < rows; i++) {
        UNROLL for (int j = 0; j < columns; j++) {
            T *at = to + i * g->w_row + j * g->w_column;
            FN(store)(at, FN(load)(at) + acc[i][j]);
        }
    }
}

/* Pixels that are read next are asked for a part at a time, once for all taps. */
#define TAPS(rows, columns)                                                                                  \
    static void FN(each_taps_##rows##_##columns)(const weft_conv_each *g, int64_t row, int64_t column) {     \
        int64_t c = 0;                                                                                       \
        for (; c < g->channels; c += VL) {                                                                   \
            if (row + column == 0)                                                                           \
                FN(each_ahead)(g, g->pixels * c / g->channels, g->pixels * (c + VL) / g->channels);          \
            if (c + VL <= g->channels)                                                                       \
                FN(each_taps)(rows, columns, false, g, row, column, c);                                      \
            else                                                                                             \
                FN(each_taps)(rows, columns, true, g, row, column, c);                                       \
        }                                                                                                    \
    }
#define TAPS_LIST(X) X(1, 1) X(1, 2) X(1, 3) X(2, 1) X(2, 2) X(2, 3) X(3, 1) X(3, 2) X(3, 3)
TAPS_LIST(TAPS)
#undef TAPS

static void FN(conv_each_weight)(const weft_conv_each *g) {
    static void (*const table[EACH_SIDE + 1][EACH_SIDE + 1])(const weft_conv_each *, int64_t, int64_t) = {
#define TAPS(rows, columns) [rows][columns] = FN(each_taps_##rows##_##columns),
        TAPS_LIST(TAPS)
#undef TAPS
    };
    const weft_split down = split_of(g->rows, EACH_SIDE), across = split_of(g->columns, EACH_SIDE);
    for (int64_t i = 0; i < down.count; i++)
        for (int64_t j = 0; j < across.count; j++)
            table[split_size(down, i)][split_size(across, j)](g, split_at(down, i), split_at(across, j));
}

#undef TAPS_LIST
#undef EACH_PIXELS
#undef EACH_VECS
#undef EACH_SIDE

static void FN(conv_pack)(void *to, int64_t width, const void *from, int64_t s_i, int64_t s_k, int64_t rows,
                          int64_t k) {
    FN(pack)(to, width, from, s_i, s_k, rows, k);
}

#undef VEC
