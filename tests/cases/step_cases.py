"""The cases of the kinds of steps: small programs, each in the comment of the struct of the step that it lowers to
(lissome/runtime/step/<family>/*_steps.h), so that one place declares, explains and tests a kind of step:

    // Case, rows = 1..9 (512), columns = 2..40 (1000):
    //   input %x: f32[{rows}, {columns}]
    //   %y: f32[{rows}, {columns}] = aten::softmax.int(%x, -1)
    //   return %y

Tests draw `rows` from 1 to 9; timings take 512. What stands in braces is computed of these numbers; "half = rows//2"
behind them names one more. A case with ", force PATTERN KERNEL" behind the word takes that kernel for what the pattern
matches, as --kernel does. Inputs and parameters are drawn by dtype: f32 normal, i64 0 to 3; those whose names are s, s1, scale... or
var... are positive, as scales and variances must be. NaN, infinities and zeros are placed among the numbers unless the
text names an op that adds many of them up (keeps_special_numbers() in case_agreement.cpp). A head goes on after a comma, a statement inside brackets and after a comma or "=": in lines
that are indented further.

    step_cases.py FOLDER [--middle | --timed | --seed N]

writes FOLDER/<kernel>.txt for each: at the smallest sizes, those halfway, those that are timed, or random ones.
"""

from __future__ import annotations

import argparse
import ast
import operator
import random
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADERS = ROOT / "lissome" / "runtime" / "step"
HEAD = re.compile(r"^ *// Case(?P<words>(?:, .*)?[:,])$")
LINE = re.compile(r"^ *//   (?P<text> *\S.*)$")
KERNEL = re.compile(r'kKernel = "(?P<name>\w+)"')
SIZE = re.compile(r"(?P<name>\w+) = (?P<least>\d+)\.\.(?P<most>\d+) \((?P<timed>\d+)\)")
COMPUTED = re.compile(r"(?P<name>\w+) = (?P<expression>[^.]+)")
FORCE = re.compile(r"force (?P<pattern>\S+) (?P<kernel>\S+)")
OPERATORS: Mapping[type, Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod, ast.Pow: operator.pow,
}


@dataclass(frozen=True)
class Size:
    least: int
    most: int
    timed: int


@dataclass(frozen=True)
class StepCase:
    name: str  # the kernel; "kernel_2" of its second case
    kernel: str
    header: Path
    forced: tuple[tuple[str, str], ...]
    sizes: Mapping[str, Size]
    computed: Mapping[str, str]  # further sizes, by expressions of the ones before
    lines: tuple[str, ...]

    def write(self, sizes: Mapping[str, int]) -> str:
        """The text of the program at these sizes."""
        numbers = dict(sizes)
        for name, expression in self.computed.items():
            numbers[name] = compute(expression, numbers)
        forced = [f"# force {pattern} {kernel}" for pattern, kernel in self.forced]
        filled = [re.sub(r"\{([^}]*)\}", lambda found: str(compute(found[1], numbers)), line) for line in self.lines]
        return "\n".join([*forced, *filled]) + "\n"

    def smallest(self) -> str:
        return self.write({name: size.least for name, size in self.sizes.items()})

    def middle(self) -> str:
        """Larger than 1, so that a change of one size or order shows."""
        return self.write({name: (size.least + size.most + 1) // 2 for name, size in self.sizes.items()})

    def timed(self) -> str:
        return self.write({name: size.timed for name, size in self.sizes.items()})

    def draw(self, seed: int) -> str:
        generator = random.Random(f"{self.name} {seed}")
        return self.write({name: generator.randint(size.least, size.most) for name, size in self.sizes.items()})


def compute(expression: str, numbers: Mapping[str, int]) -> int:
    """An expression of named sizes, whole numbers and + - * // %."""

    def value(node: ast.expr) -> int:
        match node:
            case ast.Constant(value=int(number)):
                return number
            case ast.Name(id=name):
                return numbers[name]
            case ast.BinOp(left=left, op=op, right=right) if type(op) in OPERATORS:
                return OPERATORS[type(op)](value(left), value(right))
        raise ValueError(f"{expression!r}: neither a size, a number nor + - * // %")

    return value(ast.parse(expression, mode="eval").body)


def parse_case(kernel: str, number: int, path: Path, words: str, lines: list[str]) -> StepCase:
    name = kernel if number == 1 else f"{kernel}_{number}"
    forced: list[tuple[str, str]] = []
    sizes: dict[str, Size] = {}
    computed: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in words.removesuffix(":").split(","))):
        if found := SIZE.fullmatch(part):
            sizes[found["name"]] = Size(int(found["least"]), int(found["most"]), int(found["timed"]))
        elif found := COMPUTED.fullmatch(part):
            computed[found["name"]] = found["expression"]
        elif found := FORCE.fullmatch(part):
            forced.append((found["pattern"], found["kernel"]))
        else:
            raise ValueError(
                f"{path.name}, {name}: '{part}' is neither 'name = least..most (timed)' nor 'name = expression' nor "
                "'force PATTERN KERNEL'"
            )
    return StepCase(name, kernel, path, tuple(forced), sizes, computed, tuple(lines))


def read_header(path: Path) -> list[StepCase]:
    """A case belongs to the struct below it."""
    cases: list[StepCase] = []
    waiting: list[tuple[str, list[str]]] = []  # head and lines of the cases above the next struct
    inside = False
    for line in path.read_text(encoding="utf-8").splitlines():
        if found := HEAD.match(line):
            waiting.append((found["words"], []))
            inside = True
        elif inside and (found := LINE.match(line)):
            words, lines = waiting[-1]
            if words.endswith(","):
                waiting[-1] = (words + found["text"], lines)
            else:
                lines.append(found["text"])
        else:
            inside = False
            if found := KERNEL.search(line):
                cases += [parse_case(found["name"], i, path, *case) for i, case in enumerate(waiting, start=1)]
                waiting = []
    if waiting:
        raise ValueError(f"{path}: a case has no struct with a kernel below it")
    return cases


def read_cases() -> list[StepCase]:
    return [case for path in sorted(HEADERS.glob("*/*_steps.h")) for case in read_header(path)]


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes the program of each kind of step.")
    parser.add_argument("folder", type=Path)
    sizes = parser.add_mutually_exclusive_group()
    sizes.add_argument("--middle", action="store_true", help="at sizes halfway, all of them above 1")
    sizes.add_argument("--timed", action="store_true", help="at the sizes that are timed")
    sizes.add_argument("--seed", type=int, help="at random sizes")
    options = parser.parse_args()
    if options.seed is not None:
        write = partial(StepCase.draw, seed=options.seed)
    else:
        write = StepCase.middle if options.middle else StepCase.timed if options.timed else StepCase.smallest
    options.folder.mkdir(parents=True, exist_ok=True)
    for case in read_cases():
        (options.folder / f"{case.name}.txt").write_text(write(case), encoding="utf-8")


if __name__ == "__main__":
    main()
