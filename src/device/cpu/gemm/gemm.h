/* The matmuls that heavy operations are made of: Weft's own kernels, one table for each instruction set, and
 * the matmul library that is opened at run time.
 * Must not know: tasks, threads. Read next: gemm_own.c, then matmul.c. */
#ifndef WEFT_DEVICE_CPU_GEMM_GEMM_H
#define WEFT_DEVICE_CPU_GEMM_GEMM_H

#include "device/cpu/cpu.h"

/* Rows of memory to prefetch while a matmul is computed: the first row of each of n tensors, then the second
 * rows, and so on. */
typedef struct weft_lookahead {
    const char *next[8];
    int64_t stride[8], bytes, rows;
    int n, tensor;
} weft_lookahead;

/* Prefetches as many lines as the first cache can wait for at once. */
static inline void weft__ask_ahead(weft_lookahead *ahead) {
    for (int64_t lines = 0; lines < 16 && ahead->rows > 0; lines += (ahead->bytes + 63) / 64) {
        const char *row = ahead->next[ahead->tensor];
        for (int64_t b = 0; b < ahead->bytes; b += 64) __builtin_prefetch(row + b, 0, 2);
        ahead->next[ahead->tensor] = row + ahead->stride[ahead->tensor];
        if (++ahead->tensor < ahead->n) continue;
        ahead->tensor = 0;
        ahead->rows--;
    }
}

/* c (m, n) = a (m, k) b (k, n), or c += a b. Strides count elements. c has stride 1 along n. Weft's kernels
 * accept any strides of a and b. */
typedef struct weft_gemm {
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n, c_m;
    bool add;
    weft_lookahead *ahead; /* prefetched between tiles of a matmul that packs nothing, or NULL */
} weft_gemm;

/* A kernel multiplies a fixed number of rows of a by a fixed number of vectors of b. Of the last vector,
 * `last` columns exist. A call is a kernel and the places where its operands begin. */
#define WEFT_GEMM_CALL(type, T)                                                                              \
    typedef void (*weft_gemm_kernel_##type)(int64_t k, const T *a, int64_t a_m, int64_t a_k, const T *b,     \
                                            int64_t b_k, T *c, int64_t c_m, int64_t last, bool add);         \
    typedef struct weft_gemm_call_##type {                                                                   \
        weft_gemm_kernel_##type kernel;                                                                      \
        int64_t a, b, c, last;                                                                               \
    } weft_gemm_call_##type;
WEFT_GEMM_CALL(f32, float)
WEFT_GEMM_CALL(f64, double)

/* out[i * out_i] = or += the sum over p of x[i * x_i + p * x_k] * v[p], 0 <= i < rows. x_i or x_k is 1,
 * unless rows or k is 1. */
typedef struct weft_gemv {
    int64_t rows, k, x_i, x_k, out_i;
    bool add;
} weft_gemv;

/* What attention needs besides matmuls, see heavy/attention_rows.inc. In the forward pass, scores have keys
 * down and queries across. A vector holds the same key of neighbouring queries, so no sum goes across a
 * vector. */
#define WEFT_ATTENTION_LANES 32
#define WEFT_ATTENTION_ROWS(T)                                                                               \
    struct {                                                                                                 \
        void (*turn)(int64_t rows, int64_t k, const T *from, int64_t stride, T scale, int64_t width, T *to); \
        void (*weights)(int64_t keys, int64_t first, T *s, T *most, T *sum, T *keep);                        \
        void (*finish)(int64_t n, const T *most, const T *sum, T *lse, T *factor);                           \
        void (*gradient)(int64_t n, int64_t seen, T *s, T *dp, T lse, T delta, T scale, const T *keep);      \
        T (*one)(int64_t n, T *s, T scale, T *most, T *sum);                                                 \
        void (*open)(int64_t n, const uint8_t *seen, T *bias);                                               \
        void (*mask)(int64_t n, T *s, const T *bias, T less);                                                \
        void (*mask_keys)(int64_t keys, T *s, const T *bias);                                                \
        void (*keep)(int64_t n, T *to, uint64_t first, const uint32_t *key, T dropout, T factor);            \
        void (*multiply)(int64_t n, const T *x, const T *y, T *to);                                          \
        T (*dot)(int64_t n, const T *x, const T *y);                                                         \
        void (*scale)(int64_t n, const T *x, T by, T *to);                                                   \
    }

/* Convolutions, see heavy/conv.h. Offsets count elements.
 *
 * - A place: where the window of a pixel begins in x, and the pixel of y.
 * - A run: contiguous elements of a window.
 * - A line: a row of pixels of x, read together with a row of y. */
typedef struct weft_conv_place {
    int64_t x, y;
} weft_conv_place;
typedef struct weft_conv_run {
    int64_t at, n;
} weft_conv_run;
typedef struct weft_conv_line {
    int64_t x, y, n;
} weft_conv_line;

/* y = or += the products of runs of x with w. w is packed: for each element of a run it has the channels of a
 * few vectors. */
