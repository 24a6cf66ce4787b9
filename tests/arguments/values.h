/* Valid values for the calls of test_arguments. There is one function for each type, and make_calls.py
 * chooses it by type and name. The values of a call are made for this call, in a context of their own.
 * good_end frees them after the call. Files are in a temporary folder, which is the working folder;
 * good_files writes them once. Must not know: which function is called. Read next: test_arguments.c. */
#ifndef WEFT_TESTS_ARGUMENTS_VALUES_H
#define WEFT_TESTS_ARGUMENTS_VALUES_H

#include <stdio.h>
#include <unistd.h>

#include <weft/weft.h>

/* Ends the process if a value cannot be made. */
#define MUST(call)                                                                                           \
    do {                                                                                                     \
        if ((call) != WEFT_OK) {                                                                             \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, weft_last_error(NULL));                       \
            _exit(3);                                                                                        \
        }                                                                                                    \
    } while (0)

enum { TEXT_SIZE = 65536, MOST = 256 << 20 /* the largest allocation of a context, in bytes */ };

/* ---- lifetime of the values ---- */
void good_files(void);
void good_end(void);    /* frees all values below */
void good_forget(void); /* the call destroyed some values: they stay until the process ends */

/* ---- the caller's memory ---- */
void *good_zeros(size_t bytes);
void *good_place(void); /* for results: a pointer that is NULL */
void *good_bytes(void);
char *good_text(void); /* TEXT_SIZE bytes */
int *good_order(void);
int32_t *good_ids(void);
int64_t *good_shape(void);
int64_t *good_shape_of(int64_t a, int64_t b, int64_t c, int64_t d);
size_t *good_count(void);
uint64_t *good_steps(void);
double *good_number(void);
float *good_logits(void);
bool *good_flag(void);
weft_array *good_array(void);
weft_array *good_labels(void);

/* ---- tensors: f32 (2, 2, 4, 4) unless the name says otherwise ---- */
weft_context *good_context(void);
weft_scope *good_scope(void);
weft_tensor *good_tensor(void);
weft_tensor *good_tensor_of(int rank, int64_t a, int64_t b, int64_t c, int64_t d);
weft_tensor *good_vector(int64_t n);
weft_tensor *good_index(int64_t n);
weft_tensor *good_integers(int rank, int64_t a, int64_t b, int64_t c, int64_t d);
weft_tensor *good_mask(void);
weft_tensor *good_packed(void);
weft_tensor *good_complex(void);
weft_tensor *good_variable(void);
weft_tensor *good_scalar(void);
weft_tensor *good_loss(void);
weft_tensor **good_tensors(void); /* two */
weft_tensor **good_variables(void);
weft_tensor **good_values(void); /* of the variables' shape, not evaluated */
weft_program *good_program(void);
weft_profile *good_profile(void);
weft_defined_op *good_defined_op(void);

/* ---- modules: a linear layer of 4 unless the name says otherwise ---- */
weft_module *good_module(void);
weft_module *good_other_module(void);
weft_module *good_fresh_module(void); /* without parameters, unused */
weft_module *good_wide_module(void);  /* a linear layer of 32 inputs, unused */
weft_packed_rows *good_packed_rows(void);
weft_module *good_gpt(void);
weft_encoder_options *good_encoder_options(void);
weft_module *good_encoder(void);
weft_module *good_lstm(void);
weft_module *good_recurrent_lm(void);
weft_module **good_modules(void);
weft_optimizer *good_optimizer(void);
weft_optimizer *good_other_optimizer(void);
weft_optimizer **good_optimizers(void);
weft_decode_state *good_decode_state(void);
weft_decode_state *const *good_decode_states(void);
weft_program *good_held(void); /* a step of good_optimizer */

/* ---- data and files ---- */
weft_loader *good_loader(void);
weft_batch *good_batch(void);
void *good_file(const char *path);
size_t good_file_size(const char *path);
weft_tokens *good_tokens(void);
weft_image_folder *good_images(void); /* in a tar file; empty without libarchive */
weft_tokenizer *good_tokenizer(void);
const char *const *good_text_paths(void); /* one */
weft_chat_template *good_chat_template(void);
weft_chats *good_chats(void);
weft_grammar *good_grammar(void);
weft_chats *good_pairs(void);
weft_loader *good_pair_loader(void);
weft_decoder *good_decoder(void);
weft_module *good_published(void);
weft_module *good_adapted(void); /* the same with adapters */
weft_corpus *good_corpus(void);
weft_safetensors *good_safetensors(const char *path);
weft_checkpoint *good_checkpoint(void);
weft_run_lock *good_run_lock(void);
weft_run *good_run(const char *folder);
/* Makes the run folders trained, pixels and spoken. */
void good_run_files(void);
uint8_t *good_pixels(void);
const char *const *good_cells(void);
weft_entry *good_entries(void);
weft_entry *good_made_entries(void); /* to be freed by weft_entries_free */
weft_named_tensor *good_named_tensors(void);
weft_metadata *good_metadata(void);
weft_checkpoint_state *good_checkpoint_state(void);

/* ---- options with values other than 0 ---- */
weft_open_options *good_open_options(void);
weft_op_options *good_op_options(void);
weft_json_options *good_json_options(void); /* two */
weft_pool_options *good_pool_options(void);
weft_interpolate_options *good_interpolate_options(void);
weft_loader_options *good_loader_options(void);
weft_fit_options *good_fit_options(void);
weft_cnn_options *good_cnn_options(void);
weft_resnet_options *good_resnet_options(void);
weft_gpt_options *good_gpt_options(void);
weft_recurrent_lm_options *good_recurrent_lm_options(void);
weft_sgd_options *good_sgd_options(void);
weft_rmsprop_options *good_rmsprop_options(void);
weft_adam_options *good_adam_options(void);
weft_schedule *good_schedule(void);
weft_group_options *good_group_options(void);

/* ---- callbacks ---- */
weft_tensor *good_weft_forward_fn(weft_module *m, weft_tensor *x);
weft_tensor *good_weft_loss_graph_fn(void *user);
weft_status good_weft_text_fn(void *user, const char *bytes, size_t count);
weft_status good_weft_generated_fn(void *user, const weft_generated *text);
void good_call(void *user);

#endif
