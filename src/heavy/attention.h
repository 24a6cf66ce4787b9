/* Scaled dot-product attention (Vaswani et al. 2017, eq. 1), blocked so that no (t_q, t_k) matrix is kept
 * (Dao et al. 2022, algorithms 1 and 4). Read next: heavy.h. */
#ifndef WEFT_HEAVY_ATTENTION_H
#define WEFT_HEAVY_ATTENTION_H

#include <weft/dtype.h>

/* Operands of the forward pass, up to LSE, and of the backward pass, up to DV. A mask, where there is one,
 * stands behind KEY: weft__attention_operand. */
enum {
    WEFT_ATTENTION_Q,
    WEFT_ATTENTION_K,
    WEFT_ATTENTION_V,
    WEFT_ATTENTION_KEY, /* i32[8], the random key, not read without dropout; or i32[1], a cache's position */
    WEFT_ATTENTION_OUT,
    WEFT_ATTENTION_LSE, /* log-sum-exp of each row of scores, f64 for f64, else f32 */
    WEFT_ATTENTION_DOUT,
    WEFT_ATTENTION_DQ,
    WEFT_ATTENTION_DK,
    WEFT_ATTENTION_DV,
    WEFT_ATTENTION_MASK,
    WEFT_ATTENTION_OPERANDS
};

/* Tensors (batch, heads, t, d) with any strides over the first three dimensions and 1 over the last.
 *
 * causal: query i sees key j where j <= i + (t_k - t_q). A row that sees no key is 0. cached: k and v are
 * caches for t_k positions, and query i sees key j where j <= i + position. Dropout of the weights draws
 * element ((b * heads + h) * t_q + i) * t_k + j of the random key. sharing: so many query heads that follow
 * each other share one head of keys and values (grouped-query attention). dk and dv have one head for each
 * query head all the same. A mask has any strides. A bool is true where a query sees a key. A number is added
 * to the score; -inf hides the key, whatever the score. lse is (batch, heads, t_q). With a mask it is (2,
 * batch, heads, t_q): the largest score of a query, 0 where it sees no key; and the logarithm of the sum of
 * exponentials less that score, -inf where it sees none. A score of -1e9 leaves no room for that logarithm in
 * one number. */
typedef struct weft_heavy_attention {
    uint8_t dtype; /* f32, f64, f16, bf16 */
    bool causal, backward, cached;
    double scale, dropout;
    int64_t batch, heads, t_q, t_k, d;
    int64_t sharing; /* 0 counts as 1 */
    bool masked;
    uint8_t mask_dtype;                   /* bool, or f64 for f64, else f32 */
    int64_t mask[4];                      /* strides of batch, head, query and key; 0: repeated */
    int64_t q[3], k[3], v[3], out[3];     /* strides of batch, head, t */
    int64_t dout[3], dq[3], dk[3], dv[3]; /* backward */
} weft_heavy_attention;

/* How many query heads a head of keys and values has. */
static inline int64_t weft__sharing(const weft_heavy_attention *at) { return at->sharing ? at->sharing : 1; }

/* The place of an operand, as numbered above, in the list of operands. */
static inline int weft__attention_operand(const weft_heavy_attention *at, int which) {
    if (which == WEFT_ATTENTION_MASK) return WEFT_ATTENTION_KEY + 1;
    return which > WEFT_ATTENTION_KEY && at->masked ? which + 1 : which;
}

#endif
