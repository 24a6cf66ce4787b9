/* Cuts a template into texts, tags and their tokens. White space around tags goes as in jinja2 with
 * trim_blocks (the newline after a tag) and lstrip_blocks (the blanks between the start of a line and a tag).
 * "-" removes all of it, "+" keeps it.
 *
 * Must not know: what tokens mean. Read next: parser.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "base/utf8.h"
#include "text/template/jinja.h"

typedef struct lexer {
    jinja_program *program;
    const char *s;
    size_t at, end;
    bool line_starts; /* the last tag ended with a newline */
    jinja_token *tokens;
    size_t count, capacity;
} lexer;

static weft_status lexer_push(lexer *l, jinja_token token) {
    if (!weft__grow(l->program->ctx, &l->tokens, &l->capacity, l->count, sizeof token))
        return weft__fail_oom(l->program->ctx, (l->count + 1) * sizeof token, "the tokens of a template");
    l->tokens[l->count++] = token;
    return WEFT_OK;
}

static bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r') || (c >= 0x1c && c <= 0x1f); }
static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool lexer_is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

static char peek(const lexer *l, size_t ahead) { return l->at + ahead < l->end ? l->s[l->at + ahead] : '\0'; }

/* ---- literals ---- */

static int hex(char c) {
    if (is_digit(c)) return c - '0';
    const char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Reads the escape after a backslash as Python does. An unknown one stays as it is. */
static weft_status lex_escape(lexer *l, size_t end, char *out, size_t *used) {
    static const char names[] = "nrtabfv\\'\"", values[] = "\n\r\t\a\b\f\v\\'\"";
    const size_t start = l->at - 1;
    const char c = l->s[l->at++];
    const char *known = c ? strchr(names, c) : NULL;
    uint32_t point = 0;
    int digits = c == 'x' ? 2 : c == 'u' ? 4 : c == 'U' ? 8 : 0;
    if (known) {
        out[(*used)++] = values[known - names];
        return WEFT_OK;
    }
    if (c == '\n') return WEFT_OK;
    if (c == 'N')
        return weft__jinja_fail_at(
            l->program, start, WEFT_ERR_UNSUPPORTED,
            "the escape \\N is not supported; write the character, or \\u and its code");
    if (c >= '0' && c <= '7') {
        point = (uint32_t)(c - '0');
        for (int i = 0; i < 2 && l->at < end && l->s[l->at] >= '0' && l->s[l->at] <= '7'; i++)
            point = point * 8 + (uint32_t)(l->s[l->at++] - '0');
    } else if (digits) {
        for (; digits > 0; digits--, l->at++) {
            const int value = l->at < end ? hex(l->s[l->at]) : -1;
            if (value < 0 || point > 0x10ffff)
                return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT, "a broken escape in a string");
            point = point * 16 + (uint32_t)value;
        }
    } else { /* the character itself may be longer than a byte; the caller goes on with it */
        out[(*used)++] = '\\';
        l->at--;
        return WEFT_OK;
    }
    if (point > 0x10ffff || (point >= 0xd800 && point < 0xe000))
        return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT,
                                   "an escape in a string that is no character");
    *used += weft__utf8_write(point, out + *used);
    return WEFT_OK;
}

static weft_status lex_string(lexer *l) {
    const size_t start = l->at;
    const char quote = l->s[l->at++];
    size_t end = l->at, used = 0;
    while (end < l->end && l->s[end] != quote) end += l->s[end] == '\\' && end + 1 < l->end ? 2 : 1;
    if (end >= l->end)
        return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT, "a string that does not end");
    char *out = weft__arena_alloc(&l->program->arena, end - l->at + 1);
    if (!out) return weft__fail_oom(l->program->ctx, end - l->at + 1, "a string of a template");
    while (l->at < end) {
        const char c = l->s[l->at++];
        if (c == '\\') {
            WEFT_TRY(lex_escape(l, end, out, &used));
        } else {
            out[used++] = c;
        }
    }
    l->at = end + 1;
    return lexer_push(l, (jinja_token){TOKEN_STRING, 0, start, weft__jinja_text(out, used)});
}

/* Copies digits, without underscores between them. */
static size_t lex_digits(lexer *l, char *out, size_t used, size_t room, bool hexadecimal) {
    for (; l->at < l->end; l->at++) {
        const char c = l->s[l->at];
        if (c == '_' && (is_digit(peek(l, 1)) || (hexadecimal && hex(peek(l, 1)) >= 0))) continue;
        if (!is_digit(c) && !(hexadecimal && hex(c) >= 0)) break;
        if (used < room) out[used] = c;
        used++;
    }
    return used;
}

