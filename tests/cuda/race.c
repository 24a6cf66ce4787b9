/* The race detector of the simulated GPU. Each access of a thread to shared or global memory comes here
 * first, if the kernel was compiled with FAKE_CUDA_RACES. For each byte there is a cell: who wrote it last,
 * and who read it since. Two accesses of which one is a write need something between them: the same thread, a
 * barrier of the block, or an operation of the warp that names both lanes. Nothing orders two blocks of a
 * launch. Two launches, or a launch and a copy, need an order of their streams or their graph (order.c).
 *
 * Also reported: accesses beyond allocations and beyond dynamic shared memory, and reads of shared memory
 * that no thread of the block has written.
 *
 * Not reported: a plain read of what others change by atomic operations, such as the flag of faults.
 * Read next: items.c, order.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "card.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { YIELD = 512 };      /* in random orders, another thread runs before one access of so many */
enum { REPORTS_MOST = 4 }; /* of a launch */

/* Accesses by a thread between two places where it met others. */
typedef struct fake_span {
    unsigned block, time, clock; /* time: barriers of the block; clock: operations of the warp */
    unsigned short thread;
    bool atomic;
} fake_span;

/* Accesses are numbers of spans, in the order in which they began. Numbers below `first` are of launches
 * and copies that have ended. `at`: where in the machine code. */
struct fake_cell {
    unsigned writer, writer_at : 31, atomic : 1, reader[2], reader_at[2];
};

static struct {
    bool on;
    const fake_code *code, *known_code; /* known_code: whose lines are known */
    fake_span *spans;
    unsigned first, count, room;
    int reports;
    fake_cell *shared[RESIDENT_MOST], *rooms[RESIDENT_MOST];
    size_t rooms_bytes;
} race;

