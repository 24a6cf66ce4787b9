#!/usr/bin/env python3
"""Writes complex.inc into this folder, for test_complex.c: PyTorch's results and gradients for complex numbers.
Operands are the numbers of pattern(), as in the test.

    python make_complex.py
"""
import os

import torch


def operand(shape, by):
    n = 2
    for extent in shape:
        n *= extent
    numbers = torch.tensor([((i * by + 3) % 17 - 8) / 8 + 0.0625 for i in range(n)], dtype=torch.float32)
    return torch.view_as_complex(numbers.reshape(*shape, 2)).clone().requires_grad_()


def trained(make):
    """Complex and real parameters after four steps."""
    a = torch.tensor([0.5, 1.5, 1.0], requires_grad=True)
    w, b = operand((3, 4), 5), operand((3,), 7)
    optimizer, clips = make([a, w, b])
    x, target = operand((2, 4), 7).detach(), operand((2, 3), 3).detach()
    for _ in range(4):
        optimizer.zero_grad()
        (((x @ w.T + b - target).abs() ** 2) * a).sum().backward()
        if clips:
            torch.nn.utils.clip_grad_norm_([a, w, b], 1.0)
        optimizer.step()
    return torch.cat([a.detach()] + [torch.view_as_real(t.detach()).flatten() for t in (w, b)])


def line(name, values):
    values = torch.view_as_real(values.detach().contiguous()) if values.is_complex() else values.detach()
    numbers = ", ".join(repr(float(v)) + "f" for v in values.flatten())
    return f"static const float {name}[] = {{{numbers}}};\n"


z, w, v = operand((3, 4), 5), operand((4, 2), 7), operand((3, 2), 3)
y = z @ w
loss = (0.3 * y / v).exp().abs().sum() + 0.1 * y.conj().angle().sum() + (z.log() * z.sqrt()).sum().real
loss = loss + 0.01 * w.prod().abs()
loss.backward()
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "complex.inc"), "w", encoding="utf-8") as out:
    out.write("/* Written by make_complex.py with PyTorch " + torch.__version__.split("+")[0] + ": do not edit. */\n")
    out.write(line("complex_y", y) + line("complex_loss", loss.reshape(1)))
    for name, make in (("sgd", lambda p: (torch.optim.SGD(p, lr=0.02, momentum=0.9), True)),
                       ("adam", lambda p: (torch.optim.Adam(p, lr=0.05, weight_decay=0.1), False)),
                       ("rmsprop", lambda p: (torch.optim.RMSprop(p, lr=0.01), False))):
        out.write(line("complex_" + name, trained(make)))
    out.write(line("complex_z", z.grad) + line("complex_w", w.grad) + line("complex_v", v.grad))
