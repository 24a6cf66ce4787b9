#!/usr/bin/env python3
"""Makes the reference runs for tests/train/test_parity.c: ten training steps of a small MLP and a
small GPT by PyTorch, from the same weights and batches, with AdamW and SGD, in f32 and f64.

    python make_reference.py            writes to its own folder: mlp.safetensors, gpt.safetensors, losses.json

Each safetensors file holds the initial weights (f64 values that are exact in f32, stored as f32) and the ten batches.
"""
import json
import math
import os

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import nn

STEPS = 10
HERE = os.path.dirname(os.path.abspath(__file__))

MLP = {"sizes": [20, 32, 32, 5], "batch": 16}
GPT = {"layers": 2, "heads": 4, "width": 32, "context": 16, "vocab": 65, "batch": 4}
OPTIMIZERS = {
    "adamw": {"lr": 1e-2, "betas": [0.9, 0.95], "eps": 1e-8, "weight_decay": 0.1, "clip": 1.0},
    "sgd": {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01, "clip": 0.0},
}


class Block(nn.Module):
    """GPT-2's pre-norm block."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = nn.ModuleDict({"c_attn": nn.Linear(width, 3 * width), "c_proj": nn.Linear(width, width)})
        self.mlp = nn.ModuleDict({"c_fc": nn.Linear(width, 4 * width), "c_proj": nn.Linear(4 * width, width)})

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.attn["c_attn"](self.ln_1(x)).split(c, dim=2)
        q, k, v = (z.view(b, t, self.heads, c // self.heads).transpose(1, 2) for z in (q, k, v))
        scores = q @ k.transpose(-2, -1) / math.sqrt(c // self.heads)
        scores = scores.masked_fill(torch.ones(t, t).tril() == 0, float("-inf"))
        y = (F.softmax(scores, dim=-1) @ v).transpose(1, 2).reshape(b, t, c)
        x = x + self.attn["c_proj"](y)
        return x + self.mlp["c_proj"](F.gelu(self.mlp["c_fc"](self.ln_2(x)), approximate="tanh"))


class Gpt(nn.Module):
    def __init__(self, o):
        super().__init__()
        self.wte = nn.Embedding(o["vocab"], o["width"])
        self.wpe = nn.Embedding(o["context"], o["width"])
        self.h = nn.ModuleList([Block(o["width"], o["heads"]) for _ in range(o["layers"])])
        self.ln_f = nn.LayerNorm(o["width"])

    def forward(self, x):
        y = self.wte(x) + self.wpe(torch.arange(x.shape[1]))
        for block in self.h:
            y = block(y)
        return self.ln_f(y) @ self.wte.weight.T


class Mlp(nn.Sequential):
    """Layers are named as in Weft's MLP: 0, 2, 4 are linear, the others are activations."""

    def __init__(self, o):
        layers = []
        for a, b in zip(o["sizes"], o["sizes"][1:]):
            layers += [nn.Linear(a, b), nn.ReLU()]
        super().__init__(*layers[:-1])


def model(kind):
    torch.manual_seed(3)
    if kind == "mlp":
        return Mlp(MLP)
    net = Gpt(GPT)
    for name, p in net.named_parameters():
        if p.dim() == 2:
            std = 0.02 / math.sqrt(2 * GPT["layers"]) if name.endswith("c_proj.weight") else 0.02
            nn.init.normal_(p, 0.0, 5 * std)  # a larger deviation than GPT-2's, so that attention matters within ten steps
        elif "bias" in name and "ln" not in name:
            nn.init.zeros_(p)
    return net


def batches(kind):
    g = torch.Generator().manual_seed(7)
    if kind == "mlp":
        x = torch.randn(STEPS, MLP["batch"], MLP["sizes"][0], generator=g)
        y = torch.randint(0, MLP["sizes"][-1], (STEPS, MLP["batch"]), generator=g, dtype=torch.int32)
        return x, y
    text = torch.randint(0, GPT["vocab"], (STEPS, GPT["batch"], GPT["context"] + 1), generator=g, dtype=torch.int32)
    return text[:, :, :-1].contiguous(), text[:, :, 1:].contiguous()


def optimizer(kind, net):
    o = OPTIMIZERS[kind]
    if kind == "adamw":
        return torch.optim.AdamW(net.parameters(), lr=o["lr"], betas=o["betas"], eps=o["eps"],
                                 weight_decay=o["weight_decay"], foreach=False)
    return torch.optim.SGD(net.parameters(), lr=o["lr"], momentum=o["momentum"], nesterov=o["nesterov"],
                           weight_decay=o["weight_decay"], foreach=False)


def run(kind, opt, dtype):
    net = model(kind).to(dtype)
    step = optimizer(opt, net)
    losses, norms = [], []
    for x, y in zip(*batches(kind)):
        x = x.to(dtype) if x.is_floating_point() else x.long()
        logits = net(x)
        loss = F.cross_entropy(logits.reshape(-1, logits.shape[-1]), y.reshape(-1).long())
        step.zero_grad()
        loss.backward()
        limit = OPTIMIZERS[opt]["clip"] or float("inf")
        norms.append(torch.nn.utils.clip_grad_norm_(net.parameters(), limit).item())
        step.step()
        losses.append(loss.item())
    return {"losses": losses, "grad_norms": norms}


def main():
    torch.set_num_threads(1)
    torch.use_deterministic_algorithms(True)
    out = {"made_with": "PyTorch " + torch.__version__.split("+")[0], "steps": STEPS, "mlp": MLP, "gpt": GPT,
           "optimizers": OPTIMIZERS, "runs": {}}
    for kind in ("mlp", "gpt"):
        weights = {k: v.detach().clone().contiguous() for k, v in model(kind).state_dict().items()}
        x, y = batches(kind)
        save_file({**weights, "batch.x": x, "batch.y": y}, os.path.join(HERE, kind + ".safetensors"))
        for opt in OPTIMIZERS:
            for name, dtype in (("f32", torch.float32), ("f64", torch.float64)):
                out["runs"][f"{kind}.{opt}.{name}"] = run(kind, opt, dtype)
    with open(os.path.join(HERE, "losses.json"), "w") as f:
        json.dump(out, f, separators=(",", ":"))
        f.write("\n")


if __name__ == "__main__":
    main()
