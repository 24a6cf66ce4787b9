/* The folder of a run. Each line is appended with a single write, so that a kill leaves at most one
 * incomplete line at the end. weft__run_truncate removes that line on resume. Must not know: what the numbers
 * mean. Read next: history.c, which reads them back. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <weft/data.h>

#include "base/text.h"
#include "data/parse.h"
#include "io/mark.h"
#include "io/publish.h"
#include "train/config/config.h"
#include "train/run/events.h"
#include "train/run/run_dir.h"

#define PATH_BYTES 4096
#define BEAT_EVERY 30 /* seconds */

const char *weft__number_text(double value, char out[WEFT__NUMBER_TEXT]) {
    bool single = (double)(float)value == value;
    if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(out, WEFT__NUMBER_TEXT, "%.0f", value); /* 20 instead of 2e+01 */
        return out;
    }
    for (int digits = 1; digits <= 17; digits++) {
        float back32 = 0;
        double back64 = 0;
        snprintf(out, WEFT__NUMBER_TEXT, "%.*g", digits, value);
        if (single && weft__parse_f32(out, strlen(out), &back32) == WEFT__NUMBER_OK &&
            (double)back32 == value)
            break;
        if (weft__parse_f64(out, strlen(out), &back64) == WEFT__NUMBER_OK && back64 == value) break;
    }
    return out;
}

/* ---- opening ---- */

static const weft__run closed = {.folder = -1, .metrics = -1, .csv = -1, .log = -1, .events = -1};

static weft_status open_appending(const weft__run *run, const char *name, int *fd) {
    char path[PATH_BYTES];
    if (!weft__join(path, sizeof path, run->dir, name))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", run->dir);
    return weft__open_regular(NULL, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND, path, fd);
}

/* Bytes of a line with all metrics: each has its name, its number and what stands between. */
enum { LINE_BYTES = 64 + WEFT__METRICS * (WEFT__NUMBER_TEXT + 32) };

static bool in_csv(const weft__metric *metric) { return metric->part != WEFT__PART_CARD; }

static weft_status write_csv_header(weft__run *run) {
    char line[LINE_BYTES];
    struct stat info;
    if (fstat(run->csv, &info) != 0) return weft__fail_io(NULL, "access", "metrics.csv", errno);
    if (info.st_size > 0) return WEFT_OK;
    weft_text t = weft__text(line, sizeof line);
    weft__put(&t, "step");
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = &weft__metric_columns[i];
        if (in_csv(metric)) weft__put(&t, ",%s", weft__metric_word(metric->name, run->tokens));
    }
    weft__put(&t, "\n");
    return weft__write_all(NULL, run->csv, "metrics.csv", line, t.length);
}

/* Returns whether the newest checkpoint of a folder is Weft's, as in runs of versions that made no mark. */
static bool has_checkpoint(const char *dir) {
    uint64_t step;
    size_t count = 0;
    char path[PATH_BYTES], name[64];
    if (weft_checkpoint_list(NULL, dir, &step, 1, &count) != WEFT_OK || count == 0) return false;
    snprintf(name, sizeof name, "checkpoints/step-%llu/state.json", (unsigned long long)step);
    return weft__join(path, sizeof path, dir, name) && access(path, F_OK) == 0;
}

/* A run that ends before its mark is written leaves its lock. */
static bool is_lock(const char *name) { return strcmp(name, "lock") == 0; }

weft_status weft__run_refuse(const char *dir) {
    bool found;
    char word[WEFT__SHELL_WORD(PATH_BYTES)], foreign[WEFT__ENTRY_NAME] = "";
    WEFT_TRY(weft__run_find(dir, &found));
    const bool marked = weft__marked(dir, WEFT__RUN_MARK);
    if (!marked) WEFT_TRY(weft__find_foreign(NULL, dir, is_lock, foreign));
    if (found && (marked || has_checkpoint(dir)))
        return weft__fail(
            NULL, WEFT_ERR_ARGUMENT,
            "%s: this folder holds a run already; continue it with: weft resume %s; or choose another --run",
            dir, weft__shell_word(dir, word, sizeof word));
    if (!foreign[0]) return WEFT_OK;
    return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                      "%s: this folder is no run and holds other files, such as %s: choose a new or an empty "
                      "folder for --run",
                      dir, foreign);
}

