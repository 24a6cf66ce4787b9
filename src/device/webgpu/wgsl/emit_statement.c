/* Prints statements and declarations. Must not know: operators. Read next: emit_module.c. */
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

enum {
    LIST_MOST = 4096,
    UNROLL_MOST = 32, /* turns of a loop */
    COPIES_MOST = 64  /* of a body, in loops inside of each other: the 8 x 8 sums of a matmul */
};

static void declare_symbol(weft_wgsl_emitter *e, const weft_wgsl_symbol *s);

weft_wgsl_meaning *weft__wgsl_meaning_of(weft_wgsl_emitter *e, const weft_wgsl_symbol *s) {
    if (s->number >= e->n_symbols) {
        const int n = 2 * s->number + 64;
        weft_wgsl_meaning **wider = weft__wgsl_alloc(e->run, (size_t)n * sizeof(weft_wgsl_meaning *));
        if (e->n_symbols) memcpy(wider, e->meaning, (size_t)e->n_symbols * sizeof(weft_wgsl_meaning *));
        e->meaning = wider;
        e->n_symbols = n;
    }
    if (!e->meaning[s->number]) {
        weft_wgsl_meaning *m = e->meaning[s->number] = weft__wgsl_alloc(e->run, sizeof *m);
        m->name = weft__wgsl_safe_name(e, s->name->text);
        if (s->table) declare_symbol(e, s);
    }
    return e->meaning[s->number];
}

/* ---- declarations ---- */

/* Makes a symbol a variable of the function, or of the module. */
static void bind_variable(weft_wgsl_meaning *m, const weft_wgsl_symbol *s, weft_wgsl_base_kind kind) {
    m->pointer = (weft_wgsl_value){.type = s->type,
                                   .line = s->line,
                                   .place = true,
                                   .base = {.kind = kind,
                                            .root = m->name,
                                            .variable = m->name,
                                            .path = "",
                                            .leaf = s->type,
                                            .whole = s->type}};
    m->bound = true;
}

/* Prints the values of a list, one for each scalar; the rest is 0. */
static const char *list_text(weft_wgsl_emitter *e, const weft_wgsl_type *type, const weft_wgsl_node *list) {
    const weft_wgsl_type *flat = weft__wgsl_flat(type);
    weft_wgsl_buffer text = {0};
    int n = 0;
    if (type->kind != WEFT_WGSL_ARRAY || type->of->kind == WEFT_WGSL_ARRAY || flat->kind >= WEFT_WGSL_FOUR)
        weft__wgsl_fail(e->run, list->line, "a list of values is only supported for arrays of numbers");
    if (type->count > LIST_MOST)
        weft__wgsl_fail(e->run, list->line, "a list of values is for more than %d elements", LIST_MOST);
    weft__wgsl_put(e, &text, "%s(", weft__wgsl_type_text(e, type, list->line));
    for (const weft_wgsl_node *v = list->list; v; v = v->next, n++) {
        const weft_wgsl_value x = weft__wgsl_convert(e, weft__wgsl_expression(e, v), flat);
        weft__wgsl_put(e, &text, "%s%s", n ? ", " : "", x.text);
    }
    if (n > type->count) weft__wgsl_fail(e->run, list->line, "an array has more values than elements");
    const weft_wgsl_value zero =
        weft__wgsl_convert(e, weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_I32), 0, list->line), flat);
    for (; n < type->count; n++) weft__wgsl_put(e, &text, "%s%s", n ? ", " : "", zero.text);
    weft__wgsl_put(e, &text, ")");
    return text.text;
}

static void declare_pointer(weft_wgsl_emitter *e, const weft_wgsl_symbol *s, weft_wgsl_meaning *m) {
    m->bound = false;
    if (!s->value) {
        weft__wgsl_line(e, "var %s: i32;", m->name);
        return;
    }
    weft_wgsl_value v = weft__wgsl_convert(e, weft__wgsl_expression(e, s->value), s->type);
    if (v.type->kind != WEFT_WGSL_POINTER)
        weft__wgsl_fail(e->run, s->line, "pointer %s gets a number", s->name->text);
    if (s->changed) {
        weft__wgsl_line(e, "var %s: i32 = %s;", m->name, weft__wgsl_offset_text(e, v.offset));
        v.offset = (weft_wgsl_offset){.text = m->name, .level = WEFT_WGSL_L_PRIMARY};
    } else if (v.offset.text) {
        weft__wgsl_line(e, "let %s: i32 = %s;", m->name, weft__wgsl_offset_text(e, v.offset));
        v.offset = (weft_wgsl_offset){.text = m->name, .level = WEFT_WGSL_L_PRIMARY};
    }
    v.heavy = false;
    m->pointer = v;
    m->bound = true;
}

