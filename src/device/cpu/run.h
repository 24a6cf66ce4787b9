/* The CPU device and its programs, shared by cpu.c, run.c and chunks.c.
 * Must not know: kernels. Read next: run.c, chunks.c. */
#ifndef WEFT_DEVICE_CPU_RUN_H
#define WEFT_DEVICE_CPU_RUN_H

#include "device/cpu/cpu.h"
#include "device/cpu/thread_pool.h"

typedef struct weft_cpu_device {
    weft_device base;
    weft_thread_pool *pool;
    weft_fault fault; /* the first one since the last take_fault */
    bool timing;
} weft_cpu_device;

/* One command, prepared to run. */
typedef struct weft_cpu_item {
    weft_cpu_work work;
    void **args; /* addresses of its operands; points into weft_executable.args */
    bool sink;   /* skipped once a fault is recorded */
    bool after;  /* waits for all items before it */
} weft_cpu_item;

/* A stretch of the program whose chunks the threads of a pool claim. */
typedef struct weft_cpu_unit {
    int first, last; /* the items; there are several only if all are cheap */
    int64_t chunks;  /* one item: ranges of its tasks. Several items: ranges of items, and 1 if they depend on
                        each other */
    int64_t before;  /* number of chunks in all units before it */
    bool wait;       /* whether it waits until all these chunks are done */
} weft_cpu_unit;

/* The next chunk to claim in one part of a unit. It has a cache line of its own. */
typedef struct weft_cpu_chunk {
    _Atomic int64_t next;
    char padding[56];
} weft_cpu_chunk;

struct weft_executable {
    int count, n_slots, n_args;
    weft_cpu_item *items;
    void **args;                 /* addresses of all operands, in the buffers of the last run */
    const weft_operand **places; /* slots and offsets of all operands */
    void **bound;                /* [n_slots] the memory for which args was last computed */
    int threads;
    size_t scratch_bytes; /* per thread */
    char *scratch;
    double cost_ns; /* of one run on one thread */
    weft_timing *timings;
    int n_units; /* 0 if one thread runs the program */
    int parts; /* parts of a unit; with few threads, one for each thread, which claims chunks of its own part
                  first */
    weft_cpu_unit *units;
    weft_cpu_chunk *chunks; /* [n_units][parts] */
};

weft_status weft__cpu_build(weft_device *device, const weft_commands *commands, weft_executable **out);
void weft__cpu_executable_free(weft_device *device, weft_executable *executable);
weft_status weft__cpu_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                          int times);

double weft__cpu_now_ns(void);

/* ---- chunks.c ---- */

/* Divides the program into units. If several threads would not be faster, the program is left to one
 * thread. */
weft_status weft__cpu_chunks_build(weft_context *ctx, weft_executable *executable);

/* Runs the program `times` times with all threads of the executable. */
void weft__cpu_chunks_run(weft_cpu_device *device, weft_executable *executable, int times);

/* Sets the floating-point state that Weft needs: round to nearest, subnormals kept. A foreign library may
 * have changed it. Returns the state to restore. */
unsigned weft__cpu_standard_float_state(void);
void weft__cpu_restore_float_state(unsigned state);
#endif
