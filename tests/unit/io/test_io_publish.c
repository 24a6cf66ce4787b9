/* Publishing files and folders: content, modes, the order of calls, a failure or a kill at each call, full
 * disks, old temporary files. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* unshare */
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <weft/io.h>

#include "io_faulty.h"
#include "unit/io_scratch.h"

static weft_status write_through(const weft__io *io, const char *path, const char *text) {
    weft__writer *w;
    weft_status status = weft__writer_open(NULL, io, path, strlen(text), &w);
    if (status != WEFT_OK) return status;
    status = weft__writer_write(w, text, strlen(text));
    if (status == WEFT_OK) return weft__writer_commit(w);
    weft__writer_abandon(w);
    return status;
}

static weft_status write_folder(const weft__io *io, const char *name, const char *text) {
    weft__folder *folder;
    weft__writer *w = NULL;
    weft_status status = weft__folder_open(NULL, io, scratch, name, &folder);
    if (status != WEFT_OK) return status;
    for (int i = 0; status == WEFT_OK && i < 2; i++) {
        status = weft__folder_file(folder, i ? "b" : "a", strlen(text), &w);
        if (status == WEFT_OK) status = weft__writer_write(w, text, strlen(text));
        if (status == WEFT_OK) {
            status = weft__writer_commit(w);
        } else {
            weft__writer_abandon(w);
        }
        w = NULL;
    }
    if (status == WEFT_OK) return weft__folder_commit(folder);
    weft__folder_abandon(folder);
    return status;
}

static void assert_content(const char *path, const char *text) {
    size_t bytes = 0;
    char *data = slurp(path, &bytes);
    assert_non_null(data);
    assert_int_equal(bytes, strlen(text));
    assert_memory_equal(data, text, bytes);
    free(data);
}

/* Whether the file has the old or the new content, complete. */
static bool is_one_of(const char *path, const char *x, const char *y) {
    size_t n = 0;
    char *data = slurp(path, &n);
    bool good =
        data && ((n == strlen(x) && memcmp(data, x, n) == 0) || (n == strlen(y) && memcmp(data, y, n) == 0));
    free(data);
    return good;
}

/* ---- tests ---- */

static void test_write_file(void **state) {
    (void)state;
    struct stat st;
    const char *path = in_scratch("plain");
    assert_int_equal(weft_write_file(NULL, path, "first", 5), WEFT_OK);
    assert_content(path, "first");
    const mode_t before = umask(027);
    assert_int_equal(weft_write_file(NULL, path, "second!", 7), WEFT_OK);
    assert_content(path, "second!");
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    umask(before);
    assert_int_equal(weft_write_file(NULL, path, NULL, 0), WEFT_OK);
    assert_content(path, "");
    assert_int_equal(count_hidden(scratch), 0);
}

static void test_bad_paths(void **state) {
    (void)state;
    assert_int_equal(weft_write_file(NULL, in_scratch("none/x"), "a", 1), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "none/x"));
    assert_non_null(strstr(weft_last_error(NULL), "No such file"));
    assert_int_equal(weft_write_file(NULL, in_scratch(""), "a", 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_write_file(NULL, in_scratch(".."), "a", 1), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_write_file(NULL, NULL, "a", 1), WEFT_ERR_ARGUMENT);
    char name[400];
    memset(name, 'n', sizeof name);
    name[sizeof name - 1] = 0;
    assert_int_equal(weft_write_file(NULL, in_scratch(name), "a", 1), WEFT_ERR_ARGUMENT);
}

static void test_order_of_calls(void **state) {
    (void)state;
    faulty f = {.calls = 0};
    weft__io io = faulty_io(&f);
    assert_int_equal(write_through(&io, in_scratch("ordered"), "text"), WEFT_OK);
    assert_string_equal(f.log, "oowscrsc"); /* folder, file, write, fsync, close, rename, fsync folder */
    f = (faulty){.calls = 0};
    assert_int_equal(write_folder(&io, "ordered-folder", "text"), WEFT_OK);
    assert_string_equal(f.log, "omo"
                               "owsc"
                               "owsc"
                               "scrsc");
}

