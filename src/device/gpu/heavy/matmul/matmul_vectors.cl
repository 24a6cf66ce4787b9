/* Matmul on CPUs. A work-group is one work-item. Its block of c fits in the cache (Goto and van de Geijn 2008).
 *
 * For each CHUNK of k:
 *
 *     1. pack_a copies the rows of a to x, pack_b the columns of b to y (local memory, type S).
 *     2. `block` goes through tiles of ROWS x COLS sums. `multiply` keeps the sums of a tile in registers:
 *
 *                        y: COLS = 16 WIDTH columns
 *                        +----+----+
 *                        | v0 | v1 |   one row of y, at k
 *                        +----+----+
 *               x +---+  +----+----+
 *        ROWS     | . |  |         |   sum[i][v] += x[i][k] * y[k][v]
 *                 | . |  |   sum   |
 *                 +---+  +----+----+
 *
 *     3. The sums of the block wait in `kept` for the next chunk.
 *
 * A_LINES: a has stride 1 along k, else along m. B_LINES: b has stride 1 along n, else along k. */
#define COLS (WIDTH * 16)
#if A_LINES
#define A_PITCH    (CHUNK + 16) /* not a power of two, so rows fall into different sets of the cache */
#define A_COUNT    (BLOCK_M * A_PITCH)
#define A_AT(i, p) ((i) * A_PITCH + (p))
#else
#define A_PITCH    (BLOCK_M + 16)
#define A_COUNT    (CHUNK * A_PITCH)
#define A_AT(i, p) ((p) * A_PITCH + (i))
#endif

/* Copies `lines` lines of a, of `length` elements along the stride 1. */
W_ONCE_LOCAL void pack_a(const W_GLOBAL T *from, w_i64 line, int lines, int length, W_LOCAL S *to) {
    for (int i = 0; i < lines; i++, from += line, to += A_PITCH) {
        int j = 0;
        for (; j + 16 <= length; j += 16) vstore16(LOAD16(from + j), 0, to + j);
        for (; j < length; j++) to[j] = LOAD(from, j);
    }
}

#if B_LINES
#ifndef B_LINE
#define B_MORE
#define B_LINE(b, line, p) ((b) + (p) * (line))
#endif
/* Copies `depth` rows of b to panels of COLS columns, one after the other. In a panel, rows follow in order of k. */
W_ONCE_LOCAL void pack_b(const W_GLOBAL T *b, w_i64 line, int depth, int cols, W_LOCAL S16 *to B_MORE) {
    for (; cols > 0; cols -= COLS, b += COLS, to += CHUNK * WIDTH) {
        for (int p = 0; p < depth; p++) {
            const W_GLOBAL T *from = B_LINE(b, line, p);
            if (cols >= COLS) {
#pragma unroll
                for (int v = 0; v < WIDTH; v++) to[p * WIDTH + v] = LOAD16(from + v * 16);
            } else {
                W_LOCAL S *one = (W_LOCAL S *)(to + p * WIDTH);
                for (int j = 0; j < COLS; j++) one[j] = j < cols ? LOAD(from, j) : (S)0;
            }
        }
    }
}
#else
/* Transposes 16 x 16 numbers, by a perfect shuffle for each power of two. */
INLINE void transpose(S16 *x) {
    S16 y[16];
#pragma unroll 1
    for (int step = 1; step < 16; step *= 2) {
#pragma unroll
        for (int i = 0; i < 8; i++) {
            y[2 * i].even = x[i].lo;
            y[2 * i].odd = x[i + 8].lo;
            y[2 * i + 1].even = x[i].hi;
            y[2 * i + 1].odd = x[i + 8].hi;
        }
#pragma unroll
        for (int i = 0; i < 16; i++) x[i] = y[i];
    }
}

/* Does the same if b has stride 1 along k. Columns past the last one are copies of it; their sums are not stored. */
W_ONCE_LOCAL void pack_b(const W_GLOBAL T *b, w_i64 line, int depth, int cols, W_LOCAL S16 *to) {
    for (int j0 = 0; j0 < cols; j0 += 16) {
        W_LOCAL S16 *at = to + j0 / COLS * (CHUNK * WIDTH) + j0 % COLS / 16;
        int p = 0;
        for (; p + 16 <= depth; p += 16) {
            S16 x[16];
#pragma unroll
            for (int i = 0; i < 16; i++) x[i] = LOAD16(b + min(j0 + i, cols - 1) * line + p);
            transpose(x);
#pragma unroll
            for (int i = 0; i < 16; i++) at[(p + i) * WIDTH] = x[i];
        }
        for (; p < depth; p++)
            for (int i = 0; i < 16; i++)
                ((W_LOCAL S *)(at + p * WIDTH))[i] = LOAD(b, min(j0 + i, cols - 1) * line + p);
    }
}
#endif

