/* Products on tensor cores (CUDA): a group of WARPS_M x WARPS_N warps holds a tile of c in its registers, in the
 * fragments of prelude/tensor.cu, and reads a and b in parts DEPTH deep through local memory, STAGES of them, all but
 * one of which are on their variant while one is multiplied (MORE: the launch asks for the memory). A_LINES, B_LINES: the unit stride of a is along k, that of b
 * along n. A_WIDTH, B_WIDTH: elements that may be copied at once as far as strides go. FORMAT_SAME: f32 is rounded to TF32.
 * The order of adding is the hardware's within a step of k, then that of k; SHORT: sums over CHUNK products each are
 * added, as in the other sources of products, since tensor cores round each sum towards 0. Behind storage.cl and
 * matmul.cl. */
#define UNIT   (16 / (int)sizeof(T)) /* elements of a piece: what is copied at once, and a row of a matrix */
#define STEP   (2 * UNIT)            /* of k, that one instruction multiplies */
#define DEPTH  (PIECES * UNIT)
#define WARP_M (TILE_M / WARPS_M)
#define WARP_N (TILE_N / WARPS_N)
#define PART_A (TILE_M * PIECES) /* pieces of a part of a */
#define PART_B (TILE_N * PIECES)

/* Where a piece of a row lies among the `across` pieces of it, so that neither copies nor ldmatrix, which reads the same
 * piece of 8 rows, meet in a bank. */
#define PLACE(row, piece, across)                                                                            \
    ((row) * (across) + ((across) >= 8 ? (piece) ^ ((row)&7) : (piece) ^ ((row) / (8 / (across)) % (across))))
/* Rows of f32 along n or m are read by words: 8 of each of 4 rows. */
#define PLACE_WORDS(row, piece, across) ((row) * (across) + ((piece) ^ ((row)&3) << 1))
#if FORMAT == FORMAT_SAME
#define PLACE_TURNED PLACE_WORDS
#else
#define PLACE_TURNED PLACE
#endif

