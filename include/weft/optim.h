/* Optimizers. A step is one program, from the loss to the changed parameters.
 *
 * An optimizer belongs to its module and is freed with it at the latest. It stores all parameters that it
 * trains in one block of memory. So gradient norm, clipping and update are one kernel each, whatever the
 * number of parameters. The formulas are those of PyTorch's torch.optim, operation by operation.
 *
 * Constructors never return NULL. After a failure they return a poisoned optimizer, whose step reports the
 * cause. */
#ifndef WEFT_OPTIM_H
#define WEFT_OPTIM_H

#include <weft/memory.h>
#include <weft/nn.h>
#include <weft/process_group.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_optimizer weft_optimizer;

/* Fields that all optimizers have:
 * - lr: must be set, and positive. So the options of an optimizer cannot be NULL
 * - weight_decay: 0: none
 * - decay_matrices_only: neither decay nor penalise parameters of rank 0 and 1 (biases, norms)
 * - clip: limit of the global gradient norm; 0: none
 * - track_norm: make weft_optimizer_grad_norm work; with `clip` it always does
 * - l1: penalty, l1 times the sum of the parameters' absolute values; 0: none. It makes parameters exactly 0:
 *   after the update, a proximal step moves each one towards 0. Training converges to a minimum of the loss
 * plus the penalty (lasso; with weight_decay of SGD, RMSprop or Adam the elastic net). The penalty is not
 * part of the loss, of the gradient norm and of clipping, and an accumulated step applies it once. Complex
 * parameters count as pairs of floats
 * - exact_sum: adds the gradients of micro-batches in a binary tree. A step then has the same bits on any
 *   number of copies that share it. Each of several copies must have 1, 2, 4, 8, ... micro-batches. One copy
 *   keeps log2(n) sums of gradients for n micro-batches, and one more on cards; several copies keep
 *   1 + log2(m), for m micro-batches each. Without exact_sum there is one sum. For more than two copies in a
 *   process the host adds, not NCCL. */

typedef struct weft_sgd_options {
    double lr;
    double momentum;
    bool nesterov;
    double weight_decay; /* added to the gradient: decay * parameter */
    bool decay_matrices_only;
    double clip;
    bool track_norm;
    double l1;
    bool exact_sum;
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
    double l1;
    bool exact_sum;
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
    double l1;
    bool exact_sum;
} weft_adam_options;

/* Stochastic gradient descent with momentum (no dampening) or Nesterov momentum (Sutskever et al. 2013). */
WEFT_API weft_optimizer *weft_sgd(weft_module *m, const weft_sgd_options *options);
/* RMSprop (Hinton 2012), not centred. */
WEFT_API weft_optimizer *weft_rmsprop(weft_module *m, const weft_rmsprop_options *options);
/* Adam (Kingma and Ba 2015). */
WEFT_API weft_optimizer *weft_adam(weft_module *m, const weft_adam_options *options);
/* AdamW (Loshchilov and Hutter 2019). */
WEFT_API weft_optimizer *weft_adamw(weft_module *m, const weft_adam_options *options);

/* NULL is allowed. So is an optimizer whose module was freed before: it is poisoned until you free it. */
WEFT_API void weft_optimizer_free(weft_optimizer *opt);

/* WEFT_OK, or the error that poisoned the optimizer. */
WEFT_API weft_status weft_optimizer_status(const weft_optimizer *opt);

/* "sgd", "rmsprop", "adam" or "adamw". */
WEFT_API const char *weft_optimizer_kind(const weft_optimizer *opt);

/* ---- steps ---- */

/* Computes the loss (one element) and its gradients, and changes the parameters. You can read the loss
 * afterwards. Frozen parameters do not change. WEFT_ERR_ARGUMENT if the loss depends on no parameter that
 * is trained. After an error everything is as before. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_step(weft_optimizer *opt, weft_tensor *loss);

/* The same with gradient accumulation over `count` micro-batches. Call it with index = 0, 1, ... count - 1.
 * Each call adds gradients; the last one divides by `count` and changes the parameters.
 *
 * If each loss is the mean over one of `count` equal micro-batches, the result equals one step on the whole
 * batch. For unequal ones use weft_batch_loss and weft_loader_options.accumulate. Dropout masks are those of
 * the whole batch, too. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_accumulate(weft_optimizer *opt, weft_tensor *loss, int index,
                                                            int count);

/* ---- steps of several optimizers: data parallelism ----
 *
 * Copies of a model share the work of a step. They are equal at first; each has its own context, device and
 * optimizer. Each copy does this:
 * - for each of its micro-batches: weft_optimizer_micro_batch, the forward pass,
 *   weft_optimizer_add_gradients
 * - then one weft_optimizer_all_reduce for all copies together (an all-reduce)
 * - then weft_optimizer_update, the same update in each copy
 *
 * weft_fit does all this for you. */

