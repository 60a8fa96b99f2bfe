"""Which entries of PyTorch's table of derivatives train through lissome.train(), counted and printed as a table.

Each operator of PyTorch's own test inputs (op_db) becomes a small module: every float tensor among its arguments gets a
parameter added to it, so that the operator's gradients reach parameters. A step of SGD from zero with rate 1 leaves
minus the gradient in the parameter, which is compared with PyTorch's. The batch dimension, the first of the first
tensor, is trained fixed and named; a named one at the size of the export, at 1 and at 3.

With --modules the same for the modules of torch.nn in train mode, with the inputs of PyTorch's own tests of them
(module_db): the gradients are those of their weights and of what is added to their inputs. With --precision bf16 the
step runs in bf16 and is compared with torch.autocast, within 1e-2; what is further from that, but nearer to the f32
gradient than torch.autocast is, is counted apart as "nearer" (our products keep sums in f32, autocast rounds them).

    python tests/train/derivative_coverage.py [--modules] [--precision bf16] [--part I/N] [--only WORD] [--verbose] [--list]
"""

from __future__ import annotations

import argparse
import collections
import functools
import itertools
import sys
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
import torchgen
import yaml
from torch import nn
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_modules import module_db
from torch.utils import _pytree as pytree

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "build" / "python"))
import lissome  # noqa: E402

ENTRIES = Path(__file__).with_name("derivative_entries.txt")
TOLERANCES = {"f32": 1e-5, "bf16": 1e-2}  # of the largest element of a gradient
LARGEST = 4096  # elements of a sample's tensors
OPERATOR_NAMES = [op.name + (f".{op.variant_test_name}" if op.variant_test_name else "") for op in op_db]


class OpNet(nn.Module):
    """One call of an operator; a scalar whose gradient differs from element to element."""

    def __init__(self, op: Any, sample: Any, batched: list[int]) -> None:
        super().__init__()
        self.op = op
        leaves, self.tree = pytree.tree_flatten(((sample.input, *sample.args), sample.kwargs))
        self.leaves = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.batched = batched
        for place, leaf in enumerate(leaves):
            if not isinstance(leaf, torch.Tensor):
                continue
            inner = leaf.detach().clone()
            if leaf.dtype == torch.float32 and leaf.requires_grad:
                self.register_parameter(f"offset{place}", nn.Parameter(torch.zeros_like(inner[0] if place in batched
                                                                                        else inner)))
            if place not in batched:
                self.register_buffer(f"tensor{place}", inner)

    def forward(self, *rows: torch.Tensor) -> torch.Tensor:
        given = dict(zip(self.batched, rows, strict=True))
        leaves = list(self.leaves)
        for place in range(len(leaves)):
            tensor = given[place] if place in given else getattr(self, f"tensor{place}", None)
            if tensor is None:
                continue
            offset = getattr(self, f"offset{place}", None)
            leaves[place] = tensor if offset is None else tensor + offset
        args, kwargs = pytree.tree_unflatten(leaves, self.tree)
        outputs = [out for out in pytree.tree_leaves(self.op(*args, **kwargs)) if isinstance(out, torch.Tensor)]
        real = [torch.view_as_real(out) if out.is_complex() else out for out in outputs]
        return sum((out.flatten() * torch.arange(out.numel()).cos()).sum() for out in real if out.is_floating_point())


class OrderProbe(nn.Module):
    """Its gradient is the place of each sample in the batch."""

    def __init__(self, samples: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(samples))

    def forward(self, one_hot: torch.Tensor) -> torch.Tensor:
        return (one_hot @ self.weight * torch.arange(one_hot.shape[0])).sum()


@dataclass
class Gradients:
    """What one batch that holds all rows gives."""

    by_name: dict[str, torch.Tensor]
    narrowed: bool  # no gradients could be recorded for batches of any size, which a notice said


