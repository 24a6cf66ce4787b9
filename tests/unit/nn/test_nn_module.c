/* The tree of modules: names, initial values, modes, custom modules, poisoned modules, summary, files. */
#include <unistd.h>
#include "unit/nn_help.h"

static weft_module *small_gpt(weft_context *ctx) {
    return weft_nn_gpt(ctx,
                       &(weft_gpt_options){.vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 4});
}

static void test_names(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = small_gpt(ctx);
    const char *const names[] = {"wte.weight",
                                 "wpe.weight",
                                 "h.0.ln_1.weight",
                                 "h.0.ln_1.bias",
                                 "h.0.attn.c_attn.weight",
                                 "h.0.attn.c_attn.bias",
                                 "h.0.attn.c_proj.weight",
                                 "h.0.attn.c_proj.bias",
                                 "h.0.ln_2.weight",
                                 "h.0.ln_2.bias",
                                 "h.0.mlp.c_fc.weight",
                                 "h.0.mlp.c_fc.bias",
                                 "h.0.mlp.c_proj.weight",
                                 "h.0.mlp.c_proj.bias"};
    assert_int_equal(weft_parameter_count(gpt), 2 + 2 * 12 + 2);
    weft_parameter_info info;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_true(weft_parameter_get(gpt, i, &info));
        assert_string_equal(info.name, names[i]);
    }
    assert_true(weft_parameter_find(gpt, "ln_f.bias", &info));
    assert_false(weft_parameter_find(gpt, "lm_head.weight", &info));
    assert_int_equal(weft_parameter_elements(gpt, false),
                     11 * 4 + 8 * 4 + 2 * (8 + 48 + 12 + 16 + 4 + 8 + 64 + 16 + 64 + 4) + 8);
    assert_string_equal(weft_module_path(weft_module_child_get(weft_module_child_get(gpt, 2), 1)),
                        "h.0.attn");
    weft_module *net =
        weft_nn_sequential(ctx, "xor", weft_nn_linear(ctx, 2, 8, NULL), weft_nn_activation(ctx, WEFT_TANH),
                           weft_nn_linear(ctx, 8, 1, NULL), NULL);
    assert_true(weft_parameter_get(net, 2, &info));
    assert_string_equal(info.name, "2.weight");
    assert_string_equal(weft_module_path(net), "xor");
}

/* ---- initial values ---- */

static void moments(weft_context *ctx, weft_init init, double *mean, double *deviation, double *largest) {
    weft_module *m = weft_nn_linear(ctx, 64, 256, &(weft_linear_options){.weight = init, .no_bias = true});
    weft_parameter_info info;
    assert_true(weft_parameter_get(m, 0, &info));
    double *w = values_of(info.tensor), sum = 0.0, square = 0.0;
    int n = 64 * 256;
    *largest = 0.0;
    for (int i = 0; i < n; i++) {
        sum += w[i];
        square += w[i] * w[i];
        if (fabs(w[i]) > *largest) *largest = fabs(w[i]);
    }
    *mean = sum / n;
    *deviation = sqrt(square / n - *mean * *mean);
    free(w);
    weft_module_free(m);
}

