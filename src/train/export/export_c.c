/* Exports a model as C source: chooses names and the place of the weights, and writes the files, all or none.
 * Must not know: what the source looks like (export_header.c, export_body.c). Read next: export_graph.c. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <weft/data.h>

#include "graph/graph.h"
#include "train/export/export_source.h"
#include "train/run/run_dir.h"

/* Weights in the source make it four times as long. A compiler needs seconds for this many. */
#define SOURCE_WEIGHTS ((int64_t)4 << 20)

/* ---- the arrays ---- */

static bool is(const weft_tensor *t, const weft_buffer *buffer) { return t && t->storage->buffer == buffer; }

/* Names a weight after its parameter. Constants of the normalization have no parameter. */
static void name_weight(const weft__export_source *s, int slot, char out[WEFT__EXPORT_NAME]) {
    weft_module *m = s->use->model.module;
    weft_parameter_info info = {.name = "constant"};
    const size_t count = weft_parameter_count(m);
    for (size_t i = 0; i < count; i++) {
        weft_parameter_info found;
        if (weft_parameter_get(m, i, &found) && found.tensor->storage->buffer == s->slots[slot].buffer)
            info = found;
    }
    for (size_t i = 0; i < s->graph.n_laid; i++)
        if (is(s->graph.laid[i].tensor, s->slots[slot].buffer)) info.name = s->graph.laid[i].name;
    snprintf(out, WEFT__EXPORT_NAME, "w%d_%.40s", slot, info.name);
    for (char *at = out; *at; at++)
        if (*at == '.' || *at == '-') *at = '_';
}

static bool is_state(const weft__export_graph *g, const weft_buffer *buffer, size_t *i) {
    for (*i = 0; *i < g->n_states; ++*i)
        if (g->states[*i]->storage->buffer == buffer) return true;
    return false;
}

/* Names the array of one slot, and counts its memory. */
static weft_status name_slot(weft__export_source *s, int i) {
    const weft__export_graph *g = &s->graph;
    const weft_c99_slot *slot = &s->slots[i];
    char *name = s->names[i];
    size_t state;
    if (!slot->buffer) return WEFT_OK;
    if (i == 0 || is_state(g, slot->buffer, &state)) {
        snprintf(name, WEFT__EXPORT_NAME, i == 0 ? "arena" : "state%d", i);
        s->memory += slot->bytes;
    } else if (is(g->input, slot->buffer)) {
        snprintf(name, WEFT__EXPORT_NAME, "in");
    } else if (is(g->output, slot->buffer)) {
        snprintf(name, WEFT__EXPORT_NAME, "out");
    } else if (is(g->position, slot->buffer)) {
        snprintf(name, WEFT__EXPORT_NAME, "position");
    } else if (!slot->written && (slot->dtypes == 1u << WEFT_F32 || slot->dtypes == 1u << WEFT_I32)) {
        name_weight(s, i, name);
        s->constant[i] = true;
        s->weights += slot->bytes;
    } else {
        return weft__fail(s->use->model.ctx, WEFT_ERR_INTERNAL, "export: array %d has no place in the source",
                          i);
    }
    return WEFT_OK;
}

/* Weights that are not numbers cannot be written, and would predict nothing. */
static weft_status check_weights(const weft__export_source *s) {
    for (int i = 0; i < s->n_slots; i++) {
        if (!s->constant[i] || s->slots[i].dtypes != 1u << WEFT_F32) continue;
        const float *values = s->slots[i].buffer->host;
        for (int64_t k = 0; k < s->slots[i].bytes / 4; k++)
            if (!isfinite(values[k]))
                return weft__fail(
                    s->use->model.ctx, WEFT_ERR_NUMERIC,
                    "export: the model holds weights that are not finite: the run has diverged");
    }
    return WEFT_OK;
}

static void find_id(weft__export_source *s) {
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_str(&hash, s->name);
    weft__hash_u64(&hash, s->use->step);
    for (int i = 0; i < s->n_slots; i++)
        if (s->constant[i]) weft__hash_bytes(&hash, s->slots[i].buffer->host, (size_t)s->slots[i].bytes);
    s->id = (uint32_t)(hash.a ^ hash.b);
}

/* Runs the program once on the device that writes C, and names its arrays. */
static weft_status export_prepare(weft__export_source *s) {
    weft_context *ctx = s->use->model.ctx;
    WEFT_TRY(weft__export_graph_make(s->use, &s->graph));
    WEFT_TRY(weft__c99_slots(ctx->device, &s->slots, &s->n_slots));
    s->names = weft__array(ctx, (size_t)s->n_slots, sizeof *s->names);
    s->constant = weft__array(ctx, (size_t)s->n_slots, sizeof *s->constant);
    if (!s->names || !s->constant)
        return weft__fail_oom(ctx, (size_t)s->n_slots * sizeof *s->names, "export");
    for (int i = 0; i < s->n_slots; i++) WEFT_TRY(name_slot(s, i));
    if (s->weights > INT32_MAX)
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "export: the weights need more than 2 GiB");
    s->blob = s->weights > SOURCE_WEIGHTS;
    find_id(s);
    return check_weights(s);
}

static void release(weft__export_source *s) {
    weft_context *ctx = s->use->model.ctx;
    weft__free(ctx, s->slots);
    weft__free(ctx, s->names);
    weft__free(ctx, s->constant);
    weft__export_graph_free(&s->graph);
}

