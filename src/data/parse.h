/* What the file readers share: whole files, gunzip, excerpts for messages, numbers, and each format's parser
 * over bytes in memory (what the fuzz targets call). Knows nothing of tensors and of the loader.
 * Read next: file.c, then one format: idx.c is the shortest. */
#ifndef WEFT_SRC_DATA_PARSE_H
#define WEFT_SRC_DATA_PARSE_H

#include "base/base.h"
#include "base/number.h"
#include <weft/data.h>

/* ---- files: file.c ---- */

/* Tells from the first bytes of a file how long the whole must be; NULL where a format cannot tell. */
typedef weft_status (*weft__declared_fn)(weft_context *ctx, const uint8_t *head, size_t head_size,
                                         const char *name, uint64_t *total);
#define WEFT__HEAD_SIZE 10240 /* bytes shown to a weft__declared_fn, fewer only if the file is shorter */

/* Reads a file. `declared` (may be NULL) bounds a packed one exactly, besides max_bytes as in
 * weft_read_file. */
weft_status weft__read_file(weft_context *ctx, const char *path, weft__declared_fn declared, size_t max_bytes,
                            weft_bytes *out);
/* Makes bytes of `size` + 1, the last one 0. */
weft_status weft__bytes_new(weft_context *ctx, size_t size, const char *name, weft_bytes *out);

/* ---- gzip: gzip.c ---- */
bool weft__is_gzip(const void *bytes, size_t size);
weft_status weft__gunzip(weft_context *ctx, const void *bytes, size_t size, const char *name,
                         weft__declared_fn declared, size_t max_bytes, weft_bytes *out);

/* ---- formats, over memory. `name` is used in messages. ---- */
weft_status weft__idx_declared(weft_context *ctx, const uint8_t *head, size_t head_size, const char *name,
                               uint64_t *total);
weft_status weft__npy_declared(weft_context *ctx, const uint8_t *head, size_t head_size, const char *name,
                               uint64_t *total);
weft_status weft__parse_idx(weft_context *ctx, const void *bytes, size_t size, const char *name,
                            weft_array *out);
weft_status weft__parse_cifar10(weft_context *ctx, const void *bytes, size_t size, const char *name,
                                weft_array *images, weft_array *labels);
weft_status weft__parse_npy(weft_context *ctx, const void *bytes, size_t size, const char *name,
                            weft_array *out);
weft_status weft__parse_csv(weft_context *ctx, const void *bytes, size_t size, const char *name,
                            const weft_csv_options *options, weft_table *out);
weft_status weft__parse_json(weft_context *ctx, const void *bytes, size_t size, const char *name,
                             const weft_json_options *options, size_t count, weft_array *out);

/* Checks a file of tokens, which stay where they are: two bytes each, from byte *begin on. */
weft_status weft__parse_tokens(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               size_t *begin);

/* ---- arrays: array.c ---- */

/* The number of elements of an array of the caller's, whose bytes may be 0; false where dtype, rank, shape,
 * bytes and data do not fit together. */
bool weft__array_elements(const weft_array *a, int64_t *count);

/* Turns the end of a file into an array without a copy: the payload from byte `offset` on is moved to the
 * front of `bytes`, whose memory the array takes over. The caller has checked the sizes and the dtype. */
void weft__array_take(weft_bytes *bytes, size_t offset, weft_array *array);
/* Turns elements read from a file of the given byte order into the machine's. */
void weft__to_host_order(weft_dtype dtype, void *data, size_t bytes, bool big_endian);
bool weft__host_is_big_endian(void);

/* ---- text in messages: array.c ---- */
#define WEFT__EXCERPT 48
/* Puts text into quotes for a message: shortened, and printable. Returns out. */
const char *weft__excerpt(char out[WEFT__EXCERPT], const void *text, size_t size);

/* ---- labels: labels.c. Distinct class labels in the order of their bytes. ---- */
#define WEFT__LABELS_MAX 65536
typedef struct weft__labels {
    weft_context *ctx;
    char *text; /* all labels, each ended by 0 */
    size_t text_size, text_capacity;
    size_t *offset; /* of label i, in order of first appearance */
    size_t offset_capacity;
    uint32_t *order; /* the labels' numbers, sorted by text */
    size_t order_capacity;
    size_t count;
} weft__labels;
/* The number of a label, added if new. Fails with ERR_OOM, or ERR_FORMAT without message when there are too
 * many. */
weft_status weft__labels_add(weft__labels *labels, const char *text, size_t size, uint32_t *number);
bool weft__labels_find(const weft__labels *labels, const char *text, size_t size, uint32_t *number);
static inline const char *weft__label(const weft__labels *labels, size_t number) {
    return labels->text + labels->offset[number];
}
void weft__labels_free(weft__labels *labels);

/* An array of `count` strings in one block, to be freed as one; NULL when memory is out. */
char **weft__strings_pack(weft_context *ctx, const char *const *strings, size_t count);

#endif
