"""Whatever batch an export left: fixed, from 2 on as torch.export chooses, or within a range of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.export import Dim

Lissome = Callable[..., Any]
SAMPLES = 103

BATCHES = {
    "fixed at 4": (None, 4),
    "from 2 on": (Dim.DYNAMIC, 2),
    "from 3 to 8": (Dim("batch", min=3, max=8), 3),
    "from 5 on": (Dim("batch", min=5), 5),
}


@pytest.fixture(params=BATCHES, scope="module")
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int]:
    """A folder with model.pt2 and data.npz, and the smallest batch that the model takes."""
    dimension, least = BATCHES[request.param]
    folder = tmp_path_factory.mktemp("batch")
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(16, 64), torch.nn.ReLU(), torch.nn.Linear(64, 3))
    x = torch.randn(SAMPLES, 16)
    shapes = None if dimension is None else ({0: dimension},)
    torch.export.save(torch.export.export(net, (x[: max(least, 4)],), dynamic_shapes=shapes), folder / "model.pt2")
    np.savez(folder / "data.npz", x=x.numpy(), y=torch.randint(0, 3, (SAMPLES,)).numpy())
    return folder, least


@pytest.mark.parametrize("command", ["bench", "profile", "audit"])
def test_a_call_has_the_smallest_batch(lissome: Lissome, model: tuple[Path, int], command: str):
    folder, least = model
    allowed = f"only batches of {least}" if least == 4 else f"batches of {least}"
    done = lissome(command, folder / "model.pt2")
    assert done.returncode == 0, done.stderr
    assert lissome(command, folder / "model.pt2", "--batch", str(least)).returncode == 0
    done = lissome(command, folder / "model.pt2", "--batch", str(least - 1))
    assert done.returncode == 2
    assert f"a batch of {least - 1} was asked for; the model takes {allowed}" in done.stderr


def test_optimize_takes_it_with_data_and_without(read_json: Lissome, lissome: Lissome, model: tuple[Path, int]):
    folder, least = model
    words = ("--time", "4s", "--threads", "1", "-o", "fast.lissome")
    for data in ((), ("--data", folder / "data.npz", "--labels", "y")):
        record = read_json("optimize", folder / "model.pt2", *data, *words)
        assert record["batch"] == least
        assert read_json("audit", "fast.lissome", "--expect", "fallback=none")["as_expected"]
    done = lissome("optimize", folder / "model.pt2", "--batch", str(least - 1), *words)
    assert done.returncode == 2 and f"batches of {least}" in done.stderr


def test_training_leaves_out_what_fills_no_batch(lissome: Lissome, model: tuple[Path, int]):
    folder, least = model
    words = ("train", folder / "model.pt2", "--data", folder / "data.npz", "--labels", "y", "--epochs", "2")
    done = lissome(*words, "-o", "trained.lissome")
    assert done.returncode == 0, done.stderr
    if least == 2:
        done = lissome(*words, "--batch", "34", "-o", "trained.lissome")  # 3 * 34 + 1
        assert done.returncode == 0 and "the last 1 of each epoch are left out" in done.stderr
        done = lissome(*words, "--batch", "1", "-o", "trained.lissome")
        assert done.returncode == 2 and "the model takes batches of 2 and more" in done.stderr
    assert lissome("bench", "trained.lissome").returncode == 0
