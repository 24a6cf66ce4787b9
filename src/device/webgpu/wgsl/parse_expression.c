/* Reads expressions. Must not know: how they are printed. Read next: parse.c. */
#include <math.h>
#include <string.h>

#include "base/number.h"
#include "device/webgpu/wgsl/parse.h"

static weft_wgsl_node *parse_unary(weft_wgsl_parser *p);

static weft_wgsl_symbol *find(const weft_wgsl_parser *p, const weft_wgsl_word *name) {
    for (size_t i = p->scope.count; i-- > 0;)
        if (p->scope.list[i]->name == name) return p->scope.list[i];
    return NULL;
}

/* Notes that what an expression denotes is changed. What a pointer points to is another variable. */
static void note_change(weft_wgsl_node *n) {
    while (n->kind == WEFT_WGSL_N_INDEX || n->kind == WEFT_WGSL_N_FIELD) {
        const bool pointer = n->kind == WEFT_WGSL_N_INDEX && n->a->kind == WEFT_WGSL_N_SYMBOL &&
                             n->a->symbol->type->kind == WEFT_WGSL_POINTER;
        if (pointer) return;
        n = n->a;
    }
    if (n->kind == WEFT_WGSL_N_SYMBOL) n->symbol->changed = true;
}

/* Reads a number such as 0x1.8p-3, of at most 53 bits. */
static bool hex_float(const char *text, size_t size, double *value) {
    size_t i = 2;
    int power = 0, exponent = 0;
    bool point = false, any = false, negative = false;
    *value = 0;
    for (; i < size && (text[i] | 32) != 'p'; i++) {
        const char c = (char)(text[i] | 32);
        const int digit = c >= 'a' && c <= 'f'               ? c - 'a' + 10
                          : text[i] >= '0' && text[i] <= '9' ? text[i] - '0'
                                                             : -1;
        if (text[i] == '.' ? point : digit < 0) return false;
        if (text[i] == '.') {
            point = true;
            continue;
        }
        *value = *value * 16 + digit;
        power -= point ? 4 : 0;
        any = true;
    }
    if (i++ >= size || !any || *value >= 0x1p53) return false;
    if (i < size && (text[i] == '-' || text[i] == '+')) negative = text[i++] == '-';
    if (i >= size) return false;
    for (; i < size; i++) {
        if (text[i] < '0' || text[i] > '9' || exponent > 9999) return false;
        exponent = exponent * 10 + (text[i] - '0');
    }
    *value = ldexp(*value, power + (negative ? -exponent : exponent));
    return true;
}

static weft_wgsl_node *parse_number(weft_wgsl_parser *p) {
    weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_INTEGER);
    const weft_wgsl_token *t = p->at++;
    int end;
    const bool integer = weft__wgsl_integer(t, &n->integer, &end);
    bool is_unsigned = false, is_long = false, is_float = !integer;
    for (int i = end; i < t->length && !is_float; i++) {
        const char c = (char)(t->text[i] | 32);
        is_unsigned = is_unsigned || c == 'u';
        is_long = is_long || c == 'l';
        is_float = c != 'u' && c != 'l';
    }
    if (!is_float) {
        const bool hex = t->length > 1 && (t->text[1] | 32) == 'x', wide = n->integer > UINT32_MAX;
        const bool high =
            n->integer > INT32_MAX; /* a hexadecimal number becomes unsigned, a decimal one long */
        if (is_long || wide || (high && !hex && !is_unsigned))
            n->type = weft__wgsl_type(is_unsigned || n->integer > INT64_MAX ? WEFT_WGSL_U64 : WEFT_WGSL_I64);
        else
            n->type = weft__wgsl_type(is_unsigned || high ? WEFT_WGSL_U32 : WEFT_WGSL_I32);
        return n;
    }
    if (!integer && !memchr(t->text, '.', (size_t)t->length) &&
        strspn(t->text, "0123456789") >= (size_t)t->length)
        weft__wgsl_fail(p->run, t->line, "%.*s is too large", t->length, t->text);
    const char last = t->text[t->length - 1];
    const bool hex = t->length > 1 && (t->text[1] | 32) == 'x', single = last == 'f' || last == 'F';
    const size_t size = (size_t)t->length - single;
    n->kind = WEFT_WGSL_N_FLOAT;
    if (hex ? !hex_float(t->text, size, &n->number)
            : weft__parse_f64(t->text, size, &n->number) != WEFT__NUMBER_OK)
        weft__wgsl_fail(p->run, t->line, "%.*s is no number", t->length, t->text);
    n->type = weft__wgsl_type(single ? WEFT_WGSL_F32 : WEFT_WGSL_F64);
    return n;
}

