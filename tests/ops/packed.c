/* unpack and matmul_packed, on random blocks of each format. The layouts are read here a third time, number
 * by number (ggml-common.h and ggml-quants.c of https://github.com/ggml-org/ggml). */
#include "ops/grad.h"

typedef struct layout {
    weft_packed_format format;
    const char *name;
    int elements, bytes, span;
    int halves[2]; /* the bytes of the f16 numbers; -1: none */
} layout;

static const layout layouts[] = {{WEFT_Q4_0, "Q4_0", 32, 18, 32, {0, -1}},
                                 {WEFT_Q4_1, "Q4_1", 32, 20, 32, {0, 2}},
                                 {WEFT_Q8_0, "Q8_0", 32, 34, 32, {0, -1}},
                                 {WEFT_Q4_K, "Q4_K", 256, 144, 32, {0, 2}},
                                 {WEFT_Q6_K, "Q6_K", 256, 210, 16, {208, -1}}};

static real half_at(const int64_t *byte) { return weft_f16_to_f32((uint16_t)(byte[0] | byte[1] << 8)); }

static int64_t two_complement(int64_t byte) { return byte < 128 ? byte : byte - 256; }

/* Number i of a block. *size gets the sum of the magnitudes of its two terms. */
static real number_of(const layout *l, const int64_t *b, int i, real *size) {
    const int j = i % 32 / 16 * 4, s = i / 32, pair = i / 64;
    real scale = half_at(b + l->halves[0]), more = 0;
    int64_t q;
    switch (l->format) {
    case WEFT_Q4_0: q = (b[2 + i % 16] >> j & 15) - 8; break;
    case WEFT_Q4_1:
        q = b[4 + i % 16] >> j & 15;
        more = half_at(b + 2);
        break;
    case WEFT_Q8_0: q = two_complement(b[2 + i]); break;
    case WEFT_Q4_K:
        q = b[16 + pair * 32 + i % 32] >> s % 2 * 4 & 15;
        scale *= s < 4 ? b[4 + s] & 63 : (b[8 + s] & 15) | b[s] >> 6 << 4;
        more = -half_at(b + 2) * (s < 4 ? b[8 + s] & 63 : b[8 + s] >> 4 | b[4 + s] >> 6 << 4);
        break;
    default:
        q = (b[i / 128 * 64 + i % 64] >> i % 128 / 64 * 4 & 15) |
            (b[128 + i / 128 * 32 + i % 32] >> i % 128 / 32 * 2 & 3) << 4;
        q -= 32;
        scale *= two_complement(b[192 + i / 16]);
    }
    *size = fabsl(scale * q) + fabsl(more);
    return scale * q + more;
}

/* Random rows of k numbers. Their scales are between 1/64 and 1/16, of any sign. */
static array *rows_of(matrix *m, const layout *l, shape s, int64_t k) {
    s.dim[s.rank++] = k / l->elements * l->bytes;
    array *h = array_new(m, WEFT_U8, s);
    for (int64_t i = 0; i < h->n; i++) h->i[i] = (int64_t)(ops_random(m) & 255);
    for (int64_t at = 0; at < h->n; at += l->bytes)
        for (int j = 0; j < 2 && l->halves[j] >= 0; j++) {
            const uint16_t bits =
                weft_f32_to_f16((float)((1 + 3 * ops_uniform(m)) / 64 * (ops_uniform(m) < 0.5 ? -1 : 1)));
            h->i[at + l->halves[j]] = bits & 255;
            h->i[at + l->halves[j] + 1] = bits >> 8;
        }
    return h;
}

/* The numbers of packed rows. The bounds allow three roundings to f32. */
static array *numbers_of(matrix *m, const layout *l, const array *packed) {
    shape s = packed->s;
    s.dim[s.rank - 1] = s.dim[s.rank - 1] / l->bytes * l->elements;
    array *w = array_new(m, WEFT_F32, s);
    w->bound = ops_alloc(m, (size_t)(w->n + 1) * sizeof *w->bound);
    for (int64_t i = 0; i < w->n; i++) {
        real size;
        w->f[i] = number_of(l, packed->i + i / l->elements * l->bytes, (int)(i % l->elements), &size);
        w->bound[i] = 3 * roundoff(WEFT_F32) * size;
    }
    return w;
}

