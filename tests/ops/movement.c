/* Movement ops: reshape, permute, transpose, expand, pad, slice, narrow, flip, squeeze, unsqueeze. All values
 * are copies, so results are bit-equal, on every dtype. Includes views of views. */
#include "ops/grad.h"

typedef struct movement {
    const char *name, *sample;
    shape s; /* shape of the operand */
    weft_tensor *(*record)(weft_tensor *x);
    array *(*expect)(matrix *m, const array *x);
} movement;

/* ---- each sample, written for the device and for the host ---- */

#define MOVE(id, device, host)                                                                               \
    static weft_tensor *record_##id(weft_tensor *x) { return device; }                                       \
    static array *expect_##id(matrix *m, const array *x) { return host; }
#define I(...) ((int64_t[]){__VA_ARGS__})
#define S(...) ((const shape)SHAPE(__VA_ARGS__))

MOVE(reshape_flat, weft_reshape(x, 1, I(420)), array_reshape(m, x, S(420)))
MOVE(reshape_open, weft_reshape(x, 3, I(5, -1, 12)), array_reshape(m, x, S(5, 7, 12)))
MOVE(reshape_rank8, weft_reshape(x, 8, I(1, 3, 5, 1, 7, 2, 2, 1)),
     array_reshape(m, x, S(1, 3, 5, 1, 7, 2, 2, 1)))
MOVE(reshape_scalar, weft_reshape(x, 0, NULL), array_reshape(m, x, SCALAR_SHAPE))
MOVE(reshape_empty, weft_reshape(x, 3, I(2, 0, 9)), array_reshape(m, x, S(2, 0, 9)))

MOVE(permute_4, weft_permute(x, (int[]){2, 0, 3, 1}), array_permute(m, x, (int[]){2, 0, 3, 1}))
MOVE(permute_negative, weft_permute(x, (int[]){-1, 0, -3, 2}), array_permute(m, x, (int[]){3, 0, 1, 2}))
MOVE(permute_same, weft_permute(x, (int[]){0, 1, 2, 3}), array_permute(m, x, (int[]){0, 1, 2, 3}))
MOVE(permute_scalar, weft_permute(x, (int[]){0}), array_reshape(m, x, SCALAR_SHAPE))
MOVE(permute_rank8, weft_permute(x, (int[]){7, 6, 5, 4, 3, 2, 1, 0}),
     array_permute(m, x, (int[]){7, 6, 5, 4, 3, 2, 1, 0}))

MOVE(transpose_last, weft_transpose(x, -1, -2), array_permute(m, x, (int[]){0, 1, 3, 2}))
MOVE(transpose_outer, weft_transpose(x, 0, 3), array_permute(m, x, (int[]){3, 1, 2, 0}))
MOVE(transpose_same, weft_transpose(x, 1, 1), array_permute(m, x, (int[]){0, 1, 2, 3}))
MOVE(transpose_tile, weft_transpose(x, 0, 1), array_permute(m, x, (int[]){1, 0}))

MOVE(expand_rows, weft_expand(x, 2, I(5, 7)), array_expand(m, x, S(5, 7)))
MOVE(expand_column, weft_expand(x, 3, I(2, 33, 4)), array_expand(m, x, S(2, 33, 4)))
MOVE(expand_scalar, weft_expand(x, 8, I(1, 2, 1, 3, 1, 2, 1, 2)),
     array_expand(m, x, S(1, 2, 1, 3, 1, 2, 1, 2)))
MOVE(expand_empty, weft_expand(x, 2, I(0, 7)), array_expand(m, x, S(0, 7)))
MOVE(expand_same, weft_expand(x, 1, I(7)), array_expand(m, x, S(7)))

MOVE(pad_zero, weft_pad(x, I(0, 1, 2, 0), I(3, 0, 1, 0), 0), array_pad(m, x, I(0, 1, 2, 0), I(3, 0, 1, 0), 0))
MOVE(pad_one, weft_pad(x, I(1, 0, 0, 4), I(0, 1, 0, 1), 1), array_pad(m, x, I(1, 0, 0, 4), I(0, 1, 0, 1), 1))
MOVE(pad_empty, weft_pad(x, I(2, 1), I(0, 0), 1), array_pad(m, x, I(2, 1), I(0, 0), 1))
MOVE(pad_none, weft_pad(x, I(0), I(0), 5), array_pad(m, x, I(0), I(0), 5))

MOVE(slice_part, weft_slice(x, I(1, 0, 2, 1), I(3, 4, 7, 3), I(1, 2, 3, 1)),
     array_slice(m, x, I(1, 0, 2, 1), I(1, 2, 3, 1), S(2, 2, 2, 2)))
MOVE(slice_negative, weft_slice(x, I(-2, -1, 6, -1), I(3, -6, -8, 0), I(1, -1, -2, -1)),
     array_slice(m, x, I(1, 4, 6, 3), I(1, -1, -2, -1), S(2, 5, 4, 3)))
