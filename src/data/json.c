/* Reads nested arrays of numbers from JSON in place, in three passes. The first pass checks the whole file.
 * The second pass measures and checks one array. Only then memory is allocated, and the third pass fills it.
 * No tree is built: it would take 22 times the size of the file. Must not know: where the bytes come from.
 * Read next: io/json_read.h. */
#include "data/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/json_read.h"

#define PLACE_SIZE 192 /* bytes of a place such as "x[12][3]" in messages */

typedef struct matrix {
    weft_context *ctx;
    const char *name;
    weft__json_reader *r; /* stands at the beginning of the array */
    char label[64];       /* the key, as messages show it */
    weft_json_type type;
    int rank;                           /* -1: no number was found yet */
    int64_t shape[WEFT_ARRAY_MAX_RANK]; /* -1: no array of this depth has ended yet */
    int64_t index[WEFT_ARRAY_MAX_RANK]; /* indices of the current element */
    bool any_real, any_wide;            /* a number with a fraction or exponent; an integer beyond i32 */
} matrix;

static weft_status fail_text(const weft__json_reader *r, const char *name) {
    size_t line, column;
    if (r->no_memory) return weft__fail_oom(r->ctx, 0, name);
    weft__json_place(r, &line, &column);
    return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: line %zu, column %zu, byte %zu: %s", name, line, column,
                      r->at, r->problem);
}

/* ---- finding the array ---- */

/* Reads a key into newly allocated memory. The text was checked before. Returns NULL when memory is short. */
static char *next_key(weft__json_reader *r) {
    size_t length;
    const size_t from = (weft__json_peek(r), r->at);
    weft__json_name(r, NULL, &length);
    char *key = weft__alloc(r->ctx, r->at - from);
    r->at = from;
    if (key) weft__json_name(r, key, &length);
    return key;
}

static weft_status fail_key(weft__json_reader *r, const char *name, const char *key) {
    char keys[256] = "", shown[WEFT__EXCERPT];
    size_t used = 0;
    r->at = 0;
    weft__json_take(r, '{');
    for (size_t n = 0; weft__json_more(r, '}', n); n++) {
        char *other = next_key(r);
        if (!other) return weft__fail_oom(r->ctx, 0, name);
        const int added = snprintf(keys + used, sizeof keys - used, "%s%s", n ? ", " : "",
                                   weft__excerpt(shown, other, strlen(other)));
        weft__free(r->ctx, other);
        if (added < 0 || (size_t)added >= sizeof keys - used) {
            keys[used] = 0;
            break;
        }
        used += (size_t)added;
        weft__json_skip(r);
    }
    return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: no key %s; the file's keys are %s", name,
                      weft__excerpt(shown, key, strlen(key)), used > 0 ? keys : "none");
}

/* Moves the reader to the value of `key`, or to the array if `key` is NULL. */
static weft_status json_find(weft__json_reader *r, const char *name, const char *key) {
    r->at = 0;
    const bool array = weft__json_peek(r) == '[';
    if (key == NULL) {
        if (array) return WEFT_OK;
        return weft__fail(r->ctx, WEFT_ERR_FORMAT,
                          "%s: the file is an object, expected an array; choose one of its keys", name);
    }
    if (array) {
        return weft__fail(r->ctx, WEFT_ERR_FORMAT,
                          "%s: the file is an array, expected an object with the key \"%s\"", name, key);
    }
    weft__json_take(r, '{');
    for (size_t n = 0; weft__json_more(r, '}', n); n++) {
        char *other = next_key(r);
        if (!other) return weft__fail_oom(r->ctx, 0, name);
        const bool found = strcmp(other, key) == 0;
        weft__free(r->ctx, other);
        if (found) return WEFT_OK;
        weft__json_skip(r);
    }
    return fail_key(r, name, key);
}

/* ---- measuring ---- */

static const char *type_name(char first) {
    switch (first) {
    case '{': return "an object";
    case '[': return "an array";
    case '"': return "a string";
    case 't':
    case 'f': return "a boolean";
    case 'n': return "null";
    default: return "a number";
    }
}

