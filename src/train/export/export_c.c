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

/* Names an array after its parameter. Constants of the normalization have no parameter. */
static void name_weight(const weft__export_source *s, weft__export_array *array) {
    weft_module *m = s->opened->model.module;
    weft_parameter_info info = {.name = "constant"};
    const size_t count = weft_parameter_count(m);
    for (size_t i = 0; i < count; i++) {
        weft_parameter_info found;
        if (weft_parameter_get(m, i, &found) && is(found.tensor, array->buffer)) info = found;
    }
    for (size_t i = 0; i < s->graph.n_laid; i++)
        if (is(s->graph.laid[i].tensor, array->buffer)) info.name = s->graph.laid[i].name;
    snprintf(array->name, WEFT__EXPORT_NAME, "w%d_%.40s", s->n_arrays, info.name);
    for (char *at = array->name; *at; at++)
        if (*at == '.' || *at == '-') *at = '_';
}

/* Names a block of the optimizer. Other arrays that training changes are buffers of layers. */
static void name_kept(const weft__export_source *s, weft__export_array *array) {
    const weft_optimizer *opt = s->opened->model.optimizer;
    name_weight(s, array);
    for (size_t b = 0; b < opt->n_blocks; b++) {
        if (is(opt->blocks[b].values, array->buffer)) snprintf(array->name, WEFT__EXPORT_NAME, "parameters");
        for (size_t i = 0; i < weft__optimizer_states(opt); i++)
            if (is(opt->blocks[b].state[i], array->buffer))
                snprintf(array->name, WEFT__EXPORT_NAME, "state_%s", weft__optimizer_state_name(opt, i));
    }
}

static bool is_state(const weft__export_graph *g, const weft_buffer *buffer) {
    for (size_t i = 0; i < g->n_states; i++)
        if (is(g->states[i], buffer)) return true;
    return false;
}

static bool name_argument(const weft__export_source *s, const weft_buffer *buffer, const char **name) {
    const struct {
        const weft_tensor *tensor;
        const char *name;
    } arguments[] = {{s->graph.input, "in"}, {s->graph.output, "out"},    {s->graph.position, "position"},
                     {s->step.input, "in"},  {s->step.target, "targets"}, {s->step.loss, "loss"}};
    for (size_t i = 0; i < sizeof arguments / sizeof *arguments; i++)
        if (is(arguments[i].tensor, buffer)) {
            *name = arguments[i].name;
            return true;
        }
    return false;
}

/* Chooses role and name of a new array. */
static weft_status place_array(const weft__export_source *s, const weft_c99_slot *slot, bool arena,
                               weft__export_array *array) {
    const weft_optimizer *opt = s->opened->model.optimizer;
    const char *name = NULL;
    const bool numbers = slot->dtypes == 1u << WEFT_F32 || slot->dtypes == 1u << WEFT_I32;
    if (arena) {
        array->role = WEFT__EXPORT_ARENA;
        name = "arena";
    } else if (slot->scalars) {
        array->role = WEFT__EXPORT_NUMBERS;
        name = "numbers";
    } else if (is_state(&s->graph, slot->buffer)) {
        array->role = WEFT__EXPORT_TEXT;
    } else if (name_argument(s, slot->buffer, &name)) {
        array->role = WEFT__EXPORT_ARGUMENT;
    } else if (opt && is(opt->norm, slot->buffer)) {
        array->role = WEFT__EXPORT_NORM;
        name = "norm";
    } else if (slot->written && opt && slot->dtypes == 1u << WEFT_F32) {
        array->role = WEFT__EXPORT_KEPT;
        name_kept(s, array);
    } else if (!slot->written && numbers) {
        array->role = WEFT__EXPORT_CONSTANT;
        name_weight(s, array);
    } else {
        return weft__fail(s->opened->model.ctx, WEFT_ERR_INTERNAL,
                          "export: array %d has no place in the source", s->n_arrays);
    }
    if (name) snprintf(array->name, WEFT__EXPORT_NAME, "%s", name);
    if (array->role == WEFT__EXPORT_TEXT) snprintf(array->name, WEFT__EXPORT_NAME, "state%d", s->n_arrays);
    return WEFT_OK;
}

