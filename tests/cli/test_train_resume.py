"""Snapshots of a training: what goes on from one ends with the weights of a training that never stopped."""

from __future__ import annotations

import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from answer import read_answer
from kill_training import kill_at_random_moments

Lissome = Callable[..., Any]

OPTIONS = {
    "adamw": ["--schedule", "onecycle", "--clip", "0.5"],
    "sgd": ["--optimizer", "sgd", "--momentum", "0.9", "--lr", "0.05", "--schedule", "plateau:patience=1"],
    "averaged": ["--average", "0.9", "--early-stop", "3", "--lr", "0.01", "--freeze", "norm.bias"],
    "adafactor": ["--optimizer", "adafactor", "--group", "head.*:lr=0.5x"],
}


@pytest.fixture
def train(lissome: Lissome, training: SimpleNamespace) -> Callable[..., Any]:
    """Six epochs of nine steps; weights in w.safetensors."""

    def run(*words: object, epochs: int = 6, **options: Any) -> Any:
        words = (*training.words, *training.validation, "--epochs", epochs, *words)
        return lissome(*words, "-o", "t.lissome", "--weights-out", "w.safetensors", **options)

    return run


def steps_in(folder: Path) -> list[int]:
    return [int(path.stem.removeprefix("step-")) for path in sorted(folder.glob("*.snapshot"))]


