"""lissome train: layers of torch.nn in a named batch dimension that may be 1 get PyTorch's gradients."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch import nn


class States(nn.Module):
    """What a recurrent layer gives at each step, without its last state."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.layer = layer

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)[0]


class Chosen(nn.Module):
    """Rows of tables by classes: the indices of the largest elements, which have no gradient."""

    def __init__(self, bag: bool) -> None:
        super().__init__()
        self.table = nn.EmbeddingBag(3, 3, mode="mean") if bag else nn.Linear(3, 3)
        self.bag = bag

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        classes = x.argmax(2)
        picked = self.table(classes) if self.bag else self.table(nn.functional.one_hot(classes, 3).float()).mean(1)
        return x * picked.unsqueeze(1)


class SharedHeads(nn.Module):
    """Two heads of queries over one of keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.query, self.key, self.back = nn.Linear(3, 8), nn.Linear(3, 4), nn.Linear(8, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        query, key = (part.unflatten(-1, (-1, 4)).transpose(1, 2) for part in (self.query(x), self.key(x)))
        mixed = nn.functional.scaled_dot_product_attention(query, key, key, enable_gqa=True)
        return self.back(mixed.transpose(1, 2).flatten(2))


class Reduced(nn.Module):
    """Scaled by products."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * x.prod(2, keepdim=True) + x.cumprod(1)


SAMPLES, BATCH, RATE = 7, 3, 0.5  # batches of 3, 3 and 1
LAYERS = {
    "SiLU": nn.SiLU,
    "Mish": nn.Mish,
    "PReLU": nn.PReLU,
    "PReLU of channels": lambda: nn.PReLU(4),
    "InstanceNorm": lambda: nn.InstanceNorm1d(4, affine=True),
    "GroupNorm": lambda: nn.GroupNorm(2, 4),
    "LayerNorm": lambda: nn.LayerNorm(3),
    "RMSNorm": lambda: nn.RMSNorm(3),
    "LocalResponseNorm": lambda: nn.LocalResponseNorm(2),
    "Hardswish": nn.Hardswish,
    "GELU": lambda: nn.GELU("tanh"),
    "Softplus": nn.Softplus,
    "LSTM": lambda: States(nn.LSTM(3, 3, batch_first=True)),
    "LSTM, two layers": lambda: States(nn.LSTM(3, 3, num_layers=2, batch_first=True)),
    "GRU": lambda: States(nn.GRU(3, 3, batch_first=True)),
    "GRU, both directions": lambda: nn.Sequential(States(nn.GRU(3, 3, bidirectional=True, batch_first=True)),
                                                  nn.Linear(6, 3)),
    "RNN": lambda: States(nn.RNN(3, 3, batch_first=True)),
    "TransformerEncoderLayer": lambda: nn.TransformerEncoderLayer(3, 1, 6, dropout=0.0, batch_first=True),
    "Conv1d": lambda: nn.Conv1d(4, 4, 3, padding=1),
    "EmbeddingBag": lambda: Chosen(True),
    "one_hot": lambda: Chosen(False),
    "shared heads": SharedHeads,
    "prod and cumprod": Reduced,
    "spectral_norm": lambda: nn.utils.parametrizations.spectral_norm(nn.Linear(3, 3)),
}


class Net(nn.Module):
    """The layer between two linear ones, on [batch, 4, 3]."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.first, self.layer, self.last = nn.Linear(6, 12), layer, nn.Linear(12, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layer(self.first(x).unflatten(1, (4, 3))).flatten(1))


def update_in_python(net: nn.Module, x: torch.Tensor, labels: torch.Tensor) -> dict[str, torch.Tensor]:
    """The weights after a step of SGD over all samples."""
    nn.functional.mse_loss(net(x), labels).backward()
    return {name: (weight - RATE * weight.grad).detach() for name, weight in net.named_parameters()}


@pytest.mark.parametrize("mode", ["train", "eval"])
@pytest.mark.parametrize("layer", LAYERS)
def test_the_update_is_that_of_pytorch(lissome: Callable[..., Any], tmp_path: Path, layer: str, mode: str):
    torch.manual_seed(5)
    net = Net(LAYERS[layer]()).train(mode == "train")
    x, labels = torch.randn(SAMPLES, 6), torch.randn(SAMPLES, 2)
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    torch.export.save(torch.export.export(net, (x[:BATCH],), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=labels.numpy())
    done = lissome("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--loss", "mse", "--optimizer", "sgd",
                   "--momentum", 0, "--weight-decay", 0, "--clip", 0, "--lr", RATE, "--no-scale-lr", "--batch", BATCH,
                   "--accumulate", SAMPLES, "-o", "trained.lissome", "--weights-out", "weights.safetensors")
    assert done.returncode == 0, done.stderr
    weights = load_file(tmp_path / "weights.safetensors")
    for name, expected in update_in_python(net, x, labels).items():
        torch.testing.assert_close(weights[name], expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("batch", [None, BATCH])
def test_a_transformer_layer_trains_with_its_own_dropout(lissome: Callable[..., Any], tmp_path: Path, batch: int | None):
    """The mask is drawn of a transposed tensor, whose order in memory a program does not know."""
    net = Net(nn.TransformerEncoderLayer(3, 1, 6, batch_first=True)).train()
    x = torch.randn(SAMPLES, 6)
    shapes = None if batch else ({0: torch.export.Dim("batch", min=1, max=64)},)
    torch.export.save(torch.export.export(net, (x[:BATCH],), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=np.arange(SAMPLES) % 2)
    done = lissome("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--batch", BATCH, "-o", "t.lissome",
                   "--weights-out", "w.safetensors")
    assert done.returncode == 0, done.stderr
    weights = load_file(tmp_path / "w.safetensors")
    assert all(not torch.equal(weights[name], weight) for name, weight in net.named_parameters() if "in_proj" not in name)


class Spectral(nn.Module):
    """A Fourier layer: low modes mixed by complex weights and written into zeros, as Fourier neural operators are written."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = nn.Parameter(torch.randn(3, 3, 2, 2) * 0.2)
        self.lift = nn.Linear(1, 3)

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        modes = torch.fft.rfft(self.lift(x[..., None]).transpose(1, 2))
        low = torch.einsum("bim,iom->bom", modes[..., :2], torch.view_as_complex(self.mix))
        mixed = torch.zeros_like(modes)
        mixed[..., :2] = low
        mixed[:, :, -1] = low[..., 0]
        return {"loss": torch.fft.irfft(mixed, n=x.shape[1]).square().mean()}


