#!/usr/bin/env python3
"""The training and decoding workloads of `weft bench` in torch, with its fused optimizers.

    train.py mlp [--compile]        # one JSON line

Read next: gpt.py."""

import torch
from torch import nn
from torch.nn import functional

import peer
from gpt import GPT
from llama import Llama


def stepper(optimizer, loss_of, clip=None):
    """Returns a step. The parameters `clip` have their gradient's norm limited to 1."""
    def step():
        optimizer.zero_grad(set_to_none=True)
        loss = loss_of()
        loss.backward()
        if clip:
            nn.utils.clip_grad_norm_(clip, 1.0)
        optimizer.step()
        return loss.detach()
    return step


def xor(args):
    x = torch.tensor([[0., 0.], [0., 1.], [1., 0.], [1., 1.]])
    y = torch.tensor([[0.], [1.], [1.], [0.]])
    net = nn.Sequential(nn.Linear(2, 8), nn.Tanh(), nn.Linear(8, 1))
    run = peer.compiled(args, net)
    sgd = torch.optim.SGD(net.parameters(), lr=0.5, fused=True)
    return stepper(sgd, lambda: functional.binary_cross_entropy_with_logits(run(x), y))


def train_images(args, net, batch, shape, memory=torch.contiguous_format, images=peer.images):
    x, y = images(args)
    x = x.view(len(x), *shape).contiguous(memory_format=memory)
    run = peer.compiled(args, net)

    def batches():
        while True:
            for chosen in torch.randperm(len(x)).split(batch):
                if len(chosen) == batch:
                    yield x[chosen], y[chosen]
    batches = batches()

    def loss():
        images, labels = next(batches)
        return functional.cross_entropy(run(images.contiguous(memory_format=memory)), labels)
    return stepper(torch.optim.Adam(net.parameters(), lr=1e-3, fused=True), loss)


def mlp(args):
    net = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return train_images(args, net, 128, [784])


def cnn(args):
    net = nn.Sequential(nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
                        nn.Flatten(), nn.Linear(3136, 128), nn.ReLU(), nn.Linear(128, 10))
    net = net.to(memory_format=torch.channels_last)
    return train_images(args, net, 64, [1, 28, 28], torch.channels_last)


class LSTM(nn.Module):
    def __init__(self, vocabulary, width, layers):
        super().__init__()
        self.table = nn.Embedding(vocabulary, width)
        self.layers = nn.LSTM(width, width, layers, batch_first=True)
        self.head = nn.Linear(width, vocabulary)

    def forward(self, x, y, states):
        out, states = self.layers(self.table(x), states)
        return functional.cross_entropy(self.head(out).flatten(0, 1), y.flatten()), states


def lstm(args):
    """Trains on parallel streams of a text. Each step continues with the states of the last one."""
    (ids, vocabulary), streams, stretch, width, layers = peer.characters(args), 32, 64, 256, 2
    ids = ids[:len(ids) // streams * streams].view(streams, -1)
    net = LSTM(vocabulary, width, layers)
    run = peer.compiled(args, net)
    states, position = (torch.zeros(layers, streams, width), torch.zeros(layers, streams, width)), 0

    def loss():
        nonlocal states, position
        if position + stretch + 1 > ids.shape[1]:
            position = 0
        x, y = ids[:, position:position + stretch], ids[:, position + 1:position + stretch + 1]
        position += stretch
        value, after = run(x, y, states)
        states = tuple(state.detach() for state in after)
        return value
    return stepper(torch.optim.Adam(net.parameters(), lr=1e-3, fused=True), loss)


class Residual(nn.Module):
    """Two 3 x 3 convolutions with batch norm. The shortcut takes every other pixel and fills new channels with zeros."""

    def __init__(self, channels, out):
        super().__init__()
        self.stride, self.more = out // channels, out - channels
        self.conv1 = nn.Conv2d(channels, out, 3, self.stride, 1, bias=False)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn1, self.bn2 = nn.BatchNorm2d(out), nn.BatchNorm2d(out)

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        if self.more:
            before = self.more // 2
            x = functional.pad(x[:, :, ::self.stride, ::self.stride], (0, 0, 0, 0, before, self.more - before))
        return functional.relu(x + y)


def resnet(args):
    net = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), Residual(16, 16),
                        Residual(16, 32), Residual(32, 64), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    net = net.to(memory_format=torch.channels_last)
    return train_images(args, net, 64, [1, 28, 28], torch.channels_last)


