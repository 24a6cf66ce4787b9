/* Checks gradients. A held program computes the result and its gradients. For each difference (8 (f(+h) -
 * f(-h)) - (f(+2h) - f(-2h))) / 12h, whose error is of order h^4, new inputs are written. A small Jacobian is
 * checked whole, a large one in three random directions.
 *
 * Compiling kernels takes long on some devices (run.c). There, one kernel computes a case in all dtypes.
 * Chosen cases wait until there are enough for a program of 50 kernels, which then checks them all.
 *
 * Functions in f64 belong to the context m->wide. On a device without f64 that is a context on the CPU. Its
 * gradients, which the tests of the CPU compare with differences, then are the reference of the device's
 * gradients in narrower dtypes, and its second derivatives that of second derivatives in f32. */
#include "device/gpu/backend/hooks.h"
#include "ops/grad.h"

enum { JACOBIAN_MOST = 64, DIRECTIONS = 3, GRAD_DTYPES = 4, PROGRAM_CASES = 25 };
static const double step = 1e-3, accepted = 1e-7;
static const weft_dtype dtypes[GRAD_DTYPES] = {WEFT_F64, WEFT_F32, WEFT_F16, WEFT_BF16};

/* A function of variables, with the program that computes its value and its gradients, weighted by
 * `weights`. */
typedef struct function {
    int n;
    weft_tensor *x[GRAD_OPERANDS], *weights, *value, *grad[GRAD_OPERANDS];
    bool joins[GRAD_OPERANDS], value_joins; /* ops_joins of the gradients and of the value */
    double *at[GRAD_OPERANDS];              /* values of the variables x */
    int64_t size[GRAD_OPERANDS], total, results;
    weft_program *program;
} function;

/* A case that was recorded and waits to be checked. */
typedef struct grad_pending {
    grad_case c;
    function f[GRAD_DTYPES], second; /* second derivatives in f64 */
    function narrow_second;          /* in f32: only on a device without f64 */
    int n_functions;                 /* in f and dtypes */
    bool spare, has_second, spare_second;
    const char *plain; /* "zero" or "at": f[0] has the gradients of the plain sum, which must equal `want` */
    const double *want;
    weft_status recorded, recorded_second;
    uint64_t random; /* the generator's state when the case was recorded */
} grad_pending;

/* ---- values ---- */

static double *numbers(matrix *m, int64_t n) { return ops_alloc(m, (size_t)(n + 1) * sizeof(double)); }

/* Chooses values for all operands. They are exact in f32, and away from points where the op is not smooth. */
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

/* Returns a new node with the same value, so that a program can have it as output in any case. */
static weft_tensor *fresh(weft_tensor *t) { return weft_mul_scalar(t, 1); }

/* Does the device have f64? If not, functions in f64 run on the CPU. */
static bool has_f64(const matrix *m) { return m->wide == m->ctx; }

/* The context of functions in this dtype. */
static weft_context *context_of(const matrix *m, weft_dtype dtype) {
    return dtype == WEFT_F64 ? m->wide : m->ctx;
}

/* Makes variables of the operands' shapes and fills at[]. */
static void open_operands(matrix *m, const grad_case *c, weft_dtype dtype, function *f) {
    *f = (function){.n = c->n};
    for (int i = 0; i < c->n; i++) {
        f->x[i] = weft_variable_new(context_of(m, dtype), "x", dtype, c->s[i].rank, c->s[i].dim, NULL);
        f->size[i] = shape_count(c->s[i]);
        f->total += f->size[i];
        f->at[i] = numbers(m, f->size[i]);
    }
}

/* A list of outputs for a program. */
typedef struct outputs {
    weft_tensor **list;
    size_t count, capacity;
    weft_program *program;
} outputs;

/* Outputs on the device, and those on the CPU if the device has no f64. */
typedef struct both {
    outputs device, wide;
} both;

static void add_output(matrix *m, outputs *o, weft_tensor *t) {
    if (o->count == o->capacity) {
        weft_tensor **before = o->list;
        o->capacity = 2 * o->capacity + 64;
        o->list = ops_alloc(m, o->capacity * sizeof(weft_tensor *));
        if (before) memcpy(o->list, before, o->count * sizeof(weft_tensor *));
    }
    o->list[o->count++] = t;
}

