/* JSON read where it lies, without a tree: jansson's takes 16 to 22 times the text. Strict, as json.h is: a
 * file that jansson refuses is refused here too. Must not know: what the document means. Read next:
 * json_read.c, then data/json.c, which is read by it. */
#ifndef WEFT_SRC_IO_JSON_READ_H
#define WEFT_SRC_IO_JSON_READ_H

#include "base/base.h"

enum { WEFT__JSON_DEPTH = 64 };

typedef struct weft__json_reader {
    weft_context *ctx;
    const char *text;
    size_t bytes, at;            /* at: the next byte */
    const char *problem;         /* why it stopped, at byte `at`; NULL: it did not */
    bool no_memory;              /* that was why */
    bool checked;                /* by weft__json_check: keys differ */
    int depth;                   /* open brackets */
    size_t members;              /* of the object that was skipped last */
    struct weft__json_key *keys; /* of open objects */
    size_t n_keys, capacity;
} weft__json_reader;

typedef struct weft__json_number {
    bool real; /* written with a fraction or an exponent */
    int64_t integer;
    double value; /* in any case */
} weft__json_number;

/* All functions pass blanks first. Those that return bool say false with `problem` set, except where it is
 * told. */

void weft__json_begin(weft__json_reader *r, weft_context *ctx, const void *text, size_t bytes);
/* Gives back what duplicate keys were looked for with. */
void weft__json_end(weft__json_reader *r);
/* The next byte, 0 at the end. */
char weft__json_peek(weft__json_reader *r);
/* Whether the next byte is c, which is then read; no problem. */
bool weft__json_take(weft__json_reader *r, char c);
/* Whether an element follows the `count` ones before it; no problem where the object or array is closed. */
bool weft__json_more(weft__json_reader *r, char close, size_t count);
/* A string; `out` (NULL: it is only checked) has room for as many bytes as its text, since it never becomes
 * longer. A NUL is put behind it in place of the closing quote. */
bool weft__json_string(weft__json_reader *r, char *out, size_t *length);
/* A key and the colon after it. */
bool weft__json_name(weft__json_reader *r, char *out, size_t *length);
bool weft__json_read_number(weft__json_reader *r, weft__json_number *number);
/* Any value, checked in all its depth, duplicate keys included. */
bool weft__json_skip(weft__json_reader *r);
/* An object or an array, and nothing after it; then the reader is at the beginning again. */
bool weft__json_check(weft__json_reader *r);
/* Where it stopped, both from 1. */
void weft__json_place(const weft__json_reader *r, size_t *line, size_t *column);

#endif