def test_parts_of_complex_tensors_that_are_written_train(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(1)
    net, x = Spectral(), torch.randn(6, 9)
    shapes = {"x": {0: torch.export.Dim("batch", min=1, max=64)}}
    torch.export.save(torch.export.export(net, (x,), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy())
    words = ["--optimizer", "sgd", "--momentum", 0, "--lr", 1, "--clip", 0, "--batch", 6]
    done = lissome("train", "net.pt2", "--data", "d.npz", "--loss", "loss", *words, "-o", "t.lissome", "--weights-out",
                   "w.safetensors")
    assert done.returncode == 0, done.stderr
    net(x)["loss"].backward()
    seen = load_file(tmp_path / "w.safetensors")
    for name, weight in net.named_parameters():
        torch.testing.assert_close(weight.detach() - seen[name], weight.grad, rtol=1e-4, atol=1e-6)


class WrittenApart(nn.Module):
    """Values are replaced through detach(), which autograd does not see: the gradient passes as if they had come from x."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.1]))

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        y = x * self.weight
        value = y.clone()
        value.detach()[:, 0] = 4
        return {"loss": (value.sin() + y * 0.1).mean()}


def test_what_is_written_through_detach_leaves_the_gradient(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(1)
    net, x = WrittenApart(), torch.randn(4, 3)
    shapes = {"x": {0: torch.export.Dim("batch", min=1, max=64)}}
    torch.export.save(torch.export.export(net, (x,), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy())
    words = ["--optimizer", "sgd", "--momentum", 0, "--lr", 1, "--clip", 0, "--batch", 4]
    done = lissome("train", "net.pt2", "--data", "d.npz", "--loss", "loss", *words, "-o", "t.lissome", "--weights-out",
                   "w.safetensors")
    assert done.returncode == 0, done.stderr
    loss = net(x)["loss"]
    loss.backward()
    seen = load_file(tmp_path / "w.safetensors")
    torch.testing.assert_close(net.weight.detach() - seen["weight"], net.weight.grad, rtol=1e-4, atol=1e-6)
    assert lissome("prepare", "net.pt2", "-o", "net.lissome").returncode == 0
    for model in ("net.pt2", "net.lissome"):
        assert lissome("run", model, "--input", "d.npz", "-o", "y.npz").returncode == 0
        with np.load(tmp_path / "y.npz") as outputs:
            np.testing.assert_allclose(next(iter(outputs.values())), loss.item(), rtol=1e-5)


class OfWeights(nn.Module):
    """A recurrent layer over learned queries: all that it computes follows from weights, which change in each step."""

    def __init__(self, layer: type[nn.Module]) -> None:
        super().__init__()
        self.layer, self.queries = layer(3, 4, batch_first=True), nn.Parameter(torch.randn(2, 5, 3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        states = self.layer(self.queries + x.mean() * 0)[0]
        return states.sin().mean() + x.mean() * 0


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
def test_what_follows_from_weights_follows_them(lissome: Lissome, tmp_path: Path, layer: type[nn.Module]):
    torch.manual_seed(3)
    net, x = OfWeights(layer), torch.zeros(2, 1)
    torch.export.save(torch.export.export(net, (x,)), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy())
    done = lissome("train", "net.pt2", "--data", "d.npz", "--loss", "output", "--optimizer", "sgd", "--momentum", 0, "--lr", 0.5,
                   "--clip", 0, "--batch", 2, "--epochs", 4, "-o", "t.lissome", "--weights-out", "w.safetensors")
    assert done.returncode == 0, done.stderr
    optimizer = torch.optim.SGD(net.parameters(), 0.5)
    for _ in range(4):
        optimizer.zero_grad()
        net(x).backward()
        optimizer.step()
    seen = load_file(tmp_path / "w.safetensors")
    for name, weight in net.named_parameters():
        torch.testing.assert_close(seen[name], weight.detach(), rtol=1e-5, atol=1e-6)


class FrozenBehind(nn.Module):
    """A recurrent layer that does not train, behind one that does: what it overwrites has no gradient at first."""

    def __init__(self, layer: type[nn.Module]) -> None:
        super().__init__()
        self.first, self.layer, self.last = nn.Linear(3, 3), layer(3, 4, batch_first=True), nn.Linear(4, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(self.layer(self.first(x))[0][:, -1])


@pytest.mark.parametrize("layer", [nn.GRU, nn.LSTM, nn.RNN])
def test_a_frozen_recurrent_layer_leaves_the_batch_open(lissome: Lissome, tmp_path: Path, layer: type[nn.Module]):
    torch.manual_seed(3)
    net, x, labels = FrozenBehind(layer), torch.randn(7, 5, 3), torch.randn(7, 2)
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    torch.export.save(torch.export.export(net, (x[:3],), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy(), y=labels.numpy())
    done = lissome("train", "net.pt2", "--data", "d.npz", "--labels", "y", "--loss", "mse", "--optimizer", "sgd", "--momentum", 0,
                   "--lr", 1, "--no-scale-lr", "--clip", 0, "--batch", 3, "--accumulate", 7, "--freeze", "layer.*", "-o", "t.lissome",
                   "--weights-out", "w.safetensors")
    assert done.returncode == 0 and "left out" not in done.stderr, done.stderr
    nn.functional.mse_loss(net(x), labels).backward()
    seen = load_file(tmp_path / "w.safetensors")
    for name, weight in net.named_parameters():
        expected = weight.detach() - (0 if name.startswith("layer.") else weight.grad)
        torch.testing.assert_close(seen[name], expected, rtol=1e-5, atol=1e-5)


class Stepped(nn.Module):
    """A recurrent layer or cell between linears."""

    def __init__(self, layer: nn.Module) -> None:
        super().__init__()
        self.first, self.layer, self.last = nn.Linear(3, 3), layer, nn.Linear(4 * (1 + getattr(layer, "bidirectional", 0)), 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        if isinstance(self.layer, nn.RNNBase):
            return self.last(self.layer(x)[0].tanh().mean(1))
        state = self.layer(x[:, 0])
        for step in range(1, x.shape[1]):
            state = self.layer(x[:, step], state)
        return self.last(state if isinstance(state, torch.Tensor) else state[0])


RECURRENT = {
    "GRU": lambda: nn.GRU(3, 4, batch_first=True),
    "LSTM": lambda: nn.LSTM(3, 4, batch_first=True),
    "RNN": lambda: nn.RNN(3, 4, batch_first=True),
    "two layers, both directions": lambda: nn.LSTM(3, 4, 2, batch_first=True, bidirectional=True),
    "GRU, both directions": lambda: nn.GRU(3, 4, 2, batch_first=True, bidirectional=True),
    "GRU cell": lambda: nn.GRUCell(3, 4),
    "LSTM cell": lambda: nn.LSTMCell(3, 4),
    "RNN cell": lambda: nn.RNNCell(3, 4),
}


WAYS = [(layer, how) for layer in RECURRENT for how in ("none", "modules:*")] + [("GRU cell", "auto"), ("LSTM cell", "auto")]


@pytest.mark.parametrize(("layer", "how"), WAYS)
def test_recurrent_layers_are_recomputed(lissome: Lissome, tmp_path: Path, layer: str, how: str):
    """What ATen's recurrent layers overwrite on the way is not what a second run would read."""
    torch.manual_seed(3)
    net, x, labels = Stepped(RECURRENT[layer]()), torch.randn(48, 5, 3), torch.randn(48, 2)
    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    torch.export.save(torch.export.export(net, (x[:3],), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy(), y=labels.numpy())
    words = ["train", "net.pt2", "--data", "d.npz", "--labels", "y", "--loss", "mse", "--optimizer", "sgd", "--momentum", 0, "--lr", 1,
             "--clip", 0, "--batch", 48, "-o", "t.lissome", "--weights-out", "w.safetensors"]
    memory = "1GiB"
    if how == "auto":  # the least that a refusal names
        refused = lissome(*words, "--memory", "1KiB")
        fixed = re.search(r": ([\d.]+) KiB\.", refused.stderr)
        refused = lissome(*words, "--memory", f"{float(fixed[1]) + 1}KiB")
        assert refused.returncode == 3, refused.stderr
        memory = re.search(r"Give --memory (\S+)", refused.stderr)[1]
    done = lissome(*words, *(["--recompute", how] if how != "auto" else []), "--memory", memory)
    assert done.returncode == 0, done.stderr
    nn.functional.mse_loss(net(x), labels).backward()
    seen = load_file(tmp_path / "w.safetensors")
    for name, weight in net.named_parameters():
        torch.testing.assert_close(weight.detach() - seen[name], weight.grad, rtol=1e-4, atol=2e-6)
