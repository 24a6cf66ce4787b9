/* Parses texts, outputs and tags into a tree, and owns its memory.
 *
 * Must not know: what expressions look like. Read next: run.c. */
#include <stdio.h>
#include <string.h>

#include "base/utf8.h"
#include "text/template/jinja.h"

static const char *const unsupported_tags[] = {
#define FILTER(name, function, parameters, required)
#define TEST(name, function, parameters, required)
#define FUNCTION(name, function, parameters, required)
#define METHOD(object, name, function, parameters, required)
#define NO_FILTER(name)
#define NO_TEST(name)
#define NO_FUNCTION(name)
#define NO_TAG(name) name,
#include "text/template/jinja.def"
};

/* ---- the parts of tags ---- */

static weft_status end_tag(jinja_parser *p) {
    if (p->token->kind != TOKEN_TAG_END) return weft__jinja_unexpected(p, "'%}'");
    p->token++;
    return WEFT_OK;
}

static bool at_tag(const jinja_parser *p, const char *name) {
    return p->token->kind == TOKEN_TAG_BEGIN && weft__jinja_is_name(p->token + 1, name);
}

static weft_status parse_statement(jinja_parser *p, jinja_node **out);

/* Parses statements up to one of these tags, whose name is then the next token. */
static weft_status parse_body(jinja_parser *p, jinja_node *owner, const char *const *ends) {
    jinja_node **last = &owner->first;
    WEFT_TRY(weft__jinja_enter(p));
    for (;;) {
        for (const char *const *end = ends; *end; end++) {
            if (!at_tag(p, *end)) continue;
            p->token++;
            p->nested--;
            return WEFT_OK;
        }
        if (p->token->kind == TOKEN_END) {
            char expected[64];
            snprintf(expected, sizeof expected, "'{%% %s %%}' for the tag that begins here", ends[0]);
            return weft__jinja_fail_at(p->program, owner->at, WEFT_ERR_FORMAT,
                                       "expected %s, found the end of the template", expected);
        }
        WEFT_TRY(parse_statement(p, last));
        while (*last) last = &(*last)->next;
    }
}

