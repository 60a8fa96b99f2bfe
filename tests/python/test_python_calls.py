"""A call of a finished model means what the same call of the module means, or is refused."""

from __future__ import annotations

import warnings

import lissome
import pytest
import torch
from torch import nn


class Scaled(nn.Module):
    def forward(self, x, scale=1.0, flip=False, mask=None):
        y = x * scale
        y = y.flip(-1) if flip else y
        return y if mask is None else y * mask


X = torch.arange(6.0).reshape(2, 3)


def prepare(*arguments, **keywords):
    return lissome.prepare(Scaled(), arguments, example_kwargs=keywords)


class Mixed(nn.Module):
    def forward(self, x, pair, extra=None):
        y = x - 3 * pair[0] + 5 * pair[1]
        return y if extra is None else y + 7 * extra


def test_one_tensor_given_for_several_inputs_is_each_of_them():
    others = [torch.randn(2, 3) for _ in range(4)]
    wanted = Mixed()(others[0], (others[1], others[2]), extra=others[3])
    fast = lissome.prepare(Mixed(), (X, (X, X)), example_kwargs={"extra": X})
    torch.testing.assert_close(fast(others[0], (others[1], others[2]), extra=others[3]), wanted)
    fast = lissome.optimize(Mixed(), (X, (X, X)), example_kwargs={"extra": X}, time="2s")
    torch.testing.assert_close(fast(others[0], (others[1], others[2]), extra=others[3]), wanted)


def test_an_argument_left_out_is_its_default_or_refused():
    fast = prepare(X, scale=2.0)
    torch.testing.assert_close(fast(X, scale=2.0), X * 2)
    with pytest.raises(lissome.InvalidInputError, match=r"scale is left out.*with 2\.0 for it; its default is 1\.0"):
        fast(X)
    torch.testing.assert_close(prepare(X, scale=1.0)(X), X)
    torch.testing.assert_close(prepare(X, mask=None)(X), X)


def test_a_positional_argument_left_out_is_its_default_or_refused():
    with pytest.raises(lissome.InvalidInputError, match=r"scale is left out"):
        prepare(X, 2.0)(X)
    torch.testing.assert_close(prepare(X, 1.0)(X), X)
    torch.testing.assert_close(prepare(X, 1.0)(X, scale=1.0), X)


def test_a_default_that_the_export_left_out_may_be_given():
    fast = prepare(X)
    torch.testing.assert_close(fast(X, flip=False, scale=1.0), X)
    torch.testing.assert_close(fast(X, 1.0, False, None), X)
    for keywords in ({"flip": True}, {"scale": 2.0}, {"mask": X}, {"scale": True}):
        with pytest.raises(lissome.InvalidInputError, match=f"argument {next(iter(keywords))} is given.*without it"):
            fast(X, **keywords)
    with pytest.raises(lissome.InvalidInputError, match="argument scale is given"):
        fast(X, 3.0)
    with pytest.raises(lissome.InvalidInputError, match=r"no argument flop\n.*x, scale, flip, mask"):
        fast(X, flop=False)
    with pytest.raises(lissome.InvalidInputError, match="x is given twice"):
        fast(X, x=X)
    with pytest.raises(lissome.InvalidInputError, match="5 arguments"):
        fast(X, 1.0, False, None, X)


class ByName(nn.Module):
    def forward(self, x, *, scale=1.0, shift):
        return x * scale + shift


def test_a_keyword_only_argument_is_given_by_its_name(tmp_path):
    fast = lissome.prepare(ByName(), (X,), example_kwargs={"shift": X})
    fast.save(tmp_path / "by_name.lissome")
    for model in (fast, lissome.load(tmp_path / "by_name.lissome")):
        torch.testing.assert_close(torch.as_tensor(model(X, shift=X)), X + X)
        torch.testing.assert_close(torch.as_tensor(model(X, scale=1.0, shift=X)), X + X)
        with pytest.raises(lissome.InvalidInputError, match=r"2 arguments .*takes 1 so \(x\)\n *By name: scale, shift"):
            model(X, X)


