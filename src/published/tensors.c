/* The tensors of a GGUF file, of a safetensors file, or of the files of a sharded model. Must not know:
 * architectures. Read next: load.c. */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weft/data.h>
#include <weft/io.h>

#include "base/text.h"
#include "io/json.h"
#include "io/publish.h"
#include "published/gguf.h"
#include "published/published.h"
#include "published/tensors.h"

#define INDEX_MAX  ((size_t)64 << 20) /* bytes of model.safetensors.index.json */
#define SHARDS_MAX 1024
#define SINGLE     "model.safetensors"
#define INDEX_FILE "model.safetensors.index.json"

typedef struct shard {
    char *path;
    weft_safetensors *file; /* NULL in a GGUF file */
} shard;

struct weft__tensors {
    weft_context *ctx;
    shard *shards; /* [count] */
    size_t count, capacity;
    weft__gguf *gguf; /* the only file, or NULL */
};

void weft__tensors_close(weft__tensors *t) {
    if (!t) return;
    for (size_t i = 0; i < t->count; i++) {
        weft_safetensors_close(t->shards[i].file);
        weft__free(t->ctx, t->shards[i].path);
    }
    weft__free(t->ctx, t->shards);
    weft__gguf_close(t->gguf);
    weft__free(t->ctx, t);
}

/* Adds a file to the list. */
static weft_status add_shard(weft__tensors *t, const char *path, shard **out) {
    if (!weft__grow(t->ctx, &t->shards, &t->capacity, t->count, sizeof *t->shards))
        return weft__fail_oom(t->ctx, sizeof *t->shards, "a list of files");
    *out = &t->shards[t->count];
    **out = (shard){.path = weft__strdup(t->ctx, path)};
    if (!(*out)->path) return weft__fail_oom(t->ctx, strlen(path), "a path");
    t->count++;
    return WEFT_OK;
}

/* Opens a file of the folder, unless it is open already. */
static weft_status open_shard(weft__tensors *t, const char *folder, const char *name) {
    char path[4096];
    shard *s;
    WEFT_TRY(weft__published_path(t->ctx, folder, name, path));
    for (size_t i = 0; i < t->count; i++)
        if (strcmp(t->shards[i].path, path) == 0) return WEFT_OK;
    if (t->count == SHARDS_MAX)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: more than %d files of weights", folder, SHARDS_MAX);
    WEFT_TRY(add_shard(t, path, &s));
    return weft_safetensors_open(t->ctx, path, &s->file);
}

/* A file that the index names must be there. */
static weft_status check_there(const weft__tensors *t, const char *folder, const char *name,
                               const char *index) {
    char path[4096];
    WEFT_TRY(weft__published_path(t->ctx, folder, name, path));
    if (access(path, F_OK) == 0) return WEFT_OK;
    return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: the file is missing, but %s names it", path, index);
}

/* Opens the files that the index names: {"weight_map": {"tensor": "file", ...}}. */
static weft_status open_all(weft__tensors *t, const char *folder, const char *path, const json_t *root) {
    const json_t *map = json_object_get(root, "weight_map"), *file;
    const char *name;
    if (!json_is_object(map) || json_object_size(map) == 0)
        return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: weight_map: the object is missing or empty", path);
    json_object_foreach((json_t *)(uintptr_t)map, name, file) {
        const char *text = json_string_value(file);
        if (!text || !text[0] || strchr(text, '/'))
            return weft__fail(t->ctx, WEFT_ERR_FORMAT,
                              "%s: weight_map: '%.120s' must name a file of the folder", path, name);
        WEFT_TRY(check_there(t, folder, text, path));
        WEFT_TRY(open_shard(t, folder, text));
        size_t entry;
        bool found = false;
        for (size_t i = 0; i < t->count && !found; i++)
            found = weft_safetensors_find(t->shards[i].file, name, &entry);
        if (!found)
            return weft__fail(t->ctx, WEFT_ERR_FORMAT, "%s: weight_map: no tensor '%.120s' is in %s", path,
                              name, text);
    }
    return WEFT_OK;
}

