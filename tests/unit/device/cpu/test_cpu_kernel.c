/* Fused kernels on the CPU device, compared with a direct evaluation in f64 (cpu_kernels.h). Map, row and
 * column kernels at the edges of tiles and vectors, views of all kinds, dtypes, gather, random numbers,
 * in-place updates, NaN, and random kernels. Every kernel runs on every instruction set, all tasks at once
 * and in chunks, with equal bits. */
#define _DEFAULT_SOURCE /* setenv */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cpu_kernels.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))

static const char *const isas[] = {"baseline", "avx2", "avx512"};
static const int64_t edges[] = {0, 1, 2, 3, 15, 16, 17, 31, 32, 33, 127, 128, 129, 1023, 1024, 1025, 2500};

static void prepare(const built *t, weft_cpu_work *work) {
    if (weft__cpu_kernel_prepare(NULL, &t->kernel, NULL, work) != WEFT_OK)
        fail_msg("%s: %s", t->kernel.name, weft_last_error(NULL));
}

/* Runs the tasks in chunks of `piece`. backwards: the last chunk first. */
static void run_work(const built *t, const weft_cpu_work *work, int64_t piece, bool backwards,
                     weft_fault *fault) {
    char *scratch = aligned_alloc(64, (work->scratch_bytes + 127) / 64 * 64);
    memset(scratch, 0xff, work->scratch_bytes); /* NaN */
    int64_t pieces = (work->tasks + piece - 1) / piece;
    for (int64_t i = 0; i < pieces; i++) {
        int64_t begin = (backwards ? pieces - 1 - i : i) * piece, end = begin + piece;
        work->run(work->plan, t->data, begin, end < work->tasks ? end : work->tasks, scratch, fault);
    }
    free(scratch);
}

/* Runs on all instruction sets, in several chunk sizes, and compares with the direct evaluation. The bound is
 * factor * u * magnitude. */
static void check_fault(built *t, double factor, weft_fault *fault) {
    void *start[16] = {0}, *first[16] = {0};
    for (int a = 0; a < t->kernel.n_args; a++) {
        size_t bytes = (size_t)t->args[a].elements * weft_dtype_size((weft_dtype)t->args[a].dtype);
        start[a] = malloc(bytes + 1), first[a] = malloc(bytes + 1);
        memcpy(start[a], t->data[a], bytes);
    }
    evaluate(t);
    for (size_t i = 0; i < COUNT(isas); i++) {
        setenv("WEFT_CPU_ISA", isas[i], 1);
        weft_cpu_work work;
        prepare(t, &work);
        const int64_t pieces[] = {work.tasks ? work.tasks : 1, 1, 3};
        for (size_t p = 0; p < COUNT(pieces); p++) {
            weft_fault seen = {0};
            for (int a = 0; a < t->kernel.n_args; a++)
                memcpy(t->data[a], start[a],
                       (size_t)t->args[a].elements * weft_dtype_size((weft_dtype)t->args[a].dtype));
            run_work(t, &work, pieces[p], p == 1, &seen);
            if (p == 0 && fault) *fault = seen;
            if (!fault && seen.set) fail_msg("%s: fault %d", t->kernel.name, (int)seen.kind);
            for (int a = 0; a < t->kernel.n_args; a++) {
                size_t bytes = (size_t)t->args[a].elements * weft_dtype_size((weft_dtype)t->args[a].dtype);
                if (p == 0)
                    memcpy(first[a], t->data[a], bytes);
                else if (memcmp(first[a], t->data[a], bytes) != 0)
                    fail_msg("%s (%s): bits depend on the cut", t->kernel.name, isas[i]);
            }
        }
        double w = worst(t, factor);
        if (w > 1) fail_msg("%s (%s): %g times the bound", t->kernel.name, isas[i], w);
        work.free(NULL, work.plan);
    }
    unsetenv("WEFT_CPU_ISA");
    for (int a = 0; a < t->kernel.n_args; a++) free(start[a]), free(first[a]);
}

static void check(built *t, double factor) {
    check_fault(t, factor, NULL);
    built_free(t);
}

static int contiguous(built *t) {
    weft_view v;
    weft__view_identity(&v, t->kernel.n_parallel + t->kernel.n_reduce, t->kernel.extent);
    return add_view(t, &v);
}

/* ---- maps ---- */

static void test_map_edges(void **state) {
    (void)state;
    for (size_t i = 0; i < COUNT(edges); i++) {
        const int64_t n = edges[i];
        built t;
        built_init(&t, "map", 1, 0, &n);
        int a = add_arg(&t, WEFT_F32, n, true, false, 1), b = add_arg(&t, WEFT_F32, n, true, false, 2);
        int c = add_arg(&t, WEFT_F32, n, false, true, 3), d = add_arg(&t, WEFT_F32, n, false, true, 4);
        int v = contiguous(&t), x = load(&t, 0, a, v), y = load(&t, 0, b, v);
        int k = constant(&t, 0, WEFT_F32, 0.75, 0);
        int sum = calc(&t, WEFT_OP_ADD, 0, WEFT_F32, calc(&t, WEFT_OP_MUL, 0, WEFT_F32, x, k, -1), y, -1);
        int th = calc(&t, WEFT_OP_TANH, 0, WEFT_F32, sum, -1, -1);
        int less = calc(&t, WEFT_OP_LT, 0, WEFT_BOOL, k, th, -1);
        store(&t, 0, c, v, calc(&t, WEFT_OP_WHERE, 0, WEFT_F32, less, th, k));
        store(&t, 0, d, v, sum);
        t.kernel.name = "map";
        check(&t, 8);
    }
}

