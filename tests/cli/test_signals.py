"""Signals and limits: SIGTERM and SIGINT at random moments, files that shrink under the program, limits on file size
and on address space, temporary files that killed processes left. soak_signals.py sends many more signals."""

from __future__ import annotations

import fcntl
import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from soak_signals import CHECKS, SMALL, Workload, handles_signals, list_words, make_workload, soak

Lissome = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Workload:
    made = make_workload(tmp_path_factory.mktemp("signals"), program, SMALL, inputs=3000)
    made.longest_wait = {"run": 1.0, "bench": 1.5, "optimize": min(4.0, time_search(made)), "train": 3.0}
    return made


def time_search(made: Workload) -> float:
    """Most of what a search takes once its kernels have been timed: signals later than that might meet none."""
    words = [str(word) for word in (made.program, *list_words("optimize", made))]
    folder = made.folder / "search"
    folder.mkdir()
    for _ in range(2):
        start = time.monotonic()
        subprocess.run(words, cwd=folder, check=True, capture_output=True)
    return 0.5 * (time.monotonic() - start)


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory, program: Path) -> Path:
    """A finished model of 48 MiB of weights, and an input for it."""
    folder = tmp_path_factory.mktemp("wide")
    torch.manual_seed(3)
    layers = [layer for _ in range(12) for layer in (torch.nn.Linear(1024, 1024), torch.nn.ReLU())]
    x = torch.randn(1, 1024)
    torch.export.save(torch.export.export(torch.nn.Sequential(*layers).eval(), (x,)), folder / "wide.pt2")
    words = [program, "prepare", folder / "wide.pt2", "-o", folder / "wide.lissome"]
    subprocess.run(words, check=True, capture_output=True)
    np.savez(folder / "x.npz", x=x.numpy())
    return folder


