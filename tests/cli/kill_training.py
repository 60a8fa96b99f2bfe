"""Kills a training at random moments with SIGKILL and goes on from its snapshots: the weights must be those of a training
that ran through, and no snapshot that was there may be gone or broken.

    python tests/cli/kill_training.py 100 [SEED]
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from pathlib import Path

SNAPSHOTS = ["--snapshots", "s", "--snapshot-every", "2"]


def start(program: Path, words: list[object], folder: Path, resume: bool) -> subprocess.Popen[str]:
    words = [program, *words, *SNAPSHOTS, "-o", "t.lissome", "--weights-out", "w.safetensors"]
    words += ["--resume", "s"] if resume else []
    # On one processor: two threads of so small a net would mostly wait for each other.
    words = ["taskset", "-c", min(os.sched_getaffinity(0)), *words]
    return subprocess.Popen(
        list(map(str, words)), cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )


def list_good_steps(folder: Path) -> list[int]:
    """Steps of the snapshots, every byte of which is as it was written."""
    steps = []
    for path in sorted((folder / "s").glob("step-*.snapshot")):
        with zipfile.ZipFile(path) as archive:
            assert archive.testzip() is None, f"{path} is broken"
        steps.append(int(path.stem.removeprefix("step-")))
    return steps


def train_through_kills(program: Path, words: list[object], folder: Path, seconds: float, most: int, rng: random.Random) -> int:
    """One training, killed at most `most` times within the `seconds` that it takes; returns how often."""
    kills, newest = 0, 0
    while True:
        child = start(program, words, folder, resume=(folder / "s").exists())
        try:
            _, errors = child.communicate(timeout=rng.uniform(0, seconds) if kills < most else 300)
            assert child.returncode == 0, errors
            return kills
        except subprocess.TimeoutExpired:
            child.send_signal(signal.SIGKILL)
            child.communicate()
        kills += child.returncode == -signal.SIGKILL
        steps = list_good_steps(folder) if (folder / "s").exists() else []
        assert len(steps) <= 4, steps  # three are kept, a fourth while it is written
        assert not newest or (steps and steps[-1] >= newest), f"step {newest} was there, now {steps}"
        newest = steps[-1] if steps else 0


def kill_at_random_moments(program: Path, words: list[object], kills: int, seed: int) -> int:
    """Trains again and again until there were so many kills; returns in how many trainings."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory() as through:
        began = time.monotonic()
        assert start(program, words, Path(through), resume=False).wait() == 0
        seconds = time.monotonic() - began
        wanted = (Path(through) / "w.safetensors").read_bytes()
    done = trainings = 0
    while done < kills:
        with tempfile.TemporaryDirectory() as folder:
            done += train_through_kills(program, words, Path(folder), seconds, min(4, kills - done), rng)
            assert (Path(folder) / "w.safetensors").read_bytes() == wanted, f"other weights, after {done} kills"
        trainings += 1
        print(f"{done} kills in {trainings} trainings", flush=True)
    return trainings


def main() -> None:
    import conftest

    root = Path(__file__).resolve().parents[2]
    kills, seed = int(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        training = conftest.make_training(Path(folder))
        words = [*training.words, *training.validation, "--epochs", "20", "--average", "0.99"]
        trainings = kill_at_random_moments(root / "build" / "lissome", words, kills, seed)
    print(f"killed {kills} times in {trainings} trainings: every one ended with the same weights, no snapshot lost")


if __name__ == "__main__":
    main()
