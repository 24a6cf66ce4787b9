/* Prices. On a device with scripted costs, the measured rates equal the script, and the price of a step is
 * their sum. Rates are saved. Among several devices the cheapest is chosen, and "auto" also considers
 * GPUs. */
#include "compiler/profile/price.h"
#include "unit/core_help.h"
#include "device/device.h"
#include "unit/io_scratch.h"

#include <unistd.h>

/* ---- a device whose clock follows the scripted costs of its work ---- */

static const struct {
    double launch, submit, wait, upload, up_byte, down_byte, flop, byte, calculation;
} script = {5e3, 2e4, 5e4, 3e3, 0.1, 0.2, 1e-1, 2e-2, 1e-3};

static double clock_ns;
static int disturbed; /* runs that take 100 times as long, since something else runs on the machine */
static bool pending;  /* submitted work that nobody has waited for */

static double scripted_clock(void) { return clock_ns; }
static bool never_busy(void) { return false; }
static bool always_busy(void) { return true; }

static double command_ns(const weft_command *command) {
    double flops, bytes;
    weft__command_work(command, &flops, &bytes);
    if (command->kind == WEFT_COMMAND_HEAVY)
        return script.launch +
               (flops * script.flop > bytes * script.byte ? flops * script.flop : bytes * script.byte);
    return script.launch + bytes * script.byte + flops * script.calculation;
}

static weft_status build(weft_device *device, const weft_commands *commands, weft_executable **executable) {
    double *ns = weft__zalloc(device->ctx, sizeof *ns);
    assert_non_null(ns);
    for (int i = 0; i < commands->count; i++) *ns += command_ns(&commands->list[i]);
    *executable = (weft_executable *)ns;
    return WEFT_OK;
}

static void executable_free(weft_device *device, weft_executable *executable) {
    weft__free(device->ctx, executable);
}

static weft_status run(weft_device *device, weft_executable *executable, weft_buffer *const *buffers,
                       int times) {
    (void)device, (void)buffers;
    clock_ns += script.submit + times * *(const double *)executable * (disturbed-- > 0 ? 100 : 1);
    pending = true;
    return WEFT_OK;
}

static weft_status synchronize(weft_device *device) {
    (void)device;
    if (pending) clock_ns += script.wait;
    pending = false;
    return WEFT_OK;
}

static weft_status upload(weft_device *device, weft_buffer *to, size_t offset, const void *from,
                          size_t bytes) {
    (void)device, (void)to, (void)offset, (void)from;
    clock_ns += script.upload + script.up_byte * (double)bytes;
    pending = true;
    return WEFT_OK;
}

static weft_status download(weft_device *device, const weft_buffer *from, size_t offset, void *to,
                            size_t bytes) {
    (void)from, (void)offset;
    memset(to, 0, bytes);
    pending = true; /* a download waits */
    clock_ns += script.down_byte * (double)(bytes > 4 ? bytes - 4 : 0);
    return synchronize(device);
}

static void set_timing(weft_device *device, bool on) { (void)device, (void)on; }

static const weft_timing *timings(weft_device *device, const weft_executable *executable) {
    (void)device, (void)executable;
    return NULL;
}

static weft_context *open_scripted(weft_device_ops *ops) {
    weft_context *ctx = open_device("null", false);
    *ops = *ctx->device->ops;
    ops->build = build;
    ops->executable_free = executable_free;
    ops->run = run;
    ops->synchronize = synchronize;
    ops->upload = upload;
    ops->download = download;
    static const weft_device_extras extras = {.set_timing = set_timing, .timings = timings};
    ops->extras = &extras;
    ctx->device->ops = ops;
    clock_ns = 0;
    pending = false;
    weft__price_clock = scripted_clock;
    return ctx;
}

static void close_scripted(weft_context *ctx) {
    weft__price_clock = weft__profile_now;
    weft_close(ctx);
}

static void near(double got, double wanted, double tolerance) {
    if (!(fabs(got - wanted) <= tolerance * wanted)) print_error("%.9g is wanted, got %.9g\n", wanted, got);
    assert_true(fabs(got - wanted) <= tolerance * wanted);
}

