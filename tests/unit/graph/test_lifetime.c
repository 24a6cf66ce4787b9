/* Things that a correct program may free early: tensors that recorded work reads, scopes out of order,
 * models before their optimizers, strings after the call, contexts with all of these still open. The result
 * must be a valid value or an error that says what to do. The address sanitizer finds the rest. */
#include <weft/loader.h>
#include "unit/core_help.h"

static int setup(void **state) {
    *state = open_device(NULL, false);
    return 0;
}

static int teardown(void **state) {
    weft_close(*state);
    return 0;
}

static void assert_values(weft_tensor *t, float first, float second) {
    float got[2];
    assert_ok(weft_read(t, got, sizeof got));
    assert_float_equal(got[0], first, 1e-6);
    assert_float_equal(got[1], second, 1e-6);
}

/* Data that outlives the scope in which it was made. */
static weft_tensor *kept(weft_context *ctx, float first, float second) {
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *t = weft_keep(weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){first, second}));
    weft_scope_close(scope);
    return t;
}

/* Reuses the structs and buffers that were freed last. */
static void reuse(weft_context *ctx) {
    for (int i = 0; i < 50; i++) (void)weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){-100, -100});
}

static size_t count_kept(weft_context *ctx) {
    size_t n = 0;
    for (const weft_tensor *t = ctx->graph->kept; t; t = t->next) n++;
    return n;
}

/* ---- freed tensors that recorded work reads ---- */

static void test_read_after_free(void **state) {
    weft_context *ctx = *state;
    size_t before = count_kept(ctx);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *t = kept(ctx, 1, 2), *twice = weft_mul_scalar(t, 2), *sum = weft_add(t, t);
    weft_free(t);
    weft_free(t); /* freeing twice is harmless: recorded work holds t */
    reuse(ctx);
    assert_values(twice, 2, 4);
    assert_int_equal(count_kept(ctx), before + 1); /* sum still reads t */
    assert_values(sum, 2, 4);
    assert_int_equal(count_kept(ctx), before);
    weft_scope_close(scope);
}

/* Work that is never evaluated releases its inputs when its scope closes, whether it reads a tensor
 * directly or not. */
static void test_let_go_with_the_scope(void **state) {
    weft_context *ctx = *state;
    size_t before = count_kept(ctx);
    weft_scope *scope = weft_scope_open(ctx), *inner = weft_scope_open(ctx);
    weft_tensor *t = kept(ctx, 1, 2), *y = weft_exp(weft_neg(t));
    weft_free(t);
    weft_scope_close(inner);
    assert_int_equal(count_kept(ctx), before);
    assert_int_equal(weft_tensor_status(y), WEFT_ERR_STATE);
    weft_scope_close(scope);
}

static void test_freed_in_an_inner_scope(void **state) {
    weft_context *ctx = *state;
    weft_tensor *t = kept(ctx, 3, 4), *y = weft_neg(t);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *z = weft_keep(weft_neg(y));
    weft_free(t);
    weft_scope_close(scope);
    reuse(ctx);
    assert_values(y, -3, -4);
    assert_values(z, 3, 4);
    weft_free(z);
}

static void test_kept_again(void **state) {
    weft_context *ctx = *state;
    weft_tensor *t = kept(ctx, 3, 4), *y = weft_neg(t);
    weft_free(t);
    assert_ptr_equal(weft_keep(t), t); /* y holds t, so t can be kept again */
    assert_values(y, -3, -4);
    assert_values(t, 3, 4);
    weft_free(t);
}

static void test_variable_freed(void **state) {
    weft_context *ctx = *state;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){5, 6});
    weft_scope_close(scope);
    weft_tensor *square = weft_square(v), *loss = weft_sum(square, 0, false), *gradient;
    assert_ok(weft_gradient(loss, &v, 1, &gradient));
    weft_free(v);
    reuse(ctx);
    assert_values(gradient, 10, 12);
    assert_float_equal(weft_item(loss), 61, 1e-6);
}

/* A program may never open a scope, and freeing must work for it too. An optimizer frees the old block of
 * parameters when it changes the layout. */
