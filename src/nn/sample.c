/* Drawing a token from logits, on the host. A pure function, so that every device gives the same text.
 * Must not know: models. Read next: base/random.c. */
#include <math.h>
#include <string.h>

#include "base/option.h"
#include "nn/module.h"

static int64_t largest(const float *logits, int64_t count) {
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(logits[i]) && (best < 0 || logits[i] > logits[best])) best = i;
    return best;
}

/* Maps finite floats to unsigned integers of the same order, and back. */
static uint32_t key_of(float x) {
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits >> 31 ? ~bits : bits | UINT32_C(1) << 31;
}

static float logit_of(uint32_t key) {
    const uint32_t bits = key >> 31 ? key & ~(UINT32_C(1) << 31) : ~key;
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* The k-th largest finite logit, or the smallest if there are fewer. Selects by counting bytes: first the
 * highest byte of all keys, then the next byte of the keys that begin with the chosen bytes. */
static float threshold(const float *logits, int64_t count, int64_t k) {
    uint32_t chosen = 0, mask = 0;
    for (int shift = 24; shift >= 0; shift -= 8) {
        int64_t with[256] = {0}, all = 0;
        for (int64_t i = 0; i < count; i++) {
            const uint32_t key = key_of(logits[i]);
            if (isfinite(logits[i]) && (key & mask) == chosen) with[key >> shift & 255]++, all++;
        }
        uint32_t byte = 255;
        for (k = k < all ? k : all; byte > 0 && with[byte] < k; byte--) k -= with[byte];
        chosen |= byte << shift;
        mask |= UINT32_C(255) << shift;
    }
    return logit_of(chosen);
}

static double share_of(float logit, float top, double temperature) {
    return exp(((double)logit - (double)top) / temperature);
}

/* The smallest logit of the fewest largest ones, all at least `bar`, that have `share` of the probability.
 * Selects by bytes, as threshold does, but counts probabilities. */
static float threshold_of_share(const float *logits, int64_t count, float bar, float top, double temperature,
                                double share) {
    uint32_t chosen = 0, mask = 0;
    double wanted = -1;
    for (int shift = 24; shift >= 0; shift -= 8) {
        double with[256] = {0}, all = 0;
        int64_t any[256] = {0};
        for (int64_t i = 0; i < count; i++) {
            const uint32_t key = key_of(logits[i]);
            if (!isfinite(logits[i]) || logits[i] < bar || (key & mask) != chosen) continue;
            const double p = share_of(logits[i], top, temperature);
            with[key >> shift & 255] += p;
            any[key >> shift & 255]++;
            all += p;
        }
        if (wanted < 0) wanted = share * all;
        int least = 0, byte = 255;
        while (any[least] == 0) least++;
        for (; byte > least && (any[byte] == 0 || with[byte] < wanted); byte--) wanted -= with[byte];
        chosen |= (uint32_t)byte << shift;
        mask |= UINT32_C(255) << shift;
    }
    return logit_of(chosen);
}

void weft__penalize(float *logits, int64_t count, const int32_t *ids, int64_t n, double penalty) {
    penalty = weft__value_or(penalty, 1);
    for (int64_t i = 0; i < n && penalty != 1; i++) {
        bool before = false; /* each token once */
        for (int64_t j = i; j-- > 0 && !before;) before = ids[j] == ids[i];
        if (before || ids[i] < 0 || ids[i] >= count) continue;
        float *logit = &logits[ids[i]];
        *logit = (float)(*logit > 0 ? (double)*logit / penalty : (double)*logit * penalty);
    }
}

int64_t weft_sample(const float *logits, int64_t count, double temperature, int64_t top_k, uint64_t seed,
                    uint64_t draw) {
    return weft__sample(logits, count, &(weft__sampling){.temperature = temperature, .top_k = top_k}, seed,
                        draw);
}

/* The tokens that may be drawn: finite logits from `bar` on. */
typedef struct candidates {
    int64_t best; /* the likeliest; -1: none is finite */
    float bar, top;
    double total; /* of share_of */
} candidates;

static candidates candidates_of(const float *logits, int64_t count, const weft__sampling *how) {
    const double temperature = how->temperature, top_p = weft__value_or(how->top_p, 1);
    candidates c = {.best = largest(logits, count), .bar = -INFINITY};
    if (c.best < 0 || !(temperature > 0.0)) return c;
    if (how->top_k > 0 && how->top_k < count) c.bar = threshold(logits, count, how->top_k);
    c.top = logits[c.best];
    if (top_p < 1) c.bar = threshold_of_share(logits, count, c.bar, c.top, temperature, top_p);
    if (how->min_p > 0)
        c.bar = fmaxf(c.bar, (float)fmin((double)c.top, (double)c.top + temperature * log(how->min_p)));
    for (int64_t i = 0; i < count; i++)
        if (isfinite(logits[i]) && logits[i] >= c.bar) c.total += share_of(logits[i], c.top, temperature);
    return c;
}

int64_t weft__sample(const float *logits, int64_t count, const weft__sampling *how, uint64_t seed,
                     uint64_t draw) {
    const double temperature = how->temperature;
    WEFT_NEED_OR(-1, NULL, logits);
    if (count > INT32_MAX) {
        weft__fail(NULL, WEFT_ERR_ARGUMENT, "weft_sample: count is %lld, more than there are tokens",
                   (long long)count);
        return -1;
    }
    const candidates c = candidates_of(logits, count, how);
    if (c.best < 0 || !(temperature > 0.0)) return c.best;
    double left = c.total * ((double)weft__random_u32(seed, 0x73616d706c65u, 0, draw) + 0.5) * 0x1p-32;
    int64_t chosen = c.best;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(logits[i]) || logits[i] < c.bar) continue;
        chosen = i;
        left -= share_of(logits[i], c.top, temperature);
        if (left < 0.0) break;
    }
    return chosen;
}

bool weft__probabilities(const float *logits, int64_t count, const weft__sampling *how, double *out) {
    const candidates c = candidates_of(logits, count, how);
    if (c.best < 0) return false;
    for (int64_t i = 0; i < count; i++) {
        const bool drawn = isfinite(logits[i]) && logits[i] >= c.bar;
        out[i] = !(how->temperature > 0.0) ? (double)(i == c.best)
                 : drawn                   ? share_of(logits[i], c.top, how->temperature) / c.total
                                           : 0;
    }
    return true;
}