static void declare_table(weft_wgsl_emitter *e, const weft_wgsl_symbol *s, weft_wgsl_meaning *m) {
    bind_variable(m, s, WEFT_WGSL_IN_PRIVATE);
    m->pointer.base.variable = NULL; /* it is visible everywhere */
    if (s->value->kind != WEFT_WGSL_N_LIST)
        weft__wgsl_fail(e->run, s->line, "table %s is no list", s->name->text);
    weft__wgsl_put(e, &e->variables, "const %s = %s;\n", m->name, list_text(e, s->type, s->value));
}

static void declare_symbol(weft_wgsl_emitter *e, const weft_wgsl_symbol *s) {
    weft_wgsl_meaning *m = s->table ? e->meaning[s->number] : weft__wgsl_meaning_of(e, s);
    const weft_wgsl_type *type = s->type;
    if (s->table) {
        declare_table(e, s, m);
    } else if (s->space == WEFT_WGSL_LOCAL) {
        if (s->value) weft__wgsl_fail(e->run, s->line, "local memory %s has a value", s->name->text);
        m->name =
            weft__wgsl_text(e->run, "w_local_%s", s->name->text); /* no parameter of a function hides it */
        bind_variable(m, s, WEFT_WGSL_IN_LOCAL);
        if (type->kind != WEFT_WGSL_STRUCT) weft__wgsl_local_variable(e, m->name, type, s->line);
    } else if (type->kind == WEFT_WGSL_POINTER) {
        declare_pointer(e, s, m);
    } else if (!s->value) {
        bind_variable(m, s, WEFT_WGSL_IN_PRIVATE);
        weft__wgsl_line(e, "var %s: %s;", m->name, weft__wgsl_type_text(e, type, s->line));
    } else if (s->value->kind == WEFT_WGSL_N_LIST && type->kind == WEFT_WGSL_ARRAY) {
        const char *text = list_text(e, type, s->value);
        bind_variable(m, s, WEFT_WGSL_IN_PRIVATE);
        weft__wgsl_line(e, "var %s = %s;", m->name, text);
    } else {
        const weft_wgsl_node *value =
            s->value->kind == WEFT_WGSL_N_LIST && s->value->list && !s->value->list->next ? s->value->list
                                                                                          : s->value;
        weft_wgsl_value v = weft__wgsl_convert(e, weft__wgsl_expression(e, value), type);
        bind_variable(m, s, WEFT_WGSL_IN_PRIVATE);
        if (v.known && !s->changed) { /* needs no variable */
            m->pointer = v;
            return;
        }
        weft__wgsl_line(e, "%s %s: %s = %s;", s->changed || type->kind == WEFT_WGSL_STRUCT ? "var" : "let",
                        m->name, weft__wgsl_type_text(e, type, s->line), v.text);
    }
}

/* ---- loops ---- */

/* Ends a loop unless the condition holds. */
static void put_break(weft_wgsl_emitter *e, const weft_wgsl_node *condition) {
    if (!condition) return;
    const weft_wgsl_value c = weft__wgsl_condition(e, condition);
    if (c.known && c.integer) return;
    weft__wgsl_line(e, "if (!%s) {", weft__wgsl_at_level(e, &c, WEFT_WGSL_L_PRIMARY));
    weft__wgsl_line(e, "    break;");
    weft__wgsl_line(e, "}");
}

static bool is_one_line(const weft_wgsl_buffer *b) {
    const char *end = b->length ? strchr(b->text, '\n') : NULL;
    return b->length == 0 || (end && !end[1]);
}

/* Prints what a loop does after each turn. */
static weft_wgsl_buffer step_of(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft_wgsl_buffer to = {0}, *out = e->out;
    if (!n) return to;
    e->out = &to;
    e->indent += 2;
    weft__wgsl_effect(e, n);
    e->indent -= 2;
    e->out = out;
    return to;
}