static fake_cell *make_cells(size_t bytes) {
    void *at = mmap(NULL, bytes * sizeof(fake_cell), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    return at == MAP_FAILED ? NULL : at;
}

void fake_cells_free(fake_cell *cells, size_t bytes) {
    if (cells) munmap(cells, bytes * sizeof *cells);
}

static void begin(const fake_code *code) {
    race.on = getenv("FAKE_CUDA_RACES") != NULL;
    race.code = code;
    race.first += race.count + 1; /* 0 means nobody */
    race.count = 0;
    race.reports = 0;
    if (race.on) fake_order_operation(race.first, code->name);
}

void fake_race_begin(const fake_grid *grid) {
    begin(grid->code);
    if (race.rooms_bytes >= grid->code->rooms_bytes) return;
    for (int i = 0; i < RESIDENT_MOST; i++) {
        fake_cells_free(race.rooms[i], race.rooms_bytes);
        race.rooms[i] = NULL;
    }
    race.rooms_bytes = grid->code->rooms_bytes;
}

void fake_race_meet(item *of, fake_mask mask) {
    unsigned seen[LANES_MOST] = {0};
    if (!race.on) return;
    for (int i = 0; i < LANES; i++)
        for (int k = 0; k < LANES && (mask >> i & 1); k++)
            if (of[i].times.seen[k] > seen[k]) seen[k] = of[i].times.seen[k];
    for (int i = 0; i < LANES; i++) {
        if (!(mask >> i & 1)) continue;
        memcpy(of[i].times.seen, seen, sizeof seen);
        of[i].times.seen[i]++;
        of[i].times.id[0] = of[i].times.id[1] = 0;
    }
}

static unsigned id_of(item *it, bool atomic) {
    if (it->times.id[atomic]) return it->times.id[atomic];
    if (race.count == race.room) {
        race.room = race.room ? 2 * race.room : 4096;
        race.spans = realloc(race.spans, race.room * sizeof *race.spans);
    }
    race.spans[race.count] = (fake_span){it->block->number, it->block->time, it->times.seen[it->lane],
                                         (unsigned short)(it->warp * LANES + it->lane), atomic};
    return it->times.id[atomic] = race.first + race.count++;
}

/* The accesses with a number, or NULL if they are of no interest: of another launch, or of a block that had
 * this shared memory before. */
static const fake_span *span_of(unsigned id, const item *it, bool shared) {
    if (id < race.first) return NULL;
    const fake_span *s = &race.spans[id - race.first];
    return shared && s->block != it->block->number ? NULL : s;
}

/* Is it certain that the accesses happened before what the thread does now? */
static bool is_before(const fake_span *s, const item *it) {
    return s->block == it->block->number &&
           (s->thread == it->warp * LANES + it->lane || s->time < it->block->time ||
            (s->thread / LANES == it->warp && it->times.seen[s->thread % LANES] >= s->clock));
}

/* The same for an access with a number, of this launch or of an earlier one. */
static bool came_before(unsigned id, const item *it, bool shared) {
    if (id < race.first) return !id || shared || !fake_order_missing(id);
    const fake_span *s = span_of(id, it, shared);
    return !s || is_before(s, it);
}

/* ---- reports ---- */

/* The line of the source of machine code, which addr2line finds. 0: unknown. */
int fake_line_of(const fake_code *code, const void *at) {
    static struct {
        const void *at;
        int line;
    } known[64];
    char command[200], text[300];
    int line = 0;
    if (race.known_code != code) memset(known, 0, sizeof known);
    race.known_code = code;
    const size_t place = (uintptr_t)at % 64;
    if (known[place].at == at) return known[place].line;
    snprintf(command, sizeof command, "addr2line -i -e /proc/%d/fd/%d 0x%lx", (int)getpid(), code->file,
             (unsigned long)((const char *)at - code->base) - 1);
    FILE *pipe = popen(command, "r");
    while (pipe && fgets(text, sizeof text, pipe)) {
        const char *name = strstr(text, "text.cc:");
        if (name && !line) line = atoi(name + strlen("text.cc:"));
    }
    if (pipe) pclose(pipe);
    known[place].at = at;
    return known[place].line = line;
}

static int line_of(unsigned at) { return fake_line_of(race.code, race.code->base + at); }

static void report_unordered(unsigned at, const char *does, unsigned other, const char *did) {
    if (race.reports++ < REPORTS_MOST)
        fake_report(race.code, at ? line_of(at) : 0,
                    "race: it %s memory that %s %s, and nothing orders the two", does,
                    fake_order_missing(other), did);
}

static void report(const item *it, unsigned at, const char *does, bool shared, unsigned id, const char *did,
                   unsigned other_at) {
    const char *const memory = shared ? "shared" : "global";
    if (id < race.first) {
        report_unordered(at, does, id, did);
        return;
    }
    const fake_span *const other = &race.spans[id - race.first];
    if (race.reports++ >= REPORTS_MOST) return;
    fake_report(race.code, line_of(at),
                "race: thread %d of block %u %s %s memory that thread %d of block %u %s at line %d",
                it->warp * LANES + it->lane, it->block->number, does, memory, other->thread, other->block,
                did, line_of(other_at));
}

static void report_alone(const item *it, unsigned at, const char *why) {
    if (race.reports++ >= REPORTS_MOST) return;
    fake_report(race.code, line_of(at), "thread %d of block %u %s", it->warp * LANES + it->lane,
                it->block->number, why);
}

/* ---- accesses ---- */

static bool check_read(fake_cell *c, item *it, bool shared, unsigned at) {
    const unsigned id = id_of(it, false); /* may move the spans */
    if (shared && !span_of(c->writer, it, shared)) {
        report_alone(it, at, "reads shared memory that no thread of its block has written");
        return false;
    }
    if (!c->atomic && !came_before(c->writer, it, shared)) {
        report(it, at, "reads", shared, c->writer, "writes", c->writer_at);
        return false;
    }
    /* of several readers, remembers one that the others do not stand for */
    int place = 0;
    for (int i = 0; i < 2; i++) {
        if (came_before(c->reader[i], it, shared)) {
            place = i;
            break;
        }
        const fake_span *first = span_of(c->reader[0], it, shared);
        if (i == 1) place = first && first->block == it->block->number ? 1 : 0;
    }
    c->reader[place] = id;
    c->reader_at[place] = at;
    return true;
}

static bool check_write(fake_cell *c, item *it, bool shared, unsigned at, bool atomic) {
    if (!(atomic && c->atomic) && !came_before(c->writer, it, shared)) {
        report(it, at, "writes", shared, c->writer, "writes", c->writer_at);
        return false;
    }
    for (int i = 0; i < 2 && !atomic; i++) {
        if (came_before(c->reader[i], it, shared)) continue;
        report(it, at, "writes", shared, c->reader[i], "reads", c->reader_at[i]);
        return false;
    }
    c->writer = id_of(it, atomic);
    c->writer_at = at & 0x7fffffff;
    c->atomic = atomic;
    return true;
}

/* Returns the cells of an address, or NULL if it is of no interest. */
static fake_cell *find_cells(item *it, const char *at, unsigned bytes, unsigned where, bool *shared) {
    const fake_grid *g = fake_running();
    const fake_block *b = it->block;
    const char *const stack = b->stacks + (size_t)(it - b->items) * FIBER_STACK;
    fake_cell **cells;
    size_t offset, all;
    *shared = true;
    if (at >= stack && at < stack + FIBER_STACK) return NULL;
    if (at >= g->code->rooms && at < g->code->rooms + g->code->rooms_bytes) {
        cells = &race.rooms[b->place], offset = (size_t)(at - g->code->rooms), all = race.rooms_bytes;
    } else if (at >= b->shared && at < b->shared + FAKE_SHARED_MOST) {
        cells = &race.shared[b->place], offset = (size_t)(at - b->shared), all = FAKE_SHARED_MOST;
        if (offset + bytes > g->shared_bytes) {
            report_alone(it, where, "is beyond the dynamic shared memory of the launch");
            return NULL;
        }
    } else if ((at >= g->code->base && at < g->code->end) ||
               (at >= (const char *)b && at < (const char *)(b + 1))) {
        return NULL; /* of the machine */
    } else {
        *shared = false;
        const fake_where is = fake_find(at, bytes, &cells, &offset, &all);
        if (is == FAKE_GUARD) report_alone(it, where, "is beyond an allocation");
        if (is != FAKE_INSIDE) return NULL;
    }
    if (!*cells) *cells = make_cells(all);
    return *cells ? *cells + offset : NULL;
}

void fake_race_access(fake_item *base, const void *at, unsigned bytes, fake_access how, const void *where) {
    item *it = (item *)base;
    bool shared, fine = true;
    const unsigned code_at = (unsigned)((const char *)where - race.code->base);
    if (!race.on || !fake_running() || race.reports >= REPORTS_MOST) return;
    fake_cell *cells = find_cells(it, at, bytes, code_at, &shared);
    if (!cells) return;
    if (fake_draw() % YIELD == 0) fake_yield(it);
    for (unsigned i = 0; i < bytes && fine; i++)
        fine = how == FAKE_READ ? check_read(&cells[i], it, shared, code_at)
                                : check_write(&cells[i], it, shared, code_at, how == FAKE_ATOMIC);
}

/* ---- copies, and the work of libraries ---- */

void fake_race_operation(const char *name) {
    static fake_code code; /* for reports */
    code.name = name;
    begin(&code);
    race.count = 1; /* all of its accesses have one number */
}

/* Returns whether the accesses are ordered. */
static bool check_byte(fake_cell *c, fake_access how) {
    const unsigned writer = c->writer;
    if (writer && writer < race.first && fake_order_missing(writer)) {
        report_unordered(0, how == FAKE_READ ? "reads" : "writes", writer, "writes");
        return false;
    }
    for (int i = 0; i < 2 && how != FAKE_READ; i++) {
        const unsigned reader = c->reader[i];
        if (!reader || reader >= race.first || !fake_order_missing(reader)) continue;
        report_unordered(0, "writes", reader, "reads");
        return false;
    }
    if (how == FAKE_READ) {
        const bool first = !c->reader[0] || c->reader[0] >= race.first || !fake_order_missing(c->reader[0]);
        c->reader[!first] = race.first;
    } else {
        c->writer = race.first;
        c->atomic = false;
    }
    return true;
}

void fake_race_range(const void *at, size_t bytes, fake_access how) {
    fake_cell **cells;
    size_t offset, all;
    if (!race.on || fake_find(at, bytes, &cells, &offset, &all) != FAKE_INSIDE) return;
    if (!*cells) *cells = make_cells(all);
    for (size_t i = 0; i < bytes && *cells; i++)
        if (!check_byte(&(*cells)[offset + i], how)) return;
}

__attribute__((visibility("default"))) void fake_uses(const void *at, unsigned long bytes, int writes) {
    fake_race_range(at, bytes, writes ? FAKE_WRITE : FAKE_READ);
}