/* Writes a place such as "x[12][3]", with the first `depth` indices. Returns out. */
static const char *path(const matrix *m, int depth, char out[PLACE_SIZE]) {
    int n = snprintf(out, PLACE_SIZE, "%s", m->label);
    for (int d = 0; d < depth; d++)
        n += snprintf(out + n, PLACE_SIZE - (size_t)n, "[%" PRId64 "]", m->index[d]);
    return out;
}

static weft_status check_number(matrix *m) {
    char place[PLACE_SIZE];
    weft__json_number n;
    if (!weft__json_read_number(m->r, &n)) return fail_text(m->r, m->name);
    m->any_real = m->any_real || n.real;
    m->any_wide = m->any_wide || n.integer < INT32_MIN || n.integer > INT32_MAX;
    if (n.real && (m->type == WEFT_JSON_I32 || m->type == WEFT_JSON_I64)) {
        return weft__fail(m->ctx, WEFT_ERR_FORMAT,
                          "%s: %s: %.17g has a fraction or an exponent, expected an integer", m->name,
                          path(m, m->rank, place), n.value);
    }
    if (n.real && (m->type == WEFT_JSON_AUTO || m->type == WEFT_JSON_F32) &&
        (n.value >= 0x1.ffffffp127 || n.value <= -0x1.ffffffp127)) {
        return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: %.17g is too large for f32", m->name,
                          path(m, m->rank, place), n.value);
    }
    if (m->type == WEFT_JSON_I32 && m->any_wide) {
        return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: %" PRId64 " is too large for i32", m->name,
                          path(m, m->rank, place), n.integer);
    }
    return WEFT_OK;
}

/* Checks that all arrays of one depth have the same length. */
static weft_status check_extent(matrix *m, int depth, int64_t count) {
    char place[PLACE_SIZE], first[PLACE_SIZE];
    if (m->shape[depth] < 0) m->shape[depth] = count;
    if (m->shape[depth] == count) return WEFT_OK;
    path(m, depth, place);
    matrix start = *m;
    memset(start.index, 0, sizeof start.index);
    return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: ragged rows: %s has %" PRId64 " values, %s has %" PRId64,
                      m->name, place, count, path(&start, depth, first), m->shape[depth]);
}

static weft_status json_check(matrix *m, int depth);

static weft_status check_array(matrix *m, int depth) {
    char place[PLACE_SIZE];
    if (depth == WEFT_ARRAY_MAX_RANK) {
        return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: arrays nested more than %d deep", m->name,
                          path(m, depth, place), WEFT_ARRAY_MAX_RANK);
    }
    int64_t count = 0;
    weft__json_take(m->r, '[');
    for (; weft__json_more(m->r, ']', (size_t)count); count++) {
        m->index[depth] = count;
        WEFT_TRY(json_check(m, depth + 1));
    }
    if (m->rank < 0) m->rank = depth + 1; /* the first array that ends contains no number */
    return check_extent(m, depth, count);
}

/* Checks one element against the shape that the elements before it have. */
static weft_status json_check(matrix *m, int depth) {
    char place[PLACE_SIZE];
    const char first = weft__json_peek(m->r);
    const bool number = first == '-' || (first >= '0' && first <= '9');
    if (m->rank < 0 && first != '[') m->rank = depth;
    if (first == '[' && depth != m->rank) return check_array(m, depth);
    if (depth == m->rank && number) return check_number(m);
    if (depth == m->rank) {
        return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: expected a number, found %s", m->name,
                          path(m, depth, place), type_name(first));
    }
    return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: expected an array of %" PRId64 " values, found %s",
                      m->name, path(m, depth, place), m->shape[depth], type_name(first));
}

/* ---- filling ---- */

static weft_dtype result_dtype(const matrix *m) {
    switch (m->type) {
    case WEFT_JSON_F32: return WEFT_F32;
    case WEFT_JSON_F64: return WEFT_F64;
    case WEFT_JSON_I32: return WEFT_I32;
    case WEFT_JSON_I64: return WEFT_I64;
    default: break;
    }
    if (m->any_real) return WEFT_F32;
    return m->any_wide ? WEFT_I64 : WEFT_I32;
}

