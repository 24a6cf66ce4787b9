/* The number 0 as an option: WEFT_ZERO is 0 or an error, and never the default. The table has every
 * floating-point option of the public headers; a new one must be added to it. */
#include <glob.h>

#include "unit/nn_help.h"

#include <weft/weft.h>

typedef enum expectation {
    EXACT, /* WEFT_ZERO gives what a tiny number gives, and 0 something else */
    ERROR, /* WEFT_ZERO is out of range, and 0 is not */
    PLAIN  /* the default is 0, or the field must be set, or is off at 0: 0 and WEFT_ZERO are the same */
} expectation;

/* Writes one number that depends on the option. */
typedef weft_status (*try_fn)(weft_context *ctx, double value, double *out);

/* ---- numbers that depend on options ---- */

static weft_status sum_of(weft_tensor *x, double *out) {
    weft_tensor *sum = weft_sum(weft_abs(x), WEFT_ALL_AXES, false);
    float value = 0;
    if (weft_tensor_status(sum) != WEFT_OK) return weft_tensor_status(sum);
    const weft_status status = weft_read(sum, &value, sizeof value);
    *out = (double)value;
    return status;
}

static weft_tensor *data_of(weft_context *ctx, int rank, const int64_t *shape, double size) {
    double values[64];
    float small[64];
    fill(values, 64, 1);
    for (int i = 0; i < 64; i++) small[i] = (float)(size * values[i]);
    assert_true(size_of(rank, shape) <= 64);
    return weft_from(ctx, WEFT_F32, rank, shape, small);
}

/* A linear layer without a bias after two steps of an optimizer, with data of this size. */
static weft_status trained(weft_module *m, weft_optimizer *opt, double size, double *out) {
    weft_context *ctx = weft_module_context(m);
    weft_status status = weft_optimizer_status(opt);
    weft_parameter_info weight;
    for (int s = 0; s < 2 && status == WEFT_OK; s++) {
        weft_tensor *y = weft_forward(m, data_of(ctx, SHAPE(4, 2), size + size * s));
        status = weft_optimizer_step(opt, weft_mean(weft_square(y), WEFT_ALL_AXES, false));
    }
    assert_true(weft_parameter_get(m, 0, &weight));
    if (status == WEFT_OK) status = sum_of(weight.tensor, out);
    weft_module_free(m);
    return status;
}

static weft_module *layer_of(weft_context *ctx) {
    return weft_nn_linear(ctx, 2, 3, &(weft_linear_options){.no_bias = true});
}

#define ADAM(name, size, ...)                                                                                \
    static weft_status name(weft_context *ctx, double value, double *out) {                                  \
        weft_module *m = layer_of(ctx);                                                                      \
        return trained(m, weft_adam(m, &(weft_adam_options){.lr = 0.1, __VA_ARGS__}), size, out);            \
    }
ADAM(adam_beta1, 1, .beta1 = value)
ADAM(adam_beta2, 1, .beta2 = value)
ADAM(adam_eps, 1e-4, .eps = value)

#define RMSPROP(name, size, ...)                                                                             \
    static weft_status name(weft_context *ctx, double value, double *out) {                                  \
        weft_module *m = layer_of(ctx);                                                                      \
        return trained(m, weft_rmsprop(m, &(weft_rmsprop_options){.lr = 0.1, __VA_ARGS__}), size, out);      \
    }
RMSPROP(rmsprop_alpha, 1, .alpha = value)
RMSPROP(rmsprop_eps, 1e-4, .eps = value)

static weft_status group_rate(weft_context *ctx, double value, double *out) {
    weft_module *m = layer_of(ctx);
    weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 0.1});
    assert_ok(weft_optimizer_group(opt, &(weft_group_options){.pattern = "*", .lr_scale = value}));
    return trained(m, opt, 1, out);
}

static weft_status schedule_factor(weft_context *ctx, double value, double *out) {
    (void)ctx;
    *out = weft_schedule_lr(
        &(weft_schedule){.kind = WEFT_SCHEDULE_STEP, .lr = 1, .every = 2, .factor = value}, 2);
    return WEFT_OK;
}

