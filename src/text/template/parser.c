/* Parses expressions, from the weakest operator to the strongest: choice, or, and, not, comparison, + and -,
 * ~, * and / and // and %, **, signs; then attributes, items, calls, filters and tests.
 *
 * Must not know: values of variables. Read next: parser_tags.c, evaluate.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template/jinja.h"

/* ---- messages ---- */

weft_status weft__jinja_fail_at(const jinja_program *program, size_t at, weft_status status, const char *fmt,
                                ...) {
    char text[WEFT_ERROR_SIZE];
    size_t line = 1, column = 1;
    for (size_t i = 0; i < at && i < program->bytes; i++) {
        if (program->source[i] == '\n') {
            line++;
            column = 1;
        } else if (((unsigned char)program->source[i] & 0xc0u) != 0x80u) {
            column++;
        }
    }
    va_list args;
    va_start(args, fmt);
    const int wanted = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)wanted; /* a text that is too long is cut */
    return weft__fail(program->ctx, status, "%s: line %zu, column %zu: %s", program->name, line, column,
                      text);
}

weft_status weft__jinja_unexpected(jinja_parser *p, const char *expected) {
    static const char *const kinds[] = {
        [TOKEN_TEXT] = "text",    [TOKEN_OUTPUT_BEGIN] = "{{", [TOKEN_OUTPUT_END] = "}}",
        [TOKEN_TAG_BEGIN] = "{%", [TOKEN_TAG_END] = "%}",      [TOKEN_STRING] = "a string",
        [TOKEN_INT] = "a number", [TOKEN_FLOAT] = "a number",  [TOKEN_END] = "the end of the template"};
    const jinja_token *t = p->token;
    char found[64];
    if (t->kind == TOKEN_NAME)
        snprintf(found, sizeof found, "'%.*s'",
                 (int)(t->value.as.string.bytes < 40 ? t->value.as.string.bytes : 40),
                 t->value.as.string.text);
    else if (t->kind == TOKEN_OPERATOR && t->op > 255)
        snprintf(found, sizeof found, "'%c%c'", t->op >> 8, t->op & 255);
    else if (t->kind == TOKEN_OPERATOR)
        snprintf(found, sizeof found, "'%c'", t->op);
    else
        snprintf(found, sizeof found, "%s", kinds[t->kind]);
    return weft__jinja_fail_at(p->program, t->at, WEFT_ERR_FORMAT, "expected %s, found %s", expected, found);
}

/* ---- tokens ---- */

bool weft__jinja_is_name(const jinja_token *t, const char *name) {
    return t->kind == TOKEN_NAME && weft__jinja_same(t->value.as.string, name);
}

bool weft__jinja_is_op(const jinja_token *t, int op) { return t->kind == TOKEN_OPERATOR && t->op == op; }

bool weft__jinja_accept(jinja_parser *p, int op) {
    if (!weft__jinja_is_op(p->token, op)) return false;
    p->token++;
    return true;
}

weft_status weft__jinja_expect(jinja_parser *p, int op) {
    const char expected[] = {'\'', (char)op, '\'', '\0'};
    return weft__jinja_accept(p, op) ? WEFT_OK : weft__jinja_unexpected(p, expected);
}

static bool accept_name(jinja_parser *p, const char *name) {
    if (!weft__jinja_is_name(p->token, name)) return false;
    p->token++;
    return true;
}

weft_status weft__jinja_expect_name(jinja_parser *p, const char *name) {
    char expected[32];
    if (accept_name(p, name)) return WEFT_OK;
    snprintf(expected, sizeof expected, "'%s'", name);
    return weft__jinja_unexpected(p, expected);
}

weft_status weft__jinja_node(jinja_parser *p, jinja_node_kind kind, jinja_node **out) {
    jinja_node *node = weft__arena_alloc(&p->program->arena, sizeof *node);
    *out = node;
    if (!node) return weft__fail_oom(p->program->ctx, sizeof *node, "the tree of a template");
    node->kind = kind;
    node->at = p->token->at;
    return WEFT_OK;
}

weft_status weft__jinja_enter(jinja_parser *p) {
    if (++p->nested > JINJA_NESTED_MAX)
        return weft__jinja_fail_at(p->program, p->token->at, WEFT_ERR_UNSUPPORTED,
                                   "more than %d levels of nesting", JINJA_NESTED_MAX);
    return WEFT_OK;
}

/* ---- arguments, filters, tests ---- */

