/* Losses: values compared with plain C that follows the definitions, gradients, errors, extreme logits. */
#include "unit/nn_help.h"
#include "gradcheck.h"
#include "learn/loss.h"

enum { N = 7, C = 5 };

/* ---- references ---- */

static double reduce(const double *losses, int n, weft_reduction reduction) {
    double sum = 0.0;
    for (int i = 0; i < n; i++) sum += losses[i];
    return reduction == WEFT_MEAN ? sum / n : sum;
}

static double reference_cross_entropy(const double *x, const int32_t *target, weft_cross_entropy_options o) {
    double losses = 0.0, counted = 0.0;
    for (int r = 0; r < N; r++) {
        if (o.use_ignore && target[r] == o.ignore) continue;
        double sum = 0.0, loss = 0.0;
        for (int c = 0; c < C; c++) sum += exp(x[r * C + c]);
        for (int c = 0; c < C; c++) {
            double weight = o.smoothing / (double)C + (c == target[r] ? 1.0 - o.smoothing : 0.0);
            loss -= weight * (x[r * C + c] - log(sum));
        }
        losses += loss;
        counted += 1.0;
    }
    return o.reduction == WEFT_MEAN ? losses / counted : losses;
}

/* ---- values ---- */

static void test_cross_entropy(void **state) {
    weft_context *ctx = *state;
    double x[N * C];
    fill(x, N * C, 1);
    const int32_t target[N] = {0, 4, 2, 3, 1, 2, 0};
    const weft_cross_entropy_options cases[] = {
        {0},
        {.reduction = WEFT_SUM},
        {.smoothing = 0.1},
        {.use_ignore = true, .ignore = 2},
        {.use_ignore = true, .ignore = 2, .smoothing = 0.3, .reduction = WEFT_SUM}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *logits = wide_from(ctx, SHAPE(N, C), x), *t = weft_from(ctx, WEFT_I32, SHAPE(N), target);
        double got = weft_item(weft_cross_entropy(logits, t, &cases[i]));
        double wanted = reference_cross_entropy(x, target, cases[i]);
        assert_close(&got, &wanted, 1, test_within(ctx, 1e-13, 2e-5));
        weft_scope_close(scope);
    }
}

/* A logit x is equivalent to the two logits 0 and x, with label smoothing and class weights too. */
static void test_binary_is_two_classes(void **state) {
    weft_context *ctx = *state;
    const double x[4] = {0.5, -1, 2, -0.25}, both[8] = {0, 0.5, 0, -1, 0, 2, 0, -0.25};
    const float w[2] = {0.5F, 2};
    if (!test_on_cpu()) return;
    const int32_t classes[4] = {1, 0, 0, 1};
    weft_tensor *weights = weft_from(ctx, WEFT_F32, SHAPE(2), w),
                *y = weft_from(ctx, WEFT_I32, SHAPE(4), classes);
    for (int i = 0; i < 4; i++) {
        weft__loss loss = {
            .kind = WEFT_LOSS_BCE, .smoothing = i & 1 ? 0.3 : 0, .weights = i & 2 ? weights : NULL};
        const weft_batch batch = {.y = y};
        const double got = weft_item(weft__loss_mean(&loss, wide_from(ctx, SHAPE(4, 1), x), &batch));
        const weft_cross_entropy_options o = {.reduction = WEFT_SUM,
                                              .smoothing = loss.smoothing,
                                              .weights =
                                                  loss.weights ? weft_cast(weights, test_wide(ctx)) : NULL};
        const double wanted = weft_item(weft_cross_entropy(wide_from(ctx, SHAPE(4, 2), both), y, &o)) / 4;
        assert_close(&got, &wanted, 1, test_within(ctx, 1e-13, 2e-5));
    }
}

