/* src/device/gpu: update, attention, scans and packed matrices, on an OpenCL device. Compared with plain
 * loops in f64, which are the interpreter's but for packed matrices. Each runs twice with equal bits, between
 * guarded buffers. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/cpu/gemm/packed.h"
#include "device/gpu/heavy/heavy.h"
#include "gpu.h"
#include "unit/cpu_work.h"
#include "gpu_heavy.h"

/* ---- update ---- */

static void check_update(weft_dtype dt, bool in_place, const int64_t *size, int32_t offset) {
    const int64_t outer = size[0], total = size[1], extent = size[2], inner = size[3];
    weft_heavy h = {.kind = WEFT_HEAVY_UPDATE, .path = "cache"};
    h.as.update = (weft_heavy_update){.dtype = (uint8_t)dt,
                                      .in_place = in_place,
                                      .outer = outer,
                                      .total = total,
                                      .extent = extent,
                                      .inner = inner};
    const size_t each = weft_dtype_size(dt), whole = (size_t)(outer * total * inner) * each,
                 part = (size_t)(outer * extent * inner) * each;
    void *input = random_values(dt, outer * total * inner, 3),
         *more = random_values(dt, outer * extent * inner, 4);
    operands o = {.n = 4,
                  .data = {input, more, &offset, in_place ? input : calloc(whole + 1, 1)},
                  .bytes = {whole, part, sizeof offset, whole}};
    operands want = o;
    want.data[0] = copy_of(input, whole);
    want.data[3] = in_place ? want.data[0] : calloc(whole + 1, 1);
    const weft_fault fault = run_twice(&h, &o), expected = run_on(interp, &h, &want);
    check_fault(&fault, &expected);
    assert_memory_equal(o.data[3], want.data[3], whole);
    if (!in_place) free(o.data[3]), free(want.data[3]);
    free(input), free(more), free(want.data[0]);
}

static void test_update(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_I64, WEFT_BOOL};
    static const int64_t sizes[][4] = {{3, 7, 2, 5}, {2, 300, 33, 65}, {12, 64, 1, 64},
                                       {1, 9, 9, 1}, {1, 9, 3, 7},     {2, 4, 1, 300}};
    if (!gpu) return skip();
    aim(64);
    for (int d = 0; d < COUNT(dtypes); d++)
        for (int s = 0; s < COUNT(sizes); s++) {
            const int32_t last = (int32_t)(sizes[s][1] - sizes[s][2]), offsets[] = {0, last, last + 1, -1};
            for (int k = 0; k < 8; k++) check_update(dtypes[d], k & 1, sizes[s], offsets[k / 2]);
        }
}

/* ---- attention ---- */

/* Operands of attention, as in device.h. */
enum { Q, K, V, KEY, OUT, LSE, DOUT, DQ, DK, DV };

typedef struct attention_case {
    int64_t batch, heads, t_q, t_k, d;
    bool causal, packed; /* q, k, v and their gradients in one tensor: (batch, t, 3, heads, d) */
    double dropout;
    int32_t position; /* position of a cache plus 1; 0: no cache */
} attention_case;

static void contiguous(int64_t *stride, int64_t heads, int64_t t, int64_t width) {
    stride[0] = heads * t * width, stride[1] = t * width, stride[2] = width;
}

static weft_heavy_attention attention_of(weft_dtype dt, const attention_case *c) {
    weft_heavy_attention a = {.dtype = (uint8_t)dt,
                              .causal = c->causal,
                              .cached = c->position != 0,
                              .scale = 1 / sqrt((double)c->d),
                              .dropout = c->dropout,
                              .batch = c->batch,
                              .heads = c->heads,
                              .t_q = c->t_q,
                              .t_k = c->t_k,
                              .d = c->d};
    int64_t *all[] = {a.q, a.k, a.v, a.out, a.dout, a.dq, a.dk, a.dv};
    for (int i = 0; i < COUNT(all); i++)
        contiguous(all[i], c->heads, i == 1 || i == 2 || i > 5 ? c->t_k : c->t_q, c->d);
    for (int i = 0; c->packed && i < COUNT(all); i++) {
        const int64_t columns = (i == 3 || i == 4 ? 1 : 3) * c->heads * c->d;
        all[i][0] = c->t_q * columns, all[i][1] = c->d, all[i][2] = columns;
    }
    return a;
}

