/* The price of a launch: a roofline with occupancy. Each part is priced as if it were alone; the longest part
 * counts, and launching comes on top.
 *
 *     memory        bytes / bandwidth
 *     cache         bytes that are read again or by several work-groups / bandwidth of L2
 *     compute       operations / rate of their unit         both with the share of the
 *     instructions  instructions / rate at which they start   multiprocessors that work
 *     waiting       bytes / (bytes under way in a latency), and waits one after the other
 *
 * Must not know: what launches compute. Read next: facts.c, docs/performance.md. */
#include "device/gpu/card/card.h"

#include <math.h>

/* Parts of a rate that well-made kernels reach. MEMORY_PART: a copy of large buffers on an H200 reached 4.3
 * of 4.8 TB/s. ISSUE_PART is an assumption: dependencies leave a quarter of the slots empty. */
#define MEMORY_PART 0.9
#define ISSUE_PART  0.75
/* Latencies: under load from memory (an assumption); from L2 and memory without load, in clocks, as
 * microbenchmarks found on H100, and so from local memory. */
#define LOADED_SECONDS 0.7e-6
#define L2_CLOCKS      261
#define LOCAL_CLOCKS   33
#define ENTRY_WAITS    3 /* of an entry of a fused launch in sequence: to read, to write, for the others */

/* Limits of a multiprocessor. */
#define REGISTERS    65536.0
#define SHARED_EXTRA 1024.0 /* of each block, for the driver */

const char *weft__card_reason(weft_card_reason reason) {
    static const char *const names[] = {
#define NAME(id, text) text,
        WEFT_CARD_REASONS(NAME)
#undef NAME
    };
    return (unsigned)reason < WEFT_CARD_REASON_COUNT ? names[reason] : "?";
}

static double smaller(double a, double b) { return a < b ? a : b; }
static double larger(double a, double b) { return a > b ? a : b; }

/* Returns how many blocks a multiprocessor holds. */
static double blocks_of_unit(const weft_card *card, const weft_launch *l) {
    const double items = (double)l->items[0] * l->items[1] * l->items[2];
    double most = smaller(card->blocks, floor(card->threads / items));
    const double registers = l->facts.registers > 0 ? l->facts.registers : 64;
    most = smaller(most, floor(REGISTERS / (registers * items)));
    if (l->shared_bytes > 0)
        most = smaller(most, floor((card->shared + SHARED_EXTRA) / (l->shared_bytes + SHARED_EXTRA)));
    return larger(1, most);
}

/* Returns the share of the card's units that works, over the time of the launch. The last round of blocks may
 * leave units empty. */
static double share_of(double blocks, double resident, int units) {
    if (blocks <= units) return blocks / units;
    if (blocks <= resident) return blocks / (ceil(blocks / units) * units);
    return blocks / (ceil(blocks / resident) * resident);
}

/* Prices the parts of a launch of kernels. */
static void price_parts(const weft_card *card, const weft_launch *l, bool cached, weft_card_price *p) {
    const weft_launch_facts *f = &l->facts;
    const double items = (double)l->items[0] * l->items[1] * l->items[2], blocks = (double)p->blocks;
    const double resident = (double)p->resident, share = share_of(blocks, resident, card->units);
    const double held = f->row * smaller(blocks, resident); /* between two passes, by all blocks */
    const bool near =
        f->row * larger(1, resident / card->units) <= card->shared; /* in the multiprocessor's cache */
    const bool far = !cached && !near && held > card->l2;
    const double memory = cached ? 0 : f->bytes + (far ? f->again : 0);
    const double cache = f->tiles + f->sums + (cached ? f->bytes : 0) + (far || near ? 0 : f->again);
    const double near_by = L2_CLOCKS / card->clock, far_off = cached ? near_by : LOADED_SECONDS;
    const double under_way = smaller(blocks, resident) * items * (f->at_once > 0 ? f->at_once : 4);
    const double rounds = ceil(blocks / resident);
    p->again = near ? 0 : f->again;
    p->memory = memory / (MEMORY_PART * card->bandwidth);
    p->cache = cache / card->l2_bandwidth / smaller(1, blocks / card->units);
    p->instructions = f->work[WEFT_UNIT_ISSUE] / (ISSUE_PART * card->rate[WEFT_UNIT_ISSUE] * share);
    for (int u = WEFT_UNIT_ISSUE + 1; u < WEFT_UNITS; u++)
        if (f->work[u] > 0) p->compute += f->work[u] / (card->rate[u] * share);
    p->waiting = (memory * far_off + cache * near_by) / under_way + rounds * f->steps * far_off;
}

weft_card_price weft__card_price(const weft_card *card, const weft_launch *l, bool cached) {
    const weft_launch_facts *f = &l->facts;
    weft_card_price p = {.blocks = l->groups[0] * l->groups[1] * l->groups[2], .launch = card->node};
    p.resident = (int64_t)blocks_of_unit(card, l) * card->units;
    if (l->call) { /* the rates of libraries include all but bytes */
        p.memory = cached ? 0 : f->bytes / (MEMORY_PART * card->bandwidth);
        p.cache = cached ? f->bytes / card->l2_bandwidth : 0;
        for (int u = 0; u < WEFT_UNITS; u++)
            if (f->work[u] > 0) p.compute += f->work[u] / card->rate[u];
        p.compute = larger(p.compute, f->least);
    } else {
        price_parts(card, l, cached, &p);
        p.waiting += ((ENTRY_WAITS * f->entries - f->near_waits) * L2_CLOCKS + f->near_waits * LOCAL_CLOCKS) /
                     card->clock;
    }
    const struct {
        double seconds;
        weft_card_reason reason;
    } parts[] = {{p.memory, WEFT_CARD_MEMORY},
                 {p.cache, WEFT_CARD_CACHE},
                 {p.compute, WEFT_CARD_COMPUTE},
                 {p.instructions, WEFT_CARD_INSTRUCTIONS},
                 {p.waiting, WEFT_CARD_LATENCY}};
    double longest = 0;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (parts[i].seconds > longest) longest = parts[i].seconds, p.reason = parts[i].reason;
    if (!l->call && !f->entries && p.blocks < card->units && p.reason != WEFT_CARD_MEMORY)
        p.reason = WEFT_CARD_BLOCKS;
    if (longest <= p.launch) p.reason = WEFT_CARD_LAUNCH;
    p.seconds = longest + p.launch;
    return p;
}
