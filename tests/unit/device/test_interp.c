/* src/device: the interpreter on kernels built by hand (each instruction, reductions, races, bounds),
 * programs with faults, and the null device. The interpreter's numbers and heavy operations:
 * test_interp_heavy.c. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/interp/interp.h"
#include "device/module.h"
#include "device/null/null.h"

/* ---- building kernels ---- */

enum { ROW = WEFT_LEVEL_ROW, FULL = WEFT_LEVEL_FULL, MOST = 24 };

typedef struct maker {
    weft_kernel kernel;
    weft_kernel_arg args[MOST];
    weft_view views[MOST];
    weft_instr code[MOST];
} maker;

static void begin(maker *m, int n_parallel, int n_reduce, const int64_t *extent) {
    memset(m, 0, sizeof *m);
    m->kernel =
        (weft_kernel){.name = "test", .path = "net.layer", .n_parallel = n_parallel, .n_reduce = n_reduce};
    memcpy(m->kernel.extent, extent, (size_t)(n_parallel + n_reduce) * sizeof *extent);
    m->kernel.args = m->args;
    m->kernel.views = m->views;
    m->kernel.code = m->code;
}

static int arg(maker *m, weft_dtype dtype, const char *use, int64_t elements) {
    m->args[m->kernel.n_args] =
        (weft_kernel_arg){(uint8_t)dtype, strchr(use, 'r') != NULL, strchr(use, 'w') != NULL, elements};
    return m->kernel.n_args++;
}

static int view(maker *m, const weft_view *v) {
    m->views[m->kernel.n_views] = *v;
    return m->kernel.n_views++;
}

/* The row-major view of the whole index space, or of its parallel part. */
static int whole(maker *m) {
    weft_view v;
    weft__view_identity(&v, m->kernel.n_parallel + m->kernel.n_reduce, m->kernel.extent);
    return view(m, &v);
}

static int rows(maker *m) {
    weft_view v;
    int64_t shape[WEFT_VIEW_RANK] = {0};
    const int rank = m->kernel.n_parallel + m->kernel.n_reduce;
    for (int d = 0; d < rank; d++) shape[d] = d < m->kernel.n_parallel ? m->kernel.extent[d] : 1;
    weft__view_identity(&v, rank, shape);
    assert_true(weft__view_expand(&v, m->kernel.extent));
    return view(m, &v);
}

static int add(maker *m, weft_instr in) {
    m->code[m->kernel.n_code] = in;
    return m->kernel.n_code++;
}

#define SHAPE(...) ((const int64_t[]){__VA_ARGS__})

/* An instruction at level ROW; unused numbers are -1. */
static int instr(maker *m, weft_instr_kind kind, weft_dtype dtype, int a, int from, int at) {
    return add(m, (weft_instr){.kind = (uint8_t)kind,
                               .dtype = (uint8_t)dtype,
                               .a = a,
                               .b = -1,
                               .c = -1,
                               .arg = from,
                               .view = at});
}
static int constant(maker *m, weft_dtype dtype, double value) {
    const int i = instr(m, WEFT_INSTR_CONST, dtype, -1, -1, -1);
    m->code[i].imm_f = value;
    return i;
}
static int gather(maker *m, weft_dtype dtype, int a, int from, int at, int64_t stride, int64_t bound) {
    const int i = instr(m, WEFT_INSTR_GATHER, dtype, a, from, at);
    m->code[i].imm_i = stride;
    m->code[i].bound = bound;
    return i;
}
static int load(maker *m, weft_dtype dtype, int level, int from, int at) {
    return add(m, (weft_instr){.kind = WEFT_INSTR_LOAD,
                               .dtype = (uint8_t)dtype,
                               .level = (uint8_t)level,
                               .a = -1,
                               .b = -1,
                               .c = -1,
                               .arg = from,
                               .view = at});
}
static int store(maker *m, int level, int to, int at, int value) {
    return add(m, (weft_instr){.kind = WEFT_INSTR_STORE,
                               .dtype = m->code[value].dtype,
                               .level = (uint8_t)level,
                               .a = value,
                               .b = -1,
                               .c = -1,
                               .arg = to,
                               .view = at});
}
static int calc(maker *m, weft_op op, weft_dtype dtype, int level, int a, int b, int c) {
    return add(m, (weft_instr){.kind = WEFT_INSTR_CALC,
                               .op = (uint8_t)op,
                               .dtype = (uint8_t)dtype,
                               .level = (uint8_t)level,
                               .a = a,
                               .b = b,
                               .c = c,
                               .arg = -1,
                               .view = -1});
}
static int reduce(maker *m, weft_op op, weft_dtype dtype, int a) {
    return add(m, (weft_instr){.kind = WEFT_INSTR_REDUCE,
                               .op = (uint8_t)op,
                               .dtype = (uint8_t)dtype,
                               .level = ROW,
                               .a = a,
                               .b = -1,
                               .c = -1,
                               .arg = -1,
                               .view = -1});
}

