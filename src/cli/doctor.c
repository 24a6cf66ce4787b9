/* weft doctor: explains which device a run takes and why, and what to do about missing components. Shows the
 * state of each device, and where compiled kernels are kept. Must not know: how devices work. Read next:
 * devices.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/devices.h"
#include "cli/components.h"
#include "base/text.h"
#include "device/cache.h"
#include "train/run/run_dir.h"

/* Prints what devices say about their drivers. Returns how many of these are broken. */
static int print_remarks(void) {
    int broken = 0;
    for (int i = 0; i < weft__device_kinds(); i++) {
        const weft_device_module *kind = weft__device_kind(i);
        char line[8000] = "";
        weft_text to = weft__text(line, sizeof line);
        if (!kind->remark) continue;
        broken += kind->remark(&to);
        weft__print(stdout, "%s\n", line);
    }
    return broken;
}

static void print_cache(void) {
    char path[WEFT_GPU_CACHE_PATH];
    if (!weft__gpu_cache_folder(path))
        weft__print(stdout,
                    "compiled kernels: not kept, because WEFT_KERNEL_CACHE is off or HOME is empty\n");
    else
        weft__print(stdout, "compiled kernels: %s%s\n", path,
                    weft__gpu_cache_wanted()
                        ? ""
                        : ", where nothing can be kept: the folder must belong to the user");
}

int weft__command_doctor(const weft__command *command, int argc, char **argv) {
    int code = 0, broken = 0;
    bool table = false;
    weft_context *ctx = NULL;
    const weft__option options[] = {
        {"--table", WEFT__OPTION_FLAG, &table,
         "only print the tables of devices and components, as in docs/devices.md"}};
    if (!weft__arguments(command, argc, argv, options, 1, &code)) return code;
    if (table) {
        weft__components_table();
        return WEFT__EXIT_DONE;
    }
    const char *setting = getenv("WEFT_DEVICE");
    const bool opens = weft_open(NULL, &ctx) == WEFT_OK;
    weft__print(stdout, "a run without --device takes %s, %s%s\n", opens ? weft_device_of(ctx) : "none",
                setting && setting[0] ? "as WEFT_DEVICE says: " : "which is the default",
                setting && setting[0] ? setting : "");
    if (!opens) weft__print(stdout, "  that fails: %s\n", weft_last_error(NULL));
    weft_close(ctx);
    for (int i = 0; i < weft_device_count(); i++) {
        weft_device_description device;
        if (weft_device_info(i, &device) && !weft__device_print(&device)) broken++;
    }
    const int drivers = print_remarks();
    weft__print(stdout, "what devices need (docs/devices.md):\n");
    weft__components_print(NULL);
    print_cache();
    if (broken)
        weft__print(stdout,
                    "%d device%s above fail%s; WEFT_DEBUG=launch shows each kernel of a run; without the "
                    "driver's\npackage the other devices still work\n",
                    broken, broken == 1 ? "" : "s", broken == 1 ? "s" : "");
    if (broken || !opens) return WEFT__EXIT_DEVICE;
    weft__print(stdout, "%s\n", drivers ? "the devices above work" : "all is well");
    return WEFT__EXIT_DONE;
}
