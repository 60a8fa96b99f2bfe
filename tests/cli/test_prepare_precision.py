"""lissome prepare --precision: bf16 and int8 by rule, and how far their answers are from those in f32."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

Lissome = Callable[..., Any]


@pytest.fixture(scope="module")
def pictures(models: SimpleNamespace) -> Path:
    torch.manual_seed(1)
    path = models.folder / "pictures.npz"
    np.savez(path, images=torch.randn(40, 3, 32, 32).numpy())
    return path


def answer(succeed: Lissome, model: Path, data: Path, rows: int) -> np.ndarray:
    with np.load(data) as arrays:
        name = next(name for name in arrays if name != "labels")
        np.savez(model.parent / "rows.npz", **{name: arrays[name][:rows]})
    succeed("run", model, "--input", model.parent / "rows.npz", "--output", model.parent / "y.npz")
    with np.load(model.parent / "y.npz") as outputs:
        return next(iter(outputs.values()))


@pytest.mark.parametrize("precision", ["bf16", "int8"])
@pytest.mark.parametrize("name", ["classifier", "pictures"])
@pytest.mark.parametrize("effort", ["fast", "normal"])
def test_a_precision_is_made_and_its_error_is_measured(  # noqa: PLR0913  fixtures and three parameters
    succeed: Lissome, read_json: Lissome, models: SimpleNamespace, pictures: Path, tmp_path: Path, precision: str,
    name: str, effort: str,
):
    data = {"classifier": models.data, "pictures": pictures}[name]
    model = tmp_path / f"{precision}.lissome"
    done = read_json("prepare", getattr(models, name), "-o", model, "--precision", precision, "--data", data,
                     "--effort", effort)
    assert done["precision"].startswith(precision)
    with np.load(data) as arrays:
        rows = torch.from_numpy(next(arrays[key] for key in arrays if key != "labels")[:64])
    with torch.no_grad():
        wanted = models.modules[name](rows).numpy()
    seen = answer(succeed, model, data, len(rows))
    error = np.linalg.norm(seen - wanted) / np.linalg.norm(wanted)
    assert 0 < error < 0.1, "lower precision changes something, and little"
    assert error == pytest.approx(done["relative_error"], rel=0.5), "what is printed is what a user sees"
    kernels = {row["kernel"] for row in read_json("inspect", model).tables["Plan"]}
    assert any(kernel.endswith("u8s8" if precision == "int8" else "bf16") for kernel in kernels), kernels


def test_the_error_is_printed_and_kept_in_the_file(succeed: Lissome, models: SimpleNamespace, tmp_path: Path):
    text = succeed("prepare", models.classifier, "-o", tmp_path / "m.lissome", "--precision", "int8", "--data", models.data)
    assert "int8, 2 of 2 layers" in text and "answers differ from f32's by" in text and "relative error" in text
    plain = succeed("prepare", models.classifier, "-o", tmp_path / "f.lissome")
    assert "differ" not in plain and "int8" not in plain


def test_int8_needs_rows(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    def refuse(code: int, text: str, *words: object) -> None:
        done = lissome("prepare", models.classifier, "-o", tmp_path / "m.lissome", *words)
        assert done.returncode == code and text in done.stderr, done.stderr
        assert not (tmp_path / "m.lissome").exists()

    refuse(2, "--precision int8 needs --data", "--precision", "int8")
    refuse(2, "f32, bf16 or int8, not 'int4'", "--precision", "int4")
    refuse(4, "two", "--precision", "int8", "--data", models.one)
    np.savez(tmp_path / "wrong.npz", input=np.zeros((4, 63), np.float32))
    refuse(4, "63", "--precision", "int8", "--data", tmp_path / "wrong.npz")
    np.savez(tmp_path / "nan.npz", input=np.full((4, 64), np.nan, np.float32))
    refuse(4, "finite numbers", "--precision", "int8", "--data", tmp_path / "nan.npz")


def test_a_model_without_layers_is_refused(lissome: Lissome, tmp_path: Path):
    class Add(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.relu(x) + 1

    torch.export.save(torch.export.export(Add(), (torch.randn(2, 4),)), tmp_path / "add.pt2")
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).standard_normal((8, 4), np.float32))
    words = ("--precision", "int8", "--data", tmp_path / "x.npz")
    done = lissome("prepare", tmp_path / "add.pt2", "-o", tmp_path / "m.lissome", *words)
    assert done.returncode == 4 and "no layer of the model can be int8: it has no linear" in done.stderr
    assert not (tmp_path / "m.lissome").exists()


def test_bf16_without_data_says_what_is_not_known(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    words = ("prepare", models.classifier, "-o", tmp_path / "m.lissome", "--precision", "bf16", "--json")
    done = lissome(*words)
    result = json.loads(done.stdout)["result"]
    assert done.returncode == 0 and "give --data to measure" in done.stderr
    assert result["relative_error"] is None and result["precision"] == "bf16"


def test_answers_without_samples_are_made_unmeasured(lissome: Lissome, tmp_path: Path):
    """The output has no sample dimension: the form is written, and said not to be measured."""

    class Whole(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layer = torch.nn.Linear(16, 16)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.layer(x).sum()

    torch.export.save(torch.export.export(Whole().eval(), (torch.randn(4, 16),)), tmp_path / "whole.pt2")
    np.savez(tmp_path / "x.npz", x=np.random.default_rng(0).standard_normal((16, 16), np.float32))
    words = ("--precision", "int8", "--data", tmp_path / "x.npz", "--json")
    done = lissome("prepare", tmp_path / "whole.pt2", "-o", tmp_path / "m.lissome", *words)
    assert done.returncode == 0, done.stderr
    assert "was not measured" in done.stderr and json.loads(done.stdout)["result"]["relative_error"] is None


def test_a_model_without_products_in_f32_is_not_called_bf16(read_json: Lissome, tmp_path: Path):
    net = torch.nn.Linear(4, 3).double().eval()
    torch.export.save(torch.export.export(net, (torch.randn(2, 4, dtype=torch.float64),)), tmp_path / "net.pt2")
    done = read_json("prepare", tmp_path / "net.pt2", "-o", tmp_path / "net.lissome", "--precision", "bf16")
    assert done["precision"] == "f32" and any("nothing is computed in bf16" in note for note in done["notes"])
