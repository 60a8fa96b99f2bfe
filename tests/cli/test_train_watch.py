"""The output of `lissome train` while it runs, its options, and its refusals."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from answer import read_answer
from event_reader import read_scalars
from safetensors.torch import load_file

Lissome = Callable[..., Any]
STEPS = 9  # of an epoch


@pytest.fixture
def train(lissome: Lissome, training: SimpleNamespace) -> Callable[..., Any]:
    def run(*words: object, **options: Any) -> Any:
        return lissome(*training.words, *words, "-o", "t.lissome", **options)

    return run


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_log_events_and_report_tell_the_same(train: Callable[..., Any], training: SimpleNamespace, tmp_path: Path):
    words = ["--epochs", 3, "--log", "log.jsonl", "--tensorboard", "runs", "--report", "t.html", "--json", "--memory-every", 10]
    done = train(*training.validation, *words, "--target-step", "1ns", "--schedule", "cosine")
    assert done.returncode == 0, done.stderr
    lines = read_lines(tmp_path / "log.jsonl")
    steps = [line for line in lines if line["event"] == "step"]
    epochs = [line for line in lines if line["event"] == "epoch"]
    rows = read_answer(done).tables["Epochs"]
    assert [step["step"] for step in steps] == list(range(1, 3 * STEPS + 1))
    assert [epoch["step"] for epoch in epochs] == [STEPS, 2 * STEPS, 3 * STEPS]
    for number, epoch in enumerate(epochs):
        of_epoch = steps[number * STEPS : (number + 1) * STEPS]
        assert epoch["loss"] == pytest.approx(np.mean([step["loss"] for step in of_epoch]))
        shown = [rows[number][name] for name in ("loss", "validation loss", "accuracy")]
        assert [epoch["loss"], epoch["validation_loss"], epoch["metrics"]["accuracy"]] == shown
    for step in steps:
        assert min(step["seconds_data"], step["seconds_gradients"], step["seconds_update"]) > 0
        assert step["memory"] > 1e6 and step["gradient_norm"] > 0 and step["skipped"] is False
    scalars = read_scalars(tmp_path / "runs")
    assert scalars["loss/train"] == {step["step"]: np.float32(step["loss"]) for step in steps}
    assert scalars["learning_rate"] == {step["step"]: np.float32(step["learning_rate"]) for step in steps}
    assert scalars["loss/validation"] == {epoch["step"]: np.float32(epoch["validation_loss"]) for epoch in epochs}
    assert scalars["accuracy/validation"] == {epoch["step"]: np.float32(epoch["metrics"]["accuracy"]) for epoch in epochs}
    memories = [line for line in lines if line["event"] == "memory"]
    assert [line["step"] for line in memories] == [1, 10, 20]
    parameters = sum(parameter.nbytes for parameter in training.net.parameters())
    for line in memories:
        assert line["gradients"] == parameters and line["states"] == 2 * parameters and line["weights"] >= parameters
        assert 0 < line["activations"] and line["activations"] + line["scratch"] <= line["reserved"]
        assert line["gradients"] + line["states"] + line["reserved"] <= line["allocated"] <= line["resident"]
    assert memories[1]["allocated"] == memories[2]["allocated"]
    html = (tmp_path / "t.html").read_text()
    assert "Memory over a step" in html and "Memory at the peak of a step" in html
    for part in ("Trained for 27 steps in 3 epochs", "Learning rate", "Throughput", "Time of a step", "Memory", "accuracy"):
        assert part in html
    assert "<script" not in html and "http" not in html.replace("http://www.w3.org", "")


def test_the_report_shows_another_training_beside(train: Callable[..., Any], training: SimpleNamespace, tmp_path: Path):
    first = train(*training.validation, "--epochs", 2, "--lr", 1e-4, "--log", "slow.jsonl")
    assert first.returncode == 0, first.stderr
    # The end of a run that was broken off and gone on with: what came last holds.
    lines = (tmp_path / "slow.jsonl").read_text().splitlines()
    (tmp_path / "slow.jsonl").write_text("\n".join(lines[:6] + lines) + "\n")
    done = train(*training.validation, "--epochs", 2, "--beside", "slow.jsonl", "--report", "t.html")
    assert done.returncode == 0, done.stderr
    html = (tmp_path / "t.html").read_text()
    for part in ("slow, train", "Throughput over slow", "Resident memory over slow", "Epochs of slow"):
        assert part in html, part
    losses = [line["loss"] for line in map(json.loads, lines) if line["event"] == "epoch"]
    assert all(f"{loss:.4g}" in html for loss in losses)


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ('{"event": "step", "epoch": 1}\n', 4, "line 1: the line is not an event of a training"),
        ('{"event": "notice", "text": "a"}\nnot json\n', 4, "line 2"),
        ('{"event": "notice", "text": "a"}\n', 4, "has no steps of a training"),
    ],
)
def test_what_is_no_log_of_a_training_is_refused(
    train: Callable[..., Any], tmp_path: Path, text: str, code: int, message: str
):
    (tmp_path / "odd.jsonl").write_text(text)
    done = train("--beside", "odd.jsonl", "--report", "t.html")
    assert done.returncode == code and message in done.stderr, done.stderr


def test_slow_steps_are_reported(train: Callable[..., Any], tmp_path: Path):
    done = train("--epochs", 12, "--target-step", "1us", "--log", "log.jsonl")
    assert done.returncode == 0, done.stderr
    notices = [line["text"] for line in read_lines(tmp_path / "log.jsonl") if line["event"] == "notice"]
    assert any("more than the target of" in text for text in notices), notices
    assert all(f"note: {text}" in done.stderr for text in notices)


def test_a_resumed_log_goes_on(train: Callable[..., Any], tmp_path: Path):
    words = ["--log", "log.jsonl", "--tensorboard", "runs", "--snapshots", "s", "--snapshot-every", 5]
    assert train("--max-steps", 10, *words).returncode == 0
    assert train("--max-steps", 15, "--epochs", 2, *words, "--resume", "s").returncode == 0
    steps = [line["step"] for line in read_lines(tmp_path / "log.jsonl") if line["event"] == "step"]
    # An epoch has nine steps: the first run ends there, the second goes on from the snapshot of step 5.
    assert steps == [*range(1, STEPS + 1), *range(6, 16)]
    assert sorted(read_scalars(tmp_path / "runs")["loss/train"]) == list(range(1, 16))


def test_a_log_on_a_full_disk_does_not_end_training(train: Callable[..., Any]):
    done = train("--log", "/dev/full", "--epochs", 2)
    assert done.returncode == 0 and "The log ends here, and training continues" in done.stderr


def train_in_python(net: torch.nn.Module, x: torch.Tensor, labels: torch.Tensor, groups: list[dict[str, Any]], **loss: Any):
    net.dropout.p = 0.0
    optimizer = torch.optim.SGD(groups, lr=0.1, momentum=0.9, weight_decay=0.01)
    for _ in range(4):
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(net(x), labels, **loss).backward()
        torch.nn.utils.clip_grad_norm_([p for g in groups for p in g["params"]], 1.0)
        optimizer.step()


@pytest.fixture
def whole(lissome: Lissome, training: SimpleNamespace, tmp_path: Path) -> Callable[..., dict[str, torch.Tensor]]:
    """Four steps on all samples at once, without dropout, as train_in_python() does them."""
    net = type(training.net)()
    net.load_state_dict(training.net.state_dict())
    net.dropout.p = 0.0
    batch = torch.export.Dim("batch", min=2, max=512)
    x = torch.from_numpy(np.load(training.folder / "train.npz")["x"])
    exported = torch.export.export(net.train(), (x[:4],), dynamic_shapes=({0: batch},))
    torch.export.save(exported, tmp_path / "whole.pt2")

    def run(*words: object) -> dict[str, torch.Tensor]:
        fixed = ["--data", training.folder / "train.npz", "--labels", "labels", "--batch", 90, "--epochs", 4]
        fixed += ["--optimizer", "sgd", "--lr", 0.1, "--momentum", 0.9, "--weight-decay", 0.01]
        done = lissome("train", "whole.pt2", *fixed, *words, "-o", "t.lissome", "--weights-out", "w.safetensors")
        assert done.returncode == 0, done.stderr
        return load_file(tmp_path / "w.safetensors")

    return run


def check_weights(weights: dict[str, torch.Tensor], net: torch.nn.Module) -> None:
    for name, tensor in net.state_dict().items():
        if name != "norm.num_batches_tracked":
            torch.testing.assert_close(weights[name], tensor, rtol=1e-4, atol=1e-5)


def copy_net(training: SimpleNamespace) -> torch.nn.Module:
    net = type(training.net)()
    net.load_state_dict(training.net.state_dict())
    return net.train()


def test_groups_and_frozen_parameters_as_in_python(whole: Callable[..., Any], training: SimpleNamespace):
    weights = whole("--freeze", "norm.*", "--group", "head.*:lr=0.02,decay=0", "--group", "stem.bias:lr=2x")
    net = copy_net(training)
    data = np.load(training.folder / "train.npz")
    groups = [
        {"params": list(net.head.parameters()), "lr": 0.02, "weight_decay": 0.0},
        {"params": [net.stem.bias], "lr": 0.2},
        {"params": [net.stem.weight]},
    ]
    net.norm.requires_grad_(False)
    train_in_python(net, torch.from_numpy(data["x"]), torch.from_numpy(data["labels"]), groups)
    check_weights(weights, net)
    assert torch.equal(weights["norm.weight"], training.net.norm.weight)


@pytest.mark.parametrize(
    ("words", "options"),
    [
        (["--label-smoothing", 0.1, "--ignore-label", 2], {"label_smoothing": 0.1, "ignore_index": 2}),
        (["--ignore-label", 2, "--class-weights", "1,2.5,1"], {"ignore_index": 2, "weight": torch.tensor([1, 2.5, 1])}),
        (["--label-smoothing", 0.2, "--class-weights", "1,2.5,1"], {"label_smoothing": 0.2, "weight": torch.tensor([1, 2.5, 1])}),
    ],
)
def test_losses_with_options_as_in_python(
    whole: Callable[..., Any], training: SimpleNamespace, words: list[object], options: dict[str, Any]
):
    weights = whole(*words)
    net = copy_net(training)
    data = np.load(training.folder / "train.npz")
    groups = [{"params": list(net.parameters())}]
    train_in_python(net, torch.from_numpy(data["x"]), torch.from_numpy(data["labels"]), groups, **options)
    check_weights(weights, net)


def save_npz(path: Path, x: np.ndarray, labels: np.ndarray) -> None:
    np.savez(path, x=x, labels=labels)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    """Data files, each with one thing wrong."""
    x, labels = np.zeros((8, 12), np.float32), np.zeros(8, np.int64)
    nan = x.copy()
    nan[5, 3] = math.nan
    save_npz(tmp_path / "nan.npz", nan, labels)
    save_npz(tmp_path / "wide.npz", np.zeros((8, 13), np.float32), labels)
    save_npz(tmp_path / "empty.npz", x[:0], labels[:0])
    save_npz(tmp_path / "high.npz", x, labels + 3)
    save_npz(tmp_path / "negative.npz", x, labels - 1)
    save_npz(tmp_path / "floats.npz", x, labels.astype(np.float32))
    (tmp_path / "text.npz").write_text("not an archive")
    return tmp_path


@pytest.mark.parametrize("flag", ["--data", "--validation", "--val"])
@pytest.mark.parametrize(
    ("name", "code", "message"),
    [
        ("nan", 4, "nan"),
        ("wide", 4, "13"),
        ("empty", 4, "empty.npz"),
        ("high", 4, "sample 0 has the label 3; the model's classes are 0 to 2"),
        ("negative", 4, "sample 0 has the label -1"),
        ("text", 4, "text.npz"),
        ("missing", 2, "missing.npz"),
    ],
)
def test_bad_data_is_refused_before_training(
    lissome: Lissome, training: SimpleNamespace, bad: Path, flag: str, name: str, code: int, message: str
):
    good = [] if flag == "--data" else ["--data", training.folder / "train.npz"]
    words = ["train", training.folder / "small.pt2", *good, flag, f"{name}.npz", "--labels", "labels", "-o", "t.lissome"]
    done = lissome(*words)
    assert done.returncode == code and message in done.stderr, done.stderr
    assert not (bad / "t.lissome").exists() and not (bad / "t.lissome.snapshots").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--momentum", 0.9], "--momentum is for sgd, not for adamw"),
        (["--optimizer", "sgd", "--adam-8bit"], "--adam-8bit is for adamw and adam, not for sgd"),
        (["--group", "head.*"], "PATTERN:lr=RATE,decay=DECAY"),
        (["--group", "head.*:rate=3"], "'rate' is neither lr nor decay"),
        (["--group", "head.*:lr=fast"], "'fast' is not a number"),
        (["--class-weights", "1,x,2"], "'x' is not a number"),
        (["--loss", "mse", "--label-smoothing", 0.1], "are for cross_entropy, not mse"),
        (["--label-smoothing", 2], "0..1"),
        (["--snapshot-every", "often"], "often"),
        (["--snapshot-every", "0"], "steps (100), a time (30s, 10min) or never"),
        (["--target-step", "soon"], "soon"),
        (["--tensorboard", "no/where"], "no/where"),
        (["--log", "no/where.jsonl"], "no/where.jsonl"),
        (["--report", "no/where.html"], "no folder 'no'"),
        (["--beside", "log.jsonl"], "--beside needs --report"),
        (["--beside", "log.jsonl", "--report", "t.html"], "log.jsonl"),
        (["--epoch", 3], "did you mean --epochs?"),
    ],
)
def test_wrong_words_are_usage_errors(train: Callable[..., Any], tmp_path: Path, words: list[object], message: str):
    done = train(*words)
    assert done.returncode == 2 and message in done.stderr, done.stderr
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--freeze", "encoder.*"], "no parameter matches the pattern 'encoder.*'"),
        (["--class-weights", "1,2"], "2 class weights for 3 classes"),
        (["--class-weights", "1,2,3", "--label-smoothing", 0.1, "--ignore-label", 2], "has the ignored label 2"),
        (["--average", "1.5"], "the decay of a moving average must be in 0..1"),
    ],
)
def test_what_the_model_does_not_have_is_refused(train: Callable[..., Any], words: list[object], message: str):
    done = train(*words)
    assert done.returncode == 4 and message in done.stderr, done.stderr


class Entropy(torch.nn.Module):
    """The entropy of allowed actions by xlogy, whose derivative is NaN where an action is forbidden: a finite loss."""

    def __init__(self) -> None:
        super().__init__()
        self.policy = torch.nn.Linear(5, 4)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> dict[str, torch.Tensor]:
        shares = self.policy(x).masked_fill(~mask, -1e9).softmax(-1)
        return {"loss": shares[:, 0].square().mean() + 0.01 * torch.xlogy(shares, shares).sum(-1).mean()}


@pytest.mark.parametrize("forbidden", ["everywhere", "in one sample"])
def test_steps_that_change_nothing_are_not_passed_over(lissome: Lissome, tmp_path: Path, forbidden: str):
    torch.manual_seed(1)
    x, mask = torch.randn(32, 5), torch.ones(32, 4, dtype=torch.bool)
    mask[slice(None) if forbidden == "everywhere" else slice(3, 4), 1] = False
    shapes = {name: {0: torch.export.Dim("batch", min=2, max=64)} for name in ("x", "mask")}
    torch.export.save(torch.export.export(Entropy(), (x[:4], mask[:4]), dynamic_shapes=shapes), tmp_path / "net.pt2")
    np.savez(tmp_path / "d.npz", x=x.numpy(), mask=mask.numpy())
    done = lissome("train", "net.pt2", "--data", "d.npz", "--loss", "loss", "--batch", 8, "--epochs", 2, "-o", "t.lissome")
    assert "changed nothing, though its loss is finite: the gradient of 'policy.weight'" in done.stderr, done.stderr
    if forbidden == "everywhere":
        assert done.returncode == 4 and "nothing was trained, and nothing is written: in each of the 8 steps" in done.stderr
        assert not (tmp_path / "t.lissome").exists()
    else:
        assert done.returncode == 0 and "2 of 8 steps changed nothing" in done.stderr, done.stderr
