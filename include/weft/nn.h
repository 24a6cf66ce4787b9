/* Modules: layers that own parameters, and models made of them.
 *
 * A module belongs to its parent; a module without one is a root and belongs to the context: weft_close frees
 * what weft_module_free did not. Constructors never return NULL: what could not be made is a poisoned module,
 * whose forward gives a poisoned tensor with the cause (weft_module_status asks for it).
 *
 * Parameters are drawn when a root is first used (forward, optimizer, iteration, save), from the context's
 * seed and the parameter's full name, the same on every device; loading into an unused module draws nothing.
 * After the first use the tree is fixed: children and parameters can no longer be added. */
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
    WEFT_INIT_DEFAULT, /* what the layer says */
    WEFT_INIT_ZEROS,
    WEFT_INIT_ONES,
    WEFT_INIT_CONSTANT,       /* value */
    WEFT_INIT_UNIFORM,        /* in -value..value; 0: 1 */
    WEFT_INIT_NORMAL,         /* mean 0, standard deviation value; 0: 1 */
    WEFT_INIT_XAVIER_UNIFORM, /* Glorot and Bengio 2010; value is the gain; 0: 1 */
    WEFT_INIT_XAVIER_NORMAL,
    WEFT_INIT_HE_UNIFORM, /* He et al. 2015, by fan-in; value is the slope of a leaky ReLU; 0: ReLU */
    WEFT_INIT_HE_NORMAL
} weft_init_kind;

/* Fans are taken from shape (out, in, ...). */
typedef struct weft_init {
    weft_init_kind kind;
    double value;
} weft_init;

/* ---- layers. options may be NULL; dtype 0 is f32 ---- */

typedef struct weft_linear_options {
    bool no_bias;
    weft_dtype dtype;
    weft_init weight; /* default: uniform in +-1/sqrt(in) */
    weft_init bias;   /* default: the same */
} weft_linear_options;

/* y = x W^T + b. x (..., in) -> (..., out). Parameters: weight (out, in), bias (out). */
WEFT_API weft_module *weft_linear(weft_context *ctx, int64_t in, int64_t out,
                                  const weft_linear_options *options);

typedef struct weft_embedding_options {
    weft_dtype dtype;
    weft_init weight; /* default: normal with deviation 1 */
} weft_embedding_options;

/* Rows of a table. x (...) integers in 0..count-1 -> (..., width). Parameter: weight (count, width). */
WEFT_API weft_module *weft_embedding(weft_context *ctx, int64_t count, int64_t width,
                                     const weft_embedding_options *options);

typedef struct weft_norm_options {
    double eps;     /* 0: 1e-5 */
    bool no_affine; /* neither weight nor bias */
    bool no_bias;
    weft_dtype dtype;
} weft_norm_options;

/* Layer normalisation (Ba et al. 2016) of x (..., width). Parameters: weight (width), bias (width). */
WEFT_API weft_module *weft_layernorm(weft_context *ctx, int64_t width, const weft_norm_options *options);

/* RMS normalisation (Zhang and Sennrich 2019) of x (..., width). Parameter: weight (width). */
WEFT_API weft_module *weft_rmsnorm(weft_context *ctx, int64_t width, const weft_norm_options *options);

typedef struct weft_conv_layer_options {
    weft_conv_options conv; /* stride, padding, dilation, groups, output_padding */
    bool no_bias;
    weft_dtype dtype;
    weft_init weight; /* default: uniform in +-1/sqrt(elements of weight that one of its rows has) */
    weft_init bias;   /* default: the same */
} weft_conv_layer_options;

/* Convolutions of x (N, in, L) or (N, in, H, W), as weft_conv1d and weft_conv2d. Parameters: weight (out,
 * in / groups, size) or (out, in / groups, rows, columns), bias (out). */
WEFT_API weft_module *weft_conv1d_layer(weft_context *ctx, int64_t in, int64_t out, int64_t size,
                                        const weft_conv_layer_options *options);
