/* Attention of one (batch, head) pair in one computing type: included by attention.c once for float (f32,
 * f16, bf16) and once for double, which define T, FN (names), GEMM, GEMV and GEMM_SCRATCH (own products),
 * ROWS (the rest of the work), fetch and put before. Only blocks of scores, (bk, LANES), ever exist: the
 * queries are turned, so that a block is keys times queries. No include guard, therefore.
 *
 * Forward: the online softmax of Milakov and Gimelshein (2018) as blocked by Dao et al. (2022, algorithm 1).
 * Backward: the weights again from the log-sum-exp, dS = P * (dP - rowsum(dO * O)) (algorithm 4). */

typedef struct FN(space) {
    T *qt, *doutt;                 /* (d, LANES): queries and output gradients, turned */
    T *s, *dp, *keep, *dropped;    /* (bk, LANES) each */
    T *keep_rows;                  /* (LANES, bk) */
    T *q, *k, *v, *out, *dout;     /* blocks in T, where the tensors are stored otherwise */
    T *sum_out, *most, *sum, *fix; /* forward: (LANES, d), then (LANES) each */
    T *lse, *delta;                /* backward: (LANES), (t_q) and LANES more */
    T *sum_dq, *sum_dk, *sum_dv;   /* backward: (t_q, d) where stored otherwise, (bk, d), (bk, d) */
    void *gemm;
} FN(space);

/* Deals the scratch out; the bytes that it must have. base may be NULL. */
static size_t FN(layout)(const attention_plan *plan, char *base, FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    size_t used = 0, square = (size_t)plan->bk * LANES, d = (size_t)at->d, bk = (size_t)plan->bk;
    bool half = plan->half, back = at->backward, drop = at->dropout > 0;
    sp->qt = TAKE(d * LANES);
    sp->doutt = TAKE(back ? d * LANES : 0);
    sp->s = TAKE(square);
    sp->keep = TAKE(drop ? square : 0);
    sp->keep_rows = TAKE(drop ? square : 0);
    sp->dropped = TAKE(drop && back ? square : 0);
    sp->dp = TAKE(back ? square : 0);
    sp->q = TAKE(half ? LANES * d : 0);
    sp->k = TAKE(half ? bk * d : 0);
    sp->v = TAKE(half ? bk * d : 0);
    sp->out = TAKE(half && back ? LANES * d : 0);
    sp->dout = TAKE(half && back ? LANES * d : 0);
    sp->sum_out = TAKE(back ? 0 : LANES * d);
    sp->most = TAKE(back ? 0 : LANES);
    sp->sum = TAKE(back ? 0 : LANES);
    sp->fix = TAKE(back ? 0 : LANES);
    sp->lse = TAKE(back ? LANES : 0);
    sp->delta = TAKE(back ? (size_t)at->t_q + LANES : 0);
    sp->sum_dq = TAKE(back && half ? (size_t)at->t_q * d : 0);
    sp->sum_dk = TAKE(back ? bk * d : 0);
    sp->sum_dv = TAKE(back ? bk * d : 0);
    const weft_gemm products[] = {{.m = plan->bk, .n = LANES, .k = at->d, .b_n = 1},
                                  {.m = LANES, .n = at->d, .k = plan->bk, .b_n = 1},
                                  {.m = plan->bk, .n = at->d, .k = LANES, .b_n = 1}};
    size_t most = 0;
    for (int i = 0; i < 3; i++) {
        size_t need = plan->own->GEMM_SCRATCH(&products[i]);
        if (need > most) most = need;
    }
    sp->gemm = TAKE(most / sizeof(T) + 1);
    return used;
}

/* s (nk, LANES) = x y^T: x rows of d, y turned. */
static void FN(scores_of)(const attention_plan *plan, int64_t nk, const T *x, int64_t ldx, const T *yt, T *s,
                          void *scratch) {
    const weft_gemm g = {
        .m = nk, .n = LANES, .k = plan->at.d, .a_m = ldx, .a_k = 1, .b_k = LANES, .b_n = 1, .c_m = LANES};
    plan->own->GEMM(&g, x, yt, s, scratch);
}

/* to (queries, d) += s^T x: s (keys, LANES), x rows of d, one for each key. */
static void FN(add_to_queries)(const attention_plan *plan, int64_t nq, int64_t nk, const T *s, const T *x,
                               int64_t ldx, T *to, int64_t ld, void *scratch) {
    const weft_gemm g = {.m = nq,
                         .n = plan->at.d,
                         .k = nk,
                         .a_m = 1,
                         .a_k = LANES,
                         .b_k = ldx,
                         .b_n = 1,
                         .c_m = ld,
                         .add = true};
    plan->own->GEMM(&g, s, x, to, scratch);
}

