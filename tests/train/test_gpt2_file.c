/* GPT-2's published weights. A tiny model in this format gives PyTorch's logits and then trains as in
 * PyTorch, in f32 and f64 (parity/make_gpt2.py recorded both). The tests cover names with and without
 * "transformer.", other dtypes, an untied head, more rows, fewer positions, files that are refused, and
 * writing, which must give the same file again. */
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

#include <weft/io.h>
#include <weft/nn.h>
#include <weft/optim.h>
#include "unit/io_scratch.h"
#include "device.h"

enum { LAYERS = 2, HEADS = 2, WIDTH = 8, CONTEXT = 12, VOCAB = 17, BATCH = 2, STEPS = 3, MOST = 64 };

static const char published[] = "tests/train/parity/gpt2.safetensors";
static json_t *reference;

static int setup(void **state) {
    json_error_t error;
    reference = json_load_file("tests/train/parity/gpt2.json", 0, &error);
    return reference ? scratch_setup(state) : -1;
}

static int teardown(void **state) {
    json_decref(reference);
    return scratch_teardown(state);
}

static double number(const char *list, size_t i) {
    const json_t *value = json_array_get(json_object_get(reference, list), i);
    assert_true(json_is_number(value));
    return json_number_value(value);
}

static weft_context *open_context(void) {
    weft_context *ctx = NULL;
    assert_ok(test_open(&(weft_open_options){.seed = 5}, &ctx));
    return ctx;
}

static weft_gpt_options options_of(weft_dtype dtype) {
    return (weft_gpt_options){
        .vocab = VOCAB, .context = CONTEXT, .layers = LAYERS, .heads = HEADS, .width = WIDTH, .dtype = dtype};
}

static weft_tensor *tokens(weft_context *ctx, const char *list) {
    int32_t ids[BATCH * CONTEXT];
    for (size_t i = 0; i < BATCH * CONTEXT; i++) ids[i] = (int32_t)number(list, i);
    return weft_from(ctx, WEFT_I32, 2, (int64_t[]){BATCH, CONTEXT}, ids);
}

/* Computes the logits of the model and returns the largest difference from the recorded logits. */
static double logits_differ(weft_module *gpt, weft_context *ctx, weft_dtype dtype) {
    static double values[BATCH * CONTEXT * VOCAB];
    double most = 0;
    weft_scope *scope = weft_scope_open(ctx);
    assert_ok(
        weft_read(weft_forward(gpt, tokens(ctx, "x")), values, sizeof values / (dtype == WEFT_F64 ? 1 : 2)));
    for (size_t i = 0; i < BATCH * CONTEXT * VOCAB; i++) {
        double value = dtype == WEFT_F64 ? values[i] : (double)((const float *)values)[i];
        most = fmax(most, fabs(value - number("logits", i)));
    }
    weft_scope_close(scope);
    return most;
}

static void test_parity(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64};
    for (int d = 0; d < 2; d++) {
        weft_context *ctx = open_context();
        const weft_gpt_options options = options_of(dtypes[d]);
        const double bar = dtypes[d] == WEFT_F64 ? 1e-10 : 2e-5;
        weft_module *gpt = weft_nn_gpt(ctx, &options);
        assert_ok(weft_gpt_load(gpt, published));
        weft_module_set_training(gpt, false);
        assert_true(logits_differ(gpt, ctx, dtypes[d]) < bar);
        weft_module_set_training(gpt, true);
        weft_optimizer *sgd = weft_sgd(gpt, &(weft_sgd_options){.lr = 0.1});
        for (size_t step = 0; step < STEPS; step++) { /* then it trains */
            weft_scope *scope = weft_scope_open(ctx);
            weft_tensor *loss =
                weft_keep(weft_cross_entropy(weft_forward(gpt, tokens(ctx, "x")), tokens(ctx, "y"), NULL));
            assert_ok(weft_optimizer_step(sgd, loss));
            assert_true(fabs(weft_item(loss) - number("losses", step)) < bar);
            weft_free(loss);
            weft_scope_close(scope);
        }
        weft_close(ctx);
    }
}

/* ---- files derived from the published file ---- */

typedef struct copy {
    weft_entry entries[MOST];
    char names[MOST][128];
    int64_t shapes[MOST][WEFT_ENTRY_RANK_MAX];
    size_t count;
} copy;

static void read_copy(copy *c, const char *path) {
    weft_safetensors *file = NULL;
    weft_entry_info info;
    assert_ok(weft_safetensors_open(NULL, path, &file));
    memset(c, 0, sizeof *c);
    for (size_t i = 0; weft_safetensors_entry(file, i, &info); i++) {
        assert_true(i < MOST);
        void *data = malloc(info.bytes + 1);
        assert_non_null(data);
        assert_ok(weft_safetensors_read(file, i, 0, data, info.bytes));
        snprintf(c->names[i], sizeof c->names[i], "%s", info.name);
        memcpy(c->shapes[i], info.shape, (size_t)info.rank * sizeof *info.shape);
        c->entries[i] = (weft_entry){
            .name = c->names[i], .dtype = info.dtype, .rank = info.rank, .shape = c->shapes[i], .data = data};
        c->count++;
    }
    weft_safetensors_close(file);
}

