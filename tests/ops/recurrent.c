/* Recurrent layers, computed step by step from the definitions, with an error bound for each state. Every
 * kind, both directions, with and without lengths, biases and initial states. The sizes cover few steps, many
 * sequences and odd widths, where devices use other kernels. */
#include "device.h"
#include "ops/grad.h"

typedef struct sample {
    const char *name;
    weft_recurrent_kind kind;
    int64_t t, b, h;
    bool reverse, masked, bare; /* bare: neither biases nor initial states */
} sample;

static const sample samples[] = {
    {"lstm", WEFT_LSTM, 6, 3, 5, false, false, false},
    {"lstm masked", WEFT_LSTM, 5, 4, 3, false, true, false},
    {"lstm reverse masked", WEFT_LSTM, 5, 4, 3, true, true, false},
    {"lstm step", WEFT_LSTM, 1, 2, 4, false, false, true},
    {"lstm wide", WEFT_LSTM, 9, 35, 50, true, false, false},
    {"lstm no batch", WEFT_LSTM, 5, 0, 4, false, false, false},
    {"gru", WEFT_GRU, 6, 3, 5, true, false, false},
    {"gru masked", WEFT_GRU, 5, 4, 3, false, true, false},
    {"gru bare", WEFT_GRU, 4, 2, 4, false, false, true},
    {"gru step", WEFT_GRU, 2, 2, 4, true, true, false},
    {"gru wide", WEFT_GRU, 7, 33, 37, false, true, false},
    {"tanh", WEFT_RNN_TANH, 6, 3, 5, false, false, false},
    {"tanh reverse masked", WEFT_RNN_TANH, 5, 4, 3, true, true, false},
    {"tanh wide", WEFT_RNN_TANH, 8, 17, 130, false, false, true},
    {"relu", WEFT_RNN_RELU, 5, 3, 5, true, false, false},
    {"relu step", WEFT_RNN_RELU, 1, 3, 5, false, true, false},
};

static int gates_of(weft_recurrent_kind kind) { return kind == WEFT_LSTM ? 4 : kind == WEFT_GRU ? 3 : 1; }

/* A number and its error bound. */
typedef struct about {
    real x, off;
} about;

static about squash(real u, about z, bool sigmoid) {
    about y = {sigmoid ? 1 / (1 + expl(-z.x)) : tanhl(z.x), 0};
    y.off = z.off * (sigmoid ? 0.25L : 1) + 8 * u * fabsl(y.x);
    return y;
}

static about times(real u, about a, about b) {
    about y = {a.x * b.x, 0};
    y.off = fabsl(a.x) * b.off + fabsl(b.x) * a.off + a.off * b.off + u * fabsl(y.x);
    return y;
}

static about plus(real u, about a, about b) {
    about y = {a.x + b.x, 0};
    y.off = a.off + b.off + u * (fabsl(a.x) + fabsl(b.x));
    return y;
}

/* The operands of one sample on the host. Biases and states are NULL if the sample is bare. */
typedef struct host {
    const array *x, *w, *b, *d, *h, *c, *lengths;
} host;

/* Row j of the recurrent matrix times h. */
static about product(const sample *o, const host *in, const about *h, int64_t j) {
    real size = 0;
    about z = {0, 0};
    for (int64_t k = 0; k < o->h; k++) {
        const real w = in->w->f[j * o->h + k];
        z.x += w * h[k].x;
        z.off += fabsl(w) * h[k].off;
        size += fabsl(w * h[k].x);
    }
    z.off += bound_sum(in->w->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32, o->h, size, z.x);
    return z;
}

