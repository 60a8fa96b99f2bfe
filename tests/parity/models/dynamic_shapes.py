# Dynamic dimensions and arithmetic on sizes: derived dimensions, ranges, sizes as values.

import torch
from torch import nn
from torch.export import Dim

from case import Case, apply, call

BATCH = Dim("batch", min=1, max=64)

CASES = [
    Case("dynamic_mlp", lambda: nn.Sequential(nn.Linear(6, 8), nn.Tanh(), nn.Linear(8, 2)),
         lambda b: call(torch.randn(b, 6)), variants=((4,), (1,), (64,)), dynamic={"input": {0: BATCH}}),
]
