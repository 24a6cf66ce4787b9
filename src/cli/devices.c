/* weft devices: what this machine can compute on, and why the rest is absent. */
#include <string.h>

#include <weft/tensor.h>

#include "cli/cli.h"

int weft__command_devices(const weft__command *command, int argc, char **argv) {
    int code = 0;
    if (!weft__arguments(command, argc, argv, NULL, 0, &code)) return code;
    for (int i = 0; i < weft_device_count(); i++) {
        weft_device_description device;
        if (!weft_device_info(i, &device)) continue;
        printf("%-8s ", device.name);
        if (!device.present) {
            printf("absent: %s\n", device.reason ? device.reason : "unknown reason");
            continue;
        }
        printf("%s", device.detail ? device.detail : "");
        bool said = device.detail && strstr(device.detail, "thread");
        if (device.threads > 0 && !said)
            printf(", %d thread%s", device.threads, device.threads == 1 ? "" : "s");
        if (device.memory > 0) printf(", %.1f GiB", (double)device.memory / (1024.0 * 1024.0 * 1024.0));
        printf("\n");
    }
    return WEFT__EXIT_DONE;
}
