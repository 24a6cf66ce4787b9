/* A context whose N-th allocation fails. It also counts the allocations that are not freed. */
#ifndef WEFT_TESTS_FAILING_ALLOC_H
#define WEFT_TESTS_FAILING_ALLOC_H

#include <stdlib.h>

#include "base/base.h"

typedef struct failing_alloc {
    int calls, fail_at, live; /* fail_at 0: never */
} failing_alloc;

static inline void *failing_realloc(void *user, void *old, size_t size) {
    failing_alloc *f = user;
    if (size == 0) {
        f->live -= old != NULL;
        free(old);
        return NULL;
    }
    if (++f->calls == f->fail_at) return NULL;
    void *p = realloc(old, size);
    f->live += p && !old;
    return p;
}

/* Calls `scenario` with each allocation failing in turn, until none fails. It must return WEFT_OK or
 * WEFT_ERR_OOM and free all memory. Returns the number of allocations, or -1 - N if it went wrong at N. */
static inline int fail_each_allocation(weft_status (*scenario)(weft_context *ctx)) {
    for (int at = 1;; at++) {
        failing_alloc f = {.fail_at = at};
        weft_context ctx = {.caller.alloc = failing_realloc, .caller.alloc_user = &f};
        weft_status status = scenario(&ctx);
        if (f.live != 0) return -1 - at;
        if (status == WEFT_OK && f.calls < at) return at - 1;
        if (status != WEFT_OK && status != WEFT_ERR_OOM) return -1 - at; /* some need less */
    }
}

#endif
