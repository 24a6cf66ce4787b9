/* Writes and reads state.json, see manifest.h. Must not know: files on disk. Read next:
 * checkpoint_write.c. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "io/json.h"
#include "io/manifest.h"
#include "io/seal.h"

#define MAGIC "weft-checkpoint"

void weft__manifest_file_name(size_t k, size_t count, char out[WEFT__FILE_NAME]) {
    if (k == 0)
        snprintf(out, WEFT__FILE_NAME, "model.safetensors");
    else if (count == WEFT__FILES_WHOLE)
        snprintf(out, WEFT__FILE_NAME, "optimizer.safetensors");
    else
        snprintf(out, WEFT__FILE_NAME, "optimizer-%05zu-of-%05zu.safetensors", k, count - 1);
}

/* ---- describing ---- */

static const char *sum_in(weft_arena *arena, const weft__sum *sum) {
    char *text = weft__arena_alloc(arena, WEFT__SUM_TEXT);
    if (text) weft__sum_text(sum, text);
    return text;
}

weft_status weft__manifest_describe(weft_arena *arena, const char *name, const weft_entry *entries,
                                    const weft__written_file *written, weft__manifest_file *out) {
    char *crc = weft__arena_alloc(arena, 9);
    *out = (weft__manifest_file){.name = name,
                                 .bytes = written->bytes,
                                 .crc = crc,
                                 .header_bytes = written->header_bytes,
                                 .header_sum = sum_in(arena, &written->header),
                                 .count = written->count};
    out->entries = weft__arena_alloc(arena, (written->count ? written->count : 1) * sizeof *out->entries);
    if (!crc || !out->header_sum || !out->entries)
        return weft__fail_oom(arena->ctx, written->count, "a manifest");
    snprintf(crc, 9, "%08" PRIx32, written->crc);
    for (size_t i = 0; i < written->count; i++) {
        const weft__written_entry *w = &written->entries[i];
        const weft_entry *e = &entries[w->source];
        weft__manifest_entry *to = &out->entries[i];
        *to = (weft__manifest_entry){.name = e->name,
                                     .dtype = e->dtype,
                                     .rank = e->rank,
                                     .offset = w->offset,
                                     .sum = sum_in(arena, &w->sum)};
        if (!to->sum) return weft__fail_oom(arena->ctx, WEFT__SUM_TEXT, "a manifest");
        if (e->rank) memcpy(to->shape, e->shape, (size_t)e->rank * sizeof *e->shape);
        const int64_t *of = e->part ? e->part->shape : e->shape;
        to->from = e->part ? e->part->from : 0;
        to->of_rank = e->part ? e->part->rank : e->rank;
        if (to->of_rank) memcpy(to->of, of, (size_t)to->of_rank * sizeof *of);
    }
    return WEFT_OK;
}

/* ---- rendering ---- */

static json_t *render_shape(int rank, const int64_t *shape) {
    json_t *list = json_array();
    for (int i = 0; i < rank; i++) json_array_append_new(list, json_integer(shape[i]));
    return list;
}

static bool is_part(const weft__manifest_entry *e) {
    return e->from != 0 || e->of_rank != e->rank || memcmp(e->of, e->shape, sizeof e->of) != 0;
}

static json_t *render_entry(const weft__manifest_entry *e) {
    json_t *o =
        json_pack("{s:s, s:s, s:o, s:I, s:s}", "name", e->name, "dtype", weft_dtype_name(e->dtype), "shape",
                  render_shape(e->rank, e->shape), "offset", (json_int_t)e->offset, "checksum", e->sum);
    if (!is_part(e)) return o;
    json_object_set_new(o, "from", json_integer(e->from));
    json_object_set_new(o, "of", render_shape(e->of_rank, e->of));
    return o;
}

static json_t *render_file(const weft__manifest_file *f) {
    json_t *tensors = json_array();
    for (size_t i = 0; i < f->count; i++) json_array_append_new(tensors, render_entry(&f->entries[i]));
    return json_pack("{s:s, s:I, s:s, s:I, s:s, s:o}", "name", f->name, "bytes", (json_int_t)f->bytes,
                     "crc32", f->crc, "header_bytes", (json_int_t)f->header_bytes, "header_checksum",
                     f->header_sum, "tensors", tensors);
}

weft_status weft__manifest_file_render(weft_context *ctx, const weft__manifest_file *file, char **text,
                                       size_t *bytes) {
    weft__json json;
    weft__json_build(&json, ctx);
    return weft__json_text(&json, render_file(file), JSON_COMPACT, "a part of a manifest", text, bytes);
}

