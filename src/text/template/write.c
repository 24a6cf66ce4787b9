/* Writes values: as Python's str() and repr(), and as json.dumps.
 *
 * Must not know: the tree. Read next: strings.c. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "text/template/jinja.h"

weft_status weft__jinja_write(jinja_run *run, jinja_text *to, const char *text, size_t bytes) {
    if (bytes == 0) return WEFT_OK;
    if (to->capacity - to->bytes < bytes) {
        size_t capacity = to->capacity ? 2 * to->capacity : 256;
        if (capacity < to->bytes + bytes) capacity = to->bytes + bytes;
        char *more = weft__jinja_take(run, capacity);
        if (!more) return run->status;
        if (to->bytes) memcpy(more, to->text, to->bytes);
        to->text = more;
        to->capacity = capacity;
    }
    memcpy(to->text + to->bytes, text, bytes);
    to->bytes += bytes;
    return weft__jinja_work(run, bytes / 64);
}

static weft_status put(jinja_run *run, jinja_text *to, const char *text) {
    return weft__jinja_write(run, to, text, strlen(text));
}

weft_status weft__jinja_string(jinja_run *run, const jinja_text *text, jinja_value *out) {
    (void)run;
    *out = weft__jinja_text(text->text ? text->text : "", text->bytes);
    return WEFT_OK;
}

/* ---- numbers ---- */

/* Writes a float with some digits after the point, which is '.' in any locale. */
static void write_digits(double value, int precision, char *out, size_t bytes) {
    snprintf(out, bytes, "%.*e", precision, value);
    for (char *c = out; *c; c++)
        if ((*c < '0' || *c > '9') && !strchr("+-e", *c)) *c = '.';
}

/* Reads the exponent behind the 'e' of digits. */
static int read_exponent(const char *digits) {
    const char *c = strchr(digits, 'e') + 1;
    int exponent = 0;
    for (const char *d = c + 1; *d; d++) exponent = 10 * exponent + (*d - '0');
    return *c == '-' ? -exponent : exponent;
}

/* Writes the shortest decimal number that is this float, as Python does. False: memory is short. */
static bool write_float(double value, char out[48]) {
    char digits[40];
    double back = 0;
    int precision = 0, used = 0, count = 0;
    if (!isfinite(value)) {
        strcpy(out, isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return true;
    }
    do {
        write_digits(value, precision++, digits, sizeof digits);
        if (weft__parse_f64(digits, strlen(digits), &back) == WEFT__NUMBER_NO_MEMORY) return false;
    } while (precision < 17 && back != value);
    const int exponent = read_exponent(digits);
    char mantissa[24];
    for (const char *c = digits; *c != 'e'; c++)
        if (*c >= '0' && *c <= '9') mantissa[count++] = *c;
    while (count > 1 && mantissa[count - 1] == '0') count--;
    if (signbit(value)) out[used++] = '-';
    if (exponent < -4 || exponent >= 16) {
        out[used++] = mantissa[0];
        if (count > 1) out[used++] = '.';
        for (int i = 1; i < count; i++) out[used++] = mantissa[i];
        snprintf(out + used, 8, "e%c%02d", exponent < 0 ? '-' : '+', abs(exponent) % 1000);
        return true;
    }
    const int whole = exponent < 0 ? 1 : exponent + 1;
    for (int i = 0; i < whole; i++) out[used++] = exponent < 0 ? '0' : i < count ? mantissa[i] : '0';
    out[used++] = '.';
    for (int i = exponent + 1; i < 0; i++) out[used++] = '0';
    for (int i = exponent < 0 ? 0 : whole; i < count; i++) out[used++] = mantissa[i];
    if (out[used - 1] == '.') out[used++] = '0';
    out[used] = '\0';
    return true;
}

static weft_status print_number(jinja_run *run, jinja_text *to, const jinja_value *v) {
    char text[48];
    if (v->kind == JINJA_INT)
        snprintf(text, sizeof text, "%lld", (long long)v->as.integer);
    else if (!write_float(v->as.number, text))
        return weft__fail_oom(run->ctx, sizeof text, "a number");
    return put(run, to, text);
}

/* ---- str and repr ---- */

/* Python prefers single quotes. */
static weft_status print_quoted(jinja_run *run, jinja_text *to, jinja_string s) {
    const bool twofold = s.bytes && memchr(s.text, '\'', s.bytes) && !memchr(s.text, '"', s.bytes);
    const char quote[2] = {twofold ? '"' : '\'', '\0'};
    WEFT_TRY(put(run, to, quote));
    for (size_t at = 0, n; at < s.bytes; at += n) {
        char escape[16] = "";
        uint32_t c = 0;
        n = weft__jinja_character(s, at);
        (void)weft__utf8_read(s.text + at, n, &c);
        if (c == '\n' || c == '\r' || c == '\t' || c == '\\' || c == (uint32_t)quote[0])
            snprintf(escape, sizeof escape, "\\%c",
                     c == '\n'   ? 'n'
                     : c == '\r' ? 'r'
                     : c == '\t' ? 't'
                                 : (int)c);
        else if (c < ' ' || (c >= 0x7f && c <= 0xa0) || c == 0xad)
            snprintf(escape, sizeof escape, "\\x%02x", (unsigned)c);
        WEFT_TRY(escape[0] ? put(run, to, escape) : weft__jinja_write(run, to, s.text + at, n));
    }
    return put(run, to, quote);
}

static weft_status print_list(jinja_run *run, jinja_text *to, const jinja_value *v) {
    const jinja_list *list = v->as.list;
    const bool tuple = v->kind == JINJA_TUPLE;
    if (list->generator)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT,
                                "the result of this filter cannot be printed; | list or | join can");
    WEFT_TRY(put(run, to, tuple ? "(" : "["));
    for (size_t i = 0; i < list->count; i++) {
        if (i) WEFT_TRY(put(run, to, ", "));
        WEFT_TRY(weft__jinja_print(run, to, &list->items[i], true));
    }
    if (tuple && list->count == 1) WEFT_TRY(put(run, to, ","));
    return put(run, to, tuple ? ")" : "]");
}

