/* Packs K blocks of 256 elements, which have scales of scales. The layouts are those of blocks.c. For each
 * part of a block, a search finds the scale, and in Q4_K the minimum, whose rounded elements have the least
 * squared error; the scale itself follows from the rounded elements by least squares. Then the parts' scales
 * are rounded to multiples of the block's. Each part tries the neighbouring multiples, and the block's scale
 * follows by least squares from what they chose. Must not know: files. Read next: blocks.c. */
#include <math.h>
#include <string.h>

#include "published/quantize.h"

enum { BLOCK = 256, LANES = 8 };

/* A part of a block: x is about scale * q + base, q from low to high. */
typedef struct part {
    const float *x;
    int n, low, high; /* n is a multiple of LANES */
} part;

/* Rounds (x - base) * inverse, to at least low and at most high. |x| < 2^22 after the limits, so that adding
 * 1.5 * 2^23 leaves no fraction; the halves go to even numbers. */
static float rounded(float x, float base, float inverse, float low, float high) {
    float q = (x - base) * inverse;
    q = q > low ? q : low;
    q = q < high ? q : high;
    return (q + 12582912.0F) - 12582912.0F;
}

/* The sums that least squares need. */
typedef struct sums {
    float q, qq, xq;
} sums;

static sums round_part(const part *p, float base, float inverse) {
    const float low = (float)p->low, high = (float)p->high;
    float q_of[LANES] = {0}, qq_of[LANES] = {0}, xq_of[LANES] = {0};
    for (int i = 0; i < p->n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const float x = p->x[i + j], q = rounded(x, base, inverse, low, high);
            q_of[j] += q;
            qq_of[j] += q * q;
            xq_of[j] += x * q;
        }
    sums s = {0};
    for (int j = 0; j < LANES; j++) {
        s.q += q_of[j];
        s.qq += qq_of[j];
        s.xq += xq_of[j];
    }
    return s;
}

/* Writes the best q for a scale and a base. Returns the sum of the squared errors. */
static float quantize_part(const part *p, float scale, float base, int8_t *q) {
    const float low = (float)p->low, high = (float)p->high, inverse = scale != 0 ? 1 / scale : 0;
    float error_of[LANES] = {0}, error = 0;
    for (int i = 0; i < p->n; i += LANES)
        for (int j = 0; j < LANES; j++) {
            const float x = p->x[i + j], number = rounded(x, base, inverse, low, high);
            const float off = x - base - scale * number;
            error_of[j] += off * off;
            q[i + j] = (int8_t)number;
        }
    for (int j = 0; j < LANES; j++) error += error_of[j];
    return error;
}

static float as_f16(float value) { return weft_f16_to_f32(weft_f32_to_f16(value)); }

static void put_f16(uint8_t *at, float value) {
    const uint16_t half = weft_f32_to_f16(value);
    at[0] = (uint8_t)half;
    at[1] = (uint8_t)(half >> 8);
}

static int within(float x, int low, int high) {
    return !(x > (float)low) ? low : x < (float)high ? (int)lrintf(x) : high;
}

/* ---- Q6_K: 16 parts of 16, scale only ---- */

enum { Q6_PARTS = 16, Q6_PART = 16 };

typedef struct q6_block {
    int scales[Q6_PARTS];
    int8_t q[BLOCK];
    float d, error;
} q6_block;

static part q6_part(const float *from, int i) { return (part){from + i * Q6_PART, Q6_PART, -32, 31}; }

/* Finds the scale of a part. By least squares it is xq / qq, and the squared error is xx - xq^2 / qq. */
static float q6_scale(const part *p) {
    float most = 0, best = 0, scale = 0;
    for (int i = 0; i < p->n; i++)
        if (fabsf(p->x[i]) > fabsf(most)) most = p->x[i];
    if (!(fabsf(most) > 1e-30F)) return 0;
    for (int i = 0; i < 48; i++) { /* the largest element becomes -29 to -33.6, or 29 to 33.6 */
        const float levels = 29.0F + 0.2F * (float)(i / 2);
        const sums s = round_part(p, 0, (i % 2 ? levels : -levels) / most);
        if (s.qq > 0 && s.xq * s.xq > best * s.qq) {
            best = s.xq * s.xq / s.qq;
            scale = s.xq / s.qq;
        }
    }
    return scale;
}

