/* Scores of predictions compared with scikit-learn's (make_metrics.py), predictions of a module for all
 * samples of a loader, and class weights in training. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weft/weft.h>

enum { N = 97, WIDE = 4 };

static void make_logits(float *x, int width) {
    for (int i = 0; i < N; i++)
        for (int c = 0; c < width; c++) x[i * width + c] = (float)(nearbyint(sin(i * 0.7 + c * 1.3) * 8) / 4);
}

static weft_array array_of(weft_dtype dtype, int64_t rows, int64_t width, void *data) {
    return (weft_array){dtype, width > 0 ? 2 : 1, {rows, width}, data, 0};
}

static void assert_near(double got, double wanted) {
    if (!(fabs(got - wanted) <= 1e-14)) fail_msg("%.17g is not %.17g", got, wanted);
}

typedef struct expected {
    int width, occurring;
    double accuracy, auc, precision, recall, f1;
    int64_t confusion[16];
} expected;

static void check_scores(const expected *e, const weft_class_scores *s) {
    const int64_t classes = e->width == 1 ? 2 : e->width;
    assert_int_equal(s->samples, N);
    assert_int_equal(s->classes, classes);
    assert_near(s->accuracy, e->accuracy);
    assert_near(s->auc, e->auc);
    assert_near(s->precision, e->precision);
    assert_near(s->recall, e->recall);
    assert_near(s->f1, e->f1);
    assert_memory_equal(s->confusion, e->confusion, (size_t)(classes * classes) * sizeof *s->confusion);
}

static void classes_are_scored_as_elsewhere(void **state) {
    (void)state;
    static const expected cases[] = {{4,
                                      4,
                                      0.237113402061856,
                                      0.494601324383869,
                                      0.235856549364614,
                                      0.185019841269841,
                                      0.186918934240363,
                                      {13, 13, 12, 18, 7, 6, 5, 9, 0, 0, 0, 0, 4, 3, 3, 4}},
                                     {4,
                                      3,
                                      0.22680412371134,
                                      0.498836710793233,
                                      0.245265151515151,
                                      0.165343915343915,
                                      0.196524822695035,
                                      {11, 10, 9, 12, 6, 6, 6, 10, 7, 6, 5, 9, 0, 0, 0, 0}},
                                     {2,
                                      2,
                                      0.484536082474227,
                                      0.492160278745645,
                                      0.49163807890223,
                                      0.491506968641115,
                                      0.484042553191489,
                                      {25, 31, 19, 22}},
                                     {1,
                                      2,
                                      0.484536082474227,
                                      0.505008710801394,
                                      0.48849104859335,
                                      0.488240418118467,
                                      0.483162830349531,
                                      {26, 30, 20, 21}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float x[N * WIDE];
        int32_t y[N];
        uint8_t bytes[N];
        weft_class_scores s;
        make_logits(x, cases[i].width);
        for (int k = 0; k < N; k++) bytes[k] = (uint8_t)(y[k] = (k * k + 3 * k) % 7 % cases[i].occurring);
        const weft_array logits = array_of(WEFT_F32, N, cases[i].width, x), ids = array_of(WEFT_I32, N, 0, y),
                         small = array_of(WEFT_U8, N, 0, bytes);
        assert_int_equal(weft_score_classes(NULL, &logits, i % 2 ? &small : &ids, true, &s), WEFT_OK);
        check_scores(&cases[i], &s);
        if (i == 1) { /* no sample is of class 3 */
            assert_int_equal(s.each[3].actual, 0);
            assert_int_equal(s.each[3].predicted, 31);
            assert_true(isnan(s.each[3].auc));
            assert_near(s.each[0].f1, 1.0 / 3);
        }
        weft_class_scores_free(NULL, &s);
        assert_int_equal(weft_score_classes(NULL, &logits, &ids, false, &s), WEFT_OK);
        assert_true(isnan(s.auc) && isnan(s.each[0].auc));
        weft_class_scores_free(NULL, &s);
    }
}

