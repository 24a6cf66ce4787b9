/* Whole files in memory: reads them and unpacks gzip. Must not know: formats. Read next: file.c, gzip.c. */
#ifndef WEFT_SRC_IO_FILE_H
#define WEFT_SRC_IO_FILE_H

#include <weft/data.h>

#include "base/base.h"

/* ---- files: file.c ---- */

/* Computes the size of a whole file from its first bytes. NULL for formats that cannot tell. */
typedef weft_status (*weft__declared_fn)(weft_context *ctx, const uint8_t *head, size_t head_size,
                                         const char *name, uint64_t *total);
#define WEFT__HEAD_SIZE 10240 /* bytes given to a weft__declared_fn; fewer only if the file is shorter */

/* Reads a file and unpacks it if it is packed. `declared` may be NULL; it limits a packed file exactly.
 * `max_bytes` is the limit of weft_read_file. */
weft_status weft__read_file(weft_context *ctx, const char *path, weft__declared_fn declared, size_t max_bytes,
                            weft_bytes *out);
/* Allocates `size` + 1 bytes; the last one is 0. */
weft_status weft__bytes_new(weft_context *ctx, size_t size, const char *name, weft_bytes *out);

/* ---- gzip: gzip.c ---- */
bool weft__is_gzip(const void *bytes, size_t size);
/* Tells by the first bytes of a file what it is packed with, and the command that unpacks it: "zstd: unpack
 * it with zstd -d". NULL: with nothing, or with gzip, which Weft unpacks. */
#define WEFT__PACKED_HEAD 10 /* bytes that tell */
const char *weft__packed_with(const void *bytes, size_t size);
/* Refuses such a file. */
weft_status weft__refuse_packed(weft_context *ctx, const char *path, const void *bytes, size_t size);
weft_status weft__gunzip(weft_context *ctx, const void *bytes, size_t size, const char *name,
                         weft__declared_fn declared, size_t max_bytes, weft_bytes *out);

#endif
