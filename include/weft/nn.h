/* Modules: layers that own parameters, and models made of layers.
 *
 * A module belongs to its parent. A module without a parent is a root and belongs to the context:
 * weft_close frees the roots that weft_module_free did not. Constructors never return NULL. After a failure
 * they return a poisoned module, whose forward returns a poisoned tensor with the cause. weft_module_status
 * returns the error.
 *
 * Parameters get their initial values when a root is first used: forward, optimizer, iteration, save. The
 * values depend on the context's seed and the parameter's full name; they are the same on every device.
 * Loading into an unused module computes no initial values. After the first use the tree is fixed: you can
 * no longer add children or parameters. */
#ifndef WEFT_NN_H
#define WEFT_NN_H

#include <weft/io.h>
#include <weft/ops.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_module weft_module;

/* ---- initialisers ---- */

typedef enum weft_init_kind {
    WEFT_INIT_DEFAULT, /* the layer's default */
    WEFT_INIT_ZEROS,
    WEFT_INIT_ONES,
    WEFT_INIT_CONSTANT,       /* value */
    WEFT_INIT_UNIFORM,        /* in -value..value; value 0: 1 */
    WEFT_INIT_NORMAL,         /* mean 0, standard deviation value; value 0: 1 */
    WEFT_INIT_XAVIER_UNIFORM, /* Glorot and Bengio 2010; value is the gain; 0: 1 */
    WEFT_INIT_XAVIER_NORMAL,
    WEFT_INIT_HE_UNIFORM, /* He et al. 2015, by fan-in; value is the slope of a leaky ReLU; 0: ReLU */
    WEFT_INIT_HE_NORMAL
} weft_init_kind;

/* Fan-in and fan-out are computed from shape (out, in, ...). */
typedef struct weft_init {
    weft_init_kind kind;
    double value;
} weft_init;

/* ---- layers. options may be NULL; dtype 0 is f32 ---- */

typedef struct weft_linear_options {
    bool no_bias;
    weft_dtype dtype;
    weft_init weight; /* default: uniform in +-1/sqrt(in) */
    weft_init bias;   /* default: as weight */
} weft_linear_options;

/* y = x W^T + b. x (..., in) -> (..., out). Parameters: weight (out, in), bias (out). */
WEFT_API weft_module *weft_nn_linear(weft_context *ctx, int64_t in, int64_t out,
                                     const weft_linear_options *options);

typedef struct weft_embedding_options {
    weft_dtype dtype;
    weft_init weight; /* default: normal with standard deviation 1 */
} weft_embedding_options;

/* Looks up rows of a table. x (...), integers in 0..count-1 -> (..., width). Parameter: weight (count,
 * width). */
WEFT_API weft_module *weft_nn_embedding(weft_context *ctx, int64_t count, int64_t width,
                                        const weft_embedding_options *options);

/* Rows of a packed weight. */
typedef struct weft_packed_rows {
    int64_t rows;
    weft_packed_format format;
} weft_packed_rows;
enum { WEFT_PACKED_PARTS = 3 }; /* most parts of a weight */

/* Makes the weight of a linear layer or an embedding packed: its rows are blocks of quantised numbers, as in
 * GGUF files. `parts` lists the rows from the first to the last; an embedding has one part. Each part is a
 * buffer, u8 (rows, bytes of a row), that begins as zeros: fill it with weft_write. The first one is called
 * weight, the others weight_1 and weight_2. No optimizer changes them, but gradients flow to the input.
 *
 * Call it before the layer is used. WEFT_ERR_STATE: the layer was used, or is packed already.
 * WEFT_ERR_ARGUMENT: another kind of layer, an unknown format, or parts that are not all rows.
 * WEFT_ERR_SHAPE: a row is not a whole number of blocks. */
WEFT_API WEFT_CHECKED weft_status weft_module_pack(weft_module *m, const weft_packed_rows *parts, int count);

typedef struct weft_norm_options {
    double eps;     /* 0: 1e-5 */
    bool no_affine; /* no weight, no bias */
    bool no_bias;
    weft_dtype dtype;
    bool plus_one; /* RMS: the factor is 1 + weight, as in Gemma; the weight begins as 0 */
} weft_norm_options;

/* Layer normalisation (Ba et al. 2016) of x (..., width). Parameters: weight (width), bias (width). */
WEFT_API weft_module *weft_nn_layer_norm(weft_context *ctx, int64_t width, const weft_norm_options *options);

/* RMS normalisation (Zhang and Sennrich 2019) of x (..., width). Parameter: weight (width). */
WEFT_API weft_module *weft_nn_rms_norm(weft_context *ctx, int64_t width, const weft_norm_options *options);

typedef struct weft_conv_layer_options {
    weft_conv_options conv; /* stride, padding, dilation, groups, output_padding */
    bool no_bias;
    weft_dtype dtype;
    weft_init weight; /* default: uniform in +-1/sqrt(elements in one row of weight) */
    weft_init bias;   /* default: as weight */
} weft_conv_layer_options;

/* Convolutions of x (N, in, L) or (N, in, H, W), as weft_conv1d and weft_conv2d. Parameters: weight (out,
 * in / groups, size) or (out, in / groups, rows, columns), bias (out). */
WEFT_API weft_module *weft_nn_conv1d(weft_context *ctx, int64_t in, int64_t out, int64_t size,
                                     const weft_conv_layer_options *options);
WEFT_API weft_module *weft_nn_conv2d(weft_context *ctx, int64_t in, int64_t out, int64_t rows,
                                     int64_t columns, const weft_conv_layer_options *options);

