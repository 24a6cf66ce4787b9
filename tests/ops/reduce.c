/* Reductions: sum, max, min, prod, mean, var, std, norm, any, all, argmax, argmin, sum_to. The references add
 * elements one by one in long double. */
#include "ops/grad.h"

typedef enum kind { SUM, MAX, MIN, PROD, MEAN, VAR, STD, NORM, ANY, ALL, ARGMAX, ARGMIN } kind;

typedef struct reduction {
    const char *name;
    weft_tensor *(*fn)(weft_tensor *x, int axis, bool keep);
    kind kind;
    int accept;
    real number; /* VAR, STD: correction. NORM: p */
} reduction;

static weft_tensor *var_0(weft_tensor *x, int axis, bool keep) { return weft_var(x, axis, 0, keep); }
static weft_tensor *var_1(weft_tensor *x, int axis, bool keep) { return weft_var(x, axis, 1, keep); }
static weft_tensor *std_1(weft_tensor *x, int axis, bool keep) { return weft_std(x, axis, 1, keep); }
static weft_tensor *norm_0(weft_tensor *x, int axis, bool keep) { return weft_norm(x, 0, axis, keep); }
static weft_tensor *norm_1(weft_tensor *x, int axis, bool keep) { return weft_norm(x, 1, axis, keep); }
static weft_tensor *norm_2(weft_tensor *x, int axis, bool keep) { return weft_norm(x, 2, axis, keep); }
static weft_tensor *norm_3(weft_tensor *x, int axis, bool keep) { return weft_norm(x, 3, axis, keep); }
static weft_tensor *norm_less(weft_tensor *x, int axis, bool keep) { return weft_norm(x, -1, axis, keep); }
static weft_tensor *norm_high(weft_tensor *x, int axis, bool keep) {
    return weft_norm(x, HUGE_VAL, axis, keep);
}
static weft_tensor *norm_low(weft_tensor *x, int axis, bool keep) {
    return weft_norm(x, -HUGE_VAL, axis, keep);
}

static const reduction sum_ = {"sum", weft_sum, SUM, ACCEPT_ANY, 0};
static const reduction max_ = {"max", weft_max, MAX, ACCEPT_ANY, 0};
static const reduction min_ = {"min", weft_min, MIN, ACCEPT_ANY, 0};
static const reduction prod_ = {"prod", weft_prod, PROD, ACCEPT_ANY, 0};
static const reduction mean_ = {"mean", weft_mean, MEAN, ACCEPT_FLOAT, 0};
static const reduction var_ = {"var", var_0, VAR, ACCEPT_FLOAT, 0};
static const reduction sample_var = {"var", var_1, VAR, ACCEPT_FLOAT, 1};
static const reduction std_ = {"std", std_1, STD, ACCEPT_FLOAT, 1};
static const reduction norm_ = {"norm", norm_2, NORM, ACCEPT_FLOAT, 2};
static const reduction norms[] = {{"norm", norm_0, NORM, ACCEPT_FLOAT, 0},
                                  {"norm", norm_1, NORM, ACCEPT_FLOAT, 1},
                                  {"norm", norm_3, NORM, ACCEPT_FLOAT, 3},
                                  {"norm", norm_less, NORM, ACCEPT_FLOAT, -1},
                                  {"norm", norm_high, NORM, ACCEPT_FLOAT, HUGE_VALL},
                                  {"norm", norm_low, NORM, ACCEPT_FLOAT, -HUGE_VALL}};
static const reduction any_ = {"any", weft_any, ANY, ACCEPT_ANY, 0};
static const reduction all_ = {"all", weft_all, ALL, ACCEPT_ANY, 0};
static const reduction argmax_ = {"argmax", weft_argmax, ARGMAX, ACCEPT_ANY, 0};
static const reduction argmin_ = {"argmin", weft_argmin, ARGMIN, ACCEPT_ANY, 0};

/* Does the reduction need at least one element? */
static bool needs_one(const reduction *r) {
    return (r->kind == NORM && isinf(r->number)) || r->kind == MAX || r->kind == MIN || r->kind == ARGMAX ||
           r->kind == ARGMIN;
}
static bool chooses(kind k) { return k == MAX || k == MIN || k == ARGMAX || k == ARGMIN; }

/* ---- references ---- */

/* Statistics of the elements that are reduced to one result. */
typedef struct group {
    real sum, magnitude, squares, product, best, distances, powers, high, low;
    int64_t nonzero, isum, iproduct, ibest, best_at, count;
} group;

