/* Attention of one (batch, head) pair in one computing type: included by attention.c once for float (f32,
 * f16, bf16) and once for double, which define T, FN (names), GEMM, GEMV and GEMM_SCRATCH (own products),
 * ROWS (row work), fetch and put before. Only blocks of (bq, bk) scores ever exist. No include guard,
 * therefore.
 *
 * Forward: the online softmax of Milakov and Gimelshein (2018) as blocked by Dao et al. (2022, algorithm 1).
 * Backward: the weights again from the log-sum-exp, dS = P * (dP - rowsum(dO * O)) (algorithm 4). */

typedef struct FN(space) {
    T *s, *dp, *keep, *dropped; /* (bq, bk) each */
    T *q, *k, *v, *out, *dout;  /* blocks in T, where the tensors are stored otherwise */
    T *sum_out, *most, *sum;    /* forward: (bq, d), (bq), (bq) */
    T *delta, *sum_dq, *sum_dk,
        *sum_dv; /* backward: (t_q), (t_q, d) where stored otherwise, (bk, d), (bk, d) */
    void *gemm;
} FN(space);

/* Deals the scratch out; the bytes that it must have. base may be NULL. */
static size_t FN(layout)(const attention_plan *plan, char *base, FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    size_t used = 0, square = (size_t)(plan->bq * plan->bk), d = (size_t)at->d;
    size_t bq = (size_t)plan->bq, bk = (size_t)plan->bk;
    bool half = plan->half, back = at->backward, drop = at->dropout > 0;
    sp->s = TAKE(square);
    sp->keep = TAKE(drop ? square : 0);
    sp->dropped = TAKE(drop && back ? square : 0);
    sp->dp = TAKE(back ? square : 0);
    sp->q = TAKE(half ? bq * d : 0);
    sp->k = TAKE(half ? bk * d : 0);
    sp->v = TAKE(half ? bk * d : 0);
    sp->out = TAKE(half && back ? bq * d : 0);
    sp->dout = TAKE(half && back ? bq * d : 0);
    sp->sum_out = TAKE(back ? 0 : bq * d);
    sp->most = TAKE(back ? 0 : bq);
    sp->sum = TAKE(back ? 0 : bq);
    sp->delta = TAKE(back ? (size_t)at->t_q : 0);
    sp->sum_dq = TAKE(back && half ? (size_t)at->t_q * d : 0);
    sp->sum_dk = TAKE(back ? bk * d : 0);
    sp->sum_dv = TAKE(back ? bk * d : 0);
    const weft_gemm products[] = {{.m = plan->bq, .n = plan->bk, .k = at->d, .b_n = 2},
                                  {.m = plan->bq, .n = at->d, .k = plan->bk, .b_n = 1},
                                  {.m = plan->bk, .n = at->d, .k = plan->bq, .b_n = 1}};
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        size_t need = plan->own->GEMM_SCRATCH(&products[i]);
        if (need > most) most = need;
    }
    sp->gemm = TAKE(most / sizeof(T) + 1);
    return used;
}

/* s (nq, nk) = x y^T, both with rows of d. */
static void FN(scores_of)(const attention_plan *plan, int64_t nq, int64_t nk, const T *x, int64_t ldx,
                          const T *y, int64_t ldy, T *s, void *scratch) {
    if (nq == 1) { /* decoding: nothing is packed that is read once */
        const weft_gemv one = {.rows = nk, .k = plan->at.d, .x_i = ldy, .x_k = 1, .v_k = 1, .out_i = 1};
        plan->own->GEMV(&one, y, x, s, scratch);
        return;
    }
    const weft_gemm g = {
        .m = nq, .n = nk, .k = plan->at.d, .a_m = ldx, .a_k = 1, .b_k = 1, .b_n = ldy, .c_m = plan->bk};
    plan->own->GEMM(&g, x, y, s, scratch);
}

/* keep = dropout factors of the block of scores that begins at (i, j) of a pair. */
static void FN(keep_block)(const attention_plan *plan, const uint32_t *key, int64_t pair, int64_t i,
                           int64_t nq, int64_t j, int64_t nk, T *keep) {
    uint64_t origin = key[4] | (uint64_t)key[5] << 32;
    for (int64_t r = 0; r < nq; r++) {
        uint64_t first = origin + (uint64_t)((pair * plan->at.t_q + i + r) * plan->at.t_k + j);
        plan->own->ROWS.keep(nk, keep + r * plan->bk, first, key, (T)plan->at.dropout,
                             (T)(1 / (1 - plan->at.dropout)));
    }
}