static weft_status parse_primary(jinja_parser *p, jinja_node **out);
static weft_status parse_postfix(jinja_parser *p, jinja_node *node, jinja_node **out);

/* Parses "(a, b, name=c)". */
static weft_status parse_arguments(jinja_parser *p, jinja_node *call) {
    jinja_node **last = &call->first;
    bool named = false;
    WEFT_TRY(weft__jinja_expect(p, '('));
    while (!weft__jinja_accept(p, ')')) {
        jinja_node *node;
        if (call->first) {
            WEFT_TRY(weft__jinja_expect(p, ','));
            if (weft__jinja_accept(p, ')')) break;
        }
        if (weft__jinja_is_op(p->token, '*') || weft__jinja_is_op(p->token, OP2('*', '*')))
            return weft__jinja_fail_at(p->program, p->token->at, WEFT_ERR_UNSUPPORTED,
                                       "arguments with * and ** are not supported");
        if (p->token->kind == TOKEN_NAME && weft__jinja_is_op(p->token + 1, '=')) {
            named = true;
            WEFT_TRY(weft__jinja_node(p, NODE_KEYWORD, &node));
            node->value = p->token->value;
            p->token += 2;
            WEFT_TRY(weft__jinja_expression(p, &node->a));
        } else if (named) {
            return weft__jinja_unexpected(p, "an argument with a name");
        } else {
            WEFT_TRY(weft__jinja_expression(p, &node));
        }
        *last = node;
        last = &node->next;
    }
    return WEFT_OK;
}

/* Finds the name of a filter or test in its table. */
static weft_status parse_entry(jinja_parser *p, const jinja_entry *table, const char *what, int *index) {
    char known[WEFT_ERROR_SIZE];
    if (p->token->kind != TOKEN_NAME) {
        snprintf(known, sizeof known, "the name of a %s", what);
        return weft__jinja_unexpected(p, known);
    }
    const jinja_string name = p->token->value.as.string;
    *index = weft__jinja_entry_of(table, name);
    if (*index < 0 || !table[*index].function) {
        weft__jinja_names(table, JINJA_UNDEFINED, known, sizeof known);
        return weft__jinja_fail_at(p->program, p->token->at, WEFT_ERR_UNSUPPORTED,
                                   "the %s '%.*s' is %s. Supported are: %s", what,
                                   (int)(name.bytes < 40 ? name.bytes : 40), name.text,
                                   *index < 0 ? "not known" : "not supported", known);
    }
    p->token++;
    return WEFT_OK;
}

weft_status weft__jinja_filters(jinja_parser *p, jinja_node *node, bool begun, jinja_node **out) {
    for (; begun || weft__jinja_accept(p, '|'); begun = false) {
        jinja_node *filter;
        WEFT_TRY(weft__jinja_node(p, NODE_FILTER, &filter));
        WEFT_TRY(parse_entry(p, weft__jinja_filter_table, "filter", &filter->op));
        filter->a = node;
        if (weft__jinja_is_op(p->token, '(')) WEFT_TRY(parse_arguments(p, filter));
        node = filter;
    }
    *out = node;
    return WEFT_OK;
}

/* Parses what follows "is": "not", the name of a test, and its arguments. One argument needs no brackets. */
static weft_status parse_test(jinja_parser *p, jinja_node *node, jinja_node **out) {
    jinja_node *test, *denial = NULL;
    if (weft__jinja_is_name(p->token, "not")) {
        WEFT_TRY(weft__jinja_node(p, NODE_NOT, &denial));
        p->token++;
    }
    WEFT_TRY(weft__jinja_node(p, NODE_TEST, &test));
    WEFT_TRY(parse_entry(p, weft__jinja_test_table, "test", &test->op));
    test->a = node;
    const jinja_token *t = p->token;
    const bool ends = weft__jinja_is_name(t, "else") || weft__jinja_is_name(t, "or") ||
                      weft__jinja_is_name(t, "and") || weft__jinja_is_name(t, "if");
    if (weft__jinja_is_op(t, '(')) {
        WEFT_TRY(parse_arguments(p, test));
    } else if (!ends && (t->kind == TOKEN_NAME || t->kind == TOKEN_STRING || t->kind == TOKEN_INT ||
                         t->kind == TOKEN_FLOAT || weft__jinja_is_op(t, '[') || weft__jinja_is_op(t, '{'))) {
        if (weft__jinja_is_name(t, "is")) return weft__jinja_unexpected(p, "no second 'is'");
        WEFT_TRY(parse_primary(p, &test->first));
        WEFT_TRY(parse_postfix(p, test->first, &test->first));
    }
    *out = test;
    if (denial) {
        denial->a = test;
        *out = denial;
    }
    return WEFT_OK;
}

