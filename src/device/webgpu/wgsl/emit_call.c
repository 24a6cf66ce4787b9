/* Prints calls of functions of the source, and these functions: once for each combination of memory that
 * their pointers point to. Read next: emit_builtin.c, emit_module.c. */
#include <string.h>

#include "device/webgpu/wgsl/emit.h"

enum { CLONES_MOST = 400 };

static const weft_wgsl_function *find(const weft_wgsl_emitter *e, const weft_wgsl_word *name) {
    for (const weft_wgsl_function *f = e->tree->functions; f; f = f->next)
        if (f->name == name) return f;
    return NULL;
}

/* Is the offset of a pointer argument a part of the function, and no parameter? */
static bool offset_is_fixed(const weft_wgsl_value *pointer) { return !pointer->offset.text; }

/* Describes a pointer argument: what is the same for all calls of one printed function. */
static const char *key_of(weft_wgsl_emitter *e, const weft_wgsl_value *v) {
    const weft_wgsl_base *b = &v->base;
    const char *fixed =
        offset_is_fixed(v) ? weft__wgsl_text(e->run, "@%lld", (long long)v->offset.constant) : "";
    switch (b->kind) {
    case WEFT_WGSL_IN_BUFFER: return weft__wgsl_text(e->run, "|buffer %d%s", b->pointer, fixed);
    case WEFT_WGSL_IN_LOCAL: return weft__wgsl_text(e->run, "|local %s%s", b->root, fixed);
    case WEFT_WGSL_IN_NUMBERS: return weft__wgsl_text(e->run, "|numbers%s", fixed);
    case WEFT_WGSL_IN_PRIVATE:
        if (!b->variable)
            weft__wgsl_fail(e->run, v->line, "a pointer to %s cannot be passed to a function", b->root);
        return weft__wgsl_text(e->run, "|private %s %s%s", weft__wgsl_type_text(e, b->whole, v->line),
                               b->path, fixed);
    default: weft__wgsl_fail(e->run, v->line, "a pointer is used before it points to anything");
    }
}

/* Makes a parameter known inside of the function. Returns its text in the head, or "". */
static const char *bind_parameter(weft_wgsl_emitter *e, const weft_wgsl_symbol *s,
                                  const weft_wgsl_value *argument, weft_wgsl_buffer *begin) {
    weft_wgsl_meaning *m = weft__wgsl_meaning_of(e, s);
    const char *name = m->name, *head = "";
    m->bound = true;
    m->pointer = (weft_wgsl_value){.type = s->type, .line = s->line};
    if (s->type->kind != WEFT_WGSL_POINTER) {
        const bool copied = s->changed || s->type->kind == WEFT_WGSL_STRUCT;
        m->pointer.place = true;
        m->pointer.base = (weft_wgsl_base){.kind = WEFT_WGSL_IN_PRIVATE,
                                           .root = name,
                                           .variable = name,
                                           .path = "",
                                           .leaf = s->type,
                                           .whole = s->type};
        if (copied) weft__wgsl_put(e, begin, "    var %s = %s_in;\n", name, name);
        return weft__wgsl_text(e->run, "%s%s: %s", name, copied ? "_in" : "",
                               weft__wgsl_type_text(e, s->type, s->line));
    }
    m->pointer.base = argument->base;
    m->pointer.offset = argument->offset;
    if (argument->base.kind == WEFT_WGSL_IN_PRIVATE) {
        head = weft__wgsl_text(e->run, "%s_of: ptr<function, %s>", name,
                               weft__wgsl_type_text(e, argument->base.whole, s->line));
        m->pointer.base.variable = weft__wgsl_text(e->run, "(*%s_of)", name);
        m->pointer.base.root = weft__wgsl_text(e->run, "%s%s", m->pointer.base.variable, argument->base.path);
    }
    const char *offset = NULL;
    if (!offset_is_fixed(argument)) {
        offset = weft__wgsl_text(e->run, "%s%s", name, s->changed ? "_in" : "");
        head = weft__wgsl_text(e->run, "%s%s%s: i32", head, *head ? ", " : "", offset);
    }
    if (s->changed)
        weft__wgsl_put(e, begin, "    var %s: i32 = %s;\n", name,
                       offset ? offset : weft__wgsl_offset_text(e, argument->offset));
    if (s->changed || offset)
        m->pointer.offset = (weft_wgsl_offset){.text = name, .level = WEFT_WGSL_L_PRIMARY};
    return head;
}

static void put_function(weft_wgsl_emitter *e, const weft_wgsl_function *f, weft_wgsl_clone *clone,
                         const weft_wgsl_value *arguments) {
    weft_wgsl_buffer body = {0}, begin = {0}, *out = e->out;
    const weft_wgsl_type *result = e->result;
    const bool group = e->needs.group, item = e->needs.item;
    const int indent = e->indent, copies = e->copies;
    const char *head = "";
    e->out = &body, e->indent = e->copies = 1, e->result = f->type, e->needs.group = e->needs.item = false;
    for (int i = 0; i < f->n_parameters; i++) {
        const char *one = bind_parameter(e, f->parameters[i], &arguments[i], &begin);
        head = weft__wgsl_text(e->run, "%s%s%s", head, *head && *one ? ", " : "", one);
    }
    for (const weft_wgsl_node *s = f->body->list; s; s = s->next) weft__wgsl_statement(e, s);
    clone->group = e->needs.group, clone->item = e->needs.item;
    if (e->needs.group) head = weft__wgsl_text(e->run, "%s%sw_group: vec3<i32>", head, *head ? ", " : "");
    if (e->needs.item) head = weft__wgsl_text(e->run, "%s%sw_item: vec3<i32>", head, *head ? ", " : "");
    const char *to = f->type->kind == WEFT_WGSL_VOID
                         ? ""
                         : weft__wgsl_text(e->run, " -> %s", weft__wgsl_type_text(e, f->type, f->line));
    e->out = out, e->indent = indent, e->copies = copies, e->result = result, e->needs.group = group,
    e->needs.item = item;
    weft__wgsl_put(e, &e->functions, "fn %s(%s)%s {\n%s%s}\n", clone->name, head, to,
                   begin.length ? begin.text : "", body.length ? body.text : "");
}