#define LOSS_SCALE(name, field)                                                                              \
    static weft_status name(weft_context *ctx, double value, double *out) {                                  \
        weft_module *m = layer_of(ctx);                                                                      \
        weft_optimizer *opt = weft_sgd(m, &(weft_sgd_options){.lr = 0.1});                                   \
        const weft_status status =                                                                           \
            weft_optimizer_scale_loss(opt, &(weft_loss_scale_options){.field = value});                      \
        *out = 0;                                                                                            \
        weft_module_free(m);                                                                                 \
        return status;                                                                                       \
    }
LOSS_SCALE(scale_init, init)
LOSS_SCALE(scale_growth, growth)
LOSS_SCALE(scale_backoff, backoff)

/* The result of a layer for numbers near 0, where eps matters. */
static weft_status applied(weft_module *m, weft_tensor *x, double *out) {
    const weft_status status = sum_of(weft_forward(m, x), out);
    weft_module_free(m);
    return status;
}

static weft_status norm_eps(weft_context *ctx, double value, double *out) {
    return applied(weft_nn_layer_norm(ctx, 4, &(weft_norm_options){.eps = value}),
                   data_of(ctx, SHAPE(3, 4), 1e-3), out);
}

static weft_status batchnorm_eps(weft_context *ctx, double value, double *out) {
    return applied(weft_nn_batch_norm(ctx, 2, &(weft_batchnorm_options){.eps = value}),
                   data_of(ctx, SHAPE(6, 2), 1e-3), out);
}

static weft_status batchnorm_momentum(weft_context *ctx, double value, double *out) {
    weft_module *m = weft_nn_batch_norm(ctx, 2, &(weft_batchnorm_options){.momentum = value});
    weft_parameter_info mean;
    weft_status status = sum_of(weft_forward(m, data_of(ctx, SHAPE(6, 2), 1)), out);
    assert_true(weft_parameter_find(m, "running_mean", &mean));
    if (status == WEFT_OK) status = sum_of(mean.tensor, out);
    weft_module_free(m);
    return status;
}

static weft_status batch_norm_eps(weft_context *ctx, double value, double *out) {
    weft_tensor *x = data_of(ctx, SHAPE(6, 2), 1e-3);
    return sum_of(weft_batch_norm(x, NULL, NULL, &(weft_batch_norm_options){.eps = value}), out);
}

static weft_status block_eps(weft_context *ctx, double value, double *out) {
    return applied(weft_nn_transformer_block(ctx, 4, 2, &(weft_transformer_block_options){.eps = value}),
                   data_of(ctx, SHAPE(1, 3, 4), 1e-3), out);
}

static weft_status init_value(weft_context *ctx, weft_init_kind kind, double value, double *out) {
    return applied(
        weft_nn_linear(ctx, 2, 3, &(weft_linear_options){.no_bias = true, .weight = {kind, value}}),
        data_of(ctx, SHAPE(4, 2), 1), out);
}
static weft_status init_uniform(weft_context *ctx, double value, double *out) {
    return init_value(ctx, WEFT_INIT_UNIFORM, value, out);
}
static weft_status init_normal(weft_context *ctx, double value, double *out) {
    return init_value(ctx, WEFT_INIT_NORMAL, value, out);
}
static weft_status init_xavier(weft_context *ctx, double value, double *out) {
    return init_value(ctx, WEFT_INIT_XAVIER_UNIFORM, value, out);
}

static weft_status attention_scale(weft_context *ctx, double value, double *out) {
    weft_tensor *x = data_of(ctx, SHAPE(1, 1, 4, 4), 1);
    return sum_of(weft_attention(x, x, x, &(weft_attention_options){.scale = value}), out);
}

static weft_status form_scale(weft_context *ctx, double value, double *out) {
    return applied(
        weft_nn_multihead_attention(ctx, 4, 1, &(weft_multihead_attention_options){.form = {.scale = value}}),
        data_of(ctx, SHAPE(1, 3, 4), 1), out);
}

