/* Races: two accesses of a byte by different threads, one of them a write, with nothing between them that
 * orders them: a barrier of the block, or bar.warp.sync. Nothing orders the blocks of a launch. Read next:
 * memory.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <sys/mman.h>

#include "actions.h"
#include "parse.h"

static unsigned thread_of(const ptx_warp *w, uint32_t lane) { return (unsigned)w->number * LANES + lane; }

/* ---- within a block ---- */

/* Is the last write of a byte ordered before what this lane does now? */
static bool comes_after_write(const ptx_warp *w, uint32_t lane, const ptx_shadow *s) {
    if (s->write_epoch != w->block->epoch || s->writer == thread_of(w, lane)) return true;
    return s->writer / LANES == (unsigned)w->number && s->write_meet != w->meets;
}

static bool comes_after_reads(const ptx_warp *w, uint32_t lane, const ptx_shadow *s) {
    if (s->read_epoch != w->block->epoch) return true;
    if (s->reader_warp != w->number) return false;
    return s->read_meet != w->meets || !(s->readers & ~(1u << lane));
}

static void note_read(const ptx_warp *w, uint32_t lane, ptx_shadow *s) {
    if (s->read_epoch != w->block->epoch) {
        s->reader_warp = (int16_t)w->number;
        s->readers = 0;
    } else if (s->reader_warp != w->number) {
        s->reader_warp = SEVERAL_WARPS;
    }
    if (s->read_meet != w->meets) s->readers = 0;
    s->readers |= 1u << lane;
    s->read_meet = w->meets;
    s->read_epoch = w->block->epoch;
}

void ptx_note_write(const ptx_warp *w, uint32_t lane, ptx_shadow *s, bool atomic) {
    s->writer = (uint16_t)thread_of(w, lane);
    s->write_epoch = w->block->epoch;
    s->write_meet = w->meets;
    s->atomic = atomic;
}

/* ---- shared memory ---- */

bool ptx_check_shared(ptx_warp *w, uint32_t lane, uint64_t at, ptx_access how, bool same) {
    ptx_shadow *s = &w->block->shadow[at];
    const unsigned long long byte = at;
    if (s->pending) {
        ptx_fault(w, (int)lane,
                  "byte %llu of shared memory is used while cp.async of thread %u may still write it", byte,
                  s->writer);
        return false;
    }
    if (how == READ && !s->write_epoch) {
        ptx_fault(w, (int)lane, "byte %llu of shared memory is read, which the block has not written", byte);
        return false;
    }
    if (!comes_after_write(w, lane, s) && !(how == ATOMIC && s->atomic) && !(how == WRITE && same)) {
        ptx_fault(w, (int)lane,
                  "race: byte %llu of shared memory is %s, which thread %u wrote after the last barrier",
                  byte, how == READ ? "read" : "written", s->writer);
        return false;
    }
    if (how != READ && !comes_after_reads(w, lane, s)) {
        ptx_fault(w, (int)lane,
                  "race: byte %llu of shared memory is written, which another thread read after the last "
                  "barrier",
                  byte);
        return false;
    }
    if (how == READ)
        note_read(w, lane, s);
    else
        ptx_note_write(w, lane, s, how == ATOMIC);
    return true;
}

/* ---- global memory ---- */

/* A plain read of what others change by atomic instructions is no race here, as in tests/cuda/race.c. */
bool ptx_check_global(ptx_warp *w, uint32_t lane, ptx_cell *c, uint64_t at, ptx_access how) {
    const uint32_t block = w->block->number;
    const unsigned long long byte = at;
    if (c->launch != w->machine->number) *c = (ptx_cell){.launch = w->machine->number};
    const bool after_write =
        !c->written || (c->write_block == block && comes_after_write(w, lane, &c->within));
    if (!after_write && !(c->within.atomic && how != WRITE)) {
        ptx_fault(w, (int)lane,
                  "race: the byte at %#llx of global memory is %s, which thread %u of block %u wrote", byte,
                  how == READ ? "read" : "written", c->within.writer, c->write_block);
        return false;
    }
    if (how == WRITE && c->read && !(c->read_block == block && comes_after_reads(w, lane, &c->within))) {
        ptx_fault(w, (int)lane,
                  "race: the byte at %#llx of global memory is written, which another thread read", byte);
        return false;
    }
    if (how == READ) {
        if (c->read && c->read_block != block) c->read_block = SEVERAL_BLOCKS;
        if (!c->read) c->read_block = block;
        c->read = true;
        if (c->read_block == block) note_read(w, lane, &c->within);
    } else {
        c->written = true;
        c->write_block = block;
        ptx_note_write(w, lane, &c->within, how == ATOMIC);
    }
    return true;
}

/* Ranges that were given cells. Where a new one overlaps, the old one is gone. */
static struct {
    uint64_t begin, end;
    ptx_cell *cells;
} * ranges;
static int n_ranges;

ptx_cell *ptx_cells_of(uint64_t begin, uint64_t end) {
    const size_t bytes = (end - begin) * sizeof(ptx_cell);
    for (int i = n_ranges - 1; i >= 0; i--) {
        if (ranges[i].begin == begin && ranges[i].end == end) return ranges[i].cells;
        if (ranges[i].begin >= end || begin >= ranges[i].end) continue;
        munmap(ranges[i].cells, (ranges[i].end - ranges[i].begin) * sizeof(ptx_cell));
        ranges[i] = ranges[--n_ranges];
    }
    ranges = ptx_more(ranges, n_ranges, sizeof *ranges);
    ranges[n_ranges].begin = begin;
    ranges[n_ranges].end = end;
    ranges[n_ranges].cells =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (ranges[n_ranges].cells == MAP_FAILED) abort();
    return ranges[n_ranges++].cells;
}
