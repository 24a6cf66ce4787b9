/* Kernels of packed matrices, compiled once for each instruction set (WEFT_ISA: baseline, avx2, avx512,
 * vnni). 16 rows of the matrix become a panel of bytes: four numbers of each row, then the next four of each.
 * So a lane of a vector belongs to one row. Sums of one span are exact integers, and the spans are added in
 * order in f32. Results of two instruction sets differ only because one of them has fused multiply-add. Must
 * not know: tasks, threads. Read next: packed_panel.inc (the formats), heavy/packed.h. */
#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "device/cpu/gemm/packed.h"
#include "heavy/packed.h"

#define ALWAYS inline __attribute__((always_inline))
#if defined(__clang__)
#define UNROLL _Pragma("clang loop unroll(full)")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__AVX512F__)
#define VECTOR_BYTES 64
#elif defined(__AVX2__)
#define VECTOR_BYTES 32
#else
#define VECTOR_BYTES 16
#endif
enum { COLUMNS = WEFT_PACKED_COLUMNS, LANES = VECTOR_BYTES / 4, VECS = COLUMNS / LANES };

typedef int32_t v_i32 __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef uint32_t v_u32 __attribute__((vector_size(VECTOR_BYTES), may_alias));
typedef float v_f32 __attribute__((vector_size(VECTOR_BYTES), may_alias));

/* A float for each column. */
typedef struct column_floats {
    v_f32 v[VECS];
} column_floats;
/* Four bytes for each column. */
typedef struct column_words {
    v_u32 v[VECS];
} column_words;

/* The bytes of a panel, and for each span the factor of its sums, and a term that is added to each number. */
typedef struct packed_panel {
    column_words *words; /* one for each four numbers */
    column_floats *scale, *term;
} packed_panel;

/* The rows of the packed matrix that make a panel. If there are fewer than 16, the last one is repeated. */
typedef struct packed_columns {
    const uint8_t *row[COLUMNS];
    v_i32 place[VECS];          /* bytes from the first row to each row */
    const uint8_t *ahead, *end; /* the rows that are read next */
} packed_columns;

static ALWAYS column_words words_masked(column_words a, int shift, uint32_t mask) {
    UNROLL for (int v = 0; v < VECS; v++) a.v[v] = a.v[v] >> shift & mask;
    return a;
}

static ALWAYS column_floats times(column_floats a, column_floats b) {
    UNROLL for (int v = 0; v < VECS; v++) a.v[v] *= b.v[v];
    return a;
}

static ALWAYS column_floats negated(column_floats a) {
    UNROLL for (int v = 0; v < VECS; v++) a.v[v] = -a.v[v];
    return a;
}

/* Words of up to eight bits, or, with sign, bytes `at` of the words, as floats. */
static ALWAYS column_floats byte_floats(column_words a, int at, bool sign) {
    column_floats out;
    UNROLL for (int v = 0; v < VECS; v++) {
        const v_u32 high = a.v[v] << (24 - 8 * at);
        out.v[v] = __builtin_convertvector(sign ? (v_i32)high >> 24 : (v_i32)(high >> 24), v_f32);
    }
    return out;
}

/* ---- what each instruction set does in its own way ---- */

/* word_at: the word at byte `at` of each row. turned: the four words there. halves: the f16 in the low or the
 * high half of each word. */
#if defined(__AVX512F__)
static ALWAYS column_words word_at(const packed_columns *c, int64_t at) {
    column_words out;
    out.v[0] = (v_u32)_mm512_i32gather_epi32((__m512i)c->place[0], c->row[0] + at, 1);
    return out;
}

static ALWAYS __m512i four_rows(const packed_columns *c, int first, int64_t at) {
    const __m128i *row[4];
    UNROLL for (int i = 0; i < 4; i++) row[i] = (const __m128i *)(const void *)(c->row[first + 4 * i] + at);
    __m512i r = _mm512_castsi128_si512(_mm_loadu_si128(row[0]));
    r = _mm512_inserti32x4(r, _mm_loadu_si128(row[1]), 1);
    r = _mm512_inserti32x4(r, _mm_loadu_si128(row[2]), 2);
    return _mm512_inserti32x4(r, _mm_loadu_si128(row[3]), 3);
}

