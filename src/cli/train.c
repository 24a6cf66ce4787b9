/* weft train and weft resume: makes a configuration from the arguments, and an exit code from the way a run
 * ended. Must not know: how models are trained. Read next: train/run/loop.c. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include <weft/published.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "published/published.h"
#include "train/analysis/pace.h"
#include "train/dataset/dataset.h"
#include "train/run/processes.h"
#include "train/run/use.h"

#define TEXT_MINUTES 2.0 /* of `weft train text` */

int weft__cli_train(weft__config *config, const weft__train_options *options, char run[WEFT__RUN_BYTES]) {
    weft__train_result result;
    const bool follows = weft_process_group_rank(options->group) > 0;
    weft_status status = (follows ? weft__follow : weft__train)(config, options, &result);
    if (run) snprintf(run, WEFT__RUN_BYTES, "%s", result.dir);
    if (status != WEFT_OK) {
        if (!result.silent) weft__complain("%s", result.error[0] ? result.error : weft_status_name(status));
        if (result.abandons) weft_process_group_abort(options->group, weft__exit_code(status));
        return weft__exit_code(status);
    }
    if (follows) return WEFT__EXIT_DONE;
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
    if (!options->quiet) {
        weft__print(stdout, "stopped and saved; continue with: ");
        weft__print_command(stdout, "resume", result.dir, NULL);
        weft__print(stdout, "\n");
    }
    return 128 + result.signal;
}

/* Warns of values that have no effect. A resumed run was warned of those in its file before. */
static void warn_unused(const weft__config *config, bool resumed) {
    char why[128], origin[256];
    for (int i = 0; i < WEFT__KEY_COUNT; i++) {
        const weft__config_key key = (weft__config_key)i;
        if (resumed && config->origin[key] == WEFT__ORIGIN_FILE) continue;
        if (weft__config_unused(config, key, why))
            weft__complain("warning: %s: %s has no effect: %s",
                           weft__config_origin(config, key, origin, sizeof origin),
                           weft__config_key_name(key), why);
    }
}

/* Reads a file, or takes the preset of that name if there is no such file. A run's folder may have the name.
 */
static weft_status take_config(weft__config *config, const char *name) {
    struct stat what;
    const bool there = stat(name, &what) == 0, file = there && !S_ISDIR(what.st_mode);
    const weft__preset *preset = file ? NULL : weft__config_preset(name);
    if (!there && !preset && !strpbrk(name, "./"))
        return weft__fail(
            NULL, WEFT_ERR_IO,
            "%s: there is no such file, and no such model type: name a configuration or one of %s", name,
            weft__cli_models());
    return preset ? weft__config_take_preset(config, preset) : weft__config_read(config, name);
}

static weft_status guess_task(weft__config *config, bool silent) {
    const char *why;
    WEFT_TRY(weft__dataset_guess_task(NULL, config, &why));
    const bool numbers = config->task == WEFT__TASK_REGRESSION;
    if (why && !silent)
        weft__print(stderr, "task: %s, because the target %s; to predict %s, use --set task=%s\n",
                    numbers ? "regression" : "classification", why, numbers ? "classes" : "numbers",
                    numbers ? "classification" : "regression");
    return WEFT_OK;
}

weft_status weft__cli_config(weft__config *config, const weft__wanted *wanted) {
    if (wanted->config) WEFT_TRY(take_config(config, wanted->config));
    if (wanted->data)
        WEFT_TRY(weft__config_put(config, WEFT__KEY_data_path, wanted->data, WEFT__ORIGIN_SET, "--data"));
    for (size_t i = 0; i < wanted->settings.count; i++)
        WEFT_TRY(weft__config_set(config, wanted->settings.values[i]));
    if (wanted->device)
        WEFT_TRY(weft__config_put(config, WEFT__KEY_device, wanted->device, WEFT__ORIGIN_FLAG, "--device"));
    WEFT_TRY(weft__config_resolve(config));
    if (!wanted->silent) warn_unused(config, !wanted->config);
    return wanted->config ? guess_task(config, wanted->silent) : WEFT_OK;
}

/* Returns the path that --set model.init gives, or NULL. */
static const char *initial_model(const weft__repeated *settings) {
    static const char key[] = "model.init=";
    for (size_t i = settings->count; i-- > 0;)
        if (strncmp(settings->values[i], key, sizeof key - 1) == 0)
            return settings->values[i] + sizeof key - 1;
    return NULL;
}

