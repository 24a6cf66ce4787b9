/* A fused kernel as a tile program. It is pure data, made once by kernel_plan.c, kernel_steps.c and
 * kernel_access.c. kernel_run.c runs it without allocation.
 *
 * The index space is divided into tiles of parallel indices. Each tile is one task. The reduction dimensions
 * are divided into chunks:
 *
 *     parallel |  tile 0  [ chunk 0 | chunk 1 | chunk 2 ]
 *     indices  |  tile 1  [ chunk 0 | chunk 1 | chunk 2 ]
 *              v          ---- reduction indices ---->
 *
 * A ROW value has one element for each parallel index of the tile; their number is the row count. A FULL
 * value has one element for each parallel index of the tile and each reduction index of the chunk. In the
 * layout "rows" reduction indices run fastest, so the numbers of a row are contiguous. In the layout
 * "columns" parallel indices run fastest.
 *
 * If one chunk holds all reduction indices, the program is one list of steps. Otherwise it has phases. Each
 * phase has one list that runs before the chunks, and one that runs for every chunk. So the result of a
 * reduction is known before the phase that uses it. If rows are folded, a task is all tiles of a block. Two
 * more lists run before the first tile and after the last one.
 *
 * Must not know: nodes, threads. Read next: kernel_plan.c, kernel_run.c. */
#ifndef WEFT_DEVICE_CPU_TILE_KERNEL_PLAN_H
#define WEFT_DEVICE_CPU_TILE_KERNEL_PLAN_H

#include "device/cpu/tile/tiles.h"

#define WEFT_DIMS                                                                                            \
    WEFT_VIEW_RANK /* after neighbouring dimensions that all views allow to merge are merged                 \
                    */

/* The number of elements that a step handles. */
typedef enum weft_count {
    WEFT_COUNT_ROW,
    WEFT_COUNT_FULL,
    WEFT_COUNT_ONE,
    WEFT_COUNT_LINE, /* the reduction indices of the chunk */
    WEFT_COUNTS
} weft_count;

/* The place of an operand: base[base] + offset. Base 0 is the scratch memory, base 1 the constants. POINT and
 * KEEP steps set the others. While a plan is made, WEFT_BASE_REGISTER marks a register, and offset is its
 * number. */
typedef struct weft_ref {
    int32_t base;
    uint32_t offset; /* bytes */
} weft_ref;
enum { WEFT_BASE_SCRATCH, WEFT_BASE_CONST, WEFT_BASE_FIRST, WEFT_BASE_NONE = -1, WEFT_BASE_REGISTER = -2 };

/* One dimension of the box that a view covers in a tile. Its length is `unit` times the chunk lengths that
 * `by` names: bit 0 is the parallel chunk, bit 1 the reduction chunk. */
typedef struct weft_local {
    int64_t unit, stride;
    int dim; /* of the plan, for guards */
    uint8_t by;
} weft_local;

typedef enum weft_access_kind {
    WEFT_ACCESS_SCALAR, /* one element for the whole tile */
    WEFT_ACCESS_DIRECT, /* contiguous in memory */
    WEFT_ACCESS_GENERAL
} weft_access_kind;

/* A view as a tile uses it: the offset of the tile's first index, and the box from there. */
typedef struct weft_access {
    uint8_t kind;
    uint8_t guarded; /* the guards below must be checked */
    uint8_t empty;   /* the guards exclude every index */
    int n_local, n_terms;
    int64_t offset;
    const weft_view *view; /* for the maps after the first */
    struct {
        int dim;
        int64_t stride;
    } terms[WEFT_DIMS]; /* offset += start[dim] * stride */
    weft_local local[WEFT_DIMS];
    int64_t stride[WEFT_DIMS], lo[WEFT_DIMS], hi[WEFT_DIMS]; /* for each dimension of the plan */
} weft_access;

typedef enum weft_step_kind {
    WEFT_STEP_CALC,   /* calc(count, out, a, b, c) */
    WEFT_STEP_POINT,  /* base[slot] = address of args[arg] at the access */
    WEFT_STEP_KEEP,   /* base[slot] = this chunk's part of a kept value */
    WEFT_STEP_READ,   /* out = the values of `source` at each index of the access */
    WEFT_STEP_WRITE,  /* stores a in args[arg] */
    WEFT_STEP_ROWS,   /* out = reduction of each row of a */
    WEFT_STEP_SPREAD, /* out = a (row count) for every reduction index */
    WEFT_STEP_INIT,   /* empties the accumulator at out */
    WEFT_STEP_ADD,    /* adds this chunk of a to the accumulator at out */
    WEFT_STEP_DONE,   /* out = result of the accumulator at a, or b if nothing was added */
    WEFT_STEP_FOLD,   /* adds the rows of a, or their products with b, to the accumulator at out */
    WEFT_STEP_DOT,    /* out = sum of each row of a * b */
    WEFT_STEP_CHECK   /* records a fault if a divisor in a is 0 */
} weft_step_kind;

