"""Labels that are not what a loss compares though it would take them, accuracies of positions, samples that cannot be
learned from, and data that a training does not go on with."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from answer import Answer, read_answer
from pictures import write_png
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

Lissome = Callable[..., Any]


def export(net: nn.Module, example: torch.Tensor, path: Path) -> None:
    shapes = ({0: torch.export.Dim("batch", max=4096)},)
    torch.export.save(torch.export.export(net.train(), (example,), dynamic_shapes=shapes), path)


def train(lissome: Lissome, *words: object) -> Answer:
    to = ("-o", "t.lissome", "--weights-out", "t.safetensors", "--json")
    done = lissome("train", "net.pt2", "--data", "d.npz", *words, *to)
    assert done.returncode == 0, done.stderr
    return read_answer(done)


def refuse(lissome: Lissome, *words: object) -> str:
    done = lissome("train", "net.pt2", "--data", "d.npz", *words, "-o", "t.lissome")
    assert done.returncode == 4, done.stderr
    assert not Path("t.lissome").exists()
    return done.stderr


@pytest.mark.parametrize("columns", [1, 2, 5])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_numbers_are_no_probabilities(lissome: Lissome, tmp_path: Path, columns: int, dtype: type):
    torch.manual_seed(0)
    export(nn.Linear(4, columns), torch.randn(4, 4), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=torch.randn(40, 4), y=torch.randn(40, columns).numpy().astype(dtype))
    said = refuse(lissome, "--labels", "y")
    assert "cross entropy compares" in said and "mse" in said and "bce_logits" in said
    np.savez(tmp_path / "v.npz", x=torch.randn(8, 4), y=torch.randn(8, columns).numpy().astype(dtype))
    np.savez(tmp_path / "d.npz", x=torch.randn(40, 4), y=torch.rand(40, columns).numpy().astype(dtype))
    assert "cross entropy compares" in refuse(lissome, "--labels", "y", "--validation", "v.npz")
    if columns > 1:
        notes = train(lissome, "--labels", "y")["notes"]
        assert any("40 of 40 labels do not sum to 1" in note for note in notes)
        soft = torch.softmax(torch.randn(40, columns), 1).numpy().astype(dtype)
        np.savez(tmp_path / "d.npz", x=torch.randn(40, 4), y=soft)
        assert not any("sum to 1" in note for note in train(lissome, "--labels", "y")["notes"])


def test_one_class_is_refused(lissome: Lissome, tmp_path: Path):
    export(nn.Linear(4, 1), torch.randn(4, 4), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=torch.randn(40, 4), y=np.zeros(40, np.int64))
    assert "the model gives one" in refuse(lissome, "--labels", "y")
    train(lissome, "--labels", "y", "--loss", "bce_logits")


class Positions(nn.Module):
    """Scores [n, 3, ...] for each position of x [n, 4, ...]."""

    def __init__(self, rank: int):
        super().__init__()
        kind = {1: nn.Conv1d, 2: nn.Conv2d, 3: nn.Conv3d}[rank]
        self.conv = kind(4, 3, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.conv(x)


@pytest.mark.parametrize("rank", [1, 2, 3])
@pytest.mark.parametrize("form", ["classes", "ignored", "one more", "soft"])
def test_accuracy_of_positions(lissome: Lissome, tmp_path: Path, rank: int, form: str):
    torch.manual_seed(rank)
    net, sizes = Positions(rank), [6, 5, 4][:rank]
    x, labels = torch.randn(50, 4, *sizes), torch.randint(0, 3, (50, *sizes))
    export(net, x[:4], tmp_path / "net.pt2")
    if form == "ignored":
        labels[torch.rand(labels.shape) < 0.3] = -100
    given = {"one more": labels[:, None], "soft": torch.softmax(torch.randn(50, 3, *sizes), 1)}.get(form, labels)
    if form == "one more":  # as cross entropy of PyTorch refuses it, or with its one dimension dropped
        labels = given.reshape(labels.shape)
    np.savez(tmp_path / "d.npz", x=x, y=given)
    words = ("--labels", "y", "--validation", "d.npz", "--epochs", 1, "--batch", 7)
    if form == "one more":
        done = lissome("train", "net.pt2", "--data", "d.npz", *words, "-o", "t.lissome")
        assert done.returncode in (0, 4), done.stderr
        return
    epochs = train(lissome, *words).tables["Epochs"]
    net.load_state_dict(load_file(tmp_path / "t.safetensors"))
    scores, expected = net(x).detach(), given.argmax(1) if form == "soft" else labels
    counted = expected != -100
    accuracy = ((scores.argmax(1) == expected) & counted).sum() / counted.sum()
    row = epochs[-1]
    found = next(row[name] for name in row if "accuracy" in name)
    assert found == pytest.approx(float(accuracy), abs=1e-6)
    loss = next(row[name] for name in row if "validation" in name and "loss" in name)
    assert loss == pytest.approx(float(functional.cross_entropy(scores, given)), rel=1e-4)


def test_the_only_array_is_what_an_autoencoder_learns(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(6, 2), nn.Linear(2, 6))
    x = torch.randn(64, 6)
    export(net, x[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", input=x)
    answer = train(lissome, "--labels", "input", "--loss", "mse", "--epochs", 30, "--lr", 0.01)
    losses = [row["loss"] for row in answer.tables["Epochs"]]
    assert losses[-1] < 0.9 * losses[0]
    net.load_state_dict(load_file(tmp_path / "t.safetensors"))
    assert float(functional.mse_loss(net(x), x)) < losses[-1] * 1.05


class Detached(nn.Module):
    def __init__(self, how: str):
        super().__init__()
        self.layer, self.how = nn.Linear(4, 3), how

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.how == "no_grad":
            with torch.no_grad():
                return self.layer(x)
        return self.layer(x).detach() if self.how == "detach" else x[:, :3] * 2


@pytest.mark.parametrize("how", ["no_grad", "detach", "ignored"])
def test_a_loss_without_gradients_is_refused(lissome: Lissome, tmp_path: Path, how: str):
    export(Detached(how), torch.randn(4, 4), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=torch.randn(40, 4), y=torch.arange(40) % 3)
    for flags in ((), ("--update-in-backward", "--clip", 0), ("--memory", "1GiB")):
        assert "no gradient for any parameter" in refuse(lissome, "--labels", "y", *flags)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_samples_that_hold_nan_are_left_out(lissome: Lissome, tmp_path: Path, bad: float, dtype: type):
    torch.manual_seed(0)
    export(nn.Linear(4, 3), torch.randn(4, 4), tmp_path / "net.pt2")
    x, y = np.random.default_rng(0).standard_normal((40, 4)).astype(dtype), np.arange(40) % 3
    good = np.setdiff1d(np.arange(40), [0, 17, 39])
    np.savez(tmp_path / "d.npz", input=x[good], y=y[good])
    expected = train(lissome, "--labels", "y", "--threads", 1)
    weights = load_file(tmp_path / "t.safetensors")
    x[[0, 17, 39], [0, 1, 3]] = bad
    np.savez(tmp_path / "d.npz", input=x, y=y)
    (tmp_path / "t.lissome").unlink()
    assert "finite" in refuse(lissome, "--labels", "y")
    done = lissome("train", "net.pt2", "--data", "d.npz", "--labels", "y", "--threads", 1, "--bad-samples", "skip",
                   "-o", "t.lissome", "--weights-out", "t.safetensors", "--json")  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "3 samples are left out" in done.stderr and "0, 17, 39" in done.stderr
    assert read_answer(done)["steps"] == expected["steps"]
    assert all(torch.equal(tensor, weights[name]) for name, tensor in load_file(tmp_path / "t.safetensors").items())
    np.savez(tmp_path / "d.npz", input=np.full_like(x, bad), y=y)
    assert "every sample" in lissome("train", "net.pt2", "--data", "d.npz", "--labels", "y", "--bad-samples", "skip", "-o", "u.lissome").stderr


def test_images_that_cannot_be_read_are_left_out(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    export(nn.Sequential(nn.Flatten(), nn.Linear(36, 2)), torch.randn(4, 1, 6, 6), tmp_path / "net.pt2")
    images = np.random.default_rng(0).integers(0, 255, (12, 6, 6), np.uint8)
    for folder, left_out in (("good", {3, 10}), ("damaged", set())):
        for name in ("class0", "class1"):
            (tmp_path / folder / name).mkdir(parents=True)
        for i in range(12):
            if i not in left_out:
                write_png(tmp_path / folder / f"class{i % 2}" / f"{i:02}.png", images[i])
    whole = (tmp_path / "damaged" / "class1" / "03.png").read_bytes()
    (tmp_path / "damaged" / "class1" / "03.png").write_bytes(whole[:45])
    (tmp_path / "damaged" / "class0" / "10.png").write_bytes(b"no image")
    words = ("train", "net.pt2", "--batch", 5, "--threads", 1, "-o", "t.lissome", "--weights-out")
    refused = lissome(*words, "u.safetensors", "--data", "damaged")
    assert refused.returncode == 4 and "10.png" in refused.stderr
    done = lissome(*words, "t.safetensors", "--data", "damaged", "--bad-samples", "skip")
    assert done.returncode == 0, done.stderr
    assert "2 images are left out" in done.stderr and "03.png" in done.stderr and "10.png" in done.stderr
    assert lissome(*words, "e.safetensors", "--data", "good").returncode == 0
    found, expected = load_file(tmp_path / "t.safetensors"), load_file(tmp_path / "e.safetensors")
    assert all(torch.equal(tensor, expected[name]) for name, tensor in found.items())
    shutil.rmtree(tmp_path / "damaged" / "class1")
    for path in (tmp_path / "damaged" / "class0").iterdir():
        path.write_bytes(b"no image")
    done = lissome(*words, "t.safetensors", "--data", "damaged", "--bad-samples", "skip")
    assert done.returncode == 4 and "no image can be read" in done.stderr


def test_files_of_a_folder_that_are_not_read_are_named(lissome: Lissome, tmp_path: Path):
    export(nn.Sequential(nn.Flatten(), nn.Linear(36, 2)), torch.randn(4, 1, 6, 6), tmp_path / "net.pt2")
    for name in ("cat/1.png", "dog/1.png", "loose.png"):
        (tmp_path / "pets" / name).parent.mkdir(parents=True, exist_ok=True)
        write_png(tmp_path / "pets" / name, np.zeros((6, 6), np.uint8))
    (tmp_path / "pets" / "cat" / "2.webp").write_bytes(b"RIFF")
    (tmp_path / "pets" / ".hidden").write_bytes(b"")
    done = lissome("train", "net.pt2", "--data", "pets", "-o", "t.lissome")
    assert done.returncode == 0, done.stderr
    assert "2 files are left out" in done.stderr and "loose.png" in done.stderr and "2.webp" in done.stderr


def test_a_word_too_many_among_labels_is_named(lissome: Lissome, tmp_path: Path):
    export(nn.Linear(2, 2), torch.randn(4, 2), tmp_path / "net.pt2")
    rows = [f"{i},{i + 1},{('red', 'blue', 'RED')[i % 3]}" for i in range(9)]
    (tmp_path / "d.csv").write_text("\n".join(["a,b,color", *rows]) + "\n")
    done = lissome("train", "net.pt2", "--data", "d.csv", "--labels", "color", "-o", "t.lissome")
    assert done.returncode == 4, done.stderr
    assert "'red'" in done.stderr, done.stderr
    assert "the data have" in done.stderr and "RED" in done.stderr and "blue" in done.stderr


def test_accuracy_of_a_language_model_counts_every_token(lissome: Lissome, tmp_path: Path):
    """Scores [samples, tokens, classes]: the classes come last."""
    torch.manual_seed(0)
    net = nn.Sequential(nn.Embedding(20, 8), nn.Linear(8, 20))
    x = torch.randint(0, 20, (16, 9))
    y = torch.where(torch.rand(16, 9) < 0.4, net(x).argmax(-1), x)
    export(net, x[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy(), y=y.numpy())
    train(lissome, "--labels", "y", "--validation", "d.npz", "--lr", 1e-9, "--log", "log.jsonl")
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    expected = float((net(x).argmax(-1) == y).double().mean())
    assert 0.3 < expected < 0.9
    metrics = [line["metrics"] for line in lines if line["event"] == "epoch"]
    assert metrics[-1]["accuracy"] == pytest.approx(expected, abs=1e-6)


def test_accuracy_is_measured_on_all_classes_of_sorted_data(lissome: Lissome, tmp_path: Path):
    """A net that answers the first class to everything is right for a third of the samples, not for the first of them."""
    net = nn.Linear(4, 3)
    with torch.no_grad():
        net.weight.zero_()
        net.bias.copy_(torch.tensor([9.0, 0.0, 0.0]))
    export(net, torch.randn(4, 4), tmp_path / "net.pt2")
    x = np.random.default_rng(0).standard_normal((300, 4)).astype(np.float32)
    np.savez(tmp_path / "d.npz", x=x, y=np.arange(300) // 100)
    metrics = train(lissome, "--labels", "y", "--batch", 32, "--lr", 1e-9)["training_metrics"]
    assert abs(metrics["accuracy"] - 1 / 3) < 0.05, metrics


@pytest.mark.parametrize("change", ["x", "labels", "validation", "order", "nothing"])
def test_a_training_goes_on_with_the_same_data_alone(lissome: Lissome, tmp_path: Path, change: str):
    export(nn.Linear(4, 3), torch.randn(4, 4), tmp_path / "net.pt2")
    x, y = np.random.default_rng(0).standard_normal((100, 4)).astype(np.float32), np.arange(100) % 3
    np.savez(tmp_path / "d.npz", x=x, y=y)
    np.savez(tmp_path / "v.npz", x=x[:30], y=y[:30])
    words = ("--labels", "y", "--validation", "v.npz", "--snapshots", "s", "--snapshot-every", 3)
    words += ("--early-stop", 9) if change == "validation" else ()
    train(lissome, *words, "--epochs", 2)
    shutil.copytree(tmp_path / "s", tmp_path / "r")
    if change == "x":
        np.savez(tmp_path / "d.npz", x=x + 1, y=y)
    elif change == "labels":
        np.savez(tmp_path / "d.npz", x=x, y=(y + 1) % 3)
    elif change == "order":
        np.savez(tmp_path / "d.npz", x=x[::-1].copy(), y=y[::-1].copy())
    elif change == "validation":
        np.savez(tmp_path / "v.npz", x=x[:30] * 2, y=y[:30])
    done = lissome("train", "net.pt2", "--data", "d.npz", *words[:4], *words[8:], "--resume", "r", "--epochs", 3, "-o", "u.lissome")
    assert done.returncode == (0 if change == "nothing" else 4), done.stderr
    if change != "nothing":
        assert f"values of the {'validation ' if change == 'validation' else ''}data" in done.stderr


def test_labels_that_training_ignores_are_ignored_by_budget(lissome: Lissome, tmp_path: Path):
    export(nn.Conv2d(3, 4, 1), torch.randn(4, 3, 6, 6), tmp_path / "net.pt2")
    y = np.arange(8 * 36).reshape(8, 6, 6) % 4
    y[:, 0] = 255
    np.savez(tmp_path / "d.npz", x=np.zeros((8, 3, 6, 6), np.float32), y=y)
    words = ("budget", "net.pt2", "--data", "d.npz", "--labels", "y", "--batch", 8, "--memory", "1GiB")
    assert "has the label 255" in lissome(*words).stderr
    done = lissome(*words, "--ignore-label", 255, "--class-weights", "1,1,1,2")
    assert done.returncode == 0, done.stderr
