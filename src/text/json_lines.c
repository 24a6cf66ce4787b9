/* Files of JSON objects, see json_lines.h. Must not know: what the objects mean. Read next:
 * data/parquet_rows.h. */
#define _POSIX_C_SOURCE 200809L
#include "text/json_lines.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <zlib.h>

#include <weft/data.h>

#include "data/parquet_rows.h"
#include "io/publish.h" /* weft__fail_io */
#include "text/corpus_files.h"

enum { HEAD = 1 << 20, PIECE = 16 << 10 }; /* bytes of a file that hold its first object, and of a read */

void weft__json_line_where(const weft__json_line *line, char *where, size_t size) {
    snprintf(where, size, line->row ? "%s: row %" PRIu64 : "%s:%" PRIu64, line->path, line->number);
}

weft_status weft__json_line_load(weft__json *json, const char *where, const char *text, size_t bytes,
                                 json_t **root) {
    json_error_t error;
    const weft_status status = weft__json_load(json, text, bytes, JSON_REJECT_DUPLICATES, &error, root);
    return status == WEFT_ERR_FORMAT
               ? weft__fail(json->ctx, status, "%s: column %d: %.160s", where, error.column, error.text)
               : status;
}

/* ---- lines ---- */

weft_status weft__json_lines_of(const char *path, const char *text, size_t bytes,
                                weft__json_line_visit *visit, void *user) {
    const char *end = text + bytes;
    weft_status status = WEFT_OK;
    for (uint64_t number = 1; status == WEFT_OK && text < end; number++) {
        const char *newline = memchr(text, '\n', (size_t)(end - text)), *stop = newline ? newline : end;
        const weft__json_line line = {path, false, number, text, (size_t)(stop - text)};
        size_t blank = 0;
        while (blank < line.bytes && text[blank] && strchr(" \t\r", text[blank])) blank++;
        if (blank < line.bytes) status = visit(user, &line);
        text = newline ? newline + 1 : end;
    }
    return status;
}

static weft_status visit_lines(weft_context *ctx, const char *path, weft__json_line_visit *visit,
                               void *user) {
    weft_bytes file;
    WEFT_TRY(weft_read_file(ctx, path, 0, &file));
    const weft_status status = weft__json_lines_of(path, (const char *)file.data, file.size, visit, user);
    weft_bytes_free(ctx, &file);
    return status;
}

/* ---- rows ---- */

/* Visits at most `most` rows of an open file. */
static weft_status visit_file(weft_context *ctx, const weft__rows_file *file, uint64_t most,
                              weft__json_line_visit *visit, void *user) {
    weft__rows *rows;
    weft__rows_size size;
    WEFT_TRY(weft__rows_open(ctx, file->path, NULL, &rows));
    weft_status status = weft__rows_measure(ctx, rows, file, &size);
    if (size.rows < most) most = size.rows;
    for (uint64_t row = 0; status == WEFT_OK && row < most; row++) {
        weft__json_line line = {.path = file->path, .row = true, .number = row};
        if (!weft__rows_held(rows, file->number, row, &line.text, &line.bytes))
            status = weft__rows_read(ctx, rows, file, row, most);
        if (status == WEFT_OK) {
            (void)weft__rows_held(rows, file->number, row, &line.text, &line.bytes); /* it is there */
            status = visit(user, &line);
        }
    }
    weft__rows_free(rows);
    return status;
}

static weft_status visit_rows(weft_context *ctx, const char *path, uint64_t most,
                              weft__json_line_visit *visit, void *user) {
    const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return weft__fail_io(ctx, "open", path, errno);
    const weft__rows_file file = {.fd = fd, .path = path};
    weft_status status = weft__rows_check(ctx, path);
    if (status == WEFT_OK) status = visit_file(ctx, &file, most, visit, user);
    close(fd);
    return status;
}

/* ---- all ---- */

weft_status weft__json_lines(weft_context *ctx, const char *path, weft__json_line_visit *visit, void *user) {
    weft__text_files files;
    weft_status status = weft__text_files_list(ctx, path, &files);
    for (size_t i = 0; status == WEFT_OK && i < files.names.count; i++)
        status = files.forms[i] == WEFT__TEXT_ROWS
                     ? visit_rows(ctx, files.names.at[i], UINT64_MAX, visit, user)
                     : visit_lines(ctx, files.names.at[i], visit, user);
    weft__text_files_free(ctx, &files);
    return status;
}

/* ---- the first object ---- */

