"""lissome run and prepare: the numbers of PyTorch, whichever way the arrays are given."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

Lissome = Callable[..., Any]


def run(succeed: Lissome, folder: Path, model: Path, **arrays: np.ndarray) -> dict[str, np.ndarray]:
    np.savez(folder / "x.npz", **arrays)
    succeed("run", model, "--input", folder / "x.npz", "--output", folder / "y.npz")
    with np.load(folder / "y.npz") as outputs:
        return dict(outputs)


def assert_close(seen: np.ndarray, wanted: torch.Tensor) -> None:
    expected = wanted.detach().numpy()
    assert seen.dtype == expected.dtype and seen.shape == expected.shape
    assert np.abs(seen - expected).max() <= 1e-5 * np.abs(expected).max()


@pytest.fixture
def tower_inputs() -> tuple[torch.Tensor, torch.Tensor]:
    generator = torch.Generator().manual_seed(1)
    return torch.randint(0, 50, (3, 5), generator=generator), torch.randn(3, 8, generator=generator)


def test_what_is_read_is_not_overwritten(lissome: Lissome, tmp_path: Path):
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.randn(2, 3),)), tmp_path / "net.pt2")
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    for name, what in (("net.pt2", "the model"), ("x.npy", "an input"), (f"../{tmp_path.name}/x.npy", "an input")):
        before = (tmp_path / name).read_bytes()
        done = lissome("run", "net.pt2", "--input", "x.npy", "-o", name)
        assert done.returncode == 2 and f"is {what}" in done.stderr, done.stderr
        assert (tmp_path / name).read_bytes() == before


def test_outputs_under_the_name_of_another_kind_of_file_are_refused(lissome: Lissome, tmp_path: Path):
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.randn(2, 3),)), tmp_path / "net.pt2")
    np.save(tmp_path / "x.npy", np.zeros((2, 3), np.float32))
    done = lissome("run", "net.pt2", "--input", "x.npy", "-o", "y.csv")
    assert done.returncode == 2 and "'y.csv' ends in '.csv'" in done.stderr and "y.npz" in done.stderr, done.stderr
    assert not (tmp_path / "y.csv").exists()


@pytest.mark.parametrize(
    ("command", "over"),
    [("optimize", "net.pt2"), ("optimize", "d.npz"), ("prepare", "net.pt2"), ("train", "net.pt2"), ("train", "d.npz")],
)
def test_models_are_not_written_over_what_is_read(lissome: Lissome, tmp_path: Path, command: str, over: str):
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.randn(2, 3),)), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", input=np.zeros((2, 3), np.float32), labels=np.zeros(2, np.int64))
    before = (tmp_path / over).read_bytes()
    words = [] if command == "prepare" else ["--data", "d.npz", "--labels", "labels"]
    done = lissome(command, "net.pt2", *words, "-o", over)
    assert done.returncode == 2 and "which would be overwritten" in done.stderr, done.stderr
    assert (tmp_path / over).read_bytes() == before


def test_an_index_out_of_range_is_reported_with_its_input(lissome: Lissome, tmp_path: Path):
    table = torch.nn.Sequential(torch.nn.Embedding(5, 3))
    torch.export.save(torch.export.export(table, (torch.zeros(2, 3, dtype=torch.long),)), tmp_path / "table.pt2")
    assert lissome("prepare", "table.pt2", "-o", "table.lissome").returncode == 0
    np.savez(tmp_path / "ids.npz", input=np.array([[0, 1, 2], [3, 4, 7]]))
    done = lissome("run", "table.lissome", "--input", "ids.npz")
    assert done.returncode == 4 and "aten::embedding" in done.stderr, done.stderr
    assert "input 'input' holds 0 to 7" in done.stderr, done.stderr


def test_numbers_beyond_the_input_type_are_refused(lissome: Lissome, tmp_path: Path):
    torch.export.save(torch.export.export(torch.nn.Linear(3, 2), (torch.randn(2, 3),)), tmp_path / "net.pt2")
    np.save(tmp_path / "x.npy", np.array([[1e300, 0, 0], [0, 0, 0]]))
    done = lissome("run", "net.pt2", "--input", "x.npy")
    assert done.returncode == 4 and "1e+300" in done.stderr and "takes f32" in done.stderr, done.stderr
    np.save(tmp_path / "x.npy", np.array([[1e30, 0, 0], [0, 0, 0]]))
    assert lissome("run", "net.pt2", "--input", "x.npy").returncode == 0


def test_run_by_name(succeed: Lissome, models: SimpleNamespace, tmp_path: Path, tower_inputs):
    ids, numbers = tower_inputs
    outputs = run(succeed, tmp_path, models.towers, numbers=numbers.numpy(), ids=ids.numpy())
    expected = models.modules["towers"](ids, numbers)
    assert set(outputs) == {"scores", "hidden"}
    for name, tensor in expected.items():
        assert_close(outputs[name], tensor)


def test_run_in_order(succeed: Lissome, models: SimpleNamespace, tmp_path: Path, tower_inputs):
    ids, numbers = tower_inputs
    outputs = run(succeed, tmp_path, models.towers, a=ids.numpy(), b=numbers.numpy())
    assert_close(outputs["scores"], models.modules["towers"](ids, numbers)["scores"])


def test_run_converts_and_says_so(lissome: Lissome, models: SimpleNamespace, tmp_path: Path):
    np.savez(tmp_path / "x.npz", input=models.samples[:4].double().numpy())
    done = lissome("run", models.classifier, "--input", "x.npz", "--output", "y.npz")
    assert done.returncode == 0 and "f64" in done.stderr
    with np.load(tmp_path / "y.npz") as outputs:
        assert_close(next(iter(outputs.values())), models.modules["classifier"](models.samples[:4]))


@pytest.mark.parametrize("name", ["classifier", "towers", "pictures"])
def test_prepared_models_give_equal_numbers(succeed: Lissome, models: SimpleNamespace, tmp_path: Path, name: str):
    inputs = {
        "classifier": {"input": models.samples[:5]},
        "towers": {"ids": torch.arange(15).reshape(3, 5), "numbers": torch.randn(3, 8)},
        "pictures": {"images": torch.randn(2, 3, 32, 32)},
    }[name]
    prepared = tmp_path / "prepared.lissome"
    assert "written to" in succeed("prepare", getattr(models, name), "-o", prepared)
    outputs = run(succeed, tmp_path, prepared, **{key: tensor.numpy() for key, tensor in inputs.items()})
    expected = models.modules[name](**inputs)
    expected = expected if isinstance(expected, dict) else {next(iter(outputs)): expected}
    for key, tensor in expected.items():
        assert_close(outputs[key], tensor)


def test_prepare_lists_passes(read_json: Lissome, models: SimpleNamespace, tmp_path: Path):
    def count(*flags: str) -> dict[str, float]:
        answer = read_json("prepare", models.pictures, "-o", tmp_path / "p.lissome", *flags)
        return {row["pass"]: row["rewrites"] for row in answer.tables["Passes"]}

    assert count()["fold_batch_norm"] == 1
    assert "fold_batch_norm" not in count("--disable", "fold_batch_norm")


def test_a_finished_model_keeps_its_threads(succeed: Lissome, read_json: Lissome, models: SimpleNamespace, tmp_path: Path):
    succeed("prepare", models.classifier, "-o", tmp_path / "one.lissome", "--threads", "1")
    assert read_json("bench", tmp_path / "one.lissome", "--runs", "2")["threads"] == 1
    assert read_json("bench", tmp_path / "one.lissome", "--runs", "2", "--threads", "2")["threads"] == 2


class Masked(torch.nn.Module):
    """A mean over the words that count."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(50, 16)

    def forward(self, ids: torch.Tensor, mask: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        words = self.words(ids)
        return (words * mask.unsqueeze(-1)).sum(1) / mask.sum(1, keepdim=True), words


@pytest.fixture
def masked(succeed: Lissome, tmp_path: Path) -> SimpleNamespace:
    """masked.lissome with a dimension that varies, and x.npz of seven words."""
    torch.manual_seed(0)
    module, words = Masked().eval(), torch.export.Dim("words", min=1, max=64)
    example = (torch.ones(2, 5, dtype=torch.int64), torch.ones(2, 5))
    exported = torch.export.export(module, example, dynamic_shapes=({1: words}, {1: words}))
    torch.export.save(exported, tmp_path / "masked.pt2")
    succeed("prepare", tmp_path / "masked.pt2", "-o", tmp_path / "masked.lissome")
    ids, mask = torch.arange(14).reshape(2, 7), torch.ones(2, 7)
    np.savez(tmp_path / "x.npz", ids=ids.numpy(), mask=mask.numpy())
    return SimpleNamespace(path=tmp_path / "masked.lissome", wanted=module(ids, mask))


def test_run_in_buckets(lissome: Lissome, masked: SimpleNamespace, tmp_path: Path):
    command = ("run", masked.path, "--input", "x.npz", "--output", "y.npz", "--buckets", "ids.1=8,32")
    done = lissome(*command, "--pad", "ids=0", "--pad", "mask=0")
    assert done.returncode == 0 and "outputs differ by" in done.stderr, done.stderr
    with np.load(tmp_path / "y.npz") as outputs:
        for name, wanted in zip(outputs.files, masked.wanted, strict=True):
            assert_close(outputs[name], wanted)
    noticed = lissome(*command, "--pad", "ids=0", "--pad", "mask=1")
    assert noticed.returncode == 4 and "changes output" in noticed.stderr and "0.001" in noticed.stderr
    for flags, what in (
        (("--pad", "ids=0"), "'mask' is not given"),
        (("--pad", "ids=zero", "--pad", "mask=0"), "is not a number"),
        (("--pad", "ids"), "INPUT=NUMBER"),
    ):
        refused = lissome(*command, *flags)
        assert refused.returncode == 2 and what in refused.stderr
    alone = lissome("run", masked.path, "--input", "x.npz", "--pad", "ids=0")
    assert alone.returncode == 2 and "--pad needs --buckets" in alone.stderr


def test_flags_of_many_values_leave_the_model_alone(lissome: Lissome, masked: SimpleNamespace):
    done = lissome("run", "--input", "x.npz", "--buckets", "ids.1=8", "--pad", "mask=0", "--pad", "ids=0", masked.path)
    assert done.returncode == 0, done.stderr


def test_bench_in_buckets(read_json: Lissome, lissome: Lissome, masked: SimpleNamespace):
    words = ("bench", masked.path, "--input", "x.npz", "--runs", "5", "--pad", "ids=0", "--pad", "mask=0")
    result = read_json(*words, "--buckets", "ids.1=8,32", "--memory", "1MiB")
    plain, limited, bucketed = result.tables["Models"]
    assert plain["model"] == str(masked.path) and limited["model"] == f"{masked.path} in 1.0 MiB"
    assert bucketed["model"] == f"{masked.path} in 1.0 MiB in buckets ids.1=8,32"
    assert all(row["median"] > 0 and row["resident"] > 0 and row["first call"] > 0 for row in (plain, limited, bucketed))
    assert [row["model"] for row in result.tables["Within the limit"]] == [limited["model"]]
    (padded,) = result.tables["In buckets"]
    assert padded["model"] == bucketed["model"] and 0 <= padded["answers differ by"] <= 0.001
    done = lissome(*words, "--buckets", "ids.1=8,32")
    assert done.returncode == 0 and "In buckets" in done.stdout
    for flags, status, what in (
        (("--buckets", "ids.1=8", "--streams", "auto"), 2, "exclude each other"),
        (("--buckets", "ids.1=7"), 2, "proves nothing"),
        (("--buckets", "seven"), 2, "DIMENSION=SIZE"),
        ((), 2, "--pad needs --buckets"),
    ):
        refused = lissome(*words, *flags)
        assert refused.returncode == status and what in refused.stderr, refused.stderr


def test_what_feeds_which_input_is_reported_once_for_many_files(
    lissome: Lissome, prepared: Path, models: SimpleNamespace, tmp_path: Path
):
    (tmp_path / "files").mkdir()
    for name in ("a", "b", "c"):
        np.savez(tmp_path / "files" / f"{name}.npz", other=models.samples[:1].numpy())
    done = lissome("run", prepared, "--input", "files", "--output", "answers")
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("'other' feeds input") == 1 and len(list((tmp_path / "answers").iterdir())) == 3


def write_kinds(folder: Path, samples: np.ndarray) -> dict[str, str]:
    """A file or folder of each kind that docs/data.md lists, by a word for the kind."""
    np.savez(folder / "x.npz", input=samples)
    np.save(folder / "x.npy", samples)
    save_file({"input": samples}, folder / "x.safetensors")
    names = ",".join(f"c{i}" for i in range(samples.shape[1]))
    np.savetxt(folder / "x.csv", samples, delimiter=",", header=names, comments="", fmt="%.9g")
    head = bytes([0, 0, 8, 3]) + b"".join(size.to_bytes(4, "big") for size in (len(samples), 8, 8))
    (folder / "idx").mkdir()
    for path in (folder / "x-idx3-ubyte", folder / "idx" / "train-images-idx3-ubyte"):
        path.write_bytes(head + bytes(64 * len(samples)))
    (folder / "images" / "one").mkdir(parents=True)
    (folder / "images" / "one" / "a.png").write_bytes(b"")
    return {
        "npz": "x.npz", "npy": "x.npy", "safetensors": "x.safetensors", "csv": "x.csv", "an IDX file": "x-idx3-ubyte",
        "IDX files": "idx:train", "images": "images",
    }


@pytest.mark.parametrize("command", ["run", "bench", "profile", "audit", "prepare"])
def test_input_takes_what_is_documented_and_refuses_the_rest(
    lissome: Lissome, models: SimpleNamespace, prepared: Path, tmp_path: Path, command: str
):
    kinds = write_kinds(tmp_path, models.samples[:2].numpy())
    model = [models.classifier, "-o", "p.lissome"] if command == "prepare" else [prepared]
    few = ["--runs", "2"] if command in ("bench", "profile") else []
    for kind, path in kinds.items():
        done = lissome(command, *model, *few, "--input", path)
        if kind in ("npz", "npy", "safetensors"):
            assert done.returncode == 0, (kind, done.stderr)
        else:
            assert done.returncode in (1, 2, 4) and done.stdout == "" and path in done.stderr, (kind, done.stderr)


def test_a_folder_of_inputs_of_each_kind(lissome: Lissome, models: SimpleNamespace, prepared: Path, tmp_path: Path):
    (tmp_path / "files").mkdir()
    samples = models.samples[:2].numpy()
    np.savez(tmp_path / "files" / "a.npz", input=samples)
    np.save(tmp_path / "files" / "b.npy", samples)
    save_file({"input": samples}, tmp_path / "files" / "c.safetensors")
    assert lissome("run", prepared, "--input", "files", "-o", "answers").returncode == 0
    seen = [next(iter(np.load(tmp_path / "answers" / f"{name}.npz").values())) for name in "abc"]
    assert np.array_equal(seen[0], seen[1]) and np.array_equal(seen[0], seen[2])


class Masking(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        missing = torch.isnan(x)
        return torch.cat([torch.nan_to_num(x, 0.0), missing.float()], 1), y @ torch.ones(2, 2)


def test_a_model_that_looks_for_nan_is_given_nan(lissome: Lissome, tmp_path: Path):
    shapes = {name: {0: torch.export.Dim("batch", min=1, max=64)} for name in ("x", "y")}
    x, y = torch.randn(5, 3), torch.randn(5, 2)
    torch.export.save(torch.export.export(Masking(), (x, y), dynamic_shapes=shapes), tmp_path / "net.pt2")
    assert lissome("prepare", "net.pt2", "-o", "net.lissome").returncode == 0
    x[1, 2] = float("nan")
    np.savez(tmp_path / "good.npz", x=x.numpy(), y=y.numpy())
    for model in ("net.pt2", "net.lissome"):
        done = lissome("run", model, "--input", "good.npz", "-o", "y.npz")
        assert done.returncode == 0, done.stderr
        with np.load(tmp_path / "y.npz") as outputs:
            seen = outputs["output.0"]
        np.testing.assert_array_equal(seen[1], np.float32([x[1, 0], x[1, 1], 0, 0, 0, 1]))


def test_inputs_of_different_batches_are_refused_with_what_gave_the_size(lissome: Lissome, tmp_path: Path):
    shapes = {name: {0: torch.export.Dim("batch", min=1, max=64)} for name in ("x", "y")}
    torch.export.save(torch.export.export(Masking(), (torch.randn(5, 3), torch.randn(5, 2)), dynamic_shapes=shapes),
                      tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=np.zeros((9, 3), np.float32), y=np.zeros((4, 2), np.float32))
    done = lissome("run", "net.pt2", "--input", "d.npz")
    assert done.returncode == 4 and "is 9 by input 'x', f32[9, 3]" in done.stderr, done.stderr
