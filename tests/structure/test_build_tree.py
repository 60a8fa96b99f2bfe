"""What was built keeps its promises: no libtorch where none is allowed, and small."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = ROOT / "build" / "lissome"
RELEASE = ROOT / "build" / "release"
RUNTIME = RELEASE / "lib" / "liblissome_runtime.so"
RUNTIME_BYTES = 10_000_000


def read_needed(path: Path) -> list[str]:
    """The libraries that a binary asks the loader for."""
    text = subprocess.run(["readelf", "-d", path], check=True, capture_output=True, text=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.+)\]", text)


def test_the_readers_of_needed_libraries_see_torch_where_it_is():
    assert any("torch" in name for name in read_needed(RELEASE / "lib" / "liblissome_torch.so"))


def read_functions(library: Path) -> set[str]:
    """Functions that it defines and lets others call, but for those that the compiler makes in every file."""
    lines = subprocess.run(["nm", "-DC", "--defined-only", library], capture_output=True, text=True, check=True).stdout
    return {line.split(" T ", 1)[1] for line in lines.splitlines() if " T " in line}


def test_no_function_is_in_two_libraries():
    """Both would take the one that is loaded first."""
    runtime, torch = read_functions(RUNTIME), read_functions(RELEASE / "lib" / "liblissome_torch.so")
    assert any("lissome::check_plan" in name for name in runtime)
    assert any("lissome::parse_program" in name for name in torch)
    assert runtime & torch == set()


BINDING = next((RELEASE / "python" / "lissome").glob("_runtime*.so"), RELEASE / "python" / "lissome" / "_runtime.so")


@pytest.mark.parametrize("binary", [PROGRAM, RUNTIME, BINDING], ids=["program", "runtime", "binding"])
def test_no_torch_is_linked(binary: Path):
    needed = read_needed(binary)
    assert "libc.so.6" in needed
    assert [name for name in needed if re.search("torch|c10|gomp|python", name)] == []


def test_the_runtime_is_small():
    assert RUNTIME.stat().st_size < RUNTIME_BYTES


def test_the_program_runs_without_libtorch():
    """The loader's own record of what it brought in for `lissome --help`."""
    environment = {**os.environ, "LD_DEBUG": "libs"}
    done = subprocess.run([PROGRAM, "--help"], env=environment, capture_output=True, text=True, timeout=30)
    assert done.returncode == 0
    loaded = set(re.findall(r"calling init: (\S+)", done.stderr))
    assert any(name.endswith("liblissome_runtime.so") for name in loaded)
    assert [name for name in loaded if "torch" in name] == []


def test_the_package_lies_where_it_is_imported_from():
    package = ROOT / "build" / "python" / "lissome"
    assert (package / "__init__.py").is_file()
    assert list(package.glob("_lissome*.so")) and list(package.glob("_runtime*.so"))
