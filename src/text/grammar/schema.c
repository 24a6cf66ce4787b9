/* Reads a JSON schema (draft 2020-12) into a grammar: which keywords there are, choices and references. A
 * keyword that Weft does not know is an error, since ignoring it would give values that are not valid. Must
 * not know: what a type allows. Read next: schema_types.c. */
#include <stdlib.h>
#include <string.h>

#include "base/limits.h"
#include "text/grammar/schema.h"

/* What a keyword is for. */
typedef enum keyword_group {
    GROUP_NOTE = 1 << 0, /* says nothing about values */
    GROUP_TYPE = 1 << 1,
    GROUP_STRING = 1 << 2,
    GROUP_ARRAY = 1 << 3,
    GROUP_OBJECT = 1 << 4,
    GROUP_CONSTANT = 1 << 5,
    GROUP_CHOICE = 1 << 6,
    GROUP_REFERENCE = 1 << 7,
    GROUP_NUMBER = 1 << 8
} keyword_group;

static const struct {
    const char *name;
    keyword_group group;
} keywords[] = {{"type", GROUP_TYPE},
                {"properties", GROUP_OBJECT},
                {"required", GROUP_OBJECT},
                {"additionalProperties", GROUP_OBJECT},
                {"items", GROUP_ARRAY},
                {"minItems", GROUP_ARRAY},
                {"maxItems", GROUP_ARRAY},
                {"minLength", GROUP_STRING},
                {"maxLength", GROUP_STRING},
                {"minimum", GROUP_NUMBER},
                {"maximum", GROUP_NUMBER},
                {"exclusiveMinimum", GROUP_NUMBER},
                {"exclusiveMaximum", GROUP_NUMBER},
                {"enum", GROUP_CONSTANT},
                {"const", GROUP_CONSTANT},
                {"anyOf", GROUP_CHOICE},
                {"oneOf", GROUP_CHOICE},
                {"allOf", GROUP_CHOICE},
                {"$ref", GROUP_REFERENCE},
                {"$defs", GROUP_NOTE},
                {"definitions", GROUP_NOTE},
                {"title", GROUP_NOTE},
                {"description", GROUP_NOTE},
                {"default", GROUP_NOTE},
                {"examples", GROUP_NOTE},
                {"deprecated", GROUP_NOTE},
                {"readOnly", GROUP_NOTE},
                {"writeOnly", GROUP_NOTE},
                {"$comment", GROUP_NOTE},
                {"$schema", GROUP_NOTE},
                {"$id", GROUP_NOTE}};

weft_status weft__schema_fail(const weft__schema *s, const char *fmt, ...) {
    char what[500];
    va_list args;
    va_start(args, fmt);
    vsnprintf(what, sizeof what, fmt, args);
    va_end(args);
    return weft__fail(s->ctx, WEFT_ERR_FORMAT, "%s: %s: %s", s->name, s->place, what);
}

/* ---- places ---- */

/* Adds a part to the place, if it fits; a part that does not fit is left out. */
static void place_add(weft__schema *s, const char *part) {
    const int n = snprintf(s->place + s->place_length, sizeof s->place - s->place_length, "/%s", part);
    if (n > 0 && (size_t)n < sizeof s->place - s->place_length)
        s->place_length += (size_t)n;
    else
        s->place[s->place_length] = '\0';
}

static void place_cut(weft__schema *s, size_t length) {
    s->place_length = length;
    s->place[length] = '\0';
}

/* ---- references ---- */

/* Reads one step of a JSON pointer (RFC 6901) within a URI: %41 is A, ~1 a slash, ~0 a tilde. Returns what
 * follows the step; NULL if it does not fit. */
static const char *pointer_step(const char *at, char *out, size_t room) {
    size_t n = 0;
    while (*at && *at != '/') {
        char c = *at++;
        const char hex[3] = {c == '%' ? at[0] : '\0', c == '%' && at[0] ? at[1] : '\0', '\0'};
        if (c == '%' && strlen(hex) == 2 && strspn(hex, "0123456789abcdefABCDEF") == 2) {
            c = (char)(unsigned char)strtoul(hex, NULL, 16);
            at += 2;
        }
        if (c == '~' && (*at == '0' || *at == '1')) c = *at++ == '0' ? '~' : '/';
        if (n + 1 >= room) return NULL;
        out[n++] = c;
    }
    out[n] = '\0';
    return at;
}

