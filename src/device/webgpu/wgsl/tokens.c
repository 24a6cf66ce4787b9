/* Memory and errors of the translator; divides a text into tokens.
 * Must not know: macros, types. Read next: preprocess.c. */
#include "device/webgpu/wgsl/tokens.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- memory and errors ---- */

void *weft__wgsl_alloc(weft_wgsl_run *run, size_t bytes) {
    run->used += bytes + 1;
    if (bytes > WEFT_WGSL_MEMORY || run->used > WEFT_WGSL_MEMORY)
        weft__wgsl_fail(run, run->line, "the translation takes more than %d MiB of memory",
                        WEFT_WGSL_MEMORY >> 20);
    void *memory = weft__arena_alloc(run->arena, bytes ? bytes : 1);
    if (memory) return memory;
    run->no_memory = true;
    longjmp(run->escape, 1);
}

void *weft__wgsl_grow(weft_wgsl_run *run, void *list, size_t *capacity, size_t count, size_t size) {
    if (count < *capacity) return list;
    const size_t more = *capacity ? 2 * *capacity : 16;
    void *wider = weft__wgsl_alloc(run, more * size);
    if (count) memcpy(wider, list, count * size);
    *capacity = more;
    return wider;
}

const char *weft__wgsl_text(weft_wgsl_run *run, const char *fmt, ...) {
    char small[256];
    va_list args;
    va_start(args, fmt);
    const int n = vsnprintf(small, sizeof small, fmt, args);
    va_end(args);
    const size_t length = n > 0 ? (size_t)n : 0;
    char *text = weft__wgsl_alloc(run, length + 1);
    if (length < sizeof small) {
        memcpy(text, small, length + 1);
        return text;
    }
    va_start(args, fmt);
    vsnprintf(text, length + 1, fmt, args);
    va_end(args);
    return text;
}

void weft__wgsl_fail(weft_wgsl_run *run, int line, const char *fmt, ...) {
    va_list args;
    va_start(args, fmt);
    if (run->message_bytes) {
        const int n = snprintf(run->message, run->message_bytes, "line %d: ", line);
        if (n > 0 && (size_t)n < run->message_bytes)
            vsnprintf(run->message + n, run->message_bytes - (size_t)n, fmt, args);
    }
    va_end(args);
    longjmp(run->escape, 1);
}

void weft__wgsl_enter(weft_wgsl_run *run, int line) {
    run->line = line;
    if (++run->depth > WEFT_WGSL_DEPTH)
        weft__wgsl_fail(run, line, "brackets, statements or calls are nested more than %d deep",
                        WEFT_WGSL_DEPTH);
}

void weft__wgsl_leave(weft_wgsl_run *run) { run->depth--; }

/* ---- words ---- */

weft_wgsl_word *weft__wgsl_word(weft_wgsl_run *run, const char *text, size_t length) {
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < length; i++) hash = (hash ^ (uint8_t)text[i]) * 16777619u;
    weft_wgsl_word **at = &run->words[hash % WEFT_WGSL_WORDS];
    for (; *at; at = &(*at)->next)
        if ((*at)->length == length && !memcmp((*at)->text, text, length)) return *at;
    weft_wgsl_word *word = weft__wgsl_alloc(run, sizeof *word);
    word->text = weft__wgsl_text(run, "%.*s", (int)length, text);
    word->length = length;
    return *at = word;
}

bool weft__wgsl_is(const weft_wgsl_token *token, const char *text) {
    return token->kind != WEFT_WGSL_END && (size_t)token->length == strlen(text) &&
           !memcmp(token->text, text, (size_t)token->length);
}

void weft__wgsl_add(weft_wgsl_run *run, weft_wgsl_tokens *to, weft_wgsl_token token) {
    to->list = weft__wgsl_grow(run, to->list, &to->capacity, to->count, sizeof *to->list);
    to->list[to->count++] = token;
}

/* ---- tokens ---- */

static bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }

/* Returns the length of the number at p. The sign of an exponent belongs to it. */
static int number_length(const char *p) {
    const bool hex = p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
    int n = 0;
    for (;; n++) {
        const char c = p[n], before = n ? p[n - 1] : ' ';
        const bool exponent = hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
        if (!is_letter(c) && !is_digit(c) && c != '.' && !((c == '+' || c == '-') && exponent)) return n;
    }
}

