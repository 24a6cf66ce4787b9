/* Decoding with a cache of keys and values. The position is an input of the program, so one program serves
 * all positions. The caches are variables that the program updates when it computes the logits. Recurrent
 * models keep their states instead.
 * Must not know: kernels, sampling. Read next: attention.c, decode_many.c, sample.c. */
#include <math.h>
#include <string.h>
#include "compiler/runtime/derive.h"
#include "nn/decode.h"
#include "ops/build.h"

/* Fewer tokens than SHORT_MOST + 1 are not padded if the logits of all are wanted. */
enum { SHORT_MOST = 8 };

/* ---- life ---- */

static void decode_release(weft_decode_state *cache) {
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
    weft_decode_state *cache = user;
    decode_release(cache);
    *cache = (weft_decode_state){.ctx = cache->ctx};
    weft__tombstone_leave(cache->ctx, &cache->tombstone);
}

void weft_decode_state_free(weft_decode_state *cache) {
    if (!cache) return;
    if (!cache->gpt) {
        weft__tombstone_free(cache->ctx, &cache->tombstone);
        return;
    }
    weft_module_cancel_free(cache->gpt, model_gone, cache);
    decode_release(cache);
    weft__free(cache->ctx, cache);
}

static weft_status make_caches(weft_decode_state *cache, const weft_gpt_options *o) {
    weft_context *ctx = cache->ctx;
    const int64_t d = weft__head_width(&o->form, o->width, o->heads);
    const int64_t shape[4] = {1, o->kv_heads ? o->kv_heads : o->heads, cache->capacity, d};
    const weft_dtype dtype = cache->gpt->compute != WEFT_F32 ? cache->gpt->compute : o->dtype;
    int64_t first, end;
    weft__gpt_kept(cache->gpt, &first, &end);
    cache->steps = weft__array(ctx, (size_t)o->layers, sizeof *cache->steps);
    cache->fed = weft__array(ctx, (size_t)cache->capacity, sizeof *cache->fed);
    if (!cache->steps || !cache->fed)
        return weft__fail_oom(ctx, (size_t)o->layers * sizeof *cache->steps, "a cache");
    for (int64_t i = first; i < end; i++) {
        cache->steps[i].keys = weft_variable_new(ctx, "cache.keys", dtype, 4, shape, NULL);
        WEFT_TRY(weft_tensor_status(cache->steps[i].keys));
        cache->steps[i].values = weft_variable_new(ctx, "cache.values", dtype, 4, shape, NULL);
        WEFT_TRY(weft_tensor_status(cache->steps[i].values));
    }
    return WEFT_OK;
}

weft_decode_state *weft_decode_state_new_sized(weft_module *gpt, int64_t capacity) {
    WEFT_NEED_OR(NULL, NULL, gpt);
    if (weft_module_status(gpt) != WEFT_OK) return NULL;
    weft_context *ctx = gpt->ctx;
    const weft_gpt_options *o = weft__gpt_options_of(gpt);
    const int64_t recurrent = weft__recurrent_vocab(gpt);
    if (!o && !recurrent) {
        weft__fail(ctx, WEFT_ERR_ARGUMENT,
                   "weft_decode_state_new: '%s' was not made by weft_nn_gpt or weft_nn_recurrent_lm",
                   gpt->kind);
        return NULL;
    }
    if (capacity < 0 || (o && capacity > o->context)) {
        weft__fail(
            ctx, WEFT_ERR_ARGUMENT,
            "weft_decode_state_new_sized: a capacity of %lld: give 1 to %lld, the context of the model, or "
            "0 for all of it",
            (long long)capacity, (long long)(o ? o->context : INT64_MAX));
        return NULL;
    }
    weft_decode_state *cache = weft__zalloc(ctx, sizeof *cache);
    if (!cache) {
        weft__fail_oom(ctx, sizeof *cache, "a cache");
        return NULL;
    }
    cache->ctx = ctx;
    cache->gpt = gpt;
    cache->vocab = o ? o->vocab : recurrent;
    cache->layers = o ? o->layers : 0;
    cache->capacity = !o ? INT64_MAX : capacity ? capacity : o->context;
    cache->identity = ++ctx->identities;
    if ((!o || make_caches(cache, o) == WEFT_OK) && weft_module_on_free(gpt, model_gone, cache) == WEFT_OK)
        return cache;
    decode_release(cache);
    weft__free(ctx, cache);
    return NULL;
}

