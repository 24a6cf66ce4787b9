/* src/data/json.c: matrices by key, types, ragged rows, depth, duplicates, malformed text with its place. */
#include <locale.h>

#include <sys/resource.h>

#include <jansson.h>

#include "data_util.h"
#include "io/json_read.h"

static weft_status parse(const char *text, const char *key, weft_json_type type, weft_array *out) {
    const weft_json_options o = {.key = key, .type = type};
    return weft__parse_json(NULL, text, strlen(text), "f.json", &o, 1, out);
}

static void test_both(void **state) {
    (void)state;
    char path[64];
    const char *text = "{\"x\": [[0.5, 1], [2, -3e2]], \"note\": {\"by\": null}, \"y\": [0, 1]}";
    const weft_json_options o[] = {{.key = "x"}, {.key = "y"}};
    weft_array a[2];
    temporary_file(path, text, strlen(text));
    assert_int_equal(weft_read_json_matrices(NULL, path, o, 2, a), WEFT_OK);
    assert_int_equal(a[0].dtype, WEFT_F32);
    assert_int_equal(a[0].rank, 2);
    const float x[] = {0.5f, 1, 2, -300};
    assert_memory_equal(a[0].data, x, sizeof x);
    assert_int_equal(a[1].dtype, WEFT_I32);
    const int32_t y[] = {0, 1};
    assert_memory_equal(a[1].data, y, sizeof y);
    for (int i = 0; i < 2; i++) weft_array_free(NULL, &a[i]);
    const weft_json_options second_fails[] = {{.key = "x"}, {.key = "z"}};
    expect_message(weft_read_json_matrices(NULL, path, second_fails, 2, a), WEFT_ERR_FORMAT, path,
                   "no key \"z\"", "\"x\", \"note\", \"y\"", NULL);
    assert_null(a[0].data);
    unlink(path);
}

static void test_types(void **state) {
    (void)state;
    weft_array a;
    assert_int_equal(parse("[[[1], [2]]]", NULL, WEFT_JSON_F64, &a), WEFT_OK);
    assert_int_equal(a.dtype, WEFT_F64);
    assert_int_equal(a.rank, 3);
    assert_int_equal(a.shape[1], 2);
    assert_true(((double *)a.data)[1] == 2.0);
    weft_array_free(NULL, &a);
    assert_int_equal(parse("[2147483648]", NULL, WEFT_JSON_AUTO, &a), WEFT_OK);
    assert_int_equal(a.dtype, WEFT_I64);
    assert_true(*(int64_t *)a.data == 2147483648LL);
    weft_array_free(NULL, &a);
    expect_message(parse("[1, 2147483648]", NULL, WEFT_JSON_I32, &a), WEFT_ERR_FORMAT, "[1]",
                   "too large for i32", NULL);
    expect_message(parse("[1, 2.0]", NULL, WEFT_JSON_I64, &a), WEFT_ERR_FORMAT, "[1]", "expected an integer",
                   NULL);
    expect_message(parse("[1e39]", NULL, WEFT_JSON_F32, &a), WEFT_ERR_FORMAT, "[0]", "too large for f32",
                   NULL);
    assert_int_equal(parse("[1e39]", NULL, WEFT_JSON_F64, &a), WEFT_OK);
    weft_array_free(NULL, &a);
    assert_int_equal(parse("{\"lr\": 0.5}", "lr", WEFT_JSON_AUTO, &a), WEFT_OK);
    assert_int_equal(a.rank, 0);
    assert_true(*(float *)a.data == 0.5f);
    weft_array_free(NULL, &a);
    assert_int_equal(parse("[[], []]", NULL, WEFT_JSON_F32, &a), WEFT_OK);
    assert_int_equal(a.rank, 2);
    assert_int_equal(a.shape[0], 2);
    assert_int_equal(a.bytes, 0);
    weft_array_free(NULL, &a);
    assert_int_equal(parse("[[[[[[[[7]]]]]]]]", NULL, WEFT_JSON_AUTO, &a), WEFT_OK);
    assert_int_equal(a.rank, 8);
    weft_array_free(NULL, &a);
    assert_int_equal(parse("[1]", NULL, (weft_json_type)9, &a), WEFT_ERR_ARGUMENT);
}

static void refuse(const char *text, const char *key, const char *word, const char *more) {
    weft_array a;
    expect_message(parse(text, key, WEFT_JSON_AUTO, &a), WEFT_ERR_FORMAT, "f.json: ", word, more, NULL);
    assert_null(a.data);
}

