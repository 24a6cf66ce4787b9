/* weft show: shows what a trained model has learned. For a linear or logistic model these are coefficients
 * and bias by column, for others the table of layers. Must not know: how coefficients are computed. Read
 * next: train/report/coefficients.c. */
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cli/cli.h"
#include "train/report/coefficients.h"
#include "train/run/opened_model.h"

static const char *unit(const weft__opened_model *opened) {
    return opened->config.task == WEFT__TASK_CLASSIFICATION ? "the log odds" : "the prediction";
}

static void print_text(const weft__opened_model *opened, const weft__coefficients *c) {
    char name[24];
    const bool classes = opened->config.task == WEFT__TASK_CLASSIFICATION;
    weft__print(stdout, "change of %s when a column grows by 1, and, standardised, by its deviation:\n",
                unit(opened));
    for (int64_t i = 0; i < c->outputs; i++) {
        weft__print(stdout, "\n%s%s\n", classes ? "class " : "",
                    weft__output_name(&opened->dataset, i, name));
        weft__print(stdout, "  %-24s  %14s  %14s  %14s  %14s\n", "column", "coefficient", "standardised",
                    "mean", "deviation");
        for (int64_t j = 0; j < c->columns; j++)
            weft__print(stdout, "  %-24s  %14.7g  %14.7g  %14.7g  %14.7g\n",
                        weft__column_name(&opened->dataset, j, name), c->original[i * c->columns + j],
                        c->standardised[i * c->columns + j], c->mean[j], c->deviation[j]);
        weft__print(stdout, "  %-24s  %14.7g  %14.7g\n", "(bias)", c->bias[i], c->bias_standardised[i]);
    }
}

static json_t *output_json(const weft__opened_model *opened, const weft__coefficients *c, int64_t i) {
    char name[24];
    json_t *list = json_array();
    for (int64_t j = 0; j < c->columns; j++)
        json_array_append_new(list, json_pack("{s:s, s:f, s:f, s:f, s:f}", "column",
                                              weft__column_name(&opened->dataset, j, name), "coefficient",
                                              c->original[i * c->columns + j], "standardised",
                                              c->standardised[i * c->columns + j], "mean", c->mean[j],
                                              "deviation", c->deviation[j]));
    return json_pack("{s:s, s:f, s:f, s:o}", "output", weft__output_name(&opened->dataset, i, name), "bias",
                     c->bias[i], "bias_standardised", c->bias_standardised[i], "coefficients", list);
}

static weft_status cli_show_print_json(const weft__opened_model *opened, const weft__coefficients *c) {
    char model[64], *text;
    weft__json json;
    weft__json_build(&json, NULL);
    json_t *outputs = json_array();
    for (int64_t i = 0; i < c->outputs; i++) json_array_append_new(outputs, output_json(opened, c, i));
    json_t *all =
        json_pack("{s:s, s:I, s:o}", "model", weft__model_name(&opened->config, &opened->dataset, model),
                  "step", (json_int_t)opened->step, "outputs", outputs);
    WEFT_TRY(weft__json_text(&json, all, JSON_REAL_PRECISION(9), "coefficients", &text, NULL));
    weft__print(stdout, "%s\n", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

/* Prints a cell of csv, in quotes if it needs them. */
static void print_cell(const char *text) {
    const bool quoted = strpbrk(text, ",\"\r\n") != NULL;
    if (quoted) putchar('"');
    for (const char *end; *text; text = end) {
        end = text + strcspn(text + 1, "\"") + 1;
        if (*text == '"') putchar('"');
        weft__print_text(stdout, text, (size_t)(end - text));
    }
    weft__print(stdout, quoted ? "\"," : ",");
}

static void print_csv(const weft__opened_model *opened, const weft__coefficients *c) {
    char name[24];
    weft__print(stdout, "output,column,coefficient,standardised,mean,deviation\n");
    for (int64_t i = 0; i < c->outputs; i++) {
        for (int64_t j = 0; j < c->columns; j++) {
            print_cell(weft__output_name(&opened->dataset, i, name));
            print_cell(weft__column_name(&opened->dataset, j, name));
            weft__print(stdout, "%.9g,%.9g,%.9g,%.9g\n", c->original[i * c->columns + j],
                        c->standardised[i * c->columns + j], c->mean[j], c->deviation[j]);
        }
        print_cell(weft__output_name(&opened->dataset, i, name));
        weft__print(stdout, "(bias),%.9g,%.9g,,\n", c->bias[i], c->bias_standardised[i]);
    }
}

/* Prints the layers of a network. */
static weft_status print_layers(const weft__opened_model *opened) {
    const int64_t bytes = weft_summary(opened->model.module, NULL, 0);
    if (bytes < 0) return weft_last_status(opened->model.ctx);
    char *text = weft__alloc(NULL, (size_t)bytes + 1);
    if (!text) return weft__fail_oom(NULL, (size_t)bytes, "the table of layers");
    weft_summary(opened->model.module, text, (size_t)bytes + 1);
    weft__print(stdout, "%s", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

static weft_status cli_show_show(const weft__opened_model *opened, bool json, bool csv) {
    weft__coefficients c;
    char model[64];
    const bool single = weft__config_is(&opened->config, WEFT__TRAIT_COEFFICIENTS);
    if (!json && !csv)
        weft__print(stdout, "%s, step %llu\n", weft__model_name(&opened->config, &opened->dataset, model),
                    (unsigned long long)opened->step);
    if (!single && !json && !csv) return print_layers(opened);
    weft_status status = weft__coefficients_take(&opened->model, &opened->config, &opened->dataset, &c);
    if (status == WEFT_OK && json)
        status = cli_show_print_json(opened, &c);
    else if (status == WEFT_OK && csv)
        print_csv(opened, &c);
    else if (status == WEFT_OK)
        print_text(opened, &c);
    weft__coefficients_free(&c);
    return status;
}

int weft__command_show(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *checkpoint = NULL;
    bool json = false, csv = false;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object"},
        {"--csv", WEFT__OPTION_FLAG, &csv, "print lines of csv"},
        WEFT__CHECKPOINT_OPTION(&checkpoint),
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__opened_model opened;
    weft_status status = weft__opened_model_open(
        dir, &(weft__opened_model_options){.device = "cpu", .checkpoint = checkpoint}, &opened);
    if (status == WEFT_OK) status = cli_show_show(&opened, json, csv);
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    weft__opened_model_close(&opened);
    return code;
}
