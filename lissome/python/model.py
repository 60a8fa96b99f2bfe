"""A finished model as a callable, and how it is loaded: free of torch, which is used where the caller brings it."""

from __future__ import annotations

import asyncio
import copy
import json
import tempfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from lissome import _runtime
from lissome.arguments import read_existing_path, read_integer, read_number, read_path, read_quantity, read_threads, refuse_type
from lissome.errors import InvalidInputError, MissingPackageError, UsageError, list_names, warn_of_data
from lissome.tree import InputTree, OutputTree
from lissome.values import is_tensor, to_flat, to_numpy, to_tensor


class Value(NamedTuple):
    """An input or output of a model."""

    name: str
    dtype: str
    """"f32", "i64", ...; "int", "float" or "bool" for a number of Python; "" where only a run tells."""
    shape: tuple[int | str, ...] | None
    """Sizes; a name or a formula where a size depends on the call. None where only a run tells."""

    def __str__(self) -> str:
        sizes = "" if self.shape is None else f"[{', '.join(map(str, self.shape))}]"
        return f"{self.name}: {self.dtype or 'unknown'}{sizes if self.shape or self.dtype not in _NUMBERS else ''}"


_NUMBERS = ("int", "float", "bool")  # of Python; "bool" is a type of elements too


class StreamFacts(NamedTuple):
    """The cost of a limit on memory, see FastModel.stream."""

    weights: int
    streamed: int
    bytes_per_second: float


class _Padding(NamedTuple):
    """How a model was padded, so that copies can be padded in the same way."""

    dimension: str
    sizes: list[int]
    pads: dict[str, float]
    example: list[Any]


def _read_metadata(text: str, key: str) -> dict[str, Any]:
    try:
        found = json.loads(text or "{}")
        part = found.get(key, {}) if isinstance(found, dict) else None
    except (ValueError, RecursionError):
        part = None
    if not isinstance(part, dict):
        raise InvalidInputError(f"metadata.json of the model is no JSON object, or its {key} is none")
    return part


