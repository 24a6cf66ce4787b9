/* safetensors: reading back what was written, the bytes that the format asks for, and malformed headers. A
 * refusal must name the entry and the field. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <weft/io.h>

#include <sys/resource.h>

#include "unit/io_scratch.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

/* ---- writing and reading back ---- */

static const int64_t shape_23[] = {2, 3}, shape_5[] = {5}, shape_0[] = {4, 0};
static const float weights[6] = {1, -2, 3.5f, 0, 1e-30f, 6};
static const uint8_t bytes5[5] = {1, 2, 3, 4, 5};
static const double scalar = 0.1;

static weft_status read_weights(void *user, size_t offset, void *out, size_t bytes) {
    (*(int *)user)++;
    memcpy(out, (const char *)weights + offset, bytes);
    return WEFT_OK;
}

static void test_round_trip(void **state) {
    (void)state;
    int calls = 0;
    const weft_entry entries[] = {
        {.name = "b.weight",
         .dtype = WEFT_F32,
         .rank = 2,
         .shape = shape_23,
         .read = read_weights,
         .user = &calls},
        {.name = "a", .dtype = WEFT_U8, .rank = 1, .shape = shape_5, .data = bytes5},
        {.name = "z\"\\\n\xc3\xa9", .dtype = WEFT_F64, .data = &scalar},
        {.name = "empty", .dtype = WEFT_BF16, .rank = 2, .shape = shape_0},
    };
    const weft_metadata metadata[] = {{"z", "last"}, {"format", "pt"}};
    const char *path = in_scratch("round.safetensors");
    assert_int_equal(weft_safetensors_write(NULL, path, entries, COUNT(entries), metadata, 2), WEFT_OK);
    assert_int_equal(calls, 1);

    weft_safetensors *f;
    assert_int_equal(weft_safetensors_open(NULL, path, &f), WEFT_OK);
    assert_int_equal(weft_safetensors_count(f), 4);
    weft_entry_info info;
    const char *const names[] = {"a", "b.weight", "empty", "z\"\\\n\xc3\xa9"};
    for (size_t i = 0; i < 4; i++) {
        size_t found = 99;
        assert_true(weft_safetensors_entry(f, i, &info));
        assert_string_equal(info.name, names[i]);
        assert_true(weft_safetensors_find(f, names[i], &found));
        assert_int_equal(found, i);
    }
    assert_false(weft_safetensors_entry(f, 4, &info));
    size_t i;
    assert_false(weft_safetensors_find(f, "none", &i));
    assert_true(weft_safetensors_find(f, "b.weight", &i));
    assert_true(weft_safetensors_entry(f, i, &info));
    assert_int_equal(info.dtype, WEFT_F32);
    assert_int_equal(info.rank, 2);
    assert_int_equal(info.shape[0], 2);
    assert_int_equal(info.shape[1], 3);
    float got[6];
    assert_int_equal(info.bytes, sizeof got);
    assert_int_equal(weft_safetensors_read(f, i, 0, got, sizeof got), WEFT_OK);
    assert_memory_equal(got, weights, sizeof got);
    assert_int_equal(weft_safetensors_read(f, i, 8, got, 4), WEFT_OK);
    assert_memory_equal(got, &weights[2], 4);
    assert_int_equal(weft_safetensors_read(f, i, 8, got, 20), WEFT_ERR_INDEX);
    assert_int_equal(weft_safetensors_read(f, i, SIZE_MAX, got, 2), WEFT_ERR_INDEX);
    assert_int_equal(weft_safetensors_read(f, 4, 0, got, 1), WEFT_ERR_INDEX);
    size_t count;
    const weft_metadata *m = weft_safetensors_metadata(f, &count);
    assert_int_equal(count, 2);
    assert_string_equal(m[0].key, "format");
    assert_string_equal(m[1].value, "last");
    weft_safetensors_close(f);
}