/* The dtype of the result. Sums of integers narrower than 64 bits are i64, except in sum_to. */
static weft_dtype result_of(const reduction *r, weft_dtype dtype) {
    if (r->kind == ARGMAX || r->kind == ARGMIN) return WEFT_I32;
    if (r->kind == ANY || r->kind == ALL) return WEFT_BOOL;
    const bool adds = (r->kind == SUM || r->kind == PROD) && r->fn;
    return adds && !is_float(dtype) && weft_dtype_size(dtype) < 8 ? WEFT_I64 : dtype;
}

static void take(group *g, const reduction *r, const array *x, weft_dtype to, int64_t k) {
    bool first = g->count == 0, lowest = r->kind == MIN || r->kind == ARGMIN;
    if (x->f) {
        real v = x->f[k];
        g->sum += v;
        g->magnitude += fabsl(v);
        g->nonzero += v != 0;
        if (r->kind == NORM) g->powers += powl(fabsl(v), r->number);
        g->high = first || fabsl(v) > g->high ? fabsl(v) : g->high;
        g->low = first || fabsl(v) < g->low ? fabsl(v) : g->low;
        g->squares += v * v;
        g->product = first ? v : g->product * v;
        bool better = !isnan(g->best) && (isnan(v) || (lowest ? v < g->best : v > g->best));
        if (first || better) {
            g->best = v;
            g->best_at = g->count;
        }
    } else {
        int64_t v = x->i[k], key = ordered(x->dtype, v);
        g->nonzero += v != 0;
        g->isum = wrap(to, (int64_t)((uint64_t)g->isum + (uint64_t)v));
        g->iproduct = first ? v : wrap(to, (int64_t)((uint64_t)g->iproduct * (uint64_t)v));
        const int64_t best = ordered(x->dtype, g->ibest);
        if (first || (lowest ? key < best : key > best)) {
            g->ibest = v;
            g->best_at = g->count;
        }
    }
    g->count++;
}

/* The index of the group that element k of x belongs to. */
static int64_t group_of(const array *x, unsigned mask, shape kept, int64_t k) {
    int64_t at[WEFT_MAX_RANK];
    unravel(x->s, k, at);
    for (int i = 0; i < x->s.rank; i++)
        if (mask >> i & 1u) at[i] = 0;
    return position(kept, at);
}

static real norm_of(const reduction *r, const group *g) {
    if (isinf(r->number)) return r->number > 0 ? g->high : g->low;
    if (r->number == 0) return (real)g->nonzero;
    if (r->number < 0 && g->nonzero < g->count) return 0;
    return powl(g->powers, 1 / r->number);
}

/* Error bound of the square root of a variance v, which is itself off by at most `bound`. */
static real bound_root(weft_dtype dtype, real v, real bound) {
    return fminl(sqrtl(bound), v > 0 ? bound / sqrtl(v) : HUGE_VALL) + 8 * bound_store(dtype, sqrtl(v));
}

static void finish_float(array *y, int64_t j, const reduction *r, const group *g) {
    real n = (real)g->count, mean = g->sum / n;
    switch (r->kind) {
    case SUM:
        y->f[j] = g->sum;
        y->bound[j] = bound_sum(y->dtype, g->count, g->magnitude, g->sum);
        break;
    case PROD:
        y->f[j] = g->count ? g->product : 1;
        y->bound[j] = bound_product(y->dtype, g->count, y->f[j]);
        break;
    case MEAN:
        y->f[j] = mean;
        y->bound[j] = bound_sum(y->dtype, g->count, g->magnitude / n, mean);
        break;
    case NORM: {
        real steps = 2 * log2l(n > 1 ? n : 1) + 40,
             tiny = ulp_of(y->dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32, 0);
        y->f[j] = norm_of(r, g);
        y->bound[j] =
            isinf(r->number) || r->number == 0
                ? bound_store(y->dtype, y->f[j])
                : steps * (roundoff_sum(y->dtype) * fabsl(y->f[j]) + tiny) + bound_store(y->dtype, y->f[j]);
        break;
    }
    case STD:
    case VAR: {
        real variance = g->distances / fmaxl(0, n - r->number), rms = sqrtl(g->squares / n),
             steps = 2 * log2l(n > 1 ? n : 1) + 12;
        real floor_ = steps * roundoff_sum(y->dtype) * rms;
        y->f[j] = variance;
        y->bound[j] =
            bound_norm(y->dtype, g->count, rms, sqrtl(variance), variance, variance) + floor_ * floor_;
        if (r->kind == VAR) break;
        y->f[j] = sqrtl(variance);
        y->bound[j] = bound_root(y->dtype, variance, y->bound[j]);
        break;
    }
    default: y->f[j] = g->best; break;
    }
}

