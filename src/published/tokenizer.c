/* Loads the tokenizer of a published model. Must not know: how it encodes. Read next: gguf_tokenizer.c. */
#include "published/gguf.h"
#include "published/published.h"
#include "text/pipeline/pipeline.h"

weft_status weft_published_tokenizer(weft_context *ctx, const char *path, weft_tokenizer **out) {
    WEFT_NEED(ctx, path);
    WEFT_NEED(ctx, out);
    weft__gguf_files files;
    weft__gguf *gguf;
    *out = NULL;
    if (!weft__is_gguf(path) || !weft_published_is(path)) return weft_tokenizer_load(ctx, path, out);
    WEFT_TRY(weft__gguf_open(ctx, path, &gguf));
    weft_status status = weft__gguf_tokenizer(ctx, path, gguf, &files);
    weft__gguf_close(gguf);
    if (status != WEFT_OK) return status;
    status = weft_tokenizer_parse(ctx, files.tokenizer, files.tokenizer_bytes, out);
    if (status == WEFT_OK) status = weft__pipeline_configure(*out, path, files.config, files.config_bytes);
    weft__gguf_files_free(ctx, &files);
    if (status != WEFT_OK) {
        weft_tokenizer_free(*out);
        *out = NULL;
    }
    return status;
}
