/* The table of devices, and opening one by its name. A new device is one line here. Must not know: what any
 * device does. Read next: cpu/cpu.h, interp/interp.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/device.h"

static const weft_device_ops *const kinds[] = {
    &weft__device_cpu,
    &weft__device_interp,
    &weft__device_null,
};

enum { KINDS = sizeof kinds / sizeof *kinds };

int weft__device_kinds(void) { return KINDS; }

const weft_device_ops *weft__device_kind(int i) { return i >= 0 && i < KINDS ? kinds[i] : NULL; }

int weft_device_count(void) { return KINDS; }

bool weft_device_info(int i, weft_device_description *info) {
    if (i < 0 || i >= KINDS || !info) return false;
    *info = (weft_device_description){0};
    kinds[i]->describe(info);
    return true;
}

/* "cpu, interp, null, auto" */
static const char *known_names(char *text, size_t size) {
    size_t used = 0;
    for (int i = 0; i < KINDS && used < size; i++) {
        const int n = snprintf(text + used, size - used, "%s, ", kinds[i]->name);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size) snprintf(text + used, size - used, "auto");
    return text;
}

/* "cpu" and "cpu:0" name the cpu; each kind has one device so far. */
static bool names(const char *spec, const char *kind) {
    const size_t n = strlen(kind);
    return strncmp(spec, kind, n) == 0 && (spec[n] == '\0' || strcmp(spec + n, ":0") == 0);
}

/* Where the specification came from, for messages. */
static const char *resolve(const char **spec) {
    if (*spec && **spec) return "";
    *spec = secure_getenv("WEFT_DEVICE");
    if (*spec && **spec) return " (from WEFT_DEVICE)";
    *spec = "cpu";
    return "";
}

static weft_status open_kind(weft_context *ctx, const weft_device_ops *kind, const weft_open_options *options,
                             weft_device **device) {
    weft_device_description info = {0};
    kind->describe(&info);
    if (!info.present)
        return weft__fail(ctx, WEFT_ERR_DEVICE, "device %s: %s", kind->name,
                          info.reason ? info.reason : "absent");
    return kind->open(ctx, options, device);
}

weft_status weft__device_open(weft_context *ctx, const char *spec, const weft_open_options *options,
                              weft_device **device) {
    const char *origin = resolve(&spec);
    char text[200];
    *device = NULL;
    if (strcmp(spec, "auto") == 0) {
        weft__log(ctx, WEFT_LOG_INFO, "device auto%s: cpu, the only device that computes in this build",
                  origin);
        spec = "cpu";
    }
    for (int i = 0; i < KINDS; i++)
        if (names(spec, kinds[i]->name)) return open_kind(ctx, kinds[i], options, device);
    for (int i = 0; i < KINDS; i++) {
        const size_t n = strlen(kinds[i]->name);
        if (strncmp(spec, kinds[i]->name, n) == 0 && spec[n] == ':')
            return weft__fail(ctx, WEFT_ERR_DEVICE,
                              "device \"%s\"%s: there is one %s: name it \"%s\" or \"%s:0\"", spec, origin,
                              kinds[i]->name, kinds[i]->name, kinds[i]->name);
    }
    return weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s\"%s is unknown: choose one of %s", spec, origin,
                      known_names(text, sizeof text));
}
