/* A recurrent layer over all time steps, as a composite that a device may compute as a whole. x holds the
 * inputs already multiplied by their weights, W_ih x. With z = W_hh h and the two biases b and d, each step
 * computes:
 *
 *     RNN   h' = tanh or relu(x + b + z + d)
 *     LSTM  i, f, o = sigmoid, g = tanh of their parts of x + b + z + d; c' = f c + i g; h' = o tanh(c')
 *     GRU   r, u = sigmoid of theirs; n = tanh(x + b + r (z + d)); h' = n + u (h - n)
 *
 * Output 0 holds all states, (T + 1, B, H), or T + 2 of an LSTM:
 *
 *     row       0     1    2   ...   T           T + 1
 *     forward   h0    h of step 0, 1, ... T-1    last c (LSTM)
 *     reverse   h of step 0, 1, ... T-1    h0    last c (LSTM)
 *
 * So the states before and after each step are views of it. The other outputs are for the gradient. Output 1
 * holds the gates (T, 4, B, H): of an LSTM i, f, g, o, of a GRU r, u, n and z + d of n. Output 2 holds c (T,
 * B, H), in f32 if the rest has 16 bits.
 *
 * The gradient walks back through time with one matmul a step. The gradients of weights and biases are one
 * matmul and one sum over all steps.
 *
 * Must not know: layers, devices. Read next: heavy/recurrent.h, nn/recurrent.c. */
#include "ops/composite.h"
#include "ops/ops.h"

enum { X, W, BIAS_X, BIAS_H, H0, LENGTHS, C0 }; /* inputs */
enum { STATES, GATES, CELLS };                  /* outputs */
enum { GATE_PARTS = 4 };

static const int gates_of[] = {[WEFT_RNN_TANH] = 1, [WEFT_RNN_RELU] = 1, [WEFT_LSTM] = 4, [WEFT_GRU] = 3};

/* ---- time steps ---- */

/* The values that all steps share. */
typedef struct steps {
    const char *where;
    weft_recurrent_params p;
    weft_dtype dtype, wide;
    int64_t t, batch, width; /* t: number of steps; width: extent of h */
    weft_tensor *const *in;
    weft_tensor *live; /* (T, B, 1): true while the sequence lasts; NULL: all last T steps */
} steps;

static weft_tensor *step_of(const char *where, weft_tensor *x, int64_t t) {
    return weft_squeeze_at(where, weft_narrow_at(where, x, 0, t, 1), 0);
}

/* Part k of the last dimension, which holds the gates side by side. */
static weft_tensor *part_of(const steps *s, weft_tensor *x, int64_t k) {
    return weft_narrow_at(s->where, x, -1, k * s->width, s->width);
}

static steps steps_of(const char *where, const weft_recurrent_params *p, weft_tensor *const *in,
                      const int64_t *x) {
    steps s = {.where = where, .p = *p, .t = x[0], .batch = x[1], .in = in};
    s.dtype = (weft_dtype)in[0]->dtype;
    s.wide = s.dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    s.width = x[2] / gates_of[p->kind];
    return s;
}

static void find_live(steps *s, weft_tensor *lengths) {
    const char *where = s->where;
    if (!s->p.masked || lengths->error) return;
    weft_tensor *t =
        weft__reshape_to(where, weft_iota(lengths->ctx, WEFT_I32, 1, &s->t), 2, (int64_t[]){s->t, 1});
    s->live = weft__reshape_to(where, at_lt(t, lengths), 3, (int64_t[]){s->t, s->batch, 1});
}

/* `yes` where step t belongs to its sequence, else `no`. */
static weft_tensor *if_live(const steps *s, int64_t t, weft_tensor *yes, weft_tensor *no) {
    const char *where = s->where;
    return s->live ? at_where(step_of(where, s->live, t), yes, no) : yes;
}

