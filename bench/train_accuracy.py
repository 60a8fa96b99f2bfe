"""Does `lissome train` learn what PyTorch learns? The convolutional net of the demo on Fashion-MNIST, in train form as
Python exports it, trained by both with the same options from the same first weights, for several seeds; what is compared
is the mean test accuracy.

    .venv/bin/python bench/train_accuracy.py [--seeds 3] [--epochs 2] [--samples 60000] [--images FOLDER]

Ends with 1 where the means differ by more than 0.3 points.
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


def load(folder: Path, part: str, samples: int) -> tuple[torch.Tensor, torch.Tensor]:
    images = read_idx(folder / f"{part}-images-idx3-ubyte.gz")[:samples]
    labels = read_idx(folder / f"{part}-labels-idx1-ubyte.gz")[:samples]
    return torch.from_numpy(images.copy()).unsqueeze(1).float() / 255, torch.from_numpy(labels.astype(np.int64))


def train_in_python(net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor, epochs: int, seed: int) -> None:
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=RATE)
    steps = epochs * -(-len(labels) // BATCH)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    net.train()
    for _ in range(epochs):
        for rows in torch.randperm(len(labels), generator=generator).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(net(images[rows]), labels[rows]).backward()
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            optimizer.step()
            schedule.step()


@torch.no_grad()
def measure_accuracy(net: torch.nn.Module, images: torch.Tensor, labels: torch.Tensor) -> float:
    net.eval()
    right = sum(int((net(x).argmax(1) == y).sum()) for x, y in zip(images.split(500), labels.split(500), strict=True))
    return right / len(labels)


def train_with_lissome(folder: Path, words: list[object]) -> float:
    """The test accuracy after the last epoch."""
    command = [ROOT / "build" / "lissome", "train", folder / "net.pt2", "--data", folder / "train.npz", *words]
    command += ["--labels", "labels", "--val", folder / "test.npz", "-o", folder / "trained.lissome", "--json"]
    done = subprocess.run(list(map(str, command)), check=True, stdout=subprocess.PIPE, text=True)
    table = json.loads(done.stdout)
    names = [column["name"] for column in table["columns"]]
    return dict(zip(names, table["rows"][-1], strict=True))["accuracy"]


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
            accuracies["lissome"].append(train_with_lissome(folder, words))
            times.append(time.monotonic())
            train_in_python(net, images, labels, options.epochs, seed)
            accuracies["PyTorch"].append(measure_accuracy(net, test_images, test_labels))
            times.append(time.monotonic())
            print(f"seed {seed}: lissome {accuracies['lissome'][-1]:.4f} in {times[1] - times[0]:.0f} s, ", end="")
            print(f"PyTorch {accuracies['PyTorch'][-1]:.4f} in {times[2] - times[1]:.0f} s", flush=True)
    means = {name: float(np.mean(values)) for name, values in accuracies.items()}
    difference = abs(means["lissome"] - means["PyTorch"])
    print(f"mean accuracy: lissome {means['lissome']:.4f}, PyTorch {means['PyTorch']:.4f}, {100 * difference:.2f} points apart")
    raise SystemExit(difference > MOST_DIFFERENCE)


if __name__ == "__main__":
    main()
