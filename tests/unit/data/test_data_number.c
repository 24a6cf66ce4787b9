/* src/data/number.c: decimal text to f64 and f32, compared with strtod and strtof in the C locale. */
#include <locale.h>
#include <math.h>

#include "data_util.h"

static uint64_t bits64(double v) {
    uint64_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

static uint32_t bits32(float v) {
    uint32_t b;
    memcpy(&b, &v, sizeof b);
    return b;
}

/* Both widths must equal the C library's result bit for bit. If the C library overflows, the reader must
 * too. */
static void check(const char *text) {
    double want64 = strtod(text, NULL), got64 = 0;
    float want32 = strtof(text, NULL), got32 = 0;
    weft__number_kind status = weft__parse_f64(text, strlen(text), &got64);
    if (isinf(want64))
        assert_int_equal(status, WEFT__NUMBER_OVERFLOW);
    else if (status != WEFT__NUMBER_OK || bits64(got64) != bits64(want64))
        fail_msg("%s: f64 %.17g", text, got64);
    status = weft__parse_f32(text, strlen(text), &got32);
    if (isinf(want32))
        assert_int_equal(status, WEFT__NUMBER_OVERFLOW);
    else if (status != WEFT__NUMBER_OK || bits32(got32) != bits32(want32))
        fail_msg("%s: f32 %.9g, expected %.9g, status %d", text, (double)got32, (double)want32, status);
}

static void test_chosen(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0", "-0", "+0.0", "1", "-1", "5.1", ".5", "5.", "1e22", "1e23", "123456789012345678901234567890",
        "9007199254740991", "9007199254740992", "9007199254740993",
        "9007199254740993.0000000000000000000000001", "1.7976931348623157e308", "1.7976931348623159e308",
        "2.2250738585072011e-308", "4.9406564584124654e-324", "2.4703282292062327e-324",
        "2.4703282292062328e-324", "1e-400", "0e999999999999999999999", "1e400",
        "0.000000000000000000000000000000000000000000000000001e50", "1E+2", "1e-2", "00012.50",
        /* f32: ties, the largest number, overflow, subnormals, the smallest number */
        "1.00000005960464477539062500", "1.00000005960464477539062501", "1.00000005960464477539062499",
        "3.4028234663852886e38", "3.4028235677973366e38", "3.40282356779733661637539395458142568447e38",
        "3.40282356779733661637539395458142568448e38", "1.1754943508222875e-38", "1.1754942807573643e-38",
        "1.401298464324817e-45", "7.006492321624085e-46",
        "7."
        "0064923216240853546186479164495806564013097093825788587853414194489554134293030074331909418106079101"
        "5626e-46",
        "16777217", "16777217.00000000000001", "16777219"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) check(texts[i]);
}

static void test_random(void **state) {
    (void)state;
    char text[64];
    for (uint64_t i = 0; i < 200000; i++) {
        uint64_t r = weft__mix64(i * 0x9e3779b97f4a7c15u + 1), s = weft__mix64(r);
        switch (i % 4) {
        case 0: /* any f64, as a program prints it */
        {
            double v;
            memcpy(&v, &r, sizeof v);
            if (!isfinite(v)) continue;
            snprintf(text, sizeof text, "%.17g", v);
            break;
        }
        case 1: snprintf(text, sizeof text, "%d.%06d", (int)(r % 2000) - 1000, (int)(s % 1000000)); break;
        case 2:
            snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(r % 1000), (unsigned long long)s,
                     (int)(r >> 57) - 64);
            break;
        default: { /* close to a tie between two f32 */
            uint32_t b = (uint32_t)(r >> 9) % 0x7f000000u;
            float v, w;
            memcpy(&v, &b, sizeof v);
            w = nextafterf(v, INFINITY);
            snprintf(text, sizeof text, "%.*e", 12 + (int)(s % 12), ((double)v + (double)w) / 2);
        }
        }
        check(text);
    }
}

/* Digits beyond any fixed buffer must still decide ties, and long runs of zeros must be cheap. */
static void test_long(void **state) {
    (void)state;
    enum { N = 5000 };
    char *text = malloc(N + 64);
    strcpy(text, "9007199254740993.");
    size_t n = strlen(text);
    memset(text + n, '0', N - n);
    strcpy(text + N, "");
    check(text);
    strcpy(text + N, "1");
    check(text);
    memcpy(text, "0.", 2);
    memset(text + 2, '0', N - 2);
    strcpy(text + N, "17e5000");
    check(text);
    memset(text, '9', N);
    strcpy(text + N, "e-4990");
    check(text);
    free(text);
}

static weft__number_kind kind(const char *text) {
    double a = 0;
    float b = 0;
    weft__number_kind first = weft__parse_f64(text, strlen(text), &a);
    assert_int_equal(weft__parse_f32(text, strlen(text), &b), first);
    return first;
}

static void test_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"x",     "-",    "+",   ".",     "e5",    "1e",      "1e+",
                                        "1x",    "0x10", "1,5", "1 2",   "--1",   "- 1",     "1..2",
                                        "1.2.3", "nanx", "in",  "1e5.0", "1_000", "\xd9\xa1"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_int_equal(kind(texts[i]), WEFT__NUMBER_TEXT);
    assert_int_equal(kind(""), WEFT__NUMBER_EMPTY);
    assert_int_equal(kind(" \t "), WEFT__NUMBER_EMPTY);
    assert_int_equal(kind("NaN"), WEFT__NUMBER_NONFINITE);
    assert_int_equal(kind("-nan"), WEFT__NUMBER_NONFINITE);
    assert_int_equal(kind("-Inf"), WEFT__NUMBER_NONFINITE);
    assert_int_equal(kind("Infinity"), WEFT__NUMBER_NONFINITE);
    assert_int_equal(kind(" 5 "), WEFT__NUMBER_OK);
    assert_int_equal(kind("1e99999999999999999999999"), WEFT__NUMBER_OVERFLOW);
    double v = 0;
    assert_int_equal(weft__parse_f64("-inf", 4, &v), WEFT__NUMBER_NONFINITE);
    assert_true(isinf(v) && v < 0);
    assert_int_equal(weft__parse_f64("12345", 2, &v), WEFT__NUMBER_OK); /* stops at the given size */
    assert_true(v == 12.0);
}

static void test_locale(void **state) {
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE")) {
        printf("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    double v = 0;
    assert_int_equal(weft__parse_f64("0.1234567890123456789012", 24, &v), WEFT__NUMBER_OK);
    setlocale(LC_NUMERIC, "C");
    assert_true(v == 0.1234567890123456789012);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_chosen), cmocka_unit_test(test_random),
                                       cmocka_unit_test(test_long), cmocka_unit_test(test_refused),
                                       cmocka_unit_test(test_locale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
