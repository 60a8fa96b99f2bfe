"""Models that were exported under torch.set_default_dtype(): the file does not say so, and constants, quotients of whole
numbers and masks times numbers have that dtype all the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

Lissome = Callable[..., Any]

FORMS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "eye": lambda x: x @ torch.eye(3),
    "zeros": lambda x: x + torch.zeros(3),
    "linspace": lambda x: x * torch.linspace(0, 1, 3),
    "logspace": lambda x: x * torch.logspace(0, 1, 3),
    "arange": lambda x: x * torch.arange(0, 0.3, 0.1),
    "full": lambda x: x + torch.full((3,), 0.1),
    "window": lambda x: x * torch.hann_window(3),
    "quotient": lambda x: x * (torch.arange(3) / 7),
    "root": lambda x: x * torch.sqrt(torch.arange(3)),
    "exponential": lambda x: x * torch.exp(-torch.arange(3)),
    "product": lambda x: x + torch.arange(3) * 0.1,
    "power": lambda x: x * 0.1 ** torch.arange(3),
    "mask": lambda x: x + (x > 0) * 0.1,
    "where": lambda x: x + torch.where(x > 0, 0.1, 0.7),
    "where mixed": lambda x: x + torch.where(x > 0, 0.1, (x > 0).long()),
    "share": lambda x: x * ((x > 0).cumsum(0) / (x > 0).sum()),
    "whole numbers alone": lambda x: (x > 0).long() / 3,
    "condition": lambda x: torch.cond(x.sum() > 0, lambda y: y * (torch.arange(3) / 7), lambda y: y + torch.ones(3), (x,)),
}


class Form(nn.Module):
    def __init__(self, form: Callable[[torch.Tensor], torch.Tensor]) -> None:
        super().__init__()
        self.form = form

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.form(x)


@pytest.fixture
def default() -> Iterator[Callable[[torch.dtype], None]]:
    yield torch.set_default_dtype
    torch.set_default_dtype(torch.float32)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16], ids=["f64", "bf16"])
@pytest.mark.parametrize("name", FORMS)
def test_answers_have_the_default_dtype_of_the_export(
    lissome: Lissome, tmp_path: Path, default: Callable[[torch.dtype], None], name: str, dtype: torch.dtype
):
    if dtype == torch.bfloat16 and name in ("logspace", "window"):
        pytest.skip("torch computes this in f32 first")
    default(dtype)
    torch.manual_seed(1)
    x = torch.randn(4, 3)
    module = Form(FORMS[name]).eval()
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "net.pt2")
    wanted = module(x)
    assert wanted.dtype == dtype
    np.savez(tmp_path / "x.npz", x=x.float().numpy() if dtype == torch.bfloat16 else x.numpy())
    assert lissome("prepare", "net.pt2", "-o", "net.lissome").returncode == 0
    for model in ("net.pt2", "net.lissome"):
        done = lissome("run", model, "--input", "x.npz", "-o", "y.npz")
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "y.npz") as outputs:
            (seen,) = outputs.values()
        assert seen.dtype == (np.float64 if dtype == torch.float64 else np.float32)
        np.testing.assert_allclose(seen, wanted.double().numpy(), rtol=1e-14 if dtype == torch.float64 else 1e-2, atol=1e-300)
