/* Prints expressions. What C allows inside an expression and WGSL does not (assignments, choices with reads
 * of memory) becomes statements before it. Must not know: functions. Read next: emit_call.c. */
#include <math.h>
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

static weft_wgsl_value place_or_value(weft_wgsl_emitter *e, const weft_wgsl_node *n);

/* ---- operators on known numbers ---- */

static bool is_compare(const char *op) {
    return !strcmp(op, "==") || !strcmp(op, "!=") || !strcmp(op, "<") || !strcmp(op, ">") ||
           !strcmp(op, "<=") || !strcmp(op, ">=");
}

static bool compare(const char *op, int order, bool ordered) {
    if (!strcmp(op, "!=")) return !ordered || order != 0;
    if (!ordered) return false;
    if (!strcmp(op, "==")) return order == 0;
    if (op[0] == '<') return order < 0 || (op[1] && order == 0);
    return order > 0 || (op[1] && order == 0);
}

static weft_wgsl_value fold_floats(weft_wgsl_emitter *e, const char *op, const weft_wgsl_type *type, double a,
                                   double b, int line) {
    const bool ordered = a == a && b == b;
    if (is_compare(op))
        return weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_BOOL), compare(op, a < b ? -1 : a > b, ordered),
                                line);
    const bool single = type->kind == WEFT_WGSL_F32;
    switch (*op) {
    case '+': return weft__wgsl_known_float(e, type, single ? (double)((float)a + (float)b) : a + b, line);
    case '-': return weft__wgsl_known_float(e, type, single ? (double)((float)a - (float)b) : a - b, line);
    case '*': return weft__wgsl_known_float(e, type, single ? (double)((float)a * (float)b) : a * b, line);
    case '/': return weft__wgsl_known_float(e, type, single ? (double)((float)a / (float)b) : a / b, line);
    default: weft__wgsl_fail(e->run, line, "operator %s has operands that are no integers", op);
    }
}

static int64_t divided(weft_wgsl_emitter *e, const char *op, const weft_wgsl_type *type, int64_t a, int64_t b,
                       int line) {
    if (b == 0) weft__wgsl_fail(e->run, line, "a constant is divided by 0");
    if (type->kind == WEFT_WGSL_U64)
        return (int64_t)(*op == '/' ? (uint64_t)a / (uint64_t)b : (uint64_t)a % (uint64_t)b);
    if (b == -1) return *op == '/' ? (int64_t)(0 - (uint64_t)a) : 0;
    return *op == '/' ? a / b : a % b;
}

static weft_wgsl_value fold_integers(weft_wgsl_emitter *e, const char *op, const weft_wgsl_type *type,
                                     int64_t a, int64_t b, int line) {
    const uint64_t x = (uint64_t)a, y = (uint64_t)b;
    int64_t to;
    if (is_compare(op)) {
        const bool less = type->kind == WEFT_WGSL_U64 ? x < y : a < b;
        return weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_BOOL), compare(op, less ? -1 : a != b, true),
                                line);
    }
    switch (*op) {
    case '+': to = (int64_t)(x + y); break;
    case '-': to = (int64_t)(x - y); break;
    case '*': to = (int64_t)(x * y); break;
    case '/':
    case '%': to = divided(e, op, type, a, b, line); break;
    case '&': to = a & b; break;
    case '|': to = a | b; break;
    default: to = a ^ b; break;
    }
    return weft__wgsl_known(e, type, to, line);
}

/* ---- operators ---- */

static weft_wgsl_value text_value(const weft_wgsl_type *type, const char *text, int level,
                                  const weft_wgsl_value *a, const weft_wgsl_value *b) {
    weft_wgsl_value v = weft__wgsl_value(type, text, level, a->line);
    v.heavy = a->heavy || (b && b->heavy);
    return v;
}

