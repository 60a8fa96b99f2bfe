"""Code of a module's own that runs in PyTorch's backward pass. An export holds none of it, so its gradients would be others."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch

from lissome.errors import UnsupportedError

_MODULE_HOOKS = ("_backward_hooks", "_backward_pre_hooks")


def _refuse(what: str) -> None:
    raise UnsupportedError(
        f"{what}, which an export does not hold: training would take other gradients than PyTorch\n"
        "      Train the module in PyTorch, or write what it does as a part of forward"
    )


def refuse_hooks(module: torch.nn.Module) -> None:
    """Hooks that are there before forward runs."""
    for name, part in module.named_modules():
        if any(getattr(part, hooks, None) for hooks in _MODULE_HOOKS):
            _refuse(f"{type(part).__name__} {name or '(the module itself)'} has a hook of the backward pass")
    for name, parameter in module.named_parameters():
        if getattr(parameter, "_backward_hooks", None) or getattr(parameter, "_post_accumulate_grad_hooks", None):
            _refuse(f"the parameter {name} has a hook of its gradient")


@contextmanager
def refuse_own_backward() -> Iterator[None]:
    """While forward runs: functions with a backward of their own, but for PyTorch's, and hooks of tensors."""
    apply, register = torch.autograd.Function.__dict__["apply"], torch.Tensor.register_hook
    seen: list[str] = []

    def note_apply(kind: Any, *arguments: Any, **keywords: Any) -> Any:
        if not kind.__module__.startswith("torch."):
            seen.append(f"{kind.__qualname__} has a backward of its own")
        return apply.__func__(kind, *arguments, **keywords)

    def note_hook(tensor: torch.Tensor, hook: Any) -> Any:
        seen.append("forward gives a tensor a hook of its gradient (register_hook)")
        return register(tensor, hook)

    torch.autograd.Function.apply = classmethod(note_apply)
    torch.Tensor.register_hook = note_hook
    try:
        yield
    finally:
        torch.autograd.Function.apply = apply
        torch.Tensor.register_hook = register
    if seen:
        _refuse(seen[0])