static void a_class_that_is_none_is_named(void **state) {
    (void)state;
    float x[6] = {0};
    int32_t y[3] = {0, 1, 2};
    weft_class_scores s;
    const weft_array logits = array_of(WEFT_F32, 3, 2, x), ids = array_of(WEFT_I32, 3, 0, y), none = {0};
    assert_int_equal(weft_score_classes(NULL, &logits, &ids, true, &s), WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(NULL), "sample 2 has class 2"));
    assert_int_equal(weft_score_classes(NULL, &none, &ids, true, &s), WEFT_ERR_SHAPE);
    assert_int_equal(weft_score_classes(NULL, &logits, NULL, true, &s), WEFT_ERR_ARGUMENT);
    weft_class_scores_free(NULL, &s);
    weft_class_scores_free(NULL, NULL);
    /* scores that f32 rounds to 1 are still told apart */
    float far[8] = {0, 90, 0, 95, 0, 99, 0, 80};
    int32_t is[4] = {0, 1, 1, 0};
    const weft_array certain = array_of(WEFT_F32, 4, 2, far), which = array_of(WEFT_I32, 4, 0, is);
    assert_int_equal(weft_score_classes(NULL, &certain, &which, true, &s), WEFT_OK);
    assert_true(s.auc == 1);
    weft_class_scores_free(NULL, &s);
}

/* With so many classes there is no confusion matrix, but all other scores. */
static void many_classes_are_scored(void **state) {
    (void)state;
    enum { CLASSES = WEFT_CONFUSION_MOST + 1, SAMPLES = 4 };
    float *x = calloc((size_t)SAMPLES * CLASSES, sizeof *x);
    int32_t y[SAMPLES] = {0, 7, 7, CLASSES - 1};
    weft_class_scores s;
    assert_non_null(x);
    for (int i = 0; i < SAMPLES; i++) x[i * CLASSES + y[i]] = 5;
    x[2 * CLASSES + 1] = 9; /* predicted as class 1 */
    const weft_array logits = array_of(WEFT_F32, SAMPLES, CLASSES, x),
                     ids = array_of(WEFT_I32, SAMPLES, 0, y);
    assert_int_equal(weft_score_classes(NULL, &logits, &ids, true, &s), WEFT_OK);
    assert_null(s.confusion);
    assert_near(s.accuracy, 0.75);
    assert_near(s.each[7].recall, 0.5);
    assert_near(s.each[7].auc, 1);
    assert_true(isnan(s.each[1].auc) && s.auc == 1);
    weft_class_scores_free(NULL, &s);
    free(x);
}

static void numbers_are_scored_as_elsewhere(void **state) {
    (void)state;
    float p[N * 3], a[N * 3];
    weft_number_scores s;
    make_logits(p, 3);
    for (int i = 0; i < N * 3; i++)
        a[i] = i % 3 == 2
                   ? 1.5f
                   : (float)((double)p[i] * 0.75 + 0.125 * (i / 3 % 5)); /* the last column is constant */
    weft_array x = array_of(WEFT_F32, N, 3, p), y = array_of(WEFT_F32, N, 3, a);
    assert_int_equal(weft_score_numbers(NULL, &x, &y, &s), WEFT_OK);
    assert_int_equal(s.columns, 3);
    assert_near(s.r2, 0.54289906429591);
    assert_near(s.rmse, 1.00555806944753);
    assert_near(s.mae, 0.81872852233677);
    x = array_of(WEFT_F32, 1, 1, p), y = array_of(WEFT_F32, 1, 1, a);
    assert_int_equal(weft_score_numbers(NULL, &x, &y, &s), WEFT_OK);
    assert_true(isnan(s.r2) && isfinite(s.rmse));
    y.shape[0] = 2;
    assert_int_equal(weft_score_numbers(NULL, &x, &y, &s), WEFT_ERR_SHAPE);
}

