"""What a training says of its model, counted again with PyTorch: losses, accuracies, classes and columns of validation
data, and which output and which dimension are trained."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from answer import read_answer
from safetensors.torch import load_file
from torch import nn
from torch.nn import functional

Lissome = Callable[..., Any]


def export(net: nn.Module, example: torch.Tensor, path: Path) -> None:
    shapes = ({0: torch.export.Dim("batch", max=4096)},)
    torch.export.save(torch.export.export(net.train(), (example,), dynamic_shapes=shapes), path)


def train(lissome: Lissome, *words: object) -> tuple[list[dict[str, Any]], Any]:
    """The rows of the epochs, and the whole answer."""
    done = lissome("train", *words, "-o", "t.lissome", "--weights-out", "t.safetensors", "--json")
    assert done.returncode == 0, done.stderr
    answer = read_answer(done)
    return answer.tables["Epochs"], answer


def load(net: nn.Module, folder: Path) -> nn.Module:
    net.load_state_dict(load_file(folder / "t.safetensors"), strict=False)
    return net.eval()


@pytest.mark.parametrize("samples", [65, 1 + 2 * 8])
def test_a_last_batch_of_one_sample_is_left_out_where_batch_norm_has_no_variance(
    lissome: Lissome, tmp_path: Path, samples: int
):
    torch.manual_seed(0)
    net, rows = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Linear(6, 3)), torch.randn(samples, 4)
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=torch.arange(samples) % 3)
    batch = 32 if samples == 65 else 8
    _, answer = train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--batch", batch, "--epochs", 2)
    assert answer["steps"] == 4 and any("left out" in note for note in answer["notes"])
    assert all(torch.isfinite(weight).all() for weight in load_file(tmp_path / "t.safetensors").values())
    done = lissome("train", "net.pt2", "--data", "d.npz", "--labels", "labels", "--batch", 1, "-o", "t.lissome")
    assert done.returncode == 2 and "batches of 2 and more" in done.stderr
    np.savez(tmp_path / "one.npz", rows=rows[:1], labels=np.zeros(1, np.int64))
    done = lissome("train", "net.pt2", "--data", "one.npz", "--labels", "labels", "-o", "t.lissome")
    assert done.returncode == 4, done.stderr


@pytest.mark.parametrize("loss", ["bce_logits", "mse"])
@pytest.mark.parametrize("form", ["int", "float", "int [n, 1]"])
def test_outputs_of_one_number(lissome: Lissome, tmp_path: Path, loss: str, form: str):
    torch.manual_seed(0)
    net, rows = nn.Linear(3, 1), torch.randn(64, 3)
    labels = (rows[:, 0] > 0).long()
    stored = labels.float() if form == "float" else labels.view(-1, 1) if form == "int [n, 1]" else labels
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=stored)
    words = ("net.pt2", "--data", "d.npz", "--labels", "labels", "--loss", loss, "--lr", 0.1, "--epochs", 15)
    rows_shown, _ = train(lissome, *words, "--val", "d.npz")
    with torch.no_grad():
        answers = load(net, tmp_path)(rows).flatten()
    if loss == "mse":
        assert rows_shown[-1]["mean_absolute_error"] == pytest.approx((answers - labels).abs().mean().item(), rel=1e-4)
        assert "accuracy" not in rows_shown[-1]
    else:
        assert rows_shown[-1]["accuracy"] == pytest.approx(((answers > 0) == (labels > 0)).double().mean().item())
        assert rows_shown[-1]["accuracy"] > 0.9 and "mean_absolute_error" not in rows_shown[-1]


@pytest.mark.parametrize("loss", ["mse", "bce_logits"])
@pytest.mark.parametrize(("inner", "labels"), [
    ((), (1,)), ((1,), ()), ((1, 6, 6), (6, 6)), ((6, 6), (1, 6, 6)), ((5, 1), (5,)), ((1, 5, 1), (5, 1, 1)), ((1, 1), ())])
def test_labels_that_differ_by_dimensions_of_1(
    lissome: Lissome, tmp_path: Path, loss: str, inner: tuple[int, ...], labels: tuple[int, ...]
):
    torch.manual_seed(0)
    elements = int(np.prod(inner))
    net = nn.Sequential(nn.Linear(3, elements), nn.Unflatten(1, inner) if inner else nn.Flatten(0))
    rows, targets = torch.randn(24, 3), (torch.rand(24, *labels) > 0.5).float()
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=targets)
    shown, _ = train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--loss", loss, "--lr", 0, "--val", "d.npz")
    with torch.no_grad():
        answers = net(rows)
    expected = targets.reshape(answers.shape)
    of_torch = functional.mse_loss if loss == "mse" else functional.binary_cross_entropy_with_logits
    assert shown[-1]["validation loss"] == pytest.approx(of_torch(answers, expected).item(), rel=1e-5)
    if loss == "mse":
        assert shown[-1]["mean_absolute_error"] == pytest.approx((answers - expected).abs().mean().item(), rel=1e-5)
    else:
        assert shown[-1]["accuracy"] == pytest.approx(((answers > 0) == (expected > 0.5)).double().mean().item())


def test_scores_for_a_loss_of_probabilities_are_named(lissome: Lissome, tmp_path: Path):
    export(nn.Linear(3, 1), torch.randn(4, 3), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=torch.randn(24, 3) * 10, labels=torch.ones(24))
    done = lissome("train", "net.pt2", "--data", "d.npz", "--labels", "labels", "--loss", "bce", "-o", "t.lissome")
    assert done.returncode == 4 and "take bce_logits" in done.stderr, done.stderr


@pytest.mark.parametrize("batch", [7, 32, 100])
@pytest.mark.parametrize("weights", ["", "1,2,0.5"])
def test_labels_that_do_not_count(lissome: Lissome, tmp_path: Path, batch: int, weights: str):
    """One validation batch of 7 and of 32 holds ignored labels alone."""
    torch.manual_seed(0)
    net, rows = nn.Linear(4, 3), torch.randn(100, 4)
    labels = rows[:, :3].argmax(1)
    validated = labels.clone()
    validated[:40] = -100
    validated[60::3] = -100
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=labels)
    np.savez(tmp_path / "v.npz", rows=rows, labels=validated)
    flags = ("--class-weights", weights) if weights else ()
    shown, _ = train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--val", "v.npz", "--batch", batch,
                     "--epochs", 3, "--early-stop", 2, *flags)
    assert len(shown) == 3
    with torch.no_grad():
        scores = load(net, tmp_path)(rows)
    of_classes = torch.tensor([float(word) for word in weights.split(",")]) if weights else None
    expected = functional.cross_entropy(scores, validated, weight=of_classes).item()
    assert shown[-1]["validation loss"] == pytest.approx(expected, rel=1e-4)
    counted = validated != -100
    assert shown[-1]["accuracy"] == pytest.approx((scores.argmax(1) == validated)[counted].double().mean().item())


def write_table(path: Path, kinds: list[str], header: str = "x1,x2,kind") -> None:
    """Points about a place of each kind."""
    places = {"cat": (4, 0), "dog": (0, 4), "zebra": (-4, -4)}
    random = np.random.default_rng(0)
    lines = [header]
    for index in range(60):
        kind = kinds[index % len(kinds)]
        fields = dict(zip(("x1", "x2"), random.normal(0, 0.3, 2) + places[kind], strict=True), kind=kind, more=7)
        lines.append(",".join(str(fields[name]) for name in header.split(",")))
    path.write_text("\n".join(lines))


def test_validation_tables_have_the_classes_and_columns_of_the_training_data(lissome: Lissome, tmp_path: Path):
    export(nn.Linear(2, 3), torch.randn(4, 2), tmp_path / "net.pt2")
    write_table(tmp_path / "all.csv", ["cat", "dog", "zebra"])
    write_table(tmp_path / "two.csv", ["dog", "zebra"])
    write_table(tmp_path / "swapped.csv", ["cat", "dog", "zebra"], "x2,kind,x1")
    write_table(tmp_path / "wider.csv", ["zebra", "cat"], "more,x2,x1,kind")
    words = ("net.pt2", "--data", "all.csv", "--labels", "kind", "--epochs", 30, "--lr", 0.1)
    for validation in ("all.csv", "two.csv", "swapped.csv", "wider.csv"):
        shown, _ = train(lissome, *words, "--val", validation)
        assert shown[-1]["accuracy"] == 1 and shown[-1]["validation loss"] < 0.01, (validation, shown[-1])
    (tmp_path / "other.csv").write_text("x1,x2,kind\n1,2,horse\n3,4,cat\n")
    (tmp_path / "numbers.csv").write_text("x1,x2,kind\n1,2,0\n3,4,1\n")
    (tmp_path / "narrow.csv").write_text("x1,kind\n1,cat\n3,dog\n")
    for name, part in (("other", "the class 'horse'"), ("numbers", "the class '0'"), ("narrow", "the column 'x2'")):
        done = lissome("train", *words, "--val", f"{name}.csv", "-o", "t.lissome")
        assert done.returncode == 4 and part in done.stderr, done.stderr


def test_words_that_are_numbers_in_all_rows_of_a_table_are_words(lissome: Lissome, tmp_path: Path):
    export(nn.Linear(1, 3), torch.randn(4, 1), tmp_path / "net.pt2")
    (tmp_path / "d.csv").write_text("x,kind\n" + "-9,7\n0,a\n9,12\n" * 8)
    (tmp_path / "v.csv").write_text("x,kind\n" + "9,12\n-9,7\n" * 4)
    shown, _ = train(lissome, "net.pt2", "--data", "d.csv", "--labels", "kind", "--val", "v.csv", "--epochs", 60, "--lr", 0.1)
    assert shown[-1]["accuracy"] == 1


class Heads(nn.Module):
    """Two outputs by name."""

    def __init__(self) -> None:
        super().__init__()
        self.aux, self.head = nn.Linear(4, 8), nn.Linear(4, 3)

    def forward(self, rows: torch.Tensor) -> dict[str, torch.Tensor]:
        return {"aux": self.aux(rows), "logits": self.head(rows)}


def test_the_output_that_is_trained_is_named_and_can_be_chosen(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    rows = torch.randn(64, 4)
    labels = rows[:, :3].argmax(1)
    export(Heads(), rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=labels)
    words = ("net.pt2", "--data", "d.npz", "--labels", "labels", "--val", "d.npz", "--epochs", 30, "--lr", 0.1)
    _, answer = train(lissome, *words)
    assert any("output 'aux', the first of aux, logits" in note and "cross_entropy:logits" in note for note in answer["notes"])
    shown, answer = train(lissome, *words, "--loss", "cross_entropy:logits")
    assert not any("the first of" in note for note in answer["notes"])
    with torch.no_grad():
        right = (load(Heads(), tmp_path)(rows)["logits"].argmax(1) == labels).double().mean().item()
    assert shown[-1]["accuracy"] == pytest.approx(right) and right > 0.9
    done = lissome("train", *words, "--loss", "cross_entropy:absent", "-o", "t.lissome")
    assert done.returncode == 2 and "the model's outputs are aux, logits" in done.stderr


def test_two_dimensions_that_may_hold_classes_are_noted(lissome: Lissome, tmp_path: Path):
    export(nn.Linear(5, 6), torch.randn(4, 6, 5), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=torch.randn(16, 6, 5), labels=torch.randint(0, 6, (16, 6)))
    _, answer = train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels")
    assert any("have 6 elements each; classes are taken to be the second" in note for note in answer["notes"])


def test_a_weight_of_two_names_is_frozen_by_each(lissome: Lissome, tmp_path: Path):
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.first, self.last = nn.Linear(4, 4, bias=False), nn.Linear(4, 4)
            self.last.weight = self.first.weight

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.last(torch.relu(self.first(rows)))

    torch.manual_seed(0)
    net = Tied()
    before = net.first.weight.detach().clone()
    export(net, torch.randn(4, 4), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=torch.randn(16, 4), labels=torch.randint(0, 4, (16,)))
    for name in ("first.weight", "last.weight"):
        train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--freeze", name, "--lr", 0.1)
        assert torch.equal(load_file(tmp_path / "t.safetensors")["first.weight"], before)


@pytest.mark.parametrize("shape", [(1, 6, 6), (6, 6)])
@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32])
def test_validation_is_normalized_as_training_is(
    lissome: Lissome, tmp_path: Path, shape: tuple[int, ...], dtype: torch.dtype
):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Flatten(), nn.Linear(36, 3))
    images = (torch.rand(40, *shape) * 255).to(torch.uint8)
    export(net, torch.rand(4, *shape), tmp_path / "net.pt2")
    stored, labels = images if dtype == torch.uint8 else images / 255, torch.arange(40) % 3
    np.savez(tmp_path / "d.npz", images=stored, labels=labels)
    transforms = "random_apply:0.5(flip),to_float,normalize:mean=0.3:deviation=0.2"
    shown, _ = train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--val", "d.npz", "--transforms",
                     transforms, "--lr", 0)
    with torch.no_grad():
        expected = functional.cross_entropy(net.eval()((images / 255 - 0.3) / 0.2), labels).item()
    assert shown[-1]["validation loss"] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("features", range(1, 9))
def test_sizes_that_equal_a_batch_narrow_nothing(lissome: Lissome, tmp_path: Path, features: int):
    class Summed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.head, self.aux = nn.Linear(4, 3), nn.Linear(4, features)

        def forward(self, rows: torch.Tensor) -> torch.Tensor:
            return self.head(rows) + 0.1 * self.aux(rows).sum()

    export(Summed(), torch.randn(4, 4), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=torch.randn(20, 4), labels=torch.randint(0, 3, (20,)))
    _, answer = train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--batch", 8)
    assert answer["steps"] == 3 and not any("exactly" in note for note in answer["notes"]), answer["notes"]


class Rms(nn.Module):
    """As language models write it: statistics in f32, whatever comes in."""

    def __init__(self) -> None:
        super().__init__()
        self.stem, self.head = nn.Linear(6, 16), nn.Linear(16, 5)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        hidden = self.stem(rows)
        wide = hidden.float()
        return self.head((wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)).to(hidden.dtype)).float()


@pytest.mark.parametrize("precision", ["bf16", "fp16", "auto"])
def test_casts_behind_products_train_as_under_autocast(lissome: Lissome, tmp_path: Path, precision: str):
    torch.manual_seed(0)
    net, rows, labels = Rms(), torch.randn(32, 6), torch.arange(32) % 5
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=labels)
    train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--batch", 32, "--epochs", 4, "--optimizer", "sgd",
          "--lr", 0.5, "--clip", 0, "--precision", precision)
    dtype = torch.float16 if precision == "fp16" else torch.bfloat16
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    before = net.stem.weight.detach().clone()
    for _ in range(4):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype):
            loss = functional.cross_entropy(net(rows), labels)
        loss.backward()
        optimizer.step()
    trained = load_file(tmp_path / "t.safetensors")["stem.weight"]
    moved = (net.stem.weight - before).norm()
    assert (trained - net.stem.weight).norm() < 0.05 * moved


class Rotary(nn.Module):
    """Positions as factors of complex numbers, as Llama's reference code has them; the factors are used twice."""

    def __init__(self) -> None:
        super().__init__()
        self.joined, self.head = nn.Linear(16, 48, bias=False), nn.Linear(16, 3)
        angles = torch.outer(torch.arange(8.0), 0.1 ** torch.arange(4.0))
        self.register_buffer("factors", torch.polar(torch.ones_like(angles), angles))

    def rotate(self, heads: torch.Tensor) -> torch.Tensor:
        pairs = torch.view_as_complex(heads.float().reshape(*heads.shape[:-1], -1, 2))
        factors = self.factors[: heads.shape[1]].view(1, heads.shape[1], 1, -1)
        return torch.view_as_real(pairs * factors).flatten(3).type_as(heads)

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        query, key, value = (part.unflatten(2, (2, 8)) for part in self.joined(rows).split(16, -1))
        heads = (part.transpose(1, 2) for part in (self.rotate(query), self.rotate(key), value))
        return self.head(functional.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2).mean(1))


