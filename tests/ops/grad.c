/* Checks gradients: one held program gives the result and its gradients; inputs are written anew for each
 * difference (8 (f(+h) - f(-h)) - (f(+2h) - f(-2h))) / 12h, whose error is of order h^4. The whole Jacobian
 * where it is small, else three random directions. */
#include "device/gpu/hooks.h"
#include "device/opencl/hooks.h"
#include "ops/grad.h"

enum { JACOBIAN_MOST = 64, DIRECTIONS = 3 };
static const double step = 1e-3, accepted = 1e-7;

/* A function of variables, with the program that computes it and its gradients weighted by `weights`. */
typedef struct function {
    int n;
    weft_tensor *x[GRAD_OPERANDS], *weights, *value, *grad[GRAD_OPERANDS];
    double *at[GRAD_OPERANDS]; /* values of x */
    int64_t size[GRAD_OPERANDS], total, results;
    weft_program *program;
} function;

/* ---- values ---- */

static double *numbers(matrix *m, int64_t n) { return ops_alloc(m, (size_t)(n + 1) * sizeof(double)); }

/* Values for all operands, in f32 exactly, away from where the op is not smooth. */
static void choose_values(matrix *m, const grad_case *c, function *f) {
    int64_t done = 0;
    double *all = numbers(m, f->total);
    for (int64_t k = 0; k < f->total; k++) {
        double u = ops_uniform(m);
        switch (c->avoid) {
        case AVOID_ZERO: all[k] = (ops_random(m) & 1 ? 1 : -1) * (0.05 + u * (c->high - 0.05)); break;
        case AVOID_HALVES:
            all[k] = 0.5 * floor(2 * c->low + u * 2 * (c->high - c->low)) + 0.05 + 0.4 * ops_uniform(m);
            break;
        case AVOID_TIES: all[k] = c->low + (c->high - c->low) * ((double)k + 0.5) / (double)f->total; break;
        default: all[k] = c->low + u * (c->high - c->low); break;
        }
    }
    for (int64_t k = f->total - 1; k > 0 && c->avoid == AVOID_TIES; k--) {
        int64_t other = (int64_t)(ops_random(m) % (uint64_t)(k + 1));
        double v = all[k];
        all[k] = all[other];
        all[other] = v;
    }
    for (int i = 0; i < f->n; i++) {
        for (int64_t k = 0; k < f->size[i]; k++) f->at[i][k] = (double)(float)all[done++];
    }
}

static double *random_direction(matrix *m, int64_t n) {
    double *d = numbers(m, n);
    for (int64_t k = 0; k < n; k++) d[k] = 2 * ops_uniform(m) - 1;
    return d;
}

/* ---- programs ---- */

static weft_tensor *weighted_sum(weft_tensor *y, weft_tensor *weights) {
    return weft_sum(weft_mul(y, weights), WEFT_ALL_AXES, false);
}

/* A node of its own, so that a program may have it as output whatever it is. */
static weft_tensor *fresh(weft_tensor *t) { return weft_mul_scalar(t, 1); }

/* Variables of the operands' shapes; at[] filled. */
static void open_operands(matrix *m, const grad_case *c, weft_dtype dtype, function *f) {
    *f = (function){.n = c->n};
    for (int i = 0; i < c->n; i++) {
        f->x[i] = weft_variable_new(m->ctx, "x", dtype, c->s[i].rank, c->s[i].dim, NULL);
        f->size[i] = shape_count(c->s[i]);
        f->total += f->size[i];
        f->at[i] = numbers(m, f->size[i]);
    }
}

/* Records the gradients of y by x, and y itself if wanted; appends them to the outputs of a program. */
static weft_status record_outputs(matrix *m, function *f, weft_dtype dtype, weft_tensor *y, bool with_value,
                                  weft_tensor **outputs, size_t *n) {
    weft_status status = weft_tensor_status(y);
    if (status != WEFT_OK) return status;
    f->results = weft_numel(y);
    f->weights = weft_variable_new(m->ctx, "weights", dtype, weft_rank(y), weft_shape(y), NULL);
    status = weft_gradient(weighted_sum(y, f->weights), f->x, (size_t)f->n, f->grad);
    if (status != WEFT_OK) return status;
    if (with_value) outputs[(*n)++] = f->value = fresh(y);
    for (int i = 0; i < f->n; i++) outputs[(*n)++] = f->grad[i] = fresh(f->grad[i]);
    return WEFT_OK;
}

