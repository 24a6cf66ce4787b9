/* Reads tables from csv files with libcsv in strict mode. The file is given to libcsv line by line, so that
 * messages can name the line of each cell. The first row decides the columns (csv_columns.c). Every later
 * cell is written straight to its place in the result, or kept as text (csv_text.c). Must not know: where the
 * bytes come from. Read next: csv_columns.c. */
#include "data/csv.h"
#include "base/utf8.h"
#include "data/parquet.h"

#include <csv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define ROW_MAX ((size_t)1 << 20) /* bytes of a row, including line ends within quotes */

typedef struct reader {
    weft_context *ctx;
    const char *file;
    const weft_csv_options *options;
    const char *whole; /* the text of a csv file, and its size */
    size_t whole_size;
    weft_status status; /* the first failure; callbacks cannot stop libcsv, so they do nothing after it */
    size_t line;        /* current line, from 1 */
    size_t blank_line;  /* first blank line seen, or 0; only blank lines may follow */
    struct {            /* the current row */
        size_t line;    /* its first line */
        size_t bytes;   /* of it so far */
        bool ended;     /* by the last line */
        size_t cell;    /* number of cells so far */
    } row;
    csv_columns columns; /* .count is 0 until the first row is complete */
    size_t header_line;  /* 0 without a header */
    bool guessed;        /* the header has numbers, and the options do not ask for it */
    bool classes;        /* the target is a class label, not a number */
    bool target_decided;
    struct {
        char *cells; /* of the first row, each followed by 0 */
        size_t size, capacity;
    } first;
    size_t rows;      /* complete rows */
    size_t first_row; /* of them, those of the files before this one */
    struct {
        void *data;      /* (rows + the current one, columns.features), f32 or f64 */
        size_t capacity; /* in rows */
    } features;
    struct {
        void *data; /* (rows + 1): f32 or f64, or the u32 number of a label */
        size_t capacity;
    } target;
    struct {
        float *data; /* (rows + 1), with options.weight */
        size_t capacity;
    } weights;
    weft__labels labels;
    csv_text text; /* the features instead, with options.text */
} reader;

/* ---- messages ---- */

/* Fails with, for example, `f.csv: line 3 (row 2), column 4 ("bmi"): expected a number, found "x"`. */
static void fail_cell(reader *r, size_t column, const char *what, const char *text, size_t size) {
    char shown[WEFT__EXCERPT], name[WEFT__EXCERPT] = "", found[WEFT__EXCERPT + 16] = "";
    if (column < r->columns.count) {
        weft__excerpt(name, r->columns.name[column], strlen(r->columns.name[column]));
    }
    if (text != NULL) snprintf(found, sizeof found, ", found %s", weft__excerpt(shown, text, size));
    r->status = weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: line %zu (row %zu), column %zu (%s): %s%s", r->file,
                           r->line, r->rows - r->first_row + 1, column + 1, name, what, found);
}

/* Sets the failure "out of memory". */
static void fail_oom(reader *r, size_t bytes) { r->status = weft__fail_oom(r->ctx, bytes, r->file); }

/* ---- cells of data rows ---- */

/* Parses a number: an f32, or with options.f64 a number below its bound. */
static weft__number_kind parse_number(const reader *r, char point, const char *text, size_t size,
                                      double *value) {
    float narrow = 0;
    if (r->options->f64) {
        const weft__number_kind kind = weft__parse_f64_with(text, size, point, value);
        return kind == WEFT__NUMBER_OK && fabs(*value) > FLT_MAX ? WEFT__NUMBER_OVERFLOW : kind;
    }
    const weft__number_kind kind = weft__parse_f32_with(text, size, point, &narrow);
    *value = (double)narrow;
    return kind;
}

