/* The device c99: graphs of many kinds become C source, which gcc compiles without warnings and which gives
 * what the cpu gives. What cannot be written is refused by name. Needs gcc. */
#include <dlfcn.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include <weft/ops.h>
#include <weft/tensor.h>
#include "device/c99/c99.h"
#include "graph/graph.h"
#include "unit/io_scratch.h"

enum { INPUTS = 384, SOURCE = 1 << 20 };
static const int64_t shape[4] = {2, 3, 8, 8};
static float input[INPUTS];

static void fill(float *values, size_t count, unsigned seed) {
    for (size_t i = 0; i < count; i++) {
        seed = seed * 1664525U + 1013904223U;
        values[i] = (float)(seed >> 8) * 0x1p-23F - 1; /* -1 to 1 */
    }
}

static weft_tensor *constant(weft_context *ctx, int rank, const int64_t *extents) {
    static float values[1 << 16];
    int64_t count = 1;
    for (int i = 0; i < rank; i++) count *= extents[i];
    fill(values, (size_t)count, 7U + (unsigned)count);
    return weft_from(ctx, WEFT_F32, rank, extents, values);
}

/* ---- graphs of x (2, 3, 8, 8) ---- */

static weft_tensor *flat(weft_tensor *x) { return weft_reshape(x, 1, (int64_t[]){-1}); }

static weft_tensor *join(weft_tensor **parts, int count) {
    for (int i = 0; i < count; i++) parts[i] = flat(parts[i]);
    return weft_concat(parts, count, 0);
}

static weft_tensor *functions(weft_tensor *x) {
    weft_tensor *p = weft_add_scalar(weft_abs(x), 0.5);
    return join((weft_tensor *[]){weft_exp(x),
                                  weft_exp2(x),
                                  weft_log(p),
                                  weft_log2(p),
                                  weft_log1p(p),
                                  weft_expm1(x),
                                  weft_sin(x),
                                  weft_cos(x),
                                  weft_tanh(x),
                                  weft_erf(x),
                                  weft_sqrt(p),
                                  weft_rsqrt(p),
                                  weft_recip(p),
                                  weft_floor(x),
                                  weft_ceil(x),
                                  weft_trunc(x),
                                  weft_round(weft_mul_scalar(x, 10)),
                                  weft_relu(x),
                                  weft_sigmoid(x),
                                  weft_gelu(x),
                                  weft_gelu_tanh(x),
                                  weft_neg(x),
                                  weft_pow(p, x)},
                23);
}

static weft_tensor *choices(weft_tensor *x) {
    weft_tensor *y = weft_flip(x, 3), *above = weft_gt(x, y), *small = weft_lt(weft_abs(x), weft_abs(y));
    weft_tensor *both = weft_and(above, weft_not(small)),
                *one = weft_xor(above, weft_or(small, weft_isnan(x)));
    return join((weft_tensor *[]){weft_where(both, x, y), weft_where(one, weft_neg(x), y), weft_maximum(x, y),
                                  weft_minimum(x, y), weft_cast(weft_ge(x, y), WEFT_F32),
                                  weft_div(x, weft_exp(y)),
                                  weft_cast(weft_sum(weft_cast(above, WEFT_I32), 3, false), WEFT_F32)},
                7);
}

static weft_tensor *reductions(weft_tensor *x) {
    weft_tensor *parts[24];
    int n = 0;
    for (int axis = 0; axis < 4; axis++) {
        parts[n++] = weft_sum(x, axis, false);
        parts[n++] = weft_max(x, axis, false);
        parts[n++] = weft_min(x, axis, true);
        parts[n++] = weft_prod(x, axis, false);
        parts[n++] = weft_softmax(x, axis);
    }
    parts[n++] = weft_var(x, 3, 1, true);
    parts[n++] = weft_mean(x, WEFT_ALL_AXES, false);
    parts[n++] =
        weft_layer_norm(x, constant(x->ctx, 1, (int64_t[]){8}), constant(x->ctx, 1, (int64_t[]){8}), 1e-5);
    parts[n++] = weft_mul(x, weft_sum(weft_mul(x, x), 3, true));
    return join(parts, n);
}