def resnet20(args):
    blocks, channels = [], 16
    for out in (16, 32, 64):
        for _ in range(3):
            blocks.append(Residual(channels, out))
            channels = out
    net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1, bias=False), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))
    net = net.to(memory_format=torch.channels_last)
    return train_images(args, net, 128, [3, 32, 32], torch.channels_last, peer.color_images)


def train_gpt(args, ids, net, batch, context, clip=False):
    run = peer.compiled(args, net)
    window = torch.arange(context)

    def loss():
        places = torch.randint(len(ids) - context - 1, (batch, 1)) + window
        return run(ids[places], ids[places + 1])
    adamw = torch.optim.AdamW(net.parameters(), lr=1e-3, betas=(0.9, 0.99), weight_decay=0.1, fused=True)
    return stepper(adamw, loss, list(net.parameters()) if clip else None)


def chargpt_small(args):
    ids, vocabulary = peer.characters(args)
    return train_gpt(args, ids, GPT(vocabulary, 64, 4, 4, 128), 12, 64)


def chargpt_big(args):
    ids, vocabulary = peer.characters(args)
    return train_gpt(args, ids, GPT(vocabulary, 256, 6, 6, 384), 16, 256)


def llama_small(args):
    ids, vocabulary = peer.characters(args)
    return train_gpt(args, ids, Llama(vocabulary, 64, 4, 4, 2, 128), 12, 64)


def llama(args):
    ids, vocabulary = peer.characters(args)
    return train_gpt(args, ids, Llama(vocabulary, 256, 6, 8, 4, 256), 8, 256)


def gpt2(args):
    return train_gpt(args, torch.randint(50257, (100000,)), GPT(50304, 1024, 12, 12, 768), 4, 64)


def gpt2_full(args):
    return train_gpt(args, torch.randint(50257, (2000000,)), GPT(50304, 1024, 12, 12, 768), 64, 1024, clip=True)


def regression(args, loss, logistic):
    x = torch.randn(1000000, 32)
    y = x @ torch.randn(32, 1) + 0.1 * torch.randn(1000000, 1)
    y = (y > 0).float() if logistic else y
    net = nn.Linear(32, 1)
    run = peer.compiled(args, lambda: loss(net(x), y))
    return stepper(torch.optim.SGD(net.parameters(), lr=0.1, fused=True), run)


def linreg(args):
    return regression(args, functional.mse_loss, False)


def logreg(args):
    return regression(args, functional.binary_cross_entropy_with_logits, True)


def decode(args, net):
    net.eval()
    if args.compile:
        for block in net.blocks:
            block.split, block.join = torch.compile(block.split), torch.compile(block.join)
    prompt = torch.randint(65, (1, 16))

    def step():
        net.generate(prompt, 200)
    return step


def generate_chargpt(args):
    return decode(args, GPT(65, 256, 6, 6, 384))


def generate_gpt2(args):
    return decode(args, GPT(50304, 1024, 12, 12, 768))


# name: the function that makes its step, timed steps, warm-up steps
WORKLOADS = {"xor10000": (xor, 10000, 1), "mlp": (mlp, 400, 20), "cnn": (cnn, 150, 10), "resnet": (resnet, 60, 5), "resnet20": (resnet20, 20, 3),
             "lstm": (lstm, 40, 3),
             "chargpt_small": (chargpt_small, 200, 5),
             "chargpt_big": (chargpt_big, 6, 2), "llama_small": (llama_small, 200, 5), "llama": (llama, 6, 2), "gpt2_b4t64": (gpt2, 6, 2), "gpt2_b64t1024": (gpt2_full, 10, 3),
             "linreg": (linreg, 20, 2),
             "logreg": (logreg, 20, 2), "generate_chargpt": (generate_chargpt, 5, 1),
             "generate_gpt2": (generate_gpt2, 2, 1)}


def main():
    args = peer.arguments(WORKLOADS, __doc__.split("\n", maxsplit=1)[0])
    make, steps, warmup = WORKLOADS[args.workload]
    block = 100 if args.workload == "xor10000" and args.device != "cpu" else 1
    seconds, losses = peer.timed(args, make(args), args.steps or steps, warmup, block)
    peer.report(args.workload, args, seconds, losses)


if __name__ == "__main__":
    main()
