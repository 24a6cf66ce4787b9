/* Reads and writes the npy format (NumPy enhancement proposal 1):
 *
 *     0x93 "NUMPY" | major, minor | length of the header | header | elements
 *                                   (u16; u32 from version 2)
 *
 * The header is a Python dictionary as text, padded with blanks and ended by a newline. Versions 1 to 3
 * differ in the width of the length and in the encoding. The parser accepts exactly what NumPy writes: three
 * keys, each once.
 *
 * Must not know: where the bytes come from. Read next: base/number.c. */
#include "data/parse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/publish.h"

#define HEADER_MAX 10000 /* bytes of the dictionary; NumPy itself refuses longer ones */

typedef struct npy_header {
    weft_dtype dtype;
    bool big_endian, fortran_order;
    bool has_descr, has_order, has_shape;
    int rank;
    int64_t shape[WEFT_ARRAY_MAX_RANK];
    size_t size;  /* where the elements start */
    int64_t body; /* bytes of the elements */
} npy_header;

/* The current position in the dictionary. */
typedef struct cursor {
    weft_context *ctx;
    const char *name;
    const uint8_t *bytes; /* bytes of the whole file, so positions are file offsets */
    size_t at, end;
} cursor;

static weft_status fail_at(const cursor *c, const char *expected) {
    char found[WEFT__EXCERPT];
    size_t shown = c->end - c->at < 12 ? c->end - c->at : 12;
    weft__excerpt(found, c->bytes + c->at, shown);
    return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: byte %zu: expected %s in the npy header, found %s",
                      c->name, c->at, expected, c->at == c->end ? "its end" : found);
}

static void skip_blanks(cursor *c) {
    while (c->at < c->end && (c->bytes[c->at] == ' ' || c->bytes[c->at] == '\t')) c->at++;
}

/* If the next character is `wanted`, skips it and the blanks around it. */
static bool accept(cursor *c, char wanted) {
    skip_blanks(c);
    if (c->at == c->end || c->bytes[c->at] != (uint8_t)wanted) return false;
    c->at++;
    skip_blanks(c);
    return true;
}