class FastModel:
    """A finished model: takes the module's own arguments, returns the module's own structure.

    Tensors of torch give tensors; numpy arrays, or no inputs at all, give numpy arrays. Inputs are lent, not copied, where they are dense in
    row order and in the memory of the CPU, and never written to; results own their memory. Several threads may call one model; their calls
    take turns. Models can be pickled and copied: a pickle holds the bytes of the file, a copy shares the weights and has
    a state of its own, which begins as the file has it.
    """

    def __init__(
        self, model: _runtime.Model, report: str = "", padding: _Padding | None = None, as_numpy: bool = False
    ):
        self._model = model
        self._padding = padding
        self._as_numpy = as_numpy
        self._names = [name for name, _, _ in model.inputs]
        self._inputs = InputTree(model.input_tree, self._names)
        self._outputs = OutputTree(model.output_tree, len(model.outputs))
        self.report = report
        """The HTML page of the optimization; empty where there was none."""
        self.record = _read_metadata(model.metadata, "optimization")
        """Every step with its figures, as in the result of `lissome optimize --json`."""
        self.precision = _read_metadata(model.metadata, "precision")
        """Of a prepared model: `how` it computes, its `relative_error` to f32 where data measured it, and `notes`."""
        for name in model.written_inputs if padding is None else ():
            warn_of_data(f"the module writes to its argument {name}; this model leaves the caller's {name} as it is")

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        leaves = self._inputs.flatten(arguments, keywords)
        count = len(self._names)
        if len(leaves) != count:
            raise InvalidInputError(f"{len(leaves)} inputs are given, the model takes {count}: {list_names(self._names)}")
        flat = [to_flat(name, leaf) for name, leaf in zip(self._names, leaves, strict=True)]
        convert = to_tensor if not self._as_numpy and any(map(is_tensor, leaves)) else to_numpy
        return self._outputs.unflatten([convert(result) for result in self._model.run(flat)])

    async def run_async(self, *arguments: Any, **keywords: Any) -> Any:
        """The same call on a thread of asyncio's pool: `await model.run_async(x)` leaves the event loop free."""
        return await asyncio.to_thread(self, *arguments, **keywords)

    def to_numpy(self) -> FastModel:
        """The same model and session, whose results are numpy arrays whatever it is given. Elements that numpy lacks
        (bf16, f8) become float32."""
        return FastModel(self._model, self.report, self._padding, as_numpy=True)

    def __repr__(self) -> str:
        inputs, outputs = (", ".join(map(str, values)) for values in (self.inputs, self.outputs))
        return f"<lissome model ({inputs}) -> ({outputs}): {self.record.get('answer', 'not measured')}>"

    @property
    def inputs(self) -> tuple[Value, ...]:
        """Name, element type and shape of every input, in the order of the flat arguments."""
        return tuple(Value(*row) for row in self._model.inputs)

    @property
    def outputs(self) -> tuple[Value, ...]:
        return tuple(Value(*row) for row in self._model.outputs)

    @property
    def threads(self) -> int:
        return self._model.threads

    @property
    def stream(self) -> StreamFacts:
        """The cost of a limit on memory: bytes of all `weights`, bytes of them that are `streamed` from the file with
        every call, and the `bytes_per_second` of the file. All are 0 without a limit, and until the first call if the
        model has dynamic sizes."""
        facts = self._model.stream
        return StreamFacts(facts.weights, facts.streamed, facts.bytes_per_second)

    def pad_to(
        self,
        dimension: str,
        sizes: Sequence[int],
        example_inputs: Any = (),
        *,
        example_kwargs: dict[str, Any] | None = None,
        pads: Mapping[str, float],
    ) -> FastModel:
        """The same model with `dimension` ("sequence", or "ids.1": dimension 1 of input ids) padded up to the next of
        `sizes` and outputs cut back, so that few sizes are planned. pads: the number (True or False for an input of
        bool) that pads each input with that dimension.

        Only right where the model takes no notice of what is padded, which the example proves: fewer of the dimension
        than the largest size, run as it is and in every size above it. UnsupportedError, with the figure, where answers
        differ. `seen_difference` of the result says by how much they did.
        """
        if not isinstance(dimension, str):
            refuse_type("dimension", dimension, "a name")
        if not isinstance(sizes, Sequence):
            refuse_type("sizes", sizes, "a list of integers")
        if not isinstance(pads, Mapping):
            refuse_type("pads", pads, "a dictionary of numbers by input")
        leaves = self._inputs.flatten(as_tuple(example_inputs), example_kwargs or {})
        example = [to_flat(name, leaf) for name, leaf in zip(self._names, leaves, strict=True)]
        padding = _Padding(
            dimension,
            [read_integer("a size", size) for size in sizes],
            {str(name): self._read_pad(str(name), pad) for name, pad in pads.items()},
            example,
        )
        return self._pad(self._model, padding)

    def _read_pad(self, name: str, pad: Any) -> float:
        if isinstance(pad, bool) and any(value.name == name and value.dtype == "bool" for value in self.inputs):
            return float(pad)
        return read_number(f"pads[{name!r}]", pad)

    def _pad(self, model: _runtime.Model, padding: _Padding) -> FastModel:
        return FastModel(model.pad_to(*padding), self.report, padding, self._as_numpy)

    @property
    def seen_difference(self) -> float | None:
        """The difference that padding makes in the example's outputs, relative to their largest element; None without
        buckets."""
        return self._model.seen_difference

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a .lissome file: plan, weights and record; the program too where keep_original was asked for. What
        pad_to() adds stays with the object."""
        self._model.save(read_path("path", path))

    def __deepcopy__(self, memory: dict[int, Any]) -> FastModel:
        model = self._model.copy()
        if self._padding is not None:
            return self._pad(model, self._padding)
        return FastModel(model, self.report, None, self._as_numpy)

    def __copy__(self) -> FastModel:
        return copy.deepcopy(self)

    def __reduce__(self) -> tuple[Any, ...]:
        with tempfile.TemporaryDirectory(prefix="lissome-") as folder:
            path = Path(folder) / "model.lissome"
            self._model.save(str(path))
            data = path.read_bytes()
        limits = (self._model.asked_threads, self._model.memory)
        return _unpickle, (data, *limits, self.report, self._padding and tuple(self._padding), self._as_numpy)


def _unpickle(  # noqa: PLR0913  what FastModel.__reduce__ writes
    data: bytes, threads: int, memory: int, report: str, padding: tuple[Any, ...] | None, as_numpy: bool
) -> FastModel:
    """Through the reader of files, with all that it checks: a pickle holds the bytes of one."""
    with tempfile.TemporaryDirectory(prefix="lissome-") as folder:
        path = Path(folder) / "model.lissome"
        path.write_bytes(data)
        model = _load_any(str(path), threads, memory)  # what is mapped stays when the file is gone
    fast = FastModel(model, report, None, as_numpy)
    return fast if padding is None else fast._pad(model, _Padding(*padding))


def _load_any(path: str, threads: int, memory: int) -> _runtime.Model:
    model = _runtime.load_model(path, threads, memory)
    if model is not None:
        return model
    try:
        from lissome import making  # noqa: PLC0415  needs torch, and the package that makes models
    except ImportError as error:
        raise MissingPackageError(
            f"{path} is not a finished model, and other kinds need torch and the package lissome beside lissome-runtime: "
            f"{error}\n      Install them: pip install lissome torch"
        ) from error
    return making.load_unfinished(path, threads, memory)


def load(path: str | PathLike[str], *, threads: int = 0, memory: str | int | None = None) -> FastModel:
    """Opens a .lissome file, or a .pt2, which runs without optimization. threads: 0 for the number that the model was
    measured with.

    memory: most memory for weights and intermediate values, "64MiB" or bytes; weights beyond it are read from the file
    with every call. Raises OverBudgetError, here or in a call with large inputs, naming the smallest limit that is
    enough, and UnsupportedError if a node runs in libtorch, as all nodes of a .pt2 do.
    """
    file = read_existing_path("path", path)
    return FastModel(_load_any(file, read_threads(threads), read_memory(memory)))


def read_memory(memory: Any, name: str = "memory") -> int:
    """Bytes; 0 for no limit."""
    if memory is None:
        return 0
    quantity = read_quantity(name, memory)
    count = _runtime.parse_bytes(quantity) if isinstance(quantity, str) else quantity
    if not 1 <= count < 9e18 or count % 1:
        allowed = "a whole number" if count % 1 else "1 or more"
        raise UsageError(f"{name} is {count:.12g} bytes; {allowed} is allowed")
    return int(count)


def as_tuple(arguments: Any) -> tuple[Any, ...]:
    return tuple(arguments) if isinstance(arguments, tuple | list) else (arguments,)
