/* Losses mse, l1, huber, bce_with_logits, cross_entropy and dpo_loss, with every reduction, and
 * log-probabilities of texts. For f16 and bf16 inputs the loss is f32. */
#include "ops/grad.h"

static const char *const reduction_names[] = {"mean", "sum", "none"};

/* Reduces the values and error bounds of single elements. divisor: the divisor of the mean. */
static array *reduced(matrix *m, const array *each, weft_reduction reduction, real divisor) {
    if (reduction == WEFT_NONE) return (array *)(uintptr_t)each;
    array *y = array_new(m, each->dtype, SCALAR_SHAPE);
    real sum = 0, magnitude = 0, bound = 0;
    for (int64_t k = 0; k < each->n; k++) {
        sum += each->f[k];
        magnitude += fabsl(each->f[k]);
        bound += each->bound[k];
    }
    real by = reduction == WEFT_MEAN ? divisor : 1;
    y->f[0] = sum / by;
    y->bound = ops_alloc(m, sizeof *y->bound);
    y->bound[0] = bound / by + bound_sum(each->dtype, each->n, magnitude / by, y->f[0]);
    return y;
}

/* ---- losses of two tensors of one shape ---- */

typedef struct pair_loss {
    const char *name;
    weft_tensor *(*fn)(weft_tensor *x, weft_tensor *t, weft_reduction reduction);
    real (*reference)(real x, real t, real *size); /* size: receives the largest intermediate value */
} pair_loss;

static real mse(real x, real t, real *size) { return *size = (x - t) * (x - t); }
static real l1(real x, real t, real *size) { return *size = fabsl(x - t); }
static real huber(real x, real t, real *size) {
    real d = fabsl(x - t);
    *size = 0.75L * (d + 1);
    return d <= 0.75L ? 0.5L * d * d : 0.75L * (d - 0.375L);
}
static real bce(real x, real t, real *size) {
    *size = fabsl(x) + 1;
    return (x > 0 ? x : 0) - x * t + log1pl(expl(-fabsl(x)));
}

static weft_tensor *call_huber(weft_tensor *x, weft_tensor *t, weft_reduction reduction) {
    return weft_huber(x, t, 0.75, reduction);
}

static const pair_loss mse_ = {"mse", weft_mse, mse}, l1_ = {"l1", weft_l1, l1},
                       huber_ = {"huber", call_huber, huber},
                       bce_ = {"bce_with_logits", weft_bce_with_logits, bce};

static array *expect_pair(matrix *m, const pair_loss *op, const array *x, const array *t,
                          weft_reduction reduction) {
    weft_dtype wide = x->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    array *each = array_like(m, x, wide);
    each->bound = ops_alloc(m, (size_t)(each->n + 1) * sizeof *each->bound);
    for (int64_t k = 0; k < x->n; k++) {
        real size;
        each->f[k] = op->reference(x->f[k], t->f[k], &size);
        each->bound[k] = 6 * roundoff(wide) * size + bound_store(wide, each->f[k]);
    }
    return reduced(m, each, reduction, (real)x->n);
}

static void check_pair(matrix *m, const pair_loss *op, weft_dtype dtype, shape s, view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, GEN_NORMAL),
            t = operand_new(m, dtype, s, VIEW_PLAIN, GEN_NORMAL);
    if (op == &bce_) { /* targets between 0 and 1 */
        array *h = array_like(m, t.h, dtype);
        for (int64_t k = 0; k < h->n; k++) h->f[k] = rounded(dtype, (real)(ops_random(m) % 5) / 4);
        t = operand_of(m, h);
    }
    for (int r = WEFT_MEAN; r <= WEFT_NONE; r++)
        if (shape_count(s) || r != WEFT_MEAN)
            ops_check(m, op->name, dtype,
                      ops_text(m, "%s %s %s", reduction_names[r], view_name(view), shape_text(m, s)),
                      op->fn(x.t, t.t, (weft_reduction)r), expect_pair(m, op, x.h, t.h, (weft_reduction)r),
                      TOLERANCE_GIVEN);
}