bool weft__cli_has_config(const weft__command *command, weft__wanted *wanted) {
    const char *path = initial_model(&wanted->settings);
    weft__published p;
    if (wanted->config && wanted->config[0]) return true;
    if (path && weft_published_is(path)) {
        wanted->config = weft__published_read(NULL, path, &p) == WEFT_OK && p.encodes ? "encoder" : "gpt";
        return true;
    }
    if (path) {
        weft__complain("%s: model.init: %s is no published model, so name the model to train, such as gpt",
                       command->name, path);
        return false;
    }
    weft__complain("%s: CONFIG is missing: 'weft %s text --data FILE' trains on a text, 'weft init' writes a "
                   "configuration, 'weft %s --help' tells more",
                   command->name, command->name, command->name);
    return false;
}

/* Whether the run made a model for `weft chat`. */
static bool is_chat(const weft__config *config) {
    weft_chat_template *template = NULL;
    const bool has = weft__source_of(config)->answers &&
                     weft_published_chat(NULL, config->published, &template) == WEFT_OK;
    weft_chat_template_free(template);
    return has;
}

void weft__cli_next(const weft__config *config, const char *run) {
    const bool text = config->task == WEFT__TASK_LANGUAGE_MODEL;
    weft__print(stdout, "next: ");
    if (text && is_chat(config))
        weft__print_command(stdout, "chat", run, NULL);
    else if (text)
        weft__print_command(stdout, "generate", run, "--prompt", "TEXT", NULL);
    else
        weft__print_command(stdout, "predict", run, "FILE", NULL);
    weft__print(stdout, "\n");
}

weft_status weft__cli_pace(weft__config *config, bool text, double minutes, bool quiet) {
    weft__pace pace;
    char model[64];
    WEFT_TRY((text ? weft__pace_text : weft__pace_steps)(config, 60 * minutes, &pace));
    if (quiet) return WEFT_OK;
    weft__print(stderr, "%.3g minutes: %llu steps of %.3g ms", minutes, (unsigned long long)pace.steps,
                1000 * pace.step);
    if (pace.share > 0.005) weft__print(stderr, ", and %.0f %% more for evaluations", 100 * pace.share);
    weft__print(stderr, "\n");
    if (text)
        weft__print(stderr, "model: a gpt of %s parameters that learns %s; more time gives a larger one\n",
                    weft__short_number((double)pace.parameters, model),
                    config->data_tokenizer == WEFT_TOKENIZER_CHARACTER ? "characters" : "parts of words");
    return WEFT_OK;
}

/* Fits the run to a time. minutes 0: not wanted, but `text` takes two. */
static weft_status fit_time(weft__config *config, const char *name, double minutes, bool quiet) {
    const bool text = strcmp(name, "text") == 0 && !config->file;
    if (minutes == 0 && (!text || weft__config_given(config, WEFT__KEY_train_steps) ||
                         weft__config_given(config, WEFT__KEY_train_epochs)))
        return WEFT_OK;
    if (config->processes)
        return weft__fail(
            NULL, WEFT_ERR_ARGUMENT,
            "train: %s measures the time of a step in one process, and there are %d: name a model, and "
            "use --set train.steps=N",
            minutes == 0 ? "text" : "--minutes", config->processes);
    if (minutes == 0) minutes = TEXT_MINUTES;
    for (int i = 0; i < WEFT__KEY_COUNT; i++)
        if ((i == WEFT__KEY_train_steps || i == WEFT__KEY_train_epochs) &&
            config->origin[i] == WEFT__ORIGIN_SET)
            return weft__fail(
                NULL, WEFT_ERR_ARGUMENT,
                "train: --minutes and --set %s both say how long to train: give only one of them",
                weft__config_key_name((weft__config_key)i));
    return weft__cli_pace(config, text, minutes, quiet);
}

weft_status weft__cli_join(weft__config *config, weft__wanted *wanted, weft_process_group **group) {
    WEFT_TRY(weft_process_group_open(NULL, group));
    if (!*group) return WEFT_OK;
    config->processes = weft_process_group_size(*group);
    config->threads = weft_process_group_threads(*group);
    weft__dataset_sharers = weft_process_group_local_size(*group);
    if (weft_process_group_rank(*group) == 0) return WEFT_OK;
    wanted->silent = true;
    weft__dataset_tell = NULL;
    return WEFT_OK;
}

/* Only rank 0 prints. */
static weft_status join_processes(weft__config *config, weft__wanted *wanted, weft__train_options *how) {
    WEFT_TRY(weft__cli_join(config, wanted, &how->group));
    if (weft_process_group_rank(how->group) > 0) how->quiet = true;
    return WEFT_OK;
}

