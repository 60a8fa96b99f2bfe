"""Calls of PyTorch's operators, taken from its own table of them (op_db), as modules that can be exported.

The table knows for each operator which element types it takes and gives samples of arguments. A call becomes a case in
up to two forms: every tensor is an input of the module; or the first is, and the others are its buffers, as the weights
of a layer are, which is what kernels that pack their weights ask for. What is no tensor is frozen.
"""

from __future__ import annotations

import copy
import functools
import itertools
import random
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.utils import _pytree as pytree

DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16, "i64": torch.int64, "bool": torch.bool}
FEW = {"f32": 2, "bf16": 1, "i64": 1, "bool": 1}  # samples of an operator
SEARCHED = 40  # samples among which the few are chosen
LARGEST = 1 << 16  # elements of the tensors of a sample


@dataclass(frozen=True)
class OpCase:
    """One call: `op(*args, **kwargs)`, with the leaves `tensors` of the arguments, by place."""

    op: Any
    name: str
    leaves: tuple[Any, ...]  # None in the place of a tensor
    tree: Any
    tensors: dict[int, torch.Tensor]
    frozen: frozenset[int]  # the places of tensors that are buffers of the module

    @property
    def inputs(self) -> list[torch.Tensor]:
        return [tensor for place, tensor in self.tensors.items() if place not in self.frozen]


class CallOp(nn.Module):
    """The call of a case; gives what the operator gives."""

    def __init__(self, case: OpCase) -> None:
        super().__init__()
        self.op, self.leaves, self.tree = case.op, case.leaves, case.tree
        self.places = [place for place in case.tensors if place not in case.frozen]
        for place in case.frozen:
            self.register_buffer(f"tensor{place}", case.tensors[place].clone())

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = dict(zip(self.places, tensors, strict=True))
        leaves = [given[place] if place in given else getattr(self, f"tensor{place}", leaf)
                  for place, leaf in enumerate(self.leaves)]
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        return unname(self.op(*args, **kwargs))


def unname(result: Any) -> Any:
    """torch.export.save refuses the named tuples of operators (torch.return_types): as plain ones."""
    if isinstance(result, tuple):
        return tuple(map(unname, result))
    return list(map(unname, result)) if isinstance(result, list) else result


class CallOps(nn.Module):
    """The calls of several cases, one after the other; a list of what they give. The first input is read by none: an
    operator may take no tensor."""

    def __init__(self, cases: list[OpCase]) -> None:
        super().__init__()
        self.calls = nn.ModuleList(CallOp(case) for case in cases)

    def forward(self, _unread: torch.Tensor, *tensors: torch.Tensor) -> list[Any]:
        rows = iter(tensors)
        return [call(*itertools.islice(rows, len(call.places))) for call in self.calls]


def gather_inputs(cases: list[OpCase]) -> tuple[torch.Tensor, ...]:
    """New tensors with each call."""
    return torch.zeros(1), *(copy_tensor(tensor) for case in cases for tensor in case.inputs)


def copy_tensor(tensor: torch.Tensor) -> torch.Tensor:
    """With strides, offset and the memory beside it, which a clone leaves out."""
    return copy.deepcopy(tensor) if tensor.layout == torch.strided else tensor.clone()


@functools.cache
def list_ops() -> dict[str, Any]:
    """The operators by their names in the table, which are unique."""
    return {op.full_name: op for op in op_db}


def seed_everything(name: str) -> None:
    seed = zlib.crc32(name.encode())
    torch.manual_seed(seed)
    numpy.random.seed(seed)
    random.seed(seed)


def list_cases(name: str, every: bool) -> list[OpCase]:
    """The cases of one operator, of all samples of the table or of a few."""
    op = list_ops()[name]
    supported = op.supported_dtypes("cpu")
    return [case for word, dtype in DTYPES.items() if dtype in supported for case in list_dtype(op, word, every)]


def list_dtype(op: Any, word: str, every: bool) -> Iterator[OpCase]:
    seed_everything(f"{op.full_name} {word}")
    given = op.sample_inputs("cpu", DTYPES[word], requires_grad=False)
    numbered = list(enumerate(given)) if every else choose(list(itertools.islice(given, SEARCHED)), FEW[word])
    for number, sample in numbered:
        leaves, tree = flatten_sample(sample)
        yield from list_forms(op, f"{op.full_name} {word} sample {number}", leaves, tree)


def flatten_sample(sample: Any) -> tuple[list[Any], Any]:
    return pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))


def choose(given: list[Any], samples: int) -> list[tuple[int, Any]]:
    """Again and again the first that adds most to what those before it have of ranks, layouts and values."""
    features = {number: list_features(sample) for number, sample in enumerate(given) if not is_large(sample)}
    chosen: list[int] = []
    seen: set[Any] = set()
    while features and len(chosen) < samples:
        best = max(features, key=lambda number: len(features[number] - seen))
        if chosen and not features[best] - seen:
            break
        chosen.append(best)
        seen |= features.pop(best)
    return [(number, given[number]) for number in sorted(chosen)]


def list_forms(op: Any, name: str, leaves: list[Any], tree: Any) -> Iterator[OpCase]:
    tensors = {place: leaf for place, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
    values = tuple(None if place in tensors else leaf for place, leaf in enumerate(leaves))
    yield OpCase(op, name, values, tree, tensors, frozenset())
    others = list(tensors)[1:]
    if others and all(t.layout == torch.strided for t in tensors.values()) and tensors[others[0]].is_floating_point():
        yield OpCase(op, f"{name}, weights frozen", values, tree, tensors, frozenset(others))


def list_features(sample: Any) -> set[Any]:
    """What makes a sample another one than those before it: which arguments there are and, of each, rank, type, layout,
    emptiness and its size beside the first tensor's; of what is no tensor its text."""
    leaves, tree = flatten_sample(sample)
    sizes = next((leaf.shape for leaf in leaves if isinstance(leaf, torch.Tensor)), None)
    features: set[Any] = {str(tree)}
    for place, leaf in enumerate(leaves):
        if not isinstance(leaf, torch.Tensor):
            features.add((place, repr(leaf)))
            continue
        dense = leaf.layout != torch.strided or leaf.is_contiguous()
        features |= {(place, leaf.dim()), (place, leaf.dtype, leaf.layout), (place, "dense", dense),
                     (place, "empty", leaf.numel() == 0), (place, "same", leaf.shape == sizes)}
    return features


def is_large(sample: Any) -> bool:
    leaves, _tree = flatten_sample(sample)
    return sum(leaf.numel() for leaf in leaves if isinstance(leaf, torch.Tensor)) > LARGEST