MOVE(slice_all, weft_slice(x, NULL, NULL, NULL),
     array_slice(m, x, I(0, 0, 0, 0), I(1, 1, 1, 1), S(3, 5, 7, 4)))
MOVE(slice_clamped, weft_slice(x, I(-100, 2, 0, 0), I(100, 1000, 7, 4), I(1, 1, 100, 1)),
     array_slice(m, x, I(0, 2, 0, 0), I(1, 1, 100, 1), S(3, 3, 1, 4)))
MOVE(slice_nothing, weft_slice(x, I(2, 0, 0, 0), I(1, 5, 7, 4), NULL),
     array_slice(m, x, I(0, 0, 0, 0), I(1, 1, 1, 1), S(0, 5, 7, 4)))
MOVE(slice_backwards, weft_slice(x, NULL, NULL, I(-1, -2, 1, -3)),
     array_slice(m, x, I(2, 4, 0, 3), I(-1, -2, 1, -3), S(3, 3, 7, 2)))
MOVE(slice_far, weft_slice(x, NULL, NULL, I(INT64_MAX, INT64_MIN, 1, 1)),
     array_slice(m, x, I(0, 4, 0, 0), I(1, 1, 1, 1), S(1, 1, 7, 4)))

MOVE(narrow_middle, weft_narrow(x, 2, 3, 4), array_slice(m, x, I(0, 0, 3, 0), I(1, 1, 1, 1), S(3, 5, 4, 4)))
MOVE(narrow_none, weft_narrow(x, -1, 4, 0), array_slice(m, x, I(0, 0, 0, 0), I(1, 1, 1, 1), S(3, 5, 7, 0)))
MOVE(narrow_all, weft_narrow(x, 0, 0, 3), array_slice(m, x, I(0, 0, 0, 0), I(1, 1, 1, 1), S(3, 5, 7, 4)))
MOVE(narrow_long, weft_narrow(x, 0, 1, 1023), array_slice(m, x, I(1), I(1), S(1023)))

MOVE(flip_first, weft_flip(x, 0), array_slice(m, x, I(2, 0, 0, 0), I(-1, 1, 1, 1), S(3, 5, 7, 4)))
MOVE(flip_last, weft_flip(x, -1), array_slice(m, x, I(0, 0, 0, 3), I(1, 1, 1, -1), S(3, 5, 7, 4)))
MOVE(flip_twice, weft_flip(weft_flip(x, 1), 1),
     array_slice(m, x, I(0, 0, 0, 0), I(1, 1, 1, 1), S(3, 5, 7, 4)))
MOVE(flip_empty, weft_flip(x, 0), array_reshape(m, x, S(0, 3)))

MOVE(squeeze_middle, weft_squeeze(x, 1), array_reshape(m, x, S(3, 7)))
MOVE(squeeze_last, weft_squeeze(x, -1), array_reshape(m, x, S(17)))
MOVE(squeeze_to_scalar, weft_squeeze(x, 0), array_reshape(m, x, SCALAR_SHAPE))

MOVE(unsqueeze_first, weft_unsqueeze(x, 0), array_reshape(m, x, S(1, 3, 5, 7, 4)))
MOVE(unsqueeze_last, weft_unsqueeze(x, -1), array_reshape(m, x, S(3, 5, 7, 4, 1)))
MOVE(unsqueeze_scalar, weft_unsqueeze(x, 0), array_reshape(m, x, S(1)))

/* Views of views, read once. */
MOVE(reshape_of_slice,
     weft_reshape(weft_slice(weft_transpose(x, 1, 2), I(0, 1, 0, 0), I(3, 7, 5, 4), I(1, 2, 1, 3)), 1, I(-1)),
     array_reshape(m,
                   array_slice(m, array_permute(m, x, (int[]){0, 2, 1, 3}), I(0, 1, 0, 0), I(1, 2, 1, 3),
                               S(3, 3, 5, 2)),
                   S(90)))
MOVE(pad_of_flip, weft_pad(weft_flip(weft_reshape(x, 2, I(15, 28)), 0), I(1, 0), I(0, 2), 1),
     array_pad(m, array_slice(m, array_reshape(m, x, S(15, 28)), I(14, 0), I(-1, 1), S(15, 28)), I(1, 0),
               I(0, 2), 1))
MOVE(slice_of_pad,
     weft_slice(weft_pad(x, I(1, 1, 1, 1), I(1, 1, 1, 1), 0), I(0, 0, 0, 0), I(5, 7, 9, 6), I(2, 3, 1, 2)),
     array_slice(m, array_pad(m, x, I(1, 1, 1, 1), I(1, 1, 1, 1), 0), I(0, 0, 0, 0), I(2, 3, 1, 2),
                 S(3, 3, 9, 3)))
MOVE(expand_of_permute,
     weft_expand(weft_reshape(weft_permute(x, (int[]){3, 1, 2, 0}), 3, I(4, 1, 105)), 3, I(4, 3, 105)),
     array_expand(m, array_reshape(m, array_permute(m, x, (int[]){3, 1, 2, 0}), S(4, 1, 105)), S(4, 3, 105)))

