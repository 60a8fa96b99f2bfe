"""Interrupts commands at random moments with SIGTERM and SIGINT, from the installation of the handler on: each is
answered within a second with exit code 130, what was promised is there and whole, nothing is half-written.

    python tests/cli/soak_signals.py 50 [SEED] [COMMAND...]
"""

from __future__ import annotations

import json
import math
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch

HANDLED = (1 << (signal.SIGTERM - 1)) | (1 << (signal.SIGINT - 1))
MOST_SECONDS = 1.0
MOST_SAVED_IN_TIME = 32 << 20  # bytes, on a busy machine


class Layer(torch.nn.Module):
    """Attention and two linears, each beside what it reads."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = width // 32
        self.project, self.join = torch.nn.Linear(width, 3 * width), torch.nn.Linear(width, width)
        self.widen, self.narrow = torch.nn.Linear(width, 4 * width), torch.nn.Linear(4 * width, width)
        self.first, self.second = torch.nn.LayerNorm(width), torch.nn.LayerNorm(width)
        self.dropout = torch.nn.Dropout(0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = [part.unflatten(2, (self.heads, 32)).transpose(1, 2) for part in self.project(x).chunk(3, 2)]
        mixed = torch.nn.functional.scaled_dot_product_attention(*parts).transpose(1, 2).flatten(2)
        x = self.first(x + self.dropout(self.join(mixed)))
        return self.second(x + self.dropout(self.narrow(torch.nn.functional.gelu(self.widen(x)))))


class Encoder(torch.nn.Module):
    """A sentence encoder with random weights: MiniLM's form, as large as it is asked to be."""

    def __init__(self, layers: int, width: int, words: int, classes: int) -> None:
        super().__init__()
        self.words, self.places = torch.nn.Embedding(words, width), torch.nn.Embedding(128, width)
        self.layers = torch.nn.Sequential(*[Layer(width) for _ in range(layers)])
        self.head = torch.nn.Linear(width, classes)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return self.head(self.layers(hidden).mean(1))


@dataclass
class Workload:
    """Models and data of the four commands in one folder."""

    folder: Path
    program: Path
    state_bytes: int  # what a snapshot of the training holds
    # By command: the longest wait before a signal, so that most come while the command works.
    longest_wait: dict[str, float] = field(
        default_factory=lambda: {"run": 2.0, "bench": 3.0, "optimize": 12.0, "train": 10.0}
    )


SMALL = {"layers": 2, "width": 64, "words": 500, "classes": 4}
LIKE_MINILM = {"layers": 6, "width": 384, "words": 30522, "classes": 4}


def make_workload(folder: Path, program: Path, form: dict[str, int], inputs: int) -> Workload:
    torch.manual_seed(7)
    model, samples, length = Encoder(**form), 64, 32
    ids = torch.randint(0, form["words"], (samples, length))
    for name, least in (("train.pt2", 2), ("model.pt2", 1)):
        batch = {0: torch.export.Dim("batch", min=least, max=64)}
        exported = torch.export.export(model.train(name == "train.pt2"), (ids[:4],), dynamic_shapes=(batch,))
        torch.export.save(exported, folder / name)
    np.savez(folder / "data.npz", ids=ids.numpy())
    np.savez(folder / "labelled.npz", ids=ids.numpy(), labels=(ids.sum(1) % form["classes"]).numpy())
    (folder / "inputs").mkdir()
    for i in range(inputs):
        np.savez(folder / "inputs" / f"{i:05}.npz", ids=ids[i % samples : i % samples + 1].numpy())
    subprocess.run(
        [program, "prepare", folder / "model.pt2", "-o", folder / "model.lissome"], check=True, capture_output=True
    )
    state = 3 * 4 * sum(parameter.numel() for parameter in model.parameters())
    return Workload(folder, program, state)


