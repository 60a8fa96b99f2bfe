"""Every exported case, imported and interpreted, gives PyTorch's numbers; so does what prepare_inference makes of it, and
what any passes in any order make of it. Exports once, then runs the runners, which README.md describes."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
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
        if not path.name.startswith(("test_", "op_")):
            digest.update(path.relative_to(FOLDER).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:16]


@pytest.fixture(scope="session")
def cases() -> Path:
    """The exported cases, kept in the build folder until the exporter or torch changes."""
    parent = BUILD / "parity"
    folder = parent / make_key()
    with (BUILD / "parity.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # pytest may run several files of tests at once
        if not (folder / "index.json").is_file():
            shutil.rmtree(parent, ignore_errors=True)
            part = parent / "part"
            command = [sys.executable, str(FOLDER / "export_models.py"), "--output", str(part), "--jobs", str(JOBS)]
            subprocess.run(command, check=True)
            part.rename(folder)
    return folder


def run_over(cases: Path, runner: str, name: str) -> str:
    """Runs a runner over all cases and returns what it printed, kept as build/release/parity/NAME."""
    result = subprocess.run([BUILD / "tests" / runner, str(cases)], capture_output=True, text=True, check=False)
    table = result.stdout + result.stderr
    (BUILD / "parity" / name).write_text(table)
    print(table)
    assert result.returncode == 0, table[-8000:]
    return table


def test_interpretation_equals_pytorch(cases: Path) -> None:
    table = run_over(cases, "run_parity", "coverage.txt")
    totals = re.search(r"(\d+) of (\d+) cases agree .*; (\d+) have dynamic dimensions, (\d+) are in train mode", table)
    assert totals is not None
    agree, every, dynamic, train = map(int, totals.groups())
    assert agree == every >= 70
    assert dynamic >= 15
    assert train >= 5


def age_lstm(graph: dict) -> None:
    """Notes sizes as torch 2.11 and 2.12 do: the last states of an LSTM, and what is computed from them, get a
    dimension of 1 too many."""
    one = {"as_int": 1}
    reached: set[str] = set()
    for node in graph["nodes"]:
        outputs = [output["as_tensor"]["name"] for output in node["outputs"] if "as_tensor" in output]
        states = outputs[1:] if node["target"] == "torch.ops.aten.lstm.input" else []
        later = outputs if any(f'"{name}"' in json.dumps(node["inputs"]) for name in reached) else []
        for name, place in [(name, 1) for name in states] + [(name, 0) for name in later]:
            entry = graph["tensor_values"][name]
            entry["sizes"].insert(place, one)
            entry["strides"].insert(place, entry["strides"][0] if entry["strides"] else one)
            reached.add(name)


def age_archive(path: Path) -> None:
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    (name,) = [name for name in members if name.endswith("models/model.json")]
    model = json.loads(members[name])
    age_lstm(model["graph_module"]["graph"])
    members[name] = json.dumps(model).encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for member, contents in members.items():
            archive.writestr(member, contents)


def test_sizes_that_older_torch_notes_wrongly_are_mended(cases: Path, tmp_path: Path) -> None:
    names = ["lstm", "lstm_dynamic_batch", "lstm_last_state", "lstm_tagger"]
    for name in names:
        shutil.copytree(cases / name, tmp_path / name)
        age_archive(tmp_path / name / "model.pt2")
    command = [BUILD / "tests" / "run_parity", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
    assert f"{len(names)} of {len(names)} cases agree" in result.stdout


def test_prepared_programs_equal_pytorch(cases: Path) -> None:
    table = run_over(cases, "run_prepare", "prepared.txt")
    totals = re.search(r"(\d+) of (\d+) prepared cases agree", table)
    assert totals is not None
    assert totals[1] == totals[2]
    # Every pass finds something in the exports of today; dead nodes have gone before the first one runs, and casts around
    # products come with training in mixed precision.
    idle = re.findall(r"^ *\d+ (\w+) +fired in +0 of", table, re.MULTILINE)
    assert set(idle) <= {"remove_dead_nodes", "fold_product_casts"}


def test_any_passes_in_any_order_keep_the_numbers(cases: Path) -> None:
    table = run_over(cases, "run_passes", "random_passes.txt")
    totals = re.search(r"(\d+) of (\d+) trials on (\d+) cases hold", table)
    assert totals is not None
    hold, trials, every = map(int, totals.groups())
    assert hold == trials >= 4 * every
