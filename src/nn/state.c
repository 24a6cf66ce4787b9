/* Tensors in files: entries that read device memory when they are written, strict loading, and copies between
 * modules.
 * Must not know: the file format, see <weft/io.h>. Read next: use.c, io/. */
#include <string.h>

#include "io/safetensors.h"
#include "nn/module.h"

/* ---- writing ---- */

/* A tensor that is being written. Its values are fetched with the first bytes and freed after the last. */
typedef struct source {
    weft_tensor *tensor;
    char *data;
    size_t bytes;
} source;

static weft_status read_source(void *user, size_t offset, void *out, size_t bytes) {
    source *s = user;
    weft_context *ctx = s->tensor->ctx;
    if (!s->data) {
        s->data = weft__alloc(ctx, s->bytes + 1);
        if (!s->data) return weft__fail_oom(ctx, s->bytes, "a tensor to be written");
        weft_status status = weft_read(s->tensor, s->data, s->bytes);
        if (status != WEFT_OK) {
            weft__free(ctx, s->data);
            s->data = NULL;
            return status;
        }
    }
    if (offset > s->bytes || bytes > s->bytes - offset)
        return weft__fail(ctx, WEFT_ERR_INTERNAL, "an entry was read past its end");
    memcpy(out, s->data + offset, bytes);
    if (offset + bytes == s->bytes) {
        weft__free(ctx, s->data);
        s->data = NULL;
    }
    return WEFT_OK;
}

weft_status weft_entries_new(weft_context *ctx, const weft_named_tensor *tensors, size_t count,
                             weft_entry **entries) {
    WEFT_NEED(ctx, entries);
    *entries = NULL;
    WEFT_NEED_ARRAY(ctx, tensors, count);
    for (size_t i = 0; i < count; i++) {
        WEFT_TRY(weft_tensor_status(tensors[i].tensor));
        if (!tensors[i].name)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_entries_new: tensor %zu has no name", i);
    }
    weft_entry *list = weft__array(ctx, count + 1, sizeof *list);
    source *sources = weft__array(ctx, count + 1, sizeof *sources);
    if (!list || !sources) {
        weft__free(ctx, list);
        weft__free(ctx, sources);
        return weft__fail_oom(ctx, (count + 1) * sizeof *list, "a list of entries");
    }
    list[count].user = sources; /* the element after the last entry holds the memory to free */
    for (size_t i = 0; i < count; i++) {
        weft_tensor *t = tensors[i].tensor;
        sources[i] = (source){t, NULL, (size_t)t->numel * weft_dtype_size(weft_dtype_of(t))};
        list[i] = (weft_entry){.name = tensors[i].name,
                               .dtype = weft_dtype_of(t),
                               .rank = t->rank,
                               .shape = t->rank ? t->shape : NULL,
                               .read = read_source,
                               .user = &sources[i],
                               .part = tensors[i].part,
                               .together = t->leaf == WEFT_LEAF_STORAGE && t->storage->divided};
    }
    *entries = list;
    return WEFT_OK;
}

void weft_entries_free(weft_context *ctx, weft_entry *entries, size_t count) {
    if (!entries) return;
    for (count = 0; entries[count].name;) count++; /* the list marks its own end */
    source *sources = entries[count].user;
    for (size_t i = 0; i < count; i++) weft__free(ctx, sources[i].data);
    weft__free(ctx, sources);
    weft__free(ctx, entries);
}

/* ---- reading ---- */

/* Finds the entry of a tensor and checks its dtype and shape. With `round`, bf16 and f16 tensors also accept
 * f32. */
static weft_status check_entry(weft_context *ctx, const weft_named_tensor *named, weft_safetensors *file,
                               bool round, const char *what, size_t *at, weft_entry_info *info) {
    const weft_tensor *t = named->tensor;
    if (!weft_safetensors_find(file, named->name, at) || !weft_safetensors_entry(file, *at, info))
        return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %s: the file has no entry '%s'",
                          weft__safetensors_path(file), what, named->name);
    char in_file[WEFT_SHAPE_TEXT], wanted[WEFT_SHAPE_TEXT];
    const weft_dtype dtype = weft_dtype_of(t);
    const int rank = named->part ? named->part->rank : t->rank;
    const int64_t *shape = named->part ? named->part->shape : t->shape;
    bool rounded = round && info->dtype == WEFT_F32 && (dtype == WEFT_BF16 || dtype == WEFT_F16);
    bool same = (info->dtype == dtype || rounded) && info->rank == rank;
    for (int i = 0; same && i < rank; i++) same = info->shape[i] == shape[i];
    if (same) return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s: %s: entry '%s' is %s %s in the file, and %s %s here",
                      weft__safetensors_path(file), what, named->name, weft_dtype_name(info->dtype),
                      weft__shape_text(info->rank, info->shape, in_file), weft_dtype_name(dtype),
                      weft__shape_text(rank, shape, wanted));
}

