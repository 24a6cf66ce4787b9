/* Recurrent layers for the GPU backends: for each time step a matmul and a launch of recurrent.cl, one after
 * the other. The launches of the matmul are made once and repeated with other offsets. So kernel sources and
 * choices do not depend on the number of steps.
 * Must not know: how launches run. Read next: recurrent.cl, matmul/matmul.c. */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "device/gpu/heavy/heavy.h"
#include "device/gpu/heavy/recurrent_params.h"
#include "device/gpu/backend/template.h"
#include "device/gpu/backend/kernel_source.h"

/* The number of each operand; -1: the layer does not have it. */
typedef struct operands {
    int x, w, b, d, h, c, states, gates, cells, more, lengths, dx, dh, dc, dz;
} operands;

typedef struct plan {
    weft_launches *launches;
    const weft_heavy_recurrent *r;
    weft_dtype dtype, sum;
    bool sink;
    int64_t gates;
    operands at;
    int first, products;        /* launches of the matmul, in the list */
    int64_t z, dc, pass, bytes; /* offsets in the scratch memory */
    const char *source;
} plan;

static operands operands_of(const weft_heavy_recurrent *r) {
    const bool lstm = r->kind == WEFT_LSTM, gated = lstm || r->kind == WEFT_GRU;
    operands o = {-1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1, -1};
    int n = 0;
    if (!r->backward) o.x = n++;
    o.w = n++;
    if (!r->backward) o.b = n++, o.d = n++, o.h = n++;
    if (!r->backward && lstm) o.c = n++;
    if (!r->backward && r->masked) o.lengths = n++;
    o.states = n++;
    if (gated) o.gates = n++;
    if (lstm) o.cells = n++;
    if (!r->backward) return o;
    if (lstm) o.c = n++;
    o.more = n++;
    if (r->masked) o.lengths = n++;
    o.dx = n++, o.dh = n++;
    if (lstm) o.dc = n++;
    if (r->kind == WEFT_GRU) o.dz = n++;
    return o;
}

static weft_heavy_matmul product_of(const plan *p) {
    const int64_t h = p->r->width, g = p->gates * h;
    weft_heavy_matmul mm = {.dtype = (uint8_t)p->dtype, .out_dtype = (uint8_t)p->sum, .m = p->r->batch};
    if (p->r->backward)
        mm.k = g, mm.n = h, mm.a_m = g, mm.b_k = h, mm.b_n = 1;
    else
        mm.k = h, mm.n = g, mm.a_m = h, mm.b_k = 1, mm.b_n = h;
    mm.a_k = 1;
    mm.c_m = mm.n;
    return mm;
}

bool weft__gpu_recurrent_takes(const weft_target *target, const weft_heavy_recurrent *r) {
    const plan p = {.r = r,
                    .dtype = (weft_dtype)r->dtype,
                    .sum = weft__gpu_sum_dtype((weft_dtype)r->dtype),
                    .gates = r->kind == WEFT_LSTM  ? 4
                             : r->kind == WEFT_GRU ? 3
                                                   : 1};
    if (!weft_dtype_is_float((weft_dtype)r->dtype) || !weft__gpu_knows(target, (weft_dtype)r->dtype))
        return false;
    if (r->batch == 0 || r->width == 0) return false;
    const weft_heavy_matmul mm = product_of(&p);
    return weft__gpu_matmul_takes(target, &mm);
}

/* ---- the matmul ---- */

static int64_t rounded(int64_t bytes) { return (bytes + 255) / 256 * 256; }

/* Returns the left operand of the matmul: the states, or the gradients of what the matmul returned. */
static int left_of(const plan *p) {
    return !p->r->backward ? p->at.states : p->r->kind == WEFT_GRU ? p->at.dz : p->at.dx;
}

/* Makes the launches of the matmul and removes them from the list again. Offsets in scratch memory follow
 * what the matmul keeps there. */
