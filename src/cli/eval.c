/* weft eval: measures a trained model on its validation and test data, or on new data. Must not know: how
 * scores are computed. Read next: train/run/copies.c, train/report/scores.c. */
#include "base/json.h"
#include <weft/published.h>

#include "cli/cli.h"
#include "train/run/copies.h"

enum { SPLITS = 2 };
static const weft__split splits[SPLITS] = {WEFT__VALIDATION, WEFT__TEST};
static const char *const names[SPLITS] = {"validation", "test"};

static weft_status cli_eval_print_json(const weft__opened_model *opened, bool new_data,
                                       const weft__scores scores[SPLITS]) {
    weft__json json;
    char *text;
    weft__json_build(&json, NULL);
    json_t *all = json_pack("{s:I}", "step", (json_int_t)opened->step);
    for (int i = 0; i < SPLITS; i++)
        if (weft__dataset_has(&opened->dataset, splits[i]))
            json_object_set_new(all, new_data ? "new_data" : names[i],
                                weft__scores_json(&scores[i], &opened->dataset));
    WEFT_TRY(weft__json_text(&json, all, JSON_REAL_PRECISION(9), "the scores", &text, NULL));
    weft__print(stdout, "%s\n", text);
    weft__free(NULL, text);
    return WEFT_OK;
}

static weft_status evaluate(const weft__copies *copies, bool json, bool new_data, int *measured) {
    const weft__opened_model *opened = &copies->opened[0];
    weft__scores scores[SPLITS] = {0};
    weft_status status = WEFT_OK;
    for (int i = 0; status == WEFT_OK && i < SPLITS; i++) {
        if (!weft__dataset_has(&opened->dataset, splits[i])) continue;
        status = weft__copies_score(copies, &opened->dataset, splits[i], true, &scores[i]);
        *measured += 1;
        if (status == WEFT_OK && !json)
            weft__scores_print(stdout, new_data ? "new data" : names[i], &scores[i], &opened->dataset);
    }
    if (status == WEFT_OK && json) status = cli_eval_print_json(opened, new_data, scores);
    for (int i = 0; i < SPLITS; i++) weft__scores_free(&scores[i]);
    return status;
}

int weft__command_eval(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *data = NULL, *labels = NULL, *device = NULL, *devices = NULL, *checkpoint = NULL;
    bool json = false, layers = false;
    int code = 0, measured = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of a run, or a published model"},
        {"[DATA]", WEFT__OPTION_ARG, &data,
         "new data with targets, in the form of the training data; default: the run's own"},
        {"--labels FILE", WEFT__OPTION_TEXT, &labels, "the labels of DATA, for npy and idx files"},
        WEFT__CHECKPOINT_OPTION(&checkpoint),
        WEFT__DEVICE_OPTIONS(&device, &devices, "the data"),
        {"--layers", WEFT__OPTION_FLAG, &layers, "with --devices: divide the layers, not the data"},
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    if (!data && !weft__is_run(dir) && weft_published_is(dir)) {
        weft__complain(
            "eval: %s is a published model, which has no data of its own: name a text, as in weft eval "
            "MODEL FILE",
            dir);
        return WEFT__EXIT_USAGE;
    }
    weft__copies copies;
    const weft__opened_model_options how = {.device = device,
                                            .precision = WEFT__AS_COMPUTED,
                                            .checkpoint = checkpoint,
                                            .with_data = true,
                                            .data = data,
                                            .labels = labels,
                                            .packed = true};
    weft_status status = (layers ? weft__copies_open_layers : weft__copies_open)(dir, devices, &how, &copies);
    if (status == WEFT_OK && !json)
        weft__print(stdout, "%s, step %llu\n", dir, (unsigned long long)copies.opened[0].step);
    if (status == WEFT_OK) status = evaluate(&copies, json, data, &measured);
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    if (status == WEFT_OK && measured == 0 && data) {
        weft__complain("%s: there is nothing to measure: the text is too short", data);
        code = WEFT__EXIT_DATA;
    } else if (status == WEFT_OK && measured == 0) {
        weft__complain(
            "%s: has neither validation nor test data: name them in data.val_path and data.test_path", dir);
        code = WEFT__EXIT_NOTHING;
    }
    weft__copies_close(&copies);
    return code;
}
