"""Builds models of the field, runs and exports each: what one must do before it is timed.

    check_model.py NAME...
"""

import pathlib
import sys
import tempfile
import time
import warnings

import torch

sys.path.insert(0, str(pathlib.Path(__file__).parents[1]))

from field import catalog, condition  # noqa: E402


def check(name: str) -> None:
    model = catalog.find(name)
    built = condition.build(model, rows=8)
    example = condition.take_rows(built.inputs, 0, 1)
    with torch.no_grad(), tempfile.TemporaryDirectory() as folder:
        torch.set_num_threads(2)
        for _ in range(2):
            start = time.perf_counter()
            first = condition.first_output(built.module, example)
            seconds = time.perf_counter() - start
        weights = sum(parameter.numel() for parameter in built.module.parameters()) / 1e6
        print(f"{name}: {weights:.1f} M weights, {tuple(first.shape)}, {seconds * 1e3:.1f} ms in eager, "
              f"deviation {first.float().std():.2g}, error in bf16 {built.error_bf16:.2g}, scaled {built.scale:.2g}")
        built.module(*condition.take_rows(built.inputs, 0, 8))
        condition.export(model, built, 1, pathlib.Path(folder))
    print(f"{name}: exported")


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    for word in sys.argv[1:]:
        check(word)
