"""Ctrl-C at any moment of optimize and train: a KeyboardInterrupt with the best so far, and nothing else."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lissome
import pytest
import torch

SAMPLES = 20_000
PLACES = 10  # that are interrupted, one after the other
SECONDS = 1.3  # over which they lie, of a training


@pytest.fixture(scope="module")
def data() -> tuple[torch.nn.Module, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    module = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.BatchNorm1d(512), torch.nn.ReLU(), torch.nn.Linear(512, 10)
    )
    x, labels = torch.randn(SAMPLES, 256), torch.randint(0, 10, (SAMPLES,))
    lissome.prepare(module, (x[:1],))  # what torch.export imports is imported, once and whole
    return module, x, labels


class Signal:
    """A SIGINT some seconds after its start."""

    def __init__(self, delay: float):
        self.sent = self._started = 0.0
        self._timer = threading.Timer(delay, self._send)

    def start(self) -> None:
        if not self._started:
            self._started = time.monotonic()
            self._timer.start()

    def _send(self) -> None:
        self.sent = time.monotonic()
        os.kill(os.getpid(), signal.SIGINT)

    def catch(self, work: Callable[[], Any]) -> tuple[BaseException, float]:
        """The exception that `work` raises, and the seconds between signal and exception."""
        with pytest.raises(BaseException) as raised:  # noqa: PT011  that it is the right one is what the tests check
            work()
        late = time.monotonic()
        self._timer.join()
        return raised.value, late - self.sent


@pytest.mark.parametrize("place", range(PLACES))
def test_optimize(data: tuple[torch.nn.Module, torch.Tensor, torch.Tensor], place: int):
    """The first places by time, for there is no progress yet; the others by progress, for no search takes as long as the
    one before. A search reports some 250 times."""
    module, x, labels = data
    stages: list[str] = []
    by_time = place < 3
    interrupt = Signal(0.02 + 0.2 * place if by_time else 0.0)

    def watch(stage: str, message: str, fraction: float, seconds_left: float) -> None:
        stages.append(stage)
        if len(stages) > 20 * (place - 3):
            interrupt.start()

    if by_time:
        interrupt.start()
    words = {"data": x, "labels": labels, "time": "60s", "threads": 1}
    error, seconds = interrupt.catch(lambda: lissome.optimize(module.eval(), (x[:1],), progress=watch, **words))
    assert type(error) is lissome.Interrupted and isinstance(error, KeyboardInterrupt)
    assert "interrupted" in str(error) and seconds < 5
    if error.best is not None:
        assert error.best.record["interrupted"]
        torch.testing.assert_close(error.best(x[:3]), module(x[:3]), rtol=0.2, atol=0.2)
    assert error.best is not None or "computation" not in stages


def test_optimize_when_a_step_was_kept(data: tuple[torch.nn.Module, torch.Tensor, torch.Tensor]):
    module, x, labels = data

    def interrupt_later_steps(stage: str, *_: object) -> None:
        if stage == "computation":
            os.kill(os.getpid(), signal.SIGINT)

    words = {"data": x, "labels": labels, "time": "60s", "threads": 1}
    with pytest.raises(lissome.Interrupted) as raised:
        lissome.optimize(module.eval(), (x[:1],), progress=interrupt_later_steps, **words)
    best = raised.value.best
    assert best.record["interrupted"] and any(step["accepted"] for step in best.record["steps"])
    torch.testing.assert_close(best(x[:3]), module(x[:3]))


@pytest.mark.parametrize("place", range(PLACES))
def test_train(data: tuple[torch.nn.Module, torch.Tensor, torch.Tensor], place: int):
    module, x, labels = data
    words = {"validation": (x,), "validation_labels": labels, "epochs": 1000, "threads": 1}
    interrupt = Signal(0.02 + SECONDS * place / PLACES)
    interrupt.start()
    error, seconds = interrupt.catch(
        lambda: lissome.train(module.train(), x, labels=labels, example_inputs=(x[:4],), **words)
    )
    assert type(error) is lissome.Interrupted and "interrupted" in str(error) and seconds < 5
    if error.best is not None:
        assert error.best.record["interrupted"]
        for name, tensor in module.state_dict().items():  # the module holds what was learned
            assert torch.equal(tensor, error.best.weights[name])
    assert error.best is not None or place < PLACES // 2


class Interrupting:
    def __del__(self) -> None:
        os.kill(os.getpid(), signal.SIGINT)


class Losing(torch.nn.Linear):
    """Is exported with a Ctrl-C whose KeyboardInterrupt Python ignores, for a finalizer raises it."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Interrupting()
        return super().forward(x)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("work", ["optimize", "train", "prepare", "budget"])
