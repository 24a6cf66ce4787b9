#!/usr/bin/env python3
"""Writes the reference files of test_architectures.c with transformers: for each architecture a small configuration, the names
and shapes of its tensors, and the logits that transformers computes from weights that follow a pattern.

Also blocks.json: random blocks of each quantised dtype, and the numbers that the package gguf unpacks from them.

    python3 tests/unit/published/make_models.py        # needs torch, transformers and gguf; writes models/*.json"""

import json
import pathlib
import tempfile

import gguf
import numpy
import safetensors.torch
import torch
import transformers

SMALL = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 8}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16, "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}
SLIDING = ["sliding_attention", "full_attention"]
MODELS = {
    "gpt2": ("gpt2", {"vocab_size": 61, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_inner": 40}),
    "gpt2-untied": ("gpt2", {"vocab_size": 61, "n_embd": 24, "n_layer": 1, "n_head": 3, "n_positions": 32,
                             "tie_word_embeddings": False, "activation_function": "relu", "n_inner": 20}),
    "gpt_neox": ("gpt_neox", dict(SMALL, rotary_pct=0.25, head_dim=None)),
    "gpt_neox-serial": ("gpt_neox", dict(SMALL, use_parallel_residual=False, head_dim=None,
                                         rope_parameters={"rope_type": "default", "rope_theta": 500.0,
                                                          "partial_rotary_factor": 0.5})),
    "llama": ("llama", dict(SMALL)),
    "llama-tied": ("llama", dict(SMALL, tie_word_embeddings=True, head_dim=6, hidden_size=24, rms_norm_eps=1e-3)),
    "llama-linear": ("llama", dict(SMALL, rope_parameters={"rope_type": "linear", "factor": 4.0,
                                                           "rope_theta": 10000.0})),
    "llama-llama3": ("llama", dict(SMALL, rope_parameters=LLAMA3)),
    "llama-yarn": ("llama", dict(SMALL, rope_parameters=YARN)),
    "mistral": ("mistral", dict(SMALL, sliding_window=5)),
    "qwen2": ("qwen2", dict(SMALL)),
    "qwen3": ("qwen3", dict(SMALL)),
    "phi3": ("phi3", dict(SMALL, pad_token_id=0, head_dim=None)),
    "phi3-partial": ("phi3", dict(SMALL, pad_token_id=0, head_dim=None,
                                  rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                                   "partial_rotary_factor": 0.5})),
    "gemma2": ("gemma2", dict(SMALL, sliding_window=5, query_pre_attn_scalar=20, layer_types=SLIDING,
                              attn_logit_softcapping=5.0, final_logit_softcapping=3.0)),
    "gemma3_text": ("gemma3_text", dict(SMALL, num_hidden_layers=3, sliding_window=5,
                                        layer_types=[SLIDING[0], SLIDING[0], SLIDING[1]])),
}
TOKENS = [[(7 * i * i + 3 * i + 11 * row) % 61 for i in range(20)] for row in range(2)]


def pattern(count, number, around):
    """The weights of tensor `number` in the order of the names: as fill() of test_architectures.c makes them."""
    i = torch.arange(count, dtype=torch.float64)
    return (((i * (5 + 2 * (number % 7)) + 3 * number) % 23 - 11) / 64 + around).float()


def reference(kind, options):
    options = {key: value for key, value in options.items() if value is not None}
    config = transformers.AutoConfig.for_model(kind, **options)
    config._attn_implementation = "eager"
    with tempfile.TemporaryDirectory() as folder:
        transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
        path = pathlib.Path(folder) / "model.safetensors"
        tensors = safetensors.torch.load_file(path)
        for number, name in enumerate(sorted(tensors)):
            norm = "norm" in name or "ln_" in name
            around = 1.0 if norm and name.endswith(".weight") and "gemma" not in kind else 0.0
            tensors[name] = pattern(tensors[name].numel(), number, around).reshape(tensors[name].shape)
        safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
        fields = json.loads((pathlib.Path(folder) / "config.json").read_text())
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        with torch.no_grad():
            logits = model(torch.tensor(TOKENS)).logits
    picked = [logits[row, place].tolist() for row, place in ((0, 0), (0, 19), (1, 7), (1, 18))]
    return {"config": fields, "tensors": {name: list(tensors[name].shape) for name in sorted(tensors)},
            "tokens": TOKENS, "logits": [[float(f"{x:.9g}") for x in row] for row in picked]}


# The places of 16-bit scales in a block: random bits there would be NaN or huge.
SCALES = {"Q4_0": [0], "Q4_1": [0, 2], "Q5_0": [0], "Q5_1": [0, 2], "Q8_0": [0], "Q2_K": [80, 82], "Q3_K": [108],
          "Q4_K": [0, 2], "Q5_K": [0, 2], "Q6_K": [208], "IQ4_NL": [0]}


def blocks():
    random = numpy.random.default_rng(7)
    found = {}
    for name, places in SCALES.items():
        kind = gguf.GGMLQuantizationType[name]
        size = gguf.GGML_QUANT_SIZES[kind][1]
        raw = random.integers(0, 256, (2, size), dtype=numpy.uint8)
        for row in raw:
            for place in places:
                scale = numpy.float16(random.uniform(0.001, 0.02))
                row[place:place + 2] = numpy.frombuffer(scale.tobytes(), dtype=numpy.uint8)
        values = gguf.dequantize(raw, kind).reshape(-1)
        found[name] = {"number": int(kind), "bytes": raw.tobytes().hex(), "values": [float(f"{x:.9g}") for x in values]}
    return found


def main():
    folder = pathlib.Path(__file__).parent / "models"
    folder.mkdir(exist_ok=True)
    for name, (kind, options) in MODELS.items():
        (folder / f"{name}.json").write_text(json.dumps(reference(kind, options), separators=(",", ":")) + "\n")
    (folder.parent / "blocks.json").write_text(json.dumps(blocks(), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
