/* The CPU device and its programs, shared by cpu.c and run.c. */
#ifndef WEFT_DEVICE_CPU_RUN_H
#define WEFT_DEVICE_CPU_RUN_H

#include "device/cpu/cpu.h"
#include "device/cpu/thread_pool.h"

typedef struct weft_cpu_device {
    weft_device base;
    weft_thread_pool *pool;
    weft_fault fault; /* the first since it was last taken */
    bool timing;
} weft_cpu_device;

/* One command made ready. */
typedef struct weft_cpu_item {
    weft_cpu_work work;
    void **args; /* its addresses, in weft_executable.args */
    bool sink;   /* skipped once a fault is recorded */
    bool after;  /* waits for all before it */
} weft_cpu_item;

/* A stretch of the program that a team claims in chunks. */
typedef struct weft_cpu_unit {
    int first, last; /* items; several only where all are cheap */
    int64_t chunks;  /* ranges of tasks of the one item; of several, ranges of items: 1 unless independent */
    int64_t before;  /* chunks of all units before it */
    bool wait;       /* until all of those are done */
} weft_cpu_unit;

/* The next chunk of a unit's part to be claimed; alone in its cache line. */
typedef struct weft_cpu_claim {
    _Atomic int64_t next;
    char padding[56];
} weft_cpu_claim;

struct weft_executable {
    int count, n_slots, n_args;
    weft_cpu_item *items;
    void **args;                 /* addresses of all operands, as bound */
    const weft_operand **places; /* where they lie */
    void **bound;                /* [n_slots] the memory they were last computed for */
    int threads;
    size_t scratch_bytes; /* a thread */
    char *scratch;
    double cost_ns; /* of one run on one thread */
    weft_timing *timings;
    int n_units; /* of a program for a team */
    int parts;   /* of a unit, one a thread where there are few: whose chunks a thread claims first */
    weft_cpu_unit *units;
    weft_cpu_claim *claims; /* [n_units][parts] */
};

weft_status weft__cpu_build(weft_device *device, const weft_commands *commands, weft_executable **out);
void weft__cpu_executable_free(weft_device *device, weft_executable *executable);
weft_status weft__cpu_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                          int times);

double weft__cpu_now_ns(void);

/* ---- team.c ---- */

/* Cuts the program into units, or leaves it to one thread where a team would not be faster. */
weft_status weft__cpu_team_build(weft_context *ctx, weft_executable *executable);

/* Runs it with all threads of the executable. */
void weft__cpu_team_run(weft_cpu_device *device, weft_executable *executable, int times);

/* Subnormals must not be flushed nor rounding changed, whatever a foreign library did to the thread. Returns
 * what to restore. */
unsigned weft__cpu_standard_float_state(void);
void weft__cpu_restore_float_state(unsigned state);
#endif
