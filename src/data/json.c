/* Nested arrays of numbers from JSON, by jansson. Before it parses, the depth is bounded here (its own
 * limit is 2,048); afterwards an array is measured and checked whole, and only then memory is taken for it.
 * Must not know where the bytes come from. Read next: include/weft/data.h. */
#include "base/json.h"
#include "data/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX  64
#define PLACE_SIZE 192 /* "x[12][3]" in messages */

typedef struct matrix {
    weft_context *ctx;
    const char *name;
    char label[64]; /* the key as messages show it */
    weft_json_type type;
    int rank;
    int64_t shape[WEFT_ARRAY_MAX_RANK];
    int64_t index[WEFT_ARRAY_MAX_RANK]; /* of the element being looked at */
    bool any_real, any_wide;            /* a number with a fraction; an integer beyond i32 */
} matrix;

/* ---- before parsing ---- */

/* Refuses more than DEPTH_MAX open brackets, and says where. */
static weft_status check_depth(weft_context *ctx, const uint8_t *p, size_t size, const char *name) {
    int depth = 0;
    bool in_string = false;
    size_t line = 1;
    for (size_t i = 0; i < size; i++) {
        uint8_t c = p[i];
        if (c == '\n') line++;
        if (in_string) {
            if (c == '\\')
                i++;
            else if (c == '"')
                in_string = false;
        } else if (c == '"') {
            in_string = true;
        } else if (c == '[' || c == '{') {
            if (++depth > DEPTH_MAX) {
                return weft__fail(ctx, WEFT_ERR_FORMAT,
                                  "%s: line %zu, byte %zu: more than %d levels of brackets", name, line, i,
                                  DEPTH_MAX);
            }
        } else if ((c == ']' || c == '}') && depth > 0) {
            depth--;
        }
    }
    return WEFT_OK;
}

static weft_status parse_text(weft__json *json, const void *bytes, size_t size, const char *name,
                              json_t **root) {
    weft_context *ctx = json->ctx;
    json_error_t error;
    const bool marked = size >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0; /* as UTF-8 */
    if (marked) bytes = (const char *)bytes + 3, size -= 3;
    WEFT_TRY(check_depth(ctx, bytes, size, name));
    const weft_status status =
        weft__json_load(json, size > 0 ? bytes : "", size, JSON_REJECT_DUPLICATES, &error, root);
    if (status != WEFT_ERR_FORMAT) return status;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: line %d, column %d, byte %d: %s", name, error.line,
                      error.column, error.position, error.text);
}

/* ---- finding the array ---- */

static weft_status fail_key(weft_context *ctx, const char *name, json_t *root, const char *key) {
    char keys[256] = "", wanted[WEFT__EXCERPT];
    size_t n = 0;
    const char *other;
    json_t *value;
    json_object_foreach(root, other, value) {
        char shown[WEFT__EXCERPT];
        int added = snprintf(keys + n, sizeof keys - n, "%s%s", n > 0 ? ", " : "",
                             weft__excerpt(shown, other, strlen(other)));
        if (added < 0 || (size_t)added >= sizeof keys - n) {
            keys[n] = 0;
            break;
        }
        n += (size_t)added;
    }
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: no key %s; the file's keys are %s", name,
                      weft__excerpt(wanted, key, strlen(key)), n > 0 ? keys : "none");
}

static weft_status find(weft_context *ctx, const char *name, json_t *root, const char *key, json_t **value) {
    *value = root;
    if (key == NULL) {
        if (json_is_array(root)) return WEFT_OK;
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: the file is an object, expected an array; choose one of its keys", name);
    }
    if (!json_is_object(root)) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: the file is an array, expected an object with the key \"%s\"", name, key);
    }
    *value = json_object_get(root, key);
    return *value != NULL ? WEFT_OK : fail_key(ctx, name, root, key);
}

/* ---- measuring ---- */

static const char *type_name(const json_t *value) {
    switch (json_typeof(value)) {
    case JSON_OBJECT: return "an object";
    case JSON_ARRAY: return "an array";
    case JSON_STRING: return "a string";
    case JSON_INTEGER:
    case JSON_REAL: return "a number";
    case JSON_TRUE:
    case JSON_FALSE: return "a boolean";
    default: return "null";
    }
}

/* "x[12][3]" for the first `depth` indices. */
static const char *path(const matrix *m, int depth, char out[PLACE_SIZE]) {
    int n = snprintf(out, PLACE_SIZE, "%s", m->label);
    for (int d = 0; d < depth; d++)
        n += snprintf(out + n, PLACE_SIZE - (size_t)n, "[%" PRId64 "]", m->index[d]);
    return out;
}

/* The shape, as the first elements at each level show it. */
static weft_status guess_shape(matrix *m, const json_t *value) {
    char place[PLACE_SIZE];
    while (json_is_array(value)) {
        if (m->rank == WEFT_ARRAY_MAX_RANK) {
            return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: arrays nested more than %d deep", m->name,
                              path(m, m->rank, place), WEFT_ARRAY_MAX_RANK);
        }
        m->index[m->rank] = 0;
        m->shape[m->rank++] = (int64_t)json_array_size(value);
        if (json_array_size(value) == 0) break;
        value = json_array_get(value, 0);
    }
    return WEFT_OK;
}

