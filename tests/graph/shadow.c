/* The shadow interpreter's walk over a recorded graph, and all index computations: movement, reductions over
 * dimensions, gather, scatter, matmul. shadow_rows.c computes the numbers. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "autodiff/autodiff.h"
#include "graph/shadow_inside.h"
#include "ops/ops.h"

typedef struct entry {
    const weft_tensor *t;
    shadow_value value;
} entry;

struct shadow {
    entry **entries; /* hash table */
    size_t count, capacity;
};

shadow *shadow_new(void) {
    shadow *s = calloc(1, sizeof *s);
    s->capacity = 4096;
    s->entries = calloc(s->capacity, sizeof *s->entries);
    return s;
}

void shadow_free(shadow *s) {
    for (size_t i = 0; s && i < s->capacity; i++) {
        if (!s->entries[i]) continue;
        free(s->entries[i]->value.f);
        free(s->entries[i]->value.i);
        free(s->entries[i]->value.e);
        free(s->entries[i]);
    }
    if (s) free(s->entries);
    free(s);
}

static entry **slot_of(shadow *s, const weft_tensor *t) {
    size_t at = (size_t)weft__mix64((uint64_t)(uintptr_t)t) & (s->capacity - 1);
    while (s->entries[at] && s->entries[at]->t != t) at = (at + 1) & (s->capacity - 1);
    return &s->entries[at];
}

static void grow(shadow *s) {
    entry **old = s->entries;
    size_t capacity = s->capacity;
    s->capacity *= 2;
    s->entries = calloc(s->capacity, sizeof *s->entries);
    for (size_t i = 0; i < capacity; i++)
        if (old[i]) *slot_of(s, old[i]->t) = old[i];
    free(old);
}

static shadow_value *make(shadow *s, const weft_tensor *t) {
    if (2 * (++s->count) > s->capacity) grow(s);
    entry *e = calloc(1, sizeof *e);
    size_t n = (size_t)t->numel + 1;
    e->t = t;
    e->value.n = t->numel;
    if (weft_dtype_is_float((weft_dtype)t->dtype))
        e->value.f = calloc(n, sizeof(double));
    else
        e->value.i = calloc(n, sizeof(int64_t));
    e->value.e = calloc(n, sizeof(double));
    *slot_of(s, t) = e;
    return &e->value;
}

static number get(const shadow_value *v, int64_t k) {
    return (number){v->f ? v->f[k] : 0, v->e[k], v->i ? v->i[k] : 0};
}

static void put(shadow_value *v, int64_t k, number x) {
    if (v->f) v->f[k] = x.f;
    if (v->i) v->i[k] = x.i;
    v->e[k] = x.e;
}

static void split(int64_t k, int rank, const int64_t *shape, int64_t *index) {
    for (int d = rank - 1; d >= 0; d--) {
        index[d] = k % shape[d];
        k /= shape[d];
    }
}

static int64_t join(int rank, const int64_t *shape, const int64_t *index) {
    int64_t k = 0;
    for (int d = 0; d < rank; d++) k = k * shape[d] + index[d];
    return k;
}

/* ---- leaves ---- */

static number load(weft_dtype dtype, const char *data, int64_t k) {
    const char *at = data + (size_t)k * weft_dtype_size(dtype);
    number r = {0, 0, 0};
    float f32;
    uint16_t half;
    switch (dtype) {
    case WEFT_F32:
        memcpy(&f32, at, 4);
        r.f = (double)f32;
        break;
    case WEFT_F64: memcpy(&r.f, at, 8); break;
    case WEFT_F16:
        memcpy(&half, at, 2);
        r.f = (double)weft_f16_to_f32(half);
        break;
    case WEFT_BF16:
        memcpy(&half, at, 2);
        r.f = (double)weft_bf16_to_f32(half);
        break;
    default:
        memcpy(&r.i, at, weft_dtype_size(dtype));
        r.i = shadow_wrap(dtype, r.i);
        break;
    }
    return r;
}

