/* Matmuls with epilogues, on the interpreter and on OpenCL, CUDA or HIP (gpu.h). A matmul and the kernel
 * after it become one command and give the same bits as two. Covers all kinds of epilogues, layouts, dtypes,
 * edges, splits of k, a batch, several results, and a matmul whose result is also stored. Also checks which
 * pairs must stay two commands. */
#include "unit/core_help.h"
#include "gpu.h"

typedef struct scene {
    weft_context *ctx;
    weft_tensor *product, *row, *like, *more; /* row (n); the others have the shape of the matmul */
    weft_tensor *out[4 * 32];
    size_t n;
} scene;

static void give(scene *s, weft_tensor *t) { s->out[s->n++] = t; }

static void bias_relu(scene *s) { give(s, weft_relu(weft_add(s->product, s->row))); }
static void scaled(scene *s) {
    give(s, weft_mul(s->product, weft_full(s->ctx, weft_dtype_of(s->product), 0, NULL, 0.375)));
}
static void residual(scene *s) { give(s, weft_add(s->like, weft_add(s->product, s->row))); }
static void slope(scene *s) { give(s, weft_mul(s->product, weft_gelu_tanh_slope(s->like))); }
/* As in a layer whose backward pass reads the result of the matmul. */
static void gelu_kept(scene *s) {
    give(s, s->product);
    give(s, weft_gelu_tanh(weft_add(s->product, s->row)));
}
static void gelu_and_input(scene *s) {
    weft_tensor *h = weft_add(s->product, s->row);
    give(s, h);
    give(s, weft_gelu(h));
}
static void sums(scene *s) { give(s, weft_add(weft_mul(s->product, s->more), s->like)); }

static void (*const all_kinds[])(scene *) = {bias_relu, scaled,         residual, slope,
                                             gelu_kept, gelu_and_input, sums};

typedef struct size {
    int64_t batch, m, n, k; /* batch 0: matrices */
} size;

static weft_tensor *values(weft_context *ctx, weft_dtype dtype, int salt, int rank, const int64_t *shape) {
    weft_tensor *t = numbers(ctx, false, salt, rank, shape);
    if (!weft_dtype_is_float(dtype)) t = weft_mul(t, weft_full(ctx, WEFT_F32, 0, NULL, 9));
    if (dtype != WEFT_F32) t = weft_cast(t, dtype);
    assert_ok(weft_eval(&t, 1));
    return t;
}

static weft_tensor *operand(weft_context *ctx, weft_dtype dtype, int salt, const size *z, int64_t rows,
                            int64_t columns, bool turned) {
    const int64_t shape[] = {z->batch, turned ? columns : rows, turned ? rows : columns};
    const int skip = z->batch == 0;
    weft_tensor *t = values(ctx, dtype, salt, 3 - skip, shape + skip);
    return turned ? weft_permute(t, skip ? (int[]){1, 0} : (int[]){0, 2, 1}) : t;
}

static void product(scene *s, weft_dtype dtype, const size *z, int layout) {
    const int64_t shape[] = {z->batch, z->m, z->n};
    const int skip = z->batch == 0;
    s->product = weft_matmul(operand(s->ctx, dtype, 1, z, z->m, z->k, layout & 1),
                             operand(s->ctx, dtype, 2, z, z->k, z->n, layout & 2));
    s->row = values(s->ctx, dtype, 3, 1, &z->n);
    s->like = values(s->ctx, dtype, 4, 3 - skip, shape + skip);
    s->more = values(s->ctx, dtype, 5, 3 - skip, shape + skip);
}

/* The graphs of one evaluation. */
typedef struct task {
    void (*kind)(scene *);
    weft_dtype dtype;
    int layout;
    size size;
} task;

typedef struct results {
    char *bytes;
    size_t length;
    int commands, args; /* arguments of the last command's epilogue */
} results;

static weft_device_ops declining;

static bool takes_no_epilogue(weft_device *device, const weft_heavy *heavy) {
    const bool has = heavy->kind == WEFT_HEAVY_MATMUL && heavy->as.matmul.epilogue;
    (void)device;
    return !has;
}

