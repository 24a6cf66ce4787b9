/* The queue of checks. Case files record results; this file evaluates many of them in one program, compares
 * them with the expected values, and writes the record.
 *
 * Compiling one kernel takes a tenth of a second. So on a GPU backend the checks of one sample, which differ
 * in dtype, form a group that one kernel computes. Some groups are chosen, and run in programs of 50 kernels
 * or more. The other groups are spare: a spare group is computed only if the device has already compiled its
 * kernels. Read next: test_ops.c, which runs the table of ops. */
#include <stdarg.h>
#include "device/gpu/backend/hooks.h"
#include "graph/graph.h"
#include "heavy/heavy.h"
#include "ops/matrix.h"

enum {
    FAILURES_SHOWN = 200,
    FLUSHED_CELLS = 32,
    GROUP_CELLS = OPS_DTYPES,
    PROGRAM_GROUPS = 50,
    KEPT_BYTES = 256 << 20
};

typedef struct check {
    const char *op, *sample;
    weft_dtype column;
    weft_tensor *got;
    const array *want;
    tolerance how;
    uint64_t key;          /* of what the checks of its group have in common */
    int first, next, last; /* checks of its group: the first, the next or -1; in the first check, the last */
    int size;              /* of the group, in its first check */
    bool spare;            /* in the first check: the group is not chosen */
    char *data;            /* computed values */
} check;

typedef struct block {
    struct block *next;
} block;

/* How far a result is off, for the record. */
typedef struct verdict {
    double ratio, ulps; /* worst error / bound; worst error in ulps */
    int64_t at;         /* element with the worst ratio */
    long nans, infinities;
    real got, want;
} verdict;

void *ops_alloc(matrix *m, size_t bytes) {
    block *b = calloc(1, sizeof(max_align_t) + bytes);
    if (!b) {
        fprintf(stderr, "ops: out of memory\n");
        exit(1);
    }
    b->next = m->blocks;
    m->blocks = b;
    m->bytes += bytes;
    return (char *)b + sizeof(max_align_t);
}

const char *ops_text(matrix *m, const char *fmt, ...) {
    char text[200], *copy;
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    copy = ops_alloc(m, strlen(text) + 1);
    return strcpy(copy, text);
}

