/* Short numbers for people: three or four digits, whatever rounding does at the next unit. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "train/print.h"

static void assert_short(double value, const char *expected) {
    char out[24];
    assert_string_equal(weft__short_number(value, out), expected);
}

static void units_change_in_time(void **state) {
    (void)state;
    assert_short(0.001, "0.001");
    assert_short(9999.4, "9999");
    assert_short(9999.6, "10k");
    assert_short(999400, "999k");
    assert_short(999600, "1M");
    assert_short(-999600, "-1M");
    assert_short(999.4e6, "999M");
    assert_short(999.6e6, "1G");
    assert_short(NAN, "-");
}

static void no_number_has_an_exponent(void **state) {
    (void)state;
    for (double value = 1; value < 1e11; value *= 1.0003) {
        char out[24];
        if (strchr(weft__short_number(value, out), 'e')) fail_msg("%.17g is %s", value, out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(units_change_in_time),
                                       cmocka_unit_test(no_number_has_an_exponent)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
