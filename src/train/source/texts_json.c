/* Reads JSON lines as a table of texts: one object in each line. Must not know: which members matter. Read
 * next: texts.c. */
#include <stdio.h>
#include <string.h>

#include "base/buffer.h"
#include "base/json.h"
#include "data/parse.h"
#include "text/json_lines.h"
#include "train/source/texts.h"

#define NONE SIZE_MAX /* the place of a cell that is no text */

typedef struct json_lines {
    weft_context *ctx;
    const char *path;
    weft_table *table;
    weft__buffer text; /* the cells, each followed by 0 */
    size_t *begin;     /* of each cell in `text`, row after row; or NONE */
    size_t begin_capacity;
    size_t line_capacity;
} json_lines;

/* Adds a cell. text NULL: none. False if memory is short. */
static bool add_cell(json_lines *r, size_t cell, const char *text, size_t bytes) {
    if (!weft__grow(r->ctx, &r->begin, &r->begin_capacity, cell, sizeof *r->begin)) return false;
    r->begin[cell] = NONE;
    if (!text) return true;
    r->begin[cell] = r->text.bytes;
    weft__buffer_put(&r->text, text, bytes);
    weft__buffer_put(&r->text, "", 1); /* the 0 */
    return !r->text.failed;
}

/* Adds the value of a member: a text, a whole number or a truth value. */
static bool add_value(json_lines *r, size_t cell, const json_t *value) {
    char number[32];
    if (json_is_string(value)) return add_cell(r, cell, json_string_value(value), json_string_length(value));
    if (json_is_boolean(value))
        return add_cell(r, cell, json_is_true(value) ? "true" : "false", 4U + json_is_false(value));
    if (!json_is_integer(value)) return add_cell(r, cell, NULL, 0);
    const int n = snprintf(number, sizeof number, "%lld", (long long)json_integer_value(value));
    return add_cell(r, cell, number, (size_t)n);
}

/* The members of the first line are the columns. */
static weft_status take_names(json_lines *r, json_t *object) {
    const size_t count = json_object_size(object);
    const char **names = weft__array(r->ctx, count + 1, sizeof *names);
    size_t n = 0;
    for (void *at = json_object_iter(object); names && at; at = json_object_iter_next(object, at))
        names[n++] = json_object_iter_key(at);
    if (names) r->table->columns = weft__strings_pack(r->ctx, names, n);
    weft__free(r->ctx, names);
    r->table->column_count = n;
    return r->table->columns ? WEFT_OK : weft__fail_oom(r->ctx, count, "the members of JSON lines");
}

static weft_status take_row(json_lines *r, const char *where, size_t line, json_t *object) {
    weft_table *t = r->table;
    if (!json_is_object(object))
        return weft__fail(r->ctx, WEFT_ERR_FORMAT,
                          "%s: each line is a JSON object, such as {\"text\": \"...\", \"label\": \"...\"}",
                          where);
    if (t->rows == 0) WEFT_TRY(take_names(r, object));
    bool made = weft__grow(r->ctx, &t->lines, &r->line_capacity, t->rows, sizeof *t->lines);
    for (size_t i = 0; made && i < t->column_count; i++)
        made = add_value(r, t->rows * t->column_count + i, json_object_get(object, t->columns[i]));
    if (!made) return weft__fail_oom(r->ctx, r->text.bytes, r->path);
    t->lines[t->rows++] = line;
    return WEFT_OK;
}

static weft_status parse_line(void *user, const weft__json_line *line) {
    json_lines *r = user;
    weft__json json;
    json_t *root;
    char where[4200];
    weft__json_line_where(line, where, sizeof where);
    weft__json_open(&json, r->ctx);
    weft_status status = weft__json_line_load(&json, where, line->text, line->bytes, &root);
    if (status == WEFT_OK) status = take_row(r, where, (size_t)line->number, root);
    weft__json_close(&json);
    return status;
}

/* Makes the cells of the table, in one block. */
static weft_status finish_cells(json_lines *r) {
    const size_t count = r->table->rows * r->table->column_count;
    char **cells = weft__alloc(r->ctx, count * sizeof *cells + r->text.bytes + 1);
    if (!cells) return weft__fail_oom(r->ctx, r->text.bytes, r->path);
    char *text = (char *)(cells + count);
    if (r->text.bytes) memcpy(text, r->text.text, r->text.bytes);
    for (size_t i = 0; i < count; i++) cells[i] = r->begin[i] == NONE ? NULL : text + r->begin[i];
    r->table->cells = cells;
    return WEFT_OK;
}

/* Reads the lines of a path or, if `text` is given, those of a text. */
static weft_status read_json(weft_context *ctx, const char *path, const char *text, size_t bytes,
                             weft_table *table) {
    json_lines r = {.ctx = ctx, .path = path, .table = table, .text = {.ctx = ctx}};
    *table = (weft_table){0};
    weft_status status = text ? weft__json_lines_of(path, text, bytes, parse_line, &r)
                              : weft__json_lines(ctx, path, parse_line, &r);
    if (status == WEFT_OK && table->rows == 0)
        status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the file has no lines", path);
    if (status == WEFT_OK) status = finish_cells(&r);
    weft__buffer_free(&r.text);
    weft__free(ctx, r.begin);
    return status;
}

weft_status weft__texts_read_json(weft_context *ctx, const char *path, weft_table *table) {
    return read_json(ctx, path, NULL, 0, table);
}

weft_status weft__texts_parse_json(weft_context *ctx, const char *name, const char *text, size_t bytes,
                                   weft_table *table) {
    return read_json(ctx, name, text, bytes, table);
}
