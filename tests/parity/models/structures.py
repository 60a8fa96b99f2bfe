# What goes in and comes out: nested structures, optional and scalar inputs, None, repeats.

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn
from torch.utils import _pytree as pytree

from case import Case, apply, call


class Nested(nn.Module):
    def forward(self, batch, pair, *, options):
        image, (low, high) = batch["image"], pair
        clipped = torch.minimum(torch.maximum(image, low), high)
        return {
            "clipped": clipped,
            "stages": [clipped.mean(), (clipped * batch["weights"][0], options["inner"]["shift"] + image)],
            "untouched": image,
        }


class OptionalInputs(nn.Module):
    def forward(self, x, mask=None, bias=None):
        y = x.softmax(-1) if mask is None else x.masked_fill(mask, -1.0)
        return y if bias is None else y + bias


class Outputs(NamedTuple):
    logits: torch.Tensor
    hidden: tuple
    loss: torch.Tensor | None


@dataclass
class Pair:
    first: torch.Tensor
    rest: dict


# An archive names the types of its structure; types of one's own need a name for that.
pytree._register_namedtuple(Outputs, serialized_type_name="Outputs")
torch.export.register_dataclass(Pair, serialized_type_name="Pair")
torch.serialization.add_safe_globals([Outputs, Pair])


class NamedOutputs(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x):
        first = self.linear(x)
        second = self.linear(first)
        return Outputs(logits=second.sum(-1), hidden=(x, first, second), loss=None)


class DataclassInput(nn.Module):
    def forward(self, pair):
        return Pair(first=pair.first + pair.rest["shift"], rest={"twice": pair.first * 2})


class ManyOfTheSame(nn.Module):
    """One tensor returned twice, an input returned as it is, a view of an input, a constant."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4))
        self.register_buffer("table", torch.arange(4.0))

    def forward(self, x):
        y = x * self.weight
        return y, y, x, x[0], self.weight, self.table, self.table + 0


class UnusedInput(nn.Module):
    def forward(self, x, unused, *rest, **named):
        return sum(rest) + x - named["scale"]


class Constant(nn.Module):
    """Nothing goes in; what comes out was computed from weights alone."""

    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3, 3))

    def forward(self):
        return self.weight @ self.weight.t() + torch.eye(3)


def python_values(x, count: int, rate: float, flag: bool, name: str):
    y = x * count + rate if flag else x
    return y, count, rate, flag, (y.mean(), None), x.dim(), name == "sum"


CASES = [
    Case("nested_structures", Nested, lambda: call(
        {"image": torch.randn(2, 3), "weights": [torch.randn(3), torch.randn(1)]}, (torch.tensor(-0.5), torch.tensor(0.5)),
        options={"inner": {"shift": torch.randn(2, 1)}, "unused": torch.zeros(2)}), forms=("strict",)),
    Case("optional_given", OptionalInputs, lambda: call(torch.randn(2, 4), torch.rand(2, 4) > 0.5)),
    Case("optional_none", OptionalInputs, lambda: call(torch.randn(2, 4), None, torch.randn(4))),
    Case("optional_keyword", OptionalInputs, lambda: call(torch.randn(2, 4), bias=torch.randn(4))),
    Case("named_outputs", NamedOutputs, lambda: call(torch.randn(2, 4)), forms=("core",)),
    Case("dataclass_input", DataclassInput, lambda: call(Pair(torch.randn(3), {"shift": torch.ones(3)}))),
    Case("repeated_outputs", ManyOfTheSame, lambda: call(torch.randn(3, 4))),
    Case("unused_input", UnusedInput, lambda: call(
        torch.randn(3), torch.randn(2), torch.randn(3), torch.randn(3), scale=torch.tensor(2.0), other=torch.zeros(1))),
    Case("python_values", apply(python_values), lambda: call(torch.randn(3), 4, 0.25, True, name="sum")),
    Case("no_inputs", Constant, call),
    Case("identity", nn.Identity, lambda: call(torch.randn(3))),
    Case("scalar_tensors", apply(lambda a, b: {"sum": a + b, "pair": [a * 2, b > 0]}), lambda: call(torch.tensor(1.5), torch.tensor(3))),
    Case("empty_tensors", apply(lambda x: (x.sum(0), torch.cat([x, torch.ones(2, 3)]), x.relu(), x.numel())),
         lambda: call(torch.zeros(0, 3))),
]
