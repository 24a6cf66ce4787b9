/* Variables: named storage that graphs read and steps change. Parameters, optimizer state, caches. */
#ifndef WEFT_GRAPH_VARIABLE_H
#define WEFT_GRAPH_VARIABLE_H

#include <weft/tensor.h>
#include "base/base.h"

struct weft_buffer;

/* Storage, shared by a block and the variables that lie in it. */
typedef struct weft_storage {
    struct weft_buffer *buffer; /* NULL until placed on the device */
    size_t bytes;
    uint64_t write_epoch; /* context epoch of the last write: readers recorded before it are stale */
    int users;            /* variables and tensors that refer to it */
    weft_tensor *rounded; /* a variable over the same elements in f16 or bf16: see weft__rounded_part; NULL */
    uint64_t mark;        /* stamp and number of the walk that numbers storages */
    int number;
    void (*fill)(weft_context *ctx, const void *with, void *values); /* first values, NULL: zeros */
    void *with;                                                      /* what fill needs; own memory */
} weft_storage;

/* A variable whose first values are made where they are to lie, when they are needed first and nothing else
 * was written: fill(ctx, copy of `with`, values), which are zeros until then. */
weft_tensor *weft__variable_filled(weft_context *ctx, const char *name, weft_dtype dtype, int rank,
                                   const int64_t *shape,
                                   void (*fill)(weft_context *ctx, const void *with, void *values),
                                   const void *with, size_t with_bytes);

/* Moves variables of one dtype (in this order, each on a 64-byte border, gaps zero) into one block and
 * returns the block as a one-dimensional variable of that name. Complex ones count as the floats they are
 * pairs of, which the block consists of. The variables stay what they are; reading or
 * writing either sees the other. Values are kept. */
weft_status weft__variables_place(weft_context *ctx, const char *name, weft_tensor *const *variables,
                                  size_t count, weft_tensor **block);

/* From now on `variable` is what lies in `whole`, another variable, from byte `offset` on: writing either
 * changes both. */
void weft__variable_share(weft_tensor *variable, const weft_tensor *whole, size_t offset);

/* What holds the values of a variable (its block's, in the order of its elements) rounded to dtype, as a leaf
 * of the innermost scope; NULL where nothing does, or the variable was written since. Who writes both at once
 * sets storage->rounded. */
weft_tensor *weft__rounded_part(const char *where, const weft_tensor *variable, weft_dtype dtype);

/* Element of its block at which a variable begins; 0 for one of its own. Of a complex one: which float. */
int64_t weft__variable_offset(const weft_tensor *variable);

/* Name given to weft_variable_new, interned. */
const char *weft__variable_name(const weft_tensor *variable);

#endif