static void copy_through(const weft_view *in, int rank, const int64_t *shape, int64_t elements,
                         weft_dtype dtype, const char *name) {
    built t;
    built_init(&t, name, rank, 0, shape);
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= shape[d];
    int a = add_arg(&t, dtype, elements, true, false, 5), b = add_arg(&t, dtype, n, false, true, 6),
        m = add_arg(&t, WEFT_BOOL, n, false, true, 7);
    int e = add_arg(&t, WEFT_I64, n, false, true, 8);
    int v = add_view(&t, in), o = contiguous(&t);
    int x = load(&t, 0, a, v);
    store(&t, 0, m, o, source(&t, WEFT_INSTR_MASK, 0, WEFT_BOOL, -1, v, -1, 0, 0));
    store(&t, 0, e, o, source(&t, WEFT_INSTR_INDEX, 0, WEFT_I64, -1, v, -1, 0, 0));
    store(&t, 0, b, o, x);
    check(&t, 0);
}

static void test_map_views(void **state) {
    (void)state;
    for (size_t i = 1; i < COUNT(edges) - 1; i++) {
        const int64_t n = edges[i], shape[3] = {3, 5, n}, numel = 15 * n;
        const int order[3] = {2, 0, 1};
        const int64_t turned[3] = {n, 3, 5};
        weft_view v;
        weft__view_identity(&v, 3, shape);
        assert_true(weft__view_permute(&v, order));
        copy_through(&v, 3, turned, numel, WEFT_F32, "permuted");
        const int64_t flat[1] = {numel};
        assert_true(weft__view_reshape(&v, 1, flat)); /* a view of several maps */
        copy_through(&v, 1, flat, numel, WEFT_F32, "reshaped");
        weft__view_identity(&v, 3, shape);
        const int64_t start[3] = {2, 4, n - 1}, extent[3] = {3, 2, (n + 1) / 2}, step[3] = {-1, -2, -2};
        assert_true(weft__view_slice(&v, start, extent, step));
        copy_through(&v, 3, extent, numel, WEFT_F64, "sliced and flipped");
        weft__view_identity(&v, 3, shape);
        const int64_t lo[3] = {1, 0, 2}, hi[3] = {0, 3, 1}, padded[3] = {4, 8, n + 3}, line[2] = {32, n + 3};
        assert_true(weft__view_pad(&v, lo, hi));
        copy_through(&v, 3, padded, numel, WEFT_I32, "padded");
        assert_true(weft__view_reshape(&v, 2, line));
        copy_through(&v, 2, line, numel, WEFT_U8, "padded and reshaped");
        const int64_t cut[2] = {3, 1}, part[2] = {20, n + 1}, by[2] = {1, 1};
        assert_true(weft__view_slice(&v, cut, part, by));
        copy_through(&v, 2, part, numel, WEFT_F16, "padded, reshaped, sliced");
        const int64_t one[2] = {1, n}, many[2] = {9, n};
        weft__view_identity(&v, 2, one);
        assert_true(weft__view_expand(&v, many));
        copy_through(&v, 2, many, n, WEFT_BF16, "expanded");
        const int64_t tall[2] = {n, 1}, wide[2] = {n, 9};
        weft__view_identity(&v, 2, tall);
        assert_true(weft__view_expand(&v, wide));
        copy_through(&v, 2, wide, n, WEFT_I64, "expanded inside");
    }
}

static void test_map_dtypes(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16, WEFT_I8,  WEFT_I16,
                                        WEFT_I32, WEFT_I64, WEFT_U8,  WEFT_U16,  WEFT_BOOL};
    for (size_t i = 0; i < COUNT(dtypes); i++)
        for (size_t j = 0; j < COUNT(dtypes); j++) {
            const int64_t n = 1100;
            built t;
            built_init(&t, "dtypes", 1, 0, &n);
            weft_dtype from = dtypes[i], to = dtypes[j];
            int a = add_arg(&t, from, n, true, false, 9), b = add_arg(&t, from, n, true, false, 10),
                c = add_arg(&t, to, n, false, true, 11);
            int d = add_arg(&t, from, n, false, true, 12), v = contiguous(&t);
            int x = load(&t, 0, a, v), y = load(&t, 0, b, v), z = x;
            if (from != WEFT_BOOL) {
                z = calc(&t, WEFT_OP_MUL, 0, from, x, y, -1);
                z = calc(&t, WEFT_OP_SUB, 0, from, calc(&t, WEFT_OP_MAXIMUM, 0, from, z, x, -1), y, -1);
            } else
                z = calc(&t, WEFT_OP_NOT, 0, from, x, -1, -1);
            store(&t, 0, d, v, z);
            if (from != WEFT_F64 || to == WEFT_F64 || weft_dtype_is_float(to))
                store(&t, 0, c, v,
                      cast(&t, 0, to, weft_dtype_is_float(from) && !weft_dtype_is_float(to) ? x : z));
            check(&t, to == WEFT_F64 && from != WEFT_F64 ? 0x1p32 : 5); /* computed in f32 */
        }
}