/* Fails if the file has an entry that no tensor asked for, and names it. */
static weft_status check_superfluous(weft_context *ctx, const weft_named_tensor *tensors, size_t count,
                                     weft_safetensors *file, const char *what) {
    size_t n = weft_safetensors_count(file);
    if (n == count) return WEFT_OK; /* all were found, and names are unique */
    for (size_t i = 0; i < n; i++) {
        weft_entry_info info;
        bool wanted = false;
        if (!weft_safetensors_entry(file, i, &info)) continue;
        for (size_t j = 0; j < count && !wanted; j++) wanted = strcmp(info.name, tensors[j].name) == 0;
        if (!wanted)
            return weft__fail(ctx, WEFT_ERR_FORMAT,
                              "%s: %s: the file has %zu entries more than expected, such as '%s'",
                              weft__safetensors_path(file), what, n - count, info.name);
    }
    return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: two tensors have the same name", what);
}

/* The bytes of an entry that a tensor takes. */
static size_t entry_bytes(const weft_named_tensor *named, const weft_entry_info *info) {
    return (size_t)named->tensor->numel * weft_dtype_size(info->dtype);
}

/* Reads an entry into its tensor through a buffer that is large enough for it. */
static weft_status load_entry(const weft_named_tensor *named, weft_safetensors *file, size_t at,
                              const weft_entry_info *info, char *buffer) {
    weft_tensor *t = named->tensor;
    size_t bytes = entry_bytes(named, info);
    const size_t offset = named->part ? (size_t)named->part->from * weft_dtype_size(info->dtype) : 0;
    WEFT_TRY(weft_safetensors_read(file, at, offset, buffer, bytes));
    if (info->dtype != weft_dtype_of(t)) { /* f32 to bf16 or f16, in place */
        const float *from = (const float *)(const void *)buffer;
        uint16_t *to = (uint16_t *)(void *)buffer;
        bytes = (size_t)t->numel * sizeof *to;
        for (int64_t i = 0; i < t->numel; i++) {
            float value;
            memcpy(&value, from + i, sizeof value);
            uint16_t rounded = t->dtype == WEFT_F16 ? weft_f32_to_f16(value) : weft_f32_to_bf16(value);
            memcpy(to + i, &rounded, sizeof rounded);
        }
    }
    return weft_write(t, buffer, bytes);
}

/* `elsewhere`: [count] tensors that are checked but not loaded; NULL: none. */
static weft_status load_entries(weft_context *ctx, const weft_named_tensor *tensors, const bool *elsewhere,
                                size_t count, weft_safetensors *file, bool round, const char *what) {
    size_t at, most = 0;
    weft_entry_info info;
    if (!what) what = "loading";
    for (size_t i = 0; i < count; i++) {
        WEFT_TRY(weft_tensor_status(tensors[i].tensor));
        if (!tensors[i].name)
            return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: tensor %zu has no name", what, i);
        WEFT_TRY(check_entry(ctx, &tensors[i], file, round, what, &at, &info));
        if (entry_bytes(&tensors[i], &info) > most) most = entry_bytes(&tensors[i], &info);
    }
    WEFT_TRY(check_superfluous(ctx, tensors, count, file, what));
    char *buffer = weft__alloc(ctx, most + 1);
    if (!buffer) return weft__fail_oom(ctx, most, "an entry of a file");
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && i < count; i++) {
        if (elsewhere && elsewhere[i]) continue;
        status = check_entry(ctx, &tensors[i], file, round, what, &at, &info);
        if (status == WEFT_OK) status = load_entry(&tensors[i], file, at, &info, buffer);
    }
    weft__free(ctx, buffer);
    return status;
}