/* torch.nn.functional.cross_entropy with weight, label_smoothing 0 and 0.2, ignore_index. */
static void test_cross_entropy_weights(void **state) {
    weft_context *ctx = *state;
    const double x[4 * 3] = {0.5, -1, 2, 1.5, 0.25, -0.75, -0.5, 0, 0.5, 2, 1, -1}, w[3] = {0.5, 2, 1.25};
    const int32_t target[4] = {2, 0, 1, 1};
    weft_tensor *logits = wide_from(ctx, SHAPE(4, 3), x), *t = weft_from(ctx, WEFT_I32, SHAPE(4), target),
                *weights = wide_from(ctx, SHAPE(3), w);
    static const struct {
        weft_cross_entropy_options o;
        double wanted;
    } cases[] = {{{WEFT_MEAN, false, 0, 0, NULL}, 0.9609633391904174},
                 {{WEFT_SUM, false, 0, 0, NULL}, 5.5255392003449},
                 {{WEFT_MEAN, false, 0, 0.2, NULL}, 1.0623039667207819},
                 {{WEFT_SUM, false, 0, 0.2, NULL}, 6.108247808644496},
                 {{WEFT_MEAN, true, 0, 0, NULL}, 1.0209910277411975},
                 {{WEFT_MEAN, true, 0, 0.2, NULL}, 1.0550750373072635}};
    for (size_t i = test_on_cpu() ? 0 : COUNT(cases) - 1; i < COUNT(cases);
         i++) { /* on other devices only the case with all options */
        weft_cross_entropy_options o = cases[i].o;
        o.weights = weights;
        double got = weft_item(weft_cross_entropy(logits, t, &o));
        assert_close(&got, &cases[i].wanted, 1, test_within(ctx, 1e-14, 2e-5));
    }
    if (!test_on_cpu()) return;
    const weft_cross_entropy_options none = {.reduction = WEFT_NONE, .smoothing = 0.2, .weights = weights};
    double *each = values_of(weft_cross_entropy(logits, t, &none));
    assert_close(each,
                 (double[]){0.7516391208214462, 0.5691038627813624, 2.158498890687209, 2.629005934354478}, 4,
                 test_within(ctx, 1e-14, 2e-5));
    free(each);
    weft_tensor *two = weft_narrow(weights, 0, 0, 2);
    assert_int_equal(
        weft_tensor_status(weft_cross_entropy(logits, t, &(weft_cross_entropy_options){.weights = two})),
        WEFT_ERR_SHAPE);
    assert_int_equal(
        weft_tensor_status(weft_cross_entropy(logits, t, &(weft_cross_entropy_options){.weights = t})),
        WEFT_ERR_SHAPE);
}

/* A class whose logit is -inf gets no label smoothing: the loss equals the loss without the class. */
static void test_cross_entropy_masked(void **state) {
    weft_context *ctx = *state;
    const double with[3] = {0.5, -HUGE_VAL, 2}, without[2] = {0.5, 2}, zeros[1] = {0};
    const weft_cross_entropy_options o = {.smoothing = 0.3};
    double a = weft_item(weft_cross_entropy(wide_from(ctx, SHAPE(1, 3), with),
                                            weft_from(ctx, WEFT_I32, SHAPE(1), (int32_t[]){2}), &o));
    double b = weft_item(weft_cross_entropy(wide_from(ctx, SHAPE(1, 2), without),
                                            weft_from(ctx, WEFT_I32, SHAPE(1), (int32_t[]){1}), &o));
    assert_close(&a, &b, 1, test_within(ctx, 1e-15, 2e-5));
    weft_tensor *x = wide_variable(ctx, SHAPE(1, 3), with), *g = NULL;
    weft_tensor *loss = weft_cross_entropy(x, weft_from(ctx, WEFT_I32, SHAPE(1), (int32_t[]){2}), &o);
    assert_int_equal(weft_gradient(loss, &x, 1, &g), WEFT_OK);
    double *got = values_of(g);
    assert_close(&got[1], zeros, 1, test_within(ctx, 1e-15, 2e-5));
    free(got);
}

static void test_cross_entropy_targets(void **state) {
    weft_context *ctx = *state;
    double x[N * C];
    fill(x, N * C, 2);
    const int32_t a[N] = {1, 4, 2, 3, 0, 2, 1};
    int64_t b[N];
    uint8_t c[N];
    for (int i = 0; i < N; i++) b[i] = a[i], c[i] = (uint8_t)a[i];
    weft_tensor *logits = wide_from(ctx, SHAPE(N, C), x);
    double wanted = reference_cross_entropy(x, a, (weft_cross_entropy_options){0});
    double got[2] = {weft_item(weft_cross_entropy(logits, weft_from(ctx, WEFT_I64, SHAPE(N), b), NULL)),
                     weft_item(weft_cross_entropy(logits, weft_from(ctx, WEFT_U8, SHAPE(N), c), NULL))};
    assert_close(got, (double[]){wanted, wanted}, 2, test_within(ctx, 1e-13, 2e-5));
    /* no reduction: a loss for each row, for any rank */
    weft_cross_entropy_options none = {.reduction = WEFT_NONE, .use_ignore = true, .ignore = -1};
    weft_tensor *cube = weft_reshape(weft_narrow(logits, 0, 0, 6), SHAPE(2, 3, C));
    weft_tensor *t =
        weft_reshape(weft_from(ctx, WEFT_I32, SHAPE(6), (int32_t[]){1, -1, 2, 3, 0, 2}), SHAPE(2, 3));
    weft_tensor *rows = weft_cross_entropy(cube, t, &none);
    assert_shape(rows, SHAPE(2, 3));
    double *loss = values_of(rows);
    assert_true(loss[1] == 0.0);
    assert_true(loss[0] > 0.0 && loss[5] > 0.0);
    free(loss);
}

