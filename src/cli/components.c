/* Lists the components that devices need, and whether each is present. Must not know: how components are
 * opened. Read next: doctor.c. */
#include <stdio.h>
#include <string.h>

#include <weft/tensor.h>

#include "cli/cli.h"
#include "cli/components.h"
#include "device/cuda/components.h"
#include "device/hip/components.h"
#include "device/opencl/devices.h"
#include "device/webgpu/devices.h"

static const struct component {
    const char *device, *name, *oldest, *from, *without;
} components[] = {
#define COMPONENT(device, name, oldest, from, without) {device, name, oldest, from, without},
#include "cli/components.def"
#undef COMPONENT
};
enum { COMPONENTS = sizeof components / sizeof *components };

/* Writes about a library that was opened, or `why` it was not; for a driver, about the devices that it finds.
 */
static bool find_kind(weft_gpu_devices *devices, const char *why, const char *name, const char *library,
                      char text[WEFT_COMPONENT_TEXT]) {
    const bool driver = strcmp(name, "driver") == 0;
    const int n = !driver || why ? 0 : weft__gpu_devices(devices, &why);
    if (driver && n)
        snprintf(text, WEFT_COMPONENT_TEXT, "%d device%s", n, n == 1 ? "" : "s");
    else
        snprintf(text, WEFT_COMPONENT_TEXT, "%s", why ? why : library);
    return !why;
}

static bool find_cpu(char text[WEFT_COMPONENT_TEXT]) {
    weft_device_description d;
    for (int i = 0; weft_device_info(i, &d); i++)
        if (strcmp(d.name, "cpu") == 0) snprintf(text, WEFT_COMPONENT_TEXT, "%s", d.detail);
    return !strstr(text, "own kernels");
}

/* Tells whether a component is present. `text` says which version it is, or why it is missing. */
static bool cli_components_find(const struct component *p, char text[WEFT_COMPONENT_TEXT]) {
    text[0] = 0;
    if (strcmp(p->device, "cpu") == 0) return find_cpu(text);
    if (strcmp(p->device, "opencl") == 0)
        return find_kind(&weft__opencl_kind, weft__opencl_open_library(), p->name, "it is there", text);
    if (strcmp(p->device, "webgpu") == 0) {
        const char *why = weft__webgpu_open_library();
        return find_kind(&weft__webgpu_kind, why, p->name, why ? "" : weft__webgpu_library_name(), text);
    }
    if (strcmp(p->device, "hip") == 0) return weft__hip_component(p->name, text);
    return weft__cuda_component(p->name, text);
}

void weft__components_print(const char *device) {
    const char *lost = ""; /* device whose first component is missing; its others are not looked for */
    for (int i = 0; i < COMPONENTS; i++) {
        const struct component *p = &components[i];
        char text[WEFT_COMPONENT_TEXT];
        if ((device && strcmp(device, p->device) != 0) || strcmp(lost, p->device) == 0) continue;
        const bool there = cli_components_find(p, text);
        weft__print(stdout, "  %-7s %-9s %s%s%s%s\n", p->device, p->name, there ? "" : "missing, so that ",
                    there ? text : p->without, there ? "" : ": ", there ? "" : text);
        if (!there && (i == 0 || strcmp(components[i - 1].device, p->device) != 0)) lost = p->device;
    }
}

void weft__components_table(void) {
    weft__print(stdout,
                "| device | component | oldest | from | without it |\n| --- | --- | --- | --- | --- |\n");
    for (int i = 0; i < COMPONENTS; i++)
        weft__print(stdout, "| `%s` | %s | %s | %s | %s |\n", components[i].device, components[i].name,
                    components[i].oldest, components[i].from, components[i].without);
}
