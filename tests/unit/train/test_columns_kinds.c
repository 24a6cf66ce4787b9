/* Kinds of columns: which cells are dates and booleans, what they become, and columns as JSON. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <math.h>
#include <string.h>

#include "train/dataset/columns.h"

static bool parses(weft__column_kind kind, const char *cell, double *value) {
    const weft__column c = {.kind = kind};
    return weft__column_rows[kind].parse(&c, cell, value);
}

static void test_dates(void **state) {
    (void)state;
    static const struct {
        const char *cell;
        double seconds;
    } good[] = {{"1970-01-01", 0},
                {"1970-01-02T00:00", 86400},
                {"2000-02-29", 951782400},
                {"1969-12-31", -86400},
                {"0001-01-01", -62135596800.0},
                {"9999-12-31 23:59:59", 253402300799.0},
                {"1970-01-01T12:34:56.5", 45296.5},
                {"1970-01-01t01:00Z", 3600},
                {"1970-01-01 01:00:00+05:30", 3600}, /* the clock that was seen */
                {"1970-01-01 01:00 -08", 3600}};
    static const char *const bad[] = {"",
                                      "1970",
                                      "1970-1-1",
                                      "1970-13-01",
                                      "1970-00-01",
                                      "1970-02-29",
                                      "1900-02-29",
                                      "1970-01-32",
                                      "0000-01-01",
                                      "1970/01/01",
                                      "1970-01-01x",
                                      "1970-01-01T",
                                      "1970-01-01T25:00",
                                      "1970-01-01T10:60",
                                      "1970-01-01T10:00:61",
                                      "1970-01-01T10:00:00.",
                                      "1970-01-01T10:00+",
                                      "1970-01-01T10:00+24",
                                      "1970-01-01T10:00Zx",
                                      "-970-01-01"};
    double value;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_true(parses(WEFT__COLUMN_DATE, good[i].cell, &value));
        assert_true(value == good[i].seconds);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (parses(WEFT__COLUMN_DATE, bad[i], &value)) fail_msg("%s is no date", bad[i]);
}

static void test_parts_of_dates(void **state) {
    (void)state;
    double out[WEFT__DATE_INPUTS_WITH_TIME] = {0};
    double value;
    assert_true(parses(WEFT__COLUMN_DATE, "2024-07-02T06:00", &value)); /* a Tuesday of a leap year */
    weft__date_put(value, true, out);
    assert_true(fabs(out[0] - 2024.5) < 1e-2);
    assert_true(fabs(out[1]) < 1e-2 && fabs(out[2] + 1) < 1e-4);
    for (int day = 0; day < 7; day++) assert_true(out[3 + day] == (day == 1));
    assert_true(fabs(out[10] - 1) < 1e-6 && fabs(out[11]) < 1e-6);
    static const char *const edges[] = {"0001-01-01", "1969-12-31", "1970-01-01", "2000-12-31", "9999-12-31"};
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        memset(out, 0, sizeof out);
        assert_true(parses(WEFT__COLUMN_DATE, edges[i], &value));
        weft__date_put(value, false, out);
        assert_int_equal((int)(edges[i][5] == '0' ? out[0] : ceil(out[0]) - 1), atoi(edges[i]));
        assert_true(out[10] == 0 && out[11] == 0);
    }
}

static void test_words(void **state) {
    (void)state;
    double value;
    static const char *const yes[] = {"true", "TRUE", "Yes", "yes"}, *const no[] = {"false", "False", "NO"};
    for (size_t i = 0; i < 4; i++) assert_true(parses(WEFT__COLUMN_BOOLEAN, yes[i], &value) && value == 1);
    for (size_t i = 0; i < 3; i++) assert_true(parses(WEFT__COLUMN_BOOLEAN, no[i], &value) && value == 0);
    assert_false(parses(WEFT__COLUMN_BOOLEAN, "1", &value));
    assert_false(parses(WEFT__COLUMN_BOOLEAN, "y", &value));
    assert_false(parses(WEFT__COLUMN_NUMBER, "1,5", &value));
    assert_false(parses(WEFT__COLUMN_NUMBER, "inf", &value));
    char *words[] = {"-"};
    const weft__texts more = {.values = words, .count = 1}, none = {0};
    static const char *const missing[] = {"", "?", "NA", "n/a", "NaN", "nan", "NULL", "None", "NaT"};
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++)
        assert_true(weft__cell_missing(&none, missing[i]));
    assert_false(weft__cell_missing(&none, "-"));
    assert_true(weft__cell_missing(&more, "-"));
    assert_false(weft__cell_missing(&none, "nano"));
}

