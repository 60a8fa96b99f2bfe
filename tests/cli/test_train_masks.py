"""lissome train: attention written out by hand gets PyTorch's gradients, however its mask is made, for samples that are all
padding too."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

Lissome = Callable[..., Any]
LOWEST = torch.finfo(torch.float32).min
STEPS = 6


def fill(number: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda scores, keep: scores.masked_fill(keep == 0, number)


def add(number: float) -> Callable[[torch.Tensor, torch.Tensor], torch.Tensor]:
    return lambda scores, keep: scores + (1 - keep) * number


def lower_ahead() -> torch.Tensor:
    return torch.full((STEPS, STEPS), LOWEST).triu(1)


# From scores [batch, heads, queries, keys] and what is kept, 1 or 0 [batch, 1, 1, keys], to what softmax takes.
MASKS: dict[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]] = {
    "no mask": lambda scores, keep: scores,
    "fill -100": fill(-100.0), "fill -1e4": fill(-1e4), "fill -1e9": fill(-1e9), "fill the lowest": fill(LOWEST),
    "add -100": add(-100.0), "add -1e4": add(-1e4), "add -1e9": add(-1e9), "add the lowest": add(LOWEST),
    "where": lambda scores, keep: torch.where(keep > 0, scores, LOWEST),
    "sum of where": lambda scores, keep: scores + torch.where(keep > 0, 0.0, LOWEST),
    "clamp": lambda scores, keep: scores + ((1 - keep) * LOWEST).clamp(min=LOWEST),
    "two masks, clamped": lambda scores, keep: scores + (lower_ahead() + (1 - keep) * LOWEST).clamp(min=LOWEST),
    "maximum": lambda scores, keep: scores + torch.maximum((1 - keep) * LOWEST, torch.full((), LOWEST)),
    "minimum": lambda scores, keep: scores + torch.minimum(lower_ahead(), (1 - keep) * LOWEST),
    "filled mask": lambda scores, keep: scores + lower_ahead().expand(keep.shape[0], 1, -1, -1).masked_fill(keep == 0, LOWEST),
    "product of masks": lambda scores, keep: scores + (1 - keep * torch.ones(STEPS, STEPS).tril()) * LOWEST,
    "logarithm": lambda scores, keep: scores + torch.log(keep + 1e-30) * 1e30,
    "quotient": lambda scores, keep: scores + (keep - 1) / 1e-30,
    "relu": lambda scores, keep: scores - torch.relu((1 - keep) * 1e9),
    "magnitude": lambda scores, keep: scores - ((keep - 1) * 1e9).abs(),
    "power": lambda scores, keep: scores - (1 - keep) * torch.tensor(10.0) ** 9,
    "table": lambda scores, keep: scores + torch.tensor([LOWEST, 0.0])[keep.long()],
    "parts": lambda scores, keep: scores + torch.cat([add(-1e9)(0, keep[..., :2]), add(-1e9)(0, keep[..., 2:])], -1),
    "finite numbers": lambda scores, keep: scores + torch.where(keep > 0, 0.0, -torch.inf).nan_to_num(neginf=-1e30),
    "clamped scores": lambda scores, keep: (scores + (1 - keep) * LOWEST).clamp(min=-1e30),
    "small products": lambda scores, keep: scores + (1 - keep) * 50.0 * -50.0 * 50.0 * 50.0,
    "sigmoid": lambda scores, keep: scores + 16 * torch.sigmoid(keep),
    "infinity ahead": lambda scores, keep: scores.masked_fill(torch.ones(STEPS, STEPS).tril() == 0, -torch.inf),
}  # fmt: skip


class Attention(nn.Module):
    def __init__(self, mask: str) -> None:
        super().__init__()
        self.project, self.back, self.mask = nn.Linear(8, 24), nn.Linear(8, 3), mask

    def forward(self, x: torch.Tensor, keep: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.project(x).chunk(3, -1))
        scores = MASKS[self.mask](query @ key.transpose(-1, -2) / 2, keep[:, None, None, :])
        return self.back((scores.softmax(-1) @ value).transpose(1, 2).flatten(2)).mean(1)


@pytest.mark.parametrize("mask", MASKS)
def test_samples_that_are_all_padding(lissome: Lissome, tmp_path: Path, mask: str):
    torch.manual_seed(1)
    net, x, labels, keep = Attention(mask), torch.randn(8, STEPS, 8), torch.arange(8) % 3, torch.ones(8, STEPS)
    keep[1], keep[2, 3:], keep[5, :2] = 0, 0, 0
    batch = torch.export.Dim("batch", min=1, max=64)
    exported = torch.export.export(net, (x[:4], keep[:4]), dynamic_shapes={"x": {0: batch}, "keep": {0: batch}})
    torch.export.save(exported, tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy(), keep=keep.numpy(), y=labels.numpy())
    done = lissome("train", "net.pt2", "--data", "d.npz", "--labels", "y", "--optimizer", "sgd", "--momentum", 0, "--lr", 1,
                   "--weight-decay", 0, "--clip", 0, "--batch", 8, "-o", "t.lissome", "--weights-out", "w.safetensors")
    assert done.returncode == 0, done.stderr
    functional.cross_entropy(net(x, keep), labels).backward()
    seen = load_file(tmp_path / "w.safetensors")
    for name, weight in net.named_parameters():
        torch.testing.assert_close(weight.detach() - seen[name], weight.grad, rtol=1e-4, atol=2e-6)
