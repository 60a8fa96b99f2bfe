"""lissome.train on a user's Dataset: processes make its samples anew in each epoch, and leave nothing behind."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import lissome

SAMPLES = 60


class Points(torch.utils.data.Dataset[Any]):
    """Each call is written down; `change` may turn a sample into something else."""

    def __init__(self, log: Path, change: Callable[[int, torch.Tensor], torch.Tensor] = lambda _, x: x):
        generator = torch.Generator().manual_seed(1)
        self.x = torch.randn(SAMPLES, 6, generator=generator)
        self.log, self.change = log, change

    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        with self.log.open("a") as log:
            log.write(f"{os.getpid()} {index}\n")
        return self.change(index, self.x[index]), int(self.x[index, :3].argmax())


def make_classifier() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.ReLU(), torch.nn.Linear(16, 3)).train()


def list_shared_memory() -> set[str]:
    return {name for name in os.listdir("/dev/shm") if name.startswith(("torch_", "psm_", "sem."))}


def train(data: Any, **keywords: Any) -> tuple[lissome.Trained, dict[str, torch.Tensor]]:
    before = list_shared_memory()
    module = make_classifier()
    trained = lissome.train(module, data, example_inputs=(torch.randn(4, 6),), batch=16, lr=0.02, **keywords)
    assert multiprocessing.active_children() == []
    assert list_shared_memory() <= before
    return trained, module.state_dict()


def check_same(left: dict[str, torch.Tensor], right: dict[str, torch.Tensor]) -> None:
    assert all(torch.equal(left[name], right[name]) for name in left)


def add_noise(_: int, x: torch.Tensor) -> torch.Tensor:
    return x + 0.1 * torch.randn(6) + random.random() + torch.from_numpy(np.random.rand(6)).float()


def test_processes_make_each_sample_in_each_epoch_and_the_weights_are_those_of_data_in_memory(tmp_path: Path):
    data = Points(tmp_path / "log")
    plain, wanted = train(data, epochs=3)
    assert len((tmp_path / "log").read_text().splitlines()) == SAMPLES
    (tmp_path / "log").unlink()
    trained, seen = train(data, epochs=3, workers=2)
    check_same(seen, wanted)
    assert [row["loss"] for row in trained.record["epochs"]] == [row["loss"] for row in plain.record["epochs"]]
    calls = [line.split() for line in (tmp_path / "log").read_text().splitlines()]
    processes, indices = {int(call[0]) for call in calls}, [int(call[1]) for call in calls]
    assert os.getpid() not in processes and len(processes) == 2
    assert all(indices.count(index) >= 3 for index in range(SAMPLES))


def test_random_samples_are_the_same_for_any_number_of_processes_and_new_in_each_epoch(tmp_path: Path):
    data = Points(tmp_path / "log", add_noise)
    runs = [train(data, epochs=2, workers=workers, seed=5)[1] for workers in (1, 3)]
    check_same(*runs)
    other = train(data, epochs=2, workers=1, seed=6)[1]
    assert not torch.equal(other["0.weight"], runs[0]["0.weight"])


def test_labels_beside_the_samples(tmp_path: Path):
    class Inputs(Points):
        def __getitem__(self, index: int) -> torch.Tensor:
            return super().__getitem__(index)[0]

    labels = Points(tmp_path / "log").x[:, :3].argmax(1)
    wanted = train(Points(tmp_path / "log"), workers=1)[1]
    check_same(train(Inputs(tmp_path / "log"), labels=labels, workers=1)[1], wanted)
    with pytest.raises(lissome.InvalidInputError, match="59 are given for 60 samples"):
        train(Inputs(tmp_path / "log"), labels=labels[1:], workers=1)


def fail_at(bad: int, value: float | None = None) -> Callable[[int, torch.Tensor], torch.Tensor]:
    def change(index: int, x: torch.Tensor) -> torch.Tensor:
        if index != bad:
            return x
        if value is None:
            raise FileNotFoundError("no such picture")
        return x * value

    return change


@pytest.mark.parametrize("bad", [3, 50])  # among the first samples, which are looked at beforehand, and not
@pytest.mark.parametrize(
    ("value", "message"),
    [(None, r"FileNotFoundError: no such picture \(test_python_workers"), (float("nan"), "nan")],
)
def test_a_bad_sample_is_named_or_left_out(tmp_path: Path, bad: int, value: float | None, message: str):
    data = Points(tmp_path / "log", fail_at(bad, value))
    with pytest.raises(lissome.InvalidInputError, match=message) as raised:
        train(data, workers=2)
    assert value is not None or f"sample {bad} of Points" in str(raised.value)
    assert multiprocessing.active_children() == []
    trained, _ = train(data, workers=2, bad_samples="skip", epochs=2)
    notes = [note for note in trained.record["notes"] if "left out" in note]
    assert len(notes) == 1 and f"sample {bad} of Points" in notes[0]
    assert trained.record["steps"] == 8
    with pytest.raises(lissome.UsageError, match="bad_samples must be fatal or skip"):
        train(Points(tmp_path / "log"), workers=2, bad_samples="leave")


def die_at(index: int, x: torch.Tensor) -> torch.Tensor:
    if index == 50:
        os.kill(os.getpid(), signal.SIGKILL)
    return x


def test_a_process_that_dies_ends_training_with_an_error(tmp_path: Path):
    with pytest.raises(lissome.Error, match="the processes that load samples"):
        train(Points(tmp_path / "log", die_at), workers=2)
    assert multiprocessing.active_children() == []


_SCRIPT = """
import sys, torch, lissome
from pathlib import Path
from test_python_workers import Points, make_classifier

data = Points(Path(sys.argv[1]))
try:
    lissome.train(make_classifier(), data, example_inputs=(torch.randn(4, 6),), batch=4, epochs=100000, workers=2,
                  bad_samples="skip")
except KeyboardInterrupt as error:
    print("interrupted" if error.best.record["steps"] else "nothing")
"""


def is_alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text().split(") ")[1][0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("way", [signal.SIGINT, signal.SIGKILL])
def test_nothing_is_left_when_training_is_interrupted_or_killed(tmp_path: Path, way: signal.Signals):
    before = list_shared_memory()
    log = tmp_path / "log"
    paths = [str(Path(lissome.__file__).parents[1]), str(Path(__file__).parent)]
    running = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", _SCRIPT, str(log)],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
        stdout=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 60
    while not (log.exists() and log.read_text().count("\n") > 4 * SAMPLES) and time.monotonic() < end:
        time.sleep(0.1)
    running.send_signal(way)
    printed, _ = running.communicate(timeout=60)
    assert printed == ("interrupted\n" if way == signal.SIGINT else "")
    processes = {int(line.split()[0]) for line in log.read_text().splitlines() if line.strip()}
    while any(is_alive(process) for process in processes) and time.monotonic() < end:
        time.sleep(0.1)
    assert len(processes) == 2 and not any(is_alive(process) for process in processes)
    assert list_shared_memory() <= before
