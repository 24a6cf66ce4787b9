/* Recurrent layers and cells. Each layer and direction is one matmul for the inputs of all steps, then the
 * walk through time of ops/recurrent.c. Inside, time is the first dimension, so that the data of a step is
 * contiguous.
 * Must not know: devices. Read next: recurrent_lm.c. */
#include <math.h>
#include <stdio.h>
#include "nn/recurrent.h"
#include "ops/build.h"

enum { WEIGHT_IH, WEIGHT_HH, BIAS_IH, BIAS_HH };

typedef struct recurrent_own {
    weft_recurrent_kind kind;
    int64_t in, hidden, layers;
    int directions;
    bool biased, time_first, cell;
    double dropout;
    weft_states *states; /* states and lengths of the running call */
    const int64_t *lengths;
} recurrent_own;

static weft_tensor *recurrent_forward(weft_module *m, weft_tensor *x);

static bool is_recurrent(const weft_module *m) { return m && !m->error && m->forward == recurrent_forward; }

weft_states *weft__recurrent_states(const weft_module *layer) {
    return ((const recurrent_own *)layer->user)->states;
}

const int64_t *weft__recurrent_lengths(const weft_module *layer) {
    return ((const recurrent_own *)layer->user)->lengths;
}

int weft_states_shape(const weft_module *m, int64_t batch, int64_t shape[3]) {
    const recurrent_own *own = is_recurrent(weft__recurrent_in(m)) ? weft__recurrent_in(m)->user : NULL;
    if (!own) return 0;
    if (!shape) return own->cell ? 2 : 3;
    shape[0] = own->layers * own->directions;
    shape[!own->cell] = batch;
    shape[1 + !own->cell] = own->hidden;
    return own->cell ? 2 : 3;
}

bool weft_states_have_c(const weft_module *m) {
    const weft_module *layer = weft__recurrent_in(m);
    return is_recurrent(layer) && ((const recurrent_own *)layer->user)->kind == WEFT_LSTM;
}

/* ---- forward ---- */

/* The lengths as a tensor; poisoned if one is out of range. */
static weft_tensor *lengths_tensor(weft_module *m, const weft_tensor *x, const int64_t *lengths) {
    weft_context *ctx = m->ctx;
    const int64_t steps = x->shape[0], batch = x->shape[1];
    int32_t *narrow = weft__array(ctx, (size_t)batch + 1, sizeof *narrow);
    weft_tensor *t = narrow ? NULL : &ctx->graph->oom;
    for (int64_t b = 0; b < batch && !t; b++) {
        narrow[b] = (int32_t)lengths[b];
        if (lengths[b] >= 1 && lengths[b] <= steps) continue;
        t = weft__poison(ctx, m->where, WEFT_ERR_ARGUMENT,
                         "%s: sequence %lld has length %lld, which must be 1 to %lld", m->kind, (long long)b,
                         (long long)lengths[b], (long long)steps);
    }
    if (!t) t = weft_from(ctx, WEFT_I32, 1, &batch, narrow);
    weft__free(ctx, narrow);
    return t;
}

/* State number `at`, (B, hidden), in the dtype of computation. */
static weft_tensor *state_at(const weft_module *m, weft_tensor *states, int64_t at) {
    const recurrent_own *own = m->user;
    if (!states) return NULL;
    if (!own->cell) states = weft_squeeze_at(m->where, weft_narrow_at(m->where, states, 0, at, 1), 0);
    return weft__computed(m, states);
}

