/* How much memory the host has, and how much is free: what the machine has, within the limits of the process
 * and its cgroup. Must not know: who asks. Read next: memory.c. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* What the limit of the process's addresses leaves (ulimit -v); 0 if there is no limit. */
static uint64_t addresses_free(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return 0;
    const uint64_t used = number_in("/proc/self/status", "VmSize:") * 1024;
    return limit.rlim_cur > used ? (uint64_t)limit.rlim_cur - used : 1;
}

/* Returns the smaller number; 0 stands for an unknown one. */
static uint64_t smaller_known(uint64_t a, uint64_t b) { return a && (!b || a < b) ? a : b; }

uint64_t weft__host_memory(void) {
    const long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    return pages > 0 && size > 0 ? (uint64_t)pages * (uint64_t)size : 0;
}

uint64_t weft__host_memory_free(void) {
    const uint64_t machine = number_in("/proc/meminfo", "MemAvailable:") * 1024;
    const uint64_t limit = number_in("/sys/fs/cgroup/memory.max", ""); /* "max", no limit, gives 0 */
    const uint64_t used = number_in("/sys/fs/cgroup/memory.current", "");
    const uint64_t files = number_in("/sys/fs/cgroup/memory.stat", "inactive_file ");
    const uint64_t held = used > files ? used - files : 0, left = limit > held ? limit - held : 1;
    return smaller_known(smaller_known(machine, limit ? left : 0), addresses_free());
}
