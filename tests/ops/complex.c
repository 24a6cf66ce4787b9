/* Complex numbers: every op that accepts them, on c64 and c128, compared with long double complex. Covers
 * views, casts, matmul, calls that must be refused, and gradients with respect to the real and imaginary
 * parts. On the host a complex array is an array of floats with a last dimension of 2. Results are compared
 * in this form. */
#include <complex.h>
#undef I

#include "ops/grad.h"
#include "ops/ops.h"

typedef long double _Complex number;

static const real pi = 3.14159265358979323846264338328L;

static number number_at(const array *a, int64_t k) { /* not x + y * I, which makes NaN of infinity */
    number z;
    memcpy(&z, a->f + 2 * k, sizeof z);
    return z;
}
static weft_dtype part_of(weft_dtype dtype) { return dtype == WEFT_C64 ? WEFT_F32 : WEFT_F64; }

static shape pairs_of(shape s) {
    s.dim[s.rank++] = 2;
    return s;
}

static array *numbers_new(matrix *m, weft_dtype dtype, shape s) {
    array *a = array_new(m, part_of(dtype), pairs_of(s));
    a->bound = ops_alloc(m, (size_t)(a->n + 1) * sizeof *a->bound);
    return a;
}

/* Both parts may be off by `steps` roundings of a number of magnitude `size`. */
static void put(array *a, int64_t k, number z, real size, real steps) {
    const weft_dtype dtype = a->dtype;
    a->f[2 * k] = creall(z), a->f[2 * k + 1] = cimagl(z);
    for (int i = 0; i < 2; i++)
        a->bound[2 * k + i] = steps * roundoff(dtype) * size + bound_store(dtype, a->f[2 * k + i]);
}

static weft_tensor *upload(matrix *m, weft_dtype dtype, const array *h) {
    const int rank = h->s.rank - 1;
    float *f = ops_alloc(m, (size_t)(h->n + 1) * sizeof *f);
    double *d = ops_alloc(m, (size_t)(h->n + 1) * sizeof *d);
    for (int64_t k = 0; k < h->n; k++) f[k] = (float)h->f[k], d[k] = (double)h->f[k];
    return weft_from(m->ctx, dtype, rank, h->s.dim, dtype == WEFT_C64 ? (const void *)f : (const void *)d);
}

/* Applies the same view to the tensor and to its host copy. The last dimension of the host copy, the parts,
 * stays. */
static operand viewed(operand z, matrix *m, view_kind view, shape s) {
    const int rank = s.rank;
    const shape to = pairs_of(s);
    int order[WEFT_MAX_RANK];
    int64_t start[WEFT_MAX_RANK] = {0}, stop[WEFT_MAX_RANK], step[WEFT_MAX_RANK], none[WEFT_MAX_RANK] = {0};
    int64_t before[WEFT_MAX_RANK] = {0};
    for (int i = 0; i <= rank; i++) order[i] = i < rank ? rank - 1 - i : rank, step[i] = 1;
    switch (view) {
    case VIEW_PERMUTED: return (operand){weft_permute(z.t, order), array_permute(m, z.h, order)};
    case VIEW_STEPPED:
        for (int i = 0; i < rank; i++) start[i] = 1, stop[i] = 1 + 2 * s.dim[i], step[i] = 2;
        return (operand){weft_slice(z.t, start, stop, step), array_slice(m, z.h, start, step, to)};
    case VIEW_FLIPPED:
        start[0] = s.dim[0] - 1, step[0] = -1;
        return (operand){weft_flip(z.t, 0), array_slice(m, z.h, start, step, to)};
    case VIEW_BROADCAST: return (operand){weft_expand(z.t, rank, s.dim), array_expand(m, z.h, to)};
    case VIEW_PADDED:
        before[0] = 1;
        return (operand){weft_pad(z.t, before, none, 0), array_pad(m, z.h, before, none, 0)};
    default: return z;
    }
}

static operand numbers(matrix *m, weft_dtype dtype, shape s, view_kind view, generator gen) {
    shape base = s;
    for (int i = 0; i < s.rank; i++) {
        if (view == VIEW_PERMUTED) base.dim[i] = s.dim[s.rank - 1 - i];
        if (view == VIEW_STEPPED) base.dim[i] = 2 * s.dim[i] + 1;
        if (view == VIEW_BROADCAST && i % 2 == 0) base.dim[i] = 1;
        if (view == VIEW_PADDED && i == 0) base.dim[i]--;
    }
    array *h = array_random(m, part_of(dtype), pairs_of(base), gen);
    return viewed((operand){upload(m, dtype, h), h}, m, view, s);
}

/* The dtypes in which an op has been computed. Each op is computed on each device. */
static uint32_t *met_by(const char *op) {
    static struct {
        const char *op;
        uint32_t met;
    } ops[64];
    int i = 0;
    while (i < COUNT(ops) - 1 && ops[i].op && strcmp(ops[i].op, op)) i++;
    ops[i].op = op;
    return &ops[i].met;
}

/* On devices that compile kernels, checks the real and the imaginary part separately, because one kernel can
 * then compute several results. */
static void check_part(matrix *m, const char *op, weft_dtype dtype, const char *sample, weft_tensor *got,
                       const array *want, int64_t which) {
    shape s = want->s;
    s.rank--;
    array *part = array_new(m, want->dtype, s);
    part->bound = ops_alloc(m, (size_t)(part->n + 1) * sizeof *part->bound);
    for (int64_t k = 0; k < part->n; k++)
        part->f[k] = want->f[2 * k + which], part->bound[k] = want->bound[2 * k + which];
    ops_check(m, op, dtype, sample, which ? weft_imag(got) : weft_real(got), part, TOLERANCE_GIVEN);
}

static void check(matrix *m, const char *op, weft_dtype dtype, const char *sample, weft_tensor *got,
                  array *want) {
    const bool pairs = got && weft_dtype_is_complex(weft_dtype_of(got));
    m->met = *met_by(op);
    if (pairs && m->gpu && strcmp(op, "mul") && strcmp(op, "complex")) {
        check_part(m, op, dtype, sample, got, want, 0);
        check_part(m, op, dtype, sample, got, want, 1);
    } else {
        ops_check(m, op, dtype, sample, pairs ? weft_view_as_real(got) : got, want,
                  want->f ? TOLERANCE_GIVEN : TOLERANCE_COPY);
    }
    *met_by(op) = m->met;
}

static bool has(matrix *m, weft_dtype dtype) { return ops_has_dtype(m, "complex", dtype); }
static const weft_dtype both[2] = {WEFT_C64, WEFT_C128};

