/* weft eval: a trained model against its validation and test data. */
#include "cli/cli.h"
#include "train/scores.h"
#include "train/use.h"

static weft_status measure(weft__use *use, weft__split split, const char *name, json_t *all, bool *first) {
    weft_loader *loader = NULL;
    weft__scores scores;
    if (!weft__dataset_has(&use->dataset, split)) return WEFT_OK;
    WEFT_TRY(weft__dataset_loader(use->model.ctx, &use->dataset, &use->config, split, 0, &loader));
    const weft_status status = weft__scores_take(&use->model, &use->dataset, loader, true, &scores);
    weft_loader_free(loader);
    if (status == WEFT_OK && all)
        json_object_set_new(all, name, weft__scores_json(&scores, &use->dataset));
    else if (status == WEFT_OK)
        weft__scores_print(stdout, name, &scores, &use->dataset);
    weft__scores_free(&scores);
    *first = false;
    return status;
}

int weft__command_eval(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *device = NULL, *checkpoint = NULL;
    bool json = false, first = true;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        WEFT__CHECKPOINT_OPTION(&checkpoint),
        {"--device D", WEFT__OPTION_TEXT, &device, "another device than the run's"},
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__use use;
    const weft__use_options how = {
        .device = device, .precision = WEFT__AS_COMPUTED, .checkpoint = checkpoint, .with_data = true};
    weft_status status = weft__use_open(dir, &how, &use);
    json_t *all = json ? json_pack("{s:I}", "step", (json_int_t)use.step) : NULL;
    if (status == WEFT_OK && !json) printf("%s, step %llu\n", dir, (unsigned long long)use.step);
    if (status == WEFT_OK) status = measure(&use, WEFT__VALIDATION, "validation", all, &first);
    if (status == WEFT_OK) status = measure(&use, WEFT__TEST, "test", all, &first);
    if (status == WEFT_OK && all) {
        json_dumpf(all, stdout, JSON_REAL_PRECISION(9));
        printf("\n");
    }
    json_decref(all);
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    if (status == WEFT_OK && first) {
        weft__complain("%s: has neither validation nor test data: data.val_path and data.test_path name them",
                       dir);
        code = WEFT__EXIT_NOTHING;
    }
    weft__use_close(&use);
    return code;
}
