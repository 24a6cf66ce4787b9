/* Reads what a JSON schema says about types and constants. Must not know: references and choices (schema.c).
 * Read next: automaton.h. */
#include <string.h>

#include "text/grammar/schema.h"

enum { REQUIRED_MAX = 1024 };

/* ---- keywords ---- */

static weft_status one_type(const weft__schema *s, const json_t *name, unsigned *types) {
    static const char *const names[] = {"null", "boolean", "integer", "number", "string", "array", "object"};
    for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
        if (json_is_string(name) && strcmp(json_string_value(name), names[i]) == 0) {
            *types |= 1u << i;
            return WEFT_OK;
        }
    return weft__schema_fail(s,
                             "'type' must be null, boolean, integer, number, string, array or object, or a "
                             "list of them");
}

weft_status weft__schema_types(const weft__schema *s, const json_t *json, unsigned *types) {
    const json_t *type = json_object_get(json, "type");
    *types = 0;
    if (!type) return WEFT_OK;
    if (!json_is_array(type) || json_array_size(type) == 0) return one_type(s, type, types);
    for (size_t i = 0; i < json_array_size(type); i++) WEFT_TRY(one_type(s, json_array_get(type, i), types));
    return WEFT_OK;
}

/* Reads a number of characters or items. `out` keeps its value if there is none. */
static weft_status read_count(const weft__schema *s, const json_t *json, const char *keyword, uint32_t *out) {
    const json_t *value = json_object_get(json, keyword);
    if (!value) return WEFT_OK;
    const json_int_t count = json_is_integer(value) ? json_integer_value(value) : -1;
    if (count < 0 || count >= WEFT__NONE)
        return weft__schema_fail(s, "'%s' must be an integer from 0 to %u", keyword, WEFT__NONE - 1);
    *out = (uint32_t)count;
    return WEFT_OK;
}

/* ---- constants ---- */

/* Writes a value as JSON. Real numbers get as many digits as they need. form: flags of jansson. The caller
 * frees *text.
 */
static weft_status constant_text(const weft__schema *s, const json_t *value, size_t form, char **text,
                                 size_t *bytes) {
    for (size_t digits = 15;; digits++) {
        weft__json made, again;
        json_error_t error;
        json_t *copy;
        weft__json_build(&made, s->ctx);
        WEFT_TRY(weft__json_text(&made, value, form | JSON_ENCODE_ANY | JSON_REAL_PRECISION(digits), s->name,
                                 text, bytes));
        if (digits == 17) return WEFT_OK;
        weft__json_open(&again, s->ctx);
        const weft_status status = weft__json_load(&again, *text, *bytes, JSON_DECODE_ANY, &error, &copy);
        const bool same = status == WEFT_OK && json_equal(copy, value);
        weft__json_close(&again);
        if (same) return WEFT_OK;
        weft__free(s->ctx, *text);
        if (status == WEFT_ERR_OOM) return status;
    }
}

static bool has_type(const json_t *value, unsigned types) {
    switch (json_typeof(value)) {
    case JSON_NULL: return types & WEFT__TYPE_NULL;
    case JSON_TRUE:
    case JSON_FALSE: return types & WEFT__TYPE_BOOLEAN;
    case JSON_INTEGER: return types & (WEFT__TYPE_INTEGER | WEFT__TYPE_NUMBER);
    case JSON_REAL: return types & WEFT__TYPE_NUMBER;
    case JSON_STRING: return types & WEFT__TYPE_STRING;
    case JSON_ARRAY: return types & WEFT__TYPE_ARRAY;
    case JSON_OBJECT: return types & WEFT__TYPE_OBJECT;
    }
    return false;
}

/* Adds a value in one form. */
static weft_status add_form(weft__schema *s, const json_t *value, size_t form, weft__rule *node) {
    char *text;
    size_t bytes;
    WEFT_TRY(constant_text(s, value, form, &text, &bytes));
    const weft_status status = weft__grammar_constant(s->g, text, bytes);
    weft__free(s->ctx, text);
    node->count++;
    return status;
}

/* Counts the brackets, one within the other, of a value. */
static uint32_t brackets_of(const json_t *value) {
    uint32_t most = 0;
    const char *key;
    json_t *part;
    for (size_t i = 0; i < json_array_size(value); i++) {
        const uint32_t inner = brackets_of(json_array_get(value, i));
        if (inner > most) most = inner;
    }
    json_object_foreach((json_t *)(uintptr_t)value, key, part) {
        const uint32_t inner = brackets_of(part);
        if (inner > most) most = inner;
    }
    return json_is_array(value) || json_is_object(value) ? most + 1 : 0;
}

