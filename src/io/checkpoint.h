/* Inside of checkpoints: RUN/checkpoints/step-N/, published as one folder.
 * Must not know: tensors, optimizers, configs. Read next: checkpoint_write.c, checkpoint_read.c. */
#ifndef WEFT_SRC_IO_CHECKPOINT_H
#define WEFT_SRC_IO_CHECKPOINT_H

#include "io/manifest.h"

#define WEFT__STEP_NAME 32 /* bytes of "step-N" */

/* RUN/checkpoints, or RUN/checkpoints/NAME; freed with weft__free. NULL when memory is short. */
char *weft__checkpoint_path(weft_context *ctx, const char *run, const char *name);

/* The N of "step-N" in its only spelling (no leading zeros); false for other names. */
bool weft__checkpoint_step(const char *name, uint64_t *step);

/* weft_checkpoint_best that tells "none was marked" (*marked false) from an error. */
weft_status weft__checkpoint_best(weft_context *ctx, const char *run, bool *marked, uint64_t *step);

/* Opens the checkpoint in the folder that `fd` is open for, which it takes over; -1: `dir` is opened.
 * Messages name `dir`. */
weft_status weft__checkpoint_open_at(weft_context *ctx, int fd, const char *dir, weft_checkpoint **out);

/* weft_checkpoint_prune that neither counts nor removes what is newer than the step `newest`: checkpoints
 * that could not be read when the run went on from an earlier one. */
weft_status weft__checkpoint_prune(weft_context *ctx, const char *run, size_t keep, uint64_t newest);

/* weft_checkpoint_write through an I/O table, for tests that make calls fail. */
weft_status weft__checkpoint_write(weft_context *ctx, const weft__io *io, const char *run,
                                   const weft_checkpoint_state *state, const weft_entry *model,
                                   size_t model_count, const weft_entry *optimizer, size_t optimizer_count);

#endif
