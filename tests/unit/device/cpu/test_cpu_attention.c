/* src/device/cpu: attention forward and backward, compared with softmax by its definition in f64. The f64
 * gradients are also compared with finite differences. Covers causal attention, unequal lengths, rows that
 * see no key, dropout and packed projections. The bits must be the same for each partition into tasks. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "device/cpu/cpu.h"
#include "unit/cpu_work.h"

#define COUNT(x) ((int)(sizeof(x) / sizeof *(x)))

static const int32_t key[8] = {0x12345678, -77, 5, 0, -2, 3, 0, 0}; /* the stream begins past 2^32 */

/* A problem with its tensors in the tested dtype, either contiguous or as views of a packed projection (B, T,
 * 3 C). */
typedef struct problem {
    weft_heavy_attention at;
    weft_dtype dt, lse_dt;
    void *q, *k, *v, *out, *lse, *dout, *dq, *dk, *dv;
    int64_t n_q, n_k, n_out, n_lse; /* elements of the buffers */
} problem;

static void contiguous(int64_t *s, int64_t heads, int64_t t, int64_t d) {
    s[0] = heads * t * d, s[1] = t * d, s[2] = d;
}

static void packed(int64_t *s, int64_t heads, int64_t t, int64_t d, int64_t columns) {
    s[0] = t * columns * heads * d, s[1] = d, s[2] = columns * heads * d;
}

static problem make(weft_dtype dt, bool pack, bool causal, double dropout, const int64_t *size) {
    problem p = {.dt = dt, .lse_dt = dt == WEFT_F64 ? WEFT_F64 : WEFT_F32};
    int64_t b = size[0], h = size[1], tq = size[2], tk = size[3], d = size[4];
    p.at = (weft_heavy_attention){.dtype = (uint8_t)dt,
                                  .causal = causal,
                                  .scale = 1 / sqrt((double)d),
                                  .dropout = dropout,
                                  .batch = b,
                                  .heads = h,
                                  .t_q = tq,
                                  .t_k = tk,
                                  .d = d};
    if (pack) {
        packed(p.at.q, h, tq, d, 3), packed(p.at.k, h, tk, d, 3), packed(p.at.v, h, tk, d, 3);
        packed(p.at.out, h, tq, d, 1), packed(p.at.dout, h, tq, d, 1);
    } else {
        contiguous(p.at.q, h, tq, d), contiguous(p.at.k, h, tk, d), contiguous(p.at.v, h, tk, d);
        contiguous(p.at.out, h, tq, d), contiguous(p.at.dout, h, tq, d);
    }
    memcpy(p.at.dq, p.at.q, sizeof p.at.q);
    memcpy(p.at.dk, p.at.k, sizeof p.at.k);
    memcpy(p.at.dv, p.at.v, sizeof p.at.v);
    int64_t wide = pack ? 3 : 1;
    p.n_q = b * h * tq * d * wide, p.n_k = b * h * tk * d * wide, p.n_out = b * h * tq * d,
    p.n_lse = b * h * tq;
    p.q = random_values(dt, p.n_q, 1), p.k = random_values(dt, p.n_k, 2), p.v = random_values(dt, p.n_k, 3);
    p.dout = random_values(dt, p.n_out, 4);
    p.out = calloc((size_t)p.n_out + 1, 8), p.lse = calloc((size_t)p.n_lse + 1, 8);
    p.dq = calloc((size_t)p.n_q + 1, 8), p.dk = calloc((size_t)p.n_k + 1, 8),
    p.dv = calloc((size_t)p.n_k + 1, 8);
    return p;
}

static void drop(problem *p) {
    free(p->q), free(p->k), free(p->v), free(p->out), free(p->lse), free(p->dout), free(p->dq), free(p->dk),
        free(p->dv);
}

static void forward(problem *p) {
    weft_heavy h = {.kind = WEFT_HEAVY_ATTENTION, .as.attention = p->at};
    h.as.attention.backward = false;
    int32_t copy[8];
    memcpy(copy, key, sizeof copy);
    void *args[] = {p->q, p->k, p->v, copy, p->out, p->lse};
    assert_true(weft__cpu_heavy_takes(&h));
    run_all_ways(&h, args, p->out, (size_t)p->n_out * weft_dtype_size(p->dt));
    run_all_ways(&h, args, p->lse, (size_t)p->n_lse * weft_dtype_size(p->lse_dt));
}

