"""Small models and data, exported once for all tests of the command line."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from answer import Answer, read_answer


class TwoTowers(torch.nn.Module):
    """Named inputs of two dtypes, and a dict of results."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(50, 16)
        self.numbers = torch.nn.Linear(8, 16)
        self.head = torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))

    def forward(self, ids: torch.Tensor, numbers: torch.Tensor) -> dict[str, torch.Tensor]:
        hidden = torch.tanh(self.words(ids).mean(1) + self.numbers(numbers))
        return {"scores": self.head(hidden), "hidden": hidden}


class Pictures(torch.nn.Module):
    """Convolutions, batch norm, and work enough to be measured."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(3, 16, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(16)
        self.body = torch.nn.Conv2d(16, 32, 3, stride=2, padding=1)
        self.head = torch.nn.Linear(32, 10)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.norm(self.stem(images)))
        hidden = torch.relu(self.body(hidden))
        return self.head(hidden.mean((2, 3)))


def save(path: Path, module: torch.nn.Module, example: tuple[torch.Tensor, ...], most: int = 64) -> None:
    batch = torch.export.Dim("batch", min=1, max=most)
    shapes = tuple({0: batch} for _ in example)
    torch.export.save(torch.export.export(module.eval(), example, dynamic_shapes=shapes), path)


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """classifier.pt2 (with data), towers.pt2, pictures.pt2, and the modules they came from."""
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("models")
    classifier = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.ReLU(), torch.nn.Linear(256, 10)).eval()
    towers, pictures = TwoTowers().eval(), Pictures().eval()
    samples = torch.randn(240, 64)
    with torch.no_grad():
        labels = classifier(samples).argmax(1)
    save(folder / "classifier.pt2", classifier, (samples[:2],))
    save(folder / "towers.pt2", towers, (torch.zeros(2, 5, dtype=torch.int64), torch.randn(2, 8)))
    save(folder / "pictures.pt2", pictures, (torch.randn(2, 3, 32, 32),))
    np.savez(folder / "data.npz", input=samples.numpy(), labels=labels.numpy())
    np.savez(folder / "one.npz", input=samples[:1].numpy())
    return SimpleNamespace(
        folder=folder,
        classifier=folder / "classifier.pt2",
        towers=folder / "towers.pt2",
        pictures=folder / "pictures.pt2",
        data=folder / "data.npz",
        one=folder / "one.npz",
        samples=samples,
        labels=labels,
        modules={"classifier": classifier, "towers": towers, "pictures": pictures},
    )


@pytest.fixture(scope="session")
def prepared(models: SimpleNamespace, program: Path) -> Path:
    """The classifier as a finished model, made without a search."""
    path = models.folder / "prepared.lissome"
    subprocess.run([str(program), "prepare", str(models.classifier), "-o", str(path)], check=True, capture_output=True)
    return path


@pytest.fixture
def succeed(lissome: Callable[..., subprocess.CompletedProcess[str]]) -> Callable[..., str]:
    """Runs a command that must succeed and returns what it printed."""

    def run(*words: object, **options: Any) -> str:
        done = lissome(*words, **options)
        assert done.returncode == 0, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    return run


@pytest.fixture
def read_json(succeed: Callable[..., str]) -> Callable[..., Answer]:
    """The same with --json: the result, and its tables."""
    return lambda *words, **options: read_answer(succeed(*words, "--json", **options))


class Small(torch.nn.Module):
    """Dropout, whose draws are state, and batch norm, whose statistics are."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Linear(12, 32)
        self.norm = torch.nn.BatchNorm1d(32)
        self.dropout = torch.nn.Dropout(0.2)
        self.head = torch.nn.Linear(32, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.dropout(torch.relu(self.norm(self.stem(x)))))


def make_training(folder: Path) -> SimpleNamespace:
    """small.pt2 in train form and data for it: what takes little time to train."""
    torch.manual_seed(5)
    net, x = Small().train(), torch.randn(120, 12)
    labels = (x @ torch.randn(12, 3)).argmax(1)
    batch = torch.export.Dim("batch", min=2, max=512)
    torch.export.save(torch.export.export(net, (x[:4],), dynamic_shapes=({0: batch},)), folder / "small.pt2")
    np.savez(folder / "train.npz", x=x[:90].numpy(), labels=labels[:90].numpy())
    np.savez(folder / "val.npz", x=x[90:].numpy(), labels=labels[90:].numpy())
    words = ["train", folder / "small.pt2", "--data", folder / "train.npz", "--labels", "labels", "--batch", "10"]
    return SimpleNamespace(folder=folder, net=net, words=words, validation=["--validation", folder / "val.npz"])


@pytest.fixture(scope="session")
def training(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return make_training(tmp_path_factory.mktemp("training"))