/* ---- attributes, items, calls ---- */

static weft_status parse_part(jinja_parser *p, jinja_node **part) {
    if (weft__jinja_is_op(p->token, ':') || weft__jinja_is_op(p->token, ']')) return WEFT_OK;
    return weft__jinja_expression(p, part);
}

/* Parses "[index]" or "[from:to:step]", after the bracket. */
static weft_status parse_subscript(jinja_parser *p, jinja_node *node) {
    node->kind = NODE_ITEM;
    WEFT_TRY(parse_part(p, &node->b));
    if (weft__jinja_accept(p, ':')) {
        node->kind = NODE_SLICE;
        WEFT_TRY(parse_part(p, &node->c));
        if (weft__jinja_accept(p, ':')) WEFT_TRY(parse_part(p, &node->d));
    } else if (!node->b) {
        return weft__jinja_unexpected(p, "an index");
    }
    return weft__jinja_expect(p, ']');
}

static weft_status parse_postfix(jinja_parser *p, jinja_node *node, jinja_node **out) {
    for (;;) {
        jinja_node *outer;
        if (!weft__jinja_is_op(p->token, '.') && !weft__jinja_is_op(p->token, '[') &&
            !weft__jinja_is_op(p->token, '('))
            break;
        WEFT_TRY(weft__jinja_node(p, NODE_CALL, &outer));
        outer->a = node;
        if (weft__jinja_accept(p, '.')) {
            if (p->token->kind != TOKEN_NAME && p->token->kind != TOKEN_INT)
                return weft__jinja_unexpected(p, "the name of an attribute");
            outer->kind = p->token->kind == TOKEN_NAME ? NODE_ATTRIBUTE : NODE_ITEM;
            outer->at = p->token->at;
            outer->value = p->token->value;
            if (outer->kind == NODE_ITEM) {
                WEFT_TRY(weft__jinja_node(p, NODE_CONST, &outer->b));
                outer->b->value = p->token->value;
            }
            p->token++;
        } else if (weft__jinja_accept(p, '[')) {
            WEFT_TRY(parse_subscript(p, outer));
        } else {
            WEFT_TRY(parse_arguments(p, outer));
        }
        node = outer;
    }
    *out = node;
    return WEFT_OK;
}

static weft_status parse_filter_or_test(jinja_parser *p, jinja_node *node, jinja_node **out) {
    for (;;) {
        if (weft__jinja_is_op(p->token, '|')) {
            WEFT_TRY(weft__jinja_filters(p, node, false, &node));
        } else if (accept_name(p, "is")) {
            WEFT_TRY(parse_test(p, node, &node));
        } else if (weft__jinja_is_op(p->token, '(')) { /* the result of a filter is called */
            WEFT_TRY(parse_postfix(p, node, &node));
        } else {
            *out = node;
            return WEFT_OK;
        }
    }
}

/* ---- literals and names ---- */

static weft_status parse_strings(jinja_parser *p, jinja_node *node) {
    size_t bytes = 0;
    const jinja_token *first = p->token;
    for (; p->token->kind == TOKEN_STRING; p->token++) bytes += p->token->value.as.string.bytes;
    node->value = first->value;
    if (p->token == first + 1) return WEFT_OK;
    char *text = weft__arena_alloc(&p->program->arena, bytes); /* strings side by side are one */
    if (!text) return weft__fail_oom(p->program->ctx, bytes, "a string of a template");
    node->value = weft__jinja_text(text, bytes);
    for (; first < p->token; first++) {
        memcpy(text, first->value.as.string.text, first->value.as.string.bytes);
        text += first->value.as.string.bytes;
    }
    return WEFT_OK;
}

static weft_status parse_list(jinja_parser *p, jinja_node *list) {
    jinja_node **last = &list->first;
    p->token++;
    while (!weft__jinja_accept(p, ']')) {
        if (list->first) {
            WEFT_TRY(weft__jinja_expect(p, ','));
            if (weft__jinja_accept(p, ']')) break;
        }
        WEFT_TRY(weft__jinja_expression(p, last));
        last = &(*last)->next;
    }
    return WEFT_OK;
}

