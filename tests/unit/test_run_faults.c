/* The run folder when others, or the disk, get in the way: a second run at the wrong moment, interrupted and
 * failing calls, a folder that is moved. Some calls of the C library are replaced by those below, which a
 * test tells what to do. */
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

#include "io_scratch.h"
#include "train/run_dir.h"

/* ---- calls that a test may change ---- */

static void (*before_fsync)(void); /* called once */

int fsync(int fd) {
    void (*meddle)(void) = before_fsync;
    before_fsync = NULL;
    if (meddle) meddle();
    return (int)syscall(SYS_fsync, fd);
}

/* ---- two runs, one folder ---- */

static void another_run(void) {
    weft__run other;
    assert_int_equal(weft__run_create(in_scratch("twice"), "x", true, &other), WEFT_OK);
    assert_int_equal(weft__run_write(&other, "config.yaml", "task: regression\n"), WEFT_OK);
    weft__run_close(&other);
}

/* A whole run takes place between the look at a new folder and its lock: while the folder is made. */
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
    assert_int_equal(weft__run_open(in_scratch("twice"), true, &run), WEFT_OK); /* the lock was given back */
    weft__run_close(&run);
    assert_int_equal(stat(in_scratch("twice/metrics.csv"), &after), 0);
    assert_int_equal(before.st_size, after.st_size);
}

/* ---- what a kill leaves behind ---- */

/* Temporary files of a process that is gone are removed with the lock taken, and not without. */
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_run_since_the_first_look),
        cmocka_unit_test(test_temporaries_are_removed),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