static void test_malformed(void **state) {
    (void)state;
    refuse("{\"x\": [[1, 2], [3]]}", "x", "ragged rows: x[1] has 1 values", "x[0] has 2");
    refuse("[[1, 2], [3, 4, 5]]", NULL, "[1] has 3 values", "[0] has 2");
    refuse("[[[1], [2]], [[3], [4, 5]]]", NULL, "[1][1] has 2 values", "[0][0] has 1");
    refuse("[[1, 2], 3]", NULL, "[1]: expected an array of 2", "found a number");
    refuse("[[1, 2], [3, [4]]]", NULL, "[1][1]: expected a number", "found an array");
    refuse("[[1, 2], [3, \"4\"]]", NULL, "[1][1]", "found a string");
    refuse("[1, null]", NULL, "[1]", "found null");
    refuse("[1, true]", NULL, "[1]", "found a boolean");
    refuse("[1, {}]", NULL, "[1]", "found an object");
    refuse("{\"x\": [1], \"x\": [2]}", "x", "line 1", "duplicate");
    refuse("{\"x\": [1], \"m\": {\"a\": 1, \"a\": 2}}", "x", "line 1", "duplicate");
    refuse("{\"x\": [1]}", "y", "no key \"y\"", "\"x\"");
    refuse("{\"x\": [1]}", NULL, "an object, expected an array", "");
    refuse("[1]", "x", "an array, expected an object", "");
    refuse("[1,\n 2,,]", NULL, "line 2, column", "byte");
    refuse("[1, 2", NULL, "line 1", "");
    refuse("[1] 2", NULL, "line 1", "end of file");
    refuse("[NaN]", NULL, "line 1", "");
    refuse("[1e999]", NULL, "line 1", "overflow");
    refuse("[99999999999999999999]", NULL, "line 1", "too big");
    refuse("", NULL, "f.json: the file is empty", "");
    weft_array a;
    expect_message(weft__parse_json(NULL, "[1\0]", 4, "f.json", &(weft_json_options){0}, 1, &a),
                   WEFT_ERR_FORMAT, "byte 2", NULL);
    refuse("\"x\"", NULL, "line 1", "");
    refuse("[[[[[[[[[7]]]]]]]]]", NULL, "more than 8 deep", "");
}

static void test_depth(void **state) {
    (void)state;
    char text[200];
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    text[128] = 0;
    refuse(text, NULL, "more than 8 deep", "");
    memset(text, '\n', 2);
    memset(text + 2, '[', 65);
    memset(text + 67, ']', 65);
    text[132] = 0;
    refuse(text, NULL, "line 3, column 65, byte 66", "more than 64 levels");
    /* brackets inside strings do not count */
    weft_array a;
    assert_int_equal(
        parse(
            "{\"[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[\\\"[\": 1, \"x\": [1]}",
            "x", WEFT_JSON_AUTO, &a),
        WEFT_OK);
    weft_array_free(NULL, &a);
}

/* [[0 x 20000], [], [], ... ] suggests a shape of 20000 x 20000. It is refused before that memory is
 * allocated. */
static void test_claimed_shape(void **state) {
    (void)state;
    enum { N = 20000 };
    char *text = malloc(6 * N), *p = text;
    p += sprintf(p, "[[0");
    for (int i = 1; i < N; i++) p += sprintf(p, ",0");
    p += sprintf(p, "]");
    for (int i = 1; i < N; i++) p += sprintf(p, ",[]");
    p += sprintf(p, "]");
    counting c;
    weft_context ctx = context_with(&c);
    const weft_json_options o = {0};
    weft_array a;
    assert_int_equal(weft__parse_json(&ctx, text, (size_t)(p - text), "f.json", &o, 1, &a), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(&ctx), "ragged"));
    assert_true(c.largest <
                1 << 19); /* jansson has a table of N pointers; the suggested shape has N * N numbers */
    free(text);
}

/* The reader must accept exactly the JSON that jansson accepts: whole documents, and documents with one
 * byte changed at each position. */
static bool agree(const char *text, size_t size) {
    weft__json_reader r;
    weft__json_begin(&r, NULL, text, size);
    const bool taken = weft__json_check(&r);
    weft__json_end(&r);
    json_t *tree = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    const bool right = taken == (tree != NULL);
    if (!right) print_error("%.*s: taken: %d (%s)\n", (int)size, text, taken, r.problem ? r.problem : "");
    json_decref(tree);
    return right;
}

