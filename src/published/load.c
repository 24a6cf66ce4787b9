/* Makes the module of a published model, and fills it with the weights of the files. One parameter after the
 * other is assembled in memory from blocks of rows. Must not know: training. Read next: save.c. */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "nn/module.h"
#include "published/packed.h"

#define CONTEXT_MOST 4096 /* of the default: caches and tables of more tokens take much memory */
#define BLOCK_BYTES  ((int64_t)1 << 20) /* of the rows that are read at once */

/* ---- the module ---- */

static bool begins_as_gguf(const char *path) {
    char magic[4] = "";
    FILE *file = fopen(path, "rb");
    const bool is =
        file && fread(magic, 1, sizeof magic, file) == sizeof magic && memcmp(magic, "GGUF", 4) == 0;
    if (file) fclose(file);
    return is;
}

bool weft_published_is(const char *folder) {
    char path[4096];
    if (!folder) return false;
    if (weft__is_gguf(folder)) return begins_as_gguf(folder);
    return weft__join(path, sizeof path, folder, "config.json") && access(path, R_OK) == 0;
}

/* Of a module that could not be made. Never called, since the module is poisoned. */
static weft_tensor *unmade_forward(weft_module *m, weft_tensor *x) {
    (void)m;
    return x;
}

static void free_tensor(void *tensor) { weft_free(tensor); }

/* Makes the gpt, which owns the divisors of its positions, if there are any. */
static weft_module *new_gpt(weft_context *ctx, weft__published *p) {
    if (weft__longrope_count(p) == 0) return weft_nn_gpt(ctx, &p->gpt);
    weft_tensor *divisors = weft__longrope_divisors(ctx, p, p->gpt.context);
    p->gpt.rotation.scaling.divisors = divisors;
    weft_module *m = weft_nn_gpt(ctx, &p->gpt);
    /* a hook of the root would say that an optimizer or a cache uses the gpt */
    weft_module *owner = m->n_children ? m->children[0] : m;
    const weft_status status = weft_module_on_free(owner, free_tensor, divisors);
    if (status == WEFT_OK) return m;
    weft_free(divisors);
    return m->error ? m : weft__module_poison(m, status, "%s", weft_last_error(ctx));
}

weft_module *weft_published_new(weft_context *ctx, const char *folder,
                                const weft_published_options *options) {
    if (!ctx) return weft__module_without_context(__func__);
    const weft_published_options o = options ? *options : (weft_published_options){0};
    weft__published p;
    weft_status status = folder ? weft__published_read(ctx, folder, &p)
                                : weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_published_new: folder is NULL");
    if (status != WEFT_OK) {
        weft_module *m = weft__module_make(ctx, "published", unmade_forward, 0);
        return m->error ? m : weft__module_poison(m, status, "%s", weft_last_error(ctx));
    }
    if (p.encodes) {
        p.encoder.context = o.context ? o.context : p.context;
        p.encoder.dropout = o.dropout;
        p.encoder.dtype = o.dtype;
        if (o.labels) p.encoder.labels = o.labels;
        p.encoder.classifies = o.labels > 0;
        return weft_nn_encoder(ctx, &p.encoder);
    }
    p.gpt.context = o.context ? o.context : weft__smaller(p.context, CONTEXT_MOST);
    p.gpt.dropout = o.dropout;
    p.gpt.head_chunks = o.head_chunks;
    p.gpt.dtype = o.dtype;
    weft_module *m = new_gpt(ctx, &p);
    if (o.labels)
        return weft__module_poison(m, WEFT_ERR_ARGUMENT,
                                   "weft_published_new: labels: a model of type %s is no encoder",
                                   p.architecture->type);
    if (!o.packed || m->error) return m;
    status = weft__published_pack(&p, folder, m);
    return status == WEFT_OK ? m : weft__module_poison(m, status, "%s", weft_last_error(ctx));
}

/* ---- the weights ---- */

typedef struct weft__weights {
    weft_context *ctx;
    weft__published model;
    weft__tensors *tensors;
    const char *folder;
    bool keeps_head;   /* the last layer of a classifier is that of the files */
    bool new_head;     /* layers of the head may stay random */
    char *room, *rows; /* rows as they are in a file, and as f32; both grow */
    size_t room_bytes, rows_bytes;
} loading;