static ALWAYS void turned(const packed_columns *c, int64_t at, column_words out[4]) {
    const __m512i a = four_rows(c, 0, at), b = four_rows(c, 1, at), d = four_rows(c, 2, at),
                  e = four_rows(c, 3, at);
    const __m512i ab = _mm512_unpacklo_epi32(a, b), AB = _mm512_unpackhi_epi32(a, b);
    const __m512i de = _mm512_unpacklo_epi32(d, e), DE = _mm512_unpackhi_epi32(d, e);
    out[0].v[0] = (v_u32)_mm512_unpacklo_epi64(ab, de);
    out[1].v[0] = (v_u32)_mm512_unpackhi_epi64(ab, de);
    out[2].v[0] = (v_u32)_mm512_unpacklo_epi64(AB, DE);
    out[3].v[0] = (v_u32)_mm512_unpackhi_epi64(AB, DE);
}

static ALWAYS column_floats halves(column_words a, int shift) {
    column_floats out;
    out.v[0] = (v_f32)_mm512_cvtph_ps(_mm512_cvtepi32_epi16((__m512i)(a.v[0] >> shift)));
    return out;
}

static ALWAYS v_f32 fma_of(v_f32 a, v_f32 b, v_f32 c) {
    return (v_f32)_mm512_fmadd_ps((__m512)a, (__m512)b, (__m512)c);
}
#elif defined(__AVX2__)
static ALWAYS column_words word_at(const packed_columns *c, int64_t at) {
    column_words out;
    UNROLL for (int v = 0; v < VECS; v++) out.v[v] =
        (v_u32)_mm256_i32gather_epi32((const int *)(const void *)(c->row[0] + at), (__m256i)c->place[v], 1);
    return out;
}

static ALWAYS __m256i two_rows(const packed_columns *c, int first, int64_t at) {
    const __m128i *low = (const __m128i *)(const void *)(c->row[first] + at),
                  *high = (const __m128i *)(const void *)(c->row[first + 4] + at);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(low)), _mm_loadu_si128(high), 1);
}

static ALWAYS void turned(const packed_columns *c, int64_t at, column_words out[4]) {
    UNROLL for (int v = 0; v < VECS; v++) {
        const __m256i a = two_rows(c, 8 * v, at), b = two_rows(c, 8 * v + 1, at),
                      d = two_rows(c, 8 * v + 2, at), e = two_rows(c, 8 * v + 3, at);
        const __m256i ab = _mm256_unpacklo_epi32(a, b), AB = _mm256_unpackhi_epi32(a, b);
        const __m256i de = _mm256_unpacklo_epi32(d, e), DE = _mm256_unpackhi_epi32(d, e);
        out[0].v[v] = (v_u32)_mm256_unpacklo_epi64(ab, de);
        out[1].v[v] = (v_u32)_mm256_unpackhi_epi64(ab, de);
        out[2].v[v] = (v_u32)_mm256_unpacklo_epi64(AB, DE);
        out[3].v[v] = (v_u32)_mm256_unpackhi_epi64(AB, DE);
    }
}

static ALWAYS column_floats halves(column_words a, int shift) {
    column_floats out;
    UNROLL for (int v = 0; v < VECS; v++) {
        const __m256i low = (__m256i)(a.v[v] >> shift & 0xffff);
        const __m256i both = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, low), 0x08);
        out.v[v] = (v_f32)_mm256_cvtph_ps(_mm256_castsi256_si128(both));
    }
    return out;
}

static ALWAYS v_f32 fma_of(v_f32 a, v_f32 b, v_f32 c) {
    return (v_f32)_mm256_fmadd_ps((__m256)a, (__m256)b, (__m256)c);
}
#else
static ALWAYS column_words word_at(const packed_columns *c, int64_t at) {
    uint32_t words[COLUMNS];
    column_words out;
    for (int i = 0; i < COLUMNS; i++) memcpy(&words[i], c->row[i] + at, 4);
    memcpy(&out, words, sizeof out);
    return out;
}

static ALWAYS void turned(const packed_columns *c, int64_t at, column_words out[4]) {
    for (int j = 0; j < 4; j++) out[j] = word_at(c, at + 4 * j);
}

static ALWAYS column_floats halves(column_words a, int shift) {
    column_floats out;
    for (int i = 0; i < COLUMNS; i++)
        out.v[i / LANES][i % LANES] = weft_f16_to_f32((uint16_t)(a.v[i / LANES][i % LANES] >> shift));
    return out;
}