/* The matmul a (B, K) b (K, N) in the wide dtype. */
static weft_tensor *wide_product(const steps *s, weft_tensor *a, weft_tensor *b) {
    weft_tensor *bad = weft__reject("recurrent", s->where, (weft_tensor *[]){a, b}, 2);
    if (bad) return bad;
    return weft__node(a->ctx, s->where, WEFT_OP_MATMUL, s->wide, 2, (int64_t[]){a->shape[0], b->shape[1]}, 2,
                      (weft_tensor *[]){a, b}, 0, NULL);
}

/* Joins `count` rows of equal size into a tensor of the given shape. */
static weft_tensor *lay(const steps *s, weft_tensor **rows, int64_t count, int rank, const int64_t *shape) {
    int64_t *offsets = weft__array(rows[0]->ctx, (size_t)count, sizeof *offsets), n = 1;
    if (!offsets) return &rows[0]->ctx->graph->oom;
    for (int i = 0; i < rank; i++) n *= shape[i];
    for (int64_t i = 0; i < count; i++) offsets[i] = i * (n / count);
    weft_tensor *all = weft__pack(s->where, rows, offsets, (int)count, n);
    weft__free(rows[0]->ctx, offsets);
    return weft__poisoned(all) ? all : weft__reshape_to(s->where, all, rank, shape);
}

/* ---- forward ---- */

/* One step: x (B, G) with its biases, z the recurrent matmul. gates gets four parts; *c is read and
 * replaced. */
static weft_tensor *cell(const steps *s, weft_tensor *x, weft_tensor *z, weft_tensor *h, weft_tensor **c,
                         weft_tensor **gates) {
    const char *where = s->where;
    const weft_recurrent_kind kind = (weft_recurrent_kind)s->p.kind;
    if (kind == WEFT_GRU) {
        weft_tensor *r = weft_sigmoid_at(where, at_add(part_of(s, x, 0), part_of(s, z, 0)));
        weft_tensor *u = weft_sigmoid_at(where, at_add(part_of(s, x, 1), part_of(s, z, 1)));
        weft_tensor *q = part_of(s, z, 2), *n = weft_tanh_at(where, at_add(part_of(s, x, 2), at_mul(r, q)));
        gates[0] = r, gates[1] = u, gates[2] = n, gates[3] = q;
        return at_add(n, at_mul(u, at_sub(h, n)));
    }
    z = at_add(x, z);
    if (kind != WEFT_LSTM) return kind == WEFT_RNN_TANH ? weft_tanh_at(where, z) : weft_relu_at(where, z);
    for (int k = 0; k < 4; k++)
        gates[k] = k == 2 ? weft_tanh_at(where, part_of(s, z, k)) : weft_sigmoid_at(where, part_of(s, z, k));
    *c = at_add(at_mul(gates[1], *c), at_mul(gates[0], gates[2]));
    return at_mul(gates[3], weft_tanh_at(where, *c));
}

typedef struct lists {
    weft_tensor **states, **gates, **cells;
} lists;

/* The biases to add to x and, for a GRU, to z. Other kinds add both to x. */
static void biases(const steps *s, weft_tensor **to_x, weft_tensor **to_z) {
    const char *where = s->where;
    *to_x = widen(where, s->in[BIAS_X]), *to_z = widen(where, s->in[BIAS_H]);
    if (s->p.kind == WEFT_GRU) return;
    *to_x = at_add(*to_x, *to_z);
    *to_z = NULL;
}

static void run_forward(const steps *s, const lists *l) {
    const char *where = s->where;
    const int first = s->p.reverse ? (int)s->t : 0;
    weft_tensor *h = s->in[H0], *c = s->p.kind == WEFT_LSTM ? widen(where, s->in[C0]) : NULL;
    weft_tensor *turned = weft_transpose_at(where, s->in[W], 0, 1), *to_x, *to_z;
    biases(s, &to_x, &to_z);
    l->states[first] = h;
    for (int64_t i = 0; i < s->t; i++) {
        const int64_t t = s->p.reverse ? s->t - 1 - i : i;
        weft_tensor *gates[GATE_PARTS], *wide = widen(where, h), *next = c;
        weft_tensor *x = at_add(widen(where, step_of(where, s->in[X], t)), to_x),
                    *z = wide_product(s, h, turned);
        weft_tensor *y = cell(s, x, to_z ? at_add(z, to_z) : z, wide, &next, gates);
        h = as_dtype(where, if_live(s, t, y, wide), s->dtype);
        if (c) l->cells[t] = c = if_live(s, t, next, c);
        l->states[s->p.reverse ? t : t + 1] = h;
        for (int k = 0; k < GATE_PARTS && l->gates; k++)
            l->gates[t * GATE_PARTS + k] = as_dtype(where, gates[k], s->dtype);
    }
    if (c) l->states[s->t + 1] = as_dtype(where, c, s->dtype);
}