/* Trains, if the arguments are right in all processes, and leaves them. Takes the status of reading the
 * arguments. */
static int train_together(weft__config *config, const weft__train_options *how, weft_status status) {
    char run[WEFT__RUN_BYTES];
    bool silent;
    int code = 0;
    status = weft__processes_agree(how->group, config->train_timeout, status, &silent);
    if (status == WEFT_OK)
        code = weft__cli_train(config, how, run);
    else
        code = silent ? weft__exit_code(status) : weft__give_up(NULL, status);
    if (code == WEFT__EXIT_DONE && !how->quiet) weft__cli_next(config, run);
    weft_process_group_close(how->group);
    return code;
}

int weft__command_train(const weft__command *command, int argc, char **argv) {
    weft__wanted wanted = {.config = getenv("WEFT_CONFIG")};
    const char *dir = NULL;
    bool quiet = false, verbose = false;
    double minutes = 0;
    int code = 0;
    const weft__option options[] = {
        WEFT__CONFIG_OPTIONS(&wanted),
        {"--minutes M", WEFT__OPTION_NUM, &minutes,
         "time the first steps, then train as many as fit into M minutes"},
        WEFT__DEVICE_OPTION(&wanted.device),
        {"--run DIR", WEFT__OPTION_TEXT, &dir, "the folder of the run; default: a new one in runs/"},
        {"--quiet", WEFT__OPTION_FLAG, &quiet, "print errors only"},
        WEFT__VERBOSE_OPTION(&verbose),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!weft__cli_has_config(command, &wanted)) return WEFT__EXIT_USAGE;
    if (dir && !dir[0]) {
        weft__complain("train: --run: give the name of a folder, not an empty text");
        return WEFT__EXIT_USAGE;
    }
    weft__config config;
    weft__config_init(&config);
    weft__train_options how = {.dir = dir, .quiet = quiet, .verbose = verbose, .argc = argc, .argv = argv};
    weft_status status = join_processes(&config, &wanted, &how);
    if (status == WEFT_OK) status = weft__cli_config(&config, &wanted);
    if (status == WEFT_OK) status = fit_time(&config, wanted.config, minutes, how.quiet);
    code = train_together(&config, &how, status);
    weft__config_free(&config);
    return code;
}

/* Applies the arguments of `weft resume`. A run keeps the values that its checkpoints were made with. */
static weft_status resumed(weft__config *config, const char *dir, const weft__wanted *wanted) {
    weft__config was;
    weft__config_key key = WEFT__KEY_COUNT;
    char old[64];
    WEFT_TRY(weft__use_config(dir, NULL, config));
    weft__config_init(&was);
    weft_status status = weft__use_config(dir, NULL, &was);
    if (status == WEFT_OK) status = weft__config_resolve(&was);
    if (status == WEFT_OK) status = weft__cli_config(config, wanted);
    if (status == WEFT_OK) status = weft__config_check_path(config, WEFT__KEY_model_init);
    if (status == WEFT_OK) status = weft__config_conflict(&was, config, &key, old);
    if (status == WEFT_OK && key != WEFT__KEY_COUNT)
        status =
            weft__fail(NULL, WEFT_ERR_ARGUMENT,
                       "resume: %s cannot change: the checkpoints of %s were made with %s; for another value "
                       "train a new run",
                       weft__config_key_name(key), dir, old);
    weft__config_free(&was);
    return status;
}

int weft__command_resume(const weft__command *command, int argc, char **argv) {
    weft__wanted wanted = {0};
    const char *dir = NULL;
    bool quiet = false, verbose = false, strict = false;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        {"--set KEY=VALUE", WEFT__OPTION_TEXTS, &wanted.settings,
         "change how long it trains, or what it logs"},
        {"--device D", WEFT__OPTION_TEXT, &wanted.device, "another device than the run's"},
        WEFT__TRUST_OPTION,
        {"--strict", WEFT__OPTION_FLAG, &strict, "fail if the newest checkpoint is damaged"},
        {"--quiet", WEFT__OPTION_FLAG, &quiet, "print errors only"},
        WEFT__VERBOSE_OPTION(&verbose),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__config config;
    weft__config_init(&config);
    weft__train_options how = {.dir = dir,
                               .resume = true,
                               .strict = strict,
                               .quiet = quiet,
                               .verbose = verbose,
                               .argc = argc,
                               .argv = argv};
    weft_status status = join_processes(&config, &wanted, &how);
    if (status == WEFT_OK) status = resumed(&config, dir, &wanted);
    code = train_together(&config, &how, status);
    weft__config_free(&config);
    return code;
}
