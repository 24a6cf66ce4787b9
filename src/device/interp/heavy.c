/* The heavy operations as plain loops in f64, integers in 64 bits, each written from its definition in
 * device.h: attention forms the whole row of weights, and its backward pass uses neither the saved output nor
 * the saved log-sum-exp. Read next: interp.c. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "device/interp/interp.h"

/* ---- operands ---- */

typedef struct operand {
    weft_dtype dtype;
    char *base;
} operand;

static weft_value get(operand o, int64_t element) { return weft__interp_load(o.dtype, o.base, element); }
static void put(operand o, int64_t element, weft_value v) { weft__interp_store(o.dtype, o.base, element, v); }

/* Checks that a strided block of operand i lies inside it. */
static weft_status inside(weft_interp *device, const weft_heavy *heavy, int i, int64_t bytes,
                          weft_dtype dtype, int rank, const int64_t *extent, const int64_t *stride) {
    int64_t least = 0, most = 0;
    for (int d = 0; d < rank; d++) {
        if (extent[d] == 0) return WEFT_OK;
        const int64_t reach = (extent[d] - 1) * stride[d];
        if (reach < 0)
            least += reach;
        else
            most += reach;
    }
    const int64_t n = bytes / (int64_t)weft_dtype_size(dtype);
    if (least >= 0 && most < n) return WEFT_OK;
    return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL,
                      "interp: heavy operation %d: %s: operand %d: elements %" PRId64 "..%" PRId64
                      " of %" PRId64,
                      (int)heavy->kind, heavy->path ? heavy->path : "", i, least, most, n);
}

/* ---- matmul ---- */

static weft_value dot(const weft_heavy_matmul *m, operand a, operand b, int64_t at_a, int64_t at_b) {
    if (weft_dtype_is_float(a.dtype)) {
        double sum = 0;
        for (int64_t k = 0; k < m->k; k++) sum += get(a, at_a + k * m->a_k).f * get(b, at_b + k * m->b_k).f;
        return (weft_value){.f = sum};
    }
    uint64_t sum = 0;
    for (int64_t k = 0; k < m->k; k++)
        sum += (uint64_t)get(a, at_a + k * m->a_k).i * (uint64_t)get(b, at_b + k * m->b_k).i;
    return weft__interp_cast(WEFT_I64, (weft_dtype)m->out_dtype, (weft_value){.i = (int64_t)sum});
}

static void matmul_block(const weft_heavy_matmul *m, operand a, operand b, operand c) {
    for (int64_t i = 0; i < m->m; i++)
        for (int64_t j = 0; j < m->n; j++) put(c, i * m->c_m + j, dot(m, a, b, i * m->a_m, j * m->b_n));
}

static weft_status product(weft_interp *device, const weft_heavy *heavy, void *const *args,
                           const int64_t *bytes) {
    const weft_heavy_matmul *m = &heavy->as.matmul;
    const weft_dtype in = (weft_dtype)m->dtype, out = (weft_dtype)m->out_dtype;
    int64_t extent[3][WEFT_BATCH_DIMS + 2], stride[3][WEFT_BATCH_DIMS + 2], batches = 1;
    for (int d = 0; d < m->batch_rank; d++) {
        for (int o = 0; o < 3; o++) extent[o][d] = m->batch[d];
        stride[0][d] = m->a_batch[d], stride[1][d] = m->b_batch[d], stride[2][d] = m->c_batch[d];
        batches *= m->batch[d];
    }
    const int r = m->batch_rank;
    extent[0][r] = m->m, stride[0][r] = m->a_m, extent[0][r + 1] = m->k, stride[0][r + 1] = m->a_k;
    extent[1][r] = m->k, stride[1][r] = m->b_k, extent[1][r + 1] = m->n, stride[1][r + 1] = m->b_n;
    extent[2][r] = m->m, stride[2][r] = m->c_m, extent[2][r + 1] = m->n, stride[2][r + 1] = 1;
    for (int o = 0; o < 3; o++)
        WEFT_TRY(inside(device, heavy, o, bytes[o], o < 2 ? in : out, r + 2, extent[o], stride[o]));
    for (int64_t i = 0; i < batches; i++) {
        int64_t rest = i, at[3] = {0, 0, 0};
        for (int d = r - 1; d >= 0; d--) {
            for (int o = 0; o < 3; o++) at[o] += rest % m->batch[d] * stride[o][d];
            rest /= m->batch[d];
        }
        const int64_t in_size = (int64_t)weft_dtype_size(in), out_size = (int64_t)weft_dtype_size(out);
        matmul_block(m, (operand){in, (char *)args[0] + at[0] * in_size},
                     (operand){in, (char *)args[1] + at[1] * in_size},
                     (operand){out, (char *)args[2] + at[2] * out_size});
    }
    return WEFT_OK;
}

