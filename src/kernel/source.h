/* Kernels as source text: what the renderer (kernel forms) and the templates (heavy operations) make, and
 * what a device compiles and launches. One dialect-neutral C: macros of the prelude of each language name
 * address spaces, barriers and work-items, so that the same template serves OpenCL C and CUDA C. Knows no
 * device's interface. */
#ifndef WEFT_KERNEL_SOURCE_H
#define WEFT_KERNEL_SOURCE_H

#include <weft/op.h>
#include "base/base.h"
#include "kernel/kernel.h"

/* What text depends on of a device. A row is computed by `lanes` lanes at once. On CPUs they are elements of
 * a vector type and a group is one work-item (compilers vectorise explicit vectors well, work-items badly);
 * on GPUs they are the work-items of a group. */
typedef struct weft_target {
    weft_dialect dialect;
    bool vectors;             /* lanes are elements of vectors of one work-item; else work-items of a group */
    int lanes;                /* a power of two: 16 with vectors, else items of a group, at most 256 */
    int units;                /* compute units: how many groups it takes to feed the device */
    int64_t local_bytes;      /* of a group */
    int64_t most_local_bytes; /* of one whose launch asks for shared_bytes; 0: none may */
    int64_t groups_most;      /* along the second and third dimension of a launch; 0: any */
    int vector_bytes;         /* of a register that holds a vector; 0 where unknown, or no matter */
    bool f64;
    int capability; /* of a CUDA card: 90 for 9.0; 0: no such card, and no tensor cores */
    bool tf32;      /* products of f32 may round what is multiplied to TF32, which has 11 bits of 24 */
} weft_target;

/* Work-items of a group whose lanes are all at work. */
static inline int weft__target_items(const weft_target *target) {
    return target->vectors ? 1 : target->lanes;
}

/* Parts of the prelude that a text uses; the device puts them before it. */
enum {
    WEFT_PRELUDE_LANES =
        1, /* elements as values, choices, integers, rounding to 16 bits: of rendered kernels */
    WEFT_PRELUDE_VECTORS = 2, /* all parts for vectors as well */
    WEFT_PRELUDE_F32 = 4,     /* functions of f32: w_exp_f32 ...; with LANES */
    WEFT_PRELUDE_F64 = 8,     /* the same of f64, and the pragma that allows it; with LANES or without */
    WEFT_PRELUDE_RANDOM = 16, /* with LANES */
    WEFT_PRELUDE_TENSOR = 32  /* tensor cores, of CUDA alone; with LANES or without */
};

/* A kernel gets the pointers of its arguments, in order, and last their numbers, in order, as one struct,
 * which its text declares as W_NUMBERS(name): drivers allocate for each argument of each launch. */
typedef enum weft_argument_kind {
    WEFT_ARGUMENT_OPERAND, /* operand `index` of the command from its byte `i` on, as elements of `dtype`: the
                            * buffer, and a 64-bit offset in elements */
    WEFT_ARGUMENT_SCRATCH, /* the executable's scratch from byte `i` on, as elements of `dtype`: likewise */
    WEFT_ARGUMENT_I32,     /* the number i */
    WEFT_ARGUMENT_I64,
    WEFT_ARGUMENT_F32, /* the number f */
    WEFT_ARGUMENT_F64,
    WEFT_ARGUMENT_STRUCT, /* a struct of `i` bytes, declared alike in C and in the text, aligned to 8 */
    WEFT_ARGUMENT_FAULT,  /* `W_GLOBAL w_faults *`, and the number of the command, an int */
    /* of programs (device/gpu/backend/program.h), which have no others: */
    WEFT_ARGUMENT_BUFFER,  /* slot `index`, a pointer */
    WEFT_ARGUMENT_FAULTS,  /* the record */
    WEFT_ARGUMENT_NUMBERS, /* the struct of `i` bytes */
    WEFT_ARGUMENT_WORDS,   /* the program's words from word `i` on: a pointer and a 64-bit offset */
    WEFT_ARGUMENT_TIMES    /* how often a chain does its work, an int */
} weft_argument_kind;

typedef struct weft_argument {
    uint8_t kind, dtype;
    bool written;
    int index;
    int64_t i;
    double f;
    const void *numbers;
} weft_argument;

/* One launch. Equal texts are compiled once: sizes, strides and offsets are arguments. */
typedef struct weft_launch {
    const char *name; /* of the function in `text` */
    const char *text; /* of the kernel alone, without the prelude */
    unsigned prelude;
    bool shares; /* the text defines nothing but that function: it may stand in one program with others */
    bool links;  /* the function may be called by a chain: local memory is W_SHARED, and all else that the
                  * text defines are macros, functions and typedefs of structs of that name, each at the begin
                  * of a line */
    int n_arguments;
    weft_argument *arguments;
    int64_t groups[3];
    int items[3];     /* of a group */
    int shared_bytes; /* of a group, beside what the text declares; CUDA only: as W_MORE_SHARED */
    /* What a library of the backend's does in place of a kernel: the backend's, and lives as long as the
     * device. It has no text, its groups are 1, and its arguments are OPERAND and SCRATCH. */
    const struct weft_call *call;
} weft_launch;

/* The launches of one command. */
typedef struct weft_launches {
    weft_context *ctx;
    weft_arena *arena; /* for arguments and texts that are made: lives as long as the executable */
    const weft_target *target;
    struct weft_tuner *tuner; /* device/gpu/backend/tune.h; NULL: nothing is measured */
    int count;
    size_t capacity;
    weft_launch *list;
    int64_t scratch_bytes; /* that the command needs of the executable's scratch */
} weft_launches;

/* source.c: adds a launch, whose arguments are copied into the arena, numbers too. */
weft_status weft__launch(weft_launches *launches, const weft_launch *launch);

/* An epilogue (kernel/epilogue.c) as definitions in the text of a product, whose sums are of a type S, S16
 * sixteen of them: w_epilogue, its numbers; EPILOGUE_POINTERS and EPILOGUE_NAMES, its pointers as parameters
 * and as arguments, a comma behind each; and a function that ends with those and its numbers,
 *     epilogue(row, column, m, S16 values, EPILOGUE_NAMES numbers)  with vectors: m of them count, 16 at most
 *     epilogue(row, column, S value, EPILOGUE_NAMES numbers)        else
 * Rows are counted over the whole batch. */
typedef struct weft_epilogue {
    const char *text;
    unsigned prelude;
    int n_arguments; /* of the pointers and the numbers; operands are the kernel's arguments */
    weft_argument *arguments;
} weft_epilogue;

/* render_epilogue.c: that of argument `product`, with rows of n elements. */
weft_status weft__render_epilogue(weft_launches *launches, const weft_kernel *kernel, int product, int64_t n,
                                  weft_epilogue *out);

/* render.c: the launch of a kernel form. `sink`: does nothing once a fault is recorded. */
weft_status weft__render(weft_launches *launches, const weft_kernel *kernel, bool sink);

#endif
