/* Recurrent layers: RNN, LSTM and GRU. The order of gates and the names and meaning of parameters are
 * PyTorch's, so you can load its weights. */
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
    bool time_first; /* x (T, B, in) -> (T, B, ...), which avoids copies */
    double dropout;  /* between layers */
    weft_dtype dtype;
} weft_recurrent_layer_options;

/* x (B, T, in) -> h of all steps of the last layer (B, T, directions * hidden), the backward direction
 * last.
 *
 * Parameters of layer k, uniform in +-1/sqrt(hidden):
 * - weight_ih_lk (gates * hidden, inputs)
 * - weight_hh_lk (gates * hidden, hidden)
 * - bias_ih_lk, bias_hh_lk (gates * hidden)
 * - the same with the suffix "_reverse" for the backward direction
 *
 * Gates: LSTM input, forget, cell, output; GRU reset, update, new. */
WEFT_API weft_module *weft_nn_lstm(weft_context *ctx, int64_t in, int64_t hidden,
                                   const weft_recurrent_layer_options *options);
WEFT_API weft_module *weft_nn_gru(weft_context *ctx, int64_t in, int64_t hidden,
                                  const weft_recurrent_layer_options *options);
/* h' = tanh or relu of the sum. */
WEFT_API weft_module *weft_nn_rnn(weft_context *ctx, int64_t in, int64_t hidden, bool relu,
                                  const weft_recurrent_layer_options *options);

/* One step: x (B, in) -> h (B, hidden), from the states that weft_forward_from receives. Parameters:
 * weight_ih, weight_hh, bias_ih, bias_hh. The options layers, bidirectional and dropout do not apply. */
WEFT_API weft_module *weft_nn_lstm_cell(weft_context *ctx, int64_t in, int64_t hidden,
                                        const weft_recurrent_layer_options *options);
WEFT_API weft_module *weft_nn_gru_cell(weft_context *ctx, int64_t in, int64_t hidden,
                                       const weft_recurrent_layer_options *options);
WEFT_API weft_module *weft_nn_rnn_cell(weft_context *ctx, int64_t in, int64_t hidden, bool relu,
                                       const weft_recurrent_layer_options *options);

/* States of all layers and directions (layers * directions, B, hidden). The states of layer k begin at
 * index k times directions. States of a cell are (B, hidden). Only an LSTM has c. */
typedef struct weft_states {
    weft_tensor *h, *c;
} weft_states;

/* weft_forward of a recurrent layer, cell or language model that starts from `states` (NULL: 0) and
 * replaces them with the last states.
 * - Truncated backpropagation: call weft_detach on the states before the next call.
 * - lengths: the number of steps of each of the B sequences, 1 to T; NULL: T for all.
 * - Past the end of a sequence, outputs are 0 and the state no longer changes. The backward direction
 *   starts at the end of the sequence. This is as with PyTorch's packed sequences. */
WEFT_API weft_tensor *weft_forward_from(weft_module *m, weft_tensor *x, weft_states *states,
                                        const int64_t *lengths);
WEFT_API weft_tensor *weft_forward_from_at(const char *where, weft_module *m, weft_tensor *x,
                                           weft_states *states, const int64_t *lengths);
#define weft_forward_from(...) weft_forward_from_at(WEFT_HERE, __VA_ARGS__)

/* Writes the shape of the states of a layer, cell or language model for B sequences. Returns their rank, or
 * 0 for another module. */
WEFT_API int weft_states_shape(const weft_module *m, int64_t batch, int64_t shape[3]);
/* True if m's states include c. */
WEFT_API bool weft_states_have_c(const weft_module *m);

typedef struct weft_recurrent_lm_options {
    weft_recurrent_kind kind;
    int64_t vocab;     /* must be set */
    int64_t layers;    /* must be set, like width */
    int64_t width;     /* width of the states */
    int64_t embedding; /* width of the token table; 0: as width */
    double dropout;    /* of the table's rows, between layers and before the head */
    bool tied;         /* the head is the token table, without a bias; embedding is then width */
    weft_dtype dtype;
    int64_t streams; /* number of sequences that continue from one training batch to the next (truncated
                        backpropagation). Buffers keep the last states for the next pass. 0: every sequence
                        starts with zeros, as in evaluation */
} weft_recurrent_lm_options;

/* A language model: token table, recurrent layers, linear head. tokens (B, T) -> logits (B, T, vocab).
 * Children: embedding, rnn, head (unless tied). Initial values are as in PyTorch's layers; a tied table is
 * uniform in +-0.1. */
WEFT_API weft_module *weft_nn_recurrent_lm(weft_context *ctx, const weft_recurrent_lm_options *options);

/* Sets the states that a language model keeps between batches to 0. Call it where the streams start again. */
WEFT_API WEFT_CHECKED weft_status weft_streams_restart(weft_module *m);

#ifdef __cplusplus
}
#endif
#endif