/* Bytes of operand o, a or b, from its first to its last element. */
static int64_t span(const weft_heavy_matmul *m, int o) {
    int64_t last = o ? (m->k - 1) * m->b_k + (m->n - 1) * m->b_n : (m->m - 1) * m->a_m + (m->k - 1) * m->a_k;
    for (int d = 0; d < m->batch_rank; d++) last += (m->batch[d] - 1) * (o ? m->b_batch : m->a_batch)[d];
    return (last + 1) * (int64_t)weft_dtype_size((weft_dtype)m->dtype);
}

/* An epilogue's arguments lie in their buffers, and what it writes apart from what the product still reads.
 */
static weft_status check_epilogue(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                  const int64_t *bytes) {
    const weft_heavy_matmul *m = &heavy->as.matmul;
    for (int i = 0; i < m->epilogue->n_args; i++) {
        const weft_kernel_arg *arg = &m->epilogue->args[i];
        const char *from = args[2 + i];
        const int64_t size = arg->elements * (int64_t)weft_dtype_size((weft_dtype)arg->dtype);
        if (i == m->product && !arg->written) continue;
        bool fits = size <= bytes[2 + i];
        for (int o = 0; o < 2 && arg->written && m->k > 0; o++)
            fits = fits && (from + size <= (char *)args[o] || (char *)args[o] + span(m, o) <= from);
        if (!fits)
            return weft__fail(
                device->base.ctx, WEFT_ERR_INTERNAL,
                "interp: argument %d of a product's epilogue %s leaves its buffer, or is written "
                "where the product reads",
                i, m->epilogue->name);
    }
    return WEFT_OK;
}

/* Operands before the sums. */
static int sums_at(const weft_heavy_matmul *m) { return m->epilogue ? 2 + m->epilogue->n_args : 3; }

static weft_status sum_rows(weft_interp *device, const weft_heavy *heavy, void *const *args,
                            const int64_t *bytes) {
    const weft_heavy_matmul *m = &heavy->as.matmul;
    const int at = sums_at(m);
    const operand a = {(weft_dtype)m->dtype, args[0]}, to = {weft__heavy_sums_dtype(m), args[at]};
    WEFT_TRY(inside(device, heavy, at, bytes[at], to.dtype, 1, &m->m, &(int64_t){1}));
    for (int64_t i = 0; i < m->m; i++) {
        double sum = 0;
        for (int64_t k = 0; k < m->k; k++) sum += get(a, i * m->a_m + k * m->a_k).f;
        put(to, i, (weft_value){.f = sum});
    }
    return WEFT_OK;
}

