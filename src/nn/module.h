/* The inside of a module: a tree of layers. Their parameters become variables when the root is first used.
 * Must not know: optimizers, devices. Read next: module.c, use.c, then any layer. */
#ifndef WEFT_NN_MODULE_H
#define WEFT_NN_MODULE_H

#include <weft/nn.h>
#include "graph/graph.h"

typedef struct weft__parameter {
    const char *name;      /* name within its module, interned */
    const char *full;      /* name from the root on, interned; NULL until the root is used */
    weft_tensor *variable; /* NULL until the root is used */
    weft_init init;
    weft_dtype dtype;
    int rank;
    int64_t shape[WEFT_MAX_RANK];
    bool frozen, buffer;
} weft__parameter;

typedef struct weft__on_free {
    struct weft__on_free *next;
    void (*call)(void *user);
    void *user;
} weft__on_free;

struct weft_module {
    weft_context *ctx;
    const char *kind; /* type of the layer, such as "linear" */
    const char *name; /* name within its parent; of a root: the given name, or its kind */
    const char *path; /* names from the root on, of a root its own; NULL until used */
    weft_module *parent;
    weft_module *next; /* in the context's list of roots */
    weft_module **children;
    size_t n_children, cap_children;
    int height; /* levels of the tree from this module down, which counts as 1 */
    weft__parameter *parameters;
    size_t n_parameters, cap_parameters;
    weft_forward_fn forward;
    void *user;
    bool owns_user;    /* user is private memory of a built-in layer, freed with the module */
    bool used;         /* root: the variables exist and the tree is fixed */
    bool evaluating;   /* evaluation mode, not training */
    uint8_t recompute; /* weft_recompute: the policy set for this module */
    uint8_t cheap;     /* lowest weft_recompute under which this cheap layer is recomputed; 0: none */
    bool unit;         /* WEFT_RECOMPUTE_BLOCK recomputes it as a whole */
    bool decoding;     /* root: evaluates during a decoding step, whatever the mode */
    bool running;      /* a forward call is running */
    bool elsewhere;    /* a copy on another device computes it, so its parameters are never loaded */
    const weft_attend_options *attend; /* options of the running weft_attend */
    weft_dtype compute; /* bf16 or f16: used instead of f32; WEFT_F32: the dtype of parameters */
    uint64_t freezes;   /* root: number of calls of weft_module_freeze in the tree */
    const char *where;  /* the user's location of the running forward call */
    bool ran;           /* has returned an output */
    int out_rank;       /* shape of the last output */
    int64_t out_shape[WEFT_MAX_RANK];
    weft__on_free *on_free;
    weft_error *error; /* poisoned: the cause */
};

/* Maximum depth of a tree. Walks over modules recurse, and so do forward functions. */
enum { WEFT_MODULE_DEPTH = 256 };

/* Makes a built-in layer with `own_bytes` of zeroed private memory in ->user. Never NULL. */
weft_module *weft__module_make(weft_context *ctx, const char *kind, weft_forward_fn forward,
                               size_t own_bytes);

/* The thread's poisoned module, for a constructor that got no context. The next such error overwrites it. */
weft_module *weft__module_without_context(const char *function);

/* Adds a child, named by its number. */
void weft__module_append(weft_module *m, weft_module *child);

/* Poisons m, unless it is poisoned already, and returns it. */
weft_module *weft__module_poison(weft_module *m, weft_status status, const char *fmt, ...) WEFT_PRINTF(3, 4);

weft_module *weft__module_root(weft_module *m);

/* Removes a child from its parent, and frees it. No tensor may be recorded with its parameters. */
void weft__module_remove(weft_module *child);

/* Makes the variables of the whole tree that m belongs to. */
weft_status weft__module_use(weft_module *m);

/* weft_module_freeze_matching for another caller, whose name begins the message. */
weft_status weft__module_freeze_matching(weft_module *m, const char *caller, const char *pattern,
                                         bool frozen);