static weft_wgsl_value shift(weft_wgsl_emitter *e, const char *op, weft_wgsl_value a, weft_wgsl_value b) {
    a = weft__wgsl_convert(e, a, weft__wgsl_common(e, a.type, weft__wgsl_type(WEFT_WGSL_I32), a.line));
    if (!weft__wgsl_is_integer(a.type) || !weft__wgsl_is_integer(b.type))
        weft__wgsl_fail(e->run, a.line, "a shift of a float");
    b = weft__wgsl_convert(e, b, weft__wgsl_type(WEFT_WGSL_U32));
    const int bits = weft__wgsl_is_64(a.type) ? 64 : 32;
    if (b.known && b.integer >= bits)
        weft__wgsl_fail(e->run, a.line, "a number of %d bits is shifted by %d", bits, (int)b.integer);
    if (a.known && b.known) {
        int64_t i = a.integer;
        if (*op == '<')
            i = (int64_t)((uint64_t)i << b.integer);
        else
            i = a.type->kind == WEFT_WGSL_U64 ? (int64_t)((uint64_t)i >> b.integer) : i >> b.integer;
        return weft__wgsl_known(e, a.type, i, a.line);
    }
    if (bits == 64) {
        const char *f = *op == '<'                      ? "w64_shl"
                        : a.type->kind == WEFT_WGSL_U64 ? "w64_shr_u64"
                                                        : "w64_shr_i64";
        return text_value(a.type,
                          weft__wgsl_text(e->run, "%s(%s, %s)", weft__wgsl_help(e, f), a.text, b.text),
                          WEFT_WGSL_L_PRIMARY, &a, &b);
    }
    if (a.known && a.type->kind != WEFT_WGSL_U32)
        a.text = weft__wgsl_text(e->run, "i32(%s)", a.text), a.level = WEFT_WGSL_L_PRIMARY;
    return text_value(a.type,
                      weft__wgsl_text(e->run, "%s %s %s", weft__wgsl_at_level(e, &a, WEFT_WGSL_L_UNARY), op,
                                      weft__wgsl_at_level(e, &b, WEFT_WGSL_L_UNARY)),
                      WEFT_WGSL_L_SHIFT, &a, &b);
}

static weft_wgsl_value binary_64(weft_wgsl_emitter *e, const char *op, weft_wgsl_value a, weft_wgsl_value b) {
    const bool is_signed = a.type->kind == WEFT_WGSL_I64;
    const weft_wgsl_type *truth = weft__wgsl_type(WEFT_WGSL_BOOL);
    const char *f = NULL, *x = a.text, *y = b.text, *no = "";
    switch (*op) {
    case '+': f = "w64_add"; break;
    case '-': f = "w64_sub"; break;
    case '*': f = "w64_mul"; break;
    case '/': f = is_signed ? "w64_div_i64" : "w64_div_u64"; break;
    case '%': f = is_signed ? "w64_mod_i64" : "w64_mod_u64"; break;
    default: break;
    }
    if (f)
        return text_value(a.type, weft__wgsl_text(e->run, "%s(%s, %s)", weft__wgsl_help(e, f), x, y),
                          WEFT_WGSL_L_PRIMARY, &a, &b);
    if (!strcmp(op, "==") || !strcmp(op, "!="))
        return text_value(truth,
                          weft__wgsl_text(e->run, "%s(%s %s %s)", *op == '=' ? "all" : "any",
                                          weft__wgsl_at_level(e, &a, WEFT_WGSL_L_ADD), op,
                                          weft__wgsl_at_level(e, &b, WEFT_WGSL_L_ADD)),
                          WEFT_WGSL_L_PRIMARY, &a, &b);
    if (is_compare(op)) {
        if (op[0] == '>') x = b.text, y = a.text;
        if (op[1]) { /* x <= y is !(y < x) */
            const char *swap = x;
            x = y, y = swap, no = "!";
        }
        f = weft__wgsl_help(e, is_signed ? "w64_less_i64" : "w64_less_u64");
        return text_value(truth, weft__wgsl_text(e->run, "%s%s(%s, %s)", no, f, x, y),
                          *no ? WEFT_WGSL_L_UNARY : WEFT_WGSL_L_PRIMARY, &a, &b);
    }
    return text_value(a.type,
                      weft__wgsl_text(e->run, "%s %s %s", weft__wgsl_at_level(e, &a, WEFT_WGSL_L_UNARY), op,
                                      weft__wgsl_at_level(e, &b, WEFT_WGSL_L_UNARY)),
                      WEFT_WGSL_L_BITS, &a, &b);
}