/* ---- functions of one and two numbers ---- */

typedef struct function {
    const char *name;
    weft_tensor *(*one)(weft_tensor *x);
    weft_tensor *(*two)(weft_tensor *a, weft_tensor *b);
    generator gen;
    int kind; /* kind of the result: complex, real or bool */
    number (*value)(number a, number b);
    real (*size)(number a, number b); /* magnitude of the intermediate values that are rounded */
    real steps;
} function;

enum { COMPLEX_RESULT, REAL_RESULT, BOOL_RESULT };

static real size_of_product(number a, number b) { return cabsl(a) * cabsl(b); }
static real size_of_quotient(number a, number b) { return cabsl(a / b); }
static real size_of_inverse(number a, number b) { return (void)b, cabsl(1 / a); }
static real size_of_exp(number a, number b) { return (void)b, expl(creall(a)); }
static real size_of_log(number a, number b) { return (void)b, cabsl(clogl(a)) + 1; }
static real size_of_root(number a, number b) { return (void)b, cabsl(csqrtl(a)); }
static real size_of_a(number a, number b) { return (void)b, cabsl(a); }
static real size_of_angle(number a, number b) { return (void)a, (void)b, 4; }
static real size_of_square(number a, number b) { return (void)b, cabsl(a) * cabsl(a); }

static number sum_of(number a, number b) { return a + b; }
static number difference(number a, number b) { return a - b; }
static number product_of(number a, number b) { return a * b; }
static number quotient(number a, number b) { return a / b; }
static number negative(number a, number b) { return (void)b, -a; }
static number inverse(number a, number b) { return (void)b, 1 / a; }
static number exponential(number a, number b) { return (void)b, cexpl(a); }
static number logarithm(number a, number b) { return (void)b, clogl(a); }
static number root(number a, number b) { return (void)b, csqrtl(a); }
static number absolute(number a, number b) { return (void)b, cabsl(a); }
static number angle_of(number a, number b) { return (void)b, cargl(a); }
static number conjugate(number a, number b) { return (void)b, conjl(a); }
static number real_part(number a, number b) { return (void)b, creall(a); }
static number imaginary(number a, number b) { return (void)b, cimagl(a); }
static number same(number a, number b) { return (void)b, a; }
static number squared(number a, number b) { return (void)b, a * a; }
static number is_equal(number a, number b) { return a == b; }
static number is_other(number a, number b) { return a != b; }
static number plus_half(number a, number b) { return (void)b, a + 0.5L; }
static number thrice(number a, number b) { return (void)b, 3 * a; }
static number plus_one_i(number a, number b) { return (void)b, a == a ? 1.5L : 0; }
static number not_a_number(number a, number b) { return (void)b, isnan(creall(a)) || isnan(cimagl(a)); }
static number is_infinite(number a, number b) { return (void)b, isinf(creall(a)) || isinf(cimagl(a)); }

static real size_of_sin(number a, number b) { return (void)b, cabsl(csinl(a)); }
static real size_of_cos(number a, number b) { return (void)b, cabsl(ccosl(a)); }
static real size_of_tanh(number a, number b) { return (void)b, cabsl(ctanhl(a)); }
static real size_of_power(number a, number b) { return cabsl(cpowl(a, b)) * (1 + cabsl(b * clogl(a))); }
static number sine_of(number a, number b) { return (void)b, csinl(a); }
static number cosine_of(number a, number b) { return (void)b, ccosl(a); }
static number tanh_of(number a, number b) { return (void)b, ctanhl(a); }
static number power_of(number a, number b) { return cpowl(a, b); }

static weft_tensor *add_half(weft_tensor *x) { return weft_add_scalar(x, 0.5); }
static weft_tensor *times_three(weft_tensor *x) { return weft_mul_scalar(x, 3); }
static weft_tensor *filled(weft_tensor *x) { return weft_full_like(x, 1.5); }
static weft_tensor *there_and_back(weft_tensor *x) { return weft_view_as_complex(weft_view_as_real(x)); }
static weft_tensor *from_parts(weft_tensor *x) { return weft_complex(weft_real(x), weft_imag(x)); }
static weft_tensor *detached(weft_tensor *x) { return weft_detach(x); }

static const function functions[] = {
    {"add", NULL, weft_add, GEN_WIDE, COMPLEX_RESULT, sum_of, NULL, 0},
    {"sub", NULL, weft_sub, GEN_WIDE, COMPLEX_RESULT, difference, NULL, 0},
    {"mul", NULL, weft_mul, GEN_NORMAL, COMPLEX_RESULT, product_of, size_of_product, 3},
    {"div", NULL, weft_div, GEN_NEAR_ONE, COMPLEX_RESULT, quotient, size_of_quotient, 24},
    {"eq", NULL, weft_eq, GEN_STEPS, BOOL_RESULT, is_equal, NULL, 0},
    {"ne", NULL, weft_ne, GEN_STEPS, BOOL_RESULT, is_other, NULL, 0},
    {"neg", weft_neg, NULL, GEN_WIDE, COMPLEX_RESULT, negative, NULL, 0},
    {"recip", weft_recip, NULL, GEN_NEAR_ONE, COMPLEX_RESULT, inverse, size_of_inverse, 24},
    {"exp", weft_exp, NULL, GEN_NORMAL, COMPLEX_RESULT, exponential, size_of_exp, 18},
    {"log", weft_log, NULL, GEN_NORMAL, COMPLEX_RESULT, logarithm, size_of_log, 24},
    {"sqrt", weft_sqrt, NULL, GEN_NORMAL, COMPLEX_RESULT, root, size_of_root, 24},
    {"sin", weft_sin, NULL, GEN_NORMAL, COMPLEX_RESULT, sine_of, size_of_sin, 24},
    {"cos", weft_cos, NULL, GEN_NORMAL, COMPLEX_RESULT, cosine_of, size_of_cos, 24},
    {"tanh", weft_tanh, NULL, GEN_NORMAL, COMPLEX_RESULT, tanh_of, size_of_tanh, 40},
    {"pow", NULL, weft_pow, GEN_NEAR_ONE, COMPLEX_RESULT, power_of, size_of_power, 40},
    {"abs", weft_abs, NULL, GEN_WIDE, REAL_RESULT, absolute, size_of_a, 10},
    {"angle", weft_angle, NULL, GEN_NORMAL, REAL_RESULT, angle_of, size_of_angle, 12},
    {"conj", weft_conj, NULL, GEN_WIDE, COMPLEX_RESULT, conjugate, NULL, 0},
    {"real", weft_real, NULL, GEN_WIDE, REAL_RESULT, real_part, NULL, 0},
    {"imag", weft_imag, NULL, GEN_WIDE, REAL_RESULT, imaginary, NULL, 0},
    {"isnan", weft_isnan, NULL, GEN_SPECIAL, BOOL_RESULT, not_a_number, NULL, 0},
    {"isinf", weft_isinf, NULL, GEN_SPECIAL, BOOL_RESULT, is_infinite, NULL, 0},
    {"square", weft_square, NULL, GEN_NORMAL, COMPLEX_RESULT, squared, size_of_square, 3},
    {"add_scalar", add_half, NULL, GEN_WIDE, COMPLEX_RESULT, plus_half, NULL, 0},
    {"mul_scalar", times_three, NULL, GEN_WIDE, COMPLEX_RESULT, thrice, NULL, 0},
    {"full_like", filled, NULL, GEN_NORMAL, COMPLEX_RESULT, plus_one_i, NULL, 0},
    {"detach", detached, NULL, GEN_WIDE, COMPLEX_RESULT, same, NULL, 0},
    {"view_as_real", there_and_back, NULL, GEN_WIDE, COMPLEX_RESULT, same, NULL, 0},
    {"view_as_complex", there_and_back, NULL, GEN_WIDE, COMPLEX_RESULT, same, NULL, 0},
    {"complex", from_parts, NULL, GEN_WIDE, COMPLEX_RESULT, same, NULL, 0},
};

