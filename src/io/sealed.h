/* JSON files of a run folder that are read back later. Each has a seal (io/seal.h). Must not know: what the
 * files hold. Read next: sealed.c. */
#ifndef WEFT_SRC_IO_SEALED_H
#define WEFT_SRC_IO_SEALED_H

#include "base/json.h"

/* Writes DIR/NAME completely, or not at all. Closes `json`, which owns `root`. */
weft_status weft__sealed_write(const char *dir, const char *name, weft__json *json, const json_t *root,
                               size_t flags);

/* Reads DIR/NAME into `json`. The caller closes `json`, also after a failure. Returns WEFT_ERR_FORMAT if the
 * file is damaged or was edited, WEFT_ERR_STATE if it does not exist. */
weft_status weft__sealed_read(weft_context *ctx, const char *dir, const char *name, weft__json *json,
                              json_t **root);

/* Checks only the seal of DIR/NAME. */
weft_status weft__sealed_check(const char *dir, const char *name);

#endif
