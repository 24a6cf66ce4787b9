/* What the parts of the making of tile programs share: kernel_steps.c (order and phases), kernel_values.c
 * (the steps of one instruction) and kernel_folds.c (those of folds). */
#ifndef WEFT_DEVICE_CPU_TILE_KERNEL_STEPS_H
#define WEFT_DEVICE_CPU_TILE_KERNEL_STEPS_H

#include "device/cpu/tile/kernel_plan.h"

#define WEFT_SUM_GROUP 8 /* rows of a column that are added in a row */

/* A register: tile-sized scratch, shared by values whose lives do not overlap. */
typedef struct weft_register {
    size_t bytes, offset;
    int first, last; /* steps */
    bool pinned;     /* lives for the whole run */
} weft_register;

/* What is known of the value of an instruction. */
/* Who uses a value. */
typedef struct weft_tile_uses {
    int count, last; /* instructions, and the last of them */
    bool computed;   /* some do not just store it in its own dtype, which rounds anyway */
    bool in_place;   /* stored, casts aside, in an argument that is read as well */
} weft_tile_uses;

typedef struct weft_tile_value {
    weft_tile_uses uses;
    bool scalar;  /* one element for the whole tile */
    bool full;    /* a FULL vector, else a ROW vector */
    bool alias;   /* a CAST that changes nothing */
    bool kept;    /* stored by the phase that makes it for those that need it again */
    bool done;    /* a ROW value, once made */
    bool product; /* made only where its one user adds it up */
    uint8_t ct;
    int phase;       /* the first in which it can be computed */
    int access;      /* -1 without a view */
    weft_ref ref;    /* valid in the list being made */
    weft_ref spread; /* of a ROW vector: the FULL vector made of it; base NONE where there is none */
    weft_ref state;  /* REDUCE, FOLD: its accumulator; kept values: their storage */
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
    bool phased;               /* several chunks of reduction indices */
    bool spreading;            /* FULL vectors are longer than ROW vectors */
    bool failed;               /* memory is gone, or `lacking`: said once at the end */
    int lacking;               /* an instruction whose op its dtype lacks, or -1 */
    int64_t row_max, full_max; /* elements */
    double cost_ns;            /* so far, for a whole run */
} weft_builder;

#define WEFT_REF_NOTHING ((weft_ref){WEFT_BASE_NONE, 0})

static inline bool weft__same_ref(weft_ref x, weft_ref y) { return x.base == y.base && x.offset == y.offset; }

/* kernel_pairs.c */
/* Makes one step of two in the list since `begin` where the first's result is the second's alone. Before the
 * stores of `chosen` instructions, whose values stay. */
void weft__pairs_make(weft_builder *b, const uint8_t *chosen, int begin);

/* kernel_values.c */
/* Access, shape and phase of every value, before any step is made. */
void weft__values_classify(weft_builder *b);
/* Appends the steps that make value v (not STORE, not a REDUCE in phases). */
void weft__value_make(weft_builder *b, int v);
/* The operand for a ROW or FULL user; makes the spread of a ROW vector where it is missing. *scalar: one
 * element. */
weft_ref weft__value_use(weft_builder *b, int v, bool full, bool *scalar);
/* The same, but always a vector. */
weft_ref weft__value_vector(weft_builder *b, int v, bool full);
/* Steps and registers. */
weft_step *weft__step_add(weft_builder *b, weft_step_kind kind, weft_count count);
weft_ref weft__register_new(weft_builder *b, size_t bytes, bool pinned);
weft_ref weft__const_new(weft_builder *b, weft_ct ct, double f, int64_t i);
size_t weft__vector_bytes(const weft_builder *b, weft_ct ct, bool full);
/* Appends a POINT of a new base at args[arg]. */
weft_ref weft__point_add(weft_builder *b, int arg, int access);
/* The neutral element of a reduction. */
weft_ref weft__identity(weft_builder *b, weft_op op, weft_dtype dtype);
/* u8 and its kin after an op that may leave their range; ref itself for others. */
weft_ref weft__wrapped(weft_builder *b, weft_ref ref, weft_dtype dtype, weft_op op, weft_count count);

/* ---- kernel_folds.c ---- */
/* The lists of steps at the two ends of a block. */
void weft__folds_begin(weft_builder *b);
void weft__folds_end(weft_builder *b);
/* Appends the steps by which a tile, or a chunk of it, joins fold v. */
void weft__fold_add(weft_builder *b, int v);

#endif
