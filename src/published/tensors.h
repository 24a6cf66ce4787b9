/* The tensors of a published model, whatever files hold them. Must not know: modules. Read next: tensors.c.
 */
#ifndef WEFT_SRC_PUBLISHED_TENSORS_H
#define WEFT_SRC_PUBLISHED_TENSORS_H

#include <weft/dtype.h>

#include "io/sum.h"

typedef struct weft__tensors weft__tensors;

typedef struct weft__tensor_at {
    const char *name,
        *path;         /* path of the file that holds the tensor; both live as long as the weft__tensors */
    const char *dtype; /* for messages */
    bool readable;     /* its numbers can be read as f32 */
    int rank;
    const int64_t *shape;
    size_t row_bytes;          /* of an index of the first dimension */
    weft_packed_format format; /* of a matrix in a GGUF file; WEFT_UNPACKED: it has another dtype */
    const uint8_t *blocks;     /* its bytes, if it has a format */
    size_t index;              /* among the tensors of all files */
    size_t shard, entry;
} weft__tensor_at;

/* Opens a GGUF file, a safetensors file, or model.safetensors of a folder, or all files that
 * model.safetensors.index.json of the folder names. */
weft_status weft__tensors_open(weft_context *ctx, const char *path, weft__tensors **out);
void weft__tensors_close(weft__tensors *t);

/* Gives tensor i of all files; false if there is none. */
bool weft__tensors_get(const weft__tensors *t, size_t i, weft__tensor_at *at);
/* Finds a tensor by its name. */
bool weft__tensors_find(const weft__tensors *t, const char *name, weft__tensor_at *at);

/* Reads `count` rows from row `first` on, as f32. A row is an index of the first dimension; a vector has one
 * element in each row. `room` has count * row_bytes bytes. */
weft_status weft__tensors_rows(weft__tensors *t, const weft__tensor_at *at, int64_t first, int64_t count,
                               void *room, float *out);

/* Computes a checksum of the names, dtypes and bytes of all tensors. It does not depend on how the tensors
 * are divided among files, as long as their order is the same. */
weft_status weft__tensors_sum(weft_context *ctx, const char *path, char out[WEFT__SUM_TEXT]);

#endif
