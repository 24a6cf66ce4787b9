/* src/kernel: the printed form, the verifier (what it accepts, and that it detects each kind of fault) and
 * the hash. The kernels are built by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "kernel/kernel.h"
#include "kernel/rows.h"

enum { ROWS = 4, LENGTH = 8 };

/* A softmax over the last dimension of (2, 4, 8). View 0 is the whole, view 1 has one element for each
 * row. */
typedef struct example {
    weft_kernel kernel;
    weft_kernel_arg args[4];
    weft_view views[4];
    weft_instr code[12];
} example;

static weft_instr instr(int kind, int op, int dtype, int level, int a, int b) {
    return (weft_instr){.kind = (uint8_t)kind,
                        .op = (uint8_t)op,
                        .dtype = (uint8_t)dtype,
                        .level = (uint8_t)level,
                        .a = a,
                        .b = b,
                        .c = -1,
                        .arg = -1,
                        .view = -1};
}

static weft_instr access_at(int kind, int dtype, int level, int arg, int view, int a) {
    weft_instr in = instr(kind, 0, dtype, level, a, -1);
    in.arg = arg;
    in.view = view;
    return in;
}

enum { ROW = WEFT_LEVEL_ROW, FULL = WEFT_LEVEL_FULL };

static void softmax(example *e) {
    static const int64_t shape[] = {2, ROWS, LENGTH}, rows[] = {2, ROWS, 1};
    memset(e, 0, sizeof *e);
    e->args[0] = (weft_kernel_arg){WEFT_F32, true, false, 64};
    e->args[1] = (weft_kernel_arg){WEFT_F32, false, true, 64};
    e->args[2] = (weft_kernel_arg){WEFT_F32, false, true, 8};
    weft__view_identity(&e->views[0], 3, shape);
    weft__view_identity(&e->views[1], 3, rows);
    assert_true(weft__view_expand(&e->views[1], shape));
    weft_instr code[] = {
        access_at(WEFT_INSTR_LOAD, WEFT_F32, FULL, 0, 0, -1),
        instr(WEFT_INSTR_REDUCE, WEFT_OP_MAX, WEFT_F32, ROW, 0, -1),
        instr(WEFT_INSTR_CALC, WEFT_OP_SUB, WEFT_F32, FULL, 0, 1),
        instr(WEFT_INSTR_CALC, WEFT_OP_EXP, WEFT_F32, FULL, 2, -1),
        instr(WEFT_INSTR_REDUCE, WEFT_OP_SUM, WEFT_F32, ROW, 3, -1),
        instr(WEFT_INSTR_CALC, WEFT_OP_DIV, WEFT_F32, FULL, 3, 4),
        access_at(WEFT_INSTR_STORE, WEFT_F32, FULL, 1, 0, 5),
        access_at(WEFT_INSTR_STORE, WEFT_F32, ROW, 2, 1, 4),
    };
    memcpy(e->code, code, sizeof code);
    e->kernel = (weft_kernel){.name = "row_softmax",
                              .path = "gpt.h0.attn",
                              .n_parallel = 2,
                              .n_reduce = 1,
                              .extent = {2, ROWS, LENGTH},
                              .n_args = 3,
                              .n_views = 2,
                              .n_code = 8,
                              .args = e->args,
                              .views = e->views,
                              .code = e->code};
}

static void test_print(void **state) {
    (void)state;
    example e;
    char text[2000], part[20];
    softmax(&e);
    size_t length = weft__kernel_print(&e.kernel, text, sizeof text);
    assert_string_equal(text, "kernel row_softmax (rows 2, 4; reduce 8)  # gpt.h0.attn\n"
                              "  arg0 f32 in 64\n"
                              "  arg1 f32 out 64\n"
                              "  arg2 f32 out 8\n"
                              "  v0 f32 = load arg0[i0*32 + i1*8 + r0]\n"
                              "  v1 f32 row = reduce max v0\n"
                              "  v2 f32 = sub v0, v1\n"
                              "  v3 f32 = exp v2\n"
                              "  v4 f32 row = reduce sum v3\n"
                              "  v5 f32 = div v3, v4\n"
                              "  store arg1[i0*32 + i1*8 + r0] = v5\n"
                              "  store arg2[i0*4 + i1] = v4\n");
    assert_int_equal(length, strlen(text));
    assert_int_equal(weft__kernel_print(&e.kernel, part, sizeof part), length);
    assert_memory_equal(part, text, sizeof part - 1);
    assert_int_equal(part[sizeof part - 1], 0);
    assert_int_equal(weft__kernel_print(&e.kernel, NULL, 0), length);
}

