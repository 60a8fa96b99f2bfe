"""optimize, prepare and quantize: modules and files in, finished models out. Needs torch."""

from __future__ import annotations

import inspect
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import torch  # its libraries first: the binding finds them loaded
from torch.utils import _pytree as pytree

from lissome import _lissome, _runtime
from lissome.arguments import (
    read_callable,
    read_existing_path,
    read_flag,
    read_fraction,
    read_integer,
    read_number,
    read_path,
    read_quantity,
    read_text,
    read_texts,
    read_threads,
    refuse_type,
)
from lissome.errors import Error, Interrupted, UnsupportedError, UsageError, warn_of_data
from lissome.interrupts import delay_interrupt
from lissome.model import FastModel, as_tuple, read_memory
from lissome.own_backward import refuse_hooks, refuse_own_backward
from lissome.samples import gather_samples, warn_of_fit
from lissome.tree import add_parameters

if TYPE_CHECKING:
    from lissome.training import Trained

Model: TypeAlias = "torch.nn.Module | torch.export.ExportedProgram | Trained | str | PathLike[str]"
Progress: TypeAlias = Callable[[str, str, float, float], None]


def load_unfinished(path: str, threads: int, memory: int) -> _runtime.Model:
    """A .pt2, or a .lissome without a plan: imported as it is, every node by the reference."""
    return _runtime.adopt_model(_lissome.load_model(path, threads, memory))


def prepare(
    model: Model,
    example_inputs: Any = None,
    *,
    example_kwargs: Any = None,
    precision: str = "f32",
    data: Any = None,
    threads: int = 0,
    keep_original: bool = False,
) -> FastModel:
    """Makes a model faster without a search: eval form, folding, fusion, layout. In f32 these steps are exact.

    precision: "f32", "bf16" or "int8". Nothing is undone for what bf16 and int8 lose: `precision["relative_error"]` of
    the result says how far its answers are from those in f32. data: samples to measure that on, needed for int8, which
    reads the ranges of activations off one half of them; see lissome.samples.gather_samples.
    keep_original: save() also writes the program and its weights, so that the file can be optimized or prepared again.
    """
    threads = read_threads(threads)
    precision = read_text("precision", precision)
    keep_original = read_flag("keep_original", keep_original)
    program = open_program(model, example_inputs, example_kwargs)
    warn_of_eval_form(program)
    dataset = None if data is None else gather_samples(data, None, program.input_names)
    if dataset is not None:
        warn_of_fit(program, dataset)
    return finish(program, threads, precision=precision, dataset=dataset, keep_original=keep_original)


