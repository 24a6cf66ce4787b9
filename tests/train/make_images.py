#!/usr/bin/env python3
"""Writes images.inc to its own folder, for test_images.c: PyTorch's losses for ten training steps of a cnn and a resnet, and
the resnet's running statistics after these steps. Weights and batches are the numbers of pattern() in test_images.c.

    python make_images.py
"""
import os

import torch
import torch.nn.functional as F
from torch import nn

STEPS, BATCH, SIDE, CLASSES = 10, 6, 8, 4


def pattern(shape, by, scale):
    n = torch.Size(shape).numel()
    values = [((i * 7919 + by * 104729) % 1009 - 504) / 504 * scale for i in range(n)]
    return torch.tensor(values, dtype=torch.float64).reshape(shape)


class Block(nn.Module):
    def __init__(self, inside, out, stride):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inside, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.conv2, self.bn2 = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.stride, self.more = stride, out - inside

    def forward(self, x):
        y = self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x)))))
        x = x[:, :, :: self.stride, :: self.stride]
        return F.relu(y + F.pad(x, (0, 0, 0, 0, self.more // 2, self.more - self.more // 2)))


class Resnet(nn.Module):
    """Depth 8: one block for each stage."""

    def __init__(self, width):
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(3, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(Block(width, width, 1))
        self.layer2 = nn.Sequential(Block(width, 2 * width, 2))
        self.layer3 = nn.Sequential(Block(2 * width, 4 * width, 2))
        self.fc = nn.Linear(4 * width, CLASSES)

    def forward(self, x):
        y = F.relu(self.bn1(self.conv1(x)))
        return self.fc(self.layer3(self.layer2(self.layer1(y))).mean((2, 3)))


def cnn():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(4, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(6 * 2 * 2, 10), nn.ReLU(), nn.Linear(10, CLASSES))


def run(net, optimizer, dtype):
    """Returns the losses of the steps. The weights are pattern() of the parameter's index."""
    for i, p in enumerate(net.parameters()):
        matrix = p.dim() > 1
        inputs = p[0].numel() if matrix else 1
        base = 0 if matrix else 0.5
        with torch.no_grad():
            p.copy_(base + pattern(p.shape, i, (3 / inputs) ** 0.5 if matrix else 0.25))
    net = net.to(dtype)
    opt = optimizer(net.parameters())
    losses = []
    for step in range(STEPS):
        x = pattern((BATCH, 3, SIDE, SIDE), 50 + step, 1).to(torch.float32).to(dtype)
        y = torch.tensor([(b * 3 + step) % CLASSES for b in range(BATCH)])
        loss = F.cross_entropy(net(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return net, losses


def line(name, values):
    return f"static const double {name}[] = {{" + ", ".join(repr(float(v)) for v in values) + "};\n"


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "images.inc"), "w", encoding="utf-8") as out:
    out.write("/* Written by make_images.py with PyTorch " + torch.__version__.split("+")[0] + ": do not edit. */\n")
    for name, make, optimizer in (
        ("cnn", cnn, lambda p: torch.optim.Adam(p, lr=1e-2)),
        ("resnet", lambda: Resnet(4), lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.9)),
    ):
        for dtype, suffix in ((torch.float32, "f32"), (torch.float64, "f64")):
            net, losses = run(make(), optimizer, dtype)
            out.write(line(f"{name}_{suffix}", losses))
            if name == "resnet":
                out.write(line(f"mean_{suffix}", net.bn1.running_mean) + line(f"var_{suffix}", net.bn1.running_var))
