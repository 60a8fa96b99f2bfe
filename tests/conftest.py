"""What every test of a whole command needs: the built program, the built package, a clean environment."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "lissome"
sys.path.insert(0, str(ROOT / "build" / "python"))
# What a shell starts in the background ignores Ctrl-C; the tests of interrupts, and their children, must not.
signal.signal(signal.SIGINT, signal.default_int_handler)


# What measures time, or counts what the whole machine holds, runs with nothing beside it.
ALONE = (
    "bench",
    *(f"python/test_python_{name}.py" for name in ("interrupt", "steady", "workers")),
    *(f"cli/test_{name}.py" for name in ("device", "measure", "optimize", "signals", "train_watch")),
)


# Files of half a minute and more. They begin first, so that no process runs one of them where the others have nothing left.
LONG = (
    *(f"cli/test_{name}.py" for name in ("budget", "chain", "input_names", "processes", "quantize")),
    *(f"cli/test_train_{name}.py" for name in ("figures", "memory", "modules")),
    "data/test_loader.py",
    "parity/test_without_libtorch.py",
    "refuse/test_gate.py",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marks what runs alone, and puts first what takes long."""
    alone = tuple(ROOT / "tests" / name for name in ALONE)
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in alone):
            item.add_marker("alone")
    long = {ROOT / "tests" / name for name in LONG}
    items.sort(key=lambda item: item.path not in long)


@pytest.fixture(scope="session")
def root() -> Path:
    """The root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def program() -> Path:
    """build/lissome, as `make build` leaves it."""
    assert PROGRAM.is_file(), f"{PROGRAM} is not there; run make build"
    return PROGRAM


@pytest.fixture
def lissome(program: Path, tmp_path: Path) -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs `lissome WORDS...` in an empty folder and returns its exit status, output and errors."""

    def run(*words: object, timeout: float = 300, **options: object) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "COLUMNS": "120", "NO_COLOR": "1"}
        defaults = {"cwd": tmp_path, "env": environment, "capture_output": True, "text": True}
        return subprocess.run([str(program), *map(str, words)], timeout=timeout, check=False, **{**defaults, **options})

    return run