/* The product as a whole, then its epilogue. */
static weft_status matmul(weft_interp *device, const weft_heavy *heavy, void *const *args,
                          const int64_t *bytes) {
    const weft_heavy_matmul *m = &heavy->as.matmul;
    if (m->sums) WEFT_TRY(sum_rows(device, heavy, args, bytes));
    if (!m->epilogue) return product(device, heavy, args, bytes);
    weft_context *ctx = device->base.ctx;
    const int n = m->epilogue->n_args;
    const int64_t size =
        m->epilogue->args[m->product].elements * (int64_t)weft_dtype_size((weft_dtype)m->out_dtype);
    WEFT_TRY(check_epilogue(device, heavy, args, bytes));
    void **list = weft__array(ctx, (size_t)n, sizeof *list);
    void *c = weft__alloc_aligned(ctx, (size_t)size);
    weft_status status = list && c ? WEFT_OK : weft__fail_oom(ctx, (size_t)size, "interp: a product");
    if (status == WEFT_OK) {
        memcpy(list, args + 2, (size_t)n * sizeof *list);
        if (!m->epilogue->args[m->product].written) list[m->product] = c;
        status = product(device, heavy, (void *[]){args[0], args[1], list[m->product]},
                         (int64_t[]){bytes[0], bytes[1], size});
    }
    if (status == WEFT_OK) status = weft__interp_kernel(device, m->epilogue, list);
    weft__free(ctx, list);
    weft__free_aligned(ctx, c);
    return status;
}

/* ---- scatter-add ---- */

static void scatter_block(weft_interp *device, const weft_heavy *heavy, operand index, operand source,
                          operand base, operand out, int64_t block, weft_value *sums) {
    const weft_heavy_scatter *s = &heavy->as.scatter;
    const bool is_float = weft_dtype_is_float(source.dtype);
    const int64_t size = s->rows * s->inner;
    if (!s->based) memset(sums, 0, (size_t)size * sizeof *sums); /* 0.0 and 0 alike */
    for (int64_t i = 0; s->based && i < size; i++) sums[i] = get(base, block * size + i);
    for (int64_t i = 0; i < s->count; i++) {
        const int64_t row = get(index, i).i;
        if (row < 0 || row >= s->rows) {
            weft__interp_fault(device, WEFT_FAULT_SCATTER, heavy->path, row, s->rows, i);
            continue;
        }
        for (int64_t j = 0; j < s->inner; j++) {
            const weft_value v = get(source, (block * s->count + i) * s->inner + j);
            weft_value *sum = &sums[row * s->inner + j];
            if (is_float)
                sum->f += v.f;
            else
                sum->i = (int64_t)((uint64_t)sum->i + (uint64_t)v.i);
        }
    }
    for (int64_t i = 0; i < size; i++) put(out, block * size + i, sums[i]);
}

static weft_status scatter(weft_interp *device, const weft_heavy *heavy, void *const *args,
                           const int64_t *bytes) {
    const weft_heavy_scatter *s = &heavy->as.scatter;
    const weft_dtype index_dtype = (weft_dtype)s->index_dtype, dtype = (weft_dtype)s->dtype;
    const int64_t flat[1] = {1}, whole = s->outer * s->rows * s->inner,
                  counts[4] = {s->count, s->outer * s->count * s->inner, whole, whole};
    const int to = s->based ? 3 : 2;
    for (int o = 0; o <= to; o++)
        WEFT_TRY(inside(device, heavy, o, bytes[o], o ? dtype : index_dtype, 1, &counts[o], flat));
    if (s->in_place != (s->based && args[2] == args[to]) && whole > 0)
        return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL,
                          "interp: scatter: %s: in_place does not say how it is",
                          heavy->path ? heavy->path : "");
    const size_t size = (size_t)(s->rows * s->inner);
    weft_value *sums = weft__array(device->base.ctx, size, sizeof *sums);
    if (!sums) return weft__fail_oom(device->base.ctx, size * sizeof *sums, "interp: scatter");
    for (int64_t block = 0; block < s->outer; block++)
        scatter_block(device, heavy, (operand){index_dtype, args[0]}, (operand){dtype, args[1]},
                      (operand){dtype, args[2]}, (operand){dtype, args[to]}, block, sums);
    weft__free(device->base.ctx, sums);
    return WEFT_OK;
}

/* ---- update ---- */

