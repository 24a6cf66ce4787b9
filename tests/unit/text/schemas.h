/* JSON schemas for tests: random ones, random values of a schema, and a checker that shares nothing with
 * Weft's reader of schemas. Objects are jansson's, and so are their memory and their text. */
#ifndef WEFT_TESTS_TEXT_SCHEMAS_H
#define WEFT_TESTS_TEXT_SCHEMAS_H

#include <jansson.h>

#include "unit/core_help.h"

/* ---- numbers ---- */

static uint64_t schema_seed, schema_draws;

/* A number from 0 to n - 1. */
static inline unsigned draw_below(unsigned n) {
    return weft__random_u32(schema_seed, 7, 0, schema_draws++) % n;
}
static inline bool draw_one_in(unsigned n) { return draw_below(n) == 0; }

/* ---- random schemas ---- */

static const char *const schema_names[] = {"a",       "ab",          "abc", "b", "caf\xc3\xa9",
                                           "q\"uote", "line\nbreak", "",    "zz"};

static inline json_t *random_scalar(void) {
    static const char *const texts[] = {"",           "a", "ab",        "abc", "\xf0\x9f\x98\x80",
                                        "say \"hi\"", "1", "\xc3\xbc\\"};
    switch (draw_below(5)) {
    case 0: return json_integer((json_int_t)draw_below(300) - 150);
    case 1: return json_real((double)draw_below(1000) / 8);
    case 2: return json_boolean(draw_one_in(2));
    case 3: return json_null();
    default: return json_string(texts[draw_below(COUNT(texts))]);
    }
}

static inline json_t *random_schema(int depth);

static inline json_t *random_list(unsigned count, int depth, bool constants) {
    json_t *list = json_array();
    for (unsigned i = 0; i < count; i++)
        json_array_append_new(list, constants ? random_scalar() : random_schema(depth - 1));
    if (constants && draw_one_in(3))
        json_array_append_new(list, json_pack("{s:[i,{}], s:n}", "x", (int)draw_below(9), "y"));
    return list;
}

static inline json_t *random_object(int depth) {
    json_t *schema = json_pack("{s:s}", "type", "object"), *properties = json_object(),
           *required = json_array();
    const unsigned count = draw_below(4), others = draw_below(5);
    for (unsigned i = 0; i < count; i++) {
        const char *name = schema_names[draw_below(COUNT(schema_names))];
        if (json_object_get(properties, name)) continue;
        json_object_set_new(properties, name, random_schema(depth - 1));
        if (draw_one_in(2)) json_array_append_new(required, json_string(name));
    }
    if (others != 1 && draw_one_in(6)) json_array_append_new(required, json_string("extra"));
    if (others == 1) json_object_set_new(schema, "additionalProperties", json_false());
    if (others == 2) json_object_set_new(schema, "additionalProperties", random_schema(depth - 1));
    if (count || draw_one_in(2))
        json_object_set_new(schema, "properties", properties);
    else
        json_decref(properties);
    json_object_set_new(schema, "required", required);
    return schema;
}

/* Makes the schema one of integers with bounds, which sometimes allow none. */
static inline void random_bounds(json_t *schema) {
    static const json_int_t sizes[] = {3, 20, 1000, 123456, 99999999, 1000000000000000};
    const json_int_t size = sizes[draw_below(COUNT(sizes))],
                     least = (json_int_t)draw_below(2000000) % size - size / 3;
    json_object_set_new(schema, "type", json_string("integer"));
    if (!draw_one_in(4))
        json_object_set_new(schema, draw_one_in(2) ? "minimum" : "exclusiveMinimum", json_integer(least));
    if (!draw_one_in(4))
        json_object_set_new(schema, draw_one_in(2) ? "maximum" : "exclusiveMaximum",
                            json_integer(least + draw_below(40)));
}

