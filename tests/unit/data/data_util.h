/* Shared by the tests of src/data: failing allocations, expected failures, temporary files, real data. */
#ifndef WEFT_TEST_DATA_UTIL_H
#define WEFT_TEST_DATA_UTIL_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>
#include <zlib.h>

#include "data/parse.h"

/* An allocator that counts the blocks in use, and fails at the n-th call. */
typedef struct counting {
    long live, calls, fail_at; /* fail_at < 0: never */
    size_t largest;
} counting;

static inline void *counting_alloc(void *user, void *old, size_t size) {
    counting *c = user;
    if (size == 0) {
        if (old) c->live--;
        free(old);
        return NULL;
    }
    if (size > c->largest) c->largest = size;
    if (c->calls++ == c->fail_at) return NULL;
    void *p = realloc(old, size);
    if (p && !old) c->live++;
    return p;
}

static inline weft_context context_with(counting *c) {
    *c = (counting){.fail_at = -1};
    return (weft_context){.caller.alloc = counting_alloc, .caller.alloc_user = c};
}

/* Checks the status and that the message contains every one of the words (the list ends with NULL). */
static inline void expect_message(weft_status got, weft_status wanted, const char *words, ...) {
    va_list list;
    assert_string_equal(weft_status_name(got), weft_status_name(wanted));
    va_start(list, words);
    for (const char *word = words; word; word = va_arg(list, const char *)) {
        if (!strstr(weft_last_error(NULL), word))
            fail_msg("\"%s\" is not in: %s", word, weft_last_error(NULL));
    }
    va_end(list);
}

/* Makes a new file for each call; remove it with unlink. */
static inline const char *temporary_file(char path[64], const void *data, size_t size) {
    strcpy(path, "/tmp/weft-test-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, data, size), size);
    assert_int_equal(close(fd), 0);
    return path;
}

/* Compresses like gzip; returns the size. */
static inline size_t pack(const void *data, size_t size, uint8_t *out, size_t room) {
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (Bytef *)(uintptr_t)data;
    z.avail_in = (uInt)size;
    z.next_out = out;
    z.avail_out = (uInt)room;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    size_t packed = z.total_out;
    deflateEnd(&z);
    return packed;
}

/* A file in the folder WEFT_TEST_DATA. If it is missing, prints the reason and skips the test. */
static inline const char *real_file(char path[512], const char *name) {
    const char *folder = getenv("WEFT_TEST_DATA");
    if (!folder) {
        printf("skipped: WEFT_TEST_DATA is not set, %s is wanted\n", name);
        skip();
    }
    snprintf(path, 512, "%s/%s", folder, name);
    if (access(path, R_OK) != 0) {
        printf("skipped: no %s\n", path);
        skip();
    }
    return path;
}

/* Runs `parse` once for each allocation, which fails. `parse` must report ERR_OOM and leak nothing. */
static inline void torture(weft_status (*parse)(weft_context *ctx)) {
    counting c;
    weft_context ctx = context_with(&c);
    assert_int_equal(parse(&ctx), WEFT_OK);
    assert_int_equal(c.live, 0);
    long calls = c.calls;
    assert_true(calls > 0);
    for (long n = 0; n < calls; n++) {
        ctx = context_with(&c);
        c.fail_at = n;
        assert_string_equal(weft_status_name(parse(&ctx)), "ERR_OOM");
        assert_int_equal(c.live, 0);
    }
}

#endif
