/* Evaluation on several devices: the bits of one device, in any number, and failures of one of them. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include <weft/metrics.h>

#include "base/each.h"
#include "learn/evaluate.h"
#include "device.h"

enum { ROWS = 45, INPUTS = 3, CLASSES = 3, BATCH = 4, DEVICES = 5 };

typedef struct setting {
    float x[ROWS][INPUTS];
    int32_t y[ROWS];
    weft_context *contexts[DEVICES];
    weft__evaluated list[DEVICES];
    bool stop; /* what device 2 answers when it is asked whether to stop */
} setting;

static bool asked(void *user) { return *(bool *)user; }

/* Equal models and loaders on all devices. The last batch is padded. */
static void set_up(setting *s) {
    memset(s, 0, sizeof *s);
    for (int i = 0; i < ROWS; i++) {
        for (int j = 0; j < INPUTS; j++) s->x[i][j] = (float)((i * 7 + j * 5) % 11) / 5 - 1;
        s->y[i] = i * i % CLASSES;
    }
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, s->x, sizeof s->x},
                     y = {WEFT_I32, 1, {ROWS}, s->y, sizeof s->y};
    for (int i = 0; i < DEVICES; i++) {
        const weft_open_options options = {.device = "cpu",
                                           .threads = 1,
                                           .seed = 3,
                                           .interrupted = i == 1 ? asked : NULL,
                                           .interrupted_user = &s->stop};
        const weft_loader_options how = {.batch = BATCH, .in_order = true};
        assert_ok(weft_open(&options, &s->contexts[i]));
        s->list[i].module = weft_nn_mlp(s->contexts[i], (int64_t[]){INPUTS, 16, CLASSES}, 3, NULL);
        assert_ok(weft_loader_new(s->contexts[i], &x, &y, &how, &s->list[i].loader));
    }
}

static void tear_down(setting *s) {
    for (int i = 0; i < DEVICES; i++) {
        weft_loader_free(s->list[i].loader);
        weft_close(s->contexts[i]);
    }
}

static void same_array(const weft_array *a, const weft_array *b) {
    assert_int_equal(a->bytes, b->bytes);
    assert_memory_equal(a->data, b->data, a->bytes);
}

static void test_same_bits(void **state) {
    (void)state;
    setting s;
    double loss, accuracy, all_loss;
    weft_array predictions, targets;
    set_up(&s);
    weft_module *m = s.list[0].module;
    weft_loader *loader = s.list[0].loader;
    assert_ok(weft_module_evaluate(m, loader, WEFT_LOSS_CROSS_ENTROPY, &loss, &accuracy));
    assert_ok(
        weft_module_evaluate_all(m, loader, WEFT_LOSS_CROSS_ENTROPY, &all_loss, &predictions, &targets));
    assert_memory_equal(&loss, &all_loss, sizeof loss);
    assert_int_equal(predictions.shape[0], ROWS);
    for (size_t n = 1; n <= DEVICES; n++) {
        const weft__evaluators on = {s.list, n, NULL};
        double loss_n, accuracy_n, all_loss_n;
        weft_array predictions_n, targets_n;
        assert_ok(weft__evaluate(&on, WEFT_LOSS_CROSS_ENTROPY, &loss_n, &accuracy_n));
        assert_ok(weft__evaluate_all(&on, WEFT_LOSS_CROSS_ENTROPY, &all_loss_n, &predictions_n, &targets_n));
        assert_memory_equal(&loss_n, &loss, sizeof loss);
        assert_memory_equal(&accuracy_n, &accuracy, sizeof accuracy);
        assert_memory_equal(&all_loss_n, &loss, sizeof loss);
        same_array(&predictions, &predictions_n);
        same_array(&targets, &targets_n);
        weft_array_free(NULL, &predictions_n);
        weft_array_free(NULL, &targets_n);
    }
    weft_array_free(NULL, &predictions);
    weft_array_free(NULL, &targets);
    tear_down(&s);
}

