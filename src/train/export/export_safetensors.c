/* Exports any model as a safetensors file. The weights have the names of the checkpoint. The metadata hold
 * what a reader needs to use them: the configuration, the description of the data, and the tokenizer
 * (docs/export.md lists the keys).
 * Must not know: the format (weft/io.h). Read next: dataset/dataset.h. */
#include <stdio.h>
#include <string.h>

#include <weft/data.h>

#include "io/publish.h"
#include "train/export/export.h"
#include "train/run/run_dir.h"

enum { KEYS = 10 };
#define FILE_MOST ((size_t)64 << 20) /* bytes of a file of the run that becomes a value */

typedef struct metadata {
    weft_metadata list[KEYS];
    size_t count;
    char *texts[3]; /* of files; owned */
    size_t n_texts;
    char model[64], task[32], step[24];
} metadata;

static void add(metadata *m, const char *key, const char *value) {
    m->list[m->count++] = (weft_metadata){key, value};
}

/* Adds a file of the run as it is. Opening the model has verified the file. */
static weft_status add_file(metadata *m, const char *run, const char *name, const char *key) {
    char path[WEFT__EXPORT_PATH];
    weft_bytes bytes;
    if (!weft__join(path, sizeof path, run, name))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", run);
    WEFT_TRY(weft_read_file(NULL, path, FILE_MOST, &bytes));
    char *text = weft__alloc(NULL, bytes.size + 1);
    if (text) {
        memcpy(text, bytes.data, bytes.size);
        text[bytes.size] = '\0';
        m->texts[m->n_texts++] = text;
        add(m, key, text);
    }
    weft_bytes_free(NULL, &bytes);
    return text ? WEFT_OK : weft__fail_oom(NULL, bytes.size, "metadata");
}

static weft_status gather(const weft__opened_model *opened, const char *run, metadata *m) {
    const weft_tokenizer *tokenizer = weft__dataset_tokenizer(&opened->dataset);
    snprintf(m->step, sizeof m->step, "%llu", (unsigned long long)opened->step);
    add(m, "format", "pt"); /* transformers refuses files without it */
    add(m, "weft", weft_version());
    add(m, "model", weft__model_name(&opened->config, &opened->dataset, m->model));
    add(m, "task", weft__config_choice(WEFT__KEY_task, opened->config.task, m->task));
    add(m, "step", m->step);
    WEFT_TRY(add_file(m, run, "config.yaml", "config"));
    WEFT_TRY(add_file(m, run, "data.json", "data"));
    if (!tokenizer) return WEFT_OK;
    add(m, "tokenizer", weft_tokenizer_kind_name(weft_tokenizer_kind_of(tokenizer)));
    return add_file(m, run, "tokenizer.json", "tokenizer.json");
}

bool weft__export_safetensors_wrote(const char *path) {
    weft_safetensors *file;
    size_t count = 0;
    bool found = false;
    if (weft_safetensors_open(NULL, path, &file) != WEFT_OK) return false;
    const weft_metadata *list = weft_safetensors_metadata(file, &count);
    for (size_t i = 0; i < count; i++) found = found || strcmp(list[i].key, "weft") == 0;
    weft_safetensors_close(file);
    return found;
}

weft_status weft__export_safetensors(weft__opened_model *opened, const char *run, const char *path,
                                     weft__exported *exported) {
    weft_entry *entries = NULL;
    size_t count = 0;
    metadata m = {.count = 0};
    weft_status status = gather(opened, run, &m);
    if (status == WEFT_OK) status = weft_module_entries(opened->model.module, &entries, &count);
    if (status == WEFT_OK)
        status = weft_safetensors_write(opened->model.ctx, path, entries, count, m.list, m.count);
    weft_entries_free(opened->model.ctx, entries, count);
    for (size_t i = 0; i < m.n_texts; i++) weft__free(NULL, m.texts[i]);
    snprintf(exported->files[0], WEFT__EXPORT_PATH, "%s", path);
    if (status != WEFT_OK || weft__is_stream(path)) return status; /* the writer has compared the bytes */
    return weft__export_keep(opened->model.ctx, weft_module_load(opened->model.module, path), path);
}