/* Transposed convolutions, as weft_conv_transpose1d and weft_conv_transpose2d. Parameters: weight (in, out
 * / groups, ...), bias (out). */
WEFT_API weft_module *weft_nn_conv_transpose1d(weft_context *ctx, int64_t in, int64_t out, int64_t size,
                                               const weft_conv_layer_options *options);
WEFT_API weft_module *weft_nn_conv_transpose2d(weft_context *ctx, int64_t in, int64_t out, int64_t rows,
                                               int64_t columns, const weft_conv_layer_options *options);

/* Pooling over the last dimension, or the last two. */
WEFT_API weft_module *weft_nn_max_pool1d(weft_context *ctx, const weft_pool_options *options);
WEFT_API weft_module *weft_nn_max_pool2d(weft_context *ctx, const weft_pool_options *options);
WEFT_API weft_module *weft_nn_avg_pool1d(weft_context *ctx, const weft_pool_options *options);
WEFT_API weft_module *weft_nn_avg_pool2d(weft_context *ctx, const weft_pool_options *options);

/* Pooling to a given extent of the last dimension, or of the last two. 1 (x 1) is global pooling. */
WEFT_API weft_module *weft_nn_adaptive_max_pool1d(weft_context *ctx, int64_t size);
WEFT_API weft_module *weft_nn_adaptive_max_pool2d(weft_context *ctx, int64_t rows, int64_t columns);
WEFT_API weft_module *weft_nn_adaptive_avg_pool1d(weft_context *ctx, int64_t size);
WEFT_API weft_module *weft_nn_adaptive_avg_pool2d(weft_context *ctx, int64_t rows, int64_t columns);

/* Upsampling, as weft_interpolate1d and weft_interpolate2d. */
WEFT_API weft_module *weft_nn_interpolate1d(weft_context *ctx, const weft_interpolate_options *options);
WEFT_API weft_module *weft_nn_interpolate2d(weft_context *ctx, const weft_interpolate_options *options);

/* x (N, ...) -> (N, product of the other extents). */
WEFT_API weft_module *weft_nn_flatten(weft_context *ctx);

/* Group normalisation (Wu and He 2018) of x (N, channels, ...). Parameters: weight (channels), bias
 * (channels). */
WEFT_API weft_module *weft_nn_group_norm(weft_context *ctx, int64_t groups, int64_t channels,
                                         const weft_norm_options *options);

/* Instance normalisation (Ulyanov et al. 2016) of x (N, channels, ...). Parameters, unless no_affine:
 * weight (channels), bias (channels). */
WEFT_API weft_module *weft_nn_instance_norm(weft_context *ctx, int64_t channels,
                                            const weft_norm_options *options);

typedef struct weft_batchnorm_options {
    double eps;      /* 0: 1e-5 */
    double momentum; /* weight of a new batch in the running statistics; 0: 0.1 */
    bool cumulative; /* instead of momentum: all batches weigh the same; "num_batches_tracked" counts them */
    bool no_running; /* no running statistics: evaluation uses those of the batch, too */
    bool no_affine;  /* no weight, no bias */
    bool no_bias;
    weft_dtype dtype;
} weft_batchnorm_options;

/* Batch normalisation (Ioffe and Szegedy 2015) of x (N, channels, ...).
 * - Training uses the batch's mean and (biased) variance. Each training pass that is computed updates the
 *   running statistics, with the unbiased variance (see weft_module_assign).
 * - Evaluation uses the running statistics.
 * - A batch needs at least two values per channel.
 * - Samples that only pad a batch count in its statistics: load with drop_last.
 *
 * Parameters: weight, bias (channels). Buffers: running_mean, running_var (channels). */
WEFT_API weft_module *weft_nn_batch_norm(weft_context *ctx, int64_t channels,
                                         const weft_batchnorm_options *options);

/* Lets all batch norms of a tree use the statistics of all processes, as PyTorch's SyncBatchNorm does, or
 * only their own. In training each of them then exchanges its sums with the processes that the optimizer has
 * joined (weft_optimizer_join): in micro-batch k, those of micro-batch k in each process. The processes may
 * have different numbers of samples, and their running statistics agree. All must run the same forward
 * passes. Without other processes nothing changes. Only cpu can exchange in a forward pass: other devices
 * refuse it. */
WEFT_API WEFT_CHECKED weft_status weft_module_sync_batch_norm(weft_module *m, bool on);

/* Dropout in training, the identity in evaluation. weft_nn_dropout drops elements, weft_nn_dropout2d
 * whole channels of x (N, channels, ...). */
WEFT_API weft_module *weft_nn_dropout(weft_context *ctx, double p);
WEFT_API weft_module *weft_nn_dropout2d(weft_context *ctx, double p);

#define WEFT_ACTIVATION_LIST(X)                                                                              \
    X(IDENTITY, "identity")                                                                                  \
    X(RELU, "relu")                                                                                          \
    X(LEAKY_RELU, "leaky_relu")                                                                              \
    X(GELU, "gelu")                                                                                          \
    X(GELU_TANH, "gelu_tanh")                                                                                \
    X(SILU, "silu")                                                                                          \
    X(TANH, "tanh")                                                                                          \
    X(SIGMOID, "sigmoid")                                                                                    \
    X(SOFTPLUS, "softplus")                                                                                  \
    X(ELU, "elu")

typedef enum weft_activation_kind {
    WEFT_ACTIVATION_DEFAULT, /* as an option: the default of the layer or model */
#define WEFT_ACTIVATION_ENUM_(name, text) WEFT_##name,
    WEFT_ACTIVATION_LIST(WEFT_ACTIVATION_ENUM_)
#undef WEFT_ACTIVATION_ENUM_
        WEFT_ACTIVATION_COUNT
} weft_activation_kind;

