/* The renderer. Kernels of every form, dtype and kind of view run on an OpenCL device, with no elements up to
 * several chunks of them. Results are compared with the
 * interpreter in f64. Each kernel runs twice with equal bits, between guarded buffers. Also tests the width
 * of indices in the source of kernels too large for the memory of this machine. */
#include "unit/core_help.h"

#include "opencl.h"
#include "kernel/source.h"

enum { MOST = 64 };

/* ---- graphs ---- */

typedef struct board {
    weft_context *ctx;
    weft_dtype dtype;
    int64_t rows, n;
    weft_tensor *x, *y;       /* (rows, n) */
    weft_tensor *line, *post; /* (n), (rows, 1) */
    weft_tensor *index;       /* i32 (5), rows of x; NULL if x has no rows */
    weft_tensor *out[MOST];
    const char *name[MOST];
    int count;
} board;

static void put(board *b, const char *name, weft_tensor *t) {
    if (weft_tensor_status(t) != WEFT_OK) fail_msg("%s: %s", name, weft_last_error(b->ctx));
    assert_true(b->count < MOST);
    if (t == b->x) return; /* cast to its own dtype */
    b->name[b->count] = name;
    b->out[b->count++] = t;
}

static double filler(const board *b, int64_t i, int salt) {
    const double v = sin(0.7 * (double)i + 1.3 * (double)salt);
    if (weft_dtype_is_float(b->dtype)) return v;
    return b->dtype == WEFT_BOOL ? v > 0 : 3 + floor(2.5 * v); /* values 0 to 5 */
}

static void set(weft_dtype dtype, void *p, int64_t i, double v) {
    switch (dtype) {
    case WEFT_F32: ((float *)p)[i] = (float)v; break;
    case WEFT_F64: ((double *)p)[i] = v; break;
    case WEFT_F16: ((uint16_t *)p)[i] = weft_f32_to_f16((float)v); break;
    case WEFT_BF16: ((uint16_t *)p)[i] = weft_f32_to_bf16((float)v); break;
    case WEFT_I8: ((int8_t *)p)[i] = (int8_t)v; break;
    case WEFT_I16: ((int16_t *)p)[i] = (int16_t)v; break;
    case WEFT_I32: ((int32_t *)p)[i] = (int32_t)v; break;
    case WEFT_I64: ((int64_t *)p)[i] = (int64_t)v; break;
    case WEFT_U8: ((uint8_t *)p)[i] = (uint8_t)v; break;
    case WEFT_U16: ((uint16_t *)p)[i] = (uint16_t)v; break;
    case WEFT_U32: ((uint32_t *)p)[i] = (uint32_t)v; break;
    case WEFT_U64: ((uint64_t *)p)[i] = (uint64_t)v; break;
    case WEFT_BOOL: ((uint8_t *)p)[i] = (uint8_t)v; break;
    default: fail();
    }
}

static weft_tensor *filled(const board *b, int salt, int rank, const int64_t *shape) {
    int64_t n = 1;
    for (int d = 0; d < rank; d++) n *= shape[d];
    void *data = calloc((size_t)n + 1, 8);
    for (int64_t i = 0; i < n; i++) set(b->dtype, data, i, filler(b, i, salt));
    weft_tensor *t = weft_from(b->ctx, b->dtype, rank, shape, data);
    free(data);
    return t;
}

static void fill(board *b) {
    b->x = filled(b, 1, SHAPE(b->rows, b->n));
    b->y = filled(b, 2, SHAPE(b->rows, b->n));
    b->line = filled(b, 3, SHAPE(b->n));
    b->post = filled(b, 4, SHAPE(b->rows, 1));
    int32_t at[5] = {0, 3, 1, 1, 7};
    for (int i = 0; i < 5; i++) at[i] %= (int32_t)(b->rows > 0 ? b->rows : 1);
    b->index = weft_from(b->ctx, WEFT_I32, SHAPE(5), at);
}

static weft_tensor *larger(weft_tensor *x, weft_tensor *y) { return weft_where(weft_lt(x, y), y, x); }

