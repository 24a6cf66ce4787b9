#!/usr/bin/env python3
"""Exports small models of all architectures from a folder, a GGUF file, a run, a run with adapters, and a run that began with
a GGUF file, to all formats. Weft reads each result back, and must answer as the source does. What cannot be written is
refused by name. Needs no packages.

    exports.py WEFT SOURCE_FOLDER

If WEFT_PEER_PYTHON names a Python with torch, transformers, peft and gguf, they also load the results (exports_peer.py)."""

import json
import os
import pathlib
import subprocess
import sys

WEFT, TREE = sys.argv[1], pathlib.Path(sys.argv[2])
MODELS = TREE / "tests/unit/published"
GPTS = ["gpt2", "gpt2-untied", "gpt_neox", "llama", "llama-llama3", "llama-yarn", "mistral", "qwen2", "qwen2-other-head", "qwen3",
        "phi3", "phi3-longrope", "gemma2-usual", "gemma3_text-usual"]
ENCODERS = ["bert-classes", "roberta-classes", "distilbert-classes"]
NO_GGUF = {"gpt_neox": "does not write the architecture gpt_neox", "gpt2-untied": "cannot hold the activation"}
JOINED = ("gpt2", "gpt_neox", "phi3")  # queries, keys and values are one tensor, which peft cannot divide
PROMPT = ["--prompt", "the weft goes", "--tokens", "12", "--temperature", "0"]
SHORT = ["--prompt", "a", "--tokens", "3", "--temperature", "0"]  # a GGUF file keeps a Mistral's window as its context
SMALL = ["train.batch=2", "train.steps=3", "optimizer.lr=0.01", "schedule.warmup=0"]
failures, cells, peers = [], 0, []


