from __future__ import annotations

from pathlib import Path

import numpy
import pytest


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.npz"
    numpy.savez(path, x=numpy.array([[-1, 2, 3, 4]], numpy.float32)[0], i=numpy.array([0, 1, 2, 3]))
    return path
