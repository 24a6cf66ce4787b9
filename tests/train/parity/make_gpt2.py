#!/usr/bin/env python3
"""Makes the reference data for tests/train/test_gpt2_file.c: a tiny GPT-2 with the published names and shapes (Conv1D
matrices (in, out), the attention mask as an entry, no lm_head), tokens, PyTorch's logits in f64, and the losses of three
steps of SGD.

    python make_gpt2.py            writes to its own folder: gpt2.safetensors (the weights), gpt2.json (the rest)
"""
import json
import math
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file

HERE = os.path.dirname(os.path.abspath(__file__))
O = {"layers": 2, "heads": 2, "width": 8, "context": 12, "vocab": 17, "batch": 2, "lr": 0.1, "steps": 3}


def make_weights():
    c, w = O["width"], {}

    def draw(name, *shape, mean=0.0, scale=0.3):
        w[name] = (mean + scale * torch.randn(*shape)).float()

    draw("wte.weight", O["vocab"], c)
    draw("wpe.weight", O["context"], c)
    for i in range(O["layers"]):
        h = f"h.{i}."
        for norm in ("ln_1", "ln_2"):
            draw(h + norm + ".weight", c, mean=1.0)
            draw(h + norm + ".bias", c)
        for name, rows, columns in (("attn.c_attn", c, 3 * c), ("attn.c_proj", c, c), ("mlp.c_fc", c, 4 * c),
                                    ("mlp.c_proj", 4 * c, c)):
            draw(h + name + ".weight", rows, columns)
            draw(h + name + ".bias", columns)
    draw("ln_f.weight", c, mean=1.0)
    draw("ln_f.bias", c)
    return w


def forward(w, x):
    c, heads, (b, t) = O["width"], O["heads"], x.shape

    def norm(y, name):
        return F.layer_norm(y, (c,), w[name + ".weight"], w[name + ".bias"], 1e-5)

    def conv(y, name):  # GPT-2's Conv1D
        return y @ w[name + ".weight"] + w[name + ".bias"]

    y = w["wte.weight"][x] + w["wpe.weight"][:t]
    for i in range(O["layers"]):
        h = f"h.{i}."
        q, k, v = (z.view(b, t, heads, c // heads).transpose(1, 2)
                   for z in conv(norm(y, h + "ln_1"), h + "attn.c_attn").split(c, dim=2))
        scores = (q @ k.transpose(-2, -1) / math.sqrt(c // heads)).masked_fill(torch.ones(t, t).tril() == 0, -math.inf)
        y = y + conv((F.softmax(scores, -1) @ v).transpose(1, 2).reshape(b, t, c), h + "attn.c_proj")
        y = y + conv(F.gelu(conv(norm(y, h + "ln_2"), h + "mlp.c_fc"), approximate="tanh"), h + "mlp.c_proj")
    return norm(y, "ln_f") @ w["wte.weight"].T


def main():
    torch.manual_seed(3)
    published = make_weights()
    x = torch.randint(0, O["vocab"], (O["batch"], O["context"]))
    y = torch.randint(0, O["vocab"], (O["batch"], O["context"]))
    w = {name: value.double().requires_grad_() for name, value in published.items()}
    logits = forward(w, x)
    out = {"options": O, "torch": torch.__version__, "x": x.flatten().tolist(), "y": y.flatten().tolist(),
           "logits": logits.flatten().tolist(), "losses": []}
    for _ in range(O["steps"]):
        loss = F.cross_entropy(forward(w, x).flatten(0, 1), y.flatten())
        out["losses"].append(loss.item())
        for value in w.values():
            value.grad = None
        loss.backward()
        with torch.no_grad():
            for value in w.values():
                value -= O["lr"] * value.grad
    mask = torch.ones(O["context"], O["context"]).tril().view(1, 1, O["context"], O["context"])
    for i in range(O["layers"]):
        published[f"h.{i}.attn.bias"] = mask.clone()
    save_file(published, os.path.join(HERE, "gpt2.safetensors"), metadata={"format": "pt"})
    with open(os.path.join(HERE, "gpt2.json"), "w", encoding="ascii") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
