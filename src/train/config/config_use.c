/* Prepares the configuration of a run for using its model: on one device, on new data. Must not know: how the
 * model is used. Read next: train/model/trained.c. */
#include "train/config/config.h"

void weft__config_one_device(weft__config *config) {
    if (config->devices.count && !weft__config_given(config, WEFT__KEY_device)) {
        weft__config_unset(config, WEFT__KEY_device);
        config->device = config->devices.values[0];
        config->devices.values[0] = NULL;
        config->origin[WEFT__KEY_device] = WEFT__ORIGIN_FOUND;
    }
    weft__config_unset(config, WEFT__KEY_devices);
}

weft_status weft__config_new_data(weft__config *config, const char *path, const char *labels) {
    weft__config_unset(config, WEFT__KEY_data_path);
    weft__config_unset(config, WEFT__KEY_data_test_path);
    weft__config_unset(config, WEFT__KEY_data_labels);
    WEFT_TRY(weft__config_put(config, WEFT__KEY_data_val_path, path, WEFT__ORIGIN_FLAG, "the data"));
    if (config->task == WEFT__TASK_LANGUAGE_MODEL) /* the reader wants a training text */
        return weft__config_put(config, WEFT__KEY_data_path, path, WEFT__ORIGIN_FLAG, "the data");
    if (!labels) return WEFT_OK;
    weft__texts *list = &config->data_labels; /* one for each split: the second is for validation */
    if (!(list->values = weft__array(NULL, 2, sizeof *list->values)))
        return weft__fail_oom(NULL, 0, "the labels");
    list->count = 2;
    for (int i = 0; i < 2; i++)
        if (!(list->values[i] = weft__strdup(NULL, labels))) return weft__fail_oom(NULL, 0, "the labels");
    return WEFT_OK;
}