static void put_body(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    e->indent++;
    if (n->kind == WEFT_WGSL_N_BLOCK)
        for (const weft_wgsl_node *s = n->list; s; s = s->next) weft__wgsl_statement(e, s);
    else
        weft__wgsl_statement(e, n);
    e->indent--;
}

/* Does a statement leave the loop around it, or begin its next turn? */
static bool leaves_loop(const weft_wgsl_node *n) {
    if (!n) return false;
    switch (n->kind) {
    case WEFT_WGSL_N_BREAK:
    case WEFT_WGSL_N_CONTINUE: return true;
    case WEFT_WGSL_N_IF: return leaves_loop(n->b) || leaves_loop(n->c);
    case WEFT_WGSL_N_BLOCK:
        for (const weft_wgsl_node *s = n->list; s; s = s->next)
            if (leaves_loop(s)) return true;
        return false;
    default: return false;
    }
}

/* Returns the counter of a loop after a turn. */
static weft_wgsl_value stepped(weft_wgsl_emitter *e, const weft_wgsl_node *step, weft_wgsl_value counter) {
    const weft_wgsl_value by = step->kind == WEFT_WGSL_N_ASSIGN
                                   ? weft__wgsl_expression(e, step->b)
                                   : weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_I32), 1, step->line);
    return weft__wgsl_binary(e, step->op, counter, by, step->line);
}

static bool steps_counter(const weft_wgsl_node *n) {
    const weft_wgsl_node *step = n->b;
    return (step->kind == WEFT_WGSL_N_ASSIGN || step->kind == WEFT_WGSL_N_BEFORE ||
            step->kind == WEFT_WGSL_N_AFTER) &&
           step->op[0] && step->a->kind == WEFT_WGSL_N_SYMBOL && step->a->symbol == n->symbol;
}

/* Finds the values that the counter of a loop has. Returns their number; 0: they are not all known. */
static int turns_of(weft_wgsl_emitter *e, const weft_wgsl_node *n, weft_wgsl_value values[UNROLL_MOST]) {
    const weft_wgsl_symbol *s = n->symbol;
    if (!s || !s->value || s->type->kind != WEFT_WGSL_I32 || !steps_counter(n) || leaves_loop(n->c)) return 0;
    weft_wgsl_meaning *m = weft__wgsl_meaning_of(e, s);
    weft_wgsl_buffer unused = {0}, *out = e->out;
    int turns = 0;
    e->out = &unused;
    weft_wgsl_value v = weft__wgsl_convert(e, weft__wgsl_expression(e, s->value), s->type);
    for (m->bound = true; v.known; turns++) {
        m->pointer = v;
        const weft_wgsl_value more = weft__wgsl_condition(e, n->a);
        const bool all = more.known && !more.integer;
        if (!more.known || all || turns == UNROLL_MOST) {
            if (!all) v.known = false;
            break;
        }
        values[turns] = v;
        v = stepped(e, n->b, v);
    }
    e->out = out;
    return v.known && unused.length == 0 ? turns : 0;
}

/* Prints the body of a loop once for each turn, if the source asks for it. Then compilers can keep arrays in
 * registers. Many do not unroll loops that WebGPU's libraries wrote. */
static bool put_unrolled(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft_wgsl_value values[UNROLL_MOST];
    const int turns = turns_of(e, n, values), copies = e->copies;
    if (turns == 0 || turns * copies > COPIES_MOST) return false;
    e->copies *= turns;
    for (int i = 0; i < turns; i++) {
        weft__wgsl_meaning_of(e, n->symbol)->pointer = values[i];
        weft__wgsl_line(e, "{");
        put_body(e, n->c);
        weft__wgsl_line(e, "}");
    }
    e->copies = copies;
    return true;
}