/* Data is aligned, the bytes do not depend on the order of the entries, and wide elements come first. */
static void test_bytes(void **state) {
    (void)state;
    const weft_entry one[] = {
        {.name = "a", .dtype = WEFT_U8, .rank = 1, .shape = shape_5, .data = bytes5},
        {.name = "b", .dtype = WEFT_F32, .rank = 2, .shape = shape_23, .data = weights}};
    const weft_entry two[] = {one[1], one[0]};
    size_t n1 = 0, n2 = 0;
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("1"), one, 2, NULL, 0), WEFT_OK);
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("2"), two, 2, NULL, 0), WEFT_OK);
    char *x = slurp(in_scratch("1"), &n1), *y = slurp(in_scratch("2"), &n2);
    assert_int_equal(n1, n2);
    assert_memory_equal(x, y, n1);
    const char *expected = "{\"a\":{\"dtype\":\"U8\",\"shape\":[5],\"data_offsets\":[24,29]},"
                           "\"b\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]}}";
    size_t header = (8 + strlen(expected) + 63) / 64 * 64;
    assert_int_equal(n1, header + 29);
    assert_int_equal((unsigned char)x[0], header - 8);
    assert_int_equal(x[1], 0);
    assert_memory_equal(x + 8, expected, strlen(expected));
    for (size_t i = 8 + strlen(expected); i < header; i++) assert_int_equal(x[i], ' ');
    assert_memory_equal(x + header, weights, 24);
    assert_memory_equal(x + header + 24, bytes5, 5);
    free(x);
    free(y);
    weft_safetensors *f;
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("none"), NULL, 0, NULL, 0), WEFT_OK);
    assert_int_equal(weft_safetensors_open(NULL, in_scratch("none"), &f), WEFT_OK);
    assert_int_equal(weft_safetensors_count(f), 0);
    weft_safetensors_close(f);
}

static void test_every_dtype(void **state) {
    (void)state;
    static const char zeros[64];
    for (int d = 0; d < WEFT_DTYPE_COUNT; d++) {
        const weft_entry e = {
            .name = "x", .dtype = (weft_dtype)d, .rank = 1, .shape = (int64_t[]){3}, .data = zeros};
        weft_status status = weft_safetensors_write(NULL, in_scratch("dtype"), &e, 1, NULL, 0);
        if (d == WEFT_C128) {
            assert_int_equal(status, WEFT_ERR_UNSUPPORTED);
            assert_non_null(strstr(weft_last_error(NULL), "c128"));
            continue;
        }
        weft_safetensors *f;
        weft_entry_info info;
        assert_int_equal(status, WEFT_OK);
        assert_int_equal(weft_safetensors_open(NULL, in_scratch("dtype"), &f), WEFT_OK);
        assert_true(weft_safetensors_entry(f, 0, &info));
        assert_int_equal(info.dtype, d);
        assert_int_equal(info.bytes, 3 * weft_dtype_size((weft_dtype)d));
        weft_safetensors_close(f);
    }
}

static weft_status refuse_read(void *user, size_t offset, void *out, size_t bytes) {
    (void)user, (void)offset, (void)out, (void)bytes;
    return WEFT_ERR_DEVICE;
}

static void test_refused_entries(void **state) {
    (void)state;
    const int64_t negative[] = {-1}, huge[] = {INT64_MAX, 2, 0};
    const weft_entry bad[] = {
        {.name = NULL, .data = &scalar},
        {.name = "", .data = &scalar},
        {.name = "__metadata__", .data = &scalar},
        {.name = "\xff", .data = &scalar},
        {.name = "x", .dtype = (weft_dtype)77, .data = &scalar},
        {.name = "x", .rank = 9, .shape = shape_23, .data = &scalar},
        {.name = "x", .rank = 1, .data = &scalar},
        {.name = "x", .rank = 1, .shape = negative, .data = &scalar},
        {.name = "x", .rank = 3, .shape = huge, .data = &scalar},
        {.name = "x"},
    };
    assert_int_equal(weft_write_file(NULL, in_scratch("kept"), "kept", 4), WEFT_OK);
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(weft_safetensors_write(NULL, in_scratch("kept"), &bad[i], 1, NULL, 0),
                         WEFT_ERR_ARGUMENT);
    const weft_entry twice[] = {{.name = "t", .dtype = WEFT_F64, .data = &scalar},
                                {.name = "t", .dtype = WEFT_F64, .data = &scalar}};
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("kept"), twice, 2, NULL, 0), WEFT_ERR_ARGUMENT);
    const weft_entry unread = {.name = "t", .dtype = WEFT_F64, .read = refuse_read};
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("kept"), &unread, 1, NULL, 0), WEFT_ERR_DEVICE);
    size_t n = 0;
    char *data = slurp(in_scratch("kept"), &n);
    assert_int_equal(n, 4);
    free(data);
    assert_int_equal(count_hidden(scratch), 0);
}

