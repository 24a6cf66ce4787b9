/* Runs the statements of a template: scopes, loops, macros, and the limits of a run.
 *
 * A loop's body, a macro and the body of a set block have a scope of their own, as in jinja2; "if" has none.
 *
 * Must not know: operators, filters. Read next: evaluate.c. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "text/template/jinja.h"

struct jinja_scope {
    jinja_scope *parent;
    jinja_pair *variables; /* the key is a string */
    size_t count, capacity;
};

/* ---- the run ---- */

void weft__jinja_open(jinja_run *run, const jinja_program *program, weft_context *ctx, int64_t time) {
    *run = (jinja_run){.ctx = ctx, .program = program, .time = time};
    weft__arena_init(&run->arena, ctx);
    run->out = &run->result;
}

void weft__jinja_close(jinja_run *run) { weft__arena_free(&run->arena); }

weft_status weft__jinja_fail(jinja_run *run, weft_status status, const char *fmt, ...) {
    char text[WEFT_ERROR_SIZE];
    va_list args;
    va_start(args, fmt);
    const int wanted = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    (void)wanted; /* a text that is too long is cut */
    run->status = status;
    if (run->program && run->at) return weft__jinja_fail_at(run->program, run->at->at, status, "%s", text);
    return weft__fail(run->ctx, status, "%s: %s", run->program ? run->program->name : "variables of a chat",
                      text);
}

weft_status weft__jinja_work(jinja_run *run, uint64_t steps) {
    run->steps += steps;
    if (run->steps <= JINJA_STEPS_MAX) return WEFT_OK;
    return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "the template takes more than %llu steps",
                            (unsigned long long)JINJA_STEPS_MAX);
}

void *weft__jinja_take(jinja_run *run, size_t bytes) {
    if (bytes > JINJA_MEMORY_MAX || run->memory > JINJA_MEMORY_MAX - bytes) {
        (void)weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED, "the template takes more than %zu MiB of memory",
                               JINJA_MEMORY_MAX >> 20);
        return NULL;
    }
    run->memory += bytes + 16;
    run->steps += bytes / 64;
    void *p = weft__arena_alloc(&run->arena, bytes);
    if (!p) run->status = weft__fail_oom(run->ctx, bytes, "a value of a template");
    return p;
}

weft_status weft__jinja_deeper(jinja_run *run) {
    if (++run->depth <= JINJA_DEPTH_MAX) return WEFT_OK;
    return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED,
                            "more than %d levels of expressions, blocks and macros", JINJA_DEPTH_MAX);
}

/* ---- scopes ---- */

weft_status weft__jinja_scope_enter(jinja_run *run, jinja_scope *parent, jinja_scope **previous) {
    jinja_scope *scope = weft__jinja_take(run, sizeof *scope);
    if (!scope) return run->status;
    *previous = run->scope;
    scope->parent = parent;
    run->scope = scope;
    return WEFT_OK;
}

static bool same_name(jinja_string a, jinja_string b) {
    return a.bytes == b.bytes && memcmp(a.text, b.text, a.bytes) == 0;
}

weft_status weft__jinja_define(jinja_run *run, jinja_string name, const jinja_value *value) {
    jinja_scope *scope = run->scope;
    jinja_scope *previous = NULL;
    if (!scope) {
        WEFT_TRY(weft__jinja_scope_enter(run, NULL, &previous));
        scope = run->scope;
    }
    WEFT_TRY(weft__jinja_work(run, scope->count / 16));
    for (size_t i = 0; i < scope->count; i++) {
        if (!same_name(scope->variables[i].key.as.string, name)) continue;
        scope->variables[i].value = *value;
        return WEFT_OK;
    }
    if (scope->count == scope->capacity) {
        const size_t capacity = scope->capacity ? 2 * scope->capacity : 4;
        jinja_pair *more = weft__jinja_take(run, capacity * sizeof *more);
        if (!more) return run->status;
        if (scope->count) memcpy(more, scope->variables, scope->count * sizeof *more);
        scope->variables = more;
        scope->capacity = capacity;
    }
    scope->variables[scope->count++] = (jinja_pair){weft__jinja_text(name.text, name.bytes), *value};
    return WEFT_OK;
}