static void run_pair(matrix *m, const pair_loss *op) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op->name, dtype)) continue;
        operand x = operand_new(m, dtype, SHAPE(3, 1), VIEW_PLAIN, GEN_NORMAL);
        if (!is_float(dtype)) {
            ops_refused(m, op->name, dtype, "dtype", op->fn(x.t, x.t, WEFT_MEAN), WEFT_ERR_DTYPE);
            continue;
        }
        operand row = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
        operand other = operand_new(m, d == 0 ? WEFT_F16 : WEFT_F32, SHAPE(3, 1), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, op->name, dtype, "broadcast", op->fn(x.t, row.t, WEFT_MEAN), WEFT_ERR_SHAPE);
        ops_refused(m, op->name, dtype, "mixed dtypes", op->fn(x.t, other.t, WEFT_MEAN), WEFT_ERR_DTYPE);
        ops_refused(m, op->name, dtype, "reduction 7", op->fn(x.t, x.t, (weft_reduction)7),
                    WEFT_ERR_ARGUMENT);
        for (int i = 0; i < ops_n_sizes; i++) check_pair(m, op, dtype, ops_sizes[i], VIEW_PLAIN);
        for (int v = 1; v < VIEW_COUNT; v++) check_pair(m, op, dtype, SHAPE(17, 31), (view_kind)v);
    }
    ops_flush(m);
}

typedef struct use {
    const pair_loss *op;
    weft_reduction reduction;
} use;

static weft_tensor *build_pair(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                               const void *user) {
    const use *u = user;
    (void)ctx, (void)dtype;
    return u->op->fn(in[0], in[1], u->reduction);
}

/* Gradients with respect to both operands, since a target may have a gradient too. Values are multiples of
 * 1/6 apart, which avoids kinks: no difference is 0, and each is 1/12 away from the point where huber becomes
 * linear. */
static void gradient_pair(matrix *m, const pair_loss *op) {
    for (int r = WEFT_MEAN; r <= WEFT_NONE; r++) {
        use u = {op, (weft_reduction)r};
        const bool kinks = op == &l1_ || op == &huber_;
        grad_check(m, &(grad_case){.op = op->name,
                                   .sample = reduction_names[r],
                                   .n = 2,
                                   .s = {SHAPE(3, 4), SHAPE(3, 4)},
                                   .low = op == &bce_ ? 0.1 : -2,
                                   .high = op == &bce_ ? 0.9 : 2,
                                   .avoid = kinks ? AVOID_TIES : AVOID_NOTHING,
                                   .build = build_pair,
                                   .user = &u});
    }
}

static weft_tensor *build_of_zeros(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                   const void *user) {
    (void)ctx, (void)dtype;
    return ((const pair_loss *)user)->fn(in[0], weft_zeros_like(in[0]), WEFT_SUM);
}

/* Gradients where a prediction is NaN or infinite are PyTorch's. For NaN, l1 gives 0 as abs does, and huber
 * gives NaN. At infinity the gradient of huber is delta. */
static void gradient_at_infinity(matrix *m, const pair_loss *op) {
    const double nan = (double)NAN, inf = HUGE_VAL, x[5] = {nan, inf, -inf, 0.5, 2},
                 l1_want[5] = {0, 1, -1, 1, 1}, huber_want[5] = {nan, 0.75, -0.75, 0.5, 0.75};
    if (op != &l1_ && op != &huber_) return;
    grad_expect(m,
                &(grad_case){.op = op->name,
                             .sample = "infinite",
                             .n = 1,
                             .s = {SHAPE(5)},
                             .build = build_of_zeros,
                             .user = op},
                x, op == &l1_ ? l1_want : huber_want);
}

#define PAIR_LOSS(name, ref)                                                                                 \
    void ops_case_##name(matrix *m);                                                                         \
    void ops_case_##name(matrix *m) { run_pair(m, &ref); }                                                   \
    void ops_grad_##name(matrix *m);                                                                         \
    void ops_grad_##name(matrix *m) {                                                                        \
        gradient_pair(m, &ref);                                                                              \
        gradient_at_infinity(m, &ref);                                                                       \
    }
PAIR_LOSS(mse, mse_)
PAIR_LOSS(l1, l1_)
PAIR_LOSS(huber, huber_)
PAIR_LOSS(bce_with_logits, bce_)

/* ---- cross-entropy ---- */

