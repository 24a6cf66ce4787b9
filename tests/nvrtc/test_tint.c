/* Every kernel source of models, the op matrix and the gradient checks, translated to WGSL, is compiled by
 * Tint, the compiler of Dawn. It follows the specification more strictly than wgpu-native: a barrier, for
 * example, must be in control flow that is uniform by WGSL's analysis. ops_wgsl and grad_wgsl write sources
 * before. Without Dawn (make dawn) the test is skipped. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device.h"
#include "device/webgpu/webgpu.h"
#include "gpu.h"
#include "nvrtc/models.h"

enum { SHOWN = 20 }; /* refused sources whose messages are shown */

static int compiled, refused;

static void compile(weft__webgpu *d, const char *wgsl, const char *path) {
    webgpu_shader_source_wgsl source = {.chain = {.sType = WEBGPU_SType_ShaderSourceWGSL},
                                        .code = {wgsl, WEBGPU_STRLEN}};
    webgpu_shader_module module = weft__wgpu.wgpuDeviceCreateShaderModule(
        d->device, &(webgpu_shader_module_descriptor){.nextInChain = &source.chain});
    compiled++;
    if (weft__webgpu_error(d) && refused++ < SHOWN) print_message("%s: %s\n", path, weft__webgpu_message());
    if (module) weft__wgpu.wgpuShaderModuleRelease(module);
}

/* Compiles all kernels of a source. First each pointer has a binding. Then all share one, which is written,
 * so that nothing that is loaded counts as uniform. */
static void compile_source(weft__webgpu *d, const char *path) {
    static char text[1 << 18];
    int binding[WEFT_WGSL_POINTERS];
    weft_wgsl_source *source;
    char message[300], *wgsl;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_int_equal(weft__wgsl_read(NULL, text, &source, message, sizeof message), WEFT_OK);
    for (int k = 0; k < 2 * weft__wgsl_kernels(source); k++) {
        for (int i = 0; i < WEFT_WGSL_POINTERS; i++) binding[i] = k % 2 ? 0 : i;
        assert_int_equal(weft__wgsl_print(source, k / 2, binding, &wgsl), WEFT_OK);
        compile(d, wgsl, path);
        weft__free(NULL, wgsl);
    }
    weft__wgsl_free(source);
}

static void compile_folder(weft__webgpu *d, const char *folder) {
    char path[1024];
    DIR *list = opendir(folder);
    for (const struct dirent *e; list && (e = readdir(list)) != NULL;) {
        if (e->d_name[0] == '.') continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        compile_source(d, path);
    }
    if (list) closedir(list);
}

static void test_sources(void **state) {
    (void)state;
    test_programs f;
    char folder[512];
    const char *build = getenv("WEFT_BINARY_DIR");
    setenv("WEFT_TEST_GPU", "webgpu", 1);
    if (!test_setup(&f, "webgpu")) return skip();
    if (!weft__wgpu.wgpuDeviceTick) {
        test_teardown(&f);
        print_message("skipped: %s is not Dawn\n", weft__webgpu_library_name());
        return skip();
    }
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"models", "ops", "grad"};
        snprintf(folder, sizeof folder, "%s/wgsl-sources/%s", build ? build : "build", names[i]);
        if (i == 0) assert_true(write_model_sources(folder, "webgpu"));
        compile_folder(weft__webgpu_of(f.device), folder);
    }
    test_teardown(&f);
    print_message("%d kernels\n", compiled);
    if (refused) fail_msg("%d of them are refused", refused);
    assert_true(compiled > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sources)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