static weft_wgsl_node *parse_arguments(weft_wgsl_parser *p, weft_wgsl_node *call) {
    weft_wgsl_node **end = &call->list;
    while (!weft__wgsl_accept(p, ")")) {
        if (call->list) weft__wgsl_expect(p, ",");
        *end = weft__wgsl_parse_assignment(p);
        end = &(*end)->next;
    }
    return call;
}

static weft_wgsl_node *parse_sizeof(weft_wgsl_parser *p) {
    weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_INTEGER);
    weft__wgsl_expect(p, "(");
    if (!weft__wgsl_begins_type(p)) weft__wgsl_fail(p->run, n->line, "sizeof is only supported for types");
    const weft_wgsl_specifiers s = weft__wgsl_parse_specifiers(p);
    n->integer = (uint64_t)weft__wgsl_size(weft__wgsl_parse_pointers(p, &s));
    n->type = weft__wgsl_type(WEFT_WGSL_I32); /* fewer conversions than with C's type */
    weft__wgsl_expect(p, ")");
    return n;
}

static weft_wgsl_node *parse_primary(weft_wgsl_parser *p) {
    const weft_wgsl_token *t = p->at;
    if (t->kind == WEFT_WGSL_NUMBER) return parse_number(p);
    if (weft__wgsl_accept(p, "(")) {
        weft_wgsl_node *n = weft__wgsl_parse_expression(p);
        weft__wgsl_expect(p, ")");
        return n;
    }
    if (weft__wgsl_accept(p, "sizeof")) return parse_sizeof(p);
    if (t->kind != WEFT_WGSL_NAME)
        weft__wgsl_fail(p->run, t->line, "%s is where an expression must be",
                        t->kind == WEFT_WGSL_END ? "the end of the text"
                                                 : weft__wgsl_text(p->run, "'%.*s'", t->length, t->text));
    weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_WORD);
    p->at++;
    n->word = t->word;
    if (weft__wgsl_accept(p, "(")) {
        n->kind = WEFT_WGSL_N_CALL;
        return parse_arguments(p, n);
    }
    n->symbol = find(p, t->word);
    if (n->symbol) n->kind = WEFT_WGSL_N_SYMBOL;
    return n;
}

static weft_wgsl_node *parse_postfix(weft_wgsl_parser *p) {
    weft_wgsl_node *n = parse_primary(p);
    for (;;) {
        weft_wgsl_node *with = weft__wgsl_node(p, WEFT_WGSL_N_INDEX);
        with->a = n;
        if (weft__wgsl_accept(p, "[")) {
            with->b = weft__wgsl_parse_expression(p);
            weft__wgsl_expect(p, "]");
        } else if (weft__wgsl_is(p->at, ".") || weft__wgsl_is(p->at, "->")) {
            with->kind = weft__wgsl_is(p->at, ".") ? WEFT_WGSL_N_FIELD : WEFT_WGSL_N_ARROW;
            p->at++;
            if (p->at->kind != WEFT_WGSL_NAME) weft__wgsl_fail(p->run, p->at->line, "a member needs a name");
            with->word = p->at++->word;
        } else if (weft__wgsl_is(p->at, "++") || weft__wgsl_is(p->at, "--")) {
            with->kind = WEFT_WGSL_N_AFTER;
            with->op[0] = p->at++->text[0];
            note_change(n);
        } else {
            return n;
        }
        n = with;
    }
}