/* ---- malformed files ---- */

/* Makes a file from this JSON and `data` bytes of data. */
static size_t make_file(char *out, const char *json, size_t data) {
    size_t n = strlen(json);
    for (int i = 0; i < 8; i++) out[i] = (char)(unsigned char)((uint64_t)n >> (8 * i));
    memcpy(out + 8, json, n);
    memset(out + 8 + n, 7, data);
    return 8 + n + data;
}

#define T(dtype, shape, from, to)                                                                            \
    "{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" from "," to "]}"

static const struct {
    const char *json;
    size_t data;
    const char *message; /* NULL: the file is accepted */
} cases[] = {
    {"{}", 0, NULL},
    {"{} \n\t ", 0, NULL},
    {"{\"a\":" T("F32", "[2]", "0", "8") "}", 8, NULL},
    {"{\"a\":" T("F32", "[]", "0", "4") ",\"b\":" T("U8", "[0]", "4", "4") "}", 4, NULL},
    {"{\"b\":" T("U8", "[0]", "0", "0") ",\"a\":" T("F32", "[]", "0", "4") "}", 4, NULL},
    {"{\"__metadata__\":{\"k\":\"v\"}}", 0, NULL},
    {"{}", 1, "entries end at byte 0"},
    {" {}", 0, "not '{'"},
    {"[]", 0, "not '{'"},
    {"{}x", 0, "header:"},
    {"{}{}", 0, "header:"},
    {"{\"a\":" T("F32", "[2]", "0", "8") "}", 7, "'a': data_offsets: reversed, or past the end"},
    {"{\"a\":" T("F32", "[2]", "0", "8") "}", 9, "entries end"},
    {"{\"a\":" T("F32", "[2]", "0", "7") "}", 7, "'a': data_offsets: do not span"},
    {"{\"a\":" T("F32", "[2]", "8", "0") "}", 8, "reversed"},
    {"{\"a\":" T("F32", "[2]", "1", "9") "}", 9, "'a': data_offsets: leaves a gap"},
    {"{\"a\":" T("U8", "[4]", "0", "4") ",\"b\":" T("U8", "[4]", "2", "6") "}", 6,
     "'b': data_offsets: overlaps"},
    {"{\"a\":" T("U8", "[4]", "0", "4") ",\"b\":" T("U8", "[4]", "0", "4") "}", 4, "overlaps"},
    {"{\"a\":" T("U8", "[4]", "0", "4") ",\"b\":" T("U8", "[0]", "2", "2") "}", 4,
     "'b': data_offsets: overlaps"},
    {"{\"a\":" T("U8", "[4]", "0", "4") ",\"b\":" T("U8", "[0]", "0", "0") ",\"c\":" T("U8", "[1]", "5",
                                                                                       "6") "}",
     6, "'c': data_offsets: leaves a gap"},
    {"{\"a\":" T("F9", "[2]", "0", "8") "}", 8, "'a': dtype: 'F9'"},
    {"{\"a\":" T("f32", "[2]", "0", "8") "}", 8, "'a': dtype"},
    {"{\"a\":{\"dtype\":4,\"shape\":[],\"data_offsets\":[0,4]}}", 4, "'a': dtype"},
    {"{\"a\":" T("F32", "[2e0]", "0", "8") "}", 8, "unsigned integer"},
    {"{\"a\":" T("F32", "[2.0]", "0", "8") "}", 8, "unsigned integer"},
    {"{\"a\":" T("F32", "[-2]", "0", "8") "}", 8, "unsigned integer"},
    {"{\"a\":" T("U8", "[0]", "-0", "0") "}", 0, "unsigned integer"},
    {"{\"a\":" T("F32", "[02]", "0", "8") "}", 8, "header:"},
    {"{\"a\":" T("F32", "[99999999999999999999]", "0", "8") "}", 8, "header:"},
    {"{\"a\":" T("F32", "[4611686018427387904,4]", "0", "0") "}", 0,
     "'a': shape: the number of elements overflows"},
    {"{\"a\":" T("F32", "[4611686018427387904,4,0]", "0", "0") "}", 0, "overflows"},
    {"{\"a\":" T("F64", "[2305843009213693952]", "0", "0") "}", 0, "overflows"},
    {"{\"a\":" T("U8", "[1,1,1,1,1,1,1,1,1]", "0", "1") "}", 1, "'a': shape: must be an array of at most 8"},
    {"{\"a\":" T("U8", "[1,1,1,1,1,1,1,1]", "0", "1") "}", 1, NULL},
    {"{\"a\":" T("U8", "{}", "0", "1") "}", 1, "'a': shape"},
    {"{\"a\":" T("U8", "[\"1\"]", "0", "1") "}", 1, "'a': shape"},
    {"{\"a\":" T("U8", "[[1]]", "0", "1") "}", 1, "'a': shape"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1,1]}}", 1,
     "'a': data_offsets: must be two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0]}}", 1, "'a': data_offsets: must be two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":\"x\"}}", 1, "'a': data_offsets: must be two"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1]}}", 1, "'a': fields"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1],\"more\":1}}", 1, "'a': fields"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"shape\":[1],\"data_offsets\":[0,1]}}", 1, "duplicate"},
    {"{\"a\":7}", 0, "'a': fields"},
    {"{\"a\":null}", 0, "'a': fields"},
    {"{\"a\":" T("U8", "[1]", "0", "1") ",\"a\":" T("U8", "[1]", "0", "1") "}", 1, "duplicate"},
    {"{\"a\":" T("U8", "[1]", "0", "1") ",\"\\u0061\":" T("U8", "[1]", "0", "1") "}", 1, "duplicate"},
    {"{\"__metadata__\":{\"k\":\"v\"},\"__metadata__\":{}}", 0, "duplicate"},
    {"{\"__metadata__\":{\"k\":\"v\",\"k\":\"w\"}}", 0, "duplicate"},
    {"{\"__metadata__\":{\"k\":3}}", 0, "'__metadata__': k: must be a string"},
    {"{\"__metadata__\":\"v\"}", 0, "'__metadata__'"},
    {"{\"a\\u0000b\":" T("U8", "[1]", "0", "1") "}", 1, "header:"},
    {"{\"\xff\":" T("U8", "[1]", "0", "1") "}", 1, "header:"},
    {"{\"\\ud800\":" T("U8", "[1]", "0", "1") "}", 1, "header:"},
    {"{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":{\"g\":{\"h\":1}}}}}}}}", 0, "'a': fields"},
    {"{\"a\":{\"b\":{\"c\":{\"d\":{\"e\":{\"f\":{\"g\":{\"h\":{}}}}}}}}}", 0, "nested too deeply"},
    {"{\"a\":{\"shape\":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,"
     "1,1,1,1,1,"
     "1,1,1,1,"
     "1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]}}",
     0, "too many elements"},
    {"{\"a\":", 0, "unexpected end of file"},
    {"{\"a", 0, "end of file in a string"},
    {"{\"a\\", 0, "end of file in a string"},
    {"{]", 0, "header:"},
    {"{}}", 0, "end of file is expected"},
};

