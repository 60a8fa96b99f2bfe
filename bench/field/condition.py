"""Builds models of the field with weights drawn so that their answers can be compared, and exports them.

Drawn weights may let an answer explode, vanish or hang on the last bit. Batch norms therefore take the statistics of the
inputs, and where eager PyTorch in bf16 answers further than 0.1 from f32, all matrices are scaled down until it does not.
"""

import importlib.util
import io
import json
import pathlib
import contextlib
from dataclasses import dataclass

import numpy
import torch
from torch import nn

from field.model import Arrays, FieldModel

OPSET = 18
MOST_ERROR_BF16 = 0.1
SHRINK, MOST_SHRINKS = 0.8, 12


@dataclass
class BuiltModel:
    module: nn.Module
    inputs: Arrays
    error_bf16: float  # relative, of eager in bf16 against f32
    scale: float  # of all matrices, 1 where nothing had to be done


def take_rows(inputs: Arrays, first: int, rows: int) -> list[torch.Tensor]:
    return [torch.from_numpy(array[first : first + rows]).clone() for array in inputs.values()]


def settle_norms(module: nn.Module, example: list[torch.Tensor]) -> None:
    """Batch norms as after training: drawn factors, and the statistics of `example`."""
    norms = [part for part in module.modules() if isinstance(part, nn.modules.batchnorm._BatchNorm)]
    if not norms:
        return
    for norm in norms:
        norm.train()
        norm.reset_running_stats()
        norm.momentum = None
        nn.init.uniform_(norm.weight, 0.7, 1.3)
        nn.init.normal_(norm.bias, 0, 0.1)
    with torch.no_grad():
        module(*example)
    for norm in norms:
        norm.eval()


def first_output(module: nn.Module, example: list[torch.Tensor]) -> torch.Tensor:
    output = module(*example)
    return output[0] if isinstance(output, (tuple, list)) else output


def measure_bf16(module: nn.Module, example: list[torch.Tensor]) -> float:
    with torch.no_grad():
        exact = first_output(module, example).float()
        with torch.autocast("cpu", torch.bfloat16):
            rounded = first_output(module, example).float()
    return float(torch.linalg.vector_norm(rounded - exact) / torch.linalg.vector_norm(exact))


def build(model: FieldModel, rows: int) -> BuiltModel:
    """The module in eval form and `rows` rows of its inputs; the same at each call."""
    torch.manual_seed(7)
    module = model.build().eval()
    inputs = model.draw(numpy.random.default_rng(7), rows)
    every, example = take_rows(inputs, 0, rows), take_rows(inputs, 0, min(rows, 4))
    settle_norms(module, every)
    error, scale = measure_bf16(module, example), 1.0
    for _ in range(MOST_SHRINKS):
        if error <= MOST_ERROR_BF16:
            return BuiltModel(module, inputs, error, scale)
        scale *= SHRINK
        with torch.no_grad():
            for parameter in module.parameters():
                if parameter.dim() > 1:
                    parameter *= SHRINK
        settle_norms(module, every)
        error = measure_bf16(module, example)
    raise RuntimeError(f"{model.name}: eager in bf16 answers {error:.2g} from f32, however small the weights are")


def make_dynamic_shapes(model: FieldModel, inputs: Arrays) -> list[dict] | None:
    if not model.dynamic:
        return None
    shapes: dict[str, dict] = {name: {} for name in inputs}
    for word in model.dynamic:
        name, dimension = word.split(":")
        shapes[name][int(dimension)] = torch.export.Dim.DYNAMIC
    return list(shapes.values())


def export(model: FieldModel, built: BuiltModel, batch: int, folder: pathlib.Path) -> None:
    """Writes model.pt2, and model.onnx where the package onnx is installed."""
    example = tuple(take_rows(built.inputs, 0, batch))
    shapes = make_dynamic_shapes(model, built.inputs)
    with torch.no_grad():
        if importlib.util.find_spec("onnx") is not None:
            names = {"input_names": list(built.inputs), "output_names": ["output"]}
            with contextlib.redirect_stdout(io.StringIO()):
                torch.onnx.export(built.module, example, folder / "new.onnx", dynamo=True, opset_version=OPSET,
                                  external_data=False, verbose=False, dynamic_shapes=shapes, **names)
            (folder / "new.onnx").rename(folder / "model.onnx")
        torch.export.save(torch.export.export(built.module, example, dynamic_shapes=shapes), folder / "new.pt2")
        (folder / "new.pt2").rename(folder / "model.pt2")


def write_facts(model: FieldModel, folder: pathlib.Path) -> None:
    """What prepare_peers.py and the tables want to know of a model."""
    facts = {"title": model.title, "kind": model.kind, "attention": model.attention, "recurrent": model.recurrent}
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