static weft_status make_product(plan *p, weft_launch **made) {
    weft_launches *l = p->launches;
    const weft_heavy heavy = {.kind = WEFT_HEAVY_MATMUL, .as.matmul = product_of(p)};
    const int64_t size = (int64_t)weft_dtype_size(p->sum), state = p->r->batch * p->r->width;
    const int first = l->count;
    const uint8_t *const all = l->aligned, both[] = {all ? all[left_of(p)] : 0, all ? all[p->at.w] : 0};
    l->aligned = both;
    const weft_status status = weft__gpu_matmul(l, &heavy, p->sink);
    l->aligned = all;
    WEFT_TRY(status);
    p->products = l->count - first;
    *made = weft__arena_alloc(l->arena, (size_t)p->products * sizeof **made);
    if (!*made) return weft__fail_oom(l->ctx, 0, "a launch");
    memcpy(*made, l->list + first, (size_t)p->products * sizeof **made);
    l->count = first;
    p->z = rounded(l->scratch_bytes);
    p->dc = p->z + rounded(state * (p->r->backward ? 1 : p->gates) * size);
    p->pass = p->dc + rounded(p->r->backward ? state * size : 0);
    l->scratch_bytes = p->pass + rounded(p->r->backward ? state * size : 0);
    return WEFT_OK;
}

/* Adds the matmul again, for the rows at byte `from` of its left operand. The result goes to z. */
static weft_status add_product(const plan *p, const weft_launch *made, int64_t from) {
    for (int i = 0; i < p->products; i++) {
        weft_launch launch = made[i];
        weft_argument *own = weft__arena_alloc(p->launches->arena, (size_t)launch.n_arguments * sizeof *own);
        if (!own) return weft__fail_oom(p->launches->ctx, 0, "a launch");
        memcpy(own, launch.arguments, (size_t)launch.n_arguments * sizeof *own);
        for (int k = 0; k < launch.n_arguments; k++) {
            weft_argument *arg = &own[k];
            if (arg->kind != WEFT_ARGUMENT_OPERAND) continue;
            if (arg->index == 2)
                *arg = (weft_argument)SCRATCH(p->z, p->sum);
            else if (arg->index == 0)
                arg->index = left_of(p), arg->i = from;
            else
                arg->index = p->at.w;
        }
        launch.arguments = own;
        WEFT_TRY(weft__launch(p->launches, &launch));
    }
    return WEFT_OK;
}

/* ---- the rest of a step ---- */

_Static_assert(sizeof(w_step) == 11 * 8 + 4 * 4, "no padding");

typedef struct step {
    w_step numbers;
    int x, dz; /* operands that replace the usual ones; 0: the usual ones */
} step;

static const char *make_source(const plan *p) {
    const bool wide = p->sum == WEFT_F64;
    char head[320];
    snprintf(head, sizeof head,
             "#define RNN_TANH %d\n#define RNN_RELU %d\n#define LSTM %d\n#define GRU %d\n"
             "#define KIND %d\n#define BACK %d\n#define FN(f) f##_%s\n#define RELU_BACK(h, d) "
             "w_sel_%s(w_bool((h) > 0), d, (S)0)\n",
             WEFT_RNN_TANH, WEFT_RNN_RELU, WEFT_LSTM, WEFT_GRU, (int)p->r->kind, p->r->backward,
             wide ? "f64" : "f32", wide ? "f64" : "f32");
    return weft__gpu_template_source(p->launches, p->dtype, head, weft__source_recurrent);
}