/* Declares that the following nodes belong to micro-batch k of a step, counted over all copies. Dropout
 * then uses the masks that micro-batch k has in weft_optimizer_accumulate. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_micro_batch(weft_optimizer *opt, int k);
/* Adds the gradients of the loss to the sum, which starts at 0 after each step. Changes no parameter. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_add_gradients(weft_optimizer *opt, weft_tensor *loss);
/* All-reduce: adds the sums of the n optimizers, in their order, and gives each the total. Different CUDA
 * devices do this with NCCL if it is installed, HIP devices with RCCL. Otherwise the host adds and waits for
 * the devices. WEFT_ERR_STATE if an optimizer has no sum yet, WEFT_ERR_SHAPE if parameters differ. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_all_reduce(weft_optimizer *const *optimizers, size_t n);
/* Divides the sum by `micro_batches`, the number of micro-batches of all copies, and changes the
 * parameters. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_update(weft_optimizer *opt, int micro_batches);

/* ---- steps of several processes ----
 *
 * Copies of a model in the processes of a group share steps in the same way. weft_optimizer_join adds the
 * other processes to the sums of weft_optimizer_all_reduce, whose order is then that of the ranks. The first
 * optimizer of its list decides: of several copies in a process only that one has to join.
 *
 * Join before the first step, or between two steps. weft_optimizer_step then makes one step of all processes,
 * which have one micro-batch each. weft_optimizer_accumulate(opt, loss, index, count) makes one of which each
 * process has `count` micro-batches: before you record micro-batch `index`, call weft_optimizer_micro_batch
 * with weft_optimizer_batch_number(opt, index, count). The processes exchange their gradients while the last
 * micro-batch is still computed: on cpu, and on cards by NCCL or RCCL if all processes have it and a card of
 * their own. Other devices exchange them afterwards, through the host. */

/* group NULL: leaves the group. WEFT_ERR_STATE if the processes differ in the optimizer, its options, its
 * number of steps, or the names and shapes of the parameters. All processes must call it. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_join(weft_optimizer *opt, weft_process_group *group);
/* What the processes of a group divide among them instead of having it whole. */
typedef enum weft_shard {
    WEFT_SHARD_NONE,
    WEFT_SHARD_OPTIMIZER, /* the state of the optimizer (ZeRO stage 1: Rajbhandari et al. 2020) */
    WEFT_SHARD_GRADIENTS, /* also the sums of gradients (stage 2); on cpu or linked cards */
    WEFT_SHARD_PARAMETERS /* also the parameters (stage 3, FSDP); on cpu or linked cards */
} weft_shard;

/* Divides the state. Each process then updates its part of the parameters, and gives it to the others. The
 * results have the same bits; from WEFT_SHARD_GRADIENTS on if sums are exact, the number of processes is a
 * power of two, and micro-batches have the numbers of weft_optimizer_batch_number. Call it after
 * weft_optimizer_join. A weft_optimizer_load_from that follows reads only the part of this process, so no
 * process ever has the whole state. There is no way back: parameters cannot be frozen or thawed any more.
 * WEFT_ERR_STATE if the optimizer has not joined a group; WEFT_ERR_UNSUPPORTED if the device cannot exchange
 * gradients while it computes. All processes must call it.
 *
 * With WEFT_SHARD_PARAMETERS a process keeps only its part of the parameters. It never has all of them if
 * this is called before parameters are read, written or used. The function compares them first
 * (WEFT_ERR_STATE, as weft_optimizer_compare). From then on a program that reads parameters gathers
 * them piece by piece. So all processes must run the same steps, evaluations and other programs in the same
 * order. weft_read and weft_write of a parameter, and what calls them, such as weft_module_save and
 * weft_module_load, must be called by all processes, too; each writes the same values. Only
 * weft_checkpoint_write_group writes the weights once. weft_assign to a parameter is WEFT_ERR_STATE. If the
 * optimizer is freed, its parameters are lost. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_shard(weft_optimizer *opt, weft_shard shard);
/* Returns the number of micro-batch `index` of this process among those of all processes, of which each has
 * `count`. It is rank * count + index. If gradients are divided, it is index * size + rank, since each
 * micro-batch is exchanged at once. */
