/* The automaton: stacks of values that have begun, and what arrays and objects do with a byte. Where a value
 * begins, a stack becomes one for each alternative that may begin with the byte. Must not know: tokens. Read
 * next: scalars.c, constraint.c.
 *
 * White space: a space may follow a comma or a colon. A text has no other white space outside its strings, so
 * that a model cannot go on with it without end. */
#include <string.h>

#include "text/grammar/automaton.h"

void weft__automaton_begin(weft__automaton *a, weft_context *ctx, const weft_grammar *grammar,
                           weft__stacks *begin) {
    *a = (weft__automaton){.grammar = grammar, .ctx = ctx};
    begin->count = 1;
    begin->tops[0] = (weft__stack_frame){.kind = WEFT__FRAME_START, .below = WEFT__NONE, .keys = WEFT__NONE};
}

void weft__automaton_end(weft__automaton *a) {
    weft__free(a->ctx, a->pool);
    *a = (weft__automaton){0};
}

/* ---- stacks ---- */

/* Puts a frame into the pool and returns its index. */
static uint32_t push_frame(weft__automaton *a, const weft__stack_frame *frame) {
    if (a->used >= WEFT__NONE - 1 || !weft__grow(a->ctx, &a->pool, &a->room, a->used, sizeof *a->pool)) {
        a->failed = true;
        return 0;
    }
    a->pool[a->used] = *frame;
    return (uint32_t)a->used++;
}

static void put_top(weft__stacks *to, const weft__stack_frame *top) {
    if (to->count < WEFT__STACKS) to->tops[to->count++] = *top;
}

/* Lets a frame begin its value with a byte. Returns false if the value cannot begin with it. */
static bool begin_frame(const weft__automaton *a, weft__stack_frame *f, unsigned char byte) {
    const weft__rule *n = &a->grammar->nodes[f->node];
    switch (n->kind) {
    case WEFT__RULE_CHOICE: return false; /* no alternative of a finished grammar is a choice */
    case WEFT__RULE_CONSTANT:
        f->kind = WEFT__FRAME_CONSTANT;
        f->lo = n->first;
        f->hi = n->first + n->count;
        return weft__step_constant(a, f, byte) == WEFT__STEP_TAKEN;
    case WEFT__RULE_NUMBER:
        f->kind = WEFT__FRAME_NUMBER;
        return weft__step_number(a, f, byte) == WEFT__STEP_TAKEN;
    case WEFT__RULE_STRING: f->kind = WEFT__FRAME_STRING; return byte == '"';
    case WEFT__RULE_ARRAY: f->kind = WEFT__FRAME_ARRAY; return byte == '[';
    case WEFT__RULE_OBJECT: f->kind = WEFT__FRAME_OBJECT; return byte == '{';
    }
    return false;
}

/* Begins a value of a node on a frame: one stack for each alternative. */
static weft__step begin_value(weft__automaton *a, weft__stack_frame below, uint32_t node, unsigned char byte,
                              weft__stacks *to) {
    const weft__rule *n = &a->grammar->nodes[node];
    const bool choice = n->kind == WEFT__RULE_CHOICE;
    const uint32_t depth = below.kind == WEFT__FRAME_END ? 0 : below.depth + 1u;
    uint32_t index = WEFT__NONE;
    for (uint32_t i = 0; i < (choice ? n->count : 1); i++) {
        const uint32_t leaf = choice ? a->grammar->alternatives[n->first + i] : node;
        weft__stack_frame f = {.node = leaf, .depth = (uint16_t)depth, .keys = WEFT__NONE};
        if (!weft__fits(a, leaf, depth) || !begin_frame(a, &f, byte)) continue;
        if (index == WEFT__NONE) index = push_frame(a, &below);
        f.below = index;
        put_top(to, &f);
    }
    return WEFT__STEP_SPLIT;
}

/* ---- arrays and objects ---- */

