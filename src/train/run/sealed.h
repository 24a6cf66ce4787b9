/* JSON files of a run folder that are read back, each with a seal (io/seal.h). Must not know: what they hold.
 * Read next: sealed.c. */
#ifndef WEFT_SRC_TRAIN_RUN_SEALED_H
#define WEFT_SRC_TRAIN_RUN_SEALED_H

#include "base/json.h"

/* Writes DIR/NAME, whole or not at all. Closes `json`, to which `root` belongs. */
weft_status weft__sealed_write(const char *dir, const char *name, weft__json *json, const json_t *root,
                               size_t flags);

/* Reads DIR/NAME into `json`, which the caller closes after a failure too. WEFT_ERR_FORMAT where the file is
 * damaged or was edited, WEFT_ERR_STATE where there is none. */
weft_status weft__sealed_read(weft_context *ctx, const char *dir, const char *name, weft__json *json,
                              json_t **root);

/* Reads it for its seal alone. */
weft_status weft__sealed_check(const char *dir, const char *name);

#endif
