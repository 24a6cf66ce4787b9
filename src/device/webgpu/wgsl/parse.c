/* Reads declarations, statements and functions of the C dialect into a tree. Must not know: how they are
 * printed. Read next: parse_expression.c, emit.h. */
#include "device/webgpu/wgsl/parse.h"

#include <string.h>

enum { PARAMETERS = 64 };

weft_wgsl_node *weft__wgsl_node(weft_wgsl_parser *p, weft_wgsl_node_kind kind) {
    weft_wgsl_node *n = weft__wgsl_alloc(p->run, sizeof *n);
    n->kind = kind;
    n->line = p->at->line;
    return n;
}

bool weft__wgsl_accept(weft_wgsl_parser *p, const char *text) {
    if (!weft__wgsl_is(p->at, text)) return false;
    p->at++;
    return true;
}

void weft__wgsl_expect(weft_wgsl_parser *p, const char *text) {
    if (weft__wgsl_accept(p, text)) return;
    if (p->at->kind == WEFT_WGSL_END)
        weft__wgsl_fail(p->run, p->at->line, "the text ends where '%s' must be", text);
    weft__wgsl_fail(p->run, p->at->line, "'%.*s' is where '%s' must be", p->at->length, p->at->text, text);
}

static bool accept_any(weft_wgsl_parser *p, const char *const *texts) {
    for (; *texts; texts++)
        if (weft__wgsl_accept(p, *texts)) return true;
    return false;
}

/* ---- attributes ---- */

static void skip_brackets(weft_wgsl_parser *p) {
    int depth = 0;
    do {
        if (p->at->kind == WEFT_WGSL_END) weft__wgsl_expect(p, ")");
        depth += weft__wgsl_is(p->at, "(");
        depth -= weft__wgsl_is(p->at, ")");
        p->at++;
    } while (depth);
}

/* Skips _Pragma and attributes, but for the size of work-groups and "unroll". */
static bool accept_attribute(weft_wgsl_parser *p) {
    const bool pragma = weft__wgsl_accept(p, "_Pragma");
    if (!pragma && !weft__wgsl_accept(p, "__attribute__")) return false;
    const weft_wgsl_token *begin = p->at;
    if (!weft__wgsl_is(begin, "(")) weft__wgsl_expect(p, "(");
    skip_brackets(p);
    p->unroll = pragma && weft__wgsl_is(begin + 1, "\"unroll\"");
    if (pragma || !weft__wgsl_is(begin + 1, "(") || !weft__wgsl_is(begin + 2, "reqd_work_group_size"))
        return true;
    const weft_wgsl_token *end = p->at;
    p->at = begin + 3;
    weft__wgsl_expect(p, "(");
    for (int d = 0; d < 3; d++) {
        if (d) weft__wgsl_expect(p, ",");
        p->items[d] = weft__wgsl_parse_constant(p);
    }
    p->at = end;
    return true;
}

/* ---- types ---- */

static const char *const ignored[] = {"static", "inline",   "volatile",     "restrict",
                                      "extern", "register", "__restrict__", NULL};

bool weft__wgsl_begins_type(const weft_wgsl_parser *p) {
    static const char *const others[] = {"const",    "unsigned", "signed",  "struct",     "union", "enum",
                                         "__global", "__local",  "typedef", "__constant", NULL};
    if (p->at->kind != WEFT_WGSL_NAME) return false;
    for (size_t i = 0; others[i]; i++)
        if (weft__wgsl_is(p->at, others[i])) return true;
    for (size_t i = 0; ignored[i]; i++)
        if (weft__wgsl_is(p->at, ignored[i])) return true;
    return p->at->word->type != NULL;
}

static const weft_wgsl_type *parse_array(weft_wgsl_parser *p, const weft_wgsl_type *of, bool *open);

static bool has_size(const weft_wgsl_type *type) {
    const bool members = type->kind == WEFT_WGSL_STRUCT || type->kind == WEFT_WGSL_UNION;
    return type->kind != WEFT_WGSL_VOID && (!members || type->complete);
}

