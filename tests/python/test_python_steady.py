"""Beside other work a model answers with the same bits, and soon: nobody waits for a thread that is off the processor."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import lissome
import numpy as np
import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).parents[2] / "bench"))
from scenes import make_scene

CALLS = 100


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(3, 32, 3, padding=1), nn.ReLU(), nn.Conv2d(32, 32, 3, padding=1, groups=32), nn.Conv2d(32, 64, 1),
        nn.ReLU(), nn.Conv2d(64, 64, 3, stride=2), nn.AvgPool2d(6), nn.Flatten(), nn.LayerNorm(1024),
        nn.Linear(1024, 512), nn.GELU(), nn.Linear(512, 10), nn.Softmax(1),
    )  # fmt: skip
    path = tmp_path_factory.mktemp("steady") / "model.lissome"
    lissome.prepare(net, (torch.randn(1, 3, 56, 56),), threads=2).save(path)
    return path


# In a process without torch, where the runtime has workers of its own.
ANSWER = """
import os, sys, time
import numpy as np
import lissome
threads, calls, taken, path, x, out = *map(int, sys.argv[1:4]), *sys.argv[4:]
model, x = lissome.load(path, threads=threads), np.load(x)
for _ in range(20):
    model(x)
if taken:  # as `taskset -ap` does from outside: every thread of the process loses all processors but one
    for task in map(int, os.listdir("/proc/self/task")):
        os.sched_setaffinity(task, [min(os.sched_getaffinity(0))])
answers, seconds = [], []
for _ in range(calls):
    begin = time.perf_counter()
    answers.append(model(x))
    seconds.append(time.perf_counter() - begin)
assert "torch" not in sys.modules
np.savez(out, answers=np.stack(answers), seconds=np.array(seconds))
"""


def answer(model: Path, folder: Path, threads: int, calls: int = CALLS, taken: bool = False) -> tuple[np.ndarray, float]:
    x, out = folder / "x.npy", folder / "out.npz"
    np.save(x, np.random.default_rng(0).standard_normal((1, 3, 56, 56), dtype=np.float32))
    words = [str(threads), str(calls), str(int(taken)), str(model), str(x), str(out)]
    environment = os.environ | {"PYTHONPATH": str(Path(lissome.__file__).parents[1])}
    subprocess.run([sys.executable, "-c", ANSWER, *words], check=True, env=environment)
    with np.load(out) as file:
        return file["answers"], float(file["seconds"].mean())


@pytest.mark.parametrize("scene", ["one busy", "all busy", "bursts"])
def test_other_work_changes_no_bits_and_costs_no_more_than_one_thread(model: Path, tmp_path: Path, scene: str):
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("one processor")
    quiet, _ = answer(model, tmp_path, threads=2, calls=1)
    os.sched_setaffinity(0, cores[:2])
    try:
        with make_scene(scene, cores[:2]):
            time.sleep(0.2)
            pairs = [(answer(model, tmp_path, threads=2), answer(model, tmp_path, threads=1)) for _ in range(3)]
    finally:
        os.sched_setaffinity(0, cores)
    for (answers, _), _ in pairs:
        assert (answers == quiet[0]).all()
    # Waiting for the slower thread at each step took several times as long.
    assert min(two / one for (_, two), (_, one) in pairs) < 1.5


def test_a_processor_that_is_taken_away_costs_no_more_than_it_did(model: Path, tmp_path: Path):
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("one processor")
    quiet, _ = answer(model, tmp_path, threads=2, calls=1)
    pairs = [(answer(model, tmp_path, 2, taken=True), answer(model, tmp_path, 1, taken=True)) for _ in range(3)]
    for (answers, _), _ in pairs:
        assert (answers == quiet[0]).all()
    assert min(two / one for (_, two), (_, one) in pairs) < 1.5
