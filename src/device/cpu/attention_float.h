/* Attention of one (batch, head) pair in one computing type: included by attention.c once for float (f32,
 * f16, bf16) and once for double, which define T, FN (names), GEMM, GEMV and GEMM_SCRATCH (own products),
 * ROWS (the rest of the work), fetch and put before. No include guard, therefore. Only blocks of scores ever
 * exist: of keys times queries forward, where LANES queries are turned and meet the keys block by block, of
 * queries times keys backward, where bk keys and values are turned and meet bq queries after the other.
 *
 * Forward: the online softmax of Milakov and Gimelshein (2018) as blocked by Dao et al. (2022, algorithm 1).
 * Backward: the weights again from the log-sum-exp, dS = P * (dP - rowsum(dO * O)) (algorithm 4). */

typedef struct FN(space) {
    T *qt, *keep_rows;             /* forward: (d, LANES) queries turned, (LANES, bk) */
    T *s, *keep;                   /* forward (bk, LANES) each; backward (bq, bk) and (bk) */
    T *bias, *bias_rows;           /* of a mask; forward (bk, LANES), (LANES, bk); backward (bk) */
    T *q, *k, *v, *out, *dout;     /* blocks in T, where the tensors are stored otherwise */
    T *sum_out, *most, *sum, *fix; /* forward: (LANES, d), then (LANES) each */
    T *kt, *vt, *dp, *delta;       /* backward: (d, bk) keys and values turned, (bq, bk), (t_q) */
    T *sum_dq, *sum_dk, *sum_dv;   /* backward, where stored otherwise: (t_q, d), (bk, d), (bk, d) */
    void *gemm;
    weft_lookahead *ahead;
} FN(space);

/* Deals the scratch out; the bytes that it must have. base may be NULL. */
static size_t FN(layout)(const attention_plan *plan, char *base, FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    size_t used = 0, d = (size_t)at->d, bk = (size_t)plan->bk, bq = (size_t)plan->bq, square = bk * bq;
    bool half = plan->half, back = at->backward, drop = at->dropout > 0;
    sp->qt = TAKE(back ? 0 : d * LANES);
    sp->s = TAKE(square);
    sp->keep = TAKE(!drop ? 0 : back ? bk : square);
    sp->keep_rows = TAKE(drop && !back ? square : 0);
    sp->bias = TAKE(!at->masked ? 0 : back ? bk : square);
    sp->bias_rows = TAKE(at->masked && !back ? square : 0);
    sp->q = TAKE(half ? bq * d : 0);
    sp->k = TAKE(half ? bk * d : 0);
    sp->v = TAKE(half ? bk * d : 0);
    sp->out = TAKE(half && back ? bq * d : 0);
    sp->dout = TAKE(half && back ? bq * d : 0);
    sp->sum_out = TAKE(back ? 0 : LANES * d);
    sp->most = TAKE(back ? 0 : LANES);
    sp->sum = TAKE(back ? 0 : LANES);
    sp->fix = TAKE(back ? 0 : LANES);
    sp->kt = TAKE(back ? d * bk : 0);
    sp->vt = TAKE(back ? d * bk : 0);
    sp->dp = TAKE(back ? square : 0);
    sp->delta = TAKE(back ? (size_t)at->t_q : 0);
    sp->sum_dq = TAKE(back && half ? (size_t)at->t_q * d : 0);
    sp->sum_dk = TAKE(back && half ? bk * d : 0);
    sp->sum_dv = TAKE(back && half ? bk * d : 0);
    const weft_gemm products[] = {{.m = plan->bk, .n = plan->bq, .k = at->d, .b_n = 1},
                                  {.m = plan->bq, .n = plan->bk, .k = at->d, .b_n = 1},
                                  {.m = plan->bq, .n = at->d, .k = plan->bk, .b_n = 1},
                                  {.m = plan->bk, .n = at->d, .k = plan->bq, .b_n = 1}};
    size_t most = 0;
    for (int i = 0; i < 4; i++) {
        size_t need = plan->own->GEMM_SCRATCH(&products[i]);
        if (need > most) most = need;
    }
    sp->gemm = TAKE(most / sizeof(T) + 1);
    return used;
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
    plan->own->ROWS.turn(nq, nk, sp->keep_rows, plan->bk, 1, LANES, sp->keep);
}