static inline json_t *random_schema(int depth) {
    static const char *const simple[] = {"string", "integer", "number", "boolean", "null"};
    char ref[32];
    json_t *schema = json_object();
    snprintf(ref, sizeof ref, "#/$defs/d%u", draw_below(3));
    const unsigned least = draw_below(3);
    switch (draw_below(depth > 0 ? 10 : 5)) {
    case 0: json_object_set_new(schema, "enum", random_list(1 + draw_below(5), 0, true)); break;
    case 1: json_object_set_new(schema, "const", random_scalar()); break;
    case 2:
        json_object_set_new(schema, "type", json_string("string"));
        if (least) json_object_set_new(schema, "minLength", json_integer(least));
        if (draw_one_in(2)) json_object_set_new(schema, "maxLength", json_integer(least + draw_below(4)));
        break;
    case 3:
        json_object_set_new(schema, "type", json_pack("[s,s]", simple[draw_below(5)], simple[draw_below(5)]));
        break;
    case 4:
        if (draw_one_in(2)) {
            random_bounds(schema);
            break;
        }
        json_object_set_new(schema, "type", json_string(simple[draw_below(5)]));
        break;
    case 5:
        json_object_set_new(schema, draw_one_in(2) ? "anyOf" : "oneOf",
                            random_list(1 + draw_below(3), depth, false));
        break;
    case 6: json_object_set_new(schema, "$ref", json_string(ref)); break;
    case 7:
        json_object_set_new(schema, "type", json_string("array"));
        json_object_set_new(schema, "items", random_schema(depth - 1));
        if (least) json_object_set_new(schema, "minItems", json_integer(least));
        if (draw_one_in(2)) json_object_set_new(schema, "maxItems", json_integer(least + draw_below(3)));
        break;
    default: json_decref(schema); return random_object(depth);
    }
    return schema;
}

static inline json_t *random_root(uint64_t seed) {
    schema_seed = seed;
    schema_draws = 0;
    json_t *root = random_object(4), *defs = json_object();
    for (int i = 0; i < 3; i++) {
        char name[8];
        snprintf(name, sizeof name, "d%d", i);
        json_object_set_new(defs, name, random_schema(2));
    }
    json_object_set_new(root, "$defs", defs);
    return root;
}

/* ---- the checker ---- */

static inline bool is_of_type(const json_t *value, const char *type) {
    if (strcmp(type, "integer") == 0) return json_is_integer(value);
    if (strcmp(type, "number") == 0) return json_is_number(value);
    if (strcmp(type, "boolean") == 0) return json_is_boolean(value);
    if (strcmp(type, "null") == 0) return json_is_null(value);
    if (strcmp(type, "string") == 0) return json_is_string(value);
    return strcmp(type, "array") == 0 ? json_is_array(value) : json_is_object(value);
}

static inline const json_t *schema_target(const json_t *root, const json_t *ref) {
    const char *text = json_string_value(ref);
    return strcmp(text, "#") == 0
               ? root
               : json_object_get(json_object_get(root, "$defs"), text + strlen("#/$defs/"));
}

static inline json_int_t characters(const char *text) {
    json_int_t n = 0;
    for (; *text; text++) n += ((unsigned char)*text & 0xc0) != 0x80;
    return n;
}

static inline bool schema_allows(const json_t *root, const json_t *schema, const json_t *value);

static int schema_references; /* that were followed for one value */

/* Checks an item or a member. */
static inline bool part_allowed(const json_t *root, const json_t *schema, const json_t *value) {
    const int before = schema_references;
    schema_references = 0;
    const bool allowed = schema_allows(root, schema, value);
    schema_references = before;
    return allowed;
}

static inline bool object_allowed(const json_t *root, const json_t *schema, const json_t *value) {
    const json_t *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required");
    const json_t *others = json_object_get(schema, "additionalProperties");
    const char *key;
    json_t *one;
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(value, json_string_value(json_array_get(required, i)))) return false;
    json_object_foreach((json_t *)(uintptr_t)value, key, one) {
        const json_t *own = json_object_get(properties, key);
        if (own ? !part_allowed(root, own, one) : others && !part_allowed(root, others, one)) return false;
    }
    return true;
}