static void test_variable_freed_without_a_scope(void **state) {
    weft_context *ctx = *state;
    const size_t kept = count_kept(ctx), temporaries = ctx->root_scope->count;
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_tensor *y = weft_neg(v);
    weft_free(v);
    assert_values(y, -1, -2);
    weft_module *m = weft_nn_mlp(ctx, (const int64_t[]){64, 64}, 2, NULL);
    weft_optimizer *opt = weft_adam(m, &(weft_adam_options){.lr = 0.1});
    for (int i = 0; i < 2; i++) {
        weft_scope *scope = weft_scope_open(ctx);
        assert_ok(weft_module_compute(m, i == 0 ? WEFT_F32 : WEFT_BF16));
        y = weft_forward(m, weft_from(ctx, WEFT_F32, SHAPE(1, 64), (const float[64]){1}));
        assert_ok(weft_optimizer_step(opt, weft_mean(y, WEFT_ALL_AXES, false)));
        weft_scope_close(scope);
    }
    weft_optimizer_free(opt);
    weft_module_free(m);
    assert_int_equal(count_kept(ctx), kept);
    assert_int_equal(ctx->root_scope->count, temporaries + 1); /* y */
}

/* A kept tensor that could not be evaluated is poisoned and holds no inputs any more. */
static void test_poisoned_at_the_end(void **state) {
    weft_context *ctx = *state;
    size_t before = count_kept(ctx);
    weft_tensor *t = kept(ctx, 1, 2);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *y = weft_keep(weft_neg(t));
    assert_ok(weft_write(t, (float[]){7, 8}, 8));
    weft_free(t);
    weft_scope_close(scope);
    assert_int_equal(weft_tensor_status(y), WEFT_ERR_STALE);
    assert_int_equal(count_kept(ctx), before + 1);
    weft_free(y);
    assert_int_equal(count_kept(ctx), before);
}

static void test_assigned_below_a_reader(void **state) {
    weft_context *ctx = *state;
    weft_tensor *t = kept(ctx, 1, 2), *y = weft_neg(t), *next = weft_mul_scalar(t, 10);
    assert_ok(weft_assign(&t, &next, 1));
    weft_free(t);
    reuse(ctx);
    float got[2];
    assert_int_equal(weft_read(y, got, sizeof got), WEFT_ERR_STALE);
    assert_non_null(strstr(weft_last_error(ctx), "weft_keep"));
}

/* A program keeps alive what its outputs need. */
static void test_program_of_freed(void **state) {
    weft_context *ctx = *state;
    size_t before = count_kept(ctx);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *t = kept(ctx, 1, 2), *out = weft_neg(t);
    weft_free(t);
    weft_program *program;
    assert_ok(weft_compile(&out, 1, NULL, NULL, 0, &program));
    reuse(ctx);
    assert_ok(weft_program_run(program));
    assert_values(out, -1, -2);
    weft_program_free(program);
    weft_scope_close(scope);
    assert_int_equal(count_kept(ctx), before);
}

/* Programs and recorded work hold tensors independently of each other. */
static void test_program_and_reader(void **state) {
    weft_context *ctx = *state;
    size_t before = count_kept(ctx);
    weft_tensor *t = kept(ctx, 1, 2);
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *out = weft_neg(t), *y = weft_mul_scalar(t, 2);
    weft_program *program;
    assert_ok(weft_compile(&out, 1, NULL, NULL, 0, &program));
    weft_free(t);
    reuse(ctx);
    assert_ok(weft_program_run(program));
    assert_values(out, -1, -2);
    weft_program_free(program);
    assert_values(y, 2, 4);
    weft_scope_close(scope);
    assert_int_equal(count_kept(ctx), before);
}

