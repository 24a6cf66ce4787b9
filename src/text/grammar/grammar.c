/* Grammars: their nodes, and what follows from the nodes. Must not know: JSON schemas. Read next: schema.c.
 */
#include <stdlib.h>
#include <string.h>

#include "text/grammar/grammar.h"

weft_grammar *weft__grammar_new(weft_context *ctx, const char *name) {
    weft_grammar *g = weft__zalloc(ctx, sizeof *g);
    if (!g) return NULL;
    g->ctx = ctx;
    g->name = name;
    weft__arena_init(&g->texts, ctx);
    return g;
}

void weft_grammar_free(weft_grammar *grammar) {
    if (!grammar) return;
    weft_context *ctx = grammar->ctx;
    weft__arena_free(&grammar->texts);
    weft__free(ctx, grammar->nodes);
    weft__free(ctx, grammar->constants);
    weft__free(ctx, grammar->properties);
    weft__free(ctx, grammar->sorted);
    weft__free(ctx, grammar->alternatives);
    weft__free(ctx, grammar);
}

/* ---- adding ---- */

/* Makes room for one more element of a list. */
static weft_status grammar_grow(weft_grammar *g, void *array, size_t *room, size_t count, size_t size) {
    if (count >= WEFT__GRAMMAR_NODES)
        return weft__fail(g->ctx, WEFT_ERR_FORMAT,
                          "%s: too large: Weft takes %d values, properties, constants and alternatives, each",
                          g->name, WEFT__GRAMMAR_NODES);
    return weft__grow(g->ctx, array, room, count, size) ? WEFT_OK : weft__fail_oom(g->ctx, size, "a grammar");
}

weft_status weft__grammar_node(weft_grammar *g, weft__rule node, uint32_t *out) {
    WEFT_TRY(grammar_grow(g, &g->nodes, &g->node_room, g->node_count, sizeof *g->nodes));
    *out = (uint32_t)g->node_count;
    g->nodes[g->node_count++] = node;
    return WEFT_OK;
}

weft_status weft__grammar_choice(weft_grammar *g, uint32_t node, const uint32_t *alternatives, size_t count) {
    const size_t first = g->alternative_count;
    for (size_t i = 0; i < count; i++) {
        WEFT_TRY(grammar_grow(g, &g->alternatives, &g->alternative_room, g->alternative_count,
                              sizeof *g->alternatives));
        g->alternatives[g->alternative_count++] = alternatives[i];
    }
    g->nodes[node] =
        (weft__rule){.kind = WEFT__RULE_CHOICE, .first = (uint32_t)first, .count = (uint32_t)count};
    return WEFT_OK;
}

static weft_status grammar_word(weft_grammar *g, const char *text, size_t bytes, weft__literal *out) {
    char *copy = weft__arena_alloc(&g->texts, bytes + 1);
    if (!copy) return weft__fail_oom(g->ctx, bytes, "a grammar");
    memcpy(copy, text, bytes);
    *out = (weft__literal){copy, bytes};
    return WEFT_OK;
}

weft_status weft__grammar_constant(weft_grammar *g, const char *text, size_t bytes) {
    weft__literal word;
    WEFT_TRY(grammar_grow(g, &g->constants, &g->constant_room, g->constant_count, sizeof *g->constants));
    WEFT_TRY(grammar_word(g, text, bytes, &word));
    g->constants[g->constant_count++] = word;
    return WEFT_OK;
}

weft_status weft__grammar_property(weft_grammar *g, const char *key, size_t bytes, uint32_t node,
                                   bool required) {
    weft__property property = {.node = node, .required = required};
    const size_t count = g->property_count;
    WEFT_TRY(grammar_grow(g, &g->properties, &g->property_room, count, sizeof *g->properties));
    WEFT_TRY(grammar_grow(g, &g->sorted, &g->sorted_room, count, sizeof *g->sorted));
    WEFT_TRY(grammar_word(g, key, bytes, &property.key));
    g->properties[g->property_count++] = property;
    return WEFT_OK;
}

