"""lissome train: against the same training in Python, and what it refuses."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from answer import read_answer
from safetensors.torch import load_file

Lissome = Callable[..., Any]

SAMPLES, CLASSES = 96, 4


class Net(torch.nn.Module):
    """Batch norm, whose statistics are state, and what most nets have."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = torch.nn.Conv2d(1, 8, 3, padding=1, bias=False)
        self.norm = torch.nn.BatchNorm2d(8)
        self.head = torch.nn.Linear(8 * 4 * 4, CLASSES)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        hidden = torch.max_pool2d(torch.relu(self.norm(self.stem(images))), 2)
        return self.head(hidden.flatten(1))


@pytest.fixture()
def net(tmp_path: Path) -> Net:
    """net.pt2 in train form, eval.pt2, and data.npz: four classes that a small net can tell apart."""
    torch.manual_seed(3)
    net = Net()
    labels = torch.arange(SAMPLES) % CLASSES
    images = torch.randn(SAMPLES, 1, 8, 8) * 0.5
    for index, label in enumerate(labels):
        images[index, 0, 4 * (label // 2) : 4 * (label // 2) + 4, 4 * (label % 2) : 4 * (label % 2) + 4] += 1
    shapes = ({0: torch.export.Dim("batch", min=2, max=512)},)
    for training, name in ((False, "eval.pt2"), (True, "net.pt2")):
        exported = torch.export.export(net.train(training), (images[:4],), dynamic_shapes=shapes)
        torch.export.save(exported, tmp_path / name)
    np.savez(tmp_path / "data.npz", images=images.numpy(), labels=labels.numpy())
    np.savez(tmp_path / "wrong.npz", images=images.numpy(), labels=(labels + 1).numpy())
    net.images, net.labels = images, labels
    return net


def train_in_python(net: Net, epochs: int) -> list[float]:
    """One batch an epoch, so that the order of samples has no say."""
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    losses = []
    for _ in range(epochs):
        optimizer.zero_grad()
        loss = torch.nn.functional.cross_entropy(net(net.images), net.labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_bytes_are_images_where_a_transform_makes_floats(lissome: Lissome, net: Net, tmp_path: Path):
    levels = (net.images.clamp(0, 1) * 255).round().to(torch.uint8).numpy()
    np.savez(tmp_path / "bytes.npz", images=levels, labels=net.labels.numpy())
    np.savez(tmp_path / "floats.npz", images=levels / np.float32(255), labels=net.labels.numpy())
    words = ("train", "net.pt2", "--labels", "labels", "--epochs", "2", "--batch", "32", "--json", "-o", "t.lissome")
    refused = lissome(*words, "--data", "bytes.npz")
    assert refused.returncode == 4
    assert "has the type u8" in refused.stderr
    losses = []
    for data in ("bytes.npz", "floats.npz"):
        done = lissome(*words, "--data", data, "--val", data, "--transforms", "to_float")
        assert done.returncode == 0, done.stderr
        losses.append([row["loss"] for row in read_answer(done).tables["Epochs"]])
    assert losses[0] == pytest.approx(losses[1], rel=1e-4)
    words = ("budget", "net.pt2", "--data", "bytes.npz", "--labels", "labels", "--memory", "1GiB", "--json")
    assert "has the type u8" in lissome(*words).stderr
    done = lissome(*words, "--transforms", "to_float")
    assert done.returncode == 0, done.stderr
    assert read_answer(done)["nodes_recomputed"] == 0


def test_page_locked_memory_without_a_device_is_noted_and_changes_nothing(lissome: Lissome, net: Net, tmp_path: Path):
    words = ("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "-o", "t.lissome", "--json")
    plain, pinned = (lissome(*words, *more) for more in ((), ("--pin-memory",)))
    assert plain.returncode == pinned.returncode == 0, pinned.stderr
    losses = [[row["loss"] for row in read_answer(done).tables["Epochs"]] for done in (plain, pinned)]
    assert losses[0] == losses[1]
    if not torch.cuda.is_available():
        assert any("--pin-memory has no effect" in note for note in read_answer(pinned)["notes"])


def test_a_rate_of_0_is_taken_as_it_stands(lissome: Lissome, net: Net, tmp_path: Path):
    words = ("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--epochs", "2", "-o", "t.lissome", "--json")
    rates = {flags: read_answer(lissome(*words, *flags)).tables["Epochs"][0]["learning rate"] for flags in ((), ("--lr", "0"))}
    assert rates[()] > 0 and rates[("--lr", "0")] == 0


def test_full_batches_give_what_python_gives(lissome: Lissome, net: Net, tmp_path: Path):
    words = ("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--epochs", "6", "--batch", str(SAMPLES))
    done = lissome(*words, "--lr", "0.01", "-o", "trained.lissome", "--weights-out", "w.safetensors", "--json")
    assert done.returncode == 0, done.stderr
    rows = read_answer(done).tables["Epochs"]
    losses = train_in_python(net, 6)
    assert [row["loss"] for row in rows] == pytest.approx(losses, rel=1e-4)
    weights = load_file(tmp_path / "w.safetensors")
    for name, tensor in net.state_dict().items():
        if name != "norm.num_batches_tracked":
            torch.testing.assert_close(weights[name], tensor, rtol=1e-3, atol=1e-4)


def test_trained_model_is_in_eval_form_and_ready(lissome: Lissome, net: Net, tmp_path: Path):
    words = ("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--val", "data.npz", "--epochs", "12")
    done = lissome(*words, "--batch", "20", "--lr", "0.01", "--schedule", "onecycle", "-o", "t.lissome", "--json",
                   "--weights-out", "w.safetensors")
    assert done.returncode == 0, done.stderr
    rows = read_answer(done).tables["Epochs"]
    assert len(rows) == 12 and rows[-1]["loss"] < rows[0]["loss"] and rows[-1]["accuracy"] > 0.95
    weights = {name: tensor for name, tensor in load_file(tmp_path / "w.safetensors").items()}
    net.load_state_dict(weights, strict=False)
    np.savez(tmp_path / "x.npz", images=net.images[:5].numpy())
    assert lissome("run", "t.lissome", "--input", "x.npz", "--output", "y.npz").returncode == 0
    with torch.no_grad():
        expected = net.eval()(net.images[:5]).numpy()
    (name,) = np.load(tmp_path / "y.npz").files
    np.testing.assert_allclose(np.load(tmp_path / "y.npz")[name], expected, rtol=1e-4, atol=1e-4)
    assert lissome("prepare", "t.lissome", "-o", "p.lissome").returncode == 0


def test_same_seed_same_weights(lissome: Lissome, net: Net, tmp_path: Path):
    words = ("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--epochs", "2", "--init", "smart")
    for seed, name in ((1, "a"), (1, "b"), (2, "c")):
        done = lissome(*words, "--seed", str(seed), "-o", "t.lissome", "--weights-out", f"{name}.safetensors")
        assert done.returncode == 0, done.stderr
    first, again, other = ((tmp_path / f"{name}.safetensors").read_bytes() for name in "abc")
    assert first == again != other


def test_moments_in_8_bits_and_the_old_name_of_the_flag(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(4)
    wide = torch.nn.Sequential(torch.nn.Linear(16, 512), torch.nn.ReLU(), torch.nn.Linear(512, CLASSES))
    x, labels = torch.randn(SAMPLES, 16), torch.arange(SAMPLES) % CLASSES
    shapes = ({0: torch.export.Dim("batch", min=2, max=512)},)
    torch.export.save(torch.export.export(wide.train(), (x[:4],), dynamic_shapes=shapes), tmp_path / "wide.pt2")
    np.savez(tmp_path / "wide.npz", x=x.numpy(), labels=labels.numpy())
    words = ("train", "wide.pt2", "--data", "wide.npz", "--labels", "labels", "--epochs", "2", "-o", "t.lissome")
    weights = []
    for name, flag in (("plain", ()), ("new", ("--adam-8bit",)), ("old", ("--byte-states",))):
        done = lissome(*words, *flag, "--weights-out", f"{name}.safetensors")
        assert done.returncode == 0, done.stderr
        weights.append((tmp_path / f"{name}.safetensors").read_bytes())
    assert weights[0] != weights[1] == weights[2]
    refused = lissome(*words, "--optimizer", "sgd", "--byte-states")
    assert refused.returncode == 2 and "--adam-8bit is for adamw and adam, not for sgd" in refused.stderr
    printed = lissome("train", "--help").stdout
    assert "--adam-8bit" in printed and "--byte-states" not in printed


def test_eval_form_is_fine_tuned_and_says_so(lissome: Lissome, net: Net, tmp_path: Path):
    words = ("train", "eval.pt2", "--data", "data.npz", "--labels", "labels", "-o", "t.lissome")
    done = lissome(*words, "--weights-out", "w.safetensors")
    assert done.returncode == 0 and "as eval mode leaves it" in done.stderr
    weights = load_file(tmp_path / "w.safetensors")
    assert torch.equal(weights["norm.running_mean"], net.norm.running_mean)
    assert not torch.equal(weights["head.weight"], net.head.weight)
    scratch = lissome(*words, "--init", "smart")
    assert scratch.returncode == 4 and "torch.export.export(model.train()" in scratch.stderr


def train_named(lissome: Lissome, folder: Path, net: torch.nn.Module) -> tuple[str, dict[str, torch.Tensor]]:
    """stderr, and the weights after some steps."""
    x = torch.randn(40, 6)
    torch.export.save(torch.export.export(net, (x[:4],)), folder / "some.pt2")
    np.savez(folder / "some.npz", x=x.numpy(), labels=np.arange(40) % 3)
    done = lissome("train", "some.pt2", "--data", "some.npz", "--labels", "labels", "-o", "t.lissome",
                   "--weights-out", "w.safetensors")
    if done.returncode == 4:
        return done.stderr, {}
    assert done.returncode == 0, done.stderr
    return done.stderr, load_file(folder / "w.safetensors")


def test_parameters_without_requires_grad_stay(lissome: Lissome, tmp_path: Path):
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    net[0].weight.requires_grad_(False)
    message, weights = train_named(lissome, tmp_path, net)
    assert "1 parameter stays as exported, with requires_grad off: 0.weight" in message
    assert torch.equal(weights["0.weight"], net[0].weight)
    assert not torch.equal(weights["0.bias"], net[0].bias) and not torch.equal(weights["2.weight"], net[2].weight)
    message, weights = train_named(lissome, tmp_path, net.requires_grad_(False))
    assert weights == {} and "no parameters to train" in message and "requires_grad" in message


def test_what_does_not_train_stays_so_in_a_trained_file(lissome: Lissome, tmp_path: Path):
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
    net[0].weight.requires_grad_(False)
    train_named(lissome, tmp_path, net)
    words = ("--data", "some.npz", "--labels", "labels", "-o", "again.lissome", "--weights-out", "again.safetensors")
    done = lissome("train", "t.lissome", *words)
    assert done.returncode == 0 and "1 parameter stays as exported" in done.stderr, done.stderr
    assert torch.equal(load_file(tmp_path / "again.safetensors")["0.weight"], net[0].weight)


class Shifted(torch.nn.Module):
    """Its state dict holds one of its two buffers."""

    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(6, 3)
        self.register_buffer("kept", torch.ones(6))
        self.register_buffer("made", torch.ones(6), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x + self.kept * self.made)


def test_written_weights_are_those_of_a_state_dict(lissome: Lissome, tmp_path: Path):
    net = Shifted()
    _, weights = train_named(lissome, tmp_path, net)
    assert sorted(weights) == sorted(net.state_dict())
    net.load_state_dict(weights)


class Spectrum(torch.nn.Module):
    """A layer with complex weights before one with real ones."""

    def __init__(self) -> None:
        super().__init__()
        self.mix = torch.nn.Parameter(torch.randn(6, 4, dtype=torch.complex64))
        self.head = torch.nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head((x.to(torch.complex64) @ self.mix).real)


def test_complex_parameters_stay_and_are_named(lissome: Lissome, tmp_path: Path):
    net = Spectrum()
    message, weights = train_named(lissome, tmp_path, net)
    assert "1 parameter stays as exported, because complex numbers cannot be trained: mix" in message
    assert not torch.equal(weights["head.weight"], net.head.weight)


class Renormed(torch.nn.Module):
    """Renormalizes rows of its table whenever it reads them."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.nn.Embedding(5, 3, max_norm=0.5)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.table(x.argmax(1).clamp(max=4))


def test_a_model_that_writes_to_what_trains_is_refused(lissome: Lissome, tmp_path: Path):
    message, weights = train_named(lissome, tmp_path, Renormed())
    assert weights == {} and "writes to its parameter 'table.weight'" in message and "freeze it" in message


def test_eval_form_is_not_noted_where_train_form_is_the_same(lissome: Lissome, tmp_path: Path):
    net = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.LayerNorm(8), torch.nn.GELU(), torch.nn.Linear(8, 3))
    x = torch.randn(40, 6)
    torch.export.save(torch.export.export(net.eval(), (x[:4],)), tmp_path / "plain.pt2")
    np.savez(tmp_path / "plain.npz", x=x.numpy(), labels=np.arange(40) % 3)
    done = lissome("train", "plain.pt2", "--data", "plain.npz", "--labels", "labels", "-o", "t.lissome")
    assert done.returncode == 0 and "eval mode" not in done.stderr, done.stderr


def test_a_classifier_without_validation_shows_its_accuracy(lissome: Lissome, net: Net, tmp_path: Path):
    words = ("--data", "data.npz", "--labels", "labels", "--epochs", "5", "--json", "-o", "t.lissome")
    done = lissome("train", "net.pt2", *words)
    assert done.returncode == 0, done.stderr
    accuracy = read_answer(done.stdout)["training_metrics"]["accuracy"]
    assert f"accuracy {100 * accuracy:.2f} % on" in done.stderr and "of the training samples" in done.stderr, done.stderr
    seen = lissome("run", "t.lissome", "--input", "data.npz", "-o", "y.npz")
    assert seen.returncode == 0, seen.stderr
    arrays = dict(np.load(tmp_path / "y.npz"))
    labels = np.load(tmp_path / "data.npz")["labels"]
    right = next(iter(arrays.values())).argmax(1) == labels
    assert abs(right.mean() - accuracy) < 0.25
    validated = lissome("train", "net.pt2", *words, "--validation", "data.npz")
    assert validated.returncode == 0 and "of the training samples" not in validated.stderr, validated.stderr


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--data", "wrong.npz", "--labels", "labels"), 4, "has the label 4; the model's classes are 0 to 3"),
        (("--data", "data.npz"), 4, "no labels"),
        (("--data", "data.npz", "--labels", "labels", "--loss", "hinge"), 2, "cross_entropy"),
        (("--data", "data.npz", "--labels", "labels", "--loss", "mse"), 4, "Class numbers are for cross_entropy"),
        (("--data", "data.npz", "--labels", "labels", "--optimizer", "rprop"), 2, "adamw"),
        (("--data", "data.npz", "--labels", "labels", "--schedule", "stairs"), 2, "stairs"),
        (("--data", "data.npz", "--labels", "labels", "--lr", "1e30", "--epochs", "4", "--clip", "0"), 4, "the loss became"),
        (("--data", "data.npz", "--labels", "labels", "--lr", "1e40"), 2, "fit f32"),
    ],
)
def test_what_does_not_fit_is_refused(lissome: Lissome, net: Net, tmp_path: Path, words: tuple[str, ...], code: int, message: str):
    done = lissome("train", "net.pt2", *words, "-o", "t.lissome")
    assert done.returncode == code and message in done.stderr, done.stderr
    assert not (tmp_path / "t.lissome").exists()


def test_a_place_that_cannot_be_written_is_reported_before_training(lissome: Lissome, net: Net):
    words = ("train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--epochs", "1000000")
    done = lissome(*words, "-o", "nowhere/t.lissome")
    assert done.returncode == 2 and "no folder 'nowhere'" in done.stderr


def test_ctrl_c_writes_what_was_trained(program: Path, net: Net, tmp_path: Path):
    words = [program, "train", "net.pt2", "--data", "data.npz", "--labels", "labels", "--epochs", "1000000", "--json"]
    words += ["-o", "t.lissome"]
    child = subprocess.Popen(
        list(map(str, words)), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert any("%" in line for line in child.stderr)  # the first line of progress: it trains
    child.send_signal(signal.SIGINT)
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 130, errors
    record = read_answer(output)
    assert record["interrupted"] and record["steps"] > 0
    assert (tmp_path / "t.lissome").stat().st_size > 0