static void test_malformed(void **state) {
    (void)state;
    static char buffer[8192];
    for (size_t i = 0; i < COUNT(cases); i++) {
        weft_safetensors *f = NULL;
        size_t n = make_file(buffer, cases[i].json, cases[i].data);
        char *exact = malloc(n); /* a block of exact size, so that the sanitizer finds reads past the end */
        assert_non_null(exact);
        memcpy(exact, buffer, n);
        weft_status status = weft_safetensors_open_memory(NULL, "case", exact, n, &f);
        if (cases[i].message) {
            assert_int_equal(status, WEFT_ERR_FORMAT);
            assert_null(f);
            if (!strstr(weft_last_error(NULL), cases[i].message))
                fail_msg("%s: got '%s', wanted '%s'", cases[i].json, weft_last_error(NULL), cases[i].message);
        } else {
            if (status != WEFT_OK) fail_msg("%s: %s", cases[i].json, weft_last_error(NULL));
        }
        weft_safetensors_close(f);
        free(exact);
    }
}

static void test_lengths(void **state) {
    (void)state;
    char file[64];
    weft_safetensors *f;
    size_t n = make_file(file, "{}", 0);
    for (size_t cut = 0; cut < n; cut++)
        assert_int_equal(weft_safetensors_open_memory(NULL, NULL, file, cut, &f), WEFT_ERR_FORMAT);
    const uint64_t lengths[] = {0, 1, 3, 100000001, INT64_MAX, UINT64_MAX, UINT64_MAX - 7};
    for (size_t i = 0; i < COUNT(lengths); i++) {
        memcpy(file, &lengths[i], 8);
        assert_int_equal(weft_safetensors_open_memory(NULL, NULL, file, n, &f), WEFT_ERR_FORMAT);
        assert_non_null(strstr(weft_last_error(NULL), "header length"));
    }
    const char swapped[] = {0, 0, 0, 0, 0, 0, 0, 2, '{', '}'};
    assert_int_equal(weft_safetensors_open_memory(NULL, NULL, swapped, sizeof swapped, &f), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(NULL), "byte order"));
}

