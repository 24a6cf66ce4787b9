#!/usr/bin/env python3
"""Writes a small published model into a folder, as transformers writes one: a Llama with random weights, and a
byte-level BPE tokenizer with a few merges. With --encoder, a BERT with three classes and a tokenizer of a few words. With
--like MODEL.json, a file of tests/unit/published/models or encoders, the model of that file. Needs no packages.

    make_published.py FOLDER [--encoder | --like MODEL.json]"""

import json
import pathlib
import random
import struct
import sys

TEMPLATE = ("{% for m in messages %}{{ m.role + ': ' + m.content + eos_token }}{% endfor %}"
            "{% if add_generation_prompt %}{{ 'assistant: ' }}{% endif %}")
WIDTH, HEADS, KV_HEADS, HEAD, HIDDEN, LAYERS = 32, 4, 2, 8, 48, 2


def byte_alphabet():
    """GPT-2's characters for the bytes 0 to 255."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    more = iter(range(256, 512))
    return [chr(b) if b in plain else chr(next(more)) for b in range(256)]


def tokenizer():
    letters = byte_alphabet()
    merges = [("t", "h"), ("th", "e"), (letters[32], "the"), ("e", "r"), ("i", "n"), ("o", "v")]
    tokens = ["<|end|>"] + letters + ["".join(pair) for pair in merges]
    level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    return {"version": "1.0", "truncation": None, "padding": None,
            "added_tokens": [{"id": 0, "content": "<|end|>", "single_word": False, "lstrip": False, "rstrip": False,
                              "normalized": False, "special": True}],
            "normalizer": None, "pre_tokenizer": level, "post_processor": None, "decoder": level,
            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                      "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "ignore_merges": False,
                      "vocab": {token: i for i, token in enumerate(tokens)},
                      "merges": [list(pair) for pair in merges]}}, len(tokens)


def tensors(vocabulary):
    shapes = {"model.embed_tokens.weight": (vocabulary, WIDTH), "model.norm.weight": (WIDTH,)}
    for i in range(LAYERS):
        layer = f"model.layers.{i}."
        shapes |= {layer + "input_layernorm.weight": (WIDTH,), layer + "post_attention_layernorm.weight": (WIDTH,),
                   layer + "self_attn.q_proj.weight": (HEADS * HEAD, WIDTH),
                   layer + "self_attn.k_proj.weight": (KV_HEADS * HEAD, WIDTH),
                   layer + "self_attn.v_proj.weight": (KV_HEADS * HEAD, WIDTH),
                   layer + "self_attn.o_proj.weight": (WIDTH, HEADS * HEAD),
                   layer + "mlp.gate_proj.weight": (HIDDEN, WIDTH), layer + "mlp.up_proj.weight": (HIDDEN, WIDTH),
                   layer + "mlp.down_proj.weight": (WIDTH, HIDDEN)}
    return shapes


def write_weights(path, shapes, spread=0):
    """spread: how far the weights of norms are from 1."""
    numbers, header, data = random.Random(3), {}, b""
    for name, shape in sorted(shapes.items()):
        count = shape[0] * (shape[1] if len(shape) > 1 else 1)
        norm = "norm" in name.lower() or "ln_" in name
        values = [1 + spread * numbers.gauss(0, 1) if norm else numbers.gauss(0, 0.15) for _ in range(count)]
        begin, data = len(data), data + struct.pack(f"<{count}f", *values)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(data)]}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "weft", "goes", "over", "under", "warp", "##s", "a", "loom", "."]


def encoder_tokenizer():
    special = [{"id": i, "content": WORDS[i], "single_word": False, "lstrip": False, "rstrip": False, "normalized": False,
                "special": True} for i in range(4)]
    around = [{"SpecialToken": {"id": "[CLS]", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": "[SEP]", "type_id": 0}}]
    pair = around + [{"Sequence": {"id": "B", "type_id": 1}}, {"SpecialToken": {"id": "[SEP]", "type_id": 1}}]
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special,
            "normalizer": {"type": "BertNormalizer", "clean_text": True, "handle_chinese_chars": True, "strip_accents": None,
                           "lowercase": True},
            "pre_tokenizer": {"type": "BertPreTokenizer"},
            "post_processor": {"type": "TemplateProcessing", "single": around, "pair": pair,
                               "special_tokens": {t: {"id": t, "ids": [WORDS.index(t)], "tokens": [t]}
                                                  for t in ("[CLS]", "[SEP]")}},
            "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
            "model": {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": "##",
                      "max_input_chars_per_word": 100, "vocab": {word: i for i, word in enumerate(WORDS)}}}


def encoder_tensors():
    shapes = {"bert.embeddings.word_embeddings.weight": (len(WORDS), WIDTH),
              "bert.embeddings.position_embeddings.weight": (24, WIDTH),
              "bert.embeddings.token_type_embeddings.weight": (2, WIDTH), "classifier.weight": (3, WIDTH),
              "classifier.bias": (3,)}
    dense = {"bert.pooler.dense": (WIDTH, WIDTH)}
    norms = ["bert.embeddings.LayerNorm"]
    for i in range(LAYERS):
        layer = f"bert.encoder.layer.{i}."
        dense |= {layer + "attention.self." + part: (WIDTH, WIDTH) for part in ("query", "key", "value")}
        dense |= {layer + "attention.output.dense": (WIDTH, WIDTH), layer + "intermediate.dense": (HIDDEN, WIDTH),
                  layer + "output.dense": (WIDTH, HIDDEN)}
        norms += [layer + "attention.output.LayerNorm", layer + "output.LayerNorm"]
    for name, shape in dense.items():
        shapes |= {name + ".weight": shape, name + ".bias": shape[:1]}
    return shapes | {f"{name}.{part}": (WIDTH,) for name in norms for part in ("weight", "bias")}


def write_encoder(folder):
    labels = {"0": "bad", "1": "good", "2": "so so"}
    config = {"architectures": ["BertForSequenceClassification"], "model_type": "bert", "vocab_size": len(WORDS),
              "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS,
              "hidden_act": "gelu", "max_position_embeddings": 24, "type_vocab_size": 2, "pad_token_id": 0,
              "id2label": labels, "torch_dtype": "float32"}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer.json").write_text(json.dumps(encoder_tokenizer()))
    (folder / "tokenizer_config.json").write_text(json.dumps({"pad_token": "[PAD]", "cls_token": "[CLS]"}))
    write_weights(folder / "model.safetensors", encoder_tensors())


def write_like(folder, path):
    """A model of another architecture, with as many rows as the tokenizer has tokens."""
    model = json.loads(pathlib.Path(path).read_text())
    config, kind = model["config"], model["config"]["model_type"]
    encodes = kind in ("bert", "roberta", "distilbert")
    described, count = (encoder_tokenizer(), len(WORDS)) if encodes else tokenizer()
    old, config["vocab_size"] = config["vocab_size"], count
    shapes = {name: [count if extent == old else extent for extent in shape] for name, shape in model["tensors"].items()}
    config |= {"bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0}
    words = {"pad_token": "[PAD]", "cls_token": "[CLS]"} if encodes else {"eos_token": "<|end|>", "chat_template": TEMPLATE}
    words["tokenizer_class"] = "PreTrainedTokenizerFast"
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer.json").write_text(json.dumps(described))
    (folder / "tokenizer_config.json").write_text(json.dumps(words))
    write_weights(folder / "model.safetensors", shapes, 0.2)


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    if sys.argv[2:] == ["--encoder"]:
        write_encoder(folder)
        return
    if sys.argv[2:3] == ["--like"]:
        write_like(folder, sys.argv[3])
        return
    described, vocabulary = tokenizer()
    config = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": vocabulary,
              "hidden_size": WIDTH, "intermediate_size": HIDDEN, "num_hidden_layers": LAYERS,
              "num_attention_heads": HEADS, "num_key_value_heads": KV_HEADS, "head_dim": HEAD, "hidden_act": "silu",
              "max_position_embeddings": 128, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "tie_word_embeddings": True, "torch_dtype": "float32", "bos_token_id": 0, "eos_token_id": 0}
    (folder / "config.json").write_text(json.dumps(config, indent=2))
    (folder / "tokenizer.json").write_text(json.dumps(described))
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"eos_token": "<|end|>", "model_max_length": 1000000000000000019884624838656, "chat_template": TEMPLATE}))
    write_weights(folder / "model.safetensors", tensors(vocabulary))


if __name__ == "__main__":
    main()
