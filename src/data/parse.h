/* What the file readers share: excerpts for messages, labels, and a parser for each format. The parsers work
 * on bytes in memory; the fuzz targets call them. Must not know: tensors, the loader. Read next: io/file.h,
 * then one format; idx.c is the shortest. */
#ifndef WEFT_SRC_DATA_PARSE_H
#define WEFT_SRC_DATA_PARSE_H

#include "base/number.h"
#include "io/file.h"

/* ---- formats, over bytes in memory; `name` appears in messages ---- */
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

/* Checks a file of tokens and leaves the tokens in place. Each token has *width bytes, 2 or 4; the first one
 * is at byte *begin. */
weft_status weft__parse_tokens(weft_context *ctx, const void *bytes, size_t size, const char *name,
                               size_t *begin, size_t *width);

/* ---- arrays: array.c ---- */

/* Returns the number of elements of an array that the caller made. Its field `bytes` may be 0. Returns false
 * if dtype, rank, shape, bytes and data do not fit together. */
bool weft__array_elements(const weft_array *a, int64_t *count);

/* Turns the end of a file into an array without a copy. The bytes from `offset` on move to the front of
 * `bytes`, and the array takes over this memory. The caller has checked the sizes and the dtype. */
void weft__array_take(weft_bytes *bytes, size_t offset, weft_array *array);
/* Converts elements from the byte order of a file to the byte order of the machine. */
void weft__to_host_order(weft_dtype dtype, void *data, size_t bytes, bool big_endian);
bool weft__host_is_big_endian(void);

/* ---- text in messages: array.c ---- */
#define WEFT__EXCERPT 48
/* Quotes a text for a message, shortened and printable. Returns out. */
const char *weft__excerpt(char out[WEFT__EXCERPT], const void *text, size_t size);
/* Writes names for a message: `"a", "b", "c", ...`. Returns out. In csv_columns.c. */
const char *weft__list_names(char *const *names, size_t count, char *out, size_t size);

/* ---- labels.c: distinct class labels ---- */
#define WEFT__LABELS_MAX 65536
typedef struct weft__labels {
    weft_context *ctx;
    char *text; /* all labels, each followed by 0 */
    size_t text_size, text_capacity;
    size_t *offset; /* of label i, in order of first appearance */
    size_t offset_capacity;
    uint32_t *order; /* numbers of the labels, sorted by their bytes */
    size_t order_capacity;
    size_t count;
} weft__labels;
/* Returns the number of a label, and adds the label if it is new. Fails with WEFT_ERR_OOM. If there are too
 * many labels, returns WEFT_ERR_FORMAT without a message. */
weft_status weft__labels_add(weft__labels *labels, const char *text, size_t size, uint32_t *number);
bool weft__labels_find(const weft__labels *labels, const char *text, size_t size, uint32_t *number);
static inline const char *weft__label(const weft__labels *labels, size_t number) {
    return labels->text + labels->offset[number];
}
void weft__labels_free(weft__labels *labels);

/* ---- tables ---- */

/* Tells whether a file begins as Parquet files do. */
bool weft__is_parquet(const char *path);

/* Returns the file of a row: `path`, or one of several. *in_file: the row within it, from 0 on. In csv.c. */
const char *weft__table_file(const weft_table *table, const char *path, size_t row, size_t *in_file);

/* Returns an array of `count` strings in one block, freed by one weft__free. NULL when memory is short. */
char **weft__strings_pack(weft_context *ctx, const char *const *strings, size_t count);

#endif