static array *expect(matrix *m, const function *f, weft_dtype dtype, const array *a, const array *b,
                     shape s) {
    array *y = f->kind == COMPLEX_RESULT
                   ? numbers_new(m, dtype, s)
                   : array_new(m, f->kind == BOOL_RESULT ? WEFT_BOOL : part_of(dtype), s);
    if (f->kind == REAL_RESULT) y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t k = 0; k < shape_count(s); k++) {
        const number x = number_at(a, k), w = number_at(b, k), v = f->value(x, w);
        const real size = f->size ? f->size(x, w) : 0;
        if (f->kind == BOOL_RESULT) {
            y->i[k] = creall(v) != 0;
        } else if (f->kind == REAL_RESULT) {
            y->f[k] = creall(v);
            y->bound[k] = f->steps * roundoff(y->dtype) * size + bound_store(y->dtype, y->f[k]);
        } else {
            put(y, k, v, size, f->steps);
        }
    }
    return y;
}

static void check_function(matrix *m, const function *f, weft_dtype dtype, shape s, view_kind view) {
    ops_breathe(m);
    const char *sample = ops_text(m, "complex %s %s", view_name(view), shape_text(m, s));
    operand a = numbers(m, dtype, s, view, f->gen), b = numbers(m, dtype, s, VIEW_PLAIN, f->gen);
    weft_tensor *got = f->one ? f->one(a.t) : f->two(a.t, b.t);
    m->group = s.rank != 1 || s.dim[0] != 17           ? NULL
               : f->steps > 30 || f->gen == GEN_NORMAL ? f->name
                                                       : "complex functions";
    check(m, f->name, dtype, sample, got, expect(m, f, dtype, a.h, b.h, s));
    m->group = NULL;
}

static void check_functions(matrix *m) {
    static const view_kind views[] = {VIEW_PERMUTED, VIEW_STEPPED, VIEW_FLIPPED, VIEW_BROADCAST, VIEW_PADDED};
    const shape sizes[] = {SCALAR_SHAPE, SHAPE(0), SHAPE(17), SHAPE(3, 5), SHAPE(1025), SHAPE(2, 1, 3, 2, 5)};
    for (int i = 0; i < COUNT(functions); i++) {
        for (int d = 0; d < 2; d++) {
            if (!has(m, both[d])) continue;
            for (int s = 0; s < COUNT(sizes); s++)
                check_function(m, &functions[i], both[d], sizes[s], VIEW_PLAIN);
            for (int v = 0; v < COUNT(views); v++) {
                const bool zeros = functions[i].gen != GEN_WIDE && views[v] == VIEW_PADDED;
                if (!zeros) check_function(m, &functions[i], both[d], SHAPE(5, 7), views[v]);
            }
        }
        ops_flush(m);
    }
}

/* Signed zeros, infinities and points on the branch cuts, with the results that C defines. Also numbers whose
 * squares overflow or vanish, and results that are small compared with their operands. */
static void check_edges(matrix *m) {
    const real inf = INFINITY, big = 3e38L, tiny = 0x1p-149L,
               t = 0x1p-30L; /* its square is too small to change a result */
    static const struct {
        const char *name;
        weft_tensor *(*fn)(weft_tensor *x);
    } fns[] = {{"sqrt", weft_sqrt}, {"log", weft_log}, {"exp", weft_exp},
               {"sin", weft_sin},   {"cos", weft_cos}, {"tanh", weft_tanh}};
    const struct {
        int fn;
        real at[2], is[2];
    } cases[] = {
        {0, {big, big}, {sqrtl(big * (sqrtl(2) + 1) / 2), sqrtl(big * (sqrtl(2) - 1) / 2)}},
        {0, {0, tiny}, {sqrtl(tiny / 2), sqrtl(tiny / 2)}},
        {0, {-tiny, -0.0L}, {0, -sqrtl(tiny)}},
        {1, {big, -big}, {logl(big) + logl(2) / 2, -(pi / 4)}},
        {1, {1, 0x1p-12L}, {log1pl(0x1p-24L) / 2, atanl(0x1p-12L)}},
        {1, {-1, -0.0L}, {0, -pi}},
        {1, {0, 0}, {-inf, 0}},
        {1, {-inf, 1}, {inf, pi}},
        {2, {inf, 0}, {inf, 0}},
        {2, {-inf, 5}, {0, -0.0L}},
        {2, {700, 0}, {0, 0}}, /* out of range of f32: filled in below */
        {3, {0, inf}, {0, inf}},
        {3, {t, t}, {sinl(t) * coshl(t), cosl(t) * sinhl(t)}},
        {4, {0, -inf}, {inf, 0}},
        {5, {inf, 1}, {1, 0}},
        {5, {-60, 0.5L}, {-1, 4 * sinl(0.5L) * cosl(0.5L) * expl(-120)}},
        {5, {t, -t}, {creall(ctanhl(t)), -creall(ctanhl(t))}},
    };
    for (int d = 0; d < 2; d++) {
        for (int k = 0; k < COUNT(cases) && has(m, both[d]); k++) {
            ops_breathe(m);
            array *h = array_new(m, part_of(both[d]), SHAPE(1, 2)), *y = numbers_new(m, both[d], SHAPE(1));
            real size = 0;
            for (int i = 0; i < 2; i++) h->f[i] = rounded(h->dtype, cases[k].at[i]), y->f[i] = cases[k].is[i];
            if (cases[k].at[0] == 700) y->f[0] = both[d] == WEFT_C64 ? inf : expl(700);
            for (int i = 0; i < 2; i++) size += isinf(y->f[i]) ? 0 : fabsl(y->f[i]);
            for (int i = 0; i < 2; i++)
                y->bound[i] = 24 * roundoff(y->dtype) * (cases[k].fn < 2 ? size : fabsl(y->f[i])) +
                              (isinf(y->f[i]) ? 0 : bound_store(y->dtype, y->f[i]));
            check(m, fns[cases[k].fn].name, both[d], ops_text(m, "complex edge %d", k),
                  fns[cases[k].fn].fn(upload(m, both[d], h)), y);
        }
    }
}