static void backward(problem *p) {
    weft_heavy h = {.kind = WEFT_HEAVY_ATTENTION, .as.attention = p->at};
    h.as.attention.backward = true;
    int32_t copy[8];
    memcpy(copy, key, sizeof copy);
    void *args[] = {p->q, p->k, p->v, copy, p->out, p->lse, p->dout, p->dq, p->dk, p->dv};
    run_all_ways(&h, args, p->dq, (size_t)p->n_q * weft_dtype_size(p->dt));
    run_all_ways(&h, args, p->dk, (size_t)p->n_k * weft_dtype_size(p->dt));
    run_all_ways(&h, args, p->dv, (size_t)p->n_k * weft_dtype_size(p->dt));
}

static double at(const problem *p, const void *base, const int64_t *s, int64_t b, int64_t h, int64_t t,
                 int64_t x) {
    return value(p->dt, base, b * s[0] + h * s[1] + t * s[2] + x);
}

/* The factor that dropout applies to a weight, by its definition. */
static double factor(const problem *p, int64_t b, int64_t h, int64_t i, int64_t j) {
    if (p->at.dropout == 0) return 1;
    const uint32_t *k = (const uint32_t *)(const void *)key;
    uint64_t n =
        (k[4] | (uint64_t)k[5] << 32) + (uint64_t)(((b * p->at.heads + h) * p->at.t_q + i) * p->at.t_k + j);
    uint32_t counter[4] = {(uint32_t)(n / 4), (uint32_t)(n / 4 >> 32), k[2], k[3]}, words[4];
    weft__philox(counter, k, words);
    return (double)(words[n % 4] >> 8) * 0x1p-24 >= p->at.dropout ? 1 / (1 - p->at.dropout) : 0;
}

/* The weights (t_q, t_k) of one batch and head before dropout, and for each row the error that f32 or f64 may
 * make, in roundoffs. */
static void weights(const problem *p, int64_t b, int64_t h, double *w, double *slack, double *lse) {
    const weft_heavy_attention *a = &p->at;
    for (int64_t i = 0; i < a->t_q; i++) {
        int64_t seen = a->causal ? i + a->t_k - a->t_q + 1 : a->t_k;
        double most = -INFINITY, least = INFINITY, sum = 0, size = 0, *row = w + i * a->t_k;
        for (int64_t j = 0; j < a->t_k; j++) {
            double s = 0, abs = 0;
            for (int64_t x = 0; x < a->d; x++) {
                double qk = at(p, p->q, a->q, b, h, i, x) * at(p, p->k, a->k, b, h, j, x);
                s += qk, abs += fabs(qk);
            }
            row[j] = j < seen ? s * a->scale : -INFINITY;
            if (j >= seen) continue;
            most = fmax(most, row[j]), least = fmin(least, row[j]);
            size = fmax(size, abs * fabs(a->scale));
        }
        for (int64_t j = 0; j < a->t_k; j++) sum += row[j] = most == -INFINITY ? 0 : exp(row[j] - most);
        for (int64_t j = 0; j < a->t_k; j++) row[j] = sum > 0 ? row[j] / sum : 0;
        lse[i] = sum > 0 ? most + log(sum) : -INFINITY;
        slack[i] =
            sum > 0 ? most - least + 2 * log2((double)a->t_k) + 8 + (2 * log2((double)a->d) + 4) * size : 0;
    }
}

static double u_of(weft_dtype d) { return d == WEFT_F64 ? 0x1p-53 : 0x1p-24; }
static double u_out(weft_dtype d) {
    return d == WEFT_F64 ? 0x1p-53 : d == WEFT_F32 ? 0x1p-24 : d == WEFT_F16 ? 0x1p-11 : 0x1p-8;
}

static double worst;
static void near(const problem *p, double got, double want, double size) {
    double bound = size * u_of(p->dt) * 2 + u_out(p->dt) * fabs(want) + (p->dt == WEFT_F16 ? 0x1p-25 : 0);
    double ratio = got == want ? 0 : fabs(got - want) / bound;
    if (!(ratio <= 1)) {
        print_error("%s: got %.9g, want %.9g, %g of the bound\n", weft_dtype_name(p->dt), got, want, ratio);
        fail();
    }
    if (ratio > worst) worst = ratio;
}

