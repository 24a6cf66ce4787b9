/* Matmul on tensor cores (CUDA) and matrix cores (HIP). A work-group of WARPS_M x WARPS_N warps computes a tile of
 * TILE_M x TILE_N elements of c. Each warp holds WARP_M x WARP_N sums in registers, as fragments of 16 x W_CORE_ACROSS:
 *
 *                     TILE_N
 *              +--------+--------+
 *              | warp 0 | warp 1 |   WARP_M rows        one warp:  +--+--+--+--+
 *     TILE_M   +--------+--------+                                 |  |  |  |  |  16 rows
 *              | warp 2 | warp 3 |                                 +--+--+--+--+
 *              +--------+--------+                                 |  |  |  |  |
 *                WARP_N columns                                    +--+--+--+--+
 *                                                                   W_CORE_ACROSS columns
 *
 * prelude/tensor.cu (NVIDIA) and prelude/matrix.cu (AMD) define what differs: the lanes of a warp, where an element of
 * a fragment lies, matmuls of fragments, and copies. On HIP a warp is a whole wavefront, of 32 or 64 lanes.
 *
 * a and b are read through local memory, DEPTH steps of k at a time. Local memory is a ring of STAGES parts:
 *
 *     | a, b of part p | part p + 1 | ... |     while part p is multiplied, asynchronous copies fill the others
 *
 * Where copies are not asynchronous (W_COPY_HELD), registers hold the next part meanwhile. put_held stores it then.
 *
 * Memory is handled in pieces of 16 bytes (UNIT elements). PLACE exchanges the pieces within a row, so that copies and
 * ldmatrix, which reads the same piece of 8 rows, meet no bank conflicts.
 *
 * Order of additions: that of the hardware within a STEP of k, then that of k. SHORT: sums over CHUNK products are
 * added to a total, as in the other matmul templates, since tensor cores round each sum towards 0.
 *
 * Definitions by matmul.c:
 *
 *     A_LINES, B_LINES    a has stride 1 along k, else along m; b has stride 1 along n, else along k
 *     A_WIDTH, B_WIDTH    elements that one copy may move, as far as strides allow
 *     MORE                the launch asks for the local memory, since it is more than source may declare
 *
 * With FORMAT_SAME, f32 is rounded to TF32. With IMAGE, a or b is windows of images: each piece has an address of its
 * own, or is outside of the image. Comes after storage.cl, image.cl and matmul.cl. */
#define UNIT   (16 / (int)sizeof(T)) /* elements of a piece: of one copy, and of a row of a matrix of ldmatrix */
#define STEP   (2 * UNIT)            /* steps of k of one instruction */
#define DEPTH  (PIECES * UNIT)
#define WARP_M (TILE_M / WARPS_M)
#define WARP_N (TILE_N / WARPS_N)
#define PART_A (TILE_M * PIECES) /* pieces of a part of a */
#define PART_B (TILE_N * PIECES)

/* The place of a piece, in local memory. A row has `across` pieces. */
#define PLACE(row, piece, across)                                                                            \
    ((row) * (across) + ((across) >= 8 ? (piece) ^ ((row)&7) : (piece) ^ ((row) / (8 / (across)) % (across))))
/* The same for rows of f32 along n or m. They are read by words: 8 words of each of 4 rows. */
#define PLACE_WORDS(row, piece, across) ((row) * (across) + ((piece) ^ ((row)&3) << 1))
#if FORMAT == FORMAT_SAME
#define PLACE_TURNED PLACE_WORDS
#else
#define PLACE_TURNED PLACE
#endif

/* A copy goes to local memory, or to registers. BEGIN_AT finds the work-item's first piece of a part, NEXT_AT its
 * others. FILL: the place for a part of a; a part of b begins BEHIND_A bytes later. */