static void finish(array *y, int64_t j, const reduction *r, const group *g) {
    if (r->kind == ARGMAX || r->kind == ARGMIN)
        y->i[j] = g->best_at;
    else if (r->kind == ANY || r->kind == ALL)
        y->i[j] = r->kind == ANY ? g->nonzero > 0 : g->nonzero == g->count;
    else if (y->f)
        finish_float(y, j, r, g);
    else
        y->i[j] = r->kind == SUM ? g->isum : r->kind == PROD ? (g->count ? g->iproduct : 1) : g->ibest;
}

static unsigned mask_of(shape s, int axis) {
    if (axis == WEFT_ALL_AXES) return (1u << s.rank) - 1u;
    return 1u << (axis < 0 ? axis + s.rank : axis);
}

static array *expect(matrix *m, const reduction *r, const array *x, unsigned mask, bool keep) {
    shape kept = x->s, dropped = {0};
    for (int i = 0; i < x->s.rank; i++) {
        if (mask >> i & 1u) kept.dim[i] = 1;
        if (keep || !(mask >> i & 1u)) dropped.dim[dropped.rank++] = kept.dim[i];
    }
    array *y = array_new(m, result_of(r, x->dtype), dropped);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    group *groups = ops_alloc(m, (size_t)(y->n + 1) * sizeof *groups);
    for (int64_t k = 0; k < x->n; k++) take(&groups[group_of(x, mask, kept, k)], r, x, y->dtype, k);
    for (int64_t k = 0; k < x->n && (r->kind == VAR || r->kind == STD); k++) {
        group *g = &groups[group_of(x, mask, kept, k)];
        real d = x->f[k] - g->sum / (real)g->count;
        g->distances += d * d;
    }
    for (int64_t j = 0; j < y->n; j++) finish(y, j, r, &groups[j]);
    return y;
}

/* ---- samples ---- */

static void check(matrix *m, const reduction *r, const char *what, operand x, int axis, bool keep) {
    unsigned mask = mask_of(x.h->s, axis);
    int64_t count = 1;
    for (int i = 0; i < x.h->s.rank; i++)
        if (mask >> i & 1u) count *= x.h->s.dim[i];
    const char *sample = axis == WEFT_ALL_AXES
                             ? ops_text(m, "%s %s all", what, shape_text(m, x.h->s))
                             : ops_text(m, "%s %s axis %d", what, shape_text(m, x.h->s), axis);
    if (count == 0 && needs_one(r)) {
        ops_refused(m, r->name, x.h->dtype, sample, r->fn(x.t, axis, keep), WEFT_ERR_SHAPE);
        return;
    }
    tolerance how = chooses(r->kind)                   ? TOLERANCE_CHOICE
                    : r->kind == ANY || r->kind == ALL ? TOLERANCE_COPY
                                                       : TOLERANCE_GIVEN;
    ops_check(m, r->name, x.h->dtype, sample, r->fn(x.t, axis, keep), expect(m, r, x.h, mask, keep), how);
}

static generator generator_of(const reduction *r) {
    const bool steps = chooses(r->kind) || r->kind == ANY || r->kind == ALL;
    return r->kind == PROD ? GEN_NEAR_ONE : steps ? GEN_STEPS : GEN_NORMAL;
}

static void check_shape(matrix *m, const reduction *r, weft_dtype dtype, shape s, view_kind view,
                        generator gen) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, gen);
    const char *what = gen == GEN_SPECIAL ? "specials" : gen == GEN_POSITIVE ? "positive" : view_name(view);
    bool keep = ops_drawn(m, r->name, WEFT_F32, shape_text(m, s), 2); /* the same choice for all dtypes */
    check(m, r, what, x, WEFT_ALL_AXES, keep);
    for (int axis = 0; axis < s.rank; axis++)
        check(m, r, what, x, ops_random(m) & 1 ? axis : axis - s.rank, !keep);
}