static void check_forward(const problem *p) {
    const weft_heavy_attention *a = &p->at;
    double *w = malloc(sizeof(double) * (size_t)(a->t_q * a->t_k + 1)),
           *slack = malloc(sizeof(double) * (size_t)a->t_q);
    double *lse = malloc(sizeof(double) * (size_t)a->t_q);
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) {
            weights(p, b, h, w, slack, lse);
            for (int64_t i = 0; i < a->t_q; i++) {
                double got = value(p->lse_dt, p->lse, (b * a->heads + h) * a->t_q + i);
                if (isinf(lse[i]))
                    assert_true(got == lse[i]);
                else
                    assert_true(fabs(got - lse[i]) <= (slack[i] + fabs(lse[i])) * 2 * u_of(p->dt));
                for (int64_t x = 0; x < a->d; x++) {
                    double sum = 0, size = 0;
                    for (int64_t j = 0; j < a->t_k; j++) {
                        double pv = w[i * a->t_k + j] * factor(p, b, h, i, j) * at(p, p->v, a->v, b, h, j, x);
                        sum += pv, size += fabs(pv);
                    }
                    near(p, at(p, p->out, a->out, b, h, i, x), sum, slack[i] * size);
                }
            }
        }
    free(w), free(slack), free(lse);
}

/* Computes dP, dS and the three gradients from the definition. delta comes from dP and P, not from the
 * output. */
static void check_backward(const problem *p) {
    const weft_heavy_attention *a = &p->at;
    size_t square = (size_t)(a->t_q * a->t_k + 1), nq = (size_t)(a->t_q * a->d),
           nk = (size_t)(a->t_k * a->d + 1);
    double *w = malloc(8 * square), *slack = malloc(8 * (size_t)a->t_q), *lse = malloc(8 * (size_t)a->t_q);
    double *dp = malloc(8 * square), *mass = malloc(8 * square), *grad = malloc(8 * 6 * (nq + nk));
    for (int64_t b = 0; b < a->batch; b++)
        for (int64_t h = 0; h < a->heads; h++) {
            double *dq = grad, *dk = dq + nq, *dv = dk + nk, *mq = dv + nk, *mk = mq + nq, *mv = mk + nk;
            memset(grad, 0, 8 * 6 * (nq + nk));
            weights(p, b, h, w, slack, lse);
            for (int64_t i = 0; i < a->t_q; i++) {
                double delta = 0, big = 0, round = u_out(p->dt) / u_of(p->dt);
                for (int64_t j = 0; j < a->t_k; j++) {
                    double sum = 0, abs = 0, f = factor(p, b, h, i, j), weight = w[i * a->t_k + j];
                    for (int64_t x = 0; x < a->d; x++) {
                        double t = at(p, p->dout, a->dout, b, h, i, x) * at(p, p->v, a->v, b, h, j, x);
                        sum += t, abs += fabs(t);
                        dv[j * a->d + x] += weight * f * at(p, p->dout, a->dout, b, h, i, x);
                        mv[j * a->d + x] += slack[i] * weight * f * fabs(at(p, p->dout, a->dout, b, h, i, x));
                    }
                    dp[i * a->t_k + j] = sum * f;
                    mass[i * a->t_k + j] = abs * f;
                    delta += weight * f * sum, big += weight * f * abs;
                }
                for (int64_t j = 0; j < a->t_k; j++) {
                    /* the device computes delta from the rounded output: `round` roundoffs */
                    double weight = w[i * a->t_k + j] * a->scale, ds = weight * (dp[i * a->t_k + j] - delta);
                    double m = weight * (slack[i] * mass[i * a->t_k + j] + (slack[i] + round) * big);
                    for (int64_t x = 0; x < a->d; x++) {
                        double kx = at(p, p->k, a->k, b, h, j, x), qx = at(p, p->q, a->q, b, h, i, x);
                        dq[i * a->d + x] += ds * kx, mq[i * a->d + x] += m * fabs(kx);
                        dk[j * a->d + x] += ds * qx, mk[j * a->d + x] += m * fabs(qx);
                    }
                }
            }
            for (int64_t x = 0; x < a->d; x++) {
                for (int64_t i = 0; i < a->t_q; i++)
                    near(p, at(p, p->dq, a->dq, b, h, i, x), dq[i * a->d + x], mq[i * a->d + x]);
                for (int64_t j = 0; j < a->t_k; j++) {
                    near(p, at(p, p->dk, a->dk, b, h, j, x), dk[j * a->d + x], mk[j * a->d + x]);
                    near(p, at(p, p->dv, a->dv, b, h, j, x), dv[j * a->d + x], mv[j * a->d + x]);
                }
            }
        }
    free(w), free(slack), free(lse), free(dp), free(mass), free(grad);
}