/* Reads a number. On failure the message names the cell. */
static double read_number(reader *r, size_t column, const char *text, size_t size) {
    double value = 0;
    switch (parse_number(r, r->options->decimal, text, size, &value)) {
    case WEFT__NUMBER_OK: return value;
    case WEFT__NUMBER_NONFINITE:
        if (!r->options->allow_nonfinite) {
            fail_cell(r, column, "expected a finite number (correct the cell, or leave the row out)", text,
                      size);
        }
        return value;
    case WEFT__NUMBER_EMPTY:
        fail_cell(
            r, column,
            r->rows == 0 && r->header_line == 0
                ? "the cell is missing, expected a number (set header to yes if line 1 names the columns)"
                : "the cell is missing, expected a number",
            NULL, 0);
        return value;
    case WEFT__NUMBER_OVERFLOW:
        fail_cell(r, column, "the number is too large for f32", text, size);
        return value;
    case WEFT__NUMBER_NO_MEMORY: fail_oom(r, 0); return value;
    case WEFT__NUMBER_TEXT: break;
    }
    const char *what = "expected a number";
    if (parse_number(r, r->options->decimal == '.' ? ',' : '.', text, size, &value) == WEFT__NUMBER_OK)
        what = r->options->decimal == '.'
                   ? "expected a number with a decimal point (set decimal to comma for numbers like this)"
                   : "expected a number with a decimal comma";
    else if (r->rows == 0 && r->header_line == 0)
        what = "expected a number (set header to yes if line 1 names the columns)";
    else if (column == r->columns.target)
        what = "expected a number (for names of classes use the task classification)";
    fail_cell(r, column, what, text, size);
    return value;
}

/* Tells whether a word stands for a missing target. */
static bool is_missing(const reader *r, const char *text) {
    return r->options->missing && r->options->missing(r->options->missing_words, text);
}

static uint32_t read_label(reader *r, size_t column, const char *text, size_t size) {
    uint32_t number = 0;
    if (r->options->classes != NULL && weft__labels_find(&r->labels, text, size, &number)) return number;
    if (size == 0 || memchr(text, 0, size) != NULL) {
        fail_cell(r, column,
                  size == 0 ? "the cell is missing, expected a class" : "expected a class without NUL bytes",
                  size == 0 ? NULL : text, size);
        return 0;
    }
    if (is_missing(r, text)) {
        fail_cell(r, column, "the cell is missing, expected a class (if this is one, give it another name)",
                  text, size);
        return 0;
    }
    if (r->options->classes != NULL) {
        fail_cell(r, column, "not one of the given classes", text, size);
        return 0;
    }
    r->status = weft__labels_add(&r->labels, text, size, &number);
    if (r->status == WEFT_ERR_FORMAT) {
        fail_cell(r, column, "more than 65,536 distinct classes; is this a column of free text?", NULL, 0);
    }
    return number;
}

static weft_dtype number_type(const reader *r) { return r->options->f64 ? WEFT_F64 : WEFT_F32; }

static weft_dtype target_type(const reader *r) { return r->classes ? WEFT_I32 : number_type(r); }

/* Writes number `index` of an array of f32 or f64. */
static void put_number(const reader *r, void *array, size_t index, double value) {
    if (r->options->f64)
        ((double *)array)[index] = value;
    else
        ((float *)array)[index] = (float)value;
}

static void read_target(reader *r, size_t column, const char *text, size_t size) {
    if (!r->target_decided) { /* in AUTO mode the first cell decides */
        double ignored;
        weft__number_kind kind = weft__parse_f64_with(text, size, r->options->decimal, &ignored);
        weft_csv_target type = r->options->target_type;
        r->classes = type == WEFT_CSV_TARGET_CLASS || r->options->classes != NULL ||
                     (type == WEFT_CSV_TARGET_AUTO && kind == WEFT__NUMBER_TEXT);
        r->target_decided = true;
    }
    const size_t width = weft_dtype_size(target_type(r));
    if (!weft__grow(r->ctx, &r->target.data, &r->target.capacity, r->rows, width)) {
        fail_oom(r, r->rows * width);
        return;
    }
    if (r->classes)
        ((uint32_t *)r->target.data)[r->rows] = read_label(r, column, text, size);
    else if (size > 0 && is_missing(r, text))
        fail_cell(r, column, "the cell is missing, expected a number", text, size);
    else
        put_number(r, r->target.data, r->rows, read_number(r, column, text, size));
}

static void read_weight(reader *r, size_t column, const char *text, size_t size) {
    if (!weft__grow(r->ctx, &r->weights.data, &r->weights.capacity, r->rows, sizeof *r->weights.data)) {
        fail_oom(r, r->rows * sizeof *r->weights.data);
        return;
    }
    const float value = r->weights.data[r->rows] = (float)read_number(r, column, text, size);
    if (r->status == WEFT_OK && !(value > 0 && value <= FLT_MAX))
        fail_cell(r, column, "expected a weight above 0 (leave the row out instead)", text, size);
}