def train(path: str, net: nn.Module, rows: list[torch.Tensor], precision: str = "f32") -> Gradients:
    """One step of SGD over all rows."""
    options = {"momentum": 0.0, "weight_decay": 0.0}
    trained = lissome.train(path, {f"rows_{i}": row for i, row in enumerate(rows)} if len(rows) > 1 else rows[0],
                            loss="output", optimizer="sgd", optimizer_options=options, lr=1.0, clip=0.0,
                            batch=len(rows[0]), threads=1, precision=precision)
    narrowed = any(note.startswith("batches have ") for note in trained.record["notes"])
    return Gradients({name: weight.detach() - trained.weights[name] for name, weight in net.named_parameters()}, narrowed)


def export(net: nn.Module, rows: list[torch.Tensor], named: bool, path: str) -> None:
    """Writes the .pt2."""
    dimension = torch.export.Dim("batch", min=1, max=64)
    shapes = {"rows": tuple({0: dimension} for _ in rows)} if named else None
    exported = torch.export.export(net, tuple(rows), dynamic_shapes=shapes)
    torch.export.save(exported, path)


@functools.cache
def find_order(samples: int, path: str) -> torch.Tensor:
    """The order in which the samples of one batch are trained."""
    probe = OrderProbe(samples)
    export(probe, [torch.eye(samples)], False, path)
    return train(path, probe, [torch.eye(samples)]).by_name["weight"].argsort()


@dataclass
class Outcome:
    """trained, narrowed (trained, but not for batches of any size), nearer (bf16: beyond the tolerance of torch.autocast,
    with less error than that), wrong, refused, denied (no file may call the op, see docs/safety.md), or why nothing was
    compared."""

    kind: str
    reason: str = ""


def find_gradients(net: nn.Module, rows: list[torch.Tensor], precision: str) -> dict[str, torch.Tensor]:
    """PyTorch's own, by the names of the parameters."""
    net.zero_grad()
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        loss = net(*rows)
    loss.backward()
    return {name: torch.zeros_like(weight) if weight.grad is None else weight.grad.clone()
            for name, weight in net.named_parameters()}


def find_error(got: torch.Tensor, expected: torch.Tensor) -> float:
    return (got - expected).abs().max().item()


def compare(net: nn.Module, rows: list[torch.Tensor], path: str, precision: str) -> Outcome:
    order = find_order(len(rows[0]), path.replace("case", "order"))
    ordered = [row[order] for row in rows]
    try:
        expected = find_gradients(net, ordered, precision)
    except Exception as error:  # noqa: BLE001  PyTorch's own, of any kind; counted and printed
        return Outcome("size impossible", str(error))
    if not all(gradient.isfinite().all() for gradient in expected.values()):
        return Outcome("gradient not finite")
    try:
        got = train(path, net, rows, precision)
    except lissome.Error as error:
        return Outcome("denied" if "not on the list of ops" in str(error) else "refused", str(error))
    kind = "narrowed" if got.narrowed else "trained"
    for name, gradient in expected.items():
        error = find_error(got.by_name[name], gradient)
        if not error <= TOLERANCES[precision] * max(1.0, gradient.abs().max().item()):
            exact = find_gradients(net, ordered, "f32")[name]
            if not find_error(got.by_name[name], exact) < find_error(gradient, exact):
                return Outcome("wrong", f"{name} of {len(rows[0])} rows is off by {error:.3g}")
            kind = "nearer"
    return Outcome(kind)


def resize(row: torch.Tensor, size: int) -> torch.Tensor:
    return row[torch.arange(size) % len(row)].contiguous()


@dataclass
class Call:
    """`op(sample.input, *sample.args, **sample.kwargs)`, of which the leaves `batched` share the size of the batch."""

    op: Any
    sample: Any
    batched: list[int]

    @property
    def rank(self) -> int:
        leaves = pytree.tree_leaves((self.sample.input, self.sample.args, self.sample.kwargs))
        return next(leaf.dim() for leaf in leaves if isinstance(leaf, torch.Tensor))


def choose_calls(calls: Iterable[Call]) -> list[Call]:
    """The first with a batch, and the first of the highest rank, as a batch of matrices is to a matrix."""
    fitting = list(calls)
    ranks = [call.rank for call in fitting]
    return [fitting[i] for i in sorted({0, ranks.index(max(ranks))})] if fitting else []