WEFT_API weft_module *weft_conv2d_layer(weft_context *ctx, int64_t in, int64_t out, int64_t rows,
                                        int64_t columns, const weft_conv_layer_options *options);

/* Transposed ones, as weft_conv_transpose1d and weft_conv_transpose2d. Parameters: weight (in, out / groups,
 * ...), bias (out). */
WEFT_API weft_module *weft_conv_transpose1d_layer(weft_context *ctx, int64_t in, int64_t out, int64_t size,
                                                  const weft_conv_layer_options *options);
WEFT_API weft_module *weft_conv_transpose2d_layer(weft_context *ctx, int64_t in, int64_t out, int64_t rows,
                                                  int64_t columns, const weft_conv_layer_options *options);

/* Pools over the last dimension, or the last two. */
WEFT_API weft_module *weft_max_pool1d_layer(weft_context *ctx, const weft_pool_options *options);
WEFT_API weft_module *weft_max_pool2d_layer(weft_context *ctx, const weft_pool_options *options);
WEFT_API weft_module *weft_avg_pool1d_layer(weft_context *ctx, const weft_pool_options *options);
WEFT_API weft_module *weft_avg_pool2d_layer(weft_context *ctx, const weft_pool_options *options);

/* Pools to a given extent of the last dimension, or the last two; 1 (x 1): global ones. */
WEFT_API weft_module *weft_adaptive_max_pool1d_layer(weft_context *ctx, int64_t size);
WEFT_API weft_module *weft_adaptive_max_pool2d_layer(weft_context *ctx, int64_t rows, int64_t columns);
WEFT_API weft_module *weft_adaptive_avg_pool1d_layer(weft_context *ctx, int64_t size);
WEFT_API weft_module *weft_adaptive_avg_pool2d_layer(weft_context *ctx, int64_t rows, int64_t columns);

/* Upsampling, as weft_interpolate1d and weft_interpolate2d. */
WEFT_API weft_module *weft_interpolate1d_layer(weft_context *ctx, const weft_interpolate_options *options);
WEFT_API weft_module *weft_interpolate2d_layer(weft_context *ctx, const weft_interpolate_options *options);

/* x (N, ...) -> (N, rest). */
WEFT_API weft_module *weft_flatten(weft_context *ctx);

/* Group normalisation (Wu and He 2018) of x (N, channels, ...). Parameters: weight (channels), bias
 * (channels). */
WEFT_API weft_module *weft_groupnorm(weft_context *ctx, int64_t groups, int64_t channels,
                                     const weft_norm_options *options);

/* Instance normalisation (Ulyanov et al. 2016) of x (N, channels, ...). Parameters: weight (channels), bias
 * (channels), unless no_affine says that there are none. */
WEFT_API weft_module *weft_instancenorm(weft_context *ctx, int64_t channels,
                                        const weft_norm_options *options);

typedef struct weft_batchnorm_options {
    double eps;      /* 0: 1e-5 */
    double momentum; /* weight of a new batch in the running statistics; 0: 0.1 */
    bool cumulative; /* instead: all batches weigh the same, counted in "num_batches_tracked" */
    bool no_running; /* no running statistics: evaluation, too, takes the batch's */
    bool no_affine;  /* neither weight nor bias */
    bool no_bias;
    weft_dtype dtype;
} weft_batchnorm_options;

/* Batch normalisation (Ioffe and Szegedy 2015) of x (N, channels, ...): vectors, lines, images. In training
 * by the batch's mean and (biased) variance, which the running ones follow, the variance unbiased, whenever
 * such a pass is computed (weft_module_assign); in evaluation by the running ones. A batch must have two
 * values a channel. Samples that only pad a batch count in its statistics: load with drop_last. Parameters:
 * weight, bias (channels); buffers: running_mean, running_var (channels). */
