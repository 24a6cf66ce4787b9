/* Files that outlive a process: safetensors, checkpoints, the lock of a run folder, publishing a file.
 *
 * Entries are host memory (name, dtype, shape, bytes); whoever has tensors copies to and from them.
 * Every byte of a file read here is distrusted: lengths are checked against the file's size before
 * anything is allocated, and no more memory is used than the header of the file is worth.
 * The context of each function may be NULL: it serves memory, errors and log lines, nothing else.
 * JSON is read and written by jansson. Weft puts its own memory function in front of the one that is set
 * (json_set_alloc_funcs), once, and passes on to it whatever Weft does not ask for itself. So a program may
 * use jansson too, with functions of its own; one that links Weft statically into a plugin must not unload
 * it. Objects are used by one thread at a time and must be closed before their context. */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include <weft/dtype.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ENTRY_RANK_MAX 8
#define WEFT_ENTRY_NAME_MAX 4096 /* bytes of an entry's name */

/* ---- publishing a file ---- */

/* Writes a whole file so that a crash at any instant leaves the old one or the new one, on disk: a
 * temporary file beside it, fsync, rename, fsync of the folder. Mode 0600. The folder must exist.
 * Fails with WEFT_ERR_IO naming path and cause (a full disk: bytes needed and free); the old file stays. */
WEFT_API WEFT_CHECKED weft_status weft_write_file(weft_context *ctx, const char *path, const void *data,
                                                  size_t bytes);

/* Makes a folder and its missing parents, durably. One that exists is fine. */
WEFT_API WEFT_CHECKED weft_status weft_make_folder(weft_context *ctx, const char *path);

/* ---- entries ---- */

/* An array to be written: row-major elements at `data`, or, with data NULL, delivered by `read`, which
 * fills `out` with the `bytes` bytes that begin at byte `offset` (called in order, at most 1 MiB a time).
 * The fields are borrowed for the call. A scalar has rank 0 and shape NULL. */
typedef struct weft_entry {
    const char *name; /* UTF-8, 1 to 4096 bytes, unique in its file */
    weft_dtype dtype;
    int rank;             /* 0 to 8 */
    const int64_t *shape; /* [rank] */
    const void *data;
    weft_status (*read)(void *user, size_t offset, void *out, size_t bytes);
    void *user;
} weft_entry;

/* An array in an open file. Pointers are valid until the file is closed. */
typedef struct weft_entry_info {
    const char *name;
    weft_dtype dtype;
    int rank;
    const int64_t *shape; /* [rank] */
    size_t bytes;
} weft_entry_info;

/* A text of a file's metadata. */
typedef struct weft_metadata {
    const char *key, *value;
} weft_metadata;

/* ---- safetensors ---- */

typedef struct weft_safetensors weft_safetensors;

/* Opens a safetensors file and checks the whole of its header (reliability: sizes, strict JSON, names,
 * dtypes, shapes, ranges that tile the data exactly). On failure *out is NULL: WEFT_ERR_IO, or
 * WEFT_ERR_FORMAT naming the entry and field. The data itself has no checksum in this format. */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_open(weft_context *ctx, const char *path,
                                                        weft_safetensors **out);

/* The same over bytes in memory, which must outlive the result. `name` stands in messages; NULL: "memory". */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_open_memory(weft_context *ctx, const char *name,
                                                               const void *data, size_t bytes,
                                                               weft_safetensors **out);

/* NULL is fine. */
WEFT_API void weft_safetensors_close(weft_safetensors *file);

/* Entries are numbered in the order of their names (by bytes). */
WEFT_API size_t weft_safetensors_count(const weft_safetensors *file);

/* Describes entry i; false when there is none. */
WEFT_API bool weft_safetensors_entry(const weft_safetensors *file, size_t i, weft_entry_info *info);

/* The number of the entry of that name; false when there is none. */
WEFT_API bool weft_safetensors_find(const weft_safetensors *file, const char *name, size_t *i);

/* Reads `bytes` bytes of entry i from byte `offset` on. WEFT_ERR_INDEX past the entry's end, WEFT_ERR_IO
 * when the file cannot deliver them (it shrank). */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_read(weft_safetensors *file, size_t i, size_t offset,
                                                        void *out, size_t bytes);

/* The texts under __metadata__, in the order of their keys; valid until close. */
WEFT_API const weft_metadata *weft_safetensors_metadata(const weft_safetensors *file, size_t *count);

/* Writes and publishes a safetensors file. Deterministic: names sorted, data in the order of element size
 * (widest first) then name, beginning at a multiple of 64 bytes; no time, path or host inside.
 * metadata may be NULL. WEFT_ERR_ARGUMENT names a bad entry, WEFT_ERR_UNSUPPORTED a dtype that the
 * format lacks (c128), WEFT_ERR_IO the path and cause. The file is read back and verified before it is
 * published. Nothing is published on failure. */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_write(weft_context *ctx, const char *path,
                                                         const weft_entry *entries, size_t count,
                                                         const weft_metadata *metadata,
                                                         size_t metadata_count);