/* The product as Weft defines it, part by part. C's annex G would turn some NaN parts into infinities. */
static number plain_product(number a, number b) {
    const real re = creall(a) * creall(b) - cimagl(a) * cimagl(b),
               im = creall(a) * cimagl(b) + cimagl(a) * creall(b);
    number z;
    memcpy(&z, (real[2]){re, im}, sizeof z);
    return z;
}
static number plain_square(number a, number b) { return (void)b, plain_product(a, a); }
/* The imaginary part of sin is infinite at x + i inf if x is infinite or NaN. C leaves its sign open. */
static number sine_at(number a, number b) {
    number z = csinl(a);
    if (!isfinite(creall(a)) && isinf(cimagl(a))) memcpy(&z, (real[2]){NAN, cimagl(a)}, sizeof z);
    return (void)b, z;
}

/* All numbers whose parts are NaN, 0, -0, 1, -1, infinite or 2.5, and all pairs of them. Functions and
 * quotients follow C's annex G, sums and products are computed part by part. */
static void check_infinite(matrix *m) {
    static const struct {
        const char *name;
        weft_tensor *(*one)(weft_tensor *x);
        weft_tensor *(*two)(weft_tensor *a, weft_tensor *b);
        number (*value)(number a, number b);
    } fns[] = {{"exp", weft_exp, NULL, exponential},
               {"log", weft_log, NULL, logarithm},
               {"sqrt", weft_sqrt, NULL, root},
               {"sin", weft_sin, NULL, sine_at},
               {"cos", weft_cos, NULL, cosine_of},
               {"tanh", weft_tanh, NULL, tanh_of},
               {"recip", weft_recip, NULL, inverse},
               {"div", NULL, weft_div, quotient},
               {"square", weft_square, NULL, plain_square},
               {"mul", NULL, weft_mul, plain_product},
               {"add", NULL, weft_add, sum_of},
               {"sub", NULL, weft_sub, difference}};
    const real parts[8] = {NAN, 0, -0.0L, 1, -1, INFINITY, -INFINITY, 2.5L};
    enum { N = 64 * 64 };
    for (int d = 0; d < 2 && has(m, both[d]); d++) {
        array *a = array_new(m, part_of(both[d]), SHAPE(N, 2)), *b = array_new(m, a->dtype, SHAPE(N, 2));
        for (int k = 0; k < N; k++) {
            a->f[2 * k] = parts[k & 7], a->f[2 * k + 1] = parts[k >> 3 & 7];
            b->f[2 * k] = parts[k >> 6 & 7], b->f[2 * k + 1] = parts[k >> 9];
        }
        weft_tensor *x = upload(m, both[d], a), *y = upload(m, both[d], b);
        m->group = "infinite complex numbers";
        for (int i = 0; i < COUNT(fns); i++) {
            array *want = numbers_new(m, both[d], SHAPE(N));
            for (int k = 0; k < N; k++) {
                const number z = fns[i].value(number_at(a, k), number_at(b, k));
                memcpy(want->f + 2 * k, &z, sizeof z);
                for (int j = 2 * k; j < 2 * k + 2; j++)
                    want->bound[j] =
                        isfinite(want->f[j]) ? 40 * roundoff(want->dtype) * (1 + fabsl(want->f[j])) : 0;
            }
            check(m, fns[i].name, both[d], "infinite", fns[i].one ? fns[i].one(x) : fns[i].two(x, y), want);
        }
        m->group = NULL;
        ops_flush(m);
    }
}

static void check_special_points(matrix *m) {
    const real points[][2] = {{-4, 0.0L},       {-4, -0.0L},    {0, 2},       {0, -2}, {4, 0.0L}, {0, 0},
                              {3e-30L, 4e-30L}, {3e30L, 4e30L}, {-1, 1e-20L}, {1, 1},  {-1, -1}};
    enum { N = COUNT(points) };
    for (int d = 0; d < 2; d++) {
        if (!has(m, both[d])) continue;
        ops_breathe(m);
        array *h = array_new(m, part_of(both[d]), SHAPE(N, 2));
        for (int k = 0; k < 2 * N; k++) h->f[k] = rounded(h->dtype, points[k / 2][k % 2]);
        weft_tensor *z = upload(m, both[d], h);
        array *root_ = numbers_new(m, both[d], SHAPE(N)), *ratio = numbers_new(m, both[d], SHAPE(N - 6));
        for (int k = 0; k < N; k++)
            put(root_, k, csqrtl(number_at(h, k)), cabsl(csqrtl(number_at(h, k))), 24);
        for (int k = 6; k < N; k++) put(ratio, k - 6, 1, 1, 24);
        check(m, "sqrt", both[d], "complex points", weft_sqrt(z), root_);
        weft_tensor *far = weft_narrow(z, 0, 6, N - 6);
        check(m, "div", both[d], "complex points", weft_div(far, far), ratio);
    }
    if (!m->gpu) check_edges(m);
    ops_flush(m);
    check_infinite(m);
}

/* ---- where, concat, gather, scatter_add, update, reductions ---- */

