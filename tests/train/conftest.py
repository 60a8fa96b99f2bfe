"""Runs the tool of this folder."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parents[2] / "build" / "release" / "tests" / "run_train"


@pytest.fixture
def run_train() -> Callable[..., str]:
    """run_train WORDS... -> what it printed; it must succeed."""

    def run(*words: object) -> str:
        done = subprocess.run([TOOL, *map(str, words)], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run
