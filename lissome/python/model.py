"""optimize, prepare and load: modules and files in, callables out."""

from __future__ import annotations

import json
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree

from lissome import _lissome
from lissome.samples import gather_samples
from lissome.tree import InputTree, OutputTree

Model = torch.nn.Module | str | PathLike[str]


class FastModel:
    """A finished model: takes the module's own arguments, returns the module's own structure.

    Inputs are lent, not copied, where they are dense tensors on the CPU. Several threads may call one model; their
    calls take turns.
    """

    def __init__(self, model: _lissome.Model, report: str = ""):
        self._model = model
        self._inputs = InputTree(model.input_tree, model.input_names)
        self._outputs = OutputTree(model.output_tree)
        self.report = report
        """The HTML page of the optimization; empty where there was none."""
        self.record: dict[str, Any] = json.loads(model.metadata or "{}").get("optimization", {})
        """Every step with its figures, as `lissome optimize --json` prints it."""

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        return self._outputs.unflatten(self._model.run(self._inputs.flatten(arguments, keywords)))

    def __repr__(self) -> str:
        return f"<lissome model of {', '.join(self._model.input_names)}: {self.record.get('answer', 'not measured')}>"

    @property
    def threads(self) -> int:
        return self._model.threads

    @property
    def stream(self) -> _lissome.StreamFacts:
        """What a limit on memory costs: bytes of all `weights`, of these the bytes `streamed` from the file with every
        call, and at how many `bytes_per_second`. All 0 without a limit, and until sizes are known: from the first call
        on, or at once where the model has fixed ones."""
        return self._model.stream

    def pad_to(  # noqa: PLR0913
        self,
        dimension: str,
        sizes: Sequence[int],
        example_inputs: Any = (),
        *,
        example_kwargs: dict[str, Any] | None = None,
        pads: Mapping[str, float],
    ) -> FastModel:
        """The same model with `dimension` ("sequence", or "ids.1": dimension 1 of input ids) padded up to the next of
        `sizes` and outputs cut back, so that few sizes are planned. pads: what fills the new places, for every input
        with that dimension.

        Only right where the model takes no notice of what is padded, which the example proves: fewer of the dimension
        than the largest size, run as it is and in every size above it. UnsupportedError, with the figure, where answers
        differ. `seen_difference` of the result says by how much they did.
        """
        example = self._inputs.flatten(_as_tuple(example_inputs), example_kwargs or {})
        return FastModel(self._model.pad_to(dimension, list(sizes), dict(pads), example), self.report)

    @property
    def seen_difference(self) -> float | None:
        """What padding changed in the example's answers, relative to their largest element; None without buckets."""
        return self._model.seen_difference

    def save(self, path: str | PathLike[str]) -> None:
        """Writes a .lissome file: program, plan, weights and record."""
        self._model.save(fspath(path))


def load(path: str | PathLike[str], *, threads: int = 0, memory: str | int | None = None) -> FastModel:
    """A .lissome file as it was saved; a .pt2 is run as it is. threads: 0 for one on each core that this process may use.

    memory: what weights and intermediate values may take, "64MiB" or bytes; weights beyond it are read from the file
    with every call. OverBudgetError, from here or from a call with large inputs, names the least that is needed;
    UnsupportedError where a node runs in libtorch, as all of a .pt2 do.
    """
    return FastModel(_lissome.load_model(fspath(path), threads, to_quantity(memory)))


def prepare(model: Model, example_inputs: Any = None, *, example_kwargs: Any = None, threads: int = 0) -> FastModel:
    """The exact steps alone: eval form, folded, fused, laid out. No data, no search."""
    return FastModel(_lissome.prepare_model(open_program(model, example_inputs, example_kwargs, many=True), threads))