/* The name of an activation, "relu" and so on; "?" for an unknown value. And the activation of a name;
 * false if there is none. */
WEFT_API const char *weft_activation_name(weft_activation_kind kind);
WEFT_API bool weft_activation_parse(const char *name, weft_activation_kind *kind);

/* An activation as a layer. leaky_relu has slope 0.01, elu has alpha 1. */
WEFT_API weft_module *weft_nn_activation(weft_context *ctx, weft_activation_kind kind);

/* How published models differ in their attention. */
typedef struct weft_attention_form {
    int64_t head_width; /* channels of a head; 0: width / heads */
    bool qkv_bias;      /* with no_bias: c_attn has a bias all the same, as in Qwen 2 */
    bool out_bias;      /* the same for c_proj */
    bool qk_norm;       /* RMS norms of the queries and keys of each head (children q_norm and k_norm), before
                           they are rotated, as in Qwen 3 */
    double scale;       /* factor of the scores; 0: 1 / sqrt(head_width) */
    double softcap;     /* as in weft_attention_options; also the next one */
    int64_t window;
} weft_attention_form;

typedef struct weft_multihead_attention_options {
    bool causal;
    bool no_bias;
    double dropout; /* of the attention weights and of the result */
    weft_dtype dtype;
    weft_init weight; /* of both projections; default: as weft_nn_linear's */
    weft_init bias;
    weft_init residual; /* weight of the output projection; default: as weight */
    int64_t kv_heads; /* grouped-query attention (Ainslie et al. 2023): number of key/value heads. heads is a
                         multiple of it; heads / kv_heads consecutive query heads read the same key/value
                         head. 0: heads */
    bool rotary;      /* rotate queries and keys by their positions (weft_rotary) */
    weft_rotary_options rotation;
    weft_attention_form form;
    weft_norm_options norm; /* of q_norm and k_norm */
} weft_multihead_attention_options;

/* Self-attention (Vaswani et al. 2017). x (B, T, width) -> (B, T, width). With D channels in a head, the
 * children are:
 * - c_attn: width -> (heads + 2 kv_heads) D. Its result packs queries, keys and values, each by heads.
 * - c_proj: heads D -> width
 * - with qk_norm, q_norm and k_norm: weight (D) */
WEFT_API weft_module *weft_nn_multihead_attention(weft_context *ctx, int64_t width, int64_t heads,
                                                  const weft_multihead_attention_options *options);

/* Cross-attention: x (B, T, width) attends to a memory (B, S, memory_width), which you pass with
 * weft_attend. It is neither causal nor rotary. Children: q_attn (width -> width), c_attn (memory_width ->
 * keys and values, packed), c_proj. */
WEFT_API weft_module *weft_nn_cross_attention(weft_context *ctx, int64_t width, int64_t memory_width,
                                              int64_t heads, const weft_multihead_attention_options *options);

/* Additional inputs of attention layers. A bool mask (B, S) is true where a position belongs to the
 * sequence and false where it is padding. Other masks are those of weft_attention. */
typedef struct weft_attend_options {
    weft_tensor *mask;        /* for self-attention; NULL: all positions are seen */
    weft_tensor *memory;      /* for cross-attention */
    weft_tensor *memory_mask; /* for cross-attention */
} weft_attend_options;

/* weft_forward that passes these inputs to all attention layers in m and below. */
WEFT_API weft_tensor *weft_attend(weft_module *m, weft_tensor *x, const weft_attend_options *options);
WEFT_API weft_tensor *weft_attend_at(const char *where, weft_module *m, weft_tensor *x,
                                     const weft_attend_options *options);
#define weft_attend(...) weft_attend_at(WEFT_HERE, __VA_ARGS__)

typedef struct weft_mlp_options {
    weft_activation_kind activation; /* between layers; DEFAULT (0): ReLU */
    bool no_bias;
    double dropout; /* after each activation */
    weft_dtype dtype;
    weft_init weight;
} weft_mlp_options;

/* sizes[0] -> sizes[1] -> ... -> sizes[count - 1]: linear layers with activations between them. Children
 * are numbered as in a sequential. */
WEFT_API weft_module *weft_nn_mlp(weft_context *ctx, const int64_t *sizes, int count,
                                  const weft_mlp_options *options);

typedef struct weft_cnn_options {
    int64_t channels, rows, columns; /* of the images; must be set, like classes */
    int64_t classes;
    const int64_t *filters; /* channels of each convolution; NULL: 32, 64 */
    int filter_count;
    int64_t size;                    /* kernel size, odd; 0: 3 */
    int64_t hidden;                  /* units of the hidden layer; 0: 128 */
    weft_activation_kind activation; /* DEFAULT (0): ReLU */
    double dropout;                  /* of the hidden units */
    bool no_bias;
    weft_dtype dtype;
} weft_cnn_options;

/* A convolutional network like LeNet (LeCun et al. 1998). Each entry of filters adds a convolution, an
 * activation and a max pooling that halves the image. A hidden layer and the classes follow.
 *
 * x (N, channels, rows, columns), or (N, channels * rows * columns) -> logits (N, classes). Children are
 * numbered as in a sequential. */
WEFT_API weft_module *weft_nn_cnn(weft_context *ctx, const weft_cnn_options *options);

typedef struct weft_resnet_options {
    int64_t channels, rows, columns; /* of the images; must be set, like classes */
    int64_t classes;
    int64_t depth; /* 6 n + 2, for n blocks in each of three stages: 8, 14, 20, ...; 0: 20 */
    int64_t width; /* channels of the first stage; each further stage doubles them; 0: 16 */
    weft_dtype dtype;
} weft_resnet_options;