static weft_status open_index(weft__tensors *t, const char *folder, const char *path) {
    static const weft__json_limits limits = {.depth = 4, .values = 4000000, .items = 100000};
    char problem[256];
    weft_bytes file;
    weft__json json;
    json_t *root;
    WEFT_TRY(weft_read_file(t->ctx, path, INDEX_MAX, &file));
    weft__json_open(&json, t->ctx);
    weft_status status = weft__json_parse(&json, (const char *)file.data, file.size, &limits, problem, &root);
    if (status == WEFT_OK)
        status = open_all(t, folder, path, root);
    else if (status == WEFT_ERR_FORMAT)
        status = weft__fail(t->ctx, status, "%s: %s", path, problem);
    weft__json_close(&json);
    weft_bytes_free(t->ctx, &file);
    return status;
}

static weft_status open_path(weft__tensors *t, const char *folder) {
    char single[4096], index[4096];
    shard *s;
    struct stat there;
    if (stat(folder, &there) != 0) return weft__fail_io(t->ctx, "read", folder, errno);
    if (S_ISREG(there.st_mode)) {
        WEFT_TRY(add_shard(t, folder, &s));
        return weft__matches("*.safetensors", folder) ? weft_safetensors_open(t->ctx, folder, &s->file)
                                                      : weft__gguf_open(t->ctx, folder, &t->gguf);
    }
    WEFT_TRY(weft__published_path(t->ctx, folder, SINGLE, single));
    WEFT_TRY(weft__published_path(t->ctx, folder, INDEX_FILE, index));
    if (access(single, F_OK) == 0) return open_shard(t, folder, SINGLE);
    if (access(index, F_OK) == 0) return open_index(t, folder, index);
    return weft__fail(t->ctx, WEFT_ERR_FORMAT,
                      "%s: the folder has no " SINGLE " and no " INDEX_FILE
                      ": if the weights are in pytorch_model.bin, convert them with transformers",
                      folder);
}

weft_status weft__tensors_open(weft_context *ctx, const char *path, weft__tensors **out) {
    *out = NULL;
    weft__tensors *t = weft__zalloc(ctx, sizeof *t);
    if (!t) return weft__fail_oom(ctx, sizeof *t, "a list of files");
    t->ctx = ctx;
    const weft_status status = open_path(t, path);
    if (status == WEFT_OK)
        *out = t;
    else
        weft__tensors_close(t);
    return status;
}

static size_t shard_tensors(const weft__tensors *t, size_t k) {
    return t->gguf ? weft__gguf_count(t->gguf) : weft_safetensors_count(t->shards[k].file);
}

/* Describes an entry of a safetensors file. */
static void describe_entry(const shard *s, weft__tensor_at *at) {
    weft_entry_info info;
    weft_safetensors_entry(s->file, at->entry, &info);
    at->name = info.name;
    at->dtype = weft_dtype_name(info.dtype);
    at->readable = weft_dtype_is_float(info.dtype);
    at->rank = info.rank;
    at->shape = info.shape;
    at->row_bytes = info.rank && info.shape[0] ? info.bytes / (size_t)info.shape[0] : info.bytes;
}

static void describe_gguf(const weft__gguf_tensor *tensor, weft__tensor_at *at) {
    for (int i = 1; tensor->rank == 2 && i < WEFT_PACKED_COUNT; i++)
        if (strcmp(weft_packed_name((weft_packed_format)i), tensor->type->name) == 0)
            at->format = (weft_packed_format)i, at->blocks = tensor->data;
    at->name = tensor->name;
    at->dtype = tensor->type->name;
    at->readable = tensor->rank == 2 || tensor->type->elements == 1;
    at->rank = tensor->rank;
    at->shape = tensor->shape;
    at->row_bytes = tensor->rank > 1 ? tensor->row_bytes : tensor->type->bytes;
    for (int i = 1; i + 1 < tensor->rank; i++) at->row_bytes *= (size_t)tensor->shape[i];
}

bool weft__tensors_get(const weft__tensors *t, size_t i, weft__tensor_at *at) {
    size_t before = 0;
    for (size_t k = 0; k < t->count; k++) {
        const size_t count = shard_tensors(t, k);
        if (i - before < count) {
            *at = (weft__tensor_at){.path = t->shards[k].path, .shard = k, .entry = i - before, .index = i};
            if (t->gguf)
                describe_gguf(weft__gguf_tensor_at(t->gguf, at->entry), at);
            else
                describe_entry(&t->shards[k], at);
            return true;
        }
        before += count;
    }
    return false;
}

