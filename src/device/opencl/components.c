/* The components of OpenCL: the loader, and the drivers that it knows.
 * Must not know: what a driver does. Read next: devices.c, docs/devices.md. */
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/opencl/opencl.h"

static const char *find_loader(char text[WEFT_COMPONENT_TEXT]) {
    const char *why = weft__opencl_open_library();
    if (!why) snprintf(text, WEFT_COMPONENT_TEXT, "it is there");
    return why;
}

static const char *find_driver(char text[WEFT_COMPONENT_TEXT]) {
    return weft__gpu_find_devices(&weft__opencl_kind, text);
}

const weft_device_component weft__opencl_components[] = {
    {"loader", "OpenCL 1.2", "Debian: ocl-icd-libopencl1", "there is no OpenCL device", find_loader},
    {"driver", "OpenCL 1.2, full profile",
     "Debian: pocl-opencl-icd (computes on the processor), mesa-opencl-icd, intel-opencl-icd, "
     "nvidia-opencl-icd",
     "there is no OpenCL device", find_driver},
    {.name = NULL}};

/* ---- the drivers that the loader knows ---- */

/* Tells whether the library that an .icd file names in its first line can be opened. */
static bool driver_opens(const char *file, char library[256]) {
    FILE *f = fopen(file, "r");
    library[0] = 0;
    if (f && fgets(library, 256, f)) library[strcspn(library, "\r\n")] = 0;
    if (f) fclose(f);
    /* stays open, as the OpenCL loader keeps it */
    return library[0] && dlopen(library, RTLD_LAZY | RTLD_LOCAL);
}

int weft__opencl_remark(weft_text *line) {
    const char *setting = getenv("OCL_ICD_VENDORS"),
               *folder = setting && setting[0] ? setting : "/etc/OpenCL/vendors";
    DIR *dir = opendir(folder);
    int n = 0, broken = 0;
    weft__put(line, "OpenCL drivers in %s:", folder);
    for (const struct dirent *e; dir && (e = readdir(dir));) {
        char path[4096], library[256];
        if (!strstr(e->d_name, ".icd")) continue;
        weft__put(line, "%s %s", n++ ? "," : "", e->d_name);
        if (!weft__join(path, sizeof path, folder, e->d_name) || driver_opens(path, library)) continue;
        weft__put(line, " (its library '%s' cannot be opened: install its package again, or remove the file)",
                  library);
        broken++;
    }
    if (!n)
        weft__put(line,
                  " none (Debian: pocl-opencl-icd, mesa-opencl-icd, intel-opencl-icd, nvidia-opencl-icd)");
    if (dir) closedir(dir);
    return broken;
}
