"""torch.export follows one branch of a module's code, and says for which sizes: at others a model is refused, in every
command, and the sizes that commands choose themselves meet what the export asks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch.export import Dim

Lissome = Callable[..., Any]


class Even(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[1] % 2 == 0 else x * 3


class Wider(nn.Module):
    def forward(self, x: torch.Tensor, others: dict[str, list[torch.Tensor]]) -> torch.Tensor:
        y = others["all"][0]
        return x * 2 + y.sum() if x.shape[1] > y.shape[1] else x * 3 + y.sum()


class Pool(nn.Module):
    """No branch of its own: PyTorch's code for rounding up has one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.avg_pool2d(x, (3, 2), (2, 3), (1, 1), ceil_mode=True, count_include_pad=False)


class Window(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rest = x.shape[1] % 4
        if rest != 0:
            x = nn.functional.pad(x, (0, 4 - rest))
        return x.reshape(x.shape[0], -1, 4).mean(-1)


def both(rank: int) -> dict[int, Any]:
    return {place: Dim.AUTO for place in range(rank)}


# Module, example, dynamic shapes; sizes (of the last example) that the export covers, and that it does not.
CASES: dict[str, tuple[nn.Module, tuple[Any, ...], Any, list[tuple[int, ...]], list[tuple[int, ...]]]] = {
    "even": (Even(), (torch.randn(2, 8),), (both(2),), [(2, 6), (5, 10)], [(2, 7), (3, 9)]),
    "pool": (Pool(), (torch.randn(2, 4, 16, 18),), ({2: Dim.AUTO, 3: Dim.AUTO},), [(2, 4, 18, 15)], [(2, 4, 17, 19)]),
    "window": (Window(), (torch.randn(2, 8),), (both(2),), [(3, 12)], [(2, 5), (2, 11)]),
    "padded window": (Window(), (torch.randn(2, 7),), (both(2),), [(3, 11), (3, 9)], [(2, 8)]),
}


def export(folder: Path, name: str) -> Path:
    module, example, shapes, _, _ = CASES[name]
    path = folder / "m.pt2"
    torch.export.save(torch.export.export(module.eval(), example, dynamic_shapes=shapes), path)
    return path


def holds(path: Path, x: torch.Tensor) -> bool:
    """What PyTorch itself says of these sizes."""
    try:
        torch.export.load(path).module()(x)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("name", CASES)
def test_sizes_of_another_branch_are_refused(lissome: Lissome, succeed: Lissome, tmp_path: Path, name: str):
    path = export(tmp_path, name)
    module, _, _, right, wrong = CASES[name]
    succeed("prepare", path, "-o", "m.lissome")
    succeed("prepare", path, "-o", "kept.lissome", "--keep-original")
    for sizes in right + wrong:
        x = torch.randn(sizes)
        assert holds(path, x) == (sizes in right), sizes
        np.savez(tmp_path / "x.npz", x=x.numpy())
        for model in (path, "m.lissome", "kept.lissome"):
            done = lissome("run", model, "--input", "x.npz", "--output", "y.npz")
            if sizes in wrong:
                assert done.returncode == 4 and "exported for sizes where" in done.stderr, (sizes, done.stderr)
                continue
            assert done.returncode == 0, done.stderr
            with np.load(tmp_path / "y.npz") as outputs:
                seen = next(iter(outputs.values()))
            np.testing.assert_allclose(seen, module(x).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_sizes_that_commands_choose_meet_what_the_export_asks(succeed: Lissome, tmp_path: Path, name: str):
    path = export(tmp_path, name)
    succeed("prepare", path, "-o", "m.lissome", "--effort", "normal")
    succeed("bench", path, "m.lissome", "--runs", "3", "--warmup", "1")
    succeed("audit", "m.lissome")
    assert 'require "' in succeed("inspect", path, "--text")


def test_guards_between_nested_inputs(lissome: Lissome, succeed: Lissome, tmp_path: Path):
    path = tmp_path / "m.pt2"
    example = (torch.randn(2, 8), {"all": [torch.randn(2, 5)]})
    shapes = ({1: Dim.AUTO}, {"all": [{1: Dim.AUTO}]})
    torch.export.save(torch.export.export(Wider(), example, dynamic_shapes=shapes), path)
    for width, other, code in ((9, 3, 0), (4, 4, 4), (3, 6, 4)):
        x, y = torch.randn(2, width), torch.randn(2, other)
        np.savez(tmp_path / "x.npz", **{"x": x.numpy(), "others.all.0": y.numpy()})
        done = lissome("run", path, "--input", "x.npz", "--output", "y.npz")
        assert done.returncode == code, done.stderr
    assert "exported for sizes where" in done.stderr


def test_training_stops_at_a_batch_of_another_branch(lissome: Lissome, tmp_path: Path):
    class Net(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.linear(x) * (2 if x.shape[0] % 2 == 0 else 3)

    program = torch.export.export(Net(), (torch.randn(4, 3),), dynamic_shapes=({0: Dim.AUTO},))
    torch.export.save(program, tmp_path / "m.pt2")
    generator = np.random.default_rng(0)
    arrays = {"x": generator.normal(size=(28, 3)).astype(np.float32), "y": generator.integers(0, 2, 28)}
    np.savez(tmp_path / "d.npz", **arrays)
    words = ("train", "m.pt2", "--data", "d.npz", "--labels", "y", "--epochs", "1", "-o", "t.lissome", "--batch")
    assert lissome(*words, "4").returncode == 0
    done = lissome(*words, "7")
    assert done.returncode == 4 and "exported for sizes where" in done.stderr, done.stderr