static void free_copy(copy *c) {
    for (size_t i = 0; i < c->count; i++) free((void *)(uintptr_t)c->entries[i].data);
}

static size_t place(const copy *c, const char *name) {
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->names[i], name) == 0) return i;
    fail_msg("no entry %s", name);
    return 0;
}

static void drop(copy *c, const char *name) {
    size_t at = place(c, name);
    free((void *)(uintptr_t)c->entries[at].data);
    c->count--;
    for (; at < c->count; at++) {
        c->entries[at] = c->entries[at + 1];
        memcpy(c->names[at], c->names[at + 1], sizeof c->names[0]);
        memcpy(c->shapes[at], c->shapes[at + 1], sizeof c->shapes[0]);
        c->entries[at].name = c->names[at];
        c->entries[at].shape = c->shapes[at];
    }
}

static const char *write_copy(const copy *c) {
    assert_ok(weft_safetensors_write(NULL, in_scratch("copy.safetensors"), c->entries, c->count, NULL, 0));
    return in_scratch("copy.safetensors");
}

/* "transformer." before each name, an extra head that equals the token table, and values rounded to bf16. */
static void test_variants(void **state) {
    (void)state;
    copy c;
    weft_context *ctx = open_context();
    weft_gpt_options options = options_of(WEFT_F64);
    read_copy(&c, published);
    for (size_t i = 0; i < c.count; i++) {
        char name[128];
        snprintf(name, sizeof name, "transformer.%.100s", c.names[i]);
        memcpy(c.names[i], name, sizeof name);
    }
    weft_module *gpt = weft_nn_gpt(ctx, &options);
    assert_ok(weft_gpt_load(gpt, write_copy(&c)));
    weft_module_set_training(gpt, false);
    assert_true(logits_differ(gpt, ctx, WEFT_F64) < 1e-10);
    options.untied_head = true; /* takes the token table if the file has no head */
    weft_module *untied = weft_nn_gpt(ctx, &options);
    assert_ok(weft_gpt_load(untied, write_copy(&c)));
    weft_module_set_training(untied, false);
    assert_true(logits_differ(untied, ctx, WEFT_F64) < 1e-10);
    for (size_t i = 0; i < c.count;
         i++) { /* in place: a narrow value never overtakes the f32 values still to be read */
        float *from = (float *)(uintptr_t)c.entries[i].data;
        int64_t n = 1;
        for (int d = 0; d < c.entries[i].rank; d++) n *= c.entries[i].shape[d];
        for (int64_t j = 0; j < n; j++) {
            uint16_t narrow = weft_f32_to_bf16(from[j]);
            memcpy((char *)from + 2 * j, &narrow, 2);
        }
        c.entries[i].dtype = WEFT_BF16;
    }
    assert_ok(weft_gpt_load(gpt, write_copy(&c)));
    double differ = logits_differ(gpt, ctx, WEFT_F64);
    assert_true(differ > 1e-6 && differ < 0.1);
    free_copy(&c);
    weft_close(ctx);
}

/* Rows that the file lacks become the mean of the rows it has. Surplus positions are left out. */
static void test_other_sizes(void **state) {
    (void)state;
    enum { ROWS = VOCAB + 3, FEWER = 5 };
    weft_context *ctx = open_context();
    weft_gpt_options options = options_of(WEFT_F32);
    options.vocab = ROWS;
    options.context = FEWER;
    weft_module *gpt = weft_nn_gpt(ctx, &options);
    weft_parameter_info p;
    float table[ROWS][WIDTH], positions[FEWER][WIDTH];
    copy c;
    assert_ok(weft_gpt_load(gpt, published));
    read_copy(&c, published);
    assert_true(weft_parameter_find(gpt, "wte.weight", &p));
    assert_ok(weft_read(p.tensor, table, sizeof table));
    assert_true(weft_parameter_find(gpt, "wpe.weight", &p));
    assert_ok(weft_read(p.tensor, positions, sizeof positions));
    const float *wte = c.entries[place(&c, "wte.weight")].data;
    assert_memory_equal(table, wte, VOCAB * sizeof *table);
    assert_memory_equal(positions, c.entries[place(&c, "wpe.weight")].data, sizeof positions);
    for (int j = 0; j < WIDTH; j++) {
        double sum = 0;
        for (int i = 0; i < VOCAB; i++) sum += (double)wte[i * WIDTH + j];
        for (int i = VOCAB; i < ROWS; i++)
            assert_true(fabs((double)table[i][j] - sum / (double)VOCAB) < 1e-6);
    }
    int64_t vocab = 0;
    assert_ok(weft_gpt_file_vocab(NULL, published, &vocab));
    assert_int_equal(vocab, VOCAB);
    free_copy(&c);
    weft_close(ctx);
}

