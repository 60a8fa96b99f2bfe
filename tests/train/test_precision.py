"""Steps in mixed precision are those of torch.autocast on the CPU, with torch.amp.GradScaler for f16."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

BATCH, STEPS, CLASSES = 12, 8, 5
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16}


class Mlp(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(24, 48), nn.GELU(), nn.Linear(48, 48), nn.Tanh(), nn.Linear(48, CLASSES))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)

    @staticmethod
    def draw(samples: int) -> torch.Tensor:
        return torch.randn(samples, 24)


class ConvNet(nn.Module):
    """Batch norm, whose statistics are state; a depthwise convolution; a residual."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(16)
        self.depthwise = nn.Conv2d(16, 16, 3, padding=1, groups=16, bias=False)
        self.second = nn.BatchNorm2d(16)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.stem(x)))
        x = torch.relu(self.second(self.depthwise(x)) + x)
        return self.head(nn.functional.adaptive_avg_pool2d(nn.functional.max_pool2d(x, 2), 1).flatten(1))

    @staticmethod
    def draw(samples: int) -> torch.Tensor:
        return torch.randn(samples, 3, 12, 12)


class Transformer(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(40, 32)
        self.norm1, self.norm2 = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.up, self.down = nn.Linear(32, 64), nn.Linear(64, 32)
        self.head = nn.Linear(32, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.table(x)
        q, k, v = (part.unflatten(-1, (4, 8)).transpose(1, 2) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        x = x + self.down(nn.functional.gelu(self.up(self.norm2(x))))
        return self.head(x.mean(1))

    @staticmethod
    def draw(samples: int) -> torch.Tensor:
        return torch.randint(0, 40, (samples, 9))


class Steps:
    """What training in Python does, step by step."""

    def __init__(self, model: nn.Module, data: dict[str, torch.Tensor], precision: str, scale: float, interval: int):
        self.arrays: dict[str, np.ndarray] = {}
        self.given: dict[str, np.ndarray] = {}
        self.skipped = 0
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        scaler = torch.amp.GradScaler("cpu", init_scale=scale, growth_interval=interval, enabled=precision == "f16")
        for step in range(STEPS):
            for name, tensor in model.state_dict().items():
                self.given[f"weight.{step}.{name}"] = tensor.numpy().copy()
            rows = slice(step * BATCH, (step + 1) * BATCH)
            optimizer.zero_grad()
            with torch.autocast("cpu", dtype=DTYPES.get(precision), enabled=precision != "f32"):
                loss = nn.functional.cross_entropy(model(data["x"][rows]), data["labels"][rows])
            scaler.scale(loss).backward()
            self.arrays[f"loss.{step}"] = loss.detach().numpy()
            self.arrays[f"scale.{step}"] = np.float32(scaler.get_scale())
            for name, weight in model.named_parameters():
                self.arrays[f"gradient.{step}.{name}"] = weight.grad.numpy().copy()
            scaler.step(optimizer)
            scaler.update()
            self.skipped += precision == "f16" and scaler.get_scale() < self.arrays[f"scale.{step}"]
        self.arrays |= {f"weight.{name}": tensor.numpy() for name, tensor in model.state_dict().items()}


def export(kind: type[nn.Module], folder: Path) -> tuple[nn.Module, dict[str, torch.Tensor]]:
    torch.manual_seed(1)
    model = kind().train()
    data = {"x": model.draw(BATCH * STEPS), "labels": torch.randint(0, CLASSES, (BATCH * STEPS,))}
    shapes = ({0: torch.export.Dim("batch", min=2, max=512)},)
    torch.export.save(torch.export.export(model, (data["x"][:4],), dynamic_shapes=shapes), folder / "model.pt2")
    return model, data


MODELS = [Mlp, ConvNet, Transformer]


@pytest.mark.parametrize("precision", ["bf16", "f16"])
@pytest.mark.parametrize("kind", MODELS)
def test_from_the_same_weights_every_step_has_the_same_bits(
    kind: type[nn.Module], precision: str, run_train: Callable[..., str], tmp_path: Path
):
    model, data = export(kind, tmp_path)
    steps = Steps(model, data, precision, scale=2.0**14, interval=3)
    np.savez(tmp_path / "in.npz", **{name: tensor.numpy() for name, tensor in data.items()}, **steps.given)
    words = ("given=1", f"batch={BATCH}", f"steps={STEPS}", f"precision={precision}", "scale=16384", "interval=3")
    run_train("steps", tmp_path / "model.pt2", tmp_path / "in.npz", tmp_path / "out.npz", *words)
    seen = np.load(tmp_path / "out.npz")
    for name, wanted in steps.arrays.items():
        if name.startswith(("loss", "gradient")) or (name.startswith("scale") and precision == "f16"):
            assert np.array_equal(seen[name], wanted, equal_nan=True), name


def distance(seen: np.ndarray, wanted: np.ndarray) -> float:
    return float(np.linalg.norm(seen.astype(np.float64) - wanted) / np.linalg.norm(wanted.astype(np.float64)))


@pytest.mark.parametrize("precision", ["f32", "f16"])
@pytest.mark.parametrize("kind", MODELS)
def test_training_takes_the_same_way(
    kind: type[nn.Module], precision: str, run_train: Callable[..., str], tmp_path: Path
):
    """Weights drift apart by rounding alone: by f32's, or by some of the 11 bits of a product in f16.

    The scale of f16 starts so high that steps are skipped, at the same places.
    """
    model, data = export(kind, tmp_path)
    steps = Steps(model, data, precision, scale=2.0**24, interval=3)
    np.savez(tmp_path / "in.npz", **{name: tensor.numpy() for name, tensor in data.items()})
    words = (f"batch={BATCH}", f"steps={STEPS}", f"precision={precision}", f"scale={2**24}", "interval=3")
    run_train("steps", tmp_path / "model.pt2", tmp_path / "in.npz", tmp_path / "out.npz", *words)
    seen = np.load(tmp_path / "out.npz")
    bound = {"f32": 1e-5, "f16": 4e-3}[precision]
    for step in range(STEPS):
        assert distance(seen[f"loss.{step}"], steps.arrays[f"loss.{step}"]) <= bound / 3
        if precision == "f16":
            assert seen[f"scale.{step}"] == steps.arrays[f"scale.{step}"]
    assert (steps.skipped > 1) == (precision == "f16")
    for name, wanted in steps.arrays.items():
        if not np.isfinite(wanted).all() or name.endswith("num_batches_tracked") or not np.any(wanted):
            continue
        assert distance(seen[name], wanted) <= bound, name


@pytest.mark.parametrize("kind", MODELS)
def test_training_in_bf16_stays_as_near_to_f32_as_pytorch(
    kind: type[nn.Module], run_train: Callable[..., str], tmp_path: Path
):
    """Products and sums on other kernels round elsewhere: what counts is how far both are from the same steps in f32. A
    ReLU that rounding turns decides about a single tensor's distance, and steps go on from it; not about the mean."""
    model, data = export(kind, tmp_path)
    theirs = Steps(model, data, "bf16", scale=1.0, interval=3)
    exact = Steps(*export(kind, tmp_path), "f32", scale=1.0, interval=3)
    np.savez(tmp_path / "in.npz", **{name: tensor.numpy() for name, tensor in data.items()})
    words = (f"batch={BATCH}", f"steps={STEPS}", "precision=bf16", "scale=1", "interval=3")
    run_train("steps", tmp_path / "model.pt2", tmp_path / "in.npz", tmp_path / "out.npz", *words)
    seen = np.load(tmp_path / "out.npz")
    ratios = []
    for name, wanted in exact.arrays.items():
        if name.startswith("scale") or name.endswith("num_batches_tracked") or not np.any(wanted):
            continue
        own, other = distance(seen[name], wanted), distance(theirs.arrays[name], wanted)
        assert own <= 2 * other + 3e-3, (name, own, other)
        ratios.append((own + 1e-4) / (other + 1e-4))
    assert len(ratios) > 5 * STEPS
    assert np.exp(np.log(ratios).mean()) <= 1.05