/* The residual network for small images (He et al. 2016, section 4.2): 3 x 3 convolutions with batch norm,
 * shortcuts without parameters, global average pooling. x as in weft_nn_cnn -> logits (N, classes).
 *
 * Children: conv1, bn1, layer1, layer2, layer3, fc. The blocks in the layers have conv1, bn1, conv2, bn2. */
WEFT_API weft_module *weft_nn_resnet(weft_context *ctx, const weft_resnet_options *options);

/* An autoencoder: an encoder sizes[0] -> ... -> sizes[count - 1], and a decoder with the same sizes
 * backwards. Both are weft_nn_mlp; the children are encoder and decoder. x (N, ...) with sizes[0] elements
 * each -> the same shape. Train it with its input as target. */
WEFT_API weft_module *weft_nn_autoencoder(weft_context *ctx, const int64_t *sizes, int count,
                                          const weft_mlp_options *options);

/* Runs modules one after the other. The list ends with NULL, or has `count` modules, at most 65,535.
 * Children are named "0", "1", ... `name` is for messages. */
WEFT_API weft_module *weft_nn_sequential(weft_context *ctx, const char *name, ...);
WEFT_API weft_module *weft_nn_sequential_of(weft_context *ctx, const char *name, weft_module *const *children,
                                            size_t count);

typedef enum weft_norm_kind { WEFT_NORM_LAYER, WEFT_NORM_RMS } weft_norm_kind;

typedef struct weft_transformer_block_options {
    bool causal; /* true: a decoder block; false: an encoder block */
    bool no_bias;
    double dropout;
    int64_t hidden; /* of the MLP; 0: 4 width; gated: 8/3 width, rounded up to a multiple of 32 */
    weft_activation_kind activation; /* DEFAULT (0): GELU with tanh; gated: SiLU */
    double eps;                      /* of the norms; 0: 1e-5 */
    weft_dtype dtype;
    weft_init weight; /* of every linear layer; default: as weft_nn_linear's */
    weft_init bias;
    weft_init residual; /* weights of the projections at the end of a branch; default: as weight */
    weft_norm_kind norm;
    bool post_norm; /* ln_1(x + attn(x)) and so on, as in Vaswani et al.; default: norms before each branch */
    bool gated;     /* activation(gate) * up in the MLP (Shazeer 2020), SwiGLU with SiLU; c_fc packs both */
    int64_t kv_heads; /* as in weft_multihead_attention_options; also the next two */
    bool rotary;
    weft_rotary_options rotation;
    bool cross;           /* also attend to a memory (weft_attend), after self-attention */
    int64_t memory_width; /* 0: width */
    weft_attention_form form;
    bool norm_plus_one; /* as plus_one in weft_norm_options */
    bool branch_norms;  /* a second norm after each branch, before its result is added, as in Gemma 2 */
    bool parallel;      /* x + attn(ln_1(x)) + mlp(ln_2(x)), as in GPT-NeoX */
    bool mlp_bias;      /* with no_bias: the MLP has biases all the same */
} weft_transformer_block_options;

/* A transformer block with pre-norm: x + attn(ln_1(x)), then x + mlp(ln_2(x)). x (B, T, width). Children:
 * ln_1, attn, ln_2, mlp (c_fc, c_proj). With cross, ln_cross_attn and crossattention follow attn. With
 * branch_norms, ln_1_after follows attn, and ln_2_after follows mlp; such a block has no cross-attention. */
WEFT_API weft_module *weft_nn_transformer_block(weft_context *ctx, int64_t width, int64_t heads,
                                                const weft_transformer_block_options *options);

typedef enum weft_position_kind {
    WEFT_POSITION_LEARNED,    /* a table, wpe */
    WEFT_POSITION_ROTARY,     /* in every attention layer */
    WEFT_POSITION_SINUSOIDAL, /* added to token vectors times sqrt(width), as in Vaswani et al. */
    WEFT_POSITION_NONE
} weft_position_kind;

typedef struct weft_gpt_options {
    int64_t vocab;   /* must be set */
    int64_t context; /* longest sequence; must be set */
    int64_t layers;  /* must be set, like heads and width */
    int64_t heads;
    int64_t width; /* a multiple of heads */
    double dropout;
    bool no_bias;
    bool untied_head;    /* a separate head ("lm_head.weight") instead of the token table */
    int64_t head_chunks; /* cross-entropy computes the logits in this number of chunks of the tokens, one
                            after the other, so that they are never all stored. 0: not chunked; but where
                            activations are recomputed, the fewest chunks of at most 1 GiB. Another reader of
                            the logits computes them again */
    weft_dtype dtype;
    int64_t tokens; /* number of rows of vocab that are tokens, the first ones; 0: all. Logits of other rows
                       are -inf */
    weft_norm_kind norm;
    weft_position_kind positions;
    bool gated;       /* the MLP is down(activation(gate(x)) * up(x)), SwiGLU with SiLU */
    int64_t kv_heads; /* key/value heads; heads is a multiple of it; 0: heads */
    int64_t hidden;   /* of the MLP; 0: 4 width; gated: 8/3 width, rounded up to a multiple of 32 */
    double eps;       /* of the norms; 0: 1e-5 */
    weft_rotary_options rotation; /* of rotary positions */
    weft_attention_form form;
    /* With form.window: layers window_except - 1, 2 window_except - 1, ... see all tokens, the others only
     * the window. 0: all layers have the window */
    int64_t window_except;
    weft_rotary_options window_rotation;                  /* of layers with a window; base 0: as rotation */
    bool norm_plus_one, branch_norms, parallel, mlp_bias; /* as in weft_transformer_block_options */
    double embedding_scale;                               /* factor of the token vectors; 0: 1 */
    double logit_softcap;            /* the logits become softcap * tanh(logit / softcap); 0: unchanged */
    weft_activation_kind activation; /* of the MLP; DEFAULT (0): GELU with tanh; gated: SiLU */
} weft_gpt_options;

