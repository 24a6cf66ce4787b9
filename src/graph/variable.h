/* Variables: named storage that graphs read and steps change. Used for parameters, optimizer state, caches.
 * Must not know: who updates them. Read next: graph.h, storage.c. */
#ifndef WEFT_GRAPH_VARIABLE_H
#define WEFT_GRAPH_VARIABLE_H

#include <weft/tensor.h>
#include "base/base.h"

struct weft_storage;

/* A row of elements of a storage that several processes have divided. All parts have `each` elements; those
 * beyond n do not count. */
typedef struct weft_divided_piece {
    int64_t from, n; /* its elements in the storage */
    int64_t each;
    weft_tensor *part; /* the part of this process, a variable of `each` elements */
} weft_divided_piece;

/* How processes have divided a storage that none of them has whole. A program that reads a variable of it
 * gathers the piece that the variable lies in (compiler/passes/divided.c). */
typedef struct weft_divided {
    uint64_t identity; /* part of the keys of programs */
    size_t count;
    weft_divided_piece *pieces; /* in the order of their elements */
    /* Copy bytes first..first + bytes of the storage to or from memory of the host. All processes must call
     * them in the same order. */
    weft_status (*read)(const struct weft_divided *divided, size_t first, void *to, size_t bytes);
    weft_status (*write)(const struct weft_divided *divided, size_t first, const void *from, size_t bytes);
} weft_divided;

/* First values of a variable, which are made when its storage is placed. */
typedef struct weft_late {
    size_t offset; /* bytes within the storage */
    void (*fill)(weft_context *ctx, const void *with, void *values);
    void *with; /* the storage owns it */
    size_t with_bytes;
} weft_late;

/* Memory on the device. A block and the variables within it share one storage. */
typedef struct weft_storage {
    weft_buffer *buffer; /* NULL until the storage has memory on the device */
    weft_buffer *other;  /* memory that takes turns with `buffer`; NULL: none yet */
    bool turns;          /* weft__storage_turn gives it a second buffer */
    size_t bytes;
    uint64_t write_epoch; /* context epoch of the last write: nodes that were recorded before it and read the
                           * storage are stale */
    int users;            /* number of variables and tensors that refer to it */
    const weft_divided *divided; /* several processes have its elements, and it has no buffer; NULL: none */
    weft_tensor *rounded; /* a variable with the same elements in f16 or bf16, see weft__rounded_part; NULL:
                           * none */
    weft_status (*round)(void *rounder); /* gives `rounded` its first values, when it is first read */
    void *rounder;
    uint64_t mark; /* stamp of the walk that numbers storages, and the number that it gave */
    int number;
    weft_late *late; /* first values, in the order of their offsets; what has none begins with zeros */
    size_t n_late;
} weft_storage;

/* Before a write of all its elements: gives a storage that `turns` the memory that it had before the last
 * one. So a device that still reads the last values can receive new ones. */
void weft__storage_turn(weft_storage *storage);

/* Returns a variable whose first values are made late: when they are first needed, if nothing was written
 * until then. fill(ctx, copy of `with`, values) writes them; `values` holds zeros before. Late values go
 * straight to their place, without a second copy of the model. */
weft_tensor *weft__variable_filled(weft_context *ctx, const char *name, weft_dtype dtype, int rank,
                                   const int64_t *shape,
                                   void (*fill)(weft_context *ctx, const void *with, void *values),
                                   const void *with, size_t with_bytes);

/* Writes the late values within bytes first..first + bytes of a block to memory of the host that holds zeros.
 * A variable must not cross the ends of the range. */
void weft__late_values(weft_context *ctx, const weft_storage *storage, size_t first, size_t bytes, char *to);

/* Moves variables of one dtype into one block and returns the block, a one-dimensional variable called
 * `name`. The variables keep their order and values; each begins at a multiple of 64 bytes, and gaps are
 * zero. A complex variable counts as floats, two for each element. A write to a variable changes the block,
 * and the other way round. */
weft_status weft__variables_place(weft_context *ctx, const char *name, weft_tensor *const *variables,
                                  size_t count, weft_tensor **block);

/* From now on `variable` shares the storage of `whole`, another variable, from byte `offset` on. A write to
 * either changes both. */
void weft__variable_share(weft_tensor *variable, const weft_tensor *whole, size_t offset);

/* Returns a leaf of the innermost scope that holds a variable's values rounded to dtype. The copy must lie in
 * the order of the variable's block. Returns NULL if there is no copy, or the variable was written after the
 * copy. If nothing was written to the copy yet, storage->round makes it. Whoever writes both at once sets
 * storage->rounded and round. */
weft_tensor *weft__rounded_part(const char *where, const weft_tensor *variable, weft_dtype dtype);

/* Index of the variable's first element within its block; 0 if it is in none. For complex variables the index
 * counts floats. */
int64_t weft__variable_offset(const weft_tensor *variable);

/* The name given to weft_variable_new, interned. */
const char *weft__variable_name(const weft_tensor *variable);

#endif