static int mark_length(const char *p) {
    static const char *const marks[] = {"<<=", ">>=", "...", "->", "++", "--", "<<", ">>",
                                        "<=",  ">=",  "==",  "!=", "&&", "||", "+=", "-=",
                                        "*=",  "/=",  "%=",  "&=", "|=", "^=", "##"};
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++)
        if (!strncmp(p, marks[i], strlen(marks[i]))) return (int)strlen(marks[i]);
    return strchr("+-*/%<>=!&|^~?:;,.()[]{}#", *p) ? 1 : 0;
}

/* Skips white space, comments and the ends of continued lines. Sets what it met. */
static const char *skip_space(weft_wgsl_run *run, const char *p, int *line, bool *first, bool *space) {
    for (;;) {
        if (p[0] == '/' && p[1] == '*') {
            const int begin = *line;
            for (p += 2; *p && !(p[0] == '*' && p[1] == '/'); p++) *line += *p == '\n';
            if (!*p) weft__wgsl_fail(run, begin, "a comment has no end");
            p += 2;
        } else if (p[0] == '/' && p[1] == '/') {
            while (*p && *p != '\n') p++;
        } else if (p[0] == '\\' && p[1] == '\n') {
            p += 2, ++*line;
        } else if (*p == '\n') {
            p++, ++*line, *first = true;
        } else if (*p == ' ' || *p == '\t' || *p == '\r') {
            p++;
        } else {
            return p;
        }
        *space = true;
    }
}

static int string_length(weft_wgsl_run *run, const char *p, int line) {
    int n = 1;
    while (p[n] && p[n] != '"' && p[n] != '\n') n += p[n] == '\\' && p[n + 1] ? 2 : 1;
    if (p[n] != '"') weft__wgsl_fail(run, line, "a string has no end");
    return n + 1;
}

weft_wgsl_tokens weft__wgsl_tokens(weft_wgsl_run *run, const char *text) {
    weft_wgsl_tokens to = {0};
    int line = 1;
    for (const char *p = text;;) {
        bool first = p == text, space = false;
        p = skip_space(run, p, &line, &first, &space);
        weft_wgsl_token t = {.line = line, .first = first, .space = space, .text = p};
        if (!*p) {
            weft__wgsl_add(run, &to, t);
            return to;
        }
        if (is_letter(*p)) {
            t.kind = WEFT_WGSL_NAME;
            while (is_letter(p[t.length]) || is_digit(p[t.length])) t.length++;
            t.word = weft__wgsl_word(run, p, (size_t)t.length);
            t.text = t.word->text;
        } else if (is_digit(*p) || (*p == '.' && is_digit(p[1]))) {
            t.kind = WEFT_WGSL_NUMBER;
            t.length = number_length(p);
        } else if (*p == '"') {
            t.kind = WEFT_WGSL_STRING;
            t.length = string_length(run, p, line);
        } else {
            t.kind = WEFT_WGSL_MARK;
            t.length = mark_length(p);
            if (!t.length)
                weft__wgsl_fail(run, line, "the byte 0x%02x begins no token", (unsigned)(uint8_t)*p);
        }
        weft__wgsl_add(run, &to, t);
        p += t.length;
    }
}

bool weft__wgsl_integer(const weft_wgsl_token *token, uint64_t *value, int *suffix_at) {
    const bool hex = token->length > 2 && token->text[0] == '0' && (token->text[1] | 32) == 'x';
    int i = hex ? 2 : 0;
    *value = 0;
    for (; i < token->length; i++) {
        const char c = token->text[i], low = (char)(c | 32);
        int digit = -1;
        if (is_digit(c)) digit = c - '0';
        if (hex && low >= 'a' && low <= 'f') digit = low - 'a' + 10;
        if (digit < 0) break;
        const uint64_t base = hex ? 16 : 10;
        if (*value > (UINT64_MAX - (uint64_t)digit) / base) return false;
        *value = *value * base + (uint64_t)digit;
    }
    *suffix_at = i;
    return i > (hex ? 2 : 0);
}