static weft_status rotated(weft_context *ctx, weft_rotary_options options, double *out) {
    return sum_of(weft_rotary(data_of(ctx, SHAPE(3, 4), 1), NULL, &options), out);
}
static weft_status rotary_base(weft_context *ctx, double value, double *out) {
    return rotated(ctx, (weft_rotary_options){.base = value}, out);
}
static const weft_rotary_scaling yarn = {.kind = WEFT_ROTARY_YARN, .factor = 2, .context = 8};
static weft_status rotary_slow(weft_context *ctx, double value, double *out) {
    weft_rotary_options o = {.scaling = yarn};
    o.scaling.slow = value;
    return rotated(ctx, o, out);
}
static weft_status rotary_fast(weft_context *ctx, double value, double *out) {
    weft_rotary_options o = {.scaling = yarn};
    o.scaling.fast = value;
    return rotated(ctx, o, out);
}
static weft_status rotary_magnitude(weft_context *ctx, double value, double *out) {
    weft_rotary_options o = {.scaling = yarn};
    o.scaling.magnitude = value;
    return rotated(ctx, o, out);
}

/* ---- models ---- */

static const weft_gpt_options small = {.vocab = 5, .context = 4, .layers = 2, .heads = 1, .width = 4};

static weft_tensor *tokens_of(weft_context *ctx) {
    return weft_from(ctx, WEFT_I32, SHAPE(1, 4), (int32_t[]){1, 2, 3, 1});
}

static weft_status gpt_eps(weft_context *ctx, double value, double *out) {
    weft_gpt_options o = small; /* tokens have a deviation of 0.02 */
    o.eps = value;
    return applied(weft_nn_gpt(ctx, &o), tokens_of(ctx), out);
}

static weft_status gpt_embedding_scale(weft_context *ctx, double value, double *out) {
    weft_gpt_options o = small;
    o.embedding_scale = value;
    return applied(weft_nn_gpt(ctx, &o), tokens_of(ctx), out);
}

static weft_status gpt_window_base(weft_context *ctx, double value, double *out) {
    weft_gpt_options o = small;
    o.positions = WEFT_POSITION_ROTARY;
    o.form.window = 2;
    o.window_rotation.base = value;
    return applied(weft_nn_gpt(ctx, &o), tokens_of(ctx), out);
}

static weft_status encoder_eps(weft_context *ctx, double value, double *out) {
    weft_module *m = weft_nn_encoder(
        ctx,
        &(weft_encoder_options){.vocab = 5, .context = 4, .layers = 1, .heads = 1, .width = 4, .eps = value});
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(m, i, &p); i++) /* smaller, so that the default, 1e-12, matters */
        if (strncmp(p.name, "w", 1) == 0) {
            float values[64];
            const size_t bytes = (size_t)weft_numel(p.tensor) * sizeof *values;
            assert_ok(weft_read(p.tensor, values, bytes));
            for (size_t k = 0; k < bytes / sizeof *values; k++) values[k] *= 1e-5F;
            assert_ok(weft_write(p.tensor, values, bytes));
        }
    weft_module_set_training(m, false);
    return applied(m, tokens_of(ctx), out);
}

static weft_status lora_alpha(weft_context *ctx, double value, double *out) {
    static const char *const targets[] = {"q_proj", "v_proj"};
    weft_module *gpt = weft_nn_gpt(ctx, &small);
    weft_parameter_info p;
    assert_ok(weft_gpt_lora(
        gpt, &(weft_lora_options){.rank = 2, .alpha = value, .targets = targets, .target_count = 2}));
    for (size_t i = 0; weft_parameter_get(gpt, i, &p); i++) {
        const float ones[16] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
        if (strstr(p.name, "lora_B"))
            assert_ok(weft_write(p.tensor, ones, (size_t)weft_numel(p.tensor) * sizeof *ones));
    }
    return applied(gpt, tokens_of(ctx), out);
}

static weft_status count_bytes(void *user, const char *bytes, size_t count) {
    for (size_t i = 0; i < count; i++) *(double *)user = 31 * *(double *)user + bytes[i];
    return WEFT_OK;
}

static weft_status generated(weft_context *ctx, weft_generate_options o, double *out) {
    weft_module *gpt = weft_nn_gpt(ctx, &small);
    weft_decode_state *cache = weft_decode_state_new(gpt);
    o.prompt = "1";
    o.tokens = 3;
    *out = 0;
    const weft_status status = weft_generate(cache, NULL, &o, count_bytes, out);
    weft_decode_state_free(cache);
    weft_module_free(gpt);
    return status;
}
static weft_status generate_top_p(weft_context *ctx, double value, double *out) {
    return generated(ctx, (weft_generate_options){.temperature = 2, .top_p = value, .seed = 3}, out);
}
static weft_status generate_penalty(weft_context *ctx, double value, double *out) {
    return generated(ctx, (weft_generate_options){.repetition_penalty = value}, out);
}

