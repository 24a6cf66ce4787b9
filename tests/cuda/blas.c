/* cuBLASLt for tests, and hipBLASLt behind hip/blas.c: naive column-major matmuls, computed in stream order
 * when the simulated driver gets there. It is as strict as the library: descriptors must have their sizes and
 * their order, an algorithm must serve the problem that it was proposed for, and addresses must be aligned as
 * promised. This file must not know Weft, except for its declarations. Read next: fake.h. */
#include "fake_blas.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) fake_blas_state fake_blas;

enum { WORKSPACE = 1 << 20, ALGORITHMS = 3, INVALID = CUBLAS_STATUS_INVALID_VALUE };

unsigned fake_blas_refuse(const char *function, const char *why, ...) {
    va_list args;
    fprintf(stderr, "BLASLt of the tests: %s: ", function);
    va_start(args, why);
    vfprintf(stderr, why, args);
    va_end(args);
    fputc('\n', stderr);
    fake_blas.refused++;
    return INVALID;
}

__attribute__((destructor)) static void at_end(void) {
    if (fake_blas.refused) _exit(1);
}

size_t cublasLtGetVersion(void) { return 130102; }

const char *cublasLtGetStatusName(unsigned status) {
    return status == 0                                ? "CUBLAS_STATUS_SUCCESS"
           : status == INVALID                        ? "CUBLAS_STATUS_INVALID_VALUE"
           : status == CUBLAS_STATUS_EXECUTION_FAILED ? "CUBLAS_STATUS_EXECUTION_FAILED"
           : status == CUBLAS_STATUS_NOT_INITIALIZED  ? "CUBLAS_STATUS_NOT_INITIALIZED"
           : status == CUBLAS_STATUS_ALLOC_FAILED     ? "CUBLAS_STATUS_ALLOC_FAILED"
                                                      : "CUBLAS_STATUS_SOMETHING";
}

unsigned cublasLtCreate(cublasLtHandle_t *handle) {
    if (fake_blas.no_handle) return CUBLAS_STATUS_NOT_INITIALIZED;
    *handle = calloc(1, sizeof **handle);
    (*handle)->alive = 1;
    fake_blas.objects++;
    return 0;
}

static unsigned drop(void *object) {
    free(object);
    fake_blas.objects--;
    return 0;
}

unsigned cublasLtDestroy(cublasLtHandle_t handle) { return drop(handle); }

/* ---- descriptors ---- */

static unsigned put(const char *function, void *to, size_t size, const void *value, size_t bytes) {
    if (bytes != size) return fake_blas_refuse(function, "an attribute of %zu bytes in %zu", size, bytes);
    memcpy(to, value, size);
    return 0;
}
#define PUT(member) put(__func__, &(member), sizeof(member), value, bytes)

unsigned cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *desc, unsigned compute, unsigned scale) {
    *desc = calloc(1, sizeof **desc);
    (*desc)->compute = compute;
    (*desc)->scale = scale;
    (*desc)->epilogue = CUBLASLT_EPILOGUE_DEFAULT;
    (*desc)->bias_type = -1;
    fake_blas.objects++;
    return 0;
}
unsigned cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t desc) { return drop(desc); }

unsigned cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d, unsigned attribute, const void *value,
                                        size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATMUL_DESC_TRANSA: return PUT(d->transposed[0]);
    case CUBLASLT_MATMUL_DESC_TRANSB: return PUT(d->transposed[1]);
    case CUBLASLT_MATMUL_DESC_EPILOGUE: return PUT(d->epilogue);
    case CUBLASLT_MATMUL_DESC_BIAS_POINTER: return PUT(d->bias);
    case CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE: return PUT(d->bias_type);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER: return PUT(d->aux);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD: return PUT(d->aux_ld);
    case CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_BATCH_STRIDE: return PUT(d->aux_step);
    default: return fake_blas_refuse(__func__, "attribute %u", attribute);
    }
}

