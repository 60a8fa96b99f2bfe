"""The package's types: mypy over the package itself, over programs that use it rightly and wrongly, and over the stubs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import lissome
import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = Path(lissome.__file__).parent

RIGHT = """
import asyncio
import numpy as np
import lissome

model: lissome.FastModel = lissome.load("x.lissome", threads=2, memory="64MiB")
names: list[str] = [value.name for value in model.inputs]
result = asyncio.run(model.run_async(np.zeros(3)))
numbers: lissome.FastModel = model.to_numpy()
streamed: int = model.stream.streamed
try:
    best: lissome.FastModel = lissome.optimize("x.pt2", data="x.npz", latency="5ms", time=10.0)
except lissome.Interrupted as error:
    print(error.best)
except lissome.OverBudgetError as refused:
    memory: MemoryError = refused
trained: lissome.Trained = lissome.train("x.pt2", "x.npz", loss="mse", optimizer="sgd", batch=None, freeze=["a.*"])
again = lissome.optimize(trained)
"""

WRONG = {
    "lissome.load(3)": "arg-type",
    'lissome.load("x", threads="2")': "arg-type",
    'lissome.load("x").save()': "call-arg",
    'lissome.optimize("x", batch="2")': "arg-type",
    'lissome.optimize("x", lateness=3)': "call-arg",
    'lissome.train("x", "y", epochs="2")': "arg-type",
    'text: str = lissome.load("x").threads': "assignment",
    "lissome.nothing": "attr-defined",
}


def run_mypy(folder: Path, *words: object) -> tuple[int, str]:
    environment = os.environ | {"MYPYPATH": str(PACKAGE.parent)}
    command = [sys.executable, "-m", "mypy", "--config-file", ROOT / "pyproject.toml", "--cache-dir", folder / "cache"]
    done = subprocess.run(
        [*map(str, command), *map(str, words)], cwd=folder, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def test_programs_that_use_the_package_are_checked_by_its_types(tmp_path: Path):
    (tmp_path / "right.py").write_text(RIGHT)
    code, output = run_mypy(tmp_path, "right.py")
    assert code == 0, output
    (tmp_path / "wrong.py").write_text("import lissome\n" + "".join(f"{line}\n" for line in WRONG))
    code, output = run_mypy(tmp_path, "wrong.py")
    assert code == 1, output
    for number, (line, error) in enumerate(WRONG.items(), start=2):
        assert any(row.startswith(f"wrong.py:{number}: ") and f"[{error}]" in row for row in output.splitlines()), (line, output)


def test_the_package_itself_is_typed(tmp_path: Path):
    code, output = run_mypy(tmp_path, "--package", "lissome")
    assert code == 0, output


# pybind11 gives its classes a metaclass, and those that only it makes an __init__ that raises.
ALLOWED = {"lissome._runtime": ["Model", "StreamFacts"],
           "lissome._lissome": ["Dataset", "MemoryProbe", "OptimizeArguments", "QuantizeArguments", "Program"]}  # fmt: skip


@pytest.mark.parametrize("module", ALLOWED)
def test_stubs_say_what_the_modules_hold(tmp_path: Path, module: str):
    names = "".join(rf"{module}\.{name}(\.__init__)?" + "\n" for name in ALLOWED[module])
    (tmp_path / "allowed.txt").write_text(names.replace("lissome.", r"lissome\."))
    words = [module, "--mypy-config-file", str(ROOT / "pyproject.toml"), "--allowlist", "allowed.txt"]
    source = (
        "import torch, sys\nfrom mypy.stubtest import test_stubs, parse_options\n"
        f"sys.exit(test_stubs(parse_options({words + ['--ignore-unused-allowlist']})))\n"
    )
    environment = os.environ | {"MYPYPATH": str(PACKAGE.parent), "PYTHONPATH": str(PACKAGE.parent)}
    done = subprocess.run(
        [sys.executable, "-c", source], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
