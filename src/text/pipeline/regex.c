/* Regular expressions of published tokenizers, run by PCRE2. They are written for Oniguruma with Ruby's
 * syntax. Where the two differ, the pattern is rewritten:
 *
 *     \s \w      the properties of Unicode; PCRE2's \s has U+180E, and its \w lacks marks
 *     \h \v \uX  a hexadecimal digit, the vertical tab, a code point
 *     \p{Han}    the script; in PCRE2 10.40 and later also its script extensions
 *     [a[bc]]    a class within a class
 *     x{1,3}+    repeats x{1,3}; in PCRE2 it is possessive
 *     {,3}       {0,3}
 *     (?m)       the dot matches newlines
 *     ^ $        match at lines (PCRE2_MULTILINE)
 *
 * Constructs that cannot be rewritten are refused by name. Must not know: what patterns are for. Read next:
 * split.c. */
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "text/pipeline/pipeline.h"

#define SPACE "\\t-\\r\\x{85}\\p{Z}"
#define WORD                                                                                                 \
    "\\p{L}\\p{M}\\p{Nd}\\p{Nl}\\p{Pc}\\x{24b6}-\\x{24e9}\\x{1f130}-\\x{1f149}\\x{1f150}-\\x{1f169}"         \
    "\\x{1f170}-\\x{1f189}"
#define FRACTIONS "\\x{b2}\\x{b3}\\x{b9}\\x{bc}-\\x{be}" /* Oniguruma's \\w has them outside classes only */
#define GROUPS    64                                     /* most groups within each other */

struct weft__regex {
    weft_context *ctx;
    pcre2_general_context *memory;
    pcre2_code *code;
    pcre2_match_data *match;
    pcre2_match_context *limits;
};

/* ---- from Oniguruma's syntax to PCRE2's ---- */

typedef struct translation {
    const char *where; /* for messages */
    const char *p;
    size_t bytes, at;
    weft__buffer out;
    size_t atom;           /* where the last atom begins in `out` */
    size_t groups[GROUPS]; /* where open groups begin in `out` */
    size_t depth;
    int classes;  /* open classes */
    bool counted; /* the last thing was a quantifier {n,m} */
} translation;

static void put(translation *x, const char *text) { weft__buffer_put(&x->out, text, strlen(text)); }

static weft_status refuse(const translation *x, const char *what) {
    return weft__fail(x->out.ctx, WEFT_ERR_UNSUPPORTED,
                      "%s: the pattern '%.*s' has %s at byte %zu, which Weft does not know", x->where,
                      (int)(x->bytes < 200 ? x->bytes : 200), x->p, what, x->at);
}

/* Writes a set of characters: alone, or as a part of a class. */
static void put_set(translation *x, const char *set, bool negated) {
    if (!x->classes) put(x, negated ? "[^" : "[");
    put(x, set);
    if (!x->classes) put(x, "]");
}

/* \p{Name}: a name of more than two letters is a script. */
static weft_status put_property(translation *x) {
    const char *close = x->at + 2 < x->bytes ? memchr(x->p + x->at, '}', x->bytes - x->at) : NULL;
    if (!close || x->p[x->at + 2] != '{') return refuse(x, "a property without a name in braces");
    const char *name = x->p + x->at + 3;
    bool negated = *name == '^';
    size_t bytes = (size_t)(close - name) - negated;
    bool upper = x->p[x->at + 1] == 'P';
    name += negated;
    put(x, upper != negated ? "\\P{" : "\\p{");
#if PCRE2_MAJOR > 10 || PCRE2_MINOR >= 40
    if (bytes > 2 && !(bytes == 3 && memcmp(name, "Any", 3) == 0)) put(x, "sc:");
#endif
    weft__buffer_put(&x->out, name, bytes);
    put(x, "}");
    x->at = (size_t)(close - x->p) + 1;
    return WEFT_OK;
}

