/* What jansson does not check, looked for in the text before jansson sees it (and allocates).
 * Must not know: what the document means. Read next: safetensors_read.c. */
#ifndef WEFT_SRC_IO_JSON_H
#define WEFT_SRC_IO_JSON_H

#include "base/json.h"

typedef struct weft__json_limits {
    int depth;     /* nesting of objects and arrays; at most 64 */
    size_t values; /* commas, colons and brackets: bounds what the parsed document costs */
    size_t items;  /* of one array */
    bool plain;    /* outside strings only unsigned integers: no sign, fraction, exponent, true, null */
} weft__json_limits;

/* Parses one JSON object into a document: no duplicate keys, UTF-8, no NUL, nothing after it. WEFT_ERR_OOM,
 * or WEFT_ERR_FORMAT, whose message is the caller's to make: `problem` says what and at which byte. */
weft_status weft__json_parse(weft__json *json, const char *text, size_t bytes,
                             const weft__json_limits *limits, char problem[256], json_t **root);

#endif
