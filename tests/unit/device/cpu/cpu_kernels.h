/* Helpers for tests of fused kernels on the CPU device: build kernels by hand, fill buffers, and evaluate the
 * kernel form directly, element by element, in f64 and i64. */
#ifndef WEFT_TESTS_CPU_KERNELS_H
#define WEFT_TESTS_CPU_KERNELS_H

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device/cpu/cpu.h"
#include "unit/view_at.h"

#define MAX_CODE 64

typedef struct built {
    weft_kernel kernel;
    weft_kernel_arg args[16];
    weft_view views[MAX_CODE];
    weft_instr code[MAX_CODE];
    void *data[16];     /* the device's buffers */
    void *expected[16]; /* results of the direct evaluation */
    double *scale[16];  /* sum of |terms| of each element, for the bounds of sums */
} built;

static inline void built_init(built *t, const char *name, int n_parallel, int n_reduce,
                              const int64_t *extent) {
    memset(t, 0, sizeof *t);
    t->kernel = (weft_kernel){.name = name, .path = "test", .n_parallel = n_parallel, .n_reduce = n_reduce};
    memcpy(t->kernel.extent, extent, (size_t)(n_parallel + n_reduce) * sizeof *extent);
    t->kernel.args = t->args;
    t->kernel.views = t->views;
    t->kernel.code = t->code;
}

static inline double read_value(weft_dtype d, const void *p, int64_t i, int64_t *integer) {
    *integer = 0;
    switch (d) {
    case WEFT_F32: return ((const float *)p)[i];
    case WEFT_F64: return ((const double *)p)[i];
    case WEFT_F16: return weft_f16_to_f32(((const uint16_t *)p)[i]);
    case WEFT_BF16: return weft_bf16_to_f32(((const uint16_t *)p)[i]);
    case WEFT_I8: *integer = ((const int8_t *)p)[i]; break;
    case WEFT_I16: *integer = ((const int16_t *)p)[i]; break;
    case WEFT_I32: *integer = ((const int32_t *)p)[i]; break;
    case WEFT_I64: *integer = ((const int64_t *)p)[i]; break;
    case WEFT_U8: *integer = ((const uint8_t *)p)[i]; break;
    case WEFT_U16: *integer = ((const uint16_t *)p)[i]; break;
    case WEFT_BOOL: *integer = ((const uint8_t *)p)[i] != 0; break;
    default: break;
    }
    return (double)*integer;
}

static inline void write_value(weft_dtype d, void *p, int64_t i, double f, int64_t n) {
    switch (d) {
    case WEFT_F32: ((float *)p)[i] = (float)f; break;
    case WEFT_F64: ((double *)p)[i] = f; break;
    case WEFT_F16: ((uint16_t *)p)[i] = weft_f32_to_f16((float)f); break;
    case WEFT_BF16: ((uint16_t *)p)[i] = weft_f32_to_bf16((float)f); break;
    case WEFT_I8: ((int8_t *)p)[i] = (int8_t)n; break;
    case WEFT_I16: ((int16_t *)p)[i] = (int16_t)n; break;
    case WEFT_I32: ((int32_t *)p)[i] = (int32_t)n; break;
    case WEFT_I64: ((int64_t *)p)[i] = n; break;
    case WEFT_U8: ((uint8_t *)p)[i] = (uint8_t)n; break;
    case WEFT_U16: ((uint16_t *)p)[i] = (uint16_t)n; break;
    case WEFT_BOOL: ((uint8_t *)p)[i] = n != 0; break;
    default: break;
    }
}

/* An argument of n elements: random in [-2, 2) or small integers; bool 0 or 1. */
static inline int add_arg(built *t, weft_dtype dtype, int64_t n, bool read, bool written, uint64_t seed) {
    int a = t->kernel.n_args++;
    t->args[a] = (weft_kernel_arg){(uint8_t)dtype, read, written, n};
    size_t bytes = ((size_t)n * weft_dtype_size(dtype) + 63) / 64 * 64 + 64;
    t->data[a] = aligned_alloc(64, bytes);
    t->expected[a] = aligned_alloc(64, bytes);
    t->scale[a] = calloc((size_t)n + 1, sizeof(double));
    for (int64_t i = 0; i < n; i++) {
        uint64_t r = weft__mix64(seed * 1000003u + (uint64_t)i);
        double f = (double)(int64_t)r * 0x1p-62;
        write_value(dtype, t->data[a], i, f, dtype == WEFT_BOOL ? (int64_t)(r & 1) : (int64_t)(r % 41) - 20);
    }
    memcpy(t->expected[a], t->data[a], (size_t)n * weft_dtype_size(dtype));
    return a;
}