/* Makes a folder of the run, and removes what a killed process left in it. */
static weft_status take_folder(const weft__run *run, const char *name) {
    char path[PATH_BYTES];
    int fd;
    if (!weft__join(path, sizeof path, run->dir, name))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", run->dir);
    WEFT_TRY(weft_make_folder(NULL, path));
    WEFT_TRY(weft__own_folder(NULL, &weft__io_system, path, &fd));
    close(fd);
    (void)weft__remove_stale(NULL, path);
    return WEFT_OK;
}

/* Locks the folder run->dir and opens its files. If the run is to be `new`, this is checked again under the
 * lock, because another process may have used the folder meanwhile. */
static weft_status run_dir_take(weft__run *run, bool new) {
    WEFT_TRY(weft_run_lock_take(NULL, run->dir, &run->lock));
    if (new) WEFT_TRY(weft__run_refuse(run->dir));
    WEFT_TRY(weft__mark(NULL, run->dir, WEFT__RUN_MARK));
    run->folder = weft__io_system.open(NULL, AT_FDCWD, run->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
    if (run->folder < 0) return weft__fail_io(NULL, "open the folder", run->dir, errno);
    WEFT_TRY(take_folder(run, "checkpoints"));
    WEFT_TRY(take_folder(run, "samples"));
    WEFT_TRY(open_appending(run, "metrics.jsonl", &run->metrics));
    WEFT_TRY(open_appending(run, "metrics.csv", &run->csv));
    WEFT_TRY(open_appending(run, "log.txt", &run->log));
    WEFT_TRY(open_appending(run, WEFT__EVENTS_FILE, &run->events));
    return write_csv_header(run);
}

static weft_status run_dir_start(weft__run *run, const char *dir, bool tokens, bool new) {
    *run = closed;
    run->tokens = tokens;
    run->dir = weft__strdup(NULL, dir);
    if (!run->dir) return weft__fail_oom(NULL, strlen(dir), "the run folder's name");
    weft_status status = run_dir_take(run, new);
    if (status != WEFT_OK) weft__run_close(run);
    return status;
}

weft_status weft__run_numbered(const char *stem, char *path, size_t bytes) {
    WEFT_TRY(weft_make_folder(NULL, WEFT__RUNS_ROOT));
    for (unsigned number = 1; number < 1000000; number++) {
        int wanted = snprintf(path, bytes, "%s/%s-%u", WEFT__RUNS_ROOT, stem, number);
        if (wanted < 0 || (size_t)wanted >= bytes) break;
        if (mkdir(path, 0777) == 0) return WEFT_OK;
        if (errno != EEXIST) return weft__fail_io(NULL, "make", path, errno);
    }
    return weft__fail(NULL, WEFT_ERR_IO, "%s: no number is free for %s; name a folder with --run",
                      WEFT__RUNS_ROOT, stem);
}

weft_status weft__run_create(const char *dir, const char *stem, bool tokens, weft__run *run) {
    char path[PATH_BYTES];
    *run = closed;
    if (!dir) {
        WEFT_TRY(weft__run_numbered(stem, path, sizeof path));
        return run_dir_start(run, path, tokens, true);
    }
    WEFT_TRY(weft__run_refuse(dir));
    WEFT_TRY(weft_make_folder(NULL, dir));
    return run_dir_start(run, dir, tokens, true);
}

weft_status weft__run_open(const char *dir, bool tokens, weft__run *run) {
    *run = closed;
    if (!weft__is_run(dir))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s is not a run folder (it has no config.yaml); 'weft runs' lists the runs", dir);
    if (!weft__marked(dir, WEFT__RUN_MARK) && !has_checkpoint(dir))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT,
                          "%s is not a run folder: it has a config.yaml, but neither Weft's mark (%s) nor a "
                          "checkpoint",
                          dir, WEFT__MARK_FILE);
    return run_dir_start(run, dir, tokens, false);
}

void weft__run_close(weft__run *run) {
    if (!run->dir) return;
    if (run->folder >= 0) close(run->folder);
    if (run->metrics >= 0) close(run->metrics);
    if (run->csv >= 0) close(run->csv);
    if (run->log >= 0) close(run->log);
    if (run->events >= 0) close(run->events);
    weft_run_lock_release(run->lock);
    weft__free(NULL, run->dir);
    *run = closed;
}

/* ---- a folder that moves ---- */

static bool is_at(const char *path, const struct stat *folder) {
    struct stat there;
    return stat(path, &there) == 0 && there.st_dev == folder->st_dev && there.st_ino == folder->st_ino;
}

