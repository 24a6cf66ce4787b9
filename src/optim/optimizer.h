/* The inside of an optimizer: which parameters it trains, and the layout of its memory.
 * Must not know: files, the insides of modules. Read next: layout.c (where parameters lie), update.c (the
 * formulas), step.c (running them). */
#ifndef WEFT_OPTIM_OPTIMIZER_H
#define WEFT_OPTIM_OPTIMIZER_H

#include <weft/optim.h>
#include "graph/graph.h"

typedef enum weft__optimizer_kind { WEFT__SGD, WEFT__RMSPROP, WEFT__ADAM, WEFT__ADAMW } weft__optimizer_kind;

enum { WEFT__STATES = 2 }; /* most state tensors of a parameter */

/* Sums of gradients, at most. Without exact_sum there is one, to which all micro-batches are added. With it
 * they are added as a binary counter counts: the sum of level l is that of 2^l micro-batches.
 *
 *     micro-batch      0    1      2       3
 *     sums afterwards  0: a        0: c                     level 0
 *                           1: ab  1: ab                    level 1
 *                                          2: (ab)(cd)      level 2 */
enum { WEFT__LEVELS = 31 };
/* The sums of gradients that a block has: one for each level, and the own part of those of all processes. */
enum { WEFT__RECEIVED = WEFT__LEVELS, WEFT__SUMS };

/* The options of all kinds. */
typedef struct weft__hyper {
    double lr, momentum, alpha, beta1, beta2, eps, weight_decay, clip, l1;
    bool nesterov, decay_matrices_only, track_norm, exact_sum;
} weft__hyper;

/* A number that changes from step to step: an input of the program, set only if it changes. */
typedef struct weft__step_number {
    weft_tensor *scalar; /* kept */
    double value;
} weft__step_number;

typedef struct weft__group {
    const char *pattern; /* interned */
    bool (*match)(void *user, const weft_parameter_info *info);
    void *user;
    double lr_scale, weight_decay, l1;
} weft__group;

/* A trainable parameter and its state. Both survive a new layout. */
typedef struct weft__slot {
    weft_tensor *parameter;
    const char *name;
    weft_tensor *state[WEFT__STATES]; /* NULL if the kind has no such state */
    bool divided; /* the states are only those of `part`, a row of elements within the block's state */
    weft_entry_part part; /* which elements of the parameter this process updates; may be none */
    bool trained;         /* is part of the present layout */
    weft_dtype compute;   /* dtype that its layer computes in */
    double lr_scale, weight_decay, l1;
} weft__slot;

/* A range of a block's elements with the same rate, decay and penalty. It reaches from the end of the range
 * before to `end`. */
typedef struct weft__range {
    int64_t end;
    double lr_scale, weight_decay, l1;
    weft__step_number step; /* factor of the update's direction */
    weft__step_number
        decay; /* AdamW: factor of the parameter; else: factor in gradient += decay * parameter */
    weft__step_number shrink; /* L1: how far parameters move towards 0, before the division by their size */
} weft__range;

/* Consecutive parameters of a block, whose gradients the processes exchange together. */
typedef struct weft__piece {
    size_t first, count; /* the parameters */
    int64_t from, n;     /* their elements in the block */
    size_t earliest;     /* slot of the first of them in the module, so the last of the backward pass */
    int number;          /* its place in the order of exchanges, which all processes share */
} weft__piece;

/* A range of a block that the processes have divided evenly: each updates a part of it and has the states of
 * that part. It is a piece or, on devices that exchange gradients after the backward pass, the whole block.
 */
typedef struct weft__slice {
    int64_t begin, n;     /* its elements in the block */
    int64_t each;         /* elements of each process; the last ones have fewer or none */
    int64_t from, own;    /* elements of this process: their place in the block, and how many there are */
    int64_t at;           /* their place in the gradients, if those are the own parts */
    int64_t kept;         /* their place in the block's states */
    weft_tensor *part;    /* the values of these elements, a variable within the block's values; NULL: none */
    weft_tensor *rounded; /* if parameters are divided: their rounded copy, or NULL */
    weft_tensor *witness; /* if there are none: receives one gradient, so that the program takes part in the
                           * exchange of all */
    weft_tensor *state[WEFT__STATES]; /* their states, variables within the block's states */
} weft__slice;

/* Parameters that the processes have divided (divide.c). */
typedef struct weft__division weft__division;

/* All trained parameters of one dtype. Complex ones count as pairs of floats. */
typedef struct weft__block {
    weft_dtype dtype, wide; /* dtype of storage, dtype of computation */
    size_t count;
    weft_tensor **parameters; /* [count], in the order of their offsets */
    int64_t *offsets;
    weft_tensor *values; /* the block's values, a vector; without memory if they are divided */
    weft__division *divided,
        *divided_rounded; /* of the values, and of their rounded copy; NULL: not divided */
    weft__slice *slices;  /* sharded: what this process has of the block; else NULL */
    size_t n_slices;
    int64_t n_own;        /* elements of the own parts of the gradients, with gaps; 0: there are no parts */
    weft_tensor *rounded; /* values in the dtype of computation, written with them; or NULL */
    weft_tensor *state[WEFT__STATES]; /* blocks of the state tensors */
    weft_tensor *sums[WEFT__SUMS];    /* sums of gradients while accumulating, in wide; NULL until needed */
    weft__range *ranges;
    size_t n_ranges;
    weft__piece *pieces;
    size_t n_pieces;
    weft__step_number epsilon; /* Adam: eps sqrt(1 - beta2^t) */
} weft__block;

