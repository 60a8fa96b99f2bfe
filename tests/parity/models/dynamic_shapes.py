# Dynamic dimensions and arithmetic on sizes: derived dimensions, ranges, sizes as values.

import math

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call

BATCH = Dim("batch", min=1, max=64)
LENGTH = Dim("length", min=2, max=32)


class SizesAsValues(nn.Module):
    """Sizes used as numbers: scaling, positions, factories, a size among the outputs."""

    def forward(self, x):
        batch, length = x.shape[:2]
        positions = torch.arange(length, dtype=x.dtype) / length
        table = torch.full((batch, length + 1), torch.sym_float(length))
        scaled = x * (1.0 / torch.sym_sqrt(length)) + positions[None, :, None]
        return {"scaled": scaled, "table": table, "root": x * length**-0.5, "count": batch * length, "pairs": length * (length - 1)}


class SizeArithmetic(nn.Module):
    """Every function of sizes that the exported graph has a node for."""

    def forward(self, x):
        b, n = x.shape[:2]
        tables = (torch.zeros(n // 2 + 1, n % 3 + 2), torch.ones(math.trunc(n / 2) + 2, torch.sym_int(n * 0.7) + 2),
                  torch.zeros(n << 1, (n >> 1) + 1), torch.zeros(-n % 4 + 2), torch.full((2,), n / 4), torch.full((2,), n > 4))
        numbers = torch.sym_max(n, 7) - torch.sym_min(b, 3) - (n**2) % 5 + (-n // 3)
        chosen = torch.sym_ite(n > 4, 1, 2) * x
        facts = [torch.sym_ite(fact, n, b) for fact in (torch.sym_not(n > 4), n == 5, n != b, b <= 3, b < n, b >= 2)]
        return tables, x + numbers, chosen, x * torch.sym_float(n) ** 1.5, numbers, facts, torch.tensor([n, b, 2]), n / 2


class Patches(nn.Module):
    """Cut a dynamic image into patches of 4 and put them together again."""

    def forward(self, x):
        b, c, h, w = x.shape
        patches = x.reshape(b, c, h // 4, 4, w // 4, 4).permute(0, 2, 4, 1, 3, 5).reshape(b, (h // 4) * (w // 4), c * 16)
        mixed = patches - patches.mean(1, keepdim=True)
        return mixed.reshape(b, h // 4, w // 4, c, 4, 4).permute(0, 3, 1, 4, 2, 5).reshape(b, c, h, w)


class SlidingWindows(nn.Module):
    def forward(self, x):
        windows = x.unfold(1, 4, 2)
        return windows.mean(-1), windows.shape[1]


class CausalMask(nn.Module):
    def forward(self, x, past):
        queries, keys = x.shape[1], x.shape[1] + past.shape[1]
        mask = torch.full((queries, keys), torch.finfo(x.dtype).min).triu(keys - queries + 1)
        joined = torch.cat([past, x], dim=1)
        return (x @ joined.transpose(1, 2) + mask).softmax(-1) @ joined


class Unbatched(nn.Module):
    """One dynamic dimension in several inputs, in a nested structure."""

    def forward(self, batch):
        words, scores = batch["words"], batch["extra"][0]
        return words.float().mean(1) * scores, torch.ones(words.shape[0] + 2)


class Branches(nn.Module):
    """Python decisions that the declared range makes always true."""

    def forward(self, x):
        if x.shape[0] >= 1 and x.shape[1] > 1:
            x = x + x.shape[0] % 3
        return x.flatten(0, 1).softmax(0) * max(x.shape[0], 2) + min(x.shape[1], 5)


class Bucketed(nn.Module):
    """Relative position buckets as in T5: logarithms and comparisons over dynamic positions."""

    def __init__(self):
        super().__init__()
        self.bias = nn.Embedding(8, 2)

    def forward(self, x):
        position = torch.arange(x.shape[1])
        distance = (position[None, :] - position[:, None]).abs()
        far = 4 + (torch.log(distance.float().clamp(min=1) / 4) / math.log(8) * 4).long()
        bucket = torch.where(distance < 4, distance, far.clamp(max=7))
        return x @ x.transpose(1, 2) + self.bias(bucket).permute(2, 0, 1)[:1]


def cut_in_half(x):
    """Cuts that need checks at run time, since no guard at export can state them."""
    half = x.shape[1] // 2
    return x[:, :half], x[:, half:].sum(1), x.narrow(1, 1, half), x.reshape(x.shape[0], -1)[:, : half + 1]


def rows(n, width=6):
    return torch.randn(n, width)


def sequences(b, n, width=4):
    return call(torch.randn(b, n, width))


SEQUENCES = dict(variants=((3, 5), (1, 2), (4, 32)), dynamic={"x": {0: BATCH, 1: LENGTH}})

CASES = [
    Case("dynamic_mlp", lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)),
         lambda b: call(rows(b)), variants=((4,), (1,), (64,)), dynamic={"input": {0: BATCH}}, forms=("core",)),
    Case("dynamic_auto", lambda: nn.Sequential(nn.Linear(6, 8), nn.ReLU()), lambda b: call(rows(b)),
         variants=((4,), (2,), (100,)), dynamic={"input": {0: Dim.AUTO}}),
    Case("dynamic_unbounded", apply(lambda x: x.cumsum(0)), lambda b: call(rows(b)), variants=((4,), (2,), (500,)),
         dynamic={"args": ({0: Dim.DYNAMIC},)}),
    Case("dynamic_sizes_as_values", SizesAsValues, sequences, **SEQUENCES, forms=("core",)),
    Case("dynamic_size_arithmetic", SizeArithmetic, sequences, **SEQUENCES),
    Case("dynamic_asserts", apply(cut_in_half), sequences, variants=((3, 7), (1, 5), (2, 20)), deferred=True,
         dynamic={"args": ({0: BATCH, 1: Dim("length", min=5, max=32)},)}),
    Case("dynamic_twice", apply(lambda x, y: y.view(-1, 2, 6).sum(1) + x), lambda n: call(rows(n), rows(2 * n)),
         variants=((5,), (2,), (20,)),
         dynamic={"args": ({0: Dim("rows", min=2, max=32)}, {0: 2 * Dim("rows", min=2, max=32)})}),
    Case("dynamic_half", apply(lambda x: (x[: x.shape[0] // 2] + 1, x[x.shape[0] // 2:], x.shape[0] // 2)), lambda n: call(rows(n)),
         variants=((8,), (4,), (30,)), dynamic={"args": ({0: 2 * Dim("half", min=2, max=16)},)}),
    Case("dynamic_plus_one", apply(lambda x, y: x[:, None] - y[1:][None] + y[:-1]), lambda n: call(rows(n), rows(n + 1)),
         variants=((4,), (2,), (16,)),
         dynamic={"args": ({0: Dim("rows", min=2, max=16)}, {0: Dim("rows", min=2, max=16) + 1})}),
    Case("dynamic_concatenated", apply(lambda x, y: (torch.cat([x, y, x]), torch.cat([x, y]).mean(0), x.shape[0] + y.shape[0])),
         lambda n, m: call(rows(n), rows(m)), variants=((3, 4), (1, 1), (9, 2)),
         dynamic={"args": ({0: Dim("first", min=1, max=16)}, {0: Dim("second", min=1, max=16)})}),
    Case("dynamic_patches", Patches, lambda b, h, w: call(torch.randn(b, 3, 4 * h, 4 * w)),
         variants=((2, 3, 4), (1, 2, 2), (3, 5, 3)),
         dynamic={"x": {0: BATCH, 2: 4 * Dim("rows", min=2, max=8), 3: 4 * Dim("columns", min=2, max=8)}}),
    Case("dynamic_windows", SlidingWindows, lambda n: call(torch.randn(2, n)), variants=((11,), (6,), (32,)),
         dynamic={"x": {1: Dim("length", min=6, max=32)}}),
    Case("dynamic_causal_mask", CausalMask, lambda b, n, m: call(torch.randn(b, n, 4), torch.randn(b, m, 4)),
         variants=((2, 3, 5), (1, 1, 1), (3, 8, 2)),
         dynamic={"x": {0: BATCH, 1: Dim("queries", min=1, max=16)}, "past": {0: BATCH, 1: Dim("past", min=1, max=16)}}),
    Case("dynamic_nested", Unbatched,
         lambda b: call({"words": torch.randint(0, 9, (b, 3)), "extra": [torch.rand(b), torch.rand(2)]}),
         variants=((3,), (1,), (12,)), dynamic={"batch": {"words": {0: BATCH}, "extra": [{0: BATCH}, None]}}),
    Case("dynamic_branches", Branches, sequences, **SEQUENCES),
    Case("dynamic_buckets", Bucketed, sequences, **SEQUENCES),
    Case("dynamic_image_classifier", lambda: nn.Sequential(nn.Conv2d(3, 4, 3, stride=2, padding=1), nn.ReLU(),
                                                           nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)),
         lambda b, h, w: call(torch.randn(b, 3, h, w)), variants=((2, 9, 12), (1, 3, 3), (3, 30, 17)),
         dynamic={"input": {0: BATCH, 2: Dim("height", min=3, max=64), 3: Dim("width", min=3, max=64)}}),
    Case("dynamic_integer", apply(lambda x, times: (x * times, x.repeat(2, 1) / (times + 1), times // 2, -times % 4)),
         lambda n: call(rows(3), n), variants=((5,), (2,), (11,)), dynamic={"args": (None, Dim.DYNAMIC)}),
    Case("dynamic_expand", apply(lambda x, y: (x.expand(y.shape[0], -1), x.new_zeros(y.size(0), 3) + y[:, :3],
                                               y.new_ones(y.shape[0] * 2 - 1), F.one_hot(torch.arange(y.shape[0]) % 4, 4))),
         lambda n: call(rows(1), rows(n)), variants=((3,), (2,), (8,)), dynamic={"args": (None, {0: Dim("rows", min=2, max=16)})}),
]