static const movement movements[] = {
#define ROW(op, id, ...)                                                                                     \
    { #op, #id, SHAPE(__VA_ARGS__), record_##op##_##id, expect_##op##_##id }
#define SCALAR_ROW(op, id)                                                                                   \
    { #op, #id, SCALAR_SHAPE, record_##op##_##id, expect_##op##_##id }
    ROW(reshape, flat, 3, 5, 7, 4),
    ROW(reshape, open, 3, 5, 7, 4),
    ROW(reshape, rank8, 3, 5, 7, 4),
    ROW(reshape, scalar, 1, 1),
    ROW(reshape, empty, 0, 3),
    ROW(reshape, of_slice, 3, 5, 7, 4),
    ROW(permute, 4, 3, 5, 7, 4),
    ROW(permute, negative, 3, 5, 7, 4),
    ROW(permute, same, 3, 5, 7, 4),
    SCALAR_ROW(permute, scalar),
    ROW(permute, rank8, 2, 1, 2, 1, 2, 3, 1, 2),
    ROW(transpose, last, 3, 5, 7, 4),
    ROW(transpose, outer, 3, 5, 7, 4),
    ROW(transpose, same, 3, 5, 7, 4),
    ROW(transpose, tile, 65, 129),
    ROW(expand, rows, 7),
    ROW(expand, column, 33, 1),
    SCALAR_ROW(expand, scalar),
    ROW(expand, empty, 1, 7),
    ROW(expand, same, 7),
    ROW(expand, of_permute, 3, 5, 7, 4),
    ROW(pad, zero, 3, 5, 7, 4),
    ROW(pad, one, 3, 5, 7, 4),
    ROW(pad, empty, 0, 3),
    ROW(pad, none, 17),
    ROW(pad, of_flip, 3, 5, 7, 4),
    ROW(slice, part, 3, 5, 7, 4),
    ROW(slice, negative, 3, 5, 7, 4),
    ROW(slice, all, 3, 5, 7, 4),
    ROW(slice, clamped, 3, 5, 7, 4),
    ROW(slice, nothing, 3, 5, 7, 4),
    ROW(slice, backwards, 3, 5, 7, 4),
    ROW(slice, far, 3, 5, 7, 4),
    ROW(slice, of_pad, 3, 5, 7, 4),
    ROW(narrow, middle, 3, 5, 7, 4),
    ROW(narrow, none, 3, 5, 7, 4),
    ROW(narrow, all, 3, 5, 7, 4),
    ROW(narrow, long, 1025),
    ROW(flip, first, 3, 5, 7, 4),
    ROW(flip, last, 3, 5, 7, 4),
    ROW(flip, twice, 3, 5, 7, 4),
    ROW(flip, empty, 0, 3),
    ROW(squeeze, middle, 3, 1, 7),
    ROW(squeeze, last, 17, 1),
    ROW(squeeze, to_scalar, 1),
    ROW(unsqueeze, first, 3, 5, 7, 4),
    ROW(unsqueeze, last, 3, 5, 7, 4),
    SCALAR_ROW(unsqueeze, scalar),
};

static void run(matrix *m, const char *op) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        if (!ops_has_dtype(m, op, ops_dtypes[d])) continue;
        for (int i = 0; i < COUNT(movements); i++) {
            const movement *move = &movements[i];
            if (strcmp(move->name, op)) continue;
            for (int v = 0; v < VIEW_COUNT; v++) {
                ops_breathe(m);
                operand x = operand_new(m, ops_dtypes[d], move->s, (view_kind)v, GEN_SPECIAL);
                ops_check(m, op, ops_dtypes[d],
                          ops_text(m, "%s of %s", move->sample, view_name((view_kind)v)), move->record(x.t),
                          move->expect(m, x.h), TOLERANCE_COPY);
            }
        }
    }
    ops_flush(m);
}

/* ---- gradients ---- */

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    (void)ctx, (void)dtype;
    return ((const movement *)user)->record(in[0]);
}

static void gradient(matrix *m, const char *op) {
    for (int i = 0; i < COUNT(movements); i++) {
        const movement *move = &movements[i];
        if (strcmp(move->name, op) || shape_count(move->s) == 0) continue;
        grad_check(m, &(grad_case){.op = op,
                                   .sample = move->sample,
                                   .n = 1,
                                   .s = {move->s},
                                   .low = -2,
                                   .high = 2,
                                   .build = build,
                                   .user = move});
    }
}

#define MOVEMENT(name)                                                                                       \
    void ops_case_##name(matrix *m);                                                                         \
    void ops_case_##name(matrix *m) { run(m, #name); }                                                       \
    void ops_grad_##name(matrix *m);                                                                         \
    void ops_grad_##name(matrix *m) { gradient(m, #name); }
MOVEMENT(reshape)
MOVEMENT(permute)
MOVEMENT(transpose)
MOVEMENT(expand)
MOVEMENT(pad)
MOVEMENT(slice)
MOVEMENT(narrow)
MOVEMENT(flip)
MOVEMENT(squeeze)
MOVEMENT(unsqueeze)