static void test_print_of_views(void **state) {
    (void)state;
    static const int64_t shape[] = {3, 4}, flat[] = {12}, one[] = {1, 1}, lo[] = {1, 0}, hi[] = {0, 2},
                         start[] = {3, 0}, extent[] = {4, 6}, step[] = {-1, 1};
    static const int order[] = {1, 0};
    weft_kernel_arg args[] = {
        {WEFT_F32, true, false, 12}, {WEFT_I64, true, false, 5}, {WEFT_I32, true, false, 8}};
    weft_view views[3];
    weft__view_identity(&views[0], 2, shape);
    assert_true(weft__view_pad(&views[0], lo, hi)); /* (4, 6) */
    assert_true(weft__view_slice(&views[0], start, extent, step));
    weft__view_identity(&views[1], 1, flat);
    assert_true(weft__view_reshape(&views[1], 2, shape));
    assert_true(weft__view_permute(&views[1], order));
    assert_true(weft__view_reshape(&views[1], 1, flat));
    weft__view_identity(&views[2], 2, one);
    assert_true(weft__view_expand(&views[2], extent));
    weft_instr code[] = {
        access_at(WEFT_INSTR_LOAD, WEFT_F32, ROW, 0, 0, -1),
        access_at(WEFT_INSTR_LOAD, WEFT_F32, ROW, 0, 1, -1),
        access_at(WEFT_INSTR_MASK, WEFT_BOOL, ROW, -1, 0, -1),
        access_at(WEFT_INSTR_INDEX, WEFT_I32, ROW, -1, 0, -1),
        access_at(WEFT_INSTR_LOAD, WEFT_I64, ROW, 1, 2, -1),
        access_at(WEFT_INSTR_GATHER, WEFT_F32, ROW, 0, 2, 4),
        access_at(WEFT_INSTR_RANDOM, WEFT_I32, ROW, 2, 2, -1),
        instr(WEFT_INSTR_CONST, 0, WEFT_F16, ROW, -1, -1),
        instr(WEFT_INSTR_CONST, 0, WEFT_I8, ROW, -1, -1),
        instr(WEFT_INSTR_CAST, 0, WEFT_F64, ROW, 0, -1),
    };
    code[5].imm_i = 4;
    code[5].bound = 3;
    code[7].imm_f = 0.1;
    code[8].imm_i = -7;
    weft_kernel k = {.name = "map",
                     .path = "",
                     .n_parallel = 2,
                     .extent = {4, 6},
                     .n_args = 3,
                     .n_views = 3,
                     .n_code = 10,
                     .args = args,
                     .views = views,
                     .code = code};
    char text[2000];
    weft__kernel_print(&k, text, sizeof text);
    assert_string_equal(text, "kernel map (rows 4, 6)\n"
                              "  arg0 f32 in 12\n"
                              "  arg1 i64 in 5\n"
                              "  arg2 i32 in 8\n"
                              "  v0 f32 = load arg0[-i0*4 + i1 + 8] if i0 < 3, i1 < 4\n"
                              "  v1 f32 = load arg0[a0 + a1*4] with a = (i0) in (4, 3)\n"
                              "  v2 bool = mask i0 < 3, i1 < 4\n"
                              "  v3 i32 = index -i0*4 + i1 + 8 if i0 < 3, i1 < 4\n"
                              "  v4 i64 = load arg1[0]\n"
                              "  v5 f32 = gather arg0[v4*4] bound v4 < 3\n"
                              "  v6 i32 = random arg2 at 0\n"
                              "  v7 f16 = const 0.1\n"
                              "  v8 i8 = const -7\n"
                              "  v9 f64 = cast v0\n");
}

