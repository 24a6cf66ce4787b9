/* Attention for the GPU backends: which kernels run, how the work is divided, and their arguments. Forward is
 * one launch, or two if work-groups share the keys of few queries. Backward is two launches; the second one
 * needs sums of the first.
 * Must not know: how launches run. Read next: attention_items.cl, attention_tensor.cl (tensor
 * cores). */
#include <limits.h>
#include <stdio.h>

#include "base/text.h"
#include "device/gpu/heavy/attention/attention_params.h"
#include "device/gpu/heavy/heavy.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

#define CHANNELS_MAX      256
#define REGISTER_CHANNELS 64    /* of a head whose work-items have four rows each */
#define ROWS_FEW          8     /* with fewer rows, each query has a work-group of its own */
#define GROUPS_MAX        65535 /* of the second dimension */

/* For single queries on cards: number of work-groups wanted, and the fewest keys of a work-group. */
enum { GROUPS_WANTED = 256, KEYS_LEAST = 128 };

/* With work-items: rows of a work-group, rows of the blocks that it walks over, and rows of a work-item. Four
 * rows for each work-item need fewer reads of local memory, if there are enough registers. They also double
 * the code, so processors that run work-items take two: their compilers are slow. */
typedef struct tile {
    int rows, others, high;
} tile;
static const tile tiles[] = {{64, 32, 4}, {32, 32, 4}, {32, 32, 2}, {16, 16, 2},
                             {16, 8, 2},  {8, 8, 2},   {8, 4, 2}};

/* With tensor cores or matrix cores, for heads of up to 32, 64, 96 and 128 channels, as registers allow:
 * 16-row blocks of a warp, and rows of the other operand in one step; 0: there are too few registers. `steps`
 * is the number of steps in local memory at once, `bytes` their size. */
typedef struct core {
    int rows, others, steps, bytes;
} core;
enum { CORE_KINDS = 3, CORE_ROOMS = 4 };
static const struct {
    int rows, others;
} cores[CORE_KINDS][2][CORE_ROOMS] = {
    /* NVIDIA, and AMD with wavefronts of 64 lanes and of 32; each forward, and then backward */
    {{{2, 64}, {2, 64}, {2, 32}, {2, 32}}, {{2, 32}, {2, 32}, {1, 32}, {1, 32}}},
    {{{2, 64}, {2, 64}, {2, 32}, {2, 32}}, {{2, 32}, {2, 32}, {1, 32}, {1, 32}}},
    {{{1, 64}, {1, 64}, {1, 32}, {1, 32}}, {{1, 32}, {1, 16}}}};
enum {
    CORE_CHANNELS = 128,
    CORE_WARPS = 4,
    CORE_LOCAL = 48 << 10,
    LOCAL_OF_GROUP = 1 << 10 /* local memory that the driver takes for each work-group */
};

static int core_kind(const weft_target *target) {
    return target->matrix_lanes == 64 ? 1 : target->matrix_lanes == 32 ? 2 : 0;
}

/* Returns whether tensor cores, or AMD's matrix cores, are used. For a single query they would compute
 * sixteen. */
static bool on_cores(const weft_target *target, const weft_heavy_attention *at) {
    const int least = at->dtype == WEFT_F16 ? 75 : at->dtype == WEFT_BF16 ? 80 : INT_MAX;
    return (target->capability >= least || (target->matrix_lanes && least < INT_MAX)) &&
           target->local_bytes >= CORE_LOCAL && at->d <= CORE_CHANNELS && at->d > 0 &&
           cores[core_kind(target)][at->backward][(at->d - 1) / 32].rows > 0 && at->scale > 0 &&
           (at->backward || at->t_q >= ROWS_FEW);
}

static int core_rows(const core *c) { return CORE_WARPS * 16 * c->rows; }

static int core_bytes(const core *c, const weft_heavy_attention *at, int steps) {
    const int row = (int)weft__ceil_div(at->d, 32) * 64;
    return row * (at->backward ? 2 * core_rows(c) + 2 * steps * c->others : core_rows(c) + 2 * c->others);
}

