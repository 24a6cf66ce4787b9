#!/usr/bin/env python3
"""Writes the calls that test_arguments makes. Each function of include/weft/*.h is called with NULL, 0, -1 and extreme
values for each parameter, and for each field of its options structs. The other parameters get a valid value. The tables
below choose this value by function and parameter, by type and name, or by type.

If the tables lack a valid value for a new function, the generator stops and names the type, or the test fails and names
the function. Must not know: what the functions do. Read next: values.h, test_arguments.c.

Use: make_calls.py OUTPUT"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))

import c_text  # noqa: E402

# Functions whose valid call fails, for a reason that does not depend on arguments.
CANNOT_SUCCEED = {
    "weft_fit_losses": "only a callback of weft_fit has a state",
    "weft_module_assign": "only a forward function may assign",
    "weft_image_member_name": "tar files need libarchive, which is optional",
}

# Functions that return an answer and cannot fail: NULL means that there is no answer.
ASKING = ["weft_keep", "weft_shape", "weft_context_of", "weft_optimizer_processes", "weft_checkpoint_model", "weft_checkpoint_optimizer",
          "weft_checkpoint_state_of", "weft_safetensors_metadata", "weft_module_context", "weft_module_user",
          "weft_tokenizer_token", "weft_tokenizer_kind_name", "weft_corpus_ids", "weft_corpus_tokens", "weft_corpus_tokenizer",
          "weft_profile_entries", "weft_chat_template_source", "weft_chats_tokens", "weft_run_class_name", "weft_run_column_name", "weft_run_module", "weft_run_tokenizer"]

# How the test uses a result before it is freed.
USES = {"weft_loader *": "use_loader", "weft_program *": "use_program"}

# Arguments after the named parameters of a function with "...".
VARIADIC = {"weft_nn_sequential": "good_module(), NULL"}

# Calls that are left out: they would run for ever, or would give a wrong size of a buffer.
LEFT_OUT = {
    "weft_fit.options.steps = UINT64_MAX": "trains so many steps",
    "weft_fit.options.accumulate = INT_MAX": "takes so many batches a step",
    "weft_loader_new.options.accumulate = INT_MAX": "counts the targets of so many batches",
    "weft_loader_tokens.options.accumulate = INT_MAX": "counts the targets of so many batches",
    "weft_loader_mapped.options.accumulate = INT_MAX": "counts the targets of so many batches",
    "weft_loader_open.options.accumulate = INT_MAX": "counts the targets of so many batches",
    "weft_optimizer_run_many.steps = UINT64_MAX": "trains so many steps",
    "weft_generate_many.count = SIZE_MAX": "has fewer options than are said",
    'weft_chat_template_new.source = ""': "has fewer bytes than are said",
    'weft_chat_template_render.conversation = ""': "has fewer bytes than are said",
    'weft_chat_template_answers.conversation = ""': "has fewer bytes than are said",
    'weft_grammar_json_schema.schema = ""': "has fewer bytes than are said",
    'weft_tokenizer_build.text = ""': "has fewer bytes than are said",
    'weft_tokenizer_encode.text = ""': "has fewer bytes than are said",
    'weft_tokenizer_encode_special.text = ""': "has fewer bytes than are said",
    'weft_tokenizer_encode_pair.text = ""': "has fewer bytes than are said",
    'weft_tokenizer_encode_pair.other = ""': "has fewer bytes than are said",
    'weft_tokenizer_encode_row.most = INT64_MAX': "says that there is so much room",
    'weft_tokenizer_id.token = ""': "has fewer bytes than are said",
    'weft_tokenizer_parse.json = ""': "has fewer bytes than are said",
}

EXTREMES = {
    "int": ["0", "-1", "INT_MAX", "INT_MIN"],
    "int32_t": ["0", "-1", "INT32_MAX", "INT32_MIN"],
    "int64_t": ["0", "-1", "INT64_MAX", "INT64_MIN"],
    "size_t": ["0", "SIZE_MAX"],
    "uint8_t": ["0", "UINT8_MAX"],
    "uint16_t": ["0", "UINT16_MAX"],
    "uint32_t": ["0", "UINT32_MAX"],
    "uint64_t": ["0", "UINT64_MAX"],
    "float": ["0", "-1", "FLT_MAX", "-FLT_MAX", "INFINITY", "NAN"],
    "double": ["0", "-1", "DBL_MAX", "-DBL_MAX", "INFINITY", "NAN"],
    "char": ["0", "-1", "CHAR_MAX"],
    "bool": ["false", "true"],
}

# Valid values by type. Pointers to other structs of the headers get a struct of zeros.
BY_TYPE = {
    "int": "1", "int32_t": "1", "int64_t": "1", "size_t": "1", "uint64_t": "1", "uint32_t": "1",
    "uint16_t": "1", "float": "0.5f", "double": "0.5", "bool": "false",
    "void *": "good_bytes()", "char *": '"name"', "char **": "good_place()",
    "int *": "good_order()", "int32_t *": "good_ids()", "int64_t *": "good_shape()", "size_t *": "good_count()",
    "uint64_t *": "good_steps()", "double *": "good_number()", "float *": "good_logits()", "bool *": "good_flag()",
    "weft_context *": "good_context()", "weft_tensor *": "good_tensor()", "weft_tensor **": "good_tensors()",
    "weft_module *": "good_module()", "weft_module **": "good_modules()",
    "weft_optimizer *": "good_optimizer()", "weft_optimizer **": "good_optimizers()",
    "weft_process_group *": "NULL", "weft_process_group **": "&(weft_process_group *){NULL}",
    "weft_loader *": "good_loader()", "weft_scope *": "good_scope()", "weft_program *": "good_program()",
    "weft_defined_op *": "good_defined_op()", "weft_profile *": "good_profile()", "weft_tokens *": "good_tokens()",
    "weft_image_shards *": "good_images()->shards", "weft_image_member *": "good_images()->members",
    "weft_decode_state *": "good_decode_state()", "weft_safetensors *": 'good_safetensors("model.safetensors")',
    "weft_checkpoint *": "good_checkpoint()", "weft_run_lock *": "good_run_lock()", "weft_run *": 'good_run("trained")', "uint8_t *": "good_pixels()",
    "weft_gradcheck_options *": "good_zeros(sizeof(weft_gradcheck_options))",
    "weft_generate_options *": "good_zeros(sizeof(weft_generate_options))",
    "weft_tokenizer *": "good_tokenizer()", "weft_chat_template *": "good_chat_template()", "weft_chats *": "good_chats()", "weft_grammar *": "good_grammar()", "weft_decoder *": "good_decoder()", "weft_corpus *": "good_corpus()",
    "weft_array *": "good_array()", "weft_batch *": "good_batch()", "weft_entry *": "good_entries()",
    "weft_named_tensor *": "good_named_tensors()", "weft_metadata *": "good_metadata()",
    "weft_json_options *": "good_json_options()", "weft_op_options *": "good_op_options()",
    "weft_pool_options *": "good_pool_options()",
    "weft_interpolate_options *": "good_interpolate_options()", "weft_loader_options *": "good_loader_options()",
    "weft_fit_options *": "good_fit_options()", "weft_cnn_options *": "good_cnn_options()",
    "weft_resnet_options *": "good_resnet_options()", "weft_gpt_options *": "good_gpt_options()",
    "weft_encoder_options *": "good_encoder_options()",
    "weft_recurrent_lm_options *": "good_recurrent_lm_options()", "weft_sgd_options *": "good_sgd_options()",
    "weft_rmsprop_options *": "good_rmsprop_options()", "weft_adam_options *": "good_adam_options()",
    "weft_schedule *": "good_schedule()", "weft_group_options *": "good_group_options()",
    "weft_checkpoint_state *": "good_checkpoint_state()", "weft_open_options *": "good_open_options()",
}

# Valid values by type and name.
BY_NAME = {
    "char *where": '"caller.c:1"', "char *path": '"out"', "char *run": '"run"', "char *buffer": "good_text()",
    "char *dir": '"run/checkpoints/step-1"', "char *folder": '"gpt2"',
    "int count": "2", "int64_t count": "2", "size_t count": "2", "size_t n": "1", "int rank": "2", "size_t bytes": "16",
    "size_t capacity": "8", "size_t size": "TEXT_SIZE", "int axis": "1", "int dim": "1", "int dim0": "0",
    "weft_tensor *bias": "good_vector(2)", "weft_tensor *gamma": "good_vector(2)",
    "weft_tensor *beta": "good_vector(2)",
    "weft_tensor *mask": "good_mask()", "weft_tensor *condition": "good_mask()", "weft_tensor *loss": "good_loss()",
    "weft_tensor *position": "good_index(4)", "weft_tensor *index": "good_index(2)", "size_t *bytes": "good_count()",
    "int64_t *order": "good_order()", "weft_array *targets": "good_labels()", "weft_array *labels": "good_labels()",
    "weft_reduction reduction": "WEFT_MEAN", "weft_loader *loader": "good_loader()",
    "int64_t *lengths": "NULL", "void *user": "NULL", "size_t max_bytes": "0",
    "char *devices": '"cpu"', "int64_t first": "0",
    "char *text": "good_text()", "char *out": "good_text()", "weft_tensor *scalar": "good_scalar()",
    "weft_tensor **variables": "good_variables()", "weft_tensor **values": "good_values()",
    "weft_tensor **outputs": "good_values()", "weft_program *program": "good_program()",
    "int64_t in": "4", "int64_t out": "4",
}

# Valid values by function and parameter.
BY_PARAMETER = {
    "weft_dtype_parse.name": '"f32"', "weft_activation_parse.name": '"relu"', "weft_schedule_parse.name": '"cosine"',
    "weft_tokenizer_kind_parse.name": '"byte"', "weft_device_info.i": "0",
    "weft_nn_activation.kind": "WEFT_RELU",
    "weft_published_is.folder": '"published"', "weft_published_new.folder": '"published"',
    "weft_published_load.folder": '"published"', "weft_published_load.model": "good_published()",
    "weft_published_save.model": "good_published()", "weft_published_save.from": '"published"',
    "weft_published_save_lora.model": "good_adapted()", "weft_published_save_lora.from": '"published"',
    "weft_published_save_lora.to": '"adapters"', "weft_published_save_lora.base": '"published"', "weft_gpt_merge_lora.gpt": "good_published()",
    "weft_published_save.to": '"saved"', "weft_published_save.dtype": "WEFT_F32",
    "weft_published_save_gguf.model": "good_published()", "weft_published_save_gguf.from": '"published"',
    "weft_published_save_gguf_lora.model": "good_adapted()", "weft_published_save_gguf_lora.from": '"published"',
    "weft_published_save_gguf_lora.path": '"adapters.gguf"',
    "weft_published_save_gguf.path": '"saved.gguf"', "weft_published_save_gguf.format": '"q8_0"',
    "weft_published_quantize.from": '"published"', "weft_published_quantize.path": '"saved.gguf"',
    "weft_published_quantize.format": '"q4_k"',
    "weft_published_tokenizer.folder": '"published"', "weft_published_chat.folder": '"published"',
    "weft_published_new.options": "good_zeros(sizeof(weft_published_options))",
    "weft_run_predict_pixels.run": 'good_run("pixels")', "weft_run_generate.run": 'good_run("spoken")',
    "weft_run_generate_many.run": 'good_run("spoken")',
    "weft_run_predict_cells.cells": "good_cells()", "weft_generate.tokenizer": "NULL", "weft_run_open.folder": '"trained"', "weft_run_open_checkpoint.folder": '"trained"',
    "weft_run_open_trusted.folder": '"trained"', "weft_run_open_trusted.checkpoint": '"last"',
    "weft_run_open_checkpoint.checkpoint": '"last"', "weft_run_predict_file.path": '"data.csv"',
    "weft_read_file.path": '"text.txt"', "weft_read_idx.path": '"data.idx"', "weft_read_cifar10.path": '"data.bin"',
    "weft_read_cifar10.labels": "good_zeros(sizeof(weft_array))", "weft_read_npy.path": '"data.npy"',
    "weft_read_image_folder.path": '"images"', "weft_read_csv.path": '"data.csv"',
    "weft_read_json_matrix.path": '"data.json"', "weft_read_json_matrices.path": '"data.json"',
    "weft_read_json_matrices.out": "good_zeros(2 * sizeof(weft_array))", "weft_make_folder.path": '"folder"',
    "weft_module_evaluate_all.targets": "good_zeros(sizeof(weft_array))", "weft_score_numbers.targets": "good_array()",
    "weft_score_weighted_numbers.targets": "good_array()",
    "weft_batch_loss.prediction": "good_tensor_of(2, 2, 4, 0, 0)",
    "weft_safetensors_open.path": '"model.safetensors"',
    "weft_safetensors_open_memory.data": 'good_file("model.safetensors")',
    "weft_safetensors_open_memory.bytes": 'good_file_size("model.safetensors")',
    "weft_safetensors_metadata.file": 'good_safetensors("optimizer.safetensors")',
    "weft_optimizer_load_from.file": 'good_safetensors("optimizer.safetensors")',
    "weft_safetensors_find.name": '"weight"', "weft_loader_open.inputs": '"data.npy"',
    "weft_loader_open.targets": '"labels.npy"', "weft_tokens_open.path": '"tokens.bin"',
    "weft_loader_mapped.count": "8", "weft_tokenizer_encode_pair.other": "good_text()", "weft_tokenizer_encode_pair.bytes": "3",
    "weft_tokenizer_encode_pair.other_bytes": "3", "weft_tokenizer_pattern_parse.name": '"gpt2"', "weft_tokenizer_train.paths": "good_text_paths()",
    "weft_tokenizer_encode_row.text": "good_text()", "weft_tokenizer_encode_row.other": "good_text()", "weft_tokenizer_encode_row.most": "8",
    "weft_tokenizer_train.count": "1", "weft_tokenizer_encode.bytes": "8", "weft_tokenizer_encode_special.bytes": "8",
    "weft_chats_read.path": '"chats.jsonl"', "weft_chats_pack.context": "4", "weft_chats_tokens.i": "0",
    "weft_chats_pack.n": "1", "weft_chats_pack.chosen": "(int64_t[]){0}",
    "weft_grammar_json_schema.schema": r'"{\"type\": \"string\"}"', "weft_grammar_json_schema.bytes": "18",
    "weft_preferences_is.path": '"pairs.jsonl"', "weft_preferences_read.path": '"pairs.jsonl"',
    "weft_preferences_pack.pairs": "good_pairs()", "weft_preferences_pack.n": "1",
    "weft_preferences_pack.chosen": "(int64_t[]){0}", "weft_preferences_pack.context": "24",
    "weft_preferences_reference.gpt": "good_gpt()", "weft_preferences_reference.loader": "good_pair_loader()",
    "weft_preferences_evaluate.gpt": "good_gpt()", "weft_preferences_evaluate.loader": "good_pair_loader()",
    "weft_chat_template_new.source": "good_text()", "weft_chat_template_load.folder": '"chat"',
    **{f"weft_chat_template_{action}.{name}": value for action in ("render", "answers")
       for name, value in (("conversation", '"[]"'), ("bytes", "2"))},
    "weft_tokenizer_id.token": '"a"', "weft_tokenizer_id.bytes": "1", "weft_tokenizer_load.path": '"tokenizer.json"',
    "weft_tokenizer_parse.json": 'good_file("tokenizer.json")',
    "weft_tokenizer_parse.bytes": 'good_file_size("tokenizer.json")', "weft_corpus_open.path": '"text.txt"',
    "weft_encoder_pool.states": "good_tensor_of(3, 2, 2, 4, 0)",
    "weft_encoder_pool.mask": "weft_cast(good_integers(2, 2, 2, 0, 0), WEFT_BOOL)",
    "weft_encoder_logits.encoder": "good_encoder()", "weft_encoder_logits.states": "good_tensor_of(3, 2, 2, 4, 0)",
    "weft_module_freeze_matching.pattern": '"*"',
    "weft_module_pack.m": "good_wide_module()", "weft_module_pack.parts": "good_packed_rows()", "weft_module_pack.count": "1",
    "weft_packed_name.format": "WEFT_Q8_0", "weft_packed_bytes.format": "WEFT_Q8_0", "weft_packed_bytes.k": "32",
    **{f"{name}{at}.{parameter}": value for name in ("weft_unpack", "weft_matmul_packed") for at in ("", "_at")
       for parameter, value in (("packed", "good_packed()"), ("format", "WEFT_Q8_0"))},
    **{f"weft_matmul_packed{at}.x": "good_tensor_of(2, 2, 32, 0, 0)" for at in ("", "_at")},
    "weft_gpt_lora.gpt": "good_gpt()", "weft_gpt_lora.options": "good_zeros(sizeof(weft_lora_options))",
    "weft_gpt_load.gpt": "good_gpt()", "weft_gpt_load.path": '"gpt.safetensors"', "weft_gpt_save.gpt": "good_gpt()",
    "weft_gpt_file_vocab.path": '"gpt.safetensors"', "weft_decode_state_new.gpt": "good_gpt()", "weft_gpt_cache_new.gpt": "good_gpt()", "weft_decode_state_new_sized.gpt": "good_gpt()",
    "weft_gpt_feed_all.count": "1", "weft_gpt_feed_many.count": "1",
    "weft_gpt_feed_many.caches": "good_decode_states()", "weft_gpt_feed_many.tokens": "(int32_t[]){0}",
    "weft_generate_many.count": "1", "weft_run_generate_many.count": "1", "weft_generate_many.gpt": "good_gpt()", "weft_generate_many.tokenizer": "NULL",
    "weft_module_load.path": '"model.safetensors"', "weft_module_parameter.m": "good_fresh_module()",
    "weft_module_buffer.m": "good_fresh_module()", "weft_module_child.m": "good_fresh_module()",
    "weft_module_child.child": "good_other_module()",
    "weft_module_user.m": "good_fresh_module()", "weft_parameter.name": '"weight"',
    "weft_parameter_find.name": '"weight"',
    "weft_module_copy.to": "good_other_module()", "weft_optimizer_copy.to": "good_other_optimizer()",
    "weft_optimizer_accumulate.index": "0", "weft_optimizer_accumulate.count": "2", "weft_optimizer_batch_number.index": "0",
    "weft_optimizer_batch_number.count": "2",
    "weft_optimizer_update.opt": "good_optimizers()[0]", "weft_optimizer_run.program": "good_held()",
    "weft_optimizer_run_many.program": "good_held()", "weft_forward_from.m": "good_lstm()",
    "weft_forward_from.x": "good_tensor_of(3, 2, 2, 4, 0)", "weft_states_shape.m": "good_lstm()",
    "weft_states_have_c.m": "good_lstm()", "weft_streams_restart.m": "good_recurrent_lm()",
    "weft_entries_free.entries": "good_made_entries()", "weft_read.bytes": "256", "weft_write.bytes": "256",
    "weft_not.x": "good_integers(4, 2, 2, 4, 4)", "weft_reshape.shape": "good_shape_of(8, 8, 0, 0)",
    "weft_expand.rank": "4", "weft_expand.shape": "good_shape_of(2, 2, 4, 4)",
    "weft_squeeze.x": "good_tensor_of(3, 2, 1, 4, 0)", "weft_pad_with.before": "good_shape_of(1, 1, 1, 1)",
    "weft_pad_with.after": "good_shape_of(1, 1, 1, 1)", "weft_fold.extent": "5",
    "weft_conv1d.x": "good_tensor_of(3, 2, 2, 4, 0)", "weft_conv1d.weight": "good_tensor_of(3, 2, 2, 2, 0)",
    "weft_conv_transpose1d.x": "good_tensor_of(3, 2, 2, 4, 0)",
    "weft_conv_transpose1d.weight": "good_tensor_of(3, 2, 2, 2, 0)", "weft_imag.x": "good_complex()",
    "weft_angle.x": "good_complex()", "weft_view_as_real.x": "good_complex()",
    "weft_view_as_complex.x": "good_tensor_of(2, 2, 2, 0, 0)", "weft_einsum.equation": '"abij,abjk->abik"',
    "weft_update.offset": "good_integers(0, 0, 0, 0, 0)", "weft_slice.start": "good_shape_of(0, 0, 0, 0)",
    "weft_slice.step": "good_shape_of(1, 1, 1, 1)", "weft_take_along_axis.index": "good_integers(4, 2, 2, 4, 4)",
    "weft_layer_norm.gamma": "good_vector(4)", "weft_layer_norm.beta": "good_vector(4)",
    "weft_rms_norm.gamma": "good_vector(4)", "weft_recurrent.x": "good_tensor_of(3, 2, 2, 4, 0)",
    "weft_recurrent.weight": "good_tensor_of(2, 4, 4, 0, 0)",
    "weft_cross_entropy.target": "good_integers(3, 2, 2, 4, 0)",
    "weft_sequence_log_probs.target": "good_integers(4, 2, 2, 1, 4)",
    "weft_dpo_loss.log_probs": "good_tensor_of(2, 4, 2, 0, 0)", "weft_dpo_loss.reference": "good_tensor_of(2, 4, 2, 0, 0)",
    **{f"weft_{op}.{operand}": "good_integers(4, 2, 2, 4, 4)"
       for op in ("and", "or", "xor", "shl", "shr") for operand in "ab"},
}


DECLARATION = re.compile(r"WEFT_API\s+(?:WEFT_CHECKED\s+)?([\w\s]+?[\s*]+)(weft_\w+)\s*\(([^;{}]*)\)\s*"
                         r"(?:WEFT_PRINTF\([^)]*\))?;")
STRUCT = re.compile(r"typedef struct (weft_\w+) \{(.*?)\} \1;", re.S)
ENUM = re.compile(r"typedef enum (weft_\w+) \{")
CALLBACK = re.compile(r"typedef [\w\s*]+\(\*(weft_\w+)\)")
DESTROYS = re.compile(r"_(free|close|release)$")


def plain(ctype):
    """Returns a type without const, in the form of the tables: "weft_tensor **"."""
    words = re.sub(r"\bconst\b|\bstruct\b", " ", ctype).replace("*", " * ").split()
    stars = "".join(word for word in words if word == "*")
    return " ".join(word for word in words if word != "*") + (" " + stars if stars else "")


class Parameter:
    """A parameter of a function or a field of a struct: its declaration, and the values to try."""

    def __init__(self, text):
        text = " ".join(text.split())
        self.callback = "(*" in text
        self.array = self.constant = False
        if self.callback:
            self.name = re.search(r"\(\*(\w+)\)", text)[1]
            self.declared, self.type = text, "callback"
            return
        match = re.match(r"(.*?)(\w+)((?:\[[^\]]*\])*)$", text)
        self.name, self.array = match[2], bool(match[3])
        self.constant = "const" in match[1]
        base = match[1] + "*" if self.array else match[1]
        self.type, self.declared = plain(base), base + self.name

    def is_pointer(self):
        return self.callback or self.type.endswith("*")


def split(text):
    """Splits a text at commas outside of brackets."""
    parts, depth, part = [], 0, ""
    for letter in text:
        depth += (letter in "([") - (letter in ")]")
        if letter == "," and depth == 0:
            parts.append(part)
            part = ""
        else:
            part += letter
    return [p for p in parts + [part] if p.strip() and p.strip() != "void"]


def fields_of(body):
    for line in body.split(";"):
        line = " ".join(line.split())
        if not line:
            continue
        if "(*" in line:
            yield Parameter(line)
            continue
        base = re.match(r"(?:const |struct )*\w+ ", line)[0]
        for name in split(line[len(base):]):
            yield Parameter(base + name)


class Headers:
    def __init__(self):
        text = ""
        for path in c_text.files("include/weft/*.h"):
            text += c_text.blank(c_text.read(path))
        self.functions = [(plain(m[1]), m[2], split(m[3])) for m in DECLARATION.finditer(text)]
        self.names = {name for _, name, _ in self.functions}
        if len(self.functions) != text.count("WEFT_API"):
            sys.exit(f"make_calls.py: {text.count('WEFT_API')} functions, but only {len(self.functions)} could be parsed")
        self.structs = {m[1]: list(fields_of(m[2])) for m in STRUCT.finditer(text)}
        self.enums = set(ENUM.findall(text))
        self.callbacks = set(CALLBACK.findall(text))
        self.frees = {}
        for _, name, parameters in self.functions:
            if DESTROYS.search(name):
                types = [Parameter(p).type for p in parameters]
                if types in ([types[-1]], ["weft_context *", types[-1]]):
                    self.frees[types[-1]] = (name, len(types))

    def extremes(self, ctype):
        if ctype in self.enums:
            return [f"({ctype}){value}" for value in ("0", "-1", "INT_MAX", "INT_MIN")]
        return EXTREMES.get(ctype)

    def fields(self, struct, path=""):
        """Yields (path, value) for each bad value of each field, also in nested structs."""
        for field in self.structs[struct]:
            at = path + field.name
            if field.callback or field.type in self.callbacks:
                yield at, "NULL"
            elif field.array and field.type[:-2] in EXTREMES:
                yield from ((f"{at}[0]", value) for value in EXTREMES[field.type[:-2]])
            elif field.array and field.type[:-2] in self.structs:
                yield from self.fields(field.type[:-2], at + "[0].")
            elif field.array:
                yield f"{at}[0]", "NULL"
            elif field.is_pointer():
                yield at, "NULL"
            elif field.type in self.structs:
                yield from self.fields(field.type, at + ".")
            else:
                values = self.extremes(field.type)
                if not values:
                    sys.exit(f"make_calls.py: {struct}.{at}: no values for the type {field.type}: add it to EXTREMES")
                yield from ((at, value) for value in values)


def without_at(headers, name):
    """Returns the name without the _at of a function that takes the caller's location."""
    short = name.removesuffix("_at")
    return short if short != name and short in headers.names else name


