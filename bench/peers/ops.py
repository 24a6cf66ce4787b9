#!/usr/bin/env python3
"""The single operations of `weft bench elementwise` and `matmul`, and of bench/operations.c, in torch, one JSON line each.

    ops.py elementwise [--compile]
    ops.py matmul
    ops.py sort
    ops.py convolutions

Small matmuls are not measured here, because a call from Python takes longer than they do (see matmuls.h)."""

import torch
from torch.nn import functional

import peer

N = 4096
PRODUCTS = [128, 256, 512, 1024, 2048, 4096]


def chains():
    w, b = torch.randn(N), torch.randn(N)
    return {"add": lambda x: x + x,
            "gelu": lambda x: functional.gelu(x * w + b, approximate="tanh"),
            "softmax": lambda x: torch.softmax(x, 1),
            "layernorm": lambda x: functional.layer_norm(x, (N,), w, b),
            "sumrow": lambda x: x.sum(1),
            "sumcol": lambda x: x.sum(0)}


@torch.inference_mode()
def elementwise(args):
    x = torch.rand(N, N) * 2 - 1
    for name, chain in chains().items():
        run = peer.compiled(args, chain)
        seconds, _ = peer.timed(args, lambda: run(x) is None, args.steps or 15, 3)
        peer.report(f"ew_{name}_4096", args, seconds)


def adamw(args):
    parameter = torch.nn.Parameter(torch.randn(N, N))
    parameter.grad = torch.randn(N, N)
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, weight_decay=0.1, fused=True)
    seconds, _ = peer.timed(args, optimizer.step, args.steps or 15, 3)
    peer.report("ew_adamw_4096", args, seconds)


@torch.inference_mode()
def matmuls(args):
    for n in PRODUCTS:
        a, b, c = torch.rand(n, n), torch.rand(n, n), torch.empty(n, n)
        parts = max(1, int(2e9 / n**3))

        def step():
            for _ in range(parts):
                torch.matmul(a, b, out=c)
        seconds, _ = peer.timed(args, step, args.steps or (3 if n > 2048 else 7), 1)
        peer.report(f"gemm_f32_n{n}", args, seconds, parts=parts)


def sort_cases():
    """Returns {name: (rows, columns, whether to compute the gradient of the values, the operation)}."""
    million = 1000000
    return {"sort_1x1m": (1, million, False, lambda x: torch.sort(x, dim=1, stable=True)[0]),
            "sort_64x50257": (64, 50257, False, lambda x: torch.sort(x, dim=1, stable=True)[0]),
            "sort_10000x100": (10000, 100, False, lambda x: torch.sort(x, dim=1, stable=True)[0]),
            "sort_gradient_1x1m": (1, million, True, lambda x: torch.sort(x, dim=1, stable=True)[0]),
            "top50_64x50257": (64, 50257, False, lambda x: torch.topk(x, 50, 1)[0]),
            "top10_1x1m": (1, million, False, lambda x: torch.topk(x, 10, 1)[0]),
            "top50_gradient_64x50257": (64, 50257, True, lambda x: torch.topk(x, 50, 1)[0]),
            "take_gradient_1000x1000": (1000, 1000, True, lambda x: torch.gather(x, 1, torch.argsort(x, dim=1, stable=True))),
            "cumsum_1x10m": (1, 10 * million, False, lambda x: torch.cumsum(x, 1)),
            "cumsum_1mx8": (million, 8, False, lambda x: torch.cumsum(x, 1)),
            "cumsum_down_4096x4096": (4096, 4096, False, lambda x: torch.cumsum(x, 0)),
            "cumprod_1000x1000": (1000, 1000, False, lambda x: torch.cumprod(x, 1)),
            "cumprod_gradient_1000x1000": (1000, 1000, True, lambda x: torch.cumprod(x, 1)),
            "argmax_1000x1000": (1000, 1000, False, lambda x: torch.argmax(x, 1)),
            "argmax_1x1m": (1, million, False, lambda x: torch.argmax(x, 1)),
            "where_1000x1000": (1000, 1000, False, lambda x: torch.where(x > -x, x, x.exp())),
            "masked_fill_1000x1000": (1000, 1000, False, lambda x: x.masked_fill(x > -x, -1)),
            "one_hot_10000x100": (1, 10000, False,
                                  lambda x: functional.one_hot((x.abs() * 99).long(), 100).float())}


def sorts(args):
    for name, (rows, columns, gradient, run) in sort_cases().items():
        if args.only and args.only not in name:
            continue
        x = (torch.rand(rows, columns) * 2 - 1).requires_grad_(gradient)
        weights = torch.rand(run(x).shape) if gradient else None

        def step():
            if gradient:
                torch.autograd.grad((run(x) * weights).sum(), x)
            else:
                with torch.inference_mode():
                    run(x)
        seconds, _ = peer.timed(args, step, args.steps or 9, 2)
        peer.report(f"sort_{name}", args, seconds)


# name: images, channels, image size, output channels, kernel size, stride, groups
LAYERS = {"1x1_64_256_28": (32, 64, 28, 256, 1, 1, 1), "1x1_256_64_28": (32, 256, 28, 64, 1, 1, 1),
          "1x1_512_512_14": (16, 512, 14, 512, 1, 1, 1), "3x3_16_16_32": (128, 16, 32, 16, 3, 1, 1),
          "3x3_32_64_14": (64, 32, 14, 64, 3, 1, 1), "3x3_256_256_14": (16, 256, 14, 256, 3, 1, 1),
          "3x3_512_512_7": (16, 512, 7, 512, 3, 1, 1), "depthwise_64_56": (32, 64, 56, 64, 3, 1, 64),
          "depthwise_128_28_by2": (32, 128, 28, 128, 3, 2, 128), "depthwise_512_7": (32, 512, 7, 512, 3, 1, 512)}


def some_images(*shape):
    return (torch.rand(*shape) * 2 - 1).contiguous(memory_format=torch.channels_last)


def convolutions(args):
    for name, (n, channels, extent, out, size, stride, groups) in LAYERS.items():
        x, w = some_images(n, channels, extent, extent), some_images(out, channels // groups, size, size)
        y = functional.conv2d(x, w, None, stride, size // 2, 1, groups)
        g = some_images(*y.shape)

        def back(of_x, x=x, w=w, g=g, stride=stride, size=size, groups=groups):
            return torch.ops.aten.convolution_backward(g, x, w, None, [stride] * 2, [size // 2] * 2, [1, 1], False,
                                                       [0, 0], groups, [of_x, not of_x, False])
        passes = {"forward": lambda: functional.conv2d(x, w, None, stride, size // 2, 1, groups),
                  "input": lambda: back(True), "weight": lambda: back(False)}
        for what, run in passes.items():
            if args.only and args.only not in f"conv_{name}_{what}":
                continue
            seconds, _ = peer.timed(args, lambda: run() is None, args.steps or 15, 3)
            peer.report(f"conv_{name}_{what}", args, seconds)


def main():
    args = peer.arguments(["elementwise", "matmul", "sort", "convolutions"], __doc__.split("\n", maxsplit=1)[0])
    if args.workload == "matmul":
        matmuls(args)
    elif args.workload == "sort":
        sorts(args)
    elif args.workload == "convolutions":
        convolutions(args)
    else:
        elementwise(args)
        adamw(args)


if __name__ == "__main__":
    main()
