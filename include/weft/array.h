/* Arrays in host memory: what files are read into, before anything becomes a tensor. */
#ifndef WEFT_ARRAY_H
#define WEFT_ARRAY_H

#include <weft/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ARRAY_MAX_RANK 8

/* A dense array in C order (last dimension fastest) and the machine's byte order. All zero is the
 * empty array, which may be freed. `data` is aligned to 64 bytes and belongs to the array; arrays
 * made by Weft must be freed with weft_array_free under the context that made them. An array given
 * to a function may also point to memory of the caller's own. */
typedef struct weft_array {
    weft_dtype dtype;
    int rank;                           /* 0 (a scalar) to WEFT_ARRAY_MAX_RANK */
    int64_t shape[WEFT_ARRAY_MAX_RANK]; /* elements a dimension, the first `rank` are used */
    void *data;                         /* not NULL in a result, even with no elements */
    size_t bytes;                       /* of all elements */
} weft_array;

/* Frees the data and makes the array empty. NULL is allowed. */
WEFT_API void weft_array_free(weft_context *ctx, weft_array *array);

/* Makes an array of zeros in `out`. Fails: ERR_ARGUMENT (rank, shape, dtype), ERR_OOM; out is then empty. */
WEFT_API WEFT_CHECKED weft_status weft_array_new(weft_context *ctx, weft_dtype dtype, int rank,
                                                 const int64_t *shape, weft_array *out);

#ifdef __cplusplus
}
#endif
#endif