static bool accept_word(cursor *c, const char *word) {
    size_t n = strlen(word);
    if (c->end - c->at < n || memcmp(c->bytes + c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

/* Reads a string in single or double quotes, without escapes. */
static weft_status read_string(cursor *c, const char *what, const char **text, size_t *size) {
    if (c->at == c->end || (c->bytes[c->at] != '\'' && c->bytes[c->at] != '"')) return fail_at(c, what);
    size_t start = c->at + 1, end = start;
    while (end < c->end && c->bytes[end] != c->bytes[c->at] && c->bytes[end] != '\\' && c->bytes[end] >= ' ')
        end++;
    if (end == c->end || c->bytes[end] != c->bytes[c->at]) return fail_at(c, what);
    *text = (const char *)c->bytes + start;
    *size = end - start;
    c->at = end + 1;
    return WEFT_OK;
}

static const struct {
    char code[3];
    weft_dtype dtype;
} descrs[] = {{"f4", WEFT_F32}, {"f8", WEFT_F64},  {"f2", WEFT_F16}, {"i1", WEFT_I8},  {"i2", WEFT_I16},
              {"i4", WEFT_I32}, {"i8", WEFT_I64},  {"u1", WEFT_U8},  {"u2", WEFT_U16}, {"u4", WEFT_U32},
              {"u8", WEFT_U64}, {"b1", WEFT_BOOL}, {"c8", WEFT_C64}};
/* c16 has three characters, so known_descr treats it separately. */

static bool known_descr(const char *text, size_t size, weft_dtype *dtype) {
    if (size == 3 && memcmp(text, "c16", 3) == 0) {
        *dtype = WEFT_C128;
        return true;
    }
    for (size_t i = 0; size == 2 && i < sizeof descrs / sizeof *descrs; i++) {
        if (memcmp(text, descrs[i].code, 2) == 0) {
            *dtype = descrs[i].dtype;
            return true;
        }
    }
    return false;
}

static weft_status read_descr(cursor *c, npy_header *h) {
    if (c->at < c->end && c->bytes[c->at] == '[')
        return fail_at(c, "a plain dtype (structures are not read)");
    const char *text = NULL;
    size_t size = 0, start = c->at;
    WEFT_TRY(read_string(c, "the dtype as a string such as '<f4'", &text, &size));
    char order = size > 0 ? text[0] : 0;
    bool known = (order == '<' || order == '>' || order == '|') && known_descr(text + 1, size - 1, &h->dtype);
    if (known && order == '|' && weft_dtype_size(h->dtype) != 1) known = false; /* '|' means: no byte order */
    if (!known) {
        char found[WEFT__EXCERPT];
        return weft__fail(
            c->ctx, WEFT_ERR_FORMAT,
            "%s: byte %zu: dtype %s is not read, expected < or > and f2 f4 f8 i1 i2 i4 i8 u1 u2 u4 u8 b1 c8 "
            "c16%s",
            c->name, start, weft__excerpt(found, text, size),
            memchr(text, 'O', size) != NULL ? " (objects would run code)" : "");
    }
    h->big_endian = order == '>';
    return WEFT_OK;
}

static weft_status read_order(cursor *c, npy_header *h) {
    if (accept_word(c, "True"))
        h->fortran_order = true;
    else if (!accept_word(c, "False"))
        return fail_at(c, "True or False");
    return WEFT_OK;
}

static weft_status read_dimension(cursor *c, npy_header *h) {
    int64_t value = 0;
    size_t start = c->at;
    for (; c->at < c->end && c->bytes[c->at] >= '0' && c->bytes[c->at] <= '9'; c->at++) {
        if (!weft__mul(value, 10, &value) || !weft__add(value, c->bytes[c->at] - '0', &value)) {
            return fail_at(c, "a dimension below 2^63");
        }
    }
    if (c->at == start) return fail_at(c, "a dimension");
    if (h->rank == WEFT_ARRAY_MAX_RANK) {
        return weft__fail(c->ctx, WEFT_ERR_FORMAT, "%s: byte %zu: more than %d dimensions", c->name, start,
                          WEFT_ARRAY_MAX_RANK);
    }
    h->shape[h->rank++] = value;
    return WEFT_OK;
}

/* Reads a shape: (), (3,), (3, 4) or (3, 4,). */
static weft_status read_shape(cursor *c, npy_header *h) {
    if (!accept(c, '(')) return fail_at(c, "the shape as a tuple such as (3, 4)");
    bool comma = true; /* no comma is needed before the first dimension */
    while (!accept(c, ')')) {
        if (!comma) return fail_at(c, "',' or ')'");
        WEFT_TRY(read_dimension(c, h));
        comma = accept(c, ',');
        if (!comma && h->rank == 1) return fail_at(c, "',' (a tuple of one is written (3,))");
    }
    return WEFT_OK;
}

static weft_status read_member(cursor *c, npy_header *h) {
    const char *key = NULL;
    size_t size = 0, start = c->at;
    WEFT_TRY(read_string(c, "a key in quotes", &key, &size));
    bool *seen = NULL;
    weft_status (*read)(cursor *, npy_header *) = NULL;
    if (size == 5 && memcmp(key, "descr", 5) == 0) seen = &h->has_descr, read = read_descr;
    if (size == 5 && memcmp(key, "shape", 5) == 0) seen = &h->has_shape, read = read_shape;
    if (size == 13 && memcmp(key, "fortran_order", 13) == 0) seen = &h->has_order, read = read_order;
    if (read == NULL || *seen) {
        c->at = start;
        return fail_at(c, "each of the keys descr, fortran_order and shape once");
    }
    *seen = true;
    if (!accept(c, ':')) return fail_at(c, "':'");
    return read(c, h);
}

static weft_status read_dictionary(cursor *c, npy_header *h) {
    if (!accept(c, '{')) return fail_at(c, "'{'");
    bool comma = true;
    while (!accept(c, '}')) {
        if (!comma) return fail_at(c, "',' or '}'");
        WEFT_TRY(read_member(c, h));
        comma = accept(c, ',');
    }
    if (!h->has_descr || !h->has_shape || !h->has_order)
        return fail_at(c, "descr, fortran_order and shape before here");
    if (c->at + 1 != c->end || c->bytes[c->at] != '\n')
        return fail_at(c, "only blanks and a newline at its end");
    return WEFT_OK;
}

static weft_status read_header(weft_context *ctx, const uint8_t *p, size_t size, const char *name,
                               npy_header *h) {
    if (size < 10 || memcmp(p, "\x93NUMPY", 6) != 0) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte 0: an npy file starts with 93 'NUMPY' and has at least 10 bytes", name);
    }
    if (p[6] < 1 || p[6] > 3 || p[7] != 0) {
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: byte 6: npy version %d.%d, expected 1.0, 2.0 or 3.0",
                          name, p[6], p[7]);
    }
    size_t start = p[6] == 1 ? 10 : 12, length = (size_t)p[8] | (size_t)p[9] << 8;
    if (size < start)
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: byte %zu: the file ends within its header", name, size);
    if (p[6] > 1) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (length > HEADER_MAX) {
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: byte 8: a header of %zu bytes, expected at most %d",
                          name, length, HEADER_MAX);
    }
    if (size - start < length) {
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: byte %zu: the file ends within its header of %zu bytes",
                          name, size, length);
    }
    cursor c = {.ctx = ctx, .name = name, .bytes = p, .at = start, .end = start + length};
    WEFT_TRY(read_dictionary(&c, h));
    h->size = c.end;
    int64_t numel = 0;
    if (!weft__numel(h->rank, h->shape, &numel) ||
        !weft__mul(numel, (int64_t)weft_dtype_size(h->dtype), &h->body) ||
        h->body > PTRDIFF_MAX - (int64_t)h->size) {
        return weft__fail(ctx, WEFT_ERR_FORMAT,
                          "%s: byte %zu: the shape declares more elements than memory can hold", name, start);
    }
    return WEFT_OK;
}

