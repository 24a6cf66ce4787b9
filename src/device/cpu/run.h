/* The CPU device and its programs, shared by cpu.c and run.c. */
#ifndef WEFT_DEVICE_CPU_RUN_H
#define WEFT_DEVICE_CPU_RUN_H

#include "device/cpu/cpu.h"

typedef struct weft_cpu_device {
    weft_device base;
    weft_fault fault; /* the first since it was last taken */
    int threads;
    bool timing;
} weft_cpu_device;

/* One command made ready. */
typedef struct weft_cpu_item {
    weft_cpu_work work;
    int args;     /* its first address in weft_executable.args */
    bool sink;    /* skipped once a fault is recorded */
    bool after;   /* waits for all before it */
    bool wide;    /* its tasks are shared among the threads; else thread 0 does them */
    bool barrier; /* threads meet before it */
} weft_cpu_item;

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
};

weft_status weft__cpu_build(weft_device *device, const weft_commands *commands, weft_executable **out);
void weft__cpu_executable_free(weft_device *device, weft_executable *executable);
weft_status weft__cpu_run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                          int times);

/* Starts the team of threads that later runs use; fewer where the system grants no more. Returns how many. */
int weft__cpu_start_team(int threads);

#endif
