/* The op matrix: every op on every dtype, view and size, on one device, against references written from the
 * definitions. A case file (unary.c, reduce.c, ...) makes operands on host and device, records the op,
 * computes what is expected, and hands both to ops_check(); results are evaluated in batches. Must not know:
 * ops.def's expressions, the library's kernels. Read next: unary.c, then run.c. */
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

/* A tensor on the host, row-major: floats in f, all else in i. Lives until the next flush. */
typedef struct array {
    weft_dtype dtype;
    shape s;
    int64_t n;
    real *f;
    int64_t *i;
    real *bound; /* of an expected one, TOLERANCE_GIVEN: what each element may be off */
} array;

/* The same values on the device and on the host. */
typedef struct operand {
    weft_tensor *t;
    array *h;
} operand;

typedef struct matrix matrix;

struct matrix {
    weft_context *ctx;
    weft_scope *scope;
    const char *device;
    const char *only; /* names of the ops to run, or NULL */
    int part, parts;  /* every `parts`-th op, from number part - 1 on */
    uint64_t seed, random;
    FILE *record; /* one line a cell, or NULL */
    bool slow;    /* a device that computes element by element: fewer and smaller samples */
    bool unfused; /* every op a kernel of its own */
    bool texts;   /* the device computes nothing: what it would compile is written down (cuda_sources.h) */
    bool gpu;     /* the looser column of the tolerances; samples of cells: each may cost a compilation */
    uint32_t met; /* dtypes in which the op being run has been computed, a bit each */
    const char *group; /* cells of several ops that one kernel shall compute; NULL: those of one sample do */
    struct check *queue;
    int queued, capacity, chosen; /* of those queued, that need not be known */
    void *blocks;                 /* host memory until the next flush */
    size_t bytes;
    long cells, failures, skipped, left_out;
    struct grad_pending **grads; /* gradients that wait until they are checked: grad.c */
    int n_grads, grads_chosen;
    int refused_before; /* programs of gradients, whose kernels were not known */
    double worst;       /* of the op being run */
    const char *worst_sample;
};

/* ---- values and views: host.c ---- */

typedef enum generator {
    GEN_NORMAL,   /* around 0, of size 3; integers in -9..9 */
    GEN_WIDE,     /* any sign and exponent; integers of any size */
    GEN_POSITIVE, /* 0.5 .. 3.5; integers 1..9 */
    GEN_NEAR_ONE, /* 0.8 .. 1.25 of any sign, integers -2..2 without 0 */
    GEN_STEPS,    /* few whole numbers, so that values repeat */
    GEN_NONZERO,  /* as GEN_WIDE, integers never 0 */
    GEN_SPECIAL   /* zeros, infinities, NaN, the least and largest numbers, one after the other */
} generator;

typedef enum view_kind {
    VIEW_PLAIN,
    VIEW_TRANSPOSED, /* the last two dimensions */
    VIEW_PERMUTED,   /* dimensions rotated */
    VIEW_OFFSET,     /* the inner part of a larger one: not aligned */
    VIEW_STEPPED,    /* every second element */
    VIEW_FLIPPED,    /* backwards in every dimension */
    VIEW_BROADCAST,  /* stride 0 in every second dimension */
    VIEW_ROW,        /* stride 0 in the last dimension */
    VIEW_PADDED,     /* zeros around */
    VIEW_RESHAPED,   /* reshape of a transposed one: no single map of strides */
    VIEW_COUNT
} view_kind;

const char *view_name(view_kind view);

void *ops_alloc(matrix *m, size_t bytes); /* zeroed, until the next flush */
uint64_t ops_random(matrix *m);
double ops_uniform(matrix *m); /* in [0, 1) */
double ops_normal(matrix *m);

bool is_float(weft_dtype dtype);
int64_t wrap(weft_dtype dtype, int64_t v); /* modulo the dtype's width; of a bool != 0 */
/* Integers of a dtype as numbers that compare as they do (u64 is held as the i64 of its bits), and their
 * value. */
static inline int64_t ordered(weft_dtype dtype, int64_t v) { return dtype == WEFT_U64 ? v ^ INT64_MIN : v; }
static inline real value_of(weft_dtype dtype, int64_t v) {
    return dtype == WEFT_U64 ? (real)(uint64_t)v : (real)v;
}
real rounded(weft_dtype dtype, real v); /* to nearest even, once */

int64_t shape_count(shape s);
bool shape_broadcast(shape a, shape b, shape *out);