static void check_moved(matrix *m, weft_dtype dtype) {
    ops_breathe(m);
    const shape s = SHAPE(5, 7);
    operand a = numbers(m, dtype, s, VIEW_PLAIN, GEN_WIDE), b = numbers(m, dtype, s, VIEW_PERMUTED, GEN_WIDE);
    operand c = operand_new(m, WEFT_BOOL, SHAPE(5, 1), VIEW_PLAIN, GEN_NORMAL);
    array *chosen = numbers_new(m, dtype, s), *joined = numbers_new(m, dtype, SHAPE(5, 14));
    array *stacked = numbers_new(m, dtype, SHAPE(2, 5, 7)), *taken = numbers_new(m, dtype, SHAPE(5, 4));
    array *added = numbers_new(m, dtype, s), *updated = numbers_new(m, dtype, s);
    const int32_t index[4] = {4, 0, 4, 6}, at = 2;
    for (int64_t k = 0; k < 35; k++) {
        const number x = number_at(a.h, k), y = number_at(b.h, k);
        put(chosen, k, c.h->i[k / 7] ? x : y, 0, 0);
        put(joined, k / 7 * 14 + k % 7, x, 0, 0);
        put(joined, k / 7 * 14 + 7 + k % 7, y, 0, 0);
        put(stacked, k, x, 0, 0);
        put(stacked, 35 + k, y, 0, 0);
        put(added, k, x, 0, 0);
        put(updated, k, k % 7 >= 2 && k % 7 < 5 ? number_at(b.h, k - k % 7 + k % 7 - 2) : x, 0, 0);
    }
    for (int64_t k = 0; k < 20; k++) put(taken, k, number_at(a.h, k / 4 * 7 + index[k % 4]), 0, 0);
    for (int64_t k = 0; k < 15; k++) {
        const int64_t to = k / 3 * 7 + index[k % 3];
        const number more = number_at(b.h, k / 3 * 7 + k % 3);
        const real size = cabsl(number_at(added, to)) + cabsl(more);
        put(added, to, number_at(added, to) + more, size, 4);
    }
    weft_tensor *parts[2] = {a.t, b.t}, *three = weft_narrow(b.t, 1, 0, 3);
    weft_tensor *from = weft_from(m->ctx, WEFT_I32, DIMS(4), index);
    weft_tensor *where_to = weft_from(m->ctx, WEFT_I32, DIMS(3), index),
                *offset = weft_from(m->ctx, WEFT_I32, 0, NULL, &at);
    check(m, "where", dtype, "complex", weft_where(c.t, a.t, b.t), chosen);
    check(m, "concat", dtype, "complex", weft_concat(parts, 2, 1), joined);
    check(m, "stack", dtype, "complex", weft_stack(parts, 2, 0), stacked);
    check(m, "gather", dtype, "complex", weft_gather(a.t, from, 1), taken);
    check(m, "scatter_add", dtype, "complex", weft_scatter_add(a.t, where_to, three, 1), added);
    check(m, "update", dtype, "complex", weft_update(a.t, three, offset, -1), updated);
    array *padded = numbers_new(m, dtype, SHAPE(6, 7));
    for (int64_t k = 0; k < 42; k++) put(padded, k, k < 35 ? number_at(a.h, k) : 2, 0, 0);
    check(m, "pad", dtype, "complex with 2", weft_pad(a.t, (int64_t[]){0, 0}, (int64_t[]){1, 0}, 2), padded);
}

static void check_reduced(matrix *m, weft_dtype dtype, shape s, int axis) {
    ops_breathe(m);
    operand z = numbers(m, dtype, s, VIEW_PLAIN, GEN_NEAR_ONE);
    const int64_t length = s.dim[axis], inner = axis == 0 && s.rank == 2 ? s.dim[1] : 1;
    const int64_t n = length ? shape_count(s) / length : s.rank == 2 ? s.dim[1 - axis] : 1;
    const shape to = s.rank == 2 ? SHAPE(s.dim[1 - axis]) : SCALAR_SHAPE;
    array *sum = numbers_new(m, dtype, to), *prod = numbers_new(m, dtype, to),
          *mean = numbers_new(m, dtype, to);
    const real depth = 2 * log2l((real)(length > 1 ? length : 1)) + 4;
    for (int64_t j = 0; j < n; j++) {
        number total = 0, all = 1;
        real size = 0, most = 1;
        for (int64_t k = 0; k < length; k++) {
            const number x = number_at(z.h, inner == 1 ? j * length + k : k * inner + j);
            total += x, all *= x, size += cabsl(x), most *= cabsl(x);
        }
        put(sum, j, total, size, depth);
        put(prod, j, all, most, 4 * (real)length + 4);
        if (length) put(mean, j, total / (real)length, size / (real)length, depth + 2);
    }
    const char *sample = ops_text(m, "complex %s axis %d", shape_text(m, s), axis);
    check(m, "sum", dtype, sample, weft_sum(z.t, axis, false), sum);
    check(m, "prod", dtype, sample, weft_prod(z.t, axis, false), prod);
    if (length) check(m, "mean", dtype, sample, weft_mean(z.t, axis, false), mean);
}

/* ---- statistics, norms, scans, einsum ---- */