static weft_tensor *movements(weft_tensor *x) {
    weft_tensor *turned = weft_permute(x, (int[]){3, 0, 2, 1});
    weft_tensor *odd =
        weft_slice(x, (int64_t[]){0, 2, 1, 7}, (int64_t[]){2, -4, 8, 0}, (int64_t[]){1, -1, 3, -2});
    return join((weft_tensor *[]){weft_reshape(turned, 2, (int64_t[]){12, 32}),
                                  weft_pad(odd, (int64_t[]){1, 0, 2, 1}, (int64_t[]){0, 1, 0, 2}, 0.25),
                                  weft_roll(x, 3, 2), weft_tril(x, 1), weft_unfold(x, 3, 3, 2, 1),
                                  weft_reshape(weft_permute(weft_reshape(turned, 3, (int64_t[]){4, 4, 24}),
                                                            (int[]){2, 0, 1}),
                                               2, (int64_t[]){96, 4}),
                                  weft_expand(weft_narrow(x, 1, 1, 1), 4, shape)},
                7);
}

static weft_tensor *convolutions(weft_tensor *x) {
    weft_context *ctx = x->ctx;
    weft_tensor *each = constant(ctx, 4, (int64_t[]){6, 1, 3, 2}),
                *whole = constant(ctx, 4, (int64_t[]){20, 3, 5, 3});
    weft_tensor *line = constant(ctx, 3, (int64_t[]){4, 3, 3}), *bias = constant(ctx, 1, (int64_t[]){20});
    return join(
        (weft_tensor *[]){
            weft_conv2d(
                x, each, NULL,
                &(weft_conv_options){.groups = 3, .dilation = {2, 3}, .padding = {2, 1}, .stride = {1, 2}}),
            weft_conv2d(x, whole, bias, &(weft_conv_options){.padding = {2, 1}, .stride = {2, 1}}),
            weft_conv2d(x, whole, NULL, &(weft_conv_options){.dilation = {1, 2}, .padding = {0, 3}}),
            weft_conv1d(weft_reshape(x, 3, (int64_t[]){2, 3, 64}), line, NULL, NULL)},
        4);
}

static weft_tensor *pools(weft_tensor *x) {
    const weft_pool_options overlap = {.size = {3, 2}, .stride = {2, 1}, .padding = {1, 1}};
    return join((weft_tensor *[]){weft_max_pool2d(x, &overlap), weft_avg_pool2d(x, &overlap),
                                  weft_adaptive_avg_pool2d(x, 1, 1),
                                  weft_max_pool2d(x, &(weft_pool_options){.size = {2, 2}})},
                4);
}

static weft_tensor *matmuls(weft_tensor *x) {
    weft_context *ctx = x->ctx;
    weft_tensor *rows = weft_reshape(x, 2, (int64_t[]){3, 128}),
                *wide = constant(ctx, 2, (int64_t[]){128, 40});
    weft_tensor *tall = constant(ctx, 2, (int64_t[]){40, 128}),
                *batch = constant(ctx, 3, (int64_t[]){3, 8, 20});
    return join((weft_tensor *[]){weft_matmul(rows, wide), weft_matmul(rows, weft_transpose(tall, 0, 1)),
                                  weft_matmul(x, batch), weft_matmul(weft_transpose(x, 2, 3), x),
                                  weft_matmul(weft_transpose(rows, 0, 1), rows),
                                  weft_gelu(weft_matmul(rows, wide))},
                6);
}

static weft_tensor *attentions(weft_tensor *x) {
    weft_tensor *q = weft_mul_scalar(x, 3), *one = weft_narrow(x, 1, 1, 1), *late = weft_narrow(q, 2, 3, 5);
    return join(
        (weft_tensor *[]){weft_attention(q, x, weft_flip(x, 3), NULL),
                          weft_attention(q, x, x, &(weft_attention_options){.causal = true}),
                          weft_attention(late, x, x, &(weft_attention_options){.causal = true, .scale = 2}),
                          weft_attention(q, one, one, NULL)},
        4);
}

