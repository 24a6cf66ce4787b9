/* What is ordered: launches, copies, and the work of libraries. The streams, events, graphs and waits of the
 * host say which operation happens before which. Operations that nothing orders may run at the same time on a
 * GPU, so they must not touch the same bytes if one of them writes (race.c asks).
 *
 * Each stream counts its operations. A clock has, for each stream, how many of them have happened. The clock
 * of an operation is joined from its stream's clock and from what the host knew when it submitted the
 * operation. The nodes of a graph have the clock of their launch, and each a set of the nodes that happen
 * before it.
 *
 * All threads of the host count as one: what two of them submit is ordered if either has waited.
 * Must not know memory. Read next: queue.c, launch.c. */
#include <stdlib.h>
#include <string.h>

#include "card.h"

/* An operation. Its accesses have numbers from `first` on. */
typedef struct fake_operation {
    unsigned first;
    unsigned short stream;
    unsigned time, graph, node; /* time: of the stream; graph: number of the graph's launch, or 0 */
    const char *name;
} fake_operation;

static struct {
    fake_operation *list;
    unsigned count, room;
    /* the operation that runs */
    fake_clock clock;
    unsigned stream, graph, node;
    const uint64_t *before; /* nodes of the graph */
    fake_clock host;
} order;

/* ---- clocks ---- */

void fake_clock_join(fake_clock *to, const fake_clock *from) {
    for (int i = 0; i < FAKE_CLOCKS; i++)
        if (from->time[i] > to->time[i]) to->time[i] = from->time[i];
}

fake_clock *fake_host_clock(void) { return &order.host; }

unsigned fake_clock_new(void) {
    static unsigned next;
    return next++ % FAKE_CLOCKS; /* streams that share a number count as ordered */
}

void fake_order_step(unsigned stream, fake_clock *clock) {
    static unsigned times[FAKE_CLOCKS];
    clock->time[stream] = ++times[stream];
    order.clock = *clock;
    order.stream = stream;
}

/* ---- graphs ---- */

void fake_order_begin_graph(void) {
    static unsigned graphs;
    order.graph = ++graphs;
    order.node = 0;
}

void fake_order_end_graph(void) { order.graph = 0; }

void fake_order_begin_node(const uint64_t *before) { order.before = before; }

void fake_order_end_node(uint64_t *known) {
    known[order.node / 64] |= (uint64_t)1 << order.node % 64;
    order.node++;
}

/* ---- operations ---- */

static char *copy_name(const char *name) {
    static char *last;
    if (!last || strcmp(last, name) != 0) last = strdup(name); /* kept: modules may be unloaded */
    return last;
}

void fake_order_operation(unsigned first, const char *name) {
    if (order.count == order.room) {
        order.room = order.room ? 2 * order.room : 1024;
        order.list = realloc(order.list, order.room * sizeof *order.list);
    }
    order.list[order.count++] = (fake_operation){.first = first,
                                                 .stream = (unsigned short)order.stream,
                                                 .time = order.clock.time[order.stream],
                                                 .graph = order.graph,
                                                 .node = order.node,
                                                 .name = copy_name(name)};
}

static bool is_before(const fake_operation *o) {
    if (o->graph && o->graph == order.graph) return order.before[o->node / 64] >> o->node % 64 & 1;
    return order.clock.time[o->stream] >= o->time;
}

/* The index of the operation that an access belongs to. */
static unsigned find_operation(unsigned access) {
    unsigned low = 0, high = order.count;
    while (high - low > 1) {
        const unsigned middle = low + (high - low) / 2;
        if (order.list[middle].first <= access)
            low = middle;
        else
            high = middle;
    }
    return low;
}

const char *fake_order_missing(unsigned access) {
    static struct {
        unsigned count, first, end; /* count: of operations, when it was asked */
        const char *missing;
    } known[4]; /* the last answers */
    static unsigned next;
    for (int i = 0; i < 4; i++)
        if (known[i].count == order.count && access >= known[i].first && access < known[i].end)
            return known[i].missing;
    const unsigned at = find_operation(access);
    const fake_operation *o = &order.list[at];
    next = (next + 1) % 4;
    known[next].count = order.count;
    known[next].first = o->first;
    known[next].end = o[1].first; /* an earlier operation: another one follows */
    known[next].missing = is_before(o) ? NULL : o->name;
    return known[next].missing;
}
