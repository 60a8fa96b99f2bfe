"""Compares training with weights in a file and weights in memory, on a wide MLP: memory and time of a step, in turns.

    compare_offload.py FOLDER [--layers 48] [--width 1024] [--batch 64] [--steps 30] [--rounds 3] [--program lissome]

FOLDER, on the disk to measure, gets the model and its data. Both ways keep the optimizer states in a file there and update
weights in the backward pass. `--memory` of one is enough for all weights, that of the other is not. Each row shows the peak
of the allocators, the bytes of weights that may be in memory at once, the resident set during steps and its peak since the
start of the process, and the median time of a step.
"""

from __future__ import annotations

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from typing import Any

import numpy as np
import torch

PROGRAM = pathlib.Path(__file__).resolve().parent.parent / "build" / "release" / "bin" / "lissome"
WARM_UP = 5  # steps that are not counted


def make_model(folder: pathlib.Path, layers: int, width: int, samples: int) -> int:
    """model.pt2 and data.npz; the bytes of its weights."""
    torch.manual_seed(0)
    blocks = [torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU()) for _ in range(layers)]
    net = torch.nn.Sequential(*blocks, torch.nn.Linear(width, 8)).train()
    x = torch.randn(samples, width)
    shapes = ({0: torch.export.Dim("batch", min=2, max=4096)},)
    torch.export.save(torch.export.export(net, (x[:4],), dynamic_shapes=shapes), folder / "model.pt2")
    np.savez(folder / "data.npz", x=x.numpy(), labels=(torch.arange(samples) % 8).numpy())
    return sum(parameter.nbytes for parameter in net.parameters())


def train(arguments: argparse.Namespace, memory: int) -> dict[str, Any]:
    folder = arguments.folder
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    command = [arguments.program, "train", folder / "model.pt2", "--data", folder / "data.npz", "--labels", "labels"]
    command += ["--batch", arguments.batch, "--max-steps", arguments.steps, "--epochs", arguments.steps, "--clip", 0]
    command += ["--update-in-backward", "--offload", folder, "--memory", memory, "--recompute", "none"]
    command += ["--memory-every", 1, "--log", log]
    command += ["-o", folder / "trained.lissome", "--json"]
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"compare_offload: training within {memory} bytes ended with status {done.returncode}")
    record = json.loads(done.stdout)["result"]
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    steps = [line for line in lines if line["event"] == "step"][WARM_UP:]
    looks = [line for line in lines if line["event"] == "memory"][WARM_UP:]
    return {
        "held": record["peak_memory"],
        "weights": looks[-1]["weights"],
        "resident": max(look["resident"] for look in looks),
        "resident_peak": looks[-1]["resident_peak"],
        "seconds": statistics.median(line["seconds_gradients"] + line["seconds_update"] for line in steps),
        "losses": [line["loss"] for line in steps],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--layers", type=int, default=48)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--steps", type=int, default=30)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--program", type=pathlib.Path, default=PROGRAM)
    arguments = parser.parse_args()
    arguments.folder.mkdir(parents=True, exist_ok=True)
    weights = make_model(arguments.folder, arguments.layers, arguments.width, 8 * arguments.batch)
    print(f"weights {weights / 2**20:.0f} MiB", flush=True)
    limits = {"memory": 8 * weights, "file": weights // 2}
    rounds: dict[str, list[dict[str, Any]]] = {name: [] for name in limits}
    for _ in range(arguments.rounds):
        for name, limit in limits.items():
            rounds[name].append(row := train(arguments, limit))
            print(
                f"{name:6} held {row['held'] / 2**20:.0f} MiB, weights {row['weights'] / 2**20:.0f} MiB, resident"
                f" {row['resident'] / 2**20:.0f} MiB (at most {row['resident_peak'] / 2**20:.0f}), step"
                f" {row['seconds'] * 1e3:.1f} ms",
                flush=True,
            )
    ratios = [there["seconds"] / here["seconds"] for here, there in zip(rounds["memory"], rounds["file"], strict=True)]
    same = all(row["losses"] == rounds["memory"][0]["losses"] for rows in rounds.values() for row in rows)
    print(f"a step takes {statistics.median(ratios):.2f}x [{min(ratios):.2f}, {max(ratios):.2f}], same losses {same}")


if __name__ == "__main__":
    main()
