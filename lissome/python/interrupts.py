"""Ctrl-C while Python code of others runs."""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def keep_interrupt() -> Iterator[None]:
    """Raises at the end of the block the KeyboardInterrupt that Python lost inside: it ignores what a finalizer or a weak
    reference's callback raises."""
    with _note_interrupts(delayed=0):
        yield


@contextmanager
def delay_interrupt() -> Iterator[None]:
    """Raises the first KeyboardInterrupt at the end of the block, and a second one at once: one that passes through the
    C++ of torch.export may abort the process."""
    with _note_interrupts(delayed=1):
        yield


@contextmanager
def _note_interrupts(delayed: int) -> Iterator[None]:
    # A handler of the caller's own stays, and only the main thread may set one.
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    count = 0

    def interrupt(*_: Any) -> None:
        nonlocal count
        count += 1
        if count > delayed:
            raise KeyboardInterrupt
        print("stops when torch.export returns; Ctrl-C again stops it at once", file=sys.stderr)

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if count > 0:
        raise KeyboardInterrupt
