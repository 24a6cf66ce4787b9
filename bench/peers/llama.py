"""A Llama shaped network in torch: RMS norms, rotary positions, grouped-query attention, SwiGLU, tied head."""

import torch
from torch import nn
from torch.nn import functional


def turned(x, cosine, sine):
    """Rotary positions. Channels i and D / 2 + i form a pair, as in Llama's published weights."""
    left, right = x.chunk(2, -1)
    return torch.cat((left * cosine - right * sine, right * cosine + left * sine), -1)


class Block(nn.Module):
    def __init__(self, width, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.hidden = -(-width * 8 // 3 // 32) * 32
        self.norm_attn, self.norm_mlp = nn.RMSNorm(width, eps=1e-5), nn.RMSNorm(width, eps=1e-5)
        self.qkv = nn.Linear(width, (heads + 2 * kv_heads) * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 2 * self.hidden, bias=False), nn.Linear(self.hidden, width, bias=False)

    def forward(self, x, cosine, sine):
        batch, length, _ = x.shape
        parts = self.qkv(self.norm_attn(x)).view(batch, length, -1, self.size).transpose(1, 2)
        q, k, v = parts.split((self.heads, self.kv_heads, self.kv_heads), 1)
        seen = functional.scaled_dot_product_attention(turned(q, cosine, sine), turned(k, cosine, sine), v,
                                                       is_causal=True, enable_gqa=True)
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        gate, up = self.up(self.norm_mlp(x)).chunk(2, -1)
        return x + self.down(functional.silu(gate) * up)


class Llama(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, kv_heads, width):
        super().__init__()
        self.tokens = nn.Embedding(vocabulary, width)
        self.blocks = nn.ModuleList(Block(width, heads, kv_heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width, eps=1e-5)
        size = width // heads
        angles = torch.arange(context)[:, None] * 10000 ** (-torch.arange(0, size, 2) / size)
        self.register_buffer("cosine", angles.cos())
        self.register_buffer("sine", angles.sin())
        for parameter in self.parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)

    def forward(self, ids, targets):
        x = self.tokens(ids)
        for block in self.blocks:
            x = block(x, self.cosine, self.sine)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())
