"""When two results agree, as agreement.h says it: max|a-b| / max|b| at most 1e-5 over the finite elements, and those
that are not finite and integers exactly; beyond that, no more than twice as far from a float64 run as PyTorch itself
lies."""

from __future__ import annotations

from typing import Any

import torch
from arrays import measure_distance
from torch.utils import _pytree as pytree

GREATEST_ERROR = 1e-5
# PyTorch's own distance from float64 above which the two are other values, not roundings of one; see case_folder.py.
COMPARABLE = {torch.bfloat16: 3e-2, torch.float16: 4e-3}
COMPARABLE_ELSE = 1e-4


def flatten(result: Any) -> tuple[list[Any], Any]:
    return pytree.tree_flatten(result)


def compare_results(seen: Any, expected: Any, truth: Any, values: bool = True) -> str:
    """Why the results differ, empty where they agree. `truth`: the float64 run, None where there is none. `values`:
    else only how they nest, dtypes and sizes."""
    left, left_tree = flatten(seen)
    right, right_tree = flatten(expected)
    if left_tree != right_tree:
        return f"nests as {left_tree} instead of {right_tree}"
    wide, wide_tree = flatten(truth)
    if wide_tree != right_tree:
        wide = [None] * len(right)
    for place, (a, b, c) in enumerate(zip(left, right, wide, strict=True)):
        reason = compare_values(a, b, c) if values else compare_kinds(a, b)
        if reason:
            return f"output {place}: {reason}"
    return ""


def compare_kinds(seen: Any, expected: Any) -> str:
    if not isinstance(expected, torch.Tensor) or not isinstance(seen, torch.Tensor):
        return "" if type(seen) is type(expected) else f"a {type(seen).__name__} instead of a {type(expected).__name__}"
    if seen.layout != expected.layout:
        return f"{seen.layout} instead of {expected.layout}"
    if seen.dtype != expected.dtype:
        return f"dtype {seen.dtype} instead of {expected.dtype}"
    return "" if seen.shape == expected.shape else f"sizes {list(seen.shape)} instead of {list(expected.shape)}"


def compare_values(seen: Any, expected: Any, truth: Any) -> str:
    reason = compare_kinds(seen, expected)
    if reason or not isinstance(expected, torch.Tensor):
        same = seen == expected or (seen != seen and expected != expected)
        return reason or ("" if same else f"{seen} instead of {expected}")
    if expected.layout != torch.strided:
        return compare_values(seen.to_dense(), expected.to_dense(), None)
    if not expected.is_floating_point() and not expected.is_complex():
        wrong = int((seen != expected).sum())
        return f"{wrong} of {expected.numel()} values differ" if wrong else ""
    if not same_non_finite(seen, expected):
        return "elements that are not finite differ"
    error = measure_distance(seen, expected)
    if error is None or error <= GREATEST_ERROR:
        return ""
    return compare_by_truth(seen, expected, truth, f"error {error:.2g}")


def compare_by_truth(seen: torch.Tensor, expected: torch.Tensor, truth: Any, reason: str) -> str:
    ours, theirs = measure_distance(seen, truth), measure_distance(expected, truth)
    if ours is None or theirs is None:
        return f"{reason}, without a float64 run"
    if ours > 2 * theirs:
        return f"{reason}, from float64: ours {ours:.2g}, PyTorch's {theirs:.2g}"
    if theirs > COMPARABLE.get(expected.dtype, COMPARABLE_ELSE):
        return f"{reason}, and PyTorch itself lies {theirs:.2g} from float64"
    return ""


def same_non_finite(a: torch.Tensor, b: torch.Tensor) -> bool:
    """NaN stands where NaN does, infinity where the same infinity does."""
    if a.is_complex():
        return same_non_finite(torch.view_as_real(a.resolve_conj()), torch.view_as_real(b.resolve_conj()))
    a, b = a.double(), b.double()
    left, right = (torch.where(value.isfinite(), torch.zeros_like(value), value) for value in (a, b))
    return bool(((left == right) | (left.isnan() & right.isnan())).all())