/* Returns the value that "#" or "#/..." names; NULL if there is none. */
static const json_t *pointer_find(const json_t *at, const char *ref) {
    char step[256];
    for (const char *rest = ref + 1; at && *rest;) {
        if (*rest != '/' || !(rest = pointer_step(rest + 1, step, sizeof step))) return NULL;
        const bool number = step[0] && strspn(step, "0123456789") == strlen(step) && strlen(step) < 9;
        if (json_is_array(at))
            at = number ? json_array_get(at, strtoul(step, NULL, 10)) : NULL;
        else
            at = json_object_get(at, step);
    }
    return at;
}

/* Sets the node of the schema that a $ref names. The schema itself is read later: it may name this one. */
static weft_status read_reference(weft__schema *s, const json_t *json, uint32_t *node) {
    const char *ref = json_string_value(json_object_get(json, "$ref"));
    if (!ref || ref[0] != '#')
        return weft__schema_fail(s, "$ref must name a part of the same schema, such as \"#/$defs/NAME\"");
    const json_t *target = pointer_find(s->root, ref);
    if (!target) return weft__schema_fail(s, "$ref: the schema has no '%.100s'", ref);
    for (size_t i = 0; i < s->target_count; i++)
        if (s->targets[i].json == target) {
            *node = s->targets[i].node;
            return WEFT_OK;
        }
    WEFT_TRY(weft__grammar_node(s->g, (weft__rule){0}, node));
    if (!weft__grow(s->ctx, &s->targets, &s->target_room, s->target_count, sizeof *s->targets))
        return weft__fail_oom(s->ctx, sizeof *s->targets, "a schema");
    s->targets[s->target_count++] = (weft__target){target, ref, *node};
    return WEFT_OK;
}

/* ---- choices ---- */

static weft_status read_choice(weft__schema *s, const json_t *json, uint32_t *node) {
    static const char *const names[] = {"anyOf", "oneOf", "allOf"};
    const char *keyword = NULL;
    for (size_t i = 0; i < 3; i++) {
        if (!json_object_get(json, names[i])) continue;
        if (keyword)
            return weft__schema_fail(s, "'%s' beside '%s': Weft takes one of them", names[i], keyword);
        keyword = names[i];
    }
    const json_t *list = json_object_get(json, keyword);
    const size_t count = json_array_size(list);
    if (count == 0) return weft__schema_fail(s, "'%s' must be a list of schemas", keyword);
    if (strcmp(keyword, "allOf") == 0 && count > 1)
        return weft__schema_fail(s, "'allOf': Weft takes it with one schema only");
    uint32_t *all = weft__array(s->ctx, count, sizeof *all);
    weft_status status = all ? WEFT_OK : weft__fail_oom(s->ctx, count * sizeof *all, "a schema");
    for (size_t i = 0; i < count && status == WEFT_OK; i++) {
        char number[24];
        snprintf(number, sizeof number, "%zu", i);
        status = weft__schema_read(s, json_array_get(list, i), keyword, number, &all[i]);
    }
    if (status == WEFT_OK) status = weft__grammar_node(s->g, (weft__rule){0}, node);
    if (status == WEFT_OK) status = weft__grammar_choice(s->g, *node, all, count);
    weft__free(s->ctx, all);
    return status;
}

/* ---- a schema ---- */

/* Collects the groups of a schema's keywords. */
static weft_status read_keywords(const weft__schema *s, const json_t *json, unsigned *groups) {
    const char *key;
    json_t *value;
    *groups = 0;
    json_object_foreach((json_t *)(uintptr_t)json, key, value) {
        size_t i = 0;
        const size_t count = sizeof keywords / sizeof *keywords;
        while (i < count && strcmp(keywords[i].name, key) != 0) i++;
        if (i == count)
            return weft__schema_fail(
                s,
                "Weft does not know the keyword '%.60s'. It knows type, properties, required, "
                "additionalProperties, items, minItems, maxItems, minLength, maxLength, minimum, maximum, "
                "exclusiveMinimum, exclusiveMaximum, enum, const, anyOf, oneOf, $ref, $defs, and annotations "
                "such as title, description, default and examples",
                key);
        *groups |= keywords[i].group;
    }
    *groups &= ~(unsigned)GROUP_NOTE;
    return WEFT_OK;
}