static void json_store(weft_array *out, int64_t i, const weft__json_number *n) {
    switch (out->dtype) {
    case WEFT_F32: ((float *)out->data)[i] = n->real ? (float)n->value : (float)n->integer; break;
    case WEFT_F64: ((double *)out->data)[i] = n->value; break;
    case WEFT_I32: ((int32_t *)out->data)[i] = (int32_t)n->integer; break;
    default: ((int64_t *)out->data)[i] = n->integer; break;
    }
}

/* Reads the numbers of an array that was checked. Brackets and commas need no further check. */
static weft_status json_fill(weft__json_reader *r, const char *name, weft_array *out, int64_t count) {
    weft__json_number n;
    for (int64_t i = 0; i < count; i++) {
        for (char c = weft__json_peek(r); c == '[' || c == ']' || c == ','; c = weft__json_peek(r)) r->at++;
        if (!weft__json_read_number(r, &n)) return fail_text(r, name);
        json_store(out, i, &n);
    }
    return WEFT_OK;
}

static weft_status read_one(weft__json_reader *r, const char *name, const weft_json_options *options,
                            weft_array *out) {
    if ((unsigned)options->type > WEFT_JSON_I64) {
        return weft__fail(r->ctx, WEFT_ERR_ARGUMENT, "%s: reading JSON: unknown type %d", name,
                          (int)options->type);
    }
    WEFT_TRY(json_find(r, name, options->key));
    matrix m = {.ctx = r->ctx, .name = name, .r = r, .type = options->type, .rank = -1};
    for (int d = 0; d < WEFT_ARRAY_MAX_RANK; d++) m.shape[d] = -1;
    snprintf(m.label, sizeof m.label, "%s", options->key != NULL ? options->key : "the array");
    const size_t from = r->at;
    WEFT_TRY(json_check(&m, 0));
    WEFT_TRY(weft_array_new(r->ctx, result_dtype(&m), m.rank, m.shape, out));
    r->at = from;
    int64_t count = 0;
    return weft__numel(m.rank, m.shape, &count) ? json_fill(r, name, out, count) : WEFT_OK;
}

weft_status weft__parse_json(weft_context *ctx, const void *bytes, size_t size, const char *name,
                             const weft_json_options *options, size_t count, weft_array *out) {
    weft__json_reader r;
    for (size_t i = 0; i < count; i++) out[i] = (weft_array){0};
    if (size == 0) return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: the file is empty", name);
    WEFT_TRY(weft__refuse_packed(ctx, name, bytes, size));
    /* skips a UTF-8 byte order mark */
    const bool marked = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
    weft__json_begin(&r, ctx, (const char *)bytes + (marked ? 3 : 0), size - (marked ? 3 : 0));
    weft_status status = weft__json_check(&r) ? WEFT_OK : fail_text(&r, name);
    for (size_t i = 0; i < count && status == WEFT_OK; i++) status = read_one(&r, name, &options[i], &out[i]);
    weft__json_end(&r);
    for (size_t i = 0; i < count && status != WEFT_OK; i++) weft_array_free(ctx, &out[i]);
    return status;
}

weft_status weft_read_json_matrices(weft_context *ctx, const char *path, const weft_json_options *options,
                                    size_t count, weft_array *out) {
    weft_bytes bytes;
    WEFT_NEED_ARRAY(ctx, out, count);
    for (size_t i = 0; i < count; i++) out[i] = (weft_array){0};
    WEFT_NEED(ctx, path);
    WEFT_NEED_ARRAY(ctx, options, count);
    WEFT_TRY(weft__read_file(ctx, path, NULL, 0, &bytes));
    weft_status status = weft__parse_json(ctx, bytes.data, bytes.size, path, options, count, out);
    weft_bytes_free(ctx, &bytes);
    return status;
}

weft_status weft_read_json_matrix(weft_context *ctx, const char *path, const weft_json_options *options,
                                  weft_array *out) {
    static const weft_json_options defaults = {0};
    WEFT_NEED(ctx, out);
    *out = (weft_array){0};
    WEFT_NEED(ctx, path);
    return weft_read_json_matrices(ctx, path, options != NULL ? options : &defaults, 1, out);
}
