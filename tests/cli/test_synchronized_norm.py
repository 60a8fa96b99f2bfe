"""Batch norms over the samples of all processes: several train as one does, whatever the norm and the share of each."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from test_processes import CLASSES, SAMPLES, Lissome, export, launch, train, words
from torch import nn

CHANNELS, SIDE = 3, 6


class Branches(nn.Module):
    """Norms beside each other, one without weights, one without running statistics, and one of single samples."""

    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Conv2d(CHANNELS, 8, 3, padding=1), nn.Conv2d(CHANNELS, 8, 3, padding=1, bias=False)
        self.norm, self.bare = nn.BatchNorm2d(8, momentum=0.3), nn.BatchNorm2d(8, affine=False)
        self.free, self.instance = nn.BatchNorm2d(8, track_running_stats=False), nn.InstanceNorm2d(8, affine=True)
        self.last, self.head = nn.BatchNorm1d(8, eps=1e-3), nn.Linear(8, CLASSES)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = torch.relu(self.norm(self.left(x))) + self.bare(self.right(x)).tanh()
        x = self.instance(self.free(x)).sigmoid()
        return self.head(self.last(x.mean((2, 3))))


def make_rows() -> nn.Module:
    return nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * SIDE * SIDE, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, CLASSES))


def make_volumes() -> nn.Module:
    return nn.Sequential(nn.Unflatten(2, (2, 3)), nn.Conv3d(CHANNELS, 4, 2), nn.BatchNorm3d(4), nn.ReLU(), nn.Flatten(),
                         nn.Linear(40, CLASSES))


def make_sequences() -> nn.Module:
    return nn.Sequential(nn.Flatten(2), nn.BatchNorm1d(CHANNELS), nn.Conv1d(CHANNELS, 6, 5, groups=3), nn.BatchNorm1d(6), nn.GELU(),
                         nn.Flatten(), nn.Linear(6 * 32, CLASSES))


NETS = {"branches": Branches, "rows": make_rows, "volumes": make_volumes, "sequences": make_sequences}


@pytest.fixture()
def images(tmp_path: Path) -> Path:
    """A model of each net, and data whose parts differ much: their mean grows from sample to sample."""
    torch.manual_seed(0)
    rows = torch.randn(SAMPLES, CHANNELS, SIDE, SIDE) * 2 + torch.linspace(-3, 3, SAMPLES)[:, None, None, None]
    labels = (rows.flatten(1) @ torch.randn(CHANNELS * SIDE * SIDE, CLASSES)).argmax(1)
    np.savez(tmp_path / "data.npz", rows=rows.numpy(), labels=labels.numpy())
    for name, make in NETS.items():
        export(make(), rows, tmp_path / f"{name}.pt2")
    return tmp_path


def compare(theirs: dict[str, torch.Tensor], weights: dict[str, torch.Tensor], tolerance: float) -> None:
    assert theirs.keys() == weights.keys()
    for name, weight in weights.items():
        torch.testing.assert_close(theirs[name], weight, rtol=tolerance, atol=tolerance, msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("processes", [2, 3, 4])
@pytest.mark.parametrize("net", NETS)
def test_running_statistics_and_gradients_of_a_step(lissome: Lissome, images: Path, net: str, processes: int):
    """Parts of 21 samples for 4 processes are not equal."""
    flags = {"max_steps": "1", "batch": "21", "clip": "0"}
    _, losses, weights = train(lissome, images, "one", (), words(f"{net}.pt2", **flags))
    command = words(f"{net}.pt2", **flags)
    _, apart, unlike = train(lissome, images, "apart", launch(processes), command)
    _, theirs, like = train(lissome, images, "several", launch(processes), (*command, "--sync-batch-norm"))
    assert theirs == pytest.approx(losses, rel=1e-5)
    compare(like, weights, 1e-5)
    assert apart != pytest.approx(losses, rel=1e-4) and any(not torch.allclose(unlike[name], weights[name], 1e-4) for name in weights)


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
@pytest.mark.parametrize("net", NETS)
def test_mixed_precision_is_synchronized_too(lissome: Lissome, images: Path, net: str, precision: str):
    """Against f32, from which half precision is a hundredth away, and the statistics of a part are further."""
    flags = {"max_steps": "1", "batch": "21", "clip": "0"}
    _, losses, weights = train(lissome, images, "one", (), words(f"{net}.pt2", **flags))
    command = words(f"{net}.pt2", precision=precision, **flags)
    _, theirs, like = train(lissome, images, "several", launch(2), (*command, "--sync-batch-norm"))
    _, _, unlike = train(lissome, images, "apart", launch(2), command)
    assert theirs == pytest.approx(losses, rel=2e-2)
    def distance(of: dict[str, torch.Tensor]) -> float:
        return max(float((of[name] - weights[name]).abs().max()) for name in weights if "running" in name)

    assert distance(like) < 2e-2 and 3 * distance(like) < distance(unlike)


@pytest.mark.parametrize("changes", [
    {}, {"bucket": "none"}, {"bucket": "1KiB"}, {"batch": "3", "max_steps": "40"}, {"uneven": "drop"}, {"memory": "1GiB"},
    {"optimizer": "adamw", "lr": "0.001"}, {"precision": "bf16", "max_steps": "2"}])
def test_a_training_is_that_of_one_process(lissome: Lissome, images: Path, changes: dict[str, str]):
    """The last batch of 5 samples leaves one of 3 processes without any, because a norm takes 2 at least. AdamW makes steps of
    what rounding leaves of the gradient of a bias before a norm, which is 0."""
    _, losses, weights = train(lissome, images, "one", (), words("branches.pt2", **changes))
    for processes in (2, 3):
        command = (*words("branches.pt2", **changes), "--sync-batch-norm")
        _, theirs, like = train(lissome, images, f"of{processes}", launch(processes), command)
        tolerance = 5e-2 if "precision" in changes else 2e-3
        assert theirs == pytest.approx(losses, rel=tolerance)
        if "optimizer" not in changes:
            compare(like, weights, 2 * tolerance)


def test_it_goes_on_from_a_snapshot_to_the_same_bits(lissome: Lissome, images: Path):
    command = (*words("branches.pt2"), "--sync-batch-norm")
    _, _, whole = train(lissome, images, "whole", launch(2), command)
    train(lissome, images, "first", launch(2), (*command, "--max-steps", "9", "--snapshots", "s", "--snapshot-every", "9"))
    _, _, resumed = train(lissome, images, "resumed", launch(2), (*command, "--resume", "s", "--snapshot-every", "never"))
    assert all(torch.equal(resumed[name], weight) for name, weight in whole.items())


@pytest.mark.parametrize(("flags", "named"), [
    ({"accumulate": "2"}, "Leave --accumulate out"), ({"batch": "auto"}, "Give --batch a number"),
    ({"uneven": "join"}, "Take --uneven pad or drop"), ({"uneven": "some"}, "--uneven must be pad, drop or join, not 'some'")])
def test_what_it_excludes(lissome: Lissome, images: Path, flags: dict[str, str], named: str):
    done = lissome(*launch(2), *words("rows.pt2", **flags), "--sync-batch-norm", "-o", "r.lissome")
    assert done.returncode == 2 and named in done.stderr, done.stderr


@pytest.mark.parametrize("uneven", ["pad", "join", "drop"])
@pytest.mark.parametrize("batch", ["2", "16"])
def test_uneven_batches_equal_one_process(lissome: Lissome, images: Path, uneven: str, batch: str):
    """Without norms. 101 samples leave a batch of 1 or of 5 for 3 processes."""
    export(nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * SIDE * SIDE, CLASSES)), torch.zeros(3, CHANNELS, SIDE, SIDE),
           images / "plain.pt2")
    command = words("plain.pt2", batch=batch, uneven=uneven, epochs="2")
    one, losses, weights = train(lissome, images, "one", (), command)
    assert one["steps"] == 2 * (SAMPLES // int(batch) + (uneven != "drop"))
    several, theirs, like = train(lissome, images, "several", launch(3), command)
    assert several["steps"] == one["steps"] and theirs == pytest.approx(losses, rel=1e-4)
    compare(like, weights, 1e-4)


def test_flags_of_pytorch_that_are_always_on(lissome: Lissome, images: Path):
    done = lissome(*launch(2), *words("rows.pt2"), "--find-unused", "--static-graph", "-o", "r.lissome")
    assert done.returncode == 0
    assert "--find-unused changes nothing" in done.stderr and "--static-graph changes nothing" in done.stderr
    export(nn.Sequential(nn.Flatten(), nn.Linear(CHANNELS * SIDE * SIDE, CLASSES)), torch.zeros(3, CHANNELS, SIDE, SIDE),
           images / "plain.pt2")
    done = lissome(*launch(2), *words("plain.pt2"), "--sync-batch-norm", "-o", "r.lissome")
    assert done.returncode == 0 and "the model has no batch norm that normalizes by its batch" in done.stderr
    done = lissome(*words("rows.pt2"), "--sync-batch-norm", "-o", "r.lissome")
    assert done.returncode == 0 and "--sync-batch-norm changes nothing in one process" in done.stderr
