/* An op that a user defines by kernel source. At least one work-item for each element calls its function with
 * the pointers of the operands and of out, and with n. Must not know: what the function computes. Read next:
 * heavy.h. */
#ifndef WEFT_HEAVY_SOURCE_H
#define WEFT_HEAVY_SOURCE_H

#include <weft/dtype.h>

/* Operands: `arity` inputs, then out, all of dtype and with n elements. */
typedef struct weft_heavy_source {
    const char *name, *code; /* live as long as the context */
    uint8_t dtype, dialect;  /* weft_dialect */
    int arity, items;        /* items: work-items of a group */
    int64_t n;
} weft_heavy_source;

#endif