/* Chooses the tile. Two blocks of rows for each warp are faster if all units still have work, and if
 * registers are left; random numbers take many. Backward, the next step is loaded during the current one if
 * two work-groups then still fit in local memory. Registers allow no more work-groups. The bits are the same
 * for every tile. */
static core core_of(const weft_target *target, const weft_heavy_attention *at) {
    const int64_t room = (at->d - 1) / 32;
    const int kind = core_kind(target);
    core c = {.rows = cores[kind][at->backward][room].rows, .others = cores[kind][at->backward][room].others};
    const int64_t length = weft__smaller(at->t_q, at->t_k), rows = CORE_WARPS * 16 * 2;
    if (at->batch * at->heads * (length / rows) < target->units || at->dropout > 0) c.rows = 1;
    c.bytes = core_bytes(&c, at, 2);
    c.steps = c.bytes <= CORE_LOCAL || 2 * (c.bytes + LOCAL_OF_GROUP) <= target->most_local_bytes ? 2 : 1;
    c.bytes = core_bytes(&c, at, c.steps);
    return c;
}

/* Returns the number of channels in memory: a power of two, at least 32. */
static int room_of(const weft_heavy_attention *at) {
    int room = 32;
    while (room < at->d) room *= 2;
    return room;
}

/* Returns the work-items of a work-group. At most eight share a row. */
static int items_of(const weft_target *target, const tile *t) {
    return (int)weft__smaller(target->lanes, t->rows / t->high * weft__smaller(8, t->others));
}

static bool gpu_attention_fits(const weft_target *target, const weft_heavy_attention *at, const tile *t) {
    const int64_t row = room_of(at) + 4, size = at->dtype == WEFT_F64 ? 8 : 4;
    const int items = items_of(target, t);
    const int64_t rows = at->backward ? 2 * (t->rows + t->others) : t->rows + t->others;
    const int64_t drawn = at->dropout > 0 ? t->rows * t->others / 4 : 0;
    if (t->high * items < t->rows) return false;
    return (rows * row + t->rows * (t->others + 8) + t->high * items) * size + drawn <= target->local_bytes;
}

/* Returns the first tile that local memory and registers can hold and that leaves no unit without work. If
 * there is none, returns the tile with the same `others` that has the most work-groups and work-items.
 * Returns NULL if no tile fits. */
static const tile *tile_of(const weft_target *target, const weft_heavy_attention *at) {
    const tile *first = NULL;
    const int64_t length = weft__smaller(at->t_q, at->t_k);
    for (size_t i = 0; i < sizeof tiles / sizeof *tiles; i++) {
        const tile *t = &tiles[i];
        if (t->high > 2 &&
            (target->on_processor || at->dtype == WEFT_F64 || at->d > REGISTER_CHANNELS || at->dropout > 0))
            continue;
        if (!gpu_attention_fits(target, at, t)) continue;
        if (first && t->others != first->others) break;
        if (at->batch * at->heads * weft__ceil_div(length, t->rows) >= target->units) return t;
        if (!first || t->rows <= first->rows) first = t;
    }
    return first;
}

bool weft__gpu_attention_takes(const weft_target *target, const weft_heavy_attention *at) {
    if (!weft__gpu_knows(target, (weft_dtype)at->dtype) || !weft_dtype_is_float((weft_dtype)at->dtype))
        return false;
    if (at->d > CHANNELS_MAX || at->t_q > INT_MAX / 2 || at->t_k > INT_MAX / 2) return false;
    /* other devices use the expansion then */
    if (target->dialect != WEFT_DIALECT_CUDA && at->batch * at->heads > GROUPS_MAX) return false;
    return tile_of(target, at) != NULL;
}

/* ---- kernel sources ---- */

typedef struct plan {
    weft_launches *launches;
    const weft_heavy_attention *at;
    weft_dtype dtype, sum;
    bool sink, cores;
    int room, items, rows; /* rows of a work-group */
    int shared_bytes;
    int64_t pairs, scratch; /* bytes */
    const char *source;
} plan;