static array *expect_cross_entropy(matrix *m, const array *x, const array *t, weft_cross_entropy_options o) {
    weft_dtype wide = x->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    array *each = array_new(m, wide, t->s);
    each->bound = ops_alloc(m, (size_t)(each->n + 1) * sizeof *each->bound);
    int64_t c = x->s.dim[x->s.rank - 1], counted = 0;
    for (int64_t i = 0; i < t->n; i++) {
        real largest = -HUGE_VALL, sum = 0, mean = 0, far = 0;
        const real *v = x->f + i * c;
        if (o.use_ignore && t->i[i] == o.ignore) continue;
        counted++;
        for (int64_t j = 0; j < c; j++) largest = v[j] > largest ? v[j] : largest;
        for (int64_t j = 0; j < c; j++) {
            sum += expl(v[j] - largest);
            mean += (v[j] - largest) / (real)c;
            far = fmaxl(far, fabsl(v[j] - largest));
        }
        real nll = logl(sum) - (v[t->i[i]] - largest), smooth = logl(sum) - mean, s = (real)o.smoothing;
        each->f[i] = (1 - s) * nll + s * smooth;
        each->bound[i] = bound_softmax(wide, 4, c, logl(sum) + far + 1);
    }
    return reduced(m, each, o.reduction, counted || !o.use_ignore ? (real)counted : 1);
}

static void check_cross_entropy(matrix *m, weft_dtype dtype, weft_dtype classes, shape s, view_kind view,
                                weft_cross_entropy_options o) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, GEN_NORMAL);
    shape outer = {s.rank - 1, {0}};
    for (int i = 0; i < outer.rank; i++) outer.dim[i] = s.dim[i];
    array *t = array_new(m, classes, outer);
    for (int64_t k = 0; k < t->n; k++) {
        t->i[k] = (int64_t)(ops_random(m) % (uint64_t)s.dim[s.rank - 1]);
        if (o.use_ignore && ops_random(m) % 3 == 0) t->i[k] = o.ignore;
    }
    operand target = operand_of(m, t);
    ops_check(m, "cross_entropy", dtype,
              ops_text(m, "%s %s %s %s%s%s", reduction_names[o.reduction], weft_dtype_name(classes),
                       view_name(view), shape_text(m, s), o.use_ignore ? " ignoring" : "",
                       o.smoothing > 0 ? " smoothed" : ""),
              weft_cross_entropy(x.t, target.t, &o), expect_cross_entropy(m, x.h, t, o), TOLERANCE_GIVEN);
}

static void refusals_cross_entropy(matrix *m) {
    const int32_t above[2] = {0, 5}, below[2] = {-1, 0};
    operand x = operand_new(m, WEFT_F32, SHAPE(2, 5), VIEW_PLAIN, GEN_NORMAL);
    weft_tensor *t = weft_iota(m->ctx, WEFT_I32, DIMS(2));
    ops_refused(m, "cross_entropy", WEFT_F32, "float target",
                weft_cross_entropy(x.t, weft_narrow(x.t, 1, 0, 1), NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "cross_entropy", WEFT_F32, "float target",
                weft_cross_entropy(x.t, weft_max(x.t, 1, false), NULL), WEFT_ERR_DTYPE);
    ops_refused(m, "cross_entropy", WEFT_F32, "smoothing 2",
                weft_cross_entropy(x.t, t, &(weft_cross_entropy_options){.smoothing = 2}), WEFT_ERR_ARGUMENT);
    for (int i = 0; i < 2; i++) {
        weft_tensor *bad = weft_from(m->ctx, WEFT_I32, DIMS(2), i ? below : above);
        weft_tensor *y = weft_cross_entropy(x.t, bad, NULL);
        ops_hold(m, "cross_entropy", WEFT_F32, i ? "class -1" : "class C",
                 weft_eval(&y, 1) != WEFT_OK || weft_synchronize(m->ctx) != WEFT_OK);
    }
    ops_flush(m);
}

void ops_case_cross_entropy(matrix *m);
void ops_case_cross_entropy(matrix *m) {
    static const shape shapes[] = {{2, {1, 1}},      {1, {7}},         {2, {0, 5}},
                                   {2, {17, 10}},    {2, {33, 65}},    {2, {3, 1025}},
                                   {3, {2, 5, 129}}, {3, {7, 13, 31}}, {4, {2, 3, 2, 16}}};
    static const weft_dtype classes[] = {WEFT_I32, WEFT_I64, WEFT_U8};
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "cross_entropy", dtype)) continue;
        if (!is_float(dtype)) {
            operand x = operand_new(m, dtype, SHAPE(2, 5), VIEW_PLAIN, GEN_NORMAL);
            weft_tensor *t = weft_iota(m->ctx, WEFT_I32, DIMS(2));
            ops_refused(m, "cross_entropy", dtype, "dtype", weft_cross_entropy(x.t, t, NULL), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < COUNT(shapes); i++)
            for (int r = WEFT_MEAN; r <= WEFT_NONE; r++) {
                weft_cross_entropy_options o = {.reduction = (weft_reduction)r};
                bool none = shape_count(shapes[i]) == 0 && r == WEFT_MEAN;
                weft_dtype how = shapes[i].dim[shapes[i].rank - 1] > 255 ? WEFT_I32 : classes[(i + r) % 3];
                if (!none) check_cross_entropy(m, dtype, how, shapes[i], VIEW_PLAIN, o);
                o.use_ignore = true;
                o.ignore = r == WEFT_SUM ? -100 : 0;
                check_cross_entropy(m, dtype, r == WEFT_SUM ? WEFT_I32 : how, shapes[i], VIEW_PLAIN, o);
                o.smoothing = 0.1;
                check_cross_entropy(m, dtype, WEFT_I32, shapes[i], VIEW_PLAIN, o);
            }
        for (int v = 1; v < VIEW_COUNT; v++)
            check_cross_entropy(m, dtype, WEFT_I32, SHAPE(17, 31), (view_kind)v,
                                (weft_cross_entropy_options){.reduction = WEFT_MEAN});
    }
    refusals_cross_entropy(m);
}

