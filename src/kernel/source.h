/* Kernel source: what the renderer (for kernel forms) and the templates (for heavy operations) write, and
 * what a device compiles and launches. It is one dialect of C: macros in the prelude of each language name
 * address spaces, barriers and work-items. So one template serves OpenCL C and CUDA C++. Must not know: the
 * interface of any device. Read next: render.h, device/gpu/prelude. */
#ifndef WEFT_KERNEL_SOURCE_H
#define WEFT_KERNEL_SOURCE_H

#include <weft/op.h>
#include "base/base.h"
#include "kernel/kernel.h"

/* The properties of a device that kernel source depends on. A row is computed by `lanes` lanes at once, the
 * work-items of a group. */
typedef struct weft_target {
    weft_dialect dialect;
    int lanes;                /* the work-items of a group: a power of two, up to 256 */
    int units;                /* compute units: as many groups keep the device busy */
    int64_t local_bytes;      /* of a group */
    int64_t most_local_bytes; /* the same for a launch that sets shared_bytes; 0: no launch may */
    int64_t groups_most;      /* limit along the second and third dimension of a launch; 0: no limit */
    bool on_processor;        /* a driver runs work-items on a processor: its compiler is slow, and loads each
                               * value of each work-item by itself */
    bool f64;
    int capability;   /* compute capability of a CUDA device, 90 for 9.0; 0: no CUDA device, and no tensor
                       * cores */
    int matrix_lanes; /* lanes of a wavefront of an AMD card whose matrix cores Weft uses, 32 or 64; else 0 */
    bool long_indices; /* tests: indices have 64 bits even if 32 suffice */
    bool tf32;         /* f32 matmuls may round their operands to TF32, which has 11 bits of the 24 */
} weft_target;

/* The parts of the prelude that a kernel source uses. The device puts them before the source. */
enum {
    WEFT_PRELUDE_LANES = 1,   /* for rendered kernels: elements, choices, integers, rounding to 16 bits */
    WEFT_PRELUDE_F32 = 2,     /* functions of f32, such as w_exp_f32; needs LANES */
    WEFT_PRELUDE_F64 = 4,     /* the same for f64, and the pragma that allows f64; with or without LANES */
    WEFT_PRELUDE_RANDOM = 8,  /* random bits; needs LANES */
    WEFT_PRELUDE_TENSOR = 16, /* tensor cores, CUDA only; with or without LANES */
    WEFT_PRELUDE_MATRIX = 32, /* the same for matrix cores, HIP only */
    WEFT_PRELUDE_CORES = WEFT_PRELUDE_TENSOR | WEFT_PRELUDE_MATRIX
};

/* The arguments of a kernel: first all pointers, in order; last all numbers, in order, as one struct that the
 * source declares as W_NUMBERS(name). One struct, because drivers allocate memory for each argument of each
 * launch. */
typedef enum weft_argument_kind {
    WEFT_ARGUMENT_OPERAND, /* operand `index` of the command from its byte `i` on, as elements of `dtype`:
                            * the buffer, and a 64-bit offset in elements */
    WEFT_ARGUMENT_SCRATCH, /* the executable's scratch memory from byte `i` on, as elements of `dtype`;
                            * passed like OPERAND */
    WEFT_ARGUMENT_I32,     /* the number i */
    WEFT_ARGUMENT_I64,
    WEFT_ARGUMENT_F32, /* the number f */
    WEFT_ARGUMENT_F64,
    WEFT_ARGUMENT_STRUCT, /* a struct of `i` bytes, aligned to 8, which C and the source declare in one header
                           * (device/gpu/backend/kernel_types.h) */
    WEFT_ARGUMENT_FAULT,  /* `W_GLOBAL w_faults *` and the number of the command, an int */
    /* only of programs (device/gpu/backend/program.h), which use no other kinds: */
    WEFT_ARGUMENT_BUFFER,     /* slot `index`, a pointer */
    WEFT_ARGUMENT_FAULTS,     /* the fault record */
    WEFT_ARGUMENT_NUMBERS,    /* the struct of `i` bytes */
    WEFT_ARGUMENT_PARAMETERS, /* the program's parameter buffer from word `i` on: a pointer and a 64-bit
                               * offset */
    WEFT_ARGUMENT_TIMES       /* how often a fused launch repeats its work; the first byte of the scalars
                               * that it reads; the bytes from there to the next time's: three ints */
} weft_argument_kind;

typedef struct weft_argument {
    uint8_t kind, dtype;
    bool written;
    int index;
    int64_t i;
    double f;
    const void *numbers;
} weft_argument;

