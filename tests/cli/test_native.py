"""Native code of AOTInductor: never run unasked, timed when asked."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

Lissome = Callable[..., Any]


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    """A program, the package that was compiled from it, and both in one file."""
    folder = tmp_path_factory.mktemp("native")
    torch.manual_seed(0)
    module = torch.nn.Sequential(torch.nn.Linear(16, 8), torch.nn.ReLU()).eval()
    exported = torch.export.export(module, (torch.randn(2, 16),))
    torch.export.save(exported, folder / "program.pt2")
    torch._inductor.aoti_compile_and_package(exported, package_path=str(folder / "compiled.pt2"))
    with zipfile.ZipFile(folder / "both.pt2", "w") as both:
        for name in ("program", "compiled"):
            with zipfile.ZipFile(folder / f"{name}.pt2") as source:
                for member in source.namelist():
                    path = "both/" + member.split("/", 1)[1]
                    if path not in both.namelist():
                        both.writestr(path, source.read(member))
    return SimpleNamespace(**{name: folder / f"{name}.pt2" for name in ("program", "compiled", "both")})


@pytest.mark.parametrize("command", ["bench", "profile", "audit", "inspect"])
def test_native_code_is_refused_unasked(lissome: Lissome, native: SimpleNamespace, command: str):
    refused = lissome(command, native.compiled)
    assert refused.returncode == 4 and "native code" in refused.stderr and "--allow-native" in refused.stderr


def test_native_code_is_timed_when_asked(read_json: Lissome, native: SimpleNamespace):
    for words, name in (((native.program, native.compiled), native.compiled), ((native.both,), native.both)):
        result = read_json("bench", *words, "--allow-native", "--runs", "10", "--batch", "2", "--threads", "1")
        program, compiled = result.tables["Models"]
        assert program["speed"] == 1 and compiled["model"] == f"{name} native code"
        assert 0 < compiled["median"] and compiled["from"] <= compiled["speed"] <= compiled["to"]
        assert compiled["resident"] is None and program["resident"] > 0
        (answers,) = result.tables["Native code"]
        assert answers["model"] == compiled["model"] and 0 <= answers["answers differ by"] < 1e-5


def test_a_program_beside_native_code_is_what_runs(lissome: Lissome, native: SimpleNamespace, read_json: Lissome):
    assert len(read_json("bench", native.both, "--runs", "2", "--batch", "2").tables["Models"]) == 1
    audited = lissome("audit", native.both, "--batch", "2")
    assert audited.returncode == 0 and "which was not run" in audited.stderr
    assert "native" not in lissome("audit", native.program, "--batch", "2").stderr


def test_native_code_needs_a_program_before_it(lissome: Lissome, native: SimpleNamespace, tmp_path: Path):
    alone = lissome("bench", native.compiled, "--allow-native")
    assert alone.returncode == 2 and "does not describe its inputs" in alone.stderr
    streams = lissome("bench", native.program, "--allow-native", "--streams", "auto")
    assert streams.returncode == 2 and "exclude each other" in streams.stderr
    with zipfile.ZipFile(tmp_path / "broken.pt2", "w") as broken:
        broken.writestr("broken/data/aotinductor/model/model.so", b"no code")
        broken.writestr("broken/archive_format", b"pt2")
    refused = lissome("bench", native.program, "broken.pt2", "--allow-native", "--batch", "2")
    assert refused.returncode == 4 and "does not run" in refused.stderr
