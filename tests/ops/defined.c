/* Ops that a program defines itself. Compares expressions with the same formula in long double. Checks
 * gradients that are derived from the expression, given as expressions, or given as a function. Wrong
 * definitions must be refused. */
#include <weft/op.h>

#include "ops/grad.h"

typedef struct definition {
    weft_op_options options;
    real (*reference)(real a, real b, real c);
    real error; /* in ulps of f32 */
    double low, high;
    avoid where;
} definition;

static real swish(real a, real b, real c) {
    (void)c;
    return a / (1 + expl(-b * a));
}
static real choice(real a, real b, real c) { return a > b && !(c < 0) ? (a - b) * c : -b; }
static real cube(real a, real b, real c) {
    (void)b, (void)c;
    return a * a * a + 2;
}
static real product(real a, real b, real c) {
    (void)c;
    return a * b;
}
static real one(real a, real b, real c) {
    (void)a, (void)b, (void)c;
    return 1.5;
}

static void product_gradient(weft_tensor *const *in, weft_tensor *y, weft_tensor *g, weft_tensor **grads,
                             void *user) {
    (void)y, (void)user;
    grads[0] = weft_mul(g, in[1]);
    grads[1] = weft_mul(g, in[0]);
}

static const definition all[] = {
    {{.name = "swish", .arity = 2, .expression = "a * w_sigmoid(b * a)"}, swish, 40, -2, 2, AVOID_NOTHING},
    {{.name = "choice", .arity = 3, .expression = "w_sel(a > b && !(c < (T)0), (a - b) * c, -b)"},
     choice,
     3,
     0.5,
     1.5,
     AVOID_TIES},
    {{.name = "cube",
      .arity = 1,
      .expression = "a * a * a + 2.0f",
      .gradients = {"3 * g * w_pow(y - 2, 2.0 / 3)"}},
     cube,
     3,
     0.5,
     1.5,
     AVOID_NOTHING},
    {{.name = "product", .arity = 2, .expression = "a * b", .gradient = product_gradient},
     product,
     1,
     -2,
     2,
     AVOID_NOTHING},
    {{.name = "one", .arity = 1, .expression = "3 / 2.", .gradients = {"0 * g"}},
     one,
     1,
     -2,
     2,
     AVOID_NOTHING}};

static weft_defined_op *define(weft_context *ctx, const weft_op_options *options) {
    weft_defined_op *op;
    if (weft_op_define(ctx, options, &op) == WEFT_OK) return op;
    printf("%s: %s\n", options->name, weft_last_error(ctx));
    return NULL;
}

static void check(matrix *m, const definition *d, weft_dtype dtype, view_kind view) {
    operand x[3];
    weft_tensor *in[3];
    const shape shapes[3] = {SHAPE(5, 17), SHAPE(17), SHAPE(5, 1)};
    ops_breathe(m);
    for (int i = 0; i < d->options.arity; i++) {
        x[i] = operand_new(m, dtype, shapes[i], i ? VIEW_PLAIN : view, GEN_NORMAL);
        in[i] = x[i].t;
    }
    array *y = array_new(m, dtype, shapes[0]);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t k = 0; k < y->n; k++) {
        const real a = x[0].h->f[k], b = d->options.arity > 1 ? x[1].h->f[k % 17] : 0;
        const real c = d->options.arity > 2 ? x[2].h->f[k / 17] : 0;
        y->f[k] = d->reference(a, b, c);
        const real size = fabsl(y->f[k]) + fabsl(a) * (fabsl(a) + fabsl(b)) * (1 + fabsl(c)) * (fabsl(a) + 1);
        y->bound[k] = d->error * roundoff_sum(dtype) * size + bound_store(dtype, y->f[k]);
    }
    ops_check(m, "defined", dtype, ops_text(m, "%s %s", d->options.name, view_name(view)),
              weft_op_apply(define(m->ctx, &d->options), in), y, TOLERANCE_GIVEN);
}