/* Are both the same array? Constants of two programs are if they hold the same. */
static bool same_array(const weft__export_array *a, const weft_c99_slot *slot, bool arena,
                       const weft__export_array *made) {
    if (arena || a->role == WEFT__EXPORT_ARENA) return arena && a->role == WEFT__EXPORT_ARENA;
    if (a->buffer == slot->buffer) return true;
    return a->role == WEFT__EXPORT_CONSTANT && made->role == WEFT__EXPORT_CONSTANT &&
           a->dtypes == slot->dtypes && a->bytes == slot->bytes &&
           memcmp(a->buffer->host, slot->buffer->host, (size_t)slot->bytes) == 0;
}

static weft_status add_array(weft__export_source *s, const weft_c99_slot *slot, bool arena, int *number) {
    weft__export_array array = {.buffer = slot->buffer, .dtypes = slot->dtypes, .bytes = slot->bytes};
    WEFT_TRY(place_array(s, slot, arena, &array));
    for (*number = 0; *number < s->n_arrays; ++*number) {
        weft__export_array *a = &s->arrays[*number];
        if (!same_array(a, slot, arena, &array)) continue;
        a->dtypes |= slot->dtypes;
        if (slot->bytes > a->bytes) a->bytes = slot->bytes;
        return WEFT_OK;
    }
    s->arrays[s->n_arrays++] = array;
    return WEFT_OK;
}

/* Runs a program on the device that writes C, and finds its arrays. */
static weft_status export_program(weft__export_source *s, weft_program *program, const char *prefix,
                                  weft__export_program *p) {
    weft_context *ctx = s->opened->model.ctx;
    *p = (weft__export_program){.program = program, .prefix = prefix};
    WEFT_TRY(weft_program_run(program));
    WEFT_TRY(weft__c99_slots(ctx->device, &p->slots, &p->n_slots));
    p->arrays = weft__array(ctx, (size_t)p->n_slots + 1, sizeof *p->arrays);
    weft__export_array *more = weft__array(ctx, (size_t)(s->n_arrays + p->n_slots) + 1, sizeof *more);
    if (more && s->n_arrays) memcpy(more, s->arrays, (size_t)s->n_arrays * sizeof *more);
    weft__free(ctx, s->arrays);
    s->arrays = more;
    if (!p->arrays || !more) return weft__fail_oom(ctx, (size_t)p->n_slots * sizeof *more, "export");
    for (int i = 0; i < p->n_slots; i++) {
        p->arrays[i] = -1;
        if (p->slots[i].buffer) WEFT_TRY(add_array(s, &p->slots[i], i == 0, &p->arrays[i]));
    }
    return WEFT_OK;
}

static void count_memory(weft__export_source *s) {
    int64_t kept = 0;
    for (int i = 0; i < s->n_arrays; i++) {
        const weft__export_array *a = &s->arrays[i];
        switch (a->role) {
        case WEFT__EXPORT_CONSTANT: s->weights += a->bytes; break;
        case WEFT__EXPORT_KEPT: kept += a->bytes; break;
        case WEFT__EXPORT_ARENA:
        case WEFT__EXPORT_TEXT:
        case WEFT__EXPORT_NORM: s->memory += a->bytes; break;
        default: break;
        }
    }
    s->weights += kept;
    if (s->step.batch) s->state = kept + WEFT__EXPORT_STATE_HEAD;
    weft_parameter_info info;
    int array;
    int64_t first;
    for (size_t i = 0; weft__export_learnt(s, i, &info, &array, &first); i++)
        s->learnt += info.tensor->numel * 4;
}