/* Compilers may assume that there are neither NaN nor infinities. So x != x and comparisons with infinity are
 * made with the bits. */
static bool special(weft_wgsl_emitter *e, const char *op, const weft_wgsl_value *a, const weft_wgsl_value *b,
                    weft_wgsl_value *to) {
    const bool equal = !strcmp(op, "=="), differ = !strcmp(op, "!=");
    if (a->type->kind != WEFT_WGSL_F32 || (!equal && !differ)) return false;
    const weft_wgsl_type *truth = weft__wgsl_type(WEFT_WGSL_BOOL);
    if (!a->known && !b->known && !strcmp(a->text, b->text)) {
        *to = text_value(
            truth,
            weft__wgsl_text(e->run, "%s%s(%s)", equal ? "!" : "", weft__wgsl_help(e, "wf_is_nan"), a->text),
            equal ? WEFT_WGSL_L_UNARY : WEFT_WGSL_L_PRIMARY, a, b);
        return true;
    }
    const weft_wgsl_value *x = a->known ? b : a, *known = a->known ? a : b;
    if (!known->known || x->known) return false;
    if (isinf(known->number))
        *to = text_value(truth,
                         weft__wgsl_text(e->run, "bitcast<u32>(%s) %s %s", x->text, op,
                                         known->number < 0 ? "0xff800000u" : "0x7f800000u"),
                         WEFT_WGSL_L_COMPARE, x, NULL);
    else if (known->number == 0)
        *to = weft__wgsl_is_zero(e, x, op);
    else
        return false;
    return true;
}

static weft_wgsl_value pointers(weft_wgsl_emitter *e, const char *op, weft_wgsl_value a, weft_wgsl_value b) {
    if (*op == '+' && a.type->kind == WEFT_WGSL_POINTER) return weft__wgsl_moved(e, a, b, false);
    if (*op == '+') return weft__wgsl_moved(e, b, a, false);
    if (*op == '-' && b.type->kind != WEFT_WGSL_POINTER) return weft__wgsl_moved(e, a, b, true);
    if (a.type->kind != WEFT_WGSL_POINTER || b.type->kind != WEFT_WGSL_POINTER ||
        !weft__wgsl_same_base(&a.base, &b.base) || (*op != '-' && !is_compare(op)))
        weft__wgsl_fail(e->run, a.line, "operator %s joins pointers into different memory", op);
    b = weft__wgsl_pointer_cast(e, b, a.type);
    const weft_wgsl_type *index = weft__wgsl_type(WEFT_WGSL_INDEX);
    const weft_wgsl_value x = weft__wgsl_value(index, weft__wgsl_offset_text(e, a.offset), 0, a.line),
                          y = weft__wgsl_value(index, weft__wgsl_offset_text(e, b.offset), 0, a.line);
    const weft_wgsl_value result = weft__wgsl_binary(e, op, x, y, a.line);
    const int stride = weft__wgsl_stride(a.base.kind, a.type->of);
    return *op == '-' && stride > 1
               ? weft__wgsl_binary(e, "/", result, weft__wgsl_known(e, index, stride, a.line), a.line)
               : result;
}

