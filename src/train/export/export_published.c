/* Exports a run that began with a published model: as a folder that transformers reads, or as a GGUF file of
 * llama.cpp. Exports its adapters as a folder that peft reads. Must not know: how weights are named
 * (weft_published_save). Read next: weft/published.h. */
#include <unistd.h>

#include "nn/module.h"
#include "published/published.h"
#include "train/export/export.h"

/* Refuses runs that did not begin with a published model. */
weft_status weft__export_needs_published(const weft__opened_model *opened, const char *format) {
    if (opened->config.published) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "export: --to %s is for runs that began with a published model (model.init): use "
                      "--to gpt2 or --to safetensors",
                      format);
}

/* Notes whether the run has all positions of the published model. */
static weft_status note_positions(const weft__opened_model *opened, weft__exported *exported) {
    weft__published p;
    if (!opened->config.positions) return WEFT_OK;
    WEFT_TRY(weft__published_read(NULL, opened->config.published, &p));
    if (opened->config.positions >= p.context) return WEFT_OK;
    exported->positions = opened->config.positions;
    exported->of = p.context;
    return WEFT_OK;
}

/* The names are shorter than those of the files that were written, so they fit. */
static void name_files(const char *folder, const char *weights, const char *config,
                       weft__exported *exported) {
    if (!weft__join(exported->files[0], WEFT__EXPORT_PATH, folder, weights) ||
        !weft__join(exported->files[1], WEFT__EXPORT_PATH, folder, config))
        exported->files[0][0] = exported->files[1][0] = '\0';
}

weft_status weft__export_keep(weft_context *ctx, weft_status status, const char *path) {
    if (status == WEFT_OK) return WEFT_OK;
    unlink(path);
    return weft__fail(ctx, status, "export: what was written cannot be used, and was removed: %s",
                      weft_last_error(ctx));
}

weft_status weft__export_gguf(weft__opened_model *opened, const char *path, const char *type,
                              weft__exported *exported) {
    WEFT_TRY(note_positions(opened, exported));
    weft_module *m = opened->model.module;
    WEFT_TRY(weft_published_save_gguf(m, opened->config.published, path, type));
    snprintf(exported->files[0], WEFT__EXPORT_PATH, "%s", path);
    return weft__export_keep(m->ctx, weft__export_check(m, opened->config.published, path, NULL, type), path);
}

weft_status weft__export_files(const char *from, const char *path, const char *type) {
    weft_context *ctx;
    WEFT_TRY(weft_open(&(weft_open_options){.device = "null"}, &ctx));
    const weft_status status = weft_published_quantize(ctx, from, path, type);
    if (status != WEFT_OK) weft__fail(NULL, status, "%s", weft_last_error(ctx));
    weft_close(ctx);
    if (status != WEFT_OK) return status;
    return weft__export_keep(NULL, weft__export_check(NULL, from, path, NULL, type), path);
}

weft_status weft__export_published(weft__opened_model *opened, const char *folder, weft__exported *exported) {
    const weft_dtype compute = weft__model_compute(&opened->config);
    const weft_dtype dtype = compute == WEFT_BF16 || compute == WEFT_F16 ? compute : WEFT_F32;
    WEFT_TRY(note_positions(opened, exported));
    WEFT_TRY(weft_make_folder(NULL, folder));
    weft_module *m = opened->model.module;
    const char *from = opened->config.published;
    WEFT_TRY(weft_published_save(m, from, folder, dtype));
    name_files(folder, "model.safetensors", "config.json", exported);
    const weft_status status = weft__export_check(m, from, folder, NULL, weft_dtype_name(dtype));
    if (status != WEFT_OK) weft__published_uncopy(from, folder);
    return weft__export_keep(m->ctx, status, exported->files[0]);
}

weft_status weft__export_needs_adapters(const weft__opened_model *opened, const char *format) {
    if (opened->config.lora_rank > 0) return WEFT_OK;
    return weft__fail(
        NULL, WEFT_ERR_ARGUMENT,
        "export: --to %s is for runs with adapters (lora.rank): use --to huggingface or --to gguf", format);
}

weft_status weft__export_gguf_lora(weft__opened_model *opened, const char *path, weft__exported *exported) {
    const weft__config *c = &opened->config;
    weft_module *m = opened->model.module;
    WEFT_TRY(weft_published_save_gguf_lora(m, c->published, path));
    snprintf(exported->files[0], WEFT__EXPORT_PATH, "%s", path);
    return weft__export_keep(m->ctx, weft__export_check_adapters(m, c->published, c->model_init, path, NULL),
                             path);
}

weft_status weft__export_peft(weft__opened_model *opened, const char *folder, weft__exported *exported) {
    const weft__config *c = &opened->config;
    weft_module *m = opened->model.module;
    WEFT_TRY(weft_published_save_lora(m, c->published, c->model_init, folder));
    name_files(folder, "adapter_model.safetensors", "adapter_config.json", exported);
    const char *path = exported->files[0];
    const weft_status status =
        weft__export_check_adapters(m, c->published, c->model_init, path, exported->files[1]);
    if (status != WEFT_OK) unlink(exported->files[1]);
    return weft__export_keep(m->ctx, status, path);
}