def quantize(  # noqa: PLR0913  one keyword for each flag of `lissome quantize`
    model: Model,
    example_inputs: Any = None,
    *,
    example_kwargs: Any = None,
    data: Any = None,
    kind: str = "static",
    bits: int = 8,
    observer: str = "mse",
    rounding: str = "gptq",
    only: str | list[str] | tuple[str, ...] = (),
    skip: str | list[str] | tuple[str, ...] = (),
    least_signal: float = 18.0,
    train_data: Any = None,
    labels: Any = None,
    loss: str = "cross_entropy",
    epochs: int = 3,
    lr: float = 1e-4,
    batch: int = 32,
    seed: int = 0,
    threads: int = 0,
    keep_original: bool = False,
) -> FastModel:
    """Makes the quantized form of a model that the arguments describe. Nothing is searched or undone; optimize does that.

    data: samples of which one half gives the ranges of activations and the other measures the error; see
    lissome.samples.gather_samples. kind: "static", a scale for each activation, "dynamic", where linears find a scale for
    each row while running, or "weight", where linears unpack a weight of `bits` (8 or 4) while running, which needs no
    data and in 4 bits loses less with data. observer: how ranges are chosen, "minmax", "average", "percentile", "entropy"
    or "mse". rounding: how weights of 4 bits are rounded where there are data, "gptq" or "nearest".
    only, skip: patterns of modules ("encoder.*") that alone are quantized, and that are not. least_signal: layers whose
    output keeps less signal over quantization noise, in decibels, stay in f32.
    kind "qat" is static with weights and scales that are trained to make up for the rounding: train_data with labels are
    its samples, as those of lissome.train; loss, epochs, batch, seed and lr, from which the rate of AdamW falls to 0, say
    how. The module itself keeps its weights. labels that are the name of an array label `data` too, whose accuracy is then
    measured.
    `precision` of the result holds the `relative_error` to f32, the `accuracy`, and what became of each of its `layers`.
    """
    arguments = _lissome.QuantizeArguments()
    arguments.kind = read_text("kind", kind)
    arguments.bits = read_integer("bits", bits, least=4, most=8)
    arguments.observer = read_text("observer", observer)
    arguments.rounding = read_text("rounding", rounding)
    arguments.only = read_texts("only", only)
    arguments.skip = read_texts("skip", skip)
    arguments.least_signal = read_number("least_signal", least_signal)
    arguments.loss = read_text("loss", loss)
    arguments.epochs = read_integer("epochs", epochs, least=1)
    arguments.batch = read_integer("batch", batch, least=1)
    arguments.lr = read_number("lr", lr)
    arguments.seed = read_integer("seed", seed)
    arguments.threads = read_threads(threads)
    arguments.keep_original = read_flag("keep_original", keep_original)
    if kind != "qat" and (loss, epochs, lr, batch, seed) != ("cross_entropy", 3, 1e-4, 32, 0):
        raise UsageError('loss, epochs, lr, batch and seed are for kind="qat"')
    if kind in ("qat", "weight") and least_signal != 18.0:
        raise UsageError('least_signal is for kind="static" and kind="dynamic"')
    if labels is not None and not isinstance(labels, str) and train_data is None:
        raise UsageError("labels: with data alone, labels are the name of an array in it; give data={..., name: array}")
    program = open_program(model, example_inputs, example_kwargs)
    warn_of_eval_form(program)
    of_data = labels if isinstance(labels, str) else None
    dataset = None if data is None else gather_samples(data, of_data, program.input_names)
    train_set = None if train_data is None else gather_train_data(train_data, labels, program.input_names)
    for samples in (dataset, train_set):
        if samples is not None:
            warn_of_fit(program, samples)
    return FastModel(_runtime.adopt_model(_lissome.quantize_model(program, dataset, train_set, arguments)))


def gather_train_data(data: Any, labels: Any, names: list[str]) -> _lissome.Dataset:
    try:
        return gather_samples(data, labels, names)
    except Error as error:
        raise type(error)(f"train_data: {error}") from error


def warn_of_eval_form(program: _lissome.Program) -> None:
    """What the notes of the shell say of a model in train form, and of one whose calls update its state."""
    for note in _lissome.describe_eval_form(program):
        warn_of_data(note, UserWarning)


def finish(
    program: _lissome.Program,
    threads: int = 0,
    *,
    precision: str = "f32",
    dataset: _lissome.Dataset | None = None,
    keep_original: bool = False,
) -> FastModel:
    made = _lissome.prepare_model(program, dataset, precision, threads, keep_original)
    return FastModel(_runtime.adopt_model(made))


class Best:
    """The best model or training that is ready, None before there is one."""

    value: Any = None


@contextmanager
def keep_best(work: str) -> Iterator[Best]:
    """Turns a KeyboardInterrupt inside the block into Interrupted, with the best value that was set so far."""
    best = Best()
    try:
        yield best
    except KeyboardInterrupt as error:
        raise explain_interrupt(work, best.value) from error


