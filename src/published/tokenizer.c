/* Loads the tokenizer and the chat template of a published model. Must not know: how they work. Read next:
 * gguf_tokenizer.c. */
#include <string.h>

#include "published/gguf.h"
#include "published/published.h"
#include "text/pipeline/pipeline.h"

/* A part of a file that Weft does not know makes the file one that cannot be read. */
static weft_status unreadable(weft_context *ctx, weft_status status) {
    if (status != WEFT_ERR_UNSUPPORTED) return status;
    return weft__fail(ctx, WEFT_ERR_FORMAT, "%s", weft_last_error(ctx));
}

weft_status weft_published_tokenizer(weft_context *ctx, const char *folder, weft_tokenizer **out) {
    WEFT_NEED(ctx, folder);
    WEFT_NEED(ctx, out);
    weft__gguf_files files;
    weft__gguf *gguf;
    *out = NULL;
    if (!weft__is_gguf(folder) || !weft_published_is(folder))
        return unreadable(ctx, weft_tokenizer_load(ctx, folder, out));
    WEFT_TRY(weft__gguf_open(ctx, folder, &gguf));
    weft_status status = weft__gguf_tokenizer(ctx, folder, gguf, &files);
    weft__gguf_close(gguf);
    if (status != WEFT_OK) return status;
    status = weft_tokenizer_parse(ctx, files.tokenizer, files.tokenizer_bytes, out);
    if (status == WEFT_OK) status = weft__pipeline_configure(*out, folder, files.config, files.config_bytes);
    weft__gguf_files_free(ctx, &files);
    if (status != WEFT_OK) {
        weft_tokenizer_free(*out);
        *out = NULL;
    }
    return status;
}

/* ---- the chat template ---- */

/* Sets the variables that templates read. */
static weft_status set_tokens(const weft__gguf *g, weft_chat_template *chat) {
    char token[256];
    const char *text;
    size_t bytes;
    for (int i = 0; i < WEFT__GGUF_ROLES; i++) {
        if (!weft__gguf_token(g, &weft__gguf_roles[i], &text, &bytes) || bytes >= sizeof token) continue;
        memcpy(token, text, bytes);
        token[bytes] = '\0';
        WEFT_TRY(weft_chat_template_set(chat, weft__gguf_roles[i].name, token));
    }
    return WEFT_OK;
}

static weft_status gguf_chat(weft_context *ctx, const char *path, const weft__gguf *g,
                             weft_chat_template **out) {
    weft__gguf_value value;
    const char *text;
    size_t bytes;
    if (!weft__gguf_find(g, "tokenizer.chat_template", &value) || !weft__gguf_text(&value, &text, &bytes))
        return weft__fail(
            ctx, WEFT_ERR_FORMAT,
            "%s: tokenizer.chat_template: the file has no chat template: is this model made for chats?",
            path);
    WEFT_TRY(weft_chat_template_new(ctx, text, bytes, path, out));
    return set_tokens(g, *out);
}

weft_status weft_published_chat(weft_context *ctx, const char *folder, weft_chat_template **out) {
    WEFT_NEED(ctx, folder);
    WEFT_NEED(ctx, out);
    weft__gguf *gguf;
    *out = NULL;
    if (!weft__is_gguf(folder) || !weft_published_is(folder))
        return unreadable(ctx, weft_chat_template_load(ctx, folder, out));
    WEFT_TRY(weft__gguf_open(ctx, folder, &gguf));
    const weft_status status = gguf_chat(ctx, folder, gguf, out);
    weft__gguf_close(gguf);
    if (status == WEFT_OK) return status;
    weft_chat_template_free(*out);
    *out = NULL;
    return unreadable(ctx, status);
}