WEFT_API weft_module *weft_batchnorm(weft_context *ctx, int64_t channels,
                                     const weft_batchnorm_options *options);

/* Dropout while training, the identity otherwise: of elements, or of whole channels of x (N, channels, ...).
 */
WEFT_API weft_module *weft_dropout_layer(weft_context *ctx, double p);
WEFT_API weft_module *weft_dropout2d_layer(weft_context *ctx, double p);

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
#define WEFT_ACTIVATION_ENUM_(name, text) WEFT_##name,
    WEFT_ACTIVATION_LIST(WEFT_ACTIVATION_ENUM_)
#undef WEFT_ACTIVATION_ENUM_
        WEFT_ACTIVATION_COUNT
} weft_activation_kind;

/* "relu" and so on; "?" for an unknown value. And back: false when there is none of that name. */
WEFT_API const char *weft_activation_name(weft_activation_kind kind);
WEFT_API bool weft_activation_parse(const char *name, weft_activation_kind *kind);

/* An activation as a layer. leaky_relu has slope 0.01, elu alpha 1. */
WEFT_API weft_module *weft_activation(weft_context *ctx, weft_activation_kind kind);

typedef struct weft_multihead_attention_options {
    bool causal;
    bool no_bias;
    double dropout; /* of the weights and of the result */
    weft_dtype dtype;
    weft_init weight; /* of both projections; default as weft_linear's */
    weft_init bias;
    weft_init residual; /* weight of the output projection; default: weight */
    int64_t kv_heads; /* heads of keys and values, of which heads is a multiple: heads / kv_heads that follow
                       * each other share one (Ainslie et al. 2023); 0: heads */
    bool rotary;      /* queries and keys are turned by their positions (weft_rotary) */
    weft_rotary_options rotation;
} weft_multihead_attention_options;

/* Self-attention (Vaswani et al. 2017). x (B, T, width) -> (B, T, width); width is a multiple of heads.
 * Children: c_attn (width -> width + 2 kv_heads width / heads: queries, keys, values, packed, by heads),
 * c_proj (width -> width). */
WEFT_API weft_module *weft_multihead_attention(weft_context *ctx, int64_t width, int64_t heads,
                                               const weft_multihead_attention_options *options);

/* Attention of x (B, T, width) to a memory (B, S, memory_width), which weft_attend gives it. Neither causal
 * nor rotary. Children: q_attn (width -> width), c_attn (memory_width -> keys and values, packed), c_proj. */
WEFT_API weft_module *weft_cross_attention(weft_context *ctx, int64_t width, int64_t memory_width,
                                           int64_t heads, const weft_multihead_attention_options *options);

/* What attention layers see besides their input. A mask (B, S) of bool is true where a position is of the
 * sequence and false where it is padding; others are as weft_attention takes them. */
typedef struct weft_attend_options {
    weft_tensor *mask;        /* of self-attention; NULL: all positions are seen */
    weft_tensor *memory;      /* of cross attention */
    weft_tensor *memory_mask; /* of cross attention */
} weft_attend_options;

/* weft_forward, with these for all attention layers in m and below. */
WEFT_API weft_tensor *weft_attend(weft_module *m, weft_tensor *x, const weft_attend_options *options);
WEFT_API weft_tensor *weft_attend_at(const char *where, weft_module *m, weft_tensor *x,
                                     const weft_attend_options *options);
#define weft_attend(...) weft_attend_at(WEFT_HERE, __VA_ARGS__)

typedef struct weft_mlp_options {
    weft_activation_kind activation; /* between layers; IDENTITY (0): ReLU */
    bool no_bias;
    double dropout; /* after each activation */
    weft_dtype dtype;
    weft_init weight;
} weft_mlp_options;

/* sizes[0] -> sizes[1] -> ... -> sizes[count - 1]: linear layers with activations between them. Children are
 * numbered as in a sequential. */
