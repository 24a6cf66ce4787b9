/* state.json, the manifest of a checkpoint: what the run was at, and for each file its size and checksums,
 * for each array its dtype, shape, place and checksum.
 *
 * The text is sealed (seal.h). Must not know: files on disk. Read next: manifest.c. */
#ifndef WEFT_SRC_IO_MANIFEST_H
#define WEFT_SRC_IO_MANIFEST_H

#include "io/safetensors.h"

#define WEFT__CHECKPOINT_FORMAT 1 /* a reader refuses greater ones */
#define WEFT__MANIFEST_FILES    2
#define WEFT__MANIFEST_MAX      ((uint64_t)512 << 20) /* bytes */

typedef struct weft__manifest_entry {
    const char *name;
    weft_dtype dtype;
    int rank;
    int64_t shape[WEFT_ENTRY_RANK_MAX];
    uint64_t offset; /* from the file's beginning */
    const char *sum;
} weft__manifest_entry;

typedef struct weft__manifest_file {
    const char *name;
    uint64_t bytes;
    const char *crc; /* of the whole file */
    uint64_t header_bytes;
    const char *header_sum;
    weft__manifest_entry *entries; /* [count] in the order of names */
    size_t count;
} weft__manifest_file;

typedef struct weft__manifest {
    weft_context *ctx;
    weft_checkpoint_state state;
    weft__manifest_file files[WEFT__MANIFEST_FILES]; /* model, optimizer */
    weft_arena arena;                                /* holds all texts and arrays */
} weft__manifest;

extern const char *const weft__checkpoint_files[WEFT__MANIFEST_FILES];

/* Describes a file that was just written of `entries`. What is no entry's own lies in the arena. */
weft_status weft__manifest_describe(weft_arena *arena, const char *name, const weft_entry *entries,
                                    const weft__written_file *written, weft__manifest_file *out);

/* The text of a manifest, to be freed with weft__free. */
weft_status weft__manifest_render(weft_context *ctx, const weft_checkpoint_state *state,
                                  const weft__manifest_file files[WEFT__MANIFEST_FILES], char **text,
                                  size_t *bytes);

/* Reads a manifest; `path` stands in messages. On success free it with weft__manifest_free. */
weft_status weft__manifest_parse(weft_context *ctx, const char *path, const char *text, size_t bytes,
                                 weft__manifest *out);
void weft__manifest_free(weft__manifest *manifest);

/* ---- verify.c ---- */

/* Opens a safetensors file by a descriptor, which it takes over, and verifies every byte of it.
 * WEFT_ERR_FORMAT names what differs from `expected`. */
weft_status weft__verify_file(weft_context *ctx, int fd, const char *path,
                              const weft__manifest_file *expected, weft_safetensors **out);

/* The status of a save whose files were verified with `status`: WEFT_OK and WEFT_ERR_OOM as they are, else
 * WEFT_ERR_IO, with a message that says that the last error was found in what was just written. */
weft_status weft__fail_unreadable(weft_context *ctx, weft_status status, const char *path);

#endif
