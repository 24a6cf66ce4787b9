/* What the commands with a configuration share. Must not know: how models are trained. Read next: train.c. */
#ifndef WEFT_SRC_CLI_RUN_H
#define WEFT_SRC_CLI_RUN_H

#include "cli/cli.h"
#include "train/run/loop.h"

/* The options of all commands with a configuration. */
#define WEFT__CONFIG_OPTIONS(path, settings)                                                                 \
    {"[CONFIG]", WEFT__OPTION_ARG, path,                                                                     \
     "the configuration; 'weft init' writes one; default: $WEFT_CONFIG"},                                    \
    {                                                                                                        \
        "--set KEY=VALUE", WEFT__OPTION_TEXTS, settings,                                                     \
            "change a value of the configuration; can be given several times"                                \
    }
/* The option of commands that use one device. */
#define WEFT__DEVICE_OPTION(value)                                                                           \
    {                                                                                                        \
        "--device D", WEFT__OPTION_TEXT, value,                                                              \
            "cpu, cuda, opencl, opencl:1, opencl:NAME, gpu, auto, or a list like opencl,cpu; default: the "  \
            "configuration's, $WEFT_DEVICE, cpu"                                                             \
    }

/* Tells whether a configuration was named, and prints an error if not. */
bool weft__cli_has_config(const weft__command *command, const char *path);

#define WEFT__RUN_BYTES 512
/* Trains, reports how the run ended, and returns the exit code. The name of the run folder is written to
 * `run`, which may be NULL. */
int weft__cli_train(weft__config *config, const weft__train_options *options, char run[WEFT__RUN_BYTES]);

/* Reads the configuration at `path` into an initialised *config, then applies --set and --device, and
 * resolves it. If path is NULL, *config already has the values of a file. */
weft_status weft__cli_config(weft__config *config, const char *path, const weft__repeated *settings,
                             const char *device);

#endif