/* Writes the definitions of this template; they follow those of all templates. */
static void head_items(plan *p, weft_text *to) {
    const tile *t = tile_of(p->launches->target, p->at);
    p->items = items_of(p->launches->target, t);
    p->rows = t->rows;
    weft__put(to,
              "#undef ITEMS\n#define ITEMS %d\n#define S4 %s4\n#define BR %d\n#define BC %d\n#define TPR "
              "%d\n#define HIGH %d\n%s",
              p->items, p->sum == WEFT_F64 ? "double" : "float", t->rows, t->others,
              t->high * p->items / t->rows, t->high, weft__source_attention_common);
}

static void head_cores(plan *p, weft_text *to) {
    const core c = core_of(p->launches->target, p->at);
    p->items = CORE_WARPS * (p->launches->target->matrix_lanes ? p->launches->target->matrix_lanes : 32);
    p->rows = core_rows(&c);
    p->shared_bytes = c.bytes > CORE_LOCAL ? c.bytes : 0;
    weft__put(to, "#undef ITEMS\n#define ITEMS %d\n#define MT %d\n#define BC %d\n#define STEPS %d\n%s%s",
              p->items, c.rows, c.others, c.steps, p->shared_bytes ? "#define MORE\n" : "",
              weft__source_attention_common);
}

/* Writes the definitions for a mask. MASK is the type of its elements. With MASK_BOOL, true marks visible
 * keys. Otherwise the mask is added to the scores. In a kernel's arguments the mask follows the key. Its
 * start is among the operands' offsets. */
static void head_mask(const weft_heavy_attention *at, weft_text *to) {
    const bool added = at->mask_dtype != WEFT_BOOL;
    if (!at->masked) {
        weft__put(to, "#define MASK_OPERAND\n#define MASK_ORIGIN\n");
        return;
    }
    weft__put(
        to,
        "#define MASK %s\n%s#define MASK_OPERAND const W_GLOBAL MASK *mask,\n#define MASK_ORIGIN mask_at,\n",
        added ? "S" : "uchar", added ? "" : "#define MASK_BOOL\n");
}

static weft_status make_source(plan *p) {
    const bool wide = p->sum == WEFT_F64;
    char head[8192];
    weft_text to = weft__text(head, sizeof head);
    head_mask(p->at, &to);
    p->cores = on_cores(p->launches->target, p->at);
    p->room = p->cores ? (int)weft__ceil_div(p->at->d, 32) * 32 : room_of(p->at);
    weft__put(&to, "#define D %d\n#define EXP w_exp_%s\n#define LOG w_log_%s\n%s%s", p->room,
              wide ? "f64" : "f32", wide ? "f64" : "f32", p->at->dropout > 0 ? "#define DROPOUT\n" : "",
              p->at->backward ? "#define BACKWARD\n" : "");
    if (p->cores)
        head_cores(p, &to);
    else
        head_items(p, &to);
    p->source = weft__gpu_template_source(
        p->launches, p->dtype, head, p->cores ? weft__source_attention_tensor : weft__source_attention_items);
    return p->source ? WEFT_OK
                     : weft__fail_oom(p->launches->ctx, sizeof head, "the kernel source of an attention");
}

/* ---- launches ---- */

_Static_assert(sizeof(w_attention) == 30 * 8 + 10 * 4, "no padding");

/* The operands are those of heavy/attention.h. */

enum { ARGUMENTS_MAX = 32 };
typedef struct arguments {
    weft_argument list[ARGUMENTS_MAX];
    int n;
} arguments;

/* Short names of the operands, for lists of them. */
enum {
    Q = WEFT_ATTENTION_Q,
    K = WEFT_ATTENTION_K,
    V = WEFT_ATTENTION_V,
    KEY = WEFT_ATTENTION_KEY,
    OUT = WEFT_ATTENTION_OUT,
    LSE = WEFT_ATTENTION_LSE,
    DOUT = WEFT_ATTENTION_DOUT,
    DQ = WEFT_ATTENTION_DQ,
    DK = WEFT_ATTENTION_DK,
    DV = WEFT_ATTENTION_DV,
    END = -1
};
#define LIST(...) ((const int[]){__VA_ARGS__, END})

