/* The private interface of checkpoints. A checkpoint is the folder RUN/checkpoints/step-N/, published as a
 * whole:
 *
 *     state.json              the manifest: state of the run, size and checksums of the other files
 *     model.safetensors       parameters and buffers
 *     optimizer.safetensors   state of the optimizer; or a file for each process that has a part of it
 *
 * Must not know: tensors, optimizers, configurations. Read next: checkpoint_write.c, checkpoint_group.c,
 * checkpoint_read.c. */
#ifndef WEFT_SRC_IO_CHECKPOINT_H
#define WEFT_SRC_IO_CHECKPOINT_H

#include "io/manifest.h"

#define WEFT__STEP_NAME 32 /* bytes of "step-N" */

/* Returns the path RUN/checkpoints, or RUN/checkpoints/NAME if `name` is not NULL. The caller frees it
 * with weft__free. Returns NULL when memory is short. */
char *weft__checkpoint_path(weft_context *ctx, const char *run, const char *name);

/* Reads N from "step-N". The only valid spelling of N has no leading zeros. Returns false for other names. */
bool weft__checkpoint_step(const char *name, uint64_t *step);

/* Does the same as weft_checkpoint_best, but tells "no checkpoint is marked" (*marked is false) from an
 * error. */
weft_status weft__checkpoint_best(weft_context *ctx, const char *run, bool *marked, uint64_t *step);

/* Opens and verifies a checkpoint, and the data of its first `checked` files. `fd` is an open descriptor of
 * its folder, which this function takes over. If `fd` is -1, the function opens `dir`. Error messages name
 * `dir`. */
weft_status weft__checkpoint_open_at(weft_context *ctx, int fd, const char *dir, size_t checked,
                                     weft_checkpoint **out);

/* Does the same as weft_checkpoint_open_newest in all processes of a group, which may be NULL. Each process
 * verifies some of the arrays, so that together they read each byte once. All return the same status. A
 * message of another rank than 0 begins with the rank. */
weft_status weft__checkpoint_open_newest(weft_context *ctx, weft_process_group *group, const char *run,
                                         bool strict, weft_checkpoint **out);

/* Verifies one file of a checkpoint. `fd` and `dir` as above. */
weft_status weft__checkpoint_check_file(weft_context *ctx, int fd, const char *dir,
                                        const weft__manifest_file *described);

/* Does the same as weft_checkpoint_prune, but neither counts nor removes checkpoints of steps after
 * `newest`. Such checkpoints remain when they could not be read and the run continued from an earlier one. */
weft_status weft__checkpoint_prune(weft_context *ctx, const char *run, size_t keep, uint64_t newest);

/* Writes a file into the folder of a checkpoint and describes it. The description is allocated in the
 * arena. Its names are those of `entries`. Parts of arrays are refused if `whole` is set. */
weft_status weft__checkpoint_write_file(weft_arena *arena, weft__folder *folder, const char *name,
                                        const weft_entry *entries, size_t count, bool whole,
                                        weft__manifest_file *out);

/* Writes the manifest of all files, and opens the checkpoint as a reader will: what cannot be read must not
 * be published. The data of the first `checked` files are verified. */
weft_status weft__checkpoint_complete(weft_context *ctx, weft__folder *folder, const char *run,
                                      const weft_checkpoint_state *state, const weft__manifest_file *files,
                                      size_t count, size_t checked);

/* Starts the folder of a checkpoint. The run folder must exist. */
weft_status weft__checkpoint_begin(weft_context *ctx, const weft__io *io, const char *run, uint64_t step,
                                   weft__folder **folder);

/* The same as weft_checkpoint_write and weft_checkpoint_write_group through a table of I/O calls. Tests use
 * the table to make calls fail. `status`: if this process has failed before, all fail. */
weft_status weft__checkpoint_write_group(weft_context *ctx, const weft__io *io, weft_process_group *group,
                                         weft_status status, const char *run,
                                         const weft_checkpoint_state *state, const weft_entry *model,
                                         size_t model_count, const weft_entry *optimizer,
                                         size_t optimizer_count);
weft_status weft__checkpoint_write(weft_context *ctx, const weft__io *io, const char *run,
                                   const weft_checkpoint_state *state, const weft_entry *model,
                                   size_t model_count, const weft_entry *optimizer, size_t optimizer_count);

#endif