/* A variable that is set. */
static weft_status parse_target_name(jinja_parser *p, bool attribute, jinja_node **out) {
    if (p->token->kind != TOKEN_NAME) return weft__jinja_unexpected(p, "the name of a variable");
    static const char *const words[] = {"true", "True", "false", "False", "none", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (weft__jinja_is_name(p->token, words[i]))
            return weft__jinja_unexpected(p, "the name of a variable");
    WEFT_TRY(weft__jinja_node(p, NODE_NAME, out));
    (*out)->value = p->token++->value;
    if (!attribute || !weft__jinja_is_op(p->token, '.')) return WEFT_OK;
    jinja_node *outer;
    p->token++;
    if (p->token->kind != TOKEN_NAME) return weft__jinja_unexpected(p, "the name of an attribute");
    WEFT_TRY(weft__jinja_node(p, NODE_ATTRIBUTE, &outer));
    outer->a = *out;
    outer->value = p->token++->value;
    *out = outer;
    return WEFT_OK;
}

/* "a", "a, b", "(a, b)", and for set also "a.b". */
static weft_status parse_target(jinja_parser *p, bool attribute, jinja_node **out) {
    const bool brackets = weft__jinja_accept(p, '(');
    WEFT_TRY(parse_target_name(p, attribute, out));
    if (weft__jinja_is_op(p->token, ',')) {
        jinja_node *tuple, **last;
        WEFT_TRY(weft__jinja_node(p, NODE_TUPLE, &tuple));
        tuple->first = *out;
        last = &tuple->first->next;
        while (weft__jinja_accept(p, ',')) {
            if (p->token->kind != TOKEN_NAME || weft__jinja_is_name(p->token, "in")) break;
            WEFT_TRY(parse_target_name(p, attribute, last));
            last = &(*last)->next;
        }
        *out = tuple;
    }
    return brackets ? weft__jinja_expect(p, ')') : WEFT_OK;
}

/* ---- tags. The name of the tag is behind the parser. ---- */

static weft_status parse_if(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endif", "elif", "else", NULL}, *const last_end[] = {"endif", NULL};
    for (;;) {
        WEFT_TRY(weft__jinja_tuple(p, false, &node->a));
        WEFT_TRY(end_tag(p));
        WEFT_TRY(parse_body(p, node, ends));
        if (!weft__jinja_is_name(p->token, "elif")) break;
        WEFT_TRY(weft__jinja_node(p, NODE_IF, &node->b));
        node = node->b;
        p->token++;
    }
    if (weft__jinja_is_name(p->token, "else")) {
        WEFT_TRY(weft__jinja_node(p, NODE_BLOCK, &node->b));
        p->token++;
        WEFT_TRY(end_tag(p));
        WEFT_TRY(parse_body(p, node->b, last_end));
    }
    p->token++;
    return end_tag(p);
}

static weft_status parse_for(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endfor", "else", NULL}, *const last_end[] = {"endfor", NULL};
    WEFT_TRY(parse_target(p, false, &node->a));
    WEFT_TRY(weft__jinja_expect_name(p, "in"));
    WEFT_TRY(weft__jinja_tuple(p, false, &node->b));
    if (weft__jinja_is_name(p->token, "if")) {
        p->token++;
        WEFT_TRY(weft__jinja_expression(p, &node->c));
    }
    if (weft__jinja_is_name(p->token, "recursive"))
        return weft__jinja_fail_at(p->program, p->token->at, WEFT_ERR_UNSUPPORTED,
                                   "recursive loops are not supported");
    WEFT_TRY(end_tag(p));
    p->loops++;
    WEFT_TRY(parse_body(p, node, ends));
    p->loops--;
    if (weft__jinja_is_name(p->token, "else")) {
        WEFT_TRY(weft__jinja_node(p, NODE_BLOCK, &node->d));
        p->token++;
        WEFT_TRY(end_tag(p));
        WEFT_TRY(parse_body(p, node->d, last_end));
    }
    p->token++;
    return end_tag(p);
}

static weft_status parse_set(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endset", NULL};
    WEFT_TRY(parse_target(p, true, &node->a));
    if (weft__jinja_accept(p, '=')) {
        WEFT_TRY(weft__jinja_tuple(p, true, &node->b));
        return end_tag(p);
    }
    node->kind = NODE_SET_BLOCK;
    if (weft__jinja_is_op(p->token, '|')) {
        jinja_node *hole;
        WEFT_TRY(weft__jinja_node(p, NODE_HOLE, &hole));
        WEFT_TRY(weft__jinja_filters(p, hole, false, &node->b));
    }
    WEFT_TRY(end_tag(p));
    WEFT_TRY(parse_body(p, node, ends));
    p->token++;
    return end_tag(p);
}

static weft_status parse_filter(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endfilter", NULL};
    jinja_node *hole;
    WEFT_TRY(weft__jinja_node(p, NODE_HOLE, &hole));
    WEFT_TRY(weft__jinja_filters(p, hole, true, &node->b));
    WEFT_TRY(end_tag(p));
    WEFT_TRY(parse_body(p, node, ends));
    p->token++;
    return end_tag(p);
}

static weft_status parse_macro(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endmacro", NULL};
    jinja_node **last = &node->a, *name;
    WEFT_TRY(parse_target_name(p, false, &name));
    node->value = name->value;
    WEFT_TRY(weft__jinja_expect(p, '('));
    while (!weft__jinja_accept(p, ')')) {
        if (node->a) {
            WEFT_TRY(weft__jinja_expect(p, ','));
            if (weft__jinja_accept(p, ')')) break;
        }
        WEFT_TRY(parse_target_name(p, false, last));
        (*last)->kind = NODE_KEYWORD;
        if (weft__jinja_accept(p, '=')) WEFT_TRY(weft__jinja_expression(p, &(*last)->a));
        last = &(*last)->next;
    }
    WEFT_TRY(end_tag(p));
    const int loops = p->loops;
    p->loops = 0; /* break does not leave a macro */
    WEFT_TRY(parse_body(p, node, ends));
    p->loops = loops;
    p->token++;
    return end_tag(p);
}

static weft_status parse_generation(jinja_parser *p, jinja_node *node) {
    static const char *const ends[] = {"endgeneration", NULL};
    const int loops = p->loops;
    p->program->has_generations = true;
    WEFT_TRY(end_tag(p));
    p->loops = 0;
    WEFT_TRY(parse_body(p, node, ends));
    p->loops = loops;
    p->token++;
    return end_tag(p);
}

static weft_status parse_jump(jinja_parser *p, jinja_node *node) {
    if (p->loops == 0)
        return weft__jinja_fail_at(p->program, node->at, WEFT_ERR_FORMAT,
                                   "break and continue belong into a loop");
    return end_tag(p);
}

static weft_status unknown_tag(jinja_parser *p, const jinja_token *name) {
    static const char *const inner[] = {"elif",   "else",     "endif",         "endfor",
                                        "endset", "endmacro", "endgeneration", "endfilter"};
    const jinja_string s = name->value.as.string;
    const int bytes = (int)(s.bytes < 40 ? s.bytes : 40);
    for (size_t i = 0; i < sizeof inner / sizeof *inner; i++)
        if (weft__jinja_same(s, inner[i]))
            return weft__jinja_fail_at(p->program, name->at, WEFT_ERR_FORMAT,
                                       "the tag '%.*s' has no tag before it that it ends", bytes, s.text);
    const char *how = "not known";
    for (size_t i = 0; i < sizeof unsupported_tags / sizeof *unsupported_tags; i++)
        if (weft__jinja_same(s, unsupported_tags[i])) how = "not supported";
    return weft__jinja_fail_at(
        p->program, name->at, WEFT_ERR_UNSUPPORTED,
        "the tag '%.*s' is %s. Supported are: if, for, set, macro, filter, generation, break, "
        "continue",
        bytes, s.text, how);
}

static weft_status parse_tag(jinja_parser *p, jinja_node **out) {
    static const struct {
        const char *name;
        jinja_node_kind kind;
        weft_status (*parse)(jinja_parser *p, jinja_node *node);
    } tags[] = {
        {"if", NODE_IF, parse_if},
        {"for", NODE_FOR, parse_for},
        {"set", NODE_SET, parse_set},
        {"macro", NODE_MACRO, parse_macro},
        {"break", NODE_BREAK, parse_jump},
        {"continue", NODE_CONTINUE, parse_jump},
        {"filter", NODE_FILTERED, parse_filter},
        {"generation", NODE_GENERATION, parse_generation},
    };
    const jinja_token *name = p->token;
    if (name->kind != TOKEN_NAME) return weft__jinja_unexpected(p, "the name of a tag");
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++) {
        if (!weft__jinja_is_name(name, tags[i].name)) continue;
        WEFT_TRY(weft__jinja_node(p, tags[i].kind, out));
        p->token++;
        return tags[i].parse(p, *out);
    }
    return unknown_tag(p, name);
}

