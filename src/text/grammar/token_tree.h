/* The tokens of a tokenizer as a tree of their bytes, for walks that stop at the first byte that cannot
 * follow. Must not know: grammars. Read next: token_tree.c, constraint.c. */
#ifndef WEFT_SRC_TEXT_GRAMMAR_TOKEN_TREE_H
#define WEFT_SRC_TEXT_GRAMMAR_TOKEN_TREE_H

#include "text/tokenizer.h"

enum { WEFT__TOKEN_BYTES = 256 }; /* longer tokens are left out */

/* A node of the tree: a sequence of bytes with which tokens begin. Its children follow it in the array. */
typedef struct weft__branch {
    unsigned char byte; /* the last byte of the sequence */
    bool plain;     /* what follows it in the tokens is text without quotes, escapes and control characters */
    uint16_t depth; /* bytes of the sequence */
    uint16_t height; /* most bytes that follow it in a token */
    uint32_t skip;   /* the next branch that does not begin with this sequence */
    uint32_t first, own,
        last; /* tokens with this sequence: ids[first..last); those that end with it: [first..own) */
} weft__branch;

typedef struct weft__token_tree {
    weft_context *ctx;
    int32_t *ids; /* sorted by the bytes of the tokens */
    weft__branch *branches;
    size_t count, branch_count, room;
} weft__token_tree;

/* Gives the tree of a tokenizer, which belongs to it. The first call makes it. The tree has the tokens that
 * add the same bytes to every text: no special tokens, and none whose bytes depend on the tokens around it.
 */
weft_status weft__token_tree_of(const weft_tokenizer *tokenizer, const weft__token_tree **out);
/* NULL is allowed. */
void weft__token_tree_free(weft__token_tree *tree);

#endif