/* Runs one direction of one layer: x (T, B, inputs) -> (T, B, hidden). last gets the last h and c. */
static weft_tensor *run_direction(weft_module *m, weft_tensor *x, size_t at, bool reverse,
                                  weft_tensor *lengths, weft_tensor **last) {
    const recurrent_own *own = m->user;
    const char *where = m->where;
    const size_t first = at * (own->biased ? 4 : 2);
    const weft_states *states = own->states;
    const weft_recurrent_options options = {
        .kind = own->kind,
        .reverse = reverse,
        .bias_ih = own->biased ? weft__parameter_of(m, first + BIAS_IH) : NULL,
        .bias_hh = own->biased ? weft__parameter_of(m, first + BIAS_HH) : NULL,
        .h = states ? state_at(m, states->h, (int64_t)at) : NULL,
        .c = states && own->kind == WEFT_LSTM ? state_at(m, states->c, (int64_t)at) : NULL,
        .lengths = lengths};
    weft_tensor *turned = weft_transpose_at(where, weft__parameter_of(m, first + WEIGHT_IH), 0, 1);
    return weft_recurrent_at(where, weft_matmul_at(where, x, turned),
                             weft__parameter_of(m, first + WEIGHT_HH), &options, last);
}

/* Runs all layers on x (T, B, in). h and c get the last states of each layer and direction. */
static weft_tensor *run_layers(weft_module *m, weft_tensor *x, weft_tensor *lengths, weft_tensor **h,
                               weft_tensor **c) {
    const recurrent_own *own = m->user;
    const char *where = m->where;
    for (int64_t layer = 0; layer < own->layers; layer++) {
        weft_tensor *y[2];
        if (layer > 0 && own->dropout > 0 && m->ctx->training) x = weft_dropout_at(where, x, own->dropout);
        for (int d = 0; d < own->directions; d++) {
            const int64_t at = layer * own->directions + d;
            weft_tensor *last[2] = {NULL, NULL};
            y[d] = run_direction(m, x, (size_t)at, d == 1, lengths, last);
            h[at] = last[0];
            c[at] = last[1];
        }
        x = own->directions == 2 ? weft_concat_at(where, y, 2, -1) : y[0];
        if (weft__poisoned(x)) break;
    }
    return x;
}

static weft_tensor *shape_error(const weft_module *m, const weft_tensor *x, const char *what) {
    const recurrent_own *own = m->user;
    char text[WEFT_SHAPE_TEXT];
    return weft__poison(m->ctx, m->where, WEFT_ERR_SHAPE, "%s: %s %s must be (%s%lld)", m->kind, what,
                        weft__tensor_text(x, text),
                        own->cell         ? "batch, "
                        : own->time_first ? "time, batch, "
                                          : "batch, time, ",
                        (long long)own->in);
}

/* NULL if the states of the call fit x (T, B, in); else a poisoned tensor. */
static weft_tensor *reject_states(const weft_module *m, const weft_tensor *x) {
    const recurrent_own *own = m->user;
    int64_t want[3];
    const int rank = weft_states_shape(m, x->shape[1], want);
    weft_tensor *given[2] = {own->states ? own->states->h : NULL, own->states ? own->states->c : NULL};
    if (given[1] && own->kind != WEFT_LSTM)
        return weft__poison(m->ctx, m->where, WEFT_ERR_ARGUMENT, "%s: only an LSTM has a state c", m->kind);
    for (int i = 0; i < 2; i++) {
        if (!given[i]) continue;
        weft_tensor *bad = weft__reject(m->kind, m->where, &given[i], 1);
        if (bad) return bad;
        bool fits = given[i]->rank == rank && given[i]->ctx == m->ctx;
        for (int k = 0; k < rank && fits; k++) fits = given[i]->shape[k] == want[k];
        char text[WEFT_SHAPE_TEXT];
        if (!fits)
            return weft__poison(m->ctx, m->where, WEFT_ERR_SHAPE,
                                "%s: state %s must be (%s%lld, %lld): layers and directions, batch, width",
                                m->kind, weft__tensor_text(given[i], text), own->cell ? "" : "n, ",
                                (long long)x->shape[1], (long long)own->hidden);
    }
    return NULL;
}

