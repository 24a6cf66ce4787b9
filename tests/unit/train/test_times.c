/* How a run's time is divided: the percentages must always add up to 100. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "train/run/times.h"

static double sum(const weft__shares *shares) {
    double percent[WEFT__SHARES], all = 0;
    weft__shares_percent(shares, percent);
    for (size_t i = 0; i < shares->count; i++) {
        double exact = shares->item[i].seconds / weft__shares_total(shares) * 100;
        assert_true(weft__shares_total(shares) == 0 || fabs(percent[i] - exact) < 0.1);
        all += percent[i];
    }
    return all;
}

static void percentages_add_up(void **state) {
    (void)state;
    srand(7);
    for (int round = 0; round < 2000; round++) {
        static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
        weft__shares shares = {0};
        for (int i = 0; i <= round % WEFT__SHARES; i++)
            weft__shares_add(&shares, names[i], rand() % 3 ? pow(rand() % 1000, 1 + round % 4) : 0);
        double all = sum(&shares);
        assert_true(weft__shares_total(&shares) > 0 ? fabs(all - 100) < 1e-9 : all == 0);
    }
    weft__shares thirds = {3, {{"a", 1}, {"b", 1}, {"c", 1}}};
    assert_true(fabs(sum(&thirds) - 100) < 1e-9);
}

static void names_are_added_to(void **state) {
    (void)state;
    weft__shares shares = {0};
    const weft_profile_times times = {
        .work = {6, 1, 1, 0.5}, .data = 0.5, .context = 0.25, .compile = 1, .host = 0.25, .total = 10.25};
    for (int i = 0; i < 2; i++) weft__shares_add_parts(&shares, &times);
    assert_int_equal(shares.count, 12);
    assert_string_equal(shares.item[0].name, "matmul");
    assert_true(shares.item[0].seconds == 12);
    assert_true(weft__shares_total(&shares) == 21);
    assert_true(fabs(weft__shares_without(&shares, "matmul") - 21.0 / 9) < 1e-12);
    weft__shares alone = {1, {{"matmul", 3}}};
    assert_true(weft__shares_without(&alone, "matmul") == 0);
    for (char name[] = "a"; *name <= 'm'; ++*name) weft__shares_add(&shares, name, 1);
    assert_int_equal(shares.count, WEFT__SHARES); /* names beyond the limit are left out */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(percentages_add_up),
                                       cmocka_unit_test(names_are_added_to)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
