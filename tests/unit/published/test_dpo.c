/* Training on preferences: the reference, ten steps of DPO with adapters, accuracy and margin against PyTorch
 * and peft (make_models.py), also with logits in parts and in batches that are padded. */
#include <weft/preferences.h>

#include "device.h"
#include "unit/published/models.h"

enum { STEPS = 10, TARGETS = 7, PAIRS = 4, ROW = 20 };
static const char *const targets[TARGETS] = {"q_proj",    "k_proj",  "v_proj",   "o_proj",
                                             "gate_proj", "up_proj", "down_proj"};

/* The pairs of the file as rows, as weft_preferences_pack makes them. */
typedef struct rows {
    int32_t x[PAIRS][2][ROW], y[PAIRS][2][ROW];
} rows;

static void make_rows(json_t *pairs, rows *r) {
    for (size_t i = 0; i < PAIRS; i++) {
        int32_t place = 0;
        for (int t = 0; t < ROW; t++)
            r->x[i][0][t] = 0, r->x[i][1][t] = t, r->y[i][0][t] = r->y[i][1][t] = -1;
        for (int side = 0; side < 2; side++) {
            json_t *pair = json_array_get(pairs, i),
                   *parts[2] = {json_array_get(pair, 0), json_array_get(pair, (size_t)side + 1)};
            const int32_t begin = place, prompt = (int32_t)json_array_size(parts[0]),
                          whole = prompt + (int32_t)json_array_size(parts[1]);
            for (int32_t t = 0; t < whole; t++) {
                json_t *part = parts[t >= prompt];
                const int32_t token =
                    (int32_t)json_integer_value(json_array_get(part, (size_t)(t >= prompt ? t - prompt : t)));
                if (t >= prompt) r->y[i][side][begin + t - 1] = token;
                if (t + 1 == whole) continue;
                assert_true(place < ROW);
                r->x[i][0][place] = token;
                r->x[i][1][place++] = begin;
            }
        }
    }
}

/* Gives each A the pattern that make_models.py gives it. */
static void fill_adapters(weft_module *model) {
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(model, i, &p); i++) {
        int layer, target = 0;
        float data[4 * 64];
        if (!strstr(p.name, ".lora_A.")) continue;
        assert_int_equal(sscanf(p.name, "h.%d.", &layer), 1);
        while (!strstr(p.name, targets[target])) target++;
        const int64_t n = weft_numel(p.tensor);
        assert_true(n <= (int64_t)COUNT(data));
        fill(data, n, layer * TARGETS + target, 0);
        assert_ok(weft_write(p.tensor, data, (size_t)n * sizeof *data));
    }
}

static weft_status note_loss(void *user, const weft_fit_state *state, bool *stop) {
    (void)stop;
    return weft_fit_losses(state, (double *)user + state->step - 1, NULL);
}

static void check_near(const char *what, double got, double want, double within) {
    if (!(fabs(got - want) <= within)) fail_msg("%s is %.9g, PyTorch has %.9g", what, got, want);
}

static double number_of(json_t *object, const char *key) {
    return json_number_value(json_object_get(object, key));
}

typedef struct setting {
    weft_context *ctx;
    json_t *root, *want;
    rows r;
    weft_array x, y;
} setting;

static weft_loader *loader_of(setting *s, int64_t batch, const weft_array *extra) {
    weft_loader *loader;
    assert_ok(weft_loader_new(s->ctx, &s->x, &s->y,
                              &(weft_loader_options){.batch = batch, .in_order = true, .extra = extra},
                              &loader));
    return loader;
}

