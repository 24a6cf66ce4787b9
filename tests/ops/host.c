/* Values on the host: random arrays, views of them as naive index maps, and rounding to a dtype by the
 * definition of its format. Uses the library only to upload arrays. Read next: run.c. */
#include "ops/matrix.h"

const weft_dtype ops_dtypes[OPS_DTYPES] = {WEFT_F32, WEFT_F64, WEFT_F16,  WEFT_BF16, WEFT_I32,
                                           WEFT_I64, WEFT_U8,  WEFT_BOOL, WEFT_I8,   WEFT_I16,
                                           WEFT_U16, WEFT_U32, WEFT_U64};

const shape ops_sizes[] = {{0, {0}},
                           {1, {0}},
                           {1, {1}},
                           {1, {15}},
                           {1, {16}},
                           {1, {17}},
                           {1, {31}},
                           {1, {32}},
                           {1, {33}},
                           {1, {127}},
                           {1, {128}},
                           {1, {129}},
                           {1, {1023}},
                           {1, {1024}},
                           {1, {1025}},
                           {3, {7, 13, 31}},
                           {2, {1, 1}},
                           {2, {0, 3}},
                           {2, {3, 17}},
                           {2, {65, 33}},
                           {3, {2, 0, 3}},
                           {4, {3, 5, 7, 4}},
                           {5, {2, 1, 3, 2, 5}},
                           {6, {2, 2, 1, 3, 2, 2}},
                           {7, {2, 1, 2, 2, 1, 3, 2}},
                           {8, {2, 1, 2, 1, 2, 3, 1, 2}}};
const int ops_n_sizes = COUNT(ops_sizes);

const shape ops_views[] = {{1, {33}}, {2, {17, 31}}, {4, {3, 5, 7, 4}}};
const int ops_n_views = COUNT(ops_views);

const char *view_name(view_kind view) {
    static const char *const names[VIEW_COUNT] = {"plain",   "transposed", "permuted", "offset", "stepped",
                                                  "flipped", "broadcast",  "row",      "padded", "reshaped"};
    return names[view];
}

/* ---- numbers ---- */

