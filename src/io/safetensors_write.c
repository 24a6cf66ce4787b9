/* Writes safetensors files. The whole layout is known before the first byte is written. The data is
 * therefore streamed in pieces of at most 1 MiB, and checksums are computed on the way.
 *
 * The same entries always give the same bytes: names are sorted, wide elements come first, and no time or
 * path is stored.
 *
 * Must not know: what the arrays are for. Read next: checkpoint.h. */
#include <stdlib.h>
#include <string.h>

#include "io/json.h"
#include "io/manifest.h"

#define DATA_ALIGNMENT 64

static weft_status bad(weft_context *ctx, const weft_entry *e, const char *why) {
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "safetensors: entry '%.200s': %s", e->name ? e->name : "(NULL)",
                      why);
}

static weft_status check_entry(weft_context *ctx, const weft_entry *e, uint64_t *bytes) {
    int64_t elements, size;
    if (!e->name || !*e->name || strlen(e->name) > WEFT_ENTRY_NAME_MAX)
        return bad(ctx, e, "a name must have 1 to 4096 bytes");
    if (strcmp(e->name, "__metadata__") == 0) return bad(ctx, e, "the format reserves this name");
    if (weft_dtype_size(e->dtype) == 0) return bad(ctx, e, "unknown dtype");
    if (!weft__safetensors_dtype_name(e->dtype))
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED,
                          "safetensors: entry '%.200s': the format has no %s: store two real arrays", e->name,
                          weft_dtype_name(e->dtype));
    if (e->rank < 0 || e->rank > WEFT_ENTRY_RANK_MAX || (e->rank > 0 && !e->shape))
        return bad(ctx, e, "the rank must be 0 to 8, and the shape must be given");
    if (!weft__numel(e->rank, e->shape, &elements) ||
        !weft__mul(elements, (int64_t)weft_dtype_size(e->dtype), &size))
        return bad(ctx, e, "a negative size, or too many elements");
    if (size > 0 && !e->data && !e->read) return bad(ctx, e, "it has neither data nor a read function");
    *bytes = (uint64_t)size;
    return WEFT_OK;
}

weft_status weft__entries_whole(weft_context *ctx, const weft_entry *entries, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (entries[i].part)
            return bad(ctx, &entries[i],
                       "a part of an array, of which other processes have the rest: let all of them call "
                       "weft_checkpoint_write_group");
    return WEFT_OK;
}

/* ---- layout ---- */

typedef struct place {
    const weft_entry *entry;
    size_t rank; /* index in the order of names */
} place;

static int by_name(const void *x, const void *y) {
    return strcmp(((const place *)x)->entry->name, ((const place *)y)->entry->name);
}

static int by_width(const void *x, const void *y) {
    const place *a = x, *b = y;
    size_t wide = weft_dtype_size(a->entry->dtype), narrow = weft_dtype_size(b->entry->dtype);
    if (wide != narrow) return wide > narrow ? -1 : 1;
    return a->rank < b->rank ? -1 : a->rank > b->rank;
}

/* Checks and sorts the entries, and gives each entry its offset within the data. */
static weft_status lay_out(weft_context *ctx, const weft_entry *entries, place *places,
                           weft__written_file *out) {
    uint64_t at = 0;
    for (size_t i = 0; i < out->count; i++) {
        uint64_t bytes;
        WEFT_TRY(check_entry(ctx, &entries[i], &bytes));
        places[i].entry = &entries[i];
    }
    if (out->count) qsort(places, out->count, sizeof *places, by_name);
    for (size_t i = 0; i < out->count; i++) {
        if (i && strcmp(places[i].entry->name, places[i - 1].entry->name) == 0)
            return bad(ctx, places[i].entry, "the name occurs twice");
        places[i].rank = i;
        out->entries[i].source = (size_t)(places[i].entry - entries);
        WEFT_TRY(check_entry(ctx, places[i].entry, &out->entries[i].bytes));
    }
    if (out->count) qsort(places, out->count, sizeof *places, by_width);
    for (size_t i = 0; i < out->count; i++) {
        weft__written_entry *e = &out->entries[places[i].rank];
        e->offset = at;
        if (__builtin_add_overflow(at, e->bytes, &at) || at > INT64_MAX - WEFT__SAFETENSORS_HEADER_MAX - 16)
            return bad(ctx, places[i].entry, "the file would be larger than 2^63 bytes");
    }
    out->bytes = at; /* of the data only; the header is added later */
    return WEFT_OK;
}

/* ---- header ---- */

/* Reports a string that jansson did not take. This is the caller's fault, unless memory was short. */
static weft_status bad_text(weft_context *ctx, const weft__json *json, const char *what, const char *name,
                            const char *why) {
    if (json->starved) return weft__fail_oom(ctx, strlen(name), "the header of a safetensors file");
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "safetensors: %s '%.200s': %s", what, name, why);
}