/* Holds them as one program. */
static weft_status open_program(matrix *m, function *f, weft_dtype dtype, weft_tensor *y, bool with_value) {
    weft_tensor *outputs[GRAD_OPERANDS + 1];
    size_t n = 0;
    weft_status status = record_outputs(m, f, dtype, y, with_value, outputs, &n);
    return status == WEFT_OK ? weft_compile(outputs, n, NULL, NULL, 0, &f->program) : status;
}

static void close_function(function *f) {
    weft_program_free(f->program);
    for (int i = 0; i < f->n; i++) weft_free(f->x[i]);
    weft_free(f->weights);
}

/* ---- numbers in any dtype ---- */

static weft_status write_numbers(matrix *m, weft_tensor *t, const double *v) {
    array *a = array_new(m, weft_dtype_of(t), (shape){0, {0}});
    int64_t n = weft_numel(t);
    size_t size = weft_dtype_size(a->dtype);
    char *data = ops_alloc(m, (size_t)n * size + 1);
    for (int64_t k = 0; k < n; k++) {
        float f32 = (float)v[k];
        uint16_t half = a->dtype == WEFT_F16 ? weft_f32_to_f16(f32) : weft_f32_to_bf16(f32);
        if (a->dtype == WEFT_F64)
            memcpy(data + 8 * k, &v[k], 8);
        else if (a->dtype == WEFT_F32)
            memcpy(data + 4 * k, &f32, 4);
        else
            memcpy(data + 2 * k, &half, 2);
    }
    return weft_write(t, data, (size_t)n * size);
}

static weft_status read_numbers(matrix *m, weft_tensor *t, double *v) {
    weft_dtype dtype = weft_dtype_of(t);
    int64_t n = weft_numel(t);
    size_t bytes = (size_t)n * weft_dtype_size(dtype);
    char *data = ops_alloc(m, bytes + 1);
    weft_status status = weft_read(t, data, bytes);
    for (int64_t k = 0; k < n && status == WEFT_OK; k++) {
        float f32 = 0;
        uint16_t half = 0;
        if (dtype == WEFT_F64)
            memcpy(&v[k], data + 8 * k, 8);
        else if (dtype == WEFT_F32)
            memcpy(&f32, data + 4 * k, 4);
        else
            memcpy(&half, data + 2 * k, 2);
        if (dtype != WEFT_F64)
            v[k] = (double)(dtype == WEFT_F32   ? f32
                            : dtype == WEFT_F16 ? weft_f16_to_f32(half)
                                                : weft_bf16_to_f32(half));
    }
    return status;
}

/* The values at `at` plus `by` times the direction (of all operands one after the other). */
static weft_status evaluate(matrix *m, function *f, const double *direction, double by, double *value) {
    const double *d = direction;
    for (int i = 0; i < f->n; i++) {
        double *moved = numbers(m, f->size[i]);
        for (int64_t k = 0; k < f->size[i]; k++) moved[k] = f->at[i][k] + (d ? by * *d++ : 0);
        weft_status status = write_numbers(m, f->x[i], moved);
        if (status != WEFT_OK) return status;
    }
    weft_status status = weft_run(f->program);
    return status == WEFT_OK && value ? read_numbers(m, f->value, value) : status;
}

/* The derivative of every result along a direction. */
static weft_status differences(matrix *m, function *f, const double *direction, double *slope) {
    static const double offset[4] = {1, -1, 2, -2}, weight[4] = {8, -8, -1, 1};
    double *value = numbers(m, f->results);
    memset(slope, 0, (size_t)f->results * sizeof *slope);
    for (int k = 0; k < 4; k++) {
        weft_status status = evaluate(m, f, direction, offset[k] * step, value);
        if (status != WEFT_OK) return status;
        for (int64_t j = 0; j < f->results; j++) slope[j] += weight[k] * value[j] / (12 * step);
    }
    return WEFT_OK;
}

/* The gradient of the sum of the results times weights, for all operands one after the other. */
static weft_status analytic(matrix *m, function *f, const double *weights, double *gradient) {
    weft_status status = write_numbers(m, f->weights, weights);
    if (status == WEFT_OK) status = evaluate(m, f, NULL, 0, NULL);
    for (int i = 0; i < f->n && status == WEFT_OK; i++) {
        status = read_numbers(m, f->grad[i], gradient);
        gradient += f->size[i];
    }
    return status;
}