/* Chooses the parts' multiples of d. `scales` are those that they would like. */
static void q6_choose(const float *from, const float *scales, float d, q6_block *b) {
    *b = (q6_block){.d = d};
    for (int i = 0; i < Q6_PARTS; i++) {
        const part p = q6_part(from, i);
        float least = INFINITY;
        for (int step = -1; step <= 1; step++) {
            int8_t q[Q6_PART];
            const int multiple = within(scales[i] / d + (float)step, -128, 127);
            const float error = quantize_part(&p, d * (float)multiple, 0, q);
            if (!(error < least)) continue;
            least = error;
            b->scales[i] = multiple;
            memcpy(b->q + i * Q6_PART, q, sizeof q);
        }
        b->error += least;
    }
}

/* The scale of the block that fits what the parts chose. */
static float q6_refit(const float *from, const q6_block *b) {
    double aa = 0, xa = 0;
    for (int i = 0; i < BLOCK; i++) {
        const double a = (double)(b->scales[i / Q6_PART] * b->q[i]);
        aa += a * a;
        xa += (double)from[i] * a;
    }
    return aa > 0 ? as_f16((float)(xa / aa)) : b->d;
}

static void q6_write(const q6_block *b, uint8_t *block) {
    uint8_t *low = block, *high = block + 128;
    memset(block, 0, 192);
    for (int i = 0; i < BLOCK; i++) {
        const int half = i / 128, quarter = i % 128 / 32, q = b->q[i] + 32;
        low[half * 64 + i % 64] |= (uint8_t)((q & 15) << (quarter < 2 ? 0 : 4));
        high[half * 32 + i % 32] |= (uint8_t)(q >> 4 << quarter * 2);
    }
    for (int i = 0; i < Q6_PARTS; i++) block[192 + i] = (uint8_t)(int8_t)b->scales[i];
    put_f16(block + 208, b->d);
}

void weft__pack_q6_k(const float *from, uint8_t *block) {
    float scales[Q6_PARTS], most = 0;
    q6_block best = {0}, other;
    for (int i = 0; i < Q6_PARTS; i++) {
        const part p = q6_part(from, i);
        scales[i] = q6_scale(&p);
        if (fabsf(scales[i]) > fabsf(most)) most = scales[i];
    }
    const float d = as_f16(most / -128);
    if (d != 0) {
        q6_choose(from, scales, d, &best);
        const float refit = q6_refit(from, &best);
        if (refit != 0 && refit != d) {
            q6_choose(from, scales, refit, &other);
            if (other.error < best.error) best = other;
        }
    }
    q6_write(&best, block);
}

/* ---- Q4_K: 8 parts of 32, scale and minimum ---- */

enum { Q4_PARTS = 8, Q4_PART = 32 };

typedef struct q4_block {
    int scales[Q4_PARTS], minima[Q4_PARTS];
    int8_t q[BLOCK];
    float d, of_minima, error; /* x is about d * scale * q - of_minima * minimum */
} q4_block;

typedef struct q4_wish {
    float scale, minimum; /* both at least 0 */
} q4_wish;

static part q4_part(const float *from, int i) { return (part){from + i * Q4_PART, Q4_PART, 0, 15}; }

/* Least squares of x = scale * q - minimum. Returns by how much the squared error is less than the sum of
 * x^2; less than 0 if there is no such line. */
static float q4_line(const sums *s, float x_sum, float n, q4_wish *w) {
    const float det = n * s->qq - s->q * s->q;
    if (!(s->qq > 0)) return -1;
    *w = (q4_wish){s->xq / s->qq, 0};
    if (det > 0) {
        const float minimum = (s->q * s->xq - s->qq * x_sum) / det;
        if (minimum > 0) *w = (q4_wish){(n * s->xq - s->q * x_sum) / det, minimum};
    }
    return w->scale > 0 ? w->scale * s->xq - w->minimum * x_sum : -1;
}

/* Finds scale and minimum of a part. */
static q4_wish q4_search(const part *p) {
    float low = 0, high = p->x[0], x_sum = 0, best = 0;
    for (int i = 0; i < p->n; i++) {
        low = p->x[i] < low ? p->x[i] : low;
        high = p->x[i] > high ? p->x[i] : high;
        x_sum += p->x[i];
    }
    q4_wish found = {0, -low};
    if (!(high - low > 1e-30F)) return found;
    for (int i = 0; i < 24; i++) { /* the range becomes 13 to 17.6 steps */
        const float levels = 13.0F + 0.2F * (float)i;
        q4_wish w = {(high - low) / levels, -low};
        for (int again = 0; again < 3; again++) {
            const sums s = round_part(p, -w.minimum, 1 / w.scale);
            const float gain = q4_line(&s, x_sum, (float)p->n, &w);
            if (!(gain > best)) break;
            best = gain;
            found = w;
        }
    }
    return found;
}