unsigned cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *layout, unsigned type, uint64_t rows,
                                    uint64_t columns, int64_t ld) {
    if (!rows || !columns || ld < (int64_t)rows)
        return fake_blas_refuse(__func__, "%ld x %ld, ld %ld", (long)rows, (long)columns, (long)ld);
    *layout = calloc(1, sizeof **layout);
    **layout =
        (struct weft__blas_layout){.type = type, .batch = 1, .rows = rows, .columns = columns, .ld = ld};
    fake_blas.objects++;
    return 0;
}
unsigned cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t layout) { return drop(layout); }

unsigned cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l, unsigned attribute, const void *value,
                                          size_t bytes) {
    if (attribute == CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT) return PUT(l->batch);
    if (attribute == CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET) return PUT(l->step);
    return fake_blas_refuse(__func__, "attribute %u", attribute);
}

unsigned cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *preference) {
    *preference = calloc(1, sizeof **preference);
    **preference = (struct weft__blas_preference){.schemes = 7, .alignment = {256, 256, 256, 256}};
    fake_blas.objects++;
    return 0;
}
unsigned cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t preference) { return drop(preference); }

unsigned cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p, unsigned attribute,
                                              const void *value, size_t bytes) {
    switch (attribute) {
    case CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES: return PUT(p->workspace);
    case CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK: return PUT(p->schemes);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES: return PUT(p->alignment[0]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES: return PUT(p->alignment[1]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES: return PUT(p->alignment[2]);
    case CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES: return PUT(p->alignment[3]);
    default: return fake_blas_refuse(__func__, "attribute %u", attribute);
    }
}

/* ---- numbers ---- */

static size_t size_of(unsigned type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

static double from_f16(uint16_t h) {
    const int exponent = h >> 10 & 31, digits = h & 1023;
    const double x = exponent == 31 ? (digits ? (double)NAN : (double)INFINITY)
                     : exponent     ? ldexp(1024 + digits, exponent - 25)
                                    : ldexp(digits, -24);
    return h >> 15 ? -x : x;
}

static double read_at(const void *p, int64_t i, unsigned type) {
    float f;
    uint32_t bits;
    switch (type) {
    case CUDA_R_64F: return ((const double *)p)[i];
    case CUDA_R_32F: return (double)((const float *)p)[i];
    case CUDA_R_16F: return from_f16(((const uint16_t *)p)[i]);
    default:
        bits = (uint32_t)((const uint16_t *)p)[i] << 16;
        memcpy(&f, &bits, sizeof f);
        return (double)f;
    }
}

/* Rounds x to a number of significant digits. `least` is the smallest exponent. */
static double rounded(double x, int digits, int least) {
    int exponent;
    if (!isfinite(x) || x == 0) return x;
    frexp(x, &exponent);
    if (exponent < least) exponent = least;
    return ldexp(nearbyint(ldexp(x, digits - exponent)), exponent - digits);
}

static uint16_t to_f16(double x) {
    const double r = fabs(rounded(x, 11, -13));
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    int exponent;
    if (isnan(x)) return 0x7e00;
    if (r >= 65536) return sign | 0x7c00;
    const double digits = frexp(r, &exponent);
    if (exponent < -13) return sign | (uint16_t)ldexp(r, 24);
    return sign | (uint16_t)((exponent + 14) << 10 | ((int)ldexp(digits, 11) & 1023));
}

static void write_at(void *p, int64_t i, unsigned type, double x) {
    float f = (float)x;
    uint32_t bits;
    switch (type) {
    case CUDA_R_64F: ((double *)p)[i] = x; break;
    case CUDA_R_32F: ((float *)p)[i] = f; break;
    case CUDA_R_16F: ((uint16_t *)p)[i] = to_f16(x); break;
    default:
        f = (float)rounded(x, 8, -125);
        memcpy(&bits, &f, sizeof bits);
        ((uint16_t *)p)[i] = isnan(x) ? 0x7fc0 : (uint16_t)(bits >> 16);
    }
}

/* ---- matmuls ---- */

typedef struct job {
    struct weft__blas_desc desc;
    struct weft__blas_layout a, b, c, d;
    const void *a_at, *b_at, *c_at;
    void *d_at, *workspace;
    void *synchronizer;
    double alpha, beta;
    int algorithm, times;
} job;

/* Rounds f32 to TF32 if the matmul uses it. */
static double narrow(const job *j, double x) {
    return j->desc.compute == CUBLAS_COMPUTE_32F_FAST_TF32 ? rounded(x, 11, -125) : x;
}

static double sum_of(const job *j, const void *a, const void *b, uint64_t row, uint64_t column, uint64_t from,
                     uint64_t to) {
    double sum = 0;
    const bool at = j->desc.transposed[0], bt = j->desc.transposed[1];
    for (uint64_t k = from; k < to; k++) {
        const int64_t i = at ? (int64_t)row * j->a.ld + (int64_t)k : (int64_t)k * j->a.ld + (int64_t)row;
        const int64_t l =
            bt ? (int64_t)k * j->b.ld + (int64_t)column : (int64_t)column * j->b.ld + (int64_t)k;
        sum += narrow(j, read_at(a, i, j->a.type)) * narrow(j, read_at(b, l, j->b.type));
    }
    return sum;
}

/* The sum of a column of b. */
static double sum_of_b(const job *j, const void *b, uint64_t column, uint64_t k) {
    double sum = 0;
    for (uint64_t i = 0; i < k; i++)
        sum += read_at(b,
                       (int64_t)(j->desc.transposed[1] ? i * (uint64_t)j->b.ld + column
                                                       : column * (uint64_t)j->b.ld + i),
                       j->b.type);
    return sum;
}

static double gelu(double x) { return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x))); }

