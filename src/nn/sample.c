/* Drawing a token from logits on the host: a pure function, so that every device speaks alike. */
#include <math.h>
#include "nn/module.h"

static int64_t largest(const float *logits, int64_t count) {
    int64_t best = -1;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(logits[i]) && (best < 0 || logits[i] > logits[best])) best = i;
    return best;
}

/* The k-th largest finite logit: the lowest that is still considered. Selection by counting, without memory.
 */
static float threshold(const float *logits, int64_t count, int64_t k) {
    float bar = INFINITY;
    for (int64_t taken = 0; taken < k;) {
        float next = -INFINITY;
        int64_t equal = 0;
        for (int64_t i = 0; i < count; i++) {
            if (!isfinite(logits[i]) || logits[i] >= bar) continue;
            if (logits[i] > next) {
                next = logits[i];
                equal = 1;
            } else if (logits[i] == next) {
                equal++;
            }
        }
        if (!equal) break;
        bar = next;
        taken += equal;
    }
    return bar;
}

int64_t weft_sample(const float *logits, int64_t count, double temperature, int64_t top_k, uint64_t seed,
                    uint64_t draw) {
    int64_t best = largest(logits, count);
    if (best < 0 || !(temperature > 0.0)) return best;
    float bar = top_k > 0 && top_k < count ? threshold(logits, count, top_k) : -INFINITY;
    double top = (double)logits[best], total = 0.0;
    for (int64_t i = 0; i < count; i++)
        if (isfinite(logits[i]) && logits[i] >= bar) total += exp(((double)logits[i] - top) / temperature);
    double left = total * ((double)weft__random_u32(seed, 0x73616d706c65u, 0, draw) + 0.5) * 0x1p-32;
    int64_t chosen = best;
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(logits[i]) || logits[i] < bar) continue;
        chosen = i;
        left -= exp(((double)logits[i] - top) / temperature);
        if (left < 0.0) break;
    }
    return chosen;
}