/* Padding rows, which stand for no token: losses equal those of a model without them, they get no gradient,
 * and they are not in the file. */
static void test_padded(void **state) {
    (void)state;
    enum { ROWS = VOCAB + 7 };
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16};
    for (int d = 0; d < 6; d++) {
        weft_context *ctx = open_context();
        weft_gpt_options options = options_of(WEFT_F32);
        options.untied_head = d >= 3;
        options.tokens = VOCAB;
        weft_module *gpt[2] = {weft_nn_gpt(ctx, &options), NULL};
        options.vocab = ROWS;
        gpt[1] = weft_nn_gpt(ctx, &options);
        float loss[2], table[ROWS][WIDTH], logits[BATCH * CONTEXT][ROWS];
        for (int i = 0; i < 2; i++) {
            weft_parameter_info p;
            weft_tensor *gradient, *value;
            assert_ok(weft_gpt_load(gpt[i], published));
            assert_ok(weft_module_compute(gpt[i], dtypes[d % 3]));
            weft_tensor *y = weft_forward(gpt[i], tokens(ctx, "x"));
            value = weft_cross_entropy(y, tokens(ctx, "y"), NULL);
            assert_true(
                weft_parameter_find(gpt[i], options.untied_head ? "lm_head.weight" : "wte.weight", &p));
            assert_ok(weft_gradient(value, &p.tensor, 1, &gradient));
            assert_ok(weft_read(value, &loss[i], sizeof *loss));
            assert_ok(weft_read(gradient, table, sizeof table / ROWS * (i ? ROWS : VOCAB)));
            if (i) assert_ok(weft_read(y, logits, sizeof logits));
        }
        assert_true(fabsf(loss[0] - loss[1]) < 1e-6f * loss[0]);
        for (int j = 0; j < ROWS; j++) {
            bool zero = true;
            for (int k = 0; k < WIDTH; k++) zero &= table[j][k] == 0;
            assert_int_equal(zero, j >= VOCAB);
        }
        for (int t = 0; t < BATCH * CONTEXT; t++) {
            for (int j = 0; j < ROWS; j++) assert_int_equal(isfinite(logits[t][j]) != 0, j < VOCAB);
            for (uint64_t draw = 0; draw < 20; draw++)
                assert_true(weft_sample(logits[t], ROWS, 1000, 0, 1, draw) < VOCAB);
        }
        weft_close(ctx);
    }
    weft_context *ctx = open_context();
    weft_gpt_options options = options_of(WEFT_F32);
    options.vocab = ROWS;
    options.tokens = VOCAB;
    weft_module *gpt = weft_nn_gpt(ctx, &options);
    int64_t vocab = 0;
    assert_ok(weft_gpt_load(gpt, published));
    assert_ok(weft_gpt_save(gpt, in_scratch("padded.safetensors")));
    assert_ok(weft_gpt_file_vocab(NULL, in_scratch("padded.safetensors"), &vocab));
    assert_int_equal(vocab, VOCAB);
    options.tokens = ROWS + 1;
    assert_int_equal(weft_module_status(weft_nn_gpt(ctx, &options)), WEFT_ERR_ARGUMENT);
    assert_non_null(strstr(weft_last_error(ctx), "tokens 25 must be 0 to vocab, 24"));
    weft_close(ctx);
}

static void test_written(void **state) {
    (void)state;
    weft_context *ctx = open_context();
    const weft_gpt_options options = options_of(WEFT_F32);
    weft_module *gpt = weft_nn_gpt(ctx, &options), *other = weft_nn_gpt(ctx, &options);
    copy a, b;
    weft_parameter_info p, q;
    assert_ok(weft_gpt_load(gpt, published));
    assert_ok(weft_gpt_save(gpt, in_scratch("again.safetensors")));
    read_copy(&a, published);
    read_copy(&b, in_scratch("again.safetensors"));
    drop(&a, "h.0.attn.bias");
    drop(&a, "h.1.attn.bias");
    assert_int_equal(a.count, b.count);
    for (size_t i = 0; i < a.count; i++) {
        size_t bytes = sizeof(float);
        assert_string_equal(a.names[i], b.names[i]);
        assert_int_equal(a.entries[i].rank, b.entries[i].rank);
        for (int d = 0; d < a.entries[i].rank; d++) {
            assert_int_equal(a.shapes[i][d], b.shapes[i][d]);
            bytes *= (size_t)a.shapes[i][d];
        }
        assert_memory_equal(a.entries[i].data, b.entries[i].data, bytes);
    }
    free_copy(&a);
    free_copy(&b);
    assert_ok(weft_module_save(gpt, in_scratch("own.safetensors"))); /* Weft's own format is read as well */
    assert_ok(weft_gpt_load(other, in_scratch("own.safetensors")));
    for (size_t i = 0; weft_parameter_get(gpt, i, &p) && weft_parameter_get(other, i, &q); i++) {
        static float x[4 * WIDTH * WIDTH], y[4 * WIDTH * WIDTH];
        const size_t bytes = (size_t)weft_numel(p.tensor) * sizeof *x;
        assert_ok(weft_read(p.tensor, x, bytes));
        assert_ok(weft_read(q.tensor, y, bytes));
        assert_memory_equal(x, y, bytes);
    }
    weft_close(ctx);
}

