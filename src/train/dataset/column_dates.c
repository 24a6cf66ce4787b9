/* Dates of ISO 8601, and the inputs that a date becomes:
 *   - the year, with the day as its fraction: what grows over time;
 *   - sine and cosine of the day in the year, so that 31 December is near 1 January;
 *   - the weekday, one input for each;
 *   - with a time of day, its sine and cosine.
 * Must not know: columns. Read next: column_kinds.c. */
#include <math.h>

#include "train/dataset/columns.h"

#define DAY    86400.0
#define CIRCLE 6.283185307179586

/* Reads `digits` digits. Returns -1 if they are not there. */
static int read_digits(const char **at, int digits) {
    int value = 0;
    for (; digits > 0; digits--, ++*at) {
        if (**at < '0' || **at > '9') return -1;
        value = value * 10 + (**at - '0');
    }
    return value;
}

static bool leap(int year) { return (year % 4 == 0 && year % 100 != 0) || year % 400 == 0; }

static int days_of_year(int year) { return leap(year) ? 366 : 365; }

static int days_of_month(int year, int month) {
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return days[month - 1] + (month == 2 && leap(year));
}

/* Days from 1 January of year 1 to 1 January of `year`, in the Gregorian calendar. */
static int64_t days_before(int year) {
    const int64_t past = year - 1;
    return past * 365 + past / 4 - past / 100 + past / 400;
}

/* Reads ":SS", maybe with a fraction. */
static bool read_seconds(const char **at, double *seconds) {
    const char *p = *at + 1;
    const int whole = read_digits(&p, 2);
    double digits = 0, scale = 1;
    if (whole < 0 || whole > 60) return false;
    if (*p == '.' || *p == ',') {
        if (*++p < '0' || *p > '9') return false;
        for (; *p >= '0' && *p <= '9'; p++) {
            if (scale > 1e14) continue; /* finer than a double of seconds */
            digits = digits * 10 + (*p - '0');
            scale *= 10;
        }
    }
    *seconds += whole + digits / scale;
    *at = p;
    return true;
}

/* Accepts the rest of a time: nothing, Z, or an offset such as +02:00. The inputs are about the clock that
 * people saw, so the offset is not applied. */
static bool read_offset(const char *p) {
    if (*p == ' ') p++;
    if (*p == 'Z' || *p == 'z') return p[1] == '\0';
    if (*p == '\0') return true;
    if (*p != '+' && *p != '-') return false;
    p++;
    const int hours = read_digits(&p, 2);
    if (*p == ':') p++;
    const int minutes = *p ? read_digits(&p, 2) : 0;
    return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60 && *p == '\0';
}

/* Reads what follows the date: nothing, or T or a blank, HH:MM and maybe seconds and an offset. */
static bool read_time(const char *p, double *seconds) {
    if (*p == '\0') return true;
    if (*p != 'T' && *p != 't' && *p != ' ') return false;
    p++;
    const int hour = read_digits(&p, 2);
    if (hour < 0 || hour > 24 || *p++ != ':') return false;
    const int minute = read_digits(&p, 2);
    if (minute < 0 || minute > 59) return false;
    *seconds += hour * 3600 + minute * 60;
    if (*p == ':' && !read_seconds(&p, seconds)) return false;
    return read_offset(p);
}

bool weft__date_parse(const char *cell, double *seconds) {
    const char *p = cell;
    const int year = read_digits(&p, 4);
    if (year < 1 || *p++ != '-') return false;
    const int month = read_digits(&p, 2);
    if (month < 1 || month > 12 || *p++ != '-') return false;
    const int day = read_digits(&p, 2);
    if (day < 1 || day > days_of_month(year, month)) return false;
    int64_t days = days_before(year) - days_before(1970) + day - 1;
    for (int m = 1; m < month; m++) days += days_of_month(year, m);
    *seconds = (double)days * DAY;
    return read_time(p, seconds);
}

void weft__date_put(double seconds, bool time, double *out) {
    const double whole = floor(seconds / DAY), of_day = seconds / DAY - whole;
    const int64_t days = (int64_t)whole + days_before(1970);
    int year = (int)((double)days / 365.2425) + 1;
    while (days_before(year) > days) year--;
    while (days_before(year + 1) <= days) year++;
    const double of_year = ((double)(days - days_before(year)) + of_day) / days_of_year(year);
    out[0] = year + of_year;
    out[1] = sin(CIRCLE * of_year);
    out[2] = cos(CIRCLE * of_year);
    out[3 + days % 7] = 1; /* 1 January of year 1 was a Monday */
    if (!time) return;
    out[10] = sin(CIRCLE * of_day);
    out[11] = cos(CIRCLE * of_day);
}

const char *weft__date_input(int64_t input) {
    static const char *const names[WEFT__DATE_INPUTS_WITH_TIME] = {
        "year",     "season, sine", "season, cosine", "Monday", "Tuesday",    "Wednesday",
        "Thursday", "Friday",       "Saturday",       "Sunday", "time, sine", "time, cosine"};
    return names[input];
}
