/* Inside the plan: units, and what its two files share. Read next: plan.c, plan_memory.c. */
#ifndef WEFT_COMPILER_PASSES_PLAN_H
#define WEFT_COMPILER_PASSES_PLAN_H

#include "compiler/program.h"

typedef struct plan_unit {
    weft_kernel *kernel;
    int *args;         /* KERNEL: nodes */
    int heavy;         /* HEAVY node, -1; with a kernel: a product and its epilogue */
    int from, to_sink; /* COPY of node `from` into the variable of a sink; to_sink -1 */
    uint64_t key;      /* serial of the newest node it makes: the order in which units were recorded */
    uint8_t stage;     /* weft_stage, for profiles */
    bool chunk;        /* of a part of much: not before it is needed */
    int *after, n_after, after_capacity; /* units that must run before */
    int phase, command;                  /* its number in the program */
    bool sink, alone;                    /* the first of its phase */
} plan_unit;

typedef struct plan {
    weft_ir *ir;
    weft_program *program;
    const weft_walk *walk;
    plan_unit *units;
    int n_units;
    size_t unit_capacity;
    int *order;                    /* units as they run */
    int *first_phase, *last_phase; /* per node */
    int *first_out, *next_out; /* per node: a heavy node's first output, and the one after an output, -1 */
    int *part;                 /* per node in a pack: which part of it */
    int *heir;                 /* per node: the value that takes over its memory, -1 */
    int *region_nodes;         /* of the program's regions */
    ir_index walked, leaves, storages; /* leaves of the walk and of the program by tensor, slots by storage */
} plan;

/* ---- plan.c ---- */
/* The i-th node that the unit reads, -1 after the last; of a product with an epilogue the product's first. */
int weft__plan_reads(const plan *p, const plan_unit *u, int i);
/* The argument of the unit's kernel that its own product makes, -1. */
int weft__plan_product(const plan *p, const plan_unit *u);
/* Does the heavy operation itself read it? */
bool weft__plan_heavy_reads(const plan *p, const plan_unit *u, const weft_tensor *variable);
/* Unit `later` runs after unit `earlier`. */
weft_status weft__plan_after(plan *p, int later, int earlier);
/* Does the kernel read argument `in` only at the index at which it stores `out`, and store nothing that it
 * merely read from there? Then both may lie in the same memory. */
bool weft__plan_same_index(const weft_kernel *kernel, int in, int out);

/* ---- epilogue.c ---- */
/* Makes one unit of a product and a kernel that is its epilogue, where the device takes it. */
weft_status weft__plan_epilogues(plan *p);

/* ---- epilogue_sum.c ---- */
/* The value of unit k's kernel that all `readers` of the product, its argument `arg`, want in place of it:
 * its sum with a vector; -1. */
int weft__plan_shared_sum(const plan *p, int k, int arg, int readers);
/* The others load it where the product was. */
weft_status weft__plan_load_sum(plan *p, int k, int arg);

/* ---- plan_memory.c ---- */
/* Lifetimes, and with them places in the arena. Orders the units of a phase anew, and splits it, where that
 * saves memory. */
weft_status weft__plan_memory(plan *p);

/* Once commands are numbered: whose each region of the arena is. */
weft_status weft__plan_name_regions(const plan *p);

/* The node whose memory holds node n: its last heir, or the pack that it lies in, or itself. */
int weft__plan_holder(const plan *p, int n);

#endif