weft_decode_state *weft_decode_state_new(weft_module *gpt) {
    WEFT_NEED_OR(NULL, NULL, gpt);
    return weft_decode_state_new_sized(gpt, 0);
}

weft_decode_state *weft_gpt_cache_new(weft_module *gpt) { return weft_decode_state_new(gpt); }

void weft_gpt_cache_free(weft_decode_state *cache) { weft_decode_state_free(cache); }

void weft__gpt_cache_link(weft_decode_state *cache, weft_decode_state *next) { cache->next = next; }

/* Sets how many tokens a cache and those that follow it hold. Later keys and values are overwritten. */
static void set_length(weft_decode_state *cache, int64_t length) {
    for (; cache; cache = cache->next) cache->length = length;
}

void weft_decode_state_reset(weft_decode_state *cache) {
    if (!cache) return;
    set_length(cache, 0);
    weft_free(cache->states.h);
    weft_free(cache->states.c);
    cache->states = (weft_states){NULL, NULL};
}

int64_t weft_decode_state_keep(weft_decode_state *cache, const int32_t *tokens, int64_t count) {
    int64_t same = 0;
    while (cache && cache->fed && tokens && same < count && same < cache->length &&
           cache->fed[same] == tokens[same])
        same++;
    if (same == 0)
        weft_decode_state_reset(cache);
    else
        set_length(cache, same);
    return same;
}

void weft__gpt_cache_cut(weft_decode_state *cache, int64_t length) { set_length(cache, length); }
bool weft__gpt_cache_cuts(const weft_decode_state *cache) { return cache->fed != NULL; }

int64_t weft_decode_state_length(const weft_decode_state *cache) { return cache ? cache->length : 0; }
int64_t weft_decode_state_capacity(const weft_decode_state *cache) { return cache ? cache->capacity : 0; }
weft_context *weft__gpt_cache_context(const weft_decode_state *cache) { return cache->ctx; }
int64_t weft__gpt_cache_vocab(const weft_decode_state *cache) { return cache->vocab; }

/* ---- a step ---- */

/* The texts of a step. */
typedef struct running {
    weft_decode_state *const *texts;
    int64_t count;
} running;

static weft_status assign_caches(void *user, weft_context *ctx, weft_derived *derived) {
    const running *r = user;
    int64_t first, end;
    (void)ctx;
    weft__gpt_kept(r->texts[0]->gpt, &first, &end);
    for (int64_t i = 0; i < r->count; i++)
        for (int64_t k = first; k < end; k++) {
            const weft__decode *step = &r->texts[i]->steps[k];
            WEFT_TRY(weft__derived_assign(derived, step->keys, step->next_keys));
            WEFT_TRY(weft__derived_assign(derived, step->values, step->next_values));
        }
    return WEFT_OK;
}

weft_tensor *weft__gpt_record(weft_decode_state *const *texts, const weft__decode_step *step,
                              weft_tensor *tokens) {
    weft_module *gpt = texts[0]->gpt, *root = weft__module_root(gpt);
    root->decoding = true;
    weft__gpt_decode(gpt, step);
    weft_tensor *out = weft_forward_at(NULL, gpt, tokens);
    weft__gpt_decode(gpt, NULL);
    root->decoding = false;
    const bool stays = weft__poisoned(out) || out->dtype == WEFT_F32 || texts[0]->next;
    return stays ? out : weft_cast_at(NULL, out, WEFT_F32);
}

weft_status weft__gpt_run(weft_decode_state *const *texts, int64_t count, weft_tensor *out, void *values) {
    weft_context *ctx = texts[0]->ctx;
    running user = {texts, count};
    WEFT_TRY(weft_tensor_status(out));
    weft_hash key;
    weft__hash_init(&key);
    weft__hash_str(&key, "gpt cache");
    for (int64_t i = 0; i < count; i++) weft__hash_u64(&key, texts[i]->identity);
    weft_derivation derivation = {
        .roots = &out, .n_roots = 1, .key = key, .build = assign_caches, .user = &user};
    WEFT_TRY(weft__derive_run(ctx, &derivation));
    return weft_read(out, values, (size_t)weft_numel(out) * weft_dtype_size(weft_dtype_of(out)));
}

