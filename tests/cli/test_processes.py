"""Several processes that train one model: as one process does, refused by name where they differ, ended by name."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import struct
import subprocess
import time
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from answer import read_answer
from kill_ranks import list_ranks, train_while_killing
from safetensors.torch import load_file

Lissome = Callable[..., Any]

SAMPLES, CLASSES, WIDTH = 101, 5, 12
FLAGS = {"--data": "data.npz", "--labels": "labels", "--epochs": "4", "--batch": "16", "--lr": "0.05", "--optimizer": "sgd"}


def words(model: str = "net.pt2", **changes: str) -> tuple[str, ...]:
    """A training, with flags changed or added: val="data.npz" is --val data.npz."""
    flags = FLAGS | {"--" + name.replace("_", "-"): value for name, value in changes.items()}
    return ("train", model, *(word for flag in flags.items() for word in flag), "--json")


def make_net(hidden: int = 24) -> torch.nn.Module:
    return torch.nn.Sequential(torch.nn.Linear(WIDTH, hidden), torch.nn.Tanh(), torch.nn.Linear(hidden, CLASSES))


def export(net: torch.nn.Module, rows: torch.Tensor, path: Path) -> None:
    shapes = ({0: torch.export.Dim("batch", min=1, max=512)},)
    torch.export.save(torch.export.export(net.train(), (rows[:3],), dynamic_shapes=shapes), path)


@pytest.fixture()
def case(tmp_path: Path) -> Path:
    """net.pt2, a net without state, and wide.pt2, whose gradients are worth compressing; data.npz, whose last batch of 16 has 5
    samples; in ignored.npz most labels of a few batches do not count."""
    torch.manual_seed(0)
    rows = torch.randn(SAMPLES, WIDTH)
    labels = (rows @ torch.randn(WIDTH, CLASSES)).argmax(1)
    export(make_net(), rows, tmp_path / "net.pt2")
    export(make_net(400), rows, tmp_path / "wide.pt2")
    np.savez(tmp_path / "data.npz", rows=rows.numpy(), labels=labels.numpy())
    ignored = labels.clone()
    ignored[torch.rand(SAMPLES) < 0.6] = -100
    np.savez(tmp_path / "ignored.npz", rows=rows.numpy(), labels=ignored.numpy())
    return tmp_path


def train(lissome: Lissome, folder: Path, name: str, launched: tuple[str, ...], command: tuple[str, ...]):
    """The answer, the losses of the epochs and the weights."""
    done = lissome(*launched, *command, "-o", f"{name}.lissome", "--weights-out", f"{name}.safetensors")
    assert done.returncode == 0, done.stderr
    answer = read_answer(done)
    return answer, [row["loss"] for row in answer.tables["Epochs"]], load_file(folder / f"{name}.safetensors")


def launch(processes: int) -> tuple[str, ...]:
    return ("launch", "--processes", str(processes), "--")


@pytest.mark.parametrize("changes", [
    {"momentum": "0.9"}, {"data": "ignored.npz"}, {"accumulate": "2"}, {"optimizer": "adamw", "clip": "0.1"},
    {"average": "0.9", "val": "data.npz"}, {"precision": "fp16"}, {"batch": "2", "max_steps": "30"},
    {"bucket": "none"}, {"bucket": "1KiB", "data": "ignored.npz"}, {"bucket": "auto"},
    {"bucket": "auto", "batch": "2", "max_steps": "30"}])
def test_several_processes_train_as_one_does(lissome: Lissome, case: Path, changes: dict[str, str]):
    one, losses, weights = train(lissome, case, "one", (), words(**changes))
    for processes in (2, 3):
        several, their_losses, theirs = train(lissome, case, f"of{processes}", launch(processes), words(**changes))
        assert several["steps"] == one["steps"]
        # Half precision rounds the sums of gradients, whose order is another.
        tolerance = 2e-2 if "precision" in changes else 1e-4
        assert their_losses == pytest.approx(losses, rel=tolerance)
        for name, weight in weights.items():
            torch.testing.assert_close(theirs[name], weight, rtol=tolerance, atol=tolerance * 0.1)


@pytest.mark.parametrize("dtype", ["bf16", "fp16"])
def test_gradients_that_travel_in_half_the_bytes(lissome: Lissome, case: Path, dtype: str):
    _, losses, _ = train(lissome, case, "one", (), words(epochs="20"))
    _, theirs, _ = train(lissome, case, "half", launch(2), words(epochs="20", compress=dtype))
    assert theirs[-1] == pytest.approx(losses[-1], rel=0.05) and theirs != losses


@pytest.mark.parametrize(("changes", "least"), [
    ({"compress": "topk:5%", "momentum": "0.9", "lr": "0.01", "clip": "0"}, 6),
    ({"compress": "topk:5%", "optimizer": "adamw", "lr": "0.01", "clip": "0"}, 6),
    ({"compress": "powersgd:1"}, 4), ({"compress": "powersgd:2", "optimizer": "adamw", "lr": "0.01", "precision": "bf16"}, 3)])
def test_compressed_gradients_train_nearly_as_well(lissome: Lissome, case: Path, changes: dict[str, str], least: float):
    """After 140 steps of 7 an epoch."""
    dense = {name: word for name, word in changes.items() if name != "compress"}
    _, losses, _ = train(lissome, case, "one", (), words("wide.pt2", epochs="20", **dense))
    for processes in (2, 3):
        answer, theirs, _ = train(lissome, case, f"of{processes}", launch(processes),
                                  words("wide.pt2", epochs="20", compress_from="10", **changes))
        assert theirs[:1] == pytest.approx(losses[:1], rel=2e-2 if "precision" in changes else 1e-4)  # dense steps alone
        assert theirs[-1] < losses[-1] + 0.2 * (losses[0] - losses[-1]) and theirs[-1] != losses[-1]
        (note,) = (note for note in answer["notes"] if "of gradients to a step in place of" in note)
        assert float(re.search(r"([\d.]+) times less, after the first 10 steps", note)[1]) > least
    answer, *_ = train(lissome, case, "short", launch(2), words("wide.pt2", **changes))
    assert any("gradients are not compressed: the first 1000 steps send every number" in note for note in answer["notes"])
    answer, *_ = train(lissome, case, "small", launch(2), words(compress_from="0", **{**changes, "compress": "topk:5%"}))
    assert any("gradients are not compressed: none would be smaller" in note for note in answer["notes"])


@pytest.mark.parametrize(("changes", "named"), [
    ({"compress": "zip"}, "--compress must be none, bf16, fp16, topk:SHARE"), ({"compress": "topk"}, "topk:SHARE"),
    ({"compress": "topk:"}, "topk:SHARE"), ({"compress": "powersgd"}, "powersgd:RANK"), ({"compress": "topk:x"}, "is not a fraction"),
    ({"compress": "topk:0%"}, "above 0 %"), ({"compress": "topk:101%"}, "is not a fraction"),
    ({"compress": "powersgd:0"}, "1 to 1024"), ({"compress": "powersgd:1.5"}, "whole number"), ({"compress": "powersgd:1e300"}, "1 to 1024"),
    ({"compress": "powersgd:nan"}, "powersgd"), ({"compress": "topk:1%", "optimizer": "lion"}, "another optimizer"),
    ({"compress": "topk:1%", "momentum": "0.9", "weight_decay": "0.1"}, "weight decay of 0"),
    ({"compress": "topk:1%", "momentum": "0.9", "group": "0.*:decay=0.1"}, "weight decay of 0"),
    ({"bucket": "much"}, "'much'"), ({"bucket": "-1"}, "'-1'"),
    ({"compress": "topk:1%", "precision": "fp16"}, "Take bf16"), ({"compress": "powersgd:2", "precision": "fp16"}, "Take bf16")])
def test_compressions_that_are_refused(lissome: Lissome, case: Path, changes: dict[str, str], named: str):
    done = lissome(*launch(2), *words("wide.pt2", **changes), "-o", "r.lissome")
    assert done.returncode == 2 and named in done.stderr, done.stderr
    assert "internal" not in done.stderr and not (case / "r.lissome").exists()


def test_compression_is_checked_in_one_process_too(lissome: Lissome, case: Path):
    done = lissome(*words("wide.pt2", compress="powersgd:0"), "-o", "r.lissome")
    assert done.returncode == 2 and "1 to 1024" in done.stderr


def test_steps_whose_labels_do_not_count_are_those_of_one_process(lissome: Lissome, case: Path):
    """Momentum and weight decay move the weights all the same."""
    rows, labels = np.load(case / "data.npz").values()
    labels[np.random.default_rng(0).random(len(labels)) < 0.7] = -100
    np.savez(case / "sparse.npz", rows=rows, labels=labels)
    changes = {"data": "sparse.npz", "batch": "3", "max_steps": "40", "momentum": "0.9", "weight_decay": "0.01"}
    one, _, weights = train(lissome, case, "one", (), words(**changes))
    assert any("counts, so its loss is taken as 0" in note for note in one["notes"])
    for bucket in ("25MiB", "none"):
        _, _, theirs = train(lissome, case, f"two{bucket}", launch(2), words(bucket=bucket, **changes))
        for name, weight in weights.items():
            torch.testing.assert_close(theirs[name], weight, rtol=1e-4, atol=1e-5)


def test_overflow_of_fp16_on_the_way_is_named(lissome: Lissome, case: Path):
    rows = np.load(case / "data.npz")["rows"]
    net = torch.nn.Linear(WIDTH, CLASSES)
    export(net, torch.from_numpy(rows), case / "linear.pt2")
    np.savez(case / "large.npz", rows=rows, labels=np.full((SAMPLES, CLASSES), 1e9, np.float32))
    flags = words("linear.pt2", data="large.npz", loss="mse", clip="0", compress="fp16")
    done = lissome(*launch(2), *flags, "-o", "r.lissome")
    assert done.returncode == 4 and "Gradients travel in fp16" in done.stderr, done.stderr


def test_a_compressed_training_goes_on_with_other_ranks(lissome: Lissome, case: Path):
    flags = {"compress": "powersgd:1", "compress_from": "5", "snapshots": "s", "snapshot_every": "7"}
    train(lissome, case, "first", launch(2), words("wide.pt2", epochs="2", **flags))
    for processes in (1, 3):
        changes = flags | {"snapshots": f"s{processes}", "parallel": "data"}
        shutil.copytree(case / "s", case / f"s{processes}")
        _, losses, _ = train(lissome, case, f"of{processes}", launch(processes),
                             (*words("wide.pt2", epochs="10", **changes), "--resume", f"s{processes}"))
        assert len(losses) == 10 and losses[-1] < losses[1]
    whole = {name: word for name, word in flags.items() if "compress" not in name}
    answer, *_ = train(lissome, case, "alone", (), (*words("wide.pt2", epochs="4", **whole), "--resume", "s"))
    assert any("is dropped, because this training compresses none" in note for note in answer["notes"])


def test_torchrun_starts_it_too(case: Path, program: Path):
    torchrun = Path(os.sys.executable).with_name("torchrun")
    done = subprocess.run(
        [torchrun, "--no-python", "--nproc-per-node", "2", "--master-addr", "127.0.0.1", "--master-port", str(free_port()), program,
         *words(), "-o", "run.lissome", "--weights-out", "run.safetensors"], cwd=case, capture_output=True, text=True, timeout=300,
        check=False)
    assert done.returncode == 0, done.stderr
    one = subprocess.run([program, *words(), "-o", "one.lissome", "--weights-out", "one.safetensors"], cwd=case,
                         capture_output=True, text=True, timeout=300, check=True)
    assert one.returncode == 0
    weights = load_file(case / "one.safetensors")
    for name, weight in load_file(case / "run.safetensors").items():
        torch.testing.assert_close(weight, weights[name], rtol=1e-4, atol=1e-5)


def free_port() -> int:
    with socket.socket() as handle:
        handle.bind(("127.0.0.1", 0))
        return handle.getsockname()[1]


def start(program: Path, folder: Path, rank: int, ranks: int, port: int, command: tuple[str, ...],
          address: str = "127.0.0.1") -> subprocess.Popen[str]:
    variables = {"RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": address, "MASTER_PORT": port, "NO_COLOR": 1}
    environment = {**os.environ, **{name: str(value) for name, value in variables.items()}}
    return subprocess.Popen([program, *command], cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.mark.parametrize(("changes", "named"), [
    ({"seed": "1"}, "seed is '1', on rank 0 '0'"), ({"batch": "8"}, "batch is '8', on rank 0 '16'"),
    ({"lr": "0.1"}, "learning rate is '0.1', on rank 0 '0.05'"), ({"epochs": "5"}, "epochs is '5', on rank 0 '4'"),
    ({"data": "other.npz"}, "data is"), ({"model": "other.pt2"}, "model is"), ({"model": "again.pt2"}, "weights of the model is"),
    ({"memory": "1GiB"}, "memory limit is 'given', on rank 0 'none'"), ({"precision": "auto"}, "precision is 'auto', on rank 0 'f32'"),
    ({"val": "data.npz"}, "validation data is 'given', on rank 0 'none'"), ({"bad-samples": "skip"}, "bad samples is 'skip'"),
    ({"disable": "split_joined"}, "disabled passes is 'split_joined', on rank 0 'none'"),
    ({"bucket": "auto"}, "bucket is 'by measured times', on rank 0 '26214400'"),
    ({"compress": "topk:1%"}, "compression is 'topk:0.01 after 1000 steps', on rank 0 'f32'")])
def test_ranks_that_differ_are_refused_by_name(case: Path, program: Path, changes: dict[str, str], named: str):
    rows = np.load(case / "data.npz")
    np.savez(case / "other.npz", rows=rows["rows"][:90], labels=rows["labels"][:90])
    for name, net in (("other", torch.nn.Linear(WIDTH, CLASSES)), ("again", make_net())):
        export(net, torch.from_numpy(rows["rows"]), case / f"{name}.pt2")
    port, begin = free_port(), time.monotonic()
    ranks = [start(program, case, rank, 2, port, words(**(changes if rank else {})) + ("-o", f"r{rank}.lissome"))
             for rank in range(2)]
    for rank in ranks:
        _, errors = rank.communicate(timeout=60)
        assert rank.returncode == 4 and "rank 1 trains something else than rank 0: " in errors and named in errors, errors
    assert time.monotonic() - begin < 20
    assert not list(case.glob("*.lissome"))


STRANGER = """
import datetime, json, sys, time
import torch.distributed as dist
port, text = int(sys.argv[1]), sys.argv[2]
store = dist.TCPStore("127.0.0.1", port, 2, False, timeout=datetime.timedelta(seconds=30), wait_for_workers=False)
store.set("lissome/join/1", "stranger")
name, _ = store.get("lissome/name/stranger").decode().split()
store.set("lissome/taken/stranger", name)
group = dist.ProcessGroupGloo(
    dist.PrefixStore(name, dist.PrefixStore("lissome", store)), 1, 2, datetime.timedelta(seconds=10))
