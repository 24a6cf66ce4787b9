/* What the files that make tile programs share: kernel_steps.c (order and phases), kernel_values.c (the steps
 * of one instruction), kernel_folds.c (the steps of folds) and kernel_pairs.c (merged steps).
 * Must not know: how programs run. Read next: kernel_steps.c. */
#ifndef WEFT_DEVICE_CPU_TILE_KERNEL_STEPS_H
#define WEFT_DEVICE_CPU_TILE_KERNEL_STEPS_H

#include "device/cpu/tile/kernel_plan.h"

#define WEFT_SUM_GROUP 8 /* rows of a column that are added in sequence */

/* A register: scratch memory for a tile, shared by values whose lifetimes do not overlap. */
typedef struct weft_register {
    size_t bytes, offset;
    int first, last; /* steps */
    bool pinned;     /* lives for the whole run */
} weft_register;

/* The users of a value. */
typedef struct weft_tile_uses {
    int count, last; /* number of instructions that use it, and the last of them */
    bool computed;   /* at least one user is more than a store in the value's own dtype; such a store rounds
                        anyway */
    bool in_place;   /* stored, perhaps through casts, in an argument that is also read */
} weft_tile_uses;

typedef struct weft_tile_value {
    weft_tile_uses uses;
    bool scalar;  /* one element for the whole tile */
    bool full;    /* a FULL vector, else a ROW vector */
    bool alias;   /* a CAST that changes nothing */
    bool kept;    /* stored by the phase that computes it, for later phases */
    bool done;    /* a ROW value that is already computed */
    bool product; /* a product that is computed only inside the sum that uses it */
    uint8_t ct;
    int phase;       /* the first phase in which it can be computed */
    int access;      /* index of its access; -1 without a view */
    weft_ref ref;    /* its place, valid in the list that is being made */
    weft_ref spread; /* the FULL vector made from a ROW vector; base NONE if there is none */
    weft_ref state;  /* REDUCE, FOLD: the accumulator; kept values: their storage */
} weft_tile_value;

typedef struct weft_builder {
    weft_context *ctx;
    const weft_geometry *g;
    const weft_kernel *kernel;
    weft_kernel_plan *plan;
    weft_tile_value *values; /* [n_code] */
    weft_register *registers;
    size_t n_registers, cap_registers, cap_steps, cap_accesses;
    int n_consts;
    bool phased;               /* the reduction has several chunks */
    bool spreading;            /* FULL vectors are longer than ROW vectors */
    bool failed;               /* memory is short, or `lacking` is set; reported once at the end */
    int lacking;               /* an instruction whose op does not exist for its dtype, or -1 */
    int64_t row_max, full_max; /* the most elements of a vector */
    double cost_ns;            /* of a whole run, added up so far */
} weft_builder;

#define WEFT_REF_NOTHING ((weft_ref){WEFT_BASE_NONE, 0})

static inline bool weft__same_ref(weft_ref x, weft_ref y) { return x.base == y.base && x.offset == y.offset; }

/* kernel_pairs.c */
/* Merges two steps of the list since `begin` if only the second one uses the first one's result. Call it
 * before the stores of the `chosen` instructions are appended; their values stay. */
void weft__pairs_make(weft_builder *b, const uint8_t *chosen, int begin);

/* kernel_values.c */
/* Determines access, shape and phase of every value before any step is made. */
void weft__values_classify(weft_builder *b);
/* Appends the steps that compute value v. v is neither a STORE nor a REDUCE in phases. */
void weft__value_make(weft_builder *b, int v);
/* Returns value v as an operand of a ROW or a FULL user. A FULL user of a ROW vector gets its spread, which
 * is made if it is missing. *scalar says whether the operand is one element. */
weft_ref weft__value_use(weft_builder *b, int v, bool full, bool *scalar);
/* Same as weft__value_use, but always returns a vector. */
weft_ref weft__value_vector(weft_builder *b, int v, bool full);
/* Append a step, and create registers and constants. weft__vector_bytes returns the size of a vector. */
weft_step *weft__step_add(weft_builder *b, weft_step_kind kind, weft_count count);
weft_ref weft__register_new(weft_builder *b, size_t bytes, bool pinned);
weft_ref weft__const_new(weft_builder *b, weft_ct ct, double f, int64_t i);
size_t weft__vector_bytes(const weft_builder *b, weft_ct ct, bool full);
/* Appends a POINT step that sets a new base to args[arg]. Returns the new base. */
weft_ref weft__point_add(weft_builder *b, int arg, int access);
/* Returns the neutral element of a reduction as a constant. */
weft_ref weft__identity(weft_builder *b, weft_op op, weft_dtype dtype);
/* Wraps a value of a narrow integer dtype, such as u8, after an op that may leave its range. Returns ref
 * unchanged for other dtypes. */
weft_ref weft__wrapped(weft_builder *b, weft_ref ref, weft_dtype dtype, weft_op op, weft_count count);

/* ---- kernel_folds.c ---- */
/* Append the lists of steps at the two ends of a block. */
void weft__folds_begin(weft_builder *b);
void weft__folds_end(weft_builder *b);
/* Appends the steps that add a tile, or a chunk of it, to fold v. */
void weft__fold_add(weft_builder *b, int v);

#endif
