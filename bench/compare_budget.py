"""Compares training inside memory budgets with torch.utils.checkpoint over uniform segments.

    compare_budget.py FOLDER [--only vit,gpt2] [--shares 0.5,0.25] [--batch 8] [--rounds 30] [--json FILE]

FOLDER is the output of training_models.py. For each model and share of the activation bytes it prints the predicted and
measured peak, and the time of a step over that of the step that keeps everything, in turns. Beside it, for each number of
segments of PyTorch with all blocks checkpointed: the peak of libtorch's allocator, and the time of a step over that of a
step of lissome that has as many bytes, in turns, with 99 % intervals.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import figures
from engines import HERE, Process, note, order_turns, pin_to
from training_nets import TRAININGS

WORKER = HERE.parent / "build" / "release" / "bin" / "lissome_budget_worker"
COMPARED = ("vit", "resnet18", "minilm", "gpt2", "unet")
THREADS = 2


def measure_lissome(folder: pathlib.Path, batch: int, rounds: int, shares: list[str]) -> list[dict]:
    command = [WORKER, folder / "model.pt2", folder / "data.npz", batch, THREADS, rounds, *shares]
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def compare_in_turns(runs: list, rounds: int) -> dict:
    """Median seconds of both functions, and the ratio of the first's with its interval. They run two steps and return the
    milliseconds of the latter."""
    times: list[list] = [[] for _ in runs]
    for index in range(rounds):
        for which in order_turns(list(range(len(runs))), index):
            times[which].append([runs[which]()])
    low, high = figures.bootstrap_ratio(*times)
    medians = [statistics.median(value for (value,) in side) for side in times]
    return {"seconds": [median / 1e3 for median in medians], "ratio": medians[0] / medians[1], "low": low, "high": high}


def compare_checkpoints(folder: pathlib.Path, batch: int, rounds: int) -> list[dict]:
    """A row for each number of segments."""
    peer = Process([sys.executable, str(HERE / "checkpoint_worker.py"), str(folder), str(batch), str(THREADS)])
    command = [WORKER, folder / "model.pt2", folder / "data.npz", batch, THREADS, rounds]
    ours = Process([str(word) for word in command])

    def run_peer(segments: int) -> float:
        return int(peer.ask("run", segments, 2).split()[-1]) / 1e6

    rows = []
    try:
        peaks = {int(segments): peak for segments, peak in json.loads(peer.ask("peaks")[3:]).items()}
        for segments in sorted(set(peaks) - {0}):
            note(f"{folder.name}: {segments} segments")
            row = {"segments": segments, "peak": peaks[segments], "share": peaks[segments] / peaks[0]}
            row["lissome"] = json.loads(ours.ask("plan", peaks[segments])[3:])
            if "error" not in row["lissome"]:
                row["beside"] = compare_in_turns([lambda: run_peer(segments), lambda: ours.run(1, 1)[0]], rounds)
            rows.append(row)
    finally:
        peer.stop()
        ours.stop()
    return rows


def print_lissome(model: str, row: dict) -> None:
    if "error" in row:
        print(f"{model:9} lissome    {row['share']:4.2f}  {row['error']}")
        return
    activations = row["plain_measured"] - row["leaving"]
    print(
        f"{model:9} lissome    {row['share']:4.2f}  activations {(row['measured'] - row['leaving']) / activations:5.1%}"
        f"  time {row['ratio']:.3f}x [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}] predicted {row['ratio_predicted']:.3f}x"
        f"  peak predicted/measured {row['predicted'] / row['measured']:.3f}  same bits {row['same_bits']}  {row['method']}"
        f"  planned in {row['planning_seconds']:.1f} s",
        flush=True,
    )


def print_checkpoint(model: str, row: dict) -> None:
    ours = row["lissome"]
    text = f"{model:9} checkpoint {row['segments']:4}  activations {row['share']:5.1%}"
    if "error" in ours:
        text += f"  lissome does not fit into its {row['peak'] / 2**20:.0f} MiB"
    else:
        beside = row["beside"]
        text += (
            f"  {beside['seconds'][0]:.3f} s in {row['peak'] / 2**20:.0f} MiB; lissome {beside['seconds'][1]:.3f} s in"
            f" {(ours['measured'] - ours['leaving']) / 2**20:.0f} MiB,"
            f" {beside['ratio']:.2f}x as fast [{beside['low']:.2f}, {beside['high']:.2f}]"
        )
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(COMPARED))
    parser.add_argument("--shares", default="0.5,0.25", help="none: beside checkpoints alone")
    parser.add_argument("--batch", type=int, default=0, help="0: that of training_nets.py")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    pin_to(list(range(THREADS)))
    results = {}
    shares = [share for share in arguments.shares.split(",") if share]
    for name in arguments.only.split(","):
        batch = arguments.batch or TRAININGS[name].batch
        note(f"{name}: budgets {', '.join(shares)}")
        ours = measure_lissome(arguments.folder / name, batch, arguments.rounds, shares) if shares else []
        print("\r\033[K", end="")
        for row in ours:
            print_lissome(name, row)
        theirs = compare_checkpoints(arguments.folder / name, batch, arguments.rounds)
        print("\r\033[K", end="")
        for row in theirs:
            print_checkpoint(name, row)
        results[name] = {"lissome": ours, "checkpoint": theirs}
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
