"""lissome train in less memory: parts of a batch, mixed precision, limits, and the largest batch that fits."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from answer import read_answer
from safetensors.torch import load_file

Lissome = Callable[..., Any]

SAMPLES, CLASSES = 512, 4
WORDS = ("--data", "data.npz", "--labels", "labels", "-o", "t.lissome", "--weights-out", "w.safetensors", "--json")


def make_wide() -> torch.nn.Module:
    """Activations far larger than weights."""
    return torch.nn.Sequential(torch.nn.Linear(16, 2048), torch.nn.GELU(), torch.nn.Linear(2048, CLASSES))


def make_normed() -> torch.nn.Module:
    return torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.BatchNorm1d(32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES)
    )


@pytest.fixture()
def nets(tmp_path: Path) -> dict[str, torch.nn.Module]:
    """wide.pt2 and normed.pt2 in train form, and data.npz."""
    torch.manual_seed(5)
    nets = {"wide": make_wide(), "normed": make_normed()}
    labels = torch.arange(SAMPLES) % CLASSES
    x = torch.randn(SAMPLES, 16) + torch.eye(16)[labels] * 2
    shapes = ({0: torch.export.Dim("batch", min=2, max=4096)},)
    for name, net in nets.items():
        torch.export.save(torch.export.export(net.train(), (x[:4],), dynamic_shapes=shapes), tmp_path / f"{name}.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=labels.numpy())
    nets["x"], nets["labels"] = x, labels
    return nets


def train(lissome: Lissome, folder: Path, *words: object) -> tuple[dict[str, Any], dict[str, torch.Tensor]]:
    done = lissome("train", *map(str, words), *WORDS)
    assert done.returncode == 0, done.stderr
    return read_answer(done), load_file(folder / "w.safetensors")


def losses(record: dict[str, Any]) -> list[float]:
    return [row["loss"] for row in record.tables["Epochs"]]


def check_same(seen: tuple[Any, Any], wanted: tuple[Any, Any], bound: float) -> None:
    assert losses(seen[0]) == pytest.approx(losses(wanted[0]), rel=bound)
    for name, tensor in wanted[1].items():
        torch.testing.assert_close(seen[1][name], tensor, rtol=0, atol=bound)


def test_accumulated_batches_train_as_one_large_batch(lissome: Lissome, nets: dict[str, Any], tmp_path: Path):
    """SGD, because AdamW makes a step of a fixed size of a gradient that is rounding alone."""
    words = ("wide.pt2", "--epochs", 3, "--optimizer", "sgd", "--lr", "0.1")
    whole = train(lissome, tmp_path, *words, "--batch", 120)  # the last batch of an epoch is smaller
    parts = train(lissome, tmp_path, *words, "--batch", 30, "--accumulate", 4, "--no-scale-lr")
    assert parts[0]["steps"] == whole[0]["steps"] == 3 * 5
    assert parts[0]["batch"] == 30
    check_same(parts, whole, 1e-6)


def test_the_learning_rate_follows_the_batch_and_says_so(lissome: Lissome, nets: dict[str, Any], tmp_path: Path):
    words = ("wide.pt2", "--epochs", 1, "--batch", 64, "--accumulate", 2)
    scaled = train(lissome, tmp_path, *words, "--lr", "0.001")
    asked = train(lissome, tmp_path, *words, "--lr", "0.002", "--no-scale-lr")
    assert any("the learning rate is multiplied by --accumulate, 2" in note for note in scaled[0]["notes"])
    assert not any("learning rate" in note for note in asked[0]["notes"])
    check_same(scaled, asked, 0)


def test_batch_norm_in_parts_is_said_and_its_statistics_are_those_of_the_whole(
    lissome: Lissome, nets: dict[str, Any], tmp_path: Path
):
    words = ("normed.pt2", "--epochs", 1, "--optimizer", "sgd", "--lr", "1e-9")
    whole = train(lissome, tmp_path, *words, "--batch", SAMPLES)
    parts = train(lissome, tmp_path, *words, "--batch", 50, "--accumulate", 11, "--no-scale-lr")
    assert parts[0]["steps"] == whole[0]["steps"] == 1
    assert any("normalizes by the statistics of the 47 samples" in note for note in parts[0]["notes"])
    assert [note for note in whole[0]["notes"] if not note.startswith("accuracy")] == []
    for name in ("1.running_mean", "1.running_var"):
        torch.testing.assert_close(parts[1][name], whole[1][name], rtol=1e-6, atol=1e-7)
    assert parts[1]["1.num_batches_tracked"] == whole[1]["1.num_batches_tracked"] == 1


def test_a_batch_that_does_not_fit_is_cut_and_training_stays_the_same(
    lissome: Lissome, nets: dict[str, Any], tmp_path: Path
):
    words = ("wide.pt2", "--epochs", 3, "--optimizer", "sgd", "--lr", "0.1", "--batch", 256)
    free = train(lissome, tmp_path, *words)
    limit = free[0]["peak_memory"] // 2
    bound = train(lissome, tmp_path, *words, "--memory", limit, "--recompute", "none")
    assert bound[0]["peak_memory"] <= limit < free[0]["peak_memory"]
    assert bound[0]["batch"] < 256 and free[0]["batch"] == 256
    assert any("256 samples at once do not fit into memory" in note for note in bound[0]["notes"])
    check_same(bound, free, 1e-6)


def test_the_largest_batch_that_fits_is_found(lissome: Lissome, nets: dict[str, Any], tmp_path: Path):
    # The search holds copies of a batch beside it.
    at = train(lissome, tmp_path, "wide.pt2", "--batch", 200)[0]["peak_memory"] + 65536
    found = train(lissome, tmp_path, "wide.pt2", "--batch", "auto", "--memory", at)[0]
    # Memory of intermediate values comes in steps of 2 MiB, which is that of 64 samples.
    assert 188 <= found["batch"] <= 200 + 64 and found["peak_memory"] <= at
    again = train(lissome, tmp_path, "wide.pt2", "--batch", found["batch"], "--memory", at)[0]
    assert again["batch"] == found["batch"] and not any("do not fit" in note for note in again["notes"])
    everything = train(lissome, tmp_path, "wide.pt2", "--batch", "auto")[0]
    assert everything["batch"] == SAMPLES


@pytest.mark.parametrize("precision", ["bf16", "fp16"])
def test_mixed_precision_trains_as_autocast_does(
    lissome: Lissome, nets: dict[str, Any], tmp_path: Path, precision: str
):
    """One batch an epoch, so that the order of samples has no say. The bound is that of products of 8 or 11 bits."""
    words = ("normed.pt2", "--epochs", 8, "--lr", "0.01", "--batch", SAMPLES, "--precision", precision)
    record, weights = train(lissome, tmp_path, *words)
    net = nets["normed"]
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    scaler = torch.amp.GradScaler("cpu", enabled=precision == "fp16")
    dtype = torch.bfloat16 if precision == "bf16" else torch.float16
    wanted = []
    for _ in range(8):
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=dtype):
            loss = torch.nn.functional.cross_entropy(net(nets["x"]), nets["labels"])
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        wanted.append(loss.item())
    bound = 3e-3 if precision == "bf16" else 4e-4
    assert losses(record) == pytest.approx(wanted, rel=bound)
    assert all(tensor.dtype == torch.float32 for name, tensor in weights.items() if "tracked" not in name)
    assert record["skipped_steps"] == 0 and wanted[-1] < 0.7 * wanted[0]


def test_states_on_disk_leave_the_bits_and_take_no_memory(lissome: Lissome, nets: dict[str, Any], tmp_path: Path):
    words = ("wide.pt2", "--epochs", 2, "--batch", 64, "--lr", "0.01")
    (tmp_path / "disk").mkdir()
    plain = train(lissome, tmp_path, *words)
    offloaded = train(lissome, tmp_path, *words, "--offload", "disk")
    check_same(offloaded, plain, 0)
    states = 2 * sum(parameter.nbytes for parameter in nets["wide"].parameters())
    assert plain[0]["peak_memory"] - offloaded[0]["peak_memory"] == pytest.approx(states, rel=0.02)
    assert list((tmp_path / "disk").iterdir()) == []


def test_activations_on_disk_leave_the_bits_and_fit_less_memory(
    lissome: Lissome, nets: dict[str, Any], tmp_path: Path
):
    layers = [torch.nn.Sequential(torch.nn.Linear(256, 256), torch.nn.Tanh()) for _ in range(12)]
    deep = torch.nn.Sequential(*layers, torch.nn.Linear(256, CLASSES))
    samples = 4096
    x, labels = torch.randn(samples, 256), torch.arange(samples) % CLASSES
    shapes = ({0: torch.export.Dim("batch", min=2, max=samples)},)
    torch.export.save(torch.export.export(deep.train(), (x[:4],), dynamic_shapes=shapes), tmp_path / "deep.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=labels.numpy())
    (tmp_path / "disk").mkdir()
    # Whether a file or computing again is faster is the machine's to say: here the file alone may save memory.
    words = ("deep.pt2", "--epochs", 2, "--batch", samples, "--offload", "disk", "--recompute", "none")
    plain = train(lissome, tmp_path, *words)
    budget = int(0.75 * plain[0]["peak_memory"])
    offloaded = train(lissome, tmp_path, *words, "--memory", budget)
    check_same(offloaded, plain, 0)
    assert offloaded[0]["batch"] == samples and offloaded[0]["peak_memory"] <= budget
    assert any("are kept in a file for the backward pass" in note for note in offloaded[0]["notes"])
    assert list((tmp_path / "disk").iterdir()) == []


def test_weights_on_disk_leave_the_bits_and_fit_less_memory(lissome: Lissome, nets: dict[str, Any], tmp_path: Path):
    layers = [torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.Tanh()) for _ in range(16)]
    heavy = torch.nn.Sequential(*layers, torch.nn.Dropout(0.2), torch.nn.Linear(1024, CLASSES))
    x, labels = torch.randn(48, 1024), torch.arange(48) % CLASSES
    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},)
    torch.export.save(torch.export.export(heavy.train(), (x[:4],), dynamic_shapes=shapes), tmp_path / "heavy.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=labels.numpy())
    (tmp_path / "disk").mkdir()
    words = ("heavy.pt2", "--epochs", 2, "--batch", 16)
    plain = train(lissome, tmp_path, *words)
    states = 2 * sum(parameter.nbytes for parameter in heavy.parameters())
    budget = plain[0]["peak_memory"] - states - (20 << 20)
    offloaded = train(lissome, tmp_path, *words, "--offload", "disk", "--memory", budget)
    check_same(offloaded, plain, 0)
    assert offloaded[0]["batch"] == 16 and offloaded[0]["peak_memory"] <= budget
    note = "weights of 64.0 MiB are kept in a file, at most 32.0 MiB of them in memory at once"
    assert note in offloaded[0]["notes"]
    assert list((tmp_path / "disk").iterdir()) == []
    log = tmp_path / "log.jsonl"
    train(lissome, tmp_path, *words, "--offload", "disk", "--memory", budget, "--log", log)
    looks = [line for line in map(json.loads, log.read_text().splitlines()) if "weights" in line]
    assert looks and all(look["weights"] < 33 << 20 for look in looks)


def test_updates_in_the_backward_pass_leave_the_bits_and_take_no_gradients(
    lissome: Lissome, nets: dict[str, Any], tmp_path: Path
):
    deep = torch.nn.Sequential(*(torch.nn.Linear(256, 256) for _ in range(6)), torch.nn.Linear(256, CLASSES))
    x = torch.randn(SAMPLES, 256)
    shapes = ({0: torch.export.Dim("batch", min=2, max=4096)},)
    torch.export.save(torch.export.export(deep.train(), (x[:4],), dynamic_shapes=shapes), tmp_path / "deep.pt2")
    np.savez(tmp_path / "data.npz", x=x.numpy(), labels=nets["labels"].numpy())
    words = ("deep.pt2", "--epochs", 2, "--batch", 64, "--clip", 0)
    behind = train(lissome, tmp_path, *words)
    inside = train(lissome, tmp_path, *words, "--update-in-backward")
    check_same(inside, behind, 0)
    matrix = 256 * 256 * 4
    assert inside[0]["peak_memory"] <= behind[0]["peak_memory"] - 4 * matrix


def test_the_precision_is_measured_reported_and_kept_by_snapshots(
    lissome: Lissome, nets: dict[str, Any], tmp_path: Path
):
    words = ("normed.pt2", "--epochs", 2, "--batch", 64, "--lr", "0.01")
    record, weights = train(lissome, tmp_path, *words, "--precision", "auto")
    note = next(note for note in record["notes"] if ": a step in bf16 takes" in note)
    chosen = note.split(":")[0].split()[-1]
    assert chosen in ("f32", "bf16")
    # Measuring left weights, running statistics and random numbers as they were.
    check_same((record, weights), train(lissome, tmp_path, *words, "--precision", chosen), 0)
    other = "f32" if chosen == "bf16" else "bf16"
    kept = ("--snapshots", "s", "--snapshot-every", 3)
    whole = train(lissome, tmp_path, *words, "--precision", other, *kept)
    resumed, weights = train(lissome, tmp_path, *words, "--precision", "auto", "--resume", "s")
    assert any(f"the precision is {other}, as in the snapshot" in note for note in resumed["notes"])
    check_same((whole[0], weights), whole, 0)


def test_a_fraction_of_the_memory_is_the_limit_it_stands_for(lissome: Lissome, nets: dict[str, Any], tmp_path: Path):
    """Of a limit that only recomputation fits, which the notes name."""
    total = int(re.search(r"MemTotal: +(\d+)", Path("/proc/meminfo").read_text())[1]) * 1024
    limit = 3 * 1024 * 1024
    record, _ = train(lissome, tmp_path, "wide.pt2", "--batch", "256", "--memory-fraction", f"{limit / total:.12f}")
    plain, _ = train(lissome, tmp_path, "wide.pt2", "--batch", "256")
    assert record["peak_memory"] <= limit < plain["peak_memory"]


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (("--precision", "auto", "--memory", "1GiB"), 2, "give f32 or bf16"),
        (("--offload", "no/folder"), 2, "no/folder"),
        (("--update-in-backward",), 2, "--clip 0"),
        (("--update-in-backward", "--clip", "0", "--accumulate", "2"), 2, "summed over several batches"),
        (("--update-in-backward", "--clip", "0", "--precision", "fp16"), 2, "Use bf16"),
        (("--precision", "int8"), 2, "f32, bf16, fp16 or auto"),
        (("--batch", "0"), 2, "from 1 on, or auto"),
        (("--batch", "many"), 2, "from 1 on, or auto"),
        (("--accumulate", "0"), 2, "accumulate"),
        (("--memory", "much"), 2, "much"),
        (("--memory", "10KiB", "--recompute", "none"), 3, "the weights alone take"),
        (("--memory", "400KiB", "--recompute", "none"), 3, "does not fit"),
        (("--memory", "400KiB"), 3, "take more than the 400 KiB of memory"),
        (("--recompute", "every:1"), 2, "needs --memory"),
        (("--memory-fraction", "0.000001%"), 3, "memory"),
        (("--memory-fraction", "0%"), 2, "must be above 0"),
        (("--memory-fraction", "150%"), 2, "is not a fraction"),
        (("--memory-fraction", "50%", "--memory", "1GiB"), 2, "give one of them"),
    ],
)
def test_what_does_not_fit_is_refused(
    lissome: Lissome, nets: dict[str, Any], tmp_path: Path, words: tuple[str, ...], code: int, message: str
):
    done = lissome("train", "wide.pt2", *words, "--data", "data.npz", "--labels", "labels", "-o", "t.lissome")
    assert done.returncode == code and message in done.stderr, done.stderr
    assert not (tmp_path / "t.lissome").exists()
