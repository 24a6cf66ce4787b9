/* Opens the draft of weft generate and weft chat, see draft.h. Must not know: how tokens are checked. Read
 * next: nn/speculate.c. */
#include <string.h>

#include <weft/published.h>

#include "cli/draft.h"

/* Expects the same tokens. NULL: ids have no text. */
static weft_status same_tokens(const char *path, const weft_tokenizer *ours, const weft_tokenizer *theirs) {
    const size_t n = ours ? weft_tokenizer_vocabulary(ours) : 0;
    const size_t m = theirs ? weft_tokenizer_vocabulary(theirs) : 0;
    if (n != m)
        return weft__fail(
            NULL, WEFT_ERR_ARGUMENT,
            "%s: a draft must have the tokens of the model, but it has %zu tokens, and the model "
            "%zu",
            path, m, n);
    for (int32_t i = 0; i < (int32_t)n; i++) {
        size_t a = 0, b = 0;
        const char *x = weft_tokenizer_token(ours, i, &a), *y = weft_tokenizer_token(theirs, i, &b);
        if (a != b || !x != !y || (x && memcmp(x, y, a) != 0))
            return weft__fail(
                NULL, WEFT_ERR_ARGUMENT,
                "%s: a draft must have the tokens of the model, but token %d is '%.*s', and '%.*s' "
                "in the model",
                path, (int)i, (int)b, y ? y : "", (int)a, x ? x : "");
    }
    return WEFT_OK;
}

static weft_status open_published(weft_context *ctx, const char *path, weft__draft *draft) {
    const weft_published_options options = {.packed = weft__opened_model_packs(ctx)};
    draft->module = weft_published_new(ctx, path, &options);
    WEFT_TRY(weft_module_status(draft->module));
    WEFT_TRY(weft_published_load(draft->module, path));
    weft_module_set_training(draft->module, false);
    return weft_published_tokenizer(ctx, path, &draft->tokenizer);
}

weft_status weft__draft_open(const weft__opened_model *opened, const char *path, weft_generate_options *how,
                             weft__draft *draft) {
    weft_context *ctx = opened->model.ctx;
    *draft = (weft__draft){0};
    if (!path) return WEFT_OK;
    const bool published = weft_published_is(path);
    WEFT_TRY(published ? open_published(ctx, path, draft) : weft_run_open(ctx, path, &draft->run));
    WEFT_TRY(same_tokens(path, weft__dataset_tokenizer(&opened->dataset),
                         published ? draft->tokenizer : weft_run_tokenizer(draft->run)));
    draft->cache = weft_decode_state_new(published ? draft->module : weft_run_module(draft->run));
    how->draft = draft->cache;
    how->drafted = &draft->counts;
    return draft->cache ? WEFT_OK : weft_last_status(ctx);
}

void weft__draft_close(weft__draft *draft) {
    weft_decode_state_free(draft->cache);
    weft_tokenizer_free(draft->tokenizer);
    weft_module_free(draft->module);
    weft_run_close(draft->run);
}