/* ---- comparisons ---- */

typedef struct outcome {
    double worst; /* relative */
    double a, numeric;
    int64_t at;
} outcome;

static void note(outcome *o, int64_t at, double a, double numeric) {
    double scale = fmax(1, fmax(fabs(a), fabs(numeric))), error = fabs(a - numeric) / scale;
    if (error <= o->worst) return;
    *o = (outcome){error == error ? error : HUGE_VAL, a, numeric, at};
}

static weft_status check_jacobian(matrix *m, function *f, outcome *o) {
    double *numeric = numbers(m, f->total * f->results), *row = numbers(m, f->total);
    double *direction = numbers(m, f->total), *weights = numbers(m, f->results),
           *slope = numbers(m, f->results);
    weft_status status = WEFT_OK;
    for (int64_t i = 0; i < f->total && status == WEFT_OK; i++) {
        direction[i] = 1;
        status = differences(m, f, direction, slope);
        direction[i] = 0;
        for (int64_t j = 0; j < f->results; j++) numeric[j * f->total + i] = slope[j];
    }
    for (int64_t j = 0; j < f->results && status == WEFT_OK; j++) {
        weights[j] = 1;
        status = analytic(m, f, weights, row);
        weights[j] = 0;
        for (int64_t i = 0; i < f->total; i++) note(o, j * f->total + i, row[i], numeric[j * f->total + i]);
    }
    return status;
}

static weft_status check_directions(matrix *m, function *f, outcome *o) {
    double *slope = numbers(m, f->results), *gradient = numbers(m, f->total);
    weft_status status = WEFT_OK;
    for (int k = 0; k < DIRECTIONS && status == WEFT_OK; k++) {
        const double *direction = random_direction(m, f->total), *weights = random_direction(m, f->results);
        double numeric = 0, a = 0;
        status = differences(m, f, direction, slope);
        if (status == WEFT_OK) status = analytic(m, f, weights, gradient);
        for (int64_t j = 0; j < f->results; j++) numeric += weights[j] * slope[j];
        for (int64_t i = 0; i < f->total; i++) a += gradient[i] * direction[i];
        note(o, k, a, numeric);
    }
    return status;
}

/* One cell: sample with a word before it. */
static void conclude(matrix *m, const grad_case *c, weft_dtype dtype, const char *what, weft_status status,
                     double worst, const char *why) {
    bool fine = status == WEFT_OK && worst <= 1;
    if (status != WEFT_OK && m->refused_before != weft__gpu_hook.refused) { /* spare, and not known */
        m->refused_before = weft__gpu_hook.refused;
        m->left_out++;
        return;
    }
    if (worst > m->worst) m->worst = worst;
    if (!fine)
        printf("%s %s %s: %s\n", c->op, what, c->sample, status == WEFT_OK ? why : weft_last_error(m->ctx));
    ops_hold(m, c->op, dtype, ops_text(m, "%s %s", what, c->sample), fine);
}

static void check_function(matrix *m, const grad_case *c, function *f, const char *what) {
    outcome o = {0};
    weft_status status = f->total <= JACOBIAN_MOST && f->results <= JACOBIAN_MOST
                             ? check_jacobian(m, f, &o)
                             : check_directions(m, f, &o);
    conclude(m, c, WEFT_F64, what, status, o.worst / accepted,
             ops_text(m, "number %lld: analytic %.12g, numeric %.12g", (long long)o.at, o.a, o.numeric));
}

/* The first derivatives, weighted by constants and added, are a function with one result: its gradient. */
static void check_second(matrix *m, const grad_case *c, const function *first) {
    function f;
    weft_tensor *grads[GRAD_OPERANDS], *sum = NULL;
    open_operands(m, c, WEFT_F64, &f);
    for (int i = 0; i < f.n; i++) f.at[i] = first->at[i];
    weft_tensor *y = c->build(m->ctx, WEFT_F64, f.x, c->user);
    weft_tensor *weights =
        weft_from(m->ctx, WEFT_F64, weft_rank(y), weft_shape(y), random_direction(m, first->results));
    weft_status status = weft_gradient(weighted_sum(y, weights), f.x, (size_t)f.n, grads);
    for (int i = 0; i < f.n && status == WEFT_OK; i++) {
        weft_tensor *mix =
            weft_from(m->ctx, WEFT_F64, c->s[i].rank, c->s[i].dim, random_direction(m, f.size[i]));
        weft_tensor *part = weighted_sum(grads[i], mix);
        sum = sum ? weft_add(sum, part) : part;
    }
    if (status == WEFT_OK) status = open_program(m, &f, WEFT_F64, sum, true);
    if (status == WEFT_OK)
        check_function(m, c, &f, "second");
    else
        conclude(m, c, WEFT_F64, "second", status, 0, "");
    close_function(&f);
}