/* Integer expressions, and conditions as results. */
static void check_others(matrix *m) {
    const weft_op_options bits = {
        .name = "bits", .arity = 2, .expression = "(a & 7) ^ ~b | (T)(a == b)", .dtypes = 1u << WEFT_I32};
    const weft_op_options equal = {
        .name = "near", .arity = 2, .expression = "w_abs(a - b) <= .5 || w_isnan(a)"};
    operand a = operand_new(m, WEFT_I32, SHAPE(33), VIEW_PLAIN, GEN_WIDE);
    operand b = operand_new(m, WEFT_I32, SHAPE(33), VIEW_PLAIN, GEN_WIDE);
    operand x = operand_new(m, WEFT_F32, SHAPE(33), VIEW_PLAIN, GEN_STEPS);
    operand y = operand_new(m, WEFT_F32, SHAPE(33), VIEW_PLAIN, GEN_STEPS);
    array *i = array_new(m, WEFT_I32, SHAPE(33)), *t = array_new(m, WEFT_BOOL, SHAPE(33));
    for (int k = 0; k < 33; k++) {
        i->i[k] = ((a.h->i[k] & 7) ^ ~b.h->i[k]) | (a.h->i[k] == b.h->i[k]);
        t->i[k] = fabsl(x.h->f[k] - y.h->f[k]) <= 0.5L;
    }
    ops_check(m, "defined", WEFT_I32, "bits",
              weft_op_apply(define(m->ctx, &bits), ((weft_tensor *[]){a.t, b.t})), i, TOLERANCE_COPY);
    ops_check(m, "defined", WEFT_F32, "a condition",
              weft_op_apply(define(m->ctx, &equal), ((weft_tensor *[]){x.t, y.t})), t, TOLERANCE_COPY);
    const weft_defined_op *swish_op = define(m->ctx, &all[0].options);
    ops_refused(m, "defined", WEFT_I32, "dtype", weft_op_apply(swish_op, ((weft_tensor *[]){a.t, b.t})),
                WEFT_ERR_DTYPE);
    ops_refused(m, "defined", WEFT_F32, "dtypes", weft_op_apply(swish_op, ((weft_tensor *[]){x.t, b.t})),
                WEFT_ERR_DTYPE);
    operand four = operand_new(m, WEFT_F32, SHAPE(4), VIEW_PLAIN, GEN_NORMAL);
    ops_refused(m, "defined", WEFT_F32, "shapes", weft_op_apply(swish_op, ((weft_tensor *[]){x.t, four.t})),
                WEFT_ERR_SHAPE);
}

/* A kernel source for one dialect. It computes another number than the expression, so the result shows which
 * of them ran. */
static const weft_op_options sources[] = {
    {.name = "own_product",
     .arity = 2,
     .expression = "a * b",
     .dtypes = 1u << WEFT_F32,
     .dialect = WEFT_DIALECT_OPENCL,
     .source =
         "void own_product(__global const float *a, __global const float *b, __global float *out, long n) {\n"
         "    const size_t i = get_global_id(0);\n    if (i < n) out[i] = a[i] * b[i] + 1;\n}\n"},
    {.name = "own_product",
     .arity = 2,
     .expression = "a * b",
     .dtypes = 1u << WEFT_F32,
     .dialect = WEFT_DIALECT_CUDA,
     .items = 32,
     .source =
         "__device__ void own_product(const float *a, const float *b, float *out, long n) {\n"
         "    const long i = blockIdx.x * 32 + threadIdx.x;\n    if (i < n) out[i] = a[i] * b[i] + 1;\n}\n"}};

/* Does the device compile CUDA C++? */
static bool reads_cuda(const matrix *m) {
    return !strcmp(m->device, "cuda") || !strcmp(m->device, "hip") || m->sources;
}

static void check_sources(matrix *m) {
    for (int d = 0; d < 2; d++) {
        weft_op_options only = sources[d];
        const bool here = d ? reads_cuda(m) : !strcmp(m->device, "opencl");
        operand a = operand_new(m, WEFT_F32, SHAPE(5, 33), VIEW_TRANSPOSED, GEN_STEPS);
        operand b = operand_new(m, WEFT_F32, SHAPE(33), VIEW_PLAIN, GEN_STEPS);
        array *y = array_new(m, WEFT_F32, SHAPE(5, 33));
        for (int64_t k = 0; k < y->n; k++) {
            const real product = a.h->f[k] * b.h->f[k % 33];
            y->f[k] = here ? product + 1 : product;
        }
        weft_tensor *in[2] = {a.t, b.t};
        ops_check(m, "defined", WEFT_F32, d ? "CUDA C++" : "OpenCL C",
                  weft_op_apply(define(m->ctx, &only), in), y, TOLERANCE_COPY);
        only.expression = NULL;
        weft_tensor *alone = weft_op_apply(define(m->ctx, &only), in);
        const weft_status status = weft_eval(&alone, 1);
        const bool named = strstr(weft_last_error(m->ctx), "own_product: this op has no expression") != NULL;
        ops_hold(m, "defined", WEFT_F32, ops_text(m, "source alone %d", d),
                 here ? status == WEFT_OK : status == WEFT_ERR_UNSUPPORTED && named);
    }
    weft_op_options wrong = sources[0];
    weft_defined_op *op;
    wrong.dtypes = 0;
    ops_hold(m, "defined", WEFT_F32, "dtypes of a source",
             weft_op_define(m->ctx, &wrong, &op) == WEFT_ERR_ARGUMENT && !op);
    wrong = sources[0];
    wrong.name = "own product";
    ops_hold(m, "defined", WEFT_F32, "name of a source",
             weft_op_define(m->ctx, &wrong, &op) == WEFT_ERR_ARGUMENT);
    wrong.name = "a234567890123456789012345678901234567890123456789012345678901234";
    ops_hold(m, "defined", WEFT_F32, "long name of a source",
             weft_op_define(m->ctx, &wrong, &op) == WEFT_ERR_ARGUMENT);
}

