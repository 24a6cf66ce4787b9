/* weft train and weft resume: makes a configuration from the arguments, and an exit code from the way a run
 * ended. Must not know: how models are trained. Read next: train/run/loop.c. */
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "train/model/use.h"

int weft__cli_train(weft__config *config, const weft__train_options *options, char run[WEFT__RUN_BYTES]) {
    weft__train_result result;
    weft_status status = weft__train(config, options, &result);
    if (run) snprintf(run, WEFT__RUN_BYTES, "%s", result.dir);
    if (status != WEFT_OK) {
        weft__complain("%s", result.error[0] ? result.error : weft_status_name(status));
        return weft__exit_code(status);
    }
    if (result.nothing && result.early) {
        weft__complain("%s: nothing to do: the run stopped early; to continue, use --set train.patience=0 or "
                       "a larger number",
                       result.dir);
        return WEFT__EXIT_NOTHING;
    }
    if (result.nothing) {
        weft__complain("%s: nothing to do: all steps of the run are done; for more, use --set train.steps=N",
                       result.dir);
        return WEFT__EXIT_NOTHING;
    }
    if (result.signal == 0) return WEFT__EXIT_DONE;
    if (!options->quiet)
        weft__print(stdout, "stopped and saved; continue with: %s resume %s\n", weft__program, result.dir);
    return 128 + result.signal;
}

weft_status weft__cli_config(weft__config *config, const char *path, const weft__repeated *settings,
                             const char *device) {
    if (path) WEFT_TRY(weft__config_read(config, path));
    for (size_t i = 0; i < settings->count; i++) WEFT_TRY(weft__config_set(config, settings->values[i]));
    if (device) WEFT_TRY(weft__config_put(config, WEFT__KEY_device, device, WEFT__ORIGIN_FLAG, "--device"));
    return weft__config_resolve(config);
}

bool weft__cli_has_config(const weft__command *command, const char *path) {
    if (path && path[0]) return true;
    weft__complain(
        "%s: CONFIG is missing: 'weft init gpt --out gpt.yaml' writes one, 'weft %s --help' tells more",
        command->name, command->name);
    return false;
}

int weft__command_train(const weft__command *command, int argc, char **argv) {
    const char *path = getenv("WEFT_CONFIG"), *device = NULL, *dir = NULL;
    weft__repeated settings = {0};
    bool quiet = false;
    int code = 0;
    const weft__option options[] = {
        WEFT__CONFIG_OPTIONS(&path, &settings),
        WEFT__DEVICE_OPTION(&device),
        {"--run DIR", WEFT__OPTION_TEXT, &dir, "the folder of the run; default: a new one in runs/"},
        {"--quiet", WEFT__OPTION_FLAG, &quiet, "print errors only"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!weft__cli_has_config(command, path)) return WEFT__EXIT_USAGE;
    if (dir && !dir[0]) {
        weft__complain("train: --run: a folder is wanted, not an empty name");
        return WEFT__EXIT_USAGE;
    }
    weft__config config;
    weft__config_init(&config);
    weft_status status = weft__cli_config(&config, path, &settings, device);
    const weft__train_options how = {.dir = dir, .quiet = quiet, .argc = argc, .argv = argv};
    code = status == WEFT_OK ? weft__cli_train(&config, &how, NULL) : weft__give_up(NULL, status);
    weft__config_free(&config);
    return code;
}

int weft__command_resume(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *device = NULL;
    weft__repeated settings = {0};
    bool quiet = false, strict = false;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        {"--set KEY=VALUE", WEFT__OPTION_TEXTS, &settings, "change how long it trains, or what it logs"},
        {"--device D", WEFT__OPTION_TEXT, &device, "another device than before"},
        {"--strict", WEFT__OPTION_FLAG, &strict, "fail if the newest checkpoint is damaged"},
        {"--quiet", WEFT__OPTION_FLAG, &quiet, "print errors only"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__config config;
    weft__config_init(&config);
    weft_status status = weft__use_config(dir, NULL, &config);
    if (status == WEFT_OK) status = weft__cli_config(&config, NULL, &settings, device);
    const weft__train_options how = {
        .dir = dir, .resume = true, .strict = strict, .quiet = quiet, .argc = argc, .argv = argv};
    code = status == WEFT_OK ? weft__cli_train(&config, &how, NULL) : weft__give_up(NULL, status);
    weft__config_free(&config);
    return code;
}
