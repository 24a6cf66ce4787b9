/* Files that outlive a process: safetensors, checkpoints, the lock of a run folder, atomic writes.
 *
 * Entries are host memory: name, dtype, shape, bytes. The caller copies tensors to and from them.
 *
 * Weft trusts no byte of a file that it reads here. It checks lengths against the file's size before it
 * allocates anything, and uses no more memory than the file's header justifies.
 *
 * The context of each function may be NULL. It serves only memory, errors and log lines. One thread at a
 * time may use an object. Close objects before their context.
 *
 * JSON is read and written with jansson. Weft installs its own memory function in front of the one that is
 * set (json_set_alloc_funcs), once. It passes on every request that does not come from Weft. So your
 * program may use jansson too, with its own functions. A plugin that links Weft statically must not be
 * unloaded. */
#ifndef WEFT_IO_H
#define WEFT_IO_H

#include <weft/process_group.h>

#ifdef __cplusplus
extern "C" {
#endif

#define WEFT_ENTRY_RANK_MAX 8
#define WEFT_ENTRY_NAME_MAX 4096 /* bytes of an entry's name */

/* ---- writing a file ---- */

/* Writes a whole file atomically: after a crash at any moment the disk has the old file or the new one. The
 * steps are: a temporary file beside it, fsync, rename, fsync of the folder. The file has the mode that umask
 * gives. The folder must exist.
 *
 * On failure the old file stays. WEFT_ERR_IO names path and cause; for a full disk also the bytes needed
 * and free. */
WEFT_API WEFT_CHECKED weft_status weft_write_file(weft_context *ctx, const char *path, const void *data,
                                                  size_t bytes);

/* Makes a folder and its missing parents, durably. An existing folder is no error. */
WEFT_API WEFT_CHECKED weft_status weft_make_folder(weft_context *ctx, const char *path);

/* ---- entries ---- */

/* The place of a part within its array, whose elements count row-major. */
typedef struct weft_entry_part {
    int64_t from;         /* the element with which the part begins */
    int rank;             /* of the whole array, 0 to 8 */
    const int64_t *shape; /* [rank] of the whole array */
} weft_entry_part;

/* An array to write. `data` points to its elements, row-major. If `data` is NULL, Weft calls `read`, which
 * fills `out` with the `bytes` bytes from byte `offset` on. These calls come in order, with at most 1 MiB
 * each.
 *
 * The fields are borrowed for the call. A scalar has rank 0 and shape NULL. */
typedef struct weft_entry {
    const char *name; /* UTF-8, 1 to 4096 bytes, unique in its file */
    weft_dtype dtype;
    int rank;             /* 0 to 8 */
    const int64_t *shape; /* [rank] */
    const void *data;
    weft_status (*read)(void *user, size_t offset, void *out, size_t bytes);
    void *user;
    const weft_entry_part *part; /* the entry, of rank 1, is a part of an array, for
                                  * weft_checkpoint_write_group; NULL: it is a whole array */
    bool together;               /* several processes have its elements, and `read` must be called in all of
                                  * them */
} weft_entry;

/* An array in an open file. Pointers are valid until the file is closed. */
typedef struct weft_entry_info {
    const char *name;
    weft_dtype dtype;
    int rank;
    const int64_t *shape; /* [rank] */
    size_t bytes;
} weft_entry_info;

/* One key and value of a file's metadata. */
typedef struct weft_metadata {
    const char *key, *value;
} weft_metadata;

/* ---- safetensors ---- */

typedef struct weft_safetensors weft_safetensors;

/* Opens a safetensors file and checks its whole header: sizes, strict JSON, names, dtypes, shapes, and
 * ranges that cover the data exactly. On failure *out is NULL: WEFT_ERR_IO, or WEFT_ERR_FORMAT, which names
 * the entry and field. This format has no checksum of the data. */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_open(weft_context *ctx, const char *path,
                                                        weft_safetensors **out);

/* The same for bytes in memory, which must outlive the result. Messages show `name`; NULL: "memory". */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_open_memory(weft_context *ctx, const char *name,
                                                               const void *data, size_t bytes,
                                                               weft_safetensors **out);

/* NULL is allowed. */
WEFT_API void weft_safetensors_close(weft_safetensors *file);

/* The number of entries. Entries are numbered in the order of their names, by bytes. */
WEFT_API size_t weft_safetensors_count(const weft_safetensors *file);

/* Describes entry i; false if there is none. */
WEFT_API bool weft_safetensors_entry(const weft_safetensors *file, size_t i, weft_entry_info *info);

/* Finds the number of the entry of that name; false if there is none. */
WEFT_API bool weft_safetensors_find(const weft_safetensors *file, const char *name, size_t *i);

/* Reads `bytes` bytes of entry i from byte `offset` on. WEFT_ERR_INDEX past the entry's end. WEFT_ERR_IO if
 * the file has become too short. */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_read(weft_safetensors *file, size_t i, size_t offset,
                                                        void *out, size_t bytes);

/* The entries of __metadata__, in the order of their keys. Valid until the file is closed. */
WEFT_API const weft_metadata *weft_safetensors_metadata(const weft_safetensors *file, size_t *count);

/* Writes a safetensors file atomically: on failure nothing appears under the name. Weft reads the file back
 * and verifies it before the rename. metadata may be NULL.
 *
 * The bytes of the file depend only on the entries and metadata; it has no time, path or host in it. Names
 * are sorted. The data is ordered by element size (widest first), then by name, and begins at a multiple of
 * 64 bytes.
 *
 * WEFT_ERR_ARGUMENT names a bad entry. WEFT_ERR_UNSUPPORTED names a dtype that the format lacks (c128).
 * WEFT_ERR_IO names the path and cause. */
WEFT_API WEFT_CHECKED weft_status weft_safetensors_write(weft_context *ctx, const char *path,
                                                         const weft_entry *entries, size_t count,
                                                         const weft_metadata *metadata,
                                                         size_t metadata_count);

/* ---- checkpoints: RUN/checkpoints/step-N/{model.safetensors,optimizer.safetensors,state.json} ----
 *
 * Several processes write optimizer-00001-of-00004.safetensors, ... instead of optimizer.safetensors. */

/* What a run needs, besides its arrays, to continue as if it had never stopped. */
typedef struct weft_checkpoint_state {
    uint64_t step; /* optimizer steps done, also the N of the folder; at most INT64_MAX */
    uint64_t seed;
    uint64_t data_position;  /* in the caller's units; at most INT64_MAX */
    uint32_t ranks;          /* 0 is written as 1 */
    const char *config_hash; /* any text; NULL: "" */
    const char *data_hash;   /* any text; NULL: "" */
    const char *extra;       /* the caller's JSON object; its meaning is kept, not its formatting; NULL: {} */
} weft_checkpoint_state;

typedef struct weft_checkpoint weft_checkpoint;

/* Writes one checkpoint atomically: a new folder with all files flushed to disk, made visible by one
 * rename. The manifest state.json is written last. It has the sizes, and a CRC-32 and a 64-bit hash of
 * every array. Weft reads the files back and verifies them, as weft_checkpoint_open does, before the
 * rename.
 *
 * The run folder must exist: a run folder that was moved is not made again. The checksums detect
 * corruption, not tampering. A checkpoint of the same step is replaced. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_write(weft_context *ctx, const char *run,
                                                        const weft_checkpoint_state *state,
                                                        const weft_entry *model, size_t model_count,
                                                        const weft_entry *optimizer, size_t optimizer_count);

/* Writes one checkpoint with all processes of a group, atomically as a whole. Each process writes its entries
 * of the optimizer into a file of its own, at the same time as the others: whole arrays, or parts of arrays
 * that the processes have divided. Each array must come out whole. A reader sees whole arrays.
 *
 * All processes must call it, and get the same status. If one of them fails, nothing is published, and the
 * message names its rank and machine. The other processes need no run folder of their own: they write into
 * the folder of process 0, which must be on a file system that they share. Their `run` and `state` are
 * ignored, and so is their `model`, unless its entries are read together (WEFT_SHARD_PARAMETERS): then all
 * processes give the same entries. group NULL: writes as weft_checkpoint_write. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_write_group(
    weft_context *ctx, weft_process_group *group, const char *run, const weft_checkpoint_state *state,
    const weft_entry *model, size_t model_count, const weft_entry *optimizer, size_t optimizer_count);

/* Opens the checkpoint in folder `dir` (the step-N folder itself) and verifies every byte of it. On failure
 * *out is NULL, and the message names the file and the array or field:
 * - WEFT_ERR_FORMAT: damaged or missing files
 * - WEFT_ERR_UNSUPPORTED: a newer format
 * - WEFT_ERR_IO: files that cannot be read now (no permission, too many open files, a failing disk)
 * - WEFT_ERR_OOM */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_open(weft_context *ctx, const char *dir,
                                                       weft_checkpoint **out);

/* Opens the newest valid checkpoint of a run. If a checkpoint is damaged (WEFT_ERR_FORMAT), Weft logs a
 * warning and tries the one before it; with `strict` it returns the error instead. Other errors are always
 * returned. WEFT_ERR_STATE if the run has no checkpoint. If all are damaged, the status is that of the
 * newest one. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_open_newest(weft_context *ctx, const char *run, bool strict,
                                                              weft_checkpoint **out);

/* NULL is allowed. */
WEFT_API void weft_checkpoint_close(weft_checkpoint *checkpoint);

/* The state, valid until the checkpoint is closed, with all its strings (never NULL here). */
WEFT_API const weft_checkpoint_state *weft_checkpoint_state_of(const weft_checkpoint *checkpoint);

/* Model and optimizer, to be read with weft_safetensors_*. They belong to the checkpoint. If several
 * processes wrote the optimizer, it has the whole arrays, each of which is read from several files. */
WEFT_API weft_safetensors *weft_checkpoint_model(weft_checkpoint *checkpoint);
WEFT_API weft_safetensors *weft_checkpoint_optimizer(weft_checkpoint *checkpoint);

/* Opens, verifies and closes a checkpoint, as `weft info DIR --check` does. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_verify(weft_context *ctx, const char *dir);

/* The steps of a run's checkpoints, newest first. At most `capacity` steps are stored; *count is the number
 * of checkpoints. A run without checkpoints is no error. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_list(weft_context *ctx, const char *run, uint64_t *steps,
                                                       size_t capacity, size_t *count);

/* Makes RUN/checkpoints/best a link to the checkpoint of that step, which must exist. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_mark_best(weft_context *ctx, const char *run,
                                                            uint64_t step);

/* The step that `best` links to, or is a copy of; false if none was marked, or if the step cannot be told. */
WEFT_API bool weft_checkpoint_best(const char *run, uint64_t *step);

/* Opens and verifies the best checkpoint. WEFT_ERR_STATE if none was marked. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_open_best(weft_context *ctx, const char *run,
                                                            weft_checkpoint **out);

/* Removes all checkpoints of a run but the best and the newest `keep` (at least 1). A checkpoint that
 * cannot be removed is an error, but the others are removed all the same. */
WEFT_API WEFT_CHECKED weft_status weft_checkpoint_prune(weft_context *ctx, const char *run, size_t keep);

/* ---- the lock of a run folder ---- */

typedef struct weft_run_lock weft_run_lock;

/* Locks the run folder, which must exist, for this process, with the file RUN/lock. Removes what crashed
 * saves left in the folder and in its checkpoints. WEFT_ERR_BUSY names host and process of the holder. A
 * lock whose process has ended is taken over. */
WEFT_API WEFT_CHECKED weft_status weft_run_lock_take(weft_context *ctx, const char *run, weft_run_lock **out);

/* Tells other machines on a shared file system that this process is alive. Call it at least once a minute. */
WEFT_API void weft_run_lock_beat(weft_run_lock *lock);

/* True if a living process holds the run folder. Changes nothing. */
WEFT_API bool weft_run_lock_held(const char *run);

/* Unlocks the folder. NULL is allowed. */
WEFT_API void weft_run_lock_release(weft_run_lock *lock);

#ifdef __cplusplus
}
#endif
#endif
