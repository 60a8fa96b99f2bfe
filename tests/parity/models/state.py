# Buffers that forward writes, tied parameters, and constants lifted out of the code.

import torch
from torch import nn

from case import Case, apply, call


class Counter(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.tensor(0))
        self.register_buffer("total", torch.zeros(3))

    def forward(self, x):
        self.count += 1
        self.total.add_(x.sum(0))
        return self.total / self.count


class KeyValueCache(nn.Module):
    """Decoding with a fixed cache: each call writes one position and attends to all before."""

    def __init__(self):
        super().__init__()
        self.qkv = nn.Linear(8, 24)
        self.register_buffer("keys", torch.zeros(1, 6, 8))
        self.register_buffer("values", torch.zeros(1, 6, 8))

    def forward(self, x, position):
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        self.keys.index_copy_(1, position, k)
        self.values[:, position] = v
        scores = q @ self.keys.transpose(1, 2) / 8**0.5
        seen = torch.arange(6) <= position
        return scores.masked_fill(~seen, float("-inf")).softmax(-1) @ self.values


class ShiftRegister(nn.Module):
    """Streaming convolution: the last inputs are kept in a buffer that is replaced whole."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv1d(2, 3, 4)
        self.register_buffer("past", torch.zeros(1, 2, 3))

    def forward(self, x):
        joined = torch.cat([self.past, x], dim=2)
        self.past.copy_(joined[:, :, -3:])
        return self.conv(joined)


class ReassignedBuffer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("average", torch.zeros(4))

    def forward(self, x):
        self.average = self.average * 0.9 + x.mean(0) * 0.1
        return x - self.average


class Tied(nn.Module):
    """One layer under two names, one weight shared by two layers, one buffer twice."""

    def __init__(self):
        super().__init__()
        self.encode = nn.Linear(4, 4)
        self.again = self.encode
        self.decode = nn.Linear(4, 4)
        self.decode.weight = self.encode.weight
        self.register_buffer("shift", torch.randn(4))
        self.register_buffer("same_shift", self.shift)

    def forward(self, x):
        return self.decode(self.again(self.encode(x)).relu() + self.shift) - self.same_shift


class AliasedWeights(nn.Module):
    """Parameters that are views of one storage."""

    def __init__(self):
        super().__init__()
        whole = torch.randn(6, 4)
        self.top, self.bottom = nn.Parameter(whole[:3]), nn.Parameter(whole[3:])
        self.turned = nn.Parameter(whole.t())

    def forward(self, x):
        return x @ self.top.t(), x @ self.bottom.t(), x @ self.turned


class Constants(nn.Module):
    """Tensors that are neither parameters nor buffers."""

    def __init__(self):
        super().__init__()
        self.plain = torch.tensor([1.0, 2.0, 3.0])
        self.register_buffer("hidden", torch.tensor([0.5, 0.25, 0.125]), persistent=False)
        self.frozen = nn.Parameter(torch.randn(3), requires_grad=False)
        self.lookup = {"low": torch.tensor([2, 1, 0])}

    def forward(self, x):
        inside = torch.tensor([[1.0, -1.0, 1.0]]) * self.plain + torch.tensor(2)
        return x[:, self.lookup["low"]] * inside + self.hidden * self.frozen


class Stepped(nn.Module):
    """State that decides: the first call answers otherwise than the later ones."""

    def __init__(self):
        super().__init__()
        self.register_buffer("ready", torch.zeros(3, dtype=torch.bool))
        self.register_buffer("center", torch.zeros(3))

    def forward(self, x):
        center = torch.where(self.ready, self.center, x.mean(0))
        self.center.copy_(center)
        self.ready.fill_(True)
        return x - center


CASES = [
    Case("state_counter", Counter, lambda: call(torch.randn(2, 3)), variants=((), (), ()), forms=("core",)),
    Case("state_key_value_cache", KeyValueCache, lambda i: call(torch.randn(1, 1, 8), torch.tensor([i])),
         variants=((0,), (1,), (2,), (3,)), forms=("core", "functional")),
    Case("state_shift_register", ShiftRegister, lambda: call(torch.randn(1, 2, 5)), variants=((), (), ())),
    Case("state_reassigned", ReassignedBuffer, lambda: call(torch.randn(3, 4)), variants=((), (), ())),
    Case("state_first_call", Stepped, lambda: call(torch.randn(2, 3)), variants=((), ())),
    Case("tied_parameters", Tied, lambda: call(torch.randn(2, 4)), forms=("core",)),
    Case("aliased_weights", AliasedWeights, lambda: call(torch.randn(2, 4))),
    Case("lifted_constants", Constants, lambda: call(torch.randn(2, 3)), forms=("strict",)),
]
