/* Memory runs out while files are written and read, at every allocation of Weft and of jansson. A save must
 * succeed with files that can be read, or fail and leave the earlier files. Out of memory must never be
 * reported as damage. The host program's own calls of jansson must keep using the host's allocation
 * functions. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <jansson.h>

#include <weft/io.h>

#include "unit/failing_alloc.h"
#include "io/checkpoint.h"
#include "unit/io_scratch.h"

/* One counter for the allocations of the context and of jansson. */
static failing_alloc fault;
static long host_live;

static void *host_malloc(size_t size) {
    if (++fault.calls == fault.fail_at) return NULL;
    host_live++;
    return malloc(size);
}

static void host_free(void *p) {
    host_live -= p != NULL;
    free(p);
}

static int set_host_functions(void **state) {
    json_set_alloc_funcs(host_malloc, host_free);
    return scratch_setup(state);
}

static weft_context failing_at(int at) {
    fault = (failing_alloc){.fail_at = at};
    return (weft_context){.caller.alloc = failing_realloc, .caller.alloc_user = &fault};
}

/* Names of many lengths, so that each buffer size of jansson ends inside a name or a number. */
static const int64_t shape[] = {1234567, 0};
static const float numbers[] = {1, 2, 3};
static const int64_t three[] = {3};
static const weft_entry model[] = {
    {.name = "w", .dtype = WEFT_F32, .rank = 1, .shape = three, .data = numbers},
    {.name = "name.of.14.byt", .dtype = WEFT_F32, .rank = 2, .shape = shape},
    {.name = "name.of.15.byte", .dtype = WEFT_BF16, .rank = 2, .shape = shape},
    {.name = "a.name.of.29.bytes.is.longer.", .dtype = WEFT_F32, .rank = 2, .shape = shape},
};
enum { MODEL = sizeof model / sizeof *model };

static weft_status save(weft_context *ctx, const char *run, uint64_t step) {
    const weft_checkpoint_state state = {.step = step,
                                         .seed = 123456789012345678,
                                         .config_hash = "0123456789abcdef",
                                         .data_hash = "fedcba9876543210",
                                         .extra = "{\"best_loss\": 0.12345678901234567, \"best_step\": 12}"};
    return weft_checkpoint_write(ctx, run, &state, model, MODEL, model, 1);
}

static void assert_as_saved(weft_checkpoint *c, uint64_t step) {
    const weft_checkpoint_state *s = weft_checkpoint_state_of(c);
    assert_true(s->step == step);
    assert_true(s->seed == 123456789012345678);
    assert_string_equal(s->config_hash, "0123456789abcdef");
    assert_string_equal(s->extra, "{\"best_loss\":0.12345678901234566,\"best_step\":12}");
    assert_int_equal(weft_safetensors_count(weft_checkpoint_model(c)), MODEL);
    for (int i = 0; i < MODEL; i++) {
        size_t at;
        assert_true(weft_safetensors_find(weft_checkpoint_model(c), model[i].name, &at));
    }
}

static void test_save(void **state) {
    (void)state;
    char run[8300];
    weft_checkpoint *c;
    int failed = 0, at = 1;
    snprintf(run, sizeof run, "%s", in_scratch("save"));
    assert_int_equal(weft_make_folder(NULL, run), WEFT_OK);
    assert_int_equal(save(NULL, run, 1), WEFT_OK);
    for (bool more = true; more; at++) {
        weft_context ctx = failing_at(at);
        const weft_status status = save(&ctx, run, 2);
        more = fault.calls >= at;
        const int live = fault.live;
        fault.fail_at = 0;
        if (status != WEFT_OK && status != WEFT_ERR_OOM)
            fail_msg("allocation %d: %s", at, weft_last_error(&ctx));
        failed += status != WEFT_OK;
        if (weft_checkpoint_open_newest(NULL, run, true, &c) != WEFT_OK)
            fail_msg("allocation %d: saved as %s, but %s", at, weft_status_name(status),
                     weft_last_error(NULL));
        assert_as_saved(c, status == WEFT_OK ? 2 : 1);
        weft_checkpoint_close(c);
        assert_int_equal(live, 0);
        assert_int_equal(count_hidden(in_scratch("save/checkpoints")), 0);
        remove_all(in_scratch("save/checkpoints/step-2"));
    }
    print_message("%d of %d failed allocations end a save\n", failed, at);
    assert_true(failed > 100);
}