static void test_rates(void **state) {
    (void)state;
    weft_device_ops ops;
    weft__rates r;
    weft_context *ctx = open_scripted(&ops);
    assert_ok(weft__rates_measure(ctx, &r));
    const double least =
        16 * (2 * sizeof(float) * script.byte + script.calculation); /* cost of the smallest command */
    near(r.launch_ns, script.launch + least, 1e-9);
    near(r.submit_ns, script.submit, 1e-9);
    near(r.wait_ns, script.wait, 1e-9);
    near(r.upload_ns, script.upload + 64 * script.up_byte, 1e-9);
    near(r.upload_ns_a_byte, script.up_byte, 1e-3);
    near(r.download_ns_a_byte, script.down_byte, 1e-3);
    near(r.calculation_ns, script.calculation, 1e-9);
    for (int i = 0; i < WEFT__POINTS && r.products[i].size > 0; i++)
        near(r.products[i].ns, script.launch + r.products[i].size * script.flop, 1e-9);
    for (int i = 0; i < WEFT__POINTS && r.moves[i].size > 0; i++)
        near(r.moves[i].ns, script.launch + r.moves[i].size * (script.byte + script.calculation / 8), 1e-9);
    assert_true(r.products[1].size > 0 &&
                r.products[WEFT__POINTS - 1].size == 0); /* sizes that take too long are left out */
    close_scripted(ctx);
}

/* ---- the price of a step ---- */

typedef struct net {
    weft_module *module;
    weft_optimizer *optimizer;
} net;

enum { BATCH = 64, IN = 96, OUT = 32 };

static net open_net(weft_context *ctx) {
    net n = {.module = weft_nn_linear(ctx, IN, OUT, NULL)};
    n.optimizer = weft_adam(n.module, &(weft_adam_options){.lr = 1e-3});
    return n;
}

static void step(weft_context *ctx, const net *n) {
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = numbers(ctx, false, 1, SHAPE(BATCH, IN)), *y = numbers(ctx, false, 2, SHAPE(BATCH, OUT));
    weft_tensor *loss = weft_mse(weft_forward(n->module, x), y, WEFT_MEAN);
    assert_ok(weft_optimizer_step(n->optimizer, loss));
    (void)weft_item(loss);
    weft_scope_close(scope);
}

static weft_profile *profile_steps(weft_context *ctx, int steps) {
    weft_profile *profile = NULL;
    const net n = open_net(ctx);
    step(ctx, &n); /* compiles, uploads parameters */
    assert_ok(weft_profile_start(ctx, NULL, &profile));
    for (int i = 0; i < steps; i++) step(ctx, &n);
    weft_profile_stop(profile);
    step(ctx, &n); /* outside of the measurement */
    return profile;
}

/* The price of a step equals the scripted device's clock. */
static void test_price(void **state) {
    (void)state;
    enum { STEPS = 3 };
    weft_device_ops ops;
    weft__rates r;
    weft_context *ctx = open_scripted(&ops);
    assert_ok(weft__rates_measure(ctx, &r));
    const net n = open_net(ctx);
    step(ctx, &n);
    const double from = clock_ns;
    for (int i = 0; i < STEPS; i++) step(ctx, &n);
    const double spent = clock_ns - from;
    weft_profile *profile = NULL;
    assert_ok(weft_profile_start(ctx, NULL, &profile));
    for (int i = 0; i < STEPS; i++) step(ctx, &n);
    near(1e9 * weft__price(profile, &r), spent, 0.02);
    weft_profile_free(profile);
    close_scripted(ctx);
}

