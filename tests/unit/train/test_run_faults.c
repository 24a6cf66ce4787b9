/* The run folder when other processes or the disk interfere: a second run at the wrong moment, calls that
 * are interrupted or fail, a folder that is moved. The functions below replace some calls of the C library,
 * and each test sets what they do. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sys/syscall.h>

#include "unit/io_scratch.h"
#include "train/run/events.h"
#include "train/run/run_dir.h"

/* ---- replaced functions ---- */

static void (*before_fsync)(void); /* called once, before the next fsync */
static bool signals;               /* every other call is interrupted, and the others write at most 3 bytes */

static bool interrupted(void) {
    static unsigned calls;
    errno = EINTR;
    return signals && ++calls % 2;
}

int fsync(int fd) {
    void (*meddle)(void) = before_fsync;
    before_fsync = NULL;
    if (meddle) meddle();
    return interrupted() ? -1 : (int)syscall(SYS_fsync, fd);
}

ssize_t write(int fd, const void *data, size_t bytes) {
    return interrupted() ? -1 : (ssize_t)syscall(SYS_write, fd, data, signals && bytes > 3 ? 3 : bytes);
}

int renameat(int from_folder, const char *from, int to_folder, const char *to) {
    return interrupted() ? -1 : renameat2(from_folder, from, to_folder, to, 0);
}

int ftruncate(int fd, off_t size) { return interrupted() ? -1 : (int)syscall(SYS_ftruncate, fd, size); }

int unlinkat(int folder, const char *name, int flags) {
    return interrupted() ? -1 : (int)syscall(SYS_unlinkat, folder, name, flags);
}

/* ---- two runs in one folder ---- */

static void another_run(void) {
    weft__run other;
    assert_int_equal(weft__run_create(in_scratch("twice"), "x", true, &other), WEFT_OK);
    assert_int_equal(weft__run_write(&other, "config.yaml", "task: regression\n"), WEFT_OK);
    weft__run_close(&other);
}

/* Another run starts and ends after a new folder was checked and before it is locked. */
static void test_a_run_since_the_first_look(void **state) {
    (void)state;
    weft__run run;
    struct stat before, after;
    before_fsync = another_run;
    assert_int_equal(weft__run_create(in_scratch("twice"), "x", true, &run), WEFT_ERR_ARGUMENT);
    assert_null(before_fsync);
    assert_non_null(strstr(weft_last_error(NULL), "holds a run already"));
    assert_null(run.dir);
    assert_int_equal(stat(in_scratch("twice/metrics.csv"), &before), 0);
    assert_int_equal(weft__run_open(in_scratch("twice"), true, &run), WEFT_OK); /* the lock was released */
    weft__run_close(&run);
    assert_int_equal(stat(in_scratch("twice/metrics.csv"), &after), 0);
    assert_int_equal(before.st_size, after.st_size);
}

/* ---- after a kill ---- */

/* Temporary files of a dead process are removed while the lock is held, and only then. */
static void test_temporaries_are_removed(void **state) {
    (void)state;
    static const char *const places[] = {"", "/samples", "/checkpoints"};
    weft__run run, other;
    char path[64];
    assert_int_equal(weft__run_create(in_scratch("left"), "x", true, &run), WEFT_OK);
    assert_int_equal(weft__run_write(&run, "config.yaml", "task: regression\n"), WEFT_OK);
    assert_int_equal(weft_make_folder(NULL, in_scratch("left/checkpoints")), WEFT_OK);
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        snprintf(path, sizeof path, "left%s/.step-2.txt.77.0123456789abcdef.tmp", places[i]);
        assert_true(spill(in_scratch(path), "half", 4));
    }
    for (int locked = 1; locked >= 0; locked--) {
        weft_status status = weft__run_open(in_scratch("left"), true, &other);
        assert_int_equal(status, locked ? WEFT_ERR_BUSY : WEFT_OK);
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            snprintf(path, sizeof path, "left%s", places[i]);
            assert_int_equal(count_hidden(in_scratch(path)), locked);
        }
        weft__run_close(locked ? &run : &other);
    }
}

/* ---- a folder is moved ---- */

