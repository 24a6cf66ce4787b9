/* Keeps clusters in a topological order while they grow and merge. Each cluster has a place after all
 * clusters that it needs. A new edge or a merge moves only clusters between its two ends (Pearce and Kelly
 * 2006, "A dynamic topological sort algorithm for directed acyclic graphs"), and a search looks no further
 * than these. Must not know: why clusters should join. Read next: fuse.c. */
#include <stdlib.h>
#include <string.h>
#include "compiler/passes/heap.h"
#include "compiler/passes/ir.h"

/* A search that has visited so many clusters gives up and answers that the one runs before the other. The two
 * clusters then do not join. So compile time is linear in the number of nodes. */
enum { SEARCH_MOST = 4096 };

/* The cluster that c belongs to now. The lists of other clusters keep the old numbers of merged clusters. */
static int order_find(weft_ir *ir, int c) {
    ir_cluster *all = ir->clusters;
    while (all[c].into != c) c = all[c].into = all[all[c].into].into;
    return c;
}

static bool push(weft_ir *ir, ir_links *list, int c) {
    if (list->count && list->at[list->count - 1] == c) return true; /* the last member had the same edge */
    if (list->count == list->capacity) {
        const int capacity = list->capacity ? 2 * list->capacity : 4;
        int *at = weft__arena_alloc(&ir->arena, (size_t)capacity * sizeof *at);
        if (!at) return false;
        if (list->count) memcpy(at, list->at, (size_t)list->count * sizeof *at);
        list->at = at;
        list->capacity = capacity;
    }
    list->at[list->count++] = c;
    return true;
}

bool weft__order_open(weft_ir *ir, int most) {
    ir->order.found = weft__arena_alloc(&ir->arena, (size_t)(2 * most + 2) * sizeof *ir->order.found);
    ir->order.places = weft__arena_alloc(&ir->arena, (size_t)(most + 1) * sizeof *ir->order.places);
    ir->ahead.places = weft__arena_alloc(&ir->arena, (size_t)(most + 1) * sizeof *ir->ahead.places);
    ir->ahead.of = -1;
    return ir->order.found && ir->order.places && ir->ahead.places;
}

void weft__order_new(weft_ir *ir, int c) { ir->clusters[c].into = ir->clusters[c].place = c; }

/* Is there a path from a to b? With `around`, it must pass through a third cluster. Also true if the search
 * gives up. It goes backwards from b and expands first the cluster whose place is lowest, so it finds a path
 * quickly where there is one. */
static bool leads(weft_ir *ir, int a, int b, bool around) {
    const int low = ir->clusters[a].place, stamp = ++ir->order.stamp;
    int count = 0, met = 0;
    if (low < ir->clusters[b].place) ir->order.places[count++] = weft__ranked(ir->clusters[b].place, b);
    while (count) {
        const int at = weft__ranked_value(weft__heap_pop(ir->order.places, count--));
        const ir_links *list = &ir->clusters[at].earlier;
        if (++met > SEARCH_MOST) return true;
        for (int k = 0; k < list->count; k++) {
            const int c = order_find(ir, list->at[k]);
            ir_cluster *cluster = &ir->clusters[c];
            if (c == a && (at != b || !around)) return true;
            if (cluster->mark == stamp || cluster->place <= low) continue;
            cluster->mark = stamp;
            weft__heap_push(ir->order.places, count++, weft__ranked(cluster->place, c));
        }
    }
    return false;
}

bool weft__order_precedes(weft_ir *ir, int a, int b) { return leads(ir, a, b, false); }
bool weft__order_between(weft_ir *ir, int a, int b) { return leads(ir, a, b, true); }