/* Reads what follows the bracket of a cast. OpenCL's vectors of 16 are not supported. */
static weft_wgsl_node *parse_cast(weft_wgsl_parser *p) {
    weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_CAST);
    const weft_wgsl_specifiers s = weft__wgsl_parse_specifiers(p);
    n->type = weft__wgsl_parse_pointers(p, &s);
    weft__wgsl_expect(p, ")");
    n->a = parse_unary(p);
    return n;
}

static weft_wgsl_node *parse_unary(weft_wgsl_parser *p) {
    weft__wgsl_enter(p->run, p->at->line);
    const weft_wgsl_token *t = p->at;
    weft_wgsl_node *n;
    if (weft__wgsl_is(t, "(")) {
        p->at++;
        const bool cast = weft__wgsl_begins_type(p);
        p->at = t;
        if (cast) {
            p->at++;
            n = parse_cast(p);
        } else {
            n = parse_postfix(p);
        }
    } else if (weft__wgsl_is(t, "++") || weft__wgsl_is(t, "--")) {
        n = weft__wgsl_node(p, WEFT_WGSL_N_BEFORE);
        n->op[0] = p->at++->text[0];
        n->a = parse_unary(p);
        note_change(n->a);
    } else if (t->kind == WEFT_WGSL_MARK && t->length == 1 && strchr("+-!~*&", t->text[0])) {
        n = weft__wgsl_node(p, WEFT_WGSL_N_UNARY);
        n->op[0] = p->at++->text[0];
        n->a = parse_unary(p);
        if (n->op[0] == '&') note_change(n->a);
    } else {
        n = parse_postfix(p);
    }
    weft__wgsl_leave(p->run);
    return n;
}

static int level_of(const weft_wgsl_token *t) {
    static const char *const levels[][5] = {
        {"||"},       {"&&"},     {"|"},          {"^"}, {"&"}, {"==", "!="}, {"<", ">", "<=", ">="},
        {"<<", ">>"}, {"+", "-"}, {"*", "/", "%"}};
    for (int l = 0; t->kind == WEFT_WGSL_MARK && l < (int)(sizeof levels / sizeof *levels); l++)
        for (int i = 0; i < 5 && levels[l][i]; i++)
            if (weft__wgsl_is(t, levels[l][i])) return l + 1;
    return 0;
}

static weft_wgsl_node *parse_binary(weft_wgsl_parser *p, int least) {
    weft_wgsl_node *left = parse_unary(p);
    for (int level; (level = level_of(p->at)) >= least && level;) {
        weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_BINARY);
        memcpy(n->op, p->at->text, (size_t)p->at->length);
        p->at++;
        n->a = left;
        n->b = parse_binary(p, level + 1);
        left = n;
    }
    return left;
}

weft_wgsl_node *weft__wgsl_parse_assignment(weft_wgsl_parser *p) {
    weft__wgsl_enter(p->run, p->at->line);
    weft_wgsl_node *n = parse_binary(p, 1);
    const weft_wgsl_token *t = p->at;
    if (weft__wgsl_accept(p, "?")) {
        weft_wgsl_node *choice = weft__wgsl_node(p, WEFT_WGSL_N_CHOICE);
        choice->a = n;
        choice->b = weft__wgsl_parse_expression(p);
        weft__wgsl_expect(p, ":");
        choice->c = weft__wgsl_parse_assignment(p);
        n = choice;
    } else if (t->kind == WEFT_WGSL_MARK && t->text[t->length - 1] == '=' && !level_of(t)) {
        weft_wgsl_node *assign = weft__wgsl_node(p, WEFT_WGSL_N_ASSIGN);
        memcpy(assign->op, t->text, (size_t)t->length - 1);
        p->at++;
        assign->a = n;
        assign->b = weft__wgsl_parse_assignment(p);
        note_change(n);
        n = assign;
    }
    weft__wgsl_leave(p->run);
    return n;
}

