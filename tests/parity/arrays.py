# Tensors and Python scalars to NumPy arrays and their description in case.json.
# NumPy has no bfloat16 and no float8: their bits travel as unsigned integers, and the
# description says which dtype they stand for.

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

import numpy
import torch

DTYPE_NAMES = {
    torch.float64: "f64", torch.float32: "f32", torch.float16: "f16", torch.bfloat16: "bf16",
    torch.int64: "i64", torch.int32: "i32", torch.int16: "i16", torch.int8: "i8",
    torch.uint8: "u8", torch.uint16: "u16", torch.uint32: "u32", torch.uint64: "u64",
    torch.bool: "bool", torch.complex64: "c64", torch.complex128: "c128",
    torch.float8_e4m3fn: "f8_e4m3fn", torch.float8_e5m2: "f8_e5m2",
}
BITS_OF = {torch.bfloat16: torch.uint16, torch.float8_e4m3fn: torch.uint8, torch.float8_e5m2: torch.uint8}


def describe(value: Any) -> dict:
    """kind, and for tensors dtype, stored dtype and shape."""
    if isinstance(value, torch.Tensor):
        return {
            "kind": "tensor",
            "dtype": DTYPE_NAMES[value.dtype],
            "stored": str(to_array(value).dtype),
            "shape": list(value.shape),
        }
    if value is None:
        return {"kind": "none"}
    for kind in (bool, int, float, complex, str):
        if isinstance(value, kind):
            return {"kind": kind.__name__}
    raise TypeError(f"a value of type {type(value).__name__} cannot be stored in a case folder")


def to_array(value: Any) -> numpy.ndarray | None:
    """None and strings have no array; Python scalars become arrays without dimensions."""
    if value is None or isinstance(value, str):
        return None
    if isinstance(value, torch.Tensor):
        value = value.detach().resolve_conj().resolve_neg().contiguous()
        if value.dtype in BITS_OF:
            value = value.view(BITS_OF[value.dtype])
        return value.numpy()
    return numpy.asarray(value)


def save_arrays(path: Path, values: dict[str, Any]) -> None:
    """Writes a stored (not deflated) npz with fixed dates, so equal values give equal bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, value in values.items():
            array = to_array(value)
            if array is None:
                continue
            entry = zipfile.ZipInfo(f"{name}.npy", date_time=(1980, 1, 1, 0, 0, 0))
            with archive.open(entry, "w", force_zip64=False) as file:
                numpy.lib.format.write_array(file, numpy.asanyarray(array), allow_pickle=False)


def measure_distance(value: Any, reference: Any) -> float | None:
    """max|a-b| / max|b| over the finite elements; None where the values cannot be compared so."""
    if not isinstance(value, torch.Tensor) or not isinstance(reference, torch.Tensor):
        return None
    if not (value.is_floating_point() or value.is_complex()) or value.shape != reference.shape:
        return None
    wide = torch.complex128 if value.is_complex() else torch.float64
    a, b = value.detach().to(wide), reference.detach().to(wide)
    finite = torch.isfinite(a)
    if not torch.equal(finite, torch.isfinite(b)):
        return None
    if not finite.any():
        return 0.0
    difference = (a - b)[finite].abs().max().item()
    scale = b[finite].abs().max().item()
    if difference == 0.0:
        return 0.0
    return difference / scale if scale > 0 else float("inf")


def is_exact(value: Any, reference: Any) -> bool:
    """Equality for everything that is not floating point."""
    if isinstance(value, torch.Tensor) and isinstance(reference, torch.Tensor):
        return value.shape == reference.shape and torch.equal(value, reference.to(value.dtype))
    return value == reference
