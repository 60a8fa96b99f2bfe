"""Every exported case, imported and interpreted, gives PyTorch's numbers: exports once, then runs run_parity."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

FOLDER = Path(__file__).resolve().parent
BUILD = FOLDER.parents[1] / "build" / "release"
JOBS = min(4, len(os.sched_getaffinity(0)))


def make_key() -> str:
    """Names what the exported files depend on: the exporter's sources and the version of torch."""
    digest = hashlib.sha256(torch.__version__.encode())
    for path in sorted(FOLDER.rglob("*.py")):
        if not path.name.startswith("test_"):
            digest.update(path.relative_to(FOLDER).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@pytest.fixture(scope="session")
def cases() -> Path:
    """The exported cases, kept in the build folder until the exporter or torch changes."""
    parent = BUILD / "parity"
    folder = parent / make_key()
    if not (folder / "index.json").is_file():
        shutil.rmtree(parent, ignore_errors=True)
        part = parent / "part"
        command = [sys.executable, str(FOLDER / "export_models.py"), "--output", str(part), "--jobs", str(JOBS)]
        subprocess.run(command, check=True)
        part.rename(folder)
    return folder


def test_interpretation_equals_pytorch(cases: Path) -> None:
    result = subprocess.run([BUILD / "tests" / "run_parity", str(cases)], capture_output=True, text=True, check=False)
    table = result.stdout + result.stderr
    (BUILD / "parity" / "coverage.txt").write_text(table)
    print(table)
    assert result.returncode == 0, table[-8000:]
    totals = re.search(r"(\d+) of (\d+) cases agree .*; (\d+) have dynamic dimensions, (\d+) are in train mode", table)
    assert totals is not None
    agree, every, dynamic, train = map(int, totals.groups())
    assert agree == every >= 70
    assert dynamic >= 15
    assert train >= 5