weft_status weft__jinja_lookup(jinja_run *run, jinja_string name, jinja_value *out) {
    for (const jinja_scope *scope = run->scope; scope; scope = scope->parent) {
        WEFT_TRY(weft__jinja_work(run, 1 + scope->count / 16));
        for (size_t i = 0; i < scope->count; i++) {
            if (!same_name(scope->variables[i].key.as.string, name)) continue;
            *out = scope->variables[i].value;
            return WEFT_OK;
        }
    }
    const int function = weft__jinja_entry_of(weft__jinja_function_table, name);
    *out = weft__jinja_undefined(name);
    if (function >= 0) *out = (jinja_value){.kind = JINJA_FUNCTION, .as.function = function};
    return WEFT_OK;
}

/* ---- set ---- */

static weft_status set_attribute(jinja_run *run, const jinja_node *target, const jinja_value *value) {
    jinja_value object;
    const jinja_string name = target->value.as.string;
    WEFT_TRY(weft__jinja_evaluate(run, target->a, &object));
    run->at = target;
    if (object.kind != JINJA_NAMESPACE)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT,
                                "only an attribute of a namespace can be set, but this is %s",
                                weft__jinja_kind_name(&object));
    if (name.text[0] == '_')
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "a name in a namespace may not begin with '_'");
    return weft__jinja_put(run, object.as.dict, &target->value, value);
}

static weft_status assign(jinja_run *run, const jinja_node *target, const jinja_value *value) {
    if (target->kind == NODE_NAME) return weft__jinja_define(run, target->value.as.string, value);
    if (target->kind == NODE_ATTRIBUTE) return set_attribute(run, target, value);
    const jinja_value *items;
    size_t count, targets = 0;
    run->at = target;
    WEFT_TRY(weft__jinja_items(run, value, &items, &count));
    for (const jinja_node *n = target->first; n; n = n->next) targets++;
    if (count != targets)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "%zu values for %zu variables", count, targets);
    for (const jinja_node *n = target->first; n; n = n->next) WEFT_TRY(assign(run, n, items++));
    return WEFT_OK;
}

/* Runs statements in a scope of their own, into a text of their own. */
static weft_status capture(jinja_run *run, const jinja_node *first, jinja_value *out) {
    jinja_text text = {0}, *before = run->out;
    jinja_scope *scope = NULL;
    WEFT_TRY(weft__jinja_scope_enter(run, run->scope, &scope));
    run->out = &text;
    WEFT_TRY(weft__jinja_statements_run(run, first));
    run->out = before;
    run->scope = scope;
    return weft__jinja_string(run, &text, out);
}

static weft_status run_set(jinja_run *run, const jinja_node *node) {
    jinja_value value;
    if (node->kind == NODE_SET) {
        WEFT_TRY(weft__jinja_evaluate(run, node->b, &value));
        return assign(run, node->a, &value);
    }
    WEFT_TRY(capture(run, node->first, &value));
    if (node->b) {
        run->hole = value;
        WEFT_TRY(weft__jinja_evaluate(run, node->b, &value));
    }
    return assign(run, node->a, &value);
}

/* ---- loops ---- */

/* Keeps the items for which the condition of a loop holds. */
static weft_status select_items(jinja_run *run, const jinja_node *node, const jinja_value **items,
                                size_t *count) {
    jinja_value kept;
    WEFT_TRY(weft__jinja_list(run, JINJA_LIST, *count, &kept));
    for (size_t i = 0; i < *count; i++) {
        jinja_scope *scope = NULL;
        jinja_value holds;
        WEFT_TRY(weft__jinja_scope_enter(run, run->scope, &scope));
        WEFT_TRY(assign(run, node->a, &(*items)[i]));
        WEFT_TRY(weft__jinja_evaluate(run, node->c, &holds));
        run->scope = scope;
        if (weft__jinja_truth(&holds)) WEFT_TRY(weft__jinja_append(run, &kept, &(*items)[i]));
    }
    *items = kept.as.list->items;
    *count = kept.as.list->count;
    return WEFT_OK;
}

