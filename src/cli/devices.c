/* weft devices: lists what this machine can compute on. Each device is tested, and absent devices are listed
 * with the reason. Must not know: how devices work. Read next: doctor.c. */
#include <string.h>

#include <weft/ops.h>
#include <weft/tensor.h>

#include "cli/cli.h"
#include "cli/devices.h"
#include "cli/components.h"
#include "train/run/progress.h"

/* Computes (1 2 3) + (10 20 30). */
static weft_status add_three(weft_context *ctx, float out[3]) {
    static const float a[3] = {1, 2, 3}, b[3] = {10, 20, 30};
    const int64_t shape[1] = {3};
    return weft_read(weft_add(weft_from(ctx, WEFT_F32, 1, shape, a), weft_from(ctx, WEFT_F32, 1, shape, b)),
                     out, 3 * sizeof *out);
}

bool weft__device_works(const weft_device_description *device, char *text, size_t size) {
    static const float right[3] = {11, 22, 33};
    const double from = weft__now();
    weft_context *ctx = NULL;
    float sum[3] = {0};
    const weft_device_module *kind = weft__device_kind_of(device->name);
    if (kind && kind->computes_nothing) {
        snprintf(text, size, "not tried out");
        return true;
    }
    const bool open = weft_open(&(weft_open_options){.device = device->name}, &ctx) == WEFT_OK;
    const bool ran = open && add_three(ctx, sum) == WEFT_OK;
    const bool works = ran && memcmp(sum, right, sizeof sum) == 0;
    if (works)
        snprintf(text, size, "three elements added in %.0f ms", 1e3 * (weft__now() - from));
    else if (ran)
        snprintf(text, size, "WRONG: expected 11 22 33, got %g %g %g", (double)sum[0], (double)sum[1],
                 (double)sum[2]);
    else
        snprintf(text, size, "FAILED: %s", weft_last_error(ctx));
    weft_close(ctx);
    return works;
}

static void print_limits(const weft_device_description *d) {
    const bool said = d->detail && strstr(d->detail, "thread");
    const char *unit = d->buffer_limit ? "compute unit" : "thread";
    if (d->threads > 0 && !said)
        weft__print(stdout, ", %d %s%s", d->threads, unit, d->threads == 1 ? "" : "s");
    if (d->memory > 0) weft__print(stdout, ", %.1f GiB", (double)d->memory / 0x1p30);
    if (d->buffer_limit > 0)
        weft__print(stdout, " (%.1f GiB a buffer, %.0f KiB local), %s", (double)d->buffer_limit / 0x1p30,
                    (double)d->local_memory / 0x1p10, d->f64 ? "f64" : "no f64");
}

bool weft__device_print(const weft_device_description *d) {
    char text[300] = "";
    bool works = true;
    weft__print(stdout, "%-8s ", d->name);
    if (!d->present) {
        weft__print(stdout, "absent: %s\n", d->reason ? d->reason : "unknown reason");
        return true;
    }
    weft__print(stdout, "%s", d->detail ? d->detail : "");
    print_limits(d);
    works = weft__device_works(d, text, sizeof text);
    weft__print(stdout, "; %s\n", text);
    return works;
}

/* Tells whether there is a card of the kind, even if its software is incomplete. */
static bool has_card(const weft_device_module *kind) {
    weft_device_description device = {.card = false};
    for (int i = 0; i < weft__device_count(kind) && !device.card; i++) kind->describe(kind, i, &device);
    return device.card;
}

int weft__command_devices(const weft__command *command, int argc, char **argv) {
    int code = 0;
    if (!weft__arguments(command, argc, argv, NULL, 0, &code)) return code;
    for (int i = 0; i < weft_device_count(); i++) {
        weft_device_description device;
        /* only `weft doctor` exits with code 4 */
        if (weft_device_info(i, &device)) (void)weft__device_print(&device);
    }
    for (int i = 0; i < weft__device_kinds(); i++) {
        const weft_device_module *kind = weft__device_kind(i);
        if (kind->driver && has_card(kind)) weft__components_print(kind);
    }
    return WEFT__EXIT_DONE;
}
