/* Inside of a module: a tree of layers, each with parameters that become variables when the root is first
 * used. Knows tensor functions, nothing of optimizers. Read next: module.c, use.c, then any layer. */
#ifndef WEFT_NN_MODULE_H
#define WEFT_NN_MODULE_H

#include <weft/nn.h>
#include "graph/graph.h"

typedef struct weft__parameter {
    const char *name;      /* in its module, interned */
    const char *full;      /* from the root on, interned; NULL until the root is used */
    weft_tensor *variable; /* NULL until then */
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
    const char *kind; /* "linear" */
    const char *name; /* in its parent; of a root what it was named, or its kind */
    const char *path; /* from the root on, of a root its name; NULL until used */
    weft_module *parent;
    weft_module *next; /* in the context's list of roots */
    weft_module **children;
    size_t n_children, cap_children;
    int height; /* levels of modules from here on, counting this one */
    weft__parameter *parameters;
    size_t n_parameters, cap_parameters;
    weft_forward_fn forward;
    void *user;
    bool owns_user;    /* user is private memory of a built-in layer */
    bool used;         /* root: parameters exist and the tree is fixed */
    bool evaluating;   /* not training */
    uint8_t recompute; /* weft_recompute: what is computed again in the backward pass */
    uint8_t cheap;     /* weft_recompute that recomputes all of it at little cost; 0: none does */
    bool unit;         /* what WEFT_RECOMPUTE_BLOCK recomputes as a whole */
    bool decoding;     /* root: evaluating for now, whatever the mode */
    bool running;      /* a forward call is under way */
    const weft_attend_options *attend; /* of the weft_attend under way */
    weft_dtype compute;                /* bf16 or f16, from parameters of f32; WEFT_F32: in what they are */
    uint64_t freezes;                  /* root: calls of weft_freeze in the tree */
    const char *where;                 /* the user's place of the forward call under way */
    bool ran;                          /* has given something, */
    int out_rank;                      /* last of this shape */
    int64_t out_shape[WEFT_MAX_RANK];
    weft__on_free *on_free;
    weft_error *error; /* poisoned: why */
};

/* Walks over a tree of modules recurse, and so do forward functions: no tree may be deeper. */
enum { WEFT_MODULE_DEPTH = 256 };

/* A built-in layer with `own_bytes` of zeroed private memory at ->user. Never NULL. */
weft_module *weft__module_make(weft_context *ctx, const char *kind, weft_forward_fn forward,
                               size_t own_bytes);

/* Where a constructor has no context, which would own a poisoned module: one a thread, with the last such
 * cause. */
weft_module *weft__module_without_context(const char *function);

/* Poisons m, unless it is already, and returns it. */
weft_module *weft__module_poison(weft_module *m, weft_status status, const char *fmt, ...) WEFT_PRINTF(3, 4);

weft_module *weft__module_root(weft_module *m);

/* Makes the variables of m's whole tree. */
weft_status weft__module_use(weft_module *m);

/* Begins a segment (graph/graph.h) where m's policy is to recompute what is of that kind, and the module is
 * in training; to be ended by weft__segment_end in any case. */
uint32_t weft__recompute_begin(const weft_module *m, weft_recompute kind);

/* t as m computes with it. */
weft_tensor *weft__computed(const weft_module *m, weft_tensor *t);

/* The i-th parameter of m, in the order of adding; for a module in use. */
static inline weft_tensor *weft__parameter_of(const weft_module *m, size_t i) {
    return weft__computed(m, m->parameters[i].variable);
}

/* The i-th, a buffer, as a forward pass reads it: with what passes before have assigned, computed or not. */
weft_tensor *weft__buffer_of(const weft_module *m, size_t i);

/* `init`, or `otherwise` where it is the default. */
static inline weft_init weft__init_or(weft_init init, weft_init otherwise) {
    return init.kind == WEFT_INIT_DEFAULT ? otherwise : init;
}

/* The variable of a parameter, whose first values are drawn when they are needed; stream: of its name. */
weft_tensor *weft__init_variable(weft_context *ctx, const weft__parameter *parameter, uint64_t stream);

/* Applies an activation. */
weft_tensor *weft__activate(const char *where, weft_activation_kind kind, weft_tensor *x);

/* A norm of that kind. */
weft_module *weft__norm_of_kind(weft_context *ctx, weft_norm_kind kind, int64_t width,
                                const weft_norm_options *options);

/* What an attention layer needs for one decoding step: its caches (1, heads of keys, S, D), and afterwards
 * their new values. */
typedef struct weft__decode {
    weft_tensor *position; /* i32 scalar: tokens before this step */
    weft_tensor *keys, *values;
    weft_tensor *next_keys, *next_values;
} weft__decode;

/* Sets (NULL: clears) the decoding step of a multihead attention layer. */
void weft__attention_decode(weft_module *attention, weft__decode *step);

/* Sets or clears the decoding step of a GPT; steps: one for each layer; last: index of the token whose logits
 * are wanted, i32 (1). */
void weft__gpt_decode(weft_module *gpt, weft_tensor *position, weft_tensor *last, weft__decode *steps);

/* The options a GPT was made with; NULL for another module. */
const weft_gpt_options *weft__gpt_options_of(const weft_module *gpt);

#endif
