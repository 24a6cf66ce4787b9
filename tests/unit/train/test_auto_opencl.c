/* The device "auto" on a machine with a graphics card. A hook makes an OpenCL device on the processor look
 * like a card. It is priced against the cpu for every purpose. If the driver is missing, the cpu is taken.
 * A run reports which device it took and why. */
#include "device.h"
#include "device/cuda/hooks.h"
#include "device/opencl/devices.h"
#include "unit/io_scratch.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "compiler/profile/price.h"
#include "train/analysis/auto.h"
#include "train/run/loop.h"
#include "train/run/opened_model.h"

static bool cards;

/* Made-up rates with which only launches cost time: on the cpu more than elsewhere, or the same. */
static double cpu_launch_ns;
static weft_status made_up(const char *spec, int threads, char name[64], weft__rates *rates) {
    (void)threads;
    snprintf(name, 64, "%s", spec);
    *rates = (weft__rates){.launch_ns = strcmp(spec, "cpu") == 0 ? cpu_launch_ns : 1e3};
    return WEFT_OK;
}

static int setup(void **state) {
    const weft__opencl_found *list;
    if (scratch_setup(state) != 0 || chdir(scratch) != 0) return -1;
    setenv("WEFT_KERNEL_CACHE", scratch, 1);
    unsetenv("WEFT_DEVICE");
    weft__price_rates = made_up;
    weft__device_cards_hook = true;
    cards = weft__opencl_devices(&list, NULL) > 0;
    if (!cards) print_message("no OpenCL device\n");
    FILE *f = fopen("table.csv", "w");
    fprintf(f, "a,b,kind\n");
    for (int i = 0; i < 60; i++) fprintf(f, "%d.5,%d,%s\n", i % 7, i % 5, i % 2 ? "odd" : "even");
    fclose(f);
    f = fopen("text.txt", "w");
    for (int i = 0; i < 60; i++) fprintf(f, "the weft goes over and under the warp, line %d\n", i);
    fclose(f);
    return 0;
}

static void configure(weft__config *config, const char *const *settings) {
    weft__config_init(config);
    for (; *settings; settings++) assert_ok(weft__config_set(config, *settings));
    assert_ok(weft__config_resolve(config));
}

static const char *const mlp[] = {"device=auto",
                                  "task=classification",
                                  "model.type=mlp",
                                  "data.source=csv",
                                  "data.path=table.csv",
                                  "data.test_path=table.csv",
                                  "model.hidden=8",
                                  "train.batch=8",
                                  "train.steps=4",
                                  "schedule.warmup=0",
                                  NULL};
static const char *const gpt[] = {"device=auto",      "model.type=gpt", "data.path=text.txt",
                                  "model.layers=1",   "model.heads=2",  "model.width=16",
                                  "model.context=16", "train.batch=4",  NULL};

static void test_when(void **state) {
    (void)state;
    weft__config config;
    configure(&config, mlp);
    assert_int_equal(weft__auto_chooses(&config), cards);
    assert_ok(weft__config_set(&config, "device=cpu"));
    assert_false(weft__auto_chooses(&config));
    assert_ok(weft__config_set(&config, "device=auto"));
    weft__opencl_hook.library = "libabsent.so"; /* a card without its driver */
    weft__opencl_forget();
    assert_false(weft__auto_chooses(&config));
    weft__opencl_hook.library = NULL;
    weft__opencl_forget();
    weft__config_free(&config);
}

/* The cheapest device is taken, and the cpu if prices are equal. */
static void test_purposes(void **state) {
    (void)state;
    for (int model = 0; cards && model < 2; model++) {
        weft__config config;
        weft__dataset dataset;
        configure(&config, model ? gpt : mlp);
        assert_ok(weft__dataset_read(NULL, &config, NULL, &dataset));
        for (int purpose = WEFT__TO_TRAIN; purpose <= (model ? WEFT__TO_DECODE : WEFT__TO_APPLY); purpose++) {
            weft__auto choice = {0};
            cpu_launch_ns = 1e6;
            assert_ok(weft__auto_choose(&config, &dataset, (weft__purpose)purpose, &choice));
            assert_string_equal(choice.device, "opencl:0");
            cpu_launch_ns = 1e3;
            assert_ok(weft__auto_choose(&config, &dataset, (weft__purpose)purpose, &choice));
            assert_string_equal(choice.device, "cpu");
            assert_non_null(strstr(choice.why, "a step is estimated at cpu "));
            assert_non_null(strstr(choice.why, ", opencl:0 "));
        }
        weft__dataset_free(NULL, &dataset);
        weft__config_free(&config);
    }
}

static void test_run(void **state) {
    (void)state;
    weft__config config;
    weft__train_result result;
    weft__opened_model opened;
    configure(&config, mlp);
    cpu_launch_ns = 1e6;
    assert_ok(weft__train(&config, &(weft__train_options){.dir = "run", .quiet = true}, &result));
    weft__config_free(&config);
    FILE *f = fopen("run/env.json", "r");
    char text[4000] = "";
    assert_true(f && fread(text, 1, sizeof text - 1, f) > 0);
    fclose(f);
    assert_non_null(strstr(text, cards ? "\"device\": \"opencl:0\"" : "\"device\": \"cpu\""));
    cpu_launch_ns = 1e3;
    assert_ok(weft__opened_model_open("run", &(weft__opened_model_options){.device = "auto"}, &opened));
    assert_string_equal(weft_device_of(opened.model.ctx), "cpu");
    assert_int_equal(opened.choice.why[0] != 0, cards);
    weft__opened_model_close(&opened);
}

/* Without a program to price, the card is taken. */
static void test_open_auto(void **state) {
    (void)state;
    weft_context *ctx = NULL;
    assert_ok(weft_open(&(weft_open_options){.device = "auto"}, &ctx));
    assert_string_equal(weft_device_of(ctx), cards ? "opencl:0" : "cpu");
    weft_close(ctx);
}

int main(void) {
    weft__cuda_hook.library = "libabsent.so"; /* CUDA is absent on every machine */
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_when), cmocka_unit_test(test_purposes),
                                       cmocka_unit_test(test_run), cmocka_unit_test(test_open_auto)};
    return cmocka_run_group_tests(tests, setup, scratch_teardown);
}
