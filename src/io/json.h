/* Checks what jansson does not check. The text is scanned before jansson sees it, because jansson
 * allocates memory while it reads. Must not know: what the document means. Read next: safetensors_read.c. */
#ifndef WEFT_SRC_IO_JSON_H
#define WEFT_SRC_IO_JSON_H

#include "base/json.h"

typedef struct weft__json_limits {
    int depth;     /* nesting of objects and arrays; at most 64 */
    size_t values; /* commas, colons and brackets: limits the memory of the parsed document */
    size_t items;  /* elements of one array */
    /* outside strings, allow only unsigned integers: no sign, fraction, exponent, true or null */
    bool plain;
} weft__json_limits;

/* Parses one JSON object into a document. Duplicate keys, invalid UTF-8, NUL, and text after the object
 * are errors. Returns WEFT_OK, WEFT_ERR_OOM or WEFT_ERR_FORMAT. For WEFT_ERR_FORMAT the caller makes the
 * message: `problem` says what is wrong and at which byte. */
weft_status weft__json_parse(weft__json *json, const char *text, size_t bytes,
                             const weft__json_limits *limits, char problem[256], json_t **root);

#endif
