/* Interned strings: a hash set with open addressing, whose texts lie in an arena. Both are freed with the
 * context. Layer paths and names can therefore be compared by pointer.
 * Must not know: what the strings mean. Read next: hash.c. */
#include <string.h>

#include "base/base.h"

struct weft_strings {
    weft_arena texts;
    const char **slots; /* `capacity` entries, a power of two; NULL: free */
    size_t capacity;
    size_t count; /* at most three quarters of capacity */
};

static uint64_t hash_of(const char *s) {
    weft_hash h;
    weft__hash_init(&h);
    weft__hash_str(&h, s);
    return h.a;
}

/* The slot that holds s, or the free one where it belongs. */
static const char **strings_find(const char **slots, size_t capacity, const char *s) {
    size_t at = (size_t)hash_of(s) & (capacity - 1);
    while (slots[at] && strcmp(slots[at], s) != 0) at = (at + 1) & (capacity - 1);
    return &slots[at];
}

static bool rehash(weft_context *ctx, struct weft_strings *set) {
    size_t capacity = set->capacity ? set->capacity * 2 : 64;
    const char **slots = weft__array(ctx, capacity, sizeof *slots);
    if (!slots) return false;
    for (size_t i = 0; i < set->capacity; i++)
        if (set->slots[i]) *strings_find(slots, capacity, set->slots[i]) = set->slots[i];
    weft__free(ctx, set->slots);
    set->slots = slots;
    set->capacity = capacity;
    return true;
}

static struct weft_strings *strings_of(weft_context *ctx) {
    if (!ctx->strings) {
        ctx->strings = weft__zalloc(ctx, sizeof *ctx->strings);
        if (ctx->strings) weft__arena_init(&ctx->strings->texts, ctx);
    }
    return ctx->strings;
}

const char *weft__intern(weft_context *ctx, const char *s) {
    if (!s || !*s) return "";
    struct weft_strings *set = strings_of(ctx);
    if (!set) return NULL;
    if (4 * (set->count + 1) > 3 * set->capacity && !rehash(ctx, set)) return NULL;
    const char **slot = strings_find(set->slots, set->capacity, s);
    if (!*slot) {
        size_t bytes = strlen(s) + 1;
        char *text = weft__arena_alloc(&set->texts, bytes);
        if (!text) return NULL;
        *slot = memcpy(text, s, bytes);
        set->count++;
    }
    return *slot;
}

void weft__strings_free(weft_context *ctx) {
    if (!ctx || !ctx->strings) return;
    weft__arena_free(&ctx->strings->texts);
    weft__free(ctx, ctx->strings->slots);
    weft__free(ctx, ctx->strings);
    ctx->strings = NULL;
}
