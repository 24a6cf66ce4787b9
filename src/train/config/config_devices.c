/* The keys `device`, `devices` and train.exact_sum, and the number of processes: which copies of the model
 * share a step, and how their gradients are added. Must not know: devices. Read next: train/run/replicas.c.
 */
#include <stdio.h>
#include <string.h>

#include <weft/optim.h>

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

/* Copies of the model that share a step: one for each device of each process. */
static int64_t copies_of(const weft__config *config) {
    const int64_t devices = config->devices.count ? (int64_t)config->devices.count : 1;
    return devices * (config->processes ? config->processes : 1);
}

/* Micro-batches of one copy in each step; 0: they cannot be divided evenly. */
static int64_t each_copy(const weft__config *config) {
    const int64_t n = copies_of(config), of = config->train_accumulate;
    return of % n == 0 ? of / n : 0;
}

static bool is_power_of_two(int64_t n) { return n > 0 && (n & (n - 1)) == 0; }

/* Unless the configuration says how many batches a step has, each of several processes computes one on each
 * device. */
static void follow_processes(weft__config *config) {
    if (!config->processes || weft__config_given(config, WEFT__KEY_train_accumulate)) return;
    config->train_accumulate = copies_of(config);
    config->origin[WEFT__KEY_train_accumulate] = WEFT__ORIGIN_FOUND;
}

/* With streams a batch continues the text of the batch before, which another copy has computed. */
static void follow_streams(weft__config *config) {
    if (copies_of(config) < 2 || !config->data_streams || weft__config_given(config, WEFT__KEY_data_streams))
        return;
    config->data_streams = false;
    config->origin[WEFT__KEY_data_streams] = WEFT__ORIGIN_FOUND;
}

/* If the host adds up the gradients of several copies, a tree costs nothing more. */
static void follow_sum(weft__config *config) {
    const bool cards = strncmp(config->device, "cuda", 4) == 0 || strncmp(config->device, "hip", 3) == 0;
    if (copies_of(config) < 2 || (cards && !config->processes) || !is_power_of_two(each_copy(config)) ||
        weft__config_given(config, WEFT__KEY_train_exact_sum))
        return;
    config->train_exact_sum = true;
    config->origin[WEFT__KEY_train_exact_sum] = WEFT__ORIGIN_FOUND;
}

weft_status weft__config_follow_devices(weft__config *config) {
    WEFT_TRY(choose_device(config));
    follow_processes(config);
    follow_streams(config);
    follow_sum(config);
    return WEFT_OK;
}

/* Checks whether the copies can divide the batches of a step. */
static weft_status check_division(const weft__config *config) {
    const long long n = (long long)copies_of(config), of = (long long)config->train_accumulate;
    char what[256];
    if (each_copy(config) > 0) return WEFT_OK;
    snprintf(
        what, sizeof what,
        "%lld %s cannot divide the batches of a step (train.accumulate: %lld) evenly: use train.accumulate: "
        "%lld",
        n, config->processes ? "devices of all processes" : "devices", of, of * n);
    return weft__config_blame(config, config->devices.count ? WEFT__KEY_devices : WEFT__KEY_train_accumulate,
                              what);
}

/* May programs of the device exchange with other processes? Whether cards are linked is known only later. */
static bool may_exchange(const char *device) {
    static const char *const kinds[] = {"cpu", "cuda", "hip"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strncmp(device, kinds[i], strlen(kinds[i])) == 0) return true;
    return false;
}

weft_status weft__config_check_devices(const weft__config *config) {
    const int64_t each = each_copy(config);
    char what[256];
    if (config->devices.count && strcmp(config->device, config->devices.values[0]) != 0)
        return weft__config_blame(config, WEFT__KEY_devices, "give only one of device and devices");
    WEFT_TRY(check_division(config));
    if (config->processes && config->train_batch == 0)
        return weft__config_blame(config, WEFT__KEY_train_batch,
                                  "several processes may have different free memory: give a number");
    if (copies_of(config) == 1) return WEFT_OK;
    if (config->train_shard != WEFT_SHARD_NONE && config->devices.count > 1)
        return weft__config_blame(
            config, WEFT__KEY_train_shard,
            "processes that divide the state have one device each: leave out devices, and start "
            "more processes");
    if (config->train_shard >= WEFT_SHARD_GRADIENTS && !may_exchange(config->device))
        return weft__config_blame(config, WEFT__KEY_train_shard,
                                  "only processes on cpu, cuda or hip can exchange gradients and parameters "
                                  "while they compute: give such a device, or train.shard: optimizer");
    if (config->model_sync_batchnorm && (config->devices.count || !may_exchange(config->device)))
        return weft__config_blame(
            config, WEFT__KEY_model_sync_batchnorm,
            "only processes on cpu, cuda or hip can exchange in a forward pass: give device: cpu, or "
            "leave this key out");
    if (config->data_streams)
        return weft__config_blame(
            config, WEFT__KEY_data_streams,
            "a batch continues the text of the batch before, so one device must compute all "
            "of them: leave this key out, or use one device and one process");
    if (!config->train_exact_sum || is_power_of_two(each)) return WEFT_OK;
    snprintf(
        what, sizeof what,
        "true needs 1, 2, 4, 8, ... batches for each device in a step, and there are %lld: choose another "
        "train.accumulate, or false",
        (long long)each);
    return weft__config_blame(config, WEFT__KEY_train_exact_sum, what);
}
