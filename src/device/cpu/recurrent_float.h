/* A recurrent layer over time for one floating type T: included by recurrent.c, which defines T, FN and ROWS.
 * A task is some sequences of the batch, from the first step to the last, so that threads never wait for each
 * other within the loop; the recurrent matrix is packed once a call, and stays in the second cache. No
 * include guard, therefore. */

/* The scratch of one call, and what of the plan each step needs. */
typedef struct FN(space) {
    T *panels, *wide;    /* the matrix, and before it is packed, where it is stored in 16 bits */
    T *bias, *bias_z;    /* of x and, of a GRU, of z */
    T *z, *h, *c, *pass; /* of the rows of a task */
    T *x, *gate, *y, *d; /* of one row, where it is stored in 16 bits */
} FN(space);

/* The next n elements of the scratch, on a cache line of their own. */
static T *FN(take)(char *base, size_t *used, int64_t n) {
    const size_t at = (*used + 63) & ~(size_t)63;
    *used = at + (size_t)n * sizeof(T);
    return base ? (T *)(void *)(base + at) : NULL;
}

static size_t FN(layout)(const recurrent_plan *plan, char *base, FN(space) * s) {
    const weft_heavy_recurrent *r = &plan->r;
    const int64_t h = r->width, g = plan->gates * h;
    size_t used = 0;
    const int64_t k = r->backward ? g : h, n = r->backward ? h : g;
    s->panels = FN(take)(base, &used, plan->own->ROWS.elements(k, n));
    s->wide = FN(take)(base, &used, sizeof(T) == plan->size ? 0 : k * n);
    s->bias = FN(take)(base, &used, g);
    s->bias_z = FN(take)(base, &used, g);
    s->z = FN(take)(base, &used, plan->rows * g);
    s->h = FN(take)(base, &used, plan->rows * h);
    s->c = FN(take)(base, &used, plan->rows * h);
    s->pass = FN(take)(base, &used, plan->rows * h);
    s->x = FN(take)(base, &used, g > h * SAVED ? g : h * SAVED);
    s->gate = FN(take)(base, &used, h * SAVED);
    s->y = FN(take)(base, &used, h);
    s->d = FN(take)(base, &used, g);
    return used;
}

/* ---- elements from and to memory ---- */

static const T *FN(read)(const recurrent_plan *plan, const void *base, int64_t at, int64_t n, T *buffer) {
    if (sizeof(T) == plan->size) return (const T *)base + at;
    plan->from(n, (const uint16_t *)base + at, (float *)(void *)buffer);
    return buffer;
}

/* Where to compute n elements that write() then brings to memory. */
static T *FN(place)(const recurrent_plan *plan, void *base, int64_t at, T *buffer) {
    return sizeof(T) == plan->size ? (T *)base + at : buffer;
}

static void FN(write)(const recurrent_plan *plan, void *base, int64_t at, int64_t n, const T *from) {
    if (sizeof(T) == plan->size) {
        if (from != (T *)base + at) memcpy((T *)base + at, from, (size_t)n * sizeof(T));
    } else {
        plan->to(n, (const float *)(const void *)from, (uint16_t *)base + at);
    }
}

/* n elements as they are once they were stored. */
static void FN(round_trip)(const recurrent_plan *plan, void *base, int64_t at, int64_t n, T *values) {
    FN(write)(plan, base, at, n, values);
    if (sizeof(T) != plan->size) plan->from(n, (const uint16_t *)base + at, (float *)(void *)values);
}

/* ---- forward ---- */

static void FN(begin)(const recurrent_plan *plan, const void *w, const void *b, const void *d,
                      FN(space) * s) {
    const int64_t h = plan->r.width, g = plan->gates * h;
    weft_gemm gemm = {.k = h, .n = g, .b_k = 1, .b_n = h};
    if (plan->r.backward) gemm = (weft_gemm){.k = g, .n = h, .b_k = h, .b_n = 1};
    plan->own->ROWS.pack(&gemm, FN(read)(plan, w, 0, g * h, s->wide), s->panels);
    if (plan->r.backward) return;
    memcpy(s->bias, FN(read)(plan, b, 0, g, s->x), (size_t)g * sizeof(T));
    memcpy(s->bias_z, FN(read)(plan, d, 0, g, s->x), (size_t)g * sizeof(T));
    if (plan->r.kind == WEFT_GRU) return;
    for (int64_t j = 0; j < g; j++) s->bias[j] += s->bias_z[j];
}

