/* Files whose lines are JSON objects, and Parquet files, whose rows become such objects. Must not know: what
 * the objects mean. Read next: json_lines.c, chats.c. */
#ifndef WEFT_SRC_TEXT_JSON_LINES_H
#define WEFT_SRC_TEXT_JSON_LINES_H

#include "base/buffer.h"
#include "base/json.h"

/* An object as text. */
typedef struct weft__json_line {
    const char *path;
    bool row;        /* of a Parquet file */
    uint64_t number; /* of the line, from 1 on; of the row, from 0 on */
    const char *text;
    size_t bytes;
} weft__json_line;

typedef weft_status weft__json_line_visit(void *user, const weft__json_line *line);

/* Calls `visit` for each line that is not blank, in their order. The path is a file, a folder, or a pattern
 * (corpus_files.h). A file of lines may be packed with gzip and is in memory; of a Parquet file, only some MB
 * are. */
weft_status weft__json_lines(weft_context *ctx, const char *path, weft__json_line_visit *visit, void *user);

/* The same for the lines of a text. path: for messages. */
weft_status weft__json_lines_of(const char *path, const char *text, size_t bytes,
                                weft__json_line_visit *visit, void *user);

/* Writes where a line is, for messages: FILE:3, or FILE: row 2. */
void weft__json_line_where(const weft__json_line *line, char *where, size_t size);

/* Parses the JSON of a line. where: of the line, for the message; it names the column, too. */
weft_status weft__json_line_load(weft__json *json, const char *where, const char *text, size_t bytes,
                                 json_t **root);

/* What the objects of a path are for, by the keys of the first one. */
typedef enum weft__json_lines_use {
    WEFT__USE_NONE,        /* the first file of the path is no file of objects */
    WEFT__USE_EMPTY,       /* it has no object, or cannot be read */
    WEFT__USE_OTHER,       /* they have none of the keys below */
    WEFT__USE_TEXTS,       /* "text" */
    WEFT__USE_CHATS,       /* "messages", "conversations" or "completion" */
    WEFT__USE_PREFERENCES, /* "chosen" and "rejected" */
} weft__json_lines_use;

/* Finds the use. *parquet: the first file is a Parquet file. */
weft__json_lines_use weft__json_lines_use_of(const char *path, bool *parquet);

/* Tells whether a file begins with a line that is a whole object with some of these keys. */
bool weft__json_lines_are(const char *path);

/* Reads the first object, with a 0 behind it, without a message if this fails: the buffer is empty then. Of a
 * file of lines, only the first MiB is read. */
void weft__json_lines_first(const char *path, weft__buffer *object);

/* Tells whether such an object has the key, given with its quotes. */
bool weft__json_line_has(const weft__buffer *object, const char *key);

#endif
