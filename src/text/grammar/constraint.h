/* Holds the tokens of a model to a grammar while it generates. Must not know: models. Read next:
 * constraint.c, nn/generate.c. */
#ifndef WEFT_SRC_TEXT_GRAMMAR_CONSTRAINT_H
#define WEFT_SRC_TEXT_GRAMMAR_CONSTRAINT_H

#include <weft/grammar.h>
#include <weft/text.h>

typedef struct weft__constraint weft__constraint;

/* Begins a text of a grammar. ends (count): the tokens that end a text; they are copied. Grammar and
 * tokenizer must outlive the constraint. */
weft_status weft__constraint_open(weft_context *ctx, const weft_grammar *grammar,
                                  const weft_tokenizer *tokenizer, const int32_t *ends, size_t count,
                                  weft__constraint **out);
/* NULL is allowed. */
void weft__constraint_free(weft__constraint *c);

/* Sets the logits (count) of all tokens that may not come next to -infinity. The tokens that end a text may
 * come if it is a whole value. Returns WEFT_ERR_UNSUPPORTED if no token may come: the tokenizer cannot write
 * what has to follow. */
weft_status weft__constraint_mask(const weft__constraint *c, float *logits, int64_t count);
/* Goes on with a token that may come next, and ends no text. */
weft_status weft__constraint_take(weft__constraint *c, int32_t id);
/* Whether the text is a whole value. */
bool weft__constraint_complete(const weft__constraint *c);
/* Whether it is one, and no token can continue it. */
bool weft__constraint_over(const weft__constraint *c);

#endif
