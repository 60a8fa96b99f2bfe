"""Losses and optimizers of torch, functions as loss, and what training returns."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from typing import Any

import lissome
import pytest
import torch
from torch import nn
from torch.nn import functional

SAMPLES = 96


def make_module(outputs: int = 3) -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(6, 16), nn.Tanh(), nn.Linear(16, outputs)).train()


def make_data() -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    x = torch.randn(SAMPLES, 6, generator=torch.Generator().manual_seed(1))
    return x, x[:, :3].argmax(1), torch.sigmoid(2 * x[:, :3])


def train(module: nn.Module, labels: torch.Tensor, **keywords: Any) -> lissome.Trained:
    x, _, _ = make_data()
    return lissome.train(module, x, labels=labels, example_inputs=(x[:4],), **({"batch": SAMPLES, "clip": 0} | keywords))


def train_eagerly(module: nn.Module, labels: torch.Tensor, loss: Any, optimizer: torch.optim.Optimizer, steps: int) -> None:
    x, _, _ = make_data()
    for _ in range(steps):
        optimizer.zero_grad()
        loss(module(x), labels).backward()
        optimizer.step()


# Losses that lissome has a word for, the same with settings that it has no word for, and functions of the user's.
CLASS_LOSSES: dict[str, Any] = {
    "CrossEntropyLoss": nn.CrossEntropyLoss(),
    "cross_entropy": functional.cross_entropy,
    "smoothed": nn.CrossEntropyLoss(label_smoothing=0.1),
    "weighted": nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5])),
    "summed": nn.CrossEntropyLoss(reduction="sum"),
    "NLLLoss": lambda output, label: functional.nll_loss(output.log_softmax(1), label),
}
TARGET_LOSSES: dict[str, Any] = {
    "MSELoss": nn.MSELoss(),
    "mse_loss": functional.mse_loss,
    "summed mse": nn.MSELoss(reduction="sum"),
    "L1Loss": nn.L1Loss(),
    "HuberLoss": nn.HuberLoss(),
    "HuberLoss(0.3)": nn.HuberLoss(delta=0.3),
    "SmoothL1Loss": nn.SmoothL1Loss(),
    "BCEWithLogitsLoss": nn.BCEWithLogitsLoss(),
    "pos_weight": nn.BCEWithLogitsLoss(pos_weight=torch.tensor([2.0, 1.0, 3.0])),
    "halved": lambda output, target: 0.5 * functional.mse_loss(output, target),
    "function": lambda output, target: ((output - target) ** 4).mean() + 0.1 * output.abs().mean(),
}
LOSSES = [(name, loss, 1) for name, loss in CLASS_LOSSES.items()] + [
    (name, loss, 2) for name, loss in TARGET_LOSSES.items()
]


# Labels of other kinds than a loss usually has: a probability for each class, integers, yes or no.
def make_soft_labels() -> torch.Tensor:
    return torch.rand(SAMPLES, 3, generator=torch.Generator().manual_seed(3)).softmax(1)


OTHER_LABELS: dict[str, tuple[Any, torch.Tensor]] = {
    "soft": (nn.CrossEntropyLoss(), make_soft_labels()),
    "soft, settings": (
        nn.CrossEntropyLoss(weight=torch.tensor([1.0, 2.0, 0.5]), label_smoothing=0.1),
        make_soft_labels(),
    ),
    "soft, sum": (nn.CrossEntropyLoss(reduction="sum"), make_soft_labels()),
    "integers": (nn.MSELoss(), (3 * make_soft_labels()).round().to(torch.int64)),
    "yes or no": (nn.BCEWithLogitsLoss(), make_soft_labels() > 0.3),
}


@pytest.mark.parametrize("accumulate", [1, 2])
@pytest.mark.parametrize(("loss", "labels"), OTHER_LABELS.values(), ids=OTHER_LABELS)
def test_labels_of_other_kinds_train_as_in_torch(loss: Any, labels: torch.Tensor, accumulate: int):
    if accumulate > 1 and loss.reduction == "sum":
        pytest.skip("refused, see below")
    ours, theirs = make_module(), make_module()
    words = {"optimizer": "sgd", "lr": 0.01 / accumulate, "batch": SAMPLES // accumulate, "accumulate": accumulate}
    trained = train(ours, labels, loss=loss, epochs=5, **words)
    same = labels if isinstance(loss, nn.CrossEntropyLoss) else labels.float()
    train_eagerly(theirs, same, loss, torch.optim.SGD(theirs.parameters(), lr=0.01), 5)
    for mine, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(mine, other, rtol=2e-5, atol=2e-6)
    assert len(trained.record["epochs"]) == 5


@pytest.mark.parametrize(("name", "loss", "which"), LOSSES, ids=[row[0] for row in LOSSES])
def test_a_loss_trains_as_in_torch(name: str, loss: Any, which: int):
    labels = make_data()[which]
    ours, theirs = make_module(), make_module()
    rate = 0.001 if "summed" in name else 0.05
    optimizer = torch.optim.SGD(theirs.parameters(), lr=rate, momentum=0.9)
    trained = train(ours, labels, loss=loss, epochs=5, optimizer=torch.optim.SGD(ours.parameters(), lr=rate, momentum=0.9))
    train_eagerly(theirs, labels, loss, optimizer, 5)
    for name, tensor in ours.state_dict().items():
        torch.testing.assert_close(tensor, theirs.state_dict()[name], rtol=2e-4, atol=2e-5)
        assert torch.equal(trained.weights[name], tensor)
    x = make_data()[0]
    torch.testing.assert_close(trained(x), ours(x), rtol=1e-4, atol=1e-5)


OPTIMIZERS: dict[str, Callable[[Any], torch.optim.Optimizer]] = {
    "AdamW": lambda given: torch.optim.AdamW(given, lr=0.01, betas=(0.8, 0.99), weight_decay=0.1),
    "Adam": lambda given: torch.optim.Adam(given, lr=0.01, eps=1e-6),
    "Adam with decay": lambda given: torch.optim.Adam(given, lr=0.01, weight_decay=0.1),
    "SGD": lambda given: torch.optim.SGD(given, lr=0.1),
    "SGD with momentum": lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.8, dampening=0.1, weight_decay=0.01),
    "SGD nesterov": lambda given: torch.optim.SGD(given, lr=0.1, momentum=0.8, nesterov=True),
}


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_an_optimizer_of_torch_brings_its_settings(name: str):
    ours, theirs = make_module(), make_module()
    labels = make_data()[1]
    train(ours, labels, epochs=6, optimizer=OPTIMIZERS[name](ours.parameters()))
    train_eagerly(theirs, labels, functional.cross_entropy, OPTIMIZERS[name](theirs.parameters()), 6)
    for key, tensor in ours.state_dict().items():
        torch.testing.assert_close(tensor, theirs.state_dict()[key], rtol=1e-3, atol=1e-4)


def test_parameters_that_the_optimizer_does_not_hold_stay():
    module = make_module()
    before = copy.deepcopy(module.state_dict())
    train(module, make_data()[1], optimizer=torch.optim.SGD(module[2].parameters(), lr=0.1))
    changed = {name for name, tensor in module.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"2.weight", "2.bias"}


def test_what_an_optimizer_cannot_bring_is_refused():
    module, labels = make_module(), make_data()[1]
    given = list(module.parameters())
    refused = {
        "amsgrad": torch.optim.AdamW(given, amsgrad=True),
        "maximize": torch.optim.SGD(given, lr=0.1, maximize=True),
        "RMSprop": torch.optim.RMSprop(given),
        "groups": torch.optim.SGD([{"params": given[:2], "lr": 0.1}, {"params": given[2:], "lr": 0.2}]),
    }
    for word, optimizer in refused.items():
        with pytest.raises(NotImplementedError, match=word) as raised:
            train(module, labels, optimizer=optimizer)
        assert isinstance(raised.value, lissome.UnsupportedError)
    with pytest.raises(ValueError, match="no parameter of the model"):
        train(module, labels, optimizer=torch.optim.SGD(make_module().parameters(), lr=0.1))
    with pytest.raises(ValueError, match="lr is given twice"):
        train(module, labels, optimizer=torch.optim.SGD(given, lr=0.1), lr=0.2)
    with pytest.raises(ValueError, match="adamw has no 'momentum'"):
        train(module, labels, optimizer_options={"momentum": 0.9})
    assert train(module, labels, optimizer=torch.optim.AdamW).record["steps"] == 1


@pytest.mark.parametrize("loss", ["mse", nn.MSELoss(), nn.MSELoss(reduction="sum"), lambda y, t: (y - t).abs().mean()])
def test_frozen_parameters_stay_with_every_kind_of_loss(loss: Any):
    module = make_module()
    before = copy.deepcopy(module.state_dict())
    train(module, make_data()[2], loss=loss, lr=0.01, freeze=["0.*"])
    changed = {name for name, tensor in module.state_dict().items() if not torch.equal(tensor, before[name])}
    assert changed == {"2.weight", "2.bias"}
    with pytest.raises(ValueError, match=r"pattern '9\.\*' of frozen parameters; the model has 0\.weight, 0\.bias"):
        train(module, make_data()[2], loss=loss, freeze=["9.*"])


def test_a_function_as_loss_validates_and_needs_labels():
    def loss(output: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        return (output - label).square().mean()

    module, (x, _, targets) = make_module(), make_data()
    trained = train(module, targets, loss=loss, epochs=3, validation=(x,), validation_labels=targets, batch=16)
    rows = trained.record["epochs"]
    assert len(rows) == 3 and rows[-1]["validation_loss"] < rows[0]["validation_loss"]
    torch.testing.assert_close(rows[-1]["validation_loss"], float(loss(module(x), targets).detach()), rtol=1e-3, atol=1e-4)
    with pytest.raises(ValueError, match="needs labels"):
        lissome.train(module, x, loss=loss, example_inputs=(x[:4],))
    with pytest.raises(ValueError, match="not a path"):
        lissome.train(module, "data.npz", labels="y", loss=loss, example_inputs=(x[:4],))
    with pytest.raises(TypeError, match=r"torch\.nn\.Module"):
        lissome.train("model.pt2", x, labels=targets, loss=loss)
    with pytest.raises(TypeError, match="loss is of type int"):
        train(module, targets, loss=3)


class TwoInputs(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.left, self.right = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, a: torch.Tensor, b: torch.Tensor, *, gain: float = 1.0) -> torch.Tensor:
        return self.left(a) + gain * self.right(b)


def test_a_function_as_loss_with_several_inputs_and_batches():
    torch.manual_seed(0)
    module, (x, _, targets) = TwoInputs().train(), make_data()
    before = copy.deepcopy(module.state_dict())
    words: dict[str, Any] = {"loss": lambda output, target: (output - target).abs().mean(), "batch": 16}
    batches = [((x[i : i + 16], x[i : i + 16] + 1), targets[i : i + 16]) for i in range(0, SAMPLES, 16)]
    trained = lissome.train(module, batches, example_inputs=(x[:4], x[:4]), **words)
    assert trained.record["steps"] == 6
    assert all(not torch.equal(tensor, before[name]) for name, tensor in module.state_dict().items())
    named = {"a": x, "b": x + 1, "target": targets}
    again = lissome.train(module, named, labels="target", example_inputs=(x[:4], x[:4]), **words)
    torch.testing.assert_close(again(x, x + 1), module(x, x + 1), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="none of the model's arguments"):
        lissome.train(module, {"a": x, "b": targets}, labels="b", example_inputs=(x[:4], x[:4]), **words)


def test_what_was_trained_is_called_and_optimized():
    module, (x, labels, _) = make_module(), make_data()
    trained = train(module, labels, epochs=3)
    module.eval()
    torch.testing.assert_close(trained(x), module(x), rtol=1e-4, atol=1e-5)
    assert trained(x.numpy()).shape == (SAMPLES, 3)
    fast = lissome.optimize(trained, data=x, labels=labels, time="10s", threads=1)
    assert fast.record["metric"] == "top1"
    assert (fast(x).argmax(1) == module(x).argmax(1)).float().mean() > 0.95
    assert lissome.prepare(trained)(x).shape == (SAMPLES, 3)
    for made in (pickle.loads(pickle.dumps(trained)), copy.deepcopy(trained)):
        torch.testing.assert_close(made(x), trained(x))
        assert made.record == trained.record and list(made.weights) == list(trained.weights)


SETTINGS: dict[str, dict[str, Any]] = {
    "weight": {"weight": torch.tensor([1.0, 2.0, 3.0])},
    "ignored": {"ignore_index": 2},
    "first ignored": {"ignore_index": 0},
    "smoothed": {"label_smoothing": 0.1},
    "weight, smoothed": {"weight": torch.tensor([1.0, 2.0, 3.0]), "label_smoothing": 0.1},
}


@pytest.mark.parametrize("accumulate", [1, 3])
@pytest.mark.parametrize("name", SETTINGS)
def test_parts_of_a_batch_weigh_what_the_whole_weighs(name: str, accumulate: int):
    torch.manual_seed(3)
    loss, module = nn.CrossEntropyLoss(**SETTINGS[name]), nn.Linear(6, 3)
    x, labels = torch.randn(12, 6), torch.tensor([0, 1, 2, 0, 2, 2, 2, 2, 1, 1, 1, 0])
    loss(module(x), labels).backward()
    assert module.weight.grad is not None
    wanted, before = module.weight.grad.clone(), module.weight.detach().clone()
    words = {"optimizer": "sgd", "lr": 1.0 / accumulate, "clip": 0.0, "batch": 12 // accumulate, "accumulate": accumulate}
    lissome.train(module, x, labels=labels, loss=loss, example_inputs=(x[:4],), **words)
    torch.testing.assert_close(before - module.weight.detach(), wanted, rtol=1e-4, atol=1e-6)


def test_a_sum_in_parts_is_refused():
    x, labels = torch.randn(12, 6), torch.arange(12) % 3
    words = {"labels": labels, "example_inputs": (x[:4],), "loss": nn.CrossEntropyLoss(reduction="sum")}
    with pytest.raises(lissome.UsageError, match="which is not a sum"):
        lissome.train(nn.Linear(6, 3), x, batch=4, accumulate=3, **words)
    lissome.train(nn.Linear(6, 3), x, batch=12, **words)


def add_up(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    return (output - target).square().sum()


def spread(output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
    """Of the whole batch: no mean over samples, but no sum either."""
    return (output - target).var(0).mean()


@pytest.mark.parametrize("dropout", [0.0, 0.3])
@pytest.mark.parametrize("parts", [{"memory": "60KiB"}, {"batch": 50, "accumulate": 4}])
def test_a_function_that_adds_up_is_refused_where_updates_run_in_parts(parts: dict[str, Any], dropout: float):
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 5)).train()
    x, target = torch.randn(200, 16), torch.rand(200, 5)
    words = {"batch": 200, "labels": target, "example_inputs": (x[:4],), "clip": 0} | parts
    before = copy.deepcopy(module.state_dict())
    with pytest.raises(lissome.InvalidInputError, match="the loss adds its samples up"):
        lissome.train(module, x, loss=add_up, **words)
    torch.testing.assert_close(module.state_dict(), before, rtol=0, atol=0)
    noted = lissome.train(copy.deepcopy(module), x, loss=spread, **words).record["notes"]
    assert any("is no mean over samples" in note for note in noted) == (dropout == 0), noted
    mean = lissome.train(module, x, loss=lambda output, target: add_up(output, target) / output.numel(), **words)
    assert not any("is no mean over samples" in note for note in mean.record["notes"]), mean.record["notes"]


@pytest.mark.parametrize(
    ("loss", "text"),
    [
        (nn.CrossEntropyLoss, r"loss=CrossEntropyLoss\(\)"),
        ("crossentropy", "Did you mean cross_entropy"),
        ("word", "the loss 'word' is neither"),
        (lambda output, labels: 1.0, "returns float; a tensor that depends on the model's outputs"),  # noqa: ARG005
        (lambda output, labels: None, "returns NoneType"),  # noqa: ARG005
    ],
)
def test_losses_that_are_none_are_refused(loss: Any, text: str):
    x, labels, _ = make_data()
    with pytest.raises(lissome.UsageError, match=text):
        lissome.train(make_module(), x, labels=labels, loss=loss, example_inputs=(x[:4],))
