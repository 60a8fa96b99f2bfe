"""Inputs of fuzz_plan from finished models: each whole plan that is small enough, and each kind of step alone.

plan_seeds.py OUTPUT MODEL.lissome...   (a folder stands for the models below it)
"""

from __future__ import annotations

import hashlib
import json
import sys
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

MOST_ELEMENTS = 1 << 13  # of a value; half of what fuzz_plan runs
MOST_CONSTANTS = 1 << 16
MOST_STEPS = 12  # of a whole plan
LIKE_EACH_OTHER = 3  # seeds of steps that differ in sizes alone
LEVELS = 5

Json = dict[str, Any]


def read_model(path: Path) -> tuple[Json, dict[tuple[bool, str], list]] | None:
    """The plan, and dtype and sizes of the arrays by (packed, name)."""
    with zipfile.ZipFile(path) as archive:
        if "plan.json" not in archive.namelist():
            return None
        rows = json.loads(archive.read("arrays.json"))
        arrays = {
            (packed, row["name"]): [row["dtype"], row["sizes"]]
            for packed, key in ((False, "weights"), (True, "plan"))
            for row in rows[key]
        }
        return json.loads(archive.read("plan.json")), arrays


def evaluate(size: int | str, extents: dict[str, int]) -> int:
    if isinstance(size, int):
        return size
    names = {"Max": max, "Min": min, "__builtins__": {}} | extents
    return int(eval(size, names))  # written by lissome a moment ago


class Seeds:
    def __init__(self, output: Path) -> None:
        self.output = output
        self.seen: Counter[str] = Counter()

    def write(self, plan: Json, arrays: dict, name: str) -> None:
        """With arrays named by position and filled by number, and what no step needs left out."""
        extents = {row["name"]: max(row["minimum"], 2) for row in plan["dimensions"]}
        head = {
            "level": len(self.seen) % LEVELS,
            "threads": 1,
            "runs": 1,
            "data": 0,
            "extents": list(extents.values()),
            "arrays": [[*arrays[row["packed"], row["name"]], 0] for row in plan["arrays"]],
        }
        for value in plan["values"]:
            elements = 1
            for size in value.get("sizes", []):
                elements *= evaluate(size, extents)
            if elements > (MOST_CONSTANTS if value["storage"] == "constant" else MOST_ELEMENTS):
                return
        lean = {key: plan[key] for key in ("format", "dimensions", "inputs", "outputs", "values")}
        lean["machine"] = {"processor": "", "features": "", "threads": 1}
        lean["arrays"] = [{"name": str(i), "packed": True} for i in range(len(plan["arrays"]))]
        keys = ("kernel", "attributes", "operands", "results")
        lean["steps"] = [{key: step[key] for key in keys if key in step} for step in plan["steps"]]
        if plan.get("writes"):
            lean["writes"] = plan["writes"]
        text = json.dumps(head, separators=(",", ":")) + "\n" + json.dumps(lean, separators=(",", ":"))
        digest = hashlib.sha1(text.encode()).hexdigest()[:10]
        (self.output / f"{name}_{digest}").write_text(text)

    def add_plan(self, plan: Json, arrays: dict) -> None:
        steps = plan["steps"]
        native = all(step["kernel"] != "reference" for step in steps)
        if native and 1 < len(steps) <= MOST_STEPS:
            kernels = "+".join(sorted(describe(plan, step) for step in steps))
            if self.is_new("plan " + kernels):
                self.write(plan, arrays, "plan")
        for step in steps:
            if step["kernel"] == "reference" or not step["results"]:
                continue
            if self.is_new(describe(plan, step)):
                self.write(cut_step(plan, step), arrays, step["kernel"])

    def is_new(self, kind: str) -> bool:
        self.seen[kind] += 1
        return self.seen[kind] <= LIKE_EACH_OTHER


def describe(plan: Json, step: Json) -> str:
    """What a step is but for its sizes."""

    def value(position: int) -> str:
        if position < 0:
            return "-"
        found = plan["values"][position]
        return f"{found.get('dtype')}/{len(found.get('sizes', []))}/{found.get('format', '')}"

    words = {key: item for key, item in step.get("attributes", {}).items() if isinstance(item, str)}
    names = sorted(step.get("attributes", {}))
    program = step.get("attributes", {}).get("program", [])
    return " ".join(
        [step["kernel"], str(words), str(names), *(line.split()[0] for line in program)]
        + [value(i) for i in step["operands"] + step["results"]]
    )


def cut_step(plan: Json, step: Json) -> Json:
    """A plan of this step alone: what it reads comes in, what it makes goes out."""
    values: list[Json] = []
    arrays: list[Json] = []
    inputs: list[Json] = []
    places: dict[int, int] = {}

    def place(position: int) -> int:
        if position < 0 or position in places:
            return places.get(position, -1)
        value = dict(plan["values"][position])
        places[position] = len(values)
        if value["storage"] in ("constant", "state"):
            arrays.append(plan["arrays"][value["array"]])
            value["array"] = len(arrays) - 1
        elif position not in step["results"]:
            # An input lies in row order; where the step wants another, a copy makes it.
            value["storage"] = "input"
            inputs.append({"name": f"x{len(inputs)}", "value": len(values)})
        values.append(value)
        return places[position]

    operands = [place(position) for position in step["operands"]]
    results = [place(position) for position in step["results"]]
    steps = []
    for entry in inputs:
        value = values[entry["value"]]
        if value.pop("format", "row_major") == "channels_last":
            copy = value | {"name": f"c{len(values)}", "storage": "arena", "format": "channels_last"}
            values.append(copy)
            steps.append({"kernel": "copy", "operands": [entry["value"]], "results": [len(values) - 1]})
            operands = [len(values) - 1 if position == entry["value"] else position for position in operands]
    cut = step | {"operands": operands, "results": results}
    outputs = [{"name": f"y{i}", "value": position} for i, position in enumerate(results)]
    kept = {key: plan[key] for key in ("format", "dimensions")}
    return kept | {"inputs": inputs, "outputs": outputs, "arrays": arrays, "values": values, "steps": [*steps, cut]}


def main(output: Path, sources: list[Path]) -> None:
    output.mkdir(parents=True, exist_ok=True)
    seeds = Seeds(output)
    for source in sources:
        for path in sorted(source.rglob("*.lissome")) if source.is_dir() else [source]:
            model = read_model(path)
            if model is not None:
                seeds.add_plan(*model)
    print(f"{len(list(output.iterdir()))} plans for fuzz_plan")


if __name__ == "__main__":
    main(Path(sys.argv[1]), [Path(word) for word in sys.argv[2:]])
