"""Runs the tool of this folder."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

TOOL = Path(__file__).resolve().parents[2] / "build" / "release" / "tests" / "run_data"


@pytest.fixture
def transform(tmp_path: Path) -> Callable[..., np.ndarray]:
    """transform(images, text, seed=0, epoch=0) -> what comes out."""

    def run(images: np.ndarray, text: str, seed: int = 0, epoch: int = 0) -> np.ndarray:
        np.save(tmp_path / "in.npy", images)
        words = [TOOL, "transform", tmp_path / "in.npy", text, str(seed), str(epoch), tmp_path / "out.npz"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return np.load(tmp_path / "out.npz")["images"]

    return run
