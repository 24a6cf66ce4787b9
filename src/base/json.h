/* jansson under Weft's rules: its memory comes from weft__alloc, and a failed allocation is WEFT_ERR_OOM. A
 * failed allocation never damages a file and never leaves a gap in a text.
 *
 * jansson itself cannot promise that. If memory is short, its parser loses characters of long tokens; it may
 * then read past them, or abort. json_dumps leaves out keys. Both results look like success. So no other file
 * of src/ calls json_load*, json_dump* or json_decref. All memory of a document is freed at once.
 *
 *   Reading:  weft__json_open, weft__json_load, the json_* getters, weft__json_close
 *   Writing:  weft__json_build, json_pack and its kin (their results need no checks), weft__json_text
 *
 * Must not know: what documents mean. Read next: json.c. */
#ifndef WEFT_SRC_BASE_JSON_H
#define WEFT_SRC_BASE_JSON_H

#include <jansson.h>
#include <math.h>

#include "base/base.h"

/* The header of each allocation that jansson makes for a document. */
typedef struct weft__json_piece {
    struct weft__json_piece *before, *after;
} weft__json_piece;

typedef struct weft__json {
    weft_context *ctx;
    weft__json_piece pieces;  /* head of the ring of allocations */
    struct weft__json *outer; /* the document that jansson served on this thread before weft__json_build */
    void *escape;             /* jmp_buf of the running parser; NULL: none runs */
    bool building;
    bool reached; /* an allocation by jansson reached Weft's functions */
    bool starved; /* an allocation failed */
} weft__json;

/* Starts a document for reading. Close it with weft__json_close. */
void weft__json_open(weft__json *json, weft_context *ctx);

/* Parses a text into the document. Returns WEFT_ERR_OOM or WEFT_ERR_FORMAT; for the latter the caller makes
 * the message from `error`. Values are valid until weft__json_close. */
weft_status weft__json_load(weft__json *json, const char *text, size_t bytes, size_t flags,
                            json_error_t *error, json_t **root);

/* Starts a document for writing. Until weft__json_text or weft__json_close, all values that this thread makes
 * belong to it. Only Weft's code may use jansson on this thread in between. */
void weft__json_build(weft__json *json, weft_context *ctx);

/* Writes `root` as text and closes the document, whether it succeeds or not. Free *text with weft__free. It
 * ends with a NUL that *bytes (which may be NULL) does not count. `what` names the text in messages. Returns
 * WEFT_ERR_OOM if any allocation failed since weft__json_build, WEFT_ERR_ARGUMENT if root is NULL for another
 * reason. */
weft_status weft__json_text(weft__json *json, const json_t *root, size_t flags, const char *what, char **text,
                            size_t *bytes);

/* Sets a member of an object to a number, unless it is not finite. */
static inline void weft__json_put(json_t *object, const char *key, double value) {
    if (isfinite(value)) json_object_set_new(object, key, json_real(value));
}

/* Frees all values of the document. */
void weft__json_close(weft__json *json);

#endif
