/* A context for the fuzz targets of the data readers. Its allocator aborts when the memory in use exceeds a
 * multiple of the input size, so a small file that takes much memory is a finding. So is one that takes much
 * processor time. */
#ifndef WEFT_FUZZ_BOUNDED_H
#define WEFT_FUZZ_BOUNDED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/parse.h"

#define BOUNDED_HEADER 16 /* bytes in front of each block that hold its size */

/* Seconds of processor time that an input may take, with sanitizers, and those for each of its bytes. */
#define BOUNDED_SECONDS          4
#define BOUNDED_SECONDS_PER_BYTE 20e-6

typedef struct bounded {
    size_t live, limit;
    clock_t begun;
} bounded;

static inline void *bounded_alloc(void *user, void *old, size_t size) {
    bounded *b = user;
    size_t before = 0;
    char *raw = NULL;
    if (old) {
        raw = (char *)old - BOUNDED_HEADER;
        memcpy(&before, raw, sizeof before);
    }
    b->live -= before;
    if (size == 0) {
        free(raw);
        return NULL;
    }
    b->live += size;
    if (b->live > b->limit) {
        fprintf(stderr, "%zu bytes live, %zu are allowed for this input\n", b->live, b->limit);
        abort();
    }
    raw = realloc(raw, size + BOUNDED_HEADER);
    if (!raw) abort();
    memcpy(raw, &size, sizeof size);
    return raw + BOUNDED_HEADER;
}

static inline weft_context bounded_context(bounded *b, size_t limit) {
    *b = (bounded){.limit = limit, .begun = clock()};
    return (weft_context){.caller.alloc = bounded_alloc, .caller.alloc_user = b};
}

/* Checks the time since the context was made, or since the last call, for an input of `size` bytes. */
static inline void bounded_time(bounded *b, size_t size) {
    const double seconds = (double)(clock() - b->begun) / CLOCKS_PER_SEC,
                 most = BOUNDED_SECONDS + BOUNDED_SECONDS_PER_BYTE * (double)size;
    if (seconds > most) {
        fprintf(stderr, "%.1f seconds, %.1f are allowed for this input\n", seconds, most);
        abort();
    }
    b->begun = clock();
}

/* Checks that no memory is left in use, and that a failure left a message that names the file. */
static inline void bounded_check(const bounded *b, const weft_context *ctx, weft_status status) {
    if (b->live != 0 || (status != WEFT_OK && !strstr(weft_last_error(ctx), "input"))) {
        fprintf(stderr, "%zu bytes leaked; message: %s\n", b->live, weft_last_error(ctx));
        abort();
    }
}

/* Reads every byte of a result, so that the sanitizers check the memory, and checks the sizes. */
static inline void bounded_walk(const weft_array *a) {
    volatile uint8_t sum = 0;
    size_t bytes = weft_dtype_size(a->dtype);
    for (int d = 0; d < a->rank; d++) bytes *= (size_t)a->shape[d];
    if (bytes != a->bytes || !a->data) abort();
    for (size_t i = 0; i < bytes; i++) sum = (uint8_t)(sum + ((const uint8_t *)a->data)[i]);
}

#endif