WEFT_API weft_module *weft_mlp(weft_context *ctx, const int64_t *sizes, int count,
                               const weft_mlp_options *options);

typedef struct weft_cnn_options {
    int64_t channels, rows, columns; /* of the images; must be set, as classes */
    int64_t classes;
    const int64_t *filters; /* channels of each convolution; NULL: 32, 64 */
    int filter_count;
    int64_t size;                    /* of their kernels, odd; 0: 3 */
    int64_t hidden;                  /* units between the images and the classes; 0: 128 */
    weft_activation_kind activation; /* IDENTITY (0): ReLU */
    double dropout;                  /* of the hidden units */
    bool no_bias;
    weft_dtype dtype;
} weft_cnn_options;

/* A convolutional network as LeNet (LeCun et al. 1998): convolution, activation and pooling by maximum, which
 * halves the image, for each of filters; then a hidden layer and the classes. x (N, channels, rows, columns),
 * or the same as (N, channels * rows * columns) -> logits (N, classes). Children are numbered as in a
 * sequential. */
WEFT_API weft_module *weft_cnn(weft_context *ctx, const weft_cnn_options *options);

typedef struct weft_resnet_options {
    int64_t channels, rows, columns; /* of the images; must be set, as classes */
    int64_t classes;
    int64_t depth; /* 6 n + 2, for n blocks in each of three stages: 8, 14, 20, ...; 0: 20 */
    int64_t width; /* channels of the first stage, doubled in each further one; 0: 16 */
    weft_dtype dtype;
} weft_resnet_options;

/* The residual network for small images (He et al. 2016, section 4.2): 3 x 3 convolutions with batch norm,
 * shortcuts without parameters, the mean of all pixels. x as of weft_cnn -> logits (N, classes). Children:
 * conv1, bn1, layer1, layer2, layer3 (of blocks with conv1, bn1, conv2, bn2), fc. */
WEFT_API weft_module *weft_resnet(weft_context *ctx, const weft_resnet_options *options);

/* sizes[0] -> ... -> sizes[count - 1], the code, and all the way back: two weft_mlp, children encoder and
 * decoder. x (N, ...) of sizes[0] elements each -> the same shape. Train it towards its input. */
WEFT_API weft_module *weft_autoencoder(weft_context *ctx, const int64_t *sizes, int count,
                                       const weft_mlp_options *options);

/* One after the other; the list ends with NULL, or has `count` modules, at most 65,535. Children are named
 * "0", "1", ... name: for messages. */
WEFT_API weft_module *weft_sequential(weft_context *ctx, const char *name, ...);
WEFT_API weft_module *weft_sequential_of(weft_context *ctx, const char *name, weft_module *const *children,
                                         size_t count);

typedef enum weft_norm_kind { WEFT_NORM_LAYER, WEFT_NORM_RMS } weft_norm_kind;

typedef struct weft_transformer_block_options {
    bool causal; /* false: an encoder's */
    bool no_bias;
    double dropout;
    int64_t hidden; /* of the MLP; 0: 4 width, gated 8/3 width, rounded up to a multiple of 32 */
    weft_activation_kind activation; /* IDENTITY (0): GELU by tanh, gated SiLU */
    double eps;                      /* of the norms; 0: 1e-5 */
    weft_dtype dtype;
    weft_init weight; /* of every linear layer; default as weft_linear's */
    weft_init bias;
    weft_init residual; /* weights of the projections that end a branch; default: weight */
    weft_norm_kind norm;
    bool post_norm; /* ln_1(x + attn(x)) and so on, as Vaswani et al. have it; else before each branch */
    bool gated; /* activation(gate) * up in the MLP (Shazeer 2020): SwiGLU with SiLU; c_fc is both, packed */
    int64_t kv_heads; /* as in weft_multihead_attention_options, as are the next two */
    bool rotary;
    weft_rotary_options rotation;
    bool cross;           /* a decoder's: attention to a memory (weft_attend) after that to itself */
    int64_t memory_width; /* 0: width */
} weft_transformer_block_options;

