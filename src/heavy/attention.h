/* Scaled dot-product attention (Vaswani et al. 2017, eq. 1). It works in blocks, so no (t_q, t_k) matrix is
 * kept (Dao et al. 2022, algorithms 1 and 4). Must not know: devices. Read next: heavy.h. */
#ifndef WEFT_HEAVY_ATTENTION_H
#define WEFT_HEAVY_ATTENTION_H

#include <weft/dtype.h>

/* Operands of the forward pass, up to LSE, and of the backward pass, up to DV. A mask comes after KEY in the
 * list of operands; weft__attention_operand gives each place. */
enum {
    WEFT_ATTENTION_Q,
    WEFT_ATTENTION_K,
    WEFT_ATTENTION_V,
    WEFT_ATTENTION_KEY, /* i32[8]: the random key, not read without dropout; or i32[1]: the position in a
                         * cache */
    WEFT_ATTENTION_OUT,
    WEFT_ATTENTION_LSE, /* log-sum-exp of each row of scores, f64 for f64, else f32 */
    WEFT_ATTENTION_DOUT,
    WEFT_ATTENTION_DQ,
    WEFT_ATTENTION_DK,
    WEFT_ATTENTION_DV,
    WEFT_ATTENTION_MASK,
    WEFT_ATTENTION_OPERANDS
};

/* Tensors have the shape (batch, heads, t, d), any strides over the first three dimensions, and stride 1 over
 * the last.
 *
 * - causal: query i sees key j if j <= i + (t_k - t_q). The output of a query that sees no key is 0.
 * - cached: k and v are caches for t_k positions. Query i sees key j if j <= i + position.
 * - dropout: drops weights by element ((b * heads + h) * t_q + i) * t_k + j of the random key.
 * - query_group: grouped-query attention, with so many adjacent query heads for each KV head. dk and dv have
 * one head for each query head all the same.
 * - masked: the mask has any strides. A bool is true if the query sees the key. A number is added to the
 *   score; -inf hides the key, whatever the score.
 *
 * lse has the shape (batch, heads, t_q). With a mask it is (2, batch, heads, t_q). The first part is the
 * largest score of a query, 0 if it sees no key. The second part is the logarithm of the sum of exponentials
 * minus that score, -inf if it sees no key. One number would not do: a score of -1e9 leaves no digits for
 * this logarithm. */
typedef struct weft_heavy_attention {
    uint8_t dtype; /* f32, f64, f16, bf16 */
    bool causal, backward, cached;
    double scale, dropout;
    int64_t batch, heads, t_q, t_k, d;
    int64_t query_group; /* query heads for each KV head; 0 counts as 1 */
    bool masked;
    uint8_t mask_dtype;                   /* bool, or f64 for f64, else f32 */
    int64_t mask[4];                      /* strides of batch, head, query and key; 0: repeated */
    int64_t q[3], k[3], v[3], out[3];     /* strides of batch, head, t */
    int64_t dout[3], dq[3], dk[3], dv[3]; /* backward */
} weft_heavy_attention;

/* Number of query heads for each KV head. */
static inline int64_t weft__query_group(const weft_heavy_attention *at) {
    return at->query_group ? at->query_group : 1;
}

/* Returns the place of an operand, numbered as above, in the list of operands. */
static inline int weft__attention_operand(const weft_heavy_attention *at, int which) {
    if (which == WEFT_ATTENTION_MASK) return WEFT_ATTENTION_KEY + 1;
    return which > WEFT_ATTENTION_KEY && at->masked ? which + 1 : which;
}

#endif