static weft_tensor *indices(weft_tensor *x) {
    weft_context *ctx = x->ctx;
    const int32_t chosen[5] = {7, 0, 3, 3, 1}, place = 2;
    weft_tensor *index = weft_from(ctx, WEFT_I32, 1, (int64_t[]){5}, chosen);
    weft_tensor *offset = weft_from(ctx, WEFT_I32, 0, NULL, &place);
    return join((weft_tensor *[]){weft_gather(x, index, 3), weft_gather(weft_exp(x), index, 2),
                                  weft_one_hot(index, 9, WEFT_F32),
                                  weft_update(x, weft_narrow(weft_neg(x), 2, 0, 3), offset, 2)},
                4);
}

/* ---- what training needs ---- */

/* Returns the gradient of the sum of y squared. */
static weft_tensor *gradient_of(weft_tensor *y, weft_tensor *of) {
    weft_tensor *g;
    assert_int_equal(weft_gradient(weft_sum(weft_mul(y, y), WEFT_ALL_AXES, false), &of, 1, &g), WEFT_OK);
    return g;
}

static weft_tensor *function_gradients(weft_tensor *x) {
    weft_tensor *bits = weft_cast(weft_gt(x, weft_flip(x, 3)), WEFT_I32);
    weft_tensor *two = weft_add(weft_add(bits, bits), bits);
    return join((weft_tensor *[]){gradient_of(weft_gelu(weft_mul_scalar(x, 3)), x),
                                  gradient_of(weft_gelu_tanh(weft_mul_scalar(x, 3)), x),
                                  gradient_of(weft_abs(x), x), gradient_of(weft_softmax(x, 3), x),
                                  weft_sign(x), weft_cast(weft_isinf(weft_recip(weft_relu(x))), WEFT_F32),
                                  weft_cast(weft_shr(weft_not(two), bits), WEFT_F32),
                                  weft_cast(weft_shl(weft_xor(two, bits), two), WEFT_F32)},
                8);
}

static weft_tensor *heavy_gradients(weft_tensor *x) {
    weft_context *ctx = x->ctx;
    weft_tensor *each = constant(ctx, 4, (int64_t[]){6, 1, 3, 2}),
                *whole = constant(ctx, 4, (int64_t[]){20, 3, 5, 3});
    const weft_conv_options grouped = {.groups = 3, .dilation = {2, 3}, .padding = {2, 1}, .stride = {1, 2}},
                            plain = {.padding = {2, 1}, .stride = {2, 1}};
    weft_tensor *causal = weft_attention(x, weft_flip(x, 3), x, &(weft_attention_options){.causal = true});
    return join((weft_tensor *[]){gradient_of(weft_conv2d(x, each, NULL, &grouped), x),
                                  gradient_of(weft_conv2d(x, each, NULL, &grouped), each),
                                  gradient_of(weft_conv2d(x, whole, NULL, &plain), x),
                                  gradient_of(weft_conv2d(x, whole, NULL, &plain), whole),
                                  gradient_of(weft_max_pool2d(x, &(weft_pool_options){.size = {2, 2}}), x),
                                  gradient_of(causal, x)},
                6);
}

static weft_tensor *sums(weft_tensor *x) {
    weft_context *ctx = x->ctx;
    const int32_t chosen[8] = {7, 0, 3, 3, 1, 3, 7, 2};
    weft_tensor *index = weft_from(ctx, WEFT_I32, 1, (int64_t[]){8}, chosen);
    weft_tensor *tall = constant(ctx, 2, (int64_t[]){3000, 20});
    weft_tensor *normal =
        weft_layer_norm(tall, constant(ctx, 1, (int64_t[]){20}), constant(ctx, 1, (int64_t[]){20}), 1e-5);
    return join((weft_tensor *[]){gradient_of(weft_gather(x, index, 3), x), weft_sum(normal, 0, false),
                                  weft_sum(weft_mul(tall, normal), 0, false),
                                  weft_mean(weft_mul(tall, tall), WEFT_ALL_AXES, false)},
                4);
}

