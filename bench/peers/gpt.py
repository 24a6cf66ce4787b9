"""A GPT-2 shaped network in torch: norm before attention and MLP, biases, tanh GELU, tied head; training and decoding."""

import torch
from torch import nn
from torch.nn import functional


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norm_attn, self.norm_mlp = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def split(self, x):
        """Returns q, k, v as (B, H, T, D)."""
        batch, length, width = x.shape
        parts = self.qkv(self.norm_attn(x)).view(batch, length, 3, self.heads, width // self.heads)
        return parts.permute(2, 0, 3, 1, 4).unbind(0)

    def join(self, x, seen):
        x = x + self.out(seen.transpose(1, 2).reshape(x.shape))
        return x + self.down(functional.gelu(self.up(self.norm_mlp(x)), approximate="tanh"))

    def forward(self, x):
        q, k, v = self.split(x)
        return self.join(x, functional.scaled_dot_product_attention(q, k, v, is_causal=True))

    def decode(self, x, cache, at):
        """forward() for the tokens from position `at` on. The cache (2, B, H, context, D) holds earlier keys and values."""
        q, k, v = self.split(x)
        end = at + x.shape[1]
        cache[0, :, :, at:end], cache[1, :, :, at:end] = k, v
        seen = functional.scaled_dot_product_attention(q, cache[0, :, :, :end], cache[1, :, :, :end],
                                                       is_causal=x.shape[1] > 1)
        return self.join(x, seen)


class GPT(nn.Module):
    def __init__(self, vocabulary, context, layers, heads, width):
        super().__init__()
        self.tokens, self.places = nn.Embedding(vocabulary, width), nn.Embedding(context, width)
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.cache_shape = (2, 1, heads, context, width // heads)
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                nn.init.normal_(parameter, std=0.02)
            elif name.endswith("bias"):
                nn.init.zeros_(parameter)

    def forward(self, ids, targets):
        x = self.tokens(ids) + self.places.weight[:ids.shape[1]]
        for block in self.blocks:
            x = block(x)
        logits = functional.linear(self.norm(x), self.tokens.weight)
        return functional.cross_entropy(logits.flatten(0, 1), targets.flatten())

    @torch.inference_mode()
    def generate(self, ids, count):
        """Samples tokens that continue ids (1, T)."""
        caches, at, out = [torch.zeros(self.cache_shape) for _ in self.blocks], 0, []
        for _ in range(count):
            x = self.tokens(ids) + self.places.weight[at:at + ids.shape[1]]
            for block, cache in zip(self.blocks, caches):
                x = block.decode(x, cache, at)
            at += ids.shape[1]
            logits = functional.linear(self.norm(x[:, -1]), self.tokens.weight)
            ids = torch.multinomial(torch.softmax(logits, -1), 1)
            out.append(ids)
        return torch.cat(out, 1)