def valid(headers, function, p):
    key = without_at(headers, function)
    named = f"{p.type}{'' if p.type[-1] == '*' else ' '}{p.name}"
    for table, at in ((BY_PARAMETER, f"{key}.{p.name}"), (BY_NAME, named)):
        if at in table:
            return table[at]
    if p.type[:-2] in headers.structs and not p.constant:
        return f"good_zeros(sizeof({p.type[:-2]}))"  # a result
    if p.type in BY_TYPE:
        return BY_TYPE[p.type]
    if p.callback or p.type in headers.callbacks:
        return f"good_{p.type if p.type in headers.callbacks else p.name}"
    if p.type in headers.enums:
        return f"({p.type})0"
    if p.type.endswith(" *") and p.type[:-2] in {*headers.structs, *headers.enums}:
        return f"good_zeros(sizeof({p.type[:-2]}))"
    if p.type.endswith(" **"):
        return "good_place()"
    sys.exit(f"make_calls.py: {function}: no valid value for {p.name}, a {p.type}: add one to BY_TYPE, "
             "BY_NAME or BY_PARAMETER")


def bad_values(headers, function, p):
    """Yields (what, value or None, statement or None): the values of the parameter, then those of its target."""
    if p.is_pointer() or p.type in headers.callbacks:
        yield "NULL", "NULL", None
    else:
        values = headers.extremes(p.type)
        if not values:
            sys.exit(f"make_calls.py: {function}: no values for the type {p.type}: add it to EXTREMES")
        yield from ((value, value, None) for value in values)
    if p.callback or not p.type.endswith("*") or not p.constant:
        return
    if p.type == "char *":
        yield '""', '""', None
    if p.type.endswith("**") and p.type != "char **":
        yield f"{p.name}[0] = NULL", None, f"((void **)(uintptr_t){p.name})[0] = NULL;"
    if p.type[:-2] in EXTREMES and p.type not in ("char *", "bool *"):
        for value in EXTREMES[p.type[:-2]]:
            yield f"{p.name}[0] = {value}", None, f"if ({p.name}) (({p.type})(uintptr_t){p.name})[0] = {value};"
    if p.type[:-2] in headers.structs:
        for field, value in headers.fields(p.type[:-2]):
            yield f"{p.name}.{field} = {value}", None, f"(({p.type}){p.name})->{field} = {value};"


