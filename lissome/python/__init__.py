"""lissome makes PyTorch models thin, supple and quick: a module and a goal go in, a proven faster model comes out.

fast = lissome.optimize(module, example_inputs, data="data.npz", latency="5ms", max_loss=0.005)
fast(*example_inputs)      # the module's own arguments, the module's own structure
fast.save("fast.lissome")  # runs without Python and without libtorch; lissome.load() brings it back
"""

import torch as _torch  # noqa: F401  its libraries first: the binding finds them loaded

from lissome import _lissome
from lissome._lissome import (
    Error,
    InputOutputError,
    InternalError,
    InvalidInputError,
    OverBudgetError,
    UnsupportedError,
    UsageError,
    allow_op,
)
from lissome.memory import MemoryUse, memory_probe
from lissome.model import FastModel, load, optimize, prepare
from lissome.train import Trained, budget, train

version = __version__ = _lissome.version

__all__ = [
    "Error",
    "FastModel",
    "InputOutputError",
    "InternalError",
    "InvalidInputError",
    "MemoryUse",
    "OverBudgetError",
    "Trained",
    "UnsupportedError",
    "UsageError",
    "allow_op",
    "budget",
    "load",
    "memory_probe",
    "optimize",
    "prepare",
    "train",
    "version",
]
