/* The preprocessor: object and function macros, # and ##, conditions, #undef, #error, #pragma unroll. It
 * drops other pragmas. #include is refused: the build replaces it (tools/embed.cmake). Must not know: types,
 * statements. Read next: parse.c. */
#include <string.h>

#include "device/webgpu/wgsl/tokens.h"

enum { PARAMETERS = 32, CONDITIONS = 32, LENGTH_MOST = 1 << 20 };

struct weft_wgsl_macro {
    bool function, busy; /* busy: being expanded */
    int n_parameters;
    weft_wgsl_word *parameters[PARAMETERS];
    weft_wgsl_tokens body; /* without END */
};

/* Tokens that are read next: the text, or the expansion of a macro. */
typedef struct level {
    const weft_wgsl_token *list;
    size_t count, at;
    weft_wgsl_macro *macro; /* no longer busy when the level ends */
    struct level *below;
} level;

typedef struct condition {
    bool active, taken, otherwise; /* taken: an earlier branch was active; otherwise: #else was met */
    bool around;                   /* whether the text around it is active */
} condition;

typedef struct state {
    weft_wgsl_run *run;
    level *top;
    condition conditions[CONDITIONS];
    int n_conditions;
} state;

/* ---- reading ---- */

static void preprocess_push(state *s, const weft_wgsl_token *list, size_t count, weft_wgsl_macro *macro) {
    level *l = weft__wgsl_alloc(s->run, sizeof *l);
    *l = (level){list, count, 0, macro, s->top};
    if (macro) macro->busy = true;
    s->top = l;
}

/* Returns the next token and skips it. At the end it returns NULL, or END of the text. */
static const weft_wgsl_token *next(state *s) {
    while (s->top && s->top->at == s->top->count) {
        if (s->top->macro) s->top->macro->busy = false;
        s->top = s->top->below;
    }
    return s->top ? &s->top->list[s->top->at++] : NULL;
}

/* Is the next token the bracket that begins the arguments of a macro? */
static bool arguments_follow(const state *s) {
    const level *l = s->top;
    while (l && l->at == l->count) l = l->below;
    return l && weft__wgsl_is(&l->list[l->at], "(");
}

static bool active(const state *s) { return !s->n_conditions || s->conditions[s->n_conditions - 1].active; }

/* ---- expanding ---- */

static void expand_list(state *s, const weft_wgsl_token *list, size_t count, weft_wgsl_tokens *to);

static void read_arguments(state *s, const weft_wgsl_macro *m, const weft_wgsl_token *name,
                           weft_wgsl_tokens *arguments) {
    int n = 0, depth = 0;
    next(s);
    for (;;) {
        const weft_wgsl_token *t = next(s);
        if (!t || t->kind == WEFT_WGSL_END)
            weft__wgsl_fail(s->run, name->line, "the arguments of macro %s have no end", name->text);
        if (depth == 0 && weft__wgsl_is(t, ")")) break;
        if (depth == 0 && weft__wgsl_is(t, ",")) {
            if (++n >= PARAMETERS) break;
            continue;
        }
        if (weft__wgsl_is(t, "(")) depth++;
        if (weft__wgsl_is(t, ")")) depth--;
        weft__wgsl_add(s->run, &arguments[n], *t);
    }
    if (n + 1 != m->n_parameters && !(n == 0 && m->n_parameters == 0 && arguments[0].count == 0))
        weft__wgsl_fail(s->run, name->line, "macro %s has %d parameters, and is used with %d", name->text,
                        m->n_parameters, n + 1);
}

static int parameter_of(const weft_wgsl_macro *m, const weft_wgsl_token *t) {
    for (int p = 0; t->kind == WEFT_WGSL_NAME && p < m->n_parameters; p++)
        if (m->parameters[p] == t->word) return p;
    return -1;
}

static weft_wgsl_token string_of(state *s, const weft_wgsl_tokens *tokens, int line) {
    const char *text = "\"";
    for (size_t i = 0; i < tokens->count; i++)
        text = weft__wgsl_text(s->run, "%s%s%.*s", text, i && tokens->list[i].space ? " " : "",
                               tokens->list[i].length, tokens->list[i].text);
    text = weft__wgsl_text(s->run, "%s\"", text);
    return (weft_wgsl_token){
        .kind = WEFT_WGSL_STRING, .line = line, .space = true, .text = text, .length = (int)strlen(text)};
}