/* Adds a value, if it has one of the types: lists and objects with spaces after commas and colons, and
 * without. */
static weft_status add_constant(weft__schema *s, const json_t *value, unsigned types, weft__rule *node) {
    if (types && !has_type(value, types)) return WEFT_OK;
    const uint32_t brackets = brackets_of(value);
    if (brackets > node->least) node->least = brackets;
    WEFT_TRY(add_form(s, value, 0, node));
    return json_is_array(value) || json_is_object(value) ? add_form(s, value, JSON_COMPACT, node) : WEFT_OK;
}

weft_status weft__schema_constants(weft__schema *s, const json_t *json, unsigned types, uint32_t *node) {
    const json_t *list = json_object_get(json, "enum"), *one = json_object_get(json, "const");
    weft__rule made = {.kind = WEFT__RULE_CONSTANT, .first = (uint32_t)s->g->constant_count};
    if (list && one) return weft__schema_fail(s, "'const' beside 'enum': Weft takes one of them");
    if (list && json_array_size(list) == 0) return weft__schema_fail(s, "'enum' must be a list of values");
    for (size_t i = 0; list && i < json_array_size(list); i++)
        WEFT_TRY(add_constant(s, json_array_get(list, i), types, &made));
    if (one) WEFT_TRY(add_constant(s, one, types, &made));
    return weft__grammar_node(s->g, made, node);
}

/* Adds the node of the words that a type consists of. */
static weft_status word_node(weft__schema *s, const char *first, const char *second, uint32_t *node) {
    weft__rule made = {.kind = WEFT__RULE_CONSTANT, .first = (uint32_t)s->g->constant_count, .count = 1};
    WEFT_TRY(weft__grammar_constant(s->g, first, strlen(first)));
    if (second) WEFT_TRY(weft__grammar_constant(s->g, second, strlen(second)));
    if (second) made.count = 2;
    return weft__grammar_node(s->g, made, node);
}

/* ---- strings, arrays ---- */

static weft_status string_node(weft__schema *s, const json_t *json, uint32_t *node) {
    weft__rule made = {.kind = WEFT__RULE_STRING, .most = WEFT__NONE};
    WEFT_TRY(read_count(s, json, "minLength", &made.least));
    WEFT_TRY(read_count(s, json, "maxLength", &made.most));
    return weft__grammar_node(s->g, made, node);
}

static weft_status array_node(weft__schema *s, const json_t *json, uint32_t *node) {
    weft__rule made = {.kind = WEFT__RULE_ARRAY, .most = WEFT__NONE};
    const json_t *items = json_object_get(json, "items");
    WEFT_TRY(read_count(s, json, "minItems", &made.least));
    WEFT_TRY(read_count(s, json, "maxItems", &made.most));
    WEFT_TRY(items ? weft__schema_read(s, items, "items", NULL, &made.child)
                   : weft__schema_any(s, &made.child));
    return weft__grammar_node(s->g, made, node);
}

/* ---- numbers ---- */

/* Narrows a bound of integers. by: what an exclusive bound moves; 0: the bound itself is allowed. */
static weft_status read_bound(const weft__schema *s, const json_t *json, const char *keyword, int by,
                              const weft__rule *node, int64_t *bound) {
    const json_t *value = json_object_get(json, keyword);
    if (!value) return WEFT_OK;
    if (!node->integer || !json_is_integer(value))
        return weft__schema_fail(
            s,
            "'%s' must be an integer, and the type too: Weft takes no bounds of numbers with "
            "fractions",
            keyword);
    int64_t read = json_integer_value(value);
    if (read > WEFT__LARGEST) read = WEFT__LARGEST + 1;
    if (read < -WEFT__LARGEST) read = -WEFT__LARGEST - 1;
    read += by;
    const bool lower = bound == &node->low;
    if (lower ? read > *bound : read < *bound) *bound = read;
    return WEFT_OK;
}

static weft_status number_node(weft__schema *s, const json_t *json, bool integer, uint32_t *node) {
    weft__rule made = {
        .kind = WEFT__RULE_NUMBER, .integer = integer, .low = -WEFT__LARGEST, .high = WEFT__LARGEST};
    WEFT_TRY(read_bound(s, json, "minimum", 0, &made, &made.low));
    WEFT_TRY(read_bound(s, json, "exclusiveMinimum", 1, &made, &made.low));
    WEFT_TRY(read_bound(s, json, "maximum", 0, &made, &made.high));
    WEFT_TRY(read_bound(s, json, "exclusiveMaximum", -1, &made, &made.high));
    return weft__grammar_node(s->g, made, node);
}

/* ---- objects ---- */