static ALWAYS v_f32 fma_of(v_f32 a, v_f32 b, v_f32 c) { return a * b + c; }
#endif

/* Adds to each lane the products of its four bytes with the four bytes of x. Bytes of w are 0..255 with VNNI,
 * else signed. Bytes of x are -127..127. */
#if defined(__AVX512VNNI__)
#define UNSIGNED_BYTES 1
static ALWAYS v_i32 dot(v_i32 sum, v_u32 w, int32_t x) {
    return (v_i32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, _mm512_set1_epi32(x));
}
#elif defined(__AVX512F__)
#define UNSIGNED_BYTES 0
static ALWAYS v_i32 dot(v_i32 sum, v_u32 w, int32_t x) {
    const __m512i xs = _mm512_set1_epi32(x), ws = (__m512i)w;
    const __m512i even = _mm512_madd_epi16(_mm512_srai_epi16(_mm512_slli_epi16(ws, 8), 8),
                                           _mm512_srai_epi16(_mm512_slli_epi16(xs, 8), 8));
    const __m512i odd = _mm512_madd_epi16(_mm512_srai_epi16(ws, 8), _mm512_srai_epi16(xs, 8));
    return sum + (v_i32)even + (v_i32)odd;
}
#elif defined(__AVX2__)
#define UNSIGNED_BYTES 0
/* |w| is at most 128, so no sum of two products exceeds 16 bits. */
static ALWAYS v_i32 dot(v_i32 sum, v_u32 w, int32_t x) {
    const __m256i ws = (__m256i)w, xs = _mm256_sign_epi8(_mm256_set1_epi32(x), ws);
    const __m256i pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(ws), xs);
    return sum + (v_i32)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
}
#else
#define UNSIGNED_BYTES 0
static ALWAYS v_i32 dot(v_i32 sum, v_u32 w, int32_t x) {
    UNROLL for (int j = 0; j < 4; j++) sum +=
        ((v_i32)(w << (24 - 8 * j)) >> 24) * (int32_t)(int8_t)((uint32_t)x >> 8 * j);
    return sum;
}
#endif

#include "device/cpu/gemm/packed_panel.inc"

/* ---- rounding x ---- */

#define MAGIC 0x1.8p23f /* adding it rounds a float below 2^22 to a whole number, in the low bits */

/* The largest lane, the sum of the lanes, and lanes of -128..127 as bytes. */
#if defined(__AVX512F__)
static ALWAYS int32_t lanes_most(v_i32 v) { return _mm512_reduce_max_epi32((__m512i)v); }
static ALWAYS int32_t lanes_total(v_i32 v) { return _mm512_reduce_add_epi32((__m512i)v); }
static ALWAYS void put_bytes(v_i32 v, int8_t *to) {
    _mm_storeu_si128((__m128i *)(void *)to, _mm512_cvtepi32_epi8((__m512i)v));
}
#elif defined(__AVX2__)
static ALWAYS int32_t lanes_most(v_i32 v) {
    __m128i m = _mm_max_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    m = _mm_max_epi32(m, _mm_shuffle_epi32(m, 0x4e));
    return _mm_cvtsi128_si32(_mm_max_epi32(m, _mm_shuffle_epi32(m, 0xb1)));
}
static ALWAYS int32_t lanes_total(v_i32 v) {
    __m128i t = _mm_add_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    t = _mm_add_epi32(t, _mm_shuffle_epi32(t, 0x4e));
    return _mm_cvtsi128_si32(_mm_add_epi32(t, _mm_shuffle_epi32(t, 0xb1)));
}
static ALWAYS void put_bytes(v_i32 v, int8_t *to) {
    const __m128i half =
        _mm_packs_epi32(_mm256_castsi256_si128((__m256i)v), _mm256_extracti128_si256((__m256i)v, 1));
    _mm_storel_epi64((__m128i *)(void *)to, _mm_packs_epi16(half, half));
}
#else
static ALWAYS int32_t lanes_most(v_i32 v) {
    int32_t most = v[0];
    for (int j = 1; j < LANES; j++) most = v[j] > most ? v[j] : most;
    return most;
}
static ALWAYS int32_t lanes_total(v_i32 v) {
    int32_t total = 0;
    for (int j = 0; j < LANES; j++) total += v[j];
    return total;
}
static ALWAYS void put_bytes(v_i32 v, int8_t *to) {
    for (int j = 0; j < LANES; j++) to[j] = (int8_t)v[j];
}
#endif

