"""What users get wrong: the exit code, a short error that says what was seen and what to do, and nothing half-written."""

from __future__ import annotations

import os
import pickle
import re
import shutil
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

Lissome = Callable[..., subprocess.CompletedProcess[str]]
MOST_LINES = 3


def list_files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*")}


@pytest.fixture
def refuse(lissome: Lissome, tmp_path: Path) -> Callable[..., str]:
    """Runs a command that must fail with this exit code, shortly, and leave nothing behind; returns its error."""

    def run(code: int, *words: object, lines: int = MOST_LINES, **options: Any) -> str:
        before = list_files(tmp_path)
        done = lissome(*words, **options)
        assert done.returncode == code, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
        assert done.stdout == ""
        error = "\n".join(line for line in done.stderr.splitlines() if not re.match(r"note:| *\d+ %  ", line))
        assert error.startswith("error ") and len(error.splitlines()) <= lines, done.stderr
        assert list_files(tmp_path) == before
        return error

    return run


def write_data(folder: Path, **arrays: np.ndarray) -> Path:
    np.savez(folder / "bad.npz", **arrays)
    return folder / "bad.npz"


# ---- the command itself ----------------------------------------------------------------------------------------------


def test_no_arguments_show_the_commands(lissome: Lissome):
    done = lissome()
    assert done.returncode == 2
    for name in ("optimize", "prepare", "inspect", "run", "bench", "profile"):
        assert name in done.stdout


def test_unknown_command(refuse: Callable[..., str]):
    assert "did you mean 'optimize'" in refuse(2, "optimise", "model.pt2")
    assert "Commands: " in refuse(2, "frobnicate")


@pytest.mark.parametrize("command", ["optimize", "prepare", "inspect", "run", "bench", "profile"])
def test_unknown_flag(refuse: Callable[..., str], models: SimpleNamespace, command: str):
    error = refuse(2, command, models.classifier, "--thread", "2")
    assert "--thread" in error and f"lissome {command} --help" in error
    if command != "inspect":
        assert "did you mean --threads" in error


def test_a_shortened_flag_is_completed(refuse: Callable[..., str], models: SimpleNamespace):
    assert "did you mean --output?" in refuse(2, "run", models.classifier, "--out", "y.npz")


@pytest.mark.parametrize("command", ["optimize", "prepare", "inspect", "run", "bench", "profile"])
def test_help(lissome: Lissome, command: str):
    done = lissome(command, "--help")
    assert done.returncode == 0 and "MODEL" in done.stdout and done.stderr == ""


@pytest.mark.parametrize("flag", [("--latency", "5"), ("--memory", "lots"), ("--max-loss", "half"), ("--time", "-1s")])
def test_malformed_quantity(refuse: Callable[..., str], models: SimpleNamespace, flag: tuple[str, str]):
    assert flag[1] in refuse(2, "optimize", models.classifier, "-o", "out.lissome", *flag)


def test_unknown_metric(refuse: Callable[..., str], models: SimpleNamespace):
    error = refuse(2, "optimize", models.classifier, "--data", models.data, "--metric", "accuracy", "-o", "out.lissome")
    assert "accuracy" in error and "top1" in error and "cosine" in error


# ---- the model -------------------------------------------------------------------------------------------------------


def every_reader(model: object) -> list[tuple[object, ...]]:
    return [
        ("optimize", model, "-o", "out.lissome"),
        ("prepare", model, "-o", "out.lissome"),
        ("inspect", model),
        ("run", model, "--input", "x.npz"),
        ("bench", model),
        ("profile", model),
    ]


def test_missing_model(refuse: Callable[..., str]):
    for words in every_reader("missing.pt2"):
        assert "missing.pt2" in refuse(2, *words)


def test_directory_as_model(refuse: Callable[..., str], tmp_path: Path):
    (tmp_path / "folder").mkdir()
    for words in every_reader("folder"):
        assert "directory" in refuse(2, *words)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", ["classifier.pt2", "prepared.lissome"])
def test_truncated_archive(
    refuse: Callable[..., str], models: SimpleNamespace, prepared: Path, tmp_path: Path, name: str, share: float
):
    whole = (models.folder / name).read_bytes()
    (tmp_path / name).write_bytes(whole[: int(len(whole) * share)])
    assert prepared.exists()
    for words in every_reader(name):
        assert name in refuse(4, *words)