/* With a single rate, the price has only the part of that rate. */
static void test_parts(void **state) {
    (void)state;
    weft_context *ctx = open_device("null", false);
    weft_profile *p = profile_steps(ctx, 2);
    double flops = 0, bytes = 0;
    int commands = 0;
    for (size_t i = 0; i < p->n_programs; i++)
        for (int k = 0; k < p->programs[i].count; k++) {
            const weft_profile_entry *c = &p->commands[p->programs[i].first + (size_t)k];
            const bool product = c->work == WEFT_WORK_MATMUL;
            commands++;
            flops += product ? c->flops : 0;
            bytes += product ? 0 : c->bytes;
        }
    assert_int_equal(p->n_programs, 1);
    assert_true(weft__price(p, &(weft__rates){0}) == 0);
    near(weft__price(p, &(weft__rates){.launch_ns = 7}), 2e-9 * 7 * commands, 1e-9);
    near(weft__price(p, &(weft__rates){.submit_ns = 7}), 2e-9 * 7, 1e-9);
    near(weft__price(p, &(weft__rates){.wait_ns = 7}), 2e-9 * 7, 1e-9);       /* one loss for each step */
    near(weft__price(p, &(weft__rates){.upload_ns = 7}), 2e-9 * 7 * 3, 1e-9); /* x, y and Adam's numbers */
    near(weft__price(p, &(weft__rates){.upload_ns_a_byte = 7}),
         2e-9 * 7 * (4 * BATCH * (IN + OUT) + (double)newest(ctx)->scalars.bytes), 1e-9);
    near(weft__price(p, &(weft__rates){.download_ns_a_byte = 7}), 2e-9 * 7 * 4, 1e-9);
    near(weft__price(p, &(weft__rates){.products = {{1, 7}}}), 2e-9 * 7 * flops, 1e-9);
    near(weft__price(p, &(weft__rates){.moves = {{1, 7}}}),
         2e-9 * 7 * (bytes + 4.0 * 2 * (BATCH * IN + IN * OUT + BATCH * OUT)), 1e-9);
    weft_profile_free(p);
    weft_close(ctx);
}

/* Between two sizes, below the first and above the last. */
static void test_between_samples(void **state) {
    (void)state;
    weft_context *ctx = open_device("null", false);
    weft_profile *p = profile_steps(ctx, 1);
    p->programs[0].count = 1;
    p->commands[p->programs[0].first] = (weft_profile_entry){.work = WEFT_WORK_OTHER};
    double *bytes = &p->commands[p->programs[0].first].bytes;
    const weft__rates r = {.launch_ns = 10, .moves = {{100, 20}, {200, 100}}};
    static const double cases[][2] = {{0, 10}, {50, 15}, {100, 20}, {150, 60}, {200, 100}, {400, 200}};
    for (size_t i = 0; i < COUNT(cases); i++) {
        *bytes = cases[i][0];
        near(1e9 * weft__price(p, &r), cases[i][1], 1e-9);
    }
    weft_profile_free(p);
    weft_close(ctx);
}

/* ---- saved rates ---- */

static void test_kept(void **state) {
    (void)state;
    weft__rates first, second;
    char name[64];
    setenv("WEFT_KERNEL_CACHE", scratch, 1);
    weft__price_busy = always_busy;
    assert_ok(weft__rates_of("interp", 1, name, &first));
    assert_ok(weft__rates_of("interp", 1, name, &second));
    assert_memory_not_equal(&first, &second,
                            sizeof first); /* measured twice: a busy machine's are not saved */
    weft__price_busy = never_busy;
    assert_ok(weft__rates_of("interp", 1, name, &first));
    assert_ok(weft__rates_of("interp:0", 1, name, &second));
    assert_string_equal(name, "interp");
    assert_memory_equal(&first, &second, sizeof first);
    assert_ok(weft__rates_of("interp", 2, name, &second)); /* other threads have other rates */
    assert_memory_not_equal(&first, &second, sizeof first);
    setenv("WEFT_KERNEL_CACHE", "off", 1);
}

/* Profiles a bf16 matmul. Also returns the peak rates of the device. */
static weft_profile *profile_product(weft_context *ctx, double *flops, double *bytes) {
    weft_profile *p = NULL;
    assert_ok(weft_profile_start(ctx, NULL, &p));
    weft_tensor *a = weft_cast(weft_random_uniform(ctx, SHAPE(64, 64)), WEFT_BF16), *c = weft_matmul(a, a);
    assert_ok(weft_eval(&c, 1));
    weft_profile_stop(p);
    assert_ok(weft_profile_peaks(p, flops, bytes));
    return p;
}

