/* The table of devices, and how a device is opened by its name.
 * Must not know: any device. Read next: devices.def, device.h, cpu/cpu.c. */
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
#include "device/module.h"

bool weft__device_cards_hook;

static const weft_device_module *const kinds[] = {
#define WEFT_DEVICE(name) &weft__device_##name,
#include "device/devices.def"
#undef WEFT_DEVICE
};

enum { KINDS = sizeof kinds / sizeof *kinds };

int weft__device_kinds(void) { return KINDS; }

const weft_device_module *weft__device_kind(int i) { return i >= 0 && i < KINDS ? kinds[i] : NULL; }

int weft__device_count(const weft_device_module *kind) {
    if (kind->hidden) return 0;
    return kind->count ? kind->count(kind) : 1;
}

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
            kinds[k]->describe(kinds[k], i, info);
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
    const weft_device_module *kind = device ? weft__device_kind_of(device->ops->name) : NULL;
    const int n = kind ? weft__device_count(kind) : 0;
    for (int i = 0; i < n; i++) {
        weft_device_description found = {0};
        kind->describe(kind, i, &found);
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

/* Writes "cpu, cuda, null, gpu, auto": the kinds that lists show, or of them those that have outlines. */
static const char *known_names(char *text, size_t size, bool outlines, const char *rest) {
    weft_text to = weft__text(text, size);
    for (int i = 0; i < KINDS; i++)
        if (!kinds[i]->hidden && (!outlines || kinds[i]->outline))
            weft__put(&to, "%s, ", kinds[i]->ops->name);
    weft__put(&to, "%s", rest);
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

/* Returns the kind of a specification, or NULL, and its selector. */
static const weft_device_module *find_kind(const char *spec, const char **selector) {
    for (int i = 0; i < KINDS; i++) {
        if ((*selector = selector_of(spec, kinds[i]->ops->name))) return kinds[i];
        for (const weft_device_alias *a = kinds[i]->aliases; a && a->name; a++)
            if ((*selector = selector_of(spec, a->name))) {
                if (!strchr(spec, ':')) *selector = a->selector;
                return kinds[i];
            }
    }
    return NULL;
}

const weft_device_module *weft__device_kind_of(const char *spec) {
    const char *selector;
    return find_kind(spec, &selector);
}

static weft_status open_kind(weft_context *ctx, const weft_device_module *kind, const char *selector,
                             bool named, const weft_open_options *options, weft_device **device) {
    const char *name = kind->ops->name;
    if (named && !*selector)
        return weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s:\": %s is missing after the colon", name,
                          kind->count ? "a number or a part of a name" : "0");
    /* "cpu:0" is the cpu; "cpu:1" is an error */
    if (!kind->count && *selector && strcmp(selector, "0") != 0)
        return weft__fail(ctx, WEFT_ERR_DEVICE,
                          "device \"%s:%s\": there is only one %s: name it \"%s\" or \"%s:0\"", name,
                          selector, name, name, name);
    return kind->open(kind, ctx, selector, options, device);
}

static weft_status open_named(weft_context *ctx, const char *spec, const char *origin,
                              const weft_open_options *options, weft_device **device) {
    char text[200];
    const char *selector;
    const weft_device_module *kind = find_kind(spec, &selector);
    if (kind) return open_kind(ctx, kind, selector, strchr(spec, ':') != NULL, options, device);
    return weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s\"%s is unknown: choose one of %s", spec, origin,
                      known_names(text, sizeof text, false, "gpu, auto"));
}

/* ---- graphics cards ---- */

enum { CARDS_TEXT = 200 };

/* Writes the specifications by which `gpu` and `auto` try graphics cards, the best first. Kinds without their
 * driver are left out, so that no message complains about them. Returns whether one of the others has its
 * own driver. */
static bool cards(char text[CARDS_TEXT]) {
    weft_text to = weft__text(text, CARDS_TEXT);
    bool drivers = false;
    for (int i = 0; i < KINDS; i++) {
        const bool driver = kinds[i]->driver && kinds[i]->driver();
        if (!kinds[i]->card || (kinds[i]->driver && !driver)) continue;
        weft__put(&to, "%s%s", to.length ? "," : "", kinds[i]->card);
        drivers = drivers || driver;
    }
    return drivers;
}

bool weft__device_cards(void) {
    if (weft__device_cards_hook) return true;
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
    const bool automatic = strcmp(spec, "auto") == 0;
    char list[CARDS_TEXT + 8] = "";
    if (!automatic && strcmp(spec, "gpu") != 0) return open_named(ctx, spec, origin, options, device);
    if (automatic && !weft__device_cards()) {
        weft__log(ctx, WEFT_LOG_INFO, "device auto%s: cpu is used: there is no graphics card", origin);
        return open_named(ctx, "cpu", origin, options, device);
    }
    const bool drivers = cards(list); /* auto warns if such a card lacks a piece of its software */
    if (automatic) strcat(list, ",cpu");
    return open_list(ctx, spec, list, !automatic || drivers, origin, options, device);
}

/* ---- outlines ---- */

static weft_status outline_named(weft_context *ctx, const char *spec, weft_device_outline *outline) {
    char text[200];
    const char *selector;
    const weft_device_module *kind = find_kind(spec, &selector);
    *outline = (weft_device_outline){.absent = false};
    if (kind && kind->outline) return kind->outline(kind, ctx, selector, outline);
    return weft__fail(ctx, WEFT_ERR_DEVICE, "device \"%s\": plans are made for %s", spec,
                      known_names(text, sizeof text, true, "gpu and auto"));
}

void weft__device_outline_card(const struct weft_card *card, weft_device_outline *outline) {
    *outline = (weft_device_outline){.card = card};
    for (int i = 0; i < KINDS; i++)
        if (kinds[i]->outline_card) kinds[i]->outline_card(card, outline);
}

weft_status weft__device_outline_of(weft_context *ctx, const char *spec, weft_device_outline *outline) {
    char list[CARDS_TEXT + 8] = "cpu", one[100];
    weft_status status = WEFT_ERR_DEVICE;
    const bool automatic = strcmp(spec, "auto") == 0;
    const char *at = automatic || strcmp(spec, "gpu") == 0 ? list : spec;
    if (at == list && weft__device_cards()) {
        cards(list);
        if (automatic) strcat(list, ",cpu");
    }
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