static void read_text_cell(reader *r, size_t column, size_t slot, const char *text, size_t size) {
    if (size > 0 && memchr(text, 0, size) != NULL) {
        fail_cell(r, column, "a NUL byte; is this a text file in UTF-8?", NULL, 0);
    } else if (!weft__csv_text_add(r->ctx, &r->text, r->rows, r->columns.features, slot, text, size)) {
        fail_oom(r, r->text.size);
    }
}

static void read_cell(reader *r, const char *text, size_t size) {
    size_t column = r->row.cell++;
    if (column >= r->columns.count) return; /* end_row reports the wrong number of cells */
    ptrdiff_t slot = r->columns.slot[column];
    if (slot == CSV_UNUSED) return;
    if (slot == CSV_TARGET) {
        read_target(r, column, text, size);
        return;
    }
    if (slot == CSV_WEIGHT) {
        read_weight(r, column, text, size);
        return;
    }
    if (r->options->text) {
        read_text_cell(r, column, (size_t)slot, text, size);
        return;
    }
    const size_t width = r->columns.features, row = width * weft_dtype_size(number_type(r));
    if (!weft__grow(r->ctx, &r->features.data, &r->features.capacity, r->rows, row)) {
        fail_oom(r, (r->rows + 1) * row);
        return;
    }
    put_number(r, r->features.data, r->rows * width + (size_t)slot, read_number(r, column, text, size));
}

static void end_row(reader *r) {
    size_t wanted = r->columns.count;
    if (r->row.cell != wanted) {
        char missing[WEFT__EXCERPT + 48] = "", shown[WEFT__EXCERPT];
        if (r->row.cell > wanted)
            snprintf(missing, sizeof missing, "; column %zu is one too many", wanted + 1);
        if (r->row.cell < wanted) {
            const char *name = r->columns.name[r->row.cell];
            snprintf(missing, sizeof missing, "; the first missing is column %zu (%s)", r->row.cell + 1,
                     weft__excerpt(shown, name, strlen(name)));
        }
        r->status = weft__fail(r->ctx, WEFT_ERR_FORMAT,
                               "%s: line %zu (row %zu): %zu cell%s, expected %zu as in the first line%s",
                               r->file, r->row.line, r->rows - r->first_row + 1, r->row.cell,
                               r->row.cell == 1 ? "" : "s", wanted, missing);
        return;
    }
    if (r->options->text && !weft__csv_text_line(r->ctx, &r->text, r->rows, r->row.line)) {
        fail_oom(r, r->rows * sizeof *r->text.lines);
        return;
    }
    r->rows++;
}

/* ---- the first row ---- */

static void keep_first(reader *r, const char *text, size_t size) {
    if (size > 0 && memchr(text, 0, size) != NULL) {
        r->status = weft__fail(r->ctx, WEFT_ERR_FORMAT,
                               "%s: line 1, column %zu: a NUL byte; is this a text file in UTF-8?", r->file,
                               r->row.cell + 1);
        return;
    }
    size_t wanted = r->first.size + size + 1;
    if (wanted > r->first.capacity) {
        char *first = weft__realloc(r->ctx, r->first.cells, wanted * 2);
        if (first == NULL) {
            fail_oom(r, wanted * 2);
            return;
        }
        r->first.cells = first;
        r->first.capacity = wanted * 2;
    }
    if (size > 0) memcpy(r->first.cells + r->first.size, text, size);
    r->first.cells[wanted - 1] = 0;
    r->first.size = wanted;
    r->row.cell++;
}

/* Decides whether the first row is a header: in AUTO mode it is one if no cell is a number, and none but the
 * first of several is empty; otherwise the next rows decide. */
static bool first_is_header(reader *r) {
    if (r->options->header != WEFT_CSV_HEADER_AUTO) return r->options->header == WEFT_CSV_HEADER_YES;
    const char *text = r->first.cells;
    for (size_t i = 0; i < r->row.cell; i++, text += strlen(text) + 1) {
        double ignored;
        const weft__number_kind kind =
            weft__parse_f64_with(text, strlen(text), r->options->decimal, &ignored);
        const bool unnamed = kind == WEFT__NUMBER_EMPTY && i == 0 && r->row.cell > 1;
        if (kind == WEFT__NUMBER_TEXT || unnamed) continue;
        r->status = weft__csv_numbers_name(r->ctx, r->whole, r->whole_size, r->options->delimiter,
                                           r->options->decimal, &r->guessed);
        return r->guessed;
    }
    return true;
}