static inline bool schema_allows(const json_t *root, const json_t *schema, const json_t *value) {
    const json_t *part;
    if (!json_is_object(schema)) return json_is_true(schema);
    if ((part =
             json_object_get(schema, "$ref"))) { /* there are four targets: a longer way leads in a circle */
        if (schema_references >= 4) return false;
        schema_references++;
        const bool allowed = schema_allows(root, schema_target(root, part), value);
        schema_references--;
        return allowed;
    }
    if ((part = json_object_get(schema, "const")) &&
        !json_equal((json_t *)(uintptr_t)part, (json_t *)(uintptr_t)value))
        return false;
    bool fits = !(part = json_object_get(schema, "enum"));
    for (size_t i = 0; i < json_array_size(part); i++)
        fits |= json_equal(json_array_get(part, i), (json_t *)(uintptr_t)value) != 0;
    if (!fits) return false;
    fits = !(part = json_object_get(schema, "type")) ||
           (json_is_string(part) && is_of_type(value, json_string_value(part)));
    for (size_t i = 0; i < json_array_size(part); i++)
        fits |= is_of_type(value, json_string_value(json_array_get(part, i)));
    if (!fits) return false;
    if (!(part = json_object_get(schema, "anyOf")))
        part = json_object_get(schema, "oneOf"); /* as Weft takes it */
    fits = !part;
    for (size_t i = 0; i < json_array_size(part); i++)
        fits |= schema_allows(root, json_array_get(part, i), value);
    if (!fits) return false;
    if (json_is_integer(value)) {
        const json_int_t n = json_integer_value(value);
        if ((part = json_object_get(schema, "minimum")) && n < json_integer_value(part)) return false;
        if ((part = json_object_get(schema, "maximum")) && n > json_integer_value(part)) return false;
        if ((part = json_object_get(schema, "exclusiveMinimum")) && n <= json_integer_value(part))
            return false;
        if ((part = json_object_get(schema, "exclusiveMaximum")) && n >= json_integer_value(part))
            return false;
    }
    if (json_is_string(value)) {
        const json_int_t n = characters(json_string_value(value));
        if ((part = json_object_get(schema, "minLength")) && n < json_integer_value(part)) return false;
        if ((part = json_object_get(schema, "maxLength")) && n > json_integer_value(part)) return false;
    }
    if (json_is_array(value)) {
        const json_int_t n = (json_int_t)json_array_size(value);
        if ((part = json_object_get(schema, "minItems")) && n < json_integer_value(part)) return false;
        if ((part = json_object_get(schema, "maxItems")) && n > json_integer_value(part)) return false;
        if ((part = json_object_get(schema, "items")))
            for (size_t i = 0; i < json_array_size(value); i++)
                if (!part_allowed(root, part, json_array_get(value, i))) return false;
    }
    return !json_is_object(value) || object_allowed(root, schema, value);
}

/* ---- random values ---- */

static inline json_t *random_text(unsigned least, unsigned most) {
    static const char *const pieces[] = {
        "a", "Z", " ", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\"", "\\", "\n", "\x01", "/", "{"};
    char text[64] = "";
    const unsigned n = least + draw_below(most - least + 1);
    for (unsigned i = 0; i < n; i++) strcat(text, pieces[draw_below(COUNT(pieces))]);
    return json_string(text);
}

static inline json_t *random_value(const json_t *root, const json_t *schema, int depth);