static void check_edges(matrix *m, const reduction *r, weft_dtype dtype) {
    static const int64_t edges[] = {0, 1, 15, 16, 17, 31, 33, 127, 129, 1023, 1025};
    for (int i = 0; i < COUNT(edges); i++) {
        ops_breathe(m);
        operand rows = operand_new(m, dtype, SHAPE(3, edges[i]), VIEW_PLAIN, generator_of(r));
        operand columns = operand_new(m, dtype, SHAPE(edges[i], 17), VIEW_PLAIN, generator_of(r));
        operand middle = operand_new(m, dtype, SHAPE(2, edges[i], 3), VIEW_PLAIN, GEN_POSITIVE);
        check(m, r, "rows", rows, -1, false);
        check(m, r, "columns", columns, 0, false);
        if (r->kind != PROD) check(m, r, "middle", middle, 1, true);
    }
}

static void check_large(matrix *m, const reduction *r) {
    generator gen = r->kind == PROD ? GEN_STEPS : GEN_POSITIVE;
    ops_flush(m);
    check(m, r, "large", operand_new(m, WEFT_F32, SHAPE((1 << 20) + 3), VIEW_PLAIN, gen), 0, false);
    ops_flush(m);
    operand x = operand_new(m, WEFT_F32, SHAPE(1031, 517), VIEW_PLAIN, gen);
    check(m, r, "large", x, 0, false);
    check(m, r, "large", x, 1, false);
    ops_flush(m);
}

static void run(matrix *m, const reduction *r) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, r->name, dtype)) continue;
        if (!accepts(r->accept, d)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            ops_refused(m, r->name, dtype, "dtype", r->fn(x.t, 0, false), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < ops_n_sizes; i++)
            check_shape(m, r, dtype, ops_sizes[i], VIEW_PLAIN, generator_of(r));
        for (int i = 0; i < ops_n_views; i++)
            for (int v = 1; v < VIEW_COUNT; v++)
                check_shape(m, r, dtype, ops_views[i], (view_kind)v, generator_of(r));
        check_edges(m, r, dtype);
        if (chooses(r->kind)) check_shape(m, r, dtype, SHAPE(46), VIEW_PLAIN, GEN_SPECIAL);
        if (r->kind != PROD) check_shape(m, r, dtype, SHAPE(3, 700), VIEW_PLAIN, GEN_POSITIVE);
        if (!m->slow && dtype == WEFT_F32) check_large(m, r);
    }
    ops_flush(m);
}

/* NaN and infinity in a sum. A mean of 1000 with a deviation of 1, where a one-pass formula would lose all
 * digits. */
static void check_hard(matrix *m, const reduction *r) {
    for (int d = 0; d < 4; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, r->name, dtype)) continue;
        array *x = array_random(m, dtype, SHAPE(4, 33), GEN_NORMAL);
        x->f[5] = NAN;
        x->f[33 + 7] = HUGE_VALL;
        x->f[66 + 7] = HUGE_VALL;
        x->f[66 + 9] = -HUGE_VALL;
        check(m, r, "infinities", operand_of(m, x), 1, false);
        array *far = array_random(m, dtype, SHAPE(3, 129), GEN_POSITIVE);
        for (int64_t k = 0; k < far->n; k++) far->f[k] = rounded(dtype, 1000 + far->f[k]);
        check(m, r, "mean 1000", operand_of(m, far), 1, false);
    }
    ops_flush(m);
}

/* ---- gradients ---- */

typedef struct use {
    const reduction *r;
    int axis;
    bool keep;
} use;

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const use *u = user;
    (void)ctx;
    weft_tensor *y = u->r->fn(in[0], u->axis, u->keep);
    return weft_dtype_of(y) != dtype ? weft_cast(y, dtype) : y;
}

static void gradient(matrix *m, const reduction *r) {
    const struct {
        shape s;
        int axis;
        bool keep;
    } samples[] = {{SHAPE(7), 0, false},
                   {SHAPE(3, 4), 0, false},
                   {SHAPE(3, 4), -1, true},
                   {SHAPE(2, 3, 4), 1, false},
                   {SHAPE(2, 3, 4), WEFT_ALL_AXES, false},
                   {SHAPE(1, 5), 0, true},
                   {SHAPE(33, 5), 0, false},
                   {SHAPE(5, 33), 1, false}};
    bool none = r->kind == ARGMAX || r->kind == ARGMIN || r->kind == ANY || r->kind == ALL;
    for (int i = 0; i < COUNT(samples); i++) {
        use u = {r, samples[i].axis, samples[i].keep};
        const bool estimate = (r->kind == VAR || r->kind == STD) && r->number > 0;
        if ((r->kind == STD || estimate) && samples[i].s.dim[0] == 1)
            continue; /* of one element the gradient is 0, or there is none */
        grad_case c = {.op = r->name,
                       .blames = r->kind == ANY || r->kind == ALL ? "cast" : "eq",
                       .sample = ops_text(m, "%s axis %d", shape_text(m, samples[i].s), u.axis),
                       .n = 1,
                       .s = {samples[i].s},
                       .low = r->kind == STD ? -3 : 0.5, /* away from 0, where the root is steep */
                       .high = r->kind == STD ? 3 : 1.5,
                       .avoid = needs_one(r) ? AVOID_TIES : AVOID_NOTHING,
                       .build = build,
                       .user = &u};
        (none ? grad_none : grad_check)(m, &c);
    }
}

