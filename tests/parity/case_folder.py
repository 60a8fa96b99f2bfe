# Writes the folder of one case: export, save, load back, run, compare with the eager
# module, run again in float64, describe. The folder appears whole or not at all.

from __future__ import annotations

import contextlib
import copy
import json
import shutil
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import InputKind, OutputKind
from torch.utils import _pytree as pytree

from arrays import describe, is_exact, measure_distance, save_arrays
from case import Call, Case
from float64_run import widen, widen_defaults, widen_everything, widen_module

SEED = 1234  # set immediately before every forward
EAGER_LIMIT = {"plain": 1e-5, "strict": 1e-5, "functional": 1e-5, "core": 1e-4}


@dataclass
class Answers:
    """What one instance of a module answered to all runs of a case, in order."""

    outputs: list[list] = field(default_factory=list)
    inputs_after: list[list] = field(default_factory=list)
    state_before: dict = field(default_factory=dict)
    state_after: dict = field(default_factory=dict)
    random: bool = False  # whether a run drew random numbers


def write_case(case: Case, output: Path) -> None:
    folder = output / f".{case.name}.part"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        fill_folder(case, folder)
        shutil.rmtree(output / case.name, ignore_errors=True)
        folder.rename(output / case.name)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def fill_folder(case: Case, folder: Path) -> None:
    torch._dynamo.reset()  # control flow traces through dynamo, whose caches outlive a case
    module, calls = build(case)
    eager = copy.deepcopy(module)
    wide = copy.deepcopy(module)
    evaluated = copy.deepcopy(module).eval() if case.mode == "train" and case.has_eval_form else None
    program = export(case, module, calls[0])
    torch.export.save(program, folder / "model.pt2")
    expected = run(torch.export.load(folder / "model.pt2").module(), calls)
    check_against_eager(case, run(eager, calls), expected)
    f64, reason = run_float64(wide, calls)
    if f64 is not None:
        reason = keep_comparable(case, expected, f64)
    description = describe_case(case, program, calls, expected, f64)
    description |= {"f64_reason": reason, "ops": read_targets(folder / "model.pt2")}
    description["runs"] = [write_run(folder, k, description, one, expected, f64) for k, one in enumerate(calls)]
    if description["stateful"]:
        description["state"] = write_state(folder, expected, f64)
    if evaluated is not None:
        write_eval_runs(folder, description["runs"], evaluated, calls)
    (folder / "case.json").write_text(json.dumps(description, indent=1) + "\n")


def build(case: Case) -> tuple[nn.Module, list[Call]]:
    torch.manual_seed(zlib.crc32(case.name.removesuffix(f"_{case.form}").encode()))
    module = case.module()
    module.train(case.mode == "train")
    variants = case.variants if len(case.variants) > 1 else case.variants * case.steps
    return module, [case.inputs(*variant) for variant in variants]


def export(case: Case, module: nn.Module, example: Call) -> torch.export.ExportedProgram:
    example = copy.deepcopy(example)
    with contextlib.nullcontext() if case.grad else torch.no_grad():
        program = torch.export.export(
            module, example.args, example.kwargs,
            dynamic_shapes=case.dynamic, strict=case.form == "strict",
            prefer_deferred_runtime_asserts_over_guards=case.deferred,
        )
        if case.form == "core":
            program = program.run_decompositions()
        elif case.form == "functional":
            program = program.run_decompositions({})
    return program


def run(module: nn.Module, calls: list[Call]) -> Answers:
    answers = Answers(state_before=copy_buffers(module))
    for one in calls:
        one = copy.deepcopy(one)
        torch.manual_seed(SEED)
        generator = torch.get_rng_state()
        with torch.no_grad():
            result = module(*one.args, **one.kwargs)
        answers.random |= not torch.equal(generator, torch.get_rng_state())
        answers.outputs.append(pytree.tree_map(copy_tensor, pytree.tree_leaves(result)))
        answers.inputs_after.append(pytree.tree_leaves((one.args, one.kwargs)))
    answers.state_after = copy_buffers(module)
    return answers


def run_float64(module: nn.Module, calls: list[Call]) -> tuple[Answers | None, str]:
    """(answers, "") or (None, reason) where the module cannot run so."""
    calls = [Call(pytree.tree_map(widen, one.args), pytree.tree_map(widen, one.kwargs)) for one in calls]
    wide = widen_module(module)
    error = ""
    for scope in (widen_everything, widen_defaults):  # the second for control flow, which refuses modes
        try:
            with scope():
                return run(copy.deepcopy(wide), calls), ""
        except Exception as reason:  # an op without a float64 kernel: the text goes into case.json
            error = error or f"{type(reason).__name__}: {str(reason).splitlines()[0]}"
    return None, error