static weft_status take_object(void *user, const weft__json_line *line) {
    weft__buffer_set(user, line->text, line->bytes);
    return WEFT_OK;
}

/* Reads the first line that is not blank, or its first MiB. */
static void first_line(const char *path, weft__buffer *object) {
    gzFile file = gzopen(path, "rb"); /* reads files that are not packed, too */
    char piece[PIECE];
    bool ends = false;
    size_t seen = 0;
    for (int bytes; file && !ends && seen < HEAD && (bytes = gzread(file, piece, PIECE)) > 0;) {
        const char *at = piece, *end = piece + bytes;
        seen += (size_t)bytes;
        if (object->bytes == 0)
            while (at < end && *at && strchr(" \t\r\n", *at)) at++;
        const char *stop = memchr(at, '\n', (size_t)(end - at)), *zero = memchr(at, '\0', (size_t)(end - at));
        if (zero && (!stop || zero < stop)) stop = zero;
        ends = stop != NULL;
        weft__buffer_put(object, at, (size_t)((ends ? stop : end) - at));
    }
    if (file) (void)gzclose(file);
}

/* Lists the files of a path. The caller frees the list. False: there is none. */
static bool has_file(const char *path, weft__text_files *files) {
    return weft__text_files_list(NULL, path, files) == WEFT_OK && files->names.count > 0;
}

/* Reads the first object of a file, with a 0 behind it. */
static void first_object(const char *path, weft__text_form form, weft__buffer *object) {
    weft_status status = WEFT_OK;
    weft__buffer_set(object, "", 0);
    if (form == WEFT__TEXT_ROWS)
        status = visit_rows(NULL, path, 1, take_object, object);
    else
        first_line(path, object);
    weft__buffer_put(object, "", 1); /* the 0 */
    if (status != WEFT_OK || object->failed) object->bytes = 0;
}

void weft__json_lines_first(const char *path, weft__buffer *object) {
    weft__text_files files;
    weft__buffer_set(object, "", 0);
    if (has_file(path, &files)) first_object(files.names.at[0], files.forms[0], object);
    weft__text_files_free(NULL, &files);
}

/* ---- what the objects are for ---- */

static weft__json_lines_use use_of(const weft__buffer *object) {
    static const char *const chats[] = {"\"messages\"", "\"conversations\"", "\"completion\""};
    if (weft__json_line_has(object, "\"chosen\"") && weft__json_line_has(object, "\"rejected\""))
        return WEFT__USE_PREFERENCES;
    for (size_t i = 0; i < sizeof chats / sizeof *chats; i++)
        if (weft__json_line_has(object, chats[i])) return WEFT__USE_CHATS;
    return weft__json_line_has(object, "\"text\"") ? WEFT__USE_TEXTS : WEFT__USE_OTHER;
}

weft__json_lines_use weft__json_lines_use_of(const char *path, bool *parquet) {
    weft__text_files files;
    weft__buffer object = {0};
    const bool there = has_file(path, &files);
    const weft__text_form form = there ? files.forms[0] : WEFT__TEXT_PLAIN;
    *parquet = form == WEFT__TEXT_ROWS;
    if (form != WEFT__TEXT_PLAIN) first_object(files.names.at[0], form, &object); /* once: it starts DuckDB */
    const weft__json_lines_use use = form == WEFT__TEXT_PLAIN ? WEFT__USE_NONE
                                     : object.bytes < 2       ? WEFT__USE_EMPTY /* there is the 0 at most */
                                                              : use_of(&object);
    weft__buffer_free(&object);
    weft__text_files_free(NULL, &files);
    return use;
}

bool weft__json_lines_are(const char *path) {
    weft__buffer line = {0};
    first_object(path, WEFT__TEXT_LINES, &line);
    size_t end = line.bytes ? line.bytes - 1 : 0; /* the 0 */
    while (end > 0 && strchr(" \t\r", line.text[end - 1])) end--;
    const bool whole = end > 1 && line.text[0] == '{' && line.text[end - 1] == '}';
    const bool are = whole && use_of(&line) != WEFT__USE_OTHER;
    weft__buffer_free(&line);
    return are;
}

bool weft__json_line_has(const weft__buffer *object, const char *key) {
    if (object->bytes == 0) return false;
    for (const char *at = object->text; (at = strstr(at, key)); at++) {
        const char *after = at + strlen(key);
        after += strspn(after, " \t");
        if (*after == ':' && (at == object->text || at[-1] != '\\')) return true; /* no quote inside a text */
    }
    return false;
}
