/* Filters of numbers, and the default of a value that is not there.
 *
 * Must not know: the tree. Read next: filters_list.c. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "text/template/jinja.h"

weft_status weft__jinja_filter_default(jinja_run *run, const jinja_call *call, jinja_value *out) {
    (void)run;
    const bool missing = call->object.kind == JINJA_UNDEFINED ||
                         (weft__jinja_truth(&call->args[1]) && !weft__jinja_truth(&call->object));
    *out = call->object;
    if (!missing) return WEFT_OK;
    *out = call->args[0];
    const bool given = call->all->positional > 0 || out->kind != JINJA_UNDEFINED;
    if (!given) *out = weft__jinja_text("", 0);
    return WEFT_OK;
}

weft_status weft__jinja_filter_abs(jinja_run *run, const jinja_call *call, jinja_value *out) {
    double x;
    if (!weft__jinja_is_number(&call->object, &x))
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "abs needs a number, not %s",
                                weft__jinja_kind_name(&call->object));
    if (x < 0) return weft__jinja_unary(run, '-', &call->object, out);
    return weft__jinja_unary(run, '+', &call->object, out);
}

static weft_status need_defined(jinja_run *run, const jinja_value *value) {
    const jinja_string name = value->as.string;
    if (value->kind != JINJA_UNDEFINED) return WEFT_OK;
    return weft__jinja_fail(run, WEFT_ERR_FORMAT, "'%.*s' is undefined",
                            (int)(name.bytes < 80 ? name.bytes : 80), name.text);
}

/* Reads a number of a string, without the white space around it. False: it is none. */
static bool read_float(const jinja_value *value, double *out) {
    if (weft__jinja_is_number(value, out)) return true;
    if (value->kind != JINJA_STRING) return false;
    const jinja_string s = weft__jinja_trim(value->as.string, NULL, true, true);
    const weft__number_kind kind = weft__parse_f64(s.text, s.bytes, out);
    return kind == WEFT__NUMBER_OK || kind == WEFT__NUMBER_NONFINITE;
}

static bool read_int(const jinja_value *value, int base, int64_t *out) {
    char text[80], *end;
    if (value->kind != JINJA_STRING) return weft__jinja_is_integer(value, out);
    const jinja_string s = weft__jinja_trim(value->as.string, NULL, true, true);
    if (s.bytes == 0 || s.bytes >= sizeof text || strchr(" \t\n\v\f\r", s.text[0])) return false;
    memcpy(text, s.text, s.bytes);
    text[s.bytes] = '\0';
    errno = 0;
    *out = strtoll(text, &end, base);
    return !errno && end == text + s.bytes;
}

weft_status weft__jinja_filter_int(jinja_run *run, const jinja_call *call, jinja_value *out) {
    int64_t base, i = 0;
    double x;
    WEFT_TRY(weft__jinja_int_argument(run, &call->args[1], 10, &base));
    if (base < 2 || base > 36)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "int: the base must be 2 to 36, not %lld",
                                (long long)base);
    WEFT_TRY(need_defined(run, &call->object));
    if (read_int(&call->object, (int)base, &i))
        *out = weft__jinja_int(i);
    else if (read_float(&call->object, &x) && fabs(x) < 0x1p63)
        *out = weft__jinja_int((int64_t)x);
    else
        *out = call->args[0].kind == JINJA_UNDEFINED ? weft__jinja_int(0) : call->args[0];
    return WEFT_OK;
}

weft_status weft__jinja_filter_float(jinja_run *run, const jinja_call *call, jinja_value *out) {
    double x;
    WEFT_TRY(need_defined(run, &call->object));
    if (read_float(&call->object, &x))
        *out = weft__jinja_float(x);
    else
        *out = call->args[0].kind == JINJA_UNDEFINED ? weft__jinja_float(0) : call->args[0];
    return WEFT_OK;
}

weft_status weft__jinja_filter_round(jinja_run *run, const jinja_call *call, jinja_value *out) {
    char text[400];
    int64_t precision;
    double x;
    jinja_string method;
    WEFT_TRY(weft__jinja_int_argument(run, &call->args[0], 0, &precision));
    WEFT_TRY(weft__jinja_text_argument(run, &call->args[1], "common", &method));
    if (!weft__jinja_is_number(&call->object, &x))
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "round needs a number, not %s",
                                weft__jinja_kind_name(&call->object));
    if (precision < 0 || precision > 15)
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "round: the precision must be 0 to 15, not %lld",
                                (long long)precision);
    const double scale = pow(10, (double)precision);
    if (weft__jinja_same(method, "ceil")) {
        *out = weft__jinja_float(ceil(x * scale) / scale);
    } else if (weft__jinja_same(method, "floor")) {
        *out = weft__jinja_float(floor(x * scale) / scale);
    } else if (!weft__jinja_same(method, "common")) {
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "round: the method must be common, ceil or floor");
    } else if (call->object.kind != JINJA_FLOAT) {
        *out = weft__jinja_int((int64_t)x);
        (void)weft__jinja_is_integer(&call->object, &out->as.integer);
    } else { /* the decimal digits are exact, so this rounds as Python does */
        snprintf(text, sizeof text, "%.*f", (int)precision, x);
        for (char *c = text; *c; c++)
            if ((*c < '0' || *c > '9') && *c != '-') *c = '.'; /* in any locale */
        if (weft__parse_f64(text, strlen(text), &x) == WEFT__NUMBER_NO_MEMORY)
            return weft__fail_oom(run->ctx, sizeof text, "a number");
        *out = weft__jinja_float(x);
    }
    return WEFT_OK;
}