def list_words(command: str, made: Workload) -> list[object]:
    folder = made.folder
    return {
        "run": ["run", folder / "model.lissome", "--input", folder / "inputs", "--output", "outputs"],
        "bench": ["bench", folder / "model.lissome", "--runs", "1000000", "--json"],
        "optimize": ["optimize", folder / "model.pt2", "--data", folder / "data.npz", "-o", "best.lissome", "--json"]
        + ["--report", "report.html"],
        "train": ["train", folder / "train.pt2", "--data", folder / "labelled.npz", "--labels", "labels"]
        + ["--epochs", "100000", "--batch", "8", "-o", "trained.lissome", "--json"],
    }[command]


def handles_signals(process: int, program: Path) -> bool:
    """Whether the process runs the program already and has its handlers."""
    try:
        if Path(f"/proc/{process}/exe").resolve() != program.resolve():
            return False
        status = Path(f"/proc/{process}/status").read_text()
    except OSError:
        return False
    caught = next(line for line in status.splitlines() if line.startswith("SigCgt:"))
    return int(caught.split()[1], 16) & HANDLED == HANDLED


@dataclass
class Answer:
    seconds: float
    output: str
    errors: str


def works(command: str, folder: Path) -> bool:
    """Whether the command shows that it has something by now."""
    if command in ("optimize", "train"):
        return "%" in (folder / "stderr").read_text()
    return command == "bench" or any(folder.glob("outputs/*.npz"))


def interrupt(
    made: Workload, command: str, which: signal.Signals, wait: float, folder: Path, working: bool = False
) -> Answer:
    """Starts the command, signals it `wait` seconds after its handlers are there, or after it works, and measures until
    its end."""
    words = [str(word) for word in (made.program, *list_words(command, made))]
    with (folder / "stdout").open("wb") as output, (folder / "stderr").open("wb") as errors:
        child = subprocess.Popen(words, cwd=folder, stdout=output, stderr=errors)
        while not handles_signals(child.pid, made.program):
            assert child.poll() is None, f"{command} ended before it could be interrupted"
        while working and not works(command, folder):
            assert child.poll() is None, f"{command} ended before it could be interrupted"
            time.sleep(0.01)
        time.sleep(wait)
        start = time.monotonic()
        child.send_signal(which)
        code = child.wait()
        seconds = time.monotonic() - start
    answer = Answer(seconds, (folder / "stdout").read_text(), (folder / "stderr").read_text())
    assert code == 130, f"{command} ended with {code} after {wait:.3f} s and {which.name}: {answer.errors}"
    assert answer.errors.endswith("interrupted\n") and "error" not in answer.errors, answer.errors
    return answer


def check_whole(path: Path) -> None:
    """Every member of the archive is as its CRC says."""
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None, f"{path} is broken"


def check_run(made: Workload, folder: Path, answer: Answer) -> bool:
    names = {path.name for path in (made.folder / "inputs").iterdir()}
    outputs = list((folder / "outputs").glob("*")) if (folder / "outputs").exists() else []
    for path in outputs:
        assert path.name in names or path.name.startswith(".lissome-"), path
        if not path.name.startswith(".lissome-"):
            assert all(np.isfinite(array).all() for array in np.load(path).values())
    return bool(outputs)


def check_bench(made: Workload, folder: Path, answer: Answer) -> bool:
    assert not answer.output or json.loads(answer.output)["result"]["interleaved_rounds"] >= 1
    return bool(answer.output)


def check_optimize(made: Workload, folder: Path, answer: Answer) -> bool:
    model, report = folder / "best.lissome", folder / "report.html"
    delivered = "written to best.lissome" in answer.errors
    assert model.exists() == report.exists() == delivered == bool(answer.output), answer.errors
    if not delivered:
        return False
    check_whole(model)
    assert report.read_text().rstrip().endswith("</html>")
    record = json.loads(answer.output)["result"]
    assert record["interrupted"] and "interrupted" in record["answer"]
    faster = math.prod(1 / step["ratio"]["median"] for step in record["steps"] if step["accepted"])
    assert math.isclose(record["speedup"]["median"], faster, rel_tol=1e-6), record
    one = made.folder / "inputs" / "00000.npz"
    subprocess.run([made.program, "run", model, "--input", one], check=True, capture_output=True)
    return True