static int fold(maker *m, weft_op op, weft_dtype dtype, int a) {
    const int i = reduce(m, op, dtype, a);
    m->code[i].kind = WEFT_INSTR_FOLD;
    m->code[i].level = (uint8_t)(m->code[a].level | WEFT_LEVEL_BLOCK);
    return i;
}

static weft_interp *interp_of(weft_device *device) { return (weft_interp *)device; }

/* A context and an interpreter. */
typedef struct fixture {
    weft_context ctx;
    weft_device *device;
} fixture;

static void setup(fixture *f) {
    memset(f, 0, sizeof *f);
    f->ctx.random.seed = 11;
    assert_int_equal(weft__device_interp.open(&weft__device_interp, &f->ctx, "", NULL, &f->device), WEFT_OK);
}
static void teardown(fixture *f) {
    assert_int_equal(f->device->bytes_in_use, 0);
    f->device->ops->close(f->device);
}

/* Verifies the kernel and runs it on host arrays. */
static weft_status run_kernel(fixture *f, maker *m, void *const *args) {
    weft_status status = weft__kernel_verify(&f->ctx, &m->kernel);
    if (status != WEFT_OK) print_message("%s\n", weft_last_error(&f->ctx));
    assert_int_equal(status, WEFT_OK);
    return weft__interp_kernel(interp_of(f->device), &m->kernel, args);
}

static void assert_says(fixture *f, const char *part) {
    if (strstr(weft_last_error(&f->ctx), part)) return;
    print_message("%s\nlacks: %s\n", weft_last_error(&f->ctx), part);
    fail();
}

/* ---- instructions ---- */

static void test_map(void **state) {
    (void)state;
    fixture f;
    maker m;
    setup(&f);
    begin(&m, 2, 0, SHAPE(4, 3));
    const int in = arg(&m, WEFT_F32, "r", 6), out = arg(&m, WEFT_F16, "w", 12),
              flags = arg(&m, WEFT_BOOL, "w", 12), numbers = arg(&m, WEFT_I64, "w", 12);
    weft_view padded;
    weft__view_identity(&padded, 2, SHAPE(2, 3));
    assert_true(weft__view_pad(&padded, SHAPE(1, 0), SHAPE(1, 0)));
    const int at = view(&m, &padded), all = whole(&m);
    const int x = load(&m, WEFT_F32, ROW, in, at);
    const int two = constant(&m, WEFT_F32, 2.5);
    const int y = calc(&m, WEFT_OP_MUL, WEFT_F32, ROW, x, two, -1);
    const int mask = instr(&m, WEFT_INSTR_MASK, WEFT_BOOL, -1, -1, at);
    const int index = instr(&m, WEFT_INSTR_INDEX, WEFT_I64, -1, -1, at);
    const int z = calc(&m, WEFT_OP_WHERE, WEFT_F32, ROW, mask, y, two);
    const int h = instr(&m, WEFT_INSTR_CAST, WEFT_F16, z, -1, -1);
    store(&m, ROW, out, all, h);
    store(&m, ROW, flags, all, mask);
    store(&m, ROW, numbers, all, index);
    float a[6] = {1, 2, 3, 4, 5, -6};
    uint16_t got[12];
    uint8_t seen[12];
    int64_t number[12];
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, got, seen, number}), WEFT_OK);
    for (int i = 0; i < 12; i++) {
        const bool inside = i >= 3 && i < 9;
        assert_true(weft_f16_to_f32(got[i]) == (inside ? a[i - 3] * 2.5f : 2.5f));
        assert_int_equal(seen[i], inside);
        assert_int_equal(number[i], inside ? i - 3 : 0);
    }
    teardown(&f);
}

