/* Cumulative sum or product: out[o, i, c] = input[o, 0, c] + ... + input[o, i, c]. Read next: heavy.h. */
#ifndef WEFT_HEAVY_SCAN_H
#define WEFT_HEAVY_SCAN_H

#include <weft/dtype.h>

enum { WEFT_SCAN_INPUT, WEFT_SCAN_OUT, WEFT_SCAN_OPERANDS };

/* input and out (outer, extent, inner). Accumulates in f32 or wider, in the same order at every run. */
typedef struct weft_heavy_scan {
    uint8_t dtype; /* f32, f64, i32, i64 */
    bool product;
    bool reverse; /* from the last element on */
    int64_t outer, extent, inner;
} weft_heavy_scan;

#endif