static inline void built_free(built *t) {
    for (int i = 0; i < t->kernel.n_args; i++) free(t->data[i]), free(t->expected[i]), free(t->scale[i]);
}

static inline int add_view(built *t, const weft_view *v) {
    t->views[t->kernel.n_views] = *v;
    return t->kernel.n_views++;
}

/* A one-map view of the kernel's space from strides and an offset. */
static inline int add_strides(built *t, int64_t offset, const int64_t *stride) {
    weft_view v = {.count = 1};
    v.map[0].rank = t->kernel.n_parallel + t->kernel.n_reduce;
    v.map[0].offset = offset;
    for (int d = 0; d < v.map[0].rank; d++) {
        v.map[0].extent[d] = t->kernel.extent[d];
        v.map[0].hi[d] = t->kernel.extent[d] ? t->kernel.extent[d] : 1; /* ROW values have index 0 */
        v.map[0].stride[d] = stride[d];
    }
    return add_view(t, &v);
}

static inline int add_code(built *t, weft_instr c) {
    t->code[t->kernel.n_code] = c;
    return t->kernel.n_code++;
}

static inline int load(built *t, weft_level level, int arg, int view) {
    return add_code(t, (weft_instr){.kind = WEFT_INSTR_LOAD,
                                    .dtype = t->args[arg].dtype,
                                    .level = (uint8_t)level,
                                    .a = -1,
                                    .b = -1,
                                    .c = -1,
                                    .arg = arg,
                                    .view = view});
}

static inline int calc(built *t, weft_op op, weft_level level, weft_dtype dtype, int a, int b, int c) {
    return add_code(t, (weft_instr){.kind = WEFT_INSTR_CALC,
                                    .op = (uint8_t)op,
                                    .dtype = (uint8_t)dtype,
                                    .level = (uint8_t)level,
                                    .a = a,
                                    .b = b,
                                    .c = c,
                                    .arg = -1,
                                    .view = -1});
}

static inline int reduce(built *t, weft_op op, weft_dtype dtype, int a) {
    return add_code(t, (weft_instr){.kind = WEFT_INSTR_REDUCE,
                                    .op = (uint8_t)op,
                                    .dtype = (uint8_t)dtype,
                                    .level = WEFT_LEVEL_ROW,
                                    .a = a,
                                    .b = -1,
                                    .c = -1,
                                    .arg = -1,
                                    .view = -1});
}

/* Folds over the rows of a block. */
static inline int fold(built *t, weft_op op, weft_dtype dtype, int a) {
    const int made = reduce(t, op, dtype, a);
    t->code[made].kind = WEFT_INSTR_FOLD;
    t->code[made].level = (uint8_t)(t->code[a].level | WEFT_LEVEL_BLOCK);
    return made;
}

static inline int cast(built *t, weft_level level, weft_dtype dtype, int a) {
    return add_code(t, (weft_instr){.kind = WEFT_INSTR_CAST,
                                    .dtype = (uint8_t)dtype,
                                    .level = (uint8_t)level,
                                    .a = a,
                                    .b = -1,
                                    .c = -1,
                                    .arg = -1,
                                    .view = -1});
}

static inline int constant(built *t, weft_level level, weft_dtype dtype, double f, int64_t i) {
    return add_code(t, (weft_instr){.kind = WEFT_INSTR_CONST,
                                    .dtype = (uint8_t)dtype,
                                    .level = (uint8_t)level,
                                    .a = -1,
                                    .b = -1,
                                    .c = -1,
                                    .arg = -1,
                                    .view = -1,
                                    .imm_f = f,
                                    .imm_i = i});
}

/* INDEX, MASK, RANDOM (arg) and GATHER (arg, index value). */
static inline int source(built *t, weft_instr_kind kind, weft_level level, weft_dtype dtype, int arg,
                         int view, int a, int64_t pitch, int64_t bound) {
    return add_code(t, (weft_instr){.kind = (uint8_t)kind,
                                    .dtype = (uint8_t)dtype,
                                    .level = (uint8_t)level,
                                    .a = a,
                                    .b = -1,
                                    .c = -1,
                                    .arg = arg,
                                    .view = view,
                                    .imm_i = pitch,
                                    .bound = bound});
}