static weft_status lex_number(lexer *l) {
    char text[128];
    const size_t start = l->at, room = sizeof text - 8;
    size_t used = 0;
    bool whole = true;
    int base = 10;
    if (peek(l, 0) == '0' && peek(l, 1) && strchr("xXoObB", peek(l, 1))) {
        base = strchr("xX", peek(l, 1)) ? 16 : strchr("oO", peek(l, 1)) ? 8 : 2;
        l->at += 2;
    }
    used = lex_digits(l, text, 0, room, base == 16);
    if (base == 10 && used < room && peek(l, 0) == '.' && is_digit(peek(l, 1))) {
        whole = false;
        text[used++] = '.';
        l->at++;
        used = lex_digits(l, text, used, room, false);
    }
    const size_t sign = peek(l, 1) == '+' || peek(l, 1) == '-';
    if (base == 10 && used < room && (peek(l, 0) | 0x20) == 'e' && is_digit(peek(l, 1 + sign))) {
        whole = false;
        text[used++] = 'e';
        if (sign) text[used++] = peek(l, 1);
        l->at += 1 + sign;
        used = lex_digits(l, text, used, room, false);
    }
    if (used == 0 || used >= room)
        return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT, "a broken number");
    text[used] = '\0';
    if (whole) {
        char *end;
        errno = 0;
        const long long value = strtoll(text, &end, base);
        if (errno || *end)
            return weft__jinja_fail_at(l->program, start, WEFT_ERR_UNSUPPORTED,
                                       "the integer '%.40s' is broken or has more than 64 bits", text);
        return lexer_push(l, (jinja_token){TOKEN_INT, 0, start, weft__jinja_int(value)});
    }
    double value = 0;
    const weft__number_kind read = weft__parse_f64(text, used, &value);
    if (read == WEFT__NUMBER_NO_MEMORY) return weft__fail_oom(l->program->ctx, used, "a number");
    if (read != WEFT__NUMBER_OK)
        return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT, "a number out of range");
    return lexer_push(l, (jinja_token){TOKEN_FLOAT, 0, start, weft__jinja_float(value)});
}

/* ---- the inside of a tag ---- */

/* Brackets that are open. */
typedef struct open_brackets {
    char closing[JINJA_NESTED_MAX];
    int count;
} open_brackets;

static weft_status lex_bracket(lexer *l, open_brackets *open, char c) {
    static const char pairs[] = "()[]{}";
    const char *const pair = strchr(pairs, c);
    if (!pair || !c) return WEFT_OK;
    if ((pair - pairs) % 2 == 0) {
        if (open->count == JINJA_NESTED_MAX)
            return weft__jinja_fail_at(l->program, l->at, WEFT_ERR_UNSUPPORTED,
                                       "more than %d levels of brackets", JINJA_NESTED_MAX);
        open->closing[open->count++] = pair[1];
        return WEFT_OK;
    }
    if (open->count == 0)
        return weft__jinja_fail_at(l->program, l->at, WEFT_ERR_FORMAT, "'%c' closes nothing", c);
    if (open->closing[--open->count] == c) return WEFT_OK;
    return weft__jinja_fail_at(l->program, l->at, WEFT_ERR_FORMAT, "expected '%c', found '%c'",
                               open->closing[open->count], c);
}

static weft_status lex_operator(lexer *l, open_brackets *open) {
    static const char *const pairs[] = {"//", "**", "==", "!=", ">=", "<="};
    const size_t start = l->at;
    const char c = peek(l, 0);
    int op = c;
    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++)
        if (c == pairs[i][0] && peek(l, 1) == pairs[i][1]) op = OP2(c, pairs[i][1]);
    if (op == c && (!c || !strchr("+-/*%~[](){}><=.:|,;", c))) {
        size_t bytes = 1;
        while (start + bytes < l->end && ((unsigned char)l->s[start + bytes] & 0xc0u) == 0x80u) bytes++;
        return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT, "'%.*s' is no operator", (int)bytes,
                                   l->s + start);
    }
    WEFT_TRY(lex_bracket(l, open, c));
    l->at += op == c ? 1 : 2;
    return lexer_push(l, (jinja_token){TOKEN_OPERATOR, op, start, weft__jinja_none()});
}