static void expect(weft_module *gpt, const char *path, weft_status wanted, const char *message) {
    weft_status status = weft_gpt_load(gpt, path);
    if (status != wanted || !strstr(weft_last_error(NULL), message))
        fail_msg("%s, '%s', not '%s'", weft_status_name(status), weft_last_error(NULL), message);
}

static void test_refused(void **state) {
    (void)state;
    weft_context *ctx = open_context();
    weft_gpt_options o[4];
    copy c;
    int64_t vocab;
    for (int i = 0; i < 4; i++) o[i] = options_of(WEFT_F32);
    o[0].layers = 1;
    o[1].layers = 3;
    o[2].width = 16;
    o[3].vocab = 9;
    expect(weft_nn_gpt(ctx, &o[0]), published, WEFT_ERR_FORMAT,
           "'h.1.attn.c_attn.bias' is not a tensor of this model");
    expect(weft_nn_gpt(ctx, &o[1]), published, WEFT_ERR_FORMAT, "the file has no tensor 'h.2.ln_1.weight'");
    expect(weft_nn_gpt(ctx, &o[2]), published, WEFT_ERR_FORMAT,
           "'wte.weight' is f32 [17,8], but this model has");
    expect(weft_nn_gpt(ctx, &o[3]), published, WEFT_ERR_FORMAT,
           "'wte.weight' is f32 [17,8], but this model has");
    o[3] = options_of(WEFT_F32);
    o[3].context = CONTEXT + 1;
    expect(weft_nn_gpt(ctx, &o[3]), published, WEFT_ERR_FORMAT, "'wpe.weight' is f32 [12,8]");
    o[3] = options_of(WEFT_F32);
    o[3].no_bias = true;
    expect(weft_nn_gpt(ctx, &o[3]), published, WEFT_ERR_FORMAT, "is not a tensor of this model");
    o[3].no_bias = false;
    weft_module *gpt = weft_nn_gpt(ctx, &o[3]);
    expect(gpt, in_scratch("none"), WEFT_ERR_IO, "none");
    read_copy(&c, published);
    c.shapes[place(&c, "h.1.attn.c_proj.bias")][0] = 4;
    expect(gpt, write_copy(&c), WEFT_ERR_FORMAT, "'h.1.attn.c_proj.bias' is f32 [4], but this model has");
    c.shapes[place(&c, "h.1.attn.c_proj.bias")][0] = WIDTH;
    const size_t fc = place(&c, "h.0.mlp.c_fc.weight");
    c.shapes[fc][0] = 4 * WIDTH, c.shapes[fc][1] = WIDTH; /* transposed, unlike the other weights */
    expect(gpt, write_copy(&c), WEFT_ERR_FORMAT, "'h.0.mlp.c_fc.weight' is f32 [32,8], but this model has");
    c.shapes[fc][0] = WIDTH, c.shapes[fc][1] = 4 * WIDTH;
    c.entries[place(&c, "ln_f.bias")].dtype = WEFT_I32;
    expect(gpt, write_copy(&c), WEFT_ERR_FORMAT, "'ln_f.bias' is i32");
    free_copy(&c);
    expect(weft_nn_linear(ctx, 2, 2, NULL), published, WEFT_ERR_ARGUMENT, "for a gpt");
    assert_int_equal(weft_gpt_file_vocab(NULL, "tests/train/parity/mlp.safetensors", &vocab),
                     WEFT_ERR_FORMAT);
    weft_module_set_training(gpt,
                             false); /* the failed loads changed nothing: this load works as a first one */
    assert_ok(weft_gpt_load(gpt, published));
    assert_true(logits_differ(gpt, ctx, WEFT_F32) < 2e-5);
    weft_close(ctx);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parity),  cmocka_unit_test(test_variants), cmocka_unit_test(test_other_sizes),
        cmocka_unit_test(test_written), cmocka_unit_test(test_refused),  cmocka_unit_test(test_padded),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
