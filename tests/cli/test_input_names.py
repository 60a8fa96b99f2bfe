"""Which array feeds which input: a generated matrix of input trees, names, orders of the file, types and file kinds.

The expected outcome of a case follows from a rule written here, apart from the implementation: names that carry a place
(full names, unique ends of full names, arr_0 and following) decide; other names are accepted only where types and sizes
leave one assignment, and where none of the names fits. Right means PyTorch's own answer for the same arguments; everything else must be refused.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lissome as binding
import numpy as np
import pytest
import torch
from safetensors.numpy import save_file

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
NAMINGS = ["full", "last part", "longer", "arr", "foreign", "one foreign"]
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


@pytest.mark.parametrize("form", ["flat", "arguments"])
def test_python_refuses_names_that_fit_nothing(exported: Callable[..., Path], form: str):
    foreign = dict(zip(("zeta", "eta", "theta"), make_leaves("equal", 5, samples=24), strict=True))
    data = foreign if form == "flat" else (foreign,)
    with pytest.raises(binding.InvalidInputError, match="zeta.*a.query"):
        binding.optimize(exported("dict", "equal"), data=data, time="1s", threads=1)
