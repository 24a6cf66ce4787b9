/* The loader: contents of a batch, both gathered on the device and by the host thread; the same batch after
 * a jump; padding and masks. */
#define _DEFAULT_SOURCE /* mkstemps */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <weft/loader.h>
#include <weft/nn.h>
#include <weft/ops.h>
#include <weft/optim.h>

enum { ROWS = 11, WIDTH = 3, BATCH = 4 };

static weft_context *ctx;

static int open_context(void **state) {
    (void)state;
    return weft_open(&(weft_open_options){.device = "cpu", .seed = 7}, &ctx) == WEFT_OK ? 0 : -1;
}

static int close_context(void **state) {
    (void)state;
    weft_close(ctx);
    return 0;
}

static float x_data[ROWS][WIDTH];
static int64_t y_data[ROWS];

static void make_arrays(weft_array *x, weft_array *y) {
    for (int i = 0; i < ROWS; i++) {
        y_data[i] = i;
        for (int j = 0; j < WIDTH; j++) x_data[i][j] = (float)(10 * i + j);
    }
    *x = (weft_array){WEFT_F32, 2, {ROWS, WIDTH}, x_data, sizeof x_data};
    *y = (weft_array){WEFT_I64, 1, {ROWS}, y_data, sizeof y_data};
}

typedef struct got {
    float x[BATCH][WIDTH];
    int32_t y[BATCH];
    float mask[BATCH];
    int64_t count;
    double weight;
} got;

static void get(weft_loader *loader, uint64_t position, got *g) {
    weft_batch batch;
    weft_scope *scope = weft_scope_open(ctx);
    assert_int_equal(weft_loader_get(loader, position, &batch), WEFT_OK);
    assert_int_equal(weft_read(batch.x, g->x, sizeof g->x), WEFT_OK);
    assert_int_equal(weft_read(batch.y, g->y, sizeof g->y), WEFT_OK);
    assert_non_null(batch.mask);
    assert_int_equal(weft_read(batch.mask, g->mask, sizeof g->mask), WEFT_OK);
    g->count = batch.count;
    g->weight = batch.weight;
    weft_scope_close(scope);
}

/* Each epoch holds every sample once. Rows and targets belong together. Padding is masked. */
static void epochs_hold_every_sample_once(void **state) {
    (void)state;
    weft_array x, y;
    make_arrays(&x, &y);
    for (int host = 0; host < 2; host++) {
        weft_loader *loader = NULL;
        const weft_loader_options options = {.batch = BATCH, .device_bytes = host ? -1 : 0};
        assert_int_equal(weft_loader_new(ctx, &x, &y, &options, &loader), WEFT_OK);
        assert_int_equal(weft_loader_on_device(loader), !host);
        assert_int_equal(weft_loader_batches(loader), 3);
        int orders_differ = 0, first[ROWS];
        for (uint64_t epoch = 0; epoch < 3; epoch++) {
            int seen[ROWS] = {0}, place = 0;
            for (uint64_t b = 0; b < 3; b++) {
                got g;
                get(loader, 3 * epoch + b, &g);
                assert_int_equal(g.count, b == 2 ? 3 : 4);
                for (int i = 0; i < BATCH; i++) {
                    assert_true(g.mask[i] == (i < g.count ? 1.0f : 0.0f));
                    for (int j = 0; j < WIDTH; j++) assert_true(g.x[i][j] == (float)(10 * g.y[i] + j));
                    if (i >= g.count) continue;
                    seen[g.y[i]]++;
                    if (epoch == 0)
                        first[place++] = g.y[i];
                    else
                        orders_differ += first[place++] != g.y[i];
                }
            }
            for (int i = 0; i < ROWS; i++) assert_int_equal(seen[i], 1);
        }
        assert_true(orders_differ > 0);
        weft_loader_free(loader);
    }
}

/* Bytes of data that a step reads, and bytes that are not allocated yet, as its plan says after a batch. */
static weft_memory_plan plan_after(weft_context *c, weft_loader *loader, uint64_t position,
                                   weft_optimizer *opt, weft_module *net) {
    weft_memory_plan plan;
    weft_batch batch;
    weft_scope *scope = weft_scope_open(c);
    assert_int_equal(weft_loader_get(loader, position, &batch), WEFT_OK);
    weft_tensor *loss = weft_mean(weft_forward(net, batch.x), WEFT_ALL_AXES, false);
    assert_int_equal(weft_optimizer_plan(opt, loss, 1, &plan), WEFT_OK);
    weft_scope_close(scope);
    return plan;
}