def explain_interrupt(work: str, best: Any) -> Interrupted:
    if best is None:
        return Interrupted(f"{work} was interrupted before anything was ready")
    return Interrupted(f"{work} was interrupted; `best` of this exception is the best model so far", best)


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
    size: str | int | None = None,
    throughput: str | float | None = None,
    first_answer: str | float | None = None,
    max_loss: str | float = 0.005,
    batch: int | None = None,
    threads: int = 0,
    time: str | float = "10min",
    seed: int = 0,
    report: str | PathLike[str] | None = None,
    output: str | PathLike[str] | None = None,
    front: str | PathLike[str] | None = None,
    keep_original: bool = False,
    progress: Progress | None = None,
) -> FastModel:
    """Makes a model faster or smaller. Each step is measured on your data against the step before.

    model: a module (exported with example_inputs, a tuple of its arguments), the result of lissome.train, or the path
    of a .pt2 or .lissome.
    data, labels: see lissome.samples.gather_samples; without data only exact steps are tried.
    latency: goal for the time of one call, "5ms" or seconds. memory, size: goals for its memory and for its file, "200MiB"
    or bytes. throughput: goal for samples a second, "500/s". first_answer: goal for opening the file and answering the
    first call, "300ms" or seconds. max_loss: largest absolute loss of the metric, 0.005 or "0.5%". time: limit on the
    whole search, "10min" or seconds. report, output: files to write. front: folder for the versions that no other one
    beats, which load() opens; record["front"] has their figures. keep_original: the saved file also holds the program and its weights, see prepare().
    batch: samples of one call; None: as few as the model takes.
    progress: called with stage, message, fraction done, seconds left (-1: unknown).

    A goal that is not met is not an error: the result is the closest version, and record["blocker"] names what blocks
    the goal. Ctrl-C raises lissome.Interrupted, a KeyboardInterrupt: its `best` is the best model so far, also in
    `output`.
    """
    if data is None and labels is not None:
        raise UsageError("labels: there is no data for them; give data")
    arguments = _lissome.OptimizeArguments()
    arguments.metric = None if metric is None else read_text("metric", metric)
    arguments.latency = None if latency is None else read_quantity("latency", latency)
    arguments.memory = None if memory is None else read_memory(memory)
    arguments.size = None if size is None else read_memory(size, "size")
    arguments.throughput = None if throughput is None else read_quantity("throughput", throughput)
    arguments.first_answer = None if first_answer is None else read_quantity("first_answer", first_answer)
    arguments.front = "" if front is None else read_path("front", front)
    arguments.max_loss = read_fraction("max_loss", max_loss)
    arguments.time = read_quantity("time", time)
    arguments.batch = 0 if batch is None else read_integer("batch", batch, least=1)
    arguments.threads = read_threads(threads)
    arguments.seed = read_integer("seed", seed)
    arguments.keep_original = read_flag("keep_original", keep_original)
    arguments.name = fspath(model) if isinstance(model, str | PathLike) else type(model).__name__
    arguments.command = f"lissome.optimize({arguments.name}, ..., max_loss={max_loss!r}, batch={batch}, seed={seed})"
    paths = [None if path is None else read_path(name, path) for name, path in (("output", output), ("report", report))]
    progress = None if progress is None else read_callable("progress", progress)
    with keep_best("lissome.optimize") as best:
        program = open_program(model, example_inputs, example_kwargs)
        warn_of_eval_form(program)
        dataset = None if data is None else gather_samples(data, labels, program.input_names)
        if dataset is not None:
            warn_of_fit(program, dataset)
        made, page = _lissome.optimize(program, dataset, arguments, progress)
        fast = best.value = FastModel(_runtime.adopt_model(made), page)
        if paths[0] is not None:
            fast.save(paths[0])
        if paths[1] is not None:
            _lissome.write_file(paths[1], page)
    if fast.record["interrupted"]:
        raise explain_interrupt("lissome.optimize", fast)
    return fast