weft_wgsl_value weft__wgsl_binary(weft_wgsl_emitter *e, const char *op, weft_wgsl_value a, weft_wgsl_value b,
                                  int line) {
    weft_wgsl_value to;
    a.line = b.line = line;
    if (a.type->kind == WEFT_WGSL_POINTER || b.type->kind == WEFT_WGSL_POINTER) return pointers(e, op, a, b);
    if (!strcmp(op, "<<") || !strcmp(op, ">>")) return shift(e, op, a, b);
    const bool bits = strchr("&|^", *op) && !op[1];
    if (bits && a.type->kind == WEFT_WGSL_BOOL && b.type->kind == WEFT_WGSL_BOOL && !a.known && !b.known &&
        *op != '^')
        return text_value(a.type,
                          weft__wgsl_text(e->run, "%s %s %s", weft__wgsl_at_level(e, &a, WEFT_WGSL_L_UNARY),
                                          op, weft__wgsl_at_level(e, &b, WEFT_WGSL_L_UNARY)),
                          WEFT_WGSL_L_BITS, &a, &b);
    const weft_wgsl_type *type = weft__wgsl_common(e, a.type, b.type, line);
    if (type->kind >= WEFT_WGSL_F16 && (bits || *op == '%'))
        weft__wgsl_fail(e->run, line, "operator %s has operands that are no integers", op);
    a = weft__wgsl_convert(e, a, type);
    b = weft__wgsl_convert(e, b, type);
    if (a.known && b.known)
        return type->kind >= WEFT_WGSL_F16 ? fold_floats(e, op, type, a.number, b.number, line)
                                           : fold_integers(e, op, type, a.integer, b.integer, line);
    if (b.known && type->kind < WEFT_WGSL_F16 && b.integer == 0 && (*op == '/' || *op == '%'))
        weft__wgsl_fail(e->run, line, "a number is divided by 0");
    if (weft__wgsl_is_64(type)) return binary_64(e, op, a, b);
    if (special(e, op, &a, &b, &to)) return to;
    int level = WEFT_WGSL_L_ADD, left = WEFT_WGSL_L_ADD, right = WEFT_WGSL_L_MULTIPLY;
    if (*op == '*' || *op == '/' || *op == '%')
        level = left = WEFT_WGSL_L_MULTIPLY, right = WEFT_WGSL_L_UNARY;
    else if (bits)
        level = WEFT_WGSL_L_BITS, left = right = WEFT_WGSL_L_UNARY;
    else if (is_compare(op))
        level = WEFT_WGSL_L_COMPARE, left = right = WEFT_WGSL_L_ADD;
    const char *text = weft__wgsl_text(e->run, "%s %s %s", weft__wgsl_at_level(e, &a, left), op,
                                       weft__wgsl_at_level(e, &b, right));
    return text_value(is_compare(op) ? weft__wgsl_type(WEFT_WGSL_BOOL) : type, text, level, &a, &b);
}

static weft_wgsl_value unary(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    if (*n->op == '&') return weft__wgsl_address(e, place_or_value(e, n->a));
    weft_wgsl_value v = weft__wgsl_expression(e, n->a);
    v.line = n->line;
    if (*n->op == '*')
        return weft__wgsl_element(e, v, weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_I32), 0, n->line));
    if (*n->op == '!') {
        v = weft__wgsl_convert(e, v, weft__wgsl_type(WEFT_WGSL_BOOL));
        if (v.known) return weft__wgsl_known(e, v.type, !v.integer, n->line);
        return text_value(v.type,
                          weft__wgsl_text(e->run, "!%s", weft__wgsl_at_level(e, &v, WEFT_WGSL_L_UNARY)),
                          WEFT_WGSL_L_UNARY, &v, NULL);
    }
    v = weft__wgsl_convert(e, v, weft__wgsl_common(e, v.type, weft__wgsl_type(WEFT_WGSL_I32), n->line));
    if (*n->op == '+') return v;
    const bool is_float = v.type->kind >= WEFT_WGSL_F16;
    if (*n->op == '~') {
        if (is_float) weft__wgsl_fail(e->run, n->line, "operator ~ has an operand that is no integer");
        if (v.known) return weft__wgsl_known(e, v.type, ~v.integer, n->line);
        return text_value(v.type,
                          weft__wgsl_text(e->run, "~%s", weft__wgsl_at_level(e, &v, WEFT_WGSL_L_UNARY)),
                          WEFT_WGSL_L_UNARY, &v, NULL);
    }
    if (v.known)
        return is_float ? weft__wgsl_known_float(e, v.type, -v.number, n->line)
                        : weft__wgsl_known(e, v.type, (int64_t)(0 - (uint64_t)v.integer), n->line);
    if (!is_float && v.type->kind != WEFT_WGSL_I32 && v.type->kind != WEFT_WGSL_INDEX)
        return weft__wgsl_binary(e, "-", weft__wgsl_known(e, v.type, 0, n->line), v, n->line);
    return text_value(v.type, weft__wgsl_text(e->run, "-%s", weft__wgsl_at_level(e, &v, WEFT_WGSL_L_PRIMARY)),
                      WEFT_WGSL_L_UNARY, &v, NULL);
}