static double gelu_slope(double x) {
    const double t = tanh(0.7978845608028654 * (x + 0.044715 * x * x * x));
    return 0.5 * (1 + t) + 0.5 * x * (1 - t * t) * 0.7978845608028654 * (1 + 3 * 0.044715 * x * x);
}

static void *offset(const void *p, int64_t elements, unsigned type) {
    return (char *)(uintptr_t)p + elements * (int64_t)size_of(type);
}

static void one(const job *j, int64_t batch, uint64_t row, uint64_t column) {
    const void *a = offset(j->a_at, batch * j->a.step, j->a.type);
    const void *b = offset(j->b_at, batch * j->b.step, j->b.type);
    const uint64_t k = j->desc.transposed[0] ? j->a.rows : j->a.columns, half = k / 2;
    const int64_t at = batch * j->d.step + (int64_t)column * j->d.ld + (int64_t)row;
    const int64_t aux = batch * j->desc.aux_step + (int64_t)column * j->desc.aux_ld + (int64_t)row;
    double x = 0;
    for (int part = 0; part < (j->algorithm == 2 ? 2 : 1); part++) {
        const double sum =
            sum_of(j, a, b, row, column, part ? half : 0, j->algorithm == 2 && !part ? half : k);
        x += j->algorithm == 2 && j->desc.compute != CUBLAS_COMPUTE_64F ? (double)(float)sum : sum;
    }
    void *aux_at = (void *)(uintptr_t)j->desc.aux;
    x *= j->alpha;
    if (j->beta != 0)
        x += j->beta *
             read_at(j->c_at, batch * j->c.step + (int64_t)column * j->c.ld + (int64_t)row, j->c.type);
    if (j->desc.epilogue & CUBLASLT_EPILOGUE_BIAS)
        x += read_at((const void *)(uintptr_t)j->desc.bias, (int64_t)row, (unsigned)j->desc.bias_type);
    if (j->desc.epilogue == CUBLASLT_EPILOGUE_BGRADB && row == 0)
        write_at((void *)(uintptr_t)j->desc.bias, (int64_t)column, (unsigned)j->desc.bias_type,
                 sum_of_b(j, b, column, k));
    if (j->desc.epilogue & CUBLASLT_EPILOGUE_GELU) {
        if (j->desc.epilogue & 128) write_at(aux_at, aux, j->d.type, x);
        x = gelu(x);
    } else if (j->desc.epilogue == CUBLASLT_EPILOGUE_DGELU) {
        x *= gelu_slope(read_at(aux_at, aux, j->d.type));
    }
    write_at(j->d_at, at, j->d.type, x);
}