#ifdef W_COPY_HELD
#define BEGIN_AT(to, place)
#define NEXT_AT(to, i) ((to) + 16 * (i))
#define FILL(part)     ((w_copy_place)held)
#define BEHIND_A       (16 * (PART_A / ITEMS))
#else
#define BEGIN_AT(to, place) (to) += 16 * (place)
#define NEXT_AT(to, i)      ((to) + 16 * ITEMS * (i))
#define FILL(part)          (part)
#define BEHIND_A            (16 * PART_A)
#endif

/* Copies the first `count` elements of a piece, `width` at a time; zeros after them. */
INLINE void bring_piece(const W_GLOBAL T *from, int count, int width, w_copy_place to) {
    const int size = (int)sizeof(T);
    if (width == UNIT) {
        w_copy16(to, from, count * size);
        return;
    }
#pragma unroll
    for (int i = 0; i < UNIT; i += width) {
        const int some = max(0, min(count - i, width)) * size;
        if (width * size == 8)
            w_copy8(to + i * size, from + i, some);
        else
            w_copy4(to + i * size, from + i, some);
    }
}

/* Does the same for elements at any address, one by one. */
INLINE void bring_each(const W_GLOBAL T *from, int count, w_copy_place to) {
    union {
        uint4 all;
        T each[UNIT];
    } piece;
#pragma unroll
    for (int i = 0; i < UNIT; i++) piece.each[i] = i < count ? from[i] : (T)0;
    w_copy_put(to, piece.all);
}

/* Copies this work-item's pieces of a part. They all have the same place in their rows. `line` is the stride of the
 * dimension that is not contiguous. Past the end of k there are zeros; lines that c does not have hold anything.
 * `whole`: nothing is outside of the operand. */
INLINE void bring(const W_GLOBAL T *from, STRIDE line, int along_k, int size, int lines, int depth, int whole,
                  int width, w_copy_place to) {
    const int across = along_k ? PIECES : size / UNIT, piece = w_item(0) % across, first = w_item(0) / across;
    const int left = (along_k ? depth : lines) - piece * UNIT, count = whole ? UNIT : max(0, min(left, UNIT));
    BEGIN_AT(to, along_k ? PLACE(first, piece, across) : PLACE_TURNED(first, piece, across));
#pragma unroll
    for (int i = 0; i < size * PIECES / ITEMS; i++) { /* PLACE repeats after 8 rows, or 4 by words */
        const int row = first + i * (ITEMS / across), some = whole || along_k || row < depth ? count : 0;
        const W_GLOBAL T *const place = from + ((along_k ? min(row, lines - 1) : row) * line + piece * UNIT);
        if (width > 1 || FORMAT == FORMAT_SAME)
            bring_piece(place, some, width, NEXT_AT(to, i));
        else
            bring_each(place, some, NEXT_AT(to, i));
    }
}

#if IMAGE
/* ---- windows of images (conv/image.cl); width is UNIT if the elements of a piece are channels of one pixel ---- */

typedef union w_lump {
    uint4 all;
    T each[UNIT];
} w_lump;
INLINE void put_lump(w_lump lump, w_copy_place to) { w_copy_put(to, lump.all); }

/* Tap and channel of a window: the steps to its row and column, and to its element. */
typedef struct w_tap {
    int row, column;
    STRIDE at;
} w_tap;
INLINE w_tap tap_at(const w_image *v, int p) {
    const int tap = quotient(p, v->by_depth), tap_row = quotient(tap, v->by_taps);
    w_tap to;
    to.row = tap_row * v->dilation[0], to.column = (tap - tap_row * v->taps[1]) * v->dilation[1];
    to.at = ((STRIDE)to.row * v->source[1] + to.column) * v->channels + (p - tap * v->depth);
    return to;
}

/* The same for the start of a window. */
INLINE w_tap start_of(const w_image *v, int p, int exists) {
    const w_window w = window_at(v, p);
    w_tap to;
    to.row = exists ? w.row : NOWHERE, to.column = w.column;
    to.at = (STRIDE)w.image + ((STRIDE)w.row * v->source[1] + w.column) * v->channels;
    return to;
}

