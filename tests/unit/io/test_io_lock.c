/* The lock of a run folder: it has one holder, whose name others are told; it ends with the holder's
 * process; races. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/wait.h>
#include <time.h>

#include <weft/io.h>

#include "unit/io_scratch.h"

static void test_one_holder(void **state) {
    (void)state;
    weft_run_lock *lock, *other;
    char pid[32];
    assert_false(weft_run_lock_held(scratch));
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_OK);
    assert_true(weft_run_lock_held(scratch));
    assert_int_equal(weft_run_lock_take(NULL, scratch, &other), WEFT_ERR_BUSY);
    assert_null(other);
    snprintf(pid, sizeof pid, "process %ld on ", (long)getpid());
    assert_non_null(strstr(weft_last_error(NULL), pid));
    weft_run_lock_beat(lock);
    weft_run_lock_release(lock);
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_OK);
    weft_run_lock_release(lock);
    weft_run_lock_release(NULL);
    assert_int_equal(weft_run_lock_take(NULL, in_scratch("absent"), &lock), WEFT_ERR_IO);
    assert_int_equal(weft_run_lock_take(NULL, NULL, &lock), WEFT_ERR_ARGUMENT);
}

/* A killed holder leaves the text in the file, but not the lock. */
static void test_killed_holder(void **state) {
    (void)state;
    int ready[2];
    char byte;
    weft_run_lock *lock;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool good = weft_run_lock_take(NULL, scratch, &lock) == WEFT_OK;
        (void)!write(ready[1], good ? "y" : "n", 1);
        for (;;) (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_ERR_BUSY);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_OK);
    weft_run_lock_release(lock);
    (void)close(ready[0]);
    (void)close(ready[1]);
}

/* Holders on another machine: the lock is held while heartbeats arrive. A damaged text names nobody. */
static void test_other_machine(void **state) {
    (void)state;
    const char *path = in_scratch("lock"), *text = "host elsewhere.example\npid 4242\nboot other-boot\n";
    weft_run_lock *lock;
    assert_true(spill(path, text, strlen(text)));
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_ERR_BUSY);
    assert_non_null(strstr(weft_last_error(NULL), "process 4242 on elsewhere.example"));
    struct timespec old[2] = {{.tv_sec = time(NULL) - 1000}, {.tv_sec = time(NULL) - 1000}};
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_OK);
    weft_run_lock_release(lock);
    assert_true(spill(path, "\0\xff garbage", 11));
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_OK);
    weft_run_lock_release(lock);
}

static int64_t beat_of(const char *path) {
    struct stat st;
    return stat(path, &st) == 0 ? (int64_t)time(NULL) - (int64_t)st.st_mtime : INT64_MAX;
}

/* A heartbeat in the future holds the lock for at most three minutes, unless it is renewed. */
static void test_future_beat(void **state) {
    (void)state;
    const char *path = in_scratch("lock"), *text = "host elsewhere.example\npid 4242\nboot other-boot\n";
    const struct timespec day[2] = {{.tv_sec = time(NULL) + 86400}, {.tv_sec = time(NULL) + 86400}};
    const struct timespec minute[2] = {{.tv_sec = time(NULL) + 60}, {.tv_sec = time(NULL) + 60}};
    const struct timespec old[2] = {{.tv_sec = time(NULL) - 200}, {.tv_sec = time(NULL) - 200}};
    weft_run_lock *lock;
    assert_true(spill(path, text, strlen(text)));
    for (int beats = 0; beats < 2; beats++) {
        assert_int_equal(utimensat(AT_FDCWD, path, day, 0), 0);
        assert_true(weft_run_lock_held(scratch));
        assert_true(beat_of(path) < -1000); /* looking at the lock changes nothing */
        assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_ERR_BUSY);
        assert_non_null(strstr(weft_last_error(NULL), "process 4242 on elsewhere.example"));
        assert_non_null(strstr(weft_last_error(NULL), "the clocks of the two machines differ"));
        assert_true(beat_of(path) >= 0 && beat_of(path) < 100);
        assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_ERR_BUSY);
    }
    assert_int_equal(utimensat(AT_FDCWD, path, minute, 0), 0); /* clocks may differ a little */
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_ERR_BUSY);
    assert_true(beat_of(path) < 0);
    assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0); /* no new heartbeat came */
    assert_int_equal(weft_run_lock_take(NULL, scratch, &lock), WEFT_OK);
    weft_run_lock_release(lock);
}

/* Of several processes that start at once exactly one gets the lock. */
static void test_races(void **state) {
    (void)state;
    enum { RACES = 25, RUNNERS = 4 };
    for (int race = 0; race < RACES; race++) {
        pid_t children[RUNNERS];
        int start[2], winners = 0, losers = 0;
        assert_int_equal(pipe(start), 0);
        for (int i = 0; i < RUNNERS; i++) {
            children[i] = fork();
            assert_true(children[i] >= 0);
            if (children[i] == 0) {
                char byte;
                weft_run_lock *lock;
                (void)close(start[1]);
                (void)!read(start[0], &byte, 1); /* returns when the parent closes its end */
                weft_status status = weft_run_lock_take(NULL, scratch, &lock);
                if (status == WEFT_OK)
                    (void)nanosleep(&(struct timespec){.tv_nsec = 200000000}, NULL); /* the others try now */
                _exit(status == WEFT_OK ? 0 : status == WEFT_ERR_BUSY ? 1 : 2);
            }
        }
        (void)close(start[0]);
        (void)close(start[1]);
        for (int i = 0; i < RUNNERS; i++) {
            int result;
            assert_int_equal(waitpid(children[i], &result, 0), children[i]);
            winners += WIFEXITED(result) && WEXITSTATUS(result) == 0;
            losers += WIFEXITED(result) && WEXITSTATUS(result) == 1;
        }
        assert_int_equal(winners, 1);
        assert_int_equal(losers, RUNNERS - 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_holder),    cmocka_unit_test(test_killed_holder),
        cmocka_unit_test(test_other_machine), cmocka_unit_test(test_future_beat),
        cmocka_unit_test(test_races),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