static weft_status take(const char *text, weft__columns *columns) {
    weft__json json;
    json_t *root;
    json_error_t error;
    weft__json_open(&json, NULL);
    *columns = (weft__columns){0};
    assert_int_equal(weft__json_load(&json, text, strlen(text), 0, &error, &root), WEFT_OK);
    const weft_status status = weft__columns_take(NULL, root, columns);
    weft__json_close(&json);
    return status;
}

static void test_json(void **state) {
    (void)state;
    static const char *const good =
        "[{\"name\": \"a\", \"kind\": \"number\", \"missing\": true, \"fill\": 1.5, \"comma\": false},"
        " {\"name\": \"b\", \"kind\": \"category\", \"missing\": false, \"levels\": [\"x\", \"y\"], "
        "\"other\": true},"
        " {\"name\": \"c\", \"kind\": \"date\", \"missing\": false, \"fill\": 0.0, \"time\": true},"
        " {\"name\": \"e\", \"kind\": \"ordinal\", \"missing\": true, \"fill\": 0.5, \"levels\": [\"low\", "
        "\"high\"]},"
        " {\"name\": \"d\", \"kind\": \"none\", \"reason\": \"because\"}]";
    static const char *const bad[] = {
        "[]",
        "{}",
        "[1]",
        "[{\"name\": \"a\"}]",
        "[{\"kind\": \"none\", \"reason\": \"\"}]",
        "[{\"name\": \"a\", \"kind\": \"none\"}]",
        "[{\"name\": \"a\", \"kind\": \"word\"}]",
        "[{\"name\": \"a\", \"kind\": \"number\", \"missing\": true, \"comma\": true}]",
        "[{\"name\": \"a\", \"kind\": \"number\", \"missing\": true, \"fill\": 1}]",
        "[{\"name\": \"a\", \"kind\": \"number\", \"missing\": 1, \"fill\": 1, \"comma\": true}]",
        "[{\"name\": \"a\", \"kind\": \"number\", \"missing\": true, \"fill\": 1e300, \"comma\": true}]",
        "[{\"name\": \"a\", \"kind\": \"date\", \"missing\": true, \"fill\": 1e12, \"time\": true}]",
        "[{\"name\": \"a\", \"kind\": \"date\", \"missing\": true, \"fill\": 1}]",
        "[{\"name\": \"a\", \"kind\": \"ordinal\", \"missing\": true, \"fill\": 1}]",
        "[{\"name\": \"a\", \"kind\": \"category\", \"missing\": true, \"levels\": [], \"other\": true}]",
        "[{\"name\": \"a\", \"kind\": \"category\", \"missing\": true, \"levels\": [1], \"other\": true}]",
        "[{\"name\": \"a\", \"kind\": \"category\", \"missing\": true, \"levels\": [\"y\", \"x\"], "
        "\"other\": true}]",
        "[{\"name\": \"a\", \"kind\": \"category\", \"missing\": true, \"levels\": [\"x\", \"x\"], "
        "\"other\": true}]",
        "[{\"name\": \"a\", \"kind\": \"category\", \"missing\": true, \"levels\": [\"x\"]}]"};
    weft__columns columns;
    assert_int_equal(take(good, &columns), WEFT_OK);
    assert_int_equal(weft__columns_inputs(&columns), 2 + 3 + 12 + 2);
    char **names = weft__columns_names(NULL, &columns);
    assert_string_equal(names[1], "a (missing)");
    assert_string_equal(names[3], "b=y");
    assert_string_equal(names[4], "b=(other)");
    assert_string_equal(names[16], "c (time, cosine)");
    weft__free(NULL, names);
    weft__columns_free(NULL, &columns);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (take(bad[i], &columns) != WEFT_ERR_FORMAT) fail_msg("%s was taken", bad[i]);
        weft__columns_free(NULL, &columns);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_dates), cmocka_unit_test(test_parts_of_dates),
                                       cmocka_unit_test(test_words), cmocka_unit_test(test_json)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