static void check_unpack(matrix *m, const layout *l, shape s, int64_t k) {
    ops_breathe(m);
    array *packed = rows_of(m, l, s, k);
    ops_check(m, "unpack", WEFT_U8, ops_text(m, "%s %s of %d", l->name, shape_text(m, s), (int)k),
              weft_unpack(array_upload(m, packed), l->format), numbers_of(m, l, packed), TOLERANCE_GIVEN);
}

/* Rows that a gather takes, as an embedding does. */
static void check_taken(matrix *m, const layout *l) {
    const int32_t rows[3] = {4, 0, 4};
    const int64_t k = 2 * l->elements;
    ops_breathe(m);
    array *packed = rows_of(m, l, SHAPE(5), k), *taken = array_new(m, WEFT_U8, SHAPE(3, packed->s.dim[1]));
    for (int64_t i = 0; i < taken->n; i++)
        taken->i[i] = packed->i[rows[i / taken->s.dim[1]] * taken->s.dim[1] + i % taken->s.dim[1]];
    weft_tensor *index = weft_from(m->ctx, WEFT_I32, 1, (int64_t[]){3}, rows);
    ops_check(m, "unpack", WEFT_U8, ops_text(m, "%s taken rows", l->name),
              weft_unpack(weft_gather(array_upload(m, packed), index, 0), l->format), numbers_of(m, l, taken),
              TOLERANCE_GIVEN);
}

void ops_case_unpack(matrix *m);
void ops_case_unpack(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        if (ops_dtypes[d] == WEFT_U8 || !ops_has_dtype(m, "unpack", ops_dtypes[d])) continue;
        operand numbers = operand_new(m, ops_dtypes[d], SHAPE(2, 18), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "unpack", ops_dtypes[d], "dtype", weft_unpack(numbers.t, WEFT_Q4_0), WEFT_ERR_DTYPE);
    }
    for (int i = 0; i < COUNT(layouts); i++) {
        const layout *l = &layouts[i];
        const int64_t e = l->elements;
        if (!ops_has_dtype(m, "unpack", WEFT_U8)) continue;
        check_unpack(m, l, SCALAR_SHAPE, e);
        check_unpack(m, l, SHAPE(3), 2 * e);
        check_unpack(m, l, SHAPE(2, 5), 3 * e);
        check_unpack(m, l, SHAPE(0), e);
        check_unpack(m, l, SHAPE(3), 0);
        if (!m->slow) check_unpack(m, l, SHAPE(150), 5 * e);
        check_taken(m, l);
        operand half = operand_new(m, WEFT_U8, SHAPE(2, l->bytes + 2), VIEW_PLAIN, GEN_NORMAL);
        ops_refused(m, "unpack", WEFT_U8, "bytes", weft_unpack(half.t, l->format), WEFT_ERR_SHAPE);
        ops_refused(m, "unpack", WEFT_U8, "format", weft_unpack(half.t, WEFT_UNPACKED), WEFT_ERR_ARGUMENT);
        ops_refused(m, "unpack", WEFT_U8, "format", weft_unpack(half.t, WEFT_PACKED_COUNT),
                    WEFT_ERR_ARGUMENT);
        ops_flush(m);
    }
}

/* ---- the matmul ---- */

/* How far rounding to whole numbers of each span may move x[i]: half of the scale. */
static real rounding_of(const layout *l, const real *x, int64_t i) {
    real most = 0;
    for (int64_t j = i / l->span * l->span; j < (i / l->span + 1) * l->span; j++)
        most = fmaxl(most, fabsl(x[j]));
    return most / 254 * 1.0001L + 1e-36L;
}

static array *expect(matrix *m, const layout *l, const array *x, const array *packed) {
    const array *w = numbers_of(m, l, packed);
    const int64_t k = w->s.dim[1], n = w->s.dim[0];
    const bool rounds = strcmp(m->device, "cpu") == 0 && x->dtype != WEFT_F64;
    shape s = x->s;
    s.dim[s.rank - 1] = n;
    array *y = array_new(m, x->dtype, s);
    y->bound = ops_alloc(m, (size_t)(y->n + 1) * sizeof *y->bound);
    real *moved = ops_alloc(m, (size_t)(x->n + 1) * sizeof *moved);
    for (int64_t i = 0; i < x->n && rounds; i++) moved[i] = rounding_of(l, x->f + i / k * k, i % k);
    for (int64_t at = 0; at < y->n; at++) {
        const real *row = x->f + at / n * k, *by = w->f + at % n * k, *off = w->bound + at % n * k;
        real magnitude = 0, more = 0;
        for (int64_t i = 0; i < k; i++) {
            y->f[at] += row[i] * by[i];
            magnitude += fabsl(row[i]) * (fabsl(by[i]) + off[i] / (3 * roundoff(WEFT_F32)));
            more += fabsl(row[i]) * off[i];
            more += moved[at / n * k + i] * (fabsl(by[i]) + off[i]);
        }
        y->bound[at] = bound_sum(x->dtype, k, magnitude, y->f[at]) + more;
    }
    return y;
}