/* A sample of weight 3 counts as three samples of weight 1. */
static void weights_repeat_samples(void **state) {
    (void)state;
    enum { WIDTH = 3 };
    float x[N * WIDTH], many[3 * N * WIDTH], weights[N], many_numbers[3 * N], numbers[N];
    int32_t y[N], many_y[3 * N];
    int64_t rows = 0;
    make_logits(x, WIDTH);
    for (int i = 0; i < N; i++) {
        y[i] = (i * i + 3 * i) % 7 % WIDTH;
        numbers[i] = x[i * WIDTH] * 0.5f + (float)(i % 4);
        weights[i] = (float)(1 + i % 3);
        for (int k = 0; k < 1 + i % 3; k++, rows++) {
            memcpy(many + rows * WIDTH, x + i * WIDTH, WIDTH * sizeof *x);
            many_y[rows] = y[i];
            many_numbers[rows] = numbers[i];
        }
    }
    weft_class_scores a, b;
    const weft_array few = array_of(WEFT_F32, N, WIDTH, x), all = array_of(WEFT_F32, rows, WIDTH, many);
    const weft_array ids = array_of(WEFT_I32, N, 0, y), all_ids = array_of(WEFT_I32, rows, 0, many_y);
    assert_int_equal(weft_score_weighted_classes(NULL, &few, &ids, weights, true, &a), WEFT_OK);
    assert_int_equal(weft_score_classes(NULL, &all, &all_ids, true, &b), WEFT_OK);
    assert_int_equal(a.samples, N);
    assert_near(a.accuracy, b.accuracy);
    assert_near(a.precision, b.precision);
    assert_near(a.recall, b.recall);
    assert_near(a.f1, b.f1);
    assert_near(a.auc, b.auc);
    weft_class_scores_free(NULL, &a);
    weft_class_scores_free(NULL, &b);
    float first[N], many_first[3 * N];
    for (int i = 0; i < N; i++) first[i] = x[i * WIDTH];
    for (int64_t i = 0; i < rows; i++) many_first[i] = many[i * WIDTH];
    const weft_array said = array_of(WEFT_F32, N, 1, first),
                     all_said = array_of(WEFT_F32, rows, 1, many_first);
    const weft_array is = array_of(WEFT_F32, N, 1, numbers),
                     all_are = array_of(WEFT_F32, rows, 1, many_numbers);
    weft_number_scores c, d;
    assert_int_equal(weft_score_weighted_numbers(NULL, &said, &is, weights, &c), WEFT_OK);
    assert_int_equal(weft_score_numbers(NULL, &all_said, &all_are, &d), WEFT_OK);
    assert_near(c.r2, d.r2);
    assert_near(c.rmse, d.rmse);
    assert_near(c.mae, d.mae);
    weights[4] = -1;
    assert_int_equal(weft_score_weighted_numbers(NULL, &said, &is, weights, &c), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_score_weighted_classes(NULL, &few, &ids, weights, true, &a), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(NULL), "the weight of sample 4 is -1"));
}

/* ---- modules ---- */

typedef struct setting {
    weft_context *ctx;
    weft_module *net;
    float x[N * 2];
    int32_t y[N];
    weft_array inputs, targets;
} setting;

/* One sample in eight is of class 1, and the classes overlap. */
static void set_up(setting *s, int64_t outputs) {
    assert_int_equal(weft_open(&(weft_open_options){.seed = 7}, &s->ctx), WEFT_OK);
    s->net = weft_nn_linear(s->ctx, 2, outputs, NULL);
    for (int i = 0; i < N; i++) {
        s->y[i] = i % 8 == 0;
        s->x[2 * i] = (float)(i % 5) - 2 + 0.75f * (float)s->y[i];
        s->x[2 * i + 1] = (float)(i % 3) - 1;
    }
    s->inputs = array_of(WEFT_F32, N, 2, s->x);
    s->targets = array_of(WEFT_I32, N, 0, s->y);
}