static json_t *safetensors_write_describe(const weft_entry *e, const weft__written_entry *w) {
    json_t *shape = json_array();
    for (int i = 0; i < e->rank; i++) json_array_append_new(shape, json_integer(e->shape[i]));
    return json_pack("{s:s, s:o, s:[I,I]}", "dtype", weft__safetensors_dtype_name(e->dtype), "shape", shape,
                     "data_offsets", (json_int_t)w->offset, (json_int_t)(w->offset + w->bytes));
}

static int by_key(const void *x, const void *y) {
    return strcmp((*(const weft_metadata *const *)x)->key, (*(const weft_metadata *const *)y)->key);
}

/* Adds the metadata, sorted by key. All values are strings. */
static weft_status describe_metadata(weft_context *ctx, const weft__json *json, const weft_metadata *metadata,
                                     size_t count, json_t *root) {
    const weft_metadata **sorted = weft__array(ctx, count, sizeof *sorted);
    json_t *object = json_object();
    weft_status status = WEFT_OK;
    if (!sorted || json_object_set_new(root, "__metadata__", object) != 0)
        status = weft__fail_oom(ctx, count * sizeof *sorted, "metadata");
    for (size_t i = 0; status == WEFT_OK && i < count; i++) {
        sorted[i] = &metadata[i];
        if (!metadata[i].key || !metadata[i].value)
            status = weft__fail(ctx, WEFT_ERR_ARGUMENT, "safetensors: metadata %zu: key or value is NULL", i);
    }
    if (status == WEFT_OK) qsort(sorted, count, sizeof *sorted, by_key);
    for (size_t i = 0; status == WEFT_OK && i < count; i++)
        if (json_object_get(object, sorted[i]->key) ||
            json_object_set_new(object, sorted[i]->key, json_string(sorted[i]->value)) != 0)
            status = bad_text(ctx, json, "metadata", sorted[i]->key, "occurs twice, or is not UTF-8");
    weft__free(ctx, sorted);
    return status;
}

/* Makes the header: the length, the JSON, and spaces up to the aligned beginning of the data. */
static weft_status frame(weft_context *ctx, const char *json, size_t bytes, weft__written_file *out,
                         char **header) {
    size_t total = (8 + bytes + DATA_ALIGNMENT - 1) / DATA_ALIGNMENT * DATA_ALIGNMENT;
    if (total - 8 > WEFT__SAFETENSORS_HEADER_MAX)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "safetensors: a header of %zu bytes, at most 100,000,000",
                          total);
    char *text = weft__alloc(ctx, total);
    if (!text) return weft__fail_oom(ctx, total, "the header of a safetensors file");
    memset(text, ' ', total);
    memcpy(text + 8, json, bytes);
    for (int i = 0; i < 8; i++) text[i] = (char)(unsigned char)(((uint64_t)total - 8) >> (8 * i));
    out->header_bytes = total;
    *header = text;
    return WEFT_OK;
}

static weft_status make_header(weft_context *ctx, const weft_entry *entries, const weft_metadata *metadata,
                               size_t metadata_count, weft__written_file *out, char **header) {
    weft__json json;
    char *text = NULL;
    size_t bytes = 0;
    weft_status status = WEFT_OK;
    weft__json_build(&json, ctx);
    json_t *root = json_object();
    if (metadata_count) status = describe_metadata(ctx, &json, metadata, metadata_count, root);
    for (size_t i = 0; status == WEFT_OK && i < out->count; i++) {
        const weft_entry *e = &entries[out->entries[i].source];
        if (json_object_set_new(root, e->name, safetensors_write_describe(e, &out->entries[i])) != 0)
            status = bad_text(ctx, &json, "entry", e->name, "the name is not UTF-8");
    }
    if (status == WEFT_OK)
        status =
            weft__json_text(&json, root, JSON_COMPACT, "the header of a safetensors file", &text, &bytes);
    weft__json_close(&json);
    if (status == WEFT_OK) status = frame(ctx, text, bytes, out, header);
    weft__free(ctx, text);
    return status;
}

weft_status weft__safetensors_plan(weft_context *ctx, const weft_entry *entries, size_t count,
                                   const weft_metadata *metadata, size_t metadata_count,
                                   weft__written_file *out, char **header) {
    *out = (weft__written_file){.ctx = ctx, .count = count};
    *header = NULL;
    if (count > WEFT__SAFETENSORS_ENTRIES_MAX)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "safetensors: %zu entries, at most 1,000,000", count);
    out->entries = weft__array(ctx, count, sizeof *out->entries);
    place *places = weft__array(ctx, count, sizeof *places);
    weft_status status = WEFT_OK;
    if (!out->entries || !places) status = weft__fail_oom(ctx, count * sizeof *places, "a safetensors file");
    if (status == WEFT_OK) status = lay_out(ctx, entries, places, out);
    weft__free(ctx, places);
    if (status == WEFT_OK) status = make_header(ctx, entries, metadata, metadata_count, out, header);
    if (status != WEFT_OK) {
        weft__free(ctx, out->entries);
        out->entries = NULL;
        return status;
    }
    for (size_t i = 0; i < count; i++) out->entries[i].offset += out->header_bytes;
    out->bytes += out->header_bytes;
    return WEFT_OK;
}