static void test_short_and_interrupted_writes(void **state) {
    (void)state;
    faulty f = {.shorts = true};
    weft__io io = faulty_io(&f);
    assert_int_equal(write_through(&io, in_scratch("short"), "a longer text"), WEFT_OK);
    assert_content(in_scratch("short"), "a longer text");
}

/* Fails every call of a save, with several causes. The file must be the old or the new one, complete. A
 * failure must be reported. No temporary file may stay, unless removing it is what failed. */
static void test_every_call_fails(void **state) {
    (void)state;
    const int errors[] = {EIO, ENOSPC, EACCES, ENOMEM};
    const char *path = in_scratch("every");
    for (size_t e = 0; e < sizeof errors / sizeof *errors; e++)
        for (int at = 1; at <= 8; at++) {
            faulty f = {.at = at, .error = errors[e]};
            weft__io io = faulty_io(&f);
            assert_int_equal(weft_write_file(NULL, path, "old", 3), WEFT_OK);
            weft_status status = write_through(&io, path, "new text");
            assert_true(f.calls >= at);
            assert_true(is_one_of(path, "old", "new text"));
            assert_int_equal(count_hidden(scratch), 0);
            if (at <= 7) {
                assert_int_equal(status, errors[e] == ENOMEM ? WEFT_ERR_OOM : WEFT_ERR_IO);
                assert_non_null(strstr(weft_last_error(NULL), "every"));
                assert_content(path, at < 7 ? "old" : "new text");
            } else {
                assert_int_equal(status, WEFT_OK); /* closing the descriptor of the folder */
            }
        }
}

static void test_every_call_of_a_folder_fails(void **state) {
    (void)state;
    assert_int_equal(write_folder(NULL, "folder", "old"), WEFT_OK);
    for (int at = 1; at <= 40; at++) {
        faulty f = {.at = at, .error = EIO};
        weft__io io = faulty_io(&f);
        weft_status status = write_folder(&io, "folder", "new text");
        bool reached = f.calls >= at;
        assert_true(is_one_of(in_scratch("folder/a"), "old", "new text"));
        assert_true(is_one_of(in_scratch("folder/b"), "old", "new text"));
        if (!reached) assert_int_equal(status, WEFT_OK);
        (void)weft__remove_stale(NULL, scratch);
        assert_int_equal(count_hidden(scratch), 0);
        assert_int_equal(write_folder(NULL, "folder", "old"), WEFT_OK);
    }
}

/* Kills the process at every call. What is visible must be complete, and at most one temporary file may be
 * left to remove. */
static void test_killed_at_every_call(void **state) {
    (void)state;
    int killed = 0;
    assert_int_equal(write_folder(NULL, "folder", "old"), WEFT_OK);
    assert_int_equal(weft_write_file(NULL, in_scratch("file"), "old", 3), WEFT_OK);
    for (int at = 1; at <= 40; at++) {
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            faulty f = {.at = at};
            weft__io io = faulty_io(&f);
            (void)write_through(&io, in_scratch("file"), "new text");
            _exit(write_folder(&io, "folder", "new text") == WEFT_OK ? 0 : 1);
        }
        int result;
        assert_int_equal(waitpid(child, &result, 0), child);
        killed += WIFSIGNALED(result) && WTERMSIG(result) == SIGKILL;
        assert_true(is_one_of(in_scratch("file"), "old", "new text"));
        assert_true(is_one_of(in_scratch("folder/a"), "old", "new text"));
        assert_true(is_one_of(in_scratch("folder/b"), "old", "new text"));
        int hidden = count_hidden(scratch);
        assert_true(hidden <= 1);
        assert_int_equal(weft__remove_stale(NULL, scratch), hidden);
        assert_int_equal(count_hidden(scratch), 0);
    }
    assert_true(killed >= 20);
}