static weft_status update(weft_interp *device, const weft_heavy *heavy, void *const *args,
                          const int64_t *bytes) {
    const weft_heavy_update *u = &heavy->as.update;
    const weft_dtype dtype = (weft_dtype)u->dtype;
    const int64_t size = (int64_t)weft_dtype_size(dtype), flat[1] = {1}, one[1] = {1};
    const int64_t whole = u->outer * u->total * u->inner, part = u->outer * u->extent * u->inner;
    WEFT_TRY(inside(device, heavy, 0, bytes[0], dtype, 1, &whole, flat));
    WEFT_TRY(inside(device, heavy, 1, bytes[1], dtype, 1, &part, flat));
    WEFT_TRY(inside(device, heavy, 2, bytes[2], WEFT_I32, 1, one, flat));
    WEFT_TRY(inside(device, heavy, 3, bytes[3], dtype, 1, &whole, flat));
    if (u->in_place != (args[0] == args[3]) && whole > 0)
        return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL,
                          "interp: update: %s: in_place does not say how it is",
                          heavy->path ? heavy->path : "");
    if (!u->in_place) memcpy(args[3], args[0], (size_t)(whole * size));
    const int64_t offset = get((operand){WEFT_I32, args[2]}, 0).i;
    if (offset < 0 || offset > u->total - u->extent) {
        weft__interp_fault(device, WEFT_FAULT_UPDATE, heavy->path, offset, u->total - u->extent + 1, 0);
        return WEFT_OK;
    }
    for (int64_t o = 0; o < u->outer; o++)
        memcpy((char *)args[3] + (o * u->total + offset) * u->inner * size,
               (char *)args[1] + o * u->extent * u->inner * size, (size_t)(u->extent * u->inner * size));
    return WEFT_OK;
}

/* ---- attention ---- */

enum { Q, K, V, KEY, OUT, LSE, DOUT, DQ, DK, DV, MASK, ATTENTION_OPERANDS };

/* Its place among the operands; a mask is behind the key. */
static int operand_at(const weft_heavy_attention *a, int which) {
    return which == MASK ? KEY + 1 : which > KEY && a->masked ? which + 1 : which;
}

typedef struct attention {
    const weft_heavy_attention *a;
    operand at[ATTENTION_OPERANDS];
    int32_t key[8];
    int64_t shift;   /* the first query sees keys 0..shift */
    int64_t b, h;    /* the current head */
    double *weights; /* (t_q, t_k) of it: softmax */
    double *kept;    /* (t_q, t_k): 0 where dropped, else 1 / (1 - dropout) */
    double *dweights;
} attention;

static const int64_t *strides_of(const weft_heavy_attention *a, int which) {
    const int64_t *all[ATTENTION_OPERANDS] = {a->q,    a->k,  a->v,  NULL,  a->out, NULL,
                                              a->dout, a->dq, a->dk, a->dv, a->mask};
    return all[which];
}

/* Element (t, c) of the current head of a tensor. */
static int64_t place(const attention *s, int which, int64_t t, int64_t c) {
    const int64_t *stride = strides_of(s->a, which);
    const int64_t head = which == K || which == V ? s->h / weft__sharing(s->a) : s->h;
    return s->b * stride[0] + head * stride[1] + t * stride[2] + c;
}
static double read_at(const attention *s, int which, int64_t t, int64_t c) {
    return get(s->at[which], place(s, which, t, c)).f;
}
static void write_at(const attention *s, int which, int64_t t, int64_t c, double v) {
    put(s->at[which], place(s, which, t, c), (weft_value){.f = v});
}

static bool sees(const attention *s, int64_t i, int64_t j) { return !s->a->causal || j <= i + s->shift; }

/* A score as the mask lets it through. */
static double masked(const attention *s, int64_t i, int64_t j, double score) {
    const weft_heavy_attention *a = s->a;
    if (!a->masked) return score;
    const int64_t element = s->b * a->mask[0] + s->h * a->mask[1] + i * a->mask[2] + j * a->mask[3];
    const weft_value value = get(s->at[MASK], element);
    if (a->mask_dtype == WEFT_BOOL) return value.i ? score : -HUGE_VAL;
    return value.f == -HUGE_VAL ? value.f : score + value.f;
}