static void q4_choose_part(const float *from, int i, const q4_wish *w, q4_block *b) {
    const part p = q4_part(from, i);
    const float scale = b->d > 0 ? w->scale / b->d : 0;
    const float minimum = b->of_minima > 0 ? w->minimum / b->of_minima : 0;
    float least = INFINITY;
    for (int step = 0; step < 9; step++) {
        int8_t q[Q4_PART];
        const int s = within(scale + (float)(step % 3 - 1), 0, 63);
        const int m = within(minimum + (float)(step / 3 - 1), 0, 63);
        const float error = quantize_part(&p, b->d * (float)s, -b->of_minima * (float)m, q);
        if (!(error < least)) continue;
        least = error;
        b->scales[i] = s;
        b->minima[i] = m;
        memcpy(b->q + i * Q4_PART, q, sizeof q);
    }
    b->error += least;
}

static void q4_choose(const float *from, const q4_wish *wishes, float d, float of_minima, q4_block *b) {
    *b = (q4_block){.d = d, .of_minima = of_minima};
    for (int i = 0; i < Q4_PARTS; i++) q4_choose_part(from, i, &wishes[i], b);
}

/* The scales of the block that fit what the parts chose: x = d a - of_minima c. */
static void q4_refit(const float *from, const q4_block *b, float *d, float *of_minima) {
    double aa = 0, ac = 0, cc = 0, xa = 0, xc = 0;
    for (int i = 0; i < BLOCK; i++) {
        const double x = (double)from[i], c = (double)b->minima[i / Q4_PART];
        const double a = (double)(b->scales[i / Q4_PART] * b->q[i]);
        aa += a * a;
        ac += a * c;
        cc += c * c;
        xa += x * a;
        xc += x * c;
    }
    const double det = aa * cc - ac * ac;
    *d = b->d;
    *of_minima = b->of_minima;
    if (!(aa > 0)) return;
    if (!(det > 0)) {
        *d = as_f16((float)(xa / aa));
        return;
    }
    *d = as_f16((float)((xa * cc - ac * xc) / det));
    *of_minima = as_f16((float)((ac * xa - aa * xc) / det));
}

/* Twelve bytes with the six bits of each scale and minimum. */
static void q4_write_scales(const q4_block *b, uint8_t *to) {
    for (int i = 0; i < 4; i++) {
        const int scale = b->scales[i + 4], minimum = b->minima[i + 4];
        to[i] = (uint8_t)(b->scales[i] | scale >> 4 << 6);
        to[i + 4] = (uint8_t)(b->minima[i] | minimum >> 4 << 6);
        to[i + 8] = (uint8_t)((scale & 15) | (minimum & 15) << 4);
    }
}

static void q4_write(const q4_block *b, uint8_t *block) {
    put_f16(block, b->d);
    put_f16(block + 2, b->of_minima);
    q4_write_scales(b, block + 4);
    for (int i = 0; i < BLOCK / 2; i++) {
        const int8_t *q = b->q + i / 32 * 64 + i % 32;
        block[16 + i] = (uint8_t)(q[0] | q[32] << 4);
    }
}

void weft__pack_q4_k(const float *from, uint8_t *block) {
    q4_wish wishes[Q4_PARTS];
    q4_block best, other;
    float scale = 0, minimum = 0, d, of_minima;
    for (int i = 0; i < Q4_PARTS; i++) {
        const part p = q4_part(from, i);
        wishes[i] = q4_search(&p);
        scale = fmaxf(scale, wishes[i].scale);
        minimum = fmaxf(minimum, wishes[i].minimum);
    }
    q4_choose(from, wishes, as_f16(scale / 63), as_f16(minimum / 63), &best);
    for (int again = 0; again < 2; again++) {
        q4_refit(from, &best, &d, &of_minima);
        if (!(d > 0 && of_minima >= 0) || (d == best.d && of_minima == best.of_minima)) break;
        q4_choose(from, wishes, d, of_minima, &other);
        if (!(other.error < best.error)) break;
        best = other;
    }
    q4_write(&best, block);
}
