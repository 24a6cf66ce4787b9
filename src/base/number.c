/* Decimal numbers from text, correctly rounded and independent of the locale: [+-] digits [. digits] [e [+-]
 * digits]. Nearly all numbers take the exact fast path of W. Clinger ("How to read floating point numbers
 * accurately", PLDI 1990). It multiplies or divides a significand below 2^53 by a power of ten up to 10^22.
 * Both are exact, so only one rounding remains. Other numbers go to strtod_l in the C locale, shortened to as
 * many digits as can matter.
 * Must not know: what the numbers are for. Read next: data/csv.c. */
#define _GNU_SOURCE /* strtod_l, strtof_l */
#include "base/number.h"
#include "base/base.h"

#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#if defined(__APPLE__)
#include <xlocale.h>
#endif

_Static_assert(FLT_EVAL_METHOD != 2, "the x87 rounds twice, so that the fast path would not be exact");

/* At most 767 digits tell a double from a tie with its neighbours. One more digit stands for all further
 * ones. */
#define DIGITS_MAX 768

typedef struct decimal {
    const char *digits, *digits_end; /* the significand as written, maybe with a point in it */
    char point;                      /* what separates the fraction */
    bool negative;
    bool fits;            /* `significand` holds all digits */
    uint64_t significand; /* without the point */
    int64_t exponent;     /* power of ten of the significand as an integer (of all digits) */
} decimal;

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Compares a whole word, ignoring case. ASCII, whatever the locale. */
static bool is_word(const char *p, const char *end, const char *word) {
    size_t n = strlen(word);
    if ((size_t)(end - p) != n) return false;
    for (size_t i = 0; i < n; i++) {
        if ((p[i] | 0x20) != word[i]) return false;
    }
    return true;
}

/* Reads the digits and the point. Returns false if there is no digit. */
static bool scan_significand(const char **at, const char *end, decimal *d) {
    const char *p = *at;
    bool point = false, any = false;
    d->digits = p;
    d->fits = true;
    for (; p < end && (is_digit(*p) || (*p == d->point && !point)); p++) {
        if (*p == d->point) {
            point = true;
            continue;
        }
        any = true;
        if (d->significand > (UINT64_MAX - 9) / 10)
            d->fits = false;
        else
            d->significand = d->significand * 10 + (uint64_t)(*p - '0');
        if (point) d->exponent--;
    }
    d->digits_end = *at = p;
    return any;
}

/* Reads the exponent after 'e'. The value saturates, at a size that no number of digits could balance. */
static bool scan_exponent(const char **at, const char *end, decimal *d) {
    const char *p = *at;
    bool negative = false, any = false;
    int64_t value = 0;
    if (p < end && (*p == '+' || *p == '-')) negative = *p++ == '-';
    for (; p < end && is_digit(*p); p++) {
        any = true;
        if (value < INT64_MAX / 100) value = value * 10 + (*p - '0');
    }
    d->exponent += negative ? -value : value;
    *at = p;
    return any;
}

static weft__number_kind scan(const char *p, const char *end, decimal *d, double *special) {
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    while (end > p && (end[-1] == ' ' || end[-1] == '\t')) end--;
    if (p == end) return WEFT__NUMBER_EMPTY;
    if (*p == '+' || *p == '-') d->negative = *p++ == '-';
    if (is_word(p, end, "nan")) {
        *special = (double)NAN;
        return WEFT__NUMBER_NONFINITE;
    }
    if (is_word(p, end, "inf") || is_word(p, end, "infinity")) {
        *special = d->negative ? -(double)INFINITY : (double)INFINITY;
        return WEFT__NUMBER_NONFINITE;
    }
    if (!scan_significand(&p, end, d)) return WEFT__NUMBER_TEXT;
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (!scan_exponent(&p, end, d)) return WEFT__NUMBER_TEXT;
    }
    return p == end ? WEFT__NUMBER_OK : WEFT__NUMBER_TEXT;
}

/* Writes the number as digits and an exponent, without point and leading zeros. It has at most DIGITS_MAX + 1
 * digits. If a digit that is left out is not 0, a 1 is appended: every comparison then keeps its result. */
