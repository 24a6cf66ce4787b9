/* src/data/idx.c: every type, every malformed file, gzip output bounded by the header, MNIST itself. */
#include "data_util.h"

static const uint8_t good[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6};

static weft_status parse(const void *bytes, size_t size, weft_array *out) {
    return weft__parse_idx(NULL, bytes, size, "f.idx", out);
}

static void test_types(void **state) {
    (void)state;
    weft_array a;
    assert_int_equal(parse(good, sizeof good, &a), WEFT_OK);
    assert_int_equal(a.dtype, WEFT_U8);
    assert_int_equal(a.rank, 2);
    assert_int_equal(a.shape[0], 2);
    assert_int_equal(a.shape[1], 3);
    assert_memory_equal(a.data, good + 12, 6);
    assert_int_equal((uintptr_t)a.data % 64, 0);
    weft_array_free(NULL, &a);
    const uint8_t i8[] = {0, 0, 9, 1, 0, 0, 0, 1, 0xff};
    assert_int_equal(parse(i8, sizeof i8, &a), WEFT_OK);
    assert_int_equal(*(int8_t *)a.data, -1);
    weft_array_free(NULL, &a);
    const uint8_t i16[] = {0, 0, 0xb, 1, 0, 0, 0, 2, 0x01, 0x02, 0xff, 0xfe};
    assert_int_equal(parse(i16, sizeof i16, &a), WEFT_OK);
    assert_int_equal(((int16_t *)a.data)[0], 0x102);
    assert_int_equal(((int16_t *)a.data)[1], -2);
    weft_array_free(NULL, &a);
    const uint8_t i32[] = {0, 0, 0xc, 1, 0, 0, 0, 1, 0x01, 0x02, 0x03, 0x04};
    assert_int_equal(parse(i32, sizeof i32, &a), WEFT_OK);
    assert_int_equal(*(int32_t *)a.data, 0x1020304);
    weft_array_free(NULL, &a);
    const uint8_t f32[] = {0, 0, 0xd, 1, 0, 0, 0, 1, 0xc0, 0x20, 0, 0};
    assert_int_equal(parse(f32, sizeof f32, &a), WEFT_OK);
    assert_true(*(float *)a.data == -2.5f);
    weft_array_free(NULL, &a);
    const uint8_t f64[] = {0, 0, 0xe, 1, 0, 0, 0, 1, 0x40, 9, 0x21, 0xfb, 0x54, 0x44, 0x2d, 0x18};
    assert_int_equal(parse(f64, sizeof f64, &a), WEFT_OK);
    assert_true(*(double *)a.data == 3.141592653589793);
    weft_array_free(NULL, &a);
    const uint8_t empty[] = {0, 0, 8, 2, 0, 0, 0, 0, 0, 0, 0, 9};
    assert_int_equal(parse(empty, sizeof empty, &a), WEFT_OK);
    assert_int_equal(a.bytes, 0);
    assert_non_null(a.data);
    weft_array_free(NULL, &a);
}

static void refuse(const uint8_t *bytes, size_t size, const char *word) {
    weft_array a;
    expect_message(parse(bytes, size, &a), WEFT_ERR_FORMAT, "f.idx: byte", word, NULL);
    assert_null(a.data);
}

static void test_malformed(void **state) {
    (void)state;
    uint8_t b[64];
    for (size_t cut = 0; cut < sizeof good; cut++) refuse(good, cut, "the file ends");
    memcpy(b, good, sizeof good);
    b[sizeof good] = 0;
    refuse(b, sizeof good + 1, "byte 18: 1 bytes follow");
    b[0] = 1;
    refuse(b, sizeof good, "starts with 00 00, found 01 00");
    const uint8_t swapped[] = {2, 8, 0, 0, 2, 0, 0, 0};
    refuse(swapped, sizeof swapped, "bytes are swapped");
    b[0] = 0;
    b[2] = 0x0a;
    refuse(b, sizeof good, "unknown idx type 0x0a");
    b[2] = 8;
    b[3] = 0;
    refuse(b, sizeof good, "0 dimensions");
    b[3] = 9;
    refuse(b, sizeof good, "9 dimensions");
    memset(b, 0xff, sizeof b);
    memcpy(b, "\0\0\x0e\x08", 4);
    refuse(b, sizeof b, "more elements than memory can hold");
}

static void test_gzip_is_bounded(void **state) {
    (void)state;
    uint8_t packed[8192], b[4096] = {0, 0, 8, 1, 0, 0, 0x0f, 0xf8}; /* 8 + 4088 bytes */
    char path[64];
    weft_array a;
    size_t n = pack(b, sizeof b, packed, sizeof packed);
    temporary_file(path, packed, n);
    assert_int_equal(weft_read_idx(NULL, path, &a), WEFT_OK);
    assert_int_equal(a.bytes, 4088);
    weft_array_free(NULL, &a);
    unlink(path);
    b[7] = 0xf7; /* one byte more than the header declares */
    n = pack(b, sizeof b, packed, sizeof packed);
    temporary_file(path, packed, n);
    expect_message(weft_read_idx(NULL, path, &a), WEFT_ERR_FORMAT, path, "more than the 4095 bytes", NULL);
    unlink(path);
    b[4] = 0x7f; /* two gigabytes compressed to a few bytes: refused before memory is allocated */
    n = pack(b, sizeof b, packed, sizeof packed);
    temporary_file(path, packed, n);
    counting c;
    weft_context ctx = context_with(&c);
    assert_int_equal(weft_read_idx(&ctx, path, &a), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(&ctx), "cannot hold more than"));
    assert_true(c.largest < 1 << 16);
    assert_int_equal(c.live, 0);
    unlink(path);
}

static weft_status parse_good(weft_context *ctx) {
    weft_array a;
    weft_status status = weft__parse_idx(ctx, good, sizeof good, "f.idx", &a);
    weft_array_free(ctx, &a);
    return status;
}

static void test_out_of_memory(void **state) {
    (void)state;
    torture(parse_good);
}

static void check_images(const char *folder, const char *part, int64_t count) {
    char path[512], name[128];
    weft_array images, labels;
    snprintf(name, sizeof name, "%s/%s-images-idx3-ubyte.gz", folder, part);
    assert_int_equal(weft_read_idx(NULL, real_file(path, name), &images), WEFT_OK);
    snprintf(name, sizeof name, "%s/%s-labels-idx1-ubyte.gz", folder, part);
    assert_int_equal(weft_read_idx(NULL, real_file(path, name), &labels), WEFT_OK);
    assert_int_equal(images.rank, 3);
    assert_int_equal(images.shape[0], count);
    assert_int_equal(images.shape[1], 28);
    assert_int_equal(images.shape[2], 28);
    assert_int_equal(labels.rank, 1);
    assert_int_equal(labels.shape[0], count);
    int64_t seen[256] = {0};
    for (int64_t i = 0; i < count; i++) seen[((uint8_t *)labels.data)[i]]++;
    for (int i = 0; i < 10; i++) assert_true(seen[i] > count / 20);
    for (int i = 10; i < 256; i++) assert_int_equal(seen[i], 0);
    weft_array_free(NULL, &images);
    weft_array_free(NULL, &labels);
}

static void test_fashion_mnist(void **state) {
    (void)state;
    check_images("fashion-mnist", "train", 60000);
    check_images("fashion-mnist", "t10k", 10000);
}

static void test_mnist(void **state) {
    (void)state;
    check_images("mnist", "train", 60000);
    check_images("mnist", "t10k", 10000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),           cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_gzip_is_bounded), cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_fashion_mnist),   cmocka_unit_test(test_mnist)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
