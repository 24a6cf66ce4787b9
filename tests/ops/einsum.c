/* einsum, compared with its definition: a sum over all labels for each element. Also equations that must be
 * refused. */
#include "ops/grad.h"

enum { OPERANDS = 3 };

/* The equation as the caller writes it, and the same with letters for the dots and with an explicit
 * output. */
typedef struct equation {
    const char *text, *plain;
    int n;
    shape s[OPERANDS];
} equation;

static const equation all[] = {
    {"ij,jk->ik", "ij,jk->ik", 2, {SHAPE(3, 5), SHAPE(5, 4)}},
    {"ij,jk", "ij,jk->ik", 2, {SHAPE(17, 33), SHAPE(33, 9)}},
    {"ba", "ba->ab", 1, {SHAPE(3, 5)}},
    {"ii", "ii->", 1, {SHAPE(7, 7)}},
    {"ii->i", "ii->i", 1, {SHAPE(7, 7)}},
    {"iji->ij", "iji->ij", 1, {SHAPE(3, 5, 3)}},
    {"iii->i", "iii->i", 1, {SHAPE(4, 4, 4)}},
    {"ij->", "ij->", 1, {SHAPE(3, 5)}},
    {"ij->j", "ij->j", 1, {SHAPE(3, 5)}},
    {"i,i->", "i,i->", 2, {SHAPE(65), SHAPE(65)}},
    {"i,j->ij", "i,j->ij", 2, {SHAPE(5), SHAPE(7)}},
    {"ij,ij->ij", "ij,ij->ij", 2, {SHAPE(5, 7), SHAPE(5, 7)}},
    {"bij, bjk -> bik", "bij,bjk->bik", 2, {SHAPE(2, 3, 4), SHAPE(2, 4, 5)}},
    {"bhid,bhjd->bhij", "bhid,bhjd->bhij", 2, {SHAPE(2, 3, 4, 5), SHAPE(2, 3, 6, 5)}},
    {"ijk,jil->kl", "ijk,jil->kl", 2, {SHAPE(3, 4, 5), SHAPE(4, 3, 2)}},
    {"ij,kj,kl->il", "ij,kj,kl->il", 3, {SHAPE(3, 4), SHAPE(5, 4), SHAPE(5, 2)}},
    {"i,ij,j->", "i,ij,j->", 3, {SHAPE(5), SHAPE(5, 7), SHAPE(7)}},
    {"...ij,...jk->...ik", "abij,bjk->abik", 2, {SHAPE(2, 3, 4, 5), SHAPE(3, 5, 2)}},
    {"...i->...", "abi->ab", 1, {SHAPE(2, 3, 4)}},
    {"i...,i...", "iab,ib->ab", 2, {SHAPE(3, 2, 4), SHAPE(3, 4)}},
    {"...ij->ij", "aij->ij", 1, {SHAPE(2, 3, 4)}},
    {"ik,kj->kij", "ik,kj->kij", 2, {SHAPE(3, 5), SHAPE(5, 4)}},
    {"ij,ikl->j", "ij,ikl->j", 2, {SHAPE(3, 5), SHAPE(3, 2, 4)}},
    {"aB,Bc", "aB,Bc->ac", 2, {SHAPE(2, 3), SHAPE(3, 2)}},
    {"ij,jk->ik", "ij,jk->ik", 2, {SHAPE(3, 0), SHAPE(0, 4)}},
    {"ij,jk->ik", "ij,jk->ik", 2, {SHAPE(3, 1), SHAPE(5, 4)}}, /* an extent of 1 broadcasts */
    {",i", ",i->i", 2, {SCALAR_SHAPE, SHAPE(5)}},
};

static int64_t extent_of(const equation *e, char label) {
    int64_t extent = 1;
    const char *at = e->plain;
    for (int p = 0; p < e->n; p++, at++)
        for (int i = 0; i < e->s[p].rank; i++, at++)
            if (*at == label && extent == 1) extent = e->s[p].dim[i];
    return extent;
}

/* Lists the labels: first those of the output, then the summed ones. */
static int labels_of(const equation *e, char *labels, shape *out, shape *every) {
    int n = 0;
    for (const char *c = strchr(e->plain, '>') + 1; *c; c++) labels[n++] = *c;
    *out = *every = SCALAR_SHAPE;
    out->rank = n;
    for (const char *c = e->plain; *c != '-'; c++)
        if (*c != ',' && !memchr(labels, *c, (size_t)n)) labels[n++] = *c;
    every->rank = n;
    for (int i = 0; i < n; i++) every->dim[i] = extent_of(e, labels[i]);
    memcpy(out->dim, every->dim, sizeof out->dim);
    return n;
}

static int64_t element(const equation *e, int p, const char *at, const char *labels, int n,
                       const int64_t *index) {
    int64_t place[WEFT_MAX_RANK];
    for (int i = 0; i < e->s[p].rank; i++)
        for (int k = 0; k < n; k++)
            if (labels[k] == at[i]) place[i] = e->s[p].dim[i] == 1 ? 0 : index[k];
    return position(e->s[p], place);
}

