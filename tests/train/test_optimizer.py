"""A hundred steps of every optimizer end at the same weights as PyTorch's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

STEPS = 100
SHAPES = [(13, 7), (97,), (20, 33, 3), (1,)]


class Lion(torch.optim.Optimizer):
    """Algorithm 2 of arXiv 2302.06675."""

    def __init__(self, params: Any, lr: float = 1e-4, betas: tuple[float, float] = (0.9, 0.99), weight_decay: float = 0):
        super().__init__(params, {"lr": lr, "betas": betas, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for weight in group["params"]:
                mean = self.state[weight].setdefault("exp_avg", torch.zeros_like(weight))
                direction = (beta1 * mean + (1 - beta1) * weight.grad).sign()
                weight.mul_(1 - group["lr"] * group["weight_decay"]).sub_(direction, alpha=group["lr"])
                mean.mul_(beta2).add_(weight.grad, alpha=1 - beta2)


def make_problem(seed: int) -> tuple[list[torch.Tensor], list[list[torch.Tensor]]]:
    """Weights, and for each step a gradient of each, of sizes that differ a thousandfold from weight to weight."""
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(shape, generator=generator) for shape in SHAPES]
    slopes = [torch.randn(shape, generator=generator) for shape in SHAPES]
    gradients = [
        [(slope + torch.randn(slope.shape, generator=generator)) * 10.0**-i for i, slope in enumerate(slopes)]
        for _ in range(STEPS)
    ]
    return weights, gradients


def name_arrays(weights: list[torch.Tensor], gradients: list[list[torch.Tensor]]) -> dict[str, np.ndarray]:
    arrays = {f"weight.{i}": weight.detach().numpy() for i, weight in enumerate(weights)}
    for step, of_step in enumerate(gradients):
        arrays |= {f"gradient.{step}.{i}": gradient.numpy() for i, gradient in enumerate(of_step)}
    return arrays


def check_weights(path: Path, wanted: list[torch.Tensor]) -> None:
    seen = np.load(path)
    for i, weight in enumerate(wanted):
        expected = weight.detach().numpy()
        difference = np.abs(seen[f"weight.{i}"] - expected).max() / np.abs(expected).max()
        assert difference <= 1e-6, f"weight.{i}: {difference}"


def spell(options: dict[str, Any]) -> list[str]:
    """PyTorch's options as words of run_train."""
    words = []
    for key, value in options.items():
        if key == "betas":
            words += [f"beta1={value[0]}", f"beta2={value[1]}"]
        else:
            words.append(f"{key}={float(value)}")
    return words


OPTIMIZERS = [
    ("AdamW", {}),
    ("AdamW", {"lr": 0.01, "betas": (0.8, 0.95), "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"lr": 0.01, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01}),
    ("SGD", {"lr": 0.01, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "dampening": 0.1, "weight_decay": 0.01}),
    ("SGD", {"lr": 0.01, "momentum": 0.9, "nesterov": True}),
    ("Lion", {}),
    ("Lion", {"lr": 1e-3, "weight_decay": 0.1}),
    ("Adafactor", {}),
    ("Adafactor", {"lr": 0.05, "weight_decay": 0.1}),
]


@pytest.mark.parametrize(("name", "options"), OPTIMIZERS)
def test_a_hundred_steps_equal_those_of_pytorch(
    name: str, options: dict[str, Any], run_train: Callable[..., str], tmp_path: Path
):
    weights, gradients = make_problem(seed=1)
    np.savez(tmp_path / "in.npz", **name_arrays(weights, gradients))
    run_train("optimizer", name, tmp_path / "in.npz", tmp_path / "out.npz", *spell(options))
    kind = Lion if name == "Lion" else getattr(torch.optim, name)
    optimizer = kind(weights, **options)
    for of_step in gradients:
        for weight, gradient in zip(weights, of_step, strict=True):
            weight.grad = gradient
        optimizer.step()
    check_weights(tmp_path / "out.npz", weights)


def test_clipping_and_unscaling_equal_those_of_pytorch(run_train: Callable[..., str], tmp_path: Path):
    weights, gradients = make_problem(seed=2)
    scaled = [[gradient * 1024 for gradient in of_step] for of_step in gradients]
    np.savez(tmp_path / "in.npz", **name_arrays(weights, scaled))
    words = ["lr=0.01", "momentum=0.9", "clip_norm=2", "loss_scale=1024"]
    run_train("optimizer", "SGD", tmp_path / "in.npz", tmp_path / "out.npz", *words)
    optimizer = torch.optim.SGD(weights, lr=0.01, momentum=0.9)
    for of_step in gradients:
        for weight, gradient in zip(weights, of_step, strict=True):
            weight.grad = gradient.clone()
        torch.nn.utils.clip_grad_norm_(weights, 2.0)
        optimizer.step()
    check_weights(tmp_path / "out.npz", weights)


def test_sparse_gradients_change_rows_as_sparse_adam_does(run_train: Callable[..., str], tmp_path: Path):
    generator = torch.Generator().manual_seed(3)
    weight = torch.randn(50, 9, generator=generator)
    arrays = {"weight.0": weight.numpy().copy()}
    optimizer = torch.optim.SparseAdam([weight], lr=0.01)
    for step in range(STEPS):
        rows = torch.randint(0, 40, (12,), generator=generator)  # some twice
        gradient = torch.randn(12, 9, generator=generator)
        arrays |= {f"gradient.{step}.0": gradient.numpy(), f"rows.{step}.0": rows.numpy()}
        weight.grad = torch.sparse_coo_tensor(rows.unsqueeze(0), gradient, weight.shape, check_invariants=True)
        optimizer.step()
    np.savez(tmp_path / "in.npz", **arrays)
    run_train("optimizer", "Adam", tmp_path / "in.npz", tmp_path / "out.npz", "lr=0.01")
    check_weights(tmp_path / "out.npz", [weight])
    assert (np.load(tmp_path / "out.npz")["weight.0"][40:] == arrays["weight.0"][40:]).all()