/* ---- data ---- */

static weft_status stream_entry(weft__writer *writer, const weft_entry *e, weft__written_entry *w,
                                char *buffer) {
    weft__sum_init(&w->sum);
    for (uint64_t at = 0; at < w->bytes;) {
        size_t n = w->bytes - at < WEFT__SUM_PIECE ? (size_t)(w->bytes - at) : WEFT__SUM_PIECE;
        const char *piece = e->data ? (const char *)e->data + at : buffer;
        if (!e->data) WEFT_TRY(e->read(e->user, (size_t)at, buffer, n));
        weft__sum_piece(&w->sum, piece, n);
        WEFT_TRY(weft__writer_write(writer, piece, n));
        at += n;
    }
    return WEFT_OK;
}

static int by_offset(const void *x, const void *y) {
    const weft__written_entry *a = *(weft__written_entry *const *)x, *b = *(weft__written_entry *const *)y;
    if (a->offset != b->offset) return a->offset < b->offset ? -1 : 1;
    return a->bytes < b->bytes ? -1 : a->bytes > b->bytes;
}

weft_status weft__safetensors_stream(weft__writer *writer, const weft_entry *entries, const char *header,
                                     weft__written_file *file) {
    weft_context *ctx = file->ctx;
    weft__written_entry **order = weft__array(ctx, file->count, sizeof *order);
    char *buffer = NULL;
    weft_status status =
        order ? WEFT_OK : weft__fail_oom(ctx, file->count * sizeof *order, "the order of entries");
    weft__sum_init(&file->header);
    weft__sum_all(&file->header, header, (size_t)file->header_bytes);
    file->crc = file->header.crc;
    if (status == WEFT_OK) status = weft__writer_write(writer, header, (size_t)file->header_bytes);
    for (size_t i = 0; status == WEFT_OK && i < file->count; i++) order[i] = &file->entries[i];
    if (status == WEFT_OK && file->count) qsort(order, file->count, sizeof *order, by_offset);
    for (size_t i = 0; status == WEFT_OK && i < file->count; i++) {
        const weft_entry *e = &entries[order[i]->source];
        if (!e->data && order[i]->bytes && !buffer && !(buffer = weft__alloc(ctx, WEFT__SUM_PIECE)))
            status = weft__fail_oom(ctx, WEFT__SUM_PIECE, "a buffer to write entries through");
        if (status == WEFT_OK) status = stream_entry(writer, e, order[i], buffer);
        file->crc = weft__crc_join(file->crc, order[i]->sum.crc, order[i]->bytes);
    }
    weft__free(ctx, order);
    weft__free(ctx, buffer);
    return status;
}

/* Reads back what was written, before the file is made visible. A pipe cannot be read back. */
static weft_status verify(weft__writer *writer, const char *path, const weft_entry *entries,
                          const weft__written_file *file) {
    weft_arena arena;
    weft__manifest_file expected;
    weft_safetensors *readable = NULL;
    int fd;
    if (weft__writer_in_place(writer)) return WEFT_OK;
    weft__arena_init(&arena, file->ctx);
    weft_status status = weft__manifest_describe(&arena, path, entries, file, &expected);
    if (status == WEFT_OK) status = weft__writer_reopen(writer, &fd);
    if (status == WEFT_OK) status = weft__verify_file(file->ctx, fd, path, &expected, true, &readable);
    weft_safetensors_close(readable);
    weft__arena_free(&arena);
    return weft__fail_unreadable(file->ctx, status, path);
}

weft_status weft__safetensors_write(weft_context *ctx, const weft__io *io, const char *path,
                                    const weft_entry *entries, size_t count, const weft_metadata *metadata,
                                    size_t metadata_count) {
    weft__written_file file;
    weft__writer *writer = NULL;
    char *header;
    WEFT_TRY(weft__entries_whole(ctx, entries, count));
    WEFT_TRY(weft__safetensors_plan(ctx, entries, count, metadata, metadata_count, &file, &header));
    weft_status status = weft__writer_open(ctx, io, path, file.bytes, &writer);
    if (status == WEFT_OK) status = weft__safetensors_stream(writer, entries, header, &file);
    if (status == WEFT_OK) status = verify(writer, path, entries, &file);
    if (status == WEFT_OK) {
        status = weft__writer_commit(writer);
    } else {
        weft__writer_abandon(writer);
    }
    weft__free(ctx, header);
    weft__free(ctx, file.entries);
    return status;
}

weft_status weft_safetensors_write(weft_context *ctx, const char *path, const weft_entry *entries,
                                   size_t count, const weft_metadata *metadata, size_t metadata_count) {
    WEFT_NEED(ctx, path);
    WEFT_NEED_ARRAY(ctx, entries, count);
    WEFT_NEED_ARRAY(ctx, metadata, metadata_count);
    return weft__safetensors_write(ctx, NULL, path, entries, count, metadata, metadata_count);
}