facts = json.loads(store.get(f"lissome/{name}/0/facts/0"))
store.set(f"lissome/{name}/0/facts/1", eval(text)(facts))
store.set(f"lissome/{name}/0/facts/read/1", "1")
time.sleep(20)
"""


@pytest.mark.parametrize("text", [
    "lambda facts: json.dumps([[]] * len(facts))", "lambda facts: json.dumps([[1, 2]] * len(facts))",
    "lambda facts: json.dumps(['x'] * len(facts))", "lambda facts: json.dumps({str(i): [1, 2] for i in range(len(facts))})",
    "lambda facts: '[' * 200_000", "lambda facts: '5'", "lambda facts: json.dumps([[a, b, a] for a, b in facts])"])
def test_a_stranger_that_joins_as_a_rank_is_refused(case: Path, program: Path, text: str):
    port = free_port()
    rank = start(program, case, 0, 2, port, words(peer_timeout="5s") + ("-o", "r.lissome"))
    stranger = subprocess.Popen([os.sys.executable, "-c", STRANGER, str(port), text], stderr=subprocess.DEVNULL)
    try:
        errors = rank.communicate(timeout=60)[1]
    finally:
        stranger.kill()
        stranger.wait()
    assert rank.returncode == 4, errors
    assert "internal" not in errors and not list(case.glob("*.lissome"))


def change_weight(path: Path) -> None:
    """One number of the first weight becomes another; the checksums stay right."""
    with zipfile.ZipFile(path) as file:
        names = [entry["name"] for entry in json.loads(file.read("snapshot.json"))["entries"]]
        member = file.getinfo(f"entry/{next(i for i, name in enumerate(names) if name.startswith('weight/'))}")
        data = file.read(member)
    changed = bytes([data[0] ^ 1]) + data[1:]
    content = path.read_bytes().replace(data, changed)
    path.write_bytes(content.replace(struct.pack("<I", member.CRC), struct.pack("<I", zlib.crc32(changed))))


def test_ranks_that_resume_from_other_contents_are_refused(lissome: Lissome, case: Path, program: Path):
    done = lissome(*words(epochs="2", snapshots="a", snapshot_every="7"), "-o", "part.lissome")
    assert done.returncode == 0, done.stderr
    (case / "part.lissome").unlink()
    shutil.copytree(case / "a", case / "b")
    change_weight(sorted((case / "b").glob("*"))[-1])
    for folders, code in (("aa", 0), ("ab", 4)):
        port = free_port()
        ranks = [start(program, case, rank, 2, port, words() + ("--resume", folder, "-o", "r.lissome"))
                 for rank, folder in enumerate(folders)]
        for rank in ranks:
            errors = rank.communicate(timeout=60)[1]
            assert rank.returncode == code, errors
            assert ("contents of the snapshot is" in errors) == (code == 4)


def test_a_rank_that_is_missing_or_counts_others_is_named(case: Path, program: Path):
    command = words(peer_timeout="2s") + ("-o", "r.lissome")
    alone = start(program, case, 0, 2, free_port(), command)
    assert "rank 1 of 2 did not come" in alone.communicate(timeout=60)[1]
    assert alone.returncode == 1
    for rank in range(2):
        lost = start(program, case, rank, 2, port := free_port(), command, address="no-such-host.invalid")
        assert f"at no-such-host.invalid:{port} (MASTER_ADDR, MASTER_PORT): no address is known for that name" in lost.communicate(timeout=60)[1]
        assert lost.returncode == 1
    port = free_port()
    ranks = [start(program, case, rank, 2 + rank, port, command) for rank in range(2)]
    errors = [rank.communicate(timeout=60)[1] for rank in ranks]
    assert "rank 1 counts 3 ranks (WORLD_SIZE), rank 0 counts 2" in errors[1]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_rank_that_is_killed_is_noticed_and_named(case: Path, program: Path, killed: int):
    port = free_port()
    ranks = [start(program, case, rank, 2, port, words(epochs="100000", snapshot_every="never", log="log.jsonl") + ("-o", "r.lissome")) for rank in range(2)]
    wait_for_steps(case / "log.jsonl")
    for rank in ranks:  # a write to the socket of a dead peer raises SIGPIPE
        ignored = re.search(r"SigIgn:\s*(\w+)", Path(f"/proc/{rank.pid}/status").read_text())
        assert ignored and int(ignored[1], 16) >> (signal.SIGPIPE - 1) & 1
    ranks[killed].kill()
    begin = time.monotonic()
    _, errors = ranks[1 - killed].communicate(timeout=60)
    assert time.monotonic() - begin < 2
    assert ranks[1 - killed].returncode == 1
    assert re.search(rf"rank {1 - killed} of 2 lost a peer in the .* of (step|epoch) \d", errors), errors
    ranks[killed].communicate()


def wait_for_steps(log: Path) -> None:
    end = time.monotonic() + 60
    while not log.is_file() or log.read_text().count('"step"') < 5:
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.parametrize(("number", "to"), [(signal.SIGINT, "group"), (signal.SIGTERM, "group"), (signal.SIGTERM, "launcher"),
                                            (signal.SIGINT, "0"), (signal.SIGTERM, "1")])
def test_an_interrupted_group_saves_and_goes_on_with_the_same_bits(
    lissome: Lissome, case: Path, program: Path, number: int, to: str
):
    train(lissome, case, "whole", launch(2), words(epochs="100"))
    command = [program, *launch(2), *words(epochs="100"), "-o", "part.lissome", "--weights-out", "part.safetensors", "--log", "log.jsonl"]
    part = subprocess.Popen(command, cwd=case, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            start_new_session=True)
    wait_for_steps(case / "log.jsonl")
    if to == "group":  # as a terminal does
        os.killpg(part.pid, number)
    else:
        os.kill(part.pid if to == "launcher" else list_ranks(part.pid)[int(to)], number)
    begin = time.monotonic()
    _, errors = part.communicate(timeout=30)
    assert part.returncode == 130 and time.monotonic() - begin < 1.5, errors
    assert "continue with --resume part.lissome.snapshots" in errors
    resumed = subprocess.run([*command, "--resume", "part.lissome.snapshots"], cwd=case, capture_output=True, text=True,
                             timeout=300, check=False)
    assert resumed.returncode == 0, resumed.stderr
    whole = load_file(case / "whole.safetensors")
    for name, weight in load_file(case / "part.safetensors").items():
        assert torch.equal(weight, whole[name]), name


@pytest.mark.parametrize("changes", [
    {}, {"compress": "topk:5%", "compress_from": "20", "momentum": "0.9"}, {"compress": "powersgd:2", "compress_from": "20"}])
def test_killed_ranks_are_started_again_and_end_with_the_same_bits(lissome: Lissome, case: Path, changes: dict[str, str]):
    flags = words("wide.pt2" if changes else "net.pt2", epochs="300", snapshot_every="50", **changes)
    _, _, whole = train(lissome, case, "whole", launch(2), flags)
    kills, waits, errors = train_while_killing(case, list(flags), 2, 2)
    assert kills == 2 and errors.count("signal 9 (Killed)") == 2 and errors.count("all ranks are started again") == 2, errors
    assert max(waits) < 10
    for name, weight in load_file(case / "killed.safetensors").items():
        assert torch.equal(weight, whole[name]), name


@pytest.mark.parametrize("kind", ["silent", "garbage", "closing"])
def test_a_store_that_does_not_answer_is_given_up(case: Path, program: Path, kind: str):
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        command = words(peer_timeout="2s") + ("-o", "r.lissome")
        begin = time.monotonic()
        rank = start(program, case, 1, 2, listener.getsockname()[1], command)
        if kind != "silent":
            connection, _ = listener.accept()
            if kind == "garbage":
                connection.sendall(b"garbage" * 1000)
            connection.close()
        _, errors = rank.communicate(timeout=30)
        assert rank.returncode == 1 and "rank 1" in errors and time.monotonic() - begin < 12, errors


def test_example_files_name_what_there_is(lissome: Lissome, root: Path):
    """The job of Slurm is a script of bash; both files call train with flags that it has."""
    folder, known = root / "examples" / "processes", lissome("train", "--help").stdout
    subprocess.run(["bash", "-n", folder / "train.slurm"], check=True)
    for name in ("train.slurm", "train-job.yaml"):
        text = (folder / name).read_text(encoding="utf-8")
        called = text.partition("exec lissome train")[2].partition("env:" if name.endswith("yaml") else "\n\n")[0]
        flags = re.findall(r"(?<=\s)--[a-z-]+", called)
        assert len(flags) > 3 and all(flag in known for flag in flags), flags
        for variable in ("RANK", "WORLD_SIZE", "MASTER_ADDR", "MASTER_PORT"):
            assert variable in text, (name, variable)


def test_what_launch_refuses(lissome: Lissome, case: Path):
    assert "--processes is missing" in lissome("launch", "--", *words(), "-o", "r.lissome").stderr
    assert lissome("launch", "--processes", "2", *words()).returncode == 2
    assert "launch needs a training behind --" in lissome("launch", "--processes", "2", "--", "run", "net.pt2").stderr
    done = lissome(*words(parallel="data"), "-o", "r.lissome")
    assert done.returncode == 2 and "needs a launcher" in done.stderr
    done = lissome(*launch(2), *words(clip="0"), "-o", "r.lissome", "--update-in-backward")
    assert done.returncode == 2 and "gradients cannot be summed over ranks" in done.stderr
    done = lissome(*launch(2), *words(data="absent.npz"), "-o", "r.lissome")
    assert done.returncode == 2 and "absent.npz" in done.stderr and "of 2 ended with exit code 2" in done.stderr
