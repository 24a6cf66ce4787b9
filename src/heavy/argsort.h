/* Argsort and top-k: the positions of the first `count` elements of each row in ascending or descending
 * order. Equal elements keep their order. NaN is larger than all other numbers, and -0 equals 0. Must not
 * know: devices. Read next: heavy.h. */
#ifndef WEFT_HEAVY_ARGSORT_H
#define WEFT_HEAVY_ARGSORT_H

#include <weft/dtype.h>

enum { WEFT_ARGSORT_INPUT, WEFT_ARGSORT_OUT, WEFT_ARGSORT_OPERANDS };

/* Operands: input (rows, extent), and out (rows, count) of i32. */
typedef struct weft_heavy_argsort {
    uint8_t dtype; /* f32, f64, i32, i64 */
    bool descending;
    int64_t rows, extent, count;
} weft_heavy_argsort;

#endif