enum { WEFT__BLOCKS = 4 }; /* number of float dtypes */

/* Elements whose squares are added up together in a step of several micro-batches. Divided gradients begin at
 * a multiple of it. */
enum { WEFT__CHUNK = 256 };

/* Dynamic loss scaling, see scale.c. The variables are on the device; NULL if the loss is not scaled. */
typedef struct weft__scaling {
    double growth, backoff;
    int64_t interval;
    weft_tensor *scale;   /* f32 */
    weft_tensor *good;    /* i32: steps with finite gradients since the last change of scale */
    weft_tensor *updates; /* i32: steps that changed the parameters */
} weft__scaling;
enum { WEFT__SCALING_STATES = 3 };

struct weft_optimizer {
    weft_tombstone tombstone;
    weft_context *ctx;
    weft_module *module; /* NULL after it was freed; then only the tombstone is left */
    weft__optimizer_kind kind;
    weft__hyper hyper;
    weft_schedule schedule;
    uint64_t steps; /* steps done */
    weft__group *groups;
    size_t n_groups, cap_groups;
    weft__slot *slots;
    size_t n_slots, cap_slots;
    weft__block blocks[WEFT__BLOCKS];
    size_t n_blocks, n_pieces; /* n_pieces: of all blocks */
    weft_tensor *norm;         /* variable of one element; NULL if the norm is not tracked */
    weft__scaling scaling;
    uint64_t identity;     /* identity of the layout: part of the program's key */
    uint64_t freeze_count; /* the module's count when it was laid out */
    bool laid_out, held;
    int next_part; /* next micro-batch to accumulate, 0: none; of a shared step: number added so far */
    weft_shard shard;
    weft_process_group *group; /* processes that share the steps; NULL: this one alone */
    weft_error *error;         /* poisoned: the cause */
};

/* The number of state tensors that a kind has, and their names. */
size_t weft__optimizer_states(const weft_optimizer *opt);
const char *weft__optimizer_state_name(const weft_optimizer *opt, size_t i);

/* ---- shard.c ---- */

/* Is the state divided among processes? */
static inline bool weft__optimizer_sharded(const weft_optimizer *opt) {
    return opt->shard != WEFT_SHARD_NONE;
}
/* Are the gradients divided, too? Then each micro-batch is exchanged. */
static inline bool weft__optimizer_divides_gradients(const weft_optimizer *opt) {
    return opt->shard >= WEFT_SHARD_GRADIENTS;
}
/* Are the parameters divided, too? */
static inline bool weft__optimizer_divides_parameters(const weft_optimizer *opt) {
    return opt->shard == WEFT_SHARD_PARAMETERS;
}
void weft__slices_release(weft_context *ctx, weft__block *block);
/* Gives all processes the parameters that each of them has updated. */
weft_status weft__optimizer_share_values(weft_optimizer *opt);

/* ---- divide.c ---- */

/* Divides the values of a block, which has its slices, and adds them to a hash. The parts of other processes
 * are forgotten. */
weft_status weft__divide_parameters(weft_optimizer *opt, weft__block *block, weft__hash_stream *stream);
void weft__division_release(weft_context *ctx, weft__division *division);
/* The variable that holds the parts of this process, or NULL. */
weft_tensor *weft__division_own(const weft__division *division);
/* The parts of the parameters, and of their rounded copies, have new values. */
void weft__divided_changed(const weft_optimizer *opt);
/* Rounds the own parts of a block, which were written. */
weft_status weft__round_parts(const weft__block *block);

/* ---- join.c ---- */

/* Compares a hash of all parameters over the processes. */
weft_status weft__optimizer_same_values(const weft_optimizer *opt, weft_hash hash);

/* ---- exchange.c ---- */

/* Do the processes exchange gradients while a step runs? Otherwise they do it afterwards. */
bool weft__optimizer_exchanges(const weft_optimizer *opt);
/* The same, and an exchange leaves only the own parts of the gradients, since the state is divided. */
bool weft__optimizer_receives_parts(const weft_optimizer *opt);
/* Does the device exchange data while a program computes? */
bool weft__optimizer_takes_exchanges(const weft_optimizer *opt);
/* Divides a new block into pieces. sorted: the slots of its parameters. */
weft_status weft__make_pieces(weft_optimizer *opt, weft__block *block, weft__slot *const *sorted);
/* Numbers the pieces of all blocks. */
void weft__number_pieces(weft_optimizer *opt);

/* Gives all processes the buffers of rank 0, such as running statistics, which follow the batches of each
 * process. */
weft_status weft__optimizer_share_buffers(const weft_optimizer *opt);