static weft_tensor *narrow_result(matrix *m, const grad_case *c, weft_dtype dtype, weft_tensor **x) {
    weft_tensor *y = c->build(m->ctx, dtype, x, c->user);
    return weft_tensor_status(y) == WEFT_OK && weft_dtype_of(y) != dtype ? weft_cast(y, dtype) : y;
}

/* The gradient in a narrower dtype against the one in f64 at the same values. */
static void check_narrow(matrix *m, const grad_case *c, function *wide, weft_dtype dtype) {
    function f;
    double *weights = random_direction(m, wide->results), *want = numbers(m, wide->total),
           *got = numbers(m, wide->total);
    double scale = 0, worst = 0, kept[GRAD_OPERANDS] = {0};
    (void)kept;
    open_operands(m, c, dtype, &f);
    for (int64_t j = 0; j < wide->results; j++) weights[j] = (double)rounded(dtype, (real)weights[j]);
    for (int i = 0; i < f.n; i++)
        for (int64_t k = 0; k < f.size[i]; k++) f.at[i][k] = (double)rounded(dtype, (real)wide->at[i][k]);
    double *before[GRAD_OPERANDS];
    for (int i = 0; i < f.n; i++) {
        before[i] = wide->at[i];
        wide->at[i] = f.at[i];
    }
    weft_status status = open_program(m, &f, dtype, narrow_result(m, c, dtype, f.x), false);
    if (status == WEFT_OK) status = analytic(m, wide, weights, want);
    if (status == WEFT_OK) status = analytic(m, &f, weights, got);
    for (int64_t k = 0; k < wide->total; k++) scale = fmax(scale, fabs(want[k]));
    int64_t at = 0;
    for (int64_t k = 0; k < wide->total && status == WEFT_OK; k++) {
        double bound = (double)bound_gradient(dtype, wide->results, (real)fmax(scale, 1), (real)want[k]);
        double ratio = fabs(got[k] - want[k]) / bound;
        if (ratio > worst || !(ratio == ratio)) worst = ratio == ratio ? ratio : HUGE_VAL, at = k;
    }
    conclude(m, c, dtype, "narrow", status, worst,
             ops_text(m, "element %lld is %.9g, not %.9g: %.3g times the bound", (long long)at, got[at],
                      want[at], worst));
    for (int i = 0; i < f.n; i++) wide->at[i] = before[i];
    close_function(&f);
}

static bool wanted(const matrix *m) {
    return weft_tensor_status(weft_full(m->ctx, WEFT_F64, 0, NULL, 0)) == WEFT_OK;
}

/* Where each text costs a compilation: the first case of each op and one in sixteen of the others, the second
 * derivative of one in sixteen; what is not chosen is computed if its kernels are known. */
static bool is_spare(matrix *m, const grad_case *c) {
    const bool first = !m->met;
    m->met = 1;
    return m->gpu && !first && !ops_drawn(m, c->op, WEFT_F64, c->sample, 16);
}

static bool is_spare_second(const matrix *m, const grad_case *c) {
    return m->gpu && !ops_drawn(m, c->op, WEFT_F64, c->sample, 16);
}

/* Are values that are rounded to 16 bits still away from where the op is not smooth? */
static bool has_halves(const grad_case *c, int64_t total) {
    const double apart = (c->high - c->low) / (double)total, most = fmax(fabs(c->low), fabs(c->high));
    return c->avoid != AVOID_TIES || apart > 2 * (double)ulp_of(WEFT_BF16, (real)most);
}

/* What a case takes in all dtypes as one program: a compiler of kernels takes long to begin. Errors show when
 * the case runs. */
