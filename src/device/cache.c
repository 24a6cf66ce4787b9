/* The folder of compiled kernels on disk. It is $WEFT_KERNEL_CACHE ("off": none), otherwise
 * $XDG_CACHE_HOME/weft/kernels, otherwise ~/.cache/weft/kernels. Only its owner may read or write it, since
 * its contents are executed. A file is written under a temporary name and then renamed, so no reader sees an
 * incomplete file. A checksum detects other damage.
 * Must not know: what the bytes mean. Read next: gpu/backend/compile.c. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "device/cache.h"

enum { PATH_SIZE = WEFT_GPU_CACHE_PATH, BYTES_MOST = 256 << 20 };

typedef struct file_head {
    char magic[8];
    uint64_t key[2], bytes, sum[2];
} file_head;

static const char magic[8] = "WEFTKC1";

/* ---- the folder ---- */

/* Returns whether the folder exists or was made, and belongs to this user alone. */
static bool own_folder(const char *path) {
    struct stat s;
    if (mkdir(path, 0700) != 0 && errno != EEXIST) return false;
    return stat(path, &s) == 0 && S_ISDIR(s.st_mode) && s.st_uid == geteuid() && (s.st_mode & 022) == 0;
}

/* Writes "BASE/NAME" to `to`. Returns false if it is too long. */
static bool join(char to[PATH_SIZE], const char *base, const char *name) {
    const int n = snprintf(to, PATH_SIZE, "%s/%s", base, name);
    return n > 0 && n < PATH_SIZE;
}

/* Writes the folder's name to path, without making the folder. The first *above bytes name a folder that need
 * not be the user's own. Returns false if there is no folder. */
static bool name_folder(char path[PATH_SIZE], size_t *above) {
    const char *chosen = secure_getenv("WEFT_KERNEL_CACHE"), *cache = secure_getenv("XDG_CACHE_HOME");
    const char *home = secure_getenv("HOME");
    if (chosen && strcmp(chosen, "off") == 0) return false;
    if (chosen && *chosen == '/') {
        *above = (size_t)(strrchr(chosen, '/') - chosen);
        return snprintf(path, PATH_SIZE, "%s", chosen) < PATH_SIZE;
    }
    if (cache && *cache == '/') {
        *above = strlen(cache);
        return join(path, cache, "weft/kernels");
    }
    if (!home || *home != '/') return false;
    *above = strlen(home) + strlen("/.cache");
    return join(path, home, ".cache/weft/kernels");
}

static bool folder(char path[PATH_SIZE]) {
    char made[PATH_SIZE];
    size_t length;
    if (!name_folder(path, &length)) return false;
    snprintf(made, sizeof made, "%.*s", (int)length, path);
    if (length && mkdir(made, 0700) != 0 && errno != EEXIST) return false;
    while (path[length]) {
        length += 1 + strcspn(path + length + 1, "/");
        snprintf(made, sizeof made, "%.*s", (int)length, path);
        if (!own_folder(made)) return false;
    }
    return true;
}

bool weft__gpu_cache_folder(char path[WEFT_GPU_CACHE_PATH]) {
    size_t above;
    return name_folder(path, &above);
}

bool weft__gpu_cache_wanted(void) {
    char path[PATH_SIZE];
    return folder(path);
}

static bool file_of(weft_hash key, char path[PATH_SIZE]) {
    char base[PATH_SIZE], name[40];
    snprintf(name, sizeof name, "%016" PRIx64 "%016" PRIx64, key.a, key.b);
    return folder(base) && join(path, base, name);
}

/* ---- reading and writing ---- */

static bool read_all(int file, void *to, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = read(file, (char *)to + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static bool write_all(int file, const void *from, size_t bytes) {
    for (size_t done = 0; done < bytes;) {
        const ssize_t n = write(file, (const char *)from + done, bytes - done);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        done += (size_t)n;
    }
    return true;
}

static file_head head_of(weft_hash key, const void *bytes, size_t size) {
    weft_hash sum;
    weft__hash_init(&sum);
    weft__hash_bytes(&sum, bytes, size);
    file_head head = {.key = {key.a, key.b}, .bytes = size, .sum = {sum.a, sum.b}};
    memcpy(head.magic, magic, sizeof magic);
    return head;
}

bool weft__gpu_cache_load(weft_context *ctx, weft_hash key, void **bytes, size_t *size) {
    char path[PATH_SIZE];
    file_head head;
    struct stat s;
    if (!file_of(key, path)) return false;
    const int file =
        open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK); /* opening a pipe must not block */
    if (file < 0) return false;
    void *read = NULL;
    bool whole = fstat(file, &s) == 0 && S_ISREG(s.st_mode) && s.st_uid == geteuid() &&
                 (s.st_mode & 022) == 0 && read_all(file, &head, sizeof head) && head.bytes <= BYTES_MOST &&
                 (uint64_t)s.st_size == sizeof head + head.bytes;
    if (whole)
        whole = (read = weft__alloc(ctx, (size_t)head.bytes)) && read_all(file, read, (size_t)head.bytes);
    close(file);
    if (whole) {
        const file_head right = head_of(key, read, (size_t)head.bytes);
        whole = memcmp(&right, &head, sizeof head) == 0;
    }
    if (!whole) {
        weft__free(ctx, read);
        weft__log(ctx, WEFT_LOG_INFO, "%s is damaged: its kernels are compiled again", path);
        return false;
    }
    *bytes = read;
    *size = (size_t)head.bytes;
    return true;
}

void weft__gpu_cache_store(weft_context *ctx, weft_hash key, const void *bytes, size_t size) {
    char path[PATH_SIZE], part[PATH_SIZE + 32];
    if (size > BYTES_MOST || !file_of(key, path)) return;
    snprintf(part, sizeof part, "%s.%ld.part", path, (long)getpid());
    const int file = open(part, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0) return;
    const file_head head = head_of(key, bytes, size);
    bool done = write_all(file, &head, sizeof head) && write_all(file, bytes, size);
    done = close(file) == 0 && done;
    if (done && rename(part, path) == 0) return;
    weft__log(ctx, WEFT_LOG_INFO, "%s cannot be written: %s; its kernels will be compiled again", path,
              strerror(errno));
    unlink(part);
}