def optimize(  # noqa: PLR0913  one keyword for each flag of `lissome optimize`
    model: Model,
    example_inputs: Any = None,
    *,
    example_kwargs: dict[str, Any] | None = None,
    data: Any = None,
    labels: Any = None,
    metric: str | None = None,
    latency: str | float | None = None,
    memory: str | int | None = None,
    max_loss: str | float = 0.005,
    batch: int = 1,
    threads: int = 0,
    time: str | float = "10min",
    seed: int = 0,
    report: str | PathLike[str] | None = None,
    output: str | PathLike[str] | None = None,
    progress: Callable[[str, str, float, float], None] | None = None,
) -> FastModel:
    """Makes a model faster or smaller; each step is measured against the step before, on your data.

    model: a module (exported with example_inputs, a tuple of its arguments) or the path of a .pt2 or .lissome.
    data, labels: see lissome.samples.gather_samples; without data only exact steps are tried.
    latency: goal for one call, "5ms" or seconds. memory: goal, "200MiB" or bytes. max_loss: what the metric may lose,
    absolute, 0.005 or "0.5%". time: bound on the whole search, "10min" or seconds. report, output: files to write.
    progress: called with stage, message, fraction done, seconds left (-1: not known).

    A goal out of reach is no error: the closest point comes back, record["blocker"] says what stands in the way.
    Ctrl-C returns the best so far.
    """
    program = open_program(model, example_inputs, example_kwargs, many=data is not None)
    dataset = None if data is None else gather_samples(data, labels, program.input_names)
    arguments = _lissome.OptimizeArguments()
    arguments.metric = metric
    arguments.latency = to_quantity(latency)
    arguments.memory = to_quantity(memory)
    arguments.max_loss = to_quantity(max_loss)
    arguments.time = to_quantity(time)
    arguments.batch = batch
    arguments.threads = threads
    arguments.seed = seed
    arguments.name = fspath(model) if not isinstance(model, torch.nn.Module) else type(model).__name__
    arguments.command = f"lissome.optimize({arguments.name}, ..., max_loss={max_loss!r}, batch={batch}, seed={seed})"
    finished, page = _lissome.optimize(program, dataset, arguments, progress)
    fast = FastModel(finished, page)
    if output is not None:
        fast.save(output)
    if report is not None:
        _lissome.write_file(fspath(report), page)
    if fast.record["interrupted"]:
        warnings.warn("interrupted: this is the best so far", stacklevel=2)
    return fast


def _as_tuple(arguments: Any) -> tuple[Any, ...]:
    return tuple(arguments) if isinstance(arguments, tuple | list) else (arguments,)


def to_quantity(value: Any) -> Any:
    return value if value is None or isinstance(value, str) else float(value)


def open_program(
    model: Model, example_inputs: Any, example_kwargs: Any, *, many: bool, training: bool = False
) -> _lissome.Program:
    """A file as it is, or a module by way of torch.export: in eval form, or `training`: in the form in which it is.
    `many`: with a batch of any size where the export allows."""
    if not isinstance(model, torch.nn.Module):
        return _lissome.open_program(fspath(model))
    if example_inputs is None:
        raise _lissome.UsageError("example_inputs: a module is exported with them; give a tuple of its arguments")
    exported = _export(model, _as_tuple(example_inputs), example_kwargs or {}, many=many, training=training)
    with tempfile.TemporaryDirectory(prefix="lissome-") as folder:
        path = Path(folder) / "module.pt2"
        try:
            torch.export.save(exported, path)
        except NotImplementedError as error:  # a type of arguments or results that torch does not know to store
            raise _lissome.UnsupportedError(f"torch.export.save refuses the module: {error}") from error
        return _lissome.open_program(str(path))  # what is mapped stays when the file is gone


@contextmanager
def _in_eval_form(module: torch.nn.Module) -> Iterator[None]:
    training = [part for part in module.modules() if part.training]
    module.eval()
    try:
        yield
    finally:
        for part in training:
            part.training = True


def _export(
    module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any], *, many: bool, training: bool
) -> torch.export.ExportedProgram:
    with nullcontext() if training else _in_eval_form(module), torch.no_grad():
        if many and (call := _widen_batch(arguments, keywords)) is not None:
            wide, shapes = call
            try:
                return torch.export.export(module, *wide, dynamic_shapes=shapes, strict=False)
            except Exception:  # noqa: BLE001, S110  whatever torch has against it: the sizes stay as given
                pass
        try:
            return torch.export.export(module, arguments, keywords, strict=False)
        except Exception as error:
            lines = str(error).strip().splitlines() or [type(error).__name__]
            raise _lissome.UnsupportedError(f"torch.export refuses the module: {lines[0]}") from error


def _widen_batch(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> tuple[Any, Any] | None:
    """The same call with a batch of at least two (torch.export freezes a size of one), and its first sizes named."""
    leaves = [leaf for leaf in pytree.tree_leaves((arguments, keywords)) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    if not leaves:
        return None
    size = leaves[0].shape[0]
    batch = torch.export.Dim("batch", min=1)

    def is_batched(leaf: Any) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and leaf.shape[0] == size

    def widen(leaf: Any) -> Any:
        return torch.cat([leaf, leaf]) if is_batched(leaf) and size == 1 else leaf

    wide = pytree.tree_map(widen, (arguments, keywords))
    shapes = pytree.tree_map(lambda leaf: {0: batch} if is_batched(leaf) else None, (arguments, keywords))
    return wide, _by_name(shapes)


def _by_name(shapes: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """dynamic_shapes in the form that torch.export takes: a tuple, or a dict where keywords are in play."""
    arguments, keywords = shapes
    return tuple(arguments) if not keywords else (*arguments, *keywords.values())
