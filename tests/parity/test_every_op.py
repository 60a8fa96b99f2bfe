"""Every operator of PyTorch's own table of them (op_db), exported, prepared and run, answers as PyTorch does.

Cases are made in op_cases.py, compared in op_worker.py by the rule of op_agreement.py. A plain run takes a third of the
table, LISSOME_OPS=table all operators, with a few samples of each operator and dtype (two minutes), LISSOME_OPS=all
all samples (an hour). The counts are kept as build/release/ops.txt."""

from __future__ import annotations

import collections
import fcntl
import functools
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
PARTS = 16  # of the table
MODE = os.environ.get("LISSOME_OPS", "third")
EVERY = MODE == "all"
RUN = range(PARTS) if MODE in ("table", "all") else range(0, PARTS, 3)
TOGETHER = 24  # cases in one module
LONGEST = 120  # seconds for one module

# Kinds of rows that are no fault of lissome: see Row in op_worker.py.
COUNTED = ("agreed", "impossible", "not exported", "exported otherwise", "train form")
# What may be refused, by rule; the gate is described in docs/safety.md.
ALLOWED_REFUSALS = {
    "the gate: an inner op": r"\w+::_\w+ is not on the list of ops that a model file may call",
    "the gate: a backward op": r"\w+_backward(_data)? is not on the list of ops that a model file may call",
    "the gate: unchecked arguments": r"with unsafe=true is not on the list of ops that a model file may call",
    "values that a kernel takes at its word": r"the samples hold -?[\d.]+, allowed are 0 to 1",
    "sparse tensors": r"an output is a sparse tensor; only dense ones can leave a session",
}
# Disagreements that are known, by case.
KNOWN_FAULTS = {
    r"as_strided\.partial_views ": "reads memory of the caller beside the elements of its input",
    r"baddbmm bf16 ": "the prepared program rounds product, factor and sum to bf16 one by one",
    r"unique_consecutive ": "torch.export notes other sizes for the counts than the module gives",
}
# Kernels that forward programs in f32, bf16 and integers cannot reach: gradients, int8, what moves weights to files.
OTHER_KERNELS = re.compile(r"gradient|u8|quantize|weight_|offload|reload|channel_totals")
LEAST_KERNELS = 0.6  # of the others

Row = dict[str, Any]