/* Units of a card that compute. Their rates differ (device/gpu/card/card.h). */
typedef enum weft_unit {
    WEFT_UNIT_ISSUE,  /* instructions of work-items, of any kind */
    WEFT_UNIT_F32,    /* operations of matmuls without tensor cores */
    WEFT_UNIT_F64,    /* the same in f64 */
    WEFT_UNIT_TF32,   /* operations of tensor cores on f32 */
    WEFT_UNIT_TENSOR, /* operations of tensor cores on 16 bits */
    WEFT_UNITS
} weft_unit;

/* What a launch moves and computes: estimates from the choices that made it, for prices (device/gpu/card) and
 * for the tests of launches. Nothing that runs depends on them. */
typedef struct weft_launch_facts {
    double bytes; /* that it must read and write, each element once */
    double again; /* that a work-group reads again, after a pass over `row` bytes */
    double row;   /* bytes of a pass of one work-group */
    double sums;  /* that sums of columns read and write because they are in memory, not in registers */
    double tiles; /* that work-groups read besides, since others read them too: from the cache */
    double
        work[WEFT_UNITS]; /* operations of each unit, divided by the part of its rate that the code reaches */
    double steps; /* how often a work-group waits for memory, one time after the other, besides `bytes` */
    double least; /* seconds that it takes in any case, besides launching */
    int width, allowed; /* bytes of the widest access of a work-item; the most that alignment allows */
    int at_once;        /* bytes that a work-item has under way */
    int registers;      /* of a work-item */
    int entries;        /* of a fused launch in sequence; else 0 */
    int near_waits;     /* of the three of each entry, those that end with local memory, not with L2 */
} weft_launch_facts;

/* One launch. Sizes, strides and offsets are arguments, so many launches have equal source, which is compiled
 * once. */
typedef struct weft_launch {
    const char *name;   /* name of the function in `source` */
    const char *source; /* source of the kernel, without the prelude */
    unsigned prelude;
    bool shares;   /* the source defines only this function, so it can share an OpenCL program with others */
    bool may_fuse; /* a fused launch may call the function. Then local memory is W_SHARED, and the source
                    * defines nothing else but macros, functions and typedefs of structs of this name, each at
                    * the start of a line */
    int local_bytes; /* of W_SHARED, at most; 0: there is none */
    int n_arguments;
    weft_argument *arguments;
    int64_t groups[3];
    int items[3];     /* of a group */
    int shared_bytes; /* of a group, in addition to what the source declares; CUDA only, as W_MORE_SHARED */
    /* A library call of the backend, in place of a kernel. The backend owns it, and it lives as long as the
     * device. Such a launch has no source, its groups are 1, and its arguments are OPERAND and SCRATCH. */
    const struct weft_call *call;
    bool beside; /* part of an exchange with other processes, which runs beside the other launches. Its
                  * SCRATCH is memory that only such launches use */
    weft_launch_facts facts;
} weft_launch;

/* The launches of one command. */
typedef struct weft_launches {
    weft_context *ctx;
    weft_arena *arena; /* for arguments and generated source; lives as long as the executable */
    const weft_target *target;
    struct weft_tuner *tuner; /* see device/gpu/backend/tune.h; NULL: no variants are timed */
    const uint8_t *aligned;   /* by operand of the command: its address is a multiple of so many bytes, up to
                               * 16. NULL: it may be any */
    int count;
    size_t capacity;
    weft_launch *list;
    int64_t scratch_bytes; /* scratch memory of the executable that the command needs */
    int64_t beside_bytes;  /* the same for its launches beside the others */
} weft_launches;

/* source.c: adds a launch. Copies its arguments, with their numbers, into the arena. */
weft_status weft__launch(weft_launches *launches, const weft_launch *launch);

/* An epilogue (kernel/epilogue.c) as definitions in the source of a matmul, whose sums have the type S:
 *
 * - w_epilogue: the struct of its numbers.
 * - EPILOGUE_POINTERS, EPILOGUE_NAMES: its pointers as parameters and as arguments, each with a comma behind
 *   it.
 * - A function: epilogue(row, column, S value, EPILOGUE_NAMES numbers)
 *
 * Rows are counted over the whole batch. */
typedef struct weft_epilogue {
    const char *source;
    unsigned prelude;
    int n_arguments; /* pointers and numbers; operands are the kernel's arguments */
    weft_argument *arguments;
} weft_epilogue;

/* render_epilogue.c: renders the epilogue whose argument `product` is the matmul's result, with rows of n
 * elements. */
weft_status weft__render_epilogue(weft_launches *launches, const weft_kernel *kernel, int product, int64_t n,
                                  weft_epilogue *out);

/* render.c: adds the launch of a kernel form. With `sink` the kernel does nothing once a fault is
 * recorded. */
weft_status weft__render(weft_launches *launches, const weft_kernel *kernel, bool sink);

#endif