/* A machine that is busy for a moment is measured again. */
static void test_disturbed_peaks(void **state) {
    (void)state;
    weft_device_ops ops;
    setenv("WEFT_KERNEL_CACHE", "off", 1);
    for (int runs = 0; runs < 8; runs++) {
        weft_context *ctx = open_scripted(&ops);
        weft_profile *p = NULL;
        double flops = 0, bytes = 0;
        assert_ok(weft_profile_start(ctx, NULL, &p));
        weft_profile_stop(p);
        disturbed = runs;
        assert_ok(weft_profile_peaks(p, &flops, &bytes));
        assert_true(flops > 0.5e9 / script.flop && bytes > 0.5e9 / (script.byte + script.calculation / 8));
        disturbed = 0;
        weft_profile_free(p);
        close_scripted(ctx);
    }
}

/* Each dtype has its own peak rate, which is measured only once. */
static void test_peaks(void **state) {
    (void)state;
    double flops[2], bytes[2];
    char text[4000];
    setenv("WEFT_KERNEL_CACHE", scratch, 1);
    weft__price_busy = never_busy;
    weft_context *ctx = open_device("cpu", false);
    weft_scope *scope = weft_scope_open(ctx);
    weft_profile *p = profile_product(ctx, &flops[0], &bytes[0]);
    const double narrow = p->peak_flops[WEFT_BF16];
    assert_true(flops[0] > 0 && bytes[0] > 0 && narrow > 0 && p->peak_flops[WEFT_F64] == 0);
    size_t count = 0, found = 0;
    const weft_profile_entry *entries = weft_profile_entries(p, &count);
    for (size_t i = 0; i < count; i++) {
        const weft_profile_entry *e = &entries[i];
        assert_int_equal(e->dtype, e->work == WEFT_WORK_MATMUL ? WEFT_BF16 : WEFT_F32);
        if (e->work != WEFT_WORK_MATMUL) continue;
        near(e->bound, fmax(e->flops / narrow, e->bytes / bytes[0]), 1e-9);
        found++;
    }
    assert_int_equal(found, 1);
    assert_true(weft_profile_text(p, 1, text, sizeof text) > 0);
    assert_non_null(strstr(text, "bound: the longer of operations (f32 at "));
    assert_non_null(strstr(text, ", bf16 at "));
    weft_profile_free(p);
    p = profile_product(ctx, &flops[1], &bytes[1]);
    assert_true(flops[1] == flops[0] && bytes[1] == bytes[0] && p->peak_flops[WEFT_BF16] == narrow);
    weft_profile_free(p);
    setenv("WEFT_KERNEL_CACHE", "off", 1);
    p = profile_product(ctx, &flops[1], &bytes[1]);
    assert_true(flops[1] != flops[0] || bytes[1] != bytes[0]);
    weft_profile_free(p);
    weft_scope_close(scope);
    weft_close(ctx);
}

/* ---- the choice ---- */

static void test_choice(void **state) {
    (void)state;
    weft_context *ctx = open_device("null", false);
    weft_profile *p = profile_steps(ctx, 1);
    weft_device_choice choice;
    assert_ok(weft_profile_choose(p, "interp, cpu", &choice));
    assert_string_equal(choice.device, "cpu");
    assert_true(choice.seconds > 0 && isfinite(choice.seconds));
    assert_non_null(strstr(choice.prices, "interp "));
    assert_non_null(strstr(choice.prices, ", cpu "));
    assert_ok(weft_profile_choose(p, "interp", &choice));
    assert_string_equal(choice.device, "interp");
    assert_int_equal(weft_profile_choose(p, "cpu,abacus", &choice), WEFT_ERR_DEVICE);
    assert_non_null(strstr(weft_last_error(NULL), "\"abacus\" is unknown"));
    assert_int_equal(weft_profile_choose(NULL, "cpu", &choice), WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_profile_choose(p, "cpu", NULL), WEFT_ERR_ARGUMENT);
    weft_profile_free(p);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rates),           cmocka_unit_test(test_price),  cmocka_unit_test(test_parts),
        cmocka_unit_test(test_between_samples), cmocka_unit_test(test_kept),   cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_disturbed_peaks), cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
