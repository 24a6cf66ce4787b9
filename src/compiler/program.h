/* A compiled program, the program cache, and what the files of the compiler share. Must not know: layers,
 * files, devices' insides. Read next: runtime/program.c (how a program is compiled and run), runtime/eval.c
 * and runtime/derive.c (who asks for it). */
#ifndef WEFT_COMPILER_PROGRAM_H
#define WEFT_COMPILER_PROGRAM_H

#include <weft/memory.h>
#include <weft/process_group.h>
#include <weft/profile.h>
#include "compiler/passes/ir.h"
#include "compiler/runtime/derive.h"

/* Slots of a program. Each run binds a buffer to each slot. Slots of leaves and outputs follow SLOT_FIRST. */
enum { SLOT_ARENA, SLOT_SCALARS, SLOT_FIRST };

/* A leaf of the graph. A cached program runs on many equal graphs, so the walk over the graph at hand finds
 * its leaves again. A fixed leaf (of a held program, or of a derivation) is the tensor itself. */
typedef struct program_leaf {
    weft_tensor *fixed; /* NULL: leaf number `walk` of the walk */
    int walk;
    int slot;       /* storage: the slot of its buffer; scalars: SLOT_SCALARS */
    int64_t offset; /* scalars: first byte in the buffer of scalars */
} program_leaf;

/* A region of the arena. A value and its aliases lie in it. */
typedef struct program_region {
    int64_t bytes, offset;
    int first, last; /* first and last phase of its lifetime; a command with `after` begins a phase */
    int command;     /* the command that writes it first */
    uint8_t kind;    /* weft_memory_kind */
} program_region;

/* Scalars are numbers that change from run to run, such as the learning rate and the keys of random numbers.
 * A run reads a row of them (scalars.c). */
typedef struct program_scalars {
    weft_buffer *buffer;
    size_t bytes;   /* of a row */
    char *now;      /* the row of this run */
    char *rows;     /* the rows on the device: row 0, or WEFT_ROWS rows where programs may read them */
    int sent, next; /* rows that were sent; the row that this run should read, if it was foretold right */
    int unused;     /* times in turn that rows were foretold in vain */
} program_scalars;

struct weft_program {
    weft_context *ctx;
    weft_hash key;
    struct {
        weft_program *next,
            *prev;           /* in the cache, most recently used first; or in the list of held programs */
        weft_program *chain; /* next program in its bucket of the hash table */
    } links;
    weft_arena keep; /* kernels, commands and everything else that lives as long as the program */
    weft_commands commands;
    weft_executable *executable;
    struct {
        program_leaf *list;
        int count;
    } leaves;
    struct {
        int *slots;
        size_t count;
    } outputs;
    ir_sink *sinks; /* assignments; a variable is fixed, or found through sink_leaf */
    int *sink_leaf; /* index into the walk's leaves, -1: fixed */
    size_t n_sinks;
    program_scalars scalars;
    int64_t arena_bytes;
    struct {
        program_region *list;
        int count;
    } regions;           /* of the arena */
    weft_buffer **slots; /* bound by the last run */
    size_t n_kernels, n_copies, n_nodes;
    int n_exchanges; /* with other processes */
    uint8_t *stages; /* weft_stage of each command */
    struct {
        uint64_t last; /* number of the profile that last counted a run, */
        size_t number; /* and the program's number in it */
    } profile;
    /* held programs only */
    weft_tensor **held; /* kept alive until weft_program_free */
    size_t n_held;
    weft_tensor **results;
};

/* The result of a walk over a graph: its key, and its leaves in an order that equal graphs share. */
typedef struct weft_walk {
    weft_tensor **leaves;
    size_t n_leaves, capacity;
    ir_sink *due; /* assignments of the forward passes in the graph, which run now */
    size_t n_due, due_capacity;
    weft_hash key;
    weft_hash loose;      /* the key without the values of constants */
    const char *constant; /* where the first constant was recorded */
    size_t nodes;
    size_t n_made; /* leaves that were computed from variables */
    uint32_t first_segment;
} weft_walk;

/* Returns the tensor that leaf i of the program is in this run. */
static inline const weft_tensor *weft__program_leaf(const weft_program *program, const weft_walk *walk,
                                                    int i) {
    const program_leaf *leaf = &program->leaves.list[i];
    return leaf->fixed ? leaf->fixed : walk->leaves[leaf->walk];
}