static weft_status render_state(weft__json *json, const weft_checkpoint_state *state, int format,
                                json_t **out) {
    weft_context *ctx = json->ctx;
    const weft__json_limits limits = {.depth = 60, .values = 10000000, .items = 10000000};
    char problem[256], seed[24];
    const char *extra = state->extra ? state->extra : "{}";
    if (state->step > INT64_MAX || state->data_position > INT64_MAX)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "checkpoint: step or data position past 2^63 - 1");
    json_t *own;
    const weft_status status = weft__json_parse(json, extra, strlen(extra), &limits, problem, &own);
    if (status == WEFT_ERR_FORMAT)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "checkpoint: extra: %s: give a JSON object", problem);
    WEFT_TRY(status);
    snprintf(seed, sizeof seed, "%" PRIu64, state->seed);
    *out = json_pack("{s:s, s:i, s:s, s:s, s:I, s:s, s:I, s:I, s:s, s:s, s:o}", "magic", MAGIC, "format",
                     format, "byte_order", "little", "weft", weft_version(), "step", (json_int_t)state->step,
                     "seed", seed, "data_position", (json_int_t)state->data_position, "ranks",
                     (json_int_t)(state->ranks ? state->ranks : 1), "config_hash",
                     state->config_hash ? state->config_hash : "", "data_hash",
                     state->data_hash ? state->data_hash : "", "extra", own);
    if (*out) return WEFT_OK;
    if (json->starved) return weft__fail_oom(ctx, 4096, "a manifest");
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "checkpoint: config_hash or data_hash is not UTF-8");
}

weft_status weft__manifest_render(weft_context *ctx, const weft_checkpoint_state *state,
                                  const weft__manifest_file *files, size_t count, char **text,
                                  size_t *bytes) {
    weft__json json;
    json_t *root = NULL, *list;
    char *body = NULL;
    size_t body_bytes = 0;
    *text = NULL;
    weft__json_build(&json, ctx);
    /* an older Weft can still read whole files, and says of others that they are too new for it */
    const int format = count == WEFT__FILES_WHOLE ? 1 : 2;
    weft_status status = render_state(&json, state, format, &root);
    if (status != WEFT_OK) {
        weft__json_close(&json);
        return status;
    }
    json_object_set_new(root, "files", list = json_array());
    for (size_t k = 0; k < count; k++) json_array_append_new(list, render_file(&files[k]));
    WEFT_TRY(weft__json_text(&json, root, JSON_INDENT(1), "a manifest", &body, &body_bytes));
    status = weft__seal(ctx, body, body_bytes, text, bytes);
    weft__free(ctx, body);
    return status;
}

/* ---- reading ---- */

typedef struct reader {
    weft_context *ctx;
    weft_arena *arena;
    const char *path;
} reader;

static weft_status bad(const reader *r, const char *where, const char *field, const char *why) {
    return weft__fail(r->ctx, WEFT_ERR_FORMAT, "%s: %.200s%s%s: %s", r->path, where, *where ? ": " : "",
                      field, why);
}

static weft_status get_text(const reader *r, const json_t *o, const char *where, const char *field,
                            const char **out) {
    const char *text = json_string_value(json_object_get(o, field));
    if (!text) return bad(r, where, field, "must be a string");
    size_t n = strlen(text) + 1;
    char *copy = weft__arena_alloc(r->arena, n);
    if (!copy) return weft__fail_oom(r->ctx, n, "a manifest");
    memcpy(copy, text, n);
    *out = copy;
    return WEFT_OK;
}

static weft_status get_count(const reader *r, const json_t *o, const char *where, const char *field,
                             uint64_t *out) {
    const json_t *v = json_object_get(o, field);
    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return bad(r, where, field, "must be an unsigned integer");
    *out = (uint64_t)json_integer_value(v);
    return WEFT_OK;
}

/* The seed is a string of decimal digits, because integers of jansson end at 2^63 - 1 and seeds have 64
 * bits. */
static weft_status get_seed(const reader *r, const json_t *o, uint64_t *out) {
    const char *p = json_string_value(json_object_get(o, "seed"));
    uint64_t v = 0;
    if (!p || !*p) return bad(r, "", "seed", "must be a string of digits");
    for (; *p; p++)
        if (*p < '0' || *p > '9' || __builtin_mul_overflow(v, UINT64_C(10), &v) ||
            __builtin_add_overflow(v, (uint64_t)(*p - '0'), &v))
            return bad(r, "", "seed", "must be a string of digits below 2^64");
    *out = v;
    return WEFT_OK;
}

