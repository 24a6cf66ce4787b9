/* Options of the tensor functions in ops.h, with their enums and constants. A field that is 0 has its
 * default; WEFT_ZERO says the number 0. */
#ifndef WEFT_OP_OPTIONS_H
#define WEFT_OP_OPTIONS_H

#include <limits.h>
#include <weft/tensor.h>

/* As the axis of a reduction: reduces all dimensions. */
#define WEFT_ALL_AXES INT_MIN

/* What a loss returns: the mean or the sum of the losses of its elements (cross_entropy: of its rows), or
 * all losses. */
typedef enum weft_reduction { WEFT_MEAN, WEFT_SUM, WEFT_NONE } weft_reduction;

typedef enum weft_pad_mode { WEFT_PAD_REFLECT, WEFT_PAD_REPLICATE, WEFT_PAD_CIRCULAR } weft_pad_mode;

typedef struct weft_attention_options {
    bool causal;    /* query i sees keys up to i + (S - T) */
    double scale;   /* factor of the scores; 0: 1 / sqrt(D) */
    double dropout; /* probability that a weight is dropped */
    /* A bool mask is true where a query sees a key. A float mask is added to the scores; -inf hides a key.
     * The mask broadcasts to (B, H, T, S) without copies in memory. NULL: no mask. */
    weft_tensor *mask;
    int64_t window; /* query i sees only the last `window` keys that it would see, itself among them; 0: all.
                       With causal */
    double softcap; /* the scores become softcap * tanh(score / softcap), as in Gemma 2; 0: unchanged */
} weft_attention_options;

typedef enum weft_rotary_scaling_kind {
    WEFT_ROTARY_PLAIN,
    WEFT_ROTARY_LINEAR, /* all rates are divided by factor (Chen et al. 2023) */
    WEFT_ROTARY_LLAMA3, /* slow rates are divided by factor, fast ones stay, as in Llama 3.1 */
    WEFT_ROTARY_YARN,   /* Peng et al. 2023: the same by the channel; sines and cosines also grow */
    WEFT_ROTARY_LONG    /* Ding et al. 2024 (LongRoPE): each rate is divided by its own divisor */
} weft_rotary_scaling_kind;

/* How a model that was trained on short texts rotates in longer ones. */
typedef struct weft_rotary_scaling {
    weft_rotary_scaling_kind kind;
    double factor; /* by how much the context grew */
    /* Rotations within the context of the training below which a rate is slow, and above which it is fast.
     * 0: 1 and 4; YARN: 1 and 32 */
    double slow, fast;
    int64_t context;       /* tokens of the texts of the training */
    double magnitude;      /* YARN, LONG: factor of sines and cosines; 0: 0.1 ln(factor) + 1, LONG: 1 */
    weft_tensor *divisors; /* LONG: f32 (channels / 2). The caller keeps it as long as it is used */
} weft_rotary_scaling;

typedef struct weft_rotary_options {
    double base; /* 0: 10000 */
    /* true: channels 2 i and 2 i + 1 are a pair, as in Su et al. and GPT-J. false: channels i and D / 2 +
     * i are a pair, as in the published weights of Llama and GPT-NeoX. */
    bool interleaved;
    int64_t channels; /* only the first `channels` channels are rotated, an even number; 0: all */
    weft_rotary_scaling scaling;
} weft_rotary_options;

typedef struct weft_cross_entropy_options {
    weft_reduction reduction;
    /* Positions with the target `ignore` do not count, neither in the loss nor in the mean. If all
     * positions are ignored, the mean is 0 (PyTorch: NaN). */
    bool use_ignore;
    int32_t ignore;
    /* Label smoothing: this share of the weight is spread over all classes except those whose logit is
     * -inf (PyTorch's loss is inf if there is one). */
    double smoothing;
    weft_tensor *weights; /* f32 (C): weight of a target of each class, also in the mean; NULL: 1 */
} weft_cross_entropy_options;

typedef struct weft_dpo_options {
    weft_reduction reduction;
    double beta;      /* how strongly the policy is held to the reference; 0: 0.1 */
    double smoothing; /* the share of pairs whose order is thought to be wrong, 0 to 1 ("conservative DPO",
                         Mitchell 2023) */
} weft_dpo_options;

/* [0] is for rows, [1] for columns. Functions of one dimension use [0]. */
typedef struct weft_conv_options {
    int64_t stride[2];         /* 0: 1 */
    int64_t padding[2];        /* zeros around x; a transposed convolution cuts this many off each end */
    int64_t dilation[2];       /* 0: 1 */
    int64_t groups;            /* 0: 1 */
    int64_t output_padding[2]; /* transposed: elements added at the end, fewer than stride or dilation */
} weft_conv_options;

/* [0] is for rows, [1] for columns. Functions of one dimension use [0]. */
typedef struct weft_pool_options {
    int64_t size[2];      /* must be set */
    int64_t stride[2];    /* 0: size */
    int64_t padding[2];   /* at most half of size; its value is -inf for a maximum, 0 for a mean */
    int64_t dilation[2];  /* 0: 1 */
    bool exclude_padding; /* a mean counts only elements that are not padding */
} weft_pool_options;

typedef enum weft_interpolation { WEFT_NEAREST, WEFT_LINEAR } weft_interpolation;

/* [0] is for rows, [1] for columns. Functions of one dimension use [0]. */
typedef struct weft_interpolate_options {
    int64_t size[2]; /* extents of the result; 0: given by scale */
    /* The extent of the result is the extent of x times scale, rounded down. If it equals the extent of x,
     * or with WEFT_NEAREST twice the extent, the ratio of the extents replaces scale, as in PyTorch. */
    double scale[2];
    weft_interpolation mode;
} weft_interpolate_options;

typedef struct weft_batch_norm_options {
    weft_tensor *mean, *variance; /* (C), the running ones in evaluation; NULL: those of the batch */
    double eps;                   /* 0: 1e-5 */
} weft_batch_norm_options;

typedef enum weft_recurrent_kind { WEFT_RNN_TANH, WEFT_RNN_RELU, WEFT_LSTM, WEFT_GRU } weft_recurrent_kind;

typedef struct weft_recurrent_options {
    weft_recurrent_kind kind;
    bool reverse;                   /* walks from the last time step to the first */
    weft_tensor *bias_ih, *bias_hh; /* (G), added to x and to the recurrent matmul; NULL: 0 */
    weft_tensor *h, *c;             /* first states (B, H), c only for an LSTM; NULL: 0 */
    weft_tensor *lengths;           /* (B) integers: the number of steps of each sequence; NULL: T */
} weft_recurrent_options;

#endif