static const weft_dtype dtypes[] = {WEFT_F32, WEFT_F64, WEFT_F16, WEFT_BF16};
static const int64_t sizes[][5] = {{1, 1, 1, 1, 1},  {2, 3, 5, 5, 4},     {1, 2, 64, 64, 32},
                                   {2, 1, 7, 33, 5}, {1, 2, 65, 129, 17}, {1, 1, 150, 300, 8},
                                   {3, 2, 20, 6, 3}, {1, 1, 130, 70, 40}, {2, 4, 1, 40, 16}};

static void test_definition(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++) {
        worst = 0;
        for (int s = 0; s < COUNT(sizes); s++)
            for (int way = 0; way < 8; way++) {
                problem p = make(dtypes[d], way & 1, way & 2, way & 4 ? 0.3 : 0, sizes[s]);
                forward(&p);
                check_forward(&p);
                backward(&p);
                check_backward(&p);
                drop(&p);
            }
        print_message("%s: %.3f of the bound\n", weft_dtype_name(dtypes[d]), worst);
    }
}

/* sum(out * dout) as a function of one tensor. Finite differences of the device's forward pass in f64 use
 * it. */
static double loss(problem *p) {
    forward(p);
    double sum = 0;
    for (int64_t i = 0; i < p->n_out; i++) sum += value(p->dt, p->out, i) * value(p->dt, p->dout, i);
    return sum;
}

static void test_finite_differences(void **state) {
    (void)state;
    for (int way = 0; way < 4; way++) {
        problem p = make(WEFT_F64, false, way & 1, way & 2 ? 0.4 : 0, (int64_t[]){2, 2, 6, 5, 3});
        forward(&p);
        backward(&p);
        double *inputs[] = {p.q, p.k, p.v}, *grads[] = {p.dq, p.dk, p.dv};
        int64_t counts[] = {p.n_q, p.n_k, p.n_k};
        for (int t = 0; t < 3; t++)
            for (int64_t i = 0; i < counts[t]; i += 3) {
                double h = 1e-3, x = inputs[t][i], f[4];
                for (int s = 0; s < 4; s++) {
                    inputs[t][i] = x + h * (s < 2 ? s - 2 : s - 1);
                    f[s] = loss(&p);
                }
                inputs[t][i] = x;
                double slope = (f[0] - 8 * f[1] + 8 * f[2] - f[3]) / (12 * h);
                assert_true(fabs(slope - grads[t][i]) <= 1e-8 * (1 + fabs(slope)));
            }
        drop(&p);
    }
}

static void test_sees_nothing(void **state) {
    (void)state;
    for (int d = 0; d < COUNT(dtypes); d++) {
        /* five queries, three keys: the first two rows see no key */
        problem p = make(dtypes[d], false, true, 0, (int64_t[]){1, 2, 5, 3, 4});
        forward(&p);
        backward(&p);
        for (int64_t h = 0; h < 2; h++)
            for (int64_t i = 0; i < 2; i++) {
                assert_true(value(p.lse_dt, p.lse, h * 5 + i) == -INFINITY);
                for (int64_t x = 0; x < 4; x++) {
                    assert_true(at(&p, p.out, p.at.out, 0, h, i, x) == 0);
                    assert_true(at(&p, p.dq, p.at.dq, 0, h, i, x) == 0);
                }
            }
        drop(&p);
        problem none = make(dtypes[d], false, false, 0, (int64_t[]){1, 2, 3, 0, 4});
        memset(none.out, 0x44, (size_t)none.n_out * weft_dtype_size(none.dt));
        forward(&none);
        for (int64_t i = 0; i < none.n_out; i++) assert_true(value(none.dt, none.out, i) == 0);
        backward(&none);
        drop(&none);
    }
}