/* Step t of sequence b updates h and c. */
static void step(const sample *o, const host *in, int64_t t, int64_t b, about *h, about *c) {
    const real u = roundoff_sum(in->x->dtype);
    const int64_t n = o->h, g = gates_of(o->kind) * n;
    about next[160];
    for (int64_t j = 0; j < n; j++) {
        about y[4];
        for (int k = 0; k < gates_of(o->kind); k++) {
            const int64_t at = k * n + j;
            const about x = {in->x->f[(t * o->b + b) * g + at], 0}, to_x = {in->b ? in->b->f[at] : 0, 0};
            const about to_z = {in->d ? in->d->f[at] : 0, 0}, z = plus(u, product(o, in, h, at), to_z);
            if (o->kind == WEFT_GRU && k == 2)
                y[k] = squash(u, plus(u, plus(u, x, to_x), times(u, y[0], z)), false);
            else
                y[k] = plus(u, plus(u, x, to_x), z);
            if (o->kind == WEFT_GRU && k < 2) y[k] = squash(u, y[k], true);
            if (o->kind == WEFT_LSTM) y[k] = squash(u, y[k], k != 2);
        }
        if (o->kind == WEFT_LSTM) {
            c[j] = plus(u, times(u, y[1], c[j]), times(u, y[0], y[2]));
            next[j] = times(u, y[3], squash(u, c[j], false));
        } else if (o->kind == WEFT_GRU) {
            const about minus = {-y[2].x, y[2].off};
            next[j] = plus(u, y[2], times(u, y[1], plus(u, h[j], minus)));
        } else {
            next[j] = o->kind == WEFT_RNN_TANH ? squash(u, y[0], false) : y[0];
            if (o->kind == WEFT_RNN_RELU && y[0].x < 0) next[j].x = 0;
        }
        next[j].off += bound_store(in->x->dtype, next[j].x); /* states are stored in the dtype */
    }
    memcpy(h, next, (size_t)n * sizeof *h);
}

static void put(array *to, int64_t at, about v) {
    to->f[at] = v.x;
    to->bound[at] = v.off + bound_store(to->dtype, v.x);
}

static array *result(matrix *m, weft_dtype dtype, shape s) {
    array *y = array_new(m, dtype, s);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    return y;
}

/* y (T, B, H), and the last h and c (B, H). */
static void expect(matrix *m, const sample *o, const host *in, array *out[3]) {
    const weft_dtype dtype = in->x->dtype;
    out[0] = result(m, dtype, SHAPE(o->t, o->b, o->h));
    for (int i = 1; i < 3; i++) out[i] = result(m, dtype, SHAPE(o->b, o->h));
    for (int64_t b = 0; b < o->b; b++) {
        about h[160], c[160];
        for (int64_t j = 0; j < o->h; j++) {
            h[j] = (about){in->h ? in->h->f[b * o->h + j] : 0, 0};
            c[j] = (about){in->c ? in->c->f[b * o->h + j] : 0, 0};
        }
        for (int64_t i = 0; i < o->t; i++) {
            const int64_t t = o->reverse ? o->t - 1 - i : i;
            const bool live = !in->lengths || t < in->lengths->i[b];
            if (live) step(o, in, t, b, h, c);
            for (int64_t j = 0; j < o->h; j++)
                put(out[0], (t * o->b + b) * o->h + j, live ? h[j] : (about){0, 0});
        }
        for (int64_t j = 0; j < o->h; j++) {
            put(out[1], b * o->h + j, h[j]);
            put(out[2], b * o->h + j, c[j]);
        }
    }
}

static operand lengths_of(matrix *m, const sample *o) {
    array *lengths = array_new(m, WEFT_I32, SHAPE(o->b));
    for (int64_t b = 0; b < o->b; b++) lengths->i[b] = 1 + (b * 3 + o->t - 1) % o->t;
    return operand_of(m, lengths);
}

