"""Every rule about untrusted model files, each with a file that breaks it: one clear error, nothing run, nothing written."""

from __future__ import annotations

import os
import pickle
import random
import subprocess
import sys
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import nn

sys.path.insert(0, str(Path(__file__).resolve().parent))
from archive import Archive, Member  # noqa: E402
from hostile import PAYLOAD, ROWS, Row, edit_graph  # noqa: E402
import hostile_ops  # noqa: E402, F401  adds its rows
from hostile_model import HostileModel  # noqa: E402

BUILD = Path(__file__).resolve().parents[2] / "build" / "release"
EXPORT_LINE = "torch.export.save(torch.export.export("


@pytest.fixture(scope="session")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A plain export, which loads."""
    path = tmp_path_factory.mktemp("good") / "model.pt2"
    torch.manual_seed(0)
    torch.export.save(torch.export.export(HostileModel().eval(), (torch.randn(2, 6),)), path)
    return path


def import_files(*paths: Path, folder: Path, stack: int | None = None) -> list[tuple[int, str]]:
    """Exit code and text for each file, imported in `folder`; `stack` limits the stack to so many KiB."""
    command = [str(Path(os.environ.get("LISSOME_IMPORT_FILE", BUILD / "tests" / "import_file"))), *map(str, paths)]
    if stack is not None:
        command = ["bash", "-c", f'ulimit -s {stack}; exec "$@"', "bash", *command]
    result = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)
    lines = result.stdout.splitlines()
    assert len(lines) == len(paths), f"died with {result.returncode} after {len(lines)} files: {result.stderr[-2000:]}"
    return [(int(line.split("\t")[0]), line.split("\t", 1)[1]) for line in lines]


def check_refused(path: Path, words: tuple[str, ...], code: int = 4) -> str:
    """The file, alone in its folder, is refused with these words, and the folder stays as it was."""
    before = sorted(os.listdir(path.parent))
    (seen, text), = import_files(path, folder=path.parent)
    check_answer(seen, text, words, code)
    assert sorted(os.listdir(path.parent)) == before
    return text


def check_answer(seen: int, text: str, words: tuple[str, ...], code: int = 4) -> None:
    assert seen == code, text
    for word in words:
        assert word.lower() in text.lower(), text


@dataclass
class Answers:
    """What import and the command said of each hostile file, and what lies beside the files afterwards."""

    imported: dict[str, tuple[int, str]]
    inspected: dict[str, subprocess.CompletedProcess[str]]
    left: dict[str, list[str]]


@pytest.fixture(scope="session")
def answers(good: Path, program: Path, tmp_path_factory: pytest.TempPathFactory) -> Answers:
    """All hostile files, each in a folder of its own: loading libtorch once a file would take minutes."""
    parent = tmp_path_factory.mktemp("hostile")
    paths = {}
    for row in ROWS:
        paths[row.name] = parent / row.name / "model.pt2"
        paths[row.name].parent.mkdir()
        paths[row.name].write_bytes(row.build(Archive.read(good)))
    (parent / "here").mkdir()
    imported = dict(zip(paths, import_files(*paths.values(), folder=parent / "here"), strict=True))

    def inspect(path: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run([program, "inspect", path], cwd=path.parent, capture_output=True, text=True, timeout=300,
                              check=False)

    with ThreadPoolExecutor(2) as pool:
        inspected = dict(zip(paths, pool.map(inspect, paths.values()), strict=True))
    left = {name: sorted(os.listdir(path.parent)) for name, path in paths.items()}
    return Answers(imported, inspected, left | {"": os.listdir(parent / "here")})


def test_the_good_file_loads(good: Path) -> None:
    assert import_files(good, folder=good.parent) == [(0, "3 nodes")]


def test_an_archive_written_anew_loads(good: Path, tmp_path: Path) -> None:
    """The hostile files differ from this one by their one change alone."""
    path = tmp_path / "model.pt2"
    path.write_bytes(Archive.read(good).write())
    assert import_files(path, folder=tmp_path) == [(0, "3 nodes")]


@pytest.mark.parametrize("hostile", ROWS, ids=lambda row: row.name)
def test_hostile_file_is_refused(hostile: Row, answers: Answers) -> None:
    check_answer(*answers.imported[hostile.name], words=("model.pt2", *hostile.words))
    assert answers.left[hostile.name] == ["model.pt2"]
    assert answers.left[""] == []


@pytest.mark.parametrize("hostile", ROWS, ids=lambda row: row.name)
def test_command_refuses_hostile_file(hostile: Row, answers: Answers) -> None:
    result = answers.inspected[hostile.name]
    check_answer(result.returncode, result.stderr, words=("error", "model.pt2", *hostile.words))
    assert result.stdout == ""
    assert len(result.stderr.strip().splitlines()) <= 3, result.stderr


def test_sample_inputs_are_never_opened(good: Path, tmp_path: Path) -> None:
    archive = Archive.read(good)
    archive.find("sample_inputs/model.pt").data = PAYLOAD
    path = tmp_path / "model.pt2"
    path.write_bytes(archive.write())
    assert import_files(path, folder=tmp_path) == [(0, "3 nodes")]
    assert os.listdir(tmp_path) == ["model.pt2"]
    with pytest.raises(Exception):  # noqa: B017  the payload is real: Python runs it
        torch.load(path, weights_only=True)
    os.chdir(tmp_path)
    pickle.loads(PAYLOAD)
    assert (tmp_path / "ran").exists()


def test_long_graphs_are_walked_without_recursion(good: Path, tmp_path: Path) -> None:
    archive = Archive.read(good)

    def repeat(graph: dict) -> None:
        last = graph["outputs"][0]["as_tensor"]["name"]
        meta = graph["tensor_values"][last]
        for i in range(30_000):
            graph["nodes"].append({"target": "torch.ops.aten.relu.default", "metadata": {}, "inputs": [
                {"name": "self", "arg": {"as_tensor": {"name": last}}, "kind": 1}],
                "outputs": [{"as_tensor": {"name": f"r{i}"}}]})
            last = f"r{i}"
            graph["tensor_values"][last] = meta
        graph["outputs"][0]["as_tensor"]["name"] = last

    edit_graph(archive, repeat)
    path = tmp_path / "model.pt2"
    path.write_bytes(archive.write())
    assert import_files(path, folder=tmp_path, stack=512) == [(0, "30003 nodes")]


def test_special_files(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.pt2")
    check_refused(tmp_path / "pipe.pt2", ("pipe",))
    (code, text), = import_files(Path("/dev/zero"), folder=tmp_path)
    assert code == 4 and "device" in text


def test_directory_and_missing_file(tmp_path: Path) -> None:
    (tmp_path / "folder.pt2").mkdir()
    check_refused(tmp_path / "folder.pt2", ("directory",), code=2)
    check_refused(tmp_path / "absent.pt2", ("no such file",), code=2)


def test_file_that_changes_while_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    torch.export.save(torch.export.export(nn.Linear(6000, 6000), (torch.randn(1, 6000),)), path)
    stop = threading.Event()

    def rewrite() -> None:
        with path.open("r+b") as file:
            while not stop.wait(0.002):
                file.seek(100)
                byte = file.read(1)
                file.seek(100)
                file.write(byte)
                file.flush()

    writer = threading.Thread(target=rewrite)
    writer.start()
    try:
        check_refused(path, ("changed while",))
    finally:
        stop.set()
        writer.join()


def test_mutated_documents_never_crash(good: Path, tmp_path: Path) -> None:
    """Random damage to the JSON documents, with right checksums: it loads or is refused, never anything else."""
    generator = random.Random(7)
    words = [b"null", b"-1", b"99999999999999999999", b"[]", b"{}", b'""', b"1e999", b'"x"', b"true", b"0"]
    paths = []
    for k in range(300):
        archive = Archive.read(good)
        member = archive.find(generator.choice(["models/model.json", "model_weights_config.json"]))
        data = bytearray(member.data)
        for _ in range(generator.randint(1, 3)):
            place = generator.randrange(len(data))
            if generator.random() < 0.5:
                data[place] = generator.choice(b'[]{},:"0123456789-abcxs_')
            else:
                tail = data[place:].split(b",", 1)
                data[place:] = generator.choice(words) + (b"," + tail[1] if len(tail) == 2 else b"")
        member.data = bytes(data)
        paths.append(tmp_path / f"{k}.pt2")
        paths[-1].write_bytes(archive.write())
    answers = import_files(*paths, folder=tmp_path)
    assert {code for code, _ in answers} <= {0, 4}, [answer for answer in answers if answer[0] not in (0, 4)]
    assert sorted(os.listdir(tmp_path)) == sorted(path.name for path in paths)


# ---- other kinds of file ----------------------------------------------------------------------------------------------


def make_torchscript(path: Path) -> None:
    torch.jit.save(torch.jit.trace(nn.Linear(2, 2), torch.randn(1, 2)), path)


def make_zip(*names: str):
    def write(path: Path) -> None:
        with zipfile.ZipFile(path, "w") as file:
            for name in names:
                file.writestr(name, "x")

    return write


def make_safetensors(path: Path) -> None:
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    path.write_bytes(len(header).to_bytes(8, "little") + header + bytes(4))


KINDS = {
    "state.pt": (lambda path: torch.save(nn.Linear(2, 2).state_dict(), path), ("state dict", "load_state_dict")),
    "checkpoint.pt": (lambda path: torch.save({"model": nn.Linear(2, 2).state_dict()}, path), ("state dict",)),
    "module.pt": (lambda path: torch.save(nn.Linear(2, 2), path), ("pickled", "torch.load")),
    "legacy.pt": (lambda path: torch.save(nn.Linear(2, 2), path, _use_new_zipfile_serialization=False), ("pickle",)),
    "script.pt": (make_torchscript, ("TorchScript",)),
    "net.onnx": (lambda path: path.write_bytes(b"\x08\x08\x12\x07pytorch\x1a\x032.13" + bytes(40)), ("ONNX",)),
    "net.safetensors": (make_safetensors, ("safetensors", "load_state_dict")),
    "native.pt2": (make_zip("native/archive_format", "native/data/aotinductor/model/a.so"), ("AOTInductor", "native")),
    "old.pt2": (make_zip("serialized_exported_program.json", "version"), ("torch 2.7 or older",)),
    "phone.pte": (lambda path: path.write_bytes(bytes([24, 0, 0, 0]) + b"ET12" + bytes(64)), ("ExecuTorch",)),
    "data.npz": (make_zip("x.npy", "y.npy"), ("NumPy",)),
    "other.zip": (make_zip("readme.txt"), ("zip",)),
    "notes.txt": (lambda path: path.write_text("a plain text\n"), ("plain text",)),
    "empty.pt2": (lambda path: path.write_bytes(b""), ("empty",)),
    "noise.bin": (lambda path: path.write_bytes(random.Random(1).randbytes(4096)), ("no kind of file",)),
}


@pytest.mark.parametrize("name", KINDS)
def test_other_kinds_of_file(name: str, tmp_path: Path) -> None:
    make, words = KINDS[name]
    make(tmp_path / name)
    text = check_refused(tmp_path / name, (name, *words))
    assert EXPORT_LINE in text


def test_native_code_beside_a_graph_is_left_alone(good: Path, tmp_path: Path) -> None:
    archive = Archive.read(good)
    archive.members.append(Member(b"model/data/aotinductor/model/a.so", b"\x7fELF"))
    path = tmp_path / "model.pt2"
    path.write_bytes(archive.write())
    assert import_files(path, folder=tmp_path) == [(0, "3 nodes")]
