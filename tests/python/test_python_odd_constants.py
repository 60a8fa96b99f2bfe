"""Constants at the ends of their dtypes, and activations with constants that nobody trains with: a prepared model answers
as the module does."""

from __future__ import annotations

import warnings
from collections.abc import Callable

import lissome
import pytest
import torch
from torch.nn import functional

Op = Callable[[torch.Tensor], torch.Tensor]

COMPARED = {
    "eq": torch.eq, "ne": torch.ne, "lt": torch.lt, "le": torch.le, "gt": torch.gt, "ge": torch.ge,
    "clamp_min": torch.clamp_min, "clamp_max": torch.clamp_max, "add": torch.add, "sub": torch.sub, "mul": torch.mul,
    "rsub": torch.rsub,
    "clamp": lambda x, c: torch.clamp(x, c, 3),
    "clamp up": lambda x, c: torch.clamp(x, 1, c),
    "masked_fill": lambda x, c: x.masked_fill(x == 2, c),
    "where": lambda x, c: torch.where(x == 2, x, c),
}  # fmt: skip
NUMBERS = [-1, 0, 127, 128, 129, 255, 256, -128, -129, -300, 32767, 32768, -32769, 0.5, -0.5]


class Rows(torch.nn.Module):
    """The results of every op that the module itself can run."""

    def __init__(self, ops: dict[str, Op], x: torch.Tensor):
        super().__init__()
        self.ops = {}
        for name, op in ops.items():
            try:
                op(x)
            except (RuntimeError, TypeError):
                continue
            self.ops[name] = op

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        return [op(x) for op in self.ops.values()]


def check(ops: dict[str, Op], x: torch.Tensor) -> None:
    rows = Rows(ops, x)
    assert len(rows.ops) > len(ops) / 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fast = lissome.prepare(rows, (x,))
    for name, expected, found in zip(rows.ops, rows(x), fast(x), strict=True):
        assert found.dtype == expected.dtype, name
        assert torch.allclose(found, expected, rtol=2e-6, atol=1e-6, equal_nan=True), (name, expected, found)


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64, torch.bool])
def test_numbers_beyond_the_integers_that_they_meet(dtype: torch.dtype):
    x = torch.tensor([[0, 1, 2, 3], [4, 5, 127, 200]]).to(dtype)
    check({f"{name} {c}": lambda x, op=op, c=c: op(x, c) for name, op in COMPARED.items() for c in NUMBERS}, x)


def test_activations_with_odd_constants():
    constants = [-2.0, -1.0, 0.0, 0.5, 1e-30, 1e30, float("inf"), float("-inf"), float("nan")]
    activations = {
        "celu": functional.celu, "elu": functional.elu, "leaky_relu": functional.leaky_relu,
        "hardshrink": functional.hardshrink, "softshrink": functional.softshrink,
        "softplus": lambda x, c: functional.softplus(x, beta=c),
        "threshold": lambda x, c: functional.threshold(x, c, 2.0),
        "threshold value": lambda x, c: functional.threshold(x, 0.5, c),
        "hardtanh": lambda x, c: functional.hardtanh(x, -1e3, c) if c >= -1e3 else x,
    }  # fmt: skip
    x = torch.tensor([0.0, -0.0, 1.0, -1.0, 0.25, -3.0, 20.0, -20.0])
    check({f"{name} {c}": lambda x, op=op, c=c: op(x, c) for name, op in activations.items() for c in constants}, x)