/* ---- checkpoints: RUN/checkpoints/step-N/{model.safetensors,optimizer.safetensors,state.json} ---- */

/* What a run needs beside its arrays to go on as if never stopped. */
typedef struct weft_checkpoint_state {
    uint64_t step; /* optimizer steps done, also the N of the folder; at most INT64_MAX */
    uint64_t seed;
    uint64_t data_position;  /* in units of the caller's; at most INT64_MAX */
    uint32_t ranks;          /* 0 is written as 1 */
    const char *config_hash; /* any text; NULL: "" */
    const char *data_hash;   /* any text; NULL: "" */
    const char *extra;       /* a JSON object of the caller's, kept as it means; NULL: {} */
} weft_checkpoint_state;

typedef struct weft_checkpoint weft_checkpoint;

/* Writes and publishes one checkpoint: a new folder with its files flushed to disk, made visible by one
 * rename, the manifest (state.json: sizes, and CRC-32 plus a 64-bit hash of every array) written last. Before
 * that rename the files are read back and verified as weft_checkpoint_open does. The run folder must exist:
 * one that was moved is not made again.
 * The checksums detect corruption, not tampering. A checkpoint of the same step is replaced. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_write(weft_context *ctx, const char *run,
                                                        const weft_checkpoint_state *state,
                                                        const weft_entry *model, size_t model_count,
                                                        const weft_entry *optimizer, size_t optimizer_count);

/* Opens the checkpoint in folder `dir` (the step-N folder itself) and verifies every byte of it. On failure
 * *out is NULL and the error names file and array or field: WEFT_ERR_FORMAT for damage and missing files,
 * WEFT_ERR_UNSUPPORTED for a newer format, WEFT_ERR_IO for what cannot be read now (no permission, too many
 * open files, a disk that fails), WEFT_ERR_OOM. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_open(weft_context *ctx, const char *dir,
                                                       weft_checkpoint **out);

/* Opens the newest checkpoint of a run that verifies. A damaged one (WEFT_ERR_FORMAT) is passed over with a
 * logged warning and the one before it tried, unless `strict`: then its error is returned, as other errors
 * always are. WEFT_ERR_STATE when the run
 * has no checkpoint at all; when all are damaged, the newest one's error. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_open_newest(weft_context *ctx, const char *run, bool strict,
                                                              weft_checkpoint **out);

/* NULL is fine. */
WEFT_API void weft_checkpoint_close(weft_checkpoint *checkpoint);

/* Valid until the checkpoint is closed; the same for the strings in it (never NULL here). */
WEFT_API const weft_checkpoint_state *weft_checkpoint_state_of(const weft_checkpoint *checkpoint);

/* The two files, to be read with weft_safetensors_*; they belong to the checkpoint. */
WEFT_API weft_safetensors *weft_checkpoint_model(weft_checkpoint *checkpoint);
WEFT_API weft_safetensors *weft_checkpoint_optimizer(weft_checkpoint *checkpoint);

/* Opens, verifies and closes: the check of `weft info DIR --check`. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_verify(weft_context *ctx, const char *dir);

/* The steps of the checkpoints of a run, newest first; at most `capacity` are stored, *count is how many
 * there are. No checkpoint yet is no error. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_list(weft_context *ctx, const char *run, uint64_t *steps,
                                                       size_t capacity, size_t *count);

/* Makes RUN/checkpoints/best a link to the checkpoint of that step, which must be there. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_mark_best(weft_context *ctx, const char *run,
                                                            uint64_t step);

/* The step that it links to, or is a copy of; false where none was marked, or where that cannot be told. */
WEFT_API bool weft_checkpoint_best(const char *run, uint64_t *step);

/* Opens and verifies that checkpoint. WEFT_ERR_STATE where none was marked. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_open_best(weft_context *ctx, const char *run,
                                                            weft_checkpoint **out);

/* Removes all but the best and the newest `keep` (at least 1) checkpoints of a run. One that cannot be
 * removed is an error, after which the others are removed all the same. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_prune(weft_context *ctx, const char *run, size_t keep);

/* ---- the lock of a run folder ---- */

typedef struct weft_run_lock weft_run_lock;

/* Takes the run folder (which must exist) for this process, through RUN/lock, and removes what crashed
 * saves left in it and in its checkpoints. WEFT_ERR_BUSY names host and process of the holder; a lock
 * whose process is gone is taken over. */
WEFT_API WEFT_CHECKED weft_status weft_run_lock_take(weft_context *ctx, const char *run, weft_run_lock **out);

/* Tells other machines on a shared file system that the holder lives: call at least once a minute. */
WEFT_API void weft_run_lock_beat(weft_run_lock *lock);

/* Whether a process that lives holds the run folder. Changes nothing. */
WEFT_API bool weft_run_lock_held(const char *run);

/* Gives the folder back. NULL is fine. */
WEFT_API void weft_run_lock_release(weft_run_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
