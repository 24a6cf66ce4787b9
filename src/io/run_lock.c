/* Lets only one process at a time use a run folder. The kernel keeps the lock (an open file description
 * lock), so the lock ends when the process ends, however it ends. The text in the lock file names the
 * holder.
 *
 * Locks of file systems that several machines share are not reliable. A holder on another machine
 * therefore touches the lock file regularly (the beat), and counts as alive while it does.
 *
 * Must not know: what is in the folder, except temporary files of crashed processes. Read next: publish.h. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* F_OFD_SETLK */
#endif
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weft/io.h>

#include "io/checkpoint.h"

#define BEAT_SECONDS 180 /* a holder on another machine is gone after this much silence */
#define HOLDER_SIZE  512

struct weft_run_lock {
    weft_context *ctx;
    int fd;
};

typedef struct holder {
    char host[256], boot[64];
    long pid;
} holder;

/* ---- who holds it ---- */

static holder myself(void) {
    holder h = {.pid = (long)getpid()};
    if (gethostname(h.host, sizeof h.host - 1) != 0 || !h.host[0]) snprintf(h.host, sizeof h.host, "unknown");
    snprintf(h.boot, sizeof h.boot, "-");
    int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
    if (fd < 0) return h;
    char text[64] = "";
    ssize_t n = read(fd, text, sizeof text - 1);
    (void)close(fd);
    if (n > 0) {
        text[strcspn(text, "\n ")] = 0;
        if (text[0]) memcpy(h.boot, text, sizeof text);
    }
    return h;
}

/* Reads "host HOST\npid PID\nboot BOOT\n". Returns false for anything else, such as an empty file. */
static bool read_holder(int fd, holder *h) {
    char text[HOLDER_SIZE];
    ssize_t n;
    do n = pread(fd, text, sizeof text - 1, 0);
    while (n < 0 && errno == EINTR);
    if (n <= 0) return false;
    text[n] = 0;
    memset(h, 0, sizeof *h);
    /* 18 digits cannot overflow a long. NOLINTNEXTLINE(cert-err34-c) */
    int found = sscanf(text, "host %255s\npid %18ld\nboot %63s", h->host, &h->pid, h->boot);
    return found == 3 && h->pid > 0;
}

static weft_status write_holder(weft_context *ctx, const char *run, int fd, const holder *h) {
    char text[HOLDER_SIZE];
    int n = snprintf(text, sizeof text, "host %s\npid %ld\nboot %s\n", h->host, h->pid, h->boot);
    if (weft__truncate(fd, 0) != 0) return weft__fail_io(ctx, "write the lock of", run, errno);
    return weft__write_all(ctx, fd, "the lock of a run folder", text, (size_t)n);
}

/* ---- taking ---- */

/* Returns the seconds since the holder touched the file. The result is negative if the clock of the
 * holder's machine is ahead. */
static int64_t silence(int fd) {
    struct stat st;
    return fstat(fd, &st) == 0 ? (int64_t)time(NULL) - (int64_t)st.st_mtime : BEAT_SECONDS;
}

/* Decides whether the holder named in the file still has the lock. `lock` is the result of weft__try_lock.
 * - If this kernel granted the lock and ran the holder too, the holder is gone.
 * - After a reboot of this machine the holder is gone.
 * - Otherwise only the text helps. A process of this machine is looked up by its number. A process of
 *   another machine, or of another container, is alive while it beats. */
static bool still_held(int fd, const holder *h, const holder *me, int lock) {
    bool same_host = strcmp(h->host, me->host) == 0;
    bool same_kernel = strcmp(h->boot, me->boot) == 0 && strcmp(h->boot, "-") != 0;
    if (lock == WEFT__LOCK_TAKEN && (same_kernel || same_host)) return false;
    if (same_host && !same_kernel) return false;
    if (same_host) return h->pid == me->pid || kill((pid_t)h->pid, 0) == 0 || errno == EPERM;
    return silence(fd) < BEAT_SECONDS;
}

