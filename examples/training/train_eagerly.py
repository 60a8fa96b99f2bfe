"""The Fashion-MNIST net trained as one does in plain eager PyTorch: f32, AdamW, one cycle, whole batches.

    train_eagerly.py FOLDER BATCH RATE EPOCHS SEED [--log FILE | --peak]

FOLDER holds what prepare.py wrote. Prints one object of JSON: test accuracy, and samples a second of each epoch. With
--log, a line for each step and epoch as `lissome train --log` has them. With --peak, three steps under the profiler
instead: the most bytes that the allocator held, weights, gradients and optimizer included.
"""

import argparse
import json
import pathlib
import sys
import time

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fashion_mnist"))
from fashion_mnist_net import FashionMnistNet  # noqa: E402


def load(path: pathlib.Path) -> tuple[torch.Tensor, torch.Tensor]:
    with numpy.load(path) as file:
        return torch.from_numpy(file["images"]), torch.from_numpy(file["labels"])


def read_resident_bytes() -> int:
    return int(pathlib.Path("/proc/self/statm").read_text().split()[1]) * 4096


class Training:
    """All of it is made here, so that the profiler sees weights and states too."""

    def __init__(self, folder: pathlib.Path, rate: float, steps: int):
        self.net = FashionMnistNet()
        self.net.load_state_dict(torch.load(folder / "weights.pt"))
        self.net.train()
        self.optimizer = torch.optim.AdamW(self.net.parameters(), rate)
        self.schedule = torch.optim.lr_scheduler.OneCycleLR(self.optimizer, rate, total_steps=steps)

    def step(self, pixels: torch.Tensor, labels: torch.Tensor) -> dict[str, float]:
        start = time.perf_counter()
        mirrored = torch.rand(len(pixels), 1, 1, 1) < 0.5
        images = torch.where(mirrored, pixels.flip(3), pixels)
        loaded = time.perf_counter()
        self.optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(self.net(images), labels)
        loss.backward()
        done = time.perf_counter()
        norm = torch.nn.utils.clip_grad_norm_(self.net.parameters(), 1.0)
        self.optimizer.step()
        rate = self.schedule.get_last_lr()[0]
        self.schedule.step()
        return {
            "samples": len(labels),
            "loss": loss.item(),
            "learning_rate": rate,
            "gradient_norm": norm.item(),
            "seconds_data": loaded - start,
            "seconds_gradients": done - loaded,
            "seconds_update": time.perf_counter() - done,
            "memory": read_resident_bytes(),
        }

    @torch.no_grad()
    def validate(self, images: torch.Tensor, labels: torch.Tensor) -> tuple[float, float]:
        """Loss and accuracy."""
        self.net.eval()
        scores = torch.cat([self.net(part) for part in images.split(500)])
        self.net.train()
        return torch.nn.functional.cross_entropy(scores, labels).item(), (scores.argmax(1) == labels).float().mean().item()


def measure_peak(folder: pathlib.Path, batch: int, rate: float) -> int:
    images, labels = load(folder / "train.npz")
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU], profile_memory=True) as profile:
        training = Training(folder, rate, 100)
        for first in range(0, 3 * batch, batch):
            training.step(images[first : first + batch], labels[first : first + batch])
    live = peak = 0
    for event in sorted(profile.profiler.kineto_results.events(), key=lambda e: e.start_ns()):
        if event.name() == "[memory]":
            live += event.nbytes()
            peak = max(peak, live)
    return peak


def train(options: argparse.Namespace) -> dict:
    images, labels = load(options.folder / "train.npz")
    test = load(options.folder / "test.npz")
    lines = options.log.open("w", encoding="utf-8") if options.log else None
    training = Training(options.folder, options.rate, options.epochs * -(-len(labels) // options.batch))
    accuracy, step, rates = 0.0, 0, []
    for epoch in range(1, options.epochs + 1):
        total, start = 0.0, time.perf_counter()
        for rows in torch.randperm(len(labels)).split(options.batch):
            record = training.step(images[rows], labels[rows])
            step += 1
            total += record["loss"] * record["samples"]
            if lines:
                print(json.dumps({"event": "step", "epoch": epoch, "step": step, **record}), file=lines)
        seconds = time.perf_counter() - start
        rates.append(len(labels) / seconds)
        loss, accuracy = training.validate(*test)
        record |= {"event": "epoch", "epoch": epoch, "step": step, "loss": total / len(labels), "seconds": seconds}
        if lines:
            record |= {"validation_loss": loss, "metrics": {"accuracy": accuracy}}
            print(json.dumps(record), file=lines, flush=True)
    return {"accuracy": accuracy, "samples_per_second": rates}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("batch", type=int)
    parser.add_argument("rate", type=float)
    parser.add_argument("epochs", type=int)
    parser.add_argument("seed", type=int)
    parser.add_argument("--log", type=pathlib.Path)
    parser.add_argument("--peak", action="store_true")
    options = parser.parse_args()
    torch.manual_seed(options.seed)
    if options.peak:
        print(json.dumps({"peak": measure_peak(options.folder, options.batch, options.rate)}))
    else:
        print(json.dumps(train(options)))


if __name__ == "__main__":
    main()