def check_of(name, result, parameters):
    checks = {"weft_status": "check_status", "weft_tensor *": "check_tensor", "weft_module *": "check_module",
              "weft_optimizer *": "check_optimizer"}
    if name in ASKING or (result == "weft_module *" and "weft_context *" not in (p.type for p in parameters)):
        return None
    if result in checks:
        return checks[result]
    return "check_pointer" if result.endswith("*") else None


def write_function(headers, out, result, name, texts):
    variadic = texts[-1].strip() == "..." if texts else False
    parameters = [Parameter(t) for t in texts[:-1] if t] if variadic else [Parameter(t) for t in texts]
    lines, rows, statements = [], [(0, "", "")], []
    for p in parameters:
        choices = []
        for what, value, statement in bad_values(headers, name, p):
            if name + "_at" in headers.names:
                break  # the same function without the location
            if f"{name}.{what if statement else p.name + ' = ' + what}" in LEFT_OUT:
                continue
            rows.append((len(rows), p.name, what if statement else f"{p.name} = {what}"))
            if value is not None:
                choices.append((rows[-1][0], value))
            else:
                statements.append(f"    if (which == {rows[-1][0]}) {statement}")
        picks = "".join(f"which == {i} ? {value} : " for i, value in choices)
        lines.append(f"    {p.declared} = {picks}{valid(headers, name, p)};")
    arguments = ", ".join([p.name for p in parameters] + ([VARIADIC[name]] if variadic else []))
    body = [f"static void call_{name}(int which) {{", "    (void)which;"] + lines + statements
    check = check_of(name, result, parameters)
    if check:
        declared = "const " + result if check == "check_pointer" else result
        body.append(f"    {declared}{'' if result.endswith('*') else ' '}result_ = ({name})({arguments});")
    else:
        body.append(f"    ({name})({arguments});")
    out.append("\n".join(body))
    return rows, parameters, check


