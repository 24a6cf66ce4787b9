/* The private interface of safetensors files:
 *
 *     +----------------+------------------------------+----------------------------------+
 *     | 8 bytes: n,    | n bytes: JSON, padded with   | data of the arrays, no gaps,     |
 *     | little-endian  | spaces when Weft writes it   | up to the last byte of the file  |
 *     +----------------+------------------------------+----------------------------------+
 *
 *     {"__metadata__": {"k": "v"}, "name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...}
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

/* Converts between dtypes and the names of the format. The name is NULL if the format has none (c128). */
const char *weft__safetensors_dtype_name(weft_dtype dtype);
bool weft__safetensors_dtype(const char *name, weft_dtype *dtype);

/* Opens a file by its descriptor, which the result owns. On failure the descriptor is closed. */
weft_status weft__safetensors_open_fd(weft_context *ctx, int fd, const char *path, weft_safetensors **out);

/* weft__safetensors_offset returns where entry i begins, from the beginning of the file.
 * weft__safetensors_nth returns the index of the entry that comes at `place` when entries are sorted by
 * offset. */
uint64_t weft__safetensors_offset(const weft_safetensors *file, size_t i);
size_t weft__safetensors_nth(const weft_safetensors *file, size_t place);
/* Return the bytes before the data (length, JSON and padding), and the bytes of the whole file. */
uint64_t weft__safetensors_header_bytes(const weft_safetensors *file);
/* Returns the path, for messages. */
const char *weft__safetensors_path(const weft_safetensors *file);
/* Reads raw bytes of the file. */
weft_status weft__safetensors_pread(weft_safetensors *file, uint64_t offset, void *out, size_t bytes);

/* Bytes of a joined file, which continue those of the piece before. */
typedef struct weft__file_piece {
    uint64_t begin; /* the first byte in the joined file */
    uint64_t at;    /* the first byte in `file` */
    weft_safetensors *file;
} weft__file_piece;

/* Makes a file without a header of its own, whose data are pieces of other files. These must stay open. The
 * entries are sorted by name, and their data follow each other. `path` appears in messages. */
weft_status weft__safetensors_join(weft_context *ctx, const char *path, const weft_entry_info *entries,
                                   size_t count, const weft__file_piece *pieces, size_t piece_count,
                                   weft_safetensors **out);

/* What was written for one entry. Entries are sorted by name. */
typedef struct weft__written_entry {
    size_t source;   /* its index in the caller's array */
    uint64_t offset; /* from the beginning of the file */
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

/* Refuses entries that are parts of arrays: a file of arrays would lose their places. */
weft_status weft__entries_whole(weft_context *ctx, const weft_entry *entries, size_t count);

/* Computes the layout of the file, header and offsets, before any byte is written. On success `header`
 * holds the first out->header_bytes bytes of the file. The caller frees it with weft__free. */
weft_status weft__safetensors_plan(weft_context *ctx, const weft_entry *entries, size_t count,
                                   const weft_metadata *metadata, size_t metadata_count,
                                   weft__written_file *out, char **header);
/* Does the same as weft_safetensors_write through a table of I/O calls. Tests use the table to make calls
 * fail. */
weft_status weft__safetensors_write(weft_context *ctx, const weft__io *io, const char *path,
                                    const weft_entry *entries, size_t count, const weft_metadata *metadata,
                                    size_t metadata_count);
/* Writes header and data, and fills in the checksums. */
weft_status weft__safetensors_stream(weft__writer *writer, const weft_entry *entries, const char *header,
                                     weft__written_file *file);

#endif