/* Stores the last states of all layers in the states of the call. */
static void give_states(weft_module *m, weft_tensor **h, weft_tensor **c) {
    const recurrent_own *own = m->user;
    const int count = (int)own->layers * own->directions;
    if (!own->states) return;
    for (int k = 0; k < 2; k++) {
        weft_tensor **of = k ? c : h;
        if (k && own->kind != WEFT_LSTM) break;
        weft_tensor *all = own->cell ? of[0] : weft_stack_at(m->where, of, count, 0);
        *(k ? &own->states->c : &own->states->h) = all;
    }
}

static weft_tensor *recurrent_forward(weft_module *m, weft_tensor *x) {
    const recurrent_own *own = m->user;
    const char *where = m->where;
    weft_context *ctx = m->ctx;
    if (x->rank != (own->cell ? 2 : 3) || x->shape[x->rank - 1] != own->in) return shape_error(m, x, "input");
    if (own->cell) x = weft_unsqueeze_at(where, x, 0);
    if (!own->cell && !own->time_first) x = weft_permute_at(where, x, (int[]){1, 0, 2});
    weft_tensor *bad = weft__poisoned(x) ? x : reject_states(m, x);
    if (bad) return bad;
    weft_tensor *lengths = own->lengths ? lengths_tensor(m, x, own->lengths) : NULL;
    if (lengths && lengths->error) return lengths;
    const size_t count = (size_t)own->layers * (size_t)own->directions;
    weft_tensor **last = weft__array(ctx, 2 * count, sizeof *last);
    if (!last) return &ctx->graph->oom;
    weft_tensor *y = run_layers(m, x, lengths, last, last + count);
    if (!weft__poisoned(y)) give_states(m, last, last + count);
    weft__free(ctx, last);
    if (own->cell) return weft_squeeze_at(where, y, 0);
    return own->time_first ? y : weft_permute_at(where, y, (int[]){1, 0, 2});
}

#undef weft_forward_from
weft_tensor *weft_forward_from_at(const char *where, weft_module *m, weft_tensor *x, weft_states *states,
                                  const int64_t *lengths) {
    WEFT_NEED_OR_POISON(weft_context_of(x), where, m);
    WEFT_NEED_OR_POISON(m->ctx, where, x);
    weft_module *layer = (weft_module *)weft__recurrent_in(m);
    if (!is_recurrent(layer)) {
        if (!m->ctx || m->error || x->error) return weft_forward_at(where, m, x);
        return weft__poison(m->ctx, where, WEFT_ERR_ARGUMENT,
                            "forward: %s has no states; run it with weft_forward", m->kind);
    }
    recurrent_own *own = layer->user;
    own->states = states;
    own->lengths = lengths;
    weft_tensor *y = weft_forward_at(where, m, x);
    own->states = NULL;
    own->lengths = NULL;
    if (states && weft__poisoned(y)) {
        states->h = y;
        if (own->kind == WEFT_LSTM) states->c = y;
    }
    return y;
}

weft_tensor *weft_forward_from(weft_module *m, weft_tensor *x, weft_states *states, const int64_t *lengths) {
    return weft_forward_from_at(NULL, m, x, states, lengths);
}

/* ---- making layers and cells ---- */

static void add_parameters(weft_module *m, const recurrent_own *own, int64_t layer, int direction,
                           weft_dtype dtype) {
    const int64_t gates = (own->kind == WEFT_LSTM ? 4 : own->kind == WEFT_GRU ? 3 : 1) * own->hidden;
    const int64_t in = layer ? own->hidden * own->directions : own->in;
    const weft_init init = {WEFT_INIT_UNIFORM, 1.0 / sqrt((double)own->hidden)};
    static const char *const names[] = {"weight_ih", "weight_hh", "bias_ih", "bias_hh"};
    for (int i = 0; i < (own->biased ? 4 : 2); i++) {
        char name[64];
        if (own->cell)
            snprintf(name, sizeof name, "%s", names[i]);
        else
            snprintf(name, sizeof name, "%s_l%lld%s", names[i], (long long)layer,
                     direction ? "_reverse" : "");
        const int64_t shape[2] = {gates, i == WEIGHT_IH ? in : own->hidden};
        weft_module_parameter(m, name, dtype, i < BIAS_IH ? 2 : 1, shape, &init);
    }
}