uint64_t ops_random(matrix *m) { /* splitmix64 */
    uint64_t z = m->random += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

double ops_uniform(matrix *m) { return (double)(ops_random(m) >> 11) * 0x1p-53; }

double ops_normal(matrix *m) {
    double u = ops_uniform(m), v = ops_uniform(m);
    return sqrt(-2 * log1p(-u)) * cos(6.283185307179586 * v);
}

bool is_float(weft_dtype dtype) {
    return dtype == WEFT_F32 || dtype == WEFT_F64 || dtype == WEFT_F16 || dtype == WEFT_BF16;
}

int64_t wrap(weft_dtype dtype, int64_t v) {
    switch (dtype) {
    case WEFT_BOOL: return v != 0;
    case WEFT_U8: return (uint8_t)v;
    case WEFT_U16: return (uint16_t)v;
    case WEFT_U32: return (uint32_t)v;
    case WEFT_I8: return (int8_t)v;
    case WEFT_I16: return (int16_t)v;
    case WEFT_I32: return (int32_t)v;
    default: return v;
    }
}

real rounded(weft_dtype dtype, real v) {
    float_format f = format_of(dtype);
    if (!isfinite(v) || v == 0) return v;
    real unit = ulp_of(dtype, v), r = nearbyintl(v / unit) * unit, top = ldexpl(1, f.emax);
    if (fabsl(r) >= 2 * top) return copysignl(HUGE_VALL, v);
    return r == 0 ? copysignl(0, v) : r;
}

static real special(weft_dtype dtype, int64_t at) {
    float_format f = format_of(dtype);
    real least = ldexpl(1, f.emin - (f.digits - 1)), normal = ldexpl(1, f.emin);
    real most = ldexpl(2 - ldexpl(1, 1 - f.digits), f.emax);
    const real values[] = {0,      HUGE_VALL,   NAN,   1,      least, most,       0.5L,  normal,
                           1.5L,   2.5L,        2,     3,      10,    0.6931471L, 100,   normal - least,
                           0.999L, 1 + 0x1p-7L, 1e-3L, 1e-20L, 1e20L, 88.5L,      103.5L};
    int n = COUNT(values);
    real v = values[at % n];
    return rounded(dtype, at / n % 2 ? -v : v);
}

static int64_t special_integer(weft_dtype dtype, int64_t at) {
    static const int64_t values[] = {0,  1,  -1,  2,   3,   -2,        7,         31,        32,
                                     63, 64, 255, 127, 128, INT32_MAX, INT32_MIN, INT64_MAX, INT64_MIN};
    return wrap(dtype, values[at % COUNT(values)]);
}

static real any_float(matrix *m, weft_dtype dtype) {
    float_format f = format_of(dtype);
    int e = f.emin - 3 + (int)(ops_random(m) % (uint64_t)(f.emax - f.emin + 3));
    real v = ldexpl(1 + (real)ops_uniform(m), e);
    return ops_random(m) & 1 ? -v : v;
}

static real random_float(matrix *m, weft_dtype dtype, generator gen, int64_t at) {
    switch (gen) {
    case GEN_SPECIAL: return special(dtype, at);
    case GEN_WIDE:
    case GEN_NONZERO:
        switch (ops_random(m) % 4) {
        case 0: return any_float(m, dtype);
        case 1: return 20 * (real)ops_uniform(m) - 10;
        case 2: return (real)(100 * ops_normal(m));
        default: return (real)ops_normal(m);
        }
    case GEN_POSITIVE: return 0.5L + 3 * (real)ops_uniform(m);
    case GEN_NEAR_ONE: return (0.8L + 0.45L * (real)ops_uniform(m)) * (ops_random(m) & 1 ? -1 : 1);
    case GEN_STEPS: return (real)((int)(ops_random(m) % 7) - 3);
    default: return (real)(3 * ops_normal(m));
    }
}

static int64_t random_integer(matrix *m, weft_dtype dtype, generator gen, int64_t at) {
    int64_t v;
    switch (gen) {
    case GEN_SPECIAL: return special_integer(dtype, at);
    case GEN_WIDE: return wrap(dtype, (int64_t)(ops_random(m) & 1 ? ops_random(m) : ops_random(m) % 20) - 8);
    case GEN_NONZERO:
        v = wrap(dtype, (int64_t)(ops_random(m) & 1 ? ops_random(m) : ops_random(m) % 20) - 8);
        return v ? v : 1;
    case GEN_POSITIVE: return wrap(dtype, 1 + (int64_t)(ops_random(m) % 9));
    case GEN_NEAR_ONE: v = (int64_t)(ops_random(m) % 4) - 2; return wrap(dtype, v >= 0 ? v + 1 : v);
    case GEN_STEPS: return wrap(dtype, (int64_t)(ops_random(m) % 4));
    default:
        return wrap(dtype,
                    dtype == WEFT_BOOL ? (int64_t)(ops_random(m) & 1) : (int64_t)(ops_random(m) % 19) - 9);
    }
}

/* ---- shapes ---- */

int64_t shape_count(shape s) {
    int64_t n = 1;
    for (int i = 0; i < s.rank; i++) n *= s.dim[i];
    return n;
}

bool shape_broadcast(shape a, shape b, shape *out) {
    shape r = {a.rank > b.rank ? a.rank : b.rank, {0}};
    for (int i = 0; i < r.rank; i++) {
        int64_t x = i < r.rank - a.rank ? 1 : a.dim[i - (r.rank - a.rank)];
        int64_t y = i < r.rank - b.rank ? 1 : b.dim[i - (r.rank - b.rank)];
        if (x != y && x != 1 && y != 1) return false;
        r.dim[i] = x == 1 ? y : x;
    }
    *out = r;
    return true;
}

int64_t position(shape s, const int64_t *index) {
    int64_t at = 0;
    for (int i = 0; i < s.rank; i++) at = at * s.dim[i] + index[i];
    return at;
}

void unravel(shape s, int64_t at, int64_t *index) {
    for (int i = s.rank; i-- > 0;) {
        index[i] = at % s.dim[i];
        at /= s.dim[i];
    }
}

/* ---- arrays ---- */

array *array_new(matrix *m, weft_dtype dtype, shape s) {
    array *a = ops_alloc(m, sizeof *a);
    a->dtype = dtype;
    a->s = s;
    a->n = shape_count(s);
    if (is_float(dtype))
        a->f = ops_alloc(m, (size_t)(a->n + 1) * sizeof *a->f);
    else
        a->i = ops_alloc(m, (size_t)(a->n + 1) * sizeof *a->i);
    return a;
}

array *array_like(matrix *m, const array *a, weft_dtype dtype) { return array_new(m, dtype, a->s); }

array *array_random(matrix *m, weft_dtype dtype, shape s, generator gen) {
    array *a = array_new(m, dtype, s);
    for (int64_t k = 0; k < a->n; k++) {
        if (a->f)
            a->f[k] = rounded(dtype, random_float(m, dtype, gen, k));
        else
            a->i[k] = random_integer(m, dtype, gen, k);
    }
    return a;
}

void array_copy(array *to, int64_t i, const array *from, int64_t j) {
    if (to->f)
        to->f[i] = from->f[j];
    else
        to->i[i] = from->i[j];
}

static void encode(const array *a, int64_t k, char *out) {
    float f = a->f ? (float)a->f[k] : 0;
    double d = a->f ? (double)a->f[k] : 0;
    uint16_t h = a->dtype == WEFT_F16 ? weft_f32_to_f16(f) : weft_f32_to_bf16(f);
    uint64_t bits = a->i ? (uint64_t)a->i[k] : 0;
    uint32_t u32 = (uint32_t)bits;
    uint16_t u16 = (uint16_t)bits;
    uint8_t u8 = (uint8_t)bits;
    switch (a->dtype) {
    case WEFT_F32: memcpy(out, &f, sizeof f); return;
    case WEFT_F64: memcpy(out, &d, sizeof d); return;
    case WEFT_F16:
    case WEFT_BF16: memcpy(out, &h, sizeof h); return;
    case WEFT_I32:
    case WEFT_U32: memcpy(out, &u32, sizeof u32); return;
    case WEFT_I16:
    case WEFT_U16: memcpy(out, &u16, sizeof u16); return;
    case WEFT_I64:
    case WEFT_U64: memcpy(out, &bits, sizeof bits); return;
    default: memcpy(out, &u8, sizeof u8); return;
    }
}

weft_tensor *array_upload(matrix *m, const array *a) {
    size_t size = weft_dtype_size(a->dtype);
    char *data = ops_alloc(m, (size_t)a->n * size + 1);
    for (int64_t k = 0; k < a->n; k++) encode(a, k, data + (size_t)k * size);
    return weft_from(m->ctx, a->dtype, a->s.rank, a->s.dim, data);
}

array *array_permute(matrix *m, const array *a, const int *order) {
    shape s = a->s;
    for (int i = 0; i < s.rank; i++) s.dim[i] = a->s.dim[order[i]];
    array *b = array_new(m, a->dtype, s);
    for (int64_t k = 0; k < b->n; k++) {
        int64_t to[WEFT_MAX_RANK], from[WEFT_MAX_RANK];
        unravel(s, k, to);
        for (int i = 0; i < s.rank; i++) from[order[i]] = to[i];
        array_copy(b, k, a, position(a->s, from));
    }
    return b;
}

array *array_slice(matrix *m, const array *a, const int64_t *start, const int64_t *step, shape s) {
    array *b = array_new(m, a->dtype, s);
    for (int64_t k = 0; k < b->n; k++) {
        int64_t to[WEFT_MAX_RANK], from[WEFT_MAX_RANK];
        unravel(s, k, to);
        for (int i = 0; i < s.rank; i++) from[i] = start[i] + to[i] * step[i];
        array_copy(b, k, a, position(a->s, from));
    }
    return b;
}

array *array_expand(matrix *m, const array *a, shape s) {
    array *b = array_new(m, a->dtype, s);
    int lead = s.rank - a->s.rank;
    for (int64_t k = 0; k < b->n; k++) {
        int64_t to[WEFT_MAX_RANK], from[WEFT_MAX_RANK] = {0};
        unravel(s, k, to);
        for (int i = 0; i < a->s.rank; i++) from[i] = a->s.dim[i] == 1 ? 0 : to[i + lead];
        array_copy(b, k, a, position(a->s, from));
    }
    return b;
}

array *array_reshape(matrix *m, const array *a, shape s) {
    array *b = array_new(m, a->dtype, s);
    for (int64_t k = 0; k < b->n; k++) array_copy(b, k, a, k);
    return b;
}

array *array_pad(matrix *m, const array *a, const int64_t *before, const int64_t *after, double value) {
    shape s = a->s;
    for (int i = 0; i < s.rank; i++) s.dim[i] += before[i] + after[i];
    array *b = array_new(m, a->dtype, s);
    for (int64_t k = 0; k < b->n; k++) {
        int64_t at[WEFT_MAX_RANK];
        bool inside = true;
        unravel(s, k, at);
        for (int i = 0; i < s.rank; i++) {
            at[i] -= before[i];
            inside &= at[i] >= 0 && at[i] < a->s.dim[i];
        }
        if (inside)
            array_copy(b, k, a, position(a->s, at));
        else if (b->f)
            b->f[k] = rounded(a->dtype, (real)value);
        else
            b->i[k] = wrap(a->dtype, (int64_t)value);
    }
    return b;
}

/* ---- operands ---- */

operand operand_of(matrix *m, array *h) { return (operand){array_upload(m, h), h}; }

static operand permuted(matrix *m, weft_dtype dtype, shape s, const int *order, generator gen) {
    shape base = s;
    for (int i = 0; i < s.rank; i++) base.dim[order[i]] = s.dim[i];
    operand b = operand_of(m, array_random(m, dtype, base, gen));
    return (operand){weft_permute(b.t, order), array_permute(m, b.h, order)};
}

/* Takes elements first, first + step, ... of a base that is `times` as large and has `more` additional
 * elements. */
static operand sliced(matrix *m, weft_dtype dtype, shape s, int64_t times, int64_t more, int64_t first,
                      int64_t step, generator gen) {
    shape base = s;
    int64_t start[WEFT_MAX_RANK], stop[WEFT_MAX_RANK], by[WEFT_MAX_RANK];
    for (int i = 0; i < s.rank; i++) {
        base.dim[i] = s.dim[i] * times + more;
        by[i] = step;
        start[i] = step > 0 ? first : base.dim[i] - 1 - first;
        stop[i] = step > 0 ? first + s.dim[i] * step : base.dim[i] - 1 - first + s.dim[i] * step;
        if (stop[i] < 0) stop[i] = INT64_MIN / 2; /* stops before the first element */
    }
    operand b = operand_of(m, array_random(m, dtype, base, gen));
    return (operand){weft_slice(b.t, start, stop, by), array_slice(m, b.h, start, by, s)};
}

static operand broadcast(matrix *m, weft_dtype dtype, shape s, bool row, generator gen) {
    shape base = s;
    for (int i = 0; i < s.rank; i++)
        if (row ? i == s.rank - 1 : i % 2 == 0) base.dim[i] = 1;
    operand b = operand_of(m, array_random(m, dtype, base, gen));
    return (operand){weft_expand(b.t, s.rank, s.dim), array_expand(m, b.h, s)};
}

static operand padded(matrix *m, weft_dtype dtype, shape s, generator gen) {
    shape base = s;
    int64_t before[WEFT_MAX_RANK], after[WEFT_MAX_RANK];
    for (int i = 0; i < s.rank; i++) {
        before[i] = s.dim[i] > 2;
        after[i] = s.dim[i] > 3;
        base.dim[i] = s.dim[i] - before[i] - after[i];
    }
    operand b = operand_of(m, array_random(m, dtype, base, gen));
    return (operand){weft_pad(b.t, before, after, 0), array_pad(m, b.h, before, after, 0)};
}

static operand reshaped(matrix *m, weft_dtype dtype, shape s, generator gen) {
    int64_t n = shape_count(s), rows = 1;
    for (int64_t d = 2; d * d <= n && rows == 1; d++)
        if (n % d == 0) rows = d;
    operand b = permuted(m, dtype, SHAPE(rows, n / rows), (int[]){1, 0}, gen);
    return (operand){weft_reshape(b.t, s.rank, s.dim), array_reshape(m, b.h, s)};
}

operand operand_new(matrix *m, weft_dtype dtype, shape s, view_kind view, generator gen) {
    int order[WEFT_MAX_RANK];
    for (int i = 0; i < s.rank; i++) order[i] = view == VIEW_PERMUTED ? (i + 2) % s.rank : i;
    if (view == VIEW_TRANSPOSED && s.rank > 1) {
        order[s.rank - 1] = s.rank - 2;
        order[s.rank - 2] = s.rank - 1;
    }
    switch (view) {
    case VIEW_TRANSPOSED:
    case VIEW_PERMUTED: return permuted(m, dtype, s, order, gen);
    case VIEW_OFFSET: return sliced(m, dtype, s, 1, 3, 1, 1, gen);
    case VIEW_STEPPED: return sliced(m, dtype, s, 2, 1, 1, 2, gen);
    case VIEW_FLIPPED: return sliced(m, dtype, s, 1, 1, 0, -1, gen);
    case VIEW_BROADCAST:
    case VIEW_ROW: return broadcast(m, dtype, s, view == VIEW_ROW, gen);
    case VIEW_PADDED: return padded(m, dtype, s, gen);
    case VIEW_RESHAPED: return reshaped(m, dtype, s, gen);
    default: return operand_of(m, array_random(m, dtype, s, gen));
    }
}