/* Says which memory a matrix uses, column by column. */
static void use(const void *at, int64_t ld, int64_t step, const struct weft__blas_layout *like, int writes) {
    for (int64_t i = 0; i < like->batch; i++)
        for (int64_t column = 0; column < (int64_t)like->columns; column++)
            fake_uses(offset(at, i * step + column * ld, like->type), like->rows * size_of(like->type),
                      writes);
}

static void use_all(const job *j) {
    const unsigned epilogue = (unsigned)j->desc.epilogue, type = (unsigned)j->desc.bias_type;
    const bool sums = j->desc.epilogue == CUBLASLT_EPILOGUE_BGRADB;
    if (j->algorithm) fake_uses(j->workspace, WORKSPACE, 1);
    if (j->synchronizer) fake_uses(j->synchronizer, FAKE_SYNCHRONIZER, 1);
    use(j->a_at, j->a.ld, j->a.step, &j->a, 0);
    use(j->b_at, j->b.ld, j->b.step, &j->b, 0);
    if (j->beta != 0) use(j->c_at, j->c.ld, j->c.step, &j->c, 0);
    if (sums || epilogue & CUBLASLT_EPILOGUE_BIAS)
        fake_uses((const void *)(uintptr_t)j->desc.bias, (sums ? j->d.columns : j->d.rows) * size_of(type),
                  sums);
    if (epilogue & 128)
        use((const void *)(uintptr_t)j->desc.aux, j->desc.aux_ld, j->desc.aux_step, &j->d,
            j->desc.epilogue != CUBLASLT_EPILOGUE_DGELU);
    use(j->d_at, j->d.ld, j->d.step, &j->d, 1);
}

/* The first and the last algorithm compute each element twice, and so take twice as long. */
static unsigned multiply(void *data) {
    const job *j = data;
    use_all(j);
    if (j->algorithm) memset(j->workspace, 0x5a, WORKSPACE);
    const int times = j->beta != 0 ? 1 : j->times; /* C may be the same memory as D */
    for (int time = 0; time < times; time++)
        for (int64_t i = 0; i < j->d.batch; i++)
            for (uint64_t column = 0; column < j->d.columns; column++)
                for (uint64_t row = 0; row < j->d.rows; row++) one(j, i, row, column);
    return 0;
}

/* ---- problems ---- */

static bool types_go(const struct weft__blas_desc *desc, const struct weft__blas_layout *a,
                     const struct weft__blas_layout *b, const struct weft__blas_layout *c,
                     const struct weft__blas_layout *d) {
    const bool half = a->type == CUDA_R_16F || a->type == CUDA_R_16BF;
    if (a->type != b->type || c->type != d->type) return false;
    if (desc->epilogue & (CUBLASLT_EPILOGUE_BIAS | CUBLASLT_EPILOGUE_BGRADB) &&
        desc->bias_type != (int32_t)d->type)
        return false;
    if (a->type == CUDA_R_64F)
        return d->type == a->type && desc->compute == CUBLAS_COMPUTE_64F && desc->scale == CUDA_R_64F;
    if (desc->scale != CUDA_R_32F) return false;
    if (desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32) return a->type == CUDA_R_32F && d->type == a->type;
    return desc->compute == CUBLAS_COMPUTE_32F && (d->type == a->type || (half && d->type == CUDA_R_32F));
}

