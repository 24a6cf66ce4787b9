/* weft eval: a trained model against its validation and test data. */
#include <math.h>

#include "cli/cli.h"
#include "train/use.h"

static weft_status measure(weft__use *use, weft__split split, const char *name, bool json, bool *first) {
    weft_loader *loader = NULL;
    double loss = 0, accuracy = 0;
    if (!weft__dataset_has(&use->dataset, split)) return WEFT_OK;
    WEFT_TRY(weft__dataset_loader(use->model.ctx, &use->dataset, &use->config, split, 0, &loader));
    weft_status status = weft_evaluate(use->model.module, loader, use->model.loss, &loss, &accuracy);
    int64_t samples = weft_loader_samples(loader);
    weft_loader_free(loader);
    if (status != WEFT_OK) return status;
    if (json) {
        printf("%s\"%s\": {\"loss\": %.9g", *first ? "" : ", ", name, loss);
        if (isfinite(accuracy)) printf(", \"accuracy\": %.9g", accuracy);
        printf("}");
    } else {
        printf("%-10s loss %.6f", name, loss);
        if (use->config.task == WEFT__TASK_CLASSIFICATION) printf("  accuracy %.2f %%", accuracy * 100);
        if (use->config.task == WEFT__TASK_REGRESSION)
            printf("  root mean square error %.6g", sqrt(loss) * (double)use->dataset.target_deviation);
        printf("  (%lld %s)\n", (long long)samples,
               use->config.task == WEFT__TASK_LANGUAGE_MODEL ? "windows" : "samples");
    }
    *first = false;
    return WEFT_OK;
}

int weft__command_eval(const weft__command *command, int argc, char **argv) {
    const char *dir = NULL, *device = NULL;
    bool json = false, first = true;
    int code = 0;
    const weft__option options[] = {
        {"DIR", WEFT__OPTION_ARG, &dir, "the folder of the run"},
        {"--device D", WEFT__OPTION_TEXT, &device, "another device than the run's"},
        {"--json", WEFT__OPTION_FLAG, &json, "print one JSON object"},
    };
    if (!weft__arguments(command, argc, argv, options, sizeof options / sizeof *options, &code)) return code;
    weft__use use;
    weft_status status = weft__use_open(dir, device, WEFT__AS_COMPUTED, true, &use);
    if (status == WEFT_OK && json)
        printf("{\"step\": %llu, ", (unsigned long long)use.step);
    else if (status == WEFT_OK)
        printf("%s, step %llu\n", dir, (unsigned long long)use.step);
    if (status == WEFT_OK) status = measure(&use, WEFT__VALIDATION, "validation", json, &first);
    if (status == WEFT_OK) status = measure(&use, WEFT__TEST, "test", json, &first);
    if (status == WEFT_OK && json) printf("}\n");
    code = status == WEFT_OK ? WEFT__EXIT_DONE : weft__give_up(NULL, status);
    if (status == WEFT_OK && first) {
        weft__complain("%s: has neither validation nor test data: data.val_path and data.test_path name them",
                       dir);
        code = WEFT__EXIT_NOTHING;
    }
    weft__use_close(&use);
    return code;
}