/* For each block, the sums of a softmax's columns, and the sum of its denominators. */
static void folded(example *e) {
    static const int64_t shape[] = {2, ROWS, LENGTH}, columns[] = {2, 1, LENGTH}, blocks[] = {2, 1, 1};
    softmax(e);
    e->kernel.n_fold = 1;
    e->kernel.n_args = e->kernel.n_views = 4;
    e->args[1].elements = 16;
    e->args[2].elements = 2;
    e->args[3] = (weft_kernel_arg){WEFT_F32, false, true, 64};
    weft__view_identity(&e->views[2], 3, columns);
    weft__view_identity(&e->views[3], 3, blocks);
    assert_true(weft__view_expand(&e->views[2], shape));
    assert_true(weft__view_expand(&e->views[3], shape));
    e->code[6] = instr(WEFT_INSTR_FOLD, WEFT_OP_SUM, WEFT_F32, WEFT_LEVEL_COLUMN, 5, -1);
    e->code[7] = instr(WEFT_INSTR_FOLD, WEFT_OP_MAX, WEFT_F32, WEFT_LEVEL_BLOCK, 4, -1);
    e->code[8] = access_at(WEFT_INSTR_STORE, WEFT_F32, WEFT_LEVEL_COLUMN, 1, 2, 6);
    e->code[9] = access_at(WEFT_INSTR_STORE, WEFT_F32, WEFT_LEVEL_BLOCK, 2, 3, 7);
    e->code[10] = access_at(WEFT_INSTR_STORE, WEFT_F32, FULL, 3, 0, 5);
    e->kernel.n_code = 11;
}

static void test_print_of_folds(void **state) {
    (void)state;
    example e;
    weft_context ctx = {0};
    char text[2000];
    folded(&e);
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_OK);
    weft_hash even = weft__kernel_hash(&e.kernel);
    e.kernel.last_rows = 3; /* buffers need no memory for missing rows */
    e.args[0].elements = e.args[3].elements = 56;
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_OK);
    weft__kernel_print(&e.kernel, text, sizeof text);
    assert_non_null(strstr(text, "(blocks 2; rows 4, in the last 3; reduce 8)"));
    e.args[0].elements = e.args[3].elements = 64;
    weft_hash short_last = weft__kernel_hash(&e.kernel);
    assert_true(even.a != short_last.a && even.b != short_last.b);
    e.kernel.last_rows = 0;
    weft__kernel_print(&e.kernel, text, sizeof text);
    assert_string_equal(text, "kernel row_softmax (blocks 2; rows 4; reduce 8)  # gpt.h0.attn\n"
                              "  arg0 f32 in 64\n"
                              "  arg1 f32 out 16\n"
                              "  arg2 f32 out 2\n"
                              "  arg3 f32 out 64\n"
                              "  v0 f32 = load arg0[i0*32 + f0*8 + r0]\n"
                              "  v1 f32 row = reduce max v0\n"
                              "  v2 f32 = sub v0, v1\n"
                              "  v3 f32 = exp v2\n"
                              "  v4 f32 row = reduce sum v3\n"
                              "  v5 f32 = div v3, v4\n"
                              "  v6 f32 column = fold sum v5\n"
                              "  v7 f32 block = fold max v4\n"
                              "  store arg1[i0*8 + r0] = v6\n"
                              "  store arg2[i0] = v7\n"
                              "  store arg3[i0*32 + f0*8 + r0] = v5\n");
}