static weft_status parse_dict(jinja_parser *p, jinja_node *dict) {
    jinja_node **last = &dict->first;
    p->token++;
    while (!weft__jinja_accept(p, '}')) {
        if (dict->first) {
            WEFT_TRY(weft__jinja_expect(p, ','));
            if (weft__jinja_accept(p, '}')) break;
        }
        WEFT_TRY(weft__jinja_node(p, NODE_PAIR, last));
        WEFT_TRY(weft__jinja_expression(p, &(*last)->a));
        WEFT_TRY(weft__jinja_expect(p, ':'));
        WEFT_TRY(weft__jinja_expression(p, &(*last)->b));
        last = &(*last)->next;
    }
    return WEFT_OK;
}

static weft_status parse_brackets(jinja_parser *p, jinja_node **out) {
    WEFT_TRY(weft__jinja_node(p, NODE_TUPLE, out));
    p->token++;
    if (weft__jinja_accept(p, ')')) return WEFT_OK;
    WEFT_TRY(weft__jinja_tuple(p, true, out));
    return weft__jinja_expect(p, ')');
}

static void parse_name(jinja_parser *p, jinja_node *node) {
    static const struct {
        const char *name;
        jinja_value value;
    } words[] = {
        {"true", {JINJA_BOOL, {true}}},   {"True", {JINJA_BOOL, {true}}}, {"false", {JINJA_BOOL, {false}}},
        {"False", {JINJA_BOOL, {false}}}, {"none", {JINJA_NONE, {0}}},    {"None", {JINJA_NONE, {0}}},
    };
    node->kind = NODE_NAME;
    node->value = p->token->value;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (!weft__jinja_is_name(p->token, words[i].name)) continue;
        node->kind = NODE_CONST;
        node->value = words[i].value;
    }
    p->token++;
}

static weft_status parse_primary(jinja_parser *p, jinja_node **out) {
    const jinja_token *t = p->token;
    WEFT_TRY(weft__jinja_enter(p));
    if (weft__jinja_is_op(t, '(')) {
        WEFT_TRY(parse_brackets(p, out));
        p->nested--;
        return WEFT_OK;
    }
    WEFT_TRY(weft__jinja_node(p, NODE_CONST, out));
    jinja_node *node = *out;
    if (t->kind == TOKEN_NAME) {
        parse_name(p, node);
    } else if (t->kind == TOKEN_STRING) {
        WEFT_TRY(parse_strings(p, node));
    } else if (t->kind == TOKEN_INT || t->kind == TOKEN_FLOAT) {
        node->value = t->value;
        p->token++;
    } else if (weft__jinja_is_op(t, '[')) {
        node->kind = NODE_LIST;
        WEFT_TRY(parse_list(p, node));
    } else if (weft__jinja_is_op(t, '{')) {
        node->kind = NODE_DICT;
        WEFT_TRY(parse_dict(p, node));
    } else {
        return weft__jinja_unexpected(p, "an expression");
    }
    p->nested--;
    return WEFT_OK;
}

/* ---- operators ---- */

static weft_status parse_unary(jinja_parser *p, bool filters, jinja_node **out) {
    jinja_node *node;
    WEFT_TRY(weft__jinja_enter(p));
    if (weft__jinja_is_op(p->token, '-') || weft__jinja_is_op(p->token, '+')) {
        WEFT_TRY(weft__jinja_node(p, NODE_UNARY, &node));
        node->op = p->token++->op;
        WEFT_TRY(parse_unary(p, false, &node->a));
    } else {
        WEFT_TRY(parse_primary(p, &node));
    }
    WEFT_TRY(parse_postfix(p, node, &node));
    if (filters) WEFT_TRY(parse_filter_or_test(p, node, &node));
    *out = node;
    p->nested--;
    return WEFT_OK;
}

/* The levels of operators that group from the left. */
static const int binary[][4] = {{'+', '-'}, {'~'}, {'*', '/', OP2('/', '/'), '%'}, {OP2('*', '*')}};

static weft_status parse_binary(jinja_parser *p, size_t level, jinja_node **out) {
    if (level == sizeof binary / sizeof *binary) return parse_unary(p, true, out);
    jinja_node *node, *outer;
    WEFT_TRY(parse_binary(p, level + 1, &node));
    for (;;) {
        bool found = false;
        for (int i = 0; i < 4; i++)
            found = found || (binary[level][i] && weft__jinja_is_op(p->token, binary[level][i]));
        if (!found) break;
        WEFT_TRY(weft__jinja_node(p, NODE_BINARY, &outer));
        outer->op = p->token++->op;
        outer->a = node;
        WEFT_TRY(parse_binary(p, level + 1, &outer->b));
        node = outer;
    }
    *out = node;
    return WEFT_OK;
}