/* Finds a tensor of a GGUF file, which are sorted by name. */
static bool find_gguf(const weft__gguf *g, const char *name, size_t *entry) {
    size_t low = 0, high = weft__gguf_count(g);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(weft__gguf_tensor_at(g, middle)->name, name);
        if (order == 0) {
            *entry = middle;
            return true;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

bool weft__tensors_find(const weft__tensors *t, const char *name, weft__tensor_at *at) {
    size_t before = 0, entry;
    for (size_t k = 0; k < t->count; k++) {
        if (t->gguf ? find_gguf(t->gguf, name, &entry)
                    : weft_safetensors_find(t->shards[k].file, name, &entry))
            return weft__tensors_get(t, before + entry, at);
        before += shard_tensors(t, k);
    }
    return false;
}

/* Converts n elements to f32. */
static void to_f32(weft_dtype dtype, const void *from, int64_t n, float *out) {
    const uint16_t *half = from;
    switch (dtype) {
    case WEFT_F32: memcpy(out, from, (size_t)n * sizeof *out); break;
    case WEFT_BF16:
        for (int64_t i = 0; i < n; i++) out[i] = weft_bf16_to_f32(half[i]);
        break;
    case WEFT_F16:
        for (int64_t i = 0; i < n; i++) out[i] = weft_f16_to_f32(half[i]);
        break;
    default:
        for (int64_t i = 0; i < n; i++) out[i] = (float)weft__element(dtype, from, i);
    }
}

weft_status weft__tensors_rows(weft__tensors *t, const weft__tensor_at *at, int64_t first, int64_t count,
                               void *room, float *out) {
    int64_t n = count;
    weft_entry_info info;
    for (int i = 1; i < at->rank; i++) n *= at->shape[i];
    if (t->gguf) {
        const weft__gguf_tensor *tensor = weft__gguf_tensor_at(t->gguf, at->entry);
        weft__block_unpack(tensor->type, tensor->data + (size_t)first * at->row_bytes, n, out);
        return WEFT_OK;
    }
    weft_safetensors_entry(t->shards[at->shard].file, at->entry, &info);
    WEFT_TRY(weft_safetensors_read(t->shards[at->shard].file, at->entry, (size_t)first * at->row_bytes, room,
                                   (size_t)count * at->row_bytes));
    to_f32(info.dtype, room, n, out);
    return WEFT_OK;
}

/* ---- checksum ---- */

/* Adds the bytes of a tensor of a safetensors file, through `room`, which holds a piece. */
static weft_status sum_entry(const weft__tensors *t, const weft__tensor_at *at, char *room, weft__sum *sum) {
    weft_entry_info info;
    weft_safetensors_entry(t->shards[at->shard].file, at->entry, &info);
    for (size_t from = 0; from < info.bytes; from += WEFT__SUM_PIECE) {
        const size_t left = info.bytes - from, piece = left < WEFT__SUM_PIECE ? left : WEFT__SUM_PIECE;
        WEFT_TRY(weft_safetensors_read(t->shards[at->shard].file, at->entry, from, room, piece));
        weft__sum_piece(sum, room, piece);
    }
    return WEFT_OK;
}

static weft_status sum_all(const weft__tensors *t, char *room, weft__sum *sum) {
    weft__tensor_at at;
    for (size_t i = 0; weft__tensors_get(t, i, &at); i++) {
        weft__sum_piece(sum, at.name, strlen(at.name));
        weft__sum_piece(sum, at.dtype, strlen(at.dtype));
        if (t->gguf) {
            const weft__gguf_tensor *tensor = weft__gguf_tensor_at(t->gguf, at.entry);
            const size_t rows = tensor->rank > 0 ? (size_t)tensor->shape[0] : 1;
            weft__sum_all(sum, tensor->data, rows * at.row_bytes);
        } else {
            WEFT_TRY(sum_entry(t, &at, room, sum));
        }
    }
    return WEFT_OK;
}

weft_status weft__tensors_sum(weft_context *ctx, const char *path, char out[WEFT__SUM_TEXT]) {
    weft__tensors *t;
    weft__sum sum;
    WEFT_TRY(weft__tensors_open(ctx, path, &t));
    char *room = weft__alloc(ctx, WEFT__SUM_PIECE);
    weft__sum_init(&sum);
    const weft_status status =
        room ? sum_all(t, room, &sum) : weft__fail_oom(ctx, WEFT__SUM_PIECE, "a piece of a tensor");
    if (status == WEFT_OK) weft__sum_text(&sum, out);
    weft__free(ctx, room);
    weft__tensors_close(t);
    return status;
}
