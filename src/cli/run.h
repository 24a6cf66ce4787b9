/* What train, resume and demo share. */
#ifndef WEFT_SRC_CLI_RUN_H
#define WEFT_SRC_CLI_RUN_H

#include "cli/cli.h"
#include "train/loop.h"

/* Trains, reports how it ended, and gives the exit code. */
int weft__cli_train(weft__config *config, const weft__train_options *options);

/* Applies --set and --device. */
weft_status weft__cli_settings(weft__config *config, const weft__repeated *settings, const char *device);

#endif
