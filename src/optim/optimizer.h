/* Inside of an optimizer: what it trains and how its memory is laid out. Read next: layout.c (which parameter
 * lies where), update.c (the formulas), step.c (running them). */
#ifndef WEFT_OPTIM_OPTIMIZER_H
#define WEFT_OPTIM_OPTIMIZER_H

#include <weft/optim.h>
#include "graph/graph.h"

typedef enum weft__optimizer_kind { WEFT__SGD, WEFT__RMSPROP, WEFT__ADAM, WEFT__ADAMW } weft__optimizer_kind;

enum { WEFT__STATES = 2 }; /* most state tensors of a parameter */

/* Options of all kinds in one. */
typedef struct weft__hyper {
    double lr, momentum, alpha, beta1, beta2, eps, weight_decay, clip;
    bool nesterov, decay_matrices_only, track_norm;
} weft__hyper;

/* A number that changes from step to step: an input of the program, set only when it changes. */
typedef struct weft__step_number {
    weft_tensor *scalar; /* kept */
    double value;
} weft__step_number;

typedef struct weft__group {
    const char *pattern; /* interned */
    bool (*match)(void *user, const weft_parameter_info *info);
    void *user;
    double lr_scale, weight_decay;
} weft__group;

/* A trainable parameter and its state, which survives a new layout. */
typedef struct weft__slot {
    weft_tensor *parameter;
    const char *name;
    weft_tensor *state[WEFT__STATES]; /* NULL where the kind has none */
    bool trained;                     /* in the present layout */
    weft_dtype compute;               /* what its layer computes in */
    double lr_scale, weight_decay;
} weft__slot;

/* Elements before `end` (and from the range before it on) of a block share rate and decay. */
typedef struct weft__range {
    int64_t end;
    double lr_scale, weight_decay;
    weft__step_number step; /* what the direction is multiplied by */
    weft__step_number
        decay; /* AdamW: what the parameter is multiplied by; else what it adds to the gradient, over it */
} weft__range;

/* All trained parameters of one dtype, complex ones among the floats that they are pairs of. */
typedef struct weft__block {
    weft_dtype dtype, wide; /* stored, computed */
    size_t count;
    weft_tensor **parameters; /* [count], in the order of their offsets */
    int64_t *offsets;
    weft_tensor *values;              /* the block, a vector */
    weft_tensor *rounded;             /* the same in what layers compute in, written with it; or NULL */
    weft_tensor *state[WEFT__STATES]; /* blocks too */
    weft_tensor *sum;                 /* of gradients, while accumulating; in wide; NULL until needed */
    weft__range *ranges;
    size_t n_ranges;
    weft__step_number epsilon; /* Adam: eps sqrt(1 - beta2^t) */
} weft__block;

enum { WEFT__BLOCKS = 4 }; /* float dtypes */

/* Dynamic scaling of the loss: see scale.c. The variables are on the device, and NULL without it. */
typedef struct weft__scaling {
    double growth, backoff;
    int64_t interval;
    weft_tensor *scale;   /* f32 */
    weft_tensor *good;    /* i32: steps with finite gradients since the scale last changed */
    weft_tensor *updates; /* i32: steps that changed the parameters */
} weft__scaling;
enum { WEFT__SCALING_STATES = 3 };

struct weft_optimizer {
    weft_shell shell;
    weft_context *ctx;
    weft_module *module; /* NULL once it was freed, and all of this with it but the shell */
    weft__optimizer_kind kind;
    weft__hyper hyper;
    weft_schedule schedule;
    uint64_t steps; /* done */
    weft__group *groups;
    size_t n_groups, cap_groups;
    weft__slot *slots;
    size_t n_slots, cap_slots;
    weft__block blocks[WEFT__BLOCKS];
    size_t n_blocks;
    weft_tensor *norm; /* variable of one element; NULL when it is not tracked */
    weft__scaling scaling;
    uint64_t identity;     /* of the layout: part of the program's key */
    uint64_t freeze_count; /* of the module when it was laid out */
    bool laid_out, held;
    int next_part; /* of an accumulated step: 0 when none is under way; of a shared one how many were added */
    weft_error *error; /* poisoned: why */
};

/* How many state tensors a kind has, and what they are called. */
size_t weft__optimizer_states(const weft_optimizer *opt);
const char *weft__optimizer_state_name(const weft_optimizer *opt, size_t i);

/* Makes the layout fit the module: which parameters are frozen, groups, who else moved them. */
weft_status weft__optimizer_layout(weft_optimizer *opt);
void weft__optimizer_release(weft_optimizer *opt);
/* Brings rounded values up to date with parameters that somebody else has written. */
weft_status weft__optimizer_round(weft_optimizer *opt);

/* What a step assigns. */
typedef struct weft__sinks {
    weft_tensor *variable[5 * WEFT__BLOCKS + 4], *value[5 * WEFT__BLOCKS + 4];
    size_t count;
} weft__sinks;

/* APPLY: of a sum that is complete, without a loss. */
typedef enum weft__phase { WEFT__WHOLE, WEFT__FIRST, WEFT__MIDDLE, WEFT__LAST, WEFT__APPLY } weft__phase;

/* Records gradients of loss and the updates of a phase; parts: of an accumulated step. */
weft_status weft__optimizer_record(weft_optimizer *opt, weft_tensor *loss, weft__phase phase, int parts,
                                   weft__sinks *sinks);

/* Adds an assignment, in the variable's dtype. */
void weft__optimizer_sink(weft__sinks *sinks, weft_tensor *variable, weft_tensor *value);

/* t in another dtype, where it has not got it. */
weft_tensor *weft__optimizer_as(weft_tensor *t, weft_dtype dtype);

/* Of an optimizer that scales: what gradients are of; whether all of them, divided by the scale here, are
 * finite (a bool); and the assignments that follow from that. */
weft_tensor *weft__scaled_loss(const weft_optimizer *opt, weft_tensor *loss);
weft_tensor *weft__unscale(const weft_optimizer *opt, weft_tensor **gradients);
void weft__scaling_sinks(const weft_optimizer *opt, weft_tensor *finite, weft__sinks *sinks);
/* Adam's 1 - beta^t, t of the updates that were made and this one. */
weft_tensor *weft__correction(const weft_optimizer *opt, double beta, weft_dtype dtype);

/* The i-th state tensor of the scaling. */
weft_tensor *weft__scaling_state(const weft_optimizer *opt, size_t i);
void weft__scaling_release(weft_optimizer *opt);

/* Sets the numbers of the next step. */
weft_status weft__optimizer_numbers(weft_optimizer *opt);

#endif