def list_module_calls(info: Any) -> Iterator[Call]:
    for given in info.module_inputs_func(info, device="cpu", dtype=torch.float32, requires_grad=True, training=True):
        module = info.module_cls(*given.constructor_input.args, **given.constructor_input.kwargs).train()
        first, *others = given.forward_input.args or (None,)
        yield from keep_batches(module, [SimpleNamespace(input=first, args=tuple(others), kwargs=given.forward_input.kwargs)])


def list_operator_calls(op: Any) -> Iterator[Call]:
    return keep_batches(op, op.sample_inputs("cpu", torch.float32, requires_grad=True))


def keep_batches(op: Any, samples: Iterable[Any]) -> Iterator[Call]:
    """Those with a batch of at least two samples."""
    for sample in list(samples):
        leaves = pytree.tree_leaves(((sample.input, *sample.args), sample.kwargs))
        tensors = {i: leaf for i, leaf in enumerate(leaves) if isinstance(leaf, torch.Tensor)}
        first = next((leaf for leaf in tensors.values() if leaf.dim() > 0), None)
        if first is None or len(first) < 2 or any(not 0 < t.numel() <= LARGEST for t in tensors.values()):
            continue
        if any(t.layout != torch.strided for t in tensors.values()):
            continue  # no batch of samples is sparse
        if not all(t.isfinite().all() for t in tensors.values()):
            continue  # refused as data
        if isinstance(op, nn.Module) or any(t.requires_grad and t.dtype == torch.float32 for t in tensors.values()):
            yield Call(op, sample, [i for i, leaf in tensors.items() if leaf.dim() > 0 and len(leaf) == len(first)])


def run_case(call: Call, named: bool, precision: str, path: str, seen: set[str]) -> Outcome:
    torch.manual_seed(1)
    sample, batched = call.sample, call.batched
    net = OpNet(call.op, sample, batched)
    leaves = pytree.tree_leaves(((sample.input, *sample.args), sample.kwargs))
    rows = [leaves[place].detach().contiguous() for place in batched]
    try:
        net(*rows).backward()
        export(net, rows, named, path)
    except Exception as error:  # noqa: BLE001  PyTorch's own, of any kind; counted and printed
        return Outcome("export impossible", f"{type(error).__name__}: {error}")
    ops = [node.target for node in torch.export.load(path).graph.nodes if node.op == "call_function"]
    seen |= {str(target) for target in ops}
    draws = any(torch.Tag.nondeterministic_seeded in getattr(target, "tags", ()) for target in ops)
    narrowed, nearer = [], []
    for size in (len(rows[0]), 1, 3) if named else (len(rows[0]),):
        outcome = compare(net, [resize(row, size) for row in rows], path, precision)
        if outcome.kind == "narrowed":
            narrowed.append(size)
        elif outcome.kind == "nearer":
            nearer.append(size)
        elif outcome.kind == "wrong" and draws:
            return Outcome("random")
        elif outcome.kind != "trained":
            return Outcome(outcome.kind, f"{size} rows: {outcome.reason}")
    if nearer:
        return Outcome("nearer", f"{nearer} rows")
    return Outcome("narrowed", f"{narrowed} rows") if narrowed else Outcome("trained")


def list_entries() -> list[str]:
    """The forward operators of derivatives.yaml that have a kernel for the CPU and give new tensors."""
    table = Path(torchgen.__file__).parent / "packaged" / "autograd" / "derivatives.yaml"
    names = [entry["name"].split("(")[0] for entry in yaml.safe_load(table.read_text())]
    has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key  # noqa: SLF001  there is no public one
    keys = ("CPU", "CompositeExplicitAutograd", "CompositeExplicitAutogradNonFunctional")
    chosen = set()
    for name in names:
        base = name.split(".")[0]
        if base.endswith("_") or "backward" in base or base.startswith(("_cudnn", "cudnn", "miopen", "mps", "_thnn")):
            continue
        if any(has_kernel(f"aten::{name}", key) for key in keys):
            chosen.add(name)
    return sorted(chosen)


def entry_of(target: str) -> str:
    """aten.add.Tensor as derivatives.yaml writes it."""
    return target.removeprefix("aten.").removesuffix(".default")


