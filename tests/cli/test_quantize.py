"""lissome quantize: one kind of int8 by its flags, with what became of each layer."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lissome as lissome_python
import numpy as np
import pytest
import torch
import torch.ao.quantization.fx._decomposed
from answer import read_answer
from torch import nn

Lissome = Callable[..., Any]
OBSERVERS = ("minmax", "average", "percentile", "entropy", "mse")


class Stack(nn.Module):
    """Named linear layers; the second one sees what the first one and an activation make."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Linear(32, 64)
        self.inner = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))
        self.last = nn.Linear(64, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.last(torch.relu(self.inner(torch.relu(self.first(x)))))


def export(module: nn.Module, samples: torch.Tensor, folder: Path) -> SimpleNamespace:
    """Model and data files of a module with one input, whose batch may be any."""
    (name,) = inspect.signature(module.forward).parameters
    shapes = {name: {0: torch.export.Dim("batch", min=1)}}
    torch.export.save(torch.export.export(module, (samples[:4],), dynamic_shapes=shapes), folder / "model.pt2")
    np.savez(folder / "x.npz", **{name: samples.numpy()})
    return SimpleNamespace(model=folder / "model.pt2", data=folder / "x.npz", module=module, samples=samples)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    torch.manual_seed(3)
    folder = tmp_path_factory.mktemp("stack")
    module = Stack().eval()
    samples = torch.randn(256, 32)
    return export(module, samples, folder)


def quantize(lissome: Lissome, made: SimpleNamespace, *words: object) -> Any:
    done = lissome("quantize", made.model, "--data", made.data, "-o", "int8.lissome", "--json", *words)
    assert done.returncode == 0, done.stderr
    return read_answer(done)


def list_rows(result: Any) -> dict[str, dict[str, Any]]:
    return {row["layer"]: row for row in result.tables["Layers"]}


def find_error(lissome: Lissome, made: SimpleNamespace, tmp_path: Path) -> float:
    """Of the file's answers on all samples, beside those of PyTorch."""
    done = lissome("run", "int8.lissome", "--input", made.data, "--output", "y.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "y.npz") as outputs, torch.no_grad():
        seen, wanted = next(iter(outputs.values())), made.module(made.samples).numpy()
    return float(np.linalg.norm(seen - wanted) / np.linalg.norm(wanted))


@pytest.mark.parametrize("observer", OBSERVERS)
@pytest.mark.parametrize("kind", ["static", "dynamic"])
def test_each_observer_makes_a_model_whose_error_is_what_is_said(
    lissome: Lissome, stack: SimpleNamespace, tmp_path: Path, kind: str, observer: str
):
    result = quantize(lissome, stack, "--kind", kind, "--observer", observer)
    error = find_error(lissome, stack, tmp_path)
    assert 0 < error < 0.05
    assert error == pytest.approx(result["relative_error"], rel=0.3)
    assert (result["kind"], result["observer"], result["bits"]) == (kind, observer, 8)
    rows = list_rows(result)
    assert set(rows) == {"first", "inner.0", "inner.2", "last"}
    assert all(row["computes in"] == "int8" and row["signal, dB"] > 25 for row in rows.values())
    ranged = [row for row in rows.values() if row["clipped"] is not None]
    assert len(ranged) == (4 if kind == "static" else 0)
    if observer == "minmax":
        assert all(row["clipped"] == 0 for row in ranged)


@pytest.mark.parametrize(("bits", "most"), [(8, 0.01), (4, 0.15)])
@pytest.mark.parametrize("with_data", [True, False])
def test_weights_are_packed_with_and_without_data(
    lissome: Lissome, stack: SimpleNamespace, tmp_path: Path, bits: int, most: float, *, with_data: bool
):
    data = ("--data", stack.data) if with_data else ()
    done = lissome("quantize", stack.model, "-o", "int8.lissome", "--json", "--kind", "weight", "--bits", bits, *data)
    assert done.returncode == 0, done.stderr
    result = read_answer(done)
    error = find_error(lissome, stack, tmp_path)
    assert most / 20 < error < most
    assert (result["relative_error"] is None) == (not with_data)
    if with_data:
        assert error == pytest.approx(result["relative_error"], rel=0.3)
    assert result["precision"] == f"weights of {bits} bits, 4 of 4 layers"
    assert all(row["computes in"] == f"int{bits}" for row in list_rows(result).values())
    ops = {row["op"]: row["nodes"] for row in read_answer(lissome("inspect", "int8.lissome", "--json")).tables["Ops"]}
    assert ops["lissome::linear_group"] == 4


def test_data_weigh_the_inputs_of_a_weight(lissome: Lissome, stack: SimpleNamespace, tmp_path: Path):
    """Inputs of very different sizes: what the large ones meet is kept better."""
    torch.manual_seed(1)
    sizes = torch.where(torch.arange(64) % 8 == 0, 100.0, 1.0)
    module = nn.Linear(64, 256).eval()
    samples = torch.randn(512, 64) * sizes
    made = export(module, samples, tmp_path)
    errors = []
    for data in ((), ("--data", made.data)):
        done = lissome("quantize", made.model, "-o", "int8.lissome", "--kind", "weight", "--bits", "4", *data)
        assert done.returncode == 0, done.stderr
        errors.append(find_error(lissome, made, tmp_path))
    assert errors[1] < 0.9 * errors[0], errors


def test_columns_make_up_for_each_other(lissome: Lissome, tmp_path: Path):
    """Inputs that move together, as those of real models do."""
    torch.manual_seed(2)
    module = nn.Sequential(nn.Linear(24, 192), nn.Tanh(), nn.Linear(192, 64)).eval()
    samples = torch.randn(512, 24)
    made = export(module, samples, tmp_path)
    errors = {}
    for rounding in ("nearest", "gptq"):
        rows = list_rows(quantize(lissome, made, "--kind", "weight", "--bits", "4", "--rounding", rounding))
        errors[rounding] = (find_error(lissome, made, tmp_path), rows["2"]["signal, dB"])
    assert errors["gptq"][0] < 0.8 * errors["nearest"][0], errors
    assert errors["gptq"][1] > errors["nearest"][1] + 3, errors


def test_models_without_a_weight_to_pack_are_refused(lissome: Lissome, tmp_path: Path):
    def refuse(module: nn.Module, x: torch.Tensor, text: str) -> None:
        torch.export.save(torch.export.export(module.eval(), (x,)), tmp_path / "m.pt2")
        done = lissome("quantize", "m.pt2", "-o", "int8.lissome", "--kind", "weight")
        assert done.returncode == 4 and text in done.stderr, done.stderr
        assert not (tmp_path / "int8.lissome").exists()

    refuse(nn.ReLU(), torch.randn(2, 8), "no weight of the model can be packed: it has no linear or embedding")
    convolution = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU())
    refuse(convolution, torch.randn(1, 3, 8, 8), "packed:\n0 stays in float: only linears and embeddings unpack their weight")


class Language(nn.Module):
    """Scores of the next word, by the table that words are read from."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.middle = nn.Embedding(500, 256), nn.Linear(256, 256)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.middle(self.words(words))) @ self.words.weight.t()


@pytest.mark.parametrize(("bits", "most"), [(8, 1.03), (4, 0.57)])
def test_a_table_that_a_linear_shares_is_kept_once(lissome: Lissome, tmp_path: Path, bits: int, most: float):
    torch.manual_seed(0)
    module = Language().eval()
    words = torch.randint(0, 500, (64, 9))
    made = export(module, words, tmp_path)
    result = quantize(lissome, made, "--kind", "weight", "--bits", bits)
    assert {row["op"] for row in list_rows(result).values()} >= {"aten::embedding"}
    assert find_error(lissome, made, tmp_path) < {8: 0.02, 4: 0.2}[bits]
    weights = {row["role"]: row for row in read_answer(lissome("inspect", "int8.lissome", "--json")).tables["Weights"]}
    parameters = 500 * 256 + 256 * 256
    # The last block of the table is filled up to 16 rows.
    assert weights["packed for kernels"]["bytes"] <= most * parameters + 12 * 256 * bits / 8
    np.savez(tmp_path / "bad.npz", words=np.full((1, 9), 500))
    done = lissome("run", "int8.lissome", "--input", "bad.npz")
    assert done.returncode == 4 and "index" in done.stderr, done.stderr


def test_layers_whose_inputs_are_no_groups_keep_their_weight(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(33, 64), nn.Linear(64, 8)).eval()
    torch.export.save(torch.export.export(module, (torch.randn(2, 33),)), tmp_path / "odd.pt2")
    done = lissome("quantize", "odd.pt2", "-o", "int8.lissome", "--kind", "weight", "--json")
    assert done.returncode == 0, done.stderr
    first, second = read_answer(done).tables["Layers"]
    assert (first["computes in"], second["computes in"]) == ("f32", "int8")
    assert first["reason"] == "its rows have 33 numbers, no multiple of 32"


class Beside(nn.Module):
    """Two layers whose results meet nowhere."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(32, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cat([self.first(x), self.second(torch.tanh(x))], 1)


@pytest.mark.parametrize("words", [("--kind", "static"), ("--kind", "dynamic"), ("--kind", "weight")])
@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", ["weight", "bias"])
def test_a_layer_with_an_infinite_number_stays_in_f32(
    lissome: Lissome, tmp_path: Path, words: tuple[str, ...], odd: float, place: str
):
    torch.manual_seed(0)
    module = Beside().eval()
    with torch.no_grad():
        getattr(module.first, place).view(-1)[5] = odd
    samples = torch.randn(64, 32)
    made = export(module, samples, tmp_path)
    rows = list_rows(quantize(lissome, made, *words))
    first = rows["first"]
    # Weights of a layer say nothing of its bias, which stays as it is.
    if place == "weight" or words[1] != "weight":
        assert (first["computes in"], first["reason"]) == ("f32", f"its {place} is infinite or NaN")
    done = lissome("run", "int8.lissome", "--input", made.data, "--output", "y.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "y.npz") as outputs, torch.no_grad():
        seen, wanted = next(iter(outputs.values())), module(samples).numpy()
    assert (np.isnan(seen) == np.isnan(wanted)).all()
    there = np.isfinite(wanted)
    assert np.linalg.norm(seen[there] - wanted[there]) <= 0.03 * np.linalg.norm(wanted[there])


def test_what_f32_answers_with_nan_is_not_said_to_agree(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(32, 64), nn.Linear(64, 8), nn.Linear(8, 4)).eval()
    samples = torch.randn(64, 32)

    def note(count: int, text: str) -> float | None:
        with torch.no_grad():
            module[2].weight[:count] = np.nan
        result = quantize(lissome, export(module, samples, tmp_path))
        assert any(text in note for note in result["notes"]), result["notes"]
        return result["relative_error"]

    error = note(1, "are infinite or NaN in f32: the error is that of the others")
    assert error is not None and 0 < error < 0.05
    assert note(4, "was not measured: all are infinite or NaN in f32") is None


def test_few_samples_are_said(lissome: Lissome, stack: SimpleNamespace, tmp_path: Path):
    for count, few in ((8, True), (128, False)):
        np.savez(tmp_path / "few.npz", x=stack.samples[:count].numpy())
        result = quantize(lissome, SimpleNamespace(model=stack.model, data="few.npz"))
        assert any("say little of others" in note for note in result["notes"]) == few, result["notes"]


class Words(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bag, self.layer = nn.EmbeddingBag(50, 64, mode="mean"), nn.Linear(64, 64)
        self.odd = nn.Embedding(50, 33)

    def forward(self, words: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.layer(torch.tanh(self.layer(self.bag(words)))), self.odd(words)


def test_every_layer_that_keeps_its_weight_is_named_once(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    torch.export.save(torch.export.export(Words().eval(), (torch.randint(0, 50, (2, 7)),)), tmp_path / "m.pt2")
    done = lissome("quantize", "m.pt2", "-o", "int8.lissome", "--kind", "weight", "--json")
    assert done.returncode == 0, done.stderr
    notes = [note for note in read_answer(done)["notes"] if "stays in float" in note]
    assert sorted(notes) == [
        "bag stays in float: only linears and embeddings unpack their weight",
        "odd stays in float: its rows have 33 numbers, no multiple of 32",
    ]
    done = lissome("quantize", "m.pt2", "-o", "none.lissome", "--kind", "weight", "--skip", "layer")
    assert done.returncode == 4 and all(note in done.stderr for note in notes), done.stderr
    assert done.stderr.count("layer stays in float: kept in float by request") == 1


def test_only_and_skip_choose_layers(lissome: Lissome, stack: SimpleNamespace, tmp_path: Path):
    def computed(*words: str) -> set[str]:
        result = quantize(lissome, stack, *words)
        rows = list_rows(result)
        others = [row for row in rows.values() if row["computes in"] == "f32"]
        assert all(row["reason"] == "kept in float by request" for row in others)
        ops = read_answer(lissome("inspect", "int8.lissome", "--json")).tables["Ops"]
        assert sum(row["nodes"] for row in ops if "_int8" in row["op"]) == len(rows) - len(others)
        return {name for name, row in rows.items() if row["computes in"] == "int8"}

    assert computed("--only", "inner.*") == {"inner.0", "inner.2"}
    assert computed("--skip", "first", "--skip", "last") == {"inner.0", "inner.2"}
    assert computed("--only", "inner.*", "--only", "last", "--skip", "inner.0") == {"inner.2", "last"}


def test_the_least_signal_keeps_layers_in_f32(lissome: Lissome, stack: SimpleNamespace):
    rows = list_rows(quantize(lissome, stack))
    bounds = sorted(row["signal, dB"] for row in rows.values())
    middle = (bounds[1] + bounds[2]) / 2
    kept = list_rows(quantize(lissome, stack, "--least-signal", f"{middle:.3f}"))
    assert sorted(row["computes in"] for row in kept.values()) == ["f32", "f32", "int8", "int8"]
    assert all("are asked" in row["reason"] for row in kept.values() if row["computes in"] == "f32")


def test_people_see_layers_and_the_error(lissome: Lissome, stack: SimpleNamespace):
    done = lissome("quantize", stack.model, "--data", stack.data, "-o", "int8.lissome")
    assert done.returncode == 0, done.stderr
    assert "int8, 4 of 4 layers" in done.stdout and "answers differ from f32's by" in done.stdout
    assert "inner.2" in done.stdout and "written to int8.lissome" in done.stdout


@pytest.mark.parametrize(("words", "code", "text"), [
    (("--kind", "half"), 2, "static, dynamic, weight or qat, not 'half'"),
    (("--bits", "4"), 2, "8 is allowed, and 4 with --kind weight"),
    (("--kind", "weight", "--bits", "5"), 2, "--bits is 5"),
    (("--observer", "max"), 2, "minmax, average, percentile, entropy or mse, not 'max'"),
    (("--rounding", "up"), 2, "nearest or gptq, not 'up'"),
    (("--bits", "3"), 2, "--bits"),
    (("--only", "encoder.*"), 2, "no layer fits the pattern 'encoder.*'; the modules with layers are first, inner.0,"),
    (("--skip", "x"), 2, "no layer fits the pattern 'x'"),
    (("--least-signal", "-1"), 2, "--least-signal"),
    (("--least-signal", "nan"), 2, "--least-signal"),
    (("--kind", "weight", "--least-signal", "20"), 2, "--least-signal is for --kind static and dynamic"),
    (("--epochs", "2"), 2, "--loss, --epochs, --batch, --lr and --seed are for --kind qat"),
    (("--loss", "mse"), 2, "--loss, --epochs, --batch, --lr and --seed are for --kind qat"),
    (("--seed", "-1"), 2, "-1 was given; 0 or more is allowed"),
    (("--least-signal", "200"), 4, "no layer of the model can be int8:\nfirst stays in float: keeps only"),
    (("--only", "last", "--skip", "last"), 4, "kept in float by request"),
])
def test_bad_flags_are_refused(
    lissome: Lissome, stack: SimpleNamespace, tmp_path: Path, words: tuple[str, ...], code: int, text: str
):
    done = lissome("quantize", stack.model, "--data", stack.data, "-o", "int8.lissome", *words)
    assert done.returncode == code and text in done.stderr, done.stderr
    assert not (tmp_path / "int8.lissome").exists()


def test_data_that_cannot_calibrate_are_refused(lissome: Lissome, stack: SimpleNamespace, tmp_path: Path):
    def refuse(array: np.ndarray, text: str) -> None:
        np.savez(tmp_path / "bad.npz", x=array)
        done = lissome("quantize", stack.model, "--data", "bad.npz", "-o", "int8.lissome")
        assert done.returncode == 4 and text in done.stderr, done.stderr
        assert not (tmp_path / "int8.lissome").exists()

    refuse(stack.samples[:1].numpy(), "two")
    refuse(np.zeros((64, 31), np.float32), "31")
    refuse(np.zeros((64, 32), np.float32), "differ")
    refuse(np.full((64, 32), np.nan, np.float32), "finite numbers")
    missing = lissome("quantize", stack.model, "-o", "int8.lissome")
    assert missing.returncode == 2 and "--data" in missing.stderr


def round_to(x: torch.Tensor, scale: tuple[Any, ...]) -> torch.Tensor:
    """As exports of PT2E hold it."""
    ops = torch.ops.quantized_decomposed
    return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *scale), *scale)


class Rounding(nn.Module):
    """Rounds and clips what its layers read, and its answer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(32, 64), nn.Linear(64, 64)
        for layer in (self.first, self.second):
            weight = layer.weight.data
            scale = weight.abs().amax(1, keepdim=True) / 127
            layer.weight.data = (weight / scale).round() * scale

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = round_to(x, (0.005, 128, 0, 255, torch.uint8))
        x = round_to(torch.relu(self.first(x)), (0.001, -128, -128, 127, torch.int8))
        return round_to(self.second(x), (0.0005, 100, 0, 255, torch.uint8))


@pytest.mark.parametrize("words", [(), ("--skip", "first"), ("--skip", "second"), ("--kind", "dynamic"),
                                   ("--kind", "weight")])
def test_what_a_model_rounds_stays_rounded(lissome: Lissome, tmp_path: Path, words: tuple[str, ...]):
    torch.manual_seed(4)
    made = export(Rounding().eval(), torch.randn(256, 32), tmp_path)
    result = quantize(lissome, made, *words)
    assert find_error(lissome, made, tmp_path) < (0.02 if "--kind" in words else 0.002)
    assert result["relative_error"] < 0.02
    contents = read_answer(lissome("inspect", "int8.lissome", "--json"))
    assert not any("quantize_per_tensor" in row["op"] for row in contents.tables["Ops"])


class Tokens(nn.Module):
    """Scores for each of four tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


@pytest.mark.parametrize(("sizes", "label", "text"), [
    ((4, 16), 1, "first output has the sizes [4, 8] a sample"),
    ((16,), 8, "a label is 8, the model's output has 8 elements"),
    ((1, 16), 1, None),
])
def test_accuracy_is_said_of_classes_alone(
    lissome: Lissome, tmp_path: Path, sizes: tuple[int, ...], label: int, text: str | None
):
    torch.manual_seed(6)
    made = export(Tokens().eval(), torch.randn(128, *sizes), tmp_path)
    np.savez(made.data, x=made.samples.numpy(), y=np.full(128, label))
    result = quantize(lissome, made, "--labels", "y")
    if text is None:
        assert result["accuracy"]["samples"] == 64
        return
    assert result["accuracy"] is None
    assert any("there is no top-1 accuracy" in note and text in note for note in result["notes"]), result["notes"]


class Odd(nn.Module):
    """A layer of zeros, a layer that sees a constant, one that sees infinities, and one that sees NaN."""

    def __init__(self) -> None:
        super().__init__()
        self.plain, self.zeros, self.constant = nn.Linear(16, 16), nn.Linear(16, 16), nn.Linear(16, 16)
        self.infinite, self.nan = nn.Linear(16, 16), nn.Linear(16, 16)
        nn.init.zeros_(self.zeros.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        infinite = torch.where(x > 2.5, torch.full_like(x, float("inf")), x)
        sums = self.plain(x) + self.zeros(x) + self.constant(torch.zeros_like(x) + 0 * x)
        bad = torch.nan_to_num(self.infinite(infinite)) + torch.nan_to_num(self.nan(torch.sqrt(x)))
        return sums + 0 * bad


def test_layers_that_cannot_be_calibrated_stay_in_float_with_their_reason(lissome: Lissome, tmp_path: Path):
    torch.manual_seed(0)
    samples = torch.randn(256, 16)
    module = Odd().eval()
    made = export(module, samples, tmp_path)
    rows = list_rows(quantize(lissome, made))
    assert rows["plain"]["computes in"] == "int8"
    assert "never varied" in rows["constant"]["reason"]
    assert "infinite, NaN" in rows["infinite"]["reason"] and "infinite, NaN" in rows["nan"]["reason"]
    assert find_error(lissome, made, tmp_path) < 0.05
    # The search goes on behind what cannot be calibrated.
    done = lissome("optimize", made.model, "--data", made.data, "-o", "fast.lissome", "--time", "10s", "--json")
    assert done.returncode == 0, done.stderr
    assert {"bf16", "int8"} <= {step["name"] for step in read_answer(done)["steps"]}


class Uneven(nn.Module):
    """A classifier with batch norm whose hidden channels differ by up to 300 times: what a channel is multiplied by,
    the next layers divide by. One scale for all of them loses the small ones, and with two kinds of readers no weights
    can take the division back in."""

    def __init__(self, readers: int) -> None:
        super().__init__()
        self.side = nn.Linear(24, 3) if readers == 2 else None
        self.first = nn.Conv2d(1, 24, 3)
        self.norm = nn.BatchNorm2d(24)
        self.last = nn.Conv2d(24, 3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden = torch.relu(self.norm(self.first(x)))
        scores = self.last(hidden).mean((2, 3))
        return scores if self.side is None else scores + self.side(hidden.mean((2, 3)))

    def learn(self, images: torch.Tensor, labels: torch.Tensor) -> None:
        optimizer = torch.optim.Adam(self.parameters(), 1e-2)
        for _ in range(200):
            rows = torch.randint(0, len(images), (256,))
            loss = nn.functional.cross_entropy(self(images[rows]), labels[rows])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        factors = torch.logspace(0, 2.5, 24)
        with torch.no_grad():
            self.norm.weight.mul_(factors)
            self.norm.bias.mul_(factors)
            self.last.weight.div_(factors[:, None, None])
            if self.side is not None:
                self.side.weight.div_(factors)


def make_stripes(count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Noisy images of stripes in one of three directions, and which."""
    labels = torch.randint(0, 3, (count,))
    y, x = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    start = 6.28 * torch.rand(count, 1, 1)
    stripes = torch.stack([torch.sin(along + start) for along in (1.2 * x, 1.2 * y, 0.85 * (x + y))])
    return (stripes[labels, torch.arange(count)] + 1.6 * torch.randn(count, 8, 8))[:, None], labels


def make_uneven(readers: int, folder: Path) -> SimpleNamespace:
    torch.manual_seed(5)
    images, labels = make_stripes(6000)
    module = Uneven(readers)
    module.learn(images[:4000], labels[:4000])
    made = export(module.eval(), images[4000:], folder)
    made.labels, made.train, made.train_labels = labels[4000:], images[:4000], labels[:4000]
    made.train_data = made.model.parent / "train.npz"
    ignored = np.full(2000, -100)
    np.savez(made.data, x=images[4000:].numpy(), y=made.labels.numpy(), ignored=ignored)
    np.savez(made.train_data, x=made.train.numpy(), y=made.train_labels.numpy(), ignored=np.tile(ignored, 2))
    with torch.no_grad():
        made.accuracy = float((module(made.samples).argmax(1) == made.labels).float().mean())
    return made


@pytest.fixture(scope="module")
def uneven(tmp_path_factory: pytest.TempPathFactory) -> SimpleNamespace:
    return make_uneven(2, tmp_path_factory.mktemp("uneven"))


def test_convolutions_make_channels_alike_for_each_other(
    lissome: Lissome, tmp_path_factory: pytest.TempPathFactory
):
    made = make_uneven(1, tmp_path_factory.mktemp("even"))
    result = quantize(lissome, made, "--labels", "y", "--least-signal", 0)
    assert result["precision"] == "int8, 2 of 2 layers, 1 smoothed"
    assert result["accuracy"]["f32"] - result["accuracy"]["quantized"] < 0.003, result["accuracy"]


def test_bf16_keeps_what_int8_loses(lissome: Lissome, uneven: SimpleNamespace, tmp_path: Path):
    assert lissome("prepare", uneven.model, "--precision", "bf16", "-o", "bf16.lissome").returncode == 0
    assert lissome("run", "bf16.lissome", "--input", uneven.data, "--output", "y.npz").returncode == 0
    with np.load(tmp_path / "y.npz") as outputs:
        right = (next(iter(outputs.values())).argmax(1) == uneven.labels.numpy()).mean()
    assert right > uneven.accuracy - 0.003


def test_training_makes_up_for_the_rounding(lissome: Lissome, uneven: SimpleNamespace, tmp_path: Path):
    plain = quantize(lissome, uneven, "--labels", "y", "--least-signal", 0)
    assert plain["precision"].startswith("int8, 3 of 3 layers")
    assert plain["accuracy"]["f32"] - plain["accuracy"]["quantized"] > 0.01, plain["accuracy"]
    words = ("--labels", "y", "--kind", "qat", "--train-data", uneven.train_data, "--epochs", 5, "--lr", 3e-3)
    result = quantize(lissome, uneven, *words)
    accuracy = result["accuracy"]
    assert accuracy["f32"] == plain["accuracy"]["f32"] and accuracy["samples"] == plain["accuracy"]["samples"] == 512
    assert accuracy["f32"] - accuracy["quantized"] < 0.003, accuracy
    assert result["precision"] == "int8, 3 of 3 layers, trained"
    done = lissome("run", "int8.lissome", "--input", uneven.data, "--output", "y.npz")
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "y.npz") as outputs:
        right = (next(iter(outputs.values())).argmax(1) == uneven.labels.numpy()).mean()
    assert right > uneven.accuracy - 0.003


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--kind", "qat"], "--kind qat needs --train-data"),
        (["--train-data", "x.npz"], "--train-data is for --kind qat"),
        (["--kind", "qat", "--train-data", "train.npz", "--labels", "y", "--loss", "word"], "the loss 'word'"),
        (["--kind", "qat", "--train-data", "train.npz"], "label"),
        (["--kind", "qat", "--train-data", "train.npz", "--labels", "y", "--least-signal", "20"], "--least-signal is for"),
        (["--kind", "qat", "--train-data", "train.npz", "--labels", "ignored"], "all labels are -100"),
        (
            ["--kind", "qat", "--train-data", "train.npz", "--labels", "y", "--skip", "*"],
            "no layer of the model can be trained for int8:",
        ),
    ],
)
def test_training_that_lacks_something_is_refused(
    lissome: Lissome, uneven: SimpleNamespace, tmp_path: Path, words: list[str], message: str
):
    given = [str(uneven.train_data) if word == "train.npz" else word for word in words]
    done = lissome("quantize", uneven.model, "--data", uneven.data, "-o", "int8.lissome", *given)
    assert done.returncode in (2, 4) and message in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


def test_training_from_python_leaves_the_module_alone(uneven: SimpleNamespace):
    before = {name: tensor.clone() for name, tensor in uneven.module.state_dict().items()}
    model = lissome_python.quantize(
        uneven.module,
        (uneven.samples[:4],),
        data=uneven.samples,
        kind="qat",
        train_data=uneven.train,
        labels=uneven.train_labels,
        epochs=5,
        lr=3e-3,
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in uneven.module.state_dict().items())
    right = (model(uneven.samples).argmax(1) == uneven.labels).float().mean()
    assert right > uneven.accuracy - 0.003
    assert model.precision["how"] == "int8, 3 of 3 layers, trained"


def test_the_error_is_that_beside_f32_whatever_labels_are(lissome: Lissome, stack: SimpleNamespace, tmp_path: Path):
    np.savez(tmp_path / "d.npz", x=stack.samples.numpy(), target=np.ones((256, 8), np.float32))
    plain = read_answer(lissome("quantize", stack.model, "--data", stack.data, "-o", "q.lissome", "--json"))
    labelled = read_answer(
        lissome("quantize", stack.model, "--data", "d.npz", "--labels", "target", "-o", "q.lissome", "--json"))
    assert labelled["relative_error"] == pytest.approx(plain["relative_error"], rel=0.5)
    assert labelled["relative_error"] < 0.1