/* Joins the last token of `to` with the first one of `more`, and adds the others. */
static void paste(state *s, weft_wgsl_tokens *to, const weft_wgsl_tokens *more, int line) {
    size_t from = 0;
    if (to->count && more->count) {
        const weft_wgsl_token *a = &to->list[to->count - 1], *b = &more->list[0];
        const char *text = weft__wgsl_text(s->run, "%.*s%.*s", a->length, a->text, b->length, b->text);
        const weft_wgsl_tokens joined = weft__wgsl_tokens(s->run, text);
        if (joined.count != 2) weft__wgsl_fail(s->run, line, "## gives %s, which is no token", text);
        joined.list[0].line = line;
        joined.list[0].first = false;
        to->list[to->count - 1] = joined.list[0];
        from = 1;
    }
    for (size_t i = from; i < more->count; i++) weft__wgsl_add(s->run, to, more->list[i]);
}

/* Replaces the parameters in the body of a macro. */
static weft_wgsl_tokens substitute(state *s, const weft_wgsl_macro *m, const weft_wgsl_tokens *arguments,
                                   int line) {
    weft_wgsl_tokens to = {0};
    for (size_t i = 0; i < m->body.count; i++) {
        weft_wgsl_token t = m->body.list[i];
        const bool pastes = weft__wgsl_is(&t, "##"),
                   pasted = i + 1 < m->body.count && weft__wgsl_is(&m->body.list[i + 1], "##");
        if (weft__wgsl_is(&t, "#") && i + 1 < m->body.count && parameter_of(m, &m->body.list[i + 1]) >= 0) {
            weft__wgsl_add(s->run, &to, string_of(s, &arguments[parameter_of(m, &m->body.list[++i])], line));
            continue;
        }
        if (pastes && i + 1 < m->body.count) t = m->body.list[++i];
        t.line = line;
        t.first = false;
        const int p = parameter_of(m, &t);
        weft_wgsl_tokens one = {&t, 1, 1};
        if (pastes)
            paste(s, &to, p >= 0 ? &arguments[p] : &one, line);
        else if (p < 0)
            weft__wgsl_add(s->run, &to, t);
        else if (pasted)
            for (size_t k = 0; k < arguments[p].count; k++) weft__wgsl_add(s->run, &to, arguments[p].list[k]);
        else
            expand_list(s, arguments[p].list, arguments[p].count, &to);
        if (to.count > LENGTH_MOST) weft__wgsl_fail(s->run, line, "a macro expands to too many tokens");
    }
    return to;
}

/* Adds a token, or what it expands to. */
static void expand(state *s, const weft_wgsl_token *t, weft_wgsl_tokens *to) {
    weft_wgsl_macro *m = t->kind == WEFT_WGSL_NAME && !t->final ? t->word->macro : NULL;
    if (to->count > LENGTH_MOST) weft__wgsl_fail(s->run, t->line, "the text has too many tokens");
    if (!m || m->busy || (m->function && !arguments_follow(s))) {
        weft_wgsl_token copy = *t;
        if (m && m->busy) copy.final = true;
        weft__wgsl_add(s->run, to, copy);
        return;
    }
    weft_wgsl_tokens arguments[PARAMETERS + 1] = {{0}};
    if (m->function) read_arguments(s, m, t, arguments);
    weft__wgsl_enter(s->run, t->line);
    const weft_wgsl_tokens body = substitute(s, m, arguments, t->line);
    weft__wgsl_leave(s->run);
    preprocess_push(s, body.list, body.count, m);
}

static void expand_list(state *s, const weft_wgsl_token *list, size_t count, weft_wgsl_tokens *to) {
    level *below = s->top;
    s->top = NULL;
    preprocess_push(s, list, count, NULL);
    for (const weft_wgsl_token *t; (t = next(s));) expand(s, t, to);
    s->top = below;
}

/* ---- conditions ---- */

typedef struct reader {
    state *s;
    const weft_wgsl_tokens *tokens;
    size_t at;
    int line;
} reader;

static const weft_wgsl_token *peek(const reader *r) {
    return r->at < r->tokens->count ? &r->tokens->list[r->at] : NULL;
}

static bool accept(reader *r, const char *text) {
    if (!peek(r) || !weft__wgsl_is(peek(r), text)) return false;
    r->at++;
    return true;
}

static int64_t evaluate(reader *r, int least);

static int64_t evaluate_one(reader *r) {
    uint64_t value;
    int end;
    weft__wgsl_enter(r->s->run, r->line);
    int64_t result = 0;
    const weft_wgsl_token *t = peek(r);
    if (accept(r, "!")) {
        result = !evaluate_one(r);
    } else if (accept(r, "-")) {
        result = (int64_t)(0 - (uint64_t)evaluate_one(r));
    } else if (accept(r, "+")) {
        result = evaluate_one(r);
    } else if (accept(r, "~")) {
        result = ~evaluate_one(r);
    } else if (accept(r, "(")) {
        result = evaluate(r, 0);
        if (!accept(r, ")")) weft__wgsl_fail(r->s->run, r->line, "a condition lacks a bracket )");
    } else if (t && t->kind == WEFT_WGSL_NUMBER && weft__wgsl_integer(t, &value, &end)) {
        result = (int64_t)value;
        r->at++;
    } else if (t && t->kind == WEFT_WGSL_NAME) {
        r->at++; /* no macro: 0 */
    } else {
        weft__wgsl_fail(r->s->run, r->line, "a condition lacks an operand");
    }
    weft__wgsl_leave(r->s->run);
    return result;
}