/* Weights that are not numbers cannot be written, and would predict nothing. */
static weft_status check_weights(const weft__export_source *s) {
    for (int i = 0; i < s->n_arrays; i++) {
        if (!weft__export_stored(&s->arrays[i])) continue;
        const float *values = s->arrays[i].buffer->host;
        for (int64_t k = 0; k < s->arrays[i].bytes / 4; k++)
            if (!isfinite(values[k]))
                return weft__fail(
                    s->opened->model.ctx, WEFT_ERR_NUMERIC,
                    "export: the model holds weights that are not finite: the run has diverged");
    }
    return WEFT_OK;
}

static void find_id(weft__export_source *s) {
    weft_hash hash;
    weft__hash_init(&hash);
    weft__hash_str(&hash, s->name);
    weft__hash_u64(&hash, s->opened->step);
    weft__hash_u64(&hash, (uint64_t)s->step.batch);
    for (int i = 0; i < s->n_arrays; i++)
        if (s->arrays[i].role == WEFT__EXPORT_CONSTANT || s->arrays[i].role == WEFT__EXPORT_KEPT)
            weft__hash_bytes(&hash, s->arrays[i].buffer->host, (size_t)s->arrays[i].bytes);
    s->id = (uint32_t)(hash.a ^ hash.b);
}

/* Makes the programs, and names their arrays. The step comes first, since it tells what changes. */
static weft_status export_prepare(weft__export_source *s, int64_t batch) {
    weft_context *ctx = s->opened->model.ctx;
    if (batch) {
        WEFT_TRY(weft__export_step_make(s->opened, batch, &s->step));
        WEFT_TRY(export_program(s, s->step.program, "t", &s->learn));
    }
    WEFT_TRY(weft__export_graph_make(s->opened, &s->graph));
    WEFT_TRY(export_program(s, s->graph.program, "k", &s->forward));
    count_memory(s);
    if (s->weights > INT32_MAX)
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "export: the weights need more than 2 GiB");
    s->blob = s->weights > SOURCE_WEIGHTS;
    find_id(s);
    return check_weights(s);
}