/* Pre-norm block: x + attn(ln_1(x)), then x + mlp(ln_2(x)). x (B, T, width). Children: ln_1, attn, where
 * cross ln_cross_attn, crossattention, then ln_2, mlp (c_fc, c_proj). */
WEFT_API weft_module *weft_transformer_block(weft_context *ctx, int64_t width, int64_t heads,
                                             const weft_transformer_block_options *options);

typedef enum weft_position_kind {
    WEFT_POSITION_LEARNED,    /* a table, wpe */
    WEFT_POSITION_ROTARY,     /* in every attention layer */
    WEFT_POSITION_SINUSOIDAL, /* added to token vectors times sqrt(width), as Vaswani et al. have it */
    WEFT_POSITION_NONE
} weft_position_kind;

typedef struct weft_gpt_options {
    int64_t vocab;   /* must be set */
    int64_t context; /* longest sequence; must be set */
    int64_t layers;  /* must be set, as heads and width */
    int64_t heads;
    int64_t width; /* a multiple of heads */
    double dropout;
    bool no_bias;
    bool untied_head;    /* a head of its own ("lm_head.weight") instead of the token table */
    int64_t head_chunks; /* a cross-entropy of the logits makes them in so many parts of the tokens, one after
                          * the other, so that they are never all there; 0: whole, but where activations are
                          * recomputed as few as hold no more than 1 GiB each. Who reads the logits besides
                          * computes them once more */
    weft_dtype dtype;
    int64_t
        tokens; /* the first rows of vocab, which stand for tokens; 0: all. The logits of others are -inf */
    weft_norm_kind norm;
    weft_position_kind positions;
    bool swiglu;      /* the MLP is down(silu(gate(x)) * up(x)), else tanh GELU */
    int64_t kv_heads; /* heads of keys and values, of which heads is a multiple; 0: heads */
    int64_t hidden;   /* of the MLP; 0: 4 width, with swiglu 8/3 width, rounded up to a multiple of 32 */
    double eps;       /* of the norms; 0: 1e-5 */
    weft_rotary_options rotation; /* of rotary positions */
} weft_gpt_options;

/* GPT-2 (Radford et al. 2019): learned positions, pre-norm blocks, tanh GELU, tied head; normal(0.02)
 * initialisation, projections that end a branch 0.02 / sqrt(2 layers). tokens (B, T) integers, T <= context
 * -> logits (B, T, vocab). Parameter names are GPT-2's: wte.weight, wpe.weight, h.0.ln_1.weight, ...,
 * ln_f.bias; linear weights are (out, in), the transpose of those in GPT-2's own files.
 *
 * Llama (Touvron et al. 2023) is .norm = WEFT_NORM_RMS, .positions = WEFT_POSITION_ROTARY, .swiglu = true,
 * .no_bias = true, .untied_head = true and kv_heads. Names stay; the rows of h.0.attn.c_attn.weight are
 * Llama's q_proj, k_proj, v_proj, those of h.0.mlp.c_fc.weight its gate_proj, up_proj. */
WEFT_API weft_module *weft_gpt(weft_context *ctx, const weft_gpt_options *options);

/* Fills a gpt from a safetensors file of GPT-2's weights as they are published (names with or without
 * "transformer.", matrices (in, out), any float dtype), or of a gpt's as weft_module_save writes it. A head
 * that the file lacks is the token table; masks of attention are passed over. A file may have more positions
 * than the model, whose context is then the first ones, and fewer tokens: further rows become the mean of the
 * table. WEFT_ERR_FORMAT names what is missing, superfluous or of another shape; nothing is changed then. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_load(weft_module *gpt, const char *path);

/* Writes such a file, in the names and shapes of GPT-2's published ones; rows that stand for no token are
 * left out. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_save(weft_module *gpt, const char *path);

/* How many tokens the table of such a file has. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_file_vocab(weft_context *ctx, const char *path, int64_t *vocab);

/* ---- decoding with a key/value cache ---- */