/* to (keys, d) += s x: s (keys, LANES), x rows of d, one for each query. */
static void FN(add_to_keys)(const attention_plan *plan, int64_t nq, int64_t nk, const T *s, const T *x,
                            int64_t ldx, T *to, void *scratch) {
    const weft_gemm g = {.m = nk,
                         .n = plan->at.d,
                         .k = nq,
                         .a_m = LANES,
                         .a_k = 1,
                         .b_k = ldx,
                         .b_n = 1,
                         .c_m = plan->at.d,
                         .add = true};
    plan->own->GEMM(&g, s, x, to, scratch);
}

/* The n dropout factors of query i of a pair from key j on. */
static void FN(keep_row)(const attention_plan *plan, const uint32_t *key, int64_t pair, int64_t i, int64_t j,
                         int64_t n, T *keep) {
    uint64_t origin = key[4] | (uint64_t)key[5] << 32;
    uint64_t first = origin + (uint64_t)((pair * plan->at.t_q + i) * plan->at.t_k + j);
    plan->own->ROWS.keep(n, keep, first, key, (T)plan->at.dropout, (T)(1 / (1 - plan->at.dropout)));
}

/* Those of the block of scores that begins at (i, j). */
static void FN(keep_block)(const attention_plan *plan, const uint32_t *key, int64_t pair, int64_t i,
                           int64_t nq, int64_t j, int64_t nk, const FN(space) * sp) {
    for (int64_t r = 0; r < nq; r++)
        FN(keep_row)(plan, key, pair, i + r, j, nk, sp->keep_rows + r * plan->bk);
    plan->own->ROWS.turn(nq, nk, sp->keep_rows, plan->bk, 1, sp->keep);
}

/* A single query, as in decoding: nothing is turned that is read once. */
static void FN(one_query)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i, const T *q,
                          const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, end = visible(plan, shift_of(plan, args), i + 1), ldk, ldv;
    for (int64_t j = 0; j < end; j += plan->bk) {
        int64_t nk = end - j < plan->bk ? end - j : plan->bk;
        const T *k = FN(fetch)(plan, args[1], at->k, pair, j, nk, sp->k, &ldk);
        const T *v = FN(fetch)(plan, args[2], at->v, pair, j, nk, sp->v, &ldv);
        const weft_gemv dots = {.rows = nk, .k = d, .x_i = ldk, .x_k = 1, .out_i = 1};
        plan->own->GEMV(&dots, k, q, sp->s);
        T keep = plan->own->ROWS.one(nk, sp->s, (T)at->scale, sp->most, sp->sum);
        if (keep != 1) plan->own->ROWS.scale(d, sp->sum_out, keep);
        if (at->dropout > 0) {
            FN(keep_row)(plan, args[3], pair, i, j, nk, sp->keep);
            plan->own->ROWS.multiply(nk, sp->s, sp->keep, sp->s);
        }
        const weft_gemv add = {.rows = d, .k = nk, .x_i = 1, .x_k = ldv, .out_i = 1, .add = true};
        plan->own->GEMV(&add, v, sp->s, sp->sum_out);
    }
}

/* Queries i0 .. i0 + nq - 1 of a pair. */
static void FN(many_queries)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i0,
                             int64_t nq, const T *q, int64_t ldq, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, off = shift_of(plan, args), end = visible(plan, off, i0 + nq), ldk, ldv;
    plan->own->ROWS.turn(nq, d, q, ldq, (T)at->scale, sp->qt);
    for (int64_t j = 0; j < end; j += plan->bk) {
        int64_t nk = end - j < plan->bk ? end - j : plan->bk;
        const T *k = FN(fetch)(plan, args[1], at->k, pair, j, nk, sp->k, &ldk);
        const T *v = FN(fetch)(plan, args[2], at->v, pair, j, nk, sp->v, &ldv);
        FN(scores_of)(plan, nk, k, ldk, sp->qt, sp->s, sp->gemm);
        plan->own->ROWS.weights(nk, at->causal ? j - i0 - off : -nk, sp->s, sp->most, sp->sum, sp->fix);
        for (int64_t r = 0; j > 0 && r < nq; r++)
            if (sp->fix[r] != 1) plan->own->ROWS.scale(d, sp->sum_out + r * d, sp->fix[r]);
        if (at->dropout > 0) {
            FN(keep_block)(plan, args[3], pair, i0, nq, j, nk, sp);
            plan->own->ROWS.multiply(nk * LANES, sp->s, sp->keep, sp->s);
        }
        FN(add_to_queries)(plan, nq, nk, sp->s, v, ldv, sp->sum_out, d, sp->gemm);
    }
}

static void FN(forward_block)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i0,
                              int64_t nq, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, ldq;
    const T *q = FN(fetch)(plan, args[0], at->q, pair, i0, nq, sp->q, &ldq);
    memset(sp->sum_out, 0, (size_t)(nq * d) * sizeof(T));
    for (int64_t r = 0; r < LANES; r++) sp->most[r] = -(T)INFINITY, sp->sum[r] = 0;
    if (nq == 1)
        FN(one_query)(plan, args, pair, i0, q, sp);
    else
        FN(many_queries)(plan, args, pair, i0, nq, q, ldq, sp);
    T lse[LANES];
    plan->own->ROWS.finish(sp->most, sp->sum, lse, sp->fix);
    memcpy((T *)args[5] + pair * at->t_q + i0, lse, (size_t)nq * sizeof(T));
    for (int64_t r = 0; r < nq; r++) plan->own->ROWS.scale(d, sp->sum_out + r * d, sp->fix[r]);
    FN(put)(plan, args[4], at->out, pair, i0, nq, sp->sum_out, d);
}

