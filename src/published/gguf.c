/* Reads the header of a GGUF file. Every number of the file is checked before it is used. Must not know:
 * architectures. Read next: gguf_config.c. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "published/gguf.h"

#define TENSORS_MAX 1000000
#define KEYS_MAX    100000
#define NAME_MAX_   1024 /* bytes of a key or of a name */

typedef struct gguf_key {
    const char *name; /* without a NUL */
    size_t bytes;
    weft__gguf_value value;
} gguf_key;

struct weft__gguf {
    weft_context *ctx;
    const char *path; /* while the file is opened */
    const uint8_t *data, *at, *end;
    void *map; /* NULL: the bytes belong to the caller */
    size_t map_bytes;
    gguf_key *keys;
    weft__gguf_tensor *tensors;
    size_t key_count, tensor_count;
};

static weft_status gguf_fail(const weft__gguf *g, const char *what) {
    return weft__fail(g->ctx, WEFT_ERR_FORMAT, "%s: byte %zu: %s", g->path, (size_t)(g->at - g->data), what);
}

/* ---- numbers ---- */

static const uint8_t kind_bytes[WEFT__GGUF_KINDS] = {
    [WEFT__GGUF_U8] = 1,  [WEFT__GGUF_I8] = 1,  [WEFT__GGUF_U16] = 2, [WEFT__GGUF_I16] = 2,
    [WEFT__GGUF_U32] = 4, [WEFT__GGUF_I32] = 4, [WEFT__GGUF_F32] = 4, [WEFT__GGUF_BOOL] = 1,
    [WEFT__GGUF_U64] = 8, [WEFT__GGUF_I64] = 8, [WEFT__GGUF_F64] = 8,
};

/* An unsigned number, little-endian. */
static uint64_t unsigned_at(const uint8_t *at, int bytes) {
    uint64_t number = 0;
    for (int i = bytes; i-- > 0;) number = number << 8 | at[i];
    return number;
}

static bool take(weft__gguf *g, int bytes, uint64_t *number) {
    if (g->end - g->at < bytes) return false;
    *number = unsigned_at(g->at, bytes);
    g->at += bytes;
    return true;
}

/* Moves over a text, a length and its bytes. */
static bool take_text(const uint8_t **at, const uint8_t *end, const char **text, size_t *bytes) {
    if (end - *at < 8) return false;
    const uint64_t length = unsigned_at(*at, 8);
    if (length > (uint64_t)(end - *at) - 8) return false;
    *text = (const char *)*at + 8;
    *bytes = (size_t)length;
    *at += 8 + length;
    return true;
}

bool weft__gguf_number(weft__gguf_value *value, double *number) {
    const int bytes = kind_bytes[value->kind];
    if (bytes == 0 || value->end - value->data < bytes) return false;
    const uint64_t raw = unsigned_at(value->data, bytes);
    const int shift = 64 - 8 * bytes;
    float single;
    value->data += bytes;
    switch (value->kind) {
    case WEFT__GGUF_I8:
    case WEFT__GGUF_I16:
    case WEFT__GGUF_I32:
    case WEFT__GGUF_I64: *number = (double)((int64_t)(raw << shift) >> shift); return true;
    case WEFT__GGUF_F32:
        memcpy(&single, &(uint32_t){(uint32_t)raw}, sizeof single);
        *number = (double)single;
        return true;
    case WEFT__GGUF_F64: memcpy(number, &raw, sizeof *number); return true;
    default: *number = (double)raw; return true;
    }
}

bool weft__gguf_text(weft__gguf_value *value, const char **text, size_t *bytes) {
    return value->kind == WEFT__GGUF_TEXT && take_text(&value->data, value->end, text, bytes);
}

/* ---- metadata ---- */

/* Takes the elements of a value whose kind and count are known. */
static weft_status take_elements(weft__gguf *g, weft__gguf_value *value) {
    const char *text;
    size_t bytes;
    value->data = g->at;
    if (value->kind != WEFT__GGUF_TEXT) {
        if (value->count > (uint64_t)(g->end - g->at) / kind_bytes[value->kind])
            return gguf_fail(g, "the file ends inside a value");
        g->at += value->count * kind_bytes[value->kind];
    }
    for (uint64_t i = 0; value->kind == WEFT__GGUF_TEXT && i < value->count; i++)
        if (!take_text(&g->at, g->end, &text, &bytes)) return gguf_fail(g, "the file ends inside a text");
    value->end = g->at;
    return WEFT_OK;
}

static weft_status take_key(weft__gguf *g, gguf_key *key) {
    uint64_t kind;
    if (!take_text(&g->at, g->end, &key->name, &key->bytes) || key->bytes == 0 || key->bytes > NAME_MAX_)
        return gguf_fail(g, "a key is empty, too long, or cut off");
    if (!take(g, 4, &kind)) return gguf_fail(g, "the file ends inside the metadata");
    key->value = (weft__gguf_value){.count = 1, .array = kind == WEFT__GGUF_ARRAY};
    if (key->value.array && (!take(g, 4, &kind) || !take(g, 8, &key->value.count)))
        return gguf_fail(g, "the file ends inside an array");
    if (kind >= WEFT__GGUF_KINDS || kind == WEFT__GGUF_ARRAY)
        return gguf_fail(g, "a value has an unknown type, or is an array of arrays");
    key->value.kind = (weft__gguf_kind)kind;
    return take_elements(g, &key->value);
}

