/* Reads a scalar expression of C by recursive descent. Its functions are those that ops.def calls: a table
 * entry whose expression is w_name(a, b) makes w_name a function of two arguments. A new entry is therefore a
 * new function. Operators are those of C; / is w_div. Numbers have the operands' dtype. (T) turns a bool into
 * a number.
 * Must not know: devices. Read next: custom.c. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/number.h"
#include "ops/expression.h"

/* The elementwise ops, with the expression of each in ops.def and its number of operands. */
static const struct {
    const char *text;
    int n;
} rows[WEFT_OP_COUNT] = {
#define W_ELEM1(id, name, dtypes, result, expr, grad, doc)                   [WEFT_OP_##id] = {#expr, 1},
#define W_ELEM2(id, name, dtypes, result, expr, grad_a, grad_b, doc)         [WEFT_OP_##id] = {#expr, 2},
#define W_ELEM3(id, name, dtypes, result, expr, grad_a, grad_b, grad_c, doc) [WEFT_OP_##id] = {#expr, 3},
#include "ops/ops.def"
};

typedef struct reader {
    weft_context *ctx;
    weft_expression *e;
    const char *at;
    int depth;
    weft_status status;
} reader;

enum { DEEPEST = 64 };

static int column_of(const reader *r, const char *at) { return (int)(at - r->e->text) + 1; }

static int wrong(reader *r, const char *at, const char *message, const char *name, int length) {
    if (r->status == WEFT_OK)
        r->status = weft__fail(r->ctx, WEFT_ERR_ARGUMENT, "%s: \"%s\", column %d: %s%.*s", r->e->what,
                               r->e->text, column_of(r, at), message, length, name);
    return -1;
}

static int too_deep(reader *r, const char *at) {
    char message[64];
    snprintf(message, sizeof message, "nested too deeply: %d levels, the limit is %d", r->depth, DEEPEST);
    return wrong(r, at, message, "", 0);
}

static void skip(reader *r) {
    while (isspace((unsigned char)*r->at)) r->at++;
}

static int add_term(reader *r, const char *from, weft_term term) {
    if (r->e->count == WEFT_EXPRESSION_MOST) return wrong(r, from, "the expression is too long", "", 0);
    term.column = column_of(r, from);
    r->e->terms[r->e->count] = term;
    return r->e->count++;
}

/* Adds op `op` on terms. A condition and a number must not be mixed, and only ops on bits accept
 * conditions. */
static int calc(reader *r, const char *from, weft_op op, const int *in) {
    weft_term term = {.kind = WEFT_TERM_CALC, .op = (uint8_t)op, .in = {-1, -1, -1}};
    const bool bits = op == WEFT_OP_AND || op == WEFT_OP_OR || op == WEFT_OP_XOR || op == WEFT_OP_NOT;
    const bool compares = op >= WEFT_OP_EQ && op <= WEFT_OP_GE;
    const int n = rows[op].n, first = n == 3;
    for (int i = 0; i < n; i++) {
        if (in[i] < 0) return -1;
        term.in[i] = in[i];
    }
    if (n == 3 && !r->e->terms[in[0]].truth)
        return wrong(r, from, "the first argument of w_sel must be a condition", "", 0);
    const bool truth = r->e->terms[in[first]].truth;
    for (int i = first + 1; i < n; i++)
        if (r->e->terms[in[i]].truth != truth)
            return wrong(
                r, from,
                "a condition is combined with a number; choose with w_sel, or write (T) before the condition",
                "", 0);
    if (truth && !bits && !compares && n != 3)
        return wrong(r, from, "a condition where a number is needed; write (T) before it", "", 0);
    term.truth = n == 3 || bits ? truth : compares || op == WEFT_OP_ISNAN || op == WEFT_OP_ISINF;
    return add_term(r, from, term);
}

static int expression(reader *r, int lowest);

/* The op whose expression is the function's name with n arguments; -1: none. */
static int function_named(const char *name, size_t length, int n) {
    static const char *const letters[] = {"", "(a)", "(a, b)", "(a, b, c)"};
    for (int op = 0; op < WEFT_OP_COUNT; op++)
        if (rows[op].text && rows[op].n == n && !strncmp(rows[op].text, name, length) &&
            !strcmp(rows[op].text + length, letters[n]))
            return op;
    return -1;
}