const char *shape_text(matrix *m, shape s) {
    char text[100] = "[";
    size_t at = 1;
    for (int i = 0; i < s.rank; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%lld", i ? "x" : "", (long long)s.dim[i]);
    return ops_text(m, "%s]", text);
}

/* ---- one element ---- */

static double ulps_allowed(const matrix *m, tolerance how, weft_dtype dtype) {
    static const struct {
        double f32, gpu, f64, half;
    } table[] = {
#define ROW(name, f32, gpu, f64, half, what) {f32, gpu, f64, half},
        TOLERANCE_LIST(ROW)
#undef ROW
    };
    if (dtype == WEFT_F64) return table[how].f64;
    if (dtype != WEFT_F32) return table[how].half;
    return m->gpu ? table[how].gpu : table[how].f32;
}

/* got - want|. An infinity counts as the power of two after the largest number. NaN if only one of them is
 * NaN or infinite. */
static real distance(weft_dtype dtype, real got, real want, verdict *v) {
    real top = ldexpl(1, format_of(dtype).emax + 1);
    if (isnan(want) || isnan(got)) {
        if (isnan(want) && isnan(got)) return 0;
        v->nans++;
        return NAN;
    }
    if (isinf(want) && want != got) {
        v->infinities++;
        return NAN;
    }
    if (isinf(got)) got = copysignl(top, got);
    if (fabsl(want) > top) want = copysignl(top, want);
    return fabsl(got - want);
}

static double float_ratio(const matrix *m, tolerance how, const array *want, int64_t k, real got,
                          verdict *v) {
    weft_dtype dtype = want->dtype;
    real w = want->f[k], error = distance(dtype, got, w, v);
    if (isnan(error)) return HUGE_VAL;
    double ulps = (double)(error / ulp_of(dtype, w)), allowed = ulps_allowed(m, how, dtype);
    if (ulps > v->ulps) v->ulps = ulps;
    if (how == TOLERANCE_GIVEN) return error == 0 ? 0 : (double)(error / want->bound[k]);
    if (how == TOLERANCE_COPY && !isnan(w) && signbit(got) != signbit(w)) return HUGE_VAL;
    if (allowed == 0) return error == 0 ? 0 : HUGE_VAL;
    return ulps / (allowed + 0x1p-9); /* the reference itself is rounded to 64 bits */
}

static real decode(weft_dtype dtype, const char *data, int64_t k) {
    float f;
    double d;
    uint16_t h;
    switch (dtype) {
    case WEFT_F32: memcpy(&f, data + 4 * k, sizeof f); return (real)f;
    case WEFT_F64: memcpy(&d, data + 8 * k, sizeof d); return (real)d;
    default: break;
    }
    memcpy(&h, data + 2 * k, sizeof h);
    return (real)(dtype == WEFT_F16 ? weft_f16_to_f32(h) : weft_bf16_to_f32(h));
}

static int64_t decode_integer(weft_dtype dtype, const char *data, int64_t k) {
    int64_t v = 0;
    uint32_t u32;
    uint16_t u16;
    switch (weft_dtype_size(dtype)) {
    case 8: memcpy(&v, data + 8 * k, sizeof v); break;
    case 4:
        memcpy(&u32, data + 4 * k, sizeof u32);
        v = u32;
        break;
    case 2:
        memcpy(&u16, data + 2 * k, sizeof u16);
        v = u16;
        break;
    default:
        return dtype == WEFT_I8 ? (signed char)data[k]
                                : (unsigned char)data[k]; /* shows a bool that is neither 0 nor 1 */
    }
    return wrap(dtype, v);
}

static verdict compare(const matrix *m, const check *c, const char *data) {
    verdict v = {0};
    for (int64_t k = 0; k < c->want->n; k++) {
        real got, want;
        double ratio;
        if (c->want->f) {
            got = decode(c->want->dtype, data, k);
            want = c->want->f[k];
            ratio = float_ratio(m, c->how, c->want, k, got, &v);
        } else {
            int64_t g = decode_integer(c->want->dtype, data, k), w = c->want->i[k];
            got = (real)g;
            want = (real)w;
            ratio = g == w ? 0 : HUGE_VAL;
        }
        if (ratio > v.ratio || !(ratio == ratio)) {
            v.ratio = ratio == ratio ? ratio : HUGE_VAL;
            v.at = k;
            v.got = got;
            v.want = want;
        }
    }
    return v;
}

/* ---- checks ---- */

static void failed(matrix *m, const char *op, weft_dtype column, const char *sample, const char *why) {
    if (m->sources) return;
    if (m->failures++ < FAILURES_SHOWN)
        printf("FAIL %s %s %s %s: %s\n", op, weft_dtype_name(column), m->device, sample, why);
}

static void record(matrix *m, const char *op, weft_dtype column, const char *sample, const char *kind,
                   int64_t n, const verdict *v) {
    m->cells++;
    if (m->record)
        fprintf(m->record, "%s\t%s\t%s\t%s\t%s\t%lld\t%.3g\t%.3g\t%lld\t%ld\t%ld\n", op,
                weft_dtype_name(column), m->device, kind, sample, (long long)n, v->ulps, v->ratio,
                (long long)v->at, v->nans, v->infinities);
    if (v->ratio > m->worst) m->worst = v->ratio;
}

void ops_refused(matrix *m, const char *op, weft_dtype column, const char *sample, weft_tensor *got,
                 weft_status status) {
    weft_status is = weft_tensor_status(got);
    bool named = strstr(weft_last_error(got ? m->ctx : NULL), ": ") != NULL;
    if (is != status)
        failed(m, op, column, sample,
               ops_text(m, "%s where %s is due", weft_status_name(is), weft_status_name(status)));
    else if (!named)
        failed(m, op, column, sample, "the message names no op");
    record(m, op, column, sample, "refused", 0, &(verdict){.ratio = is == status && named ? 0 : HUGE_VAL});
}

void ops_hold(matrix *m, const char *op, weft_dtype column, const char *sample, bool holds) {
    if (!holds) failed(m, op, column, sample, "does not hold");
    record(m, op, column, sample, "value", 1, &(verdict){.ratio = holds ? 0 : HUGE_VAL});
}

static uint64_t hash_of(uint64_t h, const char *text) {
    for (const char *s = text; *s; s++) h = (h ^ (unsigned char)*s) * 0x100000001b3;
    return h;
}

bool ops_drawn(const matrix *m, const char *op, weft_dtype column, const char *sample, unsigned rarity) {
    const uint64_t h = hash_of(0x9e3779b97f4a7c15 * (m->seed + (unsigned)column), op);
    return (hash_of(h, sample) >> 40) % rarity == 0;
}

/* Is the result computed by element or by row, in a kernel that can compute other results too? Movement ops
 * have one kernel source for all dtypes of a size anyway. Heavy operations have kernels of their own. */
bool ops_joins(const weft_tensor *got) {
    switch ((weft_op)got->op) {
    case WEFT_OP_INPUT:
    case WEFT_OP_CONST:
    case WEFT_OP_IOTA:
    case WEFT_OP_RANDOM:
    case WEFT_OP_RESHAPE:
    case WEFT_OP_PERMUTE:
    case WEFT_OP_EXPAND:
    case WEFT_OP_PAD:
    case WEFT_OP_SLICE:
    case WEFT_OP_DETACH:
    case WEFT_OP_PACK: return false;
    default: return !got->leaf && weft__heavy_of_op(got->op) == WEFT_HEAVY_NONE;
    }
}

static bool same_shape(const array *a, const array *b) {
    return a->s.rank == b->s.rank && memcmp(a->s.dim, b->s.dim, (size_t)a->s.rank * sizeof *a->s.dim) == 0;
}

/* Puts c, the last check of the queue, into the group of its sample if that group is not full. */
static void enter_group(matrix *m, check *c) {
    const int at = (int)(c - m->queue);
    c->first = c->last = at;
    c->next = -1;
    c->size = 1;
    c->spare = m->gpu;
    for (int i = at - 1; m->gpu && !m->unfused && ops_joins(c->got) && i >= 0; i--) {
        check *first = &m->queue[m->queue[i].first];
        if (first->key != c->key) continue;
        if (first->size == GROUP_CELLS || !ops_joins(first->got) || !same_shape(first->want, c->want)) return;
        m->queue[first->last].next = at;
        first->last = at;
        first->size++;
        c->first = m->queue[i].first;
        return;
    }
}

/* Is the check spare? Chosen are the first check of some size of each dtype, and one group in RARITY by the
 * seed. */
static bool is_spare(matrix *m, const check *c) {
    enum { RARITY = 200, SOME_SIZE = 16 };
    const uint32_t bit = 1U << c->column;
    if (!m->gpu || c->got->leaf) return false;
    const bool first = c->want->n >= SOME_SIZE && !(m->met & bit);
    if (first) m->met |= bit;
    const bool begins = &m->queue[c->first] == c;
    return !first && !(begins && ops_drawn(m, c->op, c->column, c->sample, RARITY));
}

void ops_check(matrix *m, const char *op, weft_dtype column, const char *sample, weft_tensor *got,
               array *want, tolerance how) {
    weft_status status = weft_tensor_status(got);
    const char *why = NULL;
    bool same = status == WEFT_OK && weft_rank(got) == want->s.rank;
    for (int i = 0; same && i < want->s.rank; i++) same = weft_dim(got, i) == want->s.dim[i];
    if (status != WEFT_OK)
        why = ops_text(m, "refused: %s", weft_last_error(got ? m->ctx : NULL));
    else if (!same)
        why = ops_text(m, "wrong shape, %s is due", shape_text(m, want->s));
    else if (weft_dtype_of(got) != want->dtype)
        why = ops_text(m, "%s, %s is due", weft_dtype_name(weft_dtype_of(got)), weft_dtype_name(want->dtype));
    if (why) {
        failed(m, op, column, sample, why);
        record(m, op, column, sample, "value", want->n, &(verdict){.ratio = HUGE_VAL});
        return;
    }
    if (m->queued == m->capacity) {
        m->capacity = m->capacity ? 2 * m->capacity : 64;
        m->queue = realloc(m->queue, (size_t)m->capacity * sizeof *m->queue);
        if (!m->queue) abort();
    }
    check *c = &m->queue[m->queued++];
    *c = (check){.op = op, .sample = sample, .column = column, .got = got, .want = want, .how = how};
    c->key = m->group ? hash_of(0, m->group) : hash_of(hash_of(0, op), sample);
    enter_group(m, c);
    check *first = &m->queue[c->first];
    const bool spare = is_spare(m, c);
    m->chosen += first->spare && !spare && !got->leaf;
    first->spare = first->spare && spare;
}

/* ---- computing ---- */

static size_t bytes_of(const check *c) { return (size_t)c->want->n * weft_dtype_size(c->want->dtype); }

static void not_computed(matrix *m, const check *c, const char *why) {
    failed(m, c->op, c->column, c->sample, why);
    record(m, c->op, c->column, c->sample, "value", c->want->n, &(verdict){.ratio = HUGE_VAL});
}

static void settle(matrix *m, check *c) {
    c->data = ops_alloc(m, bytes_of(c) + 1);
    if (weft_read(c->got, c->data, bytes_of(c)) != WEFT_OK) {
        not_computed(m, c, weft_last_error(m->ctx));
        return;
    }
    verdict v = compare(m, c, c->data);
    if (v.ratio > 1)
        failed(m, c->op, c->column, c->sample,
               ops_text(m, "element %lld is %.17Lg, not %.17Lg: %.3g times the bound", (long long)v.at, v.got,
                        v.want, v.ratio));
    record(m, c->op, c->column, c->sample, "value", c->want->n, &v);
}

static void settle_again(matrix *m, const check *c) {
    char *data = ops_alloc(m, bytes_of(c) + 1);
    if (weft_read(c->got, data, bytes_of(c)) != WEFT_OK || memcmp(data, c->data, bytes_of(c)) != 0)
        failed(m, c->op, c->column, c->sample, "other bits when it ran again");
}

/* An extra output that joins the checks of a group into one kernel: for each element, whether any of the
 * results is not 0. */
static weft_tensor *witness(const matrix *m, int first) {
    weft_tensor *any = NULL;
    for (int i = first; i >= 0; i = m->queue[i].next) {
        weft_tensor *is = weft_cast(m->queue[i].got, WEFT_BOOL);
        any = any ? weft_or(any, is) : is;
    }
    return any;
}

/* Computes the groups that begin with list[0..n-1] in one program. On a GPU backend the program runs twice.
 * Returns false if it could not run. */
static bool together(matrix *m, const int *list, int n) {
    size_t cells = 0, count = 0;
    for (int i = 0; i < n; i++) cells += (size_t)m->queue[list[i]].size;
    weft_tensor **outputs = ops_alloc(m, (cells + (size_t)n) * sizeof(weft_tensor *));
    weft_program *program = NULL;
    for (int i = 0; i < n; i++) {
        for (int c = list[i]; c >= 0; c = m->queue[c].next)
            if (!m->queue[c].got->leaf) outputs[count++] = m->queue[c].got;
        if (m->queue[list[i]].size > 1) outputs[count++] = witness(m, list[i]);
    }
    weft_status status = WEFT_OK;
    if (!m->gpu)
        status = weft_eval(outputs, count);
    else if (count)
        status = weft_compile(outputs, count, NULL, NULL, 0, &program);
    if (status == WEFT_OK && program) status = weft_program_run(program);
    for (int i = 0; i < n && status == WEFT_OK; i++)
        for (int c = list[i]; c >= 0; c = m->queue[c].next) settle(m, &m->queue[c]);
    if (status == WEFT_OK && program) status = weft_program_run(program);
    for (int i = 0; i < n && status == WEFT_OK && program; i++)
        for (int c = list[i]; c >= 0; c = m->queue[c].next) settle_again(m, &m->queue[c]);
    weft_program_free(program);
    return status == WEFT_OK;
}

/* Computes one check without its group. */
static bool alone(matrix *m, int c) {
    m->queue[c].next = -1;
    m->queue[c].size = 1;
    return together(m, &c, 1);
}

/* Computes all chosen groups in one program. If the program fails, computes each check alone. */
static void compute_chosen(matrix *m) {
    int *list = ops_alloc(m, (size_t)m->queued * sizeof *list + 1), n = 0;
    for (int i = 0; i < m->queued; i++)
        if (m->queue[i].first == i && !m->queue[i].spare) list[n++] = i;
    if (n == 0 || together(m, list, n)) return;
    for (int i = 0; i < m->queued; i++)
        if (!m->queue[m->queue[i].first].spare && !alone(m, i))
            not_computed(m, &m->queue[i], weft_last_error(m->ctx));
}

/* A program that needs a new kernel source is refused here. This is not a failure. */
static void compute_spare(matrix *m) {
    if (m->sources) return;
    weft__gpu_hook.known_only = 1;
    for (int i = 0; i < m->queued; i++) {
        if (m->queue[i].first != i || !m->queue[i].spare) continue;
        int refused = weft__gpu_hook.refused;
        const int size = m->queue[i].size;
        if (together(m, &i, 1)) continue;
        if (weft__gpu_hook.refused > refused) {
            m->left_out += size;
            continue;
        }
        for (int c = i, next; c >= 0; c = next) {
            next = m->queue[c].next;
            refused = weft__gpu_hook.refused;
            if (alone(m, c)) continue;
            if (weft__gpu_hook.refused > refused)
                m->left_out++;
            else
                not_computed(m, &m->queue[c], weft_last_error(m->ctx));
        }
    }
    weft__gpu_hook.known_only = 0;
}

void ops_settle(matrix *m) {
    grad_settle(m);
    compute_chosen(m);
    compute_spare(m);
    m->queued = m->chosen = 0;
    if (m->scope) weft_scope_close(m->scope);
    m->scope = weft_scope_open(m->ctx);
    if (m->wide_scope) weft_scope_close(m->wide_scope);
    if (m->wide != m->ctx) m->wide_scope = weft_scope_open(m->wide);
    for (block *b = m->blocks, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    m->blocks = NULL;
    m->bytes = 0;
}

void ops_flush(matrix *m) {
    if (!m->gpu || m->bytes > KEPT_BYTES) ops_settle(m);
}

void ops_end(matrix *m) {
    if (m->chosen >= PROGRAM_GROUPS) ops_settle(m);
}

void ops_breathe(matrix *m) {
    if (m->queued > FLUSHED_CELLS) ops_flush(m);
}

bool ops_has_dtype(matrix *m, const char *op, weft_dtype dtype) {
    (void)op;
    if (weft_tensor_status(weft_full(m->ctx, dtype, 0, NULL, 0)) == WEFT_OK) return true;
    m->skipped++;
    return false;
}

/* ---- ops of one operand ---- */

static void check_unary(matrix *m, const unary_op *op, weft_dtype dtype, shape s, view_kind view,
                        generator gen) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, gen);
    const char *kind = gen == GEN_SPECIAL ? "specials" : view_name(view);
    ops_check(m, op->name, dtype, ops_text(m, "%s %s", kind, shape_text(m, s)), op->record(x.t, op->user),
              op->expect(m, x.h, op->user), op->how);
}

void ops_run_unary(matrix *m, const unary_op *op) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op->name, dtype)) continue;
        if (!accepts(op->accept, d)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            ops_refused(m, op->name, dtype, "dtype", op->record(x.t, op->user), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < ops_n_sizes; i++) check_unary(m, op, dtype, ops_sizes[i], VIEW_PLAIN, op->gen);
        for (int i = 0; i < ops_n_views; i++)
            for (int v = 1; v < VIEW_COUNT; v++)
                check_unary(m, op, dtype, ops_views[i], (view_kind)v, op->gen);
        check_unary(m, op, dtype, SHAPE(46), VIEW_PLAIN, GEN_SPECIAL);
        if (!m->slow && dtype == WEFT_F32 && (!m->gpu || ops_drawn(m, op->name, dtype, "", 8))) {
            /* large enough to use every thread */
            ops_flush(m);
            check_unary(m, op, dtype, SHAPE((1 << 20) + 3), VIEW_PLAIN, op->gen);
            ops_flush(m);
        }
    }
    ops_flush(m);
}