@delay_interrupt()
def open_program(
    model: Model, example_inputs: Any, example_kwargs: Any, *, training: bool = False
) -> _lissome.Program:
    """A file as it is, or a module by way of torch.export, with a batch of any size where the export allows: in eval
    form, or `training`: in the form in which it is."""
    trained = getattr(model, "program", None)  # of Trained
    if isinstance(trained, _lissome.Program):
        return trained
    if isinstance(model, str | PathLike):
        return _lissome.open_program(read_existing_path("model", model))
    if isinstance(model, torch.export.ExportedProgram):
        return _open_exported(model)
    if not isinstance(model, torch.nn.Module):
        allowed = "a torch.nn.Module, a torch.export.ExportedProgram, what lissome.train returned, or a path"
        refuse_type("model", model, allowed)
    if example_inputs is None and example_kwargs is None:
        raise UsageError("example_inputs: a module is exported with them; give a tuple of its arguments")
    if not isinstance(example_kwargs, dict | None):
        refuse_type("example_kwargs", example_kwargs, "a dictionary")
    arguments = () if example_inputs is None else as_tuple(example_inputs)
    if torch.is_autocast_enabled("cpu"):
        raise UsageError(
            "model: torch.autocast is on, and an export would not hold its casts\n"
            '      Leave the autocast block; precision="bf16" is what computes in bf16'
        )
    if training:
        refuse_hooks(model)
    arguments, keywords = _separate((arguments, example_kwargs or {}))
    with refuse_own_backward() if training else nullcontext():
        exported = _export(model, arguments, keywords, training=training)
    if not training:
        _leave_out_dropout(exported)
    program = _open_exported(exported)
    program.input_tree = add_parameters(program.input_tree, model.forward)
    return program


def _open_exported(exported: torch.export.ExportedProgram) -> _lissome.Program:
    with tempfile.TemporaryDirectory(prefix="lissome-") as folder:
        path = Path(folder) / "module.pt2"
        try:
            torch.export.save(exported, path)
        except NotImplementedError as error:  # a type of arguments or results that torch does not know to store
            advice = ""
            if "namedtuple" in str(error):
                register = "torch.utils._pytree._register_namedtuple(Name, serialized_type_name='module.Name')"
                advice = f"\n      Register the named tuple before: {register}"
            raise UnsupportedError(f"torch.export.save refuses the module: {error}{advice}") from error
        return _lissome.open_program(str(path))  # what is mapped stays when the file is gone


_WITHOUT_DROPOUT = {"train": False, "dropout_p": 0.0}  # arguments of dropouts, recurrent layers and attention


def _leave_out_dropout(exported: torch.export.ExportedProgram) -> None:
    """Dropout that a module's code asks for in eval form too, as `dropout(x)` of torch.nn.functional does."""
    parts = [part for part in exported.graph_module.modules() if isinstance(part, torch.fx.GraphModule)]
    for node in [node for part in parts for node in part.graph.nodes]:
        schema = getattr(node.target, "_schema", None)  # of an op of torch
        for place, argument in enumerate(schema.arguments if schema is not None else ()):
            if argument.name not in _WITHOUT_DROPOUT:
                continue
            if place < len(node.args):
                node.update_arg(place, _WITHOUT_DROPOUT[argument.name])
            elif argument.name in node.kwargs:
                node.update_kwarg(argument.name, _WITHOUT_DROPOUT[argument.name])


def _separate(call: Any) -> Any:
    """The same with a copy of each tensor that stands there again: torch.export takes one object for one input."""
    seen: set[int] = set()

    def separate(leaf: Any) -> Any:
        if not isinstance(leaf, torch.Tensor):
            return leaf
        known = id(leaf) in seen
        seen.add(id(leaf))
        return leaf.clone() if known else leaf

    return pytree.tree_map(separate, call)


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
    module: torch.nn.Module, arguments: tuple[Any, ...], keywords: dict[str, Any], *, training: bool
) -> torch.export.ExportedProgram:
    # Where gradients are off already, an export does not note what the module takes none of.
    with nullcontext() if training else _in_eval_form(module), torch.set_grad_enabled(training):
        wide = _widen_batch(arguments, keywords)
        found = "" if wide is None else _export_open(module, wide)
        if not isinstance(found, str):
            return found
        try:
            exported = torch.export.export(module, arguments, keywords, strict=False)
        except Error:  # ours, raised by what the module calls
            raise
        except Exception as error:
            raise UnsupportedError(f"torch.export refuses the module: {_read_first_line(error)}") from error
    if found:
        warn_of_data(f"the batch stays as in example_inputs, for {found}")
    return exported