static void check(matrix *m, const layout *l, weft_dtype dtype, shape s, int64_t n, view_kind view) {
    ops_breathe(m);
    operand x = operand_new(m, dtype, s, view, GEN_NORMAL);
    array *packed = rows_of(m, l, SHAPE(n), s.dim[s.rank - 1]);
    ops_check(m, "matmul_packed", dtype,
              ops_text(m, "%s %s %s by %d", l->name, view_name(view), shape_text(m, s), (int)n),
              weft_matmul_packed(x.t, array_upload(m, packed), l->format), expect(m, l, x.h, packed),
              TOLERANCE_GIVEN);
}

/* Zeros, and numbers so small that their scale is 0, give 0 or nearly so; a row with NaN or infinity gives no
 * number, and leaves the other rows alone. */
static void check_special(matrix *m, const layout *l) {
    const int64_t k = 2 * l->elements;
    ops_breathe(m);
    array *h = array_random(m, WEFT_F32, SHAPE(4, k), GEN_NORMAL), *packed = rows_of(m, l, SHAPE(5), k);
    for (int64_t i = 0; i < k; i++) h->f[i] = 0, h->f[k + i] = rounded(WEFT_F32, h->f[k + i] * 1e-37L);
    operand x = operand_of(m, h);
    ops_check(m, "matmul_packed", WEFT_F32, ops_text(m, "%s zeros and small numbers", l->name),
              weft_matmul_packed(x.t, array_upload(m, packed), l->format), expect(m, l, h, packed),
              TOLERANCE_GIVEN);
    const float wrong[2] = {NAN, INFINITY};
    for (int i = 0; i < 2; i++) {
        float values[2 * 512], y[2];
        array *one = rows_of(m, l, SHAPE(1), k);
        for (int64_t j = 0; j < 2 * k; j++) values[j] = (float)h->f[2 * k + j];
        values[k + 3] = wrong[i];
        weft_tensor *bad = weft_from(m->ctx, WEFT_F32, 2, (int64_t[]){2, k}, values);
        weft_tensor *got = weft_matmul_packed(bad, array_upload(m, one), l->format);
        const bool read = weft_read(got, y, sizeof y) == WEFT_OK;
        ops_hold(m, "matmul_packed", WEFT_F32, "a number that is not finite",
                 read && isfinite(y[0]) && !isfinite(y[1]));
    }
}

static void check_refused(matrix *m, const layout *l) {
    const int64_t k = l->elements;
    operand x = operand_new(m, WEFT_F32, SHAPE(2, k), VIEW_PLAIN, GEN_NORMAL),
            narrow = operand_new(m, WEFT_F32, SHAPE(2, k - 1), VIEW_PLAIN, GEN_NORMAL);
    weft_tensor *w = array_upload(m, rows_of(m, l, SHAPE(3), k));
    const struct {
        const char *what;
        weft_tensor *got;
        weft_status status;
    } all[] = {
        {"k", weft_matmul_packed(narrow.t, w, l->format), WEFT_ERR_SHAPE},
        {"the matrix's dtype", weft_matmul_packed(x.t, x.t, l->format), WEFT_ERR_DTYPE},
        {"the matrix's rank", weft_matmul_packed(x.t, weft_unsqueeze(w, 0), l->format), WEFT_ERR_SHAPE},
        {"format", weft_matmul_packed(x.t, w, WEFT_PACKED_COUNT), WEFT_ERR_ARGUMENT}};
    for (int j = 0; j < COUNT(all); j++)
        ops_refused(m, "matmul_packed", WEFT_F32, all[j].what, all[j].got, all[j].status);
}