/* GPT-2 (Radford et al. 2019): learned positions, pre-norm blocks, GELU with tanh, tied head.
 * Initialisation is normal(0.02); projections at the end of a branch have 0.02 / sqrt(2 layers). tokens (B,
 * T), integers, T <= context -> logits (B, T, vocab).
 *
 * Packed texts: rows (B, 2, T) hold tokens and, for each token, the place in the row where its text begins
 * (weft_chats_pack makes them). A token then sees only its own text, and positions count from its begin.
 *
 * Parameter names are GPT-2's: wte.weight, wpe.weight, h.0.ln_1.weight, ..., ln_f.bias. Linear weights are
 * (out, in), the transpose of those in GPT-2's own files.
 *
 * Llama (Touvron et al. 2023) is: .norm = WEFT_NORM_RMS, .positions = WEFT_POSITION_ROTARY, .gated = true,
 * .no_bias = true, .untied_head = true, and kv_heads. The names stay the same. The rows of
 * h.0.attn.c_attn.weight are Llama's q_proj, k_proj, v_proj. The rows of h.0.mlp.c_fc.weight are its
 * gate_proj, up_proj. */
WEFT_API weft_module *weft_nn_gpt(weft_context *ctx, const weft_gpt_options *options);

/* ---- encoders ---- */

typedef struct weft_encoder_options {
    int64_t vocab;   /* must be set */
    int64_t context; /* longest sequence; must be set */
    int64_t layers;  /* must be set, like heads and width */
    int64_t heads;
    int64_t width;          /* a multiple of heads */
    int64_t hidden;         /* of the MLP; 0: 4 width */
    int64_t types;          /* rows of a table of token types, of which the first two are used; 0: none */
    int64_t first_position; /* row of the table of positions that the first token has; RoBERTa: 2 */
    int64_t labels;         /* classes of weft_encoder_logits; 0: none */
    double eps;             /* of the norms; 0: 1e-12 */
    double dropout;
    weft_activation_kind activation;        /* of the MLP; DEFAULT (0): GELU */
    weft_activation_kind pooler_activation; /* of weft_encoder_logits; DEFAULT (0): tanh */
    weft_dtype dtype;
    bool classifies; /* a forward pass gives the logits of weft_encoder_logits, not the states */
} weft_encoder_options;

/* BERT (Devlin et al. 2019), and by options RoBERTa and DistilBERT: learned positions, a norm of the token
 * vectors, post-norm blocks in which all tokens see each other. tokens (B, T), integers, T <= context ->
 * states (B, T, width).
 *
 * If sequences are padded, call it by weft_attend with a bool mask (B, T), which is true for tokens. Or give
 * rows (B, 2, T) as weft_tokenizer_encode_row makes them: tokens, and the type of each one, 0 or 1 (of the
 * second text of a pair), or -1 for padding.
 *
 * Parameter names: wte.weight, wpe.weight, wtt.weight (token types), ln_e.weight, h.0.attn.c_attn.weight, ...
 * as in weft_nn_transformer_block; with labels pooler.weight and classifier.weight. */
WEFT_API weft_module *weft_nn_encoder(weft_context *ctx, const weft_encoder_options *options);

typedef enum weft_pooling {
    WEFT_POOL_MEAN, /* of the states of all tokens */
    WEFT_POOL_FIRST /* the state of the first token, [CLS] */
} weft_pooling;

/* One vector for each sequence: states (B, T, width) -> (B, width). mask: bool (B, T), true for tokens; each
 * sequence needs one. NULL: all are tokens. */
WEFT_API weft_tensor *weft_encoder_pool(weft_tensor *states, weft_tensor *mask, weft_pooling pooling);
WEFT_API weft_tensor *weft_encoder_pool_at(const char *where, weft_tensor *states, weft_tensor *mask,
                                           weft_pooling pooling);
#define weft_encoder_pool(...) weft_encoder_pool_at(WEFT_HERE, __VA_ARGS__)

/* The logits (B, labels) of the classes, from the states of an encoder with labels: those of the first token
 * pass a linear layer, an activation, in training dropout, and a linear layer. */
WEFT_API weft_tensor *weft_encoder_logits(weft_module *encoder, weft_tensor *states);
WEFT_API weft_tensor *weft_encoder_logits_at(const char *where, weft_module *encoder, weft_tensor *states);
#define weft_encoder_logits(...) weft_encoder_logits_at(WEFT_HERE, __VA_ARGS__)

/* ---- adapters ---- */

typedef struct weft_lora_options {
    int64_t rank;               /* 0: 8 */
    double alpha;               /* what adapters add is multiplied by alpha / rank; 0: rank */
    double dropout;             /* of the inputs of the adapters, in training */
    const char *const *targets; /* [target_count] names of layers, or patterns of paths, h.0.*_proj, as those
                                   of weft_module_freeze_matching; NULL: q_proj and v_proj */
    int target_count;
} weft_lora_options;