/* ---- the files ---- */

typedef struct exported_file {
    char *path;
    char *bytes;
    size_t size;
    bool existed, written;
} exported_file;

/* Writes a text twice: to count its length, then into memory of this length. */
static weft_status render(const weft__export_source *s,
                          weft_status (*write)(const weft__export_source *, weft_text *),
                          exported_file *file) {
    weft_text text = weft__text(NULL, 0);
    WEFT_TRY(write(s, &text));
    file->size = text.length;
    file->bytes = weft__alloc(NULL, file->size + 1);
    if (!file->bytes) return weft__fail_oom(NULL, file->size, "the source");
    text = weft__text(file->bytes, file->size + 1);
    return write(s, &text);
}

int64_t weft__export_offset(const weft__export_source *s, int slot) {
    int64_t offset = 0;
    for (int i = 0; i < slot; i++)
        if (s->constant[i] && s->slots[i].dtypes == 1u << WEFT_F32) offset += s->slots[i].bytes / 4;
    return offset;
}

/* The weights, as floats of this machine. The head shows a reader whether it has the same kind of floats. */
static weft_status render_blob(const weft__export_source *s, exported_file *file) {
    const float one = 1;
    if (!s->blob) return WEFT_OK;
    file->size = WEFT__EXPORT_BLOB_HEAD + (size_t)weft__export_offset(s, s->n_slots) * 4;
    file->bytes = weft__alloc(NULL, file->size);
    if (!file->bytes) return weft__fail_oom(NULL, file->size, "the weights");
    memcpy(file->bytes, WEFT__EXPORT_MAGIC, 8);
    memcpy(file->bytes + 8, &s->id, 4);
    memcpy(file->bytes + 12, &one, 4);
    for (int i = 0; i < s->n_slots; i++)
        if (s->constant[i] && s->slots[i].dtypes == 1u << WEFT_F32)
            memcpy(file->bytes + WEFT__EXPORT_BLOB_HEAD + 4 * weft__export_offset(s, i),
                   s->slots[i].buffer->host, (size_t)s->slots[i].bytes);
    return WEFT_OK;
}

/* Refuses a file that somebody else wrote. */
static weft_status check_target(exported_file *file) {
    char head[200] = "";
    FILE *f = fopen(file->path, "rb");
    if (!f && (errno == ENOENT || errno == ENOTDIR)) return WEFT_OK; /* making the folder says the rest */
    if (!f) return weft__fail(NULL, WEFT_ERR_IO, "export: %s exists already and cannot be read", file->path);
    const size_t size = fread(head, 1, sizeof head - 1, f);
    fclose(f);
    head[size] = '\0';
    file->existed = true;
    if (strstr(head, "written by weft export") || memcmp(head, WEFT__EXPORT_MAGIC, 8) == 0) return WEFT_OK;
    return weft__fail(
        NULL, WEFT_ERR_ARGUMENT,
        "export: %s exists already and is not a file of weft export: choose another --out or --name",
        file->path);
}

/* Writes the files. After a failure, those that are new are removed; a mix of old and new files does not
 * compile, because their ids differ. */
static weft_status write_files(const char *folder, exported_file *files, int count) {
    weft_status status = WEFT_OK;
    for (int i = 0; i < count && status == WEFT_OK; i++)
        if (files[i].bytes) status = check_target(&files[i]);
    if (status == WEFT_OK) status = weft_make_folder(NULL, folder);
    for (int i = 0; i < count && status == WEFT_OK; i++) {
        if (!files[i].bytes) continue;
        status = weft_write_file(NULL, files[i].path, files[i].bytes, files[i].size);
        files[i].written = status == WEFT_OK;
    }
    for (int i = 0; i < count && status != WEFT_OK; i++)
        if (files[i].written && !files[i].existed) unlink(files[i].path);
    return status;
}

static weft_status write_all(const weft__export_source *s, const char *folder, weft__exported *exported) {
    static const char *const endings[3] = {"bin", "h", "c"}; /* the source comes last */
    exported_file files[3] = {{0}};
    weft_status status = render_blob(s, &files[0]);
    for (int i = 0; i < 3; i++) {
        char name[WEFT__EXPORT_NAME];
        snprintf(name, sizeof name, "%s.%s", s->name, endings[i]);
        files[i].path = exported->files[i];
        if (!weft__join(exported->files[i], WEFT__EXPORT_PATH, folder, name))
            status = weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", folder);
    }
    if (status == WEFT_OK) status = render(s, weft__export_header, &files[1]);
    if (status == WEFT_OK) status = render(s, weft__export_body, &files[2]);
    if (status == WEFT_OK) status = write_files(folder, files, 3);
    if (!s->blob) exported->files[0][0] = '\0';
    for (int i = 0; i < 3; i++) weft__free(NULL, files[i].bytes);
    return status;
}

weft_status weft__export_c(weft__use *use, const char *folder, const char *name, weft__exported *exported) {
    weft__export_source s = {.use = use, .name = name};
    weft_status status = export_prepare(&s);
    if (status == WEFT_OK) status = write_all(&s, folder, exported);
    exported->weights = s.weights;
    exported->memory = s.memory;
    release(&s);
    return status;
}
