/* The table of devices, and how a device is opened by its name. A new device needs one line here.
 * Must not know: what a device does. Read next: cpu/cpu.c, opencl/opencl.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/threads.h"
#include "device/device.h"
#include "device/cuda/driver/devices.h"
#include "device/hip/hip.h"
#include "device/opencl/hooks.h"

static const weft_device_ops *const kinds[] = {
    &weft__device_cpu,    &weft__device_cuda,   &weft__device_hip,  &weft__device_opencl,
    &weft__device_webgpu, &weft__device_interp, &weft__device_null, &weft__device_c99,
};

/* Names that people try, and the devices that they mean. */
static const struct {
    const char *name, *kind, *selector;
} aliases[] = {
    {"metal", "webgpu", "Metal"},
    {"vulkan", "webgpu", "Vulkan"},
    {"dx12", "webgpu", "Direct3D 12"},
    {"rocm", "hip", ""},
};

enum { KINDS = sizeof kinds / sizeof *kinds, ALIASES = sizeof aliases / sizeof *aliases };

int weft__device_kinds(void) { return KINDS; }

const weft_device_ops *weft__device_kind(int i) { return i >= 0 && i < KINDS ? kinds[i] : NULL; }

/* ---- all devices ---- */

int weft_device_count(void) {
    int n = 0;
    for (int k = 0; k < KINDS; k++) n += weft__device_count(kinds[k]);
    return n;
}

bool weft_device_info(int i, weft_device_description *info) {
    if (i < 0 || !info) return false;
    *info = (weft_device_description){0};
    for (int k = 0; k < KINDS; k++) {
        const int n = weft__device_count(kinds[k]);
        if (i < n) {
            kinds[k]->describe(i, info);
            return true;
        }
        i -= n;
    }
    return false;
}

void weft_device_describe(const weft_context *ctx, weft_device_description *info) {
    if (!info) return;
    *info = (weft_device_description){0};
    const weft_device *device = ctx ? ctx->device : NULL;
    const int n = device ? weft__device_count(device->ops) : 0;
    for (int i = 0; i < n; i++) {
        weft_device_description found = {0};
        device->ops->describe(i, &found);
        if (strcmp(found.name, device->name) == 0) *info = found;
    }
}

bool weft_device_telemetry(const weft_context *ctx, weft_telemetry *telemetry) {
    const double none = (double)NAN;
    if (!telemetry) return false;
    *telemetry = (weft_telemetry){none, none, none, none, none, none};
    const weft_device *device = ctx ? ctx->device : NULL;
    return device && weft__device_telemetry(device, telemetry);
}

/* "cpu, opencl, interp, null, gpu, auto": the kinds that lists show */
static const char *known_names(char *text, size_t size) {
    size_t used = 0;
    for (int i = 0; i < KINDS && used < size; i++) {
        if (kinds[i] == &weft__device_c99) continue;
        const int n = snprintf(text + used, size - used, "%s, ", kinds[i]->name);
        used += n > 0 ? (size_t)n : 0;
    }
    if (used < size) snprintf(text + used, size - used, "gpu, auto");
    return text;
}

/* ---- one specification ---- */

/* Returns the part of a specification after the kind's name: "" for "opencl", "1" for "opencl:1". Returns
 * NULL if the specification means another kind. */
static const char *selector_of(const char *spec, const char *kind) {
    const size_t n = strlen(kind);
    if (strncmp(spec, kind, n) != 0) return NULL;
    return spec[n] == '\0' ? spec + n : spec[n] == ':' ? spec + n + 1 : NULL;
}

/* Returns the specification that an alias stands for, written to `text`, or the specification itself. */
static const char *without_alias(const char *spec, char *text, size_t size) {
    for (int i = 0; i < ALIASES; i++) {
        const char *selector = selector_of(spec, aliases[i].name);
        if (!selector) continue;
        const bool named = strchr(spec, ':') != NULL;
        if (!named) selector = aliases[i].selector;
        snprintf(text, size, "%s%s%s", aliases[i].kind, named || *selector ? ":" : "", selector);
        return text;
    }
    return spec;
}