/* What the mask adds to the scores of query i of a pair from key j on: where it lies, or in buffer. */
static const T *FN(mask_row)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i,
                             int64_t j, int64_t n, T *buffer) {
    const void *from = mask_at(plan, args, pair, i, j);
    const int64_t step = plan->at.mask[3];
    if (plan->at.mask_dtype == WEFT_BOOL) {
        if (step == 1) plan->own->ROWS.open(n, from, buffer);
        for (int64_t k = 0; k < n && step != 1; k++)
            buffer[k] = ((const uint8_t *)from)[k * step] ? 0 : -(T)INFINITY;
        return buffer;
    }
    if (step == 1) return from;
    for (int64_t k = 0; k < n; k++) buffer[k] = ((const T *)from)[k * step];
    return buffer;
}

/* Scores of a block forward, as the mask lets them through. */
static void FN(mask_block)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i, int64_t nq,
                           int64_t j, int64_t nk, const FN(space) * sp) {
    const T *rows = FN(mask_row)(plan, args, pair, i, j, nk, sp->bias_rows);
    if (plan->at.mask[2] == 0) {
        plan->own->ROWS.mask_keys(nk, sp->s, rows);
        return;
    }
    const int64_t ld = rows == sp->bias_rows ? plan->bk : plan->at.mask[2];
    for (int64_t r = 1; r < nq && rows == sp->bias_rows; r++)
        FN(mask_row)(plan, args, pair, i + r, j, nk, sp->bias_rows + r * ld);
    plan->own->ROWS.turn(nq, nk, rows, ld, 1, LANES, sp->bias);
    plan->own->ROWS.mask(nk * LANES, sp->s, sp->bias, 0);
}

/* A single query, as in decoding: nothing is turned that is read once. */
static void FN(one_query)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i, const T *q,
                          const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, end = visible(plan, shift_of(plan, args), i + 1), ldk, ldv;
    for (int64_t j = 0; j < end; j += plan->bk) {
        int64_t nk = end - j < plan->bk ? end - j : plan->bk;
        if (!any_seen(plan, args, pair, i, 1, j, nk)) continue;
        const T *k = FN(fetch)(plan, args[1], at->k, pair, j, nk, sp->k, &ldk);
        const T *v = FN(fetch)(plan, args[2], at->v, pair, j, nk, sp->v, &ldv);
        const weft_gemv dots = {.rows = nk, .k = d, .x_i = ldk, .x_k = 1, .out_i = 1};
        plan->own->GEMV(&dots, k, q, sp->s);
        T scale = (T)at->scale;
        if (at->masked) {
            const T *bias = FN(mask_row)(plan, args, pair, i, j, nk, sp->bias_rows);
            plan->own->ROWS.scale(nk, sp->s, scale, sp->s);
            plan->own->ROWS.mask(nk, sp->s, bias, 0);
            scale = 1;
        }
        T keep = plan->own->ROWS.one(nk, sp->s, scale, sp->most, sp->sum);
        if (keep != 1) plan->own->ROWS.scale(d, sp->sum_out, keep, sp->sum_out);
        if (at->dropout > 0) {
            FN(keep_row)(plan, args[3], pair, i, j, nk, sp->keep);
            plan->own->ROWS.multiply(nk, sp->s, sp->keep, sp->s);
        }
        const weft_gemv add = {.rows = d, .k = nk, .x_i = 1, .x_k = ldv, .out_i = 1, .add = true};
        plan->own->GEMV(&add, v, sp->s, sp->sum_out);
    }
}

/* A block of forward scores on the diagonal is computed in steps of STEP queries, which differ in how many
 * keys they see: the query at i sees those before i + 1 - first. */
static void FN(block_scores)(const attention_plan *plan, int64_t first, int64_t nk, const T *k, int64_t ldk,
                             const FN(space) * sp) {
    weft_gemm g = {
        .k = plan->at.d, .a_m = ldk, .a_k = 1, .b_k = LANES, .b_n = 1, .c_m = LANES, .ahead = sp->ahead};
    for (int64_t i = 0, r = 0; r < nk; i += STEP, r += g.m) {
        g.m = (i + STEP < LANES ? clip(i + STEP - first, r, nk) : nk) - r;
        g.n = LANES - i;
        plan->own->GEMM(&g, k + r * ldk, sp->qt + i, sp->s + r * LANES + i, sp->gemm);
    }
}

static void FN(block_values)(const attention_plan *plan, int64_t nq, int64_t first, int64_t nk, const T *v,
                             int64_t ldv, bool add, const FN(space) * sp) {
    const int64_t d = plan->at.d;
    weft_gemm g = {
        .n = d, .a_m = 1, .a_k = LANES, .b_k = ldv, .b_n = 1, .c_m = d, .add = add, .ahead = sp->ahead};
    for (int64_t i = 0; i < nq; i += g.m) {
        g.k = clip(i + STEP - first, 0, nk);
        g.m = g.k < nk && nq - i > STEP ? STEP : nq - i;
        plan->own->GEMM(&g, sp->s + i, v, sp->sum_out + i * d, sp->gemm);
    }
}