static results compute(const char *device, bool epilogues, const task *tasks, int count) {
    static scene s;
    s = (scene){.ctx = open_device(device, false)};
    declining = *s.ctx->device->ops;
    declining.takes = takes_no_epilogue;
    if (!epilogues) s.ctx->device->ops = &declining;
    weft_scope *scope = weft_scope_open(s.ctx);
    results r = {.bytes = calloc(1, 1 << 23)};
    for (int i = 0; i < count; i++) {
        product(&s, tasks[i].dtype, &tasks[i].size, tasks[i].layout);
        tasks[i].kind(&s);
    }
    assert_ok(weft_eval(s.out, s.n));
    const weft_commands *commands = &newest(s.ctx)->commands;
    const weft_command *last = &commands->list[commands->count - 1];
    r.commands = commands->count;
    if (last->kind == WEFT_COMMAND_HEAVY && last->heavy.as.matmul.epilogue)
        r.args = last->heavy.as.matmul.epilogue->n_args;
    for (size_t i = 0; i < s.n; i++) {
        const size_t bytes = (size_t)weft_numel(s.out[i]) * weft_dtype_size(weft_dtype_of(s.out[i]));
        assert_true(r.length + bytes < 1 << 23);
        assert_ok(weft_read(s.out[i], r.bytes + r.length, bytes));
        r.length += bytes;
    }
    weft_scope_close(scope);
    weft_close(s.ctx);
    return r;
}

/* Expects one command for each matmul, and the bits of the unfused evaluation, which needs two. */
static void check(const task *tasks, int count) {
    results fused = compute(test_gpu(), true, tasks, count), plain = compute(test_gpu(), false, tasks, count);
    assert_int_equal(fused.commands, count);
    assert_int_equal(plain.commands, 2 * count);
    assert_int_equal(fused.length, plain.length);
    assert_memory_equal(fused.bytes, plain.bytes, fused.length);
    free(fused.bytes);
    free(plain.bytes);
}

static void check_all(const task *tasks, int count) {
    results interp = compute("interp", true, tasks, count);
    assert_int_equal(interp.commands, count);
    free(interp.bytes);
    if (!test_without_gpu()) check(tasks, count);
}

static void test_kinds(void **state) {
    task tasks[COUNT(all_kinds)];
    (void)state;
    for (size_t i = 0; i < COUNT(all_kinds); i++)
        tasks[i] = (task){all_kinds[i], WEFT_F32, 0, {0, 17, 33, 20}};
    check_all(tasks, COUNT(all_kinds));
}

/* Edges, few rows, one column, k = 0, and a k that is split. */
static void test_sizes(void **state) {
    const size sizes[] = {{0, 1, 129, 40},  {0, 3, 17, 300},  {0, 129, 1, 30}, {0, 15, 129, 17},
                          {0, 129, 15, 1},  {0, 17, 1040, 9}, {0, 6, 7, 0},    {0, 20, 30, 2100},
                          {0, 3, 40, 9000}, {0, 40, 1, 9000}};
    task tasks[COUNT(sizes)];
    (void)state;
    for (size_t i = 0; i < COUNT(sizes); i++) tasks[i] = (task){residual, WEFT_F32, 0, sizes[i]};
    check_all(tasks, COUNT(sizes));
}

static void test_layouts_and_batches(void **state) {
    task tasks[8];
    (void)state;
    for (int i = 0; i < 8; i++) tasks[i] = (task){gelu_kept, WEFT_F32, i & 3, {i < 4 ? 0 : 3, 30, 50, 21}};
    check_all(tasks, 8);
}

static void test_dtypes(void **state) {
    const task tasks[] = {
        {residual, WEFT_F64, 0, {0, 9, 37, 15}},   {residual, WEFT_F16, 0, {0, 9, 37, 15}},
        {residual, WEFT_BF16, 0, {0, 9, 37, 15}},  {residual, WEFT_I32, 0, {0, 9, 37, 15}},
        {residual, WEFT_I64, 0, {0, 9, 37, 15}},   {sums, WEFT_F16, 0, {0, 20, 33, 2100}},
        {gelu_kept, WEFT_BF16, 0, {2, 2, 21, 15}},
    };
    (void)state;
    check_all(tasks, COUNT(tasks));
}

