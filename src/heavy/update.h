/* Slice update: out = input with `value` written at an offset along one dimension. The offset is a scalar on
 * the device. A key/value cache is updated like this. Must not know: devices. Read next: heavy.h. */
#ifndef WEFT_HEAVY_UPDATE_H
#define WEFT_HEAVY_UPDATE_H

#include <weft/dtype.h>

enum { WEFT_UPDATE_INPUT, WEFT_UPDATE_VALUE, WEFT_UPDATE_OFFSET, WEFT_UPDATE_OUT, WEFT_UPDATE_OPERANDS };

/* Shapes: input and out (outer, total, inner), value (outer, extent, inner), offset one i32. The offset is
 * checked before anything is written. */
typedef struct weft_heavy_update {
    uint8_t dtype;
    bool in_place; /* input and out are one buffer */
    int64_t outer, total, extent, inner;
} weft_heavy_update;

#endif