/* Rounds a span, and returns the sum of the whole numbers. Magnitudes compare as their bits do, and NaN is
 * the largest. Spans below 1e-36 become 0, since 127 divided by them might be infinite. */
static ALWAYS int32_t round_span(const int n, const float *x, int8_t *q, float *scale) {
    const int count = n / LANES;
    v_f32 from[32 / LANES];
    v_i32 most = {0}, sum = {0};
    UNROLL for (int i = 0; i < count; i++) {
        memcpy(&from[i], x + i * LANES, sizeof from[i]);
        const v_i32 size = (v_i32)from[i] & 0x7fffffff, larger = size > most;
        most = (size & larger) | (most & ~larger);
    }
    const int32_t largest = lanes_most(most);
    float size;
    memcpy(&size, &largest, sizeof size);
    const bool none = size < 1e-36f, bad = largest >= 0x7f800000;
    const float by = none || bad ? 0 : 127 / size;
    *scale = none ? 0 : bad ? __builtin_nanf("") : size / 127;
    UNROLL for (int i = 0; i < count; i++) {
        const v_f32 magic = (v_f32){0} + MAGIC;
        const v_i32 whole = ((v_i32)(from[i] * by + magic) - (v_i32)magic) & (bad ? 0 : -1);
        put_bytes(whole, q + i * LANES);
        sum += whole;
    }
    return lanes_total(sum);
}

static void round_rows(int format, int64_t rows, const float *x, const weft_packed_x *to) {
    const int64_t span = to->k / (to->spans ? to->spans : 1);
    const int32_t added = added_of(format);
    for (int64_t i = 0; i < rows * to->spans; i++) {
        const float *from = x + i * span;
        const int32_t sum = span == 32 ? round_span(32, from, to->q + i * 32, &to->scale[i])
                                       : round_span(16, from, to->q + i * 16, &to->scale[i]);
        to->sum[i] = to->scale[i] * (float)sum;
        to->less[i] = -added * sum;
    }
}

/* ---- multiplying ---- */

/* Adds the products of spans first..first+spans-1 to `rows` rows of 16 columns. `words` is the number of
 * words of a span for each column. */
static ALWAYS void multiply_rows(const int rows, const int words, const bool terms, int64_t spans,
                                 const packed_panel *p, const weft_packed_x *x, int64_t row, int64_t first,
                                 float *out, int64_t step) {
    v_f32 sum[8][VECS];
    const int8_t *q = x->q + row * x->k + first * words * 4;
    const int64_t at = row * x->spans + first;
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int v = 0; v < VECS; v++) {
            sum[r][v] = (v_f32){0};
            if (first) memcpy(&sum[r][v], out + r * step + v * LANES, sizeof sum[r][v]);
        }
    }
    for (int64_t s = 0; s < spans; s++) {
        v_i32 whole[8][VECS];
        UNROLL for (int r = 0; r < rows; r++) {
            UNROLL for (int v = 0; v < VECS; v++) whole[r][v] = (v_i32){0} + x->less[at + r * x->spans + s];
        }
        UNROLL for (int g = 0; g < words; g++) {
            const column_words w = p->words[s * words + g];
            UNROLL for (int r = 0; r < rows; r++) {
                int32_t four;
                memcpy(&four, q + r * x->k + (s * words + g) * 4, sizeof four);
                UNROLL for (int v = 0; v < VECS; v++) whole[r][v] = dot(whole[r][v], w.v[v], four);
            }
        }
        UNROLL for (int r = 0; r < rows; r++) {
            const float factor = x->scale[at + r * x->spans + s], more = x->sum[at + r * x->spans + s];
            UNROLL for (int v = 0; v < VECS; v++) {
                sum[r][v] =
                    fma_of(__builtin_convertvector(whole[r][v], v_f32), p->scale[s].v[v] * factor, sum[r][v]);
                if (terms) sum[r][v] = fma_of(p->term[s].v[v], (v_f32){0} + more, sum[r][v]);
            }
        }
    }
    UNROLL for (int r = 0; r < rows; r++) {
        UNROLL for (int v = 0; v < VECS; v++)
            memcpy(out + r * step + v * LANES, &sum[r][v], sizeof sum[r][v]);
    }
}

