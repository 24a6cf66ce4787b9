/* Red zones (compiler/runtime/zones.c): a run that writes beyond a result, or before the first one, fails and
 * names the result. Values that nothing has written are NaN. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/weft.h>

#include "compiler/program.h"
#include "graph/graph.h"

enum { N = 37 }; /* 148 bytes: not a multiple of 64 */

/* What the stand-in for the device's `run` writes after the run. */
static struct {
    const weft_device_ops *real;
    weft_device_ops ops;
    int64_t at;   /* byte of the arena, -1: nothing */
    float before; /* what the arena held at the first result before the run */
} fault;

static weft_status run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                       int times) {
    const weft_program *program = device->ctx->compiler->newest;
    memcpy(&fault.before, (char *)buffers[SLOT_ARENA]->host + program->regions.list[0].offset,
           sizeof fault.before);
    const weft_status status = fault.real->run(device, executable, buffers, times);
    if (fault.at >= 0) memset((char *)buffers[SLOT_ARENA]->host + fault.at, 7, 1);
    return status;
}

/* A program with a matrix product in the arena. */
static weft_status compute(weft_context *ctx, float *item) {
    float values[N];
    for (int i = 0; i < N; i++) values[i] = (float)i;
    weft_tensor *x = weft_from(ctx, WEFT_F32, 2, (int64_t[]){1, N}, values),
                *y = weft_matmul(weft_transpose(x, 0, 1), x),
                *sum = weft_sum(weft_matmul(y, y), WEFT_ALL_AXES, false);
    return weft_read(sum, item, sizeof *item);
}

static void test_zones(void **state) {
    (void)state;
    weft_context *ctx;
    float plain, checked;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &ctx), WEFT_OK);
    assert_int_equal(compute(ctx, &plain), WEFT_OK);
    weft_close(ctx);

    setenv("WEFT_DEBUG", "memory", 1);
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu"}, &ctx), WEFT_OK);
    fault.real = ctx->device->ops;
    fault.ops = *fault.real;
    fault.ops.run = run;
    fault.at = -1;
    ctx->device->ops = &fault.ops;
    assert_int_equal(compute(ctx, &checked), WEFT_OK);
    assert_true(checked == plain);
    assert_true(fault.before != fault.before); /* NaN */

    const weft_program *program = ctx->compiler->newest;
    assert_true(program->regions.count > 0);
    const program_region *r = &program->regions.list[0];
    assert_int_equal(r->bytes, N * N * 4);
    const struct {
        int64_t at;
        const char *message;
    } faults[] = {{r->offset + r->bytes, "a kernel wrote beyond the end of matmul"},
                  {r->offset - 1, "a kernel wrote before the start or beyond"},
                  {program->arena_bytes - 1, "into byte"}};
    for (size_t i = 0; i < sizeof faults / sizeof *faults; i++) {
        fault.at = faults[i].at;
        assert_int_equal(compute(ctx, &checked), WEFT_ERR_INTERNAL);
        if (!strstr(weft_last_error(ctx), faults[i].message)) fail_msg("%s", weft_last_error(ctx));
    }
    ctx->device->ops = fault.real;
    weft_close(ctx);
    unsetenv("WEFT_DEBUG");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_zones)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
