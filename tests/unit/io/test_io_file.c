/* src/io/file.c and gzip.c: whole files, compressed or not; truncated, damaged and too large files. */
#include <fcntl.h>
#include <sys/stat.h>

#include "unit/data/data_util.h"

#define BOMB ((size_t)192 << 20)
static uint8_t packed[1 << 20];
static const char text[] = "To be, or not to be, that is the question:\n";

static void test_plain(void **state) {
    (void)state;
    char path[64];
    weft_bytes b;
    temporary_file(path, text, sizeof text - 1);
    assert_int_equal(weft_read_file(NULL, path, 0, &b), WEFT_OK);
    assert_int_equal(b.size, sizeof text - 1);
    assert_string_equal((char *)b.data, text);
    weft_bytes_free(NULL, &b);
    assert_null(b.data);
    expect_message(weft_read_file(NULL, path, 10, &b), WEFT_ERR_FORMAT, path, "at most 10", NULL);
    unlink(path);
    expect_message(weft_read_file(NULL, path, 0, &b), WEFT_ERR_IO, path, "No such file", NULL);
    temporary_file(path, "", 0);
    assert_int_equal(weft_read_file(NULL, path, 0, &b), WEFT_OK);
    assert_int_equal(b.size, 0);
    weft_bytes_free(NULL, &b);
    unlink(path);
}

static void test_not_a_file(void **state) {
    (void)state;
    char path[64];
    weft_bytes b;
    expect_message(weft_read_file(NULL, NULL, 0, &b), WEFT_ERR_ARGUMENT, "NULL", NULL);
    expect_message(weft_read_file(NULL, "/tmp", 0, &b), WEFT_ERR_IO, "/tmp", "this is a folder", NULL);
    temporary_file(path, "", 0);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    expect_message(weft_read_file(NULL, path, 0, &b), WEFT_ERR_IO, "this is a pipe or a device",
                   NULL); /* without waiting for a writer */
    unlink(path);
}

static void test_gzip(void **state) {
    (void)state;
    size_t n = pack(text, sizeof text - 1, packed, sizeof packed);
    memcpy(packed + n, packed, n); /* two members are one file, as in gzip */
    char path[64];
    weft_bytes b;
    temporary_file(path, packed, 2 * n);
    assert_int_equal(weft_read_file(NULL, path, 0, &b), WEFT_OK);
    assert_int_equal(b.size, 2 * (sizeof text - 1));
    assert_memory_equal(b.data + sizeof text - 1, text, sizeof text); /* the NUL is counted */
    weft_bytes_free(NULL, &b);
    expect_message(weft_read_file(NULL, path, 2 * sizeof text - 3, &b), WEFT_ERR_FORMAT, path, "more than 85",
                   NULL);
    assert_int_equal(weft_read_file(NULL, path, 2 * sizeof text - 2, &b), WEFT_OK);
    weft_bytes_free(NULL, &b);
    unlink(path);
}

/* Every truncation and every changed byte is refused, except in header fields that carry no data. */
static void test_gzip_damaged(void **state) {
    (void)state;
    size_t n = pack(text, sizeof text - 1, packed, sizeof packed);
    weft_bytes b;
    for (size_t cut = 2; cut < n; cut++) {
        expect_message(weft__gunzip(NULL, packed, cut, "f.gz", NULL, 0, &b), WEFT_ERR_FORMAT, "f.gz",
                       "cut off", NULL);
    }
    for (size_t i = 10; i < n; i++) {
        packed[i] ^= 0x10;
        expect_message(weft__gunzip(NULL, packed, n, "f.gz", NULL, 0, &b), WEFT_ERR_FORMAT, "f.gz", NULL);
        packed[i] ^= 0x10;
    }
    memcpy(packed + n, "junk", 4);
    char byte[32];
    snprintf(byte, sizeof byte, "byte %zu: 4 bytes after", n);
    expect_message(weft__gunzip(NULL, packed, n + 4, "f.gz", NULL, 0, &b), WEFT_ERR_FORMAT, byte, NULL);
    memset(packed + n, 0, 1);
    expect_message(weft__gunzip(NULL, packed, n + 1, "f.gz", NULL, 0, &b), WEFT_ERR_FORMAT, "1 bytes after",
                   NULL);
}

static weft_status declares(weft_context *ctx, const uint8_t *head, size_t head_size, const char *name,
                            uint64_t *total) {
    (void)ctx, (void)head, (void)head_size, (void)name;
    *total = BOMB;
    return WEFT_OK;
}

/* A decompression bomb is refused as soon as its output is too large for the input read so far, not at the
 * end. */
static void test_gzip_bomb(void **state) {
    (void)state;
    uint8_t *zeros = calloc(1, BOMB);
    size_t n = pack(zeros, BOMB, packed, sizeof packed);
    free(zeros);
    counting c;
    weft_context ctx = context_with(&c);
    weft_bytes b;
    for (size_t member = 1; member < 5; member++) memcpy(packed + member * n, packed, n); /* 1 GiB of 1 MB */
    assert_int_equal(weft__gunzip(&ctx, packed, 5 * n, "f.gz", NULL, 0, &b), WEFT_ERR_FORMAT);
    const char *byte = strstr(weft_last_error(&ctx), "byte ");
    assert_true(byte && strtoul(byte + 5, NULL, 10) < n / 2);
    assert_non_null(strstr(weft_last_error(&ctx), "unpack it first"));
    assert_true(c.largest <= 2 * (((size_t)64 << 20) + 5 * n * 32));
    assert_int_equal(c.live, 0);
    c.largest = 0; /* a too large declared size is refused before memory is allocated */
    assert_int_equal(weft__gunzip(&ctx, packed, n, "f.gz", declares, 0, &b), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(&ctx), "unpack it first"));
    assert_true(c.largest < 1 << 16);
    assert_int_equal(weft__gunzip(&ctx, packed, n, "f.gz", NULL, BOMB, &b), WEFT_OK); /* the caller's limit */
    assert_int_equal(b.size, BOMB);
    weft_bytes_free(&ctx, &b);
    assert_int_equal(weft__gunzip(&ctx, packed, n, "f.gz", NULL, BOMB - 1, &b), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(&ctx), "raise the limit"));
    assert_int_equal(c.live, 0);
}

/* A wrong size at the end of the stream is only a hint. It must neither cost memory nor truncate the
 * result. */
static void test_gzip_many_members(void **state) {
    (void)state;
    size_t n = 0, count = 500;
    for (size_t i = 0; i < count; i++)
        n += pack(text, i % 7 ? sizeof text - 1 : 0, packed + n, sizeof packed - n);
    weft_bytes b;
    assert_int_equal(weft__gunzip(NULL, packed, n, "f.gz", NULL, 0, &b), WEFT_OK);
    assert_int_equal(b.size, (count - (count + 6) / 7) * (sizeof text - 1));
    weft_bytes_free(NULL, &b);
}

static weft_status unpack(weft_context *ctx) {
    weft_bytes b;
    size_t n = pack(text, sizeof text - 1, packed, sizeof packed);
    n += pack(text, sizeof text - 1, packed + n, sizeof packed - n);
    weft_status status = weft__gunzip(ctx, packed, n, "f.gz", NULL, 0, &b);
    weft_bytes_free(ctx, &b);
    return status;
}

static void test_out_of_memory(void **state) {
    (void)state;
    torture(unpack);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),        cmocka_unit_test(test_not_a_file),
        cmocka_unit_test(test_gzip),         cmocka_unit_test(test_gzip_damaged),
        cmocka_unit_test(test_gzip_bomb),    cmocka_unit_test(test_gzip_many_members),
        cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