/* Returns the element where a window and a tap meet, or 0 if it is outside of the image. */
INLINE T meet(const W_GLOBAL T *x, const w_image *v, w_tap window, w_tap tap) {
    return in_image(v, window.row + tap.row, window.column + tap.column) ? x[window.at + tap.at] : (T)0;
}

/* Copies the piece there. */
INLINE void bring_met(const W_GLOBAL T *x, const w_image *v, w_tap window, w_tap tap, w_copy_place to) {
    const int inside = in_image(v, window.row + tap.row, window.column + tap.column);
    w_copy16(to, x + (inside ? window.at + tap.at : 0), inside ? 16 : 0);
}

#if IMAGE == WEFT_GPU_WINDOWS_B
#define WINDOWS (TILE_N * PIECES / ITEMS) /* pieces of this work-item in a part */
#define ACROSS  (TILE_N / UNIT)

/* Copies this work-item's pieces of b from k on. Lines are windows; all its pieces are the same taps, from column `n`
 * of b on. `columns` of them exist. */
INLINE void bring_windows(const W_GLOBAL T *x, const w_image *v, int n, int columns, int k, int k1, int width,
                          w_copy_place to) {
    const int piece = w_item(0) % ACROSS, first = w_item(0) / ACROSS;
    w_tap starts[WINDOWS];
    w_lump lumps[WINDOWS];
    BEGIN_AT(to, PLACE_TURNED(first, piece, ACROSS));
#pragma unroll
    for (int i = 0; i < WINDOWS; i++) {
        const int p = k + first + i * (ITEMS / ACROSS);
        starts[i] = start_of(v, min(p, k1 - 1), p < k1 && columns > 0);
        if (width == UNIT) bring_met(x, v, starts[i], tap_at(v, n), NEXT_AT(to, i));
    }
    if (width == UNIT) return;
#pragma unroll
    for (int e = 0; e < UNIT; e++) {
        const w_tap tap = tap_at(v, n + e);
#pragma unroll
        for (int i = 0; i < WINDOWS; i++) lumps[i].each[e] = e < columns ? meet(x, v, starts[i], tap) : (T)0;
    }
#pragma unroll
    for (int i = 0; i < WINDOWS; i++) put_lump(lumps[i], NEXT_AT(to, i));
}
#else
#define WINDOWS (TILE_M * PIECES / ITEMS)

/* Copies this work-item's pieces of a from k on. Lines begin at `starts`; all its pieces are the same taps. */
INLINE void bring_windows(const W_GLOBAL T *x, const w_image *v, const w_tap *starts, int k, int k1, int width,
                          w_copy_place to) {
    const int piece = w_item(0) % PIECES, p = k + piece * UNIT;
    w_lump lumps[WINDOWS];
    BEGIN_AT(to, PLACE(w_item(0) / PIECES, piece, PIECES));
    if (width == UNIT) {
        w_tap tap = tap_at(v, min(p, k1 - 1));
        if (p >= k1) tap.row = NOWHERE;
#pragma unroll
        for (int i = 0; i < WINDOWS; i++) bring_met(x, v, starts[i], tap, NEXT_AT(to, i));
        return;
    }
#pragma unroll
    for (int e = 0; e < UNIT; e++) {
        const w_tap tap = tap_at(v, min(p + e, k1 - 1));
#pragma unroll
        for (int i = 0; i < WINDOWS; i++) lumps[i].each[e] = p + e < k1 ? meet(x, v, starts[i], tap) : (T)0;
    }
#pragma unroll
    for (int i = 0; i < WINDOWS; i++) put_lump(lumps[i], NEXT_AT(to, i));
}
#endif