def start(program: Path, folder: Path, *words: object) -> subprocess.Popen[str]:
    """The command once it has its handlers."""
    child = subprocess.Popen(
        [str(program), *map(str, words)], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not handles_signals(child.pid, program):
        assert child.poll() is None
    return child


@pytest.mark.parametrize("command", CHECKS)
def test_signals_at_random_moments(made: Workload, command: str):
    summary = soak(made, command, 3, random.Random(11))
    assert len(summary.seconds) == 6
    assert summary.delivered > 0, "no signal came late enough for a result"


@pytest.mark.parametrize("command", ["audit", "budget", "inspect", "peaks", "prepare", "profile"])
def test_other_commands_answer_too(made: Workload, program: Path, tmp_path: Path, command: str):
    data = ["--data", made.folder / "labelled.npz", "--labels", "labels"]
    words = {
        "audit": ["audit", made.folder / "model.pt2"],
        "budget": ["budget", made.folder / "train.pt2", *data, "--memory", "64MiB"],
        "inspect": ["inspect", made.folder / "model.pt2"],
        "peaks": ["peaks", "--again"],
        "prepare": ["prepare", made.folder / "model.pt2", "--effort", "max", "-o", "p.lissome", "--cache", "none"],
        "profile": ["profile", made.folder / "model.lissome", "--runs", "1000000"],
    }[command]
    for which, wait in ((signal.SIGTERM, 0.0), (signal.SIGINT, 0.15), (signal.SIGTERM, 0.3)):
        child = start(program, tmp_path, *words)
        time.sleep(wait)
        began = time.monotonic()
        child.send_signal(which)
        _, errors = child.communicate()
        assert time.monotonic() - began < 1
        assert child.returncode in (130, 0)  # a fast command may have ended before
        assert (errors.splitlines()[-1:] == ["interrupted"]) == (child.returncode == 130) and "error" not in errors
        assert child.returncode == 130 or command in ("audit", "inspect")
    assert not list(tmp_path.iterdir())


def test_a_second_signal_ends_at_once(made: Workload, program: Path, tmp_path: Path):
    child = start(program, tmp_path, "bench", made.folder / "model.lissome", "--runs", "1000000")
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    child.send_signal(signal.SIGTERM)
    began = time.monotonic()
    _, errors = child.communicate()
    assert child.returncode == 130 and time.monotonic() - began < 0.5
    assert errors.splitlines()[-1] == "interrupted"


@pytest.mark.parametrize("limit", [[], ["--memory", "24MiB"]], ids=["mapped", "streamed"])
def test_a_model_truncated_under_bench_is_an_io_error(wide: Path, program: Path, tmp_path: Path, limit: list[str]):
    model = tmp_path / "wide.lissome"
    model.write_bytes((wide / "wide.lissome").read_bytes())
    child = start(program, tmp_path, "bench", model, "--runs", "1000000", *limit)
    time.sleep(1.5)
    assert child.poll() is None
    os.truncate(model, 100_000)
    output, errors = child.communicate(timeout=60)
    assert child.returncode == 1, errors
    assert "error io:" in errors and "wide.lissome" in errors and "truncated while it was used" in errors
    assert output == ""


@pytest.mark.parametrize("limit", [[], ["--memory", "24MiB"]], ids=["mapped", "streamed"])
def test_a_model_truncated_under_run_writes_no_result(wide: Path, program: Path, tmp_path: Path, limit: list[str]):
    model = tmp_path / "wide.lissome"
    model.write_bytes((wide / "wide.lissome").read_bytes())
    (tmp_path / "in").mkdir()
    for i in range(5000):
        os.link(wide / "x.npz", tmp_path / "in" / f"{i:05}.npz")
    expected = tmp_path / "expected.npz"
    words = ["run", wide / "wide.lissome", "--input", wide / "x.npz", "--output", expected]
    subprocess.run([program, *words], check=True, capture_output=True)
    child = start(program, tmp_path, "run", model, "--input", "in", "--output", "out", *limit)
    while not list((tmp_path / "out").glob("*.npz") if (tmp_path / "out").exists() else []):
        assert child.poll() is None
    os.truncate(model, 100_000)
    _, errors = child.communicate(timeout=60)
    assert child.returncode == 1 and "truncated while it was used" in errors, errors
    wanted = np.load(expected)
    outputs = sorted((tmp_path / "out").iterdir())
    assert 0 < len(outputs) < 5000
    for path in outputs:
        found = np.load(path)
        assert all(np.allclose(found[name], wanted[name], rtol=1e-4, atol=1e-5) for name in wanted), path


def test_a_bus_error_that_is_none_of_ours_ends_the_program(made: Workload, program: Path, tmp_path: Path):
    child = start(program, tmp_path, "bench", made.folder / "model.lissome", "--runs", "1000000")
    child.send_signal(signal.SIGBUS)
    child.communicate()
    assert child.returncode == -signal.SIGBUS


def limited(limit: str, program: Path, *words: object, folder: Path) -> subprocess.CompletedProcess[str]:
    line = " ".join(["ulimit", limit, "&&", "exec", str(program), *map(str, words)])
    return subprocess.run(["bash", "-c", line], cwd=folder, capture_output=True, text=True, timeout=120)


def test_a_limit_on_file_size_is_an_io_error(wide: Path, program: Path, tmp_path: Path):
    (tmp_path / "old.lissome").write_text("old")
    for command in ("prepare", "optimize"):
        words = [command, wide / "wide.pt2", "-o", "old.lissome", "--cache", "none"]
        done = limited("-f 1000", program, *words, folder=tmp_path)
        assert done.returncode == 1, done.stderr
        assert "File too large" in done.stderr and "ulimit -f" in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["old.lissome"]
        assert (tmp_path / "old.lissome").read_text() == "old"


def test_a_limit_on_address_space_is_reported_before_libtorch_loads(made: Workload, program: Path, tmp_path: Path):
    for words in (["inspect", made.folder / "model.pt2"], ["audit", made.folder / "model.pt2"]):
        done = limited("-v 400000", program, *words, folder=tmp_path)
        assert done.returncode == 3, (done.returncode, done.stderr)
        assert "error over_budget: libtorch needs" in done.stderr and "ulimit -v" in done.stderr


@pytest.mark.parametrize("command", ["run", "inspect"])
def test_every_limit_on_address_space_is_a_clear_error(
    made: Workload, program: Path, tmp_path: Path, command: str
):
    words: list[object] = ["run", made.folder / "model.lissome", "--input", made.folder / "inputs" / "00000.npz"]
    limits = range(20_000, 260_000, 12_000)
    if command == "inspect":
        words, limits = ["inspect", made.folder / "model.pt2"], range(440_000, 800_000, 30_000)
    codes = []
    for limit in limits:
        done = limited(f"-v {limit}", program, *words, folder=tmp_path)
        codes.append(done.returncode)
        if "error while loading shared libraries" in done.stderr or "cannot execute" in done.stderr:
            continue  # the loader's own answer: the program did not begin
        assert done.returncode in (0, 3), (limit, done.returncode, done.stderr)
        assert done.returncode == 0 or "error over_budget" in done.stderr
    assert codes[-1] == 0 and sorted(codes, reverse=True) == codes, codes


def test_stale_temporaries_go_and_live_ones_stay(made: Workload, lissome: Lissome, tmp_path: Path):
    stale, live = tmp_path / ".lissome-1-1.tmp", tmp_path / ".lissome-1-2.tmp"
    foreign = tmp_path / ".lissome-notes.tmp"
    words = ["run", made.folder / "model.lissome", "--input", made.folder / "inputs" / "00000.npz"]
    for path in (stale, live, foreign):
        path.write_text("half")
    with live.open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        assert lissome(*words, "--output", "out.npz").returncode == 0
        assert not stale.exists() and live.exists() and foreign.exists()
    assert lissome(*words, "--output", "out.npz").returncode == 0
    assert not live.exists() and foreign.exists()


def test_a_stream_of_inputs(made: Workload, lissome: Lissome, tmp_path: Path):
    inputs = [made.folder / "inputs" / f"{i:05}.npz" for i in range(3)]
    model = made.folder / "model.lissome"
    done = lissome("run", model, *[word for path in inputs for word in ("--input", path)], "--output", "out")
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["00000.npz", "00001.npz", "00002.npz"]
    for path in inputs:
        assert lissome("run", model, "--input", path, "--output", "one.npz").returncode == 0
        one, streamed = np.load(tmp_path / "one.npz"), np.load(tmp_path / "out" / path.name)
        assert all(np.array_equal(one[name], streamed[name]) for name in one)
    twice = lissome("run", model, "--input", inputs[0], "--input", inputs[0], "--output", "twice")
    assert twice.returncode == 2 and "two inputs are named '00000'" in twice.stderr
    (tmp_path / "file").write_text("here")
    taken = lissome("run", model, "--input", inputs[0], "--input", inputs[1], "--output", "file")
    assert taken.returncode == 2 and "need a folder" in taken.stderr
    (tmp_path / "none").mkdir()
    assert lissome("run", model, "--input", "none").returncode == 2