/* ---- losses, loaders, others ---- */

static weft_status dpo_beta(weft_context *ctx, double value, double *out) {
    return sum_of(weft_dpo_loss(data_of(ctx, SHAPE(3, 2), 1), data_of(ctx, SHAPE(3, 2), 2),
                                &(weft_dpo_options){.beta = value}),
                  out);
}

static weft_status fit_beta(weft_context *ctx, double value, double *out) {
    weft_module *gpt = weft_nn_gpt(ctx, &small);
    weft_optimizer *opt = weft_sgd(gpt, &(weft_sgd_options){.lr = 0.1});
    int32_t x[8] = {1, 2, 3, 1, 0, 0, 0, 0}, y[8] = {2, 3, -1, -1, 3, 1, -1, -1};
    float before[2] = {-3, -2};
    const weft_array inputs = {.dtype = WEFT_I32, .rank = 3, .shape = {1, 2, 4}, .data = x},
                     targets = {.dtype = WEFT_I32, .rank = 3, .shape = {1, 2, 4}, .data = y},
                     extra = {.dtype = WEFT_F32, .rank = 2, .shape = {1, 2}, .data = before};
    weft_loader *loader;
    assert_ok(weft_loader_new(ctx, &inputs, &targets, &(weft_loader_options){.batch = 1, .extra = &extra},
                              &loader));
    const weft_status status = weft_fit(
        gpt, opt, loader, &(weft_fit_options){.loss = WEFT_LOSS_DPO, .steps = 1, .beta = value}, NULL);
    *out = 0;
    weft_loader_free(loader);
    weft_module_free(gpt);
    return status;
}

static weft_status loader_scale(weft_context *ctx, double value, double *out) {
    float x[2] = {1, 2};
    const weft_array inputs = {.dtype = WEFT_F32, .rank = 2, .shape = {2, 1}, .data = x};
    weft_loader *loader;
    const weft_status status =
        weft_loader_new(ctx, &inputs, NULL, &(weft_loader_options){.batch = 1, .scale = value}, &loader);
    *out = 0;
    weft_loader_free(loader);
    return status;
}

static weft_status interpolate_scale(weft_context *ctx, double value, double *out) {
    const weft_interpolate_options o = {.size = {3}, .scale = {value}};
    return sum_of(weft_interpolate1d(data_of(ctx, SHAPE(1, 1, 4), 1), &o), out);
}

static weft_tensor *square_of(void *user) { return weft_sum(weft_square(user), WEFT_ALL_AXES, false); }

static weft_status gradcheck_step(weft_context *ctx, double value, double *out) {
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_gradcheck_worst worst;
    const weft_status status =
        weft_gradcheck(ctx, square_of, v, &v, 1, &(weft_gradcheck_options){.step = value}, &worst);
    *out = 0;
    weft_free(v);
    return status;
}

static weft_status group_timeout(weft_context *ctx, double value, double *out) {
    weft_process_group *group;
    (void)ctx;
    *out = 0;
    const weft_status status =
        weft_process_group_open(&(weft_process_group_options){.timeout = value}, &group);
    weft_process_group_close(group);
    return status;
}

/* ---- the table ---- */

