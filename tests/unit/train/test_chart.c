/* Tests the charts of the report as text: their points, their limits, and how long curves are reduced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "train/report/chart.h"

enum { MOST = 6000 };
static double xs[MOST], ys[MOST];

/* Returns the chart of one series of xs and ys. The caller frees it. */
static char *chart_of(size_t count, const char *name, bool dots) {
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    assert_non_null(out);
    const weft__series series = {name, "a", xs, ys, count, dots};
    weft__chart(out, "Loss <&\">", count ? xs[count - 1] : 0, &series, 1);
    assert_int_equal(fclose(out), 0);
    return text;
}

static size_t times(const char *text, char c) {
    size_t count = 0;
    for (; *text; text++) count += *text == c;
    return count;
}

static void expect_part(const char *text, const char *part) {
    if (!strstr(text, part)) fail_msg("'%s' is not in: %.600s", part, text);
}

static void points_are_numbers_of_the_run(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        xs[i] = 10.0 * (i + 1);
        ys[i] = i == 2 ? (double)NAN : 0.5 * i - 0.25;
    }
    char *html = chart_of(4, "train<ing", true);
    expect_part(html, "<path class=\"line a\" d=\"M10 -0.25L10 -0.25L20 0.25L40 1.25\"/>");
    expect_part(html, "<path class=\"dot a\" d=\"M10 -0.25h0M20 0.25h0M40 1.25h0\"/>");
    expect_part(html, "viewBox=\"0 -1.25 40 1.5\"");
    expect_part(html, "<figcaption>Loss &lt;&amp;&quot;&gt; <span class=\"key a\">train&lt;ing</span>");
    free(html);
}

static void equal_numbers_have_room(void **state) {
    static const struct {
        double value;
        const char *limits;
    } cases[] = {{1, "\"0 -1 2 0.1\""},
                 {0.5, "\"0 -0.55 2 0.1\""},
                 {0, "\"0 -1 2 1\""},
                 {-2, "\"0 1.8 2 0.4\""},
                 {100, "\"0 -110 2 20\""}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        xs[0] = 1;
        xs[1] = 2;
        ys[0] = ys[1] = cases[i].value;
        char *html = chart_of(2, NULL, false);
        expect_part(html, cases[i].limits);
        free(html);
    }
}

static void without_a_point_there_is_no_chart(void **state) {
    (void)state;
    xs[0] = 1;
    ys[0] = (double)NAN;
    char *none = chart_of(0, "none", true), *nan = chart_of(1, "none", true);
    assert_string_equal(none, "");
    assert_string_equal(nan, "");
    free(none);
    free(nan);
}

/* 6,000 points become the means of ten each. A gap in a column only leaves the column fewer points. */
static void long_curves_are_reduced(void **state) {
    (void)state;
    for (int i = 0; i < MOST; i++) {
        xs[i] = i;
        ys[i] = i == 5 ? (double)NAN : (double)(i % 10);
    }
    char *html = chart_of(MOST, NULL, true);
    assert_in_range(strlen(html), 600 * 5, 600 * 20);
    assert_in_range(times(html, 'L'), 598, 604); /* and the L of the title */
    expect_part(html, "M4.44444");               /* (0 + ... + 9 - 5) / 9 */
    expect_part(html, " 4.5L");
    expect_part(html, "each point is the mean of about 10<");
    assert_null(strstr(html, "class=\"dot"));
    free(html);
    html = chart_of(1200, NULL, true);
    assert_in_range(times(html, 'L'), 1200, 1201);
    assert_null(strstr(html, "mean of about"));
    free(html);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_numbers_of_the_run),
        cmocka_unit_test(equal_numbers_have_room),
        cmocka_unit_test(without_a_point_there_is_no_chart),
        cmocka_unit_test(long_curves_are_reduced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