static void test_gather(void **state) {
    (void)state;
    fixture f;
    maker m;
    setup(&f);
    begin(&m, 2, 0, SHAPE(4, 2)); /* reads rows of a (5, 2) table */
    const int table = arg(&m, WEFT_I32, "r", 10), picks = arg(&m, WEFT_I64, "r", 4),
              out = arg(&m, WEFT_I32, "w", 8);
    weft_view row, column;
    weft__view_identity(&row, 2, SHAPE(4, 1));
    assert_true(weft__view_expand(&row, SHAPE(4, 2)));
    weft__view_identity(&column, 2, SHAPE(1, 2));
    assert_true(weft__view_expand(&column, SHAPE(4, 2)));
    const int at_row = view(&m, &row), at_column = view(&m, &column);
    const int i = load(&m, WEFT_I64, ROW, picks, at_row);
    const int v = gather(&m, WEFT_I32, i, table, at_column, 2, 5);
    store(&m, ROW, out, whole(&m), v);
    int32_t values[10] = {0, 1, 10, 11, 20, 21, 30, 31, 40, 41}, got[8];
    int64_t chosen[4] = {4, 0, 2, 2};
    weft_fault fault;
    assert_int_equal(run_kernel(&f, &m, (void *[]){values, chosen, got}), WEFT_OK);
    const int32_t expected[8] = {40, 41, 0, 1, 20, 21, 20, 21};
    assert_memory_equal(got, expected, sizeof got);
    assert_int_equal(f.device->ops->take_fault(f.device, &fault), WEFT_OK);
    assert_int_equal(fault.set, 0);
    chosen[2] = 5; /* out of range: reads 0, and the fault gives the element of the index tensor */
    assert_int_equal(run_kernel(&f, &m, (void *[]){values, chosen, got}), WEFT_OK);
    assert_int_equal(got[4], 0);
    assert_int_equal(got[6], 20);
    f.device->ops->take_fault(f.device, &fault);
    assert_int_equal(fault.set, 1);
    assert_int_equal(fault.kind, WEFT_FAULT_GATHER);
    assert_string_equal(fault.path, "net.layer");
    assert_int_equal(fault.value, 5);
    assert_int_equal(fault.bound, 5);
    assert_int_equal(fault.element, 2);
    f.device->ops->take_fault(f.device, &fault);
    assert_int_equal(fault.set, 0);
    teardown(&f);
}

static void test_random(void **state) {
    (void)state;
    fixture f;
    maker m;
    setup(&f);
    begin(&m, 1, 0, SHAPE(11));
    const int key = arg(&m, WEFT_I32, "r", 8), out = arg(&m, WEFT_I32, "w", 11);
    weft_view v;
    weft__view_identity(&v, 1, SHAPE(11));
    assert_true(weft__view_slice(&v, SHAPE(10), SHAPE(11), SHAPE(-1))); /* element numbers in reverse order */
    const int backwards = view(&m, &v), all = whole(&m);
    const int bits = instr(&m, WEFT_INSTR_RANDOM, WEFT_I32, -1, key, backwards);
    store(&m, ROW, out, all, bits);
    /* seed 42, stream 7, step 9; the first element is number 2^32 + 1 */
    uint32_t philox[2];
    weft__philox_key(42, 7, philox);
    int32_t words[8] = {(int32_t)philox[0], (int32_t)philox[1], 9, 0, 1, 1, 0, 0}, got[11];
    assert_int_equal(run_kernel(&f, &m, (void *[]){words, got}), WEFT_OK);
    for (uint64_t i = 0; i < 11; i++)
        assert_int_equal((uint32_t)got[i], weft__random_u32(42, 7, 9, (UINT64_C(1) << 32) + 1 + 10 - i));
    teardown(&f);
}

/* ---- reductions ---- */

static void make_softmax(maker *m, weft_dtype dtype, int64_t n, int64_t length, bool in_place) {
    begin(m, 1, 1, SHAPE(n, length));
    const int in = arg(m, dtype, in_place ? "rw" : "r", n * length),
              out = in_place ? in : arg(m, dtype, "w", n * length);
    const int sums = arg(m, dtype, "w", n), all = whole(m), row = rows(m);
    const int x = load(m, dtype, FULL, in, all);
    const int most = reduce(m, WEFT_OP_MAX, dtype, x);
    const int moved = calc(m, WEFT_OP_SUB, dtype, FULL, x, most, -1);
    const int e = calc(m, WEFT_OP_EXP, dtype, FULL, moved, -1, -1);
    const int sum = reduce(m, WEFT_OP_SUM, dtype, e);
    const int y = calc(m, WEFT_OP_DIV, dtype, FULL, e, sum, -1);
    store(m, FULL, out, all, y);
    store(m, ROW, sums, row, sum);
}

static void test_softmax(void **state) {
    (void)state;
    enum { N = 7, L = 5 };
    fixture f;
    maker m;
    float x[N * L], y[N * L], sums[N];
    setup(&f);
    for (int i = 0; i < N * L; i++) x[i] = (float)((i * 37) % 11) - 4;
    make_softmax(&m, WEFT_F32, N, L, false);
    assert_int_equal(run_kernel(&f, &m, (void *[]){x, y, sums}), WEFT_OK);
    for (int r = 0; r < N; r++) {
        double most = -1e9, sum = 0;
        for (int i = 0; i < L; i++) most = fmax(most, x[r * L + i]);
        for (int i = 0; i < L; i++) sum += exp(x[r * L + i] - most);
        assert_true(sums[r] == (float)sum);
        for (int i = 0; i < L; i++) assert_true(y[r * L + i] == (float)(exp(x[r * L + i] - most) / sum));
    }
    float z[N * L];
    memcpy(z, x, sizeof z);
    make_softmax(&m, WEFT_F32, N, L, true); /* a row may be overwritten in place */
    assert_int_equal(run_kernel(&f, &m, (void *[]){z, sums}), WEFT_OK);
    assert_memory_equal(z, y, sizeof z);
    make_softmax(&m, WEFT_F32, N, L, false); /* one buffer, passed twice */
    memcpy(z, x, sizeof z);
    assert_int_equal(run_kernel(&f, &m, (void *[]){z, z, sums}), WEFT_OK);
    assert_memory_equal(z, y, sizeof z);
    teardown(&f);
}