@dataclass
class Counts:
    """Calls by outcome in fixed (False) and named (True) dimensions, and the entries that those reached."""

    operators: dict[bool, collections.Counter]
    entries: dict[bool, dict[str, set[str]]]


def measure(chosen: list[tuple[str, list[Call]]], precision: str, folder: Path, verbose: bool) -> Counts:
    counts = Counts({n: collections.Counter() for n in (False, True)},
                    {n: collections.defaultdict(set) for n in (False, True)})
    for name, calls in chosen:
        for named in (False, True):
            if not calls:
                counts.operators[named]["no sample"] += 1
        for call, named in itertools.product(calls, (False, True)):
            seen: set[str] = set()
            outcome = run_case(call, named, precision, str(folder / "case.pt2"), seen)
            counts.operators[named][outcome.kind] += 1
            counts.entries[named][outcome.kind] |= {entry_of(target) for target in seen}
            if verbose or outcome.kind in ("wrong", "refused", "narrowed", "nearer"):
                print(f"{name} ({'named' if named else 'fixed'}): {outcome.kind} {outcome.reason}"[:300], flush=True)
    return counts


def print_counts(counts: Counts) -> None:
    kinds = ["trained", "narrowed", "nearer", "refused", "wrong", "denied", "export impossible", "size impossible",
             "no sample", "gradient not finite", "random"]
    listed = set(ENTRIES.read_text().split())
    print("calls               " + "  ".join(kinds) + "  trained of those tried")
    for named, counter in counts.operators.items():
        tried = sum(counter[kind] for kind in ("trained", "narrowed", "nearer", "refused", "wrong"))
        cells = "  ".join(f"{counter[kind]:>{len(kind)}}" for kind in kinds)
        print(f"{'named' if named else 'fixed':18}  {cells}  {100 * counter['trained'] / max(tried, 1):.1f} %")
    for named, reached in counts.entries.items():
        trained = reached["trained"] & listed
        narrowed = reached["narrowed"] & listed - trained
        nearer = reached["nearer"] & listed - trained - narrowed
        failed = (reached["refused"] | reached["wrong"]) & listed - trained - narrowed - nearer
        tried = len(trained) + len(narrowed) + len(nearer) + len(failed)
        print(f"entries, {'named' if named else 'fixed'}: {len(trained)} trained ({100 * len(trained) / max(tried, 1):.1f} % "
              f"of those tried), {len(narrowed)} narrowed, {len(nearer)} nearer, {len(failed)} refused or wrong in every case, "
              f"{len(listed) - tried} not reached, of {len(listed)} listed")
        for kind, entries in (("narrowed", narrowed), ("nearer", nearer), ("failed", failed)):
            for entry in sorted(entries):
                print(f"  {kind}: {entry}")


def main() -> int:
    warnings.simplefilter("ignore")
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--modules", action="store_true", help="the modules of torch.nn in place of operators")
    parser.add_argument("--precision", choices=list(TOLERANCES), default="f32")
    parser.add_argument("--part", default="0/1", help="I/N: every Nth operator from the Ith on")
    parser.add_argument("--only", default="", help="a part of an operator's name")
    parser.add_argument("--list", action="store_true", help="write the entries of derivatives.yaml and stop")
    parser.add_argument("--verbose", action="store_true", help="a line for each operator")
    args = parser.parse_args()
    if args.list:
        ENTRIES.write_text("\n".join(list_entries()) + "\n")
        return 0
    first, step = map(int, args.part.split("/"))
    torch.manual_seed(1)
    if args.modules:
        listed = [(info.name, functools.partial(list_module_calls, info)) for info in module_db]
    else:
        operators = [(name, op) for name, op in zip(OPERATOR_NAMES, op_db, strict=True) if op.supports_autograd]
        listed = [(name, functools.partial(list_operator_calls, op)) for name, op in operators]
    chosen = [(name, choose_calls(list_calls())) for name, list_calls in listed[first::step] if args.only in name]
    with tempfile.TemporaryDirectory() as folder:
        counts = measure(chosen, args.precision, Path(folder), args.verbose)
    print_counts(counts)
    return 1 if any(counter["wrong"] for counter in counts.operators.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
