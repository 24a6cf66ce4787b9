/* Implements the reader of json_read.h. It follows RFC 8259 and is as strict as jansson with
 * JSON_REJECT_DUPLICATES. To find duplicate keys, the reader keeps a hash of each key of the open objects.
 * A hash collision would refuse a valid file, but never accept a bad one. Must not know: what the document
 * means. Read next: base/number.c. */
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "io/json_read.h"

struct weft__json_key {
    uint64_t hash;
    size_t at;
};

static bool stop(weft__json_reader *r, const char *why) {
    if (!r->problem) r->problem = why;
    return false;
}

static bool stop_oom(weft__json_reader *r) {
    r->no_memory = true;
    return stop(r, "out of memory");
}

void weft__json_begin(weft__json_reader *r, weft_context *ctx, const void *text, size_t bytes) {
    *r = (weft__json_reader){.ctx = ctx, .text = text, .bytes = bytes};
}

void weft__json_end(weft__json_reader *r) {
    weft__free(r->ctx, r->keys);
    r->keys = NULL;
    r->n_keys = r->capacity = 0;
}

/* Reports that the next byte is not what was expected, or that the text ended. */
static bool expected(weft__json_reader *r, const char *why) {
    return stop(r, r->at < r->bytes ? why : "unexpected end of file");
}

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

char weft__json_peek(weft__json_reader *r) {
    while (r->at < r->bytes && is_blank(r->text[r->at])) r->at++;
    return r->at < r->bytes ? r->text[r->at] : '\0';
}

bool weft__json_take(weft__json_reader *r, char c) {
    if (weft__json_peek(r) != c || r->at >= r->bytes) return false;
    r->at++;
    return true;
}

bool weft__json_more(weft__json_reader *r, char close, size_t count) {
    if (r->problem || weft__json_take(r, close)) return false;
    if (count == 0 || weft__json_take(r, ',')) return true;
    return expected(r, "',' or a closing bracket is expected");
}

/* ---- strings ---- */

/* Reads four hexadecimal digits. Returns UINT32_MAX if there are not four. */
static uint32_t hex4(const weft__json_reader *r) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; i++) {
        const char c = r->at + i < r->bytes ? r->text[r->at + i] : '\0';
        const uint32_t letter = (uint32_t)(c | 0x20);
        if (c >= '0' && c <= '9')
            value = value << 4 | (uint32_t)(c - '0');
        else if (letter >= 'a' && letter <= 'f')
            value = value << 4 | (letter - 'a' + 10);
        else
            return UINT32_MAX;
    }
    return value;
}

/* Reads the code point after "\u", with the second half of a surrogate pair if there is one. */
static bool read_code(weft__json_reader *r, uint32_t *point) {
    uint32_t low;
    *point = hex4(r);
    if (*point > 0xffff) return stop(r, "four hexadecimal digits are expected");
    if (*point == 0) return stop(r, "NUL in a string");
    r->at += 4;
    if (*point >= 0xdc00 && *point < 0xe000) return stop(r, "half a surrogate pair");
    if (*point < 0xd800 || *point >= 0xe000) return true;
    if (r->bytes - r->at < 6 || memcmp(r->text + r->at, "\\u", 2) != 0)
        return stop(r, "half a surrogate pair");
    r->at += 2;
    low = hex4(r);
    if (low < 0xdc00 || low >= 0xe000) return stop(r, "half a surrogate pair");
    r->at += 4;
    *point = 0x10000 + ((*point - 0xd800) << 10) + (low - 0xdc00);
    return true;
}

/* Reads one character of a string and resolves its escape. */
static bool read_character(weft__json_reader *r, uint32_t *point) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const unsigned char c = (unsigned char)r->text[r->at];
    if (c < 0x20) return stop(r, "a control character in a string");
    if (c != '\\') {
        const int length = weft__utf8_read(r->text + r->at, r->bytes - r->at, point);
        if (length <= 0) return stop(r, "a byte that is not UTF-8");
        r->at += (size_t)length;
        return true;
    }
    const char after = r->bytes - r->at > 1 ? r->text[r->at + 1] : '\0';
    const char *letter = after ? strchr(letters, after) : NULL;
    if (r->bytes - r->at < 2) return stop(r, "unexpected end of file in a string");
    if (!letter && after != 'u') return stop(r, "an unknown escape");
    r->at += 2;
    if (!letter) return read_code(r, point);
    *point = (unsigned char)meant[letter - letters];
    return true;
}

/* Reads a string and computes the FNV-1a hash of its unescaped bytes. Two spellings of one key therefore have
 * the same hash. */
static bool read_string(weft__json_reader *r, char *out, size_t *length, uint64_t *hash) {
    *length = 0;
    *hash = 14695981039346656037u;
    if (!weft__json_take(r, '"')) return expected(r, "a string is expected");
    while (r->at < r->bytes && r->text[r->at] != '"') {
        uint32_t point;
        char bytes[4];
        if (!read_character(r, &point)) return false;
        const size_t n = weft__utf8_write(point, bytes);
        for (size_t i = 0; i < n; i++) *hash = (*hash ^ (unsigned char)bytes[i]) * 1099511628211u;
        if (out) memcpy(out + *length, bytes, n);
        *length += n;
    }
    if (r->at >= r->bytes) return stop(r, "unexpected end of file in a string");
    r->at++;
    if (out) out[*length] = '\0';
    return true;
}

bool weft__json_string(weft__json_reader *r, char *out, size_t *length) {
    uint64_t hash;
    return read_string(r, out, length, &hash);
}

static bool read_name(weft__json_reader *r, char *out, size_t *length, uint64_t *hash) {
    if (!read_string(r, out, length, hash)) return false;
    return weft__json_take(r, ':') || expected(r, "':' is expected");
}