static weft_status check_number(matrix *m, const json_t *value) {
    char place[PLACE_SIZE];
    if (json_is_real(value)) {
        if (m->type == WEFT_JSON_I32 || m->type == WEFT_JSON_I64) {
            return weft__fail(m->ctx, WEFT_ERR_FORMAT,
                              "%s: %s: %.17g has a fraction or an exponent, expected an integer", m->name,
                              path(m, m->rank, place), json_real_value(value));
        }
        double real = json_real_value(value);
        if ((m->type == WEFT_JSON_AUTO || m->type == WEFT_JSON_F32) &&
            (real >= 0x1.ffffffp127 || real <= -0x1.ffffffp127)) {
            return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: %.17g is too large for f32", m->name,
                              path(m, m->rank, place), real);
        }
        m->any_real = true;
        return WEFT_OK;
    }
    json_int_t integer = json_integer_value(value);
    if (integer < INT32_MIN || integer > INT32_MAX) {
        m->any_wide = true;
        if (m->type == WEFT_JSON_I32) {
            return weft__fail(m->ctx, WEFT_ERR_FORMAT,
                              "%s: %s: %" JSON_INTEGER_FORMAT " is too large for i32", m->name,
                              path(m, m->rank, place), integer);
        }
    }
    return WEFT_OK;
}

/* Checks that everything below agrees with the shape. */
static weft_status check(matrix *m, const json_t *value, int depth) {
    char place[PLACE_SIZE], first[PLACE_SIZE];
    if (depth == m->rank) {
        if (json_is_number(value)) return check_number(m, value);
        return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: %s: expected a number, found %s", m->name,
                          path(m, depth, place), type_name(value));
    }
    if (!json_is_array(value)) {
        return weft__fail(m->ctx, WEFT_ERR_FORMAT,
                          "%s: %s: expected an array of %" PRId64 " values, found %s", m->name,
                          path(m, depth, place), m->shape[depth], type_name(value));
    }
    if ((int64_t)json_array_size(value) != m->shape[depth]) {
        path(m, depth, place);
        matrix start = *m;
        memset(start.index, 0, sizeof start.index);
        return weft__fail(m->ctx, WEFT_ERR_FORMAT, "%s: ragged rows: %s has %zu values, %s has %" PRId64,
                          m->name, place, json_array_size(value), path(&start, depth, first),
                          m->shape[depth]);
    }
    for (int64_t i = 0; i < m->shape[depth]; i++) {
        m->index[depth] = i;
        WEFT_TRY(check(m, json_array_get(value, (size_t)i), depth + 1));
    }
    return WEFT_OK;
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

static void store(weft_array *out, size_t i, const json_t *value) {
    switch (out->dtype) {
    case WEFT_F32:
        ((float *)out->data)[i] =
            json_is_integer(value) ? (float)json_integer_value(value) : (float)json_real_value(value);
        break;
    case WEFT_F64: ((double *)out->data)[i] = json_number_value(value); break;
    case WEFT_I32: ((int32_t *)out->data)[i] = (int32_t)json_integer_value(value); break;
    default: ((int64_t *)out->data)[i] = (int64_t)json_integer_value(value); break;
    }
}

static void fill(weft_array *out, const json_t *value, int depth, size_t *next) {
    if (depth == out->rank) {
        store(out, (*next)++, value);
        return;
    }
    for (int64_t i = 0; i < out->shape[depth]; i++)
        fill(out, json_array_get(value, (size_t)i), depth + 1, next);
}

static weft_status read_one(weft_context *ctx, const char *name, json_t *root,
                            const weft_json_options *options, weft_array *out) {
    if ((unsigned)options->type > WEFT_JSON_I64) {
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: reading JSON: unknown type %d", name,
                          (int)options->type);
    }
    json_t *value = NULL;
    WEFT_TRY(find(ctx, name, root, options->key, &value));
    matrix m = {.ctx = ctx, .name = name, .type = options->type};
    snprintf(m.label, sizeof m.label, "%s", options->key != NULL ? options->key : "the array");
    WEFT_TRY(guess_shape(&m, value));
    WEFT_TRY(check(&m, value, 0));
    WEFT_TRY(weft_array_new(ctx, result_dtype(&m), m.rank, m.shape, out));
    size_t next = 0;
    if (out->bytes > 0) fill(out, value, 0, &next);
    return WEFT_OK;
}

weft_status weft__parse_json(weft_context *ctx, const void *bytes, size_t size, const char *name,
                             const weft_json_options *options, size_t count, weft_array *out) {
    for (size_t i = 0; i < count; i++) out[i] = (weft_array){0};
    weft__json json;
    json_t *root = NULL;
    weft__json_open(&json, ctx);
    weft_status status = parse_text(&json, bytes, size, name, &root);
    for (size_t i = 0; i < count && status == WEFT_OK; i++)
        status = read_one(ctx, name, root, &options[i], &out[i]);
    weft__json_close(&json);
    for (size_t i = 0; i < count && status != WEFT_OK; i++) weft_array_free(ctx, &out[i]);
    return status;
}

weft_status weft_read_json_matrices(weft_context *ctx, const char *file, const weft_json_options *options,
                                    size_t count, weft_array *out) {
    weft_bytes bytes;
    for (size_t i = 0; i < count; i++) out[i] = (weft_array){0};
    WEFT_TRY(weft__read_file(ctx, file, NULL, 0, &bytes));
    weft_status status = weft__parse_json(ctx, bytes.data, bytes.size, file, options, count, out);
    weft_bytes_free(ctx, &bytes);
    return status;
}

weft_status weft_read_json_matrix(weft_context *ctx, const char *file, const weft_json_options *options,
                                  weft_array *out) {
    static const weft_json_options defaults = {0};
    return weft_read_json_matrices(ctx, file, options != NULL ? options : &defaults, 1, out);
}