/* Returns the cells of the first row as an array of strings in one block. The caller frees the block. */
static char **first_as_names(reader *r) {
    char **names = weft__alloc(r->ctx, r->row.cell * sizeof(char *) + r->first.size);
    if (names == NULL) return NULL;
    char *text = (char *)(names + r->row.cell);
    memcpy(text, r->first.cells, r->first.size);
    for (size_t i = 0; i < r->row.cell; i++, text += strlen(text) + 1) names[i] = text;
    return names;
}

/* Ends the first row. A header only names the columns. Otherwise the row is data, so its cells are read again
 * now that the columns are known. */
static void end_first_row(reader *r) {
    bool header = first_is_header(r);
    if (r->status != WEFT_OK) return;
    size_t count = r->row.cell;
    char **names = header ? first_as_names(r) : weft__csv_numbered(r->ctx, count);
    if (names == NULL) {
        fail_oom(r, count * sizeof(char *) + r->first.size);
        return;
    }
    r->status = weft__csv_choose(r->ctx, r->file, names, count, r->options, &r->columns);
    if (header) r->header_line = r->row.line;
    if (header || r->status != WEFT_OK) return;
    r->row.cell = 0;
    const char *text = r->first.cells;
    for (size_t i = 0; i < count && r->status == WEFT_OK; i++, text += strlen(text) + 1)
        read_cell(r, text, strlen(text));
    if (r->status == WEFT_OK) end_row(r);
}

/* ---- libcsv ---- */

static void on_cell(void *text, size_t size, void *user) {
    reader *r = user;
    if (r->status != WEFT_OK) return;
    if (text == NULL) size = 0;
    if (r->columns.count == 0)
        keep_first(r, text, size);
    else
        read_cell(r, text != NULL ? text : "", size);
}

static void on_row(int terminator, void *user) {
    (void)terminator;
    reader *r = user;
    if (r->status == WEFT_OK && r->columns.count == 0)
        end_first_row(r);
    else if (r->status == WEFT_OK)
        end_row(r);
    r->row.cell = 0;
    r->row.ended = true;
}

static weft_status fail_libcsv(reader *r, struct csv_parser *p, size_t byte) {
    if (csv_error(p) == CSV_ENOMEM) return weft__fail_oom(r->ctx, csv_get_buffer_size(p), r->file);
    return weft__fail(r->ctx, WEFT_ERR_FORMAT,
                      "%s: line %zu, byte %zu of the line: a quote in the wrong place (quoted cells start "
                      "and end with one, "
                      "a quote within is doubled)",
                      r->file, r->line, byte + 1);
}

static bool is_blank(const reader *r, const char *line, size_t size) {
    char delimiter = r->options->delimiter;
    for (size_t i = 0; i < size; i++) {
        char c = line[i];
        if ((c != ' ' && c != '\t' && c != '\r' && c != '\n') || c == delimiter) return false;
    }
    return true;
}

/* Gives one line, including its line end, to libcsv. */
static weft_status read_line(reader *r, struct csv_parser *p, const char *line, size_t size) {
    r->line++;
    if (r->row.ended) {
        r->row.bytes = 0;
        r->row.line = r->line;
        if (is_blank(r, line, size)) {
            if (r->blank_line == 0) r->blank_line = r->line;
            return WEFT_OK;
        }
        if (r->blank_line != 0) {
            return weft__fail(r->ctx, WEFT_ERR_FORMAT,
                              "%s: line %zu is blank, expected a row (blank lines may only end a file)",
                              r->file, r->blank_line);
        }
    }
    r->row.bytes += size;
    if (r->row.bytes > ROW_MAX) {
        return weft__fail(
            r->ctx, WEFT_ERR_FORMAT,
            "%s: line %zu: the row that starts here is longer than %zu bytes; is a closing quote missing?",
            r->file, r->row.line, ROW_MAX);
    }
    r->row.ended = false;
    size_t done = csv_parse(p, line, size, on_cell, on_row, r);
    if (r->status != WEFT_OK) return r->status;
    return done == size ? WEFT_OK : fail_libcsv(r, p, done);
}