static weft_status busy(weft_context *ctx, const char *run, const holder *h, bool known) {
    if (!known)
        return weft__fail(ctx, WEFT_ERR_BUSY,
                          "%s is in use by another process: wait for it, or use another run folder", run);
    return weft__fail(ctx, WEFT_ERR_BUSY,
                      "%s is in use by process %ld on %s: wait for it, or use another run folder", run,
                      h->pid, h->host);
}

/* Handles a beat far in the future. Such a beat says nothing, and would keep the lock until that time. The
 * file gets the current time instead: a live holder soon beats again, and otherwise the lock is free after
 * BEAT_SECONDS. */
static weft_status distrust(weft_context *ctx, const char *run, int fd, const holder *h) {
    (void)futimens(fd, NULL);
    return weft__fail(ctx, WEFT_ERR_BUSY,
                      "%s is, or was, in use by process %ld on %s: the clocks of the two machines differ; if "
                      "that process is gone, try "
                      "again in %d minutes",
                      run, h->pid, h->host, BEAT_SECONDS / 60);
}

static weft_status run_lock_take(weft_context *ctx, const char *run, int fd) {
    holder other = {.pid = 0}, me = myself();
    int lock = weft__try_lock(fd);
    bool known = read_holder(fd, &other);
    if (lock == WEFT__LOCK_HELD) return busy(ctx, run, &other, known);
    if (known && still_held(fd, &other, &me, lock)) {
        if (silence(fd) <= -BEAT_SECONDS) return distrust(ctx, run, fd, &other);
        return busy(ctx, run, &other, known);
    }
    return write_holder(ctx, run, fd, &me);
}

weft_status weft_run_lock_take(weft_context *ctx, const char *run, weft_run_lock **out) {
    WEFT_NEED(ctx, out);
    *out = NULL;
    WEFT_NEED(ctx, run);
    if (!*run)
        return weft__fail(ctx, WEFT_ERR_ARGUMENT, "weft_run_lock_take: the name of the run folder is empty");
    size_t size = strlen(run) + sizeof "/lock";
    weft_run_lock *l = weft__zalloc(ctx, sizeof *l);
    char *path = weft__alloc(ctx, size);
    char *checkpoints = weft__checkpoint_path(ctx, run, NULL);
    weft_status status = WEFT_OK;
    if (!l || !path || !checkpoints) status = weft__fail_oom(ctx, size, "a lock");
    int fd = -1;
    if (status == WEFT_OK) {
        snprintf(path, size, "%s/lock", run);
        fd = weft__io_system.open(NULL, AT_FDCWD, path,
                                  O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0666);
        status = fd >= 0 ? run_lock_take(ctx, run, fd) : weft__fail_io(ctx, "open", path, errno);
    }
    if (status == WEFT_OK) {
        snprintf(path, size, "%s/.", run); /* the run folder itself may be a link */
        (void)weft__remove_stale(NULL, path);
        (void)weft__remove_stale(NULL, checkpoints);
        l->ctx = ctx;
        l->fd = fd;
        *out = l;
    } else {
        if (fd >= 0) (void)close(fd);
        weft__free(ctx, l);
    }
    weft__free(ctx, path);
    weft__free(ctx, checkpoints);
    return status;
}

bool weft_run_lock_held(const char *run) {
    char path[4096];
    holder other, me = myself();
    if (!run || snprintf(path, sizeof path, "%s/lock", run) >= (int)sizeof path) return false;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK), lock = WEFT__LOCK_NONE;
    if (fd < 0) return false;
#ifdef F_OFD_GETLK
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (fcntl(fd, F_OFD_GETLK, &whole) == 0)
        lock = whole.l_type == F_UNLCK ? WEFT__LOCK_TAKEN : WEFT__LOCK_HELD;
#endif
    bool held = lock == WEFT__LOCK_HELD || (read_holder(fd, &other) && still_held(fd, &other, &me, lock));
    (void)close(fd);
    return held;
}

void weft_run_lock_beat(weft_run_lock *l) {
    if (l) (void)futimens(l->fd, NULL);
}

/* Empties the file first, so that it names nobody. The file stays: if it were removed, two processes could
 * lock two files of the same name. */
void weft_run_lock_release(weft_run_lock *l) {
    if (!l) return;
    (void)weft__truncate(l->fd, 0);
    (void)close(l->fd);
    weft__free(l->ctx, l);
}
