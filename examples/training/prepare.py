"""What both sides train on: images and labels of Fashion-MNIST as train.npz and test.npz, the net in train form as
net.pt2, its first weights as weights.pt.

    prepare.py IMAGES FOLDER
"""

import pathlib
import sys

import numpy
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "fashion_mnist"))
from fashion_mnist_net import FashionMnistNet  # noqa: E402
from read_idx import read_idx  # noqa: E402


def main() -> None:
    source, folder = map(pathlib.Path, sys.argv[1:])
    for part, name in {"train": "train", "t10k": "test"}.items():
        images = read_idx(source / f"{part}-images-idx3-ubyte.gz")[:, None].astype(numpy.float32) / 255
        labels = read_idx(source / f"{part}-labels-idx1-ubyte.gz").astype(numpy.int64)
        numpy.savez(folder / f"{name}.npz", images=images, labels=labels)
    torch.manual_seed(0)
    net = FashionMnistNet().train()
    torch.save(net.state_dict(), folder / "weights.pt")
    sizes = ({0: torch.export.Dim("batch", min=2, max=1024)},)
    torch.export.save(torch.export.export(net, (torch.rand(4, 1, 28, 28),), dynamic_shapes=sizes), folder / "net.pt2")


if __name__ == "__main__":
    main()