static weft_status read_lines(reader *r, struct csv_parser *p, const char *text, size_t size) {
    const char *end = text + size;
    r->row.ended = true;
    while (text < end) {
        const char *newline = memchr(text, '\n', (size_t)(end - text));
        const char *next = newline != NULL ? newline + 1 : end;
        WEFT_TRY(read_line(r, p, text, (size_t)(next - text)));
        text = next;
    }
    if (csv_fini(p, on_cell, on_row, r) != 0 && r->status == WEFT_OK) {
        if (csv_error(p) == CSV_ENOMEM) return fail_libcsv(r, p, 0);
        return weft__fail(r->ctx, WEFT_ERR_FORMAT,
                          "%s: line %zu: a quoted cell of the row that starts here is never closed", r->file,
                          r->row.line);
    }
    return r->status;
}

static weft_status read_text(reader *r, const char *text, size_t size) {
    struct csv_parser p;
    if (csv_init(&p, CSV_STRICT | CSV_STRICT_FINI | CSV_APPEND_NULL) != 0)
        return weft__fail_oom(r->ctx, 0, r->file);
    csv_set_delim(&p, (unsigned char)r->options->delimiter);
    csv_set_blk_size(&p, 4096);
    weft_status status = read_lines(r, &p, text, size);
    csv_free(&p);
    return status;
}

/* ---- the result ---- */

/* Tells whether a class label is itself a class id: an integer from 0 to 2^31 - 2, without sign or leading
 * zeros. */
static bool label_is_id(const char *text, int32_t *id) {
    int64_t value = 0;
    size_t n = 0;
    for (; text[n] >= '0' && text[n] <= '9' && n < 11; n++) value = value * 10 + (text[n] - '0');
    if (n == 0 || text[n] != 0 || (n > 1 && text[0] == '0') || value >= INT32_MAX) return false;
    *id = (int32_t)value;
    return true;
}

/* Finds the id of each label. ids[number] is the id of the label with that number. Given classes have the ids
 * of their order in the options. If all labels are integers, each label is its own id. Otherwise the ids
 * follow the sorted order of the labels. */
static weft_status assign_ids(reader *r, int32_t *ids, weft_table *out) {
    const weft__labels *l = &r->labels;
    bool all_ids = r->options->classes == NULL;
    int32_t largest = 0;
    for (size_t i = 0; i < l->count && all_ids; i++) {
        all_ids = label_is_id(weft__label(l, i), &ids[i]);
        if (all_ids && ids[i] > largest) largest = ids[i];
    }
    out->class_count = all_ids ? (size_t)largest + 1 : l->count;
    if (all_ids) return WEFT_OK;
    const char **names = weft__alloc(r->ctx, l->count * sizeof *names);
    if (names == NULL) return weft__fail_oom(r->ctx, l->count * sizeof *names, r->file);
    for (size_t i = 0; i < l->count; i++) {
        uint32_t number = r->options->classes != NULL ? (uint32_t)i : l->order[i];
        ids[number] = (int32_t)i;
        names[i] = weft__label(l, number);
    }
    out->classes = weft__strings_pack(r->ctx, names, l->count);
    weft__free(r->ctx, names);
    return out->classes != NULL ? WEFT_OK : weft__fail_oom(r->ctx, l->text_size, r->file);
}

static weft_status finish_target(reader *r, weft_table *out) {
    const csv_columns *c = &r->columns;
    if (c->target == c->count) return WEFT_OK;
    int64_t rows = (int64_t)r->rows;
    out->target_name = weft__strdup(r->ctx, c->name[c->target]);
    if (out->target_name == NULL) return weft__fail_oom(r->ctx, strlen(c->name[c->target]), r->file);
    WEFT_TRY(weft_array_new(r->ctx, target_type(r), 1, &rows, &out->target));
    if (!r->classes) {
        memcpy(out->target.data, r->target.data, out->target.bytes);
        return WEFT_OK;
    }
    int32_t *ids = weft__array(r->ctx, r->labels.count, sizeof *ids);
    if (ids == NULL) return weft__fail_oom(r->ctx, r->labels.count * sizeof *ids, r->file);
    weft_status status = assign_ids(r, ids, out);
    int32_t *target = out->target.data;
    for (size_t i = 0; i < r->rows && status == WEFT_OK; i++)
        target[i] = ids[((const uint32_t *)r->target.data)[i]];
    weft__free(r->ctx, ids);
    return status;
}

