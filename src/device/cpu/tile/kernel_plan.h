/* A fused kernel as a tile program: pure data, made once (kernel_plan.c, kernel_steps.c, kernel_access.c) and
 * run without allocation (kernel_run.c).
 *
 * The index space is cut into tiles of parallel indices, one task each; the reduction dimensions are cut into
 * chunks. ROW values have one element per parallel index of the tile ("row count" of them), FULL values one
 * per (parallel, reduction) index of tile and chunk. The layout says which of both runs fastest in a FULL
 * value: reductions (rows of numbers that lie side by side) or parallel indices (columns). Where one chunk
 * holds all reduction indices, the program is one list of steps; else it is phases, each a list before and a
 * list for every chunk, so that a reduction's result is known before the phase that uses it. Where rows are
 * folded, a task is all tiles of a block, with lists before the first and after the last of them. */
#ifndef WEFT_DEVICE_CPU_TILE_KERNEL_PLAN_H
#define WEFT_DEVICE_CPU_TILE_KERNEL_PLAN_H

#include "device/cpu/tile/tiles.h"

#define WEFT_DIMS WEFT_VIEW_RANK /* neighbouring dimensions that every view lets merge are one */

/* How many elements a step handles. */
typedef enum weft_count {
    WEFT_COUNT_ROW,
    WEFT_COUNT_FULL,
    WEFT_COUNT_ONE,
    WEFT_COUNT_LINE, /* reduction indices of the chunk */
    WEFT_COUNTS
} weft_count;

/* Where an operand lies: base[base] + offset. Bases 0 and 1 are scratch and constants, others are set by
 * POINT and KEEP steps. While a plan is made, base WEFT_BASE_REGISTER counts registers. */
typedef struct weft_ref {
    int32_t base;
    uint32_t offset; /* bytes */
} weft_ref;
enum { WEFT_BASE_SCRATCH, WEFT_BASE_CONST, WEFT_BASE_FIRST, WEFT_BASE_NONE = -1, WEFT_BASE_REGISTER = -2 };

/* One dimension of the box that a view covers in a tile: unit indices, times the chunk lengths that `by`
 * names (bit 0 the parallel one, bit 1 the reduction one). */
typedef struct weft_local {
    int64_t unit, stride;
    int dim; /* of the kernel, for guards */
    uint8_t by;
} weft_local;

typedef enum weft_access_kind {
    WEFT_ACCESS_SCALAR, /* one element for the whole tile */
    WEFT_ACCESS_DIRECT, /* neighbours in memory */
    WEFT_ACCESS_GENERAL
} weft_access_kind;

/* A view as a tile meets it: offset of the tile's first index and the box from there. */
typedef struct weft_access {
    uint8_t kind;
    uint8_t guarded; /* guards below must be looked at */
    uint8_t empty;   /* no index passes */
    int n_local, n_terms;
    int64_t offset;
    const weft_view *view; /* maps 1.. of a list */
    struct {
        int dim;
        int64_t stride;
    } terms[WEFT_DIMS]; /* offset += start[dim] * stride */
    weft_local local[WEFT_DIMS];
    int64_t stride[WEFT_DIMS], lo[WEFT_DIMS], hi[WEFT_DIMS]; /* per dimension of the plan */
} weft_access;

typedef enum weft_step_kind {
    WEFT_STEP_CALC,   /* calc(count, out, a, b, c) */
    WEFT_STEP_POINT,  /* base[slot] = address of args[arg] at the access */
    WEFT_STEP_KEEP,   /* base[slot] = this chunk's part of a kept value */
    WEFT_STEP_READ,   /* out = what `source` says at each index of the access */
    WEFT_STEP_WRITE,  /* a to args[arg] */
    WEFT_STEP_ROWS,   /* out = reduction of each row of a */
    WEFT_STEP_SPREAD, /* out = a (row count) for every reduction index */
    WEFT_STEP_INIT,   /* an accumulator at out is empty */
    WEFT_STEP_ADD,    /* this chunk of a joins the accumulator at out */
    WEFT_STEP_DONE,   /* out = result of the accumulator at a, or b if nothing came */
    WEFT_STEP_FOLD,   /* the rows of a, some times those of b, join the accumulator at out */
    WEFT_STEP_DOT,    /* out = sum of each row of a * b */
    WEFT_STEP_CHECK   /* fault if a divisor in a is 0 */
} weft_step_kind;

typedef struct weft_step {
    uint8_t kind, count; /* weft_step_kind, weft_count */
    uint8_t source;      /* READ: weft_instr_kind */
    uint8_t ct;          /* of out (of a for WRITE, CHECK) */
    uint8_t dtype;       /* READ, WRITE: of the buffer */
    uint8_t index_ct;    /* GATHER: of a */
    uint8_t dear;        /* CALC of f32: takes long, or shall; lines are fetched between slices of it */
    uint8_t slices;      /* CALC of f32: may be done in slices */
    uint8_t fixed;       /* the same, bits: a, b, c are one element */
    uint8_t pairs;       /* CALC: may become one of a pair, as weft_pair `pair` */
    uint8_t pair;
    uint8_t once; /* the same for all tiles: only where there are more elements than ever before */
    int slot, arg, access;
    weft_ref out, a, b, c;
    union {
        weft_tile_calc calc;
        weft_tile_spread spread;
        weft_tile_products products; /* DOT, FOLD */
    } fn;
    weft_tile_reduce reduce;
    weft_tile_join join;
    int64_t pitch, bound; /* GATHER */
    int64_t group;        /* ADD, FOLD: parts in a row before they climb a level of the cascade */
    int64_t bytes;        /* KEEP: of one chunk; ADD, FOLD, DONE: of one vector of the accumulator */
    int index_access;     /* GATHER: the access that made a, for the fault, or -1 */
} weft_step;

