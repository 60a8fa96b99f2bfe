"""Every keyword of every function, given a value of a wrong type or far out of range: an exception of Python's own type that
is a lissome.Error too and names the keyword, never a text of pybind11."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import lissome
import pytest
import torch

CAST_TEXTS = re.compile("incompatible (function|constructor) arguments|[Uu]nable to cast|C\\+\\+ type")


class Foreign:
    """Of a type that nobody expects."""


X, LABELS = torch.randn(8, 6), torch.arange(8) % 3
# The arguments of a call, beside the one under test.
GIVEN: dict[str, dict[str, Any]] = {
    "load": {"path": "model.lissome"},
    "prepare": {"example_inputs": (X[:2],)},
    "quantize": {"data": X, "example_inputs": (X[:2],)},
    "optimize": {"example_inputs": (X[:2],), "time": "5s"},
    "train": {"data": X, "labels": LABELS, "example_inputs": (X[:2],)},
    "budget": {"data": X, "labels": LABELS, "example_inputs": (X[:2],), "memory": "1GiB"},
}
# Any object is a sensible value, or one that only the user's own code can judge.
FREE = {"data", "labels", "train_data", "validation", "validation_labels", "example_inputs"}
WRONG: list[Any] = [Foreign(), [Foreign()], {"a": Foreign()}, b"bytes", 3 + 4j]
FAR: list[Any] = [2**80, -(2**80), -1, "", "no such word", float("nan")]


def list_cases(values: list[Any]) -> Iterator[Any]:
    for function in GIVEN:
        for name in inspect.signature(getattr(lissome, function)).parameters:
            if name not in FREE:
                # The contents of a dictionary of arguments are for the module to judge.
                for value in [value for value in values if not (name == "example_kwargs" and isinstance(value, dict))]:
                    text = value if isinstance(value, str) else f"{type(value).__name__} {str(value)[:8]}"
                    yield pytest.param(function, name, value, id=f"{function} {name} {text}")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("arguments")
    lissome.prepare(make_module(), (X[:2],)).save(folder / "model.lissome")
    return folder


def make_module() -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(6, 3))


def call(function: str, name: str, value: Any) -> Any:
    given = dict(GIVEN[function])
    if function != "load":
        given["model"] = make_module()
    return getattr(lissome, function)(**(given | {name: value}))


@pytest.mark.parametrize(("function", "name", "value"), list(list_cases(WRONG)))
def test_a_wrong_type_is_reported_by_the_keywords_name(
    monkeypatch: pytest.MonkeyPatch, folder: Path, function: str, name: str, value: Any
):
    monkeypatch.chdir(folder)
    with pytest.raises((TypeError, ValueError)) as raised:
        call(function, name, value)
    assert isinstance(raised.value, lissome.Error), raised.value
    assert name in str(raised.value) and not CAST_TEXTS.search(str(raised.value)), raised.value
    assert isinstance(raised.value, TypeError) or not isinstance(value, Foreign)


@pytest.mark.parametrize(("function", "name", "value"), list(list_cases(FAR)))
def test_a_value_out_of_range_works_or_is_refused_plainly(
    monkeypatch: pytest.MonkeyPatch, folder: Path, function: str, name: str, value: Any
):
    monkeypatch.chdir(folder)
    try:
        call(function, name, value)
    except lissome.Error as error:
        assert not isinstance(error, lissome.InternalError), error
        assert not CAST_TEXTS.search(str(error)), error


@pytest.mark.parametrize("name", ["max_loss", "time", "latency", "memory"])
@pytest.mark.parametrize("value", [-1, -0.5, float("nan"), float("inf")])
def test_quantities_below_nothing_are_refused(name: str, value: float):
    with pytest.raises(lissome.UsageError, match=f"{name} is .*from 0 on is allowed"):
        call("optimize", name, value)


def test_a_loss_in_percent_is_refused_with_its_spelling():
    with pytest.raises(lissome.UsageError, match="max_loss is 5; 0 to 1 is allowed\n *Give 5 % as '5%'"):
        call("optimize", "max_loss", 5)


@pytest.mark.parametrize("function", ["load", "prepare", "quantize", "optimize", "train", "budget"])
def test_more_threads_than_a_process_can_have_are_refused(monkeypatch: pytest.MonkeyPatch, folder: Path, function: str):
    monkeypatch.chdir(folder)
    with pytest.raises(lissome.UsageError, match="threads is 2000000000; 0 to 1024 is allowed"):
        call(function, "threads", 2_000_000_000)


@pytest.mark.parametrize("name", ["batch", "memory"])
def test_a_budget_needs_a_batch_and_a_memory(name: str):
    with pytest.raises(lissome.ArgumentTypeError, match=f"{name} is of type NoneType"):
        call("budget", name, None)


@pytest.mark.parametrize("name", ["memory", "size"])
def test_parts_of_a_byte_are_refused(name: str):
    with pytest.raises(lissome.UsageError, match=f"{name} is 1000000000.5 bytes; a whole number is allowed"):
        call("optimize", name, 1e9 + 0.5)