static weft_status take_extra(const reader *r, const json_t *extra, weft_checkpoint_state *state) {
    weft__json json;
    char *text, *copy;
    size_t bytes = 0;
    weft__json_build(&json, r->ctx);
    WEFT_TRY(weft__json_text(&json, extra, JSON_COMPACT, "a manifest", &text, &bytes));
    state->extra = copy = weft__arena_alloc(r->arena, bytes + 1);
    if (copy) memcpy(copy, text, bytes + 1);
    weft__free(r->ctx, text);
    return copy ? WEFT_OK : weft__fail_oom(r->ctx, bytes + 1, "a manifest");
}

static weft_status read_state(const reader *r, const json_t *root, weft_checkpoint_state *state) {
    const char *magic, *order;
    uint64_t format, ranks;
    WEFT_TRY(get_text(r, root, "", "magic", &magic));
    if (strcmp(magic, MAGIC) != 0) return bad(r, "", "magic", "not a Weft checkpoint");
    WEFT_TRY(get_count(r, root, "", "format", &format));
    if (format == 0 || format > WEFT__CHECKPOINT_FORMAT)
        return weft__fail(r->ctx, WEFT_ERR_UNSUPPORTED,
                          "%s: format: %" PRIu64 " is newer than this Weft (%s) reads (%d): use a newer Weft",
                          r->path, format, weft_version(), WEFT__CHECKPOINT_FORMAT);
    WEFT_TRY(get_text(r, root, "", "byte_order", &order));
    if (strcmp(order, "little") != 0)
        return bad(r, "", "byte_order", "only little-endian checkpoints are read");
    WEFT_TRY(get_count(r, root, "", "step", &state->step));
    WEFT_TRY(get_seed(r, root, &state->seed));
    WEFT_TRY(get_count(r, root, "", "data_position", &state->data_position));
    WEFT_TRY(get_count(r, root, "", "ranks", &ranks));
    if (ranks == 0 || ranks > UINT32_MAX) return bad(r, "", "ranks", "must be 1 to 2^32 - 1");
    state->ranks = (uint32_t)ranks;
    WEFT_TRY(get_text(r, root, "", "config_hash", &state->config_hash));
    WEFT_TRY(get_text(r, root, "", "data_hash", &state->data_hash));
    const json_t *extra = json_object_get(root, "extra");
    if (!json_is_object(extra)) return bad(r, "", "extra", "must be an object");
    return take_extra(r, extra, state);
}

static weft_status get_shape(const reader *r, const json_t *o, const char *where, const char *field,
                             int *rank, int64_t sizes[WEFT_ENTRY_RANK_MAX]) {
    const json_t *shape = json_object_get(o, field);
    if (!json_is_array(shape) || json_array_size(shape) > WEFT_ENTRY_RANK_MAX)
        return bad(r, where, field, "must be an array of at most 8 sizes");
    *rank = (int)json_array_size(shape);
    for (int i = 0; i < *rank; i++) {
        const json_t *v = json_array_get(shape, (size_t)i);
        if (!json_is_integer(v) || json_integer_value(v) < 0)
            return bad(r, where, field, "a size is not an unsigned integer");
        sizes[i] = json_integer_value(v);
    }
    return WEFT_OK;
}

/* Reads which elements of which array the entry has. */
static weft_status read_place(const reader *r, const json_t *o, weft__manifest_entry *e) {
    uint64_t from;
    int64_t whole;
    e->of_rank = e->rank;
    memcpy(e->of, e->shape, sizeof e->of);
    if (!json_object_get(o, "from") && !json_object_get(o, "of")) return WEFT_OK;
    WEFT_TRY(get_count(r, o, e->name, "from", &from));
    e->from = (int64_t)from;
    memset(e->of, 0, sizeof e->of);
    WEFT_TRY(get_shape(r, o, e->name, "of", &e->of_rank, e->of));
    if (e->rank != 1) return bad(r, e->name, "shape", "a part must be a row of elements");
    if (!weft__numel(e->of_rank, e->of, &whole) || e->from > whole || e->shape[0] > whole - e->from)
        return bad(r, e->name, "from", "the part reaches past the end of its array");
    return WEFT_OK;
}

static weft_status read_tensor(const reader *r, const json_t *o, weft__manifest_entry *e) {
    const char *dtype;
    WEFT_TRY(get_text(r, o, "a tensor", "name", &e->name));
    WEFT_TRY(get_text(r, o, e->name, "dtype", &dtype));
    if (!weft_dtype_parse(dtype, &e->dtype)) return bad(r, e->name, "dtype", "not known");
    WEFT_TRY(get_shape(r, o, e->name, "shape", &e->rank, e->shape));
    WEFT_TRY(get_count(r, o, e->name, "offset", &e->offset));
    WEFT_TRY(read_place(r, o, e));
    return get_text(r, o, e->name, "checksum", &e->sum);
}