static const struct row {
    const char *structure, *field; /* the start of a field's name is enough for PLAIN */
    expectation expected;
    try_fn run;
    double tiny; /* so small that it acts as 0 */
} rows[] = {
    {"weft_adam_options", "beta1", EXACT, adam_beta1, 1e-30},
    {"weft_adam_options", "beta2", EXACT, adam_beta2, 1e-30},
    {"weft_adam_options", "eps", EXACT, adam_eps, 1e-30},
    {"weft_rmsprop_options", "alpha", EXACT, rmsprop_alpha, 1e-30},
    {"weft_rmsprop_options", "eps", EXACT, rmsprop_eps, 1e-30},
    {"weft_group_options", "lr_scale", EXACT, group_rate, 1e-30},
    {"weft_schedule", "factor", EXACT, schedule_factor, 1e-30},
    {"weft_loss_scale_options", "init", ERROR, scale_init, 0},
    {"weft_loss_scale_options", "growth", ERROR, scale_growth, 0},
    {"weft_loss_scale_options", "backoff", ERROR, scale_backoff, 0},
    {"weft_norm_options", "eps", EXACT, norm_eps, 1e-30},
    {"weft_batchnorm_options", "eps", EXACT, batchnorm_eps, 1e-30},
    {"weft_batchnorm_options", "momentum", EXACT, batchnorm_momentum, 1e-30},
    {"weft_batch_norm_options", "eps", EXACT, batch_norm_eps, 1e-30},
    {"weft_transformer_block_options", "eps", EXACT, block_eps, 1e-30},
    {"weft_init", "value", EXACT, init_uniform, 1e-30},
    {"weft_init", "value", EXACT, init_normal, 1e-30},
    {"weft_init", "value", EXACT, init_xavier, 1e-30},
    {"weft_attention_options", "scale", EXACT, attention_scale, 1e-30},
    {"weft_attention_form", "scale", EXACT, form_scale, 1e-30},
    {"weft_rotary_options", "base", ERROR, rotary_base, 0},
    {"weft_rotary_scaling", "slow", ERROR, rotary_slow, 0},
    {"weft_rotary_scaling", "fast", ERROR, rotary_fast, 0},
    {"weft_rotary_scaling", "magnitude", ERROR, rotary_magnitude, 0},
    {"weft_gpt_options", "eps", EXACT, gpt_eps, 1e-30},
    {"weft_gpt_options", "embedding_scale", EXACT, gpt_embedding_scale, 1e-30},
    {"weft_gpt_options", "window_rotation", ERROR, gpt_window_base, 0},
    {"weft_encoder_options", "eps", EXACT, encoder_eps, 1e-30},
    {"weft_lora_options", "alpha", EXACT, lora_alpha, 1e-30},
    {"weft_generate_options", "top_p", EXACT, generate_top_p, 1e-9},
    {"weft_generate_options", "repetition_penalty", ERROR, generate_penalty, 0},
    {"weft_dpo_options", "beta", ERROR, dpo_beta, 0},
    {"weft_fit_options", "beta", ERROR, fit_beta, 0},
    {"weft_loader_options", "scale", ERROR, loader_scale, 0},
    {"weft_interpolate_options", "scale[2]", ERROR, interpolate_scale, 0},
    {"weft_gradcheck_options", "step", ERROR, gradcheck_step, 0},
    {"weft_process_group_options", "timeout", ERROR, group_timeout, 0},
    {"", "dropout", PLAIN, NULL, 0},
    {"", "softcap", PLAIN, NULL, 0},
    {"", "logit_softcap", PLAIN, NULL, 0},
    {"", "smoothing", PLAIN, NULL, 0},
    {"", "label_smoothing", PLAIN, NULL, 0},
    {"", "lr", PLAIN, NULL, 0},
    {"", "min_lr", PLAIN, NULL, 0},
    {"", "momentum", PLAIN, NULL, 0},
    {"", "weight_decay", PLAIN, NULL, 0},
    {"", "clip", PLAIN, NULL, 0},
    {"", "l1", PLAIN, NULL, 0},
    {"weft_rotary_scaling", "factor", PLAIN, NULL, 0},
    {"weft_generate_options", "temperature", PLAIN, NULL, 0},
    {"weft_generate_options", "min_p", PLAIN, NULL, 0},
    {"weft_image_options", "", PLAIN, NULL, 0},
    {"weft_corpus_options", "validation_fraction", PLAIN, NULL, 0},
};

static void test_zero(void **state) {
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        double zero = -1, tiny = -1, standard = -1;
        if (!r->run) continue;
        weft_scope *scope = weft_scope_open(*state);
        const weft_status unset = r->run(*state, 0.0, &standard), status = r->run(*state, WEFT_ZERO, &zero);
        if (unset != WEFT_OK) fail_msg("%s.%s = 0: %s", r->structure, r->field, weft_last_error(NULL));
        if (r->expected == ERROR) {
            if (status != WEFT_ERR_ARGUMENT)
                fail_msg("%s.%s = WEFT_ZERO: %s", r->structure, r->field, weft_status_name(status));
        } else {
            assert_ok(status);
            assert_ok(r->run(*state, r->tiny, &tiny));
            if (!(fabs(zero - tiny) <= 1e-6 * fabs(tiny) + 1e-20) ||
                fabs(zero - standard) <= 1e-5 * fabs(standard))
                fail_msg("%s.%s = WEFT_ZERO gives %.9g; %g gives %.9g, and the default %.9g", r->structure,
                         r->field, zero, r->tiny, tiny, standard);
        }
        weft_scope_close(scope);
    }
}