/* Shapes of the outputs of a forward composite: an RNN has 1, a GRU 2, an LSTM 3. */
static void forward_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                          int *rank, int64_t *dims) {
    const weft_recurrent_params *p = params;
    const int64_t t = in[X]->shape[0], batch = in[X]->shape[1], width = in[W]->shape[1];
    *dtype = (weft_dtype)in[X]->dtype;
    *rank = output == GATES ? 4 : 3;
    if (output == STATES) dims[0] = t + 1 + (p->kind == WEFT_LSTM);
    if (output == GATES) dims[0] = t, dims[1] = GATE_PARTS;
    if (output == CELLS) dims[0] = t, *dtype = *dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    dims[*rank - 2] = batch;
    dims[*rank - 1] = width;
}

static void recurrent_expand(const char *where, const void *params, weft_tensor *const *in,
                             weft_tensor **out) {
    const weft_recurrent_params *p = params;
    weft_context *ctx = in[X]->ctx;
    steps s = steps_of(where, p, in, in[X]->shape);
    const bool lstm = p->kind == WEFT_LSTM, gated = lstm || p->kind == WEFT_GRU;
    const size_t n = (size_t)s.t;
    lists l = {.states = weft__array(ctx, n + 2, sizeof *l.states),
               .gates = gated ? weft__array(ctx, n * GATE_PARTS, sizeof *l.gates) : NULL,
               .cells = lstm ? weft__array(ctx, n, sizeof *l.cells) : NULL};
    const bool fits = l.states && (!gated || l.gates) && (!lstm || l.cells);
    find_live(&s, in[LENGTHS]);
    if (fits) run_forward(&s, &l);
    for (int i = 0; i < (lstm ? 3 : gated ? 2 : 1); i++) {
        weft_dtype dtype;
        int rank;
        int64_t dims[WEFT_MAX_RANK];
        forward_shape(params, in, i, &dtype, &rank, dims);
        weft_tensor **rows = i == STATES ? l.states : i == GATES ? l.gates : l.cells;
        out[i] = fits ? lay(&s, rows, i == GATES ? s.t * GATE_PARTS : dims[0], rank, dims) : &ctx->graph->oom;
    }
    weft__free(ctx, l.states);
    weft__free(ctx, l.gates);
    weft__free(ctx, l.cells);
}

/* ---- backward ---- */

/* The inputs of the gradient composite that the forward composite computed, and the gradient of its output
 * 0. */
typedef struct saved {
    weft_tensor *states, *gates, *cells, *g;
} saved;

static saved saved_of(const weft_recurrent_params *p, weft_tensor *const *in) {
    const bool lstm = p->kind == WEFT_LSTM, gated = lstm || p->kind == WEFT_GRU;
    weft_tensor *const *out = in + (lstm ? C0 + 1 : LENGTHS + 1);
    return (saved){out[STATES], gated ? out[GATES] : NULL, lstm ? out[CELLS] : NULL,
                   out[lstm    ? 3
                       : gated ? 2
                               : 1]};
}

/* (1 - y^2) * by */
static weft_tensor *tanh_back(const char *where, weft_tensor *y, weft_tensor *by) {
    return at_mul(by, at_sub_from(1.0, at_mul(y, y)));
}

static weft_tensor *sigmoid_back(const char *where, weft_tensor *y, weft_tensor *by) {
    return at_mul(by, at_mul(y, at_sub_from(1.0, y)));
}

/* The results of one step back from dh. dx, dz: the gradients of x and z, by parts. dc: the gradient of the c
 * before. pass: the part of dh that reaches the h before without a matmul. */
