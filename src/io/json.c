/* Parses strict JSON in two passes. The first pass scans the text and limits the depth, the number of
 * values and the kinds of numbers. The second pass is jansson.
 *
 * jansson itself refuses malformed UTF-8, control characters and NUL in strings, lone surrogates, leading
 * zeros, integers of more than 64 bits, duplicate keys (after unescaping) and text after the value. But
 * jansson accepts -0, allows a depth of 2048 and allocates memory while it reads. That is why the scan
 * comes first.
 *
 * Must not know: what the document means. Read next: the files that include json.h. */
#include <stdio.h>
#include <string.h>

#include "io/json.h"

#define DEPTH_MAX 64

typedef struct scan {
    const weft__json_limits *limits;
    const char *text;
    size_t at, bytes, values;
    size_t items[DEPTH_MAX + 1]; /* commas of each open array or object */
    bool array[DEPTH_MAX + 1];
    int depth;
    char *problem;
} scan;

static bool json_refuse(scan *s, const char *why) {
    snprintf(s->problem, 256, "%s at byte %zu", why, s->at);
    return false;
}

/* Moves from an opening quote to the closing quote. */
static bool skip_string(scan *s) {
    for (s->at++; s->at < s->bytes; s->at++) {
        if (s->text[s->at] == '\\') {
            s->at++;
        } else if (s->text[s->at] == '"') {
            return true;
        }
    }
    return json_refuse(s, "a string has no end");
}

static bool scan_mark(scan *s, char c) {
    if (c == '{' || c == '[') {
        if (s->depth >= s->limits->depth) return json_refuse(s, "nested too deeply");
        s->depth++;
        s->items[s->depth] = 0;
        s->array[s->depth] = c == '[';
    } else if (c == '}' || c == ']') {
        if (s->depth == 0) return json_refuse(s, "one bracket too many");
        s->depth--;
    } else if (c == ',' && s->array[s->depth] && ++s->items[s->depth] >= s->limits->items) {
        return json_refuse(s, "too many elements in an array");
    }
    if (++s->values > s->limits->values) return json_refuse(s, "too many values");
    return true;
}

/* Tells whether the minus sign at this place begins the number -0. "-0.5" is fine, and so is the exponent
 * of "1e-05". */
static bool minus_zero(const scan *s) {
    char before = s->at ? s->text[s->at - 1] : ' ';
    if (before == 'e' || before == 'E' || s->at + 1 >= s->bytes || s->text[s->at + 1] != '0') return false;
    char after = s->at + 2 < s->bytes ? s->text[s->at + 2] : ' ';
    return after != '.' && after != 'e' && after != 'E';
}

static bool scan_text(scan *s) {
    for (; s->at < s->bytes; s->at++) {
        char c = s->text[s->at];
        if (c == '"') {
            if (!skip_string(s)) return false;
        } else if (c == '{' || c == '[' || c == '}' || c == ']' || c == ',' || c == ':') {
            if (!scan_mark(s, c)) return false;
        } else if (s->limits->plain && !(c >= '0' && c <= '9') &&
                   !(c == ' ' || c == '\t' || c == '\n' || c == '\r')) {
            return json_refuse(s,
                               "something other than an object, an array, a string or an unsigned integer");
        } else if (c == '-' && minus_zero(s)) {
            return json_refuse(s, "the number -0");
        }
    }
    return s->depth == 0 ? true : json_refuse(s, "the text ends inside an object or array");
}

weft_status weft__json_parse(weft__json *json, const char *text, size_t bytes,
                             const weft__json_limits *limits, char problem[256], json_t **root) {
    scan s = {.limits = limits, .text = text, .bytes = bytes, .problem = problem};
    json_error_t error;
    *root = NULL;
    if (limits->depth > DEPTH_MAX || !scan_text(&s)) return WEFT_ERR_FORMAT;
    const weft_status status = weft__json_load(json, text, bytes, JSON_REJECT_DUPLICATES, &error, root);
    if (status == WEFT_ERR_FORMAT) snprintf(problem, 256, "%.180s at byte %d", error.text, error.position);
    if (status != WEFT_OK || json_is_object(*root)) return status;
    snprintf(problem, 256, "not an object");
    *root = NULL;
    return WEFT_ERR_FORMAT;
}
