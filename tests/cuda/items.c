/* The simulated GPU. A thread of a block is a fiber. It runs until it waits for others, then another one
 * runs. Up to four blocks are resident, and take turns. What runs next is drawn from a seed, so a run can be
 * repeated. This file must not know the driver. Read next: device.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "card.h"

#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

enum { TURN = 128 };          /* a random order changes to another block after so many threads, on average */
enum { IDLE_MOST = 1 << 16 }; /* passes in which threads do nothing but pause */

#if defined(__x86_64__)
__asm__(".text\n.globl fake_switch\n.hidden fake_switch\n.type fake_switch, @function\nfake_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\n"
        "mov %rsp, (%rdi)\nmov %rsi, %rsp\n"
        "pop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n"
        ".size fake_switch, .-fake_switch\n");
#endif

/* The launch that runs. The driver's lock is held meanwhile. */
static struct {
    const fake_grid *grid;
    fake_block *blocks[RESIDENT_MOST], *current;
    item *item;
    fake_fiber scheduler;
    int reports;
    int *raised;    /* the flag of the record of faults */
    uint64_t raise; /* it is set before so many threads have run; 0: it is not set */
    bool progress;  /* did a thread reach a place where it waits, or end? */
    fake_order order;
    uint64_t random;
    unsigned char garbage;
} now;

/* ---- reports ---- */

/* Prints the line of a text, without its indentation. */
static int put_line(char *to, size_t room, const char *text, int line) {
    for (; line > 1 && text; line--) text = strchr(text, '\n') ? strchr(text, '\n') + 1 : NULL;
    if (!text) return 0;
    text += strspn(text, " \t");
    const int n = (int)strcspn(text, "\n");
    return snprintf(to, room, " \"%.*s%s\"", n < 90 ? n : 90, text, n < 90 ? "" : "...");
}

void fake_report(const fake_code *code, int line, const char *why, ...) {
    char to[sizeof fake_cuda.report];
    const size_t room = sizeof to;
    va_list args;
    size_t n = (size_t)snprintf(to, room, "%s", code->name);
    if (line) n += (size_t)snprintf(to + n, room - n, ", line %d", line);
    if (line && n < room) n += (size_t)put_line(to + n, room - n, code->text, line);
    if (n < room) n += (size_t)snprintf(to + n, room - n, ": ");
    va_start(args, why);
    if (n < room) vsnprintf(to + n, room - n, why, args);
    va_end(args);
    if (!fake_cuda.reports++) memcpy(fake_cuda.report, to, room);
    if (now.reports++ < 3 && !fake_cuda.quiet) fprintf(stderr, "fake cuda: %s\n", to);
}

static void wrong(fake_item *base, int line, const char *why) {
    (void)base;
    fake_report(now.grid->code, line, "%s", why);
}

const fake_grid *fake_running(void) { return now.grid; }

/* ---- orders ---- */