static weft_status open_kind(weft_context *ctx, const weft_device_ops *kind, const char *selector, bool named,
                             const weft_open_options *options, weft_device **device) {
    const bool one = !kind->extras || !kind->extras->count; /* "cpu:0" is the cpu; "cpu:1" is an error */
    if (named && !*selector)
        return weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s:\": %s is missing after the colon", kind->name,
                          one ? "0" : "a number or a part of a name");
    if (one && *selector && strcmp(selector, "0") != 0)
        return weft__fail(ctx, WEFT_ERR_DEVICE,
                          "device \"%s:%s\": there is only one %s: name it \"%s\" or \"%s:0\"", kind->name,
                          selector, kind->name, kind->name, kind->name);
    return kind->open(ctx, selector, options, device);
}

static weft_status open_named(weft_context *ctx, const char *spec, const char *origin,
                              const weft_open_options *options, weft_device **device) {
    char text[200], meant[100];
    spec = without_alias(spec, meant, sizeof meant);
    for (int i = 0; i < KINDS; i++) {
        const char *selector = selector_of(spec, kinds[i]->name);
        if (selector) return open_kind(ctx, kinds[i], selector, strchr(spec, ':') != NULL, options, device);
    }
    return weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s\"%s is unknown: choose one of %s", spec, origin,
                      known_names(text, sizeof text));
}

/* ---- graphics cards ---- */

enum { CARDS_TEXT = 48 };

/* Writes the kinds of device that serve graphics cards, the best first. Without a driver the list has neither
 * cuda nor hip, so that no message complains about them. */
static const char *cards(char text[CARDS_TEXT]) {
    snprintf(text, CARDS_TEXT, "%s%sopencl:gpu,webgpu:gpu", weft__cuda_driver() ? "cuda," : "",
             weft__hip_driver() ? "hip," : "");
    return text;
}

bool weft__device_cards(void) {
    if (weft__opencl_hook.cards) return true;
#ifdef __linux__
    static const char *const nodes[] = {"/dev/nvidiactl", "/dev/kfd", "/dev/dxg", "/dev/mali0"};
    for (size_t i = 0; i < sizeof nodes / sizeof *nodes; i++)
        if (access(nodes[i], F_OK) == 0) return true;
    DIR *dir = opendir("/dev/dri");
    bool found = false;
    for (const struct dirent *e; dir && !found && (e = readdir(dir));)
        found = strncmp(e->d_name, "renderD", 7) == 0;
    if (dir) closedir(dir);
    return found;
#else
    return true;
#endif
}

/* ---- lists ---- */

static weft_status open_spec(weft_context *ctx, const char *spec, const char *origin,
                             const weft_open_options *options, weft_device **device);

bool weft__device_next(const char **list, char *spec, size_t size) {
    const char *at = *list;
    if (!at) return false;
    const size_t n = strcspn(at, ",");
    *list = at[n] ? at + n + 1 : NULL;
    const char *end = at + n;
    while (at < end && *at == ' ') at++;
    while (end > at && end[-1] == ' ') end--;
    snprintf(spec, size, "%.*s", (int)(end - at), at);
    return true;
}

/* Opens the first device of the list that works. With `warns`, a warning says why earlier entries failed. */
static weft_status open_list(weft_context *ctx, const char *name, const char *list, bool warns,
                             const char *origin, const weft_open_options *options, weft_device **device) {
    char whys[700] = "", spec[100];
    size_t used = 0;
    while (weft__device_next(&list, spec, sizeof spec)) {
        const weft_status status =
            *spec ? open_spec(ctx, spec, "", options, device)
                  : weft__fail(ctx, WEFT_ERR_DEVICE, "a name is missing before or after a comma");
        if (status == WEFT_OK) {
            if (used)
                weft__log(ctx, warns ? WEFT_LOG_WARNING : WEFT_LOG_INFO, "device %s%s: %s is used: %s", name,
                          origin, spec, whys);
            return WEFT_OK;
        }
        /* another error, such as out of memory, ends the search */
        if (status != WEFT_ERR_DEVICE) return status;
        const int more =
            snprintf(whys + used, sizeof whys - used, "%s%s", used ? "; " : "", weft_last_error(ctx));
        used += more > 0 ? (size_t)more : 0;
        if (used >= sizeof whys) used = sizeof whys - 1;
    }
    return weft__fail(ctx, WEFT_ERR_DEVICE, "device %s%s: no device opens: %s", name, origin, whys);
}

