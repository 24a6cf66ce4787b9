/* The device registry: every device has a description, a specification opens the device that it names, and a
 * wrong specification gives a helpful message. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/module.h"

typedef struct log_lines {
    char text[1000];
} log_lines;

static void keep_line(void *user, weft_log_level level, const char *message) {
    log_lines *l = user;
    (void)level;
    snprintf(l->text, sizeof l->text, "%s", message);
}

static void open_as(const char *spec, const char *name) {
    weft_context ctx = {0};
    weft_device *device;
    assert_int_equal(weft__device_open(&ctx, spec, NULL, &device), WEFT_OK);
    assert_string_equal(device->ops->name, name);
    device->ops->close(device);
}

static void test_registry(void **state) {
    (void)state;
    log_lines lines = {0};
    weft_context ctx = {.caller.log = keep_line, .caller.log_user = &lines};
    weft_device *device;
    weft_device_description info;
    assert_true(weft_device_count() >= weft__device_kinds() - 1); /* no list shows c99 */
    for (int i = 0; i < weft_device_count(); i++) {
        assert_true(weft_device_info(i, &info));
        assert_true(info.name && (info.present || info.reason));
    }
    assert_false(weft_device_info(-1, &info));
    assert_false(weft_device_info(weft_device_count(), &info));
    assert_null(weft__device_kind(99));
    unsetenv("WEFT_DEVICE");
    open_as("interp", "interp");
    open_as("null:0", "null");
    open_as("cpu:0", "cpu");
    open_as(NULL, "cpu");
    setenv("WEFT_DEVICE", "null", 1);
    open_as(NULL, "null");
    open_as("interp", "interp");
    setenv("WEFT_DEVICE", "abacus", 1);
    assert_int_equal(weft__device_open(&ctx, NULL, NULL, &device), WEFT_ERR_DEVICE);
    assert_string_equal(weft_last_error(&ctx), "device \"abacus\" (from WEFT_DEVICE) is unknown: choose one "
                                               "of cpu, cuda, hip, opencl, webgpu, interp, null, gpu, auto");
    assert_null(device);
    unsetenv("WEFT_DEVICE");
    assert_int_equal(weft__device_open(&ctx, "cpu:1", NULL, &device), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(&ctx), "there is only one cpu"));
    assert_int_equal(weft__device_open(&ctx, "cpux", NULL, &device), WEFT_ERR_DEVICE);
    if (weft__device_cards()) return;
    assert_int_equal(weft__device_open(&ctx, "auto", NULL, &device), WEFT_OK);
    assert_string_equal(device->ops->name, "cpu");
    device->ops->close(device);
    assert_non_null(strstr(lines.text, "device auto: cpu is used: there is no graphics card"));
    open_as("auto,interp", "cpu");
}

/* A single name opens that device or gives a helpful error. A list opens the first device that works. */
static void test_nonsense(void **state) {
    (void)state;
    static const struct {
        const char *spec, *says;
    } cases[] = {
        {",", "device ,: no device opens: a name is missing before or after a comma; a name is missing "
              "before or after a comma"},
        {"abacus,",
         "\"abacus\" is unknown: choose one of cpu, cuda, hip, opencl, webgpu, interp, null, gpu, auto"},
        {"abacus , webgpu:99", "\"abacus\" is unknown: choose one of cpu, cuda, hip, opencl, webgpu, interp, "
                               "null, gpu, auto; device "},
        {"cpu:", "device \"cpu:\": 0 is missing after the colon"},
        {"cpu:1", "there is only one cpu: name it \"cpu\" or \"cpu:0\""},
        {"cpu:gpu", "there is only one cpu"},
        {"opencl:", "device \"opencl:\": a number or a part of a name is missing after the colon"},
        {"opencl:99", "opencl"},
        {"opencl:-1", "opencl"},
        {"opencl:abacus", "opencl"},
        {"CPU", "device \"CPU\" is unknown"},
        {" cpu", "is unknown"},
        {"cuda:", "device \"cuda:\": a number or a part of a name is missing after the colon"},
        {"cuda:99", "cuda"},
        {"webgpu:99", "device"},
        {"vulkan:", "device \"webgpu:\": a number or a part of a name is missing after the colon"},
        {"metalx", "device \"metalx\" is unknown"},
        {"gpu:0", "\"gpu:0\" is unknown"},
        {"auto:0", "\"auto:0\" is unknown"},
    };
    weft_context ctx = {0};
    weft_device *device;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const weft_status status = weft__device_open(&ctx, cases[i].spec, NULL, &device);
        const bool says = strstr(weft_last_error(&ctx), cases[i].says) != NULL;
        if (status != WEFT_ERR_DEVICE || !says)
            print_error("%s: %d, %s\n", cases[i].spec, (int)status, weft_last_error(&ctx));
        assert_true(status == WEFT_ERR_DEVICE && says && !device);
    }
    open_as("webgpu:99, cpu", "cpu");
    open_as("cpu,,", "cpu");
    open_as("abacus,,interp", "interp");
}

/* A module has all that lists, messages and docs read, and its aliases mean no other kind. */
static void test_modules(void **state) {
    (void)state;
    for (int i = 0; i < weft__device_kinds(); i++) {
        const weft_device_module *kind = weft__device_kind(i);
        assert_true(kind->ops && kind->ops->name && kind->describe && kind->open);
        assert_ptr_equal(weft__device_kind_of(kind->ops->name), kind);
        for (const weft_device_alias *a = kind->aliases; a && a->name; a++)
            assert_true(a->selector && weft__device_kind_of(a->name) == kind);
        for (const weft_device_component *c = kind->components; c && c->name; c++)
            assert_true(c->oldest && c->from && c->without && c->find && kind->serves);
    }
    assert_string_equal(weft__device_kind_of("rocm:1")->ops->name, "hip");
    assert_string_equal(weft__device_kind_of("vulkan")->ops->name, "webgpu");
    assert_null(weft__device_kind_of("abacus"));
    assert_null(weft__device_kind_of("cpu,cuda"));
    assert_int_equal(weft__device_count(weft__device_kind_of("c99")), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_registry), cmocka_unit_test(test_nonsense),
                                       cmocka_unit_test(test_modules)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
