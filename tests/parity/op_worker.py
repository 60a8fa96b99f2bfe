"""Compares lissome with PyTorch on the operators that it is asked for, one after the other, until its stdin ends.

A process of its own, because a crash must not end the tests. A line of stdin is an object {"op", "every", "from",
"most"}: at most so many cases of an operator in one module, from that number on, for an export takes longer than all
that follows. Lines of stdout: {"at", "together", "name"} before cases are tried, {"together", "case", "kind", "reason",
"kernels"} when they are done, and {"done": op}. An empty object asks for the names of all operators.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import tempfile
import warnings
import zipfile
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from float64_run import widen, widen_everything, widen_module
from op_agreement import compare_results
from op_cases import CallOps, OpCase, gather_inputs, list_cases, list_ops
from torch.utils import _pytree as pytree

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "build" / "python"))
import lissome

SEED = 42  # before each run: lissome draws what PyTorch draws; operators of the table that seed take this one


@dataclass
class Row:
    """What came of the cases of one module. The kinds: agreed; wrong; refused (by lissome, with a reason of its own);
    failed (any other error of lissome); only together (what single cases do not show); impossible, not exported
    (PyTorch, torch.export refuse); exported otherwise (what was exported gives other answers in PyTorch, too); train
    form (a call says that it trains, which preparing turns off, and the program as it was imported agrees); crashed."""

    case: str
    kind: str
    reason: str = ""
    kernels: list[str] = field(default_factory=list)


class Stop(Exception):
    """No comparison: which kind and why."""

    def __init__(self, kind: str, error: Exception) -> None:
        lines = str(error).strip().splitlines() or [""]
        super().__init__(kind, f"{type(error).__name__}: {' | '.join(lines[:3])}"[:600])


def run_eager(net: Any, inputs: tuple[torch.Tensor, ...]) -> Any:
    """In memory of its own: a later run may write to what a view reads."""
    torch.manual_seed(SEED)
    return pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), net(*inputs))


def make_net(cases: list[OpCase]) -> CallOps:
    """New with each use: an operator may write to its buffers."""
    return CallOps(cases).eval()


def export(cases: list[OpCase], path: Path) -> Any:
    try:
        exported = torch.export.export(make_net(cases), gather_inputs(cases), strict=False)
        torch.export.save(exported, path)
    except Exception as error:  # noqa: BLE001  PyTorch's own, of any kind
        raise Stop("not exported", error) from error
    return exported


def call_lissome(function: Any, *arguments: Any, **options: Any) -> Any:
    try:
        return function(*arguments, **options)
    except lissome.InternalError as error:
        raise Stop("failed", error) from error
    except lissome.Error as error:
        raise Stop("refused", error) from error
    except Exception as error:  # noqa: BLE001
        raise Stop("failed", error) from error


def run_lissome(model: Any, cases: list[OpCase]) -> Any:
    inputs = gather_inputs(cases)
    torch.manual_seed(SEED)
    result = call_lissome(model, *inputs)
    if compare_results(inputs, gather_inputs(cases), None):
        raise Stop("wrong", RuntimeError("the caller's tensors were written to"))
    return result


class Judge:
    """Compares results of the cases with PyTorch's."""

    def __init__(self, cases: list[OpCase]) -> None:
        self.cases = cases
        self.values = "empty" not in cases[0].op.name  # else memory as it comes
        try:
            self.expected = run_eager(make_net(cases), gather_inputs(cases))
        except Exception as error:  # noqa: BLE001  PyTorch's own, of any kind
            raise Stop("impossible", error) from error

    @functools.cached_property
    def truth(self) -> Any:
        """In float64; None where an operator has no such kernel."""
        try:
            with widen_everything():
                return run_eager(widen_module(make_net(self.cases)), tuple(map(widen, gather_inputs(self.cases))))
        except Exception:  # noqa: BLE001  PyTorch's own, of any kind
            return None

    def __call__(self, seen: Any) -> str:
        """Why they differ, empty where they agree."""
        reason = compare_results(seen, self.expected, None, self.values)
        return reason and compare_results(seen, self.expected, self.truth, self.values)

    def judge_model(self, model: Any) -> str:
        """Of two runs: the second finds the memory of the first."""
        seen = run_lissome(model, self.cases)
        reason = self(seen)
        if reason or not self.values:
            return reason
        again = compare_results(run_lissome(model, self.cases), seen, None)
        return again and f"the second run differs from the first: {again}"


