/* Writes the adapters of weft_gpt_lora as a GGUF file that llama.cpp adds to a model, as its script
 * convert_lora_to_gguf.py does. Must not know: training. Read next: gguf_write.c, save_lora.c. */
#include <string.h>

#include "base/text.h"
#include "nn/module.h"
#include "published/gguf_write.h"
#include "published/published.h"

/* An adapter of the file. */
typedef struct placed_adapter {
    weft_tensor *a, *b; /* (rank, in) and (rows, rank) */
    weft__placed placed;
} placed_adapter;

typedef struct adapter_file {
    weft_context *ctx;
    weft__published p; /* with the names of GGUF files */
    weft_module *model;
    placed_adapter *list;
    size_t count;
    weft__lora form; /* of the last adapter; all have the same rank and scale */
    weft__gguf_header header;
    weft__writer *writer;
} adapter_file;

static weft_status list_adapters(adapter_file *f) {
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(f->model, i, &p); i++) {
        placed_adapter *adapter = &f->list[f->count];
        if (!strstr(p.name, ".lora_A.")) continue;
        const weft_module *lora = p.module->parent;
        WEFT_TRY(weft__lora_placed(&f->p, f->model, lora, &adapter->placed));
        f->form = weft__lora_form(lora);
        adapter->a = p.tensor;
        weft_parameter_get(f->model, i + 1, &p); /* lora_B follows */
        adapter->b = p.tensor;
        f->count++;
    }
    if (f->count > 0) return WEFT_OK;
    return weft__fail(f->ctx, WEFT_ERR_ARGUMENT, "weft_published_save_gguf_lora: the model has no adapters");
}

static void list_tensor(adapter_file *f, const placed_adapter *adapter, const weft_tensor *t,
                        const char *ending) {
    char name[192];
    weft_text text = weft__text(name, sizeof name);
    weft__put(&text, "%s.%s", adapter->placed.name, ending);
    weft__gguf_put_tensor(&f->header, name, 2, t->shape, weft__block_find(WEFT__BLOCK_F32));
}

static void describe_adapters(adapter_file *f) {
    weft__gguf_header *h = &f->header;
    const char *name = weft__gguf_architecture_of(f->p.architecture->type)->name;
    weft__gguf_put_text(h, "general.type", "adapter", 7);
    weft__gguf_put_text(h, "general.architecture", name, strlen(name));
    weft__gguf_put_text(h, "adapter.type", "lora", 4);
    weft__gguf_put_f32(h, "adapter.lora.alpha", f->form.scale * (double)f->form.rank);
    weft__gguf_put_maker(h, "export");
    for (size_t i = 0; i < f->count; i++) {
        list_tensor(f, &f->list[i], f->list[i].a, "lora_a");
        list_tensor(f, &f->list[i], f->list[i].b, "lora_b");
    }
}

/* Writes a matrix; `placed` gives the order of its rows, NULL: as in memory. */
static weft_status write_matrix(adapter_file *f, weft_tensor *t, const weft__placed *placed) {
    const int64_t rows = t->shape[0], columns = t->shape[1];
    const size_t row = (size_t)columns * sizeof(float), bytes = (size_t)rows * row;
    float *values = weft__alloc(f->ctx, bytes);
    weft_scope *scope = weft_scope_open(f->ctx);
    weft_status status = values && scope ? weft_read(weft_cast(t, WEFT_F32), values, bytes)
                                         : weft__fail_oom(f->ctx, bytes, "an adapter");
    weft_scope_close(scope);
    for (int64_t i = 0; status == WEFT_OK && i < rows; i++) {
        const int64_t from = placed ? weft__published_row(&f->p, placed, i) - placed->first : i;
        status = weft__writer_write(f->writer, values + from * columns, row);
    }
    weft__free(f->ctx, values);
    return status == WEFT_OK ? weft__gguf_pad(f->writer, bytes) : status;
}

static weft_status write_adapters(adapter_file *f, const char *path) {
    WEFT_TRY(list_adapters(f));
    describe_adapters(f);
    WEFT_TRY(weft__gguf_begin(&f->header, path, &f->writer));
    for (size_t i = 0; i < f->count; i++) {
        WEFT_TRY(write_matrix(f, f->list[i].a, NULL));
        WEFT_TRY(write_matrix(f, f->list[i].b, &f->list[i].placed));
    }
    weft__writer *writer = f->writer;
    f->writer = NULL;
    return weft__writer_commit(writer);
}

weft_status weft_published_save_gguf_lora(weft_module *model, const char *from, const char *path) {
    WEFT_NEED(NULL, model);
    weft_context *ctx = model->ctx;
    WEFT_NEED(ctx, from);
    WEFT_NEED(ctx, path);
    adapter_file f = {.ctx = ctx, .model = model, .header = weft__gguf_header_of(ctx)};
    WEFT_TRY(weft_module_status(model));
    WEFT_TRY(weft__published_read(ctx, from, &f.p));
    WEFT_TRY(weft__gguf_use_names(ctx, from, &f.p));
    WEFT_TRY(weft_module_prepare(model));
    const size_t most = weft_parameter_count(model) / 2 + 1;
    f.list = weft__array(ctx, most, sizeof *f.list);
    weft_status status =
        f.list ? write_adapters(&f, path) : weft__fail_oom(ctx, most * sizeof *f.list, "adapters");
    weft__writer_abandon(f.writer);
    weft__gguf_header_free(&f.header);
    weft__free(ctx, f.list);
    return status;
}