static void check_statistics(matrix *m, weft_dtype dtype) {
    ops_breathe(m);
    enum { N = 4, ROWS = 16 };
    const weft_dtype part = part_of(dtype);
    operand z = numbers(m, dtype, SHAPE(ROWS, N), VIEW_PLAIN, GEN_NEAR_ONE),
            w = numbers(m, dtype, SHAPE(ROWS, N), VIEW_PLAIN, GEN_NORMAL);
    array *var = array_new(m, part, SHAPE(ROWS)), *std = array_new(m, part, SHAPE(ROWS)),
          *norm = array_new(m, part, SHAPE(ROWS)), *three = array_new(m, part, SHAPE(ROWS)),
          *total = numbers_new(m, dtype, SHAPE(ROWS));
    array *sums = numbers_new(m, dtype, SHAPE(ROWS, N)), *products = numbers_new(m, dtype, SHAPE(ROWS, N));
    array *const of_real[4] = {var, norm, three, std};
    for (int i = 0; i < 4; i++) of_real[i]->bound = ops_alloc(m, (ROWS + 1) * sizeof *var->bound);
    for (int64_t j = 0; j < ROWS; j++) {
        number mean = 0, sum = 0, product = 1, both_ = 0;
        real squares = 0, cubes = 0, spread = 0, size = 0, most = 1, cross = 0;
        for (int64_t k = 0; k < N; k++) mean += number_at(z.h, j * N + k) / (long double)N;
        for (int64_t k = 0; k < N; k++) {
            const number x = number_at(z.h, j * N + k), y = number_at(w.h, j * N + k);
            spread += powl(cabsl(x - mean), 2), squares += powl(cabsl(x), 2), cubes += powl(cabsl(x), 3);
            sum += x, product *= x, size += cabsl(x), most *= cabsl(x);
            both_ += x * y, cross += 2 * cabsl(x) * cabsl(y);
            put(sums, j * N + k, sum, size, 2 * N);
            put(products, j * N + k, product, most, 4 * N);
        }
        put(total, j, both_, cross, 2 * N);
        std->f[j] = sqrtl(spread / (N - 1)), std->bound[j] = 64 * roundoff(part) * squares / std->f[j];
        var->f[j] = spread / (N - 1), norm->f[j] = sqrtl(squares), three->f[j] = cbrtl(cubes);
        var->bound[j] = 64 * roundoff(part) * squares, norm->bound[j] = 64 * roundoff(part) * norm->f[j];
        three->bound[j] = 64 * roundoff(part) * three->f[j];
    }
    m->group = "complex statistics";
    check(m, "var", dtype, "complex", weft_var(z.t, 1, 1, false), var);
    check(m, "norm", dtype, "complex", weft_norm(z.t, 2, 1, false), norm);
    if (!m->gpu) check(m, "norm", dtype, "complex, 3", weft_norm(z.t, 3, 1, false), three);
    check(m, "cumsum", dtype, "complex", weft_cumsum(z.t, 1), sums);
    check(m, "cumprod", dtype, "complex", weft_cumprod(z.t, -1), products);
    check(m, "einsum", dtype, "complex", weft_einsum("ij,ij->i", (weft_tensor *const[]){z.t, w.t}, 2), total);
    check(m, "std", dtype, "complex", weft_std(z.t, 1, 1, false), std);
    m->group = NULL;
    if (m->gpu) return;
    array *range = numbers_new(m, dtype, SHAPE(5));
    for (int64_t k = 0; k < 5; k++) put(range, k, 0.5L + 0.25L * (real)k, 1, 1);
    check(m, "cast", dtype, "complex arange", weft_arange(m->ctx, dtype, 0.5, 1.75, 0.25), range);
    check(m, "cast", dtype, "complex linspace", weft_linspace(m->ctx, dtype, 0.5, 1.5, 5), range);
}

/* ---- casts ---- */

static void check_casts(matrix *m, weft_dtype dtype) {
    ops_breathe(m);
    const weft_dtype part = part_of(dtype), other = dtype == WEFT_C64 ? WEFT_C128 : WEFT_C64;
    operand z = numbers(m, dtype, SHAPE(19), VIEW_PLAIN, GEN_STEPS);
    operand x = operand_new(m, part, SHAPE(19), VIEW_PLAIN, GEN_WIDE),
            i = operand_new(m, WEFT_I16, SHAPE(19), VIEW_PLAIN, GEN_WIDE);
    array *from_real = numbers_new(m, dtype, SHAPE(19)), *from_whole = numbers_new(m, dtype, SHAPE(19));
    array *to_real = array_new(m, part, SHAPE(19)), *to_whole = array_new(m, WEFT_I32, SHAPE(19));
    array *to_bool = array_new(m, WEFT_BOOL, SHAPE(19)), *there = numbers_new(m, dtype, SHAPE(19));
    to_real->bound = ops_alloc(m, 20 * sizeof *to_real->bound);
    for (int64_t k = 0; k < 19; k++) {
        put(from_real, k, x.h->f[k], 0, 0);
        put(from_whole, k, (real)i.h->i[k], 0, 0);
        put(there, k, number_at(z.h, k), 0, 0);
        to_real->f[k] = z.h->f[2 * k];
        to_whole->i[k] = (int64_t)z.h->f[2 * k];
        to_bool->i[k] = z.h->f[2 * k] != 0 || z.h->f[2 * k + 1] != 0;
    }
    check(m, "cast", dtype, "complex from real", weft_cast(x.t, dtype), from_real);
    check(m, "cast", dtype, "complex from i16", weft_cast(i.t, dtype), from_whole);
    check(m, "cast", dtype, "complex to real", weft_cast(z.t, part), to_real);
    check(m, "cast", dtype, "complex to i32", weft_cast(z.t, WEFT_I32), to_whole);
    check(m, "cast", dtype, "complex to bool", weft_cast(z.t, WEFT_BOOL), to_bool);
    if (has(m, other))
        check(m, "cast", dtype, "complex to complex", weft_cast(weft_cast(z.t, other), dtype), there);
}

/* ---- matmul ---- */

/* conj: bit 0 uses the conjugate of the left operand, bit 1 the conjugate of the right one. */
static void check_product(matrix *m, weft_dtype dtype, shape sa, shape sb, view_kind view, int conj) {
    ops_breathe(m);
    operand a = numbers(m, dtype, sa, view, GEN_NORMAL), b = numbers(m, dtype, sb, view, GEN_NORMAL);
    const bool row = sa.rank == 1, column = sb.rank == 1;
    const int64_t rows = row ? 1 : sa.dim[sa.rank - 2], k = sa.dim[sa.rank - 1];
    const int64_t columns = column ? 1 : sb.dim[sb.rank - 1], batches = sa.rank > 2 ? sa.dim[0] : 1;
    shape to = {0, {0}};
    if (sa.rank > 2) to.dim[to.rank++] = batches;
    if (!row) to.dim[to.rank++] = rows;
    if (!column) to.dim[to.rank++] = columns;
    array *y = numbers_new(m, dtype, to);
    for (int64_t j = 0; j < batches * rows * columns; j++) {
        const int64_t r = j / columns, c = j % columns, batch = sb.rank > 2 ? r / rows : 0;
        number sum = 0;
        real size = 0;
        for (int64_t i = 0; i < k; i++) {
            number x = number_at(a.h, r * k + i), w = number_at(b.h, (batch * k + i) * columns + c);
            if (conj & 1) x = conjl(x);
            if (conj & 2) w = conjl(w);
            sum += x * w, size += 2 * cabsl(x) * cabsl(w);
        }
        put(y, j, sum, size, 2 * log2l((real)(2 * k + 1)) + 4);
    }
    check(
        m, "matmul", dtype,
        ops_text(m, "complex %s %s %s conj %d", view_name(view), shape_text(m, sa), shape_text(m, sb), conj),
        weft_matmul(conj & 1 ? weft_conj(a.t) : a.t, conj & 2 ? weft_conj(b.t) : b.t), y);
}

