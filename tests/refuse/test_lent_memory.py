"""Memory that a reference step does not own: constants of the plan, arrays of the caller, operands that share memory with
a result. Its program is a stranger's, and so is each word of the plan about sharing."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy
import pytest
from plan_files import check_refused, make_plan, program_of, run, write_plan

X = numpy.array([-1, 2, 3, 4], numpy.float32)
# In-place ops on the first input, behind a view too.
WRITES = {
    "a write": "%w: f32[4] = aten::add_.Scalar(%x, 1.0)",
    "a write through a view": "%v: f32[2, 2] = aten::view(%x, [2, 2])\n%w: f32[2, 2] = aten::add_.Scalar(%v, 1.0)",
}


def answer(program: Path, plan: dict, data: Path) -> numpy.ndarray:
    """The first output, from the program as a user runs it."""
    model = write_plan(data.parent / "model.lissome", plan)
    result = run(program, "run", model, "--input", data, "--output", "y.npz", folder=data.parent)
    assert result.returncode == 0, result.stderr
    with numpy.load(data.parent / "y.npz") as arrays:
        return arrays["y"]


def add_array(path: Path, name: str, values: numpy.ndarray) -> None:
    """An array of the plan, in a model file that has none yet."""
    with zipfile.ZipFile(path) as file:
        members = {member: file.read(member) for member in file.namelist()}
    row = {"name": name, "dtype": "f32", "sizes": list(values.shape), "member": "array/0"}
    members["arrays.json"] = json.dumps({"weights": [], "plan": [row]}).encode()
    head = members.pop("lissome.json")
    headers = 2 * 30 + len("lissome.json") + len("array/0")
    head += b" " * (-(headers + len(head)) % 64)  # arrays begin at multiples of 64 bytes
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as file:
        for member, contents in {"lissome.json": head, "array/0": values.tobytes(), **members}.items():
            file.writestr(member, contents)


@pytest.mark.parametrize("write", WRITES)
def test_the_callers_array_is_not_written(write: str, program: Path, data: Path) -> None:
    """The same array feeds a second step, behind the one that writes."""
    first = program_of(WRITES[write] + "\n%y: f32[4] = aten::relu(%x)")
    second = program_of("%y: f32[4] = aten::mul.Tensor(%x, %i)")
    plan = make_plan(first)
    plan["values"].append({"name": "z", "storage": "held", "dtype": "f32", "sizes": [4]})
    plan["steps"] += make_plan(second)["steps"]
    plan["steps"][1]["results"] = [3]
    plan["outputs"] = [{"name": "y", "value": 3}]
    assert numpy.array_equal(answer(program, plan, data), X * numpy.arange(4))


def test_a_result_that_shares_memory_with_its_operand_is_copied(program: Path, data: Path) -> None:
    """The plan says that the view shares nothing with its operand, whose memory the arena then gives to another."""
    plan = make_plan(program_of("%y: f32[4] = aten::view(%x, [4])"))
    plan["inputs"].append({"name": "other", "value": 3})
    plan["values"] += [{"name": "other", "storage": "input", "dtype": "f32", "sizes": [4]}]
    plan["values"] += [{"name": name, "storage": "arena", "dtype": "f32", "sizes": [4]} for name in "abc"]
    view = plan["steps"][0] | {"operands": [4, 1]}
    copies = [{"kernel": "copy", "operands": [start], "results": [end]} for start, end in ((0, 4), (3, 5), (5, 6))]
    plan["steps"] = [copies[0], view, *copies[1:]]
    plan["outputs"].append({"name": "z", "value": 6})
    numpy.savez(data, x=X, i=numpy.arange(4), other=X + 100)
    assert numpy.array_equal(answer(program, plan, data), X)


@pytest.mark.parametrize("write", WRITES)
def test_a_constant_of_the_plan_is_not_written(write: str, program: Path, data: Path) -> None:
    """Neither as an operand, nor as a weight of the step's own program; the twin that only reads it runs."""
    reads = {"%x": "%y: f32[4] = aten::add.Tensor(%x, %i)", "@w": "%y: f32[4] = aten::add.Tensor(%x, @w)"}
    for name, read in reads.items():
        body = WRITES[write].replace("%x", name) + "\n" + read
        for node, code in ((read, 0), (body, 4)):
            text = program_of(node) if name == "%x" else "parameter @w: f32[4]\n" + program_of(node)
            plan = make_plan(text, arrays=[{"name": "w", "packed": True}])
            if name == "%x":
                plan["values"].append({"name": "w", "storage": "constant", "dtype": "f32", "sizes": [4], "array": 0})
                plan["steps"][0]["operands"] = [3, 1]
            model = write_plan(data.parent / "model.lissome", plan)
            add_array(model, "w", X)
            result = run(program, "run", model, "--input", data, folder=data.parent)
            assert result.returncode == code, (name, node, result.stderr)
            if code:
                check_refused(result, "writes into")