/* The step t of sequence b, row i of the task; the states' rows before it are in s->h and s->c. */
static void FN(step_row)(const recurrent_plan *plan, const operands *o, int64_t t, int64_t b, int64_t i,
                         const FN(space) * s) {
    const weft_heavy_recurrent *r = &plan->r;
    const int64_t h = r->width, g = plan->gates * h, row = t * r->batch + b;
    const int64_t state = (t + !r->reverse) * r->batch * h + b * h, gates = (t * SAVED * r->batch + b) * h;
    T *z = s->z + i * g, *last = s->h + i * h, *c = s->c + i * h;
    const T *x = FN(read)(plan, o->x, row * g, g, s->x);
    const bool whole = sizeof(T) == plan->size;
    T *gate = whole && o->gates ? (T *)o->gates + gates : s->gate;
    const int64_t apart = whole ? r->batch * h : h;
    if (r->masked && t >= o->lengths[b]) {
        FN(write)(plan, o->states, state, h, last);
        if (r->kind == WEFT_LSTM) memcpy((T *)o->cells + row * h, c, (size_t)h * sizeof(T));
        return;
    }
    if (r->kind == WEFT_LSTM) {
        T *next = (T *)o->cells + row * h;
        plan->own->ROWS.lstm(h, z, x, s->bias, gate, apart, c, next, last);
        memcpy(c, next, (size_t)h * sizeof(T));
    } else if (r->kind == WEFT_GRU) {
        plan->own->ROWS.gru(h, z, x, s->bias, s->bias_z, gate, apart, last, s->y);
        memcpy(last, s->y, (size_t)h * sizeof(T));
    } else {
        plan->own->ROWS.plain(h, r->kind == WEFT_RNN_RELU, z, x, s->bias, last);
    }
    for (int k = 0; k < SAVED && o->gates && !whole; k++)
        FN(write)(plan, o->gates, gates + k * r->batch * h, h, gate + k * h);
    FN(round_trip)(plan, o->states, state, h, last);
}

static void FN(forward)(const recurrent_plan *plan, const operands *o, int64_t from, int64_t to,
                        const FN(space) * s) {
    const weft_heavy_recurrent *r = &plan->r;
    const int64_t h = r->width, g = plan->gates * h, rows = to - from, all = r->batch * h;
    const weft_gemm gemm = {.m = rows, .n = g, .k = h, .a_m = h, .a_k = 1, .c_m = g};
    for (int64_t i = 0; i < rows; i++) {
        const int64_t at = (from + i) * h;
        memcpy(s->h + i * h, FN(read)(plan, o->h, at, h, s->x), (size_t)h * sizeof(T));
        FN(write)(plan, o->states, (r->reverse ? r->t * all : 0) + at, h, s->h + i * h);
        if (o->c) memcpy(s->c + i * h, FN(read)(plan, o->c, at, h, s->x), (size_t)h * sizeof(T));
    }
    for (int64_t k = 0; k < r->t; k++) {
        const int64_t t = r->reverse ? r->t - 1 - k : k;
        plan->own->ROWS.product(&gemm, s->h, s->panels, s->z);
        for (int64_t i = 0; i < rows; i++) FN(step_row)(plan, o, t, from + i, i, s);
    }
    for (int64_t i = 0; i < rows && o->c; i++)
        FN(write)(plan, o->states, (r->t + 1) * all + (from + i) * h, h, s->c + i * h);
}

/* ---- backward: s->h is dh as it comes from the step after, s->c is dc ---- */

