"""No command writes over what it reads, or two of its results into one file, and no result goes where a name in a file points."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

Lissome = Callable[..., Any]


@pytest.fixture
def files(tmp_path: Path) -> Path:
    net = torch.nn.Sequential(torch.nn.Linear(3, 2))
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    torch.export.save(torch.export.export(net, (torch.randn(4, 3),), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", input=np.zeros((8, 3), np.float32), labels=np.zeros(8, np.int64))
    np.savez(tmp_path / "x.npz", input=np.zeros((8, 3), np.float32))
    return tmp_path


TRAIN = ["train", "net.pt2", "--data", "d.npz", "--labels", "labels", "--max-steps", "1", "-o", "t.lissome"]
OPTIMIZE = ["optimize", "net.pt2", "--time", "1s", "-o", "o.lissome"]


@pytest.mark.parametrize(
    ("words", "kept", "said"),
    [
        (["profile", "net.pt2", "--runs", "1", "--trace", "net.pt2"], "net.pt2", "is the model"),
        (["profile", "net.pt2", "--runs", "1", "--input", "x.npz", "--trace", "x.npz"], "x.npz", "is an input"),
        ([*OPTIMIZE, "--report", "net.pt2"], "net.pt2", "is the model"),
        ([*OPTIMIZE, "--report", "o.lissome"], None, "are one file"),
        ([*OPTIMIZE, "--report", "./o.lissome"], None, "are one file"),
        ([*TRAIN, "--log", "net.pt2"], "net.pt2", "is the model"),
        ([*TRAIN, "--log", "d.npz"], "d.npz", "is an input"),
        ([*TRAIN, "--report", "t.lissome"], None, "are one file"),
        ([*TRAIN, "--weights-out", "t.lissome"], None, "are one file"),
        ([*TRAIN, "--log", "old.jsonl", "--beside", "old.jsonl", "--report", "r.html"], "old.jsonl", "is an input"),
    ],
)
def test_files_that_a_command_reads_or_writes_are_not_overwritten(
    lissome: Lissome, files: Path, words: list[str], kept: str | None, said: str
):
    (files / "old.jsonl").write_text("{}\n")
    before = (files / kept).read_bytes() if kept else b""
    done = lissome(*words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not kept or (files / kept).read_bytes() == before
    assert not (files / "o.lissome").exists() and not (files / "t.lissome").exists()


def test_outputs_of_a_folder_of_inputs_do_not_replace_them(lissome: Lissome, files: Path):
    (files / "in").mkdir()
    for name in ("a.npz", "b.npz"):
        shutil.copy(files / "x.npz", files / "in" / name)
    before = (files / "in" / "a.npz").read_bytes()
    done = lissome("run", "net.pt2", "--input", "in", "-o", "in")
    assert done.returncode == 2 and "is an input" in done.stderr, done.stderr
    assert (files / "in" / "a.npz").read_bytes() == before
    assert lissome("run", "net.pt2", "--input", "in", "-o", "out").returncode == 0


def test_the_null_device_takes_any_number_of_results(lissome: Lissome, files: Path):
    done = lissome(*TRAIN, "--log", "/dev/null", "--snapshot-every", "never")
    assert done.returncode == 0, done.stderr
    assert (files / "t.lissome").exists()


def test_a_front_is_not_written_among_other_models(lissome: Lissome, files: Path):
    (files / "front").mkdir()
    assert lissome("prepare", "net.pt2", "-o", "front/01.lissome", "--keep-original").returncode == 0
    before = (files / "front" / "01.lissome").read_bytes()
    done = lissome("optimize", "front/01.lissome", "--front", "front", "--time", "1s", "-o", "o.lissome")
    assert done.returncode == 2 and "'01.lissome'" in done.stderr, done.stderr
    assert (files / "front" / "01.lissome").read_bytes() == before


class Named(torch.nn.Module):
    def __init__(self, name: str) -> None:
        super().__init__()
        self.name = name

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {self.name: x * 2}


@pytest.mark.parametrize("name", ["../../x", "/etc/x", "a\\b", "a\x1b]0;b\x07"])
def test_outputs_are_not_written_under_names_that_lead_elsewhere(lissome: Lissome, files: Path, name: str):
    torch.export.save(torch.export.export(Named(name), (torch.randn(2, 3),)), files / "named.pt2")
    np.save(files / "x.npy", np.zeros((2, 3), np.float32))
    done = lissome("run", "named.pt2", "--input", "x.npy", "-o", "y.npz")
    assert done.returncode == 4 and "an .npz cannot hold" in done.stderr, done.stderr
    assert "\x1b" not in done.stderr and not (files / "y.npz").exists()
    assert lissome("run", "named.pt2", "--input", "x.npy").returncode == 0

