/* Which tokens may come next: a walk over the tree of all tokens, along the states of the automaton. The walk
 * leaves a branch where no byte may follow. Within a string, most branches hold plain text only, and all
 * their tokens are taken at once. Must not know: models, sampling. Read next: automaton.h, token_tree.h. */
#include <math.h>
#include <string.h>

#include "text/grammar/automaton.h"
#include "text/grammar/constraint.h"
#include "text/grammar/token_tree.h"

enum { POOL_MIN = 1024 }; /* frames that are not worth tidying */

struct weft__constraint {
    weft_context *ctx;
    const weft__token_tree *tree; /* of the tokenizer */
    weft__automaton automaton;
    weft__stacks at;
    weft__stacks *levels;                /* [WEFT__TOKEN_BYTES + 1]: after each byte of a branch */
    size_t marks[WEFT__TOKEN_BYTES + 1]; /* the used part of the pool at each level */
    size_t tidied;                       /* the used part of the pool when it was tidied last */
    uint64_t *allowed;                   /* a bit for each token */
    size_t words;                        /* of `allowed` */
    int32_t *ends;
    size_t end_count;
    bool complete; /* the text is a whole value */
    bool more;     /* tokens other than the ends may come */
};

/* ---- which tokens ---- */

static void allow(weft__constraint *c, uint32_t first, uint32_t last) {
    for (uint32_t i = first; i < last; i++) {
        const uint32_t id = (uint32_t)c->tree->ids[i];
        c->allowed[id / 64] |= UINT64_C(1) << id % 64;
    }
}

static void walk(weft__constraint *c) {
    const weft__token_tree *v = c->tree;
    weft__automaton *a = &c->automaton;
    const size_t used = a->used;
    c->levels[0] = c->at;
    c->marks[0] = used;
    for (uint32_t i = 0; i < v->branch_count && !a->failed;) {
        const weft__branch *b = &v->branches[i];
        const size_t depth = b->depth;
        weft__stacks *after = &c->levels[depth];
        a->used = c->marks[depth - 1]; /* what other branches pushed is not needed any more */
        if (!weft__automaton_step(a, &c->levels[depth - 1], b->byte, after)) {
            i = b->skip;
            continue;
        }
        c->marks[depth] = a->used;
        const bool whole = b->plain && weft__automaton_plain(a, after) >= b->height;
        allow(c, b->first, whole ? b->last : b->own);
        i = whole ? b->skip : i + 1;
    }
    a->used = used;
}

/* Finds the tokens that may come next. */
static weft_status find_tokens(weft__constraint *c) {
    uint64_t any = 0;
    memset(c->allowed, 0, c->words * sizeof *c->allowed);
    walk(c);
    if (c->automaton.failed) return weft__fail_oom(c->ctx, sizeof(weft__stack_frame), "a grammar");
    c->complete = weft__automaton_complete(&c->automaton, &c->at);
    for (size_t i = 0; i < c->end_count; i++) {
        const uint32_t id = (uint32_t)c->ends[i];
        if (id / 64 < c->words) c->allowed[id / 64] &= ~(UINT64_C(1) << id % 64);
    }
    for (size_t i = 0; i < c->words; i++) any |= c->allowed[i];
    c->more = any != 0;
    for (size_t i = 0; i < c->end_count && c->complete; i++) {
        const uint32_t id = (uint32_t)c->ends[i];
        if (id / 64 < c->words) c->allowed[id / 64] |= UINT64_C(1) << id % 64;
    }
    return WEFT_OK;
}

weft_status weft__constraint_mask(const weft__constraint *c, float *logits, int64_t count) {
    bool any = false;
    for (int64_t i = 0; i < count; i++) {
        const bool yes = (size_t)i / 64 < c->words && c->allowed[i / 64] >> i % 64 & 1;
        if (!yes) logits[i] = -INFINITY;
        any |= yes;
    }
    if (any) return WEFT_OK;
    return weft__fail(
        c->ctx, WEFT_ERR_UNSUPPORTED,
        "the tokenizer has no token that can continue the JSON text: take a model whose tokenizer "
        "knows all bytes");
}

/* ---- the text ---- */

weft_status weft__constraint_take(weft__constraint *c, int32_t id) {
    const weft__token_tree *v = c->tree;
    weft__automaton *a = &c->automaton;
    size_t depth = 0;
    c->levels[0] = c->at;
    uint32_t i = 0, rank = 0;
    while (rank < v->count && v->ids[rank] != id) rank++;
    while (i < v->branch_count && rank < v->count) {
        const weft__branch *b = &v->branches[i];
        if (rank >= b->last || rank < b->first) {
            i = b->skip;
            continue;
        }
        if (!weft__automaton_step(a, &c->levels[depth], b->byte, &c->levels[depth + 1])) break;
        depth++;
        if (rank < b->own) {
            c->at = c->levels[depth];
            if (a->used > 2 * c->tidied + POOL_MIN) {
                weft__automaton_tidy(a, &c->at);
                c->tidied = a->used;
            }
            return find_tokens(c);
        }
        i++;
    }
    if (a->failed) return weft__fail_oom(c->ctx, sizeof(weft__stack_frame), "a grammar");
    return weft__fail(c->ctx, WEFT_ERR_INTERNAL, "the token %d cannot continue the JSON text", id);
}

bool weft__constraint_complete(const weft__constraint *c) { return c->complete; }

bool weft__constraint_over(const weft__constraint *c) { return c->complete && !c->more; }

/* ---- life ---- */

weft_status weft__constraint_open(weft_context *ctx, const weft_grammar *grammar,
                                  const weft_tokenizer *tokenizer, const int32_t *ends, size_t count,
                                  weft__constraint **out) {
    *out = NULL;
    weft__constraint *c = weft__zalloc(ctx, sizeof *c);
    if (!c) return weft__fail_oom(ctx, sizeof *c, "a grammar");
    c->ctx = ctx;
    c->words = weft_tokenizer_vocabulary(tokenizer) / 64 + 1;
    weft__automaton_begin(&c->automaton, ctx, grammar, &c->at);
    weft_status status = weft__token_tree_of(tokenizer, &c->tree);
    c->levels = weft__array(ctx, WEFT__TOKEN_BYTES + 1, sizeof *c->levels);
    c->allowed = weft__array(ctx, c->words, sizeof *c->allowed);
    c->ends = weft__array(ctx, count + 1, sizeof *c->ends);
    if (status == WEFT_OK && (!c->levels || !c->allowed || !c->ends))
        status = weft__fail_oom(ctx, (WEFT__TOKEN_BYTES + 1) * sizeof *c->levels, "a grammar");
    if (status == WEFT_OK) {
        if (count) memcpy(c->ends, ends, count * sizeof *ends);
        c->end_count = count;
        status = find_tokens(c);
    }
    if (status == WEFT_OK)
        *out = c;
    else
        weft__constraint_free(c);
    return status;
}

void weft__constraint_free(weft__constraint *c) {
    if (!c) return;
    weft__automaton_end(&c->automaton);
    weft__free(c->ctx, c->levels);
    weft__free(c->ctx, c->allowed);
    weft__free(c->ctx, c->ends);
    weft__free(c->ctx, c);
}