def test_a_saved_model_knows_the_defaults_too(tmp_path):
    prepare(X, scale=2.0).save(tmp_path / "m.lissome")
    saved = lissome.load(tmp_path / "m.lissome")
    torch.testing.assert_close(saved(X, scale=2.0, flip=False), X * 2)
    with pytest.raises(lissome.InvalidInputError, match="scale is left out"):
        saved(X)


def test_a_file_of_an_export_knows_no_defaults(tmp_path):
    torch.export.save(torch.export.export(Scaled(), (X,), {"scale": 2.0, "mask": None}), tmp_path / "m.pt2")
    fast = lissome.load(tmp_path / "m.pt2")
    torch.testing.assert_close(fast(X, scale=2.0), X * 2)
    with pytest.raises(lissome.InvalidInputError, match=r"scale is left out, and the model was exported with 2\.0 for it\n"):
        fast(X)
    with pytest.raises(lissome.InvalidInputError, match="flip is given"):
        fast(X, scale=2.0, flip=False)
    torch.export.save(torch.export.export(Scaled(), (X, 2.0)), tmp_path / "m.pt2")
    with pytest.raises(lissome.InvalidInputError, match="argument number 2 is left out"):
        lissome.load(tmp_path / "m.pt2")(X)


class Writes(nn.Module):
    def forward(self, x, y):
        x.add_(y)
        return x * 2


def test_tensors_whose_storage_was_freed_are_refused():
    """As sharded training does with parameters; their elements would be read beside the storage."""
    net, x = nn.Linear(16, 2), torch.randn(8, 16)
    fast = lissome.prepare(nn.ReLU(), (torch.randn(4, 16),))
    x.untyped_storage().resize_(8)
    with pytest.raises(lissome.InvalidInputError, match="holds 8 bytes, its elements need 512"):
        fast(x)
    with pytest.raises(lissome.InvalidInputError, match="holds 8 bytes, its elements need 512"):
        lissome.train(net, x, labels=torch.zeros(8, dtype=torch.long), example_inputs=(torch.randn(4, 16),))


def test_a_module_that_writes_to_its_argument_is_reported():
    x, y = torch.ones(3), torch.ones(3)
    with pytest.warns(lissome.DataWarning, match="writes to its argument x"):
        fast = lissome.prepare(Writes(), (x.clone(), y))
    torch.testing.assert_close(fast(x, y), torch.full((3,), 4.0))
    torch.testing.assert_close(x, torch.ones(3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lissome.prepare(Scaled(), (x,))


class Nested(nn.Module):
    def forward(self, pair, table):
        return pair[0] + pair[1] * table["w"]


def test_a_wrong_nesting_is_reported_by_the_argument():
    one = torch.ones(3)
    fast = lissome.prepare(Nested(), ((one, one), {"w": one}))
    torch.testing.assert_close(fast((one, one), table={"w": one}), torch.full((3,), 2.0))
    with pytest.raises(lissome.InvalidInputError, match="argument table does not nest as exported: the keys"):
        fast((one, one), {"v": one})
    with pytest.raises(lissome.InvalidInputError, match="argument pair does not nest as exported: a tuple of 2"):
        fast((one,), {"w": one})
    with pytest.raises(lissome.InvalidInputError, match="argument table is missing"):
        fast((one, one))


def test_a_missing_argument_of_many_names_a_few():
    class Sum(torch.nn.Module):
        def forward(self, *terms: torch.Tensor) -> torch.Tensor:
            return sum(terms)

    model = lissome.prepare(Sum(), tuple(torch.ones(2) for _ in range(50)))
    with pytest.raises(lissome.InvalidInputError, match="terms_11, and 38 more$"):
        model(torch.ones(2))