/* Simple loops are `for`. Others are `loop`, since a condition or a step needs statements. */
static void put_for(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft_wgsl_buffer before = {0}, *out = e->out;
    if (put_unrolled(e, n)) return;
    if (n->list) {
        weft__wgsl_line(e, "{");
        e->indent++;
        weft__wgsl_statement(e, n->list);
    }
    e->out = &before;
    const weft_wgsl_value c = n->a ? weft__wgsl_condition(e, n->a)
                                   : weft__wgsl_known(e, weft__wgsl_type(WEFT_WGSL_BOOL), 1, n->line);
    e->out = out;
    const weft_wgsl_buffer step = step_of(e, n->b);
    const bool simple = before.length == 0 && is_one_line(&step);
    if (simple) {
        const char *text = step.length ? step.text + strspn(step.text, " ") : "";
        weft__wgsl_line(e, "for (; %s; %.*s) {", c.text, (int)strcspn(text, ";\n"), text);
    } else {
        weft__wgsl_line(e, "loop {");
        e->indent++;
        put_break(e, n->a);
        e->indent--;
    }
    put_body(e, n->c);
    if (!simple && step.length) {
        weft__wgsl_line(e, "    continuing {");
        weft__wgsl_put(e, e->out, "%s", step.text);
        weft__wgsl_line(e, "    }");
    }
    weft__wgsl_line(e, "}");
    if (n->list) {
        e->indent--;
        weft__wgsl_line(e, "}");
    }
}

static void put_do(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    if (n->a->kind == WEFT_WGSL_N_INTEGER && n->a->integer == 0 && !leaves_loop(n->c)) {
        weft__wgsl_line(e, "{");
        put_body(e, n->c);
        weft__wgsl_line(e, "}");
        return;
    }
    weft__wgsl_line(e, "loop {");
    put_body(e, n->c);
    weft__wgsl_line(e, "    continuing {");
    e->indent += 2;
    const weft_wgsl_value c = weft__wgsl_condition(e, n->a);
    weft__wgsl_line(e, "break if !%s;", weft__wgsl_at_level(e, &c, WEFT_WGSL_L_PRIMARY));
    e->indent -= 2;
    weft__wgsl_line(e, "    }");
    weft__wgsl_line(e, "}");
}

/* ---- statements ---- */

static void put_if(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    const weft_wgsl_value c = weft__wgsl_condition(e, n->a);
    if (c.known) {
        const weft_wgsl_node *taken = c.integer ? n->b : n->c;
        if (taken) weft__wgsl_statement(e, taken);
        return;
    }
    weft__wgsl_line(e, "if (%s) {", c.text);
    put_body(e, n->b);
    if (n->c) {
        weft__wgsl_line(e, "} else {");
        put_body(e, n->c);
    }
    weft__wgsl_line(e, "}");
}

static void put_return(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    if (!n->a) {
        weft__wgsl_line(e, "return;");
        return;
    }
    weft_wgsl_value v = weft__wgsl_expression(e, n->a);
    if (v.type->kind == WEFT_WGSL_POINTER || e->result->kind == WEFT_WGSL_POINTER ||
        e->result->kind == WEFT_WGSL_VOID)
        weft__wgsl_fail(e->run, n->line, "a function cannot return this");
    v = weft__wgsl_convert(e, v, e->result);
    weft__wgsl_line(e, "return %s;", v.text);
}

void weft__wgsl_statement(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    weft__wgsl_enter(e->run, n->line);
    switch (n->kind) {
    case WEFT_WGSL_N_BLOCK:
        weft__wgsl_line(e, "{");
        put_body(e, n);
        weft__wgsl_line(e, "}");
        break;
    case WEFT_WGSL_N_DECLARE:
        for (const weft_wgsl_node *d = n->list; d; d = d->next)
            if (d->kind == WEFT_WGSL_N_DECLARE) declare_symbol(e, d->symbol);
        break;
    case WEFT_WGSL_N_EXPRESSION: weft__wgsl_effect(e, n->a); break;
    case WEFT_WGSL_N_IF: put_if(e, n); break;
    case WEFT_WGSL_N_FOR: put_for(e, n); break;
    case WEFT_WGSL_N_WHILE:
        weft__wgsl_line(e, "loop {");
        e->indent++;
        put_break(e, n->a);
        e->indent--;
        put_body(e, n->c);
        weft__wgsl_line(e, "}");
        break;
    case WEFT_WGSL_N_DO: put_do(e, n); break;
    case WEFT_WGSL_N_RETURN: put_return(e, n); break;
    case WEFT_WGSL_N_BREAK: weft__wgsl_line(e, "break;"); break;
    case WEFT_WGSL_N_CONTINUE: weft__wgsl_line(e, "continue;"); break;
    default: break;
    }
    weft__wgsl_leave(e->run);
}