static void canonical(const decimal *d, char out[DIGITS_MAX + 32]) {
    size_t n = 0, count = 0;
    int64_t dropped = 0;
    bool sticky = false;
    if (d->negative) out[n++] = '-';
    for (const char *p = d->digits; p < d->digits_end; p++) {
        if (*p == d->point || (count == 0 && *p == '0')) continue;
        if (count < DIGITS_MAX) {
            out[n++] = *p;
            count++;
        } else {
            dropped++;
            sticky = sticky || *p != '0';
        }
    }
    if (count == 0) out[n++] = '0';
    int64_t exponent = d->exponent + dropped;
    if (sticky) {
        out[n++] = '1';
        exponent--;
    }
    if (exponent > 100000) exponent = 100000;
    if (exponent < -100000) exponent = -100000;
    snprintf(out + n, 24, "e%" PRId64, exponent);
}

/* Converts by strtod_l or strtof_l, for the type whose pointer is not NULL. */
static weft__number_kind convert_hard(const decimal *d, double *as_f64, float *as_f32) {
    char text[DIGITS_MAX + 32];
    canonical(d, text);
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (c == (locale_t)0) return WEFT__NUMBER_NO_MEMORY;
    if (as_f64 != NULL) *as_f64 = strtod_l(text, NULL, c);
    if (as_f32 != NULL) *as_f32 = strtof_l(text, NULL, c);
    freelocale(c);
    return WEFT__NUMBER_OK;
}

static bool convert_easy(const decimal *d, double *out) {
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (!d->fits || d->significand > (uint64_t)1 << 53) return false;
    double value = (double)d->significand;
    if (d->significand == 0)
        *out = 0.0;
    else if (d->exponent >= 0 && d->exponent <= 22)
        *out = value * power[d->exponent];
    else if (d->exponent < 0 && d->exponent >= -22)
        *out = value / power[-d->exponent];
    else
        return false;
    if (d->negative) *out = -*out;
    return true;
}

static weft__number_kind to_f64(const decimal *d, double *out) {
    if (convert_easy(d, out)) return WEFT__NUMBER_OK;
    weft__number_kind status = convert_hard(d, out, NULL);
    if (status == WEFT__NUMBER_OK && isinf(*out)) return WEFT__NUMBER_OVERFLOW;
    return status;
}

weft__number_kind weft__parse_f64(const char *text, size_t size, double *out) {
    return weft__parse_f64_with(text, size, '.', out);
}

weft__number_kind weft__parse_f64_with(const char *text, size_t size, char point, double *out) {
    decimal d = {.point = point};
    weft__number_kind status = scan(text, text + size, &d, out);
    return status == WEFT__NUMBER_OK ? to_f64(&d, out) : status;
}

/* Whether rounding to f64 and then to f32 could be wrong. It is wrong only if the f64 lies exactly between
 * two f32, since digits beyond the f64 then decide. Subnormal f32 have other ties, so they always take the
 * slow path. */
static bool rounds_twice(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return (bits & 0x1fffffffu) == 0x10000000u || (value != 0 && fabs(value) < (double)FLT_MIN);
}

weft__number_kind weft__parse_f32(const char *text, size_t size, float *out) {
    return weft__parse_f32_with(text, size, '.', out);
}

weft__number_kind weft__parse_f32_with(const char *text, size_t size, char point, float *out) {
    decimal d = {.point = point};
    double value = 0;
    weft__number_kind status = scan(text, text + size, &d, &value);
    if (status == WEFT__NUMBER_OK) status = to_f64(&d, &value);
    if (status == WEFT__NUMBER_NONFINITE) *out = (float)value;
    if (status != WEFT__NUMBER_OK) return status;
    if (rounds_twice(value))
        status = convert_hard(&d, NULL, out);
    else if (fabs(value) > 0x1.ffffffp127)
        return WEFT__NUMBER_OVERFLOW; /* beyond the tie above FLT_MAX */
    else
        *out = (float)value;
    if (status == WEFT__NUMBER_OK && isinf(*out)) return WEFT__NUMBER_OVERFLOW;
    return status;
}