weft_status weft__npy_declared(weft_context *ctx, const uint8_t *head, size_t head_size, const char *name,
                               uint64_t *total) {
    npy_header h = {0};
    WEFT_TRY(read_header(ctx, head, head_size, name, &h));
    *total = (uint64_t)h.body + h.size;
    return WEFT_OK;
}

/* Copies column-major elements into row-major order. Walks the result in order and computes the index in the
 * source. */
static void reorder(const weft_array *from, uint8_t *to) {
    size_t width = weft_dtype_size(from->dtype), stride[WEFT_ARRAY_MAX_RANK], at = 0;
    int64_t index[WEFT_ARRAY_MAX_RANK] = {0};
    size_t step = width;
    for (int d = 0; d < from->rank; d++) {
        stride[d] = step;
        step *= (size_t)from->shape[d];
    }
    const uint8_t *source = from->data;
    for (size_t done = 0; done < from->bytes; done += width) {
        memcpy(to + done, source + at, width);
        for (int d = from->rank - 1; d >= 0; d--) {
            at += stride[d];
            if (++index[d] < from->shape[d]) break;
            at -= stride[d] * (size_t)from->shape[d];
            index[d] = 0;
        }
    }
}

static weft_status to_c_order(weft_context *ctx, const char *name, weft_array *array) {
    if (array->rank < 2 || array->bytes == 0) return WEFT_OK;
    uint8_t *data = weft__alloc_aligned(ctx, array->bytes);
    if (data == NULL) return weft__fail_oom(ctx, array->bytes, name);
    reorder(array, data);
    weft__free_aligned(ctx, array->data);
    array->data = data;
    return WEFT_OK;
}

/* Checks that each bool is 0 or 1. Another byte would be undefined behaviour later. */
static weft_status check_bools(weft_context *ctx, const char *name, size_t start, const weft_array *array) {
    const uint8_t *p = array->data;
    for (size_t i = 0; array->dtype == WEFT_BOOL && i < array->bytes; i++) {
        if (p[i] > 1) {
            return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: byte %zu: a bool is 0 or 1, found %d", name,
                              start + i, p[i]);
        }
    }
    return WEFT_OK;
}

/* Makes an array from the bytes of a file and takes over their memory. After a failure `out` may hold
 * data. */
static weft_status npy_take(weft_context *ctx, weft_bytes *bytes, const char *name, weft_array *out) {
    npy_header h = {0};
    WEFT_TRY(read_header(ctx, bytes->data, bytes->size, name, &h));
    uint64_t found = bytes->size - h.size;
    if (found != (uint64_t)h.body) {
        return weft__fail(
            ctx, WEFT_ERR_FORMAT,
            "%s: byte %zu: the header declares %" PRId64 " bytes of elements, %" PRIu64 " are there (%s)",
            name, h.size, h.body, found, found < (uint64_t)h.body ? "cut off" : "too many bytes");
    }
    *out = (weft_array){.dtype = h.dtype, .rank = h.rank};
    memcpy(out->shape, h.shape, sizeof out->shape);
    weft__array_take(bytes, h.size, out);
    WEFT_TRY(check_bools(ctx, name, h.size, out));
    weft__to_host_order(out->dtype, out->data, out->bytes, h.big_endian);
    return h.fortran_order ? to_c_order(ctx, name, out) : WEFT_OK;
}

static weft_status take_all(weft_context *ctx, weft_bytes *bytes, const char *name, weft_array *out) {
    weft_status status = npy_take(ctx, bytes, name, out);
    weft_bytes_free(ctx, bytes);
    if (status != WEFT_OK) weft_array_free(ctx, out);
    return status;
}