static void check_products(matrix *m, weft_dtype dtype) {
    for (int conj = 0; conj < 4; conj++) {
        if (m->gpu && conj && (conj != 3 || dtype != WEFT_C64)) continue;
        check_product(m, dtype, SHAPE(5, 7), SHAPE(7, 3), VIEW_PLAIN, conj);
        if (m->gpu && conj) continue;
        check_product(m, dtype, SHAPE(5, 7), SHAPE(7, 3), VIEW_PERMUTED, conj);
        check_product(m, dtype, SHAPE(2, 4, 3), SHAPE(2, 3, 5), VIEW_PLAIN, conj);
    }
    check_product(m, dtype, SHAPE(33, 17), SHAPE(17, 65), VIEW_STEPPED, 0);
    check_product(m, dtype, SHAPE(2, 4, 3), SHAPE(3, 5), VIEW_PLAIN, 0);
    check_product(m, dtype, SHAPE(7), SHAPE(7), VIEW_PLAIN, 0);
    check_product(m, dtype, SHAPE(4, 7), SHAPE(7), VIEW_PLAIN, 0);
    check_product(m, dtype, SHAPE(3, 0), SHAPE(0, 2), VIEW_PLAIN, 0);
    if (!m->slow && !m->gpu) check_product(m, dtype, SHAPE(70, 129), SHAPE(129, 66), VIEW_PLAIN, 0);
}

/* ---- calls that must be refused ---- */

static bool is_taken(const char *name) {
    for (int i = 0; i < COUNT(functions); i++)
        if (!strcmp(name, functions[i].name)) return true;
    return !strcmp(name, "where");
}

static void check_refusals(matrix *m, weft_dtype dtype) {
    weft_tensor *z = numbers(m, dtype, SHAPE(3, 3), VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *x = operand_new(m, WEFT_F32, SHAPE(3, 3), VIEW_PLAIN, GEN_NORMAL).t;
#define W_ELEM1(id, name, ...)                                                                               \
    if (!is_taken(#name)) ops_refused(m, #name, dtype, "complex", weft_##name(z), WEFT_ERR_DTYPE);
#define W_ELEM2(id, name, ...)                                                                               \
    if (!is_taken(#name)) ops_refused(m, #name, dtype, "complex", weft_##name(z, z), WEFT_ERR_DTYPE);
#include "ops/ops.def"
    ops_refused(m, "max", dtype, "complex", weft_max(z, 0, false), WEFT_ERR_DTYPE);
    ops_refused(m, "argmin", dtype, "complex", weft_argmin(z, 0, false), WEFT_ERR_DTYPE);
    ops_refused(m, "clamp", dtype, "complex", weft_clamp(z, 0, 1), WEFT_ERR_DTYPE);
    ops_refused(m, "sort", dtype, "complex", weft_sort(z, 0, false, NULL), WEFT_ERR_DTYPE);
    ops_refused(m, "mse", dtype, "complex", weft_mse(z, z, WEFT_MEAN), WEFT_ERR_DTYPE);
    ops_refused(m, "layer_norm", dtype, "complex", weft_layer_norm(z, NULL, NULL, 1e-5), WEFT_ERR_DTYPE);
    weft_tensor *image = weft_reshape(z, 4, (int64_t[]){1, 1, 3, 3});
    ops_refused(m, "conv2d", dtype, "complex", weft_conv2d(image, image, NULL, NULL), WEFT_ERR_DTYPE);
    ops_refused(m, "softmax", dtype, "complex", weft_softmax(z, 0), WEFT_ERR_DTYPE);
    ops_refused(m, "add", dtype, "complex and real", weft_add(z, x), WEFT_ERR_DTYPE);
    ops_refused(m, "matmul", dtype, "complex and real", weft_matmul(z, x), WEFT_ERR_DTYPE);
    ops_refused(m, "imag", dtype, "of real", weft_imag(x), WEFT_ERR_DTYPE);
    ops_refused(m, "angle", dtype, "of real", weft_angle(x), WEFT_ERR_DTYPE);
    ops_refused(m, "view_as_real", dtype, "of real", weft_view_as_real(x), WEFT_ERR_DTYPE);
    ops_refused(m, "view_as_complex", dtype, "of complex", weft_view_as_complex(z), WEFT_ERR_DTYPE);
    ops_refused(m, "view_as_complex", dtype, "of threes", weft_view_as_complex(x), WEFT_ERR_SHAPE);
    ops_refused(m, "complex", dtype, "of complex", weft_complex(z, z), WEFT_ERR_DTYPE);
    ops_refused(m, "complex", dtype, "shapes", weft_complex(x, weft_narrow(x, 0, 0, 2)), WEFT_ERR_SHAPE);
    ops_refused(m, "complex", dtype, "f16", weft_complex(weft_cast(x, WEFT_F16), weft_cast(x, WEFT_F16)),
                WEFT_ERR_DTYPE);
}

static void check_all(matrix *m) {
    check_functions(m);
    check_special_points(m);
    for (int d = 0; d < 2; d++) {
        if (!has(m, both[d])) continue;
        check_moved(m, both[d]);
        check_reduced(m, both[d], SHAPE(3, 17), 0);
        check_reduced(m, both[d], SHAPE(3, 17), 1);
        check_reduced(m, both[d], SHAPE(0, 3), 0);
        check_reduced(m, both[d], SHAPE(129), 0);
        check_statistics(m, both[d]);
        check_casts(m, both[d]);
        check_products(m, both[d]);
        check_refusals(m, both[d]);
    }
    ops_flush(m);
}

/* What each function does on real dtypes: it returns its operand, or it is refused. */
static void check_real(matrix *m, const char *name, weft_tensor *(*fn)(weft_tensor *x), bool passes,
                       int floats) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, name, dtype)) continue;
        operand x = operand_new(m, dtype, SHAPE(17, 2), VIEW_PLAIN, GEN_NORMAL);
        if (passes)
            ops_check(m, name, dtype, "real", fn(x.t), x.h, TOLERANCE_COPY);
        else if (!accepts(floats, d))
            ops_refused(m, name, dtype, "dtype", fn(x.t), WEFT_ERR_DTYPE);
        else
            ops_check(m, name, dtype, "pairs", weft_view_as_real(fn(x.t)), x.h, TOLERANCE_COPY);
    }
    ops_flush(m);
}

static weft_tensor *split(weft_tensor *x) {
    weft_tensor *re = weft_squeeze(weft_narrow(x, 1, 0, 1), 1),
                *im = weft_squeeze(weft_narrow(x, 1, 1, 1), 1);
    return weft_complex(re, im);
}

#define CASE(name, ...)                                                                                      \
    void ops_case_##name(matrix *m);                                                                         \
    void ops_case_##name(matrix *m) { __VA_ARGS__; }
CASE(complex, check_real(m, "complex", split, false, 3); check_all(m))
CASE(real, check_real(m, "real", weft_real, true, 0))
CASE(imag, check_real(m, "imag", weft_imag, false, 0))
CASE(conj, check_real(m, "conj", weft_conj, true, 0))
CASE(angle, check_real(m, "angle", weft_angle, false, 0))
CASE(view_as_real, check_real(m, "view_as_real", weft_view_as_real, false, 0))
CASE(view_as_complex, check_real(m, "view_as_complex", weft_view_as_complex, false, 3))

/* ---- gradients: parts of the results with respect to parts of the operands ---- */

typedef weft_tensor *(*build_fn)(weft_tensor *a, weft_tensor *b);

static weft_tensor *wide_of(weft_dtype dtype, weft_tensor *x) {
    return dtype == WEFT_F64 ? x : weft_cast(x, WEFT_F32);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    weft_tensor *a = weft_view_as_complex(wide_of(dtype, in[0])),
                *b = weft_view_as_complex(wide_of(dtype, in[1]));
    weft_tensor *y = (*(const build_fn *)user)(a, b);
    (void)ctx;
    if (weft_dtype_is_complex(weft_dtype_of(y))) y = weft_view_as_real(y);
    return weft_cast(y, dtype);
}

static weft_tensor *circular(weft_tensor *a, weft_tensor *b) { return weft_mul(weft_sin(a), weft_cos(b)); }
static weft_tensor *tanh_of_product(weft_tensor *a, weft_tensor *b) {
    return weft_tanh(weft_mul_scalar(weft_mul(a, b), 0.1));
}
static weft_tensor *statistics(weft_tensor *a, weft_tensor *b) {
    return weft_add(weft_std(weft_mul(a, b), 1, 1, false), weft_norm(b, 2, 1, false));
}
static weft_tensor *scans(weft_tensor *a, weft_tensor *b) {
    return weft_mul(weft_cumprod(a, 1), weft_cumsum(b, 0));
}
static weft_tensor *exp_of(weft_tensor *a, weft_tensor *b) { return weft_mul(weft_exp(a), b); }
static weft_tensor *log_of(weft_tensor *a, weft_tensor *b) { return weft_mul(weft_log(a), b); }
static weft_tensor *sqrt_of(weft_tensor *a, weft_tensor *b) {
    return weft_mul(weft_sqrt(a), weft_sqrt(weft_neg(b)));
}
static weft_tensor *abs_of(weft_tensor *a, weft_tensor *b) { return weft_abs(weft_mul(a, b)); }
static weft_tensor *angle_between(weft_tensor *a, weft_tensor *b) { return weft_angle(weft_mul(a, b)); }
static weft_tensor *conj_of(weft_tensor *a, weft_tensor *b) { return weft_mul(weft_conj(a), b); }
static weft_tensor *real_of(weft_tensor *a, weft_tensor *b) { return weft_mul(weft_real(a), weft_imag(b)); }
static weft_tensor *prod_of(weft_tensor *a, weft_tensor *b) { return weft_prod(weft_add(a, b), 0, false); }
static weft_tensor *mean_of(weft_tensor *a, weft_tensor *b) { return weft_mean(weft_mul(a, b), -1, true); }
static weft_tensor *turned(weft_tensor *a, weft_tensor *b) { return weft_matmul(weft_transpose(a, 0, 1), b); }
static weft_tensor *product_of_matrices(weft_tensor *a, weft_tensor *b) {
    return weft_matmul(a, weft_reshape(b, 2, (int64_t[]){3, 2}));
}
static weft_tensor *pieces(weft_tensor *a, weft_tensor *b) {
    weft_tensor *parts[2] = {weft_narrow(a, 0, 1, 1), weft_flip(b, 1)};
    return weft_square(weft_concat(parts, 2, 0));
}
static weft_tensor *inverse_of(weft_tensor *a, weft_tensor *b) {
    return weft_add(weft_recip(a), weft_mul_scalar(b, 3));
}

#define GRADIENT(name_, how, ...)                                                                            \
    void ops_grad_##name_(matrix *m);                                                                        \
    void ops_grad_##name_(matrix *m) {                                                                       \
        static const struct {                                                                                \
            const char *sample;                                                                              \
            build_fn fn;                                                                                     \
        } cases[] = {__VA_ARGS__};                                                                           \
        for (int i = 0; i < COUNT(cases) && (i == 0 || !m->gpu); i++)                                        \
            grad_check(m, &(grad_case){.op = #name_,                                                         \
                                       .sample = cases[i].sample,                                            \
                                       .n = 2,                                                               \
                                       .s = {SHAPE(2, 3, 2), how},                                           \
                                       .low = 0.5,                                                           \
                                       .high = 2,                                                            \
                                       .build = build,                                                       \
                                       .user = &cases[i].fn});                                               \
    }