static void test_where_forms(void **state) {
    (void)state;
    for (int form = 0; form < 8; form++) { /* each bit: is that operand a constant? */
        const int64_t n = 1030;
        built t;
        built_init(&t, "where", 1, 0, &n);
        int a = add_arg(&t, WEFT_BOOL, n, true, false, 13), b = add_arg(&t, WEFT_F32, n, true, false, 14),
            o = add_arg(&t, WEFT_F32, n, false, true, 15);
        int s = add_arg(&t, WEFT_F32, 1, true, false, 16), v = contiguous(&t);
        const int64_t still[1] = {0};
        int one = add_strides(&t, 0, still);
        int x = form & 1 ? constant(&t, 0, WEFT_BOOL, 1, 1) : load(&t, 0, a, v);
        int y = form & 2 ? load(&t, 0, s, one) : load(&t, 0, b, v);
        int z = form & 4 ? constant(&t, 0, WEFT_F32, -3, 0) : load(&t, 0, b, v);
        store(&t, 0, o, v, calc(&t, WEFT_OP_WHERE, 0, WEFT_F32, x, y, z));
        check(&t, 0);
    }
}

static void test_in_place(void **state) {
    (void)state;
    const int64_t n = 5000;
    built t;
    built_init(&t, "adam", 1, 0, &n);
    int p = add_arg(&t, WEFT_F32, n, true, true, 17), m = add_arg(&t, WEFT_F32, n, true, true, 18),
        g = add_arg(&t, WEFT_F32, n, true, false, 19);
    int h = add_arg(&t, WEFT_BF16, n, false, true, 20), v = contiguous(&t);
    int x = load(&t, 0, p, v), y = load(&t, 0, m, v), z = load(&t, 0, g, v);
    int y2 = calc(&t, WEFT_OP_ADD, 0, WEFT_F32,
                  calc(&t, WEFT_OP_MUL, 0, WEFT_F32, y, constant(&t, 0, WEFT_F32, 0.9, 0), -1), z, -1);
    store(&t, 0, m, v, y2);
    int x2 = calc(&t, WEFT_OP_SUB, 0, WEFT_F32, x, calc(&t, WEFT_OP_MUL, 0, WEFT_F32, y2, y, -1), -1);
    store(&t, 0, h, v, cast(&t, 0, WEFT_BF16, x2));
    store(&t, 0, p, v, x2);
    check(&t, 6);
    built_init(&t, "swap", 1, 0, &n);
    p = add_arg(&t, WEFT_F32, n, true, true, 21), m = add_arg(&t, WEFT_F32, n, true, true, 22);
    v = contiguous(&t);
    x = load(&t, 0, p, v), y = load(&t, 0, m, v);
    store(&t, 0, m, v, x);
    store(&t, 0, p, v, y);
    check(&t, 0);
}

static void test_sources(void **state) {
    (void)state;
    for (size_t i = 1; i < COUNT(edges); i++) {
        const int64_t shape[2] = {7, edges[i]}, n = 7 * edges[i], rows = 11;
        built t;
        built_init(&t, "sources", 2, 0, shape);
        int ids = add_arg(&t, i % 2 ? WEFT_I32 : WEFT_I64, 7, true, false, 23),
            table = add_arg(&t, WEFT_F32, rows * edges[i], true, false, 24);
        int key = add_arg(&t, WEFT_I32, 8, true, false, 25), o = add_arg(&t, WEFT_F32, n, false, true, 26),
            r = add_arg(&t, WEFT_I32, n, false, true, 27);
        for (int j = 0; j < 7; j++)
            write_value((weft_dtype)t.args[ids].dtype, t.data[ids], j, 0, (j * 5) % 11),
                write_value((weft_dtype)t.args[ids].dtype, t.expected[ids], j, 0, (j * 5) % 11);
        const int64_t down[2] = {1, 0}, along[2] = {0, 1}, across[2] = {3, 7};
        int v = contiguous(&t), at = load(&t, 0, ids, add_strides(&t, 0, down));
        store(
            &t, 0, o, v,
            source(&t, WEFT_INSTR_GATHER, 0, WEFT_F32, table, add_strides(&t, 0, along), at, edges[i], rows));
        int random = source(&t, WEFT_INSTR_RANDOM, 0, WEFT_I32, key, v, -1, 0, 0);
        int jumps = source(&t, WEFT_INSTR_RANDOM, 0, WEFT_I32, key, add_strides(&t, 5, across), -1, 0, 0);
        store(&t, 0, r, v, calc(&t, WEFT_OP_ADD, 0, WEFT_I32, random, jumps, -1));
        check(&t, 0);
    }
}