def check_train(made: Workload, folder: Path, answer: Answer) -> bool:
    snapshots = folder / "trained.lissome.snapshots"
    found = sorted(snapshots.glob("step-*.snapshot"))
    for path in [*found, *folder.glob("trained.lissome")]:
        if path.is_file():
            check_whole(path)
    assert not snapshots.exists() or found, "a folder for snapshots holds none"
    assert ("continue with --resume trained.lissome.snapshots" in answer.errors) == bool(found), answer.errors
    assert not (folder / "trained.lissome").exists() or found
    # Work was done when the first line of progress was written: it must not be lost, unless a second is too short for
    # so much to reach a disk.
    assert found or "training:" not in answer.errors or made.state_bytes > MOST_SAVED_IN_TIME, answer.errors
    return bool(found)


CHECKS: dict[str, Callable[[Workload, Path, Answer], bool]] = {
    "run": check_run,
    "bench": check_bench,
    "optimize": check_optimize,
    "train": check_train,
}


def check_swept(made: Workload, folder: Path) -> None:
    """The next command that writes there removes what was left, and what another process was killed at."""
    for place in (folder, folder / "outputs", folder / "trained.lissome.snapshots"):
        if not place.is_dir():
            continue
        (place / ".lissome-1-1.tmp").write_text("stale")
        one = made.folder / "inputs" / "00000.npz"
        words = [made.program, "run", made.folder / "model.lissome", "--input", one, "--output", place / "next.npz"]
        subprocess.run(words, check=True, capture_output=True)
        left = [path.name for path in place.iterdir() if path.name.startswith(".lissome-")]
        assert not left, f"{left} was not swept"


@dataclass
class Summary:
    seconds: list[float] = field(default_factory=list)
    delivered: int = 0

    def __str__(self) -> str:
        return (
            f"{len(self.seconds)} signals, median {statistics.median(self.seconds):.3f} s, "
            f"worst {max(self.seconds):.3f} s, {self.delivered} with results"
        )


def soak(made: Workload, command: str, signals: int, rng: random.Random) -> Summary:
    """So many of each signal; raises where one is not answered as it must be."""
    summary = Summary()
    for i in range(2 * signals):
        which = signal.SIGTERM if i % 2 == 0 else signal.SIGINT
        # One in four comes while the program still starts, one in four once it surely works.
        starts, working = i % 8 < 2, 2 <= i % 8 < 4
        wait = rng.uniform(0, 0.3 if starts else made.longest_wait[command])
        with tempfile.TemporaryDirectory(dir=made.folder) as name:
            answer = interrupt(made, command, which, wait, Path(name), working)
            summary.seconds.append(answer.seconds)
            summary.delivered += CHECKS[command](made, Path(name), answer)
            check_swept(made, Path(name))
            late = f"{command}: {which.name} after {wait:.3f} s was answered in {answer.seconds:.3f} s"
            assert answer.seconds <= MOST_SECONDS, f"{late}: {answer.errors}"
    return summary


def main() -> None:
    signals = int(sys.argv[1])
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else random.randrange(10**6)
    program = Path(__file__).resolve().parents[2] / "build" / "lissome"
    signal.signal(signal.SIGINT, signal.default_int_handler)
    folder = Path(tempfile.mkdtemp())
    try:
        made = make_workload(folder, program, LIKE_MINILM, inputs=2000)
        print(f"seed {seed}, {os.cpu_count()} processors", flush=True)
        for command in sys.argv[3:] or CHECKS:
            print(f"{command}: {soak(made, command, signals, random.Random(seed))}", flush=True)
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