/* The start of a pair's backward pass: delta[i] = out[i] . dout[i], and dq (t_q, d) zero. */
static void FN(backward_begin)(const attention_plan *plan, void *const *args, int64_t pair,
                               const FN(space) * sp, T *dq, int64_t lddq) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, ldo, lddo;
    for (int64_t i0 = 0; i0 < at->t_q; i0 += LANES) {
        int64_t nq = at->t_q - i0 < LANES ? at->t_q - i0 : LANES;
        const T *out = FN(fetch)(plan, args[4], at->out, pair, i0, nq, sp->out, &ldo);
        const T *dout = FN(fetch)(plan, args[6], at->dout, pair, i0, nq, sp->dout, &lddo);
        for (int64_t r = 0; r < nq; r++) {
            sp->delta[i0 + r] = plan->own->ROWS.dot(d, out + r * ldo, dout + r * lddo);
            memset(dq + (i0 + r) * lddq, 0, (size_t)d * sizeof(T));
        }
    }
}

/* What queries i .. i + nq - 1 and keys j .. j + nk - 1 give to each other's gradients. */
static void FN(backward_block)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i,
                               int64_t nq, int64_t j, int64_t nk, const T *k, int64_t ldk, const T *v,
                               int64_t ldv, T *dq, int64_t lddq, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, ldq, lddo;
    const T *q = FN(fetch)(plan, args[0], at->q, pair, i, nq, sp->q, &ldq);
    const T *dout = FN(fetch)(plan, args[6], at->dout, pair, i, nq, sp->dout, &lddo);
    const T *dropped = sp->s;
    memset(sp->lse, 0, LANES * sizeof(T));
    memcpy(sp->lse, (const T *)args[5] + pair * at->t_q + i, (size_t)nq * sizeof(T));
    plan->own->ROWS.turn(nq, d, q, ldq, (T)at->scale, sp->qt);
    plan->own->ROWS.turn(nq, d, dout, lddo, 1, sp->doutt);
    FN(scores_of)(plan, nk, k, ldk, sp->qt, sp->s, sp->gemm);
    plan->own->ROWS.again(nk, at->causal ? j - i - shift_of(plan, args) : -nk, sp->s, sp->lse);
    FN(scores_of)(plan, nk, v, ldv, sp->doutt, sp->dp, sp->gemm);
    if (at->dropout > 0) {
        FN(keep_block)(plan, args[3], pair, i, nq, j, nk, sp);
        plan->own->ROWS.multiply(nk * LANES, sp->s, sp->keep, sp->dropped);
        plan->own->ROWS.multiply(nk * LANES, sp->dp, sp->keep, sp->dp);
        dropped = sp->dropped;
    }
    FN(add_to_keys)(plan, nq, nk, dropped, dout, lddo, sp->sum_dv, sp->gemm);
    plan->own->ROWS.scores(nk, sp->s, sp->dp, sp->delta + i, (T)at->scale);
    FN(add_to_queries)(plan, nq, nk, sp->dp, k, ldk, dq + i * lddq, lddq, sp->gemm);
    FN(add_to_keys)(plan, nq, nk, sp->dp, q, ldq, sp->sum_dk, sp->gemm);
}

/* The gradients of a pair. dq is summed over the key blocks in its own place, dk and dv in the scratch. */
static void FN(backward_pair)(const attention_plan *plan, void *const *args, int64_t pair,
                              const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, off = shift_of(plan, args), ldk, ldv, lddq = d, bk = plan->bk;
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
        if (at->causal && j > off) first = (j - off) / LANES * LANES;
        for (int64_t i = first; i < at->t_q; i += LANES) {
            int64_t nq = at->t_q - i < LANES ? at->t_q - i : LANES, nk = visible(plan, off, i + nq) - j;
            if (nk > width) nk = width;
            if (nk > 0) FN(backward_block)(plan, args, pair, i, nq, j, nk, k, ldk, v, ldv, dq, lddq, sp);
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
        int64_t blocks = (at->t_q + LANES - 1) / LANES;
        if (last > plan->pairs) last = plan->pairs;
        for (int64_t pair = first; pair < last; pair++) {
            if (at->backward) {
                FN(backward_pair)(plan, args, pair, &sp);
                continue;
            }
            for (int64_t b = blocks * part / plan->q_parts; b < blocks * (part + 1) / plan->q_parts; b++) {
                int64_t i0 = b * LANES, left = at->t_q - i0;
                FN(forward_block)(plan, args, pair, i0, left < LANES ? left : LANES, &sp);
            }
        }
    }
}
