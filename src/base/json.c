/* jansson's memory and its failures, see json.h.
 *
 * jansson has one pair of memory functions for the whole process, and a host program may use jansson too.
 * Weft puts its own pair in front, once. This pair forwards every call to the host's pair, except on a thread
 * on which Weft parses or builds a document at that moment. So memory of the host stays with the host's
 * functions.
 *
 * Must not know: what documents mean. Read next: io/json.c. */
#include <pthread.h>
#include <setjmp.h>
#include <stdatomic.h>
#include <string.h>

#include "base/json.h"

static _Atomic(json_malloc_t) next_malloc;
static _Atomic(json_free_t) next_free;

/* The document that gets this thread's allocations; NULL: jansson works for the host program. */
static _Thread_local weft__json *current;

/* Allocates for jansson. The parser is left by longjmp if memory is short, since it does not survive a failed
 * allocation. The builder's functions do survive. */
static void *json_take(size_t bytes) {
    weft__json *j = current;
    if (!j) return atomic_load_explicit(&next_malloc, memory_order_relaxed)(bytes);
    j->reached = true;
    weft__json_piece *piece = bytes < PTRDIFF_MAX ? weft__alloc(j->ctx, sizeof *piece + bytes) : NULL;
    if (piece) {
        *piece = (weft__json_piece){&j->pieces, j->pieces.after};
        piece->before->after = piece->after->before = piece;
        return piece + 1;
    }
    j->starved = true;
    if (j->escape) longjmp(*(jmp_buf *)j->escape, 1);
    return NULL;
}

static void give(void *p) {
    if (!current) {
        atomic_load_explicit(&next_free, memory_order_relaxed)(p);
    } else if (p) {
        weft__json_piece *piece = (weft__json_piece *)p - 1;
        piece->before->after = piece->after;
        piece->after->before = piece->before;
        weft__free(current->ctx, piece);
    }
}

/* Tests by an allocation whether jansson's functions are ours, or forward to ours: the host may have replaced
 * them. Comparing pointers is not enough, since two copies of Weft in one process would wrap each other
 * without end. */
static bool reaches(weft__json *j, json_malloc_t *there, json_free_t *back) {
    weft__json *outer = current;
    json_get_alloc_funcs(there, back);
    current = j;
    void *probe = (*there)(1);
    if (!j->reached) current = NULL; /* the host's functions made the probe and must free it */
    (*back)(probe);
    current = outer;
    return j->reached;
}

static void take_over(weft__json *j) {
    static pthread_mutex_t guard = PTHREAD_MUTEX_INITIALIZER;
    static atomic_bool done;
    json_malloc_t there;
    json_free_t back;
    if (atomic_load(&done) && reaches(j, &there, &back)) return;
    pthread_mutex_lock(&guard);
    if (!reaches(j, &there, &back)) {
        atomic_store_explicit(&next_malloc, there, memory_order_relaxed);
        atomic_store_explicit(&next_free, back, memory_order_relaxed);
        json_set_alloc_funcs(json_take, give);
    }
    atomic_store(&done, true);
    pthread_mutex_unlock(&guard);
}

void weft__json_open(weft__json *j, weft_context *ctx) {
    *j = (weft__json){.ctx = ctx};
    j->pieces.before = j->pieces.after = &j->pieces;
    take_over(j);
}

weft_status weft__json_load(weft__json *j, const char *text, size_t bytes, size_t flags, json_error_t *error,
                            json_t **root) {
    jmp_buf escape;
    weft__json *outer = current;
    *root = NULL;
    *error = (json_error_t){.line = -1};
    current = j;
    j->escape = &escape;
    if (setjmp(escape) == 0) *root = json_loadb(text, bytes, flags, error);
    j->escape = NULL;
    current = outer;
    if (j->starved) {
        *root = NULL;
        return weft__fail_oom(j->ctx, bytes, "a JSON text");
    }
    return *root ? WEFT_OK : WEFT_ERR_FORMAT;
}

void weft__json_build(weft__json *j, weft_context *ctx) {
    weft__json_open(j, ctx);
    j->building = true;
    j->outer = current;
    current = j;
}

/* Writes twice, into memory of a known size: a dump that allocates while it writes may lose parts of the
 * text. */
static weft_status dump(weft__json *j, const json_t *root, size_t flags, const char *what, char **text,
                        size_t *bytes) {
    weft_context *ctx = j->ctx;
    const size_t length = root && !j->starved ? json_dumpb(root, NULL, 0, flags) : 0;
    if (!root && !j->starved)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT,
                          "%s: it holds a string that is not UTF-8, or a number that is not finite", what);
    char *out = length && !j->starved ? weft__alloc(ctx, length + 1) : NULL;
    if (!out || json_dumpb(root, out, length, flags) != length || j->starved) {
        weft__free(ctx, out);
        return weft__fail_oom(ctx, length + 1, what);
    }
    out[length] = '\0';
    *text = out;
    if (bytes) *bytes = length;
    return WEFT_OK;
}

weft_status weft__json_text(weft__json *j, const json_t *root, size_t flags, const char *what, char **text,
                            size_t *bytes) {
    *text = NULL;
    const weft_status status = dump(j, root, flags, what, text, bytes);
    weft__json_close(j);
    return status;
}

void weft__json_close(weft__json *j) {
    if (j->building) current = j->outer;
    j->building = false;
    for (weft__json_piece *piece = j->pieces.after, *after; piece != &j->pieces; piece = after) {
        after = piece->after;
        weft__free(j->ctx, piece);
    }
    j->pieces.before = j->pieces.after = &j->pieces;
}
