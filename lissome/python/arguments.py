"""Checks keyword arguments: reports a wrong type by the argument's name before anything is exported or read."""

from __future__ import annotations

import math
import operator
from os import PathLike, fspath
from pathlib import Path
from typing import Any, NoReturn

from lissome.errors import ArgumentTypeError, MissingFileError, UsageError

_MOST_INTEGER = 2**63 - 1
_MOST_THREADS = 1024  # as on the command line


def refuse_type(name: str, value: object, allowed: str) -> NoReturn:
    raise ArgumentTypeError(f"{name} is of type {type(value).__name__}; {allowed} is allowed")


def read_integer(name: str, value: Any, least: int = 0, most: int = _MOST_INTEGER) -> int:
    if isinstance(value, bool):
        refuse_type(name, value, "an integer")
    try:
        number = operator.index(value)
    except TypeError:
        refuse_type(name, value, "an integer")
    if not least <= number <= most:
        raise UsageError(f"{name} is {number}; {least} to {most} is allowed")
    return number


def read_threads(value: Any) -> int:
    """0 for as many as fit the work."""
    return read_integer("threads", value, most=_MOST_THREADS)


def read_number(name: str, value: Any) -> float:
    if isinstance(value, bool | str) or not hasattr(value, "__float__"):
        refuse_type(name, value, "a number")
    return float(value)


def read_flag(name: str, value: Any) -> bool:
    if not isinstance(value, bool):
        refuse_type(name, value, "True or False")
    return value


def read_text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        refuse_type(name, value, "text")
    return value


def read_texts(name: str, value: Any) -> list[str]:
    """One text, or several."""
    if isinstance(value, str):
        return [value]
    if not isinstance(value, list | tuple):
        refuse_type(name, value, "text, or a list of texts")
    return [read_text(name, item) for item in value]


def read_path(name: str, value: Any) -> str:
    if not isinstance(value, str | PathLike):
        refuse_type(name, value, "a path")
    path = fspath(value)
    if not isinstance(path, str):
        refuse_type(name, value, "a path as text")
    return path


def read_existing_path(name: str, value: Any) -> str:
    path = read_path(name, value)
    if not Path(path).exists():
        raise MissingFileError(f"{name}: there is no file {path!r}")
    return path


def read_quantity(name: str, value: Any) -> str | float:
    """A number from 0 on, or text with a unit: "5ms", "4GiB", "0.5%"."""
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not hasattr(value, "__float__"):
        refuse_type(name, value, "a number or text with a unit")
    number = float(value)
    if not 0 <= number < math.inf:
        raise UsageError(f"{name} is {number:g}; a finite number from 0 on is allowed")
    return number


def read_fraction(name: str, value: Any) -> str | float:
    """A number from 0 to 1, or text such as "0.5%"."""
    fraction = read_quantity(name, value)
    if not isinstance(fraction, str) and fraction > 1:
        raise UsageError(f"{name} is {fraction:g}; 0 to 1 is allowed\n      Give {fraction:g} % as '{fraction:g}%'")
    return fraction


def read_callable(name: str, value: Any) -> Any:
    if not callable(value):
        refuse_type(name, value, "a function")
    return value