static void test_empty_reductions(void **state) {
    (void)state;
    fixture f;
    maker m;
    setup(&f);
    begin(&m, 1, 1, SHAPE(2, 0));
    const int in = arg(&m, WEFT_I8, "r", 0), fin = arg(&m, WEFT_F64, "r", 0), out = arg(&m, WEFT_I8, "w", 8),
              fout = arg(&m, WEFT_F64, "w", 8);
    const int x = load(&m, WEFT_I8, FULL, in, whole(&m)), y = load(&m, WEFT_F64, FULL, fin, whole(&m));
    const weft_op ops[4] = {WEFT_OP_SUM, WEFT_OP_PROD, WEFT_OP_MAX, WEFT_OP_MIN};
    for (int64_t i = 0; i < 4; i++) {
        weft_view v;
        weft__view_identity(&v, 2, SHAPE(2, 4)); /* column i of (2, 4), once for each row */
        assert_true(weft__view_slice(&v, SHAPE(0, i), SHAPE(2, 1), SHAPE(1, 1)));
        assert_true(weft__view_expand(&v, SHAPE(2, 0)));
        const int at = view(&m, &v);
        store(&m, ROW, out, at, reduce(&m, ops[i], WEFT_I8, x));
        store(&m, ROW, fout, at, reduce(&m, ops[i], WEFT_F64, y));
    }
    int8_t got[8];
    double fgot[8];
    assert_int_equal(run_kernel(&f, &m, (void *[]){got, fgot, got, fgot}), WEFT_OK);
    const int8_t expected[8] = {0, 1, -128, 127, 0, 1, -128, 127};
    const double fexpected[8] = {0, 1, -HUGE_VAL, HUGE_VAL, 0, 1, -HUGE_VAL, HUGE_VAL};
    assert_memory_equal(got, expected, sizeof got);
    assert_memory_equal(fgot, fexpected, sizeof fgot);
    teardown(&f);
}

/* x (2 blocks, 3 rows, 4): column sums and the largest row sum of each block. */
static void test_folds(void **state) {
    (void)state;
    fixture f;
    maker m;
    weft_view columns, blocks;
    setup(&f), begin(&m, 2, 1, SHAPE(2, 3, 4));
    m.kernel.n_fold = 1;
    weft__view_identity(&columns, 3, SHAPE(2, 1, 4));
    weft__view_identity(&blocks, 3, SHAPE(2, 1, 1));
    assert_true(weft__view_expand(&columns, m.kernel.extent));
    assert_true(weft__view_expand(&blocks, m.kernel.extent));
    const int in = arg(&m, WEFT_F32, "r", 24), sums = arg(&m, WEFT_F32, "w", 8);
    const int most = arg(&m, WEFT_F32, "w", 2), out = arg(&m, WEFT_F32, "w", 24), all = whole(&m);
    const int x = load(&m, WEFT_F32, FULL, in, all), sum = reduce(&m, WEFT_OP_SUM, WEFT_F32, x);
    const int less = calc(&m, WEFT_OP_SUB, WEFT_F32, FULL, x, sum, -1);
    store(&m, WEFT_LEVEL_COLUMN, sums, view(&m, &columns), fold(&m, WEFT_OP_SUM, WEFT_F32, less));
    store(&m, WEFT_LEVEL_BLOCK, most, view(&m, &blocks), fold(&m, WEFT_OP_MAX, WEFT_F32, sum));
    store(&m, FULL, out, all, less);
    float a[24], b[8], c[2], d[24];
    for (int i = 0; i < 24; i++) a[i] = (float)(i * i % 17);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, b, c, d}), WEFT_OK);
    for (int i = 0; i < 8; i++) {
        float column = 0, largest = -1;
        for (const float *row = a + i / 4 * 12; row < a + i / 4 * 12 + 12; row += 4) {
            const float total = row[0] + row[1] + row[2] + row[3];
            largest = total > largest ? total : largest, column += row[i % 4] - total;
        }
        assert_true(b[i] == column && c[i / 4] == largest);
    }
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, b, b, d}), WEFT_ERR_INTERNAL); /* both in one buffer */
    assert_says(&f, "written twice");
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, a, c, d}), WEFT_ERR_INTERNAL); /* overwrites inputs */
    teardown(&f);
}