/* 16-bit floats, by tensor cores where there are some: layouts, edges, a batch, f32 sums of a split k. */
static void test_tensor(void **state) {
    const task tasks[] = {{gelu_kept, WEFT_BF16, 0, {0, 70, 136, 40}},
                          {bias_relu, WEFT_F16, 1, {0, 33, 50, 72}},
                          {residual, WEFT_BF16, 2, {3, 9, 40, 24}},
                          {slope, WEFT_F16, 3, {0, 17, 31, 45}},
                          {sums, WEFT_BF16, 0, {0, 20, 30, 2100}}};
    (void)state;
    check_all(tasks, COUNT(tasks));
}

/* Kernels for GPUs: tiles, few rows, a split k. */
static void test_work_items(void **state) {
    const task tasks[] = {{gelu_kept, WEFT_F32, 0, {0, 33, 70, 20}},
                          {residual, WEFT_BF16, 2, {0, 3, 17, 30}},
                          {sums, WEFT_F32, 0, {0, 20, 30, 2100}}};
    const int items = weft__opencl_hook.items;
    (void)state;
    weft__opencl_hook.items = 64;
    check_all(tasks, COUNT(tasks));
    weft__opencl_hook.items = items;
}

/* A layer and the values that its backward pass reads. Two kernels read x w + b. It is stored in place of x
 * w, so that neither adds b again. */
static void layer(scene *s) {
    weft_tensor *h = weft_add(s->product, s->row), *y = weft_gelu_tanh(h);
    const int64_t n = weft_dim(h, 1);
    weft_tensor *next = weft_matmul(y, values(s->ctx, WEFT_F32, 6, 2, (int64_t[]){n, n}));
    give(s, weft_mul(next, weft_gelu_tanh_slope(h)));
}
static void layer_and_product(scene *s) {
    layer(s);
    give(s, s->product);
}
static void layer_with_two(scene *s) {
    weft_tensor *y = weft_gelu_tanh(weft_add(s->product, s->row));
    const int64_t n = weft_dim(y, 1);
    weft_tensor *next = weft_matmul(y, values(s->ctx, WEFT_F32, 6, 2, (int64_t[]){n, n}));
    weft_tensor *other = values(s->ctx, WEFT_F32, 7, 1, &n);
    give(s, weft_mul(next, weft_gelu_tanh_slope(weft_add(s->product, other))));
}

static void test_sum_is_stored(void **state) {
    static const struct {
        void (*kind)(scene *);
        int args; /* of the second epilogue: its matmul's result, the value that the first one stored, its own
                     result, and the vector */
    } cases[] = {{layer, 3}, {layer_and_product, 4}, {layer_with_two, 4}};
    const char *devices[] = {"interp", test_gpu()};
    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (int d = 0; d < 2 - test_without_gpu(); d++) {
            const task t = {cases[i].kind, WEFT_F32, 0, {0, 33, 24, 40}};
            results fused = compute(devices[d], true, &t, 1), plain = compute(devices[d], false, &t, 1);
            assert_int_equal(fused.commands, 2);
            assert_int_equal(plain.commands, 4);
            assert_int_equal(fused.args, cases[i].args);
            if (d) assert_memory_equal(fused.bytes, plain.bytes, fused.length);
            for (size_t at = 0; at < fused.length; at += sizeof(float)) { /* interp rounds when it stores */
                float x, y;
                memcpy(&x, fused.bytes + at, sizeof x);
                memcpy(&y, plain.bytes + at, sizeof y);
                assert_true(fabsf(x - y) <= 1e-5f * (1 + fabsf(y)));
            }
            free(fused.bytes);
            free(plain.bytes);
        }
}

/* ---- kernels that cannot be epilogues ---- */

