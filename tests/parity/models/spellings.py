# What libraries have an op for, written out the way people do: each is what one of the passes looks for, and some are what
# it must tell apart.

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class Norms(nn.Module):
    """Layer norm with the weight before and behind the root, RMS norm with the weight in front; one over channels."""

    def __init__(self, size: int):
        super().__init__()
        self.gain = nn.Parameter(torch.randn(size))
        self.bias = nn.Parameter(torch.randn(size))

    def forward(self, x):
        mean, variance = x.mean(-1, keepdim=True), x.var(-1, unbiased=False, keepdim=True)
        y = self.gain * ((x - mean) / (variance + 1e-5).sqrt()) + self.bias
        y = self.gain * (y - y.mean(-1, keepdim=True)) * torch.rsqrt(y.var(-1, correction=0, keepdim=True) + 1e-6)
        z = self.gain * y * torch.rsqrt((y**2).mean(-1, keepdim=True) + 1e-6)
        # The unbiased deviation, and epsilon outside of the root: no layer norm.
        return y, z, self.gain * (z - z.mean(-1, keepdim=True)) / (z.std(-1, keepdim=True) + 1e-6) + self.bias


class Tokens(nn.Module):
    """A learned token repeated for each element of the batch."""

    def __init__(self):
        super().__init__()
        self.token = nn.Parameter(torch.randn(1, 1, 8))

    def forward(self, x):
        return torch.cat([self.token.repeat(x.shape[0], 1, 1), x, x.mean(1, keepdim=True).repeat(1, 2, 1)], dim=1)


class Pyramid(nn.Module):
    """Sizes asked of what a convolution has made."""

    def __init__(self):
        super().__init__()
        self.down, self.up = nn.Conv2d(3, 6, 3, stride=2, padding=1), nn.Conv2d(6, 4, 1)

    def forward(self, x):
        small = self.down(x)
        height, width = small.shape[-2:]
        wide = F.relu(self.up(F.relu(small)))
        return F.interpolate(wide, size=(2 * height, 2 * width)) + F.adaptive_avg_pool2d(x, 1).mean(1, keepdim=True)


class SharedNorm(nn.Module):
    """One batch norm called twice: the second call reads what the first has updated."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Conv2d(3, 6, 3), nn.Conv2d(6, 6, 1)
        self.norm = nn.BatchNorm2d(6)

    def forward(self, x):
        return self.norm(self.second(F.relu(self.norm(self.first(x)))))


class NormInRegion(nn.Module):
    """Statistics updated inside of a region without gradients and one with autocast."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(6, 6)
        self.norm, self.other, self.drop = nn.BatchNorm1d(6), nn.BatchNorm1d(6), nn.Dropout(0.5)

    def forward(self, x):
        with torch.no_grad():
            y = self.drop(self.norm(x))
        with torch.autocast("cpu", dtype=torch.bfloat16):
            z = self.other(self.linear(y))
        return z.float() + self.norm(x)


def grids(x):
    """Quotients that are rounded, compared or made integers: an ulp is a whole step."""
    buckets = torch.log(x / 8) / math.log(128 / 8) * 8
    return (x / 41).floor().int(), (x * 0.15 / 0.3).round().int(), (x / 55).long(), x / 47 >= 1, buckets.long()


class EinsumAttention(nn.Module):
    def forward(self, q, k, v, hidden):
        scores = torch.einsum("blhd,bmhd->bhlm", q, k) / q.shape[-1] ** 0.5
        weights = scores.masked_fill(hidden[:, None, None], torch.finfo(q.dtype).min).softmax(-1)
        return torch.einsum("bhlm,bmhd->blhd", weights, v)


def softmax_by_hand(x):
    shifted = torch.exp(x - x.max(-1, keepdim=True).values)
    first = torch.exp(x - x.amax(1, keepdim=True))
    plain = torch.exp(x)
    return shifted / shifted.sum(-1, keepdim=True), first / first.sum(1, keepdim=True), plain / plain.sum(-1, keepdim=True)


def hard_by_hand(x):
    y = x * F.relu6(x + 3) / 6
    z = y * (torch.clamp(y + 3, 0, 6) / 6)
    return torch.clamp(z, min=0).clamp(max=6), F.hardtanh(x, 0, 6), (F.relu(x + 3).clamp(max=6) / 6), x.clamp(-1, 6)


LENGTH = Dim("length", min=2, max=32)

CASES = [
    Case("norms_by_hand", lambda: Norms(12), lambda: call(torch.randn(3, 5, 12)), forms=("core",)),
    Case("tokens_by_repeat", Tokens, lambda b: call(torch.randn(b, 4, 8)), variants=((3,), (1,), (6,)),
         dynamic={"x": {0: Dim("batch", min=1, max=16)}}),
    Case("sizes_of_convolutions", Pyramid, lambda h, w: call(torch.randn(2, 3, 2 * h, 2 * w)),
         variants=((4, 5), (2, 2), (7, 3)),
         dynamic={"x": {2: 2 * Dim("rows", min=2, max=16), 3: 2 * Dim("columns", min=2, max=16)}}),
    Case("softmax_by_hand", apply(softmax_by_hand), lambda: call(torch.randn(3, 4, 6)), forms=("core",)),
    Case("hard_activations_by_hand", apply(hard_by_hand), lambda: call(torch.randn(4, 8) * 4), forms=("core",)),
    Case("grids", apply(grids), lambda: call(torch.arange(1.0, 400.0))),
    Case("attention_by_einsum", EinsumAttention,
         lambda n: call(torch.randn(2, n, 3, 4), torch.randn(2, n, 3, 4), torch.randn(2, n, 3, 4), torch.rand(2, n) < 0.3),
         variants=((5,), (2,), (9,)), dynamic={name: {1: LENGTH} for name in ("q", "k", "v", "hidden")}),
    Case("batch_norm_shared_train", SharedNorm, lambda: call(torch.randn(3, 3, 6, 6)), mode="train", steps=3,
         forms=("core",)),
    Case("batch_norm_region_train", NormInRegion, lambda: call(torch.randn(5, 6)), mode="train", steps=3),
]
