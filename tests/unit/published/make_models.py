#!/usr/bin/env python3
"""Writes the reference files of test_architectures.c with transformers: for each architecture a small configuration, the names
and shapes of its tensors, and the logits that transformers computes from weights that follow a pattern. The same for
encoders, for test_encoders.c.

Also
- blocks.json: random blocks of each quantised dtype, and the numbers that the package gguf unpacks from them;
- quantize.json: what the package gguf packs, and the squared error of llama.cpp's quantisers of K blocks, if GGML_BASE
  names its libggml-base.so;
- classified.json: losses of training classifiers of texts and of pairs of texts, and logits at the end;
- lora.json: losses of training with the adapters of peft;
- dpo.json: losses of training with them on pairs of answers (DPO), the reference, accuracy and margin.

    python3 tests/unit/published/make_models.py        # needs torch, transformers, peft and gguf"""

import ctypes
import json
import os
import pathlib
import tempfile

import gguf
import numpy
import peft
import safetensors.torch
import torch
import transformers

SMALL = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2,
         "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64, "head_dim": 8}
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 16, "rope_theta": 10000.0}
YARN = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 16, "rope_theta": 10000.0}
LONG = {"rope_type": "longrope", "short_factor": [1.0, 1.1, 1.3, 1.2], "long_factor": [1.5, 2.5, 4.0, 6.5]}
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
    "llama-biases": ("llama", dict(SMALL, attention_bias=True, mlp_bias=True)),
    "llama-linear": ("llama", dict(SMALL, rope_parameters={"rope_type": "linear", "factor": 4.0,
                                                           "rope_theta": 10000.0})),
    "llama-llama3": ("llama", dict(SMALL, rope_parameters=LLAMA3)),
    "llama-yarn": ("llama", dict(SMALL, rope_parameters=YARN)),
    "mistral": ("mistral", dict(SMALL, sliding_window=5)),
    "qwen2": ("qwen2", dict(SMALL)),
    # tied by config.json, but the file has both weights and they differ: transformers then ties nothing
    "qwen2-other-head": ("qwen2", dict(SMALL, tie_word_embeddings="other")),
    "qwen3": ("qwen3", dict(SMALL)),
    "qwen3-biases": ("qwen3", dict(SMALL, attention_bias=True)),
    "phi3": ("phi3", dict(SMALL, pad_token_id=0, head_dim=None)),
    "phi3-partial": ("phi3", dict(SMALL, pad_token_id=0, head_dim=None,
                                  rope_parameters={"rope_type": "default", "rope_theta": 10000.0,
                                                   "partial_rotary_factor": 0.5})),
    "phi3-longrope": ("phi3", dict(SMALL, pad_token_id=0, head_dim=None, original_max_position_embeddings=16,
                                   rope_parameters=dict(LONG, rope_theta=10000.0))),
    "phi3-shortrope": ("phi3", dict(SMALL, pad_token_id=0, head_dim=None, original_max_position_embeddings=64,
                                    rope_parameters=dict(LONG, rope_theta=10000.0))),
    "gemma2": ("gemma2", dict(SMALL, sliding_window=5, query_pre_attn_scalar=20, layer_types=SLIDING,
                              attn_logit_softcapping=5.0, final_logit_softcapping=3.0)),
    "gemma3_text": ("gemma3_text", dict(SMALL, num_hidden_layers=3, sliding_window=5,
                                        layer_types=[SLIDING[0], SLIDING[0], SLIDING[1]])),
    # as GGUF files can hold them
    "gemma2-usual": ("gemma2", dict(SMALL, sliding_window=5, query_pre_attn_scalar=8, layer_types=SLIDING,
                                    attn_logit_softcapping=5.0, final_logit_softcapping=3.0)),
    "gemma3_text-usual": ("gemma3_text", dict(SMALL, num_hidden_layers=6, intermediate_size=24, sliding_window=5,
                                              query_pre_attn_scalar=8, layer_types=5 * SLIDING[:1] + SLIDING[1:])),
}
ENCODER = {"vocab_size": 61, "hidden_size": 32, "intermediate_size": 40, "num_hidden_layers": 2, "num_attention_heads": 4,
           "max_position_embeddings": 66, "pad_token_id": 1}
DISTIL = {"vocab_size": 61, "dim": 32, "hidden_dim": 40, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 66,
          "pad_token_id": 1}