/* Updates the layout if parameters were frozen or thawed, groups were added, or others moved parameters. */
weft_status weft__optimizer_layout(weft_optimizer *opt);
void weft__optimizer_release(weft_optimizer *opt);
/* Rounds parameters again that somebody else has written. */
weft_status weft__optimizer_round(weft_optimizer *opt);

/* The assignments of a step: for each block its values, rounded values, sum and states; then the norm and the
 * loss scaling. Free both lists with weft__sinks_free. */
typedef struct weft__sinks {
    weft_tensor **variable, **value;
    size_t count;
} weft__sinks;
void weft__sinks_free(weft_context *ctx, weft__sinks *sinks);

/* A part of a step: a micro-batch, or the update from complete sums. */
typedef struct weft__part {
    uint32_t take; /* adds the sums of these levels, one bit each, to the gradients, the lowest level first */
    int put;       /* keeps the result as the sum of this level; -1: does not */
    bool own;      /* the result is the own parts of the gradients of all processes */
    bool exchange; /* adds up the result over all processes. An update does that, too */
    bool update;   /* divides the result by the number of micro-batches, and changes the parameters */
} weft__part;

/* A step of one micro-batch. */
extern const weft__part weft__whole_step;

/* Records a part of a step. loss NULL: without gradients, only the sums. parts: number of micro-batches of
 * the step. The caller frees *sinks, also after a failure. */
weft_status weft__optimizer_record(weft_optimizer *opt, weft_tensor *loss, const weft__part *part, int parts,
                                   weft__sinks *sinks);

/* ---- gradients.c ---- */

/* Records the gradients of all blocks, summed as the part wants it. loss NULL: there are only the sums. */
weft_status weft__optimizer_gradients(weft_optimizer *opt, weft_tensor *loss, const weft__part *part,
                                      weft_tensor **g);
/* Makes the block that sums gradients over micro-batches. */
weft_status weft__optimizer_ensure_sum(const weft_optimizer *opt, weft__block *block, int level);

/* ---- norm.c ---- */

/* Records the norm over all blocks. Clips the gradients to the limit as torch.nn.utils.clip_grad_norm_
 * does. parts: number of micro-batches of the step. */
void weft__norm_and_clip(weft_optimizer *opt, weft_tensor **g, bool own, int parts, weft__sinks *sinks);
/* The memory of the host that its exchange takes for a block. */
uint64_t weft__norm_exchange_bytes(const weft_optimizer *opt, const weft__block *block);

/* ---- update.c ---- */

/* Adds an assignment. Casts the value to the variable's dtype. */
void weft__optimizer_sink(weft__sinks *sinks, weft_tensor *variable, weft_tensor *value);

/* t cast to dtype, if it has another one. */
weft_tensor *weft__optimizer_as(weft_tensor *t, weft_dtype dtype);

/* For loss scaling. scaled_loss: the loss times the scale, of which gradients are taken. unscale: divides all
 * gradients by the scale and returns a bool that says whether all are finite, in all processes (NULL without
 * scaling).
 * scaling_sinks: adds the assignments that follow from this bool. */
weft_tensor *weft__scaled_loss(const weft_optimizer *opt, weft_tensor *loss);
weft_tensor *weft__unscale(const weft_optimizer *opt, weft_tensor **gradients, bool own);
void weft__scaling_sinks(const weft_optimizer *opt, weft_tensor *finite, weft__sinks *sinks);
/* Adam's 1 - beta^t. t counts the updates made so far and this one. */
weft_tensor *weft__correction(const weft_optimizer *opt, double beta, weft_dtype dtype);

/* State tensor i of the loss scaling. */
weft_tensor *weft__scaling_state(const weft_optimizer *opt, size_t i);
void weft__scaling_release(weft_optimizer *opt);

/* ---- numbers.c ---- */

/* Computes the numbers of the step that is `later` steps after the next one, such as its rate. */
weft_status weft__optimizer_numbers(weft_optimizer *opt, uint64_t later);

/* Do the numbers correct the bias of the mean gradients? Adam's do, unless only the device knows how many
 * updates there were. */
bool weft__optimizer_corrects(const weft_optimizer *opt);

/* A number of step t, counted from 1, at the rate lr. It is constant + per_rate * lr,
 * - if `second` is set, times sqrt(1 - beta2^t)
 * - if `first` is set, divided by 1 - beta1^t
 * Both factors are 1 for an optimizer that does not correct. */
typedef struct weft__step_rule {
    double constant, per_rate;
    bool second, first;
} weft__step_rule;

/* An input of a held step that changes from step to step. */
typedef struct weft__step_input {
    int64_t offset; /* its first byte among the program's scalars */
    bool random;
    uint32_t key[8];      /* random: the key; words 2 and 3 are the number of steps done, low and high */
    weft__step_rule rule; /* else: an f32 */
} weft__step_input;

/* Lists these inputs, for code that runs steps without the library. The caller frees *inputs with
 * weft__free. */
weft_status weft__optimizer_inputs(const weft_optimizer *opt, const weft_program *program,
                                   weft__step_input **inputs, size_t *count);

#endif