static weft_module *recurrent_make(weft_context *ctx, const char *kind,
                                   const weft_recurrent_layer_options *options, recurrent_own own) {
    const weft_recurrent_layer_options o = options ? *options : (weft_recurrent_layer_options){0};
    weft_module *m = weft__module_make(ctx, kind, recurrent_forward, sizeof own);
    if (m->error) return m;
    own.layers = own.cell || o.layers == 0 ? 1 : o.layers;
    own.directions = o.bidirectional && !own.cell ? 2 : 1;
    own.biased = !o.no_bias;
    own.time_first = o.time_first;
    own.dropout = o.dropout;
    if (own.in < 1 || own.hidden < 1 || own.hidden > INT32_MAX / 8 || own.layers < 1 || own.layers > 10000)
        return weft__module_poison(
            m, WEFT_ERR_ARGUMENT,
            "%s: %lld inputs, width %lld and %lld layers must be positive, and none may be huge", kind,
            (long long)own.in, (long long)own.hidden, (long long)own.layers);
    if (!(o.dropout >= 0.0 && o.dropout < 1.0))
        return weft__module_poison(m, WEFT_ERR_ARGUMENT, "%s: dropout %g is not in 0..1", kind, o.dropout);
    *(recurrent_own *)m->user = own;
    for (int64_t layer = 0; layer < own.layers; layer++)
        for (int d = 0; d < own.directions && !m->error; d++) add_parameters(m, &own, layer, d, o.dtype);
    return m;
}

weft_module *weft_nn_lstm(weft_context *ctx, int64_t in, int64_t hidden,
                          const weft_recurrent_layer_options *options) {
    return recurrent_make(ctx, "lstm", options,
                          (recurrent_own){.kind = WEFT_LSTM, .in = in, .hidden = hidden});
}

weft_module *weft_nn_gru(weft_context *ctx, int64_t in, int64_t hidden,
                         const weft_recurrent_layer_options *options) {
    return recurrent_make(ctx, "gru", options, (recurrent_own){.kind = WEFT_GRU, .in = in, .hidden = hidden});
}

weft_module *weft_nn_rnn(weft_context *ctx, int64_t in, int64_t hidden, bool relu,
                         const weft_recurrent_layer_options *options) {
    const weft_recurrent_kind kind = relu ? WEFT_RNN_RELU : WEFT_RNN_TANH;
    return recurrent_make(ctx, "rnn", options, (recurrent_own){.kind = kind, .in = in, .hidden = hidden});
}

weft_module *weft_nn_lstm_cell(weft_context *ctx, int64_t in, int64_t hidden,
                               const weft_recurrent_layer_options *options) {
    return recurrent_make(ctx, "lstm_cell", options,
                          (recurrent_own){.kind = WEFT_LSTM, .in = in, .hidden = hidden, .cell = true});
}

weft_module *weft_nn_gru_cell(weft_context *ctx, int64_t in, int64_t hidden,
                              const weft_recurrent_layer_options *options) {
    return recurrent_make(ctx, "gru_cell", options,
                          (recurrent_own){.kind = WEFT_GRU, .in = in, .hidden = hidden, .cell = true});
}

weft_module *weft_nn_rnn_cell(weft_context *ctx, int64_t in, int64_t hidden, bool relu,
                              const weft_recurrent_layer_options *options) {
    const weft_recurrent_kind kind = relu ? WEFT_RNN_RELU : WEFT_RNN_TANH;
    return recurrent_make(ctx, "rnn_cell", options,
                          (recurrent_own){.kind = kind, .in = in, .hidden = hidden, .cell = true});
}
