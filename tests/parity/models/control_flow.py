# Control flow that stays in the graph: cond, while_loop, map, scan, and gradient and
# autocast regions, which become child graphs.

import torch
import torch.nn.functional as F
from torch import nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim
from torch.utils.checkpoint import checkpoint

from case import Case, apply, call


class CondOnValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 3)
        self.right = nn.Linear(4, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.left(x), lambda x: self.right(x).relu(), (x,))


class CondOnSize(nn.Module):
    """The condition is a number known only when the size is."""

    def forward(self, x):
        return torch.cond(x.shape[0] > 4, lambda x: x.cos() * 2, lambda x: x.sin(), (x,))


class CondNested(nn.Module):
    def forward(self, x, flag):
        def inner(x):
            return torch.cond(x.mean() > 0, lambda x: (x + 1, x.sum()), lambda x: (x - 1, x.prod()), (x,))

        return torch.cond(flag, inner, lambda x: (x.clone(), x.amax()), (x,))


class CountDown(nn.Module):
    """Newton's iteration until the step is small: how often it runs depends on the data."""

    def forward(self, x):
        def unfinished(step, guess, x):
            return (step < 20) & ((guess * guess - x).abs().max() > 1e-3)

        def improve(step, guess, x):
            return step + 1, 0.5 * (guess + x / guess), x.clone()

        return while_loop(unfinished, improve, (torch.tensor(0), torch.ones_like(x), x))


class RecurrentLoop(nn.Module):
    """A weight read inside the loop's body."""

    def __init__(self):
        super().__init__()
        self.cell = nn.Linear(4, 4)

    def forward(self, x, steps):
        def unfinished(i, h):
            return i < steps

        def advance(i, h):
            return i + 1, torch.tanh(self.cell(h))

        return while_loop(unfinished, advance, (torch.zeros((), dtype=torch.int64), x))


class MapRows(nn.Module):
    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.randn(3))

    def forward(self, x, shift):
        return map_over(lambda row, shift: (row * self.scale + shift).softmax(-1), x, shift)


class ScanSum(nn.Module):
    """Exponential moving average: the carried state and every step's value."""

    def forward(self, start, x):
        def step(carried, row):
            following = carried * 0.9 + row * 0.1
            return following, following.clone()

        return scan(step, start, x, dim=0)


class GradRegions(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        with torch.no_grad():
            y = self.first(x) + 1
            with torch.enable_grad():
                z = self.second(y).relu()
            z = z * 2
        return z - y, x.detach() + z


class FrozenBackbone(nn.Module):
    @torch.no_grad()
    def target(self, x):
        return F.normalize(x, dim=-1)

    def forward(self, x):
        return (self.target(x) * x).sum(-1)


class AutocastRegion(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(8, 16), nn.Linear(16, 4)

    def forward(self, x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = F.gelu(self.first(x))
            with torch.autocast("cpu", enabled=False):
                y = y.float().softmax(-1)
            z = self.second(y)
        return z, z.float() + self.second(y.float())


class Checkpointed(nn.Module):
    """Activations recomputed in training; in the graph just a region."""

    def __init__(self):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 4)

    def forward(self, x):
        y = checkpoint(lambda x: self.first(x).relu(), x, use_reentrant=True)
        return checkpoint(self.second, y, use_reentrant=False)


class OwnGradient(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.clamp(-1, 1)

    @staticmethod
    def backward(ctx, grad):
        return grad


class InnerGradient(nn.Module):
    """A step of gradient descent inside forward."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        with torch.enable_grad():
            loss = self.linear(x).square().mean()
            slope = torch.autograd.grad(loss, self.linear.weight)[0]
        return F.linear(x, self.linear.weight - 0.1 * slope, self.linear.bias)


@torch.compiler.nested_compile_region
def region(x):
    return x.sin() + 1


CASES = [
    Case("cond_on_value", CondOnValue, lambda sign: call(sign * torch.rand(2, 4)), variants=((1.0,), (-1.0,)), forms=("core",)),
    Case("cond_on_size", CondOnSize, lambda n: call(torch.randn(n, 3)), variants=((6,), (2,), (4,), (5,)),
         dynamic={"x": {0: Dim("rows", min=2, max=16)}}),
    Case("cond_nested", CondNested, lambda sign, flag: call(sign * torch.rand(2, 3), torch.tensor(flag)),
         variants=((1.0, True), (-1.0, True), (1.0, False))),
    Case("while_newton", CountDown, lambda scale: call(torch.rand(4) * scale + 0.5), variants=((1.0,), (500.0,)), f64_limit=1e-2),
    Case("while_recurrent", RecurrentLoop, lambda n: call(torch.randn(2, 4), torch.tensor(n)), variants=((3,), (0,), (7,)), forms=("core",)),
    Case("map_rows", MapRows, lambda: call(torch.randn(4, 3), torch.randn(3)), forms=("core",)),
    Case("map_rows_dynamic", MapRows, lambda n: call(torch.randn(n, 3), torch.randn(3)), variants=((4,), (2,), (9,)),
         dynamic={"x": {0: Dim("rows", min=2, max=16)}, "shift": None}),
    Case("scan_average", ScanSum, lambda: call(torch.randn(3), torch.randn(5, 3)), forms=("core",)),
    Case("associative_scan", apply(lambda x: associative_scan(lambda a, b: a * 0.5 + b, x, 0, combine_mode="generic")),
         lambda: call(torch.randn(6, 3)), since=(2, 13)),
    Case("vmap_rows", apply(lambda x, y: torch.vmap(lambda row, column: row.softmax(0) @ column, in_dims=(0, 1))(x, y)),
         lambda: call(torch.randn(3, 4), torch.randn(4, 3)), forms=("core",), since=(2, 13)),
    Case("checkpoint_regions", Checkpointed, lambda: call(torch.randn(2, 4)), mode="train"),
    Case("autograd_function", apply(lambda x: OwnGradient.apply(x) * 2), lambda: call(torch.randn(5))),
    Case("inner_gradient", InnerGradient, lambda: call(torch.randn(3, 4))),
    Case("nested_regions", apply(lambda x: region(region(x)) * 2), lambda: call(torch.randn(2, 3)), forms=("strict",)),
    Case("grad_regions", GradRegions, lambda: call(torch.randn(2, 4)), forms=("core",)),
    Case("grad_frozen_function", FrozenBackbone, lambda: call(torch.randn(2, 4))),
    Case("autocast_region", AutocastRegion, lambda: call(torch.randn(3, 8)), forms=("core",), f64_limit=1e-2),
]
