/* Recurrent layers: RNN, LSTM and GRU, with the order of gates, the names of parameters and the meaning that
 * PyTorch's have, so that its weights fit. */
#ifndef WEFT_RECURRENT_H
#define WEFT_RECURRENT_H

#include <weft/nn.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct weft_recurrent_layer_options {
    int64_t layers; /* 0: 1 */
    bool bidirectional;
    bool no_bias;
    bool time_first; /* x (T, B, in) -> (T, B, ...), which spares copies */
    double dropout;  /* of what goes from layer to layer */
    weft_dtype dtype;
} weft_recurrent_layer_options;

/* x (B, T, in) -> h of all steps of the last layer (B, T, directions * hidden), backward direction last.
 * Parameters of layer k: weight_ih_lk (gates * hidden, inputs), weight_hh_lk (gates * hidden, hidden),
 * bias_ih_lk, bias_hh_lk (gates * hidden), with "_reverse" behind for the backward direction; uniform in
 * +-1/sqrt(hidden). Gates: LSTM input, forget, cell, output; GRU reset, update, new. */
WEFT_API weft_module *weft_lstm(weft_context *ctx, int64_t in, int64_t hidden,
                                const weft_recurrent_layer_options *options);
WEFT_API weft_module *weft_gru(weft_context *ctx, int64_t in, int64_t hidden,
                               const weft_recurrent_layer_options *options);
/* h' = tanh, or relu, of the sum. */
WEFT_API weft_module *weft_rnn(weft_context *ctx, int64_t in, int64_t hidden, bool relu,
                               const weft_recurrent_layer_options *options);

/* One step: x (B, in) -> h (B, hidden), from the states given to weft_forward_from. Parameters: weight_ih,
 * weight_hh, bias_ih, bias_hh. Of the options, layers, directions and dropout do not apply. */
WEFT_API weft_module *weft_lstm_cell(weft_context *ctx, int64_t in, int64_t hidden,
                                     const weft_recurrent_layer_options *options);
WEFT_API weft_module *weft_gru_cell(weft_context *ctx, int64_t in, int64_t hidden,
                                    const weft_recurrent_layer_options *options);
WEFT_API weft_module *weft_rnn_cell(weft_context *ctx, int64_t in, int64_t hidden, bool relu,
                                    const weft_recurrent_layer_options *options);

/* States of all layers and directions (layers * directions, B, hidden), those of layer k at directions * k;
 * of a cell (B, hidden). c: of an LSTM alone. */
typedef struct weft_states {
    weft_tensor *h, *c;
} weft_states;

/* weft_forward of a recurrent layer, cell or language model, from the states given (NULL: 0) to the last
 * ones, which replace them. Truncated backpropagation: weft_detach of those that begin the next stretch.
 * lengths: how many steps each of the B sequences has, 1 to T; NULL: all T. Behind its length a sequence's
 * results are 0, its states those of its last step, and the backward direction begins there, as with
 * PyTorch's packed sequences. */
WEFT_API weft_tensor *weft_forward_from(weft_module *m, weft_tensor *x, weft_states *states,
                                        const int64_t *lengths);
WEFT_API weft_tensor *weft_forward_from_at(const char *where, weft_module *m, weft_tensor *x,
                                           weft_states *states, const int64_t *lengths);
#define weft_forward_from(...) weft_forward_from_at(WEFT_HERE, __VA_ARGS__)

/* Writes the shape of a layer's, cell's or language model's states for B sequences; its rank, or 0 for
 * another module. */
WEFT_API int weft_states_shape(const weft_module *m, int64_t batch, int64_t shape[3]);
/* Does it have c as well? */
WEFT_API bool weft_states_have_c(const weft_module *m);

typedef struct weft_recurrent_lm_options {
    weft_recurrent_kind kind;
    int64_t vocab;     /* must be set */
    int64_t layers;    /* must be set, as width */
    int64_t width;     /* of the states */
    int64_t embedding; /* width of the token table; 0: as the states */
    double dropout;    /* of the table's rows, between layers and before the head */
    bool tied;         /* the head is the token table, without a bias; embedding is then width */
    weft_dtype dtype;
    int64_t streams; /* so many sequences go on from one batch of training to the next (truncated
                      * backpropagation): the last states are kept in buffers, which begin the next
                      * pass; 0: every sequence begins with zeros, as in evaluation */
} weft_recurrent_lm_options;

/* A language model: token table, recurrent layers, linear head. tokens (B, T) -> logits (B, T, vocab).
 * Children: embedding, rnn, head (not where tied). Initialised as PyTorch's layers are, a tied table uniform
 * in +-0.1. */
WEFT_API weft_module *weft_recurrent_lm(weft_context *ctx, const weft_recurrent_lm_options *options);

/* The states that a language model keeps from batch to batch become 0: where its streams begin anew. */
WEFT_API WEFT_CHECKED weft_status weft_streams_restart(weft_module *m);

#ifdef __cplusplus
}
#endif
#endif