#define REDUCTION(name, extra_case, extra_grad)                                                              \
    void ops_case_##name(matrix *m);                                                                         \
    void ops_case_##name(matrix *m) {                                                                        \
        run(m, &name##_);                                                                                    \
        extra_case;                                                                                          \
    }                                                                                                        \
    void ops_grad_##name(matrix *m);                                                                         \
    void ops_grad_##name(matrix *m) {                                                                        \
        gradient(m, &name##_);                                                                               \
        extra_grad;                                                                                          \
    }

static void grad_ties(matrix *m, const reduction *r) {
    const double x[6] = {2, 1, 2, 1, 1, 2}, high[6] = {1 / 3.0, 0, 1 / 3.0, 0, 0, 1 / 3.0},
                 low[6] = {0, 1 / 3.0, 0, 1 / 3.0, 1 / 3.0, 0};
    use u = {r, WEFT_ALL_AXES, false};
    grad_expect(
        m,
        &(grad_case){.op = r->name, .sample = "ties", .n = 1, .s = {SHAPE(2, 3)}, .build = build, .user = &u},
        x, r->kind == MAX ? high : low);
    /* If there are NaNs, they share the gradient, as in PyTorch's max and min. */
    const double nan = (double)NAN, some[6] = {nan, 1, nan, 1, 2, 2}, shares[6] = {0.5, 0, 0.5, 0, 0.5, 0.5},
                 least[6] = {0.5, 0, 0.5, 1, 0, 0};
    u.axis = 1;
    grad_expect(
        m,
        &(grad_case){.op = r->name, .sample = "NaN", .n = 1, .s = {SHAPE(2, 3)}, .build = build, .user = &u},
        some, r->kind == MAX ? shares : least);
}

static void grad_zeros(matrix *m) {
    const double x[9] = {0, 2, 3, 0, 0, 3, 1, 2, 3}, want[9] = {6, 0, 0, 0, 0, 0, 6, 3, 2};
    use u = {&prod_, 1, false};
    grad_expect(
        m,
        &(grad_case){.op = "prod", .sample = "zeros", .n = 1, .s = {SHAPE(3, 3)}, .build = build, .user = &u},
        x, want);
    /* L = a xyz has slopes ayz, axz and axy. The sum of these has slopes a(y + z), a(x + z) and a(x + y). a
     * is 1, 2 and 3. A zero in the same row must not hide a NaN. */
    const double second[9] = {5, 3, 2, 6, 6, 0, 15, 12, 9}, nan = (double)NAN, few[3] = {0, nan, 3},
                 nans[3] = {nan, nan, nan};
    const grad_case plain = {
        .op = "prod", .n = 1, .s = {SHAPE(3, 3)}, .low = 0.5, .high = 1.5, .build = build, .user = &u};
    grad_case slope = plain, beside_nan = plain;
    slope.sample = "slope", slope.build = grad_slope, slope.user = &plain;
    if (!m->gpu) { /* on GPUs this would compile 26 more kernels, of ops that other tests cover */
        grad_expect(m, &slope, x, second);
        grad_check(m, &slope);
    }
    beside_nan.sample = "NaN", beside_nan.s[0] = SHAPE(1, 3);
    grad_expect(m, &beside_nan, few, nans);
}

/* On GPUs, only p = 2 and p = 3 are tested. */
static void other_norms(matrix *m) {
    for (int i = 0; i < COUNT(norms); i++)
        if (!m->gpu || norms[i].number == 3) run(m, &norms[i]);
    operand x = operand_new(m, WEFT_F32, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, "norm", WEFT_F32, "NaN", weft_norm(x.t, (double)NAN, 0, false), WEFT_ERR_ARGUMENT);
}