typedef struct back {
    weft_tensor *dx[GATE_PARTS], *dz[GATE_PARTS], *dc, *pass;
} back;

static back back_lstm(const steps *s, weft_tensor *const *gate, weft_tensor *c, weft_tensor *before,
                      weft_tensor *dh, weft_tensor *dc) {
    const char *where = s->where;
    back b = {.pass = NULL};
    weft_tensor *squashed = weft_tanh_at(where, c);
    dc = at_add(dc, tanh_back(where, squashed, at_mul(dh, gate[3])));
    b.dx[0] = sigmoid_back(where, gate[0], at_mul(dc, gate[2]));
    b.dx[1] = sigmoid_back(where, gate[1], at_mul(dc, before));
    b.dx[2] = tanh_back(where, gate[2], at_mul(dc, gate[0]));
    b.dx[3] = sigmoid_back(where, gate[3], at_mul(dh, squashed));
    for (int k = 0; k < 4; k++) b.dz[k] = b.dx[k];
    b.dc = at_mul(dc, gate[1]);
    return b;
}

static back back_gru(const steps *s, weft_tensor *const *gate, weft_tensor *before, weft_tensor *dh) {
    const char *where = s->where;
    back b = {.dc = NULL};
    weft_tensor *r = gate[0], *u = gate[1], *n = gate[2], *q = gate[3];
    b.dx[2] = tanh_back(where, n, at_mul(dh, at_sub_from(1.0, u)));
    b.dx[1] = sigmoid_back(where, u, at_mul(dh, at_sub(before, n)));
    b.dx[0] = sigmoid_back(where, r, at_mul(b.dx[2], q));
    b.dz[0] = b.dx[0], b.dz[1] = b.dx[1], b.dz[2] = at_mul(b.dx[2], r);
    b.pass = at_mul(dh, u);
    return b;
}

static back back_plain(const steps *s, weft_tensor *h, weft_tensor *dh) {
    const char *where = s->where;
    back b = {.dx = {tanh_back(where, h, dh)}};
    if (s->p.kind == WEFT_RNN_RELU) b.dx[0] = at_where(at_le(h, at_zeros_like(h)), at_zeros_like(dh), dh);
    b.dz[0] = b.dx[0];
    return b;
}

/* The parts side by side; 0 where the step is past the end of its sequence. */
static weft_tensor *side_by_side(const steps *s, int64_t t, weft_tensor *const *parts) {
    weft_tensor *all = weft_concat_at(s->where, parts, gates_of[s->p.kind], -1);
    if (weft__poisoned(all)) return all;
    return as_dtype(s->where, if_live(s, t, all, weft_zeros_like_at(s->where, all)), s->dtype);
}

/* Walks back through time. dx, and for a GRU dz, get the gradients of each step. *dh and *dc get the
 * gradients of the first states; *dc holds the gradient of the last c at the start. */
static void run_backward(const steps *s, const saved *v, weft_tensor **dx, weft_tensor **dz, weft_tensor **dh,
                         weft_tensor **dc) {
    const char *where = s->where;
    weft_tensor *carried = NULL;
    for (int64_t i = s->t - 1; i >= 0; i--) {
        const int64_t t = s->p.reverse ? s->t - 1 - i : i, row = s->p.reverse ? t : t + 1;
        const int64_t last = s->p.reverse ? t + 1 : t, next = s->p.reverse ? t + 1 : t - 1;
        weft_tensor *g = widen(where, step_of(where, v->g, row)), *gate[GATE_PARTS];
        g = carried ? at_add(g, carried) : g;
        for (int k = 0; k < GATE_PARTS && v->gates; k++)
            gate[k] = widen(where, step_of(where, step_of(where, v->gates, t), k));
        back b;
        if (s->p.kind == WEFT_LSTM) {
            weft_tensor *before = i ? step_of(where, v->cells, next) : widen(where, s->in[C0]);
            b = back_lstm(s, gate, step_of(where, v->cells, t), before, g, *dc);
            *dc = if_live(s, t, b.dc, *dc);
        } else if (s->p.kind == WEFT_GRU) {
            b = back_gru(s, gate, widen(where, step_of(where, v->states, last)), g);
            dz[t] = side_by_side(s, t, b.dz);
        } else {
            b = back_plain(s, widen(where, step_of(where, v->states, row)), g);
        }
        dx[t] = side_by_side(s, t, b.dx);
        carried = wide_product(s, dz ? dz[t] : dx[t], s->in[W]);
        if (b.pass) carried = at_add(carried, b.pass);
        carried = if_live(s, t, carried, g);
    }
    weft_tensor *g = widen(where, step_of(where, v->g, s->p.reverse ? s->t : 0));
    *dh = as_dtype(where, at_add(g, carried), s->dtype);
}

