/* The fused kernel: one form for every device. A small SSA program over an index space of parallel and
 * reduction dimensions. The compiler makes it; devices execute it (CPU tiles, the interpreter) or render it
 * (CUDA C, OpenCL C, WGSL). Knows views and the rows of ops.def; knows no graph and no device. */
#ifndef WEFT_KERNEL_KERNEL_H
#define WEFT_KERNEL_KERNEL_H

#include <weft/dtype.h>
#include "base/base.h"
#include "graph/view.h"
#include "graph/opcode.h"

/* What an instruction does. Values are numbered by the instruction that makes them. */
#define WEFT_INSTR_LIST(X)                                                                                   \
    X(CONST, "const")   /* number (imm_f for floats, imm_i else)                             */              \
    X(INDEX, "index")   /* the element number that `view` yields (i32 or i64)                */              \
    X(MASK, "mask")     /* bool: do all guards of `view` hold                                */              \
    X(LOAD, "load")     /* args[arg] at `view`; 0 where a guard fails                        */              \
    X(GATHER, "gather") /* args[arg] at view + a * imm_i, 0 <= a < bound, else 0 and a fault */              \
    X(RANDOM, "random") /* 32 random bits (i32) of element number `view` and key args[arg]   */              \
    X(CALC, "calc")     /* row `op` of ops.def on a, b, c                                    */              \
    X(CAST, "cast")     /* a to dtype, by the rules of design part 10                        */              \
    X(REDUCE, "reduce") /* reduction row `op` of a over all reduction dimensions             */              \
    X(FOLD, "fold")     /* reduction row `op` of a over the rows of a block, for stores only */              \
    X(STORE, "store")   /* a to args[arg] at `view`                                          */

typedef enum weft_instr_kind {
#define WEFT_INSTR_ENUM_(id, text) WEFT_INSTR_##id,
    WEFT_INSTR_LIST(WEFT_INSTR_ENUM_)
#undef WEFT_INSTR_ENUM_
        WEFT_INSTR_COUNT
} weft_instr_kind;

/* Levels. A ROW value exists once per parallel index; a FULL value once per (parallel, reduction) index. A
 * REDUCE takes FULL to ROW; a ROW value used by a FULL instruction is broadcast over the reduction
 * dimensions. In a kernel without reduction dimensions every value is ROW.
 * The last n_fold parallel dimensions are the rows of a block, which one task walks in order: FOLD takes FULL
 * to COLUMN, a value per block and reduction index, and ROW to BLOCK, a value per block. A second kernel over
 * the blocks adds up what this one stored of them. */
typedef enum weft_level {
    WEFT_LEVEL_ROW,
    WEFT_LEVEL_FULL, /* bit 0: differs between reduction indices */
    WEFT_LEVEL_BLOCK,
    WEFT_LEVEL_COLUMN /* bit 1: folded */
} weft_level;
static inline bool weft__level_inner(int level) { return level & 1; }
static inline bool weft__level_folded(int level) { return level & 2; }

typedef struct weft_instr {
    uint8_t kind;  /* weft_instr_kind */
    uint8_t op;    /* weft_op, for CALC, REDUCE and FOLD */
    uint8_t dtype; /* of the result; f16 and bf16 values are computed in f32, u8 wraps, bool is 0 or 1 */
    uint8_t level; /* weft_level of the result, for STORE of the store */
    int a, b, c;   /* operand values, -1 where unused */
    int arg;       /* index into args, -1 where unused */
    int view;      /* index into views, -1 where unused; its index space is the kernel's whole one
                    * (parallel dimensions, then reduction dimensions), strides 0 over the dimensions that
                    * the level leaves out */
    int64_t imm_i; /* CONST: integer or bool value; GATHER: stride of the index, in elements */
    int64_t bound; /* GATHER: extent of the gathered dimension */
    double imm_f;  /* CONST: floating value */
} weft_instr;

typedef struct weft_kernel_arg {
    uint8_t dtype;
    bool read, written; /* both only when each element is read by the index that writes it */
    int64_t elements;   /* the buffer holds at least so many */
} weft_kernel_arg;

typedef struct weft_kernel {
    const char *name; /* made from its ops, such as "map_mul_add_gelu" */
    const char *path; /* layer path of its last node, for messages and profiles */
    int n_parallel, n_reduce;
    int n_fold;        /* of the parallel dimensions, the last: rows of a block; 0 without FOLD */
    int64_t last_rows; /* of the last block, where it has fewer rows than the others; else 0. Then there is
                        * one dimension of blocks and one of rows */
    int64_t extent[WEFT_VIEW_RANK]; /* parallel extents, then reduction extents */
    int n_args, n_views, n_code;
    weft_kernel_arg *args;
    weft_view *views;
    weft_instr *code; /* operands come before their users */
} weft_kernel;

/* Can it meet a bad index or divisor? */
bool weft__instr_can_fault(const weft_instr *instr);

/* Products of the parallel, the folded and the reduction extents. */
int64_t weft__kernel_rows(const weft_kernel *kernel);
/* Adds the operations and bytes that it needs at least (cost.c). */
void weft__kernel_cost(const weft_kernel *kernel, double *flops, double *bytes);
int64_t weft__kernel_block_rows(const weft_kernel *kernel);
int64_t weft__kernel_row_length(const weft_kernel *kernel);

/* Checks the form: operand order, levels, dtypes, argument use, and by intervals that every index that a
 * guard lets through lies inside its buffer. Reports a bug of the compiler as WEFT_ERR_INTERNAL. */
weft_status weft__kernel_verify(weft_context *ctx, const weft_kernel *kernel);

/* ---- epilogue.c ---- */
/* Can it be computed where argument `arg` is made, element by element? It is a map of as many elements that
 * reads and writes the argument at its own row-major index alone, and meets no faults. */
bool weft__kernel_is_epilogue(const weft_kernel *kernel, int arg);
/* Can its last dimension have n elements? */
bool weft__kernel_has_rows(const weft_kernel *kernel, int64_t n);
/* The same kernel in that form; false when out of memory. */
bool weft__kernel_in_rows(weft_arena *arena, const weft_kernel *kernel, int64_t n, weft_kernel *out);

/* Readable text of a kernel, at most `size` bytes with the NUL; returns the whole length. Golden files hold
 * it. */
size_t weft__kernel_print(const weft_kernel *kernel, char *buffer, size_t size);

/* Hash over everything but name and path. */
weft_hash weft__kernel_hash(const weft_kernel *kernel);

#endif
