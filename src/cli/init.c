/* weft init: writes a commented configuration with every key. Must not know: keys. Read next:
 * train/config/config_write.c. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weft/io.h>

#include "cli/cli.h"
#include "cli/run.h"
#include "train/config/config.h"
#include "train/run/output.h"

/* The names of all models and presets, for messages. */
static const char all[] = ""
#define MODEL(id, name, kind, traits) ", " #name
#define PRESET(name, id)              ", " #name
#include "train/model/models.def"
    ;
static const char *const models = all + 2;

const char *weft__cli_models(void) { return models; }

static int write_config(const char *path, const char *data, bool force, const char *text) {
    weft__output output = {.command = "init", .force = force};
    weft__output_reads(&output, data);
    weft_status status = weft__output_file(&output, path);
    if (status == WEFT_OK) status = weft_write_file(NULL, path, text, strlen(text));
    return status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
}

int weft__command_init(const weft__command *command, int argc, char **argv) {
    const char *model = NULL, *out = NULL, *data = NULL;
    bool force = false;
    int code = 0;
    const weft__option options[] = {
        {"MODEL", WEFT__OPTION_ARG, &model, models},
        {"--data PATH", WEFT__OPTION_TEXT, &data, "the training data, to be named in the configuration"},
        {"--out FILE", WEFT__OPTION_TEXT, &out, "write there instead of to standard output"},
        WEFT__FORCE_OPTION(&force),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    const weft__preset *preset = weft__config_preset(model);
    if (!preset) {
        weft__complain("init: there is no model type %s: choose one of %s", model, models);
        return WEFT__EXIT_USAGE;
    }
    if (data && access(data, F_OK) != 0 && !strpbrk(data, "*?[")) {
        weft__complain("init: --data %s: %s", data, strerror(errno));
        return WEFT__EXIT_IO;
    }
    char *text = weft__config_template(preset, data ? data : "PATH OF YOUR DATA");
    if (!text) {
        weft__complain("init: out of memory");
        return WEFT__EXIT_MEMORY;
    }
    if (out)
        code = write_config(out, data, force, text);
    else
        weft__print_text(stdout, text, strlen(text));
    free(text);
    return code;
}