static weft_tensor *build_cross_entropy(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                        const void *user) {
    const int32_t classes[6] = {3, 0, 2, 1, 0, 3};
    (void)dtype;
    return weft_cross_entropy(in[0], weft_from(ctx, WEFT_I32, DIMS(6), classes), user);
}

void ops_grad_cross_entropy(matrix *m);
void ops_grad_cross_entropy(matrix *m) {
    const weft_cross_entropy_options options[] = {
        {.reduction = WEFT_MEAN},
        {.reduction = WEFT_SUM, .smoothing = 0.2},
        {.reduction = WEFT_NONE, .use_ignore = true, .ignore = 0},
        {.reduction = WEFT_MEAN, .use_ignore = true, .ignore = 3, .smoothing = 0.1}};
    for (int i = 0; i < COUNT(options); i++)
        grad_check(m, &(grad_case){.op = "cross_entropy",
                                   .sample = ops_text(m, "options %d", i),
                                   .n = 1,
                                   .s = {SHAPE(6, 4)},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_cross_entropy,
                                   .user = &options[i]});
}

/* ---- preferences ---- */

/* Equation 7 of Rafailov et al. 2023, with label smoothing. */
static array *expect_dpo(matrix *m, const array *p, const array *r, weft_dpo_options o) {
    const weft_dtype wide = p->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    shape outer = p->s;
    outer.rank--;
    array *each = array_new(m, wide, outer);
    each->bound = ops_alloc(m, (size_t)(each->n + 1) * sizeof *each->bound);
    const real beta = o.beta > 0 ? (real)o.beta : 0.1L, s = (real)o.smoothing;
    for (int64_t i = 0; i < each->n; i++) {
        const real *a = p->f + 2 * i, *b = r->f + 2 * i;
        const real h = beta * (a[0] - b[0] - (a[1] - b[1]));
        const real size = beta * (fabsl(a[0]) + fabsl(a[1]) + fabsl(b[0]) + fabsl(b[1])) + 1;
        each->f[i] = (1 - s) * log1pl(expl(-h)) + s * log1pl(expl(h));
        each->bound[i] = 6 * roundoff(wide) * size + bound_store(wide, each->f[i]);
    }
    return reduced(m, each, o.reduction, (real)each->n);
}

static void check_dpo(matrix *m, weft_dtype dtype, shape s, view_kind view, weft_dpo_options o) {
    ops_breathe(m);
    operand p = operand_new(m, dtype, s, view, GEN_NORMAL),
            r = operand_new(m, dtype, s, VIEW_PLAIN, GEN_NORMAL);
    ops_check(m, "dpo_loss", dtype,
              ops_text(m, "%s %s %s beta %g smoothing %g", reduction_names[o.reduction], view_name(view),
                       shape_text(m, s), o.beta, o.smoothing),
              weft_dpo_loss(p.t, r.t, &o), expect_dpo(m, p.h, r.h, o), TOLERANCE_GIVEN);
}

