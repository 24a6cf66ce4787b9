/* The kernel form: the form of a fused kernel that all devices share. It is a small SSA program over an index
 * space of parallel and reduction dimensions. The compiler makes it. Devices execute it (CPU tiles, the
 * interpreter) or render it to source (OpenCL C, CUDA C++). Knows views and the rows of ops.def. Must not
 * know: graphs, devices. Read next: verify.c, print.c (how a kernel looks), render.h. */
#ifndef WEFT_KERNEL_KERNEL_H
#define WEFT_KERNEL_KERNEL_H

#include <weft/dtype.h>
#include "base/base.h"
#include "graph/view.h"
#include "graph/opcode.h"

/* What an instruction does. A value has the number of the instruction that computes it. */
#define WEFT_INSTR_LIST(X)                                                                                   \
    X(CONST, "const")   /* a number: imm_f for floats, else imm_i                            */              \
    X(INDEX, "index")   /* the element number that `view` yields (i32 or i64)                */              \
    X(MASK, "mask")     /* bool: do all guards of `view` pass?                               */              \
    X(LOAD, "load")     /* args[arg] at `view`; 0 where a guard fails                        */              \
    X(GATHER, "gather") /* args[arg] at view + a * imm_i if 0 <= a < bound, else 0 + fault   */              \
    X(RANDOM, "random") /* 32 random bits (i32) of element number `view`, key args[arg]      */              \
    X(CALC, "calc")     /* row `op` of ops.def, applied to a, b, c                           */              \
    X(CAST, "cast")     /* a to dtype, by the rules in docs/c-guide.md                       */              \
    X(REDUCE, "reduce") /* reduction row `op` of a over all reduction dimensions             */              \
    X(FOLD, "fold")     /* reduction row `op` of a over the rows of a block, for stores only */              \
    X(STORE, "store")   /* a to args[arg] at `view`                                          */

typedef enum weft_instr_kind {
#define WEFT_INSTR_ENUM_(id, text) WEFT_INSTR_##id,
    WEFT_INSTR_LIST(WEFT_INSTR_ENUM_)
#undef WEFT_INSTR_ENUM_
        WEFT_INSTR_COUNT
} weft_instr_kind;

/* Levels. A ROW value exists once for each parallel index. A FULL value exists once for each (parallel,
 * reduction) index. A REDUCE takes FULL to ROW. A ROW value that a FULL instruction uses is broadcast over
 * the reduction dimensions. In a kernel without reduction dimensions every value is ROW.
 *
 * The last n_fold parallel dimensions count the rows of a block, which one task walks in order. A FOLD takes
 * FULL to COLUMN, one value for each block and reduction index. It takes ROW to BLOCK, one value for each
 * block. A second kernel adds up what this kernel stored for each block.
 *
 *     block of rows       FULL        REDUCE ->  ROW
 *        row 0          x x x x                   y
 *        row 1          x x x x                   y
 *        row 2          x x x x                   y
 *          FOLD         v v v v       FOLD        v
 *                       COLUMN                  BLOCK */
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
    uint8_t op;    /* weft_op of CALC, REDUCE and FOLD */
    uint8_t dtype; /* of the result; f16 and bf16 values are computed in f32, u8 wraps, bool is 0 or 1 */
    uint8_t level; /* weft_level of the result; of a STORE: of the store */
    int a, b, c;   /* operand values, -1 where unused */
    int arg;       /* index into args, -1 where unused */
    int view;      /* index into views, -1 where unused; its index space is the kernel's whole one (parallel
                    * dimensions, then reduction dimensions), with stride 0 over dimensions that the level
                    * leaves out */
    int64_t imm_i; /* CONST: integer or bool value; GATHER: stride of the index, in elements */
    int64_t bound; /* GATHER: extent of the gathered dimension */
    double imm_f;  /* CONST: floating value */
} weft_instr;

typedef struct weft_kernel_arg {
    uint8_t dtype;
    bool read, written; /* both only if each element is read only at the index that writes it */
    int64_t elements;   /* least number of elements in the buffer */
} weft_kernel_arg;

typedef struct weft_kernel {
    const char *name; /* made from its ops, such as "map_mul_add_gelu" */
    const char *path; /* layer path of its last node, for messages and profiles */
    int n_parallel, n_reduce;
    int n_fold;        /* the last n_fold parallel dimensions are the rows of a block; 0 without FOLD */
    int64_t last_rows; /* rows of the last block if it has fewer than the others, else 0. If not 0, there is
                        * one dimension of blocks and one of rows */
    int64_t extent[WEFT_VIEW_RANK]; /* parallel extents, then reduction extents */
    int n_args, n_views, n_code;
    weft_kernel_arg *args;
    weft_view *views;
    weft_instr *code; /* operands come before their users */
} weft_kernel;

/* Can the instruction meet a bad index or divisor? */
bool weft__instr_can_fault(const weft_instr *instr);

/* The number of parallel indices, of rows of a block, and of reduction indices. */
int64_t weft__kernel_rows(const weft_kernel *kernel);
/* Adds the least operations and bytes that the kernel needs (cost.c). */
void weft__kernel_cost(const weft_kernel *kernel, double *flops, double *bytes);
int64_t weft__kernel_block_rows(const weft_kernel *kernel);
int64_t weft__kernel_row_length(const weft_kernel *kernel);

/* Checks the form: operand order, levels, dtypes and the use of arguments. Proves by intervals that each
 * index that passes its guards lies inside its buffer. A failure is a bug of the compiler:
 * WEFT_ERR_INTERNAL. */
weft_status weft__kernel_verify(weft_context *ctx, const weft_kernel *kernel);

/* ---- epilogue.c ---- */
/* Can the kernel be computed element by element where argument `arg` is computed? Then it is a map over as
 * many elements. It reads and writes the argument only at its own row-major index, and it cannot fault. */
bool weft__kernel_is_epilogue(const weft_kernel *kernel, int arg);
/* Can the last dimension of the kernel get n elements? */
bool weft__kernel_has_rows(const weft_kernel *kernel, int64_t n);
/* Writes the kernel in that form. False if memory is gone. */
bool weft__kernel_in_rows(weft_arena *arena, const weft_kernel *kernel, int64_t n, weft_kernel *out);

/* Writes a kernel as readable text: at most `size` bytes with the NUL. Returns the whole length. Golden files
 * hold this text. */
size_t weft__kernel_print(const weft_kernel *kernel, char *buffer, size_t size);

/* Hash of everything except name and path. */
weft_hash weft__kernel_hash(const weft_kernel *kernel);

#endif