static bool is_required(const json_t *required, const char *key) {
    for (size_t i = 0; i < json_array_size(required); i++)
        if (strcmp(json_string_value(json_array_get(required, i)), key) == 0) return true;
    return false;
}

/* Adds a property whose schema has been read. */
static weft_status add_property(weft__schema *s, const char *key, uint32_t node, bool required) {
    weft__json made;
    char *text;
    size_t bytes;
    weft__json_build(&made, s->ctx);
    WEFT_TRY(weft__json_text(&made, json_string(key), JSON_ENCODE_ANY, s->name, &text, &bytes));
    const weft_status status = weft__grammar_property(s->g, text + 1, bytes - 2, node, required);
    weft__free(s->ctx, text);
    return status;
}

/* Reads the schemas of the properties first, since their own properties must not come between. */
static weft_status read_properties(weft__schema *s, const json_t *properties, const json_t *required,
                                   uint32_t *nodes, weft__rule *made) {
    const uint32_t other = made->child;
    const char *key;
    json_t *value;
    size_t i = 0;
    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
        WEFT_TRY(weft__schema_read(s, value, "properties", key, &nodes[i++]));
    made->first = (uint32_t)s->g->property_count;
    i = 0;
    json_object_foreach((json_t *)(uintptr_t)properties, key, value)
        WEFT_TRY(add_property(s, key, nodes[i++], is_required(required, key)));
    /* required ones that "properties" does not name follow, as "additionalProperties" says */
    for (size_t r = 0; r < json_array_size(required); r++) {
        bool before = false;
        key = json_string_value(json_array_get(required, r));
        for (size_t b = 0; b < r && !before; b++)
            before = strcmp(json_string_value(json_array_get(required, b)), key) == 0;
        if (!before && !json_object_get(properties, key)) WEFT_TRY(add_property(s, key, other, true));
    }
    made->count = (uint32_t)s->g->property_count - made->first;
    return WEFT_OK;
}

static weft_status object_node(weft__schema *s, const json_t *json, uint32_t *node) {
    const json_t *properties = json_object_get(json, "properties"),
                 *required = json_object_get(json, "required");
    const json_t *others = json_object_get(json, "additionalProperties");
    weft__rule made = {.kind = WEFT__RULE_OBJECT, .child = WEFT__NONE};
    if (properties && !json_is_object(properties))
        return weft__schema_fail(s, "'properties' must be an object of schemas");
    bool names = !required || json_is_array(required);
    for (size_t i = 0; names && i < json_array_size(required); i++)
        names = json_is_string(json_array_get(required, i));
    if (!names || json_array_size(required) > REQUIRED_MAX)
        return weft__schema_fail(s, "'required' must be a list of at most %d names", REQUIRED_MAX);
    if (others)
        WEFT_TRY(weft__schema_read(s, others, "additionalProperties", NULL, &made.child));
    else
        WEFT_TRY(weft__schema_any(s, &made.child));
    const size_t room = json_object_size(properties) + 1;
    uint32_t *nodes = weft__array(s->ctx, room, sizeof *nodes);
    if (!nodes) return weft__fail_oom(s->ctx, room * sizeof *nodes, "a schema");
    const weft_status status = read_properties(s, properties, required, nodes, &made);
    weft__free(s->ctx, nodes);
    WEFT_TRY(status);
    if (properties && !others) made.child = WEFT__NONE;
    return weft__grammar_node(s->g, made, node);
}

/* ---- types ---- */

weft_status weft__schema_typed(weft__schema *s, const json_t *json, unsigned types, uint32_t *node) {
    uint32_t all[8];
    size_t count = 0;
    const bool integer = !(types & WEFT__TYPE_NUMBER);
    if (types & WEFT__TYPE_OBJECT) WEFT_TRY(object_node(s, json, &all[count++]));
    if (types & WEFT__TYPE_ARRAY) WEFT_TRY(array_node(s, json, &all[count++]));
    if (types & WEFT__TYPE_STRING) WEFT_TRY(string_node(s, json, &all[count++]));
    if (types & (WEFT__TYPE_NUMBER | WEFT__TYPE_INTEGER))
        WEFT_TRY(number_node(s, json, integer, &all[count++]));
    if (types & WEFT__TYPE_BOOLEAN) WEFT_TRY(word_node(s, "true", "false", &all[count++]));
    if (types & WEFT__TYPE_NULL) WEFT_TRY(word_node(s, "null", NULL, &all[count++]));
    if (count == 1) {
        *node = all[0];
        return WEFT_OK;
    }
    WEFT_TRY(weft__grammar_node(s->g, (weft__rule){0}, node));
    return weft__grammar_choice(s->g, *node, all, count);
}