static weft_status run_for(jinja_run *run, const jinja_node *node) {
    jinja_value list;
    const jinja_value *items;
    size_t count;
    jinja_scope *scope = run->scope;
    WEFT_TRY(weft__jinja_evaluate(run, node->b, &list));
    run->at = node->b;
    WEFT_TRY(weft__jinja_items(run, &list, &items, &count));
    if (node->c) WEFT_TRY(select_items(run, node, &items, &count));
    jinja_loop *loop = weft__jinja_take(run, sizeof *loop);
    if (!loop) return run->status;
    *loop = (jinja_loop){.items = items, .count = count, .depth = 1};
    const jinja_value value = {.kind = JINJA_LOOP, .as.loop = loop};
    for (size_t i = 0; i < count && run->flow != FLOW_BREAK; i++) {
        run->flow = FLOW_ON;
        loop->index = i;
        WEFT_TRY(weft__jinja_scope_enter(run, scope, &(jinja_scope *){NULL}));
        WEFT_TRY(weft__jinja_define(run, weft__jinja_literal("loop"), &value));
        WEFT_TRY(assign(run, node->a, &items[i]));
        WEFT_TRY(weft__jinja_statements_run(run, node->first));
    }
    run->flow = FLOW_ON;
    if (count == 0 && node->d) {
        WEFT_TRY(weft__jinja_scope_enter(run, scope, &(jinja_scope *){NULL}));
        WEFT_TRY(weft__jinja_statements_run(run, node->d->first));
    }
    run->scope = scope;
    return WEFT_OK;
}

/* ---- macros ---- */

static weft_status define_macro(jinja_run *run, const jinja_node *node) {
    jinja_macro *macro = weft__jinja_take(run, sizeof *macro);
    if (!macro) return run->status;
    *macro = (jinja_macro){node, run->scope};
    const jinja_value value = {.kind = JINJA_MACRO, .as.macro = macro};
    return weft__jinja_define(run, node->value.as.string, &value);
}

/* Sets the parameters of a macro from its arguments, its defaults, or to undefined. */
static weft_status macro_bind(jinja_run *run, const jinja_node *node, const jinja_arguments *given) {
    size_t index = 0, used = 0;
    for (const jinja_node *n = node->a; n; n = n->next, index++) {
        jinja_value value = weft__jinja_undefined(n->value.as.string);
        bool found = index < given->positional;
        if (found) value = given->values[index];
        for (size_t i = 0; i < given->named; i++) {
            if (!same_name(given->names[i], n->value.as.string)) continue;
            if (found)
                return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the macro got the argument '%.*s' twice",
                                        (int)given->names[i].bytes, given->names[i].text);
            value = given->values[given->positional + i];
            found = true;
            used++;
        }
        if (!found && n->a) WEFT_TRY(weft__jinja_evaluate(run, n->a, &value));
        WEFT_TRY(weft__jinja_define(run, n->value.as.string, &value));
    }
    if (given->positional > index || used < given->named)
        return weft__jinja_fail(run, WEFT_ERR_FORMAT, "the macro '%.*s' has no such argument, or fewer",
                                (int)node->value.as.string.bytes, node->value.as.string.text);
    return WEFT_OK;
}

weft_status weft__jinja_call_macro(jinja_run *run, const jinja_macro *macro, const jinja_arguments *arguments,
                                   jinja_value *out) {
    jinja_scope *scope = NULL;
    WEFT_TRY(weft__jinja_deeper(run));
    WEFT_TRY(weft__jinja_scope_enter(run, macro->scope, &scope));
    WEFT_TRY(macro_bind(run, macro->node, arguments));
    WEFT_TRY(capture(run, macro->node->first, out));
    run->scope = scope;
    run->depth--;
    return WEFT_OK;
}