static void test_open_is_never_damage(void **state) {
    (void)state;
    char run[8300];
    int failed = 0, at = 1;
    snprintf(run, sizeof run, "%s", in_scratch("open"));
    assert_int_equal(weft_make_folder(NULL, run), WEFT_OK);
    assert_int_equal(save(NULL, run, 1), WEFT_OK);
    assert_int_equal(save(NULL, run, 2), WEFT_OK);
    for (bool more = true; more; at++) {
        weft_checkpoint *c = NULL;
        weft_context ctx = failing_at(at);
        const weft_status status = weft_checkpoint_open_newest(&ctx, run, false, &c);
        more = fault.calls >= at;
        fault.fail_at = 0;
        if (status == WEFT_OK)
            assert_as_saved(c, 2);
        else if (status != WEFT_ERR_OOM)
            fail_msg("allocation %d: %s", at, weft_last_error(&ctx));
        failed += status != WEFT_OK;
        weft_checkpoint_close(c);
        assert_int_equal(fault.live, 0);
    }
    assert_true(failed > 100);
}

static void test_safetensors(void **state) {
    (void)state;
    char path[8300];
    const weft_metadata about[] = {{"a key of 16 bytes", "a text"}, {"format", "pt"}};
    snprintf(path, sizeof path, "%s", in_scratch("one.safetensors"));
    assert_int_equal(weft_safetensors_write(NULL, path, model, 1, about, 1), WEFT_OK);
    for (int at = 1, more = true; more; at++) {
        weft_context ctx = failing_at(at);
        weft_safetensors *f;
        const weft_status status = weft_safetensors_write(&ctx, path, model, MODEL, about, 2);
        more = fault.calls >= at;
        assert_int_equal(fault.live, 0);
        fault.fail_at = 0;
        if (status != WEFT_OK && status != WEFT_ERR_OOM)
            fail_msg("allocation %d: %s", at, weft_last_error(&ctx));
        if (weft_safetensors_open(NULL, path, &f) != WEFT_OK)
            fail_msg("allocation %d: %s", at, weft_last_error(NULL));
        assert_int_equal(weft_safetensors_count(f), status == WEFT_OK ? MODEL : 1);
        weft_safetensors_close(f);
        assert_int_equal(count_hidden(in_scratch(".")), 0);
        assert_int_equal(weft_safetensors_write(NULL, path, model, 1, about, 1), WEFT_OK);
    }
}

/* Objects that the host makes by jansson are allocated and freed by the host's functions, whatever Weft
 * does in between. */
static void test_the_hosts_functions(void **state) {
    (void)state;
    char path[8300];
    snprintf(path, sizeof path, "%s", in_scratch("host.safetensors"));
    for (int round = 0; round < 2; round++) {
        const long before = host_live;
        fault = (failing_alloc){0};
        json_t *mine = json_pack("{s:s}", "key", "value");
        assert_non_null(mine);
        assert_true(host_live > before);
        const long own = host_live;
        assert_int_equal(weft_safetensors_write(NULL, path, model, MODEL, NULL, 0), WEFT_OK);
        assert_int_equal(host_live, own);
        assert_string_equal(json_string_value(json_object_get(mine, "key")), "value");
        json_decref(mine);
        assert_int_equal(host_live, before);
        json_set_alloc_funcs(host_malloc, host_free); /* Weft must notice the change */
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_save),
        cmocka_unit_test(test_open_is_never_damage),
        cmocka_unit_test(test_safetensors),
        cmocka_unit_test(test_the_hosts_functions),
    };
    return cmocka_run_group_tests(tests, set_host_functions, scratch_teardown);
}
