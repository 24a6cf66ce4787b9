/* The seal of a JSON text. The last line of a sealed text is the checksum of all bytes before it:
 *
 *     {
 *      "key": "value", ...,
 *      "checksum": "01234567:0123456789abcdef"
 *     }
 *
 * The line has a fixed form, so that each changed, added or missing byte is noticed. The text stays valid
 * JSON with one more key. A seal detects damage and edits, not forgery.
 *
 * Must not know: what the text means. Read next: seal.c, manifest.h. */
#ifndef WEFT_SRC_IO_SEAL_H
#define WEFT_SRC_IO_SEAL_H

#include "base/base.h"

/* Seals the text of a JSON object that has at least one key. The caller frees the result with weft__free. */
weft_status weft__seal(weft_context *ctx, const char *body, size_t body_bytes, char **text, size_t *bytes);

/* Returns WEFT_ERR_FORMAT, with a message that names `path`, if the text does not end in its seal. */
weft_status weft__seal_check(weft_context *ctx, const char *path, const char *text, size_t bytes);

#endif