@pytest.fixture(scope="module")
def through(program: Path, training: SimpleNamespace, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that ran through: its weights, and its snapshots of every tenth step."""
    folder = tmp_path_factory.mktemp("through")
    words = [program, *training.words, *training.validation, "--epochs", 6, "--snapshots", "s", "--snapshot-every", 10]
    words += ["--keep", 9, "-o", "t.lissome", "--weights-out", "w.safetensors"]
    subprocess.run(list(map(str, words)), cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture
def stopped(through: Path, tmp_path: Path) -> SimpleNamespace:
    """Its snapshots of steps 10, 20 and 30, as if it had been stopped then."""
    shutil.copytree(through / "s", tmp_path / "s")
    for step in (40, 50):
        (tmp_path / "s" / f"step-{step:012}.snapshot").unlink()
    return SimpleNamespace(
        folder=tmp_path / "s",
        weights=(through / "w.safetensors").read_bytes(),
        newest=tmp_path / "s" / f"step-{30:012}.snapshot",
    )


@pytest.mark.parametrize("name", OPTIONS)
def test_a_resumed_training_is_bit_equal(train: Callable[..., Any], tmp_path: Path, name: str):
    through = train(*OPTIONS[name], "--snapshots", "s", "--snapshot-every", "4", "--keep", "99", "--json")
    assert through.returncode == 0, through.stderr
    weights = (tmp_path / "w.safetensors").read_bytes()
    assert len(steps_in(tmp_path / "s")) == 13 or name == "averaged"
    for step in (4, 36):  # within the first epoch; after the last step of the fourth
        folder = tmp_path / f"from{step}"
        folder.mkdir()
        shutil.copy(tmp_path / "s" / f"step-{step:012}.snapshot", folder)
        resumed = train(*OPTIONS[name], "--resume", folder.name, "--snapshot-every", "never", "--json")
        assert resumed.returncode == 0, resumed.stderr
        assert f"after step {step}" in resumed.stderr
        assert (tmp_path / "w.safetensors").read_bytes() == weights
        first, second = (read_answer(done) for done in (through, resumed))
        assert first["steps"] == second["steps"]
        rows = [[{**row, "took": 0} for row in answer.tables["Epochs"]] for answer in (first, second)]
        assert rows[0] == rows[1]


def test_killed_at_random_moments(program: Path, training: SimpleNamespace):
    words = [*training.words, *training.validation, "--epochs", "20", "--average", "0.99"]
    assert kill_at_random_moments(program, words, kills=5, seed=1) >= 2


def test_ctrl_c_leaves_a_snapshot_to_go_on_from(program: Path, train: Callable[..., Any], training: SimpleNamespace, tmp_path: Path):
    words = [program, *training.words, "--epochs", "100000", "-o", "t.lissome"]
    child = subprocess.Popen(list(map(str, words)), cwd=tmp_path, stderr=subprocess.PIPE, text=True)
    assert any("%" in line for line in child.stderr)
    child.send_signal(signal.SIGINT)
    errors = child.communicate(timeout=60)[1]
    assert child.returncode == 130 and "continue with --resume t.lissome.snapshots" in errors
    (step,) = steps_in(tmp_path / "t.lissome.snapshots")
    anew = train(epochs=1)
    assert anew.returncode == 2 and "holds snapshots of an unfinished training" in anew.stderr
    done = train("--resume", "t.lissome.snapshots", "--max-steps", step + 5, "--json", epochs=100000)
    assert done.returncode == 0, done.stderr
    assert read_answer(done)["steps"] == step + 5
    assert not (tmp_path / "t.lissome.snapshots").exists()  # nobody asked for it, and training has ended


def test_the_newest_are_kept(train: Callable[..., Any], tmp_path: Path):
    assert train("--snapshots", "s", "--snapshot-every", "5", "--keep", "2").returncode == 0
    assert steps_in(tmp_path / "s") == [45, 50]
    assert sorted(path.name for path in (tmp_path / "s").iterdir() if path.suffix != ".snapshot") == []


def test_a_damaged_snapshot_gives_way_to_the_one_before(train: Callable[..., Any], stopped: SimpleNamespace, tmp_path: Path):
    data = bytearray(stopped.newest.read_bytes())
    data[len(data) // 2] ^= 1
    stopped.newest.write_bytes(data)
    done = train("--resume", "s", "--snapshot-every", "10")
    assert done.returncode == 0, done.stderr
    assert "a snapshot is damaged" in done.stderr and "after step 20" in done.stderr
    assert (tmp_path / "w.safetensors").read_bytes() == stopped.weights


def test_nothing_but_damaged_snapshots(train: Callable[..., Any], stopped: SimpleNamespace):
    for path in stopped.folder.iterdir():
        path.write_bytes(path.read_bytes()[:-100])
    done = train("--resume", "s")
    assert done.returncode == 4 and "none of the 3 snapshots in 's' is good" in done.stderr
    assert len(steps_in(stopped.folder)) == 3


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--clip", "0.5"], "clip norm '1' there, '0.5' here"),
        (["--optimizer", "lion"], "optimizer"),
        (["--seed", "3"], "seed '0' there, '3' here"),
        (["--loss", "mse"], "loss"),
    ],
)
def test_snapshots_of_another_training_are_refused(
    train: Callable[..., Any], stopped: SimpleNamespace, words: list[str], message: str
):
    before = {path.name: path.read_bytes() for path in stopped.folder.iterdir()}
    done = train(*words, "--resume", "s")
    assert done.returncode == 4 and "is of another training" in done.stderr and message in done.stderr, done.stderr
    assert {path.name: path.read_bytes() for path in stopped.folder.iterdir()} == before


def test_a_folder_that_is_not_there(train: Callable[..., Any]):
    done = train("--resume", "nowhere")
    assert done.returncode == 2 and "there is no folder 'nowhere'" in done.stderr
    done = train("--snapshots", "no/where")
    assert done.returncode == 2 and "'no/where'" in done.stderr


def test_longer_than_planned(train: Callable[..., Any], stopped: SimpleNamespace):
    done = train("--resume", "s", "--json", epochs=8)
    assert done.returncode == 0 and read_answer(done)["steps"] == 72


def limit_files(size: int) -> Callable[[], None]:
    """Larger files cannot be written, as on a full disk: weights fit, snapshots with their optimizer's state do not."""

    def limit() -> None:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))

    return limit


def test_a_full_disk_is_reported_and_training_continues(train: Callable[..., Any], stopped: SimpleNamespace, tmp_path: Path):
    newest = stopped.newest.read_bytes()
    done = train("--resume", "s", "--snapshot-every", "10", preexec_fn=limit_files(len(newest) - 1))
    assert done.returncode == 0, done.stderr
    assert "the snapshot of step 40 was not saved, and training continues" in done.stderr
    assert (tmp_path / "w.safetensors").read_bytes() == stopped.weights
    assert steps_in(stopped.folder) == [10, 20, 30] and stopped.newest.read_bytes() == newest
    assert len(list(stopped.folder.iterdir())) == 3  # nothing half written