static weft__step step_array(weft__automaton *a, weft__stack_frame *f, unsigned char byte, weft__stacks *to) {
    const weft__rule *n = &a->grammar->nodes[f->node];
    const bool more = f->count < n->most && weft__fits(a, n->child, f->depth + 1u);
    const bool between = f->state == WEFT__PLACE_FIRST || f->state == WEFT__PLACE_NEXT;
    if (between && byte == ']') return f->count >= n->least ? WEFT__STEP_LAST : WEFT__STEP_REFUSED;
    if (!more) return WEFT__STEP_REFUSED;
    if (f->state == WEFT__PLACE_NEXT) {
        f->state = WEFT__PLACE_COMMA;
        return byte == ',' ? WEFT__STEP_TAKEN : WEFT__STEP_REFUSED;
    }
    if (f->state == WEFT__PLACE_COMMA && byte == ' ') {
        f->state = WEFT__PLACE_SPACE;
        return WEFT__STEP_TAKEN;
    }
    weft__stack_frame below = *f;
    below.state = WEFT__PLACE_NEXT;
    if (below.count < WEFT__NONE - 1) below.count++;
    return begin_value(a, below, n->child, byte, to);
}

/* Tells whether an undeclared key may come next. */
static bool key_free(const weft__automaton *a, const weft__stack_frame *f) {
    const uint32_t child = a->grammar->nodes[f->node].child;
    return child != WEFT__NONE && weft__fits(a, child, f->depth + 1u);
}

static bool key_possible(const weft__automaton *a, const weft__stack_frame *f) {
    const uint32_t count = a->grammar->nodes[f->node].count;
    bool possible = key_free(a, f);
    for (uint32_t i = f->next; i < count && !possible; i++) possible = weft__property_open(a, f, i);
    return possible;
}

static weft__step begin_key(weft__automaton *a, weft__stack_frame *f, unsigned char byte) {
    const weft__rule *n = &a->grammar->nodes[f->node];
    if (byte != '"' || !key_possible(a, f)) return WEFT__STEP_REFUSED;
    weft__stack_frame key = {.kind = WEFT__FRAME_KEY, .node = f->node, .hi = n->count, .keys = WEFT__NONE};
    key.free = key_free(a, f);
    key.below = push_frame(a, f);
    *f = key;
    return WEFT__STEP_TAKEN;
}

/* Whether a required property is still missing. */
static bool lacks(const weft__automaton *a, const weft__stack_frame *f) {
    const weft__rule *n = &a->grammar->nodes[f->node];
    return f->next < n->count && a->grammar->properties[n->first + f->next].until < n->count;
}

static weft__step step_object(weft__automaton *a, weft__stack_frame *f, unsigned char byte,
                              weft__stacks *to) {
    weft__stack_frame below = *f;
    switch (f->state) {
    case WEFT__PLACE_FIRST:
        if (byte == '}') return lacks(a, f) ? WEFT__STEP_REFUSED : WEFT__STEP_LAST;
        return begin_key(a, f, byte);
    case WEFT__PLACE_NEXT:
        if (byte == '}') return lacks(a, f) ? WEFT__STEP_REFUSED : WEFT__STEP_LAST;
        if (byte != ',' || !key_possible(a, f)) return WEFT__STEP_REFUSED;
        f->state = WEFT__PLACE_COMMA;
        return WEFT__STEP_TAKEN;
    case WEFT__PLACE_COMMA:
        if (byte != ' ') return begin_key(a, f, byte);
        f->state = WEFT__PLACE_SPACE;
        return WEFT__STEP_TAKEN;
    case WEFT__PLACE_SPACE: return begin_key(a, f, byte);
    case WEFT__PLACE_COLON:
        f->state = WEFT__PLACE_VALUE;
        return byte == ':' ? WEFT__STEP_TAKEN : WEFT__STEP_REFUSED;
    case WEFT__PLACE_VALUE:
        if (byte != ' ') break;
        f->state = WEFT__PLACE_SPACED;
        return WEFT__STEP_TAKEN;
    default: break;
    }
    below.state = WEFT__PLACE_NEXT;
    return begin_value(a, below, f->value, byte, to);
}

/* Lets the object below a key that has ended expect its value. */
static void leave_key(weft__automaton *a, weft__stack_frame *f) {
    weft__stack_frame object = a->pool[f->below];
    const weft__rule *n = &a->grammar->nodes[object.node];
    object.state = WEFT__PLACE_COLON;
    if (f->lo != WEFT__NONE) {
        object.next = f->lo + 1;
        object.value = a->grammar->properties[n->first + f->lo].node;
    } else {
        const weft__stack_frame known = {.hash = f->hash, .below = WEFT__NONE, .keys = object.keys};
        object.keys = push_frame(a, &known);
        object.value = n->child;
    }
    *f = object;
}

/* ---- steps ---- */