static void test_a_moved_folder(void **state) {
    (void)state;
    weft__run run;
    char now[4200];
    assert_int_equal(weft__run_create(in_scratch("here"), "x", true, &run), WEFT_OK);
    assert_int_equal(weft_make_folder(NULL, in_scratch("there")), WEFT_OK);
    assert_int_equal(rename(in_scratch("here"), in_scratch("there/run")), 0);
    assert_int_equal(weft__run_write(&run, "config.yaml", "task: regression\n"), WEFT_OK);
    assert_int_equal(weft__run_sample(&run, 4, "a text", 6), WEFT_OK);
    assert_int_equal(weft__run_sync(&run), WEFT_OK);
    snprintf(now, sizeof now, "%s", in_scratch("there/run"));
    assert_string_equal(run.dir, now);
    assert_int_equal(access(in_scratch("there/run/samples/step-4.txt"), F_OK), 0);
    assert_int_not_equal(access(in_scratch("here"), F_OK), 0);
    assert_int_equal(weft_make_folder(NULL, in_scratch("here")), WEFT_OK); /* a new folder there */
    assert_int_equal(weft__run_sync(&run), WEFT_OK);
    assert_string_equal(run.dir, now);
    remove_all(now);
    assert_int_equal(weft__run_sample(&run, 5, "a text", 6), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "there/run: the folder of this run was moved or removed"));
    assert_int_equal(weft__run_sync(&run), WEFT_ERR_IO);
    assert_int_equal(weft__run_write(&run, "config.yaml", ""), WEFT_ERR_IO);
    assert_int_not_equal(access(now, F_OK), 0);
    weft__run_close(&run);
}

/* ---- heartbeats ---- */

/* A run updates its heartbeat at most twice a minute, but each time it is due. */
static void test_beats(void **state) {
    (void)state;
    const struct timespec old[2] = {{.tv_sec = 1000}, {.tv_sec = 1000}};
    weft__run run;
    struct stat lock;
    assert_int_equal(weft__run_create(in_scratch("beats"), "x", true, &run), WEFT_OK);
    for (int due = 1; due >= 0; due--) {
        assert_int_equal(utimensat(AT_FDCWD, in_scratch("beats/lock"), old, 0), 0);
        weft__run_beat(&run);
        assert_int_equal(stat(in_scratch("beats/lock"), &lock), 0);
        assert_true((lock.st_mtime > 1000) == due);
    }
    run.beaten -= 31;
    weft__run_beat(&run);
    assert_int_equal(stat(in_scratch("beats/lock"), &lock), 0);
    assert_true(lock.st_mtime > 1000);
    weft__run_close(&run);
}

/* ---- links ---- */

/* The sender of a run folder must not be able to choose which files are removed on this machine. A link to
 * a whole run folder is fine. */
static void test_links(void **state) {
    (void)state;
    static const char *const names[] = {"checkpoints", "samples", "metrics.jsonl"};
    weft__run run;
    char path[64], link[64], mark[64];
    assert_int_equal(weft_make_folder(NULL, in_scratch("elsewhere")), WEFT_OK);
    assert_true(spill(in_scratch("elsewhere/.a.77.0123456789abcdef.tmp"), "x", 1));
    assert_true(spill(in_scratch("elsewhere/step-9.txt"), "x", 1));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        snprintf(path, sizeof path, "linked-%zu", i);
        snprintf(link, sizeof link, "linked-%zu/%s", i, names[i]);
        assert_int_equal(weft_make_folder(NULL, in_scratch(path)), WEFT_OK);
        snprintf(mark, sizeof mark, "linked-%zu/.weft", i);
        assert_true(spill(in_scratch(mark), "weft run 1\n", 11));
        assert_int_equal(symlink(i < 2 ? "../elsewhere" : "../elsewhere/step-9.txt", in_scratch(link)), 0);
        assert_int_equal(weft__run_create(in_scratch(path), "x", true, &run), WEFT_ERR_IO);
        assert_non_null(strstr(weft_last_error(NULL), names[i]));
        assert_non_null(strstr(weft_last_error(NULL), "symbolic link"));
    }
    assert_int_equal(count_hidden(in_scratch("elsewhere")), 1);
    assert_int_equal(access(in_scratch("elsewhere/step-9.txt"), F_OK), 0);
    assert_int_equal(unlink(in_scratch("linked-0/checkpoints")), 0);
    assert_int_equal(symlink("linked-0", in_scratch("whole")), 0);
    assert_int_equal(weft_make_folder(NULL, in_scratch("linked-0/checkpoints")), WEFT_OK);
    assert_true(spill(in_scratch("linked-0/.a.77.0123456789abcdef.tmp"), "x", 1));
    assert_true(spill(in_scratch("linked-0/checkpoints/.a.77.0123456789abcdef.tmp"), "x", 1));
    assert_int_equal(weft__run_create(in_scratch("whole"), "x", true, &run), WEFT_OK);
    assert_int_equal(count_hidden(in_scratch("linked-0")), 0);
    assert_int_equal(count_hidden(in_scratch("linked-0/checkpoints")), 0);
    weft__run_close(&run);
}