/* Row i of the softmax; in parts its largest score, 0 where the row sees no key, and the logarithm of the sum
 * less that, minus infinity there. */
static void weigh(attention *s, int64_t i, double parts[2]) {
    const weft_heavy_attention *a = s->a;
    double *row = s->weights + i * a->t_k, most = -HUGE_VAL, sum = 0;
    for (int64_t j = 0; j < a->t_k; j++) {
        double score = 0;
        for (int64_t c = 0; c < a->d; c++) score += read_at(s, Q, i, c) * read_at(s, K, j, c);
        row[j] = sees(s, i, j) ? masked(s, i, j, score * a->scale) : -HUGE_VAL;
        if (row[j] > most || isnan(row[j])) most = row[j];
    }
    parts[0] = 0, parts[1] = most;
    if (most == -HUGE_VAL) {
        memset(row, 0, (size_t)a->t_k * sizeof *row);
        return;
    }
    for (int64_t j = 0; j < a->t_k; j++) sum += row[j] = exp(row[j] - most);
    for (int64_t j = 0; j < a->t_k; j++) row[j] /= sum;
    parts[0] = most, parts[1] = log(sum);
}

/* A weight is dropped where its uniform number, 24 bits of the stream, is below the probability. */
static void drop(attention *s, int64_t i) {
    const weft_heavy_attention *a = s->a;
    const int64_t head = s->b * a->heads + s->h;
    for (int64_t j = 0; j < a->t_k; j++) {
        double *kept = &s->kept[i * a->t_k + j];
        *kept = 1;
        if (!(a->dropout > 0)) continue;
        const uint32_t bits = (uint32_t)weft__interp_random(s->key, (head * a->t_q + i) * a->t_k + j);
        *kept = (double)(bits >> 8) * 0x1p-24 < (double)(float)a->dropout ? 0 : 1 / (1 - a->dropout);
    }
}

static void attend(attention *s) {
    const weft_heavy_attention *a = s->a;
    for (int64_t i = 0; i < a->t_q; i++) {
        const double *row = s->weights + i * a->t_k, *kept = s->kept + i * a->t_k;
        double parts[2];
        weigh(s, i, parts);
        drop(s, i);
        if (a->backward) continue;
        const int64_t at = (s->b * a->heads + s->h) * a->t_q + i, rows = a->batch * a->heads * a->t_q;
        put(s->at[LSE], at, (weft_value){.f = a->masked ? parts[0] : parts[0] + parts[1]});
        if (a->masked) put(s->at[LSE], rows + at, (weft_value){.f = parts[1]});
        for (int64_t c = 0; c < a->d; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a->t_k; j++)
                if (row[j] != 0) sum += row[j] * kept[j] * read_at(s, V, j, c);
            write_at(s, OUT, i, c, sum);
        }
    }
}

/* With weights p and y = (p kept) v:  dp = kept (dy v^T);  ds = p (dp - sum_j p dp);  dv = (p kept)^T dy;
 * dq = scale ds k;  dk = scale ds^T q. */
