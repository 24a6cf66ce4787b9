/* Functions that a template can call: range, dict, namespace, raise_exception, strftime_now.
 *
 * Must not know: the tree. Read next: methods.c. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "text/template/jinja.h"

weft_status weft__jinja_global_range(jinja_run *run, const jinja_call *call, jinja_value *out) {
    int64_t from = 0, to, step;
    const bool one = call->args[1].kind == JINJA_UNDEFINED;
    if (!one) WEFT_TRY(weft__jinja_int_argument(run, &call->args[0], 0, &from));
    WEFT_TRY(weft__jinja_int_argument(run, &call->args[one ? 0 : 1], 0, &to));
    WEFT_TRY(weft__jinja_int_argument(run, &call->args[2], 1, &step));
    if (step == 0) return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the step of a range is 0");
    const uint64_t span = step > 0 ? (to > from ? (uint64_t)to - (uint64_t)from : 0)
                                   : (from > to ? (uint64_t)from - (uint64_t)to : 0);
    const uint64_t width = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    const uint64_t count = span / width + (span % width != 0);
    if (count > JINJA_RANGE_MAX)
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "a range of more than %d numbers",
                                JINJA_RANGE_MAX);
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, (size_t)count, out));
    for (uint64_t i = 0; i < count; i++) {
        const jinja_value item = weft__jinja_int(from + (int64_t)i * step);
        WEFT_TRY(weft__jinja_append(run, out, &item));
    }
    return WEFT_OK;
}

/* Adds the pairs of a dict, or of a list of pairs. */
static weft_status add_pairs(jinja_run *run, const jinja_value *from, jinja_value *to) {
    const jinja_value *items;
    size_t count;
    if (from->kind == JINJA_DICT || from->kind == JINJA_NAMESPACE) {
        for (size_t i = 0; i < from->as.dict->count; i++)
            WEFT_TRY(weft__jinja_put(run, to->as.dict, &from->as.dict->pairs[i].key,
                                     &from->as.dict->pairs[i].value));
        return WEFT_OK;
    }
    WEFT_TRY(weft__jinja_items(run, from, &items, &count));
    for (size_t i = 0; i < count; i++) {
        const jinja_value *pair;
        size_t parts;
        WEFT_TRY(weft__jinja_items(run, &items[i], &pair, &parts));
        if (parts != 2) return weft__jinja_fail(run, WEFT_ERR_FORMAT, "a dict needs pairs of key and value");
        WEFT_TRY(weft__jinja_put(run, to->as.dict, &pair[0], &pair[1]));
    }
    return WEFT_OK;
}

static weft_status make_dict(jinja_run *run, const jinja_call *call, jinja_kind kind, jinja_value *out) {
    const jinja_arguments *all = call->all;
    if (all->positional > 1)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "at most one argument may have no name");
    WEFT_TRY(weft__jinja_dict(run, kind, out));
    if (all->positional) WEFT_TRY(add_pairs(run, &all->values[0], out));
    for (size_t i = 0; i < all->named; i++) {
        const jinja_value key = weft__jinja_text(all->names[i].text, all->names[i].bytes);
        if (kind == JINJA_NAMESPACE && key.as.string.text[0] == '_')
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "a name in a namespace may not begin with '_'");
        WEFT_TRY(weft__jinja_put(run, out->as.dict, &key, &all->values[all->positional + i]));
    }
    return WEFT_OK;
}

weft_status weft__jinja_global_dict(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return make_dict(run, call, JINJA_DICT, out);
}

weft_status weft__jinja_global_namespace(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return make_dict(run, call, JINJA_NAMESPACE, out);
}

/* The template refuses the conversation, and says why. */
weft_status weft__jinja_global_raise_exception(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_string s;
    (void)out;
    WEFT_TRY(weft__jinja_to_string(run, &call->args[0], &s));
    return weft__jinja_fail(run, WEFT_ERR_ARGUMENT, "the template refuses the conversation: %.*s",
                            (int)(s.bytes < 600 ? s.bytes : 600), s.text);
}

/* ---- time ---- */

static const char *const months[] = {"January", "February", "March",     "April",   "May",      "June",
                                     "July",    "August",   "September", "October", "November", "December"};
static const char *const days[] = {"Sunday",   "Monday", "Tuesday", "Wednesday",
                                   "Thursday", "Friday", "Saturday"};

/* Writes one part of a time; English names in any locale. False: the letter is not supported. */
static bool format_time(const struct tm *t, char letter, char *out, size_t bytes) {
    const int hour = t->tm_hour % 12 ? t->tm_hour % 12 : 12;
    switch (letter) {
    case 'Y': snprintf(out, bytes, "%d", t->tm_year + 1900); return true;
    case 'y': snprintf(out, bytes, "%02d", t->tm_year % 100); return true;
    case 'm': snprintf(out, bytes, "%02d", t->tm_mon + 1); return true;
    case 'd': snprintf(out, bytes, "%02d", t->tm_mday); return true;
    case 'e': snprintf(out, bytes, "%2d", t->tm_mday); return true;
    case 'j': snprintf(out, bytes, "%03d", t->tm_yday + 1); return true;
    case 'H': snprintf(out, bytes, "%02d", t->tm_hour); return true;
    case 'I': snprintf(out, bytes, "%02d", hour); return true;
    case 'M': snprintf(out, bytes, "%02d", t->tm_min); return true;
    case 'S': snprintf(out, bytes, "%02d", t->tm_sec); return true;
    case 'p': snprintf(out, bytes, "%s", t->tm_hour < 12 ? "AM" : "PM"); return true;
    case 'B': snprintf(out, bytes, "%s", months[t->tm_mon]); return true;
    case 'b': snprintf(out, bytes, "%.3s", months[t->tm_mon]); return true;
    case 'A': snprintf(out, bytes, "%s", days[t->tm_wday]); return true;
    case 'a': snprintf(out, bytes, "%.3s", days[t->tm_wday]); return true;
    case 'F': snprintf(out, bytes, "%d-%02d-%02d", t->tm_year + 1900, t->tm_mon + 1, t->tm_mday); return true;
    case 'T': snprintf(out, bytes, "%02d:%02d:%02d", t->tm_hour, t->tm_min, t->tm_sec); return true;
    case '%': snprintf(out, bytes, "%%"); return true;
    default: return false;
    }
}

weft_status weft__jinja_global_strftime_now(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const time_t now = (time_t)run->time;
    struct tm t;
    jinja_string format;
    jinja_text text = {0};
    WEFT_TRY(weft__jinja_to_string(run, &call->args[0], &format));
    if (!gmtime_r(&now, &t)) return weft__jinja_fail(run, WEFT_ERR_ARGUMENT, "the time is out of range");
    for (size_t i = 0; i < format.bytes; i++) {
        char part[32];
        if (format.text[i] != '%') {
            WEFT_TRY(weft__jinja_write(run, &text, format.text + i, 1));
            continue;
        }
        if (++i >= format.bytes || !format_time(&t, format.text[i], part, sizeof part))
            return weft__jinja_fail(
                run, WEFT_ERR_UNSUPPORTED,
                "strftime_now supports %%Y %%y %%m %%d %%e %%j %%H %%I %%M %%S %%p %%B %%b "
                "%%A %%a %%F %%T %%%% only");
        WEFT_TRY(weft__jinja_write(run, &text, part, strlen(part)));
    }
    return weft__jinja_string(run, &text, out);
}