bool weft__json_name(weft__json_reader *r, char *out, size_t *length) {
    uint64_t hash;
    return read_name(r, out, length, &hash);
}

/* ---- numbers ---- */

static const char *pass_digits(const char *p, const char *end) {
    while (p < end && is_digit(*p)) p++;
    return p;
}

/* Returns the end of the number at p, or NULL if there is no valid number. */
static const char *end_of_number(const char *p, const char *end, bool *real) {
    p += p < end && *p == '-';
    const char *after = pass_digits(p, end);
    if (after == p || (*p == '0' && after > p + 1)) return NULL; /* no digit, or a leading zero */
    p = after;
    if (p < end && *p == '.') {
        *real = true;
        after = pass_digits(++p, end);
        if (after == p) return NULL;
        p = after;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        *real = true;
        p++;
        p += p < end && (*p == '+' || *p == '-');
        after = pass_digits(p, end);
        if (after == p) return NULL;
        p = after;
    }
    return p;
}

/* Returns false if the number does not fit into int64_t. */
static bool to_integer(const char *text, const char *end, int64_t *out) {
    const bool negative = *text == '-';
    int64_t value = 0;
    for (text += negative; text < end; text++)
        if (__builtin_mul_overflow(value, 10, &value) ||
            __builtin_sub_overflow(value, *text - '0', &value)) /* counts down: there is one more */
            return false;
    if (!negative && value == INT64_MIN) return false;
    *out = negative ? value : -value;
    return true;
}

bool weft__json_read_number(weft__json_reader *r, weft__json_number *number) {
    *number = (weft__json_number){.real = false};
    (void)weft__json_peek(r);
    const char *text = r->text + r->at, *end = end_of_number(text, r->text + r->bytes, &number->real);
    if (!end) return stop(r, "not a number");
    if (number->real) {
        const weft__number_kind kind = weft__parse_f64(text, (size_t)(end - text), &number->value);
        if (kind == WEFT__NUMBER_NO_MEMORY) return stop_oom(r);
        if (kind != WEFT__NUMBER_OK) return stop(r, "real number overflow");
    } else {
        if (!to_integer(text, end, &number->integer)) return stop(r, "too big an integer");
        number->value = (double)number->integer;
    }
    r->at += (size_t)(end - text);
    return true;
}

/* ---- values ---- */

static bool pass_word(weft__json_reader *r, const char *word) {
    const size_t n = strlen(word);
    if (r->bytes - r->at < n || memcmp(r->text + r->at, word, n) != 0) return stop(r, "not a value");
    r->at += n;
    return true;
}

static int by_hash(const void *x, const void *y) {
    const struct weft__json_key *a = x, *b = y;
    if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
    return a->at < b->at ? -1 : a->at > b->at;
}

/* Checks that the keys from index `first` on differ from each other. */
static bool all_differ(weft__json_reader *r, size_t first) {
    const size_t n = r->n_keys - first;
    if (n < 2) return true;
    struct weft__json_key *keys = r->keys + first;
    qsort(keys, n, sizeof *keys, by_hash);
    for (size_t i = 1; i < n; i++)
        if (keys[i].hash == keys[i - 1].hash) {
            r->at = keys[i].at;
            return stop(r, "a duplicate key of its object");
        }
    return true;
}

static bool skip_object(weft__json_reader *r) {
    const size_t first = r->n_keys;
    size_t length, n = 0;
    for (; weft__json_more(r, '}', n); n++) {
        struct weft__json_key key;
        (void)weft__json_peek(r);
        key.at = r->at;
        if (!read_name(r, NULL, &length, &key.hash)) return false;
        if (!r->checked && !weft__grow(r->ctx, &r->keys, &r->capacity, r->n_keys, sizeof *r->keys))
            return stop_oom(r);
        if (!r->checked) r->keys[r->n_keys++] = key;
        if (!weft__json_skip(r)) return false;
    }
    if (r->problem || !(r->checked || all_differ(r, first))) return false;
    r->n_keys = first;
    r->members = n;
    return true;
}

static bool skip_array(weft__json_reader *r) {
    for (size_t n = 0; weft__json_more(r, ']', n); n++)
        if (!weft__json_skip(r)) return false;
    return !r->problem;
}

bool weft__json_skip(weft__json_reader *r) {
    weft__json_number number;
    size_t length;
    const char c = weft__json_peek(r);
    if (c == '{' || c == '[') {
        if (r->depth == WEFT__JSON_DEPTH) return stop(r, "more than 64 levels of brackets");
        r->at++;
        r->depth++;
        const bool done = c == '{' ? skip_object(r) : skip_array(r);
        r->depth--;
        return done;
    }
    switch (c) {
    case '"': return weft__json_string(r, NULL, &length);
    case 't': return pass_word(r, "true");
    case 'f': return pass_word(r, "false");
    case 'n': return pass_word(r, "null");
    case '\0': return expected(r, "not a value");
    default: return weft__json_read_number(r, &number);
    }
}

bool weft__json_check(weft__json_reader *r) {
    const char c = weft__json_peek(r);
    if (c != '{' && c != '[') return stop(r, "'[' or '{' is expected");
    if (!weft__json_skip(r)) return false;
    if (weft__json_peek(r) || r->at < r->bytes) return stop(r, "end of file is expected");
    weft__json_end(r);
    r->checked = true;
    r->at = 0;
    return true;
}

void weft__json_place(const weft__json_reader *r, size_t *line, size_t *column) {
    *line = *column = 1;
    for (size_t i = 0; i < r->at && i < r->bytes; i++) {
        if (r->text[i] == '\n') {
            ++*line;
            *column = 1;
        } else {
            ++*column;
        }
    }
}