static void test_integer_sums_wrap(void **state) {
    (void)state;
    fixture f;
    maker m;
    setup(&f);
    begin(&m, 1, 1, SHAPE(1, 300));
    const int in = arg(&m, WEFT_U8, "r", 300), out = arg(&m, WEFT_U8, "w", 1);
    const int x = load(&m, WEFT_U8, FULL, in, whole(&m));
    store(&m, ROW, out, rows(&m), reduce(&m, WEFT_OP_SUM, WEFT_U8, x));
    uint8_t a[300], got;
    memset(a, 3, sizeof a);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, &got}), WEFT_OK);
    assert_int_equal(got, 900 % 256);
    teardown(&f);
}

/* ---- races and bounds ---- */

static void copy_kernel(maker *m, const weft_view *from, const weft_view *to, int64_t n_from, int64_t n_to) {
    begin(m, from->map[0].rank, 0, from->map[0].extent);
    const int in = arg(m, WEFT_I32, "r", n_from), out = arg(m, WEFT_I32, "w", n_to);
    const int at = view(m, from), target = view(m, to);
    store(m, ROW, out, target, load(m, WEFT_I32, ROW, in, at));
}

static void test_races(void **state) {
    (void)state;
    fixture f;
    maker m;
    weft_view all, reversed, shared;
    int32_t a[8] = {0, 1, 2, 3, 4, 5, 6, 7}, b[8];
    setup(&f);
    weft__view_identity(&all, 1, SHAPE(8));
    reversed = all;
    assert_true(weft__view_slice(&reversed, SHAPE(7), SHAPE(8), SHAPE(-1)));
    copy_kernel(&m, &reversed, &all, 8, 8);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, b}), WEFT_OK);
    assert_int_equal(b[0], 7);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, a}), WEFT_ERR_INTERNAL); /* reversed in place */
    assert_says(&f, "another index has");
    assert_says(&f, "arg");
    copy_kernel(&m, &all, &all, 8, 8);
    assert_int_equal(run_kernel(&f, &m, (void *[]){b, b}), WEFT_OK); /* only its own element: correct */
    weft__view_identity(&shared, 1, SHAPE(1));                       /* all indices write element 0 */
    assert_true(weft__view_expand(&shared, SHAPE(8)));
    copy_kernel(&m, &all, &shared, 8, 1);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, b}), WEFT_ERR_INTERNAL);
    assert_says(&f, "written twice");
    copy_kernel(&m, &shared, &all, 1, 8); /* all read element 0 and one writes it: wrong in any order */
    for (int i = 0; i < 60; i++) {
        assert_int_equal(run_kernel(&f, &m, (void *[]){a, a}), WEFT_ERR_INTERNAL);
        assert_says(&f, "race");
    }
    int64_t wide[4]; /* overlap of different dtypes, found by address */
    begin(&m, 1, 0, SHAPE(4));
    const int in = arg(&m, WEFT_I32, "r", 4), out = arg(&m, WEFT_I64, "w", 4), at = whole(&m);
    const int v = load(&m, WEFT_I32, ROW, in, at);
    store(&m, ROW, out, at, instr(&m, WEFT_INSTR_CAST, WEFT_I64, v, -1, -1));
    memset(wide, 0, sizeof wide);
    assert_int_equal(run_kernel(&f, &m, (void *[]){wide, wide}), WEFT_ERR_INTERNAL);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, wide}), WEFT_OK);
    teardown(&f);
}

/* The reduction indices of a row have no order either. */
static void test_races_within_a_row(void **state) {
    (void)state;
    fixture f;
    maker m;
    weft_view reversed;
    setup(&f);
    begin(&m, 1, 1, SHAPE(3, 4));
    const int in = arg(&m, WEFT_F32, "r", 12), out = arg(&m, WEFT_F32, "w", 12), all = whole(&m);
    reversed = m.views[all];
    assert_true(weft__view_slice(&reversed, SHAPE(0, 3), SHAPE(3, 4), SHAPE(1, -1)));
    const int x = load(&m, WEFT_F32, FULL, in, view(&m, &reversed));
    const int sum = reduce(&m, WEFT_OP_SUM, WEFT_F32, x);
    store(&m, FULL, out, all, calc(&m, WEFT_OP_SUB, WEFT_F32, FULL, x, sum, -1));
    float a[12] = {0}, b[12];
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, b}), WEFT_OK);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a, a}), WEFT_ERR_INTERNAL);
    assert_says(&f, "another index has");
    begin(&m, 1, 1, SHAPE(3, 4)); /* stores a value of the row for each element */
    const int target = arg(&m, WEFT_F32, "w", 3), one = constant(&m, WEFT_F32, 1);
    store(&m, FULL, target, rows(&m), one);
    assert_int_equal(run_kernel(&f, &m, (void *[]){a}), WEFT_ERR_INTERNAL);
    assert_says(&f, "written twice");
    teardown(&f);
}

