"""Processes that make the samples of a user's dataset while lissome trains, a batch at a time, in shared memory."""

from __future__ import annotations

import hashlib
import multiprocessing
import os
import random
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import PurePath
from types import TracebackType
from typing import Any

import numpy as np
import torch

from lissome import _lissome
from lissome.errors import InvalidInputError
from lissome.interrupts import keep_interrupt
from lissome.samples import LABELS, read_batch, to_tensor

_SECONDS_TO_LEAVE = 2.0  # for a process that is asked to end, before it is made to


def has_numbered_samples(data: Any) -> bool:
    """Whether any sample can be asked for by its number."""
    return isinstance(data, torch.utils.data.Dataset) and hasattr(data, "__len__") and hasattr(data, "__getitem__")


class SampleWorkers:
    """Processes that stay until the end of the `with` block. What they draw at random follows from the seed and from which
    samples a batch holds, so that it does not depend on how many there are or which of them makes a batch."""

    def __init__(self, data: Any, labels: Any, names: Sequence[str], processes: int, seed: int):
        self.samples = len(data)
        self.label_name = labels if isinstance(labels, str) else LABELS
        self._data_name = type(data).__name__
        self._labels = None if labels is None or isinstance(labels, str) else to_tensor(LABELS, labels)
        if self._labels is not None and len(self._labels) != self.samples:
            raise InvalidInputError(f"labels: {len(self._labels)} are given for {self.samples} samples")
        self._maker = _BatchMaker(data, list(names), self.label_name, seed)
        self._count = processes
        self._executor: ProcessPoolExecutor | None = None
        self._processes: list[multiprocessing.process.BaseProcess] = []

    def __enter__(self) -> SampleWorkers:
        before = set(multiprocessing.active_children())
        context = torch.multiprocessing.get_context()  # tensors go through shared memory that has no name any more
        self._executor = ProcessPoolExecutor(self._count, context, _start_worker, (self._maker,))
        # All at once and from here: the threads that ask for batches come and go.
        for started in [self._executor.submit(os.getpid) for _ in range(self._count)]:
            started.result()
        self._processes = [child for child in multiprocessing.active_children() if child not in before]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._executor is not None
        # The executor reaps its processes itself, in a thread of its own; two that wait for one get in each other's way.
        leaving = threading.Thread(target=self._executor.shutdown, kwargs={"cancel_futures": True})
        leaving.start()
        leaving.join(_SECONDS_TO_LEAVE)
        if leaving.is_alive():
            for process in self._processes:
                process.kill()
            leaving.join()

    def fetch(self, samples: Sequence[int]) -> list[tuple[str, torch.Tensor]] | str:
        """Arrays by name, or what is wrong. Called from several threads."""
        assert self._executor is not None
        columns = self._executor.submit(_make_batch, samples).result()
        if isinstance(columns, str):
            return columns
        if self._labels is not None:
            columns[self.label_name] = self._labels[list(samples)]
        return list(columns.items())

    def describe(self, sample: int) -> str:
        return f"sample {sample} of {self._data_name}"

    @keep_interrupt()
    def read_first(self, count: int, skip_bad: bool) -> _lissome.Dataset:
        """The first samples that can be had, as a dataset."""
        count = min(count, self.samples)
        columns = self.fetch(range(count))
        if isinstance(columns, str) or (skip_bad and not _are_finite(columns)):
            columns = self.fetch(self._find_good(count, skip_bad))
        if isinstance(columns, str):
            raise InvalidInputError(f"{self._data_name}: {columns}")
        return _lissome.make_dataset(columns, self.label_name if self.label_name in dict(columns) else "")

    def _find_good(self, count: int, skip_bad: bool) -> list[int]:
        good: list[int] = []
        for sample in range(self.samples):
            columns = self.fetch([sample])
            if isinstance(columns, str):
                if not skip_bad:
                    raise InvalidInputError(f"{self.describe(sample)}: {columns}")
            elif _are_finite(columns):
                good.append(sample)
            if len(good) == count:
                break
        if not good:
            raise InvalidInputError(f"{self._data_name}: there is no sample that can be had")
        return good


def _are_finite(columns: list[tuple[str, torch.Tensor]]) -> bool:
    return all(bool(tensor.isfinite().all()) for _, tensor in columns)


class _BatchMaker:
    """What each process has."""

    def __init__(self, data: Any, names: list[str], label_name: str, seed: int):
        self._data, self._names, self._label_name, self._seed = data, names, label_name, seed

    def make(self, samples: Sequence[int]) -> dict[str, torch.Tensor] | str:
        self._set_seeds(samples)
        try:
            batch = torch.utils.data.default_collate([self._data[sample] for sample in samples])
            return read_batch(batch, self._names, self._label_name)
        except Exception as error:  # noqa: BLE001  any error of the user's code is reported, or its sample skipped
            place = traceback.extract_tb(error.__traceback__)[-1]
            return f"{type(error).__name__}: {error} ({PurePath(place.filename).name}:{place.lineno})"

    def _set_seeds(self, samples: Sequence[int]) -> None:
        text = f"{self._seed}: {' '.join(map(str, samples))}"
        seed = int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "little")
        random.seed(seed)
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)


_maker: _BatchMaker | None = None


def _start_worker(maker: _BatchMaker) -> None:
    global _maker  # noqa: PLW0603  one for each process
    _maker = maker
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that trains, which ends this one
    torch.set_num_threads(1)
    threading.Thread(target=_leave_with, args=(os.getppid(),), daemon=True).start()


def _leave_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)


def _make_batch(samples: Sequence[int]) -> dict[str, torch.Tensor] | str:
    assert _maker is not None
    return _maker.make(samples)