static void predictions_come_in_order_and_without_padding(void **state) {
    (void)state;
    setting s;
    set_up(&s, 2);
    for (int64_t batch = 10; batch <= N; batch += 29) {
        weft_loader *loader;
        weft_array predictions, targets;
        double loss, same, accuracy;
        float all[N * 2];
        weft_class_scores scores;
        assert_int_equal(weft_loader_new(s.ctx, &s.inputs, &s.targets,
                                         &(weft_loader_options){.batch = batch, .in_order = true}, &loader),
                         WEFT_OK);
        assert_int_equal(
            weft_module_evaluate_all(s.net, loader, WEFT_LOSS_CROSS_ENTROPY, &loss, &predictions, &targets),
            WEFT_OK);
        assert_int_equal(weft_module_evaluate(s.net, loader, WEFT_LOSS_CROSS_ENTROPY, &same, &accuracy),
                         WEFT_OK);
        assert_true(loss == same);
        assert_int_equal(predictions.bytes, sizeof all);
        assert_memory_equal(targets.data, s.y, sizeof s.y);
        weft_tensor *x = weft_from(s.ctx, WEFT_F32, 2, (int64_t[]){N, 2}, s.x);
        assert_int_equal(weft_read(weft_forward(s.net, x), all, sizeof all), WEFT_OK);
        for (int i = 0; i < N * 2; i++) assert_true(fabsf(((float *)predictions.data)[i] - all[i]) < 1e-5f);
        assert_int_equal(weft_score_classes(NULL, &predictions, &targets, true, &scores), WEFT_OK);
        assert_near(scores.accuracy, accuracy);
        weft_class_scores_free(NULL, &scores);
        weft_array_free(NULL, &predictions);
        weft_array_free(NULL, &targets);
        weft_loader_free(loader);
    }
    weft_close(s.ctx);
}

/* Trains on all samples at once. Returns the share of samples that are predicted as class 1. */
static double share_of_ones(int64_t outputs, const float *weights, int64_t batch) {
    setting s;
    weft_loader *loader, *whole;
    weft_array predictions, targets;
    weft_class_scores scores;
    double loss;
    const weft_loss_kind kind = outputs == 1 ? WEFT_LOSS_BCE : WEFT_LOSS_CROSS_ENTROPY;
    set_up(&s, outputs);
    assert_int_equal(
        weft_loader_new(s.ctx, &s.inputs, &s.targets, &(weft_loader_options){.batch = batch}, &loader),
        WEFT_OK);
    assert_int_equal(weft_loader_new(s.ctx, &s.inputs, &s.targets,
                                     &(weft_loader_options){.batch = N, .in_order = true}, &whole),
                     WEFT_OK);
    weft_optimizer *opt = weft_adam(s.net, &(weft_adam_options){.lr = 0.05});
    assert_int_equal(
        weft_fit(s.net, opt, loader,
                 &(weft_fit_options){
                     .loss = kind, .steps = 200, .class_weights = weights, .n_classes = weights ? 2 : 0},
                 NULL),
        WEFT_OK);
    assert_int_equal(weft_module_evaluate_all(s.net, whole, kind, &loss, &predictions, &targets), WEFT_OK);
    assert_int_equal(weft_score_classes(NULL, &predictions, &targets, true, &scores), WEFT_OK);
    const double share = (double)scores.each[1].predicted / (double)N;
    weft_class_scores_free(NULL, &scores);
    weft_array_free(NULL, &predictions);
    weft_array_free(NULL, &targets);
    weft_loader_free(loader);
    weft_loader_free(whole);
    weft_close(s.ctx);
    return share;
}

static void weights_of_classes_turn_training(void **state) {
    (void)state;
    const float balanced[2] = {1, 7};
    for (int64_t batch = 40; batch <= N; batch += 57) /* with padding and without */
        for (int64_t outputs = 1; outputs <= 2; outputs++) {
            assert_true(share_of_ones(outputs, NULL, batch) == 0);
            const double share = share_of_ones(outputs, balanced, batch);
            assert_true(share > 0.2 && share < 0.8);
        }
}

