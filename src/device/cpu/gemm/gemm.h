/* The products that heavy operations are made of: the own kernels, one table per instruction set, and the
 * matmul library opened at run time. Knows no tasks and no threads. Read next: gemm_own.c, then matmul.c. */
#ifndef WEFT_DEVICE_CPU_GEMM_GEMM_H
#define WEFT_DEVICE_CPU_GEMM_GEMM_H

#include "device/cpu/cpu.h"

/* Rows of memory to ask for while a product is computed: the first of each of n tensors, the second, ... */
typedef struct weft_lookahead {
    const char *next[8];
    int64_t stride[8], bytes, rows;
    int n, tensor;
} weft_lookahead;

/* As many as the first cache can wait for at once. */
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

/* c (m, n) = a (m, k) b (k, n), or c += a b. Strides in elements; c has unit stride along n. The own kernels
 * take any strides of a and b. */
typedef struct weft_gemm {
    int64_t m, n, k;
    int64_t a_m, a_k, b_k, b_n, c_m;
    bool add;
    weft_lookahead *ahead; /* asked for between tiles of a product that packs nothing, or NULL */
} weft_gemm;

/* A kernel multiplies rows of a and vectors of b that its name says; of the last vector `last` columns exist.
 * A call: which one, and where its operands begin. */
#define WEFT_GEMM_CALL(type, T)                                                                              \
    typedef void (*weft_gemm_kernel_##type)(int64_t k, const T *a, int64_t a_m, int64_t a_k, const T *b,     \
                                            int64_t b_k, T *c, int64_t c_m, int64_t last, bool add);         \
    typedef struct weft_gemm_call_##type {                                                                   \
        weft_gemm_kernel_##type kernel;                                                                      \
        int64_t a, b, c, last;                                                                               \
    } weft_gemm_call_##type;
WEFT_GEMM_CALL(f32, float)
WEFT_GEMM_CALL(f64, double)

/* out[i * out_i] = or += sum over p of x[i * x_i + p * x_k] * v[p], 0 <= i < rows; x_i or x_k is 1, rows or k
 * being 1 aside. */
typedef struct weft_gemv {
    int64_t rows, k, x_i, x_k, out_i;
    bool add;
} weft_gemv;

/* What attention does beside products, see attention_rows.inc. Forward, scores lie keys down and queries
 * across, so that a vector holds the same key of neighbouring queries and nothing is summed across a vector.
 */
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

/* Convolutions, see conv.h. Offsets count elements. Of an image: where a pixel's window begins, and the pixel
 * that it is for; what of the window lies side by side; a row of pixels, read together with one of another.
 */
typedef struct weft_conv_place {
    int64_t x, y;
} weft_conv_place;
typedef struct weft_conv_run {
    int64_t at, n;
} weft_conv_run;
typedef struct weft_conv_line {
    int64_t x, y, n;
} weft_conv_line;

/* y = or += what runs of x give by w: packed, the channels of a few vectors for each element of a run. */
typedef struct weft_conv_gather {
    const void *x, *w;
    void *y;
    const weft_conv_run *runs;
    int64_t n_runs, last; /* channels of the last vector */
    int64_t row, step;    /* pixels in rows of so many, and from one to the next of x */
    bool add;
    const char *ahead; /* what is read next, asked for meanwhile */
    int64_t ahead_bytes;
} weft_conv_gather;

/* to[i, j] = or += the sum over all pixels of lines of x[row i] * y[j], j the channels of a few whole
 * vectors; pixels of y follow each other from line to line. */
typedef struct weft_conv_weight {
    const void *x, *y;
    void *to;
    const weft_conv_line *lines;
    int64_t n_lines, step, wide; /* from pixel to pixel of x and y */
    int64_t to_row;
    bool add;
    const char *ahead[2]; /* what is read next, asked for meanwhile */
    int64_t ahead_bytes[2];
} weft_conv_weight;

/* Groups that have one channel: pixels that meet the same rectangle of taps, each of which gives its elements
 * of w, side by side as those of x and y, by those of x: y = or += that; or w, which has rows of whole
 * vectors, += x by y. */
typedef struct weft_conv_each {
    const void *x;
    void *w, *y;
    int64_t rows, columns, x_row, x_column, w_row, w_column; /* of taps, and from one to the next */
    int64_t step, y_step, pixels, channels;                  /* from pixel to pixel of x and y */
    int64_t x_ahead, y_ahead; /* from x and y to what is read next, asked for meanwhile; 0: nothing */
    bool add;
} weft_conv_each;

typedef struct weft_conv_own {
    int lanes, vectors; /* of a vector, at most of a call */
    void (*gather)(const weft_conv_gather *g, int64_t vectors, const weft_conv_place *places, int64_t count);
    void (*weight)(const weft_conv_weight *g, int64_t vectors, const int64_t *rows, int64_t count,
                   int64_t joined);
    void (*each)(const weft_conv_each *g);
    void (*each_weight)(const weft_conv_each *g);
    /* to[p * width + i] = from[i * s_i + p * s_k], 0 from `rows` to `width`, whole vectors. */
    void (*pack)(void *to, int64_t width, const void *from, int64_t s_i, int64_t s_k, int64_t rows,
                 int64_t k);
} weft_conv_own;