typedef struct weft_compiler {
    weft_profile *profile; /* the running one */
    uint64_t profiles;     /* started so far */
    weft_program *newest, *oldest;
    weft_program *by_hand; /* held programs; weft_close frees those that their owner did not free */
    weft_program **table;  /* hash table over the cache */
    size_t count;
    weft_walk walk;
    struct {
        weft_tensor *t;
        int next;
    } * stack;
    size_t stack_capacity;
    weft_buffer *arena; /* all programs share it, since they run one after the other */
    weft_buffer **pool; /* free buffers */
    size_t pool_count, pool_capacity, pool_bytes;
    struct {
        uint64_t loose;
        int compiles;
    } constants[64];
    bool fuse;
    int debug; /* from WEFT_DEBUG: sum of DEBUG_... */
    uint64_t compiles, runs, hits;
} weft_compiler;

enum {
    DEBUG_GRAPH = 1,
    DEBUG_KERNELS = 2,
    DEBUG_PLAN = 4,
    DEBUG_LAUNCH = 8,
    DEBUG_MEMORY = 16,
    DEBUG_PROGRAMS = DEBUG_GRAPH | DEBUG_KERNELS | DEBUG_PLAN /* what is logged of each program */
};

/* ---- walk.c ---- */
/* Walks the graph of the roots and of the sinks' values. *walk gets the key, the leaves, and the assignments
 * of forward passes besides the sinks. It belongs to the compiler and is valid until the next walk. Fails
 * with WEFT_ERR_STALE if a variable was written after a node that reads it was recorded. */
weft_status weft__walk(weft_context *ctx, weft_tensor *const *roots, size_t n_roots, const ir_sink *sinks,
                       size_t n_sinks, const weft_hash *extra, weft_walk **walk);

/* ---- program.c ---- */
/* Compiles a program, which the caller owns. `walk` tells which leaves are found again at each run; NULL: all
 * leaves are fixed. The sinks are copied. */
weft_status weft__program_new(weft_context *ctx, weft_tensor *const *outputs, size_t n_outputs,
                              const ir_sink *sinks, size_t n_sinks, const weft_walk *walk,
                              weft_program **program);
void weft__program_free(weft_program *program);
/* Binds the leaves, and outputs[i] to output i. Then runs the program `times` times. ahead: as
 * weft__run_times has it. */
weft_status weft__program_run(weft_program *program, const weft_walk *walk, weft_storage *const *outputs,
                              const weft__ahead *ahead, int times);
/* Returns, as an error, the bad value that a run has met since the last report. WEFT_OK if there is none. */
weft_status weft__report_fault(weft_context *ctx);

/* open.c: downloads n pieces of buffers, and waits once. */
weft_status weft__download_all(weft_context *ctx, const weft_piece *pieces, size_t n);

/* ---- scalars.c ---- */
/* Writes the eight i32 of a random key: key (2), step (2), first element (2), zeros (2). */
void weft__random_write(const weft_context *ctx, const weft_tensor *t, uint64_t step, char *to);
/* Writes the value of a scalar, or a key of random numbers for a step. */
static inline void weft__scalar_write(const weft_context *ctx, const weft_tensor *t, uint64_t step,
                                      char *to) {
    if (t->leaf == WEFT_LEAF_SCALAR)
        weft__store_number((weft_dtype)t->dtype, to, t->value.number.f, t->value.number.i);
    else
        weft__random_write(ctx, t, step, to);
}
weft_status weft__scalars_new(weft_program *program);
void weft__scalars_free(weft_program *program);
/* Sends the row of this run to the device, unless it is there. Fills in where `times` runs read theirs; there
 * are scalars. */
weft_status weft__scalars_send(weft_program *program, const weft_walk *walk, const weft__ahead *ahead,
                               int times, weft_rows *rows);

/* ---- zones.c ---- */
/* Fills the arena with NaN before a run. Fails if the run has written outside of the program's results. */
weft_status weft__zones_fill(weft_program *program);
weft_status weft__zones_check(const weft_program *program);

/* ---- cache.c ---- */
weft_program *weft__cache_find(weft_compiler *compiler, weft_hash key);
/* Adds a program, which the cache then owns. False if memory is gone; then the caller still owns it. */
bool weft__cache_add(weft_compiler *compiler, weft_program *program);
void weft__cache_free(weft_context *ctx, weft_compiler *compiler);
/* Counts a compilation. Logs a hint if programs that differ only in constants are compiled again and
 * again. */
void weft__cache_note_compile(weft_context *ctx, const weft_walk *walk);

/* ---- plan.c ---- */
/* Makes the plan of a fused IR: fills commands, operands, leaves and slots into the program. */
weft_status weft__plan(weft_ir *ir, weft_program *program, const weft_walk *walk);

