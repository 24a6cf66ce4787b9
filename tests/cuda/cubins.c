/* Compiled kernels that tests share. Most time of a test on the simulated GPU is the time of the compiler,
 * and many tests compile the same kernels. The folder has SLOTS places at most, so it does not grow without
 * end: a kernel that gets a used place replaces the one that is there. This file must not know what a kernel
 * is. Read next: nvrtc.c. */
#include "cubins.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SLOTS = 4096 };

void cubin_add(cubin_key *key, const void *data, size_t bytes) {
    static const uint64_t factor[2] = {0x100000001b3, 0x9e3779b97f4a7c15}; /* FNV-1a, and another one */
    for (size_t i = 0; i < bytes; i++)
        for (int k = 0; k < 2; k++) {
            key->part[k] = (key->part[k] ^ ((const unsigned char *)data)[i]) * factor[k];
            key->part[k] ^= key->part[k] >> 29;
        }
    for (int k = 0; k < 2; k++) key->part[k] = (key->part[k] + bytes) * factor[k]; /* where a part ends */
}

static void name_slot(char *path, size_t room, const char *folder, cubin_key key) {
    snprintf(path, room, "%s/%03x", folder, (unsigned)(key.part[0] % SLOTS));
}

char *cubin_find(const char *folder, cubin_key key, size_t *bytes) {
    char path[500];
    cubin_key found = {0};
    struct stat is;
    char *cubin = NULL;
    name_slot(path, sizeof path, folder, key);
    FILE *file = fopen(path, "rb");
    if (!file) return NULL;
    if (fread(&found, sizeof found, 1, file) == 1 && memcmp(&found, &key, sizeof key) == 0 &&
        fstat(fileno(file), &is) == 0) {
        *bytes = (size_t)is.st_size - sizeof found;
        cubin = malloc(*bytes + 1);
        if (cubin && fread(cubin, 1, *bytes, file) != *bytes) {
            free(cubin);
            cubin = NULL;
        }
    }
    fclose(file);
    return cubin;
}

void cubin_keep(const char *folder, cubin_key key, const char *cubin, size_t bytes) {
    char path[500], part[500]; /* other processes see a whole file or none */
    snprintf(part, sizeof part, "%s/part-XXXXXX", folder);
    const int fd = mkstemp(part);
    FILE *file = fd < 0 ? NULL : fdopen(fd, "wb");
    if (!file) return;
    const size_t written = fwrite(&key, 1, sizeof key, file) + fwrite(cubin, 1, bytes, file);
    name_slot(path, sizeof path, folder, key);
    if (fclose(file) != 0 || written != sizeof key + bytes || rename(part, path) != 0) unlink(part);
}