/* A recurrent layer's product at each step of time with one matrix, packed once, and the work between them:
 * see recurrent_rows.inc. */
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

/* One instruction set's own kernels. Sums are added in an order that k alone decides, at most 384
 * products in a row before a block's sum is added to the others' (class D of the tolerances). */
typedef struct weft_gemm_own {
    void (*f32)(const weft_gemm *g, const float *a, const float *b, float *c, void *scratch);
    void (*f64)(const weft_gemm *g, const double *a, const double *b, double *c, void *scratch);
    void (*i32)(const weft_gemm *g, const uint32_t *a, const uint32_t *b, uint32_t *c);
    void (*i64)(const weft_gemm *g, const uint64_t *a, const uint64_t *b, uint64_t *c);
    /* Of complex numbers: pairs, extents and strides count them. conj, 1: a's are conjugated, 2: b's. */
    void (*c64)(const weft_gemm *g, int conj, const float *a, const float *b, float *c, void *scratch);
    void (*c128)(const weft_gemm *g, int conj, const double *a, const double *b, double *c, void *scratch);
    size_t (*c64_scratch)(const weft_gemm *g);
    size_t (*c128_scratch)(const weft_gemm *g);
    /* Bytes of 64-byte aligned scratch that f32 and f64 need. */
    size_t (*f32_scratch)(const weft_gemm *g);
    size_t (*f64_scratch)(const weft_gemm *g);
    /* True where f32 reads b in place, which beats every library (n up to about 128). */
    bool (*f32_direct)(const weft_gemm *g);
    /* The calls, at most `most`, that f32 would make for a direct product; 0 where there are more, or none
     * but f32 can do it. Where b's unit stride is not along n, they want its columns packed, b_k apart: the
     * new b_k is set, and f32_pack(to, b_k, b, b_n, the old b_k, n, k) makes them. */
    int64_t (*f32_calls)(weft_gemm *g, weft_gemm_call_f32 *calls, int64_t most);
    void (*f32_pack)(float *to, int64_t width, const float *from, int64_t s_i, int64_t s_k, int64_t rows,
                     int64_t k);
    void (*gemv_f32)(const weft_gemv *g, const float *x, const float *v, float *out);
    void (*gemv_f64)(const weft_gemv *g, const double *x, const double *v, double *out);
    void (*gemv_bf16)(const weft_gemv *g, const uint16_t *x, const float *v, float *out);
    void (*gemv_f16)(const weft_gemv *g, const uint16_t *x, const float *v, float *out);
    /* Conversions of n neighbours. */
    void (*from_f16)(int64_t n, const uint16_t *from, float *to);
    void (*from_bf16)(int64_t n, const uint16_t *from, float *to);
    void (*to_f16)(int64_t n, const float *from, uint16_t *to);
    void (*to_bf16)(int64_t n, const float *from, uint16_t *to);
    /* to[i] += from[i] */
    void (*add_f32)(int64_t n, const float *from, float *to);
    void (*add_f64)(int64_t n, const double *from, double *to);
    void (*add_f16)(int64_t n, const uint16_t *from, float *to);
    void (*add_bf16)(int64_t n, const uint16_t *from, float *to);
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
/* heavy.c: the table of weft__cpu_isa(). */
const weft_gemm_own *weft__gemm_own(void);

/* The matmul library: f32 always, f64 and complex numbers where it is a CBLAS. */
typedef struct weft_matmul_library {
    bool f32, f64, complex; /* what it serves; all false: own kernels serve all */
} weft_matmul_library;

/* matmul_library.c: opened at the first call, once for the process. Never NULL. */
const weft_matmul_library *weft__matmul_library(void);
/* True when a library can take these strides and sizes: unit strides, leading dimensions that fit. */
bool weft__library_fits(const weft_gemm *g);
/* One product on the calling thread alone. The library serves the dtype and the product fits. */
void weft__library_f32(const weft_gemm *g, const float *a, const float *b, float *c);
void weft__library_f64(const weft_gemm *g, const double *a, const double *b, double *c);
/* The same of complex numbers, which strides and leading dimensions count: c64 or c128. */
bool weft__library_takes_complex(const weft_gemm *g, int conj);
void weft__library_complex(const weft_gemm *g, weft_dtype dtype, int conj, const void *a, const void *b,
                           void *c);

/* Between these two calls library products run on the calling thread alone, whatever the OpenMP settings. */
int weft__library_enter(void);
void weft__library_leave(int token);

/* How products are cut: where block i of `blocks` begins; border `blocks` is the extent. Multiples of 16
 * where that is fine enough. */
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

/* gemv.c: products whose m or n is 1, batch dimensions folded into m where possible. */
bool weft__cpu_gemv_takes(const weft_heavy_matmul *mm);
weft_status weft__cpu_gemv_prepare(weft_context *ctx, const weft_heavy_matmul *mm, weft_cpu_work *work);

#endif