static void test_faults(void **state) {
    (void)state;
    const int64_t shape[2] = {50, 40};
    built t;
    built_init(&t, "faults", 2, 0, shape);
    int ids = add_arg(&t, WEFT_I32, 50, true, false, 28), table = add_arg(&t, WEFT_F32, 400, true, false, 29),
        o = add_arg(&t, WEFT_F32, 2000, false, true, 30);
    for (int j = 0; j < 50; j++)
        ((int32_t *)t.data[ids])[j] = ((int32_t *)t.expected[ids])[j] = j == 33 ? 10 : j == 44 ? -1 : j % 10;
    const int64_t down[2] = {1, 0}, along[2] = {0, 1};
    int at = load(&t, 0, ids, add_strides(&t, 0, down)), v = contiguous(&t);
    store(&t, 0, o, v,
          source(&t, WEFT_INSTR_GATHER, 0, WEFT_F32, table, add_strides(&t, 0, along), at, 40, 10));
    weft_fault fault;
    check_fault(&t, 0, &fault);
    built_free(&t);
    assert_int_equal(fault.set, 1);
    assert_int_equal(fault.value, 10);
    assert_int_equal(fault.bound, 10);
    assert_int_equal(fault.element, 33);
    assert_string_equal(fault.path, "test");
    built_init(&t, "division", 2, 0, shape);
    int a = add_arg(&t, WEFT_I64, 2000, true, false, 31), b = add_arg(&t, WEFT_I64, 2000, true, false, 32);
    o = add_arg(&t, WEFT_I64, 2000, false, true, 33);
    v = contiguous(&t);
    store(&t, 0, o, v, calc(&t, WEFT_OP_DIV, 0, WEFT_I64, load(&t, 0, a, v), load(&t, 0, b, v), -1));
    check_fault(&t, 0, &fault);
    built_free(&t);
    assert_int_equal(fault.set, 1);
    assert_int_equal(fault.kind, WEFT_FAULT_DIVIDE);
}

/* ---- rows and columns ---- */

/* softmax over the reduction dimensions of x with the given strides. Also stores the sum as a ROW value. */
static void softmax(const char *name, int n_parallel, int n_reduce, const int64_t *extent,
                    const int64_t *stride, int64_t elements, weft_dtype dtype, bool in_place) {
    built t;
    built_init(&t, name, n_parallel, n_reduce, extent);
    const int64_t rows = weft__kernel_rows(&t.kernel);
    int64_t down[WEFT_VIEW_RANK] = {0}, pitch = 1;
    for (int d = n_parallel - 1; d >= 0; d--) down[d] = pitch, pitch *= extent[d];
    int x = add_arg(&t, dtype, elements, true, in_place, 40),
        y = in_place ? x : add_arg(&t, dtype, elements, false, true, 41);
    int s = add_arg(&t, dtype, rows, false, true, 42), w = add_arg(&t, dtype, rows, true, false, 43);
    int v = add_strides(&t, 0, stride), r = add_strides(&t, 0, down);
    int a = load(&t, WEFT_LEVEL_FULL, x, v), bias = load(&t, WEFT_LEVEL_ROW, w, r);
    int top = reduce(&t, WEFT_OP_MAX, dtype, a);
    int e = calc(&t, WEFT_OP_EXP, WEFT_LEVEL_FULL, dtype,
                 calc(&t, WEFT_OP_SUB, WEFT_LEVEL_FULL, dtype, a, top, -1), -1, -1);
    int sum = reduce(&t, WEFT_OP_SUM, dtype, e);
    int scaled = calc(&t, WEFT_OP_MUL, WEFT_LEVEL_ROW, dtype, sum, bias, -1);
    int q = calc(&t, WEFT_OP_DIV, WEFT_LEVEL_FULL, dtype, e, sum, -1);
    store(&t, WEFT_LEVEL_FULL, y, v, calc(&t, WEFT_OP_ADD, WEFT_LEVEL_FULL, dtype, q, bias, -1));
    store(&t, WEFT_LEVEL_ROW, s, r, scaled);
    check(&t, 2 * log2((double)(weft__kernel_row_length(&t.kernel) + 1)) + 20);
}

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 1; i < COUNT(edges); i++)
        for (int64_t rows = 1; rows < 50; rows = rows * 4 + 3) {
            const int64_t n = edges[i], extent[2] = {rows, n}, by_rows[2] = {n, 1}, by_columns[2] = {1, rows};
            softmax("softmax rows", 1, 1, extent, by_rows, rows * n, WEFT_F32, false);
            softmax("softmax rows in place", 1, 1, extent, by_rows, rows * n, WEFT_F32, true);
            softmax("softmax columns", 1, 1, extent, by_columns, rows * n, WEFT_F32, false);
            softmax("softmax columns in place", 1, 1, extent, by_columns, rows * n, WEFT_F32, true);
            softmax("softmax rows f64", 1, 1, extent, by_rows, rows * n, WEFT_F64, false);
            softmax("softmax columns f16", 1, 1, extent, by_columns, rows * n, WEFT_F16, false);
        }
    const int64_t many[2] = {300, 700}, many_rows[2] = {700, 1}, many_columns[2] = {1, 300};
    softmax("softmax 300 x 700", 1, 1, many, many_rows, 210000, WEFT_F32, false);
    softmax("softmax 700 x 300 columns", 1, 1, many, many_columns, 210000, WEFT_F32, true);
    const int64_t middle[4] = {3, 40, 4, 9}, between[4] = {36 * 40, 1, 40 * 9, 40}; /* (3, [4, 9], 40) */
    softmax("softmax of middle dimensions", 2, 2, middle, between, 3 * 36 * 40, WEFT_F32, false);
    const int64_t sparse[3] = {5, 30, 50}, strided[3] = {4000, 130, 2};
    softmax("softmax of strided rows", 1, 2, sparse, strided, 20000, WEFT_F32, false);
    const int64_t huge[2] = {2, 400000}, huge_rows[2] = {400000, 1}; /* too long to keep in scratch */
    softmax("softmax of very long rows", 1, 1, huge, huge_rows, 800000, WEFT_F32, true);
    const int64_t tall[2] = {130, 5000}, tall_columns[2] = {1, 130};
    softmax("softmax of long columns", 1, 1, tall, tall_columns, 650000, WEFT_F32, false);
    const int64_t all[1] = {3000}, one[1] = {1};
    softmax("softmax of everything", 0, 1, all, one, 3000, WEFT_F32, false);
}

