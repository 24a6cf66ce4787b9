/* The tensors of a published model, whatever files hold them. Must not know: modules. Read next: tensors.c.
 */
#ifndef WEFT_SRC_PUBLISHED_TENSORS_H
#define WEFT_SRC_PUBLISHED_TENSORS_H

#include <weft/io.h>

#include "base/base.h"

typedef struct weft__tensors weft__tensors;

typedef struct weft__tensor_at {
    weft_entry_info info;
    const char *path; /* the file that holds the tensor; lives as long as the weft__tensors */
    size_t shard, entry;
    size_t index; /* among the tensors of all files */
} weft__tensor_at;

/* Opens model.safetensors of a folder, or all files that model.safetensors.index.json names. */
weft_status weft__tensors_open(weft_context *ctx, const char *folder, weft__tensors **out);
void weft__tensors_close(weft__tensors *t);

/* Gives tensor i of all files; false if there is none. */
bool weft__tensors_get(const weft__tensors *t, size_t i, weft__tensor_at *at);
/* Finds a tensor by its name. */
bool weft__tensors_find(const weft__tensors *t, const char *name, weft__tensor_at *at);

/* Reads `count` rows from row `first` on, as f32. A row is an index of the first dimension; a vector has one
 * element in each row. `room` has the bytes of these rows in the file. */
weft_status weft__tensors_rows(weft__tensors *t, const weft__tensor_at *at, int64_t first, int64_t count,
                               void *room, float *out);

#endif
