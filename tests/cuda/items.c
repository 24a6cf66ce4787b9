/* Runs the threads of a block as fibers. A fiber runs until a barrier, then the next one runs. This file must
 * not know the driver. Read next: device.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "items.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { ITEMS_MOST = 1024, STACK = 256 << 10, LANES = 32, HOSTS = 2 };
enum { RUNS, WAITS_BLOCK, WAITS_WARP, DONE };

/* ---- fibers ---- */

#if defined(__x86_64__)
/* Saves the registers that a function must preserve, and continues where the other fiber saved its
 * registers. */
void fake_switch(void **kept, void *to);
__asm__(".text\n.globl fake_switch\n.hidden fake_switch\n.type fake_switch, @function\nfake_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size fake_switch, .-fake_switch\n");
typedef void *fiber;
static void fiber_make(fiber *f, char *stack, void (*entry)(void)) {
    void **top = (void **)(void *)(stack + STACK - 64);
    memset(top - 8, 0, 16 * sizeof *top);
    top[-2] = (void *)(uintptr_t)entry; /* the first switch returns to here */
    *f = top - 8;
}
static void fiber_switch(fiber *from, fiber *to) { fake_switch(from, *to); }
#else
#include <ucontext.h>
typedef ucontext_t fiber;
static void fiber_make(fiber *f, char *stack, void (*entry)(void)) {
    getcontext(f);
    f->uc_stack.ss_sp = stack;
    f->uc_stack.ss_size = STACK;
    f->uc_link = NULL;
    makecontext(f, entry, 0);
}
static void fiber_switch(fiber *from, fiber *to) { swapcontext(from, to); }
#endif

/* ---- a block ---- */

typedef struct runner runner;
typedef struct item {
    fake_item base;
    runner *runner;
    fiber fiber;
    int state, warp;
} item;

/* A host thread and the block that it runs. */
struct runner {
    char *stacks, *shared;
    fiber scheduler;
    item items[ITEMS_MOST];
    unsigned long lanes[ITEMS_MOST];
    fake_copies copies[ITEMS_MOST];
    int count, live, arrived, warp_live[LANES], warp_arrived[LANES];
    item *current;
    fake_kernel kernel;
    void **values;
};

static _Thread_local runner *mine;

static void release(runner *r, int warp) {
    for (int i = 0; i < r->count; i++) {
        item *it = &r->items[i];
        if (warp < 0 ? it->state == WAITS_BLOCK : it->state == WAITS_WARP && it->warp == warp)
            it->state = RUNS;
    }
    if (warp < 0)
        r->arrived = 0;
    else
        r->warp_arrived[warp] = 0;
}

static void meet(fake_item *base, int warp) {
    item *it = (item *)base;
    runner *r = it->runner;
    it->state = warp ? WAITS_WARP : WAITS_BLOCK;
    if (warp ? ++r->warp_arrived[it->warp] == r->warp_live[it->warp] : ++r->arrived == r->live)
        release(r, warp ? it->warp : -1);
    else
        fiber_switch(&it->fiber, &r->scheduler);
}

static void entry(void) {
    runner *r = mine;
    item *it = r->current;
    r->kernel(&it->base, r->values);
    it->state = DONE;
    r->live--;
    r->warp_live[it->warp]--;
    if (r->live && r->arrived == r->live) release(r, -1);
    if (r->warp_live[it->warp] && r->warp_arrived[it->warp] == r->warp_live[it->warp]) release(r, it->warp);
    fiber_switch(&it->fiber, &r->scheduler);
    abort(); /* not reached: a finished fiber is not resumed */
}

static void begin_block(runner *r, fake_dim blocks, fake_dim threads, fake_dim block) {
    r->count = r->live = (int)(threads.x * threads.y * threads.z);
    r->arrived = 0;
    memset(r->warp_live, 0, sizeof r->warp_live);
    memset(r->warp_arrived, 0, sizeof r->warp_arrived);
    for (int i = 0; i < r->count; i++) {
        item *it = &r->items[i];
        const unsigned n = (unsigned)i;
        it->base =
            (fake_item){.thread = {n % threads.x, n / threads.x % threads.y, n / threads.x / threads.y},
                        .block = block,
                        .threads = threads,
                        .blocks = blocks,
                        .meet = meet,
                        .lanes = &r->lanes[i / LANES * LANES],
                        .copies = &r->copies[i],
                        .shared = r->shared};
        r->copies[i].count = r->copies[i].groups = 0;
        it->runner = r;
        it->state = RUNS;
        it->warp = i / LANES;
        r->warp_live[it->warp]++;
        fiber_make(&it->fiber, r->stacks + (size_t)i * STACK, entry);
    }
}

static bool run_block(runner *r) {
    while (r->live) {
        bool any = false;
        for (int i = 0; i < r->count; i++) {
            if (r->items[i].state != RUNS) continue;
            r->current = &r->items[i];
            any = true;
            fiber_switch(&r->scheduler, &r->items[i].fiber);
        }
        if (!any) return false;
    }
    return true;
}

/* ---- all blocks ---- */

typedef struct job {
    fake_kernel kernel;
    fake_dim blocks, threads;
    unsigned shared_bytes;
    void **values;
    bool backwards;
    atomic_long next;
    atomic_bool stuck;
} job;

static void *run_some(void *user) {
    job *j = user;
    const long all = (long)j->blocks.x * j->blocks.y * j->blocks.z;
    if (!mine) {
        mine = calloc(1, sizeof *mine);
        mine->stacks = mmap(NULL, (size_t)ITEMS_MOST * STACK, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    }
    if (!mine->shared) mine->shared = aligned_alloc(1024, FAKE_SHARED_MOST);
    mine->kernel = j->kernel;
    mine->values = j->values;
    for (long i = j->next++; i < all && !j->stuck; i = j->next++) {
        const unsigned b = (unsigned)(j->backwards ? all - 1 - i : i);
        const fake_dim at = {b % j->blocks.x, b / j->blocks.x % j->blocks.y, b / j->blocks.x / j->blocks.y};
        memset(mine->shared, 0xa5, j->shared_bytes); /* garbage, as another block would leave it */
        begin_block(mine, j->blocks, j->threads, at);
        if (!run_block(mine)) j->stuck = true;
    }
    return NULL;
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static job *offered;
static bool helping, helper_made;

/* The second host thread, which never ends. */
static void *help(void *user) {
    (void)user;
    pthread_mutex_lock(&lock);
    for (;;) {
        while (!offered) pthread_cond_wait(&changed, &lock);
        job *j = offered;
        offered = NULL;
        helping = true;
        pthread_mutex_unlock(&lock);
        run_some(j);
        pthread_mutex_lock(&lock);
        helping = false;
        pthread_cond_broadcast(&changed);
    }
    return NULL;
}

bool fake_run_blocks(fake_kernel kernel, fake_dim blocks, fake_dim threads, unsigned shared_bytes,
                     void **values, bool backwards) {
    job j = {.kernel = kernel,
             .blocks = blocks,
             .threads = threads,
             .shared_bytes = shared_bytes,
             .values = values,
             .backwards = backwards};
    const bool shared = HOSTS > 1 && (long)blocks.x * blocks.y * blocks.z > 1;
    pthread_mutex_lock(&lock);
    if (shared && !helper_made) {
        pthread_t thread;
        helper_made = pthread_create(&thread, NULL, help, NULL) == 0;
        if (helper_made) pthread_detach(thread);
    }
    if (shared && helper_made) {
        offered = &j;
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    run_some(&j);
    pthread_mutex_lock(&lock);
    offered = NULL;
    while (helping) pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    return !j.stuck;
}
