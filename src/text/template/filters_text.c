/* Filters of texts: case, white space, replacement, JSON. An object that is no text becomes one first.
 *
 * Must not know: the tree. Read next: filters_list.c. */
#include <string.h>

#include "text/pipeline/pipeline.h"
#include "text/template/jinja.h"

static weft_status filter_case(jinja_run *run, const jinja_call *call, jinja_case how, jinja_value *out) {
    jinja_string s;
    WEFT_TRY(weft__jinja_to_string(run, &call->object, &s));
    return weft__jinja_case(run, s, how, out);
}

weft_status weft__jinja_filter_capitalize(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return filter_case(run, call, CASE_CAPITAL, out);
}

weft_status weft__jinja_filter_lower(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return filter_case(run, call, CASE_LOWER, out);
}

weft_status weft__jinja_filter_upper(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return filter_case(run, call, CASE_UPPER, out);
}

weft_status weft__jinja_filter_title(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return filter_case(run, call, CASE_JINJA_TITLE, out);
}

weft_status weft__jinja_filter_string(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_string s;
    WEFT_TRY(weft__jinja_to_string(run, &call->object, &s));
    *out = weft__jinja_text(s.text, s.bytes);
    return WEFT_OK;
}

weft_status weft__jinja_filter_trim(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_string s, characters;
    const bool given = call->args[0].kind == JINJA_STRING;
    WEFT_TRY(weft__jinja_to_string(run, &call->object, &s));
    WEFT_TRY(weft__jinja_text_argument(run, &call->args[0], "", &characters));
    WEFT_TRY(weft__jinja_work(run, s.bytes / 64 * (1 + characters.bytes)));
    s = weft__jinja_trim(s, given ? &characters : NULL, true, true);
    *out = weft__jinja_text(s.text, s.bytes);
    return WEFT_OK;
}

weft_status weft__jinja_filter_replace(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_string s, from, to;
    int64_t count = -1;
    WEFT_TRY(weft__jinja_to_string(run, &call->object, &s));
    WEFT_TRY(weft__jinja_to_string(run, &call->args[0], &from));
    WEFT_TRY(weft__jinja_to_string(run, &call->args[1], &to));
    if (call->args[2].kind != JINJA_NONE) WEFT_TRY(weft__jinja_int_argument(run, &call->args[2], -1, &count));
    return weft__jinja_replace(run, s, from, to, count, out);
}

weft_status weft__jinja_filter_escape(jinja_run *run, const jinja_call *call, jinja_value *out) {
    static const char special[] = "&<>'\"";
    static const char *const names[] = {"&amp;", "&lt;", "&gt;", "&#39;", "&#34;"};
    jinja_string s;
    jinja_text text = {0};
    WEFT_TRY(weft__jinja_to_string(run, &call->object, &s));
    for (size_t at = 0; at < s.bytes; at++) {
        const char *c = s.text[at] ? strchr(special, s.text[at]) : NULL;
        const char *put = c ? names[c - special] : s.text + at;
        WEFT_TRY(weft__jinja_write(run, &text, put, c ? strlen(put) : 1));
    }
    return weft__jinja_string(run, &text, out);
}

weft_status weft__jinja_filter_indent(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_string s, line, indent;
    jinja_text text = {0}, room = {0};
    int64_t width = 4;
    const bool first = weft__jinja_truth(&call->args[1]), blank = weft__jinja_truth(&call->args[2]);
    if (call->object.kind != JINJA_STRING)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "indent needs a string, not %s",
                                weft__jinja_kind_name(&call->object));
    s = call->object.as.string;
    WEFT_TRY(weft__jinja_text_argument(run, &call->args[0], "", &indent));
    if (call->args[0].kind != JINJA_STRING) {
        WEFT_TRY(weft__jinja_int_argument(run, &call->args[0], 4, &width));
        for (int64_t i = 0; i < width; i++) WEFT_TRY(weft__jinja_write(run, &room, " ", 1));
        indent = (jinja_string){room.text, room.bytes};
    }
    bool begins = true, newline = true;
    for (size_t at = 0; weft__jinja_line(s, &at, false, &line); begins = false) {
        newline = line.text + line.bytes < s.text + at;
        if (!begins) WEFT_TRY(weft__jinja_write(run, &text, "\n", 1));
        if (begins ? first : blank || line.bytes)
            WEFT_TRY(weft__jinja_write(run, &text, indent.text, indent.bytes));
        WEFT_TRY(weft__jinja_write(run, &text, line.text, line.bytes));
    }
    if (newline && !begins) { /* the empty line after the last newline */
        WEFT_TRY(weft__jinja_write(run, &text, "\n", 1));
        if (blank) WEFT_TRY(weft__jinja_write(run, &text, indent.text, indent.bytes));
    } else if (begins && first) {
        WEFT_TRY(weft__jinja_write(run, &text, indent.text, indent.bytes));
    }
    return weft__jinja_string(run, &text, out);
}

/* As transformers' tojson: json.dumps(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False).
 */
weft_status weft__jinja_filter_tojson(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *indent = &call->args[1], *separators = &call->args[2];
    jinja_text text = {0}, room = {0};
    jinja_json how = {.ascii = weft__jinja_truth(&call->args[0]),
                      .sorted = weft__jinja_truth(&call->args[3])};
    how.lines = indent->kind != JINJA_UNDEFINED && indent->kind != JINJA_NONE;
    how.comma = weft__jinja_literal(how.lines ? "," : ", ");
    how.colon = weft__jinja_literal(": ");
    if (indent->kind == JINJA_STRING) {
        how.indent = indent->as.string;
    } else if (how.lines) {
        int64_t width;
        WEFT_TRY(weft__jinja_int_argument(run, indent, 0, &width));
        for (int64_t i = 0; i < width; i++) WEFT_TRY(weft__jinja_write(run, &room, " ", 1));
        how.indent = (jinja_string){room.text, room.bytes};
    }
    if (separators->kind == JINJA_TUPLE || separators->kind == JINJA_LIST) {
        const jinja_list *list = separators->as.list;
        if (list->count != 2 || list->items[0].kind != JINJA_STRING || list->items[1].kind != JINJA_STRING)
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "tojson: separators must be two strings");
        how.comma = list->items[0].as.string;
        how.colon = list->items[1].as.string;
    }
    WEFT_TRY(weft__jinja_print_json(run, &text, &call->object, &how));
    return weft__jinja_string(run, &text, out);
}