/* Answers, which need no room for logits, get the scores of logits. */
static void test_answers(void **state) {
    (void)state;
    setting s;
    double loss, same_loss;
    weft_array logits, answers, targets, same_targets;
    weft_class_scores a, b;
    float weights[ROWS];
    set_up(&s);
    for (int i = 0; i < ROWS; i++) weights[i] = (float)(1 + i % 3);
    const weft__evaluators on = {s.list, 2, NULL};
    assert_ok(weft__evaluate_all(&on, WEFT_LOSS_CROSS_ENTROPY, &loss, &logits, &targets));
    assert_ok(weft__evaluate_answers(&on, &same_loss, &answers, &same_targets));
    assert_true(loss == same_loss && answers.shape[0] == ROWS && answers.shape[1] == 2);
    same_array(&targets, &same_targets);
    for (int i = 0; i < ROWS; i++) {
        const float *x = (const float *)logits.data + i * CLASSES,
                    *answer = (const float *)answers.data + 2 * i;
        const int is = (int)answer[0];
        double sum = 0;
        for (int c = 0; c < CLASSES; c++) sum += exp((double)x[c] - (double)x[is]);
        for (int c = 0; c < CLASSES; c++) assert_true(x[c] <= x[is]);
        assert_true(fabs(exp((double)answer[1]) * sum - 1) < 1e-5);
    }
    assert_ok(weft_score_weighted_classes(NULL, &logits, &targets, weights, false, &a));
    assert_ok(weft__score_answers(&answers, &targets, CLASSES, weights, &b));
    assert_true(a.accuracy == b.accuracy && a.f1 == b.f1 && a.samples == b.samples && a.classes == b.classes);
    assert_true(a.accuracy < 1 && isnan(b.auc));
    assert_memory_equal(a.confusion, b.confusion, CLASSES * CLASSES * sizeof *a.confusion);
    weft_class_scores_free(NULL, &a);
    weft_class_scores_free(NULL, &b);
    weft_array *all[] = {&logits, &answers, &targets, &same_targets};
    for (int i = 0; i < 4; i++) weft_array_free(NULL, all[i]);
    tear_down(&s);
}

/* More devices than batches: some have nothing to do. */
static void test_few_batches(void **state) {
    (void)state;
    setting s;
    double loss, loss_n;
    set_up(&s);
    const weft_array x = {WEFT_F32, 2, {2 * BATCH, INPUTS}, s.x, 0}, y = {WEFT_I32, 1, {2 * BATCH}, s.y, 0};
    for (int i = 0; i < DEVICES; i++) {
        const weft_loader_options how = {.batch = BATCH, .in_order = true};
        weft_loader_free(s.list[i].loader);
        assert_ok(weft_loader_new(s.contexts[i], &x, &y, &how, &s.list[i].loader));
    }
    assert_ok(weft_module_evaluate(s.list[0].module, s.list[0].loader, WEFT_LOSS_CROSS_ENTROPY, &loss, NULL));
    assert_ok(
        weft__evaluate(&(weft__evaluators){s.list, DEVICES, NULL}, WEFT_LOSS_CROSS_ENTROPY, &loss_n, NULL));
    assert_memory_equal(&loss, &loss_n, sizeof loss);
    tear_down(&s);
}

/* Device 2 fails: by a target that is no class, and because it is asked to stop. All can go on afterwards. */
static void test_failures(void **state) {
    (void)state;
    setting s;
    double loss;
    weft_array predictions, targets;
    set_up(&s);
    const weft__evaluators on = {s.list, 3, NULL};
    s.stop = true;
    assert_int_equal(weft__evaluate_all(&on, WEFT_LOSS_CROSS_ENTROPY, &loss, &predictions, &targets),
                     WEFT_ERR_STOPPED);
    assert_string_equal(weft_last_error(NULL), "device 2 of 3 (cpu): stopped, as the program asked");
    assert_null(predictions.data);
    assert_null(targets.data);
    assert_true(loss != loss);
    s.stop = false;
    assert_ok(weft__evaluate(&on, WEFT_LOSS_CROSS_ENTROPY, &loss, NULL));
    assert_true(weft_module_is_training(s.list[1].module));

    s.y[4 * BATCH + 1] = CLASSES; /* in a batch of device 2; the loaders have copies until now */
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, s.x, 0}, y = {WEFT_I32, 1, {ROWS}, s.y, 0};
    const weft_loader_options how = {.batch = BATCH, .in_order = true};
    weft_loader_free(s.list[1].loader);
    assert_ok(weft_loader_new(s.contexts[1], &x, &y, &how, &s.list[1].loader));
    assert_int_equal(weft__evaluate(&on, WEFT_LOSS_CROSS_ENTROPY, &loss, NULL), WEFT_ERR_INDEX);
    assert_ptr_equal(strstr(weft_last_error(NULL), "device 2 of 3 (cpu): "), weft_last_error(NULL));
    assert_true(weft_module_is_training(s.list[1].module));
    tear_down(&s);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_answers),
                                       cmocka_unit_test(test_few_batches), cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
