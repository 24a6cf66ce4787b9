/* What the commands that take a configuration share. */
#ifndef WEFT_SRC_CLI_RUN_H
#define WEFT_SRC_CLI_RUN_H

#include "cli/cli.h"
#include "train/loop.h"

#define WEFT__RUN_BYTES 512
/* Trains, reports how it ended, and gives the exit code. The run folder's name goes to run, which may be
 * NULL. */
int weft__cli_train(weft__config *config, const weft__train_options *options, char run[WEFT__RUN_BYTES]);

/* Reads the configuration at `path` into one that was initialised (NULL: it is there already), applies --set
 * and --device, and resolves it. */
weft_status weft__cli_config(weft__config *config, const char *path, const weft__repeated *settings,
                             const char *device);

#endif