/* Searches forwards from a in the order of places, no further than b. */
bool weft__order_reaches(weft_ir *ir, int a, int b) {
    const int last = ir->clusters[b].place;
    if (ir->ahead.of != a) {
        ir->ahead.of = a;
        ir->ahead.stamp++;
        ir->ahead.count = 1;
        ir->ahead.met = 0;
        ir->ahead.places[0] = weft__ranked(ir->clusters[a].place, a);
    }
    while (ir->ahead.count && ir->ahead.places[0] < weft__ranked(last, 0)) {
        const int at = weft__ranked_value(weft__heap_pop(ir->ahead.places, ir->ahead.count--));
        const ir_links *list = &ir->clusters[at].later;
        if (++ir->ahead.met > SEARCH_MOST) return true;
        for (int k = 0; k < list->count; k++) {
            const int c = order_find(ir, list->at[k]);
            ir_cluster *cluster = &ir->clusters[c];
            if (cluster->ahead == ir->ahead.stamp) continue;
            cluster->ahead = ir->ahead.stamp;
            weft__heap_push(ir->ahead.places, ir->ahead.count++, weft__ranked(cluster->place, c));
        }
    }
    return ir->clusters[b].ahead == ir->ahead.stamp;
}

/* Writes cluster `from`, and all clusters before it (or after it) between two places, into `found`. Returns
 * their number. */
static int reach(weft_ir *ir, int from, bool before, int low, int high, int *found) {
    const int stamp = ++ir->order.stamp;
    int count = 0;
    ir->clusters[from].mark = stamp;
    found[count++] = from;
    for (int i = 0; i < count; i++) {
        const ir_links *list = before ? &ir->clusters[found[i]].earlier : &ir->clusters[found[i]].later;
        for (int k = 0; k < list->count; k++) {
            const int c = order_find(ir, list->at[k]);
            ir_cluster *cluster = &ir->clusters[c];
            if (cluster->mark == stamp || cluster->place <= low || cluster->place >= high) continue;
            cluster->mark = stamp;
            found[count++] = c;
        }
    }
    return count;
}

/* Moves `last` and all clusters before it in front of `first` and all clusters after it. No third cluster may
 * depend on `first` and be needed by `last`.
 *
 *     places     low ............ high
 *     before     first  f1   l1   last       f1 needs first, last needs l1
 *     after      l1     last first f1        the same places, dealt out again */
static void move_before(weft_ir *ir, int last, int first) {
    const int low = ir->clusters[first].place, high = ir->clusters[last].place;
    int *found = ir->order.found;
    const int n_before = reach(ir, last, true, low, high, found);
    const int n = n_before + reach(ir, first, false, low, high, found + n_before);
    int64_t *sorted = ir->order.places; /* ranked: place, cluster */
    for (int i = 0; i < n; i++) sorted[i] = weft__ranked(ir->clusters[found[i]].place, found[i]);
    qsort(sorted, (size_t)n_before, sizeof *sorted, weft__by_rank);
    qsort(sorted + n_before, (size_t)(n - n_before), sizeof *sorted, weft__by_rank);
    int *places = found; /* all places in ascending order: merges two sorted lists */
    int *clusters = found + n;
    for (int i = 0; i < n; i++) clusters[i] = weft__ranked_value(sorted[i]);
    for (int i = 0, j = n_before, k = 0; k < n; k++)
        places[k] =
            (int)((j == n || (i < n_before && sorted[i] < sorted[j]) ? sorted[i++] : sorted[j++]) >> 32);
    for (int i = 0; i < n; i++) ir->clusters[clusters[i]].place = places[i];
}

bool weft__order_after(weft_ir *ir, int c, int first) {
    ir->ahead.of = -1;
    if (!push(ir, &ir->clusters[c].earlier, first) || !push(ir, &ir->clusters[first].later, c)) return false;
    if (ir->clusters[first].place > ir->clusters[c].place) move_before(ir, first, c);
    return true;
}

static bool order_append(weft_ir *ir, ir_links *to, ir_links *from) {
    if (to->count < from->count) {
        const ir_links longer = *from;
        *from = *to;
        *to = longer;
    }
    for (int i = 0; i < from->count; i++)
        if (!push(ir, to, from->at[i])) return false;
    return true;
}

bool weft__order_merge(weft_ir *ir, int to, int from) {
    ir_cluster *x = &ir->clusters[to], *y = &ir->clusters[from];
    ir->ahead.of = -1;
    if (x->place < y->place)
        move_before(ir, from, to);
    else
        move_before(ir, to, from);
    y->into = to;
    return order_append(ir, &x->earlier, &y->earlier) && order_append(ir, &x->later, &y->later);
}
