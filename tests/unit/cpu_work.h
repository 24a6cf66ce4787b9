/* Helpers for the tests of the CPU device's heavy operations. They run the tasks of an operation in several
 * orders, which must give the same bits. */
#ifndef WEFT_TESTS_CPU_WORK_H
#define WEFT_TESTS_CPU_WORK_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "values.h"

static inline void run_pieces(const weft_cpu_work *work, void *const *args, const int64_t *order,
                              int64_t piece, weft_fault *fault) {
    size_t bytes = (work->scratch_bytes + 63) / 64 * 64;
    char *scratch = bytes ? aligned_alloc(64, bytes) : NULL;
    if (scratch) memset(scratch, 0xff, bytes); /* NaN: the initial contents are undefined */
    if (order) {
        for (int64_t t = 0; t < work->tasks; t++)
            work->run(work->plan, args, order[t], order[t] + 1, scratch, fault);
    } else {
        for (int64_t t = 0; t < work->tasks; t += piece) {
            int64_t end = t + piece < work->tasks ? t + piece : work->tasks;
            work->run(work->plan, args, t, end, scratch, fault);
        }
    }
    free(scratch);
}

/* Runs all tasks at once, in two and in four chunks, and one by one in random order, each time prepared for
 * another number of threads. All runs must leave the same bits in `out`, whose old contents are restored
 * before each. Returns the fault of the last run. */
static inline weft_fault run_all_ways(const weft_heavy *heavy, void *const *args, void *out,
                                      size_t out_bytes) {
    static const int threads[] = {1, 2, 4, 7};
    weft_fault fault = {0};
    char *before = malloc(out_bytes + 1), *first = malloc(out_bytes + 1);
    memcpy(before, out, out_bytes);
    for (int way = 0; way < 4; way++) {
        weft_cpu_work work;
        assert_int_equal(weft__cpu_heavy_prepare(NULL, heavy, threads[way], &work), WEFT_OK);
        int64_t *order = malloc((size_t)(work.tasks + 1) * sizeof *order);
        memset(&fault, 0, sizeof fault);
        memcpy(out, before, out_bytes);
        uint64_t seed = 99;
        for (int64_t i = 0; i < work.tasks; i++) {
            int64_t j = (int64_t)(next_random(&seed) % (uint64_t)(i + 1));
            order[i] = order[j];
            order[j] = i;
        }
        int64_t pieces = way == 1 ? 2 : way == 2 ? 4 : 1, piece = (work.tasks + pieces - 1) / pieces;
        run_pieces(&work, args, way == 3 ? order : NULL, piece > 0 ? piece : 1, &fault);
        if (way == 0)
            memcpy(first, out, out_bytes);
        else
            assert_memory_equal(first, out, out_bytes);
        free(order);
        work.free(NULL, work.plan);
    }
    free(before), free(first);
    return fault;
}

#endif
