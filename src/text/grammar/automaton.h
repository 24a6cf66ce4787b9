/* An automaton that follows a text byte by byte, and knows which bytes may come next. It has several stacks
 * if a text can still become one of several values. Each stack can be completed: there are no dead ends. Must
 * not know: tokens. Read next: automaton.c, scalars.c, constraint.c. */
#ifndef WEFT_SRC_TEXT_GRAMMAR_AUTOMATON_H
#define WEFT_SRC_TEXT_GRAMMAR_AUTOMATON_H

#include "text/grammar/grammar.h"

enum {
    /* Most stacks. More alternatives at one place are left out, the last ones first: the text stays valid. */
    WEFT__STACKS = 64
};

/* What a frame reads. */
typedef enum weft__frame_kind {
    WEFT__FRAME_START, /* the bottom of each stack, before the value */
    WEFT__FRAME_END,   /* and behind it */
    WEFT__FRAME_CONSTANT,
    WEFT__FRAME_NUMBER,
    WEFT__FRAME_STRING,
    WEFT__FRAME_KEY, /* lies on the frame of its object */
    WEFT__FRAME_ARRAY,
    WEFT__FRAME_OBJECT
} weft__frame_kind;

/* What an array or object expects. */
typedef enum weft__place {
    WEFT__PLACE_FIRST, /* behind the opening bracket */
    WEFT__PLACE_NEXT,  /* behind an item */
    WEFT__PLACE_COMMA, /* behind a comma, where a space may be */
    WEFT__PLACE_SPACE, /* behind that space */
    WEFT__PLACE_COLON, /* behind a key */
    WEFT__PLACE_VALUE, /* behind a colon, where a space may be */
    WEFT__PLACE_SPACED /* behind that space */
} weft__place;

/* A value, or a key, that has begun. */
typedef struct weft__stack_frame {
    uint8_t kind;   /* weft__frame_kind */
    uint8_t state;  /* weft__place, or a state of scalars.c; 0 at first */
    uint8_t follow; /* bytes of a character that are missing; the next one is from `lowest` to `highest` */
    uint8_t lowest, highest;
    bool free;      /* a key may still be one that the schema does not name */
    uint16_t depth; /* brackets around it */
    uint32_t node;
    uint32_t below;  /* the frame below it, an index of the pool */
    uint32_t count;  /* items; characters; bytes of a constant or key; digits of a part of a number */
    uint32_t lo, hi; /* the constants or sorted properties that begin with the bytes so far: lo <= i < hi */
    uint32_t next;   /* object: the first property that may still come */
    uint32_t value;  /* object: node of the value that follows the key. String: digits of \uXXXX. Number: 1 if
                        negative */
    uint32_t keys;   /* object: the newest of its undeclared keys, a frame of the pool; WEFT__NONE */
    uint64_t hash;   /* key: of its bytes. Number: its whole digits */
} weft__stack_frame;

/* The tops of all stacks. */
typedef struct weft__stacks {
    uint32_t count;
    weft__stack_frame tops[WEFT__STACKS];
} weft__stacks;

typedef struct weft__automaton {
    const weft_grammar *grammar;
    weft_context *ctx;
    weft__stack_frame *pool; /* frames below the tops; later ones lie on earlier ones. Stacks share them */
    size_t used, room;
    bool failed; /* memory was short: all results are wrong */
} weft__automaton;

/* Starts at the begin of a text. */
void weft__automaton_begin(weft__automaton *a, weft_context *ctx, const weft_grammar *grammar,
                           weft__stacks *begin);
void weft__automaton_end(weft__automaton *a);

/* Follows one byte. Returns false if no valid text goes on with it; `to` is then empty. `to` may not be
 * `from`. */
bool weft__automaton_step(weft__automaton *a, const weft__stacks *from, unsigned char byte, weft__stacks *to);
/* Tells whether the text so far is a whole value. */
bool weft__automaton_complete(const weft__automaton *a, const weft__stacks *at);
/* Returns how many characters of plain text may follow: within a string, without quotes and escapes. */
uint32_t weft__automaton_plain(const weft__automaton *a, const weft__stacks *at);
/* Frees the frames of the pool that no stack of `at` uses. */
void weft__automaton_tidy(weft__automaton *a, weft__stacks *at);

/* ---- between the files of the automaton ---- */

/* What a frame does with a byte. */
typedef enum weft__step {
    WEFT__STEP_REFUSED,
    WEFT__STEP_TAKEN, /* the frame changed */
    WEFT__STEP_LAST,  /* the byte ends the frame */
    WEFT__STEP_SPLIT, /* the stacks that follow were added */
    WEFT__STEP_OVER   /* the frame ended before the byte */
} weft__step;

weft__step weft__step_constant(const weft__automaton *a, weft__stack_frame *f, unsigned char byte);
weft__step weft__step_number(const weft__automaton *a, weft__stack_frame *f, unsigned char byte);
weft__step weft__step_string(const weft__automaton *a, weft__stack_frame *f, unsigned char byte);
/* of: the frame of the object */
weft__step weft__step_key(const weft__automaton *a, weft__stack_frame *f, const weft__stack_frame *of,
                          unsigned char byte);
/* Tells whether a constant or a number may end here. */
bool weft__may_end(const weft__automaton *a, const weft__stack_frame *f);
/* Tells whether a property of an object may come next. */
bool weft__property_open(const weft__automaton *a, const weft__stack_frame *object, uint32_t property);
/* Tells whether a value of a node fits within `depth` brackets. */
static inline bool weft__fits(const weft__automaton *a, uint32_t node, uint32_t depth) {
    const uint32_t height = a->grammar->nodes[node].height;
    return height != WEFT__NONE && depth + height <= WEFT__GRAMMAR_DEPTH;
}

#endif
