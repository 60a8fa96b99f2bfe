"""Does `lissome train` learn what PyTorch learns? The convolutional net of the demo on Fashion-MNIST, in train form as
Python exports it, trained by both with the same options from the same first weights, for several seeds; what is compared
is the mean test accuracy, and the course of the loss: means of 50 steps at a time, the mean over the seeds of one against
that of the other, beside how far the seeds of PyTorch lie apart.

    .venv/bin/python bench/train_accuracy.py [--seeds 3] [--epochs 2] [--samples 60000] [--images FOLDER]

Ends with 1 where the means differ by more than 0.3 points, or the courses by more than the seeds (root mean square).
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import torch

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "examples" / "fashion_mnist"))
from fashion_mnist_net import FashionMnistNet  # noqa: E402
from read_idx import read_idx  # noqa: E402
MOST_DIFFERENCE = 0.003
BATCH, RATE = 128, 1e-3
STEPS_TOGETHER = 50


def load(folder: Path, part: str, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")[:samples]
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")[:samples]
    return torch.from_numpy(images.copy()).unsqueeze(1).float() / 255, torch.from_numpy(labels.astype(np.int64))


def train_in_python(
    net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, epochs: int, seed: int
) -> list[float]:
    """The loss of each step."""
    losses = []
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE)
    steps = epochs * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(labels), generator=generator).split(BATCH):
            optimizer.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(images[rows]), labels[rows])
            loss.backward()
            losses.append(loss.item())
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()
    return losses


@torch.no_grad()
def measure_accuracy(net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    net.eval()
    right = sum(int((net(x).argmax(1) == y).sum()) for x, y in zip(images.split(500), labels.split(500), strict=True))
    return right / len(labels)


def train_with_lissome(folder: Path, words: list[object]) -> tuple[list[float], float]:
    """The loss of each step, and the test accuracy after the last epoch."""
    log = folder / "log.jsonl"
    log.unlink(missing_ok=True)
    command = [ROOT / "build" / "lissome", "train", folder / "net.pt2", "--data", folder / "train.npz", *words]
    command += ["--labels", "labels", "--validation", folder / "test.npz", "-o", folder / "trained.lissome", "--json", "--log", log]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    (table,) = json.loads(done.stdout)["tables"]
    names = [column["name"] for column in table["columns"]]
    steps = [record for record in map(json.loads, log.read_text().splitlines()) if record["event"] == "step"]
    return [step["loss"] for step in steps], dict(zip(names, table["rows"][-1], strict=True))["accuracy"]


def mean_course(losses: list[float]) -> list[float]:
    return [float(np.mean(losses[at : at + STEPS_TOGETHER])) for at in range(0, len(losses), STEPS_TOGETHER)]


def measure_courses(losses: dict[str, list[list[float]]]) -> tuple[float, float]:
    """Root mean squares: of the distance between the mean courses, and of how far apart the seeds of PyTorch lie."""
    courses = {name: np.array([mean_course(one) for one in seeds]) for name, seeds in losses.items()}
    distance = courses["lissome"].mean(0) - courses["PyTorch"].mean(0)
    spread = courses["PyTorch"].max(0) - courses["PyTorch"].min(0)
    return float(np.sqrt(np.mean(distance**2))), float(np.sqrt(np.mean(spread**2)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--samples", type=int, default=60000, help="of the training set")
    parser.add_argument("--images", type=Path, default=Path("/usr/share/datasets/fashion-mnist"))
    options = parser.parse_args()
    images, labels = load(options.images, "train", options.samples)
    test_images, test_labels = load(options.images, "t10k", 10000)
    accuracies: dict[str, list[float]] = {"PyTorch": [], "lissome": []}
    losses: dict[str, list[list[float]]] = {"PyTorch": [], "lissome": []}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        np.savez(folder / "train.npz", images=images.numpy(), labels=labels.numpy())
        np.savez(folder / "test.npz", images=test_images.numpy(), labels=test_labels.numpy())
        for seed in range(options.seeds):
            torch.manual_seed(seed)
            net = FashionMnistNet().train()
            shapes = ({0: torch.export.Dim("batch", min=2, max=1024)},)
            torch.export.save(torch.export.export(net, (images[:4],), dynamic_shapes=shapes), folder / "net.pt2")
            words = ["--epochs", options.epochs, "--batch", BATCH, "--lr", RATE, "--schedule", "cosine", "--seed", seed]
            times = [time.monotonic()]
            course, accuracy = train_with_lissome(folder, words)
            losses["lissome"].append(course)
            accuracies["lissome"].append(accuracy)
            times.append(time.monotonic())
            losses["PyTorch"].append(train_in_python(net, images, labels, options.epochs, seed))
            accuracies["PyTorch"].append(measure_accuracy(net, test_images, test_labels))
            times.append(time.monotonic())
            print(f"seed {seed}: lissome {accuracies['lissome'][-1]:.4f} in {times[1] - times[0]:.0f} s, ", end="")
            print(f"PyTorch {accuracies['PyTorch'][-1]:.4f} in {times[2] - times[1]:.0f} s", flush=True)
    means = {name: float(np.mean(values)) for name, values in accuracies.items()}
    difference = abs(means["lissome"] - means["PyTorch"])
    print(f"mean accuracy: lissome {means['lissome']:.4f}, PyTorch {means['PyTorch']:.4f}, {100 * difference:.2f} points apart")
    distance, spread = measure_courses(losses)
    print(f"loss, means of {STEPS_TOGETHER} steps: mean courses {distance:.4f} apart, seeds of PyTorch {spread:.4f}")
    raise SystemExit(difference > MOST_DIFFERENCE or distance > spread)


if __name__ == "__main__":
    main()