#if IMAGE == WEFT_GPU_WINDOWS_A_BACK
/* Copies this work-item's pieces of the weight, whose lines are in reverse order of the taps. */
INLINE void bring_weight(const W_GLOBAL T *from, const w_image *v, STRIDE line, int columns, int k, int k1, int width,
                         w_copy_place to) {
    const int across = TILE_N / UNIT, piece = w_item(0) % across, first = w_item(0) / across;
    const int count = max(0, min(columns - piece * UNIT, UNIT));
    BEGIN_AT(to, PLACE_TURNED(first, piece, across));
#pragma unroll
    for (int i = 0; i < TILE_N * PIECES / ITEMS; i++) {
        const int p = k + first + i * (ITEMS / across), some = p < k1 ? count : 0;
        const W_GLOBAL T *const place = from + (some ? (STRIDE)weight_at(v, p, line) + piece * UNIT : 0);
        if (width == UNIT)
            w_copy16(NEXT_AT(to, i), place, some * (int)sizeof(T));
        else
            bring_each(place, some, NEXT_AT(to, i));
    }
}
#endif
#endif

#ifdef W_COPY_HELD
/* Stores the pieces of a part of a or b that this work-item holds. */
INLINE void put_held(const uint4 *held, int along_k, int size, w_address to) {
    const int across = along_k ? PIECES : size / UNIT, piece = w_item(0) % across, first = w_item(0) / across;
    to += 16 * (along_k ? PLACE(first, piece, across) : PLACE_TURNED(first, piece, across));
#pragma unroll
    for (int i = 0; i < size * PIECES / ITEMS; i++) *w_local<uint4>(to + 16 * ITEMS * i) = held[i];
}
/* The same for a and b, if the loop has brought a part. */
#define PUT_HELD()                                                                                           \
    if (next - DEPTH < k1) {                                                                                 \
        const w_address part_ = room + 16 * (filled == 0 ? STAGES - 1 : filled - 1) * (PART_A + PART_B);     \
        put_held(held, A_LINES, TILE_M, part_);                                                              \
        put_held(held + PART_A / ITEMS, !B_LINES, TILE_N, part_ + 16 * PART_A);                              \
    }
#else
#define PUT_HELD()
#endif

#ifdef W_CORE_K
/* Loads 16 lines from `line` on, for step `step` of k: a fragment of a or b. A lane has one line, and 2 * W_CORE_WORDS
 * elements of it, from W_CORE_K on. */
INLINE void fragment(w_address from, int of_b, int along_k, int size, int line, int step, uint *to) {
    const int lane = w_item(0) % W_CORE_LANES, across = along_k ? PIECES : size / UNIT;
    const int at = line + lane % 16, first = step * STEP + W_CORE_K(lane);
    if (along_k) {
#pragma unroll
        for (int i = 0; i < W_CORE_WORDS; i += W_CORE_READ)
            w_core_read(to + i, from + 16 * PLACE(at, (first + 2 * i) / UNIT, across) + first % UNIT * 2);
    } else {
#pragma unroll
        for (int i = 0; i < W_CORE_WORDS; i++) {
            const w_address column = from + at % UNIT * 2;
            to[i] = w_core_pair(column + 16 * PLACE_TURNED(first + 2 * i, at / UNIT, across),
                                column + 16 * PLACE_TURNED(first + 2 * i + 1, at / UNIT, across));
        }
    }
}
#else
/* Loads 16 lines from `line` on, for step `step` of k: a fragment of a, or two fragments of b with 8 lines each. */
INLINE void fragment(w_address from, int of_b, int along_k, int size, int line, int step, uint *to) {
    const int lane = w_item(0) % 32, across = along_k ? PIECES : size / UNIT, row = lane % 8;
    /* which of two: the lower 8 lines, the second piece */
    const int lower = of_b ? lane / 16 : lane / 8 % 2, second = of_b ? lane / 8 % 2 : lane / 16;
    if (along_k) {
        w_ldmatrix4(to, from + 16 * PLACE(line + lower * 8 + row, 2 * step + second, across));
#if FORMAT == FORMAT_SAME
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = step * STEP + (of_b ? i % 2 : i / 2) * 4 + lane % 4;
            const int at = line + (of_b ? i / 2 : i % 2) * 8 + lane / 4;
            to[i] = w_local<const uint>(from)[PLACE_WORDS(k, at / 4, across) * 4 + at % 4];
        }
    }
#pragma unroll
    for (int i = 0; i < 4; i++) to[i] = w_tf32(as_float(to[i]));