static bool leaf(const weft_tensor *t, shadow_value *out) {
    weft_dtype dtype = (weft_dtype)t->dtype;
    if (t->leaf == WEFT_LEAF_SCALAR) {
        number x = {t->value.number.f, 0, shadow_wrap(dtype, t->value.number.i)};
        if (out->f && dtype == WEFT_F32) x.f = (double)(float)x.f;
        put(out, 0, x);
        return true;
    }
    if (t->leaf != WEFT_LEAF_STORAGE) return t->leaf == WEFT_LEAF_RANDOM;
    size_t bytes = (size_t)t->numel * weft_dtype_size(dtype);
    void *values = malloc(bytes + 1);
    bool read = values && weft_read((weft_tensor *)(uintptr_t)t, values, bytes) == WEFT_OK;
    for (int64_t k = 0; read && k < t->numel; k++) put(out, k, load(dtype, values, k));
    free(values);
    return read;
}

static void constant(const weft_tensor *t, shadow_value *out) {
    const weft_attr_const *attr = t->attr;
    weft_dtype dtype = (weft_dtype)t->dtype;
    number x = shadow_cast(WEFT_F64, out->f ? dtype : WEFT_I64, (number){attr->f, 0, 0});
    x.i = shadow_wrap(dtype, attr->i);
    if (isinf(attr->f)) x = (number){attr->f, 0, attr->i};
    for (int64_t k = 0; k < t->numel; k++) put(out, k, x);
}

static void random_bits(const weft_tensor *t, shadow_value *out) {
    const weft_attr_random *key = &t->in[0]->value.random;
    for (int64_t k = 0; k < t->numel; k++)
        out->i[k] = (int32_t)weft__random_u32(t->ctx->random.seed, key->stream, t->ctx->random.step,
                                              key->first + (uint64_t)k);
}

/* ---- movement ---- */

/* The element of the input that element k of t reads; -1: padding. */
static int64_t source(const weft_tensor *t, int64_t k) {
    const weft_tensor *x = t->in[0];
    int64_t at[WEFT_MAX_RANK], from[WEFT_MAX_RANK];
    if (t->op == WEFT_OP_RESHAPE || t->op == WEFT_OP_DETACH) return k;
    split(k, t->rank, t->shape, at);
    for (int d = 0; d < t->rank; d++) {
        if (t->op == WEFT_OP_PERMUTE) {
            from[((const weft_attr_permutation *)t->attr)->order[d]] = at[d];
        } else if (t->op == WEFT_OP_EXPAND) {
            from[d] = x->shape[d] == 1 ? 0 : at[d];
        } else if (t->op == WEFT_OP_PAD) {
            from[d] = at[d] - ((const weft_attr_pad *)t->attr)->lo[d];
            if (from[d] < 0 || from[d] >= x->shape[d]) return -1;
        } else {
            const weft_attr_slice *attr = t->attr;
            from[d] = attr->start[d] + at[d] * attr->step[d];
        }
    }
    return join(x->rank, x->shape, from);
}

static void movement(const weft_tensor *t, const shadow_value *x, shadow_value *out) {
    for (int64_t k = 0; k < t->numel; k++) {
        int64_t from = source(t, k);
        if (from >= 0) put(out, k, get(x, from));
    }
}

/* ---- ops that read a list of elements for each result ---- */

static void reduce(const weft_tensor *t, const shadow_value *x, shadow_value *out) {
    const weft_tensor *in = t->in[0];
    uint32_t mask = ((const weft_attr_axes *)t->attr)->mask;
    int64_t *fill = calloc((size_t)t->numel + 1, sizeof *fill), length = t->numel ? in->numel / t->numel : 0;
    number *rows = calloc((size_t)in->numel + 1, sizeof *rows);
    for (int64_t k = 0; k < in->numel; k++) {
        int64_t at[WEFT_MAX_RANK];
        split(k, in->rank, in->shape, at);
        for (int d = 0; d < in->rank; d++)
            if (mask >> d & 1u) at[d] = 0;
        int64_t row = join(t->rank, t->shape, at);
        rows[row * length + fill[row]++] = get(x, k);
    }
    for (int64_t r = 0; r < t->numel; r++)
        put(out, r, shadow_reduce(t->op, (weft_dtype)t->dtype, rows + r * length, length));
    free(rows);
    free(fill);
}

