/* Copies of a run's model on further devices. Each device computes a part of the micro-batches of a step.
 * Must not know: the loop. Read next: replicas.c. */
#ifndef WEFT_SRC_TRAIN_RUN_REPLICAS_H
#define WEFT_SRC_TRAIN_RUN_REPLICAS_H

#include "train/model/model.h"

typedef struct weft__replicas {
    size_t count; /* 0: there is only one device */
    weft__model *models;
    weft_replica *list; /* for weft_fit */
} weft__replicas;

/* Makes one copy for each device of the configuration except the first, which is the run's own. All devices
 * must be of one kind. The caller frees the copies with weft__replicas_close, also after a failure. */
weft_status weft__replicas_open(weft__replicas *replicas, const weft__config *config,
                                const weft__dataset *dataset, uint64_t steps, weft_log_fn log, void *user);
/* weft__replicas_init loads the weights of model.init into all copies, if there is one. weft__replicas_load
 * loads weights and optimizer state of the newest checkpoint. */
weft_status weft__replicas_init(const weft__replicas *replicas, const weft__config *config);
weft_status weft__replicas_load(weft__replicas *replicas, const weft__config *config,
                                const weft__dataset *dataset, const char *run, bool strict);
void weft__replicas_close(weft__replicas *replicas);

#endif