/* Reads the description of file k of `count`. */
static weft_status read_file(const reader *r, const json_t *o, size_t k, size_t count,
                             weft__manifest_file *f) {
    char name[WEFT__FILE_NAME];
    weft__manifest_file_name(k, count, name);
    WEFT_TRY(get_text(r, o, "a file", "name", &f->name));
    if (strcmp(f->name, name) != 0) return bad(r, f->name, "name", "not the file expected at this place");
    WEFT_TRY(get_count(r, o, name, "bytes", &f->bytes));
    WEFT_TRY(get_text(r, o, name, "crc32", &f->crc));
    WEFT_TRY(get_count(r, o, name, "header_bytes", &f->header_bytes));
    if (f->header_bytes > f->bytes) return bad(r, name, "header_bytes", "more than the file's bytes");
    WEFT_TRY(get_text(r, o, name, "header_checksum", &f->header_sum));
    const json_t *tensors = json_object_get(o, "tensors");
    if (!json_is_array(tensors)) return bad(r, name, "tensors", "must be an array");
    const size_t entries = json_array_size(tensors);
    f->entries = weft__arena_alloc(r->arena, (entries ? entries : 1) * sizeof *f->entries);
    if (!f->entries) return weft__fail_oom(r->ctx, entries * sizeof *f->entries, "a manifest");
    memset(f->entries, 0, entries * sizeof *f->entries);
    for (; f->count < entries; f->count++) {
        weft__manifest_entry *e = &f->entries[f->count];
        WEFT_TRY(read_tensor(r, json_array_get(tensors, f->count), e));
        if (is_part(e) && (k == 0 || count == WEFT__FILES_WHOLE))
            return bad(r, e->name, "from", "a part in a file of whole arrays");
    }
    return WEFT_OK;
}

static weft_status read_manifest(const reader *r, const json_t *root, weft__manifest *out) {
    WEFT_TRY(read_state(r, root, &out->state));
    const json_t *files = json_object_get(root, "files");
    const size_t count = json_array_size(files);
    if (count < WEFT__FILES_WHOLE || count > WEFT__FILES_MOST)
        return bad(r, "", "files", "must be an array of at least two");
    out->files = weft__arena_alloc(r->arena, count * sizeof *out->files);
    if (!out->files) return weft__fail_oom(r->ctx, count * sizeof *out->files, "a manifest");
    memset(out->files, 0, count * sizeof *out->files);
    for (; out->count < count; out->count++)
        WEFT_TRY(read_file(r, json_array_get(files, out->count), out->count, count, &out->files[out->count]));
    return WEFT_OK;
}

static const weft__json_limits manifest_limits = {.depth = 64, .values = 100000000, .items = 2000000};

weft_status weft__manifest_file_parse(weft_arena *arena, const char *text, size_t bytes, size_t k,
                                      size_t count, weft__manifest_file *out) {
    const reader r = {arena->ctx, arena, "the description of a file"};
    char problem[256];
    weft__json json;
    json_t *root;
    *out = (weft__manifest_file){0};
    weft__json_open(&json, arena->ctx);
    weft_status status = weft__json_parse(&json, text, bytes, &manifest_limits, problem, &root);
    if (status == WEFT_ERR_FORMAT)
        status = weft__fail(arena->ctx, WEFT_ERR_FORMAT, "%s: %s", r.path, problem);
    if (status == WEFT_OK) status = read_file(&r, root, k, count, out);
    weft__json_close(&json);
    return status;
}

weft_status weft__manifest_parse(weft_context *ctx, const char *path, const char *text, size_t bytes,
                                 weft__manifest *out) {
    char problem[256];
    *out = (weft__manifest){.ctx = ctx};
    WEFT_TRY(weft__seal_check(ctx, path, text, bytes));
    weft__json json;
    json_t *root;
    weft__json_open(&json, ctx);
    weft__arena_init(&out->arena, ctx);
    weft_status status = weft__json_parse(&json, text, bytes, &manifest_limits, problem, &root);
    if (status == WEFT_ERR_FORMAT) status = weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %s", path, problem);
    if (status == WEFT_OK) status = read_manifest(&(reader){ctx, &out->arena, path}, root, out);
    weft__json_close(&json);
    if (status != WEFT_OK) weft__manifest_free(out);
    return status;
}

void weft__manifest_free(weft__manifest *m) {
    weft__arena_free(&m->arena);
    *m = (weft__manifest){.ctx = m->ctx};
}
