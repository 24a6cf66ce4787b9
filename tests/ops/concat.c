/* concat and stack of parts of one tensor, views, empty tensors, one tensor and many tensors. */
#include "ops/grad.h"

enum { PARTS = 12 };

typedef struct joining {
    const char *sample;
    int count, axis;
    bool stack;
    shape s[PARTS];
} joining;

static const joining joinings[] = {
    {"rows", 3, 0, false, {{2, {2, 5}}, {2, {3, 5}}, {2, {1, 5}}}},
    {"columns", 3, -1, false, {{2, {3, 17}}, {2, {3, 1}}, {2, {3, 33}}}},
    {"middle", 2, 1, false, {{3, {2, 3, 4}}, {3, {2, 5, 4}}}},
    {"one", 1, 0, false, {{1, {7}}}},
    {"empty", 3, 0, false, {{1, {0}}, {1, {5}}, {1, {0}}}},
    {"many",
     9,
     0,
     false,
     {{1, {1}}, {1, {2}}, {1, {3}}, {1, {4}}, {1, {5}}, {1, {6}}, {1, {7}}, {1, {8}}, {1, {129}}}},
    {"rank 8", 2, 7, false, {{8, {1, 2, 1, 2, 1, 2, 1, 2}}, {8, {1, 2, 1, 2, 1, 2, 1, 3}}}},
    {"first", 3, 0, true, {{2, {2, 5}}, {2, {2, 5}}, {2, {2, 5}}}},
    {"last", 3, -1, true, {{2, {2, 5}}, {2, {2, 5}}, {2, {2, 5}}}},
    {"scalars", 4, 0, true, {{0, {0}}, {0, {0}}, {0, {0}}, {0, {0}}}},
    {"to rank 8", 2, 3, true, {{7, {1, 2, 1, 2, 1, 2, 3}}, {7, {1, 2, 1, 2, 1, 2, 3}}}},
};

/* Concatenates the parts along axis. extent[p] is the extent of part p. */
static array *join(matrix *m, const joining *j, const operand *parts) {
    shape one = parts[0].h->s;
    int axis = j->axis < 0 ? j->axis + one.rank + (j->stack ? 1 : 0) : j->axis;
    shape s = one;
    if (j->stack) {
        s.rank++;
        for (int i = s.rank - 1; i > axis; i--) s.dim[i] = one.dim[i - 1];
        s.dim[axis] = 1;
    }
    int64_t inner = 1, total = 0, extent[PARTS];
    for (int i = axis + 1; i < s.rank; i++) inner *= s.dim[i];
    for (int p = 0; p < j->count; p++) total += extent[p] = j->stack ? 1 : parts[p].h->s.dim[axis];
    s.dim[axis] = total;
    array *y = array_new(m, parts[0].h->dtype, s);
    for (int64_t k = 0; k < y->n; k++) {
        int64_t at = k / inner % total, outer = k / inner / total, p = 0;
        while (at >= extent[p]) at -= extent[p++];
        array_copy(y, k, parts[p].h, (outer * extent[p] + at) * inner + k % inner);
    }
    return y;
}

static weft_tensor *record(const joining *j, weft_tensor *const *parts) {
    return j->stack ? weft_stack(parts, j->count, j->axis) : weft_concat(parts, j->count, j->axis);
}

static void run(matrix *m, const char *op, bool stack) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, op, dtype)) continue;
        for (int i = 0; i < COUNT(joinings); i++)
            for (int v = 0; v < VIEW_COUNT && joinings[i].stack == stack; v++) {
                const joining *j = &joinings[i];
                operand parts[PARTS];
                weft_tensor *tensors[PARTS];
                ops_breathe(m);
                for (int p = 0; p < j->count; p++) {
                    parts[p] = operand_new(m, dtype, j->s[p], (view_kind)((v + p) % VIEW_COUNT), GEN_SPECIAL);
                    tensors[p] = parts[p].t;
                }
                ops_check(m, op, dtype, ops_text(m, "%s %s", j->sample, view_name((view_kind)v)),
                          record(j, tensors), join(m, j, parts), TOLERANCE_COPY);
            }
        operand x = operand_new(m, dtype, SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL);
        operand y = operand_new(m, other_dtype(d), SHAPE(2, 3), VIEW_PLAIN, GEN_NORMAL);
        operand z = operand_new(m, dtype, SHAPE(2, 4), VIEW_PLAIN, GEN_NORMAL);
        weft_tensor *mixed[2] = {x.t, y.t}, *uneven[2] = {x.t, z.t}, *same[2] = {x.t, x.t};
        joining j = {.count = 2, .axis = 0, .stack = stack};
        ops_refused(m, op, dtype, "mixed dtypes", record(&j, mixed), WEFT_ERR_DTYPE);
        ops_refused(m, op, dtype, "shapes", record(&j, uneven), WEFT_ERR_SHAPE);
        ops_check(m, op, dtype, "aliased", record(&j, same), join(m, &j, (operand[]){x, x}), TOLERANCE_COPY);
    }
    ops_flush(m);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return record(user, in);
}

static void gradient(matrix *m, const char *op, bool stack) {
    for (int i = 0; i < COUNT(joinings); i++) {
        const joining *j = &joinings[i];
        if (j->stack != stack || j->count > GRAD_OPERANDS || !strcmp(j->sample, "empty")) continue;
        grad_case c = {
            .op = op, .sample = j->sample, .n = j->count, .low = -2, .high = 2, .build = build, .user = j};
        for (int p = 0; p < j->count; p++) c.s[p] = j->s[p];
        grad_check(m, &c);
    }
}

void ops_case_concat(matrix *m);
void ops_case_concat(matrix *m) { run(m, "concat", false); }
void ops_grad_concat(matrix *m);
void ops_grad_concat(matrix *m) { gradient(m, "concat", false); }
void ops_case_stack(matrix *m);
void ops_case_stack(matrix *m) { run(m, "stack", true); }
void ops_grad_stack(matrix *m);
void ops_grad_stack(matrix *m) { gradient(m, "stack", true); }
