/* Packs conversations into rows of a fixed length: best fit, the longest first (Johnson 1974, "Fast
 * algorithms for bin packing"). Rows with the same room left are a list, so that the best row is found in as
 * many steps as a row has tokens. Must not know: files. Read next: chats.c, nn/gpt.c. */
#include <stdlib.h>
#include <string.h>

#include "text/chats.h"

typedef struct piece {
    int64_t chat, length; /* predicted tokens: one less than the conversation has */
    int64_t row, place;
} piece;

typedef struct packing {
    const weft_chats *chats;
    int64_t context, rows;
    piece *pieces;
    int64_t count;
    int64_t *newest; /* [context + 1] the newest row with so much room left, -1: none */
    int64_t *older;  /* [row] the row before it in the same list */
    weft_chats_packed packed;
} packing;

static int longer_first(const void *a, const void *b) {
    const piece *p = a, *q = b;
    if (p->length != q->length) return p->length < q->length ? 1 : -1;
    return p->chat < q->chat ? -1 : p->chat > q->chat;
}

/* Lists the conversations of chosen a learned token fits in a row. */
static weft_status list_pieces(packing *k, const int64_t *chosen, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        const int64_t chat = chosen ? chosen[i] : i;
        const bool *learned;
        size_t count;
        int64_t learns = 0;
        if (!weft_chats_tokens(k->chats, chat, &learned, &count))
            return weft__fail(k->chats->ctx, WEFT_ERR_ARGUMENT,
                              "weft_chats_pack: there is no conversation %lld", (long long)chat);
        const int64_t whole = (int64_t)count - 1, length = whole < k->context ? whole : k->context;
        for (int64_t t = 1; t <= length; t++) learns += learned[t];
        k->packed.cut += learns > 0 && length < whole;
        k->packed.dropped += learns == 0;
        k->packed.learned += learns;
        k->packed.tokens += learns > 0 ? length : 0;
        if (learns > 0) k->pieces[k->count++] = (piece){.chat = chat, .length = length};
    }
    if (k->count > 0) return WEFT_OK;
    return weft__fail(k->chats->ctx, WEFT_ERR_ARGUMENT,
                      "no conversation has a learned token among its first %lld: set a longer context",
                      (long long)k->context + 1);
}

/* Gives each piece its row, and its place in the row. */
static void place_pieces(packing *k) {
    qsort(k->pieces, (size_t)k->count, sizeof *k->pieces, longer_first);
    for (int64_t room = 0; room <= k->context; room++) k->newest[room] = -1;
    for (int64_t i = 0; i < k->count; i++) {
        piece *p = &k->pieces[i];
        int64_t room = p->length;
        while (room <= k->context && k->newest[room] < 0) room++;
        if (room > k->context) { /* a new row */
            room = k->context;
            p->row = k->rows++;
        } else {
            p->row = k->newest[room];
            k->newest[room] = k->older[p->row];
        }
        p->place = k->context - room;
        k->older[p->row] = k->newest[room - p->length];
        k->newest[room - p->length] = p->row;
    }
}

/* Writes the rows. A token that fills a row begins a conversation of its own. */
static void fill_rows(const packing *k, int32_t *x, int32_t *y) {
    const int64_t context = k->context;
    for (int64_t r = 0; r < k->rows; r++)
        for (int64_t t = 0; t < context; t++) {
            x[(2 * r + 1) * context + t] = (int32_t)t;
            y[r * context + t] = -1;
        }
    for (int64_t i = 0; i < k->count; i++) {
        const piece *p = &k->pieces[i];
        const bool *learned;
        const int32_t *tokens = weft_chats_tokens(k->chats, p->chat, &learned, NULL);
        int32_t *of_x = x + 2 * p->row * context + p->place, *of_y = y + p->row * context + p->place;
        for (int64_t t = 0; t < p->length; t++) {
            of_x[t] = tokens[t];
            of_x[context + t] = (int32_t)p->place;
            if (learned[t + 1]) of_y[t] = tokens[t + 1];
        }
    }
}

static weft_status pack(packing *k, const int64_t *chosen, int64_t n, weft_array *x, weft_array *y) {
    weft_context *ctx = k->chats->ctx;
    WEFT_TRY(list_pieces(k, chosen, n));
    place_pieces(k);
    WEFT_TRY(weft_array_new(ctx, WEFT_I32, 3, (int64_t[]){k->rows, 2, k->context}, x));
    const weft_status status = weft_array_new(ctx, WEFT_I32, 2, (int64_t[]){k->rows, k->context}, y);
    if (status == WEFT_OK)
        fill_rows(k, x->data, y->data);
    else
        weft_array_free(ctx, x);
    return status;
}

weft_status weft_chats_pack(const weft_chats *chats, const int64_t *chosen, int64_t n, int64_t context,
                            weft_array *x, weft_array *y, weft_chats_packed *packed) {
    WEFT_NEED(NULL, chats);
    WEFT_NEED(chats->ctx, x);
    WEFT_NEED(chats->ctx, y);
    *x = *y = (weft_array){0};
    if (!chosen) n = (int64_t)chats->n;
    if (context < 1 || context > INT32_MAX || n < 0)
        return weft__fail(chats->ctx, WEFT_ERR_ARGUMENT,
                          "weft_chats_pack: context %lld and n %lld must be positive", (long long)context,
                          (long long)n);
    packing k = {.chats = chats, .context = context};
    k.pieces = weft__array(chats->ctx, (size_t)n + 1, sizeof *k.pieces);
    k.older = weft__array(chats->ctx, (size_t)n + 1, sizeof *k.older);
    k.newest = weft__array(chats->ctx, (size_t)context + 1, sizeof *k.newest);
    const weft_status status = k.pieces && k.older && k.newest
                                   ? pack(&k, chosen, n, x, y)
                                   : weft__fail_oom(chats->ctx, (size_t)n * sizeof *k.pieces, "the rows");
    weft__free(chats->ctx, k.pieces);
    weft__free(chats->ctx, k.older);
    weft__free(chats->ctx, k.newest);
    if (packed) *packed = k.packed;
    return status;
}