/* Large scores must not overflow, and NaN must not vanish. */
static void test_special_values(void **state) {
    (void)state;
    problem p = make(WEFT_F32, false, false, 0, (int64_t[]){1, 1, 4, 9, 2});
    for (int64_t i = 0; i < p.n_q; i++) ((float *)p.q)[i] = 3000;
    for (int64_t i = 0; i < p.n_k; i++) ((float *)p.k)[i] = i < 2 ? 4000 : -4000;
    forward(&p);
    for (int64_t i = 0; i < 4; i++)
        for (int64_t x = 0; x < 2; x++) assert_true(((float *)p.out)[2 * i + x] == ((float *)p.v)[x]);
    ((float *)p.q)[2] = NAN;
    forward(&p);
    assert_true(isnan(((float *)p.out)[2]) && !isnan(((float *)p.out)[0]) && isnan(((float *)p.lse)[1]));
    drop(&p);
}

/* With a cache, the result has the same bits as causal attention over the first keys, whatever comes after
 * them. */
static void test_cached(void **state) {
    (void)state;
    enum { HEADS = 3, CAPACITY = 300, WIDTH = 32 };
    const int64_t cases[][2] = {{1, 0}, {1, 9}, {1, 130}, {1, 299}, {16, 0}, {16, 250}, {70, 100}};
    for (int n = 0; n < COUNT(cases) * COUNT(dtypes); n++) {
        int64_t t_q = cases[n % COUNT(cases)][0], seen = cases[n % COUNT(cases)][1] + t_q;
        weft_dtype dtype = dtypes[n / COUNT(cases)];
        problem p = make(dtype, false, true, 0, (int64_t[]){1, HEADS, t_q, CAPACITY, WIDTH});
        size_t size = weft_dtype_size(dtype), bytes = (size_t)p.n_out * size;
        p.at.t_k = seen;
        forward(&p);
        void *wanted = malloc(bytes);
        memcpy(wanted, p.out, bytes);
        for (int64_t h = 0; h < HEADS; h++) { /* 0xff bytes are NaN in any dtype */
            size_t from = (size_t)((h * CAPACITY + seen) * WIDTH) * size,
                   rest = (size_t)((CAPACITY - seen) * WIDTH) * size;
            memset((char *)p.k + from, 0xff, rest);
            memset((char *)p.v + from, 0xff, rest);
        }
        p.at.t_k = CAPACITY;
        p.at.cached = true;
        int32_t position = (int32_t)(seen - t_q);
        weft_heavy heavy = {.kind = WEFT_HEAVY_ATTENTION, .as.attention = p.at};
        run_all_ways(&heavy, (void *[]){p.q, p.k, p.v, &position, p.out, p.lse}, p.out, bytes);
        assert_memory_equal(p.out, wanted, bytes);
        free(wanted);
        drop(&p);
    }
}

static void test_cut(void **state) {
    (void)state;
    weft_cpu_work work;
    weft_heavy h = {.kind = WEFT_HEAVY_ATTENTION};
    problem p = make(WEFT_F32, false, true, 0, (int64_t[]){12, 4, 64, 64, 32});
    h.as.attention = p.at;
    assert_int_equal(weft__cpu_heavy_prepare(NULL, &h, 2, &work), WEFT_OK);
    assert_true(work.tasks >= 4 && work.scratch_bytes < 1 << 20);
    work.free(NULL, work.plan);
    drop(&p);
    /* one long head: split along the queries */
    p = make(WEFT_F32, false, true, 0, (int64_t[]){1, 1, 1024, 1024, 64});
    h.as.attention = p.at;
    assert_int_equal(weft__cpu_heavy_prepare(NULL, &h, 2, &work), WEFT_OK);
    assert_true(work.tasks >= 8 && work.scratch_bytes < 1 << 20);
    work.free(NULL, work.plan);
    drop(&p);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_definition),   cmocka_unit_test(test_finite_differences),
        cmocka_unit_test(test_sees_nothing), cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_cached),       cmocka_unit_test(test_cut),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
