"""Calls every op that a model file may call on tensors of odd strides, and on equal ones whose elements lie one behind
the other. Results that differ show a kernel that takes its operands for dense: it reads, or writes, memory beside them.

Each tensor of a seed (PyTorch's own samples, see attack_ops.py) is expanded along one dimension and along all, and
spread to every second element, with other numbers behind it.

    compare_strides.py                          every op
    compare_strides.py --only embedding_bag     ops whose name matches
    compare_strides.py --raw                    without the library's own copies, to see what they are for
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Iterator
from typing import Any

import torch
from attack_ops import GUARD, allowed_ops, call_op, describe, enter_child, find_op, guard_calls, run_child, sample_seeds

# Answers that are about strides, or memory that nobody set.
ABOUT_STRIDES = ("as_strided", "is_contiguous", "stride", "empty", "new_empty", "resize", "_unsafe_view", "view",
                 "storage_offset", "_reshape_alias", "is_set_to")
# Several answers are right: signs of vectors, orders of equal numbers, what is drawn, roundings of singular matrices.
SEVERAL_ANSWERS = ("median", "nanmedian", "mode", "sort", "argsort", "msort", "topk", "kthvalue", "svd", "eig", "det",
                   "qr", "lstsq", "pinv", "inverse", "linalg_inv", "linalg_cond", "solve", "lu", "ldl", "geqrf",
                   "cholesky", "matrix_rank", "dropout", "rand", "rrelu", "bernoulli", "normal", "cauchy", "exponential",
                   "geometric", "multinomial", "poisson", "binomial", "_sample_dirichlet", "_standard_gamma", "uniform",
                   "hash_tensor", "fractional_max_pool", "polygamma", "matrix_exp")


def make_inner_seeds() -> dict[str, list[list]]:
    """Calls of ops that stand below those that PyTorch has samples for."""
    torch.manual_seed(1)
    table, indices, bags = torch.randn(5, 4), torch.tensor([0, 3, 1, 4]), torch.tensor([0, 2])
    heads, bytes_, weight = torch.randn(1, 2, 4, 8), torch.randint(-9, 9, (32, 32), dtype=torch.int8), torch.randn(6, 4)
    steps, sizes, state = torch.randn(6, 3), torch.tensor([2, 2, 2]), torch.randn(1, 2, 5)
    bag = [table, indices, bags, False, 0, False, None, False, -1]

    def layer(gates: int) -> list[torch.Tensor]:
        rows = 5 * gates
        return [torch.randn(rows, 3), torch.randn(rows, 5), torch.randn(rows), torch.randn(rows)]

    packed = [True, 1, 0.0, False, False]
    return {
        "aten::_weight_norm_interface": [[weight, torch.rand(6, 1), 0]],
        "aten::_scaled_dot_product_flash_attention_for_cpu": [[heads, heads, heads, 0.0, False, None, None]],
        "aten::_int_mm": [[bytes_, bytes_]],
        "aten::_embedding_bag": [bag],
        "aten::_embedding_bag_forward_only": [bag],
        "aten::lstm.data": [[steps, sizes, [state, state], layer(4), *packed]],
        "aten::gru.data": [[steps, sizes, state, layer(3), *packed]],
        "aten::rnn_tanh.data": [[steps, sizes, state, layer(1), *packed]],
        "aten::rnn_relu.data": [[steps, sizes, state, layer(1), *packed]],
        "aten::_pad_packed_sequence": [[steps, sizes, False, 0.0, 3]],
        "aten::_pack_padded_sequence": [[torch.randn(3, 2, 3), torch.tensor([3, 2]), False]],
        "aten::segment_reduce": [[torch.randn(6), "sum", torch.tensor([2, 4]), None, None, 0, False, None]],
        "mkldnn::_convolution_pointwise": [
            [torch.randn(1, 4, 5, 5), torch.randn(64, 4, 3, 3), torch.randn(64), [0, 0], [1, 1], [1, 1], 1, "none", [], ""]
        ],
        "mkldnn::_linear_pointwise": [[torch.randn(3, 4), weight, torch.randn(6), "none", [], ""]],
    }


def set_strides(tensor: torch.Tensor) -> Iterator[torch.Tensor]:
    """Tensors of the same sizes whose strides are not those of rows."""
    count = tensor.numel()
    if tensor.layout != torch.strided or count < 2 or count > 1 << 16:
        return
    behind = torch.flip(tensor.reshape(-1), [0]) if tensor.dtype == torch.bool else tensor.reshape(-1).clone()
    memory = torch.cat([tensor.reshape(-1), behind, behind])
    wide = [dim for dim in range(tensor.dim()) if tensor.size(dim) > 1]
    rows = tensor.contiguous().stride()
    for dropped in [[dim] for dim in wide] + [wide] * (len(wide) > 1):
        yield memory.as_strided(tensor.shape, [0 if dim in dropped else step for dim, step in enumerate(rows)])
    yield memory.as_strided(tensor.shape, [2 * step for step in rows])


def read_results(value: Any) -> list[torch.Tensor | str]:
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in read_results(item)]
    if not isinstance(value, torch.Tensor):
        return [repr(value)]
    return [value.to_dense() if value.layout != torch.strided else value]


def agree(left: list, right: list) -> bool:
    for one, other in zip(left, right, strict=True):
        if not isinstance(one, torch.Tensor):
            if one != other:
                return False
        elif one.shape != other.shape:
            return False
        elif not torch.allclose(one.to(torch.complex128), other.to(torch.complex128), 1e-3, 1e-3, equal_nan=True):
            return False
    return True


def answer(op: Any, call: list) -> list | None:
    try:
        torch.manual_seed(0)
        return read_results(call_op(op, call))
    except Exception:  # noqa: BLE001 - any error is a refusal
        return None


def compare_op(op: Any, seeds: list[list], report: int, guarded: bool) -> None:
    """In a child: writes a line for the first call whose results depend on strides."""
    enter_child()
    if guarded:
        guard_calls()
    compared = 0
    writes = any(argument.alias_info is not None and argument.alias_info.is_write for argument in op._schema.arguments)
    for seed in seeds:
        for place, value in enumerate(seed):
            if not isinstance(value, torch.Tensor) or (writes and place == 0):
                continue
            for odd in set_strides(value):
                os.write(report, b".\n")  # a sign of life for the parent
                calls = []
                for tensor in (odd, odd.contiguous()):
                    call = [item.clone() if isinstance(item, torch.Tensor) else item for item in seed]
                    call[place] = tensor
                    calls.append(call)
                with torch.no_grad():
                    strided, dense = answer(op, calls[0]), answer(op, calls[1])
                if strided is None or dense is None:
                    continue
                compared += 1
                if not agree(strided, dense):
                    os.write(report, f"differs: argument {place} of strides {odd.stride()}: {describe(seed)}\n".encode())
                    return
    os.write(report, f"compared {compared}\n".encode())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="ops whose name matches this expression")
    parser.add_argument("--samples", type=int, default=4, help="samples that are traced for each op and dtype")
    parser.add_argument("--raw", action="store_true", help="without the library's own copies")
    arguments = parser.parse_args()
    if not arguments.raw and not GUARD.is_file():
        parser.error(f"{GUARD} is not built")
    torch.set_num_threads(1)
    names = [name for name in allowed_ops() if find_op(name) is not None and re.search(arguments.only, name)]
    left_out = ABOUT_STRIDES + SEVERAL_ANSWERS
    names = [name for name in names if not any(word in name.split("::")[1] for word in left_out)]
    seeds = sample_seeds(set(names), arguments.samples) | make_inner_seeds()
    compared = found = 0
    for name in names:
        text, end = run_child(lambda report: compare_op(find_op(name), seeds.get(name, []), report, not arguments.raw),
                              20.0)
        findings = [line for line in text.splitlines() if line.startswith("differs")]
        if end != "ok":
            findings.append(end)
        found += bool(findings)
        for finding in findings:
            print(f"{name}: {finding}", flush=True)
        compared += sum(int(line.split()[1]) for line in text.splitlines() if line.startswith("compared"))
    print(f"{len(names)} ops, {len(seeds)} with samples: {compared} calls compared, {found} ops take operands for dense")
    return 1 if found or not compared else 0


if __name__ == "__main__":
    sys.exit(main())