/* Queries i0 .. i0 + nq - 1 of a pair. */
static void FN(many_queries)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i0,
                             int64_t nq, const T *q, int64_t ldq, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, off = shift_of(plan, args), end = visible(plan, off, i0 + nq), ldk, ldv;
    bool begun = false;
    plan->own->ROWS.turn(nq, d, q, ldq, (T)at->scale, LANES, sp->qt);
    for (int64_t j = 0; j < end; j += plan->bk) {
        int64_t nk = end - j < plan->bk ? end - j : plan->bk;
        if (!any_seen(plan, args, pair, i0, nq, j, nk)) continue;
        const T *k = FN(fetch)(plan, args[1], at->k, pair, j, nk, sp->k, &ldk);
        const T *v = FN(fetch)(plan, args[2], at->v, pair, j, nk, sp->v, &ldv);
        const int64_t first = at->causal ? j - i0 - off : -nk;
        FN(block_scores)(plan, first, nk, k, ldk, sp);
        if (at->masked) FN(mask_block)(plan, args, pair, i0, nq, j, nk, sp);
        plan->own->ROWS.weights(nk, first, sp->s, sp->most, sp->sum, sp->fix);
        for (int64_t r = 0; begun && r < nq; r++)
            if (sp->fix[r] != 1)
                plan->own->ROWS.scale(d, sp->sum_out + r * d, sp->fix[r], sp->sum_out + r * d);
        if (at->dropout > 0) {
            FN(keep_block)(plan, args[3], pair, i0, nq, j, nk, sp);
            plan->own->ROWS.multiply(nk * LANES, sp->s, sp->keep, sp->s);
        }
        FN(block_values)(plan, nq, first, nk, v, ldv, begun, sp);
        begun = true;
    }
    if (!begun) memset(sp->sum_out, 0, (size_t)(nq * d) * sizeof(T));
}

static void FN(forward_block)(const attention_plan *plan, void *const *args, int64_t pair, int64_t i0,
                              int64_t nq, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, ldq;
    const T *q = FN(fetch)(plan, args[0], at->q, pair, i0, nq, sp->q, &ldq);
    for (int64_t r = 0; r < LANES; r++) sp->most[r] = -(T)INFINITY, sp->sum[r] = 0;
    if (nq == 1) memset(sp->sum_out, 0, (size_t)d * sizeof(T));
    if (nq == 1)
        FN(one_query)(plan, args, pair, i0, q, sp);
    else
        FN(many_queries)(plan, args, pair, i0, nq, q, ldq, sp);
    T *lse = (T *)args[5] + pair * at->t_q + i0;
    if (at->masked) /* in two parts, so that the greatest numbers leave room for the sums */
        for (int64_t r = 0; r < nq; r++) {
            lse[r] = sp->most[r] == -(T)INFINITY ? 0 : sp->most[r];
            sp->most[r] = 0;
        }
    plan->own->ROWS.finish(nq, sp->most, sp->sum, lse + (at->masked ? plan->pairs * at->t_q : 0), sp->fix);
    T *out = sp->sum_out;
    int64_t ldo = d;
    if (!plan->half) {
        out = (T *)args[4] + place(plan, at->out, pair, i0);
        ldo = at->out[2];
    }
    for (int64_t r = 0; r < nq; r++) plan->own->ROWS.scale(d, sp->sum_out + r * d, sp->fix[r], out + r * ldo);
    if (plan->half) FN(put)(plan, args[4], at->out, pair, i0, nq, out, d);
}

/* delta[i] = out[i] . dout[i] */
static void FN(deltas)(const attention_plan *plan, void *const *args, int64_t pair, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    int64_t d = at->d, ldo, lddo;
    for (int64_t i = 0; i < at->t_q; i += LANES) {
        int64_t nq = at->t_q - i < LANES ? at->t_q - i : LANES;
        const T *out = FN(fetch)(plan, args[4], at->out, pair, i, nq, sp->out, &ldo);
        const T *dout = FN(fetch)(plan, args[6], at->dout, pair, i, nq, sp->dout, &lddo);
        for (int64_t r = 0; r < nq; r++)
            sp->delta[i + r] = plan->own->ROWS.dot(d, out + r * ldo, dout + r * lddo);
    }
}