static void attend_backward(attention *s) {
    const weft_heavy_attention *a = s->a;
    for (int64_t i = 0; i < a->t_q; i++) {
        double *row = s->weights + i * a->t_k, *ds = s->dweights + i * a->t_k, mean = 0;
        for (int64_t j = 0; j < a->t_k; j++) {
            ds[j] = 0;
            if (row[j] == 0) continue;
            for (int64_t c = 0; c < a->d; c++) ds[j] += read_at(s, DOUT, i, c) * read_at(s, V, j, c);
            ds[j] *= s->kept[i * a->t_k + j];
            mean += row[j] * ds[j];
        }
        for (int64_t j = 0; j < a->t_k; j++) ds[j] = row[j] == 0 ? 0 : row[j] * (ds[j] - mean);
        for (int64_t c = 0; c < a->d; c++) {
            double sum = 0;
            for (int64_t j = 0; j < a->t_k; j++)
                if (row[j] != 0) sum += ds[j] * read_at(s, K, j, c);
            write_at(s, DQ, i, c, a->scale * sum);
        }
    }
    for (int64_t j = 0; j < a->t_k; j++)
        for (int64_t c = 0; c < a->d; c++) {
            double dk = 0, dv = 0;
            for (int64_t i = 0; i < a->t_q; i++) {
                const int64_t at = i * a->t_k + j;
                if (s->weights[at] == 0) continue;
                dk += s->dweights[at] * read_at(s, Q, i, c);
                dv += s->weights[at] * s->kept[at] * read_at(s, DOUT, i, c);
            }
            write_at(s, DK, j, c, a->scale * dk);
            write_at(s, DV, j, c, dv);
        }
}

static weft_status attention_check(weft_interp *device, const weft_heavy *heavy, const int64_t *bytes) {
    const weft_heavy_attention *a = &heavy->as.attention;
    const weft_dtype dtype = (weft_dtype)a->dtype, lse_dtype = dtype == WEFT_F64 ? WEFT_F64 : WEFT_F32;
    const int64_t lse = (a->masked ? 2 : 1) * a->batch * a->heads * a->t_q, words = 8, flat[1] = {1};
    const int64_t scores[4] = {a->batch, a->heads, a->t_q, a->t_k};
    if (a->masked)
        WEFT_TRY(
            inside(device, heavy, KEY + 1, bytes[KEY + 1], (weft_dtype)a->mask_dtype, 4, scores, a->mask));
    for (int o = 0; o < (a->backward ? MASK : DOUT); o++) {
        const int at = operand_at(a, o);
        if (o == LSE) {
            WEFT_TRY(inside(device, heavy, at, bytes[at], lse_dtype, 1, &lse, flat));
        } else if (o == KEY) {
            if (a->cached || a->dropout > 0)
                WEFT_TRY(inside(device, heavy, o, bytes[o], WEFT_I32, 1, a->cached ? flat : &words, flat));
        } else {
            const bool of_keys = o == K || o == V || o == DK || o == DV;
            const int64_t *s = strides_of(a, o),
                          heads = o == K || o == V ? a->heads / weft__sharing(a) : a->heads,
                          extent[4] = {a->batch, heads, of_keys ? a->t_k : a->t_q, a->d};
            const int64_t stride[4] = {s[0], s[1], s[2], 1};
            WEFT_TRY(inside(device, heavy, at, bytes[at], dtype, 4, extent, stride));
        }
    }
    return WEFT_OK;
}

static weft_status attention_run(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                 const int64_t *bytes) {
    WEFT_TRY(attention_check(device, heavy, bytes));
    const weft_heavy_attention *a = &heavy->as.attention;
    const weft_dtype dtype = (weft_dtype)a->dtype;
    attention s = {.a = a, .shift = a->t_k - a->t_q};
    for (int o = 0; o < (a->backward ? MASK : DOUT); o++)
        s.at[o] = (operand){o == LSE && dtype != WEFT_F64 ? WEFT_F32 : dtype, args[operand_at(a, o)]};
    if (a->masked) s.at[MASK] = (operand){(weft_dtype)a->mask_dtype, args[operand_at(a, MASK)]};
    if (a->dropout > 0) memcpy(s.key, args[KEY], sizeof s.key);
    if (a->cached) s.shift = *(const int32_t *)args[KEY];
    const size_t size = (size_t)(a->t_q * a->t_k);
    double *room = weft__array(device->base.ctx, size, 3 * sizeof *room);
    if (!room) return weft__fail_oom(device->base.ctx, 3 * size * sizeof *room, "interp: attention");
    s.weights = room, s.kept = room + size, s.dweights = room + 2 * size;
    for (s.b = 0; s.b < a->batch; s.b++)
        for (s.h = 0; s.h < a->heads; s.h++) {
            attend(&s);
            if (a->backward) attend_backward(&s);
        }
    weft__free(device->base.ctx, room);
    return WEFT_OK;
}