/* The interpreter checks bounds itself, and does not rely on the verifier. */
static void test_bounds(void **state) {
    (void)state;
    fixture f;
    maker m;
    weft_view all, off;
    int32_t a[8] = {0}, b[8];
    setup(&f);
    weft__view_identity(&all, 1, SHAPE(8));
    off = all;
    off.map[0].offset = 1;
    void *const args[2] = {a, b};
    copy_kernel(&m, &off, &all, 8, 8);
    assert_int_equal(weft__interp_kernel(interp_of(f.device), &m.kernel, args), WEFT_ERR_INTERNAL);
    assert_says(&f, "\"v0 i32 = load arg0[i0 + 1]\": outside its buffer: element 8 at index (7)");
    copy_kernel(&m, &all, &off, 8, 8);
    assert_int_equal(weft__interp_kernel(interp_of(f.device), &m.kernel, args), WEFT_ERR_INTERNAL);
    assert_says(&f, "outside its buffer: element 8");
    off.map[0].offset = -1; /* must not look like a guard that fails */
    copy_kernel(&m, &off, &all, 8, 8);
    assert_int_equal(weft__interp_kernel(interp_of(f.device), &m.kernel, args), WEFT_ERR_INTERNAL);
    assert_says(&f, "element -1 at index (0)");
    off = all;
    off.count = 2;
    off.map[1] = all.map[0];
    off.map[0].offset = 1;
    copy_kernel(&m, &off, &all, 8, 8);
    assert_int_equal(weft__interp_kernel(interp_of(f.device), &m.kernel, args), WEFT_ERR_INTERNAL);
    assert_says(&f, "leaves the index space of a map");
    teardown(&f);
}

/* ---- programs ---- */

typedef struct program {
    weft_commands commands;
    weft_command list[8];
    weft_operand operands[8][4];
} program;

static weft_command *command(program *p, weft_command_kind kind, bool after, bool sink, int n) {
    const int i = p->commands.count++;
    p->commands.list = p->list;
    p->list[i] = (weft_command){
        .kind = kind, .after = after, .sink = sink, .n_operands = n, .operands = p->operands[i]};
    return &p->list[i];
}

static void read_back(fixture *f, const weft_buffer *b, void *out, size_t bytes) {
    assert_int_equal(f->device->ops->download(f->device, b, 0, out, bytes), WEFT_OK);
}

/* A program of three buffers: b = 0; b[0..4) = table[index], both in a. A sink then copies b to c. */
typedef struct faulty {
    fixture f;
    maker m;
    program p;
    weft_buffer *slots[3];
    weft_executable *e;
} faulty;

static void make_faulty(faulty *x) {
    memset(x, 0, sizeof *x);
    setup(&x->f);
    const weft_device_ops *ops = x->f.device->ops;
    for (int i = 0; i < 3; i++) assert_int_equal(ops->buffer_new(x->f.device, 64, &x->slots[i]), WEFT_OK);
    begin(&x->m, 1, 0, SHAPE(4));
    const int index = arg(&x->m, WEFT_I32, "r", 4), table = arg(&x->m, WEFT_I32, "r", 4);
    const int out = arg(&x->m, WEFT_I32, "w", 4), all = whole(&x->m);
    weft_view zero;
    weft__view_identity(&zero, 1, SHAPE(1));
    assert_true(weft__view_expand(&zero, SHAPE(4)));
    const int at = view(&x->m, &zero), i = load(&x->m, WEFT_I32, ROW, index, all);
    store(&x->m, ROW, out, all, gather(&x->m, WEFT_I32, i, table, at, 1, 4));
    command(&x->p, WEFT_COMMAND_ZERO, true, false, 1)->bytes = 32;
    command(&x->p, WEFT_COMMAND_KERNEL, true, false, 3)->kernel = &x->m.kernel;
    command(&x->p, WEFT_COMMAND_COPY, true, true, 2)->bytes = 32;
    const weft_operand operands[3][3] = {{{1, 0}}, {{0, 0}, {0, 16}, {1, 0}}, {{1, 0}, {2, 0}}};
    for (int c = 0; c < 3; c++) memcpy(x->p.operands[c], operands[c], sizeof operands[c]);
    x->p.commands.n_slots = 3;
    assert_int_equal(ops->build(x->f.device, &x->p.commands, &x->e), WEFT_OK);
}