typedef struct weft_step {
    uint8_t kind, count; /* weft_step_kind, weft_count */
    uint8_t source;      /* READ: weft_instr_kind */
    uint8_t ct;          /* of out (of a for WRITE, CHECK) */
    uint8_t dtype;       /* READ, WRITE: of the buffer */
    uint8_t expensive;   /* CALC of f32: expensive, or treated as such; it is done in slices, and lines are
                       fetched   between them */
    uint8_t slices;      /* CALC of f32: may be done in slices */
    uint8_t fixed;       /* CALC of f32: bits of the operands a, b, c that are one element */
    uint8_t pairs;       /* CALC: may be merged with another step, as weft_pair `pair` */
    uint8_t pair;
    /* the same result for all tiles: runs only if a tile has more elements than all before it */
    uint8_t once;
    int slot, arg, access;
    weft_ref out, a, b, c;
    union {
        weft_tile_calc calc;
        weft_tile_spread spread;
        weft_tile_products products; /* DOT, FOLD */
    } fn;
    weft_tile_reduce reduce;
    weft_tile_join join;
    struct {
        uint8_t ct; /* of the index a */
        int access; /* that reads the index, for the fault report; -1: computed */
        int64_t pitch, bound;
    } gather;
    int64_t group; /* ADD, FOLD: parts that are added in sequence before the sum moves up one level */
    int64_t bytes; /* KEEP: size of one chunk; ADD, FOLD, DONE: size of one vector of the accumulator */
} weft_step;

/* Dimensions first .. first + count - 1 of the plan. Dimensions outside `split` have one index at a time,
 * `split` has `chunk` indices, and dimensions inside it have all their indices. */
typedef struct weft_nest {
    int first, count, split;
    int single;            /* dimensions before it always have one index at a time */
    int64_t chunk, chunks; /* indices of the split dimension in one chunk; number of its chunks */
    int64_t inner;         /* product of the extents inside the split dimension */
    int64_t max;           /* chunk * inner: the most indices of a tile */
    int64_t tiles, total;
} weft_nest;

typedef struct weft_range {
    int begin, end; /* steps */
} weft_range;

typedef struct weft_phase {
    weft_range before, chunk; /* run once for each tile; run once for each chunk */
} weft_phase;

/* Memory that the next tile reads or writes; with columns, the next chunk. It is fetched while this tile is
 * computed. Hardware prefetchers stop at the end of a page, and a tile is about as long as a page. */
typedef struct weft_ahead {
    int arg, access;
    bool written;
    int64_t size, bytes, lines; /* size of an element; bytes to the next piece; cache lines of a piece */
} weft_ahead;
#define WEFT_AHEAD_MOST 8
#define WEFT_AHEAD_SLICE                                                                                     \
    128 /* elements of an expensive function between fetches; few fetches can be in flight */

typedef struct weft_kernel_plan {
    const weft_tiles *tiles;
    const char *path;
    int64_t extent[WEFT_DIMS];
    weft_nest parallel, reduction;
    int64_t tiles_a_block;  /* number of tiles in a task; 1 without folds */
    int64_t last_rows;      /* rows of the last block if it has fewer than the others; else 0 */
    weft_phase open, close; /* lists before the first tile of a block and after the last one */
    bool folds;
    bool plain;   /* one tile and nothing to fetch ahead: steps need no further checks */
    bool columns; /* layout of FULL values: parallel indices run fastest */
    int n_steps, n_accesses, n_phases, n_bases;
    weft_step *steps;
    weft_access *accesses;
    weft_phase *phases;
    char *consts; /* 8 bytes each */
    struct {
        int count;
        int64_t lines; /* of each piece, to fetch before each step or slice */
        int64_t end;   /* the most lines of any piece */
        weft_ahead list[WEFT_AHEAD_MOST];
    } ahead;
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
    int64_t ordinal; /* number of the reduction chunk */
    bool fresh;      /* more elements than in any tile before: steps marked `once` run */
    struct {         /* for the next tile: lines of each piece already fetched, and where the pieces begin */
        int64_t at;
        const char *from[WEFT_AHEAD_MOST];
    } ahead;
} weft_frame;

/* Returns the element number of an access at the tile's first index, without guards. */
static inline int64_t weft__access_offset(const weft_frame *f, const weft_access *x) {
    int64_t offset = x->offset;
    for (int i = 0; i < x->n_terms; i++) offset += f->start[x->terms[i].dim] * x->terms[i].stride;
    return offset;
}
static inline char *weft__ref(const weft_frame *f, weft_ref r) { return f->base[r.base] + r.offset; }

/* ---- kernel_plan.c: the index space ---- */

/* How dimensions of the kernel and the plan relate. Either neighbouring kernel dimensions outer..inner are
 * one dimension of the plan; extents of 1 do not count. Or one kernel dimension without guards is two
 * dimensions of the plan, and the outer one goes in steps of `step`. */
typedef struct weft_group {
    int outer, inner;
    int64_t scale; /* indices of the group for each index of `outer` */
    int64_t step;  /* indices of `inner` for each index of the group */
    bool part;     /* the group is one half of a divided dimension */
} weft_group;

typedef struct weft_geometry {
    weft_group group[WEFT_DIMS];
    weft_kernel_plan *plan;
    const weft_kernel *kernel;
    const weft_operand *places; /* of the kernel's arguments; NULL: no two of them share memory */
} weft_geometry;

/* ---- kernel_access.c ---- */
void weft__access_make(const weft_geometry *g, const weft_view *view, int level, weft_access *out);
/* Runs a READ step (of any source) or a WRITE step. */
void weft__access_run(const weft_frame *f, const weft_step *s);

/* ---- kernel_steps.c ---- */
weft_status weft__steps_make(weft_context *ctx, const weft_geometry *g, double *cost_ns);

/* ---- kernel_run.c: the run function of a weft_cpu_work ---- */
void weft__plan_run(const void *plan, void *const *args, int64_t begin, int64_t end, void *scratch,
                    weft_fault *fault);
/* Returns the size in bytes of an accumulator for vectors of `bytes` bytes and at most `parts` parts. */
size_t weft__accumulator_bytes(int64_t bytes, int64_t parts, int64_t group);

#endif
