/* Decoding with a cache of keys and values. The position is an input of the program, so one program serves
 * all positions. The caches are variables that the program updates when it computes the logits. Recurrent
 * models keep their states instead.
 * Must not know: kernels, sampling. Read next: attention.c, sample.c. */
#include <math.h>
#include <string.h>
#include "compiler/runtime/derive.h"
#include "nn/module.h"
#include "nn/recurrent.h"
#include "ops/build.h"

struct weft_gpt_cache {
    weft_shell shell;
    weft_context *ctx;
    weft_module *gpt; /* NULL after it was freed; then only the shell of the cache is left */
    int64_t length, capacity, layers;
    uint64_t identity;
    weft__decode *steps; /* [layers] */
    weft_states states;  /* states of a recurrent model, used instead of steps */
    int64_t vocab;
    int32_t *fed; /* [capacity] the tokens in the cache; NULL of a recurrent model */
};

enum { LEAST_PROMPT = 16 };

/* ---- life ---- */

static void decode_release(weft_gpt_cache *cache) {
    weft_context *ctx = cache->ctx;
    for (int64_t i = 0; cache->steps && i < cache->layers; i++) {
        weft_free(cache->steps[i].keys);
        weft_free(cache->steps[i].values);
    }
    weft__free(ctx, cache->steps);
    weft__free(ctx, cache->fed);
    weft_free(cache->states.h);
    weft_free(cache->states.c);
}

/* The model was freed. Only a shell remains, which reports an error to whoever still holds the cache. */
static void model_gone(void *user) {
    weft_gpt_cache *cache = user;
    decode_release(cache);
    *cache = (weft_gpt_cache){.ctx = cache->ctx};
    weft__shell_leave(cache->ctx, &cache->shell);
}

void weft_gpt_cache_free(weft_gpt_cache *cache) {
    if (!cache) return;
    if (!cache->gpt) {
        weft__shell_free(cache->ctx, &cache->shell);
        return;
    }
    weft_module_cancel_free(cache->gpt, model_gone, cache);
    decode_release(cache);
    weft__free(cache->ctx, cache);
}

static weft_status make_caches(weft_gpt_cache *cache, const weft_gpt_options *o) {
    weft_context *ctx = cache->ctx;
    const int64_t d = weft__head_width(&o->form, o->width, o->heads);
    const int64_t shape[4] = {1, o->kv_heads ? o->kv_heads : o->heads, o->context, d};
    const weft_dtype dtype = cache->gpt->compute != WEFT_F32 ? cache->gpt->compute : o->dtype;
    cache->steps = weft__array(ctx, (size_t)o->layers, sizeof *cache->steps);
    cache->fed = weft__array(ctx, (size_t)o->context, sizeof *cache->fed);
    if (!cache->steps || !cache->fed)
        return weft__fail_oom(ctx, (size_t)o->layers * sizeof *cache->steps, "a cache");
    for (int64_t i = 0; i < o->layers; i++) {
        cache->steps[i].keys = weft_variable_new(ctx, "cache.keys", dtype, 4, shape, NULL);
        WEFT_TRY(weft_tensor_status(cache->steps[i].keys));
        cache->steps[i].values = weft_variable_new(ctx, "cache.values", dtype, 4, shape, NULL);
        WEFT_TRY(weft_tensor_status(cache->steps[i].values));
    }
    return WEFT_OK;
}