def weft(*words, wants=0, says=""):
    """Runs the command. Returns what it printed; None after a failure, which is noted."""
    global cells
    cells += 1
    done = subprocess.run([WEFT, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    both = (done.stdout + done.stderr).decode(errors="replace")
    if done.returncode == wants and says in both:
        return done.stdout
    failures.append(f"weft {' '.join(map(str, words))}: exit {done.returncode}, wanted {wants} and '{says}':\n{both[:600]}")
    return None


def same(what, got, want):
    global cells
    cells += 1
    if got != want or got is None:
        failures.append(f"{what}: {got!r} instead of {want!r}")


def make(name, kind="models"):
    subprocess.run([sys.executable, TREE / "tests/train/make_published.py", name, "--like", MODELS / kind / f"{name}.json"],
                   check=True)


def train(run, model, *settings):
    words = [word for key in [*SMALL, *settings] for word in ("--set", key)]
    weft("train", "gpt", "--data", "text.txt", "--run", run, "--set", f"model.init={model}", "--quiet", *words)


def answer(model, *others):
    mistral = any("mistral" in str(path) and ("gguf" in str(path)) for path in (model, *others))
    return weft("generate", model, *(SHORT if mistral else PROMPT))


def export(name, source, to, out, *more, wants=0, says=""):
    """Exports a source to a file or folder. Returns the path; None if it was refused as expected."""
    weft("export", source, "--to", to, "--out", out, *more, wants=wants, says=says)
    if wants:
        same(f"{out} after a refusal", os.path.exists(out) and os.path.isfile(out), False)
    return None if wants or failures and not os.path.exists(out) else out


def check_models(name, source, adapters):
    """Exports a source to the formats of whole models."""
    said = answer(source)
    why = NO_GGUF.get(name, "")
    is_file, is_run = source.endswith(".gguf"), os.path.exists(f"{source}/config.yaml")
    folder = export(name, source, "huggingface", f"{source}-hf")
    same(f"{source} to huggingface", folder and answer(folder), said)
    peers.append({"kind": "huggingface", "path": folder, "text": said.decode(errors="replace") if said else ""})
    for format in ("f32", "q8_0"):
        file = export(name, source, "gguf", f"{source}-{format}.gguf", "--type", format, wants=3 if why else 0, says=why)
        if file and format == "f32":
            wanted = answer(source, file)
            same(f"{source} to gguf", answer(file), wanted)
            same(f"{source} to gguf to huggingface", answer(export(name, file, "huggingface", f"{file}-hf")), wanted)
        if file:
            peers.append({"kind": "gguf", "path": file, "like": folder, "exact": format == "f32"})
    if is_run:
        export(name, source, "safetensors", f"{source}.safetensors")
        export(name, source, "c", f"{source}-c")
    for format in ("peft", "gguf-lora"):
        if not adapters:
            export(name, source, format, f"{source}-no.gguf", wants=2, says="for runs with adapters")
    return said


def check_adapters(name, run, said):
    folder = export(name, run, "peft", f"{run}-peft")
    peers.append({"kind": "peft", "path": folder, "base": name, "text": said.decode(errors="replace") if said else ""})
    why = "does not write the architecture" if name == "gpt_neox" else ""
    file = export(name, run, "gguf-lora", f"{run}-lora.gguf", wants=3 if why else 0, says=why)
    if file:
        peers.append({"kind": "gguf-lora", "path": file})


def check_gpt(name):
    make(name)
    split = not name.startswith(JOINED)
    targets = "lora.targets=[" + ("q_proj, k_proj, " if split else "") + "o_proj, down_proj]"
    check_models(name, name, False)
    train(f"{name}-run", name, "model.context=32")
    check_models(name, f"{name}-run", False)
    train(f"{name}-lora", name, "lora.rank=2", targets)
    check_adapters(name, f"{name}-lora", check_models(name, f"{name}-lora", True))
    if name in NO_GGUF:
        return
    file = f"{name}-source.gguf"
    weft("quantize", name, "--to", "f32", "--out", file)
    same(f"{file} answers", answer(file), answer(name, file))
    check_models(name, file, False)
    train(f"{name}-of-gguf", file, "model.context=32")
    check_models(name, f"{name}-of-gguf", False)


def check_encoder(name):
    make(name, "encoders")
    weft("train", "encoder", "--data", "texts.csv", "--run", f"{name}-run", "--quiet", "--set", f"model.init={name}", "--set",
         "train.epochs=2", "--set", "train.batch=4", "--set", "model.context=16")
    said = weft("classify", f"{name}-run", "texts.txt")
    folder = export(name, f"{name}-run", "huggingface", f"{name}-hf")
    same(f"{name} to huggingface", weft("classify", folder, "texts.txt"), said)
    peers.append({"kind": "encoder", "path": folder, "text": said.decode() if said else ""})
    export(name, f"{name}-run", "safetensors", f"{name}.safetensors")
    export(name, f"{name}-run", "gguf", f"{name}.gguf", wants=3, says=f"does not write the architecture {name.split('-')[0]}")
    export(name, f"{name}-run", "c", f"{name}-c", wants=1, says="an encoder needs its tokenizer")


def main():
    pathlib.Path("text.txt").write_text("".join(f"the weft goes over and under the warp, line {i * 7919 % 1000}\n"
                                                for i in range(60)))
    rows = [("the weft goes over the warp", "over"), ("the weft goes under the warp", "under"), ("a loom.", "loom")] * 6
    pathlib.Path("texts.csv").write_text("text,label\n" + "".join(f"{text},{label}\n" for text, label in rows))
    pathlib.Path("texts.txt").write_text("".join(text + "\n" for text, _ in rows[:3]))
    for name in GPTS:
        check_gpt(name)
    for name in ENCODERS:
        check_encoder(name)
    peer = os.environ.get("WEFT_PEER_PYTHON")
    if peer and not failures:
        pathlib.Path("peers.json").write_text(json.dumps(peers))
        if subprocess.run([peer, TREE / "tests/train/exports_peer.py", "peers.json"], stderr=subprocess.DEVNULL).returncode:
            failures.append("the readers of others")
    elif not peer:
        print("the readers of others: skipped, WEFT_PEER_PYTHON names no Python with transformers, peft and gguf")
    print("\n".join(["FAIL: " + f for f in failures] + [f"test_exports: cells={cells} fail={len(failures)}"]))
    sys.exit(bool(failures))


main()
