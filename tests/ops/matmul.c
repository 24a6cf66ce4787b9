/* matmul of vectors, matrices, batches, broadcast batches, transposed and strided operands, on every number
 * dtype. */
#include "ops/grad.h"

typedef struct product {
    shape a, b;
} product;

static const product products[] = {{{2, {1, 1}}, {2, {1, 1}}},
                                   {{2, {2, 3}}, {2, {3, 4}}},
                                   {{2, {15, 16}}, {2, {16, 17}}},
                                   {{2, {33, 31}}, {2, {31, 32}}},
                                   {{2, {1, 129}}, {2, {129, 65}}},
                                   {{2, {65, 129}}, {2, {129, 1}}},
                                   {{2, {1, 1025}}, {2, {1025, 1}}},
                                   {{2, {127, 1}}, {2, {1, 33}}},
                                   {{2, {65, 64}}, {2, {64, 65}}},
                                   {{2, {0, 3}}, {2, {3, 2}}},
                                   {{2, {2, 0}}, {2, {0, 3}}},
                                   {{2, {2, 3}}, {2, {3, 0}}},
                                   {{1, {17}}, {1, {17}}},
                                   {{1, {5}}, {2, {5, 7}}},
                                   {{2, {7, 5}}, {1, {5}}},
                                   {{3, {4, 5, 6}}, {1, {6}}},
                                   {{1, {6}}, {3, {4, 6, 5}}},
                                   {{3, {4, 5, 6}}, {2, {6, 7}}},
                                   {{3, {4, 5, 6}}, {3, {4, 6, 7}}},
                                   {{3, {1, 5, 6}}, {3, {4, 6, 7}}},
                                   {{2, {5, 6}}, {3, {4, 6, 7}}},
                                   {{4, {2, 1, 5, 6}}, {4, {1, 3, 6, 4}}},
                                   {{4, {2, 3, 17, 8}}, {4, {2, 3, 8, 17}}},
                                   {{3, {0, 5, 6}}, {3, {0, 6, 7}}},
                                   {{3, {3, 0, 6}}, {2, {6, 2}}},
                                   {{8, {1, 2, 1, 1, 2, 1, 3, 4}}, {8, {1, 1, 1, 2, 2, 1, 4, 5}}},
                                   {{3, {7, 13, 31}}, {2, {31, 5}}}};

/* Adds a dimension of extent 1 to a vector: in front, or at the end if it is a column. */
static array *matrix_of(matrix *m, const array *x, bool column) {
    if (x->s.rank > 1) return array_reshape(m, x, x->s);
    return array_reshape(m, x, column ? SHAPE(x->s.dim[0], 1) : SHAPE(1, x->s.dim[0]));
}

static void add_product(array *y, int64_t at, const array *x, int64_t i, const array *z, int64_t j,
                        real *magnitude) {
    if (y->f) {
        y->f[at] += x->f[i] * z->f[j];
        magnitude[at] += fabsl(x->f[i] * z->f[j]);
    } else {
        y->i[at] = wrap(y->dtype, (int64_t)((uint64_t)y->i[at] + (uint64_t)x->i[i] * (uint64_t)z->i[j]));
    }
}

static shape batch_of(shape s) {
    s.rank -= 2;
    return s;
}

static shape with_matrix(shape s, int64_t rows, int64_t columns) {
    s.dim[s.rank++] = rows;
    s.dim[s.rank++] = columns;
    return s;
}

/* The expected matmul of a (..., m, k) and b (..., k, n). */
static array *expect(matrix *m, const array *a, const array *b) {
    const array *x = matrix_of(m, a, false), *z = matrix_of(m, b, true);
    int64_t rows = x->s.dim[x->s.rank - 2], k = x->s.dim[x->s.rank - 1], columns = z->s.dim[z->s.rank - 1];
    shape batch, result;
    if (!shape_broadcast(batch_of(x->s), batch_of(z->s), &batch))
        printf("ops: matmul: a sample does not broadcast\n");
    x = array_expand(m, x, with_matrix(batch, rows, k));
    z = array_expand(m, z, with_matrix(batch, k, columns));
    array *y = array_new(m, a->dtype, with_matrix(batch, rows, columns));
    real *magnitude = ops_alloc(m, (size_t)(y->n + 1) * sizeof *magnitude);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    for (int64_t p = 0; p < shape_count(batch); p++)
        for (int64_t i = 0; i < rows; i++)
            for (int64_t l = 0; l < k; l++)
                for (int64_t j = 0; j < columns; j++)
                    add_product(y, (p * rows + i) * columns + j, x, (p * rows + i) * k + l, z,
                                (p * k + l) * columns + j, magnitude);
    for (int64_t at = 0; at < y->n && y->f; at++)
        y->bound[at] = bound_sum(y->dtype, k, magnitude[at], y->f[at]);
    result = batch;
    if (a->s.rank > 1) result.dim[result.rank++] = rows;
    if (b->s.rank > 1) result.dim[result.rank++] = columns;
    y->s = result;
    return y;
}

static void check(matrix *m, const char *what, operand a, operand b) {
    ops_check(m, "matmul", a.h->dtype,
              ops_text(m, "%s %s %s", what, shape_text(m, a.h->s), shape_text(m, b.h->s)),
              weft_matmul(a.t, b.t), expect(m, a.h, b.h), TOLERANCE_GIVEN);
}

