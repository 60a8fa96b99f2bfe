# Every activation, and those that people write out by hand.

import math

import torch
import torch.nn.functional as F
from torch import nn

from case import Case, apply, call

LAYERS = (
    nn.ReLU(), nn.ReLU6(), nn.LeakyReLU(0.2), nn.PReLU(4), nn.ELU(0.7), nn.CELU(1.3), nn.SELU(), nn.GELU(),
    nn.GELU(approximate="tanh"), nn.SiLU(), nn.Mish(), nn.Hardswish(), nn.Hardsigmoid(), nn.Hardtanh(-0.5, 0.8),
    nn.Sigmoid(), nn.LogSigmoid(), nn.Tanh(), nn.Tanhshrink(), nn.Softplus(2, 5), nn.Softsign(), nn.Softshrink(0.3),
    nn.Hardshrink(0.4), nn.Threshold(0.1, -2.0), nn.Softmin(1), nn.Softmax(1), nn.LogSoftmax(1), nn.RReLU(),
)


class Activations(nn.Module):
    """A slice of the list above; every output is returned."""

    def __init__(self, first: int, last: int):
        super().__init__()
        self.layers = nn.ModuleList(LAYERS[first:last])

    def forward(self, x):
        return [layer(x) for layer in self.layers]


class SwiGlu(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(8, 20), nn.Linear(8, 20), nn.Linear(20, 8)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


def by_hand(x):
    return {
        "gelu_erf": 0.5 * x * (1 + torch.erf(x / math.sqrt(2))),
        "gelu_tanh": 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        "silu": x * torch.sigmoid(x),
        "hardswish": x * F.relu6(x + 3) / 6,
        "mish": x * torch.tanh(F.softplus(x)),
        "quick_gelu": x * torch.sigmoid(1.702 * x),
        "square_relu": torch.relu(x).square(),
    }


def glu_family(x):
    a, b = x.chunk(2, dim=-1)
    return F.glu(x), a * torch.sigmoid(b), F.gelu(a) * b


def rows():
    return call(torch.randn(3, 4, 6) * 2)


CASES = [
    Case("activations_first", lambda: Activations(0, 9), rows),
    Case("activations_second", lambda: Activations(9, 18), rows),
    Case("activations_third", lambda: Activations(18, 27), rows, forms=("core",)),
    Case("activations_by_hand", apply(by_hand), rows),
    Case("activations_inplace", lambda: nn.Sequential(nn.Linear(6, 6), nn.ReLU(inplace=True), nn.Linear(6, 6),
                                                      nn.Hardswish(inplace=True), nn.SiLU(inplace=True)), rows),
    Case("glu_family", apply(glu_family), rows),
    Case("swiglu", SwiGlu, lambda: call(torch.randn(3, 8))),
    Case("rrelu_train", lambda: nn.RReLU(), rows, mode="train"),
    Case("gumbel_softmax", apply(lambda x: F.gumbel_softmax(x, tau=0.5)), rows, mode="train"),
    Case("maxout", apply(lambda x: x.unflatten(-1, (3, 2)).amax(-1)), rows),
]