/* A lost reply on NFS: the rename happened, but reports ENOENT. */
static int lossy_rename(void *user, int dir, const char *from, const char *to, unsigned flags) {
    (void)user;
    if (weft__io_system.rename(NULL, dir, from, to, flags) != 0) return -1;
    errno = ENOENT;
    return -1;
}

static void test_lost_reply(void **state) {
    (void)state;
    weft__io io = weft__io_system;
    io.rename = lossy_rename;
    assert_int_equal(write_through(&io, in_scratch("lost"), "text"), WEFT_OK);
    assert_content(in_scratch("lost"), "text");
    assert_int_equal(write_folder(&io, "lost-folder", "text"), WEFT_OK);
    assert_content(in_scratch("lost-folder/b"), "text");
}

/* Where two names cannot be swapped, a folder is replaced by two renames. */
static int swapless_rename(void *user, int dir, const char *from, const char *to, unsigned flags) {
    (void)user;
    if (!(flags & WEFT__IO_SWAP)) return weft__io_system.rename(NULL, dir, from, to, flags);
    errno = ENOSYS;
    return -1;
}

static void test_replace_without_swap(void **state) {
    (void)state;
    weft__io io = weft__io_system;
    io.rename = swapless_rename;
    assert_int_equal(write_folder(&io, "swapless", "old"), WEFT_OK);
    assert_int_equal(write_folder(&io, "swapless", "new"), WEFT_OK);
    assert_content(in_scratch("swapless/a"), "new");
    assert_int_equal(count_hidden(scratch), 0);
}

static void test_stale_names(void **state) {
    (void)state;
    char name[WEFT__TEMP_SIZE];
    assert_true(weft__temp_name("model.safetensors", name));
    assert_true(weft__is_temp_name(name));
    assert_true(weft__is_temp_name(".x.12.0123456789abcdef.tmp"));
    assert_false(weft__is_temp_name(".tmp"));
    assert_false(weft__is_temp_name("x.12.0123456789abcdef.tmp"));
    assert_false(weft__is_temp_name(".x.0123456789abcdef.tmp"));
    assert_false(weft__is_temp_name(".x.12.0123456789abcdeg.tmp"));
    assert_false(weft__is_temp_name("..12.0123456789abcdef.tmp"));
    assert_true(spill(in_scratch(".keep.tmp"), "x", 1));
    assert_true(spill(in_scratch(".gone.7.0123456789abcdef.tmp"), "x", 1));
    assert_int_equal(symlink("/", in_scratch(".link.7.0123456789abcdef.tmp")), 0);
    assert_int_equal(weft__remove_stale(NULL, scratch), 2);
    assert_int_equal(count_hidden(scratch), 1);
    assert_int_equal(unlink(in_scratch(".keep.tmp")), 0);
    assert_int_equal(access("/tmp", F_OK), 0);
}

/* The message names the first call that fails, and removal continues with the rest. */
static void test_remove_fails(void **state) {
    (void)state;
    const int last = 8; /* open, rename, fsync; then unlink, open, two files, the folder; close */
    for (int at = 4; at <= last; at++) {
        faulty f = {.at = at, .error = EIO};
        weft__io io = faulty_io(&f);
        assert_int_equal(write_folder(NULL, "going", "text"), WEFT_OK);
        assert_int_equal(weft__folder_remove(NULL, &io, scratch, "going"), WEFT_ERR_IO);
        assert_non_null(strstr(weft_last_error(NULL), "going: Input/output error"));
        assert_int_equal(access(in_scratch("going"), F_OK), -1);
        assert_int_equal(f.calls, 1 + (at < 6 ? at : last));
        assert_int_equal(weft__remove_stale(NULL, scratch), 1);
    }
}