static void test_verify_accepts(void **state) {
    (void)state;
    example e;
    weft_context ctx = {0};
    softmax(&e);
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_OK);
    e.kernel.extent[0] = 0; /* no element: no bound to prove */
    e.views[0].map[0].extent[0] = e.views[1].map[0].extent[0] = 0;
    e.args[0].elements = e.args[1].elements = e.args[2].elements = 0;
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_OK);
    softmax(&e);
    e.kernel.extent[2] = 0; /* rows without elements */
    e.views[0].map[0].extent[2] = e.views[1].map[0].extent[2] = 0;
    e.views[0].map[0].hi[2] = e.views[1].map[0].hi[2] = 0;
    e.args[0].elements = e.args[1].elements = 0;
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_OK);
    e.args[2].elements = 7;
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_ERR_INTERNAL);
}

/* Each fault is planted into a valid kernel. The message must contain `part`. */
typedef void (*plant)(example *e);

static void assert_bad(void (*make)(example *e), plant fault, const char *part) {
    example e;
    weft_context ctx = {0};
    make(&e);
    fault(&e);
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_ERR_INTERNAL);
    if (!strstr(weft_last_error(&ctx), part)) {
        print_message("%s\nlacks: %s\n", weft_last_error(&ctx), part);
        fail();
    }
}

static void assert_refused(plant fault, const char *part) { assert_bad(softmax, fault, part); }

static void operand_later(example *e) { e->code[2].a = 3; }
static void operand_missing(example *e) { e->code[2].b = -1; }
static void operand_extra(example *e) { e->code[3].c = 1; }
static void operand_store(example *e) { e->code[7].a = 6; }
static void row_from_full(example *e) { e->code[5].level = ROW; }
static void reduce_of_row(example *e) { e->code[4].a = 1; }
static void level_bad(example *e) { e->code[3].level = 4; }
static void level_folded(example *e) { e->code[3].level = WEFT_LEVEL_COLUMN; }
static void kind_bad(example *e) { e->code[3].kind = WEFT_INSTR_COUNT; }
static void op_bad(example *e) { e->code[3].op = WEFT_OP_MATMUL; }
static void op_reduce(example *e) { e->code[3].op = WEFT_OP_SUM; }
static void dtype_result(example *e) { e->code[3].dtype = WEFT_F64; }
static void dtype_op(example *e) { e->code[3].op = WEFT_OP_NOT; }
static void dtype_load(example *e) { e->args[0].dtype = WEFT_I32; }
static void dtype_store(example *e) { e->args[1].dtype = WEFT_BF16; }
static void not_read(example *e) { e->args[0].read = false; }
static void not_written(example *e) { e->args[1].written = false; }
static void never_stored(example *e) { e->args[0].written = true; }
static void arg_bad(example *e) { e->code[0].arg = 3; }
static void view_bad(example *e) { e->code[0].view = 2; }
static void view_extent(example *e) { e->views[0].map[0].extent[1] = 3; }
static void small_arg(example *e) { e->args[0].elements = 63; }
static void negative(example *e) { e->views[0].map[0].offset = -1; }
static void row_store(example *e) { e->code[7].view = 0; }
static void rank_bad(example *e) { e->kernel.n_reduce = 11; }
static void huge(example *e) { e->kernel.extent[0] = INT64_C(1) << 62; }
static void read_elsewhere(example *e) { /* out[i] reads element i in reverse order */
    static const int64_t start[] = {1, ROWS - 1, LENGTH - 1}, extent[] = {2, ROWS, LENGTH},
                         step[] = {-1, -1, -1};
    e->views[2] = e->views[0];
    weft__view_slice(&e->views[2], start, extent, step);
    e->kernel.n_views = 3;
    e->args[1].read = true;
    e->code[0].arg = 1;
    e->code[0].view = 2;
}