static int64_t calculate(reader *r, const char *op, int64_t a, int64_t b) {
    if ((*op == '/' || *op == '%') && (b == 0 || (b == -1 && a == INT64_MIN)))
        weft__wgsl_fail(r->s->run, r->line, "a condition divides by zero");
    if (!strcmp(op, "<<")) return (int64_t)((uint64_t)a << (b & 63));
    if (!strcmp(op, ">>")) return a >> (b & 63);
    if (!strcmp(op, "<=")) return a <= b;
    if (!strcmp(op, ">=")) return a >= b;
    if (!strcmp(op, "==")) return a == b;
    if (!strcmp(op, "!=")) return a != b;
    if (!strcmp(op, "&&")) return a && b;
    if (!strcmp(op, "||")) return a || b;
    switch (*op) {
    case '*': return (int64_t)((uint64_t)a * (uint64_t)b);
    case '/': return a / b;
    case '%': return a % b;
    case '+': return (int64_t)((uint64_t)a + (uint64_t)b);
    case '-': return (int64_t)((uint64_t)a - (uint64_t)b);
    case '<': return a < b;
    case '>': return a > b;
    case '&': return a & b;
    case '^': return a ^ b;
    default: return a | b;
    }
}

static int64_t evaluate(reader *r, int least) {
    static const struct {
        const char *op;
        int level;
    } operators[] = {{"||", 1}, {"&&", 2}, {"|", 3},  {"^", 4},  {"&", 5},  {"==", 6},
                     {"!=", 6}, {"<=", 7}, {">=", 7}, {"<", 7},  {">", 7},  {"<<", 8},
                     {">>", 8}, {"+", 9},  {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}};
    int64_t left = evaluate_one(r);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        if (operators[i].level < least + (least > 0) || !accept(r, operators[i].op)) continue;
        const int64_t right = evaluate(r, operators[i].level);
        left = calculate(r, operators[i].op, left, right);
        i = (size_t)-1;
    }
    if (least == 0 && accept(r, "?")) {
        weft__wgsl_enter(r->s->run, r->line);
        const int64_t yes = evaluate(r, 0);
        if (!accept(r, ":")) weft__wgsl_fail(r->s->run, r->line, "a condition lacks :");
        const int64_t no = evaluate(r, 0);
        weft__wgsl_leave(r->s->run);
        return left ? yes : no;
    }
    return left;
}

static bool condition_holds(state *s, const weft_wgsl_token *list, size_t count, int line) {
    weft_wgsl_tokens replaced = {0}, expanded = {0};
    for (size_t i = 0; i < count; i++) {
        weft_wgsl_token t = list[i];
        if (weft__wgsl_is(&t, "defined")) {
            const bool bracket = i + 1 < count && weft__wgsl_is(&list[i + 1], "(");
            i += bracket ? 2 : 1;
            if (i >= count || list[i].kind != WEFT_WGSL_NAME)
                weft__wgsl_fail(s->run, line, "'defined' needs a name");
            t = (weft_wgsl_token){
                .kind = WEFT_WGSL_NUMBER, .line = line, .text = list[i].word->macro ? "1" : "0", .length = 1};
            i += bracket;
        }
        weft__wgsl_add(s->run, &replaced, t);
    }
    expand_list(s, replaced.list, replaced.count, &expanded);
    reader r = {s, &expanded, 0, line};
    const int64_t value = evaluate(&r, 0);
    if (r.at != expanded.count) weft__wgsl_fail(s->run, line, "a condition has more than one expression");
    return value != 0;
}

/* ---- directives ---- */

static void define(state *s, const weft_wgsl_token *list, size_t count, int line) {
    if (count < 1 || list[0].kind != WEFT_WGSL_NAME) weft__wgsl_fail(s->run, line, "#define needs a name");
    weft_wgsl_macro *m = weft__wgsl_alloc(s->run, sizeof *m);
    size_t at = 1;
    if (count > 1 && weft__wgsl_is(&list[1], "(") && !list[1].space) {
        m->function = true;
        for (at = 2; at < count && !weft__wgsl_is(&list[at], ")"); at++) {
            if (weft__wgsl_is(&list[at], ",")) continue;
            if (list[at].kind != WEFT_WGSL_NAME || m->n_parameters == PARAMETERS)
                weft__wgsl_fail(s->run, line, "macro %s: its parameters must be at most %d names",
                                list[0].text, PARAMETERS);
            m->parameters[m->n_parameters++] = list[at].word;
        }
        if (at++ >= count)
            weft__wgsl_fail(s->run, line, "the parameters of macro %s have no end", list[0].text);
    }
    for (; at < count; at++) weft__wgsl_add(s->run, &m->body, list[at]);
    if (m->body.count && weft__wgsl_is(&m->body.list[0], "##"))
        weft__wgsl_fail(s->run, line, "macro %s begins with ##", list[0].text);
    list[0].word->macro = m;
}

