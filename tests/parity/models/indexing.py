# Reading and rearranging by position: slices, gathers, advanced indexing, views and joins.

import torch
from torch import nn
from torch.export import Dim

from case import Case, apply, call


def slices(x):
    return (x[1], x[:, 1:], x[..., -1], x[::2, :, 1:3], x[-2:], x[:, None], x[0, :, -1], x.narrow(1, 1, 2),
            x.select(2, 0), *x.split(2, dim=1), *x.chunk(3, dim=2), *x.unbind(0), *torch.tensor_split(x, 2, dim=2),
            x[:, 10:], x[1:100])


def advanced(x, rows, columns, mask):
    return (x[rows], x[:, columns], x[rows, columns], x[rows[:, None], columns], x[:, rows, :, None], x[rows, :, columns],
            x[..., columns], x[mask.nonzero_static(size=3).squeeze(1)], x[[0, 2]], x[:, [1, 0], [2, 1]],
            torch.where(mask[:, None, None], x, -x), x[None, rows])


def gathers(x, index, source):
    return (x.gather(1, index), torch.take_along_dim(x[:3], index, dim=1), x.index_select(0, index[0]),
            torch.take(x, index), x.scatter(1, index, source), x.scatter(1, index, 3.0),
            x.scatter_add(1, index, source), x.scatter(1, index, source, reduce="multiply"),
            x.scatter_reduce(1, index, source, reduce="amax"), x.scatter_reduce(0, index, source, "mean", include_self=False),
            x.index_reduce(1, index[0], source.expand(4, 3), "prod"))


def masks(x, other, mask):
    return (torch.where(mask, x, other), torch.where(x > 0, x, 0.0), torch.where(mask, 1, 2), x.masked_fill(mask, -1e9),
            x * mask, x.masked_fill(~mask, 0).sum(1), torch.where(mask, x, torch.tensor(float("nan"))))


def movements(x):
    return (x.roll(1), x.roll((1, -2), (0, 2)), x.flip(0), x.flip(0, 2), x.fliplr(), x.rot90(1, (1, 2)), x.tril(),
            x.triu(1), x[0].diag(), x[0, 0].diag(), torch.diag_embed(x[0]), x.diagonal(1, 1, 2), x.transpose(0, 2),
            x.permute(2, 0, 1), x.movedim(0, -1), x.swapaxes(0, 1), x[0].t(), x[0].T, x.mT, torch.adjoint(x))


def shapes(x):
    return (x.view(-1), x.view(3, -1), x.reshape(2, 6, 2).transpose(0, 1).reshape(-1), x.flatten(1), x.unflatten(2, (2, 2)),
            x.squeeze(), x.unsqueeze(0).squeeze(0), x[:1].squeeze(0), x.expand(5, -1, -1, -1), x.repeat(2, 1, 3),
            x.repeat_interleave(2, dim=1), x.tile((2, 2)), x.unfold(2, 2, 1), x.as_strided((3, 2), (4, 1), 1),
            x.contiguous().clone(), x.view_as(x), torch.atleast_3d(x[0]), x.ravel(), x.permute(2, 1, 0).contiguous())


def joins(x, y):
    return (torch.cat([x, y], 0), torch.cat([x, y, x], -1), torch.stack([x, y], 1), torch.hstack([x, y]),
            torch.vstack([x, y]), torch.dstack([x, y]), torch.column_stack([x[:, 0], y]), torch.block_diag(x, y),
            torch.cartesian_prod(x[0], y[0]), *torch.meshgrid(x[0], y[:, 0], indexing="ij"))


def factories(x):
    n = x.shape[0]
    return (torch.arange(n), torch.arange(1, 9, 2, dtype=torch.float32), torch.arange(0.0, 1.0, 0.25), torch.linspace(0, 1, 5),
            torch.logspace(0, 2, 3), torch.zeros(n, 2), torch.ones_like(x), torch.full((2, n), 7), torch.full_like(x, 0.5),
            torch.eye(n), torch.eye(2, 3), torch.tril_indices(3, 3), torch.triu_indices(3, 3, 1), x.new_zeros(2),
            x.new_full((2,), 3), torch.zeros_like(x, dtype=torch.int64), torch.tensor([1, 2, n]),
            torch.scalar_tensor(4.0), torch.hann_window(6), torch.hamming_window(5), torch.empty(0, 3), x.new_ones(1, n))


