/* What train, resume and demo share. */
#ifndef WEFT_SRC_CLI_RUN_H
#define WEFT_SRC_CLI_RUN_H

#include "cli/cli.h"
#include "train/loop.h"

#define WEFT__RUN_BYTES 512
/* Trains, reports how it ended, and gives the exit code. The run folder's name goes to run, which may be
 * NULL. */
int weft__cli_train(weft__config *config, const weft__train_options *options, char run[WEFT__RUN_BYTES]);

/* Applies --set and --device. */
weft_status weft__cli_settings(weft__config *config, const weft__repeated *settings, const char *device);

#endif