/* Adds low-rank adapters (Hu et al. 2021) to a gpt, and freezes all its other parameters. An optimizer that
 * is made afterwards trains the adapters alone; they are f32, whatever dtype the model has.
 *
 * The targets are named as in published models of the Llama kind, for each kind of gpt: q_proj, k_proj,
 * v_proj, o_proj, gate_proj, up_proj, down_proj. An MLP without gate has no gate_proj. The parameters are
 * named after the layer and the target: h.0.attn.c_attn.q_proj.lora_A.weight (rank, in), which begins as a
 * linear layer's, and ...lora_B.weight (rows, rank), which begins as 0.
 *
 * Call it before the gpt is used or loaded. weft_published_load fills the model without the adapters, and
 * weft_published_save writes the weights with the adapters added to them.
 *
 * WEFT_ERR_ARGUMENT: no gpt, an unknown target, a target given twice, or options out of range.
 * WEFT_ERR_STATE: the gpt was used. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_lora(weft_module *gpt, const weft_lora_options *options);

/* Adds the adapters of weft_gpt_lora to the weights, frees the adapters, and unfreezes the gpt. Results
 * change only by rounding: the sum is rounded to the dtype of the weights, so with bf16 weights small
 * adapters are lost. Without adapters it does nothing.
 *
 * WEFT_ERR_ARGUMENT: the module is no gpt. WEFT_ERR_STATE: an optimizer or a cache was made for the gpt.
 * WEFT_ERR_UNSUPPORTED: a weight is packed. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_merge_lora(weft_module *gpt);

/* Fills a gpt from a safetensors file. The file has GPT-2's weights as they are published (names with or
 * without "transformer.", matrices (in, out), any float dtype), or is one that weft_module_save wrote.
 * - If the file has no head, the head is the token table. Attention masks in the file are ignored.
 * - If the file has more positions than the model, the model gets the first ones.
 * - If the file has fewer tokens, further rows become the mean of the table.
 *
 * WEFT_ERR_FORMAT names what is missing, unexpected or of another shape; then nothing is changed. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_load(weft_module *gpt, const char *path);

/* Writes such a file with the names and shapes of GPT-2's published files, without the rows that are not
 * tokens. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_save(weft_module *gpt, const char *path);

/* Reads the number of tokens in the table of such a file. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_file_vocab(weft_context *ctx, const char *path, int64_t *vocab);

/* ---- decoding with a key/value cache ---- */

typedef struct weft_decode_state weft_decode_state;

/* Makes a cache for one sequence of at most `context` tokens. For a weft_nn_recurrent_lm the cache has its
 * states, and holds any number of tokens. NULL on failure, with weft_last_error set. After the model is
 * freed, the cache returns WEFT_ERR_STATE; freeing it is still allowed. */
WEFT_API weft_decode_state *weft_decode_state_new(weft_module *gpt);

/* The same for texts of at most `capacity` tokens, at most the context, in less memory. 0: the context. A
 * cache of a recurrent model has no capacity. */
WEFT_API weft_decode_state *weft_decode_state_new_sized(weft_module *gpt, int64_t capacity);
WEFT_API void weft_decode_state_free(weft_decode_state *cache);

/* The former names of weft_decode_state_new and weft_decode_state_free, for programs in other languages that
 * look them up in the library. */
WEFT_API weft_decode_state *weft_gpt_cache_new(weft_module *gpt);
WEFT_API void weft_gpt_cache_free(weft_decode_state *cache);

/* Removes all tokens. Nothing is compiled again. */
WEFT_API void weft_decode_state_reset(weft_decode_state *cache);

/* Keeps the longest begin of the cache that is also the begin of tokens[0..count), and forgets the rest.
 * Returns its length: feed the other tokens. A cache of a recurrent model is reset, and the length is 0. */
WEFT_API int64_t weft_decode_state_keep(weft_decode_state *cache, const int32_t *tokens, int64_t count);

/* The number of tokens in the cache, and the number that it can hold. */
WEFT_API int64_t weft_decode_state_length(const weft_decode_state *cache);
WEFT_API int64_t weft_decode_state_capacity(const weft_decode_state *cache);

/* Appends `count` tokens and writes the logits (vocab) that follow the last one. Always computes in
 * evaluation mode.
 *
 * One program serves every position. Prompts are padded to 16, 32, 64, ... tokens and masked, so that few
 * programs serve all lengths.
 *
 * WEFT_ERR_STATE if the cache has too little room, WEFT_ERR_INDEX for a token outside the vocabulary. After
 * an error the cache is as before. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_feed(weft_decode_state *cache, const int32_t *tokens,
                                                int64_t count, float *logits);

/* The same, but writes the logits that follow each of the tokens: (count, vocab). WEFT_ERR_UNSUPPORTED for a
 * recurrent model. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_feed_all(weft_decode_state *cache, const int32_t *tokens,
                                                    int64_t count, float *logits);

/* Appends one token to each of `count` caches of one model, 1 to 64, and writes the logits that follow them:
 * (count, vocab). This reads the weights once for all of them. Each text has its own length.
 *
 * A token of -1 leaves its cache as it is; its logits mean nothing. So one program serves the same caches
 * although some of their texts have ended. Each list of caches has a program of its own.
 *
 * Errors are those of weft_gpt_feed. WEFT_ERR_ARGUMENT: the caches have different models, or one is there
 * twice. After an error all caches are as before. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_feed_many(weft_decode_state *const *caches, int64_t count,
                                                     const int32_t *tokens, float *logits);

/* Samples a token from logits (count). temperature 0 takes the largest logit. top_k > 0 considers only the
 * k largest. A pure function of its arguments: the random number is word `draw` of the stream of `seed`. -1
 * if no logit is a finite number. */
WEFT_API int64_t weft_sample(const float *logits, int64_t count, double temperature, int64_t top_k,
                             uint64_t seed, uint64_t draw);

