/* The keys `device`, `devices` and train.exact_sum: which devices share a step, and how their gradients are
 * added. Must not know: devices. Read next: train/run/replicas.c. */
#include <stdio.h>
#include <string.h>

#include "train/config/config.h"

/* Chooses between `device` and `devices`. A device given by --device or --set overrides `devices` of a file.
 * Otherwise the first of `devices` is the device of the run. */
static weft_status choose_device(weft__config *config) {
    const bool asked = config->origin[WEFT__KEY_device] == WEFT__ORIGIN_SET ||
                       config->origin[WEFT__KEY_device] == WEFT__ORIGIN_FLAG;
    if (!config->devices.count) return WEFT_OK;
    for (size_t i = 0; i < config->devices.count; i++)
        if (!config->devices.values[i][0])
            return weft__config_blame(config, WEFT__KEY_devices,
                                      "give the name of a device, not an empty text");
    if (asked && config->origin[WEFT__KEY_devices] == WEFT__ORIGIN_FILE) {
        weft__config_one_device(config);
        return WEFT_OK;
    }
    /* weft__config_check_devices refuses both keys together */
    if (asked || config->origin[WEFT__KEY_device] == WEFT__ORIGIN_FILE) return WEFT_OK;
    return weft__config_put(config, WEFT__KEY_device, config->devices.values[0], WEFT__ORIGIN_FOUND,
                            "devices");
}

/* Micro-batches of one device in each step; 0: they cannot be divided evenly. */
static int64_t each_device(const weft__config *config) {
    const int64_t n = (int64_t)config->devices.count, of = config->train_accumulate;
    return n > 0 && of % n == 0 ? of / n : 0;
}

static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/* If the host adds up the gradients of several devices, a tree costs nothing more. */
static void follow_sum(weft__config *config) {
    const bool cards = strncmp(config->device, "cuda", 4) == 0 || strncmp(config->device, "hip", 3) == 0;
    if (config->devices.count < 2 || cards || !is_power_of_two(each_device(config)) ||
        weft__config_given(config, WEFT__KEY_train_exact_sum))
        return;
    config->train_exact_sum = true;
    config->origin[WEFT__KEY_train_exact_sum] = WEFT__ORIGIN_FOUND;
}

weft_status weft__config_follow_devices(weft__config *config) {
    WEFT_TRY(choose_device(config));
    follow_sum(config);
    return WEFT_OK;
}

weft_status weft__config_check_devices(const weft__config *config) {
    const long long n = (long long)config->devices.count, of = (long long)config->train_accumulate;
    const int64_t each = each_device(config);
    char what[256];
    if (n == 0) return WEFT_OK;
    if (strcmp(config->device, config->devices.values[0]) != 0)
        return weft__config_blame(config, WEFT__KEY_devices, "give only one of device and devices");
    if (each == 0) {
        snprintf(what, sizeof what,
                 "%lld devices cannot divide the batches of a step (train.accumulate: %lld) evenly: use "
                 "train.accumulate: %lld",
                 n, of, of * n);
        return weft__config_blame(config, WEFT__KEY_devices, what);
    }
    if (n == 1 || !config->train_exact_sum || is_power_of_two(each)) return WEFT_OK;
    snprintf(what, sizeof what,
             "true needs 1, 2, 4, 8, ... batches for each device in a step, and there are %lld: choose "
             "another train.accumulate, or false",
             (long long)each);
    return weft__config_blame(config, WEFT__KEY_train_exact_sum, what);
}
