/* Reads safetensors files strictly. The checks come in this order: sizes, form of the JSON, names, dtypes
 * and shapes. The last check is that the ranges cover the data without gap or overlap, up to the end of
 * the file. Only then can the caller use the file.
 *
 * Array data is read on demand by pread. A file that shrinks is therefore an error and not a SIGBUS. A joined
 * file has no bytes of its own: it reads pieces of other files.
 *
 * Must not know: what the arrays are for. Read next: safetensors_write.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "io/json.h"
#include "io/json_read.h"
#include "io/safetensors.h"

enum { ENTRY_BYTES = 65536 }; /* most bytes of JSON for one entry */

typedef struct entry {
    const char *name;
    weft_dtype dtype;
    int rank;
    int64_t shape[WEFT_ENTRY_RANK_MAX];
    uint64_t begin, end; /* from the beginning of the data */
} entry;

struct weft_safetensors {
    weft_context *ctx;
    int fd;                      /* -1: the file is in memory */
    const unsigned char *memory; /* [size] or NULL */
    weft__file_piece *pieces;    /* [piece_count] of other files, or NULL */
    size_t piece_count;
    uint64_t size;   /* of the file */
    uint64_t data;   /* where the data begins */
    char *path;      /* for messages */
    entry *entries;  /* [count], sorted by name */
    uint32_t *order; /* [count], indices sorted by (begin, end) */
    size_t count;
    char *pool; /* holds all strings */
    weft_metadata *metadata;
    size_t metadata_count;
};

/* ---- dtypes ---- */

static const struct {
    weft_dtype dtype;
    const char *name;
} dtypes[] = {{WEFT_F32, "F32"},   {WEFT_F64, "F64"}, {WEFT_F16, "F16"}, {WEFT_BF16, "BF16"},
              {WEFT_I8, "I8"},     {WEFT_I16, "I16"}, {WEFT_I32, "I32"}, {WEFT_I64, "I64"},
              {WEFT_U8, "U8"},     {WEFT_U16, "U16"}, {WEFT_U32, "U32"}, {WEFT_U64, "U64"},
              {WEFT_BOOL, "BOOL"}, {WEFT_C64, "C64"}};

const char *weft__safetensors_dtype_name(weft_dtype dtype) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (dtypes[i].dtype == dtype) return dtypes[i].name;
    return NULL;
}

bool weft__safetensors_dtype(const char *name, weft_dtype *dtype) {
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++)
        if (strcmp(dtypes[i].name, name) == 0) {
            *dtype = dtypes[i].dtype;
            return true;
        }
    return false;
}

/* ---- bytes ---- */

