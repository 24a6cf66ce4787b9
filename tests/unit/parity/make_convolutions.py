#!/usr/bin/env python3
"""Writes convolutions.inc into this folder, for test_convolutions.c: results and gradients of PyTorch's convolutions
and pools. Operands are the numbers of pattern(), as in the test. The loss is the sum of the results, weighted by such
numbers.

    python make_convolutions.py
"""
import os

import torch
import torch.nn.functional as F


def pattern(n, by):
    return torch.tensor([((i * by + 3) % 17 - 8) / 8 for i in range(n)], dtype=torch.float32)


def operand(shape, by):
    n = 1
    for extent in shape:
        n *= extent
    return pattern(n, by).reshape(shape).requires_grad_()


CASES = {
    "conv1d": ((2, 2, 9), (4, 1, 3), lambda x, w, b: F.conv1d(x, w, b, stride=2, padding=1, groups=2)),
    "conv2d": ((2, 2, 6, 5), (3, 2, 3, 2), lambda x, w, b: F.conv2d(x, w, b, stride=(2, 1), padding=(1, 0), dilation=(1, 2))),
    "conv_transpose1d": ((1, 2, 5), (2, 3, 3), lambda x, w, b: F.conv_transpose1d(x, w, b, stride=2, padding=1, output_padding=1)),
    "conv_transpose2d": ((1, 2, 3, 4), (2, 2, 2, 3), lambda x, w, b: F.conv_transpose2d(x, w, b, stride=(2, 1), padding=(0, 1), groups=2)),
    "max_pool2d": ((1, 2, 5, 6), None, lambda x, w, b: F.max_pool2d(x, 3, stride=2, padding=1)),
    "avg_pool2d": ((1, 2, 5, 6), None, lambda x, w, b: F.avg_pool2d(x, (3, 2), stride=2, padding=1)),
    "adaptive_avg_pool2d": ((1, 2, 5, 6), None, lambda x, w, b: F.adaptive_avg_pool2d(x, (3, 4))),
    "adaptive_max_pool2d": ((1, 2, 5, 6), None, lambda x, w, b: F.adaptive_max_pool2d(x, (3, 4))),
    "adaptive_avg_pool1d": ((2, 5, 6), None, lambda x, w, b: F.adaptive_avg_pool1d(x, 4)),
    "nearest_size": ((1, 2, 5, 6), None, lambda x, w, b: F.interpolate(x, size=(7, 4))),
    "nearest_scale": ((1, 2, 5, 6), None, lambda x, w, b: F.interpolate(x, scale_factor=(2, 1.3))),
    "bilinear_size": ((1, 2, 5, 6), None, lambda x, w, b: F.interpolate(x, size=(8, 4), mode="bilinear")),
    "bilinear_scale": ((1, 2, 5, 6), None, lambda x, w, b: F.interpolate(x, scale_factor=(1.7, 2), mode="bilinear")),
    "linear": ((2, 5, 6), None, lambda x, w, b: F.interpolate(x, size=9, mode="linear")),
    "instance_norm": ((1, 2, 5, 6), None, lambda x, w, b: F.instance_norm(x)),
}


def line(name, values):
    numbers = ", ".join(repr(float(v)) + "f" for v in values.detach().flatten())
    return f"static const float {name}[] = {{{numbers}}};\n"


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "convolutions.inc"), "w", encoding="utf-8") as out:
    out.write("/* Written by make_convolutions.py with PyTorch " + torch.__version__.split("+")[0] + ": do not edit. */\n")
    for name, (x, weight, call) in CASES.items():
        x = operand(x, 5)
        w = operand(weight, 7) if weight else None
        channels = 0 if not weight else {"conv1d": 4, "conv2d": 3, "conv_transpose1d": 3, "conv_transpose2d": 4}[name]
        b = operand((channels,), 3) if weight else None
        y = call(x, w, b)
        (y * pattern(y.numel(), 11).reshape(y.shape)).sum().backward()
        out.write(line(name + "_y", y) + line(name + "_x", x.grad))
        if weight:
            out.write(line(name + "_w", w.grad) + line(name + "_b", b.grad))
