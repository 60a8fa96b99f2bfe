"""Measures the memory of a block of Python: bytes of libtorch's CPU allocator and of lissome's own."""

from __future__ import annotations

import contextlib
import gc
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from lissome import _lissome

_LISTED = 5
_Function = TypeVar("_Function", bound=Callable[..., Any])


@dataclass
class MemoryUse:
    """Bytes above those that were live at the beginning of the block; complete when the block has ended."""

    name: str
    peak: int = 0
    kept: int = 0
    tensors: list[tuple[str, int]] = field(default_factory=list)  # new ones that stay, largest first: what, bytes

    @property
    def efficiency(self) -> float:
        """The kept bytes over the peak: 1 if nothing was temporary or nothing was allocated."""
        return self.kept / self.peak if self.peak > 0 else 1.0

    def __str__(self) -> str:
        text = f"{self.name}: peak {_print_bytes(self.peak)}, kept {_print_bytes(self.kept)} ({self.efficiency:.0%})"
        listed = [f"{what} {_print_bytes(count)}" for what, count in self.tensors[:_LISTED]]
        if len(self.tensors) > _LISTED:
            listed.append(f"{len(self.tensors) - _LISTED} more")
        return text + (": " + ", ".join(listed) if listed else "")


def print_use(use: MemoryUse) -> None:
    print(use, file=sys.stderr)


class memory_probe(contextlib.ContextDecorator):  # noqa: N801  used as a decorator and after `with`
    """Measures the peak memory of a function or a block, and the memory that it keeps.

    @lissome.memory_probe()
    def step(batch): ...

    with lissome.memory_probe("forward", report=None) as use: ...
    use.peak, use.kept, use.efficiency, use.tensors

    report: called with each MemoryUse; by default it prints it to stderr. Tensors from before the first probe of the
    process are not counted, nor is their release.
    """

    def __init__(self, name: str = "", report: Callable[[MemoryUse], None] | None = print_use):
        self._name = name
        self._report = report
        self._open: list[tuple[MemoryUse, _lissome.MemoryProbe, set[int]]] = []

    def __call__(self, function: _Function) -> _Function:
        if not self._name:
            self._name = function.__qualname__
        return super().__call__(function)

    def __enter__(self) -> MemoryUse:
        use = MemoryUse(self._name or "block")
        before = set(_list_storages())
        self._open.append((use, _lissome.MemoryProbe(), before))
        return use

    def __exit__(self, *error: object) -> None:
        use, probe, before = self._open.pop()
        use.peak, use.kept = probe.finish()
        new = [entry for place, entry in _list_storages().items() if place not in before]
        use.tensors = sorted(new, key=lambda entry: -entry[1])
        if self._report is not None:
            self._report(use)


def _list_storages() -> dict[int, tuple[str, int]]:
    """By address: the first tensor found in each storage of the CPU, and the bytes of the storage."""
    found: dict[int, tuple[str, int]] = {}
    for thing in gc.get_objects():
        # Subclasses may stand for tensors without memory of their own.
        if type(thing) not in (torch.Tensor, torch.nn.Parameter):
            continue
        if thing.layout != torch.strided or thing.device.type != "cpu":
            continue
        storage = thing.untyped_storage()
        if storage.data_ptr() not in found:
            name = str(thing.dtype).removeprefix("torch.")
            found[storage.data_ptr()] = (f"{name}{list(thing.shape)}", storage.nbytes())
    return found


def _print_bytes(count: int) -> str:
    for unit, size in (("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if abs(count) >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