weft_gpt_cache *weft_gpt_cache_new(weft_module *gpt) {
    WEFT_NEED_OR(NULL, NULL, gpt);
    if (weft_module_status(gpt) != WEFT_OK) return NULL;
    weft_context *ctx = gpt->ctx;
    const weft_gpt_options *o = weft__gpt_options_of(gpt);
    const int64_t recurrent = weft__recurrent_vocab(gpt);
    if (!o && !recurrent) {
        weft__fail(ctx, WEFT_ERR_ARGUMENT,
                   "weft_gpt_cache_new: '%s' was not made by weft_nn_gpt or weft_nn_recurrent_lm", gpt->kind);
        return NULL;
    }
    weft_gpt_cache *cache = weft__zalloc(ctx, sizeof *cache);
    if (!cache) {
        weft__fail_oom(ctx, sizeof *cache, "a cache");
        return NULL;
    }
    cache->ctx = ctx;
    cache->gpt = gpt;
    cache->vocab = o ? o->vocab : recurrent;
    cache->layers = o ? o->layers : 0;
    cache->capacity = o ? o->context : INT64_MAX;
    cache->identity = ++ctx->identities;
    if ((!o || make_caches(cache, o) == WEFT_OK) && weft_module_on_free(gpt, model_gone, cache) == WEFT_OK)
        return cache;
    decode_release(cache);
    weft__free(ctx, cache);
    return NULL;
}

void weft_gpt_cache_reset(weft_gpt_cache *cache) {
    if (!cache) return;
    cache->length = 0;
    weft_free(cache->states.h);
    weft_free(cache->states.c);
    cache->states = (weft_states){NULL, NULL};
}

int64_t weft_gpt_cache_keep(weft_gpt_cache *cache, const int32_t *tokens, int64_t count) {
    int64_t same = 0;
    while (cache && cache->fed && tokens && same < count && same < cache->length &&
           cache->fed[same] == tokens[same])
        same++;
    if (same == 0)
        weft_gpt_cache_reset(cache);
    else
        cache->length = same; /* later keys and values are overwritten */
    return same;
}

int64_t weft_gpt_cache_length(const weft_gpt_cache *cache) { return cache ? cache->length : 0; }
int64_t weft_gpt_cache_capacity(const weft_gpt_cache *cache) { return cache ? cache->capacity : 0; }
weft_context *weft__gpt_cache_context(const weft_gpt_cache *cache) { return cache->ctx; }
int64_t weft__gpt_cache_vocab(const weft_gpt_cache *cache) { return cache->vocab; }

/* ---- a step ---- */

static weft_status assign_caches(void *user, weft_context *ctx, weft_derived *derived) {
    const weft_gpt_cache *cache = user;
    (void)ctx;
    for (int64_t i = 0; i < cache->layers; i++) {
        const weft__decode *step = &cache->steps[i];
        WEFT_TRY(weft__derived_assign(derived, step->keys, step->next_keys));
        WEFT_TRY(weft__derived_assign(derived, step->values, step->next_values));
    }
    return WEFT_OK;
}

weft_tensor *weft__gpt_cache_record(weft_gpt_cache *cache, weft_tensor *tokens, weft_tensor *position,
                                    weft_tensor *last) {
    weft_module *gpt = cache->gpt, *root = weft__module_root(gpt);
    for (int64_t i = 0; i < cache->layers; i++) cache->steps[i].position = position;
    root->decoding = true;
    weft__gpt_decode(gpt, position, last, cache->steps);
    weft_tensor *out = weft_forward_at(NULL, gpt, tokens);
    weft__gpt_decode(gpt, NULL, NULL, NULL);
    root->decoding = false;
    return weft__poisoned(out) || out->dtype == WEFT_F32 ? out : weft_cast_at(NULL, out, WEFT_F32);
}

bool weft__gpt_cache_state(const weft_gpt_cache *cache, int64_t i, weft_tensor **variable,
                           weft_tensor **next) {
    if (i >= 2 * cache->layers) return false;
    const weft__decode *step = &cache->steps[i / 2];
    *variable = i % 2 ? step->values : step->keys;
    *next = i % 2 ? step->next_values : step->next_keys;
    return true;
}

/* Feeds `count` tokens, padded to `padded` tokens. Writes the logits (vocab) of the last token. Padding comes
 * after the tokens, which therefore do not see it. The next step overwrites its keys and values. */