/* The gradient of a norm is 0 at 0. */
static void grad_norms(matrix *m) {
    const double x[4] = {0, 0, 3, -4}, want[4] = {0, 0, 0.6, -0.8};
    use u = {&norm_, 1, false};
    grad_expect(
        m,
        &(grad_case){.op = "norm", .sample = "at 0", .n = 1, .s = {SHAPE(2, 2)}, .build = build, .user = &u},
        x, want);
    for (int i = 0; i < COUNT(norms); i++)
        if (norms[i].number != 0) gradient(m, &norms[i]);
}

REDUCTION(sum, check_hard(m, &sum_), (void)0)
REDUCTION(max, (void)0, grad_ties(m, &max_))
REDUCTION(min, (void)0, grad_ties(m, &min_))
REDUCTION(prod, (void)0, grad_zeros(m))
REDUCTION(mean, check_hard(m, &mean_), (void)0)
REDUCTION(var, check_hard(m, &var_); run(m, &sample_var), gradient(m, &sample_var))
REDUCTION(std, check_hard(m, &std_), (void)0)
REDUCTION(norm, other_norms(m), grad_norms(m))
REDUCTION(any, (void)0, (void)0)
REDUCTION(all, (void)0, (void)0)
REDUCTION(argmax, (void)0, (void)0)
REDUCTION(argmin, (void)0, (void)0)

/* ---- sum_to ---- */

typedef struct pair {
    shape from, to;
} pair;

static const pair pairs[] = {{{2, {3, 4}}, {1, {4}}},
                             {{2, {3, 4}}, {2, {3, 1}}},
                             {{2, {3, 4}}, {0, {0}}},
                             {{3, {2, 33, 5}}, {2, {33, 1}}},
                             {{1, {7}}, {1, {7}}},
                             {{3, {2, 3, 4}}, {3, {1, 3, 1}}},
                             {{4, {3, 5, 7, 4}}, {3, {1, 7, 4}}},
                             {{2, {0, 3}}, {2, {1, 3}}},
                             {{2, {129, 65}}, {2, {1, 65}}}};

static void check_sum_to(matrix *m, weft_dtype dtype, pair p, view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, p.from, view, GEN_NORMAL);
    unsigned mask = 0;
    int lead = p.from.rank - p.to.rank;
    for (int i = 0; i < p.from.rank; i++)
        if (i < lead || (p.to.dim[i - lead] == 1 && p.from.dim[i] != 1)) mask |= 1u << i;
    static const reduction same = {"sum_to", NULL, SUM, ACCEPT_NUMBER, 0};
    array *want = expect(m, &same, x.h, mask, true);
    want->s = p.to;
    ops_check(m, "sum_to", dtype,
              ops_text(m, "%s %s to %s", view_name(view), shape_text(m, p.from), shape_text(m, p.to)),
              weft_sum_to(x.t, p.to.rank, p.to.dim), want, TOLERANCE_GIVEN);
}

void ops_case_sum_to(matrix *m);
void ops_case_sum_to(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "sum_to", dtype)) continue;
        if (!accepts(ACCEPT_NUMBER, d)) {
            operand x = operand_new(m, dtype, SHAPE(3), VIEW_PLAIN, GEN_NORMAL);
            ops_refused(m, "sum_to", dtype, "dtype", weft_sum_to(x.t, 0, NULL), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < COUNT(pairs); i++)
            for (int v = 0; v < VIEW_COUNT; v++) check_sum_to(m, dtype, pairs[i], (view_kind)v);
        operand x = operand_new(m, dtype, SHAPE(3, 4), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "sum_to", dtype, "other shape", weft_sum_to(x.t, DIMS(3)), WEFT_ERR_SHAPE);
    }
    ops_flush(m);
}

static weft_tensor *build_sum_to(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    const pair *p = user;
    (void)ctx, (void)dtype;
    return weft_sum_to(in[0], p->to.rank, p->to.dim);
}

void ops_grad_sum_to(matrix *m);
void ops_grad_sum_to(matrix *m) {
    for (int i = 0; i < 6; i++)
        grad_check(m, &(grad_case){.op = "sum_to",
                                   .sample = shape_text(m, pairs[i].to),
                                   .n = 1,
                                   .s = {pairs[i].from},
                                   .low = -2,
                                   .high = 2,
                                   .build = build_sum_to,
                                   .user = &pairs[i]});
}