/* Tensors of a dtype, with the same values for each dtype. Tensors that are written are filled with a
 * pattern. */
static operands attention_operands(weft_dtype dt, weft_dtype like, const attention_case *c) {
    const int64_t nq = c->batch * c->heads * c->t_q * c->d, nk = c->batch * c->heads * c->t_k * c->d;
    const int64_t rows = c->batch * c->heads * c->t_q, n[] = {nq, nk, nk, 0, nq, rows, nq, nq, nk, nk};
    const weft_dtype lse = dt == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    operands o = {.n = COUNT(n)};
    for (int i = 0; i < COUNT(n); i++) {
        const bool three = c->packed && (i < KEY || i > DOUT), first = i == Q || i == DQ;
        const size_t each = weft_dtype_size(i == LSE ? lse : dt);
        if (i == KEY) {
            static const int32_t key[8] = {0x12345678, -77, 5, 0, -2, 3, 0, 0}; /* begins past 2^32 */
            const int32_t position = c->position - 1;
            o.bytes[i] = sizeof key;
            o.data[i] = copy_of(key, sizeof key);
            if (c->position) memcpy(o.data[i], &position, sizeof position);
        } else if (three && !first) {
            const int base = i < KEY ? Q : DQ;
            o.data[i] = o.data[base], o.bytes[i] = o.bytes[base];
            o.offset[i] = (size_t)((i - base) * c->heads * c->d) * each;
        } else {
            const int64_t count = three ? 3 * n[i] : n[i];
            void *values = random_values(like, count, (uint64_t)i + 1);
            o.bytes[i] = (size_t)count * each;
            o.data[i] = malloc(o.bytes[i] + 1);
            memset(o.data[i], 0x3c, o.bytes[i]);
            for (int64_t e = 0; (i < KEY || i == DOUT) && e < count; e++)
                set_value(dt, o.data[i], e, value(like, values, e));
            free(values);
        }
    }
    return o;
}

static void check_attention(weft_dtype dt, const attention_case *c) {
    static const char *const names[] = {"", "", "", "", "out", "lse", "", "dq", "dk", "dv"};
    const double u = dt == WEFT_F64 ? 0x1p-53 : 0x1p-24, root = sqrt((double)c->d),
                 stored = dt == WEFT_F16    ? 0x1p-11
                          : dt == WEFT_BF16 ? 0x1p-8
                                            : 0;
    const double slack = 2 * root + 2 * log2((double)c->t_k) + 8 + (2 * log2((double)c->d) + 4) * root;
    weft_heavy h = {.kind = WEFT_HEAVY_ATTENTION, .as.attention = attention_of(dt, c)};
    weft_heavy reference = {.kind = WEFT_HEAVY_ATTENTION, .as.attention = attention_of(WEFT_F64, c)};
    operands o = attention_operands(dt, dt, c), want = attention_operands(WEFT_F64, dt, c);
    for (int back = 0; back < (c->position ? 1 : 2); back++) {
        h.as.attention.backward = reference.as.attention.backward = back;
        o.n = want.n = back ? OPERANDS_MAX : DOUT;
        run_twice(&h, &o);
        run_on(interp, &reference, &want);
        for (int i = back ? DQ : OUT; i < o.n; i++)
            near(names[i], i == LSE && dt != WEFT_F64 ? WEFT_F32 : dt, o.data[i], want.data[i], o.bytes[i],
                 (back ? 4 : 1) * (slack * u + (i == LSE ? 0 : 2 * stored)));
    }
    o.n = want.n = OPERANDS_MAX;
    free_operands(&o), free_operands(&want);
}