static void test_index_errors(void **state) {
    weft_context *ctx = *state;
    double x[N * C] = {0};
    for (int32_t bad = -1; bad <= C; bad += C + 1) {
        weft_scope *scope = weft_scope_open(ctx);
        int32_t target[N] = {0, 1, 2, bad, 1, 2, 0};
        weft_tensor *loss = weft_cross_entropy(wide_from(ctx, SHAPE(N, C), x),
                                               weft_from(ctx, WEFT_I32, SHAPE(N), target), NULL);
        double out;
        weft_status status = weft_read(loss, &out, weft_dtype_size(weft_dtype_of(loss)));
        if (status == WEFT_OK) status = weft_synchronize(ctx);
        assert_int_equal(status, WEFT_ERR_INDEX);
        weft_scope_close(scope);
    }
    /* the context stays usable */
    const int32_t good[N] = {0};
    double out = weft_item(
        weft_cross_entropy(wide_from(ctx, SHAPE(N, C), x), weft_from(ctx, WEFT_I32, SHAPE(N), good), NULL));
    assert_close(&out, (double[]){log(C)}, 1, test_within(ctx, 1e-14, 2e-5));
}

static void test_pairs(void **state) {
    weft_context *ctx = *state;
    enum { M = 33 };
    double x[M], t[M], mse[M], l1[M], huber[M], bce[M];
    fill(x, M, 3);
    fill(t, M, 4);
    for (int i = 0; i < M; i++) {
        double d = x[i] - t[i], p = 1.0 / (1.0 + exp(-x[i])), y = 0.5 + t[i] / 3.0;
        mse[i] = d * d;
        l1[i] = fabs(d);
        huber[i] = fabs(d) <= 0.7 ? 0.5 * d * d : 0.7 * (fabs(d) - 0.35);
        bce[i] = -(y * log(p) + (1.0 - y) * log(1.0 - p));
    }
    weft_tensor *a = wide_from(ctx, SHAPE(3, 11), x), *b = wide_from(ctx, SHAPE(3, 11), t);
    weft_tensor *y = weft_add_scalar(weft_mul_scalar(b, 1.0 / 3.0), 0.5);
    for (int r = WEFT_MEAN; r <= WEFT_SUM; r++) {
        weft_reduction reduction = (weft_reduction)r;
        double got[4] = {weft_item(weft_mse(a, b, reduction)), weft_item(weft_l1(a, b, reduction)),
                         weft_item(weft_huber(a, b, 0.7, reduction)),
                         weft_item(weft_bce_with_logits(a, y, reduction))};
        double wanted[4] = {reduce(mse, M, reduction), reduce(l1, M, reduction), reduce(huber, M, reduction),
                            reduce(bce, M, reduction)};
        assert_close(got, wanted, 4, test_within(ctx, 1e-13, 2e-5));
    }
    double *rows = values_of(weft_mse(a, b, WEFT_NONE));
    assert_close(rows, mse, M, test_within(ctx, 1e-15, 2e-5));
    free(rows);
}

static void test_extremes(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = wide_from(ctx, SHAPE(4), (double[]){1e4, -1e4, 800.0, -800.0});
    weft_tensor *t = wide_from(ctx, SHAPE(4), (double[]){1.0, 0.0, 0.0, 1.0});
    double *bce = values_of(weft_bce_with_logits(x, t, WEFT_NONE));
    assert_close(bce, (double[]){0.0, 0.0, 800.0, 800.0}, 4, test_within(ctx, 1e-15, 2e-5));
    free(bce);
    weft_tensor *logits =
        wide_from(ctx, SHAPE(3, 2), (double[]){1e5, -1e5, -1e5, -1e5, test_within(ctx, 1e300, 1e38), 0.0});
    double *ce =
        values_of(weft_cross_entropy(logits, weft_from(ctx, WEFT_I32, SHAPE(3), (int32_t[]){1, 0, 0}),
                                     &(weft_cross_entropy_options){.reduction = WEFT_NONE}));
    assert_close(ce, (double[]){2e5, log(2.0), 0.0}, 3, test_within(ctx, 1e-15, 2e-5));
    free(ce);
    /* everything is ignored: the loss is 0, not 0/0 */
    double none =
        weft_item(weft_cross_entropy(logits, weft_from(ctx, WEFT_I32, SHAPE(3), (int32_t[]){7, 7, 7}),
                                     &(weft_cross_entropy_options){.use_ignore = true, .ignore = 7}));
    assert_true(none == 0.0);
}