/* The loss of the first step is the sum of the weighted losses, divided by the number of samples. */
static void weighted_means_are_over_samples(void **state) {
    (void)state;
    const float weights[2] = {0.5f, 3};
    for (int64_t outputs = 1; outputs <= 2; outputs++)
        for (int64_t batch = N; batch <= 2 * N; batch += N) { /* a batch larger than the data set is padded */
            setting s;
            weft_loader *loader;
            weft_history history;
            set_up(&s, outputs);
            float logits[N * 2];
            weft_tensor *x = weft_from(s.ctx, WEFT_F32, 2, (int64_t[]){N, 2}, s.x);
            assert_int_equal(
                weft_read(weft_forward(s.net, x), logits, (size_t)(N * outputs) * sizeof *logits), WEFT_OK);
            double sum = 0;
            for (int i = 0; i < N; i++) {
                double odds =
                    outputs == 1 ? (double)logits[i] : (double)logits[2 * i + 1] - (double)logits[2 * i];
                sum += (double)weights[s.y[i]] * log1p(exp(s.y[i] ? -odds : odds));
            }
            assert_int_equal(weft_loader_new(s.ctx, &s.inputs, &s.targets,
                                             &(weft_loader_options){.batch = batch, .in_order = true},
                                             &loader),
                             WEFT_OK);
            weft_optimizer *opt = weft_sgd(s.net, &(weft_sgd_options){.lr = 0.1});
            assert_int_equal(
                weft_fit(s.net, opt, loader,
                         &(weft_fit_options){.loss = outputs == 1 ? WEFT_LOSS_BCE : WEFT_LOSS_CROSS_ENTROPY,
                                             .steps = 1,
                                             .class_weights = weights,
                                             .n_classes = 2},
                         &history),
                WEFT_OK);
            assert_true(fabs(history.lines[0].loss - sum / N) < 1e-6);
            weft_history_free(&history);
            weft_loader_free(loader);
            weft_close(s.ctx);
        }
}

static void wrong_weights_are_refused(void **state) {
    (void)state;
    setting s;
    weft_loader *loader;
    weft_array predictions, targets;
    double loss;
    const float weights[3] = {1, -1, 1};
    set_up(&s, 1);
    assert_int_equal(
        weft_loader_new(s.ctx, &s.inputs, &s.targets, &(weft_loader_options){.batch = 8}, &loader), WEFT_OK);
    weft_optimizer *opt = weft_sgd(s.net, &(weft_sgd_options){.lr = 0.1});
    weft_fit_options o = {.loss = WEFT_LOSS_BCE, .steps = 1, .class_weights = weights, .n_classes = 3};
    assert_int_equal(weft_fit(s.net, opt, loader, &o, NULL), WEFT_ERR_ARGUMENT);
    o.n_classes = 2;
    assert_int_equal(weft_fit(s.net, opt, loader, &o, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(s.ctx), "class 1 is -1"));
    o.loss = WEFT_LOSS_MSE;
    assert_int_equal(weft_fit(s.net, opt, loader, &o, NULL), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_module_evaluate_all(s.net, loader, WEFT_LOSS_BCE, &loss, &predictions, &targets),
                     WEFT_ERR_ARGUMENT);
    weft_loader_free(loader);
    weft_close(s.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(classes_are_scored_as_elsewhere),
        cmocka_unit_test(a_class_that_is_none_is_named),
        cmocka_unit_test(many_classes_are_scored),
        cmocka_unit_test(numbers_are_scored_as_elsewhere),
        cmocka_unit_test(weights_repeat_samples),
        cmocka_unit_test(predictions_come_in_order_and_without_padding),
        cmocka_unit_test(weights_of_classes_turn_training),
        cmocka_unit_test(weighted_means_are_over_samples),
        cmocka_unit_test(wrong_weights_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