static weft__step step_frame(weft__automaton *a, weft__stack_frame *f, unsigned char byte, weft__stacks *to) {
    switch ((weft__frame_kind)f->kind) {
    case WEFT__FRAME_START: {
        const weft__stack_frame end = {.kind = WEFT__FRAME_END, .below = WEFT__NONE, .keys = WEFT__NONE};
        return begin_value(a, end, a->grammar->root, byte, to);
    }
    case WEFT__FRAME_END: return WEFT__STEP_REFUSED;
    case WEFT__FRAME_CONSTANT: return weft__step_constant(a, f, byte);
    case WEFT__FRAME_NUMBER: return weft__step_number(a, f, byte);
    case WEFT__FRAME_STRING: return weft__step_string(a, f, byte);
    case WEFT__FRAME_KEY: return weft__step_key(a, f, &a->pool[f->below], byte);
    case WEFT__FRAME_ARRAY: return step_array(a, f, byte, to);
    case WEFT__FRAME_OBJECT: return step_object(a, f, byte, to);
    }
    return WEFT__STEP_REFUSED;
}

bool weft__automaton_step(weft__automaton *a, const weft__stacks *from, unsigned char byte,
                          weft__stacks *to) {
    to->count = 0;
    for (uint32_t i = 0; i < from->count && !a->failed; i++) {
        weft__stack_frame f = from->tops[i];
        weft__step step;
        while ((step = step_frame(a, &f, byte, to)) == WEFT__STEP_OVER) f = a->pool[f.below];
        if (step == WEFT__STEP_LAST && f.kind == WEFT__FRAME_KEY)
            leave_key(a, &f);
        else if (step == WEFT__STEP_LAST)
            f = a->pool[f.below];
        if (step == WEFT__STEP_LAST || step == WEFT__STEP_TAKEN) put_top(to, &f);
    }
    return to->count > 0;
}

bool weft__automaton_complete(const weft__automaton *a, const weft__stacks *at) {
    for (uint32_t i = 0; i < at->count; i++) {
        const weft__stack_frame *f = &at->tops[i];
        if (f->kind == WEFT__FRAME_END) return true;
        const bool scalar = f->kind == WEFT__FRAME_CONSTANT || f->kind == WEFT__FRAME_NUMBER;
        if (scalar && weft__may_end(a, f) && a->pool[f->below].kind == WEFT__FRAME_END) return true;
    }
    return false;
}

uint32_t weft__automaton_plain(const weft__automaton *a, const weft__stacks *at) {
    uint32_t most = 0;
    for (uint32_t i = 0; i < at->count; i++) {
        const weft__stack_frame *f = &at->tops[i];
        const weft__rule *n = &a->grammar->nodes[f->node];
        uint32_t here = 0;
        if (f->kind == WEFT__FRAME_STRING && f->state == 0 && !f->follow)
            here = n->most == WEFT__NONE ? WEFT__NONE : n->most - f->count;
        if (f->kind == WEFT__FRAME_KEY && f->free && !f->follow) here = WEFT__NONE;
        if (here > most) most = here;
    }
    return most;
}

void weft__automaton_tidy(weft__automaton *a, weft__stacks *at) {
    uint32_t *to =
        weft__array(a->ctx, a->used + 1, sizeof *to); /* 0: unused; otherwise the new index, plus 1 */
    if (!to) return;                                  /* the pool stays as it is */
    size_t used = 0;
    for (uint32_t i = 0; i < at->count; i++) {
        if (at->tops[i].below != WEFT__NONE) to[at->tops[i].below] = 1;
        if (at->tops[i].keys != WEFT__NONE) to[at->tops[i].keys] = 1;
    }
    for (size_t i = a->used; i-- > 0;) {
        const weft__stack_frame *f = &a->pool[i];
        if (to[i] && f->below != WEFT__NONE) to[f->below] = 1;
        if (to[i] && f->keys != WEFT__NONE) to[f->keys] = 1;
    }
    for (size_t i = 0; i < a->used; i++) {
        if (!to[i]) continue;
        weft__stack_frame f = a->pool[i];
        if (f.below != WEFT__NONE) f.below = to[f.below] - 1;
        if (f.keys != WEFT__NONE) f.keys = to[f.keys] - 1;
        a->pool[used] = f;
        to[i] = (uint32_t)++used;
    }
    for (uint32_t i = 0; i < at->count; i++) {
        weft__stack_frame *f = &at->tops[i];
        if (f->below != WEFT__NONE) f->below = to[f->below] - 1;
        if (f->keys != WEFT__NONE) f->keys = to[f->keys] - 1;
    }
    a->used = used;
    weft__free(a->ctx, to);
}