static int commands_of(scene *s) {
    assert_ok(weft_eval(s->out, s->n));
    return newest(s->ctx)->commands.count;
}

static void test_what_stays(void **state) {
    const size z = {0, 12, 16, 8};
    (void)state;
    for (int what = 0; what < 5; what++) {
        scene s = {.ctx = open_device("interp", false)};
        weft_scope *scope = weft_scope_open(s.ctx);
        int expected = 2;
        product(&s, WEFT_F32, &z, 0);
        weft_tensor *turned = weft_permute(s.product, (int[]){1, 0});
        if (what == 0) give(&s, weft_softmax(weft_add(s.product, s.row), -1));          /* a row kernel */
        if (what == 1) give(&s, weft_add(turned, weft_permute(s.like, (int[]){1, 0}))); /* read again */
        if (what == 2)
            give(&s, weft_relu(weft_slice(s.product, (int64_t[]){1, 0}, (int64_t[]){12, 16}, NULL)));
        if (what == 3) { /* the second matmul reads what the first one's kernel needs to wait for */
            weft_tensor *next = weft_matmul(s.product, s.more);
            (void)next;
            weft_tensor *square = weft_matmul(s.product, weft_permute(s.product, (int[]){1, 0}));
            give(&s, weft_add(s.product, weft_sum(square, WEFT_ALL_AXES, false)));
            expected = 4;
        }
        if (what == 4) { /* the kernel is the epilogue of the last of two matmuls */
            weft_tensor *other =
                weft_matmul(weft_relu(s.product), values(s.ctx, WEFT_F32, 9, 2, (int64_t[]){16, 16}));
            give(&s, weft_add(other, s.product));
        }
        assert_int_equal(commands_of(&s), expected);
        weft_scope_close(scope);
        weft_close(s.ctx);
    }
}

/* An epilogue updates a variable in place without a copy, unless its matmul reads the variable. */
static void test_updates(void **state) {
    (void)state;
    for (int reads = 0; reads < 2; reads++) {
        weft_context *ctx = open_device("interp", false);
        weft_scope *scope = weft_scope_open(ctx);
        weft_tensor *w = numbers(ctx, true, 1, 2, (int64_t[]){9, 9}),
                    *x = numbers(ctx, false, 2, 2, (int64_t[]){9, 9});
        weft_tensor *step = weft_sub(w, weft_matmul(reads ? w : x, x));
        float before[81], factor[81], after[81];
        assert_ok(weft_read(w, before, sizeof before));
        assert_ok(weft_read(x, factor, sizeof factor));
        assert_ok(weft_assign(&w, &step, 1));
        assert_int_equal(newest(ctx)->n_copies, 0);
        assert_int_equal(newest(ctx)->commands.count, 1 + reads);
        assert_ok(weft_read(w, after, sizeof after));
        for (int i = 0; i < 81; i++) {
            double sum = 0;
            for (int k = 0; k < 9; k++)
                sum += (double)(reads ? before : factor)[i / 9 * 9 + k] * (double)factor[k * 9 + i % 9];
            assert_true(fabs(after[i] - (before[i] - sum)) < 1e-5);
        }
        weft_scope_close(scope);
        weft_close(ctx);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sum_is_stored), cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_sizes),         cmocka_unit_test(test_layouts_and_batches),
        cmocka_unit_test(test_dtypes),        cmocka_unit_test(test_tensor),
        cmocka_unit_test(test_work_items),    cmocka_unit_test(test_what_stays),
        cmocka_unit_test(test_updates)};
    /* tests of CUDA and HIP are for tensor and matrix cores; the other tests cover kernels that all devices
     * share */
    if (test_on_cores()) setenv("WEFT_MATMUL", "own", 1);
    const struct CMUnitTest on_cores[] = {cmocka_unit_test(test_dtypes), cmocka_unit_test(test_tensor)};
    return test_on_cores() ? cmocka_run_group_tests(on_cores, NULL, NULL)
                           : cmocka_run_group_tests(tests, NULL, NULL);
}