static void FN(multiply_block)(const attention_plan *plan, int64_t nq, int64_t nk, const T *x, const T *y,
                               T *to) {
    for (int64_t r = 0; r < nq; r++)
        plan->own->ROWS.multiply(nk, x + r * plan->bk, y + r * plan->bk, to + r * plan->bk);
}

/* Queries i0 .. i0 + nq - 1 of a pair. */
static void FN(forward_block)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i0,
                              int64_t nq, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, off = shift_of(plan, args), end = visible(plan, off, i0 + nq), ldq, ldk, ldv;
    const T *q = FN(fetch)(plan, args[0], at->q, pair, i0, nq, sp->q, &ldq);
    memset(sp->sum_out, 0, (size_t)(nq * d) * sizeof(T));
    for (int64_t r = 0; r < nq; r++) sp->most[r] = -(T)INFINITY, sp->sum[r] = 0;
    for (int64_t j = 0; j < end; j += plan->bk) {
        int64_t nk = end - j < plan->bk ? end - j : plan->bk;
        const T *k = FN(fetch)(plan, args[1], at->k, pair, j, nk, sp->k, &ldk);
        const T *v = FN(fetch)(plan, args[2], at->v, pair, j, nk, sp->v, &ldv);
        FN(scores_of)(plan, nq, nk, q, ldq, k, ldk, sp->s, sp->gemm);
        plan->own->ROWS.weights(nq, nk, sp->s, plan->bk, at->causal ? i0 + off + 1 - j : nk, at->causal,
                                (T)at->scale, sp->most, sp->sum, sp->sum_out, d);
        if (at->dropout > 0) {
            FN(keep_block)(plan, args[3], pair, i0, nq, j, nk, sp->keep);
            FN(multiply_block)(plan, nq, nk, sp->s, sp->keep, sp->s);
        }
        if (nq == 1 && ldv > 1) {
            const weft_gemv one = {
                .rows = d, .k = nk, .x_i = 1, .x_k = ldv, .v_k = 1, .out_i = 1, .add = true};
            plan->own->GEMV(&one, v, sp->s, sp->sum_out, sp->gemm);
            continue;
        }
        const weft_gemm g = {
            .m = nq, .n = d, .k = nk, .a_m = plan->bk, .a_k = 1, .b_k = ldv, .b_n = 1, .c_m = d, .add = true};
        plan->own->GEMM(&g, sp->s, v, sp->sum_out, sp->gemm);
    }
    T *lse = (T *)args[5] + pair * at->t_q + i0;
    for (int64_t r = 0; r < nq; r++) {
        lse[r] = sp->sum[r] == 0 ? -(T)INFINITY : sp->most[r] + w_log(sp->sum[r]);
        if (sp->sum[r] != 0) plan->own->ROWS.scale(d, sp->sum_out + r * d, 1 / sp->sum[r]);
    }
    FN(put)(plan, args[4], at->out, pair, i0, nq, sp->sum_out, d);
}

/* The start of a pair's backward pass: delta[i] = out[i] . dout[i], and dq (t_q, d) zero. */
static void FN(backward_begin)(const attention_plan *plan, void *const *args, int64_t pair,
                               const FN(space) * sp, T *dq, int64_t lddq) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, ldo, lddo;
    for (int64_t i0 = 0; i0 < at->t_q; i0 += plan->bq) {
        int64_t nq = at->t_q - i0 < plan->bq ? at->t_q - i0 : plan->bq;
        const T *out = FN(fetch)(plan, args[4], at->out, pair, i0, nq, sp->out, &ldo);
        const T *dout = FN(fetch)(plan, args[6], at->dout, pair, i0, nq, sp->dout, &lddo);
        for (int64_t r = 0; r < nq; r++) {
            sp->delta[i0 + r] = plan->own->ROWS.dot(d, out + r * ldo, dout + r * lddo);
            memset(dq + (i0 + r) * lddq, 0, (size_t)d * sizeof(T));
        }
    }
}

