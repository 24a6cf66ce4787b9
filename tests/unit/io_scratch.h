/* A temporary folder for tests of files. It is made at the start and removed at the end. */
#ifndef WEFT_TESTS_IO_SCRATCH_H
#define WEFT_TESTS_IO_SCRATCH_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[4096]; /* the folder */

/* A path in the folder, in one of eight rotating buffers. */
static inline const char *in_scratch(const char *name) {
    static char paths[8][8192];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", scratch, name);
    return path;
}

/* Removes a file, a link or a folder with all that is in it. Does not follow links. */
static inline void remove_all(const char *path) {
    if (unlink(path) == 0) return;
    DIR *dir = opendir(path);
    if (!dir) return;
    for (const struct dirent *e; (e = readdir(dir));) {
        char inner[8192];
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        int n = snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (n > 0 && (size_t)n < sizeof inner) remove_all(inner);
    }
    closedir(dir);
    (void)rmdir(path);
}

static inline int scratch_setup(void **state) {
    (void)state;
    const char *base = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/weft-test-XXXXXX", base && *base ? base : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static inline int scratch_teardown(void **state) {
    (void)state;
    remove_all(scratch);
    return 0;
}

/* Reads a small file. The caller frees the bytes. Returns NULL if the file cannot be read. */
static inline char *slurp(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *data = malloc((size_t)1 << 22);
    *bytes = data ? fread(data, 1, (size_t)1 << 22, f) : 0;
    fclose(f);
    return data;
}

/* Overwrites a file in place; tests use it to damage files. Does not truncate the file first, because some
 * file systems would then write everything to disk at once. */
static inline bool spill(const char *path, const void *data, size_t bytes) {
    int fd = open(path, O_WRONLY | O_CREAT, 0644);
    if (fd < 0) return false;
    bool good = write(fd, data, bytes) == (ssize_t)bytes && ftruncate(fd, (off_t)bytes) == 0;
    return close(fd) == 0 && good;
}

/* The number of entries of a folder that begin with a dot, which are temporary files. */
static inline int count_hidden(const char *path) {
    int n = 0;
    DIR *dir = opendir(path);
    if (!dir) return 0;
    for (const struct dirent *e; (e = readdir(dir));)
        n += e->d_name[0] == '.' && strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
             strcmp(e->d_name, ".weft") != 0; /* the mark of a run */
    closedir(dir);
    return n;
}

#endif