static outputs *outputs_of(const matrix *m, both *b, const function *f) {
    return weft_context_of(f->x[0]) == m->ctx ? &b->device : &b->wide;
}

static void add_outputs(matrix *m, both *b, const function *f) {
    outputs *o = outputs_of(m, b, f);
    if (f->value) add_output(m, o, f->value);
    for (int i = 0; i < f->n; i++) add_output(m, o, f->grad[i]);
}

static weft_status compile(outputs *o) {
    return o->count ? weft_compile(o->list, o->count, NULL, NULL, 0, &o->program) : WEFT_OK;
}

/* known_only: refuse a program that needs new kernels on a device that compiles them. */
static weft_status compile_both(both *b, bool known_only) {
    weft__gpu_hook.known_only = known_only;
    weft_status status = compile(&b->device);
    weft__gpu_hook.known_only = 0;
    return status == WEFT_OK ? compile(&b->wide) : status;
}

static void free_programs(both *b) {
    weft_program_free(b->device.program);
    weft_program_free(b->wide.program);
}

/* Records the gradients of y with respect to x, and y itself if with_value. */
static weft_status record_function(matrix *m, function *f, weft_dtype dtype, weft_tensor *y,
                                   bool with_value) {
    weft_status status = weft_tensor_status(y);
    if (status != WEFT_OK) return status;
    f->results = weft_numel(y);
    f->weights = weft_variable_new(context_of(m, dtype), "weights", dtype, weft_rank(y), weft_shape(y), NULL);
    status = weft_gradient(weighted_sum(y, f->weights), f->x, (size_t)f->n, f->grad);
    if (status != WEFT_OK) return status;
    if (with_value) {
        f->value_joins = ops_joins(y);
        f->value = fresh(y);
    }
    for (int i = 0; i < f->n; i++) {
        f->joins[i] = ops_joins(f->grad[i]);
        f->grad[i] = fresh(f->grad[i]);
    }
    return WEFT_OK;
}

static void close_function(function *f) {
    for (int i = 0; i < f->n; i++) weft_free(f->x[i]);
    weft_free(f->weights);
}

/* ---- numbers in any dtype ---- */

/* The caller frees the result. */
static void *encoded(weft_dtype dtype, const double *v, int64_t n) {
    char *data = malloc((size_t)n * weft_dtype_size(dtype) + 1);
    if (!data) abort();
    for (int64_t k = 0; k < n; k++) {
        float f32 = (float)v[k];
        uint16_t half = dtype == WEFT_F16 ? weft_f32_to_f16(f32) : weft_f32_to_bf16(f32);
        if (dtype == WEFT_F64)
            memcpy(data + 8 * k, &v[k], 8);
        else if (dtype == WEFT_F32)
            memcpy(data + 4 * k, &f32, 4);
        else
            memcpy(data + 2 * k, &half, 2);
    }
    return data;
}

static weft_status write_numbers(weft_tensor *t, const double *v) {
    const weft_dtype dtype = weft_dtype_of(t);
    const int64_t n = weft_numel(t);
    void *data = encoded(dtype, v, n);
    const weft_status status = weft_write(t, data, (size_t)n * weft_dtype_size(dtype));
    free(data);
    return status;
}