static weft_status parse_statement(jinja_parser *p, jinja_node **out) {
    const jinja_token *t = p->token;
    if (t->kind == TOKEN_TAG_BEGIN) {
        p->token++;
        return parse_tag(p, out);
    }
    WEFT_TRY(weft__jinja_node(p, t->kind == TOKEN_TEXT ? NODE_TEXT : NODE_OUTPUT, out));
    p->token++;
    if (t->kind == TOKEN_TEXT) {
        (*out)->value = t->value;
        return WEFT_OK;
    }
    WEFT_TRY(weft__jinja_tuple(p, true, &(*out)->a));
    if (p->token->kind != TOKEN_OUTPUT_END) return weft__jinja_unexpected(p, "'}}'");
    p->token++;
    return WEFT_OK;
}

weft_status weft__jinja_statements(jinja_parser *p, jinja_node *block) {
    jinja_node **last = &block->first;
    while (p->token->kind != TOKEN_END) {
        WEFT_TRY(parse_statement(p, last));
        while (*last) last = &(*last)->next;
    }
    return WEFT_OK;
}

/* ---- programs ---- */

/* Copies the source with "\n" as the only newline, and without one at the end, as jinja2 does. */
static weft_status copy_source(jinja_program *program, const char *source, size_t bytes) {
    char *copy = weft__arena_alloc(&program->arena, bytes + 1);
    size_t used = 0;
    if (!copy) return weft__fail_oom(program->ctx, bytes + 1, "a template");
    for (size_t i = 0; i < bytes; i++) {
        if (source[i] == '\r' && i + 1 < bytes && source[i + 1] == '\n') i++;
        copy[used++] = source[i] == '\r' ? '\n' : source[i];
    }
    if (used && copy[used - 1] == '\n') used--;
    copy[used] = '\0';
    program->source = copy;
    program->bytes = used;
    for (size_t at = 0; at < used;) {
        uint32_t point;
        const int taken = weft__utf8_read(copy + at, used - at, &point);
        if (taken <= 0)
            return weft__jinja_fail_at(program, at, WEFT_ERR_FORMAT, "the template is not UTF-8 here");
        at += (size_t)taken;
    }
    return WEFT_OK;
}

weft_status weft__jinja_parse(jinja_program *program, weft_context *ctx, const char *name, const char *source,
                              size_t bytes) {
    *program = (jinja_program){.ctx = ctx, .name = "template"};
    weft__arena_init(&program->arena, ctx);
    char *own = weft__arena_alloc(&program->arena, strlen(name) + 1);
    if (!own) return weft__fail_oom(ctx, strlen(name) + 1, "the name of a template");
    program->name = strcpy(own, name);
    if (bytes > JINJA_SOURCE_MAX)
        return weft__fail(ctx, WEFT_ERR_UNSUPPORTED, "%s: %zu bytes; a template has at most %zu", name, bytes,
                          JINJA_SOURCE_MAX);
    WEFT_TRY(copy_source(program, source, bytes));
    jinja_token *tokens;
    WEFT_TRY(weft__jinja_lex(program, &tokens));
    jinja_parser parser = {.program = program, .token = tokens};
    weft_status status = weft__jinja_node(&parser, NODE_BLOCK, &program->body);
    if (status == WEFT_OK) status = weft__jinja_statements(&parser, program->body);
    weft__free(ctx, tokens);
    return status;
}

void weft__jinja_free(jinja_program *program) { weft__arena_free(&program->arena); }
