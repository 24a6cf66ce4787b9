/* What the card says of itself while a run trains. Read next: gauging.c. */
#ifndef WEFT_SRC_TRAIN_RUN_GAUGING_H
#define WEFT_SRC_TRAIN_RUN_GAUGING_H

#include <weft/tensor.h>

typedef struct weft__gauging weft__gauging;

/* Begins to read the gauges of the context's device, twice a second, in a thread of its own. NULL where the
 * device has none. */
weft__gauging *weft__gauging_start(const weft_context *ctx);
/* The means of what was read since the last call; NaN where nothing was, or gauging is NULL. */
weft_gauges weft__gauging_take(weft__gauging *gauging);
/* Means since the start. */
weft_gauges weft__gauging_all(weft__gauging *gauging);
/* Before the context is closed. NULL is fine. */
void weft__gauging_stop(weft__gauging *gauging);

#endif