static inline json_t *value_of_type(const json_t *root, const json_t *schema, const char *type, int depth) {
    if (strcmp(type, "integer") == 0) {
        static const char *const lower[] = {"minimum", "exclusiveMinimum"}, *const upper[] = {
                                                                                "maximum",
                                                                                "exclusiveMaximum"};
        for (int k = 0; k < 2; k++) {
            const json_t *low = json_object_get(schema, lower[k]), *high = json_object_get(schema, upper[k]);
            if (low) return json_integer(json_integer_value(low) + k + (json_int_t)draw_below(9));
            if (high) return json_integer(json_integer_value(high) - k - (json_int_t)draw_below(99999));
        }
        return json_integer((json_int_t)draw_below(2000000) - 1000000);
    }
    if (strcmp(type, "number") == 0) return json_real(((double)draw_below(20000) - 10000) / 8);
    if (strcmp(type, "boolean") == 0) return json_boolean(draw_one_in(2));
    if (strcmp(type, "null") == 0) return json_null();
    const json_t *part;
    unsigned least = 0, most = 4;
    const bool string = strcmp(type, "string") == 0;
    if ((part = json_object_get(schema, string ? "minLength" : "minItems")))
        least = (unsigned)json_integer_value(part);
    most = least + 2;
    if ((part = json_object_get(schema, string ? "maxLength" : "maxItems")))
        most = (unsigned)json_integer_value(part);
    if (string) return random_text(least, most);
    json_t *list = json_array();
    for (unsigned n = depth > 0 ? least + draw_below(most - least + 1) : least; n > 0; n--) {
        json_t *item = random_value(root, json_object_get(schema, "items"), depth - 1);
        if (item) json_array_append_new(list, item);
    }
    return list;
}

static inline json_t *value_of_object(const json_t *root, const json_t *schema, int depth) {
    const json_t *properties = json_object_get(schema, "properties"),
                 *required = json_object_get(schema, "required");
    const json_t *others = json_object_get(schema, "additionalProperties");
    json_t *object = json_object(), *one;
    const char *key;
    json_object_foreach((json_t *)(uintptr_t)properties, key, one) {
        bool wanted = depth > 0 && draw_one_in(2);
        for (size_t i = 0; i < json_array_size(required); i++)
            wanted |= strcmp(json_string_value(json_array_get(required, i)), key) == 0;
        json_t *value = wanted ? random_value(root, one, depth - 1) : NULL;
        if (value) json_object_set_new(object, key, value);
    }
    for (size_t i = 0; i < json_array_size(required); i++)
        if (!json_object_get(object, key = json_string_value(json_array_get(required, i)))) {
            json_t *value = others ? random_value(root, others, depth - 1) : json_pack("[n]");
            if (value) json_object_set_new(object, key, value);
        }
    if ((others || !properties) && !json_is_false(others) && draw_one_in(2) &&
        !json_object_get(properties, "more")) {
        json_t *value = others ? random_value(root, others, depth - 1) : json_pack("{s:[i,b]}", "k", 1, 1);
        if (value) json_object_set_new(object, "more", value);
    }
    return object;
}

/* A value that is drawn along a schema, in the order of its properties. It may not be valid, where the schema
 * allows nothing small: check it. NULL: it would be too deep. */
static inline json_t *random_value(const json_t *root, const json_t *schema, int depth) {
    const json_t *part;
    if (depth < -8 || !json_is_object(schema)) return NULL;
    if ((part = json_object_get(schema, "$ref")))
        return random_value(root, schema_target(root, part), depth - 1);
    if ((part = json_object_get(schema, "const"))) return json_deep_copy(part);
    if ((part = json_object_get(schema, "enum")))
        return json_deep_copy(json_array_get(part, draw_below((unsigned)json_array_size(part))));
    if (!(part = json_object_get(schema, "anyOf"))) part = json_object_get(schema, "oneOf");
    if (part)
        return random_value(root, json_array_get(part, draw_below((unsigned)json_array_size(part))),
                            depth - 1);
    part = json_object_get(schema, "type");
    if (json_is_array(part)) part = json_array_get(part, draw_below((unsigned)json_array_size(part)));
    if (strcmp(json_string_value(part), "object") == 0) return value_of_object(root, schema, depth);
    return value_of_type(root, schema, json_string_value(part), depth);
}

#endif