weft_wgsl_node *weft__wgsl_parse_expression(weft_wgsl_parser *p) {
    weft_wgsl_node *n = weft__wgsl_parse_assignment(p);
    while (weft__wgsl_is(p->at, ",")) {
        weft_wgsl_node *both = weft__wgsl_node(p, WEFT_WGSL_N_COMMA);
        p->at++;
        both->a = n;
        both->b = weft__wgsl_parse_assignment(p);
        n = both;
    }
    return n;
}

/* ---- constants ---- */

static int64_t value_of(weft_wgsl_parser *p, const weft_wgsl_node *n);

static int64_t value_of_binary(weft_wgsl_parser *p, const weft_wgsl_node *n) {
    const int64_t a = value_of(p, n->a), b = value_of(p, n->b);
    if ((*n->op == '/' || *n->op == '%') && (b == 0 || b == -1))
        weft__wgsl_fail(p->run, n->line, "a constant divides by %d", (int)b);
    if (!strcmp(n->op, "==")) return a == b;
    if (!strcmp(n->op, "!=")) return a != b;
    if (!strcmp(n->op, "<=")) return a <= b;
    if (!strcmp(n->op, ">=")) return a >= b;
    if (!strcmp(n->op, "<<")) return (int64_t)((uint64_t)a << (b & 63));
    if (!strcmp(n->op, ">>")) return a >> (b & 63);
    if (!strcmp(n->op, "&&")) return a && b;
    if (!strcmp(n->op, "||")) return a || b;
    switch (*n->op) {
    case '+': return (int64_t)((uint64_t)a + (uint64_t)b);
    case '-': return (int64_t)((uint64_t)a - (uint64_t)b);
    case '*': return (int64_t)((uint64_t)a * (uint64_t)b);
    case '/': return a / b;
    case '%': return a % b;
    case '<': return a < b;
    case '>': return a > b;
    case '&': return a & b;
    case '|': return a | b;
    default: return a ^ b;
    }
}

static int64_t value_of(weft_wgsl_parser *p, const weft_wgsl_node *n) {
    const char op = n->kind == WEFT_WGSL_N_UNARY ? *n->op : 0;
    int64_t value;
    weft__wgsl_enter(p->run, n->line);
    if (n->kind == WEFT_WGSL_N_INTEGER)
        value = (int64_t)n->integer;
    else if (n->kind == WEFT_WGSL_N_BINARY)
        value = value_of_binary(p, n);
    else if (n->kind == WEFT_WGSL_N_CHOICE)
        value = value_of(p, n->a) ? value_of(p, n->b) : value_of(p, n->c);
    else if (n->kind == WEFT_WGSL_N_CAST && weft__wgsl_is_integer(n->type))
        value = value_of(p, n->a);
    else if (op == '-')
        value = (int64_t)(0 - (uint64_t)value_of(p, n->a));
    else if (op == '!')
        value = !value_of(p, n->a);
    else if (op == '~')
        value = ~value_of(p, n->a);
    else
        weft__wgsl_fail(p->run, n->line, "the size of an array must be a constant");
    weft__wgsl_leave(p->run);
    return value;
}

int weft__wgsl_parse_constant(weft_wgsl_parser *p) {
    const weft_wgsl_node *n = weft__wgsl_parse_assignment(p);
    const int64_t value = value_of(p, n);
    if (value < 0 || value > WEFT_WGSL_TYPE_BYTES)
        weft__wgsl_fail(p->run, n->line, "%lld elements are not supported", (long long)value);
    return (int)value;
}
