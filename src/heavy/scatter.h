/* Scatter-add: out (rows, inner) starts as the base, or as 0. Then out[index[i], :] += source[i, :] for each
 * i in order. An index outside 0..rows-1 is a fault, and its row is skipped. The order of additions is fixed;
 * on GPUs rows with many sources are added in pieces (docs/design/034-sorted-scatter-adds.md).
 * Must not know: devices. Read next: heavy.h. */
#ifndef WEFT_HEAVY_SCATTER_H
#define WEFT_HEAVY_SCATTER_H

#include <weft/dtype.h>

/* Operands. Without a base, the result takes its place in the list. */
enum { WEFT_SCATTER_INDEX, WEFT_SCATTER_SOURCE, WEFT_SCATTER_BASE };

/* Shapes: index (count) of i32 or i64, source (outer, count, inner), base and out (outer, rows, inner). All
 * `outer` leading blocks use the same index. */
typedef struct weft_heavy_scatter {
    uint8_t dtype, index_dtype;
    bool based, in_place; /* in_place: base and out are one buffer */
    bool unique;          /* no index occurs twice, so the order does not matter */
    int64_t outer, count, rows, inner;
} weft_heavy_scatter;

/* Does the index alone write each element of out? Then nothing must be set to zero or to the base first. */
static inline bool weft__scatter_is_direct(const weft_heavy_scatter *sc) {
    return sc->unique && (sc->in_place || sc->count == sc->rows);
}

/* Returns the place of the result in the list of operands. */
static inline int weft__scatter_out(const weft_heavy_scatter *sc) { return WEFT_SCATTER_BASE + sc->based; }

#endif