/* Work recorded on a batch may outlive the loader, wherever the data is. */
static void test_loader_freed(void **state) {
    weft_context *ctx = *state;
    float rows[3][2] = {{1, 2}, {3, 4}, {5, 6}};
    const weft_array data = {.dtype = WEFT_F32, .rank = 2, .shape = {3, 2}, .data = rows};
    for (int i = 0; i < 2; i++) {
        size_t before = count_kept(ctx);
        weft_scope *scope = weft_scope_open(ctx), *inner = weft_scope_open(ctx);
        weft_loader *loader;
        weft_batch batch;
        const weft_loader_options options = {.batch = 3, .in_order = true, .device_bytes = i ? -1 : 0};
        assert_ok(weft_loader_new(ctx, &data, NULL, &options, &loader));
        weft_scope_close(inner);
        assert_ok(weft_loader_get(loader, 0, &batch));
        weft_tensor *sum = weft_sum(batch.x, 0, false);
        weft_loader_free(loader);
        reuse(ctx);
        assert_values(sum, 9, 12);
        weft_scope_close(scope);
        assert_int_equal(count_kept(ctx), before);
    }
    weft_array less = data;
    less.bytes = 8; /* less than the shape needs */
    weft_loader *none;
    assert_int_equal(weft_loader_new(ctx, &less, NULL, &(weft_loader_options){.batch = 3}, &none),
                     WEFT_ERR_ARGUMENT);
    assert_null(none);
}

/* ---- patterns of ownership ---- */

typedef void ownership(weft_context *ctx);

