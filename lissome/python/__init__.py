"""lissome makes PyTorch models fast, small and cheap to train: a module and a goal go in, a proven faster model comes out.

fast = lissome.optimize(module, example_inputs, data="data.npz", latency="5ms", max_loss=0.005)
fast(*example_inputs)      # the module's own arguments, the module's own structure
fast.save("fast.lissome")  # runs without Python and without libtorch; lissome.load() brings it back

Loading and running (the package lissome-runtime) need numpy alone; what makes models (the package lissome) needs torch.
Both are imported when a name that needs them is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from lissome import _runtime
from lissome._runtime import allow_op
from lissome.errors import (
    ArgumentTypeError,
    DataWarning,
    Error,
    InputOutputError,
    InternalError,
    Interrupted,
    InvalidInputError,
    MissingFileError,
    MissingPackageError,
    OverBudgetError,
    UnsupportedError,
    UsageError,
)

if TYPE_CHECKING:
    from lissome.making import optimize, prepare, quantize
    from lissome.memory import MemoryUse, memory_probe
    from lissome.model import FastModel, StreamFacts, Value, load
    from lissome.training import Trained, budget, train

version = __version__ = _runtime.version

__all__ = [
    "ArgumentTypeError",
    "DataWarning",
    "Error",
    "FastModel",
    "InputOutputError",
    "InternalError",
    "Interrupted",
    "InvalidInputError",
    "MemoryUse",
    "MissingFileError",
    "MissingPackageError",
    "OverBudgetError",
    "StreamFacts",
    "Trained",
    "UnsupportedError",
    "UsageError",
    "Value",
    "allow_op",
    "budget",
    "load",
    "memory_probe",
    "optimize",
    "prepare",
    "quantize",
    "train",
    "version",
]

# Names whose modules are imported at first use: `model` imports numpy, the others torch too.
_LAZY = {
    "FastModel": "model",
    "MemoryUse": "memory",
    "StreamFacts": "model",
    "Trained": "training",
    "Value": "model",
    "budget": "training",
    "load": "model",
    "memory_probe": "memory",
    "optimize": "making",
    "prepare": "making",
    "quantize": "making",
    "train": "training",
}


if not TYPE_CHECKING:  # else checkers would take any name

    def __getattr__(name: str) -> Any:
        if name not in _LAZY:
            raise AttributeError(f"module 'lissome' has no attribute {name!r}")
        try:
            found = getattr(importlib.import_module(f"lissome.{_LAZY[name]}"), name)
        except KeyboardInterrupt as error:
            raise Interrupted(f"interrupted while lissome.{name} was imported") from error
        except ImportError as error:
            if _LAZY[name] == "model":
                raise
            raise MissingPackageError(
                f"lissome.{name} needs torch and the package lissome beside lissome-runtime: {error}\n"
                "      Install them: pip install lissome torch"
            ) from error
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
