/* weft doctor: explains which device a run takes and why, the state of each device, where compiled kernels
 * are kept, and what to do about missing components. Must not know: how devices work. Read next:
 * devices.c. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli.h"
#include "cli/devices.h"
#include "cli/components.h"
#include "device/cache.h"
#include "train/run/run_dir.h"

/* Tells whether the library that an .icd file names in its first line can be opened. */
static bool driver_opens(const char *file, char library[256]) {
    FILE *f = fopen(file, "r");
    library[0] = 0;
    if (f && fgets(library, 256, f)) library[strcspn(library, "\r\n")] = 0;
    if (f) fclose(f);
    /* stays open, as the OpenCL loader keeps it */
    return library[0] && dlopen(library, RTLD_LAZY | RTLD_LOCAL);
}

/* Lists the drivers that the OpenCL loader knows. Returns how many of them cannot be opened. */
static int print_drivers(void) {
    const char *setting = getenv("OCL_ICD_VENDORS"),
               *folder = setting && setting[0] ? setting : "/etc/OpenCL/vendors";
    DIR *dir = opendir(folder);
    int n = 0, broken = 0;
    weft__print(stdout, "OpenCL drivers in %s:", folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        char path[4096], library[256];
        if (!strstr(e->d_name, ".icd")) continue;
        weft__print(stdout, "%s %s", n++ ? "," : "", e->d_name);
        if (!weft__join(path, sizeof path, folder, e->d_name) || driver_opens(path, library)) continue;
        weft__print(stdout,
                    " (its library '%s' cannot be opened: install its package again, or remove the file)",
                    library);
        broken++;
    }
    weft__print(stdout, "%s\n",
                n ? ""
                  : " none (Debian: pocl-opencl-icd, mesa-opencl-icd, intel-opencl-icd, nvidia-opencl-icd)");
    if (dir) closedir(dir);
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
        {"--table", WEFT__OPTION_FLAG, &table, "only print the table of components, as in docs/devices.md"}};
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
    const int drivers = print_drivers();
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
