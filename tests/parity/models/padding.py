# Padding of every mode and rank, and cropping by negative amounts.

import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from case import Case, apply, call


def constants(x):
    return (F.pad(x, (1, 2)), F.pad(x, (1, 0, 2, 3), value=-1.5), F.pad(x, (-1, -1, 1, 1)), F.pad(x, (0, 0, 0, 0, 1, 1)),
            F.pad(x.long(), (2, 2), value=7), F.pad(x > 0, (1, 1), value=True), nn.ZeroPad2d((1, 0, 2, 0))(x))


def mirrored(x):
    return [F.pad(x, (2, 1, 1, 2), mode=mode) for mode in ("reflect", "replicate", "circular")]


def wrapped(x):
    return [F.pad(x, pads, mode="circular") for pads in ((2, -1, 0, 0), (-1, 2, 1, 1), (-1, -2, 2, -1), (3, 2, -1, 2))]


def negative_zeros(x):
    return [F.pad(y, (1, 2), value=-0.0).signbit() for y in (x, x.bfloat16(), x.double())]


def pad_to_multiple(x):
    length = x.shape[1]
    blocks = (length + 7) // 8
    padded = F.pad(x, (0, blocks * 8 - length), value=0.5)
    return padded.cumsum(1), blocks, F.pad(x, (0, -length % 8)).sum(1)


class Layers(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList([nn.ReflectionPad1d(2), nn.ReplicationPad1d((1, 3)), nn.ConstantPad1d(2, 0.5),
                                     nn.CircularPad1d((2, 1))])

    def forward(self, x):
        return [layer(x) for layer in self.layers]


CASES = [
    Case("pad_constant", apply(constants), lambda: call(torch.randn(2, 3, 5, 6))),
    Case("pad_mirrored", apply(mirrored), lambda: call(torch.randn(2, 3, 5, 6))),
    Case("pad_wrapped", apply(wrapped), lambda: call(torch.randn(2, 3, 5, 6))),
    Case("pad_negative_zeros", apply(negative_zeros), lambda: call(torch.rand(2, 3, 6) + 1)),
    Case("pad_layers1d", Layers, lambda: call(torch.randn(2, 3, 7))),
    Case("pad_volumes", apply(lambda x: (F.pad(x, (1, 1, 1, 1, 1, 1), mode="replicate"),
                                         F.pad(x, (1, 0, 1, 0, 2, 1), mode="reflect"),
                                         F.pad(x, (1, 1, 0, 0, 2, 0), mode="circular"))),
         lambda: call(torch.randn(1, 2, 4, 5, 6))),
    Case("pad_to_multiple_dynamic", apply(pad_to_multiple), lambda n: call(torch.randn(2, n)), variants=((13,), (2,), (24,)),
         dynamic={"args": ({1: Dim("length", min=2, max=64)},)}),
    Case("pad_sequences", apply(lambda a, b, c: nn.utils.rnn.pad_sequence([a, b, c], batch_first=True, padding_value=-1)),
         lambda: call(torch.randn(3, 2), torch.randn(5, 2), torch.randn(1, 2))),
]
