/* Gives each pair of preferences a row: the chosen conversation, then the rejected one. Must not know: files.
 * Read next: chats_pack.c, nn/gpt.c. */
#include <string.h>

#include <weft/preferences.h>

#include "text/chats.h"

/* A pair with its places: tokens that are predicted, one less than a conversation has. */
typedef struct pair {
    const int32_t *tokens[2];
    const bool *learned[2];
    int64_t length[2];
} pair;

typedef struct pairing {
    const weft_chats *chats;
    int64_t context;
    pair *pairs;
    int64_t count, longest;
    weft_chats_packed packed;
} pairing;

/* Shortens the longer side, then both, until they fit. */
static void shorten(int64_t length[2], int64_t context) {
    const int longer = length[1] > length[0];
    const int64_t half = context / 2, other = length[!longer] < half ? length[!longer] : half;
    length[!longer] = other;
    length[longer] = context - other;
}

static int64_t learned_of(const pair *p, int side) {
    int64_t count = 0;
    for (int64_t t = 1; t <= p->length[side]; t++) count += p->learned[side][t];
    return count;
}

/* Adds a pair, unless nothing of one side is learned. */
static weft_status pair_add(pairing *k, int64_t number) {
    pair p;
    size_t count[2];
    if (number < 0 || number >= weft_chats_count(k->chats) / 2)
        return weft__fail(k->chats->ctx, WEFT_ERR_ARGUMENT, "weft_preferences_pack: there is no pair %lld",
                          (long long)number);
    for (int i = 0; i < 2; i++) {
        p.tokens[i] = weft_chats_tokens(k->chats, 2 * number + i, &p.learned[i], &count[i]);
        p.length[i] = count[i] > 0 ? (int64_t)count[i] - 1 : 0;
    }
    const bool cut = p.length[0] + p.length[1] > k->context;
    if (cut) shorten(p.length, k->context);
    const int64_t learned[2] = {learned_of(&p, 0), learned_of(&p, 1)}, length = p.length[0] + p.length[1];
    if (learned[0] == 0 || learned[1] == 0) {
        k->packed.dropped++;
        return WEFT_OK;
    }
    k->packed.cut += cut;
    k->packed.tokens += length;
    k->packed.learned += learned[0] + learned[1];
    k->packed.same +=
        count[0] == count[1] && memcmp(p.tokens[0], p.tokens[1], count[0] * sizeof *p.tokens[0]) == 0;
    if (length > k->longest) k->longest = length;
    k->pairs[k->count++] = p;
    return WEFT_OK;
}

/* Writes a row of tokens, of their beginnings, and of both targets. A token that fills the row begins a
 * conversation of its own. */
static void fill_row(const pair *p, int64_t time, int32_t *x, int32_t *y) {
    int64_t place = 0;
    for (int64_t t = 0; t < 2 * time; t++) y[t] = -1;
    for (int side = 0; side < 2; side++) {
        for (int64_t t = 0; t < p->length[side]; t++) {
            x[place + t] = p->tokens[side][t];
            x[time + place + t] = (int32_t)place;
            if (p->learned[side][t + 1]) y[side * time + place + t] = p->tokens[side][t + 1];
        }
        place += p->length[side];
    }
    for (; place < time; place++) {
        x[place] = 0;
        x[time + place] = (int32_t)place;
    }
}

static weft_status pack(pairing *k, const int64_t *chosen, int64_t n, weft_array *x, weft_array *y) {
    weft_context *ctx = k->chats->ctx;
    for (int64_t i = 0; i < n; i++) WEFT_TRY(pair_add(k, chosen ? chosen[i] : i));
    if (k->count == 0)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "no pair keeps both answers in a row of %lld tokens: set a longer context",
                          (long long)k->context);
    const int64_t shape[3] = {k->count, 2, k->longest}, row = 2 * k->longest;
    WEFT_TRY(weft_array_new(ctx, WEFT_I32, 3, shape, x));
    const weft_status status = weft_array_new(ctx, WEFT_I32, 3, shape, y);
    if (status != WEFT_OK) weft_array_free(ctx, x);
    for (int64_t i = 0; i < k->count && status == WEFT_OK; i++)
        fill_row(&k->pairs[i], k->longest, (int32_t *)x->data + i * row, (int32_t *)y->data + i * row);
    return status;
}

weft_status weft_preferences_pack(const weft_chats *pairs, const int64_t *chosen, int64_t n, int64_t context,
                                  weft_array *x, weft_array *y, weft_chats_packed *packed) {
    WEFT_NEED(NULL, pairs);
    WEFT_NEED(pairs->ctx, x);
    WEFT_NEED(pairs->ctx, y);
    *x = *y = (weft_array){0};
    if (!chosen) n = (int64_t)(pairs->n / 2);
    if (context < 2 || context > INT32_MAX || n < 0)
        return weft__fail(pairs->ctx, WEFT_ERR_ARGUMENT,
                          "weft_preferences_pack: context %lld must be at least 2, and n %lld not negative",
                          (long long)context, (long long)n);
    pairing k = {.chats = pairs, .context = context};
    k.pairs = weft__array(pairs->ctx, (size_t)n + 1, sizeof *k.pairs);
    const weft_status status = k.pairs ? pack(&k, chosen, n, x, y)
                                       : weft__fail_oom(pairs->ctx, (size_t)n * sizeof *k.pairs, "the rows");
    weft__free(pairs->ctx, k.pairs);
    if (packed) *packed = k.packed;
    return status;
}