/* ---- statements ---- */

/* Notes where the text of an answer lies. A text inside another block has no place yet. */
static weft_status run_generation(jinja_run *run, const jinja_node *node) {
    jinja_scope *scope = NULL;
    const bool placed = run->out == &run->result;
    const size_t begin = run->out->bytes;
    WEFT_TRY(weft__jinja_scope_enter(run, run->scope, &scope));
    WEFT_TRY(weft__jinja_statements_run(run, node->first));
    run->scope = scope;
    run->at = node;
    if (!run->tracks) return WEFT_OK;
    if (!placed)
        return weft__jinja_fail(run, WEFT_ERR_UNSUPPORTED,
                                "a generation block in a macro or a set block is not supported");
    if (run->generation_count == run->generation_capacity) {
        const size_t capacity = run->generation_capacity ? 2 * run->generation_capacity : 16;
        jinja_range *more = weft__jinja_take(run, capacity * sizeof *more);
        if (!more) return run->status;
        if (run->generation_count) memcpy(more, run->generations, run->generation_count * sizeof *more);
        run->generations = more;
        run->generation_capacity = capacity;
    }
    run->generations[run->generation_count++] = (jinja_range){begin, run->out->bytes};
    return WEFT_OK;
}

static weft_status run_if(jinja_run *run, const jinja_node *node) {
    for (; node && node->kind == NODE_IF; node = node->b) {
        jinja_value condition;
        WEFT_TRY(weft__jinja_evaluate(run, node->a, &condition));
        if (weft__jinja_truth(&condition)) break;
    }
    return node ? weft__jinja_statements_run(run, node->first) : WEFT_OK;
}

static weft_status run_output(jinja_run *run, const jinja_node *node) {
    jinja_value value;
    WEFT_TRY(weft__jinja_evaluate(run, node->a, &value));
    run->at = node->a;
    return weft__jinja_print(run, run->out, &value, false);
}

static weft_status run_filtered(jinja_run *run, const jinja_node *node) {
    jinja_value value;
    WEFT_TRY(capture(run, node->first, &value));
    run->hole = value;
    WEFT_TRY(weft__jinja_evaluate(run, node->b, &value));
    return weft__jinja_print(run, run->out, &value, false);
}

static weft_status run_statement(jinja_run *run, const jinja_node *node) {
    switch (node->kind) {
    case NODE_TEXT:
        return weft__jinja_write(run, run->out, node->value.as.string.text, node->value.as.string.bytes);
    case NODE_OUTPUT: return run_output(run, node);
    case NODE_IF: return run_if(run, node);
    case NODE_FOR: return run_for(run, node);
    case NODE_SET:
    case NODE_SET_BLOCK: return run_set(run, node);
    case NODE_FILTERED: return run_filtered(run, node);
    case NODE_MACRO: return define_macro(run, node);
    case NODE_GENERATION: return run_generation(run, node);
    case NODE_BREAK: run->flow = FLOW_BREAK; return WEFT_OK;
    case NODE_CONTINUE: run->flow = FLOW_CONTINUE; return WEFT_OK;
    default: return weft__jinja_fail(run, WEFT_ERR_INTERNAL, "a node that is no statement");
    }
}

weft_status weft__jinja_statements_run(jinja_run *run, const jinja_node *first) {
    WEFT_TRY(weft__jinja_deeper(run));
    for (const jinja_node *n = first; n && run->flow == FLOW_ON; n = n->next) {
        run->at = n;
        WEFT_TRY(weft__jinja_work(run, 1));
        WEFT_TRY(run_statement(run, n));
    }
    run->depth--;
    return WEFT_OK;
}

weft_status weft__jinja_render(jinja_run *run) {
    jinja_scope *scope = NULL; /* sets of the template do not change the variables that were given */
    WEFT_TRY(weft__jinja_scope_enter(run, run->scope, &scope));
    return weft__jinja_statements_run(run, run->program->body->first);
}