static weft_status finish_features(reader *r, weft_table *out) {
    const csv_columns *c = &r->columns;
    int64_t shape[2] = {(int64_t)r->rows, (int64_t)c->features};
    if (!r->options->text) {
        WEFT_TRY(weft_array_new(r->ctx, number_type(r), 2, shape, &out->features));
        memcpy(out->features.data, r->features.data, out->features.bytes);
        weft__free(r->ctx, r->features.data);
        r->features.data = NULL;
    }
    const char **names = weft__alloc(r->ctx, c->features * sizeof *names);
    if (names == NULL) return weft__fail_oom(r->ctx, c->features * sizeof *names, r->file);
    for (size_t i = 0; i < c->count; i++) {
        if (c->slot[i] >= 0) names[c->slot[i]] = c->name[i];
    }
    out->columns = weft__strings_pack(r->ctx, names, c->features);
    out->column_count = c->features;
    out->rows = r->rows;
    out->header = r->header_line > 0;
    out->header_guessed = r->guessed;
    weft__free(r->ctx, names);
    if (out->columns == NULL) return weft__fail_oom(r->ctx, c->features, r->file);
    return r->options->text ? weft__csv_text_finish(r->ctx, &r->text, r->file, out) : WEFT_OK;
}

static weft_status finish_weights(reader *r, weft_table *out) {
    const int64_t rows = (int64_t)r->rows;
    if (r->options->weight == NULL) return WEFT_OK;
    WEFT_TRY(weft_array_new(r->ctx, WEFT_F32, 1, &rows, &out->weights));
    memcpy(out->weights.data, r->weights.data, out->weights.bytes);
    return WEFT_OK;
}

/* Names the columns that are not read. */
static weft_status finish_unused(reader *r, weft_table *out) {
    const csv_columns *c = &r->columns;
    const char **names = weft__alloc(r->ctx, c->count * sizeof *names);
    if (names == NULL) return weft__fail_oom(r->ctx, c->count * sizeof *names, r->file);
    for (size_t i = 0; i < c->count; i++) {
        if (c->slot[i] == CSV_UNUSED) names[out->unused_count++] = c->name[i];
    }
    if (out->unused_count > 0) out->unused = weft__strings_pack(r->ctx, names, out->unused_count);
    weft__free(r->ctx, names);
    return out->unused_count == 0 || out->unused != NULL ? WEFT_OK
                                                         : weft__fail_oom(r->ctx, c->count, r->file);
}

void weft_table_free(weft_context *ctx, weft_table *table) {
    if (table == NULL) return;
    weft_array_free(ctx, &table->features);
    weft_array_free(ctx, &table->target);
    weft_array_free(ctx, &table->weights);
    weft__free(ctx, table->columns);
    weft__free(ctx, table->target_name);
    weft__free(ctx, table->classes);
    weft__free(ctx, table->unused);
    weft__free(ctx, table->cells);
    weft__free(ctx, table->lines);
    weft__free(ctx, table->files);
    weft__free(ctx, table->file_rows);
    *table = (weft_table){0};
}

const char *weft__table_file(const weft_table *t, const char *path, size_t row, size_t *in_file) {
    size_t i = t->file_count;
    *in_file = row;
    while (i > 0 && t->file_rows[i - 1] > row) i--;
    if (i == 0) return path;
    *in_file = row - t->file_rows[i - 1];
    return t->files[i - 1];
}

static weft_status finish(reader *r, weft_table *out) {
    if (r->rows == 0)
        return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: line %zu: the file ends without a row of data",
                          r->file, r->line);
    WEFT_TRY(finish_features(r, out));
    WEFT_TRY(finish_unused(r, out));
    WEFT_TRY(finish_target(r, out));
    return finish_weights(r, out);
}

static void reader_free(reader *r) {
    weft__free(r->ctx, r->first.cells);
    weft__free(r->ctx, r->features.data);
    weft__free(r->ctx, r->target.data);
    weft__free(r->ctx, r->weights.data);
    weft__free(r->ctx, r->columns.name);
    weft__free(r->ctx, r->columns.slot);
    weft__labels_free(&r->labels);
    weft__csv_text_free(r->ctx, &r->text);
}

/* ---- the whole file ---- */

