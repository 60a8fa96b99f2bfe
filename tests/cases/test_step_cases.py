"""Each kind of step gives what ATen gives, on each level of instruction sets, with one to three threads: on the cases
beside its declaration, at sizes drawn at random. LISSOME_CASES=N draws so many sizes a case (3).
"""

from __future__ import annotations

import json
import os
import subprocess
from functools import cache
from pathlib import Path

import pytest

from step_cases import StepCase, compute, read_cases

TOOLS = Path(__file__).resolve().parents[2] / "build" / "release" / "tests"
DRAWS = int(os.environ.get("LISSOME_CASES", "3"))
GROUPS = 8  # of cases, so that processes share them
WITHOUT_PROGRAM = {"offload", "reload"}  # made by the budget planner, not by lowering


def run_cases(folder: Path) -> dict[str, dict]:
    done = subprocess.run([str(TOOLS / "run_cases"), "check", str(folder)], capture_output=True, text=True, check=True)
    return {row["name"]: row for row in map(json.loads, done.stdout.splitlines())}


@cache
def list_kinds() -> frozenset[str]:
    done = subprocess.run([str(TOOLS / "write_seed_plans"), "--kinds"], capture_output=True, text=True, check=True)
    return frozenset(done.stdout.split())


def test_every_kind_of_step_shows_a_case() -> None:
    assert {case.kernel for case in read_cases()} == list_kinds() - WITHOUT_PROGRAM


@pytest.mark.parametrize("group", range(GROUPS))
def test_every_case_agrees_with_aten(group: int, tmp_path: Path) -> None:
    cases = read_cases()[group::GROUPS]
    wanted: dict[str, StepCase] = {}
    for case in cases:
        for seed in range(DRAWS):
            wanted[f"{case.name}.{seed}"] = case
            (tmp_path / f"{case.name}.{seed}.txt").write_text(case.draw(seed), encoding="utf-8")
    rows = run_cases(tmp_path)
    assert rows.keys() == wanted.keys()
    faults = {name: row["faults"] for name, row in rows.items() if row["faults"]}
    assert not faults, json.dumps(faults, indent=1)
    assert [name for name, row in rows.items() if wanted[name].kernel not in row["kernels"]] == []


def test_sizes_are_computed() -> None:
    assert compute("(h - 1) // 2 + 3 * w", {"h": 8, "w": 2}) == 9
    with pytest.raises(ValueError, match="neither a size"):
        compute("h ^ 2", {"h": 3})