static void release(weft__export_source *s) {
    weft_context *ctx = s->opened->model.ctx;
    weft__free(ctx, s->arrays);
    weft__free(ctx, s->forward.slots);
    weft__free(ctx, s->forward.arrays);
    weft__free(ctx, s->learn.slots);
    weft__free(ctx, s->learn.arrays);
    weft__export_graph_free(&s->graph);
    if (s->step.batch) weft__export_step_free(s->opened, &s->step);
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

bool weft__export_stored(const weft__export_array *array) {
    return (array->role == WEFT__EXPORT_CONSTANT || array->role == WEFT__EXPORT_KEPT) &&
           array->dtypes == 1u << WEFT_F32;
}

int64_t weft__export_offset(const weft__export_source *s, int array) {
    int64_t offset = 0;
    for (int i = 0; i < array; i++)
        if (weft__export_stored(&s->arrays[i])) offset += s->arrays[i].bytes / 4;
    return offset;
}

/* The weights, as floats of this machine. The head shows a reader whether it has the same kind of floats. */
static weft_status render_blob(const weft__export_source *s, exported_file *file) {
    const float one = 1;
    if (!s->blob) return WEFT_OK;
    file->size = WEFT__EXPORT_BLOB_HEAD + (size_t)weft__export_offset(s, s->n_arrays) * 4;
    file->bytes = weft__alloc(NULL, file->size);
    if (!file->bytes) return weft__fail_oom(NULL, file->size, "the weights");
    memcpy(file->bytes, WEFT__EXPORT_MAGIC, 8);
    memcpy(file->bytes + 8, &s->id, 4);
    memcpy(file->bytes + 12, &one, 4);
    for (int i = 0; i < s->n_arrays; i++)
        if (weft__export_stored(&s->arrays[i]))
            memcpy(file->bytes + WEFT__EXPORT_BLOB_HEAD + 4 * weft__export_offset(s, i),
                   s->arrays[i].buffer->host, (size_t)s->arrays[i].bytes);
    return WEFT_OK;
}

bool weft__export_c_wrote(const char *path) {
    char head[200] = "";
    FILE *f = fopen(path, "rb");
    if (!f) return false;
    const size_t size = fread(head, 1, sizeof head - 1, f);
    fclose(f);
    head[size] = '\0';
    return strstr(head, "written by weft export") || memcmp(head, WEFT__EXPORT_MAGIC, 8) == 0;
}

/* Reads a file back. */
static weft_status check_file(const exported_file *file) {
    weft_bytes bytes;
    WEFT_TRY(weft_read_file(NULL, file->path, file->size + 1, &bytes));
    const bool same = bytes.size == file->size && memcmp(bytes.data, file->bytes, bytes.size) == 0;
    weft_bytes_free(NULL, &bytes);
    return same ? WEFT_OK : weft__fail(NULL, WEFT_ERR_IO, "%s: the file is not what was written", file->path);
}

/* Writes the files. After a failure, those that are new are removed; a mix of old and new files does not
 * compile, because their ids differ. */
static weft_status write_files(const weft__export_options *options, exported_file *files, int count) {
    weft_status status = WEFT_OK;
    for (int i = 0; i < count && status == WEFT_OK; i++)
        if (files[i].bytes) status = weft__output_file(options->output, files[i].path);
    if (status == WEFT_OK) status = weft_make_folder(NULL, options->folder);
    for (int i = 0; i < count && status == WEFT_OK; i++) {
        if (!files[i].bytes) continue;
        files[i].existed = access(files[i].path, F_OK) == 0;
        status = weft_write_file(NULL, files[i].path, files[i].bytes, files[i].size);
        files[i].written = status == WEFT_OK;
        if (status == WEFT_OK) status = check_file(&files[i]);
    }
    for (int i = 0; i < count && status != WEFT_OK; i++)
        if (files[i].written && !files[i].existed) unlink(files[i].path);
    return status;
}

static weft_status write_all(const weft__export_source *s, const weft__export_options *options,
                             weft__exported *exported) {
    static const char *const endings[3] = {"bin", "h", "c"}; /* the source comes last */
    exported_file files[3] = {{0}};
    weft_status status = render_blob(s, &files[0]);
    for (int i = 0; i < 3; i++) {
        char name[WEFT__EXPORT_NAME];
        snprintf(name, sizeof name, "%s.%s", s->name, endings[i]);
        files[i].path = exported->files[i];
        if (!weft__join(exported->files[i], WEFT__EXPORT_PATH, options->folder, name))
            status = weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", options->folder);
    }
    if (status == WEFT_OK) status = render(s, weft__export_header, &files[1]);
    if (status == WEFT_OK) status = render(s, weft__export_body, &files[2]);
    if (status == WEFT_OK)
        status = weft__export_check_source(files[2].path, files[1].bytes, files[2].bytes, s->name);
    if (status == WEFT_OK) status = write_files(options, files, 3);
    if (!s->blob) exported->files[0][0] = '\0';
    for (int i = 0; i < 3; i++) weft__free(NULL, files[i].bytes);
    return status;
}

weft_status weft__export_c(weft__opened_model *opened, const weft__export_options *options,
                           weft__exported *exported) {
    weft__export_source s = {.opened = opened, .name = options->name};
    weft_status status = export_prepare(&s, options->batch);
    if (status == WEFT_OK) status = write_all(&s, options, exported);
    exported->weights = s.weights;
    if (s.state) exported->weights -= s.state - WEFT__EXPORT_STATE_HEAD - s.learnt; /* the optimizer's */
    exported->memory = s.memory;
    exported->state = s.state;
    release(&s);
    return status;
}
