"""The commands and the Python that docs/ shows in indented blocks work as they stand there."""

from __future__ import annotations

import ast
import asyncio
import copy
import os
import pickle
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import lissome
import numpy as np
import pytest
import torch

ROOT = Path(__file__).resolve().parents[2]
DOCS = sorted([*(ROOT / "docs").glob("*.md"), ROOT / "README.md"])
SAMPLES = 1500


def read_blocks(path: Path) -> list[list[str]]:
    """Runs of lines that are indented by four spaces, without them; a line that ends in a backslash goes on."""
    blocks: list[list[str]] = []
    before = ""
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("    "):
            if not before.startswith("    "):
                blocks.append([])
            if before.endswith("\\"):
                blocks[-1][-1] = blocks[-1][-1][:-1].rstrip() + " " + line.strip()
            else:
                blocks[-1].append(line[4:])
        before = line
    return blocks


def list_commands(path: Path) -> list[str]:
    """Whole commands: a line may end in words for the reader, and "lissome train ..." stands for the page's first."""
    found: list[str] = []
    for line in (line for block in read_blocks(path) for line in block):
        if not re.match(r"lissome [a-z]", line):
            continue
        command = re.split(r" {3,}", line)[0]
        if " ... " in command:
            command = command.replace("lissome train ...", found[0].replace("--epochs 10", "--epochs 100"))
        found.append(command)
    return found


COMMANDS = [(path.name, command) for path in DOCS for command in list_commands(path)]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that the pages name."""
    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("docs")
    layers = torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, 4)
    module, x = torch.nn.Sequential(*layers), torch.randn(SAMPLES, 16)
    batch = torch.export.Dim("batch", min=2, max=512)
    exported = torch.export.export(module.train(), (x[:4],), dynamic_shapes=({0: batch},))
    torch.export.save(exported, path / "model.pt2")
    for name in ("data", "train", "val"):
        np.savez(path / f"{name}.npz", input=x.numpy(), labels=x[:, :4].argmax(1).numpy())
    np.savez(path / "x.npz", input=x[:2].numpy())
    return path


def test_the_pages_show_commands():
    assert len(COMMANDS) >= 7
    assert {command.split()[1] for _, command in COMMANDS} >= {"optimize", "train", "budget"}


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{page}-{i}" for i, (page, _) in enumerate(COMMANDS)])
def test_a_command_runs(program: Path, folder: Path, page: str, command: str):
    words = shlex.split(command)
    if "--time" not in words and words[1] == "optimize":
        words += ["--time", "4s"]
    done = subprocess.run([program, *words[1:]], cwd=folder, capture_output=True, text=True, check=False, timeout=300,
                          env={**os.environ, "NO_COLOR": "1"})
    # A goal that is not met is an answer too (3).
    assert done.returncode in (0, 3), f"{page}: {command}\n{done.stderr}"


class Scaled(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(16, 4)

    def forward(self, features: torch.Tensor, gain: float = 2.0) -> torch.Tensor:
        return self.head(features) * gain


class Rows(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        return torch.full((16,), index / 64.0), index % 4


def read_python(path: Path, word: str) -> str:
    """The block of the page that starts with `word`, without what stands behind code for the reader."""
    (block,) = [block for block in read_blocks(path) if block[0].startswith(word)]
    lines = [line if line.startswith(" ") else re.split(r" {2,}", line)[0] for line in block]
    return "\n".join(lines)


def execute(code: str, names: dict[str, Any]) -> dict[str, Any]:
    awaits = compile(code, "docs", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    result = eval(awaits, names)  # noqa: S307  our own pages
    if asyncio.iscoroutine(result):
        asyncio.run(result)
    return names


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    monkeypatch.chdir(tmp_path)
    x = torch.randn(64, 16)
    return {"lissome": lissome, "torch": torch, "pickle": pickle, "copy": copy, "path": "again.lissome", "x": x, "x2": x,
            "features": x, "y": torch.randn(64, 4), "y2": torch.randn(64, 4), "labels": torch.arange(64) % 4,
            "module": torch.nn.Sequential(torch.nn.Linear(16, 4)), "dataset": Rows()}


def test_a_finished_model_in_python(names: dict[str, Any]):
    x, module = names["x"], Scaled().eval()
    made = lissome.optimize(module, (x[:4],), example_kwargs={"gain": 2.0}, data=x, time="3s", max_loss=0.0)
    made.save("fast.lissome")
    fast = execute(read_python(ROOT / "docs" / "python.md", "fast = lissome.load"), names)["fast"]
    torch.testing.assert_close(fast(x, gain=2.0), module(x), rtol=1e-4, atol=1e-5)
    assert fast.record and Path("again.lissome").stat().st_size > 0


def test_training_in_python(names: dict[str, Any]):
    before = names["module"][0].weight.detach().clone()
    trained = execute(read_python(ROOT / "docs" / "python.md", "optimizer = torch.optim.SGD"), names)["trained"]
    assert trained(names["x"]).shape == (64, 4) and not torch.equal(before, names["module"][0].weight)


def test_training_inside_memory_in_python(names: dict[str, Any]):
    execute(read_python(ROOT / "docs" / "training.md", "trained = lissome.train"), names)
    assert lissome.load("trained.lissome")(names["x"][:4]).shape == (4, 4)


def test_training_from_a_dataset_in_python(names: dict[str, Any]):
    before = names["module"][0].weight.detach().clone()
    execute(read_python(ROOT / "docs" / "data.md", "lissome.train(module, dataset"), names)
    assert not torch.equal(before, names["module"][0].weight)
