/* Telemetry of the graphics card while a run trains. Must not know: which libraries answer. Read next:
 * gauging.c. */
#ifndef WEFT_SRC_TRAIN_RUN_GAUGING_H
#define WEFT_SRC_TRAIN_RUN_GAUGING_H

#include <weft/tensor.h>

typedef struct weft__gauging weft__gauging;

/* Starts a thread that reads the telemetry of the context's device twice a second. Returns NULL if the device
 * has no telemetry. */
weft__gauging *weft__gauging_start(const weft_context *ctx);
/* Returns the means since the last call. A mean is NaN if nothing was read, or if gauging is NULL. */
weft_gauges weft__gauging_take(weft__gauging *gauging);
/* Returns the means since the start. */
weft_gauges weft__gauging_all(weft__gauging *gauging);
/* Stops the thread. Call this before the context is closed. NULL is allowed. */
void weft__gauging_stop(weft__gauging *gauging);

#endif
