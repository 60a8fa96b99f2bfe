"""Model files written by hand: a program, or a plan of one reference step over x: f32[4] and i: i64[4]."""

from __future__ import annotations

import json
import os
import subprocess
import zipfile
from pathlib import Path


def write_file(path: Path, members: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        head = {"format": "lissome", "version": 1, "written_by": "a stranger"}
        for name, text in {"lissome.json": json.dumps(head), "metadata.json": "{}",
                           "arrays.json": json.dumps({"weights": [], "plan": []}), **members}.items():
            file.writestr(name, text)
    return path


def program_of(node: str, inputs: str = "input %x: f32[4]\ninput %i: i64[4]\n", result: str = "%y") -> str:
    return f"{inputs}{node}\nreturn {result}\n"


def make_plan(program: str, **changes: object) -> dict:
    """One reference step over x: f32[4] and i: i64[4], which gives y."""
    nodes = sum(1 for line in program.splitlines() if "::" in line)
    plan = {
        "format": 3, "machine": {"processor": "", "features": "", "threads": 1}, "dimensions": [],
        "inputs": [{"name": "x", "value": 0}, {"name": "i", "value": 1}], "outputs": [{"name": "y", "value": 2}],
        "input_tree": "", "output_tree": "", "arrays": [],
        "values": [{"name": "x", "storage": "input", "dtype": "f32", "sizes": [4]},
                   {"name": "i", "storage": "input", "dtype": "i64", "sizes": [4]},
                   {"name": "y", "storage": "held", "dtype": "f32", "sizes": [4]}],
        "steps": [{"kernel": "reference", "operands": [0, 1], "results": [2], "program": program,
                   "origins": [["y", "aten::op", "net.py:12", "", "net.load", ""]] * nodes}],
        "writes": [], "choices": [],
    }
    plan.update(changes)
    return plan


def write_plan(path: Path, plan: dict) -> Path:
    return write_file(path, {"program.txt": program_of("%y: f32[4] = aten::relu(%x)"), "plan.json": json.dumps(plan)})


def run(program: Path, *words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *map(str, words)], cwd=folder, capture_output=True, text=True, timeout=120,
                          check=False)


def check_refused(result: subprocess.CompletedProcess[str], *words: str) -> None:
    assert result.returncode == 4, (result.returncode, result.stdout, result.stderr)
    for word in words:
        assert word in result.stderr, result.stderr


def run_plan(program: Path, plan: dict, data: Path, *words: object) -> subprocess.CompletedProcess[str]:
    model = write_plan(data.parent / "model.lissome", plan)
    before = sorted(os.listdir(data.parent))
    result = run(program, "run", model, "--input", data, *words, folder=data.parent)
    assert sorted(os.listdir(data.parent)) == before
    return result