static void test_attention(void **state) {
    (void)state;
    static const int64_t sizes[][5] = {{2, 2, 1, 1, 1},     {1, 2, 17, 17, 8},    {1, 3, 16, 15, 1},
                                       {2, 3, 64, 64, 64},  {1, 1, 257, 257, 64}, {1, 2, 63, 65, 64},
                                       {1, 2, 65, 63, 64},  {1, 1, 33, 70, 65},   {2, 2, 31, 31, 128},
                                       {1, 2, 1, 257, 64},  {1, 1, 3, 100, 65},   {2, 2, 70, 200, 32},
                                       {2, 2, 150, 130, 20}};
    if (!gpu) return skip();
    aim(64);
    for (int s = 0; s < COUNT(sizes); s++)
        for (int causal = 0; causal < 2; causal++) {
            const int64_t *n = sizes[s];
            const attention_case c = {n[0], n[1], n[2], n[3], n[4], causal, n[2] == n[3] && (s + causal) % 2,
                                      0,    0};
            check_attention(WEFT_F32, &c);
        }
}

static void test_attention_dtypes(void **state) {
    (void)state;
    static const weft_dtype dtypes[] = {WEFT_F32, WEFT_BF16, WEFT_F16, WEFT_F64};
    if (!gpu) return skip();
    aim(64);
    for (int d = 0; d < COUNT(dtypes); d++) {
        const attention_case odd = {1, 2, 63, 65, 33, true, false, 0.3, 0},
                             even = {2, 1, 40, 40, 64, true, true, 0.2, 0},
                             one = {1, 2, 1, 67, 64, true, false, 0.3, 0};
        check_attention(dtypes[d], &odd);
        check_attention(dtypes[d], &even);
        check_attention(dtypes[d], &one);
    }
}

/* The position in the cache is known on the device only. Keys after it are not read. */
static void test_attention_cached(void **state) {
    (void)state;
    static const int64_t queries[] = {1, 5, 40};
    static const int32_t positions[] = {1, 30, 281, 300, -3}; /* 0, 29, ...; before the first key */
    if (!gpu) return skip();
    aim(64);
    for (int q = 0; q < COUNT(queries); q++)
        for (int p = 0; p < COUNT(positions); p++) {
            const attention_case c = {2, 2, queries[q], 320, 64, true, false, 0, positions[p]};
            check_attention(WEFT_F32, &c);
        }
}

/* The compiler expands attention with heads too wide for the local memory. */
static void test_attention_takes(void **state) {
    (void)state;
    const attention_case wide = {1, 1, 4, 4, 257, false, false, 0, 0},
                         fits = {1, 1, 4, 4, 256, false, false, 0, 0};
    if (!gpu) return skip();
    weft_heavy h = {.kind = WEFT_HEAVY_ATTENTION, .as.attention = attention_of(WEFT_F32, &wide)};
    aim(64);
    assert_false(gpu->ops->takes(gpu, &h));
    h.as.attention = attention_of(WEFT_F32, &fits);
    h.as.attention.backward = true;
    assert_true(gpu->ops->takes(gpu, &h));
    weft__gpu_of(gpu)->target.local_bytes = 1024;
    assert_false(gpu->ops->takes(gpu, &h));
}

/* ---- scans ---- */

/* All elements are equal, so that rounding errors add up. */
static void check_scan(weft_dtype dt, int64_t outer, int64_t extent, int64_t inner) {
    const int64_t n = outer * extent * inner;
    weft_heavy h = {.kind = WEFT_HEAVY_SCAN,
                    .as.scan = {.dtype = (uint8_t)dt, .outer = outer, .extent = extent, .inner = inner}};
    const size_t bytes = (size_t)n * weft_dtype_size(dt);
    operands o = {.n = 2, .data = {malloc(bytes), malloc(bytes)}, .bytes = {bytes, bytes}};
    operands want = {.n = 2, .bytes = {(size_t)n * 8, (size_t)n * 8}};
    for (int i = 0; i < 2; i++) want.data[i] = malloc(want.bytes[i]);
    for (int64_t i = 0; i < n; i++) {
        set_value(dt, o.data[0], i, 0.1);
        set_value(WEFT_F64, want.data[0], i, value(dt, o.data[0], i));
    }
    run_twice(&h, &o);
    h.as.scan.dtype = WEFT_F64;
    run_on(interp, &h, &want);
    near("scan", dt, o.data[1], want.data[1], bytes, 4 * 0x1p-24);
    free_operands(&o), free_operands(&want);
}