static void test_beside_jansson(void **state) {
    (void)state;
    static const char *const documents[] = {
        "{\"x\": [[0.5, 1], [-2, 3e2], [1E-7, 10.25e+3]], \"note\": {\"by\": null, \"n\": {}}, \"y\": [0, "
        "-0, 100]}",
        " [ true , false , null , \"\\u00e9 \\ud83d\\ude00 \\n\\/\\\\ \xc3\xa9\xf0\x9f\x98\x80\" , [ ] , { } "
        "] \n\t\r",
        "{\"a\":9223372036854775807,\"\\u0062\":-9223372036854775808,\"c\":1e308,\"A\":1e-999}",
        "{\"a\":1,\"a\\u0062\":2,\"ab\":3}",
        "[{\"k\":{\"k\":1},\"l\":[{\"k\":2}]}]",
        "[9223372036854775808]",
        "[-9223372036854775809]",
        "[1e309]",
        "[\"\\ud83d\"]",
        "[\"\\ude00\"]",
        "[\"\\u0000\"]",
        "[00]",
        "[-]",
        "[.5]",
        "[1.]",
        "[+1]",
        "[0x1]",
        "[nan]",
        "[1,]",
        "{\"a\":1,}",
        "{\"a\" 1}",
        "{1:2}",
        "[1 2]",
        "\"a\"",
        "7",
        "",
        " ",
        "[]]",
        "[1}"};
    static const char bytes[] = "0123 \"\\,:.-+eEutn[]{}\xc3\x80\x01/\n";
    for (size_t i = 0; i < sizeof documents / sizeof *documents; i++) {
        char text[256];
        const size_t size = strlen(documents[i]);
        assert_true(agree(documents[i], size));
        for (size_t at = 0; at < size; at++) {
            memcpy(text, documents[i], size);
            assert_true(agree(text, at)); /* truncated */
            for (size_t b = 0; b < sizeof bytes - 1; b++) {
                text[at] = bytes[b];
                assert_true(agree(text, size));
            }
        }
    }
}

/* No tree of the document is built. It would take 22 times the memory of the text. */
static void test_memory(void **state) {
    (void)state;
#ifdef WEFT_SANITIZED
    skip(); /* a sanitizer's own memory counts too */
#endif
    enum { N = 4000000 };
    struct rusage before, after;
    char *text = malloc(2 * N + 2);
    weft_array a;
    for (size_t i = 0; i < N; i++) memcpy(text + 2 * i, ",0", 2);
    text[0] = '[';
    memcpy(text + 2 * (size_t)N, "]", 2);
    getrusage(RUSAGE_SELF, &before);
    assert_int_equal(parse(text, NULL, WEFT_JSON_I32, &a), WEFT_OK);
    getrusage(RUSAGE_SELF, &after);
    assert_int_equal(a.bytes, 4 * N);
    assert_in_range(1024 * (after.ru_maxrss - before.ru_maxrss), 0, a.bytes + 2 * N);
    weft_array_free(NULL, &a);
    free(text);
}

static weft_status parse_both(weft_context *ctx) {
    const char *text = "{\"x\": [[1, 2]], \"y\": [3]}";
    const weft_json_options o[] = {{.key = "x"}, {.key = "y"}};
    weft_array a[2];
    weft_status status = weft__parse_json(ctx, text, strlen(text), "f.json", o, 2, a);
    for (int i = 0; i < 2; i++) weft_array_free(ctx, &a[i]);
    return status;
}

static void test_out_of_memory(void **state) {
    (void)state;
    torture(parse_both);
}

static void test_locale(void **state) {
    (void)state;
    if (!setlocale(LC_NUMERIC, "de_DE.UTF-8") && !setlocale(LC_NUMERIC, "de_DE")) {
        printf("skipped: no locale with a decimal comma is installed\n");
        skip();
    }
    weft_array a;
    weft_status status = parse("[0.5]", NULL, WEFT_JSON_AUTO, &a);
    setlocale(LC_NUMERIC, "C");
    assert_int_equal(status, WEFT_OK);
    assert_true(*(float *)a.data == 0.5f);
    weft_array_free(NULL, &a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both),          cmocka_unit_test(test_beside_jansson),
        cmocka_unit_test(test_memory),        cmocka_unit_test(test_types),
        cmocka_unit_test(test_malformed),     cmocka_unit_test(test_depth),
        cmocka_unit_test(test_claimed_shape), cmocka_unit_test(test_out_of_memory),
        cmocka_unit_test(test_locale)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