static array *expect(matrix *m, const equation *e, array *const *x, weft_dtype dtype) {
    char labels[WEFT_MAX_RANK];
    shape out, every;
    const int n = labels_of(e, labels, &out, &every);
    array *y = array_new(m, dtype, out);
    real *magnitude = ops_alloc(m, (size_t)(y->n + 1) * sizeof *magnitude);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    const int64_t terms = y->n ? shape_count(every) / y->n : 0;
    for (int64_t k = 0; k < shape_count(every); k++) {
        int64_t index[WEFT_MAX_RANK];
        unravel(every, k, index);
        real f = 1;
        uint64_t i = 1;
        const char *at = e->plain;
        for (int p = 0; p < e->n; at += e->s[p++].rank + 1) {
            const int64_t from = element(e, p, at, labels, n, index);
            if (y->f)
                f *= x[p]->f[from];
            else
                i *= (uint64_t)x[p]->i[from];
        }
        if (y->f) {
            y->f[k / terms] += f;
            magnitude[k / terms] += fabsl(f);
        } else {
            y->i[k / terms] = wrap(dtype, (int64_t)((uint64_t)y->i[k / terms] + i));
        }
    }
    for (int64_t k = 0; k < y->n && y->f; k++) /* rounded, since it is stored between two sums */
        y->bound[k] = bound_sum(dtype, terms, magnitude[k], y->f[k]) +
                      (real)(2 * (e->n - 1)) * roundoff(dtype) * magnitude[k];
    return y;
}

static void check(matrix *m, weft_dtype dtype, const equation *e, view_kind view) {
    weft_tensor *t[OPERANDS];
    array *h[OPERANDS];
    ops_breathe(m);
    for (int i = 0; i < e->n; i++) {
        operand x = operand_new(m, dtype, e->s[i], view, GEN_NORMAL);
        t[i] = x.t;
        h[i] = x.h;
    }
    ops_check(m, "einsum", dtype, ops_text(m, "%s %s %s", e->text, view_name(view), shape_text(m, e->s[0])),
              weft_einsum(e->text, t, e->n), expect(m, e, h, dtype), TOLERANCE_GIVEN);
}

static void refuse(matrix *m) {
    weft_tensor *x = operand_new(m, WEFT_F32, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL).t;
    weft_tensor *const two[2] = {x, x}, *const mixed[2] = {x, weft_cast(x, WEFT_F64)};
    const struct {
        const char *text;
        int n;
        weft_status status;
    } wrong[] = {{"i", 1, WEFT_ERR_SHAPE},           {"ijk", 1, WEFT_ERR_SHAPE},
                 {"ij,jk", 2, WEFT_ERR_SHAPE},       {"ii", 1, WEFT_ERR_SHAPE},
                 {"ij", 2, WEFT_ERR_ARGUMENT},       {"ij,ij", 1, WEFT_ERR_ARGUMENT},
                 {"ij->k", 1, WEFT_ERR_ARGUMENT},    {"ij->ii", 1, WEFT_ERR_ARGUMENT},
                 {"i1", 1, WEFT_ERR_ARGUMENT},       {"..ij", 1, WEFT_ERR_ARGUMENT},
                 {"ij->i->j", 1, WEFT_ERR_ARGUMENT}, {"ij-", 1, WEFT_ERR_ARGUMENT},
                 {"......", 1, WEFT_ERR_ARGUMENT},   {"abcdefghij", 1, WEFT_ERR_SHAPE},
                 {"ij->i,j", 1, WEFT_ERR_ARGUMENT},  {"ij,kl,mn", 0, WEFT_ERR_ARGUMENT}};
    for (int i = 0; i < COUNT(wrong); i++)
        ops_refused(m, "einsum", WEFT_F32, wrong[i].text, weft_einsum(wrong[i].text, two, wrong[i].n),
                    wrong[i].status);
    ops_refused(m, "einsum", WEFT_F32, "dtypes", weft_einsum("ij,ij", mixed, 2), WEFT_ERR_DTYPE);
    ops_refused(m, "einsum", WEFT_F32, "NULL", weft_einsum(NULL, two, 1), WEFT_ERR_ARGUMENT);
}

void ops_case_einsum(matrix *m);
void ops_case_einsum(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "einsum", dtype)) continue;
        if (dtype == WEFT_BOOL) {
            weft_tensor *x = operand_new(m, dtype, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL).t;
            ops_refused(m, "einsum", dtype, "dtype", weft_einsum("ij", &x, 1), WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < COUNT(all); i++) check(m, dtype, &all[i], VIEW_PLAIN);
        for (int v = 1; v < VIEW_COUNT; v++) check(m, dtype, &all[12], (view_kind)v);
    }
    refuse(m);
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return weft_einsum(((const equation *)user)->text, in, ((const equation *)user)->n);
}

void ops_grad_einsum(matrix *m);
void ops_grad_einsum(matrix *m) {
    for (int i = 0; i < COUNT(all); i++) {
        const equation *e = &all[i];
        int64_t count = 1;
        for (int p = 0; p < e->n; p++) count *= shape_count(e->s[p]);
        if (count == 0 || count > 3000) continue;
        grad_check(m, &(grad_case){.op = "einsum",
                                   .sample = e->text,
                                   .n = e->n,
                                   .s = {e->s[0], e->s[1], e->s[2]},
                                   .low = -2,
                                   .high = 2,
                                   .build = build,
                                   .user = e});
    }
}