#else
    } else {
        w_ldmatrix4_turned(to, from + 16 * PLACE(step * STEP + second * 8 + row, line / UNIT + lower, across));
    }
#endif
}
#endif

#if FORMAT == FORMAT_SAME
#define MMA w_mma_tf32
#elif FORMAT == FORMAT_F16
#define MMA w_mma_f16
#else
#define MMA w_mma_bf16
#endif

/* The sums of a lane. */
#define SUMS_OF(name) float name[WARP_M / 16][WARP_N / W_CORE_ACROSS][W_CORE_SUMS]

/* sum += a b, for one part of k and the rows and columns of this warp. */
INLINE void multiply(w_address a, w_address b, int down, int across, SUMS_OF(sum)) {
#pragma unroll
    for (int step = 0; step < PIECES / 2; step++) {
        uint x[WARP_M / 16][W_CORE_WORDS], y[WARP_N / 16][W_CORE_WORDS];
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++) fragment(a, 0, A_LINES, TILE_M, down * WARP_M + i * 16, step, x[i]);
#pragma unroll
        for (int j = 0; j < WARP_N / 16; j++) fragment(b, 1, !B_LINES, TILE_N, across * WARP_N + j * 16, step, y[j]);
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
            for (int j = 0; j < WARP_N / W_CORE_ACROSS; j++)
                MMA(sum[i][j], x[i], y[j * W_CORE_ACROSS / 16] + j % (16 / W_CORE_ACROSS) * 2);
        W_CORE_NEXT();
    }
}

#if SUMS
#if TILE_M > ITEMS
#error an item has one line at most
#endif
/* Returns `sum` plus one part of a row of a. */
INLINE float add_line(w_address from, int line, float sum) {
    const W_LOCAL T *const part = w_local<const T>(from);
    for (int k = 0; k < DEPTH; k++) {
        const int at = A_LINES ? PLACE(line, k / UNIT, PIECES) * UNIT + k % UNIT
                               : PLACE_TURNED(k, line / UNIT, TILE_M / UNIT) * UNIT + line % UNIT;
        sum += LOAD(part, at);
    }
    return sum;
}
#endif

/* ---- storing the sums: 16 rows of a warp at a time go through local memory, so that writes are contiguous ---- */

#define PITCH (WARP_N + 8) /* floats from row to row */
#define EACH  (16 / (int)sizeof(O))

/* Stores 16 rows element by element. `rows` and `cols` count from the first of them. */
INLINE void store_each(const W_LOCAL float *from, int row0, int column0, int rows, int cols, TO) {
    for (int e = w_item(0) % W_CORE_LANES; e < 16 * WARP_N; e += W_CORE_LANES) {
        const int row = e / WARP_N, at = e % WARP_N;
        if (row < rows && at < cols) PUT(row0 + row, column0 + at, from[row * PITCH + at]);
    }
}

#if EPILOGUE
#define STORE_ROWS store_each
#else
/* Does the same in writes of 16 bytes. Reads of 16 bytes, too, since single floats would be in few banks. */
INLINE void store_wide(const W_LOCAL float *from, int row0, int column0, int rows, int cols, TO) {
    union {
        uint4 all;
        O each[EACH];
    } u;
    union {
        uint4 all[EACH / 4];
        float each[EACH];
    } sums;
    for (int e = w_item(0) % W_CORE_LANES; e < 16 * WARP_N / EACH; e += W_CORE_LANES) {
        const int row = e / (WARP_N / EACH), at = e % (WARP_N / EACH) * EACH;
        if (row >= rows) continue;
#pragma unroll
        for (int i = 0; i < EACH / 4; i++) sums.all[i] = ((const W_LOCAL uint4 *)(from + row * PITCH + at))[i];
#pragma unroll
        for (int i = 0; i < EACH; i++) KEEP(u.each, i, sums.each[i]);
        W_GLOBAL O *const to = c + ROW_AT(row0 + row) * c_m + column0 + at;
        if (at + EACH <= cols)
            *(W_GLOBAL uint4 *)to = u.all;
        else
#pragma unroll
            for (int i = 0; i < EACH; i++)
                if (at + i < cols) to[i] = u.each[i];
    }
}
#define STORE_ROWS(...)                                                                                      \
    if (((ulong)c & 15) == 0 && c_m % EACH == 0)                                                             \
        store_wide(__VA_ARGS__);                                                                             \
    else                                                                                                     \
        store_each(__VA_ARGS__)
