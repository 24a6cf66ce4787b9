/* Exports a run that began with a published model as a folder that transformers reads, its adapters as one
 * that peft reads, or the model as a GGUF file of llama.cpp. Must not know: how weights are named
 * (weft_published_save). Read next: weft/published.h. */
#include <weft/published.h>

#include "train/export/export.h"

/* Refuses runs that did not begin with a published model. */
weft_status weft__export_check_published(const weft__use *use, const char *format) {
    if (use->config.published) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "export: --to %s is for runs that began with a published model (model.init): use "
                      "--to gpt2 or --to safetensors",
                      format);
}

weft_status weft__export_gguf(weft__use *use, const char *path, const char *type, weft__exported *exported) {
    WEFT_TRY(weft__export_check_published(use, "gguf"));
    WEFT_TRY(weft_published_save_gguf(use->model.module, use->config.published, path, type));
    snprintf(exported->files[0], WEFT__EXPORT_PATH, "%s", path);
    return WEFT_OK;
}

weft_status weft__export_files(const char *from, const char *path, const char *type) {
    weft_context *ctx;
    WEFT_TRY(weft_open(&(weft_open_options){.device = "null"}, &ctx));
    const weft_status status = weft_published_quantize(ctx, from, path, type);
    if (status != WEFT_OK) weft__fail(NULL, status, "%s", weft_last_error(ctx));
    weft_close(ctx);
    return status;
}

weft_status weft__export_published(weft__use *use, const char *folder, weft__exported *exported) {
    const weft_dtype compute = weft__model_compute(&use->config);
    const weft_dtype dtype = compute == WEFT_BF16 || compute == WEFT_F16 ? compute : WEFT_F32;
    WEFT_TRY(weft_make_folder(NULL, folder));
    WEFT_TRY(weft_published_save(use->model.module, use->config.published, folder, dtype));
    if (!weft__join(exported->files[0], WEFT__EXPORT_PATH, folder, "model.safetensors") ||
        !weft__join(exported->files[1], WEFT__EXPORT_PATH, folder, "config.json"))
        exported->files[0][0] = exported->files[1][0] = '\0';
    return WEFT_OK;
}

weft_status weft__export_check_adapters(const weft__use *use, const char *format) {
    if (use->config.lora_rank > 0) return WEFT_OK;
    return weft__fail(
        NULL, WEFT_ERR_ARGUMENT,
        "export: --to %s is for runs with adapters (lora.rank): use --to huggingface or --to gguf", format);
}

weft_status weft__export_gguf_lora(weft__use *use, const char *path, weft__exported *exported) {
    WEFT_TRY(weft__export_check_adapters(use, "gguf-lora"));
    WEFT_TRY(weft_published_save_gguf_lora(use->model.module, use->config.published, path));
    snprintf(exported->files[0], WEFT__EXPORT_PATH, "%s", path);
    return WEFT_OK;
}

weft_status weft__export_peft(weft__use *use, const char *folder, weft__exported *exported) {
    WEFT_TRY(
        weft_published_save_lora(use->model.module, use->config.published, use->config.model_init, folder));
    if (!weft__join(exported->files[0], WEFT__EXPORT_PATH, folder, "adapter_model.safetensors") ||
        !weft__join(exported->files[1], WEFT__EXPORT_PATH, folder, "adapter_config.json"))
        exported->files[0][0] = exported->files[1][0] = '\0';
    return WEFT_OK;
}