/* For all dtypes: ops that only move, compare or cast elements. */
static void any_forms(board *b) {
    weft_tensor *x = b->x, *y = b->y;
    const int64_t rows = b->rows, n = b->n;
    put(b, "where", weft_where(weft_lt(x, y), y, larger(x, b->line)));
    put(b, "transposed",
        weft_where(weft_ge(weft_transpose(x, 0, 1), weft_reshape(y, SHAPE(n, rows))), weft_transpose(y, 0, 1),
                   weft_reshape(x, SHAPE(n, rows))));
    put(b, "steps", weft_slice(x, (int64_t[]){0, 0}, NULL, (int64_t[]){1, 2}));
    put(b, "flipped", larger(weft_flip(x, 1), weft_flip(y, 0)));
    put(b, "padded", weft_pad(larger(x, y), (int64_t[]){1, 2}, (int64_t[]){0, 3}, 1));
    put(b, "pad of a sum",
        larger(weft_pad(x, (int64_t[]){0, 5}, (int64_t[]){1, 0}, 0),
               weft_pad(y, (int64_t[]){1, 0}, (int64_t[]){0, 5}, 0)));
    put(b, "list", weft_where(weft_eq(weft_reshape(weft_transpose(x, 0, 1), SHAPE(rows, n)), x), y, x));
    put(b, "joined", weft_concat((weft_tensor *[]){x, larger(x, y), y}, 3, 1));
    put(b, "count", weft_sum(weft_cast(weft_lt(x, y), WEFT_I32), 1, false));
    put(b, "as f32", weft_cast(x, WEFT_F32));
    put(b, "as i32", weft_cast(x, WEFT_I32));
    if (rows * n == 0) return; /* no row to choose */
    put(b, "largest", weft_max(x, 1, false));
    put(b, "smallest column", weft_min(x, 0, false));
    put(b, "gathered", larger(weft_gather(x, b->index, 0), b->line));
}

static void number_forms(board *b) {
    weft_tensor *x = b->x, *y = b->y;
    put(b, "broadcast", weft_sub(weft_mul(weft_add(x, y), b->line), b->post));
    put(b, "sum", weft_sum(weft_mul(x, y), 1, true));
    put(b, "sum of a column", weft_sum(x, 0, false));
    put(b, "sum of a strided row", weft_sum(weft_transpose(x, 0, 1), 1, false));
    put(b, "all", weft_sum(weft_add(x, y), WEFT_ALL_AXES, false));
    put(b, "as f16", weft_cast(x, WEFT_F16));
    put(b, "as bf16", weft_cast(x, WEFT_BF16));
    put(b, "as i64", weft_cast(x, WEFT_I64));
    put(b, "as u8", weft_cast(x, WEFT_U8));
}

static void integer_forms(board *b) {
    weft_tensor *by = weft_add_scalar(b->y, 1);
    put(b, "divided", weft_div(weft_mul_scalar(b->x, 23), by));
    put(b, "left over", weft_mod(weft_mul_scalar(b->x, 23), by));
    put(b, "shifted", weft_shr(weft_shl(b->x, b->y), weft_xor(b->x, by)));
}

/* Several stages, folds, values that vary along either axis. */
static void float_forms(board *b) {
    weft_tensor *x = b->x, *y = b->y;
    put(b, "softmax", weft_softmax(x, 1));
    put(b, "softmax of columns", weft_softmax(x, 0));
    put(b, "of a strided view",
        weft_log_softmax(weft_reshape(weft_transpose(x, 0, 1), SHAPE(b->rows, b->n)), 1));
    put(b, "normalised", weft_layer_norm(x, b->line, b->line, 1e-2));
    put(b, "functions", weft_mul(weft_tanh(x), weft_gelu(weft_div(x, weft_add_scalar(weft_exp(y), 1)))));
}

