/* Reads JSON in place, without building a tree. A tree of jansson takes 16 to 22 times the size of the
 * text. The reader is as strict as json.h: it refuses each file that jansson refuses. Must not know: what
 * the document means. Read next: json_read.c, then data/json.c, which uses the reader. */
#ifndef WEFT_SRC_IO_JSON_READ_H
#define WEFT_SRC_IO_JSON_READ_H

#include "base/base.h"

enum { WEFT__JSON_DEPTH = 64 };

typedef struct weft__json_reader {
    weft_context *ctx;
    const char *text;
    size_t bytes, at;            /* at: the next byte */
    const char *problem;         /* why the reader stopped, at byte `at`; NULL while it has not */
    bool no_memory;              /* the reader stopped because memory was short */
    bool checked;                /* weft__json_check accepted the text, so keys are unique */
    int depth;                   /* number of open brackets */
    size_t members;              /* of the object that was skipped last */
    struct weft__json_key *keys; /* keys of the open objects */
    size_t n_keys, capacity;
} weft__json_reader;

typedef struct weft__json_number {
    bool real; /* written with a fraction or an exponent */
    int64_t integer;
    double value; /* valid for both kinds */
} weft__json_number;

/* Each function skips blanks first. A function that returns bool returns false on an error and sets
 * `problem`. Functions for which false is no error say so below. */

void weft__json_begin(weft__json_reader *r, weft_context *ctx, const void *text, size_t bytes);
/* Frees the memory used to find duplicate keys. */
void weft__json_end(weft__json_reader *r);
/* Returns the next byte, or 0 at the end of the text. */
char weft__json_peek(weft__json_reader *r);
/* Reads the next byte if it is c. Returns whether it was; false is no error. */
bool weft__json_take(weft__json_reader *r, char c);
/* Tells whether another element follows after `count` elements. When the object or array is closed, the
 * result is false without an error. */
bool weft__json_more(weft__json_reader *r, char close, size_t count);
/* Reads a string into `out`, and a NUL after it. If `out` is NULL the string is only checked. `out` must
 * have as many bytes as the quoted text: a string never becomes longer, and the NUL takes the place of the
 * closing quote. */
bool weft__json_string(weft__json_reader *r, char *out, size_t *length);
/* Reads a key and the colon after it. */
bool weft__json_name(weft__json_reader *r, char *out, size_t *length);
bool weft__json_read_number(weft__json_reader *r, weft__json_number *number);
/* Skips one value of any type. The value is checked completely, including duplicate keys. */
bool weft__json_skip(weft__json_reader *r);
/* Checks that the text is one object or array with nothing after it. The reader is then back at the
 * beginning. */
bool weft__json_check(weft__json_reader *r);
/* Returns where the reader stopped; line and column count from 1. */
void weft__json_place(const weft__json_reader *r, size_t *line, size_t *column);

#endif