static inline int store(built *t, weft_level level, int arg, int view, int a) {
    return add_code(t, (weft_instr){.kind = WEFT_INSTR_STORE,
                                    .dtype = t->args[arg].dtype,
                                    .level = (uint8_t)level,
                                    .a = a,
                                    .b = -1,
                                    .c = -1,
                                    .arg = arg,
                                    .view = view});
}

/* ---- direct evaluation ---- */

typedef struct plain {
    double f;
    int64_t i;
    double size; /* sum of the magnitudes of a sum's terms */
} plain;

static inline int64_t wrap_integer(weft_dtype d, int64_t v) {
    switch (d) {
    case WEFT_I8: return (int8_t)v;
    case WEFT_I16: return (int16_t)v;
    case WEFT_I32: return (int32_t)v;
    case WEFT_U8: return (uint8_t)v;
    case WEFT_U16: return (uint16_t)v;
    case WEFT_BOOL: return v != 0;
    default: return v;
    }
}

static inline int64_t saturated(weft_dtype d, double f) {
    int64_t lo = INT64_MIN, hi = INT64_MAX;
    if (isnan(f)) return 0;
    if (d == WEFT_I32) lo = INT32_MIN, hi = INT32_MAX;
    if (d == WEFT_U8) lo = 0, hi = 255;
    if (d == WEFT_I8) lo = -128, hi = 127;
    if (d == WEFT_I16) lo = INT16_MIN, hi = INT16_MAX;
    if (d == WEFT_U16) lo = 0, hi = UINT16_MAX;
    if (d == WEFT_BOOL) return f != 0;
    return f >= (double)hi ? hi : f <= (double)lo ? lo : (int64_t)f;
}

/* The ops that these tests use. */
static inline plain plain_op(weft_op op, weft_dtype d, bool floating, plain a, plain b, plain c) {
    plain r = {0, 0, fabs(a.f) + fabs(b.f)};
    switch (op) {
    case WEFT_OP_ADD:
    case WEFT_OP_SUM:
        r.f = a.f + b.f, r.i = (int64_t)((uint64_t)a.i + (uint64_t)b.i), r.size = a.size + b.size;
        break;
    case WEFT_OP_SUB: r.f = a.f - b.f, r.i = a.i - b.i, r.size = a.size + b.size; break;
    case WEFT_OP_MUL:
    case WEFT_OP_PROD:
        r.f = a.f * b.f, r.i = (int64_t)((uint64_t)a.i * (uint64_t)b.i), r.size = a.size * b.size;
        break;
    case WEFT_OP_DIV:
        r.f = a.f / b.f, r.i = b.i ? a.i / b.i : 0, r.size = floating ? a.size / fabs(b.f) : 0;
        break;
    case WEFT_OP_MAXIMUM:
    case WEFT_OP_MAX:
        r.f = isnan(a.f) ? a.f : isnan(b.f) ? b.f : a.f > b.f ? a.f : b.f, r.i = a.i > b.i ? a.i : b.i;
        r.size = a.size > b.size ? a.size : b.size;
        break;
    case WEFT_OP_MINIMUM:
    case WEFT_OP_MIN:
        r.f = isnan(a.f) ? a.f : isnan(b.f) ? b.f : a.f < b.f ? a.f : b.f, r.i = a.i < b.i ? a.i : b.i;
        r.size = a.size > b.size ? a.size : b.size;
        break;
    case WEFT_OP_EXP: r.f = exp(a.f), r.size = r.f * (1 + a.size); break;
    case WEFT_OP_TANH: r.f = tanh(a.f), r.size = fabs(r.f) + a.size; break;
    case WEFT_OP_NEG: r.f = -a.f, r.i = -a.i, r.size = a.size; break;
    case WEFT_OP_NOT: r.i = d == WEFT_BOOL ? !a.i : ~a.i; break;
    case WEFT_OP_SHL: r.i = (int64_t)((uint64_t)a.i << ((uint64_t)b.i & (8 * weft_dtype_size(d) - 1))); break;
    case WEFT_OP_LT: r.i = floating ? a.f < b.f : a.i < b.i; break;
    case WEFT_OP_GE: r.i = floating ? a.f >= b.f : a.i >= b.i; break;
    case WEFT_OP_WHERE: r = a.i ? b : c; break;
    default: abort();
    }
    if (!weft_dtype_is_float(d))
        r.i = wrap_integer(d, r.i), r.f = (double)r.i, r.size = fabs(r.f);
    else if (r.size < fabs(r.f))
        r.size = fabs(r.f);
    return r;
}

