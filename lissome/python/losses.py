"""The values of `loss`: a word, a loss of torch.nn, or a function of output and labels, exported with the model."""

from __future__ import annotations

import inspect
import re
from typing import Any

import torch
from torch import nn

from lissome.arguments import refuse_type
from lissome.errors import UsageError

# Losses that lissome has itself, with the settings under which they mean the same.
_MODULES: dict[type[nn.Module], tuple[str, dict[str, Any]]] = {
    nn.CrossEntropyLoss: ("cross_entropy", {"reduction": "mean"}),
    nn.MSELoss: ("mse", {"reduction": "mean"}),
    nn.L1Loss: ("l1", {"reduction": "mean"}),
    nn.HuberLoss: ("huber", {"reduction": "mean", "delta": 1.0}),
    nn.SmoothL1Loss: ("huber", {"reduction": "mean", "beta": 1.0}),
    nn.BCELoss: ("bce", {"reduction": "mean", "weight": None}),
    nn.BCEWithLogitsLoss: ("bce_logits", {"reduction": "mean", "weight": None, "pos_weight": None}),
}
_FUNCTIONS: dict[Any, str] = {
    nn.functional.cross_entropy: "cross_entropy",
    nn.functional.mse_loss: "mse",
    nn.functional.l1_loss: "l1",
    nn.functional.huber_loss: "huber",
    nn.functional.smooth_l1_loss: "huber",
    nn.functional.binary_cross_entropy: "bce",
    nn.functional.binary_cross_entropy_with_logits: "bce_logits",
}


def find_loss_word(loss: Any) -> tuple[str, dict[str, Any]] | None:
    """The word for a loss, and options that come with it; None for a function that lissome has no word for."""
    if isinstance(loss, str):
        return loss, {}
    if isinstance(loss, type):
        raise UsageError(f"loss is the class {loss.__name__}; give one of it, such as loss={loss.__name__}()")
    if not callable(loss):
        refuse_type("loss", loss, "a word, a loss of torch.nn or a function of output and labels")
    if not isinstance(loss, nn.Module):
        word = _FUNCTIONS.get(loss) if getattr(loss, "__hash__", None) else None
        return None if word is None else (word, {})
    if type(loss) not in _MODULES:
        return None
    word, settings = _MODULES[type(loss)]
    if any(getattr(loss, name) != value for name, value in settings.items()):
        return None
    if not isinstance(loss, nn.CrossEntropyLoss):
        return word, {}
    options: dict[str, Any] = {}
    if loss.label_smoothing != 0:
        options["label_smoothing"] = loss.label_smoothing
    if loss.ignore_index != nn.CrossEntropyLoss().ignore_index:
        options["ignored_label"] = loss.ignore_index
    if loss.weight is not None:
        options["class_weights"] = loss.weight.tolist()
    return word, options


def check_parts(loss: Any, accumulate: int) -> None:
    """The parts of an accumulated batch are averaged, which is the whole batch of a mean alone."""
    if accumulate > 1 and getattr(loss, "reduction", "mean") == "sum":
        raise UsageError(
            f"accumulate is {accumulate} and loss={type(loss).__name__}(reduction='sum'): parts of a batch are averaged, "
            "which is not a sum\n      Take reduction='mean', or accumulate=1 with a larger batch"
        )


PREFIX = "model."  # of the model's parameters in WithLoss
_PREFIX_OF_NAME = re.compile(r"(?<![\w.])model\.(?=[\w*])")


def leave_out_prefix(text: str) -> str:
    """A text about WithLoss with the names that the model's parameters have in the model."""
    return _PREFIX_OF_NAME.sub("", text)


class WithLoss(nn.Module):  # type: ignore[misc,unused-ignore]
    """A model and a loss as one module: the model's own arguments and the labels by name in, the loss out."""

    def __init__(self, model: nn.Module, loss: Any, label_name: str):
        super().__init__()
        self.model = model
        self.loss = loss
        signature = inspect.signature(model.forward)
        if not label_name.isidentifier() or label_name in signature.parameters:
            raise UsageError(
                f"labels are called {label_name!r}; with a function as loss they need a name of letters, digits and "
                f"underscores that is none of the model's arguments ({', '.join(signature.parameters)})"
            )
        label = inspect.Parameter(label_name, inspect.Parameter.KEYWORD_ONLY)
        parameters = list(signature.parameters.values())
        rest = [parameter for parameter in parameters if parameter.kind == inspect.Parameter.VAR_KEYWORD]
        named = [parameter for parameter in parameters if parameter.kind != inspect.Parameter.VAR_KEYWORD]

        def forward(*arguments: Any, **keywords: Any) -> torch.Tensor:
            labels = keywords.pop(label_name)
            result = self.loss(self.model(*arguments, **keywords), labels)
            if not isinstance(result, torch.Tensor):
                raise UsageError(
                    f"loss: the function returns {type(result).__name__}; a tensor that depends on the model's outputs "
                    "is allowed"
                )
            return result

        # torch.export names the inputs after these.
        forward.__signature__ = inspect.Signature([*named, label, *rest])  # type: ignore[attr-defined]
        self.forward = forward