/* Whether m is part of a module that another device computes. */
bool weft__module_elsewhere(const weft_module *m);

/* Begins a segment (graph/graph.h) if m is in training and its policy recomputes layers of that kind. End it
 * by weft__segment_end in any case. */
uint32_t weft__recompute_begin(const weft_module *m, weft_recompute kind);

/* t in the dtype that m computes in. */
weft_tensor *weft__computed(const weft_module *m, weft_tensor *t);

/* Parameter i of m, in the order of adding, in the dtype of computation. The module must be in use. */
static inline weft_tensor *weft__parameter_of(const weft_module *m, size_t i) {
    return weft__computed(m, m->parameters[i].variable);
}

/* Buffer i of m, as a forward pass must read it: with the assignments of earlier passes, whether computed or
 * not. */
weft_tensor *weft__buffer_of(const weft_module *m, size_t i);

/* `init`; if it is the default, `otherwise`. */
static inline weft_init weft__init_or(weft_init init, weft_init otherwise) {
    return init.kind == WEFT_INIT_DEFAULT ? otherwise : init;
}

/* The variable of a parameter. Its first values are drawn when they are needed. stream: hash of the name. */
weft_tensor *weft__init_variable(weft_context *ctx, const weft__parameter *parameter, uint64_t stream);

/* Applies an activation. */
weft_tensor *weft__activate(const char *where, weft_activation_kind kind, weft_tensor *x);

/* ---- packed weights: packing.c ---- */

typedef struct weft__packed_part {
    int64_t rows;
    weft_packed_format format;
    size_t parameter; /* index of its buffer */
} weft__packed_part;

/* How the weight of a linear layer or an embedding is packed. */
typedef struct weft__packing {
    int count; /* of parts; 0: the weight is not packed */
    weft__packed_part part[WEFT_PACKED_PARTS];
} weft__packing;

/* Returns the packing of a linear layer or an embedding, and the rows and width of its weight; NULL for other
 * layers. */
weft__packing *weft__packing_of(const weft_module *m, int64_t *rows, int64_t *width);
/* x times the transpose of the packed weight of m. */
weft_tensor *weft__packed_product(const weft_module *m, const weft__packing *packing, weft_tensor *x);
/* Returns a parameter of m. If it is a packed weight, returns its numbers in f32, with all parts. */
weft_tensor *weft__whole_weight(const weft_module *m, weft_tensor *parameter);
/* The logits that the table of an embedding gives, as a tied head. */
weft_tensor *weft__embedding_logits(const char *where, const weft_module *embedding, weft_tensor *x);

/* The channels of a head of attention. */
static inline int64_t weft__head_width(const weft_attention_form *form, int64_t width, int64_t heads) {
    return form->head_width ? form->head_width : width / heads;
}

/* Makes a norm of the given kind. */
weft_module *weft__norm_of_kind(weft_context *ctx, weft_norm_kind kind, int64_t width,
                                const weft_norm_options *options);

/* The caches of an attention layer for one text (1, KV heads, S, D). A decoding step stores their new values.
 */
typedef struct weft__decode {
    weft_tensor *position; /* i32 scalar: number of tokens before this step */
    weft_tensor *keys, *values;
    weft_tensor *next_keys, *next_values;
} weft__decode;

/* The most texts of a decoding step. */
enum { WEFT__DECODE_MOST = 64 };

/* A decoding step. Its tokens are (1, T): T tokens of one text, or one token of each of T texts. */
typedef struct weft__decode_step {
    weft_tensor *position; /* i32: a scalar, the number of tokens before; or (T), that of each text */
    weft_tensor *last;     /* index of the token whose logits are wanted, i32 (1); NULL: of all tokens */
    weft__decode **texts;  /* [count] the caches of each text, one for each layer */
    int64_t count;         /* of texts */
} weft__decode_step;

