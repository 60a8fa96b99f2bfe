# Control flow that stays in the graph: cond, while_loop, map, scan, and gradient and
# autocast regions, which become child graphs.

import torch
from torch import nn
from torch._higher_order_ops.map import map as map_over
from torch._higher_order_ops.while_loop import while_loop
from torch.export import Dim

from case import Case, apply, call


class CondOnValue(nn.Module):
    def __init__(self):
        super().__init__()
        self.left = nn.Linear(4, 3)
        self.right = nn.Linear(4, 3)

    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: self.left(x), lambda x: self.right(x).relu(), (x,))


CASES = [
    Case("cond_on_value", CondOnValue, lambda sign: call(sign * torch.rand(2, 4)), variants=((1.0,), (-1.0,))),
]
