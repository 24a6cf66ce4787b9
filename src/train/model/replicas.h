/* Copies of a run's model on further devices, which share the batches of its steps. Read next: replicas.c. */
#ifndef WEFT_SRC_TRAIN_MODEL_REPLICAS_H
#define WEFT_SRC_TRAIN_MODEL_REPLICAS_H

#include "train/model/model.h"

typedef struct weft__replicas {
    size_t count; /* 0: there is one device */
    weft__model *models;
    weft_replica *list; /* for weft_fit */
} weft__replicas;

/* One for each of the configuration's devices but the first, which is the run's own; all of one kind. What
 * was made is freed by weft__replicas_close, after a failure too. */
weft_status weft__replicas_open(weft__replicas *replicas, const weft__config *config,
                                const weft__dataset *dataset, uint64_t steps, weft_log_fn log, void *user);
/* The first weights, where they are a file's; and those of the newest checkpoint, and its state. */
weft_status weft__replicas_init(const weft__replicas *replicas, const weft__config *config);
weft_status weft__replicas_load(weft__replicas *replicas, const weft__config *config,
                                const weft__dataset *dataset, const char *run, bool strict);
void weft__replicas_close(weft__replicas *replicas);

#endif