weft_status weft__run_follow(weft__run *run) {
    char link[64], now[PATH_BYTES];
    struct stat folder;
    if (fstat(run->folder, &folder) != 0) return weft__fail_io(NULL, "access", run->dir, errno);
    if (is_at(run->dir, &folder)) return WEFT_OK;
    snprintf(link, sizeof link, "/proc/self/fd/%d", run->folder);
    const ssize_t size = readlink(link, now, sizeof now - 1);
    now[size > 0 ? size : 0] = '\0';
    if (!is_at(now, &folder))
        return weft__fail(NULL, WEFT_ERR_IO,
                          "%s: the folder of this run was moved or removed while it trained", run->dir);
    char *dir = weft__strdup(NULL, now);
    if (!dir) return weft__fail_oom(NULL, strlen(now) + 1, "the run folder's name");
    weft__free(NULL, run->dir);
    run->dir = dir;
    run->moves++;
    return WEFT_OK;
}

/* ---- appending ---- */

weft_status weft__run_metrics(weft__run *run, const weft__metrics *m) {
    char line[LINE_BYTES], row[LINE_BYTES], number[WEFT__NUMBER_TEXT];
    weft_text json = weft__text(line, sizeof line), csv = weft__text(row, sizeof row);
    weft__put(&json, "{\"step\": %llu", (unsigned long long)m->step);
    weft__put(&csv, "%llu", (unsigned long long)m->step);
    for (int i = 0; i < WEFT__METRICS; i++) {
        const weft__metric *metric = &weft__metric_columns[i];
        const double value = weft__metric_get(m, metric);
        const char *written = isfinite(value) ? weft__number_text(value, number) : "";
        if (isfinite(value))
            weft__put(&json, ", \"%s\": %s", weft__metric_word(metric->name, run->tokens), written);
        if (in_csv(metric)) weft__put(&csv, ",%s", written);
    }
    weft__put(&json, "}\n");
    weft__put(&csv, "\n");
    WEFT_TRY(weft__write_all(NULL, run->metrics, "metrics.jsonl", line, json.length));
    WEFT_TRY(weft__write_all(NULL, run->csv, "metrics.csv", row, csv.length));
    return weft__events_append(run->events, m, run->tokens, (double)time(NULL));
}

void weft__run_beat(weft__run *run) {
    const time_t now = time(NULL);
    if (now >= run->beaten && now - run->beaten < BEAT_EVERY) return;
    run->beaten = now;
    weft_run_lock_beat(run->lock);
}

weft_status weft__run_sync(weft__run *run) {
    int files[] = {run->metrics, run->csv, run->log};
    static const char *const names[] = {"metrics.jsonl", "metrics.csv", "log.txt"};
    weft__run_beat(run);
    for (int i = 0; i < 3; i++)
        if (weft__io_system.sync(NULL, files[i]) != 0) return weft__fail_io(NULL, "flush", names[i], errno);
    return weft__run_follow(run);
}

weft_status weft__run_log(weft__run *run, uint64_t step, const char *fmt, ...) {
    char line[2048], raw[1024], stamp[32];
    time_t now = time(NULL);
    struct tm utc;
    stamp[0] = '\0';
    if (gmtime_r(&now, &utc)) strftime(stamp, sizeof stamp, "%Y-%m-%dT%H:%M:%SZ", &utc);
    int used = snprintf(line, sizeof line, "%s step %llu: ", stamp, (unsigned long long)step);
    va_list args;
    va_start(args, fmt);
    vsnprintf(raw, sizeof raw, fmt, args);
    va_end(args);
    weft__printable(line + used, sizeof line - (size_t)used - 1, raw, strlen(raw), "\n\t");
    for (char *c = line; *c; c++)
        if (*c == '\n') *c = ' '; /* one line per entry: cutting back relies on it */
    strcat(line, "\n");
    return weft__write_all(NULL, run->log, "log.txt", line, strlen(line));
}

weft_status weft__run_write(weft__run *run, const char *name, const char *text) {
    char path[PATH_BYTES];
    WEFT_TRY(weft__run_follow(run));
    if (!weft__join(path, sizeof path, run->dir, name))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", run->dir);
    return weft_write_file(NULL, path, text, strlen(text));
}

weft_status weft__run_sample(weft__run *run, uint64_t step, const char *text, size_t bytes) {
    char name[64], path[PATH_BYTES];
    WEFT_TRY(weft__run_follow(run));
    snprintf(name, sizeof name, "samples/step-%llu.txt", (unsigned long long)step);
    if (!weft__join(path, sizeof path, run->dir, name))
        return weft__fail(NULL, WEFT_ERR_ARGUMENT, "%s: the path is too long", run->dir);
    return weft_write_file(NULL, path, text, bytes);
}