weft_status weft_entries_load(weft_context *ctx, const weft_named_tensor *tensors, size_t count,
                              weft_safetensors *file, const char *what) {
    WEFT_NEED_ARRAY(ctx, tensors, count);
    WEFT_NEED(ctx, file);
    return load_entries(ctx, tensors, NULL, count, file, false, what);
}

/* ---- modules ---- */

/* Whether training may change a parameter or buffer. */
static bool may_change(const weft_parameter_info *p) {
    int64_t rows, width;
    const weft__packing *packing = weft__packing_of(p->module, &rows, &width);
    const bool packed = packing && packing->count && weft_dtype_of(p->tensor) == WEFT_U8;
    return p->buffer ? !packed : !p->frozen;
}

/* Lists parameters and buffers of m with their names; `trained`: those that training may change. Free the
 * array with weft__free. */
static weft_status named_parameters(weft_module *m, bool trained, weft_named_tensor **list, size_t *count) {
    WEFT_TRY(weft_module_status(m));
    weft_parameter_info info;
    size_t n = weft_parameter_count(m);
    if (n == 0) WEFT_TRY(weft__module_use(m));
    *list = weft__array(m->ctx, n + 1, sizeof **list);
    if (!*list) return weft__fail_oom(m->ctx, n * sizeof **list, "a list of parameters");
    *count = 0;
    for (size_t i = 0; i < n && weft_parameter_get(m, i, &info); i++)
        if (!trained || may_change(&info))
            (*list)[(*count)++] = (weft_named_tensor){.name = info.name, .tensor = info.tensor};
    return WEFT_OK;
}

/* Tells which tensors of named_parameters belong to layers of another device. Free the array with weft__free.
 */
static weft_status list_elsewhere(weft_module *m, bool trained, size_t count, bool **elsewhere) {
    weft_parameter_info info;
    size_t n = 0;
    *elsewhere = weft__array(m->ctx, count + 1, sizeof **elsewhere);
    if (!*elsewhere) return weft__fail_oom(m->ctx, count + 1, "a list of parameters");
    for (size_t i = 0; n < count && weft_parameter_get(m, i, &info); i++)
        if (!trained || may_change(&info)) (*elsewhere)[n++] = weft__module_elsewhere(info.module);
    return WEFT_OK;
}

/* ---- from module to module ---- */

static weft_status check_pair(weft_context *ctx, const weft_named_tensor *to, const weft_named_tensor *from) {
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (strcmp(to->name, from->name) != 0)
        return weft__fail(ctx, WEFT_ERR_SHAPE, "weft_module_copy: cannot copy '%s' to '%s': the names differ",
                          from->name, to->name);
    if (weft__shape_equal(to->tensor, from->tensor) && to->tensor->dtype == from->tensor->dtype)
        return WEFT_OK;
    return weft__fail(ctx, WEFT_ERR_SHAPE, "weft_module_copy: '%s' is %s in the source, but %s in the target",
                      to->name, weft__tensor_text(from->tensor, b), weft__tensor_text(to->tensor, a));
}

static weft_status copy_all(weft_context *ctx, const weft_named_tensor *to, const weft_named_tensor *from,
                            size_t count) {
    size_t most = 0;
    for (size_t i = 0; i < count; i++) {
        const size_t bytes = (size_t)to[i].tensor->numel * weft_dtype_size((weft_dtype)to[i].tensor->dtype);
        WEFT_TRY(check_pair(ctx, &to[i], &from[i]));
        if (bytes > most) most = bytes;
    }
    void *values = weft__alloc(ctx, most + 1);
    weft_status status = values ? WEFT_OK : weft__fail_oom(ctx, most, "weft_module_copy: a parameter");
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        const size_t bytes = (size_t)to[i].tensor->numel * weft_dtype_size((weft_dtype)to[i].tensor->dtype);
        status = weft_read(from[i].tensor, values, bytes);
        if (status != WEFT_OK)
            weft__fail(ctx, status, "weft_module_copy: %s", weft_last_error(from[i].tensor->ctx));
        else
            status = weft_write(to[i].tensor, values, bytes);
    }
    weft__free(ctx, values);
    return status;
}

