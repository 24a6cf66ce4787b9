#!/usr/bin/env python3
"""Writes batchnorm.inc into this folder, for test_batchnorm.c: the results, gradients and running statistics of
PyTorch's batch norms in training and evaluation. Operands are the numbers of pattern(), as in the test. The loss is the
sum of the results, weighted by such numbers.

    python make_batchnorm.py
"""
import os

import torch

PASSES = 3
CASES = {
    "images": ((2, 3, 4, 5), 0, torch.nn.BatchNorm2d(3)),
    "lines": ((3, 2, 7), 0, torch.nn.BatchNorm1d(2, eps=1e-3, momentum=0.3)),
    "vectors": ((6, 4), 30, torch.nn.BatchNorm1d(4, momentum=None)),
}


def pattern(n, by):
    return torch.tensor([((i * by + 3) % 17 - 8) / 8 for i in range(n)], dtype=torch.float32)


def line(name, values):
    numbers = ", ".join(repr(float(v)) + "f" for v in values.detach().flatten())
    return f"static const float {name}[] = {{{numbers}}};\n"


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "batchnorm.inc"), "w", encoding="utf-8") as out:
    out.write("/* Written by make_batchnorm.py with PyTorch " + torch.__version__.split("+")[0] + ": do not edit. */\n")
    for name, (shape, mean, layer) in CASES.items():
        n = torch.Size(shape).numel()
        with torch.no_grad():
            layer.weight.copy_(pattern(shape[1], 5))
            layer.bias.copy_(pattern(shape[1], 3))
        for step in range(PASSES):
            x = (pattern(n, 5 + 2 * step).reshape(shape) + mean).requires_grad_()
            layer.zero_grad()
            y = layer(x)
            (y * pattern(n, 11).reshape(shape)).sum().backward()
        out.write(line(name + "_y", y) + line(name + "_x", x.grad))
        out.write(line(name + "_w", layer.weight.grad) + line(name + "_b", layer.bias.grad))
        out.write(line(name + "_mean", layer.running_mean) + line(name + "_var", layer.running_var))
        layer.eval()
        out.write(line(name + "_eval", layer(x)))