def test_rotations_by_complex_factors_train(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    net, rows, labels = Rotary(), torch.randn(24, 6, 16), torch.arange(24) % 3
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=labels)
    train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--batch", 24, "--epochs", 5, "--optimizer", "sgd",
          "--lr", 0.5, "--clip", 0)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(5):
        optimizer.zero_grad()
        functional.cross_entropy(net(rows), labels).backward()
        optimizer.step()
    trained = load_file(tmp_path / "t.safetensors")
    for name, weight in net.named_parameters():
        torch.testing.assert_close(trained[name], weight, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("flags", [(), ("--update-in-backward", "--clip", 0), ("--accumulate", 2), ("--optimizer", "sgd")])
def test_a_batch_without_labels_that_count_changes_nothing(lissome: Lissome, tmp_path: Path, flags: tuple[object, ...]):
    """As in PyTorch, where its loss is NaN and its gradients are 0."""
    torch.manual_seed(0)
    net, rows = nn.Linear(4, 3), torch.randn(9, 4)
    labels = torch.full((9,), -100)
    labels[3] = 1
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=labels)
    _, answer = train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--batch", 2, "--epochs", 3, *flags)
    assert any("no label of the batch" in note for note in answer["notes"])
    assert all(torch.isfinite(weight).all() for weight in load_file(tmp_path / "t.safetensors").values())