/* sum, max, min and product of one operand. The sum has class D's bound. */
static void reductions(const char *name, int64_t rows, int64_t length, bool columns, weft_dtype dtype) {
    built t;
    const int64_t extent[2] = {rows, length}, along[2] = {columns ? 1 : length, columns ? rows : 1},
                  down[2] = {1, 0};
    built_init(&t, name, 1, 1, extent);
    int x = add_arg(&t, dtype, rows * length, true, false, 50);
    int v = add_strides(&t, 0, along), r = add_strides(&t, 0, down), a = load(&t, WEFT_LEVEL_FULL, x, v);
    static const weft_op ops[] = {WEFT_OP_SUM, WEFT_OP_MAX, WEFT_OP_MIN};
    for (size_t i = 0; i < COUNT(ops); i++)
        if (length > 0 || ops[i] != WEFT_OP_MIN)
            store(&t, WEFT_LEVEL_ROW, add_arg(&t, dtype, rows, false, true, 51), r,
                  reduce(&t, ops[i], dtype, a));
    check(&t, 2 * log2((double)(length > 1 ? length : 1)) + 4);
}

static void test_reductions(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_BF16, WEFT_I32, WEFT_I64, WEFT_U8};
    for (size_t k = 0; k < COUNT(dtypes); k++)
        for (size_t i = 0; i < COUNT(edges); i++) {
            reductions("reductions of rows", 6, edges[i], false, dtypes[k]);
            reductions("reductions of columns", 33, edges[i], true, dtypes[k]);
            reductions("many reductions", edges[i], 5, i % 2, dtypes[k]);
        }
    reductions("long rows", 3, 300001, false, WEFT_F32);
    reductions("long columns", 17, 70001, true, WEFT_F32);
    reductions("wide columns", 5000, 97, true, WEFT_F32);
}

/* Positive numbers: a plain loop would exceed the bound. */
static void test_sum_of_ones(void **state) {
    (void)state;
    for (int columns = 0; columns < 2; columns++) {
        const int64_t extent[2] = {16, 200000}, along[2] = {columns ? 1 : 200000, columns ? 16 : 1},
                      down[2] = {1, 0};
        built t;
        built_init(&t, columns ? "tenths in columns" : "tenths in rows", 1, 1, extent);
        int x = add_arg(&t, WEFT_F32, 16 * 200000, true, false, 60),
            o = add_arg(&t, WEFT_F32, 16, false, true, 61);
        for (int i = 0; i < 16 * 200000; i++) ((float *)t.data[x])[i] = ((float *)t.expected[x])[i] = 0.1f;
        store(&t, WEFT_LEVEL_ROW, o, add_strides(&t, 0, down),
              reduce(&t, WEFT_OP_SUM, WEFT_F32, load(&t, WEFT_LEVEL_FULL, x, add_strides(&t, 0, along))));
        check(&t, 2 * log2(200000) + 4);
    }
}