/* Sets the decoding step of a multi-head attention layer, and the layer's number; NULL clears it. */
void weft__attention_decode(weft_module *attention, const weft__decode_step *step, int64_t layer);

/* Sets the decoding step of a GPT; NULL clears it. */
void weft__gpt_decode(weft_module *gpt, const weft__decode_step *step);
/* Lets a GPT that is not used yet compute only its blocks first to end - 1. Without block 0 it takes hidden
 * states (1, T, width) instead of tokens; without the last block it returns them instead of logits. Weights
 * of other blocks are checked when they are loaded, but take no memory. */
void weft__gpt_keep(weft_module *gpt, int64_t first, int64_t end);
/* The blocks that it computes. */
void weft__gpt_kept(const weft_module *gpt, int64_t *first, int64_t *end);
/* Lets a cache pass the hidden states of its GPT on to `next`, the cache of the GPT with the next blocks, on
 * another device. The first cache of such a chain stands for all: it is fed, cut and reset. Each is freed by
 * itself. */
void weft__gpt_cache_link(weft_decode_state *cache, weft_decode_state *next);
/* The context of a cache, and the number of its logits (0 after its model was freed). */
weft_context *weft__gpt_cache_context(const weft_decode_state *cache);
int64_t weft__gpt_cache_vocab(const weft_decode_state *cache);
/* Keeps the first `length` tokens of a cache, at most as many as it has. Not for a recurrent model. */
void weft__gpt_cache_cut(weft_decode_state *cache, int64_t length);
/* Whether it is not of a recurrent model. */
bool weft__gpt_cache_cuts(const weft_decode_state *cache);

/* Whether a module is an adapter of a linear layer. */
bool weft__is_lora(const weft_module *m);
/* Adds what the adapters of a linear layer compute from its input x to its result y. */
weft_tensor *weft__lora_add(const char *where, const weft_module *linear, weft_tensor *x, weft_tensor *y);
/* The form of an adapter. */
typedef struct weft__lora {
    int64_t rank, first, rows; /* the rows of the layer's weight that it adds to */
    double scale, dropout;
} weft__lora;
weft__lora weft__lora_form(const weft_module *lora);
/* The weight of a linear layer with its adapters added, in f32 if it has any. */
weft_tensor *weft__lora_merged(const weft_module *linear, weft_tensor *weight);

/* How a token is drawn; see weft_generate_options. */
typedef struct weft__sampling {
    double temperature;
    int64_t top_k;
    double top_p, min_p; /* 0: off */
} weft__sampling;

/* weft_sample with all choices. */
int64_t weft__sample(const float *logits, int64_t count, const weft__sampling *how, uint64_t seed,
                     uint64_t draw);
/* The probabilities with which weft__sample draws each of the tokens. Returns false if no logit is finite. */
bool weft__probabilities(const float *logits, int64_t count, const weft__sampling *how, double *out);
/* Applies the repetition penalty to the logits of tokens ids (n), once for each. */
void weft__penalize(float *logits, int64_t count, const int32_t *ids, int64_t n, double penalty);

/* Records a step of decoding with the caches of a GPT: the logits in f32 that follow the tokens (1, n).
 * position: the number of tokens before, an i32 scalar. last: as in weft__decode_step. */
weft_tensor *weft__gpt_cache_record(weft_decode_state *cache, weft_tensor *tokens, weft_tensor *position,
                                    weft_tensor *last);
/* Returns state i of the caches, and its value after the step that was recorded last. False: there is no
 * state i. */
bool weft__gpt_cache_state(const weft_decode_state *cache, int64_t i, weft_tensor **variable,
                           weft_tensor **next);

/* The options that a GPT was made with; NULL if the module is no GPT. */
const weft_gpt_options *weft__gpt_options_of(const weft_module *gpt);

/* The same for a module of weft_nn_encoder. */
const weft_encoder_options *weft__encoder_options_of(const weft_module *encoder);

#endif