/* ---- choices ---- */

/* Prints an expression into a text of its own: the statements before it go there. */
static weft_wgsl_value apart(weft_wgsl_emitter *e, const weft_wgsl_node *n, weft_wgsl_buffer *to) {
    weft_wgsl_buffer *out = e->out;
    e->out = to;
    e->indent++;
    const weft_wgsl_value v = weft__wgsl_expression(e, n);
    e->indent--;
    e->out = out;
    return v;
}

static weft_wgsl_value logical(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    const bool both = *n->op == '&';
    const weft_wgsl_type *truth = weft__wgsl_type(WEFT_WGSL_BOOL);
    weft_wgsl_value a = weft__wgsl_condition(e, n->a);
    if (a.known && (a.integer != 0) != both) return a;
    if (a.known) return weft__wgsl_condition(e, n->b);
    weft_wgsl_buffer more = {0};
    weft_wgsl_value b = apart(e, n->b, &more);
    if (!more.length) {
        b = weft__wgsl_convert(e, b, truth);
        if (b.known && (b.integer != 0) == both) return a;
        const int level = both ? WEFT_WGSL_L_AND : WEFT_WGSL_L_OR;
        const int left = a.level == level ? level : WEFT_WGSL_L_COMPARE;
        return text_value(truth,
                          weft__wgsl_text(e->run, "%s %s %s", weft__wgsl_at_level(e, &a, left), n->op,
                                          weft__wgsl_at_level(e, &b, WEFT_WGSL_L_COMPARE)),
                          level, &a, &b);
    }
    const char *name = weft__wgsl_temporary(e);
    weft__wgsl_line(e, "var %s = %s;", name, a.text);
    weft__wgsl_line(e, both ? "if (%s) {" : "if (!%s) {", name);
    e->indent++;
    weft__wgsl_put(e, e->out, "%s", more.text);
    b = weft__wgsl_convert(e, b, truth);
    weft__wgsl_line(e, "%s = %s;", name, b.text);
    e->indent--;
    weft__wgsl_line(e, "}");
    return weft__wgsl_value(truth, name, WEFT_WGSL_L_PRIMARY, n->line);
}

static weft_wgsl_value pointer_choice(weft_wgsl_emitter *e, weft_wgsl_value c, weft_wgsl_value x,
                                      weft_wgsl_value y) {
    if (y.known && y.integer == 0) return x; /* NULL */
    if (x.type->kind != WEFT_WGSL_POINTER || y.type->kind != WEFT_WGSL_POINTER ||
        !weft__wgsl_same_base(&x.base, &y.base))
        weft__wgsl_fail(e->run, c.line, "? and : have pointers into different memory");
    y = weft__wgsl_pointer_cast(e, y, x.type);
    x.offset = (weft_wgsl_offset){.text = weft__wgsl_text(e->run, "select(%s, %s, %s)",
                                                          weft__wgsl_offset_text(e, y.offset),
                                                          weft__wgsl_offset_text(e, x.offset), c.text),
                                  .level = WEFT_WGSL_L_PRIMARY};
    return x;
}