def keep_comparable(case: Case, expected: Answers, f64: Answers) -> str:
    """Takes out of the float64 answers what differs in more than rounding; says which those are."""
    other = []
    for k, (wide_run, plain_run) in enumerate(zip(f64.outputs, expected.outputs)):
        for i, (wide_value, value) in enumerate(zip(wide_run, plain_run)):
            distance = measure_distance(value, wide_value)
            if distance is not None and distance > f64_limit(case, value) and not expected.random:
                raise ValueError(f"{case.name}: output {i} of run {k} lies {distance:.1e} from float64")
            if not is_exact(value, wide_value) if distance is None else distance > f64_limit(case, value):
                wide_run[i] = None
                other.append(f"output {i} of run {k}")
    return f"other values in float64: {', '.join(other)}" if other else ""


def f64_limit(case: Case, value: torch.Tensor) -> float:
    narrow = {torch.bfloat16: 3e-2, torch.float16: 4e-3}
    return max(case.f64_limit, narrow.get(value.dtype, 0.0))


def check_against_eager(case: Case, eager: Answers, exported: Answers) -> None:
    pairs = [(f"output {i} of run {k}", a, b)
             for k, (left, right) in enumerate(zip(exported.outputs, eager.outputs, strict=True))
             for i, (a, b) in enumerate(zip(left, right, strict=True))]
    pairs += [(f"input {i} after run {k}", a, b)
              for k, (left, right) in enumerate(zip(exported.inputs_after, eager.inputs_after, strict=True))
              for i, (a, b) in enumerate(zip(left, right, strict=True))]
    pairs += [(f"state {name}", value, eager.state_after[name]) for name, value in exported.state_after.items()]
    for what, a, b in pairs:
        distance = measure_distance(a, b)
        if not is_exact(a, b) if distance is None else distance > EAGER_LIMIT[case.form]:
            raise ValueError(f"{case.name}: {what} differs between the exported and the eager module ({distance})")


def describe_case(case: Case, program, calls: list[Call], expected: Answers, f64: Answers | None) -> dict:
    inputs = describe_inputs(program, calls[0])
    changed = list_changed([row["name"] for row in inputs], calls, expected)
    return {
        "name": case.name, "family": case.family, "form": case.form, "mode": case.mode, "steps": case.steps,
        "dynamic": case.dynamic is not None, "dimensions": list_ranges(program), "seed": SEED, "random": expected.random,
        "stateful": case.mode == "train" or not same_state(expected.state_before, expected.state_after),
        "mutated_inputs": changed, "inputs": inputs, "outputs": describe_outputs(program, expected.outputs[0]),
        "runs": [], "f64": f64 is not None, "state": None,
    }


def list_changed(names: list[str], calls: list[Call], expected: Answers) -> list[str]:
    """The inputs that at least one run wrote to."""
    changed = set()
    for one, after in zip(calls, expected.inputs_after, strict=True):
        before = pytree.tree_leaves((one.args, one.kwargs))
        changed |= {name for name, a, b in zip(names, before, after, strict=True)
                    if isinstance(a, torch.Tensor) and not same_tensor(a, b)}
    return sorted(changed)


def write_run(folder: Path, k: int, description: dict, one: Call, expected: Answers, f64: Answers | None) -> dict:
    names, mutated = [row["name"] for row in description["inputs"]], description["mutated_inputs"]
    outputs = expected.outputs[k]
    row = {"inputs": f"input_{k}.npz", "expected": f"expected_{k}.npz", "inputs_after": None, "f64": None,
           "distance": [None] * len(outputs), "eval": None, "eval_f64": None}
    save_arrays(folder / row["inputs"], dict(zip(names, pytree.tree_leaves((one.args, one.kwargs)))))
    save_arrays(folder / row["expected"], name_outputs(outputs))
    if mutated:
        row["inputs_after"] = f"inputs_after_{k}.npz"
        after = dict(zip(names, expected.inputs_after[k], strict=True))
        save_arrays(folder / row["inputs_after"], {name: after[name] for name in mutated})
    if f64 is not None:
        row["f64"] = f"f64_{k}.npz"
        save_arrays(folder / row["f64"], name_outputs(f64.outputs[k]))
        row["distance"] = [measure_distance(a, b) for a, b in zip(outputs, f64.outputs[k])]
    return row