static void f32_forms(board *b) {
    weft_tensor *x = b->x, *y = b->y, *loss, *wrt[2] = {b->x, b->line}, *grad[2];
    const int64_t rows = b->rows, n = b->n;
    put(b, "argmax", weft_argmax(x, 1, false));
    put(b, "argmin of columns", weft_argmin(x, 0, false));
    put(b, "product", weft_prod(weft_add_scalar(weft_mul_scalar(x, 0.01), 1), 1, false));
    put(b, "variance", weft_var(weft_add(x, y), 1, 0, false));
    put(b, "random", weft_mul(weft_random_uniform(b->ctx, SHAPE(rows, n)), x));
    put(b, "dropped", weft_dropout(x, 0.25));
    put(b, "numbered", weft_add(weft_iota(b->ctx, WEFT_F32, SHAPE(rows, n)), x));
    put(b, "middle",
        weft_sum(weft_reshape(weft_concat((weft_tensor *[]){x, y, x}, 3, 0), SHAPE(3, rows, n)), 1, true));
    loss = weft_sum(weft_mul(weft_layer_norm(x, b->line, b->line, 1e-2), y), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, wrt, 2, grad));
    put(b, "gradient of a norm", grad[0]);
    put(b, "its columns", grad[1]);
    weft_tensor *target = weft_argmax(y, 1, false);
    loss = weft_cross_entropy(x, target, NULL);
    assert_ok(weft_gradient(loss, wrt, 1, grad));
    put(b, "cross-entropy", loss);
    put(b, "its gradient", grad[0]);
}

/* A regression whose step is one pass over the rows. It uses folds, also with a shorter last block. */
static void fold_forms(board *b) {
    weft_tensor *w = b->line, *wrt[1] = {w}, *grad[1];
    weft_tensor *error = weft_sub(weft_matmul(b->x, weft_reshape(w, SHAPE(b->n, 1))), b->post);
    weft_tensor *loss = weft_mean(weft_square(error), WEFT_ALL_AXES, false);
    assert_ok(weft_gradient(loss, wrt, 1, grad));
    put(b, "regression", loss);
    put(b, "its gradient", grad[0]);
}

/* For dtypes whose kernels differ from another dtype's only in how elements are read, computed and
 * written. */
static void brief_forms(board *b) {
    weft_tensor *x = b->x, *y = b->y;
    put(b, "broadcast", weft_sub(weft_mul(weft_add(x, y), b->line), b->post));
    put(b, "steps", weft_add(weft_slice(x, NULL, NULL, (int64_t[]){1, 2}), b->post));
    put(b, "sum", weft_sum(weft_mul(x, y), 1, true));
    put(b, "largest", weft_max(x, 1, false));
    put(b, "as f32", weft_cast(x, WEFT_F32));
    if (b->dtype != WEFT_F64)
        put(b, "back", weft_cast(weft_mul_scalar(weft_cast(x, WEFT_F32), 1.5), b->dtype));
    if (weft_dtype_is_float(b->dtype))
        put(b, "softmax", weft_softmax(x, 1));
    else
        integer_forms(b);
}

typedef struct test_case {
    weft_dtype dtype;
    int64_t rows, n;
    enum { ALL, BRIEF, FOLDS } forms;
} test_case;

static void make(board *b, const test_case *c) {
    b->dtype = c->dtype;
    b->rows = c->rows;
    b->n = c->n;
    fill(b);
    if (c->forms == FOLDS) fold_forms(b);
    if (c->forms == BRIEF) brief_forms(b);
    if (c->forms != ALL) return;
    any_forms(b);
    if (c->dtype != WEFT_BOOL) number_forms(b);
    if (c->dtype != WEFT_BOOL && !weft_dtype_is_float(c->dtype)) integer_forms(b);
    if (c->rows * c->n == 0) return;
    if (weft_dtype_is_float(c->dtype)) float_forms(b);
    if (c->dtype == WEFT_F32) f32_forms(b);
}

/* ---- running ---- */

static weft_context *opencl, *interp;

static int open_contexts(void **state) {
    (void)state;
    interp = open_device("interp", false);
    if (test_without_opencl()) return 0;
    weft__gpu_hook.guard = 64;
    setenv("WEFT_KERNEL_CACHE", "off", 1);
    opencl = open_device("opencl", false);
    return 0;
}

static int close_contexts(void **state) {
    (void)state;
    weft_close(opencl);
    weft_close(interp);
    assert_int_equal(weft__gpu_hook.guards_broken, 0);
    return 0;
}

static size_t bytes_of(const weft_tensor *t) {
    return (size_t)weft_numel(t) * weft_dtype_size(weft_dtype_of(t));
}

/* Bytes of a tensor's values within the values of all outputs. Each begins where every dtype is aligned. */
static size_t padded(const weft_tensor *t) { return (bytes_of(t) + 15) / 16 * 16; }