class _WideCall(NamedTuple):
    arguments: tuple[tuple[Any, ...], dict[str, Any]]
    is_batched: Any
    """Nested as the arguments: whether the first size of each is the batch."""
    size: int
    """The batch of the example."""


def _export_open(module: torch.nn.Module, call: _WideCall) -> torch.export.ExportedProgram | str:
    """With a batch of any size; else, with a warning, of the sizes for which the module's code takes the branches of
    the example. Why not, where that is the example's alone."""
    try:
        return _export_sized(module, call, 1, None)
    except Error:
        raise
    except Exception as error:  # noqa: BLE001  whatever torch has against it
        text, first_line = str(error), _read_first_line(error)
    found = _LIMITS.search(text)
    if found is not None:
        least, most = int(found["least"] or 2), int(found["most"] or 0) or None
        exported = _try_limits(module, call, least, most)
        if exported is not None:
            sizes = f"{least} or more" if most is None else f"{least} to {most}"
            warn_of_data(f"the model takes a batch of {sizes} alone, for the module's code asks for its size")
            return exported
    if "Constraints violated" in text:
        return "the module's code asks for its size"
    return f"torch.export refuses one of any size: {first_line}"


# The least and the largest batch that torch.export suggests where it refuses one of any size.
_LIMITS = re.compile(r"^ *batch = Dim\('batch'(, min=(?P<least>\d+))?(, max=(?P<most>\d+))?\)$", re.MULTILINE)


def _try_limits(
    module: torch.nn.Module, call: _WideCall, least: int, most: int | None
) -> torch.export.ExportedProgram | None:
    if not least <= call.size <= (most or call.size):
        return None
    try:
        return _export_sized(module, call, least, most)
    except Exception:  # noqa: BLE001
        return None


def _export_sized(
    module: torch.nn.Module, call: _WideCall, least: int, most: int | None
) -> torch.export.ExportedProgram:
    batch = torch.export.Dim("batch", min=least, max=most)
    shapes = pytree.tree_map(lambda is_batched: {0: batch} if is_batched else None, call.is_batched)
    return torch.export.export(module, *call.arguments, dynamic_shapes=_by_name(module, shapes), strict=False)


def _read_first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def _widen_batch(arguments: tuple[Any, ...], keywords: dict[str, Any]) -> _WideCall | None:
    """The same call with a batch of at least two: torch.export freezes a size of one."""
    call = (arguments, keywords)
    leaves = [leaf for leaf in pytree.tree_leaves(call) if isinstance(leaf, torch.Tensor) and leaf.dim()]
    if not leaves:
        return None
    size = leaves[0].shape[0]

    def is_batched(leaf: Any) -> bool:
        return isinstance(leaf, torch.Tensor) and leaf.dim() > 0 and leaf.shape[0] == size

    def widen(leaf: Any) -> Any:
        return torch.cat([leaf, leaf]) if is_batched(leaf) and size == 1 else leaf

    return _WideCall(pytree.tree_map(widen, call), pytree.tree_map(is_batched, call), size)


def _by_name(module: torch.nn.Module, shapes: tuple[tuple[Any, ...], dict[str, Any]]) -> dict[str, Any]:
    """dynamic_shapes by the names of forward's parameters; those of *args nest below their own name."""
    return dict(inspect.signature(module.forward).bind(*shapes[0], **shapes[1]).arguments)
