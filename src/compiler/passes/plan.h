/* What the files of the plan share: units, and the plan under construction. A unit is what becomes one
 * command: a kernel, a heavy operation (perhaps with an epilogue), or a copy. Must not know: how a device
 * runs a command. Read next: plan.c, plan_memory.c. */
#ifndef WEFT_COMPILER_PASSES_PLAN_H
#define WEFT_COMPILER_PASSES_PLAN_H

#include "compiler/program.h"

typedef struct plan_unit {
    weft_kernel *kernel;
    int *args;         /* of the kernel: nodes */
    int heavy;         /* the HEAVY node, -1: none; together with `kernel`: a matmul and its epilogue */
    int waits_for;     /* the HEAVY node of an exchange for whose end it waits, -1: none */
    int from, to_sink; /* a copy of node `from` into the variable of sink `to_sink`; both -1: no copy */
    uint64_t key;      /* serial of the newest node that it computes; units run in this order where they
                        * may */
    uint8_t stage;     /* weft_stage, for profiles */
    bool chunk;        /* of a chunk (WEFT_SEGMENT_CHUNK); runs as late as possible */
    int *after, n_after, after_capacity; /* units that must run before it */
    int phase, command;                  /* its phase, and its command number in the program */
    bool sink, alone;                    /* sink: it writes a variable. alone: it begins a phase */
} plan_unit;

typedef struct plan {
    weft_ir *ir;
    weft_program *program;
    const weft_walk *walk;
    plan_unit *units;
    int n_units;
    size_t unit_capacity;
    int *order;                    /* the units in the order in which they run */
    int *first_phase, *last_phase; /* per node */
    int *first_out, *next_out; /* per node: the first output of a heavy node, and the output after an output;
                                * -1: none */
    int *part;                 /* per node in a pack: its number among the parts */
    int *alias;                /* buffer alias, per node: the value that takes over its memory, -1: none */
    int *region_nodes;         /* the first node of each region of the arena */
    ir_index walked, leaves, storages; /* leaves of the walk and of the program, by tensor; slots, by
                                        * storage */
} plan;

/* ---- plan.c ---- */
/* Returns the i-th node that the unit reads, -1 after the last. The operands of a matmul come before the
 * arguments of its epilogue. */
int weft__plan_reads(const plan *p, const plan_unit *u, int i);
/* Returns the argument of an epilogue that its own matmul computes, -1: the unit has no epilogue. */
int weft__plan_matmul(const plan *p, const plan_unit *u);
/* Does the unit's heavy operation read the variable? Its epilogue does not count. */
bool weft__plan_heavy_reads(const plan *p, const plan_unit *u, const weft_tensor *variable);
/* Returns the argument of the unit's kernel that is the node, -1: none. */
int weft__plan_arg_of(const plan_unit *u, int node);
/* Records that unit `later` runs after unit `earlier`. */
weft_status weft__plan_after(plan *p, int later, int earlier);
/* May arguments `in` and `out` share memory? Yes, if the kernel reads `in` only at the index at which it
 * stores `out`, and stores no unchanged element of `in`. */
bool weft__plan_same_index(const weft_kernel *kernel, int in, int out);

weft_status weft__plan_add_unit(plan *p, plan_unit u);
/* Orders the units so that each runs after all that it needs. Of several that are ready, the one with the
 * lowest key comes first. */
weft_status weft__plan_order(plan *p);

/* ---- exchanges.c ---- */
/* Decides in which order exchanges with other processes are made, and when each starts and ends. */
weft_status weft__plan_exchanges(plan *p);

/* ---- epilogue.c ---- */
/* Merges a kernel into the unit of the matmul whose epilogue it can be, if the device takes it. */
weft_status weft__plan_epilogues(plan *p);

/* ---- epilogue_sum.c ---- */
/* Argument `arg` of unit k's kernel is the result of a matmul. If all `readers` of the result first add the
 * same vector to it, returns the value of this sum in the kernel. Else returns -1. */
int weft__plan_shared_sum(const plan *p, int k, int arg, int readers);
/* Lets all other readers load the sum, which is stored in place of the matmul's result. */
weft_status weft__plan_load_sum(plan *p, int k, int arg);

/* ---- plan_memory.c ---- */
/* Finds lifetimes and gives values their places in the arena. If that saves memory, it reorders the units of
 * a phase and splits the phase. */
weft_status weft__plan_memory(plan *p);

/* Names the command and the kind of each region of the arena. Call it after commands are numbered. */
weft_status weft__plan_name_regions(const plan *p);

/* Returns the node whose memory holds node n: its last alias, the pack that it lies in, or n itself. */
int weft__plan_holder(const plan *p, int n);

#endif
