"""The values of `optimizer`: a word, or an optimizer of torch.optim (or its class), whose settings are taken over."""

from __future__ import annotations

import warnings
from typing import Any

import torch

from lissome.arguments import refuse_type
from lissome.errors import UnsupportedError, UsageError

_WORDS: dict[type[torch.optim.Optimizer], str] = {
    torch.optim.AdamW: "adamw",
    torch.optim.Adam: "adam",
    torch.optim.SGD: "sgd",
}
# How an optimizer is computed, not what it computes.
_IGNORED = {"params", "foreach", "fused", "capturable", "differentiable", "initial_lr", "param_names"}
_TAKEN = {"eps", "weight_decay", "momentum", "dampening", "nesterov"}


def read_optimizer(optimizer: Any, module: Any) -> tuple[str, dict[str, Any], list[str]]:
    """The word, its options with "lr" among them, and the names of the module's parameters that it leaves alone."""
    if isinstance(optimizer, str):
        return optimizer, {}, []
    if isinstance(optimizer, type) and issubclass(optimizer, torch.optim.Optimizer):
        optimizer = optimizer([torch.nn.Parameter(torch.zeros(1))])
        return *_read_settings(optimizer), []
    if not isinstance(optimizer, torch.optim.Optimizer):
        refuse_type("optimizer", optimizer, "a word or an optimizer of torch.optim")
    held = {id(parameter) for group in optimizer.param_groups for parameter in group["params"]}
    own = dict(module.named_parameters()) if isinstance(module, torch.nn.Module) else {}
    if own and not any(id(parameter) in held for parameter in own.values()):
        raise UsageError("optimizer: it holds no parameter of the model")
    if optimizer.state:
        warnings.warn(
            "optimizer: its states of earlier steps (momenta, counts) are not taken over; the training begins with new ones",
            stacklevel=4,
        )
    return *_read_settings(optimizer), [name for name, parameter in own.items() if id(parameter) not in held]


def _read_settings(optimizer: torch.optim.Optimizer) -> tuple[str, dict[str, Any]]:
    kind = type(optimizer)
    if kind not in _WORDS:
        known = ", ".join(known.__name__ for known in _WORDS)
        raise UnsupportedError(f"optimizer: torch.optim.{kind.__name__} is not known here; {known} are, or give a word")
    settings, *others = [
        {name: value for name, value in group.items() if name not in _IGNORED} for group in optimizer.param_groups
    ]
    if any(other != settings for other in others):
        raise UnsupportedError("optimizer: its groups of parameters have different settings; one for all is allowed")
    word, options = _WORDS[kind], {"lr": float(settings.pop("lr"))}
    if settings.pop("decoupled_weight_decay", False):
        word = "adamw"
    if "betas" in settings:
        options["beta1"], options["beta2"] = map(float, settings.pop("betas"))
    for name, value in settings.items():
        if name in _TAKEN:
            options[name] = value
        elif value:
            raise UnsupportedError(f"optimizer: torch.optim.{kind.__name__} with {name}={value!r} is not known here")
    return word, options
