"""Which array feeds which input: a generated matrix of input trees, names, orders of the file, types and file kinds.

The expected outcome of a case follows from a rule written here, apart from the implementation: names that carry a place
(full names, also with underscores for dots, unique ends of full names, arr_0 and following) decide; other names are accepted only where types and sizes
leave one assignment, and where none of the names fits. Right means PyTorch's own answer for the same arguments; everything else must be refused.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lissome as binding
import numpy as np
import pytest
import torch
from pictures import write_png
from safetensors.numpy import load_file, save_file

Lissome = Callable[..., Any]
Tensors = list[torch.Tensor]

# How the arguments of forward nest the leaves 0, 1, 2: (full names of the leaves, arguments from leaves).
TREES: dict[str, tuple[list[str], Callable[[Tensors], tuple[Any, ...]]]] = {
    "positional": (["a", "b", "c"], lambda t: (t[0], t[1], t[2])),
    "dict": (["a.query", "a.key", "a.mask"], lambda t: ({"query": t[0], "key": t[1], "mask": t[2]},)),
    "tuple": (["a.0", "a.1", "a.2"], lambda t: ((t[0], t[1], t[2]),)),
    "nested": (["a.ids", "b.text.ids", "b.mask"], lambda t: (({"ids": t[0]}), {"text": {"ids": t[1]}, "mask": t[2]})),
}
# Type and sizes after the batch of each leaf.
TYPES: dict[str, list[tuple[torch.dtype, int]]] = {
    "equal": [(torch.float32, 4)] * 3,
    "two alike": [(torch.int64, 4), (torch.int64, 4), (torch.float32, 4)],
    "by type": [(torch.int64, 4), (torch.float32, 4), (torch.bool, 4)],
    "by size": [(torch.float32, 2), (torch.float32, 3), (torch.float32, 5)],
}
NAMINGS = ["full", "last part", "keyword", "longer", "arr", "foreign", "one foreign"]
ORDERS = [(0, 1, 2), (2, 1, 0), (1, 2, 0)]
KINDS = ["npz", "safetensors"]


@dataclass(frozen=True)
class Case:
    tree: str
    types: str
    naming: str
    order: tuple[int, ...]
    kind: str

    def names(self) -> list[str]:
        """The name in the file of each leaf."""
        full = TREES[self.tree][0]
        return {
            "full": full,
            "last part": [name.rsplit(".", 1)[-1] for name in full],
            "keyword": [name.replace(".", "_") for name in full],
            "longer": [f"sample.{name}" for name in full],
            "arr": [f"arr_{i}" for i in range(3)],
            "foreign": ["zeta", "eta", "theta"],
            "one foreign": [full[0], "eta", full[2]],
        }[self.naming]

    def possible(self) -> bool:
        return len(set(self.names())) == 3

    def is_right(self) -> bool:
        if self.naming == "foreign":
            return self.types in ("by type", "by size")
        return self.naming != "one foreign"


CASES = [
    case
    for case in itertools.starmap(Case, itertools.product(TREES, TYPES, NAMINGS, ORDERS, KINDS))
    if case.possible()
]


class Mixed(torch.nn.Module):
    """Every leaf counts with a factor of its own, so that no exchange goes unseen."""

    def forward(self, a: Any, b: Any = None, c: Any = None) -> torch.Tensor:
        leaves = torch.utils._pytree.tree_leaves((a, b, c))
        leaves = [leaf for leaf in leaves if leaf is not None]
        return sum((leaf.float() * (3.0 + 4.0 * i)).sum(1) for i, leaf in enumerate(leaves))


def make_leaves(types: str, seed: int, samples: int = 6) -> Tensors:
    generator = torch.Generator().manual_seed(seed)
    values = [(torch.randint(0, 50, (samples, n), generator=generator), dtype) for dtype, n in TYPES[types]]
    return [(value % 2 == 0) if dtype is torch.bool else value.to(dtype) for value, dtype in values]


def write(path: Path, arrays: dict[str, np.ndarray]) -> None:
    save_file(arrays, path) if path.suffix == ".safetensors" else np.savez(path, **arrays)


def order_arrays(case: Case, leaves: Tensors) -> dict[str, np.ndarray]:
    return {case.names()[i]: leaves[i].numpy() for i in case.order}


@pytest.fixture(scope="session")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Path]:
    """A .pt2 of each tree with each choice of types, exported when first asked for."""
    folder, made = tmp_path_factory.mktemp("trees"), {}

    def export(tree: str, types: str) -> Path:
        if (tree, types) not in made:
            arguments = TREES[tree][1](make_leaves(types, 0))
            batch = torch.export.Dim("batch", min=1, max=64)
            shapes = torch.utils._pytree.tree_map(lambda _: {0: batch}, arguments)
            padded = shapes + (None,) * (3 - len(shapes))
            module = torch.export.export(Mixed(), arguments, dynamic_shapes=padded[: len(arguments)])
            made[tree, types] = folder / f"{tree}-{types.replace(' ', '-')}.pt2"
            torch.export.save(module, made[tree, types])
        return made[tree, types]

    return export


def test_the_matrix_holds_what_was_promised():
    assert len(CASES) >= 200
    assert sum(case.is_right() for case in CASES) >= 150
    assert sum(not case.is_right() for case in CASES) >= 20


@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize("tree", TREES)
def test_one_set_of_inputs(lissome: Lissome, exported: Callable[..., Path], tmp_path: Path, tree: str, types: str):
    cases = [case for case in CASES if case.tree == tree and case.types == types]
    model, expected, wrong = exported(tree, types), {}, []
    assert lissome("prepare", model, "-o", "m.lissome").returncode == 0
    for i, case in enumerate(cases):
        leaves = make_leaves(types, seed=i + 1)
        write(tmp_path / f"x{i}.{case.kind}", order_arrays(case, leaves))
        expected[case] = Mixed()(*TREES[tree][1](leaves)).numpy()
        done = lissome("run", "m.lissome", "--input", f"x{i}.{case.kind}", "--output", f"y{i}.npz")
        if not case.is_right():
            both = [*case.names(), *TREES[tree][0]]
            if done.returncode != 4 or any(name not in done.stderr for name in both):
                wrong.append((case, done.returncode, done.stderr))
            continue
        if done.returncode != 0:
            wrong.append((case, done.returncode, done.stderr))
            continue
        with np.load(tmp_path / f"y{i}.npz") as outputs:
            (seen,) = outputs.values()
        announced = "feeds input" in done.stderr
        if not np.array_equal(seen, expected[case]) or announced != (case.names() != TREES[tree][0]):
            wrong.append((case, seen, done.stderr))
    assert not wrong, f"{len(wrong)} of {len(cases)}: {wrong[:4]}"


@pytest.mark.parametrize("types", ["equal", "by type"])
@pytest.mark.parametrize("naming", ["last part", "foreign"])
@pytest.mark.parametrize("command", ["audit", "bench", "profile", "optimize"])
def test_every_command_keeps_the_rule(
    lissome: Lissome, exported: Callable[..., Path], tmp_path: Path, command: str, naming: str, types: str
):
    case = Case("dict", types, naming, (2, 1, 0), "npz")
    write(tmp_path / "x.npz", order_arrays(case, make_leaves(types, 3, samples=24)))
    data = ["--data", "x.npz", "--output", "o.lissome", "--time", "1s"]
    done = lissome(command, exported("dict", types), *(data if command == "optimize" else ["--input", "x.npz"]))
    mapping = [f"{name!r} feeds input {full!r}" for name, full in zip(case.names(), TREES["dict"][0], strict=True)]
    expected = mapping if case.is_right() else [*case.names(), *TREES["dict"][0]]
    assert done.returncode == (0 if case.is_right() else 4), done.stderr
    assert all(text in done.stderr for text in expected)


def nest(form: str, leaves: Tensors) -> Any:
    """The samples of the tree "dict" in a form that Python takes, the keys against the order of the inputs."""
    inner = dict(zip(("mask", "key", "query"), reversed(leaves), strict=True))
    parts = [{name: leaf[i : i + 8] for name, leaf in inner.items()} for i in (0, 8, 16)]
    return {
        "flat": inner,
        "nested": {"a": inner},
        "arguments": (inner,),
        "batches": parts,
        "labelled batches": [(part, part["mask"].sum(1)) for part in parts],
    }[form]


@pytest.mark.parametrize("form", ["flat", "nested", "arguments", "batches", "labelled batches"])
def test_python_matches_dictionaries_by_name(exported: Callable[..., Path], form: str):
    """The three sizes differ, so that what is fed in the order of the keys is refused."""
    leaves = make_leaves("by size", 5, samples=24)
    fast = binding.optimize(exported("dict", "by size"), data=nest(form, leaves), time="1s", threads=1)
    query, key, mask = leaves
    given = {"mask": mask, "key": key, "query": query}
    assert torch.equal(fast(given), Mixed()(*TREES["dict"][1](leaves)))


@pytest.mark.parametrize("naming", ["full", "last part"])
def test_python_warns_where_names_differ(exported: Callable[..., Path], naming: str):
    case = Case("dict", "equal", naming, (2, 1, 0), "npz")
    data = order_arrays(case, make_leaves("equal", 5, samples=24))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        binding.optimize(exported("dict", "equal"), data=data, time="1s", threads=1)
    messages = [str(warning.message) for warning in seen if issubclass(warning.category, binding.DataWarning)]
    if naming == "full":
        assert messages == []
    else:
        (text,) = messages
        assert "'query' feeds input 'a.query'" in text and "'mask' feeds input 'a.mask'" in text
        assert [warning.filename for warning in seen if str(warning.message) == text] == [__file__]


@pytest.mark.parametrize("form", ["flat", "arguments"])
def test_python_refuses_names_that_fit_nothing(exported: Callable[..., Path], form: str):
    foreign = dict(zip(("zeta", "eta", "theta"), make_leaves("equal", 5, samples=24), strict=True))
    data = foreign if form == "flat" else (foreign,)
    with pytest.raises(binding.InvalidInputError, match="zeta.*a.query"):
        binding.optimize(exported("dict", "equal"), data=data, time="1s", threads=1)


class Weighted(torch.nn.Module):
    """Every leaf counts with a weight of its own, which trains."""

    def __init__(self) -> None:
        super().__init__()
        self.weights = torch.nn.Parameter(torch.tensor([0.03, 0.05, 0.07]))

    def forward(self, a: Any) -> torch.Tensor:
        leaves = torch.utils._pytree.tree_leaves(a)
        return torch.stack([leaf.float().sum(1) for leaf in leaves], 1) @ self.weights


@pytest.mark.parametrize("types", ["equal", "by type"])
@pytest.mark.parametrize("naming", ["full", "last part", "foreign"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", KINDS)
def test_training_keeps_the_rule(
    lissome: Lissome, tmp_path: Path, kind: str, order: tuple[int, ...], naming: str, types: str
):
    """One step with the whole data as its batch: the weights that PyTorch learns from the same arguments."""
    case, samples = Case("dict", types, naming, order, kind), 24
    leaves = make_leaves(types, 3, samples)
    net, arguments = Weighted(), TREES["dict"][1](leaves)
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = torch.utils._pytree.tree_map(lambda _: {0: batch}, arguments)
    torch.export.save(torch.export.export(net, arguments, dynamic_shapes=shapes), tmp_path / "net.pt2")
    target = torch.randn(samples, generator=torch.Generator().manual_seed(4))
    write(tmp_path / f"data.{kind}", order_arrays(case, leaves) | {"target": target.numpy()})
    words = ("net.pt2", "--data", f"data.{kind}", "--labels", "target", "--loss", "mse", "--batch", samples)
    trained = lissome("train", *words, "--optimizer", "sgd", "--lr", "1e-5", "--clip", "0", "-o", "t.lissome",
                      "--weights-out", "w.safetensors")
    forecast = lissome("budget", *words, "--memory", "1GiB")
    if not case.is_right():
        for done in (trained, forecast):
            assert done.returncode == 4 and all(name in done.stderr for name in case.names()), done.stderr
        return
    assert trained.returncode == 0 and forecast.returncode == 0, trained.stderr + forecast.stderr
    torch.nn.functional.mse_loss(net(*arguments), target).backward()
    wanted = net.weights.detach() - 1e-5 * net.weights.grad
    assert not torch.allclose(wanted, net.weights, rtol=1e-4)
    np.testing.assert_allclose(load_file(tmp_path / "w.safetensors")["weights"], wanted.numpy(), rtol=1e-5)


def write_labelled(folder: Path, kind: str, levels: np.ndarray, labels: np.ndarray) -> list[str]:
    """Pictures of bytes in a file of one array, whose name is not the input's. The words that name it."""
    if kind == "csv":
        flat = levels.reshape(len(levels), -1) / np.float32(255)
        lines = [",".join([*(f"c{i}" for i in range(flat.shape[1])), "class"])]
        lines += [",".join([*map(repr, row.tolist()), str(label)]) for row, label in zip(flat, labels, strict=True)]
        (folder / "rows.csv").write_text("\n".join(lines) + "\n")
        return ["--data", "rows.csv", "--labels", "class"]
    if kind == "idx":
        sizes = b"".join(int(n).to_bytes(4, "big") for n in levels.shape)
        (folder / "rows-images-idx3-ubyte").write_bytes(b"\0\0\x08\x03" + sizes + levels.tobytes())
        (folder / "rows-labels-idx1-ubyte").write_bytes(b"\0\0\x08\x01" + sizes[:4] + labels.astype(np.uint8).tobytes())
        return ["--data", "rows-images-idx3-ubyte"]
    for i, (image, label) in enumerate(zip(levels, labels, strict=True)):
        (folder / "rows" / f"class{label}").mkdir(parents=True, exist_ok=True)
        write_png(folder / "rows" / f"class{label}" / f"{i:02}.png", image)
    return ["--data", "rows"]