bool weft__gguf_key(const weft__gguf *g, size_t i, const char **name, size_t *bytes,
                    weft__gguf_value *value) {
    if (i >= g->key_count) return false;
    *name = g->keys[i].name;
    *bytes = g->keys[i].bytes;
    *value = g->keys[i].value;
    return true;
}

bool weft__gguf_find(const weft__gguf *g, const char *key, weft__gguf_value *value) {
    const size_t bytes = strlen(key);
    for (size_t i = 0; i < g->key_count; i++)
        if (g->keys[i].bytes == bytes && memcmp(g->keys[i].name, key, bytes) == 0) {
            *value = g->keys[i].value;
            return true;
        }
    return false;
}

/* ---- tensors ---- */

static weft_status fail_type(const weft__gguf *g, const char *name, uint64_t type) {
    char known[256];
    weft__block_names(known, sizeof known);
    return weft__fail(g->ctx, WEFT_ERR_FORMAT,
                      "%s: tensor '%.120s' has the type %" PRIu64
                      ", which Weft does not read: convert the file to one of %s",
                      g->path, name, type, known);
}

/* Takes the shape of a tensor and computes its bytes. */
static weft_status take_shape(weft__gguf *g, weft__gguf_tensor *t, uint64_t *type) {
    uint64_t rank, extent;
    if (!take(g, 4, &rank) || rank < 1 || rank > 4) return gguf_fail(g, "a tensor has no rank from 1 to 4");
    t->rank = (int)rank;
    for (int i = t->rank; i-- > 0;) {
        if (!take(g, 8, &extent) || extent < 1 || extent > INT32_MAX)
            return gguf_fail(g, "an extent of a tensor is 0 or too large");
        t->shape[i] = (int64_t)extent;
    }
    return take(g, 4, type) ? WEFT_OK : gguf_fail(g, "the file ends inside a tensor's description");
}

static weft_status take_tensor(weft__gguf *g, weft__gguf_tensor *t, uint64_t *offset) {
    const char *name;
    size_t bytes;
    uint64_t type = 0;
    if (!take_text(&g->at, g->end, &name, &bytes) || bytes == 0 || bytes > NAME_MAX_ ||
        memchr(name, 0, bytes))
        return gguf_fail(g, "a tensor's name is empty, too long, or cut off");
    t->name = weft__alloc(g->ctx, bytes + 1);
    if (!t->name) return weft__fail_oom(g->ctx, bytes, "a name");
    memcpy(t->name, name, bytes);
    t->name[bytes] = '\0';
    WEFT_TRY(take_shape(g, t, &type));
    t->type = type <= UINT32_MAX ? weft__block_find((uint32_t)type) : NULL;
    if (!t->type) return fail_type(g, t->name, type);
    const int64_t columns = t->shape[t->rank - 1];
    if (columns % t->type->elements)
        return gguf_fail(g, "the rows of a tensor are no whole number of blocks");
    t->row_bytes = (size_t)(columns / t->type->elements) * t->type->bytes;
    return take(g, 8, offset) ? WEFT_OK : gguf_fail(g, "the file ends inside a tensor's description");
}

/* Sets where the data of a tensor is. `data` is where all data begin. */
static weft_status place_tensor(const weft__gguf *g, weft__gguf_tensor *t, const uint8_t *data,
                                uint64_t offset) {
    int64_t bytes = (int64_t)t->row_bytes;
    bool fits = true;
    for (int i = 0; i + 1 < t->rank; i++) fits = fits && weft__mul(bytes, t->shape[i], &bytes);
    const uint64_t room = data <= g->end ? (uint64_t)(g->end - data) : 0;
    fits = fits && offset <= room && (uint64_t)bytes <= room - offset;
    if (!fits)
        return weft__fail(g->ctx, WEFT_ERR_FORMAT,
                          "%s: tensor '%.120s' does not end within the file: the file is cut off or damaged",
                          g->path, t->name);
    t->data = data + offset;
    return WEFT_OK;
}

static int compare_tensors(const void *a, const void *b) {
    return strcmp(((const weft__gguf_tensor *)a)->name, ((const weft__gguf_tensor *)b)->name);
}