static weft_tensor *adjoint(weft_tensor *a, weft_tensor *b) {
    return weft_matmul(weft_conj(weft_transpose(a, 0, 1)), b);
}
static weft_tensor *by_adjoint(weft_tensor *a, weft_tensor *b) {
    return weft_matmul(a, weft_transpose(weft_conj(b), 0, 1));
}
static weft_tensor *both_conjugates(weft_tensor *a, weft_tensor *b) {
    return weft_matmul(weft_conj(a), weft_conj(weft_reshape(b, 2, (int64_t[]){3, 2})));
}
GRADIENT(complex, SHAPE(2, 3, 2), {"mul", weft_mul}, {"div", weft_div}, {"exp", exp_of}, {"log", log_of},
         {"sqrt", sqrt_of}, {"prod", prod_of}, {"mean", mean_of}, {"transposed", turned},
         {"adjoint", adjoint}, {"by adjoint", by_adjoint}, {"both conjugates", both_conjugates},
         {"pow", weft_pow}, {"circular", circular}, {"tanh", tanh_of_product}, {"statistics", statistics},
         {"scans", scans}, {"pieces", pieces}, {"inverse", inverse_of})
GRADIENT(real, SHAPE(2, 3, 2), {"of real and imag", real_of}, {"of abs", abs_of})
GRADIENT(imag, SHAPE(3, 2), {"broadcast", real_of})
GRADIENT(conj, SHAPE(2, 3, 2), {"product", conj_of})
GRADIENT(angle, SHAPE(2, 3, 2), {"between", angle_between})
GRADIENT(view_as_real, SHAPE(2, 3, 2), {"product", weft_mul}, {"matmul", product_of_matrices})
GRADIENT(view_as_complex, SHAPE(3, 2), {"add", weft_add}, {"sub", weft_sub})