/* Queries and keys of a block of gradients. */
typedef struct FN(block) {
    int64_t pair, i, nq, j, nk, begun, ldq, lddo, ldk, lddq, lddk, lddv;
    const T *q, *dout, *k;
    T *dq, *dk, *dv;
} FN(block);

/* How many of the block's queries from r on are one step, whose last query sees *n keys: all where they see
 * all keys, else STEP, because a block on the diagonal is not computed whole. */
static int64_t FN(backward_step)(const attention_plan *plan, const FN(block) * b, int64_t off, int64_t r,
                                 int64_t *n) {
    *n = clip(visible(plan, off, b->i + r + STEP) - b->j, 0, b->nk);
    return *n < b->nk && b->nq - r > STEP ? STEP : b->nq - r;
}

/* The weights and the gradients of the scores of queries r .. r + m - 1, and what they give to dq. */
static void FN(backward_queries)(const attention_plan *plan, void *const *args, const FN(block) * b,
                                 int64_t r, int64_t m, int64_t n, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    const int64_t d = at->d, bk = plan->bk, off = shift_of(plan, args);
    const T *most = (const T *)args[5] + b->pair * at->t_q,
            *lse = at->masked ? most + plan->pairs * at->t_q : most,
            *keep = at->dropout > 0 ? sp->keep : NULL,
            *bias = at->masked ? FN(mask_row)(plan, args, b->pair, b->i + r, b->j, n, sp->bias) : NULL;
    T *s = sp->s + r * bk, *dp = sp->dp + r * bk;
    weft_gemm g = {
        .m = m, .n = n, .k = d, .a_m = b->ldq, .a_k = 1, .b_k = bk, .b_n = 1, .c_m = bk, .ahead = sp->ahead};
    plan->own->GEMM(&g, b->q + r * b->ldq, sp->kt, s, sp->gemm);
    g.a_m = b->lddo;
    plan->own->GEMM(&g, b->dout + r * b->lddo, sp->vt, dp, sp->gemm);
    for (int64_t x = 0, i = b->i + r; x < m; x++, i++) {
        int64_t seen = clip(visible(plan, off, i + 1) - b->j, 0, n);
        if (keep) FN(keep_row)(plan, args[3], b->pair, i, b->j, n, sp->keep);
        if (bias && x > 0 && at->mask[2] != 0) bias = FN(mask_row)(plan, args, b->pair, i, b->j, n, sp->bias);
        if (bias) plan->own->ROWS.mask(n, s + x * bk, bias, most[i]);
        plan->own->ROWS.gradient(n, seen, s + x * bk, dp + x * bk, lse[i], sp->delta[i], (T)at->scale, keep);
    }
    const weft_gemm add = {.m = m,
                           .n = d,
                           .k = n,
                           .a_m = bk,
                           .a_k = 1,
                           .b_k = b->ldk,
                           .b_n = 1,
                           .c_m = b->lddq,
                           .add = b->j > 0,
                           .ahead = sp->ahead};
    plan->own->GEMM(&add, dp, b->k, b->dq + r * b->lddq, sp->gemm);
}

/* What the queries give to dk and dv, of which the first b->begun keys have sums already. */
static void FN(backward_keys)(const attention_plan *plan, FN(block) * b, int64_t off, const FN(space) * sp) {
    const int64_t bk = plan->bk;
    int64_t n, from = 0;
    weft_gemm g = {.n = plan->at.d, .a_m = 1, .a_k = bk, .b_n = 1, .ahead = sp->ahead};
    for (int64_t r = 0, m; r < b->nq; r += m) {
        m = FN(backward_step)(plan, b, off, r, &n);
        g.k = b->nq - r;
        for (; from < n; from += g.m) { /* keys that no query before r sees */
            g.add = from < b->begun;
            g.m = (g.add && b->begun < n ? b->begun : n) - from;
            g.b_k = b->lddo;
            g.c_m = b->lddv;
            plan->own->GEMM(&g, sp->s + r * bk + from, b->dout + r * b->lddo, b->dv + from * g.c_m, sp->gemm);
            g.b_k = b->ldq;
            g.c_m = b->lddk;
            plan->own->GEMM(&g, sp->dp + r * bk + from, b->q + r * b->ldq, b->dk + from * g.c_m, sp->gemm);
        }
    }
    if (b->begun < from) b->begun = from;
}