weft_status weft__grammar_any(weft_grammar *g, uint32_t *value, uint32_t *container) {
    static const char *const words[] = {"true", "false", "null"};
    weft__rule simple = {.kind = WEFT__RULE_CONSTANT, .first = (uint32_t)g->constant_count, .count = 3};
    uint32_t all[5];
    for (size_t i = 0; i < 3; i++) WEFT_TRY(weft__grammar_constant(g, words[i], strlen(words[i])));
    WEFT_TRY(weft__grammar_node(g, (weft__rule){0}, value));
    WEFT_TRY(weft__grammar_node(g, (weft__rule){0}, container));
    WEFT_TRY(weft__grammar_node(g, (weft__rule){.kind = WEFT__RULE_OBJECT, .child = *value}, &all[0]));
    WEFT_TRY(weft__grammar_node(
        g, (weft__rule){.kind = WEFT__RULE_ARRAY, .child = *value, .most = WEFT__NONE}, &all[1]));
    WEFT_TRY(weft__grammar_node(g, (weft__rule){.kind = WEFT__RULE_STRING, .most = WEFT__NONE}, &all[2]));
    WEFT_TRY(weft__grammar_node(g, (weft__rule){.kind = WEFT__RULE_NUMBER}, &all[3]));
    WEFT_TRY(weft__grammar_node(g, simple, &all[4]));
    WEFT_TRY(weft__grammar_choice(g, *value, all, 5));
    return weft__grammar_choice(g, *container, all, 2);
}

/* ---- finishing ---- */

/* A choice of choices becomes a choice of the values that they lead to, each once. A choice that leads only
 * to itself has no values. */
static weft_status finish_choice(weft_grammar *g, uint32_t index, uint32_t *seen, uint32_t *open) {
    weft__rule *node = &g->nodes[index];
    const size_t first = g->alternative_count;
    size_t count = 0;
    open[count++] = index;
    seen[index] = index + 1;
    while (count) {
        const uint32_t at = open[--count];
        const weft__rule n = g->nodes[at];
        if (n.kind != WEFT__RULE_CHOICE) {
            WEFT_TRY(grammar_grow(g, &g->alternatives, &g->alternative_room, g->alternative_count,
                                  sizeof *g->alternatives));
            g->alternatives[g->alternative_count++] = at;
            continue;
        }
        for (uint32_t i = n.count; i-- > 0;) { /* backwards, so that the first is taken first */
            const uint32_t next = g->alternatives[n.first + i];
            if (seen[next] != index + 1) open[count++] = next;
            seen[next] = index + 1;
        }
    }
    node->first = (uint32_t)first;
    node->count = (uint32_t)(g->alternative_count - first);
    return WEFT_OK;
}

static weft_status finish_choices(weft_grammar *g) {
    uint32_t *seen = weft__array(g->ctx, g->node_count, sizeof *seen);
    uint32_t *open = weft__array(g->ctx, g->node_count, sizeof *open);
    weft_status status = seen && open ? WEFT_OK : weft__fail_oom(g->ctx, 8 * g->node_count, "a grammar");
    for (uint32_t i = 0; i < g->node_count && status == WEFT_OK; i++)
        if (g->nodes[i].kind == WEFT__RULE_CHOICE) status = finish_choice(g, i, seen, open);
    weft__free(g->ctx, seen);
    weft__free(g->ctx, open);
    return status;
}