static void FN(back_row)(const recurrent_plan *plan, const operands *o, int64_t t, int64_t b, int64_t i,
                         const FN(space) * s) {
    const weft_heavy_recurrent *r = &plan->r;
    const int64_t h = r->width, g = plan->gates * h, row = t * r->batch + b, all = r->batch * h;
    const int64_t state = (t + !r->reverse) * all + b * h, last = (t + r->reverse) * all + b * h;
    const bool whole = sizeof(T) == plan->size, gru = r->kind == WEFT_GRU;
    T *dh = s->h + i * h, *dc = s->c + i * h, *pass = s->pass + i * h, *dz = s->z + i * g;
    T *dx = gru ? FN(place)(plan, o->dx, row * g, s->d) : dz;
    const T *more = FN(read)(plan, o->dstates, state, h, s->x), *gate = s->gate;
    for (int64_t j = 0; j < h; j++) dh[j] += more[j];
    memset(pass, 0, (size_t)h * sizeof(T));
    if (r->masked && t >= o->lengths[b]) {
        memset(dx, 0, (size_t)g * sizeof(T));
        memset(dz, 0, (size_t)g * sizeof(T));
        memcpy(pass, dh, (size_t)h * sizeof(T));
    } else {
        const int64_t gates = (t * SAVED * r->batch + b) * h, apart = whole ? all : h;
        if (whole && o->gates) gate = (const T *)o->gates + gates;
        for (int k = 0; k < SAVED && o->gates && !whole; k++)
            FN(read)(plan, o->gates, gates + k * all, h, s->gate + k * h);
        if (r->kind == WEFT_LSTM) {
            const int64_t step = r->reverse ? 1 : -1;
            const bool first = t == (r->reverse ? r->t - 1 : 0);
            const T *c = (const T *)o->cells + row * h;
            const T *before = first ? FN(read)(plan, o->c, b * h, h, s->y) : c + step * all;
            plan->own->ROWS.lstm_back(h, gate, apart, c, before, dh, dc, dz);
        } else if (gru) {
            plan->own->ROWS.gru_back(h, gate, apart, FN(read)(plan, o->states, last, h, s->y), dh, dx, dz,
                                     pass);
        } else {
            plan->own->ROWS.plain_back(h, r->kind == WEFT_RNN_RELU, FN(read)(plan, o->states, state, h, s->y),
                                       dh, dz);
        }
    }
    if (gru) FN(write)(plan, o->dx, row * g, g, dx);
    FN(round_trip)(plan, gru ? o->dz : o->dx, row * g, g, dz);
}

static void FN(backward)(const recurrent_plan *plan, const operands *o, int64_t from, int64_t to,
                         FN(space) * s) {
    const weft_heavy_recurrent *r = &plan->r;
    const int64_t h = r->width, g = plan->gates * h, rows = to - from, all = r->batch * h;
    const weft_gemm gemm = {.m = rows, .n = h, .k = g, .a_m = g, .a_k = 1, .c_m = h, .add = true};
    memset(s->h, 0, (size_t)(rows * h) * sizeof(T));
    for (int64_t i = 0; i < rows && o->c; i++)
        memcpy(s->c + i * h, FN(read)(plan, o->dstates, (r->t + 1) * all + (from + i) * h, h, s->x),
               (size_t)h * sizeof(T));
    for (int64_t k = r->t - 1; k >= 0; k--) {
        const int64_t t = r->reverse ? r->t - 1 - k : k;
        for (int64_t i = 0; i < rows; i++) FN(back_row)(plan, o, t, from + i, i, s);
        plan->own->ROWS.product(&gemm, s->z, s->panels, s->pass);
        T *turn = s->h;
        s->h = s->pass;
        s->pass = turn;
    }
    for (int64_t i = 0; i < rows; i++) {
        T *dh = s->h + i * h;
        const int64_t at = (from + i) * h;
        const T *more = FN(read)(plan, o->dstates, (r->reverse ? r->t * all : 0) + at, h, s->x);
        for (int64_t j = 0; j < h; j++) dh[j] += more[j];
        FN(write)(plan, o->dh, at, h, dh);
        if (o->c) FN(write)(plan, o->dc, at, h, s->c + i * h);
    }
}

static void FN(run)(const void *of, void *const *args, int64_t begin, int64_t end, void *scratch,
                    weft_fault *fault) {
    const recurrent_plan *plan = of;
    const operands o = operands_of(&plan->r, args);
    FN(space) s;
    (void)fault;
    FN(layout)(plan, scratch, &s);
    FN(begin)(plan, o.w, o.b, o.d, &s);
    for (int64_t i = begin; i < end; i++) {
        const int64_t from = i * plan->rows, last = from + plan->rows;
        const int64_t to = last < plan->r.batch ? last : plan->r.batch;
        if (plan->r.backward)
            FN(backward)(plan, &o, from, to, &s);
        else
            FN(forward)(plan, &o, from, to, &s);
    }
}