static weft_wgsl_clone *clone_of(weft_wgsl_emitter *e, const weft_wgsl_function *f,
                                 const weft_wgsl_value *arguments, int line) {
    const char *key = f->name->text, *name = weft__wgsl_safe_name(e, key);
    int same = 0, all = 0;
    for (int i = 0; i < f->n_parameters; i++)
        if (f->parameters[i]->type->kind == WEFT_WGSL_POINTER)
            key = weft__wgsl_text(e->run, "%s%s", key, key_of(e, &arguments[i]));
    for (weft_wgsl_clone *c = e->clones; c; c = c->next, all++) {
        if (!strcmp(c->key, key)) return c;
        same += !strncmp(c->key, f->name->text, f->name->length) &&
                (c->key[f->name->length] == '|' || !c->key[f->name->length]);
    }
    if (all >= CLONES_MOST)
        weft__wgsl_fail(e->run, line, "functions are called with pointers into more than %d different places",
                        CLONES_MOST);
    if (!weft__wgsl_once(e, &e->functions_active, f->name->text))
        weft__wgsl_fail(e->run, line, "function %s calls itself", f->name->text);
    weft_wgsl_clone *c = weft__wgsl_alloc(e->run, sizeof *c);
    *c =
        (weft_wgsl_clone){.key = key, .name = same ? weft__wgsl_text(e->run, "%s_%d", name, same + 1) : name};
    put_function(e, f, c, arguments);
    e->functions_active.count--;
    c->next = e->clones;
    e->clones = c;
    return c;
}

static const char *argument_text(weft_wgsl_emitter *e, const weft_wgsl_value *v) {
    const char *text = "";
    if (v->type->kind != WEFT_WGSL_POINTER) return v->text;
    if (v->base.kind == WEFT_WGSL_IN_PRIVATE) {
        const char *variable = v->base.variable;
        text = variable[0] == '(' ? weft__wgsl_text(e->run, "%.*s", (int)strlen(variable) - 3, variable + 2)
                                  : weft__wgsl_text(e->run, "&%s", variable);
    }
    if (!offset_is_fixed(v))
        text =
            weft__wgsl_text(e->run, "%s%s%s", text, *text ? ", " : "", weft__wgsl_offset_text(e, v->offset));
    return text;
}

weft_wgsl_value weft__wgsl_call(weft_wgsl_emitter *e, const weft_wgsl_node *n) {
    const weft_wgsl_function *f = find(e, n->word);
    weft_wgsl_value result;
    weft__wgsl_enter(e->run, n->line);
    if (!f) {
        if (!weft__wgsl_builtin(e, n, &result))
            weft__wgsl_fail(e->run, n->line, "function %s is not known", n->word->text);
        weft__wgsl_leave(e->run);
        return result;
    }
    weft_wgsl_value *arguments = weft__wgsl_alloc(e->run, ((size_t)f->n_parameters + 1) * sizeof *arguments);
    int count = 0;
    for (const weft_wgsl_node *a = n->list; a; a = a->next) {
        if (count == f->n_parameters || f->kernel)
            weft__wgsl_fail(e->run, n->line, "%s is called with other arguments than it has", f->name->text);
        arguments[count] = weft__wgsl_convert(e, weft__wgsl_expression(e, a), f->parameters[count]->type);
        arguments[count].line = n->line;
        count++;
    }
    if (count != f->n_parameters)
        weft__wgsl_fail(e->run, n->line, "%s is called with other arguments than it has", f->name->text);
    const weft_wgsl_clone *c = clone_of(e, f, arguments, n->line);
    const char *text = "";
    for (int i = 0; i < count; i++) {
        const char *one = argument_text(e, &arguments[i]);
        text = weft__wgsl_text(e->run, "%s%s%s", text, *text && *one ? ", " : "", one);
    }
    if (c->group) text = weft__wgsl_text(e->run, "%s%sw_group", text, *text ? ", " : "");
    if (c->item) text = weft__wgsl_text(e->run, "%s%sw_item", text, *text ? ", " : "");
    e->needs.group = e->needs.group || c->group;
    e->needs.item = e->needs.item || c->item;
    text = weft__wgsl_text(e->run, "%s(%s)", c->name, text);
    result = weft__wgsl_value(f->type, text, WEFT_WGSL_L_PRIMARY, n->line);
    result.heavy = true;
    if (f->type->kind == WEFT_WGSL_VOID) weft__wgsl_line(e, "%s;", text);
    weft__wgsl_leave(e->run);
    return result;
}
