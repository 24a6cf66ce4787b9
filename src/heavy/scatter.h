/* Scatter-add: out (rows, inner) = base, or 0; then out[index[i], :] += source[i, :] for i in order. An index
 * outside 0..rows-1 is a fault, and its row is skipped. The order of additions is fixed. Read next: heavy.h.
 */
#ifndef WEFT_HEAVY_SCATTER_H
#define WEFT_HEAVY_SCATTER_H

#include <weft/dtype.h>

/* Operands. Without a base, the result stands in its place. */
enum { WEFT_SCATTER_INDEX, WEFT_SCATTER_SOURCE, WEFT_SCATTER_BASE };

/* index (count) of i32 or i64, source (outer, count, inner), base and out (outer, rows, inner). The `outer`
 * leading blocks share the index. */
typedef struct weft_heavy_scatter {
    uint8_t dtype, index_dtype;
    bool based, in_place; /* in_place: base and out are one buffer */
    bool unique;          /* no index comes twice, so that the order does not matter */
    int64_t outer, count, rows, inner;
} weft_heavy_scatter;

/* Whether each element of out is written by its index alone, with nothing to set to zero or to the base. */
static inline bool weft__scatter_is_direct(const weft_heavy_scatter *sc) {
    return sc->unique && (sc->in_place || sc->count == sc->rows);
}

/* The number of the result among the operands. */
static inline int weft__scatter_out(const weft_heavy_scatter *sc) { return WEFT_SCATTER_BASE + sc->based; }

#endif
