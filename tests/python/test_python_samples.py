"""Samples and settings as Python has them: what is taken, what is left out with a warning, what is refused."""

from __future__ import annotations

import warnings

import lissome
import numpy as np
import pytest
import torch
from torch import nn

X, Y = torch.randn(64, 4, generator=torch.Generator().manual_seed(0)), torch.arange(64) % 3


def make_net() -> nn.Module:
    torch.manual_seed(1)
    return nn.Linear(4, 3)


def train(data: object, labels: object = None, **more: object) -> tuple[dict[str, torch.Tensor], list[str]]:
    net = make_net()
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        lissome.train(net, data, labels=labels, example_inputs=(X[:4],), epochs=2, threads=1, **more)
    return net.state_dict(), [str(one.message) for one in seen]


def same(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(tensor, other[name]) for name, tensor in one.items())


@pytest.mark.parametrize("form", ["reversed twice", "big-endian", "fortran", "columns", "read-only", "float64 big"])
def test_arrays_of_any_layout_give_the_same_training(form: str):
    x, expected = X.numpy(), train(X, Y)[0]
    made = {
        "reversed twice": x[::-1].copy()[::-1],
        "big-endian": x.astype(">f4"),
        "fortran": np.asfortranarray(x),
        "columns": np.repeat(x, 2, axis=1)[:, ::2],
        "read-only": x.copy(),
        "float64 big": x.astype(">f8"),
    }[form]
    made.flags.writeable = form != "read-only"
    assert same(train(made, Y.numpy().astype(">i8"))[0], expected)


class Samples(torch.utils.data.Dataset):
    def __init__(self, bad: dict[int, Exception] | None = None, nan: tuple[int, ...] = ()):
        self.bad, self.nan = bad or {}, nan

    def __len__(self) -> int:
        return len(X)

    def __getitem__(self, number: int) -> tuple[torch.Tensor, torch.Tensor]:
        if number in self.bad:
            raise self.bad[number]
        return X[number] * (float("nan") if number in self.nan else 1), Y[number]


def test_samples_of_a_dataset_that_cannot_be_had_are_left_out():
    bad, nan = {3: KeyError("lost"), 63: OSError("gone")}, (0, 20)
    good = [number for number in range(64) if number not in bad and number not in nan]
    found, said = train(Samples(bad, nan), bad_samples="skip")
    assert same(found, train(X[good], Y[good])[0])
    assert any("2 samples cannot be read" in text and "sample 3" in text and "lost" in text for text in said)
    assert any("2 samples are left out" in text for text in said)
    with pytest.raises(KeyError, match="lost"):
        train(Samples(bad))
    with pytest.raises(lissome.InvalidInputError, match="no sample"):
        train(Samples({number: KeyError(number) for number in range(64)}), bad_samples="skip")


def test_arrays_with_nan_are_left_out_or_refused():
    x = X.clone()
    x[5, 2] = float("nan")
    good = [number for number in range(64) if number != 5]
    found, said = train(x, Y, bad_samples="skip")
    assert same(found, train(X[good], Y[good])[0]) and any("1 sample is left out" in text for text in said)
    with pytest.raises(lissome.InvalidInputError, match="finite"):
        train(x, Y)


def test_samples_one_by_one_are_for_a_loader():
    class Stream(torch.utils.data.IterableDataset):
        def __iter__(self):
            return iter((X[i], Y[i]) for i in range(64))

    with pytest.raises(lissome.InvalidInputError, match="DataLoader"):
        train(iter([(X[i, 0], Y[i]) for i in range(64)]))
    with pytest.raises(lissome.InvalidInputError):
        train(Stream())
    assert same(train(torch.utils.data.DataLoader(Stream(), batch_size=32))[0], train(X, Y)[0])


def test_states_of_an_optimizer_are_not_taken_over_and_said_so():
    net = make_net()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lissome.train(net, X, labels=Y, example_inputs=(X[:4],), optimizer=optimizer, threads=1)
    nn.functional.cross_entropy(net(X), Y).backward()
    optimizer.step()
    with pytest.warns(UserWarning, match="states of earlier steps") as seen:
        lissome.train(net, X, labels=Y, example_inputs=(X[:4],), optimizer=optimizer, threads=1)
    assert seen[0].filename == __file__


class Turned(nn.Module):
    """The complex parameter does not train."""

    def __init__(self) -> None:
        super().__init__()
        self.turn, self.out = nn.Parameter(torch.ones(X.shape[1], dtype=torch.complex64)), nn.Linear(X.shape[1], 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.out((x * self.turn).real)


def test_what_training_does_otherwise_is_a_warning():
    with pytest.warns(UserWarning, match="turn") as seen:
        trained = lissome.train(Turned(), X, labels=Y, example_inputs=(X[:4],), threads=1, accumulate=2)
    *notes, measured = trained.record["notes"]
    assert [str(warning.message) for warning in seen if warning.filename == __file__] == notes
    assert any("multiplied by accumulate" in note for note in notes) and measured.startswith("accuracy")


def test_autocast_around_lissome_is_refused():
    for make in (
        lambda: train(X, Y),
        lambda: lissome.prepare(make_net(), (X[:4],)),
        lambda: lissome.quantize(make_net(), (X[:4],), data=X),
        lambda: lissome.optimize(make_net(), (X[:4],), data=X),
    ):
        with torch.autocast("cpu"), pytest.raises(lissome.UsageError, match="autocast"):
            make()


def test_labels_that_quantize_could_not_use_are_refused():
    with pytest.raises(lissome.UsageError, match="labels"):
        lissome.quantize(make_net(), (X[:4],), data=X, labels=Y)
    named = lissome.quantize(make_net(), (X[:4],), data={"input": X, "y": Y}, labels="y")
    assert named.precision["accuracy"]


@pytest.mark.parametrize("loss", ["argmax", "detached", "constant", "labels alone"])
def test_a_loss_without_gradients_is_refused(loss: str):
    functions = {
        "argmax": lambda scores, labels: (scores.argmax(1) != labels).float().mean(),
        "detached": lambda scores, labels: nn.functional.cross_entropy(scores.detach(), labels),
        "constant": lambda scores, labels: torch.zeros(()),  # noqa: ARG005
        "labels alone": lambda scores, labels: labels.float().mean(),  # noqa: ARG005
    }
    with pytest.raises(lissome.InvalidInputError, match="no gradient"):
        train(X, Y, loss=functions[loss])