weft_tensor *weft__gpt_cache_record(weft_decode_state *cache, weft_tensor *tokens, weft_tensor *position,
                                    weft_tensor *last) {
    const weft__decode_step step = {.position = position, .last = last, .texts = &cache->steps, .count = 1};
    for (int64_t i = 0; i < cache->layers; i++) cache->steps[i].position = position;
    return weft__gpt_record(&cache, &step, tokens);
}

bool weft__gpt_cache_state(const weft_decode_state *cache, int64_t i, weft_tensor **variable,
                           weft_tensor **next) {
    if (i >= 2 * cache->layers) return false;
    const weft__decode *step = &cache->steps[i / 2];
    *variable = i % 2 ? step->values : step->keys;
    *next = i % 2 ? step->next_values : step->next_keys;
    return true;
}

static weft_status feed_next(weft_decode_state *cache, weft_tensor *hidden, int64_t count, bool all,
                             float *logits);

/* Feeds an input of `count` tokens and padding: tokens (1, T), or their hidden states. Passes the hidden
 * states on if blocks follow on another device. Writes the logits (vocab) of the last token, or with `all`
 * those of all tokens, which then need no padding. Padding comes after the tokens, which therefore do not see
 * it. The next step overwrites its keys and values. */
static weft_status feed_input(weft_decode_state *cache, weft_tensor *input, int64_t count, bool all,
                              float *logits) {
    weft_context *ctx = cache->gpt->ctx;
    const char *where = NULL;
    weft_tensor *position = weft_scalar_of(ctx, WEFT_I32, (double)cache->length), *last = NULL;
    if (!cache->next && !weft__poisoned(input) && input->shape[1] > 1 && !all)
        last = weft_reshape_at(where, weft_scalar_of(ctx, WEFT_I32, (double)(count - 1)), 1, (int64_t[]){1});
    weft_tensor *out = weft__gpt_cache_record(cache, input, position, last);
    return cache->next ? feed_next(cache, out, count, all, logits) : weft__gpt_run(&cache, 1, out, logits);
}

weft_status weft__gpt_pass(weft_decode_state *const *texts, int64_t count, weft_tensor *hidden,
                           weft_tensor **there) {
    const weft_decode_state *first = texts[0];
    WEFT_TRY(weft_tensor_status(hidden));
    const weft_dtype dtype = weft_dtype_of(hidden);
    const int64_t shape[3] = {1, weft_dim(hidden, 1), weft_dim(hidden, 2)};
    const size_t bytes = (size_t)weft_numel(hidden) * weft_dtype_size(dtype);
    void *values = weft__alloc(first->ctx, bytes);
    if (!values) return weft__fail_oom(first->ctx, bytes, "hidden states");
    const weft_status status = weft__gpt_run(texts, count, hidden, values);
    if (status == WEFT_OK) *there = weft_from(first->next->ctx, dtype, 3, shape, values);
    weft__free(first->ctx, values);
    return status;
}

/* Feeds the hidden states (1, T, width) of a cache to the next device. */
static weft_status feed_next(weft_decode_state *cache, weft_tensor *hidden, int64_t count, bool all,
                             float *logits) {
    weft_tensor *there = NULL;
    weft_scope *scope = weft_scope_open(cache->next->ctx);
    weft_status status = scope ? weft__gpt_pass(&cache, 1, hidden, &there) : WEFT_ERR_OOM;
    if (status == WEFT_OK) status = feed_input(cache->next, there, count, all, logits);
    weft_scope_close(scope);
    return status;
}

/* Feeds `count` tokens, padded to `padded` tokens. */
static weft_status feed_padded(weft_decode_state *cache, const int32_t *tokens, int64_t count, int64_t padded,
                               bool all, float *logits) {
    weft_context *ctx = cache->gpt->ctx;
    int32_t *ids = weft__array(ctx, (size_t)padded, sizeof *ids);
    if (!ids) return weft__fail_oom(ctx, (size_t)padded * sizeof *ids, "tokens");
    memcpy(ids, tokens, (size_t)count * sizeof *ids);
    weft_tensor *input = weft_from(ctx, WEFT_I32, 2, (int64_t[]){1, padded}, ids);
    weft__free(ctx, ids);
    return feed_input(cache, input, count, all, logits);
}

