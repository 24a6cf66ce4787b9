/* Methods of strings, lists, dicts and loops, as in Python. None changes its object.
 *
 * Must not know: the tree. Read next: values.c. */
#include <string.h>
#include <utf8proc.h>

#include "text/pipeline/pipeline.h"
#include "text/template/jinja.h"

/* ---- dicts, lists, loops ---- */

weft_status weft__jinja_method_copy(jinja_run *run, const jinja_call *call, jinja_value *out) {
    (void)run;
    *out = call->object; /* nothing can change it */
    return WEFT_OK;
}

weft_status weft__jinja_method_get(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_pair *pair;
    WEFT_TRY(weft__jinja_find(run, call->object.as.dict, &call->args[0], &pair));
    *out = pair ? pair->value : call->args[1].kind != JINJA_UNDEFINED ? call->args[1] : weft__jinja_none();
    return WEFT_OK;
}

weft_status weft__jinja_method_items(jinja_run *run, const jinja_call *call, jinja_value *out) {
    WEFT_TRY(weft__jinja_filter_items(run, call, out));
    out->as.list->generator = false;
    return WEFT_OK;
}

static weft_status halves(jinja_run *run, const jinja_dict *dict, bool keys, jinja_value *out) {
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, dict->count, out));
    for (size_t i = 0; i < dict->count; i++)
        WEFT_TRY(weft__jinja_append(run, out, keys ? &dict->pairs[i].key : &dict->pairs[i].value));
    return WEFT_OK;
}

weft_status weft__jinja_method_keys(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return halves(run, call->object.as.dict, true, out);
}

weft_status weft__jinja_method_values(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return halves(run, call->object.as.dict, false, out);
}

/* ---- searching ---- */

/* The object and the first argument, which must be strings. */
static weft_status two_strings(jinja_run *run, const jinja_call *call, jinja_string *s, jinja_string *part) {
    if (call->args[0].kind != JINJA_STRING)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the argument must be a string, not %s",
                                weft__jinja_kind_name(&call->args[0]));
    *s = call->object.as.string;
    *part = call->args[0].as.string;
    return weft__jinja_work(run, s->bytes / 64 * (1 + part->bytes / 64));
}

/* Finds the first place; SIZE_MAX: none. */
static weft_status find(jinja_run *run, const jinja_call *call, size_t *out) {
    jinja_string s, part;
    WEFT_TRY(two_strings(run, call, &s, &part));
    *out = weft__jinja_search(s, part, 0);
    return WEFT_OK;
}

static int64_t place(const jinja_call *call, size_t at) {
    if (at == SIZE_MAX) return -1;
    return (int64_t)weft__jinja_characters((jinja_string){call->object.as.string.text, at});
}

weft_status weft__jinja_method_find(jinja_run *run, const jinja_call *call, jinja_value *out) {
    size_t at;
    WEFT_TRY(find(run, call, &at));
    *out = weft__jinja_int(place(call, at));
    return WEFT_OK;
}

/* Counts the items that are equal, and tells the first one; SIZE_MAX: none. */
static weft_status count_items(jinja_run *run, const jinja_call *call, size_t *count, size_t *first) {
    const jinja_list *list = call->object.as.list;
    for (size_t i = 0; i < list->count; i++) {
        bool equal;
        WEFT_TRY(weft__jinja_equal(run, &list->items[i], &call->args[0], &equal));
        if (equal && *first == SIZE_MAX) *first = i;
        *count += equal;
    }
    return WEFT_OK;
}

weft_status weft__jinja_method_index(jinja_run *run, const jinja_call *call, jinja_value *out) {
    size_t count = 0, first = SIZE_MAX;
    const bool text = call->object.kind == JINJA_STRING;
    WEFT_TRY(text ? find(run, call, &first) : count_items(run, call, &count, &first));
    if (first == SIZE_MAX) return weft__jinja_fail(run, WEFT_ERR_FORMAT, "index: the value is not there");
    *out = weft__jinja_int(text ? place(call, first) : (int64_t)first);
    return WEFT_OK;
}

weft_status weft__jinja_method_count(jinja_run *run, const jinja_call *call, jinja_value *out) {
    size_t count = 0, first = SIZE_MAX;
    jinja_string s, part;
    if (call->object.kind != JINJA_STRING) {
        WEFT_TRY(count_items(run, call, &count, &first));
    } else {
        WEFT_TRY(two_strings(run, call, &s, &part));
        if (part.bytes == 0) count = weft__jinja_characters(s) + 1;
        for (size_t at = 0; part.bytes && (at = weft__jinja_search(s, part, at)) != SIZE_MAX;
             at += part.bytes)
            count++;
    }
    *out = weft__jinja_int((int64_t)count);
    return WEFT_OK;
}

