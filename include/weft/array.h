/* Arrays in host memory. Readers of files return them, before anything becomes a tensor. */
#ifndef WEFT_ARRAY_H
#define WEFT_ARRAY_H

#include <weft/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ARRAY_MAX_RANK 8

/* A dense array in C order (last dimension fastest) and in the machine's byte order. An array whose fields
 * are all zero is the empty array; freeing it is allowed.
 *
 * `data` is aligned to 64 bytes and belongs to the array. Free an array made by Weft with weft_array_free,
 * with the context that made it. An array that you pass to a function may also point to your own memory. */
typedef struct weft_array {
    weft_dtype dtype;
    int rank;                           /* 0 (a scalar) to WEFT_ARRAY_MAX_RANK */
    int64_t shape[WEFT_ARRAY_MAX_RANK]; /* extents; the first `rank` are used */
    void *data;                         /* not NULL in a result, even without elements */
    size_t bytes;                       /* of all elements */
} weft_array;

/* Frees the data and makes the array empty. NULL is allowed. */
WEFT_API void weft_array_free(weft_context *ctx, weft_array *array);

/* Makes an array of zeros in `out`. On failure `out` is empty: WEFT_ERR_ARGUMENT (rank, shape, dtype),
 * WEFT_ERR_OOM. */
WEFT_API WEFT_CHECKED weft_status weft_array_new(weft_context *ctx, weft_dtype dtype, int rank,
                                                 const int64_t *shape, weft_array *out);

#ifdef __cplusplus
}
#endif
#endif