static void free_faulty(faulty *x) {
    const weft_device_ops *ops = x->f.device->ops;
    ops->executable_free(x->f.device, x->e);
    for (int b = 0; b < 3; b++) ops->buffer_free(x->f.device, x->slots[b]);
    assert_int_equal(x->f.device->bytes_peak, 192);
    teardown(&x->f);
}

/* Uploads four indices and the table 10, 11, 12, 13; runs; downloads c. */
static void run_faulty(faulty *x, const int32_t *index, int times, int32_t c[16]) {
    const weft_device_ops *ops = x->f.device->ops;
    const int32_t table[4] = {10, 11, 12, 13};
    assert_int_equal(ops->upload(x->f.device, x->slots[0], 0, index, 16), WEFT_OK);
    assert_int_equal(ops->upload(x->f.device, x->slots[0], 16, table, 16), WEFT_OK);
    assert_int_equal(ops->run(x->f.device, x->e, x->slots, times), WEFT_OK);
    read_back(&x->f, x->slots[2], c, 64);
}

static void test_program_with_faults(void **state) {
    (void)state;
    faulty x;
    weft_fault fault;
    int32_t got[16];
    float fresh[16];
    make_faulty(&x);
    const weft_device_ops *ops = x.f.device->ops;
    assert_int_equal(x.f.device->bytes_in_use, 192);
    read_back(&x.f, x.slots[1], fresh, sizeof fresh);
    for (int i = 0; i < 16; i++) assert_true(isnan(fresh[i]));
    run_faulty(&x, (const int32_t[]){3, 2, 1, 0}, 2, got);
    const int32_t expected[16] = {13, 12, 11, 10, 0, 0, 0, 0, -1, -1, -1, -1, -1, -1, -1, -1};
    assert_memory_equal(got, expected, sizeof got);
    /* after a fault the sink does nothing, in this run and the next, until the fault is taken */
    run_faulty(&x, (const int32_t[]){0, -1, 1, 0}, 1, got);
    assert_memory_equal(got, expected, sizeof got);
    run_faulty(&x, (const int32_t[]){0, 0, 1, 0}, 1, got);
    assert_memory_equal(got, expected, sizeof got);
    read_back(&x.f, x.slots[1], got, sizeof got);
    assert_int_equal(got[0], 10);
    assert_int_equal(ops->take_fault(x.f.device, &fault), WEFT_OK);
    assert_int_equal(fault.set, 1);
    assert_int_equal(fault.value, -1);
    assert_int_equal(fault.element, 1);
    run_faulty(&x, (const int32_t[]){0, 0, 1, 0}, 1, got);
    assert_int_equal(got[1], 10);
    free_faulty(&x);
}

static void test_timings_and_checks(void **state) {
    (void)state;
    faulty x;
    int32_t got[16];
    make_faulty(&x);
    const weft_device_ops *ops = x.f.device->ops;
    weft__device_set_timing(x.f.device, true);
    run_faulty(&x, (const int32_t[]){0, 0, 0, 0}, 1, got);
    const weft_timing *t = weft__device_timings(x.f.device, x.e);
    assert_true(t && t[2].end_ns >= t[2].start_ns && t[2].start_ns >= t[1].end_ns);
    weft__device_set_timing(x.f.device, false);
    assert_null(weft__device_timings(x.f.device, x.e));
    ((weft_interp_buffer *)x.slots[2])->memory[WEFT_INTERP_GUARD + 64] ^= 1;
    assert_int_equal(ops->run(x.f.device, x.e, x.slots, 1), WEFT_ERR_INTERNAL);
    assert_says(&x.f, "wrote outside a buffer");
    x.p.operands[1][1].offset = 52;
    assert_int_equal(ops->run(x.f.device, x.e, x.slots, 1), WEFT_ERR_INTERNAL);
    assert_says(&x.f, "leaves its buffer");
    x.p.operands[1][1].offset = 17;
    assert_int_equal(ops->run(x.f.device, x.e, x.slots, 1), WEFT_ERR_INTERNAL);
    assert_says(&x.f, "not aligned");
    assert_int_equal(ops->download(x.f.device, x.slots[0], 60, got, 8), WEFT_ERR_INTERNAL);
    free_faulty(&x);
}

/* Commands without the mark `after` run in random order, so a dependence that the plan forgot becomes
 * visible. */
