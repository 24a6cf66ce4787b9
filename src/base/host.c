/* How much memory of the host is free: what the machine has, within the limit of the process's cgroup.
 * Must not know: who asks. Read next: memory.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base.h"

/* Returns the number after `key` in a file of "key number" lines; with key "", the number on the first line.
 * Returns 0 if there is none. */
static uint64_t number_in(const char *path, const char *key) {
    char line[256];
    uint64_t value = 0;
    const size_t n = strlen(key);
    FILE *file = fopen(path, "r");
    while (file && value == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, key, n) == 0)
            value = strtoull(line + n, NULL, 10); /* strtoull gives 0 if there is
                                                   * no number */
    if (file) fclose(file);
    return value;
}

uint64_t weft__host_memory_free(void) {
    const uint64_t machine = number_in("/proc/meminfo", "MemAvailable:") * 1024;
    const uint64_t limit = number_in("/sys/fs/cgroup/memory.max", ""); /* "max", no limit, gives 0 */
    const uint64_t used = number_in("/sys/fs/cgroup/memory.current", "");
    const uint64_t files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ");
    if (!limit) return machine;
    const uint64_t held = used > files ? used - files : 0, left = limit > held ? limit - held : 1;
    return machine && machine < left ? machine : left;
}