static bool shapes_go(const struct weft__blas_desc *desc, const struct weft__blas_layout *a,
                      const struct weft__blas_layout *b, const struct weft__blas_layout *d) {
    const bool at = desc->transposed[0], bt = desc->transposed[1];
    const bool has_aux = desc->epilogue & 128;
    return (at ? a->columns : a->rows) == d->rows && (bt ? b->rows : b->columns) == d->columns &&
           (at ? a->rows : a->columns) == (bt ? b->columns : b->rows) && a->batch == d->batch &&
           b->batch == d->batch &&
           (!has_aux || (desc->aux_ld % 8 == 0 && desc->aux_ld >= (int64_t)d->rows && desc->aux));
}

static uint64_t mixed(uint64_t hash, const void *data, size_t bytes) {
    const unsigned char *p = data;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ p[i]) * 1099511628211u;
    return hash;
}

static uint64_t problem_of(const struct weft__blas_desc *desc, const struct weft__blas_layout *a,
                           const struct weft__blas_layout *b, const struct weft__blas_layout *d) {
    struct weft__blas_desc plain = *desc;
    plain.bias = plain.aux = 0;
    uint64_t hash = mixed(14695981039346656037u, &plain, sizeof plain);
    hash = mixed(hash, a, sizeof *a);
    hash = mixed(hash, b, sizeof *b);
    return mixed(hash, d, sizeof *d);
}

unsigned cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                        cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                        cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                        cublasLtMatmulPreference_t preference, int most,
                                        cublasLtMatmulHeuristicResult_t *results, int *count) {
    *count = 0;
    fake_blas.heuristics++;
    if (!handle->alive || most < 1) return fake_blas_refuse(__func__, "nothing is asked for");
    if (!shapes_go(desc, a, b, d)) return fake_blas_refuse(__func__, "shapes that do not go together");
    if ((d->type == CUDA_R_16F || d->type == CUDA_R_16BF) && preference->schemes != 2)
        return fake_blas_refuse(__func__, "sums that may be rounded to 16 bits between");
    if (fake_blas.decline || fake_declines() || !types_go(desc, a, b, c, d))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    uint64_t aligned = 0;
    for (int i = 0; i < 4; i++) aligned = aligned << 16 | preference->alignment[i];
    for (int i = 0; i < ALGORITHMS && i < most; i++) {
        const size_t workspace = i ? WORKSPACE : 0;
        if (workspace > preference->workspace) continue;
        memset(&results[*count], 0, sizeof *results);
        results[*count].workspaceSize = workspace;
        results[*count].algo.data[0] = (uint64_t)i;
        results[*count].algo.data[1] = problem_of(desc, a, b, d);
        results[*count].algo.data[2] = aligned;
        ++*count;
    }
    return 0;
}

/* Checks what the real function checks: the algorithm and its descriptors, not the addresses of the
 * operands. */
unsigned cublasLtMatmulAlgoCheck(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, cublasLtMatrixLayout_t a,
                                 cublasLtMatrixLayout_t b, cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                 const cublasLtMatmulAlgo_t *algo, cublasLtMatmulHeuristicResult_t *result) {
    if (!handle->alive || !shapes_go(desc, a, b, d))
        return fake_blas_refuse(__func__, "shapes that do not go together");
    if (algo->data[0] >= ALGORITHMS || algo->data[1] != problem_of(desc, a, b, d) ||
        !types_go(desc, a, b, c, d))
        return INVALID;
    result->workspaceSize = algo->data[0] ? WORKSPACE : 0;
    return 0;
}

unsigned cublasLtMatmulAlgoCapGetAttribute(const cublasLtMatmulAlgo_t *algo, unsigned attribute, void *to,
                                           size_t bytes, size_t *written) {
    const unsigned side = attribute - CUBLASLT_ALGO_CAP_MIN_ALIGNMENT_A_BYTES;
    if (side > 3 || bytes != sizeof(uint32_t)) return fake_blas_refuse(__func__, "attribute %u", attribute);
    const uint32_t alignment = algo->data[2] >> (48 - 16 * side) & 0xffff;
    *written = sizeof alignment;
    memcpy(to, &alignment, sizeof alignment);
    return 0;
}