static void check(matrix *m, const sample *o, weft_dtype dtype, view_kind view) {
    ops_breathe(m);
    const int64_t g = gates_of(o->kind) * o->h;
    const operand none = {NULL, NULL};
    operand x = operand_new(m, dtype, SHAPE(o->t, o->b, g), view, GEN_NEAR_ONE);
    operand w = operand_new(m, dtype, SHAPE(g, o->h), view, GEN_NEAR_ONE), bias[2], state[2];
    if (o->h > 8) w = operand_of(m, array_random(m, dtype, SHAPE(g, o->h), GEN_NEAR_ONE));
    for (int i = 0; i < 2; i++) {
        const bool has = !o->bare && (i == 0 || o->kind == WEFT_LSTM);
        bias[i] = o->bare ? none : operand_new(m, dtype, SHAPE(g), VIEW_PLAIN, GEN_NEAR_ONE);
        state[i] = has ? operand_new(m, dtype, SHAPE(o->b, o->h), view, GEN_NEAR_ONE) : none;
    }
    const operand lengths = o->masked ? lengths_of(m, o) : none;
    const weft_recurrent_options options = {o->kind,    o->reverse, bias[0].t, bias[1].t,
                                            state[0].t, state[1].t, lengths.t};
    const host in = {x.h, w.h, bias[0].h, bias[1].h, state[0].h, state[1].h, lengths.h};
    weft_tensor *last[2];
    array *want[3];
    weft_tensor *y = weft_recurrent(x.t, w.t, &options, last);
    expect(m, o, &in, want);
    ops_check(m, "recurrent", dtype, ops_text(m, "%s %s", o->name, view_name(view)), y, want[0],
              TOLERANCE_GIVEN);
    ops_check(m, "recurrent", dtype, ops_text(m, "%s %s, h", o->name, view_name(view)), last[0], want[1],
              TOLERANCE_GIVEN);
    if (o->kind == WEFT_LSTM)
        ops_check(m, "recurrent", dtype, ops_text(m, "%s %s, c", o->name, view_name(view)), last[1], want[2],
                  TOLERANCE_GIVEN);
}

static void check_refused(matrix *m, weft_dtype dtype) {
    weft_tensor *x = operand_new(m, dtype, SHAPE(4, 2, 12), VIEW_PLAIN, GEN_NORMAL).t, *last[2];
    weft_tensor *w = operand_new(m, dtype, SHAPE(12, 3), VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *state = operand_new(m, dtype, SHAPE(3, 3), VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *lengths = operand_new(m, WEFT_I32, SHAPE(3), VIEW_PLAIN, GEN_STEPS).t;
    const weft_recurrent_options lstm = {.kind = WEFT_LSTM}, gru = {.kind = WEFT_GRU};
#define REFUSED(sample_, status, ...)                                                                        \
    ops_refused(m, "recurrent", dtype, sample_,                                                              \
                weft_recurrent(x, w, &(weft_recurrent_options){__VA_ARGS__}, last), status)
    ops_refused(m, "recurrent", dtype, "gates", weft_recurrent(x, w, &gru, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "recurrent", dtype, "no options", weft_recurrent(x, w, NULL, last), WEFT_ERR_ARGUMENT);
    REFUSED("state", WEFT_ERR_SHAPE, .kind = WEFT_LSTM, .h = state);
    REFUSED("bias", WEFT_ERR_SHAPE, .kind = WEFT_LSTM, .bias_hh = state);
    REFUSED("lengths", WEFT_ERR_SHAPE, .kind = WEFT_LSTM, .lengths = lengths);
    REFUSED("lengths of floats", WEFT_ERR_DTYPE, .kind = WEFT_LSTM, .lengths = state);
    REFUSED("c of a gru", WEFT_ERR_ARGUMENT, .kind = WEFT_GRU, .c = state);
    REFUSED("kind", WEFT_ERR_ARGUMENT, .kind = (weft_recurrent_kind)9);
#undef REFUSED
    weft_tensor *empty = operand_new(m, dtype, SHAPE(0, 2, 12), VIEW_PLAIN, GEN_NORMAL).t;
    ops_refused(m, "recurrent", dtype, "length 0", weft_recurrent(empty, w, &lstm, last), WEFT_ERR_SHAPE);
}

/* Leaves out samples on GPUs. Each kind and dtype, and each set of biases, states and lengths, has a kernel
 * source of its own. */
static bool left_out(const matrix *m, int i, weft_dtype dtype) {
    return m->gpu && dtype != WEFT_F32 && i > 1 && i != 7;
}

void ops_case_recurrent(matrix *m);
void ops_case_recurrent(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "recurrent", dtype)) continue;
        if (!is_float(dtype)) {
            weft_tensor *x = operand_new(m, dtype, SHAPE(4, 2, 3), VIEW_PLAIN, GEN_NORMAL).t;
            weft_tensor *w = operand_new(m, dtype, SHAPE(3, 3), VIEW_PLAIN, GEN_NORMAL).t;
            ops_refused(m, "recurrent", dtype, "dtype",
                        weft_recurrent(x, w, &(weft_recurrent_options){.kind = WEFT_RNN_TANH}, NULL),
                        WEFT_ERR_DTYPE);
            continue;
        }
        check_refused(m, dtype);
        for (int i = 0; i < COUNT(samples); i++)
            if (!left_out(m, i, dtype) && !(m->slow && samples[i].h > 8)) {
                if (d == 0 && i && samples[i].kind != samples[i - 1].kind) ops_another_way(m);
                check(m, &samples[i], dtype, VIEW_PLAIN);
            }
        for (int v = 1; v < VIEW_COUNT && !m->gpu; v++)
            check(m, &samples[v % 2 ? 0 : 6], dtype, (view_kind)v);
    }
    ops_flush(m);
}