static void test_verify_refuses(void **state) {
    (void)state;
    assert_refused(operand_later, "instruction 2, \"v2 f32 = sub v3, v1\": v3 does not come before");
    assert_refused(operand_missing, "operand 1 is missing");
    assert_refused(operand_extra, "operand 2 is one too many");
    assert_refused(operand_store, "v6 is a store");
    assert_refused(row_from_full, "a row value cannot need v3");
    assert_refused(reduce_of_row, "a reduction turns a full value");
    assert_refused(level_bad, "level 4");
    assert_refused(level_folded, "only folds and their stores");
    assert_refused(kind_bad, "unknown instruction");
    assert_refused(op_bad, "op ");
    assert_refused(op_reduce, "op ");
    assert_refused(dtype_result, "the result has another dtype");
    assert_refused(dtype_op, "not does not take f32");
    assert_refused(dtype_load, "arg0 has another dtype");
    assert_refused(dtype_store, "arg1 has another dtype");
    assert_refused(not_read, "arg0 is not read");
    assert_refused(not_written, "arg1 is not written");
    assert_refused(never_stored, "arg0 is never stored to");
    assert_refused(arg_bad, "argument 3");
    assert_refused(view_bad, "view 2");
    assert_refused(view_extent, "the index space of view 0");
    assert_refused(small_arg, "elements 0..63 are not in 0..62");
    assert_refused(negative, "elements -1..62 are not in 0..63");
    assert_refused(row_store, "depends on a reduction index");
    assert_refused(rank_bad, "11 reduction dimensions");
    assert_refused(huge, "too large");
    assert_refused(read_elsewhere, "read at another element than the written one");
}

static void fold_without_rows(example *e) { e->kernel.n_fold = 0; }
static void fold_too_many(example *e) { e->kernel.n_fold = 3; }
static void fold_of_none(example *e) {
    e->kernel.extent[1] = 0;
    for (int v = 0; v < 4; v++) e->views[v].map[0].extent[1] = e->views[v].map[0].hi[1] = 0;
}
static void fold_of_other(example *e) { e->code[6].level = WEFT_LEVEL_BLOCK; }
static void fold_of_fold(example *e) { e->code[7].a = 6; }
static void fold_op(example *e) { e->code[6].op = WEFT_OP_ADD; }
static void fold_dtype(example *e) { e->code[6].dtype = WEFT_F64; }
static void fold_used(example *e) { e->code[7] = instr(WEFT_INSTR_CALC, WEFT_OP_NEG, WEFT_F32, FULL, 6, -1); }
static void fold_stored_rowwise(example *e) { e->code[9].level = ROW; }
static void row_stored_as_block(example *e) { e->code[9].a = 4; }
static void fold_view_moves(example *e) { e->code[8].view = 0, e->args[1].elements = 64; }
static void fold_view_inner(example *e) { e->code[9].view = 2, e->args[2].elements = 16; }
static void fold_leaves(example *e) { e->args[1].elements = 15; }
static void fold_last_of_many(example *e) { e->kernel.last_rows = ROWS; }
static void fold_last_of_none(example *e) { e->kernel.last_rows = -1; }
static void fold_last_without(example *e) { e->kernel.n_fold = 0, e->kernel.last_rows = 1; }
static void fold_last_leaves(example *e) { e->kernel.last_rows = 3, e->args[0].elements = 55; }
static void fold_over_input(example *e) {
    e->args[1] = (weft_kernel_arg){WEFT_F32, true, true, 64};
    e->code[0].arg = 1;
}

static void test_verify_refuses_folds(void **state) {
    (void)state;
    assert_bad(folded, fold_without_rows, "only folds and their stores");
    assert_bad(folded, fold_too_many, "3 of 2 parallel dimensions");
    assert_bad(folded, fold_of_none, "a block has no rows");
    assert_bad(folded, fold_of_other, "a fold turns a full value into a column");
    assert_bad(folded, fold_of_fold, "v6 is folded");
    assert_bad(folded, fold_op, "op ");
    assert_bad(folded, fold_dtype, "sum does not take f32, or its result has another dtype");
    assert_bad(folded, fold_used, "v6 is folded");
    assert_bad(folded, fold_stored_rowwise, "v7 is folded");
    assert_bad(folded, row_stored_as_block, "v4 is not folded");
    assert_bad(folded, fold_view_moves, "depends on the row");
    assert_bad(folded, fold_view_inner, "depends on a reduction index");
    assert_bad(folded, fold_leaves, "elements 0..15 are not in 0..14");
    assert_bad(folded, fold_last_of_many, "4 rows in the last block");
    assert_bad(folded, fold_last_of_none, "-1 rows in the last block");
    assert_bad(folded, fold_last_without, "1 rows in the last block");
    assert_bad(folded, fold_last_leaves, "elements 32..55 are not in 0..54");
    assert_bad(folded, fold_over_input, "read at another element than the written one");
}

