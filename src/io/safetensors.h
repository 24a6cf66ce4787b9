/* Inside of the safetensors files: 8 bytes little-endian length n, n bytes of JSON, data.
 *
 *   {"__metadata__": {"k": "v"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
 *
 * Offsets count from the end of the JSON. Must not know: checkpoints. Read next: safetensors_read.c,
 * safetensors_write.c, checkpoint.h. */
#ifndef WEFT_SRC_IO_SAFETENSORS_H
#define WEFT_SRC_IO_SAFETENSORS_H

#include <weft/io.h>

#include "io/publish.h"
#include "io/sum.h"

#define WEFT__SAFETENSORS_HEADER_MAX  ((uint64_t)100000000)
#define WEFT__SAFETENSORS_ENTRIES_MAX ((size_t)1000000)

/* The format's name of a dtype, NULL when it has none (c128), and back. */
const char *weft__safetensors_dtype_name(weft_dtype dtype);
bool weft__safetensors_dtype(const char *name, weft_dtype *dtype);

/* Opens a file by descriptor, which the result owns (also on failure: it is closed). */
weft_status weft__safetensors_open_fd(weft_context *ctx, int fd, const char *path, weft_safetensors **out);

/* Where entry i lies, from the file's beginning; its place in the order of offsets, by
 * `weft__safetensors_nth`. */
uint64_t weft__safetensors_offset(const weft_safetensors *file, size_t i);
size_t weft__safetensors_nth(const weft_safetensors *file, size_t place);
/* Bytes before the data (length, JSON and padding), and of the whole file. */
uint64_t weft__safetensors_header_bytes(const weft_safetensors *file);
/* Reads raw bytes of the file. */
weft_status weft__safetensors_pread(weft_safetensors *file, uint64_t offset, void *out, size_t bytes);

/* What was written for one entry, in the order of names. */
typedef struct weft__written_entry {
    size_t source;   /* its index in the caller's array */
    uint64_t offset; /* from the file's beginning */
    uint64_t bytes;
    weft__sum sum;
} weft__written_entry;

typedef struct weft__written_file {
    weft_context *ctx;
    weft__written_entry *entries; /* [count], freed with weft__free */
    size_t count;
    uint64_t header_bytes, bytes;
    weft__sum header;
    uint32_t crc; /* of the whole file */
} weft__written_file;

/* Lays the file out: header and offsets, before a byte is written. On success `header` (weft__free) holds
 * the first out->header_bytes bytes of the file. */
weft_status weft__safetensors_plan(weft_context *ctx, const weft_entry *entries, size_t count,
                                   const weft_metadata *metadata, size_t metadata_count,
                                   weft__written_file *out, char **header);
/* weft_safetensors_write through an I/O table, for tests that make calls fail. */
weft_status weft__safetensors_write(weft_context *ctx, const weft__io *io, const char *path,
                                    const weft_entry *entries, size_t count, const weft_metadata *metadata,
                                    size_t metadata_count);
/* Writes header and data, filling in the checksums. */
weft_status weft__safetensors_stream(weft__writer *writer, const weft_entry *entries, const char *header,
                                     weft__written_file *file);

#endif