static weft_status open_spec(weft_context *ctx, const char *spec, const char *origin,
                             const weft_open_options *options, weft_device **device) {
    char known[CARDS_TEXT];
    if (strcmp(spec, "gpu") == 0) return open_list(ctx, "gpu", cards(known), true, origin, options, device);
    if (strcmp(spec, "auto") != 0) return open_named(ctx, spec, origin, options, device);
    if (weft__device_cards()) {
        char list[CARDS_TEXT + 8];
        snprintf(list, sizeof list, "%s,cpu", cards(known));
        /* there is a card of NVIDIA or AMD, and some piece of CUDA or ROCm is missing */
        const bool warns = weft__cuda_driver() || weft__hip_driver();
        return open_list(ctx, "auto", list, warns, origin, options, device);
    }
    weft__log(ctx, WEFT_LOG_INFO, "device auto%s: cpu is used: there is no graphics card", origin);
    return open_named(ctx, "cpu", origin, options, device);
}

/* ---- outlines ---- */

static weft_status outline_named(weft_context *ctx, const char *spec, weft_device_outline *outline) {
    char meant[100];
    spec = without_alias(spec, meant, sizeof meant);
    for (int i = 0; i < KINDS; i++) {
        const char *selector = selector_of(spec, kinds[i]->name);
        const weft_device_extras *extras = kinds[i]->extras;
        if (!selector || !extras || !extras->outline) continue;
        *outline = (weft_device_outline){.absent = false};
        return extras->outline(ctx, selector, outline);
    }
    return weft__fail(ctx, WEFT_ERR_DEVICE,
                      "device \"%s\": plans are made for cpu, opencl, cuda, hip, webgpu, gpu and auto", spec);
}

/* CUDA is the only kind whose cards are described. */
void weft__device_outline_card(const struct weft_card *card, weft_device_outline *outline) {
    *outline = (weft_device_outline){.card = card};
    weft__device_cuda.extras->outline_card(card, outline);
}

weft_status weft__device_outline_of(weft_context *ctx, const char *spec, weft_device_outline *outline) {
    char list[CARDS_TEXT + 8], known[CARDS_TEXT], one[100];
    weft_status status = WEFT_ERR_DEVICE;
    const char *at = spec;
    snprintf(list, sizeof list, "%s%s", weft__device_cards() ? cards(known) : "",
             weft__device_cards() && strcmp(spec, "auto") == 0 ? ",cpu" : "");
    if (strcmp(spec, "gpu") == 0 || strcmp(spec, "auto") == 0) at = list[0] ? list : "cpu";
    while (status != WEFT_OK && weft__device_next(&at, one, sizeof one))
        status = outline_named(ctx, one, outline);
    return status;
}

/* Fills in an empty specification from WEFT_DEVICE or the default. Returns where it came from, for
 * messages. */
static const char *resolve(const char **spec) {
    if (*spec && **spec) return "";
    *spec = secure_getenv("WEFT_DEVICE");
    if (*spec && **spec) return " (from WEFT_DEVICE)";
    *spec = "cpu";
    return "";
}

weft_status weft__device_open(weft_context *ctx, const char *spec, const weft_open_options *options,
                              weft_device **device) {
    const char *origin = resolve(&spec);
    *device = NULL;
    if (strchr(spec, ',')) return open_list(ctx, spec, spec, true, origin, options, device);
    return open_spec(ctx, spec, origin, options, device);
}

/* ---- after a fork ---- */

const char *weft__device_forked(int forks) {
    return forks == weft__forks()
               ? NULL
               : "this process was forked after its parent had loaded the driver, which works only in the "
                 "parent: fork before you list or open devices, or compute on the cpu";
}

weft_status weft__device_usable(const weft_device *device) {
    const char *why = device->asynchronous ? weft__device_forked(device->forks) : NULL;
    return why ? weft__fail(device->ctx, WEFT_ERR_DEVICE, "%s: %s", device->name, why) : WEFT_OK;
}
