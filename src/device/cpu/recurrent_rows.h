/* The elementwise work of one step of a recurrent layer for one sequence, for one floating type and one
 * instruction set: included by gemm_own.c after gemm_float.h, which has T, FN, SIGMOID and TANH. Rows of n
 * elements; of z, x, bias and their gradients all gates lie side by side, of `gate` they are a `step` apart.
 * Loops of one kind of function each, which compilers turn into vectors. No include guard: once per type. */

/* z = x + b + z */
static void FN(rnn_sums)(int64_t n, T *restrict z, const T *restrict x, const T *restrict b) {
    for (int64_t j = 0; j < n; j++) z[j] = (x[j] + b[j]) + z[j];
}

static void FN(rnn_sigmoids)(int64_t n, const T *restrict z, T *restrict y) {
    for (int64_t j = 0; j < n; j++) y[j] = SIGMOID(z[j]);
}

static void FN(rnn_tanhs)(int64_t n, const T *restrict z, T *restrict y) {
    for (int64_t j = 0; j < n; j++) y[j] = TANH(z[j]);
}

static void FN(recurrent_plain)(int64_t n, bool relu, T *restrict z, const T *x, const T *b, T *restrict h) {
    FN(rnn_sums)(n, z, x, b);
    if (!relu) {
        FN(rnn_tanhs)(n, z, h);
        return;
    }
    for (int64_t j = 0; j < n; j++) h[j] = z[j] > 0 || z[j] != z[j] ? z[j] : 0;
}

/* c: before. */
static void FN(recurrent_lstm)(int64_t n, T *z, const T *x, const T *b, T *gate, int64_t step,
                               const T *restrict c, T *restrict next, T *restrict h) {
    T *restrict i = gate, *restrict f = gate + step, *restrict g = gate + 2 * step,
                *restrict o = gate + 3 * step;
    FN(rnn_sums)(4 * n, z, x, b);
    FN(rnn_sigmoids)(n, z, i);
    FN(rnn_sigmoids)(n, z + n, f);
    FN(rnn_tanhs)(n, z + 2 * n, g);
    FN(rnn_sigmoids)(n, z + 3 * n, o);
    for (int64_t j = 0; j < n; j++) next[j] = f[j] * c[j] + i[j] * g[j];
    FN(rnn_tanhs)(n, next, h);
    for (int64_t j = 0; j < n; j++) h[j] = o[j] * h[j];
}

/* b: the biases of x; d: of z. */
static void FN(recurrent_gru)(int64_t n, T *restrict z, const T *restrict x, const T *restrict b,
                              const T *restrict d, T *gate, int64_t step, const T *restrict last,
                              T *restrict h) {
    T *restrict r = gate, *restrict u = gate + step, *restrict y = gate + 2 * step,
                *restrict q = gate + 3 * step;
    for (int64_t j = 0; j < 2 * n; j++) z[j] = (x[j] + b[j]) + (z[j] + d[j]);
    FN(rnn_sigmoids)(n, z, r);
    FN(rnn_sigmoids)(n, z + n, u);
    for (int64_t j = 0; j < n; j++) {
        q[j] = z[2 * n + j] + d[2 * n + j];
        z[j] = (x[2 * n + j] + b[2 * n + j]) + r[j] * q[j];
    }
    FN(rnn_tanhs)(n, z, y);
    for (int64_t j = 0; j < n; j++) h[j] = y[j] + u[j] * (last[j] - y[j]);
}

static void FN(recurrent_plain_back)(int64_t n, bool relu, const T *restrict h, const T *restrict dh,
                                     T *restrict dx) {
    if (relu)
        for (int64_t j = 0; j < n; j++) dx[j] = h[j] > 0 ? dh[j] : 0;
    else
        for (int64_t j = 0; j < n; j++) dx[j] = dh[j] * (1 - h[j] * h[j]);
}

/* dc: of the state after, then of the one before. */
static void FN(recurrent_lstm_back)(int64_t n, const T *gate, int64_t step, const T *restrict c,
                                    const T *restrict before, const T *restrict dh, T *restrict dc,
                                    T *restrict dx) {
    const T *restrict i = gate, *restrict f = gate + step, *restrict g = gate + 2 * step,
                      *restrict o = gate + 3 * step;
    T *restrict y = dx + 3 * n;
    FN(rnn_tanhs)(n, c, y);
    for (int64_t j = 0; j < n; j++) {
        const T d = dc[j] + dh[j] * o[j] * (1 - y[j] * y[j]);
        dx[j] = d * g[j] * (i[j] * (1 - i[j]));
        dx[n + j] = d * before[j] * (f[j] * (1 - f[j]));
        dx[2 * n + j] = d * i[j] * (1 - g[j] * g[j]);
        y[j] = dh[j] * y[j] * (o[j] * (1 - o[j]));
        dc[j] = d * f[j];
    }
}

/* pass: what of dh goes to the state before but through the product. */
static void FN(recurrent_gru_back)(int64_t n, const T *gate, int64_t step, const T *restrict last,
                                   const T *restrict dh, T *restrict dx, T *restrict dz, T *restrict pass) {
    const T *restrict r = gate, *restrict u = gate + step, *restrict y = gate + 2 * step,
                      *restrict q = gate + 3 * step;
    for (int64_t j = 0; j < n; j++) {
        const T d = dh[j] * (1 - u[j]) * (1 - y[j] * y[j]);
        dx[2 * n + j] = d;
        dx[n + j] = dz[n + j] = dh[j] * (last[j] - y[j]) * (u[j] * (1 - u[j]));
        dx[j] = dz[j] = d * q[j] * (r[j] * (1 - r[j]));
        dz[2 * n + j] = d * r[j];
        pass[j] = dh[j] * u[j];
    }
}