static void compile_at_once(matrix *m, const grad_case *c) {
    static const weft_dtype dtypes[4] = {WEFT_F64, WEFT_F32, WEFT_F16, WEFT_BF16};
    weft_tensor *outputs[4 * (GRAD_OPERANDS + 1)];
    weft_program *program = NULL;
    function f[4];
    size_t n = 0;
    for (int d = 0; d < 4; d++) {
        open_operands(m, c, dtypes[d], &f[d]);
        if (d >= 2 && !has_halves(c, f[d].total)) continue;
        weft_tensor *y = narrow_result(m, c, dtypes[d], f[d].x);
        if (record_outputs(m, &f[d], dtypes[d], y, d == 0, outputs, &n) != WEFT_OK) n = 0;
    }
    if (n && weft_compile(outputs, n, NULL, NULL, 0, &program) != WEFT_OK) program = NULL;
    weft_program_free(program);
    for (int d = 0; d < 4; d++) close_function(&f[d]);
}

void grad_check(matrix *m, const grad_case *c) {
    function f;
    grad_case copy = *c;
    copy.sample = strcpy(ops_alloc(m, strlen(c->sample) + 1), c->sample);
    if (!wanted(m)) {
        m->skipped++;
        return;
    }
    const bool spare = is_spare(m, c);
    if (m->texts && spare) return;
    if (m->gpu && !spare) compile_at_once(m, &copy);
    weft__gpu_hook.known_only = spare;
    open_operands(m, &copy, WEFT_F64, &f);
    choose_values(m, &copy, &f);
    weft_status status = open_program(m, &f, WEFT_F64, c->build(m->ctx, WEFT_F64, f.x, c->user), true);
    if (status != WEFT_OK) {
        conclude(m, &copy, WEFT_F64, "first", status, 0, "");
    } else {
        check_function(m, &copy, &f, "first");
        check_narrow(m, &copy, &f, WEFT_F32);
        for (weft_dtype half = WEFT_F16; half <= WEFT_BF16 && has_halves(c, f.total); half++)
            check_narrow(m, &copy, &f, half);
        weft__gpu_hook.known_only = spare || is_spare_second(m, c);
        check_second(m, &copy, &f);
    }
    weft__gpu_hook.known_only = 0;
    close_function(&f);
}

/* Gradients of the sum of the result by all operands at random values, or at x. */
static weft_status gradient_at(matrix *m, const grad_case *c, const double *x, function *f) {
    open_operands(m, c, WEFT_F64, f);
    choose_values(m, c, f);
    for (int64_t k = 0; x && k < f->size[0]; k++) f->at[0][k] = x[k];
    for (int i = 0; i < f->n; i++) {
        weft_status status = write_numbers(m, f->x[i], f->at[i]);
        if (status != WEFT_OK) return status;
    }
    weft_tensor *y = c->build(m->ctx, WEFT_F64, f->x, c->user);
    return weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), f->x, (size_t)f->n, f->grad);
}

void grad_zero(matrix *m, const grad_case *c) {
    function f;
    weft_status status = gradient_at(m, c, NULL, &f);
    double worst = 0;
    for (int i = 0; i < f.n && status == WEFT_OK; i++) {
        double *g = numbers(m, f.size[i]);
        status = read_numbers(m, f.grad[i], g);
        for (int64_t k = 0; k < f.size[i]; k++) worst = g[k] == 0 ? worst : HUGE_VAL;
    }
    conclude(m, c, WEFT_F64, "zero", status, worst, "the gradient is not 0");
    close_function(&f);
}

void grad_none(matrix *m, const grad_case *c) {
    function f;
    weft_status status = gradient_at(m, c, NULL, &f);
    const char *said = weft_last_error(m->ctx), *name = c->blames ? c->blames : c->op;
    bool fine = status == WEFT_ERR_UNSUPPORTED && strstr(said, "not differentiable") && strstr(said, name);
    if (!fine) printf("%s none %s: %s\n", c->op, c->sample, status == WEFT_OK ? "no error" : said);
    ops_hold(m, c->op, WEFT_F64, ops_text(m, "none %s", c->sample), fine);
    close_function(&f);
}

void grad_expect(matrix *m, const grad_case *c, const double *x, const double *want) {
    function f;
    outcome o = {0};
    weft_status status = gradient_at(m, c, x, &f);
    double *got = numbers(m, f.size[0]);
    if (status == WEFT_OK) status = read_numbers(m, f.grad[0], got);
    for (int64_t k = 0; k < f.size[0] && status == WEFT_OK; k++) note(&o, k, got[k], want[k]);
    conclude(m, c, WEFT_F64, "at", status, o.worst / 1e-12,
             ops_text(m, "element %lld is %.12g, not %.12g", (long long)o.at, o.a, o.numeric));
    close_function(&f);
}