weft_tensor *grad_constant(weft_context *ctx, weft_dtype dtype, int rank, const int64_t *dims,
                           const double *v) {
    int64_t n = 1;
    for (int i = 0; i < rank; i++) n *= dims[i];
    void *data = encoded(dtype, v, n);
    weft_tensor *t = weft_from(ctx, dtype, rank, dims, data);
    free(data);
    return t;
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

/* Evaluates at the values in `at` plus `by` times the direction (all operands concatenated). */
static weft_status evaluate(matrix *m, function *f, const double *direction, double by, double *value) {
    const double *d = direction;
    for (int i = 0; i < f->n; i++) {
        double *moved = numbers(m, f->size[i]);
        for (int64_t k = 0; k < f->size[i]; k++) moved[k] = f->at[i][k] + (d ? by * *d++ : 0);
        weft_status status = write_numbers(f->x[i], moved);
        if (status != WEFT_OK) return status;
    }
    weft_status status = weft_program_run(f->program);
    return status == WEFT_OK && value ? read_numbers(m, f->value, value) : status;
}

/* The derivatives of all results along a direction. */
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

/* The gradient of the weighted sum of the results, for all operands concatenated. */
static weft_status analytic(matrix *m, function *f, const double *weights, double *gradient) {
    weft_status status = write_numbers(f->weights, weights);
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

/* Reports one check. Its name is the sample's name with a word in front. */
static void conclude(matrix *m, const grad_case *c, weft_dtype dtype, const char *what, weft_status status,
                     double worst, const char *why) {
    bool fine = status == WEFT_OK && worst <= 1;
    if (status != WEFT_OK && m->refused_before != weft__gpu_hook.refused) { /* spare, and needs new kernels */
        m->refused_before = weft__gpu_hook.refused;
        m->left_out++;
        return;
    }
    if (worst > m->worst) m->worst = worst;
    if (!fine && !m->sources)
        printf("%s %s %s: %s\n", c->op, what, c->sample, status == WEFT_OK ? why : weft_last_error(NULL));
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

/* The result of a case in the dtype of its operands. */
static weft_tensor *result_in(matrix *m, const grad_case *c, weft_dtype dtype, weft_tensor **x) {
    weft_tensor *y = c->build(context_of(m, dtype), dtype, x, c->user);
    return weft_tensor_status(y) == WEFT_OK && weft_dtype_of(y) != dtype ? weft_cast(y, dtype) : y;
}

/* The numbers that make one result of the first derivatives. All are exact in f32. */
typedef struct mixture {
    double *weights, *mix[GRAD_OPERANDS];
} mixture;

static double *random_numbers(matrix *m, int64_t n) {
    double *d = random_direction(m, n);
    for (int64_t k = 0; k < n; k++) d[k] = (double)(float)d[k];
    return d;
}

static mixture random_mixture(matrix *m, const function *first) {
    mixture x = {.weights = random_numbers(m, first->results)};
    for (int i = 0; i < first->n; i++) x.mix[i] = random_numbers(m, first->size[i]);
    return x;
}

/* The first derivatives, weighted by constants and added up, are a function with one result. Records its
 * gradient. */
static weft_status record_second(matrix *m, const grad_case *c, const function *first, const mixture *by,
                                 weft_dtype dtype, function *f) {
    weft_context *ctx = context_of(m, dtype);
    weft_tensor *grads[GRAD_OPERANDS], *sum = NULL;
    open_operands(m, c, dtype, f);
    for (int i = 0; i < f->n; i++) f->at[i] = first->at[i];
    weft_tensor *y = result_in(m, c, dtype, f->x);
    weft_tensor *weights = grad_constant(ctx, dtype, weft_rank(y), weft_shape(y), by->weights);
    weft_status status = weft_gradient(weighted_sum(y, weights), f->x, (size_t)f->n, grads);
    for (int i = 0; i < f->n && status == WEFT_OK; i++) {
        weft_tensor *mix = grad_constant(ctx, dtype, c->s[i].rank, c->s[i].dim, by->mix[i]);
        weft_tensor *part = weighted_sum(grads[i], mix);
        sum = sum ? weft_add(sum, part) : part;
    }
    return status == WEFT_OK ? record_function(m, f, dtype, sum, dtype == WEFT_F64) : status;
}

/* Compares the gradient in a narrower dtype with the gradient in f64 at the same values. */
static void check_narrow(matrix *m, const grad_case *c, function *wide, weft_dtype dtype, function *f,
                         const char *what) {
    double *weights = random_direction(m, wide->results), *want = numbers(m, wide->total),
           *got = numbers(m, wide->total);
    double scale = 0, worst = 0;
    double *before[GRAD_OPERANDS];
    for (int64_t j = 0; j < wide->results; j++) weights[j] = (double)rounded(dtype, (real)weights[j]);
    for (int i = 0; i < f->n; i++) {
        for (int64_t k = 0; k < f->size[i]; k++) f->at[i][k] = (double)rounded(dtype, (real)wide->at[i][k]);
        before[i] = wide->at[i];
        wide->at[i] = f->at[i];
    }
    weft_status status = analytic(m, wide, weights, want);
    if (status == WEFT_OK) status = analytic(m, f, weights, got);
    for (int64_t k = 0; k < wide->total; k++) scale = fmax(scale, fabs(want[k]));
    int64_t at = 0;
    for (int64_t k = 0; k < wide->total && status == WEFT_OK; k++) {
        double bound = (double)bound_gradient(dtype, wide->results, (real)fmax(scale, 1), (real)want[k]);
        double ratio = fabs(got[k] - want[k]) / bound;
        if (ratio > worst || !(ratio == ratio)) worst = ratio == ratio ? ratio : HUGE_VAL, at = k;
    }
    conclude(m, c, dtype, what, status, worst,
             ops_text(m, "element %lld is %.9g, not %.9g: %.3g times the bound", (long long)at, got[at],
                      want[at], worst));
    for (int i = 0; i < f->n; i++) wide->at[i] = before[i];
}

/* The dtype in which gradients at given values are checked. */
static weft_dtype plain_dtype(const matrix *m) { return has_f64(m) ? WEFT_F64 : WEFT_F32; }

/* Compares gradients at given values. */
static void check_plain(matrix *m, const grad_pending *p) {
    const function *f = &p->f[0];
    outcome o = {0};
    weft_status status = weft_program_run(f->program);
    for (int i = 0; i < f->n && status == WEFT_OK; i++) {
        double *got = numbers(m, f->size[i]);
        status = read_numbers(m, f->grad[i], got);
        for (int64_t k = 0; k < f->size[i] && status == WEFT_OK; k++) {
            const double want = p->want ? p->want[k] : 0;
            if (!(isnan(want) ? isnan(got[k]) : got[k] == want)) note(&o, k, got[k], want);
        }
    }
    const double least = has_f64(m) ? 1e-12 : 1e-6;
    conclude(m, &p->c, plain_dtype(m), p->plain, status,
             p->want       ? o.worst / (p->c.within > least ? p->c.within : least)
             : o.worst > 0 ? HUGE_VAL
                           : 0,
             ops_text(m, "element %lld is %.12g, not %.12g", (long long)o.at, o.a, o.numeric));
}

/* The bits of all results of a function at its current inputs. */
static weft_status read_bits(matrix *m, const function *f, char **bits, size_t *size) {
    *size = f->value ? (size_t)f->results * weft_dtype_size(weft_dtype_of(f->value)) : 0;
    const size_t value = *size;
    for (int i = 0; i < f->n; i++) *size += (size_t)f->size[i] * weft_dtype_size(weft_dtype_of(f->grad[i]));
    char *to = *bits = ops_alloc(m, *size + 1);
    weft_status status = weft_program_run(f->program);
    if (status == WEFT_OK && f->value) status = weft_read(f->value, to, value);
    to += value;
    for (int i = 0; i < f->n && status == WEFT_OK; i++) {
        const size_t bytes = (size_t)f->size[i] * weft_dtype_size(weft_dtype_of(f->grad[i]));
        status = weft_read(f->grad[i], to, bytes);
        to += bytes;
    }
    return status;
}

static void check_repeats(matrix *m, const grad_case *c, const function *f) {
    char *once, *again;
    size_t size;
    if (f->program && (read_bits(m, f, &once, &size) != WEFT_OK ||
                       read_bits(m, f, &again, &size) != WEFT_OK || memcmp(once, again, size) != 0))
        ops_hold(m, c->op, plain_dtype(m), ops_text(m, "the same bits again %s", c->sample), false);
}

/* Is the case left out because the device has no f64? */
static bool lacks_dtype(matrix *m, const grad_case *c) {
    const bool lacks = c->f64 && !has_f64(m);
    m->skipped += lacks;
    return lacks;
}

/* Chooses cases on devices that compile kernels. Chosen are the first case of some size of each op, one in
 * sixteen of the others, and the second derivative of one in sixteen. A case that is not chosen is computed
 * if its kernels are known. */
static bool is_spare(matrix *m, const grad_case *c, const function *f) {
    enum { SOME_SIZE = 4 };
    const bool first = !m->met && f->total >= SOME_SIZE;
    m->met |= first;
    return m->gpu && !first && !ops_drawn(m, c->op, WEFT_F64, c->sample, 16);
}

static bool is_spare_second(const matrix *m, const grad_case *c) {
    return m->gpu && !ops_drawn(m, c->op, WEFT_F64, c->sample, 16);
}

/* After rounding to 16 bits, are the values still away from points where the op is not smooth? */
static bool has_halves(const grad_case *c, int64_t total) {
    const double apart = (c->high - c->low) / (double)total, most = fmax(fabs(c->low), fabs(c->high));
    return c->avoid != AVOID_TIES || apart > 2 * (double)ulp_of(WEFT_BF16, (real)most);
}

/* ---- cases that wait ---- */

static bool same_shape(const weft_tensor *a, const weft_tensor *b) {
    return weft_rank(a) == weft_rank(b) &&
           memcmp(weft_shape(a), weft_shape(b), (size_t)weft_rank(a) * sizeof(int64_t)) == 0;
}

/* An extra output that joins the gradients of operand i in all dtypes (and the value, if it has that shape)
 * into one kernel: for each element, whether any of them is not 0. NULL if they cannot share a kernel. */
static weft_tensor *witness(const matrix *m, const grad_pending *p, int i) {
    const function *wide = &p->f[0];
    const int first = has_f64(m) ? 0 : 1; /* of the functions on the device */
    weft_tensor *any = NULL;
    if (p->n_functions < first + 2) return NULL;
    if (first == 0 && wide->value_joins && same_shape(wide->value, wide->grad[i]))
        any = weft_cast(wide->value, WEFT_BOOL);
    for (int d = first; d < p->n_functions; d++) {
        if (!p->f[d].joins[i]) return NULL;
        weft_tensor *is = weft_cast(p->f[d].grad[i], WEFT_BOOL);
        any = any ? weft_or(any, is) : is;
    }
    return any;
}

static void add_second(matrix *m, both *b, const grad_pending *p) {
    add_outputs(m, b, &p->second);
    if (p->narrow_second.n) add_outputs(m, b, &p->narrow_second);
}

static void add_case(matrix *m, both *b, const grad_pending *p) {
    for (int d = 0; d < p->n_functions; d++) add_outputs(m, b, &p->f[d]);
    for (int i = 0; i < p->c.n && m->gpu && !m->unfused; i++) {
        weft_tensor *w = witness(m, p, i);
        if (w) add_output(m, &b->device, w);
    }
    if (p->has_second && !p->spare_second) add_second(m, b, p);
}

static void take_second(const matrix *m, both *b, grad_pending *p) {
    p->second.program = outputs_of(m, b, &p->second)->program;
    p->narrow_second.program = b->device.program;
}

static void check_second(matrix *m, grad_pending *p) {
    both own = {0};
    weft_status status = p->recorded_second;
    if (status == WEFT_OK && p->spare_second) {
        add_second(m, &own, p);
        status = compile_both(&own, m->gpu);
        take_second(m, &own, p);
    }
    if (status != WEFT_OK)
        conclude(m, &p->c, plain_dtype(m), "second", status, 0, "");
    else if (has_f64(m) && !m->no_differences)
        check_function(m, &p->c, &p->second, "second");
    else if (!has_f64(m))
        check_narrow(m, &p->c, &p->second, WEFT_F32, &p->narrow_second, "second");
    if (status == WEFT_OK) check_repeats(m, &p->c, has_f64(m) ? &p->second : &p->narrow_second);
    free_programs(&own);
}

/* Checks a case whose functions have their programs. */
static void check_case(matrix *m, grad_pending *p) {
    m->random = p->random;
    if (p->plain)
        check_plain(m, p);
    else if (has_f64(m) && !m->no_differences)
        check_function(m, &p->c, &p->f[0], "first");
    for (int d = 1; d < p->n_functions; d++) check_narrow(m, &p->c, &p->f[0], dtypes[d], &p->f[d], "narrow");
    for (int d = has_f64(m) || p->plain ? 0 : 1; d < p->n_functions; d++) check_repeats(m, &p->c, &p->f[d]);
    if (p->has_second) check_second(m, p);
}

static void not_compiled(matrix *m, const grad_pending *p, weft_status status) {
    conclude(m, &p->c, plain_dtype(m), p->plain ? p->plain : "first", status, 0, "");
}

/* Checks the cases list[0..n-1] in one program. If the program fails, checks each case alone. */
static void check_together(matrix *m, grad_pending *const *list, int n, bool known_only) {
    both b = {0};
    for (int i = 0; i < n; i++) add_case(m, &b, list[i]);
    const weft_status status = compile_both(&b, known_only);
    for (int i = 0; i < n; i++) {
        grad_pending *p = list[i];
        for (int d = 0; d < p->n_functions; d++) p->f[d].program = outputs_of(m, &b, &p->f[d])->program;
        if (p->has_second && !p->spare_second) take_second(m, &b, p);
        if (status == WEFT_OK)
            check_case(m, p);
        else if (n > 1)
            check_together(m, &list[i], 1, known_only);
        else
            not_compiled(m, p, status);
    }
    free_programs(&b);
}

/* Gives each function a program of its own. */
static void check_apart(matrix *m, grad_pending *p) {
    weft_status status = WEFT_OK;
    for (int d = 0; d < p->n_functions && status == WEFT_OK; d++) {
        both b = {0};
        add_outputs(m, &b, &p->f[d]);
        status = compile_both(&b, false);
        p->f[d].program = outputs_of(m, &b, &p->f[d])->program;
    }
    if (status == WEFT_OK)
        check_case(m, p);
    else
        not_compiled(m, p, status);
    for (int d = 0; d < p->n_functions; d++) weft_program_free(p->f[d].program);
}

static void close_case(grad_pending *p) {
    for (int d = 0; d < p->n_functions; d++) close_function(&p->f[d]);
    if (p->has_second) close_function(&p->second);
    close_function(&p->narrow_second);
}

void grad_settle(matrix *m) {
    grad_pending **chosen = ops_alloc(m, ((size_t)m->n_grads + 1) * sizeof *chosen);
    int n = 0;
    for (int i = 0; i < m->n_grads; i++)
        if (!m->grads[i]->spare) chosen[n++] = m->grads[i];
    if (n) check_together(m, chosen, n, false);
    for (int i = 0; i < m->n_grads; i++) {
        if (m->grads[i]->spare) check_together(m, &m->grads[i], 1, true);
        close_case(m->grads[i]);
    }
    m->n_grads = m->grads_chosen = 0;
}

void grad_end(matrix *m) {
    if (m->grads_chosen >= PROGRAM_CASES) grad_settle(m);
}

/* Appends p, recorded or failed, to the cases that wait. */
static void enqueue(matrix *m, grad_pending *p) {
    p->random = m->random;
    if (p->recorded != WEFT_OK || !m->gpu) {
        if (p->recorded == WEFT_OK)
            check_apart(m, p);
        else
            not_compiled(m, p, p->recorded);
        close_case(p);
        return;
    }
    m->grads = realloc(m->grads, ((size_t)m->n_grads + 1) * sizeof *m->grads);
    if (!m->grads) abort();
    m->grads[m->n_grads++] = p;
    m->grads_chosen += !p->spare;
}

static grad_pending *new_case(matrix *m, const grad_case *c, weft_dtype dtype) {
    grad_pending *p = ops_alloc(m, sizeof *p);
    p->c = *c;
    p->c.sample = ops_text(m, "%s", c->sample);
    open_operands(m, c, dtype, &p->f[0]);
    p->n_functions = 1;
    choose_values(m, c, &p->f[0]);
    return p;
}

static weft_status record_seconds(matrix *m, grad_pending *p) {
    const mixture by = random_mixture(m, &p->f[0]);
    weft_status status = record_second(m, &p->c, &p->f[0], &by, WEFT_F64, &p->second);
    if (status == WEFT_OK && !has_f64(m))
        status = record_second(m, &p->c, &p->f[0], &by, WEFT_F32, &p->narrow_second);
    return status;
}

void grad_check(matrix *m, const grad_case *c) {
    if (lacks_dtype(m, c)) return;
    grad_pending *p = new_case(m, c, WEFT_F64);
    p->spare = is_spare(m, c, &p->f[0]);
    if (m->sources && p->spare) {
        close_case(p);
        return;
    }
    p->recorded =
        record_function(m, &p->f[0], WEFT_F64, c->build(m->wide, WEFT_F64, p->f[0].x, c->user), true);
    for (int d = 1; d < GRAD_DTYPES && (d < 2 || has_halves(c, p->f[0].total)) && p->recorded == WEFT_OK;
         d++) {
        open_operands(m, c, dtypes[d], &p->f[d]);
        p->n_functions++;
        p->recorded = record_function(m, &p->f[d], dtypes[d], result_in(m, c, dtypes[d], p->f[d].x), false);
    }
    if (p->recorded == WEFT_OK) {
        p->has_second = true;
        p->spare_second = !m->gpu || p->spare || is_spare_second(m, c);
        p->recorded_second = record_seconds(m, p);
        p->spare_second |= p->recorded_second != WEFT_OK;
    }
    enqueue(m, p);
}

/* Records the gradients of the sum of the result with respect to all operands, at random values or at x. */
static weft_status record_plain(matrix *m, const grad_case *c, const double *x, function *f) {
    for (int64_t k = 0; x && k < f->size[0]; k++) f->at[0][k] = x[k];
    for (int i = 0; i < f->n; i++) {
        weft_status status = write_numbers(f->x[i], f->at[i]);
        if (status != WEFT_OK) return status;
    }
    const weft_dtype dtype = weft_dtype_of(f->x[0]);
    weft_tensor *y = c->build(context_of(m, dtype), dtype, f->x, c->user);
    weft_status status = weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), f->x, (size_t)f->n, f->grad);
    for (int i = 0; i < f->n && status == WEFT_OK; i++) f->grad[i] = fresh(f->grad[i]);
    return status;
}

static void check_values(matrix *m, const grad_case *c, const char *what, const double *x,
                         const double *want) {
    if (lacks_dtype(m, c)) return;
    grad_pending *p = new_case(m, c, plain_dtype(m));
    p->plain = what;
    p->recorded = record_plain(m, c, x, &p->f[0]);
    if (want) p->want = memcpy(numbers(m, p->f[0].size[0]), want, (size_t)p->f[0].size[0] * sizeof *want);
    enqueue(m, p);
}

void grad_zero(matrix *m, const grad_case *c) { check_values(m, c, "zero", NULL, NULL); }

void grad_expect(matrix *m, const grad_case *c, const double *x, const double *want) {
    check_values(m, c, "at", x, want);
}

weft_tensor *grad_slope(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const grad_case *c = user;
    weft_tensor *y = c->build(ctx, dtype, in, c->user), *slope = y;
    const int64_t n = weft_numel(y);
    if (weft_tensor_status(y) != WEFT_OK) return y;
    weft_tensor *places = weft_reshape(weft_iota(ctx, WEFT_I32, 1, &n), weft_rank(y), weft_shape(y));
    weft_tensor *loss = weighted_sum(y, weft_cast(weft_add_scalar(places, 1), weft_dtype_of(y)));
    return weft_gradient(loss, in, 1, &slope) == WEFT_OK ? slope : NULL;
}

void grad_none(matrix *m, const grad_case *c) {
    function f;
    open_operands(m, c, plain_dtype(m), &f);
    choose_values(m, c, &f);
    weft_status status = record_plain(m, c, NULL, &f);
    const char *said = weft_last_error(m->ctx), *name = c->blames ? c->blames : c->op;
    bool fine = status == WEFT_ERR_UNSUPPORTED && strstr(said, "not differentiable") && strstr(said, name);
    if (!fine) printf("%s none %s: %s\n", c->op, c->sample, status == WEFT_OK ? "no error" : said);
    ops_hold(m, c->op, plain_dtype(m), ops_text(m, "none %s", c->sample), fine);
    close_function(&f);
}