static weft_wgsl_value choice(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft_wgsl_value c = weft__wgsl_condition(e, n->a);
    if (c.known) return weft__wgsl_expression(e, c.integer ? n->b : n->c);
    weft_wgsl_buffer before_x = {0}, before_y = {0};
    weft_wgsl_value x = apart(e, n->b, &before_x), y = apart(e, n->c, &before_y);
    if (x.type->kind == WEFT_WGSL_POINTER || y.type->kind == WEFT_WGSL_POINTER) {
        if (before_x.length || before_y.length)
            weft__wgsl_fail(e->run, n->line, "pointers of ? and : need statements");
        return pointer_choice(e, c, x, y);
    }
    const weft_wgsl_type *type =
        weft__wgsl_same(x.type, y.type) ? x.type : weft__wgsl_common(e, x.type, y.type, n->line);
    x = weft__wgsl_convert(e, x, type);
    y = weft__wgsl_convert(e, y, type);
    const bool plain = !before_x.length && !before_y.length;
    if (plain && x.known && y.known && type->kind < WEFT_WGSL_F16 && !weft__wgsl_is_64(type) &&
        x.integer == y.integer)
        return x;
    if (plain && !x.heavy && !y.heavy && type->kind < WEFT_WGSL_FOUR)
        return text_value(type, weft__wgsl_text(e->run, "select(%s, %s, %s)", y.text, x.text, c.text),
                          WEFT_WGSL_L_PRIMARY, &c, NULL);
    const char *name = weft__wgsl_temporary(e);
    weft__wgsl_line(e, "var %s: %s;", name, weft__wgsl_type_text(e, type, n->line));
    weft__wgsl_line(e, "if (%s) {", c.text);
    if (before_x.length) weft__wgsl_put(e, e->out, "%s", before_x.text);
    weft__wgsl_line(e, "    %s = %s;", name, x.text);
    weft__wgsl_line(e, "} else {");
    if (before_y.length) weft__wgsl_put(e, e->out, "%s", before_y.text);
    weft__wgsl_line(e, "    %s = %s;", name, y.text);
    weft__wgsl_line(e, "}");
    return weft__wgsl_value(type, name, WEFT_WGSL_L_PRIMARY, n->line);
}

/* ---- assignments ---- */

/* Makes a place that can be read and then written without computing its offset twice. */
static weft_wgsl_value fixed_place(weft_wgsl_emitter *e, weft_wgsl_value place) {
    if (place.offset.text && place.heavy) {
        const char *name = weft__wgsl_temporary(e);
        weft__wgsl_line(e, "let %s = %s;", name, place.offset.text);
        place.offset.text = name;
        place.offset.level = WEFT_WGSL_L_PRIMARY;
    }
    return place;
}

static weft_wgsl_meaning *pointer_variable(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    if (n->kind != WEFT_WGSL_N_SYMBOL || n->symbol->type->kind != WEFT_WGSL_POINTER) return NULL;
    return weft__wgsl_meaning_of(e, n->symbol);
}

/* Assigns a pointer variable. Its base must stay the same. */
static weft_wgsl_value assign_pointer(weft_wgsl_emitter *e, weft_wgsl_meaning *m, weft_wgsl_value v,
                                      const weft_wgsl_symbol *s, int line) {
    v.line = line;
    v = weft__wgsl_convert(e, v, s->type);
    if (!m->bound) {
        m->pointer = v;
        m->bound = true;
        m->pointer.offset = (weft_wgsl_offset){.text = m->name, .level = WEFT_WGSL_L_PRIMARY};
    } else if (!weft__wgsl_same_base(&m->pointer.base, &v.base)) {
        weft__wgsl_fail(e->run, line, "pointer %s changes to other memory", s->name->text);
    }
    weft__wgsl_line(e, "%s = %s;", m->name, weft__wgsl_offset_text(e, v.offset));
    return m->pointer;
}