static inline plain plain_instr(const built *t, int v, const int64_t *index, plain *const *values, int64_t p,
                                int64_t r) {
    const weft_instr *c = &t->code[v];
    plain o[3] = {{0, 0, 0}, {0, 0, 0}, {0, 0, 0}}, x = {0, 0, 0};
    const int operand[3] = {c->a, c->b, c->c};
    const int64_t length = weft__kernel_row_length(&t->kernel);
    for (int i = 0; i < 3; i++)
        if (operand[i] >= 0) {
            bool full = t->code[operand[i]].level == WEFT_LEVEL_FULL && t->kernel.n_reduce;
            o[i] = values[operand[i]][full ? p * length + r : p];
        }
    const int64_t at = c->view >= 0 ? view_at(&t->views[c->view], index) : -1;
    const weft_dtype d = (weft_dtype)c->dtype;
    switch (c->kind) {
    case WEFT_INSTR_CONST: x.f = weft_dtype_is_float(d) ? c->imm_f : (double)c->imm_i, x.i = c->imm_i; break;
    case WEFT_INSTR_INDEX: x.i = at < 0 ? 0 : at, x.f = (double)x.i; break;
    case WEFT_INSTR_MASK: x.i = at >= 0, x.f = (double)x.i; break;
    case WEFT_INSTR_LOAD:
        if (at >= 0) x.f = read_value(d, t->expected[c->arg], at, &x.i);
        break;
    case WEFT_INSTR_GATHER:
        if (at >= 0 && o[0].i >= 0 && o[0].i < c->bound)
            x.f = read_value(d, t->expected[c->arg], at + o[0].i * c->imm_i, &x.i);
        break;
    case WEFT_INSTR_RANDOM: {
        const uint32_t *k = t->expected[c->arg];
        uint32_t out[4];
        uint64_t e = ((uint64_t)k[4] | (uint64_t)k[5] << 32) + (uint64_t)at;
        const uint32_t counter[4] = {(uint32_t)(e / 4), (uint32_t)(e / 4 >> 32), k[2], k[3]};
        weft__philox(counter, k, out);
        x.i = (int32_t)out[e % 4], x.f = (double)x.i;
        break;
    }
    case WEFT_INSTR_CALC:
        return plain_op((weft_op)c->op, d,
                        weft_dtype_is_float((weft_dtype)t->code[c->b >= 0 ? c->b : c->a].dtype), o[0], o[1],
                        o[2]);
    case WEFT_INSTR_CAST: {
        bool from_float = weft_dtype_is_float((weft_dtype)t->code[c->a].dtype);
        x = o[0];
        if (!weft_dtype_is_float(d))
            x.i = from_float ? saturated(d, x.f) : wrap_integer(d, x.i), x.f = (double)x.i;
        if (d == WEFT_F16) x.f = (double)weft_f16_to_f32(weft_f32_to_f16((float)x.f));
        if (d == WEFT_BF16) x.f = (double)weft_bf16_to_f32(weft_f32_to_bf16((float)x.f));
        return x;
    }
    default: break;
    }
    x.size = fabs(x.f);
    return x;
}

static inline plain plain_reduce(const weft_instr *c, const plain *a, int64_t n, int64_t step) {
    const weft_dtype d = (weft_dtype)c->dtype;
    plain x = {0, 0, 0};
    if (c->op == WEFT_OP_PROD) x = (plain){1, 1, 1};
    if (c->op == WEFT_OP_MAX && n == 0)
        x = (plain){-INFINITY, d == WEFT_U8 || d == WEFT_BOOL ? 0 : d == WEFT_I32 ? INT32_MIN : INT64_MIN, 0};
    if (c->op == WEFT_OP_MAX || c->op == WEFT_OP_MIN) x = n ? a[0] : x;
    for (int64_t i = 0; i < n; i++) x = plain_op((weft_op)c->op, d, true, x, a[i * step], x);
    return x;
}

/* The number of rows of block p. */
static inline int64_t rows_of_block(const weft_kernel *k, int64_t p) {
    const int64_t rows = weft__kernel_block_rows(k), blocks = weft__kernel_rows(k) / rows;
    return k->last_rows && p == blocks - 1 ? k->last_rows : rows;
}