static void refusals_dpo(matrix *m, weft_dtype dtype) {
    operand x = operand_new(m, dtype, SHAPE(3, 2), VIEW_PLAIN, GEN_NORMAL),
            three = operand_new(m, dtype, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL);
    const weft_dpo_options bad[] = {{.beta = -1}, {.smoothing = 1.5}, {.reduction = (weft_reduction)7}};
    if (!is_float(dtype)) {
        ops_refused(m, "dpo_loss", dtype, "dtype", weft_dpo_loss(x.t, x.t, NULL), WEFT_ERR_DTYPE);
        return;
    }
    ops_refused(m, "dpo_loss", dtype, "three", weft_dpo_loss(three.t, three.t, NULL), WEFT_ERR_SHAPE);
    ops_refused(m, "dpo_loss", dtype, "shapes", weft_dpo_loss(x.t, three.t, NULL), WEFT_ERR_SHAPE);
    for (int i = 0; i < COUNT(bad); i++)
        ops_refused(m, "dpo_loss", dtype, ops_text(m, "options %d", i), weft_dpo_loss(x.t, x.t, &bad[i]),
                    WEFT_ERR_ARGUMENT);
}

void ops_case_dpo_loss(matrix *m);
void ops_case_dpo_loss(matrix *m) {
    const shape shapes[] = {SHAPE(2), SHAPE(1, 2), SHAPE(7, 2), SHAPE(3, 5, 2), SHAPE(300, 2)};
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "dpo_loss", dtype)) continue;
        refusals_dpo(m, dtype);
        for (int r = WEFT_MEAN; r <= WEFT_NONE && is_float(dtype); r++)
            for (int i = 0; i < COUNT(shapes); i++) {
                const weft_reduction how = (weft_reduction)r;
                check_dpo(m, dtype, shapes[i], VIEW_PLAIN, (weft_dpo_options){.reduction = how});
                check_dpo(m, dtype, shapes[i], VIEW_PLAIN,
                          (weft_dpo_options){.reduction = how, .beta = 2.5, .smoothing = 0.2});
            }
        for (int v = 1; v < VIEW_COUNT && is_float(dtype); v++)
            check_dpo(m, dtype, SHAPE(17, 2), (view_kind)v, (weft_dpo_options){.reduction = WEFT_MEAN});
    }
    ops_flush(m);
}

static weft_tensor *build_dpo(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return weft_dpo_loss(in[0], in[1], user);
}

void ops_grad_dpo_loss(matrix *m);
void ops_grad_dpo_loss(matrix *m) {
    const weft_dpo_options options[] = {{.reduction = WEFT_MEAN},
                                        {.reduction = WEFT_SUM, .beta = 1.5, .smoothing = 0.3},
                                        {.reduction = WEFT_NONE, .beta = 0.5}};
    for (int i = 0; i < COUNT(options); i++)
        grad_check(m, &(grad_case){.op = "dpo_loss",
                                   .sample = ops_text(m, "options %d", i),
                                   .n = 2,
                                   .s = {SHAPE(5, 2), SHAPE(5, 2)},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_dpo,
                                   .user = &options[i]});
}

/* Draws the targets of `texts` texts that share a row of `time` places. Some places count for none of them.
 */
static array *draw_targets(matrix *m, weft_dtype dtype, shape s, int64_t classes) {
    array *t = array_new(m, dtype, s);
    const int64_t time = s.dim[s.rank - 1], texts = s.dim[s.rank - 2];
    for (int64_t i = 0; i < t->n; i++) t->i[i] = -1 - (int64_t)(ops_random(m) % 3);
    for (int64_t b = 0; b < t->n / (texts * time); b++)
        for (int64_t k = 0; k < time; k++) {
            const int64_t text = (int64_t)(ops_random(m) % (uint64_t)(texts + 1));
            if (text < texts)
                t->i[(b * texts + text) * time + k] = (int64_t)(ops_random(m) % (uint64_t)classes);
        }
    return t;
}