static weft_status add_step(const plan *p, const step *s) {
    const weft_heavy_recurrent *r = p->r;
    const operands *o = &p->at;
    /* the operand for arguments that are not read */
    const int items = p->launches->target->lanes, none = o->w;
    const int dx = s->x ? s->x : r->backward ? o->dx : o->x, dz = s->dz ? s->dz : o->dz;
    w_step of = s->numbers;
    of.batch = r->batch, of.width = r->width, of.gates = p->gates;
    of.masked = r->masked, of.sink = p->sink;
#define OR_NONE(i) ((i) < 0 ? none : (i))
#define PERHAPS(i, type, w)                                                                                  \
    {.kind = WEFT_ARGUMENT_OPERAND, .index = OR_NONE(i), .dtype = (uint8_t)(type), .written = (w) && (i) >= 0}
    weft_argument arguments[] = {PERHAPS(dx, p->dtype, r->backward),
                                 SCRATCH(p->z, p->sum),
                                 PERHAPS(o->b, p->dtype, false),
                                 PERHAPS(o->d, p->dtype, false),
                                 PERHAPS(o->states, p->dtype, !r->backward),
                                 PERHAPS(o->gates, p->dtype, !r->backward),
                                 PERHAPS(o->cells, p->sum, !r->backward),
                                 PERHAPS(o->c, p->dtype, false),
                                 PERHAPS(r->backward ? o->more : o->h, p->dtype, false),
                                 PERHAPS(o->lengths, WEFT_I32, false),
                                 SCRATCH(p->dc, p->sum),
                                 SCRATCH(p->pass, p->sum),
                                 PERHAPS(dz, p->dtype, r->backward),
                                 STRUCT(of),
                                 FAULT};
#undef PERHAPS
#undef OR_NONE
    arguments[1].written = false;
    const unsigned more = p->sum == WEFT_F64 ? WEFT_PRELUDE_F64 : WEFT_PRELUDE_F32;
    const weft_launch launch = {.name = "recurrent",
                                .source = p->source,
                                .prelude = more | WEFT_PRELUDE_LANES,
                                ARGUMENTS(arguments),
                                .groups = {weft__ceil_div(r->batch * r->width, items), 1, 1},
                                .items = {items, 1, 1}};
    return weft__launch(p->launches, &launch);
}

/* ---- all time steps ---- */

static step step_at(const plan *p, int64_t t) {
    const weft_heavy_recurrent *r = p->r;
    const int64_t state = r->batch * r->width, next = r->reverse ? t + 1 : t - 1;
    return (step){.numbers = {.x_row = t * state * p->gates,
                              .state = (t + !r->reverse) * state,
                              .last = (t + r->reverse) * state,
                              .gate = t * 4 * state,
                              .cell = t * state,
                              .before = next < 0 || next == r->t ? -1 : next * state,
                              .end = -1,
                              .t = t}};
}

static weft_status run_forward(const plan *p, const weft_launch *made) {
    const weft_heavy_recurrent *r = p->r;
    const int64_t state = r->batch * r->width, size = (int64_t)weft_dtype_size(p->dtype);
    const step begin = {.numbers = {.state = r->reverse ? r->t * state : 0, .start = STEP_FIRST}};
    WEFT_TRY(add_step(p, &begin));
    for (int64_t i = 0; i < r->t; i++) {
        step s = step_at(p, r->reverse ? r->t - 1 - i : i);
        if (i == r->t - 1) s.numbers.end = (r->t + 1) * state;
        WEFT_TRY(add_product(p, made, s.numbers.last * size));
        WEFT_TRY(add_step(p, &s));
    }
    return WEFT_OK;
}

static weft_status run_backward(const plan *p, const weft_launch *made) {
    const weft_heavy_recurrent *r = p->r;
    const int64_t state = r->batch * r->width, size = (int64_t)weft_dtype_size(p->dtype);
    for (int64_t i = 0; i < r->t; i++) {
        step s = step_at(p, r->reverse ? i : r->t - 1 - i);
        if (i == 0) s.numbers.start = STEP_FIRST, s.numbers.end = (r->t + 1) * state;
        WEFT_TRY(add_step(p, &s));
        WEFT_TRY(add_product(p, made, s.numbers.x_row * size));
    }
    const step end = {.numbers = {.state = r->reverse ? r->t * state : 0, .start = STEP_AFTER},
                      .x = p->at.dc,
                      .dz = p->at.dh};
    step last = end;
    if (last.x < 0) last.x = p->at.dx;
    return add_step(p, &last);
}

weft_status weft__gpu_recurrent(weft_launches *launches, const weft_heavy *heavy, bool sink) {
    const weft_heavy_recurrent *r = &heavy->as.recurrent;
    plan p = {.launches = launches,
              .r = r,
              .dtype = (weft_dtype)r->dtype,
              .sum = weft__gpu_sum_dtype((weft_dtype)r->dtype),
              .sink = sink,
              .gates = r->kind == WEFT_LSTM  ? 4
                       : r->kind == WEFT_GRU ? 3
                                             : 1,
              .at = operands_of(r)};
    weft_launch *made;
    p.source = make_source(&p);
    if (!p.source) return weft__fail_oom(launches->ctx, 0, "the kernel source of a recurrent layer");
    WEFT_TRY(make_product(&p, &made));
    return r->backward ? run_backward(&p, made) : run_forward(&p, made);
}