static weft_status print_dict(jinja_run *run, jinja_text *to, const jinja_dict *dict) {
    WEFT_TRY(put(run, to, "{"));
    for (size_t i = 0; i < dict->count; i++) {
        if (i) WEFT_TRY(put(run, to, ", "));
        WEFT_TRY(weft__jinja_print(run, to, &dict->pairs[i].key, true));
        WEFT_TRY(put(run, to, ": "));
        WEFT_TRY(weft__jinja_print(run, to, &dict->pairs[i].value, true));
    }
    return put(run, to, "}");
}

static weft_status print_kind(jinja_run *run, jinja_text *to, const jinja_value *v, bool quoted) {
    switch (v->kind) {
    case JINJA_UNDEFINED: return quoted ? put(run, to, "Undefined") : WEFT_OK;
    case JINJA_NONE: return put(run, to, "None");
    case JINJA_BOOL: return put(run, to, v->as.flag ? "True" : "False");
    case JINJA_INT:
    case JINJA_FLOAT: return print_number(run, to, v);
    case JINJA_STRING:
        return quoted ? print_quoted(run, to, v->as.string)
                      : weft__jinja_write(run, to, v->as.string.text, v->as.string.bytes);
    case JINJA_LIST:
    case JINJA_TUPLE: return print_list(run, to, v);
    case JINJA_DICT: return print_dict(run, to, v->as.dict);
    default:
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "%s cannot be printed", weft__jinja_kind_name(v));
    }
}

weft_status weft__jinja_print(jinja_run *run, jinja_text *to, const jinja_value *value, bool quoted) {
    WEFT_TRY(weft__jinja_work(run, 1));
    WEFT_TRY(weft__jinja_deeper(run));
    WEFT_TRY(print_kind(run, to, value, quoted));
    run->depth--;
    return WEFT_OK;
}

weft_status weft__jinja_to_string(jinja_run *run, const jinja_value *value, jinja_string *out) {
    jinja_text text = {0};
    if (value->kind == JINJA_STRING) {
        *out = value->as.string;
        return WEFT_OK;
    }
    WEFT_TRY(weft__jinja_print(run, &text, value, false));
    *out = (jinja_string){text.text ? text.text : "", text.bytes};
    return WEFT_OK;
}

/* ---- JSON ---- */

typedef struct json_writer {
    jinja_run *run;
    jinja_text *to;
    const jinja_json *how;
    int level;
} json_writer;

static weft_status json_value(json_writer *w, const jinja_value *v);

static weft_status json_string_text(json_writer *w, jinja_string s) {
    static const char names[] = "\n\r\t\b\f\"\\", letters[] = "nrtbf\"\\";
    WEFT_TRY(put(w->run, w->to, "\""));
    for (size_t at = 0, n; at < s.bytes; at += n) {
        char escape[16] = "";
        uint32_t c = 0;
        n = weft__jinja_character(s, at);
        (void)weft__utf8_read(s.text + at, n, &c);
        const char *known = c && c < 128 ? strchr(names, (int)c) : NULL;
        if (known)
            snprintf(escape, sizeof escape, "\\%c", letters[known - names]);
        else if (c < ' ' || (w->how->ascii && c >= 0x7f && c < 0x10000 && c != 0x7f))
            snprintf(escape, sizeof escape, "\\u%04x", (unsigned)c);
        else if (w->how->ascii && c >= 0x10000)
            snprintf(escape, sizeof escape, "\\u%04x\\u%04x", (unsigned)(0xd800 + ((c - 0x10000) >> 10)),
                     (unsigned)(0xdc00 + ((c - 0x10000) & 0x3ff)));
        WEFT_TRY(escape[0] ? put(w->run, w->to, escape) : weft__jinja_write(w->run, w->to, s.text + at, n));
    }
    return put(w->run, w->to, "\"");
}

