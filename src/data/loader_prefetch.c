/* Gathers batches in host memory on a thread of its own, one batch ahead of the caller. The thread reads
 * the data and writes two slots. It must not call anything that needs a context. If the thread cannot be
 * started, the caller's thread gathers each batch on request. Must not know: files, devices. Read next:
 * loader_open.c. */
#include <string.h>

#include "base/threads.h"
#include "compiler/profile/profile.h"
#include "data/loader.h"

typedef enum slot_state { EMPTY, WANTED, FULL } slot_state;

typedef struct slot {
    slot_state state;
    uint64_t position;
    int64_t count;
    int64_t *starts; /* [batch] */
    char *bytes;     /* x and y, laid out as the sides of the loader say */
    weft_status status;
    char message[WEFT_ERROR_SIZE]; /* of a failure */
} slot;

struct weft__prefetch {
    weft_loader *loader;
    slot slots[2];
    pthread_t thread;
    bool threaded; /* the thread runs, and the lock and conditions below are in use */
    int forks;     /* weft__forks() when the thread started */
    bool closing;
    uint64_t last, stride; /* the position that was asked for last, and how far it was from the one before */
    pthread_mutex_t lock;
    pthread_cond_t wanted, filled;
};

static void loader_prefetch_fill(const weft_loader *loader, slot *s) {
    s->count = weft__loader_starts(loader, s->position, s->starts);
    s->status = weft__loader_in_files(loader) ? weft__loader_decode(loader, s->starts, (uint8_t *)s->bytes)
                                              : weft__loader_copy(loader, &loader->x, s->starts, s->bytes);
    if (s->status == WEFT_OK && loader->y.rank > 0)
        s->status = weft__loader_copy(loader, &loader->y, s->starts, s->bytes + loader->y.at);
    if (s->status != WEFT_OK) memcpy(s->message, weft_last_error(NULL), sizeof s->message);
}

static void *serve(void *user) {
    weft__prefetch *p = user;
    pthread_mutex_lock(&p->lock);
    while (!p->closing) {
        slot *first = NULL;
        for (int i = 0; i < 2; i++)
            if (p->slots[i].state == WANTED && (!first || p->slots[i].position < first->position))
                first = &p->slots[i];
        if (!first) {
            pthread_cond_wait(&p->wanted, &p->lock);
            continue;
        }
        pthread_mutex_unlock(&p->lock);
        loader_prefetch_fill(p->loader, first); /* no other thread touches a wanted slot until it is full */
        pthread_mutex_lock(&p->lock);
        first->state = FULL;
        pthread_cond_signal(&p->filled);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static void start_thread(weft__prefetch *p) {
    if (pthread_mutex_init(&p->lock, NULL) != 0) return;
    if (pthread_cond_init(&p->wanted, NULL) == 0) {
        if (pthread_cond_init(&p->filled, NULL) == 0) {
            p->forks = weft__forks();
            if (weft__thread_start(&p->thread, serve, p)) {
                p->threaded = true;
                return;
            }
            pthread_cond_destroy(&p->filled);
        }
        pthread_cond_destroy(&p->wanted);
    }
    pthread_mutex_destroy(&p->lock);
}

/* Tells whether the thread exists in this process. A child of fork has no such thread. */
static bool has_thread(const weft__prefetch *p) { return p->threaded && p->forks == weft__forks(); }

weft_status weft__prefetch_new(weft_loader *loader, weft__prefetch **out) {
    weft_context *ctx = loader->ctx;
    size_t batch = (size_t)loader->options.batch;
    weft__prefetch *p = weft__zalloc(ctx, sizeof *p);
    if (!p) return weft__fail_oom(ctx, sizeof *p, "prefetching");
    p->loader = loader;
    p->last = UINT64_MAX;
    for (int i = 0; i < 2; i++) {
        slot *s = &p->slots[i];
        s->starts = weft__array(ctx, batch, sizeof *s->starts);
        s->bytes = weft__zalloc(ctx, (size_t)weft_numel(loader->gathered));
        if (!s->starts || !s->bytes) {
            weft__prefetch_free(p);
            return weft__fail_oom(ctx, (size_t)weft_numel(loader->gathered), "prefetching");
        }
    }
    start_thread(p);
    *out = p;
    return WEFT_OK;
}

void weft__prefetch_free(weft__prefetch *p) {
    if (!p) return;
    weft_context *ctx = p->loader->ctx;
    if (has_thread(p)) {
        pthread_mutex_lock(&p->lock);
        p->closing = true;
        pthread_cond_signal(&p->wanted);
        pthread_mutex_unlock(&p->lock);
        pthread_join(p->thread, NULL);
        pthread_cond_destroy(&p->filled);
        pthread_cond_destroy(&p->wanted);
        pthread_mutex_destroy(&p->lock);
    }
    for (int i = 0; i < 2; i++) {
        weft__free(ctx, p->slots[i].starts);
        weft__free(ctx, p->slots[i].bytes);
    }
    weft__free(ctx, p);
}

static slot *loader_prefetch_find(weft__prefetch *p, uint64_t position) {
    for (int i = 0; i < 2; i++)
        if (p->slots[i].state != EMPTY && p->slots[i].position == position) return &p->slots[i];
    return NULL;
}

/* Returns a slot that the thread is not filling. Waits until there is one. */
static slot *take_free(weft__prefetch *p) {
    for (;;) {
        for (int i = 0; i < 2; i++)
            if (p->slots[i].state != WANTED) return &p->slots[i];
        pthread_cond_wait(&p->filled, &p->lock);
    }
}

/* Guesses which position comes next. Replicas take every n-th one. An evaluation begins again at 0. */
static uint64_t guess_next(weft__prefetch *p, uint64_t position) {
    const uint64_t batches = (uint64_t)p->loader->batches;
    p->stride = position > p->last && position - p->last < batches ? position - p->last : 1;
    p->last = position;
    return p->loader->options.in_order ? (position + p->stride) % batches : position + p->stride;
}

const void *weft__prefetch_get(weft__prefetch *p, uint64_t position, int64_t *count) {
    slot *s = &p->slots[0];
    if (!has_thread(p)) {
        s->position = position;
        loader_prefetch_fill(p->loader, s);
    } else {
        pthread_mutex_lock(&p->lock);
        s = loader_prefetch_find(p, position);
        if (!s) {
            s = take_free(p);
            s->position = position;
            s->state = WANTED;
            pthread_cond_signal(&p->wanted);
        }
        weft__span span = weft__profile_enter(p->loader->ctx, WEFT__DOING_WAITING);
        while (s->state != FULL) pthread_cond_wait(&p->filled, &p->lock);
        weft__profile_leave(p->loader->ctx, span);
        slot *other = s == &p->slots[0] ? &p->slots[1] : &p->slots[0];
        const uint64_t next = guess_next(p, position);
        if (other->state != WANTED && !loader_prefetch_find(p, next)) {
            other->position = next;
            other->state = WANTED;
            pthread_cond_signal(&p->wanted);
        }
        if (s->status != WEFT_OK) s->state = EMPTY; /* a later call tries again */
        pthread_mutex_unlock(&p->lock);
    }
    *count = s->count;
    if (s->status == WEFT_OK) return s->bytes;
    (void)weft__fail(p->loader->ctx, s->status, "%s", s->message);
    return NULL;
}
