/* What jansson does not check, looked for in the text before jansson sees it (and allocates).
 * Must not know: what the document means. Read next: safetensors_read.c. */
#ifndef WEFT_SRC_IO_JSON_H
#define WEFT_SRC_IO_JSON_H

#include <jansson.h>

#include "base/base.h"

typedef struct weft__json_limits {
    int depth;     /* nesting of objects and arrays; at most 64 */
    size_t values; /* commas, colons and brackets: bounds what the parsed document costs */
    size_t items;  /* of one array */
    bool plain;    /* outside strings only unsigned integers: no sign, fraction, exponent, true, null */
} weft__json_limits;

/* Parses one JSON object: no duplicate keys, UTF-8, no NUL, nothing after it. NULL on failure, with
 * `problem` (256 bytes) saying what and at which byte. */
json_t *weft__json_parse(const char *text, size_t bytes, const weft__json_limits *limits, char problem[256]);

#endif