/* ---- use ---- */

/* Runs a module on x. Errors name the layer. */
WEFT_API weft_tensor *weft_forward(weft_module *m, weft_tensor *x);
WEFT_API weft_tensor *weft_forward_at(const char *where, weft_module *m, weft_tensor *x);
#define weft_forward(...) weft_forward_at(WEFT_HERE, __VA_ARGS__)

/* What training recomputes in the backward pass instead of keeping it: less memory, more computation.
 * Values are the same, except for last bits where other kernels then add (a norm's gradients; matmuls on
 * CUDA). Each level includes those before it. */
typedef enum weft_recompute {
    WEFT_RECOMPUTE_NONE,
    WEFT_RECOMPUTE_GELU, /* results of activations (GELU or another), from their inputs */
    WEFT_RECOMPUTE_NORM, /* also results of norms, from their inputs and statistics */
    WEFT_RECOMPUTE_BLOCK /* also everything inside each transformer block (activation checkpointing), about a
                            third more computation; for a module without such blocks, everything inside it */
} weft_recompute;

/* Sets the level for m and all below it. */
WEFT_API WEFT_CHECKED weft_status weft_module_recompute(weft_module *m, weft_recompute what);

/* Mixed precision (Micikevicius et al. 2018): sets the dtype in which m and its children compute, bf16 or
 * f16. WEFT_F32 turns it off.
 *
 * Parameters, their gradients, optimizer state and saved files stay f32. f32 parameters are rounded where
 * they are used; embedding rows are rounded after the lookup. Sums and losses are f32. Inputs and results
 * of the module are f32.
 *
 * f16 holds nothing below 6e-8, and gradients are often smaller: train f16 with weft_optimizer_scale_loss.
 * WEFT_ERR_UNSUPPORTED for other dtypes. */
WEFT_API weft_status weft_module_compute(weft_module *m, weft_dtype dtype);

/* Sets the mode of m and all below it: training (the default) or evaluation. It trains nothing. Call
 * weft_module_set_training(m, false) before you predict: dropout is then off, and batch norms use their
 * running statistics. */
WEFT_API void weft_module_set_training(weft_module *m, bool training);
WEFT_API bool weft_module_is_training(const weft_module *m);

/* Freezes or unfreezes every parameter of m and below. Optimizers do not change frozen parameters. */
WEFT_API void weft_module_freeze(weft_module *m, bool frozen);
/* The same for those parameters of m and below whose full names match a pattern: * stands for any characters,
 * ? for one, as in "h.*.attn.*" and "wte.weight". WEFT_ERR_ARGUMENT if none matches. */
WEFT_API WEFT_CHECKED weft_status weft_module_freeze_matching(weft_module *m, const char *pattern,
                                                              bool frozen);

/* A number that changes with every weft_module_freeze, weft_module_freeze_matching and weft_module_compute in
 * m's tree. */
WEFT_API uint64_t weft_module_freeze_count(const weft_module *m);

/* WEFT_OK, or the error that poisoned m; that error becomes the last error. NULL is an error. */
WEFT_API weft_status weft_module_status(const weft_module *m);

/* Frees a root, all below it, and the memory of optimizers and caches made for them. These optimizers and
 * caches return WEFT_ERR_STATE from then on; free them with their own functions or with the context.
 * Tensors recorded with the module's parameters stay valid until their scope closes. NULL is allowed. A
 * module that has a parent is not freed. */
WEFT_API void weft_module_free(weft_module *m);

/* The context that m was made in. */
WEFT_API weft_context *weft_module_context(const weft_module *m);
/* The kind of m: "linear" and so on. */
WEFT_API const char *weft_module_kind(const weft_module *m);
/* The full name of m from the root on, "h.0.attn". The name of a root is the name it was given. */
WEFT_API const char *weft_module_path(weft_module *m);

/* Makes the parameters now instead of at the first use. The status says why that failed. */
WEFT_API WEFT_CHECKED weft_status weft_module_prepare(weft_module *m);

/* ---- parameters ---- */

typedef struct weft_parameter_info {
    const char *name;    /* full name, "h.0.attn.c_attn.weight"; lives as long as the context */
    weft_tensor *tensor; /* a variable, owned by its module */
    weft_module *module; /* the module that owns it */
    bool frozen;
    bool buffer;        /* a buffer: saved, but not trained */
    weft_dtype compute; /* the dtype in which its module computes with it */
} weft_parameter_info;

/* The parameters and buffers of m and below, in the order in which they were added, depth first. The count
 * is 0, with weft_last_error set, if they could not be made. */
WEFT_API size_t weft_parameter_count(weft_module *m);
WEFT_API bool weft_parameter_get(weft_module *m, size_t i, weft_parameter_info *info);
/* Finds a parameter or buffer by its full name. */
WEFT_API bool weft_parameter_find(weft_module *m, const char *name, weft_parameter_info *info);
/* The number of elements of all parameters, or of those that are not frozen. Buffers do not count. */
WEFT_API int64_t weft_parameter_elements(weft_module *m, bool trainable_only);

/* Writes a table into buffer, at most `size` bytes with the NUL. Its columns: layer, kind, shape of the
 * last result if there was one, parameters and their shapes. Returns the length of the whole text, or -1
 * after an error. */
WEFT_API int64_t weft_summary(weft_module *m, char *buffer, size_t size);

/* ---- your own modules ---- */

/* The forward function of your own module. It uses weft_parameter(), weft_forward() of children and tensor
 * functions. */
typedef weft_tensor *(*weft_forward_fn)(weft_module *m, weft_tensor *x);

