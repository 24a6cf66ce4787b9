#!/usr/bin/env python3
"""The single operations of `weft bench elementwise` and `weft bench products` in torch, one JSON line each.

    ops.py elementwise [--compile]
    ops.py products

Small products are not here: a call from Python costs more than they do (see products.c)."""

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
        seconds, _ = peer.timed(lambda: run(x) is None, args.steps or 15, 3)
        peer.report(f"ew_{name}_4096", args, seconds)


def adamw(args):
    parameter = torch.nn.Parameter(torch.randn(N, N))
    parameter.grad = torch.randn(N, N)
    optimizer = torch.optim.AdamW([parameter], lr=1e-3, weight_decay=0.1, fused=True)
    seconds, _ = peer.timed(optimizer.step, args.steps or 15, 3)
    peer.report("ew_adamw_4096", args, seconds)


@torch.inference_mode()
def products(args):
    for n in PRODUCTS:
        a, b, c = torch.rand(n, n), torch.rand(n, n), torch.empty(n, n)
        parts = max(1, int(2e9 / n**3))

        def step():
            for _ in range(parts):
                torch.matmul(a, b, out=c)
        seconds, _ = peer.timed(step, args.steps or (3 if n > 2048 else 7), 1)
        peer.report(f"gemm_f32_n{n}", args, seconds, parts=parts)


def main():
    args = peer.arguments(["elementwise", "products"], __doc__.split("\n", maxsplit=1)[0])
    if args.workload == "products":
        products(args)
    else:
        elementwise(args)
        adamw(args)


if __name__ == "__main__":
    main()