uint64_t fake_draw(void) { /* splitmix64 */
    uint64_t x = now.random += 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

/* An order of 0 .. n - 1: entry i is (factor i + first) mod n. */
typedef struct fake_permutation {
    long n, factor, first;
} fake_permutation;

static long gcd(long a, long b) { return b ? gcd(b, a % b) : a; }

static fake_permutation permute(long n) {
    if (now.order == FAKE_FORWARD) return (fake_permutation){n, 1, 0};
    if (now.order == FAKE_REVERSED) return (fake_permutation){n, n - 1, n - 1};
    long factor;
    do factor = (long)(fake_draw() % (uint64_t)n);
    while (gcd(factor, n) != 1);
    return (fake_permutation){n, factor, (long)(fake_draw() % (uint64_t)n)};
}

static long entry_of(const fake_permutation *p, long i) {
    return (long)(((__int128)p->factor * i + p->first) % p->n);
}

static void choose_order(void) {
    static const unsigned char garbage[] = {0xff, 0x7f, 0xa5}; /* as floats: NaN, huge, tiny */
    static const char *const words[] = {"", "forward", "reversed", "random"};
    const char *seed = getenv("FAKE_CUDA_SEED"), *order = getenv("FAKE_CUDA_ORDER");
    const long base = fake_cuda.seed ? fake_cuda.seed : seed ? atol(seed) : 1;
    now.random = (uint64_t)base * 1000003 + (uint64_t)fake_cuda.kernels;
    now.order = (fake_order)fake_cuda.order;
    for (int i = 1; i < 4 && !now.order; i++)
        if (order && strcmp(order, words[i]) == 0) now.order = (fake_order)i;
    if (!now.order) now.order = (fake_order)(1 + fake_draw() % 3);
    now.garbage = garbage[fake_draw() % 3];
}

/* ---- waiting ---- */

static void leave(item *it) {
    now.progress = true;
    fiber_switch(&it->fiber, &now.scheduler);
}

/* The last thread to arrive may go on, or another one. */
static void go_on(item *it) {
    if (now.order != FAKE_FORWARD && fake_draw() % 2) leave(it);
}

/* Ends a barrier when all threads that have not ended are there. */
static bool end_barrier(fake_block *b) {
    const item *first = NULL, *other = NULL;
    if (!b->live || b->arrived < b->live) return false;
    b->gave = false;
    for (int i = 0; i < b->count; i++) {
        item *it = &b->items[i];
        if (it->state != AT_BARRIER) continue;
        it->state = READY;
        b->gave = b->gave || it->base.give;
        it->times.id[0] = it->times.id[1] = 0;
        if (!first) first = it;
        if (it->site.number != first->site.number) other = it;
    }
    if (other)
        fake_report(now.grid->code, first->site.line, "thread %d waits at this barrier, thread %d at line %d",
                    (int)(first - b->items), (int)(other - b->items), other->site.line);
    if (b->live < b->count)
        fake_report(now.grid->code, first->site.line,
                    "%d of %d threads ended before this barrier (block %u %u %u)", b->count - b->live,
                    b->count, first->base.block.x, first->base.block.y, first->base.block.z);
    b->arrived = 0;
    b->time++;
    return true;
}

static int barrier(fake_item *base, fake_site site) {
    item *it = (item *)base;
    fake_delay_fence(base, FAKE_BLOCK);
    it->state = AT_BARRIER;
    it->site = site;
    it->block->arrived++;
    if (end_barrier(it->block))
        go_on(it);
    else
        leave(it);
    return it->block->gave;
}

/* Ends a warp operation when all lanes in its mask are there. */
static bool end_warp(fake_block *b, item *last) {
    fake_warp *w = &b->warps[last->warp];
    item *of = &b->items[last->warp * LANES];
    fake_mask votes = 0;
    if ((w->waiting & last->mask) != last->mask) return false;
    for (int i = 0; i < LANES; i++) {
        if (!(last->mask >> i & 1)) continue;
        if (of[i].site.number != last->site.number || of[i].mask != last->mask) return false;
        votes |= (of[i].base.give != 0) * 1ul << i;
        w->lanes[i] = of[i].base.give;
    }
    for (int i = 0; i < LANES; i++) {
        if (!(last->mask >> i & 1)) continue;
        const int from = of[i].base.from;
        of[i].base.got = last->mask >> from & 1 ? of[from].base.give : ~0ul;
        of[i].base.votes = votes;
        of[i].state = READY;
    }
    w->waiting &= ~last->mask;
    fake_race_meet(of, last->mask);
    return true;
}

static void meet_warp(fake_item *base, fake_site site, fake_mask mask) {
    item *it = (item *)base;
    fake_warp *w = &it->block->warps[it->warp];
    if (!(mask >> it->lane & 1))
        fake_report(now.grid->code, site.line, "the mask %#lx does not name lane %d, which uses it", mask,
                    it->lane);
    if (mask & w->done)
        fake_report(now.grid->code, site.line, "lanes %#lx have ended, and the mask %#lx names them",
                    mask & w->done, mask);
    it->mask = (mask | 1ul << it->lane) & w->all & ~w->done;
    it->site = site;
    it->state = AT_WARP;
    w->waiting |= 1ul << it->lane;
    if (end_warp(it->block, it))
        go_on(it);
    else
        leave(it);
}

static void pause_item(fake_item *base) { fiber_switch(&((item *)base)->fiber, &now.scheduler); }

void fake_yield(item *it) {
    if (now.order == FAKE_RANDOM) leave(it);
}

static void access_memory(fake_item *base, void *at, unsigned bytes, fake_access how, const void *where) {
    fake_race_access(base, at, bytes, how, where); /* may let other threads run */
    fake_delay_access(base, at, bytes, how);
}

static const fake_machine machine = {barrier, meet_warp, pause_item, wrong, fake_delay_fence, access_memory};

/* A lane ended: others of its warp may wait for it. */
static void end_lane(item *it) {
    fake_block *b = it->block;
    fake_warp *w = &b->warps[it->warp];
    w->done |= 1ul << it->lane;
    for (int i = 0; i < LANES; i++) {
        item *other = &b->items[it->warp * LANES + i];
        if (!(w->waiting >> i & 1) || !(other->mask >> it->lane & 1)) continue;
        fake_report(now.grid->code, other->site.line, "lane %d ended, and the mask %#lx names it", it->lane,
                    other->mask);
        other->mask &= ~(1ul << it->lane);
        end_warp(b, other);
    }
}

static void entry(void) {
    item *it = now.item;
    now.grid->code->call(&it->base, now.grid->values);
    fake_delay_fence(&it->base, FAKE_BLOCK);
    it->state = DONE;
    it->block->live--;
    end_lane(it);
    end_barrier(it->block);
    leave(it);
    abort(); /* not reached: a finished fiber is not resumed */
}

/* ---- blocks ---- */

static fake_block *make_block(void) {
    fake_block *b = calloc(1, sizeof *b);
    b->stacks = mmap(NULL, (size_t)ITEMS_MOST * FIBER_STACK, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    b->shared = aligned_alloc(1024, FAKE_SHARED_MOST + 1024);
    return b;
}

/* Lets a block run: it uses the static shared memory of the module, and sees what it has stored. */
static void enter_block(fake_block *b) {
    const fake_code *code = now.grid->code;
    if (now.current == b) return;
    if (now.current) {
        memcpy(now.current->rooms, code->rooms, code->rooms_bytes);
        fake_delay_leave_block(now.current);
    }
    memcpy(code->rooms, b->rooms, code->rooms_bytes);
    fake_delay_enter_block(b);
    now.current = b;
}

static void begin_block(fake_block *b, long number) {
    const fake_grid *g = now.grid;
    const fake_dim n = g->blocks, t = g->threads;
    const fake_dim at = {(unsigned)(number % n.x), (unsigned)(number / n.x % n.y),
                         (unsigned)(number / n.x / n.y)};
    if (b->rooms_bytes < g->code->rooms_bytes) {
        free(b->rooms);
        b->rooms_bytes = g->code->rooms_bytes;
        b->rooms = malloc(b->rooms_bytes);
    }
    memset(now.current == b ? g->code->rooms : b->rooms, now.garbage, g->code->rooms_bytes);
    memset(b->shared, now.garbage, g->shared_bytes);
    b->count = b->live = (int)(t.x * t.y * t.z);
    b->arrived = b->n_stores = 0;
    b->number = (unsigned)number;
    b->time = 0;
    for (int i = 0; i < WARPS_MOST; i++) b->warps[i].all = b->warps[i].done = b->warps[i].waiting = 0;
    for (int i = 0; i < b->count; i++) {
        item *it = &b->items[i];
        const unsigned k = (unsigned)i;
        it->warp = i / LANES;
        it->lane = i % LANES;
        it->base = (fake_item){.thread = {k % t.x, k / t.x % t.y, k / t.x / t.y},
                               .block = at,
                               .threads = t,
                               .blocks = n,
                               .machine = &machine,
                               .copies = &b->copies[i],
                               .shared = b->shared,
                               .lanes = b->warps[it->warp].lanes};
        b->copies[i].count = b->copies[i].groups = 0;
        it->block = b;
        it->state = READY;
        it->n_stores = 0;
        it->times = (fake_times){.id = {0, 0}};
        it->times.seen[it->lane] = 1;
        b->warps[it->warp].all |= 1ul << it->lane;
        fiber_make(&it->fiber, b->stacks + (size_t)i * FIBER_STACK, entry);
    }
}

/* Chooses when the flag of faults is set, as if another kernel or block recorded a fault: while threads of
 * the first blocks begin. */
static void choose_raise(const fake_grid *grid) {
    now.raise = 0;
    now.raised = NULL;
    if (!fake_cuda.raise || grid->code->faults < 0) return;
    int *const flag = *(int **)grid->values[grid->code->faults];
    if (!flag || *flag) return;
    now.raised = flag;
    now.raise = 1 + fake_draw() % (3 * (uint64_t)grid->threads.x * grid->threads.y * grid->threads.z);
}

static void end_raise(void) {
    if (!now.raised) return;
    fake_cuda.raised += now.raise == 0;
    *now.raised = 0;
}

/* Runs each thread that is ready, once. Returns false if there is none. */
static bool run_pass(fake_block *b) {
    const fake_permutation warps = permute((b->count + LANES - 1) / LANES), lanes = permute(LANES);
    bool any = false;
    for (long i = 0; i < warps.n; i++)
        for (long k = 0; k < LANES; k++) {
            const long at = entry_of(&warps, i) * LANES + entry_of(&lanes, k);
            if (at >= b->count || b->items[at].state != READY) continue;
            now.item = &b->items[at];
            any = true;
            if (now.raise && --now.raise == 0) *now.raised = 1;
            fake_delay_enter_thread(now.item);
            fiber_switch(&now.scheduler, &now.item->fiber);
            fake_delay_leave_thread(now.item);
            if (now.order == FAKE_RANDOM && fake_draw() % TURN == 0) return true;
        }
    return any;
}

static void report_stuck(const fake_block *b) {
    const item *at = NULL, *other = NULL;
    for (int i = 0; i < b->count; i++) {
        const item *it = &b->items[i];
        if (it->state == DONE) continue;
        if (!at) at = it;
        if (it->state != at->state || it->site.number != at->site.number || it->mask != at->mask) other = it;
    }
    if (!other) other = at;
    fake_report(now.grid->code, at->site.line,
                "deadlock: thread %d waits here%s (mask %#lx), thread %d at line %d%s (mask %#lx)",
                (int)(at - b->items), at->state == AT_WARP ? " for its warp" : "", at->mask,
                (int)(other - b->items), other->site.line, other->state == AT_WARP ? " for its warp" : "",
                other->mask);
}

/* The number of the i-th block of those that run. */
static long block_number(long i, long running, long all) { return i < running / 2 ? i : all - running + i; }

/* Returns the block whose turn it is, or NULL if all have ended. */
static fake_block *next_block(int resident, bool other) {
    const int first = now.order == FAKE_RANDOM || other ? (int)(fake_draw() % (uint64_t)resident) : 0;
    for (int i = 0; i < resident; i++) {
        fake_block *b = now.blocks[(first + i) % resident];
        if (b->live) return b;
    }
    return NULL;
}

static bool run_blocks(const fake_grid *grid) {
    long begun = 0, idle = 0;
    now.grid = grid;
    now.current = NULL;
    now.reports = 0;
    choose_order();
    choose_raise(grid);
    fake_race_begin(grid);
    fake_delay_begin();
    const long all = (long)grid->blocks.x * grid->blocks.y * grid->blocks.z;
    const fake_permutation order =
        permute(fake_cuda.sample && fake_cuda.sample < all ? fake_cuda.sample : all);
    const int resident = 1 + (int)(fake_draw() % RESIDENT_MOST);
    for (int i = 0; i < resident; i++) {
        if (!now.blocks[i]) now.blocks[i] = make_block();
        now.blocks[i]->live = 0;
        now.blocks[i]->place = i;
    }
    for (;;) {
        for (int i = 0; i < resident && begun < order.n; i++)
            if (!now.blocks[i]->live) {
                const long place = entry_of(&order, begun++);
                begin_block(now.blocks[i], block_number(place, order.n, all));
            }
        fake_block *b = next_block(resident, idle > 0);
        if (!b) return true;
        enter_block(b);
        now.progress = false;
        fake_delay_pass();
        if (!run_pass(b)) {
            report_stuck(b);
            return false;
        }
        if (!b->live) fake_delay_end_block(b);
        idle = now.progress ? 0 : idle + 1;
        if (idle > IDLE_MOST) {
            fake_report(grid->code, 0, "deadlock: %d resident blocks wait for something that never happens",
                        resident);
            return false;
        }
    }
}

/* Where the machine was when a signal came. NULL: unknown. */
static const void *code_at(const void *context) {
#if defined(__x86_64__)
    return (const void *)(uintptr_t)((const ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
#else
    (void)context;
    return NULL;
#endif
}

/* A kernel touched an address that does not exist. */
static void crash(int signal, siginfo_t *info, void *context) {
    const void *const at = code_at(context);
    (void)signal;
    fake_report(now.grid->code, fake_line_of(now.grid->code, at), "touches %p, where no memory is",
                info->si_addr);
    _exit(1);
}

bool fake_run_grid(const fake_grid *grid) {
    struct sigaction before;
    sigaction(SIGSEGV, &(struct sigaction){.sa_sigaction = crash, .sa_flags = SA_SIGINFO}, &before);
    const bool done = run_blocks(grid);
    fake_delay_end();
    end_raise();
    now.grid = NULL;
    sigaction(SIGSEGV, &before, NULL);
    return done;
}