/* Activations have a default that is no other value: without one, a network is linear. */
static void test_identity(void **state) {
    weft_scope *scope = weft_scope_open(*state);
    const weft_mlp_options o = {.activation = WEFT_IDENTITY, .no_bias = true};
    weft_module *m = weft_nn_mlp(*state, (int64_t[]){2, 5, 3}, 3, &o);
    weft_tensor *x = data_of(*state, SHAPE(4, 2), 1);
    double size = 0, difference = 1;
    assert_ok(sum_of(weft_forward(m, x), &size));
    assert_ok(sum_of(weft_add(weft_forward(m, x), weft_forward(m, weft_neg(x))), &difference));
    assert_true(size > 0.1 && difference <= 1e-6);
    assert_int_equal(weft_module_status(weft_nn_activation(*state, WEFT_ACTIVATION_DEFAULT)),
                     WEFT_ERR_ARGUMENT);
    weft_scope_close(scope);
}

/* ---- all options are in the table ---- */

static bool is_known(const char *structure, const char *field) {
    for (size_t i = 0; i < COUNT(rows); i++) {
        const struct row *r = &rows[i];
        const bool here = r->structure[0] == '\0' || strcmp(r->structure, structure) == 0;
        if (here && (strcmp(r->field, field) == 0 || r->field[0] == '\0')) return true;
    }
    return false;
}

/* Replaces comments by blanks. */
static void blank_comments(char *text) {
    for (char *at = text; (at = strstr(at, "/*"));)
        for (char *end = strstr(at, "*/") + 2; at < end; at++) *at = ' ';
}

/* Structs that a caller fills in, besides those whose names end in _options. */
static bool holds_options(const char *name) {
    static const char *const others[] = {"weft_schedule", "weft_init", "weft_attention_form",
                                         "weft_rotary_scaling"};
    const char *end = strstr(name, "_options");
    bool found = end && strcmp(end, "_options") == 0;
    for (size_t i = 0; i < COUNT(others); i++) found = found || strcmp(name, others[i]) == 0;
    return found;
}

/* Checks the fields "double a, b;" of a body that ends at `end`. Returns their number. */
static int check_body(const char *name, char *body, char *end) {
    int count = 0;
    for (char *at = body; (at = strstr(at, "double ")) && at < end;) {
        char *line = at + 7;
        at += strcspn(at, ";");
        *at++ = '\0';
        if (strchr(line, '(')) continue;
        for (char *field = strtok(line, ", \n"); field; field = strtok(NULL, ", \n"), count++)
            if (!is_known(name, field)) fail_msg("add %s.%s to the table of this test", name, field);
    }
    return count;
}

static int check_header(const char *path) {
    static char text[1 << 17];
    int count = 0;
    FILE *f = fopen(path, "r");
    assert_non_null(f);
    text[fread(text, 1, sizeof text - 1, f)] = '\0';
    fclose(f);
    blank_comments(text);
    for (char *at = text; (at = strstr(at, "typedef struct "));) {
        char name[64] = "", *body, *end;
        at += 15;
        sscanf(at, "%63[a-z0-9_] {", name);
        body = at + strcspn(at, "{;");
        if (*body != '{') continue;
        end = strstr(body, "\n}");
        assert_non_null(end);
        if (holds_options(name)) count += check_body(name, body, end);
        at = end + 1;
    }
    return count;
}

static void test_table(void **state) {
    const char *root = getenv("WEFT_SOURCE_DIR");
    char pattern[4096];
    glob_t headers;
    int count = 0;
    (void)state;
    snprintf(pattern, sizeof pattern, "%s/include/weft/*.h", root ? root : ".");
    assert_int_equal(glob(pattern, 0, NULL, &headers), 0);
    for (size_t i = 0; i < headers.gl_pathc; i++) count += check_header(headers.gl_pathv[i]);
    globfree(&headers);
    assert_true(count > 60); /* or the reader of headers is wrong */
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_zero, setup, teardown),
                                       cmocka_unit_test_setup_teardown(test_identity, setup, teardown),
                                       cmocka_unit_test(test_table)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
