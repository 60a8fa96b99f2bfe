"""The engines of the comparison, and the processes that run them.

Every engine and model has a process of its own, stopped (SIGSTOP) while another is measured: thread pools that spin
while they wait would else steal from whoever is being measured. All are pinned to the same cores.
"""

import ctypes
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy

HERE = pathlib.Path(__file__).parent
START_SECONDS = 240  # a compiler's first start; what takes longer is left out


@dataclass(frozen=True)
class Engine:
    name: str
    title: str
    precision: str
    ours: bool = False
    full: bool = False  # only in `make bench-full`
    lean: bool = True  # starts and memory are measured too


ENGINES = [
    Engine("eager", "eager PyTorch", "f32"),
    Engine("torchscript", "TorchScript", "f32", full=True),
    Engine("inductor", "Inductor, freezing", "f32"),
    Engine("autotune", "Inductor, max-autotune", "f32", lean=False),
    Engine("ort_f32", "ONNX Runtime", "f32"),
    Engine("ov_f32", "OpenVINO", "f32"),
    Engine("lissome_f32", "lissome", "f32", ours=True),
    Engine("ov_bf16", "OpenVINO", "bf16"),
    Engine("lissome_bf16", "lissome", "bf16", ours=True),
    Engine("ort_int8", "ONNX Runtime", "int8"),
    Engine("ov_int8", "OpenVINO", "int8"),
    Engine("lissome_int8", "lissome", "int8", ours=True),
]


class Missing(Exception):
    """An engine that cannot run this model here, and why."""


@dataclass
class Place:
    """Where programs and models lie."""

    python: pathlib.Path
    worker: pathlib.Path  # lissome's
    threads: int

    def command(self, engine: Engine, folder: pathlib.Path, inputs: str) -> list[str]:
        if engine.ours:
            model = folder / f"{engine.precision}.lissome"
            if not model.exists():
                raise Missing("there is no such model for this processor")
            return [str(self.worker), str(model), str(folder / inputs), str(self.threads)]
        if engine.name.startswith(("ort_", "ov_")):
            path = folder / "peers.json"
            choice = json.loads(path.read_text(encoding="utf-8")).get(engine.name, {}) if path.exists() else {}
            if "file" not in choice:
                raise Missing(choice.get("reason", "not installed"))
        script = str(HERE / "peer_worker.py")
        return [str(self.python), script, engine.name, str(folder), str(folder / inputs), str(self.threads)]


def read_outputs(ask: Callable[[str, pathlib.Path], str]) -> numpy.ndarray:
    """What a process answers to all inputs of its file; `ask` sends a line to it and waits for the answer."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "outputs.npz"
        ask("outputs", path)
        with numpy.load(path) as file:
            return file["output"]


def end_with_parent() -> None:
    """A stopped process would never notice that nobody asks any more."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class Process:
    """An engine with its model, at rest except while it answers."""

    def __init__(self, command: list[str]):
        self.errors = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, start_new_session=True,
            preexec_fn=end_with_parent,
        )
        limit = threading.Timer(START_SECONDS, self.process.kill)
        limit.start()
        self.read_answer()
        limit.cancel()
        self.pause()

    def read_answer(self) -> str:
        while answer := self.process.stdout.readline():
            # Compilers may print of their own accord.
            if answer.startswith(("ready", "ok")) or answer.split()[0:1] and answer.split()[0].isdigit():
                return answer.strip()
        status = self.process.wait()
        if status == -signal.SIGKILL:
            raise Missing(f"not ready after {START_SECONDS} s")
        raise Missing(f"crashed: {signal.Signals(-status).name}" if status < 0 else last_line(self.errors))

    def pause(self) -> None:
        os.kill(self.process.pid, signal.SIGSTOP)

    def ask(self, *words: object) -> str:
        os.kill(self.process.pid, signal.SIGCONT)
        print(*words, file=self.process.stdin, flush=True)
        answer = self.read_answer()
        self.pause()
        return answer

    def run(self, warm_up: int, runs: int) -> list[float]:
        """Milliseconds of one round; the first calls wake caches and threads and do not count."""
        return [int(word) / 1e6 for word in self.ask("run", warm_up + runs).split()[warm_up:]]

    def read_outputs(self) -> numpy.ndarray:
        return read_outputs(self.ask)

    def stop(self) -> None:
        self.process.kill()
        self.process.wait()


def last_line(errors) -> str:
    errors.seek(0)
    lines = [line.strip() for line in errors.read().splitlines() if line.strip()]
    return lines[-1][:200] if lines else "ended without a word"


def measure_lean(command: list[str], answers: int, starts: int) -> dict[str, float]:
    """Seconds from the start of a process to its first answer (median of `starts` starts, files in the page cache) and
    MiB at the peak of one that answers `answers` times."""
    seconds, peak = [], 0.0
    for start in range(starts):
        with tempfile.TemporaryFile("w+") as errors:
            begin = time.monotonic_ns()
            words = [*command, str(answers if start == 0 else 1)]
            try:
                done = subprocess.run(
                    words, stdout=subprocess.PIPE, stderr=errors, text=True, check=False, timeout=START_SECONDS
                )
            except subprocess.TimeoutExpired:
                raise Missing(f"no answer after {START_SECONDS} s") from None
            if done.returncode != 0:
                raise Missing(last_line(errors))
        first, kilobytes = done.stdout.strip().splitlines()[-1].split()
        seconds.append((int(first) - begin) / 1e9)
        if start == 0:
            peak = int(kilobytes) / 1024
    return {"first_answer_s": statistics.median(seconds), "peak_mib": peak}


def pin_to(cores: list[int]) -> None:
    """This process and those that it starts."""
    os.sched_setaffinity(0, cores)


def order_turns(items: list, index: int) -> list:
    """Who runs when in round `index`: each starts with another one and alternates the direction, so that nobody has a
    steady neighbour."""
    shift = index // 2 % len(items)
    turn = items[shift:] + items[:shift]
    return turn if index % 2 == 0 else turn[::-1]


def note(text: str, end: str = "") -> None:
    print(f"\r\033[K{text}", end=end, file=sys.stderr, flush=True)