static void parse_fields(weft_wgsl_parser *p, weft_wgsl_type *type) {
    weft_wgsl_field **end = &type->fields;
    const int line = p->at->line;
    if (type->begun) weft__wgsl_fail(p->run, line, "struct %s is declared inside of itself", type->tag->text);
    type->begun = true;
    while (!weft__wgsl_accept(p, "}")) {
        const weft_wgsl_specifiers s = weft__wgsl_parse_specifiers(p);
        do {
            const weft_wgsl_type *t = weft__wgsl_parse_pointers(p, &s);
            bool open = false;
            if (p->at->kind != WEFT_WGSL_NAME) weft__wgsl_fail(p->run, p->at->line, "a member needs a name");
            weft_wgsl_field *f = weft__wgsl_alloc(p->run, sizeof *f);
            f->name = p->at++->word;
            f->type = parse_array(p, t, &open);
            if (open || !has_size(f->type))
                weft__wgsl_fail(p->run, p->at->line, "member %s has no size", f->name->text);
            *end = f;
            end = &f->next;
        } while (weft__wgsl_accept(p, ","));
        weft__wgsl_expect(p, ";");
    }
    weft__wgsl_layout(p->run, type, line);
    type->complete = true;
}

/* Structs with a tag are found by a word of their own. */
static const weft_wgsl_type *parse_struct(weft_wgsl_parser *p, weft_wgsl_kind kind) {
    weft_wgsl_word *tag = NULL, *name = NULL;
    weft_wgsl_type *type = NULL;
    if (p->at->kind == WEFT_WGSL_NAME) {
        tag = p->at++->word;
        const char *text = weft__wgsl_text(p->run, "struct %s", tag->text);
        name = weft__wgsl_word(p->run, text, strlen(text));
    }
    if (name && name->type && !(weft__wgsl_is(p->at, "{") && name->type->complete))
        type = (weft_wgsl_type *)name->type;
    if (!type) {
        type = weft__wgsl_alloc(p->run, sizeof *type);
        *type = (weft_wgsl_type){.kind = kind, .tag = tag, .alignment = 1, .number = ++p->n_structs};
        if (name) name->type = type;
    }
    weft__wgsl_enter(p->run, p->at->line);
    if (weft__wgsl_accept(p, "{")) parse_fields(p, type);
    weft__wgsl_leave(p->run);
    return type;
}

static const weft_wgsl_type *unsigned_of(const weft_wgsl_type *type) {
    switch (type->kind) {
    case WEFT_WGSL_I8: return weft__wgsl_type(WEFT_WGSL_U8);
    case WEFT_WGSL_I16: return weft__wgsl_type(WEFT_WGSL_U16);
    case WEFT_WGSL_I64: return weft__wgsl_type(WEFT_WGSL_U64);
    default: return weft__wgsl_type(WEFT_WGSL_U32);
    }
}

weft_wgsl_specifiers weft__wgsl_parse_specifiers(weft_wgsl_parser *p) {
    weft_wgsl_specifiers s = {0};
    bool is_unsigned = false, is_signed = false;
    const int line = p->at->line;
    for (;;) {
        if (accept_any(p, ignored) || accept_attribute(p)) continue;
        if (weft__wgsl_accept(p, "const") || weft__wgsl_accept(p, "__constant")) continue;
        if (weft__wgsl_accept(p, "typedef")) {
            s.is_typedef = true;
        } else if (weft__wgsl_accept(p, "__kernel")) {
            s.kernel = true;
        } else if (weft__wgsl_accept(p, "__global")) {
            s.space = WEFT_WGSL_GLOBAL;
        } else if (weft__wgsl_accept(p, "__local")) {
            s.space = WEFT_WGSL_LOCAL;
        } else if (weft__wgsl_accept(p, "unsigned")) {
            is_unsigned = true;
        } else if (weft__wgsl_accept(p, "signed")) {
            is_signed = true;
        } else if (!s.type && weft__wgsl_accept(p, "struct")) {
            s.type = parse_struct(p, WEFT_WGSL_STRUCT);
        } else if (!s.type && weft__wgsl_accept(p, "union")) {
            s.type = parse_struct(p, WEFT_WGSL_UNION);
        } else if (!s.type && p->at->kind == WEFT_WGSL_NAME && p->at->word->type) {
            s.type = p->at++->word->type;
        } else {
            break;
        }
    }
    if (!s.type && (is_unsigned || is_signed)) s.type = weft__wgsl_type(WEFT_WGSL_I32);
    if (!s.type) weft__wgsl_fail(p->run, line, "'%.*s' is where a type must be", p->at->length, p->at->text);
    if (is_unsigned) s.type = unsigned_of(s.type);
    return s;
}