/* Dimensions first .. first + count - 1 of the plan, cut at `split`: outside it one index at a time, `chunk`
 * indices of it, all indices inside. */
typedef struct weft_nest {
    int first, count, split;
    int single;            /* dimensions before it are never more than one index at a time */
    int64_t chunk, chunks; /* indices of the split dimension at a time; how many times */
    int64_t inner;         /* indices inside the split dimension */
    int64_t max;           /* chunk * inner: most indices of a tile */
    int64_t tiles, total;
} weft_nest;

typedef struct weft_range {
    int begin, end; /* steps */
} weft_range;

typedef struct weft_phase {
    weft_range before, chunk; /* once per tile; once per chunk */
} weft_phase;

/* What the next tile, or in columns the next chunk, will read or write: fetched while this one is computed,
 * since hardware prefetchers stop at the end of a page, which is as long as a tile. */
typedef struct weft_ahead {
    int arg, access;
    bool written;
    int64_t size, bytes, lines; /* of an element; to the next piece; of a piece */
} weft_ahead;
#define WEFT_AHEAD_MOST 8
#define WEFT_AHEAD_SLICE                                                                                     \
    128 /* elements of a dear function between fetches: their number in flight is small */

typedef struct weft_kernel_plan {
    const weft_tiles *tiles;
    const char *path;
    int64_t extent[WEFT_DIMS];
    weft_nest parallel, reduction;
    int64_t tiles_a_block;  /* tiles that are one task; 1 without folds */
    int64_t last_rows;      /* of the last block, where it has fewer than the others; else 0 */
    weft_phase open, close; /* before the first tile of a block, after the last one */
    bool folds;
    bool plain;   /* one tile and nothing to fetch ahead: steps need no other look */
    bool columns; /* layout of FULL values: parallel indices run fastest */
    int n_steps, n_accesses, n_phases, n_bases;
    weft_step *steps;
    weft_access *accesses;
    weft_phase *phases;
    char *consts; /* 8 bytes each */
    int n_ahead;
    int64_t ahead_lines; /* lines of each to fetch before each step or slice of one */
    int64_t ahead_end;   /* most lines of one */
    weft_ahead ahead[WEFT_AHEAD_MOST];
    size_t scratch_bytes;
} weft_kernel_plan;

/* State of one run of tasks. */
typedef struct weft_frame {
    const weft_kernel_plan *plan;
    void *const *args;
    char **base;
    weft_fault *fault;
    int64_t count[WEFT_COUNTS];
    int64_t chunk[4]; /* 1, parallel chunk, reduction chunk, both: indexed by weft_local.by */
    int64_t start[WEFT_DIMS];
    int64_t ordinal; /* of the reduction chunk */
    bool fresh;      /* more elements than any tile before: `once` steps run */
    struct {         /* of the next tile: lines of each that are fetched, and from where on */
        int64_t at;
        const char *from[WEFT_AHEAD_MOST];
    } ahead;
} weft_frame;

/* A guard-free element number of an access at the tile's first index. */
static inline int64_t weft__access_offset(const weft_frame *f, const weft_access *x) {
    int64_t offset = x->offset;
    for (int i = 0; i < x->n_terms; i++) offset += f->start[x->terms[i].dim] * x->terms[i].stride;
    return offset;
}
static inline char *weft__ref(const weft_frame *f, weft_ref r) { return f->base[r.base] + r.offset; }

/* ---- kernel_plan.c: the index space ---- */

/* Neighbouring kernel dimensions outer..inner (those of extent 1 aside) are one of the plan; or one dimension
 * without guards is two of the plan, the outer one in steps of `step`. */
typedef struct weft_group {
    int outer, inner;
    int64_t scale; /* indices of the group per index of `outer` */
    int64_t step;  /* indices of `inner` per index of the group */
    bool part;     /* of a dimension cut in two */
} weft_group;

typedef struct weft_geometry {
    weft_group group[WEFT_DIMS];
    weft_kernel_plan *plan;
    const weft_kernel *kernel;
    const weft_operand *places; /* of the kernel's arguments; NULL: no two share memory */
} weft_geometry;

/* ---- kernel_access.c ---- */
void weft__access_make(const weft_geometry *g, const weft_view *view, int level, weft_access *out);
/* READ (all sources) and WRITE steps. */
void weft__access_run(const weft_frame *f, const weft_step *s);

/* ---- kernel_steps.c ---- */
weft_status weft__steps_make(weft_context *ctx, const weft_geometry *g, double *cost_ns);

/* ---- kernel_run.c: the run function of a weft_cpu_work ---- */
void weft__plan_run(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                    weft_fault *fault);
/* Bytes of an accumulator for vectors of `bytes`, over at most `parts` parts. */
size_t weft__accumulator_bytes(int64_t bytes, int64_t parts, int64_t group);

#endif
