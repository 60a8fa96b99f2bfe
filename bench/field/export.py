"""Builds and exports one model of the field.

    export.py NAME BATCH FOLDER

FOLDER gets module.pt (the module itself, for PyTorch), model.pt2, model.onnx, facts.json, and inputs: calibration.npz,
held_out.npz and row.npz, the first call's rows of the latter.
"""

import pathlib
import sys
import warnings

import numpy
import torch
from torch.nn.utils import parametrize

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from field import catalog, condition  # noqa: E402

CALLS = 8  # of calibration, and as many held out


def make_picklable(module: torch.nn.Module) -> None:
    """Drops hooks that transformers installs at the first call, as it will again, and computes parametrized weights."""
    for part in list(module.modules()):
        if parametrize.is_parametrized(part):
            for name in list(part.parametrizations):
                parametrize.remove_parametrizations(part, name)
            part._load_state_dict_pre_hooks.clear()
        if hasattr(part, "_output_capturing_hooks_installed"):
            part._output_capturing_hooks_installed = False
        for key, hook in list(part._forward_hooks.items()):
            if getattr(hook, "__name__", "") == "output_capturing_hook":
                del part._forward_hooks[key]


def main() -> None:
    warnings.filterwarnings("ignore")
    name, batch, folder = sys.argv[1], int(sys.argv[2]), pathlib.Path(sys.argv[3])
    model = catalog.find(name)
    torch.set_num_threads(1)  # the same numbers whatever the machine
    built = condition.build(model, rows=2 * CALLS * batch)
    half = CALLS * batch
    numpy.savez(folder / "calibration.npz", **{key: array[:half] for key, array in built.inputs.items()})
    numpy.savez(folder / "held_out.npz", **{key: array[half:] for key, array in built.inputs.items()})
    numpy.savez(folder / "row.npz", **{key: array[half : half + batch] for key, array in built.inputs.items()})
    condition.write_facts(model, folder)
    condition.export(model, built, batch, folder)
    make_picklable(built.module)
    torch.save(built.module, folder / "module.pt")
    print(f"error in bf16 {built.error_bf16:.3g}, scaled {built.scale:.3g}")


if __name__ == "__main__":
    main()
