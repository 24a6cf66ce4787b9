/* Telemetry of the graphics card while a run trains. Must not know: which libraries answer. Read next:
 * telemetry.c. */
#ifndef WEFT_SRC_TRAIN_RUN_TELEMETRY_H
#define WEFT_SRC_TRAIN_RUN_TELEMETRY_H

#include <weft/tensor.h>

typedef struct weft__telemetry weft__telemetry;

/* Starts a thread that reads the telemetry of the context's device twice a second. Returns NULL if the device
 * has no telemetry. */
weft__telemetry *weft__telemetry_start(const weft_context *ctx);
/* Returns the means since the last call. A mean is NaN if nothing was read, or if telemetry is NULL. */
weft_telemetry weft__telemetry_take(weft__telemetry *telemetry);
/* Returns the means since the start. */
weft_telemetry weft__telemetry_all(weft__telemetry *telemetry);
/* Stops the thread. Call this before the context is closed. NULL is allowed. */
void weft__telemetry_stop(weft__telemetry *telemetry);

#endif
