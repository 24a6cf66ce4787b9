/* The op matrix: checks every op on every dtype, view and size, on one device, against references written
 * from the definitions. A case file (unary.c, reduce.c, ...) makes operands on host and device, records the
 * op, computes the expected result, and passes both to ops_check(). Results are evaluated in batches. This
 * code must not know ops.def's expressions or the library's kernels. Read next: unary.c, then run.c. */
#ifndef WEFT_TESTS_OPS_MATRIX_H
#define WEFT_TESTS_OPS_MATRIX_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <weft/ops.h>
#include "ops/tolerance.h"

typedef long double real;

#define COUNT(a) (int)(sizeof(a) / sizeof *(a))
#define DIMS(...)                                                                                            \
    COUNT(((int64_t[]){__VA_ARGS__})), (int64_t[]) { __VA_ARGS__ }
#define SHAPE(...)                                                                                           \
    (shape) {                                                                                                \
        COUNT(((int64_t[]){__VA_ARGS__})), { __VA_ARGS__ }                                                   \
    }
#define SCALAR_SHAPE                                                                                         \
    (shape) {                                                                                                \
        0, { 0 }                                                                                             \
    }

typedef struct shape {
    int rank;
    int64_t dim[WEFT_MAX_RANK];
} shape;

/* A tensor on the host, row-major: floats in f, all other dtypes in i. Valid until the next flush. */
typedef struct array {
    weft_dtype dtype;
    shape s;
    int64_t n;
    real *f;
    int64_t *i;
    real *bound; /* of an expected array with TOLERANCE_GIVEN: allowed error of each element */
} array;

/* The same values on the device and on the host. */
typedef struct operand {
    weft_tensor *t;
    array *h;
} operand;

typedef struct matrix matrix;

struct matrix {
    weft_context *ctx, *wide; /* wide: of functions in f64, on the CPU if the device has no f64, else ctx */
    weft_scope *scope, *wide_scope; /* wide_scope: NULL if wide is ctx */
    const char *device;
    const char *only; /* names of the ops to run, or NULL */
    int part, parts;  /* run every `parts`-th op, starting with number part - 1 */
    uint64_t seed, random;
    FILE *record; /* receives one line for each check, or NULL */
    bool slow;    /* the device computes element by element: use fewer and smaller samples */
    bool unfused; /* each op is a kernel of its own */
    /* Gradients in f64 are not compared with differences. They still are the reference of narrower dtypes. */
    bool no_differences;
    bool sources; /* the device only writes kernel sources to files (cuda_sources.h) */
    bool gpu; /* use the looser tolerances, and only a sample of the checks: each may cost a compilation */
    uint32_t met;      /* bit mask of dtypes in which the current op has been computed */
    const char *group; /* checks of several ops share this kernel; NULL: those of a sample do */
    struct check *queue;
    int queued, capacity, chosen; /* chosen: queued checks that are computed even if they need new kernels */
    void *blocks;                 /* host memory, freed by the next flush */
    size_t bytes;
    long cells, failures, skipped, left_out;
    struct grad_pending **grads; /* gradient cases that wait to be checked: grad.c */
    int n_grads, grads_chosen;
    int refused_before; /* gradient programs refused because they needed new kernels */
    double worst;       /* largest error of the current op */
    const char *worst_sample;
};

/* ---- values and views: host.c ---- */

typedef enum generator {
    GEN_NORMAL,   /* around 0, of size 3; integers in -9..9 */
    GEN_WIDE,     /* any sign and exponent; integers of any size */
    GEN_POSITIVE, /* 0.5 .. 3.5; integers 1..9 */
    GEN_NEAR_ONE, /* 0.8 .. 1.25 of any sign; integers -2..2 without 0 */
    GEN_STEPS,    /* few whole numbers, so that values repeat */
    GEN_NONZERO,  /* as GEN_WIDE, but integers are never 0 */
    GEN_SPECIAL   /* zeros, infinities, NaN, the least and largest numbers in turn */
} generator;

typedef enum view_kind {
    VIEW_PLAIN,
    VIEW_TRANSPOSED, /* last two dimensions swapped */
    VIEW_PERMUTED,   /* dimensions rotated */
    VIEW_OFFSET,     /* inner part of a larger tensor: not aligned */
    VIEW_STEPPED,    /* every second element */
    VIEW_FLIPPED,    /* backwards in every dimension */
    VIEW_BROADCAST,  /* stride 0 in every second dimension */
    VIEW_ROW,        /* stride 0 in the last dimension */
    VIEW_PADDED,     /* with zeros around */
    VIEW_RESHAPED,   /* reshape of a transposed tensor: not one map of strides */
    VIEW_COUNT
} view_kind;

const char *view_name(view_kind view);

void *ops_alloc(matrix *m, size_t bytes); /* zeroed memory, valid until the next flush */
uint64_t ops_random(matrix *m);
double ops_uniform(matrix *m); /* in [0, 1) */
double ops_normal(matrix *m);

bool is_float(weft_dtype dtype);
int64_t wrap(weft_dtype dtype, int64_t v); /* modulo 2^width of the dtype; for bool, v != 0 */
/* ordered: maps an integer to an i64 that compares in the same order (u64 is held as the i64 of its bits).
 * value_of: the value of the integer. */
static inline int64_t ordered(weft_dtype dtype, int64_t v) { return dtype == WEFT_U64 ? v ^ INT64_MIN : v; }
static inline real value_of(weft_dtype dtype, int64_t v) {
    return dtype == WEFT_U64 ? (real)(uint64_t)v : (real)v;
}
real rounded(weft_dtype dtype, real v); /* rounds once, to nearest even */

