/* state.json, the manifest of a checkpoint. It holds the state of the run. For each file it holds size and
 * checksums. For each array it holds dtype, shape, offset and checksum:
 *
 *     {"magic": "weft-checkpoint", "format": 1, "step": 100, "seed": "42", ..., "extra": {...},
 *      "files": [{"name": "model.safetensors", "bytes": ..., "crc32": ..., "header_checksum": ...,
 *                 "tensors": [{"name": ..., "dtype": ..., "shape": [...], "offset": ...,
 *                              "checksum": ...}, ...]},
 *                {"name": "optimizer.safetensors", ...}],
 *      "checksum": "..."}
 *
 * If n processes wrote the optimizer, there are n files instead of optimizer.safetensors, and format is 2. An
 * array may then be divided: each file has a part of it, a row of elements, and tells its place:
 *
 *     {"name": "optimizer-00002-of-00004.safetensors", ...,
 *      "tensors": [{"name": "m.0.weight", ..., "shape": [96], "from": 128, "of": [4, 64]}, ...]}
 *
 * Places are those in the array of one name, not those in the memory of the optimizer. So any other number of
 * processes finds its elements, however its own memory is laid out. join.c checks that the parts are
 * complete.
 *
 * The text is sealed (seal.h). Must not know: files on disk. Read next: manifest.c. */
#ifndef WEFT_SRC_IO_MANIFEST_H
#define WEFT_SRC_IO_MANIFEST_H

#include "io/safetensors.h"

#define WEFT__CHECKPOINT_FORMAT 2 /* readers refuse greater numbers */
#define WEFT__FILES_WHOLE       2 /* model and optimizer; with more files the optimizer is divided */
#define WEFT__FILES_MOST        100000
#define WEFT__FILE_NAME         80                    /* bytes of the name of a file */
#define WEFT__MANIFEST_MAX      ((uint64_t)512 << 20) /* bytes */

typedef struct weft__manifest_entry {
    const char *name;
    weft_dtype dtype;
    int rank;
    int64_t shape[WEFT_ENTRY_RANK_MAX];
    uint64_t offset; /* from the beginning of the file */
    const char *sum;
    int64_t from; /* the first element in the array that it is a part of */
    int of_rank;  /* rank and shape of this array; a whole array is the part from 0 on of itself */
    int64_t of[WEFT_ENTRY_RANK_MAX];
} weft__manifest_entry;

typedef struct weft__manifest_file {
    const char *name;
    uint64_t bytes;
    const char *crc; /* of the whole file */
    uint64_t header_bytes;
    const char *header_sum;
    weft__manifest_entry *entries; /* [count], sorted by name */
    size_t count;
} weft__manifest_file;

typedef struct weft__manifest {
    weft_context *ctx;
    weft_checkpoint_state state;
    weft__manifest_file *files; /* [count]: the model, then the optimizer's */
    size_t count;
    weft_arena arena; /* owns all strings and arrays */
} weft__manifest;

/* Writes the name of file k of `count`, such as optimizer-00002-of-00004.safetensors for file 2 of 5. */
void weft__manifest_file_name(size_t k, size_t count, char out[WEFT__FILE_NAME]);

/* Describes a file of `entries` that was just written. Names are borrowed; everything else is allocated in
 * the arena. */
weft_status weft__manifest_describe(weft_arena *arena, const char *name, const weft_entry *entries,
                                    const weft__written_file *written, weft__manifest_file *out);

/* Writes the manifest as a sealed text. The caller frees it with weft__free. */
weft_status weft__manifest_render(weft_context *ctx, const weft_checkpoint_state *state,
                                  const weft__manifest_file *files, size_t count, char **text, size_t *bytes);

/* The description of one file as a text, which processes send to each other. The first function's text is
 * freed with weft__free; the second one allocates the description of file k of `count` in the arena. */
weft_status weft__manifest_file_render(weft_context *ctx, const weft__manifest_file *file, char **text,
                                       size_t *bytes);
weft_status weft__manifest_file_parse(weft_arena *arena, const char *text, size_t bytes, size_t k,
                                      size_t count, weft__manifest_file *out);

/* Reads a manifest. `path` appears in messages. After success the caller frees the manifest with
 * weft__manifest_free. */
weft_status weft__manifest_parse(weft_context *ctx, const char *path, const char *text, size_t bytes,
                                 weft__manifest *out);
void weft__manifest_free(weft__manifest *manifest);

/* ---- verify.c ---- */

/* Opens a safetensors file and verifies its size and header, and with `data` also every byte of its arrays.
 * The function takes over the descriptor. WEFT_ERR_FORMAT names what differs from `expected`. */
weft_status weft__verify_file(weft_context *ctx, int fd, const char *path,
                              const weft__manifest_file *expected, bool data, weft_safetensors **out);

/* How several processes divide the bytes of all files that they verify together. */
typedef struct weft__verify_share {
    uint64_t rank, size;
    uint64_t at, total; /* bytes of arrays so far, and at least as many as all files have */
} weft__verify_share;

/* Tells whether the next array, of so many bytes, is one that this process verifies. Each array is one of
 * exactly one process. */
bool weft__verify_takes(weft__verify_share *share, uint64_t bytes);

/* The same as weft__verify_file with `data`, but verifies only the arrays of this process. */
weft_status weft__verify_part(weft_context *ctx, int fd, const char *path,
                              const weft__manifest_file *expected, weft__verify_share *share,
                              weft_safetensors **out);

/* Converts the status of verifying a file that was just written. WEFT_OK and WEFT_ERR_OOM stay as they
 * are. All others become WEFT_ERR_IO, with a message that says that the file does not read back and quotes
 * the last error. */
weft_status weft__fail_unreadable(weft_context *ctx, weft_status status, const char *path);

/* ---- join.c ---- */

/* Makes one file of `count` open files, which must stay open, and joins the parts of their arrays. `path`
 * appears in messages. WEFT_ERR_FORMAT names an array whose parts do not fit together. */
weft_status weft__join_files(weft_context *ctx, const char *path, const weft__manifest_file *described,
                             weft_safetensors *const *files, size_t count, weft_safetensors **out);

#endif