static weft_status read_tensors(weft__gguf *g, size_t count) {
    weft__gguf_value value;
    double alignment = 32;
    uint64_t *offsets = weft__array(g->ctx, count + 1, sizeof *offsets);
    g->tensors = weft__zalloc(g->ctx, (count + 1) * sizeof *g->tensors);
    weft_status status = offsets && g->tensors ? WEFT_OK : weft__fail_oom(g->ctx, count, "a list of tensors");
    for (size_t i = 0; status == WEFT_OK && i < count; i++) {
        g->tensor_count = i + 1;
        status = take_tensor(g, &g->tensors[i], &offsets[i]);
    }
    if (status == WEFT_OK && weft__gguf_find(g, "general.alignment", &value) &&
        (!weft__gguf_number(&value, &alignment) || !(alignment >= 1 && alignment <= 1 << 20)))
        status = gguf_fail(g, "general.alignment is not from 1 to 1048576");
    if (status == WEFT_OK) {
        const size_t step = (size_t)alignment, header = (size_t)(g->at - g->data);
        const size_t begin = (header + step - 1) / step * step, whole = (size_t)(g->end - g->data);
        for (size_t i = 0; status == WEFT_OK && i < count; i++)
            status = place_tensor(g, &g->tensors[i], g->data + weft__smaller((int64_t)begin, (int64_t)whole),
                                  offsets[i]);
    }
    weft__free(g->ctx, offsets);
    if (status != WEFT_OK) return status;
    qsort(g->tensors, count, sizeof *g->tensors, compare_tensors);
    for (size_t i = 1; i < count; i++)
        if (compare_tensors(&g->tensors[i - 1], &g->tensors[i]) == 0)
            return weft__fail(g->ctx, WEFT_ERR_FORMAT, "%s: two tensors are named '%.120s'", g->path,
                              g->tensors[i].name);
    return WEFT_OK;
}

size_t weft__gguf_count(const weft__gguf *g) { return g->tensor_count; }

const weft__gguf_tensor *weft__gguf_tensor_at(const weft__gguf *g, size_t i) {
    return i < g->tensor_count ? &g->tensors[i] : NULL;
}

/* ---- opening ---- */

static weft_status read_header(weft__gguf *g) {
    uint64_t magic, version, tensors, keys;
    if (!take(g, 4, &magic) || magic != 0x46554747) /* "GGUF" */
        return weft__fail(g->ctx, WEFT_ERR_FORMAT, "%s: this is no GGUF file: it does not begin with GGUF",
                          g->path);
    if (!take(g, 4, &version) || version < 2 || version > 3)
        return gguf_fail(g, "Weft reads versions 2 and 3 of GGUF, little-endian");
    if (!take(g, 8, &tensors) || !take(g, 8, &keys) || tensors > TENSORS_MAX || keys > KEYS_MAX)
        return gguf_fail(g, "the number of tensors or of keys is too large");
    if (tensors > (uint64_t)(g->end - g->at) / 24 || keys > (uint64_t)(g->end - g->at) / 12)
        return gguf_fail(g, "the file is too short for its tensors and keys");
    g->keys = weft__array(g->ctx, (size_t)keys + 1, sizeof *g->keys);
    if (!g->keys) return weft__fail_oom(g->ctx, (size_t)keys * sizeof *g->keys, "a list of keys");
    for (; g->key_count < keys; g->key_count++) WEFT_TRY(take_key(g, &g->keys[g->key_count]));
    return read_tensors(g, (size_t)tensors);
}

void weft__gguf_close(weft__gguf *g) {
    if (!g) return;
    for (size_t i = 0; i < g->tensor_count; i++) weft__free(g->ctx, g->tensors[i].name);
    weft__free(g->ctx, g->tensors);
    weft__free(g->ctx, g->keys);
    if (g->map) munmap(g->map, g->map_bytes);
    weft__free(g->ctx, g);
}

/* Opens bytes that *g gets: data, end and, if they are mapped, map. */
static weft_status gguf_open(weft_context *ctx, const weft__gguf *from, weft__gguf **out) {
    weft__gguf *g = weft__zalloc(ctx, sizeof *g);
    *out = NULL;
    if (!g) {
        if (from->map) munmap(from->map, from->map_bytes);
        return weft__fail_oom(ctx, sizeof *g, "a file");
    }
    *g = *from;
    g->ctx = ctx;
    g->at = g->data;
    const weft_status status = read_header(g);
    if (status == WEFT_OK)
        *out = g;
    else
        weft__gguf_close(g);
    return status;
}

weft_status weft__gguf_open_memory(weft_context *ctx, const char *name, const void *data, size_t bytes,
                                   weft__gguf **out) {
    const uint8_t *begin = data;
    return gguf_open(ctx, &(weft__gguf){.path = name, .data = begin, .end = begin + bytes}, out);
}

weft_status weft__gguf_open(weft_context *ctx, const char *path, weft__gguf **out) {
    struct stat file;
    *out = NULL;
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &file) != 0) {
        const weft_status status = weft__fail(ctx, WEFT_ERR_IO, "%s: %s", path, strerror(errno));
        if (fd >= 0) close(fd);
        return status;
    }
    void *map = S_ISREG(file.st_mode) && file.st_size > 0
                    ? mmap(NULL, (size_t)file.st_size, PROT_READ, MAP_SHARED, fd, 0)
                    : MAP_FAILED;
    close(fd);
    if (map == MAP_FAILED)
        return weft__fail(ctx, WEFT_ERR_IO, "%s: this is an empty file, or none that can be mapped", path);
    const weft__gguf opened = {.path = path,
                               .data = map,
                               .end = (const uint8_t *)map + file.st_size,
                               .map = map,
                               .map_bytes = (size_t)file.st_size};
    return gguf_open(ctx, &opened, out);
}
