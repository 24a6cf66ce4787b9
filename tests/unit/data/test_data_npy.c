/* src/data/npy.c: reading back what was written; NumPy's own bytes; byte orders and Fortran order;
 * malformed headers. */
#include "data_util.h"

static weft_status parse(const void *bytes, size_t size, weft_array *out) {
    return weft__parse_npy(NULL, bytes, size, "f.npy", out);
}

/* Makes a file of version 1 to 3 from a dictionary and elements; returns the size. */
static size_t make(uint8_t *out, int version, const char *dictionary, const void *data, size_t bytes) {
    size_t n = strlen(dictionary), start = version == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    memset(out + 8, 0, 4);
    out[8] = (uint8_t)(n & 0xff);
    out[9] = (uint8_t)(n >> 8);
    memcpy(out + start, dictionary, n);
    if (bytes > 0) memcpy(out + start + n, data, bytes);
    return start + n + bytes;
}

/* The bytes that numpy.save writes for np.arange(6, dtype='<i4').reshape(2, 3). */
static void test_numpy_bytes(void **state) {
    (void)state;
    uint8_t b[256];
    char header[119];
    const uint8_t data[24] = {0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5};
    snprintf(header, sizeof header, "%-117s\n",
             "{'descr': '<i4', 'fortran_order': False, 'shape': (2, 3), }");
    size_t n = make(b, 1, header, data, sizeof data);
    assert_int_equal(n, 128 + 24);
    weft_array a;
    assert_int_equal(parse(b, n, &a), WEFT_OK);
    assert_int_equal(a.dtype, WEFT_I32);
    assert_int_equal(a.rank, 2);
    for (int i = 0; i < 6; i++) assert_int_equal(((int32_t *)a.data)[i], i);
    /* weft writes the same bytes as NumPy */
    char path[64];
    weft_bytes back;
    temporary_file(path, "", 0);
    assert_int_equal(weft_write_npy(NULL, path, &a), WEFT_OK);
    assert_int_equal(weft_read_file(NULL, path, 0, &back), WEFT_OK);
    assert_int_equal(back.size, n);
    assert_memory_equal(back.data, b, n);
    weft_bytes_free(NULL, &back);
    weft_array_free(NULL, &a);
    unlink(path);
}

static void test_round_trip(void **state) {
    (void)state;
    char path[64];
    temporary_file(path, "", 0);
    const int64_t shape[8] = {2, 3, 1, 2, 1, 1, 2, 1};
    for (int dtype = 0; dtype < WEFT_DTYPE_COUNT; dtype++) {
        for (int rank = 0; rank <= 8; rank++) {
            weft_array a, b;
            assert_int_equal(weft_array_new(NULL, (weft_dtype)dtype, rank, shape, &a), WEFT_OK);
            for (size_t i = 0; i < a.bytes; i++)
                ((uint8_t *)a.data)[i] = (uint8_t)(dtype == WEFT_BOOL ? i & 1 : i * 37);
            if (dtype == WEFT_BF16) {
                expect_message(weft_write_npy(NULL, path, &a), WEFT_ERR_DTYPE, path, "bf16", NULL);
            } else {
                assert_int_equal(weft_write_npy(NULL, path, &a), WEFT_OK);
                assert_int_equal(weft_read_npy(NULL, path, &b), WEFT_OK);
                assert_int_equal(b.dtype, a.dtype);
                assert_int_equal(b.rank, rank);
                assert_int_equal(b.bytes, a.bytes);
                assert_memory_equal(b.shape, a.shape, sizeof a.shape);
                assert_memory_equal(b.data, a.data, a.bytes);
                weft_array_free(NULL, &b);
            }
            weft_array_free(NULL, &a);
        }
    }
    unlink(path);
}

static void test_orders(void **state) {
    (void)state;
    uint8_t b[512];
    weft_array a;
    const uint8_t big[] = {0, 1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6};
    size_t n = make(b, 2, "{'descr': '>i2', 'fortran_order': True, 'shape': (2, 3)}\n", big, sizeof big);
    const int16_t want[] = {1, 3, 5, 2, 4, 6};
    assert_int_equal(parse(b, n, &a), WEFT_OK);
    assert_memory_equal(a.data, want, sizeof want);
    weft_array_free(NULL, &a);
    /* (2, 3, 2) column-major: the offset of element (i, j, k) is i + 2 j + 6 k */
    const uint8_t count[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    n = make(b, 3, "{\"shape\":(2,3,2,),\"fortran_order\":True,\"descr\":\"|u1\",}   \n", count,
             sizeof count);
    assert_int_equal(parse(b, n, &a), WEFT_OK);
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 3; j++)
            for (int k = 0; k < 2; k++)
                assert_int_equal(((uint8_t *)a.data)[(i * 3 + j) * 2 + k], i + 2 * j + 6 * k);
    weft_array_free(NULL, &a);
    const uint8_t complex[] = {0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0};
    n = make(b, 1, "{'descr': '>c8', 'fortran_order': False, 'shape': ()}\n", complex, sizeof complex);
    assert_int_equal(parse(b, n, &a), WEFT_OK);
    assert_int_equal(a.rank, 0);
    assert_true(((float *)a.data)[0] == 1.0f && ((float *)a.data)[1] == -2.0f);
    weft_array_free(NULL, &a);
    n = make(b, 1, "{'descr': '<f4', 'fortran_order': True, 'shape': (0, 3)}\n", NULL, 0);
    assert_int_equal(parse(b, n, &a), WEFT_OK);
    assert_int_equal(a.bytes, 0);
    weft_array_free(NULL, &a);
}

