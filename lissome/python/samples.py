"""The forms in which a caller may have samples: a path, arrays by name or in order, batches one after another."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy
import torch
from torch.utils import _pytree as pytree

from lissome import _lissome
from lissome.arguments import read_existing_path, refuse_type
from lissome.errors import InvalidInputError, UsageError, warn_of_data
from lissome.interrupts import keep_interrupt

LABELS = "labels"
_ONE_BY_ONE = "\n      Samples one by one are joined by torch.utils.data.DataLoader(data, batch_size=64)"


def _is_array(value: Any) -> bool:
    return isinstance(value, torch.Tensor) or hasattr(value, "__array__")


def _is_whole(data: Any, names: list[str]) -> bool:
    """Whether these are all samples, input by input, and not batches: arrays in order, nested as the arguments are."""
    if isinstance(data, tuple | list) and data and all(_is_array(item) for item in data):
        return True
    return isinstance(data, tuple) and len(pytree.tree_leaves(data)) == len(names)


def to_tensor(name: str, value: Any) -> torch.Tensor:
    try:
        if isinstance(value, numpy.ndarray):
            # torch takes neither negative strides nor the other order of bytes.
            value = value.astype(value.dtype.newbyteorder("="), copy=any(stride < 0 for stride in value.strides))
        return torch.as_tensor(value)
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidInputError(f"data: {name} is not an array of numbers: {error}") from error


def gather_samples(data: Any, labels: Any, names: list[str]) -> _lissome.Dataset:
    """A dataset for a model with inputs of these names.

    data: a path; {name: array}; an array; a tuple of arrays in the order of the inputs; or an iterable (such as a
    DataLoader) of batches, each (inputs, label), inputs alone, or {name: array}. labels: the name of the array (or
    file) that holds them, or the labels themselves.
    """
    if isinstance(data, str | PathLike):
        if labels is not None and not isinstance(labels, str | PathLike):
            raise UsageError("labels: with a path as data, labels are the name of an array in it (or of a file)")
        return _lissome.load_dataset(_check_data_path(data), "" if labels is None else fspath(labels))
    columns, name = gather_columns(data, labels, names)
    return _lissome.make_dataset(list(columns.items()), name)


def warn_of_fit(program: _lissome.Program, dataset: _lissome.Dataset, *, skip_bad: bool = False) -> None:
    """A DataWarning for each thing that is done to the data."""
    for note in _lissome.describe_fit(program, dataset, skip_bad):
        warn_of_data(note)


def warn_of_batches(data: Any, batch: int | None) -> None:
    """A DataWarning where a DataLoader makes batches of another size than an update sees."""
    size = getattr(data, "batch_size", None) if isinstance(data, torch.utils.data.DataLoader) else None
    if size is not None and batch is not None and size != batch:
        warn_of_data(
            f"the DataLoader makes batches of {size} samples, which are joined and shuffled anew: an update sees "
            f"batch={batch}; give batch={size} for as many as the loader's"
        )


def read_good_samples(data: Any) -> list[Any]:
    """The samples of a torch Dataset that can be had; a DataWarning names the others."""
    samples, errors = [], {}
    for number in range(len(data)):
        try:
            samples.append(data[number])
        except Exception as error:  # noqa: BLE001  any error of the user's code
            errors[number] = error
    if not samples:
        raise InvalidInputError("data: there is no sample that can be had") from next(iter(errors.values()), None)
    if errors:
        number, reason = next(iter(errors.items()))
        warn_of_data(f"{len(errors)} samples cannot be read and are left out; sample {number}: {reason!r}")
    return samples


def _check_data_path(data: str | PathLike[str]) -> str:
    """"DIR:train" names a part of a folder."""
    path = fspath(data)
    if not Path(path).exists() and ":" not in path:
        read_existing_path("data", path)
    return path


@keep_interrupt()
def gather_columns(data: Any, labels: Any, names: list[str]) -> tuple[dict[str, torch.Tensor], str]:
    """Tensors by name, and the name of the labels among them, empty where there are none. `data` is no path."""
    if isinstance(data, torch.utils.data.Dataset) and hasattr(data, "__len__"):
        data = torch.utils.data.DataLoader(data, batch_size=64)
    if isinstance(data, Mapping) and not all(_is_array(value) for value in data.values()):
        columns = _name_paths(data)
    elif isinstance(data, Mapping):
        columns = {str(name): to_tensor(str(name), value) for name, value in data.items()}
    elif _is_array(data):
        columns = _name_leaves([data], names)
    elif _is_whole(data, names):
        columns = _name_arguments(data, names)
    elif isinstance(data, Iterable):
        columns = _join_batches(data, names, labels if isinstance(labels, str) else LABELS)
        if labels is None and LABELS in columns:
            labels = LABELS
    else:
        refuse_type("data", data, "a path, arrays by name, an array, a tuple of arrays, or an iterable of batches")
    if isinstance(labels, str):
        return columns, labels
    if labels is None:
        return columns, ""
    columns[LABELS] = to_tensor(LABELS, labels)
    return columns, LABELS


def _name_leaves(leaves: list[Any], names: list[str]) -> dict[str, torch.Tensor]:
    if len(leaves) != len(names):
        raise InvalidInputError(
            f"data: {len(leaves)} arrays are given, the model takes {len(names)} ({', '.join(names)})"
        )
    return {name: to_tensor(name, leaf) for name, leaf in zip(names, leaves, strict=True)}


def _name_paths(data: Any) -> dict[str, torch.Tensor]:
    """The arrays of nested dictionaries, lists and tuples by their paths: {"a": {"b": x}} has a.b."""
    columns = {}
    for path, leaf in pytree.tree_leaves_with_path(data):
        name = ".".join(str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", "")))) for key in path)
        columns[name] = to_tensor(name, leaf)
    return columns


def _holds_mapping(value: Any) -> bool:
    return isinstance(value, Mapping) or (isinstance(value, tuple | list) and any(map(_holds_mapping, value)))


def _name_arguments(arguments: Any, names: list[str]) -> dict[str, torch.Tensor]:
    """Arguments of a call: arrays and tuples take the names of the inputs in order, dictionaries their own paths."""
    if isinstance(arguments, Mapping):
        return _name_paths(dict(arguments))
    if not _holds_mapping(arguments) or len(pytree.tree_leaves(arguments)) != len(names):
        return _name_leaves(pytree.tree_leaves(arguments), names)
    columns: dict[str, torch.Tensor] = {}
    for argument in arguments:
        leaves = pytree.tree_leaves(argument)
        taken = names[len(columns) : len(columns) + len(leaves)]
        if taken and _holds_mapping(argument):
            columns |= _name_paths({taken[0].split(".")[0]: argument})
        else:
            columns |= _name_leaves(leaves, taken)
    return columns


def read_batch(batch: Any, names: list[str], labels: str) -> dict[str, torch.Tensor]:
    if isinstance(batch, Mapping):
        return _name_paths(dict(batch))
    if isinstance(batch, tuple | list) and len(batch) == 2 and len(pytree.tree_leaves(batch[0])) == len(names):
        return {**_name_arguments(batch[0], names), labels: to_tensor(labels, batch[1])}
    if isinstance(batch, tuple | list) and len(pytree.tree_leaves(batch)) == len(names) + 1:
        return {**_name_arguments(batch[:-1], names), labels: to_tensor(labels, batch[-1])}
    return _name_arguments(batch, names)


def _join_batches(batches: Iterable[Any], names: list[str], labels: str) -> dict[str, torch.Tensor]:
    parts: dict[str, list[torch.Tensor]] = {}
    for batch in batches:
        for name, tensor in read_batch(batch, names, labels).items():
            parts.setdefault(name, []).append(tensor)
    if not parts:
        raise InvalidInputError("data: there is no batch in it; at least two samples are needed")
    try:
        return {name: torch.cat(tensors) for name, tensors in parts.items()}
    except RuntimeError as error:
        hint = "" if any(tensor.dim() for tensors in parts.values() for tensor in tensors) else _ONE_BY_ONE
        raise InvalidInputError(f"data: the batches do not fit together: {error}{hint}") from error
