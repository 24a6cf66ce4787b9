/* The seal of a JSON text: its last line is the checksum of all bytes before it, in a fixed form, so that no
 * byte can change, go or come without being seen. The text stays JSON, with one more key. A seal detects
 * damage and edits, not forgery. Must not know: what the text means. Read next: seal.c, manifest.h. */
#ifndef WEFT_SRC_IO_SEAL_H
#define WEFT_SRC_IO_SEAL_H

#include "base/base.h"

/* Seals the text of a JSON object that has a key. The result is freed with weft__free. */
weft_status weft__seal(weft_context *ctx, const char *body, size_t body_bytes, char **text, size_t *bytes);

/* WEFT_ERR_FORMAT, naming `path`, where the text does not end in its seal. */
weft_status weft__seal_check(weft_context *ctx, const char *path, const char *text, size_t bytes);

#endif