/* The values of all outputs, concatenated. */
static unsigned char *values(const board *b, size_t *bytes) {
    *bytes = 0;
    for (int i = 0; i < b->count; i++) *bytes += padded(b->out[i]);
    unsigned char *data = calloc(*bytes + 1, 1);
    size_t at = 0;
    for (int i = 0; i < b->count; at += padded(b->out[i++]))
        assert_ok(weft_read(b->out[i], data + at, bytes_of(b->out[i])));
    return data;
}

/* Runs a board twice. Returns the values of the first run. */
static unsigned char *run_board(weft_context *ctx, const test_case *c, board *b, size_t *bytes) {
    *b = (board){.ctx = ctx};
    make(b, c);
    weft_program *program;
    assert_ok(weft_compile(b->out, (size_t)b->count, NULL, NULL, 0, &program));
    assert_ok(weft_program_run(program));
    unsigned char *first = values(b, bytes);
    assert_ok(weft_program_run(program));
    unsigned char *again = values(b, bytes);
    assert_memory_equal(first, again, *bytes);
    free(again);
    weft_program_free(program);
    return first;
}

/* The allowed error of a result whose terms are about 1. */
static double tolerance(weft_dtype dtype, weft_dtype of, double v, int64_t terms) {
    const double unit = of == WEFT_F16    ? 0x1p-10
                        : of == WEFT_BF16 ? 0x1p-7
                        : of == WEFT_F64  ? 0x1p-46
                                          : 0x1p-20;
    if (!weft_dtype_is_float(dtype)) return 0;
    return unit * (2 + 2 * fabs(v) + sqrt((double)terms) / 4);
}

static int compare(const test_case *c, const board *b, const unsigned char *is, const unsigned char *wanted) {
    int wrong = 0;
    for (int i = 0; i < b->count; i++) {
        const weft_dtype dtype = weft_dtype_of(b->out[i]);
        const int64_t n = weft_numel(b->out[i]);
        for (int64_t e = 0; e < n; e++) {
            const double x = weft__element(dtype, is, e), y = weft__element(dtype, wanted, e);
            const weft_dtype of =
                weft_dtype_is_float(c->dtype) && weft_dtype_size(c->dtype) < weft_dtype_size(dtype) ? c->dtype
                                                                                                    : dtype;
            if (x == y || (isnan(x) && isnan(y)) || fabs(x - y) <= tolerance(dtype, of, y, c->rows + c->n))
                continue;
            print_error("%s of %s (%d, %d), element %d of %d: %.9g, not %.9g\n", b->name[i],
                        weft_dtype_name(c->dtype), (int)c->rows, (int)c->n, (int)e, (int)n, x, y);
            wrong++;
            break;
        }
        is += padded(b->out[i]);
        wanted += padded(b->out[i]);
    }
    return wrong;
}

static const test_case cases[] = {
    {WEFT_F32, 5, 17, ALL},      {WEFT_F32, 3, 1030, ALL},  {WEFT_F32, 2, 5000, ALL},
    {WEFT_F32, 300, 3, ALL},     {WEFT_F32, 8, 64, ALL},    {WEFT_F32, 1, 1, ALL},
    {WEFT_F32, 0, 4, ALL},       {WEFT_F32, 4, 0, ALL},     {WEFT_F32, 4096, 32, FOLDS},
    {WEFT_F32, 10007, 5, FOLDS}, {WEFT_F64, 9, 70, BRIEF},  {WEFT_F16, 9, 70, BRIEF},
    {WEFT_BF16, 9, 70, BRIEF},   {WEFT_I8, 9, 70, BRIEF},   {WEFT_I16, 9, 70, BRIEF},
    {WEFT_I32, 9, 70, ALL},      {WEFT_I64, 9, 70, BRIEF},  {WEFT_U8, 9, 70, BRIEF},
    {WEFT_U16, 9, 70, BRIEF},    {WEFT_U32, 9, 70, BRIEF},  {WEFT_U64, 9, 70, BRIEF},
    {WEFT_BOOL, 9, 70, ALL},     {WEFT_F32, 9, 512, BRIEF}, {WEFT_BF16, 9, 512, BRIEF},
    {WEFT_U8, 9, 512, BRIEF},    {WEFT_F16, 9, 512, BRIEF},
};

