/* The private interface of grammars: kinds of JSON values, as nodes that name one another. The reader of
 * schemas makes the nodes, and the automaton follows a text along them. Must not know: tokens. Read next:
 * schema.c, automaton.h. */
#ifndef WEFT_SRC_TEXT_GRAMMAR_GRAMMAR_H
#define WEFT_SRC_TEXT_GRAMMAR_GRAMMAR_H

#include <weft/grammar.h>

#include "base/base.h"

#define WEFT__NONE    UINT32_MAX
#define WEFT__LARGEST INT64_C(999999999999999) /* integer of WEFT__DIGITS digits */

enum {
    WEFT__GRAMMAR_DEPTH = 64, /* most open brackets of a text */
    /* Most digits of a number before the point, after it, and in the exponent, so that a number ends.
     * Integers of 15 digits are exact in a double. */
    WEFT__DIGITS = 15,
    WEFT__EXPONENT_DIGITS = 2,
    WEFT__GRAMMAR_NODES = 1 << 14 /* most nodes, properties, constants and alternatives, each */
};

typedef enum weft__rule_kind {
    WEFT__RULE_CHOICE,   /* a value of one of several nodes; of none: there is no such value */
    WEFT__RULE_CONSTANT, /* one of several texts */
    WEFT__RULE_STRING,
    WEFT__RULE_NUMBER,
    WEFT__RULE_ARRAY,
    WEFT__RULE_OBJECT
} weft__rule_kind;

typedef struct weft__rule {
    weft__rule_kind kind;
    bool integer; /* of a number: neither fraction nor exponent */
    /* Characters of a string, items of an array; WEFT__NONE: any number. least of constants: most brackets,
     * one within the other, of one of them. */
    uint32_t least, most;
    int64_t low, high; /* of an integer */
    uint32_t child; /* node of the items, or of the values of undeclared keys; WEFT__NONE: there are none */
    uint32_t first, count; /* a part of the grammar's constants, properties or alternatives */
    uint32_t height; /* fewest brackets, one within the other, of a value; WEFT__NONE: there is no value */
} weft__rule;

/* A text of a constant, or the text of a key between its quotes, as JSON writes it. */
typedef struct weft__literal {
    const char *text;
    size_t bytes;
} weft__literal;

typedef struct weft__property {
    weft__literal key;
    uint32_t node;
    bool required;
    uint32_t
        until; /* index, within its object, of the first required property from here on; else the count */
} weft__property;

struct weft_grammar {
    weft_context *ctx;
    const char *name; /* for messages, while the grammar is made */
    weft_arena texts;
    weft__rule *nodes;
    weft__literal *constants;   /* sorted within each node */
    weft__property *properties; /* in the order of the schema */
    uint32_t *sorted;           /* of each object: indices of its properties within it, sorted by key */
    uint32_t *alternatives;     /* nodes */
    size_t node_count, constant_count, property_count, alternative_count;
    size_t node_room, constant_room, property_room, sorted_room, alternative_room;
    uint32_t root;
};

/* Returns an empty grammar, or NULL when memory is short. */
weft_grammar *weft__grammar_new(weft_context *ctx, const char *name);
/* Adds a node and sets its index. */
weft_status weft__grammar_node(weft_grammar *g, weft__rule node, uint32_t *out);
/* Adds `count` alternatives and makes a node the choice among them. */
weft_status weft__grammar_choice(weft_grammar *g, uint32_t node, const uint32_t *alternatives, size_t count);
/* Adds a text, which is copied. The constants of a node must be added one after the other. */
weft_status weft__grammar_constant(weft_grammar *g, const char *text, size_t bytes);
/* Adds a property, whose key is copied. The properties of an object must be added one after the other. */
weft_status weft__grammar_property(weft_grammar *g, const char *key, size_t bytes, uint32_t node,
                                   bool required);
/* Adds the nodes of any JSON value, and sets the nodes of: any value, an object or an array. */
weft_status weft__grammar_any(weft_grammar *g, uint32_t *value, uint32_t *container);
/* Prepares the grammar for the automaton, after all nodes were added: resolves choices of choices, sorts
 * texts, computes heights. */
weft_status weft__grammar_finish(weft_grammar *g);

/* Orders words by their bytes. */
int weft__literal_order(const weft__literal *a, const weft__literal *b);

#endif