static const struct graph {
    const char *name;
    weft_tensor *(*make)(weft_tensor *x);
} graphs[] = {{"functions", functions},
              {"choices", choices},
              {"reductions", reductions},
              {"movements", movements},
              {"convolutions", convolutions},
              {"pools", pools},
              {"matmuls", matmuls},
              {"attentions", attentions},
              {"indices", indices},
              {"function_gradients", function_gradients},
              {"heavy_gradients", heavy_gradients},
              {"sums", sums}};

/* ---- source ---- */

/* Writes a function run(in, out) of the program that ran last. */
static void write_source(weft_context *ctx, const weft_tensor *x, const weft_tensor *y, const char *path) {
    static char text[SOURCE], names[64][16];
    const char *list[64];
    weft_c99_slot *slots;
    int count;
    weft_text out = weft__text(text, sizeof text);
    assert_int_equal(weft__c99_slots(ctx->device, &slots, &count), WEFT_OK);
    assert_true(count <= 64);
    weft__put(&out, "#include <math.h>\n#include <stdint.h>\n#include <string.h>\nvoid run(const float *in, "
                    "float *out);\n");
    const long long bytes = slots[0].buffer ? (long long)slots[0].bytes : 8;
    weft__put(
        &out,
        "static union {float f32[%lld]; int32_t i32[%lld]; int64_t i64[%lld]; uint8_t u8[%lld];} arena;\n",
        bytes / 4, bytes / 4, bytes / 8, bytes);
    for (int i = 0; i < count; i++) {
        list[i] = names[i];
        snprintf(names[i], sizeof names[i], i ? "c%d" : "arena", i);
        if (!slots[i].buffer || i == 0) continue;
        if (slots[i].buffer == x->storage->buffer) list[i] = "in";
        if (slots[i].buffer == y->storage->buffer) list[i] = "out";
        if (list[i] != names[i]) continue;
        assert_false(slots[i].written);
        const bool whole = slots[i].dtypes == 1U << WEFT_I32;
        weft__put(&out, "static const %s c%d[] = {", whole ? "int32_t" : "float", i);
        for (int64_t k = 0; k < slots[i].bytes / 4; k++) {
            if (whole)
                weft__c99_integer(&out, ((const int32_t *)slots[i].buffer->host)[k]);
            else
                weft__c99_f32(&out, ((const float *)slots[i].buffer->host)[k]);
            weft__put(&out, ",");
        }
        weft__put(&out, "};\n");
    }
    bool used[WEFT_C99_ROUTINES] = {false};
    weft__c99_uses(ctx->device, used);
    weft__c99_routines(used, &out);
    assert_int_equal(weft__c99_functions(ctx->device, "k", &out), WEFT_OK);
    weft__put(&out, "void run(const float *in, float *out) {\n");
    assert_int_equal(weft__c99_statements(ctx->device, "k", list, &out), WEFT_OK);
    weft__put(&out, "}\n");
    weft__free(ctx, slots);
    assert_true(out.length < sizeof text && spill(path, text, out.length));
}

/* Computes a graph on a device. On c99 it also writes the source. */
static void compute(const char *device, const struct graph *graph, float **out, int64_t *count,
                    const char *path) {
    weft_context *ctx = NULL;
    weft_program *program;
    assert_int_equal(weft_open(&(weft_open_options){.device = device}, &ctx), WEFT_OK);
    weft_tensor *x = weft_from(ctx, WEFT_F32, 4, shape, input), *y = graph->make(x);
    if (weft_tensor_status(y) != WEFT_OK) print_message("%s\n", weft_last_error(ctx));
    assert_int_equal(weft_tensor_status(y), WEFT_OK);
    assert_int_equal(weft_compile(&y, 1, NULL, NULL, 0, &program), WEFT_OK);
    assert_int_equal(weft_program_run(program), WEFT_OK);
    *count = weft_numel(y);
    if (out) {
        *out = malloc((size_t)*count * sizeof **out);
        assert_non_null(*out);
        assert_int_equal(weft_read(y, *out, (size_t)*count * sizeof **out), WEFT_OK);
    }
    if (path) write_source(ctx, x, y, path);
    weft_close(ctx);
}

