"""train() trains a module on data and returns it with trained weights. The training itself runs in C++."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, TypeAlias

import torch

from lissome import _lissome
from lissome.arguments import read_callable, read_integer, read_path, refuse_type
from lissome.errors import Error, UsageError, warn_of_data
from lissome.losses import PREFIX, WithLoss, find_loss_word, leave_out_prefix
from lissome.making import Model, Progress, explain_interrupt, finish, keep_best, open_program
from lissome.model import FastModel, as_tuple
from lissome.samples import gather_columns, gather_samples, read_good_samples, warn_of_batches, warn_of_fit
from lissome.train_options import explain_in_keywords, name_keywords, read_train_options
from lissome.workers import SampleWorkers, has_numbered_samples

Loss: TypeAlias = "str | torch.nn.Module | Callable[[Any, Any], torch.Tensor]"
Optimizer: TypeAlias = "str | torch.optim.Optimizer | type[torch.optim.Optimizer]"


class Trained:
    """The trained model in eval form and the record of every epoch. The model can be passed to lissome.optimize and called
    with the module's own arguments."""

    def __init__(self, program: _lissome.Program, record: dict[str, Any], weights: dict[str, torch.Tensor]):
        self.program = program
        self.record = record
        """epochs (a list of dicts), steps, skipped_steps, notes (each a UserWarning too), interrupted, stopped_early;
        training_metrics (measured on training samples) if there is no validation data."""
        self.weights = weights
        """Parameters and buffers by PyTorch's names."""
        self._fast: FastModel | None = None

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        """The first call prepares the model, as lissome.prepare does."""
        if self._fast is None:
            self._fast = finish(self.program)
        return self._fast(*arguments, **keywords)

    def __repr__(self) -> str:
        last = self.record["epochs"][-1] if self.record["epochs"] else {}
        return f"<lissome training of {self.record['steps']} steps: loss {last.get('loss', float('nan')):.4f}>"

    def __getstate__(self) -> dict[str, Any]:
        """For pickle and copy: the program as the bytes of its file."""
        with tempfile.TemporaryDirectory(prefix="lissome-") as folder:
            path = Path(folder) / "trained.lissome"
            self.save(path)
            return {"program": path.read_bytes(), "record": self.record, "weights": self.weights}

    def __setstate__(self, state: dict[str, Any]) -> None:
        with tempfile.TemporaryDirectory(prefix="lissome-") as folder:
            path = Path(folder) / "trained.lissome"
            path.write_bytes(state["program"])
            # The mapped data stays when the file is gone.
            self.__init__(_lissome.open_program(str(path)), state["record"], state["weights"])  # type: ignore[misc]

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the eval form as a .lissome file."""
        _lissome.save_program(self.program, read_path("path", path))


_FIRST_SAMPLES = 32  # the fewest samples that are read before training
_UPDATES_STATE = "the written model will update its state"  # a note about train form
_MEASURED = "use validation to measure on other samples"  # the end of a note with figures, which are in the record too


def train(  # noqa: PLR0913  one keyword for each flag of `lissome train`
    model: Model,
    data: Any,
    *,
    loss: Loss = "cross_entropy",
    example_inputs: Any = None,
    example_kwargs: dict[str, Any] | None = None,
    labels: Any = None,
    validation: Any = None,
    validation_labels: Any = None,
    optimizer: Optimizer = "adamw",
    optimizer_options: dict[str, Any] | None = None,
    lr: float | None = None,
    schedule: str = "constant",
    epochs: int = 1,
    batch: int | None = 32,
    accumulate: int = 1,
    precision: str = "f32",
    memory: str | int | None = None,
    recompute: str = "auto",
    workers: int | None = None,
    transforms: str = "",
    pin_memory: bool = False,
    bad_samples: str = "fatal",
    clip: float = 1.0,
    update_in_backward: bool = False,
    lossy_activations: bool = False,
    offload: str | PathLike[str] | None = None,
    label_smoothing: float = 0.0,
    freeze: Sequence[str] = (),
    early_stop: int | None = None,
    threads: int = 0,
    seed: int = 0,
    progress: Progress | None = None,
) -> Trained:
    """Trains a module in C++ and copies the weights back into it; its state dict keeps its keys.

    model: a module, exported in its current mode (call module.train() to train with batch norm and dropout) with
    example_inputs, a tuple of its arguments; or the path of a .pt2, whose weights are returned in `weights` only.
    data, labels, and validation with validation_labels: see lissome.samples.gather_samples.
    loss: cross_entropy, mse, l1, huber, bce, bce_logits or the name of an output; a loss of torch.nn; or any function of
    the model's result and the labels, which is exported with the module (data are then arrays, tensors or batches).
    optimizer: adamw, adam, sgd, lion, adafactor, with optimizer_options: weight_decay, beta1, beta2, eps, momentum,
    dampening, nesterov, states_8bit; or an AdamW, Adam or SGD of torch.optim, whose settings are used; parameters that
    it does not have are frozen. schedule: see docs/training.md. freeze: patterns of parameter names.
    batch: samples that run at once, None for as many as fit. accumulate: batches of an update. precision: f32, bf16, fp16
    or auto.
    memory: most bytes that allocators may hold, a number or "2GiB". recompute: which activations are recomputed to fit it,
    see docs/budget.md. workers: threads that load ahead, None to have them chosen. For a torch Dataset with numbered
    samples: processes that call its __getitem__ anew in each epoch, None to read it once into memory, see docs/data.md.
    bad_samples: "fatal", or "skip" for samples that cannot be read or hold NaN. transforms: of images, see docs/data.md.
    pin_memory: load batches into page-locked memory; without a device this has no effect and gives a note.
    update_in_backward: update each weight as soon as its gradient is computed, so that few gradients are in memory at a
    time; needs clip=0. lossy_activations: some activations may be kept in bf16 for the backward pass to fit memory, see
    docs/budget.md. offload: a folder in which optimizer states are kept instead of in memory and, to fit memory,
    activations and weights too.
    threads: threads of a step, 0 for one on each core that this process may use.
    progress: called with stage, message, fraction done, seconds left (-1: unknown).

    Ctrl-C raises lissome.Interrupted, a KeyboardInterrupt: its `best` is the model so far, whose weights the module holds
    too.
    """
    workers = None if workers is None else read_integer("workers", workers, most=1024)
    progress = None if progress is None else read_callable("progress", progress)
    options = read_train_options(
        model,
        loss=loss,
        optimizer=optimizer,
        optimizer_options=optimizer_options,
        lr=lr,
        schedule=schedule,
        epochs=epochs,
        batch=batch,
        accumulate=accumulate,
        precision=precision,
        memory=memory,
        recompute=recompute,
        workers=workers,
        transforms=transforms,
        pin_memory=pin_memory,
        bad_samples=bad_samples,
        clip=clip,
        update_in_backward=update_in_backward,
        lossy_activations=lossy_activations,
        offload=offload,
        label_smoothing=label_smoothing,
        freeze=freeze,
        early_stop=early_stop,
        threads=threads,
        seed=seed,
    )
    if validation is None and validation_labels is not None:
        raise UsageError("validation_labels: there are no samples for them; give validation")
    if validation_labels is None and isinstance(labels, str):
        validation_labels = labels
    with keep_best("lissome.train") as best, explain_in_keywords(_choose_words(loss)):
        task = _Task(model, example_inputs, example_kwargs, loss)
        held_out = None if validation is None else task.gather(validation, validation_labels)
        if workers and has_numbered_samples(data):
            task.refuse_function("workers")
            with SampleWorkers(data, labels, task.program.input_names, workers, options["seed"]) as source:
                first = source.read_first(max(batch or 0, _FIRST_SAMPLES), bad_samples == "skip")
                made = _lissome.train(task.program, first, held_out, options | {"source": source}, progress)
        else:
            warn_of_batches(data, batch)
            skip_bad = options["bad_samples"] == "skip"
            if skip_bad and has_numbered_samples(data):
                data = torch.utils.data.DataLoader(read_good_samples(data), batch_size=_FIRST_SAMPLES)
            dataset = task.gather(data, labels)
            warn_of_fit(task.program, dataset, skip_bad=skip_bad)
            made = _lissome.train(task.program, dataset, held_out, task.complete(options), progress)
        trained = best.value = task.take_back(*made)
        task.give_eval_form(trained)
    for note in trained.record["notes"]:
        if not note.endswith(_MEASURED):
            warn_of_data(note, UserWarning)
    if trained.record["interrupted"]:
        raise explain_interrupt("lissome.train", trained)
    return trained


def budget(
    model: Model,
    data: Any,
    *,
    memory: str | int,
    loss: Loss = "cross_entropy",
    example_inputs: Any = None,
    example_kwargs: dict[str, Any] | None = None,
    labels: Any = None,
    optimizer: Optimizer = "adamw",
    batch: int = 32,
    precision: str = "f32",
    recompute: str = "auto",
    update_in_backward: bool = False,
    lossy_activations: bool = False,
    offload: str | PathLike[str] | None = None,
    transforms: str = "",
    freeze: Sequence[str] = (),
    threads: int = 0,
) -> dict[str, Any]:
    """Plans a step of training inside `memory`, runs it, and returns its predicted and its measured memory and time.

    model, data and the rest: as in train(). Returns a dict: method, nodes_recomputed, stored_lossy, offloaded,
    offloaded_bytes, weights_in_file and weights_in_file_at_once (bytes); seconds_predicted, seconds_predicted_keeping_all
    and seconds (measured); bytes_predicted, bytes_keeping_all and bytes (measured), each a dict of weights, gradients,
    states, batch, activations (scratch included) and all; modules, a list of the bytes that each module keeps and
    recomputes. The old keys nodes_run_again, seconds_told, seconds_told_keeping_all, bytes_told and (in modules)
    made_again hold the same values; they go with the next version. Raises OverBudgetError, naming the smallest budget
    that is enough, if nothing fits. The module stays as it is.
    """
    if memory is None:
        refuse_type("memory", memory, "a number or text with a unit")
    options = read_train_options(
        model,
        loss=loss,
        optimizer=optimizer,
        batch=read_integer("batch", batch, least=1),
        precision=precision,
        memory=memory,
        recompute=recompute,
        update_in_backward=update_in_backward,
        lossy_activations=lossy_activations,
        offload=offload,
        transforms=transforms,
        freeze=freeze,
        threads=threads,
    )
    with explain_in_keywords(_choose_words(loss)):
        task = _Task(model, example_inputs, example_kwargs, loss)
        dataset = task.gather(data, labels)
        warn_of_fit(task.program, dataset)
        return _lissome.budget(task.program, dataset, task.complete(options))


def _choose_words(loss: Any) -> Callable[[str], str]:
    """From a text of the library to one that names options and parameters as the caller knows them."""
    if find_loss_word(loss) is not None:
        return name_keywords
    return lambda text: leave_out_prefix(name_keywords(text))


class _Task:
    """The program that is trained. With a function as loss, the labels are an input and the loss is the output, so it can
    only be exported once there are labels."""

    def __init__(self, model: Model, example_inputs: Any, example_kwargs: Any, loss: Any):
        self._model, self._example = model, (example_inputs, example_kwargs)
        self._loss = loss if find_loss_word(loss) is None else None
        self._reword = _choose_words(loss)
        self._trained: torch.nn.Module | None = model if isinstance(model, torch.nn.Module) else None
        self._names: list[str] = []
        if self._loss is not None and self._trained is None:
            refuse_type("model", model, "with a function as loss, only a torch.nn.Module")
        self.program = self._open(model)

    def _open(self, model: Model, training: bool = True) -> _lissome.Program:
        return open_program(model, *self._example, training=training)

    def refuse_function(self, what: str) -> None:
        if self._loss is not None:
            raise UsageError(f"{what}: a function as loss takes data that are read once; leave {what} out")

    def gather(self, data: Any, labels: Any) -> _lissome.Dataset:
        if self._loss is None:
            return gather_samples(data, labels, self.program.input_names)
        if isinstance(data, str | PathLike):
            raise UsageError("data: with a function as loss, data are arrays, tensors or batches, not a path")
        names = self._names if isinstance(self._trained, WithLoss) else self.program.input_names
        columns, label_name = gather_columns(data, labels, names)
        if label_name not in columns:
            raise UsageError("labels: a function as loss needs labels; give them, or batches with labels")
        if not isinstance(self._trained, WithLoss):
            self._names = names
            self._add_loss(columns[label_name], label_name)
        return _lissome.make_dataset(list(columns.items()), "")

    def _add_loss(self, labels: torch.Tensor, label_name: str) -> None:
        inputs, keywords = self._example
        arguments = () if inputs is None else as_tuple(inputs)
        given = [*arguments, *(keywords or {}).values()]
        count = next((len(value) for value in given if isinstance(value, torch.Tensor) and value.dim()), 1)
        assert isinstance(self._model, torch.nn.Module)
        self._trained = WithLoss(self._model, self._loss, label_name)
        keywords = {**(keywords or {}), label_name: labels[:count]}
        self.program = open_program(self._trained, arguments, keywords, training=True)

    def complete(self, options: dict[str, Any]) -> dict[str, Any]:
        """With a function as loss, the loss is the only output, and the model's parameters have a prefix."""
        if self._loss is None:
            return options
        patterns = [f"{PREFIX}{pattern}" for pattern in options["freeze"]]
        return options | {"loss": self.program.output_names[0], "freeze": patterns}

    def take_back(
        self, program: _lissome.Program, record: dict[str, Any], weights: list[tuple[str, torch.Tensor]]
    ) -> Trained:
        """Copies the weights into the caller's module."""
        record["notes"] = [self._reword(note) for note in record["notes"]]
        if self._trained is not None:
            _put_back(self._trained, dict(weights))
        if self._loss is None:
            return Trained(program, record, dict(weights))
        own = {name.removeprefix(PREFIX): tensor for name, tensor in weights if name.startswith(PREFIX)}
        return Trained(self._open(self._model, training=False), record, own)

    def give_eval_form(self, trained: Trained) -> None:
        """Exports the module again in eval form, with its weights as trained. What training returns has eval forms of
        layers, but the branches that the module's own code takes while self.training is set."""
        module = self._trained
        if self._loss is not None or module is None or not any(part.training for part in module.modules()):
            return
        try:
            trained.program = self._open(module, training=False)
        except Error as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            note = "the trained model keeps the branches of the module's train form, for its eval form is refused"
            warn_of_data(f"{note}: {reason}", UserWarning)
            return
        except NotImplementedError:  # by eval() of a module that torch.export made, which has no code of its own
            return
        notes = trained.record["notes"]
        trained.record["notes"] = [note for note in notes if not note.startswith(_UPDATES_STATE)]


def _put_back(module: torch.nn.Module, weights: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in [*module.state_dict().items(), *module.named_buffers(remove_duplicate=False)]:
            if name in weights:
                tensor.copy_(weights[name])