/* What queries and the keys of a block, turned in kt and vt, give to each other's gradients. */
static void FN(backward_block)(const attention_plan *plan, void *const *args, FN(block) * b,
                               const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    const int64_t off = shift_of(plan, args);
    int64_t n;
    b->q = FN(fetch)(plan, args[0], at->q, b->pair, b->i, b->nq, sp->q, &b->ldq);
    b->dout = FN(fetch)(plan, args[6], at->dout, b->pair, b->i, b->nq, sp->dout, &b->lddo);
    for (int64_t r = 0, m; r < b->nq; r += m) {
        m = FN(backward_step)(plan, b, off, r, &n);
        FN(backward_queries)(plan, args, b, r, m, n, sp);
    }
    FN(backward_keys)(plan, b, off, sp);
}

/* What keys j .. j + width - 1 of a pair and all its queries give to each other's gradients. */
static void FN(backward_span)(const attention_plan *plan, void *const *args, FN(block) * b, int64_t width,
                              T *dq, const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    const int64_t d = at->d, bk = plan->bk, bq = plan->bq;
    int64_t ldv;
    const T *v = FN(fetch)(plan, args[2], at->v, b->pair, b->j, width, sp->v, &ldv);
    b->k = FN(fetch)(plan, args[1], at->k, b->pair, b->j, width, sp->k, &b->ldk);
    plan->own->ROWS.turn(width, d, b->k, b->ldk, (T)at->scale, bk, sp->kt);
    plan->own->ROWS.turn(width, d, v, ldv, 1, bk, sp->vt);
    b->begun = 0;
    for (b->i = 0; b->i < at->t_q; b->i += bq) {
        b->nq = at->t_q - b->i < bq ? at->t_q - b->i : bq;
        b->nk = clip(visible(plan, shift_of(plan, args), b->i + b->nq) - b->j, 0, width);
        if (!any_seen(plan, args, b->pair, b->i, b->nq, b->j, b->nk)) b->nk = 0;
        b->dq = dq + b->i * b->lddq;
        if (b->nk > 0 || b->j == 0) FN(backward_block)(plan, args, b, sp); /* the first keys set dq */
    }
    for (int64_t r = b->begun; r < width; r++) { /* that no query sees */
        memset(b->dk + r * b->lddk, 0, (size_t)d * sizeof(T));
        memset(b->dv + r * b->lddv, 0, (size_t)d * sizeof(T));
    }
}

/* The gradients of a pair, summed over the blocks in their own places if they are stored as T. */
static void FN(backward_pair)(const attention_plan *plan, void *const *args, int64_t pair,
                              const FN(space) * sp) {
    const weft_heavy_attention *at = &plan->at;
    const int64_t d = at->d, bk = plan->bk;
    const bool half = plan->half;
    FN(block) b = {.pair = pair, .dk = sp->sum_dk, .dv = sp->sum_dv, .lddq = d, .lddk = d, .lddv = d};
    T *dq = sp->sum_dq;
    if (!half) {
        b.lddq = at->dq[2], b.lddk = at->dk[2], b.lddv = at->dv[2];
        dq = (T *)args[7] + place(plan, at->dq, pair, 0);
    }
    FN(deltas)(plan, args, pair, sp);
    for (b.j = 0; b.j < at->t_k; b.j += bk) {
        int64_t width = at->t_k - b.j < bk ? at->t_k - b.j : bk;
        if (!half) {
            b.dk = (T *)args[8] + place(plan, at->dk, pair, b.j);
            b.dv = (T *)args[9] + place(plan, at->dv, pair, b.j);
        }
        FN(backward_span)(plan, args, &b, width, dq, sp);
        if (half) FN(put)(plan, args[8], at->dk, pair, b.j, width, sp->sum_dk, d);
        if (half) FN(put)(plan, args[9], at->dv, pair, b.j, width, sp->sum_dv, d);
    }
    if (half) FN(put)(plan, args[7], at->dq, pair, 0, at->t_q, dq, d);
}

static void FN(run)(const void *plan_, void *const *given, int64_t begin, int64_t end, void *scratch,
                    weft_fault *fault) {
    (void)fault;
    const attention_plan *plan = plan_;
    void *own[MASK + 1], *const *args = ordered(plan, given, own);
    const weft_heavy_attention *at = &plan->at;
    weft_lookahead ahead;
    FN(space) sp = {.ahead = &ahead};
    FN(layout)(plan, scratch, &sp);
    for (int64_t task = begin; task < end; task++) {
        int64_t first = task / plan->q_parts * plan->group, last = first + plan->group,
                part = task % plan->q_parts;
        int64_t blocks = (at->t_q + LANES - 1) / LANES;
        if (last > plan->pairs) last = plan->pairs;
        for (int64_t pair = first; pair < last; pair++) {
            look_ahead(plan, args, pair, &ahead);
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
