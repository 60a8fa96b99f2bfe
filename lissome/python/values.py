"""Inputs as the runtime takes them (numpy arrays and numbers), results as the caller wants them: numpy or torch.

Element types that numpy lacks are pairs: an array of unsigned integers with the same bytes, and the name of the type.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from lissome.arguments import refuse_type
from lissome.errors import InvalidInputError, UnsupportedError

# torch's and ml_dtypes' names of what numpy lacks -> ours, and the integers of the same size.
_FOREIGN: dict[str, tuple[str, str]] = {
    "bfloat16": ("bf16", "uint16"),
    "complex32": ("c32", "uint32"),
    "float8_e4m3fn": ("f8_e4m3fn", "uint8"),
    "float8_e5m2": ("f8_e5m2", "uint8"),
    "float8_e4m3fnuz": ("f8_e4m3fnuz", "uint8"),
    "float8_e5m2fnuz": ("f8_e5m2fnuz", "uint8"),
}
_TORCH_NAMES = {ours: name for name, (ours, _) in _FOREIGN.items()}


def is_tensor(value: Any) -> bool:
    """Whether this is a tensor of torch, which the caller then has imported."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def to_flat(name: str, value: Any) -> Any:
    """An argument of a call as _runtime.Model.run takes it."""
    if is_tensor(value):
        return _flatten_tensor(name, value)
    if isinstance(value, np.ndarray):
        foreign = _FOREIGN.get(value.dtype.name)
        return value if foreign is None else (value.view(foreign[1]), foreign[0])
    if isinstance(value, bool | int | float):
        return value
    if hasattr(value, "__array__"):
        return np.asarray(value)
    refuse_type(f"input {name!r}", value, "a tensor, an array or a number")


def _flatten_tensor(name: str, tensor: Any) -> Any:
    foreign = _FOREIGN.get(str(tensor.dtype).removeprefix("torch."))
    try:
        _refuse_freed(name, tensor)
        if foreign is None:
            return tensor.numpy(force=True)
        bits = tensor.detach().cpu().resolve_conj().resolve_neg()
        return bits.view(getattr(sys.modules["torch"], foreign[1])).numpy(), foreign[0]
    except (TypeError, RuntimeError) as error:  # sparse, quantized, without memory
        raise InvalidInputError(f"input {name!r} is a tensor that cannot be lent: {error}") from error


def _refuse_freed(name: str, tensor: Any) -> None:
    """The storage of a tensor may have been made smaller since, as sharded training does with parameters."""
    last = sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    needed = (tensor.storage_offset() + last + 1) * tensor.element_size() if tensor.numel() else 0
    held = tensor.untyped_storage().nbytes()
    if held < needed:
        raise InvalidInputError(f"the storage of input {name!r} holds {held} bytes, its elements need {needed}")


def to_tensor(result: Any) -> Any:
    """One result of _runtime.Model.run over the same memory."""
    torch = sys.modules["torch"]
    if isinstance(result, np.ndarray):
        return torch.from_numpy(result)
    if isinstance(result, tuple):
        array, dtype = result
        return torch.from_numpy(array).view(getattr(torch, _TORCH_NAMES[dtype]))
    return result


def to_numpy(result: Any) -> Any:
    """One result over the same memory, or as float32 where numpy lacks its type."""
    if not isinstance(result, tuple):
        return result
    array, dtype = result
    if dtype == "bf16":  # the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    if "torch" not in sys.modules:
        raise UnsupportedError(f"a result holds elements of type {dtype}, which numpy lacks; import torch to widen them")
    tensor = to_tensor(result)
    return (tensor.to(sys.modules["torch"].complex64) if dtype == "c32" else tensor.float()).numpy()