static void test_nan(void **state) {
    (void)state;
    for (int columns = 0; columns < 2; columns++)
        for (int64_t length = 1; length < 3000; length = length * 3 + 1) {
            const int64_t extent[2] = {4, length}, along[2] = {columns ? 1 : length, columns ? 4 : 1},
                          down[2] = {1, 0};
            built t;
            built_init(&t, "NaN and infinity", 1, 1, extent);
            int x = add_arg(&t, WEFT_F32, 4 * length, true, false, 70);
            for (int row = 1; row < 4; row++) {
                int64_t at = row * along[0] + length / 2 * along[1];
                ((float *)t.data[x])[at] = ((float *)t.expected[x])[at] = row == 1   ? NAN
                                                                          : row == 2 ? INFINITY
                                                                                     : -INFINITY;
            }
            int r = add_strides(&t, 0, down), a = load(&t, WEFT_LEVEL_FULL, x, add_strides(&t, 0, along));
            static const weft_op ops[] = {WEFT_OP_SUM, WEFT_OP_MAX, WEFT_OP_MIN};
            for (size_t i = 0; i < COUNT(ops); i++)
                store(&t, WEFT_LEVEL_ROW, add_arg(&t, WEFT_F32, 4, false, true, 71), r,
                      reduce(&t, ops[i], WEFT_F32, a));
            check(&t, 30);
        }
}

/* ---- folds ---- */

static int64_t one_less(int64_t n) { return n > 1 ? n - 1 : 0; }

/* For each block of rows: the sum, the maximum and the product of columns, and the sum of row values that a
 * reduction computes, next to ordinary stores. The last block may have only `last_rows` rows. */
static void folds(int64_t blocks, int64_t rows, int64_t last_rows, int64_t length, weft_dtype dtype) {
    built t;
    const int64_t extent[3] = {blocks, rows, length}, along[3] = {rows * length, length, 1};
    const int64_t column[3] = {length, 0, 1}, block[3] = {1, 0, 0}, row[3] = {0, 0, 1};
    const bool is_float = weft_dtype_is_float(dtype);
    built_init(&t, "folds", 2, 1, extent);
    t.kernel.n_fold = 1;
    t.kernel.last_rows = last_rows;
    const int64_t n = blocks * rows * length;
    const int x = add_arg(&t, dtype, n, true, false, 60), w = add_arg(&t, dtype, length, true, false, 61);
    const int all = add_strides(&t, 0, along), a = load(&t, WEFT_LEVEL_FULL, x, all);
    const int b = load(&t, WEFT_LEVEL_FULL, w, add_strides(&t, 0, row));
    const int product = calc(&t, WEFT_OP_MUL, WEFT_LEVEL_FULL, dtype, a, b, -1);
    const int dot = reduce(&t, WEFT_OP_SUM, dtype, product);
    const int scaled = calc(&t, WEFT_OP_MUL, WEFT_LEVEL_FULL, dtype, a, is_float ? dot : b, -1);
    const int columns = add_strides(&t, 0, column), of_block = add_strides(&t, 0, block);
    const int once = calc(&t, WEFT_OP_MUL, WEFT_LEVEL_FULL, dtype, is_float ? dot : b, a, -1);
    const int made[] = {fold(&t, WEFT_OP_SUM, dtype, scaled), fold(&t, WEFT_OP_SUM, dtype, once),
                        fold(&t, WEFT_OP_MAX, dtype, a), fold(&t, WEFT_OP_MIN, dtype, dot),
                        fold(&t, WEFT_OP_SUM, dtype, dot)};
    for (size_t i = 0; i < COUNT(made); i++) {
        const weft_level level = (weft_level)t.code[made[i]].level;
        const bool inner = level == WEFT_LEVEL_COLUMN;
        const int to = add_arg(&t, dtype, inner ? blocks * length : blocks, false, true, 62);
        store(&t, level, to, inner ? columns : of_block, made[i]);
    }
    store(&t, WEFT_LEVEL_FULL, add_arg(&t, dtype, n, false, true, 63), all, scaled);
    check(&t, 2 * log2((double)(rows * (length + 1))) + 20);
}

static void test_folds(void **state) {
    (void)state;
    for (size_t i = 1; i < COUNT(edges); i++) {
        const int64_t n = edges[i];
        folds(3, 1, 0, n, WEFT_F32);
        folds(1, 2, 0, n, WEFT_F32);
        folds(4, 37, 0, n, WEFT_F32);
        folds(4, 37, 5, n, WEFT_F32);
        folds(2, n, 0, 32, WEFT_F32);
        folds(2, n, one_less(n), 32, WEFT_F32);
        folds(3, n, n > 1, 3, WEFT_F64);
        folds(2, 5, 0, n, WEFT_U8);
        folds(2, 5, 4, n, WEFT_U8);
        folds(1, 5, 3, n, WEFT_F32);
    }
    for (int64_t last = 0; last < 20000; last = 3 * last + 700)
        folds(2, 20000, last, 2, WEFT_F32); /* many tiles, many rows */
    folds(2, 130, 0, 3000, WEFT_F64);       /* columns in chunks */
    folds(2, 130, 17, 3000, WEFT_F64);
}

