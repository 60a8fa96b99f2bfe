# Shapes and numbers that only the data decide.

import torch
from torch import nn

from case import Case, apply, call


class Positive(nn.Module):
    def forward(self, x):
        found = torch.nonzero(x > 0)
        return found, x[found[:, 0], found[:, 1]] * 2, found.shape[0]


class ItemAsSize(nn.Module):
    """A number read out of a tensor becomes a size."""

    def forward(self, x, count):
        n = count.item()
        torch._check(n >= 1)
        torch._check(n <= x.shape[0])
        return x.narrow(0, 0, n).sum(0), torch.arange(n), torch.zeros(n, 2) + n


class ItemAsNumber(nn.Module):
    def forward(self, x, factor):
        return x * factor.item() + factor.tolist()


class RowsByMask(nn.Module):
    def forward(self, x, keep):
        rows = x[keep]
        return rows, rows.sum(0), torch.masked_select(x, x > 0.5)


class Segments(nn.Module):
    """Mean of variable-length segments through repeat_interleave."""

    def forward(self, x, lengths):
        owner = torch.repeat_interleave(torch.arange(lengths.shape[0]), lengths, output_size=x.shape[0])
        sums = torch.zeros(lengths.shape[0], x.shape[1]).index_add(0, owner, x)
        return sums / lengths[:, None], owner


class Checked(nn.Module):
    """Asserts on data, numbers read out of tensors, cuts at positions in a tensor."""

    def forward(self, x, cuts, n):
        torch._assert_async((x.abs() < 1e9).all(), "too large")
        first, second = x[: n.item()], x.numel()
        return first.sum(0), x * cuts.tolist()[0] / second, x[n.item() - 1]


CASES = [
    Case("nonzero", Positive, lambda seed: call(torch.randn(3, 4) + seed), variants=((0,), (-0.5,), (1,))),
    Case("item_as_size", ItemAsSize, lambda n: call(torch.randn(6, 3), torch.tensor(n)), variants=((3,), (1,), (6,))),
    Case("item_as_number", ItemAsNumber, lambda n: call(torch.randn(3), torch.tensor(n)), variants=((2.5,), (-1.0,))),
    Case("checked_numbers", Checked, lambda n: call(torch.randn(5, 3), torch.tensor([2, 4]), torch.tensor(n)),
         variants=((3,), (2,), (5,))),
    Case("rows_by_mask", RowsByMask, lambda p: call(torch.randn(5, 3), torch.rand(5) < p), variants=((0.5,), (0.9,))),
    Case("repeat_interleave_tensor", apply(lambda x, n: torch.repeat_interleave(x, n, dim=0)),
         lambda: call(torch.randn(3, 2), torch.tensor([2, 0, 3]))),
    Case("segments", Segments, lambda: call(torch.randn(6, 2), torch.tensor([1, 3, 2]))),
    Case("unique_counts", apply(lambda x: torch.unique(x, return_counts=True)), lambda n: call(torch.randint(0, n, (9,))),
         variants=((4,), (2,), (8,))),
]