static void test_graph(void **state) {
    const struct graph *graph = *state;
    char command[9000], source[4200];
    float *wanted;
    int64_t count = 0, again = 0;
    void (*run)(const float *, float *);
    fill(input, INPUTS, 1);
    compute("cpu", graph, &wanted, &count, NULL);
    snprintf(source, sizeof source, "%s/%s.c", scratch, graph->name);
    compute("c99", graph, NULL, &again, source);
    assert_int_equal(count, again);
    snprintf(command, sizeof command,
             "gcc -std=c99 -Wall -Wextra -Werror -pedantic -O1 -shared -fPIC -o %s.so %s -lm", source,
             source);
    assert_int_equal(system(command), 0);
    snprintf(command, sizeof command, "%s.so", source);
    void *library = dlopen(command, RTLD_NOW | RTLD_LOCAL), *symbol = library ? dlsym(library, "run") : NULL;
    assert_non_null(symbol);
    memcpy(&run, &symbol, sizeof symbol);
    float *got = malloc((size_t)count * sizeof *got);
    assert_non_null(got);
    double scale = 1;
    for (int64_t i = 0; i < count; i++) scale = fmax(scale, fabs((double)wanted[i]));
    for (int round = 0; round < 2; round++) { /* nothing remains in the arena that changes the second run */
        run(input, got);
        for (int64_t i = 0; i < count; i++) {
            const double error = fabs((double)got[i] - (double)wanted[i]);
            if (!(error <= 1e-6 * scale))
                print_message("%s %lld: %.9g, %.9g is right\n", graph->name, (long long)i, (double)got[i],
                              (double)wanted[i]);
            assert_true(error <= 1e-6 * scale);
        }
    }
    free(got);
    free(wanted);
    dlclose(library);
}

/* ---- what is refused ---- */

static void test_refused(void **state) {
    (void)state;
    weft_context *ctx = NULL;
    weft_c99_slot *slots;
    weft_program *program;
    int count;
    assert_int_equal(weft_open(&(weft_open_options){.device = "c99"}, &ctx), WEFT_OK);
    assert_int_equal(weft__c99_slots(ctx->device, &slots, &count), WEFT_ERR_STATE);
    weft_tensor *x = weft_from(ctx, WEFT_F32, 4, shape, input);
    weft_tensor *y = weft_cumsum(x, 1);
    assert_int_equal(weft_compile(&y, 1, NULL, NULL, 0, &program), WEFT_ERR_UNSUPPORTED);
    y = weft_atan2(x, weft_exp(x));
    assert_int_equal(weft_compile(&y, 1, NULL, NULL, 0, &program), WEFT_OK);
    assert_int_equal(weft_program_run(program), WEFT_OK);
    assert_int_equal(weft__c99_slots(ctx->device, &slots, &count), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(ctx), "atan2 cannot be written"));
    weft_program_free(program);
    assert_int_equal(weft__c99_slots(ctx->device, &slots, &count), WEFT_ERR_STATE); /* the program is gone */
    y = weft_cast(x, WEFT_F64);
    y = weft_mul(y, y);
    assert_int_equal(weft_compile(&y, 1, NULL, NULL, 0, &program), WEFT_OK);
    assert_int_equal(weft_program_run(program), WEFT_OK);
    assert_int_equal(weft__c99_slots(ctx->device, &slots, &count), WEFT_ERR_UNSUPPORTED);
    assert_non_null(strstr(weft_last_error(ctx), "f64 cannot be written"));
    weft_close(ctx);
}

int main(void) {
    enum { GRAPHS = sizeof graphs / sizeof *graphs };
    struct CMUnitTest tests[GRAPHS + 1] = {cmocka_unit_test(test_refused)};
    if (system("command -v gcc >/dev/null") != 0) {
        printf("skipped: needs gcc\n");
        return 0;
    }
    for (size_t i = 0; i < GRAPHS; i++)
        tests[i + 1] = (struct CMUnitTest){
            .name = graphs[i].name, .test_func = test_graph, .initial_state = (void *)(uintptr_t)&graphs[i]};
    return cmocka_run_group_tests(tests, scratch_setup, scratch_teardown);
}
