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
 * The text is sealed (seal.h). Must not know: files on disk. Read next: manifest.c. */
#ifndef WEFT_SRC_IO_MANIFEST_H
#define WEFT_SRC_IO_MANIFEST_H

#include "io/safetensors.h"

#define WEFT__CHECKPOINT_FORMAT 1 /* readers refuse greater numbers */
#define WEFT__MANIFEST_FILES    2
#define WEFT__MANIFEST_MAX      ((uint64_t)512 << 20) /* bytes */

typedef struct weft__manifest_entry {
    const char *name;
    weft_dtype dtype;
    int rank;
    int64_t shape[WEFT_ENTRY_RANK_MAX];
    uint64_t offset; /* from the beginning of the file */
    const char *sum;
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
    weft__manifest_file files[WEFT__MANIFEST_FILES]; /* model, then optimizer */
    weft_arena arena;                                /* owns all strings and arrays */
} weft__manifest;

extern const char *const weft__checkpoint_files[WEFT__MANIFEST_FILES];

/* Describes a file of `entries` that was just written. The names stay those of `entries`; everything else
 * is allocated in the arena. */
weft_status weft__manifest_describe(weft_arena *arena, const char *name, const weft_entry *entries,
                                    const weft__written_file *written, weft__manifest_file *out);

/* Writes the manifest as a sealed text. The caller frees it with weft__free. */
weft_status weft__manifest_render(weft_context *ctx, const weft_checkpoint_state *state,
                                  const weft__manifest_file files[WEFT__MANIFEST_FILES], char **text,
                                  size_t *bytes);

/* Reads a manifest. `path` appears in messages. After success the caller frees the manifest with
 * weft__manifest_free. */
weft_status weft__manifest_parse(weft_context *ctx, const char *path, const char *text, size_t bytes,
                                 weft__manifest *out);
void weft__manifest_free(weft__manifest *manifest);

/* ---- verify.c ---- */

/* Opens a safetensors file and verifies every byte of it. The function takes over the descriptor.
 * WEFT_ERR_FORMAT names what differs from `expected`. */
weft_status weft__verify_file(weft_context *ctx, int fd, const char *path,
                              const weft__manifest_file *expected, weft_safetensors **out);

/* Converts the status of verifying a file that was just written. WEFT_OK and WEFT_ERR_OOM stay as they
 * are. All others become WEFT_ERR_IO, with a message that says that the file does not read back and quotes
 * the last error. */
weft_status weft__fail_unreadable(weft_context *ctx, weft_status status, const char *path);

#endif