static void gpu_attention_add(arguments *to, weft_argument argument) { to->list[to->n++] = argument; }

/* Adds operands in the order of a list. A mask follows the key. */
static void gpu_attention_operands(arguments *to, const plan *p, const int *which, bool written) {
    const int mask = p->at->masked;
    for (; *which != END; which++) {
        const int i = *which;
        const weft_dtype dtype = i == KEY ? WEFT_I32 : i == LSE ? p->sum : p->dtype;
        gpu_attention_add(to, (weft_argument){.kind = WEFT_ARGUMENT_OPERAND,
                                              .index = weft__attention_operand(p->at, i),
                                              .dtype = (uint8_t)dtype,
                                              .written = written});
        if (i == KEY && mask)
            gpu_attention_add(to, (weft_argument)READS(weft__attention_operand(p->at, WEFT_ATTENTION_MASK),
                                                       p->at->mask_dtype));
    }
}

static void gpu_attention_number(arguments *to, const plan *p, double v) {
    gpu_attention_add(to, p->sum == WEFT_F64 ? (weft_argument){.kind = WEFT_ARGUMENT_F64, .f = v}
                                             : (weft_argument)F32(v));
}

static void scratch(arguments *to, const plan *p) {
    gpu_attention_add(to, (weft_argument)SCRATCH(0, (uint8_t)p->sum));
}

static w_strides strides(const int64_t of[3]) { return (w_strides){of[0], of[1], of[2]}; }

static w_attention gpu_attention_numbers_of(const plan *p, int64_t parts, int64_t length) {
    const weft_heavy_attention *at = p->at;
    w_attention to = {.q = strides(at->q),
                      .k = strides(at->k),
                      .v = strides(at->v),
                      .out = strides(at->out),
                      .heads = at->heads,
                      .pairs = p->pairs,
                      .query_group = (int32_t)weft__query_group(at),
                      .t_q = (int32_t)at->t_q,
                      .t_k = (int32_t)at->t_k,
                      .d = (int32_t)at->d,
                      .parts = (int32_t)parts,
                      .length = (int32_t)length,
                      .causal = at->causal,
                      .cached = at->cached,
                      .sink = p->sink};
    if (at->masked)
        to.mask_b = at->mask[0], to.mask_h = at->mask[1], to.mask_t = at->mask[2], to.mask_j = at->mask[3];
    if (!at->backward) return to;
    to.dout = strides(at->dout), to.dq = strides(at->dq);
    to.dk = strides(at->dk), to.dv = strides(at->dv);
    return to;
}

/* Adds the last arguments of all kernels, ATTENTION_NUMBERS. */
static void numbers(arguments *to, const plan *p, const w_attention *of) {
    gpu_attention_add(to, (weft_argument)STRUCT(*of));
    gpu_attention_number(to, p, p->at->scale);
    gpu_attention_number(to, p, p->at->dropout);
    gpu_attention_number(to, p, 1 / (1 - p->at->dropout));
    gpu_attention_add(to, (weft_argument)FAULT);
}

static weft_status gpu_attention_launch(const plan *p, const char *name, int64_t groups, arguments *list) {
    if (groups == 0 || p->pairs == 0) return WEFT_OK;
    const int64_t limit = p->launches->target->groups_most;
    const int64_t pairs = limit && p->pairs > limit ? limit : p->pairs; /* of the second dimension */
    unsigned prelude = WEFT_PRELUDE_LANES | WEFT_PRELUDE_F32 | weft__gpu_prelude(p->dtype);
    if (p->cores) prelude |= p->launches->target->matrix_lanes ? WEFT_PRELUDE_MATRIX : WEFT_PRELUDE_TENSOR;
    if (p->at->dropout > 0) prelude |= WEFT_PRELUDE_RANDOM;
    const weft_launch one = {.name = name,
                             .source = p->source,
                             .prelude = prelude,
                             .arguments = list->list,
                             .n_arguments = list->n,
                             .groups = {groups, pairs, weft__ceil_div(p->pairs, pairs)},
                             .items = {p->items, 1, 1},
                             .shared_bytes = p->shared_bytes};
    return weft__launch(p->launches, &one);
}

