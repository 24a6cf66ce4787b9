#!/usr/bin/env python3
"""Writes recurrent.inc into this folder, for test_recurrent.c: results and gradients of PyTorch's recurrent layers and
cells, and the losses of ten training steps. Operands are the numbers of pattern(), as in the test.

    python make_recurrent.py
"""
import os

import torch
from torch import nn
import torch.nn.functional as F

B, T, IN, H = 3, 6, 3, 4
LENGTHS = [6, 1, 4]


def pattern(shape, by, scale=8):
    n = 1
    for extent in shape:
        n *= extent
    return torch.tensor([((i * by + 3) % 17 - 8) / scale for i in range(n)], dtype=torch.float32).reshape(shape)


def fill(net):
    with torch.no_grad():
        for k, p in enumerate(net.parameters()):
            p.copy_(pattern(p.shape, 5 + k % 3, 16))


def line(name, values):
    numbers = ", ".join(repr(float(v)) + "f" for v in values.detach().flatten())
    return f"static const float {name}[] = {{{numbers}}};\n"


def digest(net):
    """Two weighted sums of each parameter's gradient."""
    return torch.stack([(p.grad * pattern(p.grad.shape, by)).sum() for p in net.parameters() for by in (11, 7)])


def layer(name, net, packed, two):
    fill(net)
    x = pattern((B, T, IN), 5).requires_grad_()
    states = tuple(pattern((net.num_layers * (1 + net.bidirectional), B, H), 3 + k).requires_grad_() for k in range(2 if two else 1))
    given = states if two else states[0]
    if packed:
        y, last = net(nn.utils.rnn.pack_padded_sequence(x, LENGTHS, batch_first=True, enforce_sorted=False), given)
        y, _ = nn.utils.rnn.pad_packed_sequence(y, batch_first=True, total_length=T)
    else:
        y, last = net(x, given)
    last = last if two else (last,)
    loss = (y * pattern(y.shape, 11)).sum() + sum((s * pattern(s.shape, 7)).sum() for s in last)
    loss.backward()
    text = line(name + "_y", y) + line(name + "_x", x.grad) + line(name + "_parameters", digest(net))
    for k, s in enumerate(last):
        text += line(name + "_last" + "hc"[k], s) + line(name + "_first" + "hc"[k], states[k].grad)
    return text


def cell(name, net, two):
    fill(net)
    x = pattern((B, IN), 5).requires_grad_()
    states = [pattern((B, H), 3 + k).requires_grad_() for k in range(2 if two else 1)]
    last = net(x, tuple(states) if two else states[0])
    last = last if two else (last,)
    sum((s * pattern(s.shape, 7)).sum() for s in last).backward()
    return line(name + "_y", last[0]) + line(name + "_x", x.grad) + line(name + "_parameters", digest(net))


class Language(nn.Module):
    def __init__(self, kind):
        super().__init__()
        self.embedding = nn.Embedding(7, 5)
        self.rnn = kind(5, 6, num_layers=2, batch_first=True)
        self.head = nn.Linear(6, 7)

    def forward(self, tokens, states):
        y, states = self.rnn(self.embedding(tokens), states)
        return self.head(y), states


def losses(name, kind):
    net, values, states = Language(kind), [], None
    fill(net)
    adam = torch.optim.Adam(net.parameters(), lr=0.03)
    for step in range(10):
        ids = torch.tensor([[(b * 3 + (step * 8 + t) ** 2) % 7 for t in range(9)] for b in range(4)])
        logits, states = net(ids[:, :8], states)
        states = tuple(s.detach() for s in states) if isinstance(states, tuple) else states.detach()
        loss = F.cross_entropy(logits.reshape(-1, 7), ids[:, 1:].reshape(-1))
        adam.zero_grad()
        loss.backward()
        adam.step()
        values.append(loss.detach())
    return line(name + "_losses", torch.stack(values))


two_ways = dict(num_layers=2, bidirectional=True, batch_first=True)
with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "recurrent.inc"), "w", encoding="utf-8") as out:
    out.write("/* Written by make_recurrent.py with PyTorch " + torch.__version__.split("+")[0] + ": do not edit. */\n")
    out.write(layer("lstm", nn.LSTM(IN, H, num_layers=2, batch_first=True), False, True))
    out.write(layer("lstm_packed", nn.LSTM(IN, H, **two_ways), True, True))
    out.write(layer("gru", nn.GRU(IN, H, **two_ways), False, False))
    out.write(layer("gru_packed", nn.GRU(IN, H, num_layers=1, batch_first=True), True, False))
    out.write(layer("rnn", nn.RNN(IN, H, bias=False, **two_ways), True, False))
    out.write(layer("relu", nn.RNN(IN, H, nonlinearity="relu", batch_first=True), False, False))
    out.write(cell("lstm_cell", nn.LSTMCell(IN, H), True))
    out.write(cell("gru_cell", nn.GRUCell(IN, H), False))
    out.write(cell("rnn_cell", nn.RNNCell(IN, H), False))
    out.write(losses("lstm", nn.LSTM) + losses("gru", nn.GRU))
