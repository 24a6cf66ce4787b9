/* What the attention templates share: dropout, masks, addresses, the numbers of the kernels. A
 * work-group handles one pair of batch and head; its second dimension counts the pairs.
 * Read next: attention_items.cl (any device), attention_tensor.cl (tensor cores). */
#include "device/gpu/heavy/attention/attention_params.h"

/* A weight is dropped if the 24 high bits of its random word are below LIMIT: if the word, as a number in 0 to 1, is
 * below `dropout`. Else it is multiplied by `factor`. */
#define LIMIT ((uint)ceil(dropout * (S)0x1p24f))
#ifdef DROPOUT
/* Returns which of four weights are kept, as bits. They are adjacent elements, from `element` on. A block of random
 * numbers has the words of four elements, so mostly one block is enough. */
W_FN uint kept_four(const W_GLOBAL int *key, w_i64 element, uint limit) {
    const ulong n = (ulong)element + ((ulong)(uint)key[4] | (ulong)(uint)key[5] << 32);
    const int first = (int)(n & 3);
    uint kept = 0;
    for (int b = 0; b < (first ? 2 : 1); b++) {
        uint word[4];
        w_random_block(key, (n >> 2) + (ulong)b, word);
        W_CARD_UNROLL for (int i = 0; i < 4; i++) kept |= (uint)(word[i] >> 8 >= limit) << (4 * b + i);
    }
    return kept >> first & 15;
}
#endif

/* MASKED is the score of query i and key j after the mask (attention.c). */
#ifdef MASK
#ifdef MASK_BOOL
W_FN S masked(S s, MASK x) { return x ? s : (S)-INFINITY; }
#else
W_FN S masked(S s, MASK x) { return x == (S)-INFINITY ? x : s + x; } /* -inf hides the key, whatever the score */
#endif
#define MASKED(s, i, j)                                                                                      \
    masked(s, mask[given.mask_at + b * of.mask_b + h * of.mask_h + (i) * of.mask_t + (j) * of.mask_j])
#else
#define MASKED(s, i, j) (s)
#endif

#define AT(name, t)  (name + given.name##_at + b * of.name.batch + h * of.name.head + (t) * of.name.time)
/* For k and v: query heads share KV heads. */
#define KEYS_AT(name, t) \
    (name + given.name##_at + b * of.name.batch + h / of.query_group * of.name.head + (t) * of.name.time)
/* The pair of this work-group. Some of the last work-groups may have none: attention.c divides many pairs among the
 * second and the third dimension of the launch. */
#define OPEN_PAIR                                                                                            \
    const w_i64 pair = w_group(2) * (w_i64)w_groups(1) + w_group(1), b = pair / of.heads, h = pair % of.heads;\
    if (pair >= of.pairs) return;
/* Begins a kernel: names its numbers. */
#define OPEN                                                                                                 \
    const w_attention of = given.attention;                                                                  \
    W_RETURN_IF_FAULTED(ITEMS, of.sink)                                                                      \
    OPEN_PAIR                                                                                                \
    const w_i64 heads = of.heads;                                                                            \
    const int t_q = of.t_q, t_k = of.t_k, d = of.d, causal = of.causal, cached = of.cached;                  \
    const S scale = given.scale, dropout = given.dropout, factor = given.factor;

W_NUMBERS(attention) {
    w_i64 q_at, k_at, v_at, key_at, MASK_ORIGIN out_at, lse_at;
    ATTENTION_NUMBERS
};
W_NUMBERS(attention_dq) {
    w_i64 q_at, k_at, v_at, key_at, MASK_ORIGIN out_at, lse_at, dout_at, dq_at, delta_at;
    ATTENTION_NUMBERS
};
W_NUMBERS(attention_dkv) {
    w_i64 q_at, k_at, v_at, key_at, MASK_ORIGIN lse_at, dout_at, dk_at, dv_at, delta_at;
    ATTENTION_NUMBERS
};