/* The gradients of a pair. dq is summed over the key blocks in its own place, dk and dv in the scratch. */
static void FN(backward_pair)(const attention_plan *plan, void *const *args, int64_t pair,
                              const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, off = shift_of(plan, args), ldq, ldk, ldv, lddo, lddq = d, bk = plan->bk;
    const T *lse = (const T *)args[5] + pair * at->t_q;
    T *dq = sp->sum_dq;
    if (!plan->half) {
        lddq = at->dq[2];
        dq = (T *)args[7] + place(plan, at->dq, pair, 0);
    }
    FN(backward_begin)(plan, args, pair, sp, dq, lddq);
    for (int64_t j = 0; j < at->t_k; j += bk) {
        int64_t width = at->t_k - j < bk ? at->t_k - j : bk, first = 0;
        const T *k = FN(fetch)(plan, args[1], at->k, pair, j, width, sp->k, &ldk);
        const T *v = FN(fetch)(plan, args[2], at->v, pair, j, width, sp->v, &ldv);
        memset(sp->sum_dk, 0, (size_t)(width * d) * sizeof(T));
        memset(sp->sum_dv, 0, (size_t)(width * d) * sizeof(T));
        if (at->causal && j > off) first = (j - off) / plan->bq * plan->bq;
        for (int64_t i = first; i < at->t_q; i += plan->bq) {
            int64_t nq = at->t_q - i < plan->bq ? at->t_q - i : plan->bq, nk = visible(plan, off, i + nq) - j;
            if (nk > width) nk = width;
            if (nk <= 0) continue;
            const T *q = FN(fetch)(plan, args[0], at->q, pair, i, nq, sp->q, &ldq);
            const T *dout = FN(fetch)(plan, args[6], at->dout, pair, i, nq, sp->dout, &lddo);
            const T *dropped = sp->s;
            FN(scores_of)(plan, nq, nk, q, ldq, k, ldk, sp->s, sp->gemm);
            plan->own->ROWS.again(nq, nk, sp->s, bk, at->causal ? i + off + 1 - j : nk, at->causal,
                                  (T)at->scale, lse + i);
            FN(scores_of)(plan, nq, nk, dout, lddo, v, ldv, sp->dp, sp->gemm);
            if (at->dropout > 0) {
                FN(keep_block)(plan, args[3], pair, i, nq, j, nk, sp->keep);
                FN(multiply_block)(plan, nq, nk, sp->s, sp->keep, sp->dropped);
                FN(multiply_block)(plan, nq, nk, sp->dp, sp->keep, sp->dp);
                dropped = sp->dropped;
            }
            const weft_gemm gv = {
                .m = nk, .n = d, .k = nq, .a_m = 1, .a_k = bk, .b_k = lddo, .b_n = 1, .c_m = d, .add = true};
            plan->own->GEMM(&gv, dropped, dout, sp->sum_dv, sp->gemm);
            plan->own->ROWS.scores(nq, nk, sp->s, sp->dp, bk, sp->delta + i, (T)at->scale);
            const weft_gemm gq = {.m = nq,
                                  .n = d,
                                  .k = nk,
                                  .a_m = bk,
                                  .a_k = 1,
                                  .b_k = ldk,
                                  .b_n = 1,
                                  .c_m = lddq,
                                  .add = true};
            plan->own->GEMM(&gq, sp->dp, k, dq + i * lddq, sp->gemm);
            const weft_gemm gk = {
                .m = nk, .n = d, .k = nq, .a_m = 1, .a_k = bk, .b_k = ldq, .b_n = 1, .c_m = d, .add = true};
            plan->own->GEMM(&gk, sp->dp, q, sp->sum_dk, sp->gemm);
        }
        FN(put)(plan, args[8], at->dk, pair, j, width, sp->sum_dk, d);
        FN(put)(plan, args[9], at->dv, pair, j, width, sp->sum_dv, d);
    }
    if (plan->half) FN(put)(plan, args[7], at->dq, pair, 0, at->t_q, dq, d);
}

static void FN(run)(const void *plan_, void *const *args, int64_t begin, int64_t end, void *scratch,
                    weft_fault *fault) {
    (void)fault;
    const attention_plan *plan = plan_;
    const weft_heavy_attention *at = &plan->at;
    FN(space) sp;
    FN(layout)(plan, scratch, &sp);
    for (int64_t task = begin; task < end; task++) {
        int64_t first = task / plan->q_parts * plan->group, last = first + plan->group,
                part = task % plan->q_parts;
        int64_t blocks = (at->t_q + plan->bq - 1) / plan->bq;
        if (last > plan->pairs) last = plan->pairs;
        for (int64_t pair = first; pair < last; pair++) {
            if (at->backward) {
                FN(backward_pair)(plan, args, pair, &sp);
                continue;
            }
            for (int64_t b = blocks * part / plan->q_parts; b < blocks * (part + 1) / plan->q_parts; b++) {
                int64_t i0 = b * plan->bq, left = at->t_q - i0;
                FN(forward_block)(plan, args, pair, i0, left < plan->bq ? left : plan->bq, &sp);
            }
        }
    }
}