/* A kernel may read and write one buffer if the index is the same. */
static void test_in_place(void **state) {
    (void)state;
    example e;
    weft_context ctx = {0};
    softmax(&e);
    e.args[1].read = true;
    e.code[0].arg = 1;
    assert_int_equal(weft__kernel_verify(&ctx, &e.kernel), WEFT_OK);
}

/* Verifies one map instruction over a view of (4, 6), in a kernel without reductions. */
static weft_status verify_one(weft_context *ctx, weft_instr in, weft_view *view, int64_t elements,
                              int64_t extent0) {
    weft_kernel_arg args[] = {{WEFT_F32, true, false, elements}, {WEFT_I32, true, false, 8}};
    weft_instr code[] = {instr(WEFT_INSTR_CONST, 0, WEFT_I32, ROW, -1, -1), in};
    weft_kernel k = {.name = "one",
                     .n_parallel = 2,
                     .extent = {extent0, 6},
                     .n_args = 2,
                     .n_views = 1,
                     .n_code = 2,
                     .args = args,
                     .views = view,
                     .code = code};
    return weft__kernel_verify(ctx, &k);
}

static void test_bounds(void **state) {
    (void)state;
    static const int64_t inner[] = {3, 4}, lo[] = {1, 0}, hi[] = {0, 2}, whole[] = {4, 6}, turned[] = {6, 4},
                         tall[] = {INT64_C(1) << 33, 6};
    static const int order[] = {1, 0};
    weft_context ctx = {0};
    weft_view v;
    weft_instr load = access_at(WEFT_INSTR_LOAD, WEFT_F32, ROW, 0, 0, -1);
    weft__view_identity(&v, 2, inner); /* guards keep a padded view inside */
    assert_true(weft__view_pad(&v, lo, hi));
    assert_int_equal(verify_one(&ctx, load, &v, 12, 4), WEFT_OK);
    assert_int_equal(verify_one(&ctx, load, &v, 11, 4), WEFT_ERR_INTERNAL);
    v.map[0].hi[1] = 5;
    assert_int_equal(verify_one(&ctx, load, &v, 12, 4), WEFT_ERR_INTERNAL);
    weft__view_identity(&v, 2, whole); /* a view of several maps: an interval for each */
    assert_true(weft__view_permute(&v, order));
    assert_true(weft__view_reshape(&v, 2, whole));
    assert_int_equal(v.count, 2);
    assert_int_equal(verify_one(&ctx, load, &v, 24, 4), WEFT_OK);
    assert_int_equal(verify_one(&ctx, load, &v, 23, 4), WEFT_ERR_INTERNAL);
    v.map[0].offset = 1;
    assert_int_equal(verify_one(&ctx, load, &v, 24, 4), WEFT_ERR_INTERNAL);
    assert_non_null(strstr(weft_last_error(&ctx), "leaves the index space of map 1"));
    v.map[0] = (weft_map){.rank = 2, .offset = 1, .extent = {4, 6}, .stride = {1, 0}, .hi = {4, 6}};
    v.map[1] = (weft_map){.rank = 2, .extent = {2, 3}, .stride = {0, 1}, .hi = {2, 3}};
    assert_int_equal(verify_one(&ctx, load, &v, 3, 4), WEFT_OK); /* 1..4: the inner digit takes all values */
    assert_int_equal(verify_one(&ctx, load, &v, 2, 4), WEFT_ERR_INTERNAL);
    weft__view_identity(&v, 2, turned);
    assert_true(weft__view_reshape(&v, 2, whole));
    /* a gathered index adds up to bound - 1 strides */
    weft_instr gather = access_at(WEFT_INSTR_GATHER, WEFT_F32, ROW, 0, 0, 0);
    gather.imm_i = 24, gather.bound = 10;
    assert_int_equal(verify_one(&ctx, gather, &v, 240, 4), WEFT_OK);
    assert_int_equal(verify_one(&ctx, gather, &v, 239, 4), WEFT_ERR_INTERNAL);
    gather.imm_i = -1;
    assert_int_equal(verify_one(&ctx, gather, &v, 240, 4), WEFT_ERR_INTERNAL);
    /* more than 32 bits */
    weft__view_identity(&v, 2, tall);
    weft_instr index = access_at(WEFT_INSTR_INDEX, WEFT_I64, ROW, -1, 0, -1);
    assert_int_equal(verify_one(&ctx, index, &v, 1, tall[0]), WEFT_OK);
    index.dtype = WEFT_I32;
    assert_int_equal(verify_one(&ctx, index, &v, 1, tall[0]), WEFT_ERR_INTERNAL);
    assert_int_equal(verify_one(&ctx, load, &v, 6 * tall[0], tall[0]), WEFT_OK);
    v.map[0].stride[0] = INT64_MAX / 2; /* the proof itself must not overflow */
    assert_int_equal(verify_one(&ctx, load, &v, INT64_MAX, tall[0]), WEFT_ERR_INTERNAL);
    /* random keys have eight words */
    weft__view_identity(&v, 2, whole);
    weft_instr bits = access_at(WEFT_INSTR_RANDOM, WEFT_I32, ROW, 1, 0, -1);
    assert_int_equal(verify_one(&ctx, bits, &v, 1, 4), WEFT_OK);
    bits.arg = 0;
    assert_int_equal(verify_one(&ctx, bits, &v, 1, 4), WEFT_ERR_INTERNAL);
}