typedef struct weft_conv_gather {
    const void *x, *w;
    void *y;
    const weft_conv_run *runs;
    int64_t n_runs, last; /* channels of the last vector */
    int64_t row, step;    /* pixels in a row; elements from one pixel to the next of x */
    bool add;
    const char *ahead; /* read next, and prefetched meanwhile */
    int64_t ahead_bytes;
} weft_conv_gather;

/* to[i, j] = or += the sum over all pixels of the lines of x[row i] * y[j]. j counts the channels of a few
 * whole vectors. Pixels of y are contiguous from line to line. */
typedef struct weft_conv_weight {
    const void *x, *y;
    void *to;
    const weft_conv_line *lines;
    int64_t n_lines, step, wide; /* step, wide: from pixel to pixel of x and of y */
    int64_t to_row;
    bool add;
    const char *ahead[2]; /* read next, and prefetched meanwhile */
    int64_t ahead_bytes[2];
} weft_conv_weight;

/* Groups of one channel. All pixels of a call meet the same rectangle of taps. Each tap has its own elements
 * of w. Elements of w, x and y are side by side. The forward call computes y = or += x times w. The weight
 * call computes w += x times y; rows of w are whole vectors then. */
typedef struct weft_conv_each {
    const void *x;
    void *w, *y;
    /* number of taps, and distance from one tap to the next */
    int64_t rows, columns, x_row, x_column, w_row, w_column;
    int64_t step, y_step, pixels, channels; /* from pixel to pixel of x and y */
    /* distance from x and y to the memory read next, which is prefetched; 0: none */
    int64_t x_ahead, y_ahead;
    bool add;
} weft_conv_each;

typedef struct weft_conv_own {
    int lanes, vectors; /* lanes of a vector; the most vectors of a call */
    void (*gather)(const weft_conv_gather *g, int64_t vectors, const weft_conv_place *places, int64_t count);
    void (*weight)(const weft_conv_weight *g, int64_t vectors, const int64_t *rows, int64_t count,
                   int64_t joined);
    void (*each)(const weft_conv_each *g);
    void (*each_weight)(const weft_conv_each *g);
    /* to[p * width + i] = from[i * s_i + p * s_k], and 0 for i from `rows` to `width`. The width is whole
     * vectors. */
    void (*pack)(void *to, int64_t width, const void *from, int64_t s_i, int64_t s_k, int64_t rows,
                 int64_t k);
} weft_conv_own;

/* A recurrent layer multiplies by the same matrix at each time step. The matrix is packed once. The other
 * functions do the work between the matmuls, see heavy/recurrent_rows.inc. */
#define WEFT_RECURRENT_ROWS(T)                                                                               \
    struct {                                                                                                 \
        int64_t (*elements)(int64_t k, int64_t n);                                                           \
        void (*pack)(const weft_gemm *g, const T *b, T *panels);                                             \
        void (*product)(const weft_gemm *g, const T *a, const T *panels, T *c);                              \
        void (*plain)(int64_t n, bool relu, T *z, const T *x, const T *b, T *h);                             \
        void (*lstm)(int64_t n, T *z, const T *x, const T *b, T *gate, int64_t step, const T *c, T *next,    \
                     T *h);                                                                                  \
        void (*gru)(int64_t n, T *z, const T *x, const T *b, const T *d, T *gate, int64_t step,              \
                    const T *last, T *h);                                                                    \
        void (*plain_back)(int64_t n, bool relu, const T *h, const T *dh, T *dx);                            \
        void (*lstm_back)(int64_t n, const T *gate, int64_t step, const T *c, const T *before, const T *dh,  \
                          T *dc, T *dx);                                                                     \
        void (*gru_back)(int64_t n, const T *gate, int64_t step, const T *last, const T *dh, T *dx, T *dz,   \
                         T *pass);                                                                           \
    }

/* The own kernels of one instruction set. k alone decides the order of additions. At most 384 products are
 * added in sequence. Then the block's sum is added to the sums of the other blocks (class D of the
 * tolerances). */