def make_state_dict(path: Path) -> None:
    torch.save(torch.nn.Linear(3, 2).state_dict(), path)


def make_pickled_module(path: Path) -> None:
    torch.save(torch.nn.Linear(3, 2), path)


def make_plain_pickle(path: Path) -> None:
    path.write_bytes(pickle.dumps({"weights": [1, 2, 3]}))


def make_onnx(path: Path) -> None:
    # A ModelProto: ir_version 8, producer_name "pytorch", then a graph with one node "Relu".
    node = b"\x0a\x01x\x12\x01y\x22\x04Relu"
    graph = b"\x0a" + bytes([len(node)]) + node + b"\x12\x04main"
    path.write_bytes(b"\x08\x08\x12\x07pytorch\x3a" + bytes([len(graph)]) + graph)


def make_safetensors(path: Path) -> None:
    header = b'{"weight":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(8))


def make_torchscript(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("m/code/__torch__.py", "class M(Module): pass")
        archive.writestr("m/constants.pkl", b"\x80\x02).")
        archive.writestr("m/data.pkl", b"\x80\x02).")
        archive.writestr("m/version", "3\n")


@pytest.mark.parametrize(
    ("make", "name", "word"),
    [
        (make_state_dict, "weights.pt", "state dict"),
        (make_pickled_module, "module.pt", "pickled"),
        (make_plain_pickle, "object.pkl", "pickle"),
        (make_onnx, "model.onnx", "ONNX"),
        (make_safetensors, "model.safetensors", "safetensors"),
        (make_torchscript, "model.ts", "TorchScript"),
    ],
)
def test_other_kinds_of_model(
    refuse: Callable[..., str], tmp_path: Path, make: Callable[[Path], None], name: str, word: str
):
    make(tmp_path / name)
    for command in every_reader(name):
        error = refuse(4, *command)
        assert word in error.splitlines()[0] and name in error
        assert "torch.export.save(torch.export.export(" in error


# ---- the data --------------------------------------------------------------------------------------------------------


def with_data(models: SimpleNamespace, path: Path, *flags: str) -> list[object]:
    return ["optimize", models.classifier, "--data", path, *flags, "-o", "out.lissome", "--report", "out.html"]


@pytest.fixture
def samples(models: SimpleNamespace) -> np.ndarray:
    return models.samples[:20].numpy()


def test_missing_data(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path):
    assert "nowhere.npz" in refuse(2, *with_data(models, tmp_path / "nowhere.npz"))
    assert "nowhere.npz" in refuse(2, "run", models.classifier, "--input", "nowhere.npz")


def test_wrong_dtype(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples: np.ndarray):
    path = write_data(tmp_path, input=samples.astype(np.complex64))
    for words in (with_data(models, path), ["run", models.classifier, "--input", path]):
        error = refuse(4, *words)
        assert "input" in error and "c64" in error and "f32" in error


def test_wrong_shape(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples: np.ndarray):
    path = write_data(tmp_path, input=samples[:, :63])
    for words in (with_data(models, path), ["run", models.classifier, "--input", path]):
        error = refuse(4, *words)
        assert "63" in error and "64" in error


def test_a_finished_model_names_what_it_takes(
    refuse: Callable[..., str], prepared: Path, tmp_path: Path, samples: np.ndarray
):
    for array, seen in (
        (samples.astype(np.complex64), ("c64", "takes f32")),
        (samples[:, :63], ("63", "64")),
        (samples[0], ("[64]",)),
        (np.zeros((65, 64), np.float32), ("[65, 64]", "1..64")),
    ):
        error = refuse(4, "run", prepared, "--input", write_data(tmp_path, input=array))
        assert "'input'" in error and all(word in error for word in seen), error


def test_nodes_that_need_libtorch_where_there_is_none(
    models: SimpleNamespace, lissome: Lissome, program: Path, tmp_path: Path
):
    """The program beside nothing but its runtime, as on a machine without torch."""
    bare = tmp_path / "bare"
    (bare / "bin").mkdir(parents=True)
    (bare / "lib").mkdir()
    built = program.resolve().parents[1]
    shutil.copy(built / "bin" / "lissome", bare / "bin")
    shutil.copy(built / "lib" / "liblissome_runtime.so", bare / "lib")
    words = ("prepare", models.classifier, "-o", "both.lissome", "--kernel")
    assert lissome(*words, "linear=reference").returncode == 0
    assert lissome("prepare", models.classifier, "-o", "ours.lissome").returncode == 0

    def run(*command: object) -> subprocess.CompletedProcess[str]:
        return lissome(*command, executable=bare / "bin" / "lissome")

    done = run("run", "ours.lissome", "--input", models.one)
    assert done.returncode == 0, done.stderr
    done = run("run", "both.lissome", "--input", models.one)
    assert done.returncode == 4 and "need libtorch" in done.stderr and "linear" in done.stderr
    done = run("run", models.classifier, "--input", models.one)
    assert done.returncode == 4 and "needs libtorch" in done.stderr


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_nonfinite_input(
    refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples: np.ndarray, value: float
):
    broken = samples.copy()
    broken[3, 5] = value
    path = write_data(tmp_path, input=broken)
    for words in (with_data(models, path), ["run", models.classifier, "--input", path]):
        error = refuse(4, *words)
        assert "[3, 5]" in error and ("nan" in error.lower() or "inf" in error.lower())


def test_index_outside_of_an_embedding(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path):
    ids = np.full((4, 5), 50)
    path = write_data(tmp_path, ids=ids, numbers=np.zeros((4, 8), np.float32))
    assert "50" in refuse(4, "optimize", models.towers, "--data", path, "-o", "out.lissome")
    assert "out of range" in refuse(4, "run", models.towers, "--input", path)


def test_empty_data(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples: np.ndarray):
    assert "no samples" in refuse(4, *with_data(models, write_data(tmp_path, input=samples[:0])))
    with zipfile.ZipFile(tmp_path / "nothing.npz", "w"):
        pass
    refuse(4, *with_data(models, tmp_path / "nothing.npz"))
    (tmp_path / "zero.npz").write_bytes(b"")
    refuse(4, *with_data(models, tmp_path / "zero.npz"))


def test_one_sample(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples: np.ndarray):
    assert "two" in refuse(4, *with_data(models, write_data(tmp_path, input=samples[:1])))
    # The same sample many times is one sample.
    assert "two" in refuse(4, *with_data(models, write_data(tmp_path, input=np.repeat(samples[:1], 9, axis=0))))


def test_labels_of_another_length(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples):
    path = write_data(tmp_path, input=samples, classes=np.zeros(19, np.int64))
    error = refuse(4, *with_data(models, path, "--labels", "classes"))
    assert "19" in error and "20" in error


def test_unknown_labels(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples: np.ndarray):
    path = write_data(tmp_path, input=samples, labels=np.zeros(20, np.int64))
    assert "Did you mean labels" in refuse(2, *with_data(models, path, "--labels", "label"))


def test_labels_outside_of_the_classes(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples):
    path = write_data(tmp_path, input=samples, labels=np.full(20, 10))
    error = refuse(4, *with_data(models, path, "--labels", "labels"))
    assert "10" in error


def test_integers_of_several_numbers_a_sample_are_no_classes(
    refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples: np.ndarray
):
    path = write_data(tmp_path, input=samples, labels=np.eye(10, dtype=np.int64)[np.arange(20) % 10])
    error = refuse(2, *with_data(models, path, "--labels", "labels", "--metric", "top1"))
    assert "i64[" in error and "top1 takes one integer for each sample, its class" in error


def test_a_folder_that_takes_no_files(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path, samples):
    np.savez(tmp_path / "x.npz", input=samples)
    error = refuse(1, "run", models.classifier, "--input", tmp_path / "x.npz", "-o", "/proc/y.npz")
    assert "'/proc' takes no new files" in error


def test_missing_input_array(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path):
    path = write_data(tmp_path, ids=np.zeros((4, 5), np.int64))
    text = refuse(4, "optimize", models.towers, "--data", path, "-o", "out.lissome")
    assert "fewer arrays than inputs: 1 array (ids i64[4, 5]) for 2 inputs" in text and "numbers" in text


# ---- the place to write to -------------------------------------------------------------------------------------------


def test_no_folder_for_the_output(refuse: Callable[..., str], models: SimpleNamespace):
    for flag in (("-o", "missing/out.lissome"), ("-o", "out.lissome", "--report", "missing/out.html")):
        assert "missing" in refuse(2, "optimize", models.classifier, *flag)


def test_output_is_a_folder(refuse: Callable[..., str], models: SimpleNamespace, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    refuse(2, "optimize", models.classifier, "-o", "folder")


@pytest.fixture
def as_nobody() -> list[str]:
    """The words before a command that run it as another user than root, whom no permission binds. Wherever this tree
    lies, that user may read it."""
    if os.geteuid() != 0:
        return []
    right = "-all,+dac_read_search"
    return ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", f"--inh-caps={right}", f"--ambient-caps={right}"]


@pytest.mark.parametrize("command", ["optimize", "prepare", "run"])
def test_no_write_permission(program: Path, models: SimpleNamespace, tmp_path: Path, as_nobody: list[str], command: str):
    folder = tmp_path / "locked"
    folder.mkdir(mode=0o555)
    target = folder / "out"
    words = {
        "optimize": ["optimize", models.classifier, "-o", target],
        "prepare": ["prepare", models.classifier, "-o", target],
        "run": ["run", models.classifier, "--input", models.one, "--output", target],
    }[command]
    done = subprocess.run(
        [*as_nobody, str(program), *map(str, words)], capture_output=True, text=True, check=False, cwd="/"
    )
    assert done.returncode == 1, done.stderr
    error = [line for line in done.stderr.splitlines() if not line.startswith("note:")]
    assert error[0].startswith("error io") and "ermission" in error[0] and len(error) <= MOST_LINES
    assert list(folder.iterdir()) == []


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[list[str]]:
    """The words before a command that give it `disk`, a file system of 1 MiB, of which 64 kB are free."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = f"mount -t tmpfs -o size=1m tmpfs {disk} && head -c 983040 /dev/zero > {disk}/filler"
    inside = f'{mount} && "$@"; code=$?; ls -A {disk}; umount {disk}; exit $code'
    space = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--mount", "--map-root-user"]
    if subprocess.run([*space, "true"], capture_output=True, check=False).returncode != 0:
        space += ["--propagation", "unchanged"]  # inside a chroot, whose root is no mount point
    yield [*space, "bash", "-c", inside, "--"]


@pytest.mark.parametrize("command", ["optimize", "prepare", "run"])
def test_full_disk(program: Path, models: SimpleNamespace, tmp_path: Path, small_disk: list[str], command: str):
    disk = tmp_path / "disk"
    many = tmp_path / "many.npz"
    np.savez(many, input=np.zeros((64, 64), np.float32))
    words = {
        "optimize": ["optimize", models.classifier, "--time", "5s", "-o", disk / "out.lissome"],
        "prepare": ["prepare", models.classifier, "-o", disk / "out.lissome"],
        "run": ["run", make_wide(tmp_path), "--input", many, "--output", disk / "out.npz"],
    }[command]
    done = subprocess.run(
        [*small_disk, str(program), *map(str, words)], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert done.returncode == 1, f"{done.returncode}\n{done.stdout}\n{done.stderr}"
    error = [line for line in done.stderr.splitlines() if line.startswith("error ")]
    assert len(error) == 1 and error[0].startswith("error io") and "space" in error[0].lower()
    assert done.stdout.split()[-1] == "filler"  # all that is on the disk


def make_wide(folder: Path) -> Path:
    """A model whose outputs for 64 samples take more than 64 kB."""
    path = folder / "wide.pt2"
    if not path.exists():
        batch = torch.export.Dim("batch", min=1, max=64)
        module = torch.nn.Linear(64, 512).eval()
        torch.export.save(torch.export.export(module, (torch.zeros(2, 64),), dynamic_shapes=({0: batch},)), path)
    return path


def test_full_stdout(program: Path, models: SimpleNamespace):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [str(program), "inspect", str(models.classifier)], stdout=full, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 1 and done.stderr.startswith("error io")