/* Makes a module without children and parameters. kind: a short name, copied. */
WEFT_API weft_module *weft_module_new(weft_context *ctx, const char *kind, weft_forward_fn forward,
                                      void *user);
WEFT_API void *weft_module_user(const weft_module *m);
/* Adds a function that is called once when m is freed. The function added last is called first. */
WEFT_API WEFT_CHECKED weft_status weft_module_on_free(weft_module *m, void (*call)(void *user), void *user);

/* Removes such a function. */
WEFT_API void weft_module_cancel_free(weft_module *m, void (*call)(void *user), void *user);

/* Adds a parameter (trained) or a buffer (only saved). init NULL: zeros for buffers, otherwise as in
 * weft_nn_linear. A failure poisons m and is returned. */
WEFT_API weft_status weft_module_parameter(weft_module *m, const char *name, weft_dtype dtype, int rank,
                                           const int64_t *shape, const weft_init *init);
WEFT_API weft_status weft_module_buffer(weft_module *m, const char *name, weft_dtype dtype, int rank,
                                        const int64_t *shape, const weft_init *init);

/* Adds a child, which must be an unused root. Returns the child. A failure poisons m. */
WEFT_API weft_module *weft_module_child(weft_module *m, const char *name, weft_module *child);

/* The i-th child; NULL if there is none. */
WEFT_API weft_module *weft_module_child_get(const weft_module *m, size_t i);

/* The parameter or buffer of m (not of its children) with that name. In a forward function, a buffer has
 * the value that the passes recorded before have assigned to it, without a gradient. */
WEFT_API weft_tensor *weft_parameter(weft_module *m, const char *name);

/* For the forward function of m in training mode: assigns `value` (same shape and dtype) to the buffer. The
 * assignment is performed when the result of this forward pass is computed, by the same program. That may
 * be an optimizer's step, a micro-batch of an accumulated step, weft_eval of anything that needs the
 * result, or each run of a held program.
 * - If nobody asks for the result before its scope closes, nothing is assigned.
 * - In evaluation nothing is assigned. Recomputation in the backward pass assigns nothing again.
 * - Old values are read before new ones are written. If you need a result that reads the buffer later,
 *   weft_keep it.
 * - If several devices share a step, each assigns its own buffers from its own batches. The buffers of the
 *   first device are saved. */
WEFT_API WEFT_CHECKED weft_status weft_module_assign(weft_module *m, const char *name, weft_tensor *value);

/* Copies the values of all parameters and buffers of `from` to `to`, a module of the same structure. The
 * two may belong to contexts on different devices: train on one, predict on the other. Strict: a name that
 * is missing or unexpected, or another shape or dtype, is an error that names it (WEFT_ERR_SHAPE). Then
 * nothing is changed. */
WEFT_API WEFT_CHECKED weft_status weft_module_copy(weft_module *to, weft_module *from);

/* ---- files ---- */

/* A tensor and its name in a file. */
typedef struct weft_named_tensor {
    const char *name;
    weft_tensor *tensor;
    const weft_entry_part *part; /* the tensor, of rank 1, is this part of the array; NULL: all of it */
} weft_named_tensor;

/* Makes entries for weft_safetensors_write and weft_checkpoint_write. They read the tensors (variables or
 * computed ones) when they are written, one at a time. Names are borrowed. Free the entries with
 * weft_entries_free. */
WEFT_API WEFT_CHECKED weft_status weft_entries_new(weft_context *ctx, const weft_named_tensor *tensors,
                                                   size_t count, weft_entry **entries);
WEFT_API void weft_entries_free(weft_context *ctx, weft_entry *entries, size_t count);

/* Fills variables from a file, strictly: an entry that is missing or unexpected, or of another shape or
 * dtype, is an error that names it (WEFT_ERR_FORMAT). Then nothing is changed. Of a part only its own bytes
 * are read. what: "model", for messages. */
WEFT_API WEFT_CHECKED weft_status weft_entries_load(weft_context *ctx, const weft_named_tensor *tensors,
                                                    size_t count, weft_safetensors *file, const char *what);

/* Makes the entries of a module: one for each parameter and buffer, under its full name. Free *entries with
 * weft_entries_free. */
WEFT_API WEFT_CHECKED weft_status weft_module_entries(weft_module *m, weft_entry **entries, size_t *count);

/* The same without frozen parameters and packed weights, such as the adapters of weft_gpt_lora alone. */
WEFT_API WEFT_CHECKED weft_status weft_module_entries_trained(weft_module *m, weft_entry **entries,
                                                              size_t *count);

/* Writes all parameters and buffers of m to a safetensors file. */
WEFT_API WEFT_CHECKED weft_status weft_module_save(weft_module *m, const char *path);

/* Reads them back, strictly as weft_entries_load. The file holds no structure: m must be made as the saved
 * module was. Other activations or options without parameters are not noticed. */
WEFT_API WEFT_CHECKED weft_status weft_module_load(weft_module *m, const char *path);
WEFT_API WEFT_CHECKED weft_status weft_module_load_from(weft_module *m, weft_safetensors *file);

/* The same for a file of weft_module_entries_trained: frozen parameters keep their values. */
WEFT_API WEFT_CHECKED weft_status weft_module_load_trained(weft_module *m, weft_safetensors *file);

/* As weft_module_load_from, but rounds f32 entries to nearest even for bf16 parameters. A trained network
 * that is only used then needs half the memory. */
WEFT_API WEFT_CHECKED weft_status weft_module_load_rounded(weft_module *m, weft_safetensors *file);

#ifdef __cplusplus
}
#endif
#endif
