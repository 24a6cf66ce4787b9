/* TensorBoard's event file of a run. Read next: events.c. */
#ifndef WEFT_SRC_TRAIN_RUN_EVENTS_H
#define WEFT_SRC_TRAIN_RUN_EVENTS_H

#include "train/run/run_dir.h"

#define WEFT__EVENTS_FILE "events.out.tfevents.0000000000.weft"

/* Appends one step's numbers to an event file; the first record, which names the format, is written into an
 * empty one. wall_time: seconds since 1970. */
weft_status weft__events_append(int fd, const weft__metrics *metrics, bool tokens, double wall_time);

/* *end: how many bytes of an event file hold whole records of steps up to `step`, none of them damaged.
 * WEFT_ERR_OOM. */
weft_status weft__events_until(const uint8_t *bytes, size_t size, uint64_t step, size_t *end);

#endif
