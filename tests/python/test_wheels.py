"""Both wheels, built, installed and used in environments of their own: one without torch, one that sees it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SITE = Path(sysconfig.get_path("purelib"))
MOST_BYTES = 8_000_000  # of the runtime's wheel


def run(*words: object, fails: bool = False, folder: Path | None = None) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        list(map(str, words)), cwd=folder, env=environment, capture_output=True, text=True, timeout=300, check=False
    )
    assert (done.returncode != 0) == fails, done.stdout + done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("wheels")
    run(ROOT / "tools" / "build_wheels", folder)
    return {path.name.split("-")[0]: path for path in folder.glob("*.whl")}


def make_environment(folder: Path, wheels: list[Path], neighbours: list[Path]) -> Path:
    """A virtual environment with these wheels and, linked, what lies in .venv; gives its programs' folder."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    site = Path(run(folder / "bin" / "python", "-c", "import sysconfig; print(sysconfig.get_path('purelib'))").strip())
    for path in neighbours:
        (site / path.name).symlink_to(path)
    words = ["install", "--quiet", "--no-index", "--no-deps", *wheels]
    run(sys.executable, "-m", "pip", "--python", folder / "bin" / "python", *words)
    return folder / "bin"


@pytest.fixture(scope="module")
def without_torch(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "plain"
    return make_environment(folder, [wheels["lissome_runtime"]], list(SITE.glob("numpy*")))


@pytest.fixture(scope="module")
def with_torch(tmp_path_factory: pytest.TempPathFactory, wheels: dict[str, Path]) -> Path:
    folder = tmp_path_factory.mktemp("environment") / "whole"
    made = make_environment(folder, list(wheels.values()), [])
    site = next(folder.glob("lib/python*/site-packages"))
    (site / "torch.pth").write_text(f"{SITE}\n")
    return made


def test_two_distributions_share_one_package_and_no_file(wheels: dict[str, Path]):
    members = {}
    for name, path in wheels.items():
        with zipfile.ZipFile(path) as archive:
            members[name] = {member for member in archive.namelist() if ".dist-info" not in member}
    assert members["lissome_runtime"] & members["lissome"] == set()
    assert {"lissome/__init__.py", "lissome/py.typed", "lissome/bin/lissome"} <= members["lissome_runtime"]
    assert {"lissome/making.py", "lissome/lib/liblissome_torch.so"} <= members["lissome"]


def test_the_runtime_is_small_and_its_tag_is_checked(wheels: dict[str, Path]):
    path = wheels["lissome_runtime"]
    assert path.stat().st_size <= MOST_BYTES
    tag = re.search(r"-(manylinux_\d+_\d+_x86_64)\.whl$", path.name)
    assert tag, path.name
    shown = run(sys.executable, "-m", "auditwheel", "show", path)
    assert f'"{tag[1]}"' in shown


def test_no_path_of_this_machine_is_in_a_wheel(wheels: dict[str, Path], tmp_path: Path):
    for path in wheels.values():
        with zipfile.ZipFile(path) as archive:
            archive.extractall(tmp_path)
    binaries = [*tmp_path.rglob("*.so*"), tmp_path / "lissome" / "bin" / "lissome"]
    assert len(binaries) >= 6
    for binary in binaries:
        found = re.search(r"RUNPATH.*\[(.*)\]|RPATH.*\[(.*)\]", run("readelf", "-d", binary))
        places = (found[1] or found[2]).split(":") if found else []
        assert all(place.startswith("$ORIGIN") for place in places), (binary, places)


RUN = """
import importlib.util, sys
import numpy as np, lissome
assert importlib.util.find_spec("torch") is None
model = lissome.load(sys.argv[1])
x = np.load(sys.argv[2])["input"]
np.save("seen.npy", model(x))
try:
    lissome.train
except ImportError as error:
    print(error)
print(lissome.__file__)
"""

MAKE = """
import sys, torch, lissome
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU()).eval()
x = torch.randn(4, 16)
fast = lissome.optimize(module, (x,), time="5s", threads=1)
torch.testing.assert_close(fast(x), module(x))
fast.save("fast.lissome")
torch.export.save(torch.export.export(module, (x,)), "module.pt2")
torch.testing.assert_close(lissome.load("module.pt2")(x), module(x))
labels = torch.randn(4, 8)
trained = lissome.train(module, x, labels=labels, loss="mse", example_inputs=(x,), threads=1)
assert trained(x).shape == (4, 8)
import numpy as np
np.savez("x.npz", input=x)
np.save("expected.npy", fast(x))
print(lissome.__file__)
"""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, with_torch: Path) -> Path:
    """The files that an environment with both packages makes."""
    folder = tmp_path_factory.mktemp("made")
    assert str(with_torch.parent) in run(with_torch / "python", "-c", MAKE, folder=folder)
    return folder


def test_the_whole_package_makes_models_and_runs_commands(with_torch: Path, made: Path):
    assert "input" in run(with_torch / "lissome", "inspect", made / "module.pt2")
    version = run(with_torch / "lissome", "--version")
    assert version.startswith("lissome ") and version == run(with_torch / "python", "-m", "lissome", "--version")


def test_the_runtime_alone_runs_what_the_whole_package_made(without_torch: Path, made: Path, tmp_path: Path):
    import numpy as np

    output = run(without_torch / "python", "-c", RUN, made / "fast.lissome", made / "x.npz", folder=tmp_path)
    assert str(without_torch.parent) in output and "pip install lissome torch" in output
    np.testing.assert_array_equal(np.load(tmp_path / "seen.npy"), np.load(made / "expected.npy"))
    run(without_torch / "lissome", "run", made / "fast.lissome", "--input", made / "x.npz", "--output", tmp_path / "y.npz")
    with np.load(tmp_path / "y.npz") as seen:
        np.testing.assert_array_equal(seen[seen.files[0]], np.load(made / "expected.npy"))
    refused = run(without_torch / "lissome", "inspect", made / "module.pt2", fails=True)
    assert "error unsupported: this needs libtorch and the part of lissome that makes models" in refused and "pip install lissome torch" in refused