static void test_initialisers(void **state) {
    weft_context *ctx = *state;
    const double third = 1.0 / sqrt(3.0);
    const struct {
        weft_init init;
        double deviation, limit; /* limit 0: a normal distribution */
    } cases[] = {
        {{WEFT_INIT_DEFAULT, 0}, third / 8.0, 1.0 / 8.0},
        {{WEFT_INIT_UNIFORM, 0.5}, 0.5 * third, 0.5},
        {{WEFT_INIT_NORMAL, 0.02}, 0.02, 0},
        {{WEFT_INIT_XAVIER_UNIFORM, 0}, sqrt(2.0 / 320.0), sqrt(6.0 / 320.0)},
        {{WEFT_INIT_XAVIER_NORMAL, 2.0}, 2.0 * sqrt(2.0 / 320.0), 0},
        {{WEFT_INIT_HE_UNIFORM, 0}, sqrt(2.0 / 64.0), sqrt(6.0 / 64.0)},
        {{WEFT_INIT_HE_NORMAL, 1.0}, sqrt(1.0 / 64.0), 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        double mean, deviation, largest, s = cases[i].deviation;
        moments(ctx, cases[i].init, &mean, &deviation, &largest);
        assert_true(fabs(mean) < 4.0 * s / 128.0); /* four standard errors of 16384 values */
        assert_true(fabs(deviation - s) < 0.03 * s);
        if (cases[i].limit > 0.0)
            assert_true(largest <= cases[i].limit * 1.000001 && largest > 0.99 * cases[i].limit);
        if (cases[i].limit == 0.0) assert_true(largest > 3.0 * s && largest < 6.0 * s);
    }
    double mean, deviation, largest;
    moments(ctx, (weft_init){WEFT_INIT_CONSTANT, 0.25}, &mean, &deviation, &largest);
    assert_true(mean == 0.25 && largest == 0.25);
    moments(ctx, (weft_init){WEFT_INIT_ZEROS, 0}, &mean, &deviation, &largest);
    assert_true(largest == 0.0);
    moments(ctx, (weft_init){WEFT_INIT_ONES, 0}, &mean, &deviation, &largest);
    assert_true(mean == 1.0);
}

static double first_weight(weft_module *m) {
    weft_parameter_info info;
    assert_true(weft_parameter_get(m, 0, &info));
    double *w = values_of(info.tensor), first = w[0];
    free(w);
    return first;
}

/* Initial values depend on the seed, the name, and the number of earlier networks with that name. */
static void test_draws(void **state) {
    weft_context *ctx = *state, *other = NULL;
    weft_module *a = weft_nn_linear(ctx, 3, 3, NULL), *b = weft_nn_linear(ctx, 3, 3, NULL);
    double first = first_weight(a), second = first_weight(b);
    assert_true(first != second);
    assert_ok(weft_open(&(weft_open_options){.seed = 11}, &other));
    assert_true(first_weight(weft_nn_linear(other, 3, 3, NULL)) == first);
    weft_close(other);
    assert_ok(weft_open(&(weft_open_options){.seed = 12}, &other));
    assert_true(first_weight(weft_nn_linear(other, 3, 3, NULL)) != first);
    weft_close(other);
}

/* ---- custom modules ---- */

static weft_tensor *scaled(weft_module *m, weft_tensor *x) {
    weft_tensor *y = weft_forward(weft_module_child_get(m, 0), x);
    return weft_add(weft_mul(y, weft_parameter(m, "scale")), weft_parameter(m, "offset"));
}

static weft_tensor *nothing(weft_module *m, weft_tensor *x) {
    (void)m;
    (void)x;
    return NULL;
}

static void count_call(void *user) { ++*(int *)user; }

static void test_own_module(void **state) {
    weft_context *ctx = *state;
    int freed = 0;
    weft_module *m = weft_module_new(ctx, "scaled", scaled, &freed);
    assert_ptr_equal(weft_module_user(m), &freed);
    assert_ok(weft_module_parameter(m, "scale", WEFT_F32, 0, NULL, &(weft_init){WEFT_INIT_CONSTANT, 3.0}));
    assert_ok(weft_module_buffer(m, "offset", WEFT_F32, SHAPE(2), &(weft_init){WEFT_INIT_ONES, 0}));
    weft_module_child(m, "inner", weft_nn_rms_norm(ctx, 2, &(weft_norm_options){.no_affine = true}));
    assert_ok(weft_module_on_free(m, count_call, &freed));
    double *y = values_of(weft_forward(m, weft_full(ctx, WEFT_F32, SHAPE(1, 2), 1e4)));
    assert_close(y, (double[]){4.0, 4.0}, 2, 1e-6);
    free(y);
    assert_int_equal(weft_parameter_elements(m, false), 1); /* buffers are not counted */
    weft_parameter_info info;
    assert_true(weft_parameter_find(m, "offset", &info) && info.buffer);
    assert_poisoned(weft_parameter(m, "shift"), WEFT_ERR_ARGUMENT, "scaled", "shift");
    /* too late to add a parameter */
    assert_int_equal(weft_module_parameter(m, "late", WEFT_F32, 0, NULL, NULL), WEFT_ERR_STATE);
    weft_module_free(m);
    assert_int_equal(freed, 1);
    m = weft_module_new(ctx, "nothing", nothing, NULL);
    assert_poisoned(weft_forward(m, weft_full(ctx, WEFT_F32, SHAPE(1), 1.0)), WEFT_ERR_ARGUMENT, "nothing",
                    "NULL");
}

/* ---- errors ---- */

static void test_poison(void **state) {
    weft_context *ctx = *state;
    weft_tensor *x = weft_full(ctx, WEFT_F32, SHAPE(1, 2), 1.0);
    weft_module *net = weft_nn_sequential(ctx, "net", weft_nn_linear(ctx, 2, 3, NULL),
                                          weft_nn_dropout(ctx, 2.0), weft_nn_linear(ctx, 3, 1, NULL), NULL);
    assert_int_equal(weft_module_status(net), WEFT_ERR_ARGUMENT);
    assert_poisoned(weft_forward(net, x), WEFT_ERR_ARGUMENT, "weft_nn_dropout", "2");
    assert_int_equal(weft_parameter_count(net), 0);
    assert_int_equal(weft_module_status(NULL), WEFT_ERR_ARGUMENT);
    assert_poisoned(weft_forward(NULL, x), WEFT_ERR_ARGUMENT, "NULL", NULL);
    /* the layer's path is in the message */
    weft_module *deep = weft_nn_sequential(ctx, "outer",
                                           weft_nn_sequential(ctx, "inner", weft_nn_linear(ctx, 2, 3, NULL),
                                                              weft_nn_linear(ctx, 4, 1, NULL), NULL),
                                           NULL);
    assert_poisoned(weft_forward(deep, x), WEFT_ERR_SHAPE, "0.1", "[1,3]");
    /* one child with two parents; one name for two children; modules in use */
    weft_module *a = weft_nn_sequential(ctx, "a", NULL), *b = weft_nn_sequential(ctx, "b", NULL),
                *c = weft_nn_linear(ctx, 1, 1, NULL);
    weft_module_child(a, "c", c);
    weft_module_child(b, "c", c);
    assert_int_equal(weft_module_status(a), WEFT_OK);
    assert_int_equal(weft_module_status(b), WEFT_ERR_STATE);
    weft_module_child(a, "c", weft_nn_linear(ctx, 1, 1, NULL));
    assert_int_equal(weft_module_status(a), WEFT_ERR_ARGUMENT);
    weft_module *used = weft_nn_linear(ctx, 2, 1, NULL), *late = weft_nn_sequential(ctx, "late", NULL);
    assert_ok(weft_tensor_status(weft_forward(used, x)));
    weft_module_child(late, "used", used);
    assert_int_equal(weft_module_status(late), WEFT_ERR_STATE);
}

static void test_summary(void **state) {
    weft_context *ctx = *state;
    weft_module *net = weft_nn_mlp(ctx, (int64_t[]){784, 512, 10}, 3, NULL);
    weft_module_freeze(weft_module_child_get(net, 0), true);
    char text[2000], cut[20];
    int64_t length = weft_summary(net, text, sizeof text);
    assert_int_equal(length, (int64_t)strlen(text));
    assert_non_null(strstr(text, "401,920"));
    assert_non_null(strstr(text, "weight [512,784] frozen"));
    assert_non_null(strstr(text, "407,050 parameters, 5,130 trained"));
    assert_int_equal(weft_summary(net, cut, sizeof cut), length);
    assert_int_equal(strlen(cut), sizeof cut - 1);
    assert_int_equal(weft_parameter_elements(net, true), 5130);
}

static bool is_frozen(weft_module *m, const char *name) {
    weft_parameter_info info = {0};
    assert_true(weft_parameter_find(m, name, &info));
    return info.frozen;
}

static void test_freeze_matching(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt = small_gpt(ctx);
    const uint64_t before = weft_module_freeze_count(gpt);
    assert_ok(weft_module_freeze_matching(gpt, "h.*", true));
    assert_true(weft_module_freeze_count(gpt) > before);
    assert_true(is_frozen(gpt, "h.0.attn.c_attn.weight"));
    assert_false(is_frozen(gpt, "wte.weight"));
    assert_ok(weft_module_freeze_matching(gpt, "h.?.mlp.*.bias", false));
    assert_false(is_frozen(gpt, "h.0.mlp.c_fc.bias"));
    assert_true(is_frozen(gpt, "h.0.mlp.c_fc.weight"));
    assert_int_equal(weft_module_freeze_matching(gpt, "h.*.none", true), WEFT_ERR_ARGUMENT);
    assert_non_null(
        strstr(weft_last_error(ctx), "no parameter matches 'h.*.none'; the last one is 'ln_f.bias'"));
    assert_int_equal(weft_module_freeze_matching(gpt, NULL, true), WEFT_ERR_ARGUMENT);
    assert_ok(weft_module_freeze_matching(gpt, "*", true));
    assert_int_equal(weft_parameter_elements(gpt, true), 0);
}

/* ---- files ---- */

static void path_of(char *path, size_t size, const char *name) {
    const char *folder = getenv("TMPDIR");
    snprintf(path, size, "%s/weft-test-%ld-%s", folder ? folder : "/tmp", (long)getpid(), name);
}

static void test_files(void **state) {
    weft_context *ctx = *state;
    char path[4096];
    path_of(path, sizeof path, "model.safetensors");
    weft_module *a = small_gpt(ctx), *b = small_gpt(ctx);
    assert_ok(weft_module_save(a, path));
    assert_ok(weft_module_load(b, path)); /* unused, so initial values were not drawn yet */
    weft_parameter_info x, y;
    assert_true(weft_parameter_count(b) == weft_parameter_count(a));
    for (size_t i = 0; weft_parameter_get(a, i, &x) && weft_parameter_get(b, i, &y); i++) {
        double *v = values_of(x.tensor), *w = values_of(y.tensor);
        assert_memory_equal(v, w, (size_t)weft_numel(x.tensor) * sizeof *v);
        free(v);
        free(w);
    }
    /* another shape, more entries, fewer entries: the message names each, and nothing changes */
    weft_module *wide =
        weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = 12, .context = 8, .layers = 2, .heads = 2, .width = 4});
    assert_int_equal(weft_module_load(wide, path), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "wte.weight"));
    assert_non_null(strstr(weft_last_error(ctx), "[11,4]"));
    assert_true(first_weight(wide) != 0.0); /* now the values are drawn */
    weft_module *less =
        weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = 11, .context = 8, .layers = 1, .heads = 2, .width = 4});
    assert_int_equal(weft_module_load(less, path), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "h.1."));
    weft_module *more =
        weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = 11, .context = 8, .layers = 3, .heads = 2, .width = 4});
    double before = first_weight(more);
    assert_int_equal(weft_module_load(more, path), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "h.2."));
    assert_true(first_weight(more) == before);
    weft_module *other = weft_nn_gpt(
        ctx, &(weft_gpt_options){
                 .vocab = 11, .context = 8, .layers = 2, .heads = 2, .width = 4, .dtype = WEFT_F16});
    assert_int_equal(weft_module_load(other, path), WEFT_ERR_FORMAT);
    assert_non_null(strstr(weft_last_error(ctx), "f16"));
    unlink(path);
    assert_int_equal(weft_module_load(a, path), WEFT_ERR_IO);
}