/* Sums of ones scaled by 1/10 are within class D's bound. A plain loop would exceed it. */
static void test_fold_of_tenths(void **state) {
    (void)state;
    for (int64_t length = 1; length < 3000; length = length * 7 + 2) {
        const int64_t rows = 200000 / length, extent[2] = {rows, length}, along[2] = {0, 1},
                      still[2] = {0, 0};
        built t;
        built_init(&t, "tenths in folds", 1, 1, extent);
        t.kernel.n_fold = 1;
        const int tenth = constant(&t, WEFT_LEVEL_FULL, WEFT_F32, 0.1f, 0);
        const int row = constant(&t, WEFT_LEVEL_ROW, WEFT_F32, 0.1f, 0);
        store(&t, WEFT_LEVEL_COLUMN, add_arg(&t, WEFT_F32, length, false, true, 1), add_strides(&t, 0, along),
              fold(&t, WEFT_OP_SUM, WEFT_F32, tenth));
        store(&t, WEFT_LEVEL_BLOCK, add_arg(&t, WEFT_F32, 1, false, true, 2), add_strides(&t, 0, still),
              fold(&t, WEFT_OP_SUM, WEFT_F32, row));
        check(&t, 2 * log2((double)rows) + 4);
    }
}

/* ---- random kernels ---- */

static uint64_t random_state;
static int64_t draw(int64_t n) { return (int64_t)(weft__mix64(++random_state) % (uint64_t)n); }

/* A view from the kernel's space to a buffer of *elements: strides in a random order of dimensions, some 0,
 * some negative, with guards and an offset. ROW views have stride 0 along reductions, folded views along
 * rows. */
static int random_view(built *t, int level, bool plain_store, int64_t *elements) {
    const int rank = t->kernel.n_parallel + t->kernel.n_reduce;
    const int last = weft__level_inner(level) ? rank : t->kernel.n_parallel;
    const int still = weft__level_folded(level) ? t->kernel.n_parallel - t->kernel.n_fold : rank;
    weft_view v = {.count = 1};
    weft_map *m = &v.map[0];
    m->rank = rank;
    int order[WEFT_VIEW_RANK];
    for (int d = 0; d < rank; d++) order[d] = d, m->extent[d] = m->hi[d] = t->kernel.extent[d];
    if (draw(3) == 0)
        for (int d = last - 1; d > 0; d--) {
            int e = (int)draw(d + 1), swap = order[d];
            order[d] = order[e], order[e] = swap;
        }
    int64_t pitch = 1, low = 0, high = 0;
    for (int i = last - 1; i >= 0; i--) {
        int d = order[i];
        if (d >= still && d < t->kernel.n_parallel) continue;
        if (!plain_store && draw(6) == 0) continue;
        m->stride[d] = pitch * (!plain_store && draw(8) == 0 ? -1 : 1) * (draw(10) == 0 ? 2 : 1);
        pitch *= m->extent[d] * 2 / (draw(4) ? 2 : 1);
        pitch += draw(8) == 0;
        if (m->stride[d] * 1 < 0)
            low += m->stride[d] * (m->extent[d] - 1);
        else
            high += m->stride[d] * (m->extent[d] - 1);
        if (pitch <= high - low) pitch = high - low + 1;
        if (draw(8) == 0 && m->extent[d] > 1) {
            m->lo[d] = draw(2), m->hi[d] = m->extent[d] - draw(2);
            m->guarded = m->lo[d] > 0 || m->hi[d] < m->extent[d];
        }
    }
    m->offset = -low;
    *elements = high - low + 1;
    return add_view(t, &v);
}

/* A random kernel while it is built: the values so far, of the whole index space and of rows. */
typedef struct random_values {
    built t;
    uint64_t seed;
    int full[40], row[40], n_full, n_row;
} random_values;

static void random_space(random_values *r) {
    int64_t extent[6], sizes[] = {1, 2, 3, 5, 8, 17, 33, 130, 600, 1500};
    int n_parallel = (int)draw(4), n_reduce = (int)draw(3);
    int64_t total = 1;
    for (int d = 0; d < n_parallel + n_reduce; d++) {
        do extent[d] = sizes[draw((int64_t)COUNT(sizes))];
        while (total * extent[d] > 20000);
        total *= extent[d];
    }
    char name[32];
    snprintf(name, sizeof name, "random kernel %d", (int)r->seed);
    built_init(&r->t, name, n_parallel, n_reduce, extent);
}