/* Finds a tensor and checks its shape and, for a packed weight, its format. */
static weft_status find_checked(const loading *l, const weft__placed *placed, const weft_parameter_info *p,
                                weft__tensor_at *at) {
    char there[WEFT_SHAPE_TEXT], here[WEFT_SHAPE_TEXT];
    const weft_tensor *t = p->tensor;
    if (!weft__published_find(&l->model, l->tensors, placed, at))
        return weft__fail(l->ctx, WEFT_ERR_FORMAT, "%s: the files have no tensor '%s%s'", l->folder,
                          placed->bare ? "" : l->model.prefix, placed->name);
    const bool transposed = placed->part == WEFT__PART_TRANSPOSED, packed = t->dtype == WEFT_U8;
    int64_t all, width = t->rank > 1 ? t->shape[1] : 0, first;
    const weft__packing *packing = packed ? weft__packing_of(p->module, &all, &width) : NULL;
    if (packing && weft__packed_part_at(packing, placed->first, &first)->format != at->format)
        return weft__fail(l->ctx, WEFT_ERR_FORMAT,
                          "%s: '%s' is %s, but the module was made from a file in which it has another dtype",
                          at->path, at->name, at->dtype);
    int64_t want[2] = {placed->rows, width};
    if (transposed) want[0] = want[1], want[1] = placed->rows;
    bool fits = at->readable && at->rank == t->rank;
    fits = fits && (at->shape[0] == want[0] || (placed->part == WEFT__PART_FIRST && at->shape[0] > want[0]));
    if (fits && (t->rank == 1 || at->shape[1] == want[1])) return WEFT_OK;
    return weft__fail(l->ctx, WEFT_ERR_FORMAT, "%s: '%s' is %s %s, but by config.json it is %s", at->path,
                      at->name, at->dtype, weft__shape_text(at->rank, at->shape, there),
                      weft__shape_text(t->rank, want, here));
}

/* Whether a parameter stays random: of the head of a classifier, which the files lack or have for other
 * classes. */
static bool stays_random(const loading *l, const weft_parameter_info *p) {
    weft__placed placed[WEFT__PARTS];
    weft__tensor_at at;
    if (!l->new_head) return false;
    if (strncmp(p->name, "classifier.", 11) == 0) return !l->keeps_head;
    return strncmp(p->name, "pooler.", 7) == 0 && weft__published_names(&l->model, p, placed) == 1 &&
           !weft__published_find(&l->model, l->tensors, &placed[0], &at);
}

/* Whether a tensor of the files is not needed. */
static bool is_ignored(const loading *l, const char *name) {
    return weft__published_ignores(&l->model, name) ||
           (l->new_head &&
            (strncmp(name, "classifier.", 11) == 0 || strncmp(name, "pre_classifier.", 15) == 0));
}

/* Checks that all tensors of all parameters are there, and that no other tensor is. `used` has a zeroed byte
 * for each tensor. */
static weft_status check_all(const loading *l, weft_module *model, char *used) {
    weft_parameter_info p;
    weft__placed placed[WEFT__PARTS];
    weft__tensor_at at;
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++) {
        if (weft__published_added(&p) || stays_random(l, &p)) continue;
        const int count = weft__published_names(&l->model, &p, placed);
        if (count == 0)
            return weft__fail(l->ctx, WEFT_ERR_ARGUMENT,
                              "%s: a model of type %s has no parameter '%s': was this module made by "
                              "weft_published_new from this folder?",
                              l->folder, l->model.architecture->type, p.name);
        for (int j = 0; j < count; j++) {
            WEFT_TRY(find_checked(l, &placed[j], &p, &at));
            used[at.index] = 1;
        }
    }
    for (size_t i = 0; weft__tensors_get(l->tensors, i, &at); i++)
        if (!used[i] && !is_ignored(l, at.name))
            return weft__fail(l->ctx, WEFT_ERR_FORMAT,
                              "%s: '%s' is not a tensor of the model that config.json describes", at.path,
                              at.name);
    return WEFT_OK;
}

/* Makes room for n bytes. */
static weft_status load_reserve(weft_context *ctx, char **room, size_t *bytes, size_t n) {
    if (n <= *bytes) return WEFT_OK;
    weft__free(ctx, *room);
    *room = weft__alloc(ctx, n);
    *bytes = *room ? n : 0;
    return *room ? WEFT_OK : weft__fail_oom(ctx, n, "rows of a tensor");
}

/* Stores n numbers at elements from, from + step, ... of a parameter. */
static void load_store(weft_dtype dtype, char *to, int64_t from, int64_t step, const float *values,
                       int64_t n) {
    if (dtype == WEFT_F32 && step == 1) {
        memcpy((float *)(void *)to + from, values, (size_t)n * sizeof *values);
        return;
    }
    const size_t size = weft_dtype_size(dtype);
    for (int64_t i = 0; i < n; i++)
        weft__store_number(dtype, to + (size_t)(from + i * step) * size, values[i], 0);
}