/* Copies between contexts: afterwards both compute the same. A mismatch is named and changes nothing. */
static void test_copy(void **state) {
    weft_context *ctx = *state, *other;
    assert_int_equal(weft_open(&(weft_open_options){.device = "cpu", .seed = 99}, &other), WEFT_OK);
    weft_module *from = small_gpt(ctx), *to = small_gpt(other);
    const int32_t ids[6] = {1, 2, 3, 10, 0, 4};
    const int64_t shape[2] = {2, 3};
    double *answers[3];
    for (int i = 0; i < 3; i++) {
        if (i == 2) assert_int_equal(weft_module_copy(to, from), WEFT_OK);
        weft_module *m = i ? to : from;
        answers[i] = values_of(weft_forward(m, weft_from(weft_module_context(m), WEFT_I32, 2, shape, ids)));
    }
    double apart = 0.0, moved = 0.0;
    for (int i = 0; i < 6 * 11; i++) {
        apart = fmax(apart, fabs(answers[0][i] - answers[2][i]));
        moved = fmax(moved, fabs(answers[1][i] - answers[2][i]));
    }
    assert_true(apart < 1e-6 && moved > 1e-3);
    weft_module *longer = weft_nn_gpt(
        other, &(weft_gpt_options){.vocab = 11, .context = 9, .layers = 2, .heads = 2, .width = 4});
    assert_int_equal(weft_module_copy(longer, from), WEFT_ERR_SHAPE);
    assert_non_null(strstr(weft_last_error(other), "'wpe.weight' is f32 [8,4] in the source, but f32 [9,4]"));
    weft_module *linear = weft_nn_linear(other, 11, 4, NULL);
    assert_int_equal(weft_module_copy(linear, from), WEFT_ERR_SHAPE);
    assert_non_null(strstr(weft_last_error(other), "cannot copy 28 parameters and buffers to 2"));
    assert_int_equal(weft_module_copy(weft_nn_layer_norm(other, 4, NULL), linear), WEFT_ERR_SHAPE);
    assert_int_equal(weft_module_copy(NULL, from), WEFT_ERR_ARGUMENT);
    for (int i = 0; i < 3; i++) free(answers[i]);
    weft_close(other);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_initialisers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_draws, setup, teardown),
        cmocka_unit_test_setup_teardown(test_own_module, setup, teardown),
        cmocka_unit_test_setup_teardown(test_poison, setup, teardown),
        cmocka_unit_test_setup_teardown(test_freeze_matching, setup, teardown),
        cmocka_unit_test_setup_teardown(test_summary, setup, teardown),
        cmocka_unit_test_setup_teardown(test_files, setup, teardown),
        cmocka_unit_test_setup_teardown(test_copy, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
