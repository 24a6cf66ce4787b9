/* exact_sum: the gradients of micro-batches are added in the binary tree that is promised, so that copies of
 * a model that share a step get the bits of one model; and what is refused. */
#include <weft/fit.h>

#include "unit/nn_help.h"

/* ---- the order ---- */

enum { NUMBERS = 32, MOST_PARTS = 19 };

/* Numbers of all sizes, whose sum depends on the order. */
static float number(int part, int i) {
    const int mixed = (part * 7919 + i * 104729 + part * i * 31) % 2003 - 1001;
    return (float)mixed * (part % 3 == 0 ? 1.0F : 3.1e-4F);
}

/* The sum of micro-batches first..first + n: the largest power of two of them, and then the rest. */
static float tree_sum(int first, int n, int i) {
    int half = 1;
    if (n == 1) return number(first, i);
    while (2 * half < n) half *= 2;
    const float left = tree_sum(first, half, i), right = tree_sum(first + half, n - half, i);
    return left + right;
}

static float line_sum(int n, int i) {
    float sum = number(0, i);
    for (int k = 1; k < n; k++) sum += number(k, i);
    return sum;
}

/* One step of SGD from weights of 0, whose gradient in micro-batch k is number(k, ...). */
static void step_of(weft_context *ctx, int of, bool exact, float out[NUMBERS]) {
    const weft_init zeros = {WEFT_INIT_ZEROS, 0};
    weft_module *linear =
        weft_nn_linear(ctx, NUMBERS, 1, &(weft_linear_options){.no_bias = true, .weight = zeros});
    weft_optimizer *sgd = weft_sgd(linear, &(weft_sgd_options){.lr = 1, .exact_sum = exact});
    weft_parameter_info weight;
    for (int k = 0; k < of; k++) {
        float x[NUMBERS];
        for (int i = 0; i < NUMBERS; i++) x[i] = number(k, i);
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *y = weft_forward(linear, weft_from(ctx, WEFT_F32, 2, (int64_t[]){1, NUMBERS}, x));
        assert_ok(weft_optimizer_accumulate(sgd, weft_sum(y, WEFT_ALL_AXES, false), k, of));
        weft_scope_close(scope);
    }
    assert_true(weft_parameter_get(linear, 0, &weight));
    assert_ok(weft_read(weight.tensor, out, NUMBERS * sizeof *out));
    weft_optimizer_free(sgd);
    weft_module_free(linear);
}

static void test_order(void **state) {
    (void)state;
    weft_context *ctx;
    int differ = 0;
    assert_ok(test_open(NULL, &ctx));
    for (int of = 1; of <= MOST_PARTS; of++)
        for (int exact = 0; exact < 2; exact++) {
            float weights[NUMBERS];
            step_of(ctx, of, exact, weights);
            for (int i = 0; i < NUMBERS; i++) {
                const float tree = tree_sum(0, of, i) * (float)(1.0 / of),
                            line = line_sum(of, i) * (float)(1.0 / of);
                differ += tree != line;
                if (weights[i] != -(exact ? tree : line))
                    fail_msg("%d micro-batches, exact_sum %d: weight %d is %.9g, not %.9g", of, exact, i,
                             (double)weights[i], (double)-(exact ? tree : line));
            }
        }
    assert_true(differ > NUMBERS); /* the numbers tell the orders apart */
    weft_close(ctx);
}

/* ---- copies of a model ---- */

enum { ROWS = 88, INPUTS = 3, COPIES = 8, STEPS = 7, WEIGHTS = INPUTS * 8 + 8 + 8 * 2 + 2 };

typedef struct copy {
    weft_context *ctx;
    weft_module *net;
    weft_optimizer *opt;
    weft_loader *loader;
} copy;

static copy make_copy(bool exact) {
    static float numbers[ROWS][INPUTS];
    static int32_t classes[ROWS];
    copy c;
    assert_ok(test_open(&(weft_open_options){.seed = 3}, &c.ctx));
    for (int i = 0; i < ROWS; i++) {
        for (int k = 0; k < INPUTS; k++) numbers[i][k] = (float)((i * 37 + k * 11) % 17) / 5 - 1.6F;
        classes[i] = numbers[i][0] * numbers[i][1] > numbers[i][2];
    }
    const weft_array x = {WEFT_F32, 2, {ROWS, INPUTS}, numbers, sizeof numbers},
                     y = {WEFT_I32, 1, {ROWS}, classes, sizeof classes};
    c.net = weft_nn_mlp(c.ctx, (int64_t[]){INPUTS, 8, 2}, 3, &(weft_mlp_options){.dropout = 0.2});
    c.opt = weft_adamw(c.net, &(weft_adam_options){.lr = 0.02, .clip = 0.5, .exact_sum = exact});
    assert_ok(weft_loader_new(c.ctx, &x, &y, &(weft_loader_options){.batch = 5, .classes = 2}, &c.loader));
    return c;
}

