/* Optimizers: one program a step, from the loss to the changed parameters.
 *
 * An optimizer belongs to its module and is freed with it at the latest. It lays all parameters that it
 * trains into one block of memory, so that gradient norm, clipping and update are one kernel each, whatever
 * their number. Formulas are those of PyTorch's torch.optim, operation by operation. Constructors never
 * return NULL: what could not be made is a poisoned optimizer, whose step reports the cause. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include <weft/memory.h>
#include <weft/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_optimizer weft_optimizer;

/* Fields of all: lr must be positive. weight_decay 0: none. decay_matrices_only: parameters of rank 0 and 1
 * (biases, norms) are not decayed. clip: limit of the global gradient norm, 0: none. track_norm: the gradient
 * norm can be asked for (with clip it always can). */

typedef struct weft_sgd_options {
    double lr;
    double momentum;
    bool nesterov;
    double weight_decay; /* added to the gradient: decay * parameter */
    bool decay_matrices_only;
    double clip;
    bool track_norm;
} weft_sgd_options;

typedef struct weft_rmsprop_options {
    double lr;
    double alpha; /* 0: 0.99 */
    double eps;   /* 0: 1e-8 */
    double momentum;
    double weight_decay; /* added to the gradient */
    bool decay_matrices_only;
    double clip;
    bool track_norm;
} weft_rmsprop_options;

typedef struct weft_adam_options {
    double lr;
    double beta1;        /* 0: 0.9 */
    double beta2;        /* 0: 0.999 */
    double eps;          /* 0: 1e-8 */
    double weight_decay; /* Adam: added to the gradient; AdamW: decoupled */
    bool decay_matrices_only;
    double clip;
    bool track_norm;
} weft_adam_options;

/* Gradient descent with momentum (no dampening) or Nesterov momentum (Sutskever et al. 2013). */
WEFT_API weft_optimizer *weft_sgd(weft_module *m, const weft_sgd_options *options);
/* Hinton 2012, not centred. */
WEFT_API weft_optimizer *weft_rmsprop(weft_module *m, const weft_rmsprop_options *options);
/* Kingma and Ba 2015. */
WEFT_API weft_optimizer *weft_adam(weft_module *m, const weft_adam_options *options);
/* Loshchilov and Hutter 2019. */
WEFT_API weft_optimizer *weft_adamw(weft_module *m, const weft_adam_options *options);

/* NULL is fine, and so is an optimizer whose module was freed: until then it is a poisoned one. */
WEFT_API void weft_optimizer_free(weft_optimizer *opt);

/* WEFT_OK, or the error that poisoned it. */
WEFT_API weft_status weft_optimizer_status(const weft_optimizer *opt);

/* "sgd", "rmsprop", "adam" or "adamw". */
WEFT_API const char *weft_optimizer_kind(const weft_optimizer *opt);

/* ---- steps ---- */

/* Computes loss (one element), its gradients, and changes the parameters. The loss can be read afterwards.
 * Frozen parameters stay. A loss that depends on none of the others is WEFT_ERR_ARGUMENT. Errors leave
 * everything as it was. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_step(weft_optimizer *opt, weft_tensor *loss);

/* The same in `of` parts: calls with k = 0, 1, ... of - 1 add up gradients, and the last one divides by `of`
 * and changes the parameters. Where each loss is the mean over one of `of` equal micro-batches, this equals
 * one step on the whole batch (dropout included: its masks are those of the whole batch). */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_accumulate(weft_optimizer *opt, weft_tensor *loss, int k,
                                                            int of);

/* ---- steps of several optimizers: data parallelism ----
 *
 * Copies of a model, equal at first, each in a context on a device of its own with an optimizer of its own,
 * share the parts of a step out among them: each records its parts and adds their gradients up
 * (weft_optimizer_part, forward, weft_optimizer_add), the sums are added over all (weft_optimizer_share), and
 * each makes the same change of its parameters (weft_optimizer_apply). weft_fit does that. */

/* What is recorded next is part k of a step, counted over all copies: its dropout masks are those that this
 * part of weft_optimizer_accumulate has. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_part(weft_optimizer *opt, int k);
/* Adds the gradients of loss to the sum, which begins anew after a step. Changes no parameter. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_add(weft_optimizer *opt, weft_tensor *loss);
/* The sum of each of the n optimizers becomes that of all, added in their order. Between cards by NCCL, where
 * all are CUDA's, different and it is installed; else by way of the host, which waits for them.
 * WEFT_ERR_STATE where one has added nothing, WEFT_ERR_SHAPE where their parameters differ. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_share(weft_optimizer *const *optimizers, size_t n);
/* Divides the sum by `parts`, the number that was added to it by all, and changes the parameters. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_apply(weft_optimizer *opt, int parts);

/* Compiles the step (of > 1: the first part of an accumulated one), which may follow, and runs nothing. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_plan(weft_optimizer *opt, weft_tensor *loss, int of,
                                                      weft_memory_plan *plan);

/* Compiles a step of this loss, to be repeated by weft_optimizer_run with nothing recorded anew: change its
 * inputs with weft_write. From then on groups and frozen parameters are fixed. Free it with
 * weft_program_free. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_hold(weft_optimizer *opt, weft_tensor *loss,
                                                      weft_program **program);
WEFT_API WEFT_CHECKED weft_status weft_optimizer_run(weft_optimizer *opt, weft_program *program);

/* The same, so many times, on the same inputs: the loss that can be read afterwards is the last step's. Where
 * no number changes from step to step (SGD and RMSprop at a constant rate, no dropout), the steps are one
 * submission to the device; a bad index in one of them leaves those before it done, though not counted. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_run_many(weft_optimizer *opt, weft_program *program,
                                                          uint64_t steps);

/* Norm of all gradients of the last step, before clipping; NaN when it is not tracked or no step was made. */
WEFT_API double weft_optimizer_grad_norm(weft_optimizer *opt);