static int call(reader *r, const char *name, size_t length) {
    int in[3] = {-1, -1, -1}, n = 0;
    r->at++;
    for (skip(r); *r->at != ')' || n; skip(r)) {
        if (n == 3) return wrong(r, r->at, "more than three arguments", "", 0);
        if ((in[n++] = expression(r, 0)) < 0) return -1;
        skip(r);
        if (*r->at == ')') break;
        if (*r->at != ',') return wrong(r, r->at, "a comma or ) is missing", "", 0);
        r->at++;
    }
    r->at++;
    const int op = n ? function_named(name, length, n) : -1;
    if (op >= 0) return calc(r, name, (weft_op)op, in);
    bool known = false;
    for (int other = 1; other <= 3; other++) known |= function_named(name, length, other) >= 0;
    return wrong(r, name, known ? "wrong number of arguments for " : "no function is named ", name,
                 (int)length);
}

/* Reads a number, an operand, a call, or an expression in brackets. */
static int primary(reader *r) {
    skip(r);
    const char *from = r->at;
    if (isdigit((unsigned char)*from) || *from == '.') {
        const char *end = from;
        double number;
        while (isdigit((unsigned char)*end) || *end == '.' || *end == 'e' || *end == 'E' ||
               ((*end == '+' || *end == '-') && (end[-1] == 'e' || end[-1] == 'E')))
            end++;
        const weft__number_kind kind = weft__parse_f64(from, (size_t)(end - from), &number);
        if (kind != WEFT__NUMBER_OK)
            return wrong(r, from, kind == WEFT__NUMBER_OVERFLOW ? "the number is too large" : "not a number",
                         "", 0);
        r->at = *end == 'f' ? end + 1 : end;
        return add_term(r, from, (weft_term){.kind = WEFT_TERM_NUMBER, .number = number});
    }
    if (*from == '(') {
        r->at++;
        const int inner = expression(r, 0);
        skip(r);
        if (inner < 0 || *r->at == ')') {
            r->at += inner >= 0;
            return inner;
        }
        return wrong(r, r->at, "a ) is missing", "", 0);
    }
    while (isalnum((unsigned char)*r->at) || *r->at == '_') r->at++;
    const size_t length = (size_t)(r->at - from);
    skip(r);
    if (length && *r->at == '(') return call(r, from, length);
    const char *operand = length == 1 ? strchr(r->e->operands, *from) : NULL;
    if (operand)
        return add_term(
            r, from, (weft_term){.kind = WEFT_TERM_OPERAND, .in = {(int)(operand - r->e->operands), -1, -1}});
    if (length) return wrong(r, from, "unknown name ", from, (int)length);
    return wrong(r, from, *from ? "an operand is missing before " : "an operand is missing", from,
                 *from != 0);
}

static int unary(reader *r) {
    skip(r);
    const char *from = r->at;
    if (++r->depth > DEEPEST) return too_deep(r, from);
    int term = -1;
    if (*from == '-' || *from == '~' || (*from == '!' && from[1] != '=')) {
        r->at++;
        term = unary(r);
        if (term >= 0 && *from == '!' && !r->e->terms[term].truth)
            term = wrong(r, from, "! needs a condition, not a number", "", 0);
        if (term >= 0) term = calc(r, from, *from == '-' ? WEFT_OP_NEG : WEFT_OP_NOT, (int[]){term, -1, -1});
    } else if (!strncmp(from, "(T)", 3)) {
        r->at += 3;
        term = unary(r);
        if (term >= 0 && r->e->terms[term].truth)
            term = add_term(r, from, (weft_term){.kind = WEFT_TERM_CAST, .in = {term, -1, -1}});
    } else {
        term = primary(r);
    }
    r->depth--;
    return term;
}

