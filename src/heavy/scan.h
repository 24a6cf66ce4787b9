/* Cumulative sum or product: out[o, i, c] = input[o, 0, c] + ... + input[o, i, c]. Must not know: devices.
 * Read next: heavy.h. */
#ifndef WEFT_HEAVY_SCAN_H
#define WEFT_HEAVY_SCAN_H

#include <weft/dtype.h>

enum { WEFT_SCAN_INPUT, WEFT_SCAN_OUT, WEFT_SCAN_OPERANDS };

/* input and out have the shape (outer, extent, inner). Accumulates in f32 or wider, in the same order at each
 * run. */
typedef struct weft_heavy_scan {
    uint8_t dtype; /* f32, f64, i32, i64 */
    bool product;
    bool reverse; /* starts at the last element */
    int64_t outer, extent, inner;
} weft_heavy_scan;

#endif
