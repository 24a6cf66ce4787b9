/* The draft of weft generate and weft chat: a smaller model that proposes tokens. Must not know: how they are
 * checked. Read next: draft.c. */
#ifndef WEFT_SRC_CLI_DRAFT_H
#define WEFT_SRC_CLI_DRAFT_H

#include <weft/run.h>

#include "train/run/opened_model.h"

typedef struct weft__draft {
    weft_decode_state *cache;
    weft_module *module;       /* of a published model */
    weft_tokenizer *tokenizer; /* of a published model */
    weft_run *run;             /* of a run */
    weft_drafted counts;
} weft__draft;

/* Opens the model `path`, in the context of the model that is used, and sets the draft of `how`. Without a
 * path there is none. The tokens of both models must be the same. Close *draft before the model, also after
 * an error. */
weft_status weft__draft_open(const weft__opened_model *opened, const char *path, weft_generate_options *how,
                             weft__draft *draft);
void weft__draft_close(weft__draft *draft);

/* The options. path: const char **; how: weft_generate_options *. */
#define WEFT__DRAFT_OPTIONS(path, how)                                                                       \
    {"--draft MODEL", WEFT__OPTION_TEXT, path,                                                               \
     "a smaller model with the same tokenizer guesses tokens, and the model checks them: faster, with the "  \
     "same probabilities"},                                                                                  \
    {                                                                                                        \
        "--draft-tokens K", WEFT__OPTION_INT, &(how)->draft_tokens,                                          \
            "tokens that the draft guesses at once, 1 to 7; default: 4"                                      \
    }

#endif