def read_kernels(model: Any, folder: Path) -> list[str]:
    """The kernels of the plan, from its file."""
    call_lissome(model.save, folder / "model.lissome")
    with zipfile.ZipFile(folder / "model.lissome") as archive:
        plan = json.loads(archive.read("plan.json"))
    return sorted({step["kernel"] for step in plan["steps"]})


def compare(cases: list[OpCase], name: str, folder: Path) -> Row:
    judge = Judge(cases)
    exported = export(cases, folder / "model.pt2")
    try:
        model = call_lissome(lissome.prepare, folder / "model.pt2", threads=1)
        reason = judge.judge_model(model)
        if not reason:
            return Row(name, "agreed", "", read_kernels(model, folder))
        row = Row(name, "wrong", reason)
    except Stop as stop:
        row = Row(name, *stop.args)
    if odd := describe_odd_export(exported, judge):
        return Row(name, "exported otherwise", odd)
    return explain(row, exported, judge, folder) if len(cases) == 1 and row.kind == "wrong" else row


def explain(row: Row, exported: Any, judge: Judge, folder: Path) -> Row:
    """Where the other answer comes from."""
    try:
        imported = judge(run_lissome(call_lissome(lissome.load, folder / "model.pt2", threads=1), judge.cases))
    except Stop as stop:
        imported = str(stop.args)
    if not imported and is_train_form(exported):
        return replace(row, kind="train form")
    where = f"the imported program: {imported}" if imported else "by preparing or lowering"
    return replace(row, reason=f"{row.reason} ({where})")


def describe_odd_export(exported: Any, judge: Judge) -> str:
    """How what torch.export made differs from the module, in PyTorch itself."""
    try:
        return judge(run_eager(exported.module(), gather_inputs(judge.cases)))
    except Exception as error:  # noqa: BLE001  PyTorch's own, of any kind
        return f"{type(error).__name__}: {error}"[:300]


def is_train_form(exported: Any) -> bool:
    """Whether a call says that it trains, which preparing turns off as module.eval() does."""
    for node in exported.graph.nodes:
        schema = getattr(node.target, "_schema", None)
        for place, argument in enumerate(schema.arguments if schema is not None else ()):
            given = node.args[place] if place < len(node.args) else node.kwargs.get(argument.name)
            trains = argument.name in ("train", "training", "use_input_stats") and given is True
            drops = argument.name == "dropout_p" and given
            if trains or drops or (argument.name == "running_mean" and argument.is_write):
                return True
    return False


def answer(cases: list[OpCase], name: str) -> Row:
    # In memory: what the disk does is not tested here.
    with tempfile.TemporaryDirectory(prefix="lissome-ops-", dir="/dev/shm") as folder:
        try:
            return compare(cases, name, Path(folder))
        except Stop as stop:
            return Row(name, *stop.args)


def check(cases: list[OpCase], first: int, say: Any) -> bool:
    """All as one module; where that does not agree, in halves, down to single cases. Whether all agree."""
    together = len(cases)
    say(at=first, together=together, name=cases[0].name)
    row = answer(cases, cases[0].name)
    if together == 1 or row.kind == "agreed":
        say(together=together, **asdict(row))
        return row.kind == "agreed"
    half = together // 2
    agree = [check(cases[:half], first, say), check(cases[half:], first + half, say)]
    if all(agree) and row.kind in ("wrong", "refused", "failed"):
        reason = f"{together} cases {row.kind}: {row.reason}"
        say(together=0, **asdict(replace(row, kind="only together", reason=reason)))
    return all(agree)


def serve(request: dict[str, Any], say: Any) -> None:
    if "op" not in request:
        say(names=list(list_ops()))
        say(done="")
        return
    cases, most = list_cases(request["op"], request["every"]), request["most"]
    for first in range(request["from"], len(cases), most):
        check(cases[first : first + most], first, say)
    say(done=request["op"])


def main() -> None:
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print must not stand between the answers

    def say(**message: Any) -> None:
        print(json.dumps(message), file=channel, flush=True)

    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    torch.set_flush_denormal(True)  # as lissome's steps do
    with torch.no_grad():
        for line in sys.stdin:
            serve(json.loads(line), say)


if __name__ == "__main__":
    main()
