/* The plan of a matmul on a GPU: what matmul.c and the files of its templates share.
 * Must not know: how launches run. Read next: matmul.c. */
#ifndef WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_PLAN_H
#define WEFT_DEVICE_GPU_HEAVY_MATMUL_MATMUL_PLAN_H

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/matmul/matmul.h"

/* A matmul as it is launched. */
typedef struct matmul_plan {
    const weft_target *target;
    weft_dtype dtype, out, sum;
    bool sink;
    int a, b; /* operands; swapped if c has one column */
    weft_heavy_matmul mm;
    const weft_gpu_view *view; /* NULL: no operand is the windows of images */
    int64_t items;             /* matmuls in the batch */
    const uint8_t *aligned;    /* see weft_launches */
    int64_t splits, part; /* k is divided into `splits` parts of length `part`, or of slices of this length */
    double steps;         /* for card/facts.c if there are slices: how often a work-group waits, */
    int at_once;          /* and the bytes that a work-item has under way */
    struct {
        int64_t m, n;
    } block;                /* of c, that one work-group computes */
    weft_epilogue epilogue; /* if mm has one */
    int sums;               /* operand for the row sums of a; 0: none */
    int group_items;
    struct {
        int number, count; /* which of the tiles; all of them add in the same order */
    } variant;
    unsigned prelude;
    struct {
        int64_t declared; /* by the source, as W_SHARED, at most */
        int requested;    /* by the launch instead */
    } local;              /* bytes of local memory */
    char name[32];        /* name of the tile */
    char head[640];       /* definitions before the source */
} matmul_plan;

static inline int64_t weft__matmul_round_up(int64_t a, int64_t b) { return weft__ceil_div(a, b) * b; }

/* A dimension of extent 1 may have any stride. */
static inline bool weft__matmul_unit(int64_t stride, int64_t extent) { return stride == 1 || extent <= 1; }
static inline bool weft__matmul_a_lines(const matmul_plan *p) {
    return weft__matmul_unit(p->mm.a_k, p->mm.k);
}
static inline bool weft__matmul_b_lines(const matmul_plan *p) {
    return weft__matmul_unit(p->mm.b_n, p->mm.n);
}

/* Returns the squares of 64 x 64 results. */
static inline int64_t weft__matmul_squares(const matmul_plan *p) {
    return weft__ceil_div(p->mm.m, 64) * weft__ceil_div(p->mm.n, 64) * p->items;
}

/* Divides k for matmuls of few tiles, into parts of at least `least` steps, which are multiples of `step`.
 * The shape alone decides, since this determines the order of additions. */
void weft__matmul_split(matmul_plan *p, int64_t tiles, int64_t wanted, int64_t least, int64_t step);

/* Returns the type of 4 sums in kernel source. */
const char *weft__matmul_sum_vector(const matmul_plan *p);

/* ---- matmul_slices.c ---- */

/* Returns whether a matmul without tensor cores has so few tiles that warps divide k among them. */
bool weft__matmul_is_sliced(const matmul_plan *p);
/* Plans such a matmul. Returns the source of its template. */
const char *weft__matmul_plan_slices(matmul_plan *p);

#endif
