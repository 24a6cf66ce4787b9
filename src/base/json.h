/* jansson under Weft's rules: its memory comes from weft__alloc, and a failed allocation is WEFT_ERR_OOM,
 * never damage of a file and never a text with a hole.
 *
 * jansson itself cannot promise that. Where memory is short, its parser loses characters of long tokens (it
 * may then read past them, or abort), and json_dumps leaves keys out, both with a result that looks like
 * success. So no other file of src/ calls json_load*, json_dump* or json_decref. A document lies in an arena
 * that is freed as a whole.
 *
 *   Reading:  weft__json_open, weft__json_load, the json_* getters, weft__json_close
 *   Writing:  weft__json_build, json_pack and its kin (their results need no checks), weft__json_text
 *
 * Must not know: what documents mean. Read next: json.c. */
#ifndef WEFT_SRC_BASE_JSON_H
#define WEFT_SRC_BASE_JSON_H

#include <jansson.h>

#include "base/base.h"

/* What stands in front of each piece of memory that jansson has for a document. */
typedef struct weft__json_piece {
    struct weft__json_piece *before, *after;
} weft__json_piece;

typedef struct weft__json {
    weft_context *ctx;
    weft__json_piece pieces;  /* the head of their ring */
    struct weft__json *outer; /* whom jansson served on this thread before weft__json_build */
    void *escape;             /* jmp_buf of the parser that runs; NULL: none does */
    bool building;
    bool reached; /* by jansson's request for memory */
    bool starved; /* an allocation failed */
} weft__json;

/* Begins a document that is to be read. Close it with weft__json_close. */
void weft__json_open(weft__json *json, weft_context *ctx);

/* Parses a text into the document. WEFT_ERR_OOM, or WEFT_ERR_FORMAT: then the message is the caller's to make
 * from `error`. The values are valid until weft__json_close. */
weft_status weft__json_load(weft__json *json, const char *text, size_t bytes, size_t flags,
                            json_error_t *error, json_t **root);

/* Begins a document that is to be written: until weft__json_text or weft__json_close, all values that this
 * thread makes belong to it. No code but Weft's may run in between. */
void weft__json_build(weft__json *json, weft_context *ctx);

/* The text of `root`, freed with weft__free, ends with a NUL that *bytes (which may be NULL) does not count.
 * WEFT_ERR_OOM where any allocation failed since weft__json_build, WEFT_ERR_ARGUMENT where root is NULL for
 * another reason. `what` names the text in messages. Closes the document in any case. */
weft_status weft__json_text(weft__json *json, const json_t *root, size_t flags, const char *what, char **text,
                            size_t *bytes);

/* Frees all values. */
void weft__json_close(weft__json *json);

#endif