/* A batch is 48 bytes of x, 16 of padding and 16 of y. A GPU receives one while a step reads the other. */
static void a_plan_counts_both_buffers_of_a_batch(void **state) {
    (void)state;
    enum { BYTES = 80 };
    weft_array x, y;
    make_arrays(&x, &y);
    for (int gpu = 0; gpu < 2; gpu++) {
        weft_context *c;
        weft_loader *loader = NULL;
        weft_optimizer *opt = NULL;
        const weft_loader_options options = {.batch = BATCH, .device_bytes = -1};
        assert_int_equal(weft_open(&(weft_open_options){.device = gpu ? "null:cuda" : "cpu"}, &c), WEFT_OK);
        assert_int_equal(weft_loader_new(c, &x, &y, &options, &loader), WEFT_OK);
        weft_module *net = weft_nn_linear(c, WIDTH, 1, NULL);
        opt = weft_sgd(net, &(weft_sgd_options){.lr = 0.1});
        weft_memory_plan plans[3];
        for (uint64_t i = 0; i < 3; i++) plans[i] = plan_after(c, loader, i, opt, net);
        for (int i = 0; i < 3; i++)
            assert_int_equal(plans[i].kinds[WEFT_MEMORY_DATA], gpu ? 2 * BYTES : BYTES);
        assert_int_equal(plans[0].pending - plans[1].pending, gpu ? BYTES : 0);
        assert_int_equal(plans[1].pending, plans[2].pending);
        weft_optimizer_free(opt);
        weft_module_free(net);
        weft_loader_free(loader);
        weft_close(c);
    }
}

/* The batch at a position is the same whatever came before, and on both paths (device and host). */
static void batches_depend_on_seed_and_position_alone(void **state) {
    (void)state;
    static const uint64_t positions[] = {5, 0, 1, 2, 100, 3, 4, 5, 5, 1000001, 6};
    weft_array x, y;
    make_arrays(&x, &y);
    weft_loader *device = NULL, *host = NULL, *other = NULL;
    assert_int_equal(weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = BATCH}, &device), WEFT_OK);
    assert_int_equal(
        weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = BATCH, .device_bytes = -1}, &host),
        WEFT_OK);
    assert_int_equal(weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = BATCH, .seed = 8}, &other),
                     WEFT_OK);
    int differ = 0;
    got fifth = {0};
    for (size_t i = 0; i < sizeof positions / sizeof *positions; i++) {
        got a, b, c;
        get(device, positions[i], &a);
        get(host, positions[i], &b);
        get(other, positions[i], &c);
        assert_memory_equal(&a, &b, sizeof a);
        differ += memcmp(&a, &c, sizeof a) != 0;
        if (positions[i] == 5 && i == 0) fifth = a;
        if (positions[i] == 5) assert_memory_equal(&a, &fifth, sizeof a);
    }
    assert_true(differ > 3);
    weft_loader_free(device);
    weft_loader_free(host);
    weft_loader_free(other);
}

/* Three batches of 4 are one batch of 12. Gradient accumulation depends on this. */
static void small_batches_make_up_the_big_one(void **state) {
    (void)state;
    enum { N = 60, TIMES = 12 };
    int32_t ids[N];
    for (int i = 0; i < N; i++) ids[i] = i;
    weft_loader *small = NULL, *big = NULL;
    assert_int_equal(weft_loader_tokens(ctx, ids, N, 5, &(weft_loader_options){.batch = 4}, &small), WEFT_OK);
    assert_int_equal(weft_loader_tokens(ctx, ids, N, 5, &(weft_loader_options){.batch = 12}, &big), WEFT_OK);
    for (uint64_t step = 0; step < 5; step++) {
        int32_t whole[12][5], part[4][5];
        weft_batch batch;
        assert_int_equal(weft_loader_get(big, step, &batch), WEFT_OK);
        assert_int_equal(weft_read(batch.x, whole, sizeof whole), WEFT_OK);
        for (uint64_t k = 0; k < 3; k++) {
            assert_int_equal(weft_loader_get(small, 3 * step + k, &batch), WEFT_OK);
            assert_int_equal(weft_read(batch.x, part, sizeof part), WEFT_OK);
            assert_memory_equal(part, whole[4 * k], sizeof part);
        }
    }
    weft_loader_free(small);
    weft_loader_free(big);
}