static weft_tensor *data(weft_context *ctx) { return weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){1, 2}); }
static void kept_and_freed(weft_context *ctx) { weft_free(weft_keep(data(ctx))); }
static void both_kept(weft_context *ctx) {
    weft_tensor *t = weft_keep(data(ctx)), *y = weft_keep(weft_tanh(t));
    assert_ok(weft_eval(&y, 1));
    weft_free(y);
    weft_free(t);
}
static void input_freed_first(weft_context *ctx) {
    weft_tensor *t = weft_keep(data(ctx)), *y = weft_keep(weft_tanh(t));
    weft_free(t);
    assert_values(y, tanhf(1), tanhf(2));
    weft_free(y);
}
static void never_evaluated(weft_context *ctx) {
    weft_tensor *t = weft_keep(data(ctx)), *y = weft_keep(weft_tanh(t));
    weft_free(t);
    weft_free(y);
}
static void chain_freed_from_the_start(weft_context *ctx) {
    weft_tensor *list[6] = {weft_keep(data(ctx))};
    for (int i = 1; i < 6; i++) list[i] = weft_keep(weft_tanh(list[i - 1]));
    assert_ok(weft_eval(&list[5], 1));
    for (int i = 0; i < 6; i++) weft_free(list[i]);
}
static void inside_a_scope(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    both_kept(ctx);
    (void)weft_exp(data(ctx));
    weft_scope_close(scope);
}
static void evaluated_at_the_end_of_a_scope(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *y = weft_keep(weft_tanh(data(ctx)));
    weft_scope_close(scope);
    assert_values(y, tanhf(1), tanhf(2));
    weft_free(y);
}
static void freed_in_its_scope(weft_context *ctx) {
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *t = weft_keep(data(ctx)), *y = weft_tanh(t);
    weft_free(t);
    assert_values(y, tanhf(1), tanhf(2));
    weft_scope_close(scope);
}
static void gradient_of_kept(weft_context *ctx) {
    weft_tensor *grad;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *t = weft_keep(data(ctx)), *y = weft_keep(weft_square(t));
    assert_values(y, 1, 4);
    assert_ok(weft_gradient(weft_sum(y, WEFT_ALL_AXES, false), &t, 1, &grad));
    assert_values(grad, 2, 4);
    weft_scope_close(scope);
    weft_free(y);
    weft_free(t);
}
static void variable_and_assignment(weft_context *ctx) {
    weft_tensor *v = weft_variable_new(ctx, "v", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *next = weft_add_scalar(v, 1);
    assert_ok(weft_assign(&v, &next, 1));
    weft_scope_close(scope);
    assert_values(v, 2, 3);
    weft_free(v);
}

static size_t host_bytes;

/* Counts the bytes, which lie before each block. */
static void *count_bytes(void *user, void *old, size_t bytes) {
    size_t *block = old ? (size_t *)old - 2 : NULL;
    (void)user;
    if (block) host_bytes -= block[0];
    if (!bytes) return free(block), NULL;
    block = realloc(block, bytes + 2 * sizeof *block);
    assert_non_null(block);
    host_bytes += block[0] = bytes;
    return block + 2;
}

/* Ten patterns, with no scope around them. After each, nothing is left but structs to be used again. */
static void test_patterns_leave_nothing(void **state) {
    weft_context *ctx;
    (void)state;
    assert_ok(weft_open(&(weft_open_options){.threads = 1, .alloc = count_bytes}, &ctx));
    ownership *const patterns[] = {kept_and_freed,
                                   both_kept,
                                   input_freed_first,
                                   never_evaluated,
                                   chain_freed_from_the_start,
                                   inside_a_scope,
                                   evaluated_at_the_end_of_a_scope,
                                   freed_in_its_scope,
                                   gradient_of_kept,
                                   variable_and_assignment};
    for (size_t p = 0; p < sizeof patterns / sizeof *patterns; p++) {
        for (int i = 0; i < 5000; i++) patterns[p](ctx); /* more than freed structs rest */
        const size_t kept = count_kept(ctx), bytes = ctx->device->bytes_in_use, host = host_bytes;
        for (int i = 0; i < 10000; i++) patterns[p](ctx);
        if (count_kept(ctx) != kept || ctx->root_scope->count) fail_msg("pattern %zu leaves tensors", p);
        if (ctx->device->bytes_in_use != bytes) fail_msg("pattern %zu leaves data", p);
        if (host_bytes > host) fail_msg("pattern %zu leaves %zu bytes", p, host_bytes - host);
    }
    weft_close(ctx);
    assert_int_equal(host_bytes, 0);
}

/* A handle of a freed tensor is an error, whatever was recorded since. */
static void test_stale_handles(void **state) {
    weft_context *ctx = *state;
    weft_tensor *stale[100];
    weft_scope *scope = weft_scope_open(ctx);
    for (int i = 0; i < 100; i++) stale[i] = data(ctx);
    weft_scope_close(scope);
    for (int round = 0; round < 20; round++) {
        scope = weft_scope_open(ctx);
        for (int i = 0; i < 100; i++) (void)weft_full(ctx, WEFT_F32, SHAPE(7), 1);
        for (int i = 0; i < 100; i++) {
            assert_int_equal(weft_tensor_status(stale[i]), WEFT_ERR_STATE);
            assert_int_equal(weft_numel(stale[i]), -1);
        }
        weft_scope_close(scope);
    }
}

/* ---- tensors used after their scope ---- */

static void test_used_after_scope(void **state) {
    weft_context *ctx = *state;
    weft_scope *scope = weft_scope_open(ctx);
    weft_tensor *x = weft_full(ctx, WEFT_F32, SHAPE(2), 1);
    for (int i = 0; i < 10; i++) x = weft_neg(x);
    weft_scope_close(scope);
    float got[2];
    assert_int_equal(weft_rank(x), -1);
    assert_int_equal(weft_read(x, got, sizeof got), WEFT_ERR_STATE);
    assert_non_null(strstr(weft_last_error(ctx), "weft_keep"));
    assert_non_null(strstr(weft_last_error(ctx), "test_lifetime.c:"));
    weft_tensor *y = weft_exp(x), *live = weft_full(ctx, WEFT_F32, SHAPE(2), 2), *z = weft_add(live, x);
    assert_int_equal(weft_tensor_status(y), WEFT_ERR_STATE);
    assert_int_equal(weft_tensor_status(z), WEFT_ERR_STATE);
    assert_non_null(strstr(weft_last_error(ctx), "operand 2"));
    assert_ptr_equal(weft_keep(x), x);
    weft_free(x);
    assert_int_equal(weft_assign(&live, &x, 1), WEFT_ERR_STATE);
    assert_true(isnan(weft_item(x)));
    reuse(ctx); /* y has its own error message, even if the struct of x is in use again */
    assert_int_equal(weft_tensor_status(y), WEFT_ERR_STATE);
    assert_values(live, 2, 2);
}

/* ---- scopes out of order ---- */

static void test_scopes_out_of_order(void **state) {
    weft_context *ctx = *state;
    weft_scope *first = weft_scope_open(ctx);
    weft_tensor *x = weft_full(ctx, WEFT_F32, SHAPE(2), 1);
    weft_scope *outer = weft_scope_open(ctx), *inner = weft_scope_open(ctx);
    weft_tensor *y = weft_keep(weft_neg(x));
    weft_scope_close(outer);
    weft_scope_close(inner); /* the outer close also closed it, but not the scopes around */
    assert_int_equal(weft_last_status(ctx), WEFT_ERR_STATE);
    assert_ptr_equal(ctx->scope, first);
    assert_values(weft_neg(x), -1, -1);
    assert_values(y, -1, -1);
    weft_scope_close(first);
    weft_free(y);
}

/* ---- models freed before what was made for them ---- */

static void test_module_freed_first(void **state) {
    weft_context *ctx = *state;
    size_t before = count_kept(ctx);
    weft_scope *scope = weft_scope_open(ctx);
    weft_module *net = weft_nn_linear(ctx, 2, 1, NULL);
    weft_optimizer *opt = weft_adamw(net, &(weft_adam_options){.lr = 0.1, .clip = 1});
    weft_tensor *x = weft_full(ctx, WEFT_F32, SHAPE(3, 2), 1), *loss, *same;
    loss = weft_mean(weft_square(weft_forward(net, x)), WEFT_ALL_AXES, false);
    same = weft_mean(weft_square(weft_forward(net, x)), WEFT_ALL_AXES, false);
    const double wanted = weft_item(same);
    weft_scope *inner = weft_scope_open(ctx);
    weft_program *program;
    weft_tensor *held = weft_sum(weft_forward(net, x), WEFT_ALL_AXES, false);
    assert_ok(weft_optimizer_hold(opt, held, &program));
    weft_scope_close(inner);
    weft_module_free(net);
    reuse(ctx);
    assert_int_equal(weft_optimizer_step(opt, loss), WEFT_ERR_STATE);
    assert_non_null(strstr(weft_last_error(ctx), "module was freed"));
    assert_int_equal(weft_optimizer_run(opt, program), WEFT_ERR_STATE);
    assert_int_equal(weft_optimizer_set_lr(opt, 1), WEFT_ERR_STATE);
    assert_int_equal(weft_optimizer_state_count(opt), 0);
    assert_true(isnan(weft_optimizer_lr(opt)) && isnan(weft_optimizer_grad_norm(opt)));
    assert_string_equal(weft_optimizer_kind(opt), "adamw");
    assert_float_equal(weft_item(loss), wanted, 1e-6); /* the forward pass still reads the weights */
    assert_ok(weft_program_run(program));              /* the held step has all it needs */
    weft_optimizer_free(opt);
    weft_program_free(program);
    weft_scope_close(scope);
    assert_int_equal(count_kept(ctx), before);
}

static void test_optimizer_freed_before_a_step(void **state) {
    weft_context *ctx = *state;
    weft_module *net = weft_nn_linear(ctx, 2, 1, NULL);
    weft_tensor *loss = weft_mean(weft_square(weft_forward(net, weft_full(ctx, WEFT_F32, SHAPE(3, 2), 1))),
                                  WEFT_ALL_AXES, false);
    weft_optimizer *first = weft_adamw(net, &(weft_adam_options){.lr = 0.1}), *second;
    weft_optimizer_free(first);
    second = weft_sgd(net, &(weft_sgd_options){.lr = 0.1});
    assert_ok(weft_optimizer_step(second, loss)); /* the loss belongs to the module, not to the optimizer */
    weft_module_free(net);                        /* weft_close frees the optimizer */
}

static void test_cache_outlives_model(void **state) {
    weft_context *ctx = *state;
    weft_module *gpt =
        weft_nn_gpt(ctx, &(weft_gpt_options){.vocab = 5, .context = 4, .width = 4, .heads = 1, .layers = 1});
    weft_decode_state *freed = weft_decode_state_new(gpt), *left = weft_decode_state_new(gpt);
    float logits[5];
    assert_ok(weft_gpt_feed(freed, (int32_t[]){1}, 1, logits));
    weft_module_free(gpt);
    assert_int_equal(weft_gpt_feed(freed, (int32_t[]){1}, 1, logits), WEFT_ERR_STATE);
    assert_int_equal(weft_decode_state_length(freed) + weft_decode_state_capacity(left), 0);
    weft_decode_state_reset(freed);
    weft_decode_state_free(freed); /* weft_close frees the other one */
}

/* ---- strings of the caller that are freed or changed when Weft prints them ---- */

/* Overwrites text, frees it, and returns NULL. */
static char *gone(char *text) {
    memset(text, 'X', strlen(text));
    free(text);
    return NULL;
}

static void assert_says(const char *text) {
    if (!strstr(weft_last_error(NULL), text)) print_error("%s\n", weft_last_error(NULL));
    assert_non_null(strstr(weft_last_error(NULL), text));
}

/* One buffer for the locations of two ops, as bindings to other languages use it. */
static void test_location_freed(void **state) {
    weft_context *ctx = *state;
    weft_tensor *w = weft_variable_new(ctx, "w", WEFT_F32, SHAPE(2), (float[]){1, 2});
    weft_scope *scope = weft_scope_open(ctx);
    char *where = strdup("model.py:12");
    weft_tensor *y = weft_exp_at(where, w), *again = weft_exp_at(where, w);
    strcpy(where, "model.py:34");
    weft_tensor *z = weft_neg_at(where, w), *bad = weft_matmul_at(where, w, NULL);
    where = gone(where);
    assert_ok(weft_write(w, (float[]){3, 4}, 2 * sizeof(float)));
    float got[2];
    assert_int_equal(weft_read(y, got, sizeof got), WEFT_ERR_STALE);
    assert_says("model.py:12: exp");
    assert_int_equal(weft_read(again, got, sizeof got), WEFT_ERR_STALE);
    assert_says("model.py:12: exp");
    assert_int_equal(weft_read(z, got, sizeof got), WEFT_ERR_STALE);
    assert_says("model.py:34: neg");
    assert_int_equal(weft_tensor_status(bad), WEFT_ERR_ARGUMENT);
    assert_says("model.py:34: ");
    weft_scope_close(scope);
    assert_int_equal(weft_tensor_status(z), WEFT_ERR_STATE); /* also for freed tensors */
    assert_says("model.py:34: ");
    weft_free(w);
}

/* More locations in one buffer than the table of recent locations has entries; and no location at all. */
static void test_many_locations(void **state) {
    weft_context *ctx = *state;
    weft_tensor *w = weft_variable_new(ctx, "w", WEFT_F32, SHAPE(2), (float[]){1, 2}), *y[200];
    char where[200][32], wanted[40];
    for (int i = 0; i < 200; i++) {
        snprintf(where[i], sizeof where[i], "loop.py:%d", i);
        y[i] = weft_exp_at(where[i], w);
    }
    weft_tensor *nowhere = weft_exp_at(NULL, w);
    memset(where, 'X', sizeof where);
    assert_ok(weft_write(w, (float[]){3, 4}, 2 * sizeof(float)));
    for (int i = 0; i < 200; i++) {
        snprintf(wanted, sizeof wanted, "loop.py:%d: exp", i);
        assert_int_equal(weft_eval(&y[i], 1), WEFT_ERR_STALE);
        assert_says(wanted);
    }
    assert_int_equal(weft_eval(&nowhere, 1), WEFT_ERR_STALE);
    assert_null(strstr(weft_last_error(ctx), ".py"));
    weft_free(w);
}

static weft_tensor *double_it(weft_module *m, weft_tensor *x) {
    return weft_mul(x, weft_parameter(m, "weight"));
}

static void test_names_freed(void **state) {
    weft_context *ctx = *state;
    char *kind = strdup("scaling"), *weight = strdup("weight"), *layer = strdup("layer"),
         *pattern = strdup("layer.*"), *op_name = strdup("twice"), *expression = strdup("a + a");
    weft_module *root = weft_module_new(ctx, "root", double_it, NULL),
                *child = weft_module_new(ctx, kind, double_it, NULL);
    assert_ok(weft_module_parameter(child, weight, WEFT_F32, SHAPE(2), NULL));
    weft_module_child(root, layer, child);
    weft_optimizer *opt = weft_sgd(root, &(weft_sgd_options){.lr = 1});
    assert_ok(weft_optimizer_group(opt, &(weft_group_options){.pattern = pattern, .lr_scale = 1e-30}));
    weft_defined_op *op;
    assert_ok(
        weft_op_define(ctx, &(weft_op_options){.name = op_name, .expression = expression, .arity = 1}, &op));
    gone(kind), gone(weight), gone(layer), gone(pattern), gone(op_name), gone(expression);
    weft_parameter_info info;
    assert_true(weft_parameter_find(root, "layer.weight", &info));
    assert_string_equal(weft_module_kind(child), "scaling");
    assert_string_equal(weft_module_path(child), "layer");
    float before[2], after[2];
    assert_ok(weft_read(info.tensor, before, sizeof before));
    weft_tensor *x = weft_from(ctx, WEFT_F32, SHAPE(2), (float[]){1, 2});
    assert_ok(weft_optimizer_step(opt, weft_sum(weft_forward(child, x), WEFT_ALL_AXES, false)));
    assert_ok(weft_read(info.tensor, after, sizeof after));
    assert_memory_equal(before, after, sizeof before); /* the learning rate of this group is almost 0 */
    assert_values(weft_op_apply(op, &x), 2, 4);
    weft_tensor *wide = weft_cast(x, WEFT_I32);
    assert_int_equal(weft_tensor_status(weft_op_apply(op, &wide)), WEFT_ERR_DTYPE);
    assert_says("twice: ");
    weft_optimizer_free(opt);
    weft_module_free(root);
}

/* Closes a context in which everything is open: work never evaluated, programs, scopes, freed tensors that
 * are still read. */
static void test_close_with_all_open(void **state) {
    (void)state;
    weft_context *ctx = open_device(NULL, false);
    weft_tensor *t = kept(ctx, 1, 2);
    for (int i = 0; i < 3; i++) {
        assert_non_null(weft_scope_open(ctx));
        (void)weft_keep(weft_neg(t));
        (void)weft_exp(weft_neg(t));
    }
    weft_tensor *out = weft_neg(t);
    weft_program *program;
    assert_ok(weft_compile(&out, 1, NULL, NULL, 0, &program));
    weft_free(t);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_after_free, setup, teardown),
        cmocka_unit_test_setup_teardown(test_let_go_with_the_scope, setup, teardown),
        cmocka_unit_test_setup_teardown(test_freed_in_an_inner_scope, setup, teardown),
        cmocka_unit_test_setup_teardown(test_kept_again, setup, teardown),
        cmocka_unit_test_setup_teardown(test_variable_freed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_variable_freed_without_a_scope, setup, teardown),
        cmocka_unit_test_setup_teardown(test_poisoned_at_the_end, setup, teardown),
        cmocka_unit_test_setup_teardown(test_assigned_below_a_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_program_of_freed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_program_and_reader, setup, teardown),
        cmocka_unit_test_setup_teardown(test_loader_freed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_patterns_leave_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_stale_handles, setup, teardown),
        cmocka_unit_test_setup_teardown(test_used_after_scope, setup, teardown),
        cmocka_unit_test_setup_teardown(test_scopes_out_of_order, setup, teardown),
        cmocka_unit_test_setup_teardown(test_module_freed_first, setup, teardown),
        cmocka_unit_test_setup_teardown(test_optimizer_freed_before_a_step, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cache_outlives_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_location_freed, setup, teardown),
        cmocka_unit_test_setup_teardown(test_many_locations, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names_freed, setup, teardown),
        cmocka_unit_test(test_close_with_all_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