static void random_load(random_values *r, int i) {
    static const weft_dtype stored[] = {WEFT_F32,  WEFT_F32, WEFT_F32, WEFT_F32,
                                        WEFT_BF16, WEFT_U8,  WEFT_I32, WEFT_BOOL};
    built *t = &r->t;
    bool full = t->kernel.n_reduce > 0 && draw(4) > 0;
    int64_t elements;
    int v = random_view(t, full, false, &elements);
    weft_dtype dtype = stored[draw((int64_t)COUNT(stored))];
    int a = load(t, full, add_arg(t, dtype, elements, true, false, r->seed + (uint64_t)i), v);
    if (dtype == WEFT_BOOL)
        a = calc(t, WEFT_OP_WHERE, full, WEFT_F32, a, constant(t, 0, WEFT_F32, 0.25, 0),
                 constant(t, 0, WEFT_F32, -1, 0));
    else if (dtype != WEFT_F32)
        a = cast(t, full, WEFT_F32, a);
    if (draw(2) == 0 && dtype != WEFT_F32 && dtype != WEFT_BF16)
        a = calc(t, WEFT_OP_MUL, full, WEFT_F32, a, constant(t, 0, WEFT_F32, 0.0625, 0), -1);
    if (full)
        r->full[r->n_full++] = a;
    else
        r->row[r->n_row++] = a;
}

static void random_work(random_values *r) {
    static const weft_op binary[] = {WEFT_OP_ADD, WEFT_OP_SUB, WEFT_OP_MUL, WEFT_OP_MAXIMUM, WEFT_OP_MINIMUM};
    built *t = &r->t;
    int reductions_made = 0;
    for (int i = (int)draw(9) + 2; i > 0; i--) {
        if (r->n_full && draw(4) == 0 && reductions_made < 3) {
            r->row[r->n_row++] =
                reduce(t, draw(2) ? WEFT_OP_SUM : WEFT_OP_MAX, WEFT_F32, r->full[draw(r->n_full)]);
            reductions_made++;
            r->row[r->n_row] = calc(t, WEFT_OP_TANH, 0, WEFT_F32, r->row[r->n_row - 1], -1, -1);
            r->n_row++;
            continue;
        }
        bool full = r->n_full && draw(3) > 0;
        int a = full ? r->full[draw(r->n_full)] : r->row[draw(r->n_row)];
        int b = full && draw(2) ? r->full[draw(r->n_full)] : r->row[draw(r->n_row)];
        int x = draw(5) == 0 ? calc(t, WEFT_OP_TANH, full, WEFT_F32, a, -1, -1)
                             : calc(t, binary[draw(5)], full, WEFT_F32, a, b, -1);
        if (full)
            r->full[r->n_full++] = x;
        else
            r->row[r->n_row++] = x;
    }
}

/* Sometimes makes the last parallel dimensions the rows of a block, and folds some values. */
static void random_folds(random_values *r) {
    built *t = &r->t;
    if (t->kernel.n_parallel == 0 || draw(3) > 0) return;
    t->kernel.n_fold = 1 + (int)draw(t->kernel.n_parallel);
    if (t->kernel.n_parallel == 2 && t->kernel.n_fold == 1) t->kernel.last_rows = draw(t->kernel.extent[1]);
    for (int i = (int)draw(3) + 1; i > 0; i--) {
        const bool full = r->n_full && draw(3) > 0;
        const int a = full ? r->full[draw(r->n_full)] : r->row[draw(r->n_row)];
        const int made = fold(t, draw(3) ? WEFT_OP_SUM : WEFT_OP_MIN, WEFT_F32, a),
                  level = t->code[made].level;
        int64_t elements;
        const int v = random_view(t, level, true, &elements);
        store(t, (weft_level)level, add_arg(t, WEFT_F32, elements, false, true, r->seed + 77), v, made);
    }
}

static void random_kernel(uint64_t seed) {
    random_values r = {.seed = seed};
    random_state = seed * 7919;
    random_space(&r);
    for (int i = (int)draw(3) + 1; i > 0; i--) random_load(&r, i);
    r.row[r.n_row++] = constant(&r.t, WEFT_LEVEL_ROW, WEFT_F32, 0.5, 0);
    random_work(&r);
    for (int i = (int)draw(3) + 1; i > 0; i--) {
        bool full = r.n_full && draw(2);
        int64_t elements;
        int v = random_view(&r.t, full, true, &elements);
        store(&r.t, full, add_arg(&r.t, WEFT_F32, elements, false, true, seed + 99), v,
              full ? r.full[r.n_full - 1 - draw(r.n_full > 2 ? 3 : r.n_full)]
                   : r.row[r.n_row - 1 - draw(r.n_row > 2 ? 3 : r.n_row)]);
    }
    random_folds(&r);
    check(&r.t, 400);
}

static void test_random_kernels(void **state) {
    (void)state;
    const char *text = getenv("WEFT_KERNEL_SEEDS");
    uint64_t count = text ? strtoull(text, NULL, 10) : 1500;
    for (uint64_t seed = 1; seed <= count; seed++) random_kernel(seed);
    print_message("%d random kernels\n", (int)count);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_edges),
        cmocka_unit_test(test_map_views),
        cmocka_unit_test(test_map_dtypes),
        cmocka_unit_test(test_where_forms),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_sources),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_reductions),
        cmocka_unit_test(test_sum_of_ones),
        cmocka_unit_test(test_nan),
        cmocka_unit_test(test_folds),
        cmocka_unit_test(test_fold_of_tenths),
        cmocka_unit_test(test_random_kernels),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