weft_status weft__parse_npy(weft_context *ctx, const void *bytes, size_t size, const char *name,
                            weft_array *out) {
    weft_bytes copy;
    *out = (weft_array){0};
    WEFT_TRY(weft__bytes_new(ctx, size, name, &copy));
    if (size > 0) memcpy(copy.data, bytes, size);
    return take_all(ctx, &copy, name, out);
}

weft_status weft_read_npy(weft_context *ctx, const char *path, weft_array *out) {
    weft_bytes bytes;
    WEFT_NEED(ctx, out);
    *out = (weft_array){0};
    WEFT_NEED(ctx, path);
    WEFT_TRY(weft__read_file(ctx, path, weft__npy_declared, 0, &bytes));
    return take_all(ctx, &bytes, path, out);
}

/* ---- writing ---- */

static const char *descr_of(weft_dtype dtype) {
    if (dtype == WEFT_C128) return "c16";
    for (size_t i = 0; i < sizeof descrs / sizeof *descrs; i++) {
        if (descrs[i].dtype == dtype) return descrs[i].code;
    }
    return NULL;
}

/* Writes the header, padded so that the elements start at a multiple of 64. Returns its size. */
static size_t format_header(const weft_array *array, const char *descr, char *out, size_t capacity) {
    char shape[WEFT_ARRAY_MAX_RANK * 22 + 1] = "";
    int n = 0;
    for (int d = 0; d < array->rank; d++) {
        const char *after = array->rank == 1 ? "," : d + 1 < array->rank ? ", " : "";
        n += snprintf(shape + n, sizeof shape - (size_t)n, "%" PRId64 "%s", array->shape[d], after);
    }
    int length =
        snprintf(out, capacity, "%c%s%c%c??{'descr': '%c%s', 'fortran_order': False, 'shape': (%s), }", 0x93,
                 "NUMPY", 1, 0, weft_dtype_size(array->dtype) == 1 ? '|' : '<', descr, shape);
    size_t size = (size_t)length, padded = (size + 1 + 63) / 64 * 64;
    memset(out + size, ' ', padded - size);
    out[padded - 1] = '\n';
    out[8] = (char)((padded - 10) & 0xff);
    out[9] = (char)((padded - 10) >> 8);
    return padded;
}

static weft_status check_array(weft_context *ctx, const char *path, const weft_array *array) {
    int64_t count;
    if (!weft__array_elements(array, &count) ||
        array->bytes != (size_t)count * weft_dtype_size(array->dtype)) {
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "%s: writing npy: the array's rank, shape and bytes do not fit together", path);
    }
    if (descr_of(array->dtype) == NULL) {
        return weft__fail(ctx, WEFT_ERR_DTYPE, "%s: writing npy: the format has no %s; convert to f32 first",
                          path, weft_dtype_name(array->dtype));
    }
    return WEFT_OK;
}

static weft_status write_parts(weft__writer *writer, const char *header, size_t size, const weft_array *array,
                               const void *data) {
    WEFT_TRY(weft__writer_write(writer, header, size));
    return array->bytes > 0 ? weft__writer_write(writer, data, array->bytes) : WEFT_OK;
}

static weft_status write_file(weft_context *ctx, const char *path, const weft_array *array,
                              const void *data) {
    char header[512];
    size_t size = format_header(array, descr_of(array->dtype), header, sizeof header - 64);
    weft__writer *writer;
    WEFT_TRY(weft__writer_open(ctx, NULL, path, size + array->bytes, &writer));
    weft_status status = write_parts(writer, header, size, array, data);
    if (status == WEFT_OK) return weft__writer_commit(writer);
    weft__writer_abandon(writer);
    return status;
}

weft_status weft_write_npy(weft_context *ctx, const char *path, const weft_array *array) {
    WEFT_NEED(ctx, path);
    WEFT_NEED(ctx, array);
    WEFT_TRY(check_array(ctx, path, array));
    if (!weft__host_is_big_endian() || array->bytes == 0) return write_file(ctx, path, array, array->data);
    void *swapped = weft__alloc(ctx, array->bytes);
    if (swapped == NULL) return weft__fail_oom(ctx, array->bytes, path);
    memcpy(swapped, array->data, array->bytes);
    weft__to_host_order(array->dtype, swapped, array->bytes, false);
    weft_status status = write_file(ctx, path, array, swapped);
    weft__free(ctx, swapped);
    return status;
}