/* Infinities stay what they are. */
static void check_scan_infinite(void) {
    const weft_heavy h = {.kind = WEFT_HEAVY_SCAN, .as.scan = {WEFT_F32, false, false, 1, 6, 1}};
    float x[6] = {1, (float)INFINITY, 2, -1, (float)-INFINITY, 3}, y[6];
    operands o = {.n = 2, .data = {x, y}, .bytes = {sizeof x, sizeof y}};
    run_twice(&h, &o);
    assert_true(y[0] == 1 && isinf(y[1]) && isinf(y[2]) && isinf(y[3]) && isnan(y[4]) && isnan(y[5]));
}

static void test_scan(void **state) {
    (void)state;
    if (!gpu) return skip();
    weft_target *target = &weft__gpu_of(gpu)->target;
    const bool wide = target->f64;
    aim(64);
    for (int with_f64 = 0; with_f64 < 2; with_f64++) { /* GPUs without f64 compensate errors */
        target->f64 = wide && with_f64;
        check_scan(WEFT_F32, 1, 1 << 17, 1);
        check_scan(WEFT_F32, 2, 300, 2100); /* too few to be split */
        check_scan_infinite();
    }
    target->f64 = wide;
}

/* ---- packed matrices ---- */

/* Bytes of any value, but with scales of 1/64. */
static uint8_t *packed_rows(int format, int64_t bytes) {
    const weft_packed_info *info = weft__packed_info(format);
    uint8_t *rows = random_values(WEFT_U8, bytes, 5);
    for (int64_t at = 0; at < bytes; at += info->bytes) {
        const int64_t half = format == WEFT_Q6_K ? at + 208 : at;
        rows[half] = 0, rows[half + 1] = 0x24;
        if (format == WEFT_Q4_1 || format == WEFT_Q4_K) rows[at + 2] = 0, rows[at + 3] = 0xa4;
    }
    return rows;
}

static void check_packed(int format, int64_t m, int64_t n, int64_t k) {
    const weft_heavy h = {.kind = WEFT_HEAVY_PACKED,
                          .as.packed = {.format = (uint8_t)format, .multiply = true, .m = m, .n = n, .k = k}};
    const weft_packed_info *info = weft__packed_info(format);
    const int64_t bytes = n * weft__packed_row(info, k);
    const size_t of_x = (size_t)(m * k) * 4, of_y = (size_t)(m * n) * 4;
    float *x = random_values(WEFT_F32, m * k, 6), *y = malloc(of_y), *w = malloc((size_t)(n * k) * 4);
    double *want = calloc((size_t)(m * n), sizeof *want);
    operands o = {.n = 3, .data = {x, packed_rows(format, bytes), y}, .bytes = {of_x, (size_t)bytes, of_y}};
    weft__packed_own_baseline.unpack(format, n * k / info->elements, o.data[1], w);
    for (int64_t i = 0; i < m * n; i++)
        for (int64_t p = 0; p < k; p++) want[i] += (double)x[i / n * k + p] * (double)w[i % n * k + p];
    run_twice(&h, &o);
    near(info->name, WEFT_F32, y, want, of_y, 1e-5);
    free_operands(&o), free(w), free(want);
}

static void test_packed(void **state) {
    (void)state;
    if (!gpu) return skip();
    aim(64);
    for (int format = 1; format < WEFT_PACKED_COUNT; format++) {
        check_packed(format, 1, 37, 3 * weft__packed_info(format)->elements);
        check_packed(format, 8, 5, 512);
    }
    const weft_heavy_packed many = {.format = WEFT_Q8_0, .multiply = true, .m = 9, .n = 4, .k = 32},
                            numbers = {.format = WEFT_Q8_0, .n = 4, .k = 32};
    assert_false(weft__gpu_packed_takes(&weft__gpu_of(gpu)->target, &many));
    assert_false(weft__gpu_packed_takes(&weft__gpu_of(gpu)->target, &numbers));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_update),           cmocka_unit_test(test_attention),
        cmocka_unit_test(test_attention_dtypes), cmocka_unit_test(test_attention_cached),
        cmocka_unit_test(test_attention_takes),  cmocka_unit_test(test_scan),
        cmocka_unit_test(test_packed),
    };
    return cmocka_run_group_tests(tests, open_devices, close_devices);
}