static array *expect_sequences(matrix *m, const array *x, const array *t) {
    const weft_dtype wide = x->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    shape outer = t->s;
    outer.rank--;
    const int64_t time = t->s.dim[outer.rank], texts = t->s.dim[outer.rank - 1], c = x->s.dim[outer.rank];
    array *y = array_new(m, wide, outer);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t i = 0; i < y->n; i++) {
        real magnitude = 0, bound = 0;
        for (int64_t k = 0; k < time; k++) {
            const int64_t class = t->i[i * time + k];
            const real *v = x->f + (i / texts * time + k) * c;
            real largest = -HUGE_VALL, sum = 0, far = 0;
            if (class < 0) continue;
            for (int64_t j = 0; j < c; j++) largest = v[j] > largest ? v[j] : largest;
            for (int64_t j = 0; j < c; j++) {
                sum += expl(v[j] - largest);
                far = fmaxl(far, fabsl(v[j] - largest));
            }
            const real log_prob = v[class] - largest - logl(sum);
            y->f[i] += log_prob;
            magnitude += fabsl(log_prob);
            bound += bound_softmax(wide, 4, c, logl(sum) + far + 1);
        }
        y->bound[i] = bound + bound_sum(wide, time, magnitude, y->f[i]);
    }
    return y;
}

static void check_sequences(matrix *m, weft_dtype dtype, weft_dtype whole, shape logits, int64_t texts,
                            view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, logits, view, GEN_NORMAL);
    shape s = logits;
    s.dim[s.rank - 2] = texts;
    s.dim[s.rank - 1] = logits.dim[s.rank - 2];
    array *t = draw_targets(m, whole, s, logits.dim[s.rank - 1]);
    operand target = operand_of(m, t);
    ops_check(m, "sequence_log_probs", dtype,
              ops_text(m, "%s %s %s, %d texts", weft_dtype_name(whole), view_name(view),
                       shape_text(m, logits), (int)texts),
              weft_sequence_log_probs(x.t, target.t), expect_sequences(m, x.h, t), TOLERANCE_GIVEN);
}

void ops_case_sequence_log_probs(matrix *m);
void ops_case_sequence_log_probs(matrix *m) {
    static const char name[] = "sequence_log_probs";
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, name, dtype)) continue;
        operand x = operand_new(m, dtype, SHAPE(2, 3, 5), VIEW_PLAIN, GEN_NORMAL);
        weft_tensor *t = weft_iota(m->ctx, WEFT_I32, DIMS(2, 1, 3));
        if (!is_float(dtype)) {
            ops_refused(m, name, dtype, "dtype", weft_sequence_log_probs(x.t, t), WEFT_ERR_DTYPE);
            continue;
        }
        ops_refused(m, name, dtype, "times", weft_sequence_log_probs(x.t, weft_narrow(t, 2, 0, 2)),
                    WEFT_ERR_SHAPE);
        ops_refused(m, name, dtype, "rank", weft_sequence_log_probs(x.t, weft_squeeze(t, 1)), WEFT_ERR_SHAPE);
        ops_refused(m, name, dtype, "u8", weft_sequence_log_probs(x.t, weft_cast(t, WEFT_U8)),
                    WEFT_ERR_DTYPE);
        check_sequences(m, dtype, WEFT_I32, SHAPE(40, 9, 13), 2, VIEW_PLAIN);
        for (int64_t texts = 1; texts <= 3; texts++) {
            check_sequences(m, dtype, WEFT_I32, SHAPE(4, 7), texts, VIEW_PLAIN);
            check_sequences(m, dtype, texts == 2 ? WEFT_I64 : WEFT_I32, SHAPE(3, 17, 31), texts, VIEW_PLAIN);
        }
        check_sequences(m, dtype, WEFT_I32, SHAPE(2, 2, 9, 5), 2, VIEW_PLAIN);
        for (int v = 1; v < VIEW_COUNT; v++)
            check_sequences(m, dtype, WEFT_I32, SHAPE(5, 6, 7), 2, (view_kind)v);
    }
    ops_flush(m);
}

static weft_tensor *build_sequences(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                    const void *user) {
    const int32_t targets[2][2][4] = {{{-1, 2, -1, -1}, {0, -1, -1, 1}}, {{2, 1, -1, -1}, {-1, -1, 0, -5}}};
    (void)dtype, (void)user;
    return weft_sequence_log_probs(in[0], weft_from(ctx, WEFT_I32, DIMS(2, 2, 4), targets));
}

void ops_grad_sequence_log_probs(matrix *m);
void ops_grad_sequence_log_probs(matrix *m) {
    grad_check(m, &(grad_case){.op = "sequence_log_probs",
                               .sample = "pairs",
                               .n = 1,
                               .s = {SHAPE(2, 4, 3)},
                               .low = -2,
                               .high = 2,
                               .build = build_sequences});
}
