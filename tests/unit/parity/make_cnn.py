#!/usr/bin/env python3
"""Writes cnn.inc into this folder, for test_cnn.c: the losses of ten steps of a convolutional net in PyTorch, and the
sums of its parameters after them. Weights and images are the numbers of spread(), as in the test.

    python make_cnn.py
"""
import os

import numpy
import torch
from torch import nn


def spread(n, salt, bound):
    """n numbers in -bound..bound, made by a hash, with the same bits as in C."""
    x = (numpy.arange(n, dtype=numpy.uint64) + numpy.uint64(salt) * numpy.uint64(1000003)).astype(numpy.uint32)
    with numpy.errstate(over="ignore"):
        x ^= x >> numpy.uint32(16)
        x *= numpy.uint32(0x7feb352d)
        x ^= x >> numpy.uint32(15)
        x *= numpy.uint32(0x846ca68b)
        x ^= x >> numpy.uint32(16)
    unit = (x >> numpy.uint32(8)).astype(numpy.float32) * numpy.float32(2.0 ** -23) - numpy.float32(1)
    return torch.from_numpy(unit * numpy.float32(bound))


BATCH, STEPS, BOUNDS = 16, 10, (0.33, 0.059, 0.018, 0.088)
torch.set_num_threads(1)
net = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                    nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
with torch.no_grad():
    for i, p in enumerate(net.parameters()):
        p.copy_(spread(p.numel(), i, BOUNDS[i // 2]).reshape(p.shape))
adam = torch.optim.Adam(net.parameters(), lr=1e-3)
losses = []
for step in range(STEPS):
    x = spread(BATCH * 784, 100 + step, 1).abs().reshape(BATCH, 1, 28, 28)
    labels = torch.arange(BATCH) * 7 % 10
    x[torch.arange(BATCH), 0, labels * 2] += 1
    loss = nn.functional.cross_entropy(net(x), labels)
    adam.zero_grad()
    loss.backward()
    adam.step()
    losses.append(loss.item())
means = [p.abs().mean(dtype=torch.float64).item() for p in net.parameters()]

with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "cnn.inc"), "w") as file:
    file.write("/* Written by make_cnn.py. */\n")
    for name, values in (("cnn_losses", losses), ("cnn_means", means)):
        text = ", ".join(f"{v:.9g}" for v in values)
        file.write(f"static const double {name}[] = {{{text}}};\n")