/* `count` elements of a piece, of which there are UNIT in local memory, by copies of `width` of them. */
INLINE void bring_piece(const W_GLOBAL T *from, int count, int width, uint to) {
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

/* Elements of 16 bits that lie anywhere. */
INLINE void bring_each(const W_GLOBAL T *from, int count, uint to) {
    union {
        uint4 all;
        T each[UNIT];
    } piece;
#pragma unroll
    for (int i = 0; i < UNIT; i++) piece.each[i] = i < count ? from[i] : (T)0;
    *(uint4 *)__cvta_shared_to_generic(to) = piece.all;
}

/* This item's pieces of a part, of lines `line` apart along k or each k `line` apart, all at the same place of their
 * rows; zeros where k ends, anything in lines that c has not. `whole`: nothing is outside. */
INLINE void bring(const W_GLOBAL T *from, STRIDE line, int along_k, int size, int lines, int depth, int whole, int width,
                  uint to) {
    const int across = along_k ? PIECES : size / UNIT, piece = w_item(0) % across, first = w_item(0) / across;
    const int left = (along_k ? depth : lines) - piece * UNIT, count = whole ? UNIT : max(0, min(left, UNIT));
    to += 16 * (along_k ? PLACE(first, piece, across) : PLACE_TURNED(first, piece, across));
#pragma unroll
    for (int i = 0; i < size * PIECES / ITEMS; i++) { /* the place repeats after 8 rows, or 4 by words */
        const int row = first + i * (ITEMS / across), some = whole || along_k || row < depth ? count : 0;
        const W_GLOBAL T *const place = from + ((along_k ? min(row, lines - 1) : row) * line + piece * UNIT);
        if (width > 1 || FORMAT == FORMAT_SAME)
            bring_piece(place, some, width, to + 16 * ITEMS * i);
        else
            bring_each(place, some, to + 16 * ITEMS * i);
    }
}

/* 16 lines from `line` on, of step `step`: a fragment of a, or two of b with 8 lines each, whose words lie together. */
INLINE void fragment(uint from, int of_b, int along_k, int size, int line, int step, uint *to) {
    const int lane = w_item(0) % 32, across = along_k ? PIECES : size / UNIT, row = lane % 8;
    const int lower = of_b ? lane / 16 : lane / 8 % 2, second = of_b ? lane / 8 % 2 : lane / 16; /* of 8 lines, pieces */
    if (along_k) {
        w_ldmatrix4(to, from + 16 * PLACE(line + lower * 8 + row, 2 * step + second, across));
#if FORMAT == FORMAT_SAME
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int k = step * STEP + (of_b ? i % 2 : i / 2) * 4 + lane % 4;
            const int at = line + (of_b ? i / 2 : i % 2) * 8 + lane / 4;
            to[i] = ((const W_LOCAL uint *)__cvta_shared_to_generic(from))[PLACE_WORDS(k, at / 4, across) * 4 + at % 4];
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

#if FORMAT == FORMAT_SAME
#define MMA w_mma_tf32
#elif FORMAT == FORMAT_F16
#define MMA w_mma_f16
#else
#define MMA w_mma_bf16
#endif

INLINE void multiply(uint a, uint b, int down, int across, float sum[WARP_M / 16][WARP_N / 8][4]) {
#pragma unroll
    for (int step = 0; step < PIECES / 2; step++) {
        uint x[WARP_M / 16][4], y[WARP_N / 16][4];
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++) fragment(a, 0, A_LINES, TILE_M, down * WARP_M + i * 16, step, x[i]);
#pragma unroll
        for (int j = 0; j < WARP_N / 16; j++) fragment(b, 1, !B_LINES, TILE_N, across * WARP_N + j * 16, step, y[j]);
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
            for (int j = 0; j < WARP_N / 8; j++) MMA(sum[i][j], x[i], y[j / 2] + j % 2 * 2);
    }
}

#if SUMS
#if TILE_M > ITEMS
#error an item has one line at most
#endif
/* One part of a line of a, added to the sum. */
INLINE float add_line(uint from, int line, float sum) {
    const W_LOCAL T *const part = (const W_LOCAL T *)__cvta_shared_to_generic(from);
    for (int k = 0; k < DEPTH; k++) {
        const int at = A_LINES ? PLACE(line, k / UNIT, PIECES) * UNIT + k % UNIT
                               : PLACE_TURNED(k, line / UNIT, TILE_M / UNIT) * UNIT + line % UNIT;
        sum += LOAD(part, at);
    }
    return sum;
}
#endif

/* ---- sums into memory: 16 rows of a warp at a time through local memory, so that neighbours write together ---- */

#define PITCH (WARP_N + 8) /* floats from row to row */
#define EACH  (16 / (int)sizeof(O))

/* Rows and columns count from the first of the 16. */
INLINE void store_each(const W_LOCAL float *from, int row0, int column0, int rows, int cols, TO) {
    for (int e = w_item(0) % 32; e < 16 * WARP_N; e += 32) {
        const int row = e / WARP_N, at = e % WARP_N;
        if (row < rows && at < cols) PUT(row0 + row, column0 + at, from[row * PITCH + at]);
    }
}

#if EPILOGUE
#define STORE_ROWS store_each
#else
INLINE void store_wide(const W_LOCAL float *from, int row0, int column0, int rows, int cols, TO) {
    union {
        uint4 all;
        O each[EACH];
    } u;
    for (int e = w_item(0) % 32; e < 16 * WARP_N / EACH; e += 32) {
        const int row = e / (WARP_N / EACH), at = e % (WARP_N / EACH) * EACH;
        if (row >= rows) continue;
#pragma unroll
        for (int i = 0; i < EACH; i++) KEEP(u.each, i, from[row * PITCH + at + i]);
        W_GLOBAL O *const to = c + (row0 + row) * c_m + column0 + at;
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

/* Groups that run at one time share what caches hold: they go through bands of c so many blocks high, column by column. */
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

/* By copies as wide as strides and the place of the operand allow. */
#define BRING(from, line, along_k, size, lines, depth, width, to)                                            \
    if ((width) == 1 || ((ulong)(from) & ((width) * sizeof(T) - 1)) != 0)                                    \
        bring(from, line, along_k, size, lines, depth, 0, 1, to);                                            \
    else if ((depth) < DEPTH || !((along_k) || (lines) == (size)))                                           \
        bring(from, line, along_k, size, lines, depth, 0, width, to);                                        \
    else                                                                                                     \
        bring(from, line, along_k, size, lines, depth, 1, width, to)

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
    const uint room = w_local_at(pieces);
    const int warp = w_item(0) / 32, lane = w_item(0) % 32, down = warp / WARPS_N, across = warp % WARPS_N;
    float sum[WARP_M / 16][WARP_N / 8][4];
#if SHORT
    float total[WARP_M / 16][WARP_N / 8][4];
#endif
#pragma unroll
    for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
        for (int j = 0; j < WARP_N / 8; j++)
#pragma unroll
            for (int l = 0; l < 4; l++) {
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
    for (int p0 = k0 - (STAGES - 1) * DEPTH; p0 < k1; p0 += DEPTH) {
        if (p0 >= k0) {
            w_copy_wait<STAGES - 2>();
            w_barrier(); /* others' copies are there too, and nobody reads the stage that is filled next */
        }
        if (next < k1) {
            const uint to = room + 16 * filled * (PART_A + PART_B);
            BRING(a + next * a_k, A_LINES ? a_m : a_k, A_LINES, TILE_M, rows, k1 - next, A_WIDTH, to);
            BRING(b + next * b_k, B_LINES ? b_k : b_n, !B_LINES, TILE_N, cols, k1 - next, B_WIDTH, to + 16 * PART_A);
        }
        w_copy_group(); /* even of nothing: groups are counted */
        next += DEPTH;
        filled = filled + 1 == STAGES ? 0 : filled + 1;
        if (p0 < k0) continue;
        const uint from = room + 16 * stage * (PART_A + PART_B);
        multiply(from, from + 16 * PART_A, down, across, sum);
#if SUMS
        if (adds) line_sum = add_line(from, w_item(0), line_sum);
        if ((p0 + DEPTH - k0) % CHUNK == 0 || p0 + DEPTH >= k1) line_total += line_sum, line_sum = 0;
#endif
        stage = stage + 1 == STAGES ? 0 : stage + 1;
#if SHORT
        if ((p0 + DEPTH - k0) % CHUNK != 0 && p0 + DEPTH < k1) continue;
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
            for (int j = 0; j < WARP_N / 8; j++)
#pragma unroll
                for (int l = 0; l < 4; l++) total[i][j][l] += sum[i][j][l], sum[i][j][l] = 0;
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
        for (int j = 0; j < WARP_N / 8; j++)
#pragma unroll
            for (int l = 0; l < 4; l++)
                mine[(lane / 4 + l / 2 * 8) * PITCH + j * 8 + lane % 4 * 2 + l % 2] = ALL[i][j][l];
        w_warp();
        const int row0 = down * WARP_M + i * 16, column0 = across * WARP_N;
        STORE_ROWS(mine, row0, column0, rows - row0, cols - column0, HERE);
        w_warp();
    }
}
