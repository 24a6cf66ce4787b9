/* Device memory, which has guards and is filled with garbage, and pinned host memory. Read next: queue.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "card.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { GUARD = 256, GUARD_BYTE = 0xD7, GARBAGE = 0xCB, ENDS = 1 << 20 };
/* From this size on, pages exist only once they are touched, and only both ends contain garbage. */
#define SPARSE ((size_t)1 << 30)

typedef struct fake_memory {
    struct fake_memory *next;
    char *whole, *at;
    size_t bytes;
    fake_cell *cells; /* of the race detector */
} fake_memory_block;

static fake_memory_block *pinned;
static fake_memory_block *last; /* found by fake_find */

static fake_memory_block *make(size_t bytes) {
    fake_memory_block *b = calloc(1, sizeof *b);
    b->bytes = bytes;
    b->whole = bytes < SPARSE ? malloc(bytes + 3 * GUARD)
                              : mmap(NULL, bytes + 3 * GUARD, PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    b->at = (char *)(((uintptr_t)b->whole + 2 * GUARD - 1) & ~(uintptr_t)(GUARD - 1));
    memset(b->at - GUARD, GUARD_BYTE, GUARD);
    memset(b->at, GARBAGE, bytes < SPARSE ? bytes : ENDS);
    if (bytes >= SPARSE) memset(b->at + bytes - ENDS, GARBAGE, ENDS);
    memset(b->at + bytes, GUARD_BYTE, GUARD);
    fake_cuda.handles++;
    return b;
}

static bool is_whole(const fake_memory_block *b) {
    for (int i = 0; i < GUARD; i++)
        if ((unsigned char)b->at[-1 - i] != GUARD_BYTE ||
            (unsigned char)b->at[b->bytes + (size_t)i] != GUARD_BYTE)
            return false;
    return true;
}

static void drop(fake_memory_block *b) {
    if (last == b) last = NULL;
    fake_cells_free(b->cells, b->bytes);
    if (b->bytes < SPARSE)
        free(b->whole);
    else
        munmap(b->whole, b->bytes + 3 * GUARD);
    free(b);
    fake_cuda.handles--;
}

static bool holds(const fake_memory_block *list, const char *at, size_t bytes) {
    for (; list; list = list->next)
        if (at >= list->at && at <= list->at + list->bytes && bytes <= (size_t)(list->at + list->bytes - at))
            return true;
    return false;
}

/* Removes the block that begins at `at` from the list. NULL: there is none. */
static fake_memory_block *take(fake_memory_block **list, const char *at) {
    for (; *list; list = &(*list)->next)
        if ((*list)->at == at) {
            fake_memory_block *b = *list;
            *list = b->next;
            return b;
        }
    return NULL;
}

static char *pointer(CUdeviceptr p) { return (char *)(uintptr_t)p; }

bool fake_is_memory(CUcontext context, CUdeviceptr at, size_t bytes) {
    return holds(context->memory, pointer(at), bytes);
}

__attribute__((visibility("default"))) int fake_is_on_card(const void *at, unsigned long bytes) {
    CUresult error;
    CUcontext context = fake_context("a library", &error);
    pthread_mutex_lock(&fake_lock);
    const bool is = !error && holds(context->memory, at, bytes);
    pthread_mutex_unlock(&fake_lock);
    return is;
}

bool fake_is_pinned(const void *at, size_t bytes) { return holds(pinned, at, bytes); }

/* Looks in the memory of all contexts. */
fake_where fake_find(const char *at, size_t bytes, fake_cell ***cells, size_t *offset, size_t *all) {
    for (int i = -1; i < fake_contexts(NULL); i++) {
        fake_memory_block *b = i < 0 ? last : NULL;
        CUcontext context;
        if (i >= 0) fake_contexts(&context), b = context[i].memory;
        for (; b; b = i < 0 ? NULL : b->next) {
            if (at < b->at - GUARD || at >= b->at + b->bytes + GUARD) continue;
            if (at < b->at || at + bytes > b->at + b->bytes) return FAKE_GUARD;
            last = b;
            *cells = &b->cells;
            *offset = (size_t)(at - b->at);
            *all = b->bytes;
            return FAKE_INSIDE;
        }
    }
    return FAKE_ELSEWHERE;
}

/* The block moves to the front of its list: the next launch probably uses it, too. */
bool fake_memory_range(CUcontext context, const char *at, uint64_t *begin, uint64_t *end) {
    fake_memory_block **const lists[] = {&context->memory, &pinned};
    for (int i = 0; i < 2; i++)
        for (fake_memory_block **list = lists[i], **place = list; *place; place = &(*place)->next) {
            fake_memory_block *b = *place;
            if (at < b->at || at >= b->at + b->bytes) continue;
            *begin = (uint64_t)(uintptr_t)b->at;
            *end = *begin + b->bytes;
            *place = b->next;
            b->next = *list;
            *list = b;
            return true;
        }
    return false;
}

void fake_memory_reset(CUcontext context) {
    while (context->memory) {
        fake_memory_block *b = take(&context->memory, context->memory->at);
        fake_cuda.in_use -= (long)b->bytes;
        drop(b);
    }
}

API cuMemAlloc_v2(CUdeviceptr *memory, size_t bytes) {
    CUresult error;
    ENTER("cuMemAlloc");
    if (fake_in_capture(function_name)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    if (!bytes) LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "0 bytes"));
    const bool wished = fake_cuda.fail_alloc && --fake_cuda.fail_alloc == 0;
    if (wished || bytes > fake_memory() || (size_t)fake_cuda.in_use > fake_memory() - bytes)
        LEAVE(CUDA_ERROR_OUT_OF_MEMORY);
    fake_memory_block *b = make(bytes);
    b->next = context->memory;
    context->memory = b;
    fake_cuda.allocations++;
    fake_cuda.in_use += (long)bytes;
    *memory = (CUdeviceptr)(uintptr_t)b->at;
    LEAVE(0);
}

/* Waits for all submitted work, as the driver does. */
API cuMemFree_v2(CUdeviceptr memory) {
    CUresult error;
    ENTER("cuMemFree");
    if (fake_in_capture(function_name)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    fake_drain(context);
    fake_memory_block *b = take(&context->memory, pointer(memory));
    if (!b) LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "no memory begins there"));
    const bool whole = is_whole(b);
    fake_cuda.in_use -= (long)b->bytes;
    drop(b);
    LEAVE(whole ? context->failed
                : fake_refuse(function_name, CUDA_ERROR_ILLEGAL_ADDRESS, "written beyond its ends"));
}

API cuMemGetInfo_v2(size_t *unused, size_t *total) {
    *total = fake_memory();
    *unused = *total - (size_t)fake_cuda.in_use;
    return 0;
}

API cuMemHostAlloc(void **memory, size_t bytes, unsigned flags) {
    CUresult error;
    ENTER("cuMemHostAlloc");
    if (fake_in_capture(function_name)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    (void)flags;
    fake_memory_block *b = make(bytes);
    b->next = pinned;
    pinned = b;
    *memory = b->at;
    LEAVE(0);
}

API cuMemFreeHost(void *memory) {
    CUresult error;
    ENTER("cuMemFreeHost");
    if (fake_in_capture(function_name)) LEAVE(CUDA_ERROR_INVALID_VALUE);
    fake_drain(context);
    fake_memory_block *b = take(&pinned, memory);
    if (!b) LEAVE(fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "no memory begins there"));
    const bool whole = is_whole(b);
    drop(b);
    LEAVE(whole ? 0 : fake_refuse(function_name, CUDA_ERROR_INVALID_VALUE, "written beyond its ends"));
}