static void windows_are_text_and_what_follows(void **state) {
    (void)state;
    enum { N = 23, CONTEXT = 4, WINDOWS = 3 };
    int32_t ids[N];
    for (int i = 0; i < N; i++) ids[i] = 100 + i;
    for (int host = 0; host < 2; host++) {
        weft_loader *random = NULL, *ordered = NULL;
        weft_loader_options options = {.batch = WINDOWS, .device_bytes = host ? -1 : 0};
        int32_t x[WINDOWS][CONTEXT], y[WINDOWS][CONTEXT];
        float mask[WINDOWS][CONTEXT];
        weft_batch batch;
        assert_int_equal(weft_loader_tokens(ctx, ids, N, CONTEXT, &options, &random), WEFT_OK);
        int starts[N] = {0};
        for (uint64_t p = 0; p < 200; p++) {
            weft_scope *scope = weft_scope_open(ctx);
            assert_int_equal(weft_loader_get(random, p, &batch), WEFT_OK);
            assert_null(batch.mask);
            assert_int_equal(weft_read(batch.x, x, sizeof x), WEFT_OK);
            assert_int_equal(weft_read(batch.y, y, sizeof y), WEFT_OK);
            for (int w = 0; w < WINDOWS; w++) {
                starts[x[w][0] - 100]++;
                for (int t = 0; t < CONTEXT; t++) {
                    assert_int_equal(x[w][t], x[w][0] + t);
                    assert_int_equal(y[w][t], x[w][t] + 1);
                }
            }
            weft_scope_close(scope);
        }
        for (int i = 0; i < N; i++)
            assert_int_equal(starts[i] > 0, i < N - CONTEXT); /* every possible start, and none beyond */
        weft_loader_free(random);
        options.in_order = true;
        assert_int_equal(weft_loader_tokens(ctx, ids, N, CONTEXT, &options, &ordered), WEFT_OK);
        assert_int_equal(weft_loader_batches(ordered), 2);
        int predicted[N + 1] = {0}, count = 0;
        for (uint64_t p = 0; p < 2; p++) {
            assert_int_equal(weft_loader_get(ordered, p, &batch), WEFT_OK);
            assert_int_equal(weft_read(batch.x, x, sizeof x), WEFT_OK);
            assert_int_equal(weft_read(batch.y, y, sizeof y), WEFT_OK);
            assert_int_equal(weft_read(batch.mask, mask, sizeof mask), WEFT_OK);
            int ones = 0;
            for (int w = 0; w < WINDOWS; w++)
                for (int t = 0; t < CONTEXT; t++) {
                    if (mask[w][t] == 0) continue;
                    ones++;
                    predicted[y[w][t] - 100]++;
                    assert_int_equal(y[w][t], x[w][t] + 1);
                }
            assert_int_equal(ones, batch.count);
            count += ones;
        }
        assert_int_equal(count, N - 1);
        for (int i = 1; i < N; i++) assert_int_equal(predicted[i], 1);
        weft_loader_free(ordered);
    }
}

static void bytes_are_scaled(void **state) {
    (void)state;
    static uint8_t pixels[4][2] = {{0, 255}, {51, 102}, {1, 2}, {3, 4}};
    float x[2][2];
    const weft_array array = {WEFT_U8, 2, {4, 2}, pixels, sizeof pixels};
    weft_loader *loader = NULL;
    weft_batch batch;
    assert_int_equal(weft_loader_new(ctx, &array, NULL,
                                     &(weft_loader_options){.batch = 2, .in_order = true, .scale = 1.0 / 255},
                                     &loader),
                     WEFT_OK);
    assert_int_equal(weft_loader_get(loader, 0, &batch), WEFT_OK);
    assert_null(batch.y);
    assert_null(batch.mask);
    assert_int_equal(weft_read(batch.x, x, sizeof x), WEFT_OK);
    assert_true(x[0][0] == 0 && x[0][1] == 1);
    assert_float_equal(x[1][0], 0.2f, 1e-6);
    weft_loader_free(loader);
}