weft_status weft_module_copy(weft_module *to, weft_module *from) {
    WEFT_NEED(NULL, to);
    WEFT_NEED(to->ctx, from);
    weft_named_tensor *a = NULL, *b = NULL;
    size_t n_a = 0, n_b = 0;
    WEFT_TRY(weft_module_status(to));
    WEFT_TRY(weft_module_status(from));
    weft_status status = named_parameters(to, false, &a, &n_a);
    if (status == WEFT_OK && (status = named_parameters(from, false, &b, &n_b)) != WEFT_OK)
        weft__fail(to->ctx, status, "weft_module_copy: %s", weft_last_error(from->ctx));
    if (status == WEFT_OK && n_a != n_b)
        status = weft__fail(to->ctx, WEFT_ERR_SHAPE,
                            "weft_module_copy: cannot copy %zu parameters and buffers to %zu", n_b, n_a);
    if (status == WEFT_OK) status = copy_all(to->ctx, a, b, n_a);
    weft__free(to->ctx, a);
    weft__free(from->ctx, b);
    return status;
}

static weft_status module_entries(weft_module *m, bool trained, weft_entry **entries, size_t *count) {
    WEFT_NEED(m->ctx, entries);
    WEFT_NEED(m->ctx, count);
    weft_named_tensor *list = NULL;
    WEFT_TRY(named_parameters(m, trained, &list, count));
    weft_status status = weft_entries_new(m->ctx, list, *count, entries);
    weft__free(m->ctx, list);
    return status;
}

weft_status weft_module_entries(weft_module *m, weft_entry **entries, size_t *count) {
    WEFT_NEED(NULL, m);
    return module_entries(m, false, entries, count);
}

weft_status weft_module_entries_trained(weft_module *m, weft_entry **entries, size_t *count) {
    WEFT_NEED(NULL, m);
    return module_entries(m, true, entries, count);
}

weft_status weft_module_save(weft_module *m, const char *path) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, path);
    weft_entry *entries = NULL;
    size_t count = 0;
    WEFT_TRY(weft_module_entries(m, &entries, &count));
    weft_status status = weft_safetensors_write(m->ctx, path, entries, count, NULL, 0);
    weft_entries_free(m->ctx, entries, count);
    return status;
}

/* Undoes a first use after a failed load. The next use draws the overwritten values again. */
static void unuse(weft_module *m) {
    m->used = false;
    for (size_t i = 0; i < m->n_parameters; i++) {
        weft_free(m->parameters[i].variable);
        m->parameters[i].variable = NULL;
    }
    for (size_t i = 0; i < m->n_children; i++) unuse(m->children[i]);
}

static weft_status load_module(weft_module *m, weft_safetensors *file, bool trained, bool round) {
    WEFT_TRY(weft_module_status(m));
    weft_module *root = weft__module_root(m);
    bool fresh = !root->used && root == m;
    WEFT_TRY(weft__module_use(m));
    weft_named_tensor *list = NULL;
    size_t count = 0;
    weft_status status = named_parameters(m, trained, &list, &count);
    bool *elsewhere = NULL;
    if (status == WEFT_OK) status = list_elsewhere(m, trained, count, &elsewhere);
    if (status == WEFT_OK) status = load_entries(m->ctx, list, elsewhere, count, file, round, m->kind);
    weft__free(m->ctx, elsewhere);
    weft__free(m->ctx, list);
    if (status != WEFT_OK && fresh) unuse(m);
    return status;
}

weft_status weft_module_load_from(weft_module *m, weft_safetensors *file) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, file);
    return load_module(m, file, false, false);
}

weft_status weft_module_load_trained(weft_module *m, weft_safetensors *file) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, file);
    return load_module(m, file, true, false);
}

weft_status weft_module_load_rounded(weft_module *m, weft_safetensors *file) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, file);
    return load_module(m, file, false, true);
}

weft_status weft_module_load(weft_module *m, const char *path) {
    WEFT_NEED(NULL, m);
    WEFT_NEED(m->ctx, path);
    WEFT_TRY(weft_module_status(m));
    weft_safetensors *file = NULL;
    WEFT_TRY(weft_safetensors_open(m->ctx, path, &file));
    weft_status status = weft_module_load_from(m, file);
    weft_safetensors_close(file);
    return status;
}