ENCODERS = {"bert": ("bert", ENCODER, 0), "bert-classes": ("bert", ENCODER, 3),
            "roberta": ("roberta", ENCODER, 0), "roberta-classes": ("roberta", ENCODER, 3),
            "distilbert": ("distilbert", DISTIL, 0), "distilbert-classes": ("distilbert", DISTIL, 3)}
TOKENS = [[(7 * i * i + 3 * i + 11 * row) % 61 for i in range(20)] for row in range(2)]


def pattern(count, number, around):
    """The weights of tensor `number` in the order of the names: as fill() of test_architectures.c makes them."""
    i = torch.arange(count, dtype=torch.float64)
    return (((i * (5 + 2 * (number % 7)) + 3 * number) % 23 - 11) / 64 + around).float()


def filled(kind, options, folder, auto=transformers.AutoModelForCausalLM):
    """Writes a model whose weights follow the pattern into a folder. Returns its tensors."""
    options = {key: value for key, value in options.items() if value is not None}
    other = options.get("tie_word_embeddings") == "other"
    if other:
        options["tie_word_embeddings"] = False
    config = transformers.AutoConfig.for_model(kind, **options)
    config._attn_implementation = "eager"
    auto.from_config(config).save_pretrained(folder)
    if other:
        config.tie_word_embeddings = True
        config.architectures = [transformers.MODEL_FOR_CAUSAL_LM_MAPPING[type(config)].__name__]
        config.save_pretrained(folder)
    path = pathlib.Path(folder) / "model.safetensors"
    tensors = safetensors.torch.load_file(path)
    for number, name in enumerate(sorted(tensors)):
        norm = "norm" in name.lower() or "ln_" in name
        around = 1.0 if norm and name.endswith(".weight") and "gemma" not in kind else 0.0
        tensors[name] = pattern(tensors[name].numel(), number, around).reshape(tensors[name].shape)
    safetensors.torch.save_file(tensors, path, metadata={"format": "pt"})
    return tensors


def reference(kind, options):
    with tempfile.TemporaryDirectory() as folder:
        tensors = filled(kind, options, folder)
        fields = json.loads((pathlib.Path(folder) / "config.json").read_text())
        model = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager").eval()
        with torch.no_grad():
            logits = model(torch.tensor(TOKENS)).logits
    picked = [logits[row, place].tolist() for row, place in ((0, 0), (0, 19), (1, 7), (1, 18))]
    return {"config": fields, "tensors": {name: list(tensors[name].shape) for name in sorted(tensors)},
            "tokens": TOKENS, "logits": [[float(f"{x:.9g}") for x in row] for row in picked]}


def rounded(rows):
    return [[float(f"{x:.9g}") for x in row] for row in rows.tolist()]


def encoded(kind, options, labels):
    """States of four tokens, the mean of each text's states and, with labels, the logits. The second text is padded."""
    tokens = torch.tensor([[2 + t % 59 for t in row] for row in TOKENS])
    mask = torch.ones_like(tokens)
    tokens[1, 13:], mask[1, 13:] = 1, 0
    auto = transformers.AutoModelForSequenceClassification if labels else transformers.AutoModel
    with tempfile.TemporaryDirectory() as folder:
        tensors = filled(kind, dict(options, num_labels=labels) if labels else options, folder, auto)
        fields = json.loads((pathlib.Path(folder) / "config.json").read_text())
        model = auto.from_pretrained(folder, attn_implementation="eager").eval()
        with torch.no_grad():
            out = model(tokens, attention_mask=mask, output_hidden_states=True)
    states = out.hidden_states[-1]
    weights = mask[..., None] / mask.sum(1)[:, None, None]
    found = {"config": fields, "tensors": {name: list(tensors[name].shape) for name in sorted(tensors)},
             "tokens": tokens.tolist(), "lengths": [20, 13], "mean": rounded((states * weights).sum(1)),
             "states": rounded(torch.stack([states[row, at] for row, at in ((0, 0), (0, 19), (1, 7), (1, 12))]))}
    return dict(found, logits=rounded(out.logits)) if labels else found


# Texts and pairs of texts: the tokens of both, where the second text begins, and the class.
LABELLED = [(20, 12, 0), (13, 6, 1), (5, 5, 2), (9, 4, 1)]