/* sum (ROWS, COLS) += x (ROWS, depth) y (depth, COLS) */
INLINE void multiply(const W_LOCAL S *x, const W_LOCAL S16 *y, int depth, S16 sum[ROWS][WIDTH]) {
    for (int p = 0; p < depth; p++) {
        S16 line[WIDTH];
#pragma unroll
        for (int v = 0; v < WIDTH; v++) line[v] = y[p * WIDTH + v];
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            const S16 one = x[A_AT(i, p)];
#pragma unroll
            for (int v = 0; v < WIDTH; v++) sum[i][v] = MAD(one, line[v], sum[i][v]);
        }
    }
}

/* Adds one chunk of k to the sums of the block. They are kept in `kept`, tile by tile. With the `last` chunk the
 * results are stored. Tiles at an edge are stored from `kept`, and so is everything with an epilogue: its code is
 * long and should be there once. */
W_ONCE_LOCAL void block(const W_LOCAL S *x, const W_LOCAL S16 *y, W_LOCAL S16 *kept, int rows, int cols, int depth,
                int first, int last, TO) {
    for (int j0 = 0; j0 < cols; j0 += COLS, y += CHUNK * WIDTH) {
        for (int i0 = 0; i0 < rows; i0 += ROWS, kept += ROWS * WIDTH) {
            S16 sum[ROWS][WIDTH];
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int v = 0; v < WIDTH; v++) sum[i][v] = 0;
            multiply(x + A_AT(i0, 0), y, depth, sum);
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int v = 0; v < WIDTH; v++) sum[i][v] += first ? (S16)(0) : kept[i * WIDTH + v];
#if !EPILOGUE
            if (last && i0 + ROWS <= rows && j0 + COLS <= cols) {
#pragma unroll
                for (int i = 0; i < ROWS; i++)
#pragma unroll
                    for (int v = 0; v < WIDTH; v++) PUT16(i0 + i, j0 + v * 16, 16, sum[i][v]);
                continue;
            }
#endif
#pragma unroll
            for (int i = 0; i < ROWS; i++)
#pragma unroll
                for (int v = 0; v < WIDTH; v++) kept[i * WIDTH + v] = sum[i][v];
            for (int i = 0; last && i < min(ROWS, rows - i0); i++)
                for (int j = 0; j < min(COLS, cols - j0); j += 16)
                    PUT16(i0 + i, j0 + j, cols - j0 - j, kept[i * WIDTH + j / 16]);
        }
    }
}

#ifndef PACK_A
#define PACK_A(p, depth)                                                                                     \
    pack_a(a + (p) * a_k, A_LINES ? a_m : a_k, A_LINES ? rows : (depth), A_LINES ? (depth) : rows, x);
#endif
#ifndef PACK_B
#define PACK_B(p, depth) pack_b(b + (p) * b_k, B_LINES ? b_k : b_n, depth, cols, y);
#endif
#ifndef B_SLACK /* vectors after y that may be overwritten */
#define B_SLACK 0
#endif

W_SHARED(matmul) { S16 x[A_COUNT / 16], y[CHUNK * BLOCK_N / 16 + B_SLACK], kept[BLOCK_M * BLOCK_N / 16]; };
W_KERNEL W_ITEMS(1, 1, 1) void matmul(PARAMETERS W_ALSO(matmul)) {
    W_MEMORY(matmul)
    W_LOCAL S16 *const y = shared->y, *const kept = shared->kept;
    W_LOCAL S *const x = (W_LOCAL S *)shared->x;
    BEGIN
    int p = k0;
    do {
        const int depth = min(CHUNK, k1 - p);
        PACK_A(p, depth)
        PACK_B(p, depth)
        block(x, y, kept, rows, cols, depth, p == k0, p + depth == k1, HERE);
        p += CHUNK;
    } while (p < k1);
}