/* ---- signals ---- */

static void assert_same_file(const char *name) {
    char a[64], b[64];
    size_t a_bytes = 0, b_bytes = 0;
    snprintf(a, sizeof a, "calm/%s", name);
    snprintf(b, sizeof b, "signals/%s", name);
    char *one = slurp(in_scratch(a), &a_bytes), *two = slurp(in_scratch(b), &b_bytes);
    assert_non_null(one);
    assert_non_null(two);
    assert_int_equal(a_bytes, b_bytes);
    assert_memory_equal(one, two, a_bytes);
    free(one);
    free(two);
}

static void some_work(const char *dir) {
    weft__run run;
    assert_int_equal(weft__run_create(in_scratch(dir), "x", true, &run), WEFT_OK);
    for (uint64_t step = 1; step <= 4; step++) {
        weft__metrics m = weft__metrics_none(step);
        m.loss = 1.0 / (double)step;
        assert_int_equal(weft__events_append(run.events, &m, true, 1.0), WEFT_OK);
        assert_int_equal(weft__run_metrics(&run, &m), WEFT_OK);
        assert_int_equal(weft__run_log(&run, step, "a line"), WEFT_OK);
    }
    assert_int_equal(weft__run_sync(&run), WEFT_OK);
    assert_int_equal(weft__run_write(&run, "config.yaml", "task: regression\n"), WEFT_OK);
    assert_int_equal(weft__run_sample(&run, 4, "a text", 6), WEFT_OK);
    const weft_checkpoint_state state = {.step = 4};
    const float weight = 1;
    const weft_entry entry = {.name = "w", .dtype = WEFT_F32, .data = &weight};
    for (int i = 0; i < 2; i++)
        assert_int_equal(weft_checkpoint_write(NULL, run.dir, &state, &entry, 1, NULL, 0), WEFT_OK);
    assert_int_equal(weft_checkpoint_mark_best(NULL, run.dir, 4), WEFT_OK);
    weft__run_close(&run);
}

/* The library must handle calls that signals interrupt and writes that are partial. The files must equal
 * those of a run without signals. */
static void test_interrupted_calls(void **state) {
    (void)state;
    static const char *const names[] = {"metrics.jsonl",
                                        "metrics.csv",
                                        "config.yaml",
                                        "samples/step-4.txt",
                                        "checkpoints/step-4/model.safetensors",
                                        "checkpoints/step-4/state.json"};
    struct stat calm, disturbed;
    some_work("calm");
    signals = true;
    some_work("signals");
    signals = false;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) assert_same_file(names[i]);
    assert_int_equal(stat(in_scratch("calm/" WEFT__EVENTS_FILE), &calm), 0); /* only its times differ */
    assert_int_equal(stat(in_scratch("signals/" WEFT__EVENTS_FILE), &disturbed), 0);
    assert_int_equal(calm.st_size, disturbed.st_size);
    assert_int_equal(count_hidden(in_scratch("signals")), 0);
    assert_int_equal(count_hidden(in_scratch("signals/checkpoints")), 0);
    assert_int_equal(count_hidden(in_scratch("signals/samples")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_since_the_first_look),
        cmocka_unit_test(test_temporaries_are_removed),
        cmocka_unit_test(test_a_moved_folder),
        cmocka_unit_test(test_beats),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_interrupted_calls),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