def test_an_interrupt_that_python_loses(data: tuple[torch.nn.Module, torch.Tensor, torch.Tensor], work: str):
    _, x, labels = data
    words = {"labels": labels, "example_inputs": (x[:1],)}
    module = Losing(256, 10)
    with pytest.raises(lissome.Interrupted if work in ("optimize", "train") else KeyboardInterrupt):
        if work == "optimize":
            lissome.optimize(module.eval(), data=x, time="60s", **words)
        elif work == "train":
            lissome.train(module, x, epochs=1000, **words)
        elif work == "prepare":
            lissome.prepare(module.eval(), (x[:1],))
        else:
            lissome.budget(module, x, memory="1GiB", **words)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


class Stopped(torch.nn.Linear):
    """Is exported with several Ctrl-C in its code."""

    def __init__(self, interrupts: int, survived: list[int]):
        super().__init__(8, 4)
        self.interrupts = interrupts
        self.note = survived.append

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for i in range(self.interrupts):
            signal.raise_signal(signal.SIGINT)
            self.note(i)
        return super().forward(x)


@pytest.mark.parametrize("interrupts", [1, 2])
def test_an_export_ends_before_the_first_interrupt_is_raised(interrupts: int, capfd: pytest.CaptureFixture[str]):
    """PyTorch may abort the process where one passes through its C++."""
    survived: list[int] = []
    module = Stopped(interrupts, survived)
    with pytest.raises(KeyboardInterrupt):
        lissome.prepare(module.eval(), (torch.randn(3, 8),))
    assert survived == [0]
    assert "Ctrl-C again stops it at once" in capfd.readouterr().err
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.filterwarnings("ignore:.*Overriding a previously registered kernel")
def test_an_interrupt_while_types_are_checked(monkeypatch: pytest.MonkeyPatch):
    """In a Python process the meta device has forms that are written in Python, where a Ctrl-C can arrive."""
    armed = False

    def size_of_tanh(x: torch.Tensor) -> torch.Tensor:
        if armed:
            signal.raise_signal(signal.SIGINT)
        return torch.empty_like(x)

    save = torch.export.save

    def save_and_arm(*arguments: Any, **keywords: Any) -> None:
        nonlocal armed
        save(*arguments, **keywords)
        armed = True

    library = torch.library.Library("aten", "IMPL", "Meta")
    library.impl("tanh", size_of_tanh)
    monkeypatch.setattr(torch.export, "save", save_and_arm)
    try:
        with pytest.raises(KeyboardInterrupt):
            lissome.prepare(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()).eval(), (torch.randn(1, 4),))
    finally:
        library._destroy()
    assert armed and signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_program_behind_python_m(tmp_path: Path):
    # A call takes so long that a million of them last beyond every signal.
    lissome.prepare(torch.nn.Linear(1024, 1024), (torch.randn(1, 1024),)).save(tmp_path / "model.lissome")
    command = [sys.executable, "-m", "lissome", "bench", "model.lissome", "--runs", "1000000"]
    environment = os.environ | {"PYTHONPATH": str(Path(lissome.__file__).parents[1])}
    for delay in (0.4, 0.7, 1.0):
        running = subprocess.Popen(command, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True)
        time.sleep(delay)
        running.send_signal(signal.SIGINT)
        _, errors = running.communicate(timeout=60)
        # Python itself dies of the signal before the program has begun.
        assert running.returncode == 130 and errors.endswith("interrupted\n") or running.returncode == -signal.SIGINT