static void test_forms(void **state) {
    int cells = 0, wrong = 0;
    const char *only = getenv("ONLY");
    (void)state;
    if (!opencl) skip();
    for (size_t i = 0; i < COUNT(cases); i++) {
        if (only && *only && (size_t)atoi(only) != i) continue;
        size_t bytes, wanted_bytes;
        board b;
        weft_scope *scopes[2] = {weft_scope_open(opencl), weft_scope_open(interp)};
        unsigned char *wanted = run_board(interp, &cases[i], &b, &wanted_bytes);
        unsigned char *is = run_board(opencl, &cases[i], &b, &bytes);
        assert_int_equal(bytes, wanted_bytes);
        wrong += compare(&cases[i], &b, is, wanted);
        cells += b.count;
        free(is);
        free(wanted);
        weft_scope_close(scopes[0]);
        weft_scope_close(scopes[1]);
    }
    printf("render: cells=%d fail=%d sources=%d\n", cells, wrong,
           (int)weft__gpu_of(opencl->device)->compiler.n_sources);
    assert_int_equal(wrong, 0);
}

/* ---- the width of indices ---- */

/* Does the kernel for b[i] = a[start + i*stride], with n elements, use 64-bit indices? */
static bool counts_in_64(int64_t n, int64_t start, int64_t stride) {
    const weft_target target = {.lanes = 64, .units = 4};
    const int64_t reach = start + (stride > 0 ? (n - 1) * stride : 0) + 1;
    weft_kernel_arg args[] = {{.dtype = WEFT_F32, .read = true, .elements = reach},
                              {.dtype = WEFT_F32, .written = true, .elements = n}};
    weft_view views[2];
    weft__view_identity(&views[0], 1, &n);
    views[1] = views[0];
    views[0].map[0].offset = start;
    views[0].map[0].stride[0] = stride;
    weft_instr code[] = {
        {.kind = WEFT_INSTR_LOAD, .dtype = WEFT_F32, .a = -1, .b = -1, .c = -1, .arg = 0, .view = 0},
        {.kind = WEFT_INSTR_STORE, .dtype = WEFT_F32, .a = 0, .b = -1, .c = -1, .arg = 1, .view = 1}};
    const weft_kernel kernel = {.name = "moved",
                                .n_parallel = 1,
                                .extent = {n},
                                .n_args = 2,
                                .n_views = 2,
                                .n_code = 2,
                                .args = args,
                                .views = views,
                                .code = code};
    weft_arena arena;
    weft__arena_init(&arena, interp);
    weft_launches launches = {.ctx = interp, .arena = &arena, .target = &target};
    assert_ok(weft__kernel_verify(interp, &kernel));
    assert_ok(weft__render(&launches, &kernel, false));
    assert_int_equal(launches.count, 1);
    const char *text = launches.list[0].source;
    const bool wide = strstr(text, "for (long unit = first;") != NULL;
    assert_true(wide != (strstr(text, "for (int unit = first;") != NULL));
    assert_int_equal(wide, strstr(text, "const long first = ") != NULL);
    for (int a = 0; a < launches.list[0].n_arguments; a++) { /* element counts have the same width */
        const weft_argument *argument = &launches.list[0].arguments[a];
        if (argument->kind == WEFT_ARGUMENT_I32) assert_false(wide);
        if (argument->kind == WEFT_ARGUMENT_I64) assert_true(wide || argument->i < 65536);
    }
    weft__free(interp, launches.list);
    weft__arena_free(&arena);
    return wide;
}

static void test_width(void **state) {
    const int64_t most = INT64_C(1) << 31;
    (void)state;
    assert_false(counts_in_64(1000, 0, 1));
    assert_false(counts_in_64(most - 100000, 0, 1));
    assert_true(counts_in_64(most - 16, 0, 1)); /* the end of a group exceeds 32 bits */
    assert_true(counts_in_64(most + 4096, 0, 1));
    assert_true(counts_in_64(INT64_C(1) << 40, 0, 1));
    assert_false(counts_in_64(1000, 0, 2000000)); /* few elements, far apart */
    assert_true(counts_in_64(1000, 0, 3000000));
    assert_true(counts_in_64(4, most, 1));
    assert_true(counts_in_64(1000, most, -2000000));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_width), cmocka_unit_test(test_forms)};
    return cmocka_run_group_tests(tests, open_contexts, close_contexts);
}