static inline plain plain_value(const built *t, int v, const int64_t *index, plain *const *values, int64_t p,
                                int64_t r) {
    const weft_instr *c = &t->code[v];
    const int64_t length = weft__kernel_row_length(&t->kernel), rows = weft__kernel_block_rows(&t->kernel);
    if (c->kind == WEFT_INSTR_REDUCE) return plain_reduce(c, values[c->a] + p * length, length, 1);
    if (c->kind != WEFT_INSTR_FOLD) return plain_instr(t, v, index, values, p, r);
    const int64_t step = c->level == WEFT_LEVEL_COLUMN ? length : 1;
    return plain_reduce(c, values[c->a] + p * rows * step + r, rows_of_block(&t->kernel, p), step);
}

/* Evaluates the kernel on expected[]. The outermost loop is over instructions, so every store comes after all
 * loads. For folded values p counts blocks. */
static inline void evaluate(built *t) {
    const weft_kernel *k = &t->kernel;
    const int64_t rows = weft__kernel_rows(k), length = weft__kernel_row_length(k);
    const int rank = k->n_parallel + k->n_reduce;
    plain *values[MAX_CODE];
    for (int pass = 0; pass < 2; pass++)
        for (int v = 0; v < k->n_code; v++) {
            const weft_instr *c = &k->code[v];
            const bool full = weft__level_inner(c->level) && k->n_reduce;
            const int64_t at_once = weft__level_folded(c->level) ? weft__kernel_block_rows(k) : 1;
            if ((c->kind == WEFT_INSTR_STORE) != (pass == 1)) continue;
            if (pass == 0) values[v] = malloc(sizeof(plain) * (size_t)(rows * (full ? length : 1) + 1));
            for (int64_t p = 0; p < rows / at_once; p++)
                for (int64_t r = 0; r < (full ? length : 1); r++) {
                    int64_t index[WEFT_VIEW_RANK] = {0}, rest = p * at_once;
                    for (int d = k->n_parallel - 1; d >= 0; d--)
                        index[d] = rest % k->extent[d], rest /= k->extent[d];
                    rest = r;
                    for (int d = rank - 1; full && d >= k->n_parallel; d--)
                        index[d] = rest % k->extent[d], rest /= k->extent[d];
                    const int64_t at = full ? p * length + r : p;
                    const int64_t block_rows = weft__kernel_block_rows(k);
                    if (at_once == 1 && p % block_rows >= rows_of_block(k, p / block_rows)) continue;
                    if (pass == 0) {
                        values[v][at] = plain_value(t, v, index, values, p, r);
                        continue;
                    }
                    const int64_t to = view_at(&t->views[c->view], index);
                    const bool from_full = weft__level_inner(t->code[c->a].level) && k->n_reduce;
                    const plain x = values[c->a][from_full ? at : p];
                    if (to < 0) continue;
                    write_value((weft_dtype)t->args[c->arg].dtype, t->expected[c->arg], to, x.f, x.i);
                    t->scale[c->arg][to] = x.size;
                }
        }
    for (int v = 0; v < k->n_code; v++)
        if (k->code[v].kind != WEFT_INSTR_STORE) free(values[v]);
}

/* Largest |got - expected| / (factor * unit roundoff * magnitude of the element) over all arguments. Integers
 * must be equal (else 1e30). */
static inline double worst(const built *t, double factor) {
    double most = 0;
    const bool show = getenv("WEFT_SHOW_WORST") != NULL;
    for (int a = 0; a < t->kernel.n_args; a++) {
        const weft_dtype d = (weft_dtype)t->args[a].dtype;
        const double u = d == WEFT_F64    ? 0x1p-53
                         : d == WEFT_F16  ? 0x1p-11
                         : d == WEFT_BF16 ? 0x1p-8
                                          : 0x1p-24;
        for (int64_t i = 0; i < t->args[a].elements; i++) {
            int64_t gi, wi;
            const double g = read_value(d, t->data[a], i, &gi), w = read_value(d, t->expected[a], i, &wi);
            if (!weft_dtype_is_float(d)) {
                if (gi != wi && show)
                    printf("arg %d element %ld: got %ld, want %ld\n", a, (long)i, (long)gi, (long)wi);
                if (gi != wi) return 1e30;
                continue;
            }
            if (g == w || (isnan(g) && isnan(w))) continue;
            double size = t->scale[a][i] > fabs(w) ? t->scale[a][i] : fabs(w);
            double e = fabs(g - w) / (factor * u * size + 1e-45);
            if (!(e <= most)) {
                most = isnan(e) ? 1e30 : e;
                if (show && most > 1) printf("arg %d element %ld: got %a, want %a\n", a, (long)i, g, w);
            }
        }
    }
    return most;
}

#endif