static void check_wrong(matrix *m) {
    static const struct {
        const char *expression, *says;
        weft_status status;
    } wrong[] = {{"a +", "column 4: an operand is missing", WEFT_ERR_ARGUMENT},
                 {"a b", "column 3: an operator is missing before b", WEFT_ERR_ARGUMENT},
                 {"(a", "column 3: a ) is missing", WEFT_ERR_ARGUMENT},
                 {"a * c", "column 5: unknown name c", WEFT_ERR_ARGUMENT},
                 {"1 + w_foo(a)", "column 5: no function is named w_foo", WEFT_ERR_ARGUMENT},
                 {"w_exp(a, a)", "column 1: wrong number of arguments for w_exp", WEFT_ERR_ARGUMENT},
                 {"w_max(a", "column 8: a comma or ) is missing", WEFT_ERR_ARGUMENT},
                 {"a + (a > 0)", "column 3: a condition is combined with a number", WEFT_ERR_ARGUMENT},
                 {"w_sel(a, a, a)", "column 1: the first argument", WEFT_ERR_ARGUMENT},
                 {"a && a", "column 3: numbers where conditions", WEFT_ERR_ARGUMENT},
                 {"!a", "column 1: ! needs a condition", WEFT_ERR_ARGUMENT},
                 {"-(a > 0)", "column 1: a condition where a number", WEFT_ERR_ARGUMENT},
                 {"", "column 1: an operand is missing", WEFT_ERR_ARGUMENT},
                 {"a & a", "column 3: there is no and for f32", WEFT_ERR_DTYPE},
                 {"a $ a", "column 3: an operator is missing before $", WEFT_ERR_ARGUMENT}};
    for (int i = 0; i < COUNT(wrong); i++) {
        weft_defined_op *op;
        const weft_op_options options = {.name = "mine", .arity = 1, .expression = wrong[i].expression};
        const weft_status status = weft_op_define(m->ctx, &options, &op);
        const bool said =
            strstr(weft_last_error(m->ctx), wrong[i].says) && strstr(weft_last_error(m->ctx), "mine: ");
        if (!said) printf("%s: %s\n", wrong[i].expression, weft_last_error(m->ctx));
        ops_hold(m, "defined", WEFT_F32, wrong[i].expression, status == wrong[i].status && !op && said);
    }
    char deep[400];
    memset(deep, '(', sizeof deep);
    deep[sizeof deep - 1] = 0;
    weft_defined_op *op;
    ops_hold(m, "defined", WEFT_F32, "deep",
             weft_op_define(m->ctx, &(weft_op_options){.name = "deep", .arity = 1, .expression = deep},
                            &op) == WEFT_ERR_ARGUMENT &&
                 strstr(weft_last_error(m->ctx), "too deep"));
    ops_hold(m, "defined", WEFT_F32, "no such gradient",
             weft_op_define(
                 m->ctx,
                 &(weft_op_options){.name = "none", .arity = 1, .expression = "a", .gradients = {"g", "g"}},
                 &op) == WEFT_ERR_ARGUMENT);
    const weft_op_options half = {
        .name = "half", .arity = 1, .expression = "a * 0.5", .dtypes = 1u << WEFT_I32};
    ops_hold(m, "defined", WEFT_I32, "a number that is none",
             weft_op_define(m->ctx, &half, &op) == WEFT_ERR_DTYPE &&
                 strstr(weft_last_error(m->ctx), "column 5: 0.5 is not a value of i32"));
    ops_hold(m, "defined", WEFT_F32, "NULL", weft_op_define(m->ctx, NULL, &op) == WEFT_ERR_ARGUMENT);
    ops_refused(m, "defined", WEFT_F32, "NULL op", weft_op_apply(NULL, NULL), WEFT_ERR_ARGUMENT);
}