int64_t shape_count(shape s);
bool shape_broadcast(shape a, shape b, shape *out);

array *array_new(matrix *m, weft_dtype dtype, shape s);
array *array_random(matrix *m, weft_dtype dtype, shape s, generator gen);
weft_tensor *array_upload(matrix *m, const array *a);
array *array_like(matrix *m, const array *a, weft_dtype dtype); /* an empty array of the same shape */

/* Element `to` of the result of each function is element `from` of a. */
array *array_permute(matrix *m, const array *a, const int *order);
array *array_slice(matrix *m, const array *a, const int64_t *start, const int64_t *step, shape s);
array *array_expand(matrix *m, const array *a, shape s);
array *array_reshape(matrix *m, const array *a, shape s);
array *array_pad(matrix *m, const array *a, const int64_t *before, const int64_t *after, double value);
void array_copy(array *to, int64_t i, const array *from, int64_t j);

/* Row-major position of an index, and the index of a position. */
int64_t position(shape s, const int64_t *index);
void unravel(shape s, int64_t at, int64_t *index);

operand operand_new(matrix *m, weft_dtype dtype, shape s, view_kind view, generator gen);
operand operand_of(matrix *m, array *h); /* a plain operand with these values */

/* ---- samples that most ops use ---- */
extern const shape ops_sizes[]; /* every rank, edges of vectors and tiles, and empty shapes */
extern const int ops_n_sizes;
extern const shape ops_views[]; /* shapes that are tested with every view */
extern const int ops_n_views;

/* ---- dtypes ---- */
enum { ACCEPT_FLOAT = 0x000f, ACCEPT_NUMBER = 0x1f7f, ACCEPT_INTEGER = 0x1ff0, ACCEPT_ANY = 0x1fff };
#define OPS_DTYPES 13
extern const weft_dtype ops_dtypes[OPS_DTYPES]; /* f32 f64 f16 bf16 i32 i64 u8 bool i8 i16 u16 u32 u64 */
/* A dtype other than ops_dtypes[d] that every device supports. */
static inline weft_dtype other_dtype(int d) { return d == 0 ? WEFT_I32 : WEFT_F32; }
/* Does bit i of the mask accept ops_dtypes[i]? */
static inline bool accepts(int mask, int i) { return mask >> i & 1; }
/* Returns false if the device lacks the dtype, and counts it as skipped. */
bool ops_has_dtype(matrix *m, const char *op, weft_dtype dtype);

/* ---- checking: run.c ---- */

/* Queues one check: got must become `want`. On GPUs the check may be left out. The names are kept as
 * pointers. */
void ops_check(matrix *m, const char *op, weft_dtype column, const char *sample, weft_tensor *got,
               array *want, tolerance how);
/* One check: got must be poisoned with that status. */
void ops_refused(matrix *m, const char *op, weft_dtype column, const char *sample, weft_tensor *got,
                 weft_status status);
/* Is the result computed by element or by row, in a kernel that can compute other results too? */
bool ops_joins(const weft_tensor *got);
/* Call this before samples that need other kernels than the samples before. Where checks are sampled, some of
 * the following ones are then chosen too. */
static inline void ops_another_way(matrix *m) { m->met = 0; }
/* True for one sample in `rarity`. Another seed chooses other samples. */
bool ops_drawn(const matrix *m, const char *op, weft_dtype column, const char *sample, unsigned rarity);
/* One check: a condition that must hold. */
void ops_hold(matrix *m, const char *op, weft_dtype column, const char *sample, bool holds);
/* Formats a string that is valid until the next flush. */
const char *ops_text(matrix *m, const char *fmt, ...) WEFT_PRINTF(2, 3);
const char *shape_text(matrix *m, shape s);
/* Evaluates and compares all queued checks, and frees all operands. */
void ops_settle(matrix *m);
/* Calls ops_settle, except on a GPU backend, where it waits until there are enough checks for a program. Call
 * it after each dtype or op. */
void ops_flush(matrix *m);
/* Call this after each op. On a GPU backend, calls ops_settle if there are enough checks for a program. */
void ops_end(matrix *m);
/* Calls ops_settle if enough checks are queued. Call it between samples. */
void ops_breathe(matrix *m);

/* ---- ops of one operand: run.c ---- */
typedef weft_tensor *(*unary_fn)(weft_tensor *x);
typedef weft_tensor *(*binary_fn)(weft_tensor *a, weft_tensor *b);

/* Sizes, views and special values for an op of one operand. expect computes the result on the host. Dtypes
 * that are not accepted must be refused. */
typedef struct unary_op {
    const char *name;
    weft_tensor *(*record)(weft_tensor *x, const void *user);
    array *(*expect)(matrix *m, const array *x, const void *user);
    const void *user;
    int accept;
    tolerance how;
    generator gen;
} unary_op;
void ops_run_unary(matrix *m, const unary_op *op);

/* ---- gradient cases that wait: grad.c ---- */
void grad_settle(matrix *m); /* checks them all */
void grad_end(matrix *m);    /* call after each op: checks them if there are enough for a program */

/* ---- the program that runs a table of ops: main.c ---- */
typedef struct op_cases {
    const char *name;
    void (*run)(matrix *m);
} op_cases;
int ops_main(int argc, char **argv, const char *title, const op_cases *table, int count);

#endif