static void matmul(const weft_tensor *t, const shadow_value *a, const shadow_value *b, shadow_value *out) {
    int rank = t->rank;
    int64_t m = t->shape[rank - 2], n = t->shape[rank - 1], k = t->in[0]->shape[rank - 1];
    int64_t size = m * n, batches = size > 0 ? t->numel / size : 0;
    number *row = calloc((size_t)k + 1, sizeof *row), *column = calloc((size_t)k + 1, sizeof *column);
    for (int64_t z = 0; z < batches; z++)
        for (int64_t i = 0; i < m; i++)
            for (int64_t j = 0; j < n; j++) {
                for (int64_t l = 0; l < k; l++) {
                    row[l] = get(a, (z * m + i) * k + l);
                    column[l] = get(b, (z * k + l) * n + j);
                }
                put(out, (z * m + i) * n + j, shadow_dot((weft_dtype)t->dtype, row, column, k));
            }
    free(row);
    free(column);
}

static int64_t extent_of(const int64_t *shape, int from, int to) {
    int64_t n = 1;
    for (int d = from; d < to; d++) n *= shape[d];
    return n;
}

static void gather(const weft_tensor *t, const shadow_value *x, const shadow_value *index,
                   shadow_value *out) {
    int axis = (int)((const weft_attr_axis *)t->attr)->axis;
    const weft_tensor *table = t->in[0];
    int64_t extent = table->shape[axis], inner = extent_of(table->shape, axis + 1, table->rank),
            count = index->n;
    for (int64_t k = 0; k < t->numel; k++) {
        int64_t b = k % inner, i = k / inner % count, a = k / inner / count, at = index->i[i];
        number v = at >= 0 && at < extent ? get(x, (a * extent + at) * inner + b) : (number){0, 0, 0};
        if (index->e[i] > 0) v.e = (double)INFINITY;
        put(out, k, v);
    }
}

/* Collects the terms that are added to element k. Returns their number. */
static int64_t scattered(const weft_tensor *t, const shadow_value *index, const shadow_value *x, int64_t k,
                         number *terms) {
    int axis = (int)((const weft_attr_axis *)t->attr)->axis;
    int64_t extent = t->shape[axis], inner = extent_of(t->shape, axis + 1, t->rank);
    int64_t b = k % inner, row = k / inner % extent, a = k / inner / extent, n = 0;
    for (int64_t i = 0; i < index->n; i++)
        if (index->i[i] == row) terms[n++] = get(x, (a * index->n + i) * inner + b);
    return n;
}

static void scatter(const weft_tensor *t, const shadow_value *index, const shadow_value *x,
                    shadow_value *out) {
    number *terms = calloc((size_t)index->n + 1, sizeof *terms);
    for (int64_t k = 0; k < t->numel; k++)
        put(out, k, shadow_chain((weft_dtype)t->dtype, terms, scattered(t, index, x, k, terms)));
    free(terms);
}

/* If a scatter-add is added to another value, a device may start the sum from that value. Widens the error
 * bounds to cover this order. */
static void based_on(shadow *s, const weft_tensor *t, int k, shadow_value *out) {
    const weft_tensor *part = t->in[k];
    const shadow_value *base = shadow_of(s, t->in[1 - k]), *index = shadow_of(s, part->in[0]),
                       *x = shadow_of(s, part->in[1]);
    number *terms = calloc((size_t)index->n + 1, sizeof *terms);
    for (int64_t i = 0; i < t->numel; i++) {
        terms[0] = get(base, i);
        number sum = shadow_chain((weft_dtype)t->dtype, terms, 1 + scattered(part, index, x, i, terms + 1));
        out->e[i] = fmax(out->e[i], sum.e);
    }
    free(terms);
}

static void update(const weft_tensor *t, const shadow_value *x, const shadow_value *v,
                   const shadow_value *offset, shadow_value *out) {
    const weft_attr_axis *attr = t->attr;
    int64_t inner = extent_of(t->shape, (int)attr->axis + 1, t->rank), total = t->shape[attr->axis];
    for (int64_t k = 0; k < t->numel; k++) {
        int64_t b = k % inner, row = k / inner % total - offset->i[0], a = k / inner / total;
        bool inside = row >= 0 && row < attr->extent;
        put(out, k, inside ? get(v, (a * attr->extent + row) * inner + b) : get(x, k));
    }
}

/* ---- the walk ---- */