/* The length to which `count` tokens are padded: 16, 32, 64, ... if that fits into the cache, else 1. *taken
 * gets the number of tokens of this step. Few lengths mean few programs. */
static int64_t padded_length(const weft_decode_state *cache, int64_t count, int64_t *taken) {
    int64_t room = cache->capacity - cache->length, padded = WEFT__LEAST_PROMPT;
    if (count > 1 && padded <= room) {
        while (padded < count && padded * 2 <= room) padded *= 2;
        *taken = count < padded ? count : padded;
        return padded;
    }
    *taken = 1;
    return 1;
}

weft_status weft__gpt_feed_check(const weft_decode_state *cache, const char *name, const int32_t *tokens,
                                 int64_t count, const float *logits) {
    weft_context *ctx = cache->ctx;
    if (!cache->gpt)
        return weft__fail(ctx, WEFT_ERR_STATE,
                          "%s: the cache's model was freed: free the model after its last token", name);
    if (!tokens || !logits || count < 1)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "%s: tokens, logits and a count of at least 1 are needed",
                          name);
    if (count > cache->capacity - cache->length)
        return weft__fail(ctx, WEFT_ERR_STATE,
                          "%s: %lld tokens do not fit after the %lld in a cache for %lld: reset "
                          "the cache and feed the end of the text again",
                          name, (long long)count, (long long)cache->length, (long long)cache->capacity);
    for (int64_t i = 0; i < count; i++)
        if (tokens[i] < 0 || tokens[i] >= cache->vocab)
            return weft__fail(ctx, WEFT_ERR_INDEX, "%s: token %d at %lld is not in 0..%lld", name,
                              (int)tokens[i], (long long)i, (long long)cache->vocab - 1);
    return WEFT_OK;
}

/* Feeds tokens in steps. With `all`, SHORT_MOST tokens or fewer are a step, and each writes its logits. */
static weft_status feed_steps(weft_decode_state *cache, const int32_t *tokens, int64_t count, bool all,
                              float *logits) {
    const int64_t before = cache->length;
    weft_status status = WEFT_OK;
    for (int64_t done = 0, taken; done < count && status == WEFT_OK; done += taken) {
        taken = weft__smaller(count - done, SHORT_MOST);
        const int64_t padded = all ? taken : padded_length(cache, count - done, &taken);
        float *to = all ? logits + done * cache->vocab : logits;
        weft_scope *scope = weft_scope_open(cache->ctx);
        status = scope ? feed_padded(cache, tokens + done, taken, padded, all, to) : WEFT_ERR_OOM;
        weft_scope_close(scope);
        if (status != WEFT_OK) break;
        memcpy(cache->fed + cache->length, tokens + done, (size_t)taken * sizeof *tokens);
        set_length(cache, cache->length + taken);
    }
    if (status != WEFT_OK) set_length(cache, before);
    return status;
}

weft_status weft_gpt_feed(weft_decode_state *cache, const int32_t *tokens, int64_t count, float *logits) {
    WEFT_NEED(NULL, cache);
    WEFT_TRY(weft__gpt_feed_check(cache, "weft_gpt_feed", tokens, count, logits));
    if (!weft__recurrent_vocab(cache->gpt)) return feed_steps(cache, tokens, count, false, logits);
    WEFT_TRY(weft__recurrent_feed(cache->gpt, &cache->states, tokens, count, logits));
    cache->length += count;
    return WEFT_OK;
}

weft_status weft_gpt_feed_all(weft_decode_state *cache, const int32_t *tokens, int64_t count, float *logits) {
    WEFT_NEED(NULL, cache);
    WEFT_TRY(weft__gpt_feed_check(cache, "weft_gpt_feed_all", tokens, count, logits));
    if (weft__recurrent_vocab(cache->gpt))
        return weft__fail(cache->ctx, WEFT_ERR_UNSUPPORTED,
                          "weft_gpt_feed_all: a recurrent model gives the logits of the last token only: use "
                          "weft_gpt_feed for each token");
    return feed_steps(cache, tokens, count, true, logits);
}
