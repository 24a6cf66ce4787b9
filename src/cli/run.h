/* What the commands with a configuration share. Must not know: how models are trained. Read next: train.c. */
#ifndef WEFT_SRC_CLI_RUN_H
#define WEFT_SRC_CLI_RUN_H

#include "cli/cli.h"
#include "train/run/loop.h"

/* Where a command takes its configuration from. */
typedef struct weft__wanted {
    const char *config; /* a file, or the name of a model or preset, such as gpt; NULL: *config has the values
                           already */
    const char *data;   /* data.path, or NULL */
    const char *device; /* NULL: the configuration's */
    weft__repeated settings;
    bool silent; /* gives no warnings: another call gave them */
} weft__wanted;

/* The options of all commands with a configuration. */
#define WEFT__SET_OPTION(value)                                                                              \
    {                                                                                                        \
        "--set KEY=VALUE", WEFT__OPTION_TEXTS, value,                                                        \
            "change a value of the configuration; can be given several times"                                \
    }
#define WEFT__CONFIG_OPTIONS(wanted)                                                                         \
    {"[CONFIG]", WEFT__OPTION_ARG, &(wanted)->config,                                                        \
     "a configuration, which 'weft init' writes, or the name of a model such as gpt; default: "              \
     "$WEFT_CONFIG"},                                                                                        \
        {"--data PATH", WEFT__OPTION_TEXT, &(wanted)->data, "the training data, as --set data.path=PATH"},   \
        WEFT__SET_OPTION(&(wanted)->settings)
/* The option of commands that use one device. */
#define WEFT__DEVICE_OPTION(value)                                                                           \
    {                                                                                                        \
        "--device D", WEFT__OPTION_TEXT, value,                                                              \
            "such as cpu, cuda:1, opencl:NAME, gpu or auto, or a list like cuda,cpu; "                       \
            "default: the configuration's, $WEFT_DEVICE, cpu"                                                \
    }

/* The option of commands that train. */
#define WEFT__VERBOSE_OPTION(value)                                                                          \
    { "--verbose", WEFT__OPTION_FLAG, value, "show at the end where the time went" }

/* Tells whether a configuration was named, and prints an error if not. If --set model.init names a published
 * model, its kind need not be named. */
bool weft__cli_has_config(const weft__command *command, weft__wanted *wanted);

#define WEFT__RUN_BYTES 512
/* Trains, reports how the run ended, and returns the exit code. The name of the run folder is written to
 * `run`, which may be NULL. */
int weft__cli_train(weft__config *config, const weft__train_options *options, char run[WEFT__RUN_BYTES]);

/* Joins the processes that were started with this one; *group is NULL if there are none. Only rank 0 prints:
 * the others are silent about the data. The caller closes the group with weft_process_group_close. */
weft_status weft__cli_join(weft__config *config, weft__wanted *wanted, weft_process_group **group);

/* Reads a configuration into an initialised *config, then applies --data, --set and --device, and resolves
 * it. Warns of keys that the configuration does not use. */
weft_status weft__cli_config(weft__config *config, const weft__wanted *wanted);

/* Fits a resolved *config to a time, the size of a gpt for a text, too, and says what was chosen. */
weft_status weft__cli_pace(weft__config *config, bool text, double minutes, bool quiet);

/* The names of all models and presets, for messages. */
const char *weft__cli_models(void);

/* Prints the command that uses the trained model. */
void weft__cli_next(const weft__config *config, const char *run);

#endif