static void gradient_shape(const void *params, weft_tensor *const *in, int output, weft_dtype *dtype,
                           int *rank, int64_t *dims) {
    const weft_recurrent_params *p = params;
    const bool state = output == 1 || (output == 2 && p->kind == WEFT_LSTM);
    const weft_tensor *like = in[state ? H0 : X];
    *dtype = (weft_dtype)like->dtype;
    *rank = like->rank;
    for (int i = 0; i < *rank; i++) dims[i] = like->shape[i];
}

/* Outputs: the gradients of x, of the first h, and of the first c (LSTM) or of z + d (GRU). */
static void expand_gradient(const char *where, const void *params, weft_tensor *const *in,
                            weft_tensor **out) {
    const weft_recurrent_params *p = params;
    weft_context *ctx = in[X]->ctx;
    const bool lstm = p->kind == WEFT_LSTM, gru = p->kind == WEFT_GRU;
    steps s = steps_of(where, p, in, in[X]->shape);
    const saved v = saved_of(p, in);
    weft_tensor **dx = weft__array(ctx, (size_t)s.t, sizeof *dx),
                **dz = gru ? weft__array(ctx, (size_t)s.t, sizeof *dz) : NULL;
    const int n = lstm || gru ? 3 : 2;
    for (int i = 0; i < n; i++) out[i] = &ctx->graph->oom;
    if (dx && (!gru || dz)) {
        weft_tensor *dc = lstm ? widen(where, step_of(where, v.g, s.t + 1)) : NULL;
        find_live(&s, in[LENGTHS]);
        run_backward(&s, &v, dx, dz, &out[1], &dc);
        out[0] = lay(&s, dx, s.t, 3, in[X]->shape);
        if (gru) out[2] = lay(&s, dz, s.t, 3, in[X]->shape);
        if (lstm) out[2] = as_dtype(where, dc, s.dtype);
    }
    weft__free(ctx, dx);
    weft__free(ctx, dz);
}

/* ---- the definitions ---- */

#define GRADIENT(id, inputs, outputs, more)                                                                  \
    static const weft_composite id##_gradient = {                                                            \
        .name = #id ".grad",                                                                                 \
        .kind = WEFT_HEAVY_RECURRENT,                                                                        \
        .n_inputs = (inputs) + (outputs) + 1,                                                                \
        .n_outputs = more,                                                                                   \
        .params_bytes = sizeof(weft_recurrent_params),                                                       \
        .shape = gradient_shape,                                                                             \
        .expand = expand_gradient,                                                                           \
    };
GRADIENT(rnn, 6, 1, 2)
GRADIENT(gru, 6, 2, 3)
GRADIENT(lstm, 7, 3, 3)
#undef GRADIENT