/* Returns the piece that holds byte `offset`: the last one that begins at or before it. */
static size_t piece_with(const weft_safetensors *f, uint64_t offset) {
    size_t low = 0, high = f->piece_count;
    while (high - low > 1) {
        const size_t middle = low + (high - low) / 2;
        if (f->pieces[middle].begin <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

static weft_status read_pieces(const weft_safetensors *f, uint64_t offset, unsigned char *out, size_t bytes) {
    for (size_t k = piece_with(f, offset); bytes > 0; k++) {
        const weft__file_piece *p = &f->pieces[k];
        const uint64_t end = k + 1 < f->piece_count ? p[1].begin : f->size;
        const size_t n = bytes < end - offset ? bytes : (size_t)(end - offset);
        WEFT_TRY(weft__safetensors_pread(p->file, p->at + (offset - p->begin), out, n));
        out += n;
        offset += n;
        bytes -= n;
    }
    return WEFT_OK;
}

weft_status weft__safetensors_pread(weft_safetensors *f, uint64_t offset, void *out, size_t bytes) {
    unsigned char *p = out;
    if (f->pieces) return read_pieces(f, offset, p, bytes);
    if (f->memory) {
        if (offset > f->size || bytes > f->size - offset)
            return weft__fail(f->ctx, WEFT_ERR_IO, "%s: the file ends before byte %" PRIu64, f->path,
                              offset + bytes);
        if (bytes) memcpy(p, f->memory + offset, bytes);
        return WEFT_OK;
    }
    while (bytes > 0) {
        size_t chunk = bytes < ((size_t)1 << 30) ? bytes : (size_t)1 << 30;
        ssize_t n = pread(f->fd, p, chunk, (off_t)offset);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return weft__fail_io(f->ctx, "read", f->path, errno);
        if (n == 0)
            return weft__fail(f->ctx, WEFT_ERR_IO,
                              "%s ends at byte %" PRIu64
                              ", but %zu more were expected: the file shrank while it was open",
                              f->path, offset, bytes);
        p += n;
        offset += (uint64_t)n;
        bytes -= (size_t)n;
    }
    return WEFT_OK;
}

static uint64_t little_endian(const unsigned char b[8]) {
    uint64_t v = 0;
    for (int i = 0; i < 8; i++) v |= (uint64_t)b[i] << (8 * i);
    return v;
}

static weft_status bad(const weft_safetensors *f, const char *entry_name, const char *field,
                       const char *why) {
    return weft__fail(f->ctx, WEFT_ERR_FORMAT, "%s: entry '%.200s': %s: %s", f->path, entry_name, field, why);
}

/* Reads the length of the JSON and checks it against the size of the file. */
static weft_status check_length(weft_safetensors *f, uint64_t *length) {
    unsigned char head[9];
    if (f->size < 10)
        return weft__fail(f->ctx, WEFT_ERR_FORMAT,
                          "%s: %" PRIu64
                          " bytes are too few for a safetensors file (8 of length, 2 of header)",
                          f->path, f->size);
    WEFT_TRY(weft__safetensors_pread(f, 0, head, sizeof head));
    uint64_t n = little_endian(head), room = f->size - 8;
    if (n < 2 || n > WEFT__SAFETENSORS_HEADER_MAX || n > room) {
        uint64_t swapped = __builtin_bswap64(n);
        if (swapped >= 2 && swapped <= WEFT__SAFETENSORS_HEADER_MAX && swapped <= room && head[8] == '{')
            return weft__fail(
                f->ctx, WEFT_ERR_FORMAT,
                "%s: byte order: the header's length is big-endian, safetensors is little-endian: "
                "write the file again",
                f->path);
        return weft__fail(
            f->ctx, WEFT_ERR_FORMAT,
            "%s: header length: %" PRIu64 " of a file of %" PRIu64
            " bytes (2 to 100,000,000 and not past the end): truncated, or not a safetensors file",
            f->path, n, f->size);
    }
    if (head[8] != '{')
        return weft__fail(f->ctx, WEFT_ERR_FORMAT, "%s: header: byte 8 is 0x%02x, not '{'", f->path, head[8]);
    *length = n;
    return WEFT_OK;
}

/* ---- the header's meaning ---- */

/* Reads an integer that is not negative. jansson holds at most INT64_MAX. */
static bool unsigned_value(const json_t *v, uint64_t *out) {
    if (!json_is_integer(v) || json_integer_value(v) < 0) return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

static weft_status read_entry(const weft_safetensors *f, const char *name, const json_t *o, entry *e) {
    const json_t *dtype = json_object_get(o, "dtype"), *shape = json_object_get(o, "shape");
    const json_t *range = json_object_get(o, "data_offsets");
    if (!json_is_object(o) || json_object_size(o) != 3 || !dtype || !shape || !range)
        return bad(f, name, "fields", "must be exactly dtype, shape, data_offsets");
    if (!json_is_string(dtype) || !weft__safetensors_dtype(json_string_value(dtype), &e->dtype))
        return weft__fail(f->ctx, WEFT_ERR_FORMAT, "%s: entry '%.200s': dtype: '%.20s' is not known", f->path,
                          name, json_is_string(dtype) ? json_string_value(dtype) : "(not a string)");
    if (!json_is_array(shape) || json_array_size(shape) > WEFT_ENTRY_RANK_MAX)
        return bad(f, name, "shape", "must be an array of at most 8 sizes");
    e->rank = (int)json_array_size(shape);
    for (int i = 0; i < e->rank; i++) {
        uint64_t extent;
        if (!unsigned_value(json_array_get(shape, (size_t)i), &extent))
            return bad(f, name, "shape", "a size is not an unsigned integer");
        e->shape[i] = (int64_t)extent;
    }
    if (!json_is_array(range) || json_array_size(range) != 2 ||
        !unsigned_value(json_array_get(range, 0), &e->begin) ||
        !unsigned_value(json_array_get(range, 1), &e->end))
        return bad(f, name, "data_offsets", "must be two unsigned integers");
    int64_t elements, bytes;
    if (!weft__numel(e->rank, e->shape, &elements) ||
        !weft__mul(elements, (int64_t)weft_dtype_size(e->dtype), &bytes))
        return bad(f, name, "shape", "the number of elements overflows");
    if (e->begin > e->end || e->end > f->size - f->data)
        return bad(f, name, "data_offsets", "reversed, or past the end of the file (truncated?)");
    if (e->end - e->begin != (uint64_t)bytes)
        return bad(f, name, "data_offsets", "do not span the bytes that dtype and shape need");
    return WEFT_OK;
}

/* Copies a string of the header into the pool. The string was checked before, and the pool has room for
 * all strings. */
static const char *pooled(weft__json_reader *r, char **next, bool is_name) {
    char *text = *next;
    size_t length = 0;
    *text = '\0';
    (void)(is_name ? weft__json_name(r, text, &length) : weft__json_string(r, text, &length));
    *next += length + 1;
    return text;
}

static weft_status read_metadata(weft_safetensors *f, weft__json_reader *r, char **next) {
    if (weft__json_peek(r) != '{') return bad(f, "__metadata__", "value", "must be an object of strings");
    const size_t from = r->at;
    weft__json_skip(r);
    f->metadata = weft__array(f->ctx, r->members, sizeof *f->metadata);
    if (!f->metadata) return weft__fail_oom(f->ctx, r->members * sizeof *f->metadata, "metadata");
    r->at = from;
    weft__json_take(r, '{');
    while (weft__json_more(r, '}', f->metadata_count)) {
        weft_metadata *m = &f->metadata[f->metadata_count++];
        m->key = pooled(r, next, true);
        if (weft__json_peek(r) != '"') return bad(f, "__metadata__", m->key, "must be a string");
        m->value = pooled(r, next, false);
    }
    return WEFT_OK;
}

static int by_key(const void *x, const void *y) {
    return strcmp(((const weft_metadata *)x)->key, ((const weft_metadata *)y)->key);
}

static int by_name(const void *x, const void *y) {
    return strcmp(((const entry *)x)->name, ((const entry *)y)->name);
}

/* Reads the value of one entry. Only this small value becomes a jansson tree. */
static weft_status read_value(const weft_safetensors *f, const char *name, weft__json_reader *r, entry *e) {
    const weft__json_limits limits = {.depth = 7, .values = ENTRY_BYTES, .items = 64, .plain = true};
    char problem[256];
    const bool object = weft__json_peek(r) == '{';
    const size_t from = r->at;
    weft__json_skip(r);
    if (!object) return bad(f, name, "fields", "must be exactly dtype, shape, data_offsets");
    if (r->at - from > ENTRY_BYTES) return bad(f, name, "fields", "longer than 65,536 bytes");
    weft__json json;
    json_t *o = NULL;
    weft__json_open(&json, f->ctx);
    weft_status status = weft__json_parse(&json, r->text + from, r->at - from, &limits, problem, &o);
    if (status == WEFT_OK)
        status = read_entry(f, name, o, e);
    else if (status == WEFT_ERR_FORMAT)
        status = bad(f, name, "fields", problem);
    weft__json_close(&json);
    return status;
}

static weft_status read_entries(weft_safetensors *f, weft__json_reader *r) {
    if (r->members > WEFT__SAFETENSORS_ENTRIES_MAX)
        return weft__fail(f->ctx, WEFT_ERR_FORMAT, "%s: header: %zu entries, at most 1,000,000", f->path,
                          r->members);
    const size_t most = r->members;
    f->entries = weft__array(f->ctx, most, sizeof *f->entries);
    f->pool = weft__alloc(f->ctx, r->bytes); /* unescaping never makes a string longer */
    if (!f->entries || !f->pool)
        return weft__fail_oom(f->ctx, most * sizeof *f->entries + r->bytes,
                              "the entries of a safetensors file");
    char *next = f->pool;
    weft__json_take(r, '{');
    for (size_t n = 0; weft__json_more(r, '}', n); n++) {
        const char *name = pooled(r, &next, true);
        if (strcmp(name, "__metadata__") == 0) {
            WEFT_TRY(read_metadata(f, r, &next));
            continue;
        }
        if (strlen(name) > WEFT_ENTRY_NAME_MAX) return bad(f, name, "name", "longer than 4096 bytes");
        f->entries[f->count].name = name;
        WEFT_TRY(read_value(f, name, r, &f->entries[f->count]));
        f->count++;
    }
    return WEFT_OK;
}

/* ---- ranges of the data ---- */

typedef struct range {
    uint64_t begin, end;
    uint32_t index;
} range;

static int by_range(const void *x, const void *y) {
    const range *a = x, *b = y;
    if (a->begin != b->begin) return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end) return a->end < b->end ? -1 : 1;
    return a->index < b->index ? -1 : a->index > b->index;
}

static weft_status check_tiling(weft_safetensors *f) {
    uint64_t at = 0;
    weft_status status = WEFT_OK;
    range *ranges = weft__array(f->ctx, f->count, sizeof *ranges);
    f->order = weft__array(f->ctx, f->count, sizeof *f->order);
    if (!ranges || !f->order)
        status = weft__fail_oom(f->ctx, f->count * sizeof *ranges, "the order of entries");
    for (size_t i = 0; status == WEFT_OK && i < f->count; i++)
        ranges[i] = (range){f->entries[i].begin, f->entries[i].end, (uint32_t)i};
    if (status == WEFT_OK && f->count) qsort(ranges, f->count, sizeof *ranges, by_range);
    for (size_t i = 0; status == WEFT_OK && i < f->count; i++) {
        if (ranges[i].begin != at)
            status = bad(f, f->entries[ranges[i].index].name, "data_offsets",
                         ranges[i].begin < at ? "overlaps another entry" : "leaves a gap before it");
        at = ranges[i].end;
        f->order[i] = ranges[i].index;
    }
    weft__free(f->ctx, ranges);
    if (status == WEFT_OK && at != f->size - f->data)
        status = weft__fail(f->ctx, WEFT_ERR_FORMAT,
                            "%s: data: the entries end at byte %" PRIu64 " of the data, which has %" PRIu64
                            " bytes",
                            f->path, at, f->size - f->data);
    return status;
}

/* Checks the whole text first, then reads it entry by entry. No tree of the whole text is built. */
static weft_status read_text(weft_safetensors *f, const char *text, size_t length) {
    weft__json_reader r;
    weft__json_begin(&r, f->ctx, text, length);
    weft_status status = WEFT_OK;
    if (!weft__json_check(&r) && r.no_memory)
        status = weft__fail_oom(f->ctx, length, "the header of a safetensors file");
    else if (r.problem)
        status =
            weft__fail(f->ctx, WEFT_ERR_FORMAT, "%s: header: %s at byte %zu", f->path, r.problem, 8 + r.at);
    if (status == WEFT_OK) status = read_entries(f, &r);
    weft__json_end(&r);
    return status;
}

static weft_status read_header(weft_safetensors *f) {
    uint64_t length = 0;
    WEFT_TRY(check_length(f, &length));
    f->data = 8 + length;
    char *text = weft__alloc(f->ctx, (size_t)length);
    if (!text) return weft__fail_oom(f->ctx, (size_t)length, "the header of a safetensors file");
    weft_status status = weft__safetensors_pread(f, 8, text, (size_t)length);
    if (status == WEFT_OK) status = read_text(f, text, (size_t)length);
    weft__free(f->ctx, text); /* sorting may need as much memory again */
    if (status != WEFT_OK) return status;
    if (f->count) qsort(f->entries, f->count, sizeof *f->entries, by_name);
    if (f->metadata_count) qsort(f->metadata, f->metadata_count, sizeof *f->metadata, by_key);
    return check_tiling(f);
}

/* ---- opening ---- */

static weft_status finish_open(weft_safetensors *f, weft_safetensors **out) {
    weft_status status = WEFT_OK;
#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
    status =
        weft__fail(f->ctx, WEFT_ERR_UNSUPPORTED, "%s: files are little-endian, this machine is not", f->path);
#endif
    if (status == WEFT_OK) status = read_header(f);
    if (status != WEFT_OK) {
        weft_safetensors_close(f);
        return status;
    }
    *out = f;
    return WEFT_OK;
}

static weft_safetensors *new_file(weft_context *ctx, const char *path) {
    weft_safetensors *f = weft__zalloc(ctx, sizeof *f);
    if (!f) return NULL;
    f->ctx = ctx;
    f->fd = -1;
    f->path = weft__strdup(ctx, path);
    if (f->path) return f;
    weft__free(ctx, f);
    return NULL;
}

weft_status weft__safetensors_open_fd(weft_context *ctx, int fd, const char *path, weft_safetensors **out) {
    struct stat st;
    *out = NULL;
    weft_safetensors *f = new_file(ctx, path);
    if (!f) {
        (void)close(fd);
        return weft__fail_oom(ctx, sizeof *f, "a safetensors file");
    }
    f->fd = fd;
    if (fstat(fd, &st) != 0) {
        const int error = errno;
        weft_safetensors_close(f);
        return weft__fail_io(ctx, "access", path, error);
    }
    if (!S_ISREG(st.st_mode)) {
        weft_safetensors_close(f);
        return weft__fail(ctx, WEFT_ERR_IO, "cannot read %s: not a regular file", path);
    }
    f->size = (uint64_t)st.st_size;
    return finish_open(f, out);
}

weft_status weft_safetensors_open(weft_context *ctx, const char *path, weft_safetensors **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, path);
    int fd = weft__io_system.open(NULL, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
    if (fd < 0) return weft__fail_io(ctx, "open", path, errno);
    return weft__safetensors_open_fd(ctx, fd, path, out);
}

weft_status weft_safetensors_open_memory(weft_context *ctx, const char *name, const void *data, size_t bytes,
                                         weft_safetensors **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, data);
    weft_safetensors *f = new_file(ctx, name ? name : "memory");
    if (!f) return weft__fail_oom(ctx, sizeof *f, "a safetensors file");
    f->memory = data;
    f->size = bytes;
    return finish_open(f, out);
}

/* Copies the entries, and gives them their places one after the other. */
static weft_status copy_entries(weft_safetensors *f, const weft_entry_info *entries, size_t count) {
    size_t room = 1;
    for (size_t i = 0; i < count; i++) room += strlen(entries[i].name) + 1;
    f->entries = weft__array(f->ctx, count, sizeof *f->entries);
    f->pool = weft__alloc(f->ctx, room);
    if (!f->entries || !f->pool)
        return weft__fail_oom(f->ctx, count * sizeof *f->entries + room, "the entries of joined files");
    char *next = f->pool;
    for (; f->count < count; f->count++) {
        const weft_entry_info *from = &entries[f->count];
        entry *to = &f->entries[f->count];
        const size_t length = strlen(from->name) + 1;
        *to = (entry){next, from->dtype, from->rank, {0}, f->size, f->size + from->bytes};
        memcpy(next, from->name, length);
        if (from->rank) memcpy(to->shape, from->shape, (size_t)from->rank * sizeof *to->shape);
        next += length;
        f->size += from->bytes;
    }
    return WEFT_OK;
}

weft_status weft__safetensors_join(weft_context *ctx, const char *path, const weft_entry_info *entries,
                                   size_t count, const weft__file_piece *pieces, size_t piece_count,
                                   weft_safetensors **out) {
    *out = NULL;
    weft_safetensors *f = new_file(ctx, path);
    if (!f) return weft__fail_oom(ctx, sizeof *f, "joined files");
    f->pieces = weft__array(ctx, piece_count + 1, sizeof *f->pieces);
    f->piece_count = piece_count;
    weft_status status =
        f->pieces ? WEFT_OK : weft__fail_oom(ctx, piece_count * sizeof *f->pieces, "joined files");
    if (status == WEFT_OK && piece_count) memcpy(f->pieces, pieces, piece_count * sizeof *pieces);
    if (status == WEFT_OK) status = copy_entries(f, entries, count);
    if (status == WEFT_OK)
        *out = f;
    else
        weft_safetensors_close(f);
    return status;
}

void weft_safetensors_close(weft_safetensors *f) {
    if (!f) return;
    if (f->fd >= 0) (void)close(f->fd);
    weft__free(f->ctx, f->path);
    weft__free(f->ctx, f->entries);
    weft__free(f->ctx, f->order);
    weft__free(f->ctx, f->pieces);
    weft__free(f->ctx, f->pool);
    weft__free(f->ctx, f->metadata);
    weft__free(f->ctx, f);
}

/* ---- using it ---- */

size_t weft_safetensors_count(const weft_safetensors *f) { return f ? f->count : 0; }

bool weft_safetensors_entry(const weft_safetensors *f, size_t i, weft_entry_info *info) {
    if (!f || i >= f->count) return false;
    const entry *e = &f->entries[i];
    if (info) *info = (weft_entry_info){e->name, e->dtype, e->rank, e->shape, (size_t)(e->end - e->begin)};
    return true;
}

bool weft_safetensors_find(const weft_safetensors *f, const char *name, size_t *i) {
    entry key = {.name = name};
    if (!f || !name || f->count == 0) return false;
    const entry *e = bsearch(&key, f->entries, f->count, sizeof *e, by_name);
    if (e && i) *i = (size_t)(e - f->entries);
    return e != NULL;
}

weft_status weft_safetensors_read(weft_safetensors *file, size_t i, size_t offset, void *out, size_t bytes) {
    WEFT_NEED(NULL, file);
    if (bytes > 0) WEFT_NEED(file->ctx, out);
    if (i >= file->count)
        return weft__fail(file->ctx, WEFT_ERR_INDEX, "%s: no entry %zu, there are %zu", file->path, i,
                          file->count);
    const entry *e = &file->entries[i];
    if (offset > e->end - e->begin || bytes > e->end - e->begin - offset)
        return weft__fail(file->ctx, WEFT_ERR_INDEX,
                          "%s: entry '%.200s' has %" PRIu64 " bytes, but %zu were requested from byte %zu",
                          file->path, e->name, e->end - e->begin, bytes, offset);
    return weft__safetensors_pread(file, file->data + e->begin + offset, out, bytes);
}

const weft_metadata *weft_safetensors_metadata(const weft_safetensors *f, size_t *count) {
    if (count) *count = f ? f->metadata_count : 0;
    return f ? f->metadata : NULL;
}

uint64_t weft__safetensors_offset(const weft_safetensors *f, size_t i) {
    return f->data + f->entries[i].begin;
}
size_t weft__safetensors_nth(const weft_safetensors *f, size_t place) { return f->order[place]; }
uint64_t weft__safetensors_header_bytes(const weft_safetensors *f) { return f->data; }
const char *weft__safetensors_path(const weft_safetensors *f) { return f->path; }