/* Reads a tensor into its place in the parameter's values at `to`. */
static weft_status load_part(loading *l, const weft__placed *placed, const weft_parameter_info *p, char *to) {
    const weft_tensor *t = p->tensor;
    weft__tensor_at at;
    WEFT_TRY(find_checked(l, placed, p, &at));
    const bool transposed = placed->part == WEFT__PART_TRANSPOSED;
    const int64_t columns = at.rank > 1 ? at.shape[1] : 1, width = t->rank > 1 ? t->shape[1] : 1;
    const int64_t rows = transposed ? width : placed->rows;
    const int64_t row_bytes = (int64_t)at.row_bytes;
    const int64_t block = weft__smaller(weft__larger(BLOCK_BYTES / row_bytes, 1), rows);
    WEFT_TRY(load_reserve(l->ctx, &l->room, &l->room_bytes, (size_t)(block * row_bytes)));
    WEFT_TRY(load_reserve(l->ctx, &l->rows, &l->rows_bytes, (size_t)(block * columns) * sizeof(float)));
    float *values = (float *)(void *)l->rows;
    for (int64_t first = 0; first < rows; first += block) {
        const int64_t count = weft__smaller(block, rows - first);
        WEFT_TRY(weft__tensors_rows(l->tensors, &at, first, count, l->room, values));
        for (int64_t i = 0; placed->part == WEFT__PART_PLUS_ONE && i < count; i++) values[i] -= 1;
        for (int64_t r = 0; r < count; r++) {
            const int64_t row = weft__published_row(&l->model, placed, first + r);
            load_store((weft_dtype)t->dtype, to, transposed ? row : row * width, transposed ? width : 1,
                       values + r * columns, columns);
        }
    }
    return WEFT_OK;
}

weft_status weft__weights_read(weft__weights *l, const weft_parameter_info *p, void *values) {
    weft__placed placed[WEFT__PARTS];
    const int count = weft__published_names(&l->model, p, placed);
    for (int i = 0; i < count; i++) WEFT_TRY(load_part(l, &placed[i], p, values));
    return WEFT_OK;
}

static weft_status load_parameter(loading *l, const weft_parameter_info *p) {
    const size_t bytes = (size_t)p->tensor->numel * weft_dtype_size((weft_dtype)p->tensor->dtype);
    if (p->tensor->dtype == WEFT_U8) {
        weft__placed placed[WEFT__PARTS];
        const int count = weft__published_names(&l->model, p, placed);
        return weft__packed_load(&l->model, l->tensors, p->module, placed, count);
    }
    char *values = weft__alloc(l->ctx, bytes + 1);
    weft_status status = values ? WEFT_OK : weft__fail_oom(l->ctx, bytes, p->name);
    if (status == WEFT_OK) status = weft__weights_read(l, p, values);
    if (status == WEFT_OK) status = weft_write(p->tensor, values, bytes);
    weft__free(l->ctx, values);
    return status;
}

void weft__weights_close(weft__weights *l) {
    if (!l) return;
    weft__free(l->ctx, l->room);
    weft__free(l->ctx, l->rows);
    weft__tensors_close(l->tensors);
    weft__free(l->ctx, l);
}

/* Checks that the files have the weights of the module, and no others. */
static weft_status check_tensors(const loading *l, weft_module *model) {
    weft__tensor_at at;
    size_t count = 0;
    while (weft__tensors_get(l->tensors, count, &at)) count++;
    char *used = weft__zalloc(l->ctx, count + 1);
    const weft_status status =
        used ? check_all(l, model, used) : weft__fail_oom(l->ctx, count, "a list of tensors");
    weft__free(l->ctx, used);
    return status;
}

/* Decides which layers of the head of a classifier may stay random. */
static void choose_head(loading *l, const weft_module *model, bool body) {
    const weft_encoder_options *o = weft__encoder_options_of(model);
    l->new_head = o && o->classifies;
    l->keeps_head = !body && o && l->model.encoder.labels == o->labels;
}

/* `body`: the last layer of a classifier is not read. */
static weft_status weights_open(weft_module *model, const char *folder, bool body, weft__weights **out) {
    weft_context *ctx = model->ctx;
    loading *l = weft__zalloc(ctx, sizeof *l);
    *out = NULL;
    if (!l) return weft__fail_oom(ctx, sizeof *l, "the weights of a model");
    l->ctx = ctx;
    l->folder = folder;
    weft_status status = weft__published_read(ctx, folder, &l->model);
    if (status == WEFT_OK) status = weft__tensors_open(ctx, folder, &l->tensors);
    if (status == WEFT_OK) status = weft_module_prepare(model);
    if (status == WEFT_OK) choose_head(l, model, body);
    if (status == WEFT_OK) status = check_tensors(l, model);
    if (status == WEFT_OK)
        *out = l;
    else
        weft__weights_close(l);
    return status;
}

weft_status weft__weights_open(weft_module *model, const char *folder, weft__weights **out) {
    return weights_open(model, folder, false, out);
}

static weft_status load_all(weft_module *model, const char *folder, bool body) {
    weft_parameter_info p;
    weft__weights *l;
    WEFT_TRY(weft_module_status(model));
    WEFT_TRY(weights_open(model, folder, body, &l));
    weft_status status = WEFT_OK;
    for (size_t i = 0; status == WEFT_OK && weft_parameter_get(model, i, &p); i++)
        if (!weft__published_added(&p) && !stays_random(l, &p) && !weft__module_elsewhere(p.module))
            status = load_parameter(l, &p);
    weft__weights_close(l);
    return status;
}

weft_status weft_published_load(weft_module *model, const char *folder) {
    WEFT_NEED(NULL, model);
    WEFT_NEED(model->ctx, folder);
    return load_all(model, folder, false);
}

weft_status weft__published_load_body(weft_module *model, const char *folder) {
    return load_all(model, folder, true);
}
