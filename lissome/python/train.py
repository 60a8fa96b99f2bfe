"""train: a module and data in, the module with trained weights out; the training itself runs in C++."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from os import PathLike, fspath
from typing import Any

import torch

from lissome import _lissome
from lissome.model import Model, open_program, to_quantity
from lissome.samples import gather_samples
from lissome.workers import SampleWorkers, has_numbered_samples


class Trained:
    """What training gave: the model in eval form, ready for lissome.optimize, and the record of every epoch."""

    def __init__(self, program: _lissome.Program, record: dict[str, Any], weights: dict[str, torch.Tensor]):
        self.program = program
        self.record = record
        """epochs (a list of dicts), steps, skipped_steps, notes, interrupted, stopped_early."""
        self.weights = weights
        """Parameters and buffers by PyTorch's names."""

    def __repr__(self) -> str:
        last = self.record["epochs"][-1] if self.record["epochs"] else {}
        return f"<lissome training of {self.record['steps']} steps: loss {last.get('loss', float('nan')):.4f}>"

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the eval form as a .lissome file."""
        _lissome.save_program(self.program, fspath(path))


_FIRST_SAMPLES = 32  # that are looked at before training, at the least

# One for each flag of `lissome train`.
_OPTIONS: dict[str, Any] = {
    "loss": "cross_entropy",
    "optimizer": "adamw",
    "optimizer_options": {},
    "lr": None,
    "schedule": "constant",
    "epochs": 1,
    "batch": 32,
    "accumulate": 1,
    "precision": "f32",
    "memory": None,
    "recompute": "auto",
    "workers": None,
    "transforms": "",
    "pin_memory": False,
    "bad_samples": "fatal",
    "source": None,
    "clip": 1.0,
    "update_in_backward": False,
    "lossy_activations": False,
    "offload": None,
    "label_smoothing": 0.0,
    "freeze": [],
    "early_stop": None,
    "threads": 0,
    "seed": 0,
}


def train(  # noqa: PLR0913  one keyword for each flag of `lissome train`
    model: Model,
    data: Any,
    *,
    loss: str = "cross_entropy",
    example_inputs: Any = None,
    example_kwargs: dict[str, Any] | None = None,
    labels: Any = None,
    validation: Any = None,
    validation_labels: Any = None,
    optimizer: str = "adamw",
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
    progress: Callable[[str, str, float, float], None] | None = None,
) -> Trained:
    """Trains a module in C++ and puts the weights back into it; its state dict keeps its keys.

    model: a module, exported in the form in which it is (module.train() to train batch norm and dropout too) with
    example_inputs, a tuple of its arguments; or the path of a .pt2, whose weights come back in `weights` alone.
    data, labels, and validation with validation_labels: see lissome.samples.gather_samples. loss: cross_entropy, mse, l1, huber, bce, bce_logits
    or the name of an output. optimizer: adamw, adam, sgd, lion, adafactor; optimizer_options: weight_decay, beta1,
    beta2, eps, momentum, nesterov, byte_states. schedule: see docs/training.md. freeze: patterns of parameter names.
    batch: samples that run at once, None for as many as fit; accumulate: batches an update; precision: f32, bf16, fp16 or auto.
    memory: "2GiB" or bytes, what allocators may hold; recompute: which activations are made again for it, see
    docs/budget.md. workers: threads that load ahead, None to have that found; of a torch Dataset with numbered samples:
    processes that call its __getitem__ anew in each epoch, None to read it once into memory, see docs/data.md.
    bad_samples: "fatal", or "skip" for samples that cannot be had or hold NaN; transforms: of images, docs/data.md.
    pin_memory: batches in page-locked memory, which has no effect (and is noted) without a device.
    update_in_backward: each weight as soon as its gradient is made, so that gradients take no memory of their own; needs
    clip=0. lossy_activations: some may wait in bf16 for the backward pass to fit memory, see docs/budget.md.
    offload: a folder where optimizer states lie in place of memory and, to fit memory, activations and
    weights wait.
    threads: of steps, 0 for one on each core that this process may use.
    progress: called with stage, message, fraction done, seconds left (-1: not known).

    Ctrl-C ends training; what was learned so far is kept.
    """
    program = open_program(model, example_inputs, example_kwargs, many=True, training=True)
    names = program.input_names
    streamed = bool(workers) and has_numbered_samples(data)
    if validation_labels is None and isinstance(labels, str):
        validation_labels = labels
    held_out = None if validation is None else gather_samples(validation, validation_labels, names)
    options = _OPTIONS | {
        "loss": loss,
        "optimizer": optimizer,
        "optimizer_options": dict(optimizer_options or {}),
        "lr": lr,
        "schedule": schedule,
        "epochs": epochs,
        "batch": batch,
        "accumulate": accumulate,
        "precision": precision,
        "memory": to_quantity(memory),
        "recompute": recompute,
        "workers": workers,
        "transforms": transforms,
        "pin_memory": pin_memory,
        "bad_samples": bad_samples,
        "clip": float(clip),
        "update_in_backward": update_in_backward,
        "lossy_activations": lossy_activations,
        "offload": None if offload is None else fspath(offload),
        "label_smoothing": float(label_smoothing),
        "freeze": list(freeze),
        "early_stop": early_stop,
        "threads": threads,
        "seed": seed,
    }
    if streamed:
        with SampleWorkers(data, labels, names, workers, seed) as source:
            first = source.read_first(max(batch or 0, _FIRST_SAMPLES), bad_samples == "skip")
            finished, record, weights = _lissome.train(program, first, held_out, options | {"source": source}, progress)
    else:
        dataset = gather_samples(data, labels, names)
        finished, record, weights = _lissome.train(program, dataset, held_out, options, progress)
    trained = Trained(finished, record, dict(weights))
    if isinstance(model, torch.nn.Module):
        _put_back(model, trained.weights)
    if record["interrupted"]:
        warnings.warn("interrupted: these are the weights so far", stacklevel=2)
    return trained


def budget(
    model: Model,
    data: Any,
    *,
    memory: str | int,
    loss: str = "cross_entropy",
    example_inputs: Any = None,
    example_kwargs: dict[str, Any] | None = None,
    labels: Any = None,
    optimizer: str = "adamw",
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
    """Plans and runs a step of training inside `memory`: what it was told to take and what it took.

    model, data and the rest: as in train(). Gives a dict: method, nodes_run_again, stored_lossy, offloaded,
    offloaded_bytes, weights_in_file and weights_in_file_at_once (bytes); seconds_told,
    seconds_told_keeping_all and seconds (measured); bytes_told, bytes_keeping_all and bytes (measured), each a dict of weights, gradients, states,
    batch, activations (scratch included) and all; modules, a list of what each keeps and makes again. Raises
    OverBudgetError, which names the least, where nothing fits. The module stays as it is.
    """
    program = open_program(model, example_inputs, example_kwargs, many=True, training=True)
    options = _OPTIONS | {
        "loss": loss,
        "optimizer": optimizer,
        "batch": batch,
        "precision": precision,
        "memory": to_quantity(memory),
        "recompute": recompute,
        "update_in_backward": update_in_backward,
        "lossy_activations": lossy_activations,
        "offload": None if offload is None else fspath(offload),
        "transforms": transforms,
        "freeze": list(freeze),
        "threads": threads,
    }
    return _lissome.budget(program, gather_samples(data, labels, program.input_names), options)


def _put_back(module: torch.nn.Module, weights: dict[str, torch.Tensor]) -> None:
    with torch.no_grad():
        for name, tensor in module.state_dict().items():
            if name in weights:
                tensor.copy_(weights[name])
