"""What --compress brings when two ranks train one model: bytes of a step, the loss at the end, and the time of a step over a
slow link.

    .venv/bin/python bench/compress_gradients.py [--only mlp,...] [--steps 600] [--seeds 3] [--rate 250mbit] [--rounds 3]

Nets: a perceptron and the convolutional net of the demo on Fashion-MNIST, a small GPT-2 on the licences that Debian installs.
The loss is the mean of the last 50 steps; without compression it is trained with several seeds, whose spread is printed. Bytes are
counted by the kernel at the interface, of a step after the dense ones. For the time, each rank has an interface and a processor of
its own, and the link between them is shaped (tbf): needs root, `ip` and `tc`. Rounds are interleaved. Ends with 1 where a method
that compresses is not smaller.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "fashion_mnist"))
from fashion_mnist_net import FashionMnistNet  # noqa: E402
from read_idx import read_idx  # noqa: E402
from training_nets import Gpt2  # noqa: E402

PROGRAM = ROOT / "build" / "lissome"
METHODS = {"none": "none", "bf16": "bf16", "fp16": "fp16", "powersgd": "powersgd:4", "topk": "topk:1%"}
DENSE_STEPS, LAST_STEPS, TOKENS = 100, 50, 64
Arrays = dict[str, np.ndarray]


def load_images(samples: int = 20000) -> Arrays:
    source = Path("/usr/share/datasets/fashion-mnist")
    images = read_idx(source / "train-images-idx3-ubyte.gz")[:samples, None].astype(np.float32) / 255
    labels = read_idx(source / "train-labels-idx1-ubyte.gz")[:samples].astype(np.int64)
    return {"images": images, "labels": labels}


def load_text() -> Arrays:
    texts = [path.read_bytes() for path in sorted(Path("/usr/share/common-licenses").iterdir()) if not path.is_symlink()]
    letters = np.frombuffer(b"".join(texts), np.uint8).astype(np.int64)
    rows = letters[: (len(letters) - 1) // TOKENS * TOKENS]
    return {"tokens": rows.reshape(-1, TOKENS), "labels": letters[1 : len(rows) + 1].reshape(-1, TOKENS)}


class Language(Gpt2):
    """tokens i64 [N, 64] -> logits f32 [N, 256, 64], the order that cross entropy takes."""

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return super().forward(tokens).transpose(1, 2)


def make_perceptron() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 512),
                               torch.nn.ReLU(), torch.nn.Linear(512, 10))


NETS: dict[str, tuple[Callable[[], torch.nn.Module], Callable[[], Arrays], list[str]]] = {
    "mlp": (make_perceptron, load_images, ["--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.05"]),
    "fashion": (FashionMnistNet, load_images, ["--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.05"]),
    "gpt2": (lambda: Language(words=256, width=128, layers=3, heads=4, tokens=TOKENS), load_text,
             ["--optimizer", "adamw", "--lr", "0.002"]),
}


def export(name: str, folder: Path) -> None:
    make, load, _ = NETS[name]
    torch.manual_seed(0)
    data = load()
    np.savez(folder / "data.npz", **data)
    example = torch.from_numpy(next(iter(data.values()))[:4])
    sizes = ({0: torch.export.Dim("batch", min=2, max=512)},)
    torch.export.save(torch.export.export(make().train(), (example,), dynamic_shapes=sizes), folder / "net.pt2")


def list_words(name: str, method: str, steps: int, dense: int, seed: int = 0) -> list[str]:
    words = ["train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--batch", "64", "--epochs", "1000", "--max-steps", str(steps)]
    words += [*NETS[name][2], "--compress", METHODS[method], "--compress-from", str(dense), "--seed", str(seed), "--snapshot-every", "never"]
    return [*words, "-o", "trained.lissome", "--log", "log.jsonl"]


def read_steps(folder: Path) -> list[dict[str, float]]:
    records = map(json.loads, (folder / "log.jsonl").read_text().splitlines())
    return [record for record in records if record["event"] == "step"]


def launch(folder: Path, words: list[str], before: list[str]) -> str:
    for name in ("log.jsonl", "trained.lissome"):
        (folder / name).unlink(missing_ok=True)
    command = [*before, str(PROGRAM), "launch", "--processes", "2", "--", *words]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: exit code {done.returncode}\n{done.stderr}")
    return done.stdout


def measure_loss(name: str, method: str, folder: Path, steps: int, seed: int) -> float:
    launch(folder, list_words(name, method, steps, DENSE_STEPS, seed), [])
    return statistics.fmean(step["loss"] for step in read_steps(folder)[-LAST_STEPS:])


def count_bytes(name: str, method: str, folder: Path) -> float:
    """Of one step and both ranks, on a loopback interface of its own."""
    counted = {}
    for steps in (10, 60):
        shell = 'ip link set lo up && "$@" >/dev/null && cat /proc/net/dev'
        table = launch(folder, list_words(name, method, steps, 0), ["unshare", "-n", "bash", "-c", shell, "bash"])
        (row,) = (line for line in table.splitlines() if line.strip().startswith("lo:"))
        counted[steps] = int(row.split(":")[1].split()[0])
    return (counted[60] - counted[10]) / 50


@contextlib.contextmanager
def shaped_link(rate: str) -> Iterator[list[str]]:
    """The names of two network namespaces, whose interfaces have the name of their namespace. A burst of 64 KiB or less would cut
    what TCP sends into packets of 1,500 bytes in software, which took two fifths of both processors; network cards do that."""
    names = [f"lissome{os.getpid()}{side}" for side in "ab"]
    try:
        for name in names:
            subprocess.run(["ip", "netns", "add", name], check=True)
        ends = [f"l{os.getpid() % 100000}{side}" for side in "ab"]
        subprocess.run(["ip", "link", "add", ends[0], "type", "veth", "peer", "name", ends[1]], check=True)
        for i, (name, end) in enumerate(zip(names, ends, strict=True)):
            subprocess.run(["ip", "link", "set", end, "netns", name], check=True)
            inside = ["ip", "netns", "exec", name]
            for words in (["ip", "link", "set", "lo", "up"], ["ip", "link", "set", end, "name", "wire"],
                          ["ip", "addr", "add", f"10.77.0.{i + 1}/24", "dev", "wire"], ["ip", "link", "set", "wire", "up"],
                          ["tc", "qdisc", "add", "dev", "wire", "root", "tbf", "rate", rate, "burst", "128kb", "latency", "100ms"]):
                subprocess.run([*inside, *words], check=True)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], check=False)


def measure_step(name: str, method: str, folder: Path, namespaces: list[str]) -> float:
    """Median seconds of a step."""
    (folder / "log.jsonl").unlink(missing_ok=True)
    ranks = []
    for rank, namespace in enumerate(namespaces):
        words = list_words(name, method, 40, 0)
        if rank != 0:
            words = words[: words.index("-o")] + ["-o", "other.lissome"]
        variables = {"RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "10.77.0.1", "MASTER_PORT": 29517, "GLOO_SOCKET_IFNAME": "wire"}
        environment = {**os.environ, **{key: str(value) for key, value in variables.items()}}
        command = ["ip", "netns", "exec", namespace, "taskset", "-c", str(rank), str(PROGRAM), *words, "--threads", "1"]
        ranks.append(subprocess.Popen(command, cwd=folder, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
    for rank in ranks:
        errors = rank.communicate()[1]
        if rank.returncode != 0:
            sys.exit(errors)
    steps = read_steps(folder)[5:]
    return statistics.median(step["seconds_gradients"] + step["seconds_update"] for step in steps)


def compare(name: str, arguments: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory() as path:
        folder = Path(path)
        export(name, folder)
        dense = [measure_loss(name, "none", folder, arguments.steps, seed) for seed in range(arguments.seeds)]
        times: dict[str, list[float]] = {method: [] for method in METHODS}
        if arguments.rate:
            with shaped_link(arguments.rate) as namespaces:
                for _ in range(arguments.rounds):
                    for method in METHODS:
                        times[method].append(measure_step(name, method, folder, namespaces))
        print(f"{name}: loss without compression, {arguments.seeds} seeds: {min(dense):.5f} to {max(dense):.5f}")
        print(f"{'method':10}{'bytes a step':>14}{'less':>8}{'loss':>10}{'of the mean':>13}{'step':>12}{'faster':>9}")
        whole, smaller = count_bytes(name, "none", folder), True
        for method in METHODS:
            counted = whole if method == "none" else count_bytes(name, method, folder)
            loss = dense[0] if method == "none" else measure_loss(name, method, folder, arguments.steps, 0)
            row = f"{method:10}{counted:14.0f}{whole / counted:7.1f}x{loss:10.5f}{loss / statistics.fmean(dense):12.3f}x"
            if times[method]:
                ratios = [a / b for a, b in zip(times["none"], times[method], strict=True)]
                row += f"{statistics.median(times[method]) * 1e3:9.1f} ms{statistics.median(ratios):8.2f}x"
            print(row, flush=True)
            smaller &= method == "none" or counted < whole
    return smaller


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(NETS))
    parser.add_argument("--steps", type=int, default=600)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--rate", default="250mbit", help="of the shaped link; empty: no times")
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    results = [compare(name, arguments) for name in arguments.only.split(",")]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