/* ---- hash ---- */

static weft_hash hash_after(plant change) {
    example e;
    softmax(&e);
    if (change) change(&e);
    return weft__kernel_hash(&e.kernel);
}

static void rename_it(example *e) { e->kernel.name = "another", e->kernel.path = "elsewhere"; }
static void constant(example *e) { e->code[3].imm_f = -0.0; }

static void test_hash(void **state) {
    (void)state;
    static const plant changes[] = {operand_later, operand_missing, operand_extra, level_bad,
                                    kind_bad,      op_bad,          dtype_result,  dtype_load,
                                    not_read,      arg_bad,         view_bad,      view_extent,
                                    small_arg,     negative,        huge,          constant};
    const weft_hash plain = hash_after(NULL);
    assert_true(weft__hash_equal(plain, hash_after(NULL)));
    assert_true(weft__hash_equal(plain, hash_after(rename_it)));
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        assert_false(weft__hash_equal(plain, hash_after(changes[i])));
}

static void test_rows(void **state) {
    (void)state;
    assert_string_equal(weft__row(WEFT_OP_ADD)->name, "add");
    assert_int_equal(weft__row(WEFT_OP_WHERE)->arity, 3);
    assert_true(weft__row(WEFT_OP_SUM)->reduce);
    assert_true(weft__row(WEFT_OP_ISNAN)->to_bool);
    assert_null(weft__row(WEFT_OP_MATMUL));
    assert_null(weft__row(-1));
    assert_null(weft__row(WEFT_OP_COUNT));
    assert_true(weft__row_takes(weft__row(WEFT_OP_AND), WEFT_BOOL));
    assert_false(weft__row_takes(weft__row(WEFT_OP_ADD), WEFT_BOOL));
    assert_false(weft__row_takes(weft__row(WEFT_OP_EXP), WEFT_I32));
    assert_false(weft__row_takes(weft__row(WEFT_OP_ADD), WEFT_C64));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_print),          cmocka_unit_test(test_print_of_views),
        cmocka_unit_test(test_verify_accepts), cmocka_unit_test(test_verify_refuses),
        cmocka_unit_test(test_print_of_folds), cmocka_unit_test(test_verify_refuses_folds),
        cmocka_unit_test(test_in_place),       cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_hash),           cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