/* ---- convolution ---- */

/* Number of the pixel of an image that tap t of the window at pixel p of y is; -1: it is outside. */
static int64_t pixel(const weft_heavy_conv *c, int64_t p, int64_t t) {
    const int64_t i = p / c->y[1] * c->stride[0] + t / c->size[1] * c->dilation[0] - c->padding[0];
    const int64_t j = p % c->y[1] * c->stride[1] + t % c->size[1] * c->dilation[1] - c->padding[1];
    return i < 0 || i >= c->x[0] || j < 0 || j >= c->x[1] ? -1 : i * c->x[1] + j;
}

/* Adds up in f64 what each pair of elements of two of x, w and y gives to one of the third. */
static weft_status conv_run(weft_interp *device, const weft_heavy *heavy, void *const *args,
                            const int64_t *bytes) {
    static const int place[3][3] = {{0, 1, 2}, {2, 1, 0}, {0, 2, 1}}; /* of x, w, y among the operands */
    const weft_heavy_conv *c = &heavy->as.conv;
    const int *at = place[c->pass];
    const int64_t pixels = c->y[0] * c->y[1], taps = c->size[0] * c->size[1], image = c->x[0] * c->x[1];
    const int64_t deep = c->groups * c->in, wide = c->groups * c->out, one = 1;
    const int64_t count[3] = {c->n * image * deep, wide * taps * c->in, c->n * pixels * wide};
    const int result = c->pass == WEFT_CONV_FORWARD ? 2 : c->pass == WEFT_CONV_INPUT ? 0 : 1;
    operand o[3];
    for (int i = 0; i < 3; i++) {
        o[i] = (operand){(weft_dtype)c->dtype, args[at[i]]};
        WEFT_TRY(inside(device, heavy, at[i], bytes[at[i]], o[i].dtype, 1, &count[i], &one));
    }
    double *sum = weft__array(device->base.ctx, (size_t)count[result] + 1, sizeof *sum);
    if (!sum) return weft__fail_oom(device->base.ctx, (size_t)count[result] * sizeof *sum, "interp: conv");
    for (int64_t n = 0; n < c->n; n++)
        for (int64_t p = 0; p < pixels; p++)
            for (int64_t t = 0; t < taps; t++) {
                const int64_t from = pixel(c, p, t);
                for (int64_t k = 0; from >= 0 && k < wide * c->in; k++) {
                    const int64_t to = k / c->in, i = k % c->in;
                    const int64_t e[3] = {(n * image + from) * deep + to / c->out * c->in + i,
                                          (to * taps + t) * c->in + i, (n * pixels + p) * wide + to};
                    double product = 1;
                    for (int q = 0; q < 3; q++)
                        if (q != result) product *= get(o[q], e[q]).f;
                    sum[e[result]] += product;
                }
            }
    for (int64_t i = 0; i < count[result]; i++) put(o[result], i, (weft_value){.f = sum[i]});
    weft__free(device->base.ctx, sum);
    return WEFT_OK;
}

/* ---- scan, order ---- */