/* ---- print.c ---- */
/* Logs a node of a graph: its number in the order of recording, op, dtype, shape and inputs. */
void weft__node_say(const weft_tensor *t);
/* Writes the program's commands and kernels as text. `what` is a sum of DEBUG_... Returns the length of the
 * whole text, even if it does not fit. */
size_t weft__program_print(const weft_program *program, int what, char *buffer, size_t size);
/* Logs each command with its layer, shape, work and time. `timings` may be NULL. */
void weft__program_say(const weft_program *program, const weft_timing *timings);
/* Runs a program whose slots are bound, waits for it, and logs its commands. */
weft_status weft__program_run_aloud(weft_program *program);
/* The size of the text of a command. */
#define WEFT_COMMAND_TEXT 128
/* The kernel of a command, or the epilogue of its matmul. NULL: none. */
const weft_kernel *weft__command_kernel(const weft_command *command);
/* Writes what a command does into `name`, and the layer that it belongs to into *path. Returns `name`. */
const char *weft__command_text(const weft_command *command, char name[WEFT_COMMAND_TEXT], const char **path);

/* ---- account.c ---- */
/* Fills in the memory that the program's values need at the peak: kinds and largest buffers of *plan. Fails
 * with WEFT_ERR_OOM. */
weft_status weft__account(const weft_program *program, weft_memory_plan *plan);
/* Lists the largest values at the peak, at most `most` of them. Returns their number. */
int weft__account_largest(const weft_program *program, const program_region **largest, int most);
/* Writes what a value is into `name`. Returns the layer that it belongs to. */
const char *weft__account_name(const weft_program *program, const program_region *region, char *name,
                               size_t size);

/* ---- memory.c ---- */
/* Takes a buffer from the pool, or allocates one. If the device is full, it first frees the pool and tries
 * again. */
weft_status weft__pool_take(weft_context *ctx, size_t bytes, weft_buffer **buffer);
void weft__pool_give(weft_context *ctx, weft_buffer *buffer);
/* Grows the arena of the context to the size that the program needs. */
weft_status weft__arena_reserve(const weft_program *program);
/* Call it if the device had no memory. Adds to the error message what is in memory, the largest results of
 * the program (NULL: none), and what to try. Returns WEFT_ERR_OOM. */
weft_status weft__memory_gone(weft_context *ctx, const weft_program *program);
/* Returns the same status. The message of an out-of-memory error then begins with the tensor that needed the
 * memory. */
weft_status weft__memory_for(weft_context *ctx, weft_status status, const weft_tensor *t);

/* ---- eval.c ---- */
/* Runs the program of the walked graph. The roots become leaves with their values; the sinks' variables get a
 * new version. `sinks` are those of the graph at hand, as many as the program has. */
weft_status weft__run_once(weft_program *program, const weft_walk *walk, weft_tensor *const *roots,
                           size_t n_roots, const ir_sink *sinks, const weft__ahead *ahead);
/* Joins the sinks and the assignments that the walk found. Free *all with weft__free. */
weft_status weft__all_sinks(weft_context *ctx, const ir_sink *sinks, size_t n_sinks, const weft_walk *walk,
                            ir_sink **all);

/* ---- share.c ---- */
/* Replaces variables by their sum, also over the lists of all processes of the group, which may be NULL. They
 * are f32 or f64, of one size, and each belongs to another context. tree: the bits are those of a binary tree
 * over all lists; else devices and MPI may choose the order. */
weft_status weft__sum_shared(weft_tensor *const *list, size_t n, weft_process_group *group, bool tree);
/* Gives all processes the parts that they have written of n elements of a variable, from element `first` on:
 * process i those from first + i * part on. */
weft_status weft__parts_shared(weft_tensor *whole, int64_t first, int64_t n, int64_t part,
                               weft_process_group *group);

/* ---- linked.c ---- */
/* Links the device of the context to those of the other processes of the group, if all can be linked. All
 * processes must call it. NULL: there are no other processes. */
weft_status weft__link_devices(weft_context *ctx, weft_process_group *group);
/* Replaces a variable, of f32 or f64, by its sum over the processes of ctx->link. */
weft_status weft__sum_linked(weft_tensor *t, bool tree);
/* Gives all processes the parts of `bytes` bytes of a variable, from byte `first` on: process i has written
 * those from first + i * part on. */
weft_status weft__parts_linked(weft_tensor *whole, size_t first, size_t part, size_t bytes);

#endif