static void refuse(const char *dictionary, size_t bytes, const char *word) {
    static const uint8_t zeros[64];
    uint8_t b[1024];
    weft_array a;
    size_t n = make(b, 1, dictionary, zeros, bytes);
    expect_message(parse(b, n, &a), WEFT_ERR_FORMAT, "f.npy: byte", word, NULL);
    assert_null(a.data);
}

#define DICT(descr, order, shape) "{'descr': " descr ", 'fortran_order': " order ", 'shape': " shape "}\n"

static void test_malformed_header(void **state) {
    (void)state;
    refuse(DICT("'|O'", "False", "(1,)"), 8, "objects would run code");
    refuse(DICT("'<f16'", "False", "(1,)"), 16, "dtype \"<f16\" is not read");
    refuse(DICT("'|f4'", "False", "(1,)"), 4, "is not read");
    refuse(DICT("'=f4'", "False", "(1,)"), 4, "is not read");
    refuse(DICT("'<U4'", "False", "(1,)"), 16, "is not read");
    refuse(DICT("'<M8[s]'", "False", "(1,)"), 8, "is not read");
    refuse(DICT("''", "False", "(1,)"), 4, "is not read");
    refuse(DICT("[('a', '<f4')]", "False", "(1,)"), 4, "structures are not read");
    refuse(DICT("'<f4'", "Falsy", "(1,)"), 4, "True or False");
    refuse(DICT("'<f4'", "0", "(1,)"), 4, "True or False");
    refuse(DICT("'<f4'", "False", "(1)"), 4, "(3,)");
    refuse(DICT("'<f4'", "False", "[1]"), 4, "tuple");
    refuse(DICT("'<f4'", "False", "(-1,)"), 4, "a dimension");
    refuse(DICT("'<f4'", "False", "(1L,)"), 4, "','");
    refuse(DICT("'<f4'", "False", "(99999999999999999999,)"), 4, "below 2^63");
    refuse(DICT("'<f4'", "False", "(4294967296, 4294967296)"), 4, "more elements than memory");
    refuse(DICT("'<f4'", "False", "(1,1,1,1,1,1,1,1,1)"), 4, "more than 8 dimensions");
    refuse(DICT("'<f4'", "False", "(2,)"), 4, "cut off");
    refuse(DICT("'<f4'", "False", "(2,)"), 9, "too many bytes");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)}", 4, "newline");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,)} x\n", 4, "newline");
    refuse("{'descr': '<f4', 'fortran_order': False}\n", 4, "shape before here");
    refuse("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, "once");
    refuse("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), 'x': 1}\n", 4, "once");
    refuse("{'descr': '<f4' 'fortran_order': False, 'shape': (1,)}\n", 4, "','");
    refuse("{'descr' '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, "':'");
    refuse("{'de\\x73cr': '<f4', 'fortran_order': False, 'shape': (1,)}\n", 4, "key in quotes");
    refuse("{'descr': __import__('os').system('true')}\n", 4, "string such as");
    refuse("", 4, "'{'");
}

static void test_malformed_start(void **state) {
    (void)state;
    uint8_t b[256];
    weft_array a;
    const uint8_t two[] = {0, 1};
    size_t n = make(b, 1, DICT("'|b1'", "False", "(2,)"), two, 2);
    for (size_t cut = 0; cut < n; cut++)
        expect_message(parse(b, cut, &a), WEFT_ERR_FORMAT, "f.npy: byte", NULL);
    b[n - 1] = 2;
    expect_message(parse(b, n, &a), WEFT_ERR_FORMAT, "a bool is 0 or 1, found 2", NULL);
    assert_null(a.data);
    b[6] = 4;
    expect_message(parse(b, n, &a), WEFT_ERR_FORMAT, "npy version 4.0", NULL);
    b[6] = 1;
    b[9] = 0x28;
    expect_message(parse(b, n, &a), WEFT_ERR_FORMAT, "at most 10000", NULL);
    b[0] = 'P';
    expect_message(parse(b, n, &a), WEFT_ERR_FORMAT, "starts with 93", NULL);
}

static void test_write_refused(void **state) {
    (void)state;
    float one = 1;
    weft_array a = {.dtype = WEFT_F32, .rank = 1, .shape = {1}, .data = &one, .bytes = 4};
    expect_message(weft_write_npy(NULL, "/no/such/folder/f.npy", &a), WEFT_ERR_IO, "/no/such/folder", NULL);
    expect_message(weft_write_npy(NULL, NULL, &a), WEFT_ERR_ARGUMENT, "NULL", NULL);
    a.bytes = 8;
    expect_message(weft_write_npy(NULL, "/tmp/f.npy", &a), WEFT_ERR_ARGUMENT, "do not fit together", NULL);
}

static weft_status parse_fortran(weft_context *ctx) {
    uint8_t b[256];
    const uint8_t data[6] = {0};
    weft_array a;
    size_t n = make(b, 1, DICT("'|u1'", "True", "(2, 3)"), data, sizeof data);
    weft_status status = weft__parse_npy(ctx, b, n, "f.npy", &a);
    weft_array_free(ctx, &a);
    return status;
}

static void test_out_of_memory(void **state) {
    (void)state;
    torture(parse_fortran);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_numpy_bytes),     cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_orders),          cmocka_unit_test(test_malformed_header),
        cmocka_unit_test(test_malformed_start), cmocka_unit_test(test_write_refused),
        cmocka_unit_test(test_out_of_memory)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
