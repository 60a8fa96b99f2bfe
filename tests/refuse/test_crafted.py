"""Finished models that were crafted: each the twin of one that runs, one rule away from it. Exit code 4 with words that
name the rule, within a second, nothing written.

LISSOME_CRAFTED=all runs every twin, not a share of each class; LISSOME_CRAFTED_SECONDS is the limit for each, in seconds
of processor time (1; sanitizers need 5).
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import zipfile
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parents[1] / "build" / "release" / "tests"
CASES = HERE.parent / "cases" / "step_cases.py"
SECONDS = float(os.environ.get("LISSOME_CRAFTED_SECONDS", "1"))
MOST = 700  # twins of a plain run
LEAST = 300
TRANSFERS = "transfers"  # the seed that runs in a session with a folder alone


@dataclass(frozen=True)
class Twin:
    path: Path
    seed: str
    rule: str
    words: tuple[str, ...]
    runs: bool

    @property
    def rule_class(self) -> str:
        """Without the kernel and the names of its operands: "operand: dtype"."""
        return re.sub(r" '[^']*'", "", self.rule.split(": ", 1)[1])


@dataclass(frozen=True)
class Answer:
    code: int
    error: str
    seconds: float
    left: list[str]


def tool(name: str) -> str:
    return str(Path(os.environ.get("LISSOME_REFUSE_TOOLS", TOOLS)) / name)


@pytest.fixture(scope="session")
def seeds(tmp_path_factory: pytest.TempPathFactory) -> Path:
    texts, folder = tmp_path_factory.mktemp("texts"), tmp_path_factory.mktemp("seeds")
    shutil.copytree(HERE / "seeds", texts, dirs_exist_ok=True)
    # Halfway: where sizes are 1, many a change is none.
    subprocess.run([sys.executable, str(CASES), str(texts / "cases"), "--middle"], check=True)
    subprocess.run([tool("write_seed_plans"), str(texts), str(folder)], check=True)
    return folder


@pytest.fixture(scope="session")
def twins(seeds: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Twin]:
    folder = tmp_path_factory.mktemp("twins")
    subprocess.run([tool("break_plans"), str(seeds), str(folder)], check=True)
    rows = [json.loads(line) for line in (folder / "index.jsonl").read_text().splitlines()]
    return [Twin(folder / row["file"], row["seed"], row["rule"], tuple(row["words"]), row["runs"]) for row in rows]


def read_plan(model: Path) -> dict:
    with zipfile.ZipFile(model) as file:
        return json.loads(file.read(next(name for name in file.namelist() if name.endswith("plan.json"))))


def run_model(program: Path, seeds: Path, model: Path, seed: str) -> Answer:
    """Runs a model on the inputs of a seed, in an empty folder."""
    inputs = str(seeds / f"{seed}.npz")
    command = [str(program), "run", str(model), "--input", inputs, "--threads", "1"]
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryFile() as errors:
        if seed == TRANSFERS:
            command = [tool("run_plan"), str(model), inputs, here]
        process = subprocess.Popen(command, cwd=here, stdout=subprocess.DEVNULL, stderr=errors)
        hang = threading.Timer(10 * SECONDS, process.kill)
        hang.start()
        _, status, usage = os.wait4(process.pid, 0)
        hang.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)
        errors.seek(0)
        return Answer(process.returncode, errors.read().decode(), usage.ru_utime + usage.ru_stime, os.listdir(here))


def find_fault(twin: Twin, answer: Answer) -> str:
    """What is wrong with the answer; empty when nothing is."""
    faults = []
    if answer.code != (0 if twin.runs else 4):
        faults.append(f"exit code {answer.code}")
    faults += [f"no {word!r}" for word in twin.words if not twin.runs and word not in answer.error]
    if answer.seconds > SECONDS:
        faults.append(f"took {answer.seconds:.1f} s")
    if answer.left:
        faults.append(f"left {answer.left}")
    return ", ".join(faults)


def choose_share(twins: list[Twin]) -> list[Twin]:
    """All where asked for; else of every class of rules as many as come to MOST, spread over its kernels."""
    classes: dict[str, list[Twin]] = defaultdict(list)
    for twin in twins:
        classes[twin.rule_class].append(twin)
    if os.environ.get("LISSOME_CRAFTED") == "all":
        return twins
    share = max(n for n in range(1, len(twins) + 1) if sum(min(n, len(rows)) for rows in classes.values()) <= MOST)
    return [rows[i * len(rows) // min(share, len(rows))] for rows in classes.values() for i in range(min(share, len(rows)))]


def test_every_kind_of_step_has_a_seed_that_runs(program: Path, seeds: Path) -> None:
    listed = subprocess.run([tool("write_seed_plans"), "--kinds"], capture_output=True, text=True, check=True)
    models = sorted(seeds.glob("*.lissome"))
    held = {step["kernel"] for model in models for step in read_plan(model)["steps"]}
    assert {*listed.stdout.split(), "reference"} - held == set()
    with ThreadPoolExecutor(2) as pool:
        answers = dict(zip(models, pool.map(lambda path: run_model(program, seeds, path, path.stem), models), strict=True))
    assert {path.stem: answer.error for path, answer in answers.items() if answer.code != 0} == {}


def test_every_twin_is_refused(program: Path, seeds: Path, twins: list[Twin]) -> None:
    chosen = choose_share(twins)
    assert sum(not twin.runs for twin in chosen) >= LEAST
    with ThreadPoolExecutor(2) as pool:
        answers = list(pool.map(lambda twin: run_model(program, seeds, twin.path, twin.seed), chosen))
    faults = []
    for twin, answer in zip(chosen, answers, strict=True):
        if fault := find_fault(twin, answer):
            faults.append(f"{twin.path.name} {twin.seed}: {twin.rule}: {fault}: {answer.error.strip()[:300]}")
    assert not faults, f"{len(faults)} of {len(chosen)}:\n" + "\n".join(faults)


def test_twins_are_the_same_each_time(seeds: Path, twins: list[Twin], tmp_path: Path) -> None:
    subprocess.run([tool("break_plans"), str(seeds), str(tmp_path)], check=True)
    for twin in twins:
        assert (tmp_path / twin.path.name).read_bytes() == twin.path.read_bytes(), twin.rule
    assert len(list(tmp_path.iterdir())) == len(twins) + 1
