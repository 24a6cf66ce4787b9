/* A compiled program and the cache of them. Read next: program.c for how one is made and run, eval.c and
 * derive.c for who asks. */
#ifndef WEFT_COMPILER_PROGRAM_H
#define WEFT_COMPILER_PROGRAM_H

#include <weft/memory.h>
#include <weft/profile.h>
#include "compiler/passes/ir.h"

/* Slots of a program: where the buffers of one run are bound. */
enum { SLOT_ARENA, SLOT_SCALARS, SLOT_FIRST };

/* One leaf of the graph. Leaves of a cached program's graph are found anew by the walk over the graph at
 * hand; fixed ones (of a held program, of a derivation) are the tensors themselves. */
typedef struct program_leaf {
    weft_tensor *fixed; /* NULL: number `walk` of the walk */
    int walk;
    int slot;       /* storage: where it is bound; scalars: SLOT_SCALARS */
    int64_t offset; /* scalars: byte in the scalars' buffer */
} program_leaf;

/* A value in the arena. */
typedef struct program_region {
    int64_t bytes, offset;
    int first, last; /* phases in which it is there, counted by the commands' `after` */
    int command;     /* that wrote there first */
    uint8_t kind;    /* weft_memory_kind */
} program_region;

struct weft_program {
    weft_context *ctx;
    weft_hash key;
    weft_program *next, *prev; /* in the cache, most recently used first; or among those held by hand */
    weft_program *chain;       /* in its bucket */
    weft_arena keep;           /* kernels, commands and all else that lives as long */
    weft_commands commands;
    weft_executable *executable;
    program_leaf *leaves;
    int n_leaves;
    int *output_slots;
    size_t n_outputs;
    ir_sink *sinks; /* variables: fixed, or found through sink_leaf */
    int *sink_leaf; /* index into the walk's leaves, -1: fixed */
    size_t n_sinks;
    weft_buffer *scalars;
    size_t scalars_bytes;
    char *scalars_host, *scalars_sent; /* of this run; as they lie on the device */
    bool sent;
    int64_t arena_bytes;
    program_region *regions; /* of the arena */
    int n_regions;
    weft_buffer **slots; /* of the last run */
    size_t n_kernels, n_copies, n_nodes;
    uint8_t *stages;       /* weft_stage of each command */
    uint64_t profile;      /* number of the profile that last booked a run, */
    size_t profile_number; /* and the program's number in it */
    /* held programs only */
    weft_tensor **held; /* kept alive until weft_program_free */
    size_t n_held;
    weft_tensor **outputs;
};

/* What a walk over a graph finds: its key and its leaves, in an order that equal graphs share. */
typedef struct weft_walk {
    weft_tensor **leaves;
    size_t n_leaves, capacity;
    ir_sink *due; /* what forward passes in the graph assign */
    size_t n_due, due_capacity;
    weft_hash key;
    weft_hash loose;      /* the key without the values of constants */
    const char *constant; /* where the first constant was recorded */
    size_t nodes;
    uint32_t first_segment;
} weft_walk;

typedef struct weft_compiler {
    weft_profile *profile; /* the running one */
    uint64_t profiles;     /* started so far */
    weft_program *newest, *oldest;
    weft_program *by_hand; /* held programs, which the context frees when their owner did not */
    weft_program **table;  /* hash table over the cache */
    size_t count;
    weft_walk walk; /* reused */
    struct {
        weft_tensor *t;
        int next;
    } * stack;
    size_t stack_capacity;
    weft_buffer *arena; /* shared by all programs: they run one after the other */
    weft_buffer **pool; /* free buffers */
    size_t pool_count, pool_capacity, pool_bytes;
    struct {
        uint64_t loose;
        int compiles;
    } constants[64];
    bool fuse;
    int debug; /* WEFT_DEBUG: sum of DEBUG_... */
    uint64_t compiles, runs, hits;
} weft_compiler;

enum { DEBUG_GRAPH = 1, DEBUG_KERNELS = 2, DEBUG_PLAN = 4, DEBUG_LAUNCH = 8 };

/* ---- walk.c ---- */
/* Walks the graph of the roots (and sink values): key, leaves, what forward passes in it assign besides the
 * sinks, and whether a variable has moved on since. */
weft_status weft__walk(weft_context *ctx, weft_tensor *const *roots, size_t n_roots, const ir_sink *sinks,
                       size_t n_sinks, const weft_hash *extra, weft_walk **walk);