WEFT_API int weft_optimizer_batch_number(const weft_optimizer *opt, int index, int count);
/* The group that the optimizer has joined, or NULL. */
WEFT_API weft_process_group *weft_optimizer_processes(const weft_optimizer *opt);
/* Compares a hash of all parameters over the processes. WEFT_ERR_STATE names the processes that have drifted
 * apart. All processes must call it. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_compare(weft_optimizer *opt);

/* Compiles a step without running it, and returns its memory plan. of > 1: the step has so many
 * micro-batches, and the plan is that of the micro-batch that needs most. If the optimizer has joined other
 * processes, `of` counts the micro-batches of this process, and the plan is the memory of this process. The
 * step may follow. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_plan(weft_optimizer *opt, weft_tensor *loss, int of,
                                                      weft_memory_plan *plan);

/* Compiles a step for this loss. weft_optimizer_run then repeats it without recording anything. Change its
 * inputs with weft_write. From then on groups and frozen parameters are fixed. Free the program with
 * weft_program_free. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_hold(weft_optimizer *opt, weft_tensor *loss,
                                                      weft_program **program);
WEFT_API WEFT_CHECKED weft_status weft_optimizer_run(weft_optimizer *opt, weft_program *program);

/* Runs the step `steps` times on the same inputs. You can then read the loss of the last step.
 *
 * If no number changes from step to step (SGD and RMSprop at a constant rate, no dropout), the device
 * receives all steps in one submission. A GPU that does a step in one launch receives 64 steps in a
 * submission whatever the optimizer. A bad index in one of them leaves the steps before it done, but not
 * counted. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_run_many(weft_optimizer *opt, weft_program *program,
                                                          uint64_t steps);

/* The norm of all gradients of the last step, before clipping. NaN if it is not tracked, or before the
 * first step. */
WEFT_API double weft_optimizer_grad_norm(weft_optimizer *opt);

/* ---- scaling of the loss, for f16 ---- */

typedef struct weft_loss_scale_options {
    double init;      /* 0: 65536 */
    double growth;    /* factor of the scale after `interval` good steps; 0: 2 */
    double backoff;   /* factor of the scale after a bad step; 0: 0.5 */
    int64_t interval; /* good steps in a row before the scale grows; 0: 2000 */
} weft_loss_scale_options;

/* Turns on loss scaling (Micikevicius et al. 2018). The gradients are those of the loss times a scale. They
 * are divided by the scale before norm, clipping and update. So f16 does not flush small gradients to 0.
 *
 * A step whose gradients are not all finite is skipped: parameters and state stay, and the scale shrinks.
 * The device decides this, and the host does not wait. Skipped steps count in weft_optimizer_steps and for
 * the schedule, but not in Adam's bias correction.
 *
 * The scale is part of the state below. NULL: all defaults. Call this before the first step. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_scale_loss(weft_optimizer *opt,
                                                            const weft_loss_scale_options *options);
/* The current scale; NaN without loss scaling. Waits for the device. */
WEFT_API double weft_optimizer_loss_scale(weft_optimizer *opt);
/* The number of steps that changed the parameters, so without skipped ones. Waits for the device. */
WEFT_API uint64_t weft_optimizer_updates(weft_optimizer *opt);

/* ---- learning rate ---- */

typedef enum weft_schedule_kind {
    WEFT_SCHEDULE_CONSTANT,
    WEFT_SCHEDULE_STEP,   /* multiplied by factor every `every` steps */
    WEFT_SCHEDULE_COSINE, /* to min_lr at `steps`, half a cosine (Loshchilov and Hutter 2017) */
    WEFT_SCHEDULE_LINEAR  /* to min_lr at `steps` */
} weft_schedule_kind;

