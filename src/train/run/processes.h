/* Runs of several processes. Rank 0, the leader, runs the loop of the command: it owns the run folder
 * and prints. The others, the followers, compute their part of each step, and do what the leader orders in
 * between, such as their part of an evaluation. Must not know: the loop. Read next: processes.c, follower.c.
 */
#ifndef WEFT_SRC_TRAIN_RUN_PROCESSES_H
#define WEFT_SRC_TRAIN_RUN_PROCESSES_H

#include <stdio.h>
#include <weft/fit.h>
#include <weft/process_group.h>

#include "train/model/model.h"

/* What the leader orders. Followers wait for an order after each step, and at the end. */
typedef enum weft__order {
    WEFT__ORDER_GO,       /* make the next step */
    WEFT__ORDER_LOSSES,   /* exchange the losses: all call weft_fit_losses */
    WEFT__ORDER_EVALUATE, /* evaluate together; the number of the loader comes with the order */
    WEFT__ORDER_SAMPLE,   /* divided parameters: all call weft__loop_sample */
    WEFT__ORDER_BEST,     /* divided parameters: all call weft__loop_best */
    WEFT__ORDER_SAVE,     /* all call weft__processes_prepare_save; then the leader saves, or all do */
    WEFT__ORDER_WAIT,     /* the leader is busy */
    WEFT__ORDER_STOP,     /* end training after this step */
    WEFT__ORDER_END       /* end the process */
} weft__order;

/* What a process tells the leader with each order. */
typedef struct weft__process_figures {
    uint64_t word;     /* of the leader: its order; of followers: their signals */
    double computing;  /* seconds of all steps in this process, with reading data */
    double exchanging; /* seconds in these steps in which it waits for an exchange, or slower processes */
    double hidden;     /* seconds of exchange during which this process computed */
    double memory;     /* bytes of the process at its peak */
    double buffers;    /* bytes of the device's buffers at their peak, as `weft plan` counts them */
    double exchange;   /* bytes of memory for the exchange */
} weft__process_figures;

typedef struct weft__processes {
    weft_process_group *group;      /* NULL: this process is alone, and all functions do nothing */
    const weft_context *ctx;        /* of the model of this process; NULL: not opened yet */
    weft__process_figures *figures; /* [size] of all processes; of this one it is up to date */
    double exchanged;               /* seconds of exchange when the last order ended */
    bool followers_wait;            /* leader: the followers wait for an order */
    double ordered;                 /* leader: when the last order was given */
    double timeout;                 /* seconds */
    bool refused, silent; /* weft__processes_ready has failed, and whether another process reports it */
    bool parted;          /* all processes know of a failure, so that none of them waits for another */
    bool saves;           /* follower: the leader is saving, which may take longer than a step */
    int signal;           /* leader: a signal that a follower has received; 0: none */
    bool save;            /* leader: a follower was asked to save */
} weft__processes;

/* Starts. `group` may be NULL. */
weft__processes weft__processes_start(weft_process_group *group, double timeout);
void weft__processes_free(weft__processes *p);

bool weft__processes_follows(const weft__processes *p);

/* Chooses among the devices of the configuration's kind: "cuda:1" for the second process of a machine with
 * two cards. "": there is nothing to choose. */
void weft__processes_device(const weft__processes *p, const weft__config *config, char device[64]);

/* Returns WEFT_OK in all processes if `status` is WEFT_OK in all of them, or the same failure in all. The
 * leader reports it; *silent is true in the others. */
weft_status weft__processes_agree(weft_process_group *group, double timeout, weft_status status,
                                  bool *silent);

/* Tells all processes that this one is ready to load a checkpoint together, or why it is not. If one of them
 * is not, all fail, and weft__processes_join knows it. Until then they wait longer for each other. */
weft_status weft__processes_ready(weft__processes *p, weft_status status);

/* Ends the setting up, which gave `status` in this process. Returns WEFT_OK if it was WEFT_OK in all
 * processes, and they have the same configuration, data, kind of device and weights; their optimizers then
 * share the steps. Otherwise all fail, as above. From `checkpoint`, which may be NULL, each process reads its
 * part of the divided state of the optimizer. */
weft_status weft__processes_join(weft__processes *p, weft_status status, const weft__config *config,
                                 const weft__dataset *dataset, weft__model *model,
                                 weft_checkpoint *checkpoint, bool *silent);

/* Counts the time of a step, right after it. */
void weft__processes_step(weft__processes *p, const weft_fit_state *state);
/* Leader: writes processes.json with the figures of all processes into the folder of the run. */
weft_status weft__processes_write(const weft__processes *p, const char *dir);

/* Prints how long this process exchanged gradients, and how much of it while it computed. out may be NULL. */
void weft__processes_say(const weft__processes *p, FILE *out);

/* Leader: gives an order, and learns of the signals that followers have received. */
weft_status weft__processes_order(weft__processes *p, weft__order order);
/* Leader: orders an evaluation with a loader. The followers wait for no order until it has ended. */
weft_status weft__processes_evaluate(weft__processes *p, int loader);
/* Leader: gives an order that all obey at the same time. The followers wait for no other order meanwhile: set
 * `followers_wait` afterwards. */
weft_status weft__processes_together(weft__processes *p, weft__order order);
/* Leader: tells followers that wait for long that it is busy. Call it often while they wait. */
weft_status weft__processes_beat(weft__processes *p);
/* Leader: reads the losses as weft_fit_losses does. */
weft_status weft__processes_losses(weft__processes *p, const weft_fit_state *state, double *loss);
/* Leader: lets all processes prepare a save. When it has ended, call weft__processes_saved. */
weft_status weft__processes_save(weft__processes *p, weft_optimizer *optimizer);
void weft__processes_saved(weft__processes *p);
/* Compares the parameters of all processes. If they have divided the state, all of them then save. */
weft_status weft__processes_prepare_save(weft__processes *p, weft_optimizer *optimizer);
/* Leader: ends the followers, if they wait for an order. Returns true if they do not know of a failure of the
 * leader, so that the group must be aborted. */
bool weft__processes_end(weft__processes *p, weft_status status);

/* Follower: waits for an order, and tells the leader of signals. loader: of WEFT__ORDER_EVALUATE. */
weft_status weft__processes_await(weft__processes *p, weft__order *order, int *loader);

#endif
