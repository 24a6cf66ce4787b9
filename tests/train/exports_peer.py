#!/usr/bin/env python3
"""Loads what exports.py has written with transformers, peft and gguf, and compares texts and logits.

    exports_peer.py peers.json                  # needs torch, transformers, peft and gguf"""

import json
import sys

import gguf
import numpy
import peft
import torch
import transformers

PROMPT, TOKENS = "the weft goes", 12
IDS = torch.arange(1, 13)[None] * 7 % 61
transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()


def load(path, **how):
    model, info = transformers.AutoModelForCausalLM.from_pretrained(path, attn_implementation="eager",
                                                                    output_loading_info=True, **how)
    wrong = {key: names for key, names in info.items() if names}
    assert not wrong, wrong
    return model.eval()


def check_text(model, folder, text):
    """Not for LongRoPE: transformers takes the divisors for short texts, Weft those for the context. The most probable tokens, until the text ends. Bytes that are no letter are left out."""
    if "longrope" in folder:
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    prompt, tokens = (PROMPT, TOKENS) if text.startswith(PROMPT) else ("a", 3)
    ids = tokenizer(prompt)["input_ids"]
    for _ in range(tokens):
        with torch.no_grad():
            best = model(torch.tensor([ids])).logits[0, -1].argmax().item()
        if best == 0:
            break
        ids.append(best)
    said = tokenizer.decode(ids, skip_special_tokens=True).replace("\ufffd", "")
    assert said.strip() == text.replace("\ufffd", "").strip(), f"{said!r}, Weft wrote {text!r}"


def logits(model):
    with torch.no_grad():
        return model(IDS).logits


def check_gguf(peer):
    reader = gguf.GGUFReader(peer["path"])
    for tensor in reader.tensors:
        assert numpy.isfinite(gguf.dequantize(tensor.data, tensor.tensor_type)).all(), tensor.name
    if not peer["path"].startswith(("llama-", "qwen2-")) or "llama3" in peer["path"] or "yarn" in peer["path"]:
        return  # of GGUF files transformers reads the other architectures in their published sizes only
    folder, name = peer["path"].rsplit("/", 1) if "/" in peer["path"] else (".", peer["path"])
    right = logits(load(peer["like"]))
    got = logits(load(folder, gguf_file=name))
    off = (got - right).norm() / right.norm()
    assert off < (1e-4 if peer["exact"] else 0.1), f"logits are off by {off}"


def check_encoder(peer):
    model = transformers.AutoModelForSequenceClassification.from_pretrained(peer["path"]).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(peer["path"])
    for text, line in zip(open("texts.txt").read().split("\n"), peer["text"].strip().split("\n")):
        with torch.no_grad():
            probability = model(**tokenizer(text, return_tensors="pt")).logits[0].softmax(-1)
        label, wanted = line.split("\t")[:2]
        best = int(probability.argmax())
        assert model.config.id2label[best] == label and abs(float(probability[best]) - float(wanted)) < 2e-3, (text, line)


def check(peer):
    if peer["kind"] == "huggingface":
        check_text(load(peer["path"]), peer["path"], peer["text"])
    elif peer["kind"] == "gguf":
        check_gguf(peer)
    elif peer["kind"] == "peft":
        base = load(peer["base"])
        check_text(peft.PeftModel.from_pretrained(base, peer["path"]).eval(), peer["base"], peer["text"])
    elif peer["kind"] == "gguf-lora":
        names = [tensor.name for tensor in gguf.GGUFReader(peer["path"]).tensors]
        assert names and all(name.endswith((".weight.lora_a", ".weight.lora_b")) for name in names), names
    else:
        check_encoder(peer)


def main():
    peers, failed = json.load(open(sys.argv[1])), 0
    for peer in peers:
        try:
            check(peer)
        except Exception as error:  # each reader has its own
            failed += 1
            print(f"FAIL: {peer['kind']} {peer['path']}: {type(error).__name__}: {str(error)[:400]}")
    print(f"readers of others: {len(peers)} exports, {failed} failures")
    sys.exit(failed > 0)


main()
