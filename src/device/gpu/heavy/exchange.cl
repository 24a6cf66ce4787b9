/* Adds up the numbers that a process has received from all. The order is the binary tree of exact sums. A row completes
 * as many sums as its number has 1 bits at the end:
 *
 *     row 0   row 1    row 2         row 3
 *     0       (0 1)    (0 1) 2       ((0 1) (2 3))
 *
 * ROWS, and LEVELS, as many sums as are open at once, are defined. */
#include "device/gpu/heavy/exchange_params.h"

#if ROWS <= 64 /* else the code would be long */
#define UNROLL_ROWS W_CARD_UNROLL
#else
#define UNROLL_ROWS
#endif

W_FN T sum_of_rows(const W_GLOBAL T *row, w_i64 apart) {
    T sums[LEVELS];
    int open = 0;
    UNROLL_ROWS for (int r = 0; r < ROWS; r++) {
        T sum = row[r * apart];
        W_CARD_UNROLL for (int level = 0; level < LEVELS; level++)
            if ((r + 1) % (2 << level) == 0) sum = sums[--open] + sum;
        sums[open++] = sum;
    }
    T sum = sums[--open];
    W_CARD_UNROLL for (int level = 1; level < LEVELS; level++)
        if (open > 0) sum = sums[--open] + sum;
    return sum;
}

W_NUMBERS(add_rows) {
    w_i64 rows_at, out_at;
    w_add_rows add_rows;
};
W_KERNEL W_ITEMS(ITEMS, 1, 1) void add_rows(const W_GLOBAL T *rows, W_GLOBAL T *out,
                                            const W_NUMBERS(add_rows) given) {
    const w_add_rows of = given.add_rows;
    for (w_i64 i = (w_i64)w_group(0) * ITEMS + w_item(0); i < of.all; i += (w_i64)w_groups(0) * ITEMS)
        out[given.out_at + i] = i < of.count ? sum_of_rows(rows + given.rows_at + i, of.apart) : 0;
}