def free_results(headers, out, name, parameters):
    """Returns code that uses and frees the results of a call, and frees outputs that it must have set to NULL."""
    if DESTROYS.search(name):
        return
    context = next((p.name for p in parameters if p.type == "weft_context *"), "NULL")
    for p in parameters:
        handle = p.type.endswith("**") and p.type != "weft_module **"
        made = p.type[:-1].strip() if handle else p.type
        if made not in headers.frees or not (handle or p.type[:-2] in headers.structs and not p.constant):
            continue
        free, count = headers.frees[made]
        value = f"*{p.name}" if handle else p.name
        if made in USES:
            out.append(f"    if ({p.name} && {value}) {USES[made]}({value});")
        out.append(f"    if ({p.name}) {free}({context + ', ' if count == 2 else ''}{value});")


def main():
    headers = Headers()
    known = {f"{name}.{Parameter(p).name}" for _, name, texts in headers.functions for p in texts if p.strip() != "..."}
    for key in BY_PARAMETER:
        if key not in known:
            sys.exit(f"make_calls.py: BY_PARAMETER: there is no {key}")
    out, table = ["/* Written by tests/arguments/make_calls.py: do not edit. */"], []
    for result, name, texts in headers.functions:
        rows, parameters, check = write_function(headers, out, result, name, texts)
        if check:
            out.append(f"    {check}(which, result_);")
        free_results(headers, out, name, parameters)
        out.append("}\n")
        cannot = 1 if without_at(headers, name) in CANNOT_SUCCEED else 0
        destroys = 1 if DESTROYS.search(name) else 0
        for which, parameter, what in rows:
            text = what.replace('"', '\\"')
            table.append(f'    {{call_{name}, "{name}", "{parameter}", "{text}", {which}, {cannot}, {destroys}}},')
    out.append("static const public_call calls[] = {")
    out += table + ["};", ""]
    pathlib.Path(sys.argv[1]).write_text("\n".join(out), encoding="utf-8")


if __name__ == "__main__":
    main()