static weft_wgsl_value assign(weft_wgsl_emitter *e, const weft_wgsl_node *n, const char *op,
                              weft_wgsl_value v, bool after) {
    weft_wgsl_meaning *m = pointer_variable(e, n);
    if (m) {
        weft_wgsl_value before = m->pointer;
        if (after) {
            const char *name = weft__wgsl_temporary(e);
            weft__wgsl_line(e, "let %s = %s;", name, m->name);
            before.offset.text = name;
        }
        if (*op) v = weft__wgsl_binary(e, op, m->pointer, v, n->line);
        const weft_wgsl_value now = assign_pointer(e, m, v, n->symbol, n->line);
        return after ? before : now;
    }
    weft_wgsl_value place = place_or_value(e, n), old = v;
    if (!place.place) weft__wgsl_fail(e->run, n->line, "this cannot be assigned");
    if (*op || after) {
        place = fixed_place(e, place);
        old = weft__wgsl_load(e, place);
        if (after) {
            old.heavy = true;
            old = weft__wgsl_keep(
                e, (weft_wgsl_value){.type = old.type, .text = old.text, .heavy = true, .line = old.line});
        }
        v = weft__wgsl_binary(e, op, old, v, n->line);
    }
    weft__wgsl_store(e, place, v);
    if (after) return old;
    return v.known && v.type->kind == place.type->kind ? v : weft__wgsl_load(e, place);
}

static weft_wgsl_value step(weft_wgsl_emitter *e, const weft_wgsl_node *n, bool used) {
    return assign(e, n->a, n->op, weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_I32), 1, n->line),
                  used && n->kind == WEFT_WGSL_N_AFTER);
}

/* Evaluates a value for its calls. */
static void put_unused(weft_wgsl_emitter *e, weft_wgsl_value v) {
    if (v.heavy && v.type->kind != WEFT_WGSL_VOID && v.type->kind != WEFT_WGSL_POINTER)
        weft__wgsl_line(e, "_ = %s;", v.text);
}

static void effect(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    switch (n->kind) {
    case WEFT_WGSL_N_COMMA:
        weft__wgsl_effect(e, n->a);
        weft__wgsl_effect(e, n->b);
        return;
    case WEFT_WGSL_N_BEFORE:
    case WEFT_WGSL_N_AFTER: step(e, n, false); return;
    case WEFT_WGSL_N_CAST: weft__wgsl_effect(e, n->a); return;
    case WEFT_WGSL_N_ASSIGN: {
        const weft_wgsl_value v = weft__wgsl_expression(e, n->b);
        assign(e, n->a, n->op, v, false);
        return;
    }
    case WEFT_WGSL_N_CHOICE: {
        const weft_wgsl_value c = weft__wgsl_condition(e, n->a);
        weft__wgsl_line(e, "if (%s) {", c.text);
        e->indent++;
        weft__wgsl_effect(e, n->b);
        e->indent--;
        weft__wgsl_line(e, "} else {");
        e->indent++;
        weft__wgsl_effect(e, n->c);
        e->indent--;
        weft__wgsl_line(e, "}");
        return;
    }
    default: put_unused(e, weft__wgsl_expression(e, n));
    }
}

void weft__wgsl_effect(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft__wgsl_enter(e->run, n->line);
    effect(e, n);
    weft__wgsl_leave(e->run);
}

/* ---- all expressions ---- */

static weft_wgsl_value word_value(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    static const struct {
        const char *name;
        double value;
    } constants[] = {{"INFINITY", INFINITY}, {"HUGE_VALF", INFINITY}, {"NAN", NAN}};
    for (size_t i = 0; i < sizeof constants / sizeof *constants; i++)
        if (!strcmp(n->word->text, constants[i].name))
            return weft__wgsl_known_float(e, weft__wgsl_type(WEFT_WGSL_F32), constants[i].value, n->line);
    if (!strcmp(n->word->text, "true") || !strcmp(n->word->text, "false"))
        return weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_BOOL), n->word->text[0] == 't', n->line);
    weft__wgsl_fail(e->run, n->line, "%s is not declared", n->word->text);
}