int weft__literal_order(const weft__literal *a, const weft__literal *b) {
    const int order = memcmp(a->text, b->text, a->bytes < b->bytes ? a->bytes : b->bytes);
    return order ? order : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

/* Keys of an object differ; the places make the order total in any case. */
static int property_order(const void *a, const void *b) {
    const weft__property *const *left = a, *const *right = b;
    const int order = weft__literal_order(&(*left)->key, &(*right)->key);
    return order ? order : (*left > *right) - (*left < *right);
}

/* Sorts the indices 0 to count of properties by key. qsort knows no context, so it sorts pointers. */
static weft_status sort_keys(weft_context *ctx, const weft__property *properties, uint32_t *sorted,
                             uint32_t count) {
    const weft__property **order = weft__array(ctx, count, sizeof *order);
    if (!order) return weft__fail_oom(ctx, count * sizeof *order, "a grammar");
    for (uint32_t i = 0; i < count; i++) order[i] = properties + i;
    qsort(order, count, sizeof *order, property_order);
    for (uint32_t i = 0; i < count; i++) sorted[i] = (uint32_t)(order[i] - properties);
    weft__free(ctx, order);
    return WEFT_OK;
}

static int constant_order(const void *a, const void *b) { return weft__literal_order(a, b); }

static weft_status finish_words(weft_grammar *g) {
    for (size_t i = 0; i < g->node_count; i++) {
        const weft__rule *n = &g->nodes[i];
        if (n->count == 0) continue;
        if (n->kind == WEFT__RULE_CONSTANT)
            qsort(g->constants + n->first, n->count, sizeof *g->constants, constant_order);
        if (n->kind != WEFT__RULE_OBJECT) continue;
        weft__property *properties = g->properties + n->first;
        WEFT_TRY(sort_keys(g->ctx, properties, g->sorted + n->first, n->count));
        for (uint32_t p = n->count, until = n->count; p-- > 0;) {
            if (properties[p].required) until = p;
            properties[p].until = until;
        }
    }
    return WEFT_OK;
}

static uint32_t above(uint32_t height) { return height == WEFT__NONE ? height : height + 1; }

/* Computes the height of a node from those of the nodes that it names. */
static uint32_t height_of(const weft_grammar *g, const weft__rule *n) {
    uint32_t height = 0;
    switch (n->kind) {
    case WEFT__RULE_CHOICE:
        height = WEFT__NONE;
        for (uint32_t i = 0; i < n->count; i++) {
            const uint32_t other = g->nodes[g->alternatives[n->first + i]].height;
            if (other < height) height = other;
        }
        return height;
    case WEFT__RULE_CONSTANT: return n->count ? n->least : WEFT__NONE;
    case WEFT__RULE_STRING: return n->least <= n->most ? 0 : WEFT__NONE;
    case WEFT__RULE_NUMBER: return !n->integer || n->low <= n->high ? 0 : WEFT__NONE;
    case WEFT__RULE_ARRAY:
        if (n->least > n->most) return WEFT__NONE;
        return n->least == 0 ? 1 : above(g->nodes[n->child].height);
    case WEFT__RULE_OBJECT:
        for (uint32_t i = 0; i < n->count; i++) {
            const weft__property *p = &g->properties[n->first + i];
            if (p->required && g->nodes[p->node].height > height) height = g->nodes[p->node].height;
        }
        return above(height);
    }
    return WEFT__NONE;
}

/* Heights only fall from round to round. A height above the limit counts as none, so the rounds are few. */
static void finish_heights(weft_grammar *g) {
    for (size_t i = 0; i < g->node_count; i++) g->nodes[i].height = WEFT__NONE;
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < g->node_count; i++) {
            uint32_t height = height_of(g, &g->nodes[i]);
            if (height > WEFT__GRAMMAR_DEPTH) height = WEFT__NONE;
            changed |= height != g->nodes[i].height;
            g->nodes[i].height = height;
        }
    }
}

weft_status weft__grammar_finish(weft_grammar *g) {
    WEFT_TRY(finish_choices(g));
    WEFT_TRY(finish_words(g));
    finish_heights(g);
    if (g->nodes[g->root].height != WEFT__NONE) return WEFT_OK;
    return weft__fail(g->ctx, WEFT_ERR_FORMAT, "%s: no value with at most %d levels of brackets is valid",
                      g->name, WEFT__GRAMMAR_DEPTH);
}

weft_status weft_grammar_json(weft_context *ctx, weft_grammar **out) {
    uint32_t value;
    WEFT_NEED(ctx, out);
    *out = NULL;
    weft_grammar *g = weft__grammar_new(ctx, "JSON");
    if (!g) return weft__fail_oom(ctx, sizeof *g, "a grammar");
    weft_status status = weft__grammar_any(g, &value, &g->root);
    if (status == WEFT_OK) status = weft__grammar_finish(g);
    if (status == WEFT_OK)
        *out = g;
    else
        weft_grammar_free(g);
    return status;
}
