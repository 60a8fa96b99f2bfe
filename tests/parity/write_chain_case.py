"""One model of the parity set as a user would bring it: model.pt2, data.npz with what its answers shall be, one.npz.

write_chain_case.py NAME FOLDER
"""

from __future__ import annotations

import logging
import os
import sys
import warnings
from pathlib import Path
from typing import Any

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # every model is made here or lies on this disk

import numpy as np
import torch

from case import Case
from models import list_cases

CALLS = 12  # whose samples make the data


def make_call(case: Case) -> tuple[tuple, dict]:
    made = case.inputs(*case.variants[0])
    return made.args, made.kwargs


def find_output(result: Any) -> torch.Tensor:
    if isinstance(result, torch.Tensor):
        return result
    return find_output(next(iter(result.values() if isinstance(result, dict) else result)))


def write(case: Case, folder: Path) -> None:
    torch.manual_seed(7)
    module = case.module().train(case.mode == "train")
    arguments, keywords = make_call(case)
    program = torch.export.export(module, arguments, keywords, dynamic_shapes=case.dynamic, strict=False)
    torch.export.save(program, folder / "model.pt2")
    names = [spec.arg.name for spec in program.graph_signature.input_specs if spec.kind.name == "USER_INPUT"]
    calls = [make_call(case) for _ in range(CALLS)]
    with torch.no_grad():
        outputs = torch.cat([find_output(module(*args, **kwargs)) for args, kwargs in calls]).float()
    flat = [(*args, *kwargs.values()) for args, kwargs in calls]
    columns = {name: torch.cat(parts).numpy() for name, parts in zip(names, zip(*flat, strict=True), strict=True)}
    np.savez(folder / "data.npz", **columns, wanted=(outputs + 0.1 * torch.randn_like(outputs)).numpy())
    np.savez(folder / "one.npz", **{name: part.numpy() for name, part in zip(names, flat[0], strict=True)})


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    logging.disable(logging.WARNING)
    write(next(case for case in list_cases() if case.name == sys.argv[1]), Path(sys.argv[2]))