static bool has_part(jinja_string s, jinja_string part, bool end) {
    return part.bytes <= s.bytes &&
           memcmp(s.text + (end ? s.bytes - part.bytes : 0), part.text, part.bytes) == 0;
}

/* One string, or a tuple of them. */
static weft_status begins_or_ends(jinja_run *run, const jinja_call *call, bool end, jinja_value *out) {
    const jinja_value *parts = &call->args[0];
    size_t count = 1;
    bool found = false;
    if (parts->kind == JINJA_TUPLE) WEFT_TRY(weft__jinja_items(run, &call->args[0], &parts, &count));
    for (size_t i = 0; i < count; i++) {
        if (parts[i].kind != JINJA_STRING)
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the argument must be a string, not %s",
                                    weft__jinja_kind_name(&parts[i]));
        found = found || has_part(call->object.as.string, parts[i].as.string, end);
    }
    *out = weft__jinja_bool(found);
    return WEFT_OK;
}

weft_status weft__jinja_method_startswith(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return begins_or_ends(run, call, false, out);
}

weft_status weft__jinja_method_endswith(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return begins_or_ends(run, call, true, out);
}

static weft_status without_part(jinja_run *run, const jinja_call *call, bool end, jinja_value *out) {
    jinja_string s, part;
    WEFT_TRY(two_strings(run, call, &s, &part));
    const size_t cut = has_part(s, part, end) ? part.bytes : 0;
    *out = weft__jinja_text(s.text + (end ? 0 : cut), s.bytes - cut);
    return WEFT_OK;
}

weft_status weft__jinja_method_removeprefix(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return without_part(run, call, false, out);
}

weft_status weft__jinja_method_removesuffix(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return without_part(run, call, true, out);
}

/* ---- trimming, case, replacement: as the filters ---- */

static weft_status trim(jinja_run *run, const jinja_call *call, bool left, bool right, jinja_value *out) {
    jinja_string s = call->object.as.string, characters;
    const bool given = call->args[0].kind == JINJA_STRING;
    WEFT_TRY(weft__jinja_text_argument(run, &call->args[0], "", &characters));
    WEFT_TRY(weft__jinja_work(run, s.bytes / 64 * (1 + characters.bytes)));
    s = weft__jinja_trim(s, given ? &characters : NULL, left, right);
    *out = weft__jinja_text(s.text, s.bytes);
    return WEFT_OK;
}

weft_status weft__jinja_method_strip(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return trim(run, call, true, true, out);
}

weft_status weft__jinja_method_lstrip(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return trim(run, call, true, false, out);
}

weft_status weft__jinja_method_rstrip(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return trim(run, call, false, true, out);
}

weft_status weft__jinja_method_capitalize(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return weft__jinja_case(run, call->object.as.string, CASE_CAPITAL, out);
}

weft_status weft__jinja_method_lower(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return weft__jinja_case(run, call->object.as.string, CASE_LOWER, out);
}

weft_status weft__jinja_method_upper(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return weft__jinja_case(run, call->object.as.string, CASE_UPPER, out);
}

weft_status weft__jinja_method_title(jinja_run *run, const jinja_call *call, jinja_value *out) {
    return weft__jinja_case(run, call->object.as.string, CASE_TITLE, out);
}

weft_status weft__jinja_method_replace(jinja_run *run, const jinja_call *call, jinja_value *out) {
    for (int i = 0; i < 2; i++)
        if (call->args[i].kind != JINJA_STRING)
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "replace needs strings, not %s",
                                    weft__jinja_kind_name(&call->args[i]));
    return weft__jinja_filter_replace(run, call, out);
}

weft_status weft__jinja_method_join(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_value *items;
    size_t count;
    jinja_text text = {0};
    const jinja_string between = call->object.as.string;
    WEFT_TRY(weft__jinja_items(run, &call->args[0], &items, &count));
    for (size_t i = 0; i < count; i++) {
        if (items[i].kind != JINJA_STRING)
            return weft__jinja_fail(run, WEFT_ERR_FORMAT, "join needs strings, but item %zu is %s", i,
                                    weft__jinja_kind_name(&items[i]));
        if (i) WEFT_TRY(weft__jinja_write(run, &text, between.text, between.bytes));
        WEFT_TRY(weft__jinja_write(run, &text, items[i].as.string.text, items[i].as.string.bytes));
    }
    return weft__jinja_string(run, &text, out);
}