static void bad_calls_are_refused(void **state) {
    (void)state;
    weft_array x, y;
    weft_loader *loader = NULL;
    make_arrays(&x, &y);
    assert_int_equal(weft_loader_new(ctx, &x, &y, NULL, &loader), WEFT_ERR_ARGUMENT);
    assert_null(loader);
    y.shape[0] = 10;
    assert_int_equal(weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = 2}, &loader),
                     WEFT_ERR_SHAPE);
    make_arrays(&x, &y);
    assert_int_equal(weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = 2, .classes = 9}, &loader),
                     WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(ctx), "sample 9 is 9"));
    y_data[3] = INT64_C(1) << 40;
    assert_int_equal(weft_loader_new(ctx, &x, &y, &(weft_loader_options){.batch = 2}, &loader),
                     WEFT_ERR_INDEX);
    assert_non_null(strstr(weft_last_error(ctx), "element 3"));
    int32_t ids[4] = {0};
    assert_int_equal(weft_loader_tokens(ctx, ids, 4, 4, &(weft_loader_options){.batch = 2}, &loader),
                     WEFT_ERR_ARGUMENT);
    assert_int_equal(weft_loader_open(ctx, "no/such.npy", NULL, &(weft_loader_options){.batch = 2}, &loader),
                     WEFT_ERR_IO);
    assert_int_equal(weft_loader_open(ctx, "what.txt", NULL, &(weft_loader_options){.batch = 2}, &loader),
                     WEFT_ERR_ARGUMENT);
    assert_null(loader);
}

static void csv_files_are_opened(void **state) {
    (void)state;
    char path[] = "/tmp/weft-loader-XXXXXX.csv";
    int fd = mkstemps(path, 4);
    assert_true(fd >= 0);
    FILE *file = fdopen(fd, "w");
    fputs("a,b,kind\n1,2,x\n3,4,y\n5,6,x\n", file);
    fclose(file);
    weft_loader *loader = NULL;
    weft_batch batch;
    float x[3][2];
    int32_t y[3];
    assert_int_equal(
        weft_loader_open(ctx, path, NULL, &(weft_loader_options){.batch = 3, .in_order = true}, &loader),
        WEFT_OK);
    assert_int_equal(weft_loader_get(loader, 0, &batch), WEFT_OK);
    assert_int_equal(weft_read(batch.x, x, sizeof x), WEFT_OK);
    assert_int_equal(weft_read(batch.y, y, sizeof y), WEFT_OK);
    assert_true(x[1][0] == 3 && x[2][1] == 6);
    assert_true(y[0] == 0 && y[1] == 1 && y[2] == 0);
    weft_loader_free(loader);
    remove(path);
}

/* The mask holds the weights of the samples, divided by their mean, and 0 for padding, also if one batch is
 * the whole data set. */
