/* What a card reports about itself: files of Linux's driver amdgpu, described in the kernel's documentation
 * ("GPU Power/Thermal Controls and Monitoring"). A card leaves out what it does not measure.
 * Must not know: programs. Read next: train/run/telemetry.c. */
#include <ctype.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/hip/hip.h"

enum { TELEMETRY_PATH = 512 };

/* Reads the number in a file, in units of `unit`. False, with *to as it was, if there is none. */
static bool read_number(const char *folder, const char *file, double unit, double *to) {
    char path[TELEMETRY_PATH], text[32] = "", *end = text;
    const int n = snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *in = n < (int)sizeof path ? fopen(path, "r") : NULL;
    const bool is = in && fgets(text, sizeof text, in);
    const long long number = strtoll(text, &end, 10);
    if (in) (void)fclose(in);
    if (!is || end == text) return false;
    *to = (double)number * unit;
    return true;
}

/* Reads the sensors of the card, which are in a folder such as hwmon/hwmon3. */
static bool read_sensors(const char *folder, weft_telemetry *t) {
    bool any = read_number(folder, "power1_average", 1e-6, &t->power) ||
               read_number(folder, "power1_input", 1e-6, &t->power);
    any = read_number(folder, "freq1_input", 1e-6, &t->clock) || any;
    any = read_number(folder, "freq2_input", 1e-6, &t->memory_clock) || any;
    return read_number(folder, "temp1_input", 1e-3, &t->temperature) ||
           read_number(folder, "temp2_input", 1e-3, &t->temperature) /* the hottest place */ || any;
}

bool weft__hip_telemetry(const weft_device *device, weft_telemetry *t) {
    const char *bus = ((const weft__cuda *)device)->found->bus;
    const char *root = weft__hip_hook.bus ? weft__hip_hook.bus : "/sys/bus/pci/devices";
    char folder[TELEMETRY_PATH], pattern[TELEMETRY_PATH + 16];
    glob_t found;
    if (!bus[0] || strlen(root) > TELEMETRY_PATH / 2) return false;
    const int n = snprintf(folder, sizeof folder, "%s/%s", root, bus);
    for (int i = n - (int)strlen(bus); i < n; i++) folder[i] = (char)tolower((unsigned char)folder[i]);
    bool any = read_number(folder, "gpu_busy_percent", 0.01, &t->utilisation);
    any = read_number(folder, "mem_info_vram_used", 1, &t->memory_used) || any;
    snprintf(pattern, sizeof pattern, "%s/hwmon/hwmon*", folder);
    if (glob(pattern, 0, NULL, &found) != 0) return any;
    any = read_sensors(found.gl_pathv[0], t) || any;
    globfree(&found);
    return any;
}