/* ---- splitting ---- */

static weft_status add_part(jinja_run *run, jinja_value *list, jinja_string s, size_t begin, size_t end) {
    const jinja_value part = weft__jinja_text(s.text + begin, end - begin);
    return weft__jinja_append(run, list, &part);
}

static weft_status split_blanks(jinja_run *run, jinja_string s, int64_t most, jinja_value *out) {
    for (;;) {
        s = weft__jinja_trim(s, NULL, true, false);
        if (s.bytes == 0) return WEFT_OK;
        size_t end = 0;
        for (size_t n; end < s.bytes; end += n) {
            uint32_t c;
            n = weft__read_point(s.text, s.bytes, end, &c);
            if (weft__is_space(c) || (c >= 0x1c && c <= 0x1f)) break;
        }
        if (most == 0) end = s.bytes;
        WEFT_TRY(add_part(run, out, s, 0, end));
        s = (jinja_string){s.text + end, s.bytes - end};
        most--;
    }
}

static weft_status split_arguments(jinja_run *run, const jinja_call *call, jinja_string *separator,
                                   int64_t *most, jinja_value *out) {
    const jinja_string s = call->object.as.string;
    WEFT_TRY(weft__jinja_text_argument(run, &call->args[0], "", separator));
    WEFT_TRY(weft__jinja_int_argument(run, &call->args[1], -1, most));
    if (call->args[0].kind == JINJA_STRING && separator->bytes == 0)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "split: the separator is empty");
    WEFT_TRY(weft__jinja_work(run, s.bytes / 64 * (1 + separator->bytes / 64)));
    return weft__jinja_list(run, JINJA_LIST, 4, out);
}

weft_status weft__jinja_method_split(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_string s = call->object.as.string;
    jinja_string separator;
    int64_t most;
    size_t at = 0, found;
    WEFT_TRY(split_arguments(run, call, &separator, &most, out));
    if (separator.bytes == 0) return split_blanks(run, s, most, out);
    for (; most != 0 && (found = weft__jinja_search(s, separator, at)) != SIZE_MAX; most--) {
        WEFT_TRY(add_part(run, out, s, at, found));
        at = found + separator.bytes;
    }
    return add_part(run, out, s, at, s.bytes);
}

weft_status weft__jinja_method_rsplit(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_string s = call->object.as.string, separator;
    int64_t most;
    WEFT_TRY(split_arguments(run, call, &separator, &most, out));
    if (separator.bytes == 0)
        return most < 0 ? split_blanks(run, s, most, out)
                        : weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED,
                                           "rsplit with maxsplit is supported with a separator only");
    for (size_t at = s.bytes; most != 0 && at >= separator.bytes;) {
        at -= separator.bytes;
        while (at > 0 && memcmp(s.text + at, separator.text, separator.bytes) != 0) at--;
        if (memcmp(s.text + at, separator.text, separator.bytes) != 0) break;
        WEFT_TRY(add_part(run, out, s, at + separator.bytes, s.bytes));
        s.bytes = at;
        most--;
    }
    WEFT_TRY(add_part(run, out, s, 0, s.bytes));
    jinja_list *list = out->as.list;
    for (size_t i = 0, j = list->count; i + 1 < j; i++) { /* they were found from the end */
        const jinja_value kept = list->items[i];
        list->items[i] = list->items[--j];
        list->items[j] = kept;
    }
    return WEFT_OK;
}

weft_status weft__jinja_method_splitlines(jinja_run *run, const jinja_call *call, jinja_value *out) {
    jinja_string line;
    const jinja_string s = call->object.as.string;
    WEFT_TRY(weft__jinja_work(run, s.bytes / 64));
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, 4, out));
    for (size_t at = 0; weft__jinja_line(s, &at, weft__jinja_truth(&call->args[0]), &line);) {
        const jinja_value part = weft__jinja_text(line.text, line.bytes);
        WEFT_TRY(weft__jinja_append(run, out, &part));
    }
    return WEFT_OK;
}

weft_status weft__jinja_method_isdigit(jinja_run *run, const jinja_call *call, jinja_value *out) {
    const jinja_string s = call->object.as.string;
    bool digits = s.bytes > 0;
    for (size_t at = 0; at < s.bytes && digits;) {
        uint32_t c;
        at += weft__read_point(s.text, s.bytes, at, &c);
        digits = utf8proc_category((utf8proc_int32_t)c) == UTF8PROC_CATEGORY_ND;
    }
    *out = weft__jinja_bool(digits);
    return weft__jinja_work(run, s.bytes / 16);
}
