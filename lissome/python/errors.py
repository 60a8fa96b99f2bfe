"""The exceptions of lissome. Each is also Python's own type for its case, and all of them are a lissome.Error."""

from __future__ import annotations

import contextlib
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any

# Of the names of a model's inputs in an error.
_MOST_NAMED = 12

# contextlib's frames stand between those of ours.
_OWN_FILES = (str(Path(__file__).parent), contextlib.__file__)


class Error(Exception):
    """Any refusal or failure of lissome: what failed, what was seen, what is allowed, what to do."""


class UsageError(Error, ValueError):
    """An argument has a value that is not allowed."""


class InvalidInputError(Error, ValueError):
    """A model file, data or an input breaks a rule."""


class ArgumentTypeError(UsageError, InvalidInputError, TypeError):
    """An argument or an input of a model is of a type that is not allowed."""


class MissingFileError(UsageError, FileNotFoundError):
    """A path where there is no file."""


class UnsupportedError(Error, NotImplementedError):
    """A valid model or request that lissome cannot serve."""


class MissingPackageError(Error, ImportError):
    """torch or the package lissome, which make models, are not installed; lissome-runtime alone loads and runs them."""


class DataWarning(UserWarning):
    """What is done to data before a model sees them: which array feeds which input, what is rounded or left out. Also
    that a module writes to its arguments, which the finished model does not."""


def list_names(names: Sequence[str]) -> str:
    """The names for an error: those that a reader can take in, and how many follow."""
    further = len(names) - _MOST_NAMED
    return ", ".join([*names[:_MOST_NAMED], *([f"and {further} more"] if further > 0 else [])])


def warn_of_data(note: str, kind: type[Warning] = DataWarning) -> None:
    """At the line of whoever called lissome."""
    level, frame = 2, sys._getframe(1)  # noqa: SLF001  the module `inspect` reads sources for it
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_OWN_FILES):
        level, frame = level + 1, frame.f_back
    warnings.warn(note, kind, stacklevel=level)


class Interrupted(KeyboardInterrupt):
    """Ctrl-C during lissome.optimize or lissome.train, with the best so far."""

    best: Any = None
    """A FastModel or Trained; None where nothing was ready."""

    def __init__(self, message: str, best: Any = None):
        super().__init__(message)
        self.best = best


class OverBudgetError(Error, MemoryError):
    """A budget that cannot be kept, or memory that the machine does not have."""


class InputOutputError(Error, OSError):
    """A file that cannot be read or written: full disk, no permission."""


class InternalError(Error, RuntimeError):
    """A bug in lissome."""


# By the kinds of lissome/base/error.h.
BY_KIND: dict[str, type[Error]] = {
    "usage": UsageError,
    "invalid_input": InvalidInputError,
    "unsupported": UnsupportedError,
    "over_budget": OverBudgetError,
    "io": InputOutputError,
    "internal": InternalError,
}

for _class in (Error, ArgumentTypeError, Interrupted, MissingFileError, MissingPackageError, *BY_KIND.values()):
    _class.__module__ = "lissome"  # where users find them
del _class
