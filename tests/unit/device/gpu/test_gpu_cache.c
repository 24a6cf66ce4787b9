/* src/device/cache.c: what was stored comes back, damage is found, and folders and files are the
 * owner's alone. */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "device/cache.h"
#include "unit/io_scratch.h"

static const weft_hash key = {0x0123456789abcdef, 42};
static const char name[] = "0123456789abcdef000000000000002a";

static bool loads(const char *wanted) {
    void *bytes = NULL;
    size_t size = 0;
    if (!weft__gpu_cache_load(NULL, key, &bytes, &size)) return false;
    const bool same = size == strlen(wanted) && memcmp(bytes, wanted, size) == 0;
    weft__free(NULL, bytes);
    assert_true(same);
    return true;
}

static int mode_of(const char *path) {
    struct stat s;
    return stat(path, &s) == 0 ? (int)(s.st_mode & 0777) : -1;
}

static void test_there_and_back(void **state) {
    const char *base = scratch;
    char path[5000];
    (void)state;
    unsetenv("WEFT_KERNEL_CACHE");
    setenv("XDG_CACHE_HOME", base, 1);
    assert_false(loads(""));
    assert_true(weft__gpu_cache_wanted());
    weft__gpu_cache_store(NULL, key, "compiled", 8);
    assert_true(loads("compiled"));
    weft__gpu_cache_store(NULL, key, "compiled anew", 13); /* replaces it */
    assert_true(loads("compiled anew"));
    snprintf(path, sizeof path, "%s/weft", base);
    assert_int_equal(mode_of(path), 0700);
    snprintf(path, sizeof path, "%s/weft/kernels", base);
    assert_int_equal(mode_of(path), 0700);
    snprintf(path, sizeof path, "%s/weft/kernels/%s", base, name);
    assert_int_equal(mode_of(path), 0600);
    assert_int_equal(chmod(path, 0622), 0); /* others could have written it */
    assert_false(loads("compiled anew"));
}

static void test_damage(void **state) {
    const char *base = scratch;
    char path[5000];
    (void)state;
    setenv("WEFT_KERNEL_CACHE", base, 1);
    snprintf(path, sizeof path, "%s/%s", base, name);
    weft__gpu_cache_store(NULL, key, "compiled", 8);
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    for (off_t at = 0; at < s.st_size; at++) { /* every byte counts */
        const int file = open(path, O_RDWR);
        char byte;
        assert_int_equal(pread(file, &byte, 1, at), 1);
        byte ^= 4;
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
        assert_false(loads("compiled"));
        byte ^= 4;
        assert_int_equal(pwrite(file, &byte, 1, at), 1);
        close(file);
    }
    assert_true(loads("compiled"));
    assert_int_equal(truncate(path, s.st_size - 1), 0);
    assert_false(loads("compiled"));
    assert_int_equal(truncate(path, 3), 0);
    assert_false(loads("compiled"));
}

static void test_where_it_may_not(void **state) {
    const char *base = scratch;
    char path[5000];
    (void)state;
    setenv("WEFT_KERNEL_CACHE", "off", 1);
    assert_false(weft__gpu_cache_wanted());
    weft__gpu_cache_store(NULL, key, "compiled", 8);
    assert_false(loads("compiled"));
    setenv("WEFT_KERNEL_CACHE", base, 1);
    assert_int_equal(chmod(base, 0777), 0); /* anybody could put kernels there */
    assert_false(weft__gpu_cache_wanted());
    assert_int_equal(chmod(base, 0700), 0);
    assert_true(weft__gpu_cache_wanted());
    unsetenv("WEFT_KERNEL_CACHE");
    setenv("XDG_CACHE_HOME", "relative", 1); /* the specification: ignore it */
    snprintf(path, sizeof path, "%s/home", base);
    assert_int_equal(mkdir(path, 0700), 0);
    setenv("HOME", path, 1);
    assert_true(weft__gpu_cache_wanted());
    snprintf(path, sizeof path, "%s/home/.cache/weft/kernels", base);
    assert_int_equal(mode_of(path), 0700);
    unsetenv("HOME");
    assert_false(weft__gpu_cache_wanted());
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_there_and_back, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_damage, scratch_setup, scratch_teardown),
        cmocka_unit_test_setup_teardown(test_where_it_may_not, scratch_setup, scratch_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