void ops_case_defined(matrix *m);
void ops_case_defined(matrix *m) {
    for (int d = 0; d < 4; d++) {
        if (!ops_has_dtype(m, "defined", ops_dtypes[d])) continue;
        for (int i = 0; i < COUNT(all); i++) {
            if (d == 0) ops_another_way(m);
            for (int v = 0; v < (i ? 1 : VIEW_COUNT); v++) check(m, &all[i], ops_dtypes[d], (view_kind)v);
        }
    }
    check_others(m);
    check_sources(m);
    check_wrong(m);
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)dtype;
    return weft_op_apply(define(ctx, &((const definition *)user)->options), in);
}

/* ---- gradients of (a^2 + 1) b with a source, by each kind of gradient that a definition can have ---- */

typedef enum way { DERIVED, GIVEN, GIVEN_ALONE, RECORDED } way;

static void squares_gradient(weft_tensor *const *in, weft_tensor *y, weft_tensor *g, weft_tensor **grads,
                             void *user) {
    (void)user;
    grads[0] = weft_mul(weft_mul_scalar(weft_mul(in[0], in[1]), 2), g);
    grads[1] = weft_mul(g, weft_div(y, in[1]));
}

/* A definition of kind GIVEN_ALONE has no expression. */
static weft_op_options squares(weft_dialect dialect, way how) {
    static const char *const written[] = {
        "void own_squares(__global const double *a, __global const double *b, __global double *out, long n) "
        "{\n    const size_t i = get_global_id(0);\n"
        "    if (i < n) out[i] = (a[i] * a[i] + 1) * b[i];\n}\n",
        "__device__ void own_squares(const double *a, const double *b, double *out, long n) {\n"
        "    const long i = blockIdx.x * 64 + threadIdx.x;\n"
        "    if (i < n) out[i] = (a[i] * a[i] + 1) * b[i];\n}\n"};
    weft_op_options o = {.name = "own_squares",
                         .arity = 2,
                         .expression = how == GIVEN_ALONE ? NULL : "(a * a + 1) * b",
                         .dtypes = 1u << WEFT_F64,
                         .dialect = dialect,
                         .source = written[dialect]};
    if (how == RECORDED) o.gradient = squares_gradient;
    if (how == GIVEN || how == GIVEN_ALONE) o.gradients[0] = "2 * a * b * g", o.gradients[1] = "g * y / b";
    return o;
}

static weft_tensor *build_source(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    weft_tensor *wide[2] = {weft_cast(in[0], WEFT_F64), weft_cast(in[1], WEFT_F64)};
    (void)dtype;
    return weft_op_apply(define(ctx, user), wide);
}

/* b is a weight: each of its elements applies to a row of a. */
static void check_source_gradients(matrix *m) {
    static const char *const names[] = {"source, derived", "source, given", "source alone, given",
                                        "source, recorded"};
    const bool cuda = reads_cuda(m), here = cuda || !strcmp(m->device, "opencl");
    for (int how = DERIVED; how <= RECORDED; how++) {
        if (how == GIVEN_ALONE && !here) continue; /* check_sources tests this case */
        weft_op_options *o = ops_alloc(m, sizeof *o);
        *o = squares(cuda ? WEFT_DIALECT_CUDA : WEFT_DIALECT_OPENCL, (way)how);
        ops_another_way(m);
        grad_check(m, &(grad_case){.op = "defined",
                                   .sample = names[how],
                                   .n = 2,
                                   .s = {SHAPE(3, 4), SHAPE(4)},
                                   .low = 0.5,
                                   .high = 1.5,
                                   .build = build_source,
                                   .user = o,
                                   .f64 = true});
    }
}

void ops_grad_defined(matrix *m);
void ops_grad_defined(matrix *m) {
    check_source_gradients(m);
    for (int i = 0; i < 4; i++) {
        ops_another_way(m);
        grad_check(m, &(grad_case){.op = "defined",
                                   .sample = all[i].options.name,
                                   .n = all[i].options.arity,
                                   .s = {SHAPE(3, 4), SHAPE(4), SHAPE(3, 1)},
                                   .low = all[i].low,
                                   .high = all[i].high,
                                   .avoid = all[i].where,
                                   .build = build,
                                   .user = &all[i]});
    }
    grad_zero(m, &(grad_case){.op = "defined",
                              .sample = "one",
                              .n = 1,
                              .s = {SHAPE(4)},
                              .low = -1,
                              .high = 1,
                              .build = build,
                              .user = &all[4]});
}