def write_eval_runs(folder: Path, runs: list[dict], module: nn.Module, calls: list[Call]) -> None:
    """What the module answers after eval(), from the state that it was exported with."""
    answers = run(copy.deepcopy(module), calls)
    f64 = None if answers.random else run_float64(module, calls)[0]
    for k, row in enumerate(runs):
        row["eval"] = f"eval_{k}.npz"
        save_arrays(folder / row["eval"], name_outputs(answers.outputs[k]))
        if f64 is not None:
            row["eval_f64"] = f"eval_f64_{k}.npz"
            save_arrays(folder / row["eval_f64"], name_outputs(f64.outputs[k]))


def name_outputs(values: list) -> dict[str, Any]:
    return {f"output_{i}": value for i, value in enumerate(values)}


def write_state(folder: Path, expected: Answers, f64: Answers | None) -> dict:
    row = {"before": "state_before.npz", "after": "state_after.npz", "f64": None, "tensors": []}
    save_arrays(folder / row["before"], expected.state_before)
    save_arrays(folder / row["after"], expected.state_after)
    if f64 is not None:
        row["f64"] = "state_f64.npz"
        save_arrays(folder / row["f64"], f64.state_after)
    for name, value in expected.state_after.items():
        distance = measure_distance(value, f64.state_after[name]) if f64 is not None else None
        row["tensors"].append({"name": name, **describe(value), "distance": distance})
    return row


def describe_inputs(program, example: Call) -> list[dict]:
    specs = [spec.arg for spec in program.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    rows = []
    paths = list_paths(example.args, "args") + list_paths(example.kwargs, "kwargs")
    values = pytree.tree_leaves((example.args, example.kwargs))
    for spec, path, value in zip(specs, paths, values, strict=True):
        row = {"name": spec.name, "path": path, **describe(value)}
        if not isinstance(value, torch.Tensor):
            row["fixed"] = hasattr(spec, "value")
            if isinstance(value, str):
                row["value"] = value
        rows.append(row)
    return rows


def describe_outputs(program, values: list) -> list[dict]:
    specs = [spec.arg for spec in program.graph_signature.output_specs if spec.kind == OutputKind.USER_OUTPUT]
    paths = list_paths(pytree.tree_unflatten(values, program.call_spec.out_spec), "")
    return [{"name": spec.name, "path": path, **describe(value)}
            for spec, path, value in zip(specs, paths, values, strict=True)]


def list_paths(value: Any, where: str) -> list[str]:
    """How Python reaches each leaf; for a type whose keys pytree does not know, by position."""
    try:
        return [where + pytree.keystr(path) for path, _ in pytree.tree_flatten_with_path(value)[0]]
    except ValueError:
        return [f"{where}[{i}]" for i in range(len(pytree.tree_leaves(value)))]


def list_ranges(program) -> dict[str, list]:
    """The range of each symbol; None where it has no bound."""
    def bound(value):
        return int(value) if value.is_Integer else None

    return {str(symbol): [bound(limits.lower), bound(limits.upper)]
            for symbol, limits in program.range_constraints.items()}


def read_targets(path: Path) -> list[str]:
    """The distinct targets of all graphs in the archive, sorted."""
    found = set()

    def walk(value):
        if isinstance(value, dict):
            if "target" in value and "inputs" in value:
                found.add(value["target"])
            for child in value.values():
                walk(child)
        elif isinstance(value, list):
            for child in value:
                walk(child)

    with zipfile.ZipFile(path) as archive:
        name = next(name for name in archive.namelist() if name.endswith("models/model.json"))
        walk(json.loads(archive.read(name)))
    return sorted(found)


def copy_tensor(value: Any) -> Any:
    return value.detach().clone() if isinstance(value, torch.Tensor) else value


def copy_buffers(module: nn.Module) -> dict[str, torch.Tensor]:
    return {name: copy_tensor(value) for name, value in module.named_buffers(remove_duplicate=False)}


def same_tensor(a: torch.Tensor, b: torch.Tensor) -> bool:
    return a.shape == b.shape and torch.equal(a.nan_to_num() if a.is_floating_point() else a,
                                              b.nan_to_num() if b.is_floating_point() else b)


def same_state(before: dict, after: dict) -> bool:
    return all(same_tensor(before[name], after[name]) for name in after)