static void elementwise(const weft_tensor *t, const shadow_value *const *in, shadow_value *out) {
    weft_dtype dtype = (weft_dtype)t->in[t->op == WEFT_OP_WHERE ? 1 : 0]->dtype;
    number none = {0, 0, 0};
    for (int64_t k = 0; k < t->numel; k++) {
        number a = get(in[0], k), b = t->n_in > 1 ? get(in[1], k) : none,
               c = t->n_in > 2 ? get(in[2], k) : none;
        put(out, k, shadow_row(t->op, dtype, a, b, c));
    }
}

static bool compute(const weft_tensor *t, const shadow_value *const *in, shadow_value *out) {
    switch (t->op) {
    case WEFT_OP_CONST: constant(t, out); return true;
    case WEFT_OP_IOTA:
        for (int64_t k = 0; k < t->numel; k++) out->i[k] = k;
        return true;
    case WEFT_OP_RANDOM: random_bits(t, out); return true;
    case WEFT_OP_RESHAPE:
    case WEFT_OP_PERMUTE:
    case WEFT_OP_EXPAND:
    case WEFT_OP_PAD:
    case WEFT_OP_SLICE:
    case WEFT_OP_DETACH: movement(t, in[0], out); return true;
    case WEFT_OP_SUM:
    case WEFT_OP_MAX:
    case WEFT_OP_MIN:
    case WEFT_OP_PROD: reduce(t, in[0], out); return true;
    case WEFT_OP_CAST:
        for (int64_t k = 0; k < t->numel; k++)
            put(out, k, shadow_cast((weft_dtype)t->in[0]->dtype, (weft_dtype)t->dtype, get(in[0], k)));
        return true;
    case WEFT_OP_MATMUL: matmul(t, in[0], in[1], out); return true;
    case WEFT_OP_GATHER: gather(t, in[0], in[1], out); return true;
    case WEFT_OP_SCATTER_ADD: scatter(t, in[0], in[1], out); return true;
    case WEFT_OP_UPDATE: update(t, in[0], in[1], in[2], out); return true;
    default: break;
    }
    if (t->op > WEFT_OP_WHERE) return false;
    elementwise(t, in, out);
    return true;
}

/* May fusion change the last bits? It may for float sums, which are blocked by the layout of their kernel,
 * and for f16 and bf16, which are rounded only where they are stored. */
static bool is_loose(const weft_tensor *t, const shadow_value *const *in) {
    bool half = t->dtype == WEFT_F16 || t->dtype == WEFT_BF16,
         sums = t->op == WEFT_OP_SUM || t->op == WEFT_OP_PROD;
    for (int i = 0; i < t->n_in; i++)
        if (in[i]->loose) return true;
    return !t->leaf && (half || (sums && weft_dtype_is_float((weft_dtype)t->dtype)));
}

/* An output of a composite, computed by its expansion. */
static const shadow_value *expansion(shadow *s, weft_tensor *t) {
    weft_tensor *out[16] = {NULL};
    if (weft__composite_expand(t->where, t->in[0], out) != WEFT_OK) return NULL;
    const shadow_value *v = shadow_of(s, out[((const weft_attr_output *)t->attr)->index]);
    if (!v) return NULL;
    shadow_value *own = make(s, t);
    for (int64_t k = 0; k < t->numel; k++) put(own, k, get(v, k));
    own->loose = true; /* a device may compute the composite in its own way, fused or not */
    return own;
}

const shadow_value *shadow_of(shadow *s, weft_tensor *t) {
    const shadow_value *in[3] = {NULL};
    entry *known = *slot_of(s, t);
    if (known) return &known->value;
    if (t->error || t->n_in > 3) {
        printf("shadow: %s: %s\n", weft__op_name(t->op), t->error ? t->error->text : "too many operands");
        return NULL;
    }
    if (t->op == WEFT_OP_OUTPUT) return expansion(s, t);
    for (int i = 0; i < t->n_in; i++)
        if (!(in[i] = shadow_of(s, t->in[i]))) return NULL;
    shadow_value *out = make(s, t);
    out->loose = is_loose(t, in);
    if (!(t->leaf ? leaf(t, out) : compute(t, in, out))) {
        printf("shadow: %s is not known\n", weft__op_name(t->op));
        return NULL;
    }
    for (int k = 0; t->op == WEFT_OP_ADD && k < 2; k++)
        if (t->in[k]->op == WEFT_OP_SCATTER_ADD) based_on(s, t, k, out);
    return out;
}
