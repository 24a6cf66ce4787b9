/* A matmul by its definition: first the whole matmul, then its epilogue.
 * Must not know: other devices. Read next: heavy/matmul.h. */
#include <string.h>
#include "interp/heavy/heavy.h"

bool weft__interp_matmul_takes(const weft_heavy_matmul *heavy) {
    return !weft_dtype_is_complex((weft_dtype)heavy->dtype);
}

static weft_value dot(const weft_heavy_matmul *m, interp_operand a, interp_operand b, int64_t at_a,
                      int64_t at_b) {
    if (weft_dtype_is_float(a.dtype)) {
        double sum = 0;
        for (int64_t k = 0; k < m->k; k++)
            sum += interp_get(a, at_a + k * m->a_k).f * interp_get(b, at_b + k * m->b_k).f;
        return (weft_value){.f = sum};
    }
    uint64_t sum = 0;
    for (int64_t k = 0; k < m->k; k++)
        sum += (uint64_t)interp_get(a, at_a + k * m->a_k).i * (uint64_t)interp_get(b, at_b + k * m->b_k).i;
    return weft__interp_cast(WEFT_I64, (weft_dtype)m->out_dtype, (weft_value){.i = (int64_t)sum});
}

static void matmul_block(const weft_heavy_matmul *m, interp_operand a, interp_operand b, interp_operand c) {
    for (int64_t i = 0; i < m->m; i++)
        for (int64_t j = 0; j < m->n; j++)
            interp_put(c, i * m->c_m + j, dot(m, a, b, i * m->a_m, j * m->b_n));
}

static weft_status interp_matmul_product(weft_interp *device, const weft_heavy *heavy, void *const *args,
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
        WEFT_TRY(
            weft__interp_inside(device, heavy, o, bytes[o], o < 2 ? in : out, r + 2, extent[o], stride[o]));
    for (int64_t i = 0; i < batches; i++) {
        int64_t rest = i, at[3] = {0, 0, 0};
        for (int d = r - 1; d >= 0; d--) {
            for (int o = 0; o < 3; o++) at[o] += rest % m->batch[d] * stride[o][d];
            rest /= m->batch[d];
        }
        const int64_t in_size = (int64_t)weft_dtype_size(in), out_size = (int64_t)weft_dtype_size(out);
        matmul_block(m, (interp_operand){in, (char *)args[0] + at[0] * in_size},
                     (interp_operand){in, (char *)args[1] + at[1] * in_size},
                     (interp_operand){out, (char *)args[2] + at[2] * out_size});
    }
    return WEFT_OK;
}

/* Returns the bytes of operand o (0: a, 1: b) from its first to its last element. */
static int64_t span(const weft_heavy_matmul *m, int o) {
    int64_t last = o ? (m->k - 1) * m->b_k + (m->n - 1) * m->b_n : (m->m - 1) * m->a_m + (m->k - 1) * m->a_k;
    for (int d = 0; d < m->batch_rank; d++) last += (m->batch[d] - 1) * (o ? m->b_batch : m->a_batch)[d];
    return (last + 1) * (int64_t)weft_dtype_size((weft_dtype)m->dtype);
}

/* Returns an error unless an epilogue's arguments are inside their buffers, and what it writes does not
 * overlap what the matmul still reads. */
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
            return weft__fail(device->base.ctx, WEFT_ERR_INTERNAL,
                              "interp: argument %d of a matmul's epilogue %s leaves its buffer, or is "
                              "written where the matmul reads",
                              i, m->epilogue->name);
    }
    return WEFT_OK;
}

static weft_status sum_rows(weft_interp *device, const weft_heavy *heavy, void *const *args,
                            const int64_t *bytes) {
    const weft_heavy_matmul *m = &heavy->as.matmul;
    const int at = weft__matmul_sums_at(m);
    const interp_operand a = {(weft_dtype)m->dtype, args[0]}, to = {weft__matmul_sums_dtype(m), args[at]};
    WEFT_TRY(weft__interp_inside(device, heavy, at, bytes[at], to.dtype, 1, &m->m, &(int64_t){1}));
    for (int64_t i = 0; i < m->m; i++) {
        double sum = 0;
        for (int64_t k = 0; k < m->k; k++) sum += interp_get(a, i * m->a_m + k * m->a_k).f;
        interp_put(to, i, (weft_value){.f = sum});
    }
    return WEFT_OK;
}

/* Computes the whole matmul, then its epilogue. */
weft_status weft__interp_matmul(weft_interp *device, const weft_heavy *heavy, void *const *args,
                                const int64_t *bytes) {
    const weft_heavy_matmul *m = &heavy->as.matmul;
    if (m->sums) WEFT_TRY(sum_rows(device, heavy, args, bytes));
    if (!m->epilogue) return interp_matmul_product(device, heavy, args, bytes);
    weft_context *ctx = device->base.ctx;
    const int n = m->epilogue->n_args;
    const int64_t size =
        m->epilogue->args[m->product].elements * (int64_t)weft_dtype_size((weft_dtype)m->out_dtype);
    WEFT_TRY(check_epilogue(device, heavy, args, bytes));
    void **list = weft__array(ctx, (size_t)n, sizeof *list);
    void *c = weft__alloc_aligned(ctx, (size_t)size);
    weft_status status = list && c ? WEFT_OK : weft__fail_oom(ctx, (size_t)size, "interp: a matmul");
    if (status == WEFT_OK) {
        memcpy(list, args + 2, (size_t)n * sizeof *list);
        if (!m->epilogue->args[m->product].written) list[m->product] = c;
        status = interp_matmul_product(device, heavy, (void *[]){args[0], args[1], list[m->product]},
                                       (int64_t[]){bytes[0], bytes[1], size});
    }
    if (status == WEFT_OK) status = weft__interp_kernel(device, m->epilogue, list);
    weft__free(ctx, list);
    weft__free_aligned(ctx, c);
    return status;
}
