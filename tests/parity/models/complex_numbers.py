# Complex tensors: arithmetic, views of real pairs, rotary embeddings.

import torch
from torch import nn
from torch.export import Dim

from case import Case, apply, call


class RotaryComplex(nn.Module):
    """Rotary position embedding through complex multiplication, as Llama was published."""

    def __init__(self):
        super().__init__()
        angles = torch.outer(torch.arange(32.0), 1.0 / 10000 ** (torch.arange(0, 8, 2) / 8))
        self.register_buffer("rotation", torch.polar(torch.ones_like(angles), angles), persistent=False)

    def forward(self, x):
        pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
        turned = pairs * self.rotation[: x.shape[1]].view(1, x.shape[1], 1, -1)
        return torch.view_as_real(turned).flatten(3).type_as(x)


class RotaryHalves(nn.Module):
    """The same with sine and cosine on two halves, as transformers does it."""

    def __init__(self):
        super().__init__()
        self.register_buffer("frequencies", 1.0 / 10000 ** (torch.arange(0, 8, 2) / 8), persistent=False)

    def forward(self, x):
        angles = torch.arange(x.shape[1])[:, None].float() @ self.frequencies[None, :]
        angles = torch.cat((angles, angles), dim=-1)[:, None]
        first, second = x[..., : x.shape[-1] // 2], x[..., x.shape[-1] // 2:]
        return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()


class ComplexLinear(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, dtype=torch.complex64))

    def forward(self, z):
        y = z @ self.weight
        return y, y.abs(), torch.angle(y), (y * y.conj()).real


def complex_arithmetic(a, b):
    return (a + b, a * b, a / b, a.conj(), a.real, a.imag + 1, a.abs(), a.exp(), a * 2j, a + 1, a.sum(), a.mean(0), a.square(),
            torch.view_as_real(a), torch.complex(a.real, b.imag), torch.polar(a.abs(), a.angle()), a == b, a.conj().mH,
            torch.linalg.vector_norm(a), a.sqrt(), a.tanh(), a.resolve_conj().reciprocal(), torch.is_complex(a))


CASES = [
    Case("complex_arithmetic", apply(complex_arithmetic),
         lambda: call(torch.randn(3, 4, dtype=torch.complex64), torch.randn(3, 4, dtype=torch.complex64))),
    Case("complex_linear", ComplexLinear, lambda: call(torch.randn(2, 4, dtype=torch.complex64))),
    Case("rotary_complex", RotaryComplex, lambda: call(torch.randn(2, 6, 3, 8))),
    Case("rotary_complex_dynamic", RotaryComplex, lambda b, n: call(torch.randn(b, n, 3, 8)), variants=((2, 6), (1, 2), (3, 32)),
         dynamic={"x": {0: Dim("batch", min=1, max=8), 1: Dim("length", min=2, max=32)}}),
    Case("rotary_halves_dynamic", RotaryHalves, lambda b, n: call(torch.randn(b, n, 3, 8)), variants=((2, 6), (1, 2), (3, 32)),
         dynamic={"x": {0: Dim("batch", min=1, max=8), 1: Dim("length", min=2, max=32)}}),
]