const weft_wgsl_type *weft__wgsl_parse_pointers(weft_wgsl_parser *p, const weft_wgsl_specifiers *s) {
    const weft_wgsl_type *type = s->type;
    weft_wgsl_space space = s->space;
    for (;;) {
        if (weft__wgsl_accept(p, "*")) {
            type = weft__wgsl_pointer(p->run, type, space);
            space = WEFT_WGSL_PRIVATE;
        } else if (!weft__wgsl_accept(p, "const") && !accept_any(p, ignored)) {
            return type;
        }
    }
}

/* Reads the extents of an array. `open`: the first one is missing. */
static const weft_wgsl_type *parse_array(weft_wgsl_parser *p, const weft_wgsl_type *of, bool *open) {
    int extents[8], n = 0;
    while (weft__wgsl_accept(p, "[")) {
        if (n == 8) weft__wgsl_fail(p->run, p->at->line, "an array has more than 8 dimensions");
        if (n == 0 && weft__wgsl_is(p->at, "]"))
            *open = true, extents[n++] = 0;
        else
            extents[n++] = weft__wgsl_parse_constant(p);
        weft__wgsl_expect(p, "]");
    }
    p->run->line = p->at->line;
    if (n && !has_size(of)) weft__wgsl_fail(p->run, p->at->line, "the elements of an array have no size");
    for (int d = n - 1; d >= 0; d--) {
        if (!extents[d] && !(d == 0 && *open))
            weft__wgsl_fail(p->run, p->at->line, "an array has no elements");
        of = weft__wgsl_array(p->run, of, extents[d]);
    }
    return of;
}

/* ---- declarations ---- */

static weft_wgsl_symbol *declare(weft_wgsl_parser *p, weft_wgsl_word *name, const weft_wgsl_type *type) {
    weft_wgsl_symbol *symbol = weft__wgsl_alloc(p->run, sizeof *symbol);
    *symbol = (weft_wgsl_symbol){.name = name, .type = type, .line = p->at->line, .number = ++p->n_symbols};
    weft_wgsl_scope *s = &p->scope;
    s->list = weft__wgsl_grow(p->run, s->list, &s->capacity, s->count, sizeof(weft_wgsl_symbol *));
    s->list[s->count++] = symbol;
    return symbol;
}

static weft_wgsl_node *parse_initial(weft_wgsl_parser *p) {
    if (!weft__wgsl_is(p->at, "{")) return weft__wgsl_parse_assignment(p);
    weft__wgsl_enter(p->run, p->at->line);
    weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_LIST), **end = &n->list;
    p->at++;
    while (!weft__wgsl_accept(p, "}")) {
        *end = parse_initial(p);
        end = &(*end)->next;
        if (!weft__wgsl_is(p->at, "}")) weft__wgsl_expect(p, ",");
    }
    weft__wgsl_leave(p->run);
    return n;
}

/* Reads one declarator with its value. The type has its stars already. */
static weft_wgsl_node *parse_declarator(weft_wgsl_parser *p, const weft_wgsl_specifiers *s,
                                        const weft_wgsl_type *type) {
    bool open = false;
    weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_DECLARE);
    if (p->at->kind != WEFT_WGSL_NAME)
        weft__wgsl_fail(p->run, p->at->line, "'%.*s' is where a name must be", p->at->length, p->at->text);
    weft_wgsl_word *name = p->at++->word;
    type = parse_array(p, type, &open);
    while (accept_attribute(p)) {
    }
    if (s->is_typedef) {
        name->type = type;
        n->kind = WEFT_WGSL_N_EMPTY;
        return n;
    }
    n->symbol = declare(p, name, type);
    if (type->kind != WEFT_WGSL_POINTER) n->symbol->space = s->space;
    if (weft__wgsl_accept(p, "=")) n->symbol->value = parse_initial(p);
    if (open) {
        int count = 0;
        if (!n->symbol->value || n->symbol->value->kind != WEFT_WGSL_N_LIST)
            weft__wgsl_fail(p->run, n->line, "array %s has no size", name->text);
        for (const weft_wgsl_node *v = n->symbol->value->list; v; v = v->next) count++;
        n->symbol->type = weft__wgsl_array(p->run, type->of, count);
    }
    return n;
}