array *array_new(matrix *m, weft_dtype dtype, shape s);
array *array_random(matrix *m, weft_dtype dtype, shape s, generator gen);
weft_tensor *array_upload(matrix *m, const array *a);
array *array_like(matrix *m, const array *a, weft_dtype dtype); /* the same shape */

/* Element `to` of the result of each of these is element `from` of a. */
array *array_permute(matrix *m, const array *a, const int *order);
array *array_slice(matrix *m, const array *a, const int64_t *start, const int64_t *step, shape s);
array *array_expand(matrix *m, const array *a, shape s);
array *array_reshape(matrix *m, const array *a, shape s);
array *array_pad(matrix *m, const array *a, const int64_t *before, const int64_t *after, double value);
void array_copy(array *to, int64_t i, const array *from, int64_t j);

/* Row-major position, odometer style. */
int64_t position(shape s, const int64_t *index);
void unravel(shape s, int64_t at, int64_t *index);

operand operand_new(matrix *m, weft_dtype dtype, shape s, view_kind view, generator gen);
operand operand_of(matrix *m, array *h); /* plain, of these values */

/* ---- samples that most ops run on ---- */
extern const shape ops_sizes[]; /* every rank and the edges of vectors and tiles, empty ones included */
extern const int ops_n_sizes;
extern const shape ops_views[]; /* shapes on which every view is tried */
extern const int ops_n_views;

/* ---- dtypes ---- */
enum { ACCEPT_FLOAT = 0x000f, ACCEPT_NUMBER = 0x1f7f, ACCEPT_INTEGER = 0x1ff0, ACCEPT_ANY = 0x1fff };
#define OPS_DTYPES 13
extern const weft_dtype ops_dtypes[OPS_DTYPES]; /* f32 f64 f16 bf16 i32 i64 u8 bool i8 i16 u16 u32 u64 */
/* Another dtype than ops_dtypes[d] that every device has. */
static inline weft_dtype other_dtype(int d) { return d == 0 ? WEFT_I32 : WEFT_F32; }
/* Does bit i of the mask accept ops_dtypes[i]? */
static inline bool accepts(int mask, int i) { return mask >> i & 1; }
/* False, counted as skipped, where the device lacks the dtype. */
bool ops_has_dtype(matrix *m, const char *op, weft_dtype dtype);

/* ---- checking: run.c ---- */

/* got must become `want`: one cell, unless it is left out. The names are kept as pointers. */
void ops_check(matrix *m, const char *op, weft_dtype column, const char *sample, weft_tensor *got,
               array *want, tolerance how);
/* got must be poisoned with that status: one cell. */
void ops_refused(matrix *m, const char *op, weft_dtype column, const char *sample, weft_tensor *got,
                 weft_status status);
/* Is the result computed element by element or row by row, in a kernel that can compute others beside it? */
bool ops_joins(const weft_tensor *got);
/* What follows of the op takes other kernels than before: where samples are chosen, some of it are too. */
static inline void ops_another_way(matrix *m) { m->met = 0; }
/* True of one sample in `rarity`; another seed chooses others. */
bool ops_drawn(const matrix *m, const char *op, weft_dtype column, const char *sample, unsigned rarity);
/* A condition that must hold: one cell. */
void ops_hold(matrix *m, const char *op, weft_dtype column, const char *sample, bool holds);
/* Text kept until the next flush. */
const char *ops_text(matrix *m, const char *fmt, ...) WEFT_PRINTF(2, 3);
const char *shape_text(matrix *m, shape s);
/* Evaluates and compares what is queued, and frees all operands; */
void ops_settle(matrix *m);
/* The same where nothing is gained by waiting for more: after a dtype or an op. A GPU's backend waits for a
 * program's worth. */
void ops_flush(matrix *m);
/* After an op on a GPU's backend: the same once there is enough for a program. */
void ops_end(matrix *m);
/* The same when enough is queued: between samples. */
void ops_breathe(matrix *m);

/* ---- ops of one operand: run.c ---- */
typedef weft_tensor *(*unary_fn)(weft_tensor *x);
typedef weft_tensor *(*binary_fn)(weft_tensor *a, weft_tensor *b);

/* Sizes, views and special values of an op of one operand. expect computes the result on the host; dtypes
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

/* ---- gradients that wait: grad.c ---- */
void grad_settle(matrix *m); /* checks them */
void grad_end(matrix *m);    /* after an op: the same once there is enough for a program */

/* ---- the program around a table of ops: main.c ---- */
typedef struct op_cases {
    const char *name;
    void (*run)(matrix *m);
} op_cases;
int ops_main(int argc, char **argv, const char *title, const op_cases *table, int count);

#endif