/* ---- cutting back ---- */

/* Reads the number after `mark` in a line of `size` bytes. Returns false if there is none. */
static bool number_after(const char *line, size_t size, const char *mark, uint64_t *out) {
    size_t length = strlen(mark);
    for (size_t i = 0; i + length < size; i++) {
        if (memcmp(line + i, mark, length) != 0) continue;
        uint64_t value = 0;
        size_t digits = 0;
        for (size_t j = i + length; j < size && line[j] >= '0' && line[j] <= '9' && digits < 19;
             j++, digits++)
            value = value * 10 + (uint64_t)(line[j] - '0');
        *out = value;
        return digits > 0;
    }
    return false;
}

/* Cuts a file of lines after the last line that comes before any line of a step above `step`. A line without
 * a step is damaged, and stays if good lines follow. `mark` comes before the step. It is "" for csv, where
 * lines begin with the step and the first line is a header. */
static weft_status cut_file(const weft__run *run, int fd, const char *name, const char *mark, uint64_t step) {
    char path[PATH_BYTES];
    weft_bytes bytes;
    if (!weft__join(path, sizeof path, run->dir, name)) return WEFT_ERR_ARGUMENT;
    WEFT_TRY(weft_read_file(NULL, path, 0, &bytes));
    size_t kept = 0;
    for (size_t begin = 0, end; begin < bytes.size; begin = end) {
        const char *line = (const char *)bytes.data + begin;
        const char *newline = memchr(line, '\n', bytes.size - begin);
        const bool header = begin == 0 && mark[0] == '\0';
        uint64_t at = 0;
        if (!newline) break; /* incomplete last line */
        end = begin + (size_t)(newline - line) + 1;
        const bool found = header || number_after(line, (size_t)(newline - line), mark, &at);
        if (at > step) break;
        if (found) kept = end;
    }
    size_t size = bytes.size;
    weft_bytes_free(NULL, &bytes);
    if (kept < size && (weft__truncate(fd, (off_t)kept) != 0 || weft__io_system.sync(NULL, fd) != 0))
        return weft__fail_io(NULL, "truncate", path, errno);
    return WEFT_OK;
}

static weft_status cut_samples(const weft__run *run, uint64_t step) {
    char folder[PATH_BYTES], path[PATH_BYTES];
    if (!weft__join(folder, sizeof folder, run->dir, "samples")) return WEFT_ERR_ARGUMENT;
    DIR *dir = weft__opendir(folder);
    if (!dir) return weft__fail_io(NULL, "open", folder, errno);
    int error = 0;
    for (const struct dirent *entry; (entry = weft__next_entry(dir, &error));) {
        uint64_t at = 0;
        char own[64]; /* other files are not Weft's */
        (void)number_after(entry->d_name, strlen(entry->d_name), "step-", &at);
        snprintf(own, sizeof own, "step-%llu.txt", (unsigned long long)at);
        const bool later = at > step && strcmp(entry->d_name, own) == 0;
        if (later && weft__join(path, sizeof path, folder, entry->d_name)) unlink(path);
    }
    closedir(dir);
    return error ? weft__fail_io(NULL, "list", folder, error) : WEFT_OK;
}

static weft_status cut_events(const weft__run *run, uint64_t step) {
    char path[PATH_BYTES];
    weft_bytes bytes;
    if (!weft__join(path, sizeof path, run->dir, WEFT__EVENTS_FILE)) return WEFT_ERR_ARGUMENT;
    WEFT_TRY(weft_read_file(NULL, path, 0, &bytes));
    size_t kept = 0, size = bytes.size;
    const weft_status status = weft__events_until(bytes.data, size, step, &kept);
    weft_bytes_free(NULL, &bytes);
    if (status != WEFT_OK) return status;
    if (kept < size && weft__truncate(run->events, (off_t)kept) != 0)
        return weft__fail_io(NULL, "truncate", path, errno);
    return WEFT_OK;
}

weft_status weft__run_truncate(weft__run *run, uint64_t step) {
    WEFT_TRY(cut_file(run, run->metrics, "metrics.jsonl", "\"step\": ", step));
    WEFT_TRY(cut_file(run, run->csv, "metrics.csv", "", step));
    WEFT_TRY(write_csv_header(run));
    WEFT_TRY(cut_file(run, run->log, "log.txt", " step ", step));
    WEFT_TRY(cut_events(run, step));
    return cut_samples(run, step);
}