static void test_half(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = weft_cast(weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){1.5f, 2.0f}), WEFT_F16);
    weft_tensor *t = weft_cast(weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){1.0f, 1.0f}), WEFT_F16);
    weft_tensor *loss = weft_mse(x, t, WEFT_MEAN);
    assert_int_equal(weft_dtype_of(loss), WEFT_F32);
    assert_true(weft_item(loss) == 0.625);
}

/* ---- errors ---- */

static void test_shape_errors(void **state) {
    weft_context *ctx = *state;
    weft_tensor *a = weft_full(ctx, WEFT_F32, SHAPE(4, 3), 1.0), *b = weft_full(ctx, WEFT_F32, SHAPE(3), 1.0);
    assert_poisoned(weft_mse(a, b, WEFT_MEAN), WEFT_ERR_SHAPE, "[4,3]", "[3]");
    assert_poisoned(weft_l1(a, b, WEFT_MEAN), WEFT_ERR_SHAPE, "l1", "[3]");
    assert_poisoned(weft_huber(a, b, 1.0, WEFT_MEAN), WEFT_ERR_SHAPE, "huber", "[3]");
    assert_poisoned(weft_huber(a, a, 0.0, WEFT_MEAN), WEFT_ERR_ARGUMENT, "huber", "delta");
    assert_poisoned(weft_bce_with_logits(a, b, WEFT_MEAN), WEFT_ERR_SHAPE, "bce", "[4,3]");
    assert_poisoned(weft_mse(a, weft_cast(a, WEFT_F16), WEFT_MEAN), WEFT_ERR_DTYPE, "f32", "f16");
    weft_tensor *t = weft_full_i64(ctx, WEFT_I32, SHAPE(3), 1);
    assert_poisoned(weft_cross_entropy(a, t, NULL), WEFT_ERR_SHAPE, "[4,3]", "[3]");
    assert_poisoned(weft_cross_entropy(a, weft_full(ctx, WEFT_F32, SHAPE(4), 1.0), NULL), WEFT_ERR_DTYPE,
                    "cross_entropy", "class");
    assert_poisoned(weft_cross_entropy(weft_add(a, weft_full(ctx, WEFT_F32, SHAPE(5), 1.0)), t, NULL),
                    WEFT_ERR_SHAPE, "add", NULL);
    assert_poisoned(weft_mse(a, a, (weft_reduction)9), WEFT_ERR_ARGUMENT, "reduction", "9");
}

/* ---- gradients ---- */

typedef struct pair {
    weft_context *ctx;
    weft_tensor *x, *t, *classes, *weights;
    int which;
} pair;

static weft_tensor *loss_of(void *user) {
    pair *p = user;
    switch (p->which) {
    case 0: return weft_mse(p->x, p->t, WEFT_MEAN);
    case 1: return weft_l1(p->x, p->t, WEFT_SUM);
    case 2: return weft_huber(p->x, p->t, 0.7, WEFT_MEAN);
    case 3: return weft_bce_with_logits(p->x, p->t, WEFT_MEAN);
    case 4: return weft_cross_entropy(p->x, p->classes, NULL);
    case 5: return weft_cross_entropy(p->x, p->classes, &(weft_cross_entropy_options){.smoothing = 0.2});
    case 7:
        return weft_cross_entropy(p->x, p->classes,
                                  &(weft_cross_entropy_options){.smoothing = 0.2, .weights = p->weights});
    default:
        return weft_cross_entropy(p->x, p->classes,
                                  &(weft_cross_entropy_options){.use_ignore = true, .ignore = 2});
    }
}

static void test_gradients(void **state) {
    weft_context *ctx = *state;
    pair p = {.ctx = ctx, .x = variable(ctx, 5, SHAPE(N, C)), .t = variable(ctx, 6, SHAPE(N, C))};
    p.classes = weft_variable_new(ctx, "classes", WEFT_I32, SHAPE(N), (int32_t[N]){0, 4, 2, 3, 1, 2, 0});
    p.weights = wide_from(ctx, SHAPE(C), (double[C]){0.5, 2, 1, 1.5, 0.25});
    for (p.which = 0; p.which < (test_on_cpu() ? 8 : 7); p.which++) {
        double worst = gradcheck(ctx, loss_of, &p, (weft_tensor *[]){p.x, p.t}, p.which < 4 ? 2 : 1, 40);
        if (!(worst <= gradcheck_accepted(ctx))) print_error("loss %d\n", p.which);
        assert_true(worst <= gradcheck_accepted(ctx));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_cross_entropy, setup, teardown),
        cmocka_unit_test_setup_teardown(test_binary_is_two_classes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cross_entropy_weights, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cross_entropy_masked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cross_entropy_targets, setup, teardown),
        cmocka_unit_test_setup_teardown(test_index_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pairs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_extremes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_half, setup, teardown),
        cmocka_unit_test_setup_teardown(test_shape_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_gradients, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