static weft_status csv_check_options(reader *r, const weft_csv_options *o) {
    unsigned char d = (unsigned char)o->delimiter;
    if (d == '"' || d == '\r' || d == '\n' || d >= 0x80) {
        return weft__fail(r->ctx, WEFT_ERR_ARGUMENT,
                          "%s: reading csv: the delimiter must be ASCII and neither a quote nor a line end",
                          r->file);
    }
    if (o->decimal != '.' && o->decimal != ',') {
        return weft__fail(r->ctx, WEFT_ERR_ARGUMENT, "%s: reading csv: decimal must be a point or a comma",
                          r->file);
    }
    if ((unsigned)o->header > WEFT_CSV_HEADER_NO || (unsigned)o->target_type > WEFT_CSV_TARGET_CLASS) {
        return weft__fail(r->ctx, WEFT_ERR_ARGUMENT, "%s: reading csv: unknown header or target type",
                          r->file);
    }
    if (o->classes != NULL && o->target_type == WEFT_CSV_TARGET_NUMBER) {
        return weft__fail(r->ctx, WEFT_ERR_ARGUMENT,
                          "%s: reading csv: classes are given for a target of numbers", r->file);
    }
    for (size_t i = 0; o->classes != NULL && i < o->class_count; i++) {
        uint32_t number = 0;
        const char *label = o->classes[i] != NULL ? o->classes[i] : "";
        weft_status status = weft__labels_add(&r->labels, label, strlen(label), &number);
        if (status == WEFT_ERR_OOM) return status;
        if (status != WEFT_OK || label[0] == 0 || number != i) {
            return weft__fail(r->ctx, WEFT_ERR_ARGUMENT,
                              "%s: reading csv: the given class %zu is empty, repeated or beyond 65,536",
                              r->file, i);
        }
    }
    return WEFT_OK;
}

/* Refuses text that is not UTF-8: names that nobody can store or compare would be lost. */
static weft_status check_utf8(const reader *r, const char *text, size_t size) {
    size_t line = 1, begin = 0;
    for (size_t i = 0; i < size;) {
        uint32_t point;
        const int length = (unsigned char)text[i] < 0x80 ? 1 : weft__utf8_read(text + i, size - i, &point);
        if (length <= 0)
            return weft__fail(
                r->ctx, WEFT_ERR_FORMAT,
                "%s: line %zu, byte %zu of the line: 0x%02x is not UTF-8: if the file is in "
                "Windows-1252 or Latin-1, convert it by: iconv -f WINDOWS-1252 -t UTF-8 FILE >NEW",
                r->file, line, i - begin + 1, (unsigned char)text[i]);
        if (text[i] == '\n') line++, begin = i + 1;
        i += (size_t)length;
    }
    return WEFT_OK;
}

/* Refuses packed files and text that is not UTF-8. *start becomes the offset after a byte order mark. */
static weft_status check_encoding(reader *r, const uint8_t *p, size_t size, size_t *start) {
    *start = size >= 3 && memcmp(p, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    if (size == *start) return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: the file is empty", r->file);
    WEFT_TRY(weft__refuse_packed(r->ctx, r->file, p, size));
    if (size >= 2 && ((p[0] == 0xff && p[1] == 0xfe) || (p[0] == 0xfe && p[1] == 0xff))) {
        return weft__fail(
            r->ctx, WEFT_ERR_FORMAT,
            "%s: byte 0: the file is in UTF-16, expected UTF-8: convert it by: iconv -f UTF-16 -t "
            "UTF-8 FILE >NEW",
            r->file);
    }
    return check_utf8(r, (const char *)p + *start, size - *start);
}

weft_status weft__parse_csv(weft_context *ctx, const void *bytes, size_t size, const char *name,
                            const weft_csv_options *options, weft_table *out) {
    weft_csv_options chosen = options != NULL ? *options : (weft_csv_options){0};
    if (chosen.decimal == 0) chosen.decimal = '.';
    *out = (weft_table){0};
    reader r = {.ctx = ctx, .file = name, .options = &chosen, .labels = {.ctx = ctx}};
    size_t start = 0;
    weft_status status = csv_check_options(&r, &chosen);
    if (status == WEFT_OK) status = check_encoding(&r, bytes, size, &start);
    if (status == WEFT_OK && chosen.delimiter == 0)
        chosen.delimiter = weft__csv_delimiter((const char *)bytes + start, size - start);
    r.whole = (const char *)bytes + start;
    r.whole_size = size - start;
    if (status == WEFT_OK) status = read_text(&r, r.whole, r.whole_size);
    if (status == WEFT_OK) status = finish(&r, out);
    if (status != WEFT_OK) weft_table_free(ctx, out);
    reader_free(&r);
    return status;
}

/* ---- Parquet files ---- */

/* Reads the rows of one file. Lines are counted as if each file had a header. *most: the bytes that all
 * files may have yet; 0: see weft__parquet_read. */
static weft_status read_parquet_part(reader *r, weft__parquet *parquet, size_t i, size_t *most) {
    weft__buffer text;
    WEFT_TRY(weft__parquet_read(parquet, i, *most, &text));
    r->line = i > 0;
    r->blank_line = 0;
    r->first_row = r->rows;
    const weft_status status = read_text(r, text.text, text.bytes);
    if (*most) *most = *most > text.bytes ? *most - text.bytes : 1;
    weft__buffer_free(&text);
    return status;
}

/* Notes which rows are from which file. Takes over file_rows. */
static weft_status note_files(weft_context *ctx, const weft__names *files, size_t *file_rows,
                              weft_table *out) {
    out->file_rows = file_rows;
    out->files = weft__strings_pack(ctx, (const char *const *)files->at, files->count);
    out->file_count = out->files ? files->count : 0;
    return out->files ? WEFT_OK : weft__fail_oom(ctx, files->count, files->at[0]);
}

static weft_status read_parts(reader *r, const weft__names *files, size_t most, size_t *file_rows) {
    weft__parquet *parquet;
    WEFT_TRY(weft__parquet_open(r->ctx, files, &parquet));
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < files->count; i++) {
        r->file = files->at[i];
        file_rows[i] = r->rows;
        status = read_parquet_part(r, parquet, i, &most);
    }
    weft__parquet_close(parquet);
    return status;
}

