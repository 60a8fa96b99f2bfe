"""Ctrl-C while Python code of others runs."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def keep_interrupt() -> Iterator[None]:
    """Raises at the end of the block the KeyboardInterrupt that Python lost inside: it ignores what a finalizer or a weak
    reference's callback raises, and torch.export has many of both."""
    # A handler of the caller's own stays, and only the main thread may set one.
    if (
        threading.current_thread() is not threading.main_thread()
        or signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield
        return
    interrupted = False

    def interrupt(*_: Any) -> None:
        nonlocal interrupted
        interrupted = True
        raise KeyboardInterrupt

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if interrupted:
        raise KeyboardInterrupt