static weft_status json_line(json_writer *w) {
    if (!w->how->lines) return WEFT_OK;
    WEFT_TRY(put(w->run, w->to, "\n"));
    for (int i = 0; i < w->level; i++)
        WEFT_TRY(weft__jinja_write(w->run, w->to, w->how->indent.text, w->how->indent.bytes));
    return WEFT_OK;
}

static weft_status json_separator(json_writer *w, bool first) {
    if (!first) WEFT_TRY(weft__jinja_write(w->run, w->to, w->how->comma.text, w->how->comma.bytes));
    return json_line(w);
}

static weft_status json_list(json_writer *w, const jinja_list *list) {
    if (list->generator)
        return weft__jinja_fail(w->run, WEFT_ERR_FORMAT, "tojson needs | list after this filter");
    WEFT_TRY(put(w->run, w->to, "["));
    w->level++;
    for (size_t i = 0; i < list->count; i++) {
        WEFT_TRY(json_separator(w, i == 0));
        WEFT_TRY(json_value(w, &list->items[i]));
    }
    w->level--;
    if (list->count) WEFT_TRY(json_line(w));
    return put(w->run, w->to, "]");
}

static weft_status json_key(json_writer *w, const jinja_value *key) {
    if (key->kind == JINJA_STRING) return json_string_text(w, key->as.string);
    if (key->kind > JINJA_STRING || key->kind == JINJA_UNDEFINED)
        return weft__jinja_fail(w->run, WEFT_ERR_FORMAT, "tojson: %s cannot be a key",
                                weft__jinja_kind_name(key));
    WEFT_TRY(put(w->run, w->to, "\""));
    WEFT_TRY(json_value(w, key));
    return put(w->run, w->to, "\"");
}

/* Sorts the pairs of a dict by their keys, which must be strings. */
static int by_key(const void *a, const void *b) {
    const jinja_string s = ((const jinja_pair *)a)->key.as.string, t = ((const jinja_pair *)b)->key.as.string;
    const int order = memcmp(s.text, t.text, s.bytes < t.bytes ? s.bytes : t.bytes);
    return order ? order : (s.bytes > t.bytes) - (s.bytes < t.bytes);
}

static weft_status sorted_pairs(json_writer *w, const jinja_dict *dict, const jinja_pair **out) {
    jinja_pair *pairs = weft__jinja_take(w->run, dict->count * sizeof *pairs);
    if (!pairs) return w->run->status;
    for (size_t i = 0; i < dict->count; i++) {
        pairs[i] = dict->pairs[i];
        if (pairs[i].key.kind != JINJA_STRING)
            return weft__jinja_fail(w->run, WEFT_ERR_UNSUPPORTED, "tojson sorts keys that are strings only");
    }
    if (dict->count) qsort(pairs, dict->count, sizeof *pairs, by_key);
    *out = pairs;
    return weft__jinja_work(w->run, dict->count);
}

static weft_status json_dict(json_writer *w, const jinja_dict *dict) {
    const jinja_pair *pairs = dict->pairs;
    if (w->how->sorted) WEFT_TRY(sorted_pairs(w, dict, &pairs));
    WEFT_TRY(put(w->run, w->to, "{"));
    w->level++;
    for (size_t i = 0; i < dict->count; i++) {
        WEFT_TRY(json_separator(w, i == 0));
        WEFT_TRY(json_key(w, &pairs[i].key));
        WEFT_TRY(weft__jinja_write(w->run, w->to, w->how->colon.text, w->how->colon.bytes));
        WEFT_TRY(json_value(w, &pairs[i].value));
    }
    w->level--;
    if (dict->count) WEFT_TRY(json_line(w));
    return put(w->run, w->to, "}");
}

static weft_status json_kind(json_writer *w, const jinja_value *v) {
    switch (v->kind) {
    case JINJA_NONE: return put(w->run, w->to, "null");
    case JINJA_BOOL: return put(w->run, w->to, v->as.flag ? "true" : "false");
    case JINJA_FLOAT:
        if (!isfinite(v->as.number))
            return put(w->run, w->to,
                       isnan(v->as.number) ? "NaN"
                       : v->as.number < 0  ? "-Infinity"
                                           : "Infinity");
        return print_number(w->run, w->to, v);
    case JINJA_INT: return print_number(w->run, w->to, v);
    case JINJA_STRING: return json_string_text(w, v->as.string);
    case JINJA_LIST:
    case JINJA_TUPLE: return json_list(w, v->as.list);
    case JINJA_DICT: return json_dict(w, v->as.dict);
    default:
        return weft__jinja_fail(w->run, WEFT_ERR_FORMAT, "tojson cannot write %s", weft__jinja_kind_name(v));
    }
}

static weft_status json_value(json_writer *w, const jinja_value *v) {
    WEFT_TRY(weft__jinja_work(w->run, 1));
    WEFT_TRY(weft__jinja_deeper(w->run));
    WEFT_TRY(json_kind(w, v));
    w->run->depth--;
    return WEFT_OK;
}

weft_status weft__jinja_print_json(jinja_run *run, jinja_text *to, const jinja_value *value,
                                   const jinja_json *how) {
    json_writer w = {run, to, how, 0};
    return json_value(&w, value);
}