static void weights_are_the_mask(void **state) {
    (void)state;
    weft_array x, y;
    float weights[ROWS], scaled[ROWS];
    const double mean = 0.5 + (ROWS - 1) / 2.0;
    make_arrays(&x, &y);
    for (int i = 0; i < ROWS; i++)
        weights[i] = 0.5f + (float)i, scaled[i] = (float)((double)weights[i] / mean);
    for (int host = 0; host < 2; host++) {
        weft_loader *loader = NULL;
        weft_loader_options options = {
            .batch = BATCH, .device_bytes = host ? -1 : 0, .weights = weights, .in_order = host};
        assert_int_equal(weft_loader_new(ctx, &x, &y, &options, &loader), WEFT_OK);
        for (uint64_t position = 0; position < 9; position++) {
            got g;
            double sum = 0;
            get(loader, position, &g);
            for (int i = 0; i < BATCH; i++) {
                assert_true(g.mask[i] == (i < g.count ? scaled[g.y[i]] : 0));
                sum += (double)g.mask[i];
            }
            assert_true(g.weight == sum);
        }
        weft_loader_free(loader);
        options.batch = ROWS;
        options.in_order = false;
        assert_int_equal(weft_loader_new(ctx, &x, &y, &options, &loader), WEFT_OK);
        weft_batch batch;
        float mask[ROWS];
        int32_t which[ROWS];
        weft_scope *scope = weft_scope_open(ctx);
        assert_int_equal(weft_loader_get(loader, 3, &batch), WEFT_OK);
        assert_int_equal(weft_read(batch.y, which, sizeof which), WEFT_OK);
        assert_int_equal(weft_read(batch.mask, mask, sizeof mask), WEFT_OK);
        for (int i = 0; i < ROWS; i++) assert_true(mask[i] == scaled[which[i]]);
        weft_scope_close(scope);
        weft_loader_free(loader);
    }
    weights[5] = 0;
    weft_loader *loader = NULL;
    const weft_loader_options options = {.batch = BATCH, .weights = weights};
    assert_int_equal(weft_loader_new(ctx, &x, &y, &options, &loader), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "the weight of sample 5 is 0"));
    const int32_t ids[64] = {0};
    assert_int_equal(weft_loader_tokens(ctx, ids, 64, 4, &options, &loader), WEFT_ERR_ARGUMENT);
    assert_null(loader);
}

/* The batches of a step have one divisor: the mean of the numbers of their targets. An epoch has whole steps,
 * so batches at its end are empty or, with drop_last, left out. */
static void a_step_has_one_divisor(void **state) {
    (void)state;
    static const struct {
        weft_loader_options options;
        int64_t batches;
        float first, last; /* divisors of the first and of the last batch; 0: there is no mask */
    } cases[] = {
        {{.batch = 4}, 3, 4, 3},
        {{.batch = 2, .accumulate = 2}, 6, 2, 1.5F},
        {{.batch = 1, .accumulate = 4}, 12, 1, 0.75F},
        {{.batch = 1}, 11, 0, 0},
        {{.batch = ROWS, .accumulate = 2}, 2, 5.5F, 5.5F},
        {{.batch = 2, .accumulate = 2, .drop_last = true}, 4, 0, 0},
        {{.batch = 4, .accumulate = 3, .drop_last = true}, 2, 0, 0},
        {{.batch = 2, .accumulate = 2, .skip_negative = true}, 6, 1.5F, 0.5F},
        {{.batch = 4, .in_order = true, .skip_negative = true}, 3, 3, 1},
    };
    int32_t targets[ROWS] = {1, 2, -1, 3, 4, -1, 5, 6, -1, -1, 7}; /* 3, 3 and 1 of them count */
    weft_array x, y;
    make_arrays(&x, &y);
    y = (weft_array){WEFT_I32, 1, {ROWS}, targets, sizeof targets};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        weft_loader_options options = cases[i].options;
        weft_loader *loader = NULL;
        weft_batch batch;
        options.in_order = true;
        assert_int_equal(weft_loader_new(ctx, &x, &y, &options, &loader), WEFT_OK);
        assert_int_equal(weft_loader_batches(loader), cases[i].batches);
        for (int last = 0; last < 2; last++) {
            const float wanted = last ? cases[i].last : cases[i].first;
            weft_scope *scope = weft_scope_open(ctx);
            assert_int_equal(weft_loader_get(loader, (uint64_t)(last ? cases[i].batches - 1 : 0), &batch),
                             WEFT_OK);
            assert_true(!batch.divisor == !batch.mask && !batch.divisor == !wanted);
            if (wanted) assert_true((float)weft_item(batch.divisor) == wanted);
            weft_scope_close(scope);
        }
        weft_loader_free(loader);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_hold_every_sample_once),
        cmocka_unit_test(batches_depend_on_seed_and_position_alone),
        cmocka_unit_test(small_batches_make_up_the_big_one),
        cmocka_unit_test(windows_are_text_and_what_follows),
        cmocka_unit_test(bytes_are_scaled),
        cmocka_unit_test(weights_are_the_mask),
        cmocka_unit_test(a_step_has_one_divisor),
        cmocka_unit_test(a_plan_counts_both_buffers_of_a_batch),
        cmocka_unit_test(bad_calls_are_refused),
        cmocka_unit_test(csv_files_are_opened),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
