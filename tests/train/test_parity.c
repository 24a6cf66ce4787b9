/* Parity with PyTorch: ten steps of a small MLP and a small GPT, with AdamW and SGD, from the same weights
 * and batches, must give the losses that parity/make_reference.py recorded. The tolerance in f32 is 1e-5
 * (2e-5 on GPUs), or ten times PyTorch's own difference between f32 and f64 if that is larger. In f64 it is
 * 1e-10. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>
#include <jansson.h>

#include <weft/nn.h>
#include <weft/optim.h>
#include "device.h"

enum { STEPS = 10 };

typedef struct parity_run {
    weft_context *ctx;
    weft_dtype dtype;
    const json_t *reference; /* losses.json */
    bool gpt, adamw;
} parity_run;

static double number(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static int64_t whole(const json_t *object, const char *key) { return (int64_t)number(object, key); }

/* ---- model and optimizer with the settings of the reference ---- */

static weft_module *model_of(const parity_run *run) {
    if (run->gpt) {
        const json_t *o = json_object_get(run->reference, "gpt");
        return weft_nn_gpt(run->ctx, &(weft_gpt_options){.vocab = whole(o, "vocab"),
                                                         .context = whole(o, "context"),
                                                         .layers = whole(o, "layers"),
                                                         .heads = whole(o, "heads"),
                                                         .width = whole(o, "width"),
                                                         .dtype = run->dtype});
    }
    const json_t *sizes = json_object_get(json_object_get(run->reference, "mlp"), "sizes");
    int64_t list[8];
    int count = (int)json_array_size(sizes);
    assert_true(count >= 2 && count <= 8);
    for (int i = 0; i < count; i++) list[i] = json_integer_value(json_array_get(sizes, (size_t)i));
    return weft_nn_mlp(run->ctx, list, count, &(weft_mlp_options){.dtype = run->dtype});
}

static weft_optimizer *optimizer_of(const parity_run *run, weft_module *net) {
    const json_t *all = json_object_get(run->reference, "optimizers");
    const json_t *o = json_object_get(all, run->adamw ? "adamw" : "sgd");
    if (!run->adamw)
        return weft_sgd(net, &(weft_sgd_options){.lr = number(o, "lr"),
                                                 .momentum = number(o, "momentum"),
                                                 .nesterov = json_is_true(json_object_get(o, "nesterov")),
                                                 .weight_decay = number(o, "weight_decay"),
                                                 .track_norm = true});
    const json_t *betas = json_object_get(o, "betas");
    return weft_adamw(net, &(weft_adam_options){.lr = number(o, "lr"),
                                                .eps = number(o, "eps"),
                                                .beta1 = json_number_value(json_array_get(betas, 0)),
                                                .beta2 = json_number_value(json_array_get(betas, 1)),
                                                .weight_decay = number(o, "weight_decay"),
                                                .clip = number(o, "clip")});
}

/* ---- data ---- */

static void *read_entry(weft_safetensors *file, const char *name, weft_entry_info *info) {
    size_t at;
    assert_true(weft_safetensors_find(file, name, &at) && weft_safetensors_entry(file, at, info));
    void *data = malloc(info->bytes + 1);
    assert_non_null(data);
    assert_ok(weft_safetensors_read(file, at, 0, data, info->bytes));
    return data;
}

/* Converts f32 numbers to run->dtype. */
static void *convert(const parity_run *run, const float *from, size_t n) {
    double *wide = malloc((n + 1) * sizeof *wide);
    assert_non_null(wide);
    if (run->dtype == WEFT_F32)
        memcpy(wide, from, n * sizeof *from);
    else
        for (size_t i = 0; i < n; i++) wide[i] = (double)from[i];
    return wide;
}

static void load_weights(const parity_run *run, weft_module *net, weft_safetensors *file) {
    weft_parameter_info parameter;
    size_t count = weft_parameter_count(net);
    assert_int_equal(count + 2, weft_safetensors_count(file)); /* the other two are batches */
    for (size_t i = 0; weft_parameter_get(net, i, &parameter); i++) {
        weft_entry_info info;
        float *values = read_entry(file, parameter.name, &info);
        size_t n = info.bytes / sizeof *values;
        assert_int_equal((int64_t)n, weft_numel(parameter.tensor));
        void *data = convert(run, values, n);
        assert_ok(weft_write(parameter.tensor, data, n * weft_dtype_size(run->dtype)));
        free(data);
        free(values);
    }
}

/* Batch `step` of the entry, whose first dimension is the step. */
static weft_tensor *batch(const parity_run *run, weft_safetensors *file, const char *name, int step) {
    weft_entry_info info;
    char *all = read_entry(file, name, &info);
    size_t bytes = info.bytes / STEPS;
    char *part = all + (size_t)step * bytes;
    weft_tensor *t;
    if (info.dtype == WEFT_F32) {
        void *data = convert(run, (const float *)(void *)part, bytes / sizeof(float));
        t = weft_from(run->ctx, run->dtype, info.rank - 1, info.shape + 1, data);
        free(data);
    } else {
        t = weft_from(run->ctx, info.dtype, info.rank - 1, info.shape + 1, part);
    }
    free(all);
    return t;
}

/* ---- the comparison ---- */

static const json_t *recorded(const parity_run *run, const char *dtype, const char *what) {
    char name[64];
    snprintf(name, sizeof name, "%s.%s.%s", run->gpt ? "gpt" : "mlp", run->adamw ? "adamw" : "sgd", dtype);
    const json_t *list =
        json_object_get(json_object_get(json_object_get(run->reference, "runs"), name), what);
    assert_int_equal(json_array_size(list), STEPS);
    return list;
}

static double worst_step(const parity_run *run, const char *what, int step, double got) {
    double wide = json_number_value(json_array_get(recorded(run, "f64", what), (size_t)step));
    double narrow = json_number_value(json_array_get(recorded(run, "f32", what), (size_t)step));
    double own = fabs(narrow - wide) / fabs(wide);
    double allowed = run->dtype == WEFT_F64 ? 1e-10 : fmax(test_on_cpu() ? 1e-5 : 2e-5, 10.0 * own);
    double wanted = run->dtype == WEFT_F64 ? wide : narrow, error = fabs(got - wanted) / fabs(wanted);
    if (!(error <= allowed))
        print_error("%s %s %s step %d: %.12g, PyTorch %.12g, off by %.2g, allowed %.2g\n",
                    run->gpt ? "gpt" : "mlp", run->adamw ? "adamw" : "sgd", what, step, got, wanted, error,
                    allowed);
    return error / allowed;
}

static double run_steps(const parity_run *run, weft_safetensors *file) {
    weft_module *net = model_of(run);
    load_weights(run, net, file);
    weft_optimizer *opt = optimizer_of(run, net);
    double worst = 0.0;
    for (int step = 0; step < STEPS; step++) {
        weft_scope *scope = weft_scope_open(run->ctx);
        weft_tensor *x = batch(run, file, "batch.x", step), *y = batch(run, file, "batch.y", step);
        weft_tensor *loss = weft_cross_entropy(weft_forward(net, x), y, NULL);
        assert_ok(weft_optimizer_step(opt, loss));
        double ratio = worst_step(run, "losses", step, weft_item(loss));
        double norm = worst_step(run, "grad_norms", step, weft_optimizer_grad_norm(opt));
        weft_scope_close(scope);
        worst = fmax(worst, isnan(ratio) ? INFINITY : ratio);
        /* no fixed bound for norms in f32: small gradients carry more rounding */
        if (run->dtype == WEFT_F64) worst = fmax(worst, isnan(norm) ? INFINITY : norm);
    }
    return worst;
}

static void compare(weft_dtype dtype, bool gpt, bool adamw) {
    const char *root = getenv("WEFT_SOURCE_DIR");
    char path[4096];
    json_error_t error;
    snprintf(path, sizeof path, "%s/tests/train/parity/losses.json", root ? root : ".");
    json_t *reference = json_load_file(path, 0, &error);
    if (!reference) print_error("%s: %s\n", path, error.text);
    assert_non_null(reference);
    parity_run run = {.dtype = dtype, .reference = reference, .gpt = gpt, .adamw = adamw};
    assert_ok(test_open(NULL, &run.ctx));
    if (dtype == WEFT_F64 && !test_has_f64(run.ctx)) {
        weft_close(run.ctx);
        json_decref(reference);
        skip();
    }
    snprintf(path, sizeof path, "%s/tests/train/parity/%s.safetensors", root ? root : ".",
             gpt ? "gpt" : "mlp");
    weft_safetensors *file = NULL;
    assert_ok(weft_safetensors_open(run.ctx, path, &file));
    double worst = run_steps(&run, file);
    print_message("worst difference: %.2g of what is allowed\n", worst);
    assert_true(worst <= 1.0);
    weft_safetensors_close(file);
    weft_close(run.ctx);
    json_decref(reference);
}

static void test_mlp_sgd_f64(void **state) {
    (void)state;
    compare(WEFT_F64, false, false);
}
static void test_mlp_adamw_f64(void **state) {
    (void)state;
    compare(WEFT_F64, false, true);
}
static void test_gpt_sgd_f64(void **state) {
    (void)state;
    compare(WEFT_F64, true, false);
}
static void test_gpt_adamw_f64(void **state) {
    (void)state;
    compare(WEFT_F64, true, true);
}
static void test_mlp_sgd_f32(void **state) {
    (void)state;
    compare(WEFT_F32, false, false);
}
static void test_mlp_adamw_f32(void **state) {
    (void)state;
    compare(WEFT_F32, false, true);
}
static void test_gpt_sgd_f32(void **state) {
    (void)state;
    compare(WEFT_F32, true, false);
}
static void test_gpt_adamw_f32(void **state) {
    (void)state;
    compare(WEFT_F32, true, true);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mlp_sgd_f64), cmocka_unit_test(test_mlp_adamw_f64),
        cmocka_unit_test(test_gpt_sgd_f64), cmocka_unit_test(test_gpt_adamw_f64),
        cmocka_unit_test(test_mlp_sgd_f32), cmocka_unit_test(test_mlp_adamw_f32),
        cmocka_unit_test(test_gpt_sgd_f32), cmocka_unit_test(test_gpt_adamw_f32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
