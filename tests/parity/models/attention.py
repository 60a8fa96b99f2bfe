# Attention in the spellings that real models use: the fused op, nn layers, and by hand.

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class HandWritten(nn.Module):
    """softmax(q kT / sqrt(d)) v over separate projections; `mask` names how it is masked."""

    def __init__(self, size: int, heads: int, mask: str = "none"):
        super().__init__()
        self.heads, self.head_size, self.mask = heads, size // heads, mask
        self.query, self.key, self.value = (nn.Linear(size, size) for _ in range(3))
        self.out = nn.Linear(size, size)

    def split(self, x):
        return x.view(x.size(0), x.size(1), self.heads, self.head_size).transpose(1, 2)

    def forward(self, x, mask=None):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.head_size)
        if self.mask == "add":
            scores = scores + mask
        elif self.mask == "fill":
            scores = scores.masked_fill(mask == 0, float("-inf"))
        elif self.mask == "causal":
            length = x.size(1)
            upper = torch.ones(length, length, dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(upper, torch.finfo(scores.dtype).min)
        weights = F.softmax(scores, dim=-1)
        context = torch.matmul(weights, v).transpose(1, 2).contiguous()
        return self.out(context.view(x.size(0), x.size(1), -1))


class PackedQkv(nn.Module):
    """One projection for q, k and v, split in the way of GPT-2 or of timm."""

    def __init__(self, size: int, heads: int, style: str):
        super().__init__()
        self.heads, self.style = heads, style
        self.qkv = nn.Linear(size, 3 * size)
        self.out = nn.Linear(size, size)

    def forward(self, x):
        batch, length, size = x.shape
        if self.style == "chunk":
            q, k, v = (part.reshape(batch, length, self.heads, -1).transpose(1, 2)
                       for part in self.qkv(x).chunk(3, dim=-1))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            qkv = self.qkv(x).reshape(batch, length, 3, self.heads, size // self.heads).permute(2, 0, 3, 1, 4)
            q, k, v = qkv.unbind(0)
            y = ((q * (size // self.heads) ** -0.5) @ k.transpose(-2, -1)).softmax(dim=-1) @ v
        return self.out(y.transpose(1, 2).reshape(batch, length, size))


class EinsumAttention(nn.Module):
    def __init__(self, size: int, heads: int):
        super().__init__()
        scale = size**-0.5
        self.wq, self.wk, self.wv = (nn.Parameter(torch.randn(heads, size, size // heads) * scale) for _ in range(3))
        self.wo = nn.Parameter(torch.randn(heads, size // heads, size) * scale)

    def forward(self, x):
        q = torch.einsum("bld,hde->bhle", x, self.wq)
        k = torch.einsum("bld,hde->bhle", x, self.wk)
        v = torch.einsum("bld,hde->bhle", x, self.wv)
        weights = torch.einsum("bhqe,bhke->bhqk", q, k).mul(q.shape[-1] ** -0.5).softmax(-1)
        return torch.einsum("bhqk,bhke,hed->bqd", weights, v, self.wo)


class RelativeBias(nn.Module):
    """A learned bias for each relative distance, looked up with an index buffer."""

    def __init__(self, size: int, heads: int, length: int):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(size, 3 * size, bias=False)
        self.table = nn.Parameter(torch.randn(2 * length - 1, heads))
        position = torch.arange(length)
        self.register_buffer("index", position[:, None] - position[None, :] + length - 1)

    def forward(self, x):
        batch, length, size = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        bias = self.table[self.index[:length, :length]].permute(2, 0, 1).unsqueeze(0)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).flatten(2)


class CrossAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True, kdim=12, vdim=10)

    def forward(self, query, key, value, padding):
        return self.attention(query, key, value, key_padding_mask=padding, need_weights=True)


class LinearAttention(nn.Module):
    """Kernelized attention: no softmax over positions, cost linear in the length."""

    def forward(self, q, k, v):
        q, k = F.elu(q) + 1, F.elu(k) + 1
        summary = k.transpose(-1, -2) @ v
        return (q @ summary) / (q @ k.sum(-2).unsqueeze(-1) + 1e-6)


def grouped_query(q, k, v):
    repeats = q.shape[1] // k.shape[1]
    k = k[:, :, None].expand(-1, -1, repeats, -1, -1).flatten(1, 2)
    v = v.repeat_interleave(repeats, dim=1)
    return F.scaled_dot_product_attention(q, k, v)


def heads(batch=2, count=4, length=6, size=8):
    return torch.randn(batch, count, length, size)


def tokens(batch=2, length=6, size=16):
    return call(torch.randn(batch, length, size))


BATCH, LENGTH = Dim("batch", min=1, max=16), Dim("length", min=2, max=64)
SIZES = ((2, 6), (1, 2), (3, 21))

CASES = [
    Case("sdpa", apply(F.scaled_dot_product_attention), lambda: call(heads(), heads(), heads())),
    Case("sdpa_mask", apply(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=0.2)),
         lambda: call(heads(), heads(), heads(), torch.randn(2, 1, 6, 6))),
    Case("sdpa_bool_mask", apply(lambda q, k, v, mask: F.scaled_dot_product_attention(q, k, v, mask)),
         lambda: call(heads(), heads(length=5), heads(length=5), torch.rand(2, 1, 1, 5) < 0.9)),
    Case("sdpa_causal", apply(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True)),
         lambda: call(heads(), heads(), heads())),
    Case("sdpa_grouped_query", apply(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, enable_gqa=True)),
         lambda: call(heads(count=8), heads(count=2), heads(count=2))),
    Case("sdpa_dropout_train", apply(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, dropout_p=0.2)),
         lambda: call(heads(), heads(), heads()), mode="train", has_eval_form=False),
    Case("grouped_query_by_hand", apply(grouped_query), lambda: call(heads(count=8), heads(count=2), heads(count=2))),
    Case("attention_by_hand", lambda: HandWritten(16, 4), tokens, forms=("core",)),
    Case("attention_by_hand_dynamic", lambda: HandWritten(16, 4), tokens, variants=SIZES,
         dynamic={"x": {0: BATCH, 1: LENGTH}}),
    Case("attention_mask_add", lambda: HandWritten(16, 4, "add"),
         lambda: call(torch.randn(2, 6, 16), torch.zeros(2, 1, 1, 6).masked_fill(torch.rand(2, 1, 1, 6) < 0.3, -1e4))),
    Case("attention_mask_fill", lambda: HandWritten(16, 4, "fill"),
         lambda: call(torch.randn(2, 6, 16), mask=torch.tensor([[1, 1, 1, 1, 1, 0], [1, 1, 1, 0, 0, 0]])[:, None, None])),
    Case("attention_causal_dynamic", lambda: HandWritten(16, 2, "causal"), tokens, variants=SIZES,
         dynamic={"x": {0: BATCH, 1: LENGTH}}),
    Case("attention_packed_chunk", lambda: PackedQkv(16, 4, "chunk"), tokens),
    Case("attention_packed_permute", lambda: PackedQkv(16, 4, "permute"), tokens, variants=SIZES,
         dynamic={"x": {0: BATCH, 1: LENGTH}}, forms=("core",)),
    Case("attention_einsum", lambda: EinsumAttention(16, 4), tokens),
    Case("attention_relative_bias", lambda: RelativeBias(16, 4, 12), tokens),
    Case("attention_linear", LinearAttention, lambda: call(heads(), heads(), heads())),
    Case("multihead_attention", lambda: nn.MultiheadAttention(16, 4),
         lambda: call(*(torch.randn(5, 2, 16) for _ in range(3)), need_weights=False)),
    Case("multihead_attention_cross", CrossAttention,
         lambda: call(torch.randn(2, 5, 16), torch.randn(2, 7, 12), torch.randn(2, 7, 10),
                      torch.tensor([[False] * 7, [False] * 4 + [True] * 3]))),
    Case("transformer_encoder_layer", lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), tokens,
         forms=("core",)),
    Case("transformer_encoder_layer_no_grad", lambda: nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), tokens,
         grad=False),
    Case("transformer_encoder_norm_first", lambda: nn.TransformerEncoderLayer(
        16, 4, 32, batch_first=True, norm_first=True, activation="gelu"), tokens, variants=SIZES,
        dynamic={"src": {0: BATCH, 1: LENGTH}}),
    Case("transformer_decoder_layer", lambda: nn.TransformerDecoderLayer(16, 2, 32),
         lambda: call(torch.randn(4, 2, 16), torch.randn(6, 2, 16),
                      tgt_mask=nn.Transformer.generate_square_subsequent_mask(4))),
]