static weft_wgsl_node *parse_declaration(weft_wgsl_parser *p) {
    weft_wgsl_node *all = weft__wgsl_node(p, WEFT_WGSL_N_DECLARE), **end = &all->list;
    const weft_wgsl_specifiers s = weft__wgsl_parse_specifiers(p);
    while (!weft__wgsl_is(p->at, ";")) {
        if (all->list) weft__wgsl_expect(p, ",");
        *end = parse_declarator(p, &s, weft__wgsl_parse_pointers(p, &s));
        end = &(*end)->next;
    }
    weft__wgsl_expect(p, ";");
    return all;
}

/* ---- statements ---- */

static weft_wgsl_node *parse_statement(weft_wgsl_parser *p);

static weft_wgsl_node *parse_condition(weft_wgsl_parser *p) {
    weft__wgsl_expect(p, "(");
    weft_wgsl_node *n = weft__wgsl_parse_expression(p);
    weft__wgsl_expect(p, ")");
    return n;
}

static weft_wgsl_node *parse_for(weft_wgsl_parser *p, weft_wgsl_node *n, bool unroll) {
    const size_t visible = p->scope.count;
    weft_wgsl_symbol *counter = NULL;
    n->kind = WEFT_WGSL_N_FOR;
    weft__wgsl_expect(p, "(");
    if (weft__wgsl_begins_type(p)) {
        n->list = parse_declaration(p);
    } else if (!weft__wgsl_accept(p, ";")) {
        n->list = weft__wgsl_node(p, WEFT_WGSL_N_EXPRESSION);
        n->list->a = weft__wgsl_parse_expression(p);
        weft__wgsl_expect(p, ";");
    }
    if (!weft__wgsl_is(p->at, ";")) n->a = weft__wgsl_parse_expression(p);
    weft__wgsl_expect(p, ";");
    if (!weft__wgsl_is(p->at, ")")) n->b = weft__wgsl_parse_expression(p);
    weft__wgsl_expect(p, ")");
    if (unroll && n->a && n->b && n->list && n->list->list && !n->list->list->next)
        counter = n->list->list->symbol;
    if (counter) counter->changed = false;
    n->c = parse_statement(p);
    if (counter && !counter->changed) n->symbol = counter;
    if (counter) counter->changed = true;
    p->scope.count = visible;
    return n;
}

static weft_wgsl_node *parse_block(weft_wgsl_parser *p, weft_wgsl_node *n) {
    const size_t visible = p->scope.count;
    weft_wgsl_node **end = &n->list;
    n->kind = WEFT_WGSL_N_BLOCK;
    while (!weft__wgsl_accept(p, "}")) {
        if (p->at->kind == WEFT_WGSL_END) weft__wgsl_expect(p, "}");
        *end = parse_statement(p);
        end = &(*end)->next;
    }
    p->scope.count = visible;
    return n;
}

static weft_wgsl_node *parse_simple(weft_wgsl_parser *p, weft_wgsl_node *n) {
    if (weft__wgsl_accept(p, "return")) {
        n->kind = WEFT_WGSL_N_RETURN;
        if (!weft__wgsl_is(p->at, ";")) n->a = weft__wgsl_parse_expression(p);
    } else if (weft__wgsl_accept(p, "break")) {
        n->kind = WEFT_WGSL_N_BREAK;
    } else if (weft__wgsl_accept(p, "continue")) {
        n->kind = WEFT_WGSL_N_CONTINUE;
    } else {
        static const char *const refused[] = {"switch", "goto", "case", "default", "asm", "__asm__", NULL};
        if (accept_any(p, refused))
            weft__wgsl_fail(p->run, n->line, "%s is not supported", (p->at - 1)->text);
        n->kind = WEFT_WGSL_N_EXPRESSION;
        n->a = weft__wgsl_parse_expression(p);
    }
    weft__wgsl_expect(p, ";");
    return n;
}

static weft_wgsl_node *parse_any(weft_wgsl_parser *p) {
    weft_wgsl_node *n = weft__wgsl_node(p, WEFT_WGSL_N_EMPTY);
    bool unroll = false;
    while (accept_attribute(p)) unroll = p->unroll;
    if (weft__wgsl_accept(p, ";")) return n;
    if (weft__wgsl_accept(p, "{")) return parse_block(p, n);
    if (weft__wgsl_begins_type(p)) return parse_declaration(p);
    if (weft__wgsl_accept(p, "for")) return parse_for(p, n, unroll);
    if (weft__wgsl_accept(p, "if")) {
        n->kind = WEFT_WGSL_N_IF;
        n->a = parse_condition(p);
        n->b = parse_statement(p);
        if (weft__wgsl_accept(p, "else")) n->c = parse_statement(p);
    } else if (weft__wgsl_accept(p, "while")) {
        n->kind = WEFT_WGSL_N_WHILE;
        n->a = parse_condition(p);
        n->c = parse_statement(p);
    } else if (weft__wgsl_accept(p, "do")) {
        n->kind = WEFT_WGSL_N_DO;
        n->c = parse_statement(p);
        weft__wgsl_expect(p, "while");
        n->a = parse_condition(p);
        weft__wgsl_expect(p, ";");
    } else {
        return parse_simple(p, n);
    }
    return n;
}