static void test_order_is_shuffled(void **state) {
    (void)state;
    fixture f;
    program p = {0};
    weft_buffer *slots[1];
    weft_executable *e;
    setup(&f);
    const weft_device_ops *ops = f.device->ops;
    assert_int_equal(ops->buffer_new(f.device, 64, &slots[0]), WEFT_OK);
    interp_of(f.device)->random = 5;
    weft__interp_poison_arena(f.device, true);
    command(&p, WEFT_COMMAND_ZERO, true, false, 1)->bytes = 8;
    command(&p, WEFT_COMMAND_COPY, false, false, 2)->bytes = 8; /* the mark is missing */
    p.operands[1][1].offset = 8;
    p.commands.n_slots = 1;
    assert_int_equal(ops->build(f.device, &p.commands, &e), WEFT_OK);
    int zeros = 0, poison = 0;
    for (int i = 0; i < 40; i++) {
        int64_t got[2];
        assert_int_equal(ops->run(f.device, e, slots, 1), WEFT_OK);
        read_back(&f, slots[0], got, sizeof got);
        assert_true(got[0] == 0 && (got[1] == 0 || got[1] == -1));
        got[1] == 0 ? zeros++ : poison++;
    }
    assert_true(zeros > 5 && poison > 5);
    p.list[1].after = true;
    for (int i = 0; i < 40; i++) {
        int64_t got[2];
        assert_int_equal(ops->run(f.device, e, slots, 1), WEFT_OK);
        read_back(&f, slots[0], got, sizeof got);
        assert_int_equal(got[1], 0);
    }
    ops->executable_free(f.device, e);
    p.operands[1][0].slot = 1;
    assert_int_equal(ops->build(f.device, &p.commands, &e), WEFT_ERR_INTERNAL);
    assert_says(&f, "has no slot");
    ops->buffer_free(f.device, slots[0]);
    teardown(&f);
}

/* ---- null ---- */

typedef struct log_lines {
    int count, level;
    char text[4096];
} log_lines;

static void keep_line(void *user, weft_log_level level, const char *message) {
    log_lines *l = user;
    l->count++;
    l->level = (int)level;
    snprintf(l->text + strlen(l->text), sizeof l->text - strlen(l->text), "%s\n", message);
}

static void test_null(void **state) {
    (void)state;
    log_lines lines = {0};
    weft_context ctx = {.caller.log = keep_line, .caller.log_user = &lines};
    weft_device *device;
    weft_executable *e;
    weft_buffer *slots[1];
    maker m;
    program p = {0};
    assert_int_equal(weft__device_open(&ctx, "null", NULL, &device), WEFT_OK);
    assert_int_equal(device->ops->buffer_new(device, (size_t)1 << 50, &slots[0]), WEFT_OK); /* a petabyte */
    make_softmax(&m, WEFT_F32, 4, 8, false);
    command(&p, WEFT_COMMAND_KERNEL, true, false, 3)->kernel = &m.kernel;
    command(&p, WEFT_COMMAND_COPY, true, true, 2)->bytes = 100;
    command(&p, WEFT_COMMAND_HEAVY, true, false, 3)->heavy.kind = WEFT_HEAVY_MATMUL;
    command(&p, WEFT_COMMAND_ZERO, false, false, 1)->bytes = 7;
    p.commands.n_slots = 1;
    assert_int_equal(device->ops->build(device, &p.commands, &e), WEFT_OK);
    assert_int_equal(device->ops->run(device, e, slots, 3), WEFT_OK);
    const weft_null_counts *c = weft__null_counts(device);
    assert_int_equal(c->runs, 3);
    assert_int_equal(c->commands, 12);
    assert_int_equal(c->kernels, 3);
    assert_int_equal(c->heavy, 3);
    assert_int_equal(c->copies, 3);
    assert_int_equal(c->zeros, 3);
    assert_int_equal(c->bytes, 3 * (4 * (32 + 32 + 4) + 200 + 7));
    assert_non_null(strstr(lines.text, "null: 0 after: kernel test (rows 4; reduce 8)"));
    assert_non_null(strstr(lines.text, "null: 1 after sink: copy 100 bytes"));
    assert_non_null(strstr(lines.text, "null: 2 after: matmul"));
    assert_non_null(strstr(lines.text, "null: 3: zero 7 bytes"));
    char got[4] = {1, 2, 3, 4};
    assert_int_equal(device->ops->download(device, slots[0], 0, got, sizeof got), WEFT_OK);
    assert_memory_equal(got, "\0\0\0\0", 4);
    assert_true(device->ops->takes(device, &p.list[2].heavy));
    assert_int_equal(device->ops->check_dtype(device, (weft_dtype)99), WEFT_ERR_DTYPE);
    device->ops->executable_free(device, e);
    m.code[0].a = 0; /* the null device also refuses invalid kernels */
    assert_int_equal(device->ops->build(device, &p.commands, &e), WEFT_ERR_INTERNAL);
    device->ops->buffer_free(device, slots[0]);
    device->ops->close(device);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_softmax),
        cmocka_unit_test(test_empty_reductions),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_integer_sums_wrap),
        cmocka_unit_test(test_races),
        cmocka_unit_test(test_races_within_a_row),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_program_with_faults),
        cmocka_unit_test(test_timings_and_checks),
        cmocka_unit_test(test_order_is_shuffled),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