class Worker:
    """The process that compares; a new one after it died."""

    def __init__(self, errors: Path) -> None:
        self.errors = errors
        self.process: subprocess.Popen[str] | None = None
        self.lines: queue.Queue[Row | None] = queue.Queue()
        self.late = False

    def start(self) -> subprocess.Popen[str]:
        if self.process is None:
            command = [sys.executable, str(FOLDER / "op_worker.py")]
            with self.errors.open("w") as errors:
                self.process = subprocess.Popen(
                    command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors
                )
            self.lines, self.late = queue.Queue(), False
            threading.Thread(target=self._read, args=(self.process, self.lines), daemon=True).start()
        return self.process

    @staticmethod
    def _read(process: subprocess.Popen[str], lines: queue.Queue[Row | None]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            lines.put(json.loads(line))
        lines.put(None)

    def ask(self, **request: Any) -> Iterator[Row | None]:
        """What the worker answers; None at the end where it died or took too long."""
        process = self.start()
        assert process.stdin is not None
        print(json.dumps(request), file=process.stdin, flush=True)
        while True:
            try:
                message = self.lines.get(timeout=LONGEST)
            except queue.Empty:
                message, self.late = None, True
            if message is not None and "done" in message:
                return
            yield message
            if message is None:
                return

    @functools.cached_property
    def names(self) -> list[str]:
        return [name for message in self.ask() for name in (message or {"names": []})["names"]]

    def end(self) -> str:
        """How it ended."""
        if self.process is None:
            return ""
        self.process.kill()
        code, self.process = self.process.wait(), None
        return f"took longer than {LONGEST} s" if self.late else f"ended with {code}: {self.errors.read_text()[-600:]}"


def compare_op(worker: Worker, op: str) -> Iterator[Row]:
    """After a crash in smaller modules, down to the case that crashes."""
    first, most = 0, TOGETHER
    crash: Row | None = None
    while True:
        at: Row = {"at": 0, "together": 0, "name": op}
        for message in worker.ask(op=op, every=EVERY, most=most, **{"from": first}):
            if message is None:
                break
            if "at" in message:
                at = message
            else:
                yield message
        else:
            break
        crash = {"together": min(at["together"], 1), "case": at["name"], "kind": "crashed", "kernels": []}
        crash["reason"] = f"{at['together']} cases: {worker.end()}"
        first, most = at["at"], max(1, at["together"] // 2)
        if at["together"] <= 1:
            yield crash
            crash, first = None, first + 1
        if at["together"] == 0:
            break
    if crash is not None:
        yield crash | {"together": 0}


@pytest.fixture(scope="session")
def run_part(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[int], list[Row]]]:
    """Compares a part of the table once, whatever process of pytest asks for it first."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    worker = Worker(tmp_path_factory.mktemp("ops") / "errors.txt")

    def run(part: int) -> list[Row]:
        path = folder / f"ops_{part}.json"
        with path.with_suffix(".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not path.exists():
                assert worker.names, worker.end()
                rows = [row for op in worker.names[part::PARTS] for row in compare_op(worker, op)]
                path.write_text(json.dumps(rows))
        return list(json.loads(path.read_text()))

    yield run
    worker.end()


def find_allowance(row: Row) -> str:
    if known := next((reason for pattern, reason in KNOWN_FAULTS.items() if re.match(pattern, row["case"])), ""):
        return known
    if row["kind"] != "refused":
        return ""
    return next((name for name, pattern in ALLOWED_REFUSALS.items() if re.search(pattern, row["reason"])), "")


@pytest.mark.parametrize("part", RUN)
def test_operators_answer_as_pytorch_does(run_part: Callable[[int], list[Row]], part: int) -> None:
    rows = run_part(part)
    faults = [row for row in rows if row["kind"] not in COUNTED and not find_allowance(row)]
    assert faults == [], "\n".join(f"{row['case']}: {row['kind']}: {row['reason']}" for row in faults)
    assert sum(row["together"] for row in rows if row["kind"] == "agreed") > 0.8 * sum(row["together"] for row in rows)


def list_kernels() -> set[str]:
    """Those of the forward pass, from the declarations of the steps of plans."""
    texts = [path.read_text() for path in (ROOT / "lissome" / "runtime" / "step").rglob("*_steps.h")]
    names = {name for text in texts for name in re.findall(r'kKernel = "(\w+)"', text)}
    return {name for name in names if not OTHER_KERNELS.search(name)}


def write_counts(rows: list[Row], met: set[str], missed: set[str]) -> str:
    counts: collections.Counter[str] = collections.Counter()
    for row in rows:
        counts[f"{row['kind']} {find_allowance(row)}".strip()] += row["together"]
    lines = [f"{count:6} {kind}" for kind, count in counts.most_common()]
    lines += [f"{len(met)} kernels met: {' '.join(sorted(met))}", f"{len(missed)} not met: {' '.join(sorted(missed))}"]
    lines += sorted({f"{row['kind']}: {row['case']}: {row['reason']}" for row in rows if row["kind"] != "agreed"})
    (ROOT / "build" / "release" / "ops.txt").write_text("\n".join(lines) + "\n")
    return "\n".join(lines[: len(counts) + 2])


def test_the_kernels_of_plans_are_met(run_part: Callable[[int], list[Row]]) -> None:
    rows = [row for part in RUN for row in run_part(part)]
    known, seen = list_kernels(), {kernel for row in rows for kernel in row["kernels"]}
    table = write_counts(rows, known & seen, known - seen)
    print(table)
    assert len(known & seen) >= LEAST_KERNELS * len(known) * (1 if len(RUN) == PARTS else 0.6), table