/* ---- scaling of the loss, for f16 ---- */

typedef struct weft_loss_scale_options {
    double init;      /* 0: 65536 */
    double growth;    /* what the scale is multiplied with after so many good steps; 0: 2 */
    double backoff;   /* what it is multiplied with after a bad one; 0: 0.5 */
    int64_t interval; /* good steps in a row before it grows; 0: 2000 */
} weft_loss_scale_options;

/* From now on gradients are computed of the loss times a scale that follows from them (Micikevicius et al.
 * 2018), and divided by it before norm, clipping and update: what f16 would flush to 0 is kept. A step whose
 * gradients are not all finite is skipped: parameters and states stay, the scale becomes smaller. The device
 * decides, and nobody waits for it. Skipped steps count in weft_optimizer_steps, and so for the schedule, not
 * in Adam's corrections. The scale is part of the state below. NULL: all defaults. To be called before the
 * first step. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_scale_loss(weft_optimizer *opt,
                                                            const weft_loss_scale_options *options);
/* The scale now; NaN without scaling. Waits for the device. */
WEFT_API double weft_optimizer_loss_scale(weft_optimizer *opt);
/* Steps that changed the parameters: those that were not skipped. Waits for the device. */
WEFT_API uint64_t weft_optimizer_updates(weft_optimizer *opt);

/* ---- learning rate ---- */

typedef enum weft_schedule_kind {
    WEFT_SCHEDULE_CONSTANT,
    WEFT_SCHEDULE_STEP,   /* times factor every `every` steps */
    WEFT_SCHEDULE_COSINE, /* to min_lr at `steps`, half a cosine (Loshchilov and Hutter 2017) */
    WEFT_SCHEDULE_LINEAR  /* to min_lr at `steps` */
} weft_schedule_kind;

typedef struct weft_schedule {
    weft_schedule_kind kind;
    double lr;       /* the highest */
    uint64_t warmup; /* steps over which it rises linearly, first: step i has lr (i + 1) / (warmup + 1) */
    uint64_t steps;  /* of the whole run, warm-up included; from there on min_lr */
    double min_lr;   /* lowest after the warm-up */
    uint64_t every;  /* STEP: counted after the warm-up; 0: never */
    double factor;   /* STEP; 0: 0.1 */
} weft_schedule;

/* The rate of step `step`, counted from 0. A pure function. */
WEFT_API double weft_schedule_lr(const weft_schedule *schedule, uint64_t step);

/* "constant", "step", "cosine", "linear"; and back. */
WEFT_API const char *weft_schedule_name(weft_schedule_kind kind);
WEFT_API bool weft_schedule_parse(const char *name, weft_schedule_kind *kind);

/* From now on each step uses the schedule's rate. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_schedule(weft_optimizer *opt, const weft_schedule *schedule);
/* A constant rate (0 stops learning), without a schedule. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_set_lr(weft_optimizer *opt, double lr);
/* The rate that the next step will use; NaN for a poisoned optimizer. */
WEFT_API double weft_optimizer_lr(const weft_optimizer *opt);

/* ---- parameter groups ---- */

typedef struct weft_group_options {
    const char *pattern; /* of the full name, * stands for anything: "h.*.attn.*"; copied */
    bool (*match)(void *user, const weft_parameter_info *info); /* where pattern is NULL */
    void *user;
    double lr_scale;     /* 0: 1 */
    double weight_decay; /* of this group, for all its parameters; 0: none */
} weft_group_options;

/* Parameters that match get their own rate and decay; where several groups match, the last one added counts.
 * WEFT_ERR_ARGUMENT when no parameter matches. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_group(weft_optimizer *opt,
                                                       const weft_group_options *options);

/* ---- state, for checkpoints ---- */

/* Steps done. */
WEFT_API uint64_t weft_optimizer_steps(const weft_optimizer *opt);
/* Goes on as if so many steps had been made (bias corrections, schedule). */
WEFT_API void weft_optimizer_set_steps(weft_optimizer *opt, uint64_t steps);

/* State tensors, variables named "m.NAME", "v.NAME" (Adam, AdamW), "momentum.NAME" (SGD, RMSprop), "v.NAME"
 * (RMSprop) after the parameter's full name; with scaling also "loss_scale", "loss_scale.good" and
 * "loss_scale.updates". */
WEFT_API size_t weft_optimizer_state_count(weft_optimizer *opt);
WEFT_API bool weft_optimizer_state_get(weft_optimizer *opt, size_t i, weft_named_tensor *state);

/* Entries for weft_checkpoint_write; free them with weft_entries_free. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_entries(weft_optimizer *opt, weft_entry **entries,
                                                         size_t *count);
/* Reads them back, strictly. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_load_from(weft_optimizer *opt, weft_safetensors *file);

/* Moves training to another device: `to` is an optimizer of the same kind, made in a context there for a
 * module of the same build as `from`'s. It and its module get all that `from` and its module have: parameters
 * and buffers (weft_module_copy), state, steps done and schedule; its context the seed and the step of random
 * numbers. Training goes on as if it had always been there: with the same bits on a device of the same kind.
 * Options, groups and modes (weft_train, weft_freeze) are the caller's. WEFT_ERR_SHAPE names what differs,
 * and nothing is changed but parameters. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_copy(weft_optimizer *to, weft_optimizer *from);

#ifdef __cplusplus
}
#endif
#endif
