"""Models of one call each, for seeds of fuzz_program and fuzz_graph: op_seeds.py OUTPUT [PART/PARTS]

A call of every operator of PyTorch's own table (op_db) in the smallest of its first samples, exported into
OUTPUT/<operator>.pt2; what torch.export does not take is left out and counted. Small inputs run ten times as often a
second as whole layers do.
"""

from __future__ import annotations

import io
import itertools
import sys
import warnings
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "parity"))

import op_cases  # noqa: E402

SEARCHED = 12  # samples of an operator among which the smallest with elements is taken
DTYPES = ("f32", "i64", "bool")


def count_elements(case: op_cases.OpCase) -> int:
    return sum(tensor.numel() for tensor in case.tensors.values())


def find_smallest(name: str) -> op_cases.OpCase | None:
    op = op_cases.list_ops()[name]
    for word in DTYPES:
        if op_cases.DTYPES[word] not in op.supported_dtypes("cpu"):
            continue
        samples = itertools.islice(op.sample_inputs("cpu", op_cases.DTYPES[word], requires_grad=False), SEARCHED)
        cases = [case for number, sample in enumerate(samples)
                 for case in op_cases.list_forms(op, f"{name} {number}", *op_cases.flatten_sample(sample))]
        return min((case for case in cases if count_elements(case) > 0), key=count_elements, default=None)
    return None


def export(name: str, output: Path) -> bool:
    case = find_smallest(name)
    if case is None:
        return False
    program = torch.export.export(op_cases.CallOp(case).eval(), tuple(map(op_cases.copy_tensor, case.inputs)))
    saved = io.BytesIO()
    torch.export.save(program, saved)
    (output / f"{name.replace('.', '_')}.pt2").write_bytes(saved.getvalue())
    return True


def main(output: Path, part: int, parts: int) -> None:
    output.mkdir(parents=True, exist_ok=True)
    made = left_out = 0
    for name in sorted(op_cases.list_ops())[part::parts]:
        op_cases.seed_everything(name)
        try:
            made += export(name, output)
        except Exception as reason:  # whatever an export of any operator may raise
            left_out += 1
            print(f"{name}: {type(reason).__name__}", file=sys.stderr)
    print(f"{made} operators exported, {left_out} left out")


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    main(Path(sys.argv[1]), *map(int, (sys.argv[2] if len(sys.argv) > 2 else "0/1").split("/")))
