# One parity case: a module, what it is called with, and how it is exported.
# The files in models/ are lists of these; export_models.py turns each into a folder.
# A case is data: everything random happens inside `module` and `inputs`, after the
# exporter has seeded the generator from the case's name.

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from torch import nn


@dataclass(frozen=True)
class Call:
    """The arguments of one forward call; nested dicts, lists and tuples are allowed."""

    args: tuple
    kwargs: dict


def call(*args, **kwargs) -> Call:
    return Call(args, kwargs)


@dataclass(frozen=True)
class Case:
    name: str
    module: Callable[[], nn.Module]
    # Called once per run with the values of that variant; returns a Call.
    inputs: Callable[..., Call]
    # One run per entry, in this order, on one instance of the module; the first is
    # also the example that is exported. A single entry is repeated `steps` times.
    variants: tuple[tuple, ...] = ((),)
    dynamic: Any = None  # dynamic_shapes of torch.export.export
    mode: str = "eval"
    steps: int = 1
    grad: bool = True  # whether gradients are enabled while exporting
    # Of a case in train mode: whether its eval form follows from the export. Not where a call says itself that it
    # drops, whatever mode the module is in.
    has_eval_form: bool = True
    # Conditions on sizes become asserts in the graph instead of guards checked at export.
    deferred: bool = False
    # Further forms of the same case: "core" and "functional" (see export_forms.py), "strict".
    forms: tuple[str, ...] = ()
    form: str = "plain"
    # Greatest distance between PyTorch's own result and its float64 run; more than this
    # means that the case is too ill-conditioned to compare anything with.
    f64_limit: float = 1e-4
    # The first torch that exports it; an older one leaves the case out.
    since: tuple[int, int] = (2, 11)
    family: str = ""

    def with_form(self, form: str) -> Case:
        return replace(self, name=f"{self.name}_{form}", form=form, forms=())


class Apply(nn.Module):
    """A plain function as a module, for cases that have no parameters."""

    def __init__(self, function: Callable):
        super().__init__()
        self.function = function

    def forward(self, *args, **kwargs):
        return self.function(*args, **kwargs)


def apply(function: Callable) -> Callable[[], nn.Module]:
    return lambda: Apply(function)