#endif

/* ---- the kernel ---- */

/* Work-groups that run at the same time should share what the cache holds. So they go through c in bands of BAND
 * blocks, column by column. */
#define BAND 8
#undef BLOCK_ROW
#undef BLOCK_COLUMN
#if FLAT
#define BLOCK_ID     (w_group(0) % (of.wide * of.high))
#else
#define BLOCK_ID     (w_group(1) * of.wide + w_group(0))
#endif
#define BLOCK_ROW    in_band(&of, BLOCK_ID, 0)
#define BLOCK_COLUMN in_band(&of, BLOCK_ID, 1)
INLINE int in_band(const w_matmul *of, int id, int column) {
    const int wide = of->wide, first = id / (BAND * wide) * BAND;
    const int high = min(BAND, of->high - first), at = id - first * wide;
    return column ? at / high : first + at % high;
}

/* Calls `bring` with copies as wide as the strides and the address of the operand allow. */
#define BRING(from, line, along_k, size, lines, depth, width, to)                                            \
    if ((width) == 1 || ((ulong)(from) & ((width) * sizeof(T) - 1)) != 0)                                    \
        bring(from, line, along_k, size, lines, depth, 0, 1, to);                                            \
    else if ((depth) < DEPTH || !((along_k) || (lines) == (size)))                                           \
        bring(from, line, along_k, size, lines, depth, 0, width, to);                                        \
    else                                                                                                     \
        bring(from, line, along_k, size, lines, depth, 1, width, to)

/* Copies a part of a and of b. BEGIN_PARTS comes before the first one. */
#define LIES(from) (((ulong)(from)&15) == 0)
#define BEGIN_PARTS
#define BRING_A(to) BRING(a + next * a_k, A_LINES ? a_m : a_k, A_LINES, TILE_M, rows, k1 - next, A_WIDTH, to)
#define BRING_B(to) BRING(b + next * b_k, B_LINES ? b_k : b_n, !B_LINES, TILE_N, cols, k1 - next, B_WIDTH, to)
#if IMAGE && IMAGE == WEFT_GPU_WINDOWS_B
#undef BRING_B
#define BRING_B(to)                                                                                          \
    const int mine_ = w_item(0) % ACROSS * UNIT;                                                             \
    if (B_WIDTH > 1 && LIES(b))                                                                              \
        bring_windows(b, view, j0 + mine_, cols - mine_, next, k1, UNIT, to);                                \
    else                                                                                                     \
        bring_windows(b, view, j0 + mine_, cols - mine_, next, k1, 1, to)
#elif IMAGE
#undef BEGIN_PARTS
#undef BRING_A
#define BEGIN_PARTS                                                                                          \
    w_tap starts[WINDOWS];                                                                                   \
    _Pragma("unroll") for (int i = 0; i < WINDOWS; i++) {                                                    \
        const int l = w_item(0) / PIECES + i * (ITEMS / PIECES);                                             \
        starts[i] = start_of(view, i0 + min(l, rows - 1), l < rows);                                         \
    }
#define BRING_A(to)                                                                                          \
    if (A_WIDTH > 1 && LIES(a))                                                                              \
        bring_windows(a, view, starts, next, k1, UNIT, to);                                                  \
    else                                                                                                     \
        bring_windows(a, view, starts, next, k1, 1, to)
#endif
#if IMAGE && IMAGE == WEFT_GPU_WINDOWS_A_BACK
#undef BRING_B
#define BRING_B(to)                                                                                          \
    if (B_WIDTH > 1 && LIES(b))                                                                              \
        bring_weight(b, view, b_k, cols, next, k1, UNIT, to);                                                \
    else                                                                                                     \
        bring_weight(b, view, b_k, cols, next, k1, 1, to)
