"""Kills random ranks of a training at random moments, starts all again from the last snapshot, and compares the weights with
those of an unbroken run: kill_ranks.py [KILLS]. Not a test of pytest, which kills two (test_processes.py)."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = Path(__file__).resolve().parents[2] / "build" / "lissome"


def list_ranks(launcher: int) -> list[int]:
    """Children of the launcher that have become trainings."""
    tasks = Path(f"/proc/{launcher}/task/{launcher}/children").read_text(encoding="ascii").split()
    return [int(task) for task in tasks if b"launch" not in Path(f"/proc/{task}/cmdline").read_bytes().split(b"\0")]


def train_while_killing(folder: Path, words: list[str], ranks: int, kills: int) -> tuple[int, list[float], str]:
    """A training under lissome launch, of which `kills` ranks are killed. Returns the kills that were done, the seconds from
    each to the next step, and what went to stderr."""
    (folder / "snapshots").mkdir()
    log = folder / "log.jsonl"
    command = [str(PROGRAM), "launch", "--processes", str(ranks), "--max-restarts", str(kills + 1), "--", *words]
    command += ["--resume", "snapshots", "--log", "log.jsonl", "-o", "killed.lissome", "--weights-out", "killed.safetensors"]
    done, waits = 0, []
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as training:
        while training.poll() is None and done < kills:
            before = count_steps(log)
            begin = time.monotonic()
            while training.poll() is None and count_steps(log) <= before:
                time.sleep(0.005)
            if done:
                waits.append(time.monotonic() - begin)
            time.sleep(random.uniform(0.05, 0.6))
            if training.poll() is None and len(list_ranks(training.pid)) == ranks:
                os.kill(random.choice(list_ranks(training.pid)), signal.SIGKILL)
                done += 1
        _, errors = training.communicate(timeout=600)
        assert training.returncode == 0, errors
    return done, waits, errors


def count_steps(log: Path) -> int:
    return log.read_bytes().count(b'"seconds_update"') if log.is_file() else 0


def main() -> None:
    kills = int(sys.argv[1]) if len(sys.argv) > 1 else 50
    import numpy as np
    import torch

    folder = Path(tempfile.mkdtemp())
    torch.manual_seed(0)
    rows = torch.randn(101, 12)
    labels = rows[:, :5].argmax(1)
    net = torch.nn.Sequential(torch.nn.Linear(12, 24), torch.nn.Dropout(0.2), torch.nn.Tanh(), torch.nn.Linear(24, 5))
    shapes = ({0: torch.export.Dim("batch", min=1, max=512)},)
    torch.export.save(torch.export.export(net.train(), (rows[:3],), dynamic_shapes=shapes), folder / "net.pt2")
    np.savez(folder / "data.npz", rows=rows.numpy(), labels=labels.numpy())
    words = ["train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--batch", "16", "--snapshot-every", "100",
             "--epochs", str(120 * kills)]
    whole = ["launch", "--processes", "2", "--", *words, "-o", "whole.lissome", "--weights-out", "whole.safetensors"]
    subprocess.run([str(PROGRAM), *whole], cwd=folder, check=True, capture_output=True)
    done, waits, _ = train_while_killing(folder, words, 2, kills)
    same = (folder / "whole.safetensors").read_bytes() == (folder / "killed.safetensors").read_bytes()
    print(f"{done} kills; the same weights: {same}; from a kill to the next step at most {max(waits):.2f} s")
    sys.exit(0 if same and done == kills else 1)


if __name__ == "__main__":
    main()