class RelativeShift(nn.Module):
    """Transformer-XL's shift: pad, view with swapped sizes, cut."""

    def forward(self, x):
        batch, heads, queries, keys = x.shape
        x = torch.cat([x.new_zeros(batch, heads, queries, 1), x], dim=-1)
        return x.view(batch, heads, keys + 1, queries)[:, :, 1:].reshape(batch, heads, queries, keys)


class WindowPartition(nn.Module):
    """Swin's windows and back, with a cyclic shift."""

    def forward(self, x):
        b, h, w, c = x.shape
        x = torch.roll(x, shifts=(-1, -1), dims=(1, 2))
        windows = x.view(b, h // 3, 3, w // 3, 3, c).permute(0, 1, 3, 2, 4, 5).contiguous().view(-1, 9, c)
        windows = windows.softmax(dim=1)
        x = windows.view(b, h // 3, w // 3, 3, 3, c).permute(0, 1, 3, 2, 4, 5).reshape(b, h, w, c)
        return torch.roll(x, shifts=(1, 1), dims=(1, 2))


def block(*shape):
    return torch.randn(shape or (2, 3, 4))


CASES = [
    Case("slices", apply(slices), lambda: call(block(4, 5, 6))),
    Case("slices_dynamic", apply(lambda x: (x[1:], x[:, -2:], x[:, ::2], x[..., : x.shape[0] // 2], x[:-1, 1:].flatten())),
         lambda b, n: call(block(b, n, 12)), variants=((5, 5), (4, 4), (9, 20)),
         dynamic={"args": ({0: Dim("batch", min=4, max=16), 1: Dim("length", min=4, max=64)},)}),
    Case("advanced_indexing", apply(advanced), lambda: call(
        block(4, 5, 6), torch.tensor([2, 0, 3]), torch.tensor([1, 4, 0]), torch.tensor([True, False, True, True]))),
    Case("gathers", apply(gathers), lambda: call(block(4, 5), torch.tensor([[3, 1, 0], [2, 0, 1], [0, 1, 2]]), block(4, 3))),
    Case("gather_dynamic", apply(lambda x, i: (x.gather(1, i), x.index_select(0, i[:, 0]), x[i[:, 0], i[:, 1]])),
         lambda b: call(block(b, 5), torch.randint(0, b, (b, 2)) % 5), variants=((4,), (2,), (11,)),
         dynamic={"args": ({0: Dim("batch", min=2, max=16)}, {0: Dim("batch", min=2, max=16)})}),
    Case("masks", apply(masks), lambda: call(block(3, 4), block(3, 4), torch.rand(3, 4) > 0.5)),
    Case("movements", apply(movements), lambda: call(block())),
    Case("movements_matrix", apply(movements), lambda: call(block(3, 3, 3))),
    Case("shapes", apply(shapes), lambda: call(block())),
    Case("joins", apply(joins), lambda: call(block(3, 4), block(3, 4))),
    Case("factories", apply(factories), lambda: call(block(3, 4)), forms=("core",)),
    Case("relative_shift_dynamic", RelativeShift, lambda b, n: call(block(b, 2, n, n)), variants=((2, 5), (1, 2), (3, 12)),
         dynamic={"x": {0: Dim("batch", min=1, max=8), 2: Dim("length", min=2, max=32), 3: Dim("length", min=2, max=32)}}),
    Case("window_partition", WindowPartition, lambda: call(block(2, 6, 9, 4))),
    Case("scatter_mean_graph", apply(lambda x, source, target: torch.zeros_like(x).index_add(0, target, x[source])
                                     / torch.zeros(x.shape[0]).index_add(0, target, torch.ones(6)).clamp(min=1)[:, None]),
         lambda: call(block(5, 3), torch.tensor([0, 1, 2, 3, 4, 0]), torch.tensor([1, 0, 0, 2, 2, 4]))),
]
