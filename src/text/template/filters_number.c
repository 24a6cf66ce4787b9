/* Filters of numbers, and the default of a value that is not there.
 *
 * Must not know: the tree. Read next: filters_list.c. */
#include <errno.h>
#include <math.h>
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