static weft_status put_escape(translation *x) {
    if (x->at + 1 >= x->bytes) return refuse(x, "a backslash at its end");
    char c = x->p[x->at + 1];
    if (c == 'p' || c == 'P') return put_property(x);
    switch (c) {
    case 's': put_set(x, SPACE, false); break;
    case 'w': put_set(x, x->classes ? WORD : WORD FRACTIONS, false); break;
    case 'h': put_set(x, "0-9a-fA-F", false); break;
    case 'S':
    case 'W':
    case 'H':
        if (x->classes && c == 'H') return refuse(x, "\\H in a class");
        if (x->classes)
            put(x, c == 'S' ? "\\S" : "\\W");
        else
            put_set(x, c == 'S' ? SPACE : c == 'W' ? WORD FRACTIONS : "0-9a-fA-F", true);
        break;
    case 'v': put(x, "\\x0b"); break;
    case 'u':
        if (x->at + 5 >= x->bytes) return refuse(x, "\\u without four digits");
        put(x, "\\x{");
        weft__buffer_put(&x->out, x->p + x->at + 2, 4);
        put(x, "}");
        x->at += 4;
        break;
    default:
        if (((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) && !strchr("abBdDefnrtxAGzZkK", c))
            return refuse(x, "an unusual escape");
        weft__buffer_put(&x->out, x->p + x->at, 2);
    }
    x->at += 2;
    return WEFT_OK;
}

/* A character within a class. */
static weft_status put_member(translation *x) {
    char c = x->p[x->at], next = x->at + 1 < x->bytes ? x->p[x->at + 1] : 0;
    if (c == '&' && next == '&') return refuse(x, "an intersection of classes");
    if (c == '[' && next == ':') { /* [:alpha:] */
        const char *close = memchr(x->p + x->at, ']', x->bytes - x->at);
        if (!close) return refuse(x, "a class without an end");
        size_t bytes = (size_t)(close - x->p) + 1 - x->at;
        weft__buffer_put(&x->out, x->p + x->at, bytes);
        x->at += bytes;
        return WEFT_OK;
    }
    if (c == '[') {
        if (next == '^') return refuse(x, "a negated class within a class");
        x->classes++;
    } else if (c != ']' || --x->classes == 0) {
        weft__buffer_put(&x->out, &c, 1);
    }
    x->at++;
    return WEFT_OK;
}

/* An opening parenthesis, with what belongs to it. */
static weft_status put_group(translation *x) {
    if (x->depth == GROUPS) return refuse(x, "too many groups within each other");
    x->groups[x->depth++] = x->out.bytes;
    put(x, "(");
    x->at++;
    if (x->at + 1 >= x->bytes || x->p[x->at] != '?') return WEFT_OK;
    if (x->p[x->at + 1] == '~') return refuse(x, "an absent group");
    put(x, "?");
    x->at++;
    for (; x->at < x->bytes && strchr("imx-", x->p[x->at]); x->at++)
        weft__buffer_put(&x->out, x->p[x->at] == 'm' ? "s" : x->p + x->at, 1);
    return WEFT_OK;
}

/* A quantifier in braces, or a brace that is only a character. */
static void put_count(translation *x) {
    size_t end = x->at + 1, digits = 0;
    while (end < x->bytes && ((x->p[end] >= '0' && x->p[end] <= '9') || x->p[end] == ','))
        digits += x->p[end++] != ',';
    if (end >= x->bytes || x->p[end] != '}' || !digits) {
        put(x, "\\{");
        x->atom = x->out.bytes - 2;
        x->at++;
        return;
    }
    put(x, x->p[x->at + 1] == ',' ? "{0" : "{");
    weft__buffer_put(&x->out, x->p + x->at + 1, end - x->at);
    x->at = end + 1;
    x->counted = true;
}

/* x{1,3}+ becomes (?:x{1,3})+ */
static void put_repeated(translation *x) {
    size_t bytes = x->out.bytes - x->atom;
    put(x, "(?:)+");
    if (!x->out.failed) {
        char *atom = x->out.text + x->atom;
        memmove(atom + 3, atom, bytes);
        memcpy(atom, "(?:", 3);
        memcpy(atom + 3 + bytes, ")+", 2);
    }
    x->at++;
}

static weft_status translate(translation *x) {
    while (x->at < x->bytes) {
        char c = x->p[x->at];
        bool counted = x->counted;
        x->counted = false;
        if (x->classes && c != '\\') {
            WEFT_TRY(put_member(x));
            continue;
        }
        if (!x->classes && c == '{') {
            put_count(x);
            continue;
        }
        if (!x->classes && c == '+' && counted) {
            put_repeated(x);
            continue;
        }
        if (!x->classes && !strchr("*+?)|", c)) x->atom = x->out.bytes;
        if (c == '\\') {
            WEFT_TRY(put_escape(x));
        } else if (c == '(') {
            WEFT_TRY(put_group(x));
        } else {
            if (c == '[') x->classes = 1;
            if (c == ')' && x->depth) x->atom = x->groups[--x->depth];
            weft__buffer_put(&x->out, &c, 1);
            x->at++;
            if (c == '[' && x->at < x->bytes && x->p[x->at] == '^') {
                put(x, "^");
                x->at++;
            }
            for (;
                 (unsigned char)c >= 0xc0 && x->at < x->bytes && ((unsigned char)x->p[x->at] & 0xc0) == 0x80;
                 x->at++)
                weft__buffer_put(&x->out, x->p + x->at, 1);
        }
    }
    return weft__buffer_check(&x->out);
}

/* ---- compiling ---- */

static void *regex_take(PCRE2_SIZE bytes, void *ctx) { return weft__alloc(ctx, bytes); }
static void regex_give(void *p, void *ctx) { weft__free(ctx, p); }

static weft_status regex_compile(weft__regex *r, const char *where, const char *pattern, size_t bytes,
                                 bool literal) {
    int code = 0;
    PCRE2_SIZE at = 0;
    r->memory = pcre2_general_context_create(regex_take, regex_give, r->ctx);
    pcre2_compile_context *compiling = r->memory ? pcre2_compile_context_create(r->memory) : NULL;
    if (compiling) {
        pcre2_set_newline(compiling, PCRE2_NEWLINE_LF);
        r->code = pcre2_compile((PCRE2_SPTR)pattern, bytes,
                                literal ? PCRE2_UTF | PCRE2_LITERAL : PCRE2_UTF | PCRE2_UCP | PCRE2_MULTILINE,
                                &code, &at, compiling);
    }
    pcre2_compile_context_free(compiling);
    if (!r->code && (!compiling || code == PCRE2_ERROR_NOMEMORY || code == 121))
        return weft__fail_oom(r->ctx, bytes, "a pattern");
    if (!r->code) {
        PCRE2_UCHAR text[128] = "";
        pcre2_get_error_message(code, text, sizeof text);
        return weft__fail(r->ctx, WEFT_ERR_UNSUPPORTED, "%s: PCRE2 does not accept the pattern '%.*s': %s",
                          where, (int)(bytes < 200 ? bytes : 200), pattern, (const char *)text);
    }
    (void)pcre2_jit_compile(r->code, PCRE2_JIT_COMPLETE); /* without JIT, matching is slower */
    r->match = pcre2_match_data_create(1, r->memory);
    r->limits = pcre2_match_context_create(r->memory);
    if (r->limits) pcre2_set_heap_limit(r->limits, WEFT__MATCH_MEMORY / 1024);
    return r->match && r->limits ? WEFT_OK : weft__fail_oom(r->ctx, 0, "a pattern");
}

weft_status weft__regex_new(weft_context *ctx, const char *where, const char *pattern, size_t bytes,
                            bool literal, weft__regex **out) {
    translation x = {.where = where, .p = pattern, .bytes = bytes, .out.ctx = ctx};
    weft__regex *r = weft__zalloc(ctx, sizeof *r);
    *out = NULL;
    if (!r) return weft__fail_oom(ctx, sizeof *r, "a pattern");
    r->ctx = ctx;
    weft_status status = literal ? WEFT_OK : translate(&x);
    if (status == WEFT_OK && literal)
        status = regex_compile(r, where, pattern, bytes, true);
    else if (status == WEFT_OK)
        status = regex_compile(r, where, x.out.text ? x.out.text : "", x.out.bytes, false);
    weft__buffer_free(&x.out);
    if (status == WEFT_OK)
        *out = r;
    else
        weft__regex_free(r);
    return status;
}

void weft__regex_free(weft__regex *r) {
    if (!r) return;
    pcre2_match_data_free(r->match);
    pcre2_match_context_free(r->limits);
    pcre2_code_free(r->code);
    pcre2_general_context_free(r->memory);
    weft__free(r->ctx, r);
}

/* ---- matching ---- */

weft__search weft__search_of(weft__regex *regex, const char *text, size_t bytes) {
    return (weft__search){.regex = regex,
                          .text = text,
                          .bytes = bytes,
                          .last = SIZE_MAX,
                          .steps_left = (uint64_t)bytes * WEFT__WORK_RATIO + WEFT__MATCH_FREE};
}

static int match_once(const weft__search *m, uint32_t limit) {
    const weft__regex *r = m->regex;
    pcre2_set_match_limit(r->limits, limit);
    const int code =
        pcre2_match(r->code, (PCRE2_SPTR)m->text, m->bytes, m->at, PCRE2_NO_UTF_CHECK, r->match, r->limits);
    if (code != PCRE2_ERROR_JIT_STACKLIMIT) return code;
    return pcre2_match(r->code, (PCRE2_SPTR)m->text, m->bytes, m->at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT,
                       r->match, r->limits);
}

/* PCRE2 limits the steps from each place where a match may begin, and does not tell how many it took. So the
 * limit grows as long as it is too low, and is taken from what is left, for each place that was tried. */
static int match_paced(weft__search *m) {
    for (uint32_t limit = WEFT__MATCH_START;; limit *= 4) {
        const int code = match_once(m, limit);
        const size_t end = code < 1 ? m->bytes : pcre2_get_ovector_pointer(m->regex->match)[0];
        const size_t places = code == PCRE2_ERROR_MATCHLIMIT || end < m->at ? 1 : end - m->at + 1;
        if (limit > WEFT__MATCH_START && !weft__spend(&m->steps_left, (uint64_t)limit * places))
            return PCRE2_ERROR_MATCHLIMIT;
        if (code != PCRE2_ERROR_MATCHLIMIT || limit > UINT32_MAX / 4) return code;
    }
}

/* An empty match right after another match does not count, as in rust-onig. */
weft_status weft__search_next(weft__search *m, bool *found) {
    const weft__regex *r = m->regex;
    const PCRE2_SIZE *ends = pcre2_get_ovector_pointer(r->match);
    *found = false;
    while (m->at <= m->bytes) {
        const int code = match_paced(m);
        if (code == PCRE2_ERROR_NOMATCH) return WEFT_OK;
        if (code == PCRE2_ERROR_NOMEMORY) return weft__fail_oom(r->ctx, m->bytes, "matching a pattern");
        if (code == PCRE2_ERROR_MATCHLIMIT || code == PCRE2_ERROR_HEAPLIMIT)
            return weft__fail(
                r->ctx, WEFT_ERR_UNSUPPORTED,
                "tokenizer: byte %zu: a pattern takes more than %d steps for each byte of a text, or "
                "more than %zu MiB: use the tokenizer.json that the model's authors published",
                m->at, WEFT__WORK_RATIO, WEFT__MATCH_MEMORY >> 20);
        if (code < 1 || ends[0] > ends[1] || ends[1] < m->at)
            return weft__fail(r->ctx, WEFT_ERR_UNSUPPORTED,
                              "tokenizer: a pattern failed with PCRE2's code %d at byte %zu of a text", code,
                              m->at);
        m->begin = ends[0];
        m->end = ends[1];
        if (m->begin == m->end && m->last == m->end) {
            uint32_t point;
            m->at += m->at < m->bytes ? weft__read_point(m->text, m->bytes, m->at, &point) : 1;
            continue;
        }
        m->at = m->last = m->end;
        *found = true;
        return WEFT_OK;
    }
    return WEFT_OK;
}