/* Forward for few queries. Each query has a work-group. If that leaves units without work, several
 * work-groups share the keys. The shape alone decides, since this determines the order of additions. */
static weft_status forward_rows(const plan *p) {
    const weft_heavy_attention *at = p->at;
    const int64_t rows = p->pairs * at->t_q, wanted = weft__ceil_div(GROUPS_WANTED, weft__larger(1, rows));
    const int64_t blocks = weft__larger(1, weft__ceil_div(at->t_k, KEYS_LEAST));
    const int64_t length = weft__ceil_div(blocks, wanted) * KEYS_LEAST,
                  parts = weft__ceil_div(blocks * KEYS_LEAST, length);
    p->launches->scratch_bytes = (rows * parts + 1) * (p->room + 2) * (int64_t)weft_dtype_size(p->sum);
    const w_attention of = gpu_attention_numbers_of(p, parts, length);
    arguments to = {.n = 0}, join = {.n = 0};
    gpu_attention_operands(&to, p, LIST(Q, K, V, KEY), false);
    gpu_attention_operands(&to, p, LIST(OUT, LSE), true);
    scratch(&to, p);
    numbers(&to, p, &of);
    WEFT_TRY(gpu_attention_launch(p, "attention_row", at->t_q * parts, &to));
    if (parts == 1) return WEFT_OK;
    scratch(&join, p);
    gpu_attention_operands(&join, p, LIST(OUT, LSE), true);
    numbers(&join, p, &of);
    return gpu_attention_launch(p, "attention_join", at->t_q, &join);
}

static weft_status forward(const plan *p) {
    if (p->at->t_q < ROWS_FEW) return forward_rows(p);
    const w_attention of = gpu_attention_numbers_of(p, 1, p->at->t_k);
    arguments to = {.n = 0};
    gpu_attention_operands(&to, p, LIST(Q, K, V, KEY), false);
    gpu_attention_operands(&to, p, LIST(OUT, LSE), true);
    numbers(&to, p, &of);
    return gpu_attention_launch(p, "attention", weft__ceil_div(p->at->t_q, p->rows), &to);
}

static weft_status backward(const plan *p) {
    const weft_heavy_attention *at = p->at;
    p->launches->scratch_bytes = (p->pairs * at->t_q + 1) * (int64_t)weft_dtype_size(p->sum);
    const w_attention of = gpu_attention_numbers_of(p, 1, at->t_k);
    arguments to = {.n = 0}, last = {.n = 0};
    gpu_attention_operands(&to, p, LIST(Q, K, V, KEY, OUT, LSE, DOUT), false);
    gpu_attention_operands(&to, p, LIST(DQ), true);
    scratch(&to, p);
    numbers(&to, p, &of);
    WEFT_TRY(gpu_attention_launch(p, "attention_dq", weft__ceil_div(at->t_q, p->rows), &to));
    gpu_attention_operands(&last, p, LIST(Q, K, V, KEY, LSE, DOUT), false);
    gpu_attention_operands(&last, p, LIST(DK, DV), true);
    scratch(&last, p);
    numbers(&last, p, &of);
    return gpu_attention_launch(p, "attention_dkv", weft__ceil_div(at->t_k, p->rows), &last);
}

weft_status weft__gpu_attention(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_attention *at = &heavy->as.attention;
    plan p = {.launches = launches,
              .at = at,
              .dtype = (weft_dtype)at->dtype,
              .sum = weft__gpu_sum_dtype((weft_dtype)at->dtype),
              .sink = sink,
              .pairs = at->batch * at->heads};
    if (p.pairs == 0 || at->d == 0) return WEFT_OK;
    WEFT_TRY(make_source(&p));
    return at->backward ? backward(&p) : forward(&p);
}
