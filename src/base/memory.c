/* Host memory: allocation through the context, aligned blocks, growing arrays, the arena. All memory of the
 * library comes from `reallocate`, so that tests can make any allocation fail. Functions here return NULL on
 * failure and set no error. The caller knows the purpose of the memory and calls weft__fail_oom.
 * Must not know: what is stored. Read next: strings.c. */
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

static void *reallocate(weft_context *ctx, void *old, size_t bytes) {
    if (ctx && ctx->caller.alloc) return ctx->caller.alloc(ctx->caller.alloc_user, old, bytes);
    if (bytes == 0) {
        free(old);
        return NULL;
    }
    return realloc(old, bytes);
}

/* Size 0 would mean "free" to the allocator. A size above PTRDIFF_MAX is an overflow in the caller. */
void *weft__realloc(weft_context *ctx, void *old, size_t bytes) {
    if (bytes > PTRDIFF_MAX) return NULL;
    return reallocate(ctx, old, bytes ? bytes : 1);
}

void *weft__alloc(weft_context *ctx, size_t bytes) { return weft__realloc(ctx, NULL, bytes); }

void *weft__zalloc(weft_context *ctx, size_t bytes) {
    if (bytes > PTRDIFF_MAX) return NULL;
    if (!ctx || !ctx->caller.alloc) return calloc(1, bytes ? bytes : 1); /* fresh pages are zero already */
    void *p = weft__alloc(ctx, bytes);
    if (p) memset(p, 0, bytes);
    return p;
}

void *weft__array(weft_context *ctx, size_t count, size_t size) {
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes)) return NULL;
    return weft__zalloc(ctx, bytes);
}

void weft__free(weft_context *ctx, void *p) {
    if (p) reallocate(ctx, p, 0);
}

char *weft__strdup(weft_context *ctx, const char *s) {
    size_t bytes = strlen(s) + 1;
    char *copy = weft__alloc(ctx, bytes);
    if (copy) memcpy(copy, s, bytes);
    return copy;
}

/* ---- aligned blocks ----
 * An aligned block is part of a larger one. The pointer to free stands right before it:
 *
 *     | unused | pointer to all of it | data, at a multiple of 64 bytes | */

#define ALIGNMENT 64

void *weft__alloc_aligned(weft_context *ctx, size_t bytes) {
    const size_t extra = sizeof(void *) + ALIGNMENT - 1;
    if (bytes > PTRDIFF_MAX - extra) return NULL;
    char *raw = weft__alloc(ctx, bytes + extra);
    if (!raw) return NULL;
    uintptr_t first = (uintptr_t)raw + sizeof(void *);
    char *aligned = raw + sizeof(void *) + (ALIGNMENT - first % ALIGNMENT) % ALIGNMENT;
    memcpy(aligned - sizeof raw, &raw, sizeof raw);
    return aligned;
}

void weft__free_aligned(weft_context *ctx, void *p) {
    if (!p) return;
    void *raw;
    memcpy(&raw, (char *)p - sizeof raw, sizeof raw);
    weft__free(ctx, raw);
}

/* ---- growing arrays ---- */

/* array_pointer is a T**. It is read and written as bytes, because T is not known here. */
bool weft__grow(weft_context *ctx, void *array_pointer, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity) return true;
    size_t wanted = *capacity < 8 ? 8 : *capacity, bytes;
    if (*capacity >= 8 && __builtin_mul_overflow(*capacity, (size_t)2, &wanted)) return false;
    if (wanted <= count && __builtin_add_overflow(count, (size_t)1, &wanted)) return false;
    if (__builtin_mul_overflow(wanted, size, &bytes)) return false;
    void *array;
    memcpy(&array, array_pointer, sizeof array);
    array = weft__realloc(ctx, array, bytes);
    if (!array) return false;
    memcpy(array_pointer, &array, sizeof array);
    *capacity = wanted;
    return true;
}

/* ---- the arena ---- */

#define ARENA_ALIGN     16
#define ARENA_MIN_BLOCK ((size_t)64 * 1024) /* bytes, header included */

struct weft_arena_block {
    weft_arena_block *older;
    size_t size; /* bytes of data */
    size_t used; /* bytes handed out */
    size_t padding_to_align_data;
};
_Static_assert(sizeof(weft_arena_block) % ARENA_ALIGN == 0, "data would start unaligned");

void weft__arena_init(weft_arena *arena, weft_context *ctx) { *arena = (weft_arena){.ctx = ctx}; }

/* Adds a block with room for `bytes`, twice as large as the newest one. After a few resets one block holds
 * all memory of a step. */
static weft_arena_block *arena_add(weft_arena *arena, size_t bytes) {
    const size_t header = sizeof(weft_arena_block);
    size_t size = ARENA_MIN_BLOCK - header;
    if (arena->block && arena->block->size > size / 2 && arena->block->size < PTRDIFF_MAX / 4)
        size = 2 * arena->block->size;
    if (size < bytes) size = bytes;
    weft_arena_block *block = weft__alloc(arena->ctx, header + size);
    if (!block && size > bytes) { /* memory is short: take no more than needed */
        size = bytes;
        block = weft__alloc(arena->ctx, header + size);
    }
    if (!block) return NULL;
    *block = (weft_arena_block){.size = size};
    weft_arena_block *top = arena->block;
    if (top && top->size - top->used > size - bytes) { /* keep using a half-empty block */
        block->older = top->older;
        top->older = block;
    } else {
        block->older = top;
        arena->block = block;
    }
    return block;
}

void *weft__arena_alloc(weft_arena *arena, size_t bytes) {
    if (bytes > PTRDIFF_MAX / 2) return NULL;
    size_t rounded = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
    if (rounded == 0) rounded = ARENA_ALIGN; /* pointers are distinct, even for 0 bytes */
    weft_arena_block *block = arena->block;
    if (!block || block->size - block->used < rounded) block = arena_add(arena, rounded);
    if (!block) return NULL;
    void *p = (char *)(block + 1) + block->used;
    block->used += rounded;
    return memset(p, 0, rounded);
}

void weft__arena_free(weft_arena *arena) {
    while (arena->block) {
        weft_arena_block *older = arena->block->older;
        weft__free(arena->ctx, arena->block);
        arena->block = older;
    }
}

void weft__arena_reset(weft_arena *arena) {
    weft_arena_block *kept = arena->block; /* the largest block */
    for (weft_arena_block *b = kept; b; b = b->older)
        if (b->size > kept->size) kept = b;
    while (arena->block) {
        weft_arena_block *older = arena->block->older;
        if (arena->block != kept) weft__free(arena->ctx, arena->block);
        arena->block = older;
    }
    if (!kept) return;
    kept->older = NULL;
    kept->used = 0;
    arena->block = kept;
}

/* ---- tombstones ---- */

void weft__tombstone_leave(weft_context *ctx, weft_tombstone *tombstone) {
    tombstone->next = ctx->tombstones;
    ctx->tombstones = tombstone;
}

void weft__tombstone_free(weft_context *ctx, weft_tombstone *tombstone) {
    weft_tombstone **at = &ctx->tombstones;
    while (*at != tombstone) at = &(*at)->next;
    *at = tombstone->next;
    weft__free(ctx, tombstone);
}

void weft__tombstones_free(weft_context *ctx) {
    while (ctx->tombstones) weft__tombstone_free(ctx, ctx->tombstones);
}