/* Trains as the run of the file does. */
static void check_run(setting *s, json_t *run, int64_t head_chunks) {
    const weft_lora_options all = {.rank = 4, .alpha = 6, .targets = targets, .target_count = TARGETS};
    const char *folder = make_folder(s->ctx, s->root, WEFT_F32, "model");
    weft_module *model =
        weft_published_new(s->ctx, folder, &(weft_published_options){.head_chunks = head_chunks});
    assert_ok(weft_gpt_lora(model, &all));
    assert_ok(weft_published_load(model, folder));
    fill_adapters(model);
    weft_array reference;
    weft_loader *three = loader_of(s, 3, NULL); /* its second batch is padded */
    assert_ok(weft_preferences_reference(model, three, &reference));
    weft_loader_free(three);
    json_t *right = json_object_get(s->want, "reference");
    for (size_t i = 0; i < PAIRS * 2; i++)
        check_near("a log-probability", (double)((float *)reference.data)[i],
                   json_number_value(json_array_get(json_array_get(right, i / 2), i % 2)), 1e-4);

    double losses[STEPS] = {0};
    weft_optimizer *adam = weft_adamw(model, &(weft_adam_options){.lr = 0.01});
    weft_loader *two = loader_of(s, 2, &reference);
    const weft_fit_options o = {.loss = WEFT_LOSS_DPO,
                                .steps = STEPS,
                                .beta = number_of(run, "beta"),
                                .label_smoothing = number_of(run, "smoothing"),
                                .on_step = note_loss,
                                .user = losses};
    assert_ok(weft_fit(model, adam, two, &o, NULL));
    for (size_t i = 0; i < STEPS; i++)
        check_near("a loss", losses[i], json_number_value(json_array_get(json_object_get(run, "losses"), i)),
                   1e-4);
    weft_loader_free(two);

    weft_preference_scores scores;
    three = loader_of(s, 3, &reference);
    assert_ok(weft_preferences_evaluate(model, three, o.beta, &scores));
    check_near("the loss", scores.loss, number_of(run, "loss"), 2e-4);
    check_near("the accuracy", scores.accuracy, number_of(run, "accuracy"), 1e-9);
    check_near("the margin", scores.margin, number_of(run, "margin"), 2e-3);
    double loss, accuracy;
    assert_ok(weft_module_evaluate(model, three, WEFT_LOSS_DPO, &loss, &accuracy));
    assert_true(fabs(accuracy - scores.accuracy) < 1e-9);
    assert_true((fabs(loss - scores.loss) < 1e-9) == (fabs(o.beta - 0.1) < 1e-9)); /* its beta is 0.1 */
    weft_loader_free(three);
    weft_array_free(NULL, &reference);
    weft_optimizer_free(adam);
    weft_module_free(model);
    remove_all(folder);
}

static void test_peer(void **state) {
    (void)state;
    json_error_t error;
    setting s = {.root = read_model("llama.json"),
                 .want = json_load_file("tests/unit/published/dpo.json", 0, &error)};
    assert_ok(test_open(&(weft_open_options){.seed = 1}, &s.ctx));
    assert_non_null(s.want);
    make_rows(json_object_get(s.want, "pairs"), &s.r);
    s.x = (weft_array){WEFT_I32, 3, {PAIRS, 2, ROW}, s.r.x, sizeof s.r.x};
    s.y = (weft_array){WEFT_I32, 3, {PAIRS, 2, ROW}, s.r.y, sizeof s.r.y};
    json_t *runs = json_object_get(s.want, "runs");
    assert_int_equal(json_array_size(runs), 2);
    const bool all = test_on_cpu(); /* devices that compile kernels take one run */
    for (size_t i = all ? 0 : 1; i < 2; i++)
        for (int64_t chunks = 0; chunks <= (all ? 3 : 0); chunks += 3)
            check_run(&s, json_array_get(runs, i), chunks);
    json_decref(s.want);
    json_decref(s.root);
    weft_close(s.ctx);
}

/* A batch without reference, and loaders that do not fit, are refused. */
static void test_refused(void **state) {
    (void)state;
    setting s = {.ctx = open_device(NULL, false)};
    weft_array reference;
    weft_preference_scores scores;
    weft_module *gpt = weft_nn_gpt(
        s.ctx, &(weft_gpt_options){.vocab = 8, .context = ROW, .layers = 1, .heads = 2, .width = 8});
    memset(s.r.y, 0xff, sizeof s.r.y);
    s.x = (weft_array){WEFT_I32, 3, {PAIRS, 2, ROW}, s.r.x, sizeof s.r.x};
    s.y = (weft_array){WEFT_I32, 3, {PAIRS, 2, ROW}, s.r.y, sizeof s.r.y};
    weft_loader *loader = loader_of(&s, 2, NULL), *shuffled, *one;
    assert_int_equal(weft_preferences_evaluate(gpt, loader, 0, &scores), WEFT_ERR_ARGUMENT);
    assert_true(isnan(scores.loss));
    assert_ok(weft_loader_new(s.ctx, &s.x, &s.y, &(weft_loader_options){.batch = 2}, &shuffled));
    assert_int_equal(weft_preferences_reference(gpt, shuffled, &reference), WEFT_ERR_ARGUMENT);
    assert_null(reference.data);
    s.y.rank = 2;
    s.y.shape[1] = 2 * ROW;
    assert_ok(weft_loader_new(s.ctx, &s.x, &s.y, &(weft_loader_options){.batch = 2, .in_order = true}, &one));
    assert_int_equal(weft_preferences_reference(gpt, one, &reference), WEFT_ERR_ARGUMENT);
    weft_loader_free(loader);
    weft_loader_free(shuffled);
    weft_loader_free(one);
    weft_close(s.ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_peer), cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
