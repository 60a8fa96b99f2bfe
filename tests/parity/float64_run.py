# The module in float64: the yardstick for how far float32 results may lie from the truth.
# Parameters, buffers, tensor attributes and inputs are widened, and every dtype that the
# module names itself (`.float()`, `dtype=torch.bfloat16`) is widened on the way to the kernels.

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

WIDE = {
    torch.float32: torch.float64,
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.complex64: torch.complex128,
}


class WidenDtypes(TorchDispatchMode):
    # cond, while_loop and the like run as they are: what they were given is wide already.
    supports_higher_order_operators = True

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        widen = lambda value: WIDE.get(value, value) if isinstance(value, torch.dtype) else value
        return func(*pytree.tree_map(widen, args), **pytree.tree_map(widen, kwargs or {}))


def widen(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.to(WIDE.get(value.dtype, value.dtype), copy=True)
    return value


def widen_module(module: nn.Module) -> nn.Module:
    """In place. Tied parameters stay tied: `Module._apply` keeps each parameter's identity."""
    for part in module.modules():
        for tensor in list(part._parameters.values()) + list(part._buffers.values()):
            if tensor is not None and tensor.dtype in WIDE:
                tensor.data = tensor.data.to(WIDE[tensor.dtype])
        for name, value in list(vars(part).items()):
            if isinstance(value, torch.Tensor):
                setattr(part, name, widen(value))
    return module


@contextlib.contextmanager
def widen_defaults():
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


@contextlib.contextmanager
def widen_everything():
    with widen_defaults(), WidenDtypes():
        yield
