/* weft export: the weights of a run in a file for others. */
#include <string.h>

#include "cli/cli.h"
#include "train/use.h"

int weft__command_export(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *out = NULL;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        {"--out FILE", WEFT__OPTION_TEXT, &out, "the file to write"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!out || !out[0]) {
        weft__complain("export: --out is missing: 'weft export --help' tells how it is called");
        return WEFT__EXIT_USAGE;
    }
    weft__use use;
    weft_status status = weft__use_open(dir, "cpu", NULL, false, &use);
    if (status == WEFT_OK && use.config.model_type != WEFT__MODEL_GPT)
        status = weft__fail(NULL, WEFT_ERR_ARGUMENT, "export: the run's model is no gpt");
    if (status == WEFT_OK) status = weft_gpt_save(use.model.module, out);
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    weft__use_close(&use);
    return code;
}
