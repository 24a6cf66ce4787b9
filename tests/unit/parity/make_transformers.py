#!/usr/bin/env python3
"""Writes transformers.inc into this folder, for test_transformers.c: PyTorch's results for a Llama written by hand, for
its own encoder and decoder layers, and for attention with a mask. Parameters are the numbers of pattern(), as in the
test, in the order of Weft's module tree.

    python make_transformers.py
"""
import os

import torch
import torch.nn.functional as F

VOCAB, TIME, WIDTH, HEADS, KV_HEADS, LAYERS, HIDDEN = 11, 6, 16, 4, 2, 2, 12


def pattern(number, shape, around=0.0):
    n = 1
    for extent in shape:
        n *= extent
    values = [((i * (5 + 2 * number) + 3 * number) % 23 - 11) / 44 + around for i in range(n)]
    return torch.tensor(values, dtype=torch.float32).reshape(shape).requires_grad_()


def tree(shapes):
    """Parameters by name. The weights of norms are around 1."""
    return {name: pattern(i, shape, 1.0 if "ln" in name and "weight" in name else 0.0) for i, (name, shape) in enumerate(shapes)}


# ---- Llama ----


def llama_shapes():
    kv = KV_HEADS * (WIDTH // HEADS)
    yield "wte", (VOCAB, WIDTH)
    for i in range(LAYERS):
        yield f"{i}.ln_1.weight", (WIDTH,)
        yield f"{i}.c_attn", (WIDTH + 2 * kv, WIDTH)
        yield f"{i}.attn.c_proj", (WIDTH, WIDTH)
        yield f"{i}.ln_2.weight", (WIDTH,)
        yield f"{i}.c_fc", (2 * HIDDEN, WIDTH)
        yield f"{i}.mlp.c_proj", (WIDTH, HIDDEN)
    yield "ln_f.weight", (WIDTH,)
    yield "lm_head", (VOCAB, WIDTH)


def rms(x, weight):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * weight


def rotate(x, interleaved):
    d = x.shape[-1]
    rate = 1.0 / (10000 ** (torch.arange(0, d, 2, dtype=torch.float32) / d))
    angle = torch.outer(torch.arange(x.shape[-2], dtype=torch.float32), rate)
    if interleaved:
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], d // 2, 2).contiguous())
        return torch.view_as_real(pairs * torch.polar(torch.ones_like(angle), angle)).flatten(-2)
    half = torch.cat((-x[..., d // 2 :], x[..., : d // 2]), -1)
    return x * torch.cat((angle, angle), -1).cos() + half * torch.cat((angle, angle), -1).sin()


def llama(p, tokens, interleaved=False):
    batch, time = tokens.shape
    d = WIDTH // HEADS
    x = p["wte"][tokens]
    for i in range(LAYERS):
        h = rms(x, p[f"{i}.ln_1.weight"]) @ p[f"{i}.c_attn"].T
        q, k, v = h.split((WIDTH, KV_HEADS * d, KV_HEADS * d), -1)
        q = rotate(q.reshape(batch, time, HEADS, d).transpose(1, 2), interleaved)
        k = rotate(k.reshape(batch, time, KV_HEADS, d).transpose(1, 2), interleaved).repeat_interleave(HEADS // KV_HEADS, 1)
        v = v.reshape(batch, time, KV_HEADS, d).transpose(1, 2).repeat_interleave(HEADS // KV_HEADS, 1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(batch, time, WIDTH)
        x = x + y @ p[f"{i}.attn.c_proj"].T
        gate, up = (rms(x, p[f"{i}.ln_2.weight"]) @ p[f"{i}.c_fc"].T).chunk(2, -1)
        x = x + (F.silu(gate) * up) @ p[f"{i}.mlp.c_proj"].T
    return rms(x, p["ln_f.weight"]) @ p["lm_head"].T


def tokens_of(by):
    return torch.tensor([[(b * 4 + t * by + t * t) % VOCAB for t in range(TIME)] for b in range(2)])


# ---- PyTorch's layers ----


def block_shapes(cross):
    yield "ln_1.weight", (WIDTH,)
    yield "ln_1.bias", (WIDTH,)
    yield "c_attn.weight", (3 * WIDTH, WIDTH)
    yield "c_attn.bias", (3 * WIDTH,)
    yield "c_proj.weight", (WIDTH, WIDTH)
    yield "c_proj.bias", (WIDTH,)
    if cross:
        yield "ln_cross.weight", (WIDTH,)
        yield "ln_cross.bias", (WIDTH,)
        yield "cross.c_attn.weight", (2 * WIDTH, WIDTH)
        yield "cross.c_attn.bias", (2 * WIDTH,)
        yield "cross.c_proj.weight", (WIDTH, WIDTH)
        yield "cross.c_proj.bias", (WIDTH,)
        yield "q_attn.weight", (WIDTH, WIDTH)
        yield "q_attn.bias", (WIDTH,)
    yield "ln_2.weight", (WIDTH,)
    yield "ln_2.bias", (WIDTH,)
    yield "c_fc.weight", (HIDDEN, WIDTH)
    yield "c_fc.bias", (HIDDEN,)
    yield "mlp.c_proj.weight", (WIDTH, HIDDEN)
    yield "mlp.c_proj.bias", (WIDTH,)


def assign(to, values):
    with torch.no_grad():
        for parameter, value in values:
            parameter.copy_(value)


def fill(layer, p, cross):
    for kind in ("weight", "bias"):
        pairs = [(getattr(layer.self_attn, "in_proj_" + kind), p["c_attn." + kind]), (getattr(layer.self_attn.out_proj, kind), p["c_proj." + kind]),
                 (getattr(layer.linear1, kind), p["c_fc." + kind]), (getattr(layer.linear2, kind), p["mlp.c_proj." + kind]),
                 (getattr(layer.norm1, kind), p["ln_1." + kind]), (getattr(layer.norm3 if cross else layer.norm2, kind), p["ln_2." + kind])]
        if cross:
            pairs += [(getattr(layer.norm2, kind), p["ln_cross." + kind]), (getattr(layer.multihead_attn.out_proj, kind), p["cross.c_proj." + kind]),
                      (getattr(layer.multihead_attn, "in_proj_" + kind), torch.cat((p["q_attn." + kind], p["cross.c_attn." + kind])))]
        assign(layer, pairs)


def layers(norm_first):
    """An encoder layer with padding, and a decoder layer that attends to its result."""
    options = dict(d_model=WIDTH, nhead=HEADS, dim_feedforward=HIDDEN, dropout=0.0, batch_first=True, norm_first=norm_first)
    encoder, decoder = torch.nn.TransformerEncoderLayer(**options), torch.nn.TransformerDecoderLayer(**options)
    fill(encoder, tree(block_shapes(False)), False)
    fill(decoder, tree(block_shapes(True)), True)
    source, target = pattern(3, (2, TIME, WIDTH)), pattern(8, (2, 4, WIDTH))
    padding = torch.tensor([[False] * TIME, [False] * 4 + [True] * 2])  # PyTorch hides what is True
    memory = encoder(source, src_key_padding_mask=padding)
    causal = torch.triu(torch.full((4, 4), float("-inf")), 1)
    y = decoder(target, memory, tgt_mask=causal, memory_key_padding_mask=padding)
    (y * pattern(5, y.shape).detach()).sum().backward()
    return [("y", y), ("source", source.grad), ("target", target.grad), ("q_attn", decoder.multihead_attn.in_proj_weight.grad[:WIDTH])]


def masked():
    """Attention with numbers added by head and position: one is -inf, a row is -1e9, a row sees no key."""
    q, k, v = pattern(1, (2, 2, 3, 4)), pattern(2, (2, 2, 5, 4)), pattern(3, (2, 2, 5, 4))
    mask = pattern(4, (2, 3, 5)).detach()
    mask[0, 1], mask[0, 0, 2], mask[1, 2] = -1e9, -torch.inf, -torch.inf
    mask.requires_grad_()
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
    (y * 100 * pattern(5, y.shape).detach()).sum().backward()
    return [("y", y), ("q", q.grad), ("k", k.grad), ("v", v.grad), ("mask", mask.grad)]


def line(name, values):
    numbers = ", ".join(f"{float(v):.8e}f" if abs(float(v)) < 1e-4 else f"{float(v):.9g}f" for v in values.detach().flatten())
    return f"static const float {name}[] = {{{numbers}}};\n"


with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "transformers.inc"), "w", encoding="utf-8") as out:
    out.write("/* Written by make_transformers.py with PyTorch " + torch.__version__.split("+")[0] + ": do not edit. */\n")
    p = tree(llama_shapes())
    logits = llama(p, tokens_of(3))
    out.write(line("llama_logits", logits))
    F.cross_entropy(logits.flatten(0, 1), tokens_of(5).flatten()).backward()
    out.write(line("llama_c_attn", p["0.c_attn"].grad) + line("llama_c_fc", p["1.c_fc"].grad))
    out.write(line("llama_interleaved", llama(p, tokens_of(3), True)))
    p, losses = tree(llama_shapes()), []
    optimizer = torch.optim.AdamW(p.values(), lr=0.01, weight_decay=0.0)
    for _ in range(10):
        optimizer.zero_grad()
        loss = F.cross_entropy(llama(p, tokens_of(3)).flatten(0, 1), tokens_of(5).flatten(), label_smoothing=0.1)
        loss.backward()
        optimizer.step()
        losses.append(loss.detach())
    out.write(line("llama_losses", torch.stack(losses)))
    for name, values in masked():
        out.write(line(f"masked_{name}", values))
    for before, norm_first in (("post", False), ("pre", True)):
        for name, values in layers(norm_first):
            out.write(line(f"{before}_{name}", values))