typedef struct weft_gemm_own {
    void (*f32)(const weft_gemm *g, const float *a, const float *b, float *c, void *scratch);
    void (*f64)(const weft_gemm *g, const double *a, const double *b, double *c, void *scratch);
    void (*i32)(const weft_gemm *g, const uint32_t *a, const uint32_t *b, uint32_t *c);
    void (*i64)(const weft_gemm *g, const uint64_t *a, const uint64_t *b, uint64_t *c);
    /* Matmuls of complex numbers. Extents and strides count numbers, which are pairs. conj: bit 0 conjugates
     * a, bit 1 conjugates b. */
    void (*c64)(const weft_gemm *g, int conj, const float *a, const float *b, float *c, void *scratch);
    void (*c128)(const weft_gemm *g, int conj, const double *a, const double *b, double *c, void *scratch);
    struct { /* return the bytes of 64-byte aligned scratch memory that these need */
        size_t (*f32)(const weft_gemm *g);
        size_t (*f64)(const weft_gemm *g);
        size_t (*c64)(const weft_gemm *g);
        size_t (*c128)(const weft_gemm *g);
    } scratch;
    /* Returns true if f32 reads b in place. This is faster than every library (n up to about 128). */
    bool (*f32_direct)(const weft_gemm *g);
    /* Returns the calls that f32 would make for a direct matmul, at most `most`. Returns 0 if there are more,
     * or if only f32 itself can compute it. If b's stride 1 is not along n, the calls need its columns
     * packed. Then the new b_k is set, and f32_pack(to, b_k, b, b_n, the old b_k, n, k) packs them. */
    int64_t (*f32_calls)(weft_gemm *g, weft_gemm_call_f32 *calls, int64_t most);
    void (*f32_pack)(float *to, int64_t width, const float *from, int64_t s_i, int64_t s_k, int64_t rows,
                     int64_t k);
    struct {
        void (*f32)(const weft_gemv *g, const float *x, const float *v, float *out);
        void (*f64)(const weft_gemv *g, const double *x, const double *v, double *out);
        void (*bf16)(const weft_gemv *g, const uint16_t *x, const float *v, float *out);
        void (*f16)(const weft_gemv *g, const uint16_t *x, const float *v, float *out);
    } gemv;
    struct { /* convert n contiguous elements */
        void (*from_f16)(int64_t n, const uint16_t *from, float *to);
        void (*from_bf16)(int64_t n, const uint16_t *from, float *to);
        void (*to_f16)(int64_t n, const float *from, uint16_t *to);
        void (*to_bf16)(int64_t n, const float *from, uint16_t *to);
    } convert;
    struct { /* to[i] += from[i] */
        void (*f32)(int64_t n, const float *from, float *to);
        void (*f64)(int64_t n, const double *from, double *to);
        void (*f16)(int64_t n, const uint16_t *from, float *to);
        void (*bf16)(int64_t n, const uint16_t *from, float *to);
    } add;
    WEFT_ATTENTION_ROWS(float) attention_f32;
    WEFT_ATTENTION_ROWS(double) attention_f64;
    weft_conv_own conv_f32, conv_f64;
    WEFT_RECURRENT_ROWS(float) recurrent_f32;
    WEFT_RECURRENT_ROWS(double) recurrent_f64;
} weft_gemm_own;

extern const weft_gemm_own weft__gemm_own_baseline;
#if defined(__x86_64__)
extern const weft_gemm_own weft__gemm_own_avx2, weft__gemm_own_avx512;
#endif
/* heavy/heavy.c: returns the table for weft__cpu_isa(). */
const weft_gemm_own *weft__gemm_own(void);

/* The matmul library. It always has f32; a CBLAS also has f64 and complex numbers. */
typedef struct weft_matmul_library {
    bool f32, f64, complex; /* what it computes; all false: own kernels compute everything */
} weft_matmul_library;

/* matmul_library.c: opens the library at the first call in the process. Never returns NULL. */
const weft_matmul_library *weft__matmul_library(void);
/* Returns true if a library can address these operands: one stride is 1, and the leading dimensions fit. */
bool weft__library_fits(const weft_gemm *g);

/* Must be called before the functions below. WEFT_ERR_OOM: the library would end the process. */
weft_status weft__library_prepare(weft_context *ctx);
/* Compute one matmul on the calling thread alone. The library must support the dtype, and the matmul must
 * fit. */
void weft__library_f32(const weft_gemm *g, const float *a, const float *b, float *c);
void weft__library_f64(const weft_gemm *g, const double *a, const double *b, double *c);
/* The same for complex numbers, c64 or c128. Strides and leading dimensions count numbers. */
bool weft__library_takes_complex(const weft_gemm *g, int conj);
void weft__library_complex(const weft_gemm *g, weft_dtype dtype, int conj, const void *a, const void *b,
                           void *c);

/* Between these two calls, library matmuls run on the calling thread alone, whatever the OpenMP settings are.
 * weft__library_leave takes the value that weft__library_enter returned. */
int weft__library_enter(void);
void weft__library_leave(int token);

/* The partition of a matmul: returns where block i of `blocks` begins. Border `blocks` is the extent. Borders
 * are multiples of 16 if the blocks are large enough for that. */
static inline int64_t weft__border(int64_t extent, int64_t blocks, int64_t i) {
    int64_t unit = extent >= 64 * blocks ? 16 : 1, units = (extent + unit - 1) / unit,
            at = units * i / blocks * unit;
    return i == blocks || at > extent ? extent : at;
}

static inline int64_t weft__largest_block(int64_t extent, int64_t blocks) {
    int64_t largest = 0;
    for (int64_t i = 0; i < blocks; i++) {
        int64_t size = weft__border(extent, blocks, i + 1) - weft__border(extent, blocks, i);
        if (size > largest) largest = size;
    }
    return largest;
}

/* gemv.c: matmuls whose m or n is 1. Batch dimensions are merged into m if possible. */
bool weft__cpu_gemv_takes(const weft_heavy_matmul *mm);
weft_status weft__cpu_gemv_prepare(weft_context *ctx, const weft_heavy_matmul *mm, weft_cpu_work *work);

#endif
