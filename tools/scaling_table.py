#!/usr/bin/env python3
"""Prints the table of predicted scaling in docs/performance.md. Nothing is trained and no card is needed: `weft plan` predicts
each figure. Must not know: how it predicts.

Use: tools/scaling_table.py build/weft"""

import json
import pathlib
import subprocess
import sys
import tempfile

RANKS = [8, 64, 512]
RATES = [50, 400]  # Gbit/s of each process
CARD = "h200"
GPT2 = {"model.context": 1024, "model.vocab": 50304, "optimizer.clip": 1}
LLAMA = {"model.context": 4096, "model.vocab": 128256, "model.norm": "rms", "model.positions": "rotary", "model.mlp": "swiglu",
         "model.kv_heads": 8, "model.mlp_width": 14336, "model.bias": "false", "model.untied_head": "true", "optimizer.clip": 1}
MODELS = {
    "GPT-2 124M, 64 x 1,024 tokens": {**GPT2, "model.layers": 12, "model.heads": 12, "model.width": 768, "train.batch": 64},
    "GPT-2 1.5B, 16 x 1,024 tokens": {**GPT2, "model.layers": 48, "model.heads": 25, "model.width": 1600, "train.batch": 16},
    "Llama 8B, 4 x 4,096 tokens, `train.recompute: block`": {
        **LLAMA, "model.layers": 32, "model.heads": 32, "model.width": 4096, "train.batch": 4, "train.recompute": "block"},
}


def plan(weft, settings, rate):
    changes = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([weft, "plan", "gpt", "--card", CARD, "--set", "data.source=tokens", "--set", "data.path=none.bin",
                               "--set", "train.precision=bf16", *changes, "--ranks", ",".join(map(str, RANKS)), "--network", str(rate),
                               "--json"], capture_output=True, text=True, cwd=folder)
    if done.returncode:
        sys.exit(f"scaling_table.py: {done.stderr}")
    return {(row["ranks"], row["shard"]): row for row in json.loads(done.stdout)["ranks"]}


def seconds(value):
    return f"{value:.3g} s" if value >= 1 else f"{1e3 * value:.0f} ms"


def cells(row):
    p = row["predicted"]
    alone = p["step_alone_seconds"]
    return [f'{seconds(p["exchange_seconds"])}', f'{seconds(p["step_seconds"])}, {100 * alone / p["step_seconds"]:.0f} %']


def main():
    weft = str(pathlib.Path(sys.argv[1]).resolve())
    heads = ["model", "processes", "`train.shard`", "memory"]
    heads += [f"{rate} Gbit/s: {what}" for rate in RATES for what in ("exchange", "step")]
    print("| " + " | ".join(heads) + " |\n|" + " --- |" * len(heads))
    for name, settings in MODELS.items():
        plans = [plan(weft, settings, rate) for rate in RATES]
        first = name
        for key, row in plans[0].items():
            memory = f'{1e-9 * row["total"]:.0f} GB' + ("" if row["fits"] else ", does not fit")
            if first:
                first += f'; alone {seconds(row["predicted"]["step_alone_seconds"])} a step'
            line = [first, str(key[0]), key[1], memory, *(cell for p in plans for cell in cells(p[key]))]
            print("| " + " | ".join(line) + " |")
            first = ""


main()