/* Reads Parquet files as one table. */
static weft_status read_parquet(weft_context *ctx, const char *path, const weft__names *files,
                                const weft_csv_options *options, weft_table *out) {
    weft_csv_options chosen = options ? *options : (weft_csv_options){0};
    const bool several = files->count > 1;
    chosen.header = WEFT_CSV_HEADER_YES; /* as DuckDB writes csv */
    chosen.delimiter = ',';
    chosen.decimal = '.';
    reader r = {.ctx = ctx, .file = path, .options = &chosen, .labels = {.ctx = ctx}};
    size_t *file_rows = weft__array(ctx, files->count, sizeof *file_rows);
    weft_status status = file_rows ? csv_check_options(&r, &chosen) : weft__fail_oom(ctx, files->count, path);
    if (status == WEFT_OK) status = read_parts(&r, files, chosen.max_bytes, file_rows);
    if (status == WEFT_OK && several && r.rows == 0)
        status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: none of its %zu Parquet files has a row of data", path,
                            files->count);
    if (status == WEFT_OK) status = finish(&r, out);
    if (status == WEFT_OK && several) {
        status = note_files(ctx, files, file_rows, out);
        file_rows = NULL;
    }
    weft__free(ctx, file_rows);
    if (status != WEFT_OK) weft_table_free(ctx, out);
    reader_free(&r);
    return status;
}

static weft_status read_plain(weft_context *ctx, const char *path, const weft_csv_options *options,
                              weft_table *out) {
    weft_bytes bytes;
    struct stat what;
    if (stat(path, &what) == 0 && S_ISDIR(what.st_mode))
        return weft__fail(ctx, WEFT_ERR_IO,
                          "%s: this is a folder without Parquet files: name a csv file, or a folder of "
                          ".parquet files",
                          path);
    WEFT_TRY(weft__read_file(ctx, path, NULL, options ? options->max_bytes : 0, &bytes));
    const weft_status status = weft__parse_csv(ctx, bytes.data, bytes.size, path, options, out);
    weft_bytes_free(ctx, &bytes);
    return status;
}

weft_status weft_read_csv(weft_context *ctx, const char *path, const weft_csv_options *options,
                          weft_table *out) {
    weft__names files;
    WEFT_NEED(ctx, out);
    *out = (weft_table){0};
    WEFT_NEED(ctx, path);
    weft_status status = weft__parquet_files(ctx, path, &files);
    if (status == WEFT_OK)
        status =
            files.count ? read_parquet(ctx, path, &files, options, out) : read_plain(ctx, path, options, out);
    weft__names_free(ctx, &files);
    return status;
}
