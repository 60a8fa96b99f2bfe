# Writes: in-place ops, assignment to slices and through views, mutated inputs.

import torch
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class InplaceResidual(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(6, 6), nn.Linear(6, 6)

    def forward(self, x):
        y = self.first(x).relu_()
        y += x
        y.mul_(0.5).clamp_(min=-1)
        z = self.second(y)
        z -= y
        return z.sigmoid_()


def assign_slices(x):
    y = x.clone()
    y[:, 1] = 0
    y[0, ::2] = y[1, 1::2] * 2
    y[..., -1] += 5
    y[1:, :2] = x[:-1, -2:]
    y[:, 3] = torch.tensor(7.0)
    return y


def write_through_views(x):
    y = x * 1
    row = y[1]
    row.add_(10)
    y.view(-1)[::3].zero_()
    y.t()[0].copy_(torch.ones(y.shape[0]))
    top, bottom = y.split([1, 2])
    bottom.mul_(-1)
    y.diagonal().fill_(3.5)
    return y, row, top + 1


def assign_indices(x, rows, values):
    y = x.clone()
    y[rows] = values
    y[x > 1] = -1
    y.index_put_((rows, rows), torch.tensor(2.0), accumulate=True)
    y[:, 0] = 4
    return y.index_add_(0, rows, values, alpha=0.5)


def index_writes(x, index, source):
    return (x.clone().index_copy_(1, index, source), x.clone().index_fill_(1, index, 9.0),
            x.index_add(1, index, source), x.clone().masked_fill_(x < 0, 2.0),
            x.clone().masked_scatter_(x > 0, source.flatten().repeat(4)), x.clone().put_(index, source[0, :3]),
            torch.select_scatter(x, source[:, 0], 1, 2), torch.slice_scatter(x, source, 1, 0, 3))


def mutate_inputs(x, cache):
    x.add_(1)
    cache["sum"].mul_(0.9).add_(x.sum(0))
    cache["last"][1].copy_(x[-1])
    return x * 2


def inplace_chain(x):
    y = torch.empty_like(x).copy_(x).exp_()
    y.sub_(1).div_(2).pow_(2).sqrt_().neg_().abs_().floor_().add_(x)
    y.unsqueeze_(0).squeeze_(0).t_()
    y.transpose_(0, 1)
    return y.clamp_min_(0.2).log_().addcmul_(x, x, value=0.1).lerp_(x, 0.25).fill_diagonal_(1.0)


def written_after_read(x):
    y = x.clone()
    before = y.sum(0)
    alias = y.view(-1)
    y.add_(1)
    middle = alias * 2
    alias.zero_()
    return before, middle, y


def write_to_arguments(x):
    """The `out=` argument and tensors that are resized before they are written."""
    total = torch.empty(3, 4)
    torch.add(x, 1, out=total)
    torch.mul(total, 2, out=total)
    grown = torch.empty(0).resize_(4, 3).copy_(x.t())
    return total, grown, torch.empty_strided((3, 4), (1, 3)).fill_(2) + x


class PreallocatedOutput(nn.Module):
    def forward(self, x):
        out = torch.zeros(x.shape[0], 3, x.shape[1], dtype=x.dtype)
        for i in range(3):
            out[:, i] = x * i
        return out


CASES = [
    Case("inplace_residual", InplaceResidual, lambda: call(torch.randn(4, 6)), forms=("functional",)),
    Case("inplace_chain", apply(inplace_chain), lambda: call(torch.randn(3, 4).abs() + 0.1)),
    Case("inplace_assign_slices", apply(assign_slices), lambda: call(torch.randn(3, 6)), forms=("core",)),
    Case("inplace_write_through_views", apply(write_through_views), lambda: call(torch.randn(3, 4)),
         forms=("functional",)),
    Case("inplace_written_after_read", apply(written_after_read), lambda: call(torch.randn(3, 4))),
    Case("inplace_assign_indices", apply(assign_indices),
         lambda: call(torch.randn(5, 5), torch.tensor([0, 2, 3]), torch.randn(3, 5))),
    Case("inplace_index_writes", apply(index_writes),
         lambda: call(torch.randn(4, 5), torch.tensor([0, 3, 2]), torch.randn(4, 3))),
    Case("inplace_mutated_inputs", apply(mutate_inputs),
         lambda: call(torch.randn(3, 4), {"sum": torch.randn(4), "last": torch.zeros(2, 4)}), variants=((), ()),
         forms=("core",)),
    Case("inplace_out_arguments", apply(write_to_arguments), lambda: call(torch.randn(3, 4))),
    Case("inplace_preallocated_dynamic", PreallocatedOutput, lambda b, n: call(torch.randn(b, n)),
         variants=((2, 5), (1, 1), (4, 9)),
         dynamic={"x": {0: Dim("batch", min=1, max=8), 1: Dim("width", min=1, max=16)}}),
]