static weft_status feed_padded(weft_gpt_cache *cache, const int32_t *tokens, int64_t count, int64_t padded,
                               float *logits) {
    weft_context *ctx = cache->gpt->ctx;
    const char *where = NULL;
    int32_t *ids = weft__array(ctx, (size_t)padded, sizeof *ids);
    if (!ids) return weft__fail_oom(ctx, (size_t)padded * sizeof *ids, "tokens");
    memcpy(ids, tokens, (size_t)count * sizeof *ids);
    weft_tensor *input = weft_from(ctx, WEFT_I32, 2, (int64_t[]){1, padded}, ids);
    weft__free(ctx, ids);
    weft_tensor *position = weft_scalar_of(ctx, WEFT_I32, (double)cache->length), *last = NULL;
    if (padded > 1)
        last = weft_reshape_at(where, weft_scalar_of(ctx, WEFT_I32, (double)(count - 1)), 1, (int64_t[]){1});
    weft_tensor *out = weft__gpt_cache_record(cache, input, position, last);
    WEFT_TRY(weft_tensor_status(out));
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_str(&key, "gpt cache");
    weft__hash_u64(&key, cache->identity);
    weft_derivation derivation = {
        .roots = &out, .n_roots = 1, .key = key, .build = assign_caches, .user = cache};
    WEFT_TRY(weft__derive_run(ctx, &derivation));
    return weft_read(out, logits, (size_t)weft_numel(out) * sizeof *logits);
}

/* The length to which `count` tokens are padded: 16, 32, 64, ... if that fits into the cache, else 1. *taken
 * gets the number of tokens of this step. Few lengths mean few programs. */
static int64_t padded_length(const weft_gpt_cache *cache, int64_t count, int64_t *taken) {
    int64_t room = cache->capacity - cache->length, padded = LEAST_PROMPT;
    if (count > 1 && padded <= room) {
        while (padded < count && padded * 2 <= room) padded *= 2;
        *taken = count < padded ? count : padded;
        return padded;
    }
    *taken = 1;
    return 1;
}

weft_status weft_gpt_feed(weft_gpt_cache *cache, const int32_t *tokens, int64_t count, float *logits) {
    WEFT_NEED(NULL, cache);
    weft_context *ctx = cache->ctx;
    if (!cache->gpt)
        return weft__fail(ctx, WEFT_ERR_STATE,
                          "weft_gpt_feed: the cache's model was freed: free the model after its last token");
    if (!tokens || !logits || count < 1)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "weft_gpt_feed: tokens, logits and a count of at least 1 are needed");
    if (count > cache->capacity - cache->length)
        return weft__fail(ctx, WEFT_ERR_STATE,
                          "weft_gpt_feed: %lld tokens do not fit after the %lld in a cache for %lld: reset "
                          "the cache and feed the end of the text again",
                          (long long)count, (long long)cache->length, (long long)cache->capacity);
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= cache->vocab)
            return weft__fail(ctx, WEFT_ERR_INDEX, "weft_gpt_feed: token %d at %lld is not in 0..%lld",
                              (int)tokens[i], (long long)i, (long long)cache->vocab - 1);
    int64_t before = cache->length;
    if (weft__recurrent_vocab(cache->gpt)) {
        WEFT_TRY(weft__recurrent_feed(cache->gpt, &cache->states, tokens, count, logits));
        cache->length += count;
        return WEFT_OK;
    }
    for (int64_t done = 0, taken; done < count; done += taken) {
        int64_t padded = padded_length(cache, count - done, &taken);
        weft_scope *scope = weft_scope_open(ctx);
        weft_status status = scope ? feed_padded(cache, tokens + done, taken, padded, logits) : WEFT_ERR_OOM;
        weft_scope_close(scope);
        if (status != WEFT_OK) {
            cache->length = before;
            return status;
        }
        memcpy(cache->fed + cache->length, tokens + done, (size_t)taken * sizeof *tokens);
        cache->length += taken;
    }
    return WEFT_OK;
}
