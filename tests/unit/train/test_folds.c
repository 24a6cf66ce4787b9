/* The folds of a cross-validation: each sample is validated once, folds and their classes are balanced, and
 * only the seed decides who is where. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "train/dataset/dataset.h"

enum { ROWS = 37, CLASSES = 4, FOLDS = 5 };

/* 20, 10, 6 and 1 samples of the classes. */
static int32_t class_of(int64_t row) { return row < 20 ? 0 : row < 30 ? 1 : row < 36 ? 2 : 3; }

/* Fills `part` with the fold in which each row is validated, from 1. Checks that each is validated once. */
static void find_parts(weft__task task, int64_t seed, int64_t part[ROWS]) {
    int32_t labels[ROWS];
    const bool classes = task == WEFT__TASK_CLASSIFICATION;
    weft__config config;
    for (int64_t i = 0; i < ROWS; i++) labels[i] = class_of(i);
    memset(part, 0, ROWS * sizeof *part);
    weft__config_init(&config);
    config.train_seed = seed;
    config.data_folds = FOLDS;
    for (config.data_fold = 1; config.data_fold <= FOLDS; config.data_fold++) {
        int64_t *order, kept;
        bool seen[ROWS] = {false};
        bool *training;
        assert_int_equal(weft__dataset_order(NULL, &config, ROWS, classes ? labels : NULL, &order, &kept),
                         WEFT_OK);
        assert_int_equal(weft__dataset_training_rows(NULL, &config, ROWS, classes ? labels : NULL, &training),
                         WEFT_OK);
        for (int64_t i = 0; i < ROWS; i++) {
            assert_in_range(order[i], 0, ROWS - 1);
            assert_false(seen[order[i]]);
            seen[order[i]] = true;
            assert_int_equal(training[order[i]], i < kept);
            if (i < kept) continue;
            assert_int_equal(part[order[i]], 0);
            part[order[i]] = config.data_fold;
        }
        weft__free(NULL, order);
        weft__free(NULL, training);
    }
    for (int64_t i = 0; i < ROWS; i++) assert_int_not_equal(part[i], 0);
    weft__config_free(&config);
}

/* Counts differ by at most one between the folds. class -1: all samples. */
static void check_balance(const int64_t part[ROWS], int32_t class) {
    int64_t count[FOLDS] = {0}, least = ROWS, most = 0;
    for (int64_t i = 0; i < ROWS; i++)
        if (class < 0 || class_of(i) == class) count[part[i] - 1]++;
    for (int f = 0; f < FOLDS; f++) {
        least = count[f] < least ? count[f] : least;
        most = count[f] > most ? count[f] : most;
    }
    assert_true(most - least <= 1);
}

static void test_classes(void **state) {
    int64_t part[ROWS], again[ROWS], other[ROWS];
    (void)state;
    find_parts(WEFT__TASK_CLASSIFICATION, 3, part);
    for (int32_t c = -1; c < CLASSES; c++) check_balance(part, c);
    find_parts(WEFT__TASK_CLASSIFICATION, 3, again);
    assert_memory_equal(part, again, sizeof part);
    find_parts(WEFT__TASK_CLASSIFICATION, 4, other);
    assert_memory_not_equal(part, other, sizeof part);
}

static void test_numbers(void **state) {
    int64_t part[ROWS];
    (void)state;
    find_parts(WEFT__TASK_REGRESSION, 3, part);
    check_balance(part, -1);
}

static void test_few(void **state) {
    weft__config config;
    int64_t *order, kept;
    (void)state;
    weft__config_init(&config);
    config.data_folds = 5;
    config.data_fold = 1;
    assert_int_equal(weft__dataset_order(NULL, &config, 4, NULL, &order, &kept), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(NULL), "4 samples cannot be divided into 5 parts"));
    weft__free(NULL, order);
    weft__config_free(&config);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes), cmocka_unit_test(test_numbers),
                                       cmocka_unit_test(test_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
