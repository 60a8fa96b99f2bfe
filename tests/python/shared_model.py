"""One model that several threads call at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

THREADS, CALLS, ROWS = 10, 50, 4


def find_wrong_answers(model: Any, rows: Any, equal: Callable[[Any, Any], bool]) -> list[int]:
    """The threads that got another answer for their rows of the 40 than one call after the other gives."""
    parts = [rows[i : i + ROWS] for i in range(0, THREADS * ROWS, ROWS)]
    expected = [model(part) for part in parts]
    wrong: list[int] = []

    def work(place: int) -> None:
        for _ in range(CALLS):
            if not equal(model(parts[place]), expected[place]):
                wrong.append(place)

    threads = [threading.Thread(target=work, args=(place,)) for place in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return wrong
