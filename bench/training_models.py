"""Exports the networks of training_nets.py in train mode, with a named batch, and writes their data.

    training_models.py OUT_FOLDER [--only NAME,...]

In OUT_FOLDER/NAME: model.pt2, weights.pt, data.npz (four batches; labels under that name). Fixed seeds.
"""

import argparse
import pathlib

import numpy
import torch

from training_nets import TRAININGS, Training

BATCHES = 4


def export_training(training: Training, folder: pathlib.Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(0)
    module = training.make().train()
    torch.save(module.state_dict(), folder / "weights.pt")
    data = training.data(BATCHES * training.batch)
    numpy.savez(folder / "data.npz", **data)
    batch = torch.export.Dim("batch", min=2, max=1024)
    inputs = {name: torch.from_numpy(array[:2]) for name, array in data.items() if name != "labels"}
    shapes = {name: {0: batch} for name in inputs}
    exported = torch.export.export(module, tuple(inputs.values()), dynamic_shapes=tuple(shapes.values()))
    torch.export.save(exported, folder / "model.pt2")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--only", default=",".join(TRAININGS))
    arguments = parser.parse_args()
    for name in arguments.only.split(","):
        if not (arguments.out / name / "data.npz").exists():
            export_training(TRAININGS[name], arguments.out / name)


if __name__ == "__main__":
    main()