typedef void multiply_fn(int64_t spans, const packed_panel *p, const weft_packed_x *x, int64_t row,
                         int64_t first, float *out, int64_t step);

/* words and terms for each kind of format: 32 numbers a span, those with terms, and 16 numbers a span. */
#define MULTIPLY(rows, words, terms)                                                                         \
    static void multiply_##rows##_##words##_##terms(int64_t spans, const packed_panel *p,                    \
                                                    const weft_packed_x *x, int64_t row, int64_t first,      \
                                                    float *out, int64_t step) {                              \
        multiply_rows(rows, words, terms, spans, p, x, row, first, out, step);                               \
    }
#if VECTOR_BYTES == 64
#define ROWS_MOST         8
#define EACH_ROWS(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(4, __VA_ARGS__) X(8, __VA_ARGS__)
#define ROWS_LIST(kind)                                                                                      \
    { multiply_1_##kind, multiply_2_##kind, multiply_4_##kind, multiply_8_##kind }
#else
#define ROWS_MOST         2
#define EACH_ROWS(X, ...) X(1, __VA_ARGS__) X(2, __VA_ARGS__)
#define ROWS_LIST(kind)                                                                                      \
    { multiply_1_##kind, multiply_2_##kind }
#endif
EACH_ROWS(MULTIPLY, 8, 0)
EACH_ROWS(MULTIPLY, 8, 1)
EACH_ROWS(MULTIPLY, 4, 0)

static multiply_fn *const kinds[3][4] = {ROWS_LIST(8_0), ROWS_LIST(8_1), ROWS_LIST(4_0)};

/* Multiplies all rows of x by the panel. */
static void multiply_panel(multiply_fn *const *by, int64_t spans, const packed_panel *p, int64_t m,
                           const weft_packed_x *x, int64_t first, int64_t columns, float *out, int64_t step) {
    float edge[ROWS_MOST * COLUMNS];
    for (int64_t row = 0; row < m;) {
        int log = 0;
        while (2 << log <= ROWS_MOST && row + (2 << log) <= m) log++;
        const int64_t rows = 1 << log;
        float *to = out + row * step;
        if (columns == COLUMNS) {
            by[log](spans, p, x, row, first, to, step);
        } else { /* the last columns */
            for (int64_t r = 0; r < rows && first; r++)
                memcpy(edge + r * COLUMNS, to + r * step, (size_t)columns * sizeof *edge);
            by[log](spans, p, x, row, first, edge, COLUMNS);
            for (int64_t r = 0; r < rows; r++)
                memcpy(to + r * step, edge + r * COLUMNS, (size_t)columns * sizeof *edge);
        }
        row += rows;
    }
}

static void multiply(const weft_packed_part *part, int64_t m, const weft_packed_x *x, float *out,
                     int64_t step, void *panel) {
    const weft_packed_info *info = weft__packed_info(part->format);
    const bool terms = part->format == WEFT_Q4_1 || part->format == WEFT_Q4_K;
    multiply_fn *const *by = kinds[info->span == 16 ? 2 : terms];
    packed_panel p = {.words = panel};
    p.scale = (column_floats *)(void *)(p.words + WEFT_PACKED_DEPTH / 4);
    p.term = p.scale + WEFT_PACKED_DEPTH / 16;
    packed_columns c;
    c.ahead = part->rows + part->count * part->row_bytes;
    c.end = c.ahead + part->after;
    for (int i = 0; i < COLUMNS; i++) {
        const int64_t place = (i < part->count ? i : part->count - 1) * part->row_bytes;
        c.row[i] = part->rows + place;
        c.place[i / LANES][i % LANES] = (int32_t)place;
    }
    for (int64_t first = 0; first < x->k; first += WEFT_PACKED_DEPTH) {
        const int64_t n = x->k - first < WEFT_PACKED_DEPTH ? x->k - first : WEFT_PACKED_DEPTH;
        fill_panel(part->format, &c, first / info->elements, n / info->elements, &p);
        multiply_panel(by, n / info->span, &p, m, x, first / info->span, part->count, out, step);
    }
}

#ifndef WEFT_ISA
#define WEFT_ISA baseline
#endif
#define PASTE_(a, b) a##b
#define PASTE(a, b)  PASTE_(a, b)

const weft_packed_own PASTE(weft__packed_own_,
                            WEFT_ISA) = {.round = round_rows, .multiply = multiply, .unpack = unpack_blocks};
