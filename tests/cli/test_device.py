"""--device: a clear refusal where the device is not there, the processor's numbers where it is."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

Lissome = Callable[..., Any]
has_device = pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device on this machine")
COMMANDS = ["run", "bench", "profile", "audit"]


def call(folder: Path, models: SimpleNamespace, command: str, *more: str) -> list[Any]:
    np.savez(folder / "x.npz", input=models.samples[:4].numpy())
    return [command, models.classifier, "--input", folder / "x.npz", *more]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_word_that_is_no_device(lissome: Lissome, models: SimpleNamespace, tmp_path: Path, command: str):
    done = lissome(*call(tmp_path, models, command, "--device", "gpu"))
    assert done.returncode == 2 and "'gpu'" in done.stderr and "cuda" in done.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_device_that_is_not_there(lissome: Lissome, models: SimpleNamespace, tmp_path: Path, command: str):
    done = lissome(*call(tmp_path, models, command, "--device", "cuda"))
    assert done.returncode == 4 and done.stdout == ""
    assert done.stderr.startswith("error unsupported: no CUDA device") and "--device" in done.stderr


def test_the_processor_by_name(succeed: Lissome, models: SimpleNamespace, tmp_path: Path):
    arguments = call(tmp_path, models, "run", "--output", str(tmp_path / "y.npz"))
    succeed(*arguments, "--device", "cpu")
    with np.load(tmp_path / "y.npz") as outputs:
        expected = models.modules["classifier"](models.samples[:4]).detach().numpy()
        assert np.abs(next(iter(outputs.values())) - expected).max() <= 1e-5 * np.abs(expected).max()


@has_device
@pytest.mark.parametrize(("name", "sizes"), [("classifier", (4, 64)), ("pictures", (2, 3, 32, 32))])
def test_the_same_numbers_there(
    succeed: Lissome, models: SimpleNamespace, tmp_path: Path, name: str, sizes: tuple[int, ...]
):
    prepared = tmp_path / "m.lissome"
    succeed("prepare", getattr(models, name), "-o", prepared, "--keep-original")
    outputs = []
    inputs = tmp_path / "x.npz"
    np.savez(inputs, input=torch.randn(sizes, generator=torch.Generator().manual_seed(3)).numpy())
    for device in ["cpu", "cuda"]:
        succeed("run", prepared, "--input", inputs, "--output", tmp_path / "y.npz", "--device", device)
        with np.load(tmp_path / "y.npz") as arrays:
            outputs.append(next(iter(arrays.values())))
    assert np.abs(outputs[0] - outputs[1]).max() <= 1e-3 * np.abs(outputs[0]).max()


@has_device
def test_every_node_is_on_the_device(succeed: Lissome, models: SimpleNamespace, tmp_path: Path):
    succeed(*call(tmp_path, models, "audit", "--device", "cuda", "--expect", "device=cuda"))