static bool is_aligned(const void *p, uint64_t bytes) { return p && bytes && (uintptr_t)p % bytes == 0; }

static uint64_t bytes_of(const struct weft__blas_layout *l) {
    return (uint64_t)((int64_t)(l->columns - 1) * l->ld + (int64_t)l->rows + (l->batch - 1) * l->step) *
           size_of(l->type);
}

static const char *wrong_with(const job *j, const cublasLtMatmulAlgo_t *algo, size_t workspace) {
    const uint64_t bytes = algo->data[2];
    if (algo->data[1] != problem_of(&j->desc, &j->a, &j->b, &j->d)) return "an algorithm of another problem";
    if (!is_aligned(j->a_at, bytes >> 48) || !is_aligned(j->b_at, bytes >> 32 & 0xffff) ||
        !is_aligned(j->c_at, bytes >> 16 & 0xffff) || !is_aligned(j->d_at, bytes & 0xffff))
        return "an address that is not aligned as was said";
    if (j->algorithm && (workspace < WORKSPACE || !is_aligned(j->workspace, 16)))
        return "too little workspace";
    if (!fake_is_on_card(j->a_at, bytes_of(&j->a)) || !fake_is_on_card(j->b_at, bytes_of(&j->b)) ||
        !fake_is_on_card(j->d_at, bytes_of(&j->d)) ||
        (j->beta != 0 && !fake_is_on_card(j->c_at, bytes_of(&j->c))) ||
        (j->algorithm && !fake_is_on_card(j->workspace, WORKSPACE)))
        return "a matrix that is not in memory of the card";
    return NULL;
}

unsigned cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *a,
                        cublasLtMatrixLayout_t a_layout, const void *b, cublasLtMatrixLayout_t b_layout,
                        const void *beta, const void *c, cublasLtMatrixLayout_t c_layout, void *d,
                        cublasLtMatrixLayout_t d_layout, const cublasLtMatmulAlgo_t *algo, void *workspace,
                        size_t workspace_bytes, CUstream stream) {
    const bool wide = desc->scale == CUDA_R_64F;
    const job j = {.desc = *desc,
                   .a = *a_layout,
                   .b = *b_layout,
                   .c = *c_layout,
                   .d = *d_layout,
                   .a_at = a,
                   .b_at = b,
                   .c_at = c,
                   .d_at = d,
                   .workspace = workspace,
                   .synchronizer = handle->synchronizer,
                   .alpha = wide ? *(const double *)alpha : (double)*(const float *)alpha,
                   .beta = wide ? *(const double *)beta : (double)*(const float *)beta,
                   .algorithm = (int)algo->data[0],
                   .times = (algo->data[0] == 1 ? 1 : 2) *
                            (fake_blas.slow_bias && desc->epilogue & CUBLASLT_EPILOGUE_BIAS ? 40 : 1)};
    if (!handle->alive || !shapes_go(desc, a_layout, b_layout, d_layout))
        return fake_blas_refuse(__func__, "shapes that do not go together");
    const char *wrong = wrong_with(&j, algo, workspace_bytes);
    if (wrong) return fake_blas_refuse(__func__, "%s", wrong);
    if (fake_blas.fail && --fake_blas.fail == 0) return CUBLAS_STATUS_EXECUTION_FAILED;
    if (fake_blas.no_memory && --fake_blas.no_memory == 0) return CUBLAS_STATUS_ALLOC_FAILED;
    fake_blas.products++;
    fake_blas.epilogues += desc->epilogue != CUBLASLT_EPILOGUE_DEFAULT || j.beta != 0;
    fake_blas.last = (long)algo->data[0];
    return fake_enqueue(stream, multiply, &j, sizeof j) ? CUBLAS_STATUS_EXECUTION_FAILED : 0;
}