#endif

#if MORE
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS) {
    W_MORE_SHARED(uint4, pieces);
#else
W_SHARED(matmul) { uint4 pieces[STAGES * (PART_A + PART_B)]; };
W_KERNEL W_ITEMS(ITEMS, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    W_LOCAL uint4 *const pieces = shared->pieces;
#endif
    BEGIN
    const w_address room = w_local_at(pieces);
    const int warp = w_item(0) / W_CORE_LANES, lane = w_item(0) % W_CORE_LANES;
    const int down = warp / WARPS_N, across = warp % WARPS_N;
    SUMS_OF(sum);
#if SHORT
    SUMS_OF(total);
#endif
#ifdef W_COPY_HELD
    uint4 held[(PART_A + PART_B) / ITEMS];
#endif
#pragma unroll
    for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
        for (int j = 0; j < WARP_N / W_CORE_ACROSS; j++)
#pragma unroll
            for (int l = 0; l < W_CORE_SUMS; l++) {
                sum[i][j][l] = 0;
#if SHORT
                total[i][j][l] = 0;
#endif
            }
#if SUMS
    const bool adds = j0 == 0 && w_item(0) < rows;
    float line_sum = 0, line_total = 0;
#endif
    int next = k0, filled = 0, stage = 0;
    BEGIN_PARTS
    for (int p0 = k0 - (STAGES - 1) * DEPTH; p0 < k1; p0 += DEPTH) {
        if (p0 >= k0) {
            w_copy_wait<STAGES - 2>();
            /* copies of other work-items have arrived too, and nobody reads the part that is filled next */
            w_barrier();
        }
        if (next < k1) {
            const w_copy_place to = FILL(room + 16 * filled * (PART_A + PART_B));
            BRING_A(to);
            BRING_B(to + BEHIND_A);
        }
        w_copy_group(); /* even if it is empty: w_copy_wait counts groups */
        next += DEPTH;
        filled = filled + 1 == STAGES ? 0 : filled + 1;
        if (p0 < k0) {
            PUT_HELD();
            continue;
        }
        const w_address from = room + 16 * stage * (PART_A + PART_B);
        multiply(from, from + 16 * PART_A, down, across, sum);
#if SUMS
        if (adds) line_sum = add_line(from, w_item(0), line_sum);
        if ((p0 + DEPTH - k0) % CHUNK == 0 || p0 + DEPTH >= k1) line_total += line_sum, line_sum = 0;
#endif
        PUT_HELD();
        stage = stage + 1 == STAGES ? 0 : stage + 1;
#if SHORT
        if ((p0 + DEPTH - k0) % CHUNK != 0 && p0 + DEPTH < k1) continue;
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
            for (int j = 0; j < WARP_N / W_CORE_ACROSS; j++)
#pragma unroll
                for (int l = 0; l < W_CORE_SUMS; l++) total[i][j][l] += sum[i][j][l], sum[i][j][l] = 0;
#endif
    }
#if SUMS
    if (adds) sums[w_item(0)] = line_total;
#endif
#if SHORT
#define ALL total
#else
#define ALL sum
#endif
    w_copy_wait<0>();
    w_barrier();
    W_LOCAL float *const mine = (W_LOCAL float *)pieces + warp * 16 * PITCH;
#pragma unroll
    for (int i = 0; i < WARP_M / 16; i++) {
#pragma unroll
        for (int j = 0; j < WARP_N / W_CORE_ACROSS; j++)
#pragma unroll
            for (int l = 0; l < W_CORE_SUMS; l++)
                mine[w_core_row(lane, l) * PITCH + j * W_CORE_ACROSS + w_core_column(lane, l)] = ALL[i][j][l];
        w_warp();
        const int row0 = down * WARP_M + i * 16, column0 = across * WARP_N;
        STORE_ROWS(mine, row0, column0, rows - row0, cols - column0, HERE);
        w_warp();
    }
}