typedef struct weft_gpt_cache weft_gpt_cache;

/* A cache for one sequence of at most `context` tokens; of a weft_recurrent_lm, its states, which hold any
 * number of tokens. NULL with weft_last_error set. It ends with the
 * model; what is left of it then gives WEFT_ERR_STATE, and may be freed. */
WEFT_API weft_gpt_cache *weft_gpt_cache_new(weft_module *gpt);
WEFT_API void weft_gpt_cache_free(weft_gpt_cache *cache);

/* Forgets all tokens. Nothing is compiled anew. */
WEFT_API void weft_gpt_cache_reset(weft_gpt_cache *cache);

/* Tokens in the cache, and how many it can hold. */
WEFT_API int64_t weft_gpt_cache_length(const weft_gpt_cache *cache);
WEFT_API int64_t weft_gpt_cache_capacity(const weft_gpt_cache *cache);

/* Appends `count` tokens and writes the logits (vocab) that follow the last one. One program serves every
 * position; prompts are padded to 16, 32, 64, ... and masked, so that few programs serve all lengths.
 * Computes as in evaluation, whatever the mode. WEFT_ERR_STATE when the cache is too full, WEFT_ERR_INDEX for
 * a token outside the vocabulary; the cache is then as before. */
WEFT_API WEFT_CHECKED weft_status weft_gpt_feed(weft_gpt_cache *cache, const int32_t *tokens, int64_t count,
                                                float *logits);

/* Draws a token from logits (count): temperature 0 takes the largest; top_k > 0 considers the k largest. A
 * pure function of its arguments: the random number is word `draw` of the stream of `seed`. -1 where no logit
 * is a finite number. */
WEFT_API int64_t weft_sample(const float *logits, int64_t count, double temperature, int64_t top_k,
                             uint64_t seed, uint64_t draw);

/* ---- use ---- */

/* Runs a module on x. Errors name the layer. */
WEFT_API weft_tensor *weft_forward(weft_module *m, weft_tensor *x);
WEFT_API weft_tensor *weft_forward_at(const char *where, weft_module *m, weft_tensor *x);
#define weft_forward(...) weft_forward_at(WEFT_HERE, __VA_ARGS__)

/* What is not kept for the backward pass but computed again there, in training: less memory, more work, the
 * same values, but for last bits where other kernels then add up (a norm's gradients; products on CUDA). Each
 * has those before it. */
typedef enum weft_recompute {
    WEFT_RECOMPUTE_NONE,
    WEFT_RECOMPUTE_GELU, /* results of activations, GELU or another, from their inputs */
    WEFT_RECOMPUTE_NORM, /* and of norms, from their inputs and statistics */
    WEFT_RECOMPUTE_BLOCK /* all that is inside of a transformer block (activation checkpointing), about a
                          * third more work; of a module that has none below, all that is inside of it */
} weft_recompute;

/* Says so of m and all below it. */
WEFT_API WEFT_CHECKED weft_status weft_module_recompute(weft_module *m, weft_recompute what);

/* Mixed precision (Micikevicius et al. 2018): with bf16 or f16 the module and its children compute in that
 * from parameters that stay f32, as do their gradients, optimizers and what is saved. Parameters of f32 are
 * rounded where they are used, rows of an embedding once they are looked up; sums and losses are f32. What
 * goes in from outside, and comes out, is f32. WEFT_F32 ends it. WEFT_ERR_UNSUPPORTED for other dtypes. f16
 * holds nothing below 6e-8, which gradients often are: train with weft_optimizer_scale_loss. */
WEFT_API weft_status weft_module_compute(weft_module *m, weft_dtype dtype);