static weft_status take_loss(void *user, const weft_fit_state *state, bool *stop) {
    *stop = false;
    return weft_fit_losses(state, (double *)user + state->step - 1, NULL);
}

static void read_weights(const copy *c, float out[WEIGHTS]) {
    size_t at = 0;
    weft_parameter_info p;
    for (size_t i = 0; weft_parameter_get(c->net, i, &p); i++) {
        const size_t n = (size_t)weft_numel(p.tensor);
        assert_ok(weft_read(p.tensor, out + at, n * sizeof *out));
        at += n;
    }
    assert_int_equal(at, WEIGHTS);
}

/* Trains with steps of so many micro-batches, which the copies share. */
static weft_status train_copies(int copies, int parts, bool exact, float weights[WEIGHTS],
                                double losses[STEPS], char message[256]) {
    copy all[COPIES];
    weft_replica others[COPIES];
    for (int i = 0; i < copies; i++) all[i] = make_copy(exact);
    for (int i = 1; i < copies; i++) others[i - 1] = (weft_replica){all[i].net, all[i].opt, all[i].loader};
    const weft_fit_options options = {.steps = STEPS,
                                      .accumulate = parts,
                                      .on_step = take_loss,
                                      .user = losses,
                                      .replicas = others,
                                      .n_replicas = (size_t)copies - 1};
    const weft_status status = weft_fit(all[0].net, all[0].opt, all[0].loader, &options, NULL);
    snprintf(message, 256, "%s", weft_last_error(all[0].ctx));
    read_weights(&all[0], weights);
    for (int i = 0; i < copies; i++) {
        weft_loader_free(all[i].loader);
        weft_close(all[i].ctx);
    }
    return status;
}

static void test_copies(void **state) {
    (void)state;
    static const struct {
        int copies, parts;
    } cases[] = {{2, 8}, {4, 8}, {8, 8}, {2, 4}, {4, 4}, {3, 12}, {6, 12}, {5, 5}};
    char message[256];
    int differ = 0;
    if (!test_on_cpu()) return skip(); /* on other devices each variant compiles kernels */
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        float one[WEIGHTS], shared[WEIGHTS], line[WEIGHTS];
        double losses[STEPS], others[STEPS];
        assert_ok(train_copies(1, cases[i].parts, true, one, losses, message));
        assert_ok(train_copies(cases[i].copies, cases[i].parts, true, shared, others, message));
        assert_memory_equal(one, shared, sizeof one);
        assert_memory_equal(losses, others, sizeof losses);
        assert_ok(train_copies(1, cases[i].parts, false, line, losses, message));
        differ += memcmp(one, line, sizeof one) != 0;
    }
    assert_true(differ > 4); /* another order gives other bits */
}

static void test_refused(void **state) {
    (void)state;
    float weights[WEIGHTS];
    double losses[STEPS];
    char message[256];
    if (!test_on_cpu()) return skip();
    assert_int_equal(train_copies(2, 6, true, weights, losses, message), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(message, "each optimizer must add 1, 2, 4, 8, ... micro-batches, not 3"));
    assert_ok(train_copies(2, 6, false, weights, losses, message));
    copy a = make_copy(true), b = make_copy(false);
    const weft_replica other = {b.net, b.opt, b.loader};
    const weft_fit_options options = {.steps = 1, .accumulate = 2, .replicas = &other, .n_replicas = 1};
    assert_int_equal(weft_fit(a.net, a.opt, a.loader, &options, NULL), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(a.ctx), "all optimizers must have it"));
    weft_loader_free(a.loader);
    weft_loader_free(b.loader);
    weft_close(a.ctx);
    weft_close(b.ctx);
}

static uint64_t planned_states(bool exact, int parts) {
    weft_memory_plan plan;
    weft_batch batch;
    copy c = make_copy(exact);
    weft_scope *scope = weft_scope_open(c.ctx);
    assert_ok(weft_loader_get(c.loader, 0, &batch));
    weft_tensor *loss = weft_batch_loss(WEFT_LOSS_CROSS_ENTROPY, weft_forward(c.net, batch.x), &batch);
    assert_ok(weft_optimizer_plan(c.opt, loss, parts, &plan));
    weft_scope_close(scope);
    weft_loader_free(c.loader);
    weft_close(c.ctx);
    return plan.states;
}

/* The plan of a step counts the sums that it keeps: one, or log2 of the micro-batches. */
static void test_plan(void **state) {
    (void)state;
    const uint64_t line = planned_states(false, 8), sum = planned_states(true, 4) - line;
    assert_true(sum >= WEIGHTS * sizeof(float));
    assert_int_equal(planned_states(false, 16), line);
    assert_int_equal(planned_states(true, 2), line);
    assert_int_equal(planned_states(true, 8), line + 2 * sum);
    assert_int_equal(planned_states(true, 9), line + 3 * sum);
    assert_int_equal(planned_states(true, 16), line + 3 * sum);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order), cmocka_unit_test(test_copies),
                                       cmocka_unit_test(test_refused), cmocka_unit_test(test_plan)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