@pytest.mark.parametrize("loss", ["huber", "bce", "mse", "l1", "bce_logits"])
@pytest.mark.parametrize("dtype", [np.float64, np.float16, np.int64, np.bool_])
def test_labels_of_any_type_are_targets(lissome: Lissome, tmp_path: Path, loss: str, dtype: type):
    torch.manual_seed(0)
    net, rows = nn.Sequential(nn.Linear(3, 2), nn.Sigmoid()), torch.randn(16, 3)
    export(net, rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", rows=rows, labels=(torch.rand(16, 2) > 0.5).numpy().astype(dtype))
    train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--loss", loss, "--val", "d.npz")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_validation_labels_of_another_type_are_converted_or_refused(lissome: Lissome, tmp_path: Path, dtype: type):
    rows = torch.randn(16, 3)
    export(nn.Linear(3, 2), rows[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "classes.npz", rows=rows, labels=np.arange(16) % 2)
    np.savez(tmp_path / "floats.npz", rows=rows, labels=(np.arange(16) % 2).astype(dtype))
    words = ("train", "net.pt2", "--labels", "labels", "-o", "t.lissome")
    done = lissome(*words, "--data", "classes.npz", "--val", "floats.npz")
    assert done.returncode == 4 and "its labels hold f" in done.stderr, done.stderr
    export(nn.Linear(3, 1), rows[:4], tmp_path / "net.pt2")
    for data, validation in (("floats.npz", "classes.npz"), ("classes.npz", "floats.npz")):
        done = lissome(*words, "--data", data, "--val", validation, "--loss", "mse")
        assert done.returncode == (0 if data == "floats.npz" else 4), done.stderr


@pytest.mark.parametrize("flags", [("--class-weights", "1,2,0.5,1"), ("--label-smoothing", 0.1), ("--ignore-label", 1)])
@pytest.mark.parametrize("norm", [True, False])
def test_pixels_with_weights_and_smoothing(lissome: Lissome, tmp_path: Path, flags: tuple[object, ...], norm: bool):
    """Kernels here keep images in the order of channels, which PyTorch's gradient of this loss does not take."""
    torch.manual_seed(0)
    middle = (nn.BatchNorm2d(8),) if norm else ()
    net = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), *middle, nn.ReLU(), nn.Conv2d(8, 4, 1))
    images, labels = torch.randn(12, 3, 6, 6), torch.randint(0, 4, (12, 6, 6))
    export(net, images[:4], tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", images=images, labels=labels)
    train(lissome, "net.pt2", "--data", "d.npz", "--labels", "labels", "--batch", 12, "--epochs", 3, "--optimizer", "sgd",
          "--lr", 0.5, "--clip", 0, *flags)
    weights = torch.tensor([float(word) for word in str(flags[1]).split(",")]) if "--class-weights" in flags else None
    optimizer = torch.optim.SGD(net.parameters(), lr=0.5)
    for _ in range(3):
        optimizer.zero_grad()
        functional.cross_entropy(net(images), labels, weight=weights,
                                 label_smoothing=0.1 if "--label-smoothing" in flags else 0,
                                 ignore_index=1 if "--ignore-label" in flags else -100).backward()
        optimizer.step()
    trained = load_file(tmp_path / "t.safetensors")
    for name, weight in net.named_parameters():
        torch.testing.assert_close(trained[name], weight, rtol=1e-3, atol=1e-5)