/* Training mode (the default) or evaluation, for m and all below it: dropout is active only in the first. */
WEFT_API void weft_train(weft_module *m, bool training);
WEFT_API bool weft_is_training(const weft_module *m);

/* Freezes (or thaws) every parameter of m and below: optimizers leave them alone. */
WEFT_API void weft_freeze(weft_module *m, bool frozen);

/* Changes with every weft_freeze and weft_module_compute in the tree that m belongs to. */
WEFT_API uint64_t weft_freeze_count(const weft_module *m);

/* WEFT_OK, or the error that poisoned m (which becomes the last error). NULL is an error. */
WEFT_API weft_status weft_module_status(const weft_module *m);

/* Frees a root and all below it, and what optimizers and caches made for them hold: these give WEFT_ERR_STATE
 * from then on and are freed by their own functions or with the context. Tensors recorded with its parameters
 * stay valid until their scope closes. NULL is fine; a module that has a parent is left to it. */
WEFT_API void weft_module_free(weft_module *m);

/* The context that m was made in. */
WEFT_API weft_context *weft_module_context(const weft_module *m);
/* What m is, in a word: "linear". */
WEFT_API const char *weft_module_kind(const weft_module *m);
/* Name from the root on, "h.0.attn"; that of a root is the name it was given. */
WEFT_API const char *weft_module_path(weft_module *m);

/* Makes the parameters now instead of at the first use, and says why they could not be made. */
WEFT_API WEFT_CHECKED weft_status weft_module_prepare(weft_module *m);

/* ---- parameters ---- */

typedef struct weft_parameter_info {
    const char *name;    /* full, "h.0.attn.c_attn.weight"; lives as long as the context */
    weft_tensor *tensor; /* a variable, owned by its module */
    weft_module *module; /* its owner */
    bool frozen;
    bool buffer;        /* saved, but not trained */
    weft_dtype compute; /* what its module computes with it in */
} weft_parameter_info;

/* Parameters and buffers of m and below, in the order in which they were added, depth first. 0 with
 * weft_last_error set when they could not be made. */
WEFT_API size_t weft_parameter_count(weft_module *m);
WEFT_API bool weft_parameter_get(weft_module *m, size_t i, weft_parameter_info *info);
/* By the name from the root on. */
WEFT_API bool weft_parameter_find(weft_module *m, const char *name, weft_parameter_info *info);
/* Number of elements of all parameters; of those that are not frozen. Buffers do not count. */
WEFT_API int64_t weft_parameter_elements(weft_module *m, bool trainable_only);

/* A table (layer, kind, shape of its last result if there was one, parameters and their shapes) into buffer,
 * at most `size` bytes with the NUL. Returns the length that the whole text has, -1 after an error. */
WEFT_API int64_t weft_summary(weft_module *m, char *buffer, size_t size);

/* ---- modules of one's own ---- */

/* Computes with weft_parameter(), weft_forward() of children and tensor functions. */
typedef weft_tensor *(*weft_forward_fn)(weft_module *m, weft_tensor *x);

/* A module without children and parameters. kind: a short name, copied. */
WEFT_API weft_module *weft_module_new(weft_context *ctx, const char *kind, weft_forward_fn forward,
                                      void *user);
WEFT_API void *weft_module_user(const weft_module *m);
/* Called once when m is freed; several may be given, the last one is called first. */
WEFT_API WEFT_CHECKED weft_status weft_module_on_free(weft_module *m, void (*call)(void *user), void *user);

/* Takes such a call back. */
WEFT_API void weft_module_cancel_free(weft_module *m, void (*call)(void *user), void *user);

/* Adds a parameter (trained) or a buffer (saved only). init NULL: zeros for buffers, else as weft_linear. A
 * failure poisons m and is returned. */
WEFT_API weft_status weft_module_parameter(weft_module *m, const char *name, weft_dtype dtype, int rank,
                                           const int64_t *shape, const weft_init *init);