/* ---- program.c ---- */
/* Compiles. walk tells which leaves are found anew at each run; NULL: all are fixed. sinks are copied. */
weft_status weft__program_new(weft_context *ctx, weft_tensor *const *outputs, size_t n_outputs,
                              const ir_sink *sinks, size_t n_sinks, const weft_walk *walk,
                              weft_program **program);
void weft__program_free(weft_program *program);
/* Binds leaves and outputs (storages[i] for output i) and runs it `times` times. */
weft_status weft__program_run(weft_program *program, const weft_walk *walk, weft_storage *const *outputs,
                              int times);
/* The bad value that runs since the last report met, as an error. */
weft_status weft__report_fault(weft_context *ctx);

/* ---- cache.c ---- */
weft_program *weft__cache_find(weft_compiler *compiler, weft_hash key);
/* False when memory is gone; the program is then not in the cache. */
bool weft__cache_add(weft_compiler *compiler, weft_program *program);
void weft__cache_free(weft_context *ctx, weft_compiler *compiler);
/* Logs a hint when programs that differ in one constant keep being compiled. */
void weft__cache_note_compile(weft_context *ctx, const weft_walk *walk);

/* ---- plan.c ---- */
/* Fused IR -> commands with operands, leaves and slots filled into program. */
weft_status weft__plan(weft_ir *ir, weft_program *program, const weft_walk *walk);

/* ---- print.c ---- */
/* The program's commands, kernels and memory as text; returns the whole length. */
size_t weft__program_print(const weft_program *program, int what, char *buffer, size_t size);
/* Logs each command with its layer, shapes, work and time; timings may be NULL. */
void weft__program_say(const weft_program *program, const weft_timing *timings);
/* Runs a program whose slots are bound, waits for it, and says it. */
weft_status weft__program_run_aloud(weft_program *program);
/* What a command does and the layer that it belongs to; returns name. */
#define WEFT_COMMAND_TEXT 128
/* The kernel that a command is, or that is the epilogue of its product; NULL: none. */
const weft_kernel *weft__command_kernel(const weft_command *command);
const char *weft__command_text(const weft_command *command, char name[WEFT_COMMAND_TEXT], const char **path);

/* ---- account.c ---- */
/* What the program's values take where most of them are alive: classes and largest buffers of *plan; or
 * WEFT_ERR_OOM. */
weft_status weft__account(const weft_program *program, weft_memory_plan *plan);
/* The largest of those values, `most` at most; returns how many. */
int weft__account_largest(const weft_program *program, const program_region **largest, int most);
/* What a value is, into name, and the layer that it belongs to. */
const char *weft__account_name(const weft_program *program, const program_region *region, char *name,
                               size_t size);

/* ---- memory.c ---- */
/* From the pool, or new; the pool is given back to the device before giving up. */
weft_status weft__pool_take(weft_context *ctx, size_t bytes, weft_buffer **buffer);
void weft__pool_give(weft_context *ctx, weft_buffer *buffer);
/* Grows the one arena of the context to what the program needs. */
weft_status weft__arena_reserve(const weft_program *program);
/* The device had no room for something: adds to the error what lies there, the program's largest results (it
 * may be NULL) and what to try. Returns WEFT_ERR_OOM. */
weft_status weft__memory_gone(weft_context *ctx, const weft_program *program);
/* The same status; of an error for want of memory the message begins with the tensor that it was wanted for.
 */
weft_status weft__memory_for(weft_context *ctx, weft_status status, const weft_tensor *t);

/* ---- eval.c ---- */
/* Runs the program of the graph that was walked: roots become leaves with their values, the sinks' variables
 * have a new version. sinks: those of the graph at hand, as many as the program has. */
weft_status weft__run_once(weft_program *program, const weft_walk *walk, weft_tensor *const *roots,
                           size_t n_roots, const ir_sink *sinks);
/* The sinks and what is due, to be freed with weft__free. */
weft_status weft__all_sinks(weft_context *ctx, const ir_sink *sinks, size_t n_sinks, const weft_walk *walk,
                            ir_sink **all);

/* ---- share.c ---- */
/* Variables of f32 or f64, of one size, each of another context: all become their sum, added in order. */
weft_status weft__sum_shared(weft_tensor *const *list, size_t n);

#endif
