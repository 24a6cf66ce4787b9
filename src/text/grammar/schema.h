/* The private interface between the files that read JSON schemas. Must not know: the automaton. Read next:
 * schema.c, schema_types.c. */
#ifndef WEFT_SRC_TEXT_GRAMMAR_SCHEMA_H
#define WEFT_SRC_TEXT_GRAMMAR_SCHEMA_H

#include "base/text.h"
#include "io/json.h"
#include "text/grammar/grammar.h"

/* The types of JSON Schema, as bits. */
enum {
    WEFT__TYPE_NULL = 1 << 0,
    WEFT__TYPE_BOOLEAN = 1 << 1,
    WEFT__TYPE_INTEGER = 1 << 2,
    WEFT__TYPE_NUMBER = 1 << 3,
    WEFT__TYPE_STRING = 1 << 4,
    WEFT__TYPE_ARRAY = 1 << 5,
    WEFT__TYPE_OBJECT = 1 << 6
};

/* A schema that a $ref names. It becomes an alternative of `node`. */
typedef struct weft__target {
    const json_t *json;
    const char *ref;
    uint32_t node;
} weft__target;

typedef struct weft__schema {
    weft_context *ctx;
    const char *name; /* for messages */
    weft_grammar *g;
    json_t *root;
    char place[400]; /* of the schema that is read, such as #/properties/age */
    size_t place_length;
    uint32_t any; /* node of any value; WEFT__NONE: not made yet */
    weft__target *targets;
    size_t target_count, target_room;
} weft__schema;

/* Fails with a message that names file and place. */
weft_status weft__schema_fail(const weft__schema *s, const char *fmt, ...) WEFT_PRINTF(2, 3);

/* Reads a schema that is the value of `keyword`, and of `member` of that value if it is not NULL. Sets its
 * node. */
weft_status weft__schema_read(weft__schema *s, const json_t *json, const char *keyword, const char *member,
                              uint32_t *node);
/* Sets the node of any value. */
weft_status weft__schema_any(weft__schema *s, uint32_t *node);

/* Reads "type". Sets *types to its bits, or to 0 if there is none. */
weft_status weft__schema_types(const weft__schema *s, const json_t *json, unsigned *types);
/* Makes the node of a schema that has keywords of types, such as "minLength". types: bits. */
weft_status weft__schema_typed(weft__schema *s, const json_t *json, unsigned types, uint32_t *node);
/* Makes the node of a schema with "enum" or "const". Constants of other types are left out. */
weft_status weft__schema_constants(weft__schema *s, const json_t *json, unsigned types, uint32_t *node);

#endif