WEFT_API weft_status weft_module_buffer(weft_module *m, const char *name, weft_dtype dtype, int rank,
                                        const int64_t *shape, const weft_init *init);

/* Adds a child, which must be a root that was not used yet. Returns the child; a failure poisons m. */
WEFT_API weft_module *weft_module_child(weft_module *m, const char *name, weft_module *child);

/* The i-th child; NULL when there is none. */
WEFT_API weft_module *weft_module_child_get(const weft_module *m, size_t i);

/* The parameter or buffer of m (not of its children) with that name. In a forward function a buffer is what
 * passes recorded before have assigned, without a gradient. */
WEFT_API weft_tensor *weft_parameter(weft_module *m, const char *name);

/* In the forward function of m, in training mode: the buffer becomes `value` (of its shape and dtype) when
 * the result of this forward pass is computed, as part of the same program: an optimizer's step, a part of an
 * accumulated one, weft_eval of anything that needs that result, each run of a held program. A pass whose
 * result nobody asks for before its scope closes assigns nothing, nor does one in evaluation. Old values are
 * read before new ones are written; results that read the buffer and are wanted later are to be kept
 * (weft_keep). Where several devices share a step, each assigns its own buffers from its own batches; those
 * of the first are the ones that are saved. What is recomputed in the backward pass assigns nothing again. */
WEFT_API WEFT_CHECKED weft_status weft_module_assign(weft_module *m, const char *name, weft_tensor *value);

/* Gives all parameters and buffers of `to` the values that those of `from`, a module of the same build, have
 * now. The two may belong to contexts on different devices: train on one, predict on the other. Strict: a
 * missing or superfluous name, another shape or dtype is an error that names it (WEFT_ERR_SHAPE), and nothing
 * is changed. */
WEFT_API WEFT_CHECKED weft_status weft_module_copy(weft_module *to, weft_module *from);

/* ---- files ---- */

/* A tensor under the name it has in a file. */
typedef struct weft_named_tensor {
    const char *name;
    weft_tensor *tensor;
} weft_named_tensor;

/* Entries for weft_safetensors_write and weft_checkpoint_write that read the tensors (variables, or computed
 * ones) when they are written, one at a time. Names are borrowed. Free the entries with weft_entries_free. */
WEFT_API WEFT_CHECKED weft_status weft_entries_new(weft_context *ctx, const weft_named_tensor *tensors,
                                                   size_t count, weft_entry **entries);
WEFT_API void weft_entries_free(weft_context *ctx, weft_entry *entries, size_t count);

/* Fills variables from a file, strictly: a missing or superfluous entry, another shape or dtype is an error
 * that names it (WEFT_ERR_FORMAT), and then nothing is changed. what: "model", for messages. */
WEFT_API WEFT_CHECKED weft_status weft_entries_load(weft_context *ctx, const weft_named_tensor *tensors,
                                                    size_t count, weft_safetensors *file, const char *what);

/* The entries of a module: one for each parameter and buffer, by its name from the root on. *entries is to be
 * freed with weft_entries_free. */
WEFT_API WEFT_CHECKED weft_status weft_module_entries(weft_module *m, weft_entry **entries, size_t *count);

/* Writes all parameters and buffers of m to a safetensors file. */
WEFT_API WEFT_CHECKED weft_status weft_module_save(weft_module *m, const char *path);

/* Reads them back, strictly as weft_entries_load. */
WEFT_API WEFT_CHECKED weft_status weft_module_load(weft_module *m, const char *path);
WEFT_API WEFT_CHECKED weft_status weft_module_load_from(weft_module *m, weft_safetensors *file);

/* The same, but that f32 entries are rounded to nearest even for parameters of bf16: a trained network that
 * is only used takes half the memory. */
WEFT_API WEFT_CHECKED weft_status weft_module_load_rounded(weft_module *m, weft_safetensors *file);

#ifdef __cplusplus
}
#endif
#endif