def classified():
    """Ten steps of AdamW with two texts each, for the classifiers of ENCODERS: the losses, and the logits of all
    texts at the end. Matrices alone decay."""
    rows = [[2 + (7 * i * i + 3 * i + 11 * row) % 59 for i in range(n)] for row, (n, _, _) in enumerate(LABELLED)]
    found = {"rows": rows, "second": [begin for _, begin, _ in LABELLED], "labels": [label for *_, label in LABELLED]}
    for kind in ("bert", "roberta", "distilbert"):
        with tempfile.TemporaryDirectory() as folder:
            auto = transformers.AutoModelForSequenceClassification
            filled(kind, dict(ENCODERS[kind][1], num_labels=3), folder, auto)
            model = auto.from_pretrained(folder, attn_implementation="eager").eval()  # without dropout
        groups = [{"params": [p for p in model.parameters() if p.dim() > 1], "weight_decay": 0.1},
                  {"params": [p for p in model.parameters() if p.dim() < 2], "weight_decay": 0.0}]
        optimizer, losses = torch.optim.AdamW(groups, lr=0.001), []

        def logits(which):
            longest = max(len(rows[i]) for i in which)
            tokens = torch.tensor([rows[i] + [1] * (longest - len(rows[i])) for i in which])
            places = torch.arange(longest)
            mask = torch.stack([(places < len(rows[i])).long() for i in which])
            types = torch.stack([(places >= found["second"][i]).long() * mask[k] for k, i in enumerate(which)])
            return model(tokens, attention_mask=mask, **({} if kind == "distilbert" else {"token_type_ids": types})).logits
        for step in range(10):
            which = [0, 1] if step % 2 == 0 else [2, 3]
            loss = torch.nn.functional.cross_entropy(logits(which), torch.tensor([found["labels"][i] for i in which]))
            losses.append(float(f"{loss.item():.9g}"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            found[kind] = {"losses": losses, "logits": rounded(logits([0, 1, 2, 3]))}
    return found


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


def weights():
    """2048 numbers to pack: as weights_to_pack() of test_quantize.c makes them. The first blocks of 32 are special."""
    state, found = 1, []
    for i in range(2048):
        state = (state * 1664525 + 1013904223) % 2**32
        uniform = ((state >> 8) - 2**23) / 2**23
        found.append(uniform * 2.0 ** (i // 32 % 5 - 3) + (0.25 if i // 256 == 3 else 0.0))
    found[:32] = [0.0] * 32
    found[32:64] = [0.75] * 32
    found[64:96] = [-0.75] * 32
    found[96:128] = [0.0] * 31 + [-3.5]
    return numpy.array(found, dtype=numpy.float32)


def packed(old):
    """What the package gguf packs, in hexadecimal. K blocks: the sum of squared errors of llama.cpp's own quantiser."""
    x, found = weights(), {}
    for name in ("F16", "BF16", "Q8_0", "Q5_0", "Q4_0"):
        raw = gguf.quants.quantize(x, gguf.GGMLQuantizationType[name])
        found[name.lower()] = {"bytes": raw.tobytes().hex()}
    library = ctypes.CDLL(os.environ["GGML_BASE"]) if "GGML_BASE" in os.environ else None
    for name in ("Q6_K", "Q4_K"):
        kind = gguf.GGMLQuantizationType[name]
        if not library:
            found[name.lower()] = old[name.lower()]
            continue
        raw = numpy.zeros((8, gguf.GGML_QUANT_SIZES[kind][1]), dtype=numpy.uint8)
        library.ggml_quantize_chunk(ctypes.c_int(kind), ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(raw.ctypes.data),
                                    ctypes.c_int64(0), ctypes.c_int64(8), ctypes.c_int64(256), None)
        off = gguf.dequantize(raw, kind).reshape(-1).astype(numpy.float64) - x
        found[name.lower()] = {"squares": [float(f"{e:.9g}") for e in (off ** 2).reshape(8, 256).sum(axis=1)]}
    return found


TARGETS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"]


def adapted():
    """The Llama of llama.json with peft's adapters, whose A have patterns, and an optimizer of them."""
    with tempfile.TemporaryDirectory() as folder:
        filled("llama", MODELS["llama"][1], folder)
        base = transformers.AutoModelForCausalLM.from_pretrained(folder, attn_implementation="eager")
    model = peft.get_peft_model(base, peft.LoraConfig(r=4, lora_alpha=6, target_modules=TARGETS))
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "lora_A" in name:
                layer, target = int(name.split(".layers.")[1].split(".")[0]), name.split(".")[-4]
                number = layer * len(TARGETS) + TARGETS.index(target)
                parameter.copy_(pattern(parameter.numel(), number, 0.0).reshape(parameter.shape))
    trained = [p for p in model.parameters() if p.requires_grad]
    return model, torch.optim.AdamW(trained, lr=0.01, weight_decay=0.0)


def lora():
    """Ten steps of AdamW with peft's adapters on the Llama of llama.json: the losses, and the logits at the end."""
    model, optimizer = adapted()
    tokens, losses = torch.tensor(TOKENS), []
    for _ in range(10):
        loss = torch.nn.functional.cross_entropy(model(tokens).logits[:, :-1].reshape(-1, 61), tokens[:, 1:].reshape(-1))
        losses.append(float(f"{loss.item():.9g}"))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with torch.no_grad():
        logits = model(tokens).logits[0, -1].tolist()
    return {"losses": losses, "logits": [float(f"{x:.9g}") for x in logits]}


# Prompt, chosen and rejected answer of each pair.
PAIRS = [([1, 5, 9, 2], [7, 3, 8], [4, 4]), ([11, 12], [20, 21, 22, 23, 24], [30, 31, 32, 33, 34, 35]),
         ([40, 41, 42, 43, 44, 45], [50], [51, 52, 53]), ([3, 6], [9, 12, 15], [9, 13])]


def log_probs(model, pairs):
    """(pairs, 2): the log-probabilities of the answers, each text in a row of its own."""
    found = []
    for prompt, *answers in pairs:
        for answer in answers:
            tokens = torch.tensor([prompt + answer])
            each = torch.log_softmax(model(tokens).logits[0, :-1], -1).gather(1, tokens[0, 1:, None])[:, 0]
            found.append(each[len(prompt) - 1:].sum())
    return torch.stack(found).reshape(-1, 2)


def dpo():
    """Ten steps of DPO, two pairs each, without and with label smoothing."""
    found = {"pairs": PAIRS, "runs": []}
    for beta, smoothing in ((0.1, 0.0), (0.5, 0.2)):
        model, optimizer = adapted()
        losses = []
        with torch.no_grad(), model.disable_adapter():
            reference = log_probs(model, PAIRS)

        def rewards(which):
            return beta * (log_probs(model, PAIRS[which]) - reference[which])
        for step in range(10):
            margin = rewards(slice(0, 2) if step % 2 == 0 else slice(2, 4)) @ torch.tensor([1.0, -1.0])
            sigmoid = torch.nn.functional.logsigmoid
            loss = (-(1 - smoothing) * sigmoid(margin) - smoothing * sigmoid(-margin)).mean()
            losses.append(float(f"{loss.item():.9g}"))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        with torch.no_grad():
            margin = rewards(slice(0, 4)) @ torch.tensor([1.0, -1.0])
        found["reference"] = rounded(reference)
        found["runs"].append({"beta": beta, "smoothing": smoothing, "losses": losses,
                              "loss": float(f"{-torch.nn.functional.logsigmoid(margin).mean().item():.9g}"),
                              "accuracy": (margin > 0).float().mean().item(),
                              "margin": float(f"{margin.mean().item():.9g}")})
    return found


def main():
    folder = pathlib.Path(__file__).parent / "models"
    folder.mkdir(exist_ok=True)
    for name, (kind, options) in MODELS.items():
        (folder / f"{name}.json").write_text(json.dumps(reference(kind, options), separators=(",", ":")) + "\n")
    others = folder.parent / "encoders"
    others.mkdir(exist_ok=True)
    for name, row in ENCODERS.items():
        (others / f"{name}.json").write_text(json.dumps(encoded(*row), separators=(",", ":")) + "\n")
    (folder.parent / "classified.json").write_text(json.dumps(classified(), separators=(",", ":")) + "\n")
    (folder.parent / "lora.json").write_text(json.dumps(lora(), separators=(",", ":")) + "\n")
    (folder.parent / "dpo.json").write_text(json.dumps(dpo(), separators=(",", ":")) + "\n")
    (folder.parent / "blocks.json").write_text(json.dumps(blocks(), separators=(",", ":")) + "\n")
    path = folder.parent / "quantize.json"
    old = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(packed(old), separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