typedef struct weft_schedule {
    weft_schedule_kind kind;
    double lr;       /* highest rate */
    uint64_t warmup; /* steps of linear warm-up: step i of them has lr (i + 1) / (warmup + 1) */
    uint64_t steps;  /* steps of the whole run with warm-up; after them the rate is min_lr */
    double min_lr;   /* lowest rate after the warm-up */
    uint64_t every;  /* STEP: counted after the warm-up; 0: never */
    double factor;   /* STEP; 0: 0.1 */
} weft_schedule;

/* The rate of step `step`, counted from 0. A pure function. */
WEFT_API double weft_schedule_lr(const weft_schedule *schedule, uint64_t step);

/* The names "constant", "step", "cosine", "linear"; and the kind of a name, false if there is none. */
WEFT_API const char *weft_schedule_name(weft_schedule_kind kind);
WEFT_API bool weft_schedule_parse(const char *name, weft_schedule_kind *kind);

/* From now on each step uses the rate of the schedule. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_schedule(weft_optimizer *opt, const weft_schedule *schedule);
/* Sets a constant rate and removes the schedule. 0 stops learning. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_set_lr(weft_optimizer *opt, double lr);
/* The rate of the next step; NaN for a poisoned optimizer. */
WEFT_API double weft_optimizer_lr(const weft_optimizer *opt);

/* ---- parameter groups ---- */

typedef struct weft_group_options {
    const char *pattern; /* of the full name; "h.*.attn.*", see weft_module_freeze_matching; copied */
    bool (*match)(void *user, const weft_parameter_info *info); /* used if pattern is NULL */
    void *user;
    double lr_scale;     /* 0: 1 */
    double weight_decay; /* weight decay of all parameters of this group; 0: none */
    double l1;           /* L1 penalty of all parameters of this group; 0: none */
} weft_group_options;

/* Gives matching parameters their own rate, weight decay and L1 penalty. If several groups match a parameter,
 * the group added last counts. WEFT_ERR_ARGUMENT if no parameter matches. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_group(weft_optimizer *opt,
                                                       const weft_group_options *options);

/* ---- state, for checkpoints ----
 *
 * To resume from a checkpoint, make the same module and optimizer. Then call weft_module_load_from,
 * weft_optimizer_load_from, weft_optimizer_set_steps, and weft_seed with the seed and step of the
 * checkpoint. Without weft_seed, dropout draws other masks than the run that went on. */

/* The number of steps done. */
WEFT_API uint64_t weft_optimizer_steps(const weft_optimizer *opt);
/* Continues as if `steps` steps had been made, for bias correction and schedule. */
WEFT_API void weft_optimizer_set_steps(weft_optimizer *opt, uint64_t steps);

/* The state tensors: variables whose names end in the parameter's full name NAME:
 * - Adam, AdamW: "m.NAME", "v.NAME"
 * - SGD, RMSprop: "momentum.NAME"
 * - RMSprop: "v.NAME"
 * - with loss scaling also "loss_scale", "loss_scale.good", "loss_scale.updates"
 * A divided optimizer has parts: rows of the elements that this process has of each parameter, with `part`.
 */
WEFT_API size_t weft_optimizer_state_count(weft_optimizer *opt);
WEFT_API bool weft_optimizer_state_get(weft_optimizer *opt, size_t i, weft_named_tensor *state);

/* Makes entries for weft_checkpoint_write; of a divided optimizer, those of this process for
 * weft_checkpoint_write_group. Free them with weft_entries_free. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_entries(weft_optimizer *opt, weft_entry **entries,
                                                         size_t *count);
/* Reads them back, strictly as weft_entries_load. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_load_from(weft_optimizer *opt, weft_safetensors *file);

/* Moves training to another device. `to` is an optimizer of the same kind, in a context on that device, for
 * a module of the same structure.
 *
 * `to` and its module get all that `from` and its module have: parameters and buffers (weft_module_copy),
 * state, steps done and schedule. The context of `to` gets the seed and the step of the random numbers.
 * Training continues as if it had always been there; on a device of the same kind with the same bits.
 *
 * Options, groups and modes (weft_module_set_training, weft_module_freeze) are not copied: set them yourself.
 * WEFT_ERR_SHAPE names what differs; then nothing is changed but parameters. */
WEFT_API WEFT_CHECKED weft_status weft_optimizer_copy(weft_optimizer *to, weft_optimizer *from);

#ifdef __cplusplus
}
#endif
#endif