/* Records the gradients of all inputs: first the walk back, then the sums over all steps. */
static void recurrent_backward(const char *where, weft_tensor *whole, weft_tensor *g, weft_tensor **grads) {
    weft_recurrent_params p = *(const weft_recurrent_params *)weft__params_of(whole);
    const bool lstm = p.kind == WEFT_LSTM, gru = p.kind == WEFT_GRU;
    const weft_composite *walk = lstm ? &lstm_gradient : gru ? &gru_gradient : &rnn_gradient;
    weft_tensor *in[16], *out[3];
    int n = 0;
    for (; n < whole->n_in; n++) in[n] = whole->in[n];
    for (int i = 0; n < walk->n_inputs - 1; i++, n++) in[n] = weft__composite_output(where, whole, i);
    in[n] = g;
    p.back = true;
    weft__composite(where, walk, &p, in, out);
    const int64_t t = in[X]->shape[0], rows = t * in[X]->shape[1], gates[2] = {rows, in[X]->shape[2]};
    const int64_t states[2] = {rows, in[W]->shape[1]};
    weft_tensor *dx = out[0], *dz = gru ? out[2] : dx;
    weft_tensor *before = weft_narrow_at(where, saved_of(&p, in).states, 0, p.reverse ? 1 : 0, t);
    grads[X] = dx->error ? dx : dz->error ? dz : before->error ? before : dx;
    if (grads[X]->error) return;
    weft_tensor *flat = weft__reshape_to(where, dz, 2, gates);
    grads[W] = weft_matmul_at(where, weft_transpose_at(where, flat, 0, 1),
                              weft__reshape_to(where, before, 2, states));
    grads[BIAS_X] = weft_sum_at(where, weft__reshape_to(where, dx, 2, gates), 0, false);
    grads[BIAS_H] = gru ? weft_sum_at(where, flat, 0, false) : grads[BIAS_X];
    grads[H0] = out[1];
    if (lstm) grads[C0] = out[2];
}

#define DEFINE(id, inputs, outputs)                                                                          \
    static const weft_composite id##_whole = {                                                               \
        .name = #id,                                                                                         \
        .kind = WEFT_HEAVY_RECURRENT,                                                                        \
        .n_inputs = inputs,                                                                                  \
        .n_outputs = outputs,                                                                                \
        .params_bytes = sizeof(weft_recurrent_params),                                                       \
        .shape = forward_shape,                                                                              \
        .expand = recurrent_expand,                                                                          \
        .backward = recurrent_backward,                                                                      \
    };
DEFINE(rnn, 6, 1)
DEFINE(gru, 6, 2)
DEFINE(lstm, 7, 3)
#undef DEFINE

/* ---- the public function ---- */

/* A state or bias of that shape, or zeros if t is NULL. */
static weft_tensor *given(const char *where, const weft_tensor *x, weft_tensor *t, int rank,
                          const int64_t *shape, const char *what) {
    if (!t) return weft__constant(x->ctx, where, (weft_dtype)x->dtype, rank, shape, 0, 0);
    weft_tensor *bad = weft__reject("recurrent", where, &t, 1);
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (bad) return bad;
    bool fits = t->rank == rank && t->dtype == x->dtype && t->ctx == x->ctx;
    for (int i = 0; i < rank && fits; i++) fits = t->shape[i] == shape[i];
    if (fits) return t;
    return weft__poison(x->ctx, where, t->dtype == x->dtype ? WEFT_ERR_SHAPE : WEFT_ERR_DTYPE,
                        "recurrent: %s %s does not fit x %s: it must be (%s%lld)", what,
                        weft__tensor_text(t, a), weft__tensor_text(x, b), rank == 2 ? "batch, " : "",
                        (long long)shape[rank - 1]);
}

static weft_tensor *given_lengths(const char *where, const weft_tensor *x, weft_tensor *t) {
    if (!t) return weft__constant(x->ctx, where, WEFT_I32, 1, (int64_t[]){1}, 0, 0);
    weft_tensor *bad = weft__reject("recurrent", where, &t, 1);
    char text[WEFT_SHAPE_TEXT];
    if (bad) return bad;
    const bool integer = t->dtype == WEFT_I32 || t->dtype == WEFT_I64;
    if (t->rank != 1 || t->shape[0] != x->shape[1] || !integer || t->ctx != x->ctx)
        return weft__poison(x->ctx, where, integer ? WEFT_ERR_SHAPE : WEFT_ERR_DTYPE,
                            "recurrent: lengths %s must be %lld integers, one for each sequence",
                            weft__tensor_text(t, text), (long long)x->shape[1]);
    return t->dtype == WEFT_I32 ? t : weft_cast_at(where, t, WEFT_I32);
}