/* C's operators, longer ones first, and how strongly they bind. */
static const struct {
    const char *text;
    weft_op op;
    int binds;
    bool conditions; /* both sides must be conditions */
} operators[] = {{"||", WEFT_OP_OR, 1, true},  {"&&", WEFT_OP_AND, 2, true}, {"==", WEFT_OP_EQ, 6, false},
                 {"!=", WEFT_OP_NE, 6, false}, {"<=", WEFT_OP_LE, 7, false}, {">=", WEFT_OP_GE, 7, false},
                 {"|", WEFT_OP_OR, 3, false},  {"^", WEFT_OP_XOR, 4, false}, {"&", WEFT_OP_AND, 5, false},
                 {"<", WEFT_OP_LT, 7, false},  {">", WEFT_OP_GT, 7, false},  {"+", WEFT_OP_ADD, 8, false},
                 {"-", WEFT_OP_SUB, 8, false}, {"*", WEFT_OP_MUL, 9, false}, {"/", WEFT_OP_DIV, 9, false}};

static int operator_at(reader *r) {
    skip(r);
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (!strncmp(r->at, operators[i].text, strlen(operators[i].text))) return (int)i;
    return -1;
}

/* Reads operators that bind at least as strongly as `lowest`, from left to right. */
static int expression(reader *r, int lowest) {
    if (++r->depth > DEEPEST) return too_deep(r, r->at);
    int left = unary(r);
    for (int i; left >= 0 && (i = operator_at(r)) >= 0 && operators[i].binds >= lowest;) {
        const char *from = r->at;
        r->at += strlen(operators[i].text);
        const int right = expression(r, operators[i].binds + 1);
        if (right < 0) return -1;
        if (operators[i].conditions && !(r->e->terms[left].truth && r->e->terms[right].truth))
            return wrong(r, from, "numbers where conditions are needed", "", 0);
        left = calc(r, from, operators[i].op, (int[]){left, right, -1});
    }
    r->depth--;
    return left;
}

weft_status weft__expression_read(weft_context *ctx, weft_expression *e) {
    reader r = {.ctx = ctx, .e = e, .at = e->text, .status = WEFT_OK};
    e->count = 0;
    if (expression(&r, 0) >= 0) {
        skip(&r);
        if (*r.at) wrong(&r, r.at, "an operator is missing before ", r.at, 1);
    }
    return r.status;
}

weft_status weft__expression_accepts(weft_context *ctx, const weft_expression *e, weft_dtype dtype) {
    for (int i = 0; i < e->count; i++) {
        const weft_term *t = &e->terms[i];
        if (t->kind == WEFT_TERM_NUMBER && !weft__is_value_of(dtype, t->number))
            return weft__fail(ctx, WEFT_ERR_DTYPE, "%s: \"%s\", column %d: %g is not a value of %s", e->what,
                              e->text, t->column, t->number, weft_dtype_name(dtype));
        const bool of_truth = t->kind == WEFT_TERM_CALC && e->terms[t->in[rows[t->op].n == 3]].truth;
        if (t->kind != WEFT_TERM_CALC || of_truth || weft__row_accepts((weft_op)t->op, dtype)) continue;
        return weft__fail(ctx, WEFT_ERR_DTYPE, "%s: \"%s\", column %d: there is no %s for %s", e->what,
                          e->text, t->column, weft__op_name(t->op), weft_dtype_name(dtype));
    }
    return WEFT_OK;
}

weft_tensor *weft__expression_record(const char *where, const weft_expression *e, weft_tensor *const *in) {
    weft_tensor *values[WEFT_EXPRESSION_MOST] = {in[0]};
    const weft_dtype dtype = (weft_dtype)in[0]->dtype;
    for (int i = 0; i < e->count; i++) {
        const weft_term *t = &e->terms[i];
        weft_tensor *operands[3];
        for (int k = 0; t->kind == WEFT_TERM_CALC && k < rows[t->op].n; k++) operands[k] = values[t->in[k]];
        switch ((weft_term_kind)t->kind) {
        case WEFT_TERM_OPERAND: values[i] = in[t->in[0]]; break;
        case WEFT_TERM_NUMBER:
            values[i] = weft__number(in[0]->ctx, where, e->what, dtype, 0, NULL, t->number);
            break;
        case WEFT_TERM_CAST: values[i] = weft_cast_at(where, values[t->in[0]], dtype); break;
        case WEFT_TERM_CALC:
            values[i] = weft__elementwise(where, (weft_op)t->op, rows[t->op].n, operands);
            break;
        }
    }
    return values[e->count - 1];
}