/* Takes the end of a tag: "}}" or "%}", with its sign. Returns false if it is not here. */
static bool lex_tag_end(lexer *l, char mark) {
    const char sign = peek(l, 0);
    const size_t skip = sign == '-' || (sign == '+' && mark != '}');
    if (peek(l, skip) != mark || peek(l, skip + 1) != '}') return false;
    l->at += skip + 2;
    if (sign == '-')
        while (l->at < l->end && is_blank(l->s[l->at])) l->at++;
    else if (sign != '+' && mark != '}' && peek(l, 0) == '\n')
        l->at++;
    l->line_starts = l->s[l->at - 1] == '\n';
    return true;
}

static weft_status lex_inside(lexer *l, size_t start, char mark) {
    open_brackets open = {.count = 0};
    for (;;) {
        while (l->at < l->end && is_blank(l->s[l->at])) l->at++;
        const size_t at = l->at;
        if (at >= l->end)
            return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT, "the tag has no end '%c}'", mark);
        const char c = l->s[at];
        if (open.count == 0 && lex_tag_end(l, mark))
            return lexer_push(
                l, (jinja_token){mark == '}' ? TOKEN_OUTPUT_END : TOKEN_TAG_END, 0, at, weft__jinja_none()});
        if (is_digit(c)) {
            WEFT_TRY(lex_number(l));
        } else if (c == '\'' || c == '"') {
            WEFT_TRY(lex_string(l));
        } else if (lexer_is_letter(c)) {
            while (lexer_is_letter(peek(l, 0)) || is_digit(peek(l, 0))) l->at++;
            WEFT_TRY(
                lexer_push(l, (jinja_token){TOKEN_NAME, 0, at, weft__jinja_text(l->s + at, l->at - at)}));
        } else {
            WEFT_TRY(lex_operator(l, &open));
        }
    }
}

/* ---- texts and tags ---- */

/* The text before a tag that begins at `end` with a sign, without the white space that goes. */
static size_t lex_text_end(const lexer *l, size_t end, char mark, char sign) {
    size_t at = end;
    if (sign == '-') {
        while (at > l->at && is_blank(l->s[at - 1])) at--;
        return at;
    }
    if (sign == '+' || mark == '{') return end;
    while (at > l->at && is_blank(l->s[at - 1]) && l->s[at - 1] != '\n') at--;
    return at > l->at ? (l->s[at - 1] == '\n' ? at : end) : (l->line_starts ? at : end);
}

static weft_status lex_comment(lexer *l, size_t start) {
    const size_t begin = l->at;
    for (; l->at + 1 < l->end; l->at++) {
        if (l->s[l->at] != '#' || l->s[l->at + 1] != '}') continue;
        if (l->at > begin && strchr("+-", l->s[l->at - 1])) l->at--;
        (void)lex_tag_end(l, '#');
        return WEFT_OK;
    }
    return weft__jinja_fail_at(l->program, start, WEFT_ERR_FORMAT, "the comment has no end '#}'");
}

static weft_status lex_all(lexer *l) {
    while (l->at < l->end) {
        size_t start = l->at;
        while (start + 1 < l->end &&
               !(l->s[start] == '{' && strchr("{%#", l->s[start + 1]) && l->s[start + 1]))
            start++;
        if (start + 1 >= l->end)
            return lexer_push(
                l, (jinja_token){TOKEN_TEXT, 0, l->at, weft__jinja_text(l->s + l->at, l->end - l->at)});
        const char mark = l->s[start + 1];
        const char sign = start + 2 < l->end ? l->s[start + 2] : '\0';
        const size_t end = lex_text_end(l, start, mark, sign);
        if (end > l->at)
            WEFT_TRY(lexer_push(
                l, (jinja_token){TOKEN_TEXT, 0, l->at, weft__jinja_text(l->s + l->at, end - l->at)}));
        l->at = start + 2 + (sign == '-' || sign == '+');
        if (mark == '#') {
            WEFT_TRY(lex_comment(l, start));
            continue;
        }
        WEFT_TRY(lexer_push(l, (jinja_token){mark == '%' ? TOKEN_TAG_BEGIN : TOKEN_OUTPUT_BEGIN, 0, start,
                                             weft__jinja_none()}));
        WEFT_TRY(lex_inside(l, start, mark == '%' ? '%' : '}'));
    }
    return WEFT_OK;
}

weft_status weft__jinja_lex(jinja_program *program, jinja_token **tokens) {
    lexer l = {.program = program, .s = program->source, .end = program->bytes, .line_starts = true};
    weft_status status = lex_all(&l);
    if (status == WEFT_OK) status = lexer_push(&l, (jinja_token){TOKEN_END, 0, l.end, weft__jinja_none()});
    *tokens = l.tokens;
    if (status != WEFT_OK) {
        weft__free(program->ctx, l.tokens);
        *tokens = NULL;
    }
    return status;
}