def export_head(path: Path, shape: tuple[int, ...]) -> torch.nn.Module:
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 2))
    shapes = ({0: torch.export.Dim("batch", min=1, max=64)},)
    torch.export.save(torch.export.export(net, (torch.randn(4, *shape),), dynamic_shapes=shapes), path)
    return net


@pytest.mark.parametrize("kind", ["csv", "idx", "folder"])
def test_the_one_array_of_a_file_trains_the_one_input(lissome: Lissome, tmp_path: Path, kind: str):
    shape = (16,) if kind == "csv" else (1, 4, 4)
    levels = np.random.default_rng(3).integers(0, 256, (24, 4, 4), np.uint8)
    labels = np.arange(24) % 2
    net = export_head(tmp_path / "net.pt2", shape)
    words = ["net.pt2", *write_labelled(tmp_path, kind, levels, labels), "--batch", "24"]
    done = lissome("train", *words, "--optimizer", "sgd", "--lr", "0.5", "--clip", "0", "-o", "t.lissome", "--weights-out",
                   "w.safetensors")
    assert done.returncode == 0, done.stderr
    x = torch.from_numpy(levels / np.float32(255)).reshape(24, *shape)
    torch.nn.functional.cross_entropy(net(x), torch.from_numpy(labels)).backward()
    for name, tensor in net.named_parameters():
        wanted = (tensor.detach() - 0.5 * tensor.grad).numpy()
        np.testing.assert_allclose(load_file(tmp_path / "w.safetensors")[name], wanted, rtol=1e-4, atol=1e-6)
    forecast = lissome("budget", *words, "--memory", "1GiB")
    assert forecast.returncode == 0, forecast.stderr
    assert lissome("optimize", *words[:-2], "--time", "1s", "-o", "o.lissome").returncode == 0


def test_the_one_array_of_an_npy_feeds_the_one_input(lissome: Lissome, tmp_path: Path):
    rows = np.random.default_rng(3).random((24, 16), np.float32)
    net = export_head(tmp_path / "net.pt2", (16,))
    np.save(tmp_path / "rows.npy", rows)
    done = lissome("optimize", "net.pt2", "--data", "rows.npy", "--time", "2s", "--max-loss", "0", "-o", "o.lissome")
    assert done.returncode == 0, done.stderr
    assert lissome("run", "o.lissome", "--input", "rows.npy", "-o", "y.npz").returncode == 0
    (seen,) = np.load(tmp_path / "y.npz").values()
    np.testing.assert_allclose(seen, net(torch.from_numpy(rows)).detach().numpy(), rtol=1e-4, atol=1e-5)