void ops_case_matmul_packed(matrix *m);
void ops_case_matmul_packed(matrix *m) {
    for (int d = 0; d < OPS_DTYPES; d++) {
        const weft_dtype dtype = ops_dtypes[d];
        if (!ops_has_dtype(m, "matmul_packed", dtype)) continue;
        if (!is_float(dtype)) {
            operand x = operand_new(m, dtype, SHAPE(2, 32), VIEW_PLAIN, GEN_NORMAL);
            weft_tensor *w = array_upload(m, rows_of(m, &layouts[0], SHAPE(3), 32));
            ops_refused(m, "matmul_packed", dtype, "dtype", weft_matmul_packed(x.t, w, WEFT_Q4_0),
                        WEFT_ERR_DTYPE);
            continue;
        }
        for (int i = 0; i < COUNT(layouts); i++) {
            const layout *l = &layouts[i];
            const int64_t e = l->elements;
            if (dtype == WEFT_F32) ops_another_way(m); /* each format has a kernel, and each number of rows */
            check(m, l, dtype, SHAPE(1, e), 1, VIEW_PLAIN);
            if (dtype == WEFT_F32) ops_another_way(m);
            check(m, l, dtype, SHAPE(3, 2 * e), 17, VIEW_PLAIN);
            check(m, l, dtype, SHAPE(2, 3, e), 5, VIEW_TRANSPOSED);
            check(m, l, dtype, SHAPE(3 * e), 16, VIEW_PLAIN);
            if (m->gpu && dtype != WEFT_F32) continue;
            check(m, l, dtype, SHAPE(0, e), 3, VIEW_PLAIN);
            check(m, l, dtype, SHAPE(2, 0), 3, VIEW_PLAIN);
            check(m, l, dtype, SHAPE(2, e), 0, VIEW_PLAIN);
            for (int v = 1; v < VIEW_COUNT; v++) check(m, l, dtype, SHAPE(4, 2 * e), 3, (view_kind)v);
            if (m->slow) continue;
            for (int64_t rows = 2; rows < 20; rows += 3)
                check(m, l, dtype, SHAPE(rows, 3 * e), 33, VIEW_PLAIN);
            check(m, l, dtype, SHAPE(5, 1280), 20, VIEW_PLAIN);
            check(m, l, dtype, SHAPE(2, 2304), 19, VIEW_PLAIN);
            check(m, l, dtype, SHAPE(131, e), 150, VIEW_PLAIN);
        }
        ops_flush(m);
    }
    for (int i = 0; i < COUNT(layouts); i++) {
        check_refused(m, &layouts[i]);
        check_special(m, &layouts[i]);
    }
    ops_flush(m);
}

/* ---- gradients ---- */

/* A packed matrix (3, k), the same at each call. */
static weft_tensor *fixed_rows(weft_context *ctx, const layout *l) {
    uint8_t bytes[3 * 210];
    uint64_t random = 7;
    for (int i = 0; i < 3 * l->bytes; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        bytes[i] = (uint8_t)(random >> 40);
    }
    for (int at = 0; at < 3 * l->bytes; at += l->bytes)
        for (int j = 0; j < 2 && l->halves[j] >= 0; j++) /* 1/64 */
            bytes[at + l->halves[j]] = 0, bytes[at + l->halves[j] + 1] = 0x24;
    return weft_from(ctx, WEFT_U8, 2, (int64_t[]){3, l->bytes}, bytes);
}

static weft_tensor *build(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in, const void *user) {
    const layout *l = user;
    (void)dtype;
    return weft_matmul_packed(in[0], fixed_rows(ctx, l), l->format);
}

void ops_grad_matmul_packed(matrix *m);
void ops_grad_matmul_packed(matrix *m) {
    for (int i = 0; i < COUNT(layouts); i++)
        grad_check(m, &(grad_case){.op = "matmul_packed",
                                   .sample = layouts[i].name,
                                   .n = 1,
                                   .s = {SHAPE(2, layouts[i].elements)},
                                   .low = -1,
                                   .high = 1,
                                   .build = build,
                                   .user = &layouts[i]});
}

/* The numbers of packed rows are constants: a gradient does not reach them. */
static weft_tensor *build_unpack(weft_context *ctx, weft_dtype dtype, weft_tensor *const *in,
                                 const void *user) {
    const layout *l = user;
    weft_tensor *rows = weft_cast(weft_unpack(fixed_rows(ctx, l), l->format), dtype);
    return weft_mul(in[0], weft_narrow(rows, 1, 0, 4));
}

void ops_grad_unpack(matrix *m);
void ops_grad_unpack(matrix *m) {
    grad_check(m, &(grad_case){.op = "unpack",
                               .sample = "a factor",
                               .n = 1,
                               .s = {SHAPE(3, 4)},
                               .low = -1,
                               .high = 1,
                               .build = build_unpack,
                               .user = &layouts[0]});
}