/* Every prefix of a real file is refused, and so is every additional byte. */
static void test_every_truncation(void **state) {
    (void)state;
    const weft_entry e[] = {{.name = "a", .dtype = WEFT_F32, .rank = 2, .shape = shape_23, .data = weights},
                            {.name = "b", .dtype = WEFT_U8, .rank = 1, .shape = shape_5, .data = bytes5}};
    size_t n = 0;
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("cut"), e, 2, NULL, 0), WEFT_OK);
    char *data = slurp(in_scratch("cut"), &n);
    for (size_t cut = 0; cut <= n + 1; cut++) {
        weft_safetensors *f = NULL;
        weft_status status = weft_safetensors_open_memory(NULL, NULL, data, cut, &f);
        assert_int_equal(status, cut == n ? WEFT_OK : WEFT_ERR_FORMAT);
        weft_safetensors_close(f);
    }
    free(data);
}

static void test_files(void **state) {
    (void)state;
    weft_safetensors *f;
    assert_int_equal(weft_safetensors_open(NULL, in_scratch("absent"), &f), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "No such file"));
    assert_int_equal(weft_safetensors_open(NULL, scratch, &f), WEFT_ERR_IO);
    assert_int_equal(mkfifo(in_scratch("fifo"), 0600), 0);
    assert_int_equal(weft_safetensors_open(NULL, in_scratch("fifo"), &f), WEFT_ERR_IO);
    /* a file that shrinks while it is open is a read error, not a crash */
    const weft_entry e = {.name = "a", .dtype = WEFT_F32, .rank = 2, .shape = shape_23, .data = weights};
    float got[6];
    assert_int_equal(weft_safetensors_write(NULL, in_scratch("shrinks"), &e, 1, NULL, 0), WEFT_OK);
    assert_int_equal(weft_safetensors_open(NULL, in_scratch("shrinks"), &f), WEFT_OK);
    assert_int_equal(truncate(in_scratch("shrinks"), 100), 0);
    assert_int_equal(weft_safetensors_read(f, 0, 0, got, sizeof got), WEFT_ERR_IO);
    assert_non_null(strstr(weft_last_error(NULL), "shrank"));
    weft_safetensors_close(f);
}

/* The header is read entry by entry. A tree of the header would take 16 times its size. */
static void test_memory(void **state) {
    (void)state;
#ifdef WEFT_SANITIZED
    skip(); /* a sanitizer's own memory counts too */
#endif
    enum { N = 100000, ROOM = 64 };
    struct rusage before, after;
    char *file = malloc(N * ROOM), *at = file + 8;
    weft_safetensors *f;
    for (int i = 0; i < N; i++)
        at += sprintf(at, "%c\"%x\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]}", i ? ',' : '{',
                      (unsigned)i);
    *at++ = '}';
    const uint64_t length = (uint64_t)(at - file) - 8;
    for (int i = 0; i < 8; i++) file[i] = (char)(length >> 8 * i);
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(weft_safetensors_open_memory(NULL, "large", file, (size_t)length + 8, &f), WEFT_OK);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(weft_safetensors_count(f), N);
    assert_in_range(1024 * (after.ru_maxrss - before.ru_maxrss), 0, 4 * length);
    weft_safetensors_close(f);
    free(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory),          cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_bytes),           cmocka_unit_test(test_every_dtype),
        cmocka_unit_test(test_refused_entries), cmocka_unit_test(test_malformed),
        cmocka_unit_test(test_lengths),         cmocka_unit_test(test_every_truncation),
        cmocka_unit_test(test_files),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
