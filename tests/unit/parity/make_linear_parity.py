#!/usr/bin/env python3
"""Prints PyTorch's losses of ten steps of linear and logistic regression, which test_linear_parity.c contains. Weights
and data come from the same formulas in both."""
import numpy as np
import torch

N, COLUMNS, STEPS = 24, 5, 10
torch.set_num_threads(1)


def run(kind, outputs, optimizer, dtype):
    i, j, k = np.arange(N)[:, None], np.arange(COLUMNS)[None, :], np.arange(outputs)
    x = torch.tensor(np.round(np.sin(i * 1.7 + j * 0.9) * 64) / 32).to(dtype)
    layer = torch.nn.Linear(COLUMNS, outputs, dtype=dtype)
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(np.round(np.cos(k[:, None] * 2.1 + j * 1.3) * 64) / 128))
        layer.bias.copy_(torch.tensor((k + 1) / 8))
    if kind == "linear":
        y = torch.tensor(np.round(np.cos(i * 0.6 + k[None, :]) * 64) / 32).to(dtype)
        loss = torch.nn.MSELoss()
    elif outputs == 1:
        y = torch.tensor((i * i + i) % 3 == 0).to(dtype)
        loss = torch.nn.BCEWithLogitsLoss()
    else:
        y = torch.tensor(((i * i + i) % 7 % outputs)[:, 0])
        loss = torch.nn.CrossEntropyLoss(weight=torch.tensor([0.5, 2.0, 1.25][:outputs], dtype=dtype))
    groups = [{"params": [layer.weight], "weight_decay": 0.125}, {"params": [layer.bias], "weight_decay": 0.0}]
    if optimizer == "sgd":
        step = torch.optim.SGD(groups, lr=0.0625, momentum=0.5, nesterov=True)
    else:
        step = torch.optim.Adam(groups, lr=0.125)
    losses = []
    for _ in range(STEPS):
        value = loss(layer(x), y)
        losses.append(value.item())
        step.zero_grad()
        value.backward()
        step.step()
    return losses


for kind, outputs in (("linear", 2), ("logistic", 1), ("logistic", 3)):
    for optimizer in ("sgd", "adam"):
        exact, single = run(kind, outputs, optimizer, torch.float64), run(kind, outputs, optimizer, torch.float32)
        worst = max(abs(a - b) / abs(a) for a, b in zip(exact, single))
        print(f"{kind} {outputs} {optimizer}: f32 is {worst:.1e} from f64")
        print("    {" + ", ".join(f"{v:.9g}" for v in single) + "},")
