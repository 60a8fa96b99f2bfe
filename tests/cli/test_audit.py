"""lissome audit: what every node ran on, and an exit code when that is not what was expected."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

Lissome = Callable[..., Any]


def test_a_prepared_model_runs_on_own_kernels(read_json: Lissome, rows: Lissome, prepared: Path):
    result = read_json("audit", prepared, "--expect", "fallback=none,dtype=f32,device=cpu")
    assert result["met"] and result["breaches"] == []
    nodes = rows(result["nodes"])
    assert {node["kernel"] for node in nodes} >= {"linear_f32"}
    assert all(node["device"] == "cpu" and node["kernel"] != "reference" for node in nodes)


def test_a_fallback_is_not_hidden(lissome: Lissome, models: SimpleNamespace):
    done = lissome("audit", models.classifier, "--expect", "fallback=none")
    assert done.returncode == 3
    assert "not as expected: fallback=none" in done.stdout and "ran through libtorch" in done.stdout


def test_another_dtype_and_isa_are_named(lissome: Lissome, prepared: Path):
    done = lissome("audit", prepared, "--isa", "avx2", "--expect", "dtype=int8,isa=avx512")
    assert done.returncode == 3
    assert "dtype=int8" in done.stdout and "multiplied f32" in done.stdout and "ran on avx2" in done.stdout


@pytest.mark.parametrize("expect", ["speed=fast", "dtype=int4", "fallback", "dtype=f32,dtype=f32"])
def test_unknown_expectations(lissome: Lissome, prepared: Path, expect: str):
    done = lissome("audit", prepared, "--expect", expect)
    assert done.returncode == 2 and done.stderr.startswith("error usage: --expect") and done.stdout == ""