static weft_wgsl_node *parse_statement(weft_wgsl_parser *p) {
    weft__wgsl_enter(p->run, p->at->line);
    weft_wgsl_node *n = parse_any(p);
    weft__wgsl_leave(p->run);
    return n;
}

/* ---- functions ---- */

static void parse_parameters(weft_wgsl_parser *p, weft_wgsl_function *f) {
    f->parameters = weft__wgsl_alloc(p->run, PARAMETERS * sizeof(weft_wgsl_symbol *));
    while (!weft__wgsl_accept(p, ")")) {
        bool open = false;
        if (f->n_parameters) weft__wgsl_expect(p, ",");
        const weft_wgsl_specifiers s = weft__wgsl_parse_specifiers(p);
        const weft_wgsl_type *type = weft__wgsl_parse_pointers(p, &s);
        if (type->kind == WEFT_WGSL_VOID && weft__wgsl_is(p->at, ")")) continue;
        if (p->at->kind != WEFT_WGSL_NAME || f->n_parameters == PARAMETERS)
            weft__wgsl_fail(p->run, p->at->line, "parameters of %s need names, and are at most %d",
                            f->name->text, PARAMETERS);
        weft_wgsl_word *name = p->at++->word;
        type = parse_array(p, type, &open);
        if (type->kind == WEFT_WGSL_ARRAY) type = weft__wgsl_pointer(p->run, type->of, s.space);
        f->parameters[f->n_parameters++] = declare(p, name, type);
    }
}

static void parse_function(weft_wgsl_parser *p, const weft_wgsl_specifiers *s, const weft_wgsl_type *type,
                           weft_wgsl_word *name) {
    weft_wgsl_function *f = weft__wgsl_alloc(p->run, sizeof *f);
    const size_t visible = p->scope.count;
    *f = (weft_wgsl_function){.name = name, .type = type, .kernel = s->kernel, .line = p->at->line};
    memcpy(f->items, p->items, sizeof f->items);
    parse_parameters(p, f);
    if (!weft__wgsl_accept(p, ";")) {
        weft_wgsl_node *body = weft__wgsl_node(p, WEFT_WGSL_N_BLOCK);
        weft__wgsl_expect(p, "{");
        f->body = parse_block(p, body);
        f->next = p->tree->functions;
        p->tree->functions = f;
    }
    p->scope.count = visible;
}

static void parse_outside(weft_wgsl_parser *p) {
    memset(p->items, 0, sizeof p->items);
    const weft_wgsl_specifiers s = weft__wgsl_parse_specifiers(p);
    for (bool more = false; !weft__wgsl_accept(p, ";"); more = true) {
        if (more) weft__wgsl_expect(p, ",");
        const weft_wgsl_type *type = weft__wgsl_parse_pointers(p, &s);
        if (!s.is_typedef && p->at->kind == WEFT_WGSL_NAME && weft__wgsl_is(p->at + 1, "(")) {
            weft_wgsl_word *name = p->at->word;
            p->at += 2;
            parse_function(p, &s, type, name);
            return;
        }
        weft_wgsl_node *n = parse_declarator(p, &s, type);
        if (n->kind == WEFT_WGSL_N_DECLARE) {
            n->symbol->table = true;
            if (!n->symbol->value)
                weft__wgsl_fail(p->run, n->line, "variable %s outside of functions has no value",
                                n->symbol->name->text);
        }
    }
}

weft_wgsl_tree *weft__wgsl_parse(weft_wgsl_run *run, const weft_wgsl_tokens *tokens) {
    weft_wgsl_parser p = {.run = run, .at = tokens->list};
    p.tree = weft__wgsl_alloc(run, sizeof *p.tree);
    while (p.at->kind != WEFT_WGSL_END)
        if (!weft__wgsl_accept(&p, ";")) parse_outside(&p);
    return p.tree;
}
