"""The examples of README.md work as they stand there."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parents[2]

PROJECT = """
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(lissome REQUIRED)
add_executable(user main.cpp)
target_link_libraries(user PRIVATE lissome::{library})
"""


def read_blocks(language: str) -> list[str]:
    """The fenced blocks of README.md in that language."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)


def run(command: list[object], folder: Path, timeout: float = 300) -> str:
    environment = {
        **os.environ,
        "PATH": f"{ROOT / 'build'}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "build" / "python"),
    }
    done = subprocess.run(
        [str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=timeout
    )
    # A goal that is not met is an answer too (3).
    assert done.returncode in (0, 3), f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small classifier, its data, and one input."""
    import torch

    torch.manual_seed(0)
    path = tmp_path_factory.mktemp("readme")
    module = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU(), torch.nn.Linear(128, 10)).eval()
    samples = torch.randn(400, 64)
    batch = torch.export.Dim("batch", min=1, max=64)
    program = torch.export.export(module, (samples[:2],), dynamic_shapes=({0: batch},))
    torch.export.save(program, path / "model.pt2")
    (name,) = program.graph_signature.user_inputs
    with torch.no_grad():
        labels = module(samples).argmax(1)
    np.savez(path / "data.npz", **{name: samples.numpy(), "labels": labels.numpy()})
    np.savez(path / "x.npz", **{name: samples[:1].numpy()})
    return path


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An installed lissome."""
    path = tmp_path_factory.mktemp("prefix")
    run(["cmake", "--install", ROOT / "build" / "release", "--prefix", path], path)
    return path


def build_example(source: str, library: str, prefix: Path, project: Path) -> Path:
    """The program of one C++ block, built the way that docs/build.md shows."""
    (project / "CMakeLists.txt").write_text(PROJECT.format(library=library))
    (project / "main.cpp").write_text(source)
    run(["cmake", "-G", "Ninja", "-S", project, "-B", project / "b", f"-DCMAKE_PREFIX_PATH={prefix}"], project)
    run(["cmake", "--build", project / "b"], project)
    return project / "b" / "user"


def test_shell(folder: Path):
    (block,) = read_blocks("sh")
    output = run(["bash", "-euc", block], folder)
    assert "aten::linear" in output
    for name in ("fast.lissome", "report.html", "y.npz"):
        assert (folder / name).stat().st_size > 0
    with np.load(folder / "y.npz") as arrays:
        assert [arrays[name].shape for name in arrays] == [(1, 10)]


def test_cpp(folder: Path, prefix: Path, tmp_path_factory: pytest.TempPathFactory):
    making, running = read_blocks("cpp")
    maker = build_example(making, "torch", prefix, tmp_path_factory.mktemp("making"))
    (folder / "fast.lissome").unlink(missing_ok=True)
    assert run([maker], folder)
    assert (folder / "fast.lissome").stat().st_size > 0
    runner = build_example(running, "runtime", prefix, tmp_path_factory.mktemp("running"))
    assert "10 elements" in run([runner], folder)


def test_python(folder: Path):
    (block,) = read_blocks("python")
    assert "tensor(" in run([sys.executable, "-c", block], folder)
