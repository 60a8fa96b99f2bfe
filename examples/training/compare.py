"""Trains the same net on the same data from the same weights, in turns: plain eager PyTorch in batches of 512, and
`lissome train` with four parts of 128 summed for each update, in mixed precision where it finds that faster. Prints one table.

    compare.py FOLDER [--seeds 2] [--epochs 2]

Both see mirrored images, AdamW, one cycle up to the same rate, clipping. Ends with 1 where a goal is missed: throughput 1.6
times (1.15 on a processor that does not multiply bf16), 40 % less memory, mean accuracy at most 0.3 points lower.
"""

from __future__ import annotations

import argparse
import json
import os
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
LISSOME = HERE.parents[1] / "build" / "lissome"
BATCH, PARTS, RATE = 512, 4, 1e-3
MOST_ACCURACY_LOST = 0.003
LEAST_MEMORY_SAVED = 0.4


def find_least_speedup() -> float:
    return 1.6 if "avx512_bf16" in pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8") else 1.15


def run(command: list) -> tuple[str, int]:
    """What it prints, and the most bytes that were resident."""
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, text=True)
    text = process.stdout.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{command[0]} ended with {process.returncode}")
    return text, usage.ru_maxrss * 1024


def train_eagerly(folder: pathlib.Path, epochs: int, seed: int) -> dict:
    script = [sys.executable, HERE / "train_eagerly.py", folder, BATCH, PARTS * RATE, epochs, seed]
    text, resident = run([*script, "--log", folder / "eager.jsonl"])
    return json.loads(text) | {"resident": resident}


def measure_eager_peak(folder: pathlib.Path) -> int:
    text, _ = run([sys.executable, HERE / "train_eagerly.py", folder, BATCH, PARTS * RATE, 1, 0, "--peak"])
    return json.loads(text)["peak"]


def train_with_lissome(folder: pathlib.Path, epochs: int, seed: int) -> dict:
    log = folder / "lissome.jsonl"
    log.unlink(missing_ok=True)
    command = [LISSOME, "train", folder / "net.pt2", "--data", folder / "train.npz", "--validation", folder / "test.npz"]
    command += ["--labels", "labels", "--transforms", "random_apply:0.5(flip)", "--precision", "auto"]
    command += ["--batch", BATCH // PARTS, "--accumulate", PARTS, "--lr", RATE, "--schedule", "onecycle"]
    command += ["--epochs", epochs, "--seed", seed, "-o", folder / "trained.lissome", "--log", log, "--json"]
    command += ["--report", folder / "report.html", "--beside", folder / "eager.jsonl"]
    text, resident = run(command)
    steps = [line for line in map(json.loads, log.read_text(encoding="utf-8").splitlines()) if line["event"] == "step"]
    rates = []
    for epoch in range(1, epochs + 1):
        own = [step for step in steps if step["epoch"] == epoch]
        seconds = sum(step[f"seconds_{part}"] for step in own for part in ("data", "gradients", "update"))
        rates.append(sum(step["samples"] for step in own) / seconds)
    answer = json.loads(text)
    (table,), result = answer["tables"], answer["result"]
    names = [column["name"] for column in table["columns"]]
    accuracy = dict(zip(names, table["rows"][-1], strict=True))["accuracy"]
    precision = next(note.split()[0] for note in result["notes"] if "is taken" in note)
    measured = {"accuracy": accuracy, "samples_per_second": rates, "precision": precision}
    return measured | {"peak": result["peak_memory"], "resident": resident}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args()
    eager, ours = [], []
    for seed in range(options.seeds):
        print(f"  seed {seed}: PyTorch", file=sys.stderr, flush=True)
        eager.append(train_eagerly(options.folder, options.epochs, seed))
        print(f"  seed {seed}: lissome", file=sys.stderr, flush=True)
        ours.append(train_with_lissome(options.folder, options.epochs, seed))
    ratios = [b / a for x, y in zip(eager, ours) for a, b in zip(x["samples_per_second"], y["samples_per_second"])]
    speedup = statistics.median(ratios)
    peak, lean = measure_eager_peak(options.folder), max(run["peak"] for run in ours)
    accuracies = [statistics.mean(run["accuracy"] for run in runs) for runs in (eager, ours)]
    rates = [statistics.median(rate for run in runs for rate in run["samples_per_second"]) for runs in (eager, ours)]
    resident = [max(run["resident"] for run in runs) / 1e6 for runs in (eager, ours)]
    print(f"Fashion-MNIST, {options.seeds} seeds of {options.epochs} epochs, updates of {BATCH} samples")
    print(f"{'':28}{'PyTorch eager f32':>20}{'lissome ' + ours[0]['precision']:>20}")
    print(f"{'samples a second':28}{rates[0]:20.0f}{rates[1]:20.0f}  {speedup:.2f}x [{min(ratios):.2f}, {max(ratios):.2f}]")
    print(f"{'peak of the allocator, MB':28}{peak / 1e6:20.1f}{lean / 1e6:20.1f}  {lean / peak - 1:+.0%}")
    print(f"{'peak resident, MB':28}{resident[0]:20.0f}{resident[1]:20.0f}  {resident[1] / resident[0] - 1:+.0%}")
    print(f"{'test accuracy, mean':28}{accuracies[0]:20.2%}{accuracies[1]:20.2%}  {100 * (accuracies[1] - accuracies[0]):+.2f} points")
    least = find_least_speedup()
    missed = [f"throughput {least}x"] if speedup < least else []
    missed += ["40 % less memory"] if lean > (1 - LEAST_MEMORY_SAVED) * peak else []
    missed += ["equal accuracy"] if accuracies[1] < accuracies[0] - MOST_ACCURACY_LOST else []
    if missed:
        raise SystemExit("missed: " + ", ".join(missed))


if __name__ == "__main__":
    main()
