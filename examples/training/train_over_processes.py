"""Trains the same net on the same data by one process, by two under `lissome launch`, by two under `torchrun`, and by two of
which one is killed on the way. Prints one table.

    train_over_processes.py FOLDER [--epochs 1]

Ends with 1 where the three trainings by two processes do not have the same weights to the last bit, or where their
accuracy is more than one point below that of one process.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import dataclass

HERE = pathlib.Path(__file__).resolve().parent
LISSOME = HERE.parents[1] / "build" / "lissome"
TORCHRUN = pathlib.Path(sys.executable).with_name("torchrun")
BATCH = 512
MOST_ACCURACY_LOST = 0.01


@dataclass
class Case:
    """How one training is started, and where its files go."""

    title: str
    folder: pathlib.Path
    start: list
    kill: bool = False

    @property
    def log(self) -> pathlib.Path:
        return self.folder / "log.jsonl"


def list_cases(folder: pathlib.Path) -> list[Case]:
    launch = [LISSOME, "launch", "--processes", 2]
    torchrun = [TORCHRUN, "--no-python", "--nproc-per-node", 2, "--master-port", 29517, "--", LISSOME]
    return [Case("1 process", folder / "one", [LISSOME]),
            Case("2, lissome launch", folder / "launch", [*launch, "--"]),
            Case("2, torchrun", folder / "torchrun", torchrun),
            Case("2, one killed", folder / "killed", [*launch, "--max-restarts", 1, "--"], kill=True)]


def make_command(case: Case, data: pathlib.Path, epochs: int) -> list[str]:
    words = [*case.start, "train", data / "net.pt2", "--data", data / "train.npz", "--validation", data / "test.npz"]
    words += ["--labels", "labels", "--batch", BATCH, "--lr", 1e-3, "--epochs", epochs, "--log", case.log]
    words += ["-o", case.folder / "trained.lissome", "--weights-out", case.folder / "weights.safetensors", "--json"]
    if case.kill:
        words += ["--resume", case.folder / "snapshots", "--snapshot-every", 20]
    return [str(word) for word in words]


def read_events(log: pathlib.Path, kind: str) -> list[dict]:
    """Whole lines alone: the last one may be in the writing."""
    if not log.is_file():
        return []
    lines = log.read_text(encoding="utf-8").splitlines(keepends=True)
    return [event for event in (json.loads(line) for line in lines if line.endswith("\n")) if event["event"] == kind]


def list_ranks(launcher: int) -> list[int]:
    """Children of the launcher that have become trainings."""
    tasks = pathlib.Path(f"/proc/{launcher}/task/{launcher}/children").read_text(encoding="ascii").split()
    return [int(task) for task in tasks if b"launch" not in pathlib.Path(f"/proc/{task}/cmdline").read_bytes().split(b"\0")]


def kill_one(training: subprocess.Popen, log: pathlib.Path, after: int) -> float:
    """Kills the last rank after so many steps. Returns the seconds until the next step."""
    while training.poll() is None and len(read_events(log, "step")) < after:
        time.sleep(0.02)
    os.kill(max(list_ranks(training.pid)), signal.SIGKILL)
    killed = time.monotonic()
    # The log is cut to the snapshot's step when the ranks start again.
    steps = len(read_events(log, "step"))
    while training.poll() is None and (seen := len(read_events(log, "step"))) <= steps:
        steps = min(steps, seen)
        time.sleep(0.02)
    return time.monotonic() - killed


def train(case: Case, data: pathlib.Path, epochs: int) -> dict:
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(case.folder)
    (case.folder / "snapshots").mkdir(parents=True)
    begun = time.monotonic()
    lost = 0.0
    with open(case.folder / "errors.txt", "w", encoding="utf-8") as errors:
        command = make_command(case, data, epochs)
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as training:
            if case.kill:
                lost = kill_one(training, case.log, after=50)
            text = training.stdout.read()
    if training.returncode != 0:
        raise SystemExit(f"{case.title}: ended with {training.returncode}\n{(case.folder / 'errors.txt').read_text()}")
    answer = json.loads(text)
    (table,) = answer["tables"]
    names = [column["name"] for column in table["columns"]]
    steps = read_events(case.log, "step")
    seconds = sum(step[f"seconds_{part}"] for step in steps for part in ("data", "gradients", "update"))
    return {"accuracy": dict(zip(names, table["rows"][-1], strict=True))["accuracy"],
            "rate": sum(step["samples"] for step in steps) / seconds, "wall": time.monotonic() - begun, "lost": lost,
            "peak": answer["result"]["peak_memory"], "weights": (case.folder / "weights.safetensors").read_bytes()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--epochs", type=int, default=1)
    options = parser.parse_args()
    cases = list_cases(options.folder / "processes")
    found = []
    for case in cases:
        print(f"  {case.title}", file=sys.stderr, flush=True)
        found.append(train(case, options.folder, options.epochs))
    one, first, *others = found
    print(f"Fashion-MNIST, {options.epochs} epoch, updates of {BATCH} samples")
    print(f"{'processes':22}{'samples/s':>11}{'peak/rank':>11}{'wall':>8}{'accuracy':>10}{'kill to step':>14}  weights")
    for case, run in zip(cases, found, strict=True):
        same = "" if run is one else "those of lissome launch" if run["weights"] == first["weights"] else "OTHERS"
        lost = f"{run['lost']:.2f} s" if case.kill else ""
        print(f"{case.title:22}{run['rate']:11.0f}{run['peak'] / 1e6:8.1f} MB{run['wall']:6.1f} s{run['accuracy']:10.2%}"
              f"{lost:>14}  {same}".rstrip())
    missed = ["the same weights"] if any(run["weights"] != first["weights"] for run in others) else []
    missed += ["equal accuracy"] if first["accuracy"] < one["accuracy"] - MOST_ACCURACY_LOST else []
    if missed:
        raise SystemExit("missed: " + ", ".join(missed))


if __name__ == "__main__":
    main()