static weft_wgsl_value symbol_value(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    const weft_wgsl_meaning *m = weft__wgsl_meaning_of(e, n->symbol);
    weft_wgsl_value v = m->pointer;
    const char *name = n->symbol->name->text;
    if (n->symbol->type->kind == WEFT_WGSL_POINTER && !m->bound)
        weft__wgsl_fail(e->run, n->line, "pointer %s is used before it points to anything", name);
    if (!m->bound) weft__wgsl_fail(e->run, n->line, "%s is used in its own declaration", name);
    v.line = n->line;
    return v;
}

static weft_wgsl_value place_or_value(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft_wgsl_value v;
    weft__wgsl_enter(e->run, n->line);
    switch (n->kind) {
    case WEFT_WGSL_N_INTEGER: v = weft__wgsl_known(e, n->type, (int64_t)n->integer, n->line); break;
    case WEFT_WGSL_N_FLOAT: v = weft__wgsl_known_float(e, n->type, n->number, n->line); break;
    case WEFT_WGSL_N_WORD: v = word_value(e, n); break;
    case WEFT_WGSL_N_SYMBOL: v = symbol_value(e, n); break;
    case WEFT_WGSL_N_CALL: v = weft__wgsl_call(e, n); break;
    case WEFT_WGSL_N_INDEX:
        v = weft__wgsl_expression(e, n->a);
        v = weft__wgsl_element(e, v, weft__wgsl_expression(e, n->b));
        break;
    case WEFT_WGSL_N_FIELD: v = weft__wgsl_member(e, place_or_value(e, n->a), n->word, n->line); break;
    case WEFT_WGSL_N_ARROW:
        v = weft__wgsl_element(e, weft__wgsl_expression(e, n->a),
                               weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_I32), 0, n->line));
        v = weft__wgsl_member(e, v, n->word, n->line);
        break;
    case WEFT_WGSL_N_UNARY: v = unary(e, n); break;
    case WEFT_WGSL_N_BEFORE:
    case WEFT_WGSL_N_AFTER: v = step(e, n, true); break;
    case WEFT_WGSL_N_BINARY:
        if (!strcmp(n->op, "&&") || !strcmp(n->op, "||")) {
            v = logical(e, n);
        } else {
            const weft_wgsl_value a = weft__wgsl_expression(e, n->a);
            v = weft__wgsl_binary(e, n->op, a, weft__wgsl_expression(e, n->b), n->line);
        }
        break;
    case WEFT_WGSL_N_ASSIGN: v = weft__wgsl_expression(e, n->b), v = assign(e, n->a, n->op, v, false); break;
    case WEFT_WGSL_N_CHOICE: v = choice(e, n); break;
    case WEFT_WGSL_N_CAST:
        v = weft__wgsl_expression(e, n->a);
        if (v.type->kind == WEFT_WGSL_POINTER &&
            weft__wgsl_is_integer(n->type)) { /* its address: the first byte */
            const weft_wgsl_offset bytes =
                weft__wgsl_offset_times(e, v.offset, weft__wgsl_unit(v.base.kind, v.type->of));
            v = weft__wgsl_value(weft__wgsl_type(WEFT_WGSL_INDEX), weft__wgsl_offset_text(e, bytes), 0,
                                 n->line);
        }
        if (n->type->kind != WEFT_WGSL_VOID) v = weft__wgsl_convert(e, v, n->type);
        break;
    case WEFT_WGSL_N_COMMA:
        weft__wgsl_effect(e, n->a);
        v = weft__wgsl_expression(e, n->b);
        break;
    default: weft__wgsl_fail(e->run, n->line, "a list of values is only supported in declarations");
    }
    weft__wgsl_leave(e->run);
    return v;
}

weft_wgsl_value weft__wgsl_expression(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft_wgsl_value v = place_or_value(e, n);
    v.line = n->line;
    return weft__wgsl_load(e, v);
}

weft_wgsl_value weft__wgsl_condition(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    const weft_wgsl_value v = weft__wgsl_expression(e, n);
    return weft__wgsl_convert(e, v, weft__wgsl_type(WEFT_WGSL_BOOL));
}