/* The result and the final states. Both biases are one operand. */
static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const sample *o = user;
    int32_t counts[8];
    (void)dtype;
    for (int64_t b = 0; b < o->b; b++) counts[b] = (int32_t)(1 + (b * 3 + o->t - 1) % o->t);
    const weft_recurrent_options options = {.kind = o->kind,
                                            .reverse = o->reverse,
                                            .bias_ih = in[2],
                                            .bias_hh = in[2],
                                            .h = in[3],
                                            .c = o->kind == WEFT_LSTM ? in[4] : NULL,
                                            .lengths = o->masked ? weft_from(ctx, WEFT_I32, 1, &o->b, counts)
                                                                 : NULL};
    weft_tensor *last[2];
    weft_tensor *y = weft_recurrent(in[0], in[1], &options, last);
    y = weft_add(y, last[0]);
    return o->kind == WEFT_LSTM ? weft_add(y, weft_mul_scalar(last[1], 2)) : y;
}

void ops_grad_recurrent(matrix *m);
void ops_grad_recurrent(matrix *m) {
    static const sample checked[] = {{"lstm", WEFT_LSTM, 5, 2, 2, false, false, false},
                                     {"lstm masked", WEFT_LSTM, 4, 3, 2, true, true, false},
                                     {"lstm steps", WEFT_LSTM, 2, 1, 2, false, false, false},
                                     {"gru", WEFT_GRU, 5, 2, 2, false, false, false},
                                     {"gru masked", WEFT_GRU, 4, 3, 2, false, true, false},
                                     {"gru reverse", WEFT_GRU, 4, 2, 3, true, false, false},
                                     {"tanh", WEFT_RNN_TANH, 5, 2, 3, true, true, false},
                                     {"relu", WEFT_RNN_RELU, 4, 2, 2, false, false, false}};
    for (int i = 0; i < COUNT(checked); i++) {
        const sample *o = &checked[i];
        const int64_t g = gates_of(o->kind) * o->h;
        if (m->gpu && i != 1 && i != 4)
            continue; /* each dtype has kernel sources of its own, and second derivatives only test the
                         expansion */
        ops_another_way(m);
        grad_check(m, &(grad_case){.op = "recurrent",
                                   .sample = o->name,
                                   .n = o->kind == WEFT_LSTM ? 5 : 4,
                                   .s = {SHAPE(o->t, o->b, g), SHAPE(g, o->h), SHAPE(g), SHAPE(o->b, o->h),
                                         SHAPE(o->b, o->h)},
                                   .low = -1,
                                   .high = 1,
                                   .build = build,
                                   .user = o});
    }
}