/* The operator of a comparison, whose tokens are skipped; 0: none. */
static int comparison(jinja_parser *p) {
    static const int ops[] = {OP2('=', '='), OP2('!', '='), '<', '>', OP2('<', '='), OP2('>', '=')};
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (weft__jinja_accept(p, ops[i])) return ops[i];
    if (accept_name(p, "in")) return OP_IN;
    if (weft__jinja_is_name(p->token, "not") && weft__jinja_is_name(p->token + 1, "in")) {
        p->token += 2;
        return OP_NOT_IN;
    }
    return 0;
}

static weft_status parse_compare(jinja_parser *p, jinja_node **out) {
    jinja_node *node, *outer = NULL, **last = NULL;
    WEFT_TRY(parse_binary(p, 0, &node));
    for (;;) {
        jinja_node *operand;
        const jinja_token *before = p->token;
        const int op = comparison(p);
        if (!op) break;
        WEFT_TRY(weft__jinja_node(p, NODE_OPERAND, &operand));
        operand->op = op;
        operand->at = before->at;
        if (!outer) {
            WEFT_TRY(weft__jinja_node(p, NODE_COMPARE, &outer));
            outer->a = node;
            outer->at = before->at;
            last = &outer->first;
        }
        *last = operand;
        last = &operand->next;
        WEFT_TRY(parse_binary(p, 0, &operand->a));
    }
    *out = outer ? outer : node;
    return WEFT_OK;
}

static weft_status parse_not(jinja_parser *p, jinja_node **out) {
    if (!weft__jinja_is_name(p->token, "not")) return parse_compare(p, out);
    WEFT_TRY(weft__jinja_enter(p));
    WEFT_TRY(weft__jinja_node(p, NODE_NOT, out));
    p->token++;
    WEFT_TRY(parse_not(p, &(*out)->a));
    p->nested--;
    return WEFT_OK;
}

static weft_status parse_and(jinja_parser *p, jinja_node **out) {
    jinja_node *outer;
    WEFT_TRY(parse_not(p, out));
    while (weft__jinja_is_name(p->token, "and")) {
        WEFT_TRY(weft__jinja_node(p, NODE_AND, &outer));
        p->token++;
        outer->a = *out;
        WEFT_TRY(parse_not(p, &outer->b));
        *out = outer;
    }
    return WEFT_OK;
}

static weft_status parse_or(jinja_parser *p, jinja_node **out) {
    jinja_node *outer;
    WEFT_TRY(parse_and(p, out));
    while (weft__jinja_is_name(p->token, "or")) {
        WEFT_TRY(weft__jinja_node(p, NODE_OR, &outer));
        p->token++;
        outer->a = *out;
        WEFT_TRY(parse_and(p, &outer->b));
        *out = outer;
    }
    return WEFT_OK;
}

weft_status weft__jinja_expression(jinja_parser *p, jinja_node **out) {
    jinja_node *outer;
    WEFT_TRY(weft__jinja_enter(p));
    WEFT_TRY(parse_or(p, out));
    while (weft__jinja_is_name(p->token, "if")) {
        WEFT_TRY(weft__jinja_node(p, NODE_CHOICE, &outer));
        p->token++;
        outer->a = *out;
        WEFT_TRY(parse_or(p, &outer->b));
        if (accept_name(p, "else")) WEFT_TRY(weft__jinja_expression(p, &outer->c));
        *out = outer;
    }
    p->nested--;
    return WEFT_OK;
}

weft_status weft__jinja_tuple(jinja_parser *p, bool choice, jinja_node **out) {
    WEFT_TRY(choice ? weft__jinja_expression(p, out) : parse_or(p, out));
    if (!weft__jinja_is_op(p->token, ',')) return WEFT_OK;
    jinja_node *tuple, **last;
    WEFT_TRY(weft__jinja_node(p, NODE_TUPLE, &tuple));
    tuple->first = *out;
    last = &tuple->first->next;
    while (weft__jinja_accept(p, ',')) {
        if (p->token->kind == TOKEN_OUTPUT_END || p->token->kind == TOKEN_TAG_END ||
            weft__jinja_is_op(p->token, ')'))
            break;
        WEFT_TRY(choice ? weft__jinja_expression(p, last) : parse_or(p, last));
        last = &(*last)->next;
    }
    *out = tuple;
    return WEFT_OK;
}
