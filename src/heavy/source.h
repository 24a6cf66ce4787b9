/* A function of a program's own source. Work-items, one an element at least, call it with the pointers of the
 * operands, of out, and n. Read next: heavy.h. */
#ifndef WEFT_HEAVY_SOURCE_H
#define WEFT_HEAVY_SOURCE_H

#include <weft/dtype.h>

/* Operands: `arity` inputs, then out, all of dtype and with n elements. */
typedef struct weft_heavy_source {
    const char *name, *text; /* live as long as the context */
    uint8_t dtype, dialect;  /* weft_dialect */
    int arity, items;        /* items: of a group */
    int64_t n;
} weft_heavy_source;

#endif