static void test_make_folder(void **state) {
    (void)state;
    struct stat st;
    assert_int_equal(weft_make_folder(NULL, in_scratch("p/q//r/")), WEFT_OK);
    assert_int_equal(stat(in_scratch("p/q/r"), &st), 0);
    assert_true(S_ISDIR(st.st_mode));
    assert_int_equal(weft_make_folder(NULL, in_scratch("p/q/r")), WEFT_OK);
    assert_true(spill(in_scratch("p/file"), "x", 1));
    assert_int_equal(weft_make_folder(NULL, in_scratch("p/file/under")), WEFT_ERR_IO);
    assert_int_equal(weft_make_folder(NULL, in_scratch("p/file")), WEFT_ERR_IO);
    assert_int_equal(weft_make_folder(NULL, ""), WEFT_ERR_ARGUMENT);
}

/* The file size limit of a process would raise a signal. Weft must check the limit before it writes. */
static void test_file_size_limit(void **state) {
    (void)state;
    const char *path = in_scratch("limited");
    assert_int_equal(weft_write_file(NULL, path, "old", 3), WEFT_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        static char big[5000];
        struct rlimit limit = {4096, 4096};
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0) _exit(2);
        if (weft_write_file(NULL, path, big, sizeof big) != WEFT_ERR_IO) _exit(3);
        if (!strstr(weft_last_error(NULL), "5000 bytes needed")) _exit(4);
        _exit(weft_write_file(NULL, path, big, 4096) == WEFT_OK ? 0 : 5);
    }
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    assert_int_equal(WEXITSTATUS(result), 0);
    assert_int_equal(count_hidden(scratch), 0);
}

/* In a user namespace of its own the child may mount a small file system. */
static bool own_tmpfs(const char *mount_point, const char *options) {
    char users[64], groups[64];
    int u = snprintf(users, sizeof users, "0 %ld 1", (long)getuid());
    int g = snprintf(groups, sizeof groups, "0 %ld 1", (long)getgid());
    if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0 || !spill("/proc/self/setgroups", "deny", 4) ||
        !spill("/proc/self/uid_map", users, (size_t)u) || !spill("/proc/self/gid_map", groups, (size_t)g))
        return false;
    return mount("tmpfs", mount_point, "tmpfs", 0, options) == 0;
}

/* Exit code 99: such a file system cannot be mounted here. */
static void fill_the_disk(const char *mount_point) {
    static char big[400000];
    char path[4200];
    if (!own_tmpfs(mount_point, "size=256k")) _exit(99);
    snprintf(path, sizeof path, "%s/file", mount_point);
    if (weft_write_file(NULL, path, "old", 3) != WEFT_OK) _exit(2);
    if (weft_write_file(NULL, path, big, sizeof big) != WEFT_ERR_IO) _exit(3);
    const char *message = weft_last_error(NULL);
    if (!strstr(message, "400000 bytes needed") || !strstr(message, "are free")) _exit(4);
    if (!is_one_of(path, "old", "old") || count_hidden(mount_point) != 0) _exit(5);
    _exit(weft_write_file(NULL, path, big, 100000) == WEFT_OK ? 0 : 6); /* the space is free again */
}

static void test_full_disk(void **state) {
    (void)state;
    assert_int_equal(weft_make_folder(NULL, in_scratch("mount")), WEFT_OK);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) fill_the_disk(in_scratch("mount"));
    int result;
    assert_int_equal(waitpid(child, &result, 0), child);
    assert_true(WIFEXITED(result));
    if (WEXITSTATUS(result) == 99) {
        print_message("test_full_disk skipped: no user namespace with a tmpfs here\n");
        skip();
    }
    assert_int_equal(WEXITSTATUS(result), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_write_file),           cmocka_unit_test(test_bad_paths),
        cmocka_unit_test(test_order_of_calls),       cmocka_unit_test(test_short_and_interrupted_writes),
        cmocka_unit_test(test_every_call_fails),     cmocka_unit_test(test_every_call_of_a_folder_fails),
        cmocka_unit_test(test_killed_at_every_call), cmocka_unit_test(test_lost_reply),
        cmocka_unit_test(test_replace_without_swap), cmocka_unit_test(test_stale_names),
        cmocka_unit_test(test_remove_fails),         cmocka_unit_test(test_make_folder),
        cmocka_unit_test(test_file_size_limit),      cmocka_unit_test(test_full_disk),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
