"""Training inside memory budgets: what lissome keeps, against torch.utils.checkpoint over uniform segments.

    compare_budget.py FOLDER [--only vit,gpt2] [--shares 0.5,0.25] [--batch 8] [--rounds 7] [--json FILE]

FOLDER is what training_models.py made. For each model and share of the activation bytes: peak told and measured, and
the time of a step over that of the step that keeps everything, in turns. Beside it PyTorch with all of its blocks
checkpointed, each way of cutting them into segments: its own ratio and peak, by libtorch's allocator, and how long a step
of lissome takes that has as many bytes.
"""

import argparse
import json
import pathlib
import subprocess
import sys

from engines import HERE, note, pin_to
from training_nets import TRAININGS

WORKER = HERE.parent / "build" / "release" / "bin" / "lissome_budget_worker"
COMPARED = ("vit", "resnet18", "minilm", "gpt2", "unet")
THREADS = 2


def measure_lissome(folder: pathlib.Path, batch: int, rounds: int, shares: list[str]) -> list[dict]:
    command = [WORKER, folder / "model.pt2", folder / "data.npz", batch, THREADS, rounds, *shares]
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def measure_checkpoint(folder: pathlib.Path, batch: int, rounds: int) -> list[dict]:
    command = [sys.executable, HERE / "checkpoint_worker.py", folder, batch, THREADS, rounds]
    done = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE, text=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def print_lissome(model: str, row: dict) -> None:
    if "error" in row:
        print(f"{model:9} lissome    {row['share']:4.2f}  {row['error']}")
        return
    activations = row["plain_measured"] - row["leaving"]
    print(
        f"{model:9} lissome    {row['share']:4.2f}  activations {(row['measured'] - row['leaving']) / activations:5.1%}"
        f"  time {row['ratio']:.3f}x [{row['ratio_low']:.3f}, {row['ratio_high']:.3f}] told {row['ratio_told']:.3f}x"
        f"  peak told/measured {row['told'] / row['measured']:.3f}  same bits {row['same_bits']}  {row['method']}"
        f"  planned in {row['planning_seconds']:.1f} s",
        flush=True,
    )


def print_checkpoint(model: str, row: dict, ours: dict) -> None:
    text = f"{model:9} checkpoint {row['segments']:4}  activations {row['share']:5.1%}  time {row['ratio']:.3f}x"
    if "error" in ours:
        text += f"  lissome does not fit into its {row['peak'] / 2**20:.0f} MiB"
    else:
        text += (
            f"  {row['seconds']:.3f} s in {row['peak'] / 2**20:.0f} MiB; lissome {ours['seconds']:.3f} s in"
            f" {(ours['measured'] - ours['leaving']) / 2**20:.0f} MiB"
        )
    print(text, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(COMPARED))
    parser.add_argument("--shares", default="0.5,0.25")
    parser.add_argument("--batch", type=int, default=0, help="0: that of training_nets.py")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", type=pathlib.Path)
    arguments = parser.parse_args()
    pin_to(list(range(THREADS)))
    results = {}
    for name in arguments.only.split(","):
        batch = arguments.batch or TRAININGS[name].batch
        note(f"{name}: checkpoints")
        theirs = [row for row in measure_checkpoint(arguments.folder / name, batch, arguments.rounds) if row["segments"]]
        note(f"{name}: budgets")
        shares = arguments.shares.split(",")
        limits = [*shares, *(str(row["peak"]) for row in theirs)]
        ours = measure_lissome(arguments.folder / name, batch, arguments.rounds, limits)
        print("\r\033[K", end="")
        for row in ours[: len(shares)]:
            print_lissome(name, row)
        for row, beside in zip(theirs, ours[len(shares) :]):
            print_checkpoint(name, row, beside)
        results[name] = {"lissome": ours, "checkpoint": theirs}
    if arguments.json:
        arguments.json.write_text(json.dumps(results, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