static weft_status scan(weft_interp *device, const weft_heavy *heavy, void *const *args,
                        const int64_t *bytes) {
    const weft_heavy_scan *s = &heavy->as.scan;
    const weft_dtype dtype = (weft_dtype)s->dtype;
    const int64_t whole = s->outer * s->extent * s->inner, flat[1] = {1};
    const weft_value start = weft__interp_start(s->product ? WEFT_OP_PROD : WEFT_OP_SUM, dtype);
    for (int i = 0; i < 2; i++) WEFT_TRY(inside(device, heavy, i, bytes[i], dtype, 1, &whole, flat));
    for (int64_t k = 0; k < s->outer * s->inner; k++) {
        weft_value all = start;
        for (int64_t i = 0; i < s->extent; i++) {
            const int64_t row = s->reverse ? s->extent - 1 - i : i;
            const int64_t at = (k / s->inner * s->extent + row) * s->inner + k % s->inner;
            const weft_value next = get((operand){dtype, args[0]}, at);
            if (weft_dtype_is_float(dtype))
                all.f = s->product ? all.f * next.f : all.f + next.f;
            else
                all.i = (int64_t)(s->product ? (uint64_t)all.i * (uint64_t)next.i
                                             : (uint64_t)all.i + (uint64_t)next.i);
            weft__interp_store(dtype, args[1], at, all);
        }
    }
    return WEFT_OK;
}

/* May a, at the smaller position, stand before b? */
static bool in_order(weft_dtype dtype, bool descending, weft_value a, weft_value b) {
    if (!weft_dtype_is_float(dtype)) return descending ? a.i >= b.i : a.i <= b.i;
    if (isnan(a.f) || isnan(b.f)) return descending ? isnan(a.f) : isnan(b.f);
    return descending ? a.f >= b.f : a.f <= b.f;
}

/* Each element's place is how many come before it. */
static weft_status order(weft_interp *device, const weft_heavy *heavy, void *const *args,
                         const int64_t *bytes) {
    const weft_heavy_order *o = &heavy->as.order;
    const weft_dtype dtype = (weft_dtype)o->dtype;
    const int64_t whole = o->rows * o->extent, some = o->rows * o->count, flat[1] = {1};
    WEFT_TRY(inside(device, heavy, 0, bytes[0], dtype, 1, &whole, flat));
    WEFT_TRY(inside(device, heavy, 1, bytes[1], WEFT_I32, 1, &some, flat));
    for (int64_t k = 0; k < whole; k++) {
        const int64_t row = k / o->extent, i = k % o->extent;
        const weft_value v = get((operand){dtype, args[0]}, k);
        int64_t before = 0;
        for (int64_t j = 0; j < o->extent; j++) {
            const weft_value w = get((operand){dtype, args[0]}, row * o->extent + j);
            before +=
                j < i ? in_order(dtype, o->descending, w, v) : j > i && !in_order(dtype, o->descending, v, w);
        }
        if (before < o->count)
            put((operand){WEFT_I32, args[1]}, row * o->count + before, (weft_value){.i = i});
    }
    return WEFT_OK;
}

/* ---- all ---- */

int weft__interp_heavy_operands(const weft_heavy *heavy) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return sums_at(&heavy->as.matmul) + heavy->as.matmul.sums;
    case WEFT_HEAVY_SCATTER: return heavy->as.scatter.based ? 4 : 3;
    case WEFT_HEAVY_UPDATE: return 4;
    case WEFT_HEAVY_CONV: return 3;
    case WEFT_HEAVY_SCAN:
    case WEFT_HEAVY_ORDER: return 2;
    default: return (heavy->as.attention.backward ? MASK : DOUT) + heavy->as.attention.masked;
    }
}

weft_status weft__interp_heavy(weft_interp *device, const weft_heavy *heavy, void *const *args,
                               const int64_t *bytes) {
    switch (heavy->kind) {
    case WEFT_HEAVY_MATMUL: return matmul(device, heavy, args, bytes);
    case WEFT_HEAVY_SCATTER: return scatter(device, heavy, args, bytes);
    case WEFT_HEAVY_UPDATE: return update(device, heavy, args, bytes);
    case WEFT_HEAVY_CONV: return conv_run(device, heavy, args, bytes);
    case WEFT_HEAVY_SCAN: return scan(device, heavy, args, bytes);
    case WEFT_HEAVY_ORDER: return order(device, heavy, args, bytes);
    default: return attention_run(device, heavy, args, bytes);
    }
}