static void check_dtype(matrix *m, weft_dtype dtype) {
    for (int i = 0; i < COUNT(products); i++) {
        ops_breathe(m);
        check(m, "plain", operand_new(m, dtype, products[i].a, VIEW_PLAIN, GEN_NORMAL),
              operand_new(m, dtype, products[i].b, VIEW_PLAIN, GEN_NORMAL));
        ops_breathe(m);
        check(m, "positive", operand_new(m, dtype, products[i].a, VIEW_PLAIN, GEN_POSITIVE),
              operand_new(m, dtype, products[i].b, VIEW_PLAIN, GEN_POSITIVE));
    }
    static const int viewed[] = {2, 3, 12, 14, 17, 18, 21, 22};
    for (int i = 0; i < COUNT(viewed); i++)
        for (int v = 1; v < VIEW_COUNT; v++) {
            const product *p = &products[viewed[i]];
            ops_breathe(m);
            check(m, view_name((view_kind)v), operand_new(m, dtype, p->a, (view_kind)v, GEN_NORMAL),
                  operand_new(m, dtype, p->b, VIEW_PLAIN, GEN_NORMAL));
            check(m, ops_text(m, "plain by %s", view_name((view_kind)v)),
                  operand_new(m, dtype, p->a, VIEW_PLAIN, GEN_NORMAL),
                  operand_new(m, dtype, p->b, (view_kind)v, GEN_NORMAL));
            check(m, ops_text(m, "both %s", view_name((view_kind)v)),
                  operand_new(m, dtype, p->a, (view_kind)v, GEN_NORMAL),
                  operand_new(m, dtype, p->b, (view_kind)v, GEN_NORMAL));
        }
    ops_breathe(m);
    operand x = operand_new(m, dtype, SHAPE(17, 17), VIEW_PLAIN, GEN_NORMAL);
    check(m, "aliased", x, x);
    operand xt = {weft_transpose(x.t, 0, 1), array_permute(m, x.h, (int[]){1, 0})};
    check(m, "aliased transposed", x, xt);
    check(m, "aliased transposed", xt, x);
}

static void check_large(matrix *m) {
    ops_flush(m);
    for (int d = 0; d < 4; d++) {
        if (!ops_has_dtype(m, "matmul", ops_dtypes[d])) continue;
        operand a = operand_new(m, ops_dtypes[d], SHAPE(200, 301), VIEW_PLAIN, GEN_NORMAL);
        operand b = operand_new(m, ops_dtypes[d], SHAPE(301, 257), VIEW_TRANSPOSED, GEN_NORMAL);
        check(m, "large", a, b);
        ops_flush(m);
    }
}

/* NaN and infinity must reach exactly the rows and columns that contain them. 0 * inf is NaN. */
static void check_infinities(matrix *m, weft_dtype dtype) {
    ops_breathe(m);
    array *a = array_random(m, dtype, SHAPE(5, 33), GEN_POSITIVE),
          *b = array_random(m, dtype, SHAPE(33, 6), GEN_POSITIVE);
    a->f[33 + 4] = NAN;
    a->f[66 + 5] = HUGE_VALL;
    b->f[3] = 0;
    b->f[5 * 6 + 2] = 0;
    check(m, "infinities", operand_of(m, a), operand_of(m, b));
}

void ops_case_matmul(matrix *m);
void ops_case_matmul(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "matmul", dtype)) continue;
        operand x = operand_new(m, dtype, SHAPE(3, 3), VIEW_PLAIN, GEN_NORMAL);
        operand y = operand_new(m, other_dtype(d), SHAPE(3, 3), VIEW_PLAIN, GEN_NORMAL);
        operand z = operand_new(m, dtype, SHAPE(4, 3), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "matmul", dtype, "mixed dtypes", weft_matmul(x.t, y.t), WEFT_ERR_DTYPE);
        if (!accepts(ACCEPT_NUMBER, d)) {
            ops_refused(m, "matmul", dtype, "dtype", weft_matmul(x.t, x.t), WEFT_ERR_DTYPE);
            continue;
        }
        ops_refused(m, "matmul", dtype, "inner sizes", weft_matmul(x.t, z.t), WEFT_ERR_SHAPE);
        check_dtype(m, dtype);
        if (is_float(dtype)) check_infinities(m, dtype);
    }
    if (!m->slow) check_large(m);
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_matmul(in[0], in[1]);
}

static weft_tensor *build_transposed(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                     const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_matmul(weft_transpose(in[0], 0, 1), weft_transpose(in[1], 0, 1));
}

static weft_tensor *build_square(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    (void)ctx, (void)dtype, (void)user;
    return weft_matmul(in[0], weft_transpose(in[0], 0, 1));
}

void ops_grad_matmul(matrix *m);
void ops_grad_matmul(matrix *m) {
    static const int checked[] = {0, 1, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 25, 3};
    for (int i = 0; i < COUNT(checked); i++) {
        const product *p = &products[checked[i]];
        grad_check(m, &(grad_case){.op = "matmul",
                                   .sample = ops_text(m, "%s %s", shape_text(m, p->a), shape_text(m, p->b)),
                                   .n = 2,
                                   .s = {p->a, p->b},
                                   .low = -2,
                                   .high = 2,
                                   .build = build});
    }
    grad_check(m, &(grad_case){.op = "matmul",
                               .sample = "transposed",
                               .n = 2,
                               .s = {SHAPE(3, 2), SHAPE(4, 3)},
                               .low = -2,
                               .high = 2,
                               .build = build_transposed});
    grad_check(m, &(grad_case){.op = "matmul",
                               .sample = "x x^T",
                               .n = 1,
                               .s = {SHAPE(4, 3)},
                               .low = -2,
                               .high = 2,
                               .build = build_square});
}