/* Makes the node of a schema that is an object. */
static weft_status read_object(weft__schema *s, const json_t *json, uint32_t *node) {
    unsigned groups, types;
    WEFT_TRY(read_keywords(s, json, &groups));
    WEFT_TRY(weft__schema_types(s, json, &types));
    if ((groups & GROUP_REFERENCE) && groups != GROUP_REFERENCE)
        return weft__schema_fail(s, "beside '$ref' Weft takes annotations only");
    if ((groups & GROUP_CHOICE) && groups != GROUP_CHOICE)
        return weft__schema_fail(s, "beside 'anyOf', 'oneOf' or 'allOf' Weft takes annotations only");
    if ((groups & GROUP_CONSTANT) && (groups & ~(unsigned)(GROUP_CONSTANT | GROUP_TYPE)))
        return weft__schema_fail(s, "beside 'enum' or 'const' Weft takes 'type' and annotations only");
    if (groups & GROUP_REFERENCE) return read_reference(s, json, node);
    if (groups & GROUP_CHOICE) return read_choice(s, json, node);
    if (groups & GROUP_CONSTANT) return weft__schema_constants(s, json, types, node);
    /* without "type" the keywords tell which types are meant */
    if (!(groups & GROUP_TYPE) && (groups & GROUP_STRING)) types |= WEFT__TYPE_STRING;
    if (!(groups & GROUP_TYPE) && (groups & GROUP_NUMBER)) types |= WEFT__TYPE_NUMBER;
    if (!(groups & GROUP_TYPE) && (groups & GROUP_ARRAY)) types |= WEFT__TYPE_ARRAY;
    if (!(groups & GROUP_TYPE) && (groups & GROUP_OBJECT)) types |= WEFT__TYPE_OBJECT;
    return types ? weft__schema_typed(s, json, types, node) : weft__schema_any(s, node);
}

weft_status weft__schema_any(weft__schema *s, uint32_t *node) {
    uint32_t container;
    if (s->any == WEFT__NONE) WEFT_TRY(weft__grammar_any(s->g, &s->any, &container));
    *node = s->any;
    return WEFT_OK;
}

weft_status weft__schema_read(weft__schema *s, const json_t *json, const char *keyword, const char *member,
                              uint32_t *node) {
    const size_t length = s->place_length;
    if (keyword) place_add(s, keyword);
    if (member) place_add(s, member);
    weft_status status;
    if (json_is_true(json))
        status = weft__schema_any(s, node);
    else if (json_is_false(json))
        status = weft__grammar_node(s->g, (weft__rule){0}, node);
    else if (json_is_object(json))
        status = read_object(s, json, node);
    else
        status = weft__schema_fail(s, "a schema must be an object, true or false");
    place_cut(s, length);
    return status;
}

/* Reads the schema, then those that references name. */
static weft_status read_all(weft__schema *s) {
    WEFT_TRY(weft__schema_read(s, s->root, NULL, NULL, &s->g->root));
    for (size_t i = 0; i < s->target_count; i++) {
        uint32_t node;
        const weft__target target = s->targets[i];
        snprintf(s->place, sizeof s->place, "%.200s", target.ref);
        s->place_length = strlen(s->place);
        WEFT_TRY(weft__schema_read(s, target.json, NULL, NULL, &node));
        WEFT_TRY(weft__grammar_choice(s->g, target.node, &node, 1));
    }
    return WEFT_OK;
}

static weft_status parse_schema(weft__schema *s, const char *schema, size_t bytes) {
    static const weft__json_limits limits = {
        .depth = WEFT__SCHEMA_DEPTH, .values = WEFT__SCHEMA_VALUES, .items = WEFT__SCHEMA_ITEMS};
    weft__json json;
    char problem[256];
    weft__json_open(&json, s->ctx);
    weft_status status = weft__json_parse(&json, schema, bytes, &limits, problem, &s->root);
    if (status == WEFT_ERR_FORMAT) status = weft__fail(s->ctx, status, "%s: %s", s->name, problem);
    if (status == WEFT_OK) status = read_all(s);
    if (status == WEFT_OK) status = weft__grammar_finish(s->g);
    weft__free(s->ctx, s->targets);
    weft__json_close(&json);
    return status;
}

weft_status weft_grammar_json_schema(weft_context *ctx, const char *schema, size_t bytes, const char *name,
                                     weft_grammar **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, schema);
    WEFT_NEED(ctx, name);
    WEFT_NEED_ARRAY(ctx, schema, bytes);
    weft__schema s = {.ctx = ctx, .name = name, .place = "#", .place_length = 1, .any = WEFT__NONE};
    s.g = weft__grammar_new(ctx, name);
    if (!s.g) return weft__fail_oom(ctx, sizeof *s.g, "a grammar");
    const weft_status status = parse_schema(&s, schema, bytes);
    s.g->name = NULL; /* it is the caller's */
    if (status == WEFT_OK)
        *out = s.g;
    else
        weft_grammar_free(s.g);
    return status;
}
