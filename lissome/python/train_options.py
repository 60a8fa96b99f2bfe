"""Checks the options of a training and converts them for the binding, each under the name of its keyword."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from lissome.arguments import (
    read_flag,
    read_integer,
    read_number,
    read_path,
    read_text,
    read_threads,
    refuse_type,
)
from lissome.errors import Error, UsageError
from lissome.losses import check_parts, find_loss_word
from lissome.model import read_memory
from lissome.optimizers import read_optimizer

_OPTIMIZER_OPTIONS = {
    "adamw": ("weight_decay", "beta1", "beta2", "eps", "states_8bit"),
    "adam": ("weight_decay", "beta1", "beta2", "eps", "states_8bit"),
    "sgd": ("weight_decay", "momentum", "dampening", "nesterov"),
    "lion": ("weight_decay", "beta1", "beta2"),
    "adafactor": ("weight_decay",),
}
_FLAGS = ("states_8bit", "nesterov")
_OLD_NAMES = {"byte_states": "states_8bit"}  # that are accepted with a warning

# For each flag of `lissome train`: its default, and the function that reads it.
_OPTIONS: dict[str, tuple[Any, Callable[[str, Any], Any]]] = {
    "schedule": ("constant", read_text),
    "epochs": (1, lambda name, value: read_integer(name, value, least=1)),
    "batch": (32, lambda name, value: None if value is None else read_integer(name, value, least=1)),
    "accumulate": (1, lambda name, value: read_integer(name, value, least=1)),
    "precision": ("f32", read_text),
    "memory": (None, lambda _, value: None if value is None else read_memory(value)),
    "recompute": ("auto", read_text),
    "workers": (None, lambda name, value: value),
    "transforms": ("", read_text),
    "pin_memory": (False, read_flag),
    "bad_samples": ("fatal", read_text),
    "source": (None, lambda name, value: value),
    "clip": (1.0, lambda name, value: _read_range(name, value, math.inf)),
    "update_in_backward": (False, read_flag),
    "lossy_activations": (False, read_flag),
    "offload": (None, lambda name, value: None if value is None else read_path(name, value)),
    "label_smoothing": (0.0, lambda name, value: _read_range(name, value, 1.0)),
    "ignored_label": (-100, lambda name, value: value),  # this and the next option come with a loss of torch.nn
    "class_weights": ([], lambda name, value: value),
    "freeze": ((), lambda name, value: _read_patterns(name, value)),
    "early_stop": (None, lambda name, value: None if value is None else read_integer(name, value, least=1)),
    "threads": (0, lambda _, value: read_threads(value)),
    "seed": (0, read_integer),
}


def _read_range(name: str, value: Any, most: float) -> float:
    number = read_number(name, value)
    if not (0 <= number <= most and number < math.inf):
        raise UsageError(f"{name} is {number:g}; 0 to {most:g} is allowed" if most < math.inf else
                         f"{name} is {number:g}; a finite number from 0 on is allowed")
    return number


def _read_patterns(name: str, value: Any) -> list[str]:
    if isinstance(value, str) or not isinstance(value, Sequence):
        refuse_type(name, value, "a list of patterns")
    return [read_text(f"a pattern of {name}", pattern) for pattern in value]


def read_train_options(  # noqa: PLR0913  what has a reading of its own; the rest by name
    model: Any,
    *,
    loss: Any,
    optimizer: Any,
    optimizer_options: Any = None,
    lr: Any = None,
    **given: Any,
) -> dict[str, Any]:
    options = {name: read(name, given.get(name, default)) for name, (default, read) in _OPTIONS.items()}
    word, of_loss = find_loss_word(loss) or ("", {})
    check_parts(loss, options["accumulate"])
    if options["recompute"].startswith(("every:", "modules:")) and options["memory"] is None:
        raise UsageError(f"recompute={options['recompute']!r} needs memory, the limit to fit")
    if options["update_in_backward"] and "clip" in given and options["clip"]:
        raise UsageError(
            "update_in_backward changes weights before all gradients are computed, so they cannot be clipped to a "
            "global norm\n      Give clip=0"
        )
    if "label_smoothing" in of_loss and options["label_smoothing"]:
        raise UsageError("label_smoothing is given twice: by the loss and by itself")
    name, of_optimizer, left_alone = read_optimizer(optimizer, model)
    own = {} if optimizer_options is None else _read_optimizer_options(name, optimizer_options)
    if lr is not None and "lr" in of_optimizer:
        raise UsageError("lr is given twice: by the optimizer and by itself")
    rate = of_optimizer.pop("lr", None) if lr is None else read_number("lr", lr)
    options["freeze"] += left_alone
    more = {"loss": word, "optimizer": name, "optimizer_options": of_optimizer | own, "lr": rate}
    return options | of_loss | more


def _read_optimizer_options(optimizer: str, given: Any) -> dict[str, Any]:
    if not isinstance(given, Mapping):
        refuse_type("optimizer_options", given, "a dictionary")
    known = _OPTIMIZER_OPTIONS.get(optimizer)
    options: dict[str, Any] = {}
    for given_name, value in given.items():
        name = str(_OLD_NAMES.get(given_name, given_name))
        if name != given_name:
            warnings.warn(
                f"optimizer_options: {given_name!r} is the old name of {name!r}", DeprecationWarning, stacklevel=4
            )
        if known is not None and name not in known:
            raise UsageError(f"optimizer_options: {optimizer} has no {name!r}; it has {', '.join(known)}")
        options[name] = (read_flag if name in _FLAGS else read_number)(f"optimizer_options[{name!r}]", value)
    return options


_NO_KEYWORDS = {"source", "ignored_label", "class_weights"}
_KEYWORDS = {*_OPTIONS, "labels", "loss", "lr", "optimizer", "validation"} - _NO_KEYWORDS
_FLAG = re.compile(r"--([a-z]+(?:-[a-z0-9]+)*)")


def name_keywords(text: str) -> str:
    """A text of the library with keywords in the place of the shell's flags, unless it says both already."""

    def name(flag: re.Match[str]) -> str:
        keyword = flag[1].replace("-", "_")
        return keyword if keyword in _KEYWORDS else flag[0]

    return text if "in Python" in text else _FLAG.sub(name, text)


@contextmanager
def explain_in_keywords(reword: Callable[[str], str] = name_keywords) -> Iterator[None]:
    """Raises errors of the library again with their text as `reword` gives it."""
    try:
        yield
    except Error as error:
        text = reword(str(error))
        if text == str(error):
            raise
        raise type(error)(text) from None