static weft_tensor *reject_recurrent(const char *where, weft_tensor *x, weft_tensor *weight,
                                     const weft_recurrent_options *o) {
    weft_tensor *bad = weft__reject("recurrent", where, (weft_tensor *[]){x, weight}, 2);
    char a[WEFT_SHAPE_TEXT], b[WEFT_SHAPE_TEXT];
    if (bad || !x) return bad;
    if (!weft_dtype_is_float((weft_dtype)x->dtype) || weight->dtype != x->dtype)
        return weft__poison(x->ctx, where, WEFT_ERR_DTYPE,
                            "recurrent: x %s and weight %s must be of one float dtype",
                            weft__tensor_text(x, a), weft__tensor_text(weight, b));
    if (!o || (unsigned)o->kind > WEFT_GRU || (o->c && o->kind != WEFT_LSTM))
        return weft__poison(x->ctx, where, WEFT_ERR_ARGUMENT, "recurrent: %s",
                            !o                              ? "the options are NULL"
                            : (unsigned)o->kind <= WEFT_GRU ? "only an LSTM has a state c"
                                                            : "unknown kind");
    const int64_t parts = gates_of[o->kind];
    if (x->rank != 3 || weight->rank != 2 || weight->shape[0] != x->shape[2] ||
        weight->shape[0] != parts * weight->shape[1])
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "recurrent: x %s and weight %s must be (time, batch, %lld H) and (%lld H, H)",
                            weft__tensor_text(x, a), weft__tensor_text(weight, b), (long long)parts,
                            (long long)parts);
    if (x->shape[0] < 1 || x->shape[0] > INT32_MAX)
        return weft__poison(x->ctx, where, WEFT_ERR_SHAPE,
                            "recurrent: x %s has sequences of length %lld, which must be 1 to 2^31 - 1",
                            weft__tensor_text(x, a), (long long)x->shape[0]);
    return NULL;
}

weft_tensor *weft_recurrent_at(const char *where, weft_tensor *x, weft_tensor *weight,
                               const weft_recurrent_options *o, weft_tensor **last) {
    weft_tensor *bad = reject_recurrent(where, x, weight, o), *in[C0 + 1], *out[3];
    if (last) last[0] = bad;
    if (last && o && o->kind == WEFT_LSTM) last[1] = bad;
    if (bad || !x) return bad;
    const bool lstm = o->kind == WEFT_LSTM;
    const int64_t t = x->shape[0], state[2] = {x->shape[1], weight->shape[1]};
    in[X] = x;
    in[W] = weight;
    in[BIAS_X] = given(where, x, o->bias_ih, 1, &x->shape[2], "bias");
    in[BIAS_H] = given(where, x, o->bias_hh, 1, &x->shape[2], "bias");
    in[H0] = given(where, x, o->h, 2, state, "state");
    in[LENGTHS] = given_lengths(where, x, o->lengths);
    in[C0] = lstm ? given(where, x, o->c, 2, state, "state") : in[H0];
    for (int i = 0; i <= C0 && !bad; i++) bad = in[i]->error ? in[i] : NULL;
    const weft_recurrent_params params = {o->kind, o->reverse, o->lengths != NULL, false};
    if (!bad)
        weft__composite(where,
                        lstm                  ? &lstm_whole
                        : o->kind == WEFT_GRU ? &gru_whole
                                              : &rnn_whole,
                        &params, in, out);
    weft_tensor *all = bad ? bad : out[STATES];
    if (last) last[0] = bad ? bad : step_of(where, all, o->reverse ? 0 : t);
    if (last && lstm) last[1] = bad ? bad : step_of(where, all, t + 1);
    weft_tensor *y = bad ? bad : weft_narrow_at(where, all, 0, o->reverse ? 0 : 1, t);
    if (bad || !o->lengths || y->error) return y;
    steps s = {.where = where, .p = params, .t = t, .batch = state[0]};
    find_live(&s, in[LENGTHS]);
    return at_where(s.live, y, at_zeros_like(y));
}