static void begin_condition(state *s, bool holds, int line) {
    if (s->n_conditions == CONDITIONS) weft__wgsl_fail(s->run, line, "conditions are nested too deep");
    const bool around = active(s);
    s->conditions[s->n_conditions++] =
        (condition){.active = around && holds, .taken = holds, .around = around};
}

static condition *open_condition(state *s, const char *what, int line) {
    if (!s->n_conditions) weft__wgsl_fail(s->run, line, "#%s without #if", what);
    condition *c = &s->conditions[s->n_conditions - 1];
    if (c->otherwise && strcmp(what, "endif") != 0) weft__wgsl_fail(s->run, line, "#%s after #else", what);
    return c;
}

/* Obeys a directive of a condition. False: it is none. */
static bool obey_condition(state *s, const weft_wgsl_token *name, const weft_wgsl_token *list, size_t count,
                           int line) {
    if (weft__wgsl_is(name, "ifdef") || weft__wgsl_is(name, "ifndef")) {
        if (count < 1 || list[0].kind != WEFT_WGSL_NAME)
            weft__wgsl_fail(s->run, line, "#%s needs a name", name->text);
        begin_condition(s, (list[0].word->macro != NULL) == (name->length == 5), line);
    } else if (weft__wgsl_is(name, "if")) {
        begin_condition(s, active(s) && condition_holds(s, list, count, line), line);
    } else if (weft__wgsl_is(name, "elif")) {
        condition *c = open_condition(s, "elif", line);
        c->active = c->around && !c->taken && condition_holds(s, list, count, line);
        c->taken = c->taken || c->active;
    } else if (weft__wgsl_is(name, "else")) {
        condition *c = open_condition(s, "else", line);
        c->active = c->around && !c->taken;
        c->otherwise = true;
    } else if (weft__wgsl_is(name, "endif")) {
        open_condition(s, "endif", line);
        s->n_conditions--;
    } else {
        return false;
    }
    return true;
}

/* `#pragma unroll` stays, as _Pragma("unroll"). Others are dropped. */
static void pass_pragma(state *s, const weft_wgsl_token *name, const weft_wgsl_token *list, size_t count,
                        weft_wgsl_tokens *to) {
    if (count != 1 || !weft__wgsl_is(list, "unroll")) return;
    const weft_wgsl_tokens from = weft__wgsl_tokens(s->run, "_Pragma(\"unroll\")");
    for (size_t i = 0; i + 1 < from.count; i++) {
        from.list[i].line = name->line;
        weft__wgsl_add(s->run, to, from.list[i]);
    }
}

/* Obeys the directive whose # was just read. */
static void obey(state *s, int line, weft_wgsl_tokens *to) {
    level *l = s->top;
    const weft_wgsl_token *list = &l->list[l->at];
    size_t count = 0;
    while (list[count].kind != WEFT_WGSL_END && !list[count].first) count++;
    l->at += count;
    if (!count) return;
    const weft_wgsl_token *name = list++;
    if (obey_condition(s, name, list, --count, line) || !active(s)) return;
    if (weft__wgsl_is(name, "define"))
        define(s, list, count, line);
    else if (weft__wgsl_is(name, "undef") && count && list[0].kind == WEFT_WGSL_NAME)
        list[0].word->macro = NULL;
    else if (weft__wgsl_is(name, "error"))
        weft__wgsl_fail(s->run, line, "#error");
    else if (weft__wgsl_is(name, "pragma"))
        pass_pragma(s, name, list, count, to);
    else
        weft__wgsl_fail(s->run, line, "directive #%.*s is not supported", name->length, name->text);
}

weft_wgsl_tokens weft__wgsl_preprocess(weft_wgsl_run *run, const weft_wgsl_tokens *from) {
    state s = {.run = run};
    weft_wgsl_tokens to = {0};
    preprocess_push(&s, from->list, from->count, NULL);
    const level *text = s.top;
    for (const weft_wgsl_token *t; (t = next(&s));) {
        if (s.top == text && t->first && weft__wgsl_is(t, "#")) {
            obey(&s, t->line, &to);
        } else if (t->kind == WEFT_WGSL_END) {
            if (s.n_conditions) weft__wgsl_fail(run, t->line, "#if has no #endif");
            weft__wgsl_add(run, &to, *t);
            return to;
        } else if (active(&s)) {
            expand(&s, t, &to);
        }
    }
    weft__wgsl_fail(run, 0, "the text has no end");
}
