/* Delayed stores of the simulated GPU. What a thread stores to global memory is visible to the thread at
 * once, to its block later, and to other blocks later still, in an order that is drawn from the seed. With
 * FAKE_CUDA_DELAYS only, since kernels must be compiled with calls before their accesses (race.c has the
 * same).
 *
 *     thread ----> block ----> all
 *            fence       fence
 *
 * - Stores reach the block by a barrier, __syncwarp, __threadfence_block, or some time.
 * - They reach all blocks by __threadfence of a thread of the block, at the end of the launch, or some time.
 * - An atomic operation takes place in memory. It orders no store to another address, as on a GPU: a kernel
 * that adds to a counter after its stores needs a fence between them.
 *
 * Memory always has what the running thread sees. So a store that is not visible to all keeps the bytes that
 * the others see, and exchanges them whenever another thread or block runs. Loads are not delayed.
 *
 * Must not know races, orders and barriers. Read next: items.c. */
#include "card.h"

#include <stdlib.h>
#include <string.h>

enum { LEFT_MOST = 256 };

static struct {
    bool on;
    fake_store left[LEFT_MOST]; /* by blocks that have ended */
    int n_left;
} delay;

/* Memory gets the bytes that the store keeps, and the store gets those of the memory. */
static void exchange(fake_store *s) {
    char bytes[sizeof s->bytes];
    memcpy(bytes, s->at, s->count);
    memcpy(s->at, s->bytes, s->count);
    memcpy(s->bytes, bytes, s->count);
}

static void exchange_all(fake_store *list, int count) {
    for (int i = 0; i < count; i++) exchange(&list[i]);
}

static void drop(fake_store *list, int *count, int i) { list[i] = list[--*count]; }

static bool is_overlapping(const fake_store *s, const char *at, unsigned count) {
    return at < s->at + s->count && s->at < at + count;
}

/* Drops the stores to any of these bytes: they are visible one step further out. Returns whether there is one
 * to exactly these bytes, which stays. */
static bool let_go(fake_store *list, int *count, const char *at, unsigned bytes, bool keep) {
    for (int i = *count - 1; i >= 0; i--) {
        if (!is_overlapping(&list[i], at, bytes)) continue;
        if (keep && list[i].at == at && list[i].count == bytes) return true;
        drop(list, count, i);
    }
    return false;
}

/* ---- from a thread to its block, and to all ---- */

static void to_block(fake_block *b, fake_store s) {
    if (let_go(b->stores, &b->n_stores, s.at, s.count, true)) return;
    if (b->n_stores == BLOCK_STORES)
        drop(b->stores, &b->n_stores, (int)(fake_draw() % BLOCK_STORES)); /* visible to all now */
    b->stores[b->n_stores++] = s;
}

static void to_block_at(item *it, int i) {
    const fake_store s = it->stores[i];
    drop(it->stores, &it->n_stores, i);
    to_block(it->block, s);
}

void fake_delay_fence(fake_item *base, fake_scope scope) {
    item *it = (item *)base;
    while (it->n_stores) to_block_at(it, it->n_stores - 1);
    if (scope == FAKE_CARD) it->block->n_stores = 0;
}

/* ---- accesses ---- */

static void note_store(item *it, char *at, unsigned bytes) {
    for (int i = it->n_stores - 1; i >= 0; i--) {
        if (!is_overlapping(&it->stores[i], at, bytes)) continue;
        if (it->stores[i].at == at && it->stores[i].count == bytes) return;
        to_block_at(it, i);
    }
    if (it->n_stores == THREAD_STORES) to_block_at(it, (int)(fake_draw() % THREAD_STORES));
    fake_store *s = &it->stores[it->n_stores++];
    s->at = at;
    s->count = bytes;
    memcpy(s->bytes, at, bytes);
}

static bool is_global(const item *it, const char *at, unsigned bytes) {
    const char *const stack = it->block->stacks + (size_t)(it - it->block->items) * FIBER_STACK;
    const fake_code *code = fake_running()->code;
    fake_cell **cells;
    size_t offset, all;
    if ((at >= stack && at < stack + FIBER_STACK) || (at >= code->base && at < code->end)) return false;
    return fake_find(at, bytes, &cells, &offset, &all) == FAKE_INSIDE;
}

void fake_delay_access(fake_item *base, void *at, unsigned bytes, fake_access how) {
    item *it = (item *)base;
    enum { MOST = sizeof it->stores->bytes };
    if (!delay.on || !fake_running() || how == FAKE_READ || !is_global(it, at, bytes)) return;
    if (how == FAKE_ATOMIC) {
        let_go(it->stores, &it->n_stores, at, bytes, false);
        let_go(it->block->stores, &it->block->n_stores, at, bytes, false);
        return;
    }
    for (unsigned i = 0; i < bytes; i += MOST)
        note_store(it, (char *)at + i, bytes - i < MOST ? bytes - i : MOST);
}

/* ---- when others run ---- */

void fake_delay_enter_thread(item *it) { exchange_all(it->stores, it->n_stores); }

/* Some stores reach the block. */
void fake_delay_leave_thread(item *it) {
    for (int i = it->n_stores - 1; i >= 0; i--)
        if (fake_draw() % 4 == 0) to_block_at(it, i);
    exchange_all(it->stores, it->n_stores);
}

void fake_delay_enter_block(fake_block *b) { exchange_all(b->stores, b->n_stores); }

/* Some stores become visible to all. */
void fake_delay_leave_block(fake_block *b) {
    for (int i = b->n_stores - 1; i >= 0; i--)
        if (fake_draw() % 8 == 0) drop(b->stores, &b->n_stores, i);
    exchange_all(b->stores, b->n_stores);
}

static void arrive(void) {
    const int i = (int)(fake_draw() % (uint64_t)delay.n_left);
    exchange(&delay.left[i]);
    drop(delay.left, &delay.n_left, i);
}

void fake_delay_pass(void) {
    if (delay.n_left && fake_draw() % 4 == 0) arrive();
}

/* What the block stored may still be on its way when it has ended. */
void fake_delay_end_block(fake_block *b) {
    exchange_all(b->stores, b->n_stores);
    for (int i = 0; i < b->n_stores; i++) {
        if (delay.n_left == LEFT_MOST) arrive();
        delay.left[delay.n_left++] = b->stores[i];
    }
    b->n_stores = 0;
}

void fake_delay_begin(void) {
    delay.on = getenv("FAKE_CUDA_DELAYS") != NULL;
    delay.n_left = 0;
}

/* Everything is visible to all. */
void fake_delay_end(void) {
    exchange_all(delay.left, delay.n_left);
    delay.n_left = 0;
}
