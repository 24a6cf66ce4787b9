/* The event file of a run for TensorBoard. Must not know: when steps are logged. Read next: events.c. */
#ifndef WEFT_SRC_TRAIN_RUN_EVENTS_H
#define WEFT_SRC_TRAIN_RUN_EVENTS_H

#include "train/run/run_dir.h"

#define WEFT__EVENTS_FILE "events.out.tfevents.0000000000.weft"

/* Appends the numbers of one step to an event file. An empty file first gets the record that names the
 * format. `wall_time` is in seconds since 1970. */
weft_status weft__events_append(int fd, const weft__metrics *metrics, bool tokens, double wall_time);

/* Sets *end to the number of bytes that hold complete, undamaged records of steps up to `step`. Returns
 * WEFT_OK or WEFT_ERR_OOM. */
weft_status weft__events_until(const uint8_t *bytes, size_t size, uint64_t step, size_t *end);

#endif
